//! The `.npz` format: a zip archive of `.npy` members.

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{at, bad, npy, write_array, write_whole};
use crate::array::NdArray;
use crate::error::{Error, Result};

/// Reads every member of a `.npz` file, in the archive's order (`numpy.load`).
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, NdArray)>> {
    let path = path.as_ref();
    let file = std::fs::File::open(path).map_err(|e| Error::system(path, e))?;
    read(std::io::BufReader::new(file)).map_err(|e| at(path, e))
}

/// Reads every member from the bytes of a `.npz` file.
pub fn load_npz_bytes(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    read(Cursor::new(bytes))
}

fn read(source: impl Read + Seek) -> Result<Vec<(String, NdArray)>> {
    let mut archive = ZipArchive::new(source).map_err(|e| bad(format!("not an npz file: {e}")))?;
    let mut out = Vec::new();
    for i in 0..archive.len() {
        let mut member = archive.by_index(i).map_err(|e| bad(format!("damaged npz file: {e}")))?;
        let Some(name) = member.name().strip_suffix(".npy").map(str::to_string) else { continue };
        let size = member.size();
        let array = npy::decode(&mut member, Some(size)).map_err(|e| at(Path::new(&name), e))?;
        // The checksum is compared where the member ends. What follows the array is not read, however long it is.
        member.read(&mut [0]).map_err(|e| Error::io(&name, format!("damaged member: {e}")))?;
        out.push((name, array));
    }
    Ok(out)
}

/// Writes arrays under their names, uncompressed (`numpy.savez`).
pub fn save_npz(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    write(path.as_ref(), arrays, CompressionMethod::Stored)
}

/// Writes arrays under their names, compressed (`numpy.savez_compressed`).
pub fn save_npz_compressed(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    write(path.as_ref(), arrays, CompressionMethod::Deflated)
}

fn write(path: &Path, arrays: &[(&str, &NdArray)], method: CompressionMethod) -> Result<()> {
    // Everything is computed before the file is begun.
    let mut members = Vec::new();
    for (name, array) in arrays {
        let header = npy::encode_header(array).map_err(|e| at(path, at(Path::new(name), e)))?;
        array.eval()?;
        members.push((format!("{name}.npy"), header, array));
    }
    write_whole(path, |file| {
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
