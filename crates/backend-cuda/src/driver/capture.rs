//! CUDA graphs: captured work of one stream, the memory that it owns, and its launches.
//!
//! A capture has its own stream, numbered from [`FIRST_CAPTURE`], and belongs to one thread. Memory allocated during a
//! capture belongs to the graph. Freed blocks are reused within the capture, since the graph runs in order. They return to
//! the pool after the graph and all arrays over them are gone. The graph keeps outside arrays and kernel modules alive.
//!
//! Captures are relaxed (`CU_STREAM_CAPTURE_MODE_RELAXED`), so that allocation, compilation and loading continue.
//! [`Context::not_capturing`] rejects waits for captured work, because the driver would invalidate the capture.

use std::any::Any;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuprum_core::device::Buffer;

use super::fault::FaultCell;
use super::mark::Mark;
use super::memory::{DeviceBuffer, OwningGraph};
use super::primary::check;
use super::probe::require;
use super::stream_table::{FIRST_CAPTURE, RawStream};
use super::{Context, sys};
use crate::error::{CudaError, Result};

const OPEN: u8 = 0;
const ENDED: u8 = 1;
const ABANDONED: u8 = 2;

/// Objects that a graph keeps alive.
#[derive(Default)]
struct Kept {
    /// Buffers that the graph uses but does not own, each with whether the graph writes it.
    arrays: Vec<(Arc<dyn Buffer>, bool)>,
    /// Kernel modules.
    others: Vec<Arc<dyn Any + Send + Sync>>,
}

/// An active capture, and the memory of its graph.
struct Capture {
    context: &'static Context,
    stream: RawStream,
    state: AtomicU8,
    memory: Mutex<GraphMemory>,
    kept: Mutex<Kept>,
    /// The error word of the graph's kernels.
    fault: Arc<FaultCell>,
}

/// All blocks of a graph, and those that are free within its capture.
#[derive(Default)]
struct GraphMemory {
    all: Vec<Arc<DeviceBuffer>>,
    free: Vec<Arc<DeviceBuffer>>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Capture({:?}, state {})", self.context, self.state.load(Ordering::Relaxed))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the index of the smallest free block that fits and is not more than twice as large.
fn best_fit(free: impl Iterator<Item = usize>, bytes: usize) -> Option<usize> {
    let fitting = free.enumerate().filter(|&(_, size)| size >= bytes && size / 2 <= bytes.max(512));
    fitting.min_by_key(|&(_, size)| size).map(|(at, _)| at)
}

impl Capture {
    /// Allocates a block of the graph.
    fn take(&self, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        let mut memory = lock(&self.memory);
        if let Some(at) = best_fit(memory.free.iter().map(|b| b.len()), bytes) {
            return Ok(memory.free.swap_remove(at));
        }
        let block = Arc::new(self.context.alloc_on(0, bytes)?);
        memory.all.push(block.clone());
        Ok(block)
    }

    /// Drops all kept objects. Arrays over the graph's memory keep their blocks.
    fn forget(&self) {
        let kept = std::mem::take(&mut *lock(&self.kept));
        let memory = std::mem::take(&mut *lock(&self.memory));
        drop((kept, memory)); // outside the locks
    }
}

impl OwningGraph for Capture {
    fn is_captured_on(&self, stream: u32) -> bool {
        stream >= FIRST_CAPTURE
            && self.state.load(Ordering::Acquire) == OPEN
            && self.context.capture(stream).is_some_and(|active| ptr::eq(&*active, self))
    }

    fn check(&self) -> Result<()> {
        let why = match self.state.load(Ordering::Acquire) {
            OPEN => "is of a graph that is still being captured, on another stream",
            ABANDONED => "was never computed: capturing the graph that it is of failed",
            _ => return Ok(()),
        };
        Err(CudaError::Invalid(format!("an array {why}")))
    }

    /// Returns a block, which later work of the capture may reuse. Has no effect after the capture.
    fn put_back(&self, block: Arc<DeviceBuffer>) {
        if self.state.load(Ordering::Acquire) == OPEN {
            lock(&self.memory).free.push(block);
        }
    }

