//! Reading and writing of files and streams, and the number of bytes transferred.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cuprum_core::fault_injection::{FailurePoint, inject_io_failure};
use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Error, Result};

use crate::errors::{convert_system_error, file_format_error};

/// Maximum number of bytes per read or write, so that the count of bytes shows progress.
const MAX_BYTES_PER_READ_OR_WRITE: usize = 16 << 20;

static TRANSFERRED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Returns the number of bytes that this process has read from and written to files of arrays, for progress displays.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-count-{}.npy", std::process::id()));
/// let before = io::bytes_transferred();
/// io::save(&path, &cuprum::arange(0, 100, 1)?)?;
/// assert!(io::bytes_transferred() >= before + 800);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn bytes_transferred() -> u64 {
    TRANSFERRED_BYTES.load(Ordering::Relaxed)
}

/// Adds to the count of transferred bytes.
pub(crate) fn add_transferred_bytes(bytes: usize) {
    TRANSFERRED_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Opens a file for reading. Returns the file and its size in bytes, which is `None` for pipes and devices.
pub(crate) fn open_for_reading(path: &Path) -> Result<(File, Option<u64>)> {
    inject_io_failure(FailurePoint::FileOpen).map_err(|e| Error::system(path, e))?;
    let file = File::open(path).map_err(|e| Error::system(path, e))?;
    let metadata = file.metadata().map_err(|e| Error::system(path, e))?;
    if metadata.is_dir() {
        return Err(Error::system(path, std::io::Error::from(ErrorKind::IsADirectory)));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

/// Reads until `buffer` is full or the source ends. Returns the number of bytes read.
pub(crate) fn read_fully(source: &mut dyn Read, buffer: &mut [u8]) -> Result<usize> {
    use ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    let mut filled = 0;
    while filled < buffer.len() {
        let end = buffer.len().min(filled + MAX_BYTES_PER_READ_OR_WRITE);
        match inject_io_failure(FailurePoint::FileRead).and_then(|()| source.read(&mut buffer[filled..end])) {
            Ok(0) => break,
            Ok(n) => {
                filled += n;
                add_transferred_bytes(n);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // Errors of the system have an OS error code. An error without one comes from a decoder, and is about the contents.
            Err(e) if e.raw_os_error().is_none() && matches!(e.kind(), InvalidData | InvalidInput | UnexpectedEof) => {
                return Err(file_format_error(e));
            }
            Err(e) => return Err(convert_system_error(e)),
        }
    }
    Ok(filled)
}

/// Reads the rest of `source` into memory, within the limit on host memory.
pub(crate) fn read_to_end(source: &mut dyn Read) -> Result<Vec<u8>> {
    append_until_end(source, Vec::new())
}

/// Appends the rest of `source` to `bytes`. A capacity above the size of the source avoids further allocations.
fn append_until_end(source: &mut dyn Read, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    loop {
        let len = bytes.len();
        try_reserve("load", &mut bytes, (len / 2).max(64 << 10))?;
        bytes.resize(bytes.capacity(), 0);
        let end = bytes.len();
        let found = read_fully(source, &mut bytes[len..])?;
        bytes.truncate(len + found);
        if len + found < end {
            return Ok(bytes);
        }
    }
}

/// Reads a whole file or pipe into memory, within the limit on host memory.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be read, [`Error::OutOfMemory`].
///
/// # Examples
/// See [`write_file`](crate::write_file).
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let (mut file, size) = open_for_reading(path)?;
    let mut bytes = Vec::new();
    // With one byte more than the size, the end of the file is found without another allocation.
    let capacity = size.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1));
    try_reserve("load", &mut bytes, capacity)?;
    append_until_end(&mut file, bytes).map_err(|e| crate::errors::add_path_to_error(path, e))
}

/// Writes all of `bytes`, and adds their number to the count of transferred bytes.
pub(crate) fn write_all(file: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(MAX_BYTES_PER_READ_OR_WRITE) {
        file.write_all(piece).map_err(convert_system_error)?;
        add_transferred_bytes(piece.len());
    }
    Ok(())
}
