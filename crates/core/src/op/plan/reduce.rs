//! Plans of reductions: kept and reduced axes, merged where possible, and the memory pattern, which selects the kernel.

use smallvec::SmallVec;

use crate::layout::{Dims, Layout, Strides};
use crate::plan::elementwise::push_or_merge_axis;

/// The memory pattern of a reduction with merged axes. In the notation below, `k` is a kept axis and `r` a reduced axis. The rightmost axis
/// is innermost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReducePattern {
    /// `[r]`, where `r` is a reduced axis: there is one result. Every input is contiguous or one repeated element.
    All,
    /// `[k.. r]`, where `k` is a kept and `r` a reduced axis: there is one reduced axis, and the elements along it are contiguous.
    Row,
    /// `[r.. k]`, where `r` is a reduced and `k` a kept axis: the innermost kept axis is contiguous, and all reduced axes are outside it.
    Column,
    /// Any other arrangement of kept and reduced axes.
    General,
}

/// A planned reduction. The output is C-contiguous over the kept axes in their original order.
#[derive(Clone, Debug)]
pub struct ReducePlan {
    /// The memory pattern, by which kernels are selected.
    pub pattern: ReducePattern,
    /// Extents of the axes that the reduction keeps, outermost first.
    pub kept: Dims,
    /// Extents of the reduced axes, outermost first.
    ///
    /// In plans of arg-reductions, the axes have their original order. In other plans, they are ordered by the strides of the first input,
    /// largest first.
    pub reduced: Dims,
    /// Strides of each input along the kept axes, in elements.
    pub kept_strides: SmallVec<[Strides; 4]>,
    /// Strides of each input along the reduced axes, in elements.
    pub reduced_strides: SmallVec<[Strides; 4]>,
    /// Number of results of the reduction.
    pub kept_size: usize,
    /// Number of input elements that are reduced to each result.
    pub reduced_size: usize,
}

impl ReducePlan {
    /// Plans a reduction of `inputs`, all of `shape`, over `axes`.
    ///
    /// With `ordered`, the reduced axes keep their original order. Arg-reductions need this order, since they return the index of an
    /// element.
    pub fn new(shape: &[usize], inputs: &[&Layout], axes: &[usize], ordered: bool) -> ReducePlan {
        // The plan is about 1 KiB, so it is filled in place instead of being moved.
        let mut plan = ReducePlan {
            pattern: ReducePattern::General,
            kept: Dims::new(),
            reduced: Dims::new(),
            kept_strides: SmallVec::new(),
            reduced_strides: SmallVec::new(),
            kept_size: 1,
            reduced_size: 1,
        };
        for _ in inputs {
            plan.kept_strides.push(Strides::new());
            plan.reduced_strides.push(Strides::new());
        }
        let strides = |a: usize| move |k: usize| inputs[k].strides()[a];
        let mut reduced_axes = Dims::new();
        for (a, &n) in shape.iter().enumerate() {
            if axes.contains(&a) {
                plan.reduced_size *= n;
                reduced_axes.push(a);
            } else {
                plan.kept_size *= n;
                push_or_merge_axis(&mut plan.kept, &mut plan.kept_strides, n, strides(a));
            }
        }
        if let Some(first) = inputs.first().filter(|first| !ordered && !first.is_c_contiguous()) {
            reduced_axes.sort_by_key(|&a| std::cmp::Reverse(first.strides()[a].unsigned_abs()));
        }
        for &a in &reduced_axes {
            push_or_merge_axis(&mut plan.reduced, &mut plan.reduced_strides, shape[a], strides(a));
        }
        plan.pattern = find_memory_pattern(&plan.kept, &plan.reduced, &plan.kept_strides, &plan.reduced_strides);
        plan
    }
}

/// Returns the memory pattern of a reduction whose axes have been merged.
fn find_memory_pattern(kept: &[usize], reduced: &[usize], kept_strides: &[Strides], reduced_strides: &[Strides]) -> ReducePattern {
    let unit = |strides: &[Strides]| {
        strides.iter().all(|s| matches!(s.last(), None | Some(0 | 1))) && strides.iter().any(|s| s.last() == Some(&1))
    };
    let flat = reduced.len() <= 1;
    if kept.is_empty() && flat && (reduced.is_empty() || unit(reduced_strides)) {
        return ReducePattern::All;
    }
    if flat && (reduced.is_empty() || unit(reduced_strides)) {
        return ReducePattern::Row;
    }
    if !kept.is_empty() && unit(kept_strides) {
        return ReducePattern::Column;
    }
    ReducePattern::General
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(shape: &[usize], axes: &[usize]) -> ReducePlan {
        let l = Layout::contiguous(shape).unwrap();
        ReducePlan::new(shape, &[&l], axes, false)
    }

    #[test]
    fn patterns() {
        assert_eq!(plan(&[4, 5, 6], &[0, 1, 2]).pattern, ReducePattern::All);
        assert_eq!(plan(&[4, 5, 6], &[2]).pattern, ReducePattern::Row);
        assert_eq!(plan(&[4, 5, 6], &[1, 2]).pattern, ReducePattern::Row);
        assert_eq!(plan(&[4, 5, 6], &[0]).pattern, ReducePattern::Column);
        assert_eq!(plan(&[4, 5, 6], &[1]).pattern, ReducePattern::Column);
        assert_eq!(plan(&[4, 5, 6], &[0, 2]).pattern, ReducePattern::General);
        let t = Layout::contiguous(&[6, 5]).unwrap().transpose();
        assert_eq!(ReducePlan::new(&[5, 6], &[&t], &[0, 1], false).pattern, ReducePattern::All);
        assert_eq!(ReducePlan::new(&[5, 6], &[&t], &[0, 1], true).pattern, ReducePattern::General);
        assert_eq!(ReducePlan::new(&[5, 6], &[&t], &[0], false).pattern, ReducePattern::Row);
        let every_second = Layout::contiguous(&[5, 12]).unwrap().slice_axis(1, 0, 2, 6);
        assert_eq!(ReducePlan::new(&[5, 6], &[&every_second], &[1], false).pattern, ReducePattern::General);
        let repeated = Layout::contiguous(&[5, 1]).unwrap().broadcast_to(&[5, 6]).unwrap();
        assert_eq!(
            ReducePlan::new(&[5, 6], &[&repeated], &[1], false).pattern,
            ReducePattern::Column,
            "no input has stride 1 along the row"
        );
    }
}
