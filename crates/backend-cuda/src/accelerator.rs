//! The accelerator `cuda`, which provides NVIDIA GPUs as devices. The accelerator has fallback kernels for the operations on these devices.
//! The NVIDIA driver and NVRTC are required; cuBLAS, cuFFT and cuSOLVER are used if they are installed.

use std::path::PathBuf;

use cuprum_core::Capability::{
    FusedTake, OutputRanges, OverlappingWindows, ReproducibleScatterSum, RowPrograms, UnorderedScatterSum, UserDefined, Variance,
};
use cuprum_core::device::DeviceDriver;
use cuprum_core::{Accelerator, Availability, Capability, Device, DeviceProvider, Error, Family, Kernel, Registration, Result, Work};

use crate::collectives::NCCL;
use crate::compile::libraries::MissingLibrary;
use crate::compile::nvrtc::{Compiler, MIN_KERNEL_ARCH, format_compute_capability};
use crate::device::{self, CudaDevice};
use crate::driver::{self, DeviceInfo};
use crate::families::{
    contract, copy, fft, fill, gather, histogram, linalg, map, random, reduce, rows, scan, scatter, search, segment, select, sort, sparse,
};
use crate::user_kernels::REDUCTION_KERNEL;

/// The accelerator `cuda`, which provides NVIDIA GPUs as devices. Dispatch tries its kernels after the kernels of all other accelerators
/// for CUDA devices.
pub static CUDA: Accelerator = Accelerator {
    name: "cuda",
    device: "cuda",
    rank: 100,
    summary: "NVIDIA GPUs: kernels generated and compiled at run time, cuBLAS for matrix products",
    probe: probe_availability,
    kernels: KERNELS,
    base: Some(DeviceProvider { count: device_count, is_ready: is_device_ready, open: open_device }),
};

cuprum_core::inventory::submit! { Registration(&CUDA) }
cuprum_core::inventory::submit! { NCCL }

/// Registers the accelerator [`CUDA`]. Static libraries need this call if the linker drops the static registration.
pub fn register() -> Result<()> {
    cuprum_core::register(&CUDA)
}

/// Capabilities of kernels that evaluate fused elementwise expressions: `take` inside an expression, and user-defined operations.
const PROGRAM_CAPABILITIES: &[Capability] = &[FusedTake, UserDefined];

/// Makes the function of an entry of the table `KERNELS`. The function runs `$run` through [`device::run_operation`].
macro_rules! operation {
    ($run:expr) => {
        |call| device::run_operation(call, $run)
    };
}

/// The kernels of the accelerator. An entry whose `ops` are set serves only these operations of its family.
const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Map, operation!(map::run_map_with_cache))
        .with_capabilities(&[FusedTake, UserDefined, OutputRanges])
        .writes_targets(),
    Kernel::new(Family::Fill, operation!(fill::run_fill)),
    Kernel::new(Family::Copy, operation!(copy::run_copy)).writes_targets(),
    Kernel::new(Family::Random, operation!(random::run_random_generation)),
    // The gather kernels run a `take` that is not part of a fused expression.
    Kernel::new(Family::Gather, operation!(gather::run_gather)),
    Kernel::new(Family::Scatter, operation!(scatter::run_scatter))
        .with_capabilities(&[ReproducibleScatterSum, UnorderedScatterSum])
        .writes_targets(),
    Kernel::new(Family::Contract, operation!(contract::run_contraction)).with_capabilities(&[OverlappingWindows]),
    Kernel::new(
        Family::Reduce,
        operation!(|call| match call.work {
            Work::Segments(_) => segment::run_segment_reduction(call),
            _ => reduce::run_reduction(call),
        }),
    )
    .with_capabilities(&[FusedTake, UserDefined, Variance]),
    Kernel::new(Family::Rows, operation!(rows::run_row_program)).with_capabilities(&[FusedTake, UserDefined, RowPrograms]),
    Kernel::new(Family::Custom, operation!(reduce::run_user_reduction)).only_ops(&[REDUCTION_KERNEL]),
    Kernel::new(Family::Scan, operation!(scan::run_scan)).with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Sort, operation!(sort::segment_sort::run_segment_sort)).only_ops(sort::segment_sort::SEGMENT_SORT_OPS),
    Kernel::new(Family::Sort, operation!(sort::run_sort)),
    Kernel::new(Family::Select, operation!(select::run_selection)).with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Search, operation!(search::run_search)),
    Kernel::new(Family::Histogram, operation!(histogram::run_histogram)).with_capabilities(PROGRAM_CAPABILITIES),
    Kernel::new(Family::Sparse, operation!(sparse::run_sparse_operation)),
    Kernel::new(Family::Linalg, operation!(linalg::run_linear_algebra)),
    Kernel::new(Family::Fft, operation!(fft::run_fft)).with_capabilities(PROGRAM_CAPABILITIES),
];

