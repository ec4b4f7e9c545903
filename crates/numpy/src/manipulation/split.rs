//! Arrays divided into parts along an axis: `split` and its variants, and `unstack`.

use cuprum_core::function::FromArgs;
use cuprum_core::host_buffer::{check_memory_available, try_collect};
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, Item, NdArray, Result, moveaxis, numpy};

use crate::operand_and_slice_helpers::{arrays_to_list_value, slice_axis};

/// The parts of a split: their number, or the indices at which parts begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// A number of parts.
    Count(usize),
    /// Indices at which a new part begins, as in Python's slices.
    Indices(Vec<isize>),
}

impl From<usize> for Sections {
    fn from(count: usize) -> Sections {
        Sections::Count(count)
    }
}
impl<const N: usize> From<[isize; N]> for Sections {
    fn from(indices: [isize; N]) -> Sections {
        Sections::Indices(indices.to_vec())
    }
}
impl From<&[isize]> for Sections {
    fn from(indices: &[isize]) -> Sections {
        Sections::Indices(indices.to_vec())
    }
}

impl FromArgs for Sections {
    fn from_args(args: &Args, name: &str) -> Result<Sections> {
        // As in a slice, an index beyond `isize` stands for the end or the start of the axis.
        let clamp = |n: i128| n.clamp(isize::MIN as i128, isize::MAX as i128) as isize;
        match args.get(name) {
            Some(Value::Array(a)) if a.ndim() == 1 && a.dtype() == DType::U64 => {
                Ok(Sections::Indices(a.to_vec::<u64>()?.into_iter().map(|n| clamp(n.into())).collect()))
            }
            Some(Value::Array(a)) if a.ndim() == 1 && a.dtype().is_int() => {
                Ok(Sections::Indices(a.astype(DType::I64)?.to_vec::<i64>()?.into_iter().map(|n| clamp(n.into())).collect()))
            }
            Some(Value::Tuple(items) | Value::List(items)) => {
                Ok(Sections::Indices(items.iter().map(|n| n.int(args.op()).map(clamp)).collect::<Result<_>>()?))
            }
            _ => {
                let count: isize = FromArgs::from_args(args, name)?;
                // A negative count becomes 0. `split_into_sections` rejects 0 after it has checked the axis, as in NumPy.
                Ok(Sections::Count(count.max(0) as usize))
            }
        }
    }
}

/// Estimated memory of one part of a split, an array with its own layout, in bytes. A failed allocation of a part would abort the process,
/// so the total is checked first.
const ESTIMATED_BYTES_PER_PART: usize = 600;

/// Returns the parts of an array along `axis`. If `equal` is true and `sections` is a number of parts, the number must divide the extent of
/// the axis.
fn split_into_sections(op: &'static str, ary: &NdArray, sections: Sections, axis: isize, equal: bool) -> Result<Vec<NdArray>> {
    let axis = normalize_axis(op, axis, ary.ndim())?;
    let extent = ary.shape()[axis];
    let part = |start: isize, stop: isize| slice_axis(ary, axis, start, stop, 1);
    match sections {
        Sections::Count(0) => Err(Error::value(op, "number sections must be larger than 0.")),
        Sections::Count(count) if equal && !extent.is_multiple_of(count) => {
            let message = format!("array split does not result in an equal division: {extent} elements, {count} parts");
            Err(Error::value(op, message))
        }
        Sections::Count(count) => {
            check_memory_available(op, count.saturating_mul(ESTIMATED_BYTES_PER_PART))?;
            let (length, longer) = (extent / count, extent % count);
            let start = |n: usize| (n * length + n.min(longer)) as isize;
            try_collect(op, (0..count).map(|n| part(start(n), start(n + 1))))?.into_iter().collect()
        }
        Sections::Indices(indices) => {
            let starts = [0].into_iter().chain(indices.iter().copied());
            let stops = indices.iter().copied().chain([extent as isize]);
            starts.zip(stops).map(|(start, stop)| part(start, stop)).collect()
        }
    }
}

/// Reads the arguments of a split function that `eval` calls by its name, and calls `f`. The result is a list of views, as in NumPy.
fn split_from_args(args: &Args, f: impl FnOnce(&NdArray, Sections, isize) -> Result<Vec<NdArray>>) -> Result<Value> {
    f(&args.array("ary")?, FromArgs::from_args(args, "indices_or_sections")?, args.int_or("axis", 0)?).map(arrays_to_list_value)
}

