//! The generalised method of minimal residuals, with restarts.

use cuprum_core::{Args, Complex, NdArray, Result, Scalar, numpy, stack};

use super::{LinearOperator, LinearSystem, Solution, SolverOptions, machine_epsilon, solve_from_args, vector_norm};
use crate::eval_arguments::call_with_named_errors;
use crate::index_and_value_arrays::evaluate_contiguous;

/// Solves `a @ x = b` by the generalised method of minimal residuals (`scipy.sparse.linalg.gmres`).
///
/// `a` is (n, n) and need not be symmetric, `b` is (n). The method keeps one vector per iteration. After `restart` iterations, it drops
/// these vectors and restarts from the current approximation. Each iteration takes one product with `a`. A preconditioner is applied on the
/// right, so the stopping test uses the residual `b - a @ x` of the original system. `maxiter` counts iterations, not restarts. Integers
/// are converted to float64.
///
/// Source: Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems", SIAM Journal on
/// Scientific and Statistical Computing 7, 1986.
///
/// # Errors
/// Extents that do not match, float16 and bfloat16, and errors of the products. A solution that has not converged is no error
/// ([`Solution::has_converged`]).
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, SolverOptions, gmres};
/// let a = CsrArray::from_dense(&array![[0.0, 2.0], [-1.0, 3.0]])?;
/// let solution = gmres(&a, &array![4.0, 5.0], &SolverOptions { rtol: 1e-12, ..Default::default() })?;
/// assert!((solution.x.to_vec::<f64>()?[0] - 1.0).abs() < 1e-9);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.linalg.gmres(A, b, x0=None, *, rtol=1e-05, atol=0.0, restart=None, maxiter=None, M=None)", call = |args: &Args| call_with_named_errors(args, |args| solve_from_args(args, gmres)))]
pub fn gmres(a: &dyn LinearOperator, b: &NdArray, options: &SolverOptions) -> Result<Solution> {
    let mut system = LinearSystem::from_solver_arguments("gmres", a, b, options)?;
    let restart = options.restart.unwrap_or(20).clamp(1, system.b.size().max(1));
    let mut iterations = 0;
    let mut residual_norm = vector_norm(&system.compute_residual()?)?;
    while residual_norm > system.tolerance && iterations < system.maxiter {
        let steps = restart.min(system.maxiter - iterations);
        let last = system.x.clone();
        iterations += run_gmres_cycle(&mut system, steps)?;
        let after = vector_norm(&system.compute_residual()?)?;
        // Stops after a restart without progress, because the next one would repeat it.
        if after.is_nan() || after >= residual_norm {
            system.x = last;
            break;
        }
        residual_norm = after;
    }
    Ok(system.into_solution(iterations, residual_norm))
}

