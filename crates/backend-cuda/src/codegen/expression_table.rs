//! C++ expressions of the core crate's elementwise operations, one entry per operation in the core crate's order.
//!
//! `$0`, `$1`, `$2` are the arguments, converted to the argument dtypes of the operation. Operations that need
//! more than an expression are functions of namespace `op` in the prelude.

use std::ops::Deref;

use cuprum_core::ops::elementwise as core;
use cuprum_core::ops::take::FUSED_TAKE;
use cuprum_core::{Op, Program};

/// The C++ expression of an elementwise operation, with `$0`, `$1`, ... for its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CppExpression(&'static str);

impl CppExpression {
    /// Returns the expression with `$k` replaced by the variable `tN` of step `N = args[k]`.
    pub fn substitute_step_variables(self, args: &[u16]) -> String {
        (0..args.len()).fold(self.0.to_owned(), |text, n| text.replace(&format!("${n}"), &format!("t{}", args[n])))
    }

    /// Returns the expression with `$k` replaced by `args[k]`.
    pub fn with_arguments<const N: usize>(self, args: [&str; N]) -> String {
        args.iter().enumerate().fold(self.0.to_owned(), |text, (n, arg)| text.replace(&format!("${n}"), arg))
    }
}

impl Deref for CppExpression {
    type Target = str;
    fn deref(&self) -> &str {
        self.0
    }
}

/// Returns the C++ expression of `op`, or `None` if `op` is not an elementwise operation of the core crate.
pub fn cpp_expression(op: Op) -> Option<CppExpression> {
    // The table has the order of the core crate's operations, so the entry at the operation's index is usually the right one.
    let row = CPP_EXPRESSIONS.get(op.index()).filter(|row| row.0 == op).or_else(|| CPP_EXPRESSIONS.iter().find(|row| row.0 == op));
    row.map(|row| CppExpression(row.1))
}

/// Returns whether C++ code can be generated for `op`: an elementwise operation of the core crate, a fused `take`, or a user-defined
/// operation with code.
pub fn has_cpp_expression(op: Op) -> bool {
    op.0.body.is_some() || op == FUSED_TAKE || cpp_expression(op).is_some()
}

/// Returns whether a kernel of `program` may find an index out of bounds at run time. The kernel then reports a fault.
pub fn may_fault(program: &Program) -> bool {
    program.ops().any(|op| op == FUSED_TAKE)
}

