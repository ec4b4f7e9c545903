//! Deferred evaluation of elementwise operations.
//!
//! Operations build an expression. It runs as one Map when its value is needed, or becomes the fused input of a reduction or scan.
//! Reductions along rows that keep their dims may be deferred too (`expr/rows.rs`). Deferral does not change values, except for the last
//! bits of sums along rows: a fused kernel may add a row in another order.

mod chain;
mod rows;

use crate::call;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use smallvec::SmallVec;

use crate::array::{Array, NdArray, StoredArray};
use crate::call::{Call, OutputSpec, Work};
use crate::device::{Device, Stream};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, broadcast_shapes};
use crate::op::{ArgType, Cost, DTypeSignature, MAX_ARITY, Op, TypeRule};
use crate::ops::indexing::{FUSED_TAKE, run_fused_take};
use crate::plan::elementwise::{LoopPlan, output_order};
use crate::program::{Program, StepKind};
use crate::scalar::Scalar;
use crate::settings;

use chain::{ChainedOperation, Operation};
pub(crate) use rows::Fold;
use rows::RowLoop;

/// Maximum number of nodes in an expression. A larger one evaluates its heaviest arguments first.
const MAX_NODES: u32 = 48;
/// Maximum number of inputs of an expression. A larger one evaluates its heaviest arguments first.
const MAX_INPUTS: u32 = 12;

/// The shared state of array handles: dtype, shape, device, and a value that is stored or deferred.
pub struct Inner {
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    pub(crate) shape: Dims,
    /// The operation that computes the value; `None` for arrays created with a value.
    op: Option<Op>,
    /// The first operation of an elementwise expression. Chained operations follow in [`Expr::Elementwise`].
    first: Option<Operation>,
    /// Size and cost of the deferred expression.
    weight: Weight,
    value: OnceLock<Result<StoredArray, Box<Error>>>,
    /// The expression, until the value is computed.
    ///
    /// A thread that holds this lock locks only arguments. Expressions are acyclic, so this cannot deadlock.
    expr: Mutex<Option<Expr>>,
    /// Number of times that this node was computed inside another array's evaluation.
    inlined: AtomicU32,
}

/// The source of a deferred array's value.
enum Expr {
    /// An elementwise operation on `args`, and the operations chained to its result.
    Elementwise { args: Operands, then: Vec<ChainedOperation> },
    /// A reduction along rows, with one result per row.
    Fold(Fold),
}

/// The arguments of an operation.
pub(crate) type Operands = SmallVec<[Operand; 3]>;

/// Size and cost of a deferred expression, including all deferred arguments.
#[derive(Clone, Copy, Default)]
struct Weight {
    /// Number of nodes. Shared nodes count once per use, so this is an upper bound.
    nodes: u32,
    /// Number of stored inputs. Shared nodes count once per use.
    inputs: u32,
    /// Cost of one element of the expression, in cheap operations.
    cost: u32,
    /// Number of deferred reductions. Shared nodes count once per use.
    folds: u32,
}

/// An argument of an elementwise operation: an array, or a weak scalar.
#[derive(Clone)]
pub enum Operand {
    /// An array.
    Array(NdArray),
    /// A Python-like scalar, which adopts the dtype of the array arguments.
    Scalar(Scalar),
}

impl Operand {
    /// Moves the operand out and leaves a placeholder.
    fn take(&mut self) -> Operand {
        std::mem::replace(self, Operand::Scalar(Scalar::Bool(false)))
    }

    /// Returns the operand as type rules need it: an array's dtype, or a weak scalar.
    pub(crate) fn arg_type(&self) -> ArgType {
        match self {
            Operand::Array(a) => ArgType::Array(a.dtype()),
            Operand::Scalar(s) => ArgType::Weak(*s),
        }
    }
}

impl From<NdArray> for Operand {
    fn from(a: NdArray) -> Operand {
        Operand::Array(a)
    }
}
impl From<&NdArray> for Operand {
    fn from(a: &NdArray) -> Operand {
        Operand::Array(a.clone())
    }
}
impl From<&Operand> for Operand {
    fn from(a: &Operand) -> Operand {
        a.clone()
    }
}
impl<T: Into<Scalar>> From<T> for Operand {
    fn from(s: T) -> Operand {
        Operand::Scalar(s.into())
    }
}

