//! Python-like scalars: weakly typed values that adopt the dtype of the array operand (NumPy 2, NEP 50).

use half::{bf16, f16};
use num_complex::Complex;

use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::rounding::{to_bf16, to_f16};

/// A weakly typed scalar, like Python's `True`, `2`, `2.0` or `2j` in NumPy 2.
///
/// Every Rust number converts into a scalar, so `&a + 2` and `&a + 2.0` keep the dtype of a `float32` array.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// Python `bool`.
    Bool(bool),
    /// Python `int`, within the range of `i128`.
    Int(i128),
    /// Python `float`.
    Float(f64),
    /// Python `complex`.
    Complex(Complex<f64>),
}

impl Scalar {
    /// Returns the dtype that the scalar has without an array operand: bool, int64 (uint64 above `i64::MAX`), float64 or complex128.
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(v) if v > i64::MAX as i128 => DType::U64,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(_) => DType::C128,
        }
    }

    /// Returns the result dtype of an operation between an array of dtype `array` and this scalar, which adopts the array's dtype unless
    /// the scalar is of a higher kind.
    pub fn weak_promote(self, array: DType) -> DType {
        match (self, array.kind()) {
            (Scalar::Bool(_), _) => array,
            (Scalar::Int(_), Kind::Bool) => DType::I64,
            (Scalar::Int(_), _) => array,
            (Scalar::Float(_), Kind::Bool | Kind::Signed | Kind::Unsigned) => DType::F64,
            (Scalar::Float(_), _) => array,
            (Scalar::Complex(_), Kind::Complex) => array,
            (Scalar::Complex(_), Kind::Float) if array != DType::F64 => DType::C64,
            (Scalar::Complex(_), _) => DType::C128,
        }
    }

    /// Returns the scalar if `dtype` can represent it. Only integers are checked, as in NumPy 2.
    ///
    /// # Errors
    /// [`Error::Value`] for an integer out of the range of `dtype`.
    pub fn check_fits_dtype(self, op: &'static str, dtype: DType) -> Result<Scalar> {
        if let (Scalar::Int(v), Some((lo, hi))) = (self, dtype.int_range())
            && (v < lo || v > hi)
        {
            return Err(Error::value(op, format!("integer {v} is out of bounds for {dtype} ({lo} to {hi})")));
        }
        Ok(self)
    }

    /// Returns the scalar as an element of an array of `dtype`, as NumPy converts numbers in lists and in assignments.
    ///
    /// # Errors
    /// [`Error::Value`] if a complex number would become a real number, or if NaN or a number out of range would become an integer.
    pub fn to_checked_element(self, op: &'static str, dtype: DType) -> Result<Scalar> {
        match self {
            Scalar::Complex(_) if !dtype.is_complex() && dtype != DType::Bool => {
                Err(Error::value(op, format!("cannot convert a complex number to {dtype}; use real or imag")))
            }
            Scalar::Float(v) if dtype.is_int() && v.is_nan() => Err(Error::value(op, format!("cannot convert NaN to {dtype}"))),
            Scalar::Float(v) if dtype.is_int() => {
                let truncated = Scalar::Int(v as i128); // saturates, and is out of range for every dtype then
                truncated.check_fits_dtype(op, dtype).map_err(|_| Error::value(op, format!("{v} is out of bounds for {dtype}")))
            }
            s => s.check_fits_dtype(op, dtype),
        }
    }

    /// Returns the scalar as a complex number.
    pub fn as_complex(self) -> Complex<f64> {
        match self {
            Scalar::Complex(c) => c,
            s => Complex::new(s.as_f64(), 0.0),
        }
    }

    /// Returns the real part as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(v) => match i64::try_from(v) {
                Ok(v) => v as f64, // one instruction; the conversion of i128 is a function call
                Err(_) => v as f64,
            },
            Scalar::Float(v) => v,
            Scalar::Complex(c) => c.re,
        }
    }

    /// Returns the value as an integer. Returns `None` if the value is not exactly an integer, and for floats from 1e38 on.
    pub fn as_int(self) -> Option<i128> {
        match self {
            Scalar::Bool(b) => Some(b as i128),
            Scalar::Int(v) => Some(v),
            Scalar::Float(v) if v.fract() == 0.0 && v.abs() < 1e38 => Some(v as i128),
            Scalar::Complex(c) if c.im == 0.0 => Scalar::Float(c.re).as_int(),
            _ => None,
        }
    }

    /// Returns the truth value: whether the scalar is nonzero.
    pub fn as_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(v) => v != 0,
            Scalar::Float(v) => v != 0.0,
            Scalar::Complex(c) => c.re != 0.0 || c.im != 0.0,
        }
    }

    /// Converts the scalar to `dtype`. The first `dtype.itemsize()` bytes of the result are the little-endian bytes of the converted value.
    ///
    /// Conversions follow `astype`: integers wrap, floats to integers saturate.
    pub fn to_bytes(self, dtype: DType) -> [u8; 16] {
        let mut out = [0u8; 16];
        fn copy_to_start(out: &mut [u8; 16], b: &[u8]) {
            out[..b.len()].copy_from_slice(b);
        }
        macro_rules! int {
            ($t:ty) => {
                copy_to_start(
                    &mut out,
                    &match self {
                        Scalar::Int(v) => v as $t,
                        s => s.as_f64() as $t,
                    }
                    .to_le_bytes(),
                )
            };
        }
        match dtype {
            DType::Bool => out[0] = self.as_bool() as u8,
            DType::I8 => int!(i8),
            DType::I16 => int!(i16),
            DType::I32 => int!(i32),
            DType::I64 => int!(i64),
            DType::U8 => int!(u8),
            DType::U16 => int!(u16),
            DType::U32 => int!(u32),
            DType::U64 => int!(u64),
            DType::F16 => copy_to_start(&mut out, &to_f16(self.as_f64()).to_le_bytes()),
            DType::BF16 => copy_to_start(&mut out, &to_bf16(self.as_f64()).to_le_bytes()),
            DType::F32 => copy_to_start(&mut out, &(self.as_f64() as f32).to_le_bytes()),
            DType::F64 => copy_to_start(&mut out, &self.as_f64().to_le_bytes()),
            DType::C64 => {
                let c = self.as_complex();
                copy_to_start(&mut out, &(c.re as f32).to_le_bytes());
                out[4..8].copy_from_slice(&(c.im as f32).to_le_bytes());
            }
            DType::C128 => {
                let c = self.as_complex();
                copy_to_start(&mut out, &c.re.to_le_bytes());
                out[8..].copy_from_slice(&c.im.to_le_bytes());
            }
        }
        out
    }

    /// Reads a scalar of `dtype` from the start of `bytes`. Inverse of [`Scalar::to_bytes`]; missing bytes count as zero.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Scalar {
        let mut b = [0u8; 16];
        let n = bytes.len().min(dtype.itemsize());
        b[..n].copy_from_slice(&bytes[..n]);
        let lo8 = [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]];
        let hi8 = [b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]];
        let lo4 = [b[0], b[1], b[2], b[3]];
        let hi4 = [b[4], b[5], b[6], b[7]];
        let lo2 = [b[0], b[1]];
        match dtype {
            DType::Bool => Scalar::Bool(b[0] != 0),
            DType::I8 => Scalar::Int(b[0] as i8 as i128),
            DType::U8 => Scalar::Int(b[0] as i128),
            DType::I16 => Scalar::Int(i16::from_le_bytes(lo2) as i128),
            DType::U16 => Scalar::Int(u16::from_le_bytes(lo2) as i128),
            DType::I32 => Scalar::Int(i32::from_le_bytes(lo4) as i128),
            DType::U32 => Scalar::Int(u32::from_le_bytes(lo4) as i128),
            DType::I64 => Scalar::Int(i64::from_le_bytes(lo8) as i128),
            DType::U64 => Scalar::Int(u64::from_le_bytes(lo8) as i128),
            DType::F16 => Scalar::Float(f16::from_le_bytes(lo2).to_f64()),
            DType::BF16 => Scalar::Float(bf16::from_le_bytes(lo2).to_f64()),
            DType::F32 => Scalar::Float(f32::from_le_bytes(lo4) as f64),
            DType::F64 => Scalar::Float(f64::from_le_bytes(lo8)),
            DType::C64 => Scalar::Complex(Complex::new(f32::from_le_bytes(lo4) as f64, f32::from_le_bytes(hi4) as f64)),
            DType::C128 => Scalar::Complex(Complex::new(f64::from_le_bytes(lo8), f64::from_le_bytes(hi8))),
        }
    }
}

