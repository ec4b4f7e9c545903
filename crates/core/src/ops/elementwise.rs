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

mod astype;
mod clip;
mod conj;
mod exact_comparison;
mod multi_result_functions;
mod power;
mod round;

use cuprum_macros::numpy;

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{Operand, elementwise_consuming_args, run_as_composite};
use crate::function::{Function, Parameters};
use crate::op::{Cost, Family, Op, OpDef, TypeRule, result_type};
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;
use exact_comparison::try_compare_exactly;

pub use astype::astype;
pub use clip::clip;
pub use conj::conj;
pub use multi_result_functions::{DIVMOD, FREXP, MODF, MULTI_RESULT_OPS, divmod, frexp, modf};
pub use power::{ldexp, power};
pub use round::round;

/// Returns whether a table entry has the option `method`, which also declares a method of `ndarray`. `words` is `["method"]` if the entry
/// has the option, else empty.
const fn has_method_option(words: &[&str]) -> bool {
    !words.is_empty()
}

/// Expands to the example in the documentation of an operation. Results marked `near` are rounded to six decimals before the comparison.
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

static UNARY_UFUNC_PARAMETERS: Parameters = Parameters::new("x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None");
static BINARY_UFUNC_PARAMETERS: Parameters =
    Parameters::new("x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None");

