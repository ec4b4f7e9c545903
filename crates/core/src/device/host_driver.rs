//! The driver of the host device, and copies of device memory into host memory.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::device_drivers::driver;
use super::device_memory::{Buffer, MemoryStats};
use super::driver::{DeviceDriver, DeviceEvent, DeviceInfo};
use super::host_buffer::HostBuffer;
use super::host_pool;
use super::stream::Stream;
use crate::dtype::DType;
use crate::error::{Error, Result};

impl HostBuffer {
    /// Copies `nbytes` of a device buffer, starting at `byte_offset`, to the host. Waits for the device.
    ///
    /// Nonzero bytes of bool become 1.
    pub(crate) fn download_buffer(dtype: DType, buffer: &dyn Buffer, byte_offset: usize, nbytes: usize) -> Result<HostBuffer> {
        let mut host = Self::uninit(nbytes)?;
        driver(buffer.device())?.download(buffer, byte_offset, host.as_mut_bytes()?)?;
        if dtype == DType::Bool {
            host.normalize_bools()?;
        }
        Ok(host)
    }
}

/// The driver of the host device. The accelerator `cpu` provides this driver.
pub struct HostDriver {
    info: fn() -> DeviceInfo,
}

impl HostDriver {
    /// Returns a driver that reports the device properties that `info` returns, such as the SIMD level and the number of threads.
    pub fn new(info: fn() -> DeviceInfo) -> HostDriver {
        HostDriver { info }
    }
}

struct HostEvent(Instant);

impl DeviceEvent for HostEvent {
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64> {
        let other = earlier.as_any().downcast_ref::<HostEvent>().ok_or_else(|| Error::value("event", "events of different devices"))?;
        Ok(self.0.saturating_duration_since(other.0).as_secs_f64() * 1e3)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl DeviceDriver for HostDriver {
    fn allocate(&self, nbytes: usize, _stream: Stream) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(HostBuffer::uninit(nbytes)?))
    }
    fn upload(&self, bytes: &[u8], _stream: Stream) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(HostBuffer::from_bytes(bytes)?))
    }
    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()> {
        let host = buffer.as_any().downcast_ref::<HostBuffer>().ok_or_else(|| Error::value("download", "not a host buffer"))?;
        let bytes = byte_offset.checked_add(out.len()).and_then(|end| host.as_bytes().get(byte_offset..end));
        out.copy_from_slice(bytes.ok_or_else(|| Error::value("download", "range outside the buffer"))?);
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    fn record_event(&self, _stream: Stream) -> Result<Box<dyn DeviceEvent>> {
        Ok(Box::new(HostEvent(Instant::now())))
    }
    fn info(&self) -> DeviceInfo {
        DeviceInfo { memory_used: HostBuffer::bytes_in_use(), ..(self.info)() }
    }
    fn memory_stats(&self) -> Result<MemoryStats> {
        Ok(host_pool::host_memory_stats())
    }
    fn reset_peak_memory(&self) -> Result<()> {
        host_pool::reset_peak_bytes();
        Ok(())
    }
    fn set_memory_limit(&self, limit: Option<usize>) -> Result<()> {
        host_pool::set_host_memory_limit(limit);
        Ok(())
    }
    fn free_cached_memory(&self) -> Result<()> {
        host_pool::free_cached_blocks();
        Ok(())
    }
}
