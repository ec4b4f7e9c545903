//! The buffer of an array on a mesh: one dense array per rank.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::device::{Buffer, driver};
use cuprum_core::layout::Dims;
use cuprum_core::{Array, DType, Device, Layout, Result, StoredArray, Stream};

use crate::mesh::Mesh;
use crate::placement::{ArrayDistribution, region_extents};

/// The memory of an array on a mesh, of which each rank holds one part. Byte offsets refer to the whole array in C order, with the shape of
/// `distribution`.
pub(crate) struct ShardedBuffer {
    pub mesh: Mesh,
    /// dtype of the elements in `parts`. An array over this buffer may have another dtype, such as a view of the raw bytes.
    pub dtype: DType,
    pub distribution: ArrayDistribution,
    /// One C-contiguous part per rank of this process. Each part starts at offset 0 of its own buffer.
    pub parts: Vec<StoredArray>,
}

impl ShardedBuffer {
    /// Returns the buffer of `array` as a sharded buffer, or `None` if the array is not on a mesh.
    pub fn of(array: &StoredArray) -> Option<&ShardedBuffer> {
        array.buffer().as_any().downcast_ref()
    }

    /// Returns whether every rank holds the whole array.
    pub fn is_replicated(&self) -> bool {
        self.distribution.is_replicated()
    }

    /// Returns the number of elements of the whole array.
    pub fn size(&self) -> usize {
        self.distribution.shape.iter().product()
    }
}

impl Buffer for ShardedBuffer {
    fn device(&self) -> Device {
        self.mesh.device()
    }
    fn nbytes(&self) -> usize {
        self.size().saturating_mul(self.dtype.itemsize())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Returns an array without elements on `device`.
pub(crate) fn zero_size_array(device: Device, dtype: DType, shape: &[usize]) -> Result<StoredArray> {
    StoredArray::new(dtype, Layout::contiguous(shape)?, driver(device)?.allocate(0, Stream::current(device))?)
}

/// Returns an array with the given layout whose memory consists of `parts`, one for each rank of this process.
///
/// The buffer of a part starts with the elements of the rank's region, as `distribution` defines it, in C order. These elements have the
/// dtype `dtype`, also if the part is given as an array of another dtype.
pub(crate) fn sharded_array_from_parts(
    mesh: Mesh,
    dtype: DType,
    layout: Layout,
    distribution: ArrayDistribution,
    parts: Vec<StoredArray>,
) -> Result<StoredArray> {
    let whole = |(part, rank): (StoredArray, usize)| {
        let shape = region_extents(&distribution.rank_region(mesh, rank));
        StoredArray::new(dtype, Layout::contiguous(&shape)?, part.buffer().clone())
    };
    let parts = parts.into_iter().zip(mesh.local_ranks()).map(whole).collect::<Result<Vec<_>>>()?;
    StoredArray::new(dtype, layout, Arc::new(ShardedBuffer { mesh, dtype, distribution, parts }))
}

/// Returns a replicated array on the mesh. `leaders` has an element for each rank of this process: the array of a rank that computes
/// replicated results ([`Mesh::is_device_leader`]), and `None` for other ranks. All these arrays have the same layout, which is also the
/// layout of the result.
pub(crate) fn replicated_array_from_leaders(mesh: Mesh, leaders: &[Option<StoredArray>]) -> Result<StoredArray> {
    let part = |local: usize| leaders.get(mesh.device_leader_of(local)).and_then(Option::as_ref);
    let first = part(0).ok_or_else(|| cuprum_core::Error::value("mesh", "no rank has computed the result"))?;
    let count = usize::try_from(first.layout().buffer_range().1).unwrap_or(0);
    let shape: Dims = [count].into_iter().collect();
    let parts = (0..mesh.local_devices().len()).map(|local| part(local).unwrap_or(first).clone()).collect();
    sharded_array_from_parts(mesh, first.dtype(), first.layout().clone(), ArrayDistribution::new_replicated(mesh, &shape), parts)
}

/// Returns the axes of a layout without gaps in memory order, outermost first.
pub(crate) fn axes_in_memory_order(layout: &Layout) -> Dims {
    let mut order: Dims = (0..layout.ndim()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis].unsigned_abs()));
    order
}
