//! Covers the unsafe code on several threads at sizes that miri can run (`scripts/miri.sh`). Under miri the library's thresholds are
//! lower, so that a few hundred elements make several tasks, blocks and tiles.

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use cuprum_backend_cpu::with_threads;
use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{
    Complex, DType, Device, Layout, NdArray, Result, StoredArray, arange_as, count_nonzero, flip, matmul, s, topk, with_device,
};

/// Number of threads of each test.
const THREADS: usize = 3;

/// Returns the elements of the array that `f` computes on several threads.
fn values<T: cuprum_core::Element>(f: impl FnOnce() -> Result<NdArray>) -> Vec<T> {
    with_threads(THREADS, || f().unwrap().to_vec().unwrap()).unwrap()
}

/// Returns a matrix of the numbers 0, 1, 2, ...
fn numbers(rows: usize, columns: usize, dtype: DType) -> NdArray {
    arange_as(0, (rows * columns) as i64, 1, dtype).unwrap().reshape([rows, columns]).unwrap()
}

/// Returns the elements of the matrix [`numbers`] column by column.
fn transposed(rows: usize, columns: usize) -> Vec<i32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| (r * columns + c) as i32)).collect()
}

#[test]
fn maps_read_outputs_scratch_and_strides() {
    let a = numbers(9, 70, DType::I32);
    let want: Vec<i32> = (0..630).map(|i| (i + 2) * i).collect();
    assert_eq!(values::<i32>(|| (&a + 2).multiply(&a)), want);
    let every_other = a.index(s![..;2, ..;3]).unwrap();
    let want: Vec<i32> = (0..5).flat_map(|r| (0..24).map(move |c| 3 * (r * 140 + c * 3))).collect();
    assert_eq!(values::<i32>(|| every_other.multiply(3)), want);
    assert_eq!(values::<bool>(|| a.less(2)?.logical_not()), (0..630).map(|i| i >= 2).collect::<Vec<_>>());
    assert_eq!(values::<f32>(|| (a.astype(DType::F16)? / 2.0).astype(DType::F32))[..4], [0.0, 0.5, 1.0, 1.5]);
}

#[test]
fn streamed_results() {
    let a = numbers(20, 131, DType::I32);
    assert_eq!(values::<i32>(|| Ok(&a * 2 + 1)), (0..2620).map(|i| 2 * i + 1).collect::<Vec<_>>());
    assert_eq!(values::<i32>(|| a.t()?.contiguous()), transposed(20, 131));
    let row = arange_as(0, 20, 1, DType::I32).unwrap();
    let want: Vec<i32> = transposed(20, 131).iter().enumerate().map(|(i, v)| v + (i % 20) as i32).collect();
    assert_eq!(values::<i32>(|| Ok(a.t()? + &row)), want);
}

#[test]
fn transposing_copies_of_every_element_size() {
    for dtype in [DType::Bool, DType::U8, DType::F16, DType::F32, DType::F64, DType::C128] {
        let a = numbers(17, 18, DType::I32).remainder(2).unwrap().astype(dtype).unwrap();
        let want: Vec<i32> = transposed(17, 18).iter().map(|v| v % 2).collect();
        assert_eq!(values::<i32>(|| a.t()?.copy()?.real()?.astype(DType::I32)), want, "{dtype}");
        let backwards: Vec<i32> = (0..306).rev().map(|v| v % 2).collect();
        assert_eq!(values::<i32>(|| flip(&a, None)?.copy()?.real()?.astype(DType::I32)), backwards, "{dtype}");
    }
}

#[test]
fn threads_share_columns() {
    let a = numbers(8, 150, DType::I64);
    assert_eq!(values::<i64>(|| a.sum(0)), (0..150).map(|c| (0..8).map(|r| r * 150 + c).sum()).collect::<Vec<i64>>());
    assert_eq!(values::<i64>(|| a.cumsum(0))[1050..], (0..150).map(|c| (0..8).map(|r| r * 150 + c).sum()).collect::<Vec<i64>>());
    assert_eq!(values::<i64>(|| a.cumsum(None)).last(), Some(&(1199 * 600)));
}

