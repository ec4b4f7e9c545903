//! Reductions and sorts of the segments `offsets[i]..offsets[i + 1]` of a 1-D array. The reductions are defined in `reduce.rs`.

use crate::array::NdArray;
use crate::call;
use crate::call::{OutputSpec, Work};
use crate::device::{Device, with_device};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::compose;
use crate::op::{Family, Op};
use crate::ops::creation::arange_as;
use crate::ops::elementwise::{add, subtract, where_};
use crate::ops::manipulation::concat;
use crate::ops::reduce::{SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM, definition};
use crate::ops::search::Side;
use crate::ops::select::flatnonzero;
use crate::s;
use cuprum_macros::numpy;

super::ops! { Sort after sort:
    SEGMENT_SORT "segment_sort" 2, else |inputs, _| compose(inputs, |inputs| sort_by_composition(super::SEGMENT_SORT, inputs));
    SEGMENT_ARGSORT "segment_argsort" 2, else |inputs, _| compose(inputs, |inputs| sort_by_composition(super::SEGMENT_ARGSORT, inputs));
}

/// Length above which kernels may be unable to sort a segment.
const LONG_SEGMENT: usize = 4096;
/// Maximum number of long segments that are sorted one by one. More take longer than a sort of the whole array by segment.
const MAX_SEPARATE_SORTS: usize = 32;

/// Returns the sum of each segment `offsets[i]..offsets[i + 1]` of a 1-D array (`jax.ops.segment_sum`).
///
/// `offsets` are non-decreasing integers from 0 to the length of `a`. The result has `offsets.size() - 1` elements in the dtype of
/// [`NdArray::sum`]. An empty segment gives 0, unlike in `numpy.add.reduceat`.
///
/// A deferred `a` is computed in the same pass. On a GPU that includes `take`, so a CSR matrix-vector product
/// `segment_sum(&(&data * &x.take(&columns, 0)?), &offsets)` stores no products.
///
/// # Errors
/// Arrays that are not 1-D, no offsets, offsets that are not integers or out of bounds, or arrays on different devices. On a GPU, the
/// next call that waits for the device reports offsets out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, segment_max, segment_sum};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (NdArray::from_slice(&[3.0, 1.0, 2.0, 9.0, 7.0])?, NdArray::from_slice(&[0, 3, 3, 5])?);
/// assert_eq!(segment_sum(&a, &offsets)?.to_vec::<f64>()?, [6.0, 0.0, 16.0]);
/// assert_eq!(segment_max(&a, &offsets)?.to_vec::<f64>()?, [3.0, f64::NEG_INFINITY, 9.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_sum(a, offsets)")]
pub fn segment_sum(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduce_segments(SEGMENT_SUM, a.dtype().sum_dtype(), a, offsets)
}

/// Returns the product of each segment of a 1-D array; 1 for an empty segment. See [`segment_sum`].
///
/// The dtypes are those of [`NdArray::prod`].
///
/// # Errors
/// The errors of [`segment_sum`].
#[numpy("segment_prod(a, offsets)")]
pub fn segment_prod(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduce_segments(SEGMENT_PROD, a.dtype().sum_dtype(), a, offsets)
}

/// Returns the smallest element of each segment of a 1-D array (`jax.ops.segment_min`). See [`segment_sum`].
///
/// NaN and complex numbers compare as in [`NdArray::min`]. An empty segment gives the dtype's maximum: infinity, the largest
/// integer, or true.
///
/// # Errors
/// The errors of [`segment_sum`].
#[numpy("segment_min(a, offsets)")]
pub fn segment_min(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduce_segments(SEGMENT_MIN, a.dtype(), a, offsets)
}

/// Returns the largest element of each segment of a 1-D array (`jax.ops.segment_max`). See [`segment_sum`].
///
/// NaN and complex numbers compare as in [`NdArray::max`]. An empty segment gives the dtype's minimum: minus infinity, the smallest
/// integer, or false.
///
/// # Errors
/// The errors of [`segment_sum`].
#[numpy("segment_max(a, offsets)")]
pub fn segment_max(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduce_segments(SEGMENT_MAX, a.dtype(), a, offsets)
}

