//! Statistics: order statistics, averages, correlations and histograms.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::layout::{checked_size, normalize_axes};
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{
    AxisOption, AxisOptions, Bins, DType, Error, NdArray, Operand, Result, Scalar, Side, add, axis as over_axis, bincount, broadcast_to,
    concat, divide, equal, expand_dims, floor_divide, greater_equal, histogram_bin_edges, isinf, isnan, less, logical_and, logical_not,
    matmul, maximum, minimum, multiply, numpy, remainder, stack, subtract, where_,
};

use crate::common::{at_least, filled, slice_axis};
use crate::indexing::take_along_axis;

/// Returns the range over the given axes: the maximum minus the minimum (`numpy.ptp`).
///
/// # Errors
/// Axes that the array does not have, an empty reduction.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[3.0, 9.0, 2.0])?;
/// assert_eq!(cuprum_numpy::ptp(&a, ())?.item()?, 7.0);
/// # Ok(())
/// # }
/// ```
#[numpy("ptp(a, axis=None, *, keepdims=False)")]
pub fn ptp(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into().accepting_only("ptp", &[AxisOption::KeepDims])?;
    subtract(a.max(over.clone())?, a.min(over)?)
}

/// The elements of a reduction as the last axis, and the shape of its result.
pub(crate) struct FlattenedRows {
    pub rows: NdArray,
    pub shape: Vec<usize>,
}

impl FlattenedRows {
    /// Moves the reduced axes of `a` to the end and merges them.
    pub(crate) fn new(op: &'static str, a: &NdArray, over: &AxisOptions) -> Result<FlattenedRows> {
        let axes = match over.axes() {
            None => (0..a.ndim()).collect(),
            Some(axes) => normalize_axes(op, axes, a.ndim())?,
        };
        let kept: Vec<usize> = (0..a.ndim()).filter(|axis| !axes.contains(axis)).collect();
        let mut reduced = axes.to_vec();
        reduced.sort_unstable();
        let order: Vec<isize> = kept.iter().chain(&reduced).map(|&axis| axis as isize).collect();
        let mut shape: Vec<usize> = kept.iter().map(|&axis| a.shape()[axis]).collect();
        let length = reduced.iter().map(|&axis| a.shape()[axis]).product();
        let result = match over.keeps_dims() {
            true => (0..a.ndim()).map(|axis| if axes.contains(&axis) { 1 } else { a.shape()[axis] }).collect(),
            false => shape.clone(),
        };
        shape.push(length);
        Ok(FlattenedRows { rows: a.transpose(&order)?.reshape(shape)?, shape: result })
    }

    /// Returns the number of elements of a row.
    pub(crate) fn row_length(&self) -> usize {
        self.rows.shape()[self.rows.ndim() - 1]
    }

    /// Returns whether each row has a NaN. `None` if the dtype has no NaN.
    fn has_nan(&self) -> Result<Option<NdArray>> {
        match self.rows.dtype().is_inexact() {
            true => isnan(&self.rows)?.any(-1).map(Some),
            false => Ok(None),
        }
    }

    /// Returns column `n` of `rows`.
    fn take_column(rows: &NdArray, n: usize) -> Result<NdArray> {
        let last = rows.ndim() - 1;
        slice_axis(rows, last, n as isize, n as isize + 1, 1)?.squeeze(-1)
    }
}

/// Maximum number of selections. More order statistics come from a sort.
const MAX_SELECTIONS: usize = 3;

/// Returns order statistics of rows: for each of the ascending indices `wanted` the element at that index of the sorted rows.
///
/// The first and last index are a minimum and a maximum. Other indices are partitions, of which each serves two neighbours. Many indices
/// share one sort.
fn order_statistics(rows: &NdArray, wanted: &[usize]) -> Result<Vec<NdArray>> {
    let (last_axis, length) = (rows.ndim() - 1, rows.shape()[rows.ndim() - 1]);
    let mut inner: Vec<usize> = wanted.iter().copied().filter(|&n| n != 0 && n + 1 != length).collect();
    inner.dedup();
    let mut pivots = Vec::new();
    for &n in &inner {
        if pivots.last().is_none_or(|&pivot| n > pivot + 1) {
            pivots.push(n);
        }
    }
    if pivots.len() > MAX_SELECTIONS {
        let sorted = rows.sort(-1)?;
        return wanted.iter().map(|&n| FlattenedRows::take_column(&sorted, n)).collect();
    }
    let mut partitioned: Vec<(usize, NdArray)> = Vec::with_capacity(pivots.len());
    for pivot in pivots {
        partitioned.push((pivot, rows.partition(pivot as isize, -1)?));
    }
    let statistic = |&n: &usize| {
        if n == 0 {
            return rows.min(-1);
        }
        if n + 1 == length {
            return rows.max(-1);
        }
        match partitioned.iter().rev().find(|(pivot, _)| *pivot <= n) {
            Some((pivot, array)) if *pivot == n => FlattenedRows::take_column(array, n),
            Some((_, array)) => slice_axis(array, last_axis, n as isize, None, 1)?.min(-1),
            None => Err(Error::value("partition", "an order statistic was not selected")),
        }
    };
    wanted.iter().map(statistic).collect()
}

/// Replaces the results of rows with NaN by NaN. `has_nan` is `None` if no row can have a NaN.
fn mark_nan(result: NdArray, has_nan: Option<NdArray>) -> Result<NdArray> {
    match has_nan {
        Some(has_nan) => where_(has_nan, f64::NAN, &result),
        None => Ok(result),
    }
}

/// Returns the median over the given axes (`numpy.median`): the mean of the two middle elements if their number is even.
///
/// Integers and bool give float64; other dtypes are kept. NaN if any element is NaN, or if there are no elements.
///
/// Passes over memory: a selection, a maximum of half the elements if their number is even, and a test for NaN. No sort.
///
/// # Errors
/// Axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[3, 1, 2, 9])?;
/// assert_eq!(cuprum_numpy::median(&a, ())?.item()?, 2.5);
/// # Ok(())
/// # }
/// ```
#[numpy("median(a, axis=None, out=None, overwrite_input=False, keepdims=False)")]
pub fn median(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into().accepting_only("median", &[AxisOption::KeepDims])?;
    let rows = FlattenedRows::new("median", a, &over)?;
    let length = rows.row_length();
    if length < 3 {
        return rows.rows.mean(-1)?.reshape(&rows.shape[..]);
    }
    let has_nan = rows.has_nan()?;
    let half = length / 2;
    let part = rows.rows.partition(half as isize, -1)?;
    let upper = FlattenedRows::take_column(&part, half)?;
    let middle = match length % 2 {
        1 => expand_dims(&upper, [0])?,
        _ => stack(&[slice_axis(&part, part.ndim() - 1, 0, half as isize, 1)?.max(-1)?, upper], 0)?,
    };
    mark_nan(middle.mean(0)?, has_nan)?.reshape(&rows.shape[..])
}

