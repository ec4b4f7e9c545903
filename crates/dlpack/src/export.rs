//! Arrays as DLPack tensors.

use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Array, Device, Error, NdArray, Result, StoredArray};
use dlpark::ffi::{DLDevice, DLManagedTensor, DLManagedTensorVersioned};
use dlpark::metadata::Dynamic;
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};
use smallvec::SmallVec;

use crate::dtype;
use crate::stream_number::StreamNumber;

pub(crate) const OP: &str = "dlpack";

/// A tensor in the versioned structure of DLPack 1.x. Dropping the value calls the deleter. `into_raw()` gives up ownership and returns the
/// C pointer. The consumer of the pointer then calls the deleter.
pub type ManagedTensor = Managed<DLManagedTensorVersioned>;

/// A tensor in the structure of DLPack 0.x, which has no version and no flags.
pub type LegacyTensor = Managed<DLManagedTensor>;

/// Returns a read-only tensor over the elements of `array`, without a copy.
///
/// The tensor has the array's strides, which may be negative or 0; some consumers take only
/// [`contiguous`](NdArray::contiguous) arrays. On a CUDA device, the legacy default stream waits for the work that computes the array.
///
/// # Errors
/// The errors of evaluating `array`, if it is deferred. [`Error::Device`] if the device is neither the host nor a CUDA device, or if it is
/// a CUDA device and this build lacks the feature `cuda`.
pub fn export(array: &NdArray) -> Result<ManagedTensor> {
    Exporter::default().shared(array)
}

/// Returns a tensor that its consumer may write. The elements are copied if anything else uses their memory.
///
/// # Errors
/// The errors of [`export`], and an error if memory for the copy cannot be allocated.
pub fn export_owned(array: NdArray) -> Result<ManagedTensor> {
    Exporter::default().owned(array)
}

/// Returns a tensor in the structure of DLPack 0.x. The elements are copied if anything else uses their memory, because the structure
/// cannot forbid writes.
///
/// # Errors
/// The errors of [`export`], and an error if memory for the copy cannot be allocated.
pub fn export_legacy(array: NdArray) -> Result<LegacyTensor> {
    Exporter::default().legacy(array)
}

/// An exporter of arrays to a consumer that uses a given CUDA stream.
///
/// The stream waits for the work that computes the array, without blocking the host. If the stream is the legacy default stream, the memory
/// is reused only after the work on that stream, and the deleter does not block. Any other stream may be destroyed before the deleter is
/// called, so the deleter blocks until all work of the device has ended.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum_dlpack::{Exporter, StreamNumber};
/// # fn main() -> cuprum::Result<()> {
/// let tensor = Exporter::new(StreamNumber::PER_THREAD_DEFAULT).shared(&cuprum::arange(0, 3, 1)?)?;
/// assert_eq!(tensor.flags(), cuprum_dlpack::dlpark::DlpackFlags::READ_ONLY);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exporter {
    stream: StreamNumber,
}

impl Exporter {
    /// Returns an exporter of arrays for a consumer that queues its work on `stream`.
    pub fn new(stream: StreamNumber) -> Exporter {
        Exporter { stream }
    }

    /// Returns a read-only tensor without a copy, as [`export`] does.
    ///
    /// # Errors
    /// The errors of [`export`].
    pub fn shared(self, array: &NdArray) -> Result<ManagedTensor> {
        let exported = ElementOwner::from_array(array.stored()?, false, self.stream)?;
        exported.into_tensor(DlpackFlags::READ_ONLY)
    }

    /// Returns a writable tensor, as [`export_owned`] does.
    ///
    /// # Errors
    /// The errors of [`export_owned`].
    pub fn owned(self, array: NdArray) -> Result<ManagedTensor> {
        ElementOwner::from_array(copy_unless_unshared(array)?, true, self.stream)?.into_tensor(DlpackFlags::IS_COPIED)
    }

    /// Returns a writable tensor in the structure of DLPack 0.x, as [`export_legacy`] does.
    ///
    /// # Errors
    /// The errors of [`export_legacy`].
    pub fn legacy(self, array: NdArray) -> Result<LegacyTensor> {
        ElementOwner::from_array(copy_unless_unshared(array)?, true, self.stream)?.into_tensor(DlpackFlags::empty())
    }
}

/// Returns the DLPack device of an array, for Python's `__dlpack_device__`. Does not evaluate the array.
///
/// # Errors
/// [`Error::Device`] if arrays on the device cannot be exported.
pub fn device_of(array: &NdArray) -> Result<DLDevice> {
    dlpack_device(array.device())
}

