//! The shape of a reduction: kept and reduced axes, each collapsed, and the class that picks a kernel.

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};
use crate::plan::elementwise::collapse;

/// What a reduction looks like after collapsing. `k` marks kept axes, `r` reduced ones, rightmost fastest in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceClass {
    /// `[r]`, every input contiguous (or a single repeated element): one result.
    All,
    /// `[k.. r]`: the reduced axis is one, and contiguous.
    Row,
    /// `[r.. k]`: the innermost kept axis is contiguous, reduced axes lie outside it.
    Column,
    /// Anything else.
    General,
}

/// A planned reduction. The output is C-contiguous over the kept axes in their original order.
#[derive(Clone, Debug)]
pub struct ReducePlan {
    /// The class.
    pub class: ReduceClass,
    /// Extents of kept axes, outermost first.
    pub kept: Dims,
    /// Extents of reduced axes, outermost first. For ordered plans (arg-reductions) in their original order, otherwise
    /// ordered by the first input's strides, widest first.
    pub reduced: Dims,
    /// Per input, strides along `kept`.
    pub kept_strides: SmallVec<[Strides; 4]>,
    /// Per input, strides along `reduced`.
    pub reduced_strides: SmallVec<[Strides; 4]>,
    /// Number of results.
    pub kept_size: usize,
    /// Number of elements per result.
    pub reduced_size: usize,
}

impl ReducePlan {
    /// Plans a reduction of `inputs` (all of one shape) over `axes`. `ordered` keeps the reduced axes in their order,
    /// which arg-reductions need to number elements.
    pub fn new(shape: &[usize], inputs: &[&Layout], axes: &[usize], ordered: bool) -> ReducePlan {
        let strides_at = |a: usize| inputs.iter().map(|l| l.strides()[a]).collect::<Strides>();
        let kept_axes = (0..shape.len()).filter(|a| !axes.contains(a));
        let mut reduced_axes: Dims = (0..shape.len()).filter(|a| axes.contains(a)).collect();
        if let (Some(first), false) = (inputs.first(), ordered) {
            reduced_axes.sort_by_key(|&a| std::cmp::Reverse(first.strides()[a].unsigned_abs()));
        }
        let kept_size = kept_axes.clone().map(|a| shape[a]).product();
        let reduced_size = reduced_axes.iter().map(|&a| shape[a]).product();
        let (kept, kept_by_axis) = collapse(kept_axes.map(|a| (shape[a], strides_at(a))));
        let (reduced, reduced_by_axis) = collapse(reduced_axes.iter().map(|&a| (shape[a], strides_at(a))));
        let by_input = |axes: &SmallVec<[Strides; 6]>| -> SmallVec<[Strides; 4]> {
            (0..inputs.len()).map(|k| axes.iter().map(|s| s[k]).collect()).collect()
        };
        let (kept_strides, reduced_strides) = (by_input(&kept_by_axis), by_input(&reduced_by_axis));
        let class = classify(&kept, &reduced, &kept_strides, &reduced_strides);
        ReducePlan { class, kept, reduced, kept_strides, reduced_strides, kept_size, reduced_size }
    }
}

fn classify(kept: &[usize], reduced: &[usize], kept_strides: &[Strides], reduced_strides: &[Strides]) -> ReduceClass {
    let unit = |strides: &[Strides]| {
        strides.iter().all(|s| matches!(s.last(), None | Some(0 | 1))) && strides.iter().any(|s| s.last() == Some(&1))
    };
    let flat = reduced.len() <= 1;
    if kept.is_empty() && flat && (reduced.is_empty() || unit(reduced_strides)) {
        return ReduceClass::All;
    }
    if flat && (reduced.is_empty() || unit(reduced_strides)) {
        return ReduceClass::Row;
    }
    if !kept.is_empty() && unit(kept_strides) {
        return ReduceClass::Column;
    }
    ReduceClass::General
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[usize], axes: &[usize]) -> ReducePlan {
        let l = Layout::contiguous(shape).unwrap();
        ReducePlan::new(shape, &[&l], axes, false)
    }

    #[test]
    fn classes() {
        assert_eq!(plan(&[4, 5, 6], &[0, 1, 2]).class, ReduceClass::All);
        assert_eq!(plan(&[4, 5, 6], &[2]).class, ReduceClass::Row);
        assert_eq!(plan(&[4, 5, 6], &[1, 2]).class, ReduceClass::Row);
        assert_eq!(plan(&[4, 5, 6], &[0]).class, ReduceClass::Column);
        assert_eq!(plan(&[4, 5, 6], &[1]).class, ReduceClass::Column);
        assert_eq!(plan(&[4, 5, 6], &[0, 2]).class, ReduceClass::General);
        let t = Layout::contiguous(&[6, 5]).unwrap().transpose();
        assert_eq!(ReducePlan::new(&[5, 6], &[&t], &[0, 1], false).class, ReduceClass::All);
        assert_eq!(ReducePlan::new(&[5, 6], &[&t], &[0, 1], true).class, ReduceClass::General);
        assert_eq!(ReducePlan::new(&[5, 6], &[&t], &[0], false).class, ReduceClass::Row);
    }
}
