//! Pairwise reduction tree, built incrementally: its partial results are kept like the digits of a binary counter.
//!
//! The tree's shape depends only on the number of leaves. A range of 2^k leaves that starts at a multiple of 2^k always forms one
//! partial result. Threads can therefore reduce such ranges separately, and the merged bits are the same.

use smallvec::SmallVec;

/// Pairwise reduction tree, as a stack of partial results. Each result but the last covers more leaves than the next.
pub(crate) struct PairwiseTree<A> {
    stack: SmallVec<[(u32, A); 24]>,
}

impl<A> PairwiseTree<A> {
    /// Creates an empty tree.
    pub fn new() -> PairwiseTree<A> {
        PairwiseTree { stack: SmallVec::new() }
    }

    /// Adds the accumulator of the next leaf.
    #[inline]
    pub fn push_leaf(&mut self, leaf: A, merge: impl FnMut(A, A) -> A) {
        self.push_subtree(0, leaf, merge);
    }

    /// Adds the accumulator of the next 2^`level` leaves. The number of leaves before them must be a multiple of 2^`level`.
    #[inline]
    pub fn push_subtree(&mut self, mut level: u32, mut acc: A, mut merge: impl FnMut(A, A) -> A) {
        while self.stack.last().is_some_and(|(l, _)| *l == level) {
            let Some((_, earlier)) = self.stack.pop() else { break };
            acc = merge(earlier, acc);
            level += 1;
        }
        self.stack.push((level, acc));
    }

    /// Returns the earliest partial result, which covers the first leaves. Returns `None` if the tree is empty.
    pub fn earliest_partial_result(&self) -> Option<&A> {
        self.stack.first().map(|(_, acc)| acc)
    }

    /// Merges and removes all partial results. Returns `None` if the tree is empty.
    #[inline]
    pub fn take_result(&mut self, mut merge: impl FnMut(A, A) -> A) -> Option<A> {
        let (_, mut acc) = self.stack.pop()?;
        while let Some((_, earlier)) = self.stack.pop() {
            acc = merge(earlier, acc);
        }
        Some(acc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(leaves: std::ops::Range<usize>) -> String {
        let mut tree = PairwiseTree::new();
        let merge = |a: String, b: String| format!("({a} {b})");
        leaves.for_each(|i| tree.push_leaf(i.to_string(), merge));
        tree.take_result(merge).unwrap_or_default()
    }

    #[test]
    fn pairs() {
        assert_eq!(shape(0..5), "(((0 1) (2 3)) 4)");
        assert_eq!(shape(0..7), "(((0 1) (2 3)) ((4 5) 6))");
        assert_eq!(shape(0..0), "");
    }

    #[test]
    fn aligned_blocks_change_nothing() {
        for n in 1..70 {
            for block in [4, 8, 16] {
                let mut tree = PairwiseTree::new();
                let merge = |a: String, b: String| format!("({a} {b})");
                (0..n).step_by(block).for_each(|b| tree.push_leaf(shape(b..n.min(b + block)), merge));
                assert_eq!(tree.take_result(merge).unwrap(), shape(0..n));

                let mut tree = PairwiseTree::new();
                let whole = n / block * block;
                (0..whole).step_by(block).for_each(|b| tree.push_subtree(block.ilog2(), shape(b..b + block), merge));
                (whole..n).for_each(|leaf| tree.push_leaf(leaf.to_string(), merge));
                assert_eq!(tree.take_result(merge).unwrap(), shape(0..n));
            }
        }
    }
}
