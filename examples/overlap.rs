//! Overlaps copies with computation: one stream copies batches to the device while another computes on earlier ones.
//! No events are needed, because a stream waits for arrays of another stream automatically.
//!
//!     cargo run --release --example overlap -- [batches] [rows of a batch] [device]

use std::time::{Duration, Instant};

use cuprum::{DType, Device, Graph, NdArray, Result, Stream, full, matmul, with_device};

const COLUMNS: usize = 1024;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let batches = args.next().and_then(|a| a.parse().ok()).unwrap_or(16);
    let rows = args.next().and_then(|a| a.parse().ok()).unwrap_or(16_384);
    let device = Device::parse(&args.next().unwrap_or_else(|| "auto".into()))?;
    with_device(device, || run(device, batches, rows))
}

fn run(device: Device, batches: usize, rows: usize) -> Result<()> {
    let host: Vec<NdArray> = with_device(Device::CPU, || {
        (0..batches).map(|n| full([rows, COLUMNS], n as f32 / batches as f32, DType::F32)?.eval().cloned()).collect::<Result<_>>()
    })?;
    let weights = full([COLUMNS, COLUMNS], 1.0 / COLUMNS as f32, DType::F32)?;
    let (copies, compute) = (Stream::new(device)?, Stream::new(device)?);

    // The warm-up run compiles kernels and allocates pinned memory, so that the timed runs do not.
    sequential(&host, &weights)?;
    overlapped(&host, &weights, copies, compute)?;
    device.synchronize()?;

    let (serial, serial_sums) = timed(device, || sequential(&host, &weights))?;
    let (both, sums) = timed(device, || overlapped(&host, &weights, copies, compute))?;
    println!("{batches} batches of {rows} x {COLUMNS} float32 on {device}");
    println!("sequential           {:8.2} ms", serial.as_secs_f64() * 1e3);
    println!("overlapped           {:8.2} ms", both.as_secs_f64() * 1e3);
    assert_eq!(sums, serial_sums, "the same sums");
    for (n, sum) in sums.iter().enumerate() {
        let want = layers(f64::from(n as f32 / batches as f32)) * (rows * COLUMNS) as f64;
        assert!((sum - want).abs() <= 1e-4 * want.abs().max(1.0), "batch {n}: {sum}, not {want}");
    }
    println!("the sums are right");
    graph(&host[batches / 2], &weights, device)
}

/// Returns the expected result per element for a batch whose elements all equal `x`.
fn layers(x: f64) -> f64 {
    x.tanh().tanh()
}

fn work(batch: &NdArray, weights: &NdArray) -> Result<NdArray> {
    let h = matmul(batch, weights)?.tanh()?;
    matmul(&h, weights)?.tanh()?.sum(())
}

fn sequential(host: &[NdArray], weights: &NdArray) -> Result<Vec<f64>> {
    host.iter().map(|batch| Ok(work(&batch.to_device(weights.device())?, weights)?.item()?.as_f64())).collect()
}

fn overlapped(host: &[NdArray], weights: &NdArray, copies: Stream, compute: Stream) -> Result<Vec<f64>> {
    let mut sums = Vec::new();
    for batch in host {
        let batch = copies.scope(|| batch.to_device(weights.device()))?;
        // Asynchronous: the compute stream waits for the copy, and the memory of the batch is reused after its last read.
        sums.push(compute.scope(|| work(&batch, weights)?.eval().cloned())?);
    }
    compute.scope(|| sums.iter().map(|sum| Ok(sum.item()?.as_f64())).collect())
}

fn timed<T>(device: Device, work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let result = work()?;
    device.synchronize()?;
    Ok((start.elapsed(), result))
}

/// Captures the work of one batch as a graph and launches the graph, if the device supports graphs.
fn graph(batch: &NdArray, weights: &NdArray, device: Device) -> Result<()> {
    let batch = batch.to_device(device)?;
    let captured = Graph::capture(|| work(&batch, weights));
    let (graph, sum) = match captured {
        Ok(captured) => captured,
        Err(reason) => {
            println!("no graph: {reason}");
            return Ok(());
        }
    };
    let want = sum.item()?.as_f64();
    let (took, ()) = timed(device, || (0..10).try_for_each(|_| graph.launch()))?;
    assert_eq!(sum.item()?.as_f64(), want);
    println!("ten launches of a graph with {} nodes: {:.2} ms", graph.nodes(), took.as_secs_f64() * 1e3);
    Ok(())
}
