//! Padding arrays.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::checked_size;
use cuprum_core::ops::linspace::linspace_of_arrays;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    DType, Error, Kind, NdArray, Result, Scalar, assemble_from_parts, axis as over_axis, broadcast_to, concat, flip, floor_divide, less,
    moveaxis, multiply, numpy, remainder, subtract, where_, with_device,
};

use crate::operand_and_slice_helpers::{index_range, operand_to_array, slice_axis};
use crate::statistics::median;

/// A value before and a value after each axis: one pair for all axes, or one for each.
type Pairs<T> = Vec<(T, T)>;

/// The elements that [`pad`] adds (`mode=` of `numpy.pad`).
///
/// Each pair has a value for the elements before an axis, and a value for those after the axis. A list has one pair for all axes, or one
/// for each axis.
#[derive(Clone, Debug, PartialEq)]
pub enum PadMode {
    /// Constant values.
    Constant(Vec<(Scalar, Scalar)>),
    /// The element at the edge of the padded array.
    Edge,
    /// Unspecified values in NumPy; zeros here.
    Empty,
    /// A linear ramp from the edge to these end values.
    LinearRamp(Vec<(Scalar, Scalar)>),
    /// The maximum along the axis. A pair for each axis holds the numbers of elements next to its two edges that count (NumPy's
    /// `stat_length`); without pairs, all elements count.
    Maximum(Option<Vec<(usize, usize)>>),
    /// The mean along the axis. A pair for each axis holds the numbers of elements next to its two edges that count (NumPy's
    /// `stat_length`); without pairs, all elements count.
    Mean(Option<Vec<(usize, usize)>>),
    /// The median along the axis. A pair for each axis holds the numbers of elements next to its two edges that count (NumPy's
    /// `stat_length`); without pairs, all elements count.
    Median(Option<Vec<(usize, usize)>>),
    /// The minimum along the axis. A pair for each axis holds the numbers of elements next to its two edges that count (NumPy's
    /// `stat_length`); without pairs, all elements count.
    Minimum(Option<Vec<(usize, usize)>>),
    /// The elements mirrored at the edge. The edge element itself is not repeated.
    Reflect {
        /// Whether an element `x` becomes `2 * edge - x` when mirrored (`reflect_type='odd'`). Otherwise it is unchanged.
        odd: bool,
    },
    /// The elements mirrored at the edge. The edge element itself is repeated.
    Symmetric {
        /// Whether an element `x` becomes `2 * edge - x` when mirrored (`reflect_type='odd'`). Otherwise it is unchanged.
        odd: bool,
    },
    /// The elements from the opposite end of the axis.
    Wrap,
}

/// Converts a number to the mode that pads all sides with this number.
impl<T: Into<Scalar>> From<T> for PadMode {
    fn from(value: T) -> PadMode {
        let value = value.into();
        PadMode::Constant(vec![(value, value)])
    }
}

const PAD_FUNCTION_NAME: &str = "pad";

/// Maximum number of slices that [`pad`] copies into the result. If more are needed, [`pad`] uses one gather for each axis instead.
const MAX_COPIED_SLICES: usize = 256;

