//! Engines: they move pieces of arrays between the ranks of a mesh.

mod loopback;

use cuprum_core::layout::Dims;
use cuprum_core::{DType, Device, NdArray, Result};

pub(crate) use loopback::Loopback;

/// A piece that one rank sends to another. All ranks know all transfers of an exchange, since they follow from shapes and placements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The sending rank.
    pub from: usize,
    /// The receiving rank, which differs from the sender.
    pub to: usize,
    /// Extents of the piece.
    pub shape: Dims,
}

/// Moves pieces of arrays between ranks.
pub(crate) trait Engine: Send + Sync {
    /// Returns the name for `explain` and errors.
    fn name(&self) -> &'static str;

    /// Returns whether equal meshes may share one engine.
    fn is_shared(&self) -> bool;

    /// Performs transfers. `members` are the devices of the ranks of this process. `piece` returns the piece of a transfer that a rank of this process sends, a C-contiguous array on the rank's
    /// device. Returns the pieces that ranks of this process receive, on the devices of the receivers, with the index of the transfer.
    ///
    /// # Errors
    /// An error of a device, or of a process that does not answer or runs another program.
    fn exchange(
        &self,
        members: &[Device],
        dtype: DType,
        transfers: &[Transfer],
        piece: &mut dyn FnMut(usize) -> Result<NdArray>,
    ) -> Result<Vec<(usize, NdArray)>>;
}
