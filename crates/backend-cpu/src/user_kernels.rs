//! Runtime support for the code that `cuprum::kernel!` generates. Not a public interface.
//!
//! The code of a user-defined operation is straight-line code over one element, or loops over many elements at once. LLVM vectorises both
//! at each SIMD level. Integers wrap, division by zero gives zero, and floats convert to integers as with Rust's `as`. The CUDA prelude for
//! generated code implements the same semantics.

use std::convert::identity;

use cuprum_core::{DType, Element};
pub use cuprum_cpu_base::simd::Isa;
use cuprum_cpu_base::simd::{BaselineIsa, FillLoop, run_fill_loop};
pub use cuprum_cpu_base::typed_views::{Elements, ElementsMut};
pub use cuprum_cpu_base::user_operations::{Loop, NativeLoopSelector, UserReduction};
use cuprum_cpu_math as vmath;

pub use crate::reduce::{NativeReductionLoops, NativeReductionSelector, native_reduction_loops};

/// The code of a user-defined operation with its arguments. It computes one tile (a block of consecutive elements).
pub trait UserOperationTile {
    /// Element type of the result.
    type Out: Element;
    /// Whether [`UserOperationTile::fill`] can return true.
    const MAY_NEED_EXACT_PASS: bool;
    /// Computes all elements of `out`. Returns whether some argument of a [`Math`] function needs the exact pass ([`Isa::IS_EXACT_PASS`]).
    fn fill<I: Isa>(&self, out: &mut [Self::Out]) -> bool;
}

/// Fills `out` by `tile`. A second, exact pass follows if some argument of a [`Math`] function needs it ([`Isa::IS_EXACT_PASS`]). Loops
/// with such functions are vectorised only with fused multiply-add. At other SIMD levels, the exact pass is the only pass.
pub fn run_tile<T: UserOperationTile>(tile: T, out: ElementsMut) {
    struct FillTileLoop<'t, T>(&'t T);
    impl<T: UserOperationTile> FillLoop for FillTileLoop<'_, T> {
        type Item = T::Out;
        #[inline(always)]
        fn run<I: Isa>(self, out: &mut [T::Out]) {
            if const { !T::MAY_NEED_EXACT_PASS } {
                self.0.fill::<I>(out);
            } else if const { !I::HAS_FMA } {
                fill_in_exact_pass::<false, T>(self.0, out);
            } else if self.0.fill::<I>(out) {
                fill_in_exact_pass::<true, T>(self.0, out);
            }
        }
    }
    run_fill_loop(FillTileLoop(&tile), out.typed_slice());
}

/// Fills `out` in an exact pass ([`ExactPassIsa`]), in which [`Math`] functions handle all arguments.
#[cold]
#[inline(never)]
fn fill_in_exact_pass<const FMA: bool, T: UserOperationTile>(tile: &T, out: &mut [T::Out]) {
    tile.fill::<ExactPassIsa<FMA>>(out);
}

/// Fills the float32 elements of `out` by a loop over float64, for a function of `N` arguments that computes in float64. Converts blocks of
/// elements: float32 arguments to float64, and the results to float32.
pub fn compute_in_float64<const N: usize>(tile: Loop, args: &[Elements], out: ElementsMut) {
    const BLOCK_LEN: usize = 256;
    let out = out.typed_slice::<f32>();
    let mut converted = [[0f64; BLOCK_LEN]; N];
    let mut results = [0f64; BLOCK_LEN];
    for (block, out) in out.chunks_mut(BLOCK_LEN).enumerate() {
        let len = out.len();
        let mut buffers = converted.iter_mut();
        let block_args: [Elements; N] = std::array::from_fn(|n| {
            let Some(arg) = args.get(n).map(|arg| arg.slice(block * BLOCK_LEN, len)) else { return Elements::of::<f64>(&[]) };
            match buffers.next() {
                Some(buffer) if arg.dtype() == DType::F32 => {
                    buffer.iter_mut().zip(arg.typed_slice::<f32>()).for_each(|(wide, &x)| *wide = f64::from(x));
                    Elements::of(&buffer[..len])
                }
                _ => arg,
            }
        });
        tile(&block_args, ElementsMut::of(&mut results[..len]));
        out.iter_mut().zip(&results).for_each(|(x, &wide)| *x = wide as f32);
    }
}

/// SIMD level of the exact pass, in which [`Math`] functions handle all arguments. `FMA` equals [`Isa::HAS_FMA`] of the first pass, so that
/// the exact pass changes only the elements that need it.
#[derive(Clone, Copy)]
pub struct ExactPassIsa<const FMA: bool>;

