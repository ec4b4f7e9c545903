//! Graphs: a stream that writes work down instead of running it, the memory that such work has for itself, and launching it again.
//!
//! A capture has a stream of its own, with a number from [`FIRST_CAPTURE`] on, that one thread uses. While it lasts, memory comes from
//! blocks that the graph owns: what is freed is handed out again within the capture, since a graph of one stream runs in order, and
//! nothing of it goes back before the graph and all arrays over it are gone. Arrays from outside and modules of kernels are kept.
//!
//! Captures are relaxed (`CU_STREAM_CAPTURE_MODE_RELAXED`): allocating, compiling and loading go on meanwhile. What would wait for the
//! captured work is refused here ([`Context::not_capturing`]), before the driver sees it and spoils the capture.

use std::any::Any;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuprum_core::Stream;
use cuprum_core::device::Buffer;

use super::fault::FaultCell;
use super::memory::DeviceBuffer;
use super::streams::{Mark, Raw};
use super::{Context, check, require, sys};
use crate::error::{CudaError, Result};

/// Numbers from here on are those of captures.
pub(super) const FIRST_CAPTURE: u32 = Stream::FIRST_CAPTURE;

const OPEN: u8 = 0;
const ENDED: u8 = 1;
const ABANDONED: u8 = 2;

/// What captured work needs to be there whenever it runs.
#[derive(Default)]
struct Kept {
    /// Memory of arrays from outside, and whether it is written.
    arrays: Vec<(Arc<dyn Buffer>, bool)>,
    /// Modules of kernels.
    others: Vec<Arc<dyn Any + Send + Sync>>,
}

/// A capture that goes on, and the memory of the graph that it becomes.
pub(super) struct Capture {
    context: &'static Context,
    stream: Raw,
    state: AtomicU8,
    memory: Mutex<GraphMemory>,
    kept: Mutex<Kept>,
    /// The error word of its kernels.
    pub(super) fault: Arc<FaultCell>,
}

/// Blocks of a graph, and those that are free within its capture.
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

/// The place of the free block that fits best: large enough, and not by more than half.
fn best_fit(free: impl Iterator<Item = usize>, bytes: usize) -> Option<usize> {
    let fitting = free.enumerate().filter(|&(_, size)| size >= bytes && size / 2 <= bytes.max(512));
    fitting.min_by_key(|&(_, size)| size).map(|(at, _)| at)
}

impl Capture {
    pub(super) fn stream(&self) -> Raw {
        self.stream
    }

    /// Memory for work of the capture: a block of the graph's.
    fn take(&self, bytes: usize) -> Result<Arc<DeviceBuffer>> {
        let mut memory = lock(&self.memory);
        if let Some(at) = best_fit(memory.free.iter().map(|b| b.len()), bytes) {
            return Ok(memory.free.swap_remove(at));
        }
        let block = Arc::new(self.context.alloc_for(0, bytes)?);
        memory.all.push(block.clone());
        Ok(block)
    }

    /// Work that is captured from now on may use the block; after the capture it stays as it is.
    pub(super) fn put(&self, block: Arc<DeviceBuffer>) {
        if self.state.load(Ordering::Acquire) == OPEN {
            lock(&self.memory).free.push(block);
        }
    }

    /// Whether it goes on, on the stream of this number.
    pub(super) fn is_on(&self, number: u32) -> bool {
        number >= FIRST_CAPTURE
            && self.state.load(Ordering::Acquire) == OPEN
            && self.context.streams.capture(number).is_some_and(|c| ptr::eq(&*c, self))
    }

    /// Lets go of what it has kept; arrays over its memory keep theirs.
    fn forget(&self) {
        let kept = std::mem::take(&mut *lock(&self.kept));
        let memory = std::mem::take(&mut *lock(&self.memory));
        drop((kept, memory)); // outside the locks
    }

