//! Methods of arrays on meshes.

use cuprum_core::{Array, Complex, Error, NdArray, Result, Scalar, StoredArray};
use smallvec::SmallVec;

use crate::mesh::Mesh;
use crate::placement::{ArrayDistribution, DividedAxes, PartialOp, Placement, Placements, check_placements};
use crate::redistribute::{redistribute, redistribute_view, resolve_pending_reductions_along, to_c_contiguous};
use crate::sharded_buffer::{ShardedBuffer, sharded_array_from_parts};
use crate::sharded_views::{ShardedView, divided_axes_of_view, fetch_local_parts};

/// Sharding of arrays, as methods of [`NdArray`].
pub trait ShardedArray: Sized {
    /// Returns the array distributed over `mesh`, with one placement per mesh axis. The array itself may be on any device.
    ///
    /// # Errors
    /// Returns an error if the number of placements differs from the number of mesh axes, if an axis is out of bounds, or if a device
    /// fails.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # mod cuprum { pub use cuprum_core::*; pub mod distributed { pub use cuprum_distributed::*; } }
    /// use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
    /// use cuprum::{Device, NdArray};
    /// # fn main() -> cuprum::Result<()> {
    /// let mesh = Mesh::loopback(2)?;
    /// let a = NdArray::from_vec([1.0, 2.0, 3.0, 4.0], [2, 2])?.shard(&mesh, [Shard(0)])?;
    /// assert_eq!(a.local_shards()?[1].to_vec::<f64>()?, [3.0, 4.0]);
    /// let columns = (&a * 2.0).sum(0)?; // one collective operation
    /// assert_eq!(columns.to_device(Device::CPU)?.to_vec::<f64>()?, [8.0, 12.0]);
    /// # Ok(())
    /// # }
    /// ```
    fn shard(&self, mesh: &Mesh, placements: impl AsRef<[Placement]>) -> Result<Self>;

    /// Returns the array with new placements on the mesh that holds it.
    ///
    /// A change from sharded to replicated is an all-gather, from partial to replicated an all-reduce, from partial to sharded a
    /// reduce-scatter. A change from one sharded axis to another is an all-to-all. A change from replicated to sharded needs no
    /// communication.
    ///
    /// # Errors
    /// Returns the errors of [`ShardedArray::shard`], and an error if the array is not on a mesh.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # mod cuprum { pub use cuprum_core::*; pub mod distributed { pub use cuprum_distributed::*; } }
    /// use cuprum::distributed::{Mesh, Placement::{Replicate, Shard}, ShardedArray};
    /// use cuprum::{DType, explain, ones};
    /// # fn main() -> cuprum::Result<()> {
    /// let mesh = Mesh::loopback(2)?;
    /// let a = ones([2, 4], DType::F32)?.shard(&mesh, [Shard(0)])?;
    /// let (b, calls) = explain(|| a.reshard([Shard(1)]));
    /// assert_eq!(b?.placements(), Some(vec![Shard(1)]));
    /// assert!(calls.iter().any(|call| call.op == "all_to_all" && call.bytes == 16));
    /// # Ok(())
    /// # }
    /// ```
    fn reshard(&self, placements: impl AsRef<[Placement]>) -> Result<Self>;

    /// Returns the placements of the array, or `None` if the array is not on a mesh.
    ///
    /// For a view, the axes are those of the view. If no axis of several elements of the view runs along an axis that a mesh axis divides,
    /// that mesh axis has the placement [`Placement::Replicate`]. A view that merges axes, or that has elements of another size, is divided
    /// along its axis with the largest stride. A deferred array is evaluated.
    fn placements(&self) -> Option<Vec<Placement>>;

    /// Returns the parts of the array that the ranks of this process hold, in the order of the ranks.
    ///
    /// # Errors
    /// Returns an error if the array is not on a mesh, or if the evaluation of a deferred array fails.
    fn local_shards(&self) -> Result<Vec<Self>>;
}

impl ShardedArray for NdArray {
    fn shard(&self, mesh: &Mesh, placements: impl AsRef<[Placement]>) -> Result<NdArray> {
        let placements = check_placements("shard", *mesh, placements.as_ref(), self.ndim())?;
        let array = if self.device() == mesh.device() { self.clone() } else { self.to_device(mesh.device())? };
        change_placements(&array, *mesh, &placements)
    }

