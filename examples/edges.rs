//! Edges of a picture: reads a PNG, smooths it with a Gaussian, takes the gradient, and writes a PNG.
//!
//!     cargo run --release --example edges -- [in.png] [out.png]
//!
//! Without arguments it draws a disc, writes that as the input, and checks that the edges are the disc's.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use cuprum::io::{ImageOptions, save_image};
use cuprum::{DType, Error, NdArray, PadMode, Result, arange, hypot, pad, s};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    match (arguments.next(), arguments.next()) {
        (Some(input), output) => filter(&input, &output.unwrap_or("edges.png".into())).map(|_| ()),
        _ => check(),
    }
}

/// Writes the edges in the picture `input` to `output`, and returns them.
fn filter(input: &Path, output: &Path) -> Result<NdArray> {
    let grey = read_png(input)?.astype(DType::F32)?.mean(-1)? / 255.0;
    let (sigma, radius) = (1.5f32, 4);
    let bell: Vec<f32> = (-radius..=radius).map(|k| (-(k as f32 / sigma).powi(2) / 2.0).exp()).collect();
    let total: f32 = bell.iter().sum();
    let bell = bell.iter().map(|w| w / total).collect::<Vec<_>>();
    let smooth = weighted(&weighted(&grey, 0, &bell)?, 1, &bell)?;
    let slope = [-0.5, 0.0, 0.5];
    let edges = hypot(&weighted(&smooth, 0, &slope)?, &weighted(&smooth, 1, &slope)?)?;
    save_image(output, &edges, &ImageOptions::default())?;
    println!("{} -> {}: {:?} pixels on {}", input.display(), output.display(), edges.shape(), edges.device());
    Ok(edges)
}

/// Returns the sum of shifted copies of an image along `axis`, times `weights`: one fused pass. Pixels outside repeat the edge.
fn weighted(image: &NdArray, axis: usize, weights: &[f32]) -> Result<NdArray> {
    let (radius, n) = (weights.len() / 2, image.shape()[axis] as isize);
    let mut widths = [(0, 0); 2];
    widths[axis] = (radius, radius);
    let padded = pad(image, &widths, PadMode::Edge)?;
    let shifted = |k: isize| if axis == 0 { padded.index(s![k..k + n, ..]) } else { padded.index(s![.., k..k + n]) };
    let mut sum = shifted(0)? * weights[0];
    for (k, &weight) in (1..).zip(&weights[1..]) {
        sum += shifted(k)? * weight;
    }
    Ok(sum)
}

/// Returns the pixels of a PNG as uint8 of shape (height, width, channels).
fn read_png(path: &Path) -> Result<NdArray> {
    let mut decoder = png::Decoder::new(BufReader::new(File::open(path).map_err(|e| Error::system(path, e))?));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().map_err(|e| Error::io(path, e))?;
    let mut pixels = vec![0; reader.output_buffer_size().ok_or_else(|| Error::io(path, "the image is too large"))?];
    let info = reader.next_frame(&mut pixels).map_err(|e| Error::io(path, e))?;
    pixels.truncate(info.buffer_size());
    NdArray::from_vec(pixels, [info.height as usize, info.width as usize, info.color_type.samples()])
}

/// Draws a disc and compares the edges with its circumference.
fn check() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("cuprum-edges-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
    let (side, radius) = (192, 60.0f32);
    let from_centre = arange(0, side, 1)?.astype(DType::F32)? - (side / 2) as f32;
    let distance = hypot(&from_centre.reshape([-1, 1])?, &from_centre)?;
    save_image(folder.join("disc.png"), &distance.less(radius)?, &ImageOptions::default())?;

    let edges = filter(&folder.join("disc.png"), &folder.join("edges.png"))?;
    let strong = edges.greater(0.5 * edges.max(())?.item()?.as_f64())?;
    let near = (&distance - radius).abs()?.less(3.0f32)?;
    let (count, outside) = (strong.sum(())?.item()?.as_f64(), strong.bitwise_and(&near.logical_not()?)?.any(())?.item()?);
    let circumference = 2.0 * std::f64::consts::PI * f64::from(radius);
    assert_eq!(outside, cuprum::Scalar::from(false), "an edge away from the circle");
    assert!((2.0..6.0).contains(&(count / circumference)), "{count} strong pixels on a circle of {circumference:.0}");
    let written = read_png(&folder.join("edges.png"))?;
    assert_eq!((written.shape(), written.max(())?.item()?), (&[side as usize, side as usize, 1][..], 255.into()));
    std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
    println!("{count} pixels of edge, all near the circle");
    Ok(())
}