/// The estimate of a quantile between order statistics (`method=` of `numpy.quantile`), by Hyndman and Fan (1996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuantileMethod {
    /// Method 1: the inverse of the empirical distribution function.
    InvertedCdf,
    /// Method 2: as `InvertedCdf`, with averages at discontinuities.
    AveragedInvertedCdf,
    /// Method 3: the nearest observation.
    ClosestObservation,
    /// Method 4: linear interpolation of the distribution function.
    InterpolatedInvertedCdf,
    /// Method 5: knots at the midpoints of the steps.
    Hazen,
    /// Method 6: the mean position.
    Weibull,
    /// Method 7: linear interpolation between the order statistics.
    #[default]
    Linear,
    /// Method 8: approximately median-unbiased.
    MedianUnbiased,
    /// Method 9: approximately unbiased for normal distributions.
    NormalUnbiased,
    /// The lower of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Lower,
    /// The upper of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Higher,
    /// The mean of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Midpoint,
    /// The nearer of the two order statistics between which [`Linear`](Self::Linear) interpolates.
    Nearest,
}

use QuantileMethod::*;

const QUANTILE_METHODS: [(&str, QuantileMethod); 13] = [
    ("inverted_cdf", InvertedCdf),
    ("averaged_inverted_cdf", AveragedInvertedCdf),
    ("closest_observation", ClosestObservation),
    ("interpolated_inverted_cdf", InterpolatedInvertedCdf),
    ("hazen", Hazen),
    ("weibull", Weibull),
    ("linear", Linear),
    ("median_unbiased", MedianUnbiased),
    ("normal_unbiased", NormalUnbiased),
    ("lower", Lower),
    ("higher", Higher),
    ("midpoint", Midpoint),
    ("nearest", Nearest),
];

impl FromArgs for QuantileMethod {
    fn from_args(args: &Args, name: &str) -> Result<QuantileMethod> {
        let text: String = FromArgs::from_args(args, name)?;
        let found = QUANTILE_METHODS.iter().find(|(method, _)| *method == text).map(|(_, method)| *method);
        let names = || QUANTILE_METHODS.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| Error::value(args.op(), format!("'{text}' is not a valid method. Use one of: {}", names())))
    }
}

/// Neighbouring order statistics of a quantile, and the weight of the upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct QuantilePosition {
    lower: usize,
    upper: usize,
    /// `None` if the quantile is exactly the lower order statistic.
    weight: Option<f64>,
}

impl QuantileMethod {
    /// Returns whether each quantile is an element of the array, without interpolation or averaging.
    fn is_discrete(self) -> bool {
        matches!(self, InvertedCdf | ClosestObservation | Lower | Higher | Nearest)
    }

    /// Returns the fractional index of quantile `q` in `n` sorted elements. `round` rounds to the dtype of the quantiles.
    fn fractional_index(self, n: f64, q: f64, round: impl Fn(f64) -> f64) -> f64 {
        let by_plotting_position = |alpha: f64, beta: f64| {
            let shift = round(alpha + round(q * (1.0 - alpha - beta)));
            round(round(round(n * q) + shift) - 1.0)
        };
        let linear = round((n - 1.0) * q);
        // NumPy's `_discrete_interpolation_to_boundaries`: the lower index at discontinuities, else the upper one.
        let discrete = |index: f64, to_lower: &dyn Fn(f64, f64) -> bool| {
            let previous = index.floor();
            if to_lower(index - previous, index) { previous } else { previous + 1.0 }.max(0.0)
        };
        match self {
            InvertedCdf => discrete(round(round(n * q) - 1.0), &|fraction, _| fraction == 0.0),
            ClosestObservation => {
                discrete(round(round(round(n * q) - 1.0) - 0.5), &|fraction, index| fraction == 0.0 && index.floor().rem_euclid(2.0) == 1.0)
            }
            AveragedInvertedCdf => round(round(n * q) - 1.0),
            InterpolatedInvertedCdf => by_plotting_position(0.0, 1.0),
            Hazen => by_plotting_position(0.5, 0.5),
            Weibull => by_plotting_position(0.0, 0.0),
            Linear => linear,
            MedianUnbiased => by_plotting_position(1.0 / 3.0, 1.0 / 3.0),
            NormalUnbiased => by_plotting_position(3.0 / 8.0, 3.0 / 8.0),
            Lower => linear.floor(),
            Higher => linear.ceil(),
            Midpoint => round(0.5 * round(linear.floor() + linear.ceil())),
            Nearest => linear.round_ties_even(),
        }
    }

    /// Returns the position of quantile `q` in `n` sorted elements. `is_integer` states that the quantiles have an integer dtype.
    fn quantile_position(self, n: usize, q: f64, is_integer: bool, round: impl Fn(f64) -> f64) -> QuantilePosition {
        let last = n - 1;
        let index = self.fractional_index(n as f64, q, &round);
        if self.is_discrete() || (self == Linear && is_integer) {
            let at = (index.max(0.0) as usize).min(last);
            return QuantilePosition { lower: at, upper: at, weight: None };
        }
        let floor = index.floor();
        // As in NumPy, an index beyond the ends uses the first or the last element. The fraction at the last element is relative to -1.
        let (lower, upper, base) = match index {
            i if i >= last as f64 => (last, last, -1.0),
            i if i < 0.0 => (0, 0, 0.0),
            _ => (floor as usize, floor as usize + 1, floor),
        };
        let fraction = round(index - base);
        let weight = match self {
            AveragedInvertedCdf => {
                if fraction == 0.0 {
                    0.5
                } else {
                    1.0
                }
            }
            Midpoint => {
                if index.rem_euclid(1.0) == 0.0 {
                    0.0
                } else {
                    0.5
                }
            }
            _ => fraction,
        };
        QuantilePosition { lower, upper, weight: Some(weight) }
    }
}

/// Quantiles as numbers on the host, with their shape and dtype.
struct Probabilities {
    values: Vec<f64>,
    shape: Vec<usize>,
    /// The dtype of an array; `None` for a Python number, which is weak.
    dtype: Option<DType>,
    is_integer: bool,
}

