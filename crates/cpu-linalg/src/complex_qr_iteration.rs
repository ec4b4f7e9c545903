//! QR iteration for complex Hessenberg matrices, after LAPACK's `lahqr`.
//!
//! The rotations of faer's `qz_cplx` are less exact: a unitary matrix of extent 200 has an error of 5,600 units of rounding, 10 times that
//! of this iteration.

use crate::matrix_element::{C, Field, square_root};

/// Maximum number of iterations per eigenvalue, as in LAPACK.
const MAX_ITERATIONS_PER_EIGENVALUE: usize = 30;
/// Number of iterations without a new eigenvalue after which an exceptional shift is used.
const ITERATIONS_TO_EXCEPTIONAL_SHIFT: usize = 10;

/// Replaces the upper Hessenberg matrix `h` of extent `n` by its Schur form, and multiplies `z` by the unitary matrix from the right. Both
/// are column-major. Elements below the diagonal that do not converge remain.
pub(crate) fn iterate_to_schur_form(h: &mut [C], z: &mut [C], n: usize) {
    let (mut end, mut since_deflation) = (n, 0);
    for _ in 0..MAX_ITERATIONS_PER_EIGENVALUE * n.max(10) {
        let mut start = end.saturating_sub(1);
        while start > 0 && !is_negligible(h, n, start) {
            start -= 1;
        }
        if start > 0 {
            h[(start - 1) * n + start] = C::ZERO;
        }
        if end <= 1 {
            return;
        }
        if start + 1 == end {
            (end, since_deflation) = (start, 0);
            continue;
        }
        since_deflation += 1;
        let last = end - 1;
        let shift = match since_deflation % ITERATIONS_TO_EXCEPTIONAL_SHIFT {
            0 => h[last * n + last] + 0.75 * h[(last - 1) * n + last].magnitude(),
            _ => wilkinson_shift(h, n, last),
        };
        chase_bulge(h, z, n, start, end, shift);
    }
}

/// Returns whether the element of row `i` below the diagonal is negligible, by the test of M. Ahues and F. Tisseur (LAPACK Working Note 122).
fn is_negligible(h: &[C], n: usize, i: usize) -> bool {
    let at = |row: usize, column: usize| h[column * n + row];
    let (below, above, first, second) = (at(i, i - 1), at(i - 1, i), at(i - 1, i - 1), at(i, i));
    let smallest = f64::MIN_POSITIVE * (n as f64 / f64::EPSILON);
    let size = below.sum_of_part_magnitudes();
    if size <= smallest {
        return true;
    }
    let mut diagonal = first.sum_of_part_magnitudes() + second.sum_of_part_magnitudes();
    if diagonal == 0.0 {
        diagonal = if i >= 2 { at(i - 1, i - 2).magnitude() } else { 0.0 } + if i + 1 < n { at(i + 1, i).magnitude() } else { 0.0 };
    }
    if size > f64::EPSILON * diagonal {
        return false;
    }
    let above = above.sum_of_part_magnitudes();
    let (second, difference) = (second.sum_of_part_magnitudes(), (first - second).sum_of_part_magnitudes());
    let (larger, smaller) = (size.max(above), size.min(above));
    let (large, small) = (second.max(difference), second.min(difference));
    let sum = large + larger;
    smaller * (larger / sum) <= smallest.max(f64::EPSILON * (small * (large / sum)))
}

/// Returns the eigenvalue of the 2-by-2 block that ends at row `last` which is closer to the last diagonal element.
fn wilkinson_shift(h: &[C], n: usize, last: usize) -> C {
    let at = |row: usize, column: usize| h[column * n + row];
    let corner = at(last, last);
    let product_root = square_root(at(last - 1, last)) * square_root(at(last, last - 1));
    let half = 0.5 * (at(last - 1, last - 1) - corner);
    let size = product_root.sum_of_part_magnitudes().max(half.sum_of_part_magnitudes());
    if product_root == C::ZERO {
        return corner;
    }
    let (x, u) = (half / size, product_root / size);
    let root = square_root(x * x + u * u);
    let root = if x.re * root.re + x.im * root.im < 0.0 { -root } else { root };
    corner - product_root * u.quotient(x + root)
}

/// Runs one QR step with a shift on the diagonal block of rows `start` to `end`.
fn chase_bulge(h: &mut [C], z: &mut [C], n: usize, start: usize, end: usize, shift: C) {
    for k in start..end - 1 {
        let is_first = k == start;
        let (x, y) = if is_first { (h[k * n + k] - shift, h[k * n + k + 1]) } else { (h[(k - 1) * n + k], h[(k - 1) * n + k + 1]) };
        let (cos, sin, length) = rotation(x, y);
        if !is_first {
            (h[(k - 1) * n + k], h[(k - 1) * n + k + 1]) = (length, C::ZERO);
        }
        for column in h[k * n..].chunks_exact_mut(n) {
            let (x, y) = (column[k], column[k + 1]);
            (column[k], column[k + 1]) = (x * cos + sin * y, y * cos - sin.conj() * x);
        }
        rotate_columns(h, n, k, end.min(k + 3), cos, sin);
        rotate_columns(z, n, k, n, cos, sin);
    }
}

/// Returns the numbers `cos` and `sin` of the rotation `[[cos, sin], [-sin.conj(), cos]]` that maps `(x, y)` to `(length, 0)`, and `length`.
fn rotation(x: C, y: C) -> (f64, C, C) {
    let (size, norm) = (x.norm(), x.norm().hypot(y.norm()));
    // Matrices are scaled to a norm of at least about 1, so such numbers are negligible. Their quotients are inexact.
    if norm < f64::MIN_POSITIVE / f64::EPSILON {
        return (1.0, C::ZERO, x);
    }
    let phase = if size < f64::MIN_POSITIVE { C::ONE } else { x / size };
    (size / norm, phase * (y.conj() / norm), phase * norm)
}

/// Multiplies the first `rows` elements of columns `k` and `k + 1` by the adjoint of a rotation from the right.
fn rotate_columns(matrix: &mut [C], n: usize, k: usize, rows: usize, cos: f64, sin: C) {
    let (left, right) = matrix[k * n..(k + 2) * n].split_at_mut(n);
    for (x, y) in left[..rows].iter_mut().zip(&mut right[..rows]) {
        (*x, *y) = (*x * cos + sin.conj() * *y, *y * cos - sin * *x);
    }
}
