//! Conversion between dtypes by the rules of `astype`. Integers wrap; floats convert to integers by truncation with saturation, NaN to
//! 0. Complex to real drops the imaginary part; conversion to bool tests for not zero. 16-bit floats convert through float32 (see
//! `half`).

use cuprum_core::{Complex, DType, Element};
use cuprum_cpu_base::simd::Isa;

use crate::half::{is_half, to_odd_f32};
use crate::loops::{Selected, Unary, unary};

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

/// The conversion from `S` to `D` as a unary operation of the loops.
struct Convert<S, D>(std::marker::PhantomData<(S, D)>);

impl<S: Element + Cast<D>, D: Element> Unary for Convert<S, D> {
    type In = S;
    type Out = D;
    #[inline(always)]
    fn call<I: Isa>(a: S) -> D {
        a.cast()
    }
}

/// Converts float64 (or complex128, with element type `S`) to float32 by rounding to odd. Rounding that result to a 16-bit float then
/// gives the nearest 16-bit float, despite two roundings.
struct ToOdd<S>(std::marker::PhantomData<S>);

impl<S: Element + Cast<f64>> Unary for ToOdd<S> {
    type In = S;
    type Out = f32;
    #[inline(always)]
    fn call<I: Isa>(a: S) -> f32 {
        to_odd_f32(a.cast())
    }
}

macro_rules! table {
    ($from:expr, $to:expr; $($s:ty),*) => {
        match $from { $(<$s as Element>::DTYPE => table!(@to $s, $to; bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>),)* _ => None }
    };
    (@to $s:ty, $to:expr; $($d:ty),*) => {
        match $to { $(<$d as Element>::DTYPE => Some(unary::<Convert<$s, $d>>()),)* _ => None }
    };
}

/// Returns the loop that converts elements of `from` to `to`. The loop for float32 stands in for a 16-bit float in either place.
pub fn select(from: DType, to: DType) -> Option<Selected> {
    let wide = |d: DType| if is_half(d) { DType::F32 } else { d };
    match from {
        DType::F64 if is_half(to) => Some(unary::<ToOdd<f64>>()),
        DType::C128 if is_half(to) => Some(unary::<ToOdd<Complex<f64>>>()),
        _ => table!(wide(from), wide(to); bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex<f32>, Complex<f64>),
    }
}
