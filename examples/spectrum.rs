//! Spectrum of a noisy signal: finds two tones in stronger noise by a Fourier transform, and draws the spectrum as a PNG.
//!
//!     cargo run --release --example spectrum -- [out.png]
//!
//! Without arguments the picture is written to a temporary folder and removed.

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use cuprum::fft::{Norm, rfft, rfftfreq};
use cuprum::io::{ImageOptions, save_image};
use cuprum::random::Generator;
use cuprum::{DType, Error, NdArray, Result, arange, hanning, s};

/// Number of samples, and samples per second.
const SAMPLES: usize = 1 << 16;
const RATE: f64 = 8000.0;
/// Frequencies and amplitudes of the tones. The noise has a standard deviation of 3.
const TONES: [(f64, f64); 2] = [(440.0, 1.0), (2637.0, 0.5)];
/// Width and height of the picture, and the range of its vertical axis in decibels.
const PICTURE: (usize, usize, f64) = (1024, 256, 60.0);

fn main() -> Result<()> {
    match std::env::args().nth(1).map(PathBuf::from) {
        Some(picture) => find_tones(&picture),
        None => {
            let folder = std::env::temp_dir().join(format!("cuprum-spectrum-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
            find_tones(&folder.join("spectrum.png"))?;
            std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
        }
    }
}

/// Writes the spectrum of the signal to `picture`, and checks that its peaks are the tones.
fn find_tones(picture: &Path) -> Result<()> {
    let time = arange(0, SAMPLES as i64, 1)? / RATE;
    let mut signal = Generator::new(7).normal(0.0, 3.0, SAMPLES, DType::F64)?;
    for (frequency, amplitude) in TONES {
        signal += (&time * (TAU * frequency)).sin()? * amplitude;
    }
    // The window is multiplied in the transform's own pass over the signal.
    let spectrum = rfft(&(signal * hanning(SAMPLES as i64)?), None, -1, Norm::Backward)?;
    let power = spectrum.abs()?.square()?;
    draw(&power, picture)?;

    let frequencies = rfftfreq(SAMPLES as i64, 1.0 / RATE)?;
    let resolution = RATE / SAMPLES as f64;
    let middle = (1500.0 / resolution) as isize;
    for ((tone, _), range) in TONES.into_iter().zip([s![..middle], s![middle..]]) {
        let peak = power.index(range)?.argmax(())?;
        let found = frequencies.index(range)?.take(&peak, 0)?.item()?.as_f64();
        println!("{found:.2} Hz, the tone has {tone} Hz");
        assert!((found - tone).abs() < 2.0 * resolution, "the tone of {tone} Hz is at {found} Hz");
    }
    println!("{}: {} frequencies on {}", picture.display(), power.size(), power.device());
    Ok(())
}

/// Draws the power in decibels below the maximum, in columns that hold the strongest of several frequencies.
fn draw(power: &NdArray, picture: &Path) -> Result<()> {
    let (width, height, range) = PICTURE;
    let columns = power.index(s![..SAMPLES / 2])?.reshape([width, SAMPLES / 2 / width])?.max(-1)?;
    let level = (&columns / columns.max(())?).log10()? * 10.0;
    let threshold = arange(0, height as i64, 1)?.reshape([-1, 1])? * (-range / height as f64);
    save_image(picture, &level.greater_equal(threshold)?, &ImageOptions::default())
}
