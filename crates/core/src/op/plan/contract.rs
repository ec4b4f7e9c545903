//! Contraction of two operands: every mode sorted into batch, m, n or k, and the gemm that this makes when strides allow.

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};
use crate::plan::elementwise::collapse;

/// A mode (subscript) of a contraction, numbered from 0.
pub type Mode = u8;

/// Modes of a two-operand contraction `out[..] = sum(a[..] * b[..])`.
///
/// Core guarantees: no mode twice in one operand, and every mode is in at least two of a, b, out. Extents agree; none is 0.
#[derive(Clone, Debug)]
pub struct ContractPlan {
    /// Modes of a, axis by axis.
    pub a: SmallVec<[Mode; 6]>,
    /// Modes of b, axis by axis.
    pub b: SmallVec<[Mode; 6]>,
    /// Modes of the output, axis by axis.
    pub out: SmallVec<[Mode; 6]>,
    /// Extent of each mode, by its number.
    pub extents: Dims,
    /// Modes in a, b and out, in output order.
    pub batch: SmallVec<[Mode; 6]>,
    /// Modes in a and out, in output order.
    pub m: SmallVec<[Mode; 6]>,
    /// Modes in b and out, in output order.
    pub n: SmallVec<[Mode; 6]>,
    /// Modes in a and b only (summed), in a's order.
    pub k: SmallVec<[Mode; 6]>,
}

/// A strided, batched matrix product: `c[i, j] = sum_p a[i, p] * b[p, j]`, once for each point of the batch loop.
/// Strides are in elements; offsets are those of the operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of a and c.
    pub m: usize,
    /// Columns of b and c.
    pub n: usize,
    /// Summed extent.
    pub k: usize,
    /// Row and column stride of a.
    pub a: [isize; 2],
    /// Row and column stride of b.
    pub b: [isize; 2],
    /// Row and column stride of c.
    pub c: [isize; 2],
    /// Extents of the batch loop, outermost first, collapsed over the three operands.
    pub batch: Dims,
    /// Strides along `batch` of a, b and c.
    pub batch_strides: [Strides; 3],
}

impl ContractPlan {
    /// Sorts the modes into groups.
    pub fn new(a: &[Mode], b: &[Mode], out: &[Mode], extents: &[usize]) -> ContractPlan {
        let of = |list: &[Mode], keep: &dyn Fn(&Mode) -> bool| list.iter().copied().filter(keep).collect();
        ContractPlan {
            batch: of(out, &|x| a.contains(x) && b.contains(x)),
            m: of(out, &|x| a.contains(x) && !b.contains(x)),
            n: of(out, &|x| !a.contains(x) && b.contains(x)),
            k: of(a, &|x| b.contains(x) && !out.contains(x)),
            a: a.into(),
            b: b.into(),
            out: out.into(),
            extents: extents.into(),
        }
    }

    /// Product of the extents of some modes.
    pub fn size(&self, modes: &[Mode]) -> usize {
        modes.iter().map(|&x| self.extents[x as usize]).product()
    }

    /// The strided gemm that computes this contraction on these layouts without a copy, if each of m, n and k merges
    /// into one axis. `k` may be taken in b's order when a's does not merge.
    pub fn gemm(&self, a: &Layout, b: &Layout, out: &Layout) -> Option<Gemm> {
        let stride =
            |modes: &[Mode], layout: &Layout, mode: Mode| modes.iter().position(|&x| x == mode).map_or(0, |axis| layout.strides()[axis]);
        let merge = |group: &[Mode], x: (&[Mode], &Layout), y: (&[Mode], &Layout)| -> Option<[isize; 2]> {
            let axes = group.iter().map(|&g| (self.extents[g as usize], move |i: usize| stride([x.0, y.0][i], [x.1, y.1][i], g)));
            let (dims, strides) = collapse(2, axes);
            match dims.len() {
                0 => Some([1, 1]),
                1 => Some([strides[0][0], strides[1][0]]),
                _ => None,
            }
        };
        let (pa, pb, pc) = ((&self.a[..], a), (&self.b[..], b), (&self.out[..], out));
        let [a_row, c_row] = merge(&self.m, pa, pc)?;
        let [b_col, c_col] = merge(&self.n, pb, pc)?;
        let k_in_b: SmallVec<[Mode; 6]> = self.b.iter().copied().filter(|x| self.k.contains(x)).collect();
        let [a_col, b_row] = merge(&self.k, pa, pb).or_else(|| merge(&k_in_b, pa, pb))?;
        let operands = [pa, pb, pc];
        let batch_axes = self.batch.iter().map(|&g| (self.extents[g as usize], move |i: usize| stride(operands[i].0, operands[i].1, g)));
        let (batch, batch_strides) = collapse(3, batch_axes);
        Some(Gemm {
            m: self.size(&self.m),
            n: self.size(&self.n),
            k: self.size(&self.k),
            a: [a_row, a_col],
            b: [b_row, b_col],
            c: [c_row, c_col],
            batch,
            batch_strides: [0, 1, 2].map(|i| batch_strides[i].clone()),
        })
    }

    /// The axis order for copying an operand so that its groups merge: batch, then m (or n), then k for a; batch, k, n for b.
    /// Returns axes of the operand, outermost first.
    pub fn packed_order(&self, of_b: bool) -> Dims {
        let (modes, groups): (_, [&[Mode]; 3]) =
            if of_b { (&self.b, [&self.batch, &self.k, &self.n]) } else { (&self.a, [&self.batch, &self.m, &self.k]) };
        groups.iter().flat_map(|g| g.iter()).filter_map(|g| modes.iter().position(|x| x == g)).collect()
    }

    /// The axis order of an output whose groups merge (batch, m, n), outermost first, as axes of the output.
    pub fn packed_output_order(&self) -> Dims {
        [&self.batch, &self.m, &self.n].iter().flat_map(|g| g.iter()).filter_map(|g| self.out.iter().position(|x| x == g)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matmul_is_gemm() {
        // ij,jk->ik with a transposed b
        let p = ContractPlan::new(&[0, 1], &[1, 2], &[0, 2], &[4, 5, 6]);
        let a = Layout::contiguous(&[4, 5]).unwrap();
        let b = Layout::contiguous(&[6, 5]).unwrap().transpose();
        let g = p.gemm(&a, &b, &Layout::contiguous(&[4, 6]).unwrap()).unwrap();
        assert_eq!((g.m, g.n, g.k, g.a, g.b, g.c), (4, 6, 5, [5, 1], [1, 5], [6, 1]));
    }

    #[test]
    fn scattered_k_does_not_merge() {
        // abcd,cbe->ade : k = b, c with a's order b, c and b's order c, b
        let p = ContractPlan::new(&[0, 1, 2, 3], &[2, 1, 4], &[0, 3, 4], &[2, 3, 4, 5, 6]);
        let a = Layout::contiguous(&[2, 3, 4, 5]).unwrap();
        let b = Layout::contiguous(&[4, 3, 6]).unwrap();
        let out = Layout::contiguous(&[2, 5, 6]).unwrap();
        assert!(p.gemm(&a, &b, &out).is_none());
        assert_eq!(&p.packed_order(true)[..], &[1, 0, 2]);
        assert_eq!(&p.packed_order(false)[..], &[0, 3, 1, 2]);
    }
}
