//! Linear systems, inverses and determinants.

use super::{DET, INV, MatrixBatch, SLOGDET, SOLVE, SOLVE_TRIANGULAR, broadcast_matrix_batches};
use crate::array::NdArray;
use crate::call::{Form, Linalg, Triangle, Work};
use crate::error::{Error, Result};
use crate::function::FromArgs;
use crate::index::Item;
use crate::op::Op;
use crate::ops::common_device;
use crate::ops::python_value::{Args, Value};
use cuprum_macros::numpy;

/// Returns the solution `x` of `a @ x = b` for square matrices `a` (`numpy.linalg.solve`).
///
/// A 1-D `b` is a vector. Any other `b` is a batch of matrices in its last two axes. The batch axes of `a` and `b` broadcast.
///
/// # Errors
/// Matrices that are not square, extents that do not match, arrays on different devices, float16, or a singular matrix ([`Error::LinAlg`]).
/// On a GPU, reading the result returns the error of a singular matrix.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::solve};
/// # fn main() -> cuprum::Result<()> {
/// let x = solve(&array![[2.0, 0.0], [0.0, 4.0]], &array![1.0, 1.0])?;
/// assert_eq!(x.to_vec::<f64>()?, [0.5, 0.25]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.solve(a, b)")]
pub fn solve(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    dispatch_solve(SOLVE, a, b, Linalg::Solve)
}

/// Returns the solution `x` of `a @ x = b` for triangular matrices `a` (`scipy.linalg.solve_triangular`).
///
/// `triangle` is the triangle of `a` that is read. With [`Form::Transposed`] or [`Form::Adjoint`], the transpose or the conjugate transpose
/// of `a` replaces `a` in the equation. With `unit_diagonal`, the diagonal is not read and counts as ones. `b` and the batch axes are as in
/// [`solve`].
///
/// # Errors
/// The errors of [`solve`]; a matrix with a zero on the diagonal is singular.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::{Form, Triangle, solve_triangular}};
/// # fn main() -> cuprum::Result<()> {
/// let a = array![[2.0, 0.0], [1.0, 4.0]];
/// let x = solve_triangular(&a, &array![2.0, 5.0], Triangle::Lower, Form::Plain, false)?;
/// assert_eq!(x.to_vec::<f64>()?, [1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False)", call = solve_triangular_from_args)]
pub fn solve_triangular(a: &NdArray, b: &NdArray, triangle: Triangle, form: Form, unit_diagonal: bool) -> Result<NdArray> {
    dispatch_solve(SOLVE_TRIANGULAR, a, b, Linalg::SolveTriangular { triangle, form, unit_diagonal })
}

fn solve_triangular_from_args(args: &Args) -> Result<Value> {
    let triangle = if args.bool_or("lower", false)? { Triangle::Lower } else { Triangle::Upper };
    let form = Form::from_args(args, "trans")?;
    let unit_diagonal = args.bool_or("unit_diagonal", false)?;
    solve_triangular(&args.array("a")?, &args.array("b")?, triangle, form, unit_diagonal).map(Value::Array)
}

/// Dispatches a solution of linear systems. A 1-D `b` becomes a matrix of one column.
fn dispatch_solve(op: Op, a: &NdArray, b: &NdArray, task: Linalg) -> Result<NdArray> {
    let device = common_device(op, a, b)?;
    let is_vector = b.ndim() == 1;
    let column = if is_vector { b.expand_dims(1)? } else { b.clone() };
    let (a, right) = (MatrixBatch::from_square_array(op, a)?, MatrixBatch::from_array(op, &column)?);
    if a.columns != right.rows {
        let message = format!("matrices of {} columns need as many rows on the right, not {}", a.columns, right.rows);
        return Err(Error::shape(op.name(), message, &[a.array.shape(), b.shape()]));
    }
    let (a, right) = broadcast_matrix_batches(op, a, right)?;
    if op == SOLVE && right.columns == 0 && !a.is_empty() {
        // Without right-hand sides, no kernel would run to detect singular matrices. So the system is solved for one column of zeros.
        let zeros = right.full_for_each_matrix(0.0, right.array.dtype(), &[right.rows, 1])?;
        return dispatch_solve(op, &a.array, &zeros, task)?.index(&[Item::Ellipsis, Item::slice(0, 0, 1)]);
    }
    let x = if right.is_empty() {
        right.full_for_each_matrix(0.0, right.array.dtype(), &[right.rows, right.columns])?
    } else {
        let output = right.output_spec(right.array.dtype(), &[right.rows, right.columns])?;
        crate::ops::dispatch_single_output(op, device, &[a.array.stored()?, right.array.stored()?], output, Work::Linalg(task))?
    };
    if is_vector { x.squeeze(-1) } else { Ok(x) }
}

