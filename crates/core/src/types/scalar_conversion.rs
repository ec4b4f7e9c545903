//! Scalars and Rust's numbers: conversions out of a [`Scalar`], and comparisons by value.

use std::cmp::Ordering;

use half::{bf16, f16};
use num_complex::Complex;

use crate::error::{Error, Result};
use crate::rounding::{to_bf16, to_f16};
use crate::scalar::Scalar;

/// Calls a macro with every number type that converts from and to a [`Scalar`].
macro_rules! for_each_number {
    ($apply:ident) => {
        $apply! {
            bool, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, usize, f32, f64, half::f16, half::bf16,
            num_complex::Complex<f32>, num_complex::Complex<f64>
        }
    };
}
pub(crate) use for_each_number;

/// A number type that a [`Scalar`] converts to: `bool`, Rust's integers and floats, `f16`, `bf16` and complex numbers.
///
/// A scalar converts to a type of the same or a higher kind, in the order bool, integers, floats, complex numbers. Floats are rounded to
/// the nearest value of the type. The value has to be in the range of the type.
///
/// # Examples
/// ```
/// use cuprum_core::Scalar;
/// assert_eq!(f32::try_from(Scalar::Float(0.5))?, 0.5);
/// assert_eq!(u8::try_from(Scalar::Int(255))?, 255);
/// assert!(u8::try_from(Scalar::Int(256)).is_err(), "out of range");
/// assert!(i64::try_from(Scalar::Float(2.0)).is_err(), "a float is not an integer");
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(message = "a scalar does not convert to `{Self}`", note = "scalars convert to bool and to number types")]
pub trait FromScalar: Sized {
    /// Converts `scalar`. `op` is the function that errors name.
    ///
    /// # Errors
    /// [`Error::Value`] for a value of a higher kind than the type, or out of the range of the type.
    fn from_scalar(op: &'static str, scalar: Scalar) -> Result<Self>;
}

#[cold]
fn out_of_range_error(op: &'static str, value: Scalar, to: &str) -> Error {
    Error::value(op, format!("{value} is out of range for {to}"))
}

/// Returns the error for a value of a kind, such as complex, that the type `to` cannot hold.
#[cold]
fn wrong_kind_error(op: &'static str, value: Scalar, to: &str) -> Error {
    let message = match value {
        Scalar::Complex(_) => format!("{value} is complex, which {to} cannot hold; take real() or abs() first"),
        Scalar::Float(_) if to != "bool" => format!("{value} is a float, which {to} cannot hold; round and use astype, or read a float"),
        _ => format!("{value} is a number, not a bool; compare it with 0"),
    };
    Error::value(op, message)
}

macro_rules! integers {
    ($($t:ident)*) => {$(
        impl FromScalar for $t {
            fn from_scalar(op: &'static str, scalar: Scalar) -> Result<$t> {
                match scalar {
                    Scalar::Bool(b) => Ok(b.into()),
                    Scalar::Int(v) => <$t>::try_from(v).map_err(|_| out_of_range_error(op, scalar, stringify!($t))),
                    Scalar::Float(_) | Scalar::Complex(_) => Err(wrong_kind_error(op, scalar, stringify!($t))),
                }
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 usize);

macro_rules! floats {
    ($($t:ident: |$int:ident| $from_int:expr, |$float:ident| $from_float:expr;)*) => {$(
        impl FromScalar for $t {
            fn from_scalar(op: &'static str, scalar: Scalar) -> Result<$t> {
                let value: $t = match scalar {
                    Scalar::Bool(b) => { let $float = f64::from(u8::from(b)); $from_float }
                    Scalar::Int($int) => $from_int,
                    Scalar::Float($float) => $from_float,
                    Scalar::Complex(_) => return Err(wrong_kind_error(op, scalar, stringify!($t))),
                };
                // An infinite value converts to infinity. A finite value that would round to infinity is out of range.
                if value.is_infinite() && !matches!(scalar, Scalar::Float(x) if x.is_infinite()) {
                    return Err(out_of_range_error(op, scalar, stringify!($t)));
                }
                Ok(value)
            }
        }
    )*};
}
floats! {
    f32: |v| v as f32, |x| x as f32;
    f64: |v| v as f64, |x| x;
    f16: |v| to_f16(v as f64), |x| to_f16(x);
    bf16: |v| to_bf16(v as f64), |x| to_bf16(x);
}

macro_rules! complex {
    ($($t:ident)*) => {$(
        impl FromScalar for Complex<$t> {
            fn from_scalar(op: &'static str, scalar: Scalar) -> Result<Complex<$t>> {
                match scalar {
                    Scalar::Complex(c) => {
                        let part = |x| <$t>::from_scalar(op, Scalar::Float(x));
                        Ok(Complex::new(part(c.re)?, part(c.im)?))
                    }
                    real => Ok(Complex::new(<$t>::from_scalar(op, real)?, 0.0)),
                }
            }
        }
    )*};
}
complex!(f32 f64);

impl FromScalar for bool {
    fn from_scalar(op: &'static str, scalar: Scalar) -> Result<bool> {
        match scalar {
            Scalar::Bool(b) => Ok(b),
            other => Err(wrong_kind_error(op, other, "bool")),
        }
    }
}
impl FromScalar for Scalar {
    fn from_scalar(_: &'static str, scalar: Scalar) -> Result<Scalar> {
        Ok(scalar)
    }
}

/// Compares an int with a float without rounding. Returns `None` for NaN.
fn compare_int_float(int: i128, float: f64) -> Option<Ordering> {
    const I128_UPPER_BOUND: f64 = 170141183460469231731687303715884105728.0; // 2**127, greater than every int
    if float.is_nan() {
        return None;
    }
    if float >= I128_UPPER_BOUND {
        return Some(Ordering::Less);
    }
    if float < -I128_UPPER_BOUND {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let by_fraction = if float > whole {
        Ordering::Less
    } else if float < whole {
        Ordering::Greater
    } else {
        Ordering::Equal
    };
    Some(int.cmp(&(whole as i128)).then(by_fraction))
}

/// Compares by value, without rounding between ints and floats: `True == 1 == 1.0`, as in Python.
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

/// Orders by value, without rounding between ints and floats. Complex numbers are ordered by real part, then imaginary part, as elements of
/// arrays are. NaN has no order.
impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Scalar) -> Option<Ordering> {
        let int = |s: Scalar| match s {
            Scalar::Bool(b) => Some(i128::from(b)),
            Scalar::Int(v) => Some(v),
            Scalar::Float(_) | Scalar::Complex(_) => None,
        };
        match (*self, *other) {
            (Scalar::Float(x), Scalar::Float(y)) => x.partial_cmp(&y),
            (Scalar::Complex(x), y) => {
                let real = Scalar::Float(x.re).partial_cmp(&y.drop_imaginary_part())?;
                Some(real.then(x.im.partial_cmp(&y.as_complex().im)?))
            }
            (x, y @ Scalar::Complex(_)) => y.partial_cmp(&x).map(Ordering::reverse),
            (Scalar::Float(x), y) => compare_int_float(int(y)?, x).map(Ordering::reverse),
            (x, Scalar::Float(y)) => compare_int_float(int(x)?, y),
            (x, y) => Some(int(x)?.cmp(&int(y)?)),
        }
    }
}

impl Scalar {
    /// Returns the real part of a complex number, and any other scalar unchanged.
    fn drop_imaginary_part(self) -> Scalar {
        if let Scalar::Complex(c) = self { Scalar::Float(c.re) } else { self }
    }
}

impl From<&Scalar> for Scalar {
    #[inline]
    fn from(scalar: &Scalar) -> Scalar {
        *scalar
    }
}

// `number < scalar` is not implemented: a second `PartialOrd` for `usize` would break type inference in `n < list.iter().product()`, in
// every crate that links this one.
macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl TryFrom<Scalar> for $t {
            type Error = Error;
            fn try_from(scalar: Scalar) -> Result<$t> {
                <$t>::from_scalar("scalar", scalar)
            }
        }
        impl From<&$t> for Scalar {
            #[inline]
            fn from(number: &$t) -> Scalar {
                Scalar::from(*number)
            }
        }
        impl PartialEq<$t> for Scalar {
            fn eq(&self, other: &$t) -> bool {
                *self == Scalar::from(*other)
            }
        }
        impl PartialEq<Scalar> for $t {
            fn eq(&self, other: &Scalar) -> bool {
                Scalar::from(*self) == *other
            }
        }
        impl PartialOrd<$t> for Scalar {
            fn partial_cmp(&self, other: &$t) -> Option<Ordering> {
                self.partial_cmp(&Scalar::from(*other))
            }
        }
    )*};
}
for_each_number!(numbers);

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_TO_53: i64 = 1 << 53;

