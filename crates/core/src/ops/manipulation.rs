//! Copies and joins, and the view methods as rows for callers by name.

use smallvec::SmallVec;

use crate::array::{Array, NdArray, StoredArray};
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, normalize_axis, normalize_axis_of_scalar};
use crate::op::Op;
use crate::ops::value::{Args, Value};

super::rows! { Copy from 280:
    COPY "copy" ["ascontiguousarray", "ndarray.copy"] 1 ("a") Some(|a: Args| a.array("a")?.copy().map(Value::Array)), "A copy in C order.";
    CONCAT "concat" ["concatenate"] 0 ("arrays, axis=0") Some(|a: Args| match a.get("axis") {
        None if a.is_none("axis") => {
            let flat: Result<Vec<NdArray>> = a.arrays("arrays")?.iter().map(NdArray::ravel).collect();
            concat(&flat?, 0)
        }
        None => concat(&a.arrays("arrays")?, 0),
        Some(v) => concat(&a.arrays("arrays")?, v.index("concat")?),
    }.map(Value::Array)), "Arrays joined along an axis.";
    STACK "stack" [] 0 ("arrays, axis=0") Some(|a: Args| stack(&a.arrays("arrays")?, a.int_or("axis", 0)?).map(Value::Array)), "Arrays joined along a new axis.";
    RESHAPE "reshape" [] 1 ("a, shape") Some(|a: Args| a.array("a")?.reshape(a.ints("shape")?.unwrap_or_default()).map(Value::Array)), "The elements under another shape; one extent may be -1.";
    RAVEL "ravel" ["flatten"] 1 ("a") Some(|a: Args| a.array("a")?.ravel().map(Value::Array)), "All elements in one axis, in C order.";
    PERMUTE_DIMS "permute_dims" ["transpose"] 1 ("a, axes=None") Some(|a: Args| match a.ints("axes")? {
        None => a.array("a")?.t(),
        Some(axes) => a.array("a")?.permute_dims(&axes),
    }.map(Value::Array)), "Axes in another order, reversed if none is given.";
    SWAPAXES "swapaxes" [] 1 ("a, axis1, axis2") Some(|a: Args| a.array("a")?.swapaxes(a.int_or("axis1", 0)?, a.int_or("axis2", 0)?).map(Value::Array)), "Two axes exchanged.";
    MOVEAXIS "moveaxis" [] 1 ("a, source, destination") Some(|a: Args| {
        a.array("a")?.moveaxis(&a.ints("source")?.unwrap_or_default(), &a.ints("destination")?.unwrap_or_default()).map(Value::Array)
    }), "Axes moved to new places.";
    SQUEEZE "squeeze" [] 1 ("a, axis=None") Some(|a: Args| {
        let x = a.array("a")?;
        match a.get("axis") {
            // NumPy accepts axis 0 or -1 of a 0-d array as a number, and refuses it in a tuple.
            Some(axis) if x.ndim() == 0 && axis.items().is_none() => normalize_axis_of_scalar("squeeze", axis.index("squeeze")?, 0).map(|_| x),
            _ => x.squeeze(a.ints("axis")?.as_deref()),
        }
        .map(Value::Array)
    }), "Without axes of extent 1.";
    EXPAND_DIMS "expand_dims" [] 1 ("a, axis") Some(|a: Args| a.array("a")?.expand_dims(&a.ints("axis")?.unwrap_or_default()).map(Value::Array)), "With new axes of extent 1.";
    FLIP "flip" [] 1 ("a, axis=None") Some(|a: Args| a.array("a")?.flip(a.ints("axis")?.as_deref()).map(Value::Array)), "Axes reversed in direction.";
    BROADCAST_TO "broadcast_to" [] 1 ("a, shape") Some(|a: Args| a.array("a")?.broadcast_to(a.shape("shape")?).map(Value::Array)), "Stretched to a shape.";
    DIAGONAL "diagonal" [] 1 ("a, offset=0, axis1=0, axis2=1") Some(|a: Args| {
        a.array("a")?.diagonal(a.int_or("offset", 0)?, a.int_or("axis1", 0)?, a.int_or("axis2", 1)?).map(Value::Array)
    }), "Diagonals of two axes.";
}

