//! Sorting along an axis, places of sorted elements, the largest few, and distinct values.

use crate::array::NdArray;
use crate::call::{OutputSpec, Sort, Work};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::function::IntoValue;
use crate::layout::{Dims, Layout};
use crate::op::Op;
use crate::ops::creation::full_on;
use crate::ops::elementwise::{add, logical_not, not_equal, subtract};
use crate::ops::manipulation::concat;
use crate::ops::reduce::{Over, axis};
use crate::ops::value::{Args, Value};
use crate::s;
use cuprum_macros::numpy;

super::rows! { Sort after random:
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

/// A tuple of the values and each part that a `return_` flag names.
fn unique_by_name(args: &Args) -> Result<Value> {
    let x = args.array("ar")?;
    let flags = [args.bool_or("return_index", false)?, args.bool_or("return_inverse", false)?, args.bool_or("return_counts", false)?];
    if flags == [false; 3] {
        return x.unique().map(Value::Array);
    }
    let all = x.unique_all()?;
    let chosen = [all.indices, all.inverse, all.counts].into_iter().zip(flags).filter(|(_, wanted)| *wanted).map(|(a, _)| a);
    Ok(Value::tuple([all.values].into_iter().chain(chosen).map(Value::Array)))
}

impl IntoValue for Unique {
    fn into_value(self) -> Value {
        Value::tuple([self.values, self.indices, self.inverse, self.counts].map(Value::Array))
    }
}

/// A result of a sort.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Values,
    Places,
}

/// How much of each sorted row is asked for.
#[derive(Clone, Copy)]
enum Extent {
    Whole,
    /// The first few.
    First(usize),
    /// All elements, of which this one is in its place.
    Around(usize),
}

/// Sorts along one axis, or the flattened array for `None`, as much as is asked for: the parts asked for, values before places.
fn sorted<const N: usize>(
    op: Op,
    a: &NdArray,
    axis: Option<usize>,
    descending: bool,
    parts: [Part; N],
    extent: Extent,
) -> Result<[NdArray; N]> {
    let Some(axis) = axis else { return sorted(op, &a.ravel()?, Some(0), descending, parts, extent) };
    let axis = [axis as isize];
    let rows = a.moveaxis(&axis, &[-1])?.contiguous()?;
    let mut shape: Dims = rows.shape().into();
    if let (Some(last), Extent::First(count)) = (shape.last_mut(), extent) {
        *last = count.min(*last);
    }
    let layout = Layout::contiguous(&shape)?;
    let outputs = parts.map(|part| OutputSpec { dtype: if part == Part::Values { a.dtype() } else { DType::I64 }, layout: layout.clone() });
    let nth = if let Extent::Around(nth) = extent { Some(nth) } else { None };
    let sort = Sort { descending, values: parts.contains(&Part::Values), indices: parts.contains(&Part::Places), nth };
    let mut arrays = super::run(op, a.device(), &[rows.stored()?], &outputs, Work::Sort(sort))?;
    for array in &mut arrays {
        *array = array.moveaxis(&[-1], &axis)?;
    }
    Ok(arrays)
}

/// The axis to sort along, or `None` for the flattened array. As in NumPy, places in a 0-d array have an axis 0, its values do not.
fn axis_of(op: Op, a: &NdArray, over: &Over, part: Part) -> Result<Option<usize>> {
    match part {
        Part::Places => over.one_axis_of_scalar(op, a.ndim()),
        Part::Values => over.one_axis(op, a.ndim()),
    }
}

/// One part of a whole sort.
fn sorted_over(op: Op, a: &NdArray, over: &Over, part: Part) -> Result<NdArray> {
    let [array] = sorted(op, a, axis_of(op, a, over, part)?, over.is_descending(), [part], Extent::Whole)?;
    Ok(array)
}

