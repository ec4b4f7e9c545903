//! Weak scaling: workloads on a mesh, with a constant amount of work per rank. The times are host times from the call until all devices are
//! idle, because the work runs on several devices.

use std::time::Instant;

use cuprum::distributed::Placement::{Replicate, Shard};
use cuprum::distributed::{Mesh, ShardedArray};
use cuprum::random::Generator;
use cuprum::{DType, Device, NdArray, Result, matmul, s, with_device};
use serde_json::{Value, json};

use super::expressions::{chain10, softmax_rows};

/// A workload on a mesh.
struct MeshWorkload {
    name: &'static str,
    /// Creates the inputs on a mesh. The number divides their extents, so that the suite also runs on a small machine.
    inputs: fn(&Mesh, usize) -> Result<Vec<NdArray>>,
    run: fn(&[NdArray]) -> Result<NdArray>,
}

fn numbers(mesh: &Mesh, shape: &[usize], axis: isize) -> Result<NdArray> {
    let made = with_device(mesh.device(), || Generator::new(0).random(shape, DType::F32)?.eval().cloned())?;
    made.reshard([Shard(axis)])
}

fn vector(mesh: &Mesh, per_rank: usize) -> Result<Vec<NdArray>> {
    Ok(vec![numbers(mesh, &[per_rank * mesh.size()], 0)?])
}

/// A matrix of `rows` rows per rank, divided by rows.
fn matrix(mesh: &Mesh, rows: usize, columns: usize) -> Result<Vec<NdArray>> {
    Ok(vec![numbers(mesh, &[rows * mesh.size(), columns], 0)?])
}

static WORKLOADS: &[MeshWorkload] = &[
    MeshWorkload { name: "chain10_f32_256M", inputs: |mesh, by| vector(mesh, (1 << 28) / by), run: |x| chain10(&x[0]) },
    MeshWorkload { name: "sum_f32_256M", inputs: |mesh, by| vector(mesh, (1 << 28) / by), run: |x| x[0].sum(()) },
    MeshWorkload { name: "sum_axis0_f32_16k", inputs: |mesh, by| matrix(mesh, 16384 / by, 16384), run: |x| x[0].sum(0) },
    MeshWorkload { name: "softmax_rows_f32_16k", inputs: |mesh, by| matrix(mesh, 16384 / by, 16384), run: |x| softmax_rows(&x[0]) },
    MeshWorkload { name: "cumsum_f32_256M", inputs: |mesh, by| vector(mesh, (1 << 28) / by), run: |x| x[0].cumsum(0) },
    MeshWorkload {
        name: "stencil_f32_256M",
        inputs: |mesh, by| vector(mesh, (1 << 28) / by),
        run: |x| Ok(x[0].index(s![2..])? + x[0].index(s![..-2])? - x[0].index(s![1..-1])? * 2.0),
    },
    MeshWorkload {
        name: "matmul_rows_f32_8k",
        inputs: |mesh, by| {
            let right = with_device(Device::CPU, || Generator::new(1).random([8192 / by, 8192 / by], DType::F32))?;
            Ok(vec![numbers(mesh, &[8192 / by * mesh.size(), 8192 / by], 0)?, right.shard(mesh, [Replicate])?])
        },
        run: |x| matmul(&x[0], &x[1]),
    },
    MeshWorkload {
        name: "matmul_k_f32_8k",
        inputs: |mesh, by| {
            let inner = 8192 / by * mesh.size();
            Ok(vec![numbers(mesh, &[8192 / by, inner], 1)?, numbers(mesh, &[inner, 8192 / by], 0)?])
        },
        run: |x| matmul(&x[0], &x[1]),
    },
    MeshWorkload { name: "transpose_f32_16k", inputs: |mesh, by| matrix(mesh, 16384 / by, 16384), run: |x| x[0].t()?.reshard([Shard(0)]) },
    MeshWorkload {
        name: "fft2_c64_8k",
        inputs: |mesh, by| Ok(vec![matrix(mesh, 8192 / by, 8192 / by)?[0].astype(DType::C64)?]),
        run: |x| cuprum::fft::fft2(&x[0], None, [-2, -1], Default::default()),
    },
    MeshWorkload { name: "sort_f32_64M", inputs: |mesh, by| vector(mesh, (1 << 26) / by), run: |x| x[0].sort(-1) },
];

/// Measures the workloads that `wants` selects, on a mesh of `ranks` ranks. The ranks use all devices of the same kind as `device` in turn.
pub fn run(ranks: usize, device: Device, wants: impl Fn(&str) -> bool, seconds: f64, show: impl Fn(&Value)) -> Result<()> {
    let devices: Vec<Device> = Device::all().into_iter().filter(|d| d.kind() == device.kind()).cycle().take(ranks).collect();
    let mesh = Mesh::over_devices(&devices)?;
    // Sizes that suit a GPU would take minutes on a CPU.
    let by = if device == Device::CPU { 16 } else { 1 };
    for workload in WORKLOADS.iter().filter(|w| wants(w.name)) {
        let inputs = (workload.inputs)(&mesh, by)?;
        inputs.iter().try_for_each(|a| a.eval().map(|_| ()))?;
        let call = || (workload.run)(&inputs)?.eval().map(|_| ());
        for _ in 0..2 {
            call()?;
            mesh.device().synchronize()?;
        }
        let (mut times, began) = (Vec::new(), Instant::now());
        while times.len() < 5 || began.elapsed().as_secs_f64() < seconds {
            let start = Instant::now();
            call()?;
            mesh.device().synchronize()?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        let (median, min) = (times[times.len() / 2], times[0]);
        let name = format!("{}_x{ranks}", workload.name);
        show(&json!({"peer": "cuprum", "workload": name, "us": median.round(), "min_us": min.round(), "ranks": ranks,
            "served_by": mesh.engine_name()}));
    }
    Ok(())
}
