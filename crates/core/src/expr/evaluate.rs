//! Evaluation of deferred arrays, alone or as the fused input of another call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::expression_node::{DeferredOperation, Expression, NdArray, Operand};
use super::fusion_setting::fusion_enabled;
use super::program_builder::ProgramBuilder;
use super::row_loop::RowLoop;
use crate::array::{Array, Outputs, StoredArray};
use crate::call::{self, Call, OutputSpec, Work};
use crate::device::{Device, Stream};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_buffer::HostBuffer;
use crate::layout::Layout;
use crate::op::{Family, MAX_ARITY, Op};
use crate::plan::elementwise::{LoopPlan, output_axis_order};
use crate::program::{Program, StepKind};
use crate::scalar::Scalar;

/// # Evaluation
///
/// A deferred array is computed when its values are needed, at the latest when they are read.
impl NdArray {
    /// Runs a deferred expression and stores its value in the handle. Does not wait for the device.
    ///
    /// # Errors
    /// Errors of the evaluation. Later calls return the same error.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = &NdArray::from_slice(&[1.0, 2.0])? * 2.0; // deferred
    /// assert!(a.is_deferred() && !a.eval()?.is_deferred());
    /// # Ok(())
    /// # }
    /// ```
    pub fn eval(&self) -> Result<&NdArray> {
        self.stored_value()?;
        Ok(self)
    }

    /// Evaluates the array if it is deferred, and returns it as an array in memory.
    ///
    /// # Errors
    /// Errors of the evaluation. Later calls return the same error.
    pub fn stored(&self) -> Result<StoredArray> {
        self.stored_value().cloned()
    }

    /// Returns whether this handle is the only reference to the array's elements.
    ///
    /// If so, the elements are in memory, and no other handle, view, deferred expression or library refers to them.
    pub fn is_unique(&mut self) -> bool {
        let value = Arc::get_mut(&mut self.0).and_then(|inner| inner.value.get_mut());
        value.is_some_and(|value| value.as_mut().is_ok_and(StoredArray::is_unique))
    }

    /// Returns the layout and the host buffer, if this handle is the only reference to the elements and the elements are in host memory.
    pub(crate) fn host_buffer_if_unique(&mut self) -> Option<(&Layout, &mut HostBuffer)> {
        Arc::get_mut(&mut self.0)?.value.get_mut()?.as_mut().ok()?.host_buffer_if_unique()
    }

    /// Makes the elements unique and C-contiguous, with copy-on-write like [`Arc::make_mut`].
    ///
    /// A deferred array is evaluated. An array that is shared ([`NdArray::is_unique`]) or not contiguous is copied. A kernel may then write
    /// to the elements in place, without effect on other handles.
    ///
    /// # Errors
    /// Errors of the evaluation; [`Error::OutOfMemory`] if there is too little memory for a copy.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// let mut a = zeros(3, DType::F32)?;
    /// assert!(a.is_unique());
    /// let b = a.clone();
    /// assert!(!a.is_unique());
    /// a.make_unique()?;
    /// assert!(a.is_unique());
    /// # drop(b);
    /// # Ok(())
    /// # }
    /// ```
    pub fn make_unique(&mut self) -> Result<()> {
        let is_contiguous = self.stored_value()?.layout().is_c_contiguous();
        if !is_contiguous || !self.is_unique() {
            *self = self.copy()?;
        }
        Ok(())
    }

    /// Returns a reference to the stored value. See [`NdArray::stored`].
    pub(crate) fn stored_value(&self) -> Result<&StoredArray> {
        if self.0.value.get().is_none()
            && let Err(e) = self.run_expression()
        {
            self.store_result(Err(e));
        }
        match self.0.value.get() {
            Some(Ok(value)) => Ok(value),
            Some(Err(e)) => Err(Error::clone(e)),
            None => Err(Error::value("eval", "no value was computed")),
        }
    }