/// Splits an array along an axis into equal parts, or at indices (`numpy.split`). Returns views.
///
/// # Errors
/// A number of parts that does not divide the axis, no parts, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 6, 1)?;
/// let halves = cuprum::split(&a, 2, 0)?;
/// assert_eq!(halves[1].to_vec::<i64>()?, [3, 4, 5]);
/// let parts = cuprum::split(&a, [1, 4], 0)?;
/// assert_eq!(parts[1].to_vec::<i64>()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("split(ary, indices_or_sections, axis=0)", call = |args| split_from_args(args, split))]
pub fn split(ary: &NdArray, sections: impl Into<Sections>, axis: isize) -> Result<Vec<NdArray>> {
    split_into_sections("split", ary, sections.into(), axis, true)
}

/// Splits an array along an axis into parts of nearly equal length, or at indices (`numpy.array_split`). Returns views.
///
/// The first parts are one longer if the number does not divide the axis.
///
/// # Errors
/// No parts, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, array_split};
/// # fn main() -> cuprum::Result<()> {
/// let parts = array_split(&array![1, 2, 3, 4, 5], 2, 0)?;
/// assert_eq!(parts, [array![1, 2, 3], array![4, 5]]);
/// # Ok(())
/// # }
/// ```
#[numpy("array_split(ary, indices_or_sections, axis=0)", call = |args| split_from_args(args, array_split))]
pub fn array_split(ary: &NdArray, sections: impl Into<Sections>, axis: isize) -> Result<Vec<NdArray>> {
    split_into_sections("array_split", ary, sections.into(), axis, false)
}

/// Splits an array along the second axis, a 1-D array along the first (`numpy.hsplit`). Returns views.
///
/// # Errors
/// A 0-d array, and the errors of [`split`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, hsplit};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(hsplit(&array![[1, 2], [3, 4]], 2)?, [array![[1], [3]], array![[2], [4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("hsplit(ary, indices_or_sections)", call = |args| split_from_args(args, |ary, sections, _| hsplit(ary, sections)))]
pub fn hsplit(ary: &NdArray, sections: impl Into<Sections>) -> Result<Vec<NdArray>> {
    split_with_min_ndim("hsplit", ary, sections.into(), 1, if ary.ndim() > 1 { 1 } else { 0 })
}

/// Splits an array along the first axis (`numpy.vsplit`). Returns views.
///
/// # Errors
/// An array of fewer than two dimensions, and the errors of [`split`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, vsplit};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(vsplit(&array![[1, 2], [3, 4]], 2)?, [array![[1, 2]], array![[3, 4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("vsplit(ary, indices_or_sections)", call = |args| split_from_args(args, |ary, sections, _| vsplit(ary, sections)))]
pub fn vsplit(ary: &NdArray, sections: impl Into<Sections>) -> Result<Vec<NdArray>> {
    split_with_min_ndim("vsplit", ary, sections.into(), 2, 0)
}

/// Splits an array along the third axis (`numpy.dsplit`). Returns views.
///
/// # Errors
/// An array of fewer than three dimensions, and the errors of [`split`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, dsplit};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(dsplit(&array![[[1, 2], [3, 4]]], 2)?, [array![[[1], [3]]], array![[[2], [4]]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("dsplit(ary, indices_or_sections)", call = |args| split_from_args(args, |ary, sections, _| dsplit(ary, sections)))]
pub fn dsplit(ary: &NdArray, sections: impl Into<Sections>) -> Result<Vec<NdArray>> {
    split_with_min_ndim("dsplit", ary, sections.into(), 3, 2)
}

/// Splits an array of at least `ndim` axes along `axis`.
fn split_with_min_ndim(op: &'static str, ary: &NdArray, sections: Sections, ndim: usize, axis: isize) -> Result<Vec<NdArray>> {
    match ary.ndim() < ndim {
        true => Err(Error::shape(op, format!("{op} only works on arrays of {ndim} or more dimensions"), &[ary.shape()])),
        false => split_into_sections(op, ary, sections, axis, true),
    }
}

/// Returns the slices along an axis (`numpy.unstack`). Returns views without the axis.
///
/// # Errors
/// A 0-d array, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, unstack};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(unstack(&array![[1, 2], [3, 4]], 1)?, [array![1, 3], array![2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("unstack(x, /, *, axis=0)")]
pub fn unstack(x: &NdArray, axis: isize) -> Result<Vec<NdArray>> {
    if x.ndim() == 0 {
        return Err(Error::value("unstack", "Input array must be at least 1-d."));
    }
    let x = moveaxis(x, [axis], [0])?;
    check_memory_available("unstack", x.shape()[0].saturating_mul(ESTIMATED_BYTES_PER_PART))?;
    try_collect("unstack", (0..x.shape()[0]).map(|n| x.index(&[Item::from(n)])))?.into_iter().collect()
}
