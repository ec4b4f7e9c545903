//! Sorting along an axis: values, indices, partitions, the k largest, and distinct values.

use crate::arguments::IntegerArgument;
use crate::array::NdArray;
use crate::call::{OutputSpec, Sort, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::{FromArgs, IntoValue};
use crate::layout::{Dims, Layout};
use crate::op::Op;
use crate::ops::creation::full_on_device;
use crate::ops::elementwise::{add, logical_and, logical_not, not_equal, subtract};
use crate::ops::manipulation::concat;
use crate::ops::python_value::{Args, Value};
use crate::ops::reduce::{AxisOption, AxisOptions, axis};
use crate::ops::select::flatnonzero;
use crate::s;
use cuprum_macros::{free_functions, numpy};

super::ops! { Sort after random:
    SORT "sort" 1;
    ARGSORT "argsort" 1;
    PARTITION "partition" 1;
    ARGPARTITION "argpartition" 1;
    TOPK "topk" 1;
    UNIQUE "unique" 1;
    UNIQUE_VALUES "unique_values" 1;
    UNIQUE_COUNTS "unique_counts" 1;
    UNIQUE_INVERSE "unique_inverse" 1;
    UNIQUE_ALL "unique_all" 1;
}

impl IntoValue for Unique {
    fn into_value(self) -> Value {
        let items = [self.values, self.indices, self.inverse, self.counts].map(Value::Array);
        Value::named_tuple(&["values", "indices", "inverse_indices", "counts"], items)
    }
}

/// An output of a sort: the values or their indices.
#[derive(Clone, Copy, PartialEq)]
enum SortOutput {
    Values,
    Indices,
}

/// The part of each sorted row that the caller requires.
#[derive(Clone, Copy)]
enum RequiredSortedPart {
    Whole,
    /// The first n elements of each sorted row.
    First(usize),
    /// All elements of each row, partitioned around the element with this index.
    Partition(usize),
}

/// Dispatches a sort along one axis, or of the flattened array for `None`, and returns the outputs `parts`, values before
/// indices. Descending order has the largest element first.
fn sort_along_axis<const N: usize>(
    op: Op,
    a: &NdArray,
    axis: Option<usize>,
    descending: bool,
    parts: [SortOutput; N],
    extent: RequiredSortedPart,
) -> Result<[NdArray; N]> {
    let Some(axis) = axis else { return sort_along_axis(op, &a.ravel()?, Some(0), descending, parts, extent) };
    let rows = a.moveaxis(axis, -1)?.contiguous()?;
    let mut shape: Dims = rows.shape().into();
    if let (Some(last), RequiredSortedPart::First(count)) = (shape.last_mut(), extent) {
        *last = count.min(*last);
    }
    let layout = Layout::contiguous(&shape)?;
    let outputs = parts.map(|part| OutputSpec::new(if part == SortOutput::Values { a.dtype() } else { DType::I64 }, layout.clone()));
    let nth = if let RequiredSortedPart::Partition(nth) = extent { Some(nth) } else { None };
    let sort = Sort { descending, values: parts.contains(&SortOutput::Values), indices: parts.contains(&SortOutput::Indices), nth };
    let mut arrays = super::dispatch_call(op, a.device(), &[rows.stored()?], &outputs, Work::Sort(sort))?;
    for array in &mut arrays {
        *array = array.moveaxis(-1, axis)?;
    }
    Ok(arrays)
}

/// Returns the axis to sort along, or `None` for the flattened array.
///
/// As in NumPy, axis 0 of a 0-d array is valid for `argsort` but not for `sort`.
fn resolve_sort_axis(op: Op, a: &NdArray, over: &AxisOptions, part: SortOutput) -> Result<Option<usize>> {
    over.clone().check_accepted_options(op.name(), &[AxisOption::Descending])?;
    match part {
        SortOutput::Indices => over.resolve_one_axis_allowing_scalar(op, a.ndim()),
        SortOutput::Values => over.resolve_one_axis(op, a.ndim()),
    }
}

/// Returns the values or the indices of a complete sort, according to `part`.
fn sort_with_options(op: Op, a: &NdArray, over: &AxisOptions, part: SortOutput) -> Result<NdArray> {
    let [array] = sort_along_axis(op, a, resolve_sort_axis(op, a, over, part)?, over.is_descending(), [part], RequiredSortedPart::Whole)?;
    Ok(array)
}

/// Returns the values or the indices of a partition around element `kth`, according to `part`.
///
/// # Errors
/// `kth` out of bounds.
fn partition_with_options(op: Op, a: &NdArray, kth: isize, over: &AxisOptions, part: SortOutput) -> Result<NdArray> {
    let axis = resolve_sort_axis(op, a, over, part)?;
    let size = axis.map_or(a.size(), |axis| a.shape()[axis]);
    let nth = if kth < 0 { kth.checked_add_unsigned(size).and_then(|n| usize::try_from(n).ok()) } else { Some(kth as usize) };
    let Some(nth) = nth.filter(|nth| *nth < size) else {
        return Err(Error::Index { op: op.name(), index: kth as i64, axis: axis.unwrap_or(0), size });
    };
    let [array] = sort_along_axis(op, a, axis, over.is_descending(), [part], RequiredSortedPart::Partition(nth))?;
    Ok(array)
}

/// Calls a partition with Python-like arguments.
fn partition_from_args(op: Op, args: &Args, part: SortOutput) -> Result<Value> {
    partition_around_elements(op, &args.array("a")?, &args.array("kth")?, &AxisOptions::from_args(args, "axis")?, part).map(Value::Array)
}

/// Returns the values or the indices of a partition around the elements `kth`, according to `part`. For several elements, the array is
/// sorted completely.
fn partition_around_elements(op: Op, a: &NdArray, kth: &NdArray, over: &AxisOptions, part: SortOutput) -> Result<NdArray> {
    if kth.ndim() > 1 || !(kth.dtype().is_int() || kth.dtype() == DType::Bool) {
        return Err(Error::value(op.name(), "Partition index must be integer"));
    }
    let kth = kth.astype(DType::I64)?.to_vec::<i64>()?;
    // As in NumPy, positions in an empty array are not checked.
    match &kth[..] {
        &[kth] if a.size() > 0 => partition_with_options(op, a, kth as isize, over, part),
        kth => {
            let size = resolve_sort_axis(op, a, over, part)?.map_or(a.size(), |axis| a.shape()[axis]);
            let is_outside = |index: i64| a.size() > 0 && !(-(size as i64)..size as i64).contains(&index);
            if let Some(&index) = kth.iter().find(|index| is_outside(**index)) {
                return Err(Error::Index { op: op.name(), index, axis: 0, size });
            }
            sort_with_options(op, a, over, part)
        }
    }
}

/// The result of [`unique_all`]: the distinct elements of an array, with indices and counts.
#[derive(Clone, Debug)]
pub struct Unique {
    /// The distinct elements, sorted.
    pub values: NdArray,
    /// Index of the first occurrence of each distinct element in the flattened array, int64.
    pub indices: NdArray,
    /// Index into `values` for each element of the array: int64, in the shape of the array.
    pub inverse: NdArray,
    /// Number of occurrences of each distinct element, int64.
    pub counts: NdArray,
}

/// Returns whether each element of a sorted 1-D array, except the first, differs from its predecessor. NaN equals NaN.
pub(super) fn differs_from_previous(a: &NdArray) -> Result<NdArray> {
    let (before, after) = (a.index(s![..-1])?, a.index(s![1..])?);
    let differs = not_equal(&after, &before)?;
    match a.dtype().is_inexact() {
        true => logical_and(differs, logical_not(logical_and(after.isnan()?, before.isnan()?)?)?),
        false => Ok(differs),
    }
}

/// Returns the result of [`differs_from_previous`] for an array whose NaN are distinct, as in NumPy's functions of the array API.
fn differs_treating_nan_as_distinct(a: &NdArray) -> Result<NdArray> {
    not_equal(a.index(s![1..])?, a.index(s![..-1])?)
}

/// Returns the index of the first element of each run of equal elements. `changes` says for each element but the first whether it differs
/// from its predecessor.
fn equal_run_starts(changes: &NdArray) -> Result<NdArray> {
    let later = add(flatnonzero(changes)?, 1)?;
    concat(&[full_on_device(changes.device(), &[1], 0.into(), DType::I64)?, later], 0)
}

/// Returns the lengths of runs of equal elements. The runs start at `starts`, and the last run ends at `size`.
fn equal_run_lengths(starts: &NdArray, size: usize) -> Result<NdArray> {
    let end = full_on_device(starts.device(), &[1], (size as i64).into(), DType::I64)?;
    subtract(&concat(&[starts.index(s![1..])?, end], 0)?, starts)
}

/// # Sorting
///
/// [`topk`], [`unique`] and the sorts of segments are free functions, not methods.
#[free_functions]
impl NdArray {
    /// Returns the array sorted along one axis, or flattened and sorted for `()` (`numpy.sort`).
    ///
    /// NaN is last. Complex numbers compare by real part, then imaginary part. `axis(-1).descending()` reverses the order, with NaN
    /// first.
    ///
    /// The order of equal floats with different bits (-0.0 and 0.0, NaNs) depends on the accelerator: either -0.0 precedes 0.0 and NaNs are
    /// ordered by their bits, or these elements keep their order. [`NdArray::argsort`] is stable on every device.
    ///
    /// # Errors
    /// An axis out of bounds, or more than one axis.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{NdArray, axis};
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[2.0, f64::NAN, 1.0])?;
    /// assert_eq!(a.sort(-1)?.to_vec::<f64>()?[..2], [1.0, 2.0]);
    /// assert_eq!(a.argsort(axis(-1).descending())?.to_vec::<i64>()?, [1, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("sort(a, axis=-1, kind=None, *, descending=False, stable=True)", differs = "stable except for zeros and NaNs")]
    pub fn sort(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        sort_with_options(SORT, self, &over.into(), SortOutput::Values)
    }

    /// Returns the int64 indices that sort along one axis, or the flattened array for `()` (`numpy.argsort`, `kind='stable'`).
    ///
    /// Equal elements keep their order. A 0-d array gives a 1-D result of one index.
    ///
    /// # Errors
    /// The errors of [`NdArray::sort`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[3, 1, 2])?;
    /// assert_eq!(a.argsort(-1)?.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("argsort(a, axis=-1, kind=None, *, descending=False, stable=True)", method, differs = "always stable")]
    pub fn argsort(&self, over: impl Into<AxisOptions>) -> Result<NdArray> {
        sort_with_options(ARGSORT, self, &over.into(), SortOutput::Indices)
    }

    /// Returns the elements partitioned around the sorted position `kth` (`numpy.partition`).
    ///
    /// Element `kth` of the result is the same as after [`NdArray::sort`]. No larger element precedes element `kth`, and no smaller element
    /// follows it. In descending order, no smaller element precedes element `kth`, and no larger element follows it. The order is otherwise
    /// unspecified. A negative `kth` counts from the end.
    ///
    /// # Errors
    /// `kth` out of bounds, and the errors of [`NdArray::sort`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[5, 1, 4, 2])?.partition(1, -1)?;
    /// assert_eq!(a.take(&NdArray::from_slice(&[1])?, 0)?.to_vec::<i32>()?, [2]);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("partition(a, kth, axis=-1)", call = |args| partition_from_args(PARTITION, args, SortOutput::Values))]
    pub fn partition(&self, kth: isize, over: impl Into<AxisOptions>) -> Result<NdArray> {
        partition_with_options(PARTITION, self, kth, &over.into(), SortOutput::Values)
    }

    /// Returns the int64 indices of the elements of [`NdArray::partition`] (`numpy.argpartition`).
    ///
    /// # Errors
    /// The errors of [`NdArray::partition`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[5, 1, 4])?;
    /// assert_eq!(a.argpartition(0, -1)?.to_vec::<i64>()?[0], 1);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("argpartition(a, kth, axis=-1)", method, call = |args| partition_from_args(ARGPARTITION, args, SortOutput::Indices))]
    pub fn argpartition(&self, kth: isize, over: impl Into<AxisOptions>) -> Result<NdArray> {
        partition_with_options(ARGPARTITION, self, kth, &over.into(), SortOutput::Indices)
    }
}

