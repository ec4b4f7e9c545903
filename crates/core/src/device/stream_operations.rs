//! The functions of streams that need the device's driver: creation, synchronisation, and events.

use super::device_drivers::driver;
use super::event::Event;
use super::stream::Stream;
use crate::device::Device;
use crate::error::Result;

impl Stream {
    /// Returns a stream of `device`: one other than the default stream, if the device has several streams.
    ///
    /// A backend has a fixed number of streams (CUDA: 32) and assigns them in turn. After that many calls, the earlier streams are returned
    /// again. A synchronous device, such as the CPU, has only the default stream.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device is not ready.
    pub fn new(device: Device) -> Result<Stream> {
        Ok(Stream { device, id: driver(device)?.new_stream()? })
    }

    /// Blocks the host until all work queued on the stream is done. Reports asynchronous errors, as [`Device::synchronize`] does.
    pub fn synchronize(self) -> Result<()> {
        driver(self.device)?.synchronize_stream(self)
    }

    /// Records an event after all work queued on the stream so far.
    pub fn record(self) -> Result<Event> {
        let inner = driver(self.device)?.record_event(self)?;
        Ok(Event { inner, stream: self })
    }

    /// Queues a wait: later work of this stream starts after `event`, which may be of another device. Does not block the host, unless this
    /// is a stream of a synchronous device such as the CPU.
    ///
    /// Arrays are synchronised automatically. Explicit waits are for memory that the library does not track, such as the memory of
    /// user-defined kernels.
    pub fn wait(self, event: &Event) -> Result<()> {
        driver(self.device)?.wait_event(self, event.inner.as_ref())
    }
}
