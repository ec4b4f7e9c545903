//! The Laplace equation on a square by Jacobi's iteration, on a grid whose rows are sharded over four ranks. Each step exchanges one row
//! between neighbouring ranks. Checks the solution, the number of exchanged bytes, and that one rank gives the same bits. Draws the
//! solution as a PNG.
//!
//!     cargo run --release --example jacobi -- [steps] [out.png]
//!
//! Without a picture, the PNG is written to a temporary folder and removed.

use std::f64::consts::PI;
use std::path::PathBuf;

use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
use cuprum::io::{ImageOptions, save_image};
use cuprum::{DType, Device, Error, NdArray, Result, arange, explain, s, stack, with_device, zeros};

/// Points along each side, with the boundary.
const SIDE: usize = 66;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let steps = args.next().and_then(|a| a.parse().ok()).unwrap_or(8000);
    let (exact, start) = with_device(Device::CPU, problem)?;
    let mesh = Mesh::loopback(4)?;
    let mut u = start.shard(&mesh, [Shard(0)])?;
    let (first, calls) = explain(|| step(&u));
    u = first?;
    let exchanged: usize = calls.iter().filter(|call| call.op == "halo_exchange").map(|call| call.bytes).sum();
    println!("{} ranks exchange {exchanged} bytes per step of {} bytes", mesh.size(), u.nbytes());
    // Only rows at the borders are exchanged, which have far fewer bytes than the grid.
    assert!(exchanged > 0 && exchanged < u.nbytes() / 4, "{exchanged} bytes");
    for _ in 1..steps {
        u = step(&u)?;
    }
    let u = u.to_device(Device::CPU)?;
    let error = (&u - &exact).abs()?.max(())?.item()?.as_f64();
    println!("largest error after {steps} steps: {error:.2e}");
    // Five-point differences err by the square of the step, about 2e-4.
    assert!(steps < 8000 || error < 1e-3, "the error is {error}");
    let mut alone = start.shard(&Mesh::loopback(1)?, [Shard(0)])?;
    for _ in 0..steps {
        alone = step(&alone)?;
    }
    assert!(alone.to_bytes()? == u.to_bytes()?, "one rank has other bits");
    draw(&u, args.next().map(PathBuf::from))
}

/// Returns the exact solution, and a grid of zeros with its boundary values.
fn problem() -> Result<(NdArray, NdArray)> {
    let along = arange(0, SIDE as i64, 1)?.astype(DType::F64)? / (SIDE - 1) as f64;
    let (x, y) = (along.reshape((1, -1))?, along.reshape((-1, 1))?);
    let exact = (&x * PI).sin()? * (&y * PI).sinh()? / PI.sinh();
    let mut start = exact.copy()?;
    start.assign(s![1..-1, 1..-1], zeros((), DType::F64)?)?;
    Ok((exact, start))
}

/// Returns the grid after one step: each inner point becomes the mean of its four neighbours.
fn step(u: &NdArray) -> Result<NdArray> {
    let (up, down) = (u.index(s![..-2, 1..-1])?, u.index(s![2.., 1..-1])?);
    let (left, right) = (u.index(s![1..-1, ..-2])?, u.index(s![1..-1, 2..])?);
    let mut next = u.clone();
    next.assign(s![1..-1, 1..-1], (up + down + left + right) * 0.25)?;
    Ok(next)
}

/// Draws the solution from black to red.
fn draw(u: &NdArray, picture: Option<PathBuf>) -> Result<()> {
    let none = u * 0.0;
    let image = stack([u, &none, &none], -1)?;
    if let Some(picture) = picture {
        return save_image(&picture, &image, &ImageOptions::default());
    }
    let folder = std::env::temp_dir().join(format!("cuprum-jacobi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
    save_image(folder.join("jacobi.png"), &image, &ImageOptions::default())?;
    std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
}
