//! Memory and streams shared with another library on a real device: addresses in and out, cudarc's slices, order of streams, owners.
//! cudarc's streams and memory stand for the other library. Slow copies before the work that must run first expose a missing wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError};
use cuprum_backend_cpu as _;
use cuprum_backend_cuda::cudarc;
use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_backend_cuda::interop::{ForeignStream, SharedPointer, SharedSlice, from_cuda_slice, from_device_pointer, raw_stream};
use cuprum_core::{DType, Device, Error, Graph, NdArray, Result, Stream, arange, full, ones, s};

use crate::on_device;

fn foreign(error: DriverError) -> Error {
    Error::value("cudarc", error.to_string())
}

/// Streams of another library, and memory for slow copies.
struct Library {
    stream: Arc<CudaStream>,
    slow: CudaSlice<u8>,
}

impl Library {
    fn new() -> Result<Library> {
        let stream = CudaContext::new(0).and_then(|context| context.new_stream()).map_err(foreign)?;
        let slow = stream.alloc_zeros::<u8>(256 << 20).map_err(foreign)?;
        Ok(Library { stream, slow })
    }

    /// Keeps the stream busy for several milliseconds.
    fn delay(&mut self) -> Result<()> {
        (0..50).try_for_each(|_| self.stream.memset_zeros(&mut self.slow)).map_err(foreign)
    }

    fn upload(&self, values: &[f32]) -> Result<CudaSlice<f32>> {
        self.stream.clone_htod(values).map_err(foreign)
    }

    /// Queues a copy of `slice` behind slow work.
    fn late(&mut self, slice: &CudaSlice<f32>) -> Result<CudaSlice<f32>> {
        let mut copy = self.stream.alloc_zeros::<f32>(slice.len()).map_err(foreign)?;
        self.delay()?;
        self.stream.memcpy_dtod(slice, &mut copy).map_err(foreign)?;
        Ok(copy)
    }

    fn download(&self, slice: &CudaSlice<f32>) -> Result<Vec<f32>> {
        self.stream.clone_dtoh(slice).map_err(foreign)
    }

    fn foreign(&self) -> ForeignStream {
        // SAFETY: the tests keep the library until their pointers have been dropped.
        unsafe { ForeignStream::from_raw(self.stream.cu_stream()) }
    }
}

fn address_of(slice: &CudaSlice<f32>) -> u64 {
    slice.device_ptr(&slice.stream().clone()).0
}

fn address(array: &NdArray) -> Result<u64> {
    device::pointer_to_read(&array.stored()?)
}

/// A slice with a count of its drops.
struct Counted {
    _slice: CudaSlice<f32>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns an array of float32 over `slice`, and the count of drops of its owner.
fn wrap(library: &Library, device: Device, slice: CudaSlice<f32>) -> Result<(NdArray, Arc<AtomicUsize>)> {
    let (pointer, count, drops) = (address_of(&slice), slice.len(), Arc::new(AtomicUsize::new(0)));
    let owner = Box::new(Counted { _slice: slice, drops: drops.clone() });
    // SAFETY: the slice has `count` float32, which only the array uses. The library's stream exists.
    let array = unsafe { from_device_pointer(device, pointer, DType::F32, count, owner, Some(library.foreign())) }?;
    Ok((array, drops))
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 1000) as f32).collect()
}

const N: usize = 1 << 20;

#[test]
fn foreign_memory_is_used_in_place_and_released_once() {
    on_device(|device| {
        let library = Library::new()?;
        let slice = library.upload(&ramp(N))?;
        let place = address_of(&slice);
        let before = device.memory_stats()?;
        let (a, drops) = wrap(&library, device, slice)?;
        assert_eq!((address(&a)?, a.device()), (place, device));
        assert_eq!(device.memory_stats()?, before, "foreign memory is not the pool's");
        assert_eq!(a.to_vec::<f32>()?, ramp(N));
        let view = a.index(s![1..,])?;
        let double = &view * 2.0f32; // deferred
        drop((a, view));
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        assert_eq!(double.to_vec::<f32>()?[..3], [2.0, 4.0, 6.0]);
        drop(double);
        device.synchronize()?;
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        device.free_all()?;
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        Ok(())
    });
}

#[test]
fn owners_wait_for_queued_work() {
    on_device(|device| {
        let library = Library::new()?;
        let big = ones((6000, 6000), DType::F32)?;
        let slow_sum = |a: &NdArray| {
            let slow = cuprum_core::matmul(&big, &big)?.index(s![0, 0])?; // 6000
            (a + slow).sum(())?.eval().cloned()
        };
        slow_sum(&full(N, 0.0, DType::F32)?.eval()?.clone())?; // compiles the kernels
        for stream in [Stream::default_of(device), Stream::new(device)?] {
            let (a, drops) = wrap(&library, device, library.upload(&ramp(N))?)?;
            device.synchronize()?;
            let sum = stream.scope(|| slow_sum(&a))?;
            drop(a);
            assert_eq!(drops.load(Ordering::SeqCst), 0, "the sum is still queued");
            device.synchronize()?;
            assert_eq!(drops.load(Ordering::SeqCst), 1);
            let want: f64 = ramp(N).iter().map(|x| f64::from(*x) + 6000.0).sum();
            assert!((sum.item()?.as_f64() - want).abs() < 1e-4 * want);
        }
        Ok(())
    });
}

