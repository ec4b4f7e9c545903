//! Singular value decompositions, computed in double precision.

use cuprum_core::call::SingularVectors;
use cuprum_core::error::LinAlgFailure::SvdDiverges;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::{HostVec, Output};
use faer::diag::DiagMut;
use faer::dyn_stack::MemStack;
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::{MatMut, MatRef, Par};
use num_traits::Zero;

use crate::double_precision::Widen;
use crate::matrix_batch::{FaerWorkspace, MatrixBatch, MatrixFailure};
use crate::matrix_element::Field;
use crate::matrix_stack::{MatrixStack, store_converted_in_c_order};
use crate::power_of_two_scale::PowerOfTwoScale;

/// Computes the singular values `s` of `a`, and the singular vectors if `u` and `v` are `Some`. Returns whether the iteration converged.
#[inline(never)]
fn compute_svd<W: Field>(a: MatRef<'_, W>, s: &mut [W], u: Option<MatMut<'_, W>>, v: Option<MatMut<'_, W>>, stack: &mut MemStack) -> bool {
    svd(a, DiagMut::from_slice_mut(s), u, v, Par::Seq, stack, Default::default()).is_ok()
}

/// The left and right singular vectors of a matrix, in column-major order.
type Vectors<'a, W> = (&'a mut [W], &'a mut [W]);

/// Scratch memory: a matrix, its singular values, and the workspace of faer.
type Scratch<W> = (HostVec<W>, Vec<W>, FaerWorkspace);

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
    let with_vectors = vectors != SingularVectors::Omitted;
    let batch = MatrixBatch::new(call, a.len(), m.saturating_mul(n).saturating_mul(k).saturating_mul(if with_vectors { 12 } else { 4 }));
    let team = batch.threads_per_matrix();
    let mut outputs = (0..call.outputs.len()).map(|i| Output::allocate(call, i)).collect::<Result<Vec<_>>>()?;
    let size = svd_scratch::<T::Wide>(m, n, compute, compute, Par::Seq, Default::default());
    let scratch = || {
        let (u, v) = (batch.allocate_values::<T::Wide>(m * columns)?, batch.allocate_values::<T::Wide>(n * rows)?);
        Ok(((batch.allocate_values::<T::Wide>(m * n)?, batch.allocate_zeros::<T::Wide>(k)?, batch.allocate_scratch(size)?), u, v))
    };
    let one = |(matrix, values, memory): &mut Scratch<T::Wide>, vectors: Option<Vectors<T::Wide>>, index, s: &mut [T::Base]| {
        a.copy_converted(team, index, matrix, T::widen);
        let Some(scale) = PowerOfTwoScale::scale_into_range(matrix) else { return Err(MatrixFailure::Matrix(index, SvdDiverges)) };
        let (u, v) = match vectors {
            Some((u, v)) => {
                // Zeros the vectors first, because faer does not write every element of the vectors that complete a basis.
                u.fill(T::Wide::zero());
                v.fill(T::Wide::zero());
                (Some(MatMut::from_column_major_slice_mut(u, m, columns)), Some(MatMut::from_column_major_slice_mut(v, n, rows)))
            }
            None => (None, None),
        };
        if !compute_svd(MatRef::from_column_major_slice(matrix, m, n), values, u, v, MemStack::new(memory)) {
            return Err(MatrixFailure::Matrix(index, SvdDiverges));
        }
        scale.multiply_by_scale(values);
        s.iter_mut().zip(values.iter()).for_each(|(to, v)| *to = T::narrow_real(v.max_part_magnitude()));
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
