//! Deferred reductions over the last axes with `keepdims`. A later operation usually broadcasts the result against the array that was
//! reduced.
//!
//! An expression that contains such reductions of its inputs, such as softmax or `(a - mean) / std`, runs in one pass that reads each row
//! once. Reductions are deferred only on devices with kernels for row programs. If all of these kernels decline, each reduction runs as a
//! separate call.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;

use super::expression_node::{ArrayState, DeferredReduction, Expression, ExpressionWeight, NdArray};
use super::program_builder::ProgramBuilder;
use super::row_loop::RowLoop;
use crate::array::StoredArray;
use crate::call::{self, Call, OutputSpec, Work};
use crate::device::Stream;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::op::Family;
use crate::plan::elementwise::output_axis_order;
use crate::plan::row_loop::RowLoopPlan;

impl DeferredReduction {
    /// Wraps the reduction in a deferred array of the given shape and dtype.
    pub fn into_deferred_array(self, shape: Dims, dtype: DType) -> NdArray {
        let argument = if self.argument.is_deferred() {
            self.argument.0.weight
        } else {
            ExpressionWeight { inputs: 1, ..ExpressionWeight::default() }
        };
        let nodes = self.implementation.nodes;
        let weight = ExpressionWeight {
            nodes: argument.nodes + nodes,
            cost: argument.cost.saturating_add(nodes),
            folds: argument.folds.saturating_add(1),
            ..argument
        };
        NdArray(Arc::new(ArrayState {
            dtype,
            device: self.argument.device(),
            shape,
            op: Some(self.op),
            first: None,
            weight,
            value: OnceLock::new(),
            expr: Mutex::new(Some(Expression::Fold(self))),
            inlined: AtomicU32::new(0),
        }))
    }

    /// Computes the reduction by its own kernel, without fusing it into the row program. `array` is the reduction's result.
    pub fn run_reduction(&self, array: &NdArray) -> Result<StoredArray> {
        let output = OutputSpec::contiguous(array.dtype(), array.shape())?;
        (self.implementation.run)(self, output)
    }
}

impl NdArray {
    /// Runs the expression in one pass over rows. Returns false if no kernel can do so. The array is then still deferred.
    pub(super) fn try_run_in_row_loop(&self, rows: RowLoop) -> Result<bool> {
        let (shape, results, split) = (rows.shape.clone(), rows.results.clone(), rows.split);
        let mut flat = ProgramBuilder::new(false, false);
        flat.rows = Some(rows);
        flat.declared = dispatch::kernel_capabilities(Family::Rows, self.device())?;
        let root = flat.push_array(self, &shape, true)?;
        flat.program.outputs.push(root);
        let kept = flat.inner_nodes_to_store(&shape);
        flat.program.outputs.extend(kept.iter().map(|(step, _)| *step));
        let inputs: SmallVec<[&Layout; 8]> = flat.inputs.iter().map(|a| a.layout()).collect();
        let (mut outputs, mut in_loop) = (SmallVec::<[OutputSpec; 2]>::new(), SmallVec::<[Layout; 2]>::new());
        for (n, array) in [self].into_iter().chain(kept.iter().map(|(_, array)| array)).enumerate() {
            let is_result = array.shape() == &results[..];
            let order = if is_result { (0..shape.len()).collect() } else { output_axis_order(&shape, &inputs) };
            let layout = Layout::contiguous_in_order(array.shape(), &order)?;
            in_loop.push(layout.broadcast_to(&shape)?);
            outputs.push(OutputSpec::new(flat.program.output_dtype(n), layout));
        }
        let operands: SmallVec<[&Layout; 8]> = inputs.iter().copied().chain(&in_loop).collect();
        let Some(plan) = RowLoopPlan::new(&shape, split, &operands) else { return Ok(false) };
        let Some(op) = self.0.op else { return Ok(false) };
        let device = self.device();
        let done = dispatch::run_call(&Call {
            op,
            device,
            stream: Stream::current(device),
            inputs: &flat.inputs,
            outputs: &outputs,
            work: Work::Rows(call::RowProgram { program: &flat.program, plan: &plan }),
        });
        let values = match done {
            Err(Error::Unsupported { .. }) => return Ok(false),
            values => values?,
        };
        flat.record_inlined_nodes();
        for (array, value) in [self].into_iter().chain(kept.iter().map(|(_, array)| array)).zip(values) {
            array.store_result(Ok(value));
        }
        Ok(true)
    }
}
