//! Reductions and sorts of the segments `offsets[i]..offsets[i + 1]` along an axis. The reductions are defined in `reduce.rs`.
//!
//! Kernels take 1-D arrays. The segments of all rows of an n-d array are segments of the flattened array.

use crate::array::NdArray;
use crate::call;
use crate::call::{OutputSpec, Work};
use crate::device::{Device, Stream, with_device};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::run_as_composite;
use crate::function::FromArgs;
use crate::layout::{Dims, Layout, checked_size, normalize_axis};
use crate::op::{Family, Op};
use crate::ops::creation::{arange_as, full_on_device};
use crate::ops::elementwise::{add, copysign, equal, less, logical_and, multiply, subtract, where_};
use crate::ops::manipulation::{concat, stack};
use crate::ops::python_value::Args;
use crate::ops::reduce::{SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM, reduction_definition};
use crate::ops::search::Side;
use crate::ops::select::flatnonzero;
use crate::ops::views::moveaxis;
use crate::s;
use cuprum_macros::numpy;

super::ops! { Sort after sort:
    SEGMENT_SORT "segment_sort" 2, else |inputs, _| run_as_composite(inputs, |inputs| sort_segments_by_composition(super::SEGMENT_SORT, inputs));
    SEGMENT_ARGSORT "segment_argsort" 2, else |inputs, _| run_as_composite(inputs, |inputs| sort_segments_by_composition(super::SEGMENT_ARGSORT, inputs));
}

/// Maximum segment length for which `sort_segments_by_composition` calls a kernel. A GPU kernel sorts a segment in the shared memory of one
/// thread block, which limits the length.
const MAX_KERNEL_SORT_LENGTH: usize = 4096;
/// Maximum number of long segments that are sorted one by one. Sorting more of them takes longer than one sort of the whole array by
/// segment.
const MAX_SEPARATELY_SORTED_SEGMENTS: usize = 32;

/// Segments along an axis: `&offsets` for the first axis, [`Segments::along`] for another axis.
///
/// The offsets are a 1-D array of non-decreasing integers. Segment `i` is `offsets[i]..offsets[i + 1]`. Elements before the first offset
/// and from the last offset on are in no segment, and reductions ignore them. Sorts require that the offsets start at 0 and end at the
/// extent of the axis.
#[derive(Clone, Debug)]
pub struct Segments {
    offsets: NdArray,
    axis: isize,
}

impl Segments {
    /// Returns the segments that `offsets` divide `axis` into. Negative axes count from the end.
    pub fn along(offsets: &NdArray, axis: isize) -> Segments {
        Segments { offsets: offsets.clone(), axis }
    }
}

impl From<&NdArray> for Segments {
    fn from(offsets: &NdArray) -> Segments {
        Segments::along(offsets, 0)
    }
}

impl FromArgs for Segments {
    /// Reads `offsets` and `axis`.
    fn from_args(args: &Args, _name: &str) -> Result<Segments> {
        Ok(Segments { offsets: args.array("offsets")?, axis: args.int_or("axis", 0)? })
    }
}

/// Returns the sum of each segment along an axis (`jax.ops.segment_sum`, which takes the segment of each row instead of offsets).
///
/// The offsets are non-decreasing integers between 0 and the extent of the axis, by default the first. The result has
/// `offsets.size() - 1` elements along that axis and the dtype of [`NdArray::sum`].
///
/// Elements before the first offset and from the last offset on are in no segment and do not count, as in JAX for segment numbers out
/// of range. So a slice of the offsets of a CSR matrix gives the sums of some of its rows. `numpy.add.reduceat` differs: its last segment
/// reaches to the end of the axis, and an empty segment gives the element at its start, not 0.
///
/// A deferred `a` is computed in the same pass, except that an axis other than the last of an n-d array needs a copy. On a GPU, the pass
/// includes [`NdArray::take`], so a CSR matrix-vector product `segment_sum(&(&data * &x.take(&columns, 0)?), &offsets)` stores no products.
///
/// # Errors
/// A 0-d array, an axis out of bounds, offsets that are not 1-D integers, offsets out of bounds or decreasing, or arrays on different
/// devices. On a GPU, wrong offsets are an error of the next call that waits for the device.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, Segments, segment_max, segment_sum};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (NdArray::from_slice(&[3.0, 1.0, 2.0, 9.0, 7.0])?, NdArray::from_slice(&[0, 3, 3, 5])?);
/// assert_eq!(segment_sum(&a, &offsets)?.to_vec::<f64>()?, [6.0, 0.0, 16.0]);
/// assert_eq!(segment_max(&a, &offsets)?.to_vec::<f64>()?, [3.0, f64::NEG_INFINITY, 9.0]);
/// let some = NdArray::from_slice(&[1, 3])?; // one segment; elements 0, 3 and 4 do not count
/// assert_eq!(segment_sum(&a, &some)?.to_vec::<f64>()?, [3.0]);
///
/// let (rows, offsets) = (NdArray::from_vec([1, 2, 3, 4, 5, 6], [3, 2])?, NdArray::from_slice(&[0, 1, 3])?);
/// assert_eq!(segment_sum(&rows, &offsets)?.to_vec::<i64>()?, [1, 2, 8, 10]);
/// let halves = NdArray::from_slice(&[0, 1, 2])?;
/// assert_eq!(segment_sum(&rows, Segments::along(&halves, 1))?.shape(), [3, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_sum(a, offsets, axis=0)")]
pub fn segment_sum(a: &NdArray, #[name("offsets")] segments: impl Into<Segments>) -> Result<NdArray> {
    reduce_segments(SEGMENT_SUM, a.dtype().sum_dtype(), a, segments.into())
}

