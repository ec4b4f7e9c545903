//! Buffers in device memory, and the ordering of the streams that access them.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::context_allocator::AnyFence;
use crate::driver::Context;
use crate::driver::fault::{BufferErrorWords, LaunchErrorWord};
use crate::driver::free_blocks::MemoryBlock;
use crate::driver::stream_mark::StreamMark;
use crate::driver::stream_order::{StreamUses, stream_bit, stream_numbers};
use crate::driver::stream_table::FIRST_CAPTURE_STREAM_ID;
use crate::error::{CudaError, Result};

/// A function that orders a stream's access to a block: [`StreamUses::order_read`] or [`StreamUses::order_write`].
type OrderAccess = fn(&StreamUses<Arc<StreamMark>>, u32, &&'static Context) -> Result<()>;

/// Device memory of one context. A buffer may be dropped on any thread, once all work that uses the buffer is queued.
pub struct DeviceBuffer {
    block: MemoryBlock,
    bytes: usize,
    context: &'static Context,
    /// Number of the home stream, in whose order the memory is freed and reused.
    home: u32,
    uses: StreamUses<Arc<StreamMark>>,
    /// The graph that owns the memory, with the memory block. `None` if no graph owns the memory.
    graph: Option<GraphBlock>,
    /// The owner of the memory if another library allocated it. `None` for memory that this crate allocated.
    library: Option<Arc<dyn Any + Send + Sync>>,
    /// The launches that the buffer's values depend on. A read of the buffer reports faults of these launches.
    buffer_error_words: BufferErrorWords,
}

/// A captured graph that owns the memory of buffers.
pub(in crate::driver) trait OwningGraph: Debug + Send + Sync {
    /// Returns whether a capture of this graph is active on stream number `stream`.
    fn is_captured_on(&self, stream: u32) -> bool;
    /// Returns an error if the graph's buffers have no values, because the capture of the graph has not ended or has failed.
    fn check_has_values(&self) -> Result<()>;
    /// Takes back `block`, which no buffer uses any more, so that later work of the capture may reuse it.
    fn return_block_to_graph(&self, block: Arc<DeviceBuffer>);
    /// Returns the error word, the memory in which all kernels of the graph report faults.
    fn error_word(&self) -> &Arc<LaunchErrorWord>;
}

/// A memory block that a captured graph owns, and the graph.
#[derive(Debug)]
struct GraphBlock {
    memory: Arc<DeviceBuffer>,
    graph: Arc<dyn OwningGraph>,
}

impl Context {
    /// Allocates `bytes` bytes of uninitialised device memory that belong to stream `home`, which is not the stream of a capture.
    pub(in crate::driver) fn alloc_buffer_on_stream(&'static self, home: u32, bytes: usize) -> Result<DeviceBuffer> {
        let block = if bytes == 0 { MemoryBlock { pointer: 0, size: 0 } } else { self.alloc_block(home, bytes)? };
        Ok(DeviceBuffer {
            block,
            bytes,
            context: self,
            home,
            uses: StreamUses::new(home),
            graph: None,
            library: None,
            buffer_error_words: BufferErrorWords::default(),
        })
    }
}

impl Debug for DeviceBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { block, bytes, context, home, .. } = self;
        write!(f, "DeviceBuffer({bytes} bytes at {:#x} of {context:?}, stream {home})", block.pointer)
    }
}

impl DeviceBuffer {
    /// Creates a buffer of `bytes` bytes in `memory`, a block that `graph` owns. Work that is captured on stream `home` uses the buffer.
    pub(in crate::driver) fn from_graph_block(
        home: u32,
        bytes: usize,
        memory: Arc<DeviceBuffer>,
        graph: Arc<dyn OwningGraph>,
    ) -> DeviceBuffer {
        let (block, context) = (memory.block, memory.context);
        let graph = Some(GraphBlock { memory, graph });
        DeviceBuffer {
            block,
            bytes,
            context,
            home,
            uses: StreamUses::new(home),
            graph,
            library: None,
            buffer_error_words: BufferErrorWords::default(),
        }
    }

    /// Creates a buffer of `bytes` bytes at `pointer`, in memory of another library. The caller has ordered the last write to the memory
    /// before later work of stream `home`.
    pub(super) fn wrap_foreign_block(
        context: &'static Context,
        home: u32,
        pointer: u64,
        bytes: usize,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> DeviceBuffer {
        let block = MemoryBlock { pointer, size: bytes as u64 };
        let uses = StreamUses::new(home);
        DeviceBuffer {
            block,
            bytes,
            context,
            home,
            uses,
            graph: None,
            library: Some(owner),
            buffer_error_words: BufferErrorWords::default(),
        }
    }

    /// Returns the number of the home stream, in whose order the memory is freed and reused.
    pub(super) fn home_stream(&self) -> u32 {
        self.home
    }

    /// Returns whether another library allocated the memory.
    pub(crate) fn is_owned_by_other_library(&self) -> bool {
        self.library.is_some()
    }

    /// Returns the device address, or 0 for an empty buffer.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.block.pointer
    }

    /// Returns the size of the buffer, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the buffer has 0 bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Prepares this thread's stream for work that reads the buffer. Call this method before queuing the work. If the last write is on
    /// another stream, this thread's stream waits for that write on the device. Returns the number of this thread's stream.
    #[inline]
    pub fn prepare_read(&self) -> Result<u32> {
        let stream = self.context.current_stream_number();
        self.prepare_read_on_stream(stream).map(|()| stream)
    }

    #[inline]
    pub(in crate::driver) fn prepare_read_on_stream(&self, stream: u32) -> Result<()> {
        self.order_access(stream, StreamUses::order_read)
    }

