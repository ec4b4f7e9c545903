//! Sharded arrays over several processes: compares results with one device, and measures collective operations.
//!
//!     cargo build --release --example processes
//!     export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
//!     for RANK in 0 1; do RANK=$RANK LOCAL_RANK=$RANK target/release/examples/processes 256 & done; wait
//!
//! The argument is the size of the measured arrays in MiB. Instead of it, `killed` or `hanging` ends or stops the last rank, and the other
//! ranks check that they get an error in time. Without a launcher's variables, there is one rank.

use std::time::{Duration, Instant};

use Placement::{Replicate, Shard};
use cuprum::distributed::{Mesh, Placement, ShardedArray};
use cuprum::random::Generator;
use cuprum::{DType, Device, Error, NdArray, Result, axis, concat, exp, greater, matmul, nonzero, s, with_device};

/// Name of a function, maximum relative error of its results, and the function.
type Check = (&'static str, f64, fn(&NdArray) -> Result<NdArray>);

const CHECKS: [Check; 13] = [
    ("map", 0.0, |a| Ok(exp(a)? * 2.0 + a)),
    ("sum", 1e-12, |a| a.sum(())),
    ("sums of columns", 1e-12, |a| a.sum(0)),
    ("sums of rows", 1e-12, |a| a.sum(axis(-1).keepdims())),
    ("softmax", 1e-12, |a| {
        let e = exp(&(a - a.max(axis(-1).keepdims())?))?;
        Ok(&e / e.sum(axis(-1).keepdims())?)
    }),
    ("maxima", 0.0, |a| a.max(0)),
    ("cumsum", 1e-9, |a| a.cumsum(0)),
    ("sort", 0.0, |a| a.sort(0)),
    ("transpose", 0.0, |a| a.t()?.copy()),
    ("shifted slices", 0.0, |a| Ok(a.index(s![1.., ..])? - a.index(s![..-1, ..])?)),
    ("join", 0.0, |a| concat([a, &(a + 1.0)], 0)),
    ("selection", 0.0, |a| nonzero(&greater(a, 0.0)?)?.remove(0).astype(DType::F64)),
    ("product", 1e-12, |a| matmul(&a.t()?, a)),
];

fn main() -> Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "1".into());
    let mesh = Mesh::from_env()?;
    println!("rank {} of {}: {mesh:?}", mesh.local_ranks().start, mesh.size());
    let failures = match argument.as_str() {
        "killed" => one_rank_fails(mesh, || std::process::abort())?,
        "hanging" => one_rank_fails(mesh, || std::thread::sleep(Duration::from_secs(600)))?,
        size => {
            let size: usize = size.parse().map_err(|_| Error::value("processes", format!("'{size}' is not a size in MiB")))?;
            let failures = compare(mesh)?;
            if mesh.size() > 1 {
                measure(mesh, size)?;
            }
            failures
        }
    };
    println!("rank {}: {}", mesh.local_ranks().start, if failures == 0 { "PASS" } else { "FAIL" });
    if failures == 0 { Ok(()) } else { Err(Error::value("processes", format!("{failures} checks failed"))) }
}

/// Compares functions of sharded arrays with the same functions on one device. Returns the number of differences.
fn compare(mesh: Mesh) -> Result<usize> {
    let device = mesh.local_devices()[0];
    let mut failures = 0;
    for shape in [[1000, 64], [64, 1000], [7, 5]] {
        let whole = with_device(device, || Generator::new(5).normal(0.0, 1.0, shape, DType::F64))?;
        for placement in [Shard(0), Shard(1), Replicate] {
            let sharded = whole.shard(&mesh, [placement])?;
            for (name, tolerance, f) in CHECKS {
                let want = with_device(device, || f(&whole)?.to_device(Device::CPU))?;
                let got = with_device(mesh.device(), || f(&sharded)?.to_device(Device::CPU))?;
                let is_equal = with_device(Device::CPU, || {
                    let error = if want.shape() == got.shape() { (&got - &want).abs()?.max(())?.item()?.as_f64() } else { f64::INFINITY };
                    Ok::<bool, Error>(error <= tolerance * want.abs()?.max(())?.item()?.as_f64().max(1.0))
                })?;
                if !is_equal {
                    println!("rank {}: {name} of {shape:?}, {placement}, differs", mesh.local_ranks().start);
                    failures += 1;
                }
            }
        }
    }
    Ok(failures)
}

/// Prints the rates of collective operations on an array of `size` MiB.
fn measure(mesh: Mesh, size: usize) -> Result<()> {
    let columns = 1024;
    let rows = (size << 20) / 4 / columns;
    let a = with_device(mesh.device(), || cuprum::ones([rows, columns], DType::F32))?.reshard([Shard(0)])?;
    let operations: [(&str, &dyn Fn() -> Result<NdArray>); 3] = [
        ("all-gather", &|| a.reshard([Replicate])),
        ("all-to-all", &|| a.reshard([Shard(1)])),
        ("sum over the divided axis", &|| a.sum(0)),
    ];
    for (name, run) in operations {
        run()?.eval()?;
        mesh.device().synchronize()?;
        let started = Instant::now();
        for _ in 0..5 {
            run()?.eval()?;
        }
        mesh.device().synchronize()?;
        let seconds = started.elapsed().as_secs_f64() / 5.0;
        if mesh.local_ranks().start == 0 {
            println!(
                "{name} of {size} MiB by {}: {:.3} ms, {:.1} GB/s",
                mesh.engine_name(),
                1e3 * seconds,
                (size << 20) as f64 / seconds / 1e9
            );
        }
    }
    Ok(())
}

/// Calls `fail` on the last rank between two collective operations. The others return 0 if they get an error that names the rank.
fn one_rank_fails(mesh: Mesh, fail: impl FnOnce()) -> Result<usize> {
    let a = with_device(mesh.device(), || cuprum::ones([4096, 1024], DType::F32))?.reshard([Shard(0)])?;
    a.reshard([Shard(1)])?.to_device(Device::CPU)?;
    let last = mesh.size() - 1;
    if mesh.local_ranks().contains(&last) {
        fail();
        return Ok(0);
    }
    let started = Instant::now();
    let error = a.reshard([Shard(1)]).and_then(|b| b.to_device(Device::CPU));
    let text = error.as_ref().map_or_else(|e| e.to_string(), |_| "no error".into());
    println!("rank {}: {text}, after {:.1} s", mesh.local_ranks().start, started.elapsed().as_secs_f64());
    let later = a.sum(()).and_then(|sum| sum.item());
    let is_named = matches!(error, Err(Error::Rank { rank, .. }) if rank == last);
    Ok(usize::from(!is_named) + usize::from(later.is_ok()))
}
