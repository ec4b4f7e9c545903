//! Plans of scans: the scanned axis, and the loop over lines, the 1-D slices along that axis.

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};
use crate::plan::elementwise::merge_loop_axes;

/// A planned inclusive scan along one axis. The output is C-contiguous over the original shape.
#[derive(Clone, Debug)]
pub struct ScanPlan {
    /// Length of the scanned axis.
    pub len: usize,
    /// Stride of each input along the scanned axis.
    pub axis_strides: SmallVec<[isize; 4]>,
    /// Stride of the output along the scanned axis: the product of the extents of the later axes.
    pub out_axis_stride: isize,
    /// Extents of the axes other than the scanned one, outermost first. Axes are merged where inputs and output allow.
    pub lines: Dims,
    /// Strides of each input along the axes `lines`, which are all axes except the scanned one.
    pub line_strides: SmallVec<[Strides; 4]>,
    /// Strides of the output along the axes `lines`.
    pub out_line_strides: Strides,
    /// Number of lines (1-D slices along the scanned axis), which are scanned independently.
    pub line_count: usize,
}

impl ScanPlan {
    /// Plans a scan of `inputs` (all of one shape) along `axis`.
    pub fn new(shape: &[usize], inputs: &[&Layout], axis: usize) -> ScanPlan {
        let after: usize = shape[axis + 1..].iter().product();
        let mut out_strides: Strides = SmallVec::from_elem(1, shape.len());
        for a in (0..shape.len().saturating_sub(1)).rev() {
            out_strides[a] = out_strides[a + 1] * shape[a + 1].max(1) as isize;
        }
        let others = (0..shape.len()).filter(|&a| a != axis);
        let line_count = others.clone().map(|a| shape[a]).product();
        let stride = |k: usize, a: usize| inputs.get(k).map_or(out_strides[a], |l| l.strides()[a]);
        let (lines, mut line_strides) = merge_loop_axes(inputs.len() + 1, others.map(|a| (shape[a], move |k| stride(k, a))));
        let out_line_strides = line_strides.pop().unwrap_or_default();
        ScanPlan {
            len: shape[axis],
            axis_strides: inputs.iter().map(|l| l.strides()[axis]).collect(),
            out_axis_stride: after as isize,
            line_strides,
            out_line_strides,
            lines,
            line_count,
        }
    }

    /// Returns whether there is only one line (1-D slice along the scanned axis), with stride 1 in the output and stride 1 or 0 in every
    /// input.
    pub fn is_flat(&self) -> bool {
        self.line_count == 1 && self.out_axis_stride == 1 && self.axis_strides.iter().all(|s| matches!(s, 0 | 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let l = Layout::contiguous(&[4, 5, 6]).unwrap();
        let p = ScanPlan::new(&[4, 5, 6], &[&l], 1);
        assert_eq!((p.len, p.line_count, p.out_axis_stride), (5, 24, 6));
        assert_eq!(&p.lines[..], &[4, 6]);
        assert_eq!(&p.out_line_strides[..], &[30, 1]);
        let flat = Layout::contiguous(&[7]).unwrap();
        assert!(ScanPlan::new(&[7], &[&flat], 0).is_flat());
        let every_second = Layout::contiguous(&[14]).unwrap().slice_axis(0, 0, 2, 7);
        assert!(!ScanPlan::new(&[7], &[&every_second], 0).is_flat(), "the input has stride 2");
        assert!(!ScanPlan::new(&[7], &[&flat, &every_second], 0).is_flat());
        let rows = Layout::contiguous(&[2, 7]).unwrap();
        assert!(!ScanPlan::new(&[2, 7], &[&rows], 1).is_flat(), "two lines");
        let column = Layout::strided(&[7, 2], &[1, 7], 0).unwrap();
        assert!(!ScanPlan::new(&[7, 2], &[&column], 0).is_flat(), "two lines, and stride 2 in the output");
    }
}
