//! Mathematical functions: differences, running sums, integrals, interpolation and convolution.

use std::f64::consts::TAU;

use cuprum_core::array::StoredArray;
use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{
    Axes, AxisOptions, DType, Error, Item, Layout, NdArray, Operand, Result, Scalar, Side, add, axis as over_axis, broadcast_to, clip,
    concat, divide, equal, flip, greater, isnan, less, logical_and, matmul, multiply, negative, not_equal, numpy, remainder, subtract,
    where_,
};

use crate::common::{array_on, at_least, filled, result_dtype, slice_axis};

/// Returns `value` as a part that [`concat`] joins to `a` along `axis`. A 0-d value becomes one slice.
fn as_part(a: &NdArray, value: &Operand, axis: usize) -> Result<NdArray> {
    let value = array_on(a.device(), value)?;
    if value.ndim() > 0 {
        return Ok(value);
    }
    let mut shape = a.shape().to_vec();
    shape[axis] = 1;
    broadcast_to(&value, shape)
}

fn diff_by_name(args: &Args) -> Result<Value> {
    diff(
        &args.array("a")?,
        args.int_or("n", 1)?,
        args.int_or("axis", -1)?,
        args.operand_or_none("prepend")?,
        args.operand_or_none("append")?,
    )
    .map(Value::Array)
}

/// Returns the `n`-th difference of neighbours along an axis (`numpy.diff`).
///
/// `prepend` and `append` are joined to the array first; a number becomes one slice. Differences of bool are "not equal". The result is
/// deferred.
///
/// Passes over memory: one for each order, and one for the join if there is something to join.
///
/// # Errors
/// A negative order, a 0-d array, an axis out of bounds, or extents that differ.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_slice(&[1, 4, 9, 16])?;
/// assert_eq!(cuprum_numpy::diff(&a, 1, -1, None, None)?.to_vec::<i32>()?, [3, 5, 7]);
/// assert_eq!(cuprum_numpy::diff(&a, 2, -1, None, None)?.to_vec::<i32>()?, [2, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("diff(a, n=1, axis=-1, prepend=None, append=None)", call = diff_by_name)]
pub fn diff(a: &NdArray, n: isize, axis: isize, prepend: Option<Operand>, append: Option<Operand>) -> Result<NdArray> {
    let name = "diff";
    if n == 0 {
        return Ok(a.clone());
    }
    if n < 0 {
        return Err(Error::value(name, format!("order must be non-negative but got {n}")));
    }
    if a.ndim() == 0 {
        return Err(Error::value(name, "diff requires input that is at least one dimensional"));
    }
    let axis = normalize_axis(name, axis, a.ndim())?;
    let mut parts = Vec::with_capacity(3);
    if let Some(value) = &prepend {
        parts.push(as_part(a, value, axis)?);
    }
    parts.push(a.clone());
    if let Some(value) = &append {
        parts.push(as_part(a, value, axis)?);
    }
    let mut a = if parts.len() > 1 { concat(&parts, axis as isize)? } else { a.clone() };
    for _ in 0..n {
        if a.shape()[axis] == 0 {
            break; // further differences are empty too
        }
        let (before, after) = (slice_axis(&a, axis, None, -1, 1)?, slice_axis(&a, axis, 1, None, 1)?);
        a = if a.dtype() == DType::Bool { not_equal(&after, &before)? } else { subtract(&after, &before)? };
    }
    Ok(a)
}

/// Returns the differences of neighbours in the flattened array, between `to_begin` and `to_end` (`numpy.ediff1d`).
///
/// The result has the dtype of the array.
///
/// Passes over memory: one, and one for the join if there is something to join.
///
/// # Errors
/// Values of a dtype that NumPy's rule `same_kind` does not convert, or bool.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::ediff1d;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![1, 4, 9];
/// assert_eq!(ediff1d(&a, None, None)?, array![3, 5]);
/// assert_eq!(ediff1d(&a, Some(7.into()), None)?, array![3, 5, 7]);
/// # Ok(())
/// # }
/// ```
#[numpy("ediff1d(ary, to_end=None, to_begin=None)", call = ediff1d_by_name)]
pub fn ediff1d(ary: &NdArray, to_end: Option<Operand>, to_begin: Option<Operand>) -> Result<NdArray> {
    let name = "ediff1d";
    let flat = ary.ravel()?;
    let differences = subtract(slice_axis(&flat, 0, 1, None, 1)?, slice_axis(&flat, 0, None, -1, 1)?)?;
    if to_end.is_none() && to_begin.is_none() {
        return Ok(differences);
    }
    let side = |operand: Option<Operand>, which: &str| {
        let Some(operand) = operand else { return Ok(None) };
        let value = array_on(ary.device(), &operand)?;
        if !value.dtype().can_cast_same_kind(ary.dtype()) {
            let message = format!("dtype of `{which}` must be compatible with input `ary` under the `same_kind` rule.");
            return Err(Error::dtype(name, message, &[value.dtype(), ary.dtype()]));
        }
        value.astype(ary.dtype())?.ravel().map(Some)
    };
    let parts: Vec<NdArray> = [side(to_begin, "to_begin")?, Some(differences), side(to_end, "to_end")?].into_iter().flatten().collect();
    concat(&parts, 0)
}

