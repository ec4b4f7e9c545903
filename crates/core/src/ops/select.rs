//! Elements and places at which a condition holds. The number of results is known only when they are, so these calls wait for
//! the device.

use crate::call;
use smallvec::SmallVec;

use crate::array::{Array, NdArray};
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout, normalize_axis_of_scalar};
use crate::op::Op;
use crate::ops::elementwise::{floor_divide, remainder};
use crate::ops::manipulation::stack;
use crate::ops::value::{Args, Value};
use cuprum_macros::numpy;

super::rows! { Select after segments:
    NONZERO "nonzero" 1;
    FLATNONZERO "flatnonzero" 1;
    ARGWHERE "argwhere" 1;
    EXTRACT "extract" 1;
    COMPRESS "compress" 1;
}

fn extract_by_name(args: &Args) -> Result<Value> {
    let (condition, arr) = (args.array("condition")?, args.array("arr")?);
    arr.ravel()?.extract(&condition.astype(DType::Bool)?.ravel()?).map(Value::Array)
}

/// Runs a Select: the values chosen from 1-D `from`, and their places if asked for.
fn select<const N: usize>(op: Op, condition: &NdArray, from: Option<&NdArray>, places: bool) -> Result<[NdArray; N]> {
    let (program, mut inputs) = super::flat_prologue(condition, DType::Bool)?;
    let layout = Layout::contiguous(&[condition.size()])?;
    let mut outputs: SmallVec<[OutputSpec; 2]> = SmallVec::new();
    if let Some(from) = from {
        let stored = from.ravel()?.contiguous()?.stored()?;
        outputs.push(OutputSpec { dtype: stored.dtype(), layout: layout.clone() });
        inputs.push(stored);
    }
    if places {
        outputs.push(OutputSpec { dtype: DType::I64, layout });
    }
    let work = Work::Select(call::Select { program: &program, values: from.is_some(), indices: places });
    super::run(op, condition.device(), &inputs, &outputs, work)
}

/// The index along each axis of places in a flattened array.
fn unravel(places: &NdArray, shape: &[usize]) -> Result<Vec<NdArray>> {
    let mut inner = shape.iter().product::<usize>();
    let along = |(axis, &extent): (usize, &usize)| {
        inner /= extent.max(1);
        let index = if inner > 1 { floor_divide(places, inner as i64)? } else { places.clone() };
        if axis == 0 { Ok(index) } else { remainder(index, extent.max(1) as i64) }
    };
    shape.iter().enumerate().map(along).collect()
}

impl NdArray {
    /// Indices (int64) of the elements that are not zero, in C order, one array for each axis (`numpy.nonzero`). Errors: a 0-d
    /// array.
    #[numpy("nonzero(a)", method)]
    pub fn nonzero(&self) -> Result<Vec<NdArray>> {
        if self.ndim() == 0 {
            return Err(Error::value(NONZERO.name(), "a 0-d array has no axis to index; reshape it to one element"));
        }
        let [places] = select(NONZERO, self, None, true)?;
        unravel(&places, self.shape())
    }

    /// Places (int64) in the flattened array of the elements that are not zero (`numpy.flatnonzero`).
    #[numpy("flatnonzero(a)")]
    pub fn flatnonzero(&self) -> Result<NdArray> {
        let [places] = select(FLATNONZERO, self, None, true)?;
        Ok(places)
    }

    /// Indices (int64) of the elements that are not zero, a row for each (`numpy.argwhere`).
    #[numpy("argwhere(a)")]
    pub fn argwhere(&self) -> Result<NdArray> {
        let [places] = select(ARGWHERE, self, None, true)?;
        if self.ndim() == 0 {
            return super::creation::full_on(self.device(), &[places.size(), 0], 0.into(), DType::I64);
        }
        stack(&unravel(&places, self.shape())?, 1)
    }

    /// The elements at which a boolean mask holds, in C order (`a[mask]`). A mask with fewer axes chooses along the first ones
    /// and keeps the others. An expression as the mask is fused: `a.extract(&a.greater(0)?)` stores no mask.
    ///
    /// Errors: a mask that is not bool, or whose shape is not that of the first axes.
    ///
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
    #[numpy("extract(condition, arr)", call = extract_by_name)]
    pub fn extract(&self, mask: &NdArray) -> Result<NdArray> {
        let name = EXTRACT.name();
        super::one_device(EXTRACT, self, mask)?;
        if mask.dtype() != DType::Bool {
            return Err(Error::dtype(name, "a mask is bool; compare, or use take for indices", &[mask.dtype()]));
        }
        let rest = match self.shape().strip_prefix(mask.shape()) {
            Some(rest) => rest,
            None => return Err(Error::shape(name, "a mask has the shape of the array's first axes", &[self.shape(), mask.shape()])),
        };
        if rest.is_empty() {
            let [chosen] = select(EXTRACT, mask, Some(self), false)?;
            return Ok(chosen);
        }
        let [places] = select(EXTRACT, mask, None, true)?;
        let rows: Dims = [mask.size()].into_iter().chain(rest.iter().copied()).collect();
        self.reshape(&rows[..])?.take(&places, 0)
    }

    /// Slices along an axis at which a 1-D condition holds, or elements of the flattened array for `None` (`numpy.compress`).
    /// A condition shorter than the axis stands for its first part. Errors: a condition that is not 1-D, or true beyond the axis.
    #[numpy("compress(condition, a, axis=None)", receiver = "a")]
    pub fn compress(&self, condition: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        let name = COMPRESS.name();
        let Some(axis) = axis.into() else { return self.ravel()?.compress(condition, 0) };
        let axis = normalize_axis_of_scalar(name, axis, self.ndim())?;
        super::one_device(COMPRESS, self, condition)?;
        if condition.ndim() != 1 {
            return Err(Error::shape(name, "the condition must be 1-D", &[self.shape(), condition.shape()]));
        }
        let [places] = select(COMPRESS, condition, None, true)?;
        self.take(&places, axis as isize)
    }
}
