//! Compiling ahead: a usual set of calls, made once so that their kernels are in the cache folder before a program needs them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::array::NdArray;
use crate::device::{Device, driver, with_device};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::contract::matmul;
use crate::ops::elementwise::where_;
use crate::ops::manipulation::concat;
use crate::ops::random::Generator;

/// What a [`warm_up`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarmUp {
    /// Calls that were made; none on a device that compiles nothing.
    pub calls: usize,
    /// Programs that had to be compiled: those that were not in the cache.
    pub compiled: usize,
    /// How long it took.
    pub time: Duration,
}

/// A usual call, on a matrix and another of its shape and dtype.
type Usual = fn(&NdArray, &NdArray) -> Result<NdArray>;

/// Of every dtype.
const ALL: &[Usual] = &[
    |a, b| Ok(a + b),
    |a, b| Ok(a * b),
    |a, _| Ok(a + 1),
    |a, _| a.t()?.contiguous(),
    |a, b| Ok(a + &b.t()?),
    |a, b| concat(&[a.clone(), b.clone()], 0),
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

/// Of floating-point dtypes too.
const FLOATS: &[Usual] = &[
    |a, b| Ok(a / b),
    |a, b| Ok((a * a + b).sqrt()? - 1),
    |a, _| a.exp(),
    |a, _| a.tanh(),
    |a, _| (a * a).sum(-1)?.sqrt(),
    |a, _| a.mean(0),
    |a, _| a.var(-1),
    |a, _| {
        let e = (a - &a.max(-1)?.expand_dims(&[1])?).exp()?;
        Ok(&e / &e.sum(-1)?.expand_dims(&[1])?)
    },
];

/// The dtypes of the usual set.
const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::I32, DType::I64];
/// Sides of the matrices: one block's work, and many blocks'.
const SIDES: [usize; 2] = [32, 1024];

/// Compiles the kernels of a usual set of calls for a device and everything that serves it: elementwise operations, reductions, scans,
/// products, sorts, selections and copies of float32, float64, int32 and int64. They stay in the cache folder (`CUPRUM_CACHE_DIR`), so
/// that the first calls of later processes find them; `cuprum warm-up` does the same. A program that knows what it will call warms up
/// by calling that.
///
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
/// Errors: a device that is not there; the first call that fails, but for one that nobody takes.
pub fn warm_up(device: Device) -> Result<WarmUp> {
    let (driver, began) = (driver(device)?, Instant::now());
    let Some(compiled) = driver.compiled() else { return Ok(WarmUp { calls: 0, compiled: 0, time: began.elapsed() }) };
    let mut works: Vec<(Usual, DType, usize)> = Vec::new();
    for dtype in DTYPES {
        let usual = ALL.iter().chain(FLOATS.iter().filter(|_| dtype.is_float()));
        works.extend(usual.flat_map(|&work| SIDES.map(|side| (work, dtype, side))));
    }
    // A compiler works on one core: all of them have something to do.
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(works.len());
    let work = || -> Result<()> {
        let run = || {
            while let Some(&(work, dtype, side)) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
                match once(work, dtype, side) {
                    Ok(()) | Err(Error::Unsupported { .. }) => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        };
        with_device(device, || dispatch::with_waiting(run))
    };
    std::thread::scope(|scope| {
        // A thread that cannot be had is one worker less.
        let spawn = |_| std::thread::Builder::new().name("cuprum-warm-up".into()).spawn_scoped(scope, work).ok();
        let spawned: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut result = work();
        for thread in spawned {
            let ended = thread.join().unwrap_or_else(|_| Err(Error::value("warm_up", "a thread panicked")));
            result = result.and(ended);
        }
        result
    })?;
    device.synchronize()?;
    let compiled = driver.compiled().unwrap_or(compiled) - compiled;
    Ok(WarmUp { calls: works.len(), compiled, time: began.elapsed() })
}

fn once(work: Usual, dtype: DType, side: usize) -> Result<()> {
    let random = Generator::new(1);
    let [a, b] = [0, 1].map(|_| random.integers(1, 100, [side, side], DType::I64).and_then(|x| x.astype(dtype)?.eval().cloned()));
    work(&a?, &b?)?.eval().map(|_| ())
}
