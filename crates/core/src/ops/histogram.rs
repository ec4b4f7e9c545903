//! Histograms: counts of values in bins.

use crate::array::NdArray;
use crate::call;
use crate::call::{Binning, OutputSpec, Work};
use crate::device::with_device;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::FromArgs;
use crate::op::{Family, Op};
use crate::ops::bin_rules::BinRule;
use crate::ops::creation::{arange_as, full_on_device};
use crate::ops::elementwise::{add, divide, greater_equal, logical_and, logical_or, multiply, subtract, where_};
use crate::ops::manipulation::{concat, stack};
use crate::ops::python_value::{Args, Value};
use crate::ops::search::{Side, is_non_decreasing};
use crate::rounding::round_to_dtype;
use crate::s;
use crate::scalar::Scalar;
use cuprum_macros::numpy;

super::ops! { Histogram after search:
    HISTOGRAM "histogram" 1;
    HISTOGRAM_BIN_EDGES "histogram_bin_edges" 1;
    BINCOUNT "bincount" 1;
}

/// Maximum number of bins of equal width. With more bins, some float64 edges would be equal.
const MAX_EQUAL_WIDTH_BINS: u64 = 1 << f64::MANTISSA_DIGITS;

/// Maximum number of bins whose edges are computed on the host.
const MAX_BINS_COMPUTED_ON_HOST: usize = 1 << 12;

/// The bins of a histogram: `10`, `(10, 0.0, 1.0)` or an array of edges.
#[derive(Clone, Debug)]
pub enum Bins {
    /// A number of bins of equal width, from the smallest to the largest value of the array.
    Count(usize),
    /// A number of bins of equal width, and the range that they divide.
    Range(usize, f64, f64),
    /// Bins between these non-decreasing edges (1-D).
    Edges(NdArray),
    /// Bins of equal width, whose number a rule chooses. They divide the given range, or the range from the smallest to the largest
    /// value.
    Rule(BinRule, Option<(f64, f64)>),
}

impl From<usize> for Bins {
    fn from(count: usize) -> Bins {
        Bins::Count(count)
    }
}
impl From<(usize, f64, f64)> for Bins {
    fn from((count, low, high): (usize, f64, f64)) -> Bins {
        Bins::Range(count, low, high)
    }
}
impl From<BinRule> for Bins {
    fn from(rule: BinRule) -> Bins {
        Bins::Rule(rule, None)
    }
}
impl From<&NdArray> for Bins {
    fn from(edges: &NdArray) -> Bins {
        Bins::Edges(edges.clone())
    }
}

/// Returns the bins that the arguments `bins` and `range` in `args` describe.
fn read_bins_argument(args: &Args) -> Result<Bins> {
    let op = args.op();
    let count = match args.get("bins") {
        None => 10,
        Some(Value::Str(_)) => 0,
        Some(Value::Array(a)) if a.ndim() > 0 => return Ok(Bins::Edges(a.clone())),
        Some(edges @ (Value::List(_) | Value::Tuple(_))) => return Ok(Bins::Edges(edges.array(op)?)),
        Some(count) => usize::try_from(count.int(op)?).map_err(|_| Error::value(op, "the number of bins must be positive"))?,
    };
    let range = match args.get("range").map(|r| (r, r.items())) {
        None => None,
        Some((_, Some([Value::Scalar(low), Value::Scalar(high)]))) => Some((low.as_f64(), high.as_f64())),
        Some((other, _)) => return Err(Error::value(op, format!("range is a pair of numbers, not {}", other.type_name()))),
    };
    Ok(match (args.get("bins"), range) {
        (Some(Value::Str(name)), range) => Bins::Rule(BinRule::from_name(op, name)?, range),
        (_, None) => Bins::Count(count),
        (_, Some((low, high))) => Bins::Range(count, low, high),
    })
}

fn bincount_from_args(args: &Args) -> Result<Value> {
    let (weights, minlength): (Option<NdArray>, usize) = (FromArgs::from_args(args, "weights")?, FromArgs::from_args(args, "minlength")?);
    bincount(&args.indices("x")?, weights.as_ref(), minlength).map(Value::Array)
}

fn histogram_from_args(args: &Args) -> Result<Value> {
    let weights = args.get("weights").map(|w| w.array("histogram")).transpose()?;
    let (counts, edges) = histogram(&args.array("a")?, read_bins_argument(args)?, weights.as_ref(), args.bool_or("density", false)?)?;
    Ok(Value::tuple([counts.into(), edges.into()]))
}