fn ediff1d_by_name(args: &Args) -> Result<Value> {
    ediff1d(&args.array("ary")?, args.operand_or_none("to_end")?, args.operand_or_none("to_begin")?).map(Value::Array)
}

/// The distances between samples along an axis.
#[derive(Clone)]
pub enum Spacing {
    /// The same distance everywhere.
    Uniform(Operand),
    /// The 1-D coordinates of the samples.
    Coordinates(NdArray),
}

impl From<f64> for Spacing {
    fn from(distance: f64) -> Spacing {
        Spacing::Uniform(distance.into())
    }
}
impl From<Scalar> for Spacing {
    fn from(distance: Scalar) -> Spacing {
        Spacing::Uniform(distance.into())
    }
}
impl From<&NdArray> for Spacing {
    fn from(coordinates: &NdArray) -> Spacing {
        match coordinates.ndim() {
            0 => Spacing::Uniform(coordinates.into()),
            _ => Spacing::Coordinates(coordinates.clone()),
        }
    }
}

fn gradient_by_name(args: &Args) -> Result<Value> {
    let f = args.array("f")?;
    let axes: Axes = FromArgs::from_args(args, "axis")?;
    let spacing = |value: &Value| match value.operand(args.op())? {
        Operand::Scalar(s) => Ok(Spacing::from(s)),
        Operand::Array(a) => Ok(Spacing::from(&a)),
    };
    let spacings = args.rest().iter().map(spacing).collect::<Result<Vec<_>>>()?;
    let order = args.int_or("edge_order", 1)?;
    let order = usize::try_from(order).map_err(|_| Error::value("gradient", "'edge_order' must be 1 or 2"))?;
    let mut gradients = gradient(&f, &spacings, axes, order)?;
    Ok(if gradients.len() == 1 { Value::Array(gradients.remove(0)) } else { Value::tuple(gradients.into_iter().map(Value::Array)) })
}

/// Returns the gradient along each axis, by central differences and one-sided differences at the ends (`numpy.gradient`).
///
/// `spacings` is empty for distances of 1, or has one distance for all axes, or one for each. `edge_order` is the order of accuracy at the
/// ends, 1 or 2. Integers are computed in float64.
///
/// Passes over memory for each axis: one for the differences, and one that joins them with those at the ends.
///
/// # Errors
/// An axis with fewer than `edge_order + 1` elements, coordinates of another length, a number of distances that does not match, or an axis
/// out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let f = cuprum::NdArray::from_slice(&[1.0, 2.0, 4.0, 7.0])?;
/// assert_eq!(cuprum_numpy::gradient(&f, &[], (), 1)?[0].to_vec::<f64>()?, [1.0, 1.5, 2.5, 3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("gradient(f, *varargs, axis=None, edge_order=1)", call = gradient_by_name)]
pub fn gradient(f: &NdArray, spacings: &[Spacing], #[name("axis")] axes: impl Into<Axes>, edge_order: usize) -> Result<Vec<NdArray>> {
    let name = "gradient";
    let axes = axes.into().resolve(name, f.ndim())?;
    let uniform = |n: usize| vec![Spacing::from(1.0); n];
    let spacings = match spacings {
        [] => uniform(axes.len()),
        [Spacing::Uniform(distance)] => vec![Spacing::Uniform(distance.clone()); axes.len()],
        several if several.len() == axes.len() => several.to_vec(),
        several => return Err(Error::value(name, format!("{} distances for {} axes", several.len(), axes.len()))),
    };
    if edge_order > 2 {
        return Err(Error::value(name, "'edge_order' greater than 2 not supported"));
    }
    let dtype = if f.dtype().is_inexact() { f.dtype() } else { DType::F64 };
    // As in NumPy, bool is not converted, and its differences are refused.
    let f = if f.dtype().is_int() { f.astype(DType::F64)? } else { f.clone() };
    axes.iter().zip(&spacings).map(|(&axis, spacing)| gradient_along(&f, axis, spacing, edge_order, dtype)).collect()
}

