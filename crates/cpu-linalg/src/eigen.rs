//! Eigenvalues and eigenvectors of Hermitian and of general matrices, computed in double precision.

use cuprum_core::call::Triangle;
use cuprum_core::error::LinAlgFailure::{self, EigenvaluesDiverge, NotFinite};
use cuprum_core::{Call, Complex, Outcome, Result};
use cuprum_cpu_base::typed_views::{HostVec, Output};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::tridiag::tridiag_in_place;
use faer::linalg::evd::{
    ComputeEigenvectors, evd_cplx, evd_real, evd_scratch, self_adjoint_evd, self_adjoint_evd_scratch, tridiagonal_self_adjoint_evd,
};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch, apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Conj, MatMut, MatRef, Par};
use num_traits::{Float, Zero};

use crate::balance::Balance;
use crate::column_blocks::{BLOCK_COLUMNS, ThreadsPerMatrix};
use crate::double_precision::Widen;
use crate::eigenvectors::{MIN_DIVISOR, SchurFactors};
use crate::matrix_batch::{FaerWorkspace, MatrixBatch, MatrixFailure, allocate_scratch};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_converted_in_c_order};
use crate::power_of_two_scale::PowerOfTwoScale;
use crate::schur_form::{SchurForm, SchurScratch};

/// Extent of the smallest matrix whose eigenvectors faer computes by divide and conquer.
const MIN_DIVIDE_AND_CONQUER_EXTENT: usize = 128;
/// Extent of the smallest matrix whose eigenvectors are computed by [`compute_eigenvectors_in_blocks`].
const MIN_BLOCKED_EXTENT: usize = 2 * BLOCK_COLUMNS;

/// Computes the eigenvalues `w` of `a` in ascending order, and the eigenvectors if `v` is `Some`. Reads the lower triangle of `a`, and may
/// overwrite it. `reflections` is scratch memory, empty unless the extent is at least [`MIN_BLOCKED_EXTENT`] and `v` is `Some`.
#[inline(never)]
fn compute_hermitian_eigen<W: Field>(
    a: MatMut<'_, W>,
    w: &mut [W],
    v: Option<MatMut<'_, W>>,
    reflections: &mut [W],
    team: ThreadsPerMatrix,
    stack: &mut MemStack,
) -> Result<bool> {
    match v {
        Some(v) if !reflections.is_empty() => compute_eigenvectors_in_blocks(a, w, v, reflections, team, stack),
        v => Ok(self_adjoint_evd(a.rb(), DiagMut::from_slice_mut(w), v, Par::Seq, stack, Default::default()).is_ok()),
    }
}

/// Computes eigenvalues and eigenvectors like faer's `self_adjoint_evd`, but transforms the eigenvectors of the tridiagonal matrix by
/// blocks of columns, which threads share.
fn compute_eigenvectors_in_blocks<W: Field>(
    mut a: MatMut<'_, W>,
    w: &mut [W],
    mut v: MatMut<'_, W>,
    reflections: &mut [W],
    team: ThreadsPerMatrix,
    stack: &mut MemStack,
) -> Result<bool> {
    let n = w.len();
    let block = reflections.len() / (n - 1);
    let mut reflections = MatMut::from_column_major_slice_mut(reflections, block, n - 1);
    tridiag_in_place(a.rb_mut(), reflections.rb_mut(), Par::Seq, stack, Default::default());
    let (a, reflections) = (a.rb(), reflections.rb());
    let below = a.submatrix(1, 0, n - 1, n - 1);
    let (diagonal, subdiagonal) = (a.diagonal(), below.diagonal());
    let (values, vectors) = (DiagMut::from_slice_mut(w), Some(v.rb_mut()));
    if tridiagonal_self_adjoint_evd(diagonal, subdiagonal, values, vectors, Par::Seq, stack, Default::default()).is_err() {
        return Ok(false);
    }
    let size = apply_block_householder_sequence_on_the_left_in_place_scratch::<W>(n - 1, block, BLOCK_COLUMNS);
    let transform = |memory: &mut FaerWorkspace, _, columns: MatMut<'_, W>| {
        let (columns, stack) = (columns.subrows_mut(1, n - 1), MemStack::new(memory));
        apply_block_householder_sequence_on_the_left_in_place_with_conj(below, reflections, Conj::No, columns, Par::Seq, stack);
    };
    team.for_each_block_with_scratch(v, n.saturating_mul(n).saturating_mul(n) / 2, || allocate_scratch("eigh", size), transform)?;
    Ok(true)
}