/// The kind of bin edges, which decides how values are counted.
#[derive(Clone, Copy, PartialEq)]
enum BinEdgeKind {
    /// The edges are evenly spaced and increase.
    Even,
    /// The edges do not decrease.
    Rising,
    /// The edges do not decrease, and the last one is NaN. As in NumPy, NaN is greater than every number, and the last bin holds NaN
    /// values.
    RisingToNan,
}

/// Returns the number of values in each bin, and the bin edges (`numpy.histogram`).
///
/// A bin includes its left edge, and the last bin also its right edge. NaN and values outside the bins are not counted. If the last
/// edge is NaN, the last bin holds all values from its left edge on, NaN included.
///
/// Counts are int64. With `weights`, of the shape of `a`, the result holds sums of weights in their dtype. They are computed in float64;
/// integers between given edges are summed exactly, which takes a sort. With `density`, each count or sum is divided by the total over all
/// bins and by the bin width. Computed edges have the dtype of `a` if it is inexact, else float64. The call waits for the device if it has
/// to read values of `a` or of given edges.
///
/// # Errors
/// Complex values or edges; zero bins; edges that decrease; a range that decreases, is not finite or is too narrow for the bins; weights of
/// another shape; or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, histogram};
/// # fn main() -> cuprum::Result<()> {
/// let (counts, edges) = histogram(&array![1.0, 2.0, 2.5, 4.0], 3, None, false)?;
/// assert_eq!((counts, edges), (array![1i64, 2, 1], array![1.0, 2.0, 3.0, 4.0]));
/// # Ok(())
/// # }
/// ```
#[numpy("histogram(a, bins=10, range=None, density=None, weights=None)", differs = "real values only", call = histogram_from_args)]
pub fn histogram(a: &NdArray, bins: impl Into<Bins>, weights: Option<&NdArray>, density: bool) -> Result<(NdArray, NdArray)> {
    let bins = bins.into();
    if let Some(weights) = weights {
        check_weights(HISTOGRAM, a, weights, &bins)?;
    }
    let (edges, kind) = a.bin_edges_and_kind(HISTOGRAM, bins)?;
    let counts = match weights {
        None => count_between_edges(a, &edges, kind)?,
        Some(weights) => sum_weights_between_edges(a, weights, &edges, kind)?,
    };
    if !density {
        return Ok((counts, edges));
    }
    let widths = subtract(edges.index(s![1..])?, edges.index(s![..-1])?)?.astype(DType::F64)?;
    Ok((divide(divide(&counts, &widths)?, counts.sum(())?)?, edges))
}

fn bin_edges_from_args(args: &Args) -> Result<Value> {
    let (a, bins) = (args.array("a")?, read_bins_argument(args)?);
    if let Some(weights) = args.get("weights") {
        check_weights(HISTOGRAM_BIN_EDGES, &a, &weights.array(args.op())?, &bins)?;
    }
    histogram_bin_edges(&a, bins).map(Value::Array)
}

/// Returns the edges that [`histogram`] uses (`numpy.histogram_bin_edges`).
///
/// # Errors
/// The errors of [`histogram`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, histogram_bin_edges};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(histogram_bin_edges(&array![1.0, 4.0], 3)?, array![1.0, 2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("histogram_bin_edges(a, bins=10, range=None, weights=None)", differs = "real values only", call = bin_edges_from_args)]
pub fn histogram_bin_edges(a: &NdArray, bins: impl Into<Bins>) -> Result<NdArray> {
    Ok(a.bin_edges_and_kind(HISTOGRAM_BIN_EDGES, bins.into())?.0)
}

/// Returns the number of values of `a` between consecutive edges.
fn count_between_edges(a: &NdArray, edges: &NdArray, kind: BinEdgeKind) -> Result<NdArray> {
    let bins = edges.size() - 1;
    let common = a.dtype().promote(edges.dtype());
    if a.size() == 0 || bins == 0 {
        return full_on_device(a.device(), &[bins], Scalar::Int(0), DType::I64);
    }
    let dtype = match common {
        DType::F16 | DType::BF16 if kind != BinEdgeKind::RisingToNan => DType::F32, // exact; kernels take float32 and float64 only
        DType::F32 | DType::F64 if kind != BinEdgeKind::RisingToNan => common,
        // Other values are counted by sorting: float64 cannot represent large integers exactly, and histogram kernels do not take a NaN
        // edge.
        _ => {
            let sorted = a.astype(common)?.sort(())?;
            let (inner, last) = (edges.astype(common)?.index(s![..-1])?, edges.astype(common)?.index(s![-1..])?);
            let below = concat(&[sorted.searchsorted(&inner, Side::Left)?, sorted.searchsorted(&last, Side::Right)?], 0)?;
            return subtract(below.index(s![1..])?, below.index(s![..-1])?);
        }
    };
    let (program, mut inputs) = super::fuse_flattened_input(Family::Histogram, &a.astype(dtype)?, dtype)?;
    inputs.push(edges.astype(dtype)?.contiguous()?.stored()?);
    let even = kind == BinEdgeKind::Even && dtype == common; // edges rounded to 16 bits are not evenly spaced
    let work = Work::Histogram(call::Histogram { program: &program, binning: Binning::Edges { even } });
    super::dispatch_single_output(HISTOGRAM, a.device(), &inputs, OutputSpec::contiguous(DType::I64, &[bins])?, work)
}