/// Returns the inverses of square matrices (`numpy.linalg.inv`).
///
/// To solve linear systems, [`solve`] is faster and more accurate.
///
/// # Errors
/// Matrices that are not square, float16, or a singular matrix ([`Error::LinAlg`]).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::inv};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(inv(&array![[2.0, 0.0], [0.0, 4.0]])?, array![[0.5, 0.0], [0.0, 0.25]]);
/// assert!(inv(&array![[1.0, 1.0], [1.0, 1.0]]).and_then(|x| x.to_vec::<f64>()).is_err());
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.inv(a)")]
pub fn inv(a: &NdArray) -> Result<NdArray> {
    let a = MatrixBatch::from_square_array(INV, a)?;
    let extents = [a.rows, a.columns];
    if a.is_empty() {
        return a.full_for_each_matrix(0.0, a.array.dtype(), &extents);
    }
    let [inverse] = a.dispatch_decomposition(INV, [a.output_spec(a.array.dtype(), &extents)?], Linalg::Inverse)?;
    Ok(inverse)
}

/// Returns the determinants of square matrices (`numpy.linalg.det`). The determinant of a matrix without elements is 1.
///
/// # Errors
/// Matrices that are not square, or float16.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::det};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(det(&array![[0.0, 2.0], [3.0, 0.0]])?.item()?, -6.0);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.det(a)")]
pub fn det(a: &NdArray) -> Result<NdArray> {
    let a = MatrixBatch::from_square_array(DET, a)?;
    if a.is_empty() {
        return a.full_for_each_matrix(1.0, a.array.dtype(), &[]);
    }
    let [det] = a.dispatch_decomposition(DET, [a.output_spec(a.array.dtype(), &[])?], Linalg::Determinant { log: false })?;
    Ok(det)
}

/// Returns sign and logarithm of the magnitude of the determinants of square matrices (`numpy.linalg.slogdet`).
///
/// The determinant is `sign * exp(logarithm)`. The sign of a complex determinant is a number of magnitude 1. A singular matrix has sign 0
/// and logarithm -inf.
///
/// # Errors
/// Matrices that are not square, or float16.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{array, ops::linalg::slogdet};
/// # fn main() -> cuprum::Result<()> {
/// let (sign, log) = slogdet(&array![[0.0, 1e200], [1e200, 0.0]])?;
/// assert_eq!(sign.item()?, -1.0);
/// assert!((log.item_as::<f64>()? - 400.0 * 10f64.ln()).abs() < 1e-9);
/// # Ok(())
/// # }
/// ```
#[numpy("linalg.slogdet(a)", call = slogdet_from_args)]
pub fn slogdet(a: &NdArray) -> Result<(NdArray, NdArray)> {
    let a = MatrixBatch::from_square_array(SLOGDET, a)?;
    let dtype = a.array.dtype();
    if a.is_empty() {
        return Ok((a.full_for_each_matrix(1.0, dtype, &[])?, a.full_for_each_matrix(0.0, dtype.real(), &[])?));
    }
    let outputs = [a.output_spec(dtype, &[])?, a.output_spec(dtype.real(), &[])?];
    let [sign, log] = a.dispatch_decomposition(SLOGDET, outputs, Linalg::Determinant { log: true })?;
    Ok((sign, log))
}

fn slogdet_from_args(args: &Args) -> Result<Value> {
    let (sign, log) = slogdet(&args.array("a")?)?;
    Ok(Value::named_tuple(&["sign", "logabsdet"], [sign, log].map(Value::Array)))
}

impl FromArgs for Triangle {
    fn from_args(args: &Args, name: &str) -> Result<Triangle> {
        match args.value(name) {
            Some(Value::Str(text)) if matches!(text.as_str(), "L" | "l") => Ok(Triangle::Lower),
            Some(Value::Str(text)) if matches!(text.as_str(), "U" | "u") => Ok(Triangle::Upper),
            _ => Err(Error::value(args.op(), format!("{name} argument must be 'L' or 'U'"))),
        }
    }
}

impl FromArgs for Form {
    fn from_args(args: &Args, name: &str) -> Result<Form> {
        match args.value(name) {
            None | Some(Value::None) => Ok(Form::Plain),
            Some(Value::Str(text)) if text == "N" => Ok(Form::Plain),
            Some(Value::Str(text)) if text == "T" => Ok(Form::Transposed),
            Some(Value::Str(text)) if text == "C" => Ok(Form::Adjoint),
            Some(value) => match value.int(args.op()) {
                Ok(0) => Ok(Form::Plain),
                Ok(1) => Ok(Form::Transposed),
                Ok(2) => Ok(Form::Adjoint),
                _ => Err(Error::value(args.op(), format!("{name} is 0 or 'N', 1 or 'T', 2 or 'C'"))),
            },
        }
    }
}
