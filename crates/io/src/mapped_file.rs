//! Memory-mapped files (mmap), and arrays over them.
//!
//! Mapped arrays are read-only: assignments to them copy first. A mapping uses the page cache of the operating system, so it does
//! not count towards the limit on host memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use cuprum_core::fault_injection::{FailurePoint, inject_io_failure};
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::layout::checked_size;
use cuprum_core::{DType, Device, Error, Layout, NdArray, Result, StoredArray};
use memmap2::Mmap;

use crate::file_streams;

/// A memory-mapped file.
pub(crate) struct MappedFile {
    buffer: Arc<HostBuffer>,
}

impl MappedFile {
    /// Maps the file `path`. If the file cannot be mapped (an empty file, a pipe or a device), the inner `Err` is the open file, because a
    /// pipe can be opened only once.
    pub fn open(path: &Path) -> Result<std::result::Result<MappedFile, File>> {
        let (file, size) = file_streams::open_for_reading(path)?;
        if size.is_none_or(|size| size == 0) {
            return Ok(Err(file));
        }
        MappedFile::of(&file).map_err(|e| Error::system(path, e)).map(Ok)
    }

    /// Maps all of `file`.
    pub fn of(file: &File) -> std::io::Result<MappedFile> {
        inject_io_failure(FailurePoint::FileRead)?;
        // SAFETY: the mapping is private and read-only. Its bytes are only read as integers and floats, of which every bit pattern is
        // valid: `MappedFile::view_as_array` refuses bool. The public functions that map files document that the file must not change while
        // it is mapped.
        let map = unsafe { Mmap::map(file)? };
        let pointer = NonNull::new(map.as_ptr().cast_mut()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        let len = map.len();
        // SAFETY: `pointer` refers to the `len` initialised bytes of the mapping, which lives as long as the buffer owns it. The buffer
        // is not writable, and no code of this process writes to the mapping.
        let buffer = unsafe { HostBuffer::from_owner(pointer, len, Box::new(map), false) };
        Ok(MappedFile { buffer: Arc::new(buffer) })
    }

    /// Returns the contents of the file.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.as_bytes()
    }

    /// Returns an array in C order whose elements start at byte `start` of the file. On the host, the array is a view of the mapping. If
    /// the current device is a GPU, the elements are copied to it.
    ///
    /// Returns `None` if the elements are not aligned, or if they are bool, whose bytes may be neither 0 nor 1.
    ///
    /// # Errors
    /// [`Error::Shape`] if the array reaches past the end of the file.
    pub fn view_as_array(&self, dtype: DType, shape: &[usize], start: usize) -> Result<Option<NdArray>> {
        if dtype == DType::Bool || !start.is_multiple_of(dtype.itemsize()) {
            return Ok(None);
        }
        checked_size("load", shape)?;
        let layout = Layout::contiguous(shape)?.with_offset(start / dtype.itemsize());
        let stored = StoredArray::new(dtype, layout, self.buffer.clone())?;
        NdArray::from(stored).to_device(Device::current()?).map(Some)
    }
}
