//! Linear algebra (`numpy.linalg`).

use cuprum_core::function::FromArgs;
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Over, OverOption, Result, add, axis, count_nonzero, numpy};

pub use cuprum_core::{matmul, tensordot};

pub use crate::manipulation::matrix_transpose;

/// The order of a norm (`ord=`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Norm {
    /// The 2-norm of all elements, or of the elements along the given axes.
    #[default]
    Elements,
    /// The Frobenius norm of a matrix (`'fro'`).
    Frobenius,
    /// The vector norm `sum(abs(x)**p)**(1/p)` and its limits at 0 and infinity; of matrices `1`, `-1`, `inf` and `-inf`.
    Order(f64),
}

impl From<()> for Norm {
    fn from(_: ()) -> Norm {
        Norm::Elements
    }
}
impl From<f64> for Norm {
    fn from(p: f64) -> Norm {
        Norm::Order(p)
    }
}
impl From<i32> for Norm {
    fn from(p: i32) -> Norm {
        Norm::Order(p.into())
    }
}

impl FromArgs for Norm {
    fn from_args(args: &Args, name: &str) -> Result<Norm> {
        match args.value(name) {
            None | Some(Value::None) => Ok(Norm::Elements),
            Some(Value::Str(s)) if s.as_str() == "fro" => Ok(Norm::Frobenius),
            Some(Value::Scalar(p)) => Ok(Norm::Order(p.as_f64())),
            Some(_) => Err(Error::value(args.op(), "`ord` is a number, inf, -inf or 'fro'")),
        }
    }
}

/// Returns `x`, converted to float64 if its elements are integers or bools.
fn inexact(x: &NdArray) -> Result<NdArray> {
    if x.dtype().is_inexact() { Ok(x.clone()) } else { x.astype(DType::F64) }
}

/// Returns the sums of the diagonals of the matrices in the last two axes (`numpy.linalg.trace`).
///
/// `offset` counts diagonals above the main one. bool and small integers are summed in int64 or uint64, unless a dtype is given.
///
/// # Errors
/// An array of fewer than two dimensions.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, arange};
/// # fn main() -> cuprum::Result<()> {
/// let a = arange(0, 8, 1)?.reshape([2, 2, 2])?;
/// assert_eq!(cuprum_numpy::linalg::trace(&a, 0, None)?.to_vec::<i64>()?, [3, 11]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.trace(x, /, *, offset=0, dtype=None)")]
pub fn trace(x: &NdArray, offset: isize, dtype: Option<DType>) -> Result<NdArray> {
    let over = axis(-1);
    diagonal(x, offset)?.sum(dtype.map_or(over.clone(), |dtype| over.dtype(dtype)))
}

/// Returns the diagonals of the matrices in the last two axes, as a view (`numpy.linalg.diagonal`).
///
/// # Errors
/// An array of fewer than two dimensions.
#[numpy("linalg.diagonal(x, /, *, offset=0)")]
pub fn diagonal(x: &NdArray, offset: isize) -> Result<NdArray> {
    x.diagonal(offset, -2, -1)
}

/// Returns the products of all pairs of elements of two 1-D arrays, as a matrix (`numpy.linalg.outer`).
///
/// # Errors
/// Arrays that are not 1-D, or on different devices.
#[numpy("linalg.outer(x1, x2, /)")]
pub fn outer(x1: &NdArray, x2: &NdArray) -> Result<NdArray> {
    if x1.ndim() != 1 || x2.ndim() != 1 {
        let message = format!("takes 1-D arrays, not of {} and {} dimensions", x1.ndim(), x2.ndim());
        return Err(Error::value("outer", message));
    }
    cuprum_core::outer(x1, x2)
}

/// Refuses axes of a 0-d array, as NumPy's norms do.
fn check_axes(x: &NdArray, over: &Over) -> Result<()> {
    match over.axes() {
        Some(&[axis, ..]) if x.ndim() == 0 => Err(Error::value("norm", format!("axis {axis} is out of bounds for array of dimension 0"))),
        _ => Ok(()),
    }
}