/// Writes the eigenvalues of a finite real diagonal matrix to `w` in ascending order, and the eigenvectors to `v`. Returns false, without
/// changes, for other matrices. faer's eigenvalues have errors relative to the norm, LAPACK's are exact for these matrices.
fn compute_diagonal_eigen<W: Field>(a: &[W], w: &mut [W], v: Option<&mut [W]>) -> bool {
    let n = w.len();
    let at = |i: usize| a[i * (n + 1)].real_part();
    let is_zero = |(i, v): (usize, &W)| i % (n + 1) == 0 || *v == W::zero();
    if !a.iter().enumerate().all(is_zero) || !(0..n).all(|i| at(i).is_finite()) {
        return false;
    }
    let rank = |i: usize| (0..n).filter(|&k| at(k) < at(i) || (at(k) == at(i) && k < i)).count();
    (0..n).for_each(|i| w[rank(i)] = W::from_real_part(at(i)));
    if let Some(v) = v {
        v.fill(W::zero());
        (0..n).for_each(|i| v[rank(i) * n + i] = W::one());
    }
    true
}

/// Scratch memory: a matrix, its eigenvalues, the coefficients of its reflections, and the workspace of faer.
type HermitianScratch<W> = (HostVec<W>, Vec<W>, Vec<W>, FaerWorkspace);

/// Computes eigenvalues of Hermitian matrices, with or without eigenvectors.
pub(crate) fn decompose_hermitian<T: Widen>(call: &Call, triangle: Triangle, vectors: bool) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n).saturating_mul(if vectors { 6 } else { 2 }));
    let team = batch.threads_per_matrix();
    let mut outputs = (0..call.outputs.len()).map(|i| Output::allocate(call, i)).collect::<Result<Vec<_>>>()?;
    let compute = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let size = self_adjoint_evd_scratch::<T::Wide>(n, compute, Par::Seq, Default::default());
    let of_reflections = if vectors && n >= MIN_BLOCKED_EXTENT { recommended_block_size::<T::Wide>(n, n) * (n - 1) } else { 0 };
    let scratch = || {
        let (matrix, basis) =
            (batch.allocate_values::<T::Wide>(n * n)?, batch.allocate_values::<T::Wide>(if vectors { n * n } else { 0 })?);
        let (values, reflections) = (batch.allocate_zeros::<T::Wide>(n)?, batch.allocate_zeros::<T::Wide>(of_reflections)?);
        Ok(((matrix, values, reflections, batch.allocate_scratch(size)?), basis))
    };
    let one =
        |(matrix, values, reflections, memory): &mut HermitianScratch<T::Wide>, mut v: Option<&mut [T::Wide]>, index, w: &mut [T::Base]| {
            match triangle {
                Triangle::Lower => a.copy_converted(team, index, matrix, T::widen),
                Triangle::Upper => a.copy_adjoint_converted(team, index, matrix, T::widen),
            }
            // Clears the triangle that is not read, so that its values do not affect the scale.
            for (j, column) in matrix.chunks_mut(n).enumerate() {
                column[..j].fill(T::Wide::zero());
                column[j] = T::Wide::from_real_part(column[j].real_part());
            }
            if !compute_diagonal_eigen(matrix, values, v.as_deref_mut()) {
                let scale = match v.is_some() && n >= MIN_DIVIDE_AND_CONQUER_EXTENT {
                    true => PowerOfTwoScale::scale_to_unit_norm(matrix, n),
                    false => PowerOfTwoScale::scale_into_range(matrix),
                };
                let Some(scale) = scale else {
                    return Err(MatrixFailure::Matrix(index, EigenvaluesDiverge));
                };
                let v = v.map(|v| MatMut::from_column_major_slice_mut(v, n, n));
                let lower = MatMut::from_column_major_slice_mut(matrix, n, n);
                let (team, stack) = (team, MemStack::new(memory));
                if !compute_hermitian_eigen(lower, values, v, reflections, team, stack)? {
                    return Err(MatrixFailure::Matrix(index, EigenvaluesDiverge));
                }
                scale.multiply_by_scale(values);
            }
            w.iter_mut().zip(values.iter()).for_each(|(to, v)| *to = T::narrow_real(v.real_part()));
            Ok(())
        };
    match &mut outputs[..] {
        [w, v] => {
            let items = w.elements_mut()?.typed_slice::<T::Base>().chunks_mut(batch.per_task * n);
            let items = items.zip(v.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * n * n));
            batch.for_each_task(items, scratch, |(scratch, basis), first, (w, v)| {
                for (index, (w, v)) in (first..).zip(w.chunks_mut(n).zip(v.chunks_mut(n * n))) {
                    one(scratch, Some(basis), index, w)?;
                    store_converted_in_c_order(team, basis, n, v, T::narrow);
                }
                Ok(())
            })?;
        }
        outputs => {
            let items = outputs[0].elements_mut()?.typed_slice::<T::Base>().chunks_mut(batch.per_task * n);
            batch.for_each_task(items, scratch, |(scratch, _), first, w| {
                (first..).zip(w.chunks_mut(n)).try_for_each(|(index, w)| one(scratch, None, index, w))
            })?;
        }
    }
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}

