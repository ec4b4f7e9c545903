//! SciPy's special functions (`scipy.special`), elementwise on arrays and numbers.
//!
//! Each function is written once, by `cuprum::kernel!`, and runs on the CPU and on CUDA devices. Results are deferred and fuse with other
//! elementwise operations and reductions. `docs/special.md` lists the functions with their accuracy.
//!
//! # Dtypes
//!
//! Arguments are real. The functions compute in float64 and return float32 or float64, by one of SciPy's two rules:
//!
//! - float32 if all arguments are float32 arrays, otherwise float64;
//! - float32 if all arguments cast safely to it (bool, integers of 8 and 16 bits, float16, float32, and numbers combined with such arrays),
//!   otherwise float64.
//!
//! # Examples
//! ```
//! # use cuprum_special as special;
//! # use cuprum_core::NdArray;
//! # fn main() -> cuprum_core::Result<()> {
//! let x = NdArray::from_slice(&[0.0, 1.0])?;
//! let probability = special::erf(&x)?; // deferred
//! assert_eq!(probability.round(6)?.to_vec::<f64>()?, [0.0, 0.842701]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

// The code that `kernel!` and `#[numpy(..)]` generate refers to the facade crate, `cuprum`.
extern crate self as cuprum;
#[doc(hidden)]
pub use cuprum_backend_cpu as backend_cpu;
#[doc(hidden)]
pub use cuprum_core as core;
#[doc(hidden)]
pub use cuprum_core::{Args, AxisOptions, DType, NdArray, Op, Operand, Result, Scalar, Value, function, inventory};

#[macro_use]
mod helpers;

mod bessel;
mod bessel_of_real_order;
mod elliptic;
mod entropy;
mod error_function;
mod exponential_sums;
mod gamma;
mod incomplete_beta;
mod incomplete_gamma;
mod integrals;
mod inverse_error_function;
mod lambert;
mod logistic;
mod modified_bessel;
mod zeta;

pub use bessel::{j0, j1, y0, y1};
pub use bessel_of_real_order::{iv, jv};
pub use elliptic::{ellipe, ellipk};
pub use entropy::{entr, huber, kl_div, rel_entr, xlog1py, xlogy};
pub use error_function::{erf, erfc, erfcx, log_ndtr, ndtr};
pub use exponential_sums::{cbrt, log_softmax, logsumexp, logsumexp_with_sign, sinc, softmax};
pub use gamma::{beta, betaln, gamma, gammaln};
pub use incomplete_beta::betainc;
pub use incomplete_gamma::{gammainc, gammaincc, gammainccinv, gammaincinv};
pub use integrals::{exp1, expi, sici};
pub use inverse_error_function::{erfcinv, erfinv, ndtri};
pub use lambert::lambertw;
pub use logistic::{expit, exprel, log_expit, logit};
pub use modified_bessel::{i0, i0e, i1, i1e, k0, k0e, k1, k1e};
pub use zeta::{digamma, polygamma, zeta};