/// Returns the numbers of an argument as a pair for each axis, by NumPy's rules of broadcasting.
fn read_pairs_per_axis(value: &Value, ndim: usize) -> Result<Vec<(Scalar, Scalar)>> {
    let array = value.array(PAD_FUNCTION_NAME)?;
    let bytes = array.to_bytes()?;
    let numbers: Vec<Scalar> = bytes.chunks_exact(array.dtype().itemsize()).map(|b| Scalar::from_bytes(array.dtype(), b)).collect();
    match (&numbers[..], array.shape()) {
        (&[x], shape) if shape.len() < 3 => Ok(vec![(x, x); ndim]),
        (&[x, y], shape) if shape.len() < 3 && shape != [2, 1] => Ok(vec![(x, y); ndim]),
        (_, shape) => {
            let spread = with_device(array.device(), || broadcast_to(&array, [ndim, 2])).map_err(|_| {
                Error::shape(PAD_FUNCTION_NAME, "the values cannot be broadcast to a pair for each axis", &[shape, &[ndim, 2]])
            })?;
            let bytes = spread.to_bytes()?;
            let numbers: Vec<Scalar> = bytes.chunks_exact(array.dtype().itemsize()).map(|b| Scalar::from_bytes(array.dtype(), b)).collect();
            Ok(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
        }
    }
}

/// Returns the numbers of an argument as a pair of lengths for each axis. As in NumPy, they are rounded to integers, and a negative number
/// is an error.
fn read_length_pairs(value: &Value, ndim: usize) -> Result<Pairs<usize>> {
    let length = |s: Scalar| {
        let n = s.as_f64().round_ties_even();
        if n < 0.0 { Err(Error::value(PAD_FUNCTION_NAME, "index can't contain negative values")) } else { Ok(n as usize) }
    };
    read_pairs_per_axis(value, ndim)?.into_iter().map(|(before, after)| Ok((length(before)?, length(after)?))).collect()
}

fn pad_from_args(args: &Args) -> Result<Value> {
    let array = args.array("array")?;
    let ndim = array.ndim();
    let widths = args.get("pad_width").ok_or_else(|| Error::value(PAD_FUNCTION_NAME, "`pad_width` must be of integral type."))?;
    if !matches!(widths.array(PAD_FUNCTION_NAME)?.dtype(), DType::I8 | DType::I16 | DType::I32 | DType::I64) {
        return Err(Error::value(PAD_FUNCTION_NAME, "`pad_width` must be of integral type."));
    }
    if widths.array(PAD_FUNCTION_NAME)?.size() > 0 && widths.array(PAD_FUNCTION_NAME)?.min(())?.item()?.as_f64() < 0.0 {
        return Err(Error::value(PAD_FUNCTION_NAME, "index can't contain negative values"));
    }
    let widths = read_length_pairs(widths, ndim)?;
    let mode: String = FromArgs::from_args(args, "mode")?;
    let pairs = |name: &str| match args.get(name) {
        None => Ok(vec![(Scalar::Int(0), Scalar::Int(0)); ndim]),
        Some(value) => read_pairs_per_axis(value, ndim),
    };
    let lengths = |name: &str| args.get(name).map(|value| read_length_pairs(value, ndim)).transpose();
    // As in NumPy, any `reflect_type` except `odd` means an even reflection.
    let odd = |name: &str| matches!(args.get(name), Some(Value::Str(kind)) if kind == "odd");
    let (mode, option) = match mode.as_str() {
        "constant" => (PadMode::Constant(pairs("constant_values")?), "constant_values"),
        "edge" => (PadMode::Edge, ""),
        "empty" => (PadMode::Empty, ""),
        "linear_ramp" => (PadMode::LinearRamp(pairs("end_values")?), "end_values"),
        "maximum" => (PadMode::Maximum(lengths("stat_length")?), "stat_length"),
        "mean" => (PadMode::Mean(lengths("stat_length")?), "stat_length"),
        "median" => (PadMode::Median(lengths("stat_length")?), "stat_length"),
        "minimum" => (PadMode::Minimum(lengths("stat_length")?), "stat_length"),
        "reflect" => (PadMode::Reflect { odd: odd("reflect_type") }, "reflect_type"),
        "symmetric" => (PadMode::Symmetric { odd: odd("reflect_type") }, "reflect_type"),
        "wrap" => (PadMode::Wrap, ""),
        _ => {
            let modes = "constant, edge, empty, linear_ramp, maximum, mean, median, minimum, reflect, symmetric, wrap";
            return Err(Error::value(PAD_FUNCTION_NAME, format!("mode '{mode}' is not supported. Use one of: {modes}")));
        }
    };
    let options = ["constant_values", "end_values", "stat_length", "reflect_type"];
    if let Some(other) = options.iter().find(|name| **name != option && args.get(name).is_some()) {
        return Err(Error::value(PAD_FUNCTION_NAME, format!("unsupported keyword arguments for this mode: '{other}'")));
    }
    pad(&array, &widths, mode).map(Value::Array)
}

/// Returns one pair for each of `ndim` axes; a single pair is repeated for all axes.
fn pair_per_axis<T: Copy>(pairs: &[(T, T)], ndim: usize) -> Result<Pairs<T>> {
    match pairs {
        [pair] => Ok(vec![*pair; ndim]),
        pairs if pairs.len() == ndim => Ok(pairs.to_vec()),
        pairs => {
            Err(Error::value(PAD_FUNCTION_NAME, format!("{} pairs for {ndim} axes; give one pair, or one for each axis", pairs.len())))
        }
    }
}

/// Returns the array with elements added before and after each axis (`numpy.pad`).
///
/// `widths` has the numbers of elements before and after an axis: one pair for all axes, or one for each. A number as the mode is a
/// constant. The result has the dtype of the array.
///
/// Passes over memory: one, in which each element of the result is written once. The modes `Maximum`, `Mean`, `Median`, `Minimum`
/// and odd reflections first compute the added elements. If the widths are many times the extent, one gather pads each axis.
///
/// # Errors
/// Different numbers of pairs and axes, an empty axis in a mode that needs elements, a result whose size overflows, or a length of 0
/// for a maximum or minimum.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{NdArray, PadMode, pad};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2, 3])?;
/// assert_eq!(pad(&a, &[(1, 2)], 0)?.to_vec::<i32>()?, [0, 1, 2, 3, 0, 0]);
/// assert_eq!(pad(&a, &[(2, 2)], PadMode::Reflect { odd: false })?.to_vec::<i32>()?, [3, 2, 1, 2, 3, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "pad(array, pad_width, mode='constant', *, constant_values=None, end_values=None, stat_length=None, reflect_type=None)",
    differs = "no function as the mode; mode 'empty' adds zeros",
    call = pad_from_args
)]
pub fn pad(array: &NdArray, widths: &[(usize, usize)], mode: impl Into<PadMode>) -> Result<NdArray> {
    let mode = mode.into();
    let ndim = array.ndim();
    let widths = pair_per_axis(widths, ndim)?;
    let too_large = || Error::shape(PAD_FUNCTION_NAME, "the result is too large", &[array.shape()]);
    let padded = |(&n, &(before, after)): (&usize, &(usize, usize))| n.checked_add(before)?.checked_add(after);
    let shape: Vec<usize> = array.shape().iter().zip(&widths).map(padded).collect::<Option<_>>().ok_or_else(too_large)?;
    let size = checked_size(PAD_FUNCTION_NAME, &shape)?;
    match mode {
        PadMode::Constant(values) => return pad_constant(array, &widths, &shape, &pair_per_axis(&values, ndim)?),
        PadMode::Empty => return pad_constant(array, &widths, &shape, &vec![(Scalar::Int(0), Scalar::Int(0)); ndim]),
        _ => {}
    }
    if let Some(axis) = (0..ndim).find(|&axis| array.shape()[axis] == 0 && shape[axis] > 0) {
        let message = format!("can't extend empty axis {axis} using modes other than 'constant' or 'empty'");
        return Err(Error::shape(PAD_FUNCTION_NAME, message, &[array.shape()]));
    }
    if size == 0 {
        return crate::operand_and_slice_helpers::new_filled_array(array, &shape, 0, array.dtype());
    }
    let source = PaddingSource::from_pad_mode(mode, ndim)?;
    if let PaddingSource::Statistic(Statistic::Maximum | Statistic::Minimum, Some(lengths)) = &source
        && lengths.iter().any(|&(before, after)| before == 0 || after == 0)
    {
        return Err(Error::value(PAD_FUNCTION_NAME, "stat_length of 0 yields no value for padding"));
    }
    if let Some(repeat) = source.as_repeat_mode() {
        let blocks = |axis: usize| {
            let (length, (before, after)) = (repeat.period_length(array.shape()[axis]), widths[axis]);
            before.div_ceil(length).saturating_add(after.div_ceil(length)).saturating_add(1)
        };
        if (0..ndim).try_fold(1usize, |n, axis| n.checked_mul(blocks(axis))).is_none_or(|n| n > MAX_COPIED_SLICES) {
            return pad_by_gather(array, &widths, repeat);
        }
    }
    let mut parts = vec![(array.clone(), widths.iter().map(|w| w.0).collect::<Vec<_>>())];
    for (axis, &width) in widths.iter().enumerate().filter(|(_, width)| **width != (0, 0)) {
        let mut more = Vec::new();
        for (part, start) in &parts {
            for (added, position) in source.padding_parts(part, axis, width)? {
                let mut start = start.clone();
                start[axis] = position;
                more.push((added, start));
            }
        }
        parts.extend(more);
    }
    assemble_from_parts(&shape, &parts)
}

