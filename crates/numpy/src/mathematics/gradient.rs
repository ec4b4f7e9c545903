//! Derivatives by finite differences: `gradient`.

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    Axes, DType, Error, Item, NdArray, Operand, Result, Scalar, add, concat, divide, equal, multiply, negative, numpy, subtract,
};

use crate::mathematics::diff::diff;
use crate::operand_and_slice_helpers::{operand_to_array, slice_axis};

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

fn gradient_from_args(args: &Args) -> Result<Value> {
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
/// Passes over memory for each axis: one for the central differences, and one that joins them with the differences at the ends.
///
/// # Errors
/// An axis with fewer than `edge_order + 1` elements, coordinates whose number is not the extent, a number of distances that does not
/// match, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// # fn main() -> cuprum::Result<()> {
/// let f = cuprum::NdArray::from_slice(&[1.0, 2.0, 4.0, 7.0])?;
/// assert_eq!(cuprum::gradient(&f, &[], (), 1)?[0].to_vec::<f64>()?, [1.0, 1.5, 2.5, 3.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("gradient(f, *varargs, axis=None, edge_order=1)", call = gradient_from_args)]
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
    // As in NumPy, a bool array is not converted to float64, so the subtraction of its elements is an error.
    let f = if f.dtype().is_int() { f.astype(DType::F64)? } else { f.clone() };
    axes.iter().zip(&spacings).map(|(&axis, spacing)| gradient_along_axis(&f, axis, spacing, edge_order, dtype)).collect()
}

/// Maps a distance with `of_number` if it is a number, or with `of_array` if it is an array. A number stays a weak scalar.
fn map_distance(h: &Operand, of_number: impl Fn(f64) -> f64, of_array: impl Fn(&NdArray) -> Result<NdArray>) -> Result<Operand> {
    match h {
        Operand::Scalar(h) => Ok(of_number(h.as_f64()).into()),
        Operand::Array(h) => of_array(h).map(Operand::from),
    }
}

/// Returns the gradient along one axis, in `dtype`.
fn gradient_along_axis(f: &NdArray, axis: usize, spacing: &Spacing, edge_order: usize, dtype: DType) -> Result<NdArray> {
    let name = "gradient";
    let extent = f.shape()[axis];
    let distances = match spacing {
        Spacing::Uniform(distance) => NeighbourDistances::Uniform(distance.clone()),
        Spacing::Coordinates(x) => NeighbourDistances::from_coordinates(x, f, axis)?,
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
        NeighbourDistances::Uniform(h) => {
            Some(divide(subtract(part(2, None)?, part(0, Some(-2))?)?, map_distance(h, |h| 2.0 * h, |h| multiply(2.0, h))?)?)
        }
        NeighbourDistances::Varying(h) => {
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
            NeighbourDistances::Uniform(h) => {
                let by = |factor: f64| map_distance(h, |h| factor / h, |h| divide(factor, h));
                [[by(-1.5)?, by(2.0)?, by(-0.5)?], [by(0.5)?, by(-2.0)?, by(1.5)?]]
            }
            NeighbourDistances::Varying(_) => {
                let (h1, h2) = (distances.at(axis, 0)?, distances.at(axis, 1)?);
                let sum = add(&h1, &h2)?;
                let a = divide(negative(add(multiply(2.0, &h1)?, &h2)?)?, multiply(&h1, &sum)?)?;
                let b = divide(&sum, multiply(&h1, &h2)?)?;
                let c = divide(negative(operand_to_array(name, f.device(), &h1)?)?, multiply(&h2, &sum)?)?;
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
enum NeighbourDistances {
    Uniform(Operand),
    /// An array with a distance for each pair of neighbours along the axis, and extent 1 along the other axes.
    Varying(NdArray),
}

impl NeighbourDistances {
    /// Returns the distances between coordinates, as one number if they are all equal.
    fn from_coordinates(x: &NdArray, f: &NdArray, axis: usize) -> Result<NeighbourDistances> {
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
        steps.eval()?; // evaluates the deferred array once for its two uses below
        let first = steps.index(&[Item::At(0)])?;
        if equal(&steps, &first)?.all(())?.item()?.as_bool() {
            return Ok(NeighbourDistances::Uniform(first.into()));
        }
        let mut shape = vec![1isize; f.ndim()];
        shape[axis] = -1;
        Ok(NeighbourDistances::Varying(steps.reshape(shape)?))
    }

    /// Returns the distance with index `n`. A negative index counts from the end.
    fn at(&self, axis: usize, n: isize) -> Result<Operand> {
        match self {
            NeighbourDistances::Uniform(distance) => Ok(distance.clone()),
            NeighbourDistances::Varying(steps) => {
                slice_axis(steps, axis, n, if n == -1 { None } else { Some(n + 1) }, 1).map(Operand::from)
            }
        }
    }
}
