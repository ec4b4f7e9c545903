//! Communication between ranks: fetches the region of an array that each rank needs, and combines values with a pending reduction.

use cuprum_core::layout::Dims;
use cuprum_core::{
    Array, DType, Device, Error, Item, Layout, NdArray, Program, Result, StoredArray, Stream, add, call, maximum, minimum, multiply,
    where_, with_device,
};
use cuprum_core::{Call, OutputSpec, StepKind, Work, dispatch, plan::reduce::ReducePlan};

use crate::mesh::Mesh;
use crate::piece_assembly::PieceAssembly;
use crate::piece_exchange::{Piece, exchange_pieces};
use crate::placement::{ArrayDistribution, PartialOp, Placement, Placements, Region, region_extents, region_intersection};
use crate::sharded_buffer::{ShardedBuffer, sharded_array_from_parts, zero_size_array};
use crate::sharded_views::ShardedView;

/// An array of which each rank holds a region: a sharded array, or a view of one.
struct RegionSource<'a> {
    mesh: Mesh,
    dtype: DType,
    /// Extents of the array.
    shape: &'a [usize],
    /// The distribution of the stored array.
    distribution: &'a ArrayDistribution,
    /// The regions of the array that the ranks hold, by rank.
    held: Vec<Region>,
    /// Returns a region that a rank of this process holds, as a view of the rank's part. The first argument is the index of the rank among
    /// the ranks of this process.
    view: &'a dyn Fn(usize, &Region) -> Result<NdArray>,
}

impl RegionSource<'_> {
    /// Returns the pieces from which each rank receives the region `wants[rank]`. The slots of the pieces are not yet set.
    fn pieces_to_move(&self, wants: &[Region]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (to, want) in wants.iter().enumerate() {
            for from in ranks_holding_one_copy(self.mesh, self.distribution, to) {
                if let Some(region) = region_intersection(want, &self.held[from]) {
                    pieces.push(Piece { from, to, region, slot: 0 });
                }
            }
        }
        pieces
    }

    fn exchange_into_assemblies(&self, wants: &[Region], pieces: Vec<Piece>, assemblies: Vec<PieceAssembly>) -> Result<Vec<StoredArray>> {
        let first_rank = self.mesh.local_ranks().start;
        let name = collective_name(self.mesh, self.shape, wants, &pieces);
        let max_piece_bytes = self.mesh.engine().max_transfer_bytes();
        let view = |piece: &Piece| (self.view)(piece.from - first_rank, &piece.region);
        exchange_pieces(self.mesh, name, self.dtype, pieces, max_piece_bytes, assemblies, &view)
    }

    /// Returns, for each rank of this process, the region `wanted(rank)` on the rank's device.
    fn fetch_regions(&self, wanted: &dyn Fn(usize) -> Region) -> Result<Vec<StoredArray>> {
        let mesh = self.mesh;
        let wants: Vec<Region> = (0..mesh.size()).map(wanted).collect();
        let mut pieces = self.pieces_to_move(&wants);
        pieces.iter_mut().for_each(|piece| piece.slot = piece.to.wrapping_sub(mesh.local_ranks().start));
        let assembly = |(local, rank): (usize, usize)| PieceAssembly::new(mesh, local, self.dtype, wants[rank].clone());
        let assemblies = mesh.local_ranks().enumerate().map(assembly).collect();
        self.exchange_into_assemblies(&wants, pieces, assemblies)
    }

    /// Returns, for each rank of this process, the region `wanted(rank)` on the rank's device, as separate parts from each rank that holds
    /// elements.
    fn fetch_region_parts(&self, wanted: &dyn Fn(usize) -> Region) -> Result<Vec<Vec<HeldRegion>>> {
        let mesh = self.mesh;
        let wants: Vec<Region> = (0..mesh.size()).map(wanted).collect();
        let mut pieces = self.pieces_to_move(&wants);
        let (mut assemblies, mut places) = (Vec::new(), Vec::new());
        for piece in pieces.iter_mut().filter(|piece| mesh.local_ranks().contains(&piece.to)) {
            let local = piece.to - mesh.local_ranks().start;
            piece.slot = assemblies.len();
            assemblies.push(PieceAssembly::new(mesh, local, self.dtype, piece.region.clone()));
            places.push((local, piece.region.clone()));
        }
        let mut parts: Vec<Vec<HeldRegion>> = mesh.local_ranks().map(|_| Vec::new()).collect();
        for (array, (local, region)) in self.exchange_into_assemblies(&wants, pieces, assemblies)?.into_iter().zip(places) {
            parts[local].push((NdArray::from(array), region));
        }
        Ok(parts)
    }
}