/// Eigenvalue computation for general matrices of one double-precision type.
pub(crate) trait GeneralEigen: SchurForm + Into<Complex<f64>> {
    /// Returns the scratch memory that [`GeneralEigen::compute_eigen`] needs for matrices of extent `n`, with or without eigenvectors.
    fn scratch_size(n: usize, vectors: bool) -> StackReq;
    /// Computes the eigenvalues `w` of `a`. Writes the eigenvectors to the columns of `v`, unless `v` is empty. `basis` is scratch memory
    /// as large as `v`. Returns whether the iteration converged.
    fn compute_eigen(a: &[Self], basis: &mut [Self], w: &mut [Complex<f64>], v: &mut [Complex<f64>], stack: &mut MemStack) -> bool;
}

fn eigenvector_option(wanted: bool) -> ComputeEigenvectors {
    if wanted { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }
}

impl GeneralEigen for f64 {
    fn scratch_size(n: usize, vectors: bool) -> StackReq {
        let parts = StackReq::new::<f64>(n).array(2);
        parts.and(evd_scratch::<f64>(n, ComputeEigenvectors::No, eigenvector_option(vectors), Par::Seq, Default::default()))
    }

    #[inline(never)]
    fn compute_eigen(a: &[f64], basis: &mut [f64], w: &mut [Complex<f64>], v: &mut [Complex<f64>], stack: &mut MemStack) -> bool {
        let n = w.len();
        let (mut re, stack) = stack.make_with(n, |_| 0.0);
        let (mut im, stack) = stack.make_with(n, |_| 0.0);
        let right = (!v.is_empty()).then(|| MatMut::from_column_major_slice_mut(basis, n, n));
        let (a, re, im) = (MatRef::from_column_major_slice(a, n, n), &mut *re, &mut *im);
        let parameters = Default::default();
        if evd_real(a, DiagMut::from_slice_mut(re), DiagMut::from_slice_mut(im), None, right, Par::Seq, stack, parameters).is_err() {
            return false;
        }
        // For a pair of conjugate eigenvalues, faer stores the real part of the eigenvector in one column and the imaginary part in the
        // next.
        let mut j = 0;
        while j < n {
            let is_pair = im[j] != 0.0 && j + 1 < n;
            w[j] = Complex::new(re[j], im[j]);
            if is_pair {
                w[j + 1] = w[j].conj();
            }
            if !v.is_empty() && is_pair {
                for i in 0..n {
                    let value = Complex::new(basis[j * n + i], basis[(j + 1) * n + i]);
                    (v[j * n + i], v[(j + 1) * n + i]) = (value, value.conj());
                }
            } else if !v.is_empty() {
                for i in j * n..(j + 1) * n {
                    v[i] = basis[i].into();
                }
            }
            j += if is_pair { 2 } else { 1 };
        }
        true
    }
}

