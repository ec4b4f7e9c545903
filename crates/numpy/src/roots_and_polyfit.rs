//! Roots of polynomials, and polynomials fitted to points.

use cuprum_core::ops::linalg::{eigvals, inv};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Error, NdArray, Result, add, arange, concat, divide, equal, matmul, multiply, negative, numpy, sqrt, with_device,
};

use crate::creation::vander;
use crate::data_types::finfo;
use crate::linalg::{LeastSquares, lstsq};
use crate::operand_and_slice_helpers::{new_filled_array, slice_axis, with_at_least_ndim};

/// Returns the roots of the polynomial with coefficients `p`, the highest power first (`numpy.roots`).
///
/// The roots are the eigenvalues of the companion matrix, followed by a zero for each trailing zero of `p`. The result is complex if a root
/// is complex. The call waits for the device, which finds leading and trailing zeros.
///
/// # Errors
/// Coefficients of more than one dimension, float16, or NaN.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let roots = cuprum::roots(&array![1.0, -3.0, 2.0])?.sort(-1)?.to_vec::<f64>()?; // (x - 1) (x - 2)
/// assert!((roots[0] - 1.0).abs() < 1e-12 && (roots[1] - 2.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[numpy("roots(p)")]
pub fn roots(p: &NdArray) -> Result<NdArray> {
    let p = with_at_least_ndim(p, 1)?;
    if p.ndim() != 1 {
        return Err(Error::shape("roots", "Input must be a rank-1 array.", &[p.shape()]));
    }
    let nonzero: Vec<i64> = cuprum_core::flatnonzero(&p)?.to_vec()?;
    let (Some(&first), Some(&last)) = (nonzero.first(), nonzero.last()) else { return new_filled_array(&p, &[0], 0, DType::F64) };
    let trailing = p.size() - 1 - last as usize;
    let p = slice_axis(&p, 0, first as isize, last as isize + 1, 1)?;
    let p = if p.dtype().is_inexact() { p } else { p.astype(DType::F64)? };
    let degree = p.size() - 1;
    if degree == 0 {
        return new_filled_array(&p, &[trailing], 0, DType::F64);
    }
    let top = negative(divide(slice_axis(&p, 0, 1, None, 1)?, slice_axis(&p, 0, 0, 1, 1)?)?)?.expand_dims(0)?;
    let steps = with_device(p.device(), || arange(0, degree as i64, 1))?;
    let below = slice_axis(&steps.expand_dims(1)?, 0, 0, degree as isize - 1, 1)?;
    let shifted = equal(below, steps.expand_dims(0)?)?.astype(p.dtype())?;
    let found = eigvals(&concat(&[top, shifted], 0)?)?;
    concat(&[found.clone(), new_filled_array(&found, &[trailing], 0, found.dtype())?], 0)
}

/// A polynomial fit: a weighted least-squares problem in powers of `x`, with columns scaled to norm 1, and its solution.
struct PolynomialFit {
    /// Scaled powers of `x`, one column each, times the weights.
    powers: NdArray,
    /// Norms of the columns before they were scaled.
    scale: NdArray,
    /// The argument `rcond`, or its default.
    rcond: f64,
    /// The least-squares solution. Its coefficients belong to the unscaled powers of `x`.
    fit: LeastSquares,
}

impl PolynomialFit {
    fn fit_polynomial(x: &NdArray, y: &NdArray, deg: isize, rcond: Option<f64>, w: Option<&NdArray>) -> Result<PolynomialFit> {
        let name = "polyfit";
        let (x, y) = (add(x, 0.0)?, add(y, 0.0)?);
        let columns = usize::try_from(deg).ok().and_then(|deg| deg.checked_add(1));
        let columns = columns.ok_or_else(|| Error::value(name, "expected deg >= 0"))?;
        if x.ndim() != 1 || x.size() == 0 {
            return Err(Error::shape(name, "expected a 1-D vector for x that is not empty", &[x.shape()]));
        }
        if y.ndim() != 1 && y.ndim() != 2 {
            return Err(Error::shape(name, "expected 1D or 2D array for y", &[y.shape()]));
        }
        if y.shape()[0] != x.size() {
            return Err(Error::shape(name, "expected x and y to have same length", &[x.shape(), y.shape()]));
        }
        let rcond = match rcond {
            Some(rcond) => rcond,
            None => x.size() as f64 * finfo(x.dtype())?.eps,
        };
        let (mut powers, mut values) = (vander(&x, columns, false)?, y);
        if let Some(w) = w {
            if w.shape() != x.shape() {
                return Err(Error::shape(name, "expected w and y to have the same length", &[w.shape(), x.shape()]));
            }
            let column = add(w, 0.0)?.expand_dims(1)?;
            values = if values.ndim() == 1 { multiply(&values, w)? } else { multiply(&values, &column)? };
            powers = multiply(powers, column)?;
        }
        let scale = sqrt(multiply(&powers, &powers)?.sum(0)?)?;
        let powers = divide(powers, &scale)?;
        let mut fit = lstsq(&powers, &values, Some(rcond))?;
        let columns = if fit.solution.ndim() == 1 { scale.clone() } else { scale.expand_dims(1)? };
        fit.solution = divide(&fit.solution, columns)?;
        Ok(PolynomialFit { powers, scale, rcond, fit })
    }