/// Dispatches the reduction of each segment. Elements and results have `dtype`.
fn reduce_segments(op: Op, dtype: DType, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let device = check_operands(op, a, offsets)?;
    if offsets.size() == 1 {
        // Without segments no kernel runs, so the only offset is checked here.
        let offset = offsets.astype(DType::I64)?.item()?.as_int();
        if offset.and_then(|offset| usize::try_from(offset).ok()).is_none_or(|offset| offset > a.size()) {
            return Err(Error::Index { op: op.name(), index: offset.unwrap_or(0) as i64, axis: 0, size: a.size() });
        }
    }
    let output = OutputSpec::contiguous(dtype, &[offsets.size() - 1])?;
    let (program, mut inputs) = super::flat_prologue(Family::Reduce, &a.astype(dtype)?, dtype)?;
    inputs.push(offsets.astype(DType::I64)?.contiguous()?.stored()?);
    let reduction = definition(op)?;
    let work = Work::Segments(call::Segments { program: &program, reduction, acc: reduction.accumulator.of(dtype) });
    super::run_one(op, device, &inputs, output, work)
}

/// Checks the shapes, dtypes and devices of an array and its offsets, and returns the device.
fn check_operands(op: Op, a: &NdArray, offsets: &NdArray) -> Result<Device> {
    let name = op.name();
    if a.ndim() != 1 || offsets.ndim() != 1 || offsets.size() == 0 {
        return Err(Error::shape(name, "takes a 1-D array and 1-D offsets, at least one", &[a.shape(), offsets.shape()]));
    }
    if !matches!(offsets.dtype().kind(), Kind::Signed | Kind::Unsigned) {
        return Err(Error::dtype(name, "offsets must be integers", &[offsets.dtype()]));
    }
    super::one_device(op, a, offsets)
}

/// Returns a 1-D array sorted within each segment `offsets[i]..offsets[i + 1]`, in the order of [`NdArray::sort`].
///
/// `offsets` are non-decreasing integers from 0 to the length of `a`. The call waits for the device to read them.
///
/// # Errors
/// Arrays that are not 1-D, other offsets, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, segment_argsort, segment_sort};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (NdArray::from_slice(&[3, 1, 2, 9, 7])?, NdArray::from_slice(&[0, 3, 3, 5])?);
/// assert_eq!(segment_sort(&a, &offsets)?.to_vec::<i32>()?, [1, 2, 3, 7, 9]);
/// assert_eq!(segment_argsort(&a, &offsets)?.to_vec::<i64>()?, [1, 2, 0, 4, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_sort(a, offsets)")]
pub fn segment_sort(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    sort_segments(SEGMENT_SORT, a, offsets)
}

/// Returns the int64 indices into `a` of the elements of [`segment_sort`]. Equal elements keep their order.
///
/// # Errors
/// The errors of [`segment_sort`].
#[numpy("segment_argsort(a, offsets)")]
pub fn segment_argsort(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    sort_segments(SEGMENT_ARGSORT, a, offsets)
}

/// Computes `segment_sort` or `segment_argsort`, according to `op`.
fn sort_segments(op: Op, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let Offsets { all, shortest, longest } = read_offsets(op, a, offsets)?;
    if shortest < longest || longest == 0 {
        return dispatch_sort(op, longest, a, &all);
    }
    // Segments of equal length are the rows of a matrix, so that one sort of rows sorts them.
    let rows = a.reshape([(a.size() / longest) as isize, longest as isize])?;
    if op == SEGMENT_SORT {
        return rows.sort(-1)?.ravel();
    }
    let begins = all.index(s![..-1])?.reshape([-1, 1])?;
    add(rows.argsort(-1)?, begins)?.ravel()
}

/// Dispatches the sort of segments of at most `longest` elements. The offsets are checked.
fn dispatch_sort(op: Op, longest: usize, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let indices = op == SEGMENT_ARGSORT;
    let output = OutputSpec::contiguous(if indices { DType::I64 } else { a.dtype() }, a.shape())?;
    let inputs = [a.contiguous()?.stored()?, offsets.contiguous()?.stored()?];
    super::run_one(op, a.device(), &inputs, output, Work::SegmentSort(call::SegmentSort { indices, longest }))
}

