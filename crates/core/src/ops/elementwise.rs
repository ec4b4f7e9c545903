//! Elementwise operations, one table entry each. An entry defines the op, the function and the name in `eval`.
//!
//! A unary entry also defines a method, and a binary entry does if it names Python's operator.
//!
//! The functions take arrays and numbers and return a deferred array. Errors of shape, dtype and device are returned immediately.
//!
//! ```
//! # use cuprum_backend_cpu as _;
//! # extern crate cuprum_core as cuprum;
//! use cuprum::{NdArray, maximum};
//! # fn main() -> cuprum::Result<()> {
//! let a = NdArray::from_slice(&[-1.0f32, 4.0, 9.0])?;
//! let b = maximum(&a, 0)?.sqrt()?;
//! assert_eq!(b.to_vec::<f32>()?, [0.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```

use smallvec::SmallVec;

use cuprum_macros::{free_functions, numpy};

use crate::array::{NdArray, StoredArray};
use crate::device::Device;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::{Operand, build_with_dtypes, check_operands, common_shape, elementwise_group, elementwise_moving, run_as_composite};
use crate::function::{Function, Parameters};
use crate::layout::Layout;
use crate::op::{ArgumentType, Cost, DTypeSignature, Family, MAX_ARITY, Op, OpDef, OpGroup, TypeRule, result_type};
use crate::ops::creation::full_on_device;
use crate::ops::value::{Args, Value};
use crate::scalar::Scalar;

/// Returns whether a table entry has the word `method`, which declares its function as a method of `ndarray`.
const fn is_method(words: &[&str]) -> bool {
    !words.is_empty()
}

/// Returns the documentation's example of an operation. Results marked `near` are rounded to six decimals.
macro_rules! example {
    ($f:ident of method $x:literal, near $y:literal) => {
        example!(@code $x, concat!("assert_eq!(x.", stringify!($f), "()?.round(6)?.to_vec::<f64>()?, ", $y, ");"))
    };
    ($f:ident of method $x:literal, $t:ident $y:literal) => {
        example!(@code $x, concat!("assert_eq!(x.", stringify!($f), "()?.to_vec::<", stringify!($t), ">()?, ", $y, ");"))
    };
    ($f:ident of method $x:literal, $other:literal, $t:ident $y:literal) => {
        example!(@code $x, concat!(
            "let y = NdArray::from_slice(&", $other, ")?;\n",
            "assert_eq!(x.", stringify!($f), "(&y)?.to_vec::<", stringify!($t), ">()?, ", $y, ");"
        ))
    };
    ($f:ident of function $x:literal, $other:literal, near $y:literal) => {
        example!(@code $x, concat!(
            "let y = NdArray::from_slice(&", $other, ")?;\n",
            "assert_eq!(cuprum::", stringify!($f), "(&x, &y)?.round(6)?.to_vec::<f64>()?, ", $y, ");"
        ))
    };
    ($f:ident of function $x:literal, $other:literal, $t:ident $y:literal) => {
        example!(@code $x, concat!(
            "let y = NdArray::from_slice(&", $other, ")?;\n",
            "assert_eq!(cuprum::", stringify!($f), "(&x, &y)?.to_vec::<", stringify!($t), ">()?, ", $y, ");"
        ))
    };
    (@code $x:literal, $check:expr) => {
        concat!(
            "\n# Examples\n```\n# use cuprum_backend_cpu as _;\n# extern crate cuprum_core as cuprum;\n",
            "# #[allow(unused_imports)] use cuprum::Complex;\nuse cuprum::NdArray;\n# fn main() -> cuprum::Result<()> {\n",
            "let x = NdArray::from_slice(&", $x, ")?;\n", $check, "\n# Ok(())\n# }\n```\n"
        )
    };
}

static UNARY_PARAMETERS: Parameters = Parameters::new("x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None");
static BINARY_PARAMETERS: Parameters = Parameters::new("x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None");

