//! The table of elementwise operations: one line per operation, with one scalar expression per class of dtypes. A line in this table adds
//! an operation to the CPU backend.
//!
//! The dtype classes are `bool`, `int`, `bits`, `exact` (`bool` and `bits`), `float` (float32 and float64), `complex`, `plain` (all but
//! complex) and `any`. `bits` takes signed integers as unsigned ones, for operations with the same bits for both. `plain` and `any` take
//! integers and floats as unsigned integers of their size. `serial_int` and `serial_complex` have no vector instructions, and are compiled
//! for one SIMD level. float16 and bfloat16 use the float32 expression, rounded after each operation, unless the operation has a `plain` or
//! `any` expression. The result type is `T` (the argument type), `bool`, `i32`, or `Real` (the type of the real part). `I` is the SIMD
//! level.
//!
//! After an expression, a semicolon may introduce a test for rare arguments and the scalar expression for those arguments. The vectorised
//! loop gives wrong results for rare arguments.

use cuprum_core::ops::elementwise::*;
use cuprum_core::{Complex, DType, Element, Op};
use cuprum_cpu_base::simd::Isa;
use cuprum_cpu_base::typed_views::{bit_pattern_dtype, unsigned_dtype};
use cuprum_cpu_base::with_bits;
use cuprum_cpu_math as vmath;

use crate::complex::{ComplexArithmetic as _, ComplexMath};
use crate::elementwise_loops::{BinaryFunction, SelectedKernel, UnaryFunction, binary_kernel, unary_kernel, where_kernel};
use crate::float::FloatArithmetic as _;
use crate::half::is_half;
use crate::int::IntArithmetic;

/// One elementwise operation, with the function that selects its kernel by dtype.
struct OperationKernels {
    op: Op,
    select: fn(DType) -> Option<SelectedKernel>,
}

/// Returns `dtype` unchanged, for operations that need a separate loop for each dtype.
fn unchanged_dtype(dtype: DType) -> DType {
    dtype
}

/// Maps an element type to the type of its real part. Types other than complex ones map to themselves.
trait RealPartType {
    type Real;
}
macro_rules! real_part {
    ($($t:ty => $r:ty),*) => { $(impl RealPartType for $t { type Real = $r; })* };
}
real_part!(bool => bool, i8 => i8, i16 => i16, i32 => i32, i64 => i64, u8 => u8, u16 => u16, u32 => u32, u64 => u64, f32 => f32, f64 => f64, Complex<f32> => f32, Complex<f64> => f64);

macro_rules! result {
    (T, $t:ty) => {
        $t
    };
    (Real, $t:ty) => {
        <$t as RealPartType>::Real
    };
    (bool, $t:ty) => {
        bool
    };
    (i32, $t:ty) => {
        i32
    };
}