fn dlpack_device(device: Device) -> Result<DLDevice> {
    match device.kind().name() {
        "cpu" => Ok(DLDevice::CPU),
        "cuda" => Ok(DLDevice::cuda(device.ordinal() as i32)),
        _ => Err(Error::Device { op: OP, message: format!("arrays on {device} cannot be exported; copy them to the host first") }),
    }
}

/// Returns the elements of `array` in memory that nothing else uses, and in which no two elements overlap. Copies the elements if
/// necessary.
fn copy_unless_unshared(mut array: NdArray) -> Result<StoredArray> {
    let may_write = |a: &StoredArray| a.buffer().is_writable() && !a.layout().may_overlap();
    if !array.is_unique() || !may_write(&array.stored()?) {
        // Evaluating a deferred array may store the elements in memory that nothing else uses. A copy is then unnecessary.
        array.eval()?;
        if !array.is_unique() || !may_write(&array.stored()?) {
            array = array.copy()?;
        }
    }
    array.stored()
}

/// The owner of an exported tensor's elements.
enum ElementOwner {
    Host(StoredArray),
    #[cfg(feature = "cuda")]
    Cuda(cuprum_backend_cuda::interop::SharedPointer),
}

impl ElementOwner {
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "host memory needs no order"))]
    fn from_array(array: StoredArray, writable: bool, stream: StreamNumber) -> Result<ElementOwner> {
        let device = array.device();
        if device == Device::CPU {
            return Ok(ElementOwner::Host(array));
        }
        dlpack_device(device)?;
        #[cfg(feature = "cuda")]
        {
            use cuprum_backend_cuda::interop::SharedPointer;
            let array = NdArray::from(array);
            let pointer = match writable {
                true => SharedPointer::for_writing(array, stream.to_foreign_stream())?,
                false => SharedPointer::new(&array, stream.to_foreign_stream())?,
            };
            Ok(ElementOwner::Cuda(pointer.may_outlive_stream()))
        }
        #[cfg(not(feature = "cuda"))]
        Err(Error::Device { op: OP, message: format!("this build has no support for {device}; enable the feature `cuda`") })
    }

    fn stored_array(&self) -> &StoredArray {
        match self {
            ElementOwner::Host(array) => array,
            #[cfg(feature = "cuda")]
            ElementOwner::Cuda(pointer) => pointer.array(),
        }
    }

    /// Returns the address of the array element with index 0 along every axis.
    fn first_element_address(&self) -> Result<*mut u8> {
        match self {
            ElementOwner::Host(array) => {
                let host = array.buffer().as_any().downcast_ref::<HostBuffer>();
                let host = host.ok_or_else(|| Error::Device { op: OP, message: "not a host buffer".into() })?;
                Ok(host.as_mut_ptr().wrapping_add(array.layout().offset() * array.dtype().itemsize()))
            }
            #[cfg(feature = "cuda")]
            ElementOwner::Cuda(pointer) => Ok(std::ptr::without_provenance_mut(pointer.address() as usize)),
        }
    }

    /// Returns the tensor, which owns the elements.
    fn into_tensor<M: ManagedTensorBase>(self, flags: DlpackFlags) -> Result<Managed<M>> {
        let array = self.stored_array();
        let (device, dtype) = (dlpack_device(array.device())?, dtype::to_dlpack(OP, array.dtype())?);
        let (shape, strides) = (array.layout().shape(), array.layout().strides());
        let (shape, strides): (SmallVec<[usize; 8]>, SmallVec<[isize; 8]>) = (shape.into(), strides.into());
        // As the specification demands, the address of an empty tensor is null.
        let data = if array.size() == 0 { std::ptr::null_mut() } else { self.first_element_address()?.cast() };
        let metadata = Dynamic::new(&shape[..], &strides[..]).initialize_as::<M>(Box::new(self));
        let mut tensor = metadata.map_err(|error| Error::value(OP, error.to_string()))?;
        tensor.set_data(data).set_device(device).set_dtype(dtype);
        // SAFETY: `IS_COPIED` is set only for elements from `copy_unless_unshared`, which belong to the consumer alone. All other tensors
        // are `READ_ONLY`, or have the structure of DLPack 0.x without flags. `self` keeps the elements alive and constant until the
        // deleter drops `self`, on any thread.
        Ok(unsafe {
            tensor.set_flags_unchecked(flags);
            tensor.finish()
        })
    }
}