    /// Refuses arrays that have no value: those of a capture that goes on, or was given up.
    pub(super) fn check(&self) -> Result<()> {
        let why = match self.state.load(Ordering::Acquire) {
            OPEN => "is of a graph that is still being captured, on another stream",
            ABANDONED => "was never computed: capturing the graph that it is of failed",
            _ => return Ok(()),
        };
        Err(CudaError::Invalid(format!("an array {why}")))
    }
}

impl Context {
    /// Starts a capture of this thread's work; returns the number of its stream.
    pub fn begin_capture(&'static self) -> Result<u32> {
        for name in ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphGetNodes", "cuGraphInstantiateWithFlags", "cuGraphLaunch"] {
            require(name)?;
        }
        for name in ["cuGraphDestroy", "cuGraphExecDestroy"] {
            require(name)?;
        }
        self.bind()?;
        let fault = self.new_fault_cell(true)?;
        let stream = self.streams.take_idle()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a stream of this context that nobody else uses.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.0, mode) })?;
        let (memory, kept) = (Mutex::default(), Mutex::default());
        let capture = Capture { context: self, stream, state: AtomicU8::new(OPEN), memory, kept, fault };
        Ok(self.streams.add_capture(Arc::new(capture)))
    }

    /// Ends a capture: the graph of what this thread queued since it began.
    pub fn end_capture(&'static self, number: u32) -> Result<Graph> {
        let capture = self.streams.remove_capture(number).ok_or_else(|| CudaError::Invalid("no such capture".into()))?;
        let ended = self.end(&capture);
        capture.state.store(if ended.is_ok() { ENDED } else { ABANDONED }, Ordering::Release);
        let (exec, nodes) = ended.inspect_err(|_| capture.forget())?;
        lock(&capture.memory).free.clear();
        Ok(Graph { exec, nodes, capture, last: Mutex::new(None) })
    }

    /// Gives a capture up. Arrays that it was to compute are without value from now on.
    pub fn abandon_capture(&'static self, number: u32) {
        if let Some(capture) = self.streams.remove_capture(number) {
            capture.state.store(ABANDONED, Ordering::Release);
            let ended = self.end(&capture);
            tracing::debug!(instantiated = ended.is_ok(), "a capture was given up");
            if let Ok((exec, _)) = ended {
                // SAFETY: made a moment ago, never launched.
                unsafe { sys::cuGraphExecDestroy(exec.0) };
            }
            capture.forget();
        }
    }

    /// Takes the stream out of its capture, whatever became of that, and makes what was captured ready to launch.
    fn end(&'static self, capture: &Capture) -> Result<(Exec, usize)> {
        self.bind()?;
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is capturing, as only this function ends that; the out-pointer is valid.
        let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(capture.stream.0, &mut graph) });
        self.streams.put_idle(capture.stream);
        if graph.is_null() {
            return ended.and(Err(CudaError::Invalid("the capture came to nothing: its work left the stream".into())));
        }
        let (mut exec, mut nodes) = (ptr::null_mut(), 0usize);
        let made = ended.and_then(|()| {
            // SAFETY: the graph is ours; without an array the driver gives the number of nodes alone.
            check("cuGraphGetNodes", unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut nodes) })?;
            self.with_room(|| {
                // SAFETY: as above; the out-pointer is valid.
                check("cuGraphInstantiate", unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) })
            })
        });
        // SAFETY: ours, destroyed only here; what was instantiated does not need it.
        unsafe { sys::cuGraphDestroy(graph) };
        made.map(|()| (Exec(exec), nodes))
    }

    /// Whether this thread's work is being captured.
    #[inline]
    pub fn is_capturing(&self) -> bool {
        self.stream_number() >= FIRST_CAPTURE
    }

    /// Whether a stream of this number is a capture's.
    #[inline]
    pub(crate) fn is_capture(&self, number: u32) -> bool {
        number >= FIRST_CAPTURE
    }

    /// An error where this thread's work is being captured, which has not run.
    pub(crate) fn not_capturing(&self, what: &str) -> Result<()> {
        Self::not_captured(self.stream_number(), what)
    }

    /// An error for the stream of a capture.
    pub(super) fn not_captured(number: u32, what: &str) -> Result<()> {
        if number >= FIRST_CAPTURE {
            return Err(CudaError::Invalid(format!("{what} cannot be captured into a graph: do it before the capture, or after a launch")));
        }
        Ok(())
    }

    /// Memory for captured work: a block of the graph's.
    pub(super) fn alloc_captured(&'static self, number: u32, bytes: usize) -> Result<(Arc<DeviceBuffer>, Arc<Capture>)> {
        let capture = self.streams.capture(number).ok_or_else(|| CudaError::Invalid("the capture has ended".into()))?;
        Ok((capture.take(bytes)?, capture))
    }

    /// The error word of the kernels that are captured on a stream.
    pub(super) fn capture_fault_cell(&'static self, number: u32) -> Result<Arc<FaultCell>> {
        let capture = self.streams.capture(number).ok_or_else(|| CudaError::Invalid("the capture has ended".into()))?;
        Ok(capture.fault.clone())
    }

    /// Keeps an array's memory as long as the graph that is being captured.
    pub(crate) fn keep_array(&self, buffer: &Arc<dyn Buffer>, writes: bool) {
        let Some(capture) = self.streams.capture(self.stream_number()) else { return };
        let mut kept = lock(&capture.kept);
        match kept.arrays.iter_mut().find(|(b, _)| Arc::ptr_eq(b, buffer)) {
            Some((_, written)) => *written |= writes,
            None => kept.arrays.push((buffer.clone(), writes)),
        }
    }

    /// Keeps something as long as the graph that is being captured on a stream.
    pub(crate) fn keep_other<T: Any + Send + Sync>(&self, number: u32, other: &Arc<T>) {
        let Some(capture) = self.streams.capture(number) else { return };
        let mut kept = lock(&capture.kept);
        let address = Arc::as_ptr(other).cast::<()>();
        if kept.others.iter().all(|o| Arc::as_ptr(o).cast::<()>() != address) {
            kept.others.push(other.clone());
        }
    }
}

