//! Named stretches of a program, and switching an outer profiler on.

use std::any::Any;

use tracing::span::EnteredSpan;

use super::trace;
use crate::device::{Device, driver};
use crate::error::Result;

/// A named stretch of this thread's work, up to its drop; see [`time_range`].
#[must_use = "it lasts until it is dropped"]
pub struct TimeRange {
    // In the order in which they end.
    _mark: Option<Box<dyn Any>>,
    _traced: Option<trace::HostRange>,
    _span: EnteredSpan,
}

/// Marks a stretch of work until the value is dropped (`cupyx.profiler.time_range`): a `tracing` span named `range`, a bar in the file of
/// `CUPRUM_TRACE`, and, on a CUDA device where NVIDIA's tools extension is there, an NVTX range that Nsight shows.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # use cuprum::{DType, NdArray, profiler::time_range};
/// # fn main() -> cuprum::Result<()> {
/// let _range = time_range("normalise");
/// let a = NdArray::ones(4, DType::F64)?;
/// let shares = (&a / &a.sum(())?).eval()?.clone();
/// # Ok(())
/// # }
/// ```
pub fn time_range(name: &str) -> TimeRange {
    TimeRange {
        _span: tracing::info_span!("range", name).entered(),
        _traced: trace::host_range(name),
        _mark: Device::current().and_then(driver).ok().and_then(|d| d.mark_range(name)),
    }
}

/// An outer profiler records until this is dropped; see [`profile`].
#[must_use = "it lasts until it is dropped"]
pub struct Profiling(Device);

impl Drop for Profiling {
    fn drop(&mut self) {
        if let Err(error) = driver(self.0).and_then(|d| d.set_profiling(false)) {
            tracing::warn!(%error, "the profiler was not stopped");
        }
    }
}

/// Tells a profiler that watches this process (Nsight with `--capture-range=cudaProfilerApi`) to record the device until the value is
/// dropped (`cupyx.profiler.profile`). Does nothing on the CPU, or where none watches.
pub fn profile(device: Device) -> Result<Profiling> {
    driver(device)?.set_profiling(true)?;
    Ok(Profiling(device))
}
