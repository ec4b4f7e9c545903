//! Functions that decompose matrices or use decompositions, as in `scipy.linalg`.

use cuprum_core::host_buffer::{try_collect, try_reserve};
use cuprum_core::ops::linalg::{Form, Triangle, cholesky, lu_factor, solve_triangular, svd};
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Result, add, equal, matmul, multiply, numpy, take_along_axis, with_device};

use super::{adjoint, machine_epsilon, to_f64_vec};
use crate::creation::{tril, triu};
use crate::operand_and_slice_helpers::{index_range_along, slice_axis};

/// Converts LAPACK's row interchanges to a permutation `order`: the interchanges move row `order[i]` to row i. The permutation is int64, on
/// the device of `pivots`.
fn pivots_to_permutation(pivots: &NdArray, rows: usize) -> Result<NdArray> {
    let count = pivots.shape().last().copied().unwrap_or(0);
    let batch = &pivots.shape()[..pivots.ndim().saturating_sub(1)];
    let matrices: usize = batch.iter().product();
    let values = pivots.astype(DType::I64)?.to_vec::<i64>()?;
    let mut orders = Vec::new();
    try_reserve("lu", &mut orders, matrices.saturating_mul(rows))?;
    for matrix in 0..if rows == 0 { 0 } else { matrices } {
        let mut order = try_collect("lu", 0..rows as i64)?;
        for (i, &pivot) in values[matrix * count..(matrix + 1) * count].iter().enumerate() {
            match usize::try_from(pivot) {
                Ok(pivot) if pivot < rows && i < rows => order.swap(i, pivot),
                _ => return Err(Error::value("lu_solve", format!("pivot {pivot} is out of bounds for {rows} rows"))),
            }
        }
        orders.append(&mut order);
    }
    with_device(pivots.device(), || NdArray::from_vec(orders, [batch, &[rows]].concat()))
}

/// Returns the factors of `a = p @ l @ u`: a permutation, a unit lower and an upper triangular matrix (`scipy.linalg.lu`).
///
/// For matrices (m, n) and k = min(m, n), `p` is (m, m), `l` is (m, k), `u` is (k, n). The call waits for the device to read the pivots.
///
/// # Errors
/// Fewer than two dimensions, or float16.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let (p, l, u) = cuprum::linalg::lu(&array![[1.0, 3.0], [2.0, 4.0]])?;
/// assert_eq!(p, array![[0.0, 1.0], [1.0, 0.0]]);
/// assert_eq!((l, u), (array![[1.0, 0.0], [0.5, 1.0]], array![[2.0, 4.0], [0.0, 1.0]]));
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.lu(a)")]
pub fn lu(a: &NdArray) -> Result<(NdArray, NdArray, NdArray)> {
    let (packed, pivots) = lu_factor(a)?;
    let (m, n) = (packed.shape()[packed.ndim() - 2], packed.shape()[packed.ndim() - 1]);
    let (k, ndim) = (m.min(n) as isize, packed.ndim());
    let order = pivots_to_permutation(&pivots, m)?;
    let p = equal(index_range_along(a.device(), m, 0, 2)?, order.expand_dims(-2)?)?.astype(packed.dtype().real())?;
    let diagonal = equal(index_range_along(a.device(), m, 0, 2)?, index_range_along(a.device(), k as usize, 1, 2)?)?;
    let l = add(tril(&slice_axis(&packed, ndim - 1, None, k, 1)?, -1)?, diagonal.astype(packed.dtype())?)?;
    let u = triu(&slice_axis(&packed, ndim - 2, None, k, 1)?, 0)?;
    Ok((p, l, u))
}

fn lu_solve_from_args(args: &Args) -> Result<Value> {
    let Some([packed, pivots]) = args.get("lu_and_piv").and_then(Value::items) else {
        return Err(Error::value(args.op(), "lu_and_piv is the pair that lu_factor returns"));
    };
    let form = cuprum_core::function::FromArgs::from_args(args, "trans")?;
    lu_solve(&packed.array(args.op())?, &pivots.array(args.op())?, &args.array("b")?, form).map(Value::Array)
}

