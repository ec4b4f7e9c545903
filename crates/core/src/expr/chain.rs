//! Operation chaining: an operation on a uniquely owned deferred array is appended to the array's node.
//!
//! `a * 2 + 1` leaves no handle to `a * 2`, so the addition needs no node, lock or visit of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::{Expr, Flattened, Operand, Weight};
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{DTypeSignature, Family, MAX_ARITY, Op};
use crate::ops::elementwise::ASTYPE;
use crate::ops::indexing::FUSED_TAKE;
use crate::program::StepKind;

/// An elementwise operation with its argument and result dtypes.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub op: Op,
    pub signature: DTypeSignature,
}

/// An operation whose argument is the result of the previous operation of the node.
pub(super) struct ChainedOperation {
    operation: Operation,
    /// Index of the argument that is the previous result.
    chained_argument: u8,
    /// The other arguments, in order.
    pub others: SmallVec<[Operand; 1]>,
}

/// Initial capacity for chained operations.
const CHAIN_CAPACITY: usize = 10;

/// Returns whether an operation can be chained: every device computes it as a step of a program.
fn is_chainable(op: Op) -> bool {
    op.family() == Family::Map && !op.is_foreign() && op != FUSED_TAKE && (op.0.composite.is_none() || op == ASTYPE)
}

/// Returns the index of the argument to which the operation can be chained, if there is one.
///
/// It is the first array, so that inputs keep their order. It has the result's shape, one handle, and was not computed before.
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

/// Appends an operation to its argument's node and returns that array.
///
/// Returns `None`, with `args` unchanged, if the operation needs its own node.
pub(super) fn chain(operation: Operation, args: &mut [Operand], weight: Weight) -> Option<NdArray> {
    let index = chainable_argument(operation.op, args)?;
    let (before, rest) = args.split_at_mut(index);
    let (argument, after) = rest.split_first_mut()?;
    let Operand::Array(array) = argument else { return None };
    let inner = Arc::get_mut(&mut array.0)?;
    let Ok(Some(Expr::Elementwise { then, .. })) = inner.expr.get_mut() else { return None };
    if then.is_empty() {
        then.reserve(CHAIN_CAPACITY);
    }
    then.push(ChainedOperation { operation, chained_argument: index as u8, others: SmallVec::new() });
    let others = &mut then.last_mut()?.others; // filled in place, since operands are large
    for other in before.iter_mut().chain(after) {
        others.push(other.take());
    }
    (inner.op, inner.dtype, inner.weight) = (Some(operation.op), operation.signature.result, weight);
    match argument.take() {
        Operand::Array(array) => Some(array),
        Operand::Scalar(_) => None,
    }
}

impl Flattened {
    /// Appends the steps of an elementwise expression and returns the last one.
    pub(super) fn elementwise(&mut self, first: Operation, args: &[Operand], then: &[ChainedOperation], shape: &[usize]) -> Result<u16> {
        let mut step = self.operation(first, None, args, shape)?;
        for ChainedOperation { operation, chained_argument, others } in then {
            step = self.operation(*operation, Some((*chained_argument, step)), others, shape)?;
        }
        Ok(step)
    }

    /// Appends the steps of one operation. `known` is the index and the step of an argument that is already in the program.
    fn operation(&mut self, operation: Operation, known: Option<(u8, u16)>, others: &[Operand], shape: &[usize]) -> Result<u16> {
        let Operation { op, signature } = operation;
        let mut others = others.iter();
        let mut args = [0u16; MAX_ARITY];
        for (i, (arg, &want)) in args.iter_mut().zip(&signature.args).enumerate().take(op.arity()) {
            *arg = match known.filter(|(index, _)| usize::from(*index) == i) {
                Some((_, step)) => self.converted(step, want),
                None => match others.next() {
                    Some(Operand::Array(a)) => {
                        let step = self.visit(a, shape, false)?;
                        self.converted(step, want)
                    }
                    Some(Operand::Scalar(s)) => self.program.push_param(*s, want),
                    None => 0,
                },
            };
        }
        if op == ASTYPE {
            return Ok(args[0]); // the argument was converted above
        }
        let args = &args[..op.arity()];
        Ok(match self.rows {
            // The program of a variance often shares steps with the rest of the expression.
            Some(_) => self.program.push_once(StepKind::Apply(op), signature.result, args),
            None => self.program.push(StepKind::Apply(op), signature.result, args),
        })
    }

    /// Returns a step converted to `dtype`.
    fn converted(&mut self, step: u16, dtype: DType) -> u16 {
        if self.program.steps[step as usize].dtype == dtype { step } else { self.cast(step, dtype) }
    }
}