impl Probabilities {
    /// Reads quantiles, or percentiles if `percent`.
    fn new(op: &'static str, q: &Operand, percent: bool) -> Result<Probabilities> {
        let (array, is_weak) = match q {
            Operand::Array(a) => (a.clone(), false),
            Operand::Scalar(s) => (NdArray::scalar(*s)?, true),
        };
        if array.ndim() > 2 {
            return Err(Error::shape(op, "q must be a scalar or 1d", &[array.shape()]));
        }
        if array.dtype().is_complex() {
            return Err(Error::dtype(op, "q must be real", &[array.dtype()]));
        }
        let array = if percent { divide(&array, 100)? } else { array };
        let values = array.astype(DType::F64)?.to_vec::<f64>()?;
        if !values.iter().all(|q| (0.0..=1.0).contains(q)) {
            let message = if percent { "Percentiles must be in the range [0, 100]" } else { "Quantiles must be in the range [0, 1]" };
            return Err(Error::value(op, message));
        }
        let dtype = (!is_weak).then_some(array.dtype());
        Ok(Probabilities { values, shape: array.shape().to_vec(), dtype, is_integer: !array.dtype().is_inexact() })
    }

    /// Rounds to the dtype of the quantiles.
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

/// Returns `a + (b - a) * t`, computed from the nearer end as in NumPy.
fn interpolate(a: &NdArray, b: &NdArray, t: f64, dtype: DType) -> Result<NdArray> {
    let difference = subtract(b, a)?.astype(dtype)?;
    match t >= 0.5 {
        true => subtract(b.astype(dtype)?, multiply(difference, 1.0 - t)?),
        false => add(a.astype(dtype)?, multiply(difference, t)?),
    }
}

/// Computes quantiles of rows. The axes of `q` come first in the result.
fn quantiles(op: &'static str, rows: &FlattenedRows, q: &Probabilities, method: QuantileMethod) -> Result<NdArray> {
    let length = rows.row_length();
    if length == 0 && !q.values.is_empty() {
        return Err(Error::shape(op, "a quantile of no elements is not defined", &[rows.rows.shape()]));
    }
    let positions: Vec<QuantilePosition> =
        q.values.iter().map(|&p| method.quantile_position(length, p, q.is_integer, |v| q.round_to_dtype(v))).collect();
    let mut wanted: Vec<usize> = positions.iter().flat_map(|p| [p.lower, p.upper]).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let statistics = order_statistics(&rows.rows, &wanted)?;
    let at = |n: usize| &statistics[wanted.partition_point(|&other| other < n)];
    let has_nan = rows.has_nan()?;
    let dtype = q.interpolated_dtype(rows.rows.dtype());
    let quantile = |position: &QuantilePosition| {
        let value = match position.weight {
            None => at(position.lower).clone(),
            Some(weight) => interpolate(at(position.lower), at(position.upper), weight, dtype)?,
        };
        mark_nan(value, has_nan.clone())
    };
    let is_discrete = method.is_discrete() || (method == Linear && q.is_integer);
    let dtype = if is_discrete { rows.rows.dtype() } else { dtype };
    collect_quantiles(positions.iter().map(quantile).collect::<Result<_>>()?, rows, q, dtype)
}

/// Arranges the results of all quantiles in the shape of `q`, followed by that of the reduction.
fn collect_quantiles(results: Vec<NdArray>, rows: &FlattenedRows, q: &Probabilities, dtype: DType) -> Result<NdArray> {
    let shape: Vec<usize> = q.shape.iter().chain(&rows.shape).copied().collect();
    match &results[..] {
        [] => filled(&rows.rows, &shape, 0, dtype),
        [single] => single.reshape(shape),
        several => stack(several, 0)?.reshape(shape),
    }
}

/// Reads the argument `weights`, if it is given. As in NumPy, only the method `inverted_cdf` supports weights.
fn read_weights(args: &Args, method: QuantileMethod) -> Result<Option<NdArray>> {
    let weights = args.get("weights").map(|weights| weights.array(args.op())).transpose()?;
    if weights.is_some() && method != InvertedCdf {
        return Err(Error::value(args.op(), "Only method 'inverted_cdf' supports weights."));
    }
    Ok(weights)
}

/// How a quantile treats NaN.
#[derive(Clone, Copy, PartialEq)]
enum NanRule {
    /// A row with NaN gives NaN.
    Propagate,
    /// NaN is left out.
    Omit,
}

fn quantile_by_name(args: &Args, percent: bool, rule: NanRule) -> Result<Value> {
    let (a, q) = (args.array("a")?, args.operand("q")?);
    let (over, method) = (AxisOptions::from_args(args, "axis")?, QuantileMethod::from_args(args, "method")?);
    let result = match read_weights(args, method)? {
        Some(weights) => weighted_quantile(args.op(), &a, &q, &weights, over, percent, rule),
        None => checked_quantile(args.op(), &a, &q, over, method, percent, rule),
    };
    result.map(Value::Array).map_err(|error| error.with_function_name(args.op()))
}

fn checked_quantile(
    op: &'static str,
    a: &NdArray,
    q: &Operand,
    over: AxisOptions,
    method: QuantileMethod,
    percent: bool,
    rule: NanRule,
) -> Result<NdArray> {
    if a.dtype().is_complex() {
        return Err(Error::dtype(op, "a must be an array of real numbers", &[a.dtype()]));
    }
    let q = Probabilities::new(op, q, percent)?;
    if rule == NanRule::Omit && a.size() == 0 {
        return crate::nan::nanmean(a, over);
    }
    let rows = FlattenedRows::new(op, a, &over)?;
    let omits = rule == NanRule::Omit && a.dtype().is_inexact() && isnan(a)?.any(())?.item()?.as_bool();
    if omits { quantiles_without_nan(&rows, &q, method) } else { quantiles(op, &rows, &q, method) }
}

/// Computes quantiles of the elements that are not NaN. The rows are sorted, because each has its own number of such elements.
fn quantiles_without_nan(rows: &FlattenedRows, q: &Probabilities, method: QuantileMethod) -> Result<NdArray> {
    let sorted = rows.rows.sort(-1)?;
    // The indices are computed in the dtype of the quantiles, as in NumPy.
    let index_dtype = q.dtype.filter(|dtype| dtype.is_inexact()).unwrap_or(DType::F64);
    let count = logical_not(isnan(&rows.rows)?)?.astype(DType::I64)?.sum(over_axis(-1).keepdims())?.astype(index_dtype)?;
    let is_empty = equal(&count, 0)?;
    // A row of only NaN takes its first element.
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
    let results = q.values.iter().map(|p| mark_nan(quantile(p)?, Some(is_empty.clone()))).collect::<Result<_>>()?;
    let is_discrete = method.is_discrete() || (method == Linear && q.is_integer);
    collect_quantiles(results, rows, q, if is_discrete { rows.rows.dtype() } else { dtype })
}

impl QuantileMethod {
    /// Returns the fractional index of quantile `q` for arrays of counts.
    fn deferred_fractional_index(self, n: &NdArray, q: f64) -> Result<NdArray> {
        let by_plotting_position = |alpha: f64, beta: f64| subtract(add(multiply(n, q)?, alpha + q * (1.0 - alpha - beta))?, 1.0);
        let linear = multiply(subtract(n, 1)?, q)?;
        let below = subtract(multiply(n, q)?, 1.0)?;
        match self {
            InvertedCdf => {
                let floor = below.floor()?;
                where_(equal(&floor, &below)?, &floor, add(&floor, 1)?)
            }
            ClosestObservation => {
                let index = subtract(&below, 0.5)?;
                let floor = index.floor()?;
                let is_odd = equal(remainder(&floor, 2)?, 1)?;
                where_(logical_and(equal(&floor, &index)?, is_odd)?, &floor, add(&floor, 1)?)
            }
            AveragedInvertedCdf => Ok(below),
            InterpolatedInvertedCdf => by_plotting_position(0.0, 1.0),
            Hazen => by_plotting_position(0.5, 0.5),
            Weibull => by_plotting_position(0.0, 0.0),
            Linear => Ok(linear),
            MedianUnbiased => by_plotting_position(1.0 / 3.0, 1.0 / 3.0),
            NormalUnbiased => by_plotting_position(3.0 / 8.0, 3.0 / 8.0),
            Lower => linear.floor(),
            Higher => linear.ceil(),
            Midpoint => multiply(0.5, add(linear.floor()?, linear.ceil()?)?),
            Nearest => linear.rint(),
        }
    }
}

/// Returns weights in a shape that broadcasts with `a`, as `average` and `quantile` accept them.
fn fit_weights(op: &'static str, a: &NdArray, weights: &NdArray, over: &AxisOptions) -> Result<NdArray> {
    if weights.shape() == a.shape() {
        return Ok(weights.clone());
    }
    let Some(axes) = over.axes() else {
        let message = "Axis must be specified when shapes of a and weights differ.";
        return Err(Error::shape(op, message, &[a.shape(), weights.shape()]));
    };
    let axes = normalize_axes(op, axes, a.ndim())?;
    let wanted: Vec<usize> = axes.iter().map(|&axis| a.shape()[axis]).collect();
    if weights.shape() != wanted {
        let message = "Shape of weights must be consistent with shape of a along specified axis.";
        return Err(Error::shape(op, message, &[a.shape(), weights.shape()]));
    }
    let mut order: Vec<isize> = (0..axes.len() as isize).collect();
    order.sort_by_key(|&n| axes[n as usize]);
    let shape: Vec<usize> = (0..a.ndim()).map(|axis| if axes.contains(&axis) { a.shape()[axis] } else { 1 }).collect();
    weights.transpose(&order)?.reshape(shape)
}

/// Computes weighted quantiles: the first element at which the running share of the weights reaches the quantile.
fn weighted_quantile(
    op: &'static str,
    a: &NdArray,
    q: &Operand,
    weights: &NdArray,
    over: AxisOptions,
    percent: bool,
    rule: NanRule,
) -> Result<NdArray> {
    if a.dtype().is_complex() {
        return Err(Error::dtype(op, "a must be an array of real numbers", &[a.dtype()]));
    }
    let q = Probabilities::new(op, q, percent)?;
    let weights = fit_weights(op, a, weights, &over)?.astype(DType::F64)?;
    if weights.size() > 0 && less(&weights, 0)?.any(())?.item()?.as_bool() {
        return Err(Error::value(op, "Weights must be non-negative."));
    }
    let rows = FlattenedRows::new(op, a, &over)?;
    if rows.row_length() == 0 {
        return Err(Error::shape(op, "a quantile of no elements is not defined", &[a.shape()]));
    }
    let spread = broadcast_to(&weights, a.shape())?;
    let weights = match rule == NanRule::Omit && a.dtype().is_inexact() {
        true => where_(isnan(a)?, 0.0, &spread)?,
        false => spread,
    };
    let weights = FlattenedRows::new(op, &weights, &over)?.rows;
    let order = rows.rows.argsort(-1)?;
    let sorted = take_along_axis(&rows.rows, &order, -1)?;
    let running = take_along_axis(&weights, &order, -1)?.cumsum(-1)?;
    let total = slice_axis(&running, running.ndim() - 1, -1, None, 1)?;
    let share = divide(&running, &total)?;
    let has_no_total = isnan(&total)?.any(())?.item()?.as_bool() || equal(&total, 0)?.any(())?.item()?.as_bool();
    if (has_no_total || isinf(&total)?.any(())?.item()?.as_bool()) && rule == NanRule::Propagate {
        return Err(Error::value(op, "Weights included NaN, inf or were all zero."));
    }
    // Leading weights of zero are skipped, also by quantile 0.
    let share = where_(equal(&share, 0)?, -1.0, &share)?.eval()?.clone();
    let has_nan = if rule == NanRule::Propagate { rows.has_nan()? } else { None };
    let last = rows.row_length() as i64 - 1;
    let quantile = |&p: &f64| {
        let index = less(&share, p)?.astype(DType::I64)?.sum(over_axis(-1).keepdims())?;
        let value = take_along_axis(&sorted, &minimum(index, last)?, -1)?.squeeze(-1)?;
        mark_nan(value, has_nan.clone())
    };
    collect_quantiles(q.values.iter().map(quantile).collect::<Result<_>>()?, &rows, &q, a.dtype())
}

/// Returns the quantiles `q`, between 0 and 1, over the given axes (`numpy.quantile`).
///
/// `q` is a number, or an array of at most two dimensions whose axes come first in the result. Interpolated values of integers are
/// float64. NaN if any element is NaN.
///
/// Passes over memory: up to three selections, which serve two neighbouring order statistics each, and a test for NaN. More quantiles share
/// one sort. `q` is read on the host.
///
/// # Errors
/// Quantiles outside 0 to 1, complex elements, no elements, or axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::{QuantileMethod, quantile};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[4.0, 1.0, 2.0, 3.0])?;
/// assert_eq!(quantile(&a, 0.5, (), QuantileMethod::Linear)?.item()?, 2.5);
/// let q = NdArray::from_slice(&[0.25, 0.75])?;
/// assert_eq!(quantile(&a, &q, (), QuantileMethod::Lower)?.to_vec::<f64>()?, [1.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "quantile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_by_name(args, false, NanRule::Propagate)
)]
pub fn quantile(a: &NdArray, q: impl Into<Operand>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    checked_quantile("quantile", a, &q.into(), over.into(), method, false, NanRule::Propagate)
}

