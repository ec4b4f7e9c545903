//! Faults that kernels report on a real device: which thread, and which read of an array, receives the error.

use std::sync::Barrier;

use cuprum_backend_cpu as _;
use cuprum_backend_cuda as _;
use cuprum_core::{DType, Device, Error, Graph, NdArray, Result, Stream, arange, with_device};

use crate::on_device;

const ROUNDS: usize = 200;

fn table() -> Result<NdArray> {
    arange(0, 1000, 1)?.astype(DType::F32)?.eval().cloned()
}

/// Indices `from..from + 64` of a table of 1000: out of range if `from` is 1000.
fn indices(from: i64) -> Result<NdArray> {
    NdArray::from_slice(&(from..from + 64).collect::<Vec<i64>>())?.eval().cloned()
}

fn is_fault<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Index { op: "take", index: 1000..1064, axis: 0, size: 1000 }))
}

/// Runs `take` with invalid and with valid indices on two threads at once. The thread with invalid indices receives an error in every
/// round, the other thread never.
fn on_two_threads(device: Device, streams: [Stream; 2]) -> Result<()> {
    let (table, bad, good) = (table()?, indices(1000)?, indices(0)?);
    let want: Vec<f32> = (0..64).map(|i| i as f32).collect();
    device.synchronize()?;
    let (barrier, table, bad, good, want) = (&Barrier::new(2), &table, &bad, &good, &want);
    std::thread::scope(|threads| {
        let faulty = threads.spawn(move || {
            with_device(device, || {
                streams[0].scope(|| {
                    let told = |_| {
                        let taken = table.take(bad, 0).and_then(|t| t.eval().cloned());
                        barrier.wait(); // the other thread reads after the launch
                        barrier.wait(); // the other thread reads before this one
                        // Every read reports the fault.
                        taken.is_ok_and(|taken| (0..2).all(|_| is_fault(&taken.to_vec::<f32>())))
                    };
                    (0..ROUNDS).filter(|&round| told(round)).count()
                })
            })
        });
        let sound = threads.spawn(move || {
            with_device(device, || {
                streams[1].scope(|| {
                    let misled = |_| {
                        barrier.wait();
                        let read = table.take(good, 0).and_then(|taken| taken.to_vec::<f32>());
                        let waited = device.synchronize();
                        barrier.wait();
                        read.ok().as_ref() != Some(want) || waited.is_err()
                    };
                    (0..ROUNDS).filter(|&round| misled(round)).count()
                })
            })
        });
        let (told, misled) = (faulty.join().unwrap(), sound.join().unwrap());
        assert_eq!((told, misled), (ROUNDS, 0), "rounds in which the faulty thread was told, and the other one");
    });
    device.synchronize()
}

#[test]
fn threads_on_one_stream_receive_only_their_own_faults() {
    on_device(|device| on_two_threads(device, [Stream::default_of(device); 2]));
}

#[test]
fn threads_on_two_streams_receive_only_their_own_faults() {
    on_device(|device| on_two_threads(device, [Stream::new(device)?, Stream::new(device)?]));
}

#[test]
fn arrays_that_depend_on_a_fault_have_no_value_and_others_do() {
    on_device(|device| {
        let table = table()?;
        let good = table.take(&indices(0)?, 0)?.eval()?.clone();
        let bad = table.take(&indices(1000)?, 0)?.eval()?.clone();
        let sum = (&bad + &good).sum(())?.eval()?.clone();
        let sorted = bad.sort(-1)?.eval()?.clone();
        let later = table.take(&indices(64)?, 0)?.eval()?.clone();
        assert!(is_fault(&device.synchronize()), "told at the wait");
        device.synchronize()?;
        assert_eq!(good.to_vec::<f32>()?[..3], [0.0, 1.0, 2.0]);
        assert_eq!(later.to_vec::<f32>()?[..2], [64.0, 65.0]);
        for array in [&bad, &sum, &sorted, &bad.index(cuprum_core::s![3..])?] {
            assert!(is_fault(&array.to_vec::<f32>()), "depends on the fault");
            assert!(is_fault(&array.to_device(Device::CPU).and_then(|a| a.to_vec::<f32>())));
        }
        // A read on another stream by another thread.
        let other = Stream::new(device)?;
        let read = std::thread::spawn(move || other.scope(|| (&sum * 2.0f32).to_vec::<f32>())).join().unwrap();
        assert!(is_fault(&read));
        assert_eq!(good.to_vec::<f32>()?[..3], [0.0, 1.0, 2.0]);
        device.synchronize()
    });
}

#[test]
fn faults_of_ended_threads_and_of_dropped_arrays_are_reported() {
    on_device(|device| {
        let (table, bad) = (table()?, indices(1000)?);
        table.take(&bad, 0)?.eval()?;
        assert!(is_fault(&device.synchronize()), "the array was dropped");
        std::thread::spawn({
            let (table, bad) = (table.clone(), bad.clone());
            move || table.take(&bad, 0).and_then(|t| t.eval().map(|_| ()))
        })
        .join()
        .unwrap()?;
        assert!(is_fault(&device.synchronize()), "the thread has ended");
        device.synchronize()
    });
}

#[test]
fn more_launches_than_a_thread_leaves_unchecked() {
    on_device(|device| {
        let (table, good, bad) = (table()?, indices(0)?, indices(1000)?);
        let faulty = table.take(&bad, 0)?.eval()?.clone();
        for _ in 0..2000 {
            table.take(&good, 0)?.eval()?;
        }
        assert!(is_fault(&table.to_vec::<f32>()), "told at the next read, of any array");
        assert_eq!(table.to_vec::<f32>()?.len(), 1000);
        assert!(is_fault(&faulty.to_vec::<f32>()));
        device.synchronize()
    });
}

#[test]
fn a_graph_reports_each_launch() {
    on_device(|device| {
        let (table, index) = (table()?, indices(0)?);
        (table.take(&index, 0)? + 1.0f32).eval()?;
        let (graph, taken) = Graph::capture(|| Ok(table.take(&index, 0)? + 1.0f32))?;
        assert_eq!(taken.to_vec::<f32>()?[..2], [1.0, 2.0]);
        for round in 0..3 {
            graph.update(&index, &indices(1000)?)?;
            graph.launch()?;
            assert!(is_fault(&taken.to_vec::<f32>()), "round {round}");
            assert!(is_fault(&taken.to_vec::<f32>()), "round {round}, read again");
            graph.update(&index, &indices(2)?)?;
            graph.launch()?;
            assert_eq!(taken.to_vec::<f32>()?[..2], [3.0, 4.0], "round {round}, a launch without a fault");
        }
        // If the inputs of a graph depend on a fault, so do its results.
        let values = table.take(&indices(1000)?, 0)?.astype(DType::I64)?.eval()?.clone();
        graph.update(&index, &values)?;
        graph.launch()?;
        assert!(is_fault(&taken.to_vec::<f32>()));
        let _ = device.synchronize();
        graph.update(&index, &indices(5)?)?;
        graph.launch()?;
        assert_eq!(taken.to_vec::<f32>()?[..2], [6.0, 7.0]);
        device.synchronize()
    });
}
