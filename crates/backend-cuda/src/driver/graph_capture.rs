//! CUDA graphs: capture of a stream's work, the memory that a graph owns, and launches of graphs.
//!
//! A capture has its own stream, numbered from [`FIRST_CAPTURE_STREAM_ID`], and belongs to one thread. Memory allocated during a capture
//! belongs to the graph. Freed blocks are reused within the capture, since the graph runs in order. Blocks return to the pool when the
//! graph and all arrays in its memory are dropped. The graph also keeps alive the kernel modules and the arrays in other memory that it
//! uses.
//!
//! Captures are relaxed (`CU_STREAM_CAPTURE_MODE_RELAXED`), so that allocation, compilation and loading of modules remain possible.
//! [`Context::check_not_capturing`] rejects waits for captured work, because the driver would invalidate the capture.

use std::any::Any;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use cuprum_core::device::Buffer;

use super::driver_probe::require_function;
use super::fault::LaunchErrorWord;
use super::memory::{DeviceBuffer, OwningGraph};
use super::primary_context::check_result;
use super::stream_mark::StreamMark;
use super::stream_table::{FIRST_CAPTURE_STREAM_ID, StreamHandle};
use super::{Context, sys};
use crate::driver::mutex_lock::lock_ignoring_poison;
use crate::error::{CudaError, Result};

const CAPTURE_STATE_OPEN: u8 = 0;
const CAPTURE_STATE_ENDED: u8 = 1;
const CAPTURE_STATE_FAILED: u8 = 2;

/// Objects that a captured graph uses but does not own, and keeps alive.
#[derive(Default)]
struct ObjectsKeptAlive {
    /// Buffers that the graph does not own, each with a flag that tells whether the graph writes the buffer.
    arrays: Vec<(Arc<dyn Buffer>, bool)>,
    /// Other objects that the graph uses and keeps alive, such as kernel modules.
    others: Vec<Arc<dyn Any + Send + Sync>>,
}

/// A capture that is active or has ended, and the memory of its graph.
struct GraphCapture {
    context: &'static Context,
    stream: StreamHandle,
    state: AtomicU8,
    memory: Mutex<GraphMemory>,
    kept: Mutex<ObjectsKeptAlive>,
    /// The error word in which all kernels of the graph report faults.
    fault: Arc<LaunchErrorWord>,
}

/// The memory blocks that a graph owns.
#[derive(Default)]
struct GraphMemory {
    all_blocks: Vec<Arc<DeviceBuffer>>,
    /// The blocks that no buffer uses, for reuse during the capture.
    free_blocks: Vec<Arc<DeviceBuffer>>,
}

impl std::fmt::Debug for GraphCapture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GraphCapture({:?}, state {})", self.context, self.state.load(Ordering::Relaxed))
    }
}

/// Returns the index of the smallest size in `free` that is at least `bytes` and at most about twice `bytes`. Small blocks are exempt from
/// the upper bound. Returns `None` if no size fits.
fn find_best_fit(free: impl Iterator<Item = usize>, bytes: usize) -> Option<usize> {
    let fitting = free.enumerate().filter(|&(_, size)| size >= bytes && size / 2 <= bytes.max(512));
    fitting.min_by_key(|&(_, size)| size).map(|(at, _)| at)
}

impl GraphCapture {
    /// Returns a block of the graph's memory with at least `bytes` bytes: a free block, or a newly allocated one.
    fn allocate_block(&self, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        let mut memory = lock_ignoring_poison(&self.memory);
        if let Some(at) = find_best_fit(memory.free_blocks.iter().map(|b| b.len()), bytes) {
            return Ok(memory.free_blocks.swap_remove(at));
        }
        let block = Arc::new(self.context.alloc_buffer_on_stream(0, bytes)?);
        memory.all_blocks.push(block.clone());
        Ok(block)
    }

    /// Drops the objects that the graph keeps alive, and the graph's references to its memory blocks. Arrays in these blocks hold
    /// references of their own.
    fn release_objects(&self) {
        let kept = std::mem::take(&mut *lock_ignoring_poison(&self.kept));
        let memory = std::mem::take(&mut *lock_ignoring_poison(&self.memory));
        drop((kept, memory)); // dropped after the locks are released, because a destructor may take the same locks
    }
}

