//! Exchange of host arrays by DLPack: tensors exported by cuprum, tensors of the crate `dlpark`, and tensors made field by field.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuprum_backend_cpu as _;
use cuprum_core::dtype::Element;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Array, DType, Device, NdArray, Result, arange, broadcast_to, ones, s, with_device, zeros};
use cuprum_dlpack::dlpark::metadata::Fixed;
use cuprum_dlpack::dlpark::{DlpackFlags, ManagedTensorBase, versioned};
use cuprum_dlpack::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};
use cuprum_dlpack::{device_of, export, export_legacy, export_owned, import};

/// Returns the address of element 0.
fn address(array: &NdArray) -> usize {
    let stored = array.stored().unwrap();
    let host = stored.buffer().as_any().downcast_ref::<HostBuffer>().unwrap();
    host.as_ptr() as usize + stored.layout().offset() * stored.dtype().itemsize()
}

fn equal(a: &NdArray, b: &NdArray) -> bool {
    a.shape() == b.shape() && cuprum_core::equal(a, b).unwrap().all(()).unwrap().item_as().unwrap()
}

/// Imports a tensor that follows the specification.
fn import_valid<M: ManagedTensorBase + 'static>(tensor: *mut M) -> Result<NdArray> {
    // SAFETY: the tests make tensors whose pointers are valid until their deleter is called. Nothing writes to their elements.
    unsafe { import(tensor) }
}

/// Elements, shape and strides of a tensor, and the count of calls of its deleter.
struct Producer {
    elements: Vec<u64>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: Arc<AtomicUsize>,
}

impl Producer {
    fn new(elements: &[u64], shape: &[i64], strides: &[i64]) -> Producer {
        Producer { elements: elements.to_vec(), shape: shape.to_vec(), strides: strides.to_vec(), deleted: Arc::default() }
    }

    fn deleted(&self) -> Arc<AtomicUsize> {
        self.deleted.clone()
    }

    /// Returns a u64 tensor over the elements, after `change` has modified the structure.
    fn tensor(mut self, change: impl FnOnce(&mut DLManagedTensorVersioned)) -> *mut DLManagedTensorVersioned {
        unsafe extern "C" fn delete(tensor: *mut DLManagedTensorVersioned) {
            // SAFETY: the deleter is called once, and `tensor` and `manager_ctx` came from `Box::into_raw`.
            let (tensor, producer) = unsafe {
                let tensor = Box::from_raw(tensor);
                let producer = Box::from_raw(tensor.manager_ctx.cast::<Producer>());
                (tensor, producer)
            };
            producer.deleted.fetch_add(1, Ordering::SeqCst);
            drop(tensor);
        }
        let dl_tensor = DLTensor {
            data: self.elements.as_mut_ptr().cast(),
            device: DLDevice::CPU,
            ndim: self.shape.len() as i32,
            dtype: DLDataType::U64,
            shape: self.shape.as_mut_ptr(),
            strides: if self.strides.is_empty() { ptr::null_mut() } else { self.strides.as_mut_ptr() },
            byte_offset: 0,
        };
        let version = DLPackVersion { major: 1, minor: 0 };
        let manager_ctx = Box::into_raw(Box::new(self)).cast::<c_void>();
        let mut tensor = DLManagedTensorVersioned { version, manager_ctx, deleter: Some(delete), flags: DlpackFlags::empty(), dl_tensor };
        change(&mut tensor);
        Box::into_raw(Box::new(tensor))
    }
}

fn round_trip(array: &NdArray) -> Result<NdArray> {
    import_valid(export(array)?.into_raw())
}