macro_rules! elementwise {
    (
        unary { $($U:ident $u:ident $urule:ident $ucost:ident [$($ualias:literal),*] $($umethod:ident)? $udoc:literal $ux:literal $ut:ident $uy:literal;)* }
        binary { $($B:ident $b:ident $brule:ident $bcost:ident [$($balias:literal),*] $(($boperator:literal))? $bdoc:literal $bx:literal $bx2:literal $bt:ident $by:literal;)* }
        free { $($F:ident $fname:literal $farity:literal $frule:ident $fcost:ident $fcomposite:expr;)* }
    ) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum OpIndex { $($U,)* $($B,)* $($F,)* End }
        /// Op index that follows the last op of this module.
        pub(crate) const NEXT_INDEX: u16 = OpIndex::End as u16;
        mod defs {
            use super::*;
            $(pub(super) static $U: OpDef = OpDef {
                name: stringify!($u), family: Family::Map, arity: 1, index: OpIndex::$U as u16,
                rule: Some(TypeRule::$urule), cost: Cost::$ucost, composite: None, body: None, reduction: None,
            };)*
            $(pub(super) static $B: OpDef = OpDef {
                name: stringify!($b), family: Family::Map, arity: 2, index: OpIndex::$B as u16,
                rule: Some(TypeRule::$brule), cost: Cost::$bcost, composite: None, body: None, reduction: None,
            };)*
            $(pub(super) static $F: OpDef = OpDef {
                name: $fname, family: Family::Map, arity: $farity, index: OpIndex::$F as u16,
                rule: Some(TypeRule::$frule), cost: Cost::$fcost, composite: $fcomposite, body: None, reduction: None,
            };)*
        }
        $(#[doc = $udoc] pub const $U: Op = Op(&defs::$U);)*
        $(#[doc = $bdoc] pub const $B: Op = Op(&defs::$B);)*
        $(#[doc = concat!("The operation `", $fname, "`.")] pub const $F: Op = Op(&defs::$F);)*
        /// Definitions of the ops of this module, in index order.
        pub static DEFINITIONS: &[&OpDef] = &[$(&defs::$U,)* $(&defs::$B,)* $(&defs::$F,)*];

        $(
            #[doc = $udoc]
            $(#[doc(alias = $ualias)])*
            #[doc = concat!("\n\nElementwise (`numpy.", stringify!($u), "`); the result is deferred. [`NdArray::", stringify!($u), "`] has an example.\n\n# Errors\nA dtype that the operation is not defined for.")]
            pub fn $u(x: impl Into<Operand>) -> Result<NdArray> { elementwise_moving($U, &mut [x.into()]) }

            inventory::submit! {
                Function {
                    namespace: "", name: stringify!($u), aliases: &[$($ualias),*], parameters: &UNARY_PARAMETERS, doc: $udoc,
                    rust: concat!(module_path!(), "::", stringify!($u)), is_method: is_method(&[$(stringify!($umethod))?]), differs: "", updates_argument: false,
                    call: |args| $u(args.operand("x")?).map(Value::Array),
                }
            }
        )*
        $(
            #[doc = $bdoc]
            $(#[doc(alias = $balias)])*
            #[doc = concat!("\n\nElementwise with broadcasting (`numpy.", stringify!($b), "`); the result is deferred.\n\n# Errors\nShapes that do not broadcast, dtypes that the operation is not defined for, or arrays on different devices.\n")]
            #[doc = example!($b of function $bx, $bx2, $bt $by)]
            pub fn $b(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> { apply_binary($B, x1.into(), x2.into()) }

            inventory::submit! {
                Function {
                    namespace: "", name: stringify!($b), aliases: &[$($balias),*], parameters: &BINARY_PARAMETERS, doc: $bdoc,
                    rust: concat!(module_path!(), "::", stringify!($b)), is_method: false, differs: "", updates_argument: false,
                    call: |args| $b(args.operand("x1")?, args.operand("x2")?).map(Value::Array),
                }
            }
        )*
        /// The elementwise functions, without ops and their definitions.
        pub mod functions {
            #[doc(inline)]
            pub use super::{add, astype, clip, conj, divmod, frexp, ldexp, modf, power, round, where_, $($u,)* $($b,)*};
        }

        /// # Elementwise operations
        ///
        /// The results are deferred and fused. Each is a function too, which takes arrays and numbers, such as [`sin()`](crate::sin()).
        impl NdArray {
            $(
                #[doc = $udoc]
                #[doc = concat!("\n\nSee [`", stringify!($u), "()`].\n\n# Errors\nThe errors of the function.\n")]
                #[doc = example!($u of method $ux, $ut $uy)]
                pub fn $u(&self) -> Result<NdArray> { $u(self) }
            )*
            $($(
                #[doc = $bdoc]
                #[doc = concat!("\n\nPython's operator `", $boperator, "`. See [`", stringify!($b), "()`].\n\n# Errors\nThe errors of the function.\n")]
                #[doc = example!($b of method $bx, $bx2, $bt $by)]
                pub fn $b(&self, other: impl Into<Operand>) -> Result<NdArray> { $b(self, other) }
            )?)*
        }
    };
}

elementwise! {
    unary {
        POSITIVE positive PromoteNoBool Cheap [] "The value unchanged (`+x`)." "[1, -2]" i32 "[1, -2]";
        NEGATIVE negative PromoteNoBool Cheap [] "`-x`." "[1, -2]" i32 "[-1, 2]";
        ABS abs RealPart Cheap ["absolute"] "Absolute value; the magnitude of complex numbers." "[1, -2]" i32 "[1, 2]";
        SIGN sign PromoteNoBool Cheap [] "Sign: -1, 0 or 1, and NaN for NaN; `x / |x|` for complex numbers." "[5.0, -2.0, 0.0]" f64 "[1.0, -1.0, 0.0]";
        SQUARE square PromoteNumber Cheap [] "`x * x`." "[3, -2]" i32 "[9, 4]";
        RECIPROCAL reciprocal PromoteNumber Medium [] "`1 / x`; integers truncate, and 0 gives 0." "[4.0, 0.5]" f64 "[0.25, 2.0]";
        SQRT sqrt Inexact Medium [] "Square root." "[4.0, 2.25]" f64 "[2.0, 1.5]";
        CBRT cbrt Float Expensive [] "Cube root." "[8.0, -27.0]" near "[2.0, -3.0]";
        EXP exp Inexact Expensive [] "`e**x`." "[1.0]" near "[2.718282]";
        EXP2 exp2 Inexact Expensive [] "`2**x`." "[0.5]" near "[1.414214]";
        EXPM1 expm1 Inexact Expensive [] "`e**x - 1`, accurate near 0." "[1.0]" near "[1.718282]";
        LOG log Inexact Expensive [] "Natural logarithm." "[2.0]" near "[0.693147]";
        LOG2 log2 Inexact Expensive [] "Logarithm to base 2." "[3.0]" near "[1.584963]";
        LOG10 log10 Inexact Expensive [] "Logarithm to base 10." "[2.0]" near "[0.30103]";
        LOG1P log1p Inexact Expensive [] "`log(1 + x)`, accurate near 0." "[1.0]" near "[0.693147]";
        SIN sin Inexact Expensive [] "Sine; x in radians." "[1.0]" near "[0.841471]";
        COS cos Inexact Expensive [] "Cosine; x in radians." "[1.0]" near "[0.540302]";
        TAN tan Inexact Expensive [] "Tangent; x in radians." "[1.0]" near "[1.557408]";
        ASIN asin Inexact Expensive ["arcsin"] "Inverse sine, in radians." "[0.5]" near "[0.523599]";
        ACOS acos Inexact Expensive ["arccos"] "Inverse cosine, in radians." "[0.5]" near "[1.047198]";
        ATAN atan Inexact Expensive ["arctan"] "Inverse tangent, in radians." "[1.0]" near "[0.785398]";
        SINH sinh Inexact Expensive [] "Hyperbolic sine." "[1.0]" near "[1.175201]";
        COSH cosh Inexact Expensive [] "Hyperbolic cosine." "[1.0]" near "[1.543081]";
        TANH tanh Inexact Expensive [] "Hyperbolic tangent." "[1.0]" near "[0.761594]";
        ASINH asinh Inexact Expensive ["arcsinh"] "Inverse hyperbolic sine." "[1.0]" near "[0.881374]";
        ACOSH acosh Inexact Expensive ["arccosh"] "Inverse hyperbolic cosine." "[2.0]" near "[1.316958]";
        ATANH atanh Inexact Expensive ["arctanh"] "Inverse hyperbolic tangent." "[0.5]" near "[0.549306]";
        DEG2RAD deg2rad Float Cheap ["radians"] "Degrees to radians." "[180.0]" near "[3.141593]";
        RAD2DEG rad2deg Float Cheap ["degrees"] "Radians to degrees." "[1.0]" near "[57.29578]";
        FLOOR floor Round Cheap [] "Largest integer not above x, in x's dtype." "[1.5, -1.5]" f64 "[1.0, -2.0]";
        CEIL ceil Round Cheap [] "Smallest integer not below x, in x's dtype." "[1.5, -1.5]" f64 "[2.0, -1.0]";
        TRUNC trunc Round Cheap ["fix"] "Integer part of x (rounds toward zero), in x's dtype." "[1.5, -1.5]" f64 "[1.0, -1.0]";
        RINT rint Inexact Cheap [] "Nearest integer, ties to even, as a float." "[0.5, 1.5]" f64 "[0.0, 2.0]";
        ISNAN isnan Test Cheap [] "Whether x is NaN." "[1.0, f64::NAN]" bool "[false, true]";
        ISINF isinf Test Cheap [] "Whether x is infinite." "[1.0, f64::INFINITY]" bool "[false, true]";
        ISFINITE isfinite Test Cheap [] "Whether x is neither infinite nor NaN." "[1.0, f64::INFINITY]" bool "[true, false]";
        LOGICAL_NOT logical_not Logical Cheap [] "Whether x is zero." "[0, 3]" bool "[true, false]";
        BITWISE_INVERT bitwise_invert Bitwise Cheap ["invert", "bitwise_not"] "Bitwise not; logical not of bool." "[0, 5]" i32 "[-1, -6]";
        REAL real RealPart Cheap [] "Real part." "[Complex::new(1.0, 2.0)]" f64 "[1.0]";
        IMAG imag RealPart Cheap [] "Imaginary part; 0 for real numbers." "[Complex::new(1.0, 2.0)]" f64 "[2.0]";
    }
    binary {
        SUBTRACT subtract PromoteNoBool Cheap [] ("-") "`x1 - x2`; integers wrap." "[5, 7]" "[1, 2]" i32 "[4, 5]";
        MULTIPLY multiply Promote Cheap [] ("*") "`x1 * x2`; integers wrap, bool is \"and\"." "[5, 7]" "[2, 3]" i32 "[10, 21]";
        DIVIDE divide Divide Medium ["true_divide"] ("/") "`x1 / x2`; integers divide in float64." "[1, 3]" "[2, 2]" f64 "[0.5, 1.5]";
        FLOOR_DIVIDE floor_divide PromoteReal Medium [] ("//") "`floor(x1 / x2)`; integer division by 0 gives 0." "[7, -7]" "[2, 2]" i32 "[3, -4]";
        REMAINDER remainder PromoteReal Medium ["mod"] ("%") "Remainder with the divisor's sign (Python's `%`); integer division by 0 gives 0." "[7, -7]" "[3, 3]" i32 "[1, 2]";
        FMOD fmod PromoteReal Medium [] "Remainder with the dividend's sign (C's `fmod`); integer division by 0 gives 0." "[7, -7]" "[3, 3]" i32 "[1, -1]";
        MINIMUM minimum Ordered Cheap [] "The smaller; NaN if either is NaN." "[1.0, f64::NEG_INFINITY]" "[2.0, 0.0]" f64 "[1.0, f64::NEG_INFINITY]";
        MAXIMUM maximum Ordered Cheap [] "The larger; NaN if either is NaN." "[1.0, 5.0]" "[2.0, 0.0]" f64 "[2.0, 5.0]";
        FMIN fmin Ordered Cheap [] "The smaller; the other if one is NaN." "[1.0, f64::NAN]" "[2.0, 3.0]" f64 "[1.0, 3.0]";
        FMAX fmax Ordered Cheap [] "The larger; the other if one is NaN." "[1.0, f64::NAN]" "[2.0, 3.0]" f64 "[2.0, 3.0]";
        ATAN2 atan2 Float Expensive ["arctan2"] "Angle of the point (x2, x1), in radians." "[1.0]" "[-1.0]" near "[2.356194]";
        HYPOT hypot Float Expensive [] "`sqrt(x1**2 + x2**2)` without intermediate overflow." "[3.0]" "[4.0]" near "[5.0]";
        COPYSIGN copysign Float Cheap [] "`x1` with the sign of `x2`, which zeros and NaN have too." "[1.5, 2.0]" "[-0.0, 3.0]" f64 "[-1.5, 2.0]";
        EQUAL equal Compare Cheap [] ("==") "`x1 == x2`." "[1, 2]" "[1, 3]" bool "[true, false]";
        NOT_EQUAL not_equal Compare Cheap [] ("!=") "`x1 != x2`." "[1, 2]" "[1, 3]" bool "[false, true]";
        LESS less Compare Cheap [] ("<") "`x1 < x2`; complex numbers compare by real part, then imaginary." "[1, 2]" "[1, 3]" bool "[false, true]";
        LESS_EQUAL less_equal Compare Cheap [] ("<=") "`x1 <= x2`." "[1, 4]" "[1, 3]" bool "[true, false]";
        GREATER greater Compare Cheap [] (">") "`x1 > x2`." "[1, 4]" "[1, 3]" bool "[false, true]";
        GREATER_EQUAL greater_equal Compare Cheap [] (">=") "`x1 >= x2`." "[1, 2]" "[1, 3]" bool "[true, false]";
        LOGICAL_AND logical_and Logical Cheap [] "Whether both are non-zero." "[0, 2]" "[1, 3]" bool "[false, true]";
        LOGICAL_OR logical_or Logical Cheap [] "Whether either is non-zero." "[0, 2]" "[0, 3]" bool "[false, true]";
        LOGICAL_XOR logical_xor Logical Cheap [] "Whether exactly one is non-zero." "[0, 2]" "[1, 3]" bool "[true, false]";
        BITWISE_AND bitwise_and Bitwise Cheap [] ("&") "Bits set in both." "[6, 5]" "[3, 4]" i32 "[2, 4]";
        BITWISE_OR bitwise_or Bitwise Cheap [] ("|") "Bits set in either." "[6, 5]" "[3, 4]" i32 "[7, 5]";
        BITWISE_XOR bitwise_xor Bitwise Cheap [] ("^") "Bits set in exactly one." "[6, 5]" "[3, 4]" i32 "[5, 1]";
        LEFT_SHIFT left_shift Shift Cheap ["bitwise_left_shift"] ("<<") "`x1 << x2`; 0 when x2 is negative or at least the number of bits." "[1, 3]" "[4, 1]" i32 "[16, 6]";
        RIGHT_SHIFT right_shift Shift Cheap ["bitwise_right_shift"] (">>") "`x1 >> x2`, arithmetic; only sign bits remain when x2 is negative or at least the number of bits." "[16, -8]" "[4, 1]" i32 "[1, -4]";
        GCD gcd Integer Expensive [] "Greatest common divisor, not negative; `gcd(0, 0)` is 0." "[12, 0]" "[-8, 0]" i32 "[4, 0]";
        LCM lcm Integer Expensive [] "Least common multiple, not negative; 0 if either is 0. Wraps." "[-4, 0]" "[6, 5]" i32 "[12, 0]";
    }
    free {
        ADD "add" 2 Promote Cheap None;
        MODF_FRACTION "modf_fraction" 1 Float Cheap None;
        FREXP_MANTISSA "frexp_mantissa" 1 Float Cheap None;
        FREXP_EXPONENT "frexp_exponent" 1 Exponent Cheap None;
        LDEXP "ldexp" 2 Float Cheap None;
        CONJ "conj" 1 PromoteNumber Cheap None;
        POWER "power" 2 PromoteNumber Expensive None;
        WHERE "where" 3 Where Cheap None;
        ASTYPE "astype" 1 Same Cheap Some(|x, _| run_as_composite(x, |x| Ok(x[0].clone())));
        CLIP "clip" 3 Ordered Cheap Some(|x, _| run_as_composite(x, |x| minimum(&maximum(&x[0], &x[1])?, &x[2])));
        ROUND "round" 1 RoundComplex Cheap Some(|x, _| run_as_composite(x, |x| x[0].round(0)));
    }
}

/// The group of operations of [`divmod()`]: quotient and remainder.
pub static DIVMOD: OpGroup =
    OpGroup { name: "divmod", results: &[(FLOOR_DIVIDE, TypeRule::PromoteReal), (REMAINDER, TypeRule::PromoteReal)] };
/// The group of operations of [`modf()`]: fractional and integral part.
pub static MODF: OpGroup = OpGroup { name: "modf", results: &[(MODF_FRACTION, TypeRule::Float), (TRUNC, TypeRule::Float)] };
/// The group of operations of [`frexp()`]: mantissa and exponent.
pub static FREXP: OpGroup = OpGroup { name: "frexp", results: &[(FREXP_MANTISSA, TypeRule::Float), (FREXP_EXPONENT, TypeRule::Exponent)] };

/// The elementwise functions with several results.
pub static GROUPS: [&OpGroup; 3] = [&DIVMOD, &MODF, &FREXP];

/// `(x1 // x2, x1 % x2)`, elementwise with broadcasting (`numpy.divmod`).
///
/// The quotient is that of [`floor_divide`], the remainder that of [`remainder`]. Integer division by 0 gives 0 for both.
/// Reading one result computes both in one pass.
///
/// # Errors
/// Shapes that do not broadcast, complex numbers, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, divmod};
/// # fn main() -> cuprum::Result<()> {
/// let (quotient, remainder) = divmod(&NdArray::from_slice(&[7, -7])?, 2)?;
/// assert_eq!(quotient.to_vec::<i32>()?, [3, -4]);
/// assert_eq!(remainder.to_vec::<i32>()?, [1, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("divmod(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn divmod(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<(NdArray, NdArray)> {
    elementwise_group(&DIVMOD, &[x1.into(), x2.into()]).map(|[quotient, remainder]| (quotient, remainder))
}

/// The fractional and the integral part, both with the sign of `x` (`numpy.modf`).
///
/// Integers become floats. The fractional part of an infinity is 0. Reading one result computes both in one pass.
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, modf};
/// # fn main() -> cuprum::Result<()> {
/// let (fraction, integral) = modf(&NdArray::from_slice(&[2.5, -0.25])?)?;
/// assert_eq!(fraction.to_vec::<f64>()?, [0.5, -0.25]);
/// assert_eq!(integral.to_vec::<f64>()?, [2.0, -0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("modf(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn modf(x: impl Into<Operand>) -> Result<(NdArray, NdArray)> {
    elementwise_group(&MODF, &[x.into()]).map(|[fraction, integral]| (fraction, integral))
}

/// The mantissa and the int32 exponent with `x = mantissa * 2**exponent` (`numpy.frexp`).
///
/// The magnitude of the mantissa is in `[0.5, 1)`. Zeros, infinities and NaN are their own mantissa, with the exponent 0. Integers
/// become floats. Reading one result computes both in one pass.
///
/// # Errors
/// Complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, frexp};
/// # fn main() -> cuprum::Result<()> {
/// let (mantissa, exponent) = frexp(&NdArray::from_slice(&[6.0, -0.25])?)?;
/// assert_eq!(mantissa.to_vec::<f64>()?, [0.75, -0.5]);
/// assert_eq!(exponent.to_vec::<i32>()?, [3, -1]);
/// # Ok(())
/// # }
/// ```
#[numpy("frexp(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn frexp(x: impl Into<Operand>) -> Result<(NdArray, NdArray)> {
    elementwise_group(&FREXP, &[x.into()]).map(|[mantissa, exponent]| (mantissa, exponent))
}

/// `x1 * 2**x2`, elementwise with broadcasting (`numpy.ldexp`); the inverse of [`frexp`].
///
/// `x2` holds integers other than uint64. The result has the dtype of `x1`, integers as floats. It is rounded once, also if it is
/// subnormal.
///
/// # Errors
/// A complex `x1`, another dtype of `x2`, shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, ldexp};
/// # fn main() -> cuprum::Result<()> {
/// let exponents = NdArray::from_slice(&[-1, 0, 10])?;
/// assert_eq!(ldexp(1.5, &exponents)?.to_vec::<f64>()?, [0.75, 1.5, 1536.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("ldexp(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn ldexp(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let (x1, x2) = (x1.into(), x2.into());
    let exponents = match x2.arg_type() {
        ArgumentType::Array(dtype) => dtype,
        ArgumentType::Weak(scalar) => scalar.default_dtype(),
    };
    if exponents == DType::U64 || !(exponents.is_int() || exponents == DType::Bool) {
        return Err(Error::dtype(LDEXP.name(), "the exponents must be integers other than uint64; use astype", &[exponents]));
    }
    let signature = TypeRule::Float.resolve_dtypes(LDEXP.name(), &[x1.arg_type()])?;
    // Weak ints are not checked: an int out of range of the float dtype becomes an infinity, as in an array.
    build_with_dtypes(LDEXP, &mut [x1, x2], signature)
}

