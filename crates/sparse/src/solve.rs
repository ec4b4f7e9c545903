//! Iterative solvers of linear systems, and their linear operators.

mod bicgstab;
mod cg;
mod gmres;
mod linear_operator;
mod lsqr;

use cuprum_core::function::FromArgs;
use cuprum_core::{Args, DType, Error, NdArray, Result, Value, conj};

pub use self::bicgstab::bicgstab;
pub use self::cg::cg;
pub use self::gmres::gmres;
pub use self::linear_operator::{FnOperator, LinearOperator};
pub use self::lsqr::{LeastSquares, LsqrOptions, lsqr};

use crate::SparseArray;
use crate::index_and_value_arrays::{evaluate_contiguous, full_on_device};

/// Options of [`cg`], [`gmres`] and [`bicgstab`], with SciPy's defaults.
///
/// A solver ends when the norm of the residual `b - a @ x` is at most `max(rtol * norm(b), atol)`.
#[derive(Clone, Copy)]
pub struct SolverOptions<'a> {
    /// Starting vector of the iteration; zeros by default, and if `b` is zero.
    pub x0: Option<&'a NdArray>,
    /// Relative tolerance: 1e-5 by default.
    pub rtol: f64,
    /// Absolute tolerance: 0 by default.
    pub atol: f64,
    /// Maximum number of iterations; ten times the number of unknowns by default.
    pub maxiter: Option<usize>,
    /// Number of iterations between restarts of [`gmres`]: 20 by default, at most the number of unknowns.
    pub restart: Option<usize>,
    /// The preconditioner: an approximation of the inverse of the matrix.
    pub preconditioner: Option<&'a dyn LinearOperator>,
}

impl Default for SolverOptions<'_> {
    fn default() -> Self {
        SolverOptions { x0: None, rtol: 1e-5, atol: 0.0, maxiter: None, restart: None, preconditioner: None }
    }
}

/// The result of an iterative solver.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The approximation of the solution.
    pub x: NdArray,
    /// Whether the residual has reached the tolerance.
    pub has_converged: bool,
    /// Number of iterations.
    pub iterations: usize,
    /// Norm of the residual `b - a @ x`, as computed in the last iteration.
    pub residual_norm: f64,
}

/// A linear system with matching extents, and the state that all solvers share.
struct LinearSystem<'a> {
    a: &'a dyn LinearOperator,
    b: NdArray,
    x: NdArray,
    /// The iteration stops once the norm of the residual is at most this number.
    tolerance: f64,
    maxiter: usize,
    preconditioner: Option<&'a dyn LinearOperator>,
}

impl<'a> LinearSystem<'a> {
    fn from_solver_arguments(
        op: &'static str,
        a: &'a dyn LinearOperator,
        b: &NdArray,
        options: &SolverOptions<'a>,
    ) -> Result<LinearSystem<'a>> {
        let [rows, columns] = a.extents();
        if rows != columns || b.shape() != [rows] {
            return Err(Error::shape(op, "a square matrix (n, n) and a vector (n) are needed", &[&[rows, columns], b.shape()]));
        }
        let dtype = solver_dtype(op, a.element_type().promote(b.dtype()))?;
        let b = evaluate_contiguous(&b.astype(dtype)?)?;
        let b_norm = vector_norm(&b)?;
        let x = match options.x0 {
            Some(x) if x.shape() != b.shape() => {
                return Err(Error::shape(op, "x0 has the shape of b", &[x.shape(), b.shape()]));
            }
            // The relative tolerance of a zero `b` is zero, which an iteration from x0 rarely meets.
            Some(x) if b_norm != 0.0 => evaluate_contiguous(&x.astype(dtype)?)?,
            _ => full_on_device(b.device(), b.shape(), 0, dtype)?,
        };
        if let Some(m) = options.preconditioner
            && m.extents() != [rows, rows]
        {
            return Err(Error::shape(op, "the preconditioner has the shape of the matrix", &[&m.extents(), &[rows, rows]]));
        }
        let tolerance = (options.rtol * b_norm).max(options.atol);
        let maxiter = options.maxiter.unwrap_or(rows.saturating_mul(10));
        Ok(LinearSystem { a, b, x, tolerance, maxiter, preconditioner: options.preconditioner })
    }

    /// Returns `b - a @ x`.
    fn compute_residual(&self) -> Result<NdArray> {
        evaluate_contiguous(&self.b.subtract(self.multiply_by_matrix(&self.x)?)?)
    }

    fn multiply_by_matrix(&self, v: &NdArray) -> Result<NdArray> {
        self.a.matvec(v)?.astype(self.b.dtype())
    }

    /// Returns the product of the preconditioner with `v`. Without a preconditioner, returns `v`.
    fn apply_preconditioner(&self, v: &NdArray) -> Result<NdArray> {
        match self.preconditioner {
            Some(m) => m.matvec(v)?.astype(self.b.dtype())?.eval().cloned(),
            None => Ok(v.clone()),
        }
    }

    fn into_solution(self, iterations: usize, residual_norm: f64) -> Solution {
        // If `b` has an infinite norm, the tolerance is infinite, so an infinite residual norm would pass the comparison.
        let has_converged = residual_norm.is_finite() && residual_norm <= self.tolerance;
        Solution { has_converged, x: self.x, iterations, residual_norm }
    }
}

