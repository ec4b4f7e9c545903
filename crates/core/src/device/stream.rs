//! Streams and events: queues of a device's work, and points in them.
//!
//! Every call goes to the stream that is current on its thread. Calls of one stream run in order, those of different streams may
//! overlap; an array that was made on one stream and is used on another is waited for there, by the device and without being asked.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use crate::device::{Device, DeviceEvent, driver};
use crate::error::{Error, Result};

/// A queue of work on a device. Cheap to copy; it lives as long as the process.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, Device, NdArray, Stream};
/// # fn main() -> cuprum::Result<()> {
/// let device = Device::current()?;
/// let copies = Stream::new(device)?;
/// let a = copies.scope(|| NdArray::ones(1000, DType::F32))?; // made on `copies`
/// let sum = a.sum(())?;                                       // on the default stream, which waits for `a`
/// assert_eq!(sum.item()?.as_f64(), 1000.0);
/// copies.synchronize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    /// The device it belongs to.
    pub device: Device,
    /// 0 for the default stream; from [`Stream::FIRST_CAPTURE`] on that of a [`Graph`](crate::Graph) which is being captured.
    pub id: u32,
}

thread_local! {
    /// The streams of the enclosing scopes, the innermost last.
    static SCOPES: RefCell<Vec<Stream>> = const { RefCell::new(Vec::new()) };
}

impl Stream {
    /// Ids from here on belong to captures.
    pub const FIRST_CAPTURE: u32 = 64;

    /// Another stream of the device. A device has as many as its backend finds sensible (32 with CUDA) and hands them out in turn, so
    /// that two of very many may be one; on a device whose work is done when it is called, such as the CPU, all are one.
    pub fn new(device: Device) -> Result<Stream> {
        Ok(Stream { device, id: driver(device)?.new_stream()? })
    }

    /// The stream that all work goes to outside of [`Stream::scope`].
    pub fn default_of(device: Device) -> Stream {
        Stream { device, id: 0 }
    }

    /// The stream that calls of this thread go to on `device`: that of the innermost enclosing [`Stream::scope`], else the default one.
    #[inline]
    pub fn current(device: Device) -> Stream {
        // While a thread ends its scopes are gone.
        let scoped = SCOPES.try_with(|scopes| scopes.borrow().iter().rev().find(|stream| stream.device == device).copied());
        scoped.ok().flatten().unwrap_or(Stream { device, id: 0 })
    }

    /// Runs `f` with this as the current stream of its device on this thread.
    ///
    /// What is deferred in `f` and runs later goes to the stream that is current then: `eval()` it inside.
    pub fn scope<R>(self, f: impl FnOnce() -> R) -> R {
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().pop());
            }
        }
        let _ = SCOPES.try_with(|scopes| scopes.borrow_mut().push(self));
        let _leave = Leave;
        f()
    }

    /// Waits until everything queued so far has run; reports errors found on the device, as [`Device::synchronize`] does.
    pub fn synchronize(self) -> Result<()> {
        driver(self.device)?.synchronize_stream(self)
    }

    /// A point behind everything queued so far.
    pub fn record(self) -> Result<Event> {
        let inner = driver(self.device)?.record_event(self)?;
        Ok(Event { inner, stream: self })
    }

    /// Makes what is queued from now on wait for an event, of this device or another; the host does not wait. Arrays need no such
    /// call: it is for what the library does not see, such as what kernels of your own share.
    pub fn wait(self, event: &Event) -> Result<()> {
        driver(self.device)?.wait_event(self, event.inner.as_ref())
    }

    /// Whether work is written into a graph instead of being run.
    pub fn is_capturing(self) -> bool {
        self.id >= Stream::FIRST_CAPTURE
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {} of {}", self.id, self.device)
    }
}

/// Runs `f` with `stream` as the current one of its device on this thread ([`Stream::scope`]).
pub fn with_stream<R>(stream: Stream, f: impl FnOnce() -> R) -> R {
    stream.scope(f)
}

/// A point in a stream, with its time: the device's clock on a GPU, the host's on the CPU.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, Device, Event, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let device = Device::current()?;
/// let before = Event::record(device)?;
/// let total = NdArray::ones((1000, 1000), DType::F64)?.sum(())?;
/// let after = Event::record(device)?;
/// println!("{} took {:?}", total.item()?, after.elapsed(&before)?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    inner: Box<dyn DeviceEvent>,
    stream: Stream,
}

impl Event {
    /// A point behind everything that this thread's current stream of the device has been given ([`Stream::record`]).
    pub fn record(device: Device) -> Result<Event> {
        Stream::current(device).record()
    }

    /// The stream it was recorded on.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Waits until the device has reached it.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    /// Whether the device has reached it.
    pub fn is_reached(&self) -> Result<bool> {
        self.inner.is_reached()
    }

    /// The time from `earlier`, of any stream of the same device, to this event; zero if it is not earlier. Waits for both. On a GPU
    /// it is good to about half a microsecond.
    pub fn elapsed(&self, earlier: &Event) -> Result<Duration> {
        if self.stream.device != earlier.stream.device {
            let message = format!("events on {} and {} have no common clock", self.stream.device, earlier.stream.device);
            return Err(Error::Device { op: "event", message });
        }
        let millis = self.inner.millis_since(earlier.inner.as_ref())?;
        Ok(Duration::from_secs_f64(millis.max(0.0) / 1e3))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.stream)
    }
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
        assert!(thrown.is_err() && Stream::current(one).id == 0, "left by a panic too");
        assert!(stream(one, Stream::FIRST_CAPTURE).is_capturing() && !stream(one, 32).is_capturing());
    }
}