/// One part of rows with element `kth` in its place. Errors: a `kth` outside the axis.
fn partitioned(op: Op, a: &NdArray, kth: isize, over: &Over, part: Part) -> Result<NdArray> {
    let axis = axis_of(op, a, over, part)?;
    let size = axis.map_or(a.size(), |axis| a.shape()[axis]);
    let nth = if kth < 0 { kth.checked_add_unsigned(size).and_then(|n| usize::try_from(n).ok()) } else { Some(kth as usize) };
    let Some(nth) = nth.filter(|nth| *nth < size) else {
        return Err(Error::Index { op: op.name(), index: kth as i64, axis: axis.unwrap_or(0), size });
    };
    let [array] = sorted(op, a, axis, over.is_descending(), [part], Extent::Around(nth))?;
    Ok(array)
}

/// The distinct elements of an array and where they are; see [`NdArray::unique_all`].
#[derive(Clone, Debug)]
pub struct Unique {
    /// The distinct elements, sorted.
    pub values: NdArray,
    /// Where each occurs first in the flattened array, int64.
    pub indices: NdArray,
    /// For each element of the array, in its shape, its place in `values`, int64.
    pub inverse: NdArray,
    /// How often each occurs, int64.
    pub counts: NdArray,
}

/// Whether each element of sorted 1-D `a` but the first differs from the one before; NaN equals NaN.
fn changes(a: &NdArray) -> Result<NdArray> {
    let (before, after) = (a.index(s![..-1])?, a.index(s![1..])?);
    let differs = not_equal(&after, &before)?;
    match a.dtype().is_inexact() {
        true => differs.logical_and(logical_not(after.isnan()?.logical_and(before.isnan()?)?)?),
        false => Ok(differs),
    }
}

/// Places of the first of each run of equal elements, from [`changes`].
fn run_starts(changes: &NdArray) -> Result<NdArray> {
    let later = add(changes.flatnonzero()?, 1)?;
    concat(&[full_on(changes.device(), &[1], 0.into(), DType::I64)?, later], 0)
}

/// Lengths of runs that start at `starts` and end at `size`.
fn run_lengths(starts: &NdArray, size: usize) -> Result<NdArray> {
    let end = full_on(starts.device(), &[1], (size as i64).into(), DType::I64)?;
    subtract(&concat(&[starts.index(s![1..])?, end], 0)?, starts)
}

impl NdArray {
    /// Sorted along one axis, or the flattened array for `()` (`numpy.sort`): NaN last, complex numbers by real part, then
    /// imaginary. `axis(-1).descending()` gives the reverse order, NaN first.
    ///
    /// Errors: an axis that is not there.
    ///
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
    #[numpy("sort(a, axis=-1, kind=None, *, descending=False, stable=True)", method)]
    pub fn sort(&self, over: impl Into<Over>) -> Result<NdArray> {
        sorted_over(SORT, self, &over.into(), Part::Values)
    }

    /// Places (int64) that would sort along one axis, or the flattened array for `()` (`numpy.argsort`, `kind='stable'`): equal
    /// elements keep their order. A 0-d array gives one place, with or without an axis.
    #[numpy("argsort(a, axis=-1, kind=None, *, descending=False, stable=True)", method)]
    pub fn argsort(&self, over: impl Into<Over>) -> Result<NdArray> {
        sorted_over(ARGSORT, self, &over.into(), Part::Places)
    }

    /// An array with element `kth` where [`NdArray::sort`] would put it, no larger ones before it and no smaller ones after it
    /// (`numpy.partition`), in no other order. Errors: `kth` outside the axis.
    #[numpy("partition(a, kth, axis=-1)", method)]
    pub fn partition(&self, kth: isize, over: impl Into<Over>) -> Result<NdArray> {
        partitioned(PARTITION, self, kth, &over.into(), Part::Values)
    }

    /// Places (int64) of [`NdArray::partition`] (`numpy.argpartition`).
    #[numpy("argpartition(a, kth, axis=-1)", method)]
    pub fn argpartition(&self, kth: isize, over: impl Into<Over>) -> Result<NdArray> {
        partitioned(ARGPARTITION, self, kth, &over.into(), Part::Places)
    }

