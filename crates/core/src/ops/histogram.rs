//! How many values fall in each bin.

use crate::array::NdArray;
use crate::call;
use crate::call::{Binning, OutputSpec, Work};
use crate::device::with_device;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::FromArgs;
use crate::op::Op;
use crate::ops::creation::full_on;
use crate::ops::elementwise::{add, divide, multiply, subtract, where_};
use crate::ops::manipulation::concat;
use crate::ops::search::{Side, rises};
use crate::ops::value::{Args, Value};
use crate::s;
use crate::scalar::Scalar;
use cuprum_macros::numpy;

super::rows! { Histogram after search:
    HISTOGRAM "histogram" 1;
    HISTOGRAM_BIN_EDGES "histogram_bin_edges" 1;
    BINCOUNT "bincount" 1;
}

/// Bins between even edges, at the most: the integers that float64 can count.
const MOST_BINS: u64 = 1 << f64::MANTISSA_DIGITS;

/// The most bins whose edges are computed on the host.
const FEW: usize = 1 << 12;

/// The bins of a histogram: `10` even ones from the smallest to the largest value, `(10, 0.0, 1.0)` even ones over a range, or
/// rising edges.
#[derive(Clone, Debug)]
pub enum Bins {
    /// So many even ones from the smallest to the largest value.
    Count(usize),
    /// So many even ones over a range.
    Range(usize, f64, f64),
    /// Between these edges (1-D, rising).
    Edges(NdArray),
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
impl From<&NdArray> for Bins {
    fn from(edges: &NdArray) -> Bins {
        Bins::Edges(edges.clone())
    }
}

fn bins(args: &Args) -> Result<Bins> {
    let op = args.op();
    let count = match args.get("bins") {
        None => 10,
        Some(Value::Str(_)) => {
            return Err(Error::value(op, "rules for the number of bins are not in this version; give a number or edges"));
        }
        Some(Value::Array(a)) if a.ndim() > 0 => return Ok(Bins::Edges(a.clone())),
        Some(edges @ (Value::List(_) | Value::Tuple(_))) => return Ok(Bins::Edges(edges.array(op)?)),
        Some(count) => usize::try_from(count.int(op)?).map_err(|_| Error::value(op, "the number of bins must be positive"))?,
    };
    match args.get("range").map(|r| (r, r.items())) {
        None => Ok(Bins::Count(count)),
        Some((_, Some([Value::Scalar(low), Value::Scalar(high)]))) => Ok(Bins::Range(count, low.as_f64(), high.as_f64())),
        Some((other, _)) => Err(Error::value(op, format!("range is a pair of numbers, not {}", other.type_name()))),
    }
}

fn bincount_by_name(args: &Args) -> Result<Value> {
    let (weights, minlength): (Option<NdArray>, usize) = (FromArgs::from_args(args, "weights")?, FromArgs::from_args(args, "minlength")?);
    args.indices("x")?.bincount(weights.as_ref(), minlength).map(Value::Array)
}

fn histogram_by_name(args: &Args) -> Result<Value> {
    let weights = args.get("weights").map(|w| w.array("histogram")).transpose()?;
    let (counts, edges) = histogram(&args.array("a")?, bins(args)?, weights.as_ref(), args.bool_or("density", false)?)?;
    Ok(Value::tuple([counts.into(), edges.into()]))
}

/// The order of the edges of bins.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// Rising in even steps.
    Even,
    /// Rising.
    Rising,
    /// Rising, with NaN last. As in NumPy, NaN is above every value, and the last bin holds NaN values.
    RisingToNan,
}

