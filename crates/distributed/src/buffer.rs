//! The buffer of an array on a mesh: one dense array per rank.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::device::{Buffer, driver};
use cuprum_core::layout::Dims;
use cuprum_core::{Array, DType, Device, Layout, Result, StoredArray, Stream};

use crate::mesh::Mesh;
use crate::placement::{Distribution, extents};

/// Memory of an array on a mesh. The bytes are those of a C-contiguous array of the distribution's shape, which the ranks hold by parts.
pub(crate) struct ShardedBuffer {
    pub mesh: Mesh,
    /// dtype of the parts. Arrays over the buffer may have another dtype, as a view of raw bytes does.
    pub dtype: DType,
    pub distribution: Distribution,
    /// The C-contiguous part of each rank of this process, from the start of its buffer.
    pub parts: Vec<StoredArray>,
}

impl ShardedBuffer {
    /// Returns the buffer of an array as a sharded buffer, if its device is a mesh.
    pub fn of(array: &StoredArray) -> Option<&ShardedBuffer> {
        array.buffer().as_any().downcast_ref()
    }

    /// Returns whether the buffer holds one part only, which all ranks share or copy, as if the array were on one device.
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
pub(crate) fn empty_part(device: Device, dtype: DType, shape: &[usize]) -> Result<StoredArray> {
    StoredArray::new(dtype, Layout::contiguous(shape)?, driver(device)?.allocate(0, Stream::current(device))?)
}

/// Returns the array of `layout` over parts on the ranks of this process.
///
/// The parts are C-contiguous from the start of their buffers, with the extents of their regions.
pub(crate) fn over_parts(
    mesh: Mesh,
    dtype: DType,
    layout: Layout,
    distribution: Distribution,
    parts: Vec<StoredArray>,
) -> Result<StoredArray> {
    let whole = |(part, rank): (StoredArray, usize)| {
        let shape = extents(&distribution.region(mesh, rank));
        StoredArray::new(part.dtype(), Layout::contiguous(&shape)?, part.buffer().clone())
    };
    let parts = parts.into_iter().zip(mesh.local_ranks()).map(whole).collect::<Result<Vec<_>>>()?;
    StoredArray::new(dtype, layout, Arc::new(ShardedBuffer { mesh, dtype, distribution, parts }))
}

/// Returns the array on the mesh that equals `leaders`, the arrays of the ranks that compute ([`Mesh::is_leader`]). `None` stands for other
/// ranks. The result has the layout of the leaders' arrays, which is the same for all.
pub(crate) fn replicated(mesh: Mesh, leaders: &[Option<StoredArray>]) -> Result<StoredArray> {
    let part = |local: usize| leaders.get(mesh.leader_of(local)).and_then(Option::as_ref);
    let first = part(0).ok_or_else(|| cuprum_core::Error::value("mesh", "no rank has computed the result"))?;
    let count = usize::try_from(first.layout().extent().1).unwrap_or(0);
    let shape: Dims = [count].into_iter().collect();
    let parts = (0..mesh.members().len()).map(|local| part(local).unwrap_or(first).clone()).collect();
    over_parts(mesh, first.dtype(), first.layout().clone(), Distribution::replicated(mesh, &shape), parts)
}

/// Returns the order of axes in memory, outermost first, of a layout without gaps.
pub(crate) fn memory_order(layout: &Layout) -> Dims {
    let mut order: Dims = (0..layout.ndim()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis].unsigned_abs()));
    order
}
