//! Compression of a picture by a singular value decomposition: keeps the largest singular values, and writes the approximations as a PNG.
//!
//!     cargo run --release --example svd_compression -- [out.png]
//!
//! Without arguments the picture is written to a temporary folder and removed. The error of each approximation is compared with the
//! theorem of Eckart, Young and Mirsky: its square is the sum of the squares of the singular values left out.

use std::path::{Path, PathBuf};

use cuprum::io::{ImageOptions, save_image};
use cuprum::linalg::svd;
use cuprum::{DType, Error, NdArray, Result, arange, concat, hypot, matmul, s};

/// Height and width of the picture.
const SIDE: i64 = 192;
/// Numbers of singular values that the approximations keep.
const RANKS: [isize; 3] = [2, 8, 32];

fn main() -> Result<()> {
    match std::env::args().nth(1).map(PathBuf::from) {
        Some(picture) => compress(&picture),
        None => {
            let folder = std::env::temp_dir().join(format!("cuprum-svd-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
            compress(&folder.join("svd.png"))?;
            std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
        }
    }
}

/// Returns a grey picture of rings and a disc, with values between 0 and 1.
fn draw() -> Result<NdArray> {
    let x = arange(0, SIDE, 1)?.astype(DType::F64)? / SIDE as f64;
    let y = x.reshape([-1, 1])?;
    let rings = (hypot(&x - 0.3, &y - 0.4)? * 40.0).sin()? * 0.25 + 0.5;
    let disc = hypot(&x - 0.7, &y - 0.65)?.less(0.2)?.astype(DType::F64)?;
    Ok(rings * 0.8 + disc * 0.3)
}

/// Writes the picture and its approximations side by side to `path`, and checks the errors.
fn compress(path: &Path) -> Result<()> {
    let image = draw()?;
    let (u, sigma, vt) = svd(&image, false)?;
    let total = sigma.square()?.sum(())?.item()?.as_f64();
    let mut pictures = vec![image.clone()];
    for rank in RANKS {
        // The columns of `u` are scaled in one pass; the product is a contraction of the GPU or the CPU.
        let scaled = u.index(s![.., ..rank])? * sigma.index(s![..rank])?;
        let approximation = matmul(&scaled, &vt.index(s![..rank, ..])?)?;
        let error = (&image - &approximation).square()?.sum(())?.item()?.as_f64();
        let left_out = sigma.index(s![rank..])?.square()?.sum(())?.item()?.as_f64();
        let stored = rank as f64 * (2 * SIDE + 1) as f64 / (SIDE * SIDE) as f64;
        println!("rank {rank}: {:.1} % of the numbers, relative error {:.4}", 100.0 * stored, (error / total).sqrt());
        assert!((error - left_out).abs() <= 1e-10 * total, "rank {rank}: error {error}, the theorem states {left_out}");
        pictures.push(approximation);
    }
    save_image(path, &concat(&pictures, 1)?, &ImageOptions::default().range(0, 1))?;
    println!("{}: {} pictures on {}", path.display(), pictures.len(), image.device());
    Ok(())
}