/// Applies a binary operation. Comparisons that the promoted dtype cannot represent exactly are computed without promotion.
fn apply_binary(op: Op, x1: Operand, x2: Operand) -> Result<NdArray> {
    if op.0.rule == Some(TypeRule::Compare)
        && let Some(exact) = compare_exactly(op, &x1, &x2)?
    {
        return Ok(exact);
    }
    elementwise_moving(op, &mut [x1, x2])
}

/// `x1 ** x2`, elementwise with broadcasting (`numpy.power`).
///
/// Integers wrap, and bool becomes int8. A floating `x1` with the number -1, 1 or 2 as `x2` is computed exactly. For float32 and
/// float64 the number 0.5 is the square root, so -inf gives NaN. An array as `x2` calls the power function for each element, which
/// gives inf for `-inf ** 0.5`. For an integer `x1` and an array of negative exponents, the result is `1 / x1**|x2|` truncated.
/// [`NdArray::power`] is NumPy's `**` operator, which differs for a few exponents.
///
/// # Errors
/// Shapes that do not broadcast, arrays on different devices, or an integer `x1` with a negative int as `x2`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, power};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0, 4.0, 9.0])?;
/// assert_eq!(power(&a, 0.5)?.to_vec::<f64>()?, [1.0, 2.0, 3.0]);
/// assert_eq!(power(2, &a)?.to_vec::<f64>()?, [2.0, 16.0, 512.0]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "pow")]
#[numpy(
    "power(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)",
    aliases("pow"),
    differs = "integers to negative powers in an array truncate `1 / x**n`"
)]
pub fn power(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    let (base, exponent) = (x1.into(), x2.into());
    reject_negative_integer_power(&base, &exponent)?;
    if let Operand::Scalar(number) = exponent
        && let Some(exact) = power_by_number(&base, number)?
    {
        return Ok(exact);
    }
    elementwise_moving(POWER, &mut [base, exponent])
}