    fn reshard(&self, placements: impl AsRef<[Placement]>) -> Result<NdArray> {
        let mesh = Mesh::of_device(self.device())?;
        let placements = check_placements("reshard", mesh, placements.as_ref(), self.ndim())?;
        change_placements(self, mesh, &placements)
    }

    fn placements(&self) -> Option<Vec<Placement>> {
        let stored = self.stored().ok()?;
        let buffer = ShardedBuffer::of(&stored)?;
        let placement = |(placement, cut): (&Placement, Option<usize>)| match placement {
            Placement::Partial(_) => *placement,
            _ => cut.map_or(Placement::Replicate, |axis| Placement::Shard(axis as isize)),
        };
        Some(buffer.distribution.placements.iter().zip(divided_axes(buffer.mesh, &stored)).map(placement).collect())
    }

    fn local_shards(&self) -> Result<Vec<NdArray>> {
        let mesh = Mesh::of_device(self.device())?;
        let stored = self.stored()?;
        let parts = match ShardedBuffer::of(&stored) {
            Some(buffer) if buffer.distribution.has_pending_reduction() && covers_whole_buffer(&stored) => buffer.parts.clone(),
            Some(buffer) if buffer.distribution.has_pending_reduction() => {
                fetch_local_parts(mesh, &treat_partial_as_replicated(&stored, buffer)?, &divided_axes(mesh, &stored))?
            }
            _ => fetch_local_parts(mesh, &stored, &divided_axes(mesh, &stored))?,
        };
        mesh.engine().wait_for_exchanges()?;
        Ok(parts.into_iter().map(NdArray::from).collect())
    }
}

/// Returns the axis of an array that each mesh axis divides, or `None` for a mesh axis that divides no axis of the array.
fn divided_axes(mesh: Mesh, stored: &StoredArray) -> DividedAxes {
    // A C-contiguous array with the shape of its buffer is divided along the same axes as the buffer. `divided_axes_of_view` would not
    // report divided axes of extent 1.
    let has_shape = |buffer: &&ShardedBuffer| buffer.distribution.shape[..] == *stored.shape() && stored.layout().is_c_contiguous();
    match ShardedBuffer::of(stored).filter(has_shape) {
        Some(buffer) => (0..mesh.shape().len()).map(|m| buffer.distribution.sharded_axis(m)).collect(),
        None => divided_axes_of_view(mesh, stored),
    }
}

/// Returns an array with pending reductions as an array that counts as replicated, although its elements differ between the ranks. The
/// elements are the values that the ranks have not combined yet.
fn treat_partial_as_replicated(stored: &StoredArray, buffer: &ShardedBuffer) -> Result<StoredArray> {
    let mut distribution = buffer.distribution.clone();
    for placement in &mut distribution.placements {
        if matches!(placement, Placement::Partial(_)) {
            *placement = Placement::Replicate;
        }
    }
    let layout = cuprum_core::Layout::contiguous(&distribution.shape)?;
    let replicated: Placements = distribution.placements.iter().map(|_| Placement::Replicate).collect();
    let parts = sharded_array_from_parts(buffer.mesh, buffer.dtype, layout, distribution, buffer.parts.clone())?;
    let whole = ShardedBuffer::of(&parts).map(|parts| redistribute(parts, &replicated)).transpose()?.unwrap_or(parts);
    StoredArray::new(stored.dtype(), stored.layout().clone(), whole.buffer().clone())
}

/// Returns the array with the given placements, which [`check_placements`] has checked.
fn change_placements(array: &NdArray, mesh: Mesh, placements: &Placements) -> Result<NdArray> {
    let is_pending = |p: &Placement| matches!(p, Placement::Partial(_));
    let settled: Placements = placements.iter().map(|p| if is_pending(p) { Placement::Replicate } else { *p }).collect();
    let stored = array.stored()?;
    if let Some(view) = ShardedView::of(&stored).filter(|_| !covers_whole_buffer(&stored)) {
        return add_partial_placements(mesh, redistribute_view(&view, &settled)?, placements);
    }
    let stored = with_own_contiguous_buffer(&stored, mesh)?;
    let Some(buffer) = ShardedBuffer::of(&stored) else {
        return Err(Error::Device { op: "reshard", message: format!("the array is on {}, not on a mesh", array.device()) });
    };
    if buffer.distribution.placements == *placements {
        return Ok(NdArray::from(stored));
    }
    // For a change from partial to sharded, each rank combines only the values of its own shard.
    let scattered = buffer.distribution.placements.iter().position(is_pending).and_then(|m| match placements[m] {
        Placement::Shard(axis) => usize::try_from(axis).ok(),
        _ => None,
    });
    let is_free = |axis: &usize| (0..placements.len()).all(|m| buffer.distribution.sharded_axis(m) != Some(*axis));
    let resolved = resolve_pending_reductions_along(buffer, scattered.filter(is_free))?;
    let source = resolved.as_ref().and_then(ShardedBuffer::of).unwrap_or(buffer);
    add_partial_placements(mesh, redistribute(source, &settled)?, placements)
}

