//! Reductions that wait: along the last axes, with their dims kept, which says that they will be broadcast back. An expression over its own
//! reductions (softmax, `(a - mean) / std`) then reads each row once. Only where a kernel of the device takes such work, and where all
//! of them decline each reduction runs on its own, as it does elsewhere.

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
    /// What is reduced.
    pub argument: NdArray,
    /// The reduced axes: the last ones.
    pub axes: Dims,
    /// dtype that values enter the reduction with.
    pub value: DType,
}

impl Fold {
    /// The reduction as an array that is still to be computed.
    pub fn deferred(self, shape: Dims, dtype: DType) -> NdArray {
        let below = if self.argument.is_deferred() { self.argument.0.weight } else { Weight { inputs: 1, ..Weight::default() } };
        // Conversions before and after; what a variance is made of.
        let nodes = if self.op == VAR { 8 } else { 3 };
        let weight = Weight { nodes: below.nodes + nodes, cost: below.cost + nodes, folds: below.folds + 1, ..below };
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

    /// Runs it on its own; `array` is its result.
    pub fn run(&self, array: &NdArray) -> Result<StoredArray> {
        let output = OutputSpec::contiguous(array.dtype(), array.shape())?;
        reduce::run(self.op, &self.argument, &self.axes, self.value, output)?.stored()
    }
}

/// A loop that goes row by row.
pub(super) struct RowLoop {
    /// Its shape.
    pub shape: Dims,
    /// The shape of what has one number for each row: that of the loop, with extent 1 from `split` on.
    pub results: Dims,
    /// The first axis of the rows.
    pub split: usize,
}

impl RowLoop {
    /// The loop that computes `root` in one pass over rows: that of the first deferred reduction of which it, or its number for each row,
    /// has the shape. None where that would gain nothing.
    pub fn of(root: &NdArray) -> Option<RowLoop> {
        let rows = RowLoop::below(root, root)?;
        // One reduction alone has kernels of its own, which share long rows between blocks.
        let is_alone = root.0.weight.folds == 1 && root.shape() == &rows.results[..];
        (!is_alone && !root.is_foreign()).then_some(rows)
    }

    fn below(array: &NdArray, root: &NdArray) -> Option<RowLoop> {
        let below = |a: &NdArray| if a.is_deferred() && a.0.weight.folds > 0 { RowLoop::below(a, root) } else { None };
        match array.expr().as_ref()? {
            Expr::Fold(Fold { argument, axes, .. }) => {
                let is_of_loop = root.shape() == argument.shape() || root.shape() == array.shape();
                let rows = || RowLoop {
                    shape: Dims::from_slice(argument.shape()),
                    results: Dims::from_slice(array.shape()),
                    split: argument.ndim() - axes.len(),
                };
                if is_of_loop { Some(rows()) } else { below(argument) }
            }
            Expr::Elementwise { args, then } => args.iter().chain(then.iter().flat_map(|link| &link.others)).find_map(|arg| match arg {
                Operand::Array(a) => below(a),
                Operand::Scalar(_) => None,
            }),
        }
    }

    /// Whether a deferred reduction is one over rows of this loop.
    pub fn has(&self, array: &NdArray) -> bool {
        let is_over_loop = |e: &Expr| matches!(e, Expr::Fold(fold) if fold.argument.shape() == &self.shape[..]);
        array.shape() == &self.results[..] && array.expr().as_ref().is_some_and(is_over_loop)
    }
}

impl NdArray {
    /// Whether it is a reduction that has still to run.
    pub(super) fn is_fold(&self) -> bool {
        self.is_deferred() && self.0.op.is_some_and(|op| op.family() == Family::Reduce)
    }

    /// The deferred reduction that it is.
    pub(super) fn fold(&self) -> Option<Fold> {
        match self.expr().as_ref() {
            Some(Expr::Fold(fold)) => Some(fold.clone()),
            _ => None,
        }
    }

    /// Runs the expression in one pass over rows; says whether that was done. If not, nothing was.
    pub(super) fn run_rows(&self, rows: RowLoop) -> Result<bool> {
        let (shape, results, split) = (rows.shape.clone(), rows.results.clone(), rows.split);
        let mut flat = Flattened::new(false, false);
        flat.rows = Some(rows);
        let root = flat.visit(self, &shape, true)?;
        flat.program.outputs.push(root);
        let beside = flat.worth_keeping(&shape);
        flat.program.outputs.extend(beside.iter().map(|(step, _)| *step));
        let inputs: SmallVec<[&Layout; 8]> = flat.inputs.iter().map(|a| a.layout()).collect();
        let (mut outputs, mut in_loop) = (SmallVec::<[OutputSpec; 2]>::new(), SmallVec::<[Layout; 2]>::new());
        for (n, array) in [self].into_iter().chain(beside.iter().map(|(_, array)| array)).enumerate() {
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
        for (array, value) in [self].into_iter().chain(beside.iter().map(|(_, array)| array)).zip(values) {
            array.settle(Ok(value));
        }
        Ok(true)
    }
}

impl Flattened {
    /// The steps of a reduction along rows.
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
