//! Reductions of the segments `offsets[i]..offsets[i + 1]` of a 1-D array, whose rows stand with the other reductions, and sorts within them.

use crate::array::NdArray;
use crate::call::{OutputSpec, Work};
use crate::device::{Device, with_device};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::op::Op;
use crate::ops::elementwise::subtract;
use crate::ops::manipulation::concat;
use crate::ops::reduce::{MAX, MIN, PROD, SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM, SUM, accumulator};
use crate::ops::search::Side;
use crate::ops::value::{Args, Value};
use crate::s;

super::rows! { Sort from 372:
    SEGMENT_SORT "segment_sort" [] 2 ("a, offsets") Some(|a: Args| segment_sort(&a.array("a")?, &a.array("offsets")?).map(Value::Array)), "Sorted within each of the segments `offsets[i]..offsets[i + 1]` of a 1-D array; NaN last.";
    SEGMENT_ARGSORT "segment_argsort" [] 2 ("a, offsets") Some(|a: Args| segment_argsort(&a.array("a")?, &a.array("offsets")?).map(Value::Array)), "Places (int64) in a 1-D array that sort within each of its segments; equal elements keep their order.";
}

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
pub fn segment_sum(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_SUM, SUM, a.dtype().sum_dtype(), a, offsets)
}

/// Products of the segments of a 1-D array, in the dtypes of [`NdArray::prod`]; otherwise as [`segment_sum`]. An empty segment gives 1.
pub fn segment_prod(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_PROD, PROD, a.dtype().sum_dtype(), a, offsets)
}

/// Smallest elements of the segments of a 1-D array, as [`NdArray::min`] finds them; otherwise as [`segment_sum`]. An empty segment gives
/// what no element exceeds (as `jax.ops.segment_min` does): infinity, the largest integer, true.
pub fn segment_min(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_MIN, MIN, a.dtype(), a, offsets)
}

/// Largest elements of the segments of a 1-D array, as [`NdArray::max`] finds them; otherwise as [`segment_sum`]. An empty segment gives
/// what exceeds no element (as `jax.ops.segment_max` does): minus infinity, the smallest integer, false.
pub fn segment_max(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    reduced(SEGMENT_MAX, MAX, a.dtype(), a, offsets)
}

/// Each segment reduced by `reduction`, which takes in and gives values of `dtype`.
fn reduced(op: Op, reduction: Op, dtype: DType, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let device = device_of(op, a, offsets)?;
    let output = OutputSpec::contiguous(dtype, &[offsets.size() - 1])?;
    let (program, mut inputs) = super::flat_prologue(&a.astype(dtype)?, dtype)?;
    inputs.push(offsets.astype(DType::I64)?.contiguous()?.stored()?);
    let work = Work::Segments { program: &program, reduction, acc: accumulator(reduction, dtype) };
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
pub fn segment_sort(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    a.take(&places(SEGMENT_SORT, a, offsets)?, 0)
}

/// The places (int64) that [`segment_sort`] takes its elements from; equal elements keep their order.
pub fn segment_argsort(a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    places(SEGMENT_ARGSORT, a, offsets)
}

/// A stable sort by value, then one by segment.
fn places(op: Op, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let offsets = checked(op, a, offsets)?;
    let by_value = a.argsort(-1)?;
    let numbers = with_device(a.device(), || NdArray::arange_as(0, a.size() as i64, 1, DType::I64))?;
    // As many segments have ended at an element as come before its own. Radix sorts of 32 bits take half as many passes.
    let segments = offsets.index(s![1..])?.searchsorted(&numbers, Side::Right)?;
    let segments = if i32::try_from(offsets.size()).is_ok() { segments.astype(DType::I32)? } else { segments };
    by_value.take(&segments.take(&by_value, 0)?.argsort(-1)?, 0)
}

/// The offsets in int64, if they cut the whole array.
fn checked(op: Op, a: &NdArray, offsets: &NdArray) -> Result<NdArray> {
    let name = op.name();
    device_of(op, a, offsets)?;
    let offsets = offsets.astype(DType::I64)?.eval()?.clone();
    let mut looked_at = vec![offsets.index(s![..1])?, offsets.index(s![-1..])?];
    if offsets.size() > 1 {
        let lengths = subtract(offsets.index(s![1..])?, offsets.index(s![..-1])?)?;
        looked_at.push(lengths.min(())?.reshape([1])?);
    }
    let looked_at = concat(&looked_at, 0)?.to_vec::<i64>()?;
    let &[first, last, ..] = &looked_at[..] else { return Err(Error::value(name, "no offsets")) };
    if first != 0 || usize::try_from(last) != Ok(a.size()) {
        return Err(Error::value(name, format!("offsets are from {first} to {last}, not from 0 to {}", a.size())));
    }
    match looked_at.get(2) {
        Some(shortest) if *shortest < 0 => Err(Error::value(name, "offsets must not decrease")),
        _ => Ok(offsets),
    }
}
