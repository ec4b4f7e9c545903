//! Plans of elementwise loops: the axis order of the output, and loops with merged axes.

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};

/// A loop nest over operands of one shape, outermost axis first. Axes are merged as far as the strides allow.
///
/// The element of operand k at loop index `i` is at `offset_k + sum(i[d] * strides[k][d])`. The plan does not hold the offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlan {
    /// Extents of the loop, outermost first. Empty for a single element.
    pub dims: Dims,
    /// Strides of each operand along the axes of the loop, in elements.
    pub strides: SmallVec<[Strides; 4]>,
    /// Number of elements that the loop visits.
    pub size: usize,
}

impl LoopPlan {
    /// Plans a loop over operands of equal shape. The strides of the last operand (the output) order the axes, largest first.
    pub fn new(operands: &[&Layout]) -> LoopPlan {
        let Some(last) = operands.last() else {
            return LoopPlan { dims: Dims::new(), strides: SmallVec::new(), size: 1 };
        };
        let (shape, size) = (last.shape(), last.size());
        if operands.iter().all(|l| l.is_c_contiguous()) {
            return LoopPlan::new_flat(operands.len(), size);
        }
        let mut order: Dims = (0..shape.len()).filter(|&a| shape[a] != 1).collect();
        order.sort_by_key(|&a| std::cmp::Reverse(last.strides()[a].unsigned_abs()));
        let mut plan = LoopPlan { dims: Dims::new(), strides: SmallVec::from_elem(Strides::new(), operands.len()), size };
        for &a in &order {
            push_or_merge_axis(&mut plan.dims, &mut plan.strides, shape[a], |k| operands[k].strides()[a]);
        }
        plan
    }

    /// Returns the plan of a one-axis loop over `size` elements, for `operands` C-contiguous operands.
    pub fn new_flat(operands: usize, size: usize) -> LoopPlan {
        let axes = usize::from(size != 1);
        let dims = Dims::from_buf_and_len([size; 6], axes);
        let mut strides = SmallVec::new();
        for _ in 0..operands {
            strides.push(Strides::from_buf_and_len([1; 6], axes));
        }
        LoopPlan { dims, strides, size }
    }

    /// Returns whether the loop is one axis along which every operand has stride 1, or 0 for a repeated element.
    pub fn is_flat(&self) -> bool {
        self.dims.len() <= 1 && self.strides.iter().all(|s| matches!(s.as_slice(), [] | [1] | [0]))
    }
}

/// Returns the outer axis along which an operand has stride 1 or -1, if its stride along the innermost axis has a magnitude above 1.
///
/// Such an operand may be a transposed array. A loop in the plan's order would use only one element of each cache line of the operand. A
/// loop that is tiled over both axes uses all elements of a cache line.
pub fn find_transposed_axis(strides: &[isize]) -> Option<usize> {
    let (&along, outer) = strides.split_last()?;
    if along.unsigned_abs() <= 1 {
        return None;
    }
    outer.iter().position(|s| s.unsigned_abs() == 1)
}

/// Appends an innermost axis to a loop, or merges it with the current innermost axis if all operands have matching strides.
///
/// `step(k)` returns the stride of operand `k` along the new axis. `strides` holds each operand's strides along `dims`.
pub(crate) fn push_or_merge_axis(dims: &mut Dims, strides: &mut [Strides], extent: usize, step: impl Fn(usize) -> isize) {
    if extent == 1 {
        return;
    }
    let merges = |(k, outer): (usize, &Strides)| outer.last() == Some(&(step(k) * extent as isize));
    match dims.last_mut() {
        Some(outer) if strides.iter().enumerate().all(merges) => {
            *outer *= extent;
            for of_operand in strides.iter_mut() {
                of_operand.pop();
            }
        }
        _ => dims.push(extent),
    }
    for (k, of_operand) in strides.iter_mut().enumerate() {
        of_operand.push(step(k));
    }
}

/// Builds a loop from axes, outermost first, with [`push_or_merge_axis`]. Returns its extents and the strides of each operand.
///
/// Each axis is given as its extent and a function that returns the stride of an operand along the axis.
pub(crate) fn merge_loop_axes<S: Fn(usize) -> isize>(
    operands: usize,
    axes: impl Iterator<Item = (usize, S)>,
) -> (Dims, SmallVec<[Strides; 4]>) {
    let (mut dims, mut strides) = (Dims::new(), SmallVec::from_elem(Strides::new(), operands));
    axes.for_each(|(extent, step)| push_or_merge_axis(&mut dims, &mut strides, extent, step));
    (dims, strides)
}

