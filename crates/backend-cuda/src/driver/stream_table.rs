//! The streams of one context by number, with their handles, unused events, and active captures.
//!
//! The stream with number 0 is created with the context. This stream is not CUDA's legacy default stream. Other streams are created on
//! request, up to [`MAX_ADDED_STREAMS`]. Further requests return these streams in turn. No stream is destroyed, because memory blocks refer
//! to streams. Captures are numbered from [`FIRST_CAPTURE_STREAM_ID`].

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use cuprum_core::Stream;

use super::primary_context::create_stream;
use super::sys;
use crate::driver::mutex_lock::lock_ignoring_poison;
use crate::error::Result;

/// First stream number of graph captures. Lower numbers are ordinary streams.
pub(super) const FIRST_CAPTURE_STREAM_ID: u32 = Stream::FIRST_CAPTURE_STREAM_ID;

/// Maximum number of streams besides stream 0. More streams rarely increase the throughput, because CUDA runs at most 128 kernels at once
/// and has few hardware queues.
const MAX_ADDED_STREAMS: usize = 32;

/// Maximum number of streams, including stream 0 but not the streams of captures.
pub(super) const MAX_STREAMS: usize = MAX_ADDED_STREAMS + 1;

/// The driver's handle of a stream.
#[derive(Clone, Copy)]
pub(super) struct StreamHandle(pub sys::CUstream);

// SAFETY: the driver allows a stream handle on any thread.
unsafe impl Send for StreamHandle {}
// SAFETY: the driver allows a stream handle on any thread.
unsafe impl Sync for StreamHandle {}

/// The driver's handle of an event without timing.
#[derive(Clone, Copy)]
pub(super) struct EventHandle(pub sys::CUevent);

// SAFETY: the driver allows an event handle on any thread.
unsafe impl Send for EventHandle {}
// SAFETY: the driver allows an event handle on any thread.
unsafe impl Sync for EventHandle {}

/// State of a graph capture. Its type is erased, because a layer above this module defines the type.
type CaptureState = Arc<dyn Any + Send + Sync>;

/// The active captures of one context.
#[derive(Default)]
struct ActiveCaptures {
    /// Number of graph captures begun so far.
    count: u32,
    /// The active captures, with their stream numbers.
    list: Vec<(u32, StreamHandle, CaptureState)>,
}

impl ActiveCaptures {
    fn find_capture(&self, number: u32) -> Option<&(u32, StreamHandle, CaptureState)> {
        self.list.iter().find(|(of, ..)| *of == number)
    }
}

/// The streams, unused events and active captures of one context.
pub(super) struct StreamTable {
    first: StreamHandle,
    added: [OnceLock<StreamHandle>; MAX_ADDED_STREAMS],
    /// Number of requests for a new stream so far.
    requested: AtomicU32,
    /// Whether a stream besides stream 0 exists.
    has_added_streams: AtomicBool,
    creating: Mutex<()>,
    /// One lock per stream. A thread holds the stream's lock while it launches a graph on the stream or makes the stream wait for an event.
    wait_locks: [Mutex<()>; MAX_STREAMS],
    /// Unused events without timing.
    events: Mutex<Vec<EventHandle>>,
    captures: Mutex<ActiveCaptures>,
    /// Streams that no capture uses, for later captures.
    idle: Mutex<Vec<StreamHandle>>,
}

