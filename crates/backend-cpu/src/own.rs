//! Bodies of operations from other crates (`cuprum::kernel!`): what their generated code stands on. Not for use by hand.
//!
//! A body is straight-line code over one point, or over many points a step at a time where it loops; either way LLVM vectorises it, at each
//! level of `simd`. Integers wrap, division by zero gives zero, floats become integers as Rust's `as` does it: on the GPU the
//! same is written in the prelude of generated code.

use std::convert::identity;
use std::marker::PhantomData;

use cuprum_core::{DType, Element};

pub use crate::raw::{Elements, ElementsMut};
pub use crate::simd::Isa;
use crate::simd::{Base, Fill, fill};
use crate::vmath;

/// What a row's `native` is: the loop for a generic type.
pub struct Native(pub fn(DType) -> Option<Loop>);

/// Fills a tile: arguments as the body's source takes them, those that are seen whole from their first element on.
pub type Loop = fn(&[Elements], ElementsMut);

/// What the `native` of a reduction is: its loops for a generic type.
pub struct NativeReduction(pub fn(DType) -> Option<Reduction>);

/// The loops of a reduction for one type.
#[derive(Clone, Copy)]
pub struct Reduction(pub(crate) crate::reduce::Run);

/// A reduction of elements of one type by a function that is associative and commutative.
pub trait Combine: 'static {
    /// Elements, partial results and result.
    type Value: Element;
    /// Two partial results as one.
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;
}

/// The loops of a reduction.
pub fn reduction<C: Combine>() -> Reduction {
    Reduction(crate::reduce::run_reducer::<crate::reduce::Combined<C>>)
}

/// A body with its arguments.
pub trait Tile {
    /// Type of the result.
    type Out: Element;
    /// Computes all points of `out`. Says whether there was an argument that a function of [`Math`] computes by another way.
    fn fill<I: Isa>(&self, out: &mut [Self::Out]) -> bool;
}

/// Fills a run, again and slowly if there are rare arguments in it.
pub fn run<T: Tile>(tile: T, out: ElementsMut) {
    struct Once<'t, T>(&'t T);
    impl<T: Tile> Fill for Once<'_, T> {
        type Item = T::Out;
        #[inline(always)]
        fn run<I: Isa>(self, out: &mut [T::Out]) {
            if self.0.fill::<I>(out) {
                exactly::<I, T>(self.0, out);
            }
        }
    }
    fill(Once(&tile), out.typed());
}

#[cold]
#[inline(never)]
fn exactly<I: Isa, T: Tile>(tile: &T, out: &mut [T::Out]) {
    tile.fill::<Exact<I>>(out);
}

/// A level at which [`Math`] leaves nothing out. Products and sums are those of the level, so that a value does not depend on its neighbours.
#[derive(Clone, Copy)]
pub struct Exact<I>(PhantomData<I>);

impl<I: Isa> Isa for Exact<I> {
    const KEPT: usize = I::KEPT;
    const FMA: bool = I::FMA;
    const EXACT: bool = true;
}

/// What every processor has, and nothing left out.
pub type Plain = Exact<Base>;

/// The tile's elements of one argument.
#[inline(always)]
pub fn each<'a, T: Element>(args: &[Elements<'a>], n: usize) -> &'a [T] {
    args.get(n).map_or(&[], |arg| arg.typed())
}

/// An argument that is seen whole: as many elements as the argument after it says.
#[inline(always)]
pub fn whole<'a, T: Element>(args: &[Elements<'a>], n: usize) -> &'a [T] {
    let (all, len) = (each::<T>(args, n), each::<i64>(args, n + 1));
    let len = len.first().map_or(0, |&len| usize::try_from(len).unwrap_or(0));
    all.get(..len).unwrap_or(all)
}

/// The element nearest to an index.
#[inline(always)]
pub fn at<T: Copy + Default, I: Integer>(all: &[T], index: I) -> T {
    let nearest = Ord::min(Ord::max(index.place(), 0) as usize, all.len().saturating_sub(1));
    all.get(nearest).copied().unwrap_or_default()
}