/// Sorts the array along an axis in place (`numpy.ndarray.sort`).
#[numpy("ndarray.sort(a, axis=-1, kind=None, *, descending=False, stable=True)")]
fn sort_in_place(a: &mut NdArray, over: impl Into<AxisOptions>) -> Result<()> {
    let sorted = a.sort(over)?;
    replace_with_sorted(SORT, a, sorted)
}

/// Partitions the array along an axis in place (`numpy.ndarray.partition`).
#[numpy("ndarray.partition(a, kth, axis=-1)")]
fn partition_in_place(a: &mut NdArray, kth: &NdArray, over: impl Into<AxisOptions>) -> Result<()> {
    let partitioned = partition_around_elements(PARTITION, a, kth, &over.into(), SortOutput::Values)?;
    replace_with_sorted(PARTITION, a, partitioned)
}

/// Replaces `a` by `sorted`, its sorted elements. Returns an error if `sorted` has another shape, as after a sort of the flattened array.
fn replace_with_sorted(op: Op, a: &mut NdArray, sorted: NdArray) -> Result<()> {
    if sorted.shape() != a.shape() {
        return Err(Error::value(op.name(), "an array is sorted in place along an axis, not flattened"));
    }
    *a = sorted;
    Ok(())
}

/// Returns the `k` largest or smallest elements along an axis, in order, and their int64 indices (`torch.topk`).
///
/// Equal elements keep their order, so the first ones are selected. NaN counts as largest. With `largest`, the function is `jax.lax.top_k`.
///
/// # Errors
/// `k` greater than the axis' extent, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, topk};
/// # fn main() -> cuprum::Result<()> {
/// let (values, indices) = topk(&NdArray::from_slice(&[3, 9, 5])?, 2, -1, true)?;
/// assert_eq!(values.to_vec::<i32>()?, [9, 5]);
/// assert_eq!(indices.to_vec::<i64>()?, [1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("topk(a, k, axis=-1, *, largest=True)")]
pub fn topk(a: &NdArray, k: usize, #[read(isize)] axis: impl IntegerArgument, largest: bool) -> Result<(NdArray, NdArray)> {
    let axis = crate::layout::normalize_axis(TOPK.name(), axis.saturating_isize(), a.ndim())?;
    if k > a.shape()[axis] {
        return Err(Error::shape(TOPK.name(), format!("k = {k} exceeds the extent of axis {axis}"), &[a.shape()]));
    }
    let [values, indices] =
        sort_along_axis(TOPK, a, Some(axis), largest, [SortOutput::Values, SortOutput::Indices], RequiredSortedPart::First(k))?;
    Ok((values, indices))
}

