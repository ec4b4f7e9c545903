//! Logarithms of upper triangular matrices by inverse scaling and squaring.
//!
//! A. H. Al-Mohy and N. J. Higham, "Improved inverse scaling and squaring algorithms for the matrix logarithm", SIAM J. Sci. Comput. 34
//! (2012). Matrices are column-major.

use cuprum_core::Result;

use crate::matrix_batch::MatrixBatch;
use crate::matrix_element::{C, Field, logarithm, square_root};
use crate::matrix_square_root::triangular_square_root;

/// Largest norms of `x` for which the Padé approximants of log(1 + x) are exact to double precision, for degrees 1 to 7. Source: table 2.1
/// of Al-Mohy and Higham (see the module documentation).
const PADE_MAX_NORMS: [f64; 7] = [
    1.586970738772063e-5,
    2.313807884242979e-3,
    1.938179313533253e-2,
    6.209171588994762e-2,
    1.276404810806775e-1,
    2.060962623452836e-1,
    2.879093714241194e-1,
];
/// Maximum number of square roots. The logarithm of the largest double-precision number needs 12.
const MAX_SQUARE_ROOTS: usize = 100;

/// Scratch memory for logarithms of matrices of one extent.
pub(crate) struct LogarithmScratch {
    root: Vec<C>,
    next: Vec<C>,
    square: Vec<C>,
    power: Vec<C>,
    column: Vec<C>,
}

impl LogarithmScratch {
    pub(crate) fn allocate(batch: &MatrixBatch<'_>, n: usize) -> Result<LogarithmScratch> {
        let zeros = || batch.allocate_zeros::<C>(n * n);
        Ok(LogarithmScratch { root: zeros()?, next: zeros()?, square: zeros()?, power: zeros()?, column: batch.allocate_zeros(n)? })
    }
}

/// Writes the principal logarithm of the upper triangular matrix `t` to `log`. Returns whether the logarithm exists.
pub(crate) fn triangular_logarithm(t: &[C], log: &mut [C], n: usize, scratch: &mut LogarithmScratch) -> bool {
    if (0..n).any(|i| t[i * n + i] == C::ZERO) {
        return false;
    }
    let LogarithmScratch { root, next, square, power, column } = scratch;
    root.copy_from_slice(t);
    let (mut roots, mut small_enough) = (0, 0);
    let degree = loop {
        if max_diagonal_distance_from_1(root, n) <= PADE_MAX_NORMS[6] {
            next.copy_from_slice(root);
            next.iter_mut().step_by(n + 1).for_each(|v| *v -= 1.0);
            let norm = pade_norm_bound(next, square, power, n);
            if let Some(degree) = pade_degree_for_norm(norm) {
                // Another square root is worth its cost if it lowers the degree of the approximant by two.
                small_enough += 1;
                if small_enough == 2 || pade_degree_for_norm(0.5 * norm).is_none_or(|halved| degree <= halved + 1) {
                    break degree;
                }
            }
        }
        if roots == MAX_SQUARE_ROOTS {
            break PADE_MAX_NORMS.len();
        }
        if !triangular_square_root(root, next, n) {
            return false;
        }
        root.copy_from_slice(next);
        roots += 1;
    };
    // Computes the diagonal of `root - 1` separately, because the subtraction would cancel digits.
    let x = root;
    (0..n).for_each(|i| x[i * n + i] = repeated_square_root_minus_one(t[i * n + i], roots));
    log.fill(C::ZERO);
    for (node, weight) in gauss_legendre(degree) {
        add_pade_partial_fraction(x, log, node, weight, column);
    }
    let scale = 2f64.powi(roots as i32);
    log.iter_mut().for_each(|v| *v *= scale);
    for i in 0..n {
        log[i * n + i] = logarithm(t[i * n + i]);
        if i + 1 < n {
            log[(i + 1) * n + i] = logarithm_2x2_above_diagonal(t[i * n + i], t[(i + 1) * n + i + 1], t[(i + 1) * n + i]);
        }
    }
    true
}

/// Returns the largest distance of a diagonal element from 1: `max |t[i, i] - 1|`.
fn max_diagonal_distance_from_1(t: &[C], n: usize) -> f64 {
    (0..n).map(|i| (t[i * n + i] - 1.0).norm()).fold(0.0, f64::max)
}

/// Returns the lowest degree of a Padé approximant that is exact to double precision for `norm`. Returns `None` if more square roots are
/// needed.
fn pade_degree_for_norm(norm: f64) -> Option<usize> {
    PADE_MAX_NORMS.iter().position(|&limit| norm <= limit).map(|index| index + 1)
}

fn norm_1(x: &[C], n: usize) -> f64 {
    x.chunks(n).map(|column| column.iter().map(|v| v.norm()).sum::<f64>()).fold(0.0, f64::max)
}

/// Writes the product of upper triangular matrices to `to`.
fn multiply_triangular(a: &[C], b: &[C], to: &mut [C], n: usize) {
    to.fill(C::ZERO);
    for j in 0..n {
        for k in 0..=j {
            let factor = b[j * n + k];
            for i in 0..=k {
                to[j * n + i] += a[k * n + i] * factor;
            }
        }
    }
}