/// Returns the axis order of an elementwise output, outermost first: the axis order of the inputs, as in NumPy's order "K".
///
/// The order is C order if the inputs have different orders, if all inputs are broadcast, or if an input of full size is C-contiguous.
pub fn output_axis_order(shape: &[usize], inputs: &[&Layout]) -> Dims {
    let c_order: Dims = (0..shape.len()).collect();
    if inputs.iter().all(|l| l.is_c_contiguous()) {
        return c_order;
    }
    let mut chosen: Option<Dims> = None;
    for layout in inputs.iter().filter(|l| l.ndim() == shape.len() && !l.is_c_contiguous()) {
        if (0..shape.len()).any(|a| shape[a] > 1 && layout.strides()[a] == 0) {
            continue; // broadcast inputs have no order
        }
        let mut order = c_order.clone();
        order.sort_by_key(|&a| std::cmp::Reverse(if shape[a] == 1 { usize::MAX } else { layout.strides()[a].unsigned_abs() }));
        match &chosen {
            None => chosen = Some(order),
            Some(c) if *c == order => {}
            Some(_) => return c_order,
        }
    }
    // If an input of the loop's shape is C-contiguous, the output gets C order, since a loop in another order would read that input with
    // large strides.
    let c_input = inputs.iter().any(|l| l.shape() == shape && l.is_c_contiguous() && !l.is_f_contiguous());
    if c_input { c_order } else { chosen.unwrap_or(c_order) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collapses_contiguous() {
        let a = Layout::contiguous(&[4, 5, 6]).unwrap();
        let p = LoopPlan::new(&[&a, &a]);
        assert_eq!(&p.dims[..], &[120]);
        assert!(p.is_flat());
        let row = Layout::contiguous(&[6]).unwrap().broadcast_to(&[4, 5, 6]).unwrap();
        let p = LoopPlan::new(&[&a, &row, &a]);
        assert_eq!(&p.dims[..], &[20, 6]);
        assert_eq!(&p.strides[1][..], &[0, 1]);
    }

    #[test]
    fn keeps_fortran_order() {
        let f = Layout::contiguous(&[5, 4]).unwrap().transpose();
        let order = output_axis_order(f.shape(), &[&f, &f]);
        assert_eq!(&order[..], &[1, 0]);
        let out = Layout::contiguous_in_order(f.shape(), &order).unwrap();
        assert_eq!(LoopPlan::new(&[&f, &out]).dims.len(), 1);
        let c = Layout::contiguous(&[4, 5]).unwrap();
        assert_eq!(&output_axis_order(&[4, 5], &[&c, &f])[..], &[0, 1]);
    }

    #[test]
    fn orders_of_different_inputs() {
        let f = Layout::contiguous(&[5, 4]).unwrap().transpose();
        let turned = Layout::contiguous(&[5, 3, 4]).unwrap().permute(&[1, 2, 0]).unwrap();
        let reversed = Layout::contiguous(&[5, 4, 3]).unwrap().transpose();
        assert_eq!(&output_axis_order(&[3, 4, 5], &[&turned])[..], [2, 0, 1]);
        assert_eq!(&output_axis_order(&[3, 4, 5], &[&turned, &reversed])[..], [0, 1, 2], "two orders");
        let row = Layout::contiguous(&[1, 5]).unwrap();
        assert_eq!(&output_axis_order(&[4, 5], &[&f, &row])[..], [1, 0], "a contiguous input of smaller size");
        let single = Layout::strided(&[4, 1, 5], &[1, 0, 4], 0).unwrap();
        assert_eq!(output_axis_order(&[4, 1, 5], &[&single]).last(), Some(&0), "an axis of one element is not broadcast");
    }

    #[test]
    fn transposed_axis_has_stride_one() {
        let c = Layout::contiguous(&[7, 5, 4]).unwrap();
        let turned = Layout::contiguous(&[4, 7, 5]).unwrap().permute(&[1, 2, 0]).unwrap();
        let plan = LoopPlan::new(&[&turned, &c]);
        assert_eq!(
            (&plan.dims[..], find_transposed_axis(&plan.strides[0]), find_transposed_axis(&plan.strides[1])),
            (&[35, 4][..], Some(0), None)
        );
        assert_eq!(find_transposed_axis(&LoopPlan::new(&[&turned.flip(&[1]), &c]).strides[0]), Some(1), "backwards");
        let strides: [&[isize]; 5] = [&[], &[3], &[1, 0], &[1, -1], &[6, 3]];
        assert!(strides.iter().all(|s| find_transposed_axis(s).is_none()), "one element, one axis, repeated, along both, along neither");
    }

    #[test]
    fn zero_d_and_empty() {
        let z = Layout::contiguous(&[]).unwrap();
        let p = LoopPlan::new(&[&z]);
        assert_eq!((p.size, p.dims.len()), (1, 0));
        let e = Layout::contiguous(&[3, 0]).unwrap();
        assert_eq!(LoopPlan::new(&[&e]).size, 0);
    }
}