/// Returns the solution `x` of `op(a) @ x = b` from the results of [`lu_factor`](super::lu_factor) (`scipy.linalg.lu_solve`). `form`
/// selects `op(a)`: `a`, its transpose or its conjugate transpose.
///
/// The call waits for the device to read the pivots.
///
/// # Errors
/// Extents that do not match, pivots out of bounds, arrays on different devices, or a singular matrix.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::{Form, lu_factor, lu_solve};
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let (packed, pivots) = lu_factor(&array![[0.0, 2.0], [4.0, 0.0]])?;
/// assert_eq!(lu_solve(&packed, &pivots, &array![2.0, 8.0], Form::Plain)?, array![2.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.lu_solve(lu_and_piv, b, trans=0)", call = lu_solve_from_args)]
pub fn lu_solve(packed: &NdArray, pivots: &NdArray, b: &NdArray, form: Form) -> Result<NdArray> {
    let rows = packed.shape().last().copied().unwrap_or(0);
    if packed.ndim() < 2 || b.ndim() == 0 || pivots.shape().last() != Some(&rows) || b.shape()[b.ndim().saturating_sub(2)] != rows {
        let message = "needs factors (n, n), pivots (n) and a right-hand side (n) or (n, k)";
        return Err(Error::shape("lu_solve", message, &[packed.shape(), pivots.shape(), b.shape()]));
    }
    let column = if b.ndim() == 1 { b.expand_dims(1)? } else { b.clone() };
    let order = pivots_to_permutation(pivots, rows)?;
    let permuted = |x: &NdArray, order: &NdArray| {
        let batch = cuprum_core::layout::broadcast_shapes("lu_solve", &[&order.shape()[..order.ndim() - 1], &x.shape()[..x.ndim() - 2]])?;
        let x = x.broadcast_to([&batch[..], &x.shape()[x.ndim() - 2..]].concat())?;
        let order = order.broadcast_to([&batch[..], &order.shape()[order.ndim() - 1..]].concat())?;
        take_along_axis(&x, &order.expand_dims(-1)?, -2)
    };
    let (lower, upper) = (Triangle::Lower, Triangle::Upper);
    let x = match form {
        Form::Plain => {
            let y = solve_triangular(packed, &permuted(&column, &order)?, lower, form, true)?;
            solve_triangular(packed, &y, upper, form, false)?
        }
        _ => {
            let y = solve_triangular(packed, &column, upper, form, false)?;
            permuted(&solve_triangular(packed, &y, lower, form, true)?, &order.argsort(-1)?)?
        }
    };
    if b.ndim() == 1 { x.squeeze(-1) } else { Ok(x) }
}

fn cho_factor_from_args(args: &Args) -> Result<Value> {
    let lower = args.bool_or("lower", false)?;
    Ok(Value::tuple([cho_factor(&args.array("a")?, lower)?.into(), Value::Scalar(lower.into())]))
}

/// Returns the Cholesky factors of matrices for [`cho_solve`] (`scipy.linalg.cho_factor`).
///
/// The factor is lower triangular if `lower`, else upper triangular, with zeros in the other triangle.
///
/// # Errors
/// The errors of [`cholesky`].
#[numpy("linalg.cho_factor(a, lower=False)", call = cho_factor_from_args)]
pub fn cho_factor(a: &NdArray, lower: bool) -> Result<NdArray> {
    cholesky(a, !lower)
}

fn cho_solve_from_args(args: &Args) -> Result<Value> {
    let Some([factor, Value::Scalar(lower)]) = args.get("c_and_lower").and_then(Value::items) else {
        return Err(Error::value(args.op(), "c_and_lower is the pair that cho_factor returns"));
    };
    cho_solve(&factor.array(args.op())?, lower.as_bool(), &args.array("b")?).map(Value::Array)
}

/// Returns the solution `x` of `a @ x = b` from the Cholesky factor of `a` (`scipy.linalg.cho_solve`).
///
/// `lower` states that the factor is lower triangular, as in [`cho_factor`].
///
/// # Errors
/// Extents that do not match, arrays on different devices, or a zero on the diagonal of the factor.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::linalg::{cho_factor, cho_solve};
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let factor = cho_factor(&array![[4.0, 0.0], [0.0, 16.0]], true)?;
/// assert_eq!(cho_solve(&factor, true, &array![8.0, 16.0])?, array![2.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.cho_solve(c_and_lower, b)", call = cho_solve_from_args)]
pub fn cho_solve(factor: &NdArray, lower: bool, b: &NdArray) -> Result<NdArray> {
    if lower {
        let y = solve_triangular(factor, b, Triangle::Lower, Form::Plain, false)?;
        solve_triangular(factor, &y, Triangle::Lower, Form::Adjoint, false)
    } else {
        let y = solve_triangular(factor, b, Triangle::Upper, Form::Adjoint, false)?;
        solve_triangular(factor, &y, Triangle::Upper, Form::Plain, false)
    }
}