/// Returns the bound on the norm of `x` that decides the degree of the Padé approximant. For non-normal matrices, norms of powers of `x`
/// give a smaller bound than the norm of `x` (theorem 2.3 of Al-Mohy and Higham, see the module documentation). Degrees 1 and 2 use the
/// norms of powers 2 and 3, higher degrees the norms of powers 3 and 4.
fn pade_norm_bound(x: &[C], square: &mut [C], power: &mut [C], n: usize) -> f64 {
    let norm = norm_1(x, n);
    if norm <= PADE_MAX_NORMS[0] {
        return norm;
    }
    multiply_triangular(x, x, square, n);
    let second = norm_1(square, n).sqrt();
    multiply_triangular(square, x, power, n);
    let third = norm_1(power, n).cbrt();
    let bound = norm.min(second.max(third));
    if bound <= PADE_MAX_NORMS[1] {
        return bound;
    }
    multiply_triangular(square, square, power, n);
    let fourth = norm_1(power, n).sqrt().sqrt();
    // The bound from powers 3 and 4 is not valid for degrees 1 and 2. The result is therefore raised above the limit of degree 2, so that a
    // higher degree is chosen.
    bound.min(third.max(fourth)).max(PADE_MAX_NORMS[1].next_up())
}

/// Returns `a^(1 / 2^roots) - 1` without cancellation (A. H. Al-Mohy, "A more accurate Briggs method for the logarithm", Numer. Algorithms
/// 59, 2012).
fn repeated_square_root_minus_one(a: C, roots: usize) -> C {
    if roots == 0 {
        return a - 1.0;
    }
    let (mut a, mut rest) = (a, roots);
    if a.re <= 0.0 {
        a = square_root(a);
        rest -= 1;
    }
    // The product of all divisors can overflow, so the loop divides by one divisor after the other.
    let mut difference = a - 1.0;
    for _ in 0..rest {
        a = square_root(a);
        difference = difference.quotient(a + 1.0);
    }
    difference
}

/// Adds `weight * (1 + node * x)⁻¹ x` to `log` for an upper triangular `x`, one term of the partial fraction form of the Padé approximant.
/// `column` is scratch memory of one column.
fn add_pade_partial_fraction(x: &[C], log: &mut [C], node: f64, weight: f64, column: &mut [C]) {
    let n = column.len();
    for j in 0..n {
        column.copy_from_slice(&x[j * n..(j + 1) * n]);
        for i in (0..=j).rev() {
            let value = column[i] / (x[i * n + i] * node + 1.0);
            column[i] = value;
            for (k, entry) in column[..i].iter_mut().enumerate() {
                *entry -= x[i * n + k] * node * value;
            }
        }
        log[j * n..].iter_mut().zip(&column[..=j]).for_each(|(to, v)| *to += v * weight);
    }
}

/// Returns nodes and weights of the Gauss-Legendre quadrature on [0, 1], by Newton's method on the Legendre polynomial.
fn gauss_legendre(degree: usize) -> impl Iterator<Item = (f64, f64)> {
    (0..degree).map(move |index| {
        let mut x = (std::f64::consts::PI * (index as f64 + 0.75) / (degree as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..10 {
            let (mut previous, mut value) = (1.0, x);
            for k in 2..=degree {
                let k = k as f64;
                (previous, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * previous) / k);
            }
            slope = degree as f64 * (previous - x * value) / (1.0 - x * x);
            x -= value / slope;
        }
        (0.5 * (x + 1.0), 1.0 / ((1.0 - x * x) * slope * slope))
    })
}

/// Returns element (0, 1) of the logarithm of the matrix `[[a, t], [0, b]]` (N. J. Higham, "Functions of Matrices", SIAM, 2008, equation
/// 11.28).
fn logarithm_2x2_above_diagonal(a: C, b: C, t: C) -> C {
    let difference = b - a;
    if difference == C::ZERO {
        return t.quotient(a);
    }
    let logarithms = logarithm(b) - logarithm(a);
    // The subtraction cancels digits only if `b / a` is near 1, and `z` is then small. A larger `z` can be on the branch cut of `atanh`,
    // where its rounding error decides the sign of the imaginary part.
    if difference.norm() > 0.5 * (a + b).norm() {
        return (t * logarithms).quotient(difference);
    }
    let z = difference.quotient(a + b);
    let windings = ((logarithms.im - std::f64::consts::PI) / std::f64::consts::TAU).ceil();
    (t * (atanh(z) * 2.0 + C::new(0.0, std::f64::consts::TAU * windings))).quotient(difference)
}

/// Returns the inverse hyperbolic tangent, accurate for small arguments too.
fn atanh(z: C) -> C {
    let (x, y) = (z.re, z.im);
    let below = (1.0 - x) * (1.0 - x) + y * y;
    C::new(0.25 * (4.0 * x / below).ln_1p(), 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y))
}