/// Declares elementwise operations from tables of unary, binary and free entries. A free entry declares only the operation. Its function is
/// written elsewhere.
macro_rules! elementwise {
    (
        unary { $($U:ident $u:ident $urule:ident $ucost:ident [$($ualias:literal),*] $($umethod:ident)? $udoc:literal $ux:literal $ut:ident $uy:literal;)* }
        binary { $($B:ident $b:ident $brule:ident $bcost:ident [$($balias:literal),*] $(($boperator:literal))? $bdoc:literal $bx:literal $bx2:literal $bt:ident $by:literal;)* }
        free { $($F:ident $fname:literal $farity:literal $frule:ident $fcost:ident $fcomposite:expr;)* }
    ) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum OpIndex { $($U,)* $($B,)* $($F,)* End }
        /// The op index after that of the module's last op. It is the index of the first op of the next module.
        pub(crate) const NEXT_OP_INDEX: u16 = OpIndex::End as u16;
        mod op_definitions {
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
        $(#[doc = $udoc] pub const $U: Op = Op(&op_definitions::$U);)*
        $(#[doc = $bdoc] pub const $B: Op = Op(&op_definitions::$B);)*
        $(#[doc = concat!("The operation `", $fname, "`.")] pub const $F: Op = Op(&op_definitions::$F);)*
        /// Definitions of the ops that this module declares, in index order.
        pub static OP_DEFINITIONS: &[&OpDef] = &[$(&op_definitions::$U,)* $(&op_definitions::$B,)* $(&op_definitions::$F,)*];

        $(
            #[doc = $udoc]
            $(#[doc(alias = $ualias)])*
            #[doc = concat!("\n\nElementwise (`numpy.", stringify!($u), "`); the result is deferred. [`NdArray::", stringify!($u), "`] has an example.\n\n# Errors\nA dtype that the operation is not defined for.")]
            pub fn $u(x: impl Into<Operand>) -> Result<NdArray> { elementwise_consuming_args($U, &mut [x.into()]) }

            inventory::submit! {
                Function {
                    namespace: "", name: stringify!($u), aliases: &[$($ualias),*], parameters: &UNARY_UFUNC_PARAMETERS, doc: $udoc,
                    rust: concat!(module_path!(), "::", stringify!($u)), is_method: has_method_option(&[$(stringify!($umethod))?]), differs: "", updates_argument: false,
                    call: |args| $u(args.operand("x")?).map(Value::Array),
                }
            }
        )*
        $(
            #[doc = $bdoc]
            $(#[doc(alias = $balias)])*
            #[doc = concat!("\n\nElementwise with broadcasting (`numpy.", stringify!($b), "`); the result is deferred.\n\n# Errors\nShapes that do not broadcast, dtypes that the operation is not defined for, or arrays on different devices.\n")]
            #[doc = example!($b of function $bx, $bx2, $bt $by)]
            pub fn $b(x1: impl Into<Operand>, x2: impl Into<Operand>) -> Result<NdArray> { apply_binary_operation($B, x1.into(), x2.into()) }

            inventory::submit! {
                Function {
                    namespace: "", name: stringify!($b), aliases: &[$($balias),*], parameters: &BINARY_UFUNC_PARAMETERS, doc: $bdoc,
                    rust: concat!(module_path!(), "::", stringify!($b)), is_method: false, differs: "", updates_argument: false,
                    call: |args| $b(args.operand("x1")?, args.operand("x2")?).map(Value::Array),
                }
            }
        )*
        /// The elementwise functions alone, for re-exports without the op constants and their definitions.
        pub mod functions {
            #[doc(inline)]
            pub use super::{add, astype, clip, conj, divmod, frexp, ldexp, modf, power, round, where_, $($u,)* $($b,)*};
        }

        /// # Elementwise operations
        ///
        /// The results are deferred and fused. Each method is also a function that takes arrays and numbers, such as
        /// [`sin()`](crate::sin()).
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
        COPYSIGN copysign Float Cheap [] "Magnitude of `x1` with the sign of `x2`. Zeros and NaN have a sign, too." "[1.5, 2.0]" "[-0.0, 3.0]" f64 "[-1.5, 2.0]";
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

/// Applies a binary operation. Integers are compared without promotion if the promoted dtype cannot represent them exactly.
fn apply_binary_operation(op: Op, x1: Operand, x2: Operand) -> Result<NdArray> {
    if op.0.rule == Some(TypeRule::Compare)
        && let Some(exact) = try_compare_exactly(op, &x1, &x2)?
    {
        return Ok(exact);
    }
    elementwise_consuming_args(op, &mut [x1, x2])
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
    elementwise_consuming_args(ADD, &mut [x1.into(), x2.into()])
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

/// Calls [`where_`] with Python-like arguments. With the condition alone, returns [`NdArray::nonzero`], as NumPy does.
fn where_from_args(args: &Args) -> Result<Value> {
    match (args.operand_or_none("x")?, args.operand_or_none("y")?) {
        (None, None) => {
            let indices = args.array("condition")?.nonzero().map_err(|e| e.with_function_name(args.op()))?;
            Ok(Value::tuple(indices.into_iter().map(Value::Array)))
        }
        (Some(x), Some(y)) => where_(args.operand("condition")?, x, y).map(Value::Array),
        _ => Err(Error::value(args.op(), "either both or neither of x and y should be given")),
    }
}

/// Selects `x` where `condition` is true and `y` elsewhere, with broadcasting (`numpy.where`).
///
/// Python ints outside the range of an integer result dtype wrap.
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
#[numpy("where(condition, x=None, y=None, /)", call = where_from_args)]
pub fn where_(condition: impl Into<Operand>, x: impl Into<Operand>, y: impl Into<Operand>) -> Result<NdArray> {
    let (x, y) = (x.into(), y.into());
    let dtype = result_type(&[x.argument_type(), y.argument_type()]);
    elementwise_consuming_args(WHERE, &mut [condition.into(), wrap_if_python_int(x, dtype), wrap_if_python_int(y, dtype)])
}

/// Wraps a Python int `x` modulo 2^bits into the range of an integer `dtype`, as `astype` does. NumPy rejects such ints in ufuncs, and
/// `where` is not a ufunc.
fn wrap_if_python_int(x: Operand, dtype: DType) -> Operand {
    match (&x, dtype.int_range()) {
        (Operand::Scalar(Scalar::Int(v)), Some((low, high))) if (i64::MIN.into()..=u64::MAX.into()).contains(v) => {
            Operand::Scalar(Scalar::Int(low + (v - low).rem_euclid(high - low + 1)))
        }
        _ => x,
    }
}
