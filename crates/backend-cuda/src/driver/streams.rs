//! The streams of a context.
//!
//! Stream 0 is created with the context, others by [`Context::new_stream`], up to [`MOST`], which are then reused in turn. No
//! stream is destroyed, because memory blocks refer to streams.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuprum_core::Stream;

use super::capture::{Capture, FIRST_CAPTURE};
use super::mark::{Raw, RawEvent};
use super::order::{Queues, StreamSet, numbers};
use super::{Context, check, sys};
use crate::error::Result;

/// Maximum number of streams besides the first. CUDA runs at most 128 kernels at once, and maps more streams to few hardware
/// queues.
const MOST: usize = 32;

/// The streams of one context.
pub(super) struct Streams {
    first: Raw,
    others: [OnceLock<Raw>; MOST],
    /// Number of streams that were requested.
    requested: AtomicU32,
    /// Whether more than the first stream exists.
    several: AtomicBool,
    making: Mutex<()>,
    /// Per stream, the lock for launching a graph on it or making it wait ([`Context::queue_wait`]).
    turns: [Mutex<()>; Context::MOST_STREAMS],
    /// Unused events without timing.
    events: Mutex<Vec<RawEvent>>,
    /// Active captures, by number from [`FIRST_CAPTURE`], and idle streams for the next ones.
    captures: Mutex<Vec<Option<Arc<Capture>>>>,
    idle: Mutex<Vec<Raw>>,
}

impl Streams {
    /// Returns an unused event, if there is one.
    pub(super) fn take_event(&self) -> Option<RawEvent> {
        lock(&self.events).pop()
    }

    /// Returns an event for reuse.
    pub(super) fn put_event(&self, event: RawEvent) {
        lock(&self.events).push(event);
    }

    /// Requires a current context.
    pub(super) fn new() -> Result<Streams> {
        Ok(Streams {
            first: make()?,
            others: [const { OnceLock::new() }; MOST],
            requested: AtomicU32::new(0),
            several: AtomicBool::new(false),
            making: Mutex::new(()),
            turns: [const { Mutex::new(()) }; Context::MOST_STREAMS],
            events: Mutex::default(),
            captures: Mutex::default(),
            idle: Mutex::default(),
        })
    }

    /// Returns an idle stream for a capture. Requires a current context.
    pub(super) fn take_idle(&self) -> Result<Raw> {
        let idle = lock(&self.idle).pop();
        idle.map_or_else(make, Ok)
    }

    pub(super) fn put_idle(&self, stream: Raw) {
        lock(&self.idle).push(stream);
    }

    /// Registers a capture and returns its number.
    pub(super) fn add_capture(&self, capture: Arc<Capture>) -> u32 {
        let mut captures = lock(&self.captures);
        let at = captures.iter().position(Option::is_none).unwrap_or(captures.len());
        if at == captures.len() {
            captures.push(None);
        }
        captures[at] = Some(capture);
        FIRST_CAPTURE + at as u32
    }

    pub(super) fn remove_capture(&self, number: u32) -> Option<Arc<Capture>> {
        lock(&self.captures).get_mut(number.checked_sub(FIRST_CAPTURE)? as usize)?.take()
    }

    pub(super) fn capture(&self, number: u32) -> Option<Arc<Capture>> {
        lock(&self.captures).get(number.checked_sub(FIRST_CAPTURE)? as usize)?.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make() -> Result<Raw> {
    let mut stream = ptr::null_mut();
    let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
    // SAFETY: a context is current and the out-pointer valid.
    check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
    Ok(Raw(stream))
}

impl Context {
    /// Maximum number of streams, including the first.
    pub(super) const MOST_STREAMS: usize = MOST + 1;

    /// Returns the number of a stream for new work. Creates a stream until there are 32 besides the first, then reuses these
    /// in turn.
    pub fn new_stream(&self) -> Result<u32> {
        let at = self.streams.requested.fetch_add(1, Ordering::Relaxed) as usize % MOST;
        let slot = &self.streams.others[at];
        let _making = lock(&self.streams.making);
        if slot.get().is_none() {
            self.bind()?;
            let raw = self.with_room(make)?;
            slot.get_or_init(|| raw);
        }
        self.streams.several.store(true, Ordering::Release);
        Ok(at as u32 + 1)
    }

    /// Returns the number of this thread's stream (`cuprum_core::Stream::current`).
    #[inline]
    pub fn stream_number(&self) -> u32 {
        match Stream::current(self.device()).id {
            0 => 0,
            number if self.known(number).is_some() => number,
            _ => 0, // a capture that has ended
        }
    }

    /// Returns this thread's stream (a `cudaStream_t` for runtime libraries).
    #[inline]
    pub fn stream(&self) -> sys::CUstream {
        self.raw_stream(self.stream_number())
    }

    /// Returns the stream with this number, or the first stream if there is none.
    #[inline]
    pub(crate) fn raw_stream(&self, number: u32) -> sys::CUstream {
        if number == 0 { self.streams.first.0 } else { self.known(number).unwrap_or(self.streams.first).0 }
    }

    fn known(&self, number: u32) -> Option<Raw> {
        if number >= FIRST_CAPTURE {
            return self.streams.capture(number).map(|capture| capture.stream());
        }
        self.streams.others.get((number as usize).checked_sub(1)?)?.get().copied()
    }

    /// Whether work may be on another stream than the first.
    #[inline]
    pub fn has_several_streams(&self) -> bool {
        self.streams.several.load(Ordering::Acquire)
    }

    /// Waits for one stream.
    pub(super) fn wait_for(&self, number: u32) -> Result<()> {
        Self::not_captured(number, "waiting for the device")?;
        self.bind()?;
        // SAFETY: a stream of this context.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw_stream(number)) })
    }

    /// Waits for all streams.
    pub(super) fn wait(&self) -> Result<()> {
        self.wait_for(0)?;
        let made = (1..=MOST as u32).filter(|&number| self.known(number).is_some());
        if self.has_several_streams() { made.into_iter().try_for_each(|number| self.wait_for(number)) } else { Ok(()) }
    }

    /// Makes a stream wait for an event of any context. The caller guarantees that the event is alive.
    ///
    /// A wait that is queued while another thread launches a graph on the same stream is occasionally lost (driver 580.159,
    /// `docs/notes/streams-and-graphs.md`). A lock prevents this, here and in [`Context::queue_graph`].
    pub(super) fn queue_wait(&self, stream: u32, event: sys::CUevent) -> Result<()> {
        self.bind()?;
        let _turn = self.turn(stream);
        // SAFETY: the event is alive. A stream may wait for an event of any context.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw_stream(stream), event, 0) })
    }

    /// Launches a graph on a stream, excluding concurrent waits on it.
    ///
    /// # Safety
    /// The requirements of `cuGraphLaunch`: a graph of this context that no other thread launches, whose memory and modules
    /// are alive.
    pub(super) unsafe fn queue_graph(&self, stream: u32, graph: sys::CUgraphExec) -> Result<()> {
        self.with_room(|| {
            let _turn = self.turn(stream);
            // SAFETY: guaranteed by the caller; the stream is of this context.
            check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph, self.raw_stream(stream)) })
        })
    }

    fn turn(&self, stream: u32) -> Option<MutexGuard<'_, ()>> {
        self.streams.turns.get(stream as usize).map(lock)
    }

    /// Makes a stream wait for all work queued so far on other streams.
    pub(super) fn wait_behind(&'static self, stream: u32, others: StreamSet) -> Result<()> {
        numbers(others).try_for_each(|other| Queues::wait(&self, stream, &self.mark(other)?))
    }
}