#[test]
fn every_dtype_and_layout_round_trips_without_a_copy() {
    for dtype in DType::ALL {
        let a = with_device(Device::CPU, || arange(0, 24, 1)).unwrap().reshape([2, 3, 4]).unwrap().astype(dtype).unwrap();
        let views = [
            a.clone(),
            a.t().unwrap(),
            a.index(s![.., 1.., ..]).unwrap(),
            a.index(s![..;-1, .., ..;-2]).unwrap(),
            broadcast_to(&a.index(s![0, 0, ..]).unwrap(), [5, 4]).unwrap(),
            a.index(s![1, 2, 3]).unwrap(),
        ];
        for view in &views {
            let back = round_trip(view).unwrap();
            assert_eq!((back.dtype(), back.shape(), back.strides().unwrap()), (dtype, view.shape(), view.strides().unwrap()));
            assert_eq!(address(&back), address(view), "{dtype} {:?}", view.shape());
            assert!(equal(&back, view));
        }
    }
}

#[test]
fn exports_follow_the_specification() {
    let a = with_device(Device::CPU, || arange(0, 6, 1)).unwrap().reshape([2, 3]).unwrap().astype(DType::F32).unwrap();
    let tensor = export(&a.t().unwrap()).unwrap();
    assert_eq!((tensor.version(), tensor.flags()), (DLPackVersion::CURRENT, DlpackFlags::READ_ONLY));
    let checked = tensor.validate_export().unwrap();
    assert_eq!((checked.shape(), checked.strides()), (&[3, 2][..], Some(&[1, 3][..])));
    // SAFETY: the tensor is alive.
    let fields = unsafe { tensor.tensor() };
    assert_eq!((fields.data as usize, fields.byte_offset, fields.dtype, fields.device), (address(&a), 0, DLDataType::F32, DLDevice::CPU));
    let scalar = export(&NdArray::scalar(1.5).unwrap()).unwrap();
    assert_eq!(scalar.validate_export().unwrap().shape(), &[] as &[i64]);
    let empty = export(&with_device(Device::CPU, || zeros((0, 3), DType::I8)).unwrap()).unwrap();
    // SAFETY: the tensor is alive.
    assert!(unsafe { empty.tensor() }.data.is_null());
    assert_eq!(empty.validate_export().unwrap().shape(), &[0, 3]);
    assert_eq!(device_of(&a).unwrap(), DLDevice::CPU);
}

#[test]
fn an_export_keeps_the_elements_alive_and_constant() {
    let mut a = ones(100_000, DType::F64).unwrap();
    let tensor = export(&a).unwrap();
    a.update(|a| Ok(a + 1.0)).unwrap();
    drop(a);
    let b = import_valid(tensor.into_raw()).unwrap();
    assert_eq!(b.sum(()).unwrap().item().unwrap().as_f64(), 100_000.0);
    // A deferred array is evaluated.
    assert_eq!(round_trip(&(&b * 3.0)).unwrap().to_vec::<f64>().unwrap()[7], 3.0);
}

#[test]
fn writable_exports_have_memory_of_their_own() {
    let a = with_device(Device::CPU, || arange(0, 1000, 1)).unwrap();
    a.eval().unwrap();
    let unique = a.copy().unwrap();
    let place = address(&unique);
    let tensor = export_owned(unique).unwrap();
    // SAFETY: the tensor is alive.
    assert_eq!(unsafe { tensor.tensor() }.data as usize, place, "the only user's memory is not copied");
    assert_eq!(tensor.flags(), DlpackFlags::IS_COPIED);
    let shared = export_owned(a.clone()).unwrap();
    // SAFETY: the tensor is alive.
    assert_ne!(unsafe { shared.tensor() }.data as usize, address(&a));
    // SAFETY: the tensor is alive, and its consumer may write.
    unsafe { *shared.tensor().data.cast::<i64>() = 77 };
    assert_eq!(a.to_vec::<i64>().unwrap()[0], 0);
    assert_eq!(import_valid(shared.into_raw()).unwrap().to_vec::<i64>().unwrap()[..2], [77, 1]);

    let repeated = broadcast_to(&ones(3, DType::F32).unwrap(), [4, 3]).unwrap();
    let tensor = export_owned(repeated).unwrap();
    assert_eq!(tensor.validate().unwrap().strides(), Some(&[3, 1][..]), "elements that share a place are copied");

    let legacy = export_legacy(a.clone()).unwrap();
    // SAFETY: the tensor is alive.
    assert_ne!(unsafe { legacy.tensor() }.data as usize, address(&a));
    assert!(equal(&import_valid(legacy.into_raw()).unwrap(), &a));
}

