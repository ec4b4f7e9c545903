//! Least squares, pseudo-inverses, and linear systems of tensors.

use cuprum_core::function::IntoValue;
use cuprum_core::layout::normalize_axes;
use cuprum_core::ops::linalg::{inv, qr_r, solve, svd, svd_hermitian};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Result, axis, concat, divide, greater, matmul, multiply, numpy, s, subtract, where_};

use super::{adjoint, integers_to_float64, is_16_bit_float, machine_epsilon, to_f64_vec};
use crate::operand_and_slice_helpers::new_filled_array;

/// The result of [`lstsq`].
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// The solution of least norm: shape (n) or (n, k) for an `a` of shape (m, n).
    pub solution: NdArray,
    /// The sum of squared residuals of each column of `b`; empty if the rank of `a` is below its number of columns, or if `a` has no more
    /// rows than columns.
    pub residuals: NdArray,
    /// The rank of `a`.
    pub rank: usize,
    /// The singular values of `a`.
    pub singular_values: NdArray,
}

impl IntoValue for LeastSquares {
    fn into_value(self) -> Value {
        Value::tuple([self.solution.into(), self.residuals.into(), self.rank.into_value(), self.singular_values.into()])
    }
}

/// Returns the least-squares solution of `a @ x = b`, which minimises the 2-norm of `b - a @ x` (`numpy.linalg.lstsq`). If several `x` do,
/// the result has the least 2-norm.
///
/// `a` is (m, n), `b` is (m) or (m, k). Singular values of at most `rcond` times the largest one are treated as 0. The default of `rcond`
/// is the machine epsilon times the larger extent. As in LAPACK, an `rcond` that is not between 0 and 1 stands for the machine epsilon.
/// float32 and complex64 are computed in double precision, with the machine epsilon of float64, and the results are rounded. The call waits
/// for the device to determine the rank.
///
/// # Errors
/// An `a` that is not 2-D, extents that do not match, float16, arrays on different devices, or a matrix with NaN or infinities.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// // A line through (0, 1), (1, 3), (2, 5).
/// let a = array![[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]];
/// let fit = cuprum::linalg::lstsq(&a, &array![1.0, 3.0, 5.0], None)?;
/// let x = fit.solution.to_vec::<f64>()?;
/// assert!((x[0] - 2.0).abs() < 1e-14 && (x[1] - 1.0).abs() < 1e-14);
/// assert_eq!(fit.rank, 2);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.lstsq(a, b, rcond=None)")]
pub fn lstsq(a: &NdArray, b: &NdArray, rcond: Option<f64>) -> Result<LeastSquares> {
    // As NumPy's `lstsq`, refuses a 16-bit float in either argument, even if the other argument has a wider dtype.
    if let Some(dtype) = [a.dtype(), b.dtype()].into_iter().find(|dtype| is_16_bit_float(*dtype)) {
        return Err(Error::dtype("lstsq", format!("array type {dtype} is unsupported in linalg; use astype('float32')"), &[dtype]));
    }
    let (a, b) = (integers_to_float64(a)?, integers_to_float64(b)?);
    let dtype = a.dtype().promote(b.dtype());
    let wide = dtype.promote(DType::F64);
    let (a, b) = (a.astype(wide)?, b.astype(wide)?);
    let columns = if b.ndim() == 1 { b.expand_dims(1)? } else { b.clone() };
    let ([m, n], [rows, count]) = (a.shape(), columns.shape()) else {
        let ndim = if a.ndim() == 2 { b.ndim() } else { a.ndim() };
        let message = format!("{ndim}-dimensional array given. Array must be two-dimensional");
        return Err(Error::shape("lstsq", message, &[a.shape(), b.shape()]));
    };
    if m != rows {
        return Err(Error::shape("lstsq", "Incompatible dimensions", &[a.shape(), b.shape()]));
    }
    let (reduced, reduced_columns) = triangularize_tall_system(&a, &columns)?;
    let (u, s, vh) = svd(&reduced, false).map_err(|e| e.with_function_name("lstsq"))?;
    let rcond = match rcond {
        None => f64::EPSILON * *m.max(n) as f64,
        Some(rcond) if rcond > 0.0 && rcond < 1.0 => rcond,
        Some(_) => f64::EPSILON,
    };
    let values = to_f64_vec(&s)?;
    let limit = rcond * values.first().copied().unwrap_or(0.0);
    let rank = values.iter().filter(|&&v| v > limit).count();
    let kept = |x: NdArray, axis: usize| crate::operand_and_slice_helpers::slice_axis(&x, axis, None, rank as isize, 1);
    let solution = if rank == 0 {
        new_filled_array(&a, &[*n, *count], 0, wide)?
    } else {
        let coefficients = divide(matmul(&adjoint(&kept(u, 1)?)?, &reduced_columns)?, kept(s.clone(), 0)?.expand_dims(1)?)?;
        matmul(&adjoint(&kept(vh, 0)?)?, &coefficients)?
    };
    let residuals = if rank == *n && m > n {
        let difference = subtract(&columns, matmul(&a, &solution)?)?.abs()?;
        multiply(&difference, &difference)?.sum(axis(0))?
    } else {
        new_filled_array(&a, &[0], 0, wide.real())?
    };
    let solution = if b.ndim() == 1 { solution.squeeze(1)? } else { solution };
    let [residuals, singular_values] = [residuals.astype(dtype.real())?, s.astype(dtype.real())?];
    Ok(LeastSquares { solution: solution.astype(dtype)?, residuals, rank, singular_values })
}

