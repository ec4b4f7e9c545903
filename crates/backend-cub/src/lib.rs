//! The accelerator `cub` for CUDA devices: reductions along contiguous axes and of segments, scans, selections and histograms, their prologue
//! expression fused, and sorts, by CUB's algorithms; sorts on its block primitives too. Kernels are compiled by NVRTC with the
//! CCCL headers found at run time; no other header is needed.
//!
//! A family's module (`reduce`, `scan`, `select`, ...) describes a call or says why it cannot; `source` puts kernels together,
//! `compile` compiles them, `launch` runs them. `unsafe` is denied here and allowed only in the modules marked below.

#![deny(unsafe_code)]

#[allow(unsafe_code)] // the C library's atexit
mod at_exit;
mod compile;
mod coverage;
mod flat;
pub mod headers;
mod histogram;
#[allow(unsafe_code)] // kernel launches
mod launch;
mod reduce;
mod scan;
mod segment;
mod select;
mod sort;
mod source;
#[cfg(test)]
mod testing;

pub use coverage::{Coverage, coverage};
use cuprum_core::call;
pub use source::OPTIONS;

use cuprum_backend_cuda::raw::REDUCTION_KERNEL;
use cuprum_core::{Accelerator, Availability, Family, Kernel, Registration, Result, Work};

const NAME: &str = "cub";

/// CUB.
pub static CUB: Accelerator = Accelerator {
    name: NAME,
    device: "cuda",
    rank: 10,
    summary: "NVIDIA CUB through NVRTC: reductions, scans, sorts, selections and histograms",
    probe,
    kernels: KERNELS,
    base: None,
};

cuprum_core::inventory::submit! { Registration(&CUB) }

/// Makes CUB known in a static library, where the linker may drop the registration that nobody refers to.
pub fn register() -> Result<()> {
    cuprum_core::register(&CUB)
}

/// Kernels look at operations and dtypes themselves, so that each has a reason of its own to decline.
const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Reduce, |call| match call.work {
        Work::Segments(call::Segments { .. }) => launch::run(call, |_| segment::describe(call)),
        _ => reduce::run(call),
    }),
    Kernel::new(Family::Custom, reduce::run).ops(&[REDUCTION_KERNEL]),
    Kernel::new(Family::Scan, |call| launch::run(call, |_| scan::describe(call))),
    Kernel::new(Family::Select, |call| launch::run(call, |addresses| select::describe(call, addresses))),
    Kernel::new(Family::Histogram, |call| launch::run(call, |addresses| histogram::describe(call, addresses))),
    Kernel::new(Family::Sort, |call| launch::run(call, |_| sort::describe(call))),
];

fn probe() -> Availability {
    compile::finish_before_main_ends(); // asked for once, mostly where a program begins
    match headers::shared() {
        Ok(headers) => Availability::Ready(headers.to_string()),
        Err(missing) => Availability::Missing { why: missing.reason, help: missing.help },
    }
}

/// Name and text of kernels over a representative list, to be compiled with [`OPTIONS`] and CCCL's include folder where
/// there is no device.
pub fn sources_for_check() -> Vec<(String, String)> {
    [reduce::sources(), segment::sources(), scan::sources(), select::sources(), histogram::sources(), sort::sources()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_answers_in_one_line() {
        match probe() {
            Availability::Ready(detail) => assert!(detail.contains("CCCL"), "{detail}"),
            Availability::Missing { why, .. } => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
    }

    #[test]
    fn it_comes_first() {
        register().unwrap();
        register().unwrap();
        assert!(cuprum_core::registry::all().iter().any(|a| std::ptr::eq(*a, &CUB)));
        assert_eq!((CUB.rank, CUB.base.is_none()), (10, true));
    }

    #[test]
    fn every_listed_source_has_a_name_of_its_own() {
        let mut names: Vec<String> = sources_for_check().into_iter().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(all, 20 + 6 + 13 + 27 + 20 + 8 + 8 + 54);
    }
}