/// Returns the norm of a vector or matrix, or of vectors or matrices along axes (`numpy.linalg.norm`).
///
/// One axis in `over` gives vector norms, two axes give matrix norms. Integers are computed in float64; complex arrays give a real norm.
///
/// # Errors
/// An order that is not defined for the number of axes, or axes that the array does not have.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::NdArray;
/// use cuprum_numpy::linalg::norm;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([3.0, 4.0, 6.0, 8.0], [2, 2])?;
/// assert_eq!(norm(&a, (), -1)?.to_vec::<f64>()?, [5.0, 10.0]);
/// assert_eq!(norm(&a, f64::INFINITY, ())?.item()?, 14.0);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.norm(x, ord=None, axis=None, keepdims=False)", aliases("norm"))]
pub fn norm(x: &NdArray, #[name("ord")] order: impl Into<Norm>, over: impl Into<Over>) -> Result<NdArray> {
    let (x, order, over) = (inexact(x)?, order.into(), over.into().taking("norm", &[OverOption::KeepDims])?);
    check_axes(&x, &over)?;
    let axes = over.axes().map_or(x.ndim(), <[isize]>::len);
    match order {
        Norm::Elements => p_norm(&x, 2.0, over),
        Norm::Frobenius if axes == 2 => p_norm(&x, 2.0, over),
        Norm::Order(p) if axes == 2 => matrix_norm(&x, p, &over),
        Norm::Order(p) if axes == 1 => p_norm(&x, p, over),
        _ => Err(Error::value("norm", "this `ord` needs one axis (vectors) or two (matrices); give `axis`")),
    }
}

/// Returns the vector norm over the given axes, by default over all elements (`numpy.linalg.vector_norm`).
///
/// # Errors
/// Axes that the array does not have.
#[numpy("linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)", aliases("vector_norm"))]
pub fn vector_norm(x: &NdArray, #[name("ord")] order: f64, over: impl Into<Over>) -> Result<NdArray> {
    let over = over.into().taking("vector_norm", &[OverOption::KeepDims])?;
    check_axes(x, &over)?;
    p_norm(&inexact(x)?, order, over)
}

/// Computes `sum(abs(x)**p)**(1/p)`, or its limit for `p` of 0 and infinity.
fn p_norm(x: &NdArray, p: f64, over: Over) -> Result<NdArray> {
    if p == 2.0 {
        // As in NumPy, real and imaginary parts are squared separately. `abs` of an infinite part with a NaN part would be infinite.
        let squares = if x.dtype().is_complex() { add(x.real()?.square()?, x.imag()?.square()?)? } else { x.square()? };
        return squares.sum(over)?.sqrt();
    }
    let x = &x.abs()?;
    if p == 1.0 {
        x.sum(over)
    } else if p == f64::INFINITY {
        largest(x, over)
    } else if p == f64::NEG_INFINITY {
        x.min(over)
    } else if p == 0.0 {
        count_nonzero(x, over)?.astype(x.dtype())
    } else {
        x.power(p)?.sum(over)?.power(1.0 / p)
    }
}

/// Returns the largest element of non-negative `x`, or 0 if `x` is empty.
fn largest(x: &NdArray, over: Over) -> Result<NdArray> {
    if x.size() == 0 { x.sum(over) } else { x.max(over) }
}

/// Returns the largest or smallest sum of columns (`p` = 1, -1) or rows (inf, -inf) of `abs(x)`.
fn matrix_norm(x: &NdArray, p: f64, over: &Over) -> Result<NdArray> {
    let axes = over.axes().map_or([0, 1], |axes| [axes[0], axes[1]]);
    let [summed, other] = match p.abs() {
        1.0 => axes,
        f64::INFINITY => [axes[1], axes[0]],
        _ => {
            return Err(Error::value("norm", format!("the matrix norm of order {p} needs singular values, which are not in this version")));
        }
    };
    let sums = x.abs()?.sum(axis(summed).keepdims())?;
    let extremes = if p > 0.0 { largest(&sums, axis(other).keepdims())? } else { sums.min(axis(other).keepdims())? };
    if over.keeps_dims() { Ok(extremes) } else { extremes.squeeze(axes) }
}
