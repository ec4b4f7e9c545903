//! Events: markers in the work queues of streams, with which streams wait for each other and work is timed.

use std::fmt;
use std::time::Duration;

use super::driver::DeviceEvent;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::types::device::Device;

/// A marker in the queue of a stream, with the time at which the stream reaches it.
///
/// The time is from the device's clock on a GPU and from the host's clock on the CPU.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, Device, Event, NdArray, ones};
/// # fn main() -> cuprum::Result<()> {
/// let device = Device::current()?;
/// let before = Event::record(device)?;
/// let total = ones((1000, 1000), DType::F64)?.sum(())?;
/// let after = Event::record(device)?;
/// println!("{} took {:?}", total.item()?, after.elapsed(&before)?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    pub(super) inner: Box<dyn DeviceEvent>,
    pub(super) stream: Stream,
}

impl Event {
    /// Records an event on this thread's current stream of the device, as [`Stream::record`] does.
    pub fn record(device: Device) -> Result<Event> {
        Stream::current(device).record()
    }

    /// Returns the stream on which the event was recorded.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Blocks the host until the stream has reached the event.
    pub fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    /// Returns whether the stream has reached the event.
    pub fn is_reached(&self) -> Result<bool> {
        self.inner.is_reached()
    }

    /// Returns the time from `earlier` to this event, or zero if the order is reversed. Waits for both events. The resolution on a GPU is
    /// about half a microsecond.
    ///
    /// # Errors
    /// [`Error::Device`] if the events are on different devices.
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
