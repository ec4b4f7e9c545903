//! Singular value decompositions, computed in double precision.

use cuprum_core::call::SingularVectors;
use cuprum_core::error::LinAlgFailure::SvdDiverges;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::{HostVec, Output};
use faer::diag::DiagMut;
use faer::dyn_stack::MemStack;
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::linalg::svd::{ComputeSvdVectors, SvdParams, svd, svd_scratch};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Auto, ColRef, MatMut, MatRef, Par, Spec};
use num_traits::Zero;

use crate::column_blocks::ThreadsPerMatrix;
use crate::double_precision::Widen;
use crate::householder_panel::panel_scratch_size;
use crate::matrix_batch::{FaerWorkspace, MatrixBatch, MatrixFailure};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_converted_in_c_order};
use crate::power_of_two_scale::PowerOfTwoScale;
use crate::qr::{decompose_qr_in_place, multiply_by_q};

/// A matrix is reduced to a triangular one if the ratio of its extents exceeds this fraction, as in faer's `svd`. That function would call
/// faer's QR decomposition, whose factors of tall matrices are wrong.
const MAX_UNREDUCED_RATIO: (usize, usize) = (11, 6);

/// The left and right singular vectors of a matrix, in column-major order.
type Vectors<'a, W> = (&'a mut [W], &'a mut [W]);

/// The shape of the matrices of a call.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    columns: usize,
    /// Number of left and of right singular vectors.
    vectors: [usize; 2],
}

impl Shape {
    /// Returns the number of singular values.
    fn values(self) -> usize {
        self.rows.min(self.columns)
    }

    /// Returns the larger extent.
    fn long_side(self) -> usize {
        self.rows.max(self.columns)
    }

    /// Returns whether a QR decomposition comes first.
    fn is_reduced(self) -> bool {
        let (long, short) = MAX_UNREDUCED_RATIO;
        self.values() > 0 && self.long_side().saturating_mul(short) > self.values().saturating_mul(long)
    }

    /// Returns whether the conjugate transpose of the matrix is decomposed.
    fn is_transposed(self) -> bool {
        self.is_reduced() && self.columns > self.rows
    }
}

/// Scratch memory for the decomposition of one matrix.
struct Scratch<W> {
    /// The matrix or its conjugate transpose, in column-major order.
    matrix: HostVec<W>,
    values: Vec<W>,
    /// The coefficients of the reflections of a QR decomposition, and its factor R. Both are empty if there is no such decomposition.
    reflections: Vec<W>,
    triangle: Vec<W>,
    /// Vectors of [`has_accurate_vectors`], [`PROBE_VECTORS`] of the larger extent. Empty without singular vectors.
    probe: Vec<W>,
    memory: FaerWorkspace,
}

/// Smaller extent of the smallest matrix whose singular vectors faer computes by divide and conquer.
const MIN_DIVIDE_AND_CONQUER_EXTENT: usize = 128;
/// Number of vectors that [`has_accurate_vectors`] needs.
const PROBE_VECTORS: usize = 3;

/// Returns the parameters with which faer computes singular values by QR iterations alone.
fn qr_iteration_parameters<W: Field>() -> Spec<SvdParams, W> {
    SvdParams { recursion_threshold: usize::MAX, ..<SvdParams as Auto<W>>::auto() }.into()
}