impl<const FMA: bool> Isa for ExactPassIsa<FMA> {
    const ACCUMULATOR_REGISTER_BYTES: usize = BaselineIsa::ACCUMULATOR_REGISTER_BYTES;
    const HAS_FMA: bool = FMA;
    const IS_EXACT_PASS: bool = true;
}

/// Marker for code that computes single values: the baseline SIMD level, with code that is exact for all arguments
/// ([`Isa::IS_EXACT_PASS`]).
pub type Plain = ExactPassIsa<{ BaselineIsa::HAS_FMA }>;

/// Returns the elements of argument number `n` for the current tile.
#[inline(always)]
pub fn tile_argument<'a, T: Element>(args: &[Elements<'a>], n: usize) -> &'a [T] {
    args.get(n).map_or(&[], |arg| arg.typed_slice())
}

/// Returns argument number `n`, a whole array, truncated to the length that argument `n + 1` holds.
#[inline(always)]
pub fn whole_array_argument<'a, T: Element>(args: &[Elements<'a>], n: usize) -> &'a [T] {
    let (all, len) = (tile_argument::<T>(args, n), tile_argument::<i64>(args, n + 1));
    let len = len.first().map_or(0, |&len| usize::try_from(len).unwrap_or(0));
    all.get(..len).unwrap_or(all)
}

/// Returns the element of `all` at `index`, which is clamped to the array. Returns the default value if `all` is empty.
#[inline(always)]
pub fn at<T: Copy + Default, I: Integer>(all: &[T], index: I) -> T {
    let nearest = Ord::min(Ord::max(index.to_index(), 0) as usize, all.len().saturating_sub(1));
    all.get(nearest).copied().unwrap_or_default()
}

/// Returns the row of `table` at `index`, which is clamped to the table.
#[inline(always)]
pub fn row_at<T, const COLUMNS: usize, const ROWS: usize, I: Integer>(table: &[[T; COLUMNS]; ROWS], index: I) -> &[T; COLUMNS] {
    &table[Ord::min(Ord::max(index.to_index(), 0) as usize, ROWS.saturating_sub(1))]
}

/// Returns the value at `x` of the polynomial with the given coefficients, lowest degree first, by Horner's scheme with [`Math::mul_add`].
#[inline(always)]
pub fn polynomial<I: Isa, T: Math, const N: usize>(x: T, coefficients: &[T; N]) -> T {
    #[inline(always)]
    fn horner<I: Isa, T: Math>(x: T, coefficients: &[T]) -> T {
        let Some((&highest, lower)) = coefficients.split_last() else { return T::default() };
        lower.iter().rev().fold(highest, |sum, &c| sum.mul_add::<I>(x, c))
    }
    #[inline(never)]
    fn polynomial_out_of_line<const FMA: bool, T: Math>(x: T, coefficients: &[T]) -> T {
        horner::<ExactPassIsa<FMA>, T>(x, coefficients)
    }
    match const { (is_vectorised::<I>(), I::HAS_FMA) } {
        (true, _) => horner::<I, T>(x, coefficients),
        (_, true) => polynomial_out_of_line::<true, T>(x, coefficients),
        (_, false) => polynomial_out_of_line::<false, T>(x, coefficients),
    }
}

/// Returns whether loops of user-defined operations are vectorised at SIMD level `I`. Loops at other levels call mathematical functions
/// instead of inlining them, which makes the program smaller.
const fn is_vectorised<I: Isa>() -> bool {
    I::HAS_FMA && !I::IS_EXACT_PASS
}

/// Number types that user-defined operations compute with.
pub trait Number: Element + PartialOrd + Default {
    /// Returns `self + b`. Integers wrap in this and all other operations.
    fn add(self, b: Self) -> Self;
    /// Returns `self - b`.
    fn sub(self, b: Self) -> Self;
    /// Returns `self * b`.
    fn mul(self, b: Self) -> Self;
    /// Returns `self / b`. Integers truncate towards zero, and integer division by zero gives zero.
    fn div(self, b: Self) -> Self;
    /// Returns the remainder of [`Number::div`], or zero for an integer divisor of zero.
    fn rem(self, b: Self) -> Self;
    /// Returns `-self`.
    fn neg(self) -> Self;
    /// Returns the absolute value.
    fn abs(self) -> Self;
    /// Returns the maximum; a NaN operand is ignored.
    fn max(self, b: Self) -> Self;
    /// Returns the minimum; a NaN operand is ignored.
    fn min(self, b: Self) -> Self;
}