impl StreamTable {
    pub fn new(first: sys::CUstream) -> StreamTable {
        StreamTable {
            first: StreamHandle(first),
            added: [const { OnceLock::new() }; MAX_ADDED_STREAMS],
            requested: AtomicU32::new(0),
            has_added_streams: AtomicBool::new(false),
            creating: Mutex::new(()),
            wait_locks: [const { Mutex::new(()) }; MAX_STREAMS],
            events: Mutex::default(),
            captures: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    /// Returns the stream with number 0, which was created with the context.
    #[inline]
    pub fn first_stream(&self) -> StreamHandle {
        self.first
    }

    /// Returns the stream `number`, which is not 0, or `None` if it does not exist.
    pub fn get_stream(&self, number: u32) -> Option<StreamHandle> {
        if number >= FIRST_CAPTURE_STREAM_ID {
            return lock_ignoring_poison(&self.captures).find_capture(number).map(|(_, stream, _)| *stream);
        }
        self.added.get((number as usize).checked_sub(1)?)?.get().copied()
    }

    /// Returns the numbers of all streams except stream 0 and the streams of captures.
    pub fn added_streams(&self) -> impl Iterator<Item = u32> {
        (1..).zip(&self.added).filter_map(|(number, slot)| slot.get().map(|_| number))
    }

    /// Returns whether a stream besides stream 0 exists.
    #[inline]
    pub fn has_several_streams(&self) -> bool {
        self.has_added_streams.load(Ordering::Acquire)
    }

    /// Returns the number of a stream for new work. Creates the stream with `create` until there are [`MAX_ADDED_STREAMS`], then returns
    /// existing streams in turn.
    pub fn next_stream(&self, create: impl FnOnce() -> Result<sys::CUstream>) -> Result<u32> {
        let at = self.requested.fetch_add(1, Ordering::Relaxed) as usize % MAX_ADDED_STREAMS;
        let slot = &self.added[at];
        let _creating = lock_ignoring_poison(&self.creating);
        if slot.get().is_none() {
            let raw = StreamHandle(create()?);
            slot.get_or_init(|| raw);
        }
        self.has_added_streams.store(true, Ordering::Release);
        Ok(at as u32 + 1)
    }

    /// Locks stream `number`, so that the caller may launch a graph on the stream or make the stream wait. Returns `None` for the stream of
    /// a capture.
    pub fn lock_stream(&self, number: u32) -> Option<MutexGuard<'_, ()>> {
        self.wait_locks.get(number as usize).map(lock_ignoring_poison)
    }

    /// Removes and returns an unused event, or returns `None` if there is none.
    pub fn take_event(&self) -> Option<EventHandle> {
        lock_ignoring_poison(&self.events).pop()
    }

    /// Takes back `event` for reuse.
    pub fn return_event(&self, event: EventHandle) {
        lock_ignoring_poison(&self.events).push(event);
    }

    /// Returns a stream that no capture uses, for a new capture. Requires a current context.
    pub fn take_capture_stream(&self) -> Result<StreamHandle> {
        let idle = lock_ignoring_poison(&self.idle).pop();
        idle.map_or_else(|| create_stream().map(StreamHandle), Ok)
    }

    /// Takes back `stream` for later captures.
    pub fn return_capture_stream(&self, stream: StreamHandle) {
        lock_ignoring_poison(&self.idle).push(stream);
    }

    /// Registers a capture on `stream` with its `state`, and returns the capture's stream number. Numbers are not reused, because the
    /// caller may still have the [`Stream`] of a capture that has ended.
    pub fn add_capture(&self, stream: StreamHandle, state: CaptureState) -> u32 {
        let captures = &mut *lock_ignoring_poison(&self.captures);
        let number = FIRST_CAPTURE_STREAM_ID.saturating_add(captures.count);
        captures.count = captures.count.saturating_add(1);
        captures.list.push((number, stream, state));
        number
    }

    /// Removes the active capture `number` and returns its state, or `None` if there is no such capture.
    pub fn remove_capture(&self, number: u32) -> Option<CaptureState> {
        let list = &mut lock_ignoring_poison(&self.captures).list;
        let at = list.iter().position(|(of, ..)| *of == number)?;
        Some(list.swap_remove(at).2)
    }

    /// Returns the state of the active capture `number`, or `None` if there is none.
    pub fn find_active_capture(&self, number: u32) -> Option<CaptureState> {
        lock_ignoring_poison(&self.captures).find_capture(number).map(|(.., state)| state.clone())
    }
}
