//! State of each device that modules above [`Context`] keep.

use std::sync::OnceLock;

use super::Context;

/// One value per device, created at first use and kept for the rest of the process.
pub(crate) struct PerDevice<T>(OnceLock<Box<[OnceLock<T>]>>);

impl<T: Default> PerDevice<T> {
    pub(crate) const fn new() -> PerDevice<T> {
        PerDevice(OnceLock::new())
    }

    /// Returns the value of a device.
    #[inline]
    pub(crate) fn get(&'static self, context: &Context) -> &'static T {
        let devices = self.0.get_or_init(|| (0..Context::device_count()).map(|_| OnceLock::new()).collect());
        devices[context.info().ordinal].get_or_init(T::default)
    }
}
