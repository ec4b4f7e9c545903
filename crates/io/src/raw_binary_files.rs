//! Raw binary files: elements without a header.

use std::io::Read;
use std::path::Path;

use cuprum_core::error::shape_text;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::layout::checked_size;
use cuprum_core::{DType, IntoShape, NdArray, Result};

use crate::array_bytes::{array_from_host_buffer, for_each_byte_block, normalize_bools};
use crate::atomic_file;
use crate::errors::{add_path_to_error, convert_system_error, file_format_error};
use crate::file_streams::{self, read_fully, read_to_end};
use crate::mapped_file::MappedFile;

/// Reads the elements of a file without a header, in native byte order, as a 1-D array on the current device (`numpy.fromfile`).
///
/// `offset` is the byte at which the elements start, `count` their number: `None` reads to the end of the file.
///
/// # Errors
/// [`Error::Io`](cuprum_core::Error::Io) if the file is missing, ends before `count` elements, or, without `count`, ends within an element.
/// NumPy returns the complete elements instead. [`Error::OutOfMemory`](cuprum_core::Error::OutOfMemory).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// use cuprum::{DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.bin", std::process::id()));
/// io::tofile(&path, &NdArray::from_slice(&[1i16, 2, 3])?)?;
/// assert_eq!(io::fromfile(&path, DType::I16, None, 2)?.to_vec::<i16>()?, [2, 3]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn fromfile(path: impl AsRef<Path>, dtype: DType, count: Option<usize>, offset: u64) -> Result<NdArray> {
    let path = path.as_ref();
    read_elements(path, dtype, count, offset).map_err(|e| add_path_to_error(path, e))
}

fn read_elements(path: &Path, dtype: DType, count: Option<usize>, offset: u64) -> Result<NdArray> {
    let (mut file, size) = file_streams::open_for_reading(path)?;
    match size {
        Some(_) => drop(std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(offset)).map_err(convert_system_error)?),
        None => drop(std::io::copy(&mut (&mut file).take(offset), &mut std::io::sink()).map_err(convert_system_error)?),
    }
    let item = dtype.itemsize();
    let available = size.map(|size| size.saturating_sub(offset));
    let count = match (count, available) {
        (Some(count), _) => count,
        (None, Some(available)) => count_whole_elements(dtype, usize::try_from(available).unwrap_or(usize::MAX), offset)?,
        (None, None) => {
            let bytes = read_to_end(&mut file)?;
            let count = count_whole_elements(dtype, bytes.len(), offset)?;
            return NdArray::from_bytes(dtype, count, &bytes);
        }
    };
    let want = checked_size("fromfile", &[count])?.saturating_mul(item);
    let truncated = |found: u64| file_format_error(format!("truncated: {found} bytes after byte {offset}, {count} {dtype} need {want}"));
    if let Some(found) = available.filter(|&found| found < want as u64) {
        return Err(truncated(found));
    }
    let mut host = HostBuffer::uninit(want)?;
    let found = read_fully(&mut file, host.as_mut_bytes()?)?;
    if found < want {
        return Err(truncated(found as u64));
    }
    if dtype == DType::Bool {
        normalize_bools(host.as_mut_bytes()?);
    }
    array_from_host_buffer(dtype, &[count], host)
}

/// Returns the number of elements in the `nbytes` bytes from byte `offset` on, or an error if the last element is incomplete.
fn count_whole_elements(dtype: DType, nbytes: usize, offset: u64) -> Result<usize> {
    let item = dtype.itemsize();
    if !nbytes.is_multiple_of(item) {
        let message = format!("{nbytes} bytes after byte {offset} are not a whole number of {dtype} ({item} bytes each); pass a count");
        return Err(file_format_error(message));
    }
    Ok(nbytes / item)
}

/// Writes the elements in C order and native byte order, without a header (`numpy.ndarray.tofile`).
///
/// # Errors
/// [`Error::Io`](cuprum_core::Error::Io) if the file cannot be written; errors of evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-tofile-{}.bin", std::process::id()));
/// io::tofile(&path, &cuprum::NdArray::from_slice(&[1u8, 2])?)?;
/// assert_eq!(std::fs::read(&path).unwrap(), [1, 2]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn tofile(path: impl AsRef<Path>, array: &NdArray) -> Result<()> {
    array.eval()?;
    atomic_file::write_file_atomically(path.as_ref(), |file| for_each_byte_block(array, &mut |block| file_streams::write_all(file, block)))
}

/// Returns an array over a memory-mapped file, without reading the elements (`numpy.memmap` in mode `r`).
///
/// `offset` is the byte at which the elements start, a multiple of the element size. The array is read-only: an assignment to it
/// copies first. If the current device is a GPU, the elements are copied to it.
///
/// The file must not change while the array lives. If the file is truncated, reading a page after its new end terminates the process with
/// SIGBUS.
///
/// # Errors
/// [`Error::Io`](cuprum_core::Error::Io) if the file is missing or too short, `offset` is not aligned, or `dtype` is bool. The bytes of
/// bool elements must be checked, which would read the file: use [`fromfile`], or map uint8.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// use cuprum::{DType, NdArray};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-memmap-{}.bin", std::process::id()));
/// io::tofile(&path, &cuprum::arange(0, 8, 1)?)?;
/// let rows = io::memmap(&path, DType::I64, 16, [3, 2])?;
/// assert_eq!(rows.sum(0)?.to_vec::<i64>()?, [2 + 4 + 6, 3 + 5 + 7]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn memmap(path: impl AsRef<Path>, dtype: DType, offset: u64, shape: impl IntoShape) -> Result<NdArray> {
    let (path, shape) = (path.as_ref(), shape.into_shape());
    map_file_elements(path, dtype, offset, &shape).map_err(|e| add_path_to_error(path, e))
}

fn map_file_elements(path: &Path, dtype: DType, offset: u64, shape: &[usize]) -> Result<NdArray> {
    let want = checked_size("memmap", shape)?.saturating_mul(dtype.itemsize());
    let mapping = MappedFile::open(path)?.ok();
    let found = mapping.as_ref().map_or(0, |m| m.bytes().len() as u64).saturating_sub(offset);
    if found < want as u64 {
        let text = shape_text(shape);
        return Err(file_format_error(format!("truncated: {found} bytes after byte {offset}, {dtype} {text} needs {want}")));
    }
    let Some(mapping) = mapping else { return NdArray::from_bytes(dtype, shape, &[]) };
    match mapping.view_as_array(dtype, shape, usize::try_from(offset).unwrap_or(usize::MAX))? {
        Some(array) => Ok(array),
        None if dtype == DType::Bool => {
            Err(file_format_error("bool cannot be mapped, since its bytes are checked; use fromfile, or map uint8"))
        }
        None => {
            let item = dtype.itemsize();
            Err(file_format_error(format!("the offset {offset} is not a multiple of the element size {item} of {dtype}; use fromfile")))
        }
    }
}
