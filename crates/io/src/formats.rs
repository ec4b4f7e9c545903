//! Files of any format, recognised by contents and extension.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use cuprum_core::{Error, NdArray, Result};

use crate::csv::{self, TextFormat, TextOptions};
use crate::errors::{add_path_to_error, file_format_error};
use crate::file_streams::{self, read_fully, read_to_end};
use crate::image::ImageOptions;
use crate::{array_names, atomic_file, image, npy, npz, safetensors};

/// A file format of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// NumPy's `.npy`: one array.
    Npy,
    /// NumPy's `.npz`: named arrays in a zip archive.
    Npz,
    /// `.safetensors`: named arrays.
    Safetensors,
    /// `.csv`: text with commas.
    Csv,
    /// `.tsv`: text with columns separated by tabs.
    Tsv,
    /// `.txt`, `.dat`: text with columns separated by blanks.
    Text,
    /// `.png`: an image, only written.
    Png,
    /// `.ppm`, `.pgm`: an image, only written.
    Ppm,
}

impl Format {
    /// Returns the format that the extension of `path` names, in upper or lower case.
    ///
    /// ```
    /// assert_eq!(cuprum_io::Format::of_path("model.safetensors"), Some(cuprum_io::Format::Safetensors));
    /// ```
    pub fn of_path(path: impl AsRef<Path>) -> Option<Format> {
        let extension = path.as_ref().extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "npy" => Format::Npy,
            "npz" => Format::Npz,
            "safetensors" => Format::Safetensors,
            "csv" => Format::Csv,
            "tsv" => Format::Tsv,
            "txt" | "dat" => Format::Text,
            "png" => Format::Png,
            "ppm" | "pgm" | "pnm" => Format::Ppm,
            _ => return None,
        })
    }

    /// Returns the format whose files begin with `start`, or `None` for text and unknown contents. Nine bytes are enough.
    ///
    /// ```
    /// assert_eq!(cuprum_io::Format::from_first_bytes(b"PK\x03\x04"), Some(cuprum_io::Format::Npz));
    /// ```
    pub fn from_first_bytes(start: &[u8]) -> Option<Format> {
        match start {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Format::Npy),
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Format::Npz),
            [_, _, _, _, 0, 0, 0, 0, b'{', ..] => Some(Format::Safetensors),
            [0x89, b'P', b'N', b'G', ..] => Some(Format::Png),
            _ => None,
        }
    }

    /// Returns whether a file of this format can hold several arrays with names.
    pub fn has_names(self) -> bool {
        matches!(self, Format::Npz | Format::Safetensors)
    }
}

/// The first two bytes of every zip archive, which are printable text.
const ZIP_SIGNATURE: &[u8] = b"PK";
/// Number of bytes that are read from the start of a file to recognise its format.
const SIGNATURE_BYTES: usize = 512;

/// Returns the format of a file that begins with `start`: the format that the contents show, else `named`, the format that the caller or
/// the file extension names. If neither is known, text is csv if `start` contains a comma, else columns separated by blanks.
fn recognise_format(start: &[u8], named: Option<Format>) -> Result<Format> {
    let is_printable = start.iter().all(|b| !b.is_ascii_control() || b.is_ascii_whitespace());
    let is_text = || {
        // The bytes of `start` may end within a UTF-8 character.
        let is_utf8 = std::str::from_utf8(start).map_or_else(|e| e.error_len().is_none() && start.len() == SIGNATURE_BYTES, |_| true);
        !start.is_empty() && is_utf8 && is_printable && !ZIP_SIGNATURE.starts_with(start)
    };
    match Format::from_first_bytes(start).or(named) {
        Some(Format::Png | Format::Ppm) => Err(file_format_error("images are only written; convert the image to npy to read it")),
        Some(Format::Csv | Format::Tsv | Format::Text) if !is_printable => {
            Err(file_format_error("binary data, although the name is that of text"))
        }
        Some(format) => Ok(format),
        None if is_text() => Ok(if has_comma_outside_comments(start) { Format::Csv } else { Format::Text }),
        None => Err(file_format_error(
            "not a format that can be recognised (npy, npz, safetensors, csv, tsv, text); fromfile reads elements without a header",
        )),
    }
}

/// Returns whether a line of `text` has a comma that is not in a comment.
fn has_comma_outside_comments(text: &[u8]) -> bool {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).any(|line| line.iter().take_while(|byte| **byte != b'#').any(|byte| *byte == b','))
}