/// Computes the singular values `s` of `a`, and the singular vectors if `u` and `v` are `Some`. Returns whether the iteration converged.
///
/// From [`MIN_DIVIDE_AND_CONQUER_EXTENT`] on, faer computes vectors by divide and conquer. For rank-deficient matrices, that iteration may return wrong values
/// and vectors, or fail. QR iterations then compute the result.
fn compute_checked_svd<'v, W: Field<Base = f64>>(
    a: MatRef<'_, W>,
    s: &mut [W],
    mut u: Option<MatMut<'v, W>>,
    mut v: Option<MatMut<'v, W>>,
    probe: &mut [W],
    stack: &mut MemStack,
) -> bool {
    if let (true, Some(u), Some(v)) = (s.len() >= MIN_DIVIDE_AND_CONQUER_EXTENT, &mut u, &mut v) {
        let (values, vectors) = (DiagMut::from_slice_mut(s), (Some(u.rb_mut()), Some(v.rb_mut())));
        let has_converged = svd(a, values, vectors.0, vectors.1, Par::Seq, stack, Default::default()).is_ok();
        if has_converged && has_accurate_vectors(a, s, u.as_ref(), v.as_ref(), probe) {
            return true;
        }
        [u, v].into_iter().for_each(|vectors| vectors.fill(W::zero()));
    }
    svd(a, DiagMut::from_slice_mut(s), u, v, Par::Seq, stack, qr_iteration_parameters::<W>()).is_ok()
}

/// Returns whether `a @ v` equals `u @ diag(s)`, and whether the columns of `u` and `v` are orthonormal, up to rounding. The matrices are
/// applied to one vector whose elements have magnitudes from 1/2 to 1, so that no wrong column goes unnoticed (R. Freivalds, "Probabilistic
/// machines can use less running time", 1977).
fn has_accurate_vectors<W: Field<Base = f64>>(a: MatRef<'_, W>, s: &[W], u: MatRef<'_, W>, v: MatRef<'_, W>, probe: &mut [W]) -> bool {
    let long = a.nrows().max(a.ncols());
    let (x, rest) = probe.split_at_mut(long);
    let (y, z) = rest.split_at_mut(long);
    let mut state = 1u32;
    for x in &mut *x {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let magnitude = 0.5 + f64::from(state & 0xffff) / f64::from(1u32 << 17);
        *x = W::from_real_part(if state >> 31 == 0 { magnitude } else { -magnitude });
    }
    let product = |result: &mut [W], accumulate: Accum, matrix: MatRef<'_, W>, vector: &[W], factor: W| {
        let result = MatMut::from_column_major_slice_mut(&mut result[..matrix.nrows()], matrix.nrows(), 1);
        let vector = MatRef::from_column_major_slice(&vector[..matrix.ncols()], matrix.ncols(), 1);
        matmul(result, accumulate, matrix, vector, factor, Par::Seq);
    };
    let norm = |vector: &[W]| ColRef::from_slice(vector).norm_l2();
    let tolerance = norm(x) * f64::EPSILON * (16 * long) as f64;
    // The residual of the decomposition.
    let k = s.len();
    product(y, Accum::Replace, v.subcols(0, k), x, W::one());
    product(z, Accum::Replace, a, y, W::one());
    y.iter_mut().zip(s).zip(&*x).for_each(|((y, s), x)| *y = *s * *x);
    product(z, Accum::Add, u.subcols(0, k), y, -W::one());
    let largest = s.iter().fold(0.0f64, |largest, s| largest.max(s.max_part_magnitude()));
    let mut is_accurate = norm(&z[..a.nrows()]) <= tolerance * largest;
    // The products of each basis and its adjoint.
    for basis in [u, v] {
        product(y, Accum::Replace, basis, x, W::one());
        let columns = basis.ncols();
        z[..columns].copy_from_slice(&x[..columns]);
        let result = MatMut::from_column_major_slice_mut(&mut z[..columns], columns, 1);
        matmul(
            result,
            Accum::Add,
            basis.adjoint(),
            MatRef::from_column_major_slice(&y[..basis.nrows()], basis.nrows(), 1),
            -W::one(),
            Par::Seq,
        );
        is_accurate &= norm(&z[..columns]) <= tolerance;
    }
    is_accurate
}