/// Returns the percentiles `q`, between 0 and 100, over the given axes (`numpy.percentile`). See [`quantile`].
///
/// # Errors
/// Percentiles outside 0 to 100, and the errors of [`quantile`].
#[numpy(
    "percentile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_by_name(args, true, NanRule::Propagate)
)]
pub fn percentile(a: &NdArray, q: impl Into<Operand>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    checked_quantile("percentile", a, &q.into(), over.into(), method, true, NanRule::Propagate)
}

/// Returns the quantiles of the elements that are not NaN (`numpy.nanquantile`); NaN if there are none. See [`quantile`].
///
/// Passes over memory: as in [`quantile`] if no element is NaN, and otherwise a sort and gathers. The call waits for the device.
///
/// # Errors
/// The errors of [`quantile`].
#[numpy(
    "nanquantile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_by_name(args, false, NanRule::Omit)
)]
pub fn nanquantile(a: &NdArray, q: impl Into<Operand>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    checked_quantile("nanquantile", a, &q.into(), over.into(), method, false, NanRule::Omit)
}

/// Returns the percentiles of the elements that are not NaN (`numpy.nanpercentile`); NaN if there are none. See [`nanquantile`].
///
/// # Errors
/// Percentiles outside 0 to 100, and the errors of [`quantile`].
#[numpy(
    "nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
    call = |args| quantile_by_name(args, true, NanRule::Omit)
)]
pub fn nanpercentile(a: &NdArray, q: impl Into<Operand>, over: impl Into<AxisOptions>, method: QuantileMethod) -> Result<NdArray> {
    checked_quantile("nanpercentile", a, &q.into(), over.into(), method, true, NanRule::Omit)
}