impl OwningGraph for GraphCapture {
    fn is_captured_on(&self, stream: u32) -> bool {
        stream >= FIRST_CAPTURE_STREAM_ID
            && self.state.load(Ordering::Acquire) == CAPTURE_STATE_OPEN
            && self.context.find_active_capture(stream).is_some_and(|active| ptr::eq(&*active, self))
    }

    fn check_has_values(&self) -> Result<()> {
        let why = match self.state.load(Ordering::Acquire) {
            CAPTURE_STATE_OPEN => "is of a graph that is still being captured, on another stream",
            CAPTURE_STATE_FAILED => "was never computed: capturing the graph that it is of failed",
            _ => return Ok(()),
        };
        Err(CudaError::Invalid(format!("an array {why}")))
    }

    /// Marks `block` as free, so that later work of the capture may reuse it. Has no effect after the capture.
    fn return_block_to_graph(&self, block: Arc<DeviceBuffer>) {
        if self.state.load(Ordering::Acquire) == CAPTURE_STATE_OPEN {
            lock_ignoring_poison(&self.memory).free_blocks.push(block);
        }
    }

    fn error_word(&self) -> &Arc<LaunchErrorWord> {
        &self.fault
    }
}

impl Context {
    /// Starts a capture of this thread's work, and returns the number of the capture's stream.
    pub fn begin_capture(&'static self) -> Result<u32> {
        for name in ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphGetNodes", "cuGraphInstantiateWithFlags", "cuGraphLaunch"] {
            require_function(name)?;
        }
        for name in ["cuGraphDestroy", "cuGraphExecDestroy"] {
            require_function(name)?;
        }
        self.make_current()?;
        let fault = self.new_error_word(true)?;
        let stream = self.retry_in_current_context(|| self.streams.take_capture_stream())?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: `stream` is an idle stream of this context, which is current.
        let begun = check_result("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.0, mode) });
        if let Err(error) = begun {
            self.streams.return_capture_stream(stream);
            return Err(error);
        }
        let (memory, kept) = (Mutex::default(), Mutex::default());
        let capture = GraphCapture { context: self, stream, state: AtomicU8::new(CAPTURE_STATE_OPEN), memory, kept, fault };
        Ok(self.streams.add_capture(stream, Arc::new(capture)))
    }

    /// Ends capture `number` and returns a graph of the work that this thread queued during the capture.
    pub fn end_capture(&'static self, number: u32) -> Result<Graph> {
        let capture = self.remove_capture(number).ok_or_else(|| CudaError::Invalid("no such capture".into()))?;
        let ended = self.end_capture_and_instantiate(&capture);
        capture.state.store(if ended.is_ok() { CAPTURE_STATE_ENDED } else { CAPTURE_STATE_FAILED }, Ordering::Release);
        let (exec, nodes) = ended.inspect_err(|_| capture.release_objects())?;
        lock_ignoring_poison(&capture.memory).free_blocks.clear();
        Ok(Graph { exec, nodes, capture, last: Mutex::new(None) })
    }

    /// Abandons capture `number`. Arrays that the captured work would have computed have no values.
    pub fn abandon_capture(&'static self, number: u32) {
        if let Some(capture) = self.remove_capture(number) {
            capture.state.store(CAPTURE_STATE_FAILED, Ordering::Release);
            let ended = self.end_capture_and_instantiate(&capture);
            tracing::debug!(instantiated = ended.is_ok(), "a capture was given up");
            if let Ok((exec, _)) = ended {
                // SAFETY: `exec` was just instantiated and never launched, and is destroyed only here.
                unsafe { sys::cuGraphExecDestroy(exec.0) };
            }
            capture.release_objects();
        }
    }

