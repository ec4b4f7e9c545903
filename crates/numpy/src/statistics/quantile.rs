//! Quantiles and percentiles: `quantile`, `percentile`, `nanquantile`, `nanpercentile`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    AxisOptions, DType, Error, NdArray, Operand, Result, Scalar, add, axis as over_axis, broadcast_to, divide, equal, greater_equal,
    isfinite, isnan, less, logical_and, logical_not, logical_or, maximum, minimum, multiply, numpy, stack, subtract, take_along_axis,
    where_,
};

use crate::operand_and_slice_helpers::{new_filled_array, slice_axis};
use crate::statistics::order_statistics::{FlattenedRows, order_statistics, replace_results_of_nan_rows};
use crate::statistics::quantile_method::QuantileMethod::{AveragedInvertedCdf, InvertedCdf, Linear, Midpoint};
use crate::statistics::quantile_method::{QuantileMethod, QuantilePosition};
use crate::statistics::reshape_weights;

/// The argument `q` of [`quantile`] and [`percentile`]: a number, a list of numbers, or an array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, QuantileMethod::Linear, percentile};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[4.0, 1.0, 2.0, 3.0])?;
/// assert_eq!(percentile(&a, 50, (), Linear)?.item()?, 2.5);
/// assert_eq!(percentile(&a, [0, 100], (), Linear)?.to_vec::<f64>()?, [1.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub enum Quantiles {
    /// A Python-like number, or an array of at most two dimensions.
    Operand(Operand),
    /// A list of numbers, which gives the result a first axis.
    List(Vec<Scalar>),
}

macro_rules! quantiles_from_operand {
    ($($t:ty),*) => {
        $(impl From<$t> for Quantiles {
            fn from(q: $t) -> Quantiles {
                Quantiles::Operand(q.into())
            }
        })*
    };
}
quantiles_from_operand!(f64, f32, i64, i32, u32, u8, usize, Scalar, Operand, &Operand, NdArray, &NdArray);