/// Returns the sorted distinct elements of the flattened array (`numpy.unique`). All NaN are equal, and the first one of the array is in
/// the result.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, unique, unique_all};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[3, 1, 3, 2])?;
/// assert_eq!(unique(&a)?.to_vec::<i32>()?, [1, 2, 3]);
/// let all = unique_all(&a)?;
/// assert_eq!(all.counts.to_vec::<i64>()?, [1, 1, 2]);
/// assert_eq!(all.inverse.to_vec::<i64>()?, [2, 0, 2, 1]);
/// # Ok(())
/// # }
/// ```
pub fn unique(ar: &NdArray) -> Result<NdArray> {
    let distinct = extract_distinct(&sort_with_options(UNIQUE, ar, &axis(()), SortOutput::Values)?, differs_from_previous)?;
    if ar.dtype().is_complex() { keep_first_nan(distinct, ar) } else { Ok(distinct) }
}

/// Returns `distinct`, the sorted distinct elements of `a`, with the first NaN of `a` as their NaN, as in NumPy, which finds distinct
/// elements by hashing. Complex NaN have different parts, and the first one of the sorted array is another.
fn keep_first_nan(distinct: NdArray, a: &NdArray) -> Result<NdArray> {
    if distinct.size() == 0 || !distinct.index(s![-1])?.isnan()?.item()?.as_bool() {
        return Ok(distinct);
    }
    let flat = a.ravel()?;
    let first = flatnonzero(&flat.isnan()?)?.index(s![..1])?;
    concat(&[distinct.index(s![..-1])?, flat.take(&first, 0)?], 0)
}

