//! The streams of one context by number: handles, unused events, and active captures.
//!
//! Stream 0 is created with the context, others on request, up to [`MAX_ADDED`], which are then reused in turn. No stream is
//! destroyed, because memory blocks refer to streams. Captures are numbered from [`FIRST_CAPTURE`].

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuprum_core::Stream;

use super::primary::create_stream;
use super::sys;
use crate::error::Result;

/// First stream number of captures.
pub(super) const FIRST_CAPTURE: u32 = Stream::FIRST_CAPTURE;

/// Maximum number of streams besides the first. CUDA runs at most 128 kernels at once, and maps more streams to few hardware
/// queues.
const MAX_ADDED: usize = 32;

/// Maximum number of streams, including the first.
pub(super) const MAX_STREAMS: usize = MAX_ADDED + 1;

/// A stream handle of the driver.
#[derive(Clone, Copy)]
pub(super) struct RawStream(pub sys::CUstream);

// SAFETY: any thread may use a stream handle.
unsafe impl Send for RawStream {}
// SAFETY: any thread may use a stream handle.
unsafe impl Sync for RawStream {}

/// An event handle of the driver, without timing.
#[derive(Clone, Copy)]
pub(super) struct RawEvent(pub sys::CUevent);

// SAFETY: any thread may use an event handle.
unsafe impl Send for RawEvent {}
// SAFETY: any thread may use an event handle.
unsafe impl Sync for RawEvent {}

/// State of a capture, whose type a module above defines.
type CaptureState = Arc<dyn Any + Send + Sync>;

/// The streams of one context.
pub(super) struct StreamTable {
    first: RawStream,
    added: [OnceLock<RawStream>; MAX_ADDED],
    /// Number of streams that were requested.
    requested: AtomicU32,
    /// Whether more than the first stream exists.
    several: AtomicBool,
    creating: Mutex<()>,
    /// Per stream, the lock that a thread holds while it launches a graph on the stream or makes the stream wait.
    turns: [Mutex<()>; MAX_STREAMS],
    /// Unused events without timing.
    events: Mutex<Vec<RawEvent>>,
    /// Active captures, by number from [`FIRST_CAPTURE`].
    captures: Mutex<Vec<Option<(RawStream, CaptureState)>>>,
    /// Streams for the next captures.
    idle: Mutex<Vec<RawStream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamTable {
    pub fn new(first: sys::CUstream) -> StreamTable {
        StreamTable {
            first: RawStream(first),
            added: [const { OnceLock::new() }; MAX_ADDED],
            requested: AtomicU32::new(0),
            several: AtomicBool::new(false),
            creating: Mutex::new(()),
            turns: [const { Mutex::new(()) }; MAX_STREAMS],
            events: Mutex::default(),
            captures: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    /// Returns stream 0.
    #[inline]
    pub fn first(&self) -> RawStream {
        self.first
    }

    /// Returns the stream with a number other than 0, if it exists.
    pub fn get(&self, number: u32) -> Option<RawStream> {
        if number >= FIRST_CAPTURE {
            return lock(&self.captures).get((number - FIRST_CAPTURE) as usize)?.as_ref().map(|(stream, _)| *stream);
        }
        self.added.get((number as usize).checked_sub(1)?)?.get().copied()
    }

    /// Returns the numbers of the streams besides the first, captures excluded.
    pub fn added(&self) -> impl Iterator<Item = u32> {
        (1..).zip(&self.added).filter_map(|(number, slot)| slot.get().map(|_| number))
    }

    /// Whether more than the first stream exists.
    #[inline]
    pub fn has_several(&self) -> bool {
        self.several.load(Ordering::Acquire)
    }

    /// Returns the number of a stream for new work, which `create` makes until there are [`MAX_ADDED`].
    pub fn next(&self, create: impl FnOnce() -> Result<sys::CUstream>) -> Result<u32> {
        let at = self.requested.fetch_add(1, Ordering::Relaxed) as usize % MAX_ADDED;
        let slot = &self.added[at];
        let _creating = lock(&self.creating);
        if slot.get().is_none() {
            let raw = RawStream(create()?);
            slot.get_or_init(|| raw);
        }
        self.several.store(true, Ordering::Release);
        Ok(at as u32 + 1)
    }

    /// Locks a stream for launching a graph on it or making it wait. `None` for captures.
    pub fn turn(&self, number: u32) -> Option<MutexGuard<'_, ()>> {
        self.turns.get(number as usize).map(lock)
    }

    /// Returns an unused event, if there is one.
    pub fn take_event(&self) -> Option<RawEvent> {
        lock(&self.events).pop()
    }

    /// Returns an event for reuse.
    pub fn put_event(&self, event: RawEvent) {
        lock(&self.events).push(event);
    }

    /// Returns an idle stream for a capture. Requires a current context.
    pub fn take_idle(&self) -> Result<RawStream> {
        let idle = lock(&self.idle).pop();
        idle.map_or_else(|| create_stream().map(RawStream), Ok)
    }

    /// Returns a stream for the next capture.
    pub fn put_idle(&self, stream: RawStream) {
        lock(&self.idle).push(stream);
    }

    /// Registers a capture on a stream and returns its number.
    pub fn add_capture(&self, stream: RawStream, state: CaptureState) -> u32 {
        let mut captures = lock(&self.captures);
        let at = captures.iter().position(Option::is_none).unwrap_or(captures.len());
        if at == captures.len() {
            captures.push(None);
        }
        captures[at] = Some((stream, state));
        FIRST_CAPTURE + at as u32
    }

    /// Removes an active capture and returns its state.
    pub fn remove_capture(&self, number: u32) -> Option<CaptureState> {
        lock(&self.captures).get_mut(number.checked_sub(FIRST_CAPTURE)? as usize)?.take().map(|(_, state)| state)
    }

    /// Returns the state of an active capture.
    pub fn capture(&self, number: u32) -> Option<CaptureState> {
        lock(&self.captures).get(number.checked_sub(FIRST_CAPTURE)? as usize)?.as_ref().map(|(_, state)| state.clone())
    }
}
