//! The example of the README.

use cuprum::{DType, Device, explain, io, linspace, matmul, random::Generator, with_device};

fn main() -> cuprum::Result<()> {
    let a = Generator::new(7).random([256, 1024], DType::F32)?; // on the GPU if there is one
    let norms = (&a * &a).sum(-1)?.sqrt()?; // one pass over a, no temporary
    let scaled = &a / &norms.expand_dims(1)?; // deferred until it is needed
    let gram = matmul(&scaled, &scaled.t()?)?; // cuTENSOR, cuBLAS or gemm
    println!("{gram}");

    let (_, calls) = explain(|| a.power(2)?.sum(())?.item()); // which accelerator ran it, and which declined
    calls.iter().for_each(|c| println!("{c}"));

    let host = with_device(Device::CPU, || linspace(0, 1, 11))?;
    io::save(std::env::temp_dir().join("norms.npy"), &norms.to_device(Device::CPU)?)?;
    println!("{}", host.cumsum(0)?);
    Ok(())
}