/// Returns `settled`, an array without pending reductions, with the partial placements in `placements`. The other placements of `settled`
/// must equal those in `placements`.
fn add_partial_placements(mesh: Mesh, settled: StoredArray, placements: &Placements) -> Result<NdArray> {
    if !placements.iter().any(|p| matches!(p, Placement::Partial(_))) {
        return Ok(NdArray::from(settled));
    }
    // The first rank along a partial mesh axis keeps the values. The other ranks hold the identity element of the reduction.
    let Some(buffer) = ShardedBuffer::of(&settled) else { return Ok(NdArray::from(settled)) };
    let mut parts = Vec::new();
    for ((local, rank), part) in mesh.local_ranks().enumerate().zip(&buffer.parts) {
        let other = placements.iter().enumerate().find_map(|(m, p)| match p {
            Placement::Partial(op) if mesh.rank_coordinate(rank, m) > 0 => Some(*op),
            _ => None,
        });
        parts.push(match other {
            Some(op) => fill_with_identity_element(mesh, local, part, op)?,
            None => part.clone(),
        });
    }
    let distribution = ArrayDistribution { shape: buffer.distribution.shape.clone(), placements: placements.clone() };
    Ok(NdArray::from(sharded_array_from_parts(mesh, buffer.dtype, settled.layout().clone(), distribution, parts)?))
}

/// Returns an array with the shape and dtype of `part`, filled with the identity element of `op`. The identity element of a sum of floats
/// is -0.0, which keeps signed zeros.
fn fill_with_identity_element(mesh: Mesh, local: usize, part: &StoredArray, op: PartialOp) -> Result<StoredArray> {
    let dtype = part.dtype();
    let value = match op.reduction_op().reduction() {
        Some(_) if op == PartialOp::Sum && dtype.is_complex() => Scalar::Complex(Complex::new(-0.0, -0.0)),
        Some(_) if op == PartialOp::Sum && dtype.is_inexact() => Scalar::Float(-0.0),
        Some(reduction) => reduction.identity.of(dtype),
        None => return Err(Error::value("reshard", "the combination is not a reduction")),
    };
    mesh.with_rank_device(local, || cuprum_core::full(part.shape(), value, dtype)?.stored())
}

/// Returns whether an array on a mesh covers its whole buffer in C order, with the shape and dtype of the buffer.
fn covers_whole_buffer(stored: &StoredArray) -> bool {
    ShardedBuffer::of(stored).is_some_and(|buffer| {
        let is_whole = stored.layout().is_c_contiguous() && stored.layout().offset() == 0 && stored.dtype() == buffer.dtype;
        is_whole && buffer.distribution.shape[..] == *stored.shape()
    })
}

/// Returns `stored` as a C-contiguous array that covers a sharded buffer of the same shape. Copies the elements of a view. Returns an array
/// that is not on a mesh unchanged.
fn with_own_contiguous_buffer(stored: &StoredArray, mesh: Mesh) -> Result<StoredArray> {
    if ShardedBuffer::of(stored).is_none() || covers_whole_buffer(stored) {
        return Ok(stored.clone());
    }
    let cuts = divided_axes_of_view(mesh, stored);
    let parts = fetch_local_parts(mesh, stored, &cuts)?.iter().map(to_c_contiguous).collect::<Result<Vec<_>>>()?;
    let placements: SmallVec<[Placement; 2]> =
        cuts.iter().map(|cut| cut.map_or(Placement::Replicate, |axis| Placement::Shard(axis as isize))).collect();
    let layout = cuprum_core::Layout::contiguous(stored.shape())?;
    sharded_array_from_parts(mesh, stored.dtype(), layout, ArrayDistribution { shape: stored.shape().into(), placements }, parts)
}
