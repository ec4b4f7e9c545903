//! The accelerator `cutensor` for CUDA devices: contractions, sums and products over any axes, and elementwise work and
//! copies of arrays that lie across each other. cuTENSOR 2 is loaded at run time; without it everything is declined.
//!
//! A kernel module (`contract`, `reduce`, `elementwise`, `permute`) puts a call into cuTENSOR's words or says why it cannot;
//! `handle` makes and runs plans. `unsafe` is denied here and allowed only in the modules marked below.

#![deny(unsafe_code)]

mod contract;
mod elementwise;
#[allow(unsafe_code)] // cuTENSOR's C interface
mod handle;
pub mod library;
mod operation;
mod permute;
mod plan_cache;
mod reduce;
#[allow(missing_docs, unsafe_code)] // cuTENSOR's C interface; names are the library's own
pub mod sys;
#[cfg(test)]
mod testing;

use cuprum_core::{Accelerator, Availability, Family, Kernel, Registration, Result};

const NAME: &str = "cutensor";

/// cuTENSOR.
pub static CUTENSOR: Accelerator = Accelerator {
    name: NAME,
    device: "cuda",
    rank: 20,
    summary: "NVIDIA cuTENSOR: contractions, reductions and permutations of any strides",
    probe,
    kernels: KERNELS,
    base: None,
};

cuprum_core::inventory::submit! { Registration(&CUTENSOR) }

/// Makes cuTENSOR known in a static library, where the linker may drop the registration that nobody refers to.
pub fn register() -> Result<()> {
    cuprum_core::register(&CUTENSOR)
}

/// Kernels look at operations and dtypes themselves, so that each has a reason of its own to decline.
const KERNELS: &[Kernel] = &[
    Kernel::new(Family::Contract, contract::run),
    Kernel::new(Family::Reduce, reduce::run),
    Kernel::new(Family::Map, elementwise::run),
    Kernel::new(Family::Copy, permute::run),
];

fn probe() -> Availability {
    match library::shared() {
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
    fn the_probe_answers_in_one_line() {
        match probe() {
            Availability::Ready(detail) => assert!(detail.contains("libcutensor"), "{detail}"),
            Availability::Missing { why, .. } => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
    }

    #[test]
    fn it_comes_after_cub_and_before_the_base() {
        register().unwrap();
        register().unwrap();
        assert!(cuprum_core::registry::all().iter().any(|a| std::ptr::eq(*a, &CUTENSOR)));
        assert_eq!((CUTENSOR.rank, CUTENSOR.base.is_none()), (20, true));
    }
}