/// Calls `f` with a sharded array as a [`RegionSource`].
fn with_region_source<R>(buffer: &ShardedBuffer, f: impl FnOnce(&RegionSource) -> R) -> R {
    let (mesh, distribution) = (buffer.mesh, &buffer.distribution);
    let held: Vec<Region> = (0..mesh.size()).map(|rank| distribution.rank_region(mesh, rank)).collect();
    let first_rank = mesh.local_ranks().start;
    let view = |local: usize, region: &Region| view_of_region(buffer, local, &distribution.rank_region(mesh, first_rank + local), region);
    f(&RegionSource { mesh, dtype: buffer.dtype, shape: &distribution.shape, distribution, held, view: &view })
}

/// Returns, for each rank of this process, the region `wanted(rank)` of the array on the rank's device. The returned array may be a strided
/// view of the rank's own part.
///
/// All processes of the mesh must call this function with the same arguments. The array must not have a pending reduction.
pub(crate) fn fetch_regions(buffer: &ShardedBuffer, wanted: &dyn Fn(usize) -> Region) -> Result<Vec<StoredArray>> {
    with_region_source(buffer, |source| source.fetch_regions(wanted))
}

/// An array on one device, and the region of the sharded array that it holds.
pub(crate) type HeldRegion = (NdArray, Region);

/// Returns, for each rank of this process, the region `wanted(rank)` as separate parts from each rank that holds elements. Empty parts are
/// omitted. The conditions of [`fetch_regions`] apply.
pub(crate) fn fetch_region_parts(buffer: &ShardedBuffer, wanted: &dyn Fn(usize) -> Region) -> Result<Vec<Vec<HeldRegion>>> {
    with_region_source(buffer, |source| source.fetch_region_parts(wanted))
}

/// Returns the ranks whose parts together form one copy of the array. Along mesh axes that do not divide the array, these ranks have the
/// coordinates of `rank`.
fn ranks_holding_one_copy(mesh: Mesh, distribution: &ArrayDistribution, rank: usize) -> Vec<usize> {
    let is_alike = |other: &usize| {
        (0..mesh.shape().len())
            .all(|m| distribution.sharded_axis(m).is_some() || mesh.rank_coordinate(*other, m) == mesh.rank_coordinate(rank, m))
    };
    (0..mesh.size()).filter(is_alike).collect()
}

/// Returns the elements of `region` as a view of the part of rank number `local` of this process. The part covers the region `held` of the
/// whole array.
fn view_of_region(buffer: &ShardedBuffer, local: usize, held: &Region, region: &Region) -> Result<NdArray> {
    let item = |(held, range): (&std::ops::Range<usize>, &std::ops::Range<usize>)| {
        Item::slice(Some((range.start - held.start) as isize), Some((range.end - held.start) as isize), 1)
    };
    let items: Vec<Item> = held.iter().zip(region).map(item).collect();
    let part = NdArray::from(buffer.parts[local].clone());
    if held == region { Ok(part) } else { part.index(&items[..]) }
}

