//! Nodes of expressions: the handle, its shared state, operands and deferred operations.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use smallvec::SmallVec;

use crate::array::{Array, StoredArray};
use crate::call::OutputSpec;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Dims;
use crate::op::{ArgumentType, DTypeSignature, Family, Op};
use crate::program::Program;
use crate::scalar::Scalar;

/// An n-dimensional array with NumPy's semantics: a cheap handle to an immutable value. The model is `numpy.ndarray`.
///
/// dtype, shape and device are known without evaluation. Elementwise operations are deferred and fused;
/// they run when the value is needed (see [`NdArray::eval`]). Cloning shares the value.
///
/// ```
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1.0f32, 2.0, 3.0, 4.0])?.reshape([2, 2])?;
/// assert_eq!(a.shape(), &[2, 2]);
/// assert_eq!(a.dtype(), DType::F32);
/// assert_eq!(a.t()?.strides()?, vec![1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NdArray(pub(super) Arc<ArrayState>);

// Arrays are unwind-safe, because a panic leaves no array half-written: an evaluation that panics stores an error, and locks recover from
// poisoning.
impl UnwindSafe for NdArray {}
impl RefUnwindSafe for NdArray {}

/// The shared state of array handles: dtype, shape, device, and a value that is stored or deferred.
pub(super) struct ArrayState {
    pub dtype: DType,
    pub device: Device,
    pub shape: Dims,
    /// The operation whose result is the value: the last one of an expression with appended operations. `None` for arrays created with a
    /// value.
    pub op: Option<Op>,
    /// The first operation of an elementwise expression; `None` for other arrays. [`Expression::Elementwise`] lists the operations appended
    /// to the first.
    pub first: Option<DeferredOperation>,
    /// Size and cost of the deferred expression.
    pub weight: ExpressionWeight,
    pub value: OnceLock<Result<StoredArray, Box<Error>>>,
    /// The expression, until the value is computed.
    ///
    /// A thread that holds this lock may also lock the expressions of the array's arguments, but of no other arrays. Expressions are
    /// acyclic, so nested locks cannot deadlock.
    pub expr: Mutex<Option<Expression>>,
    /// Number of times that the evaluation of another array computed this node without storing its value.
    pub inlined: AtomicU32,
}

/// The source of a deferred array's value.
pub(super) enum Expression {
    /// An elementwise operation with arguments `args`, followed by the operations `then` that were appended to the node.
    Elementwise { args: Operands, then: Vec<AppendedOperation>, siblings: Option<Arc<Siblings>> },
    /// A reduction along rows, with one result per row.
    Fold(DeferredReduction),
}

/// The results of a [`MultiResultOp`](crate::op::MultiResultOp). When one result is evaluated, the same call also computes the other
/// results that are alive and deferred.
pub(super) type Siblings = OnceLock<SmallVec<[Weak<ArrayState>; 2]>>;

/// The arguments of an operation.
pub(crate) type Operands = SmallVec<[Operand; 3]>;

/// Size and cost of a deferred expression, including all deferred arguments.
#[derive(Clone, Copy, Default)]
pub(super) struct ExpressionWeight {
    /// Upper bound on the number of nodes. A shared node counts once per use, so the exact number may be lower.
    pub nodes: u32,
    /// Upper bound on the number of stored inputs. Inputs of a shared node count once per use, so the exact number may be lower.
    pub inputs: u32,
    /// Estimated cost of one element of the expression, in units of one elementary operation such as an addition.
    pub cost: u32,
    /// Number of deferred reductions. Shared nodes count once per use.
    pub folds: u32,
}

/// An elementwise operation with its argument and result dtypes.
#[derive(Clone, Copy)]
pub(super) struct DeferredOperation {
    pub op: Op,
    pub signature: DTypeSignature,
}

/// An operation that is appended to a node. One of its arguments is the result of the node's previous operation.
pub(super) struct AppendedOperation {
    pub operation: DeferredOperation,
    /// Index of the argument that receives the result of the previous operation.
    pub previous_result_index: u8,
    /// The arguments of the appended operation, in order, without the result of the previous operation.
    pub others: SmallVec<[Operand; 1]>,
}

/// A deferred reduction over the last axes, which stay with extent 1.
#[derive(Clone)]
pub(crate) struct DeferredReduction {
    /// The reduction.
    pub op: Op,
    /// The array to reduce.
    pub argument: NdArray,
    /// The reduced axes: the last axes of the argument.
    pub axes: Dims,
    /// dtype to which the elements are converted before they are reduced.
    pub value: DType,
    /// The functions that compute the reduction `op`, and the estimated number of program steps for `op`.
    pub implementation: &'static RowReductionImplementation,
}

