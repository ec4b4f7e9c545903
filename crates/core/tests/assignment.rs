//! Assignment and evaluation in place. The memory statistics are process-wide, so the tests take turns.

use std::sync::{Arc, Mutex, MutexGuard};

use cuprum_backend_cpu as _;
use cuprum_core::device::Buffer;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::ops::elementwise::NEGATIVE;
use cuprum_core::{
    Accelerator, Availability, Call, DType, Device, Error, Family, Kernel, NdArray, Outcome, Result, arange_as, broadcast_to, decline,
    explain, flip, full, ones, register, s, with_device, zeros,
};

/// Number of elements of arrays that are large enough to be computed in place.
const N: usize = 1 << 14;

fn on_cpu(test: impl FnOnce() -> Result<()>) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn: MutexGuard<()> = TURN.lock().unwrap_or_else(|e| e.into_inner());
    with_device(Device::CPU, test).unwrap();
}

fn arange(dtype: DType) -> Result<NdArray> {
    arange_as(0, N as i64, 1, dtype)
}

/// Runs `f` and returns 0 if it allocated no memory, else the number of bytes in use beyond those before, at least 1.
fn allocated(f: impl FnOnce() -> Result<()>) -> Result<usize> {
    let stats = || Device::CPU.memory_stats();
    let (used, hits, misses) = (stats()?.used, stats()?.hits, stats()?.misses);
    f()?;
    let after = stats()?;
    assert!(after.hits + after.misses >= hits + misses);
    Ok(if (after.hits, after.misses) == (hits, misses) { 0 } else { after.used.max(used + 1) - used })
}

#[test]
fn operators_write_in_place() {
    on_cpu(|| {
        let b = full(N, 2.0, DType::F64)?;
        let mut a = arange(DType::F64)?;
        let bytes = allocated(|| {
            a += &b;
            a.eval()?;
            a *= 0.5;
            a -= &b;
            a.eval().map(|_| ())
        })?;
        assert_eq!((bytes, &a.to_vec::<f64>()?[..3]), (0, &[-1.0, -0.5, 0.0][..]));
        let row = full(64, 1.0, DType::F64)?;
        let mut matrix = a.reshape([N / 64, 64])?;
        drop(a);
        let bytes = allocated(|| {
            matrix /= &row;
            matrix += matrix.exp()? * 0.0;
            matrix.eval().map(|_| ())
        })?;
        assert_eq!((bytes, &matrix.to_vec::<f64>()?[..3]), (0, &[-1.0, -0.5, 0.0][..]));
        Ok(())
    });
}

#[test]
fn temporaries_are_reused() {
    on_cpu(|| {
        let bytes = allocated(|| {
            let ones = ones(N, DType::F32)?;
            let shifted = ones + 1.0;
            assert_eq!(shifted.eval()?.to_vec::<f32>()?[N - 1], 2.0);
            Ok(())
        })?;
        assert!(bytes <= 4 * N, "one block: {bytes}");
        Ok(())
    });
}

#[test]
fn shared_elements_are_not_changed() {
    on_cpu(|| {
        let mut a = arange(DType::I64)?;
        let (clone, view, deferred) = (a.clone(), a.index(s![1..])?, &a * 10);
        a += 5;
        assert_eq!(a.to_vec::<i64>()?[..3], [5, 6, 7]);
        assert_eq!((clone.to_vec::<i64>()?[2], view.to_vec::<i64>()?[1], deferred.to_vec::<i64>()?[2]), (2, 2, 20));
        // The update reads a view of the elements that it overwrites.
        let mut b = arange(DType::I64)?;
        let reversed = flip(&b, None)?;
        b += &reversed;
        drop(reversed);
        assert!(b.to_vec::<i64>()?.iter().all(|v| *v == N as i64 - 1));
        // The update reads the array several times, also with another layout.
        let mut square = arange(DType::I64)?.reshape([128, N / 128])?;
        square.update(|x| Ok(&(x * x) + &x.t()?))?;
        assert_eq!(square.index(s![1, 2])?.item()?, ((N / 128 + 2).pow(2) + 2 * (N / 128) + 1) as i64);
        Ok(())
    });
}

#[test]
fn updates_keep_dtype_and_shape() {
    on_cpu(|| {
        let mut a = NdArray::from_slice(&[1.0f32, 2.0])?;
        a += &NdArray::from_slice(&[0.5f64, 0.25])?;
        assert_eq!((a.dtype(), a.to_vec::<f32>()?), (DType::F32, vec![1.5, 2.25]));
        let mut i = NdArray::from_slice(&[1, 2])?;
        assert!(matches!(i.update(|i| cuprum_core::divide(i, 2)), Err(Error::DType { op: "update", .. })));
        assert!(matches!(i.update(|i| broadcast_to(i, [2, 2])), Err(Error::Shape { op: "update", .. })));
        assert!(i.update(|_| ones(3, DType::F32)?.reshape(4)).is_err());
        assert_eq!(i.to_vec::<i32>()?, [1, 2]);
        let mut total = NdArray::scalar(1)?;
        total += &i;
        assert_eq!(total.to_vec::<i64>()?, [2, 3], "a 0-d array is a number");
        Ok(())
    });
}