/// Returns a system with the least-squares solutions of `a @ x = b`. For a large tall matrix, this is `r @ x = q^H @ b`, where `q` and `r`
/// are the QR factors of `a`; otherwise the system itself. `r` has the singular values of `a`.
fn triangularize_tall_system(a: &NdArray, b: &NdArray) -> Result<(NdArray, NdArray)> {
    /// Minimum number of elements of `a` for which the QR factors are computed.
    const MIN_LSTSQ_ELEMENTS_FOR_QR: usize = 1 << 14;
    let ([m, n], [_, count]) = (a.shape(), b.shape()) else { return Ok((a.clone(), b.clone())) };
    if *m < 2 * n || count > n || a.size() < MIN_LSTSQ_ELEMENTS_FOR_QR {
        return Ok((a.clone(), b.clone()));
    }
    // The QR factorisation of `a` and `b` side by side gives `r`, and beside it `q^H @ b`.
    let rows = qr_r(&concat(&[a, b], 1)?).map_err(|e| e.with_function_name("lstsq"))?.index(s![..*n])?;
    Ok((rows.index(s![.., ..*n])?, rows.index(s![.., *n..])?))
}

fn pinv_from_args(args: &Args) -> Result<Value> {
    let a = args.array("a")?;
    let given = |name: &str| args.get(name).map(|v| v.array(args.op())).transpose();
    let (rcond, rtol) = (given("rcond")?, given("rtol")?);
    if rcond.is_some() && (rtol.is_some() || args.is_none("rtol")) {
        return Err(Error::value(args.op(), "`rtol` and `rcond` can't be both set."));
    }
    let hermitian = args.bool_or("hermitian", false)?;
    let exact = args.is_none("rtol").then(|| {
        let extent = a.shape().iter().rev().take(2).copied().max().unwrap_or(0);
        let dtype = if a.dtype().is_inexact() { a.dtype() } else { DType::F64 };
        new_filled_array(&a, &[], extent as f64 * machine_epsilon(dtype), dtype.real())
    });
    let cutoff = rcond.or(rtol).map(Ok).or(exact).transpose()?;
    let inverse = if hermitian { pinv_hermitian } else { pinv };
    inverse(&a, cutoff.as_ref()).map(Value::Array)
}

/// Returns the Moore-Penrose pseudo-inverses of matrices (`numpy.linalg.pinv`).
///
/// Singular values of at most `rtol` times the largest one are treated as 0. `rtol` is a 0-d array, or has one value for each matrix. The
/// default is 1e-15. An empty matrix keeps its dtype. [`pinv_hermitian`] is faster for Hermitian matrices.
///
/// # Errors
/// Fewer than two dimensions, float16, an `rtol` that does not broadcast to the matrices, or a matrix with NaN or infinities.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let p = cuprum::linalg::pinv(&array![[2.0, 0.0], [0.0, 0.0]], None)?.to_vec::<f64>()?;
/// assert!((p[0] - 0.5).abs() < 1e-15 && p[1..].iter().all(|v| v.abs() < 1e-15));
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.pinv(a, rcond=None, hermitian=False, *, rtol=1e-15)", call = pinv_from_args)]
pub fn pinv(a: &NdArray, rtol: Option<&NdArray>) -> Result<NdArray> {
    pinv_from_svd(a, rtol, |a| svd(a, false))
}

/// Returns the Moore-Penrose pseudo-inverses of Hermitian matrices from their eigenvalues (`numpy.linalg.pinv` with `hermitian=True`).
///
/// Only the lower triangles are read. `rtol` is as in [`pinv`].
///
/// # Errors
/// Matrices that are not square, float16, or a matrix with NaN or infinities.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let p = cuprum::linalg::pinv_hermitian(&array![[-2.0, 0.0], [0.0, 0.0]], None)?.to_vec::<f64>()?;
/// assert!((p[0] + 0.5).abs() < 1e-15 && p[1..].iter().all(|v| v.abs() < 1e-15));
/// # Ok(())
/// # }
/// ```
pub fn pinv_hermitian(a: &NdArray, rtol: Option<&NdArray>) -> Result<NdArray> {
    pinv_from_svd(a, rtol, svd_hermitian)
}