    /// Evaluates the expression and stores the value.
    fn run_expression(&self) -> Result<()> {
        if let Some(value) = self.try_run_as_single_take() {
            self.store_result(Ok(value?));
            return Ok(());
        }
        if self.0.weight.folds > 0 {
            if let Some(rows) = RowLoop::find_for_root(self)
                && self.try_run_in_row_loop(rows)?
            {
                return Ok(());
            }
            if let Some(fold) = self.as_deferred_reduction() {
                self.store_result(fold.run_reduction(self));
                return Ok(());
            }
        }
        if self.0.weight.nodes == 1 {
            let (mut program, mut inputs) = (Program::default(), SmallVec::new());
            if self.try_flatten_single_operation(&mut program, &mut inputs) {
                if self.nbytes() >= MIN_IN_PLACE_RESULT_BYTES && self.try_run_in_place(&program, &mut inputs) {
                    return Ok(());
                }
                if let Some(value) = self.run_program(&program, &inputs)?.pop() {
                    self.store_result(Ok(value));
                }
                return Ok(());
            }
        }
        let mut flat = ProgramBuilder::new(self.lacks_fusion_code(), false);
        let root = flat.push_array(self, self.shape(), true)?;
        flat.program.outputs.push(root);
        let mut kept = flat.inner_nodes_to_store(self.shape());
        for (step, _) in &kept {
            flat.program.outputs.push(*step);
        }
        for sibling in self.other_results_of_function() {
            let step = flat.push_array(&sibling, self.shape(), false)?;
            if !flat.program.outputs.contains(&step) {
                flat.program.outputs.push(step);
                kept.push((step, sibling));
            }
        }
        flat.record_inlined_nodes();
        flat.drop_visited_nodes();
        if self.nbytes() >= MIN_IN_PLACE_RESULT_BYTES && self.try_run_in_place(&flat.program, &mut flat.inputs) {
            return Ok(());
        }
        let outputs = self.run_program(&flat.program, &flat.inputs)?;
        let mut outputs = outputs.into_iter();
        if let Some(first) = outputs.next() {
            self.store_result(Ok(first));
        }
        for ((_, array), value) in kept.into_iter().zip(outputs) {
            array.store_result(Ok(value));
        }
        Ok(())
    }

    /// Runs the expression as one call of the kernel family `Gather` if it is a single `take` with stored indices. Returns `None` for other
    /// expressions.
    fn try_run_as_single_take(&self) -> Option<Result<StoredArray>> {
        // Only a deferred `take` (`FUSED_TAKE`) has the family `Gather` inside an expression. The operation's composition runs a single
        // `take` as one call of the family `Gather`. That call indexes `first`, passed as a 1-D array.
        let alone = self.0.op.filter(|op| op.family() == Family::Gather).and_then(|op| op.0.composite)?;
        let (first, indices, size) = {
            let guard = self.lock_expression();
            let Some(Expression::Elementwise { args, .. }) = guard.as_ref() else { return None };
            let [Operand::Array(first), Operand::Array(indices), Operand::Scalar(Scalar::Int(size))] = &args[..] else { return None };
            let stored = indices.0.value.get()?.as_ref().ok()?;
            if Some(stored.dtype()) != self.0.first.map(|first| first.signature.args[1]) || !stored.layout().is_c_contiguous() {
                return None;
            }
            (first.clone(), stored.clone(), usize::try_from(*size).ok()?)
        };
        let run = || {
            let first = first.stored_value()?;
            let whole = first.with_layout(Layout::strided(&[size], &[1], first.layout().offset())?)?;
            alone(&[whole, indices], None)?.pop().ok_or_else(|| Error::value("eval", "no value was computed"))
        };
        Some(run())
    }

    /// Runs the program of this array in place: the result overwrites an input that no other array or expression uses, such as `a` in `a +=
    /// b`. Stores the result as the value of this array.
    ///
    /// Returns false, without any effect, if the program cannot run in place or if no input can be overwritten. The inputs are checked
    /// again when this thread has locked the expression. If none can be overwritten by then, the result gets new memory.
    fn try_run_in_place(&self, program: &Program, inputs: &mut [StoredArray]) -> bool {
        let Some(op) = self.0.op.filter(|op| op.0.composite.is_none() || op.is_dtype_conversion()) else { return false };
        let is_candidate = |a: &StoredArray| a.dtype() == self.dtype() && a.has_one_other_handle();
        if !inputs.iter().any(is_candidate) || !is_elementwise_program(program) {
            return false;
        }
        if Stream::current(self.device()).is_capturing() {
            return false; // during a capture: every launch of the captured graph would overwrite the input again
        }
        // This thread holds the lock of the expression during the evaluation, so that other threads wait for the value. Another thread
        // cannot evaluate the expression itself, because this evaluation overwrites one of the inputs.
        let mut guard = self.lock_expression();
        let Some(expression) = guard.take() else { return true };
        let _error_guard = StoreErrorOnDrop(self);
        drop(expression);
        let whole = |a: &StoredArray| a.layout().size() * a.dtype().itemsize() == a.buffer().nbytes() && a.buffer().is_writable();
        let target = inputs.iter_mut().position(|a| a.dtype() == self.dtype() && whole(a) && a.is_unique());
        let outputs = dispatch_map_call(op, self.device(), self.shape(), program, inputs, target);
        let value = outputs.and_then(|mut outputs| outputs.pop().ok_or_else(|| Error::value("eval", "no value was computed")));
        let _ = self.0.value.set(value.map_err(Box::new)); // succeeds, since only this thread had the expression
        true
    }