    /// Ends the capture of the stream, even after an error, and instantiates the graph. Also returns the number of nodes of the graph.
    fn end_capture_and_instantiate(&'static self, capture: &GraphCapture) -> Result<(GraphExec, usize)> {
        self.make_current()?;
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is capturing, since only this function ends a capture. The out-pointer `graph` is a local.
        let ended = check_result("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(capture.stream.0, &mut graph) });
        self.streams.return_capture_stream(capture.stream);
        if graph.is_null() {
            return ended.and(Err(CudaError::Invalid("the capture is invalid: its work joined another stream".into())));
        }
        let (mut exec, mut nodes) = (ptr::null_mut(), 0usize);
        let made = ended.and_then(|()| {
            // SAFETY: `graph` comes from `cuStreamEndCapture`. With a null array, the driver writes only the number of nodes.
            check_result("cuGraphGetNodes", unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut nodes) })?;
            self.retry_in_current_context(|| {
                // SAFETY: `graph` comes from `cuStreamEndCapture`, and the out-pointer `exec` is a local.
                check_result("cuGraphInstantiate", unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) })
            })
        });
        // SAFETY: `graph` comes from `cuStreamEndCapture` and is destroyed only here. The instantiated graph does not refer to `graph`.
        unsafe { sys::cuGraphDestroy(graph) };
        made.map(|()| (GraphExec(exec), nodes))
    }

    /// Returns the active capture with this stream number, or `None` if the number belongs to no active capture.
    fn find_active_capture(&self, number: u32) -> Option<Arc<GraphCapture>> {
        self.streams.find_active_capture(number)?.downcast().ok()
    }

    fn remove_capture(&self, number: u32) -> Option<Arc<GraphCapture>> {
        self.streams.remove_capture(number)?.downcast().ok()
    }

    /// Allocates `bytes` bytes of uninitialised device memory (aligned to at least 256 bytes), in stream order on this thread's current
    /// stream.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`] if the memory limit would be exceeded, or if the device has no memory even after the pool returned its
    /// free blocks.
    pub fn alloc_on_current_stream(&'static self, bytes: usize) -> Result<DeviceBuffer> {
        self.alloc_on_stream_or_graph(self.current_stream_number(), bytes)
    }

    /// Allocates `bytes` bytes of device memory on stream `number`. Memory allocated on the stream of a capture belongs to the captured
    /// graph.
    pub(super) fn alloc_on_stream_or_graph(&'static self, number: u32, bytes: usize) -> Result<DeviceBuffer> {
        if number < FIRST_CAPTURE_STREAM_ID || bytes == 0 {
            return self.alloc_buffer_on_stream(number, bytes);
        }
        let capture = self.find_active_capture(number).ok_or_else(|| CudaError::Invalid("the capture has ended".into()))?;
        let block = capture.allocate_block(bytes)?;
        Ok(DeviceBuffer::from_graph_block(number, bytes, block, capture))
    }

    /// Returns the error word of the kernels that are captured on stream `number`.
    pub(super) fn capture_error_word(&'static self, number: u32) -> Result<Arc<LaunchErrorWord>> {
        let capture = self.find_active_capture(number).ok_or_else(|| CudaError::Invalid("the capture has ended".into()))?;
        Ok(capture.fault.clone())
    }

    /// Launches `graph` on stream number `stream`. Holds the lock of the stream, so that no other thread makes the stream wait during the
    /// launch.
    ///
    /// # Safety
    /// The requirements of `cuGraphLaunch`: `graph` is of this context, no other thread launches `graph` at the same time, and the memory
    /// and modules that `graph` uses exist.
    unsafe fn launch_graph_exec(&self, stream: u32, graph: sys::CUgraphExec) -> Result<()> {
        self.retry_out_of_memory(|| {
            let _turn = self.streams.lock_stream(stream);
            // SAFETY: the caller guarantees that `graph` may be launched, and the stream is of this context.
            check_result("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph, self.raw_stream(stream)) })
        })
    }

    /// Keeps `buffer` alive as long as the graph that this thread is capturing. `writes` tells whether the graph writes `buffer`.
    pub(crate) fn keep_array_alive(&self, buffer: &Arc<dyn Buffer>, writes: bool) {
        let Some(capture) = self.find_active_capture(self.current_stream_number()) else { return };
        let mut kept = lock_ignoring_poison(&capture.kept);
        match kept.arrays.iter_mut().find(|(b, _)| Arc::ptr_eq(b, buffer)) {
            Some((_, written)) => *written |= writes,
            None => kept.arrays.push((buffer.clone(), writes)),
        }
    }

    /// Keeps `other` alive as long as the graph that is being captured on stream `number`.
    pub(crate) fn keep_object_alive<T: Any + Send + Sync>(&self, number: u32, other: &Arc<T>) {
        let Some(capture) = self.find_active_capture(number) else { return };
        let mut kept = lock_ignoring_poison(&capture.kept);
        let address = Arc::as_ptr(other).cast::<()>();
        if kept.others.iter().all(|o| Arc::as_ptr(o).cast::<()>() != address) {
            kept.others.push(other.clone());
        }
    }
}