/// Returns the product of each segment along an axis; 1 for an empty segment. See [`segment_sum`].
///
/// The dtypes are those of [`NdArray::prod`].
///
/// # Errors
/// The errors of [`segment_sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, segment_prod};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (NdArray::from_slice(&[3.0, 2.0, 5.0])?, NdArray::from_slice(&[0, 2, 2, 3])?);
/// assert_eq!(segment_prod(&a, &offsets)?.to_vec::<f64>()?, [6.0, 1.0, 5.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_prod(a, offsets, axis=0)")]
pub fn segment_prod(a: &NdArray, #[name("offsets")] segments: impl Into<Segments>) -> Result<NdArray> {
    reduce_segments(SEGMENT_PROD, a.dtype().sum_dtype(), a, segments.into())
}

/// Returns the smallest element of each segment along an axis (`jax.ops.segment_min`). See [`segment_sum`].
///
/// NaN and complex numbers compare as in [`NdArray::min`]. An empty segment gives the dtype's maximum: infinity, the largest
/// integer, or true.
///
/// # Errors
/// The errors of [`segment_sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, segment_min};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (NdArray::from_slice(&[3.0, 2.0, 5.0])?, NdArray::from_slice(&[0, 2, 2, 3])?);
/// assert_eq!(segment_min(&a, &offsets)?.to_vec::<f64>()?, [2.0, f64::INFINITY, 5.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_min(a, offsets, axis=0)")]
pub fn segment_min(a: &NdArray, #[name("offsets")] segments: impl Into<Segments>) -> Result<NdArray> {
    reduce_segments(SEGMENT_MIN, a.dtype(), a, segments.into())
}

/// Returns the largest element of each segment along an axis (`jax.ops.segment_max`). See [`segment_sum`], which has an example.
///
/// NaN and complex numbers compare as in [`NdArray::max`]. An empty segment gives the dtype's minimum: minus infinity, the smallest
/// integer, or false.
///
/// # Errors
/// The errors of [`segment_sum`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, segment_max};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (array![1, 5, 2, 7], array![0i64, 2, 4]);
/// assert_eq!(segment_max(&a, &offsets)?, array![5, 7]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_max(a, offsets, axis=0)")]
pub fn segment_max(a: &NdArray, #[name("offsets")] segments: impl Into<Segments>) -> Result<NdArray> {
    reduce_segments(SEGMENT_MAX, a.dtype(), a, segments.into())
}

/// Returns the sum of each segment as [`segment_sum`] does, without the initial value 0: the sum of elements that are all -0.0 is -0.0, as
/// in `numpy.add.reduceat`. No segment may be empty.
///
/// For floats, the call waits for the device to find sums that are 0. If there are any, it takes a second pass over the elements. A capture
/// cannot wait, so it always takes the second pass.
///
/// # Errors
/// The errors of [`segment_sum`].
pub fn segment_sum_keeping_negative_zero(a: &NdArray, segments: impl Into<Segments>) -> Result<NdArray> {
    let segments = segments.into();
    let sum = segment_sum(a, segments.clone())?;
    let keep_sign = |sum: NdArray, values: NdArray| {
        let is_capturing = Stream::current(a.device()).is_capturing();
        if !is_capturing && !equal(&sum, 0)?.any(())?.item()?.as_bool() {
            return Ok(sum);
        }
        let is_negative_zero = logical_and(equal(&values, 0)?, less(copysign(1, &values)?, 0)?)?;
        where_(segment_min(&is_negative_zero, segments.clone())?, -0.0, sum)
    };
    if a.dtype().is_complex() {
        let parts = [keep_sign(sum.real()?, a.real()?)?, keep_sign(sum.imag()?, a.imag()?)?];
        return stack(&parts, -1)?.view_as(a.dtype())?.squeeze(-1);
    }
    if a.dtype().is_float() { keep_sign(sum, a.clone()) } else { Ok(sum) }
}