/// Computes the power if `exponent` needs no power function, else returns `None`. As in NumPy's loops, the exponent is first converted to
/// the dtype.
fn power_by_number(base: &Operand, exponent: Scalar) -> Result<Option<NdArray>> {
    let dtype = result_type(&[base.arg_type(), Operand::Scalar(exponent).arg_type()]);
    let exponent = match (dtype.kind(), exponent) {
        (Kind::Float, _) => Scalar::from_bytes(dtype, &exponent.to_bytes(dtype)).as_f64(),
        (Kind::Signed | Kind::Unsigned, Scalar::Int(n @ 1..=2)) => n as f64,
        _ => return Ok(None),
    };
    let x = || match base {
        Operand::Array(a) => a.astype(dtype),
        Operand::Scalar(s) => NdArray::scalar_as(s.checked_for(POWER.name(), dtype)?, dtype),
    };
    Ok(Some(match exponent {
        -1.0 => reciprocal(&x()?)?,
        0.5 if matches!(dtype, DType::F32 | DType::F64) => sqrt(&x()?)?,
        1.0 => x()?,
        2.0 => square(&x()?)?,
        _ => return Ok(None),
    }))
}

/// Rejects a negative int as the exponent of integers, as NumPy does.
///
/// Array exponents are not checked, since that would wait for the device; kernels truncate `1 / x1**|x2|`.
fn reject_negative_integer_power(base: &Operand, exponent: &Operand) -> Result<()> {
    let integral = match base {
        Operand::Array(a) => matches!(a.dtype().kind(), Kind::Signed | Kind::Unsigned | Kind::Bool),
        Operand::Scalar(s) => matches!(s, Scalar::Int(_) | Scalar::Bool(_)),
    };
    match exponent {
        Operand::Scalar(Scalar::Int(v)) if integral && *v < 0 => {
            Err(Error::value("power", "integers to negative integer powers are not allowed; make one side floating"))
        }
        _ => Ok(()),
    }
}

