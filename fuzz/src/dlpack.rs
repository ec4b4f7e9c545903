//! The fuzz target of DLPack's structures, with an oracle: which tensors are valid, and the elements that they have.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cuprum::{DType, Ellipsis, NdArray, Result};
use cuprum_dlpack::dlpark::{DlpackFlags, ManagedTensorBase};
use cuprum_dlpack::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use cuprum_dlpack::import;

/// Number of 8-byte words that tensors of the target can use. Their address 0 is in the middle.
const WORDS: usize = 64;
/// Most axes that a tensor may have.
const MAX_NDIM: usize = 64;
/// Most elements that are compared one by one.
const COMPARED: usize = 1 << 12;

const TYPES: [(DType, DLDataType); 15] = [
    (DType::Bool, DLDataType::BOOL),
    (DType::I8, DLDataType::I8),
    (DType::I16, DLDataType::I16),
    (DType::I32, DLDataType::I32),
    (DType::I64, DLDataType::I64),
    (DType::U8, DLDataType::U8),
    (DType::U16, DLDataType::U16),
    (DType::U32, DLDataType::U32),
    (DType::U64, DLDataType::U64),
    (DType::F16, DLDataType::F16),
    (DType::BF16, DLDataType::BF16),
    (DType::F32, DLDataType::F32),
    (DType::F64, DLDataType::F64),
    (DType::C64, DLDataType::C64),
    (DType::C128, DLDataType::C128),
];

/// The memory that the pointers of a tensor refer to, and the number of calls of its deleter.
struct Producer {
    words: Vec<u64>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: Arc<AtomicUsize>,
    /// Receives `words` when the deleter is called, so that the memory stays allocated.
    released: Arc<Mutex<Vec<u64>>>,
}

/// The two structures of a managed tensor.
trait Structure: ManagedTensorBase + 'static {
    fn context(&self) -> *mut c_void;
}
impl Structure for DLManagedTensor {
    fn context(&self) -> *mut c_void {
        self.manager_ctx
    }
}
impl Structure for DLManagedTensorVersioned {
    fn context(&self) -> *mut c_void {
        self.manager_ctx
    }
}

unsafe extern "C" fn delete<S: Structure>(tensor: *mut S) {
    // SAFETY: the deleter is called once, and both pointers came from `Box::into_raw`.
    let mut producer = unsafe { Box::from_raw(Box::from_raw(tensor).context().cast::<Producer>()) };
    *producer.released.lock().unwrap() = std::mem::take(&mut producer.words);
    producer.deleted.fetch_add(1, Ordering::SeqCst);
}

/// The required result of importing a tensor.
enum Expected {
    /// An error.
    Error,
    /// An array with this dtype and shape. If it has few elements, their byte offsets in the producer's memory.
    Array(DType, Vec<usize>, Option<Vec<i128>>),
    /// An array or an error, such as for huge empty tensors.
    Either,
    /// None: the tensor covers memory that the producer does not own, so importing it violates the contract of `import`.
    Forbidden,
}

