//! Precision of float32 matrix products: a setting of the process or of a scope.

use std::cell::Cell;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::settings::{self, SettingCheck};

const PRECISION_VARIABLE: &str = "CUPRUM_MATMUL_PRECISION";

/// Precision of float32 and complex64 products in `matmul`, `einsum` and related functions (`CUPRUM_MATMUL_PRECISION`).
///
/// Equivalent of PyTorch's `set_float32_matmul_precision` and JAX's `default_matmul_precision`. Sums are float32 in every mode, and
/// other dtypes are unaffected. The CPU, and CUDA without cuBLAS, always compute in float32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum MatmulPrecision {
    /// `highest`: full float32, as NumPy.
    #[default]
    Float32,
    /// `high`: factors rounded to 11 significant bits (3 decimal digits). Several times faster on a GPU with tensor cores.
    TensorFloat32,
    /// `medium`: factors rounded to 8 significant bits (2 decimal digits).
    BFloat16,
}

use MatmulPrecision::*;

impl MatmulPrecision {
    /// Returns the precision for products of `dtype`: `self` for float32 and complex64, else [`MatmulPrecision::Float32`].
    pub fn of(self, dtype: DType) -> MatmulPrecision {
        if matches!(dtype, DType::F32 | DType::C64) { self } else { Float32 }
    }

    fn precision_from_code(code: u8) -> Option<MatmulPrecision> {
        [Float32, TensorFloat32, BFloat16].into_iter().find(|p| *p as u8 == code)
    }
}

impl FromStr for MatmulPrecision {
    type Err = Error;

    /// Parses a precision, in any case: `float32` or `highest`, `tensorfloat32`, `tf32` or `high`, and `bfloat16` or `medium`. An empty
    /// text means `float32`.
    fn from_str(text: &str) -> Result<MatmulPrecision> {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "float32" | "highest" => Ok(Float32),
            "tensorfloat32" | "tf32" | "high" => Ok(TensorFloat32),
            "bfloat16" | "medium" => Ok(BFloat16),
            other => {
                let message = format!("'{other}' is not known; use float32 (highest), tensorfloat32 (high) or bfloat16 (medium)");
                Err(Error::value("MatmulPrecision::from_str", message))
            }
        }
    }
}

const PRECISION_CODE_UNSET: u8 = u8::MAX;
static PROCESS_PRECISION: AtomicU8 = AtomicU8::new(PRECISION_CODE_UNSET);

thread_local! {
    static SCOPED_PRECISION: Cell<Option<MatmulPrecision>> = const { Cell::new(None) };
}

/// Returns the value of `CUPRUM_MATMUL_PRECISION`, read once.
fn precision_from_environment() -> Result<MatmulPrecision> {
    static PARSED_PRECISION: OnceLock<Result<MatmulPrecision>> = OnceLock::new();
    let parse = || {
        settings::env(PRECISION_VARIABLE).unwrap_or_default().parse().map_err(|e| match e {
            Error::Value { message, .. } => Error::Setting { variable: PRECISION_VARIABLE, message },
            e => e,
        })
    };
    PARSED_PRECISION.get_or_init(parse).clone()
}

inventory::submit! {
    SettingCheck { variable: PRECISION_VARIABLE, needs_devices: false, run: || precision_from_environment().map(|_| ()) }
}

/// Returns the current precision of float32 matrix products on this thread.
///
/// The first of these that is set: the innermost [`with_matmul_precision`], [`set_matmul_precision`], `CUPRUM_MATMUL_PRECISION`. The
/// default is float32.
///
/// # Errors
/// [`Error::Setting`] for an unknown value of the variable.
pub fn matmul_precision() -> Result<MatmulPrecision> {
    match SCOPED_PRECISION.get().or_else(|| MatmulPrecision::precision_from_code(PROCESS_PRECISION.load(Ordering::Relaxed))) {
        Some(precision) => Ok(precision),
        None => precision_from_environment(),
    }
}

/// Sets the precision of float32 matrix products for the process.
///
/// ```
/// use cuprum_core::{MatmulPrecision, matmul_precision, set_matmul_precision, with_matmul_precision};
/// # fn main() -> cuprum_core::Result<()> {
/// set_matmul_precision("high".parse()?);
/// assert_eq!(matmul_precision()?, MatmulPrecision::TensorFloat32);
/// with_matmul_precision(MatmulPrecision::Float32, || assert_eq!(matmul_precision().unwrap(), MatmulPrecision::Float32));
/// # Ok(())
/// # }
/// ```
pub fn set_matmul_precision(precision: MatmulPrecision) {
    PROCESS_PRECISION.store(precision as u8, Ordering::Relaxed);
}

/// Runs `f` with `precision` for float32 matrix products on this thread.
pub fn with_matmul_precision<R>(precision: MatmulPrecision, f: impl FnOnce() -> R) -> R {
    struct RestorePrecisionOnDrop(Option<MatmulPrecision>);
    impl Drop for RestorePrecisionOnDrop {
        fn drop(&mut self) {
            SCOPED_PRECISION.set(self.0);
        }
    }
    let _restore = RestorePrecisionOnDrop(SCOPED_PRECISION.replace(Some(precision)));
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_names_nests_scopes_and_selects_dtypes() {
        for (text, precision) in [("highest", Float32), (" TF32 ", TensorFloat32), ("medium", BFloat16), ("", Float32)] {
            assert_eq!(text.parse::<MatmulPrecision>().unwrap(), precision);
        }
        let error = "float64".parse::<MatmulPrecision>().unwrap_err().to_string();
        assert!(error.starts_with("[MatmulPrecision::from_str] 'float64' is not known"), "{error}");
        let inner = with_matmul_precision(BFloat16, || with_matmul_precision(TensorFloat32, matmul_precision));
        assert_eq!(inner.unwrap(), TensorFloat32);
        assert_eq!([DType::C64, DType::F64, DType::F16].map(|d| BFloat16.of(d)), [BFloat16, Float32, Float32]);
    }
}
