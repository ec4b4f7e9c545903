//! Reaction and diffusion of two substances (the model of Gray and Scott), written with `roll` as in NumPy: patterns grow from a seed.
//!
//!     cargo run --release --example reaction_diffusion -- [out.png] [steps]
//!
//! Each step is a few fused passes. Without arguments the picture is written to a temporary folder and removed. The program checks
//! that the discrete Laplacian conserves its sum, that concentrations stay in [0, 1], and that the pattern has the seed's symmetry.
//!
//! Source: J. E. Pearson, Complex patterns in a simple system, Science 261 (1993).

use std::path::{Path, PathBuf};

use cuprum::io::{ImageOptions, save_image};
use cuprum::{DType, Error, NdArray, Result, flip, full, roll, s, zeros};

/// Height and width of the periodic grid.
const SIDE: usize = 128;
/// Rates of diffusion of both substances, feed rate and removal rate.
const DU: f64 = 0.16;
const DV: f64 = 0.08;
const FEED: f64 = 0.035;
const KILL: f64 = 0.065;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let picture = arguments.next().map(PathBuf::from);
    let steps: usize = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(if picture.is_some() { 4000 } else { 400 });
    match picture {
        Some(picture) => grow(&picture, steps),
        None => {
            let folder = std::env::temp_dir().join(format!("cuprum-reaction-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
            grow(&folder.join("reaction.png"), steps)?;
            std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
        }
    }
}

/// Returns the five-point Laplacian on the periodic grid.
fn laplacian(a: &NdArray) -> Result<NdArray> {
    let around = roll(a, &[1], 0)? + roll(a, &[-1], 0)? + roll(a, &[1], 1)? + roll(a, &[-1], 1)?;
    Ok(around - a * 4.0)
}

/// Runs `steps` steps from a square seed and writes the second substance to `path`.
fn grow(path: &Path, steps: usize) -> Result<()> {
    let (low, high) = (SIDE as isize / 2 - 8, SIDE as isize / 2 + 8);
    let mut u = full([SIDE, SIDE], 1.0, DType::F64)?;
    let mut v = zeros([SIDE, SIDE], DType::F64)?;
    u.assign(s![low..high, low..high], 0.5)?;
    v.assign(s![low..high, low..high], 0.25)?;
    let drift = laplacian(&v)?.sum(())?.item()?.as_f64();
    assert!(drift.abs() < 1e-9, "diffusion changes the total amount by {drift}");
    for _ in 0..steps {
        let reaction = &u * &v * &v;
        let next_u = &u + laplacian(&u)? * DU - &reaction + (1.0 - &u) * FEED;
        let next_v = &v + laplacian(&v)? * DV + &reaction - &v * (FEED + KILL);
        (u, v) = (next_u, next_v);
        u.eval()?;
        v.eval()?;
    }
    let (least, most) = (v.min(())?.item()?.as_f64(), v.max(())?.item()?.as_f64());
    assert!(least >= 0.0 && most <= 1.0 && most > 0.05, "concentrations between {least} and {most}");
    let asymmetry = (&v - flip(&v, 0)?).abs()?.max(())?.item()?.as_f64();
    assert!(asymmetry < 1e-6, "the pattern differs from its mirror image by {asymmetry}");
    save_image(path, &v, &ImageOptions::default())?;
    println!("{}: {steps} steps on {}, concentrations up to {most:.3}", path.display(), v.device());
    Ok(())
}