/// Counts of the values of `a` in bins, and the edges of the bins (`numpy.histogram`).
///
/// A bin holds its left edge, the last one its right edge too; NaN and values outside count nowhere. If the last edge is NaN, the last bin
/// holds all values from its left edge on, NaN included. Counts are int64; with
/// `weights` (of the shape of `a`) they are sums of weights in float64, and with `density` divided by their total and the width of
/// each bin. Edges are float64, or of the dtype of `a` if that is inexact.
///
/// Errors: complex values, edges or weights; no bins; edges that do not rise; a range that falls or is not finite; weights of
/// another shape. Waits for the device where the range or the edges must be looked at.
#[numpy("histogram(a, bins=10, range=None, density=None, weights=None)", call = histogram_by_name)]
pub fn histogram(a: &NdArray, bins: impl Into<Bins>, weights: Option<&NdArray>, density: bool) -> Result<(NdArray, NdArray)> {
    let (edges, order) = a.edges(HISTOGRAM, bins.into())?;
    let counts = match weights {
        None => counts(a, &edges, order)?,
        Some(weights) => weighted(a, weights, &edges, order)?,
    };
    if !density {
        return Ok((counts, edges));
    }
    let widths = subtract(edges.index(s![1..])?, edges.index(s![..-1])?)?.astype(DType::F64)?;
    Ok((divide(divide(&counts, &widths)?, counts.sum(())?)?, edges))
}

fn bin_edges_by_name(args: &Args) -> Result<Value> {
    histogram_bin_edges(&args.array("a")?, bins(args)?).map(Value::Array)
}

/// The edges that [`histogram`] uses (`numpy.histogram_bin_edges`), with its errors.
#[numpy("histogram_bin_edges(a, bins=10, range=None)", call = bin_edges_by_name)]
pub fn histogram_bin_edges(a: &NdArray, bins: impl Into<Bins>) -> Result<NdArray> {
    Ok(a.edges(HISTOGRAM_BIN_EDGES, bins.into())?.0)
}

/// How many values of `a` fall between edges.
fn counts(a: &NdArray, edges: &NdArray, order: Order) -> Result<NdArray> {
    let bins = edges.size() - 1;
    let common = a.dtype().promote(edges.dtype());
    if a.size() == 0 || bins == 0 {
        return full_on(a.device(), &[bins], Scalar::Int(0), DType::I64);
    }
    let dtype = match common {
        DType::F16 | DType::BF16 if order != Order::RisingToNan => DType::F32, // exact, and kernels take these two
        DType::F32 | DType::F64 if order != Order::RisingToNan => common,
        // Integers between integer edges, which float64 may not tell apart, and an edge that is NaN, which kernels do not take.
        _ => {
            let sorted = a.astype(common)?.sort(())?;
            let (inner, last) = (edges.astype(common)?.index(s![..-1])?, edges.astype(common)?.index(s![-1..])?);
            let below = concat(&[sorted.searchsorted(&inner, Side::Left)?, sorted.searchsorted(&last, Side::Right)?], 0)?;
            return subtract(below.index(s![1..])?, below.index(s![..-1])?);
        }
    };
    let (program, mut inputs) = super::flat_prologue(&a.astype(dtype)?, dtype)?;
    inputs.push(edges.astype(dtype)?.contiguous()?.stored()?);
    let even = order == Order::Even && dtype == common; // rounded to 16 bits they are even no longer
    let work = Work::Histogram(call::Histogram { program: &program, binning: Binning::Edges { even } });
    super::run_one(HISTOGRAM, a.device(), &inputs, OutputSpec::contiguous(DType::I64, &[bins])?, work)
}

/// Refuses weights that are elsewhere, of another shape, or complex.
fn check_weights(op: Op, a: &NdArray, weights: &NdArray) -> Result<()> {
    super::one_device(op, a, weights)?;
    if weights.shape() != a.shape() {
        return Err(Error::shape(op.name(), "weights must have the shape of the values", &[a.shape(), weights.shape()]));
    }
    if weights.dtype().is_complex() {
        return Err(Error::dtype(op.name(), "weights must be real", &[weights.dtype()]));
    }
    Ok(())
}

/// Sums of the weights of the values of `a` between edges.
fn weighted(a: &NdArray, weights: &NdArray, edges: &NdArray, order: Order) -> Result<NdArray> {
    check_weights(HISTOGRAM, a, weights)?;
    let bins = edges.size() - 1;
    let after = edges.searchsorted(a, Side::Right)?;
    let mut inside = after.greater(0)?;
    if order != Order::RisingToNan {
        inside = inside.logical_and(a.less_equal(edges.index(s![-1])?)?)?;
    }
    let place = subtract(after.clip(1, bins as i64)?, 1)?;
    let weights = where_(inside, weights.astype(DType::F64)?, 0.0)?;
    numbered(HISTOGRAM, &place.ravel()?, Some(&weights.ravel()?), bins)
}