impl From<StoredArray> for NdArray {
    fn from(stored: StoredArray) -> NdArray {
        NdArray(Arc::new(Inner {
            dtype: stored.dtype(),
            device: stored.device(),
            shape: Dims::from_slice(stored.shape()),
            op: None,
            first: None,
            weight: Weight::default(),
            value: OnceLock::from(Ok(stored)),
            expr: Mutex::new(None),
            inlined: AtomicU32::new(0),
        }))
    }
}

thread_local! {
    static FUSION: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Returns whether this thread defers elementwise operations: the value of [`with_fusion`], else of `CUPRUM_FUSION`, else true.
pub fn fusion_enabled() -> bool {
    FUSION.with(Cell::get).unwrap_or_else(settings::fusion_default)
}

/// Runs `f` with deferral enabled or disabled on this thread.
///
/// Elementwise results are bit-identical either way. Reductions along rows in a fused expression may differ in the last bits, since a
/// device may add the terms in another order. On the CPU they are identical for sums and means of contiguous rows and for variances of
/// rows of up to 8 KiB.
pub fn with_fusion<R>(on: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<bool>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FUSION.with(|s| s.set(self.0));
        }
    }
    let _restore = Restore(FUSION.with(|s| s.replace(Some(on))));
    f()
}

/// Builds an elementwise operation, and runs it unless deferral is enabled.
///
/// # Errors
/// Shapes that do not broadcast, dtypes that the operation does not take, arrays on different devices, or a wrong number of arguments.
pub fn elementwise(op: Op, args: &[Operand]) -> Result<NdArray> {
    apply(op, &mut args.iter().cloned().collect::<Operands>())
}

/// Like [`elementwise`], but moves the arguments out of the slice.
pub(crate) fn apply(op: Op, args: &mut [Operand]) -> Result<NdArray> {
    let name = op.name();
    let rule = op.0.rule.ok_or_else(|| Error::value(name, "not an elementwise operation"))?;
    if args.len() != op.arity() {
        return Err(Error::value(name, format!("takes {} arguments, {} given", op.arity(), args.len())));
    }
    let signature = match shared_dtype(args) {
        Some(shared) if rule != TypeRule::Where => rule.resolve_shared(name, shared)?,
        _ => rule.resolve(name, &args.iter().map(Operand::arg_type).collect::<SmallVec<[ArgType; 3]>>())?,
    };
    build(op, args, signature)
}

/// Returns the dtype that all arrays have, if all scalars can adopt it.
fn shared_dtype(args: &[Operand]) -> Option<DType> {
    let dtype = arrays(args).next()?.dtype();
    let has_it = |arg: &Operand| match arg {
        Operand::Array(a) => a.dtype() == dtype,
        Operand::Scalar(s) => s.weak_promote(dtype) == dtype,
    };
    args.iter().all(has_it).then_some(dtype)
}

/// Like [`apply`], with given dtypes (`astype`, and comparisons of mixed integers).
pub(crate) fn build(op: Op, args: &mut [Operand], signature: DTypeSignature) -> Result<NdArray> {
    check(op.name(), args, &signature)?;
    let weight = bounded_weight(op, args)?;
    let operation = Operation { op, signature };
    let out = match chain::chain(operation, args, weight) {
        Some(array) => array,
        None => {
            let device = arrays(args).next().map_or_else(Device::current, |a| Ok(a.device()))?;
            let shape = common_shape(op.name(), args)?;
            NdArray(Arc::new(Inner {
                dtype: signature.result,
                device,
                shape,
                op: Some(op),
                first: Some(operation),
                weight,
                value: OnceLock::new(),
                expr: Mutex::new(Some(Expr::Elementwise { args: args.iter_mut().map(Operand::take).collect(), then: Vec::new() })),
                inlined: AtomicU32::new(0),
            }))
        }
    };
    if !fusion_enabled() {
        out.value()?;
    }
    Ok(out)
}

/// Returns the arrays among the arguments.
fn arrays(args: &[Operand]) -> impl Iterator<Item = &NdArray> {
    args.iter().filter_map(|arg| if let Operand::Array(a) = arg { Some(a) } else { None })
}

/// Rejects arrays on different devices and scalars that their dtype cannot hold.
#[inline]
pub(crate) fn check(name: &'static str, args: &[Operand], signature: &DTypeSignature) -> Result<()> {
    let mut device = None;
    for (arg, dtype) in args.iter().zip(signature.args) {
        match arg {
            Operand::Array(a) => {
                if let Some(d) = device.filter(|d| *d != a.device()) {
                    return Err(Error::Device { op: name, message: format!("arrays are on {d} and {}; use to_device", a.device()) });
                }
                device = Some(a.device());
            }
            Operand::Scalar(s) => {
                s.checked_for(name, dtype)?;
            }
        }
    }
    Ok(())
}