/// Returns the name under which an exchange of `pieces` is recorded: `all_gather`, `halo_exchange` or `all_to_all`.
fn collective_name(mesh: Mesh, shape: &[usize], wants: &[Region], pieces: &[Piece]) -> &'static str {
    let is_whole = |want: &Region| region_extents(want)[..] == *shape;
    if wants.iter().filter(|want| !region_extents(want).contains(&0)).all(is_whole) {
        return "all_gather";
    }
    // An exchange counts as a halo exchange if it moves few elements, and only between ranks that are adjacent along one mesh axis.
    let sent = || pieces.iter().filter(|piece| piece.from != piece.to);
    let are_neighbours = |piece: &Piece| {
        (0..mesh.shape().len()).map(|m| mesh.rank_coordinate(piece.from, m).abs_diff(mesh.rank_coordinate(piece.to, m))).sum::<usize>() == 1
    };
    let moved: usize = sent().map(|piece| region_extents(&piece.region).iter().product::<usize>()).sum();
    let size: usize = shape.iter().product();
    if sent().all(are_neighbours) && moved.saturating_mul(4) <= size { "halo_exchange" } else { "all_to_all" }
}

/// Returns, for each rank of this process, the whole array if the rank computes replicated results ([`Mesh::is_device_leader`]), or `None`.
/// The arrays are 1-D, in the order of the buffer's elements.
pub(crate) fn gather_on_leaders(buffer: &ShardedBuffer) -> Result<Vec<Option<StoredArray>>> {
    let mesh = buffer.mesh;
    let whole = |rank: usize| -> Region {
        buffer.distribution.shape.iter().map(|&n| if mesh.is_device_leader(rank) { 0..n } else { 0..0 }).collect()
    };
    let flat = |(array, rank): (StoredArray, usize)| {
        if !mesh.is_device_leader(rank) {
            return Ok(None);
        }
        array.with_layout(Layout::contiguous(&[buffer.size()])?).map(Some)
    };
    let resolved = resolve_pending_reductions(buffer)?;
    let source = resolved.as_ref().and_then(ShardedBuffer::of).unwrap_or(buffer);
    if source.distribution.shape.is_empty() || source.is_replicated() {
        return source.parts.iter().cloned().zip(mesh.local_ranks()).map(flat).collect();
    }
    fetch_regions(source, &whole)?.into_iter().zip(mesh.local_ranks()).map(flat).collect()
}

/// Returns the arrays of all ranks, one after the other, on the host. Each rank's array has `length` elements.
pub(crate) fn all_gather(mesh: Mesh, dtype: DType, length: usize, parts: Vec<StoredArray>) -> Result<NdArray> {
    let shape = [mesh.size(), length];
    let distribution = ArrayDistribution {
        shape: shape.into_iter().collect(),
        placements: Placements::from_elem(Placement::Shard(0), mesh.shape().len()),
    };
    let array = sharded_array_from_parts(mesh, dtype, Layout::contiguous(&shape)?, distribution, parts)?;
    let Some(buffer) = ShardedBuffer::of(&array) else { return Err(Error::value("mesh", "an array is not on a mesh")) };
    let whole = gather_on_leaders(buffer)?.into_iter().flatten().next();
    let whole = whole.ok_or_else(|| Error::value("mesh", "no rank holds the whole array"))?;
    NdArray::from(whole).to_device(Device::CPU)
}

/// Combines the values of the ranks if a reduction is pending: every rank receives all values and combines them in the order of the ranks.
/// Returns `None` if no reduction is pending.
pub(crate) fn resolve_pending_reductions(buffer: &ShardedBuffer) -> Result<Option<StoredArray>> {
    resolve_pending_reductions_along(buffer, None)
}

