//! Images: PNG and binary PGM/PPM, written from arrays of two or three axes.

use std::io::Write;
use std::path::Path;

use cuprum_core::{DType, Error, Item, NdArray, Result, max, min, subtract};

use crate::array_bytes::for_each_byte_block;
use crate::errors::{add_path_to_error, convert_system_error, file_format_error};
use crate::formats::Format;
use crate::{atomic_file, file_streams};

/// Size of the blocks of rows that are converted at once, in elements.
const ROW_BLOCK_ELEMENTS: usize = 1 << 20;

/// Options of [`save_image`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ImageOptions {
    range: Option<(f64, f64)>,
}

impl ImageOptions {
    /// Sets the values that become black and white. Values outside are clipped.
    ///
    /// # Examples
    /// ```
    /// let options = cuprum_io::ImageOptions::default().range(-1, 1);
    /// ```
    pub fn range(mut self, black: impl Into<f64>, white: impl Into<f64>) -> Self {
        self.range = Some((black.into(), white.into()));
        self
    }
}

/// Writes an array as a PNG, PGM or PPM image (`matplotlib.pyplot.imsave`). The extension of `path` selects PNG or
/// one of `pgm`, `ppm` and `pnm`, which are written as PGM for one channel and as PPM for three.
///
/// The array has shape `(height, width)` for grey, or `(height, width, channels)` with 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGBA)
/// channels. PGM has one channel, PPM three. The values become bytes:
///
/// | dtype | black and white |
/// |---|---|
/// | uint8 | 0 and 255, unchanged |
/// | bool | false and true |
/// | other dtypes, two axes | smallest and largest finite value, or [`ImageOptions::range`] |
/// | other dtypes, three axes | 0 and 1 for floats, 0 and the dtype's maximum for integers, or [`ImageOptions::range`] |
///
/// NaN becomes black.
///
/// # Errors
/// [`Error::Io`] for an unsupported shape or extension, a complex dtype, or a file that cannot be written.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.pgm", std::process::id()));
/// let ramp = cuprum::linspace(0.0, 1.0, 3)?.reshape([1, 3])?;
/// io::save_image(&path, &ramp, &io::ImageOptions::default())?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"P5\n3 1\n255\n\x00\x80\xff");
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn save_image(path: impl AsRef<Path>, array: &NdArray, options: &ImageOptions) -> Result<()> {
    let path = path.as_ref();
    let encoded = match Format::of_path(path) {
        Some(format @ (Format::Png | Format::Ppm)) => PreparedImage::prepare_for_writing(array, format, options),
        _ => Err(file_format_error("the extension of an image is png, ppm, pgm or pnm")),
    };
    let encoded = encoded.map_err(|e| add_path_to_error(path, e))?;
    atomic_file::write_file_atomically(path, |file| encoded.write(file))
}

/// An evaluated array with the conversion of its values to bytes, ready to be written.
pub(crate) struct PreparedImage {
    array: NdArray,
    format: Format,
    channels: usize,
    /// The values that become black and white. `None` means that the bytes are written as they are.
    range: Option<(f64, f64)>,
    /// The smallest element of an array of 64-bit integers, which float64 may not hold exactly. It is subtracted from the array before
    /// `range` applies.
    origin: Option<NdArray>,
}

impl PreparedImage {
    /// Checks shape and dtype, evaluates the array, and determines the values that become black and white.
    pub fn prepare_for_writing(array: &NdArray, format: Format, options: &ImageOptions) -> Result<PreparedImage> {
        let channels = match *array.shape() {
            [_, _] => 1,
            [_, _, channels @ (1 | 3)] => channels,
            [_, _, channels @ (2 | 4)] if format == Format::Png => channels,
            _ => {
                let text = cuprum_core::error::shape_text(array.shape());
                let channels = if format == Format::Png { "1 to 4" } else { "1 or 3" };
                return Err(file_format_error(format!("an image is (height, width) or (height, width, {channels}), not {text}")));
            }
        };
        let fits = array.shape()[..2].iter().all(|&n| (1..=i32::MAX as usize).contains(&n));
        if !fits {
            return Err(file_format_error("the height and width of an image are between 1 and 2147483647"));
        }
        if array.dtype().is_complex() {
            return Err(file_format_error("complex numbers have no brightness; take abs() or angle() first"));
        }
        array.eval()?;
        let mut origin = None;
        let range = match (options.range, array.dtype()) {
            (Some((black, white)), _) if black.is_finite() && white.is_finite() => Some((black, white)),
            (Some(_), _) => return Err(file_format_error("the range of an image is finite")),
            (None, DType::U8) => None,
            (None, DType::Bool) => Some((0.0, 1.0)),
            (None, DType::I64 | DType::U64) if array.ndim() == 2 => {
                let (lowest, highest) = (min(array, ())?, max(array, ())?);
                let width = highest.item()?.as_int().zip(lowest.item()?.as_int()).map_or(0, |(highest, lowest)| highest - lowest);
                origin = Some(lowest);
                Some((0.0, width as f64))
            }
            (None, _) if array.ndim() == 2 => Some(finite_value_range(array)?),
            (None, dtype) => Some((0.0, dtype.int_range().map_or(1.0, |(_, hi)| hi as f64))),
        };
        Ok(PreparedImage { array: array.clone(), format, channels, range, origin })
    }

