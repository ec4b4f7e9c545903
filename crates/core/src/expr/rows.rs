//! Deferred reductions over the last axes with `keepdims`, which are about to be broadcast.
//!
//! An expression over its own reductions, such as softmax or `(a - mean) / std`, then reads each row once. Only devices with row programs
//! defer reductions. If all their kernels decline, each reduction runs as a call of its own.

use crate::call;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;

use super::{Expr, Flattened, Inner, Operand, Weight};
use crate::array::{Array, NdArray, StoredArray};
use crate::call::{Call, OutputSpec, Work};
use crate::device::Stream;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::op::{Family, Op};
use crate::ops::reduce::{self, VAR, accumulator};
use crate::plan::elementwise::output_order;
use crate::plan::rows::RowsPlan;
use crate::program::StepKind;

/// A reduction over the last axes that keeps them with extent 1.
#[derive(Clone)]
pub(crate) struct Fold {
    /// The reduction.
    pub op: Op,
    /// The array to reduce.
    pub argument: NdArray,
    /// The reduced axes: the last axes of the argument.
    pub axes: Dims,
    /// dtype in which values enter the reduction.
    pub value: DType,
}

impl Fold {
    /// Returns the reduction as a deferred array.
    pub fn deferred(self, shape: Dims, dtype: DType) -> NdArray {
        let argument = if self.argument.is_deferred() { self.argument.0.weight } else { Weight { inputs: 1, ..Weight::default() } };
        // Estimated number of program steps: conversions, and for a variance its whole computation.
        let nodes = if self.op == VAR { 8 } else { 3 };
        let weight = Weight { nodes: argument.nodes + nodes, cost: argument.cost + nodes, folds: argument.folds + 1, ..argument };
        NdArray(Arc::new(Inner {
            dtype,
            device: self.argument.device(),
            shape,
            op: Some(self.op),
            first: None,
            weight,
            value: OnceLock::new(),
            expr: Mutex::new(Some(Expr::Fold(self))),
            inlined: AtomicU32::new(0),
        }))
    }

    /// Dispatches the reduction as a call of its own. `array` is its result.
    pub fn run(&self, array: &NdArray) -> Result<StoredArray> {
        let output = OutputSpec::contiguous(array.dtype(), array.shape())?;
        reduce::run(self.op, &self.argument, &self.axes, self.value, output)?.stored()
    }
}

/// The loop of a row program.
pub(super) struct RowLoop {
    /// Shape of the loop.
    pub shape: Dims,
    /// Shape of arrays with one element per row: `shape` with extent 1 from `split` on.
    pub results: Dims,
    /// The first axis of the rows.
    pub split: usize,
}

impl RowLoop {
    /// Returns the loop that computes `root` in one pass over rows, or `None` if that has no advantage.
    ///
    /// Its shape follows from the first deferred reduction whose argument or result has the shape of `root`.
    pub fn of(root: &NdArray) -> Option<RowLoop> {
        let rows = RowLoop::find(root, root)?;
        // A single reduction has its own kernels, which split long rows over several blocks.
        let is_alone = root.0.weight.folds == 1 && root.shape() == &rows.results[..];
        (!is_alone && !root.is_foreign()).then_some(rows)
    }

    /// Searches the expression of `array` for a reduction whose rows can be the loop of `root`.
    fn find(array: &NdArray, root: &NdArray) -> Option<RowLoop> {
        let find_in = |a: &NdArray| if a.is_deferred() && a.0.weight.folds > 0 { RowLoop::find(a, root) } else { None };
        match array.expr().as_ref()? {
            Expr::Fold(Fold { argument, axes, .. }) => {
                let is_of_loop = root.shape() == argument.shape() || root.shape() == array.shape();
                let rows = || RowLoop {
                    shape: Dims::from_slice(argument.shape()),
                    results: Dims::from_slice(array.shape()),
                    split: argument.ndim() - axes.len(),
                };
                if is_of_loop { Some(rows()) } else { find_in(argument) }
            }
            Expr::Elementwise { args, then } => {
                args.iter().chain(then.iter().flat_map(|chained| &chained.others)).find_map(|arg| match arg {
                    Operand::Array(a) => find_in(a),
                    Operand::Scalar(_) => None,
                })
            }
        }
    }