#[test]
fn imports_wait_for_the_producer() {
    on_device(|device| {
        let mut library = Library::new()?;
        let values = library.upload(&ramp(N))?;
        let (one, two) = (Stream::default_of(device), Stream::new(device)?);
        for (first, second) in [(one, one), (one, two), (two, one)] {
            let late = library.late(&values)?;
            let (a, _) = first.scope(|| wrap(&library, device, late))?;
            let b = second.scope(|| (&a + 1.0f32).eval().cloned())?;
            assert!(b.to_vec::<f32>()?.iter().zip(ramp(N)).all(|(got, x)| *got == x + 1.0));
        }
        // The producer waits on a stream of this crate instead.
        let late = library.late(&values)?;
        let place = address_of(&late);
        let event = library.stream.record_event(None).map_err(foreign)?;
        let ours = raw_stream(one)?;
        // SAFETY: the event and the stream exist.
        let waited = unsafe {
            cudarc::driver::result::stream::wait_event(
                ours,
                event.cu_event(),
                cudarc::driver::sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT,
            )
        };
        waited.map_err(foreign)?;
        // SAFETY: the slice has N float32, which only the array uses.
        let a = unsafe { from_device_pointer(device, place, DType::F32, N, Box::new(late), None) }?;
        assert_eq!(a.to_vec::<f32>()?, ramp(N));
        Ok(())
    });
}

#[test]
fn foreign_memory_is_never_written() {
    on_device(|device| {
        let library = Library::new()?;
        let (mut a, _) = wrap(&library, device, library.upload(&ramp(N))?)?;
        let place = address(&a)?;
        assert!(!a.is_unique());
        let (other, _) = wrap(&library, device, library.upload(&ramp(N))?)?;
        let sum = other + 1.0f32; // the only user of its input
        assert_eq!(sum.to_vec::<f32>()?[1], 2.0);
        a.assign(s![..10], 5.0f32)?;
        assert_ne!(address(&a)?, place);
        let (mut b, _) = wrap(&library, device, library.upload(&ramp(N))?)?;
        let place = address(&b)?;
        b.make_unique()?;
        assert_ne!(address(&b)?, place, "a user-defined kernel writes to a copy");
        assert_eq!(b.to_vec::<f32>()?, ramp(N));
        Ok(())
    });
}

#[test]
fn readers_get_the_address_and_memory_waits_for_them() {
    on_device(|_| {
        let mut library = Library::new()?;
        let big = ones((4000, 4000), DType::F32)?;
        for _ in 0..5 {
            // The array is computed behind slow work, which the library's stream waits for.
            let slow = cuprum_core::matmul(&big, &big)?.index(s![0, 0])?;
            let a = (full(N, 1.0, DType::F32)? + slow).eval()?.clone(); // 4001
            let pointer = SharedPointer::new(&a, Some(library.foreign()))?;
            assert_eq!((pointer.address(), pointer.layout().shape()), (address(&a)?, &[N][..]));
            // SAFETY: the address has N float32 until the pointer is dropped. The slice is leaked.
            let view = unsafe { library.stream.upgrade_device_ptr::<f32>(pointer.address(), N) };
            let late = library.late(&view)?;
            let _ = view.leak();
            drop((a, pointer)); // before the copy has run
            let noise: Vec<NdArray> = (0..4).map(|_| full(N, 7.0, DType::F32)?.eval().cloned()).collect::<Result<_>>()?;
            assert!(library.download(&late)?.iter().all(|x| *x == 4001.0), "memory was reused too early");
            drop(noise);
        }
        // Views have the address of their first element; without a stream, the drop waits on the host.
        let a = arange(0, 100, 1)?.astype(DType::F32)?.eval()?.clone();
        let view = a.index(s![10..;-1])?;
        let pointer = SharedPointer::new(&view, None)?;
        assert_eq!((pointer.address(), pointer.layout().strides()), (address(&a)? + 40, &[-1][..]));
        // The per-thread default stream is another one on another thread, which therefore waits for the device.
        let pointer = SharedPointer::new(&a, Some(ForeignStream::PER_THREAD_DEFAULT))?;
        std::thread::scope(|s| s.spawn(|| drop(pointer)).join().unwrap());
        Ok(())
    });
}