/// Improves `x` by at most `steps` iterations without a restart. Returns the number of iterations.
fn run_gmres_cycle(system: &mut LinearSystem, steps: usize) -> Result<usize> {
    let r = system.compute_residual()?;
    let beta = vector_norm(&r)?;
    let epsilon = machine_epsilon(r.dtype());
    let mut basis = vec![evaluate_contiguous(&r.divide(beta)?)?];
    // The columns of the triangular matrix (the Hessenberg matrix after Givens rotations), and the rotated right-hand side.
    let mut columns: Vec<Vec<Complex<f64>>> = Vec::new();
    let mut rotations: Vec<(f64, Complex<f64>)> = Vec::new();
    let mut right = vec![Complex::new(beta, 0.0)];
    for step in 0..steps {
        let mut w = evaluate_contiguous(&system.multiply_by_matrix(&system.apply_preconditioner(&basis[step])?)?)?;
        let before = vector_norm(&w)?;
        let mut column = vec![Complex::new(0.0, 0.0); step + 1];
        // Two passes of classical Gram-Schmidt are as accurate as the modified method, and each pass takes only two products.
        let vectors = stack(&basis, 0)?;
        for _ in 0..2 {
            let projections = inner_products_with_rows(&vectors, &w)?;
            w = evaluate_contiguous(&w.subtract(projections.matmul(&vectors)?)?)?;
            for (sum, h) in column.iter_mut().zip(to_complex_vec(&projections)?) {
                *sum += h;
            }
        }
        let next = vector_norm(&w)?;
        for (row, &(c, s)) in rotations.iter().enumerate() {
            let (upper, lower) = (column[row], column[row + 1]);
            column[row] = upper * c + s * lower;
            column[row + 1] = lower * c - s.conj() * upper;
        }
        let (c, s, length) = givens_rotation(column[step], next);
        column[step] = length;
        let last = right[step];
        right[step] = last * c;
        right.push(-s.conj() * last);
        rotations.push((c, s));
        columns.push(column);
        // If the new vector is in the span of the basis, the basis cannot be extended, so the iteration stops.
        let has_ended = next <= before * epsilon || right[step + 1].norm() <= system.tolerance;
        if has_ended || step + 1 == steps {
            break;
        }
        basis.push(evaluate_contiguous(&w.divide(next)?)?);
    }
    let count = columns.len();
    // A pivot of at most `least_pivot` is a rounding error of the pivot 0 of a singular matrix.
    let least_pivot = columns.iter().enumerate().fold(0.0f64, |largest, (row, column)| largest.max(column[row].norm())) * 2.0 * epsilon;
    let mut weights = vec![Complex::new(0.0, 0.0); count];
    for row in (0..count).rev() {
        let known: Complex<f64> = (row + 1..count).map(|k| columns[k][row] * weights[k]).sum();
        let pivot = columns[row][row];
        weights[row] = if pivot.norm() <= least_pivot { Complex::new(0.0, 0.0) } else { (right[row] - known) / pivot };
    }
    let mut correction: Option<NdArray> = None;
    for (vector, &weight) in basis.iter().zip(&weights) {
        let weight = if system.b.dtype().is_complex() { Scalar::Complex(weight) } else { Scalar::Float(weight.re) };
        let term = vector.multiply(weight)?;
        correction = Some(match correction {
            Some(sum) => evaluate_contiguous(&sum.add(term)?)?,
            None => evaluate_contiguous(&term)?,
        });
    }
    if let Some(correction) = correction {
        system.x = evaluate_contiguous(&system.x.add(system.apply_preconditioner(&correction)?)?)?;
    }
    Ok(count)
}

/// Returns the inner product of each row of `vectors` with `w`.
fn inner_products_with_rows(vectors: &NdArray, w: &NdArray) -> Result<NdArray> {
    if vectors.dtype().is_complex() { cuprum_core::conj(vectors)?.matmul(w) } else { vectors.matmul(w) }
}

fn to_complex_vec(a: &NdArray) -> Result<Vec<Complex<f64>>> {
    a.astype(cuprum_core::DType::C128)?.to_vec()
}

/// Returns cosine and sine of the Givens rotation that maps `(a, b)` to `(length, 0)`, and `length`. `b` is real.
fn givens_rotation(a: Complex<f64>, b: f64) -> (f64, Complex<f64>, Complex<f64>) {
    let size = a.norm().hypot(b);
    if size == 0.0 {
        return (1.0, Complex::new(0.0, 0.0), a);
    }
    if a.norm() == 0.0 {
        return (0.0, Complex::new(1.0, 0.0), Complex::new(b, 0.0));
    }
    let phase = a / a.norm();
    (a.norm() / size, phase * (b / size), phase * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_annihilate_the_second_component() {
        for (a, b) in [(3.0, 4.0, 2.0), (0.0, 0.0, 2.0), (-1.0, 0.5, 0.0), (0.0, 0.0, 0.0)].map(|(re, im, b)| (Complex::new(re, im), b)) {
            let (c, s, length) = givens_rotation(a, b);
            assert!((a * c + s * b - length).norm() < 1e-15 && (Complex::new(b, 0.0) * c - s.conj() * a).norm() < 1e-15);
        }
    }
}