#[test]
fn radix_sort_partitions_records() {
    let spread = |i: i64| i * 7919 % 701;
    let a = NdArray::from_vec((0..700).map(spread).collect::<Vec<_>>(), 700).unwrap();
    let mut sorted: Vec<i64> = (0..700).map(spread).collect();
    sorted.sort();
    assert_eq!(values::<i64>(|| a.sort(-1)), sorted);
    assert_eq!(values::<f32>(|| a.astype(DType::F32)?.sort(-1)), sorted.iter().map(|&v| v as f32).collect::<Vec<_>>());
    let places = values::<i64>(|| a.argsort(-1));
    assert!(places.iter().zip(&sorted).all(|(&p, &v)| spread(p) == v));
    assert_eq!(values::<i64>(|| Ok(topk(&a, 5, -1, true)?.0)), sorted.iter().rev().take(5).copied().collect::<Vec<_>>());

    let z = |i: u32| Complex::new((i % 3) as f64, -f64::from(i));
    let a = NdArray::from_vec((0..300).map(z).collect::<Vec<_>>(), 300).unwrap();
    let parts = |z: &Complex<f64>| (z.re, z.im);
    assert!(values::<Complex<f64>>(|| a.sort(-1)).is_sorted_by(|a, b| parts(a) <= parts(b)));
    let rows = NdArray::from_vec((0..90).map(|i| (i * 37 % 90) as f32).collect::<Vec<_>>(), [9, 10]).unwrap();
    assert!(values::<f32>(|| rows.sort(-1)).chunks(10).all(|row| row.is_sorted()));
}

#[test]
fn selections_and_gathers() {
    let a = numbers(7, 90, DType::I32);
    assert_eq!(values::<i32>(|| a.extract(&a.remainder(7)?.equal(3)?)), (0..630).filter(|i| i % 7 == 3).collect::<Vec<_>>());
    let at = NdArray::from_slice(&[89i64, 0, -1, 7]).unwrap();
    let want: Vec<i32> = (0..7).flat_map(|r| [89, 0, 89, 7].map(|c| r * 90 + c)).collect();
    assert_eq!(values::<i32>(|| a.take(&at, 1)), want);
}

#[test]
fn batched_products_share_one_output() {
    for dtype in [DType::I32, DType::F32] {
        for (m, k, n) in [(3, 4, 2), (9, 40, 1)] {
            let (a, b) = (numbers(m, k, dtype), numbers(k, n, dtype));
            let at = |i: usize, j: usize| (0..k).map(|p| ((i * k + p) * (p * n + j)) as i32).sum::<i32>();
            let want: Vec<i32> = (0..m).flat_map(|i| (0..n).map(move |j| at(i, j))).collect();
            assert_eq!(values::<i32>(|| matmul(&a, &b)?.astype(DType::I32)), want, "{dtype} {m} {k} {n}");
        }
    }
}

