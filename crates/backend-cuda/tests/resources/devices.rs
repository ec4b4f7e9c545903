//! Two GPUs in one program: arrays stay on their device, copies between devices, computations on each and on both at once.

use std::time::Instant;

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::args;
use cuprum_backend_cuda::testing;
use cuprum_backend_cuda::user_kernels::{Launch, RawKernel};
use cuprum_core::{
    DType, Device, NdArray, Result, Stream, add, arange, concat, full, matmul, ones, unique, where_, with_device, with_stream, zeros,
};

/// Runs `test` with two devices, in both orders.
fn on_two(test: impl Fn(Device, Device) -> Result<()>) {
    let _guard = crate::exclusive();
    if let Some((one, two)) = testing::two_devices() {
        [(one, two), (two, one)].into_iter().for_each(|(a, b)| test(a, b).unwrap());
    }
}

fn ramp(n: usize, offset: usize) -> Vec<f32> {
    (0..n).map(|i| ((i + offset) % 1000) as f32).collect()
}

/// Keeps the current stream of the device that it was compiled for busy for about 10 ms.
fn delay(device: Device) -> Result<impl Fn() -> Result<()>> {
    let source = r#"extern "C" __global__ void delay(long long cycles) {
        for (long long start = clock64(); clock64() - start < cycles;) {}
    }"#;
    let kernel = with_device(device, || RawKernel::compile(source, "delay"))?;
    // SAFETY: touches no memory.
    let queue = move || unsafe { kernel.launch(Launch::new(1, 1), args![20_000_000i64]) };
    queue()?;
    Ok(queue)
}

#[test]
fn copies_cross() {
    on_two(|here, there| {
        for n in [0, 1, 1000, 1 << 20] {
            let a = with_device(here, || NdArray::from_slice(&ramp(n, n)))?;
            let b = a.to_device(there)?;
            assert_eq!((a.device(), b.device()), (here, there));
            assert_eq!(b.to_vec::<f32>()?, ramp(n, n));
            assert_eq!(b.to_device(here)?.to_vec::<f32>()?, ramp(n, n));
        }
        let table = with_device(here, || NdArray::from_vec(ramp(6000, 0), [60, 100]))?;
        let turned = table.t()?.to_device(there)?;
        assert_eq!(turned.to_vec::<f32>()?, table.t()?.to_vec::<f32>()?);
        let part = table.index(cuprum_core::s![5..50, ..;3])?.to_device(there)?;
        assert_eq!(part.to_vec::<f32>()?, table.index(cuprum_core::s![5..50, ..;3])?.to_vec::<f32>()?);
        // Adjacent rows are a range of the buffer.
        let rows = table.index(cuprum_core::s![7..31, ..])?;
        assert_eq!(rows.to_device(there)?.to_vec::<f32>()?, rows.to_vec::<f32>()?);
        // A deferred array is evaluated on its device, then copied.
        let deferred = (&table * 2.0f32 + 1.0f32).to_device(there)?;
        assert_eq!(deferred.sum(())?.item()?, (&table * 2.0f32 + 1.0f32).sum(())?.item()?);
        for dtype in DType::ALL {
            let one = with_device(here, || arange(0, 7, 1)?.astype(dtype))?;
            assert_eq!(one.to_device(there)?.to_string(), one.to_string(), "{dtype}");
        }
        Ok(())
    });
}

/// A copy between devices waits for the work that writes its source, on any stream. The memory of the source is reused only after the copy.
#[test]
fn copies_keep_their_order() {
    on_two(|here, there| {
        let (delay, n) = (delay(here)?, 1 << 20);
        let stream = Stream::new(here)?;
        let target = Stream::new(there)?;
        for round in 0..5 {
            let a = with_device(here, || NdArray::from_slice(&ramp(n, round)))?;
            let made = with_stream(stream, || delay().and_then(|()| (&a + 1.0f32).eval().cloned()))?;
            let over = with_stream(target, || made.to_device(there))?;
            drop(made);
            let noise = with_stream(stream, || {
                with_device(here, || (0..4).map(|_| full(n, -1.0, DType::F32)?.eval().cloned()).collect::<Result<Vec<_>>>())
            })?;
            let want: Vec<f32> = ramp(n, round).iter().map(|x| x + 1.0).collect();
            assert!(over.to_vec::<f32>()? == want, "round {round}, {here} to {there}");
            drop(noise);
        }
        // The reverse: the copy waits until a kernel on the target device has read the memory that the copy overwrites.
        let slow = self::delay(there)?;
        for round in 0..5 {
            let b = with_device(there, || NdArray::from_slice(&ramp(n, round)))?;
            let twice = with_stream(target, || slow().and_then(|()| (&b * 2.0f32).eval().cloned()))?;
            drop(b);
            let a = with_device(here, || full(n, -1.0, DType::F32)?.eval().cloned())?;
            let over = a.to_device(there)?;
            let want: Vec<f32> = ramp(n, round).iter().map(|x| x * 2.0).collect();
            assert!(twice.to_vec::<f32>()? == want, "round {round}, {here} to {there}");
            assert_eq!(over.to_vec::<f32>()?, vec![-1.0; n]);
        }
        Ok(())
    });
}