    /// Runs a program whose first result is the value of this array, and returns all results of the program.
    fn run_program(&self, program: &Program, inputs: &[StoredArray]) -> Result<Outputs> {
        let op = self.0.op.ok_or_else(|| Error::value("eval", "an expression without an operation"))?;
        let outputs = dispatch_map_call(op, self.device(), self.shape(), program, inputs, None);
        if let Err(unsupported @ Error::Unsupported { .. }) = outputs {
            return Ok(Outputs::from_elem(self.run_composite(op, unsupported)?, 1));
        }
        outputs
    }

    /// Fast path for an expression of a single operation: writes the expression to `program` and `inputs` without a traversal, and returns
    /// true.
    ///
    /// The arguments have to be scalars, or stored arrays of the result's shape and of the dtypes that the operation takes.
    ///
    /// Returns false for other expressions. The contents of `program` and `inputs` are then unspecified.
    fn try_flatten_single_operation(&self, program: &mut Program, inputs: &mut SmallVec<[StoredArray; 4]>) -> bool {
        let guard = self.lock_expression();
        let Some((Expression::Elementwise { args: operands, siblings: None, .. }, DeferredOperation { op, signature })) =
            guard.as_ref().zip(self.0.first)
        else {
            return false;
        };
        let mut args = [0u16; MAX_ARITY];
        for (i, (arg, &want)) in operands.iter().zip(&signature.args).enumerate() {
            args[i] = match arg {
                Operand::Scalar(s) => program.push_param(*s, want),
                Operand::Array(a) => {
                    let Some(Ok(stored)) = a.0.value.get() else { return false };
                    if stored.dtype() != want || stored.shape() != self.shape() {
                        return false;
                    }
                    let same = |earlier: &Operand| matches!(earlier, Operand::Array(e) if Arc::ptr_eq(&e.0, &a.0));
                    match operands[..i].iter().position(same) {
                        Some(earlier) => args[earlier],
                        None => {
                            inputs.push(stored.clone());
                            program.push_step(StepKind::Input(inputs.len() as u16 - 1), want, &[])
                        }
                    }
                }
            };
        }
        let root = program.push_step(StepKind::Apply(op), self.dtype(), &args);
        program.outputs.push(root);
        !op.is_dtype_conversion()
    }

    /// Computes the value as a composition of other operations, if `op` defines one. The arguments are converted to the operation's dtypes.
    /// Returns the error `unsupported` if `op` has no composition.
    #[cold]
    fn run_composite(&self, op: Op, unsupported: Error) -> Result<StoredArray> {
        // `astype` is not computed by a composition of other operations: the arguments of a composition are converted by `astype`, so
        // `astype` would call itself.
        let body = op.0.composite.filter(|_| !op.is_dtype_conversion() && op.family() != Family::Gather);
        let args = match self.lock_expression().as_ref() {
            Some(Expression::Elementwise { args, .. }) => Some(args.clone()),
            _ => None,
        };
        let (Some(body), Some(args), Some(DeferredOperation { signature, .. })) = (body, args, self.0.first) else {
            return Err(unsupported);
        };
        let argument = |(arg, dtype): (&Operand, DType)| match arg {
            Operand::Array(a) => a.astype(dtype)?.stored(),
            Operand::Scalar(s) => NdArray::scalar_as(*s, dtype)?.to_device(self.device())?.stored(),
        };
        let args = args.iter().zip(signature.args).map(argument).collect::<Result<Vec<_>>>()?;
        let value = body(&args, None)?.pop().ok_or_else(|| Error::value("eval", "no value was computed"))?;
        NdArray::from(value).astype(self.dtype())?.view_with_layout(|l| l.broadcast_to(self.shape()))?.stored()
    }

    /// Calls `f` with the array as the fused input of a reduction or scan.
    ///
    /// `f` receives a program with one result of `dtype`, and the program's inputs, broadcast to the array's shape. `f` borrows the program
    /// and the inputs, because moving them would copy large inline arrays. Arguments whose operations no kernel of `family` declares are
    /// evaluated first.
    pub(crate) fn with_fused_input<R>(
        &self,
        family: Family,
        dtype: DType,
        f: impl FnOnce(&Program, &[StoredArray]) -> Result<R>,
    ) -> Result<R> {
        // If an earlier evaluation has already computed this node as part of another array, the node is now evaluated separately and its
        // value is stored. A program that extends `x` and reads `x.sum()` in a loop then takes linear time.
        if self.0.inlined.load(Ordering::Relaxed) > 0 || self.lacks_fusion_code() || self.is_deferred_reduction() || !fusion_enabled() {
            self.stored_value()?;
        }
        let mut flat = ProgramBuilder::new(false, true);
        if self.is_deferred() {
            flat.declared = dispatch::kernel_capabilities(family, self.device())?;
            if flat.lacks_kernel_for(self) {
                self.stored_value()?;
            }
        }
        let stored = self.0.value.get().and_then(|value| value.as_ref().ok());
        let mut root = match stored {
            Some(stored) => flat.program.push_step(StepKind::Input(0), stored.dtype(), &[]),
            None => flat.push_array(self, self.shape(), true)?,
        };
        if self.dtype() != dtype {
            root = flat.program.push_step(StepKind::Cast, dtype, &[root]);
        }
        flat.program.outputs.push(root);
        flat.record_inlined_nodes();
        if stored.is_none() && self.is_deferred() {
            self.0.inlined.fetch_add(1, Ordering::Relaxed);
        }
        f(&flat.program, stored.map_or(&flat.inputs, std::slice::from_ref))
    }
}