/// Returns a 1-D array over `bytes`, whose memory begins `offset` bytes after a cache line, and the number of times that its owner was
/// dropped.
fn over_foreign_memory(dtype: DType, bytes: &[u8], offset: usize, is_writable: bool) -> (Result<NdArray>, Arc<AtomicUsize>) {
    struct Owner(#[allow(dead_code)] Vec<u8>, Arc<AtomicUsize>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut memory = vec![0u8; bytes.len() + 128];
    let start = memory.as_ptr().align_offset(64) + offset;
    memory[start..start + bytes.len()].copy_from_slice(bytes);
    let ptr = std::ptr::NonNull::new(memory.as_mut_ptr()).unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = Box::new(Owner(memory, drops.clone()));
    // SAFETY: `start + bytes.len()` is inside the vector, which the owner keeps and does not access. Moving a vector keeps its memory.
    let buffer = unsafe { HostBuffer::from_owner(ptr.add(start), bytes.len(), owner, is_writable) };
    let layout = Layout::contiguous(&[bytes.len() / dtype.itemsize()]).unwrap();
    (NdArray::from_host_buffer(dtype, layout, buffer), drops)
}

#[test]
fn kernels_need_the_alignment_of_one_element() {
    for dtype in DType::ALL {
        let values = numbers(6, 45, DType::I64).remainder(2).unwrap().astype(dtype).unwrap().to_bytes().unwrap();
        let (a, drops) = over_foreign_memory(dtype, &values, dtype.alignment(), false);
        let (a, plain) = (a.unwrap(), NdArray::from_bytes(dtype, 270, &values).unwrap());
        let results = |a: &NdArray| -> Result<Vec<NdArray>> {
            let matrix = a.reshape([6, 45])?;
            Ok(vec![
                a.equal(a)?.logical_not()?,
                a.astype(DType::C128)?,
                matrix.sum(0)?,
                a.cumsum(None)?,
                a.sort(-1)?,
                a.argsort(-1)?,
                matmul(&matrix, &matrix.t()?)?,
                matrix.t()?.copy()?,
                flip(a, None)?.copy()?,
                a.extract(&a.astype(DType::Bool)?)?,
                a.take(&NdArray::from_slice(&[3i64, -1])?, 0)?,
                count_nonzero(a, ())?,
            ])
        };
        let got = with_threads(THREADS, || results(&a).unwrap().iter().map(|r| r.to_bytes().unwrap()).collect::<Vec<_>>()).unwrap();
        let want = with_threads(THREADS, || results(&plain).unwrap().iter().map(|r| r.to_bytes().unwrap()).collect::<Vec<_>>()).unwrap();
        assert_eq!(got, want, "{dtype}");
        drop(a);
        assert_eq!(drops.load(Ordering::Relaxed), 1);

        if dtype.alignment() > 1 {
            let (refused, drops) = over_foreign_memory(dtype, &values, 1, false);
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(&format!("is not aligned for {dtype}")), "{error}");
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
    }
}

#[test]
fn arrays_that_bypass_the_alignment_check_are_errors_of_kernels() {
    let (bytes, _) = over_foreign_memory(DType::U8, &[1; 32], 1, true);
    let buffer = bytes.unwrap().stored().unwrap().buffer().clone();
    let mut a = NdArray::from(StoredArray::new(DType::F64, Layout::contiguous(&[4]).unwrap(), buffer).unwrap());
    for result in [a.sum(()), a.negative(), a.sort(-1), flip(&a, None).and_then(|a| a.copy())] {
        let error = result.and_then(|r| r.eval().cloned()).unwrap_err().to_string();
        assert!(error.contains("is not aligned for float64"), "{error}");
    }
    assert!(a.assign(s![0], 2.0).unwrap_err().to_string().contains("is not aligned"));
    assert!(a.as_slice::<f64>().unwrap_err().to_string().contains("is not aligned"));
    assert_eq!(a.to_vec::<f64>().unwrap(), [f64::from_bits(0x0101_0101_0101_0101); 4]);
    let empty = StoredArray::new(DType::F64, Layout::contiguous(&[0]).unwrap(), a.stored().unwrap().buffer().clone()).unwrap();
    assert!(NdArray::from(empty).as_slice::<f64>().unwrap().is_empty());
}

#[test]
fn foreign_memory_is_written_only_if_writable() {
    let bytes = |n: usize| 3u64.to_ne_bytes().repeat(n);
    for is_writable in [false, true] {
        let (a, drops) = over_foreign_memory(DType::U64, &bytes(5000), 8, is_writable);
        let mut a = a.unwrap();
        let address = a.as_slice::<u64>().unwrap().as_ptr();
        a += 1;
        assert_eq!(a.as_slice::<u64>().unwrap().as_ptr() == address, is_writable, "in place");
        assert_eq!(drops.load(Ordering::Relaxed), !is_writable as usize);
        assert_eq!(a.to_vec::<u64>().unwrap(), [4; 5000]);
        let (a, drops) = over_foreign_memory(DType::U64, &bytes(3), 8, is_writable);
        let mut a = a.unwrap();
        a.assign(s![1], 9).unwrap();
        assert_eq!(a.to_vec::<u64>().unwrap(), [3, 9, 3]);
        assert_eq!(drops.load(Ordering::Relaxed), !is_writable as usize, "read-only memory is copied first");
        assert_eq!(a.into_vec::<u64>().unwrap(), [3, 9, 3]);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }
    let (empty, drops) = over_foreign_memory(DType::F64, &[], 1, false);
    assert_eq!(empty.unwrap().sum(()).unwrap().item().unwrap(), 0.0);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

#[test]
fn bytes_that_kernels_write_in_place_are_no_bools() {
    let as_bools = |a: &NdArray| {
        let stored = a.stored().unwrap();
        StoredArray::new(DType::Bool, stored.layout().clone(), stored.buffer().clone())
    };
    let bools = |values| NdArray::from_vec(values, 4).and_then(|a| a.view_as(DType::U8)).unwrap();
    for mut a in [cuprum_core::zeros(4, DType::U8).unwrap(), bools(vec![true, false, true, false])] {
        assert!(as_bools(&a).is_ok());
        a.assign(s![&NdArray::from_slice(&[0, 2]).unwrap()], 7).unwrap();
        assert!(as_bools(&a).is_err(), "{a}");
        a += 1;
        assert!(as_bools(&a).is_err(), "{a}");
        a.assign(s![..], 1).unwrap();
        assert_eq!(NdArray::from(as_bools(&a).unwrap()).as_slice::<bool>().unwrap(), [true; 4]);
    }
}

#[test]
fn read_only_memory_is_not_lent_for_writing() {
    static ZEROS: [u8; 4] = [0; 4];
    // SAFETY: the static lives forever and is never written.
    let mut buffer = unsafe { HostBuffer::from_owner(std::ptr::NonNull::from(&ZEROS).cast(), 4, Box::new(()), false) };
    assert!(buffer.as_mut_bytes().unwrap_err().to_string().contains("read-only"));
    assert!(buffer.normalize_bools().is_err());
    assert_eq!(buffer.as_bytes(), ZEROS);
}

fn of_bytes(dtype: DType, bytes: &[u8]) -> Result<NdArray> {
    let buffer = Arc::new(HostBuffer::from_bytes(bytes)?);
    StoredArray::new(dtype, Layout::contiguous(&[bytes.len()])?, buffer).map(NdArray::from)
}

#[test]
fn invalid_bool_bytes_are_rejected() {
    let error = of_bytes(DType::Bool, &[0, 1, 2]).err().unwrap().to_string();
    assert!(error.contains("bytes other than 0 and 1"), "{error}");
    assert_eq!(values::<bool>(|| of_bytes(DType::Bool, &[0, 1, 1])?.logical_not()), [true, false, false]);

    // `numbers` shares a buffer with an array of another dtype and with a view of that array.
    let numbers = of_bytes(DType::U8, &[0, 1, 1, 3]).unwrap().stored().unwrap();
    let first = Layout::contiguous(&[2]).unwrap();
    assert!(StoredArray::new(DType::Bool, first.clone(), numbers.buffer().clone()).is_err());
    let flags = of_bytes(DType::U8, &[0, 1, 1, 0]).unwrap().stored().unwrap();
    let flags = StoredArray::new(DType::Bool, first, flags.buffer().clone()).map(NdArray::from).unwrap();
    assert_eq!(values::<bool>(|| flags.logical_not()), [true, false]);
    assert_eq!(values::<i64>(|| count_nonzero(&flags, ())), [1]);
}

#[test]
fn kernels_reject_a_buffer_whose_block_changes() {
    /// A buffer that returns its first memory block once, then the second.
    struct Exchanged(AtomicUsize, [HostBuffer; 2]);
    impl Buffer for Exchanged {
        fn device(&self) -> Device {
            Device::CPU
        }
        fn nbytes(&self) -> usize {
            3
        }
        fn as_any(&self) -> &dyn Any {
            &self.1[self.0.fetch_add(1, Ordering::Relaxed).min(1)]
        }
    }
    let blocks = [[0, 1, 1], [0, 1, 2]].map(|bytes| HostBuffer::from_bytes(&bytes).unwrap());
    let buffer = Arc::new(Exchanged(AtomicUsize::new(0), blocks));
    let array = NdArray::from(StoredArray::new(DType::Bool, Layout::contiguous(&[3]).unwrap(), buffer).unwrap());
    assert!(array.logical_not().and_then(|a| a.to_vec::<bool>()).is_err());
    assert_eq!(array.to_vec::<bool>().unwrap(), [false, true, true]);
}

#[test]
fn bytes_become_valid_bools() {
    let array = NdArray::from_bytes(DType::Bool, 4, &[0, 1, 2, 255]).unwrap();
    assert_eq!(values::<bool>(|| array.logical_not()), [true, false, false, false]);
    assert_eq!(array.to_bytes().unwrap(), [0, 1, 1, 1]);
}

#[test]
fn arrays_are_evaluated_while_a_thread_ends() {
    /// Evaluates an array when it is dropped, and sends the number of its elements.
    struct EvaluateOnDrop(NdArray, mpsc::Sender<usize>);
    impl Drop for EvaluateOnDrop {
        fn drop(&mut self) {
            let doubled = with_device(Device::CPU, || (&self.0 * 2.0).copy());
            self.1.send(doubled.map_or(0, |a| a.size())).unwrap();
        }
    }
    thread_local! {
        static AT_END: RefCell<Option<EvaluateOnDrop>> = const { RefCell::new(None) };
    }
    let side = if cfg!(miri) { 32 } else { 1 << 10 };
    let (sender, received) = mpsc::channel();
    let ended = std::thread::spawn(move || {
        let strided = NdArray::from_vec(vec![1.0; side * side], [side, side]).unwrap().t().unwrap();
        // Thread-locals are destroyed in reverse order of their first use, so this one comes after the thread-locals of the evaluation.
        AT_END.with(|at_end| *at_end.borrow_mut() = Some(EvaluateOnDrop(strided.clone(), sender)));
        with_device(Device::CPU, || (&strided + 1.0).copy()).unwrap();
    });
    assert!(ended.join().is_ok());
    assert_eq!(received.recv(), Ok(side * side));
}
