//! DLPack tensors as arrays.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::layout::{Dims, MAX_NDIM, Strides};
use cuprum_core::{DType, Error, Layout, NdArray, Result, StoredArray};
use dlpark::ffi::{DLDevice, DLDeviceType, DLTensor};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase};

use crate::dtype;
use crate::stream_number::StreamNumber;

const OP: &str = "from_dlpack";

/// Returns an array over the elements of a tensor, without a copy, and takes ownership of the tensor.
///
/// `tensor` points to a `DLManagedTensorVersioned`, or to a `DLManagedTensor` of DLPack 0.x. Null strides mean C order. On a CUDA device,
/// work that uses the array runs after the work queued so far on the legacy default stream; see [`import_on`] for other streams. The
/// tensor's deleter is called after the array's last use, or before an error is returned.
///
/// If bool elements on the host contain bytes other than 0 and 1, the elements are copied, and these bytes become true.
///
/// # Errors
/// [`Error::Value`] for a null or misaligned pointer, another major version, a type without a dtype, invalid extents, strides or
/// addresses. [`Error::Device`] for a device that is neither the host nor a CUDA device, or that this build does not support.
///
/// # Safety
/// `tensor` is null, or points to a tensor that the caller owns and that follows the DLPack specification: its pointers are valid for its
/// number of dimensions, and its deleter may be called on any thread. Until the deleter is called, the memory from the lowest to the
/// highest element is allocated and initialised, and nothing writes to that memory.
pub unsafe fn import<M: ManagedTensorBase + 'static>(tensor: *mut M) -> Result<NdArray> {
    // SAFETY: `import_on` has the same safety requirements as this function, and the caller meets them.
    unsafe { import_on(tensor, StreamNumber::LEGACY_DEFAULT) }
}

/// Imports a tensor as [`import`] does. Work that uses the array runs after the work queued so far on the stream `ready`, which computes
/// the elements.
///
/// # Errors
/// The errors of [`import`].
///
/// # Safety
/// The caller must meet the requirements of [`import`].
pub unsafe fn import_on<M: ManagedTensorBase + 'static>(tensor: *mut M, ready: StreamNumber) -> Result<NdArray> {
    if !tensor.is_aligned() {
        return Err(Error::value(OP, format!("the address {tensor:p} is not that of a tensor structure")));
    }
    // SAFETY: the caller guarantees that the pointer is null, or points to a tensor that the caller owns. If an error is returned,
    // `Managed` calls the deleter.
    let managed = unsafe { Managed::from_raw(tensor) }.map_err(|error| Error::value(OP, error.to_string()))?;
    // SAFETY: the caller guarantees that the tensor follows the specification.
    let (place, dtype, memory) = unsafe { check_and_read_tensor(managed.tensor()) }?;
    let TensorMemory { start, nbytes, layout } = memory;
    let buffer = match place.device_type {
        DLDeviceType::CPU | DLDeviceType::CUDAHOST => {
            // SAFETY: the caller guarantees that the tensor's owner keeps the elements alive and constant.
            unsafe { wrap_host_memory(managed, dtype, start, nbytes) }?
        }
        // SAFETY: the caller guarantees that the owner keeps the bytes allocated and constant, and that the stream exists.
        DLDeviceType::CUDA => unsafe { wrap_cuda_memory(managed, place.device_id, start, nbytes, ready) }?,
        other => return Err(unsupported_device_error(other)),
    };
    Ok(NdArray::from(StoredArray::new(dtype, layout, buffer)?))
}

/// The memory that a tensor's elements cover: the lowest address, the size in bytes, and the layout of the elements in this memory.
struct TensorMemory {
    /// Lowest address of the elements, or null if the tensor is empty.
    start: *mut u8,
    nbytes: usize,
    layout: Layout,
}

