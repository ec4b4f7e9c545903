//! Least squares by Golub-Kahan bidiagonalisation.

use cuprum_core::function::FromArgs;
use cuprum_core::{Args, Error, NdArray, Result, Value, numpy};

use super::{LinearOperator, machine_epsilon, read_vector_argument, solver_dtype, vector_norm};
use crate::SparseArray;
use crate::eval_arguments::call_with_named_errors;
use crate::index_and_value_arrays::{evaluate_contiguous, full_on_device};

/// Options of [`lsqr`], with SciPy's defaults.
#[derive(Clone, Copy, Debug)]
pub struct LsqrOptions<'a> {
    /// Weight of the norm of the solution: `norm(b - a @ x)**2 + damp**2 * norm(x)**2` is minimised. 0 by default.
    pub damp: f64,
    /// Assumed relative error of the matrix, for the stopping test of least-squares problems: 1e-6 by default.
    pub atol: f64,
    /// Assumed relative error of `b`, for the stopping test of consistent systems: 1e-6 by default.
    pub btol: f64,
    /// Limit of the condition number of `a`, at which the method stops: 1e8 by default. 0 means no limit.
    pub conlim: f64,
    /// Maximum number of iterations; twice the number of unknowns by default.
    pub maxiter: Option<usize>,
    /// Starting vector of the iteration; zeros by default.
    pub x0: Option<&'a NdArray>,
}

impl Default for LsqrOptions<'_> {
    fn default() -> Self {
        LsqrOptions { damp: 0.0, atol: 1e-6, btol: 1e-6, conlim: 1e8, maxiter: None, x0: None }
    }
}

/// The result of [`lsqr`].
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// The solution.
    pub x: NdArray,
    /// The reason why the iteration stopped, as SciPy's `istop`: 0 if `x0` is the solution, 1 for a consistent system, 2 for a
    /// least-squares solution, 3 if the condition number exceeds the limit, and 7 for the maximum number of iterations. The numbers 4, 5
    /// and 6 mean that the tests of 1, 2 and 3 pass at machine precision.
    pub stop: u8,
    /// Number of iterations.
    pub iterations: usize,
    /// Norm of `b - a @ x`.
    pub residual_norm: f64,
    /// Norm of the gradient `a.H @ (b - a @ x) - damp**2 * x`.
    pub gradient_norm: f64,
    /// Estimate of the condition number of the matrix.
    pub condition: f64,
}

