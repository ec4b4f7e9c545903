//! Norms, condition numbers and ranks.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axes;
use cuprum_core::ops::linalg::{Triangle, eigvalsh, inv, lu_factor, svdvals};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{
    AxisOption, AxisOptions, DType, Device, Error, NdArray, Result, Scalar, add, any, axis, count_nonzero, divide, equal, greater, isinf,
    isnan, logical_and, logical_not, multiply, not_equal, numpy, where_,
};

use super::{identity_matrices, integers_to_float64, is_16_bit_float, machine_epsilon};

/// Selects a norm (`ord=`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Norm {
    /// The 2-norm of all elements, or of the elements along the given axes.
    #[default]
    Elements,
    /// The Frobenius norm of a matrix (`'fro'`).
    Frobenius,
    /// The sum of the singular values of a matrix (`'nuc'`).
    Nuclear,
    /// For vectors, the norm `sum(abs(x)**p)**(1/p)` with the given p, and its limits for 0 and infinity. For matrices, one of 1,
    /// -1, 2, -2, infinity and minus infinity.
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
            Some(Value::Str(s)) if matches!(s.as_str(), "fro" | "f") => Ok(Norm::Frobenius),
            Some(Value::Str(s)) if s.as_str() == "nuc" => Ok(Norm::Nuclear),
            Some(Value::Scalar(p)) => Ok(Norm::Order(p.as_f64())),
            Some(_) => Err(Error::value(args.op(), format!("`{name}` is a number, inf, -inf, 'fro' or 'nuc'"))),
        }
    }
}

/// Returns the number of axes that `over` reduces, after a check of the axes. As in NumPy, a 0-d array has no axis 0.
fn count_reduced_axes(name: &'static str, x: &NdArray, over: &AxisOptions) -> Result<usize> {
    over.axes().map_or(Ok(x.ndim()), |axes| normalize_axes(name, axes, x.ndim()).map(|axes| axes.len()))
}

/// Returns the norm of a vector or matrix, or of vectors or matrices along axes (`numpy.linalg.norm`).
///
/// One axis in `over` gives vector norms, two axes give matrix norms. Integers are computed in float64; complex arrays give a real norm.
///
/// # Errors
/// An order that is not defined for the number of axes, more than two axes, or axes that are out of bounds or repeated.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::norm;
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([3.0, 4.0, 6.0, 8.0], [2, 2])?;
/// assert_eq!(norm(&a, (), -1)?.to_vec::<f64>()?, [5.0, 10.0]);
/// assert_eq!(norm(&a, f64::INFINITY, ())?.item()?, 14.0);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.norm(x, ord=None, axis=None, keepdims=False)", aliases("norm"))]
pub fn norm(x: &NdArray, #[name("ord")] order: impl Into<Norm>, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let (x, order, over) = (integers_to_float64(x)?, order.into(), over.into().check_accepted_options("norm", &[AxisOption::KeepDims])?);
    let axes = count_reduced_axes("norm", &x, &over)?;
    if over.axes().is_some() && !matches!(axes, 1 | 2) {
        return Err(Error::value("norm", format!("a norm is over one or two axes, not {axes}")));
    }
    let is_dot_product = over.axes().is_none()
        && match order {
            Norm::Elements => true,
            Norm::Frobenius => axes == 2,
            Norm::Order(p) => p == 2.0 && axes == 1,
            Norm::Nuclear => false,
        };
    if is_16_bit_float(x.dtype()) && is_dot_product {
        // As in NumPy, 16-bit floats are squared and summed in float32, and only the sum is rounded.
        return x.astype(DType::F32)?.square()?.sum(over)?.astype(x.dtype())?.sqrt();
    }
    match order {
        Norm::Elements => vector_p_norm(&x, 2.0, over),
        Norm::Frobenius if axes == 2 => vector_p_norm(&x, 2.0, over),
        Norm::Nuclear if axes == 2 => norm_of_singular_values(&x, order, &over),
        Norm::Order(2.0 | -2.0) if axes == 2 => norm_of_singular_values(&x, order, &over),
        Norm::Order(p) if axes == 2 => extreme_row_or_column_sum(&x, p, &over),
        Norm::Order(p) if axes == 1 => vector_p_norm(&x, p, over),
        _ => Err(Error::value("norm", "this `ord` needs one axis (vectors) or two (matrices); give `axis`")),
    }
}

/// Returns the norms of the matrices in the last two axes (`numpy.linalg.matrix_norm`).
///
/// `keepdims` keeps the two axes with extent 1.
///
/// # Errors
/// Fewer than two dimensions, or an order that is not defined for matrices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::{Norm, matrix_norm};
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[3.0, 0.0], [0.0, -4.0]];
/// assert_eq!(matrix_norm(&a, false, Norm::Frobenius)?.item()?, 5.0);
/// assert!((matrix_norm(&a, false, 2)?.item_as::<f64>()? - 4.0).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')")]
pub fn matrix_norm(x: &NdArray, keepdims: bool, #[name("ord")] order: impl Into<Norm>) -> Result<NdArray> {
    let over = axis([-2, -1]);
    norm(x, order.into(), if keepdims { over.keepdims() } else { over })
}

