//! Streams and events on a real device: arrays used across streams, reuse of memory, and timing. A delay before the work that
//! must run first exposes a missing wait.

use std::time::{Duration, Instant};

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::args;
use cuprum_backend_cuda::user_kernels::{Launch, RawKernel};
use cuprum_core::{DType, Device, Event, KernelLaunch, NdArray, Result, Stream, explain, full, matmul, with_stream};

use crate::on_device;

/// Keeps the current stream busy for about 10 ms.
struct Delay(RawKernel);

impl Delay {
    fn new() -> Result<Delay> {
        let source = r#"extern "C" __global__ void delay(long long cycles) {
            for (long long start = clock64(); clock64() - start < cycles;) {}
        }"#;
        let delay = Delay(RawKernel::compile(source, "delay")?);
        delay.queue()?;
        Ok(delay)
    }

    fn queue(&self) -> Result<()> {
        // SAFETY: touches no memory.
        unsafe { self.0.launch(Launch::new(1, 1), args![20_000_000i64]) }
    }
}

fn ramp(n: usize, offset: usize) -> Vec<f32> {
    (0..n).map(|i| ((i + offset) % 1000) as f32).collect()
}

#[test]
fn streams_are_distinct() {
    on_device(|device| {
        let streams = (0..40).map(|_| Stream::new(device)).collect::<Result<Vec<_>>>()?;
        assert!(streams.iter().all(|s| s.id > 0 && !s.is_capturing()));
        assert!(streams[..32].iter().enumerate().all(|(n, s)| streams[..n].iter().all(|t| t != s)), "32 of them, then again");
        assert_eq!(streams[32], streams[0]);
        assert_eq!(Stream::current(device), Stream::default_of(device));
        with_stream(streams[5], || assert_eq!(Stream::current(device), streams[5]));
        Ok(())
    });
}

#[test]
fn a_stream_reads_what_another_wrote() {
    on_device(|device| {
        let (delay, n) = (Delay::new()?, 1 << 20);
        let (one, two) = (Stream::new(device)?, Stream::new(device)?);
        let want: Vec<f32> = ramp(n, 0).iter().map(|x| (x + 1.0) * 2.0).collect();
        for (from, to) in [(one, two), (Stream::default_of(device), one), (one, Stream::default_of(device))] {
            // A kernel reads a kernel's output.
            let a = NdArray::from_slice(&ramp(n, 0))?;
            let made = from.scope(|| delay.queue().and_then(|()| (&a + 1.0f32).eval().cloned()))?;
            let read = to.scope(|| (&made * 2.0f32).eval().cloned())?;
            assert!(to.scope(|| read.to_vec::<f32>())? == want, "{from} to {to}");
            // A copy to the host reads it.
            let made = from.scope(|| delay.queue().and_then(|()| ((&a + 1.0f32) * 2.0f32).eval().cloned()))?;
            assert!(to.scope(|| made.to_vec::<f32>())? == want, "{from} to {to}");
            // An upload, small and large, is read.
            for part in [1000, n] {
                let up = from.scope(|| delay.queue().and_then(|()| NdArray::from_slice(&ramp(part, 3))))?;
                let sum = to.scope(|| up.astype(DType::F64)?.sum(())?.item())?;
                assert_eq!(sum.as_f64(), ramp(part, 3).iter().map(|&x| f64::from(x)).sum::<f64>());
            }
        }
        Ok(())
    });
}

#[test]
fn memory_is_not_reused_while_another_stream_reads_it() {
    on_device(|device| {
        let (delay, n) = (Delay::new()?, 1 << 20);
        let (home, reader) = (Stream::new(device)?, Stream::new(device)?);
        device.free_all()?;
        let before = device.memory_stats()?;
        for round in 0..5 {
            let a = home.scope(|| NdArray::from_slice(&ramp(n, round)))?;
            let twice = reader.scope(|| delay.queue().and_then(|()| (&a * 2.0f32).eval().cloned()))?;
            // Dropped on another thread before `twice` is computed; then the same size is requested again.
            std::thread::spawn(move || drop(a)).join().unwrap();
            let noise = home.scope(|| (0..4).map(|_| full(n, -1.0, DType::F32)?.eval().cloned()).collect::<Result<Vec<_>>>())?;
            let want: Vec<f32> = ramp(n, round).iter().map(|x| x * 2.0).collect();
            assert!(twice.to_vec::<f32>()? == want, "round {round}");
            drop(noise);
        }
        device.synchronize()?;
        assert_eq!(device.memory_stats()?.used, before.used);
        device.free_all()?;
        let cached = device.memory_stats()?.cached;
        assert!(cached < before.cached + (64 << 20), "{cached}: the driver's pool rounds up");
        Ok(())
    });
}

#[test]
fn blocks_are_reused_after_other_streams_have_passed() {
    on_device(|device| {
        let (home, reader) = (Stream::new(device)?, Stream::new(device)?);
        let n = 3 << 20;
        let step = || -> Result<()> {
            let a = home.scope(|| full(n, 1.0, DType::F32)?.eval().cloned())?;
            reader.scope(|| (&a + 1.0f32).eval().map(|_| ()))?;
            drop(a);
            device.synchronize()
        };
        step()?;
        step()?;
        let before = device.memory_stats()?;
        (0..20).try_for_each(|_| step())?;
        let after = device.memory_stats()?;
        assert_eq!((after.misses - before.misses, after.reserved), (0, before.reserved), "each round takes the blocks of the last");
        Ok(())
    });
}

