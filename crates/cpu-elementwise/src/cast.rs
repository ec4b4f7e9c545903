//! Conversion between dtypes by the rules of `astype`. Integers wrap; floats convert to integers by truncation with saturation, NaN to
//! 0. Complex to real drops the imaginary part; conversion to bool tests for not zero. 16-bit floats convert through float32 (see
//! `half`).

use cuprum_core::rounding::round_to_odd_f32;
use cuprum_core::{Complex, DType, Element};
use cuprum_cpu_base::simd::Isa;
use cuprum_cpu_base::typed_views::unsigned_dtype;

use crate::elementwise_loops::{SelectedKernel, UnaryFunction, unary_kernel};
use crate::half::is_half;

/// Scalar conversion to the type `D` by the rules of `astype`.
trait Cast<D> {
    fn cast(self) -> D;
}

macro_rules! reals {
    ($from:ty => $($to:ty),*) => {$(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to { self as $to }
        }
    )*};
}
macro_rules! number {
    ($($t:ty),*) => {$(
        reals!($t => i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
        impl Cast<bool> for $t {
            #[inline(always)]
            fn cast(self) -> bool { self != 0 as $t }
        }
        impl Cast<$t> for bool {
            #[inline(always)]
            fn cast(self) -> $t { self as u8 as $t }
        }
        impl<D> Cast<Complex<D>> for $t where $t: Cast<D>, D: num_traits::Zero {
            #[inline(always)]
            fn cast(self) -> Complex<D> { Complex::new(self.cast(), D::zero()) }
        }
        impl<S> Cast<$t> for Complex<S> where S: Cast<$t> {
            #[inline(always)]
            fn cast(self) -> $t { self.re.cast() }
        }
    )*};
}
number!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Cast<bool> for bool {
    #[inline(always)]
    fn cast(self) -> bool {
        self
    }
}
impl<D: num_traits::Zero> Cast<Complex<D>> for bool
where
    bool: Cast<D>,
{
    #[inline(always)]
    fn cast(self) -> Complex<D> {
        Complex::new(self.cast(), D::zero())
    }
}
impl<S: Cast<bool>> Cast<bool> for Complex<S> {
    #[inline(always)]
    fn cast(self) -> bool {
        self.re.cast() | self.im.cast()
    }
}
impl<S: Cast<D>, D> Cast<Complex<D>> for Complex<S> {
    #[inline(always)]
    fn cast(self) -> Complex<D> {
        Complex::new(self.re.cast(), self.im.cast())
    }
}

/// The conversion from `S` to `D` as a unary operation, from which a loop is compiled.
struct CastOperation<S, D>(std::marker::PhantomData<(S, D)>);

impl<S: Element + Cast<D>, D: Element> UnaryFunction for CastOperation<S, D> {
    type In = S;
    type Out = D;
    #[inline(always)]
    fn apply<I: Isa>(a: S) -> D {
        a.cast()
    }
}

/// Converts float64, the real part of complex128, or integers of 32 and 64 bits (element type `S`) to float32 by rounding to odd. Rounding
/// that result to a 16-bit float then gives the nearest 16-bit float, despite two roundings.
struct RoundToOddF32<S>(std::marker::PhantomData<S>);

impl<S: Element + RoundToOddF64> UnaryFunction for RoundToOddF32<S> {
    type In = S;
    type Out = f32;
    #[inline(always)]
    fn apply<I: Isa>(a: S) -> f32 {
        round_to_odd_f32(a.round_to_odd_f64())
    }
}

/// Conversion to float64 as the first part of a conversion to float32 by rounding to odd. Rounding the float64 to odd gives the same
/// float32 as rounding `self` to odd.
trait RoundToOddF64: Cast<f64> {
    #[inline(always)]
    fn round_to_odd_f64(self) -> f64
    where
        Self: Sized,
    {
        self.cast()
    }
}
impl RoundToOddF64 for f64 {}
impl RoundToOddF64 for Complex<f64> {}
impl RoundToOddF64 for i32 {}
impl RoundToOddF64 for u32 {}

macro_rules! wide_ints {
    ($($t:ty),*) => {$(
        impl RoundToOddF64 for $t {
            /// Rounds an integer that does not fit the 53 bits of a float64 to a multiple of 2^11. An integer between two multiples becomes
            /// the odd one of these multiples.
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn round_to_odd_f64(self) -> f64 {
                let is_wide = self >= 1 << 53 || self < 0 && self <= (1 as $t << 53).wrapping_neg();
                let rounded = self & !0x7ff | ((self & 0x7ff != 0) as $t) << 11;
                (if is_wide { rounded } else { self }) as f64
            }
        }
    )*};
}
wide_ints!(i64, u64);

macro_rules! table {
    ($from:expr, $to:expr; $($s:ty => ($($d:ty),*);)*) => {
        match $from {
            $(<$s as Element>::DTYPE => match $to { $(<$d as Element>::DTYPE => Some(unary_kernel::<CastOperation<$s, $d>>()),)* _ => None },)*
            _ => None
        }
    };
}

/// Returns the dtypes of the loop that converts `from` to `to`, with signed integers replaced by unsigned ones where the bits of the result
/// are the same.
fn shared_loop_dtypes(from: DType, to: DType) -> (DType, DType) {
    let is_exact = |d: DType| d.is_int() || d == DType::Bool;
    if !is_exact(from) || !is_exact(to) {
        return (from, to);
    }
    (if to.itemsize() <= from.itemsize() { unsigned_dtype(from) } else { from }, unsigned_dtype(to))
}

/// Returns the loop that converts elements of `from` to `to`, or `None` if there is none. 16-bit floats, as argument or result, use the
/// loop for float32. Conversions from float64 and complex128 to a 16-bit float, and from wide integers to bfloat16, round to float32 by
/// rounding to odd (`RoundToOddF32`). Conversions from integers to float16 need no rounding to odd, because float32 holds all integers that
/// float16 does not round to infinity.
pub fn select_cast_kernel(from: DType, to: DType) -> Option<SelectedKernel> {
    let wide = |d: DType| if is_half(d) { DType::F32 } else { d };
    match from {
        DType::F64 if is_half(to) => Some(unary_kernel::<RoundToOddF32<f64>>()),
        DType::C128 if is_half(to) => Some(unary_kernel::<RoundToOddF32<Complex<f64>>>()),
        DType::I32 if to == DType::BF16 => Some(unary_kernel::<RoundToOddF32<i32>>()),
        DType::I64 if to == DType::BF16 => Some(unary_kernel::<RoundToOddF32<i64>>()),
        DType::U32 if to == DType::BF16 => Some(unary_kernel::<RoundToOddF32<u32>>()),
        DType::U64 if to == DType::BF16 => Some(unary_kernel::<RoundToOddF32<u64>>()),
        _ => {
            let (from, to) = (wide(from), wide(to));
            let (source, target) = shared_loop_dtypes(from, to);
            let selected = table!(source, target;
                bool => (bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                i8 => (u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                i16 => (u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                i32 => (u64, f32, f64, Complex<f32>, Complex<f64>);
                i64 => (f32, f64, Complex<f32>, Complex<f64>);
                u8 => (bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                u16 => (bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                u32 => (bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                u64 => (bool, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                f32 => (bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                f64 => (bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                Complex<f32> => (bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
                Complex<f64> => (bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>);
            );
            selected.map(|selected| SelectedKernel { args: [from; 3], result: to, ..selected })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::half::round_float32_to_half;
    use cuprum_core::{Scalar, bf16, with_dtype};
    use cuprum_cpu_base::typed_views::{Elements, ElementsMut, convert_scalar};

    const EXACT: [DType; 9] = [DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

    #[test]
    fn shared_loops_convert_as_scalars_do() {
        for (from, to) in EXACT.into_iter().flat_map(|from| EXACT.map(|to| (from, to))) {
            let selected = select_cast_kernel(from, to).unwrap();
            assert_eq!((selected.args[0], selected.result), (from, to));
            with_dtype!(from, S => with_dtype!(to, D => {
                let scalars = [0, 1, -1, 127, -128, 40_000, -40_000, i64::MAX as i128, i64::MIN as i128].map(Scalar::Int);
                let values = scalars.map(convert_scalar::<S>);
                let mut converted = [D::default(); 9];
                (selected.kernel)(&[Elements::of(&values)], ElementsMut::of(&mut converted));
                let expected = scalars.map(|scalar| convert_scalar::<D>(back(convert_scalar::<S>(scalar))));
                assert_eq!(converted, expected, "{from} to {to}");
            }));
        }
    }

    #[test]
    fn integers_round_to_bfloat16_once() {
        for (from, bits) in [(DType::I32, 31), (DType::U32, 32), (DType::I64, 63), (DType::U64, 64)] {
            let selected = select_cast_kernel(from, DType::BF16).unwrap();
            let (power, half) = (1i128 << (bits - 1), 1i128 << (bits - 9));
            let numbers = [power, power + half - 1, power + half, power + half + 1, 257, -(power + half + 1), -257];
            let expected = [power, power, power, power + 2 * half, 256, -(power + 2 * half), -256];
            let count = if from == DType::I32 || from == DType::I64 { 7 } else { 5 };
            with_dtype!(from, S => {
                let (values, mut floats, mut rounded) = (numbers.map(|n| convert_scalar::<S>(n.into())), [0f32; 7], [bf16::ZERO; 7]);
                (selected.kernel)(&[Elements::of(&values)], ElementsMut::of(&mut floats));
                round_float32_to_half(&floats, ElementsMut::of(&mut rounded));
                assert_eq!(rounded[..count].iter().map(|x| x.to_f64()).collect::<Vec<_>>(), expected[..count].iter().map(|&n| n as f64).collect::<Vec<_>>(), "{from}");
            });
        }
    }

    /// Returns an element of an integer type or bool as a scalar.
    fn back<T: Element + std::fmt::Display>(value: T) -> Scalar {
        let text = value.to_string();
        Scalar::Int(text.parse().unwrap_or((text == "true") as i128))
    }
}
