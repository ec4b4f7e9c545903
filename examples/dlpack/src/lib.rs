//! A small C interface that exchanges arrays with other libraries by DLPack. `check.py` calls it through ctypes.
//!
//! Arrays are opaque handles, freed by [`cuprum_free`]. A function that fails returns null or -1, and [`cuprum_error`] returns the
//! message.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use cuprum::dlpack::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use cuprum::dlpack::{Exporter, LegacyTensor, ManagedTensor, StreamNumber, consumer_stream, device_of, import_on};
use cuprum::{Device, Error, NdArray, Result};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Returns the value of `f`, or stores its error and returns `failed`.
fn guard<T>(failed: T, f: impl FnOnce() -> Result<T>) -> T {
    f().unwrap_or_else(|error| {
        let message = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
        ERROR.with_borrow_mut(|last| *last = message);
        failed
    })
}

fn handle(array: NdArray) -> *mut NdArray {
    Box::into_raw(Box::new(array))
}

/// Returns the text of a C string.
///
/// # Safety
/// `text` is a C string.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str> {
    // SAFETY: the caller guarantees a C string.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Error::value("dlpack", "not UTF-8"))
}

/// Returns the message of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn cuprum_error() -> *const c_char {
    ERROR.with_borrow(|last| last.as_ptr())
}

/// Returns the value of an expression, which may use the variable `x`, on the device with a name such as `cpu` or `cuda:0`. `x` is null if
/// the expression does not use it.
///
/// # Safety
/// The texts are C strings. `x` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_eval(expression: *const c_char, x: *const NdArray, device: *const c_char) -> *mut NdArray {
    guard(ptr::null_mut(), || {
        // SAFETY: the caller guarantees C strings, and null or a handle.
        let (expression, device, x) = unsafe { (text(expression)?, text(device)?, x.as_ref()) };
        let device = Device::parse(device)?;
        let value = cuprum::with_device(device, || cuprum::eval(expression, x.map(|x| ("x", x))))?;
        Ok(handle(value.eval()?.clone()))
    })
}

/// Frees a handle.
///
/// # Safety
/// `array` is null or a handle that the caller does not use afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_free(array: *mut NdArray) {
    if !array.is_null() {
        // SAFETY: a handle comes from `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(array) });
    }
}

/// Takes over a DLPack tensor and returns an array over its memory. The tensor is a `DLManagedTensorVersioned` if `versioned` is true, and
/// a `DLManagedTensor` if not. `stream` is the stream on which the tensor is ready, in the numbers of Python's DLPack protocol, or -1.
///
/// # Safety
/// `tensor` follows the DLPack specification, nothing writes to it, and the stream exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_import(tensor: *mut c_void, versioned: bool, stream: i64) -> *mut NdArray {
    // SAFETY: the caller guarantees the requirements of `cuprum_import` under `# Safety`.
    guard(ptr::null_mut(), || unsafe {
        let stream = StreamNumber::new(stream)?;
        let array = match versioned {
            true => import_on(tensor.cast::<DLManagedTensorVersioned>(), stream),
            false => import_on(tensor.cast::<DLManagedTensor>(), stream),
        };
        array.map(handle)
    })
}

/// Returns a DLPack tensor over an array for a consumer on `stream`. `writable` permits writes, and copies a shared array. A tensor that is
/// not `versioned` is always writable.
///
/// # Safety
/// `array` is a handle, and the stream exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_export(array: *const NdArray, versioned: bool, writable: bool, stream: i64) -> *mut c_void {
    guard(ptr::null_mut(), || {
        // SAFETY: the caller guarantees a handle and a stream.
        let (array, stream) = unsafe { (&*array, StreamNumber::new(stream)?) };
        let exporter = Exporter::new(stream);
        Ok(match (versioned, writable) {
            (false, _) => exporter.legacy(array.clone())?.into_raw().cast(),
            (true, true) => exporter.owned(array.clone())?.into_raw().cast(),
            (true, false) => exporter.shared(array)?.into_raw().cast(),
        })
    })
}

/// Calls the deleter of a tensor that has no consumer.
///
/// # Safety
/// `tensor` comes from [`cuprum_export`], and the caller does not use it afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_delete(tensor: *mut c_void, versioned: bool) {
    // SAFETY: the caller guarantees an exported tensor that it gives up.
    unsafe {
        match versioned {
            true => drop(ManagedTensor::from_raw(tensor.cast())),
            false => drop(LegacyTensor::from_raw(tensor.cast())),
        }
    }
}

/// Stores the DLPack device of an array: type and number. Returns 0 or -1.
///
/// # Safety
/// `array` is a handle, and `device` has two elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_device(array: *const NdArray, device: *mut i32) -> i32 {
    guard(-1, || {
        // SAFETY: the caller guarantees a handle.
        let place = device_of(unsafe { &*array })?;
        // SAFETY: the caller guarantees two elements.
        unsafe { (*device, *device.add(1)) = (place.device_type.0 as i32, place.device_id) };
        Ok(0)
    })
}

/// Returns the number of the stream of `device` that a producer must make wait for its data; 0 for the host, -1 for an error.
///
/// # Safety
/// `device` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_stream(device: *const c_char) -> i64 {
    // SAFETY: the caller guarantees a C string.
    guard(-1, || Ok(consumer_stream(Device::parse(unsafe { text(device) }?)?)?.unwrap_or(0)))
}

/// Blocks until the work of a device has ended. Returns 0 or -1.
///
/// # Safety
/// `device` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuprum_synchronize(device: *const c_char) -> i32 {
    // SAFETY: the caller guarantees a C string.
    guard(-1, || Device::parse(unsafe { text(device) }?)?.synchronize().map(|()| 0))
}