/// Reduces each segment by `op`. Elements are converted to `dtype`, and the results have this dtype, too.
fn reduce_segments(op: Op, dtype: DType, a: &NdArray, segments: Segments) -> Result<NdArray> {
    let Segments { offsets, axis } = segments;
    let axis = check_segment_operands(op, a, &offsets, axis)?;
    let offsets = offsets.astype(DType::I64)?;
    let (extent, count) = (a.shape()[axis], offsets.size() - 1);
    let mut shape: Dims = a.shape().into();
    shape[axis] = count;
    if checked_size(op.name(), &shape)? == 0 {
        check_segment_offsets(op, &offsets, axis, extent)?; // no kernel runs that would check them
        return full_on_device(a.device(), &shape, 0.into(), dtype);
    }
    if a.ndim() == 1 {
        return reduce_flat_segments(op, dtype, a, &offsets);
    }
    let rows = if axis + 1 == a.ndim() { a.clone() } else { moveaxis(a, [axis as isize], [-1])? };
    let row_count = shape.iter().product::<usize>() / count;
    // In the joined offsets of all rows, the last offset of a row and the first of the next row enclose an extra segment. The strides of
    // `layout` below skip the result of that segment.
    let joined = add(row_start_positions(a.device(), row_count, extent)?, &offsets)?.ravel()?;
    let result = reduce_flat_segments(op, dtype, &rows, &joined).or_else(|error| {
        check_segment_offsets(op, &offsets, axis, extent)?; // the kernel's error contains an offset into the flattened array
        Err(error)
    })?;
    let layout = Layout::strided(&[row_count, count], &[count as isize + 1, 1], 0)?;
    let result = NdArray::from(result.stored()?.with_layout(layout)?);
    let mut moved = shape.clone();
    moved.remove(axis);
    moved.push(count);
    moveaxis(&result.reshape(moved)?, [-1], [axis as isize])
}

/// Returns a column with the position of each row's first element in the flattened array.
fn row_start_positions(device: Device, rows: usize, extent: usize) -> Result<NdArray> {
    let numbers = with_device(device, || arange_as(0, rows as i64, 1, DType::I64))?;
    multiply(numbers, extent as i64)?.reshape([rows, 1])
}

/// Dispatches a reduction of segments of the flattened array `a`. The int64 `offsets` divide the flattened elements into segments.
fn reduce_flat_segments(op: Op, dtype: DType, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let output = OutputSpec::contiguous(dtype, &[offsets.size() - 1])?;
    let (program, mut inputs) = super::fuse_flattened_input(Family::Reduce, &a.astype(dtype)?, dtype)?;
    inputs.push(offsets.contiguous()?.stored()?);
    let reduction = reduction_definition(op)?;
    let work = Work::Segments(call::SegmentReduction { program: &program, reduction, acc: reduction.accumulator.of(dtype) });
    super::dispatch_single_output(op, a.device(), &inputs, output, work)
}

/// Checks the shapes, dtypes and devices of an array and its offsets, and returns the axis, counted from the front.
fn check_segment_operands(op: Op, a: &NdArray, offsets: &NdArray, axis: isize) -> Result<usize> {
    let name = op.name();
    if offsets.ndim() != 1 || offsets.size() == 0 {
        return Err(Error::shape(name, "takes 1-D offsets, at least one", &[a.shape(), offsets.shape()]));
    }
    if !matches!(offsets.dtype().kind(), Kind::Signed | Kind::Unsigned) {
        return Err(Error::dtype(name, "offsets must be integers", &[offsets.dtype()]));
    }
    super::common_device(op, a, offsets)?;
    normalize_axis(name, axis, a.ndim())
}

/// Checks int64 offsets into an axis of `extent` elements. Waits for the device.
fn check_segment_offsets(op: Op, offsets: &NdArray, axis: usize, extent: usize) -> Result<()> {
    let values = offsets.to_vec::<i64>()?;
    let is_outside = |offset: &&i64| usize::try_from(**offset).map_or(true, |offset| offset > extent);
    if let Some(&index) = values.iter().find(is_outside) {
        return Err(Error::Index { op: op.name(), index, axis, size: extent });
    }
    match values.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(i) => Err(Error::value(op.name(), format!("offsets must not decrease: {} at {i}, then {}", values[i], values[i + 1]))),
        None => Ok(()),
    }
}