/// The composite of a segment sort, for devices without a kernel.
///
/// A few long segments are sorted one by one, and the segments between them together. Otherwise all elements are sorted by value, then
/// by segment.
fn sort_by_composition(op: Op, inputs: &[NdArray]) -> Result<NdArray> {
    let [a, offsets] = inputs else { return Err(Error::value(op.name(), "takes an array and offsets")) };
    let lengths = subtract(offsets.index(s![1..])?, offsets.index(s![..-1])?)?;
    let long = flatnonzero(&lengths.greater(LONG_SEGMENT as i64)?)?;
    if (1..=MAX_SEPARATE_SORTS).contains(&long.size()) {
        let of_others = lengths.less_equal(LONG_SEGMENT as i64)?.multiply(&lengths)?.max(())?.item()?.as_int();
        return sort_long_separately(op, a, offsets, &long.to_vec::<i64>()?, of_others.map_or(LONG_SEGMENT, |n| n as usize));
    }
    let by_value = a.argsort(-1)?;
    let numbers = with_device(a.device(), || arange_as(0, a.size() as i64, 1, DType::I64))?;
    // An element's segment is the number of segments that end at or before it. int32 halves the passes of a radix sort.
    let segments = offsets.index(s![1..])?.searchsorted(&numbers, Side::Right)?;
    let segments = if i32::try_from(offsets.size()).is_ok() { segments.astype(DType::I32)? } else { segments };
    let order = by_value.take(&segments.take(&by_value, 0)?.argsort(-1)?, 0)?;
    if op == SEGMENT_ARGSORT { Ok(order) } else { a.take(&order, 0) }
}

/// Sorts the segments `long` separately. The other segments have at most `longest` elements.
fn sort_long_separately(op: Op, a: &NdArray, offsets: &NdArray, long: &[i64], longest: usize) -> Result<NdArray> {
    let numbers: Vec<i64> = long.iter().flat_map(|&segment| [segment, segment + 1]).collect();
    let numbers = with_device(a.device(), || NdArray::from_slice(&numbers))?;
    let ends = offsets.take(&numbers, 0)?.to_vec::<i64>()?;
    let of_long = long.iter().zip(ends.as_chunks().0).map(|(&segment, &[from, to])| (segment as isize, from as isize, to as isize));
    let end = a.size() as isize;
    let mut pieces = Vec::with_capacity(2 * long.len() + 1);
    let (mut segment, mut begin) = (0, 0);
    for (next, from, to) in of_long.chain([(offsets.size() as isize - 1, end, end)]) {
        if begin < from {
            let of_piece = subtract(offsets.index(s![segment..next + 1])?, begin as i64)?;
            let piece = dispatch_sort(op, longest, &a.index(s![begin..from])?, &of_piece)?;
            pieces.push(offset_indices(op, piece, begin)?);
        }
        if from < to {
            let piece = a.index(s![from..to])?;
            let piece = if op == SEGMENT_ARGSORT { piece.argsort(-1)? } else { piece.sort(-1)? };
            pieces.push(offset_indices(op, piece, from)?);
        }
        (segment, begin) = (next + 1, to);
    }
    concat(&pieces, 0)
}

/// Adds `begin` to the sorted indices `piece` if `op` is an argsort, so that they refer to the whole array. Returns values unchanged.
fn offset_indices(op: Op, piece: NdArray, begin: isize) -> Result<NdArray> {
    if op == SEGMENT_ARGSORT && begin > 0 { add(piece, begin as i64) } else { Ok(piece) }
}

/// Checked int64 offsets, and the lengths of the shortest and the longest segment.
struct Offsets {
    all: NdArray,
    shortest: usize,
    longest: usize,
}

/// Reads the offsets, which waits for the device, and checks that they divide the whole array into segments.
fn read_offsets(op: Op, a: &NdArray, offsets: &NdArray) -> Result<Offsets> {
    let name = op.name();
    check_operands(op, a, offsets)?;
    let all = offsets.astype(DType::I64)?.eval()?.clone();
    let mut queries = vec![all.index(s![..1])?, all.index(s![-1..])?];
    if all.size() > 1 {
        // The difference of two offsets out of bounds may wrap, so they are compared first.
        let (begins, ends) = (all.index(s![..-1])?, all.index(s![1..])?);
        let lengths = where_(ends.less(&begins)?, -1, subtract(&ends, &begins)?)?.eval()?.clone();
        queries.extend([lengths.min(())?.reshape([1])?, lengths.max(())?.reshape([1])?]);
    }
    let answers = concat(&queries, 0)?.to_vec::<i64>()?;
    let (first, last) = (answers.first().copied().unwrap_or(0), answers.get(1).copied().unwrap_or(0));
    if first != 0 || usize::try_from(last) != Ok(a.size()) {
        return Err(Error::value(name, format!("offsets must start at 0 and end at {}, not at {first} and {last}", a.size())));
    }
    let length = |n: usize| usize::try_from(answers.get(n).copied().unwrap_or(0));
    match (length(2), length(3)) {
        (Ok(shortest), Ok(longest)) => Ok(Offsets { all, shortest, longest }),
        _ => Err(Error::value(name, "offsets must not decrease")),
    }
}