/// Compares operands that their promoted dtype cannot represent: int64 with uint64, and integer arrays with ints out of range.
///
/// Returns `None` for all other operands.
fn compare_exactly(op: Op, x1: &Operand, x2: &Operand) -> Result<Option<NdArray>> {
    let compare =
        |a: Operand, b: Operand| build_with_dtypes(op, &mut [a, b], DTypeSignature { args: [DType::U64; MAX_ARITY], result: DType::Bool });
    match (x1, x2) {
        (Operand::Array(a), Operand::Array(b)) => {
            let mixed = |s: DType, u: DType| s.kind() == Kind::Signed && u == DType::U64;
            let (flipped, signed, unsigned) = match (a.dtype(), b.dtype()) {
                (s, u) if mixed(s, u) => (false, a, b),
                (u, s) if mixed(s, u) => (true, b, a),
                _ => return Ok(None),
            };
            // A negative number is less than every unsigned one; other values compare as uint64.
            let negative = less(signed, 0)?;
            let as_unsigned = signed.astype(DType::U64)?;
            let plain = if flipped { compare(unsigned.into(), as_unsigned.into())? } else { compare(as_unsigned.into(), unsigned.into())? };
            let when_negative = if flipped { compare_constants(op, 1, 0) } else { compare_constants(op, 0, 1) };
            Ok(Some(where_(&negative, when_negative, &plain)?))
        }
        (Operand::Array(a), Operand::Scalar(Scalar::Int(v))) => Ok(compare_out_of_range(op, a, *v, false)?),
        (Operand::Scalar(Scalar::Int(v)), Operand::Array(a)) => Ok(compare_out_of_range(op, a, *v, true)?),
        _ => Ok(None),
    }
}

