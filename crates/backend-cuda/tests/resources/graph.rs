//! Graphs on a real device: results, ownership of memory, operations that cannot be captured, and launch cost.

use std::time::{Duration, Instant};

use cuprum_backend_cuda::args;
use cuprum_backend_cuda::user_kernels::{Launch, RawKernel};
use cuprum_core::{DType, Device, Event, Graph, NdArray, Result, Stream, expand_dims, explain, full, matmul, ones, s, with_device, zeros};

use crate::on_device;

fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed * 13) % 101) as f32 / 101.0).collect()
}

#[test]
fn a_launch_repeats_the_captured_work() {
    on_device(|_| {
        let n = 128;
        let w = NdArray::from_vec(values(n * n, 1), [n, n])?;
        let x = NdArray::from_vec(values(n * n, 2), [n, n])?;
        let step = |x: &NdArray| -> Result<(NdArray, NdArray)> {
            let h = matmul(&w, x)?.tanh()?;
            let h = matmul(&h, x)?;
            let norm = (&h * &h).sum(-1)?.sqrt()?;
            Ok(((&h / &expand_dims(&norm, 1)?).cumsum(-1)?, h.sum(())?))
        };
        let (a, b) = step(&x)?;
        let want = (a.to_vec::<f32>()?, b.to_vec::<f32>()?);
        let (captured, records) = explain(|| Graph::capture(|| step(&x)));
        let (graph, (a, b)) = captured?;
        println!("{graph:?}");
        assert_eq!(records.last().map(|r| (r.op, r.served_by)), Some(("graph", Some("cuda"))), "the launch of the graph is recorded");
        assert!(graph.nodes() >= 5);
        assert!((a.to_vec::<f32>()?, b.to_vec::<f32>()?) == want, "captured, and launched once");
        for seed in 3..6 {
            let next = NdArray::from_vec(values(n * n, seed), [n, n])?;
            let (wa, wb) = step(&next)?;
            graph.update(&x, &next)?;
            graph.launch()?;
            assert!(a.to_vec::<f32>()? == wa.to_vec::<f32>()? && b.to_vec::<f32>()? == wb.to_vec::<f32>()?, "values {seed}");
        }
        let stream = Stream::new(Device::current()?)?;
        graph.update(&x, &NdArray::from_vec(values(n * n, 2), [n, n])?)?;
        stream.scope(|| (0..10).try_for_each(|_| graph.launch()))?;
        assert!((a.to_vec::<f32>()?, b.to_vec::<f32>()?) == want, "read on the default stream after launches on another");
        drop((graph, x, w));
        assert!(a.to_vec::<f32>()? == want.0, "its arrays outlive it");
        Ok(())
    });
}

#[test]
fn a_graph_owns_its_memory() {
    on_device(|device| {
        let n = 1 << 20;
        let x = NdArray::from_slice(&values(n, 0))?;
        let step = || -> Result<NdArray> {
            let mut y = x.clone();
            for k in 0..6 {
                y = (&y * 0.5f32 + k).eval()?.clone();
            }
            Ok(y)
        };
        step()?;
        device.synchronize()?;
        let before = device.memory_stats()?;
        let (graph, y) = Graph::capture(step)?;
        let during = device.memory_stats()?;
        let blocks = (during.used - before.used).div_ceil(4 * n);
        assert!((2..=3).contains(&blocks), "{blocks} blocks for six steps: memory is used again within the graph");
        let want = y.to_vec::<f32>()?;
        // Other allocations do not overlap the graph's memory.
        let noise = (0..8).map(|_| full(n, -1.0, DType::F32)).collect::<Result<Vec<_>>>()?;
        graph.launch()?;
        assert!(y.to_vec::<f32>()? == want && noise.iter().all(|a| a.to_vec::<f32>().unwrap() == vec![-1.0; n]));
        drop(noise);
        drop(x);
        graph.launch()?;
        assert!(y.to_vec::<f32>()? == want, "the input is kept");
        graph.launch()?;
        drop(graph);
        drop(y);
        device.synchronize()?;
        assert_eq!(device.memory_stats()?.used, before.used - 4 * n, "all of it is back, the input too");
        Ok(())
    });
}