/// Number types of bodies.
pub trait Number: Element + PartialOrd + Default {
    /// Sum; integers wrap, here and below.
    fn add(self, b: Self) -> Self;
    /// Difference.
    fn sub(self, b: Self) -> Self;
    /// Product.
    fn mul(self, b: Self) -> Self;
    /// Quotient, of integers towards zero; of integers by zero: zero.
    fn div(self, b: Self) -> Self;
    /// What [`Number::div`] leaves; of integers by zero: zero.
    fn rem(self, b: Self) -> Self;
    /// The negative.
    fn neg(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// The larger one; of NaN and a number the number, here and below.
    fn max(self, b: Self) -> Self;
    /// The smaller one.
    fn min(self, b: Self) -> Self;
}

/// Integers of bodies.
pub trait Integer: Number {
    /// Bits of both.
    fn and(self, b: Self) -> Self;
    /// Bits of either.
    fn or(self, b: Self) -> Self;
    /// Bits of one.
    fn xor(self, b: Self) -> Self;
    /// All bits changed.
    fn not(self) -> Self;
    /// Left shift by the count modulo the width.
    fn shl(self, b: Self) -> Self;
    /// Right shift by the count modulo the width.
    fn shr(self, b: Self) -> Self;
    /// As an index: the nearest one that an int64 holds.
    fn place(self) -> i64;
}

macro_rules! integers {
    ($($t:ty: $abs:expr, $place:expr;)*) => { $(
        impl Number for $t {
            #[inline(always)]
            fn add(self, b: Self) -> Self { self.wrapping_add(b) }
            #[inline(always)]
            fn sub(self, b: Self) -> Self { self.wrapping_sub(b) }
            #[inline(always)]
            fn mul(self, b: Self) -> Self { self.wrapping_mul(b) }
            #[inline(always)]
            fn div(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_div(b) } }
            #[inline(always)]
            fn rem(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_rem(b) } }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn abs(self) -> Self { ($abs)(self) }
            #[inline(always)]
            fn max(self, b: Self) -> Self { Ord::max(self, b) }
            #[inline(always)]
            fn min(self, b: Self) -> Self { Ord::min(self, b) }
        }
        impl Integer for $t {
            #[inline(always)]
            fn and(self, b: Self) -> Self { self & b }
            #[inline(always)]
            fn or(self, b: Self) -> Self { self | b }
            #[inline(always)]
            fn xor(self, b: Self) -> Self { self ^ b }
            #[inline(always)]
            fn not(self) -> Self { !self }
            #[inline(always)]
            fn shl(self, b: Self) -> Self { self.wrapping_shl(b as u32) }
            #[inline(always)]
            fn shr(self, b: Self) -> Self { self.wrapping_shr(b as u32) }
            #[inline(always)]
            fn place(self) -> i64 { ($place)(self) }
        }
    )* };
}
integers! {
    i8: i8::wrapping_abs, i64::from;
    i16: i16::wrapping_abs, i64::from;
    i32: i32::wrapping_abs, i64::from;
    i64: i64::wrapping_abs, identity;
    u8: identity, i64::from;
    u16: identity, i64::from;
    u32: identity, i64::from;
    u64: identity, |n: u64| Ord::min(n, i64::MAX as u64) as i64;
}

/// `as`, from one of these types to another.
pub trait Cast<T> {
    /// `self as T`; of bool, 0 or 1; to bool, whether it is not zero.
    fn cast(self) -> T;
}

macro_rules! casts {
    ($($from:ty),*) => { $( casts!(@from $from: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
        impl Cast<bool> for $from {
            #[inline(always)]
            fn cast(self) -> bool { self != (0 as $from) }
        }
        impl Cast<$from> for bool {
            #[inline(always)]
            fn cast(self) -> $from { self as u8 as $from }
        }
    )* };
    (@from $from:ty: $($to:ty),*) => { $(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to { self as $to }
        }
    )* };
}
casts!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Cast<bool> for bool {
    #[inline(always)]
    fn cast(self) -> bool {
        self
    }
}