impl NdArray {
    /// The same values in C order without gaps: this array if it is so already, else a copy (`numpy.ascontiguousarray`,
    /// but for 0-d arrays, which stay 0-d).
    pub fn contiguous(&self) -> Result<NdArray> {
        let stored = self.stored()?;
        if stored.layout().is_c_contiguous() { Ok(self.clone()) } else { self.copy() }
    }

    /// A copy in C order (`numpy.copy`).
    pub fn copy(&self) -> Result<NdArray> {
        let stored = self.stored()?;
        let out = OutputSpec::contiguous(self.dtype(), self.shape())?;
        let whole = out.layout.clone();
        super::run_one(COPY, self.device(), &[stored], out, Work::Copy { regions: &[whole] })
    }
}

fn join(op: Op, arrays: &[NdArray], axis: usize, shape: &[usize]) -> Result<NdArray> {
    let device = arrays[0].device();
    for other in arrays {
        super::one_device(op, &arrays[0], other)?;
    }
    let dtype = DType::promote_all(arrays.iter().map(NdArray::dtype)).unwrap_or(DType::F64);
    let out = OutputSpec::contiguous(dtype, shape)?;
    let (mut parts, mut regions) = (SmallVec::<[StoredArray; 4]>::new(), SmallVec::<[Layout; 4]>::new());
    let mut start = 0;
    for a in arrays {
        let extent = a.shape()[axis];
        if a.size() > 0 {
            parts.push(a.astype(dtype)?.stored()?);
            regions.push(out.layout.sliced(axis, start, 1, extent));
        }
        start += extent;
    }
    if parts.is_empty() {
        return super::creation::full_on(device, shape, crate::scalar::Scalar::Int(0), dtype);
    }
    super::run_one(op, device, &parts, out, Work::Copy { regions: &regions })
}

/// Arrays joined along an axis; the other extents must agree; dtypes are promoted (`numpy.concat`, `numpy.concatenate`).
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, concat};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2])?, NdArray::from_slice(&[3])?);
/// assert_eq!(concat(&[a, b], 0)?.to_vec::<i32>()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "concatenate")]
pub fn concat(arrays: &[NdArray], axis: isize) -> Result<NdArray> {
    let name = CONCAT.name();
    let Some(head) = arrays.first() else { return Err(Error::value(name, "need at least one array")) };
    if head.ndim() == 0 {
        return Err(Error::value(name, "zero-dimensional arrays cannot be concatenated; use stack"));
    }
    let axis = normalize_axis(name, axis, head.ndim())?;
    let mut shape: Dims = head.shape().into();
    shape[axis] = 0;
    for a in arrays {
        let fits = a.ndim() == head.ndim() && (0..head.ndim()).all(|i| i == axis || a.shape()[i] == head.shape()[i]);
        if !fits {
            let message = format!("all extents but that of axis {axis} must agree");
            return Err(Error::shape(name, message, &[head.shape(), a.shape()]));
        }
        shape[axis] += a.shape()[axis];
    }
    join(CONCAT, arrays, axis, &shape)
}

/// Arrays of one shape joined along a new axis (`numpy.stack`).
pub fn stack(arrays: &[NdArray], axis: isize) -> Result<NdArray> {
    let name = STACK.name();
    let Some(head) = arrays.first() else { return Err(Error::value(name, "need at least one array")) };
    if let Some(other) = arrays.iter().find(|a| a.shape() != head.shape()) {
        return Err(Error::shape(name, "all arrays must have the same shape", &[head.shape(), other.shape()]));
    }
    let axis = normalize_axis(name, axis, head.ndim() + 1)?;
    let widened: Result<Vec<NdArray>> = arrays.iter().map(|a| a.expand_dims(&[axis as isize])).collect();
    let mut shape: Dims = head.shape().into();
    shape.insert(axis, arrays.len());
    join(STACK, &widened?, axis, &shape)
}
