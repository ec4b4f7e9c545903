//! Scratch buffers of a stream, which its kernels reuse: counters, and memory for partial results. They exist before a call,
//! so that a small reduction needs neither an allocation nor a fill.

use std::sync::OnceLock;

use super::Context;
use super::memory::DeviceBuffer;
use super::per_device::PerDevice;
use super::stream_table::{FIRST_CAPTURE, MAX_STREAMS};
use crate::error::{CudaError, Result};

/// Number of counters in a scratch buffer.
pub const COUNTERS: usize = 4352;
/// Size of a stream's memory for partial results, in bytes. Larger requests get a separate allocation.
const PARTIAL_BYTES: usize = 256 << 10;

static SCRATCH: PerDevice<ScratchBuffers> = PerDevice::new();

/// Scratch buffers by stream, allocated at first use.
struct ScratchBuffers([OnceLock<DeviceBuffer>; MAX_STREAMS]);

impl Default for ScratchBuffers {
    fn default() -> ScratchBuffers {
        ScratchBuffers([const { OnceLock::new() }; MAX_STREAMS])
    }
}

/// Scratch addresses for one kernel. Queue the kernel on the stream that was current for [`Context::scratch`], then drop
/// this.
pub struct Scratch {
    /// [`COUNTERS`] counters of 32 bits, all 0. The kernel must leave them 0.
    pub counters: u64,
    /// Memory for partial results, uninitialised.
    pub partials: u64,
    /// A separate allocation, if the stream's buffer was too small.
    _own: Option<DeviceBuffer>,
}

impl Context {
    /// Returns counters and `bytes` of memory for a kernel that is queued next on this thread's stream.
    pub fn scratch(&'static self, bytes: usize) -> Result<Scratch> {
        let number = self.stream_number();
        // A graph may run concurrently with the stream, so it has its own scratch buffer.
        if number >= FIRST_CAPTURE {
            return self.own_scratch(number, bytes);
        }
        let kept = match self.kept_scratch(number) {
            Err(CudaError::OutOfMemory { .. }) => return self.own_scratch(number, bytes),
            kept => kept?,
        };
        let own = if bytes > PARTIAL_BYTES { Some(self.alloc_for(number, bytes)?) } else { None };
        let partials = own.as_ref().map_or(kept.pointer() + COUNTER_BYTES as u64, DeviceBuffer::pointer);
        Ok(Scratch { counters: kept.pointer(), partials, _own: own })
    }

    fn kept_scratch(&'static self, number: u32) -> Result<&'static DeviceBuffer> {
        let slot = SCRATCH.get(self).0.get(number as usize).ok_or_else(|| CudaError::Invalid(format!("there is no stream {number}")))?;
        if let Some(kept) = slot.get() {
            return Ok(kept);
        }
        // If two threads allocate at once, one buffer is dropped and freed in stream order.
        let made = self.filled(number, PARTIAL_BYTES)?;
        Ok(slot.get_or_init(|| made))
    }

    fn own_scratch(&'static self, number: u32, bytes: usize) -> Result<Scratch> {
        let own = self.filled(number, bytes)?;
        Ok(Scratch { counters: own.pointer(), partials: own.pointer() + COUNTER_BYTES as u64, _own: Some(own) })
    }

    /// Allocates zeroed counters, followed by `bytes` of memory.
    fn filled(&'static self, number: u32, bytes: usize) -> Result<DeviceBuffer> {
        let buffer = self.alloc_for(number, COUNTER_BYTES.saturating_add(bytes))?;
        self.fill(&buffer, 0, [0u8; 4], COUNTERS)?;
        Ok(buffer)
    }
}

/// Size of the counters, rounded up to the alignment of device memory.
const COUNTER_BYTES: usize = (COUNTERS * size_of::<u32>()).next_multiple_of(256);
