//! The stabilised method of biconjugate gradients.

use cuprum_core::{Args, NdArray, Result, numpy};

use super::{LinearOperator, LinearSystem, Solution, SolverOptions, inner_product, solve_from_args, vector_norm};
use crate::eval_arguments::call_with_named_errors;
use crate::index_and_value_arrays::evaluate_contiguous;

/// Solves `a @ x = b` by the stabilised method of biconjugate gradients (`scipy.sparse.linalg.bicgstab`).
///
/// `a` is (n, n) and need not be symmetric, `b` is (n). Each iteration takes two products with `a`. Integers are converted to float64. The
/// method ends early at a breakdown: a residual, or the product with a search direction, is orthogonal to the first residual.
///
/// Source: Barrett et al., "Templates for the Solution of Linear Systems", section 2.3.8.
///
/// # Errors
/// Extents that do not match, float16 and bfloat16, and errors of the products. A solution that has not converged is no error
/// ([`Solution::has_converged`]).
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, SolverOptions, bicgstab};
/// let a = CsrArray::from_dense(&array![[4.0, 1.0], [-1.0, 3.0]])?;
/// let solution = bicgstab(&a, &array![6.0, 5.0], &SolverOptions { rtol: 1e-12, ..Default::default() })?;
/// assert!((solution.x.to_vec::<f64>()?[1] - 2.0).abs() < 1e-9);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.bicgstab(A, b, x0=None, *, rtol=1e-05, atol=0.0, maxiter=None, M=None)", call = |args: &Args| call_with_named_errors(args, |args| solve_from_args(args, bicgstab)))]
pub fn bicgstab(a: &dyn LinearOperator, b: &NdArray, options: &SolverOptions) -> Result<Solution> {
    let mut system = LinearSystem::from_solver_arguments("bicgstab", a, b, options)?;
    let mut r = system.compute_residual()?;
    let shadow = r.clone();
    let mut residual_norm = vector_norm(&r)?;
    // From the last iteration: the search direction `p`, the product `v` of the matrix with the preconditioned `p`, `omega`, and
    // `rho_over`, which is rho * omega / alpha.
    let mut last: Option<(NdArray, NdArray, NdArray, NdArray)> = None;
    let mut iterations = 0;
    while residual_norm > system.tolerance && iterations < system.maxiter {
        let rho = evaluate_contiguous(&inner_product(&shadow, &r)?)?;
        if !rho.item()?.as_bool() {
            break;
        }
        let p = match &last {
            Some((p, v, rho_over, omega)) => {
                let beta = rho.divide(rho_over)?;
                evaluate_contiguous(&r.add(p.subtract(v.multiply(omega)?)?.multiply(beta)?)?)?
            }
            None => r.clone(),
        };
        let p_hat = system.apply_preconditioner(&p)?;
        let v = evaluate_contiguous(&system.multiply_by_matrix(&p_hat)?)?;
        let alpha = evaluate_contiguous(&rho.divide(inner_product(&shadow, &v)?)?)?;
        let s = evaluate_contiguous(&r.subtract(v.multiply(&alpha)?)?)?;
        iterations += 1;
        let half = vector_norm(&s)?;
        // If `v` is orthogonal to the first residual, BiCGSTAB breaks down: `alpha` is infinite or NaN. The solver then returns the last
        // approximation.
        if !half.is_finite() {
            break;
        }
        if half <= system.tolerance {
            system.x = evaluate_contiguous(&system.x.add(p_hat.multiply(&alpha)?)?)?;
            return Ok(system.into_solution(iterations, half));
        }
        let s_hat = system.apply_preconditioner(&s)?;
        let t = evaluate_contiguous(&system.multiply_by_matrix(&s_hat)?)?;
        let omega = evaluate_contiguous(&inner_product(&t, &s)?.divide(inner_product(&t, &t)?)?)?;
        let rest = evaluate_contiguous(&s.subtract(t.multiply(&omega)?)?)?;
        let after = vector_norm(&rest)?;
        if !after.is_finite() {
            break;
        }
        system.x = evaluate_contiguous(&system.x.add(p_hat.multiply(&alpha)?)?.add(s_hat.multiply(&omega)?)?)?;
        (r, residual_norm) = (rest, after);
        if !omega.item()?.as_bool() {
            break;
        }
        let rho_over = evaluate_contiguous(&rho.multiply(&omega)?.divide(&alpha)?)?;
        last = Some((p, v, rho_over, omega));
    }
    Ok(system.into_solution(iterations, residual_norm))
}
