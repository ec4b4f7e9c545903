//! Scans along an axis: running sums, products, maxima and minima.

use crate::call;
use smallvec::SmallVec;

use crate::array::{Array, NdArray};
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::{Layout, normalize_axis, normalize_axis_of_scalar};
use crate::op::Op;
use crate::plan::scan::ScanPlan;
use cuprum_macros::numpy;

super::rows! { Scan after reduce:
    CUMSUM "cumsum" 1;
    CUMPROD "cumprod" 1;
    CUMMAX "cummax" 1;
    CUMMIN "cummin" 1;
}

/// Plans and dispatches a scan along an axis, or of the flattened array for `None`.
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
        let work = Work::Scan(call::Scan { program, plan: &plan });
        super::run_one(op, a.device(), inputs, OutputSpec::contiguous(dtype, a.shape())?, work)
    })
}

impl NdArray {
    /// Returns the running sum along an axis, or over the flattened array for `None` (`numpy.cumsum`).
    ///
    /// Bool and integers are summed in int64 or uint64 and wrap. A 0-d array gives a 1-D result of one element.
    ///
    /// # Errors
    /// An axis out of bounds, or errors of evaluation.
    ///
    /// # Examples
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

    /// Returns [`NdArray::cumsum`], computed and returned in `dtype` (`numpy.cumsum(.., dtype=)`).
    ///
    /// # Errors
    /// The errors of [`NdArray::cumsum`].
    #[numpy("cumsum(a, axis=None, dtype=None)", method)]
    pub fn cumsum_as(&self, axis: impl Into<Option<isize>>, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
        scan(CUMSUM, self, axis.into(), dtype.into())
    }

    /// Returns the running product along an axis, or over the flattened array for `None` (`numpy.cumprod`).
    ///
    /// The dtypes are those of [`NdArray::cumsum`].
    ///
    /// # Errors
    /// The errors of [`NdArray::cumsum`].
    pub fn cumprod(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMPROD, self, axis.into(), None)
    }

    /// Returns [`NdArray::cumprod`], computed and returned in `dtype` (`numpy.cumprod(.., dtype=)`).
    ///
    /// # Errors
    /// The errors of [`NdArray::cumsum`].
    #[numpy("cumprod(a, axis=None, dtype=None)", method)]
    pub fn cumprod_as(&self, axis: impl Into<Option<isize>>, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
        scan(CUMPROD, self, axis.into(), dtype.into())
    }

    /// Returns the running maximum along an axis, or over the flattened array for `None` (`numpy.maximum.accumulate`).
    ///
    /// All results from the first NaN on are NaN. Complex numbers compare by real part, then imaginary part.
    ///
    /// # Errors
    /// An axis out of bounds, or errors of evaluation.
    #[doc(alias = "maximum.accumulate")]
    #[numpy("cummax(a, axis=None)")]
    pub fn cummax(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMMAX, self, axis.into(), Some(self.dtype()))
    }

    /// Returns the running minimum along an axis, or over the flattened array for `None` (`numpy.minimum.accumulate`).
    ///
    /// NaN and complex numbers are treated as by [`NdArray::cummax`].
    ///
    /// # Errors
    /// The errors of [`NdArray::cummax`].
    #[doc(alias = "minimum.accumulate")]
    #[numpy("cummin(a, axis=None)")]
    pub fn cummin(&self, axis: impl Into<Option<isize>>) -> Result<NdArray> {
        scan(CUMMIN, self, axis.into(), Some(self.dtype()))
    }
}
