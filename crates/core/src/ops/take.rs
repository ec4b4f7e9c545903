//! `take` and `take_along_axis`: elements at the positions in an index array, and checks of index bounds.

use crate::arguments::Axes;
use crate::array::{Array, NdArray, Outputs, StoredArray};
use crate::call;
use crate::call::{GatherIndices, OutputSpec, Work};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::{elementwise_with_dtypes, fusion_enabled};
use crate::function::FromArgs;
use crate::layout::{Dims, Layout, broadcast_shapes, checked_size, normalize_axis, normalize_axis_of_scalar};
use crate::op::{Capability, Cost, DTypeSignature, Family, MAX_ARITY, Op, OpDef};
use crate::ops::python_value::{Args, Value};
use crate::scalar::Scalar;
use cuprum_macros::{free_functions, numpy};

super::ops! { Gather after manipulation:
    TAKE "take" 2;
    TAKE_ALONG_AXIS "take_along_axis" 2;
}

/// The operation [`TAKE`] on a 1-D array as a step of a fused expression, for kernels that declare [`Capability::FusedTake`].
///
/// The step has three arguments: the array's first element as a repeated input, the index (int32 or int64), and the array's length in the
/// dtype of the index.
pub const FUSED_TAKE: Op = Op(&FUSED_TAKE_DEFINITION);

// `FUSED_TAKE` is not in the op table: `FUSED_TAKE` and `TAKE` have the same name `take`, and `Op::by_name` must return `TAKE`.
static FUSED_TAKE_DEFINITION: OpDef = OpDef {
    name: "take",
    family: Family::Gather,
    arity: 3,
    index: super::histogram::NEXT_OP_INDEX,
    rule: None,
    cost: Cost::Expensive,
    composite: Some(|inputs, _| dispatch_standalone_take(inputs)),
    body: None,
    reduction: None,
};

/// Holds the op index after that of [`FUSED_TAKE`], for the macro `ops!` that declares the next ops. The macro takes the path of a module,
/// so the constant has a module of its own.
pub(crate) mod fused_take_op_index {
    pub(crate) const NEXT_OP_INDEX: u16 = crate::ops::histogram::NEXT_OP_INDEX + 1;
}

/// Runs a deferred take that is not part of a larger expression as one call of the kernel family `Gather`. The inputs are the whole array
/// and the indices.
fn dispatch_standalone_take(inputs: &[StoredArray]) -> Result<Outputs> {
    let [a, indices] = inputs else { return Err(Error::value(TAKE.name(), "takes an array and indices")) };
    Ok(Outputs::from_elem(dispatch_gather(a.device(), a.clone(), indices.clone(), 0, indices.shape())?.stored()?, 1))
}

/// Builds a deferred `take` of a contiguous 1-D array. Indices of int32 or narrower are converted to int32 if int32 can represent the
/// array's length. Other indices are converted to int64.
fn build_fused_take(a: &StoredArray, indices: &NdArray) -> Result<NdArray> {
    let first = a.with_layout(Layout::strided(&[], &[], a.layout().offset())?)?;
    let size = a.layout().size();
    let is_narrow = indices.dtype().can_cast_safe(DType::I32) && i32::try_from(size).is_ok();
    let index_dtype = if is_narrow { DType::I32 } else { DType::I64 };
    let mut signature = DTypeSignature { args: [index_dtype; MAX_ARITY], result: a.dtype() };
    signature.args[0] = a.dtype();
    elementwise_with_dtypes(FUSED_TAKE, &mut [NdArray::from(first).into(), indices.into(), Scalar::Int(size as i128).into()], signature)
}

fn dispatch_gather(device: Device, a: StoredArray, indices: StoredArray, axis: usize, shape: &[usize]) -> Result<NdArray> {
    let out = OutputSpec::contiguous(a.dtype(), shape)?;
    let work = Work::Gather(call::Gather { axis, indices: GatherIndices::ReplaceAxis });
    super::dispatch_single_output(TAKE, device, &[a, indices], out, work)
}

