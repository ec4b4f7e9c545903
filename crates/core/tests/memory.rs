//! The pool of host memory: reuse, statistics and the limit. It is one test, since the counters are process-wide.

use cuprum_backend_cpu as _;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{DType, Device, Error, NdArray, ones, with_device};

/// One MiB, or 8 KiB under Miri, which is about 1000 times slower.
const MIB: usize = if cfg!(miri) { 1 << 13 } else { 1 << 20 };

#[test]
fn reuse_statistics_and_limit() {
    let stats = || Device::CPU.memory_stats().unwrap();
    let array = |mib: usize| with_device(Device::CPU, || ones(mib * MIB / 8, DType::F64)?.eval().cloned());
    Device::CPU.free_all().unwrap();
    let start = stats();
    assert_eq!((start.used, start.cached, start.limit), (0, 0, None));

    // A request of the same size class reuses a freed block, whatever the dtype.
    let a = array(8).unwrap();
    assert_eq!((stats().used, stats().misses), (8 * MIB, start.misses + 1));
    let first = HostBuffer::uninit(8 * MIB).unwrap();
    let address = first.as_ptr();
    drop(first);
    assert_eq!((stats().cached, stats().reserved), (8 * MIB, 16 * MIB));
    let zeros = HostBuffer::zeroed(8 * MIB - 100).unwrap();
    assert_eq!(zeros.as_ptr(), address);
    assert!(zeros.as_bytes().iter().all(|&b| b == 0));
    assert_eq!((stats().hits, stats().cached), (start.hits + 1, 0));
    assert_eq!(stats().peak, 16 * MIB);
    drop((a, zeros));
    assert_eq!((stats().used, stats().cached), (0, 16 * MIB));

    // The limit covers arrays and cached blocks. Cached blocks are released to stay within it.
    Device::CPU.set_memory_limit(Some(20 * MIB)).unwrap();
    let a = array(12).unwrap();
    assert!(stats().reserved <= 20 * MIB, "{:?}", stats());
    match array(10) {
        Err(Error::OutOfMemory { device, requested, used, limit, op }) => {
            assert_eq!((device, requested, used, limit), (Device::CPU, 10 * MIB, 12 * MIB, Some(20 * MIB)));
            assert_ne!(op, "");
        }
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("22 MiB under a limit of 20"),
    }
    assert_eq!(stats().used, 12 * MIB);
    drop(a);
    array(16).unwrap();
    Device::CPU.set_memory_limit(None).unwrap();

    // Requests beyond the machine's memory are errors without side effects.
    assert!(matches!(HostBuffer::uninit(usize::MAX), Err(Error::OutOfMemory { .. })));
    assert!(cfg!(miri) || matches!(HostBuffer::uninit(1 << 60), Err(Error::OutOfMemory { .. })));
    Device::CPU.free_all().unwrap();
    assert_eq!((stats().used, stats().cached, stats().reserved), (0, 0, 0));

    // A vector moves into an array and back, also beyond the limit. It counts once, and is not copied.
    let values = vec![1.5f64; 4 * MIB];
    let mut a = with_device(Device::CPU, || NdArray::from_vec(values, 4 * MIB)).unwrap();
    assert_eq!((stats().used, stats().peak, stats().reserved), (32 * MIB, 32 * MIB, 0));
    Device::CPU.set_memory_limit(Some(20 * MIB)).unwrap();
    assert!(matches!(array(1), Err(Error::OutOfMemory { used, .. }) if used == 32 * MIB));
    let other = with_device(Device::CPU, || NdArray::from_vec(vec![1u8; MIB], MIB)).unwrap();
    Device::CPU.set_memory_limit(None).unwrap();
    drop(other);
    a *= 2.0;
    assert_eq!((a.as_slice::<f64>().unwrap()[MIB], stats().used, stats().peak), (3.0, 32 * MIB, 33 * MIB));
    let values = a.into_vec::<f64>().unwrap();
    assert_eq!((values.len(), stats().used, stats().peak), (4 * MIB, 0, 33 * MIB));
    drop(values);
    assert_eq!(stats().used, 0);

    // Blocks that threads hold at the same time are distinct, and all are returned.
    std::thread::scope(|scope| {
        for t in 0..4u8 {
            scope.spawn(move || {
                for i in 0..if cfg!(miri) { 5 } else { 200 } {
                    let size = [100, 5_000, 40_000, 70_000, 3 * MIB][(i + t as usize) % 5];
                    let held = HostBuffer::from_bytes(&vec![t; size]).unwrap();
                    std::thread::yield_now();
                    assert!(held.as_bytes().iter().all(|&b| b == t));
                }
            });
        }
    });
    assert_eq!(stats().used, 0);
    assert!(stats().cached == stats().reserved);

    // A request beyond the limit does not count while it is refused, so that requests of other threads succeed.
    Device::CPU.set_memory_limit(Some(20 * MIB)).unwrap();
    let repetitions = if cfg!(miri) { 50 } else { 100_000 };
    std::thread::scope(|scope| {
        scope.spawn(|| (0..repetitions).for_each(|_| assert!(HostBuffer::uninit(20 * MIB + 1).is_err())));
        (0..repetitions).for_each(|_| drop(HostBuffer::uninit(100).unwrap()));
    });
    Device::CPU.set_memory_limit(None).unwrap();
}
