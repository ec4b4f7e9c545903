//! Reading elements by index arrays.

use crate::array::{Array, NdArray, StoredArray};
use crate::call;
use crate::call::{OutputSpec, Work};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::{build, fusion_enabled};
use crate::function::Indices;
use crate::layout::{Dims, Layout, checked_size, normalize_axis_of_scalar};
use crate::op::{Cost, Family, MAX_ARITY, Op, OpDef, Signature};
use crate::scalar::Scalar;
use cuprum_macros::numpy;

super::rows! { Gather after manipulation:
    TAKE "take" 2;
}

/// [`TAKE`] of a 1-D array as a step of an expression, for devices with a kernel that names it. Arguments: the array, of which the program sees
/// the first element as an input that is repeated; the index at hand, int32 or int64; the array's length, a number of the index's dtype.
pub const TAKE_EACH: Op = Op(&TAKE_EACH_ROW);

// No row of the table: `take` is the one that has a name.
static TAKE_EACH_ROW: OpDef = OpDef {
    name: "take",
    family: Family::Gather,
    arity: 3,
    index: super::histogram::END, // the last family
    rule: None,
    cost: Cost::Dear,
    composite: None,
    body: None,
};

/// `take` of a contiguous 1-D array as an operation of an expression. int32 indices and narrower ones stay so where they can count the array.
fn deferred(a: &StoredArray, indices: &NdArray) -> Result<NdArray> {
    let first = a.with_layout(Layout::strided(&[], &[], a.layout().offset())?)?;
    let size = a.layout().size();
    let is_narrow = indices.dtype().can_cast_safe(DType::I32) && i32::try_from(size).is_ok();
    let place = if is_narrow { DType::I32 } else { DType::I64 };
    let mut signature = Signature { args: [place; MAX_ARITY], result: a.dtype() };
    signature.args[0] = a.dtype();
    build(TAKE_EACH, &mut [NdArray::from(first).into(), indices.into(), Scalar::Int(size as i128).into()], signature)
}

/// What a [`TAKE_EACH`] that stands alone is: one call, of the whole array whose first element is given.
pub(crate) fn take_alone(first: &StoredArray, indices: &StoredArray, size: usize) -> Result<StoredArray> {
    let whole = first.with_layout(Layout::strided(&[size], &[1], first.layout().offset())?)?;
    gather(first.device(), whole, indices.clone(), 0, indices.shape())?.stored()
}

fn gather(device: Device, a: StoredArray, indices: StoredArray, axis: usize, shape: &[usize]) -> Result<NdArray> {
    let out = OutputSpec::contiguous(a.dtype(), shape)?;
    super::run_one(TAKE, device, &[a, indices], out, Work::Gather(call::Gather { axis }))
}

/// Refuses indices outside an axis of `size` elements. Waits for the device: for results without elements, which no kernel computes.
pub fn check_bounds(op: Op, indices: &NdArray, axis: usize, size: usize) -> Result<()> {
    if indices.size() == 0 {
        return Ok(());
    }
    let indices = indices.astype(DType::I64)?;
    for index in [indices.min(())?, indices.max(())?] {
        let index = index.item()?.as_int().unwrap_or(0);
        let extent = size as i128;
        if !(-extent..extent).contains(&index) {
            return Err(Error::Index { op: op.name(), index: index as i64, axis, size });
        }
    }
    Ok(())
}

impl NdArray {
    /// Elements at `indices` along an axis, or of the flattened array for `None` (`numpy.take`). Negative indices count from
    /// the end, bool counts as 0 and 1. The axis is replaced by the shape of `indices`; a 0-d array is taken from as one of one element.
    ///
    /// On a GPU a take of a contiguous 1-D array is deferred, as elementwise operations are, so that `&w * &table.take(&i, 0)?` and what
    /// [`segment_sum`](crate::segment_sum) adds up read the table in the pass that uses its elements.
    ///
    /// Errors: indices that are not integers; an index outside the axis, on a GPU at the next call that waits after the elements were computed.
    ///
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
    #[numpy("take(a, indices, axis=None)", method)]
    pub fn take(&self, #[read(Indices)] indices: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        let name = TAKE.name();
        let Some(axis) = axis.into() else { return self.ravel()?.take(indices, 0) };
        let axis = normalize_axis_of_scalar(name, axis, self.ndim())?;
        let device = super::one_device(TAKE, self, indices)?;
        if !matches!(indices.dtype().kind(), Kind::Bool | Kind::Signed | Kind::Unsigned) {
            return Err(Error::dtype(name, "indices must be integers", &[indices.dtype()]));
        }
        if self.ndim() == 0 {
            return self.ravel()?.take(indices, 0);
        }
        let (before, size, after) = (&self.shape()[..axis], self.shape()[axis], &self.shape()[axis + 1..]);
        let shape: Dims = before.iter().chain(indices.shape()).chain(after).copied().collect();
        if checked_size(name, &shape)? == 0 {
            // No kernel runs. As in NumPy, indices are checked once for each position on the axes before `axis`.
            if !before.contains(&0) {
                check_bounds(TAKE, indices, axis, size)?;
            }
            return super::creation::full_on(device, &shape, Scalar::Int(0), self.dtype());
        }
        if size == 0 {
            return Err(Error::shape(name, "cannot take from an empty axis", &[self.shape(), indices.shape()]));
        }
        let a = self.stored()?;
        let is_flat = a.shape().len() == 1 && a.layout().is_c_contiguous();
        if is_flat && fusion_enabled() && dispatch::is_named(TAKE_EACH, device)? {
            return deferred(&a, indices);
        }
        let indices = if indices.dtype() == DType::I32 { indices.clone() } else { indices.astype(DType::I64)? };
        gather(device, a, indices.contiguous()?.stored()?, axis, &shape)
    }
}
