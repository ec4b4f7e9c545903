//! Division of an axis into blocks, and of the blocks among ranks.

use std::ops::Range;

/// Maximum number of blocks of an axis. The number is a multiple of 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48 and 64, so that these numbers of
/// ranks own equal numbers of blocks of a long axis.
pub(crate) const MAX_BLOCKS_PER_AXIS: usize = 192;

/// The blocks of an axis. The division depends only on the extent of the axis, so that reductions by block do not depend on the number of
/// ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisBlocks {
    /// Extent of the axis.
    pub extent: usize,
    /// Number of elements of each block. The last block may be shorter.
    pub length: usize,
    /// Number of blocks of the axis. No block is empty.
    pub count: usize,
}

impl AxisBlocks {
    /// Returns the blocks of an axis of `extent` elements.
    pub fn of(extent: usize) -> AxisBlocks {
        let length = extent.div_ceil(MAX_BLOCKS_PER_AXIS).max(1);
        AxisBlocks { extent, length, count: extent.div_ceil(length) }
    }

    /// Returns the blocks that rank `rank` of `ranks` owns.
    pub fn owned_blocks(self, rank: usize, ranks: usize) -> Range<usize> {
        let edge = |rank: usize| rank * self.count / ranks.max(1);
        edge(rank)..edge(rank + 1)
    }

    /// Returns the elements that rank `rank` of `ranks` owns.
    pub fn owned_elements(self, rank: usize, ranks: usize) -> Range<usize> {
        let blocks = self.owned_blocks(rank, ranks);
        (blocks.start * self.length).min(self.extent)..(blocks.end * self.length).min(self.extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_own_adjacent_blocks_that_cover_the_axis() {
        for extent in (0..1000).chain([191, 192, 193, 383, 384, 385, 100_000, 1 << 20, (1 << 40) + 1]) {
            let blocks = AxisBlocks::of(extent);
            assert!(blocks.count <= MAX_BLOCKS_PER_AXIS && (blocks.count == 0) == (extent == 0));
            for ranks in [1, 2, 3, 4, 5, 7, 8, 64, 1000] {
                let mut next = 0;
                for rank in 0..ranks {
                    let owned_elements = blocks.owned_elements(rank, ranks);
                    assert_eq!(owned_elements.start, next, "{extent} over {ranks}");
                    assert!(owned_elements.start.is_multiple_of(blocks.length) || owned_elements.start == extent);
                    next = owned_elements.end;
                }
                assert_eq!(next, extent);
            }
        }
    }

    #[test]
    fn long_axes_are_balanced() {
        for ranks in [1, 2, 3, 4, 6, 8] {
            let sizes: Vec<usize> = (0..ranks).map(|r| AxisBlocks::of(192 * 1000).owned_elements(r, ranks).len()).collect();
            assert!(sizes.iter().all(|n| *n == sizes[0]), "{sizes:?}");
        }
    }
}