#[test]
fn mixing_devices_is_an_error_that_names_both() {
    on_two(|here, there| {
        let a = with_device(here, || ones([4, 4], DType::F32))?;
        let b = with_device(there, || ones([4, 4], DType::F32))?;
        let results = [
            ("add", add(&a, &b)),
            ("matmul", matmul(&a, &b)),
            ("where", where_(a.greater(0)?, &a, &b)),
            ("concat", concat(&[a.clone(), b.clone()], 0)),
            ("take", a.take(&b.astype(DType::I64)?, 0)),
        ];
        for (op, result) in results {
            let text = result.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(text.contains(&here.to_string()) && text.contains(&there.to_string()) && text.contains("to_device"), "{op}: {text}");
        }
        Ok(())
    });
}

/// Covers every family with state per device: kernels, libraries, workspaces, pools.
#[test]
fn each_device_computes_alone_and_concurrently() {
    fn works(device: Device) -> Result<Vec<f64>> {
        with_device(device, || {
            let a = NdArray::from_vec(ramp(300 * 200, 0), [300, 200])?;
            let results = [
                (&a * 0.5f32 + 1.0f32).sum(())?,
                a.var(1)?.sum(())?,
                a.cumsum(0)?.max(())?,
                matmul(&a, &a.t()?)?.sum(())?,
                a.sort(-1)?.index(cuprum_core::s![.., 7])?.sum(())?,
                a.argmax(0)?.astype(DType::F32)?.sum(())?,
                a.extract(&a.greater(500)?)?.sum(())?,
                unique(&a)?.sum(())?,
            ];
            results.iter().for_each(|r| assert_eq!(r.device(), device));
            results.iter().map(|r| Ok(r.item()?.as_f64())).collect()
        })
    }
    on_two(|here, there| {
        let want = works(here)?;
        assert_eq!(works(there)?, want);
        // Concurrently from several threads, each of which uses both devices.
        std::thread::scope(|threads| {
            let both = [[here, there], [there, here]];
            let running: Vec<_> = both
                .into_iter()
                .map(|devices| {
                    let want = &want;
                    threads.spawn(move || {
                        for round in 0..20 {
                            for device in devices {
                                assert_eq!(works(device).unwrap(), *want, "{device}, round {round}");
                            }
                        }
                    })
                })
                .collect();
            running.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Ok(())
    });
}

/// When the pool returns free memory to the driver, it drops pinned memory of another device, which makes the other context current.
/// Library calls must then make their own context current again.
#[test]
fn libraries_run_on_their_device_after_kept_memory_was_returned() {
    on_two(|here, there| {
        let a = with_device(here, || ones([256, 256], DType::F32)?.eval().cloned())?;
        matmul(&a, &a)?.eval()?;
        let values = with_device(Device::CPU, || ones(1 << 20, DType::F32))?;
        let stream = Stream::new(here)?;
        // The limit below leaves memory for the product, but not for all free blocks that the pool keeps.
        with_device(here, || with_stream(stream, || zeros([256, 256], DType::F32)?.eval().map(|_| ())))?;
        with_device(here, || zeros(64 << 20, DType::F32)?.eval().map(|_| ()))?;
        // The copy keeps the pinned memory until its completion is queried.
        let pinned = values.pin_memory(there)?;
        let copied = pinned.to_device(here)?;
        drop(pinned);
        // The workspace of cuBLAS for the stream now needs kept memory to be returned.
        here.set_memory_limit(Some(here.memory_stats()?.used + (96 << 20)))?;
        let product = with_stream(stream, || matmul(&a, &a)?.to_vec::<f32>());
        here.set_memory_limit(None)?;
        assert!(product?.iter().all(|&x| x == 256.0));
        assert_eq!(copied.sum(())?.item()?.as_f64(), f64::from(1 << 20));
        here.free_all()?;
        let after = with_device(here, || full(1000, 2.0, DType::F32)?.sum(())?.item())?;
        assert_eq!(after.as_f64(), 2000.0);
        Ok(())
    });
}

#[test]
fn memory_is_counted_by_device() {
    on_two(|here, there| {
        here.synchronize()?;
        let (used, other) = (here.memory_stats()?.used, there.memory_stats()?.used);
        let a = with_device(here, || ones(1 << 20, DType::F32)?.eval().cloned())?;
        assert_eq!((here.memory_stats()?.used - used, there.memory_stats()?.used), (4 << 20, other));
        let b = a.to_device(there)?;
        assert_eq!((here.memory_stats()?.used - used, there.memory_stats()?.used - other), (4 << 20, 4 << 20));
        drop((a, b));
        Ok(())
    });
}

/// Prints the rate of a large copy between devices, which shows whether the copy is peer to peer.
#[test]
fn copy_rate_between_devices() {
    on_two(|here, there| {
        let a = with_device(here, || ones(1 << 28, DType::F32)?.eval().cloned())?;
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            let b = a.to_device(there)?;
            there.synchronize()?;
            best = best.min(start.elapsed().as_secs_f64());
            drop(b);
        }
        println!("{here} to {there}: {:.1} GB/s", a.nbytes() as f64 / best / 1e9);
        Ok(())
    });
}