/// Returns an array sorted within each segment along an axis, in the order of [`NdArray::sort`]. See [`segment_sum`].
///
/// The offsets start at 0 and end at the extent of the axis, by default the first. The call waits for the device to read them.
///
/// # Errors
/// A 0-d array, an axis out of bounds, offsets that decrease or do not start and end as required, or arrays on different devices.
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
#[numpy("segment_sort(a, offsets, axis=0)")]
pub fn segment_sort(a: &NdArray, #[name("offsets")] segments: impl Into<Segments>) -> Result<NdArray> {
    sort_segments(SEGMENT_SORT, a, segments.into())
}

/// Returns the int64 indices along the axis that sort each segment as [`segment_sort`] does. Equal elements keep their order.
///
/// # Errors
/// The errors of [`segment_sort`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, segment_argsort};
/// # fn main() -> cuprum::Result<()> {
/// let (a, offsets) = (array![5, 1, 9, 7], array![0i64, 2, 4]);
/// let order = segment_argsort(&a, &offsets)?;
/// assert_eq!(a.take(&order, 0)?, array![1, 5, 7, 9]);
/// # Ok(())
/// # }
/// ```
#[numpy("segment_argsort(a, offsets, axis=0)")]
pub fn segment_argsort(a: &NdArray, #[name("offsets")] segments: impl Into<Segments>) -> Result<NdArray> {
    sort_segments(SEGMENT_ARGSORT, a, segments.into())
}

/// Computes `segment_sort` or `segment_argsort`, according to `op`.
fn sort_segments(op: Op, a: &NdArray, segments: Segments) -> Result<NdArray> {
    let Segments { offsets, axis } = segments;
    let axis = check_segment_operands(op, a, &offsets, axis)?;
    let extent = a.shape()[axis];
    let offsets = read_and_check_offsets(op, &offsets, extent)?;
    if a.ndim() == 1 {
        return sort_flat_segments(op, a, &offsets);
    }
    if a.size() == 0 {
        let dtype = if op == SEGMENT_ARGSORT { DType::I64 } else { a.dtype() };
        return full_on_device(a.device(), a.shape(), 0.into(), dtype);
    }
    let rows = moveaxis(a, [axis as isize], [-1])?;
    let starts = row_start_positions(a.device(), a.size() / extent, extent)?;
    let end = with_device(a.device(), || NdArray::from_slice(&[a.size() as i64]))?;
    let joined = concat(&[add(&starts, offsets.array.index(s![..-1])?)?.ravel()?, end], 0)?;
    let mut sorted = sort_flat_segments(op, &rows.ravel()?, &CheckedSegmentOffsets { array: joined, ..offsets })?
        .reshape([a.size() / extent, extent])?;
    if op == SEGMENT_ARGSORT {
        sorted = subtract(sorted, starts)?;
    }
    moveaxis(&sorted.reshape(rows.shape())?, [-1], [axis as isize])
}

/// Sorts the segments of a 1-D array.
fn sort_flat_segments(op: Op, a: &NdArray, offsets: &CheckedSegmentOffsets) -> Result<NdArray> {
    let &CheckedSegmentOffsets { ref array, shortest, longest } = offsets;
    if shortest < longest || longest == 0 {
        return dispatch_segment_sort(op, longest, a, array);
    }
    // Segments of equal length are the rows of a matrix, so one sort along the last axis sorts all of them.
    let rows = a.reshape([(a.size() / longest) as isize, longest as isize])?;
    if op == SEGMENT_SORT {
        return rows.sort(-1)?.ravel();
    }
    let begins = array.index(s![..-1])?.reshape([-1, 1])?;
    add(rows.argsort(-1)?, begins)?.ravel()
}

/// Dispatches the sort of segments of at most `longest` elements. The offsets must have been checked.
fn dispatch_segment_sort(op: Op, longest: usize, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let indices = op == SEGMENT_ARGSORT;
    let output = OutputSpec::contiguous(if indices { DType::I64 } else { a.dtype() }, a.shape())?;
    let inputs = [a.contiguous()?.stored()?, offsets.contiguous()?.stored()?];
    super::dispatch_single_output(op, a.device(), &inputs, output, Work::SegmentSort(call::SegmentSort { indices, longest }))
}