/// Pads with constants. The constants of a later axis fill the corners, as in NumPy.
fn pad_constant(array: &NdArray, widths: &[(usize, usize)], shape: &[usize], values: &[(Scalar, Scalar)]) -> Result<NdArray> {
    let mut parts = vec![(array.clone(), widths.iter().map(|w| w.0).collect::<Vec<_>>())];
    for (axis, (&(before, after), &(first, last))) in widths.iter().zip(values).enumerate() {
        for (length, value, position) in [(before, first, 0), (after, last, before + array.shape()[axis])] {
            let extent = |n: usize| match n.cmp(&axis) {
                std::cmp::Ordering::Less => (shape[n], 0),
                std::cmp::Ordering::Equal => (length, position),
                std::cmp::Ordering::Greater => (array.shape()[n], widths[n].0),
            };
            let (extents, start): (Vec<usize>, Vec<usize>) = (0..shape.len()).map(extent).unzip();
            // As in NumPy, an integer constant wraps around in an unsigned dtype, but must be representable in a signed dtype.
            let is_checked = array.dtype().kind() == Kind::Signed && !matches!(value, Scalar::Complex(_));
            let value = if is_checked { value.to_checked_element(PAD_FUNCTION_NAME, array.dtype())? } else { value };
            let value = with_device(array.device(), || NdArray::scalar_as(value, array.dtype()))?;
            parts.push((broadcast_to(&value, extents)?, start));
        }
    }
    assemble_from_parts(shape, &parts)
}