/// Returns the first element of a sorted array and all elements that differ from their predecessors.
fn extract_distinct(sorted: &NdArray, differs: impl Fn(&NdArray) -> Result<NdArray>) -> Result<NdArray> {
    if sorted.size() < 2 {
        return Ok(sorted.clone());
    }
    concat(&[sorted.index(s![..1])?, sorted.index(s![1..])?.extract(&differs(sorted)?)?], 0)
}

/// Returns the sorted distinct elements of the flattened array (`numpy.unique_values`). Each NaN is distinct. If zeros of both signs occur,
/// the result has one of them.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, unique_values};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(unique_values(&array![3, 1, 3])?, array![1, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("unique_values(x)")]
pub fn unique_values(x: &NdArray) -> Result<NdArray> {
    extract_distinct(&sort_with_options(UNIQUE, x, &axis(()), SortOutput::Values)?, differs_treating_nan_as_distinct)
}

/// Returns the sorted distinct elements of the flattened array and their int64 counts (`numpy.unique_counts`).
/// Each NaN is distinct.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, unique_counts};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(unique_counts(&array![3, 1, 3])?, (array![1, 3], array![1i64, 2]));
/// # Ok(())
/// # }
/// ```
#[numpy("unique_counts(x)", call = |args| {
    let (values, counts) = unique_counts(&args.array("x")?)?;
    Ok(Value::named_tuple(&["values", "counts"], [values, counts].map(Value::Array)))
})]
pub fn unique_counts(x: &NdArray) -> Result<(NdArray, NdArray)> {
    let sorted = sort_with_options(UNIQUE_COUNTS, x, &axis(()), SortOutput::Values)?;
    if sorted.size() == 0 {
        return Ok((sorted, full_on_device(x.device(), &[0], 0.into(), DType::I64)?));
    }
    let starts = equal_run_starts(&differs_treating_nan_as_distinct(&sorted)?)?;
    Ok((sorted.take(&starts, 0)?, equal_run_lengths(&starts, sorted.size())?))
}

