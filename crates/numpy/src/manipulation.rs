//! Array manipulation routines.

use cuprum_core::buffer::try_collect;
use cuprum_core::function::{FromArgs, Indices, IntoValue};
use cuprum_core::layout::{self, checked_size, normalize_axis};
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{
    Axes, DType, Error, IntoShape, Item, NdArray, Operand, Result, Scalar, Side, add, argwhere, assemble, bincount, broadcast_to, concat,
    equal, expand_dims, flatnonzero, flip, less, logical_and, logical_not, maximum, moveaxis, numpy, subtract, where_,
};

use crate::common::{at_least, filled, index_range, list_value, rest_arrays, slice_axis};

/// Swaps the last two axes (`numpy.matrix_transpose`). Returns a view.
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::matrix_transpose;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(matrix_transpose(&array![[1, 2], [3, 4]])?, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("matrix_transpose(x, /)", aliases("linalg.matrix_transpose"))]
pub fn matrix_transpose(x: &NdArray) -> Result<NdArray> {
    x.mt()
}

/// Reverses the first axis (`numpy.flipud`). Returns a view.
///
/// # Errors
/// A 0-d array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::flipud;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(flipud(&array![[1, 2], [3, 4]])?, array![[3, 4], [1, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("flipud(m)")]
pub fn flipud(m: &NdArray) -> Result<NdArray> {
    m.flip(0)
}

/// Reverses the second axis (`numpy.fliplr`). Returns a view.
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::fliplr;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(fliplr(&array![[1, 2], [3, 4]])?, array![[2, 1], [4, 3]]);
/// # Ok(())
/// # }
/// ```
#[numpy("fliplr(m)")]
pub fn fliplr(m: &NdArray) -> Result<NdArray> {
    m.flip(1)
}

/// Joins arrays along the first axis, 1-D arrays as one row each (`numpy.vstack`).
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (NdArray::from_slice(&[1, 2])?, NdArray::from_slice(&[3, 4])?);
/// assert_eq!(cuprum_numpy::vstack([&a, &b])?.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("vstack(tup)", aliases("row_stack"))]
pub fn vstack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let rows: Result<Vec<NdArray>> = arrays.into_iter().map(|a| at_least(a.as_ref(), 2)).collect();
    concat(&rows?, 0)
}

/// Joins arrays along the second axis, 1-D arrays along the first (`numpy.hstack`).
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::hstack;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(hstack([array![1, 2], array![3]])?, array![1, 2, 3]);
/// assert_eq!(hstack([array![[1], [2]], array![[3], [4]]])?, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("hstack(tup)")]
pub fn hstack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let parts: Vec<NdArray> = arrays.into_iter().map(|a| at_least(a.as_ref(), 1)).collect::<Result<_>>()?;
    let axis = if parts.first().is_some_and(|p| p.ndim() == 1) { 0 } else { 1 };
    concat(&parts, axis)
}

/// Joins arrays as columns: along the second axis, 1-D arrays as one column each (`numpy.column_stack`).
///
/// Passes over memory: one.
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::column_stack;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(column_stack([array![1, 2], array![3, 4]])?, array![[1, 3], [2, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("column_stack(tup)")]
pub fn column_stack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    let column = |a: &NdArray| if a.ndim() < 2 { a.reshape([-1, 1]) } else { Ok(a.clone()) };
    concat(&arrays.into_iter().map(|a| column(a.as_ref())).collect::<Result<Vec<_>>>()?, 1)
}

/// Joins arrays along the third axis, after [`atleast_3d`] (`numpy.dstack`).
///
/// Passes over memory: one.
///
/// # Errors
/// No arrays, extents that differ, arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::dstack;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(dstack([array![1, 2], array![3, 4]])?, array![[[1, 3], [2, 4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("dstack(tup)")]
pub fn dstack(#[name("tup")] arrays: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    concat(&arrays.into_iter().map(|a| atleast_3d(a.as_ref())).collect::<Result<Vec<_>>>()?, 2)
}

/// Calls `f` with each positional argument. Returns one array for one argument, and a tuple for several.
fn each_by_name(args: &Args, f: impl Fn(&NdArray) -> Result<NdArray>) -> Result<Value> {
    let arrays = rest_arrays(args)?.iter().map(f).collect::<Result<Vec<_>>>()?;
    match <[NdArray; 1]>::try_from(arrays) {
        Ok([array]) => Ok(Value::Array(array)),
        Err(arrays) => Ok(arrays.into_value()),
    }
}

/// Returns the array with at least one axis: a view (`numpy.atleast_1d`).
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, array};
/// use cuprum_numpy::atleast_1d;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(atleast_1d(&NdArray::scalar(3.0)?)?, array![3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("atleast_1d(*arys)", call = |args| each_by_name(args, atleast_1d))]
pub fn atleast_1d(ary: &NdArray) -> Result<NdArray> {
    at_least(ary, 1)
}

