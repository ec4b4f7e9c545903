//! Comparisons of integers that the promoted dtype cannot represent.

use crate::array::NdArray;
use crate::dtype::{DType, Kind};
use crate::error::Result;
use crate::expr::{Operand, elementwise_with_dtypes};
use crate::op::{DTypeSignature, MAX_ARITY, Op};
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::{EQUAL, GREATER, LESS, LESS_EQUAL, NOT_EQUAL, less, where_};
use crate::scalar::Scalar;

/// Compares operands that their promoted dtype cannot represent exactly: arrays of signed integers with uint64, and integer arrays with a
/// Python int outside the range of their dtype.
///
/// Returns `None` for all other operands.
pub(super) fn try_compare_exactly(op: Op, x1: &Operand, x2: &Operand) -> Result<Option<NdArray>> {
    let compare = |a: Operand, b: Operand| {
        elementwise_with_dtypes(op, &mut [a, b], DTypeSignature { args: [DType::U64; MAX_ARITY], result: DType::Bool })
    };
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
            let when_negative = if flipped { compare_ints(op, 1, 0) } else { compare_ints(op, 0, 1) };
            Ok(Some(where_(&negative, when_negative, &plain)?))
        }
        (Operand::Array(a), Operand::Scalar(Scalar::Int(v))) => Ok(try_compare_with_out_of_range_int(op, a, *v, false)?),
        (Operand::Scalar(Scalar::Int(v)), Operand::Array(a)) => Ok(try_compare_with_out_of_range_int(op, a, *v, true)?),
        _ => Ok(None),
    }
}

/// Returns the comparison of the integer array `a` with `v` if `v` is outside the range of the array's dtype, so that all elements of the
/// result are equal. Returns `None` if `v` is in the range.
///
/// `flipped` means that `v` is the first operand.
fn try_compare_with_out_of_range_int(op: Op, a: &NdArray, v: i128, flipped: bool) -> Result<Option<NdArray>> {
    let Some((lo, hi)) = a.dtype().int_range() else { return Ok(None) };
    if (lo..=hi).contains(&v) {
        return Ok(None);
    }
    let side = if v < lo { -1 } else { 1 };
    let answer = if flipped { compare_ints(op, side, 0) } else { compare_ints(op, 0, side) };
    full_on_device(a.device(), a.shape(), Scalar::Bool(answer), DType::Bool).map(Some)
}

/// Evaluates a comparison of two ints.
fn compare_ints(op: Op, a: i32, b: i32) -> bool {
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
