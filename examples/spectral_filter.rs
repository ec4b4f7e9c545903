//! Removal of a periodic disturbance from a picture: finds its frequency in a two-dimensional Fourier transform, and removes it there.
//!
//!     cargo run --release --example spectral_filter -- [out.png]
//!
//! Without arguments the picture is written to a temporary folder and removed. The program checks that the frequency is found, and that
//! the filter reduces the error at least ten times.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use cuprum::fft::{Norm, irfft2, rfft2};
use cuprum::io::{ImageOptions, save_image};
use cuprum::{DType, Error, NdArray, Result, arange, concat, hypot, where_};

/// Height and width of the picture, and the cycles of the disturbance along both axes.
const SIDE: usize = 192;
const CYCLES: (usize, usize) = (24, 40);

fn main() -> Result<()> {
    match std::env::args().nth(1).map(PathBuf::from) {
        Some(picture) => filter(&picture),
        None => {
            let folder = std::env::temp_dir().join(format!("cuprum-filter-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
            filter(&folder.join("filter.png"))?;
            std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
        }
    }
}

/// Writes the picture, the disturbed picture and the filtered picture side by side to `path`, and checks the filter.
fn filter(path: &Path) -> Result<()> {
    let x = arange(0, SIDE as i64, 1)?.astype(DType::F64)? / SIDE as f64;
    let y = x.reshape([-1, 1])?;
    // A smooth blob: its spectrum is small where the disturbance is.
    let radius = hypot(&x - 0.5, &y - 0.45)?;
    let image = (radius.square()? * -18.0).exp()?;
    let phase = &y * (TAU * CYCLES.0 as f64) + &x * (TAU * CYCLES.1 as f64);
    let disturbed = &image + phase.sin()? * 0.2;

    let spectrum = rfft2(&disturbed, None, [-2, -1], Norm::Backward)?;
    let columns = SIDE / 2 + 1;
    let row = arange(0, SIDE as i64, 1)?.reshape([-1, 1])?;
    let column = arange(0, columns as i64, 1)?;
    // Low frequencies belong to the picture, so that the search begins at eight cycles.
    let is_high = column.greater(8)?;
    let strength = where_(is_high, spectrum.abs()?, 0.0)?;
    let peak = strength.argmax(())?.item()?.as_f64() as usize;
    let found = (peak / columns, peak % columns);
    println!("disturbance of {} and {} cycles, found {} and {}", CYCLES.0, CYCLES.1, found.0, found.1);
    assert_eq!(found, CYCLES, "the frequency of the disturbance");

    let notch = row.equal(found.0 as i64)?.bitwise_and(&column.equal(found.1 as i64)?)?;
    let cleaned = irfft2(&where_(notch, 0.0, &spectrum)?, None, [-2, -1], Norm::Backward)?;
    let error = |a: &NdArray| -> Result<f64> { Ok((a - &image).square()?.mean(())?.item()?.as_f64().sqrt()) };
    let (before, after) = (error(&disturbed)?, error(&cleaned)?);
    println!("root mean square error {before:.4} before, {after:.2e} after");
    assert!(after * 10.0 < before, "the filter leaves an error of {after}");
    save_image(path, &concat(&[image, disturbed, cleaned], 1)?, &ImageOptions::default().range(-0.2, 1.2))?;
    println!("{}: written", path.display());
    Ok(())
}