/// Returns the median of the elements that are not NaN (`numpy.nanmedian`); NaN if there are none. The dtypes are the same as for
/// [`median`].
///
/// Passes over memory: as in [`median`] if no element is NaN, and otherwise a sort and gathers. The call waits for the device.
///
/// # Errors
/// Axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::nanmedian;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(nanmedian(&array![1.0, f64::NAN, 3.0, 2.0], ())?.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
#[numpy("nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False)")]
pub fn nanmedian(a: &NdArray, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into();
    if a.size() == 0 {
        return crate::nan::nanmean(a, over);
    }
    if !a.dtype().is_inexact() || !isnan(a)?.any(())?.item()?.as_bool() {
        return median(a, over);
    }
    let rows = FlattenedRows::new("nanmedian", a, &over)?;
    let sorted = rows.rows.sort(-1)?;
    let count = logical_not(isnan(&rows.rows)?)?.astype(DType::I64)?.sum(over_axis(-1).keepdims())?;
    let at = |index: NdArray| take_along_axis(&sorted, &maximum(index, 0)?, -1)?.squeeze(-1);
    let lower = at(floor_divide(subtract(&count, 1)?, 2)?)?;
    let upper = at(floor_divide(&count, 2)?)?;
    let result = stack(&[lower, upper], 0)?.mean(0)?;
    // A row of odd length has one middle element, and the mean of it with itself is exact, except for overflow.
    let single = at(floor_divide(&count, 2)?)?;
    let is_odd = equal(remainder(&count, 2)?, 1)?.squeeze(-1)?;
    let is_empty = equal(&count, 0)?.squeeze(-1)?;
    mark_nan(where_(is_odd, single, result)?, Some(is_empty))?.reshape(&rows.shape[..])
}

fn average_by_name(args: &Args) -> Result<Value> {
    let weights = args.get("weights").map(|weights| weights.array(args.op())).transpose()?;
    let (average, sum) = average_and_weights(&args.array("a")?, weights.as_ref(), AxisOptions::from_args(args, "axis")?)?;
    match args.bool_or("returned", false)? {
        true => Ok(Value::tuple([Value::Array(average), Value::Array(sum)])),
        false => Ok(Value::Array(average)),
    }
}

/// Returns the weighted average over the given axes (`numpy.average`).
///
/// Weights have the shape of the array, or that of the given axes. Without weights this is the mean.
///
/// Passes over memory: one fused sum of products, and one of the weights. The call waits for the device if there are weights.
///
/// # Errors
/// Weights of another shape, weights whose sum is 0, or axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, w) = (NdArray::from_slice(&[1.0, 2.0, 4.0])?, NdArray::from_slice(&[1.0, 1.0, 2.0])?);
/// assert_eq!(cuprum_numpy::average(&a, Some(&w), ())?.item()?, 2.75);
/// # Ok(())
/// # }
/// ```
#[numpy("average(a, axis=None, weights=None, returned=False, *, keepdims=False)", call = average_by_name)]
pub fn average(a: &NdArray, weights: Option<&NdArray>, over: impl Into<AxisOptions>) -> Result<NdArray> {
    average_and_weights(a, weights, over).map(|(average, _)| average)
}

/// Returns [`average`] and the sum of the weights, in the same shape (`numpy.average(returned=True)`).
///
/// # Errors
/// The errors of [`average`].
pub fn average_and_weights(a: &NdArray, weights: Option<&NdArray>, over: impl Into<AxisOptions>) -> Result<(NdArray, NdArray)> {
    weighted_mean("average", a, weights, over.into().accepting_only("average", &[AxisOption::KeepDims])?)
        .map_err(|error| error.with_function_name("average"))
}

