//! The accelerator `cuda`: the base of device kind `cuda`, always last in its chain. Needs the driver and NVRTC; cuBLAS
//! is used where it is found.

use cuprum_core::device::DeviceDriver;
use cuprum_core::ops::scan::{CUMMAX, CUMMIN, CUMPROD, CUMSUM};
use cuprum_core::{
    Accelerator, Availability, Call, DTypeSet, Device, Family, Kernel, OpFilter, Outcome, Provider, Registration, Result, Work,
};

use crate::device::CudaDevice;
use crate::nvrtc::Compiler;
use crate::{contract, copy, driver, fill, gather, histogram, random, recent, reduce, scan, search, segment, select, sort};

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
    kernel(Family::Map, OpFilter::All, recent::run),
    kernel(Family::Fill, OpFilter::All, fill::run),
    kernel(Family::Copy, OpFilter::All, copy::run),
    kernel(Family::Random, OpFilter::All, random::run),
    kernel(Family::Gather, OpFilter::All, gather::run),
    kernel(Family::Contract, OpFilter::All, contract::run),
    kernel(Family::Reduce, OpFilter::Only(reduce::OPS), |call| match call.work {
        Work::SegmentSum { .. } => segment::run(call),
        _ => reduce::run(call),
    }),
    kernel(Family::Scan, OpFilter::Only(&[CUMSUM, CUMPROD, CUMMAX, CUMMIN]), scan::run),
    kernel(Family::Sort, OpFilter::All, sort::run),
    kernel(Family::Select, OpFilter::All, select::run),
    kernel(Family::Search, OpFilter::All, search::run),
    kernel(Family::Histogram, OpFilter::All, histogram::run),
];

const fn kernel(family: Family, ops: OpFilter, run: fn(&Call) -> Result<Outcome>) -> Kernel {
    Kernel { family, ops, dtypes: DTypeSet::ALL, run }
}

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
