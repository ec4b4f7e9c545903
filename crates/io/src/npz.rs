//! The `.npz` format: a zip archive of `.npy` members.

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{format_error, npy, with_path, write_array, write_atomically};
use cuprum_core::{Error, NdArray, Result};

/// Reads all arrays of a `.npz` file with their names, in the order of the archive (`numpy.load`).
///
/// # Errors
/// [`Error::Io`] for a file that is missing or damaged, or has an array of an unsupported dtype.
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, NdArray)>> {
    let path = path.as_ref();
    let file = std::fs::File::open(path).map_err(|e| Error::system(path, e))?;
    read_archive(std::io::BufReader::new(file)).map_err(|e| with_path(path, e))
}

/// Reads all arrays from the bytes of a `.npz` file.
///
/// # Errors
/// [`Error::Io`] for bytes that are damaged or have an array of an unsupported dtype.
pub fn load_npz_bytes(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    read_archive(Cursor::new(bytes))
}

fn read_archive(source: impl Read + Seek) -> Result<Vec<(String, NdArray)>> {
    let mut archive = ZipArchive::new(source).map_err(|e| format_error(format!("not an npz file: {e}")))?;
    let mut out = Vec::new();
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(|e| format_error(format!("damaged npz file: {e}")))?;
        let Some(name) = member.name().strip_suffix(".npy").map(str::to_string) else { continue };
        let size = member.size();
        let array = npy::read_array(&mut member, Some(size)).map_err(|e| with_path(Path::new(&name), e))?;
        // Reading past the array makes `zip` verify the checksum. Trailing data is ignored.
        member.read(&mut [0]).map_err(|e| Error::io(&name, format!("damaged member: {e}")))?;
        out.push((name, array));
    }
    Ok(out)
}

/// Writes named arrays to an uncompressed `.npz` file (`numpy.savez`).
///
/// # Errors
/// [`Error::Io`], also for bfloat16, and errors of evaluation.
pub fn save_npz(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    write_archive(path.as_ref(), arrays, CompressionMethod::Stored)
}

/// Writes named arrays to a compressed `.npz` file (`numpy.savez_compressed`).
///
/// # Errors
/// The errors of [`save_npz`].
pub fn save_npz_compressed(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    write_archive(path.as_ref(), arrays, CompressionMethod::Deflated)
}

fn write_archive(path: &Path, arrays: &[(&str, &NdArray)], method: CompressionMethod) -> Result<()> {
    // All arrays are evaluated first, so that an error of evaluation creates no file.
    let mut members = Vec::new();
    for (name, array) in arrays {
        let header = npy::encode_header(array).map_err(|e| with_path(path, with_path(Path::new(name), e)))?;
        array.eval()?;
        members.push((format!("{name}.npy"), header, array));
    }
    write_atomically(path, |file| {
        let mut archive = ZipWriter::new(file);
        for (name, header, array) in &members {
            let size = header.len().saturating_add(array.nbytes());
            let options = SimpleFileOptions::default().compression_method(method).large_file(size > u32::MAX as usize);
            archive.start_file(name.as_str(), options).map_err(|e| Error::system(path, e))?;
            write_array(path, &mut archive, header, array)?;
        }
        archive.finish().map_err(|e| Error::system(path, e))?;
        Ok(())
    })
}