/// Applies a function to a distance. A number stays a weak scalar.
fn map_distance(h: &Operand, of_number: impl Fn(f64) -> f64, of_array: impl Fn(&NdArray) -> Result<NdArray>) -> Result<Operand> {
    match h {
        Operand::Scalar(h) => Ok(of_number(h.as_f64()).into()),
        Operand::Array(h) => of_array(h).map(Operand::from),
    }
}

/// Returns the gradient along one axis.
fn gradient_along(f: &NdArray, axis: usize, spacing: &Spacing, edge_order: usize, dtype: DType) -> Result<NdArray> {
    let name = "gradient";
    let extent = f.shape()[axis];
    let distances = match spacing {
        Spacing::Uniform(distance) => Distances::Uniform(distance.clone()),
        Spacing::Coordinates(x) => Distances::of_coordinates(x, f, axis)?,
    };
    if extent < edge_order + 1 {
        let message = "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.";
        return Err(Error::shape(name, message, &[f.shape()]));
    }
    let part = |start: isize, stop: Option<isize>| slice_axis(f, axis, start, stop, 1);
    let one = |n: isize| slice_axis(f, axis, n, if n == -1 { None } else { Some(n + 1) }, 1);
    let weighted = |a: Operand, x: NdArray, b: Operand, y: NdArray, c: Operand, z: NdArray| {
        add(add(multiply(a, x)?, multiply(b, y)?)?, multiply(c, z)?)
    };
    let inner = match &distances {
        _ if extent < 3 => None,
        Distances::Uniform(h) => {
            Some(divide(subtract(part(2, None)?, part(0, Some(-2))?)?, map_distance(h, |h| 2.0 * h, |h| multiply(2.0, h))?)?)
        }
        Distances::Varying(h) => {
            let (h1, h2) = (slice_axis(h, axis, None, -1, 1)?, slice_axis(h, axis, 1, None, 1)?);
            let sum = add(&h1, &h2)?;
            let a = divide(negative(&h2)?, multiply(&h1, &sum)?)?;
            let b = divide(subtract(&h2, &h1)?, multiply(&h1, &h2)?)?;
            let c = divide(&h1, multiply(&h2, &sum)?)?;
            Some(weighted(a.into(), part(0, Some(-2))?, b.into(), part(1, Some(-1))?, c.into(), part(2, None)?)?)
        }
    };
    let ends = if edge_order < 2 {
        let at = |n: isize, x: NdArray, y: NdArray| divide(subtract(x, y)?, distances.at(axis, n)?);
        [at(0, one(1)?, one(0)?)?, at(-1, one(-1)?, one(-2)?)?]
    } else {
        let [first, last] = match &distances {
            Distances::Uniform(h) => {
                let by = |factor: f64| map_distance(h, |h| factor / h, |h| divide(factor, h));
                [[by(-1.5)?, by(2.0)?, by(-0.5)?], [by(0.5)?, by(-2.0)?, by(1.5)?]]
            }
            Distances::Varying(_) => {
                let (h1, h2) = (distances.at(axis, 0)?, distances.at(axis, 1)?);
                let sum = add(&h1, &h2)?;
                let a = divide(negative(add(multiply(2.0, &h1)?, &h2)?)?, multiply(&h1, &sum)?)?;
                let b = divide(&sum, multiply(&h1, &h2)?)?;
                let c = divide(negative(array_on(f.device(), &h1)?)?, multiply(&h2, &sum)?)?;
                let (g1, g2) = (distances.at(axis, -2)?, distances.at(axis, -1)?);
                let total = add(&g2, &g1)?;
                let d = divide(&g2, multiply(&g1, &total)?)?;
                let e = divide(negative(&total)?, multiply(&g1, &g2)?)?;
                let g = divide(add(multiply(2.0, &g2)?, &g1)?, multiply(&g2, &total)?)?;
                [[a.into(), b.into(), c.into()], [d.into(), e.into(), g.into()]]
            }
        };
        let sum = |[a, b, c]: [Operand; 3], x: NdArray, y: NdArray, z: NdArray| weighted(a, x, b, y, c, z);
        [sum(first, one(0)?, one(1)?, one(2)?)?, sum(last, one(-3)?, one(-2)?, one(-1)?)?]
    };
    let [first, last] = ends;
    let parts: Vec<NdArray> = [Some(first), inner, Some(last)].into_iter().flatten().map(|p| p.astype(dtype)).collect::<Result<_>>()?;
    concat(&parts, axis as isize)
}

