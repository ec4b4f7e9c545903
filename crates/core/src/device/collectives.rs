//! Libraries that move data between devices of one kind in several processes, such as NCCL.

use std::sync::Arc;

use super::memory::Buffer;
use crate::error::Result;
use crate::types::device::Device;

/// A range of a buffer that one rank sends to another.
pub struct SentPiece {
    /// The receiving rank.
    pub to: usize,
    /// Buffer on the device of the sending rank.
    pub buffer: Arc<dyn Buffer>,
    /// Offset of the range in bytes.
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

/// The place of a communicator in its group.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The group's identifier, from [`CollectiveLibrary::new_id`] of one rank.
    pub id: &'a [u8],
    /// Number of ranks.
    pub size: usize,
    /// The rank of this process.
    pub rank: usize,
    /// The device of this process.
    pub device: Device,
}

/// A function that a library calls while it waits for other processes. An error ends the wait.
pub type KeepWaiting<'a> = &'a mut dyn FnMut() -> Result<()>;

/// The connection of one device to the devices of the other ranks.
pub trait Communicator: Send + Sync {
    /// Queues sends and receives as one group on the device's current stream. Returns the received buffers in the order of `receives`.
    ///
    /// Pieces between the same two ranks match in order. The buffers of `sends` may be dropped afterwards.
    ///
    /// # Errors
    /// An error of the library or the device, or the error of `keep_waiting`. The communicator is unusable afterwards.
    fn exchange(&self, sends: &[SentPiece], receives: &[ReceivedPiece], keep_waiting: KeepWaiting) -> Result<Vec<Arc<dyn Buffer>>>;

    /// Returns the first asynchronous error of the library.
    fn check(&self) -> Result<()>;

    /// Ends all exchanges, the queued ones included. Received buffers then have undefined contents. A second call has no effect.
    fn abort(&self);
}

/// A library that connects the devices of one kind. A backend submits it through `inventory`.
pub struct CollectiveLibrary {
    /// Lower-case name, which is the name of a mesh's engine.
    pub name: &'static str,
    /// Name of the device kind.
    pub device: &'static str,
    /// Finds the library. Returns its path, or in one line why it is missing.
    pub locate: fn() -> std::result::Result<String, String>,
    /// Loads the library. Returns its version, or in one line why it cannot be used.
    pub load: fn() -> std::result::Result<String, String>,
    /// Returns an identifier of the physical device, which no other device of any machine has.
    pub device_id: fn(Device) -> Result<Vec<u8>>,
    /// Returns the identifier of a new group.
    pub new_id: fn() -> Result<Vec<u8>>,
    /// Joins a group. Waits for all of its ranks.
    pub join: fn(Place, KeepWaiting) -> Result<Box<dyn Communicator>>,
}
inventory::collect!(CollectiveLibrary);

impl CollectiveLibrary {
    /// Returns the library for a device kind, if a backend has submitted one.
    pub fn of_kind(device: &str) -> Option<&'static CollectiveLibrary> {
        inventory::iter::<CollectiveLibrary>().find(|library| library.device == device)
    }

    /// Returns all submitted libraries.
    pub fn all() -> Vec<&'static CollectiveLibrary> {
        inventory::iter::<CollectiveLibrary>().collect()
    }
}
