//! Reductions of the segments `offsets[i]..offsets[i + 1]` of a 1-D array, whose rows stand with the other reductions, and sorts within them.

use crate::array::NdArray;
use crate::call;
use crate::call::{OutputSpec, Work};
use crate::device::{Device, with_device};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::op::Op;
use crate::ops::elementwise::{add, subtract, where_};
use crate::ops::manipulation::concat;
use crate::ops::reduce::{MAX, MIN, PROD, SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM, SUM, accumulator};
use crate::ops::search::Side;
use crate::s;
use cuprum_macros::numpy;

super::rows! { Sort after sort:
    SEGMENT_SORT "segment_sort" 2 else |inputs| composed(super::SEGMENT_SORT, inputs);
    SEGMENT_ARGSORT "segment_argsort" 2 else |inputs| composed(super::SEGMENT_ARGSORT, inputs);
}

/// Segments that kernels may find too long to sort beside others.
const LONG: usize = 4096;
/// Of those, as many are sorted one by one: a sort of the whole array by segments takes as long as so many small ones.
const FEW: usize = 32;

/// Sums of the segments `offsets[i]..offsets[i + 1]` of a 1-D array: the last step of a CSR matrix-vector product. What is deferred is
/// computed in the same pass; on a GPU so is a `take`: `segment_sum(&(&data * &x.take(&columns, 0)?), &offsets)` reads `x` as it adds.
///
/// `offsets` are integers, non-decreasing, from 0 to `a`'s length; the result has one element less than they are. An empty
/// segment gives 0 (unlike `numpy.add.reduceat`). Offsets outside the array are an error, on a GPU at the next call that waits.
///
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
    reduced(SEGMENT_SUM, SUM, a.dtype().sum_dtype(), a, offsets)
}

/// Products of the segments of a 1-D array, in the dtypes of [`NdArray::prod`]; otherwise as [`segment_sum`]. An empty segment gives 1.
#[numpy("segment_prod(a, offsets)")]
pub fn segment_prod(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_PROD, PROD, a.dtype().sum_dtype(), a, offsets)
}

/// Smallest elements of the segments of a 1-D array, as [`NdArray::min`] finds them; otherwise as [`segment_sum`]. An empty segment gives
/// what no element exceeds (as `jax.ops.segment_min` does): infinity, the largest integer, true.
#[numpy("segment_min(a, offsets)")]
pub fn segment_min(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_MIN, MIN, a.dtype(), a, offsets)
}

/// Largest elements of the segments of a 1-D array, as [`NdArray::max`] finds them; otherwise as [`segment_sum`]. An empty segment gives
/// what exceeds no element (as `jax.ops.segment_max` does): minus infinity, the smallest integer, false.
#[numpy("segment_max(a, offsets)")]
pub fn segment_max(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_MAX, MAX, a.dtype(), a, offsets)
}

/// Each segment reduced by `reduction`, which takes in and gives values of `dtype`.
fn reduced(op: Op, reduction: Op, dtype: DType, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let device = device_of(op, a, offsets)?;
    if offsets.size() == 1 {
        // No segment, so that no kernel runs and checks the offset.
        let offset = offsets.astype(DType::I64)?.item()?.as_int();
        if offset.and_then(|offset| usize::try_from(offset).ok()).is_none_or(|offset| offset > a.size()) {
            return Err(Error::Index { op: op.name(), index: offset.unwrap_or(0) as i64, axis: 0, size: a.size() });
        }
    }
    let output = OutputSpec::contiguous(dtype, &[offsets.size() - 1])?;
    let (program, mut inputs) = super::flat_prologue(&a.astype(dtype)?, dtype)?;
    inputs.push(offsets.astype(DType::I64)?.contiguous()?.stored()?);
    let work = Work::Segments(call::Segments { program: &program, reduction, acc: accumulator(reduction, dtype) });
    super::run_one(op, device, &inputs, output, work)
}

/// Refuses what are no values and offsets of one device; their values are not looked at.
fn device_of(op: Op, a: &NdArray, offsets: &NdArray) -> Result<Device> {
    let name = op.name();
    if a.ndim() != 1 || offsets.ndim() != 1 || offsets.size() == 0 {
        return Err(Error::shape(name, "takes a 1-D array and 1-D offsets, at least one", &[a.shape(), offsets.shape()]));
    }
    if !matches!(offsets.dtype().kind(), Kind::Signed | Kind::Unsigned) {
        return Err(Error::dtype(name, "offsets must be integers", &[offsets.dtype()]));
    }
    super::one_device(op, a, offsets)
}

/// A 1-D array sorted within each of the segments `offsets[i]..offsets[i + 1]`, in the order of [`NdArray::sort`].
///
/// `offsets` are integers, non-decreasing, from 0 to `a`'s length. Errors: other offsets; they are looked at, which waits for the device.
///
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
    sorted(SEGMENT_SORT, a, offsets)
}

/// The places (int64) that [`segment_sort`] takes its elements from; equal elements keep their order.
#[numpy("segment_argsort(a, offsets)")]
pub fn segment_argsort(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    sorted(SEGMENT_ARGSORT, a, offsets)
}

