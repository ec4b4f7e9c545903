//! Schur forms of matrices in double precision.
//!
//! faer reduces a matrix to Hessenberg form. faer's QR iteration for one matrix is private, so its public QZ iteration is applied to the pair
//! of a real matrix and the identity. The QZ iteration gives `a = q @ s @ zᴴ` and `1 = q @ p @ zᴴ`. The triangular matrix `p` is unitary, and
//! therefore diagonal up to rounding errors. It follows that `a = z @ (pᴴ @ s) @ zᴴ`. Complex matrices have a QR iteration of this crate.

use cuprum_core::error::LinAlgFailure::{self, EigenvaluesDiverge, NotFinite};
use cuprum_core::{Complex, Result};
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::ComputeEigenvectors;
use faer::linalg::evd::hessenberg::{hessenberg_in_place, hessenberg_in_place_scratch};
use faer::linalg::gevd::{GeneralizedSchurParams, qz_real};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_right_in_place_scratch, apply_block_householder_sequence_on_the_right_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Auto, ColMut, Conj, MatMut, Par};
use num_traits::{One, Zero};

use crate::complex_qr_iteration::iterate_to_schur_form;
use crate::matrix_batch::{FaerWorkspace, MatrixBatch};
use crate::matrix_element::Field;
use crate::power_of_two_scale::PowerOfTwoScale;

/// Tolerance of the convergence test. The QZ iteration transforms the identity to a unitary diagonal matrix. A diagonal magnitude that
/// differs from 1 by more than this tolerance shows that the iteration did not converge.
const UNITARITY_TOLERANCE: f64 = 1e-6;
/// Maximum number of runs of the iteration for one matrix.
const MAX_RUNS: usize = 20;

/// An element type, float64 or complex128, for which Schur forms are computed.
pub(crate) trait SchurForm: Field<Base = f64> {
    /// Returns the memory that [`SchurForm::run_iteration`] needs for matrices of extent `n`.
    fn iteration_scratch_size(n: usize) -> StackReq;
    /// Replaces the Hessenberg matrix `h` and the identity `p` by the triangular matrices of the QZ iteration, and multiplies `z` by the
    /// transformations of the iteration. All are column-major, of extent `n`. A QR iteration leaves `p` unchanged.
    fn run_iteration(h: &mut [Self], p: &mut [Self], z: &mut [Self], n: usize, stack: &mut MemStack);
    /// Returns whether `t` is upper triangular, except for separate 2-by-2 blocks on the diagonal of a real matrix.
    fn is_schur_form(t: &[Self], n: usize) -> bool;
    /// Standardises the diagonal blocks of the Schur form `t` as LAPACK does, and applies the rotations to `z`.
    fn standardize_diagonal_blocks(t: &mut [Self], z: &mut [Self], n: usize);
}

/// Returns the parameters of the QZ iteration. The parameters disable the blocked algorithm, so every step is the QZ step of Moler and
/// Stewart.
fn qz_parameters() -> GeneralizedSchurParams {
    let mut parameters = <GeneralizedSchurParams as Auto<f64>>::auto();
    parameters.blocking_threshold = usize::MAX;
    parameters
}

impl SchurForm for f64 {
    fn iteration_scratch_size(n: usize) -> StackReq {
        StackReq::new::<f64>(n).array(3).and(qz_real::hessenberg_to_qz_scratch::<f64>(n, Par::Seq, qz_parameters()))
    }

    #[inline(never)]
    fn run_iteration(h: &mut [f64], p: &mut [f64], z: &mut [f64], n: usize, stack: &mut MemStack) {
        let [h, p, z] = [h, p, z].map(|m| MatMut::from_column_major_slice_mut(m, n, n));
        let (mut re, stack) = stack.make_with(n, |_| 0.0);
        let (mut im, stack) = stack.make_with(n, |_| 0.0);
        let (mut denominators, stack) = stack.make_with(n, |_| 0.0);
        let [re, im, denominators] = [&mut *re, &mut *im, &mut *denominators].map(ColMut::from_slice_mut);
        let vectors = ComputeEigenvectors::Yes;
        qz_real::hessenberg_to_qz(h, p, None, Some(z), re, im, denominators, vectors, Par::Seq, qz_parameters(), stack);
    }