/// Calls `f` with `inputs` as [`NdArray`]s, and evaluates the result. With this function, an operation with one result implements its
/// [`Composite`](crate::op::Composite), a composition of other operations.
///
/// # Errors
/// Errors of `f` and of the evaluation of its result.
pub fn run_as_composite(inputs: &[StoredArray], f: impl FnOnce(&[NdArray]) -> Result<NdArray>) -> Result<Outputs> {
    let inputs: SmallVec<[NdArray; 3]> = inputs.iter().map(|a| a.clone().into()).collect();
    Ok(Outputs::from_elem(f(&inputs)?.stored()?, 1))
}

/// Minimum size in bytes of a result that is computed in the memory of an input. For smaller results, an allocation from the pool is faster
/// than the search for an input.
const MIN_IN_PLACE_RESULT_BYTES: usize = 1 << 15;

/// Returns whether a program computes a single result, whose element at each index depends only on the elements of the inputs at that
/// index.
fn is_elementwise_program(program: &Program) -> bool {
    let computes = |step: &u16| !matches!(program.steps[usize::from(*step)].kind, StepKind::Input(_));
    program.outputs.len() == 1
        && program.outputs.iter().all(computes)
        && program.ops().all(|op| op.family() == Family::Map && !op.is_defined_in_another_crate())
}

/// A guard that stores an error in the array if it is dropped before the array has a value. An evaluation that panics has already taken the
/// array's expression. Without the guard, a reader would find neither a value nor an expression.
struct StoreErrorOnDrop<'a>(&'a NdArray);

impl Drop for StoreErrorOnDrop<'_> {
    fn drop(&mut self) {
        if self.0.is_deferred() {
            let _ = self.0.0.value.set(Err(Box::new(Error::value("eval", "the evaluation panicked"))));
        }
    }
}

/// Dispatches a call of the kernel family `Map` over inputs that are broadcast to `shape`.
///
/// `target` is the index of an input whose memory nothing else uses. The result is written to that memory if the input has the layout of
/// the result. If the layouts differ or `target` is `None`, the result gets new memory.
fn dispatch_map_call(
    op: Op,
    device: Device,
    shape: &[usize],
    program: &Program,
    inputs: &[StoredArray],
    target: Option<usize>,
) -> Result<Outputs> {
    let flat = inputs.iter().all(|a| a.layout().is_c_contiguous());
    let layouts: SmallVec<[&Layout; 4]> = if flat { SmallVec::new() } else { inputs.iter().map(|a| a.layout()).collect() };
    let layout = if flat { Layout::contiguous(shape)? } else { Layout::contiguous_in_order(shape, &output_axis_order(shape, &layouts))? };
    let size = layout.size();
    let mut first = OutputSpec::new(program.output_dtype(0), layout);
    if let Some(input) = target.map(|n| &inputs[n]).filter(|input| *input.layout() == first.layout) {
        first = first.with_target_buffer(input.buffer().clone());
    }
    let several: Vec<OutputSpec>;
    let outputs = match program.outputs.len() {
        0 | 1 => std::slice::from_ref(&first),
        count => {
            let others = (1..count).map(|n| OutputSpec::new(program.output_dtype(n), first.layout.clone()));
            several = std::iter::once(first.clone()).chain(others).collect();
            &several
        }
    };
    let plan = if flat {
        LoopPlan::new_flat(inputs.len() + outputs.len(), size)
    } else {
        let operands: SmallVec<[&Layout; 8]> = layouts.iter().copied().chain(outputs.iter().map(|o| &o.layout)).collect();
        LoopPlan::new(&operands)
    };
    dispatch::run_call(&Call {
        op,
        device,
        stream: Stream::current(device),
        inputs,
        outputs,
        work: Work::Map(call::Map { program, plan: &plan }),
    })
}