/// Returns the array with at least two axes: a view (`numpy.atleast_2d`). A 1-D array becomes one row.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::atleast_2d;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(atleast_2d(&array![1, 2])?, array![[1, 2]]);
/// # Ok(())
/// # }
/// ```
#[numpy("atleast_2d(*arys)", call = |args| each_by_name(args, atleast_2d))]
pub fn atleast_2d(ary: &NdArray) -> Result<NdArray> {
    at_least(ary, 2)
}

/// Returns the array with at least three axes: a view (`numpy.atleast_3d`). Shape `(n,)` becomes `(1, n, 1)`, `(m, n)` becomes `(m, n, 1)`.
///
/// # Errors
/// Errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::atleast_3d;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(atleast_3d(&array![1, 2])?.shape(), [1, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("atleast_3d(*arys)", call = |args| each_by_name(args, atleast_3d))]
pub fn atleast_3d(ary: &NdArray) -> Result<NdArray> {
    match ary.ndim() {
        0 => at_least(ary, 3),
        1 => expand_dims(ary, [0, 2]),
        2 => expand_dims(ary, [2]),
        _ => Ok(ary.clone()),
    }
}

/// Broadcasts arrays to their common shape: views (`numpy.broadcast_arrays`).
///
/// # Errors
/// Shapes that do not broadcast.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::broadcast_arrays;
/// # fn main() -> cuprum::Result<()> {
/// let both = broadcast_arrays(&[array![1, 2], array![[3], [4]]])?;
/// assert_eq!(both, [array![[1, 2], [1, 2]], array![[3, 3], [4, 4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("broadcast_arrays(*args)", call = |args| broadcast_arrays(&rest_arrays(args)?).map(IntoValue::into_value))]
pub fn broadcast_arrays(arrays: &[NdArray]) -> Result<Vec<NdArray>> {
    let shapes: Vec<&[usize]> = arrays.iter().map(NdArray::shape).collect();
    let shape = layout::broadcast_shapes("broadcast_arrays", &shapes)?;
    arrays.iter().map(|a| broadcast_to(a, &shape[..])).collect()
}

fn broadcast_shapes_by_name(args: &Args) -> Result<Value> {
    let extent = |n: &Value| {
        let n = n.index(args.op())?;
        usize::try_from(n).map_err(|_| Error::value(args.op(), format!("negative dimension {n}")))
    };
    let shape = |value: &Value| match value.items() {
        Some(items) => items.iter().map(extent).collect(),
        None => Ok(vec![extent(value)?]),
    };
    let shapes = args.rest().iter().map(shape).collect::<Result<Vec<_>>>()?;
    let common = broadcast_shapes(&shapes.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    Ok(Value::tuple(common.into_iter().map(Value::from)))
}

/// Returns the shape that all of the shapes broadcast to (`numpy.broadcast_shapes`).
///
/// # Errors
/// Shapes that do not broadcast.
///
/// # Examples
/// ```
/// assert_eq!(cuprum_numpy::broadcast_shapes(&[&[1, 2], &[3, 1], &[2]])?, [3, 2]);
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[numpy("broadcast_shapes(*args)", call = broadcast_shapes_by_name)]
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>> {
    Ok(layout::broadcast_shapes("broadcast_shapes", shapes)?.to_vec())
}

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
        match args.get(name) {
            Some(Value::Array(a)) if a.ndim() == 1 && a.dtype().is_int() => {
                Ok(Sections::Indices(a.astype(DType::I64)?.to_vec::<i64>()?.into_iter().map(|i| i as isize).collect()))
            }
            Some(value) if value.items().is_some() => FromArgs::from_args(args, name).map(Sections::Indices),
            _ => {
                let count: isize = FromArgs::from_args(args, name)?;
                usize::try_from(count).map(Sections::Count).map_err(|_| Error::value(args.op(), "number sections must be larger than 0."))
            }
        }
    }
}