#[test]
fn results_take_the_memory_of_out() {
    on_cpu(|| {
        let (a, mut out) = (arange(DType::F64)?, arange(DType::F64)?);
        let before = Device::CPU.memory_stats()?;
        out.assign_from(&a * 2)?;
        let after = Device::CPU.memory_stats()?;
        assert_eq!((after.used, after.peak, after.misses), (before.used, before.peak, before.misses));
        assert_eq!(out.to_vec::<f64>()?[N - 1], 2.0 * (N as f64 - 1.0));
        let sum = &out + &a;
        assert_eq!(allocated(|| out.assign_from(sum))?, 0, "the old value is computed over");
        assert_eq!(out.to_vec::<f64>()?[1], 3.0);
        let mut matrix = zeros([2, 2], DType::F32)?;
        let shared = matrix.clone();
        matrix.assign_from(&NdArray::from_slice(&[1, 2])?)?;
        assert_eq!((matrix.to_vec::<f32>()?, shared.to_vec::<f32>()?), (vec![1.0, 2.0, 1.0, 2.0], vec![0.0; 4]));
        matrix.assign_from(7)?;
        assert_eq!((matrix.dtype(), matrix.to_vec::<f32>()?), (DType::F32, vec![7.0; 4]));
        assert!(matches!(matrix.assign_from(zeros(3, DType::F32)?), Err(Error::Shape { op: "assign_from", .. })));
        assert!(matches!(matrix.assign_from(zeros(2, DType::C64)?), Err(Error::DType { op: "assign_from", .. })));
        assert!(matches!(zeros(2, DType::I32)?.assign_from(1.5), Err(Error::DType { .. })));
        assert_eq!(matrix.to_vec::<f32>()?, [7.0; 4]);
        Ok(())
    });
}

#[test]
fn slices_are_assigned_in_place() {
    on_cpu(|| {
        let (mut a, ones) = (arange(DType::I32)?.reshape([4, N / 4])?, ones(N / 4, DType::I32)?);
        assert_eq!(allocated(|| a.assign(s![1], &ones))?, 0);
        assert_eq!(allocated(|| a.assign(s![.., ..;2], a.index(s![.., ..;2]).map(|_| &ones)?.index(s![..;2])?))?, 0);
        assert_eq!(a.index(s![.., ..3])?.to_vec::<i32>()?[..6], [1, 1, 1, 1, 1, 1]);
        assert_eq!(a.index(s![3, 1])?.item()?, 3 * N as i64 / 4 + 1);
        Ok(())
    });
}

#[test]
fn slices_of_any_layout() {
    on_cpu(|| {
        let base = || arange_as(0, 12, 1, DType::I32)?.reshape([3, 4]);
        let three = NdArray::from_slice(&[-1.5, -2.5, -3.5])?;
        let mut a = base()?;
        a.assign(s![.., ..;-2], three.reshape([3, 1])?)?;
        assert_eq!(a.to_vec::<i32>()?, [0, -1, 2, -1, 4, -2, 6, -2, 8, -3, 10, -3]);
        let mut t = base()?.t()?;
        t.assign(s![..;-3, ..], &three)?;
        assert_eq!(t.to_vec::<i32>()?, [-1, -2, -3, 1, 5, 9, 2, 6, 10, -1, -2, -3]);
        let mut repeated = broadcast_to(&NdArray::from_slice(&[1, 2])?, [3, 2])?;
        repeated.assign(s![0], 9)?;
        assert_eq!(repeated.to_vec::<i32>()?, [9, 9, 1, 2, 1, 2], "repeated elements get memory of their own");
        let mut shifted = base()?.reshape(12)?;
        let earlier = shifted.index(s![..11])?;
        shifted.assign(s![1..], &earlier)?;
        assert_eq!(shifted.to_vec::<i32>()?, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let mut flags = zeros([2, 3], DType::Bool)?;
        flags.assign(s![.., 1], NdArray::from_slice(&[0.0, 2.0])?)?;
        assert_eq!(flags.to_vec::<bool>()?, [false, false, false, false, true, false]);
        let mut part = base()?.index(s![1])?;
        part.assign(s![2], 0)?;
        part.assign(s![4..], 1)?;
        part.assign(s![0..0], &three.index(s![..1])?)?;
        assert_eq!(part.to_vec::<i32>()?, [4, 5, 0, 7]);
        let mut diagonal = base()?.diagonal(0, 0, 1)?;
        diagonal.assign(s![..2], &NdArray::from_slice(&[7, 8])?.reshape([1, 1, 2])?)?;
        assert_eq!(diagonal.to_vec::<i32>()?, [7, 8, 10]);
        Ok(())
    });
}

#[test]
fn assignment_has_value_semantics() {
    on_cpu(|| {
        let mut a = NdArray::from_slice(&[1, 2, 3])?;
        let (clone, view, deferred) = (a.clone(), a.index(s![..2])?, &a + 1);
        a.assign(s![0], 9)?;
        assert_eq!(a.to_vec::<i32>()?, [9, 2, 3]);
        assert_eq!((clone.to_vec::<i32>()?, view.to_vec::<i32>()?, deferred.to_vec::<i32>()?), (vec![1, 2, 3], vec![1, 2], vec![2, 3, 4]));
        assert!(matches!(a.assign(s![5], 0), Err(Error::Index { .. })));
        assert!(matches!(a.assign(s![..2], zeros(3, DType::I32)?), Err(Error::Shape { op: "assign", .. })));
        assert!(a.assign(s![0], 1i64 << 40).is_err(), "an int that int32 cannot hold");
        assert_eq!(a.to_vec::<i32>()?, [9, 2, 3]);
        Ok(())
    });
}

#[test]
fn threads_see_one_value() {
    on_cpu(|| {
        for _ in 0..20 {
            let mut a = arange(DType::F64)?;
            a += 1.0;
            let last = || a.index(s![-1]).unwrap().item().unwrap();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(last)).collect();
                threads.into_iter().for_each(|t| assert_eq!(t.join().unwrap(), N as f64));
            });
        }
        Ok(())
    });
}