/// Returns the shape that the arguments broadcast to.
pub(crate) fn common_shape(name: &'static str, args: &[Operand]) -> Result<Dims> {
    let mut shapes: SmallVec<[&[usize]; 3]> = SmallVec::new();
    for a in arrays(args) {
        shapes.push(a.shape());
    }
    broadcast_shapes(name, &shapes)
}

/// Returns the weight of an operation on `args`. If it exceeds the limits, the heaviest arguments are evaluated first.
fn bounded_weight(op: Op, args: &[Operand]) -> Result<Weight> {
    loop {
        let cost = match op.0.cost {
            Cost::Cheap => 1,
            Cost::Medium => 4,
            Cost::Expensive => 16,
        };
        let mut sum = Weight { nodes: 1, inputs: 0, cost, folds: 0 };
        let mut heaviest: Option<(u32, &NdArray)> = None;
        for arg in args {
            let Operand::Array(a) = arg else { continue };
            if !a.is_deferred() {
                sum.inputs += 1;
                continue;
            }
            let Weight { nodes, inputs, cost, folds } = a.0.weight;
            let (nodes_in_all, inputs_in_all) = (sum.nodes + nodes, sum.inputs + inputs);
            sum = Weight { nodes: nodes_in_all, inputs: inputs_in_all, cost: sum.cost + cost, folds: sum.folds + folds };
            if heaviest.is_none_or(|(n, _)| nodes + 4 * inputs > n) {
                heaviest = Some((nodes + 4 * inputs, a));
            }
        }
        match heaviest {
            Some((_, a)) if sum.nodes > MAX_NODES || sum.inputs > MAX_INPUTS => a.value()?,
            _ => return Ok(sum),
        };
    }
}

impl NdArray {
    /// Locks and returns the expression; `None` once the value is computed.
    fn expr(&self) -> MutexGuard<'_, Option<Expr>> {
        self.0.expr.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this is a deferred operation of another crate that cannot be fused.
    fn is_foreign(&self) -> bool {
        self.is_deferred() && self.0.op.is_some_and(|op| op.is_foreign() && op.0.body.is_none())
    }

    /// Returns whether the value is still to be computed.
    pub fn is_deferred(&self) -> bool {
        self.0.value.get().is_none()
    }

    /// Runs a deferred expression and stores its value in the handle. Does not wait for the device.
    ///
    /// # Errors
    /// Errors of the evaluation. Later calls return the same error.
    pub fn eval(&self) -> Result<&NdArray> {
        self.value()?;
        Ok(self)
    }

    /// Returns the array in memory, and runs a deferred expression first.
    ///
    /// # Errors
    /// Errors of the evaluation. Later calls return the same error.
    pub fn stored(&self) -> Result<StoredArray> {
        self.value().cloned()
    }

    /// Returns whether this handle is the only reference to the array's elements.
    ///
    /// The elements are then in memory, and no other handle, view or deferred expression refers to them.
    pub fn is_unique(&mut self) -> bool {
        let value = Arc::get_mut(&mut self.0).and_then(|inner| inner.value.get_mut());
        value.is_some_and(|value| value.as_mut().is_ok_and(StoredArray::is_unique))
    }

