//! The method of conjugate gradients.

use cuprum_core::{Args, NdArray, Result, numpy};

use super::{LinearOperator, LinearSystem, Solution, SolverOptions, inner_product, solve_from_args, vector_norm};
use crate::eval_arguments::call_with_named_errors;
use crate::index_and_value_arrays::evaluate_contiguous;

/// Solves `a @ x = b` for a Hermitian positive definite matrix by conjugate gradients (`scipy.sparse.linalg.cg`).
///
/// `a` is (n, n) and `b` is (n). Each iteration takes one product with `a`. Integers are converted to float64.
///
/// Source: Barrett et al., "Templates for the Solution of Linear Systems", section 2.3.1.
///
/// # Errors
/// Extents that do not match, float16 and bfloat16, and errors of the products. A solution that has not converged is no error
/// ([`Solution::has_converged`]).
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, SolverOptions, cg};
/// let a = CsrArray::from_dense(&array![[4.0, 1.0], [1.0, 3.0]])?;
/// let solution = cg(&a, &array![1.0, 2.0], &SolverOptions { rtol: 1e-10, ..Default::default() })?;
/// assert!(solution.has_converged && (solution.x.to_vec::<f64>()?[0] - 1.0 / 11.0).abs() < 1e-9);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.cg(A, b, x0=None, *, rtol=1e-05, atol=0.0, maxiter=None, M=None)", call = |args: &Args| call_with_named_errors(args, |args| solve_from_args(args, cg)))]
pub fn cg(a: &dyn LinearOperator, b: &NdArray, options: &SolverOptions) -> Result<Solution> {
    let mut system = LinearSystem::from_solver_arguments("cg", a, b, options)?;
    let mut r = system.compute_residual()?;
    let mut residual_norm = vector_norm(&r)?;
    let mut direction: Option<(NdArray, NdArray)> = None;
    let mut iterations = 0;
    // A NaN residual norm ends the loop, because every comparison with NaN is false.
    while residual_norm > system.tolerance && iterations < system.maxiter {
        let z = system.apply_preconditioner(&r)?;
        let rho = evaluate_contiguous(&inner_product(&r, &z)?)?;
        let p = match &direction {
            Some((p, before)) => evaluate_contiguous(&z.add(p.multiply(rho.divide(before)?)?)?)?,
            None => z,
        };
        let q = evaluate_contiguous(&system.multiply_by_matrix(&p)?)?;
        let alpha = evaluate_contiguous(&rho.divide(inner_product(&p, &q)?)?)?;
        let rest = evaluate_contiguous(&r.subtract(q.multiply(&alpha)?)?)?;
        iterations += 1;
        let after = vector_norm(&rest)?;
        // Keeps the last approximation if the matrix maps the search direction to an orthogonal vector, or if a product overflows.
        if !after.is_finite() {
            break;
        }
        system.x = evaluate_contiguous(&system.x.add(p.multiply(&alpha)?)?)?;
        (r, residual_norm, direction) = (rest, after, Some((p, rho)));
    }
    Ok(system.into_solution(iterations, residual_norm))
}