/// Returns the comparison of the integer array `a` with `v` if `v` is outside the range of the array's dtype, so that all elements of the
/// result are equal. Returns `None` if `v` is in the range.
///
/// `flipped` means that `v` is the first operand.
fn compare_out_of_range(op: Op, a: &NdArray, v: i128, flipped: bool) -> Result<Option<NdArray>> {
    let Some((lo, hi)) = a.dtype().int_range() else { return Ok(None) };
    if (lo..=hi).contains(&v) {
        return Ok(None);
    }
    let side = if v < lo { -1 } else { 1 };
    let answer = if flipped { compare_constants(op, side, 0) } else { compare_constants(op, 0, side) };
    full_on_device(a.device(), a.shape(), Scalar::Bool(answer), DType::Bool).map(Some)
}

/// Evaluates a comparison of two ints.
fn compare_constants(op: Op, a: i32, b: i32) -> bool {
    let ordering = a.cmp(&b);
    let answers = [
        (EQUAL, ordering.is_eq()),
        (NOT_EQUAL, ordering.is_ne()),
        (LESS, ordering.is_lt()),
        (LESS_EQUAL, ordering.is_le()),
        (GREATER, ordering.is_gt()),
    ];
    answers.iter().find(|(o, _)| *o == op).map_or(ordering.is_ge(), |(_, answer)| *answer)
}

/// `x1 + x2`, elementwise with broadcasting (`numpy.add`), the fallible form of `+`.
///
/// Integers wrap, and bool is "or".
///
/// # Errors
/// Shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, add};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2])?;
/// assert_eq!(add(&a, 10)?.to_vec::<i32>()?, [11, 12]);
/// # Ok(())
/// # }
/// ```
#[numpy("add(x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
pub fn add(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> {
    elementwise_moving(ADD, &mut [x1.into(), x2.into()])
}

impl NdArray {
    /// `self + other`. Python's operator `+`. See [`add()`].
    ///
    /// If a module imports [`std::ops::Add`], `a.add(1)` for an array `a` is that trait's method, which panics instead of returning an
    /// error. A reference `(&a).add(1)` calls this method in any module.
    ///
    /// # Errors
    /// The errors of [`add()`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1, 2])?;
    /// assert_eq!(a.add(1)?.multiply(2)?.to_vec::<i32>()?, [4, 6]);
    /// assert!(a.add(&NdArray::from_slice(&[1, 2, 3])?).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn add(&self, other: impl Into<Operand>) -> Result<NdArray> {
        add(self, other)
    }
}