#[test]
fn user_kernels_are_ordered_between_streams() {
    on_device(|device| {
        let source = r#"extern "C" __global__ void add(float* x, float by, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] += by;
        }"#;
        let (delay, add, n) = (Delay::new()?, RawKernel::compile(source, "add")?, 1 << 20);
        let streams = [Stream::new(device)?, Stream::new(device)?, Stream::default_of(device)];
        let mut x = NdArray::from_slice(&ramp(n, 0))?;
        let mut read = Vec::new();
        for round in 0..9 {
            streams[round % 3].scope(|| -> Result<()> {
                delay.queue()?;
                // SAFETY: adds to each of n elements.
                unsafe { add.launch(Launch::for_items(n, 256), args![&mut x, 1.0f32, n as i32]) }
            })?;
            // Read on the stream after the next; the writer of the next round must wait for it.
            read.push(streams[(round + 2) % 3].scope(|| delay.queue().and_then(|()| (&x * 1.0f32).eval().cloned()))?);
        }
        for (round, array) in read.iter().enumerate() {
            let want: Vec<f32> = ramp(n, 0).iter().map(|v| v + 1.0 + round as f32).collect();
            assert!(array.to_vec::<f32>()? == want, "round {round}");
        }
        Ok(())
    });
}

#[test]
fn user_kernels_are_recorded() {
    on_device(|device| {
        let (delay, other) = (Delay::new()?, Stream::new(device)?);
        let (queued, records) = explain(|| other.scope(|| delay.queue()));
        queued?;
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!((record.device, record.served_by, record.bytes), (device, Some("cuda"), 0));
        assert_eq!(record.launch, Some(KernelLaunch { kernel: "delay".into(), grid: [1; 3], block: [1; 3] }));
        Ok(())
    });
}

#[test]
fn pinned_arrays_are_copied_asynchronously() {
    on_device(|device| {
        let (delay, n) = (Delay::new()?, 64 << 20);
        let values = NdArray::from_slice(&ramp(n, 0))?.to_device(Device::CPU)?;
        let pinned = values.pin_memory(device)?;
        assert_eq!((pinned.device(), pinned.to_vec::<f32>()? == ramp(n, 0)), (Device::CPU, true));
        let copies = Stream::new(device)?;
        device.synchronize()?;
        let start = Instant::now();
        let up = copies.scope(|| delay.queue().and_then(|()| pinned.to_device(device)))?;
        let queued = start.elapsed();
        drop(pinned); // kept by the copy
        assert!(queued < Duration::from_millis(5), "queued in {queued:?}");
        assert!(up.to_vec::<f32>()? == ramp(n, 0));
        // At the bus's speed, concurrently with copies through the staging buffers.
        for (name, source) in [("pinned", values.pin_memory(device)?), ("any memory", values)] {
            let mut best = f64::MAX;
            for _ in 0..5 {
                device.synchronize()?;
                let start = Instant::now();
                let up = source.to_device(device)?;
                device.synchronize()?;
                best = best.min(start.elapsed().as_secs_f64());
                drop(up);
            }
            println!("256 MiB from {name}: {:.1} GB/s", (4 * n) as f64 / best / 1e9);
        }
        device.free_all()
    });
}

#[test]
fn products_on_many_streams_at_once() {
    on_device(|device| {
        let streams = (0..4).map(|_| Stream::new(device)).collect::<Result<Vec<_>>>()?;
        let a = NdArray::from_vec(ramp(256 * 256, 0), [256, 256])?;
        let want = matmul(&a, &a)?.to_vec::<f32>()?;
        std::thread::scope(|scope| {
            for stream in &streams {
                let (a, want) = (&a, &want);
                scope.spawn(move || {
                    stream.scope(|| {
                        for _ in 0..50 {
                            assert!(matmul(a, a).unwrap().to_vec::<f32>().unwrap() == *want);
                        }
                    })
                });
            }
        });
        Ok(())
    });
}

#[test]
fn events_mark_points_in_time() {
    on_device(|device| {
        let (delay, other) = (Delay::new()?, Stream::new(device)?);
        device.synchronize()?;
        let before = Event::record(device)?;
        delay.queue()?;
        let after = Event::record(device)?;
        assert!(!after.is_reached()?, "10 ms have not gone by");
        // Another stream waits for it on the device, not the host.
        let start = Instant::now();
        other.wait(&after)?;
        let behind = other.record()?;
        assert!(start.elapsed() < Duration::from_millis(5) && !behind.is_reached()?);
        behind.synchronize()?;
        assert!(after.is_reached()? && before.is_reached()?);
        let took = after.elapsed(&before)?;
        assert!(took > Duration::from_millis(3) && took < Duration::from_secs(1), "{took:?}");
        assert_eq!(before.elapsed(&after)?, Duration::ZERO);
        assert!(behind.elapsed(&before)? >= took);
        // A wait for a stream waits for that stream only.
        delay.queue()?;
        let start = Instant::now();
        other.synchronize()?;
        assert!(start.elapsed() < Duration::from_millis(5));
        Stream::default_of(device).synchronize()
    });
}

#[test]
fn two_streams_run_at_the_same_time() {
    on_device(|device| {
        let (delay, one, two) = (Delay::new()?, Stream::new(device)?, Stream::new(device)?);
        let time = |streams: [Stream; 2]| -> Result<Duration> {
            device.synchronize()?;
            let start = Instant::now();
            for stream in streams {
                stream.scope(|| delay.queue())?;
            }
            device.synchronize()?;
            Ok(start.elapsed())
        };
        let (alone, together) = (time([one, one])?, time([one, two])?);
        println!("two delays on one stream: {alone:?}, on two: {together:?}");
        assert!(together.as_secs_f64() < 0.75 * alone.as_secs_f64());
        Ok(())
    });
}
