//! Balancing of general matrices before their eigenvalues are computed.
//!
//! The algorithm is that of LAPACK's `gebal` from version 3.5 on (R. James, J. Langou, B. R. Lowery, "On matrix balancing and eigenvector
//! computation", 2014). A permutation isolates eigenvalues at both ends of the diagonal. A similarity transformation by powers of two then
//! makes the 2-norms of each row and column of the rest nearly equal.

use std::ops::Range;

use cuprum_core::Complex;

use crate::matrix_element::Field;

/// A transformation is applied if it reduces the sum of the norms of a row and a column below this fraction.
const CONVERGENCE: f64 = 0.95;
/// Largest factor of a column. The smallest is its reciprocal. Elements are below 1e140, so products with two factors stay finite.
const MAX_FACTOR: f64 = 1e150;

/// A similarity transformation by a permutation and a diagonal matrix of powers of two.
pub(crate) struct Balance {
    /// Interchanges of rows and of the same columns, in the order of their application to the matrix.
    interchanges: Vec<(usize, usize)>,
    /// The factor of each column. Empty if all factors are 1.
    factors: Vec<f64>,
}

impl Balance {
    /// Balances the finite matrix `a` of extent `n`, which is column-major.
    pub(crate) fn balance_matrix<W: Field<Base = f64>>(a: &mut [W], n: usize) -> Balance {
        let mut balance = Balance { interchanges: Vec::new(), factors: Vec::new() };
        let rest = balance.isolate_eigenvalues(a, n);
        balance.scale_rows_and_columns(a, n, rest);
        balance
    }

    /// Returns whether the transformation is the identity.
    pub(crate) fn is_identity(&self) -> bool {
        self.interchanges.is_empty() && self.factors.is_empty()
    }

    /// Replaces the eigenvectors of the balanced matrix by those of the original matrix. The vectors are the columns of `v`.
    pub(crate) fn transform_back(&self, v: &mut [Complex<f64>], n: usize) {
        for column in v.chunks_mut(n) {
            column.iter_mut().zip(&self.factors).for_each(|(v, factor)| *v *= factor);
            self.interchanges.iter().rev().for_each(|&(i, j)| column.swap(i, j));
        }
    }

    /// Moves rows with one element to the bottom, and columns with one element to the left. Returns the range of the other rows.
    fn isolate_eigenvalues<W: Field<Base = f64>>(&mut self, a: &mut [W], n: usize) -> Range<usize> {
        let mut rest = 0..n;
        while let Some(i) = rest.clone().rev().find(|&i| rest.clone().all(|j| j == i || a[j * n + i] == W::zero())) {
            rest.end -= 1;
            self.interchange(a, n, i, rest.end);
        }
        while let Some(j) = rest.clone().find(|&j| rest.clone().all(|i| i == j || a[j * n + i] == W::zero())) {
            self.interchange(a, n, j, rest.start);
            rest.start += 1;
        }
        rest
    }

    /// Interchanges rows `i` and `j`, and columns `i` and `j`.
    fn interchange<W: Field>(&mut self, a: &mut [W], n: usize, i: usize, j: usize) {
        if i != j {
            a.chunks_mut(n).for_each(|column| column.swap(i, j));
            (0..n).for_each(|row| a.swap(i * n + row, j * n + row));
            self.interchanges.push((i, j));
        }
    }

    /// Scales the rows and columns of the diagonal block `rest` until their norms are nearly equal.
    fn scale_rows_and_columns<W: Field<Base = f64>>(&mut self, a: &mut [W], n: usize, rest: Range<usize>) {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for i in rest.clone() {
                let column = norm(a[i * n..][rest.clone()].iter().copied());
                let row = norm(a[rest.start * n + i..rest.end * n].iter().step_by(n).copied());
                let factor = scale_factor(column, row);
                let total = self.factors.get(i).copied().unwrap_or(1.0) * factor;
                if factor == 1.0 || !(MAX_FACTOR.recip()..=MAX_FACTOR).contains(&total) {
                    continue;
                }
                has_changed = true;
                self.factors.resize(n, 1.0);
                self.factors[i] = total;
                a[rest.start * n + i..].iter_mut().step_by(n).for_each(|v| *v = v.times_real(factor.recip()));
                a[i * n..][..rest.end].iter_mut().for_each(|v| *v = v.times_real(factor));
            }
        }
    }
}

/// Returns the 2-norm.
fn norm<W: Field<Base = f64>>(values: impl Iterator<Item = W> + Clone) -> f64 {
    let squares: f64 = values.clone().map(|v| (v * v.conjugate()).real_part()).sum();
    // Outside of this range, squares may have overflowed or underflowed.
    if (1e-280..1e280).contains(&squares) { squares.sqrt() } else { values.fold(0.0, |norm: f64, v| norm.hypot(v.magnitude())) }
}

/// Returns the power of two by which a column of norm `column` is multiplied, and the row of norm `row` with the same index divided.
fn scale_factor(column: f64, row: f64) -> f64 {
    if column == 0.0 || row == 0.0 {
        return 1.0;
    }
    let (mut factor, mut scaled_column, mut scaled_row) = (1.0, column, row);
    while scaled_column < scaled_row / 2.0 {
        (factor, scaled_column, scaled_row) = (factor * 2.0, scaled_column * 2.0, scaled_row / 2.0);
    }
    while scaled_column / 2.0 >= scaled_row {
        (factor, scaled_column, scaled_row) = (factor / 2.0, scaled_column / 2.0, scaled_row * 2.0);
    }
    if scaled_column + scaled_row < CONVERGENCE * (column + row) { factor } else { 1.0 }
}
