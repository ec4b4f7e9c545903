//! Placements of an array on the axes of a mesh, and the region of the array that each rank holds.

use std::fmt;
use std::ops::Range;

use cuprum_core::layout::Dims;
use cuprum_core::ops::reduce::{MAX, MIN, PROD, SUM};
use cuprum_core::{Error, Op, Result, layout::normalize_axis};
use smallvec::SmallVec;

use crate::axis_blocks::AxisBlocks;
use crate::mesh::Mesh;

/// The operation of a pending reduction ([`Placement::Partial`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialOp {
    /// The sum of the ranks' values; for bools, the logical or.
    Sum,
    /// The product of the ranks' values; for bools, the logical and.
    Prod,
    /// The smallest of the ranks' values; NaN if any value is NaN.
    Min,
    /// The largest of the ranks' values; NaN if any value is NaN.
    Max,
}

impl PartialOp {
    /// Returns the reduction that combines the values of the ranks.
    pub(crate) fn reduction_op(self) -> Op {
        match self {
            PartialOp::Sum => SUM,
            PartialOp::Prod => PROD,
            PartialOp::Min => MIN,
            PartialOp::Max => MAX,
        }
    }
}

/// The placement of an array along one axis of a mesh.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use cuprum_core::*; pub mod distributed { pub use cuprum_distributed::*; } }
/// use cuprum::distributed::{Mesh, Placement::{Replicate, Shard}, ShardedArray};
/// use cuprum::{DType, ones};
/// # fn main() -> cuprum::Result<()> {
/// let mesh = Mesh::loopback_grid(&[2, 2])?;
/// let a = ones([6, 4], DType::F32)?.shard(&mesh, [Shard(0), Replicate])?;
/// assert_eq!(a.placements(), Some(vec![Shard(0), Replicate]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Every rank along the mesh axis holds the same elements.
    Replicate,
    /// The array is divided along this axis. Negative axes count from the end.
    Shard(isize),
    /// Every rank along the mesh axis holds an array of the full extent. The elementwise combination of the ranks' arrays is the value of
    /// the sharded array.
    Partial(PartialOp),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Replicate => f.write_str("replicated"),
            Placement::Shard(axis) => write!(f, "sharded along axis {axis}"),
            Placement::Partial(op) => write!(f, "partial {op:?}"),
        }
    }
}

/// One placement per mesh axis.
pub(crate) type Placements = SmallVec<[Placement; 2]>;

/// A region of an array: a range along each axis.
pub(crate) type Region = SmallVec<[Range<usize>; 6]>;

/// Returns the extents of a region.
pub(crate) fn region_extents(region: &[Range<usize>]) -> Dims {
    region.iter().map(|range| range.len()).collect()
}

/// Returns the common elements of two regions, or `None` if there are none.
pub(crate) fn region_intersection(a: &[Range<usize>], b: &[Range<usize>]) -> Option<Region> {
    let region: Region = a.iter().zip(b).map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect();
    region.iter().all(|range| range.start < range.end).then_some(region)
}

/// Checks placements and makes their axes non-negative.
///
/// # Errors
/// Returns an error if the number of placements differs from the number of mesh axes, or if an axis is out of bounds.
pub(crate) fn check_placements(op: &'static str, mesh: Mesh, placements: &[Placement], ndim: usize) -> Result<Placements> {
    let axes = mesh.shape().len();
    if placements.len() != axes {
        return Err(Error::value(op, format!("{} placements are given for a mesh of {axes} axes", placements.len())));
    }
    let check = |placement: &Placement| match *placement {
        Placement::Shard(axis) => normalize_axis(op, axis, ndim).map(|axis| Placement::Shard(axis as isize)),
        other => Ok(other),
    };
    placements.iter().map(check).collect()
}

/// The shape of an array, and its placement along each axis of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArrayDistribution {
    /// Extents of the whole array.
    pub shape: Dims,
    /// One placement per mesh axis, with non-negative axes.
    pub placements: Placements,
}

impl ArrayDistribution {
    /// Returns the distribution of an array that every rank holds.
    pub fn new_replicated(mesh: Mesh, shape: &[usize]) -> ArrayDistribution {
        ArrayDistribution { shape: shape.into(), placements: SmallVec::from_elem(Placement::Replicate, mesh.shape().len()) }
    }

    /// Returns whether every rank holds the array.
    pub fn is_replicated(&self) -> bool {
        self.placements.iter().all(|p| *p == Placement::Replicate)
    }

    /// Returns whether a reduction over the ranks is pending.
    pub fn has_pending_reduction(&self) -> bool {
        self.placements.iter().any(|p| matches!(p, Placement::Partial(_)))
    }

    /// Returns the array axis that a mesh axis divides.
    pub fn sharded_axis(&self, mesh_axis: usize) -> Option<usize> {
        match self.placements.get(mesh_axis) {
            Some(Placement::Shard(axis)) => usize::try_from(*axis).ok(),
            _ => None,
        }
    }

    /// Returns the region that `rank` holds.
    pub fn rank_region(&self, mesh: Mesh, rank: usize) -> Region {
        let cuts: DividedAxes = (0..mesh.shape().len()).map(|m| self.sharded_axis(m)).collect();
        region_of_rank(mesh, &self.shape, &cuts, rank)
    }
}

/// For each mesh axis, the axis of a loop or array that the mesh axis divides. `None` if the mesh axis divides no axis, so that its ranks
/// do the same work.
pub(crate) type DividedAxes = SmallVec<[Option<usize>; 2]>;

/// Returns the region of `shape` that belongs to `rank`. If several mesh axes divide the same array axis, the ranks get its parts in C
/// order of their coordinates along these mesh axes.
pub(crate) fn region_of_rank(mesh: Mesh, shape: &[usize], cuts: &[Option<usize>], rank: usize) -> Region {
    let range = |(axis, &extent): (usize, &usize)| {
        let (index, count) = part_index_and_count(mesh, cuts, axis, rank);
        AxisBlocks::of(extent).owned_elements(index, count)
    };
    shape.iter().enumerate().map(range).collect()
}

/// Returns the index of the part that `rank` has along `axis`, and the number of parts into which the mesh divides `axis`.
pub(crate) fn part_index_and_count(mesh: Mesh, cuts: &[Option<usize>], axis: usize, rank: usize) -> (usize, usize) {
    let (mut index, mut count) = (0, 1);
    for (m, &extent) in mesh.shape().iter().enumerate() {
        if cuts.get(m) == Some(&Some(axis)) {
            index = index * extent + mesh.rank_coordinate(rank, m);
            count *= extent;
        }
    }
    (index, count)
}
