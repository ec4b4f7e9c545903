//! QR decompositions by Householder reflections.

use cuprum_core::call::QrMode;
use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::views::Output;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch, apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Conj, MatMut, Par};

use crate::batch::Batch;
use crate::field::Field;
use crate::matrix::{Matrices, store};

/// Replaces `a` (m, n) by its upper factor, with the Householder vectors below the diagonal and their coefficients in `reflections`. If `q`
/// is given, it holds an identity matrix, which becomes the factor Q.
#[inline(never)]
fn compute_qr<T: Field>(mut a: MatMut<'_, T>, mut reflections: MatMut<'_, T>, q: Option<MatMut<'_, T>>, stack: &mut MemStack) {
    let k = a.nrows().min(a.ncols());
    qr_in_place(a.rb_mut(), reflections.rb_mut(), Par::Seq, stack, Default::default());
    if let Some(q) = q {
        let basis = a.rb().subcols(0, k);
        apply_block_householder_sequence_on_the_left_in_place_with_conj(basis, reflections.rb(), Conj::No, q, Par::Seq, stack);
    }
}

/// Computes the factors Q and R of each matrix.
pub(crate) fn decompose<T: Field>(call: &Call, mode: QrMode) -> Result<Outcome> {
    let a = Matrices::<T>::new(&call.inputs[0])?;
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (columns, rows) = match mode {
        QrMode::Reduced => (k, k),
        QrMode::Complete => (m, m),
        QrMode::R => (0, k),
    };
    let block = recommended_block_size::<T>(m, n);
    let batch = Batch::new(call, a.len(), m.saturating_mul(n).saturating_mul(k).saturating_mul(2));
    let mut outputs = (0..call.outputs.len()).map(|i| Output::allocate(call, i)).collect::<Result<Vec<_>>>()?;
    let size = qr_in_place_scratch::<T>(m, n, block, Par::Seq, Default::default())
        .or(apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, columns));
    let scratch =
        || Ok((batch.zeros::<T>(m * n)?, batch.zeros::<T>(block * k)?, batch.zeros::<T>(m * columns)?, batch.allocate_scratch(size)?));
    let one =
        |(matrix, reflections, vectors, memory): &mut (Vec<T>, Vec<T>, Vec<T>, MemBuffer), index, q: Option<&mut [T]>, r: &mut [T]| {
            a.copy(index, matrix);
            vectors.fill(T::zero());
            vectors.iter_mut().step_by(m + 1).take(columns).for_each(|v| *v = T::one());
            let identity = q.is_some().then(|| MatMut::from_column_major_slice_mut(vectors, m, columns));
            let reflections = MatMut::from_column_major_slice_mut(reflections, block, k);
            compute_qr(MatMut::from_column_major_slice_mut(matrix, m, n), reflections, identity, MemStack::new(memory));
            for (i, row) in r.chunks_mut(n).enumerate() {
                row.iter_mut().enumerate().for_each(|(j, to)| *to = if i <= j && i < k { matrix[j * m + i] } else { T::zero() });
            }
            if let Some(q) = q {
                store(vectors, m, q, |_, _, v| v);
            }
        };
    match &mut outputs[..] {
        [q, r] => {
            let items = q.elements_mut()?.typed::<T>().chunks_mut(batch.per_task * m * columns);
            batch.for_each(
                items.zip(r.elements_mut()?.typed::<T>().chunks_mut(batch.per_task * rows * n)),
                scratch,
                |scratch, first, (q, r)| {
                    let results = q.chunks_mut(m * columns).zip(r.chunks_mut(rows * n));
                    (first..).zip(results).for_each(|(index, (q, r))| one(scratch, index, Some(q), r));
                    Ok(())
                },
            )?;
        }
        outputs => {
            let items = outputs[0].elements_mut()?.typed::<T>().chunks_mut(batch.per_task * rows * n);
            batch.for_each(items, scratch, |scratch, first, r| {
                (first..).zip(r.chunks_mut(rows * n)).for_each(|(index, r)| one(scratch, index, None, r));
                Ok(())
            })?;
        }
    }
    call.done(outputs.into_iter().map(Output::finish))
}