impl GeneralEigen for Complex<f64> {
    fn scratch_size(n: usize, vectors: bool) -> StackReq {
        evd_scratch::<Complex<f64>>(n, ComputeEigenvectors::No, eigenvector_option(vectors), Par::Seq, Default::default())
    }

    #[inline(never)]
    fn compute_eigen(a: &[Self], _basis: &mut [Self], w: &mut [Complex<f64>], v: &mut [Complex<f64>], stack: &mut MemStack) -> bool {
        let n = w.len();
        let right = (!v.is_empty()).then(|| MatMut::from_column_major_slice_mut(v, n, n));
        let a = MatRef::from_column_major_slice(a, n, n);
        evd_cplx(a, DiagMut::from_slice_mut(w), None, right, Par::Seq, stack, Default::default()).is_ok()
    }
}

/// Scales columns of `n` elements to norm 1, and makes the largest element of each column real, as LAPACK does.
fn normalize_columns(vectors: &mut [Complex<f64>], n: usize) {
    for column in vectors.chunks_mut(n) {
        let largest = column.iter().fold(0.0f64, |max, v| max.max(v.max_part_magnitude()));
        if largest == 0.0 || !largest.is_finite() {
            continue;
        }
        let squares: f64 = column.iter().map(|v| v.times_real(largest.recip()).norm_sqr()).sum();
        let leading =
            column.iter().copied().fold(Complex::ZERO, |max: Complex<f64>, v| if v.norm_sqr() > max.norm_sqr() { v } else { max });
        // An eigenvector whose largest element is already real keeps its sign.
        let phase = if leading.im == 0.0 { Complex::ONE } else { leading.conj() / leading.norm() };
        let factor = phase.times_real(1.0 / (largest * squares.sqrt()));
        for v in &mut *column {
            let is_leading = *v == leading;
            *v *= factor;
            v.im = if is_leading { 0.0 } else { v.im };
        }
    }
}

/// Returns whether two values above the real axis are equal up to rounding.
fn has_repeated_complex_value(values: &[Complex<f64>]) -> bool {
    let largest = values.iter().fold(0.0f64, |largest, w| largest.max(w.max_part_magnitude()));
    let are_equal = |a: &Complex<f64>, b: &Complex<f64>| a.im > 0.0 && (a - b).max_part_magnitude() <= 1e-8 * largest;
    values.iter().enumerate().any(|(n, a)| values[..n].iter().any(|b| are_equal(a, b)))
}

/// The transformations of a general matrix before its decomposition.
struct PreparedMatrix {
    scale: PowerOfTwoScale<f64>,
    balance: Balance,
    scale_of_balanced: PowerOfTwoScale<f64>,
}

impl PreparedMatrix {
    /// Scales and balances a matrix of extent `n`. Returns `None` if a value is infinite or NaN.
    fn scale_and_balance<W: Field<Base = f64>>(matrix: &mut [W], n: usize) -> Option<PreparedMatrix> {
        let scale = PowerOfTwoScale::scale_for_eigenvectors(matrix)?;
        let balance = Balance::balance_matrix(matrix, n);
        let scale_of_balanced = match balance.is_identity() {
            true => PowerOfTwoScale::identity(),
            false => PowerOfTwoScale::scale_for_eigenvectors(matrix)?,
        };
        Some(PreparedMatrix { scale, balance, scale_of_balanced })
    }

    /// Replaces eigenvalues and normalized eigenvectors of the prepared matrix by those of the original matrix.
    fn transform_back(&self, values: &mut [Complex<f64>], v: &mut [Complex<f64>]) {
        self.scale_of_balanced.multiply_by_scale(values);
        self.scale.multiply_by_scale(values);
        if !self.balance.is_identity() {
            self.balance.transform_back(v, values.len());
            normalize_columns(v, values.len());
        }
    }
}

