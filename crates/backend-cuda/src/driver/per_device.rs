//! Per-device values of the modules in layers above [`Context`]. These values cannot be fields of the context, because a lower layer does
//! not import types of a higher layer.

use std::sync::OnceLock;

use super::Context;

/// A lazily created value per device, kept for the life of the process.
pub(crate) struct PerDevice<T>(OnceLock<Box<[OnceLock<T>]>>);

impl<T: Default> PerDevice<T> {
    pub(crate) const fn new() -> PerDevice<T> {
        PerDevice(OnceLock::new())
    }

    /// Returns the value for the device of `context`. The first call creates the value.
    #[inline]
    pub(crate) fn get_or_create(&'static self, context: &Context) -> &'static T {
        let devices = self.0.get_or_init(|| (0..Context::context_slot_count()).map(|_| OnceLock::new()).collect());
        devices[context.info().ordinal].get_or_init(T::default)
    }
}