/// Rejects weights that are on another device or of another shape, or weights with a rule for the number of bins.
fn check_weights(op: Op, a: &NdArray, weights: &NdArray, bins: &Bins) -> Result<()> {
    check_shape_of_weights(op, a, weights)?;
    if matches!(bins, Bins::Rule(..)) {
        return Err(Error::value(op.name(), "a rule chooses no number of bins for weighted values; give a number or edges"));
    }
    Ok(())
}

/// Rejects weights that are on another device or of another shape.
fn check_shape_of_weights(op: Op, a: &NdArray, weights: &NdArray) -> Result<()> {
    super::common_device(op, a, weights)?;
    if weights.shape() != a.shape() {
        return Err(Error::shape(op.name(), "weights must have the shape of the values", &[a.shape(), weights.shape()]));
    }
    Ok(())
}

/// Returns, for each pair of consecutive edges, the sum of the weights of the values between them, in the dtype of the weights.
fn sum_weights_between_edges(a: &NdArray, weights: &NdArray, edges: &NdArray, kind: BinEdgeKind) -> Result<NdArray> {
    let (bins, dtype) = (edges.size() - 1, weights.dtype());
    let after = edges.searchsorted(a, Side::Right)?;
    let mut inside = after.greater(0)?;
    if kind != BinEdgeKind::RisingToNan {
        inside = logical_and(&inside, a.less_equal(edges.index(s![-1])?)?)?;
    }
    let bin = subtract(after.clip(1, bins as i64)?, 1)?.ravel()?;
    let float_sums = |weights: &NdArray| {
        let weights = where_(&inside, weights.astype(DType::F64)?, 0.0)?;
        count_or_sum_by_bin(HISTOGRAM, &bin, Some(&weights.ravel()?), bins)
    };
    if dtype.is_complex() {
        let parts = stack(&[float_sums(&weights.real()?)?, float_sums(&weights.imag()?)?], -1)?;
        return parts.view_as(DType::C128)?.reshape([bins])?.astype(dtype);
    }
    // NumPy sums integers between given edges in their dtype, and between computed edges in float64.
    if dtype.is_int() && kind != BinEdgeKind::Even && bin.size() > 0 && bins > 0 {
        return sum_weights_by_sorting(&bin, &where_(&inside, weights, 0)?.ravel()?, bins)?.astype(dtype);
    }
    let sums = float_sums(weights)?;
    // As in NumPy, sums wrap in narrow integer dtypes. They are first converted to int64, because a direct conversion from float64 would
    // saturate.
    let sums = if dtype.is_int() && dtype.itemsize() < 8 { sums.astype(DType::I64)? } else { sums };
    sums.astype(dtype)
}

/// Returns the number of occurrences of each bin in `numbers` (int64, below `bins`), or with `weights` the sum of the weights of each bin.
fn count_or_sum_by_bin(op: Op, numbers: &NdArray, weights: Option<&NdArray>, bins: usize) -> Result<NdArray> {
    let dtype = if weights.is_some() { DType::F64 } else { DType::I64 };
    if bins == 0 || numbers.size() == 0 {
        return full_on_device(numbers.device(), &[bins], Scalar::Int(0), dtype);
    }
    let (program, mut inputs) = super::fuse_flattened_input(Family::Histogram, numbers, DType::I64)?;
    if let Some(weights) = weights {
        inputs.push(weights.astype(DType::F64)?.contiguous()?.stored()?);
    }
    let work = Work::Histogram(call::Histogram { program: &program, binning: Binning::Number { weighted: weights.is_some() } });
    match (super::dispatch_single_output(op, numbers.device(), &inputs, OutputSpec::contiguous(dtype, &[bins])?, work), weights) {
        (Err(Error::Unsupported { .. }), Some(weights)) => sum_weights_by_sorting(numbers, &weights.astype(DType::F64)?, bins),
        (counts, _) => counts,
    }
}

