//! C++ expressions by which a reduction combines accumulators, for reductions whose accumulator is a scalar.

use cuprum_core::op::{Combine, ReductionDef};
use cuprum_core::{DType, Op, Scalar};

use super::{cpp_expression, ctype};

/// The C++ expressions of a reduction whose accumulator is a scalar.
#[derive(Clone, Debug)]
pub struct AccumulatorCode {
    /// C++ type of the accumulator.
    pub acc: &'static str,
    /// Size of the accumulator, in bytes.
    pub size: usize,
    /// C++ expression of the neutral element of `combine`.
    pub identity: String,
    /// C++ expression, of type `Acc`, that converts an element `x` to an accumulator.
    pub value: &'static str,
    /// C++ expression that combines accumulators `a` and `b`, in this order.
    pub combine: String,
    /// C++ expression, of type `Out`, that converts an accumulator `a` to the result.
    pub finish: &'static str,
}

impl AccumulatorCode {
    /// Returns the C++ expressions of the reduction operation `op` with accumulators of dtype `acc`. Returns `None` if the accumulator is
    /// not a scalar, as for variances, or if an operation has no C++ expression.
    ///
    /// A reduction of another crate may combine accumulators with a C++ function, which
    /// [`element_source_with_user_functions`](super::element_source_with_user_functions) writes.
    pub fn of(op: Op, reduction: &ReductionDef, acc: DType) -> Option<AccumulatorCode> {
        let size = acc.itemsize();
        let (dtype, acc) = (acc, ctype(acc));
        let (value, combine, finish) = match reduction.combine {
            Combine::Elementwise(by) => ("cast<Acc>(x)", cpp_expression(by)?.with_arguments(["a", "b"]), "cast<Out>(a)"),
            Combine::Body => ("x", format!("{}<{acc}>(a, b)", op.0.body?.source.last()?.0), "a"),
            Combine::Moments => return None,
        };
        Some(AccumulatorCode { acc, size, identity: cpp_literal(acc, reduction.identity.of(dtype)), value, combine, finish })
    }
}

/// Returns a C++ expression for `value`, converted to the C++ type `cpp_type`.
fn cpp_literal(cpp_type: &str, value: Scalar) -> String {
    let literal = match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) if value < 0 => format!("static_cast<i64>({:#x}ull)", value as i64),
        Scalar::Int(value) if value > i64::MAX as i128 => format!("{value}ull"),
        Scalar::Int(value) => format!("i64({value})"),
        Scalar::Float(value) => f64_literal(value),
        Scalar::Complex(value) => format!("c128({}, {})", f64_literal(value.re), f64_literal(value.im)),
    };
    format!("cast<{cpp_type}>({literal})")
}

fn f64_literal(value: f64) -> String {
    format!("bits_to_f64({:#x}ull)", value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_their_bits() {
        assert_eq!(cpp_literal("i8", Scalar::Int(-128)), "cast<i8>(static_cast<i64>(0xffffffffffffff80ull))");
        assert_eq!(cpp_literal("i8", Scalar::Int(127)), "cast<i8>(i64(127))");
        assert_eq!(cpp_literal("u64", Scalar::Int(u64::MAX.into())), "cast<u64>(18446744073709551615ull)");
        assert_eq!(cpp_literal("f32", Scalar::Float(f64::NEG_INFINITY)), "cast<f32>(bits_to_f64(0xfff0000000000000ull))");
        assert_eq!(cpp_literal("bool", Scalar::Bool(true)), "cast<bool>(true)");
    }
}
