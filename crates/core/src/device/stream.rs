//! Streams, which are queues of work on a device, and events, which are markers in these queues.
//!
//! A thread queues operations on its current stream of the device. Work on one stream runs in order, work on different streams may overlap.
//! If work uses an array that another stream computes, the device waits for that array, and the host continues.

use std::cell::RefCell;
use std::fmt;

pub use super::event::Event;
use crate::types::device::Device;

/// A queue of work on a device. `Copy`; lives as long as the process.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, Device, NdArray, Stream, ones};
/// # fn main() -> cuprum::Result<()> {
/// let device = Device::current()?;
/// let copies = Stream::new(device)?;
/// let a = copies.scope(|| ones(1000, DType::F32))?; // made on `copies`
/// let sum = a.sum(())?;                                       // on the default stream, which waits for `a`
/// assert_eq!(sum.item()?.as_f64(), 1000.0);
/// copies.synchronize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    /// The device of the stream.
    pub device: Device,
    /// Number of the stream on its device; 0 for the default stream. Ids from [`Stream::FIRST_CAPTURE_STREAM_ID`] belong to streams
    /// that capture a [`Graph`](crate::Graph).
    pub id: u32,
}

thread_local! {
    /// Streams of the enclosing [`Stream::scope`] calls of this thread, the innermost last.
    static SCOPED_STREAMS: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Lowest id of the streams that capture a graph. Lower ids belong to ordinary streams.
    pub const FIRST_CAPTURE_STREAM_ID: u32 = 64;

    /// Returns the default stream, which is current outside of [`Stream::scope`].
    pub fn default_of(device: Device) -> Stream {
        Stream { device, id: 0 }
    }

    /// Returns this thread's current stream of `device`: the stream of the innermost enclosing [`Stream::scope`] for that device, else the
    /// default stream.
    #[inline]
    pub fn current(device: Device) -> Stream {
        // `try_with`, because destructors may call this function while the thread ends, after the thread-local is destroyed.
        let scoped = SCOPED_STREAMS.try_with(|scopes| scopes.borrow().iter().rev().find(|stream| stream.device == device).copied());
        scoped.ok().flatten().unwrap_or(Stream { device, id: 0 })
    }

    /// Runs `f` with this stream as the current stream of its device on this thread, like `with stream:` in CuPy.
    ///
    /// Deferred work runs on the stream that is current at its evaluation: call [`NdArray::eval`](crate::NdArray::eval) inside `f`.
    pub fn scope<R>(self, f: impl FnOnce() -> R) -> R {
        struct PopScopedStreamOnDrop;
        impl Drop for PopScopedStreamOnDrop {
            fn drop(&mut self) {
                let _ = SCOPED_STREAMS.try_with(|scopes| scopes.borrow_mut().pop());
            }
        }
        let _ = SCOPED_STREAMS.try_with(|scopes| scopes.borrow_mut().push(self));
        let _leave = PopScopedStreamOnDrop;
        f()
    }

    /// Returns whether work on this stream is captured into a graph instead of running.
    pub fn is_capturing(self) -> bool {
        self.id >= Stream::FIRST_CAPTURE_STREAM_ID
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {} of {}", self.id, self.device)
    }
}

/// Runs `f` with `stream` as the current stream of its device on this thread, as [`Stream::scope`] does.
pub fn with_stream<R>(stream: Stream, f: impl FnOnce() -> R) -> R {
    stream.scope(f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceKind;

    #[test]
    fn scopes_nest_by_device() {
        let kind = DeviceKind::intern("scoped").unwrap();
        let (one, two) = (Device::new(kind, 0), Device::new(kind, 1));
        let stream = |device, id| Stream { device, id };
        assert_eq!(Stream::current(one), Stream::default_of(one));
        stream(one, 3).scope(|| {
            assert_eq!((Stream::current(one).id, Stream::current(two).id), (3, 0));
            with_stream(stream(two, 5), || assert_eq!((Stream::current(one).id, Stream::current(two).id), (3, 5)));
            stream(one, 4).scope(|| assert_eq!(Stream::current(one).id, 4));
            assert_eq!(std::thread::spawn(move || Stream::current(one).id).join().unwrap(), 0, "another thread has its own");
            assert_eq!((Stream::current(one).id, Stream::current(two).id), (3, 0));
        });
        let thrown = std::panic::catch_unwind(|| stream(one, 9).scope(|| panic!("out")));
        assert!(thrown.is_err() && Stream::current(one).id == 0, "a panic restores the stream");
        assert!(stream(one, Stream::FIRST_CAPTURE_STREAM_ID).is_capturing() && !stream(one, 32).is_capturing());
    }
}