/// Returns the vector norm over the given axes, by default over all elements (`numpy.linalg.vector_norm`).
///
/// # Errors
/// Axes that the array does not have.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::vector_norm;
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(vector_norm(&array![[3.0, 4.0], [6.0, 8.0]], 2.0, 1)?, array![5.0, 10.0]);
/// assert_eq!(vector_norm(&array![3.0, -4.0], f64::INFINITY, ())?.item()?, 4.0);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)", aliases("vector_norm"), call = vector_norm_from_args)]
pub fn vector_norm(x: &NdArray, order: f64, over: impl Into<AxisOptions>) -> Result<NdArray> {
    let over = over.into().check_accepted_options("vector_norm", &[AxisOption::KeepDims])?;
    count_reduced_axes("vector_norm", x, &over)?;
    vector_p_norm(&integers_to_float64(x)?, order, over)
}

fn vector_norm_from_args(args: &Args) -> Result<Value> {
    let order = Option::<f64>::from_args(args, "ord")?.unwrap_or(2.0);
    vector_norm(&args.array("x")?, order, AxisOptions::from_args(args, "axis")?).map(Value::Array)
}

/// Computes `sum(abs(x)**p)**(1/p)`, or its limit for `p` of 0 and infinity.
fn vector_p_norm(x: &NdArray, p: f64, over: AxisOptions) -> Result<NdArray> {
    if p == 2.0 {
        // As in NumPy, real and imaginary parts are squared separately. `abs` would return infinity for an infinite part with a NaN part.
        let squares = if x.dtype().is_complex() { add(x.real()?.square()?, x.imag()?.square()?)? } else { x.square()? };
        return squares.sum(over)?.sqrt();
    }
    let x = &x.abs()?;
    if p == 1.0 {
        x.sum(over)
    } else if p == f64::INFINITY {
        largest_or_zero(x, over)
    } else if p == f64::NEG_INFINITY {
        x.min(over)
    } else if p == 0.0 {
        count_nonzero(x, over)?.astype(x.dtype())
    } else {
        x.power(p)?.sum(over)?.power(1.0 / p)
    }
}

/// Returns the largest element of non-negative `x`, or 0 if `x` is empty.
fn largest_or_zero(x: &NdArray, over: AxisOptions) -> Result<NdArray> {
    if x.size() == 0 { x.sum(over) } else { x.max(over) }
}

/// Returns the two axes of a matrix norm, by default 0 and 1.
fn matrix_norm_axes(over: &AxisOptions) -> [isize; 2] {
    over.axes().map_or([0, 1], |axes| [axes[0], axes[1]])
}

/// Returns the largest (`p` > 0) or smallest (`p` < 0) sum of magnitudes of a column (`abs(p)` is 1) or of a row (`abs(p)` is infinite).
fn extreme_row_or_column_sum(x: &NdArray, p: f64, over: &AxisOptions) -> Result<NdArray> {
    let axes = matrix_norm_axes(over);
    let [summed, other] = match p.abs() {
        1.0 => axes,
        f64::INFINITY => [axes[1], axes[0]],
        _ => return Err(Error::value("norm", format!("there is no matrix norm of order {p}"))),
    };
    let sums = x.abs()?.sum(axis(summed).keepdims())?;
    let extremes = if p > 0.0 { largest_or_zero(&sums, axis(other).keepdims())? } else { sums.min(axis(other).keepdims())? };
    if over.keeps_dims() { Ok(extremes) } else { extremes.squeeze(axes) }
}

/// Returns singular values for function `name`. As in NumPy, those of a matrix with infinities are NaN, and a matrix with NaN is an error.
fn singular_values_or_nan(name: &'static str, x: &NdArray) -> Result<NdArray> {
    let replace_infinite_matrices = || {
        let is_infinite = isinf(x)?;
        let has_nan = any(&logical_and(isnan(x)?, logical_not(&is_infinite)?)?, [-2, -1])?;
        let infinite = logical_and(any(&is_infinite, [-2, -1])?, logical_not(has_nan)?)?;
        let finite = where_(infinite.expand_dims([-2, -1])?, 0, x)?;
        where_(infinite.expand_dims(-1)?, Scalar::Float(f64::NAN), svdvals(&finite)?)
    };
    // Other devices than the CPU report a failure when the program waits, so infinities are replaced beforehand.
    let values = match x.device() {
        Device::CPU => svdvals(x),
        _ if x.ndim() >= 2 && x.dtype().is_inexact() => replace_infinite_matrices(),
        _ => svdvals(x),
    };
    let values = if let Err(Error::LinAlg { .. }) = values { replace_infinite_matrices() } else { values };
    values.map_err(|e| e.with_function_name(name))
}