    fn fault(&self) -> &Arc<FaultCell> {
        &self.fault
    }
}

impl Context {
    /// Starts a capture of this thread's work. Returns the number of its stream.
    pub fn begin_capture(&'static self) -> Result<u32> {
        for name in ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphGetNodes", "cuGraphInstantiateWithFlags", "cuGraphLaunch"] {
            require(name)?;
        }
        for name in ["cuGraphDestroy", "cuGraphExecDestroy"] {
            require(name)?;
        }
        self.bind()?;
        let fault = self.new_fault_cell(true)?;
        let stream = self.retry_out_of_memory(|| self.streams.take_idle())?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: an idle stream of this context.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.0, mode) })?;
        let (memory, kept) = (Mutex::default(), Mutex::default());
        let capture = Capture { context: self, stream, state: AtomicU8::new(OPEN), memory, kept, fault };
        Ok(self.streams.add_capture(stream, Arc::new(capture)))
    }

    /// Ends a capture and returns the graph of the work that this thread queued since its begin.
    pub fn end_capture(&'static self, number: u32) -> Result<Graph> {
        let capture = self.remove_capture(number).ok_or_else(|| CudaError::Invalid("no such capture".into()))?;
        let ended = self.end(&capture);
        capture.state.store(if ended.is_ok() { ENDED } else { ABANDONED }, Ordering::Release);
        let (exec, nodes) = ended.inspect_err(|_| capture.forget())?;
        lock(&capture.memory).free.clear();
        Ok(Graph { exec, nodes, capture, last: Mutex::new(None) })
    }

    /// Abandons a capture. Arrays that it would have computed have no value.
    pub fn abandon_capture(&'static self, number: u32) {
        if let Some(capture) = self.remove_capture(number) {
            capture.state.store(ABANDONED, Ordering::Release);
            let ended = self.end(&capture);
            tracing::debug!(instantiated = ended.is_ok(), "a capture was given up");
            if let Ok((exec, _)) = ended {
                // SAFETY: just instantiated and never launched.
                unsafe { sys::cuGraphExecDestroy(exec.0) };
            }
            capture.forget();
        }
    }

    /// Ends the capture of the stream, even after an error, and instantiates the graph.
    fn end(&'static self, capture: &Capture) -> Result<(Exec, usize)> {
        self.bind()?;
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is capturing, as only this function ends that; the out-pointer is valid.
        let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(capture.stream.0, &mut graph) });
        self.streams.put_idle(capture.stream);
        if graph.is_null() {
            return ended.and(Err(CudaError::Invalid("the capture is invalid: its work joined another stream".into())));
        }
        let (mut exec, mut nodes) = (ptr::null_mut(), 0usize);
        let made = ended.and_then(|()| {
            // SAFETY: the graph is valid; without an array the driver returns the number of nodes only.
            check("cuGraphGetNodes", unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut nodes) })?;
            self.retry_out_of_memory(|| {
                // SAFETY: the graph and the out-pointer are valid.
                check("cuGraphInstantiate", unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) })
            })
        });
        // SAFETY: destroyed only here; the instantiated graph does not depend on it.
        unsafe { sys::cuGraphDestroy(graph) };
        made.map(|()| (Exec(exec), nodes))
    }

    /// Returns an active capture.
    fn capture(&self, number: u32) -> Option<Arc<Capture>> {
        self.streams.capture(number)?.downcast().ok()
    }

    fn remove_capture(&self, number: u32) -> Option<Arc<Capture>> {
        self.streams.remove_capture(number)?.downcast().ok()
    }

    /// Allocates `bytes` of uninitialised device memory (aligned to at least 256), in the order of this thread's stream.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`] beyond the limit, or if the device is full after unused memory was returned.
    pub fn alloc(&'static self, bytes: usize) -> Result<DeviceBuffer> {
        self.alloc_for(self.stream_number(), bytes)
    }

    /// [`Context::alloc`] for a stream. On the stream of a capture, the memory belongs to the graph.
    pub(super) fn alloc_for(&'static self, number: u32, bytes: usize) -> Result<DeviceBuffer> {
        if number < FIRST_CAPTURE || bytes == 0 {
            return self.alloc_on(number, bytes);
        }
        let capture = self.capture(number).ok_or_else(|| CudaError::Invalid("the capture has ended".into()))?;
        let block = capture.take(bytes)?;
        Ok(DeviceBuffer::of_graph(number, bytes, block, capture))
    }

    /// Returns the error word of the kernels that are captured on a stream.
    pub(super) fn capture_fault_cell(&'static self, number: u32) -> Result<Arc<FaultCell>> {
        let capture = self.capture(number).ok_or_else(|| CudaError::Invalid("the capture has ended".into()))?;
        Ok(capture.fault.clone())
    }

    /// Launches a graph on a stream, excluding concurrent waits on it.
    ///
    /// # Safety
    /// The requirements of `cuGraphLaunch`: a graph of this context that no other thread launches, whose memory and modules
    /// are alive.
    unsafe fn queue_graph(&self, stream: u32, graph: sys::CUgraphExec) -> Result<()> {
        self.retry_out_of_memory(|| {
            let _turn = self.streams.turn(stream);
            // SAFETY: guaranteed by the caller; the stream is of this context.
            check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph, self.raw_stream(stream)) })
        })
    }

    /// Keeps an array's memory alive as long as the graph that is being captured.
    pub(crate) fn keep_array(&self, buffer: &Arc<dyn Buffer>, writes: bool) {
        let Some(capture) = self.capture(self.stream_number()) else { return };
        let mut kept = lock(&capture.kept);
        match kept.arrays.iter_mut().find(|(b, _)| Arc::ptr_eq(b, buffer)) {
            Some((_, written)) => *written |= writes,
            None => kept.arrays.push((buffer.clone(), writes)),
        }
    }

    /// Keeps an object alive as long as the graph that is being captured on a stream.
    pub(crate) fn keep_other<T: Any + Send + Sync>(&self, number: u32, other: &Arc<T>) {
        let Some(capture) = self.capture(number) else { return };
        let mut kept = lock(&capture.kept);
        let address = Arc::as_ptr(other).cast::<()>();
        if kept.others.iter().all(|o| Arc::as_ptr(o).cast::<()>() != address) {
            kept.others.push(other.clone());
        }
    }
}