/// Returns the pseudo-inverses of matrices from their singular value decomposition, which `decompose` returns.
fn pinv_from_svd(
    a: &NdArray,
    rtol: Option<&NdArray>,
    decompose: impl FnOnce(&NdArray) -> Result<(NdArray, NdArray, NdArray)>,
) -> Result<NdArray> {
    if let [batch @ .., m, n] = a.shape()
        && (*m == 0 || *n == 0)
    {
        return new_filled_array(a, &[batch, &[*n, *m]].concat(), 0, a.dtype());
    }
    let a = integers_to_float64(a)?;
    let (u, s, vh) = decompose(&a).map_err(|e| e.with_function_name("pinv"))?;
    let largest = s.max(axis(-1).keepdims())?;
    let cutoff = match rtol {
        Some(rtol) => multiply(largest, rtol.expand_dims(-1)?)?,
        None => multiply(largest, 1e-15)?,
    };
    let large = greater(&s, cutoff)?;
    if large.shape() != s.shape() {
        let batch = &a.shape()[..a.ndim() - 2];
        return Err(Error::shape(
            "pinv",
            "`rtol` cannot be broadcast to one value for each matrix",
            &[batch, &large.shape()[..large.ndim() - 1]],
        ));
    }
    let inverse = where_(&large, divide(1, where_(&large, &s, 1)?)?, 0)?;
    matmul(&adjoint(&vh)?, &multiply(inverse.expand_dims(-1)?, adjoint(&u)?)?)
}

/// Returns the product of `extents`, or an error in the name of `op` if it overflows.
fn checked_extent_product(op: &'static str, extents: &[usize]) -> Result<usize> {
    let product = extents.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    product.ok_or_else(|| Error::shape(op, "the extents are too large", &[extents]))
}

/// Returns the inverse of `a` as a linear map of tensors (`numpy.linalg.tensorinv`): `x = tensordot(tensorinv(a, ind), b, ind)` solves
/// `tensordot(a, x, a.ndim - ind) = b`.
///
/// # Errors
/// `ind` of 0 or above the number of axes, a product of the first `ind` extents that differs from the product of the remaining ones,
/// or a singular map.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, eye};
/// # fn main() -> cuprum::Result<()> {
/// let a = eye(4, 4, 0, DType::F64)?.reshape((4, 2, 2))?;
/// assert_eq!(cuprum::linalg::tensorinv(&a, 1)?.shape(), &[2, 2, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.tensorinv(a, ind=2)")]
pub fn tensorinv(a: &NdArray, ind: isize) -> Result<NdArray> {
    let op = "tensorinv";
    let split = usize::try_from(ind).ok().filter(|ind| (1..=a.ndim()).contains(ind));
    let Some(split) = split else { return Err(Error::value(op, "Invalid ind argument.")) };
    let (first, last) = a.shape().split_at(split);
    let (rows, columns) = (checked_extent_product(op, last)?, checked_extent_product(op, first)?);
    if rows != columns {
        return Err(Error::shape(op, format!("the first {split} axes need as many elements as the others"), &[a.shape()]));
    }
    inv(&a.reshape((rows, columns))?)?.reshape([last, first].concat())
}

/// Returns the solution `x` of `tensordot(a, x, x.ndim) = b` (`numpy.linalg.tensorsolve`).
///
/// `axes` of `a` are moved to the end first.
///
/// # Errors
/// Axes out of bounds, extents that do not match, arrays on different devices, or a singular map.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, array, eye};
/// # fn main() -> cuprum::Result<()> {
/// let a = eye(4, 4, 0, DType::F64)?.reshape((4, 2, 2))?;
/// assert_eq!(cuprum::linalg::tensorsolve(&a, &array![1.0, 2.0, 3.0, 4.0], None)?, array![[1.0, 2.0], [3.0, 4.0]]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.tensorsolve(a, b, axes=None)")]
pub fn tensorsolve(a: &NdArray, b: &NdArray, axes: Option<&[isize]>) -> Result<NdArray> {
    let op = "tensorsolve";
    let mut order: Vec<usize> = (0..a.ndim()).collect();
    for axis in normalize_axes(op, axes.unwrap_or_default(), a.ndim())? {
        order.retain(|&other| other != axis);
        order.push(axis);
    }
    let moved = a.transpose(order)?;
    let shape = moved.shape();
    let unknowns = shape.get(b.ndim()..).unwrap_or_default().to_vec();
    let size = checked_extent_product(op, &unknowns)?;
    if size.checked_mul(size) != Some(a.size()) || b.size() != size {
        let message = "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])";
        return Err(Error::shape(op, message, &[a.shape(), b.shape()]));
    }
    solve(&moved.reshape((size, size))?, &b.ravel()?)?.reshape(unknowns)
}