/// Returns the average and the sum of the weights.
fn weighted_mean(name: &'static str, a: &NdArray, weights: Option<&NdArray>, over: AxisOptions) -> Result<(NdArray, NdArray)> {
    let Some(weights) = weights else {
        let mean = a.mean(over)?;
        let count = if mean.size() == 0 { 0.0 } else { a.size() as f64 / mean.size() as f64 };
        let counts = filled(a, mean.shape(), count, mean.dtype())?;
        return Ok((mean, counts));
    };
    let weights = fit_weights(name, a, weights, &over)?;
    let dtype = match a.dtype().is_inexact() {
        true => a.dtype().promote(weights.dtype()),
        false => DType::promote_all([a.dtype(), weights.dtype(), DType::F64]).unwrap_or(DType::F64),
    };
    let weights = weights.astype(dtype)?;
    let sum = weights.sum(over.clone())?.eval()?.clone();
    if equal(&sum, 0)?.any(())?.item()?.as_bool() {
        return Err(Error::value(name, "Weights sum to zero, can't be normalized"));
    }
    let average = divide(multiply(a.astype(dtype)?, weights)?.sum(over)?, &sum)?;
    let sum = if sum.shape() == average.shape() { sum } else { broadcast_to(&sum, average.shape())? };
    Ok((average, sum))
}

/// Options of [`cov`].
#[derive(Clone, Debug)]
pub struct Covariance {
    /// Whether rows are variables and columns observations; true by default.
    pub rowvar: bool,
    /// The number subtracted from that of the observations; 1 by default.
    pub ddof: i64,
    /// The number of times that each observation counts.
    pub fweights: Option<NdArray>,
    /// The weight of each observation.
    pub aweights: Option<NdArray>,
    /// Dtype of the computation; at least float64 by default.
    pub dtype: Option<DType>,
}

impl Default for Covariance {
    fn default() -> Covariance {
        Covariance { rowvar: true, ddof: 1, fweights: None, aweights: None, dtype: None }
    }
}

impl FromArgs for Covariance {
    /// Reads the parameters of the signature among `rowvar`, `bias`, `ddof`, `fweights`, `aweights` and `dtype`.
    fn from_args(args: &Args, _name: &str) -> Result<Covariance> {
        let array = |name: &str| args.get(name).map(|value| value.array(args.op())).transpose();
        let bias = args.bool_or("bias", false)?;
        let ddof = args.scalar_or("ddof", i64::from(!bias))?;
        let ddof = ddof.as_int().and_then(|n| i64::try_from(n).ok()).ok_or_else(|| Error::value(args.op(), "ddof must be integer"))?;
        Ok(Covariance {
            rowvar: args.bool_or("rowvar", true)?,
            ddof,
            fweights: array("fweights")?,
            aweights: array("aweights")?,
            dtype: args.dtype("dtype")?,
        })
    }
}

/// Returns an array of at most two dimensions as a matrix, in the dtype of the computation.
fn as_matrix(op: &'static str, m: &NdArray, dtype: DType) -> Result<NdArray> {
    match m.ndim() > 2 {
        true => Err(Error::shape(op, "m has more than 2 dimensions", &[m.shape()])),
        false => at_least(&m.astype(dtype)?, 2),
    }
}

/// Returns the weights of `observations` observations in float64, after a check of their number and sign. `which` is their name in errors.
fn observation_weights(which: &str, weights: &NdArray, observations: usize) -> Result<NdArray> {
    let name = "cov";
    if weights.ndim() > 1 {
        return Err(Error::shape(name, format!("cannot handle multidimensional {which}"), &[weights.shape()]));
    }
    if weights.shape() != [observations] {
        return Err(Error::shape(name, format!("incompatible numbers of samples and {which}"), &[weights.shape(), &[observations]]));
    }
    let weights = weights.astype(DType::F64)?;
    if less(&weights, 0)?.any(())?.item()?.as_bool() {
        return Err(Error::value(name, format!("{which} cannot be negative")));
    }
    Ok(weights)
}

/// Returns the covariance matrix of the rows of `m`, and of `y` if there are more variables (`numpy.cov`).
///
/// The result is float64 or complex128, unless a dtype is given; 0-d for one variable.
///
/// Passes over memory: one for the means, one that subtracts them, and one contraction.
///
/// # Errors
/// Arrays of more than two dimensions, numbers of observations that differ, or weights that are negative or of another length.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::{Covariance, cov};
/// # fn main() -> cuprum::Result<()> {
/// let m = NdArray::from_vec([0.0, 1.0, 2.0, 2.0, 1.0, 0.0], [2, 3])?;
/// assert_eq!(cov(&m, None, &Covariance::default())?.to_vec::<f64>()?, [1.0, -1.0, -1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None)")]
pub fn cov(m: &NdArray, y: Option<&NdArray>, options: &Covariance) -> Result<NdArray> {
    let name = "cov";
    let natural = || DType::promote_all([m.dtype(), y.map_or(DType::Bool, NdArray::dtype), DType::F64]).unwrap_or(DType::F64);
    let dtype = options.dtype.unwrap_or_else(natural);
    let mut x = as_matrix(name, m, dtype)?;
    // As in NumPy, a 1-D `m` and a single row of `y` are one variable, also with `rowvar=False`.
    if !options.rowvar && m.ndim() != 1 {
        x = x.t()?;
    }
    if x.shape()[0] == 0 {
        return filled(m, &[0, 0], 0, DType::F64);
    }
    if let Some(y) = y {
        let y = as_matrix(name, y, dtype)?;
        let y = if !options.rowvar && y.shape()[0] != 1 { y.t()? } else { y };
        x = concat(&[x, y], 0)?;
    }
    let observations = x.shape()[1];
    let frequencies = options.fweights.as_ref().map(|w| observation_weights("fweights", w, observations)).transpose()?;
    if let Some(w) = &frequencies
        && !equal(w, w.rint()?)?.all(())?.item()?.as_bool()
    {
        return Err(Error::value(name, "fweights must be integer"));
    }
    let importances = options.aweights.as_ref().map(|w| observation_weights("aweights", w, observations)).transpose()?;
    let weights = match (&frequencies, &importances) {
        (Some(f), Some(a)) => Some(multiply(f, a)?),
        (f, a) => f.as_ref().or(a.as_ref()).cloned(),
    };
    let (mean, sum) = average_and_weights(&x, weights.as_ref(), 1)?;
    let sum = slice_axis(&sum, 0, 0, 1, 1)?.squeeze(None)?;
    let ddof = options.ddof as f64;
    let divisor = match &weights {
        None => observations as f64 - ddof,
        Some(_) if options.ddof == 0 => sum.item()?.as_f64(),
        Some(w) => match &importances {
            None => sum.item()?.as_f64() - ddof,
            Some(a) => sum.item()?.as_f64() - ddof * multiply(w, a)?.sum(())?.item()?.as_f64() / sum.item()?.as_f64(),
        },
    };
    let divisor = if divisor > 0.0 { divisor } else { 0.0 };
    let centered = subtract(&x, expand_dims(&mean, [1])?)?.eval()?.clone();
    let weighted = match &weights {
        None => centered.clone(),
        Some(w) => multiply(&centered, w)?.astype(dtype)?,
    };
    let products = matmul(&centered, &weighted.t()?.conj()?)?;
    multiply(products, 1.0 / divisor)?.squeeze(None)
}