/// Returns the sum of the weights of each bin, for integer weights and for devices without a histogram kernel. Sorts the weights by bin,
/// then sums the segments of equal bins.
fn sum_weights_by_sorting(numbers: &NdArray, weights: &NdArray, bins: usize) -> Result<NdArray> {
    let order = numbers.argsort(-1)?;
    let bounds = with_device(numbers.device(), || arange_as(0, bins as i64 + 1, 1, DType::I64))?;
    let offsets = numbers.take(&order, 0)?.searchsorted(&bounds, Side::Left)?;
    super::segments::segment_sum(&weights.take(&order, 0)?, &offsets)
}

/// # Histograms
///
/// [`bincount`] and [`histogram_bin_edges`] are free functions, not methods.
impl NdArray {
    /// Returns the int64 number of elements in each bin, and the bin edges (`numpy.histogram`).
    ///
    /// The function [`histogram`] also takes weights and computes densities.
    ///
    /// # Errors
    /// The errors of [`histogram`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, histogram};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[0.1, 0.2, 0.9, 1.0])?;
    /// let (counts, edges) = histogram(&a, (2, 0.0, 1.0), None, false)?;
    /// assert_eq!(counts.to_vec::<i64>()?, [2, 2]);
    /// assert_eq!(edges.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn histogram(&self, bins: impl Into<Bins>) -> Result<(NdArray, NdArray)> {
        histogram(self, bins, None, false)
    }

    /// Returns the edges of `bins` for the values of this array, and the kind of the edges.
    fn bin_edges_and_kind(&self, op: Op, bins: Bins) -> Result<(NdArray, BinEdgeKind)> {
        let (name, device) = (op.name(), self.device());
        if self.dtype().is_complex() {
            return Err(Error::dtype(name, "not defined for complex", &[self.dtype()]));
        }
        let (count, range) = match bins {
            Bins::Edges(edges) => {
                super::common_device(op, self, &edges)?;
                if edges.ndim() != 1 || edges.size() == 0 {
                    return Err(Error::shape(name, "edges must be 1-D, at least one", &[edges.shape()]));
                }
                if edges.dtype().is_complex() {
                    return Err(Error::dtype(name, "not defined for complex edges", &[edges.dtype()]));
                }
                let kind = match is_non_decreasing(&edges)? {
                    true => BinEdgeKind::Rising,
                    false if is_non_decreasing_to_nan(&edges)? => BinEdgeKind::RisingToNan,
                    false => return Err(Error::value(name, "edges must not decrease; NaN may only be last")),
                };
                return Ok((edges, kind));
            }
            Bins::Count(count) => (count, None),
            Bins::Rule(rule, range) => {
                if let Some((low, high)) = range.filter(|(low, high)| !low.is_finite() || !high.is_finite() || low > high) {
                    return Err(Error::value(name, format!("the range [{low}, {high}] decreases or is not finite")));
                }
                (rule.bin_count(name, self, range)?, range)
            }
            Bins::Range(count, low, high) => (count, Some((low, high))),
        };
        if count == 0 {
            return Err(Error::value(name, "the number of bins must be positive"));
        }
        if count as u64 > MAX_EQUAL_WIDTH_BINS {
            return Err(Error::value(name, format!("{count} bins are more than 2^53, whose edges float64 cannot distinguish")));
        }
        let dtype = if self.dtype().is_inexact() { self.dtype() } else { DType::F64 };
        let (low, high, dtype_of_range) = match range {
            Some((low, high)) if low > high => return Err(Error::value(name, "the range's start must not exceed its end")),
            Some((low, high)) => (low, high, DType::F64),
            None if self.size() == 0 => (0.0, 1.0, DType::F64),
            None => (self.min(())?.item()?.as_f64(), self.max(())?.item()?.as_f64(), dtype),
        };
        if !low.is_finite() || !high.is_finite() {
            return Err(Error::value(name, format!("the range [{low}, {high}] is not finite")));
        }
        let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
        let edges = with_device(device, || match dtype_of_range {
            DType::F64 if count <= MAX_BINS_COMPUTED_ON_HOST => equal_width_edges_on_host(op, low, high, count, dtype),
            _ => {
                let edges = equal_width_edges_on_device(low, high, count, dtype_of_range)?.astype(dtype)?;
                let are_equal = greater_equal(edges.index(s![..-1])?, edges.index(s![1..])?)?;
                if are_equal.any(())?.item()?.as_bool() { Err(too_many_bins_error(op, count)) } else { Ok(edges) }
            }
        })?;
        Ok((edges, BinEdgeKind::Even))
    }
}