/// What can be launched.
struct Exec(sys::CUgraphExec);

// SAFETY: a handle; the mutex beside it has it used by one thread at a time, as the driver asks.
unsafe impl Send for Exec {}
// SAFETY: as above.
unsafe impl Sync for Exec {}

/// Captured work, with all that it uses.
pub struct Graph {
    exec: Exec,
    nodes: usize,
    capture: Arc<Capture>,
    /// Behind the last launch. Its lock is held while the graph is used.
    last: Mutex<Option<Arc<Mark>>>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} nodes on {:?})", self.nodes, self.capture.context)
    }
}

impl Graph {
    /// How many kernels, copies and fills it has.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Whether it reads or writes this memory of somebody's.
    pub fn holds(&self, buffer: &dyn Buffer) -> bool {
        let address = ptr::from_ref(buffer).cast::<()>();
        lock(&self.capture.kept).arrays.iter().any(|(b, _)| Arc::as_ptr(b).cast::<()>() == address)
    }

    /// Queues it on a stream of its context. `memory_of` gives the memory behind an array's buffer.
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
        // SAFETY: the graph and the stream are of this context; what the graph uses is kept with it, and the stream waits for all
        // others that use it.
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
        // Memory and modules go after this: what runs must have ended.
        let ended = last.is_none_or(|mark| mark.wait().is_ok());
        if ended && self.capture.context.bind().is_ok() {
            // SAFETY: instantiated by us, destroyed only here, not running.
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
        assert_eq!(fit(&[4000], 1200), None, "more than half would lie idle");
        assert_eq!(fit(&[1024], 8), Some(0), "but not of a small one");
        assert_eq!(fit(&[1000], 1001), None);
    }
}
