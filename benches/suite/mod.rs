//! Tables of workloads, with the names and sizes of the peers' scripts.
//!
//! A suite has [`Workload`]s for one kind of device, and lists the peers' workloads that are missing here. `expressions` has shared
//! code.

pub mod contractions;
pub mod cpu;
mod expressions;
pub mod gpu;
pub mod kernels;
mod reductions;
pub mod scale;

use cuprum::random::Generator;
use cuprum::{DType, NdArray, Result};

/// A workload: a row of a suite.
pub struct Workload {
    /// Name, as in the peers' scripts.
    pub name: &'static str,
    /// Creates the inputs, outside the measured time.
    pub inputs: fn() -> Result<Vec<NdArray>>,
    /// The measured call. The benchmark evaluates its result.
    pub run: fn(&[NdArray]) -> Result<NdArray>,
    /// Minimum number of bytes read and written; 0 if memory is not the limit.
    pub bytes: usize,
    /// Number of floating-point operations; 0 if arithmetic is not the limit.
    pub flops: usize,
}

/// A workload of the peers that needs a function cuprum does not have.
pub struct Missing {
    /// Name, as in the peers' scripts.
    pub name: &'static str,
    /// The missing function.
    pub needs: &'static str,
}

/// A named list of workloads.
pub struct Suite {
    /// Name for `--suite`.
    pub name: &'static str,
    /// Default device.
    pub device: &'static str,
    /// The workloads.
    pub workloads: &'static [Workload],
    /// Workloads of the peers that are missing.
    pub missing: &'static [Missing],
}

/// Every suite.
pub static SUITES: &[&Suite] = &[&cpu::SUITE, &scale::SUITE, &gpu::SUITE, &contractions::SUITE, &kernels::SUITE];

/// Returns arrays of uniform numbers in `[0, 1)`, one per shape.
fn uniform<const K: usize>(shapes: [&[usize]; K], dtype: DType) -> Result<Vec<NdArray>> {
    let one = |(seed, shape): (usize, &&[usize])| Generator::new(seed as u64).random(*shape, dtype);
    shapes.iter().enumerate().map(one).collect()
}

fn f32s<const K: usize>(shapes: [&[usize]; K]) -> Result<Vec<NdArray>> {
    uniform(shapes, DType::F32)
}

fn f64s<const K: usize>(shapes: [&[usize]; K]) -> Result<Vec<NdArray>> {
    uniform(shapes, DType::F64)
}

/// Builds workloads from rows: name, inputs, call, and limit.
macro_rules! workloads {
    ($($name:literal: $inputs:expr => |$x:ident| $run:expr $(, $limit:ident $amount:expr)?;)*) => {
        &[$(Workload {
            name: $name,
            inputs: || $inputs,
            run: |$x| $run,
            bytes: 0 $(+ limit!(bytes, $limit, $amount))?,
            flops: 0 $(+ limit!(flops, $limit, $amount))?,
        }),*]
    };
}
use workloads;
macro_rules! limit {
    (bytes, bytes, $amount:expr) => {
        $amount
    };
    (flops, flops, $amount:expr) => {
        $amount
    };
    ($wanted:ident, $given:ident, $amount:expr) => {
        0
    };
}
use limit;