/// Makes the enclosing function return the kernel for one scalar expression, if the dtype belongs to the given class of dtypes.
macro_rules! class {
    (bool, $($rest:tt)*) => { class!(@ (bool) $($rest)*) };
    (int, $($rest:tt)*) => { class!(@ (i8, i16, i32, i64, u8, u16, u32, u64) $($rest)*) };
    (bits, $($rest:tt)*) => { class!(@as unsigned_dtype, (u8, u16, u32, u64), false, $($rest)*) };
    (exact, $($rest:tt)*) => { class!(@as unsigned_dtype, (bool, u8, u16, u32, u64), false, $($rest)*) };
    (serial_int, $($rest:tt)*) => { class!(@as unchanged_dtype, (i8, i16, i32, i64, u8, u16, u32, u64), true, $($rest)*) };
    (float, $($rest:tt)*) => { class!(@ (f32, f64) $($rest)*) };
    (complex, $($rest:tt)*) => { class!(@ (Complex<f32>, Complex<f64>) $($rest)*) };
    (serial_complex, $($rest:tt)*) => { class!(@as unchanged_dtype, (Complex<f32>, Complex<f64>), true, $($rest)*) };
    (plain, $($rest:tt)*) => { class!(@as bit_pattern_dtype, (bool, u8, u16, u32, u64), false, $($rest)*) };
    (any, $($rest:tt)*) => { class!(@as bit_pattern_dtype, (bool, u8, u16, u32, u64, Complex<f32>, Complex<f64>), false, $($rest)*) };
    (@ ($($t:ty),*) $($rest:tt)*) => { class!(@as unchanged_dtype, ($($t),*), false, $($rest)*) };
    (@as $of:ident, ($($t:ty),*), $serial:literal, $dtype:ident, $out:tt, $args:tt, $body:expr, $rare:tt) => {
        $(class!(@one $of, $t, $serial, $dtype, $out, $args, $body, $rare);)*
    };
    (@one $of:ident, $t:ty, $serial:literal, $dtype:ident, $out:tt, ($a:ident), $body:expr, [$($when:expr => $rare:expr)?]) => {
        if $of($dtype) == <$t as Element>::DTYPE {
            struct F;
            impl UnaryFunction for F {
                type In = $t;
                type Out = result!($out, $t);
                const IS_SCALAR_ONLY: bool = $serial;
                #[inline(always)]
                fn apply<I: Isa>($a: $t) -> Self::Out {
                    $body
                }
                $(
                    const HAS_RARE_ARGUMENTS: bool = true;
                    #[inline(always)]
                    fn is_rare_argument($a: $t) -> bool {
                        $when
                    }
                    fn apply_to_rare_argument($a: $t) -> Self::Out {
                        $rare
                    }
                )?
            }
            return Some(unary_kernel::<F>().with_argument_dtype($dtype));
        }
    };
    (@one $of:ident, $t:ty, $serial:literal, $dtype:ident, $out:tt, ($a:ident, $b:ident), $body:expr, []) => {
        if $of($dtype) == <$t as Element>::DTYPE {
            struct F;
            impl BinaryFunction for F {
                type In = $t;
                type Out = result!($out, $t);
                const IS_SCALAR_ONLY: bool = $serial;
                #[inline(always)]
                fn apply<I: Isa>($a: $t, $b: $t) -> Self::Out {
                    $body
                }
            }
            return Some(binary_kernel::<F>().with_argument_dtype($dtype));
        }
    };
}

macro_rules! rows {
    ($($op:ident $args:tt -> $out:tt { $($class:ident => $body:expr $(; $when:expr => $rare:expr)?,)+ })+) => {
        static OPERATION_TABLE: &[OperationKernels] = &[
            $(OperationKernels {
                op: $op,
                select: {
                    fn select_by_dtype(dtype: DType) -> Option<SelectedKernel> {
                        $(class!($class, dtype, $out, $args, $body, [$($when => $rare)?]);)+
                        None
                    }
                    select_by_dtype
                },
            },)+
            OperationKernels { op: WHERE, select: |dtype| Some(with_bits!(dtype, T => where_kernel::<T>(dtype))) },
        ];
    };
}