/// Combines the values of the ranks along the first mesh axis with a pending reduction ([`Placement::Partial`]), in the order of the ranks.
/// If `axis` is an axis of the stored array, the result is divided along this axis: each rank receives and combines only the values of its
/// part. If `axis` is `None`, every rank combines all values. Returns `None` if no reduction is pending.
pub(crate) fn resolve_pending_reductions_along(buffer: &ShardedBuffer, axis: Option<usize>) -> Result<Option<StoredArray>> {
    let mesh = buffer.mesh;
    let Some((mesh_axis, op)) = buffer.distribution.placements.iter().enumerate().find_map(|(m, p)| match p {
        Placement::Partial(op) => Some((m, *op)),
        _ => None,
    }) else {
        return Ok(None);
    };
    let ranks = mesh.shape()[mesh_axis];
    // The values of the ranks are stacked along a new first axis. The partial mesh axis divides this new axis into one element per rank.
    let mut distribution = buffer.distribution.clone();
    distribution.shape.insert(0, ranks);
    for placement in &mut distribution.placements {
        if let Placement::Shard(axis) = placement {
            *axis += 1;
        }
    }
    distribution.placements[mesh_axis] = Placement::Shard(0);
    let layout = Layout::contiguous(&distribution.shape)?;
    let stacked = sharded_array_from_parts(mesh, buffer.dtype, layout, distribution.clone(), buffer.parts.clone())?;
    let mut combined = buffer.distribution.clone();
    let place = |shift: usize| axis.map_or(Placement::Replicate, |axis| Placement::Shard((axis + shift) as isize));
    combined.placements[mesh_axis] = place(0);
    distribution.placements[mesh_axis] = place(1);
    let Some(stacked) = ShardedBuffer::of(&stacked) else { return Ok(None) };
    let wanted = |rank: usize| distribution.rank_region(mesh, rank);
    let parts = fetch_region_parts(stacked, &wanted)?.into_iter().zip(mesh.local_ranks().enumerate());
    let combined_part = |(values, (local, rank))| combine_in_rank_order(mesh, local, values, op, buffer.dtype, &wanted(rank));
    let parts = parts.map(combined_part).collect::<Result<Vec<_>>>()?;
    let layout = Layout::contiguous(&combined.shape)?;
    let result = sharded_array_from_parts(mesh, buffer.dtype, layout, combined, parts)?;
    let again = ShardedBuffer::of(&result).map(resolve_pending_reductions).transpose()?.flatten();
    Ok(Some(again.unwrap_or(result)))
}

/// Maximum number of ranks whose values are combined in one fused elementwise loop. The loop reads the values where they were received, and
/// takes an eighth of the time of a reduction over a stacked first axis of two elements.
const MAX_RANKS_PER_COMBINING_LOOP: usize = 8;

/// Combines the values of several ranks in the order of the ranks, on the device of rank number `local` of this process. Each value is a
/// region of an array whose first axis numbers the ranks; `region` contains all these regions. Returns an array without that axis.
///
/// Sums and products of 16-bit floats are computed in float32 and rounded once.
fn combine_in_rank_order(
    mesh: Mesh,
    local: usize,
    mut values: Vec<HeldRegion>,
    op: PartialOp,
    dtype: DType,
    region: &Region,
) -> Result<StoredArray> {
    let shape = region_extents(&region[1..]);
    let is_arithmetic = matches!(op, PartialOp::Sum | PartialOp::Prod);
    let accumulator = if is_arithmetic && dtype.is_inexact() && dtype.itemsize() == 2 { DType::F32 } else { dtype };
    values.sort_by_key(|(_, region)| region[0].start);
    mesh.with_rank_device(local, || {
        let mut values = values.into_iter().map(|(value, _)| value.reshape(&shape[..])?.astype(accumulator)).enumerate();
        let Some((_, first)) = values.next() else { return zero_size_array(mesh.local_devices()[local], dtype, &shape) };
        let combined = values.try_fold(first?, |left, (rank, right)| {
            let combined = combine_values_of_two_ranks(op, left, right?)?;
            if rank % MAX_RANKS_PER_COMBINING_LOOP == 0 {
                combined.eval()?;
            }
            Ok(combined)
        })?;
        to_c_contiguous(&combined.astype(dtype)?.stored()?)
    })
}

/// Returns the elementwise combination of the values of two ranks.
fn combine_values_of_two_ranks(op: PartialOp, left: NdArray, right: NdArray) -> Result<NdArray> {
    match op {
        PartialOp::Sum => add(left, right),
        // Multiplying a complex number by the identity element 1+0j would turn infinities into NaN.
        PartialOp::Prod if left.dtype().is_complex() => where_(right.equal(1)?, &left, multiply(&left, right)?),
        PartialOp::Prod => multiply(left, right),
        PartialOp::Min => minimum(left, right),
        PartialOp::Max => maximum(left, right),
    }
}

