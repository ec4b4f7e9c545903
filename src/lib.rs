//! n-dimensional arrays with NumPy's semantics, on the best accelerator that the machine has.
//!
//! One binary, built without any CUDA toolkit, runs everywhere; where it finds a GPU it uses it. Each operation goes to
//! the first accelerator of the chain that takes it: those named in `CUPRUM_ACCELERATORS` (`cub`, `cutensor`, or one that
//! another crate registers), then the device's own kernels.
//!
//! ```
//! use cuprum::{NdArray, explain};
//! # fn main() -> cuprum::Result<()> {
//! let a = NdArray::arange(0, 12, 1)?.reshape([3, 4])?.astype(cuprum::DType::F32)?;
//! let norms = (&a * &a).sum(-1)?.sqrt()?;          // nothing has run but the sum, in one pass over `a`
//! assert_eq!(norms.shape(), &[3]);
//! let (_, calls) = explain(|| norms.eval().cloned()); // which accelerator does it, and who declined
//! assert_eq!(calls.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! - [`NdArray`] is the handle: cheap to clone, an immutable value, shared between threads.
//! - Elementwise operations are deferred and fused into one pass ([`with_fusion`] switches that off).
//! - [`Device`] and [`with_device`] choose where arrays are made; [`NdArray::to_device`] copies.
//! - [`with_accelerators`] and [`set_accelerators`] change the order; [`explain`] shows what was done.
//! - Every function returns a [`Result`]; operators (`&a + &b`) panic where the named form (`add(&a, &b)?`) returns an error.
//!
//! Authors of accelerators need the crate `cuprum-core` alone: see [`Accelerator`].
#![deny(unsafe_code)]

pub use cuprum_core as core;
pub use cuprum_core::*;

#[cfg(feature = "cpu")]
pub use cuprum_macros::kernel;

#[cfg(feature = "eval")]
pub use cuprum_eval as expressions;
#[cfg(feature = "eval")]
pub use cuprum_eval::eval;

// Naming a backend links it in, and with it its registration.
#[cfg(feature = "cpu")]
pub use cuprum_backend_cpu as backend_cpu;
#[cfg(feature = "cub")]
pub use cuprum_backend_cub as backend_cub;
#[cfg(feature = "cuda")]
pub use cuprum_backend_cuda as backend_cuda;
#[cfg(feature = "cutensor")]
pub use cuprum_backend_cutensor as backend_cutensor;

/// CUDA kernels of your own: source, machine code, launches with checked arguments. See `docs/own-kernels.md` and
/// [`RawKernel`](cuda::RawKernel).
#[cfg(feature = "cuda")]
pub mod cuda {
    pub use cuprum_backend_cuda::args;
    pub use cuprum_backend_cuda::raw::{
        Arg, ElementwiseKernel, FunctionAttributes, IntoExtents, Launch, RawGlobal, RawKernel, RawModule, RawSource, Reduction,
        ReductionKernel,
    };
}

/// The examples of `docs/streams.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/streams.md")]
pub struct StreamsPage;

/// Registers every backend of this build. Needed only where the linker drops registrations: static libraries linked by
/// another language's linker, and WebAssembly. Twice is fine.
pub fn register_all() -> Result<()> {
    #[cfg(feature = "cpu")]
    cuprum_backend_cpu::register()?;
    #[cfg(feature = "cuda")]
    cuprum_backend_cuda::register()?;
    #[cfg(feature = "cub")]
    cuprum_backend_cub::register()?;
    #[cfg(feature = "cutensor")]
    cuprum_backend_cutensor::register()?;
    Ok(())
}
