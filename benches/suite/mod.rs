//! Tables of workloads, with the names and sizes used by the scripts that time other libraries (the peers).
//!
//! A suite has [`Workload`]s for one kind of device, and lists workloads of the peers that it lacks. `expressions` has shared code.

pub mod contractions;
pub mod cpu;
mod expressions;
mod functions;
pub mod gpu;
pub mod kernels;
pub mod linalg;
pub mod mesh;
pub mod products;
mod reductions;
pub mod scale;
pub mod sparse;

use cuprum::random::Generator;
use cuprum::{Complex, DType, NdArray, Result};

/// A named computation that is timed: one row of a suite.
pub struct Workload {
    /// Name of the workload, as in the scripts that time other libraries.
    pub name: &'static str,
    /// Creates the inputs, outside the measured time.
    pub inputs: fn() -> Result<Vec<NdArray>>,
    /// The measured call. The benchmark evaluates its result. Assignments write to their inputs.
    pub run: fn(&mut [NdArray]) -> Result<NdArray>,
    /// Minimum number of bytes read and written, or 0 if memory bandwidth is not the limit.
    pub bytes: usize,
    /// Number of floating-point operations, or 0 if arithmetic is not the limit.
    pub flops: usize,
}

/// A named list of workloads for one kind of device.
pub struct Suite {
    /// Name of the suite for the option `--suite`.
    pub name: &'static str,
    /// Device on which the suite runs by default.
    pub device: &'static str,
    /// The workloads of the suite.
    pub workloads: &'static [Workload],
}

/// Every suite that `--suite` accepts.
pub static SUITES: &[&Suite] = &[
    &cpu::SUITE,
    &scale::SUITE,
    &gpu::SUITE,
    &products::SUITE,
    &contractions::SUITE,
    &kernels::SUITE,
    &linalg::SUITE,
    &linalg::CPU_SUITE,
    &sparse::SUITE,
    &sparse::CPU_SUITE,
];

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

/// Returns one array of complex numbers with uniform parts.
fn complexes(shape: &[usize], dtype: DType) -> Result<Vec<NdArray>> {
    let part = |seed| Generator::new(seed).random(shape, dtype.real());
    Ok(vec![(part(0)? + part(1)? * Complex::new(0.0, 1.0)).eval()?.clone()])
}

/// Builds workloads from rows: name, inputs, call, and limit (bytes or floating-point operations).
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
