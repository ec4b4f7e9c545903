//! Eigenvectors from a Schur form, for matrices whose eigenvectors overflow or are linearly dependent in faer.
//!
//! An eigenvector of a triangular matrix is found by back-substitution. Each further equal eigenvalue of a defective matrix multiplies the
//! vector by about the reciprocal of the machine epsilon. As in LAPACK's `trevc`, the vector is therefore scaled down during the
//! substitution, which faer does not do.

use crate::matrix_element::{C, Field};
use crate::schur_form::SchurForm;

/// Maximum magnitude of vector elements. If an element would exceed it, the vector is multiplied by the reciprocal of this constant, so
/// that products with elements of a scaled matrix stay finite.
const MAX_EIGENVECTOR_ELEMENT: f64 = 1e100;
/// Smallest value of [`SchurFactors::min_divisor`].
pub(crate) const MIN_DIVISOR: f64 = 1e-290;

/// A Schur form of extent `n`, whose diagonal blocks are standardised. The matrices are column-major.
pub(crate) struct SchurFactors<'a, W> {
    pub(crate) form: &'a [W],
    pub(crate) basis: &'a [W],
    pub(crate) n: usize,
    /// Minimum magnitude of a divisor in the back-substitution. An eigenvalue that equals a diagonal element would otherwise cause a
    /// division by zero. With a divisor of the size of the form's rounding errors, eigenvectors of equal eigenvalues stay independent.
    pub(crate) min_divisor: f64,
}

impl<W: SchurForm + Into<C>> SchurFactors<'_, W> {
    fn at(&self, row: usize, column: usize) -> C {
        self.form[column * self.n + row].into()
    }

    /// Returns whether a 2-by-2 block begins at `i`.
    fn starts_2x2_block(&self, i: usize) -> bool {
        i + 1 < self.n && self.at(i + 1, i) != C::ZERO
    }

    /// Writes the eigenvalues to `w`, and the eigenvectors, of any norm, to the columns of `v`. `x` is scratch memory of `n` elements.
    pub(crate) fn write_eigenvalues_and_vectors(&self, x: &mut [C], w: &mut [C], v: &mut [C]) {
        let n = self.n;
        let mut k = 0;
        while k < n {
            x.fill(C::ZERO);
            let size = if self.starts_2x2_block(k) { 2 } else { 1 };
            w[k] = self.at(k, k);
            x[k] = C::ONE;
            if size == 2 {
                // The 2-by-2 diagonal block has equal diagonal elements, and its eigenvalues are `diagonal +- i frequency`.
                let (above, below) = (self.at(k, k + 1).re, self.at(k + 1, k).re);
                let frequency = above.abs().sqrt() * below.abs().sqrt();
                w[k] += C::I * frequency;
                if above.abs() >= below.abs() {
                    x[k + 1] = C::I * (frequency / above);
                } else {
                    (x[k], x[k + 1]) = (C::I * (frequency / below), C::ONE);
                }
            }
            for column in k..k + size {
                self.subtract_scaled_column(column, k, x);
            }
            self.back_substitute(w[k], k, x);
            let vector = &mut v[k * n..][..n];
            vector.fill(C::ZERO);
            for (column, factor) in self.basis.chunks(n).zip(&*x).take(k + size) {
                vector.iter_mut().zip(column).for_each(|(v, &z)| *v += z.into() * factor);
            }
            if size == 2 {
                w[k + 1] = w[k].conj();
                let (first, second) = v[k * n..].split_at_mut(n);
                second.iter_mut().zip(first).for_each(|(to, from)| *to = from.conj());
            }
            k += size;
        }
    }

    /// Subtracts `x[column]` times the first `rows` elements of column `column` of the Schur form from the first `rows` elements of `x`.
    fn subtract_scaled_column(&self, column: usize, rows: usize, x: &mut [C]) {
        let factor = x[column];
        for (row, value) in x[..rows].iter_mut().enumerate() {
            *value -= self.at(row, column) * factor;
        }
    }

    /// Solves the first `rows` rows of `(form - eigenvalue) x = 0` from the last to the first. `x` holds the right-hand sides of these
    /// rows, followed by the known elements of the solution.
    fn back_substitute(&self, eigenvalue: C, rows: usize, x: &mut [C]) {
        let least = (f64::EPSILON * eigenvalue.sum_of_part_magnitudes()).max(self.min_divisor);
        let divisor = |d: C| if d.sum_of_part_magnitudes() < least { C::from(least) } else { d };
        let mut end = rows;
        while end > 0 {
            let i = end - 1;
            let is_block = i > 0 && self.starts_2x2_block(i - 1);
            let start = if is_block { i - 1 } else { i };
            loop {
                let solution = if is_block {
                    let first = [self.at(start, start) - eigenvalue, self.at(start, i), x[start]];
                    let second = [self.at(i, start), self.at(i, i) - eigenvalue, x[i]];
                    let is_ordered = first[0].sum_of_part_magnitudes() >= second[0].sum_of_part_magnitudes();
                    let ([a, b, r], [c, d, s]) = if is_ordered { (first, second) } else { (second, first) };
                    let (a, ratio) = (divisor(a), c.quotient(divisor(a)));
                    let y = (s - ratio * r).quotient(divisor(d - ratio * b));
                    [(r - b * y).quotient(a), y]
                } else {
                    [C::ZERO, x[i].quotient(divisor(self.at(i, i) - eigenvalue))]
                };
                let size = solution[0].sum_of_part_magnitudes() + solution[1].sum_of_part_magnitudes();
                if size <= MAX_EIGENVECTOR_ELEMENT || x.iter().all(|v| *v == C::ZERO) {
                    x[start] = solution[0];
                    x[i] = solution[1];
                    break;
                }
                x.iter_mut().for_each(|v| *v = v.times_real(MAX_EIGENVECTOR_ELEMENT.recip()));
            }
            for column in start..end {
                self.subtract_scaled_column(column, start, x);
            }
            end = start;
        }
    }
}
