//! Appends an operation on a uniquely owned deferred array to the array's node instead of allocating another node.
//!
//! In `a * 2 + 1` no handle to `a * 2` remains, so the addition becomes part of the node of the product.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::expression_node::{AppendedOperation, DeferredOperation, Expression, ExpressionWeight, NdArray, Operand};
use crate::op::{Family, Op};

/// Initial capacity of the list of operations that are appended to a deferred array's node ([`AppendedOperation`]).
const INITIAL_APPENDED_CAPACITY: usize = 10;

/// Returns whether `op` can be appended to a node, and can have operations appended to its own node. This is the case if every device
/// computes `op` as a step of a program.
fn is_appendable(op: Op) -> bool {
    op.family() == Family::Map && !op.is_defined_in_another_crate() && (op.0.composite.is_none() || op.is_dtype_conversion())
}

/// Returns the index of the argument whose node the operation can be appended to, or `None`.
///
/// Only the first array of `args` is considered, so that inputs keep their order. That array must have the result's shape and a single
/// handle, and no evaluation may have computed its node yet.
fn appendable_argument(op: Op, args: &[Operand]) -> Option<usize> {
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
        && inner.op.is_some_and(is_appendable)
        && is_appendable(op)
        && inner.inlined.load(Ordering::Relaxed) == 0
        && args[index + 1..].iter().all(is_covered);
    fits.then_some(index)
}

/// Appends `operation` to the node of one of its arguments, and returns the array of that node.
///
/// `weight` is the size and cost of the result. Returns `None`, with `args` unchanged, if the operation needs its own node.
pub(super) fn append_operation(operation: DeferredOperation, args: &mut [Operand], weight: ExpressionWeight) -> Option<NdArray> {
    let index = appendable_argument(operation.op, args)?;
    let (before, rest) = args.split_at_mut(index);
    let (argument, after) = rest.split_first_mut()?;
    let Operand::Array(array) = argument else { return None };
    let inner = Arc::get_mut(&mut array.0)?;
    let Ok(Some(Expression::Elementwise { then, .. })) = inner.expr.get_mut() else { return None };
    if then.is_empty() {
        then.reserve(INITIAL_APPENDED_CAPACITY);
    }
    then.push(AppendedOperation { operation, previous_result_index: index as u8, others: SmallVec::new() });
    let others = &mut then.last_mut()?.others; // filled in place, since operands are large to move
    for other in before.iter_mut().chain(after) {
        others.push(other.take_operand());
    }
    (inner.op, inner.dtype, inner.weight) = (Some(operation.op), operation.signature.result, weight);
    match argument.take_operand() {
        Operand::Array(array) => Some(array),
        Operand::Scalar(_) => None,
    }
}
