//! The assembly of an array on one device from the pieces that arrive in an exchange.

use cuprum_core::{DType, Item, NdArray, Result, StoredArray, Stream, assemble_from_parts, empty};

use crate::mesh::Mesh;
use crate::placement::{Region, region_extents};
use crate::sharded_buffer::zero_size_array;

/// An array on one device that is assembled from pieces.
///
/// A large array is written piece by piece, so that a piece is copied while later pieces are still travelling. A small array is written by
/// one operation after the last piece, because one operation per piece would take longer than the copies.
pub(crate) struct PieceAssembly {
    mesh: Mesh,
    /// Index of the rank among the ranks of this process.
    local: usize,
    dtype: DType,
    region: Region,
    is_written_piecewise: bool,
    /// Pieces of a small array, each with the indices of its first element. One operation writes them all at the end.
    parts: Vec<(NdArray, Vec<usize>)>,
    /// The array, some of whose elements may not be written yet.
    array: Option<NdArray>,
}

/// Minimum size in bytes of an array that is written piece by piece.
const MIN_PIECEWISE_BYTES: usize = 4 << 20;

impl PieceAssembly {
    /// Returns an assembly without pieces, for an array that covers `region` on the device of rank number `local` of this process.
    pub fn new(mesh: Mesh, local: usize, dtype: DType, region: Region) -> PieceAssembly {
        let device = mesh.local_devices()[local];
        let nbytes = region_extents(&region).iter().product::<usize>().saturating_mul(dtype.itemsize());
        // During a graph capture, each assignment to a part of an array copies the whole array. The array is then written by one operation.
        let is_written_piecewise =
            nbytes > mesh.engine().max_transfer_bytes().min(MIN_PIECEWISE_BYTES) && !Stream::current(device).is_capturing();
        PieceAssembly { mesh, local, dtype, region, is_written_piecewise, parts: Vec::new(), array: None }
    }

    /// Adds a piece that covers `region`. Pieces do not overlap.
    pub fn add_piece(&mut self, region: &Region, piece: NdArray) -> Result<()> {
        if *region == self.region {
            self.array = Some(piece);
            return Ok(());
        }
        let start = region.iter().zip(&self.region).map(|(range, whole)| range.start - whole.start);
        if !self.is_written_piecewise {
            self.parts.push((piece, start.collect()));
            return Ok(());
        }
        let items: Vec<Item> =
            start.zip(region).map(|(start, range)| Item::slice(Some(start as isize), Some((start + range.len()) as isize), 1)).collect();
        self.mesh.with_rank_device(self.local, || {
            let mut array = match self.array.take() {
                Some(array) => array,
                None => empty(&region_extents(&self.region)[..], self.dtype)?,
            };
            array.assign(&items[..], &piece)?;
            self.array = Some(array);
            Ok(())
        })
    }

    /// Returns the assembled array. If one piece covers the whole region, the result may be a strided view.
    pub fn into_array(self) -> Result<StoredArray> {
        let shape = region_extents(&self.region);
        match self.array {
            _ if shape.contains(&0) => zero_size_array(self.mesh.local_devices()[self.local], self.dtype, &shape),
            Some(array) => array.stored(),
            None => self.mesh.with_rank_device(self.local, || assemble_from_parts(&shape, &self.parts)?.stored()),
        }
    }
}