/// Returns device, dtype and memory of a tensor, after checking all its fields.
///
/// # Safety
/// The pointers of the tensor are null, or valid for its number of dimensions.
unsafe fn check_and_read_tensor(tensor: &DLTensor) -> Result<(DLDevice, DType, TensorMemory)> {
    let dtype = dtype::from_dlpack(OP, tensor.dtype)?;
    let ndim = usize::try_from(tensor.ndim).ok().filter(|&ndim| ndim <= MAX_NDIM);
    let ndim = ndim.ok_or_else(|| Error::value(OP, format!("{} dimensions are outside 0..={MAX_NDIM}", tensor.ndim)))?;
    // SAFETY: the caller guarantees that the pointers are null, or valid for `ndim` numbers.
    let (shape, strides) =
        unsafe { (i64_slice_from_pointer("shape", tensor.shape, ndim)?, i64_slice_from_pointer("strides", tensor.strides, ndim)?) };
    let Some(shape) = shape.or((ndim == 0).then_some(&[])) else {
        return Err(Error::value(OP, format!("the shape of {ndim} dimensions is null")));
    };
    let extent = |(axis, &n): (usize, &i64)| {
        usize::try_from(n).map_err(|_| Error::value(OP, format!("the extent of axis {axis} is {n}, which is negative or too large")))
    };
    let shape: Dims = shape.iter().enumerate().map(extent).collect::<Result<_>>()?;
    let stride = |&n: &i64| isize::try_from(n).map_err(|_| Error::value(OP, format!("the stride {n} is too large")));
    let strides: Option<Strides> = strides.map(|strides| strides.iter().map(stride).collect::<Result<_>>()).transpose()?;
    Ok((tensor.device, dtype, tensor_memory(tensor, dtype, &shape, strides.as_deref())?))
}

/// Returns the `count` numbers at `pointer`, or `None` if it is null.
///
/// # Safety
/// `pointer` is null, or valid for `count` numbers that nothing changes while the result exists.
unsafe fn i64_slice_from_pointer<'a>(name: &str, pointer: *const i64, count: usize) -> Result<Option<&'a [i64]>> {
    if pointer.is_null() {
        return Ok(None);
    }
    if !pointer.is_aligned() {
        return Err(Error::value(OP, format!("the pointer to the {name} is misaligned")));
    }
    // SAFETY: the caller guarantees that the aligned pointer is valid for `count` numbers.
    Ok(Some(unsafe { std::slice::from_raw_parts(pointer, count) }))
}

/// Returns the memory of a tensor's elements. Null `strides` mean C order.
fn tensor_memory(tensor: &DLTensor, dtype: DType, shape: &[usize], strides: Option<&[isize]>) -> Result<TensorMemory> {
    let contiguous = Layout::contiguous(shape).map_err(|_| Error::shape(OP, "the tensor is too large", &[shape]))?;
    if contiguous.size() == 0 {
        return Ok(TensorMemory { start: ptr::null_mut(), nbytes: 0, layout: contiguous });
    }
    if tensor.data.is_null() {
        return Err(Error::shape(OP, "the address of the elements is null", &[shape]));
    }
    let layout = strides.map_or(Ok(contiguous), |strides| Layout::strided(shape, strides, 0))?;
    let (low, high) = layout.buffer_range();
    let below = low.unsigned_abs();
    let range = || {
        let element_0 = tensor.data.addr().checked_add(usize::try_from(tensor.byte_offset).ok()?)?;
        let start = element_0.checked_sub(below.checked_mul(dtype.itemsize())?).filter(|&start| start > 0)?;
        let end = element_0.checked_add(high.unsigned_abs().checked_mul(dtype.itemsize())?)?;
        isize::try_from(end).is_ok().then_some((element_0, start, end - start))
    };
    let (element_0, address, nbytes) =
        range().ok_or_else(|| Error::shape(OP, "strides and offset reach outside the address space", &[shape]))?;
    let alignment = match tensor.device.device_type {
        DLDeviceType::CPU | DLDeviceType::CUDAHOST => dtype.alignment(),
        _ => dtype.itemsize(), // a CUDA kernel loads both parts of a complex number with one instruction
    };
    if !element_0.is_multiple_of(alignment) {
        return Err(Error::value(
            OP,
            format!("the elements at {element_0:#x} are not aligned to {alignment} bytes, as {dtype} requires; copy the tensor first"),
        ));
    }
    Ok(TensorMemory { start: tensor.data.cast::<u8>().with_addr(address), nbytes, layout: layout.with_offset(below) })
}

