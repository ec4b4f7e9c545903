//! The per-thread switch for the deferral of elementwise operations.

use std::cell::Cell;

use crate::settings;

thread_local! {
    static SCOPED_FUSION: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Returns whether this thread defers elementwise operations: the value of the innermost [`with_fusion`], else of
/// [`set_fusion`](crate::set_fusion), else of `CUPRUM_FUSION`, else true.
#[inline]
pub fn fusion_enabled() -> bool {
    SCOPED_FUSION.with(Cell::get).unwrap_or_else(settings::is_process_fusion_enabled)
}

/// Runs `f` with deferral enabled (`on`) or disabled on this thread.
///
/// Elementwise results are bit-identical with and without deferral. Reductions along rows in a fused expression may differ in the last
/// bits, since a device may add the terms in another order. On the CPU the results are bit-identical for sums and means of contiguous rows,
/// and for variances of rows of up to 8 KiB.
pub fn with_fusion<R>(on: bool, f: impl FnOnce() -> R) -> R {
    struct RestoreFusionOnDrop(Option<bool>);
    impl Drop for RestoreFusionOnDrop {
        fn drop(&mut self) {
            SCOPED_FUSION.with(|s| s.set(self.0));
        }
    }
    let _restore = RestoreFusionOnDrop(SCOPED_FUSION.with(|s| s.replace(Some(on))));
    f()
}
