//! k-means over points whose rows are sharded over four ranks. Distances are local, and the sums of the clusters are one reduction over the
//! divided axis. Checks the centres, and that other numbers of ranks give the same bits.
//!
//!     cargo run --release --example kmeans -- [points]

use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
use cuprum::random::Generator;
use cuprum::{DType, Device, NdArray, Result, arange, array, axis, s, stack, with_device};

const CLUSTERS: usize = 3;

fn main() -> Result<()> {
    let points = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(9000);
    let (rows, truth) = with_device(Device::CPU, || data(points))?;
    let mut results = Vec::new();
    for ranks in [1, 2, 4] {
        let mesh = Mesh::loopback(ranks)?;
        let rows = rows.shard(&mesh, [Shard(0)])?;
        let centres = with_device(mesh.device(), || cluster(&rows))?;
        results.push(centres.to_device(Device::CPU)?);
    }
    let centres = &results[0];
    assert!(results.iter().all(|other| other == centres), "the bits depend on the number of ranks");
    let error = (centres - &truth).abs()?.max(())?.item()?.as_f64();
    println!("{points} points, centres {centres}, largest error {error:.3}");
    // A mean of n / 3 normal numbers of deviation 0.5 errs by less than five standard errors.
    assert!(error < 5.0 * 0.5 / (points as f64 / 3.0).sqrt(), "the error is {error}");
    Ok(())
}

/// Returns points around three centres, and the centres.
fn data(points: usize) -> Result<(NdArray, NdArray)> {
    let truth = array![[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]];
    let cluster = arange(0, points as i64, 1)?.remainder(CLUSTERS as i64)?;
    let noise = Generator::new(5).normal(0.0, 0.5, [points, 2], DType::F64)?;
    Ok((truth.take(&cluster, 0)? + noise, truth))
}

/// Returns the centres of the clusters after ten iterations. The first three rows are the initial centres.
fn cluster(rows: &NdArray) -> Result<NdArray> {
    let mut centres = rows.index(s![..CLUSTERS, ..])?.copy()?;
    for _ in 0..10 {
        let mut distances = Vec::new();
        for k in 0..CLUSTERS {
            let difference = rows - centres.index(s![k, ..])?;
            distances.push((&difference * &difference).sum(1)?);
        }
        let nearest = stack(&distances, 1)?.argmin(1)?;
        let mut means = Vec::new();
        for k in 0..CLUSTERS as i64 {
            let members = nearest.equal(k)?.astype(DType::F64)?;
            let sum = (rows * members.expand_dims(1)?).sum(0)?;
            means.push(sum / members.sum(axis(0).keepdims())?);
        }
        centres = stack(&means, 0)?;
    }
    Ok(centres)
}
