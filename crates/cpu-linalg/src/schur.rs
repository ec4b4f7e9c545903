//! Schur decompositions, computed in double precision.

use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::typed_views::Output;

use crate::double_precision::Widen;
use crate::matrix_batch::{MatrixBatch, MatrixFailure};
use crate::matrix_stack::{MatrixStack, store_converted_in_c_order};
use crate::schur_form::{SchurForm, SchurScratch};

/// Computes the Schur form and the unitary basis of each matrix.
pub(crate) fn decompose_schur<T: Widen<Wide: SchurForm>>(call: &Call) -> Result<Outcome> {
    let a = MatrixStack::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = MatrixBatch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n).saturating_mul(60));
    let team = batch.threads_per_matrix();
    let (mut t, mut z) = (Output::allocate(call, 0)?, Output::allocate(call, 1)?);
    let items = t.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * n * n);
    let items = items.zip(z.elements_mut()?.typed_slice::<T>().chunks_mut(batch.per_task * n * n));
    let scratch = || {
        let (form, basis) = (batch.allocate_zeros::<T::Wide>(n * n)?, batch.allocate_zeros::<T::Wide>(n * n)?);
        Ok((SchurScratch::allocate(&batch, n)?, form, basis))
    };
    batch.for_each_task(items, scratch, |(scratch, form, basis), first, (t, z)| {
        for (index, (t, z)) in (first..).zip(t.chunks_mut(n * n).zip(z.chunks_mut(n * n))) {
            a.copy_converted(team, index, form, T::widen);
            scratch.compute_schur_form(form, basis, n).map_err(|failure| MatrixFailure::Matrix(index, failure))?;
            store_converted_in_c_order(team, form, n, t, T::narrow);
            store_converted_in_c_order(team, basis, n, z, T::narrow);
        }
        Ok(())
    })?;
    call.outcome_from_buffers([t, z].into_iter().map(Output::into_buffer))
}