/// A mode of `numpy.pad` that fills the padding with repeated copies of the axis, possibly mirrored.
#[derive(Clone, Copy, PartialEq)]
enum RepeatMode {
    Wrap,
    Reflect,
    Symmetric,
}

impl RepeatMode {
    /// Returns the number of elements after which the padding of an axis of `extent` elements repeats, or changes direction if it is
    /// mirrored.
    fn period_length(self, extent: usize) -> usize {
        if self == RepeatMode::Reflect { (extent - 1).max(1) } else { extent }
    }

    /// Returns views of `part` that together are the elements `from..to` of the padded axis, each view with the position of its first
    /// element. Position 0 is the first element of `part`.
    fn slice_repeated_axis(self, part: &NdArray, axis: usize, from: isize, to: isize) -> Result<Vec<(NdArray, isize)>> {
        let extent = part.shape()[axis];
        let length = self.period_length(extent) as isize;
        let mut pieces = Vec::new();
        let mut at = from;
        while at < to {
            let block = at.div_euclid(length);
            let (first, count) = (at.rem_euclid(length), ((block + 1) * length).min(to) - at);
            let piece = if self == RepeatMode::Wrap || block % 2 == 0 {
                slice_axis(part, axis, first, first + count, 1)?
            } else {
                // In a mirrored copy of the axis, offset `i` holds element `extent - 1 - i`. The elements from offset `first` on are
                // therefore a reversed slice that ends at `last`.
                let last = extent as isize - first;
                flip(&slice_axis(part, axis, last - count, last, 1)?, axis)?
            };
            pieces.push((piece, at));
            at += count;
        }
        Ok(pieces)
    }
}

/// Pads each axis by one gather. This is faster than copies of slices if the padding is many times as long as the axis.
fn pad_by_gather(array: &NdArray, widths: &[(usize, usize)], repeat: RepeatMode) -> Result<NdArray> {
    let mut padded = array.clone();
    for (axis, &(before, after)) in widths.iter().enumerate().filter(|(_, width)| **width != (0, 0)) {
        let extent = padded.shape()[axis];
        let length = repeat.period_length(extent);
        let place = subtract(index_range(array.device(), before + extent + after)?, before)?;
        let inside = remainder(&place, length)?;
        let indices = if repeat == RepeatMode::Wrap {
            inside
        } else {
            let is_backwards = remainder(floor_divide(&place, length)?, 2)?;
            where_(less(&is_backwards, 1)?, &inside, subtract(extent - 1, &inside)?)?
        };
        padded = padded.take(&indices, axis as isize)?;
    }
    Ok(padded)
}

