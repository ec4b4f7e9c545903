//! Streams of other libraries, and streams of this crate for use by other libraries.

use cuprum_core::{Result, Stream};

use crate::device;
use crate::driver::sys;

/// A CUDA stream that another library created.
///
/// The default streams are constants. [`ForeignStream::from_raw`] takes the handle of any other stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ForeignStream(usize);

impl ForeignStream {
    /// The legacy default stream (`CU_STREAM_LEGACY`), which PyTorch, CuPy and CUDA C++ use by default.
    pub const LEGACY_DEFAULT: ForeignStream = ForeignStream(1);
    /// The default stream of the thread that uses this value (`CU_STREAM_PER_THREAD`).
    pub const PER_THREAD_DEFAULT: ForeignStream = ForeignStream(2);

    /// Returns the stream whose driver handle is `handle`, a `CUstream` or `cudaStream_t`. Null is the legacy default stream.
    ///
    /// # Safety
    /// The stream is of the primary context of the device with which the value is used. The stream exists as long as the value and every
    /// [`SharedPointer`](super::SharedPointer) made with it.
    pub unsafe fn from_raw(handle: sys::CUstream) -> ForeignStream {
        match handle as usize {
            0 => ForeignStream::LEGACY_DEFAULT,
            address => ForeignStream(address),
        }
    }

    /// Returns the driver's handle of the stream.
    pub fn raw(self) -> sys::CUstream {
        self.0 as sys::CUstream
    }
}

/// Returns the driver's handle of `stream`, such as `Stream::current(device)`, so that another library can queue work on the stream or make
/// the stream wait.
///
/// The handle is valid until the process ends. Callers must not destroy the stream.
///
/// # Errors
/// [`Error::Device`](cuprum_core::Error::Device) if the stream is not of a CUDA device.
pub fn raw_stream(stream: Stream) -> Result<sys::CUstream> {
    let context = device::cuda_context("raw_stream", stream.device)?;
    stream.scope(|| Ok(context.stream()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_streams_have_the_numbers_of_the_driver() {
        // SAFETY: the values are not used with a device.
        let raw = |handle: usize| unsafe { ForeignStream::from_raw(handle as sys::CUstream) };
        assert_eq!(
            [raw(0), raw(1), raw(2)],
            [ForeignStream::LEGACY_DEFAULT, ForeignStream::LEGACY_DEFAULT, ForeignStream::PER_THREAD_DEFAULT]
        );
        assert_eq!(raw(0x7f00_1230).raw() as usize, 0x7f00_1230);
        let error = raw_stream(Stream::default_of(cuprum_core::Device::CPU)).unwrap_err();
        assert!(error.to_string().contains("[raw_stream] cpu is not a CUDA device"), "{error}");
    }
}
