//! The accelerator `cub` for CUDA devices, built on the algorithms of NVIDIA CUB.
//!
//! The accelerator serves reductions (along contiguous axes and of segments), scans, selections and histograms, each with a fused program,
//! and sorts without one. NVRTC compiles the kernels with the CCCL headers that are found at run time.
//!
//! Each family is a folder with two modules. `request` converts a call to a request, or declines the call, and generates the CUDA source.
//! `launch` declares the kernel parameters and queues the kernels. All families share the modules at the top level: `kernel_source`
//! assembles sources, `compile` compiles them, and the shared `launch` module runs these steps for a call.
//!
//! `unsafe` code is denied by default. Modules that need it have an `allow` attribute with the reason.

#![deny(unsafe_code)]

#[allow(unsafe_code)] // the C library's atexit
mod at_exit;
pub mod cccl_headers;
mod compile;
mod coverage;
mod fused_input;
mod histogram;
mod kernel_parameter_lists;
mod kernel_source;
#[allow(unsafe_code)] // kernel launches
mod launch;
#[cfg(test)]
mod parameter_tests;
mod reduce;
mod scan;
mod segment;
mod select;
mod sort;
#[cfg(test)]
mod testing;

pub use coverage::{CoverageRow, coverage_table};
use cuprum_core::call;
pub use kernel_source::NVRTC_OPTIONS;

use cuprum_backend_cuda::device;
use cuprum_backend_cuda::user_kernels::REDUCTION_KERNEL;
use cuprum_core::{Accelerator, Availability, Capability, Family, Kernel, Registration, Result, Work};

/// The accelerator `cub`.
pub static CUB: Accelerator = Accelerator {
    name: launch::ACCELERATOR_NAME,
    device: "cuda",
    rank: 10,
    summary: "NVIDIA CUB through NVRTC: reductions, scans, sorts, selections and histograms",
    probe: probe_availability,
    kernels: KERNELS,
    base: None,
};

cuprum_core::inventory::submit! { Registration(&CUB) }

/// Registers the accelerator. Needed in static libraries, where the linker may drop the automatic registration.
///
/// # Errors
/// Returns an error if another accelerator has the same name.
pub fn register() -> Result<()> {
    cuprum_core::register(&CUB)
}

/// Capabilities of kernels that run fused programs. A program may contain a `take` and user-defined operations, besides the core crate's
/// elementwise operations.
const PROGRAM_CAPABILITIES: &[Capability] = &[Capability::FusedTake, Capability::UserDefined];

/// The kernels of the accelerator. No entry is limited to some dtypes, and only the entry for user-defined reductions is limited to an
/// operation. Each function checks its call, and returns the reason if it declines the call.
const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Reduce, |call| match call.work {
        Work::Segments(call::SegmentReduction { .. }) => device::run_operation(call, segment::run_call),
        _ => device::run_operation(call, reduce::run_call),
    })
    .with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Custom, |call| device::run_operation(call, reduce::run_call)).only_ops(&[REDUCTION_KERNEL]),
    Kernel::new(Family::Scan, |call| device::run_operation(call, scan::run_call)).with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Select, |call| device::run_operation(call, select::run_call)).with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Histogram, |call| device::run_operation(call, histogram::run_call)).with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Sort, |call| device::run_operation(call, sort::run_call)),
];

fn probe_availability() -> Availability {
    compile::register_join_at_main_exit(); // the first probe is usually on the main thread
    match cccl_headers::cccl_headers() {
        Ok(headers) => Availability::Ready(headers.to_string()),
        Err(missing) => Availability::Missing { why: missing.reason, help: missing.help },
    }
}

/// Returns the names and CUDA code of representative kernel sources, for compile checks without a device. NVRTC needs [`NVRTC_OPTIONS`] and
/// CCCL's include directory.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    [
        reduce::request::sources_for_compile_check(),
        segment::request::sources_for_compile_check(),
        scan::request::sources_for_compile_check(),
        select::request::sources_for_compile_check(),
        histogram::request::sources_for_compile_check(),
        sort::request::sources_for_compile_check(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_returns_one_line() {
        match probe_availability() {
            Availability::Ready(detail) => assert!(detail.contains("CCCL"), "{detail}"),
            Availability::Missing { why, .. } => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
    }

    #[test]
    fn cub_is_registered_first() {
        register().unwrap();
        register().unwrap();
        assert!(cuprum_core::registry::all_accelerators().iter().any(|a| std::ptr::eq(*a, &CUB)));
        assert_eq!((CUB.rank, CUB.base.is_none()), (10, true));
    }

    #[test]
    fn source_names_are_unique() {
        let mut names: Vec<String> = sources_for_compile_check().into_iter().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(all, 23 + 6 + 13 + 27 + 20 + 8 + 8 + 54);
    }
}