impl<W: Field<Base = f64>> Scratch<W> {
    /// Replaces `values` by the singular values of `matrix`, and `vectors` by the singular vectors. Returns whether the iteration converged.
    #[inline(never)]
    fn compute_svd(&mut self, team: ThreadsPerMatrix, shape: Shape, vectors: Option<Vectors<W>>) -> Result<bool> {
        let (m, n, k) = (shape.rows, shape.columns, shape.values());
        let (u, v) = vectors.unzip();
        let mut u = u.map(|u| MatMut::from_column_major_slice_mut(u, m, shape.vectors[0]));
        let mut v = v.map(|v| MatMut::from_column_major_slice_mut(v, n, shape.vectors[1]));
        // Zeros the vectors first, because faer does not write every element of the vectors that complete a basis.
        [&mut u, &mut v].into_iter().flatten().for_each(|vectors| vectors.fill(W::zero()));
        if !shape.is_reduced() {
            let a = MatRef::from_column_major_slice(&self.matrix, m, n);
            return Ok(compute_checked_svd(a, &mut self.values, u, v, &mut self.probe, MemStack::new(&mut self.memory)));
        }
        let long = shape.long_side();
        let (mut tall, square) = if shape.is_transposed() { (v, u) } else { (u, v) };
        let mut reflections = MatMut::from_column_major_slice_mut(&mut self.reflections, recommended_block_size::<W>(long, k), k);
        let mut basis = MatMut::from_column_major_slice_mut(&mut self.matrix, long, k);
        decompose_qr_in_place(team, basis.rb_mut(), reflections.rb_mut(), MemStack::new(&mut self.memory))?;
        let mut r = MatMut::from_column_major_slice_mut(&mut self.triangle, k, k);
        r.fill(W::zero());
        r.copy_from_triangular_upper(basis.rb().subrows(0, k));
        let top = tall.as_mut().map(|tall| tall.rb_mut().submatrix_mut(0, 0, k, k));
        if !compute_checked_svd(r.rb(), &mut self.values, top, square, &mut self.probe, MemStack::new(&mut self.memory)) {
            return Ok(false);
        }
        if let Some(mut tall) = tall {
            let more = tall.ncols() - k;
            tall.rb_mut().submatrix_mut(k, k, more, more).diagonal_mut().fill(W::one());
            multiply_by_q(team, basis.rb(), reflections.rb(), tall)?;
        }
        Ok(true)
    }
}

/// Makes the singular values `s` positive and sorts them in descending order, with their vectors. faer's divide-and-conquer iteration leaves
/// values of rank-deficient matrices unsorted.
fn sort_singular_values<W: Field>(s: &mut [W], shape: Shape, mut vectors: Option<Vectors<W>>) {
    let (m, n) = (shape.rows, shape.columns);
    for i in 0..s.len() {
        if s[i].real_part() < Zero::zero() {
            s[i] = -s[i];
            if let Some((_, v)) = &mut vectors {
                v[i * n..][..n].iter_mut().for_each(|v| *v = -*v);
            }
        }
        // An insertion sort needs no memory, is stable, and moves few columns, since most values are in order.
        for j in (1..=i).rev() {
            if s[j - 1].real_part() >= s[j].real_part() {
                break;
            }
            s.swap(j - 1, j);
            if let Some((u, v)) = &mut vectors {
                swap_with_previous_column(u, m, j);
                swap_with_previous_column(v, n, j);
            }
        }
    }
}

/// Swaps columns `j - 1` and `j` of a column-major matrix.
fn swap_with_previous_column<W>(matrix: &mut [W], rows: usize, j: usize) {
    let (left, right) = matrix[(j - 1) * rows..(j + 1) * rows].split_at_mut(rows);
    left.swap_with_slice(right);
}