/// A statistic along an axis.
#[derive(Clone, Copy, PartialEq)]
enum Statistic {
    Maximum,
    Mean,
    Median,
    Minimum,
}

/// The source of the elements that [`pad`] adds, with options for each axis.
enum PaddingSource {
    Edge,
    Ramp(Pairs<Scalar>),
    Statistic(Statistic, Option<Pairs<usize>>),
    Repeat(RepeatMode),
    Odd { repeats_edge: bool },
}

impl PaddingSource {
    fn from_pad_mode(mode: PadMode, ndim: usize) -> Result<PaddingSource> {
        let statistic = |statistic, lengths: Option<Pairs<usize>>| {
            lengths.map(|lengths| pair_per_axis(&lengths, ndim)).transpose().map(|lengths| PaddingSource::Statistic(statistic, lengths))
        };
        Ok(match mode {
            PadMode::Constant(_) | PadMode::Empty | PadMode::Edge => PaddingSource::Edge,
            PadMode::LinearRamp(ends) => PaddingSource::Ramp(pair_per_axis(&ends, ndim)?),
            PadMode::Maximum(lengths) => statistic(Statistic::Maximum, lengths)?,
            PadMode::Mean(lengths) => statistic(Statistic::Mean, lengths)?,
            PadMode::Median(lengths) => statistic(Statistic::Median, lengths)?,
            PadMode::Minimum(lengths) => statistic(Statistic::Minimum, lengths)?,
            PadMode::Reflect { odd: false } => PaddingSource::Repeat(RepeatMode::Reflect),
            PadMode::Symmetric { odd: false } => PaddingSource::Repeat(RepeatMode::Symmetric),
            PadMode::Reflect { odd: true } => PaddingSource::Odd { repeats_edge: false },
            PadMode::Symmetric { odd: true } => PaddingSource::Odd { repeats_edge: true },
            PadMode::Wrap => PaddingSource::Repeat(RepeatMode::Wrap),
        })
    }

    fn as_repeat_mode(&self) -> Option<RepeatMode> {
        if let PaddingSource::Repeat(repeat) = self { Some(*repeat) } else { None }
    }