/// Checks that indices are within an axis of `size` elements. Waits for the device.
///
/// Kernels check the indices that they read. This function is for indices that no kernel checks, such as those of a result without
/// elements.
///
/// # Errors
/// [`Error::Index`] with the smallest or the largest index, if that index is out of bounds.
pub fn check_index_bounds(op: &'static str, indices: &NdArray, axis: usize, size: usize) -> Result<()> {
    if indices.size() == 0 {
        return Ok(());
    }
    let indices = indices.astype(DType::I64)?;
    for index in [indices.min(())?, indices.max(())?] {
        let index = index.item()?.as_int().unwrap_or(0);
        let extent = size as i128;
        if !(-extent..extent).contains(&index) {
            return Err(Error::Index { op, index: index as i64, axis, size });
        }
    }
    Ok(())
}

/// Returns an error unless the dtype of `indices` is an integer dtype or bool.
fn reject_non_integer_indices(indices: &NdArray) -> Result<()> {
    match indices.dtype().kind() {
        Kind::Bool | Kind::Signed | Kind::Unsigned => Ok(()),
        _ => Err(Error::dtype(TAKE.name(), "indices must be integers", &[indices.dtype()])),
    }
}

/// Returns an array of the same indices in int32 or int64, the dtypes that kernels take.
pub(crate) fn cast_to_kernel_index_dtype(indices: &NdArray) -> Result<NdArray> {
    if indices.dtype() == DType::I32 { Ok(indices.clone()) } else { indices.astype(DType::I64) }
}

fn take_from_args(args: &Args) -> Result<Value> {
    let (a, mut indices) = (args.array("a")?, args.indices("indices")?);
    let axis = args.get("axis").map(|axis| axis.to_isize(args.op())).transpose()?;
    let extent = match axis {
        Some(axis) => a.shape().get(normalize_axis_of_scalar(args.op(), axis, a.ndim())?).copied().unwrap_or(1),
        None => a.size(),
    };
    reject_non_integer_indices(&indices)?;
    indices = match args.value("mode") {
        Some(Value::Str(mode)) if mode == "raise" => indices,
        Some(Value::Str(mode)) if mode == "clip" => indices.astype(DType::I64)?.clip(0, extent.saturating_sub(1))?,
        Some(Value::Str(mode)) if mode == "wrap" => indices.astype(DType::I64)?.remainder(extent)?,
        _ => return Err(Error::value(args.op(), "clipmode must be one of 'clip', 'raise', or 'wrap'")),
    };
    a.take(&indices, axis.map_or(Axes::All, Axes::One)).map(Value::Array)
}

/// # Indexing by arrays of indices or masks
///
/// For slices and integers, see [`NdArray::index`].
#[free_functions]
impl NdArray {
    /// Returns the elements at `indices` along an axis, or of the flattened array for `None` (`numpy.take`).
    ///
    /// The shape of `indices` replaces the axis. Negative indices count from the end, and bool counts as 0 and 1. A 0-d array is treated
    /// as an array of one element.
    ///
    /// On a GPU, a take of a contiguous 1-D array is deferred like elementwise operations. An expression such as
    /// `&w * &table.take(&i, 0)?`, or the argument of [`segment_sum`](crate::segment_sum), then reads the table in one pass.
    ///
    /// # Errors
    /// Indices that are not integers, or an index out of bounds. On a GPU, an index out of bounds is an error of the next call that waits
    /// for the device.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[10, 20, 30])?;
    /// let i = NdArray::from_slice(&[2i64, 0, -1])?;
    /// assert_eq!(a.take(&i, 0)?.to_vec::<i32>()?, [30, 10, 30]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("take(a, indices, axis=None, out=None, mode='raise')", method, call = take_from_args)]
    pub fn take(&self, indices: &NdArray, axis: impl Into<Axes>) -> Result<NdArray> {
        let name = TAKE.name();
        let Some(axis) = axis.into().at_most_one_axis(name)? else { return self.ravel()?.take(indices, 0) };
        let axis = normalize_axis_of_scalar(name, axis, self.ndim())?;
        let device = super::common_device(TAKE, self, indices)?;
        reject_non_integer_indices(indices)?;
        if self.ndim() == 0 {
            return self.ravel()?.take(indices, 0);
        }
        let (before, size, after) = (&self.shape()[..axis], self.shape()[axis], &self.shape()[axis + 1..]);
        let shape: Dims = before.iter().chain(indices.shape()).chain(after).copied().collect();
        if checked_size(name, &shape)? == 0 {
            // The result has no elements, so no kernel runs and the indices are checked here. As in NumPy, the indices are not checked if
            // an axis before `axis` is empty.
            if !before.contains(&0) {
                check_index_bounds(name, indices, axis, size)?;
            }
            return super::creation::full_on_device(device, &shape, Scalar::Int(0), self.dtype());
        }
        if size == 0 {
            return Err(Error::shape(name, "cannot take from an empty axis", &[self.shape(), indices.shape()]));
        }
        let a = self.stored()?;
        let is_flat = a.shape().len() == 1 && a.layout().is_c_contiguous();
        if is_flat && fusion_enabled() && dispatch::any_kernel_has_capability(Capability::FusedTake, Family::Map, device)? {
            return build_fused_take(&a, indices);
        }
        dispatch_gather(device, a, cast_to_kernel_index_dtype(indices)?.contiguous()?.stored()?, axis, &shape)
    }
}

