//! CUDA streams of the other library in an exchange of arrays, as numbers of Python's `__dlpack__` protocol.

use cuprum_core::{Device, Error, Result};

/// A CUDA stream of the other library in an exchange of arrays, as the number that Python's `__dlpack__(stream=..)` takes.
///
/// Exports and imports of host arrays ignore the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamNumber(i64);

impl Default for StreamNumber {
    /// Returns the legacy default stream, which `stream=None` means.
    fn default() -> StreamNumber {
        StreamNumber::LEGACY_DEFAULT
    }
}

impl StreamNumber {
    /// The legacy default stream.
    pub const LEGACY_DEFAULT: StreamNumber = StreamNumber(1);
    /// The default stream of the current thread.
    pub const PER_THREAD_DEFAULT: StreamNumber = StreamNumber(2);
    /// No stream: the caller orders the work of the two libraries by other means.
    ///
    /// For an import, this means that the data are ready already, or that the producer has made cuprum's stream wait for them
    /// ([`consumer_stream`]).
    pub const UNORDERED: StreamNumber = StreamNumber(-1);

    /// Returns the stream that `number` means in `__dlpack__(stream=number)`: -1 ([`Self::UNORDERED`]), 1 ([`Self::LEGACY_DEFAULT`]), 2
    /// ([`Self::PER_THREAD_DEFAULT`]), or the address of a `CUstream`.
    ///
    /// # Errors
    /// [`Error::Value`] for any other number. 0 is ambiguous, and `__dlpack__` does not permit it.
    ///
    /// # Safety
    /// If `number` is an address, a stream of the tensor's device has this address. That stream exists until the export or import returns.
    pub unsafe fn new(number: i64) -> Result<StreamNumber> {
        match number {
            -1 | 1.. => Ok(StreamNumber(number)),
            _ => Err(Error::value("dlpack", format!("a stream is -1, 1, 2 or the address of a CUstream, not {number}"))),
        }
    }

    /// Returns the number that `__dlpack__(stream=..)` takes.
    pub fn number(self) -> i64 {
        self.0
    }

    /// Returns the stream in the form that the CUDA backend takes. Returns `None` for [`StreamNumber::UNORDERED`].
    #[cfg(feature = "cuda")]
    pub(crate) fn to_foreign_stream(self) -> Option<cuprum_backend_cuda::interop::ForeignStream> {
        use cuprum_backend_cuda::interop::ForeignStream;
        match self {
            StreamNumber::UNORDERED => None,
            StreamNumber::LEGACY_DEFAULT => Some(ForeignStream::LEGACY_DEFAULT),
            StreamNumber::PER_THREAD_DEFAULT => Some(ForeignStream::PER_THREAD_DEFAULT),
            // SAFETY: by the contract of `new`, the stream exists until the export or import returns. An export calls
            // `may_outlive_stream` on its pointer, because the tensor may exist longer than the stream.
            StreamNumber(address) => Some(unsafe { ForeignStream::from_raw(address as usize as *mut _) }),
        }
    }
}

/// Returns this thread's current stream on `device`, as the number to pass to a producer's `__dlpack__(stream=..)`. Returns `None` for the
/// host.
///
/// The producer makes this stream wait for the data, so the tensor can be imported with [`StreamNumber::UNORDERED`].
///
/// # Errors
/// [`Error::Device`] if the device is not ready or is not a CUDA device, or if this build lacks the feature `cuda`.
pub fn consumer_stream(device: Device) -> Result<Option<i64>> {
    if device == Device::CPU {
        return Ok(None);
    }
    #[cfg(feature = "cuda")]
    return cuprum_backend_cuda::interop::raw_stream(cuprum_core::Stream::current(device)).map(|stream| Some(stream as usize as i64));
    #[cfg(not(feature = "cuda"))]
    Err(Error::Device { op: "dlpack", message: format!("this build has no support for {device}; enable the feature `cuda`") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_protocol() {
        // SAFETY: no stream is used.
        let new = |number| unsafe { StreamNumber::new(number) };
        assert_eq!(new(1).unwrap(), StreamNumber::default());
        assert_eq!([new(-1).unwrap(), new(2).unwrap()], [StreamNumber::UNORDERED, StreamNumber::PER_THREAD_DEFAULT]);
        assert_eq!(new(0x7f00_0010).unwrap().number(), 0x7f00_0010);
        for bad in [0, -2, i64::MIN] {
            assert!(new(bad).unwrap_err().to_string().contains(&format!("not {bad}")));
        }
        assert_eq!(consumer_stream(Device::CPU).unwrap(), None);
    }
}
