//! Memory that the kernels of a stream use in turn: counters, and room for what the blocks of a kernel hand to each other. It is there
//! before a call needs it, so that a small reduction costs neither an allocation nor a fill.

use std::sync::OnceLock;

use super::capture::FIRST_CAPTURE;
use super::{Context, DeviceBuffer};
use crate::error::{CudaError, Result};

/// The most counters that a kernel has.
pub const COUNTERS: usize = 4352;
/// Room behind a stream's counters, in bytes; a kernel that needs more has memory of its own for it.
const ROOM: usize = 256 << 10;

/// Counters and room of the streams that have had a use for them, by stream.
pub(super) struct Kept([OnceLock<DeviceBuffer>; Context::MOST_STREAMS]);

impl Kept {
    pub(super) fn new() -> Kept {
        Kept([const { OnceLock::new() }; Context::MOST_STREAMS])
    }
}

/// Addresses for one kernel. Queue it on the stream that this was asked for on, then drop this.
pub struct Scratch {
    /// [`COUNTERS`] of 32 bits, 0 when the kernel begins; it must leave them so.
    pub counters: u64,
    /// The room, with undefined contents.
    pub room: u64,
    /// What is the kernel's alone.
    _own: Option<DeviceBuffer>,
}

impl Context {
    /// Counters, and room for `bytes`, for a kernel that is queued next on this thread's stream.
    pub fn scratch(&'static self, bytes: usize) -> Result<Scratch> {
        let number = self.stream_number();
        // A graph runs beside whatever else is captured or runs.
        if number >= FIRST_CAPTURE {
            return self.own_scratch(number, bytes);
        }
        let kept = match self.kept_scratch(number) {
            Err(CudaError::OutOfMemory { .. }) => return self.own_scratch(number, bytes),
            kept => kept?,
        };
        let own = if bytes > ROOM { Some(self.alloc_for(number, bytes)?) } else { None };
        let room = own.as_ref().map_or(kept.pointer() + COUNTER_BYTES as u64, DeviceBuffer::pointer);
        Ok(Scratch { counters: kept.pointer(), room, _own: own })
    }

    fn kept_scratch(&'static self, number: u32) -> Result<&'static DeviceBuffer> {
        let slot = self.scratch.0.get(number as usize).ok_or_else(|| CudaError::Invalid(format!("there is no stream {number}")))?;
        if let Some(kept) = slot.get() {
            return Ok(kept);
        }
        // Of two threads that make it at once, each has filled its own; what one of them drops is free in stream order.
        let made = self.filled(number, ROOM)?;
        Ok(slot.get_or_init(|| made))
    }

    fn own_scratch(&'static self, number: u32, bytes: usize) -> Result<Scratch> {
        let own = self.filled(number, bytes)?;
        Ok(Scratch { counters: own.pointer(), room: own.pointer() + COUNTER_BYTES as u64, _own: Some(own) })
    }

    /// Counters of 0, and room for `bytes` behind them.
    fn filled(&'static self, number: u32, bytes: usize) -> Result<DeviceBuffer> {
        let buffer = self.alloc_for(number, COUNTER_BYTES.saturating_add(bytes))?;
        self.fill(&buffer, 0, [0u8; 4], COUNTERS)?;
        Ok(buffer)
    }
}

/// The counters' share of a buffer: a multiple of the alignment of device memory.
const COUNTER_BYTES: usize = (COUNTERS * size_of::<u32>()).next_multiple_of(256);
