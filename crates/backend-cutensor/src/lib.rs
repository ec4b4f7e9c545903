//! The accelerator `cutensor` for CUDA devices, built on NVIDIA cuTENSOR 2, which is loaded at run time.
//!
//! The accelerator serves contractions, sums and products over any axes, and elementwise expressions and copies with transposed operands.
//!
//! The family modules (`contract`, `copy`, `map`, `reduce`) translate a call to a `CutensorOperation` or decline it. `handle` creates plans
//! and runs them. `unsafe` code is denied by default. Modules that need it have an `allow` attribute with the reason.

#![deny(unsafe_code)]

mod contract;
mod copy;
#[allow(unsafe_code)] // cuTENSOR's C interface
mod handle;
pub mod library;
mod map;
mod operation;
mod plan_cache;
mod reduce;
mod scaling_factor;
#[allow(missing_docs, unsafe_code)] // cuTENSOR's C interface, with the library's names
pub mod sys;
#[cfg(test)]
mod testing;

use cuprum_core::{Accelerator, Availability, Family, Kernel, Registration, Result};

/// The accelerator `cutensor`.
pub static CUTENSOR: Accelerator = Accelerator {
    name: handle::ACCELERATOR_NAME,
    device: "cuda",
    rank: 20,
    summary: "NVIDIA cuTENSOR: contractions, reductions and permutations of any strides",
    probe: probe_availability,
    kernels: KERNELS,
    base: None,
};

cuprum_core::inventory::submit! { Registration(&CUTENSOR) }

/// Registers the accelerator. Needed in static libraries, where the linker may drop the automatic registration.
///
/// # Errors
/// Returns an error if another accelerator has the same name.
pub fn register() -> Result<()> {
    cuprum_core::register(&CUTENSOR)
}

/// The kernels of the accelerator. No entry is limited to some operations or dtypes. Each function checks its call, and returns the reason
/// if it declines the call.
const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Contract, contract::run_call),
    Kernel::new(Family::Reduce, reduce::run_call),
    Kernel::new(Family::Map, map::run_call),
    Kernel::new(Family::Copy, copy::run_call),
];

fn probe_availability() -> Availability {
    match library::get_or_load() {
        Ok(library) => {
            let (major, minor, patch) = library.version;
            Availability::Ready(format!("{major}.{minor}.{patch}, {}", library.path.display()))
        }
        Err(missing) => Availability::Missing { why: missing.reason, help: missing.help },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_returns_one_line() {
        match probe_availability() {
            Availability::Ready(detail) => assert!(detail.contains("libcutensor"), "{detail}"),
            Availability::Missing { why, .. } => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
    }

    #[test]
    fn cutensor_is_registered_after_cub() {
        register().unwrap();
        register().unwrap();
        assert!(cuprum_core::registry::all_accelerators().iter().any(|a| std::ptr::eq(*a, &CUTENSOR)));
        assert_eq!((CUTENSOR.rank, CUTENSOR.base.is_none()), (20, true));
    }
}