    /// Prepares this thread's stream for work that writes the buffer. Call this method before queuing the work. This thread's stream waits
    /// on the device for all uses of the buffer on other streams. No other thread may queue work on the buffer until the write is queued. A
    /// new buffer does not need this call before its first use on its own stream. Returns the number of this thread's stream.
    pub fn prepare_write(&self) -> Result<u32> {
        let stream = self.context.current_stream_number();
        self.prepare_write_on_stream(stream).map(|()| stream)
    }

    pub(in crate::driver) fn prepare_write_on_stream(&self, stream: u32) -> Result<()> {
        self.order_access(stream, StreamUses::order_write)
    }

    #[inline]
    fn order_access(&self, stream: u32, order: OrderAccess) -> Result<()> {
        match &self.graph {
            None if stream < FIRST_CAPTURE_STREAM_ID && self.bytes > 0 => order(&self.uses, stream, &self.context),
            _ => self.order_access_with_graph(stream, order),
        }
    }

    /// Orders an access by captured work, or an access to memory that a graph owns. Within one capture, the stream of the capture already
    /// orders the accesses.
    #[cold]
    fn order_access_with_graph(&self, stream: u32, order: OrderAccess) -> Result<()> {
        match &self.graph {
            Some(GraphBlock { graph, .. }) if graph.is_captured_on(stream) => Ok(()),
            Some(GraphBlock { memory, graph }) => graph.check_has_values().and_then(|()| memory.order_access(stream, order)),
            None => Ok(()), // the buffer is empty, or each launch of the captured graph orders the accesses
        }
    }

    /// Returns the error word of the graph that computes the buffer's values, or `None` if no graph computes them.
    pub(in crate::driver) fn graph_error_word(&self) -> Option<&Arc<LaunchErrorWord>> {
        self.graph.as_ref().map(|block| block.graph.error_word())
    }

    /// Returns whether `stream` is the stream of a capture and the captured graph must keep this buffer alive. The graph need not keep a
    /// buffer whose memory it owns.
    pub(crate) fn must_be_kept_by_capture(&self, stream: u32) -> bool {
        stream >= FIRST_CAPTURE_STREAM_ID && !self.graph.as_ref().is_some_and(|block| block.graph.is_captured_on(stream))
    }

    /// Records that the event `mark` comes after the last write to the buffer.
    pub(in crate::driver) fn record_write_mark(&self, mark: &Arc<StreamMark>) {
        self.graph.as_ref().map_or(self, |block| &block.memory).uses.record_write_mark(mark.clone());
    }

    /// Returns whether a captured graph owns the memory. Launches of the graph may then write to the memory.
    pub(crate) fn belongs_to_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Records that the work which writes `buffers` is queued on this thread's stream. A reader on another stream then waits for this work,
    /// but not for later work on this thread's stream.
    #[inline]
    pub fn record_queued_writes<'a>(buffers: impl IntoIterator<Item = &'a DeviceBuffer>) {
        let mut mark = None;
        for buffer in buffers.into_iter().filter(|b| b.context.has_several_streams() && b.bytes > 0) {
            if mark.is_none() {
                let stream = buffer.context.current_stream_number();
                if stream >= FIRST_CAPTURE_STREAM_ID {
                    return;
                }
                mark = buffer.context.record_stream_mark(stream).ok();
            }
            if let Some(mark) = &mark {
                buffer.record_write_mark(mark);
            }
        }
    }

    /// Returns the launches that the buffer's values depend on.
    pub(in crate::driver) fn buffer_error_words(&self) -> &BufferErrorWords {
        &self.buffer_error_words
    }

    /// Records that this buffer contains values copied from `source`, so that its readers also receive the faults that affect `source`.
    /// `is_whole` states that the copy overwrites all values of this buffer.
    pub(super) fn record_copy_from(&self, source: &DeviceBuffer, is_whole: bool) {
        self.buffer_error_words.record_copy_from(&source.buffer_error_words, is_whole);
    }

    /// Returns the context of the buffer's device.
    #[inline]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// Returns the device address of byte `offset`, or an error if `bytes` bytes from there exceed the buffer.
    pub fn checked_address(&self, offset: usize, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.block.pointer + offset as u64),
            _ => Err(CudaError::Invalid(format!("{bytes} bytes at {offset} are outside a buffer of {} bytes", self.bytes))),
        }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if let Some(GraphBlock { memory, graph }) = self.graph.take() {
            return graph.return_block_to_graph(memory);
        }
        let Self { block, home, context, .. } = *self;
        if let Some(owner) = self.library.take() {
            return context.drop_owner_after_streams(self.uses.other_streams(home) | stream_bit(home), owner);
        }
        let bytes = self.bytes as u64;
        let others = self.uses.other_streams(home);
        if others != 0 {
            let ordered = if context.memory.lock_pool().keeps_freed_blocks() {
                let fences = stream_numbers(others).map(|stream| context.record_stream_mark(stream).map(|mark| mark as AnyFence));
                match fences.collect() {
                    Ok(fences) => return context.memory.lock_pool().return_fenced_block(home, block, bytes, fences),
                    Err(_) => false,
                }
            } else {
                context.order_stream_after(home, others).is_ok()
            };
            // If no event could be recorded, waits for all queued work instead. If the wait fails too, the context is lost and the block is
            // not reused.
            if !ordered && !context.wait_for_all_streams_ignoring_faults() {
                return;
            }
        }
        let full = {
            let mut pool = context.memory.lock_pool();
            if pool.return_block(home, block, bytes) { None } else { Some(pool.drain_free_blocks()) }
        };
        if let Some(blocks) = full {
            // SAFETY: the pool has released `blocks`, and no buffer owns them. The stream of this block waits for all other streams that
            // used the block.
            unsafe { context.free_driver_blocks(blocks.into_iter().chain([(home, block.pointer)])) };
        }
    }
}