/// Reduces one axis of an array by `op` in one call. The order of combination depends only on the shape. The result has the dtype `out`.
pub(crate) fn reduce_one_axis(op: cuprum_core::Op, values: &StoredArray, axis: usize, out: DType) -> Result<StoredArray> {
    let (device, dtype) = (values.device(), values.dtype());
    let reduction = op.reduction().ok_or_else(|| Error::value(op.name(), "the operation is not a reduction"))?;
    let mut program = Program::identity(dtype);
    let acc = reduction.accumulator.of(dtype);
    if acc != dtype && acc.kind() == dtype.kind() {
        let wide = program.push_step(StepKind::Cast, acc, &[0]);
        program.outputs[0] = wide;
    }
    let value = program.output_dtype(0);
    let plan = ReducePlan::new(values.shape(), &[values.layout()], &[axis], reduction.returns_index);
    let mut shape = Dims::from_slice(values.shape());
    shape.remove(axis);
    let outputs = [OutputSpec::contiguous(value, &shape)?];
    let work = Work::Reduce(call::Reduce { program: &program, reduction, axes: &[axis], plan: &plan, acc });
    let inputs = std::slice::from_ref(values);
    let done =
        with_device(device, || dispatch::run_call(&Call { op, device, stream: Stream::current(device), inputs, outputs: &outputs, work }))?;
    let result = done.into_iter().next().ok_or_else(|| Error::value(op.name(), "the kernel returned no output"))?;
    if result.dtype() == out { Ok(result) } else { NdArray::from(result).astype(out)?.stored() }
}

/// Returns the same array with the given placements, none of which may be partial.
pub(crate) fn redistribute(buffer: &ShardedBuffer, placements: &Placements) -> Result<StoredArray> {
    let mesh = buffer.mesh;
    let resolved = resolve_pending_reductions(buffer)?;
    let source = resolved.as_ref().and_then(ShardedBuffer::of).unwrap_or(buffer);
    let distribution = ArrayDistribution { shape: source.distribution.shape.clone(), placements: placements.clone() };
    let layout = Layout::contiguous(&distribution.shape)?;
    let fetched = fetch_regions(source, &|rank| distribution.rank_region(mesh, rank))?;
    let parts = fetched.into_iter().map(|part| to_c_contiguous(&part)).collect::<Result<Vec<_>>>()?;
    sharded_array_from_parts(mesh, source.dtype, layout, distribution, parts)
}

/// Returns a view of a sharded array as an array with the given placements, none of which may be partial. Each rank copies the elements
/// that it sends or keeps directly from its part.
pub(crate) fn redistribute_view(view: &ShardedView, placements: &Placements) -> Result<StoredArray> {
    let (array, buffer) = (view.array, view.buffer);
    let mesh = buffer.mesh;
    let local_view = |local: usize, region: &Region| view.local_region_view(local, region);
    let source = RegionSource {
        mesh,
        dtype: array.dtype(),
        shape: array.shape(),
        distribution: &buffer.distribution,
        held: view.held.clone(),
        view: &local_view,
    };
    let distribution = ArrayDistribution { shape: array.shape().into(), placements: placements.clone() };
    let parts =
        source.fetch_regions(&|rank| distribution.rank_region(mesh, rank))?.iter().map(to_c_contiguous).collect::<Result<Vec<_>>>()?;
    sharded_array_from_parts(mesh, array.dtype(), Layout::contiguous(array.shape())?, distribution, parts)
}

/// Returns `array` as a C-contiguous array at offset 0 of its buffer. Copies the elements if necessary.
pub(crate) fn to_c_contiguous(array: &StoredArray) -> Result<StoredArray> {
    if array.layout().is_c_contiguous() && array.layout().offset() == 0 {
        return Ok(array.clone());
    }
    with_device(array.device(), || NdArray::from(array.clone()).copy()?.stored())
}