fn take_along_axis_from_args(args: &Args) -> Result<Value> {
    let axis: Option<isize> = FromArgs::from_args(args, "axis")?;
    take_along_axis(&args.array("arr")?, &args.indices("indices")?, axis).map(Value::Array)
}

/// Returns elements along an axis, with separate indices for each position of the other axes (`numpy.take_along_axis`).
///
/// `indices` has as many axes as the array, and broadcasts with it along all axes except `axis`. Negative indices count from the end.
/// Without an axis, the array is flattened. A typical use is to apply the result of `argsort` or `argmax` along an axis.
///
/// # Errors
/// Indices out of bounds or not integers, or different numbers of axes. On a GPU, the next call that waits for the device reports an
/// index out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([3, 1, 2, 9, 8, 7], [2, 3])?;
/// let sorted = cuprum::take_along_axis(&a, &a.argsort(-1)?, -1)?;
/// assert_eq!(sorted.to_vec::<i32>()?, [1, 2, 3, 7, 8, 9]);
/// # Ok(())
/// # }
/// ```
#[numpy("take_along_axis(arr, indices, axis=-1)", call = take_along_axis_from_args)]
pub fn take_along_axis(arr: &NdArray, indices: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = TAKE_ALONG_AXIS.name();
    let Some(axis) = axis.into() else {
        if indices.ndim() != 1 {
            return Err(Error::shape(name, "when axis=None, `indices` must have a single dimension.", &[indices.shape()]));
        }
        return take_along_axis(&arr.ravel()?, indices, 0);
    };
    let axis = normalize_axis(name, axis, arr.ndim())?;
    let device = super::common_device(TAKE_ALONG_AXIS, arr, indices)?;
    if !indices.dtype().is_int() {
        return Err(Error::dtype(name, "`indices` must be an integer array", &[indices.dtype()]));
    }
    if indices.ndim() != arr.ndim() {
        let message = "`indices` and `arr` must have the same number of dimensions";
        return Err(Error::shape(name, message, &[indices.shape(), arr.shape()]));
    }
    if arr.ndim() == 1 {
        // The take of a 1-D array is not dispatched directly, because devices with `Capability::FusedTake` defer it.
        return arr.take(indices, 0).map_err(|error| match error {
            Error::Index { index, axis, size, .. } => Error::Index { op: name, index, axis, size },
            other => other,
        });
    }
    let mut others: Dims = arr.shape().into();
    others[axis] = 1;
    let shape = broadcast_shapes(name, &[&others, indices.shape()])?;
    let out = OutputSpec::contiguous(arr.dtype(), &shape)?;
    if checked_size(name, &shape)? == 0 {
        return super::creation::full_on_device(device, &shape, Scalar::Int(0), arr.dtype());
    }
    let (arr, indices) = (arr.stored()?, cast_to_kernel_index_dtype(indices)?.stored()?);
    let mut source_shape = shape.clone();
    source_shape[axis] = arr.shape()[axis];
    let arr = arr.with_layout(arr.layout().broadcast_to(&source_shape)?)?;
    let indices = indices.with_layout(indices.layout().broadcast_to(&shape)?)?;
    let work = Work::Gather(call::Gather { axis, indices: GatherIndices::PerElement });
    super::dispatch_single_output(TAKE_ALONG_AXIS, device, &[arr, indices], out, work)
}