/// What `segment_sort` or `segment_argsort`, whichever `op` is, gives.
fn sorted(op: Op, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let Offsets { all, shortest, longest } = looked_at(op, a, offsets)?;
    if shortest < longest || longest == 0 {
        return sorted_up_to(op, longest, a, &all);
    }
    // Segments of one length are rows.
    let rows = a.reshape([(a.size() / longest) as isize, longest as isize])?;
    if op == SEGMENT_SORT {
        return rows.sort(-1)?.ravel();
    }
    let begins = all.index(s![..-1])?.reshape([-1, 1])?;
    add(rows.argsort(-1)?, begins)?.ravel()
}

/// The sort of segments none of which is longer than `longest`, by offsets that have been looked at.
fn sorted_up_to(op: Op, longest: usize, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let places = op == SEGMENT_ARGSORT;
    let output = OutputSpec::contiguous(if places { DType::I64 } else { a.dtype() }, a.shape())?;
    let inputs = [a.contiguous()?.stored()?, offsets.contiguous()?.stored()?];
    super::run_one(op, a.device(), &inputs, output, Work::SegmentSort(call::SegmentSort { indices: places, longest }))
}

/// The sort over other operations, where no kernel takes it. A few long segments are sorted one by one, what lies between them together;
/// otherwise everything is sorted by value, then by segment.
fn composed(op: Op, inputs: &[NdArray]) -> Result<NdArray> {
    let [a, offsets] = inputs else { return Err(Error::value(op.name(), "takes an array and offsets")) };
    let lengths = subtract(offsets.index(s![1..])?, offsets.index(s![..-1])?)?;
    let long = lengths.greater(LONG as i64)?.flatnonzero()?;
    if (1..=FEW).contains(&long.size()) {
        let of_others = lengths.less_equal(LONG as i64)?.multiply(&lengths)?.max(())?.item()?.as_int();
        return piecewise(op, a, offsets, &long.to_vec::<i64>()?, of_others.map_or(LONG, |n| n as usize));
    }
    let by_value = a.argsort(-1)?;
    let numbers = with_device(a.device(), || NdArray::arange_as(0, a.size() as i64, 1, DType::I64))?;
    // As many segments have ended at an element as come before its own. Radix sorts of 32 bits take half as many passes.
    let segments = offsets.index(s![1..])?.searchsorted(&numbers, Side::Right)?;
    let segments = if i32::try_from(offsets.size()).is_ok() { segments.astype(DType::I32)? } else { segments };
    let places = by_value.take(&segments.take(&by_value, 0)?.argsort(-1)?, 0)?;
    if op == SEGMENT_ARGSORT { Ok(places) } else { a.take(&places, 0) }
}

/// The sort with the segments `long` on their own; none of the others is longer than `longest`.
fn piecewise(op: Op, a: &NdArray, offsets: &NdArray, long: &[i64], longest: usize) -> Result<NdArray> {
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
            let piece = sorted_up_to(op, longest, &a.index(s![begin..from])?, &of_piece)?;
            pieces.push(shifted(op, piece, begin)?);
        }
        if from < to {
            let piece = a.index(s![from..to])?;
            let piece = if op == SEGMENT_ARGSORT { piece.argsort(-1)? } else { piece.sort(-1)? };
            pieces.push(shifted(op, piece, from)?);
        }
        (segment, begin) = (next + 1, to);
    }
    concat(&pieces, 0)
}

/// Places in a piece as places in the whole.
fn shifted(op: Op, piece: NdArray, begin: isize) -> Result<NdArray> {
    if op == SEGMENT_ARGSORT && begin > 0 { add(piece, begin as i64) } else { Ok(piece) }
}

/// Offsets in int64 that cut the whole array, and what is known of the segments' lengths.
struct Offsets {
    all: NdArray,
    shortest: usize,
    longest: usize,
}

/// Looks at the offsets, which waits for the device, and refuses those that do not cut the whole array.
fn looked_at(op: Op, a: &NdArray, offsets: &NdArray) -> Result<Offsets> {
    let name = op.name();
    device_of(op, a, offsets)?;
    let all = offsets.astype(DType::I64)?.eval()?.clone();
    let mut asked = vec![all.index(s![..1])?, all.index(s![-1..])?];
    if all.size() > 1 {
        // Comparison first: the difference of two offsets outside the array may wrap.
        let (begins, ends) = (all.index(s![..-1])?, all.index(s![1..])?);
        let lengths = where_(ends.less(&begins)?, -1, subtract(&ends, &begins)?)?.eval()?.clone();
        asked.extend([lengths.min(())?.reshape([1])?, lengths.max(())?.reshape([1])?]);
    }
    let answers = concat(&asked, 0)?.to_vec::<i64>()?;
    let (first, last) = (answers.first().copied().unwrap_or(0), answers.get(1).copied().unwrap_or(0));
    if first != 0 || usize::try_from(last) != Ok(a.size()) {
        return Err(Error::value(name, format!("offsets are from {first} to {last}, not from 0 to {}", a.size())));
    }
    let length = |n: usize| usize::try_from(answers.get(n).copied().unwrap_or(0));
    match (length(2), length(3)) {
        (Ok(shortest), Ok(longest)) => Ok(Offsets { all, shortest, longest }),
        _ => Err(Error::value(name, "offsets must not decrease")),
    }
}