    /// Makes the elements unique and C-contiguous, with copy-on-write like [`Arc::make_mut`].
    ///
    /// A deferred array is evaluated. An array that is shared ([`NdArray::is_unique`]) or not contiguous is copied. A kernel may then write
    /// to the elements in place, without effect on other handles.
    ///
    /// # Errors
    /// Errors of the evaluation, or too little memory for a copy.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let mut a = NdArray::zeros(3, DType::F32)?;
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
        let is_contiguous = self.value()?.layout().is_c_contiguous();
        if !is_contiguous || !self.is_unique() {
            *self = self.copy()?;
        }
        Ok(())
    }

    /// Returns a reference to the stored value. See [`NdArray::stored`].
    pub(crate) fn value(&self) -> Result<&StoredArray> {
        if self.0.value.get().is_none()
            && let Err(e) = self.run()
        {
            self.settle(Err(e));
        }
        match self.0.value.get() {
            Some(Ok(value)) => Ok(value),
            Some(Err(e)) => Err(Error::clone(e)),
            None => Err(Error::value("eval", "no value was computed")),
        }
    }

    /// Stores the result of the evaluation and drops the expression.
    fn settle(&self, value: Result<StoredArray>) {
        let _ = self.0.value.set(value.map_err(Box::new)); // if another thread was first, its value is equal
        let done = self.expr().take();
        drop(done); // outside the lock, since this may drop many nodes
    }

    /// Evaluates the expression and stores the value.
    fn run(&self) -> Result<()> {
        if let Some(value) = self.run_take() {
            self.settle(Ok(value?));
            return Ok(());
        }
        if self.0.weight.folds > 0 {
            if let Some(rows) = RowLoop::of(self)
                && self.run_rows(rows)?
            {
                return Ok(());
            }
            if let Some(fold) = self.fold() {
                self.settle(fold.run(self));
                return Ok(());
            }
        }
        if self.0.weight.nodes == 1 {
            let (mut program, mut inputs) = (Program::default(), SmallVec::new());
            if self.flatten_single(&mut program, &mut inputs) {
                if let Some(value) = self.run_program(&program, &inputs)?.pop() {
                    self.settle(Ok(value));
                }
                return Ok(());
            }
        }
        let mut flat = Flattened::new(self.is_foreign(), false);
        let root = flat.visit(self, self.shape(), true)?;
        flat.program.outputs.push(root);
        let kept = flat.extra_outputs(self.shape());
        for (step, _) in &kept {
            flat.program.outputs.push(*step);
        }
        let outputs = self.run_program(&flat.program, &flat.inputs)?;
        flat.mark_inlined();
        let mut outputs = outputs.into_iter();
        if let Some(first) = outputs.next() {
            self.settle(Ok(first));
        }
        for ((_, array), value) in kept.into_iter().zip(outputs) {
            array.settle(Ok(value));
        }
        Ok(())
    }

    /// Runs the expression as one Gather if it is a single take with stored indices. Returns `None` for other expressions.
    fn run_take(&self) -> Option<Result<StoredArray>> {
        if self.0.op != Some(FUSED_TAKE) {
            return None;
        }
        let (first, indices, size) = {
            let guard = self.expr();
            let Some(Expr::Elementwise { args, .. }) = guard.as_ref() else { return None };
            let [Operand::Array(first), Operand::Array(indices), Operand::Scalar(Scalar::Int(size))] = &args[..] else { return None };
            let stored = indices.0.value.get()?.as_ref().ok()?;
            if Some(stored.dtype()) != self.0.first.map(|first| first.signature.args[1]) || !stored.layout().is_c_contiguous() {
                return None;
            }
            (first.clone(), stored.clone(), usize::try_from(*size).ok()?)
        };
        Some(first.value().and_then(|first| run_fused_take(first, &indices, size)))
    }

    /// Runs a program whose first result is this array, and returns its results.
    fn run_program(&self, program: &Program, inputs: &[StoredArray]) -> Result<SmallVec<[StoredArray; 1]>> {
        let op = self.0.op.unwrap_or(crate::ops::elementwise::POSITIVE);
        let outputs = run_map(op, self.device(), self.shape(), program, inputs);
        if let Err(unsupported @ Error::Unsupported { .. }) = outputs {
            return Ok(SmallVec::from_elem(self.run_composite(op, unsupported)?, 1));
        }
        outputs
    }

    /// Flattens a single operation on stored arrays of its own shape and dtypes, which needs no traversal.
    ///
    /// Returns false for other expressions; `program` and `inputs` are then unspecified.
    fn flatten_single(&self, program: &mut Program, inputs: &mut SmallVec<[StoredArray; 4]>) -> bool {
        let guard = self.expr();
        let Some((Expr::Elementwise { args: operands, .. }, Operation { op, signature })) = guard.as_ref().zip(self.0.first) else {
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
                            program.push(StepKind::Input(inputs.len() as u16 - 1), want, &[])
                        }
                    }
                }
            };
        }
        let root = program.push(StepKind::Apply(op), self.dtype(), &args);
        program.outputs.push(root);
        op != crate::ops::elementwise::ASTYPE
    }

    /// Computes the value by the operation's composite, with arguments in the operation's dtypes. Returns the error if there is none.
    #[cold]
    fn run_composite(&self, op: Op, unsupported: Error) -> Result<StoredArray> {
        // The composite of `astype` would need converted arguments, so a conversion that every kernel declines is an error.
        let body = op.0.composite.filter(|_| op != crate::ops::elementwise::ASTYPE);
        let args = match self.expr().as_ref() {
            Some(Expr::Elementwise { args, .. }) => Some(args.clone()),
            _ => None,
        };
        let (Some(body), Some(args), Some(Operation { signature, .. })) = (body, args, self.0.first) else { return Err(unsupported) };
        let argument = |(arg, dtype): (&Operand, DType)| match arg {
            Operand::Array(a) => a.astype(dtype),
            Operand::Scalar(s) => NdArray::scalar_as(*s, dtype)?.to_device(self.device()),
        };
        let args = args.iter().zip(signature.args).map(argument).collect::<Result<Vec<_>>>()?;
        body(&args)?.astype(self.dtype())?.broadcast_to(self.shape())?.stored()
    }

    /// Calls `f` with the array as the fused input of a reduction or scan.
    ///
    /// The program has one result of `dtype`, and its inputs are broadcast to the shape. `f` borrows both, since they are large.
    pub(crate) fn with_prologue<R>(&self, dtype: DType, f: impl FnOnce(&Program, &[StoredArray]) -> Result<R>) -> Result<R> {
        // A node that another evaluation computed before is stored now, so that a loop over `x` and `x.sum()` takes linear time.
        if self.0.inlined.load(Ordering::Relaxed) > 0 || self.is_foreign() || self.is_fold() || !fusion_enabled() {
            self.value()?;
        }
        let mut flat = Flattened::new(false, true);
        let stored = self.0.value.get().and_then(|value| value.as_ref().ok());
        let mut root = match stored {
            Some(stored) => flat.program.push(StepKind::Input(0), stored.dtype(), &[]),
            None => flat.visit(self, self.shape(), true)?,
        };
        if self.dtype() != dtype {
            root = flat.program.push(StepKind::Cast, dtype, &[root]);
        }
        flat.program.outputs.push(root);
        flat.mark_inlined();
        if stored.is_none() && self.is_deferred() {
            self.0.inlined.fetch_add(1, Ordering::Relaxed);
        }
        f(&flat.program, stored.map_or(&flat.inputs, std::slice::from_ref))
    }
}