/// Distances between neighbours along an axis.
enum Distances {
    Uniform(Operand),
    /// An array with a distance for each pair of neighbours along the axis, and extent 1 along the other axes.
    Varying(NdArray),
}

impl Distances {
    /// Returns the distances between coordinates, as one number if they are all equal.
    fn of_coordinates(x: &NdArray, f: &NdArray, axis: usize) -> Result<Distances> {
        let name = "gradient";
        let [n] = *x.shape() else { return Err(Error::shape(name, "distances must be either scalars or 1d", &[x.shape()])) };
        if n != f.shape()[axis] {
            let message = "when 1d, distances must match the length of the corresponding dimension";
            return Err(Error::shape(name, message, &[x.shape(), f.shape()]));
        }
        let x = if x.dtype().is_int() { x.astype(DType::F64)? } else { x.clone() };
        let steps = diff(&x, 1, -1, None, None)?;
        if steps.size() == 0 {
            return Err(Error::shape(name, "a single coordinate has no distances", &[x.shape()]));
        }
        steps.eval()?; // used twice below
        let first = steps.index(&[Item::At(0)])?;
        if equal(&steps, &first)?.all(())?.item()?.as_bool() {
            return Ok(Distances::Uniform(first.into()));
        }
        let mut shape = vec![1isize; f.ndim()];
        shape[axis] = -1;
        Ok(Distances::Varying(steps.reshape(shape)?))
    }

    /// Returns the distance with index `n`. A negative index counts from the end.
    fn at(&self, axis: usize, n: isize) -> Result<Operand> {
        match self {
            Distances::Uniform(distance) => Ok(distance.clone()),
            Distances::Varying(steps) => slice_axis(steps, axis, n, if n == -1 { None } else { Some(n + 1) }, 1).map(Operand::from),
        }
    }
}

fn trapezoid_by_name(args: &Args) -> Result<Value> {
    let x = args.get("x").map(|x| x.array(args.op())).transpose()?;
    trapezoid(&args.array("y")?, x.as_ref(), Operand::from_args(args, "dx")?, args.int_or("axis", -1)?).map(Value::Array)
}

/// Returns the integral along an axis by the trapezoidal rule (`numpy.trapezoid`).
///
/// `x` has the coordinates of the samples, 1-D or in a shape that broadcasts. Without them, samples have the distance `dx`.
///
/// Passes over memory: one fused sum.
///
/// # Errors
/// An axis out of bounds, or shapes that do not broadcast.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::trapezoid;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(trapezoid(&array![1.0, 2.0, 3.0], None, 1.0, -1)?.item()?, 4.0);
/// # Ok(())
/// # }
/// ```
#[numpy("trapezoid(y, x=None, dx=1.0, axis=-1)", call = trapezoid_by_name)]
pub fn trapezoid(y: &NdArray, x: Option<&NdArray>, dx: impl Into<Operand>, axis: isize) -> Result<NdArray> {
    let name = "trapezoid";
    let along = normalize_axis(name, axis, y.ndim())?;
    let distances: Operand = match x {
        None => dx.into(),
        Some(x) if x.ndim() == 1 => {
            let mut shape = vec![1isize; y.ndim()];
            shape[along] = -1;
            diff(x, 1, -1, None, None)?.reshape(shape)?.into()
        }
        Some(x) => diff(x, 1, axis, None, None)?.into(),
    };
    let sums = add(slice_axis(y, along, 1, None, 1)?, slice_axis(y, along, None, -1, 1)?)?;
    let areas = divide(multiply(distances, sums)?, 2.0)?;
    areas.sum(along as isize)
}

/// A running sum or product with an optional initial element.
fn cumulate_with_initial(
    name: &'static str,
    x: &NdArray,
    over: &AxisOptions,
    initial: Option<i64>,
    scan: fn(&NdArray, AxisOptions) -> Result<NdArray>,
) -> Result<NdArray> {
    let x = at_least(x, 1)?;
    let axis = match over.axes() {
        None if x.ndim() > 1 => {
            return Err(Error::value(name, "For arrays which have more than one dimension ``axis`` argument is required."));
        }
        None => 0,
        Some(&[axis]) => axis,
        Some(_) => return Err(Error::value(name, "takes one axis")),
    };
    let along = normalize_axis(name, axis, x.ndim())?;
    let result = scan(&x, over.clone())?;
    let Some(initial) = initial else { return Ok(result) };
    let mut shape = x.shape().to_vec();
    shape[along] = 1;
    concat(&[filled(&x, &shape, initial, result.dtype())?, result], axis)
}

