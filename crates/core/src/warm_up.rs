//! Warm-up: runs representative calls, so that their kernels are in the on-disk cache before a program needs them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::array::NdArray;
use crate::call::KernelModeGuard;
use crate::device::{Device, driver, with_device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::contract::matmul;
use crate::ops::elementwise::where_;
use crate::ops::manipulation::concat;
use crate::ops::random::Generator;

/// Result of [`warm_up`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarmUp {
    /// Number of sample calls that the warm-up ran; 0 on a device that compiles nothing.
    pub calls: usize,
    /// Number of programs compiled because the cache did not contain them.
    pub compiled: usize,
    /// Total time.
    pub time: Duration,
}

/// A representative call that warm-up runs, on two matrices of equal shape and dtype.
type SampleCall = fn(&NdArray, &NdArray) -> Result<NdArray>;

/// Sample calls for every dtype in [`SAMPLE_DTYPES`].
const ALL_DTYPE_SAMPLE_CALLS: &[SampleCall] = &[
    |a, b| Ok(a + b),
    |a, b| Ok(a * b),
    |a, _| Ok(a + 1),
    |a, _| a.t()?.contiguous(),
    |a, b| Ok(a + &b.t()?),
    |a, b| concat([a, b], 0),
    |a, b| where_(&a.equal(b)?, a, b),
    |a, _| a.sum(()),
    |a, _| a.sum(0),
    |a, _| a.sum(-1),
    |a, _| a.max(()),
    |a, _| a.max(-1),
    |a, _| a.argmax(-1),
    |a, _| a.cumsum(-1),
    |a, b| matmul(a, b),
    |a, _| a.sort(-1),
    |a, _| a.argsort(-1),
    |a, b| a.extract(&a.not_equal(b)?),
    |a, _| a.take(&NdArray::from_slice(&[0i64, 1])?, 0),
];

/// Sample calls for floating-point dtypes, in addition to [`ALL_DTYPE_SAMPLE_CALLS`].
const FLOAT_SAMPLE_CALLS: &[SampleCall] = &[
    |a, b| Ok(a / b),
    |a, b| Ok((a * a + b).sqrt()? - 1),
    |a, _| a.exp(),
    |a, _| a.tanh(),
    |a, _| (a * a).sum(-1)?.sqrt(),
    |a, _| a.mean(0),
    |a, _| a.var(-1),
    |a, _| {
        let e = (a - &a.max(-1)?.expand_dims(1)?).exp()?;
        Ok(&e / &e.sum(-1)?.expand_dims(1)?)
    },
];

/// The dtypes of the calls that a warm-up makes, so that their kernels are compiled.
const SAMPLE_DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::I32, DType::I64];
/// Side lengths of the square sample matrices. The small matrix fits a single thread block, the large one needs many.
const SAMPLE_MATRIX_SIDES: [usize; 2] = [32, 1024];

/// Compiles the kernels of representative calls for a device and all of its accelerators.
///
/// Covers elementwise operations, reductions, scans, products, sorts, selections and copies of float32, float64, int32 and int64.
/// The kernels are stored in the cache folder (`CUPRUM_CACHE_DIR`) for later processes. `cuprum warm-up` does the same. A program
/// with known calls warms up best by making those calls.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Device, warm_up};
/// # fn main() -> cuprum::Result<()> {
/// let done = warm_up(Device::CPU)?;
/// assert_eq!(done.compiled, 0); // the CPU has nothing to compile
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Device`] if the device is not ready. The first error of a call, except [`Error::Unsupported`].
pub fn warm_up(device: Device) -> Result<WarmUp> {
    let (driver, began) = (driver(device)?, Instant::now());
    let Some(compiled) = driver.compiled_program_count() else { return Ok(WarmUp { calls: 0, compiled: 0, time: began.elapsed() }) };
    let mut calls: Vec<(SampleCall, DType, usize)> = Vec::new();
    for dtype in SAMPLE_DTYPES {
        let samples = ALL_DTYPE_SAMPLE_CALLS.iter().chain(FLOAT_SAMPLE_CALLS.iter().filter(|_| dtype.is_float()));
        calls.extend(samples.flat_map(|&work| SAMPLE_MATRIX_SIDES.map(|side| (work, dtype, side))));
    }
    // Each sample call compiles its kernels on one core, so as many calls run at a time as there are cores.
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(calls.len());
    let work = || -> Result<()> {
        let run = || {
            while let Some(&(work, dtype, side)) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                match run_sample_call(work, dtype, side) {
                    Ok(()) | Err(Error::Unsupported { .. }) => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        };
        with_device(device, || {
            let _blocking = KernelModeGuard::enable_foreground_compilation();
            run()
        })
    };
    std::thread::scope(|scope| {
        // Warm-up continues with fewer workers if a thread cannot be started.
        let spawn = |_| std::thread::Builder::new().name("cuprum-warm-up".into()).spawn_scoped(scope, work).ok();
        let spawned: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut result = work();
        for thread in spawned {
            let ended = thread.join().unwrap_or_else(|_| Err(Error::value("warm_up", "a worker thread panicked")));
            result = result.and(ended);
        }
        result
    })?;
    device.synchronize()?;
    let compiled = driver.compiled_program_count().unwrap_or(compiled) - compiled;
    Ok(WarmUp { calls: calls.len(), compiled, time: began.elapsed() })
}

fn run_sample_call(work: SampleCall, dtype: DType, side: usize) -> Result<()> {
    let random = Generator::new(1);
    let [a, b] = [0, 1].map(|_| random.integers(1, 100, [side, side], DType::I64).and_then(|x| x.astype(dtype)?.eval().cloned()));
    work(&a?, &b?)?.eval().map(|_| ())
}
