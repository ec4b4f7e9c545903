//! Scans along an axis: running sums, products and extremes.

use smallvec::SmallVec;

use crate::array::{Array, NdArray};
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Layout, normalize_axis, normalize_axis_of_scalar};
use crate::op::Op;
use crate::ops::value::{Args, Value};
use crate::plan::scan::ScanPlan;

super::rows! { Scan from 240:
    CUMSUM "cumsum" [] 1 ("a, axis=None, dtype=None") Some(|a: Args| a.array("a")?.cumsum_as(axis_of(&a)?, a.dtype("dtype")?).map(Value::Array)), "Running sum along an axis, or over the flattened array.";
    CUMPROD "cumprod" [] 1 ("a, axis=None, dtype=None") Some(|a: Args| a.array("a")?.cumprod_as(axis_of(&a)?, a.dtype("dtype")?).map(Value::Array)), "Running product along an axis, or over the flattened array.";
    CUMMAX "cummax" [] 1 ("a, axis=None") Some(|a: Args| a.array("a")?.cummax(axis_of(&a)?).map(Value::Array)), "Running maximum along an axis, or over the flattened array; NaN from the first NaN on.";
    CUMMIN "cummin" [] 1 ("a, axis=None") Some(|a: Args| a.array("a")?.cummin(axis_of(&a)?).map(Value::Array)), "Running minimum along an axis, or over the flattened array; NaN from the first NaN on.";
}

fn axis_of(args: &Args) -> Result<Option<isize>> {
    args.get("axis").map(|v| v.index(args.op())).transpose()
}

fn scan(op: Op, a: &NdArray, axis: Option<isize>, dtype: Option<DType>) -> Result<NdArray> {
    let Some(axis) = axis else { return scan(op, &a.ravel()?, Some(0), dtype) };
    if a.ndim() == 0 && [CUMSUM, CUMPROD].contains(&op) {
        normalize_axis_of_scalar(op.name(), axis, 0)?;
        return scan(op, a, None, dtype);
    }
    let axis = normalize_axis(op.name(), axis, a.ndim())?;
    let dtype = dtype.unwrap_or(a.dtype().sum_dtype());
    a.with_prologue(dtype, |program, inputs| {
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|i| i.layout()).collect();
        let plan = ScanPlan::new(a.shape(), &layouts, axis);
        let work = Work::Scan { program, plan: &plan };
        super::run_one(op, a.device(), inputs, OutputSpec::contiguous(dtype, a.shape())?, work)
    })
}

impl NdArray {
    /// Running sum along an axis, or over the flattened array for `None` (`numpy.cumsum`). Integers in int64 or uint64. A 0-d array gives
    /// one element, with or without an axis.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1, 2, 3])?;
    /// assert_eq!(a.cumsum(0)?.to_vec::<i64>()?, [1, 3, 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cumsum(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMSUM, self, axis.into(), None)
    }

    /// [`NdArray::cumsum`] computed and returned in a dtype.
    pub fn cumsum_as(&self, axis: impl Into<Option<isize>>, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
        scan(CUMSUM, self, axis.into(), dtype.into())
    }

    /// Running product along an axis, or over the flattened array for `None` (`numpy.cumprod`). Integers in int64 or uint64.
    pub fn cumprod(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMPROD, self, axis.into(), None)
    }

    /// [`NdArray::cumprod`] computed and returned in a dtype.
    pub fn cumprod_as(&self, axis: impl Into<Option<isize>>, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
        scan(CUMPROD, self, axis.into(), dtype.into())
    }

    /// Running maximum along an axis, or over the flattened array for `None` (`numpy.maximum.accumulate`). NaN from the first NaN
    /// on; complex numbers by real part, then imaginary.
    #[doc(alias = "maximum.accumulate")]
    pub fn cummax(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMMAX, self, axis.into(), Some(self.dtype()))
    }

    /// Running minimum along an axis, or over the flattened array for `None` (`numpy.minimum.accumulate`), as
    /// [`NdArray::cummax`].
    #[doc(alias = "minimum.accumulate")]
    pub fn cummin(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMMIN, self, axis.into(), Some(self.dtype()))
    }
}
