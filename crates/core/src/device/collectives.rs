//! Libraries that move data between devices of one kind in several processes, such as NCCL.

use std::sync::Arc;

use super::device_memory::Buffer;
use crate::error::Result;
use crate::types::device::Device;

/// A range of a buffer that one rank sends to another.
pub struct SentPiece {
    /// The receiving rank.
    pub to: usize,
    /// Buffer on the device of the sending rank.
    pub buffer: Arc<dyn Buffer>,
    /// Start of the sent range in the buffer, in bytes.
    pub byte_offset: usize,
    /// Size of the range in bytes, at least 1.
    pub nbytes: usize,
}

/// A range of bytes that one rank receives from another.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPiece {
    /// The sending rank.
    pub from: usize,
    /// Size in bytes, at least 1.
    pub nbytes: usize,
}

/// Arguments for a new [`Communicator`]: its group, its rank in the group, and its device.
#[derive(Clone, Copy, Debug)]
pub struct CommunicatorArguments<'a> {
    /// The group's identifier. One rank creates it by [`CollectiveLibrary::new_group_id`] and sends it to the others.
    pub id: &'a [u8],
    /// Number of ranks in the group.
    pub size: usize,
    /// The rank of this process.
    pub rank: usize,
    /// The device of this rank.
    pub device: Device,
}

/// A function that a [`CollectiveLibrary`] calls repeatedly while it waits for other processes. An error ends the wait.
pub type KeepWaiting<'a> = &'a mut dyn FnMut() -> Result<()>;

/// The connection of one device to the devices of the other ranks.
pub trait Communicator: Send + Sync {
    /// Queues all `sends` and `receives` together on this thread's current stream of the device. Returns the received buffers in the order
    /// of `receives`.
    ///
    /// The n-th piece that rank A sends to rank B is the n-th piece that rank B receives from rank A. The caller may drop the buffers of
    /// `sends` when this function has returned.
    ///
    /// # Errors
    /// An error of the library or the device, or the error of `keep_waiting`. The communicator is unusable afterwards.
    fn send_and_receive(&self, sends: &[SentPiece], receives: &[ReceivedPiece], keep_waiting: KeepWaiting) -> Result<Vec<Arc<dyn Buffer>>>;

    /// Returns the first asynchronous error of the library, such as a lost connection, or `Ok` if there is none.
    fn check_async_error(&self) -> Result<()>;

    /// Aborts all transfers of [`Communicator::send_and_receive`], including queued ones. Received buffers then have undefined contents.
    /// A second call has no effect.
    fn abort(&self);
}

/// A library that moves data between devices of one kind in several processes, such as NCCL. A backend submits it through `inventory`.
pub struct CollectiveLibrary {
    /// Lower-case name of the library, such as `nccl`. `Mesh::engine_name` returns this name for a mesh that uses the library.
    pub name: &'static str,
    /// Name of the device kind.
    pub device: &'static str,
    /// Finds the library. Returns its path, or `Err` with a one-line reason if the library is missing.
    pub locate: fn() -> std::result::Result<String, String>,
    /// Loads the library. Returns its version, or `Err` with a one-line reason if the library cannot be used.
    pub load: fn() -> std::result::Result<String, String>,
    /// Returns an identifier of the physical device that is unique across all machines.
    pub device_id: fn(Device) -> Result<Vec<u8>>,
    /// Creates a group of communicators (one per rank), and returns its identifier, such as an `ncclUniqueId`.
    pub new_group_id: fn() -> Result<Vec<u8>>,
    /// Creates this rank's communicator. Waits until all ranks of the group have done the same.
    pub join: fn(CommunicatorArguments, KeepWaiting) -> Result<Box<dyn Communicator>>,
}
inventory::collect!(CollectiveLibrary);

impl CollectiveLibrary {
    /// Returns the library for a device kind, if a backend has submitted one.
    pub fn library_for_device_kind(device: &str) -> Option<&'static CollectiveLibrary> {
        inventory::iter::<CollectiveLibrary>().find(|library| library.device == device)
    }

    /// Returns all submitted libraries.
    pub fn all_collective_libraries() -> Vec<&'static CollectiveLibrary> {
        inventory::iter::<CollectiveLibrary>().collect()
    }
}