/// Returns the running sum along an axis (`numpy.cumulative_sum`). With `include_initial`, it starts with 0.
///
/// Arrays of one dimension need no axis. The dtypes are the same as for [`NdArray::cumsum`].
///
/// # Errors
/// No axis for an array of several dimensions, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::cumulative_sum;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cumulative_sum(&array![1, 2, 3], (), true)?, array![0, 1, 3, 6]);
/// # Ok(())
/// # }
/// ```
#[numpy("cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False)")]
pub fn cumulative_sum(x: &NdArray, over: impl Into<AxisOptions>, include_initial: bool) -> Result<NdArray> {
    cumulate_with_initial("cumulative_sum", x, &over.into(), include_initial.then_some(0), |x, over| x.cumsum(over))
}

/// Returns the running product along an axis (`numpy.cumulative_prod`). With `include_initial`, it starts with 1.
///
/// Arrays of one dimension need no axis. The dtypes are the same as for [`NdArray::cumprod`].
///
/// # Errors
/// No axis for an array of several dimensions, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::cumulative_prod;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cumulative_prod(&array![1, 2, 3], (), false)?, array![1, 2, 6]);
/// # Ok(())
/// # }
/// ```
#[numpy("cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False)")]
pub fn cumulative_prod(x: &NdArray, over: impl Into<AxisOptions>, include_initial: bool) -> Result<NdArray> {
    cumulate_with_initial("cumulative_prod", x, &over.into(), include_initial.then_some(1), |x, over| x.cumprod(over))
}

fn nan_to_num_by_name(args: &Args) -> Result<Value> {
    nan_to_num(&args.array("x")?, Operand::from_args(args, "nan")?, args.operand_or_none("posinf")?, args.operand_or_none("neginf")?)
        .map(Value::Array)
}

/// Returns the array with NaN and infinities replaced by numbers (`numpy.nan_to_num`).
///
/// Infinities become the largest and smallest finite number of the dtype, unless numbers are given. Complex parts are replaced
/// separately. Integers and bool are unchanged. Results for real dtypes are deferred.
///
/// Passes over memory: one.
///
/// # Errors
/// Replacements that do not broadcast to the array.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let a = cuprum::NdArray::from_slice(&[f64::NAN, f64::INFINITY, 1.0])?;
/// assert_eq!(cuprum_numpy::nan_to_num(&a, 0, Some(9.0.into()), None)?.to_vec::<f64>()?, [0.0, 9.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None)", call = nan_to_num_by_name)]
pub fn nan_to_num(x: &NdArray, nan: impl Into<Operand>, posinf: Option<Operand>, neginf: Option<Operand>) -> Result<NdArray> {
    let largest = match x.dtype().real() {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        _ => return Ok(x.clone()),
    };
    let (posinf, neginf) = (posinf.unwrap_or(largest.into()), neginf.unwrap_or((-largest).into()));
    let nan = nan.into();
    if !x.dtype().is_complex() {
        return replace_non_finite(x, &nan, &posinf, &neginf);
    }
    // The parts of a contiguous complex array are neighbours in memory.
    let stored = x.contiguous()?.stored()?;
    let mut shape = x.shape().to_vec();
    shape.push(2);
    let parts = Layout::contiguous(&shape)?.with_offset(2 * stored.layout().offset());
    let parts = NdArray::from(StoredArray::new(x.dtype().real(), parts, stored.buffer().clone())?);
    let replaced = replace_non_finite(&parts, &nan, &posinf, &neginf)?.contiguous()?.stored()?;
    let layout = Layout::contiguous(x.shape())?.with_offset(replaced.layout().offset() / 2);
    StoredArray::new(x.dtype(), layout, replaced.buffer().clone()).map(NdArray::from)
}

fn replace_non_finite(x: &NdArray, nan: &Operand, posinf: &Operand, neginf: &Operand) -> Result<NdArray> {
    let fit = |value: &Operand| match value {
        Operand::Array(a) => a.astype(x.dtype()).map(Operand::from),
        Operand::Scalar(s) => Ok(Operand::Scalar(*s)),
    };
    let finite = where_(equal(x, f64::NEG_INFINITY)?, fit(neginf)?, x)?;
    let finite = where_(equal(x, f64::INFINITY)?, fit(posinf)?, finite)?;
    let finite = where_(isnan(x)?, fit(nan)?, finite)?;
    if finite.shape() != x.shape() {
        return Err(Error::shape("nan_to_num", "a replacement cannot be broadcast to the array", &[x.shape()]));
    }
    Ok(finite)
}