/// Reads the array of a file in any format onto the current device.
///
/// The format is recognised by the contents, else by the file extension. Text is read as [`genfromtxt`](crate::genfromtxt) does, with
/// missing values as NaN and a first line of names skipped. Arrays of safetensors files use the mapped file as their memory: it must not
/// change while they live, see [`Safetensors`](crate::Safetensors). Files of other formats are read into memory.
///
/// # Errors
/// [`Error::Io`] for a file that is missing, damaged, of an unknown format, or has several arrays, which [`read_named`] reads.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-read-{}.csv", std::process::id()));
/// std::fs::write(&path, "x,y\n1,2\n3,4\n").unwrap();
/// assert_eq!(io::read(&path)?.to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn read(path: impl AsRef<Path>) -> Result<NdArray> {
    let path = path.as_ref();
    take_single_array(read_named(path)?).map_err(|e| add_path_to_error(path, e))
}

/// Returns the only array of a file. Several arrays are an error.
fn take_single_array(mut arrays: Vec<(String, NdArray)>) -> Result<NdArray> {
    match arrays.len() {
        1 => Ok(arrays.swap_remove(0).1),
        0 => Err(file_format_error("the file has no array")),
        n => {
            let list = array_names::join_first_names(arrays.iter().map(|(name, _)| name.as_str()));
            Err(file_format_error(format!("the file has {n} arrays, not one: {list}; `read_named` reads all of them")))
        }
    }
}

/// Reads all arrays of a file in any format, with their names. The array of a format without names has an empty name.
///
/// # Errors
/// The errors of [`read`], except for files with several arrays.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-named-{}.npz", std::process::id()));
/// let (a, b) = (cuprum::arange(0, 3, 1)?, cuprum::arange(0, 4, 1)?);
/// io::write_named(&path, &[("a", &a), ("b", &b)])?;
/// let arrays = io::read_named(&path)?;
/// assert_eq!((arrays[1].0.as_str(), arrays[1].1.size()), ("b", 4));
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn read_named(path: impl AsRef<Path>) -> Result<Vec<(String, NdArray)>> {
    let path = path.as_ref();
    let named = Format::of_path(path);
    let (mut file, size) = file_streams::open_for_reading(path)?;
    if size.is_none() {
        return read_any_format(&mut file, named).map_err(|e| add_path_to_error(path, e));
    }
    let mut start = [0; SIGNATURE_BYTES];
    let found = read_fully(&mut file, &mut start).map_err(|e| add_path_to_error(path, e))?;
    drop(file);
    let unnamed = |array: NdArray| vec![(String::new(), array)];
    match recognise_format(&start[..found], named).map_err(|e| add_path_to_error(path, e))? {
        Format::Npy => npy::load(path).map(unnamed),
        Format::Npz => npz::load_npz(path),
        Format::Safetensors => safetensors::load_safetensors(path),
        format => Ok(unnamed(csv::load_table(path, &text_options_of_format(format))?.values)),
    }
}

/// Reads all arrays of a stream, such as standard input, as [`read_named`] does. The elements of an npy file are read directly into
/// the array.
///
/// # Errors
/// The errors of [`read_named`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let (_, array) = io::read_stream(&mut "1 2\n3 4\n".as_bytes())?.remove(0);
/// assert_eq!(array.shape(), [2, 2]);
/// # Ok(())
/// # }
/// ```
pub fn read_stream(source: &mut dyn Read) -> Result<Vec<(String, NdArray)>> {
    read_any_format(source, None).map_err(|e| add_path_to_error(Path::new("stream"), e))
}

/// Reads all arrays of a stream as [`read_named`] reads a file with the extension of `format`.
///
/// The format is recognised by the contents, so `format` only sets the delimiter of text.
///
/// # Errors
/// The errors of [`read_named`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let (_, array) = io::read_stream_as(&mut "1\t\n3\t4\n".as_bytes(), io::Format::Tsv)?.remove(0);
/// assert!(array.index(cuprum::s![0, 1])?.item_as::<f64>()?.is_nan());
/// # Ok(())
/// # }
/// ```
pub fn read_stream_as(source: &mut dyn Read, format: Format) -> Result<Vec<(String, NdArray)>> {
    read_any_format(source, Some(format)).map_err(|e| add_path_to_error(Path::new("stream"), e))
}

fn read_any_format(source: &mut dyn Read, named: Option<Format>) -> Result<Vec<(String, NdArray)>> {
    let mut start = [0; SIGNATURE_BYTES];
    let found = read_fully(source, &mut start)?;
    let start = &start[..found];
    let unnamed = |array: NdArray| vec![(String::new(), array)];
    let mut whole = Cursor::new(start).chain(source);
    match recognise_format(start, named)? {
        Format::Npy => npy::read_array(&mut whole, None).map(unnamed),
        Format::Npz => npz::arrays_from_bytes(&read_to_end(&mut whole)?),
        Format::Safetensors => safetensors::arrays_from_bytes(&read_to_end(&mut whole)?),
        format => Ok(unnamed(csv::array_from_text(&read_to_end(&mut whole)?, &text_options_of_format(format))?)),
    }
}

