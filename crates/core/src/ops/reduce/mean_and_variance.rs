//! Means, variances and standard deviations: `mean`, `var`, `std`.

use cuprum_macros::{free_functions, numpy};

use crate::array::NdArray;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::op::{Capability, Family, Op};
use crate::ops::elementwise::{add, divide, maximum, subtract};
use crate::ops::reduce::axis_options::AxisOption::{Correction, DType as DTypeOption, KeepDims, Where};
use crate::ops::reduce::axis_options::AxisOptions;
use crate::ops::reduce::{COUNT_NONZERO, MEAN, STD, SUM, VAR, reduce};

/// Returns the dtype in which a mean or variance of `a` is computed, and the dtype of the result.
///
/// The dtype of the result is `requested`. By default, it is the dtype of `a`, or float64 for bool and integers. A 16-bit result is
/// computed in float32, a bool result in float64.
fn mean_computation_and_result_dtypes(a: &NdArray, requested: Option<DType>) -> (DType, DType) {
    let out = requested.unwrap_or(if a.dtype().is_inexact() { a.dtype() } else { DType::F64 });
    let work = match out {
        DType::F16 | DType::BF16 => DType::F32,
        DType::Bool => DType::F64,
        _ => out,
    };
    (work, out)
}

/// Returns the sum of squared distances from the mean, in two passes. The mean and the sum have the dtype `dtype`, if it is given. The
/// distances have the common dtype of `x` and the mean.
fn sum_squared_distances(x: &NdArray, over: &AxisOptions, dtype: Option<DType>) -> Result<NdArray> {
    let mean = x.mean(AxisOptions { keepdims: true, dtype, correction: None, ..over.clone() })?;
    let d = subtract(x, &mean).map_err(|e| e.with_function_name(VAR.name()))?;
    let over = &AxisOptions { dtype: None, ..over.clone() };
    let squares = if x.dtype().is_complex() {
        let (re, im) = (d.real()?, d.imag()?);
        add(re.square()?, im.square()?)?
    } else {
        d.square()?
    };
    let work = dtype.map_or(squares.dtype(), |dtype| mean_computation_and_result_dtypes(x, Some(dtype)).0);
    reduce(SUM, &squares, over, work, work)
}

/// Returns `sum / divisor` in the dtype `result`. As in NumPy, the quotient is complex if `result` is, so that no elements give NaN in both
/// parts.
fn divide_sum(sum: NdArray, divisor: impl Into<Operand>, result: DType) -> Result<NdArray> {
    let sum = if result.is_complex() { sum.astype(result)? } else { sum };
    divide(&sum, divisor)?.astype(result)
}

impl AxisOptions {
    /// Returns an error if an axis is out of bounds; a 0-d array has no valid axis. With a mask, nothing is checked here: as in NumPy, a
    /// 0-d array then accepts axis 0 or -1.
    fn check_axes_unless_masked(&self, op: Op, ndim: usize) -> Result<()> {
        if self.mask().is_none() { self.check_axes(op, ndim) } else { Ok(()) }
    }

    /// Returns, for each result of the reduction, the number of reduced elements at which the mask is true, in the floating dtype `work`,
    /// or in float64 if `work` is an integer dtype, which may be too narrow for the number.
    fn count_selected_elements(&self, a: &NdArray, mask: &NdArray, work: DType) -> Result<NdArray> {
        let mask = mask.broadcast_to(a.shape())?;
        let count = reduce(COUNT_NONZERO, &mask, &self.only_axes_and_keepdims(), DType::Bool, DType::I64)?;
        count.astype(if work.is_inexact() { work } else { DType::F64 })
    }
}

