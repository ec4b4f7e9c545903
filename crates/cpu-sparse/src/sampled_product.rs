//! Dense products at selected positions: computes the elements of `a @ b` only where a sparse matrix has elements.

use std::ops::Range;

use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Call, Outcome, Result, decline};
use cuprum_cpu_base::simd::{self, SimdLoop};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, Output};

use crate::csr_structure::{CsrStructure, FirstOutOfBoundsIndex};
use crate::sparse_element::SparseElement;
use crate::sparse_index::SparseIndex;

/// Number of partial sums of a dot_product product. Term n is added to partial sum n modulo `PARTIAL_SUMS_PER_DOT_PRODUCT`.
const PARTIAL_SUMS_PER_DOT_PRODUCT: usize = 8;

/// Computes the sampled product.
pub(crate) fn compute_sampled_product<T: SparseElement, I: SparseIndex>(call: &Call) -> Result<Outcome> {
    let ([indptr, indices, a, b], name) = (call.inputs, call.op.name()) else { decline!("not a sampled product") };
    let ([_, k], [columns, _]) = (a.shape(), b.shape()) else { decline!("dense factors that are not 2-D") };
    let (k, columns) = (*k, *columns);
    let structure = CsrStructure::<I>::new(name, indptr, indices)?;
    let (a, b) = (Elements::from_contiguous_array(a)?.typed_slice::<T>(), Elements::from_contiguous_array(b)?.typed_slice::<T>());
    let mut output = Output::allocate(call, 0)?;
    let mut out = output.elements_mut()?.typed_slice::<T>();
    let first = structure.indptr[0].to_usize();
    let (before, rest) = out.split_at_mut(first);
    before.fill(T::ZERO);
    out = rest;
    let mut parts = Vec::new();
    let tasks = structure.split_rows_into_tasks(name)?;
    try_reserve(name, &mut parts, tasks.len())?;
    for rows in tasks {
        let count = structure.row_range(rows.end - 1).end - structure.row_range(rows.start).start;
        let (part, rest) = out.split_at_mut(count);
        parts.push((rows, part));
        out = rest;
    }
    out.fill(T::ZERO);
    let out_of_bounds = FirstOutOfBoundsIndex::new();
    threads::for_each(
        parts.into_iter(),
        structure.pass_cost().saturating_mul(k),
        || (),
        |_, (rows, out)| {
            let at = structure.row_range(rows.start).start..structure.row_range(rows.end - 1).end;
            let indices = &structure.indices[at];
            match out_of_bounds.check_indices(columns, indices) {
                true => simd::dispatch_simd(SampledRowsTask { structure, rows, a, b, k, out }),
                false => out.fill(T::ZERO),
            }
        },
    );
    out_of_bounds.to_result(name, columns)?;
    call.outcome_from_buffers([output.into_buffer()])
}

/// A task: computes the elements of some rows.
struct SampledRowsTask<'a, 'o, T, I> {
    structure: CsrStructure<'a, I>,
    rows: Range<usize>,
    a: &'a [T],
    b: &'a [T],
    k: usize,
    out: &'o mut [T],
}

impl<T: SparseElement, I: SparseIndex> SimdLoop for SampledRowsTask<'_, '_, T, I> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut out = self.out.iter_mut();
        for row in self.rows {
            let left = &self.a[row * self.k..(row + 1) * self.k];
            for (index, out) in self.structure.indices[self.structure.row_range(row)].iter().zip(&mut out) {
                let start = index.to_usize() * self.k;
                *out = dot_product(left, &self.b[start..start + self.k]);
            }
        }
    }
}

/// Returns the dot_product product of two slices, computed in `PARTIAL_SUMS_PER_DOT_PRODUCT` partial sums.
#[inline(always)]
fn dot_product<T: SparseElement>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::ZERO; PARTIAL_SUMS_PER_DOT_PRODUCT];
    let (a_blocks, b_blocks) = (a.chunks_exact(PARTIAL_SUMS_PER_DOT_PRODUCT), b.chunks_exact(PARTIAL_SUMS_PER_DOT_PRODUCT));
    let (a_tail, b_tail) = (a_blocks.remainder(), b_blocks.remainder());
    for (a, b) in a_blocks.zip(b_blocks) {
        for lane in 0..PARTIAL_SUMS_PER_DOT_PRODUCT {
            sums[lane] = sums[lane].plus(a[lane].times(b[lane]));
        }
    }
    for ((sum, &a), &b) in sums.iter_mut().zip(a_tail).zip(b_tail) {
        *sum = sum.plus(a.times(b));
    }
    sums.into_iter().fold(T::ZERO, T::plus)
}