macro_rules! from_number {
    ($($t:ty => $variant:ident($as:ty)),* $(,)?) => {$(
        impl From<$t> for Scalar {
            fn from(v: $t) -> Scalar { Scalar::$variant(v as $as) }
        }
    )*};
}
from_number! {
    i8 => Int(i128), i16 => Int(i128), i32 => Int(i128), i64 => Int(i128), i128 => Int(i128), isize => Int(i128),
    u8 => Int(i128), u16 => Int(i128), u32 => Int(i128), u64 => Int(i128), usize => Int(i128),
    f32 => Float(f64), f64 => Float(f64), bool => Bool(bool),
}
impl From<f16> for Scalar {
    fn from(v: f16) -> Scalar {
        Scalar::Float(v.to_f64())
    }
}
impl From<bf16> for Scalar {
    fn from(v: bf16) -> Scalar {
        Scalar::Float(v.to_f64())
    }
}
impl From<Complex<f64>> for Scalar {
    fn from(v: Complex<f64>) -> Scalar {
        Scalar::Complex(v)
    }
}
impl From<Complex<f32>> for Scalar {
    fn from(v: Complex<f32>) -> Scalar {
        Scalar::Complex(Complex::new(v.re as f64, v.im as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        for d in DType::ALL {
            let s = Scalar::Int(1);
            let back = Scalar::from_bytes(d, &s.to_bytes(d));
            assert_eq!(back.as_complex(), Complex::new(1.0, 0.0), "{d}");
        }
        assert_eq!(Scalar::from_bytes(DType::I8, &Scalar::Int(300).to_bytes(DType::I8)), Scalar::Int(44));
    }

    #[test]
    fn weak_promotion() {
        assert_eq!(Scalar::Int(2).weak_promote(DType::U8), DType::U8);
        assert_eq!(Scalar::Float(2.0).weak_promote(DType::F32), DType::F32);
        assert_eq!(Scalar::Float(2.0).weak_promote(DType::I8), DType::F64);
        assert_eq!(Scalar::Complex(Complex::new(0.0, 1.0)).weak_promote(DType::F16), DType::C64);
        assert!(Scalar::Int(300).check_fits_dtype("add", DType::U8).is_err());
    }
}