/// Returns the matrix of correlation coefficients of the rows of `x`, and of `y` if there are more variables (`numpy.corrcoef`).
///
/// Rows are variables and columns are observations if `rowvar`, else the reverse.
///
/// # Errors
/// The errors of [`cov`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, s};
/// use cuprum_numpy::corrcoef;
/// # fn main() -> cuprum::Result<()> {
/// let r = corrcoef(&array![[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]], None, true, None)?;
/// assert!((r.index(s![0, 1])?.item_as::<f64>()? + 1.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[numpy("corrcoef(x, y=None, rowvar=True, *, dtype=None)", call = corrcoef_by_name)]
pub fn corrcoef(x: &NdArray, y: Option<&NdArray>, rowvar: bool, dtype: impl Into<Option<DType>>) -> Result<NdArray> {
    let options = Covariance { rowvar, dtype: dtype.into(), ..Covariance::default() };
    let c = cov(x, y, &options)?;
    if c.ndim() < 2 {
        return divide(&c, &c);
    }
    let deviations = c.diagonal(0, 0, 1)?.real()?.sqrt()?;
    let c = divide(divide(&c, expand_dims(&deviations, [1])?)?, expand_dims(&deviations, [0])?)?;
    match c.dtype().is_complex() {
        false => c.clip(-1, 1),
        true => add(c.real()?.clip(-1, 1)?, multiply(c.imag()?.clip(-1, 1)?, cuprum_core::Complex::new(0.0, 1.0))?)?.astype(c.dtype()),
    }
}

fn corrcoef_by_name(args: &Args) -> Result<Value> {
    let y = args.get("y").map(|y| y.array(args.op())).transpose()?;
    corrcoef(&args.array("x")?, y.as_ref(), args.bool_or("rowvar", true)?, args.dtype("dtype")?).map(Value::Array)
}

/// Returns the number of points in each bin of a grid, and the edges along each dimension (`numpy.histogramdd`).
///
/// `sample` has one row for each point, or is a list of coordinates. `bins` has one element for each dimension, as in
/// [`histogram`](cuprum_core::histogram). The counts are float64. With weights, they are sums of weights. With
/// `density`, they are divided by their sum and by the size of the bin.
///
/// Passes over memory: a binary search along each dimension, and one weighted count.
///
/// # Errors
/// A number of bins other than that of the dimensions, weights of another length, and the errors of `histogram`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::histogramdd;
/// # fn main() -> cuprum::Result<()> {
/// let points = array![[0.1, 0.1], [0.2, 0.9], [0.8, 0.9]];
/// let bins = [(2, 0.0, 1.0).into(), (2, 0.0, 1.0).into()];
/// let (counts, edges) = histogramdd(&points, &bins, None, false)?;
/// assert_eq!((counts, edges[1].clone()), (array![[1.0, 1.0], [0.0, 1.0]], array![0.0, 0.5, 1.0]));
/// # Ok(())
/// # }
/// ```
#[numpy("histogramdd(sample, bins=10, range=None, density=None, weights=None)", call = histogramdd_by_name)]
pub fn histogramdd(sample: &NdArray, bins: &[Bins], weights: Option<&NdArray>, density: bool) -> Result<(NdArray, Vec<NdArray>)> {
    let name = "histogramdd";
    let [points, dimensions] = *sample.shape() else { return Err(Error::shape(name, "the sample must be 2-D", &[sample.shape()])) };
    if bins.len() != dimensions {
        return Err(Error::value(name, format!("The dimension of bins must be equal to the dimension of the sample x: {dimensions}")));
    }
    if let Some(weights) = weights
        && weights.shape() != [points]
    {
        return Err(Error::shape(name, "weights must have one element for each point", &[weights.shape(), sample.shape()]));
    }
    let mut all_edges = Vec::with_capacity(dimensions);
    let (mut shape, mut flat, mut is_inside) = (Vec::with_capacity(dimensions), None::<NdArray>, None::<NdArray>);
    for (n, bins) in bins.iter().enumerate() {
        let x = slice_axis(sample, 1, n as isize, n as isize + 1, 1)?.squeeze(1)?;
        let edges = match bins {
            Bins::Edges(edges) => edges.clone(),
            // As in NumPy, edges of a given range are float64.
            bins @ Bins::Range(..) => histogram_bin_edges(&x.astype(DType::F64)?, bins.clone())?,
            bins => histogram_bin_edges(&x, bins.clone())?,
        };
        if edges.ndim() != 1 || edges.size() < 1 {
            return Err(Error::shape(name, format!("`bins[{n}]` must be a scalar or 1d array"), &[edges.shape()]));
        }
        if matches!(bins, Bins::Edges(_)) && edges.size() > 1 {
            let steps = subtract(slice_axis(&edges, 0, 1, None, 1)?, slice_axis(&edges, 0, None, -1, 1)?)?;
            if less(&steps, 0)?.any(())?.item()?.as_bool() {
                return Err(Error::value(name, format!("`bins[{n}]` must be monotonically increasing, when an array")));
            }
        }
        let count = edges.size() - 1;
        let last = slice_axis(&edges, 0, -1, None, 1)?;
        // The last bin includes its upper edge.
        let after = edges.searchsorted(&x, Side::Right)?;
        let bin = subtract(where_(equal(&x, &last)?, count, after)?, 1)?;
        let inside = logical_and(greater_equal(&bin, 0)?, less(&bin, count)?)?;
        flat = Some(match flat {
            None => bin,
            Some(flat) => add(multiply(flat, count)?, bin)?,
        });
        is_inside = Some(match is_inside {
            None => inside,
            Some(all) => logical_and(all, inside)?,
        });
        shape.push(count);
        all_edges.push(edges);
    }
    let (Some(flat), Some(is_inside)) = (flat, is_inside) else { return Err(Error::value(name, "the sample has no dimensions")) };
    let size = checked_size(name, &shape)?;
    let weights = match weights {
        Some(weights) => weights.astype(DType::F64)?,
        None => filled(sample, &[points], 1, DType::F64)?,
    };
    let counted = where_(&is_inside, weights, 0.0)?;
    let numbers = where_(&is_inside, flat, 0)?;
    let counts = match points > 0 && size > 0 {
        true => bincount(&numbers, Some(&counted), size)?.reshape(&shape[..])?,
        false => filled(sample, &shape, 0, DType::F64)?,
    };
    if !density {
        return Ok((counts, all_edges));
    }
    let mut result = counts.clone();
    for (n, edges) in all_edges.iter().enumerate() {
        let widths = subtract(slice_axis(edges, 0, 1, None, 1)?, slice_axis(edges, 0, None, -1, 1)?)?;
        let mut along = vec![1isize; dimensions];
        along[n] = -1;
        result = divide(result, widths.reshape(along)?)?;
    }
    Ok((divide(result, counts.sum(())?)?, all_edges))
}