fn interp_by_name(args: &Args) -> Result<Value> {
    let (x, xp, fp) = (args.array("x")?, args.array("xp")?, args.array("fp")?);
    let period = args.get("period").map(|_| args.scalar("period")).transpose()?.map(Scalar::as_f64);
    interp(&x, &xp, &fp, args.operand_or_none("left")?, args.operand_or_none("right")?, period).map(Value::Array)
}

/// Returns the linear interpolation at `x` between the points `(xp, fp)` (`numpy.interp`).
///
/// `xp` is 1-D and increases. Values before and after it are `left` and `right`, by default the first and the last of `fp`. With a
/// `period`, the points repeat and need not be sorted. The result is float64, or complex128 if `fp` is complex.
///
/// Passes over memory: a binary search, gathers of the neighbouring points, and one pass that interpolates; fused with the gathers where
/// the device fuses `take`.
///
/// # Errors
/// Points that are not 1-D or of different lengths, no points, a period of 0, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let (xp, fp) = (NdArray::from_slice(&[1.0, 2.0, 4.0])?, NdArray::from_slice(&[10.0, 20.0, 0.0])?);
/// let x = NdArray::from_slice(&[1.5, 3.0, 9.0])?;
/// assert_eq!(cuprum_numpy::interp(&x, &xp, &fp, None, None, None)?.to_vec::<f64>()?, [15.0, 10.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("interp(x, xp, fp, left=None, right=None, period=None)", call = interp_by_name)]
pub fn interp(
    x: &NdArray,
    xp: &NdArray,
    fp: &NdArray,
    left: Option<Operand>,
    right: Option<Operand>,
    period: impl Into<Option<f64>>,
) -> Result<NdArray> {
    let name = "interp";
    if x.dtype().is_complex() || xp.dtype().is_complex() {
        return Err(Error::dtype(name, "Cannot cast array data from complex to float64", &[x.dtype(), xp.dtype()]));
    }
    let dtype = if fp.dtype().is_complex() { DType::C128 } else { DType::F64 };
    let (mut x, mut xp, mut fp) = (x.astype(DType::F64)?, xp.astype(DType::F64)?, fp.astype(dtype)?);
    if xp.ndim() != 1 || fp.ndim() != 1 {
        return Err(Error::shape(name, "Data points must be 1-D sequences", &[xp.shape(), fp.shape()]));
    }
    if xp.size() != fp.size() {
        return Err(Error::shape(name, "fp and xp are not of the same length.", &[xp.shape(), fp.shape()]));
    }
    let n = xp.size();
    if n == 0 {
        return Err(Error::shape(name, "array of sample points is empty", &[xp.shape()]));
    }
    let (mut left, mut right) = (left, right);
    if let Some(period) = period.into() {
        if period == 0.0 {
            return Err(Error::value(name, "period must be a non-zero value"));
        }
        let period = period.abs();
        (left, right) = (None, None);
        (x, xp) = (remainder(&x, period)?, remainder(&xp, period)?);
        let order = xp.argsort(0)?;
        (xp, fp) = (xp.take(&order, 0)?, fp.take(&order, 0)?);
        let end = |a: &NdArray, n: isize| slice_axis(a, 0, n, if n == -1 { None } else { Some(n + 1) }, 1);
        xp = concat(&[subtract(end(&xp, -1)?, period)?, xp.clone(), add(end(&xp, 0)?, period)?], 0)?;
        fp = concat(&[end(&fp, -1)?, fp.clone(), end(&fp, 0)?], 0)?;
    }
    let n = xp.size();
    let ends = |operand: Option<Operand>, default: isize| match operand {
        Some(operand) => array_on(fp.device(), &operand)?.astype(dtype),
        None => fp.index(&[Item::At(default)]),
    };
    let (left, right) = (ends(left, 0)?, ends(right, -1)?);
    let (first, last) = (xp.index(&[Item::At(0)])?, xp.index(&[Item::At(-1)])?);
    let middle = if n == 1 {
        broadcast_to(&fp.index(&[Item::At(0)])?, x.shape())?
    } else {
        let lower = clip(subtract(xp.searchsorted(&x, Side::Right)?, 1)?, Some(0.into()), Some((n - 2).into()))?.eval()?.clone();
        let upper = add(&lower, 1)?;
        let (x0, x1, y0, y1) = (xp.take(&lower, 0)?, xp.take(&upper, 0)?, fp.take(&lower, 0)?, fp.take(&upper, 0)?);
        let slope = divide(subtract(&y1, &y0)?, subtract(&x1, &x0)?)?;
        let value = add(multiply(&slope, subtract(&x, &x0)?)?, &y0)?;
        // As in NumPy, a NaN that infinite points cause is computed again from the upper point. Two equal values give that value.
        let other = add(multiply(&slope, subtract(&x, &x1)?)?, &y1)?;
        let other = where_(logical_and(isnan(&other)?, equal(&y0, &y1)?)?, &y0, &other)?;
        let value = where_(isnan(&value)?, &other, &value)?;
        let value = where_(equal(&x, &x0)?, &y0, &value)?;
        let value = where_(equal(&x, &last)?, fp.index(&[Item::At(-1)])?, value)?;
        where_(isnan(&x)?, &x, value)?
    };
    let result = where_(less(&x, &first)?, left, middle)?;
    where_(greater(&x, &last)?, right, result)
}