/// Returns the vector `x` that minimises `norm(b - a @ x)` (`scipy.sparse.linalg.lsqr`).
///
/// `a` is (m, n) and `b` is (m). Each iteration takes one product with `a` and one with its conjugate transpose. Integers are converted to
/// float64.
///
/// In `eval`, `b` may also be (m, 1), and `show` and `calc_var` must be false.
///
/// Source: Paige and Saunders, "LSQR: an algorithm for sparse linear equations and sparse least squares", ACM Transactions on Mathematical
/// Software 8, 1982.
///
/// # Errors
/// Extents that do not match, float16 and bfloat16, and errors of the products.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, LsqrOptions, lsqr};
/// let a = CsrArray::from_dense(&array![[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])?;
/// let fit = lsqr(&a, &array![1.0, 3.0, 5.0], &LsqrOptions::default())?;
/// assert!((fit.x.to_vec::<f64>()?[1] - 2.0).abs() < 1e-5);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.lsqr(A, b, damp=0.0, atol=1e-06, btol=1e-06, conlim=100000000.0, iter_lim=None, show=False, calc_var=False, x0=None)", call = |args: &Args| call_with_named_errors(args, lsqr_from_args))]
pub fn lsqr(a: &dyn LinearOperator, b: &NdArray, options: &LsqrOptions) -> Result<LeastSquares> {
    const OP: &str = "lsqr";
    let [rows, columns] = a.extents();
    if b.shape() != [rows] {
        return Err(Error::shape(OP, "b has one element for each row of the matrix", &[&[rows, columns], b.shape()]));
    }
    let dtype = solver_dtype(OP, a.element_type().promote(b.dtype()))?;
    let epsilon = machine_epsilon(dtype);
    let times = |v: &NdArray| a.matvec(v)?.astype(dtype);
    let times_adjoint = |v: &NdArray| a.rmatvec(v)?.astype(dtype);
    // Returns the norm of a vector, and the vector divided by its norm. A zero vector is returned unchanged.
    let normalise = |v: NdArray| -> Result<(f64, NdArray)> {
        let v = evaluate_contiguous(&v)?;
        let size = vector_norm(&v)?;
        Ok((size, if size > 0.0 { evaluate_contiguous(&v.divide(size)?)? } else { v }))
    };
    let b = evaluate_contiguous(&b.astype(dtype)?)?;
    let mut x = match options.x0 {
        Some(x) if x.shape() != [columns] => return Err(Error::shape(OP, "x0 has one element for each column", &[x.shape()])),
        Some(x) => evaluate_contiguous(&x.astype(dtype)?)?,
        None => full_on_device(b.device(), &[columns], 0, dtype)?,
    };
    let b_norm = vector_norm(&b)?;
    let start = if options.x0.is_some() { b.subtract(times(&x)?)? } else { b };
    let (mut beta, mut u) = normalise(start)?;
    let (mut alpha, mut v) = normalise(times_adjoint(&u)?)?;
    let mut w = v.clone();
    let mut result =
        LeastSquares { x: x.clone(), stop: 0, iterations: 0, residual_norm: beta, gradient_norm: alpha * beta, condition: 0.0 };
    if alpha * beta == 0.0 {
        return Ok(result);
    }
    let (mut rho_bar, mut phi_bar) = (alpha, beta);
    let (mut matrix_norm, mut direction_norm, mut damped) = (0.0f64, 0.0f64, 0.0f64);
    // For its estimate of `norm(x)`, LSQR also applies rotations to the bidiagonal matrix from the right. These variables hold their state.
    let (mut z, mut x_norm_squared, mut cosine, mut sine) = (0.0f64, 0.0f64, -1.0f64, 0.0f64);
    let maxiter = options.maxiter.unwrap_or(columns.saturating_mul(2));
    let limit = if options.conlim > 0.0 { 1.0 / options.conlim } else { 0.0 };
    result.stop = 7;
    while result.iterations < maxiter {
        result.iterations += 1;
        (beta, u) = normalise(times(&v)?.subtract(u.multiply(alpha)?)?)?;
        let old_alpha = alpha;
        matrix_norm = matrix_norm.hypot(old_alpha.hypot(beta)).hypot(options.damp);
        if beta > 0.0 {
            (alpha, v) = normalise(times_adjoint(&u)?.subtract(v.multiply(beta)?)?)?;
        }
        // The first Givens rotation eliminates the damping term, and the second one the subdiagonal element.
        let rho_damped = rho_bar.hypot(options.damp);
        let damped_part = options.damp / rho_damped * phi_bar;
        phi_bar *= rho_bar / rho_damped;
        let rho = rho_damped.hypot(beta);
        let (c, s) = (rho_damped / rho, beta / rho);
        let theta = s * alpha;
        rho_bar = -c * alpha;
        let phi = c * phi_bar;
        phi_bar *= s;
        let tau = s * phi;
        direction_norm = direction_norm.hypot(vector_norm(&w)? / rho);
        x = evaluate_contiguous(&x.add(w.multiply(phi / rho)?)?)?;
        w = evaluate_contiguous(&v.subtract(w.multiply(theta / rho)?)?)?;
        let delta = sine * rho;
        let gamma_bar = -cosine * rho;
        let right = phi - delta * z;
        let x_norm = (x_norm_squared + (right / gamma_bar).powi(2)).sqrt();
        let gamma = gamma_bar.hypot(theta);
        (cosine, sine) = (gamma_bar / gamma, theta / gamma);
        z = right / gamma;
        x_norm_squared += z * z;
        result.condition = matrix_norm * direction_norm;
        damped = damped.hypot(damped_part);
        let r_norm = phi_bar.hypot(damped);
        result.gradient_norm = alpha * tau.abs();
        let squared = r_norm * r_norm - (options.damp * x_norm).powi(2);
        // `squared.max(0.0)` would turn NaN into 0.
        result.residual_norm = if squared < 0.0 { 0.0 } else { squared.sqrt() };
        let relative = r_norm / b_norm;
        let gradient = result.gradient_norm / (matrix_norm * r_norm + epsilon);
        let inverse_condition = 1.0 / (result.condition + epsilon);
        let at_precision = |t: f64| 1.0 + t <= 1.0;
        let consistent = relative / (1.0 + matrix_norm * x_norm / b_norm);
        let bound = options.btol + options.atol * matrix_norm * x_norm / b_norm;
        let reasons = [
            (relative <= bound, 1),
            (gradient <= options.atol, 2),
            (inverse_condition <= limit, 3),
            (at_precision(consistent), 4),
            (at_precision(gradient), 5),
            (at_precision(inverse_condition), 6),
        ];
        if let Some((_, stop)) = reasons.into_iter().find(|(holds, _)| *holds) {
            result.stop = stop;
            break;
        }
    }
    result.x = x;
    Ok(result)
}

fn lsqr_from_args(args: &Args) -> Result<Value> {
    for name in ["show", "calc_var"] {
        if args.bool_or(name, false)? {
            return Err(Error::value(args.op(), format!("{name}=True is not supported")));
        }
    }
    let a = SparseArray::from_args(args, "A")?;
    let x0 = args.get("x0").map(|x| x.array(args.op())).transpose()?;
    let number = |name: &str, default: f64| Ok::<f64, Error>(args.scalar_or(name, default)?.as_f64());
    let options = LsqrOptions {
        damp: number("damp", 0.0)?,
        atol: number("atol", 1e-6)?,
        btol: number("btol", 1e-6)?,
        conlim: number("conlim", 1e8)?,
        maxiter: args.get("iter_lim").map(|_| usize::from_args(args, "iter_lim")).transpose()?,
        x0: x0.as_ref(),
    };
    let fit = lsqr(&a, &read_vector_argument(args, "b")?, &options)?;
    let numbers = [Value::from(i32::from(fit.stop)), fit.iterations.into(), fit.residual_norm.into()];
    Ok(Value::tuple(std::iter::once(fit.x.into()).chain(numbers)))
}