/// Returns a buffer over host memory that `owner` keeps allocated.
///
/// # Safety
/// `owner` keeps `nbytes` initialised bytes at `start` allocated. Nothing else writes to them.
unsafe fn wrap_host_memory<M: ManagedTensorBase + 'static>(
    owner: Managed<M>,
    dtype: DType,
    start: *mut u8,
    nbytes: usize,
) -> Result<Arc<dyn Buffer>> {
    let Some(start) = NonNull::new(start) else {
        return Ok(Arc::new(HostBuffer::uninit(0)?));
    };
    let is_owned = owner.flags() & (DlpackFlags::IS_COPIED | DlpackFlags::READ_ONLY) == DlpackFlags::IS_COPIED;
    // SAFETY: the caller guarantees that the owner keeps the bytes allocated. Writes are permitted (`is_owned`) only for a tensor with
    // `IS_COPIED` and without `READ_ONLY`, which belongs to its consumer alone.
    let buffer = unsafe { HostBuffer::from_owner(start, nbytes, Box::new(owner), is_owned) };
    if dtype == DType::Bool && !buffer.has_valid_bools() {
        let mut copy = HostBuffer::from_bytes(buffer.as_bytes())?;
        copy.normalize_bools()?;
        return Ok(Arc::new(copy));
    }
    Ok(Arc::new(buffer))
}

/// Returns a buffer over memory of a CUDA device that `owner` keeps allocated.
///
/// # Safety
/// `owner` keeps `nbytes` bytes at `start` allocated. Nothing else writes to them. The stream `ready` exists.
#[cfg(feature = "cuda")]
unsafe fn wrap_cuda_memory<M: ManagedTensorBase + 'static>(
    owner: Managed<M>,
    ordinal: i32,
    start: *mut u8,
    nbytes: usize,
    ready: StreamNumber,
) -> Result<Arc<dyn Buffer>> {
    use cuprum_core::{Device, DeviceKind};
    let ordinal = u16::try_from(ordinal).map_err(|_| Error::Device { op: OP, message: format!("there is no device cuda:{ordinal}") })?;
    let device = Device::new(DeviceKind::intern("cuda")?, ordinal);
    // SAFETY: the caller guarantees that `owner` keeps the memory allocated, that nothing else writes to it, and that the stream exists.
    let buffer = unsafe {
        cuprum_backend_cuda::interop::wrap_device_memory(device, start.addr() as u64, nbytes, Box::new(owner), ready.to_foreign_stream())
    }?;
    Ok(buffer)
}

#[cfg(not(feature = "cuda"))]
unsafe fn wrap_cuda_memory<M: ManagedTensorBase>(_: Managed<M>, _: i32, _: *mut u8, _: usize, _: StreamNumber) -> Result<Arc<dyn Buffer>> {
    Err(Error::Device { op: OP, message: "this build has no support for CUDA; enable the feature `cuda`".into() })
}

fn unsupported_device_error(DLDeviceType(number): DLDeviceType) -> Error {
    let name = match DLDeviceType(number) {
        DLDeviceType::OPENCL => "OpenCL",
        DLDeviceType::VULKAN => "Vulkan",
        DLDeviceType::METAL => "Metal",
        DLDeviceType::VPI => "VPI",
        DLDeviceType::ROCM => "ROCm",
        DLDeviceType::ROCMHOST => "pinned ROCm",
        DLDeviceType::EXTDEV => "extension",
        DLDeviceType::CUDAMANAGED => "managed CUDA",
        DLDeviceType::ONEAPI => "oneAPI",
        DLDeviceType::WEBGPU => "WebGPU",
        DLDeviceType::HEXAGON => "Hexagon",
        DLDeviceType::MAIA => "MAIA",
        DLDeviceType::TRN => "Trainium",
        _ => return Error::Device { op: OP, message: format!("the device type {number} is unknown; copy the tensor to the host first") },
    };
    Error::Device {
        op: OP,
        message: format!("tensors in {name} memory (device type {number}) are not supported; copy the tensor to the host first"),
    }
}