/// Imports a tensor whose fields the bytes choose.
pub fn dlpack(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mut next = || bytes.next().unwrap_or(0);
    // Small numbers, and the extremes of 64 bits.
    let number = |byte: u8| match byte {
        0..=199 => i64::from(byte % 7) - 2,
        200..=219 => i64::MAX - i64::from(byte - 200),
        220..=239 => i64::MIN + i64::from(byte - 220),
        _ => 1 << (byte % 63),
    };
    let (structure, kind, place, axes, pointers) = (next(), next(), next(), next(), next());
    let dtype = match kind {
        0..=239 => TYPES[kind as usize % TYPES.len()].1,
        _ => DLDataType::new(DLDataTypeCode(next()), next(), u16::from(next())),
    };
    let device_type = match place {
        0..=219 => DLDeviceType::CPU,
        220..=229 => DLDeviceType::CUDAHOST,
        // The contract permits a CUDA device for device memory only.
        _ => DLDeviceType(Some(u32::from(next())).filter(|&n| n != DLDeviceType::CUDA.0).unwrap_or(u32::MAX)),
    };
    let ndim = match axes {
        0..=229 => i32::from(axes % 5),
        _ => [-1, i32::MIN, i32::MAX, 63, 64, 65][axes as usize % 6],
    };
    let byte_offset = match next() {
        byte @ 0..=239 => u64::from(byte % 40),
        byte => u64::MAX - u64::from(byte % 16) * 7,
    };
    let mut producer = Producer {
        words: (0..WORDS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect(),
        shape: vec![1; MAX_NDIM],
        strides: vec![1; MAX_NDIM],
        deleted: Arc::default(),
        released: Arc::default(),
    };
    for axis in 0..8 {
        (producer.shape[axis], producer.strides[axis]) = (number(next()), number(next()));
    }
    let words = producer.words.clone();
    let middle = producer.words[WORDS / 2..].as_mut_ptr();
    let tensor = DLTensor {
        data: if pointers & 7 == 7 { ptr::null_mut() } else { middle.cast::<u8>().wrapping_add(usize::from(pointers >> 3 & 15)).cast() },
        device: DLDevice { device_type, device_id: 0 },
        ndim,
        dtype,
        shape: if pointers & 7 == 6 { ptr::null_mut() } else { producer.shape.as_mut_ptr() },
        strides: if pointers & 7 == 5 { ptr::null_mut() } else { producer.strides.as_mut_ptr() },
        byte_offset,
    };
    let memory = producer.words.as_mut_ptr_range();
    let expected = expected(&tensor, &producer.shape, &producer.strides, memory.start.addr()..memory.end.addr());
    if matches!(expected, Expected::Forbidden) {
        return;
    }
    let (deleted, _released) = (producer.deleted.clone(), producer.released.clone());
    let has_deleter = structure & 0x40 == 0;
    let manager_ctx = Box::into_raw(Box::new(producer)).cast::<c_void>();
    if structure & 0x80 == 0 {
        let version = DLPackVersion { major: [1, 1, 1, 1, 1, 0, 2, u32::MAX][structure as usize & 7], minor: u32::from(next()) };
        let flags = DlpackFlags::from_bits_retain(u64::from(next()) | u64::from(next()) << 56);
        let deleter = has_deleter.then_some(delete::<DLManagedTensorVersioned> as unsafe extern "C" fn(_));
        let tensor = DLManagedTensorVersioned { version, manager_ctx, deleter, flags, dl_tensor: tensor };
        let expected = if version.major == 1 { expected } else { Expected::Error };
        let may_write = flags & (DlpackFlags::IS_COPIED | DlpackFlags::READ_ONLY) == DlpackFlags::IS_COPIED;
        import_and_check(Box::into_raw(Box::new(tensor)), has_deleter, &expected, &words, may_write, &deleted);
    } else {
        let deleter = has_deleter.then_some(delete::<DLManagedTensor> as unsafe extern "C" fn(_));
        let tensor = DLManagedTensor { dl_tensor: tensor, manager_ctx, deleter };
        import_and_check(Box::into_raw(Box::new(tensor)), has_deleter, &expected, &words, false, &deleted);
    }
}

/// Returns the required result of importing the tensor, computed from its fields. `memory` is the address range of the producer's memory.
fn expected(tensor: &DLTensor, shape: &[i64], strides: &[i64], memory: std::ops::Range<usize>) -> Expected {
    let Some((dtype, _)) = TYPES.iter().find(|(_, theirs)| *theirs == tensor.dtype) else { return Expected::Error };
    let on_host = [DLDeviceType::CPU, DLDeviceType::CUDAHOST].contains(&tensor.device.device_type);
    let Some(ndim) = usize::try_from(tensor.ndim).ok().filter(|&n| n <= MAX_NDIM) else { return Expected::Error };
    let (shape, mut strides): (Vec<i128>, Vec<i128>) =
        (shape[..ndim].iter().map(|&n| n.into()).collect(), strides[..ndim].iter().map(|&n| n.into()).collect());
    if !on_host || tensor.shape.is_null() && ndim > 0 || shape.iter().any(|&n| n < 0) {
        return Expected::Error;
    }
    if shape.contains(&0) {
        return Expected::Either;
    }
    let limit = i128::from(i64::MAX / 16);
    let Some(size) = shape.iter().try_fold(1, |size: i128, &n| size.checked_mul(n)).filter(|&size| size <= limit) else {
        return Expected::Error;
    };
    if tensor.strides.is_null() {
        let mut stride = 1;
        for (axis, &n) in shape.iter().enumerate().rev() {
            strides[axis] = stride;
            stride *= n;
        }
    }
    if tensor.data.is_null() {
        return Expected::Error;
    }
    let reach = |n: i128, stride: i128| (n - 1).saturating_mul(stride);
    let reaches = || shape.iter().zip(&strides).map(|(&n, &stride)| reach(n, stride));
    let low: i128 = reaches().filter(|&reach| reach < 0).fold(0, i128::saturating_add);
    let high: i128 = reaches().filter(|&reach| reach > 0).fold(0, i128::saturating_add);
    let item = dtype.itemsize() as i128;
    let first = tensor.data.addr() as i128 + i128::from(tensor.byte_offset);
    let (start, end) = (first.saturating_add(low.saturating_mul(item)), first.saturating_add(high.saturating_add(1).saturating_mul(item)));
    if start <= 0 || end > i128::from(i64::MAX) || first % dtype.alignment() as i128 != 0 {
        return Expected::Error;
    }
    if start < memory.start as i128 || end > memory.end as i128 {
        return Expected::Forbidden;
    }
    let origin = first - memory.start as i128;
    let positions = (size <= COMPARED as i128).then(|| {
        let mut positions = vec![origin];
        for (&n, &stride) in shape.iter().zip(&strides) {
            positions = positions.iter().flat_map(|&at| (0..n).map(move |i| at + i * stride * item)).collect();
        }
        positions
    });
    Expected::Array(*dtype, shape.iter().map(|&n| n as usize).collect(), positions)
}

fn import_and_check<S: Structure>(
    tensor: *mut S,
    has_deleter: bool,
    expected: &Expected,
    words: &[u64],
    may_write: bool,
    deleted: &AtomicUsize,
) {
    // SAFETY: the caller passes a valid structure with a producer. Its vector is not moved before the deleter is called.
    let memory: *const [u64] = unsafe { (*(*tensor).context().cast::<Producer>()).words.as_slice() };
    // SAFETY: the tensor is not `Forbidden`: its pointers are null or the producer's, and its elements are in the producer's memory.
    let imported = unsafe { import(tensor) };
    // SAFETY: the caller keeps `released`, so that the elements stay allocated after a call of the deleter.
    check(imported, expected, words, |words| may_write || unsafe { &*memory } == words);
    assert_eq!(deleted.load(Ordering::SeqCst), usize::from(has_deleter), "calls of the deleter");
    if !has_deleter {
        // SAFETY: without a deleter the tensor belongs to this function, and nothing uses it.
        unsafe { delete(tensor) };
    }
}

/// Compares an imported tensor with the expectation. `is_unchanged` compares the memory of the producer.
fn check(imported: Result<NdArray>, expected: &Expected, words: &[u64], is_unchanged: impl Fn(&[u64]) -> bool) {
    let mut array = match (imported, expected) {
        (Err(_), Expected::Error | Expected::Either) => return,
        (Ok(array), Expected::Array(..) | Expected::Either) => array,
        (Ok(array), _) => panic!("an array of {} {:?} from an invalid tensor", array.dtype(), array.shape()),
        (Err(error), _) => panic!("a valid tensor is refused: {error}"),
    };
    let Expected::Array(dtype, shape, positions) = expected else { return };
    assert_eq!((array.dtype(), array.shape()), (*dtype, &shape[..]));
    let Some(positions) = positions else { return };
    let memory: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let element = |&at: &i128| memory[at as usize..at as usize + dtype.itemsize()].iter().copied();
    let wanted: Vec<u8> = match dtype {
        DType::Bool => positions.iter().flat_map(element).map(|byte| (byte != 0).into()).collect(),
        _ => positions.iter().flat_map(element).collect(),
    };
    assert_eq!(array.to_bytes().unwrap(), wanted);
    // The producer's memory is written only if it belongs to the consumer.
    array.assign(Ellipsis, 1).unwrap();
    assert!(array.equal(1).unwrap().all(()).unwrap().item_as::<bool>().unwrap());
    assert!(is_unchanged(words), "the producer's memory has changed");
}