fn unwrap_by_name(args: &Args) -> Result<Value> {
    let discont = args.get("discont").map(|_| args.scalar("discont")).transpose()?;
    unwrap(&args.array("p")?, discont, args.int_or("axis", -1)?, args.scalar_or("period", TAU)?).map(Value::Array)
}

/// Returns the array with jumps between neighbours along an axis replaced by their complement to the period (`numpy.unwrap`).
///
/// Differences greater than `discont`, by default half the period, change. Integers with an integer period stay integers.
///
/// Passes over memory: a scan of the corrections, and a join with the first elements.
///
/// # Errors
/// A 0-d array, an axis out of bounds, or complex numbers.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// # fn main() -> cuprum::Result<()> {
/// let p = cuprum::NdArray::from_slice(&[0, 1, 2, -1, 0])?;
/// assert_eq!(cuprum_numpy::unwrap(&p, None, -1, 4)?.to_vec::<i32>()?, [0, 1, 2, 3, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("unwrap(p, discont=None, axis=-1, *, period=6.283185307179586)", call = unwrap_by_name)]
pub fn unwrap(p: &NdArray, discont: Option<Scalar>, axis: isize, period: impl Into<Scalar>) -> Result<NdArray> {
    let name = "unwrap";
    let period = period.into();
    let steps = diff(p, 1, axis, None, None)?;
    let along = normalize_axis(name, axis, p.ndim())?;
    let dtype = result_dtype(&[Operand::from(&steps), Operand::Scalar(period)]);
    let discont = discont.unwrap_or(Scalar::Float(period.as_f64() / 2.0));
    let (high, is_ambiguous) = match (dtype.is_int(), period.as_int()) {
        (true, Some(period)) => (Scalar::Int(period.div_euclid(2)), period.rem_euclid(2) == 0),
        _ => (Scalar::Float(period.as_f64() / 2.0), true),
    };
    let low = match high {
        Scalar::Int(high) => Scalar::Int(-high),
        high => Scalar::Float(-high.as_f64()),
    };
    let mut wrapped = add(remainder(subtract(&steps, low)?, period)?, low)?;
    if is_ambiguous {
        wrapped = where_(logical_and(equal(&wrapped, low)?, greater(&steps, 0)?)?, high, &wrapped)?;
    }
    let correction = where_(less(steps.abs()?, discont)?, 0, subtract(&wrapped, &steps)?)?;
    let first = slice_axis(p, along, 0, 1, 1)?.astype(dtype)?;
    let rest = add(slice_axis(p, along, 1, None, 1)?, correction.cumsum(over_axis(along as isize))?)?.astype(dtype)?;
    concat(&[first, rest], along as isize)
}

/// The part of a convolution to return (`mode=` of `numpy.convolve`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConvolutionMode {
    /// All points where the arrays overlap.
    #[default]
    Full,
    /// As many points as the longer array has.
    Same,
    /// The points where the arrays overlap completely.
    Valid,
}

impl FromArgs for ConvolutionMode {
    fn from_args(args: &Args, name: &str) -> Result<ConvolutionMode> {
        match args.value(name) {
            Some(Value::Str(mode)) if mode == "full" => Ok(ConvolutionMode::Full),
            Some(Value::Str(mode)) if mode == "same" => Ok(ConvolutionMode::Same),
            Some(Value::Str(mode)) if mode == "valid" => Ok(ConvolutionMode::Valid),
            _ => Err(Error::value(args.op(), "mode must be one of 'valid', 'same', or 'full'")),
        }
    }
}

/// Maximum number of products of one contraction. The windows of a longer convolution are multiplied in blocks.
const MAX_WINDOW_PRODUCTS: usize = 1 << 22;

