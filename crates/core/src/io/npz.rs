//! The `.npz` format: a zip archive of `.npy` members.

use std::io::{Cursor, Read, Seek, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{at, bad, npy, write_whole};
use crate::array::NdArray;
use crate::error::{Error, Result};

/// Reads every member of a `.npz` file, in the archive's order (`numpy.load`).
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, NdArray)>> {
    let path = path.as_ref();
    let file = std::fs::File::open(path).map_err(|e| Error::io(path, e))?;
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
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).map_err(|e| Error::io(&name, format!("damaged member: {e}")))?;
        out.push((name.clone(), npy::decode(&bytes).map_err(|e| at(Path::new(&name), e))?));
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
    // Everything is computed and encoded before the file is begun.
    let members: Result<Vec<(String, Vec<u8>)>> =
        arrays.iter().map(|(name, a)| Ok((format!("{name}.npy"), npy::encode(a).map_err(|e| at(Path::new(name), e))?))).collect();
    let members = members.map_err(|e| at(path, e))?;
    write_whole(path, |file| {
        let mut archive = ZipWriter::new(file);
        for (name, bytes) in &members {
            let options = SimpleFileOptions::default().compression_method(method).large_file(bytes.len() > u32::MAX as usize);
            archive.start_file(name.as_str(), options).map_err(|e| Error::io(path, e))?;
            archive.write_all(bytes).map_err(|e| Error::io(path, e))?;
        }
        archive.finish().map_err(|e| Error::io(path, e))?;
        Ok(())
    })
}