/// An instantiated graph.
struct Exec(sys::CUgraphExec);

// SAFETY: a handle; the mutex next to it restricts it to one thread at a time, as the driver requires.
unsafe impl Send for Exec {}
// SAFETY: a handle, used under a mutex.
unsafe impl Sync for Exec {}

/// Captured work, with everything that it uses.
pub struct Graph {
    exec: Exec,
    nodes: usize,
    capture: Arc<Capture>,
    /// The point in the stream after the last launch. Locked while the graph is used.
    last: Mutex<Option<Arc<Mark>>>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} nodes on {:?})", self.nodes, self.capture.context)
    }
}

impl Graph {
    /// Returns the number of kernels, copies and fills.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whether the graph reads or writes this outside memory.
    pub fn holds(&self, buffer: &dyn Buffer) -> bool {
        let address = ptr::from_ref(buffer).cast::<()>();
        lock(&self.capture.kept).arrays.iter().any(|(b, _)| Arc::as_ptr(b).cast::<()>() == address)
    }

    /// Launches the graph on a stream of its context. `memory_of` returns the device memory of a buffer.
    pub(crate) fn launch(&self, number: u32, memory_of: fn(&dyn Buffer) -> Option<&DeviceBuffer>) -> Result<()> {
        let context = self.capture.context;
        context.bind()?;
        let mut last = lock(&self.last);
        let (memory, kept) = (lock(&self.capture.memory), lock(&self.capture.kept));
        let arrays = kept.arrays.iter().filter_map(|(buffer, _)| memory_of(buffer.as_ref()));
        let mut written: Vec<&DeviceBuffer> = memory.all.iter().map(|block| &**block).collect();
        for (buffer, writes) in &kept.arrays {
            match memory_of(buffer.as_ref()) {
                Some(buffer) if *writes => written.push(buffer),
                Some(buffer) => buffer.reads_on(number)?,
                None => {}
            }
        }
        written.iter().try_for_each(|buffer| buffer.writes_on(number))?;
        context.launch_fault_cell(number, &self.capture.fault, arrays)?;
        // SAFETY: graph and stream are of this context. The graph keeps its memory and modules, and the stream waits for all
        // other users of them.
        unsafe { context.queue_graph(number, self.exec.0) }?;
        let mark = context.mark(number)?;
        if context.has_several_streams() {
            written.iter().for_each(|buffer| buffer.written_at(&mark));
        }
        *last = Some(mark);
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let last = lock(&self.last).take();
        // Running work must end before memory and modules are dropped.
        let ended = last.is_none_or(|mark| mark.wait().is_ok());
        if ended && self.capture.context.bind().is_ok() {
            // SAFETY: destroyed only here and not running.
            unsafe { sys::cuGraphExecDestroy(self.exec.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::best_fit;

    #[test]
    fn blocks_are_used_again_where_they_fit() {
        let fit = |sizes: &[usize], bytes| best_fit(sizes.iter().copied(), bytes);
        assert_eq!(fit(&[], 1), None);
        assert_eq!(fit(&[1000, 4000, 1500], 1200), Some(2), "the smallest that is large enough");
        assert_eq!(fit(&[4000], 1200), None, "more than half would be unused");
        assert_eq!(fit(&[1024], 8), Some(0), "small blocks are exempt");
        assert_eq!(fit(&[1000], 1001), None);
    }
}