/// An expression that is being flattened into a program.
struct Flattened {
    program: Program,
    inputs: SmallVec<[StoredArray; 4]>,
    seen: SmallVec<[Seen; 12]>,
    /// Whether the program is a fused input, which cannot have further outputs.
    single_output: bool,
    /// Whether the root is an operation of another crate without a body, into which nothing is fused.
    unfused: bool,
    /// The row loop, if reductions along rows are steps of the program.
    rows: Option<RowLoop>,
}

/// A visited node that may have other references: its step, and the number of references from this expression.
struct Seen {
    array: NdArray,
    step: u16,
    references: usize,
    /// Cost of a deferred node; `None` for inputs.
    inner_cost: Option<u32>,
}

impl Flattened {
    fn new(unfused: bool, single_output: bool) -> Flattened {
        Flattened { program: Program::default(), inputs: SmallVec::new(), seen: SmallVec::new(), single_output, unfused, rows: None }
    }

    /// Appends the steps of an array and returns its step.
    fn visit(&mut self, array: &NdArray, shape: &[usize], root: bool) -> Result<u16> {
        // A node with one handle has one reference, so it needs no entry in `seen`.
        let is_shared = !root && Arc::strong_count(&array.0) > 1;
        if is_shared && let Some(seen) = self.seen.iter_mut().find(|s| Arc::ptr_eq(&s.array.0, &array.0)) {
            seen.references += 1;
            return Ok(seen.step);
        }
        if !root && self.runs_first(array, shape) {
            array.value()?;
        }
        let (step, inner_cost) = match array.is_deferred().then(|| array.expr()).as_ref().and_then(|e| e.as_ref()) {
            None => (self.input(array, shape)?, None),
            Some(Expr::Fold(fold)) => (self.fold(array, fold, shape)?, (!root).then_some(array.0.weight.cost)),
            Some(Expr::Elementwise { args, then }) => {
                let first = array.0.first.ok_or_else(|| Error::value("eval", "an expression without an operation"))?;
                (self.elementwise(first, args, then, shape)?, (!root).then_some(array.0.weight.cost))
            }
        };
        if is_shared {
            self.seen.push(Seen { array: array.clone(), step, references: 1, inner_cost });
        }
        Ok(step)
    }

    /// Appends a stored array as an input, broadcast to the loop's shape.
    fn input(&mut self, array: &NdArray, shape: &[usize]) -> Result<u16> {
        let stored = array.value()?;
        let step = self.program.push(StepKind::Input(self.inputs.len() as u16), stored.dtype(), &[]);
        self.inputs.push(match stored.shape() == shape {
            true => stored.clone(),
            false => stored.with_layout(stored.layout().broadcast_to(shape)?)?,
        });
        Ok(step)
    }