#[test]
fn uncapturable_work_is_an_error_without_effect() {
    on_device(|device| {
        let x = NdArray::from_slice(&values(1000, 0))?;
        let other = Stream::new(device)?;
        let mut left = None;
        type Step<'a> = Box<dyn FnOnce() -> Result<()> + 'a>;
        let steps: Vec<(&str, Step)> = vec![
            ("reading an array's values", Box::new(|| (&x + 1.0f32).to_vec::<f32>().map(|_| ()))),
            ("reading an array's values", Box::new(|| x.nonzero().map(|_| ()))),
            ("recording an event", Box::new(|| Event::record(device).map(|_| ()))),
            ("waiting for the device", Box::new(|| device.synchronize())),
            ("waiting for the device", Box::new(|| Stream::current(device).synchronize())),
            ("within another", Box::new(|| Graph::capture(|| Ok(())).map(|_| ()))),
            (
                "still being captured",
                Box::new(|| {
                    let y = (&x * 3.0f32).eval()?.clone();
                    other.scope(|| (&y + 1.0f32).eval().map(|_| ()))
                }),
            ),
            (
                "[array]",
                Box::new(|| {
                    left = Some((&x * 5.0f32).eval()?.clone());
                    Err(cuprum_core::Error::value("array", "the closure's own"))
                }),
            ),
        ];
        for (why, step) in steps {
            let error = Graph::capture(step).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
            println!("{error}");
            // As before: on this stream, and in another capture.
            assert_eq!((&x * 0.0f32).sum(())?.item()?.as_f64(), 0.0);
            let (graph, y) = Graph::capture(|| Ok(&x * 0.0f32 + 2.0f32))?;
            graph.launch()?;
            assert_eq!(y.to_vec::<f32>()?, [2.0; 1000]);
        }
        let never = left.expect("the closure ran").to_vec::<f32>().unwrap_err().to_string();
        assert!(never.contains("was never computed"), "{never}");
        let thrown = std::panic::catch_unwind(|| Graph::capture(|| -> Result<()> { panic!("out of the closure") }));
        assert!(thrown.is_err() && !Stream::current(device).is_capturing());
        let (graph, y) = Graph::capture(|| (&x - &x).eval().cloned())?;
        let refused = graph.update(&y, &x).unwrap_err().to_string();
        assert!(refused.contains("does not read the array to update"), "{refused}");
        assert!(graph.update(&x, &x.astype(DType::F64)?).is_err() && graph.update(&x, &ones(3, DType::F32)?).is_err());
        Ok(())
    });
}

#[test]
fn uploads_and_compiles_in_a_capture() {
    on_device(|_| {
        let x = NdArray::from_slice(&values(777, 0))?;
        // A constant of the graph, and an expression that needs its own kernel.
        let step = || {
            let c = NdArray::from_slice(&values(777, 5))?;
            ((&x + &c).cosh()? * (&c - 0.125f32).atan()?).eval().cloned()
        };
        let (graph, y) = Graph::capture(step)?;
        let want = step()?.to_vec::<f32>()?;
        for _ in 0..3 {
            // Would reuse the constant's memory if the graph had freed it.
            let noise = NdArray::from_slice(&values(777, 9))?;
            graph.launch()?;
            assert!(y.to_vec::<f32>()? == want);
            drop(noise);
        }
        Ok(())
    });
}

#[test]
fn arrays_and_streams_of_a_capture_are_used_during_the_next() {
    on_device(|device| {
        let (x, other) = (NdArray::from_slice(&values(1000, 0))?, Stream::new(device)?);
        let mut stream = other;
        let (_graph, (empty, _)) = Graph::capture(|| {
            stream = Stream::current(device);
            Ok((zeros([0, 3], DType::F32)?, (&x + 1.0f32).eval()?.clone()))
        })?;
        let (graph, y) = Graph::capture(|| {
            let read = std::thread::scope(|s| s.spawn(|| other.scope(|| empty.to_vec::<f32>())).join().unwrap())?;
            assert!(read.is_empty());
            // Work on the stream of a capture that has ended runs on the default stream.
            let tripled = || stream.scope(|| (&x * 3.0f32).to_vec::<f32>());
            let tripled = std::thread::scope(|s| s.spawn(tripled).join().unwrap())?;
            assert!(tripled.iter().zip(values(1000, 0)).all(|(y, x)| *y == 3.0 * x));
            (&x * 2.0f32).eval().cloned()
        })?;
        graph.launch()?;
        assert!(y.to_vec::<f32>()?.iter().zip(values(1000, 0)).all(|(y, x)| *y == 2.0 * x));
        Ok(())
    });
}