/// Selects `x` where `condition` is true and `y` elsewhere, with broadcasting (`numpy.where`).
///
/// Python ints outside the result dtype wrap.
///
/// # Errors
/// Shapes that do not broadcast, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, where_};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, -2, 3])?;
/// assert_eq!(where_(a.greater(0)?, &a, 0)?.to_vec::<i32>()?, [1, 0, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("where(condition, x, y, /)")]
pub fn where_(condition: impl Into<Operand>, x: impl Into<Operand>, y: impl Into<Operand>) -> Result<NdArray> {
    let (x, y) = (x.into(), y.into());
    let dtype = result_type(&[x.arg_type(), y.arg_type()]);
    elementwise_moving(WHERE, &mut [condition.into(), wrap_python_int(x, dtype), wrap_python_int(y, dtype)])
}

/// Wraps a Python int `x` into the range of an integer `dtype`, as `astype` does. NumPy rejects such ints in ufuncs, and `where` is not a
/// ufunc.
fn wrap_python_int(x: Operand, dtype: DType) -> Operand {
    match (&x, dtype.int_range()) {
        (Operand::Scalar(Scalar::Int(v)), Some((low, high))) if (i64::MIN.into()..=u64::MAX.into()).contains(v) => {
            Operand::Scalar(Scalar::Int(low + (v - low).rem_euclid(high - low + 1)))
        }
        _ => x,
    }
}

fn astype_by_name(args: &Args) -> Result<Value> {
    args.array("x")?.astype(args.dtype("dtype")?.unwrap_or(DType::F64)).map(Value::Array)
}

/// Complex conjugate, elementwise (`numpy.conj`).
///
/// Bool becomes int8, and other real numbers are unchanged. [`NdArray::conj`] also leaves bool unchanged, as NumPy's method does.
///
/// # Errors
/// Errors of evaluation, if deferral is disabled.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{Complex, array, conj};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(conj(&array![Complex::new(1.0, 2.0)])?, array![Complex::new(1.0, -2.0)]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "conjugate")]
#[numpy("conj(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)", aliases("conjugate"))]
pub fn conj(x: impl Into<Operand>) -> Result<NdArray> {
    elementwise_moving(CONJ, &mut [x.into()])
}

/// Limits `x` to `low..=high`; either bound may be `None` (`numpy.clip`).
///
/// `x` and the bounds broadcast and promote together. Where `low` is greater than `high`, the result is `high`. NaN in `x` or in a bound
/// gives NaN. A Python int as a bound has no effect if every value of the integer dtype satisfies it.
///
/// # Errors
/// Shapes that do not broadcast, arrays on different devices, a Python int that the promoted dtype cannot hold, or bool
/// without bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, clip};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1u8, 20, 200])?;
/// assert_eq!(clip(&a, Some((-5).into()), Some(100.into()))?.to_vec::<u8>()?, [1, 20, 100]);
/// # Ok(())
/// # }
/// ```
#[numpy("clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None)", call = clip_by_name)]
pub fn clip(x: impl Into<Operand>, low: Option<Operand>, high: Option<Operand>) -> Result<NdArray> {
    let name = CLIP.name();
    let x = match x.into() {
        Operand::Array(a) => a,
        // A number as `x` becomes an array: unlike a weak scalar, an array does not adopt the dtype of the bounds.
        Operand::Scalar(s) => {
            let device = [&low, &high].into_iter().flatten().find_map(|b| if let Operand::Array(a) = b { Some(a.device()) } else { None });
            full_on_device(device.map_or_else(Device::current, Ok)?, &[], s, s.default_dtype())?
        }
    };
    let limits = |bound: &Operand, is_low: bool| match (bound, x.dtype().int_range()) {
        (Operand::Scalar(Scalar::Int(v)), Some((least, _))) if is_low => *v > least,
        (Operand::Scalar(Scalar::Int(v)), Some((_, greatest))) => *v < greatest,
        _ => true,
    };
    let (low, high) = (low.filter(|b| limits(b, true)), high.filter(|b| limits(b, false)));
    let args: SmallVec<[Operand; 3]> = [Some(Operand::from(&x)), low.clone(), high.clone()].into_iter().flatten().collect();
    if args.len() == 1 {
        return positive(x);
    }
    let signature = TypeRule::Ordered.resolve_dtypes(name, &args.iter().map(Operand::arg_type).collect::<SmallVec<[ArgumentType; 3]>>())?;
    check_operands(name, &args, &signature)?;
    common_shape(name, &args)?;
    let promoted = |bound: Operand| match bound {
        Operand::Array(a) => a.astype(signature.result).map(Operand::Array),
        scalar => Ok(scalar),
    };
    let mut result = x.astype(signature.result)?;
    if let Some(low) = low {
        result = maximum(result, promoted(low)?)?;
    }
    if let Some(high) = high {
        result = minimum(result, promoted(high)?)?;
    }
    Ok(result)
}

/// Calls [`clip`] by name, as `clip(a, a_min, a_max)` or `clip(a, min=, max=)`.
fn clip_by_name(args: &Args) -> Result<Value> {
    let is_given = |name: &str| args.get(name).is_some() || args.is_none(name);
    let (low, high) = match (is_given("a_min"), is_given("a_max")) {
        (false, false) => ("min", "max"),
        (true, true) if is_given("min") || is_given("max") => {
            return Err(Error::value(CLIP.name(), "give either 'a_min' and 'a_max', or 'min' and 'max'"));
        }
        (true, true) => ("a_min", "a_max"),
        (has_low, _) => {
            let missing = if has_low { "a_max" } else { "a_min" };
            return Err(Error::value(CLIP.name(), format!("argument '{missing}' is missing; it may be None")));
        }
    };
    clip(args.operand("a")?, args.operand_or_none(low)?, args.operand_or_none(high)?).map(Value::Array)
}