/// Sorts segments with other operations, for calls that no segment sort kernel accepts.
///
/// If there are few segments longer than [`MAX_KERNEL_SORT_LENGTH`], these are sorted one by one, and the segments between them together.
/// In all other cases, all elements are sorted by value, then by segment.
fn sort_segments_by_composition(op: Op, inputs: &[NdArray]) -> Result<NdArray> {
    let [a, offsets] = inputs else { return Err(Error::value(op.name(), "takes an array and offsets")) };
    let lengths = subtract(offsets.index(s![1..])?, offsets.index(s![..-1])?)?;
    let long = flatnonzero(&lengths.greater(MAX_KERNEL_SORT_LENGTH as i64)?)?;
    if (1..=MAX_SEPARATELY_SORTED_SEGMENTS).contains(&long.size()) {
        let of_others = lengths.less_equal(MAX_KERNEL_SORT_LENGTH as i64)?.multiply(&lengths)?.max(())?.item()?.as_int();
        return sort_long_segments_separately(
            op,
            a,
            offsets,
            &long.to_vec::<i64>()?,
            of_others.map_or(MAX_KERNEL_SORT_LENGTH, |n| n as usize),
        );
    }
    let by_value = a.argsort(-1)?;
    let numbers = with_device(a.device(), || arange_as(0, a.size() as i64, 1, DType::I64))?;
    // An element's segment is the number of segments that end at or before it. A radix sort of int32 takes half as many passes as one of
    // int64.
    let segments = offsets.index(s![1..])?.searchsorted(&numbers, Side::Right)?;
    let segments = if i32::try_from(offsets.size()).is_ok() { segments.astype(DType::I32)? } else { segments };
    let order = by_value.take(&segments.take(&by_value, 0)?.argsort(-1)?, 0)?;
    if op == SEGMENT_ARGSORT { Ok(order) } else { a.take(&order, 0) }
}

/// Sorts each segment whose index is in `long` separately, and the segments between them together. The latter have at most `longest`
/// elements each.
fn sort_long_segments_separately(op: Op, a: &NdArray, offsets: &NdArray, long: &[i64], longest: usize) -> Result<NdArray> {
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
            let piece = dispatch_segment_sort(op, longest, &a.index(s![begin..from])?, &of_piece)?;
            pieces.push(add_start_if_argsort(op, piece, begin)?);
        }
        if from < to {
            let piece = a.index(s![from..to])?;
            let piece = if op == SEGMENT_ARGSORT { piece.argsort(-1)? } else { piece.sort(-1)? };
            pieces.push(add_start_if_argsort(op, piece, from)?);
        }
        (segment, begin) = (next + 1, to);
    }
    concat(&pieces, 0)
}

/// Returns `piece`, the result of sorting a part of an array. If `op` is an argsort, adds `begin` to the indices, so that they refer to the
/// whole array.
fn add_start_if_argsort(op: Op, piece: NdArray, begin: isize) -> Result<NdArray> {
    if op == SEGMENT_ARGSORT && begin > 0 { add(piece, begin as i64) } else { Ok(piece) }
}

/// Checked int64 offsets, and the lengths of the shortest and the longest segment.
struct CheckedSegmentOffsets {
    array: NdArray,
    shortest: usize,
    longest: usize,
}

/// Reads the offsets, which waits for the device, and checks that they divide an axis of `extent` elements into segments.
fn read_and_check_offsets(op: Op, offsets: &NdArray, extent: usize) -> Result<CheckedSegmentOffsets> {
    let name = op.name();
    let array = offsets.astype(DType::I64)?.eval()?.clone();
    let mut queries = vec![array.index(s![..1])?, array.index(s![-1..])?];
    if array.size() > 1 {
        // The difference of two offsets out of bounds may wrap, so they are compared first.
        let (begins, ends) = (array.index(s![..-1])?, array.index(s![1..])?);
        let lengths = where_(ends.less(&begins)?, -1, subtract(&ends, &begins)?)?.eval()?.clone();
        queries.extend([lengths.min(())?.reshape([1])?, lengths.max(())?.reshape([1])?]);
    }
    let answers = concat(&queries, 0)?.to_vec::<i64>()?;
    let (first, last) = (answers.first().copied().unwrap_or(0), answers.get(1).copied().unwrap_or(0));
    if first != 0 || usize::try_from(last) != Ok(extent) {
        return Err(Error::value(name, format!("offsets must start at 0 and end at {extent}, not at {first} and {last}")));
    }
    let length = |n: usize| usize::try_from(answers.get(n).copied().unwrap_or(0));
    match (length(2), length(3)) {
        (Ok(shortest), Ok(longest)) => Ok(CheckedSegmentOffsets { array, shortest, longest }),
        _ => Err(Error::value(name, "offsets must not decrease")),
    }
}