    /// Returns the elements added before and after `part` along `axis`, each with its position in the padded axis.
    fn padding_parts(&self, part: &NdArray, axis: usize, (before, after): (usize, usize)) -> Result<Vec<(NdArray, usize)>> {
        let extent = part.shape()[axis];
        let behind = before + extent;
        let stretched = |slice: &NdArray, length: usize| {
            let mut shape = slice.shape().to_vec();
            shape[axis] = length;
            broadcast_to(slice, shape)
        };
        let first = || slice_axis(part, axis, 0, 1, 1);
        let last = || slice_axis(part, axis, -1, None, 1);
        match self {
            PaddingSource::Repeat(RepeatMode::Wrap) => {}
            PaddingSource::Repeat(_) | PaddingSource::Odd { .. } if extent > 1 => {}
            PaddingSource::Edge | PaddingSource::Repeat(_) | PaddingSource::Odd { .. } => {
                return Ok(vec![(stretched(&first()?, before)?, 0), (stretched(&last()?, after)?, behind)]);
            }
            _ => {}
        }
        match self {
            PaddingSource::Edge => Ok(Vec::new()),
            PaddingSource::Repeat(repeat) => {
                let mut pieces = repeat.slice_repeated_axis(part, axis, -(before as isize), 0)?;
                pieces.extend(repeat.slice_repeated_axis(part, axis, extent as isize, (extent + after) as isize)?);
                Ok(pieces.into_iter().map(|(piece, at)| (piece, (at + before as isize) as usize)).collect())
            }
            PaddingSource::Ramp(ends) => {
                let ramp = |edge: &NdArray, end: Scalar, length: usize| {
                    let end = operand_to_array(PAD_FUNCTION_NAME, part.device(), &end.into())?;
                    let values = linspace_of_arrays(&end, &edge.squeeze(axis)?, length, false)?;
                    let values = if part.dtype().is_int() { values.floor()? } else { values };
                    moveaxis(&values.astype(part.dtype())?, [0], [axis as isize])
                };
                let after_ramp = flip(&ramp(&last()?, ends[axis].1, after)?, axis)?;
                Ok(vec![(ramp(&first()?, ends[axis].0, before)?, 0), (after_ramp, behind)])
            }
            PaddingSource::Statistic(statistic, lengths) => {
                let (first, last) = lengths.as_ref().map_or((extent, extent), |l| (l[axis].0.min(extent), l[axis].1.min(extent)));
                if (first == 0 || last == 0) && matches!(statistic, Statistic::Maximum | Statistic::Minimum) {
                    return Err(Error::value(PAD_FUNCTION_NAME, "stat_length of 0 yields no value for padding"));
                }
                let at_start = statistic.of(&slice_axis(part, axis, 0, first as isize, 1)?, axis)?;
                let at_end = match (first, last) {
                    (f, l) if f == extent && l == extent => at_start.clone(),
                    _ => statistic.of(&slice_axis(part, axis, (extent - last) as isize, None, 1)?, axis)?,
                };
                Ok(vec![(stretched(&at_start, before)?, 0), (stretched(&at_end, after)?, behind)])
            }
            PaddingSource::Odd { repeats_edge } => odd_extension(part, axis, (before, after), *repeats_edge),
        }
    }
}

impl Statistic {
    /// Returns the statistic along `axis` in the array's dtype, with the axis kept as extent 1. Means and medians of integers are rounded.
    fn of(self, a: &NdArray, axis: usize) -> Result<NdArray> {
        let over = over_axis(axis as isize).keepdims();
        let value = match self {
            Statistic::Maximum => return a.max(over),
            Statistic::Minimum => return a.min(over),
            Statistic::Mean => a.mean(over)?,
            Statistic::Median => median(a, over)?,
        };
        if a.dtype().is_int() { value.rint()?.astype(a.dtype()) } else { value.astype(a.dtype()) }
    }
}

/// Returns the pieces of an odd extension of an axis, each with its position in the padded axis. As in NumPy, an extension longer than the
/// axis takes several reflections, each of the axis extended so far. `repeats_edge` states that the edge element is mirrored too.
fn odd_extension(part: &NdArray, axis: usize, (before, after): (usize, usize), repeats_edge: bool) -> Result<Vec<(NdArray, usize)>> {
    let extent = part.shape()[axis];
    let offset = usize::from(repeats_edge);
    let (mut left, mut right) = (before, after);
    let mut whole = part.clone();
    let mut added = Vec::new();
    while left > 0 || right > 0 {
        let length = whole.shape()[axis];
        let longest = if repeats_edge { length / extent * extent } else { (length - 1) / (extent - 1) * (extent - 1) };
        let mirrored = |edge: isize, from: usize, count: usize| {
            let edge = slice_axis(&whole, axis, edge, edge + 1, 1)?;
            let chunk = flip(&slice_axis(&whole, axis, from as isize, (from + count) as isize, 1)?, axis)?;
            subtract(multiply(&edge, 2)?, &chunk)?.astype(part.dtype())
        };
        let mut joined = Vec::new();
        if left > 0 {
            let count = longest.min(left);
            let chunk = mirrored(0, 1 - offset, count)?;
            left -= count;
            added.push((chunk.clone(), left));
            joined.push(chunk);
        }
        joined.push(whole.clone());
        if right > 0 {
            let count = longest.min(right);
            let chunk = mirrored(length as isize - 1, length - 1 + offset - count, count)?;
            added.push((chunk.clone(), before + extent + after - right));
            joined.push(chunk);
            right -= count;
        }
        if left > 0 || right > 0 {
            whole = concat(&joined, axis as isize)?;
        }
    }
    Ok(added)
}