static CPP_EXPRESSIONS: &[(Op, &str)] = &[
    (core::POSITIVE, "$0"),
    (core::NEGATIVE, "op::negative($0)"),
    (core::ABS, "op::abs($0)"),
    (core::SIGN, "op::sign($0)"),
    (core::SQUARE, "op::multiply($0, $0)"),
    (core::RECIPROCAL, "op::reciprocal($0)"),
    (core::SQRT, "op::sqrt($0)"),
    (core::CBRT, "op::cbrt($0)"),
    (core::EXP, "op::exp($0)"),
    (core::EXP2, "op::exp2($0)"),
    (core::EXPM1, "op::expm1($0)"),
    (core::LOG, "op::log($0)"),
    (core::LOG2, "op::log2($0)"),
    (core::LOG10, "op::log10($0)"),
    (core::LOG1P, "op::log1p($0)"),
    (core::SIN, "op::sin($0)"),
    (core::COS, "op::cos($0)"),
    (core::TAN, "op::tan($0)"),
    (core::ASIN, "op::asin($0)"),
    (core::ACOS, "op::acos($0)"),
    (core::ATAN, "op::atan($0)"),
    (core::SINH, "op::sinh($0)"),
    (core::COSH, "op::cosh($0)"),
    (core::TANH, "op::tanh($0)"),
    (core::ASINH, "op::asinh($0)"),
    (core::ACOSH, "op::acosh($0)"),
    (core::ATANH, "op::atanh($0)"),
    (core::DEG2RAD, "op::deg2rad($0)"),
    (core::RAD2DEG, "op::rad2deg($0)"),
    (core::FLOOR, "op::floor($0)"),
    (core::CEIL, "op::ceil($0)"),
    (core::TRUNC, "op::trunc($0)"),
    (core::RINT, "op::rint($0)"),
    (core::ISNAN, "op::isnan($0)"),
    (core::ISINF, "op::isinf($0)"),
    (core::ISFINITE, "op::isfinite($0)"),
    (core::LOGICAL_NOT, "!$0"),
    (core::BITWISE_INVERT, "op::bitwise_invert($0)"),
    (core::REAL, "op::real($0)"),
    (core::IMAG, "op::imag($0)"),
    (core::SUBTRACT, "op::subtract($0, $1)"),
    (core::MULTIPLY, "op::multiply($0, $1)"),
    (core::DIVIDE, "op::divide($0, $1)"),
    (core::FLOOR_DIVIDE, "op::floor_divide($0, $1)"),
    (core::REMAINDER, "op::remainder($0, $1)"),
    (core::FMOD, "op::truncated_remainder($0, $1)"),
    (core::MINIMUM, "op::minimum($0, $1)"),
    (core::MAXIMUM, "op::maximum($0, $1)"),
    (core::FMIN, "op::minimum_number($0, $1)"),
    (core::FMAX, "op::maximum_number($0, $1)"),
    (core::ATAN2, "op::atan2($0, $1)"),
    (core::HYPOT, "op::hypot($0, $1)"),
    (core::COPYSIGN, "op::copy_sign($0, $1)"),
    (core::EQUAL, "op::equal($0, $1)"),
    (core::NOT_EQUAL, "!op::equal($0, $1)"),
    (core::LESS, "op::less($0, $1)"),
    (core::LESS_EQUAL, "op::less_equal($0, $1)"),
    (core::GREATER, "op::less($1, $0)"),
    (core::GREATER_EQUAL, "op::less_equal($1, $0)"),
    (core::LOGICAL_AND, "$0 && $1"),
    (core::LOGICAL_OR, "$0 || $1"),
    (core::LOGICAL_XOR, "$0 != $1"),
    (core::BITWISE_AND, "$0 & $1"),
    (core::BITWISE_OR, "$0 | $1"),
    (core::BITWISE_XOR, "$0 ^ $1"),
    (core::LEFT_SHIFT, "op::left_shift($0, $1)"),
    (core::RIGHT_SHIFT, "op::right_shift($0, $1)"),
    (core::GCD, "op::gcd($0, $1)"),
    (core::LCM, "op::lcm($0, $1)"),
    (core::ADD, "op::add($0, $1)"),
    (core::MODF_FRACTION, "op::modf_fraction($0)"),
    (core::FREXP_MANTISSA, "op::frexp_mantissa($0)"),
    (core::FREXP_EXPONENT, "op::frexp_exponent($0)"),
    (core::LDEXP, "op::times_power_of_2($0, $1)"),
    (core::CONJ, "op::conj($0)"),
    (core::POWER, "op::power($0, $1)"),
    (core::WHERE, "$0 ? $1 : $2"),
    (core::ASTYPE, "$0"),
    (core::CLIP, "op::minimum(op::maximum($0, $1), $2)"),
    (core::ROUND, "op::rint($0)"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_core::Family;

    #[test]
    fn a_row_for_every_elementwise_operation_in_cores_order() {
        let ops: Vec<Op> = Op::all().filter(|op| op.family() == Family::Map).collect();
        let rows: Vec<Op> = CPP_EXPRESSIONS.iter().map(|row| row.0).collect();
        assert_eq!(ops, rows);
        for (op, text) in CPP_EXPRESSIONS {
            for n in 0..3 {
                assert_eq!(text.contains(&format!("${n}")), n < op.arity(), "{op:?}: {text}");
            }
        }
    }

    #[test]
    fn arguments_are_put_in() {
        assert_eq!(cpp_expression(core::SUBTRACT).unwrap().substitute_step_variables(&[12, 3]), "op::subtract(t12, t3)");
        assert_eq!(cpp_expression(core::WHERE).unwrap().substitute_step_variables(&[0, 1, 2]), "t0 ? t1 : t2");
    }
}
