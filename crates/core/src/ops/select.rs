//! Elements and indices selected by a condition. The size of the result depends on values, so these calls wait for the device.

use crate::call;
use smallvec::SmallVec;

use crate::arguments::Axes;
use crate::array::{Array, NdArray};
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::index::Item;
use crate::layout::{Dims, Layout, normalize_axis_of_scalar};
use crate::op::{Family, Op};
use crate::ops::elementwise::{floor_divide, remainder};
use crate::ops::manipulation::stack;
use cuprum_macros::{free_functions, numpy};

super::ops! { Select after segments:
    NONZERO "nonzero" 1;
    FLATNONZERO "flatnonzero" 1;
    ARGWHERE "argwhere" 1;
    EXTRACT "extract" 1;
    COMPRESS "compress" 1;
}

/// Returns the elements of the flattened `arr` at which the flattened `condition` is non-zero (`numpy.extract`).
///
/// [`NdArray::extract`] is `arr[condition]` for a boolean mask.
///
/// # Errors
/// A condition that is true beyond the elements of `arr`, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, extract};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[3, -1, 4])?;
/// assert_eq!(extract(&a.greater(0)?, &a)?.to_vec::<i32>()?, [3, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("extract(condition, arr)")]
pub fn extract(condition: &NdArray, arr: &NdArray) -> Result<NdArray> {
    let (arr, condition) = (arr.ravel()?, condition.astype(DType::Bool)?.ravel()?);
    if condition.size() > arr.size() {
        return arr.compress(&condition, 0).map_err(|error| replace_op_of_index_error(EXTRACT, error));
    }
    // As in NumPy, elements beyond the end of a shorter condition are not selected.
    arr.index(Item::slice(None, condition.size().min(arr.size()) as isize, 1))?.extract(&condition)
}

/// Returns `error`, with `op` as the function's name if it is an error for an index out of bounds.
fn replace_op_of_index_error(op: Op, error: Error) -> Error {
    match error {
        Error::Index { index, axis, size, .. } => Error::Index { op: op.name(), index, axis, size },
        error => error,
    }
}

/// Dispatches a call of the kernel family `Select`. Returns the elements of `from` at which `condition` is true, and the indices of these
/// elements if `indices` is true.
fn dispatch_select<const N: usize>(op: Op, condition: &NdArray, from: Option<&NdArray>, indices: bool) -> Result<[NdArray; N]> {
    let (program, mut inputs) = super::fuse_flattened_input(Family::Select, condition, DType::Bool)?;
    let layout = Layout::contiguous(&[condition.size()])?;
    let mut outputs: SmallVec<[OutputSpec; 2]> = SmallVec::new();
    if let Some(from) = from {
        let stored = from.ravel()?.contiguous()?.stored()?;
        outputs.push(OutputSpec::new(stored.dtype(), layout.clone()));
        inputs.push(stored);
    }
    if indices {
        outputs.push(OutputSpec::new(DType::I64, layout));
    }
    let work = Work::Select(call::Select { program: &program, values: from.is_some(), indices });
    super::dispatch_call(op, condition.device(), &inputs, &outputs, work)
}

/// Returns the index along each axis of `shape` for `indices` into the flattened array (`numpy.unravel_index`).
fn unravel_indices(indices: &NdArray, shape: &[usize]) -> Result<Vec<NdArray>> {
    let mut inner = shape.iter().product::<usize>();
    let along = |(axis, &extent): (usize, &usize)| {
        inner /= extent.max(1);
        let index = if inner > 1 { floor_divide(indices, inner as i64)? } else { indices.clone() };
        if axis == 0 { Ok(index) } else { remainder(index, extent.max(1) as i64) }
    };
    shape.iter().enumerate().map(along).collect()
}

/// # Selection by condition
///
/// The size of the result depends on values, so these calls wait for the device.
#[free_functions]
impl NdArray {
    /// Returns the int64 indices of the non-zero elements in C order, one array per axis (`numpy.nonzero`).
    ///
    /// # Errors
    /// A 0-d array, or errors of evaluation.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([0, 5, 7, 0], [2, 2])?;
    /// let indices = a.nonzero()?;
    /// assert_eq!(indices[0].to_vec::<i64>()?, [0, 1]);
    /// assert_eq!(indices[1].to_vec::<i64>()?, [1, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("nonzero(a)", method)]
    pub fn nonzero(&self) -> Result<Vec<NdArray>> {
        if self.ndim() == 0 {
            return Err(Error::value(NONZERO.name(), "a 0-d array has no axis to index; reshape it to one element"));
        }
        let [indices] = dispatch_select(NONZERO, self, None, true)?;
        unravel_indices(&indices, self.shape())
    }