/// Returns the norm that `order` defines by singular values: the largest, the smallest, or the sum of all.
fn norm_of_singular_values(x: &NdArray, order: Norm, over: &AxisOptions) -> Result<NdArray> {
    let axes = normalize_axes("norm", &matrix_norm_axes(over), x.ndim())?;
    let values = singular_values_or_nan("norm", &x.moveaxis(axes.to_vec(), [-2, -1])?)?;
    let result = match order {
        Norm::Order(2.0) => largest_or_zero(&values, axis(-1))?,
        Norm::Order(_) => values.min(-1)?,
        _ => values.sum(-1)?,
    };
    if !over.keeps_dims() {
        return Ok(result);
    }
    let mut shape = x.shape().to_vec();
    axes.iter().for_each(|&axis| shape[axis] = 1);
    result.reshape(shape)
}

/// Returns the condition numbers of matrices: by default the ratio of the largest and the smallest singular value (`numpy.linalg.cond`).
///
/// With an order `p` other than 2 and -2, the condition number is the norm of a matrix times that of its inverse. For -2, it is the
/// smallest singular value divided by the largest. A singular matrix has condition number infinity.
///
/// # Errors
/// Empty matrices, matrices that are not square if `p` needs the inverse, or an order that is not defined for matrices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[4.0, 0.0], [0.0, 2.0]];
/// assert!((cuprum::linalg::cond(&a, ())?.item_as::<f64>()? - 2.0).abs() < 1e-14);
/// assert_eq!(cuprum::linalg::cond(&a, 1)?.item()?, 2.0);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.cond(x, p=None)")]
pub fn cond(x: &NdArray, p: impl Into<Norm>) -> Result<NdArray> {
    let (x, p) = (integers_to_float64(x)?, p.into());
    if x.shape().iter().rev().take(2).any(|&extent| extent == 0) && x.ndim() >= 2 {
        return Err(Error::shape("cond", "cond is not defined on empty arrays", &[x.shape()]));
    }
    let ratio = match p {
        Norm::Elements | Norm::Order(2.0 | -2.0) => {
            let values = singular_values_or_nan("cond", &x)?.moveaxis(-1, 0)?;
            let (largest, smallest) = (values.index(cuprum_core::s![0])?, values.index(cuprum_core::s![-1])?);
            if p == Norm::Order(-2.0) { divide(smallest, largest)? } else { divide(largest, smallest)? }
        }
        _ => {
            // Inverting a singular matrix is an error, so singular matrices are replaced by identities before the inversion.
            let n = x.shape().last().copied().unwrap_or(0);
            let singular = any(&equal(lu_factor(&x)?.0.diagonal(0, -2, -1)?, 0)?, -1)?;
            let batch = &x.shape()[..x.ndim().saturating_sub(2)];
            let regular = where_(singular.expand_dims([-2, -1])?, identity_matrices(&x, batch, n, x.dtype())?, &x)?;
            let product = multiply(matrix_norm(&x, false, p)?, matrix_norm(&inv(&regular)?, false, p)?)?;
            where_(singular, Scalar::Float(f64::INFINITY), product)?
        }
    };
    let has_nan = any(&isnan(&x)?, [-2, -1])?;
    where_(logical_and(isnan(&ratio)?, logical_not(has_nan)?)?, Scalar::Float(f64::INFINITY), ratio)
}

/// Returns the ranks of matrices: the number of singular values above a tolerance, as int64 (`numpy.linalg.matrix_rank`).
///
/// The tolerance is `tol` if given. Otherwise it is the largest singular value times `rtol`, whose default is the larger extent times the
/// machine epsilon. The rank of a vector or number is 1 if any element is not 0. With `hermitian`, the lower triangles of Hermitian
/// matrices are read.
///
/// # Errors
/// Both `tol` and `rtol`, or a matrix with NaN. With `hermitian`, also a matrix with infinities.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[1.0, 2.0], [2.0, 4.0]];
/// assert_eq!(cuprum::linalg::matrix_rank(&a, None, false, None)?.item()?, 1);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.matrix_rank(A, tol=None, hermitian=False, *, rtol=None)")]
pub fn matrix_rank(#[name("A")] a: &NdArray, tol: Option<&NdArray>, hermitian: bool, rtol: Option<&NdArray>) -> Result<NdArray> {
    if tol.is_some() && rtol.is_some() {
        return Err(Error::value("matrix_rank", "`tol` and `rtol` can't be both set."));
    }
    if a.ndim() < 2 {
        return not_equal(a, 0)?.any(())?.astype(DType::I64);
    }
    let values = if hermitian {
        eigvalsh(a, Triangle::Lower).and_then(|values| values.abs()).map_err(|e| e.with_function_name("matrix_rank"))?
    } else {
        singular_values_or_nan("matrix_rank", a)?
    };
    let extent = a.shape()[a.ndim() - 2..].iter().copied().max().unwrap_or(0);
    let limit = match (tol, rtol) {
        (Some(tol), _) => tol.expand_dims(-1)?,
        (None, rtol) => {
            let largest = largest_or_zero(&values, axis(-1).keepdims())?;
            match rtol {
                Some(rtol) => multiply(largest, rtol.expand_dims(-1)?)?,
                None => multiply(largest, extent as f64 * machine_epsilon(values.dtype()))?,
            }
        }
    };
    count_nonzero(&greater(values, limit)?, -1)
}
