//! C++ expressions for user-defined reductions: those with a body, and those from strings.

use cuprum_core::body::Body;
use cuprum_core::{DType, Scalar};

use super::ctype;

/// The C++ expressions of a user-defined reduction.
#[derive(Clone, Debug)]
pub struct Combination {
    /// Type of the accumulator.
    pub acc: &'static str,
    /// Size of the accumulator, in bytes.
    pub size: usize,
    /// The neutral element of `combine`.
    pub identity: String,
    /// Accumulator of an element `x`.
    pub value: &'static str,
    /// Combination of accumulators `a` and `b`. Commutative.
    pub combine: String,
    /// Result of accumulator `a`, of type `Out`.
    pub finish: &'static str,
}

impl Combination {
    /// Returns the combination of a body for elements of a dtype, or `None` if the body is not a reduction.
    /// [`element_and`](super::element_and) writes the body's functions.
    pub fn of_body(body: &Body, dtype: DType) -> Option<Combination> {
        let ((name, _), identity) = (body.source.last()?, body.identity?.of(dtype));
        let (acc, size) = (ctype(dtype), dtype.itemsize());
        let (identity, combine) = (number(acc, identity), format!("{name}<{acc}>(a, b)"));
        Some(Combination { acc, size, identity, value: "x", combine, finish: "a" })
    }
}

/// Returns a C++ literal of a value, converted to a type.
fn number(of: &str, value: Scalar) -> String {
    let literal = match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) if value < 0 => format!("static_cast<i64>({:#x}ull)", value as i64),
        Scalar::Int(value) => format!("{value}ull"),
        Scalar::Float(value) => bits(value),
        Scalar::Complex(value) => format!("c128({}, {})", bits(value.re), bits(value.im)),
    };
    format!("cast<{of}>({literal})")
}

fn bits(value: f64) -> String {
    format!("bits_to_f64({:#x}ull)", value.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_bits() {
        assert_eq!(number("i8", Scalar::Int(-128)), "cast<i8>(static_cast<i64>(0xffffffffffffff80ull))");
        assert_eq!(number("u64", Scalar::Int(u64::MAX.into())), "cast<u64>(18446744073709551615ull)");
        assert_eq!(number("f32", Scalar::Float(f64::NEG_INFINITY)), "cast<f32>(bits_to_f64(0xfff0000000000000ull))");
        assert_eq!(number("bool", Scalar::Bool(true)), "cast<bool>(true)");
    }
}