/// Counts of int64 bin numbers below `bins`, or sums of their weights.
fn numbered(op: Op, numbers: &NdArray, weights: Option<&NdArray>, bins: usize) -> Result<NdArray> {
    let dtype = if weights.is_some() { DType::F64 } else { DType::I64 };
    if bins == 0 || numbers.size() == 0 {
        return full_on(numbers.device(), &[bins], Scalar::Int(0), dtype);
    }
    let (program, mut inputs) = super::flat_prologue(numbers, DType::I64)?;
    if let Some(weights) = weights {
        inputs.push(weights.astype(DType::F64)?.contiguous()?.stored()?);
    }
    let work = Work::Histogram(call::Histogram { program: &program, binning: Binning::Number { weighted: weights.is_some() } });
    match (super::run_one(op, numbers.device(), &inputs, OutputSpec::contiguous(dtype, &[bins])?, work), weights) {
        (Err(Error::Unsupported { .. }), Some(weights)) => segments(numbers, weights, bins),
        (counts, _) => counts,
    }
}

/// Sums of weights by bin over other operations: weights in the order of their bins, summed by segment.
fn segments(numbers: &NdArray, weights: &NdArray, bins: usize) -> Result<NdArray> {
    let order = numbers.argsort(-1)?;
    let bounds = with_device(numbers.device(), || NdArray::arange_as(0, bins as i64 + 1, 1, DType::I64))?;
    let offsets = numbers.take(&order, 0)?.searchsorted(&bounds, Side::Left)?;
    super::segments::segment_sum(&weights.astype(DType::F64)?.take(&order, 0)?, &offsets)
}

