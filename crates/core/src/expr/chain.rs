//! Chains: an operation on a deferred array that nobody else holds becomes part of that array's node. `a * 2 + 1` leaves no handle on
//! `a * 2`, so nobody can ask for it, and it needs no node, no lock and no place among those that were visited.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::{Expr, Flattened, Operand, Weight};
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Family, MAX_ARITY, Op, Signature};
use crate::ops::elementwise::ASTYPE;
use crate::ops::indexing::TAKE_EACH;
use crate::program::StepKind;

/// An elementwise operation and the dtypes that it works in.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub op: Op,
    pub signature: Signature,
}

/// An operation on the value of those before it in the node.
pub(super) struct Link {
    operation: Operation,
    /// Which argument that value is.
    place: u8,
    /// The other arguments, in order.
    pub others: SmallVec<[Operand; 1]>,
}

/// Links that there is room for at first.
const LINKS: usize = 10;

/// Whether an operation can be part of a chain: it is computed as a step, on every device and in no other way.
fn is_plain(op: Op) -> bool {
    op.family() == Family::Map && !op.is_foreign() && op != TAKE_EACH && (op.0.composite.is_none() || op == ASTYPE)
}

/// Which argument the operation can be chained to: the first array, so that inputs keep their order. It is of the result's shape, this is
/// its only handle, and it has not been computed before, so that it need not be kept.
fn place(op: Op, args: &[Operand]) -> Option<usize> {
    let is_array = |arg: &Operand| matches!(arg, Operand::Array(_));
    let place = args.iter().position(is_array)?;
    let Operand::Array(array) = &args[place] else { return None };
    let inner = &array.0;
    let is_covered = |arg: &Operand| match arg {
        Operand::Array(a) => a.shape() == array.shape(),
        Operand::Scalar(_) => true,
    };
    let fits = Arc::strong_count(inner) == 1
        && array.is_deferred()
        && inner.op.is_some_and(is_plain)
        && is_plain(op)
        && inner.inlined.load(Ordering::Relaxed) == 0
        && args[place + 1..].iter().all(is_covered);
    fits.then_some(place)
}

/// The result of an operation as its argument's node with one more link. `None`, and the arguments as they were, if it needs a node of
/// its own.
pub(super) fn chained(operation: Operation, args: &mut [Operand], weight: Weight) -> Option<NdArray> {
    let place = place(operation.op, args)?;
    let (before, rest) = args.split_at_mut(place);
    let (argument, after) = rest.split_first_mut()?;
    let Operand::Array(array) = argument else { return None };
    let inner = Arc::get_mut(&mut array.0)?;
    let Ok(Some(Expr::Elementwise { then, .. })) = inner.expr.get_mut() else { return None };
    if then.is_empty() {
        then.reserve(LINKS);
    }
    then.push(Link { operation, place: place as u8, others: SmallVec::new() });
    let others = &mut then.last_mut()?.others; // filled where they stay
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
    /// The steps of an elementwise expression.
    pub(super) fn elementwise(&mut self, first: Operation, args: &[Operand], then: &[Link], shape: &[usize]) -> Result<u16> {
        let mut step = self.operation(first, None, args, shape)?;
        for Link { operation, place, others } in then {
            step = self.operation(*operation, Some((*place, step)), others, shape)?;
        }
        Ok(step)
    }

    /// The steps of one operation, of which one argument may be there already.
    fn operation(&mut self, operation: Operation, known: Option<(u8, u16)>, others: &[Operand], shape: &[usize]) -> Result<u16> {
        let Operation { op, signature } = operation;
        let mut others = others.iter();
        let mut args = [0u16; MAX_ARITY];
        for (i, (arg, &want)) in args.iter_mut().zip(&signature.args).enumerate().take(op.arity()) {
            *arg = match known.filter(|(place, _)| usize::from(*place) == i) {
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
            return Ok(args[0]); // it has been converted already
        }
        let args = &args[..op.arity()];
        Ok(match self.rows {
            // What a variance is made of is often written beside it.
            Some(_) => self.program.push_once(StepKind::Apply(op), signature.result, args),
            None => self.program.push(StepKind::Apply(op), signature.result, args),
        })
    }

    /// A step as `dtype`.
    fn converted(&mut self, step: u16, dtype: DType) -> u16 {
        if self.program.steps[step as usize].dtype == dtype { step } else { self.cast(step, dtype) }
    }
}
