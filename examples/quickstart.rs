//! The example of the README, on a file of random numbers.

use cuprum::{DType, explain, io, matmul, random::Generator};

fn main() -> cuprum::Result<()> {
    let folder = std::env::temp_dir();
    let (measurements, result) = (folder.join("measurements.csv"), folder.join("correlation.csv"));
    io::write(&measurements, &Generator::new(7).random([256, 4], DType::F64)?)?;

    let table = io::read(&measurements)?; // on the GPU if there is one
    let scaled = (&table - table.mean(0)?) / table.std(0)?; // deferred until it is needed
    let correlation = matmul(&scaled.t()?, &scaled)? / table.shape()[0] as f64;
    println!("{correlation}"); // cuTENSOR, cuBLAS or gemm

    let (_, calls) = explain(|| (&table * &table).sum(0)); // one pass, no temporary
    calls.iter().for_each(|c| println!("{c}")); // which accelerator ran it, and which declined
    io::write(result, &correlation)
}