    /// Returns the step that converts `step` to `dtype`. It is appended unless it exists.
    fn cast(&mut self, step: u16, dtype: DType) -> u16 {
        let same = |s: &crate::program::Step| s.kind == StepKind::Cast && s.dtype == dtype && s.args[0] == step;
        match self.program.steps.iter().position(same) {
            Some(at) => at as u16,
            None => self.program.push(StepKind::Cast, dtype, &[step]),
        }
    }

    /// Returns inner nodes that become further outputs, as steps and arrays.
    ///
    /// These are nodes of the loop's shape that have other references and are expensive or were computed before. Results per row of
    /// reductions are kept too.
    fn extra_outputs(&self, shape: &[usize]) -> SmallVec<[(u16, NdArray); 2]> {
        self.seen
            .iter()
            .filter(|s| {
                let held_elsewhere = Arc::strong_count(&s.array.0) > s.references + 1; // `seen` holds one reference
                let is_expensive = s.inner_cost.is_some_and(|c| c >= 16 || s.array.0.inlined.load(Ordering::Relaxed) > 0);
                let keeps = if s.array.shape() == shape { is_expensive } else { s.inner_cost.is_some() && self.is_per_row(&s.array) };
                keeps && held_elsewhere && self.program.steps[s.step as usize].dtype == s.array.dtype()
            })
            .take(3)
            .map(|s| (s.step, s.array.clone()))
            .collect()
    }

    /// Returns whether an inner node is evaluated before this expression.
    ///
    /// That holds for operations that cannot be fused and for nodes that broadcasting would compute repeatedly. It also holds for nodes
    /// that were computed before and cannot be a further output.
    fn runs_first(&self, array: &NdArray, shape: &[usize]) -> bool {
        if !array.is_deferred() {
            return false;
        }
        if array.is_fold() && !self.rows.as_ref().is_some_and(|rows| rows.contains(array)) {
            return true;
        }
        let Weight { inputs, cost, folds, .. } = array.0.weight;
        let stretched = (cost >= 4 || inputs > 1 || folds > 0) && array.size() < shape.iter().product() && !self.is_per_row(array);
        let is_recomputed = self.single_output && cost >= 4 && array.0.inlined.load(Ordering::Relaxed) > 0;
        self.unfused || array.is_foreign() || stretched || is_recomputed
    }

    /// Returns whether an array contains reductions and has one element per row of this loop.
    fn is_per_row(&self, array: &NdArray) -> bool {
        self.rows.as_ref().is_some_and(|rows| array.0.weight.folds > 0 && array.shape() == &rows.results[..])
    }

    /// Increments the `inlined` counter of each deferred node that this evaluation computed.
    fn mark_inlined(&self) {
        for seen in self.seen.iter().filter(|s| s.inner_cost.is_some()) {
            seen.array.0.inlined.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Dispatches a Map over inputs that are broadcast to `shape`.
pub(crate) fn run_map(
    op: Op,
    device: Device,
    shape: &[usize],
    program: &Program,
    inputs: &[StoredArray],
) -> Result<SmallVec<[StoredArray; 1]>> {
    let flat = inputs.iter().all(|a| a.layout().is_c_contiguous());
    let layouts: SmallVec<[&Layout; 4]> = if flat { SmallVec::new() } else { inputs.iter().map(|a| a.layout()).collect() };
    let layout = if flat { Layout::contiguous(shape)? } else { Layout::contiguous_in_order(shape, &output_order(shape, &layouts))? };
    let size = layout.size();
    let mut outputs: SmallVec<[OutputSpec; 1]> = SmallVec::new();
    outputs.push(OutputSpec { dtype: program.output_dtype(0), layout });
    for n in 1..program.outputs.len() {
        outputs.push(OutputSpec { dtype: program.output_dtype(n), layout: outputs[0].layout.clone() });
    }
    let plan = if flat {
        LoopPlan::flat(inputs.len() + outputs.len(), size)
    } else {
        let operands: SmallVec<[&Layout; 8]> = layouts.iter().copied().chain(outputs.iter().map(|o| &o.layout)).collect();
        LoopPlan::new(&operands)
    };
    dispatch::run(&Call {
        op,
        device,
        stream: Stream::current(device),
        inputs,
        outputs: &outputs,
        work: Work::Map(call::Map { program, plan: &plan }),
    })
}