/// Operation-specific part of a deferred reduction, as a table of functions. The reductions in `ops` define the tables.
pub(crate) struct RowReductionImplementation {
    /// Estimated number of steps that the reduction adds to a program, conversions included.
    pub nodes: u32,
    /// Appends the steps that reduce `values`, the index of a step, along rows of `length` elements. Returns the index of the last step.
    pub push: fn(fold: &DeferredReduction, program: &mut Program, values: u16, length: usize) -> u16,
    /// Computes the reduction by its own kernel, without fusing it into the expression that uses its result.
    pub run: fn(fold: &DeferredReduction, output: OutputSpec) -> Result<StoredArray>,
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
    /// Moves the operand out and leaves the scalar `false` as a placeholder.
    pub(super) fn take_operand(&mut self) -> Operand {
        std::mem::replace(self, Operand::Scalar(Scalar::Bool(false)))
    }

    /// Returns the operand's type for dtype rules: the dtype of an array, or a weak scalar.
    pub(crate) fn argument_type(&self) -> ArgumentType {
        match self {
            Operand::Array(a) => ArgumentType::Array(a.dtype()),
            Operand::Scalar(s) => ArgumentType::Weak(*s),
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
        NdArray(Arc::new(ArrayState {
            dtype: stored.dtype(),
            device: stored.device(),
            shape: Dims::from_slice(stored.shape()),
            op: None,
            first: None,
            weight: ExpressionWeight::default(),
            value: OnceLock::from(Ok(stored)),
            expr: Mutex::new(None),
            inlined: AtomicU32::new(0),
        }))
    }
}

/// # Deferral
///
/// Elementwise operations are deferred until their values are needed.
impl NdArray {
    /// Returns an array on the current device that has a shape but no value: reading it returns `error`.
    ///
    /// Trait implementations call this function where the trait does not allow them to return an error.
    #[cold]
    pub(crate) fn failed_array(dtype: DType, shape: &[usize], error: Error) -> NdArray {
        NdArray(Arc::new(ArrayState {
            dtype,
            device: Device::current().unwrap_or(Device::CPU),
            shape: Dims::from_slice(shape),
            op: None,
            first: None,
            weight: ExpressionWeight::default(),
            value: OnceLock::from(Err(Box::new(error))),
            expr: Mutex::new(None),
            inlined: AtomicU32::new(0),
        }))
    }

    /// Locks and returns the expression; `None` once the value is computed.
    #[inline]
    pub(super) fn lock_expression(&self) -> MutexGuard<'_, Option<Expression>> {
        self.0.expr.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the array is deferred and another crate defines its operation without code for fused kernels.
    #[inline]
    pub(super) fn lacks_fusion_code(&self) -> bool {
        self.is_deferred() && self.0.op.is_some_and(|op| op.is_defined_in_another_crate() && op.0.body.is_none())
    }

    /// Returns whether the value is still to be computed.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1.0, 2.0])?;
    /// assert!(!a.is_deferred() && (&a + 1).is_deferred());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn is_deferred(&self) -> bool {
        self.0.value.get().is_none()
    }

    /// Returns whether this array is a deferred reduction.
    #[inline]
    pub(super) fn is_deferred_reduction(&self) -> bool {
        self.is_deferred() && self.0.op.is_some_and(|op| op.family() == Family::Reduce)
    }

    /// Returns the reduction that computes this array, if the array is a deferred reduction.
    pub(super) fn as_deferred_reduction(&self) -> Option<DeferredReduction> {
        match self.lock_expression().as_ref() {
            Some(Expression::Fold(fold)) => Some(fold.clone()),
            _ => None,
        }
    }

    /// Returns the other results of the [`MultiResultOp`](crate::op::MultiResultOp) that computes this array, if they are still deferred.
    pub(super) fn other_results_of_function(&self) -> SmallVec<[NdArray; 2]> {
        let siblings = match self.lock_expression().as_ref() {
            Some(Expression::Elementwise { siblings: Some(siblings), .. }) if !self.lacks_fusion_code() => siblings.clone(),
            _ => return SmallVec::new(),
        };
        let alive = siblings.get().into_iter().flatten().filter_map(Weak::upgrade).map(NdArray);
        let is_other = |a: &NdArray| !Arc::ptr_eq(&a.0, &self.0) && a.is_deferred() && a.shape() == self.shape();
        alive.filter(is_other).collect()
    }

    /// Stores the result of the evaluation and drops the expression.
    pub(super) fn store_result(&self, value: Result<StoredArray>) {
        let _ = self.0.value.set(value.map_err(Box::new)); // if another thread was first, its value is equal
        let done = self.lock_expression().take();
        drop(done); // outside the lock, since this may drop many nodes
    }
}
