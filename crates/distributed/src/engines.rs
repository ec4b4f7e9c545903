//! Communication engines, which move pieces of arrays between the ranks of a mesh.

mod library_engine;
mod loopback_engine;
mod tcp_engine;

use std::sync::Arc;

use cuprum_core::layout::Dims;
use cuprum_core::{DType, Device, Error, NdArray, Result};

pub(crate) use library_engine::LibraryEngine;
pub(crate) use loopback_engine::LoopbackEngine;
pub(crate) use tcp_engine::TcpEngine;

/// A piece of an array that one rank sends to another rank. All ranks know all transfers of an exchange, since these follow from shapes and
/// placements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The sending rank.
    pub from: usize,
    /// The receiving rank, which differs from the sender.
    pub to: usize,
    /// Extents of the piece.
    pub shape: Dims,
}

impl Transfer {
    /// Returns the size of the piece in bytes.
    pub fn nbytes(&self, dtype: DType) -> usize {
        self.shape.iter().product::<usize>().saturating_mul(dtype.itemsize())
    }
}

/// The source of the pieces that ranks of this process send in an exchange, and the destination of the pieces that these ranks receive.
pub(crate) trait PieceEndpoint {
    /// Returns the piece that a rank of this process sends in transfer number `transfer`. The piece is an array on the rank's device,
    /// perhaps a strided view.
    fn piece_to_send(&mut self, transfer: usize) -> Result<NdArray>;

    /// Called when all pieces are sent or queued, before the first call of [`PieceEndpoint::on_received`].
    fn on_all_sent(&mut self) -> Result<()>;

    /// Takes the piece that a rank of this process has received in transfer number `transfer`. `array` is on the rank's device.
    fn on_received(&mut self, transfer: usize, array: NdArray) -> Result<()>;
}

/// A communication engine: moves pieces of arrays between ranks.
pub(crate) trait Engine: Send + Sync {
    /// Returns the name that `explain` and error messages show.
    fn name(&self) -> &'static str;

    /// Returns why the mesh uses no communication library of its devices, such as NCCL. Returns `None` if the mesh uses such a library or
    /// has only one process.
    fn no_library_reason(&self) -> Option<&str> {
        None
    }

    /// Returns the preferred maximum size of a transfer in bytes. The value is equal in all processes of a mesh.
    ///
    /// Pieces that become part of a larger array are divided, so that a receiver copies one part to its destination while the next part
    /// travels.
    fn max_transfer_bytes(&self) -> usize {
        usize::MAX
    }

    /// Performs `transfers`. `members` are the devices of the ranks of this process. Passes each piece that a rank of this process receives
    /// to `pieces`, as soon as the piece has arrived or is queued on the device.
    ///
    /// # Errors
    /// Returns an error if a device or a function of `pieces` fails, or if another process does not answer or runs another program.
    fn perform_transfers(&self, members: &[Device], dtype: DType, transfers: &[Transfer], pieces: &mut dyn PieceEndpoint) -> Result<()>;

    /// Returns the first failure of the mesh as an error. Returns `Ok` if the mesh has not failed.
    fn check_for_failure(&self) -> Result<()> {
        Ok(())
    }

    /// Marks the mesh as failed in all processes because of an error in this process.
    fn fail_mesh(&self, _error: &Error) {}

    /// Waits until all exchanges of this process are done.
    fn wait_for_exchanges(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns whether two engines count as equal when meshes are compared: they are the same object, or both are `loopback`.
pub(crate) fn engines_count_as_equal(a: &Arc<dyn Engine>, b: &Arc<dyn Engine>) -> bool {
    Arc::ptr_eq(a, b) || (a.name() == loopback_engine::LOOPBACK_ENGINE_NAME && b.name() == loopback_engine::LOOPBACK_ENGINE_NAME)
}
