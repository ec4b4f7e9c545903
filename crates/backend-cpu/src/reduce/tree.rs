//! The pairwise tree over leaves, built as they come: a binary counter of partial results.
//!
//! Its shape depends on the number of leaves alone. A run of 2^k leaves that starts at a multiple of 2^k always ends as one
//! partial result, so blocks of such runs can be computed by different threads and merged to the same bits.

use smallvec::SmallVec;

/// Partial results, each of twice as many leaves as the next (but for the last one).
pub(crate) struct Tree<A> {
    stack: SmallVec<[(u32, A); 24]>,
}

impl<A> Tree<A> {
    /// No leaf.
    pub fn new() -> Tree<A> {
        Tree { stack: SmallVec::new() }
    }

    /// The next leaf.
    #[inline]
    pub fn push(&mut self, leaf: A, merge: impl FnMut(A, A) -> A) {
        self.push_run(0, leaf, merge);
    }

    /// The result of the next 2^`level` leaves, where as many times a whole number have come before.
    #[inline]
    pub fn push_run(&mut self, mut level: u32, mut acc: A, mut merge: impl FnMut(A, A) -> A) {
        while self.stack.last().is_some_and(|(l, _)| *l == level) {
            let Some((_, earlier)) = self.stack.pop() else { break };
            acc = merge(earlier, acc);
            level += 1;
        }
        self.stack.push((level, acc));
    }

    /// The partial result of the most leaves, which are the first ones.
    pub fn first(&self) -> Option<&A> {
        self.stack.first().map(|(_, acc)| acc)
    }

    /// All leaves; `None` if there was none. None is left.
    #[inline]
    pub fn take(&mut self, mut merge: impl FnMut(A, A) -> A) -> Option<A> {
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
        let mut tree = Tree::new();
        let merge = |a: String, b: String| format!("({a} {b})");
        leaves.for_each(|i| tree.push(i.to_string(), merge));
        tree.take(merge).unwrap_or_default()
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
                let mut tree = Tree::new();
                let merge = |a: String, b: String| format!("({a} {b})");
                (0..n).step_by(block).for_each(|b| tree.push(shape(b..n.min(b + block)), merge));
                assert_eq!(tree.take(merge).unwrap(), shape(0..n));

                let mut tree = Tree::new();
                let whole = n / block * block;
                (0..whole).step_by(block).for_each(|b| tree.push_run(block.ilog2(), shape(b..b + block), merge));
                (whole..n).for_each(|leaf| tree.push(leaf.to_string(), merge));
                assert_eq!(tree.take(merge).unwrap(), shape(0..n));
            }
        }
    }
}
