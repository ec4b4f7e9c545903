//! Tables of workloads that the peers run too, by the same names and at the same sizes.
//!
//! A suite is a list of [`Workload`]s for one kind of device and a list of those whose functions are not here yet. What
//! several of them time stands in `expressions`.

pub mod contractions;
pub mod cpu;
mod expressions;
pub mod gpu;
pub mod kernels;
mod reductions;
pub mod scale;

use cuprum::random::Generator;
use cuprum::{DType, NdArray, Result};

/// One row of a suite.
pub struct Workload {
    /// Its name in the peers' scripts.
    pub name: &'static str,
    /// Inputs, made outside the timing.
    pub inputs: fn() -> Result<Vec<NdArray>>,
    /// The call that is timed; the bench evaluates what it returns.
    pub run: fn(&[NdArray]) -> Result<NdArray>,
    /// Bytes that it must read and write, or 0 where they do not limit it.
    pub bytes: usize,
    /// Floating-point operations, or 0 where they do not limit it.
    pub flops: usize,
}

/// A workload of the peers that cannot run yet, and the function it waits for.
pub struct Missing {
    /// Its name in the peers' scripts.
    pub name: &'static str,
    /// What it needs.
    pub needs: &'static str,
}

/// A named table.
pub struct Suite {
    /// Name for `--suite`.
    pub name: &'static str,
    /// The device that it runs on, unless `--device` names one.
    pub device: &'static str,
    /// What runs.
    pub workloads: &'static [Workload],
    /// What does not.
    pub missing: &'static [Missing],
}

/// Every suite.
pub static SUITES: &[&Suite] = &[&cpu::SUITE, &scale::SUITE, &gpu::SUITE, &contractions::SUITE, &kernels::SUITE];

/// Numbers in `[0, 1)`, one array per shape.
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

/// A row: name, inputs, call, and what limits it.
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