/// Mathematical functions of bodies, under the names of Rust's standard library. `rare` is set by those that leave an argument to
/// [`Isa::EXACT`].
pub trait Math: Number {
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Whether it is infinite.
    fn is_infinite(self) -> bool;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Smallest integer not below.
    fn ceil(self) -> Self;
    /// Integer part.
    fn trunc(self) -> Self;
    /// Nearest integer, of two the even one.
    fn round_ties_even(self) -> Self;
    /// `self * a + b`, rounded once.
    fn mul_add<I: Isa>(self, a: Self, b: Self) -> Self;
    /// This magnitude with the sign of the other.
    fn copysign(self, sign: Self) -> Self;
    /// Sine.
    fn sin<I: Isa>(self, rare: &mut bool) -> Self;
    /// Cosine.
    fn cos<I: Isa>(self, rare: &mut bool) -> Self;
    /// Tangent.
    fn tan<I: Isa>(self, rare: &mut bool) -> Self;
    /// `e^x`, by the backend's vector math, here and below.
    fn exp<I: Isa>(self) -> Self;
    /// `2^x`
    fn exp2<I: Isa>(self) -> Self;
    /// `e^x - 1`
    fn exp_m1<I: Isa>(self) -> Self;
    /// Natural logarithm.
    fn ln<I: Isa>(self) -> Self;
    /// Logarithm to base 2.
    fn log2<I: Isa>(self) -> Self;
    /// Logarithm to base 10.
    fn log10<I: Isa>(self) -> Self;
    /// `ln(1 + x)`
    fn ln_1p<I: Isa>(self) -> Self;
    /// Cube root.
    fn cbrt<I: Isa>(self) -> Self;
    /// Arc sine.
    fn asin<I: Isa>(self) -> Self;
    /// Arc cosine.
    fn acos<I: Isa>(self) -> Self;
    /// Arc tangent.
    fn atan<I: Isa>(self) -> Self;
    /// Hyperbolic sine.
    fn sinh<I: Isa>(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh<I: Isa>(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh<I: Isa>(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh<I: Isa>(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh<I: Isa>(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh<I: Isa>(self) -> Self;
    /// Angle of the point `(x, self)`.
    fn atan2<I: Isa>(self, x: Self) -> Self;
    /// `sqrt(self^2 + y^2)`
    fn hypot<I: Isa>(self, y: Self) -> Self;
    /// `self^y`
    fn powf<I: Isa>(self, y: Self) -> Self;
}

/// A call, which stops vectorisation, where there is no instruction for it.
#[inline(never)]
fn slow_mul_add<T: num_traits::Float>(x: T, a: T, b: T) -> T {
    x.mul_add(a, b)
}

macro_rules! floats {
    ($($t:ident),*) => { $(
        impl Number for $t {
            #[inline(always)]
            fn add(self, b: Self) -> Self { self + b }
            #[inline(always)]
            fn sub(self, b: Self) -> Self { self - b }
            #[inline(always)]
            fn mul(self, b: Self) -> Self { self * b }
            #[inline(always)]
            fn div(self, b: Self) -> Self { self / b }
            #[inline(always)]
            fn rem(self, b: Self) -> Self { self % b }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { <$t>::abs(self) }
            #[inline(always)]
            fn max(self, b: Self) -> Self { <$t>::max(self, b) }
            #[inline(always)]
            fn min(self, b: Self) -> Self { <$t>::min(self, b) }
        }
        impl Math for $t {
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
            #[inline(always)]
            fn is_finite(self) -> bool { <$t>::is_finite(self) }
            #[inline(always)]
            fn is_infinite(self) -> bool { <$t>::is_infinite(self) }
            #[inline(always)]
            fn sqrt(self) -> Self { <$t>::sqrt(self) }
            #[inline(always)]
            fn floor(self) -> Self { <$t>::floor(self) }
            #[inline(always)]
            fn ceil(self) -> Self { <$t>::ceil(self) }
            #[inline(always)]
            fn trunc(self) -> Self { <$t>::trunc(self) }
            #[inline(always)]
            fn round_ties_even(self) -> Self { <$t>::round_ties_even(self) }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self { <$t>::copysign(self, sign) }
            #[inline(always)]
            fn mul_add<I: Isa>(self, a: Self, b: Self) -> Self { if I::FMA { <$t>::mul_add(self, a, b) } else { slow_mul_add(self, a, b) } }
            floats!(@large $t sin sin_large, cos cos_large, tan tan_large);
            floats!(@unary exp exp, exp2 exp2, exp_m1 expm1, ln log, log2 log2, log10 log10, ln_1p log1p, cbrt cbrt, asin asin,
                acos acos, atan atan, sinh sinh, cosh cosh, tanh tanh, asinh asinh, acosh acosh, atanh atanh);
            #[inline(always)]
            fn atan2<I: Isa>(self, x: Self) -> Self { vmath::atan2::<I, _>(self, x) }
            #[inline(always)]
            fn hypot<I: Isa>(self, y: Self) -> Self { vmath::hypot::<I, _>(self, y) }
            #[inline(always)]
            fn powf<I: Isa>(self, y: Self) -> Self { vmath::pow::<I, _>(self, y) }
        }
    )* };
    (@unary $($name:ident $function:ident),*) => { $(
        #[inline(always)]
        fn $name<I: Isa>(self) -> Self { vmath::$function::<I, _>(self) }
    )* };
    (@large $t:ident $($name:ident $slow:ident),*) => { $(
        #[inline(always)]
        fn $name<I: Isa>(self, rare: &mut bool) -> Self {
            if I::EXACT && vmath::is_large(self) {
                return vmath::$slow(self);
            }
            *rare |= vmath::is_large(self);
            vmath::$name::<I, _>(self)
        }
    )* };
}
floats!(f32, f64);
