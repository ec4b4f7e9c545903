//! Operation chaining: an operation on a uniquely owned deferred array is appended to the array's node.
//!
//! `a * 2 + 1` leaves no handle to `a * 2`, so the addition needs no node, lock or visit of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::node::{ChainedOperation, DeferredOperation, Expression, ExpressionWeight, NdArray, Operand};
use crate::op::{Family, Op};

/// Initial capacity of the list of operations that are appended to a deferred array's node ([`ChainedOperation`]).
const CHAINED_OPERATIONS_CAPACITY: usize = 10;

/// Returns whether an operation can be chained: every device computes it as a step of a program.
fn is_chainable(op: Op) -> bool {
    op.family() == Family::Map && !op.is_foreign() && (op.0.composite.is_none() || op.is_conversion())
}

/// Returns the index of the argument to which the operation can be chained, if there is one.
///
/// The argument is the first array, so that inputs keep their order. It has the result's shape, one handle, and was not computed before.
fn chainable_argument(op: Op, args: &[Operand]) -> Option<usize> {
    let is_array = |arg: &Operand| matches!(arg, Operand::Array(_));
    let index = args.iter().position(is_array)?;
    let Operand::Array(array) = &args[index] else { return None };
    let inner = &array.0;
    let is_covered = |arg: &Operand| match arg {
        Operand::Array(a) => a.shape() == array.shape(),
        Operand::Scalar(_) => true,
    };
    let fits = Arc::strong_count(inner) == 1
        && array.is_deferred()
        && inner.op.is_some_and(is_chainable)
        && is_chainable(op)
        && inner.inlined.load(Ordering::Relaxed) == 0
        && args[index + 1..].iter().all(is_covered);
    fits.then_some(index)
}

/// Appends `operation` to the node of one of its arguments, and returns the array of that node.
///
/// `weight` is the size and cost of the result. Returns `None`, with `args` unchanged, if the operation needs its own node.
pub(super) fn append_operation(operation: DeferredOperation, args: &mut [Operand], weight: ExpressionWeight) -> Option<NdArray> {
    let index = chainable_argument(operation.op, args)?;
    let (before, rest) = args.split_at_mut(index);
    let (argument, after) = rest.split_first_mut()?;
    let Operand::Array(array) = argument else { return None };
    let inner = Arc::get_mut(&mut array.0)?;
    let Ok(Some(Expression::Elementwise { then, .. })) = inner.expr.get_mut() else { return None };
    if then.is_empty() {
        then.reserve(CHAINED_OPERATIONS_CAPACITY);
    }
    then.push(ChainedOperation { operation, chained_argument: index as u8, others: SmallVec::new() });
    let others = &mut then.last_mut()?.others; // filled in place, since operands are large
    for other in before.iter_mut().chain(after) {
        others.push(other.take_operand());
    }
    (inner.op, inner.dtype, inner.weight) = (Some(operation.op), operation.signature.result, weight);
    match argument.take_operand() {
        Operand::Array(array) => Some(array),
        Operand::Scalar(_) => None,
    }
}
