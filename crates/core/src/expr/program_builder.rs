//! Flattening of expressions into programs ([`Program`]). Each step of a program reads an input or computes a value from earlier steps.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::expression_node::{AppendedOperation, DeferredOperation, DeferredReduction, Expression, ExpressionWeight, NdArray, Operand};
use super::row_loop::RowLoop;
use crate::array::{Array, StoredArray};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Capabilities, MAX_ARITY};
use crate::program::{Program, StepKind};

/// An expression that is being flattened into a program.
pub(super) struct ProgramBuilder {
    pub program: Program,
    pub inputs: SmallVec<[StoredArray; 4]>,
    seen: SmallVec<[VisitedNode; 12]>,
    /// Whether the program is the fused input of a reduction or scan, and so cannot have further outputs.
    single_output: bool,
    /// Whether the root's arguments are evaluated separately instead of being fused into the program. True if another crate defines the
    /// root's operation without code for fused kernels.
    unfused: bool,
    /// The loop over rows, if the program contains reductions along rows as steps.
    pub rows: Option<RowLoop>,
    /// Capabilities that the kernels of the program's family declare. Operations that need others are evaluated separately.
    pub declared: Capabilities,
}

/// A shared node that the traversal has visited, with its program step. `references` counts the references from this expression only.
struct VisitedNode {
    array: NdArray,
    step: u16,
    references: usize,
    /// [`ExpressionWeight::cost`] of a deferred node; `None` for a stored array.
    inner_cost: Option<u32>,
}

impl ProgramBuilder {
    pub fn new(unfused: bool, single_output: bool) -> ProgramBuilder {
        ProgramBuilder {
            program: Program::default(),
            inputs: SmallVec::new(),
            seen: SmallVec::new(),
            single_output,
            unfused,
            rows: None,
            declared: Capabilities::ALL,
        }
    }

    /// Appends the program steps that compute `array` in a loop over `shape`, and returns the index of the last step. `root` is true if
    /// `array` is the root of the expression.
    pub fn push_array(&mut self, array: &NdArray, shape: &[usize], root: bool) -> Result<u16> {
        // A node with a single handle is visited only once, so only shared nodes are looked up.
        let is_shared = !root && Arc::strong_count(&array.0) > 1;
        if is_shared && let Some(seen) = self.seen.iter_mut().find(|s| Arc::ptr_eq(&s.array.0, &array.0)) {
            seen.references += 1;
            return Ok(seen.step);
        }
        if !root && self.must_evaluate_first(array, shape) {
            array.stored_value()?;
        }
        let (step, inner_cost) = match array.is_deferred().then(|| array.lock_expression()).as_ref().and_then(|e| e.as_ref()) {
            None => (self.push_input(array, shape)?, None),
            Some(Expression::Fold(fold)) => (self.push_row_reduction(array, fold, shape)?, (!root).then_some(array.0.weight.cost)),
            Some(Expression::Elementwise { args, then, .. }) => {
                let first = array.0.first.ok_or_else(|| Error::value("eval", "an expression without an operation"))?;
                (self.push_elementwise(first, args, then, shape)?, (!root).then_some(array.0.weight.cost))
            }
        };
        if is_shared {
            self.seen.push(VisitedNode { array: array.clone(), step, references: 1, inner_cost });
        }
        Ok(step)
    }

    /// Appends a stored array as an input of the program, broadcast to the loop's shape. Returns the index of the input's step.
    fn push_input(&mut self, array: &NdArray, shape: &[usize]) -> Result<u16> {
        let stored = array.stored_value()?;
        let step = self.program.push_step(StepKind::Input(self.inputs.len() as u16), stored.dtype(), &[]);
        self.inputs.push(match stored.shape() == shape {
            true => stored.clone(),
            false => stored.with_layout(stored.layout().broadcast_to(shape)?)?,
        });
        Ok(step)
    }

    /// Returns the index of a `Cast` step that converts `step` to `dtype`. Appends the step if the program does not contain it.
    fn find_or_push_cast(&mut self, step: u16, dtype: DType) -> u16 {
        let same = |s: &crate::program::Step| s.kind == StepKind::Cast && s.dtype == dtype && s.args[0] == step;
        match self.program.steps.iter().position(same) {
            Some(at) => at as u16,
            None => self.program.push_step(StepKind::Cast, dtype, &[step]),
        }
    }

    /// Returns up to three inner nodes whose values the kernel writes as further outputs, each as program step and array.
    ///
    /// Only nodes with references outside this expression are returned. A node of the loop's shape must also be expensive to compute, or
    /// have been computed before as an inner step of another program. A node with one element per row must contain reductions.
    pub fn inner_nodes_to_store(&self, shape: &[usize]) -> SmallVec<[(u16, NdArray); 2]> {
        self.seen
            .iter()
            .filter(|s| {
                let held_elsewhere = Arc::strong_count(&s.array.0) > s.references + 1; // `seen` holds one reference
                let is_expensive = s.inner_cost.is_some_and(|c| c >= 16 || s.array.0.inlined.load(Ordering::Relaxed) > 0);
                let keeps =
                    if s.array.shape() == shape { is_expensive } else { s.inner_cost.is_some() && self.has_one_element_per_row(&s.array) };
                keeps && held_elsewhere && self.program.steps[s.step as usize].dtype == s.array.dtype()
            })
            .take(3)
            .map(|s| (s.step, s.array.clone()))
            .collect()
    }