#[test]
fn an_update_may_overlap_what_it_reads() {
    on_device(|_| {
        let x = NdArray::from_slice(&values(1000, 0))?;
        let (graph, y) = Graph::capture(|| (&x + 0.0f32).eval().cloned())?;
        graph.update(&x.index(s![1..])?, &x.index(s![..-1])?)?;
        graph.launch()?;
        let want = values(1000, 0);
        let got = y.to_vec::<f32>()?;
        assert!(got[0] == want[0] && got[1..] == want[..999]);
        Ok(())
    });
}

#[test]
fn user_kernels_are_kept() {
    on_device(|_| {
        let n = 1000usize;
        let mut x = zeros(n, DType::F32)?;
        let source = r#"extern "C" __global__ void count(float* x, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] += 1;
        }"#;
        let count = RawKernel::compile(source, "count")?;
        // SAFETY: adds to each of n elements.
        let (graph, ()) = Graph::capture(|| unsafe { count.launch(Launch::for_items(n, 128), args![&mut x, n as i32]) })?;
        drop(count);
        (0..4).try_for_each(|_| graph.launch())?;
        assert_eq!(x.to_vec::<f32>()?, [5.0; 1000]);
        Ok(())
    });
}

#[test]
fn captures_of_many_threads() {
    on_device(|device| {
        std::thread::scope(|scope| {
            for seed in 0..6 {
                scope.spawn(move || {
                    with_device(device, || -> Result<()> {
                        let stream = Stream::new(device)?;
                        for round in 0..10 {
                            let x = NdArray::from_vec(values(64 * 64, seed), [64, 64])?;
                            let step = || matmul(&x, &x)?.exp()?.sum(0);
                            let want = step()?.to_vec::<f32>()?;
                            let (graph, y) = stream.scope(|| Graph::capture(step))?;
                            stream.scope(|| (0..round).try_for_each(|_| graph.launch()))?;
                            assert!(y.to_vec::<f32>()? == want);
                        }
                        Ok(())
                    })
                    .unwrap();
                });
            }
        });
        Ok(())
    });
}

/// A stream waits for another while other threads launch graphs on it. Without a workaround, the driver loses about one of 1,600 such
/// waits.
#[test]
fn a_stream_waits_while_graphs_are_launched_on_it() {
    on_device(|device| {
        let (writer, reader) = (Stream::new(device)?, Stream::new(device)?);
        let x = ones(256, DType::F32)?;
        let late = RawKernel::compile(
            r#"extern "C" __global__ void late(unsigned nanoseconds) {
                unsigned long long begun, now;
                asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
                do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begun < nanoseconds);
            }"#,
            "late",
        )?;
        let ends = Instant::now() + Duration::from_secs(2);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || {
                    with_device(device, || -> Result<()> {
                        let x = NdArray::from_slice(&values(64, seed))?;
                        let (graph, _y) = Graph::capture(|| x.exp()?.cumsum(0)?.sum(())?.sqrt()?.eval().cloned())?;
                        while Instant::now() < ends {
                            reader.scope(|| (0..4).try_for_each(|_| graph.launch()))?;
                            reader.synchronize()?;
                        }
                        Ok(())
                    })
                    .unwrap();
                });
            }
            let mut reads = 0;
            while Instant::now() < ends {
                reads += 1;
                // SAFETY: the kernel touches no memory.
                let y = writer
                    .scope(|| unsafe { late.launch(Launch::new(1, 1), args![30_000u32]) }.and_then(|()| (&x * reads).eval().cloned()))?;
                let y = reader.scope(|| y.to_vec::<f32>())?;
                assert!(y == [reads as f32; 256], "read {reads}: {:?}", &y[..4]);
            }
            println!("{reads} reads beside launches");
            Ok(())
        })
    });
}

#[test]
fn a_launch_costs_less_than_its_calls() {
    on_device(|device| {
        let x = NdArray::from_slice(&values(1024, 0))?;
        let step = || -> Result<NdArray> {
            let mut y = x.clone();
            for _ in 0..20 {
                y = (&y + 1.0f32).eval()?.clone();
            }
            Ok(y)
        };
        step()?;
        let (graph, _y) = Graph::capture(step)?;
        let time = |work: &dyn Fn() -> Result<()>| -> Result<f64> {
            let mut best = f64::MAX;
            for _ in 0..50 {
                device.synchronize()?;
                let start = Instant::now();
                work()?;
                best = best.min(start.elapsed().as_secs_f64() * 1e6);
            }
            Ok(best)
        };
        let (calls, launch) = (time(&|| step().map(|_| ()))?, time(&|| graph.launch())?);
        println!("20 small calls: {calls:.1} us to issue; as a graph {launch:.1} us");
        assert!(launch < calls);
        Ok(())
    });
}