/// Returns the number of occurrences of each integer from 0 to the largest element (`numpy.bincount`).
///
/// The array is 1-D. The result has at least `minlength` elements, int64; with `weights` it holds float64 sums of weights. An empty
/// array gives int64 zeros and ignores the weights, as in NumPy. The call waits for the device to find the largest element.
///
/// # Errors
/// An array that is not 1-D or not of integers, negative elements, or weights that are complex or of another shape.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, bincount};
/// # fn main() -> cuprum::Result<()> {
/// let x = array![0, 2, 2];
/// assert_eq!(bincount(&x, None, 5)?, array![1, 0, 2, 0, 0]);
/// assert_eq!(bincount(&x, Some(&array![0.5, 1.0, 2.0]), 0)?, array![0.5, 0.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("bincount(x, weights=None, minlength=0)", call = bincount_from_args)]
pub fn bincount(x: &NdArray, weights: Option<&NdArray>, minlength: usize) -> Result<NdArray> {
    let name = BINCOUNT.name();
    if x.ndim() != 1 {
        return Err(Error::shape(name, "takes a 1-D array", &[x.shape()]));
    }
    if !matches!(x.dtype().kind(), Kind::Bool | Kind::Signed | Kind::Unsigned) {
        return Err(Error::dtype(name, "takes integers", &[x.dtype()]));
    }
    if x.size() == 0 {
        return full_on_device(x.device(), &[minlength], Scalar::Int(0), DType::I64);
    }
    if let Some(weights) = weights {
        check_shape_of_weights(BINCOUNT, x, weights)?;
        if weights.dtype().is_complex() {
            return Err(Error::dtype(name, "weights must be real", &[weights.dtype()]));
        }
    }
    let (least, largest) = (x.min(())?.item()?.as_int().unwrap_or(0), x.max(())?.item()?.as_int().unwrap_or(0));
    if least < 0 {
        return Err(Error::value(name, format!("values must not be negative, and {least} is")));
    }
    let needed = usize::try_from(largest).ok().and_then(|n| n.checked_add(1)).filter(|n| i64::try_from(*n).is_ok());
    let bins = minlength.max(needed.ok_or_else(|| Error::value(name, format!("{largest} is too large to count up to")))?);
    count_or_sum_by_bin(BINCOUNT, &x.astype(DType::I64)?, weights, bins)
}

/// Returns whether `edges` do not decrease and end with NaN.
fn is_non_decreasing_to_nan(edges: &NdArray) -> Result<bool> {
    let (before, after) = (edges.index(s![..-1])?, edges.index(s![1..])?);
    Ok(logical_or(before.less_equal(&after)?, after.isnan()?)?.all(())?.item()?.as_bool())
}

/// Computes `numpy.linspace(low, high, count + 1)` on the host in float64 and converts it to `dtype`.
///
/// One copy to the device takes less time than several small kernels.
fn equal_width_edges_on_host(op: Op, low: f64, high: f64, count: usize, dtype: DType) -> Result<NdArray> {
    let step = (high - low) / count as f64;
    let edge = |i: usize| if i < count { i as f64 * step + low } else { high };
    let edges: Vec<f64> = (0..=count).map(|i| round_to_dtype(edge(i), dtype)).collect();
    if edges.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(too_many_bins_error(op, count));
    }
    match dtype {
        DType::F32 => NdArray::from_slice(&edges.iter().map(|edge| *edge as f32).collect::<Vec<_>>()),
        _ => NdArray::from_slice(&edges)?.astype(dtype),
    }
}

/// Returns the error for bins so narrow that neighbouring edges round to the same number.
fn too_many_bins_error(op: Op, count: usize) -> Error {
    Error::value(op.name(), format!("Too many bins for data range. Cannot create {count} finite-sized bins."))
}

/// Computes `numpy.linspace(low, high, count + 1)` on the device in `dtype`. NumPy also computes in the dtype of the ends.
fn equal_width_edges_on_device(low: f64, high: f64, count: usize, dtype: DType) -> Result<NdArray> {
    let (low, high) = (NdArray::scalar_as(low, dtype)?, NdArray::scalar_as(high, dtype)?);
    let step = divide(subtract(&high, &low)?, count as i64)?;
    let number = arange_as(0, count as i64 + 1, 1, dtype)?;
    where_(number.less(count as i64)?, add(multiply(&number, step)?, low)?, high)
}