/// Returns the dtype in which solvers compute for arrays of `dtype`.
pub(crate) fn solver_dtype(op: &'static str, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F16 | DType::BF16 => Err(Error::dtype(op, "use astype('float32')", &[dtype])),
        inexact if inexact.is_inexact() => Ok(inexact),
        _ => Ok(DType::F64),
    }
}

/// Returns the distance from 1 to the next number of the real dtype of `dtype`, a float or complex dtype.
pub(crate) fn machine_epsilon(dtype: DType) -> f64 {
    if dtype.real() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// Returns the Euclidean norm of a vector: infinity if it exceeds the range of the dtype.
pub(crate) fn vector_norm(v: &NdArray) -> Result<f64> {
    let size = v.abs()?;
    let root = |size: &NdArray| Ok::<f64, Error>(size.multiply(size)?.sum(())?.sqrt()?.item()?.as_f64());
    let plain = root(&size)?;
    // A norm below `least` is computed from scaled elements, because the squares of small elements may be subnormal.
    let (least, greatest) = if size.dtype() == DType::F32 { (1e-12, f64::from(f32::MAX)) } else { (1e-140, f64::MAX) };
    if size.size() == 0 || (least..=greatest).contains(&plain) {
        return Ok(plain);
    }
    let largest = size.max(())?.item()?.as_f64();
    if largest == 0.0 || !largest.is_finite() {
        return Ok(largest);
    }
    let scaled = root(&size.divide(largest)?)? * largest;
    Ok(if scaled > greatest { f64::INFINITY } else { scaled })
}

/// Returns the inner product `sum(conj(a) * b)` of two vectors, as a 0-d array.
pub(crate) fn inner_product(a: &NdArray, b: &NdArray) -> Result<NdArray> {
    if a.dtype().is_complex() { conj(a)?.multiply(b)?.sum(()) } else { a.multiply(b)?.sum(()) }
}

/// Returns the argument `name`, a vector. A matrix of one column is converted to a vector, as in SciPy.
fn read_vector_argument(args: &Args, name: &str) -> Result<NdArray> {
    let v = args.array(name)?;
    if matches!(v.shape(), [_, 1]) { v.ravel() } else { Ok(v) }
}

/// Calls a solver with the arguments `A`, `b`, `x0`, `rtol`, `atol`, `maxiter` and `M`. Returns a pair, as SciPy does: the solution, and 0
/// if it has converged, else the number of iterations or 1.
fn solve_from_args(args: &Args, solve: fn(&dyn LinearOperator, &NdArray, &SolverOptions) -> Result<Solution>) -> Result<Value> {
    let a = SparseArray::from_args(args, "A")?;
    let preconditioner = args.get("M").map(|_| SparseArray::from_args(args, "M")).transpose()?;
    let x0 = args.get("x0").map(|_| read_vector_argument(args, "x0")).transpose()?;
    let count = |name: &str| args.get(name).map(|_| usize::from_args(args, name)).transpose();
    let options = SolverOptions {
        x0: x0.as_ref(),
        rtol: args.scalar_or("rtol", 1e-5)?.as_f64(),
        atol: args.scalar_or("atol", 0.0)?.as_f64(),
        maxiter: count("maxiter")?,
        restart: if args.value("restart").is_some() { count("restart")? } else { None },
        preconditioner: preconditioner.as_ref().map(|m| m as &dyn LinearOperator),
    };
    let solution = solve(&a, &read_vector_argument(args, "b")?, &options)?;
    let info = if solution.has_converged { 0 } else { solution.iterations.max(1) };
    Ok(Value::tuple([solution.x.into(), info.into()]))
}