    /// The `k` largest (else smallest) elements along an axis, in order, and their places (int64); of equal ones the first
    /// (`torch.topk`, `jax.lax.top_k`). NaN counts as largest. Errors: `k` greater than the axis.
    #[numpy("topk(a, k, axis=-1, *, largest=True)")]
    pub fn topk(&self, k: usize, axis: isize, largest: bool) -> Result<(NdArray, NdArray)> {
        let axis = crate::layout::normalize_axis(TOPK.name(), axis, self.ndim())?;
        if k > self.shape()[axis] {
            return Err(Error::shape(TOPK.name(), format!("k = {k} is more than axis {axis} has"), &[self.shape()]));
        }
        let [values, places] = sorted(TOPK, self, Some(axis), largest, [Part::Values, Part::Places], Extent::First(k))?;
        Ok((values, places))
    }

    /// The distinct elements of the flattened array, sorted (`numpy.unique`, `unique_values`). All NaN count as one.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[3, 1, 3, 2])?;
    /// assert_eq!(a.unique()?.to_vec::<i32>()?, [1, 2, 3]);
    /// let all = a.unique_all()?;
    /// assert_eq!(all.counts.to_vec::<i64>()?, [1, 1, 2]);
    /// assert_eq!(all.inverse.to_vec::<i64>()?, [2, 0, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "unique_values")]
    #[numpy("unique(ar, return_index=False, return_inverse=False, return_counts=False)", call = unique_by_name)]
    #[numpy("unique_values(x)")]
    pub fn unique(&self) -> Result<NdArray> {
        let sorted = sorted_over(UNIQUE, self, &axis(()), Part::Values)?;
        if sorted.size() < 2 {
            return Ok(sorted);
        }
        let later = sorted.index(s![1..])?.extract(&changes(&sorted)?)?;
        concat(&[sorted.index(s![..1])?, later], 0)
    }

    /// The distinct elements of the flattened array, sorted, and how often each occurs, int64 (`numpy.unique_counts`).
    #[numpy("unique_counts(x)")]
    pub fn unique_counts(&self) -> Result<(NdArray, NdArray)> {
        let sorted = sorted_over(UNIQUE_COUNTS, self, &axis(()), Part::Values)?;
        if sorted.size() == 0 {
            return Ok((sorted, full_on(self.device(), &[0], 0.into(), DType::I64)?));
        }
        let starts = run_starts(&changes(&sorted)?)?;
        Ok((sorted.take(&starts, 0)?, run_lengths(&starts, sorted.size())?))
    }

    /// The distinct elements of the flattened array, sorted, and for each element its index among them, int64, in the shape of the
    /// array (`numpy.unique_inverse`).
    #[numpy("unique_inverse(x)")]
    pub fn unique_inverse(&self) -> Result<(NdArray, NdArray)> {
        let all = self.unique_all()?;
        Ok((all.values, all.inverse))
    }

    /// The distinct elements of the flattened array with first places, inverse and counts (`numpy.unique_all`).
    #[numpy("unique_all(x)")]
    pub fn unique_all(&self) -> Result<Unique> {
        let [sorted, order] = sorted(UNIQUE_ALL, self, None, false, [Part::Values, Part::Places], Extent::Whole)?;
        if sorted.size() == 0 {
            let none = full_on(self.device(), &[0], 0.into(), DType::I64)?;
            return Ok(Unique { values: sorted, indices: none.clone(), inverse: none.reshape(self.shape())?, counts: none });
        }
        let changes = changes(&sorted)?;
        changes.eval()?; // it is used twice
        let starts = run_starts(&changes)?;
        // Sorting the permutation inverts it: its element i is where element i went.
        let first = full_on(self.device(), &[1], 0.into(), DType::I64)?;
        let rank = concat(&[first, changes.cumsum(0)?], 0)?;
        let inverse = rank.take(&order.argsort(-1)?, 0)?.reshape(self.shape())?;
        Ok(Unique {
            values: sorted.take(&starts, 0)?,
            indices: order.take(&starts, 0)?,
            inverse,
            counts: run_lengths(&starts, sorted.size())?,
        })
    }
}
