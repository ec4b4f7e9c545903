//! Batches of strided matrix products, described by extents, offsets and strides.

use cuprum_core::{Error, Result};

/// One matrix product `c = a @ b`: the extents of m, n and k, and the row and column strides of each matrix in elements.
pub(super) struct MatrixProductLayout {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: [isize; 2],
    pub b: [isize; 2],
    pub c: [isize; 2],
}

/// A batch of matrix products: the offsets of the first product, and the batch extents and strides of `a`, `b` and `c`.
pub(super) struct ProductBatch<'a> {
    pub first: [isize; 3],
    pub extents: &'a [usize],
    pub strides: [&'a [isize]; 3],
}

impl ProductBatch<'_> {
    /// Returns the number of matrix products.
    pub fn len(&self) -> usize {
        self.extents.iter().fold(1, |len, &n| len.saturating_mul(n))
    }

    /// Returns the offsets of the matrices `a`, `b` and `c` of product number `n`.
    pub fn matrix_offsets(&self, n: usize) -> [isize; 3] {
        let (mut at, mut rest) = (self.first, n);
        for (axis, &extent) in self.extents.iter().enumerate().rev() {
            let i = (rest % extent) as isize;
            rest /= extent;
            (0..3).for_each(|k| at[k] += i * self.strides[k][axis]);
        }
        at
    }
}

#[cfg(test)]
impl ProductBatch<'static> {
    /// Returns a batch of one product, whose offsets are 0.
    pub fn one() -> ProductBatch<'static> {
        ProductBatch { first: [0; 3], extents: &[], strides: [&[]; 3] }
    }
}

/// Returns an error unless every element of every product is inside its buffer. `lens` has the buffer lengths of `a`, `b` and `c`
/// in elements. The unsafe code relies on this check.
pub(super) fn check_matrix_bounds(p: &MatrixProductLayout, batch: &ProductBatch, lens: [usize; 3]) -> Result<()> {
    let spans = [(p.a, [p.m, p.k]), (p.b, [p.k, p.n]), (p.c, [p.m, p.n])];
    for (operand, (steps, extents)) in spans.into_iter().enumerate() {
        let of_matrix = steps.into_iter().zip(extents);
        let of_batch = batch.strides[operand].iter().copied().zip(batch.extents.iter().copied());
        let (mut low, mut high) = (batch.first[operand], batch.first[operand]);
        for (step, extent) in of_matrix.chain(of_batch) {
            let reach = step.saturating_mul(extent as isize - 1);
            (low, high) = (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)));
        }
        if batch.len() > 0 && (low < 0 || high >= lens[operand] as isize) {
            return Err(Error::backend("cpu", "contract", "a matrix reaches outside its buffer"));
        }
    }
    Ok(())
}
