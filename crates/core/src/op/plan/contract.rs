//! Plans of two-operand contractions: groups modes into batch, m, n and k, and finds a strided gemm where the layouts allow one.

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};
use crate::plan::elementwise::merge_loop_axes;

/// A mode of a contraction: the number of an einsum subscript, counted from 0.
pub type Mode = u8;

/// The modes of a two-operand contraction `out[..] = sum(a[..] * b[..])`.
///
/// No mode occurs twice in one operand, and each mode is in at least two of a, b and out. A mode has the same extent in all operands, and
/// no extent is 0.
#[derive(Clone, Debug)]
pub struct ContractPlan {
    /// The mode (einsum subscript) of each axis of operand `a`.
    pub a: SmallVec<[Mode; 6]>,
    /// The mode (einsum subscript) of each axis of operand `b`.
    pub b: SmallVec<[Mode; 6]>,
    /// The mode (einsum subscript) of each axis of the output.
    pub out: SmallVec<[Mode; 6]>,
    /// The extent of each mode (einsum subscript), indexed by mode.
    pub extents: Dims,
    /// Batch modes (einsum subscripts): those in `a`, `b` and `out`. They are in output order.
    pub batch: SmallVec<[Mode; 6]>,
    /// Row modes (einsum subscripts): those in `a` and `out` but not in `b`. They are in output order.
    pub m: SmallVec<[Mode; 6]>,
    /// Column modes (einsum subscripts): those in `b` and `out` but not in `a`. They are in output order.
    pub n: SmallVec<[Mode; 6]>,
    /// Summed modes (einsum subscripts): those in `a` and `b` but not in `out`. They are in the order of `a`.
    pub k: SmallVec<[Mode; 6]>,
}

/// A strided, batched matrix product: `c[i, j] = sum_p a[i, p] * b[p, j]` for each index of the batch loop.
///
/// Strides are in elements. The first element of an operand is at the offset of its layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// Number of rows of matrices `a` and `c`.
    pub m: usize,
    /// Number of columns of matrices `b` and `c`.
    pub n: usize,
    /// Extent of the summed axis: the columns of matrix `a` and the rows of matrix `b`.
    pub k: usize,
    /// Row and column strides of matrix `a`, in elements.
    pub a: [isize; 2],
    /// Row and column strides of matrix `b`, in elements.
    pub b: [isize; 2],
    /// Row and column strides of matrix `c`, in elements.
    pub c: [isize; 2],
    /// Extents of the batch loop, outermost first. Axes are merged where all three operands allow.
    pub batch: Dims,
    /// Strides of `a`, `b` and `c` along the axes of the batch loop, in elements.
    pub batch_strides: [Strides; 3],
}

impl ContractPlan {
    /// Groups the modes of `a`, `b` and `out` into batch, m, n and k.
    pub fn new(a: &[Mode], b: &[Mode], out: &[Mode], extents: &[usize]) -> ContractPlan {
        let select = |list: &[Mode], keep: &dyn Fn(&Mode) -> bool| list.iter().copied().filter(keep).collect();
        ContractPlan {
            batch: select(out, &|x| a.contains(x) && b.contains(x)),
            m: select(out, &|x| a.contains(x) && !b.contains(x)),
            n: select(out, &|x| !a.contains(x) && b.contains(x)),
            k: select(a, &|x| b.contains(x) && !out.contains(x)),
            a: a.into(),
            b: b.into(),
            out: out.into(),
            extents: extents.into(),
        }
    }

    /// Returns the product of the extents of the einsum subscripts `modes`.
    pub fn total_extent(&self, modes: &[Mode]) -> usize {
        modes.iter().map(|&x| self.extents[x as usize]).product()
    }

    /// Returns the strided gemm that computes this contraction without copies of these operands.
    ///
    /// Returns `None` unless each of the groups m, n and k merges into one axis. The modes of k may be ordered as in `a` or as in `b`.
    pub fn as_gemm(&self, a: &Layout, b: &Layout, out: &Layout) -> Option<Gemm> {
        let stride =
            |modes: &[Mode], layout: &Layout, mode: Mode| modes.iter().position(|&x| x == mode).map_or(0, |axis| layout.strides()[axis]);
        let merge = |group: &[Mode], x: (&[Mode], &Layout), y: (&[Mode], &Layout)| -> Option<[isize; 2]> {
            let axes = group.iter().map(|&g| (self.extents[g as usize], move |i: usize| stride([x.0, y.0][i], [x.1, y.1][i], g)));
            let (dims, strides) = merge_loop_axes(2, axes);
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
        let (batch, batch_strides) = merge_loop_axes(3, batch_axes);
        Some(Gemm {
            m: self.total_extent(&self.m),
            n: self.total_extent(&self.n),
            k: self.total_extent(&self.k),
            a: [a_row, a_col],
            b: [b_row, b_col],
            c: [c_row, c_col],
            batch,
            batch_strides: [0, 1, 2].map(|i| batch_strides[i].clone()),
        })
    }

    /// Returns the axis order, outermost first, in which an operand is copied before a matrix product: the modes of each group are
    /// adjacent, so that they merge to one axis.
    ///
    /// The order is batch, m, k for operand a, and batch, k, n for operand b (`of_b`).
    pub fn packed_operand_axis_order(&self, of_b: bool) -> Dims {
        let (modes, groups): (_, [&[Mode]; 3]) =
            if of_b { (&self.b, [&self.batch, &self.k, &self.n]) } else { (&self.a, [&self.batch, &self.m, &self.k]) };
        groups.iter().flat_map(|g| g.iter()).filter_map(|g| modes.iter().position(|x| x == g)).collect()
    }

    /// Returns the axis order, outermost first, of an output in which each of the mode groups batch, m and n merges to one axis.
    pub fn packed_output_axis_order(&self) -> Dims {
        [&self.batch, &self.m, &self.n].iter().flat_map(|g| g.iter()).filter_map(|g| self.out.iter().position(|x| x == g)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matmul_is_gemm() {
        // ij,jk->ik with b transposed.
        let p = ContractPlan::new(&[0, 1], &[1, 2], &[0, 2], &[4, 5, 6]);
        let a = Layout::contiguous(&[4, 5]).unwrap();
        let b = Layout::contiguous(&[6, 5]).unwrap().transpose();
        let g = p.as_gemm(&a, &b, &Layout::contiguous(&[4, 6]).unwrap()).unwrap();
        assert_eq!((g.m, g.n, g.k, g.a, g.b, g.c), (4, 6, 5, [5, 1], [1, 5], [6, 1]));
    }

    #[test]
    fn scattered_k_does_not_merge() {
        // abcd,cbe->ade sums b and c, which are ordered b, c in the first operand and c, b in the second.
        let p = ContractPlan::new(&[0, 1, 2, 3], &[2, 1, 4], &[0, 3, 4], &[2, 3, 4, 5, 6]);
        let a = Layout::contiguous(&[2, 3, 4, 5]).unwrap();
        let b = Layout::contiguous(&[4, 3, 6]).unwrap();
        let out = Layout::contiguous(&[2, 5, 6]).unwrap();
        assert!(p.as_gemm(&a, &b, &out).is_none());
        assert_eq!(&p.packed_operand_axis_order(true)[..], &[1, 0, 2]);
        assert_eq!(&p.packed_operand_axis_order(false)[..], &[0, 3, 1, 2]);
    }
}