/// Returns the sorted distinct elements, and for each element of the array its int64 index among them (`numpy.unique_inverse`).
///
/// The indices have the shape of the array. Each NaN is distinct.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, unique_inverse};
/// # fn main() -> cuprum::Result<()> {
/// let (values, inverse) = unique_inverse(&array![3, 1, 3])?;
/// assert_eq!((values, inverse), (array![1, 3], array![1i64, 0, 1]));
/// # Ok(())
/// # }
/// ```
#[numpy("unique_inverse(x)", call = |args| {
    let (values, inverse) = unique_inverse(&args.array("x")?)?;
    Ok(Value::named_tuple(&["values", "inverse_indices"], [values, inverse].map(Value::Array)))
})]
pub fn unique_inverse(x: &NdArray) -> Result<(NdArray, NdArray)> {
    let all = unique_all(x)?;
    Ok((all.values, all.inverse))
}

/// Returns the sorted distinct elements, the indices of their first occurrences, the inverse indices, and the counts (`numpy.unique_all`).
/// See [`Unique`]. Each NaN is distinct.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, unique_all};
/// # fn main() -> cuprum::Result<()> {
/// let all = unique_all(&array![3, 1, 3])?;
/// assert_eq!((all.values, all.indices), (array![1, 3], array![1i64, 0]));
/// assert_eq!((all.inverse, all.counts), (array![1i64, 0, 1], array![1i64, 2]));
/// # Ok(())
/// # }
/// ```
#[numpy("unique_all(x)")]
pub fn unique_all(x: &NdArray) -> Result<Unique> {
    unique_with_indices(x, false)
}

/// Returns the result of [`unique_all`]. With `equal_nan`, all NaN are equal.
///
/// # Errors
/// Errors of evaluation.
pub fn unique_with_indices(x: &NdArray, equal_nan: bool) -> Result<Unique> {
    let [sorted, order] =
        sort_along_axis(UNIQUE_ALL, x, None, false, [SortOutput::Values, SortOutput::Indices], RequiredSortedPart::Whole)?;
    if sorted.size() == 0 {
        let none = full_on_device(x.device(), &[0], 0.into(), DType::I64)?;
        return Ok(Unique { values: sorted, indices: none.clone(), inverse: none.reshape(x.shape())?, counts: none });
    }
    let changes = if equal_nan { differs_from_previous(&sorted)? } else { differs_treating_nan_as_distinct(&sorted)? };
    changes.eval()?; // evaluated once, because it is used twice below
    let starts = equal_run_starts(&changes)?;
    // The argsort of the permutation `order` is the inverse permutation: the position of each element in the sorted array.
    let first = full_on_device(x.device(), &[1], 0.into(), DType::I64)?;
    let rank = concat(&[first, changes.cumsum(0)?], 0)?;
    let inverse = rank.take(&order.argsort(-1)?, 0)?.reshape(x.shape())?;
    Ok(Unique {
        values: sorted.take(&starts, 0)?,
        indices: order.take(&starts, 0)?,
        inverse,
        counts: equal_run_lengths(&starts, sorted.size())?,
    })
}