/// The driver's handle of an instantiated graph.
struct GraphExec(sys::CUgraphExec);

// SAFETY: the driver allows the handle on any thread, one at a time. The mutex `last` of [`Graph`] ensures that one thread at a time uses
// the handle.
unsafe impl Send for GraphExec {}
// SAFETY: the handle is used only while the mutex `last` of [`Graph`] is locked.
unsafe impl Sync for GraphExec {}

/// A captured CUDA graph, with references to everything that its work uses.
pub struct Graph {
    exec: GraphExec,
    nodes: usize,
    capture: Arc<GraphCapture>,
    /// An event that was recorded after the last launch of the graph. The lock is held while the graph is launched.
    last: Mutex<Option<Arc<StreamMark>>>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} nodes on {:?})", self.nodes, self.capture.context)
    }
}

impl Graph {
    /// Returns the number of nodes of the graph: kernels, copies and fills.
    pub fn node_count(&self) -> usize {
        self.nodes
    }

    /// Returns whether the graph keeps `buffer` alive: the graph reads or writes the buffer but does not own its memory.
    pub fn keeps_alive(&self, buffer: &dyn Buffer) -> bool {
        let address = ptr::from_ref(buffer).cast::<()>();
        lock_ignoring_poison(&self.capture.kept).arrays.iter().any(|(b, _)| Arc::as_ptr(b).cast::<()>() == address)
    }

    /// Launches the graph on stream `number`. `memory_of` returns the device memory of a buffer of the core crate.
    pub(crate) fn launch(&self, number: u32, memory_of: fn(&dyn Buffer) -> Option<&DeviceBuffer>) -> Result<()> {
        let context = self.capture.context;
        context.make_current()?;
        let mut last = lock_ignoring_poison(&self.last);
        let (memory, kept) = (lock_ignoring_poison(&self.capture.memory), lock_ignoring_poison(&self.capture.kept));
        let arrays = kept.arrays.iter().filter_map(|(buffer, _)| memory_of(buffer.as_ref()));
        let mut written: Vec<&DeviceBuffer> = memory.all_blocks.iter().map(|block| &**block).collect();
        for (buffer, writes) in &kept.arrays {
            match memory_of(buffer.as_ref()) {
                Some(buffer) if *writes => written.push(buffer),
                Some(buffer) => buffer.prepare_read_on_stream(number)?,
                None => {}
            }
        }
        written.iter().try_for_each(|buffer| buffer.prepare_write_on_stream(number))?;
        context.record_graph_launch(number, &self.capture.fault, arrays)?;
        // SAFETY: the graph and stream `number` are of this context, and `last` is locked. The graph keeps its memory and
        // modules, and the stream waits for all other users of that memory.
        unsafe { context.launch_graph_exec(number, self.exec.0) }?;
        // If no event can be recorded, the host waits for the launch, because the graph must outlive the launch.
        let mark = context.record_stream_mark(number).or_else(|error| context.wait_for_stream(number).and(Err(error)))?;
        if context.has_several_streams() {
            written.iter().for_each(|buffer| buffer.record_write_mark(&mark));
        }
        *last = Some(mark);
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let last = lock_ignoring_poison(&self.last).take();
        // Waits for the last launch of the graph, because the memory and modules that the launch uses are dropped afterwards.
        let ended = last.is_none_or(|mark| mark.wait_on_host().is_ok());
        if ended && self.capture.context.make_current().is_ok() {
            // SAFETY: the handle is destroyed only in this `drop`, and the wait for its last launch ensures that the graph is not running.
            unsafe { sys::cuGraphExecDestroy(self.exec.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::find_best_fit;

    #[test]
    fn blocks_are_used_again_where_they_fit() {
        let fit = |sizes: &[usize], bytes| find_best_fit(sizes.iter().copied(), bytes);
        assert_eq!(fit(&[], 1), None);
        assert_eq!(fit(&[1000, 4000, 1500], 1200), Some(2), "the smallest that is large enough");
        assert_eq!(fit(&[4000], 1200), None, "more than half would be unused");
        assert_eq!(fit(&[1024], 8), Some(0), "small blocks are exempt");
        assert_eq!(fit(&[1000], 1001), None);
    }
}
