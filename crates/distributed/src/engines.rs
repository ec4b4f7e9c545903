//! Engines: they move pieces of arrays between the ranks of a mesh.

mod library;
mod loopback;
mod tcp;

use std::sync::Arc;

use cuprum_core::layout::Dims;
use cuprum_core::{DType, Device, Error, NdArray, Result};

pub(crate) use library::LibraryEngine;
pub(crate) use loopback::Loopback;
pub(crate) use tcp::Tcp;

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

impl Transfer {
    /// Returns the size of the piece in bytes.
    pub fn nbytes(&self, dtype: DType) -> usize {
        self.shape.iter().product::<usize>().saturating_mul(dtype.itemsize())
    }
}

/// A function of the index of a transfer that a rank of this process sends. It returns the piece, a C-contiguous array on the rank's
/// device.
pub(crate) type Piece<'a> = &'a mut dyn FnMut(usize) -> Result<NdArray>;

/// Moves pieces of arrays between ranks.
pub(crate) trait Engine: Send + Sync {
    /// Returns the name that `explain` and error messages show.
    fn name(&self) -> &'static str;

    /// Returns why the mesh does not use a library of its devices. Returns `None` if it uses one, or if it has only one process.
    fn reason(&self) -> Option<&str> {
        None
    }

    /// Performs `transfers`. `members` are the devices of the ranks of this process. Returns each piece that a rank of this process
    /// receives, on the rank's device, with the index of its transfer.
    ///
    /// # Errors
    /// An error of a device, or of a process that does not answer or runs another program.
    fn exchange(&self, members: &[Device], dtype: DType, transfers: &[Transfer], piece: Piece) -> Result<Vec<(usize, NdArray)>>;

    /// Returns the error that has ended the mesh, if any.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Ends the mesh in all processes because of an error of this process.
    fn fail(&self, _error: &Error) {}

    /// Waits until all exchanges of this process are done.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns whether two engines count as equal when meshes are compared: they are the same object, or both are `loopback`.
pub(crate) fn is_same(a: &Arc<dyn Engine>, b: &Arc<dyn Engine>) -> bool {
    Arc::ptr_eq(a, b) || (a.name() == loopback::NAME && b.name() == loopback::NAME)
}