impl NdArray {
    /// Counts (int64) of the elements in bins, and the edges of the bins (`numpy.histogram`); see [`histogram`] for weights and
    /// densities.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[0.1, 0.2, 0.9, 1.0])?;
    /// let (counts, edges) = a.histogram((2, 0.0, 1.0))?;
    /// assert_eq!(counts.to_vec::<i64>()?, [2, 2]);
    /// assert_eq!(edges.to_vec::<f64>()?, [0.0, 0.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn histogram(&self, bins: impl Into<Bins>) -> Result<(NdArray, NdArray)> {
        histogram(self, bins, None, false)
    }

    /// How often each integer from 0 to the largest element, at least `minlength` of them, occurs in a 1-D array (int64), or the
    /// sum of the weights of its occurrences (float64) (`numpy.bincount`). An array without elements gives int64 zeros and leaves the
    /// weights unread, as in NumPy.
    ///
    /// Errors: elements that are not integers, or negative; weights that are complex or of another shape. Waits for the device, to
    /// find the largest.
    #[numpy("bincount(x, weights=None, minlength=0)", call = bincount_by_name)]
    pub fn bincount(&self, weights: Option<&NdArray>, minlength: usize) -> Result<NdArray> {
        let name = BINCOUNT.name();
        if self.ndim() != 1 {
            return Err(Error::shape(name, "takes a 1-D array", &[self.shape()]));
        }
        if !matches!(self.dtype().kind(), Kind::Bool | Kind::Signed | Kind::Unsigned) {
            return Err(Error::dtype(name, "takes integers", &[self.dtype()]));
        }
        if self.size() == 0 {
            return full_on(self.device(), &[minlength], Scalar::Int(0), DType::I64);
        }
        if let Some(weights) = weights {
            check_weights(BINCOUNT, self, weights)?;
        }
        let (least, largest) = (self.min(())?.item()?.as_int().unwrap_or(0), self.max(())?.item()?.as_int().unwrap_or(0));
        if least < 0 {
            return Err(Error::value(name, format!("values must not be negative, and {least} is")));
        }
        let needed = usize::try_from(largest).ok().and_then(|n| n.checked_add(1)).filter(|n| i64::try_from(*n).is_ok());
        let bins = minlength.max(needed.ok_or_else(|| Error::value(name, format!("{largest} is too large to count up to")))?);
        numbered(BINCOUNT, &self.astype(DType::I64)?, weights, bins)
    }

    /// The edges of bins for these values, and their order.
    fn edges(&self, op: Op, bins: Bins) -> Result<(NdArray, Order)> {
        let (name, device) = (op.name(), self.device());
        if self.dtype().is_complex() {
            return Err(Error::dtype(name, "not defined for complex", &[self.dtype()]));
        }
        let (count, range) = match bins {
            Bins::Edges(edges) => {
                super::one_device(op, self, &edges)?;
                if edges.ndim() != 1 || edges.size() == 0 {
                    return Err(Error::shape(name, "edges must be 1-D, at least one", &[edges.shape()]));
                }
                if edges.dtype().is_complex() {
                    return Err(Error::dtype(name, "not defined for complex edges", &[edges.dtype()]));
                }
                let order = match rises(&edges)? {
                    true => Order::Rising,
                    false if rises_to_nan(&edges)? => Order::RisingToNan,
                    false => return Err(Error::value(name, "edges must rise, NaN last")),
                };
                return Ok((edges, order));
            }
            Bins::Count(count) => (count, None),
            Bins::Range(count, low, high) => (count, Some((low, high))),
        };
        if count == 0 {
            return Err(Error::value(name, "the number of bins must be positive"));
        }
        if count as u64 > MOST_BINS {
            return Err(Error::value(name, format!("{count} bins are more than 2^53, which no float64 edge tells apart")));
        }
        let dtype = if self.dtype().is_inexact() { self.dtype() } else { DType::F64 };
        let (low, high, dtype_of_range) = match range {
            Some((low, high)) if low > high => return Err(Error::value(name, "the range must rise")),
            Some((low, high)) => (low, high, DType::F64),
            None if self.size() == 0 => (0.0, 1.0, DType::F64),
            None => (self.min(())?.item()?.as_f64(), self.max(())?.item()?.as_f64(), dtype),
        };
        if !low.is_finite() || !high.is_finite() {
            return Err(Error::value(name, format!("the range [{low}, {high}] is not finite")));
        }
        let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
        let edges = with_device(device, || match dtype_of_range {
            DType::F64 if count <= FEW => few_edges(low, high, count, dtype),
            _ => even_edges(low, high, count, dtype_of_range)?.astype(dtype),
        })?;
        Ok((edges, Order::Even))
    }
}

/// Whether the edges of at least one bin rise and have NaN last.
fn rises_to_nan(edges: &NdArray) -> Result<bool> {
    let (before, after) = (edges.index(s![..-1])?, edges.index(s![1..])?);
    Ok(before.less_equal(&after)?.logical_or(after.isnan()?)?.all(())?.item()?.as_bool())
}

/// `numpy.linspace(low, high, count + 1)` in float64, then converted to `dtype`: computed here, because one copy takes a device less time
/// than kernels and their scalars.
fn few_edges(low: f64, high: f64, count: usize, dtype: DType) -> Result<NdArray> {
    let step = (high - low) / count as f64;
    let edges = (0..=count).map(|i| if i < count { i as f64 * step + low } else { high });
    match dtype {
        DType::F32 => NdArray::from_slice(&edges.map(|edge| edge as f32).collect::<Vec<_>>()),
        _ => NdArray::from_slice(&edges.collect::<Vec<_>>())?.astype(dtype),
    }
}

/// `numpy.linspace(low, high, count + 1)`, computed in the dtype of its ends as NumPy does.
fn even_edges(low: f64, high: f64, count: usize, dtype: DType) -> Result<NdArray> {
    let (low, high) = (NdArray::scalar_as(low, dtype)?, NdArray::scalar_as(high, dtype)?);
    let step = divide(subtract(&high, &low)?, count as i64)?;
    let place = NdArray::arange_as(0, count as i64 + 1, 1, dtype)?;
    where_(place.less(count as i64)?, add(multiply(&place, step)?, low)?, high)
}