/// An accelerator that does not declare [`Kernel::writes_targets`]. Its only results are arrays of -7, for negations of float64.
static WITHOUT_TARGETS: Accelerator = Accelerator {
    name: "plain",
    device: "cpu",
    rank: -10,
    summary: "declares no targets",
    probe: || Availability::Ready(String::new()),
    kernels: &[Kernel::new(Family::Map, answer_minus_seven), Kernel::new(Family::Copy, answer_minus_seven)],
    base: None,
};

fn answer_minus_seven(call: &Call) -> Result<Outcome> {
    assert!(!call.has_output_targets(), "a kernel that declares no targets received one");
    let is_negation = call.program().is_some_and(|p| p.ops().eq([NEGATIVE])) && call.outputs[0].dtype == DType::F64;
    if !is_negation {
        decline!("only negates float64");
    }
    call.outcome_from_buffers([Arc::new(HostBuffer::from_slice(&vec![-7.0f64; call.outputs[0].layout.size()])?) as Arc<dyn Buffer>])
}

#[test]
fn kernels_without_targets_receive_new_memory() {
    on_cpu(|| {
        register(&WITHOUT_TARGETS)?;
        let mut a = arange(DType::F64)?;
        let ((), records) = explain(|| {
            a.update(|a| a.negative()).unwrap();
            a.eval().unwrap();
        });
        assert_eq!((records[0].served_by, a.index(s![5])?.item_as()?), (Some("plain"), -7.0));
        let ((), records) = explain(|| a.assign(s![1..3], 2.0).unwrap());
        let copy = records.iter().find(|r| r.op == "copy").unwrap();
        assert_eq!((copy.served_by, copy.declined.len()), (Some("cpu"), 1));
        assert!(copy.declined[0].1.contains("existing array"), "{copy}");
        assert_eq!(a.index(s![..4])?.to_vec::<f64>()?, [-7.0, 2.0, 2.0, -7.0]);
        Ok(())
    });
}

#[test]
fn a_slice_of_the_array_itself_is_copied_alone() {
    on_cpu(|| {
        let mut a = arange_as(0, 12, 1, DType::I64)?.reshape([3, 4])?.eval()?.clone();
        let address = |a: &NdArray| a.stored().map(|stored| Arc::as_ptr(stored.buffer()).cast::<()>());
        let before = address(&a)?;
        a.assign(s![0], a.index(s![1])?)?;
        a.assign(s![.., 0], a.index(s![..;-1, 3])?)?;
        assert_eq!(address(&a)?, before, "the array was copied");
        assert_eq!(a.to_vec::<i64>()?, [11, 5, 6, 7, 7, 5, 6, 7, 7, 9, 10, 11]);
        let view = a.index(s![2])?;
        a.assign(s![0], view.clone())?;
        assert_eq!((view.to_vec::<i64>()?, a.index(s![0])?.to_vec::<i64>()?), (vec![7, 9, 10, 11], vec![7, 9, 10, 11]));
        Ok(())
    });
}
