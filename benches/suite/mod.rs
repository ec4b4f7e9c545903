//! Tables of workloads that the peers run too, by the same names and at the same sizes.
//!
//! A suite is a list of [`Workload`]s and a list of those whose functions are not here yet. `cpu` is the first; one for
//! another device stands beside it and shares the expressions in `expressions`.

pub mod cpu;
mod expressions;

use cuprum::{NdArray, Result};

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
    /// What runs.
    pub workloads: &'static [Workload],
    /// What does not.
    pub missing: &'static [Missing],
}

/// Every suite.
pub static SUITES: &[&Suite] = &[&cpu::SUITE];