    #[test]
    fn comparisons_are_by_value_and_exact() {
        let int = |v: i64| Scalar::from(v);
        assert_eq!(int(1), Scalar::Float(1.0));
        assert_eq!(Scalar::Bool(true), int(1));
        assert_eq!(Scalar::Complex(Complex::new(2.0, 0.0)), int(2));
        assert!(int(TWO_TO_53 + 1) > TWO_TO_53 as f64 && int(TWO_TO_53 + 1) != TWO_TO_53 as f64);
        assert!(Scalar::Int(i128::MAX) < 2f64.powi(127) && Scalar::Int(i128::MIN) == -(2f64.powi(127)));
        assert!(Scalar::Int(i128::MIN) > f64::NEG_INFINITY && Scalar::Int(i128::MIN) > -(2f64.powi(128)));
        assert!(Scalar::Float(-1.5) < -1 && Scalar::Float(1.5) > 1u8);
        let nan = Scalar::Float(f64::NAN);
        assert!(nan != nan && (nan < 1) as u8 + (nan >= 1) as u8 == 0);
        assert!(Scalar::Complex(Complex::new(1.0, 2.0)) < Complex::new(1.0f32, 3.0));
        assert!(Scalar::Complex(Complex::new(1.0, 2.0)) > 1 && Scalar::Complex(Complex::new(1.0, 2.0)) < 2);
        assert!(Scalar::Float(0.5) == f16::from_f32(0.5) && bf16::from_f32(0.5) == Scalar::Float(0.5));
    }