    /// Returns the covariance matrix of the coefficients. If `points`, the number of points, is given, the matrix is scaled by the variance
    /// of the residuals.
    fn coefficient_covariance(&self, points: Option<usize>) -> Result<NdArray> {
        let base = inv(&matmul(&self.powers.t()?, &self.powers)?)?;
        let base = divide(base, multiply(self.scale.expand_dims(1)?, &self.scale)?)?;
        let is_single = self.fit.solution.ndim() == 1;
        let base = if is_single { base } else { base.expand_dims(2)? };
        let Some(points) = points else { return Ok(base) };
        let freedom = points.saturating_sub(self.scale.size());
        if freedom == 0 {
            let message = "the number of data points must exceed order to scale the covariance matrix";
            return Err(Error::value("polyfit", message));
        }
        multiply(base, divide(&self.fit.residuals, freedom)?)
    }
}

/// Returns the least-squares polynomial of degree `deg` through points (`numpy.polyfit`): its coefficients, the highest power first.
///
/// `x` is (m), `y` is (m), or (m, k) for a polynomial of each column. `w` are weights of the residuals, not of their squares. Singular
/// values of at most `rcond` times the largest one are treated as 0. The default of `rcond` is m times the machine epsilon. Integers are
/// computed in float64.
/// [`polyfit_covariance`] returns the uncertainty of the coefficients, [`polyfit_details`] the residuals, the rank and the singular values.
///
/// The call waits for the device to determine the rank.
///
/// # Errors
/// A negative degree, shapes that do not match, NaN, float16, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let (x, y) = (array![0.0, 1.0, 2.0, 3.0], array![1.0, 3.0, 5.0, 7.0]);
/// let line = cuprum::polyfit(&x, &y, 1, None, None)?.to_vec::<f64>()?; // 2 x + 1
/// assert!((line[0] - 2.0).abs() < 1e-12 && (line[1] - 1.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[numpy("polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False)", call = polyfit_from_args)]
pub fn polyfit(x: &NdArray, y: &NdArray, deg: isize, rcond: Option<f64>, w: Option<&NdArray>) -> Result<NdArray> {
    PolynomialFit::fit_polynomial(x, y, deg, rcond, w).map(|fit| fit.fit.solution)
}

/// Returns the fitted polynomial with the residuals, the rank and the singular values, and the `rcond` of the fit
/// (`numpy.polyfit(full=True)`).
///
/// # Errors
/// The errors of [`polyfit`].
pub fn polyfit_details(x: &NdArray, y: &NdArray, deg: isize, rcond: Option<f64>, w: Option<&NdArray>) -> Result<(LeastSquares, f64)> {
    PolynomialFit::fit_polynomial(x, y, deg, rcond, w).map(|fit| (fit.fit, fit.rcond))
}

/// Returns the fitted polynomial and the covariance matrix of its coefficients (`numpy.polyfit(cov=True)`).
///
/// The matrix is scaled by the variance of the residuals, unless `unscaled` (`cov='unscaled'`).
///
/// # Errors
/// The errors of [`polyfit`]. For a scaled matrix, also a number of points that does not exceed the number of coefficients.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let (x, y) = (array![-1.0, 0.0, 1.0], array![1.0, 0.0, 2.0]);
/// let (line, covariance) = cuprum::polyfit_covariance(&x, &y, 1, None, None, true)?;
/// assert_eq!((line.shape(), covariance.shape()), (&[2][..], &[2, 2][..]));
/// # Ok(())
/// # }
/// ```
pub fn polyfit_covariance(
    x: &NdArray,
    y: &NdArray,
    deg: isize,
    rcond: Option<f64>,
    w: Option<&NdArray>,
    unscaled: bool,
) -> Result<(NdArray, NdArray)> {
    let fit = PolynomialFit::fit_polynomial(x, y, deg, rcond, w)?;
    let covariance = fit.coefficient_covariance((!unscaled).then_some(x.size()))?;
    Ok((fit.fit.solution, covariance))
}

fn polyfit_from_args(args: &Args) -> Result<Value> {
    let w = args.get("w").map(|w| w.array(args.op())).transpose()?;
    let rcond = args.get("rcond").map(|_| args.scalar("rcond")).transpose()?.map(|rcond| rcond.as_f64());
    let (x, y, deg) = (args.array("x")?, args.array("y")?, args.int_or("deg", 0)?);
    let fit = PolynomialFit::fit_polynomial(&x, &y, deg, rcond, w.as_ref()).map_err(|e| e.with_function_name(args.op()))?;
    if args.bool_or("full", false)? {
        let LeastSquares { solution, residuals, rank, singular_values } = fit.fit;
        return Ok(Value::tuple([solution.into(), residuals.into(), rank.into(), singular_values.into(), fit.rcond.into()]));
    }
    let points = match args.value("cov") {
        Some(Value::Str(text)) if text == "unscaled" => None,
        Some(Value::Scalar(scaled)) if !scaled.as_bool() => return Ok(fit.fit.solution.into()),
        Some(Value::Scalar(_)) => Some(x.size()),
        _ => return Err(Error::value(args.op(), "'cov' must be True, False or 'unscaled'")),
    };
    let covariance = fit.coefficient_covariance(points).map_err(|e| e.with_function_name(args.op()))?;
    Ok(Value::tuple([fit.fit.solution.into(), covariance.into()]))
}