/// Computes the singular values of each matrix, and the singular vectors that `vectors` requests.
pub(crate) fn decompose_svd<T: Widen>(call: &Call, vectors: SingularVectors) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (compute, columns, rows) = match vectors {
        SingularVectors::Omitted => (ComputeSvdVectors::No, 0, 0),
        SingularVectors::Reduced => (ComputeSvdVectors::Thin, k, k),
        SingularVectors::Full => (ComputeSvdVectors::Full, m, n),
    };
    let shape = Shape { rows: m, columns: n, vectors: [columns, rows] };
    let with_vectors = vectors != SingularVectors::Omitted;
    let batch = MatrixBatch::new(call, a.len(), m.saturating_mul(n).saturating_mul(k).saturating_mul(if with_vectors { 12 } else { 4 }));
    let team = batch.threads_per_matrix();
    let mut outputs = (0..call.outputs.len()).map(|i| Output::allocate(call, i)).collect::<Result<Vec<_>>>()?;
    let svd_size = |m, n| {
        let size = |parameters| svd_scratch::<T::Wide>(m, n, compute, compute, Par::Seq, parameters);
        size(Default::default()).or(size(qr_iteration_parameters::<T::Wide>()))
    };
    let (block, triangle, size) = if shape.is_reduced() {
        let block = recommended_block_size::<T::Wide>(shape.long_side(), k);
        (block, k * k, svd_size(k, k).or(panel_scratch_size::<T::Wide>(shape.long_side(), block)))
    } else {
        (0, 0, svd_size(m, n))
    };
    let scratch = || {
        let (u, v) = (batch.allocate_values::<T::Wide>(m * columns)?, batch.allocate_values::<T::Wide>(n * rows)?);
        let scratch = Scratch::<T::Wide> {
            matrix: batch.allocate_values(m * n)?,
            values: batch.allocate_zeros(k)?,
            reflections: batch.allocate_zeros(block * k)?,
            triangle: batch.allocate_zeros(triangle)?,
            probe: batch.allocate_zeros(if with_vectors { PROBE_VECTORS * shape.long_side() } else { 0 })?,
            memory: batch.allocate_scratch(size)?,
        };
        Ok((scratch, u, v))
    };
    let one = |scratch: &mut Scratch<T::Wide>, mut vectors: Option<Vectors<T::Wide>>, index, s: &mut [T::Base]| {
        let failed = || MatrixFailure::Matrix(index, SvdDiverges);
        match shape.is_transposed() {
            true => a.copy_adjoint_converted(team, index, &mut scratch.matrix, T::widen),
            false => a.copy_converted(team, index, &mut scratch.matrix, T::widen),
        }
        let scale = PowerOfTwoScale::scale_into_range(&mut scratch.matrix).ok_or_else(failed)?;
        let converged = scratch.compute_svd(team, shape, vectors.as_mut().map(|(u, v)| (&mut **u, &mut **v)))?;
        let values = &mut scratch.values;
        if !converged || values.iter().any(|v| v.max_part_magnitude().is_nan()) {
            return Err(failed());
        }
        sort_singular_values(values, shape, vectors);
        scale.multiply_by_scale(values);
        s.iter_mut().zip(values.iter()).for_each(|(to, v)| *to = T::narrow_real(v.real_part()));
        Ok(())
    };
    match &mut outputs[..] {
        [u, s, vh] => {
            let items = u.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * m * columns);
            let items = items.zip(vh.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * rows * n));
            let items = items.zip(s.elements_mut()?.typed_slice::<T::Base>().chunks_mut(batch.per_task * k));
            batch.for_each_task(items, scratch, |(scratch, left, right), first, ((u, vh), s)| {
                let results = u.chunks_mut(m * columns).zip(vh.chunks_mut(rows * n)).zip(s.chunks_mut(k));
                for (index, ((u, vh), s)) in (first..).zip(results) {
                    one(scratch, Some((left, right)), index, s)?;
                    store_converted_in_c_order(team, left, m, u, T::narrow);
                    // Row i of `vh` is the adjoint of column i of `v`. Rows of `vh` and columns of `v` are contiguous, so the elements are
                    // conjugated in memory order.
                    vh.iter_mut().zip(right.iter()).for_each(|(to, v)| *to = T::narrow(v.conjugate()));
                }
                Ok(())
            })?;
        }
        outputs => {
            let items = outputs[0].elements_mut()?.typed_slice::<T::Base>().chunks_mut(batch.per_task * k);
            batch.for_each_task(items, scratch, |(scratch, ..), first, s| {
                (first..).zip(s.chunks_mut(k)).try_for_each(|(index, s)| one(scratch, None, index, s))
            })?;
        }
    }
    call.outcome_from_buffers(outputs.into_iter().map(Output::into_buffer))
}