/// # Conversion, powers and rounding
///
/// Elementwise methods that take further arguments.
#[free_functions]
impl NdArray {
    /// Returns the array converted to `dtype` (`numpy.ndarray.astype`).
    ///
    /// Integers wrap. Floats to integers truncate and saturate, and NaN becomes 0. Complex to real drops the imaginary part. Anything to
    /// bool is "not zero". If the dtype is unchanged, the result is this handle.
    ///
    /// # Errors
    /// Errors of evaluation, if the array's expression has to be evaluated.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[-1.5, 2.7, 300.0])?;
    /// assert_eq!(a.astype(DType::U8)?.to_vec::<u8>()?, [0, 2, 255]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("astype(x, dtype)", method, differs = "floats out of an integer's range saturate, NaN gives 0", call = astype_by_name)]
    pub fn astype(&self, dtype: DType) -> Result<NdArray> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        build_with_dtypes(ASTYPE, &mut [self.into()], DTypeSignature { args: [dtype; MAX_ARITY], result: dtype })
    }

    /// `self ** exponent`, as NumPy's operator computes it (`numpy.ndarray.__pow__`).
    ///
    /// Three exponents have their own functions: [`square`] for the integer 2, and for floating and complex arrays [`reciprocal`] for
    /// the integer -1 and [`sqrt`] for 0.5. Thus bool to the power of 2 is int8, and complex roots are exact. Other exponents
    /// use [`power()`].
    ///
    /// # Errors
    /// The errors of [`power()`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Complex, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[Complex::new(-4.0, 0.0)])?;
    /// assert_eq!(a.power(0.5)?.to_vec::<Complex<f64>>()?, [Complex::new(0.0, 2.0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn power(&self, exponent: impl Into<Operand>) -> Result<NdArray> {
        let exponent = exponent.into();
        match exponent {
            Operand::Scalar(Scalar::Int(2)) => square(self),
            Operand::Scalar(Scalar::Int(-1)) if self.dtype().is_inexact() => reciprocal(self),
            Operand::Scalar(Scalar::Float(y)) if y == 0.5 && self.dtype().is_inexact() => sqrt(self),
            exponent => power(self, exponent),
        }
    }

    /// Returns the complex conjugate (`numpy.ndarray.conj`); for real numbers and bool, this handle.
    ///
    /// # Errors
    /// Errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{Complex, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[Complex::new(1.0, 2.0)])?;
    /// assert_eq!(a.conj()?.to_vec::<Complex<f64>>()?, [Complex::new(1.0, -2.0)]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "conjugate")]
    #[numpy("ndarray.conj(a)", aliases("ndarray.conjugate"))]
    pub fn conj(&self) -> Result<NdArray> {
        if self.dtype().is_complex() { conj(self) } else { Ok(self.clone()) }
    }

    /// Returns the array limited to `low..=high` (`numpy.ndarray.clip`). See [`clip`].
    ///
    /// # Errors
    /// The errors of [`clip`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[-3, 1, 9])?;
    /// assert_eq!(a.clip(0, 5)?.to_vec::<i32>()?, [0, 1, 5]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("ndarray.clip(a, min=None, max=None)", call = |args| clip(args.operand("a")?, args.operand_or_none("min")?, args.operand_or_none("max")?).map(Value::Array))]
    pub fn clip(&self, low: impl Into<Operand>, high: impl Into<Operand>) -> Result<NdArray> {
        clip(self, Some(low.into()), Some(high.into()))
    }

    /// Rounds to a number of decimals, ties to even (`numpy.round`).
    ///
    /// `decimals` may be negative. Integers are unchanged for `decimals >= 0`, and complex numbers round each part. A power of ten that
    /// overflows gives infinity or NaN.
    ///
    /// # Errors
    /// A bool array, unless `decimals` is 0.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[0.5, 1.5, 2.25])?;
    /// assert_eq!(a.round(0)?.to_vec::<f64>()?, [0.0, 2.0, 2.0]);
    /// assert_eq!(a.round(1)?.to_vec::<f64>()?, [0.5, 1.5, 2.2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("round(a, decimals=0, out=None)", aliases("around"), method)]
    pub fn round(&self, decimals: i32) -> Result<NdArray> {
        let integral = self.dtype().is_int();
        match decimals {
            d if d >= 0 && integral => Ok(self.clone()),
            0 => self.rint(),
            _ if self.dtype() == DType::Bool => Err(Error::dtype("round", "bool has no decimals; use astype first", &[DType::Bool])),
            d if self.dtype().is_complex() => self.interleaved_parts()?.round(d)?.parts_to_complex(self.dtype(), self.shape()),
            d if d > 0 => {
                let scale = 10f64.powi(d);
                divide(&multiply(self, scale)?.rint()?, scale)
            }
            d => {
                let scale = 10f64.powi(d.saturating_neg());
                let rounded = multiply(&divide(self, scale)?.rint()?, scale)?;
                if integral { rounded.astype(self.dtype()) } else { Ok(rounded) }
            }
        }
    }

    /// Returns the real and imaginary parts of a complex array, interleaved along one axis.
    fn interleaved_parts(&self) -> Result<NdArray> {
        let stored = self.contiguous()?.stored()?;
        let layout = Layout::strided(&[2 * self.size()], &[1], 2 * stored.layout().offset())?;
        StoredArray::new(self.dtype().real(), layout, stored.buffer().clone()).map(NdArray::from)
    }

    /// Returns the complex array of `shape` whose real and imaginary parts [`NdArray::interleaved_parts`] has interleaved in `self`.
    fn parts_to_complex(&self, dtype: DType, shape: &[usize]) -> Result<NdArray> {
        let stored = self.copy()?.stored()?;
        StoredArray::new(dtype, Layout::contiguous(shape)?, stored.buffer().clone()).map(NdArray::from)
    }
}