    /// Writes the image, converting a block of rows at a time.
    pub fn write(&self, file: &mut dyn Write) -> Result<()> {
        let (height, width) = (self.array.shape()[0], self.array.shape()[1]);
        if self.format == Format::Ppm {
            let magic = if self.channels == 1 { "P5" } else { "P6" };
            file_streams::write_all(file, format!("{magic}\n{width} {height}\n255\n").as_bytes())?;
            return self.for_each_row_block(&mut |bytes| file_streams::write_all(file, bytes));
        }
        let mut file = FirstErrorWriter { file, error: None };
        let written = self.write_png(&mut file, width as u32, height as u32);
        file.error.map_or(written, |e| Err(convert_system_error(e)))
    }

    fn write_png(&self, file: &mut FirstErrorWriter<'_>, width: u32, height: u32) -> Result<()> {
        let mut encoder = png::Encoder::new(file, width, height);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match self.channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        let mut writer = encoder.write_header().map_err(convert_png_error)?;
        let mut stream = writer.stream_writer().map_err(convert_png_error)?;
        self.for_each_row_block(&mut |bytes| {
            file_streams::add_transferred_bytes(bytes.len());
            stream.write_all(bytes).map_err(convert_system_error)
        })?;
        stream.finish().map_err(convert_png_error)?;
        writer.finish().map_err(convert_png_error)
    }

    /// Calls `f` with the bytes of the pixels in row order, one block per call.
    fn for_each_row_block(&self, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some((black, white)) = self.range else { return for_each_byte_block(&self.array, f) };
        let height = self.array.shape()[0];
        let step = (ROW_BLOCK_ELEMENTS / (self.array.size() / height).max(1)).max(1);
        let unit = match (white - black).abs() {
            // The difference of two finite values may overflow. The difference of their halves does not.
            width if width.is_infinite() => 0.5,
            // `255 / (white - black)` may overflow if the difference is small.
            width if width != 0.0 && width < 1e-300 => 1e300,
            _ => 1.0,
        };
        let (black, white) = (black * unit, white * unit);
        let scale = if white == black { 0.0 } else { 255.0 / (white - black) };
        for start in (0..height).step_by(step) {
            let rows = self.array.index(&[Item::from(start..height.min(start + step))])?;
            let rows = match &self.origin {
                // The difference of int64 wraps to the bits of the exact difference in uint64.
                Some(origin) => subtract(&rows, origin)?.view_as(DType::U64)?.astype(DType::F64)?,
                None => rows.astype(DType::F64)?,
            };
            let rows = if unit == 1.0 { rows } else { rows * unit };
            let bytes = ((&rows - black) * scale).clip(0, 255)?.round(0)?;
            let bytes = cuprum_core::where_(bytes.isnan()?, 0, &bytes)?.astype(DType::U8)?;
            for_each_byte_block(&bytes, f)?;
        }
        Ok(())
    }
}

/// A writer that records the first error of the underlying file. The PNG encoder ignores some errors when it writes its last chunks, and
/// replaces others by their message.
struct FirstErrorWriter<'a> {
    file: &'a mut dyn Write,
    error: Option<std::io::Error>,
}

impl FirstErrorWriter<'_> {
    /// Records the error of `result` if it is the first one. Returns the result, with the error replaced by a new one of the same kind.
    fn record_first_error<T>(&mut self, result: std::io::Result<T>) -> std::io::Result<T> {
        result.map_err(|e| {
            let kind = e.kind();
            // The encoder repeats an interrupted write, so this error is not recorded.
            if kind != std::io::ErrorKind::Interrupted {
                self.error.get_or_insert(e);
            }
            kind.into()
        })
    }
}

impl Write for FirstErrorWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes);
        self.record_first_error(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.file.flush();
        self.record_first_error(flushed)
    }
}

/// Returns the smallest and the largest finite value, or zeros if there are no finite values.
fn finite_value_range(array: &NdArray) -> Result<(f64, f64)> {
    if array.size() == 0 {
        return Ok((0.0, 0.0));
    }
    let finite = array.isfinite()?;
    let lowest = min(&cuprum_core::where_(&finite, array, f64::INFINITY)?, ())?.item()?.as_f64();
    let highest = max(&cuprum_core::where_(&finite, array, f64::NEG_INFINITY)?, ())?.item()?.as_f64();
    Ok(if lowest <= highest { (lowest, highest) } else { (0.0, 0.0) })
}

fn convert_png_error(e: png::EncodingError) -> Error {
    match e {
        png::EncodingError::IoError(e) => convert_system_error(e),
        e => file_format_error(e),
    }
}