#[test]
fn imports_take_any_layout_and_call_the_deleter_once() {
    /// Shape, strides, byte offset and the elements in C order.
    type Case = (&'static [i64], &'static [i64], usize, &'static [u64]);
    let elements: Vec<u64> = (0..12).collect();
    let cases: [Case; 6] = [
        (&[2, 3], &[], 0, &[0, 1, 2, 3, 4, 5]),
        (&[2, 3], &[1, 4], 8, &[1, 5, 9, 2, 6, 10]),
        (&[3], &[-2], 64, &[8, 6, 4]),
        (&[2, 2], &[0, 1], 0, &[0, 1, 0, 1]),
        (&[1, 2], &[i64::MAX, 5], 0, &[0, 5]),
        (&[], &[], 24, &[3]),
    ];
    for (shape, strides, offset, want) in cases {
        let producer = Producer::new(&elements, shape, strides);
        let (deleted, place) = (producer.deleted(), producer.elements.as_ptr() as usize);
        let a = import_valid(producer.tensor(|tensor| tensor.dl_tensor.byte_offset = offset as u64)).unwrap();
        assert_eq!(a.to_vec::<u64>().unwrap(), want, "{shape:?} {strides:?}");
        assert_eq!(address(&a), place + offset, "without a copy");
        let deferred = &a + 1u64;
        let view = a.reshape(-1).unwrap();
        drop(a);
        assert_eq!(deleted.load(Ordering::SeqCst), 0);
        assert_eq!(deferred.to_vec::<u64>().unwrap()[0], want[0] + 1);
        drop((deferred, view));
        assert_eq!(deleted.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn empty_tensors_need_no_address() {
    let producer = Producer::new(&[], &[3, 0], &[0, 1]);
    let deleted = producer.deleted();
    let a = import_valid(producer.tensor(|tensor| tensor.dl_tensor.data = ptr::null_mut())).unwrap();
    assert_eq!((a.shape(), a.size(), deleted.load(Ordering::SeqCst)), (&[3, 0][..], 0, 1));
    assert_eq!(a.sum(()).unwrap().item().unwrap().as_f64(), 0.0);
}

#[test]
fn a_tensor_without_a_deleter_stays_with_its_producer() {
    let elements = [5u64, 6];
    let (mut shape, mut strides) = ([2i64], [1i64]);
    let (data, device) = (elements.as_ptr().cast_mut().cast(), DLDevice::CPU);
    let dl_tensor = DLTensor {
        data,
        device,
        ndim: 1,
        dtype: DLDataType::U64,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let mut tensor = DLManagedTensor { dl_tensor, manager_ctx: ptr::null_mut(), deleter: None };
    let a = import_valid(&raw mut tensor).unwrap();
    assert_eq!(a.to_vec::<u64>().unwrap(), [5, 6]);
}

#[test]
fn imported_memory_is_never_written_in_place() {
    let elements = vec![1u64; 1 << 16];
    for flags in [DlpackFlags::empty(), DlpackFlags::READ_ONLY, DlpackFlags::READ_ONLY | DlpackFlags::IS_COPIED] {
        let producer = Producer::new(&elements, &[1 << 16], &[1]);
        let place = producer.elements.as_ptr() as usize;
        let mut a = import_valid(producer.tensor(|tensor| tensor.flags = flags)).unwrap();
        let original = round_trip(&a).unwrap();
        assert_eq!(address(&original), place);
        drop(original);
        a.update(|a| Ok(a + 1u64)).unwrap();
        a.eval().unwrap();
        assert_ne!(address(&a), place);
        let mut b = import_valid(Producer::new(&elements, &[1 << 16], &[1]).tensor(|tensor| tensor.flags = flags)).unwrap();
        let place = address(&b);
        b.assign(s![..10], 9u64).unwrap();
        assert_ne!(address(&b), place);
        assert_eq!(b.to_vec::<u64>().unwrap()[9..11], [9, 1]);
    }
}

#[test]
fn bytes_of_bool_count_as_true() {
    let producer = Producer::new(&[0x0001_0002_ff00], &[6], &[1]);
    let deleted = producer.deleted();
    let a = import_valid(producer.tensor(|tensor| tensor.dl_tensor.dtype = DLDataType::BOOL)).unwrap();
    assert_eq!(a.to_vec::<bool>().unwrap(), [false, true, true, false, true, false]);
    assert_eq!(deleted.load(Ordering::SeqCst), 1, "the converted copy needs no owner");
}

#[test]
fn tensors_of_dlpark_are_taken() {
    fn check_import<T: Element + PartialEq + std::fmt::Debug>(dtype: DLDataType, mut values: Vec<T>) {
        let data = values.as_mut_ptr().cast();
        let want = values.clone();
        let mut initialized = Fixed::new([2, 2], [1, 2]).initialize(Box::new(values)).unwrap();
        initialized.set_data(data).set_dtype(dtype).set_device(DLDevice::CPU);
        // SAFETY: the tensor owns its four elements.
        let tensor: versioned::Dlpack = unsafe { initialized.finish() };
        let a = import_valid(tensor.into_raw()).unwrap();
        assert_eq!(a.t().unwrap().to_vec::<T>().unwrap(), want);
    }
    check_import(DLDataType::F16, [1.0, 2.0, 3.0, 4.5].map(half::f16::from_f32).to_vec());
    check_import(DLDataType::BF16, [1.0, 2.0, 3.0, 4.5].map(half::bf16::from_f32).to_vec());
    check_import(DLDataType::I16, vec![1i16, -2, 3, 4]);
}

/// A part of the expected error message, and a change of a tensor that violates the specification.
type Fault = (&'static str, fn(&mut DLManagedTensorVersioned));

#[test]
fn invalid_tensors_are_errors_and_are_deleted() {
    /// Sets element `at` of the shape or the strides to `value`.
    fn set_number(numbers: *mut i64, at: usize, value: i64) {
        // SAFETY: the test's tensors have two dimensions.
        unsafe { *numbers.add(at) = value };
    }
    let faults: [Fault; 26] = [
        ("incompatible DLPack major version", |t| t.version.major = 2),
        ("incompatible DLPack major version", |t| t.version.major = 0),
        ("the address of the elements is null", |t| t.dl_tensor.data = ptr::null_mut()),
        ("the shape of 2 dimensions is null", |t| t.dl_tensor.shape = ptr::null_mut()),
        ("-1 dimensions are outside 0..=64", |t| t.dl_tensor.ndim = -1),
        ("65 dimensions are outside 0..=64", |t| t.dl_tensor.ndim = 65),
        ("2147483647 dimensions", |t| t.dl_tensor.ndim = i32::MAX),
        ("the pointer to the shape is misaligned", |t| t.dl_tensor.shape = t.dl_tensor.shape.wrapping_byte_add(1)),
        ("the pointer to the strides is misaligned", |t| t.dl_tensor.strides = t.dl_tensor.strides.wrapping_byte_add(4)),
        ("the extent of axis 1 is -3", |t| set_number(t.dl_tensor.shape, 1, -3)),
        ("too large", |t| set_number(t.dl_tensor.shape, 0, i64::MAX)),
        ("too large", |t| (0..2).for_each(|axis| set_number(t.dl_tensor.shape, axis, 1 << 32))),
        ("too large", |t| (0..2).for_each(|axis| set_number(t.dl_tensor.shape, axis, 1 << 31))),
        ("outside the address space", |t| set_number(t.dl_tensor.strides, 0, i64::MAX)),
        ("outside the address space", |t| set_number(t.dl_tensor.strides, 0, i64::MIN)),
        ("outside the address space", |t| set_number(t.dl_tensor.strides, 1, -(1 << 58))),
        ("outside the address space", |t| t.dl_tensor.byte_offset = u64::MAX),
        ("outside the address space", |t| t.dl_tensor.byte_offset = 1 << 63),
        ("are not aligned to 8 bytes, as uint64 requires", |t| t.dl_tensor.byte_offset = 4),
        ("the type float of 32 bits and 2 lane(s)", |t| t.dl_tensor.dtype = DLDataType::new(DLDataTypeCode::FLOAT, 32, 2)),
        ("the type float8_e5m2 of 8 bits", |t| t.dl_tensor.dtype = DLDataType::F8E5M2),
        ("the unknown code 99", |t| t.dl_tensor.dtype = DLDataType::new(DLDataTypeCode(99), 8, 1)),
        ("tensors in ROCm memory (device type 10)", |t| t.dl_tensor.device.device_type = DLDeviceType::ROCM),
        ("tensors in managed CUDA memory", |t| t.dl_tensor.device.device_type = DLDeviceType::CUDAMANAGED),
        ("the device type 0 is unknown", |t| t.dl_tensor.device.device_type = DLDeviceType(0)),
        ("", |t| t.dl_tensor.device = DLDevice::cuda(-1)),
    ];
    for (want, change) in faults {
        let producer = Producer::new(&[1, 2, 3, 4], &[2, 2], &[2, 1]);
        let deleted = producer.deleted();
        // SAFETY: the pointers are valid, or are refused before they are read.
        let error = unsafe { import(producer.tensor(change)) }.err().unwrap_or_else(|| panic!("no error: {want}"));
        let text = error.to_string();
        assert!(text.contains(want) && !text.contains('\n'), "{text}, not {want}");
        assert_eq!(deleted.load(Ordering::SeqCst), 1, "{text}");
    }
    let refused = |tensor: *mut DLManagedTensor| {
        // SAFETY: no tensor is at these addresses, which are refused before they are read.
        unsafe { import(tensor) }.unwrap_err().to_string()
    };
    assert!(refused(ptr::null_mut()).contains("null"));
    assert!(refused(ptr::without_provenance_mut(0x1001)).contains("0x1001"));
}

#[test]
fn exports_go_to_other_threads() {
    let tensor = export(&with_device(Device::CPU, || ones((3, 3), DType::F32)).unwrap()).unwrap();
    let sum = std::thread::spawn(move || import_valid(tensor.into_raw())?.sum(())?.item()).join().unwrap().unwrap();
    assert_eq!(sum.as_f64(), 9.0);
}

#[test]
fn misaligned_bytes_are_copied_to_be_viewed_as_larger_elements() -> Result<()> {
    let producer = Producer::new(&[0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09], &[8], &[1]);
    let bytes_from_address_1 = |t: &mut DLManagedTensorVersioned| {
        t.dl_tensor.dtype = DLDataType::new(DLDataTypeCode::UINT, 8, 1);
        t.dl_tensor.data = t.dl_tensor.data.wrapping_byte_add(1);
    };
    // SAFETY: the tensor has 8 of the producer's 16 bytes.
    let bytes = unsafe { import(producer.tensor(bytes_from_address_1)) }?;
    assert_eq!(bytes.view_as(DType::U16)?.to_vec::<u16>()?, [0x0302, 0x0504, 0x0706, 0x0908]);
    assert_eq!(bytes.view_as(DType::U64)?.to_vec::<u64>()?, [0x0908_0706_0504_0302]);
    Ok(())
}