fn probe_availability() -> Availability {
    match driver::probe_driver() {
        Ok(driver) => {
            let devices: Vec<Readiness> = driver.devices.iter().map(|device| find_nvrtc_for_device(device, driver.version.0)).collect();
            summarize_readiness(driver.version, &devices)
        }
        Err(reason) => {
            let (why, help) = reason.split_once("; ").unwrap_or((&reason, ""));
            Availability::Missing { why: why.into(), help: help.into() }
        }
    }
}

/// The path of the NVRTC library that compiles for a device, or the reason why the device is unusable.
type Readiness = std::result::Result<PathBuf, MissingLibrary>;

fn find_nvrtc_for_device(device: &DeviceInfo, driver_major: u32) -> Readiness {
    let locate = |arch| {
        Compiler::find_for_arch(driver_major, arch).map(|compiler| compiler.path().to_owned()).map_err(|e| {
            let text = e.to_string();
            let (reason, help) = text.split_once("; try: ").unwrap_or((&text, ""));
            (reason.to_owned(), help.to_owned())
        })
    };
    readiness_with_nvrtc_locator(&format!("cuda:{} ({})", device.ordinal, device.name), device.arch(), locate)
}

/// Returns the path of the NVRTC library for the device `name` of compute capability `arch`, or why the device is unusable.
/// `locate` finds the library for a compute capability, or returns a reason and a remedy.
fn readiness_with_nvrtc_locator(
    name: &str,
    arch: u32,
    locate: impl FnOnce(u32) -> std::result::Result<PathBuf, (String, String)>,
) -> Readiness {
    let located = if arch < MIN_KERNEL_ARCH {
        Err((
            format!(
                "compute capability {}; {} is the lowest supported",
                format_compute_capability(arch),
                format_compute_capability(MIN_KERNEL_ARCH)
            ),
            String::new(),
        ))
    } else {
        locate(arch)
    };
    located.map_err(|(reason, help)| MissingLibrary { name: name.into(), reason, help })
}

/// Returns `Ready` if at least one of `devices` can be used. The result's message lists the unusable devices with their reasons.
fn summarize_readiness((major, minor): (u32, u32), devices: &[Readiness]) -> Availability {
    let mut left_out: Vec<(Vec<&str>, &MissingLibrary)> = Vec::new();
    for missing in devices.iter().filter_map(|d| d.as_ref().err()) {
        match left_out.iter_mut().find(|(_, other)| other.reason == missing.reason) {
            Some((names, _)) => names.push(&missing.name),
            None => left_out.push((vec![&missing.name], missing)),
        }
    }
    let mut compilers: Vec<String> = devices.iter().filter_map(|d| Some(d.as_ref().ok()?.display().to_string())).collect();
    let ready = compilers.len();
    compilers.dedup();
    if ready == 0 {
        let reasons: Vec<String> = left_out.iter().map(|(names, missing)| format!("{}: {}", names.join(", "), missing.reason)).collect();
        let help = left_out.iter().map(|(_, missing)| missing.help.clone()).find(|help| !help.is_empty());
        return Availability::Missing { why: reasons.join("; "), help: help.unwrap_or_default() };
    }
    let left_out = left_out.iter().map(|(names, missing)| format!("; left out: {}: {}", names.join(", "), missing.reason));
    let left_out: String = left_out.collect();
    Availability::Ready(format!("driver for CUDA {major}.{minor}, {ready} device(s), NVRTC {}{left_out}", compilers.join(" and ")))
}