rows! {
    // Arithmetic. Integers wrap; for bool, "+" is "or" and "*" is "and".
    ADD(a, b) -> T { bool => a | b, bits => a.wrapping_add(b), float => a + b, complex => a + b, }
    SUBTRACT(a, b) -> T { bits => a.wrapping_sub(b), float => a - b, complex => a - b, }
    MULTIPLY(a, b) -> T { bool => a & b, bits => a.wrapping_mul(b), float => a * b, complex => a * b, }
    DIVIDE(a, b) -> T { float => a / b, complex => a.divide(b), }
    FLOOR_DIVIDE(a, b) -> T { int => a.floor_divide(b), float => a.floor_divide(b), }
    REMAINDER(a, b) -> T { int => a.remainder(b), float => a.remainder(b), }
    FMOD(a, b) -> T { serial_int => a.truncated_remainder(b), float => a % b, }
    GCD(a, b) -> T { serial_int => a.gcd(b), }
    LCM(a, b) -> T { serial_int => a.lcm(b), }
    POWER(a, b) -> T { serial_int => a.power(b), float => vmath::pow::<I, _>(a, b), serial_complex => a.power(b), }
    POSITIVE(a) -> T { any => a, }
    NEGATIVE(a) -> T { bits => a.wrapping_neg(), float => -a, complex => -a, }
    ABS(a) -> Real { bool => a, int => IntArithmetic::abs(a), float => a.abs(), serial_complex => a.re.hypot(a.im), }
    SIGN(a) -> T { int => a.sign(), float => a.sign(), complex => a.sign(), }
    SQUARE(a) -> T { bits => a.wrapping_mul(a), float => a * a, complex => a * a, }
    RECIPROCAL(a) -> T { int => a.reciprocal(), float => 1.0 / a, complex => a.reciprocal(), }
    HYPOT(a, b) -> T { float => vmath::hypot::<I, _>(a, b), }

    // Powers and logarithms.
    SQRT(a) -> T { float => a.sqrt(), serial_complex => a.apply_in_complex128(ComplexMath::square_root), }
    CBRT(a) -> T { float => vmath::cbrt::<I, _>(a), }
    EXP(a) -> T { float => vmath::exp::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::exponential), }
    EXP2(a) -> T { float => vmath::exp2::<I, _>(a), serial_complex => a.apply_in_complex128(|z| ComplexMath::exponential(z * std::f64::consts::LN_2)), }
    EXPM1(a) -> T { float => vmath::expm1::<I, _>(a), serial_complex => a.exponential_minus_1(), }
    LOG(a) -> T { float => vmath::log::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::logarithm), }
    LOG2(a) -> T { float => vmath::log2::<I, _>(a), serial_complex => a.apply_in_complex128(|z| ComplexMath::logarithm(z) * std::f64::consts::LOG2_E), }
    LOG10(a) -> T { float => vmath::log10::<I, _>(a), serial_complex => a.apply_in_complex128(|z| ComplexMath::logarithm(z) * std::f64::consts::LOG10_E), }
    LOG1P(a) -> T { float => vmath::log1p::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::logarithm_of_1_plus), }

    // Trigonometry.
    SIN(a) -> T { float => vmath::sin::<I, _>(a); vmath::is_large_argument(a) => vmath::sin_large(a), serial_complex => a.apply_in_complex128(ComplexMath::sine), }
    COS(a) -> T { float => vmath::cos::<I, _>(a); vmath::is_large_argument(a) => vmath::cos_large(a), serial_complex => a.apply_in_complex128(ComplexMath::cosine), }
    TAN(a) -> T { float => vmath::tan::<I, _>(a); vmath::is_large_argument(a) => vmath::tan_large(a), serial_complex => a.apply_in_complex128(ComplexMath::tangent), }
    ASIN(a) -> T { float => vmath::asin::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::arc_sine), }
    ACOS(a) -> T { float => vmath::acos::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::arc_cosine), }
    ATAN(a) -> T { float => vmath::atan::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::arc_tangent), }
    ATAN2(a, b) -> T { float => vmath::atan2::<I, _>(a, b), }
    SINH(a) -> T { float => vmath::sinh::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::hyperbolic_sine), }
    COSH(a) -> T { float => vmath::cosh::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::hyperbolic_cosine), }
    TANH(a) -> T { float => vmath::tanh::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::hyperbolic_tangent), }
    ASINH(a) -> T { float => vmath::asinh::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::inverse_hyperbolic_sine), }
    ACOSH(a) -> T { float => vmath::acosh::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::inverse_hyperbolic_cosine), }
    ATANH(a) -> T { float => vmath::atanh::<I, _>(a), serial_complex => a.apply_in_complex128(ComplexMath::inverse_hyperbolic_tangent), }
    DEG2RAD(a) -> T { float => a.deg2rad(), }
    RAD2DEG(a) -> T { float => a.rad2deg(), }

    // Rounding.
    FLOOR(a) -> T { exact => a, float => a.floor(), }
    CEIL(a) -> T { exact => a, float => a.ceil(), }
    TRUNC(a) -> T { exact => a, float => a.trunc(), }
    RINT(a) -> T { bits => a, float => a.round_ties_even(), complex => Complex::new(a.re.round_ties_even(), a.im.round_ties_even()), }

    // Parts of floats: fraction, mantissa, exponent and sign.
    MODF_FRACTION(a) -> T { float => a.fraction(), }
    FREXP_MANTISSA(a) -> T { float => a.mantissa(), }
    FREXP_EXPONENT(a) -> i32 { float => a.exponent(), }
    LDEXP(a, b) -> T { float => a.times_power_of_2(b), }
    COPYSIGN(a, b) -> T { float => a.copysign(b), }

    // Tests and comparisons. Complex numbers compare by real part, then imaginary part.
    ISNAN(a) -> bool { exact => { let _ = a; false }, float => a.is_nan(), complex => a.re.is_nan() | a.im.is_nan(), }
    ISINF(a) -> bool { exact => { let _ = a; false }, float => a.is_infinite(), complex => a.re.is_infinite() | a.im.is_infinite(), }
    ISFINITE(a) -> bool { exact => { let _ = a; true }, float => a.is_finite(), complex => a.re.is_finite() & a.im.is_finite(), }
    EQUAL(a, b) -> bool { exact => a == b, float => a == b, complex => a == b, }
    NOT_EQUAL(a, b) -> bool { exact => a != b, float => a != b, complex => a != b, }
    LESS(a, b) -> bool { bool => !a & b, int => a < b, float => a < b, complex => a.is_ordered_before(b, false), }
    LESS_EQUAL(a, b) -> bool { bool => !a | b, int => a <= b, float => a <= b, complex => a.is_ordered_before(b, true), }
    GREATER(a, b) -> bool { bool => a & !b, int => a > b, float => a > b, complex => b.is_ordered_before(a, false), }
    GREATER_EQUAL(a, b) -> bool { bool => a | !b, int => a >= b, float => a >= b, complex => b.is_ordered_before(a, true), }
    MINIMUM(a, b) -> T { bool => a & b, int => a.min(b), float => a.smaller(b), complex => a.smaller(b), }
    MAXIMUM(a, b) -> T { bool => a | b, int => a.max(b), float => a.larger(b), complex => a.larger(b), }
    FMIN(a, b) -> T { bool => a & b, int => a.min(b), float => if a <= b || b.is_nan() { a } else { b },
        complex => if a.is_ordered_before(b, true) || b.re.is_nan() || b.im.is_nan() { a } else { b }, }
    FMAX(a, b) -> T { bool => a | b, int => a.max(b), float => if a >= b || b.is_nan() { a } else { b },
        complex => if b.is_ordered_before(a, true) || b.re.is_nan() || b.im.is_nan() { a } else { b }, }

    // Logical operations on bool, then bitwise operations on bool and integers.
    LOGICAL_NOT(a) -> bool { bool => !a, }
    LOGICAL_AND(a, b) -> bool { bool => a & b, }
    LOGICAL_OR(a, b) -> bool { bool => a | b, }
    LOGICAL_XOR(a, b) -> bool { bool => a ^ b, }
    BITWISE_INVERT(a) -> T { exact => !a, }
    BITWISE_AND(a, b) -> T { exact => a & b, }
    BITWISE_OR(a, b) -> T { exact => a | b, }
    BITWISE_XOR(a, b) -> T { exact => a ^ b, }
    LEFT_SHIFT(a, b) -> T { bits => a.left_shift(b), }
    RIGHT_SHIFT(a, b) -> T { int => a.right_shift(b), }

    // Parts of complex numbers.
    REAL(a) -> Real { complex => a.re, plain => a, }
    IMAG(a) -> Real { complex => a.im, plain => { let _ = a; Default::default() }, }
    CONJ(a) -> T { complex => a.conj(), plain => a, }
}

fn find_operation(op: Op) -> Option<&'static OperationKernels> {
    OPERATION_TABLE.iter().find(|r| r.op == op)
}

/// Returns whether the table has a kernel for some dtype of the operation `op`.
pub fn has_kernel(op: Op) -> bool {
    find_operation(op).is_some()
}

/// Returns the kernel of `op` for arguments of `dtype` (for `where`, the dtype of the second and third argument). A 16-bit float without a
/// kernel of its own uses the float32 kernel. Returns `None` if there is no kernel.
pub fn select_kernel(op: Op, dtype: DType) -> Option<SelectedKernel> {
    let select = find_operation(op)?.select;
    select(dtype).or_else(|| if is_half(dtype) { select(DType::F32) } else { None })
}
