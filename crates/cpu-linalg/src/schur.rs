//! Schur decompositions, computed in double precision.

use cuprum_core::{Call, Outcome, Result};
use cuprum_cpu_base::views::Output;

use crate::batch::{Batch, Failure};
use crate::matrix::{Matrices, store};
use crate::schur_form::{SchurForm, SchurScratch};
use crate::widen::Widen;

/// Computes the Schur form and the unitary basis of each matrix.
pub(crate) fn decompose<T: Widen<Wide: SchurForm>>(call: &Call) -> Result<Outcome> {
    let a = Matrices::<T>::new(&call.inputs[0])?;
    let n = a.rows;
    let batch = Batch::new(call, a.len(), n.saturating_mul(n).saturating_mul(n).saturating_mul(60));
    let (mut t, mut z) = (Output::allocate(call, 0)?, Output::allocate(call, 1)?);
    let items = t.elements_mut()?.typed::<T>().chunks_mut(batch.per_task * n * n);
    let items = items.zip(z.elements_mut()?.typed::<T>().chunks_mut(batch.per_task * n * n));
    let scratch = || {
        let (form, basis) = (batch.zeros::<T::Wide>(n * n)?, batch.zeros::<T::Wide>(n * n)?);
        Ok((SchurScratch::new(&batch, n)?, form, basis))
    };
    batch.for_each(items, scratch, |(scratch, form, basis), first, (t, z)| {
        for (index, (t, z)) in (first..).zip(t.chunks_mut(n * n).zip(z.chunks_mut(n * n))) {
            a.copy_converted(index, form, T::widen);
            scratch.decompose(form, basis, n).map_err(|failure| Failure::Matrix(index, failure))?;
            store(form, n, t, |_, _, v| T::narrow(v));
            store(basis, n, z, |_, _, v| T::narrow(v));
        }
        Ok(())
    })?;
    call.done_with_buffers([t, z].into_iter().map(Output::finish))
}