fn device_count() -> usize {
    driver::probe_driver().map_or(0, |driver| driver.devices.len())
}

fn device_readiness(ordinal: usize) -> Option<Readiness> {
    let driver = driver::probe_driver().ok()?;
    driver.devices.get(ordinal).map(|device| find_nvrtc_for_device(device, driver.version.0))
}

fn is_device_ready(ordinal: usize) -> bool {
    device_readiness(ordinal).is_some_and(|r| r.is_ok())
}

fn open_device(device: Device) -> Result<Box<dyn DeviceDriver>> {
    if let Some(Err(missing)) = device_readiness(device.ordinal()) {
        let help = if missing.help.is_empty() { String::new() } else { format!("; {}", missing.help) };
        return Err(Error::Device { op: "device", message: format!("{} is not ready: {}{help}", missing.name, missing.reason) });
    }
    Ok(Box::new(CudaDevice::open(device)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_answers_and_registering_twice_is_fine() {
        match probe_availability() {
            Availability::Ready(detail) => assert!(device_count() > 0 && detail.contains("NVRTC")),
            Availability::Missing { why, .. } => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
        register().unwrap();
        register().unwrap();
        assert!(cuprum_core::registry::all_accelerators().iter().any(|a| std::ptr::eq(*a, &CUDA)));
    }

    /// Returns a substitute for the NVRTC search. It finds NVRTC 13 for compute capability 7.5 and later. For older devices it finds NVRTC
    /// 12 if `has_older`, else nothing.
    fn located(has_older: bool) -> impl Fn(u32) -> std::result::Result<PathBuf, (String, String)> {
        move |arch| match arch {
            75.. => Ok("/cu13/libnvrtc.so.13".into()),
            _ if has_older => Ok("/cu12/libnvrtc.so.12".into()),
            _ => Err(("no NVRTC for it".into(), "pip install nvidia-cuda-nvrtc-cu12".into())),
        }
    }

    #[test]
    fn each_device_is_ready_on_its_own() {
        let v100 = |has_older| readiness_with_nvrtc_locator("cuda:1 (V100)", 70, located(has_older));
        let h200 = || readiness_with_nvrtc_locator("cuda:0 (H200)", 90, located(false));
        let p100 = || readiness_with_nvrtc_locator("cuda:2 (P100)", 60, located(true));

        let Availability::Ready(both) = summarize_readiness((13, 0), &[h200(), v100(true)]) else { panic!("ready") };
        assert_eq!(both, "driver for CUDA 13.0, 2 device(s), NVRTC /cu13/libnvrtc.so.13 and /cu12/libnvrtc.so.12");
        let Availability::Ready(one) = summarize_readiness((13, 0), &[h200(), v100(false), p100()]) else { panic!("ready") };
        assert!(
            one.starts_with("driver for CUDA 13.0, 1 device(s), NVRTC /cu13/libnvrtc.so.13; left out: cuda:1 (V100): no NVRTC"),
            "{one}"
        );
        assert!(one.ends_with("; left out: cuda:2 (P100): compute capability 6.0; 7.0 is the lowest supported"), "{one}");
        let Availability::Missing { why, help } = summarize_readiness((13, 0), &[p100(), v100(false), v100(false)]) else {
            panic!("missing")
        };
        assert!(why.ends_with("7.0 is the lowest supported; cuda:1 (V100), cuda:1 (V100): no NVRTC for it"), "{why}");
        assert_eq!(help, "pip install nvidia-cuda-nvrtc-cu12");
    }
}
