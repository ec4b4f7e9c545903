//! Scratch buffers, one per stream, which kernels reuse. A scratch buffer holds counters and memory for partial results. A small reduction
//! thus needs neither an allocation nor a fill.

use std::sync::OnceLock;

use super::Context;
use super::memory::DeviceBuffer;
use super::per_device::PerDevice;
use super::stream_table::{FIRST_CAPTURE_STREAM_ID, MAX_STREAMS};
use crate::error::{CudaError, Result};

/// Number of 32-bit counters at the start of each scratch buffer.
pub const SCRATCH_COUNTER_COUNT: usize = 4352;
/// Size of the memory for partial results in a stream's scratch buffer, in bytes. A kernel that needs more memory gets a separate
/// allocation.
const SCRATCH_PARTIAL_RESULT_BYTES: usize = 256 << 10;

static SCRATCH_BUFFERS: PerDevice<ScratchBuffers> = PerDevice::new();

/// The scratch buffers by stream number. Each is allocated at the first use of its stream.
struct ScratchBuffers([OnceLock<DeviceBuffer>; MAX_STREAMS]);

impl Default for ScratchBuffers {
    fn default() -> ScratchBuffers {
        ScratchBuffers([const { OnceLock::new() }; MAX_STREAMS])
    }
}

/// Addresses of scratch memory for one kernel. Queue the kernel on the stream that was current when [`Context::scratch`] was called, and
/// drop the `ScratchMemory` only after the kernel is queued.
pub struct ScratchMemory {
    /// Device address of [`SCRATCH_COUNTER_COUNT`] 32-bit counters, all 0. The kernel must leave all counters 0.
    pub counters: u64,
    /// Device address of uninitialised memory for partial results.
    pub partials: u64,
    /// A separate allocation, if the stream's scratch buffer is too small or cannot be used. Else `None`.
    _separate_buffer: Option<DeviceBuffer>,
}

impl Context {
    /// Returns zeroed counters and `bytes` bytes of scratch memory for the kernel that this thread queues next on its stream.
    pub fn scratch(&'static self, bytes: usize) -> Result<ScratchMemory> {
        let number = self.current_stream_number();
        // A graph gets its own scratch buffer, because the graph may run concurrently with work on any stream.
        if number >= FIRST_CAPTURE_STREAM_ID {
            return self.allocate_separate_scratch(number, bytes);
        }
        let kept = match self.scratch_buffer_of_stream(number) {
            Err(CudaError::OutOfMemory { .. }) => return self.allocate_separate_scratch(number, bytes),
            kept => kept?,
        };
        let own = if bytes > SCRATCH_PARTIAL_RESULT_BYTES { Some(self.alloc_on_stream_or_graph(number, bytes)?) } else { None };
        let partials = own.as_ref().map_or(kept.pointer() + SCRATCH_COUNTER_BYTES as u64, DeviceBuffer::pointer);
        Ok(ScratchMemory { counters: kept.pointer(), partials, _separate_buffer: own })
    }

    fn scratch_buffer_of_stream(&'static self, number: u32) -> Result<&'static DeviceBuffer> {
        let slot = SCRATCH_BUFFERS
            .get_or_create(self)
            .0
            .get(number as usize)
            .ok_or_else(|| CudaError::Invalid(format!("there is no stream {number}")))?;
        if let Some(kept) = slot.get() {
            return Ok(kept);
        }
        // If two threads allocate at the same time, one of the two buffers is not stored. Its drop frees the memory in stream order.
        let made = self.allocate_scratch(number, SCRATCH_PARTIAL_RESULT_BYTES)?;
        Ok(slot.get_or_init(|| made))
    }

    fn allocate_separate_scratch(&'static self, number: u32, bytes: usize) -> Result<ScratchMemory> {
        let own = self.allocate_scratch(number, bytes)?;
        Ok(ScratchMemory { counters: own.pointer(), partials: own.pointer() + SCRATCH_COUNTER_BYTES as u64, _separate_buffer: Some(own) })
    }

    /// Allocates a buffer of zeroed counters, followed by `bytes` bytes of uninitialised memory.
    fn allocate_scratch(&'static self, number: u32, bytes: usize) -> Result<DeviceBuffer> {
        let buffer = self.alloc_on_stream_or_graph(number, SCRATCH_COUNTER_BYTES.saturating_add(bytes))?;
        self.fill(&buffer, 0, [0u8; 4], SCRATCH_COUNTER_COUNT)?;
        Ok(buffer)
    }
}

/// Size of a scratch buffer's counters in bytes, rounded up to the alignment of device memory.
const SCRATCH_COUNTER_BYTES: usize = (SCRATCH_COUNTER_COUNT * size_of::<u32>()).next_multiple_of(256);