/// Reads the bins of each dimension.
fn read_bins(args: &Args, dimensions: usize) -> Result<Vec<Bins>> {
    let op = args.op();
    let ranges: Vec<Option<(f64, f64)>> = match args.get("range").and_then(Value::items) {
        None => vec![None; dimensions],
        Some(items) => {
            let pair = |value: &Value| match value {
                Value::None => Ok(None),
                value => match &value.array(op)?.astype(DType::F64)?.to_vec::<f64>()?[..] {
                    &[low, high] => Ok(Some((low, high))),
                    _ => Err(Error::value(op, "a range is a pair of numbers")),
                },
            };
            items.iter().map(pair).collect::<Result<_>>()?
        }
    };
    if ranges.len() != dimensions {
        return Err(Error::value(op, "range argument must have one entry per dimension"));
    }
    let counted = |count: isize, range: Option<(f64, f64)>| {
        let count = usize::try_from(count).ok().filter(|n| *n > 0);
        let count = count.ok_or_else(|| Error::value(op, "the number of bins must be positive"))?;
        Ok(range.map_or(Bins::Count(count), |(low, high)| Bins::Range(count, low, high)))
    };
    let each = |value: &Value, range: Option<(f64, f64)>| match value {
        Value::Scalar(_) => counted(value.index(op)?, range),
        value => match value.array(op)? {
            edges if edges.ndim() == 0 => counted(value.index(op)?, range),
            edges => Ok(Bins::Edges(edges)),
        },
    };
    match args.value("bins") {
        Some(value) if value.items().is_some_and(|items| items.len() == dimensions) => {
            value.items().unwrap_or_default().iter().zip(ranges).map(|(value, range)| each(value, range)).collect()
        }
        Some(value @ (Value::Scalar(_) | Value::Array(_))) if !matches!(value, Value::Array(a) if a.ndim() > 0) => {
            ranges.into_iter().map(|range| each(value, range)).collect()
        }
        _ => Err(Error::value(op, format!("The dimension of bins must be equal to the dimension of the sample x: {dimensions}"))),
    }
}

fn histogramdd_by_name(args: &Args) -> Result<Value> {
    let sample = match args.get("sample") {
        Some(value) if value.items().is_some() => stack(&args.arrays("sample")?, 1).map_err(|error| error.with_function_name(args.op()))?,
        _ => match args.array("sample")? {
            sample if sample.ndim() == 1 => expand_dims(&sample, [1])?,
            sample => sample,
        },
    };
    let dimensions = sample.shape().get(1).copied().unwrap_or(0);
    let weights = args.get("weights").map(|w| w.array(args.op())).transpose()?;
    let (counts, edges) = histogramdd(&sample, &read_bins(args, dimensions)?, weights.as_ref(), args.bool_or("density", false)?)?;
    Ok(Value::tuple([Value::Array(counts), Value::tuple(edges.into_iter().map(Value::Array))]))
}

fn histogram2d_by_name(args: &Args) -> Result<Value> {
    let (x, y) = (args.array("x")?, args.array("y")?);
    // Edges that are not a pair serve both dimensions.
    let bins = match args.value("bins") {
        Some(value @ (Value::Tuple(_) | Value::List(_))) if value.items().is_some_and(|items| !matches!(items.len(), 1 | 2)) => {
            vec![Bins::Edges(value.array(args.op())?); 2]
        }
        Some(Value::Array(edges)) if edges.ndim() == 1 && !matches!(edges.size(), 1 | 2) => vec![Bins::Edges(edges.clone()); 2],
        _ => read_bins(args, 2)?,
    };
    let [first, second] = &bins[..] else { return Err(Error::value(args.op(), "two dimensions need two bins")) };
    let weights = args.get("weights").map(|w| w.array(args.op())).transpose()?;
    histogram2d(&x, &y, (first.clone(), second.clone()), weights.as_ref(), args.bool_or("density", false)?).map(IntoValue::into_value)
}

/// Returns the number of points in each bin of a grid, and the edges along both dimensions (`numpy.histogram2d`).
///
/// The counts are float64. With weights, they are sums of weights. With `density`, they are divided by their sum and by the size of the
/// bin. See [`histogramdd`].
///
/// # Errors
/// Coordinates of different lengths or not 1-D, and the errors of [`histogramdd`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::histogram2d;
/// # fn main() -> cuprum::Result<()> {
/// let (x, y) = (array![0.1, 0.2, 0.8], array![0.1, 0.9, 0.9]);
/// let (counts, ..) = histogram2d(&x, &y, ((2, 0.0, 1.0).into(), (2, 0.0, 1.0).into()), None, false)?;
/// assert_eq!(counts, array![[1.0, 1.0], [0.0, 1.0]]);
/// # Ok(())
/// # }
/// ```
#[numpy("histogram2d(x, y, bins=10, range=None, density=None, weights=None)", call = histogram2d_by_name)]
pub fn histogram2d(
    x: &NdArray,
    y: &NdArray,
    bins: (Bins, Bins),
    weights: Option<&NdArray>,
    density: bool,
) -> Result<(NdArray, NdArray, NdArray)> {
    let name = "histogram2d";
    if x.ndim() != 1 || x.shape() != y.shape() {
        return Err(Error::shape(name, "x and y must have the same length.", &[x.shape(), y.shape()]));
    }
    let dtype = x.dtype().promote(y.dtype());
    let sample = stack(&[x.astype(dtype)?, y.astype(dtype)?], 1)?;
    let (counts, edges) = histogramdd(&sample, &[bins.0, bins.1], weights, density)?;
    match <[NdArray; 2]>::try_from(edges) {
        Ok([first, second]) => Ok((counts, first, second)),
        Err(_) => Err(Error::value(name, "two dimensions have two lists of edges")),
    }
}