    fn is_schur_form(t: &[f64], n: usize) -> bool {
        (2..n).all(|i| t[(i - 1) * n + i] == 0.0 || t[(i - 2) * n + i - 1] == 0.0)
    }

    fn standardize_diagonal_blocks(t: &mut [f64], z: &mut [f64], n: usize) {
        for i in 1..n {
            if t[(i - 1) * n + i] != 0.0 {
                standardize_block(t, z, n, i - 1);
            }
        }
    }
}

/// Standardises the 2-by-2 block of `t` at `i` by a rotation, which is also applied to the columns of `z`. A block with real eigenvalues
/// becomes triangular. A block with complex eigenvalues gets equal diagonal elements.
fn standardize_block(t: &mut [f64], z: &mut [f64], n: usize, i: usize) {
    let at = |row: usize, column: usize| column * n + row;
    let block = |t: &[f64]| [t[at(i, i)], t[at(i, i + 1)], t[at(i + 1, i)], t[at(i + 1, i + 1)]];
    let [a, b, c, d] = block(t);
    let half = 0.5 * (a - d);
    if half != 0.0 && half * half + b * c < 0.0 {
        // For the block [[a, b], [c, d]], the angle of the rotation satisfies tan(2 angle) = (d - a) / (b + c).
        let (sum, difference) = (b + c, a - d);
        let length = sum.hypot(difference);
        let cos = (0.5 * (1.0 + sum.abs() / length)).sqrt();
        let sin = -(half / (length * cos)) * 1f64.copysign(sum);
        apply_rotation(t, z, n, i, cos, sin);
        let [a, b, c, d] = block(t);
        let mean = 0.5 * (a + d);
        (t[at(i, i)], t[at(i + 1, i + 1)]) = (mean, mean);
        if b * c < 0.0 {
            return;
        }
    }
    let [a, b, c, d] = block(t);
    if c == 0.0 || (a == d && b * c < 0.0) {
        return;
    }
    // The block [[a, b], [c, d]] has the eigenvector (shift, c) for the eigenvalue d + shift.
    let half = 0.5 * (a - d);
    let shift = half + (half * half + b * c).max(0.0).sqrt().copysign(half);
    let length = shift.hypot(c);
    apply_rotation(t, z, n, i, shift / length, c / length);
    t[at(i + 1, i)] = 0.0;
}

/// Multiplies columns `i` and `i + 1` of `t` and `z` by a rotation from the right, and rows of `t` by its transpose from the left.
fn apply_rotation(t: &mut [f64], z: &mut [f64], n: usize, i: usize, cos: f64, sin: f64) {
    let columns = |matrix: &mut [f64], rows: usize| {
        for row in 0..rows {
            let (x, y) = (matrix[i * n + row], matrix[(i + 1) * n + row]);
            (matrix[i * n + row], matrix[(i + 1) * n + row]) = (cos * x + sin * y, cos * y - sin * x);
        }
    };
    columns(t, i + 2);
    columns(z, n);
    for column in i..n {
        let (x, y) = (t[column * n + i], t[column * n + i + 1]);
        (t[column * n + i], t[column * n + i + 1]) = (cos * x + sin * y, cos * y - sin * x);
    }
}

impl SchurForm for Complex<f64> {
    fn iteration_scratch_size(_: usize) -> StackReq {
        StackReq::EMPTY
    }

    #[inline(never)]
    fn run_iteration(h: &mut [Complex<f64>], _: &mut [Complex<f64>], z: &mut [Complex<f64>], n: usize, _: &mut MemStack) {
        iterate_to_schur_form(h, z, n);
    }

    fn is_schur_form(t: &[Complex<f64>], n: usize) -> bool {
        (1..n).all(|i| t[(i - 1) * n + i] == Complex::ZERO)
    }

    fn standardize_diagonal_blocks(_: &mut [Complex<f64>], _: &mut [Complex<f64>], _: usize) {}
}

