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

/// Returns the piece of a transfer that a rank of this process sends, a C-contiguous array on the rank's device.
pub(crate) type Piece<'a> = &'a mut dyn FnMut(usize) -> Result<NdArray>;

/// Moves pieces of arrays between ranks.
pub(crate) trait Engine: Send + Sync {
    /// Returns the name for `explain` and errors.
    fn name(&self) -> &'static str;

    /// Returns why no other engine is used, if that is not the user's choice of the mesh.
    fn reason(&self) -> Option<&str> {
        None
    }

    /// Performs transfers. `members` are the devices of the ranks of this process. Returns the pieces that ranks of this process receive,
    /// on the devices of the receivers, with the index of the transfer.
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

/// Returns whether two engines are one, or both copy within this process, so that equal meshes over them are one mesh.
pub(crate) fn is_same(a: &Arc<dyn Engine>, b: &Arc<dyn Engine>) -> bool {
    Arc::ptr_eq(a, b) || (a.name() == loopback::NAME && b.name() == loopback::NAME)
}