impl<T: Into<Scalar>> From<Vec<T>> for Quantiles {
    fn from(list: Vec<T>) -> Quantiles {
        Quantiles::List(list.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Scalar>, const N: usize> From<[T; N]> for Quantiles {
    fn from(list: [T; N]) -> Quantiles {
        Quantiles::List(list.into_iter().map(Into::into).collect())
    }
}

impl<T: Copy + Into<Scalar>> From<&[T]> for Quantiles {
    fn from(list: &[T]) -> Quantiles {
        Quantiles::List(list.iter().copied().map(Into::into).collect())
    }
}

impl<T: Copy + Into<Scalar>, const N: usize> From<&[T; N]> for Quantiles {
    fn from(list: &[T; N]) -> Quantiles {
        list.as_slice().into()
    }
}

impl<T: Copy + Into<Scalar>> From<&Vec<T>> for Quantiles {
    fn from(list: &Vec<T>) -> Quantiles {
        list.as_slice().into()
    }
}

impl FromArgs for Quantiles {
    fn from_args(args: &Args, name: &str) -> Result<Quantiles> {
        args.operand(name).map(Quantiles::Operand)
    }
}

/// The probabilities of the requested quantiles, as numbers on the host, with their shape and dtype.
struct Probabilities {
    values: Vec<f64>,
    shape: Vec<usize>,
    /// The dtype of an array; `None` for a Python number, which is weak.
    dtype: Option<DType>,
    is_integer: bool,
}

impl Probabilities {
    /// Reads probabilities between 0 and 1, or percentages if `percent`.
    fn from_quantiles(op: &'static str, q: &Quantiles, percent: bool) -> Result<Probabilities> {
        let q = match q {
            Quantiles::Operand(Operand::Array(a)) => Self::from_array(op, a, percent)?,
            Quantiles::Operand(Operand::Scalar(q)) => {
                Probabilities { shape: Vec::new(), dtype: None, ..Self::from_list(op, std::slice::from_ref(q), percent)? }
            }
            Quantiles::List(list) => Self::from_list(op, list, percent)?,
        };
        if !q.values.iter().all(|q| (0.0..=1.0).contains(q)) {
            let message = if percent { "Percentiles must be in the range [0, 100]" } else { "Quantiles must be in the range [0, 1]" };
            return Err(Error::value(op, message));
        }
        Ok(q)
    }

    fn from_array(op: &'static str, q: &NdArray, percent: bool) -> Result<Probabilities> {
        if q.ndim() > 2 {
            return Err(Error::shape(op, "q must be a scalar or 1d", &[q.shape()]));
        }
        if q.dtype().is_complex() {
            return Err(Error::dtype(op, "q must be real", &[q.dtype()]));
        }
        let q = if percent { divide(q, 100)? } else { q.clone() };
        let values = q.astype(DType::F64)?.to_vec::<f64>()?;
        Ok(Probabilities { values, shape: q.shape().to_vec(), dtype: Some(q.dtype()), is_integer: !q.dtype().is_inexact() })
    }

    /// Reads a list of numbers. The dtype is that of the array to which NumPy converts the list.
    fn from_list(op: &'static str, list: &[Scalar], percent: bool) -> Result<Probabilities> {
        if list.iter().any(|q| matches!(q, Scalar::Complex(_))) {
            return Err(Error::dtype(op, "q must be real", &[DType::C128]));
        }
        let is_integer = !percent && !list.is_empty() && list.iter().all(|q| !matches!(q, Scalar::Float(_)));
        let values: Vec<f64> = list.iter().map(|q| if percent { q.as_f64() / 100.0 } else { q.as_f64() }).collect();
        let dtype = if is_integer { DType::I64 } else { DType::F64 };
        Ok(Probabilities { shape: vec![values.len()], values, dtype: Some(dtype), is_integer })
    }

    /// Rounds `value` to the dtype of the probabilities.
    fn round_to_dtype(&self, value: f64) -> f64 {
        match self.dtype {
            Some(dtype @ (DType::F16 | DType::BF16 | DType::F32)) => {
                Scalar::from_bytes(dtype, &Scalar::Float(value).to_bytes(dtype)).as_f64()
            }
            _ => value,
        }
    }

    /// Returns the dtype of interpolated values between elements of `dtype`.
    fn interpolated_dtype(&self, dtype: DType) -> DType {
        match self.dtype {
            Some(q) if q.is_inexact() => dtype.promote(q),
            Some(_) => dtype.promote(DType::F64),
            None => Scalar::Float(0.0).weak_promote(dtype),
        }
    }
}

/// Returns `a + (b - a) * t`. As in NumPy, the result is computed as `b - (b - a) * (1 - t)` if `t` is at least 0.5.
fn interpolate_linearly(a: &NdArray, b: &NdArray, t: f64, dtype: DType) -> Result<NdArray> {
    let difference = subtract(b, a)?.astype(dtype)?;
    match t >= 0.5 {
        true => subtract(b.astype(dtype)?, multiply(difference, 1.0 - t)?),
        false => add(a.astype(dtype)?, multiply(difference, t)?),
    }
}

/// Computes quantiles of rows. The axes of `q` come first in the result.
fn quantiles_of_rows(op: &'static str, rows: &FlattenedRows, q: &Probabilities, method: QuantileMethod) -> Result<NdArray> {
    let length = rows.row_length();
    // As in NumPy, an empty `q` gives an empty result for rows without elements if the dtype is an integer or bool. Other dtypes are an
    // error, because NumPy tests their elements for NaN first.
    if length == 0 && (!q.values.is_empty() || rows.rows.dtype().is_inexact()) {
        return Err(Error::shape(op, "a quantile of no elements is not defined", &[rows.rows.shape()]));
    }
    let positions: Vec<QuantilePosition> =
        q.values.iter().map(|&p| method.quantile_position(length, p, q.is_integer, |v| q.round_to_dtype(v))).collect();
    let mut wanted: Vec<usize> = positions.iter().flat_map(|p| [p.lower, p.upper]).collect();
    // The maximum of each row is requested too, because it is NaN if the row has a NaN. It costs nothing if the rows are sorted.
    let can_have_nan = rows.rows.dtype().is_inexact() && length > 0;
    wanted.extend(can_have_nan.then(|| length - 1));
    wanted.sort_unstable();
    wanted.dedup();
    let statistics = order_statistics(&rows.rows, &wanted)?;
    let at = |n: usize| &statistics[wanted.partition_point(|&other| other < n)];
    let has_nan = can_have_nan.then(|| isnan(at(length - 1))).transpose()?;
    let dtype = q.interpolated_dtype(rows.rows.dtype());
    let quantile = |position: &QuantilePosition| {
        let value = match position.weight {
            None => at(position.lower).clone(),
            Some(weight) => interpolate_linearly(at(position.lower), at(position.upper), weight, dtype)?,
        };
        replace_results_of_nan_rows(value, has_nan.clone())
    };
    let is_discrete = method.is_discrete() || (method == Linear && q.is_integer);
    let dtype = if is_discrete { rows.rows.dtype() } else { dtype };
    join_quantiles(positions.iter().map(quantile).collect::<Result<_>>()?, rows, q, dtype)
}

/// Joins the results of all quantiles into one array. Its shape is the shape of `q` followed by that of the reduction.
fn join_quantiles(results: Vec<NdArray>, rows: &FlattenedRows, q: &Probabilities, dtype: DType) -> Result<NdArray> {
    let shape: Vec<usize> = q.shape.iter().chain(&rows.shape).copied().collect();
    match &results[..] {
        [] => new_filled_array(&rows.rows, &shape, 0, dtype),
        [single] => single.reshape(shape),
        several => stack(several, 0)?.reshape(shape),
    }
}

/// Reads the argument `weights`, if it is given. As in NumPy, only the method `inverted_cdf` supports weights.
fn read_weights_argument(args: &Args, method: QuantileMethod) -> Result<Option<NdArray>> {
    let weights = args.get("weights").map(|weights| weights.array(args.op())).transpose()?;
    if weights.is_some() && method != InvertedCdf {
        return Err(Error::value(args.op(), "Only method 'inverted_cdf' supports weights."));
    }
    Ok(weights)
}

/// The treatment of NaN by a quantile.
#[derive(Clone, Copy, PartialEq)]
enum NanPolicy {
    /// A row with NaN gives NaN.
    Propagate,
    /// NaN is left out.
    Omit,
}

fn quantile_from_args(args: &Args, percent: bool, rule: NanPolicy) -> Result<Value> {
    let (a, q) = (args.array("a")?, Quantiles::from_args(args, "q")?);
    let (over, method) = (AxisOptions::from_args(args, "axis")?, QuantileMethod::from_args(args, "method")?);
    let result = match read_weights_argument(args, method)? {
        Some(weights) => weighted_quantile(args.op(), &a, &q, &weights, over, percent, rule),
        None => compute_quantile(args.op(), &a, &q, over, method, percent, rule),
    };
    result.map(Value::Array).map_err(|error| error.with_function_name(args.op()))
}

fn compute_quantile(
    op: &'static str,
    a: &NdArray,
    q: &Quantiles,
    over: AxisOptions,
    method: QuantileMethod,
    percent: bool,
    rule: NanPolicy,
) -> Result<NdArray> {
    if a.dtype().is_complex() {
        return Err(Error::dtype(op, "a must be an array of real numbers", &[a.dtype()]));
    }
    let q = Probabilities::from_quantiles(op, q, percent)?;
    if rule == NanPolicy::Omit && a.size() == 0 {
        return crate::nan_functions::nanmean(a, over);
    }
    let rows = FlattenedRows::from_reduced_axes(op, a, &over)?;
    let omits = rule == NanPolicy::Omit && a.dtype().is_inexact() && isnan(a)?.any(())?.item()?.as_bool();
    if omits { quantiles_without_nan(&rows, &q, method) } else { quantiles_of_rows(op, &rows, &q, method) }
}

/// Computes quantiles of the elements that are not NaN. The rows are sorted, because each row has its own number of elements that are not
/// NaN.
fn quantiles_without_nan(rows: &FlattenedRows, q: &Probabilities, method: QuantileMethod) -> Result<NdArray> {
    let sorted = rows.rows.sort(-1)?;
    // As in NumPy, the indices of the quantiles are computed in the dtype of the probabilities.
    let index_dtype = q.dtype.filter(|dtype| dtype.is_inexact()).unwrap_or(DType::F64);
    let count = logical_not(isnan(&rows.rows)?)?.astype(DType::I64)?.sum(over_axis(-1).keepdims())?.astype(index_dtype)?;
    let is_empty = equal(&count, 0)?;
    // A row that holds only NaN has no valid index, so index 0 is read. `replace_results_of_nan_rows` then replaces the result by NaN.
    let last = maximum(subtract(&count, 1)?, 0)?;
    let dtype = q.interpolated_dtype(rows.rows.dtype());
    let at = |index: &NdArray| {
        let index = minimum(maximum(index, 0)?, &last)?.astype(DType::I64)?;
        take_along_axis(&sorted, &index, -1)?.squeeze(-1)
    };
    let quantile = |&p: &f64| -> Result<NdArray> {
        let index = method.deferred_fractional_index(&count, p)?;
        if method.is_discrete() || (method == Linear && q.is_integer) {
            return at(&index);
        }
        let floor = index.floor()?;
        let inside = logical_and(greater_equal(&index, 0)?, less(&index, &last)?)?;
        let fraction = where_(&inside, subtract(&index, &floor)?, 0.0)?;
        let weight = match method {
            AveragedInvertedCdf => where_(logical_and(&inside, equal(&fraction, 0)?)?, 0.5, 1.0)?,
            Midpoint => where_(equal(&fraction, 0)?, 0.0, 0.5)?,
            _ => fraction,
        };
        let (lower, upper) = (at(&floor)?, at(&add(&floor, &inside)?)?);
        let weight = weight.squeeze(-1)?;
        let (up, down) = (weight.astype(dtype)?, subtract(1, &weight)?.astype(dtype)?);
        let difference = subtract(&upper, &lower)?.astype(dtype)?;
        let from_upper = subtract(upper.astype(dtype)?, multiply(&difference, down)?)?;
        let from_lower = add(lower.astype(dtype)?, multiply(&difference, up)?)?;
        where_(greater_equal(&weight, 0.5)?, from_upper, from_lower)
    };
    let is_empty = is_empty.squeeze(-1)?;
    let results = q.values.iter().map(|p| replace_results_of_nan_rows(quantile(p)?, Some(is_empty.clone()))).collect::<Result<_>>()?;
    let is_discrete = method.is_discrete() || (method == Linear && q.is_integer);
    join_quantiles(results, rows, q, if is_discrete { rows.rows.dtype() } else { dtype })
}

/// Computes weighted quantiles: the first of the sorted elements at which the running share of the weights reaches the probability.
fn weighted_quantile(
    op: &'static str,
    a: &NdArray,
    q: &Quantiles,
    weights: &NdArray,
    over: AxisOptions,
    percent: bool,
    rule: NanPolicy,
) -> Result<NdArray> {
    if a.dtype().is_complex() {
        return Err(Error::dtype(op, "a must be an array of real numbers", &[a.dtype()]));
    }
    let q = Probabilities::from_quantiles(op, q, percent)?;
    let weights = reshape_weights(op, a, weights, &over)?.astype(DType::F64)?;
    if weights.size() > 0 && less(&weights, 0)?.any(())?.item()?.as_bool() {
        return Err(Error::value(op, "Weights must be non-negative."));
    }
    let rows = FlattenedRows::from_reduced_axes(op, a, &over)?;
    if rows.row_length() == 0 {
        return Err(Error::shape(op, "a quantile of no elements is not defined", &[a.shape()]));
    }
    let spread = broadcast_to(&weights, a.shape())?;
    let weights = match rule == NanPolicy::Omit && a.dtype().is_inexact() {
        true => where_(isnan(a)?, 0.0, &spread)?,
        false => spread,
    };
    let weights = FlattenedRows::from_reduced_axes(op, &weights, &over)?.rows;
    let order = rows.rows.argsort(-1)?;
    let sorted = take_along_axis(&rows.rows, &order, -1)?;
    let running = take_along_axis(&weights, &order, -1)?.cumsum(-1)?;
    let total = slice_axis(&running, running.ndim() - 1, -1, None, 1)?;
    let share = divide(&running, &total)?;
    let mut has_no_total = logical_or(logical_not(isfinite(&total)?)?, equal(&total, 0)?)?;
    if rule == NanPolicy::Omit && a.dtype().is_inexact() {
        // If the first of the sorted elements is NaN, the row holds only NaN. Such a row needs no valid weights.
        let first = slice_axis(&sorted, sorted.ndim() - 1, 0, 1, 1)?;
        has_no_total = logical_and(has_no_total, logical_not(isnan(first)?)?)?;
    }
    if has_no_total.any(())?.item()?.as_bool() {
        return Err(Error::value(op, "Weights included NaN, inf or were all zero."));
    }
    // `share` is 0 for elements before the first positive weight. The value -1 makes every quantile skip them, including quantile 0.
    let share = where_(equal(&share, 0)?, -1.0, &share)?.eval()?.clone();
    let has_nan = if rule == NanPolicy::Propagate { rows.nan_row_mask()? } else { None };
    let last = rows.row_length() as i64 - 1;
    let quantile = |&p: &f64| {
        let index = less(&share, p)?.astype(DType::I64)?.sum(over_axis(-1).keepdims())?;
        let value = take_along_axis(&sorted, &minimum(index, last)?, -1)?.squeeze(-1)?;
        replace_results_of_nan_rows(value, has_nan.clone())
    };
    join_quantiles(q.values.iter().map(quantile).collect::<Result<_>>()?, &rows, &q, a.dtype())
}

/// Returns the quantiles `q`, between 0 and 1, over the given axes (`numpy.quantile`).
///
/// `q` is a number, or a list or array of at most two dimensions whose axes come first in the result. Interpolated values of integers are
/// float64. NaN if any element is NaN.
///
/// Passes over memory: up to three selections, each for two neighbouring order statistics, and a maximum, which is NaN if an element is.
/// Three selections read each element twice, because the first one splits the elements between the other two. If more than three selections
/// are needed (on a GPU, more than one), one sort replaces all passes. `q` is read on the host.
///
/// # Errors
/// Quantiles outside 0 to 1, complex elements, no elements, or axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, QuantileMethod, quantile};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[4.0, 1.0, 2.0, 3.0])?;
/// assert_eq!(quantile(&a, 0.5, (), QuantileMethod::Linear)?.item()?, 2.5);
/// assert_eq!(quantile(&a, [0.25, 0.75], (), QuantileMethod::Lower)?.to_vec::<f64>()?, [1.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "quantile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_from_args(args, false, NanPolicy::Propagate)
)]
pub fn quantile(a: &NdArray, q: impl Into<Quantiles>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    compute_quantile("quantile", a, &q.into(), over.into(), method, false, NanPolicy::Propagate)
}

/// Returns the percentiles `q`, between 0 and 100, over the given axes (`numpy.percentile`). See [`quantile`].
///
/// Passes over memory: those of [`quantile`].
///
/// # Errors
/// Percentiles outside 0 to 100, and the errors of [`quantile`].
#[numpy(
    "percentile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_from_args(args, true, NanPolicy::Propagate)
)]
pub fn percentile(a: &NdArray, q: impl Into<Quantiles>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    compute_quantile("percentile", a, &q.into(), over.into(), method, true, NanPolicy::Propagate)
}

/// Returns the quantiles of the elements that are not NaN (`numpy.nanquantile`); NaN if there are none. See [`quantile`].
///
/// Passes over memory: as in [`quantile`] if no element is NaN, and otherwise a sort and gathers. The call waits for the device.
///
/// # Errors
/// The errors of [`quantile`].
#[numpy(
    "nanquantile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_from_args(args, false, NanPolicy::Omit)
)]
pub fn nanquantile(a: &NdArray, q: impl Into<Quantiles>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    compute_quantile("nanquantile", a, &q.into(), over.into(), method, false, NanPolicy::Omit)
}

/// Returns the percentiles of the elements that are not NaN (`numpy.nanpercentile`); NaN if there are none. See [`nanquantile`].
///
/// Passes over memory: those of [`nanquantile`].
///
/// # Errors
/// Percentiles outside 0 to 100, and the errors of [`quantile`].
#[numpy(
    "nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_from_args(args, true, NanPolicy::Omit)
)]
pub fn nanpercentile(a: &NdArray, q: impl Into<Quantiles>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    compute_quantile("nanpercentile", a, &q.into(), over.into(), method, true, NanPolicy::Omit)
}