/// Returns the options with which [`read`] reads text.
fn text_options_of_format(format: Format) -> TextOptions {
    let options = TextOptions::default().detect_names_in_first_line().fill_value(f64::NAN);
    match format {
        Format::Csv => options.delimiter(b','),
        Format::Tsv => options.delimiter(b'\t'),
        _ => options,
    }
}

/// Writes an array to a file in the format that the extension names.
///
/// In npz and safetensors files, the name of the array is `arr_0`, as in `numpy.savez`. Text has the shortest digits that read back as the
/// same values. The file appears under its name when it is complete. An existing file keeps its permissions. Symbolic links are followed.
///
/// # Errors
/// [`Error::Io`] for an unknown extension, a dtype or shape that the format does not support, or a file that cannot be written.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-write-{}.tsv", std::process::id()));
/// io::write(&path, &cuprum::arange(0, 4, 1)?.reshape([2, 2])?)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\t1\n2\t3\n");
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn write(path: impl AsRef<Path>, array: &NdArray) -> Result<()> {
    write_named(path, &[("arr_0", array)])
}

/// Writes named arrays to a file in the format that the extension names. Formats without names take a single array.
///
/// # Errors
/// The errors of [`write()`]; [`Error::Io`] for several arrays in a format without names.
///
/// # Examples
/// See [`read_named`].
pub fn write_named(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    let path = path.as_ref();
    let format = Format::of_path(path).ok_or_else(|| {
        Error::io(path, "the extension names no format; use npy, npz, safetensors, csv, tsv, txt, png or ppm, or tofile for raw bytes")
    })?;
    let encoded = prepare_arrays(format, arrays).map_err(|e| add_path_to_error(path, e))?;
    atomic_file::write_file_atomically(path, |file| encoded.write(file))
}

/// Writes named arrays to a stream, such as standard output.
///
/// # Errors
/// The errors of [`write_named`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let mut bytes = Vec::new();
/// io::write_stream(&mut bytes, io::Format::Csv, &[("", &cuprum::linspace(0.0, 1.0, 3)?)])?;
/// assert_eq!(bytes, b"0.0\n0.5\n1.0\n");
/// # Ok(())
/// # }
/// ```
pub fn write_stream(stream: &mut dyn Write, format: Format, arrays: &[(&str, &NdArray)]) -> Result<()> {
    prepare_arrays(format, arrays)?.write(stream)
}

/// Evaluated arrays in a format, ready to be written.
enum PreparedArrays<'a> {
    Npy(npy::PreparedNpy),
    Npz(Vec<(String, npy::PreparedNpy)>),
    Safetensors(safetensors::PreparedSafetensors<'a>),
    Text(&'a NdArray, TextFormat),
    Image(image::PreparedImage),
}

/// Evaluates the arrays and checks that the format takes them, before a file is created.
fn prepare_arrays<'a>(format: Format, arrays: &[(&str, &'a NdArray)]) -> Result<PreparedArrays<'a>> {
    match format {
        Format::Npz => return npz::prepare_npy_members(arrays).map(PreparedArrays::Npz),
        Format::Safetensors => return safetensors::PreparedSafetensors::prepare_for_writing(arrays, &[]).map(PreparedArrays::Safetensors),
        _ => {}
    }
    let &[(_, array)] = arrays else {
        return Err(file_format_error(format!("{} arrays for a format that holds one; npz and safetensors hold several", arrays.len())));
    };
    let text = |delimiter: &str| {
        csv::check_ndim_and_evaluate(array)?;
        Ok(PreparedArrays::Text(array, TextFormat::default().delimiter(delimiter)))
    };
    match format {
        Format::Npy => npy::PreparedNpy::prepare_for_writing(array).map(PreparedArrays::Npy),
        Format::Csv => text(","),
        Format::Tsv => text("\t"),
        Format::Png | Format::Ppm => {
            image::PreparedImage::prepare_for_writing(array, format, &ImageOptions::default()).map(PreparedArrays::Image)
        }
        _ => text(" "),
    }
}

impl PreparedArrays<'_> {
    fn write(&self, file: &mut dyn Write) -> Result<()> {
        match self {
            PreparedArrays::Npy(encoded) => encoded.write(file),
            PreparedArrays::Npz(members) => npz::write_archive(file, members, false),
            PreparedArrays::Safetensors(encoded) => encoded.write(file),
            PreparedArrays::Text(array, format) => csv::write_text(file, array, format),
            PreparedArrays::Image(encoded) => encoded.write(file),
        }
    }
}
