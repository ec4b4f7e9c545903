//! Buffers in device memory, and the ordering of the streams that use them.

use std::fmt::Debug;
use std::sync::Arc;

use super::state::AnyFence;
use crate::driver::Context;
use crate::driver::fault::{FaultCell, Taint};
use crate::driver::mark::Mark;
use crate::driver::order::{Uses, numbers};
use crate::driver::pool::Block;
use crate::driver::stream_table::FIRST_CAPTURE;
use crate::error::{CudaError, Result};

/// Orders a stream before its use of a block: [`Uses::read`] or [`Uses::write`].
type Wait = fn(&Uses<Arc<Mark>>, u32, &&'static Context) -> Result<()>;

/// Device memory of one context. May be dropped on any thread once the work that uses it is queued, on any stream.
#[derive(Debug)]
pub struct DeviceBuffer {
    block: Block,
    bytes: usize,
    context: &'static Context,
    /// The stream that owns the block.
    home: u32,
    uses: Uses<Arc<Mark>>,
    /// The graph that owns the memory, and its block.
    graph: Option<GraphBlock>,
    /// The launches that the values depend on.
    taint: Taint,
}

/// The graph that owns a buffer's memory.
pub(in crate::driver) trait OwningGraph: Debug + Send + Sync {
    /// Whether the graph is being captured on this stream.
    fn is_captured_on(&self, stream: u32) -> bool;
    /// Returns an error if the graph's buffers have no values, because the graph is still being captured or its capture failed.
    fn check(&self) -> Result<()>;
    /// Takes back a block that no buffer uses.
    fn put_back(&self, block: Arc<DeviceBuffer>);
    /// Returns the error word of the graph's kernels.
    fn fault(&self) -> &Arc<FaultCell>;
}

/// A block of a graph's memory.
#[derive(Debug)]
struct GraphBlock {
    memory: Arc<DeviceBuffer>,
    graph: Arc<dyn OwningGraph>,
}

impl Context {
    /// Allocates `bytes` of uninitialised device memory on a stream that is not a capture's.
    pub(in crate::driver) fn alloc_on(&'static self, home: u32, bytes: usize) -> Result<DeviceBuffer> {
        let block = if bytes == 0 { Block { pointer: 0, size: 0 } } else { self.alloc_block(home, bytes)? };
        Ok(DeviceBuffer { block, bytes, context: self, home, uses: Uses::new(home), graph: None, taint: Taint::default() })
    }
}

impl DeviceBuffer {
    /// Creates a buffer over `memory`, a block that `graph` owns, for work that is captured on stream `home`.
    pub(in crate::driver) fn of_graph(home: u32, bytes: usize, memory: Arc<DeviceBuffer>, graph: Arc<dyn OwningGraph>) -> DeviceBuffer {
        let (block, context) = (memory.block, memory.context);
        let graph = Some(GraphBlock { memory, graph });
        DeviceBuffer { block, bytes, context, home, uses: Uses::new(home), graph, taint: Taint::default() }
    }

    /// Returns the device address, or 0 for an empty buffer.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.block.pointer
    }

    /// Returns the size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True for 0 bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Announces a read by work that is queued next on this thread's stream, which waits for the last write on another
    /// stream. Returns the stream's number.
    #[inline]
    pub fn reads(&self) -> Result<u32> {
        let stream = self.context.stream_number();
        self.reads_on(stream).map(|()| stream)
    }

    #[inline]
    pub(in crate::driver) fn reads_on(&self, stream: u32) -> Result<()> {
        self.ordered(stream, Uses::read)
    }

    /// Announces a write by work that is queued next on this thread's stream, which waits for all other users. No other
    /// thread may queue work on the buffer meanwhile. Not needed before the first use of a new buffer on its own stream.
    pub fn writes(&self) -> Result<u32> {
        let stream = self.context.stream_number();
        self.writes_on(stream).map(|()| stream)
    }

    pub(in crate::driver) fn writes_on(&self, stream: u32) -> Result<()> {
        self.ordered(stream, Uses::write)
    }

    #[inline]
    fn ordered(&self, stream: u32, wait: Wait) -> Result<()> {
        match &self.graph {
            None if stream < FIRST_CAPTURE && self.bytes > 0 => wait(&self.uses, stream, &self.context),
            _ => self.ordered_by_graph(stream, wait),
        }
    }

    /// Captured work is ordered within its capture only. Memory of a graph is ordered by the state of its block.
    #[cold]
    fn ordered_by_graph(&self, stream: u32, wait: Wait) -> Result<()> {
        match &self.graph {
            Some(GraphBlock { graph, .. }) if graph.is_captured_on(stream) => Ok(()),
            Some(GraphBlock { memory, graph }) => graph.check().and_then(|()| memory.ordered(stream, wait)),
            None => Ok(()), // empty, or outside memory, which the launch of the graph orders
        }
    }

    /// Returns the error word of the graph that computes the buffer's values; `None` for values of no graph.
    pub(in crate::driver) fn graph_fault(&self) -> Option<&Arc<FaultCell>> {
        self.graph.as_ref().map(|block| block.graph.fault())
    }

    /// Returns whether the graph that is being captured on a stream must keep this buffer alive. False if the graph owns the
    /// memory.
    pub(crate) fn is_kept_by(&self, stream: u32) -> bool {
        stream >= FIRST_CAPTURE && !self.graph.as_ref().is_some_and(|block| block.graph.is_captured_on(stream))
    }

    /// Records a point after the last write.
    pub(in crate::driver) fn written_at(&self, mark: &Arc<Mark>) {
        self.graph.as_ref().map_or(self, |block| &block.memory).uses.written_at(mark.clone());
    }

    /// Whether launches of a graph write to the memory.
    pub(crate) fn belongs_to_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Records that the work which writes these buffers is queued on this thread's stream. A reader on another stream then
    /// waits for this work only.
    #[inline]
    pub fn written<'a>(buffers: impl IntoIterator<Item = &'a DeviceBuffer>) {
        let mut mark = None;
        for buffer in buffers.into_iter().filter(|b| b.context.has_several_streams() && b.bytes > 0) {
            if mark.is_none() {
                let stream = buffer.context.stream_number();
                if stream >= FIRST_CAPTURE {
                    return;
                }
                mark = buffer.context.mark(stream).ok();
            }
            if let Some(mark) = &mark {
                buffer.written_at(mark);
            }
        }
    }

    /// Returns the launches that the values depend on.
    pub(in crate::driver) fn taint(&self) -> &Taint {
        &self.taint
    }

    /// Records that the values, or some of them, are a copy of `source`'s.
    pub(super) fn copied_from(&self, source: &DeviceBuffer, is_whole: bool) {
        self.taint.copied_from(&source.taint, is_whole);
    }

    /// Returns the device of the buffer.
    #[inline]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// Returns the address of `offset`, if `bytes` bytes from there are in bounds.
    pub fn range(&self, offset: usize, bytes: usize) -> Result<u64> {
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
            return graph.put_back(memory);
        }
        let Self { block, home, context, .. } = *self;
        let bytes = self.bytes as u64;
        let others = self.uses.others(home);
        if others != 0 && context.memory.pool().keeps() {
            // Marking fails only in a broken context, whose memory is never used again.
            if let Ok(fences) = numbers(others).map(|stream| context.mark(stream).map(|mark| mark as AnyFence)).collect() {
                context.memory.pool().put_fenced(home, block, bytes, fences);
            }
            return;
        }
        if others != 0 && context.order_after(home, others).is_err() {
            return;
        }
        let full = {
            let mut pool = context.memory.pool();
            if pool.put(home, block, bytes) { None } else { Some(pool.empty()) }
        };
        if let Some(blocks) = full {
            // SAFETY: the pool has released these blocks and no buffer owns them. The block's stream waits for all other
            // streams that used it.
            unsafe { context.free_raw(blocks.into_iter().chain([(home, block.pointer)])) };
        }
    }
}
