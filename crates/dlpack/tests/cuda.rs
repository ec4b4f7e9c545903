//! Exchange of arrays on a CUDA device by DLPack. Tests of `cuprum-backend-cuda` cover the order of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::{device, testing};
use cuprum_core::{DType, Device, NdArray, Result, arange, s, with_device, zeros};
use cuprum_dlpack::dlpark::DlpackFlags;
use cuprum_dlpack::dlpark::metadata::Fixed;
use cuprum_dlpack::ffi::{DLDataType, DLDevice};
use cuprum_dlpack::{Exporter, ManagedTensor, StreamNumber, consumer_stream, export, export_legacy, export_owned, import, import_on};

fn on_device(test: impl FnOnce(Device) -> Result<()>) {
    if let Some(device) = testing::device() {
        with_device(device, || test(device)).unwrap();
    }
}

fn address(array: &NdArray) -> Result<usize> {
    Ok(device::pointer_to_read(&array.stored()?)? as usize)
}

fn data(tensor: &ManagedTensor) -> usize {
    // SAFETY: the tensor is alive.
    unsafe { tensor.tensor() }.data as usize
}

#[test]
fn every_dtype_round_trips_without_a_copy() {
    on_device(|device| {
        for dtype in DType::ALL {
            let a = arange(0, 24, 1)?.reshape([2, 3, 4])?.astype(dtype)?.eval()?.clone();
            for view in [a.clone(), a.t()?, a.index(s![..;-1, 1.., ..])?] {
                for stream in [StreamNumber::LEGACY_DEFAULT, StreamNumber::PER_THREAD_DEFAULT, StreamNumber::UNORDERED] {
                    let tensor = Exporter::new(stream).shared(&view)?;
                    assert_eq!((data(&tensor), tensor.flags()), (address(&view)?, DlpackFlags::READ_ONLY));
                    // SAFETY: the tensor was just exported.
                    assert_eq!(unsafe { tensor.tensor() }.device, DLDevice::cuda(device.ordinal() as i32));
                    // SAFETY: the tensor was just exported, and nothing writes to it.
                    let back = unsafe { import_on(tensor.into_raw(), stream) }?;
                    assert_eq!((address(&back)?, back.device(), back.strides()?), (address(&view)?, device, view.strides()?));
                    let equal = cuprum_core::equal(&back, &view)?.all(())?.item()?;
                    assert_eq!(equal, true, "{dtype}");
                }
            }
        }
        assert!(consumer_stream(device)?.is_some_and(|stream| stream > 2));
        Ok(())
    });
}

#[test]
fn writable_exports_have_memory_of_their_own() {
    on_device(|_| {
        let a = arange(0, 1000, 1)?.eval()?.clone();
        assert_ne!(data(&export_owned(a.clone())?), address(&a)?);
        let unique = a.copy()?;
        let place = address(&unique)?;
        let tensor = export_owned(unique)?;
        assert_eq!((data(&tensor), tensor.flags()), (place, DlpackFlags::IS_COPIED));
        // SAFETY: the tensor was just exported, and nothing writes to it.
        let back = unsafe { import(tensor.into_raw()) }?;
        assert_eq!(back.to_vec::<i64>()?, a.to_vec::<i64>()?);
        // SAFETY: as above.
        let legacy = unsafe { import(export_legacy(a.clone())?.into_raw()) }?;
        assert_ne!(address(&legacy)?, address(&a)?);
        assert_eq!(data(&export(&zeros((0, 3), DType::F32)?)?), 0);
        Ok(())
    });
}

#[test]
fn wrong_addresses_and_devices_are_errors() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    on_device(|device| {
        let on_host = [0f32; 4];
        let a = zeros(4, DType::F32)?.eval()?.clone();
        let place = address(&a)?;
        let cases = [
            (on_host.as_ptr() as usize, device.ordinal() as i32, "is not memory of a CUDA device"),
            (place, 63, "cuda:63"),
            (place, -1, "there is no device cuda:-1"),
            (place, 1 << 20, "there is no device cuda:1048576"),
            (place + 2, device.ordinal() as i32, "not aligned to 4 bytes"),
        ];
        for (address, ordinal, want) in cases {
            let deleted = Arc::new(AtomicUsize::new(0));
            let mut tensor = Fixed::new([4], [1]).initialize(Box::new(Counted(deleted.clone()))).unwrap();
            tensor.set_data(std::ptr::without_provenance_mut(address)).set_dtype(DLDataType::F32).set_device(DLDevice::cuda(ordinal));
            // SAFETY: the address is refused before it is used.
            let error = unsafe { import(tensor.finish().into_raw()) }.unwrap_err().to_string();
            assert!(error.contains(want), "{error}, not {want}");
            assert_eq!(deleted.load(Ordering::SeqCst), 1, "{error}");
        }
        Ok(())
    });
}
