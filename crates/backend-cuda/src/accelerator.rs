//! The accelerator `cuda`: the base of device kind `cuda`, always last in its chain. Needs the driver and NVRTC; cuBLAS
//! is used where it is found.

use cuprum_core::device::DeviceDriver;
use cuprum_core::ops::indexing::{TAKE, TAKE_EACH};
use cuprum_core::ops::scan::{CUMMAX, CUMMIN, CUMPROD, CUMSUM};
use cuprum_core::{Accelerator, Availability, Device, Family, Kernel, Provider, Registration, Result};

use crate::codegen::reductions;
use crate::compile::nvrtc::Compiler;
use crate::device::CudaDevice;
use crate::driver;
use crate::families::{contract, copy, fill, gather, histogram, map, random, reduce, rows, scan, search, segment, select, sort};
use crate::user_kernels::REDUCTION_KERNEL;

/// Base CUDA.
pub static CUDA: Accelerator = Accelerator {
    name: "cuda",
    device: "cuda",
    rank: 100,
    summary: "NVIDIA GPUs: kernels generated and compiled at run time, cuBLAS for matrix products",
    probe,
    kernels: KERNELS,
    base: Some(Provider { count, open }),
};

cuprum_core::inventory::submit! { Registration(&CUDA) }

/// Makes base CUDA known in a static library, where the linker may drop the registration that nobody refers to.
pub fn register() -> Result<()> {
    cuprum_core::register(&CUDA)
}

/// What it computes, a row per family.
const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Map, map::run_cached),
    Kernel::new(Family::Fill, fill::run),
    Kernel::new(Family::Copy, copy::run),
    Kernel::new(Family::Random, random::run),
    // Kernels that take programs read a `take` within them.
    Kernel::new(Family::Gather, gather::run).ops(&[TAKE, TAKE_EACH]),
    Kernel::new(Family::Contract, contract::run),
    Kernel::new(Family::Reduce, reduce::run).ops_and_bodies(reductions::OPS),
    Kernel::new(Family::Reduce, segment::run).ops(segment::OPS),
    Kernel::new(Family::Rows, rows::run),
    Kernel::new(Family::Custom, reduce::run_user_reduction).ops(&[REDUCTION_KERNEL]),
    Kernel::new(Family::Scan, scan::run).ops(&[CUMSUM, CUMPROD, CUMMAX, CUMMIN]),
    Kernel::new(Family::Sort, sort::segments::run).ops(sort::segments::OPS),
    Kernel::new(Family::Sort, sort::run),
    Kernel::new(Family::Select, select::run),
    Kernel::new(Family::Search, search::run),
    Kernel::new(Family::Histogram, histogram::run),
];

fn probe() -> Availability {
    let missing = |text: &str, separator: &str| {
        let (why, help) = text.split_once(separator).unwrap_or((text, ""));
        Availability::Missing { why: why.into(), help: help.into() }
    };
    let driver = match driver::probe() {
        Ok(driver) => driver,
        Err(reason) => return missing(&reason, "; "),
    };
    match Compiler::shared(driver.version.0) {
        Ok(compiler) => {
            let (major, minor) = driver.version;
            let devices = driver.devices.len();
            Availability::Ready(format!("driver for CUDA {major}.{minor}, {devices} device(s), NVRTC {}", compiler.path().display()))
        }
        Err(e) => missing(&e.to_string(), "; try: "),
    }
}

fn count() -> usize {
    driver::probe().map_or(0, |driver| driver.devices.len())
}

fn open(device: Device) -> Result<Box<dyn DeviceDriver>> {
    Ok(Box::new(CudaDevice::open(device)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_answers_and_registering_twice_is_fine() {
        match probe() {
            Availability::Ready(detail) => assert!(count() > 0 && detail.contains("NVRTC")),
            Availability::Missing { why, .. } => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
        register().unwrap();
        register().unwrap();
        assert!(cuprum_core::registry::all().iter().any(|a| std::ptr::eq(*a, &CUDA)));
    }
}