    /// Returns whether a deferred reduction is over the rows of this loop.
    pub fn contains(&self, array: &NdArray) -> bool {
        let is_over_loop = |e: &Expr| matches!(e, Expr::Fold(fold) if fold.argument.shape() == &self.shape[..]);
        array.shape() == &self.results[..] && array.expr().as_ref().is_some_and(is_over_loop)
    }
}

impl NdArray {
    /// Returns whether this is a deferred reduction.
    pub(super) fn is_fold(&self) -> bool {
        self.is_deferred() && self.0.op.is_some_and(|op| op.family() == Family::Reduce)
    }

    /// Returns the deferred reduction, if this array is one.
    pub(super) fn fold(&self) -> Option<Fold> {
        match self.expr().as_ref() {
            Some(Expr::Fold(fold)) => Some(fold.clone()),
            _ => None,
        }
    }

    /// Runs the expression in one pass over rows. Returns false, without any effect, if no kernel can.
    pub(super) fn run_rows(&self, rows: RowLoop) -> Result<bool> {
        let (shape, results, split) = (rows.shape.clone(), rows.results.clone(), rows.split);
        let mut flat = Flattened::new(false, false);
        flat.rows = Some(rows);
        let root = flat.visit(self, &shape, true)?;
        flat.program.outputs.push(root);
        let kept = flat.extra_outputs(&shape);
        flat.program.outputs.extend(kept.iter().map(|(step, _)| *step));
        let inputs: SmallVec<[&Layout; 8]> = flat.inputs.iter().map(|a| a.layout()).collect();
        let (mut outputs, mut in_loop) = (SmallVec::<[OutputSpec; 2]>::new(), SmallVec::<[Layout; 2]>::new());
        for (n, array) in [self].into_iter().chain(kept.iter().map(|(_, array)| array)).enumerate() {
            let is_result = array.shape() == &results[..];
            let order = if is_result { (0..shape.len()).collect() } else { output_order(&shape, &inputs) };
            let layout = Layout::contiguous_in_order(array.shape(), &order)?;
            in_loop.push(layout.broadcast_to(&shape)?);
            outputs.push(OutputSpec { dtype: flat.program.output_dtype(n), layout });
        }
        let operands: SmallVec<[&Layout; 8]> = inputs.iter().copied().chain(&in_loop).collect();
        let Some(plan) = RowsPlan::new(&shape, split, &operands) else { return Ok(false) };
        let device = self.device();
        let done = dispatch::run(&Call {
            op: self.0.op.unwrap_or(crate::ops::elementwise::POSITIVE),
            device,
            stream: Stream::current(device),
            inputs: &flat.inputs,
            outputs: &outputs,
            work: Work::Rows(call::Rows { program: &flat.program, plan: &plan }),
        });
        let values = match done {
            Err(Error::Unsupported { .. }) => return Ok(false),
            values => values?,
        };
        flat.mark_inlined();
        for (array, value) in [self].into_iter().chain(kept.iter().map(|(_, array)| array)).zip(values) {
            array.settle(Ok(value));
        }
        Ok(true)
    }
}

impl Flattened {
    /// Appends the steps of a reduction along rows.
    pub(super) fn fold(&mut self, array: &NdArray, fold: &Fold, shape: &[usize]) -> Result<u16> {
        let mut step = self.visit(&fold.argument, shape, false)?;
        if fold.argument.dtype() != fold.value {
            step = self.cast(step, fold.value);
        }
        step = match fold.op {
            op if op == VAR => self.program.push_squared_distances(step, fold.axes.iter().map(|&axis| shape[axis]).product()),
            op => self.program.push_once(StepKind::Fold(op), accumulator(op, fold.value), &[step]),
        };
        let dtype = self.program.steps[step as usize].dtype;
        Ok(if dtype == array.dtype() { step } else { self.cast(step, array.dtype()) })
    }
}
