//! Exchanges: pieces of arrays move between ranks, and are assembled into arrays in the order in which they arrive.

use cuprum_core::dispatch::record_launch;
use cuprum_core::{CallRecord, DType, Family, KernelLaunch, NdArray, Result, StoredArray, Stream};

use crate::engines::{PieceEndpoint, Transfer};
use crate::mesh::Mesh;
use crate::piece_assembly::PieceAssembly;
use crate::placement::{Region, region_extents};

/// A region of an array that rank `from` holds and rank `to` needs. `from` and `to` may be the same rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub from: usize,
    pub to: usize,
    /// The region of the receiver's array that the piece covers.
    pub region: Region,
    /// Index of the receiver's array in `assemblies`, the arrays that this process assembles. Not used if the receiver belongs to another
    /// process.
    pub slot: usize,
}

/// Moves `pieces` to their receivers, and returns the assembled arrays. `view` returns the elements of a piece that a rank of this process
/// holds, on the rank's device. `name` is the name under which the exchange is recorded. Pieces of more than `max_piece_bytes` bytes are
/// divided, so that a receiver copies one part to its destination while the next part travels.
///
/// All processes of the mesh must call this function with the same pieces and limit.
pub(crate) fn exchange_pieces(
    mesh: Mesh,
    name: &'static str,
    dtype: DType,
    pieces: Vec<Piece>,
    max_piece_bytes: usize,
    assemblies: Vec<PieceAssembly>,
    view: &dyn Fn(&Piece) -> Result<NdArray>,
) -> Result<Vec<StoredArray>> {
    let (own, sent): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().partition(|piece| piece.from == piece.to);
    let own = own.into_iter().filter(|piece| mesh.local_ranks().contains(&piece.to)).collect();
    let sent = split_pieces(sent, max_piece_bytes / dtype.itemsize());
    let transfers: Vec<Transfer> = sent.iter().map(|p| Transfer { from: p.from, to: p.to, shape: region_extents(&p.region) }).collect();
    let mut local = LocalPieces { own, sent, assemblies, view };
    if transfers.is_empty() {
        local.on_all_sent()?;
    } else {
        record_collective(mesh, name, dtype, &transfers, || {
            mesh.engine().perform_transfers(mesh.local_devices(), dtype, &transfers, &mut local)
        })?;
    }
    local.assemblies.into_iter().map(PieceAssembly::into_array).collect()
}

/// The pieces that ranks of this process send, keep and receive in an exchange, and the arrays that are assembled from them.
struct LocalPieces<'a> {
    /// Pieces that a rank of this process both holds and needs. They are added to the rank's array without a transfer.
    own: Vec<Piece>,
    /// Pieces that are sent from one rank to another. The piece with index `n` is the content of transfer `n`.
    sent: Vec<Piece>,
    assemblies: Vec<PieceAssembly>,
    view: &'a dyn Fn(&Piece) -> Result<NdArray>,
}

impl PieceEndpoint for LocalPieces<'_> {
    fn piece_to_send(&mut self, transfer: usize) -> Result<NdArray> {
        (self.view)(&self.sent[transfer])
    }

    fn on_all_sent(&mut self) -> Result<()> {
        self.own.iter().try_for_each(|piece| self.assemblies[piece.slot].add_piece(&piece.region, (self.view)(piece)?))
    }

    fn on_received(&mut self, transfer: usize, array: NdArray) -> Result<()> {
        let piece = &self.sent[transfer];
        self.assemblies[piece.slot].add_piece(&piece.region, array)
    }
}

/// Divides pieces of more than `limit` elements. The first parts of all pieces precede the second parts, so that all ranks send and
/// receive from the start.
fn split_pieces(pieces: Vec<Piece>, limit: usize) -> Vec<Piece> {
    let mut parts: Vec<(usize, Piece)> = Vec::new();
    for piece in pieces {
        let part = |(n, region): (usize, Region)| (n, Piece { region, ..piece });
        parts.extend(split_region(&piece.region, limit.max(1)).into_iter().enumerate().map(part));
    }
    parts.sort_by_key(|(n, _)| *n);
    parts.into_iter().map(|(_, piece)| piece).collect()
}

/// Divides a region into regions of at most `limit` elements, in C order. Elements of each region are adjacent in a C-contiguous array of
/// the extents of `region`.
fn split_region(region: &Region, limit: usize) -> Vec<Region> {
    let mut regions = Vec::new();
    push_split_region(region.clone(), 0, limit, &mut regions);
    regions
}

/// Appends `region`, divided into parts of at most `limit` elements, to `regions`. `region` has extent 1 along the axes before `axis`.
fn push_split_region(region: Region, axis: usize, limit: usize, regions: &mut Vec<Region>) {
    let inner = region.iter().skip(axis + 1).fold(1, |size: usize, range| size.saturating_mul(range.len()));
    if axis == region.len() || inner.saturating_mul(region[axis].len()) <= limit {
        regions.push(region);
        return;
    }
    for start in region[axis].clone().step_by((limit / inner).max(1)) {
        let mut part = region.clone();
        part[axis] = start..start.saturating_add((limit / inner).max(1)).min(region[axis].end);
        push_split_region(part, axis + 1, limit.max(1), regions);
    }
}

/// Records a collective operation for [`explain`](cuprum_core::explain) and the trace. The record states the total size of all transfers,
/// in bytes.
fn record_collective<R>(
    mesh: Mesh,
    name: &'static str,
    dtype: DType,
    transfers: &[Transfer],
    work: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let describe = || {
        let launch = KernelLaunch { kernel: String::new(), grid: [0; 3], block: [0; 3] };
        let bytes: usize = transfers.iter().map(|t| t.nbytes(dtype)).sum();
        CallRecord {
            family: Family::Copy,
            options: format!("{bytes} bytes in {} transfers", transfers.len()),
            bytes,
            launch: None,
            ..CallRecord::from_kernel_launch(name, mesh.engine_name(), mesh.device(), launch, std::iter::empty())
        }
    };
    record_launch(Stream::default_of(mesh.device()), describe, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_divided_in_c_order() {
        let split = |region: &[std::ops::Range<usize>], limit| split_region(&region.iter().cloned().collect(), limit);
        let regions = |of: &[&[std::ops::Range<usize>]]| of.iter().map(|r| r.iter().cloned().collect()).collect::<Vec<Region>>();
        assert_eq!(split(&[2..5, 1..4], 9), regions(&[&[2..5, 1..4]]));
        assert_eq!(split(&[2..5, 1..4], 7), regions(&[&[2..4, 1..4], &[4..5, 1..4]]));
        assert_eq!(split(&[2..4, 1..4], 2), regions(&[&[2..3, 1..3], &[2..3, 3..4], &[3..4, 1..3], &[3..4, 3..4]]));
        assert_eq!(split(&[], 1), regions(&[&[]]));
    }

    #[test]
    fn parts_of_all_pieces_alternate() {
        let piece =
            |from: usize, region: std::ops::Range<usize>| Piece { from, to: 1 - from, region: std::iter::once(region).collect(), slot: 0 };
        let parts = split_pieces(vec![piece(0, 0..5), piece(1, 5..8)], 2);
        assert_eq!(parts, [piece(0, 0..2), piece(1, 5..7), piece(0, 2..4), piece(1, 7..8), piece(0, 4..5)]);
    }
}