    #[test]
    fn values_that_do_not_fit_are_errors() {
        assert_eq!(f32::try_from(Scalar::Float(0.1)).unwrap(), 0.1f32);
        assert_eq!(f32::try_from(Scalar::Float(f64::INFINITY)).unwrap(), f32::INFINITY);
        assert_eq!(f16::try_from(Scalar::Int(2)).unwrap(), f16::from_f32(2.0));
        assert_eq!(Complex::<f32>::try_from(Scalar::Bool(true)).unwrap(), Complex::new(1.0, 0.0));
        assert!(f64::try_from(Scalar::Float(f64::NAN)).unwrap().is_nan());
        for error in [
            f32::try_from(Scalar::Float(1e39)).err(),
            f16::try_from(Scalar::Int(100_000)).err(),
            u8::try_from(Scalar::Int(-1)).err(),
            usize::try_from(Scalar::Float(1.0)).err(),
            f64::try_from(Scalar::Complex(Complex::new(1.0, 0.0))).err(),
            bool::try_from(Scalar::Int(1)).err(),
            Complex::<f32>::try_from(Scalar::Complex(Complex::new(0.0, 1e39))).err(),
        ] {
            assert!(matches!(error, Some(Error::Value { .. })), "{error:?}");
        }
        assert_eq!(u8::try_from(Scalar::Int(256)).unwrap_err().to_string(), "[scalar] 256 is out of range for u8");
    }
}