/// Scratch memory: a matrix, its eigenvectors, its eigenvalues, and the workspace of faer.
type GeneralScratch<W> = (HostVec<W>, HostVec<W>, Vec<Complex<f64>>, FaerWorkspace);

/// Computes eigenvalues of general matrices, with or without eigenvectors.
pub(crate) fn decompose_general<T: Widen>(call: &Call, vectors: bool) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n).saturating_mul(if vectors { 25 } else { 10 }));
    let team = batch.threads_per_matrix();
    let mut outputs = (0..call.outputs.len()).map(|i| Output::allocate(call, i)).collect::<Result<Vec<_>>>()?;
    let size = T::Wide::scratch_size(n, vectors);
    let of_vectors = if vectors { n * n } else { 0 };
    let scratch = || {
        let matrix = batch.allocate_values::<T::Wide>(n * n)?;
        let (basis, v) = (batch.allocate_values::<T::Wide>(of_vectors)?, batch.allocate_values::<Complex<f64>>(of_vectors)?);
        Ok(((matrix, basis, batch.allocate_zeros::<Complex<f64>>(n)?, batch.allocate_scratch(size)?), v))
    };
    let one = |(matrix, basis, values, memory): &mut GeneralScratch<T::Wide>, v: &mut [Complex<f64>], index, w: &mut [T::Eigenvalue]| {
        let failed = |failure: LinAlgFailure| MatrixFailure::Matrix(index, failure);
        a.copy_converted(team, index, matrix, T::widen);
        let prepared = PreparedMatrix::scale_and_balance(matrix, n).ok_or(failed(NotFinite))?;
        if !T::Wide::compute_eigen(matrix, basis, values, v, MemStack::new(memory)) {
            return Err(failed(EigenvaluesDiverge));
        }
        // faer's eigenvectors may be infinite, and those of repeated complex eigenvalues may be wrong or linearly dependent.
        let has_repeated_value = !v.is_empty() && has_repeated_complex_value(values);
        if has_repeated_value || !v.iter().all(|x| x.is_finite()) {
            let largest = values.iter().fold(0.0f64, |largest, w| largest.max(w.max_part_magnitude()));
            let min_divisor = if has_repeated_value { f64::EPSILON * largest } else { MIN_DIVISOR };
            a.copy_converted(team, index, matrix, T::widen);
            _ = PreparedMatrix::scale_and_balance(matrix, n);
            let mut x = batch.allocate_zeros::<Complex<f64>>(n)?;
            SchurScratch::allocate(&batch, n)?.compute_schur_form(matrix, basis, n).map_err(failed)?;
            SchurFactors { form: matrix, basis, n, min_divisor }.write_eigenvalues_and_vectors(&mut x, values, v);
        }
        normalize_columns(v, n);
        prepared.transform_back(values, v);
        w.iter_mut().zip(values.iter()).for_each(|(to, v)| *to = T::narrow_complex(*v));
        Ok(())
    };
    match &mut outputs[..] {
        [w, v] => {
            let items = w.elements_mut()?.typed_slice::<T::Eigenvalue>().chunks_mut(batch.per_task * n);
            let items = items.zip(v.elements_mut()?.typed_slice::<T::Eigenvalue>().chunks_mut(batch.per_task * n * n));
            batch.for_each_task(items, scratch, |(scratch, basis), first, (w, v)| {
                for (index, (w, v)) in (first..).zip(w.chunks_mut(n).zip(v.chunks_mut(n * n))) {
                    one(scratch, basis, index, w)?;
                    store_converted_in_c_order(team, basis, n, v, T::narrow_complex);
                }
                Ok(())
            })?;
        }
        outputs => {
            let items = outputs[0].elements_mut()?.typed_slice::<T::Eigenvalue>().chunks_mut(batch.per_task * n);
            batch.for_each_task(items, scratch, |(scratch, v), first, w| {
                (first..).zip(w.chunks_mut(n)).try_for_each(|(index, w)| one(scratch, v, index, w))
            })?;
        }
    }
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}