/// Returns the sums of products of the windows of `signal` with `kernel`, which is not longer.
fn sum_window_products(name: &'static str, signal: &NdArray, kernel: &NdArray, mode: ConvolutionMode) -> Result<NdArray> {
    let dtype = signal.dtype().promote(kernel.dtype());
    let m = kernel.size();
    let (before, after) = match mode {
        ConvolutionMode::Full => (m - 1, m - 1),
        ConvolutionMode::Same => (m / 2, m - m / 2 - 1),
        ConvolutionMode::Valid => (0, 0),
    };
    let zeros = |n: usize| filled(signal, &[n], 0, dtype);
    let signal = signal.astype(dtype)?;
    let padded = if m > 1 && mode != ConvolutionMode::Valid { concat(&[zeros(before)?, signal, zeros(after)?], 0)? } else { signal };
    let stored = padded.contiguous()?.stored()?;
    let count = stored.layout().size() + 1 - m;
    let column = kernel.astype(dtype)?.contiguous()?;
    // Windows overlap, so they are a view with stride 1 along both axes.
    let rows = (MAX_WINDOW_PRODUCTS / m).max(1);
    let mut parts = Vec::with_capacity(count.div_ceil(rows));
    for start in (0..count).step_by(rows) {
        let windows = Layout::strided(&[rows.min(count - start), m], &[1, 1], stored.layout().offset() + start)?;
        parts.push(matmul(&NdArray::from(stored.with_layout(windows)?), &column)?);
    }
    match &parts[..] {
        [whole] => Ok(whole.clone()),
        [] => Err(Error::value(name, "the arrays have no overlap")),
        parts => concat(parts, 0),
    }
}

/// Returns an error unless both arrays are 1-D and have elements. A 0-d array counts as one element.
fn check_signals(name: &'static str, a: &NdArray, v: &NdArray) -> Result<(NdArray, NdArray)> {
    let (a, v) = (at_least(a, 1)?, at_least(v, 1)?);
    if a.ndim() > 1 || v.ndim() > 1 {
        return Err(Error::shape(name, "object too deep for desired array; the arrays must be 1-D", &[a.shape(), v.shape()]));
    }
    for (array, which) in [(&a, "a"), (&v, "v")] {
        if array.size() == 0 {
            return Err(Error::shape(name, format!("{which} cannot be empty"), &[array.shape()]));
        }
    }
    Ok((a, v))
}

/// Returns the discrete convolution of two 1-D arrays (`numpy.convolve`).
///
/// Method: the windows of the longer array, a strided view of it with zeros at both ends, times the reversed shorter array, as one
/// contraction. The result has the promoted dtype.
///
/// # Errors
/// Empty arrays, arrays of more than one dimension, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::{ConvolutionMode, convolve};
/// # fn main() -> cuprum::Result<()> {
/// let (a, v) = (NdArray::from_slice(&[1.0, 2.0, 3.0])?, NdArray::from_slice(&[0.0, 1.0, 0.5])?);
/// assert_eq!(convolve(&a, &v, ConvolutionMode::Full)?.to_vec::<f64>()?, [0.0, 1.0, 2.5, 4.0, 1.5]);
/// # Ok(())
/// # }
/// ```
#[numpy("convolve(a, v, mode='full')")]
pub fn convolve(a: &NdArray, v: &NdArray, mode: ConvolutionMode) -> Result<NdArray> {
    let (a, v) = check_signals("convolve", a, v)?;
    let (longer, shorter) = if v.size() > a.size() { (&v, &a) } else { (&a, &v) };
    sum_window_products("convolve", longer, &flip(shorter, None)?, mode)
}

/// Returns the cross-correlation of two 1-D arrays, `sum(a[n + k] * conj(v[n]))` for each `k` (`numpy.correlate`).
///
/// Method: the windows of the longer array, a strided view of it, times the shorter array, as one contraction. NumPy's default mode is
/// [`ConvolutionMode::Valid`].
///
/// # Errors
/// Empty arrays, arrays of more than one dimension, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::array;
/// use cuprum_numpy::{ConvolutionMode, correlate};
/// # fn main() -> cuprum::Result<()> {
/// let c = correlate(&array![1.0, 2.0, 3.0], &array![0.0, 1.0, 0.5], ConvolutionMode::Valid)?;
/// assert_eq!(c, array![3.5]);
/// # Ok(())
/// # }
/// ```
#[numpy("correlate(a, v, mode='valid')")]
pub fn correlate(a: &NdArray, v: &NdArray, mode: ConvolutionMode) -> Result<NdArray> {
    let (a, v) = check_signals("correlate", a, v)?;
    let v = v.conj()?;
    match v.size() > a.size() {
        true => flip(&sum_window_products("correlate", &v, &a, mode)?, None),
        false => sum_window_products("correlate", &a, &v, mode),
    }
}