/// Scratch memory for Schur decompositions of matrices of one extent.
pub(crate) struct SchurScratch<W> {
    identity: Vec<W>,
    reflections: Vec<W>,
    memory: FaerWorkspace,
}

impl<W: SchurForm> SchurScratch<W> {
    pub(crate) fn allocate(batch: &MatrixBatch<'_>, n: usize) -> Result<SchurScratch<W>> {
        let block = recommended_block_size::<W>(n - 1, n - 1);
        let apply = apply_block_householder_sequence_on_the_right_in_place_scratch::<W>(n - 1, block, n - 1);
        let reduction = hessenberg_in_place_scratch::<W>(n, block, Par::Seq, Default::default());
        let size = StackReq::any_of(&[reduction, apply, W::iteration_scratch_size(n)]);
        Ok(SchurScratch {
            identity: batch.allocate_zeros(n * n)?,
            reflections: batch.allocate_zeros(block * (n - 1))?,
            memory: batch.allocate_scratch(size)?,
        })
    }

    /// Replaces the finite matrix `t` of extent `n` by its Schur form, and writes the unitary matrix to `z`. Both are column-major.
    pub(crate) fn compute_schur_form(&mut self, t: &mut [W], z: &mut [W], n: usize) -> std::result::Result<(), LinAlgFailure> {
        let Some(scale) = PowerOfTwoScale::scale_into_range(t) else { return Err(NotFinite) };
        let stack = MemStack::new(&mut self.memory);
        set_to_identity(z, n);
        set_to_identity(&mut self.identity, n);
        let mut h = MatMut::from_column_major_slice_mut(t, n, n);
        let mut basis = MatMut::from_column_major_slice_mut(z, n, n);
        if n > 1 {
            let block = self.reflections.len() / (n - 1);
            let mut reflections = MatMut::from_column_major_slice_mut(&mut self.reflections, block, n - 1);
            hessenberg_in_place(h.rb_mut(), reflections.rb_mut(), Par::Seq, stack, Default::default());
            let (vectors, below) = (h.rb().submatrix(1, 0, n - 1, n - 1), basis.rb_mut().submatrix_mut(1, 1, n - 1, n - 1));
            let (factors, conj) = (reflections.rb(), Conj::No);
            apply_block_householder_sequence_on_the_right_in_place_with_conj(vectors, factors, conj, below, Par::Seq, stack);
            for column in 0..n {
                h.rb_mut().col_mut(column).subrows_mut((column + 2).min(n), n.saturating_sub(column + 2)).fill(W::zero());
            }
            // The iterations treat an element below the diagonal as zero if it is small relative to its neighbours, so clustered eigenvalues
            // may not converge. Elements that are small relative to the norm are therefore set to zero between runs of the iteration.
            let negligible = f64::EPSILON * t.iter().map(|v| v.magnitude() * v.magnitude()).sum::<f64>().sqrt();
            for _ in 0..MAX_RUNS {
                t.iter_mut().skip(1).step_by(n + 1).filter(|v| v.magnitude() <= negligible).for_each(|v| *v = W::zero());
                if W::is_schur_form(t, n) {
                    break;
                }
                W::run_iteration(t, &mut self.identity, z, n, stack);
            }
        }
        let is_unit = |i: usize| (self.identity[i * n + i].magnitude() - 1.0).abs() <= UNITARITY_TOLERANCE;
        if !(0..n).all(is_unit) || !W::is_schur_form(t, n) {
            return Err(EigenvaluesDiverge);
        }
        for (column, values) in t.chunks_mut(n).enumerate() {
            for (row, value) in values.iter_mut().enumerate() {
                // Elements below the first subdiagonal are zero.
                let diagonal = self.identity[row * n + row];
                let factor = diagonal.conjugate().times_real(diagonal.magnitude().recip());
                *value = if row <= column + 1 { *value * factor } else { W::zero() };
            }
        }
        W::standardize_diagonal_blocks(t, z, n);
        scale.multiply_by_scale(t);
        Ok(())
    }
}

fn set_to_identity<W: Zero + One + Copy>(matrix: &mut [W], n: usize) {
    matrix.fill(W::zero());
    matrix.iter_mut().step_by(n + 1).for_each(|v| *v = W::one());
}