/// Returns the number of singular values above `rcond` times the largest. `s` holds the singular values of the matrix `a`. The
/// default of `rcond` is the machine epsilon times the larger extent of `a`.
fn numerical_rank(s: &NdArray, a: &NdArray, rcond: Option<f64>) -> Result<usize> {
    let values = to_f64_vec(s)?;
    let extent = a.shape().iter().copied().max().unwrap_or(0);
    let limit = rcond.unwrap_or(machine_epsilon(s.dtype()) * extent as f64) * values.first().copied().unwrap_or(0.0);
    Ok(values.iter().filter(|&&v| v > limit).count())
}

/// Returns an orthonormal basis of the null space of a matrix, as columns (`scipy.linalg.null_space`).
///
/// Singular values of at most `rcond` times the largest one are treated as 0. The default of `rcond` is the machine epsilon times the
/// larger extent.
/// The call waits for the device to determine the rank.
///
/// # Errors
/// An array that is not 2-D, float16, or a matrix with NaN or infinities.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::linalg::null_space(&array![[1.0, 1.0]], None)?.shape(), &[2, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.null_space(A, rcond=None)")]
pub fn null_space(#[name("A")] a: &NdArray, rcond: Option<f64>) -> Result<NdArray> {
    check_is_matrix("null_space", a)?;
    let (_, s, vh) = svd(a, true).map_err(|e| e.with_function_name("null_space"))?;
    adjoint(&slice_axis(&vh, 0, numerical_rank(&s, a, rcond)? as isize, None, 1)?)
}

/// Returns an orthonormal basis of the range of a matrix, as columns (`scipy.linalg.orth`).
///
/// Singular values of at most `rcond` times the largest one are treated as 0. The default of `rcond` is the machine epsilon times the
/// larger extent.
/// The call waits for the device to determine the rank.
///
/// # Errors
/// An array that is not 2-D, float16, or a matrix with NaN or infinities.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(cuprum::linalg::orth(&array![[1.0, 2.0], [2.0, 4.0]], None)?.shape(), &[2, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.orth(A, rcond=None)")]
pub fn orth(#[name("A")] a: &NdArray, rcond: Option<f64>) -> Result<NdArray> {
    check_is_matrix("orth", a)?;
    let (u, s, _) = svd(a, false).map_err(|e| e.with_function_name("orth"))?;
    slice_axis(&u, 1, None, numerical_rank(&s, a, rcond)? as isize, 1)
}

fn check_is_matrix(op: &'static str, a: &NdArray) -> Result<()> {
    if a.ndim() == 2 { Ok(()) } else { Err(Error::shape(op, "takes a 2-D array", &[a.shape()])) }
}

fn polar_from_args(args: &Args) -> Result<Value> {
    let left = match args.value("side") {
        Some(Value::Str(side)) if side == "right" => false,
        Some(Value::Str(side)) if side == "left" => true,
        _ => return Err(Error::value(args.op(), "side is 'right' or 'left'")),
    };
    let (u, p) = polar(&args.array("a")?, left)?;
    Ok(Value::tuple([u.into(), p.into()]))
}

/// Returns the polar decomposition of matrices: `u` with orthonormal columns or rows, and positive semi-definite `p`
/// (`scipy.linalg.polar`).
///
/// `a = u @ p`, or `a = p @ u` if `left`.
///
/// # Errors
/// The errors of [`svd`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::array;
/// # fn main() -> cuprum::Result<()> {
/// let (u, p) = cuprum::linalg::polar(&array![[0.0, -2.0], [2.0, 0.0]], false)?;
/// assert!((p.to_vec::<f64>()?[0] - 2.0).abs() < 1e-14 && (u.to_vec::<f64>()?[2] - 1.0).abs() < 1e-14);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.polar(a, side='right')", call = polar_from_args)]
pub fn polar(a: &NdArray, left: bool) -> Result<(NdArray, NdArray)> {
    let (w, s, vh) = svd(a, false).map_err(|e| e.with_function_name("polar"))?;
    let u = matmul(&w, &vh)?;
    let p = if left {
        matmul(&multiply(&w, s.expand_dims(-2)?)?, &adjoint(&w)?)?
    } else {
        matmul(&multiply(adjoint(&vh)?, s.expand_dims(-2)?)?, &vh)?
    };
    Ok((u, p))
}
