//! The CPU backend of cuprum. The accelerator `cpu` is the base accelerator of the device `cpu`: it runs every call that the other
//! accelerators decline.
//!
//! The accelerator implements every kernel family, so that other CPU accelerators may decline any call. A fused expression is evaluated in
//! tiles that fit L1 (`program_evaluation`), on rayon's threads (`threads`), by loops compiled for several SIMD levels (`simd`). Sums are
//! pairwise, in a tree whose shape depends only on the length, so no result depends on the number of threads.
//!
//! An application links the backend by naming it (`use cuprum_backend_cpu as _;`). Static libraries call [`register`].
#![deny(unsafe_code)]

mod contraction;
mod copy;
mod elementwise_map;
mod fft;
mod fill;
mod gather;
mod histogram;
mod program_evaluation;
mod random;
mod reduce;
mod reducers;
mod row_programs;
mod scan;
mod scatter;
mod select;
#[doc(hidden)]
pub mod user_kernels;

use cuprum_core::Capability::{OrderedScatter, OutputRanges, RowPrograms, UserDefined, Variance};
use cuprum_core::device::DeviceInfo;
use cuprum_core::host_buffer::HostDriver;
use cuprum_core::op::Family;
use cuprum_core::registry::DeviceProvider;
use cuprum_core::{Accelerator, Availability, Kernel, Registration, Result, inventory, settings};
use cuprum_cpu_base::{simd, threads};
use cuprum_cpu_sort::{sort, sorted_search};

pub use cuprum_cpu_base::threads::with_threads;
pub use cuprum_cpu_elementwise::operation_table::has_kernel;

/// The base accelerator of the device `cpu`, which runs every kernel family on the host.
pub static CPU_ACCELERATOR: Accelerator = Accelerator {
    name: "cpu",
    device: "cpu",
    rank: 100,
    summary: "every operation on the host: rayon, tiles, gemm",
    probe: || Availability::Ready(format!("{} threads, {}", threads::max_threads(), simd::simd_level_name())),
    kernels: &[
        Kernel::new(Family::Map, elementwise_map::compute_elementwise).with_capabilities(&[UserDefined, OutputRanges]).writes_targets(),
        Kernel::new(Family::Fill, fill::fill_output),
        Kernel::new(Family::Reduce, reduce::compute_reduction).with_capabilities(&[UserDefined, Variance]),
        Kernel::new(Family::Rows, row_programs::compute_row_program).with_capabilities(&[UserDefined, RowPrograms]),
        Kernel::new(Family::Copy, copy::copy_inputs_to_regions).writes_targets(),
        Kernel::new(Family::Scan, scan::compute_scan).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Contract, contraction::compute_contraction),
        Kernel::new(Family::Random, random::draw_random_numbers),
        Kernel::new(Family::Gather, gather::compute_gather),
        Kernel::new(Family::Scatter, scatter::compute_scatter).with_capabilities(&[OrderedScatter]).writes_targets(),
        Kernel::new(Family::Sort, sort::compute_sort),
        Kernel::new(Family::Select, select::compute_selection).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Search, sorted_search::compute_search),
        Kernel::new(Family::Histogram, histogram::compute_histogram).with_capabilities(&[UserDefined]),
        #[cfg(feature = "linalg")]
        Kernel::new(Family::Linalg, cuprum_cpu_linalg::compute_linalg_operation),
        Kernel::new(Family::Sparse, cuprum_cpu_sparse::compute_sparse_operation),
        Kernel::new(Family::Fft, fft::compute_fft).with_capabilities(&[UserDefined]),
    ],
    base: Some(DeviceProvider { count: || 1, is_ready: |_| true, open: |_| Ok(Box::new(HostDriver::new(device_info))) }),
};

inventory::submit! { Registration(&CPU_ACCELERATOR) }

/// Registers the backend where `inventory` cannot, as in static libraries. A second call has no effect.
pub fn register() -> Result<()> {
    cuprum_core::register(&CPU_ACCELERATOR)
}

fn device_info() -> DeviceInfo {
    DeviceInfo {
        name: processor_name(),
        units: threads::logical_processors(),
        memory_total: settings::physical_memory(),
        memory_used: 0,
        details: vec![("SIMD", simd::simd_level_name().to_string()), ("threads", threads::max_threads().to_string())],
    }
}

/// Returns the processor's product name, or the architecture if the system does not report one.
fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(':')).map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}
