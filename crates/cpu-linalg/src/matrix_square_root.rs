//! Square roots of upper triangular matrices.

use crate::matrix_element::{C, Field, square_root};

/// Writes the principal square root of the upper triangular matrix `t` of extent `n` to `root`. Uses the recurrence of Björck and
/// Hammarling (N. J. Higham, "Functions of Matrices", SIAM, 2008, algorithm 6.3). Matrices are column-major. Returns whether the root
/// exists.
pub(crate) fn triangular_square_root(t: &[C], root: &mut [C], n: usize) -> bool {
    root.fill(C::ZERO);
    for j in 0..n {
        root[j * n + j] = square_root(t[j * n + j]);
        for i in (0..j).rev() {
            let known: C = (i + 1..j).map(|k| root[k * n + i] * root[j * n + k]).sum();
            let rest = t[j * n + i] - known;
            let sum = root[i * n + i] + root[j * n + j];
            if sum != C::ZERO {
                root[j * n + i] = rest.quotient(sum);
            } else if rest != C::ZERO {
                return false;
            }
        }
    }
    true
}
