//! Scans along an axis: running sums, products, maxima and minima.

use crate::call;
use smallvec::SmallVec;

use crate::arguments::Axes;
use crate::array::NdArray;
use crate::call::{OutputSpec, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Family, Op};
use crate::ops::reduce::{self, AxisOption, AxisOptions};
use crate::plan::scan::ScanPlan;
use cuprum_macros::{free_functions, numpy};

super::ops! { Scan after reduce:
    CUMSUM "cumsum" 1 by &reduce::SUM_REDUCTION;
    CUMPROD "cumprod" 1 by &reduce::PRODUCT_REDUCTION;
    CUMMAX "cummax" 1 by &reduce::MAXIMUM_REDUCTION;
    CUMMIN "cummin" 1 by &reduce::MINIMUM_REDUCTION;
}

/// Plans and dispatches a scan along an axis, or of the flattened array for `None`.
fn dispatch_scan(op: Op, a: &NdArray, axis: Option<usize>, dtype: Option<DType>) -> Result<NdArray> {
    let Some(axis) = axis else { return dispatch_scan(op, &a.ravel()?, Some(0), dtype) };
    let dtype = dtype.unwrap_or(a.dtype().sum_dtype());
    let reduction = reduce::reduction_definition(op)?;
    a.with_fused_input(Family::Scan, dtype, |program, inputs| {
        let layouts: SmallVec<[&Layout; 4]> = inputs.iter().map(|i| i.layout()).collect();
        let plan = ScanPlan::new(a.shape(), &layouts, axis);
        let work = Work::Scan(call::Scan { program, reduction, axis, plan: &plan });
        super::dispatch_single_output(op, a.device(), inputs, OutputSpec::contiguous(dtype, a.shape())?, work)
    })
}

/// Dispatches a scan with the axis and dtype in `over`. A 0-d array gives a 1-D result of one element.
fn scan_with_options(op: Op, a: &NdArray, over: AxisOptions) -> Result<NdArray> {
    let over = over.check_accepted_options(op.name(), &[AxisOption::DType])?;
    let axis = over.resolve_one_axis_allowing_scalar(op, a.ndim())?;
    dispatch_scan(op, a, axis, over.requested_dtype())
}

/// # Running sums and products
///
/// [`cummax`] and [`cummin`] are free functions, not methods.
#[free_functions]
impl NdArray {
    /// Returns the running sum along an axis, or over the flattened array for `()` (`numpy.cumsum`).
    ///
    /// Bool and integers are summed in int64 or uint64 and wrap, unless `over` has a dtype. A 0-d array gives a 1-D result of one element.
    ///
    /// # Errors
    /// An axis out of bounds, more than one axis, or errors of evaluation.
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
    #[numpy("cumsum(a, axis=None, dtype=None, out=None)", method)]
    pub fn cumsum(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        scan_with_options(CUMSUM, self, over.into())
    }

    /// Returns the running product along an axis, or over the flattened array for `()` (`numpy.cumprod`).
    ///
    /// The dtypes are those of [`NdArray::cumsum`].
    ///
    /// # Errors
    /// The errors of [`NdArray::cumsum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1, 2, 3])?;
    /// assert_eq!(a.cumprod(0)?.to_vec::<i64>()?, [1, 2, 6]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("cumprod(a, axis=None, dtype=None, out=None)", method)]
    pub fn cumprod(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        scan_with_options(CUMPROD, self, over.into())
    }
}

/// Returns the running maximum along an axis, or over the flattened array for `None` (`numpy.maximum.accumulate`).
///
/// All results from the first NaN on are NaN. Complex numbers compare by real part, then imaginary part.
///
/// # Errors
/// An axis out of bounds, or errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, cummax};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 3, 2])?;
/// assert_eq!(cummax(&a, 0)?.to_vec::<i32>()?, [1, 3, 3]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "maximum.accumulate")]
#[numpy("cummax(a, axis=None)")]
pub fn cummax(a: &NdArray, axis: impl Into<Axes>) -> Result<NdArray> {
    dispatch_scan(CUMMAX, a, axis.into().resolve_one_axis(CUMMAX.name(), a.ndim())?, Some(a.dtype()))
}

/// Returns the running minimum along an axis, or over the flattened array for `None` (`numpy.minimum.accumulate`).
///
/// NaN and complex numbers are treated as by [`cummax`].
///
/// # Errors
/// The errors of [`cummax`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, cummin};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[2, 3, 1])?;
/// assert_eq!(cummin(&a, 0)?.to_vec::<i32>()?, [2, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "minimum.accumulate")]
#[numpy("cummin(a, axis=None)")]
pub fn cummin(a: &NdArray, axis: impl Into<Axes>) -> Result<NdArray> {
    dispatch_scan(CUMMIN, a, axis.into().resolve_one_axis(CUMMIN.name(), a.ndim())?, Some(a.dtype()))
}
