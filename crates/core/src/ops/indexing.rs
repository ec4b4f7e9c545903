//! Reading elements by index arrays.

use crate::array::NdArray;
use crate::call::{OutputSpec, Work};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::layout::{Dims, normalize_axis};
use crate::ops::value::{Args, Value};

super::rows! { Gather from 300:
    TAKE "take" [] 2 ("a, indices, axis=None") Some(|a: Args| {
        let axis = a.get("axis").map(|v| v.index("take")).transpose()?;
        a.array("a")?.take(&a.array("indices")?, axis).map(Value::Array)
    }), "Elements at the given indices along an axis.";
}

impl NdArray {
    /// Elements at `indices` along an axis, or of the flattened array for `None` (`numpy.take`). Negative indices count from
    /// the end. The axis is replaced by the shape of `indices`.
    ///
    /// Errors: indices that are not integers; an index outside the axis, on a GPU at the next call that waits.
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
    pub fn take(&self, indices: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        let name = TAKE.name();
        let Some(axis) = axis.into() else { return self.ravel()?.take(indices, 0) };
        let axis = normalize_axis(name, axis, self.ndim())?;
        let device = super::one_device(TAKE, self, indices)?;
        if !matches!(indices.dtype().kind(), Kind::Signed | Kind::Unsigned) {
            return Err(Error::dtype(name, "indices must be integers", &[indices.dtype()]));
        }
        let shape: Dims = self.shape()[..axis].iter().chain(indices.shape()).chain(&self.shape()[axis + 1..]).copied().collect();
        if self.shape()[axis] == 0 && indices.size() > 0 {
            return Err(Error::shape(name, "cannot take from an empty axis", &[self.shape(), indices.shape()]));
        }
        let indices = if indices.dtype() == DType::I32 { indices.clone() } else { indices.astype(DType::I64)? };
        let inputs = [self.stored()?, indices.contiguous()?.stored()?];
        super::run_one(TAKE, device, &inputs, OutputSpec::contiguous(self.dtype(), &shape)?, Work::Gather { axis })
    }
}