/// Returns the parts of an array along `axis`. A number of parts has to divide the axis if `equal`.
fn split_checked(op: &'static str, ary: &NdArray, sections: Sections, axis: isize, equal: bool) -> Result<Vec<NdArray>> {
    let axis = normalize_axis(op, axis, ary.ndim())?;
    let extent = ary.shape()[axis];
    let part = |start: isize, stop: isize| slice_axis(ary, axis, start, stop, 1);
    match sections {
        Sections::Count(0) => Err(Error::value(op, "number sections must be larger than 0.")),
        Sections::Count(count) if equal && !extent.is_multiple_of(count) => {
            Err(Error::value(op, "array split does not result in an equal division"))
        }
        Sections::Count(count) => {
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

/// Reads the arguments of a split by name and calls `f`, which returns views. NumPy returns a list.
fn split_by_name(args: &Args, f: impl FnOnce(&NdArray, Sections, isize) -> Result<Vec<NdArray>>) -> Result<Value> {
    f(&args.array("ary")?, FromArgs::from_args(args, "indices_or_sections")?, args.int_or("axis", 0)?).map(list_value)
}

/// Splits an array along an axis into equal parts, or at indices (`numpy.split`). Returns views.
///
/// # Errors
/// A number of parts that does not divide the axis, no parts, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 6, 1)?;
/// let halves = cuprum_numpy::split(&a, 2, 0)?;
/// assert_eq!(halves[1].to_vec::<i64>()?, [3, 4, 5]);
/// let parts = cuprum_numpy::split(&a, [1, 4], 0)?;
/// assert_eq!(parts[1].to_vec::<i64>()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("split(ary, indices_or_sections, axis=0)", call = |args| split_by_name(args, split))]
pub fn split(ary: &NdArray, sections: impl Into<Sections>, axis: isize) -> Result<Vec<NdArray>> {
    split_checked("split", ary, sections.into(), axis, true)
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
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::array_split;
/// # fn main() -> cuprum::Result<()> {
/// let parts = array_split(&array![1, 2, 3, 4, 5], 2, 0)?;
/// assert_eq!(parts, [array![1, 2, 3], array![4, 5]]);
/// # Ok(())
/// # }
/// ```
#[numpy("array_split(ary, indices_or_sections, axis=0)", call = |args| split_by_name(args, array_split))]
pub fn array_split(ary: &NdArray, sections: impl Into<Sections>, axis: isize) -> Result<Vec<NdArray>> {
    split_checked("array_split", ary, sections.into(), axis, false)
}

/// Splits an array along the second axis, a 1-D array along the first (`numpy.hsplit`). Returns views.
///
/// # Errors
/// A 0-d array, and the errors of [`split`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::hsplit;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(hsplit(&array![[1, 2], [3, 4]], 2)?, [array![[1], [3]], array![[2], [4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("hsplit(ary, indices_or_sections)", call = |args| split_by_name(args, |ary, sections, _| hsplit(ary, sections)))]
pub fn hsplit(ary: &NdArray, sections: impl Into<Sections>) -> Result<Vec<NdArray>> {
    split_at_least("hsplit", ary, sections.into(), 1, if ary.ndim() > 1 { 1 } else { 0 })
}

/// Splits an array along the first axis (`numpy.vsplit`). Returns views.
///
/// # Errors
/// An array of fewer than two dimensions, and the errors of [`split`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::vsplit;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(vsplit(&array![[1, 2], [3, 4]], 2)?, [array![[1, 2]], array![[3, 4]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("vsplit(ary, indices_or_sections)", call = |args| split_by_name(args, |ary, sections, _| vsplit(ary, sections)))]
pub fn vsplit(ary: &NdArray, sections: impl Into<Sections>) -> Result<Vec<NdArray>> {
    split_at_least("vsplit", ary, sections.into(), 2, 0)
}

/// Splits an array along the third axis (`numpy.dsplit`). Returns views.
///
/// # Errors
/// An array of fewer than three dimensions, and the errors of [`split`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::dsplit;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(dsplit(&array![[[1, 2], [3, 4]]], 2)?, [array![[[1], [3]]], array![[[2], [4]]]]);
/// # Ok(())
/// # }
/// ```
#[numpy("dsplit(ary, indices_or_sections)", call = |args| split_by_name(args, |ary, sections, _| dsplit(ary, sections)))]
pub fn dsplit(ary: &NdArray, sections: impl Into<Sections>) -> Result<Vec<NdArray>> {
    split_at_least("dsplit", ary, sections.into(), 3, 2)
}

/// Splits an array of at least `ndim` axes along `axis`.
fn split_at_least(op: &'static str, ary: &NdArray, sections: Sections, ndim: usize, axis: isize) -> Result<Vec<NdArray>> {
    match ary.ndim() < ndim {
        true => Err(Error::shape(op, format!("{op} only works on arrays of {ndim} or more dimensions"), &[ary.shape()])),
        false => split_checked(op, ary, sections, axis, true),
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
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::unstack;
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
    try_collect("unstack", (0..x.shape()[0]).map(|n| x.index(&[Item::from(n)])))?.into_iter().collect()
}

/// Returns the array repeated along axes, a number of times for each (`numpy.tile`).
///
/// The shorter of `reps` and the shape is extended by leading ones.
///
/// Passes over memory: one, which writes the result. Nothing is copied if all numbers are 1.
///
/// # Errors
/// A result whose size overflows, or too many axes.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2])?;
/// assert_eq!(cuprum_numpy::tile(&a, [2, 2])?.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("tile(A, reps)", call = |args| tile(&args.array("A")?, args.shape("reps")?).map(Value::Array))]
pub fn tile(a: &NdArray, reps: impl IntoShape) -> Result<NdArray> {
    let mut reps = reps.into_shape();
    let a = at_least(a, reps.len())?;
    let leading = a.ndim() - reps.len();
    reps.insert_many(0, std::iter::repeat_n(1, leading));
    // Each repeated axis follows an axis of stride 0 that counts the repetitions. Reshaping merges the two.
    let (mut items, mut widened, mut shape) = (Vec::new(), Vec::new(), Vec::new());
    for (&count, &extent) in reps.iter().zip(a.shape()) {
        if count != 1 {
            items.push(Item::NewAxis);
            widened.push(count);
        }
        items.push(Item::range(None, None, 1));
        widened.push(extent);
        shape.push(extent.checked_mul(count).ok_or_else(|| Error::shape("tile", "the result is too large", &[a.shape(), &reps]))?);
    }
    checked_size("tile", &shape)?;
    broadcast_to(&a.index(&items)?, widened)?.reshape(shape)
}

/// Returns each element repeated along an axis, or of the flattened array for `None` (`numpy.repeat`).
///
/// `repeats` is a number, or an array of integers with a number for each element of the axis.
///
/// Passes over memory: one, which writes the result. An array of numbers is scanned and searched first, and the call waits for the
/// device to add the numbers.
///
/// # Errors
/// Negative numbers, numbers that are not integers or not one for each element, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 2])?;
/// assert_eq!(cuprum_numpy::repeat(&a, 2, None)?.to_vec::<i32>()?, [1, 1, 2, 2]);
/// let counts = NdArray::from_slice(&[3, 1])?;
/// assert_eq!(cuprum_numpy::repeat(&a, &counts, 0)?.to_vec::<i32>()?, [1, 1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("repeat(a, repeats, axis=None)", method)]
pub fn repeat(a: &NdArray, repeats: impl Into<Operand>, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "repeat";
    let (a, axis) = match axis.into() {
        None => (a.ravel()?, 0),
        Some(axis) => (at_least(a, 1)?, normalize_axis(name, axis, a.ndim().max(1))?),
    };
    let negative = || Error::value(name, "repeats may not contain negative values.");
    let count = match repeats.into() {
        Operand::Scalar(s @ (Scalar::Bool(_) | Scalar::Int(_))) => s.as_int().unwrap_or(0),
        // As in NumPy, a Python float is truncated.
        Operand::Scalar(Scalar::Float(x)) if x.is_finite() => x as i128,
        Operand::Scalar(_) => return Err(Error::value(name, "the numbers of repetitions must be integers")),
        Operand::Array(counts) => {
            if !counts.dtype().can_cast_safe(DType::I64) {
                return Err(Error::dtype(name, "Cannot cast array data to int64 according to the rule 'safe'", &[counts.dtype()]));
            }
            match *counts.shape() {
                [] | [1] => counts.item()?.as_int().unwrap_or(0),
                [n] if n == a.shape()[axis] => return repeat_each(&a, &counts.astype(DType::I64)?, axis),
                _ => return Err(Error::shape(name, "operands could not be broadcast together", &[&[a.shape()[axis]], counts.shape()])),
            }
        }
    };
    if count < 0 {
        return Err(negative());
    }
    let too_large = || Error::shape(name, format!("{count} repetitions are too many"), &[a.shape()]);
    let count = usize::try_from(count).map_err(|_| too_large())?;
    let mut shape = a.shape().to_vec();
    shape[axis] = shape[axis].checked_mul(count).ok_or_else(too_large)?;
    checked_size(name, &shape)?;
    let mut widened = a.shape().to_vec();
    widened.insert(axis + 1, count);
    broadcast_to(&expand_dims(&a, [axis as isize + 1])?, widened)?.reshape(shape)
}

/// Returns slice `n` along `axis` repeated `counts[n]` times.
fn repeat_each(a: &NdArray, counts: &NdArray, axis: usize) -> Result<NdArray> {
    if counts.size() == 0 {
        return Ok(a.clone());
    }
    if counts.min(())?.item()?.as_int().is_none_or(|least| least < 0) {
        return Err(Error::value("repeat", "repeats may not contain negative values."));
    }
    let ends = counts.cumsum(0)?;
    let total = ends.index(&[Item::At(-1)])?.item()?.as_int().and_then(|n| usize::try_from(n).ok());
    let total = total.ok_or_else(|| Error::shape("repeat", "the result is too large", &[a.shape()]))?;
    let mut shape = a.shape().to_vec();
    shape[axis] = total;
    checked_size("repeat", &shape)?;
    // Element n of the result belongs to the first slice that ends after n.
    a.take(&ends.searchsorted(&index_range(a.device(), total)?, Side::Right)?, axis as isize)
}

/// Returns the array with its elements moved along axes, those beyond the last position to the first (`numpy.roll`).
///
/// One shift serves all axes, and one axis takes several shifts, which add up. Without axes, the flattened array is rolled.
///
/// Passes over memory: one.
///
/// # Errors
/// Numbers of shifts and axes that differ, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 5, 1)?;
/// assert_eq!(cuprum_numpy::roll(&a, &[2], ())?.to_vec::<i64>()?, [3, 4, 0, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("roll(a, shift, axis=None)")]
pub fn roll(a: &NdArray, shift: &[isize], #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
    let name = "roll";
    let axes = match axes.into() {
        Axes::All => return roll(&a.ravel()?, shift, 0)?.reshape(a.shape()),
        Axes::One(axis) => vec![axis],
        Axes::Several(axes) => axes.to_vec(),
    };
    let pairs = match (shift.len(), axes.len()) {
        (s, n) if s == n || s == 1 || n == 1 => s.max(n) * usize::from(s > 0 && n > 0),
        (s, n) => return Err(Error::value(name, format!("{s} shifts and {n} axes cannot be broadcast together"))),
    };
    let mut shifts = vec![0isize; a.ndim()];
    for axis in &axes {
        normalize_axis(name, *axis, a.ndim())?;
    }
    for n in 0..pairs {
        let axis = normalize_axis(name, axes[n.min(axes.len() - 1)], a.ndim())?;
        let extent = a.shape()[axis].max(1) as isize;
        shifts[axis] = (shifts[axis] + shift[n.min(shift.len() - 1)].rem_euclid(extent)).rem_euclid(extent);
    }
    let mut parts = vec![(a.clone(), vec![0; a.ndim()])];
    for (axis, &shift) in shifts.iter().enumerate().filter(|(_, shift)| **shift != 0) {
        let cut = a.shape()[axis] as isize - shift;
        let mut cut_parts = Vec::with_capacity(2 * parts.len());
        for (part, start) in parts {
            let mut after = start.clone();
            after[axis] = shift as usize;
            cut_parts.push((slice_axis(&part, axis, cut, None, 1)?, start));
            cut_parts.push((slice_axis(&part, axis, 0, cut, 1)?, after));
        }
        parts = cut_parts;
    }
    assemble(a.shape(), &parts)
}

/// Rotates an array by 90 degrees in the plane of two axes, `k` times from the first axis to the second (`numpy.rot90`). Returns a view.
///
/// # Errors
/// Axes that are equal, out of bounds, or not two.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::rot90;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(rot90(&array![[1, 2], [3, 4]], 1, &[0, 1])?, array![[2, 4], [1, 3]]);
/// # Ok(())
/// # }
/// ```
#[numpy("rot90(m, k=1, axes=(0, 1))")]
pub fn rot90(m: &NdArray, k: isize, axes: &[isize]) -> Result<NdArray> {
    let name = "rot90";
    let &[first, second] = axes else { return Err(Error::value(name, "len(axes) must be 2.")) };
    let (a, b) = (normalize_axis(name, first, m.ndim())? as isize, normalize_axis(name, second, m.ndim())? as isize);
    if a == b {
        return Err(Error::value(name, "Axes must be different."));
    }
    match k.rem_euclid(4) {
        0 => Ok(m.clone()),
        1 => flip(m, b)?.swapaxes(a, b),
        2 => flip(m, [a, b]),
        _ => flip(&m.swapaxes(a, b)?, b),
    }
}

/// Moves an axis before position `start` of the old axes (`numpy.rollaxis`). Returns a view. [`moveaxis`] is easier to use.
///
/// # Errors
/// An axis or a position out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, zeros};
/// use cuprum_numpy::rollaxis;
/// # fn main() -> cuprum::Result<()> {
/// let a = zeros((2, 3, 4), DType::F64)?;
/// assert_eq!(rollaxis(&a, 2, 0)?.shape(), [4, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("rollaxis(a, axis, start=0)")]
pub fn rollaxis(a: &NdArray, axis: isize, start: isize) -> Result<NdArray> {
    let (name, n) = ("rollaxis", a.ndim() as isize);
    let axis = normalize_axis(name, axis, a.ndim())? as isize;
    let position = if start < 0 { start + n } else { start };
    if !(0..=n).contains(&position) {
        return Err(Error::Axis { op: name, axis: start, ndim: a.ndim() + 1 });
    }
    let position = if axis < position { position - 1 } else { position };
    moveaxis(a, [axis], [position])
}

/// Joins two arrays along an axis, or their elements in C order for `None` (`numpy.append`).
///
/// Passes over memory: one.
///
/// # Errors
/// Extents that differ, an axis out of bounds, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::append;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(append(&array![1, 2], &array![[3, 4]], None)?, array![1, 2, 3, 4]);
/// assert_eq!(append(&array![[1, 2]], &array![[3, 4]], 0)?, array![[1, 2], [3, 4]]);
/// # Ok(())
/// # }
/// ```
#[numpy("append(arr, values, axis=None)")]
pub fn append(arr: &NdArray, values: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    match axis.into() {
        None => concat(&[arr.ravel()?, values.ravel()?], 0),
        Some(axis) => concat(&[arr.clone(), values.clone()], axis),
    }
}

/// Returns the array to insert into or delete from, and the axis: the flattened array for `None`.
fn flatten_without_axis(op: &'static str, arr: &NdArray, axis: Option<isize>) -> Result<(NdArray, usize)> {
    match axis {
        None => Ok((arr.ravel()?, 0)),
        Some(axis) => Ok((arr.clone(), normalize_axis(op, axis, arr.ndim())?)),
    }
}

/// Returns `index` counted from the front. Returns an error if it is outside an axis of extent `size`; with `at_end`, it may equal `size`.
fn checked_index(op: &'static str, index: i128, axis: usize, size: usize, at_end: bool) -> Result<usize> {
    let n = size as i128;
    let limit = if at_end { n + 1 } else { n };
    match (-n..limit).contains(&index) {
        true => Ok(if index < 0 { index + n } else { index } as usize),
        false => Err(Error::Index { op, index: index as i64, axis, size }),
    }
}

/// Returns an error unless `indices` has an integer dtype.
fn check_index_dtype(op: &'static str, indices: &NdArray) -> Result<()> {
    match indices.dtype().is_int() {
        true => Ok(()),
        false => Err(Error::dtype(op, "arrays used as indices must be of integer (or boolean) type", &[indices.dtype()])),
    }
}

/// Returns the array without the slices at `obj` along an axis (`numpy.delete`); for `None` without elements of the flattened array.
///
/// `obj` is an index, an array of indices, or a mask of the axis' length. Repeated indices count once.
///
/// Passes over memory: one for a single index. Several indices are counted first, and the rest is gathered; the call then waits for the
/// device.
///
/// # Errors
/// Indices out of bounds or not integers, a mask of another length, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 5, 1)?;
/// assert_eq!(cuprum_numpy::delete(&a, &NdArray::from_slice(&[1, -1])?, None)?.to_vec::<i64>()?, [0, 2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("delete(arr, obj, axis=None)")]
pub fn delete(arr: &NdArray, #[read(Indices)] obj: &NdArray, axis: impl Into<Option<isize>>) -> Result<NdArray> {
    let name = "delete";
    let (a, axis) = flatten_without_axis(name, arr, axis.into())?;
    let size = a.shape()[axis];
    if obj.dtype() == DType::Bool {
        if obj.shape() != [size] {
            let message = format!("boolean array argument obj to delete must be one dimensional and match the axis length of {size}");
            return Err(Error::shape(name, message, &[obj.shape()]));
        }
        return a.compress(&logical_not(obj)?, axis as isize);
    }
    check_index_dtype(name, obj)?;
    if obj.size() == 1 {
        let at = checked_index(name, obj.item()?.as_int().unwrap_or(0), axis, size, false)? as isize;
        return concat(&[slice_axis(&a, axis, 0, at, 1)?, slice_axis(&a, axis, at + 1, None, 1)?], axis as isize);
    }
    if obj.size() == 0 {
        return Ok(a);
    }
    let indices = obj.astype(DType::I64)?.ravel()?;
    for extreme in [indices.min(())?, indices.max(())?] {
        checked_index(name, extreme.item()?.as_int().unwrap_or(0), axis, size, false)?;
    }
    let counts = bincount(&where_(less(&indices, 0)?, add(&indices, size)?, &indices)?, None, size)?;
    a.compress(&equal(&counts, 0)?, axis as isize)
}

/// Returns the array with `values` inserted before the indices `obj` along an axis (`numpy.insert`); for `None` into the flattened array.
///
/// `obj` is an index, or a 1-D array of indices into the array as it is. The values are converted to the array's dtype, and broadcast.
/// With a 0-d `obj`, the first axis of the values counts the inserted slices.
///
/// Passes over memory: one for a single index. For several, the indices are sorted, and one gather follows a join.
///
/// # Errors
/// Indices out of bounds or not integers, values that do not broadcast, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::arange(0, 3, 1)?;
/// let (at, values) = (NdArray::from_slice(&[0, 2])?, NdArray::from_slice(&[7, 8])?);
/// assert_eq!(cuprum_numpy::insert(&a, &at, &values, None)?.to_vec::<i64>()?, [7, 0, 1, 8, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("insert(arr, obj, values, axis=None)")]
pub fn insert(
    arr: &NdArray,
    #[read(Indices)] obj: &NdArray,
    values: impl Into<Operand>,
    axis: impl Into<Option<isize>>,
) -> Result<NdArray> {
    let name = "insert";
    let (a, axis) = flatten_without_axis(name, arr, axis.into())?;
    let size = a.shape()[axis];
    if obj.ndim() > 1 || (obj.dtype() == DType::Bool && obj.ndim() != 1) {
        let message = "index array argument obj to insert must be one dimensional or scalar";
        return Err(Error::shape(name, message, &[obj.shape()]));
    }
    let indices = if obj.dtype() == DType::Bool { flatnonzero(obj)? } else { obj.clone() };
    check_index_dtype(name, &indices)?;
    let values = match values.into() {
        Operand::Array(values) => values.astype(a.dtype())?,
        Operand::Scalar(s) => filled(&a, &[], s.checked_for(name, a.dtype())?, a.dtype())?,
    };
    if indices.size() == 1 {
        let at = checked_index(name, indices.item()?.as_int().unwrap_or(0), axis, size, true)?;
        let mut values = at_least(&values, a.ndim())?;
        if indices.ndim() == 0 {
            values = moveaxis(&values, [0], [axis as isize])?;
        }
        let mut shape = a.shape().to_vec();
        shape[axis] = values.shape().get(axis).copied().unwrap_or(1);
        let inserted = broadcast_assigned(&values, &shape)?;
        let parts = [slice_axis(&a, axis, 0, at as isize, 1)?, inserted, slice_axis(&a, axis, at as isize, None, 1)?];
        return concat(&parts, axis as isize);
    }
    let count = indices.size();
    let mut shape = a.shape().to_vec();
    shape[axis] = count;
    let inserted = broadcast_assigned(&values, &shape)?;
    if count == 0 {
        return Ok(a);
    }
    let indices = indices.astype(DType::I64)?;
    for extreme in [indices.min(())?, indices.max(())?] {
        checked_index(name, extreme.item()?.as_int().unwrap_or(0), axis, size, true)?;
    }
    let indices = where_(less(&indices, 0)?, add(&indices, size)?, &indices)?;
    // Slice n of the result is inserted if it is one of the sorted, shifted indices, and else a slice of the array.
    let order = indices.argsort(0)?;
    let places = add(indices.take(&order, 0)?, index_range(a.device(), count)?)?.eval()?.clone();
    let number = index_range(a.device(), size + count)?;
    let before = places.searchsorted(&number, Side::Right)?;
    let last = maximum(subtract(&before, 1)?, 0)?;
    let is_inserted = logical_and(before.greater(0)?, equal(places.take(&last, 0)?, &number)?)?;
    let from_array = subtract(add(&number, count)?, &before)?;
    let source = where_(is_inserted, order.take(&last, 0)?, from_array)?;
    concat(&[inserted, a], axis as isize)?.take(&source, axis as isize)
}

/// Broadcasts an assigned value to `shape`. Extra leading axes of extent 1 are dropped, as in NumPy's assignment.
fn broadcast_assigned(values: &NdArray, shape: &[usize]) -> Result<NdArray> {
    let leading = 0..values.ndim().saturating_sub(shape.len());
    let refuse = |_| Error::shape("insert", "could not broadcast the values to the inserted slices", &[values.shape(), shape]);
    values.squeeze(leading).and_then(|values| broadcast_to(&values, shape)).map_err(refuse)
}

/// Returns an array of the given shape filled with the elements in C order, repeated as often as needed (`numpy.resize`).
///
/// An array without elements gives zeros.
///
/// Passes over memory: one, which writes a whole number of copies of the array. None if the result is not larger than the array.
///
/// # Errors
/// A size that overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::resize;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(resize(&array![1, 2, 3], (2, 2))?, array![[1, 2], [3, 1]]);
/// # Ok(())
/// # }
/// ```
#[numpy("resize(a, new_shape)", call = |args| resize(&args.array("a")?, args.shape("new_shape")?).map(Value::Array))]
pub fn resize(a: &NdArray, new_shape: impl IntoShape) -> Result<NdArray> {
    let shape = new_shape.into_shape();
    let size = checked_size("resize", &shape)?;
    if size == 0 || a.size() == 0 {
        return filled(a, &shape, 0, a.dtype());
    }
    let flat = a.ravel()?;
    let copies = tile(&flat, size.div_ceil(flat.size()))?;
    slice_axis(&copies, 0, 0, size as isize, 1)?.reshape(shape)
}

/// Returns the array without leading (`f`) and trailing (`b`) zeros along axes, by default all (`numpy.trim_zeros`). Returns a view.
///
/// Passes over memory: one, which finds the elements that are not zero. The call waits for the device.
///
/// # Errors
/// Other letters in `trim`, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::trim_zeros;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(trim_zeros(&array![0, 1, 0, 2, 0], "fb", ())?, array![1, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("trim_zeros(filt, trim='fb', axis=None)")]
pub fn trim_zeros(filt: &NdArray, trim: &str, #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
    let name = "trim_zeros";
    let (front, back) = match trim.to_lowercase().as_str() {
        "fb" | "bf" => (true, true),
        "f" => (true, false),
        "b" => (false, true),
        _ => return Err(Error::value(name, format!("unexpected character(s) in `trim`: '{trim}'"))),
    };
    let axes = axes.into().resolve(name, filt.ndim())?;
    if axes.is_empty() {
        return Ok(filt.clone());
    }
    let nonzero = argwhere(filt)?;
    let mut items = vec![Item::range(None, None, 1); filt.ndim()];
    if nonzero.size() == 0 {
        for axis in axes {
            items[axis] = Item::range(0, 0, 1);
        }
        return filt.index(&items);
    }
    let (first, last) = (nonzero.min(0)?.to_vec::<i64>()?, nonzero.max(0)?.to_vec::<i64>()?);
    for axis in axes {
        items[axis] = Item::range(front.then_some(first[axis] as isize), back.then_some(last[axis] as isize + 1), 1);
    }
    filt.index(&items)
}

/// An array of nested blocks (`arrays` of `numpy.block`).
#[derive(Clone, Debug)]
pub enum Block {
    /// An array, which is not divided further.
    Array(NdArray),
    /// Blocks side by side. The innermost lists are joined along the last axis.
    List(Vec<Block>),
}

impl From<NdArray> for Block {
    fn from(array: NdArray) -> Block {
        Block::Array(array)
    }
}
impl From<&NdArray> for Block {
    fn from(array: &NdArray) -> Block {
        Block::Array(array.clone())
    }
}
impl<B: Into<Block>> From<Vec<B>> for Block {
    fn from(blocks: Vec<B>) -> Block {
        Block::List(blocks.into_iter().map(Into::into).collect())
    }
}
impl<B: Into<Block>, const N: usize> From<[B; N]> for Block {
    fn from(blocks: [B; N]) -> Block {
        Block::List(blocks.into_iter().map(Into::into).collect())
    }
}

/// Maximum nesting of blocks: the maximum number of axes.
const MAX_BLOCK_DEPTH: usize = layout::MAX_NDIM;

fn read_block(op: &'static str, value: &Value, depth: usize) -> Result<Block> {
    match value {
        Value::List(_) if depth == MAX_BLOCK_DEPTH => Err(Error::value(op, format!("lists are nested more than {depth} deep"))),
        Value::List(items) => items.iter().map(|item| read_block(op, item, depth + 1)).collect::<Result<_>>().map(Block::List),
        Value::Tuple(_) => Err(Error::value(op, "arrays is a tuple. Only lists can be used to arrange blocks")),
        value => value.array(op).map(Block::Array),
    }
}

impl FromArgs for Block {
    fn from_args(args: &Args, name: &str) -> Result<Block> {
        match args.value(name) {
            Some(value) => read_block(args.op(), value, 0),
            None => Err(Error::value(args.op(), format!("argument '{name}' is missing"))),
        }
    }
}

impl Block {
    /// Returns the nesting depth of the lists, which is the same everywhere, and the largest number of axes of an array.
    fn depth_and_ndim(&self) -> Result<(usize, usize)> {
        let Block::List(blocks) = self else { return Ok((0, self.ndim())) };
        let mut found: Option<(usize, usize)> = None;
        for block in blocks {
            let (depth, ndim) = block.depth_and_ndim()?;
            match &mut found {
                None => found = Some((depth, ndim)),
                Some((first, largest)) if *first == depth => *largest = ndim.max(*largest),
                Some((first, _)) => {
                    let message =
                        format!("List depths are mismatched. First element was at depth {first}, but there is one at depth {depth}");
                    return Err(Error::value("block", message));
                }
            }
        }
        match found {
            Some((depth, _)) if depth >= MAX_BLOCK_DEPTH => Err(Error::value("block", "the lists are nested too deep")),
            Some((depth, ndim)) => Ok((depth + 1, ndim)),
            None => Err(Error::value("block", "List cannot be empty")),
        }
    }

    fn ndim(&self) -> usize {
        if let Block::Array(array) = self { array.ndim() } else { 0 }
    }

    /// Returns the promoted dtype. As in NumPy's joins, inner lists promote first, which matters because promotion is not associative.
    fn dtype(&self) -> DType {
        match self {
            Block::Array(array) => array.dtype(),
            Block::List(blocks) => {
                let dtypes: Vec<DType> = blocks.iter().map(Block::dtype).collect();
                DType::promote_all(dtypes).unwrap_or(DType::F64)
            }
        }
    }

    /// Appends the arrays of this block with their positions to `parts`, and returns the shape of the block. `axis` is the axis along which
    /// its list is joined.
    fn collect_parts(&self, axis: usize, start: &[usize], parts: &mut Vec<(NdArray, Vec<usize>)>) -> Result<Vec<usize>> {
        let blocks = match self {
            Block::Array(array) => {
                let array = at_least(array, start.len())?;
                let shape = array.shape().to_vec();
                parts.push((array, start.to_vec()));
                return Ok(shape);
            }
            Block::List(blocks) => blocks,
        };
        let (mut position, mut whole) = (start.to_vec(), None::<Vec<usize>>);
        for block in blocks {
            let shape = block.collect_parts(axis + 1, &position, parts)?;
            position[axis] += shape[axis];
            match &mut whole {
                None => whole = Some(shape),
                Some(whole) => {
                    let fits = (0..shape.len()).all(|n| n == axis || shape[n] == whole[n]);
                    if !fits {
                        let message = format!("Mismatched array shapes in block along axis {axis}.");
                        return Err(Error::shape("block", message, &[whole, &shape]));
                    }
                    whole[axis] += shape[axis];
                }
            }
        }
        whole.ok_or_else(|| Error::value("block", "List cannot be empty"))
    }
}

/// Returns an array that consists of nested blocks (`numpy.block`).
///
/// The innermost lists are joined along the last axis, the next ones along the axis before it. Arrays get leading axes of extent 1.
///
/// Passes over memory: one.
///
/// # Errors
/// Empty lists, lists of different depths, extents that differ, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, ones, zeros};
/// use cuprum_numpy::{block, identity};
/// # fn main() -> cuprum::Result<()> {
/// let rows = [[identity(2, DType::F64)?, zeros([2, 3], DType::F64)?], [ones([3, 2], DType::F64)?, identity(3, DType::F64)?]];
/// assert_eq!(block(rows)?.shape(), [5, 5]);
/// # Ok(())
/// # }
/// ```
#[numpy("block(arrays)")]
pub fn block(arrays: impl Into<Block>) -> Result<NdArray> {
    let arrays = arrays.into();
    let (depth, ndim) = arrays.depth_and_ndim()?;
    let ndim = depth.max(ndim);
    let mut parts = Vec::new();
    let shape = arrays.collect_parts(ndim - depth, &vec![0; ndim], &mut parts)?;
    let dtype = arrays.dtype();
    for (part, _) in &mut parts {
        *part = part.astype(dtype)?;
    }
    assemble(&shape, &parts)
}
