//! Double-precision types in which iterative decompositions are computed.
//!
//! Singular values and eigenvalues of float32 matrices are computed in float64, and those of complex64 matrices in complex128. The
//! iterations of faer are then compiled for two types instead of four, and results of single precision are more exact.

use bytemuck::Pod;
use cuprum_core::{Complex, Element};

use crate::eigen::GeneralEigen;
use crate::matrix_element::Field;

/// Element types of matrices whose iterative decompositions are computed in double precision.
pub(crate) trait Widen: Field {
    /// float64 or complex128.
    type Wide: GeneralEigen;
    /// The complex dtype of eigenvalues of general matrices.
    type Eigenvalue: Element + Pod;

    fn widen(self) -> Self::Wide;
    fn narrow(value: Self::Wide) -> Self;
    fn narrow_real(value: f64) -> Self::Base;
    fn narrow_complex(value: Complex<f64>) -> Self::Eigenvalue;
}

macro_rules! widen {
    ($($base:ty: |$real:ident| $narrow_real:expr, |$value:ident| $widened:expr, |$wide:ident| $narrowed:expr;)*) => {$(
        impl Widen for $base {
            type Wide = f64;
            type Eigenvalue = Complex<$base>;
            fn widen(self) -> f64 {
                self.into()
            }
            fn narrow(value: f64) -> $base {
                Self::narrow_real(value)
            }
            fn narrow_real($real: f64) -> $base {
                $narrow_real
            }
            fn narrow_complex(value: Complex<f64>) -> Complex<$base> {
                Complex::<$base>::narrow(value)
            }
        }

        impl Widen for Complex<$base> {
            type Wide = Complex<f64>;
            type Eigenvalue = Complex<$base>;
            fn widen(self) -> Complex<f64> {
                let $value = self;
                $widened
            }
            fn narrow($wide: Complex<f64>) -> Complex<$base> {
                $narrowed
            }
            fn narrow_real(value: f64) -> $base {
                <$base>::narrow_real(value)
            }
            fn narrow_complex(value: Complex<f64>) -> Complex<$base> {
                Self::narrow(value)
            }
        }
    )*};
}
widen! {
    f32: |v| v as f32, |v| Complex::new(v.re.into(), v.im.into()), |v| Complex::new(v.re as f32, v.im as f32);
    f64: |v| v, |v| v, |v| v;
}