/// # Means and variances
#[free_functions]
impl NdArray {
    /// Returns the arithmetic mean (`numpy.mean`), in float64 for integers; NaN for no elements.
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.mean(0)?.to_vec::<f64>()?, [2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True)", method)]
    pub fn mean(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().check_accepted_options(MEAN.name(), &[KeepDims, DTypeOption, Where])?;
        over.check_axes_unless_masked(MEAN, self.ndim())?;
        let (work, out) = mean_computation_and_result_dtypes(self, over.dtype);
        let x = if out == DType::Bool { &self.astype(out)? } else { self };
        let sum = reduce(SUM, x, &over, work, work)?;
        if let Some(mask) = over.mask() {
            return divide(&sum, over.count_selected_elements(self, mask, work)?)?.astype(out);
        }
        let count = if sum.size() == 0 { 1.0 } else { self.size() as f64 / sum.size() as f64 };
        divide(&sum, count)?.astype(out)
    }

    /// Returns the variance: the sum of squared distances from the mean, divided by `n - correction` (`numpy.var`).
    ///
    /// The variance of complex numbers is real, unless the options set a complex dtype.
    ///
    /// A variance in a fused expression may use another algorithm than a variance computed alone, and so differ in the last bits.
    /// [`with_fusion(false, ..)`](crate::with_fusion) disables fusion. On the CPU, rows of up to 8 KiB use NumPy's two passes in both
    /// cases. A variance of longer rows that is computed alone uses one pass (Chan, Golub and LeVeque, 1983).
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, axis};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.var(1)?.to_vec::<f64>()?, [0.25, 0.25]);
    /// assert_eq!(a.var(axis(1).correction(1.0))?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None)", method)]
    pub fn var(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().check_accepted_options(VAR.name(), &[KeepDims, DTypeOption, Correction, Where])?;
        over.check_axes_unless_masked(VAR, self.ndim())?;
        let (work, out) = mean_computation_and_result_dtypes(self, over.dtype);
        let result = over.dtype.unwrap_or(out.real());
        // As in NumPy, if the requested dtype cannot hold the elements (a narrower or a real dtype, or integers), the mean has this dtype,
        // but the distances from the mean are computed from the elements themselves.
        let converts = out.is_inexact() && self.dtype().promote(out) == out;
        let x = if converts { self.astype(work)? } else { self.clone() };
        let dtype = if converts { None } else { over.dtype };
        if let Some(mask) = over.mask() {
            let sum = sum_squared_distances(&x, &over, dtype)?;
            let divisor = over.count_selected_elements(self, mask, work.real())?.subtract(over.correction.unwrap_or(0.0))?;
            return divide_sum(sum, maximum(divisor, 0)?, result);
        }
        let is_one_pass = self.size() > 0 && converts;
        let sum = match is_one_pass && dispatch::any_kernel_has_capability(Capability::Variance, Family::Reduce, self.device())? {
            true => reduce(VAR, &x, &over, work, work.real())?,
            false => sum_squared_distances(&x, &over, dtype)?,
        };
        let count = if sum.size() == 0 { 1.0 } else { self.size() as f64 / sum.size() as f64 };
        divide_sum(sum, (count - over.correction.unwrap_or(0.0)).max(0.0), result)
    }

    /// Returns the standard deviation, the square root of [`NdArray::var`] (`numpy.std`).
    ///
    /// # Errors
    /// The errors of [`NdArray::sum`], or an integer dtype unless the result is 0-d.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?;
    /// assert_eq!(a.std(1)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, correction=None)", method)]
    pub fn std(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        let over = over.into().check_accepted_options(STD.name(), &[KeepDims, DTypeOption, Correction, Where])?;
        let (work, out) = mean_computation_and_result_dtypes(self, over.dtype);
        let result = over.dtype.unwrap_or(out.real());
        // The variance of 16-bit floats is not rounded before the square root.
        let is_half = matches!(out, DType::F16 | DType::BF16) && self.dtype().promote(out) == out;
        let dtype = if is_half { Some(work) } else { over.dtype };
        let variance = self.var(AxisOptions { dtype, ..over })?;
        // NumPy writes the square roots into the array of the variance, which is an error for an integer dtype. NumPy converts only a 0-d
        // result to the integer dtype.
        if variance.ndim() > 0 && !result.is_inexact() {
            return Err(Error::dtype(STD.name(), "the root of an array cannot be stored as an integer", &[result]));
        }
        variance.sqrt()?.astype(result)
    }
}