    /// Returns the elements at which a boolean mask is true, in C order (`a[mask]`).
    ///
    /// A mask with fewer axes than the array selects along the first axes. A deferred mask is fused: `a.extract(&a.greater(0)?)` stores no
    /// mask.
    ///
    /// # Errors
    /// A mask that is not bool or whose shape is not that of the array's first axes, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[3, -1, 4, -1])?;
    /// assert_eq!(a.extract(&a.greater(0)?)?.to_vec::<i32>()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn extract(&self, mask: &NdArray) -> Result<NdArray> {
        let name = EXTRACT.name();
        super::common_device(EXTRACT, self, mask)?;
        if mask.dtype() != DType::Bool {
            return Err(Error::dtype(name, "a mask is bool; compare, or use take for indices", &[mask.dtype()]));
        }
        let rest = match self.shape().strip_prefix(mask.shape()) {
            Some(rest) => rest,
            None => return Err(Error::shape(name, "a mask has the shape of the array's first axes", &[self.shape(), mask.shape()])),
        };
        if rest.is_empty() {
            let [chosen] = dispatch_select(EXTRACT, mask, Some(self), false)?;
            return Ok(chosen);
        }
        let [indices] = dispatch_select(EXTRACT, mask, None, true)?;
        let rows: Dims = [mask.size()].into_iter().chain(rest.iter().copied()).collect();
        self.reshape(&rows[..])?.take(&indices, 0)
    }

    /// Returns the slices along an axis for which a 1-D condition is true (`numpy.compress`).
    ///
    /// With `None` as the axis, the condition selects elements of the flattened array. A condition shorter than the axis selects among the
    /// first slices.
    ///
    /// # Errors
    /// A condition that is not 1-D or is true beyond the axis, an axis out of bounds, or arrays on different devices.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1, 2, 3, 4], [2, 2])?;
    /// let rows = NdArray::from_slice(&[false, true])?;
    /// assert_eq!(a.compress(&rows, 0)?.to_vec::<i32>()?, [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("compress(condition, a, axis=None, out=None)", receiver = "a")]
    #[numpy("ndarray.compress(a, condition, axis=None, out=None)")]
    pub fn compress(&self, condition: &NdArray, axis: impl Into<Axes>) -> Result<NdArray> {
        let name = COMPRESS.name();
        let Some(axis) = axis.into().at_most_one_axis(name)? else { return self.ravel()?.compress(condition, 0) };
        let axis = normalize_axis_of_scalar(name, axis, self.ndim())?;
        super::common_device(COMPRESS, self, condition)?;
        if condition.ndim() != 1 {
            return Err(Error::shape(name, "the condition must be 1-D", &[self.shape(), condition.shape()]));
        }
        let [indices] = dispatch_select(COMPRESS, condition, None, true)?;
        self.take(&indices, axis).map_err(|error| replace_op_of_index_error(COMPRESS, error))
    }
}

/// Returns the int64 indices into the flattened array of the non-zero elements (`numpy.flatnonzero`).
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, flatnonzero};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[0, 5, 7])?;
/// assert_eq!(flatnonzero(&a)?.to_vec::<i64>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("flatnonzero(a)")]
pub fn flatnonzero(a: &NdArray) -> Result<NdArray> {
    let [indices] = dispatch_select(FLATNONZERO, a, None, true)?;
    Ok(indices)
}

/// Returns the int64 indices of the non-zero elements, one row per element (`numpy.argwhere`).
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, argwhere};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([0, 5, 7, 0], [2, 2])?;
/// assert_eq!(argwhere(&a)?.to_vec::<i64>()?, [0, 1, 1, 0]);
/// # Ok(())
/// # }
/// ```
#[numpy("argwhere(a)")]
pub fn argwhere(a: &NdArray) -> Result<NdArray> {
    let [indices] = dispatch_select(ARGWHERE, a, None, true)?;
    if a.ndim() == 0 {
        return super::creation::full_on_device(a.device(), &[indices.size(), 0], 0.into(), DType::I64);
    }
    stack(&unravel_indices(&indices, a.shape())?, 1)
}