#[test]
fn writers_get_memory_of_their_own() {
    on_device(|device| {
        let mut library = Library::new()?;
        let a = full(N, 3.0, DType::F32)?.eval()?.clone();
        let shared = SharedPointer::for_writing(a.clone(), Some(library.foreign()))?;
        assert_ne!(shared.address(), address(&a)?);
        let unique = full(N, 3.0, DType::F32)?.eval()?.clone();
        let place = address(&unique)?;
        let pointer = SharedPointer::for_writing(unique, Some(library.foreign()))?;
        assert_eq!(pointer.address(), place);
        // SAFETY: the address has N float32 until the pointer is dropped. The slice is leaked.
        let mut view = unsafe { library.stream.upgrade_device_ptr::<f32>(place, N) };
        library.delay()?;
        library.stream.memset_zeros(&mut view).map_err(foreign)?;
        let _ = view.leak();
        let written = NdArray::from(pointer.array().clone());
        drop(pointer);
        let sum = Stream::new(device)?.scope(|| written.sum(()))?;
        assert_eq!(sum.item()?.as_f64(), 0.0, "later reads run after the write, on any stream");
        drop(shared);
        device.synchronize()
    });
}

#[test]
fn slices_become_arrays_and_arrays_slices() {
    on_device(|device| {
        let mut library = Library::new()?;
        let values = library.upload(&ramp(N))?;
        let late = library.late(&values)?;
        let place = address_of(&late);
        let a = from_cuda_slice(late, (N / 4, 4))?;
        assert_eq!((address(&a)?, a.shape(), a.device()), (place, &[N / 4, 4][..], device));
        let b = (&a * 2.0f32).eval()?.clone();
        let slice = SharedSlice::<f32>::new(&b, &library.stream)?;
        assert_eq!((address_of(&slice), slice.len()), (address(&b)?, N));
        drop(b);
        let late = library.late(&slice)?;
        drop(slice);
        let noise = full(N, 7.0, DType::F32)?.eval()?.clone();
        assert!(library.download(&late)?.iter().zip(ramp(N)).all(|(got, x)| *got == 2.0 * x));
        drop(noise);

        let empty = SharedSlice::<f32>::new(&cuprum_core::zeros(0, DType::F32)?, &library.stream)?;
        assert!(empty.is_empty());
        let text = |error: Error| error.to_string();
        assert!(text(SharedSlice::<f64>::new(&a, &library.stream).unwrap_err()).contains("not of float64; use astype"));
        assert!(text(SharedSlice::<f32>::new(&a.t()?, &library.stream).unwrap_err()).contains("C order; use contiguous"));
        let host = a.to_device(Device::CPU)?;
        assert!(text(SharedSlice::<f32>::new(&host, &library.stream).unwrap_err()).contains("cpu is not a CUDA device"));
        assert!(text(from_cuda_slice(values, (3, 5)).unwrap_err()).contains("does not fill the shape"));
        Ok(())
    });
}

#[test]
fn other_streams_of_the_library_wait_for_a_shared_slice() {
    on_device(|_| {
        let mut library = Library::new()?;
        let other = library.stream.context().new_stream().map_err(foreign)?;
        let values = library.upload(&ramp(N))?;
        // The first turn compiles the kernel, which takes longer than the slow work.
        for _ in 0..2 {
            let a = from_cuda_slice(library.late(&values)?, N)?;
            let slice = SharedSlice::<f32>::new((&a * 2.0f32).eval()?, &library.stream)?;
            let read = other.clone_dtoh(&*slice).map_err(foreign)?;
            assert!(read.iter().zip(ramp(N)).all(|(got, x)| *got == 2.0 * x));
        }
        Ok(())
    });
}

#[test]
fn the_library_may_make_another_context_current() {
    on_device(|device| {
        if CudaContext::device_count().map_err(foreign)? < 2 {
            return Ok(());
        }
        let a = arange(0, 1000, 1)?.to_device(device)?;
        CudaContext::new(1).and_then(|context| context.bind_to_thread()).map_err(foreign)?;
        // An expression of its own, so that its module is loaded here.
        let sum = ((&a * 3) - (&a % 7)).sum(())?;
        assert_eq!(sum.item()?.as_int(), Some((0..1000).map(|n: i128| n * 3 - n % 7).sum()));
        Ok(())
    });
}

#[test]
fn other_addresses_are_refused() {
    on_device(|device| {
        let on_host = [0f32; 4];
        let take = |device, pointer: u64| {
            // SAFETY: the addresses are refused, or have four float32.
            unsafe { from_device_pointer(device, pointer, DType::F32, 4, Box::new(()), None) }.map_err(|e| e.to_string())
        };
        let host = on_host.as_ptr() as u64;
        assert!(take(device, host).unwrap_err().contains("is not memory of a CUDA device"));
        assert!(take(device, 0).unwrap_err().contains("is not memory of a CUDA device"));
        assert!(take(device, host + 1).unwrap_err().contains("is not aligned for float32"));
        assert!(take(Device::CPU, host).unwrap_err().contains("cpu is not a CUDA device"));
        let a = ones(4, DType::F32)?.eval()?.clone();
        Graph::capture(|| {
            assert!(take(device, address(&a)?).is_err_and(|e| e.contains("captured")));
            assert!(SharedPointer::new(&a, None).is_err_and(|e| e.to_string().contains("captured")));
            Ok(&a + 1.0f32)
        })?;
        let buffer = a.stored()?.buffer().clone();
        assert!(CudaBuffer::of(buffer.as_ref()).is_some_and(|buffer| !cuprum_core::device::Buffer::is_foreign(buffer)));
        Ok(())
    });
}