/// Integer types that user-defined operations compute with.
pub trait Integer: Number {
    /// Bitwise and.
    fn and(self, b: Self) -> Self;
    /// Bitwise or.
    fn or(self, b: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, b: Self) -> Self;
    /// Bitwise complement.
    fn not(self) -> Self;
    /// Left shift by the count `b` modulo the width of the type.
    fn shl(self, b: Self) -> Self;
    /// Right shift by the count `b` modulo the width of the type.
    fn shr(self, b: Self) -> Self;
    /// Converts to an index, saturating at the int64 range.
    fn to_index(self) -> i64;
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
            fn to_index(self) -> i64 { ($place)(self) }
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

/// Conversion between number types as by the operator `as`.
pub trait Cast<T> {
    /// Returns `self as T`. bool converts to 0 or 1; conversion to bool tests for not zero.
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

/// Mathematical functions of user-defined operations, named as in Rust's standard library. Functions with the parameter `I`, except
/// `mul_add`, are those of `cuprum-cpu-math`. A function with the parameter `rare` sets `rare` for an argument that needs the exact pass
/// ([`Isa::IS_EXACT_PASS`]).
pub trait Math: Number {
    /// Returns whether the value is NaN.
    fn is_nan(self) -> bool;
    /// Returns whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Returns whether the value is infinite.
    fn is_infinite(self) -> bool;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Largest integer less than or equal to the value.
    fn floor(self) -> Self;
    /// Smallest integer greater than or equal to the value.
    fn ceil(self) -> Self;
    /// Value without its fractional part (rounds towards zero).
    fn trunc(self) -> Self;
    /// Nearest integer, with ties to even.
    fn round_ties_even(self) -> Self;
    /// `self * a + b`, rounded once.
    fn mul_add<I: Isa>(self, a: Self, b: Self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Sine.
    fn sin<I: Isa>(self, rare: &mut bool) -> Self;
    /// Cosine.
    fn cos<I: Isa>(self, rare: &mut bool) -> Self;
    /// Tangent.
    fn tan<I: Isa>(self, rare: &mut bool) -> Self;
    /// `e^x`, where x is `self`.
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

/// Fused multiply-add `x * a + b` for targets without the instruction: a library call that prevents vectorisation.
#[inline(never)]
fn mul_add_by_library_call<T: num_traits::Float>(x: T, a: T, b: T) -> T {
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
            fn mul_add<I: Isa>(self, a: Self, b: Self) -> Self { if I::HAS_FMA { <$t>::mul_add(self, a, b) } else { mul_add_by_library_call(self, a, b) } }
            floats!(@large $t sin sin_large, cos cos_large, tan tan_large);
            floats!(@unary $t exp exp, exp2 exp2, exp_m1 expm1, ln log, log2 log2, log10 log10, ln_1p log1p, cbrt cbrt, asin asin,
                acos acos, atan atan, sinh sinh, cosh cosh, tanh tanh, asinh asinh, acosh acosh, atanh atanh);
            #[inline(always)]
            fn atan2<I: Isa>(self, x: Self) -> Self { vmath::atan2::<I, _>(self, x) }
            #[inline(always)]
            fn hypot<I: Isa>(self, y: Self) -> Self { vmath::hypot::<I, _>(self, y) }
            #[inline(always)]
            fn powf<I: Isa>(self, y: Self) -> Self { vmath::pow::<I, _>(self, y) }
        }
    )* };
    (@unary $t:ident $($name:ident $function:ident),*) => { $(
        #[inline(always)]
        fn $name<I: Isa>(self) -> Self {
            #[inline(never)]
            fn function_out_of_line<const FMA: bool>(x: $t) -> $t { vmath::$function::<ExactPassIsa<FMA>, _>(x) }
            match const { (is_vectorised::<I>(), I::HAS_FMA) } {
                (true, _) => vmath::$function::<I, _>(self),
                (_, true) => function_out_of_line::<true>(self),
                (_, false) => function_out_of_line::<false>(self),
            }
        }
    )* };
    (@large $t:ident $($name:ident $slow:ident),*) => { $(
        #[inline(always)]
        fn $name<I: Isa>(self, rare: &mut bool) -> Self {
            if I::IS_EXACT_PASS && vmath::is_large_argument(self) {
                return vmath::$slow(self);
            }
            *rare |= vmath::is_large_argument(self);
            vmath::$name::<I, _>(self)
        }
    )* };
}
floats!(f32, f64);
