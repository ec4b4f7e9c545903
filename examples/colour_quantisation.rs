//! Colour quantisation: reduces the colours of a picture to eight by k-means, the algorithm of Lloyd.
//!
//!     cargo run --release --example colour_quantisation -- [out.png]
//!
//! Without arguments the picture is written to a temporary folder and removed. The program checks that no step increases the error,
//! that the picture has at most eight colours, and that their error is below a third of the error of one colour.
//!
//! Source: S. P. Lloyd, Least squares quantization in PCM, IEEE Transactions on Information Theory 28 (1982).

use std::path::{Path, PathBuf};

use cuprum::io::{ImageOptions, save_image};
use cuprum::random::Generator;
use cuprum::{DType, Error, NdArray, Result, arange, bincount, broadcast_to, concat, hypot, matmul, maximum, s, stack, unique};

/// Height and width of the picture, the number of colours and the number of steps.
const SIDE: usize = 160;
const COLOURS: usize = 8;
const STEPS: usize = 20;

fn main() -> Result<()> {
    match std::env::args().nth(1).map(PathBuf::from) {
        Some(picture) => quantise(&picture),
        None => {
            let folder = std::env::temp_dir().join(format!("cuprum-colours-{}", std::process::id()));
            std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
            quantise(&folder.join("colours.png"))?;
            std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))
        }
    }
}

/// Returns an RGB picture of colour gradients, of shape (height, width, 3), with values between 0 and 1.
fn draw() -> Result<NdArray> {
    let x = arange(0, SIDE as i64, 1)?.astype(DType::F64)? / (SIDE - 1) as f64;
    let y = x.reshape([-1, 1])?;
    let rings = (hypot(&x - 0.5, &y - 0.5)? * 12.0).cos()? * 0.5 + 0.5;
    let red = broadcast_to(&x, [SIDE, SIDE])?;
    let green = broadcast_to(&y, [SIDE, SIDE])?;
    stack(&[red, green, rings], -1)
}

/// Returns the index of the nearest colour for each pixel, and the mean square distance to it.
fn nearest(pixels: &NdArray, colours: &NdArray) -> Result<(NdArray, f64)> {
    // |p - c|^2 = |p|^2 - 2 p.c + |c|^2: the products of all pairs are one matrix product.
    let products = matmul(pixels, &colours.t()?)?;
    let norms = pixels.square()?.sum(1)?.reshape([-1, 1])?;
    let distances = norms - products * 2.0 + colours.square()?.sum(1)?;
    let error = distances.min(1)?.mean(())?.item()?.as_f64();
    Ok((distances.argmin(1)?, error))
}

/// Returns the mean colour of the pixels of each index. A colour without pixels stays black.
fn means(pixels: &NdArray, index: &NdArray) -> Result<NdArray> {
    let counts = maximum(bincount(index, None, COLOURS)?, 1)?.astype(DType::F64)?;
    let channel = |c: isize| -> Result<NdArray> { Ok(bincount(index, Some(&pixels.index(s![.., c])?), COLOURS)? / &counts) };
    stack(&[channel(0)?, channel(1)?, channel(2)?], -1)
}

/// Writes the picture and its eight colours side by side to `path`, and checks the result.
fn quantise(path: &Path) -> Result<()> {
    let image = draw()?;
    let pixels = image.reshape([SIDE * SIDE, 3])?;
    let first = Generator::new(4).integers(0, pixels.shape()[0] as i64, COLOURS, DType::I64)?;
    let mut colours = pixels.take(&first, 0)?;
    let mut errors = Vec::new();
    for _ in 0..STEPS {
        let (index, error) = nearest(&pixels, &colours)?;
        errors.push(error);
        colours = means(&pixels, &index)?;
    }
    let (index, error) = nearest(&pixels, &colours)?;
    errors.push(error);
    println!("mean square error {:.5} at first, {error:.5} after {STEPS} steps", errors[0]);
    assert!(errors.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "a step increases the error: {errors:?}");
    // The best single colour is the mean, and its error is the variance.
    let single = (&pixels - pixels.mean(0)?).square()?.sum(1)?.mean(())?.item()?.as_f64();
    assert!(3.0 * error < single, "eight colours have an error of {error}, one has {single}");
    assert!(unique(&index)?.size() <= COLOURS, "the picture has more than {COLOURS} colours");
    let quantised = colours.take(&index, 0)?.reshape([SIDE, SIDE, 3])?;
    save_image(path, &concat(&[image, quantised], 1)?, &ImageOptions::default().range(0, 1))?;
    println!("{}: {COLOURS} colours on {}", path.display(), pixels.device());
    Ok(())
}