    /// Returns whether `array`, an inner node, has to be evaluated before this expression.
    ///
    /// This applies to operations that cannot be fused and to nodes that broadcasting would compute repeatedly. It also applies to nodes
    /// that an earlier program computed without storing the value, if this program cannot store it as a further output.
    fn must_evaluate_first(&self, array: &NdArray, shape: &[usize]) -> bool {
        if !array.is_deferred() {
            return false;
        }
        if array.is_deferred_reduction() && !self.rows.as_ref().is_some_and(|rows| rows.is_reduction_over_rows(array)) {
            return true;
        }
        let ExpressionWeight { inputs, cost, folds, .. } = array.0.weight;
        let stretched =
            (cost >= 4 || inputs > 1 || folds > 0) && array.size() < shape.iter().product() && !self.has_one_element_per_row(array);
        let is_recomputed = self.single_output && cost >= 4 && array.0.inlined.load(Ordering::Relaxed) > 0;
        self.unfused || array.lacks_fusion_code() || stretched || is_recomputed || self.lacks_kernel_for(array)
    }

    /// Returns whether the first operation of the node of `array` needs a capability that the kernels for this program do not declare. The
    /// node is then evaluated separately.
    pub fn lacks_kernel_for(&self, array: &NdArray) -> bool {
        let capability = array.0.first.and_then(|first| StepKind::Apply(first.op).required_capability());
        capability.is_some_and(|c| !self.declared.contains(c))
    }

    /// Returns whether `array` contains reductions and has one element per row of this loop.
    fn has_one_element_per_row(&self, array: &NdArray) -> bool {
        self.rows.as_ref().is_some_and(|rows| array.0.weight.folds > 0 && array.shape() == &rows.results[..])
    }

    /// Drops the references to the visited nodes. The builder then keeps only the inputs alive.
    pub fn drop_visited_nodes(&mut self) {
        self.seen.clear();
    }

    /// Increments `ArrayState::inlined` of each deferred node with several users, since this program computes the node's value as an inner
    /// step.
    pub fn record_inlined_nodes(&self) {
        for seen in self.seen.iter().filter(|s| s.inner_cost.is_some()) {
            seen.array.0.inlined.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Appends the program steps of an elementwise expression, and returns the index of the last step.
    fn push_elementwise(&mut self, first: DeferredOperation, args: &[Operand], then: &[AppendedOperation], shape: &[usize]) -> Result<u16> {
        let mut step = self.push_operation(first, None, args, shape)?;
        for AppendedOperation { operation, previous_result_index, others } in then {
            step = self.push_operation(*operation, Some((*previous_result_index, step)), others, shape)?;
        }
        Ok(step)
    }

    /// Appends the program steps of one operation, and returns the index of the last step.
    ///
    /// `known` is an argument that is already in the program, as (position of the argument, index of its step). `others` are the remaining
    /// arguments.
    fn push_operation(
        &mut self,
        operation: DeferredOperation,
        known: Option<(u8, u16)>,
        others: &[Operand],
        shape: &[usize],
    ) -> Result<u16> {
        let DeferredOperation { op, signature } = operation;
        let mut others = others.iter();
        let mut args = [0u16; MAX_ARITY];
        for (i, (arg, &want)) in args.iter_mut().zip(&signature.args).enumerate().take(op.arity()) {
            *arg = match known.filter(|(index, _)| usize::from(*index) == i) {
                Some((_, step)) => self.cast_step_if_needed(step, want),
                None => match others.next() {
                    Some(Operand::Array(a)) => {
                        let step = self.push_array(a, shape, false)?;
                        self.cast_step_if_needed(step, want)
                    }
                    Some(Operand::Scalar(s)) => self.program.push_param(*s, want),
                    None => 0,
                },
            };
        }
        if op.is_dtype_conversion() {
            return Ok(args[0]); // `args[0]` has the result's dtype already
        }
        let args = &args[..op.arity()];
        Ok(match self.rows {
            // Equal steps are merged in row programs, because a variance often shares steps with the rest of the expression.
            Some(_) => self.program.push_step_unless_present(StepKind::Apply(op), signature.result, args),
            None => self.program.push_step(StepKind::Apply(op), signature.result, args),
        })
    }

    /// Returns the index of a step with the value of `step` in `dtype`: `step` itself if it has that dtype, else a `Cast` step.
    fn cast_step_if_needed(&mut self, step: u16, dtype: DType) -> u16 {
        if self.program.steps[step as usize].dtype == dtype { step } else { self.find_or_push_cast(step, dtype) }
    }

    /// Appends the program steps of a reduction along rows, and returns the index of the last step.
    fn push_row_reduction(&mut self, array: &NdArray, fold: &DeferredReduction, shape: &[usize]) -> Result<u16> {
        let mut step = self.push_array(&fold.argument, shape, false)?;
        if fold.argument.dtype() != fold.value {
            step = self.find_or_push_cast(step, fold.value);
        }
        step = (fold.implementation.push)(fold, &mut self.program, step, fold.axes.iter().map(|&axis| shape[axis]).product());
        let dtype = self.program.steps[step as usize].dtype;
        Ok(if dtype == array.dtype() { step } else { self.find_or_push_cast(step, array.dtype()) })
    }
}
