//! NumPy's `.npy` and `.npz` files.
//!
//! Readers check sizes before they allocate. Writers write to a temporary file and rename it, so that a file is never incomplete.

#![deny(unsafe_code)]

mod npy;
mod npz;
mod transfer;

use std::io::Write;
use std::path::Path;

use cuprum_core::{Error, NdArray, Result};

pub use npz::{load_npz, load_npz_bytes, save_npz, save_npz_compressed};

/// Reads a `.npy` file onto the current device (`numpy.load`), in either byte order and in C or Fortran order.
///
/// # Errors
/// [`Error::Io`] for a file that is missing, truncated, or of an unsupported dtype.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.npy", std::process::id()));
/// io::save(&path, &NdArray::from_slice(&[1.0f32, 2.0])?)?;
/// assert_eq!(io::load(&path)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<NdArray> {
    let path = path.as_ref();
    let file = std::fs::File::open(path).map_err(|e| Error::system(path, e))?;
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
    npy::read_array(&mut std::io::BufReader::new(file), size).map_err(|e| with_path(path, e))
}

/// Reads an array from the bytes of a `.npy` file.
///
/// # Errors
/// [`Error::Io`] for bytes that are truncated or of an unsupported dtype.
pub fn load_bytes(bytes: &[u8]) -> Result<NdArray> {
    npy::read_array(&mut &*bytes, Some(bytes.len() as u64))
}

/// Writes a `.npy` file in C order (`numpy.save`). Unlike NumPy, it does not add a suffix to the name.
///
/// # Errors
/// [`Error::Io`], also for bfloat16, which the format does not support (convert to float32), and errors of evaluation.
pub fn save(path: impl AsRef<Path>, array: &NdArray) -> Result<()> {
    let path = path.as_ref();
    let header = npy::encode_header(array).map_err(|e| with_path(path, e))?;
    array.eval()?;
    write_atomically(path, |file| write_array(path, file, &header, array))
}

/// Writes `header`, then the elements of `array`, to `file`. Errors name `path`.
fn write_array(path: &Path, file: &mut dyn Write, header: &[u8], array: &NdArray) -> Result<()> {
    file.write_all(header).map_err(|e| Error::system(path, e))?;
    transfer::for_each_block(array, &mut |block| file.write_all(block).map_err(|e| Error::system(path, e)))
}

/// Returns `e` with `path` as the file of an [`Error::Io`]; an archive member stays in the message.
fn with_path(path: &Path, e: Error) -> Error {
    match e {
        Error::Io { message, path: member, kind } => {
            let message = if member.is_empty() { message } else { format!("{member}: {message}") };
            Error::Io { path: path.display().to_string(), message, kind }
        }
        e => e,
    }
}

/// Returns the error for invalid file contents. The caller adds the file's name.
fn format_error(message: impl std::fmt::Display) -> Error {
    Error::io("", message)
}

/// Lets `write` fill a temporary file in the folder of `path`, then renames the file to `path`.
fn write_atomically(path: &Path, write: impl FnOnce(&mut std::fs::File) -> Result<()>) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Error::io(path, format!("folder {} does not exist", folder.display())));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cuprum-").suffix(".part");
    #[cfg(unix)]
    {
        // Temporary files are private by default, so the mode of ordinary new files, before the umask, is set.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    // `tempfile` appends the name of the temporary file to its errors, which would mislead the caller.
    let plain = |e: std::io::Error| std::io::Error::new(e.kind(), e.to_string().split(" at path ").next().unwrap_or_default().to_string());
    let mut temporary = builder.tempfile_in(folder).map_err(|e| Error::system(path, plain(e)))?;
    write(temporary.as_file_mut())?;
    temporary.as_file().sync_all().map_err(|e| Error::system(path, e))?;
    temporary.persist(path).map_err(|e| Error::system(path, e.error))?;
    Ok(())
}
