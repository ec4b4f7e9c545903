//! Named ranges of a program, and control of an attached profiler.

use std::any::Any;

use tracing::span::EnteredSpan;

use super::trace;
use crate::device::{Device, driver};
use crate::error::Result;

/// A named range of this thread's work, which ends when the value is dropped; see [`time_range`].
#[must_use = "it lasts until it is dropped"]
pub struct TimeRange {
    // Fields drop in declaration order. The profiler's range starts last, so it is declared first and ends first.
    _mark: Option<Box<dyn Any>>,
    _traced: Option<trace::TracedHostRange>,
    _span: EnteredSpan,
}

/// Marks this thread's work as a range called `name` until the returned value is dropped (`cupyx.profiler.time_range`).
///
/// The range is a `tracing` span named `range` and a bar in the `CUPRUM_TRACE` file. On a CUDA device with NVIDIA's tools extension,
/// it is also an NVTX range, which Nsight shows.
///
/// # Examples
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # use cuprum::{DType, NdArray, ones, profiler::time_range};
/// # fn main() -> cuprum::Result<()> {
/// let _range = time_range("normalise");
/// let a = ones(4, DType::F64)?;
/// let shares = (&a / &a.sum(())?).eval()?.clone();
/// # Ok(())
/// # }
/// ```
pub fn time_range(name: &str) -> TimeRange {
    TimeRange {
        _span: tracing::info_span!("range", name).entered(),
        _traced: trace::begin_traced_host_range(name),
        _mark: Device::current().and_then(driver).ok().and_then(|d| d.begin_profiler_range(name)),
    }
}

/// An active recording of an attached profiler, which stops when the value is dropped; see [`profile`].
#[must_use = "it lasts until it is dropped"]
pub struct Profiling(Device);

impl Drop for Profiling {
    fn drop(&mut self) {
        if let Err(error) = driver(self.0).and_then(|d| d.set_profiling(false)) {
            tracing::warn!(%error, "the profiler was not stopped");
        }
    }
}

/// Starts recording in an attached profiler until the returned value is dropped (`cupyx.profiler.profile`).
///
/// An example of a profiler is Nsight with `--capture-range=cudaProfilerApi`. Has no effect on the CPU or without a profiler.
///
/// # Errors
/// [`Error::Device`](crate::Error::Device) if the device is not ready; errors of the profiler interface.
pub fn profile(device: Device) -> Result<Profiling> {
    driver(device)?.set_profiling(true)?;
    Ok(Profiling(device))
}
