//! Host memory: aligned buffers from the pool, memory of other owners, and copies into and out of them. Running out of memory is an error,
//! not an abort.
#![allow(unsafe_code)]

use std::alloc;
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use super::device_memory::Buffer;
pub use super::device_memory::{HOST_ALIGNMENT, pool_block_size};
pub use super::host_driver::HostDriver;
use super::host_pool;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::types::device::Device;

/// A fixed-size block of host memory: from the pool, from a vector, or of another owner.
///
/// Two kinds of kernels may write to a buffer through [`HostBuffer::as_mut_ptr`]: the kernel that allocates the buffer, and a kernel that
/// receives the buffer as the target of an output ([`OutputSpec::target_buffer`](crate::OutputSpec::target_buffer)). No other code writes
/// to a shared buffer.
///
/// Memory from the pool is aligned to [`HOST_ALIGNMENT`]. Other memory is aligned for some dtypes only ([`HostBuffer::is_aligned_for`]).
/// Kernels need the alignment of one element, and return an error if the memory is aligned less.
pub struct HostBuffer {
    ptr: NonNull<u8>,
    nbytes: usize,
    source: MemorySource,
    /// Whether every byte is known to be 0 or 1; see [`HostBuffer::has_valid_bools`].
    has_valid_bools: AtomicBool,
}

/// The origin of a host buffer's memory, which determines how the memory is freed.
enum MemorySource {
    /// A block of [`host_pool::allocate_block`].
    Pool,
    /// The allocation of a `Vec`, described by its size and alignment. The allocation counts towards the host memory limit.
    Vec(alloc::Layout),
    /// Memory of another owner, such as a mapped file. Dropping `owner` frees the memory.
    Other { owner: Box<dyn Any + Send + Sync>, is_writable: bool },
}

// SAFETY: the memory at `ptr` stays allocated while this value lives. Shared access only reads the memory (see the documentation of
// `HostBuffer`).
unsafe impl Send for HostBuffer {}
// SAFETY: shared access only reads the memory (see the documentation of `HostBuffer`).
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Returns a buffer of `nbytes` bytes with unspecified contents. The caller writes every element before it is read.
    pub fn uninit(nbytes: usize) -> Result<HostBuffer> {
        Ok(HostBuffer {
            ptr: host_pool::allocate_block(nbytes, false)?,
            nbytes,
            source: MemorySource::Pool,
            has_valid_bools: AtomicBool::new(false),
        })
    }

    /// Returns a buffer of `nbytes` zero bytes. New pages from the operating system are zero already, so they are not written.
    pub fn zeroed(nbytes: usize) -> Result<HostBuffer> {
        Ok(HostBuffer {
            ptr: host_pool::allocate_block(nbytes, true)?,
            nbytes,
            source: MemorySource::Pool,
            has_valid_bools: AtomicBool::new(true),
        })
    }

    /// Moves a vector into a buffer, without a copy. [`HostBuffer::take_vec`] moves the vector out again.
    ///
    /// The allocation of the vector, capacity included, counts towards [`MemoryStats::used`](crate::MemoryStats::used). The allocation may
    /// exceed the memory limit, since its memory is in use already; the limit then applies to later allocations.
    pub fn from_vec<T: Element>(values: Vec<T>) -> HostBuffer {
        let mut values = ManuallyDrop::new(values);
        // SAFETY: a vector has allocated its capacity with this size and alignment, so they are a valid layout.
        let memory = unsafe { alloc::Layout::from_size_align_unchecked(values.capacity() * size_of::<T>(), align_of::<T>()) };
        host_pool::add_external_used_bytes(memory.size());
        HostBuffer {
            // The pointer of a vector is never null: without an allocation, it is dangling.
            ptr: NonNull::new(values.as_mut_ptr().cast()).unwrap_or(NonNull::dangling()),
            nbytes: values.len() * size_of::<T>(),
            source: MemorySource::Vec(memory),
            has_valid_bools: AtomicBool::new(T::DTYPE == DType::Bool),
        }
    }

    /// Moves out the vector that [`HostBuffer::from_vec`] moved into this buffer, shortened to its first `len` elements. The buffer is
    /// empty afterwards.
    ///
    /// Returns `None`, and leaves the buffer unchanged, in these cases:
    ///
    /// - The memory of the buffer is not that of a vector.
    /// - The buffer holds fewer than `len` elements.
    /// - The alignment of `T` differs from that of the vector's elements, or the size of `T` does not divide the size of the vector's
    ///   allocation.
    /// - `T` is bool, and a byte is neither 0 nor 1.
    ///
    /// If none of these cases applies, `T` may differ from the element type of the vector.
    pub fn take_vec<T: Element>(&mut self, len: usize) -> Option<Vec<T>> {
        let MemorySource::Vec(memory) = self.source else { return None };
        let fits = memory.align() == align_of::<T>() && memory.size().is_multiple_of(size_of::<T>()) && len <= self.nbytes / size_of::<T>();
        if !fits || (T::DTYPE == DType::Bool && !self.has_valid_bools()) {
            return None;
        }
        let taken = ManuallyDrop::new(std::mem::replace(self, HostBuffer::from_vec(Vec::<T>::new())));
        host_pool::subtract_external_used_bytes(memory.size());
        // SAFETY: `taken.ptr` is the allocation of a vector of this size and alignment. `taken` never frees the allocation, since it is in
        // `ManuallyDrop`. The first `len` elements are inside `nbytes` initialised bytes. These bytes are valid values of `T`: bool is
        // checked above, other types accept any bytes.
        Some(unsafe { Vec::from_raw_parts(taken.ptr.as_ptr().cast(), len, memory.size() / size_of::<T>()) })
    }

    /// Wraps memory of another owner, such as a mapped file or an array of another library. Dropping `owner` frees it.
    ///
    /// If `is_writable`, operations may write to the memory while no other array uses it. The memory does not count
    /// towards the host memory limit.
    ///
    /// # Safety
    /// - `ptr` points to `nbytes` initialised bytes, at most `isize::MAX`, which stay allocated while `owner` lives, on any thread.
    /// - No other code writes the bytes while `owner` lives. If `is_writable`, no other code reads them either, and writing is permitted.
    pub unsafe fn from_owner(ptr: NonNull<u8>, nbytes: usize, owner: Box<dyn Any + Send + Sync>, is_writable: bool) -> HostBuffer {
        // If `nbytes` is 0, the caller may pass any pointer, even a misaligned one. An aligned dangling pointer replaces it.
        let ptr = if nbytes == 0 { NonNull::<u128>::dangling().cast() } else { ptr };
        HostBuffer { ptr, nbytes, source: MemorySource::Other { owner, is_writable }, has_valid_bools: AtomicBool::new(false) }
    }

    /// Returns the owner given to [`HostBuffer::from_owner`].
    pub fn owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        match &self.source {
            MemorySource::Other { owner, .. } => Some(owner.as_ref()),
            _ => None,
        }
    }

    /// Returns whether the memory is aligned for elements of `dtype`.
    #[inline]
    pub fn is_aligned_for(&self, dtype: DType) -> bool {
        self.ptr.addr().get().is_multiple_of(dtype.alignment())
    }

    /// Returns `len` elements from index `start` on. Returns `None` if they are not inside the buffer, if the memory is not aligned for
    /// `T`, or if `T` is bool and there are bytes other than 0 and 1.
    pub fn typed_elements<T: Element>(&self, start: usize, len: usize) -> Option<&[T]> {
        let count = self.nbytes / size_of::<T>();
        let is_inside = start <= count && len <= count - start;
        if !is_inside || !self.is_aligned_for(T::DTYPE) || (T::DTYPE == DType::Bool && !self.has_valid_bools()) {
            return None;
        }
        // SAFETY: by the checks above, the elements are inside the initialised memory that `self` keeps allocated, aligned for `T`, with
        // bytes that are valid for `T`. A shared buffer is only read (see the documentation of `HostBuffer`).
        Some(unsafe { std::slice::from_raw_parts(self.ptr.as_ptr().cast::<T>().add(start), len) })
    }

    /// Overwrites the whole buffer with `bytes`.
    ///
    /// # Errors
    /// [`Error::Value`] if the size of `bytes` differs from the size of the buffer, or for read-only memory.
    pub(crate) fn overwrite_with(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.nbytes {
            return Err(Error::value("allocate", format!("{} bytes for a buffer of {}", bytes.len(), self.nbytes)));
        }
        self.as_mut_bytes()?.copy_from_slice(bytes);
        Ok(())
    }

    /// Returns a buffer with a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<HostBuffer> {
        let mut buffer = Self::uninit(bytes.len())?;
        buffer.overwrite_with(bytes)?;
        Ok(buffer)
    }

    /// Returns a buffer with a copy of typed values.
    pub fn from_slice<T: Element>(values: &[T]) -> Result<HostBuffer> {
        Self::from_bytes(slice_as_bytes(values))
    }

    /// Returns whether every byte is 0 or 1, so that the buffer may be read as `bool`. A positive result is cached, so later calls do not
    /// scan the buffer again.
    ///
    /// A bool [`StoredArray`](crate::StoredArray) over host memory requires such bytes. Kernels call this function before they form a
    /// `&[bool]`.
    #[inline]
    pub fn has_valid_bools(&self) -> bool {
        self.has_valid_bools.load(Ordering::Relaxed) || self.scan_for_valid_bools()
    }

    #[cold]
    fn scan_for_valid_bools(&self) -> bool {
        // Each chunk is scanned without an early exit, so that the compiler vectorises the loop.
        let holds = self.as_bytes().chunks(4096).all(|chunk| chunk.iter().fold(0, |bits, byte| bits | byte) <= 1);
        if holds {
            self.has_valid_bools.store(true, Ordering::Relaxed);
        }
        holds
    }

    /// Declares that every byte is 0 or 1, for a kernel that has written a bool output.
    ///
    /// # Safety
    /// Every byte is 0 or 1, and stays so while the buffer is shared.
    pub unsafe fn assume_valid_bools(&self) {
        debug_assert!(self.scan_for_valid_bools(), "a bool buffer has bytes other than 0 and 1");
        self.has_valid_bools.store(true, Ordering::Relaxed);
    }

    /// Returns a pointer to the first byte, for reading.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// Returns a pointer to the first byte, for writes by a kernel (see the documentation of [`HostBuffer`]).
    ///
    /// The bytes no longer count as bools: the next [`HostBuffer::has_valid_bools`] reads them again. The kernel requests a pointer for
    /// each run, and writes before other code reads the buffer.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.has_valid_bools.store(false, Ordering::Relaxed);
        self.ptr.as_ptr()
    }

    /// Returns the whole buffer as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `ptr` points to `nbytes` initialised bytes that `self` keeps allocated. A shared buffer is only read (see the
        // documentation of `HostBuffer`).
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.nbytes) }
    }

    /// Returns the whole buffer for writing.
    ///
    /// # Errors
    /// [`Error::Value`] for read-only memory ([`HostBuffer::from_owner`]).
    pub fn as_mut_bytes(&mut self) -> Result<&mut [u8]> {
        if !self.is_writable() {
            return Err(Error::value("allocate", "the memory of another owner is read-only"));
        }
        *self.has_valid_bools.get_mut() = false;
        // SAFETY: `ptr` points to `nbytes` initialised, writable bytes that `self` keeps allocated. `&mut self` excludes every other
        // access.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.nbytes) })
    }

    /// Replaces every nonzero byte by 1, so that the buffer may be read as `bool`.
    ///
    /// # Errors
    /// [`Error::Value`] for read-only memory.
    pub fn normalize_bools(&mut self) -> Result<()> {
        normalize_bools(self.as_mut_bytes()?);
        *self.has_valid_bools.get_mut() = true;
        Ok(())
    }

    /// Returns the number of bytes of host memory in use: host buffers, and lists of [`Value`](crate::ops::python_value::Value). Memory of
    /// other owners ([`HostBuffer::from_owner`]) does not count.
    pub fn bytes_in_use() -> usize {
        host_pool::used_bytes()
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        match self.source {
            // SAFETY: `ptr` comes from `host_pool::allocate_block(nbytes)`, and its only owner is being dropped, so no reference to it
            // remains.
            MemorySource::Pool => unsafe { host_pool::free_or_cache_block(self.ptr, self.nbytes) },
            MemorySource::Vec(memory) => {
                host_pool::subtract_external_used_bytes(memory.size());
                if memory.size() > 0 {
                    // SAFETY: `ptr` is a vector's allocation of this size and alignment, and its only owner is being dropped.
                    unsafe { alloc::dealloc(self.ptr.as_ptr(), memory) };
                }
            }
            MemorySource::Other { .. } => {}
        }
    }
}

impl Buffer for HostBuffer {
    fn is_writable(&self) -> bool {
        !matches!(self.source, MemorySource::Other { is_writable: false, .. })
    }
    fn device(&self) -> Device {
        Device::CPU
    }
    fn nbytes(&self) -> usize {
        self.nbytes
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Returns the bytes of `values`.
pub fn slice_as_bytes<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: `values` is a live slice of this many bytes. `Element` types have no padding, so all of them are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}

/// Replaces every nonzero byte of `bytes` by 1.
fn normalize_bools(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
}

/// Reserves capacity for `additional` more values, within the limit on host memory.
///
/// Every vector whose length a caller of the library chooses is allocated this way.
///
/// # Errors
/// [`Error::OutOfMemory`] if the allocation would exceed the limit or fails. [`Vec::reserve`] would abort the process.
pub fn try_reserve<T>(op: &'static str, values: &mut Vec<T>, additional: usize) -> Result<()> {
    if values.capacity() - values.len() >= additional {
        return Ok(());
    }
    let nbytes = values.len().saturating_add(additional).saturating_mul(size_of::<T>());
    host_pool::check_memory_limit(op, nbytes)?;
    let reserved = if values.is_empty() { values.try_reserve_exact(additional) } else { values.try_reserve(additional) };
    reserved.map_err(|_| out_of_memory_error(op, nbytes))
}

/// Collects an iterator into a vector, as [`Iterator::collect`] does, with fallible allocation.
///
/// # Errors
/// [`Error::OutOfMemory`] if the allocation would exceed the host memory limit or fails.
pub fn try_collect<T>(op: &'static str, items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let items = items.into_iter();
    let mut values = Vec::new();
    try_reserve(op, &mut values, items.size_hint().0)?;
    for item in items {
        try_reserve(op, &mut values, 1)?;
        values.push(item);
    }
    Ok(values)
}

/// Appends `more` to `text` with fallible allocation.
///
/// # Errors
/// [`Error::OutOfMemory`] if the allocation would exceed the host memory limit or fails.
pub fn try_push_str(op: &'static str, text: &mut String, more: &str) -> Result<()> {
    if text.capacity() - text.len() < more.len() {
        let nbytes = text.len().saturating_add(more.len());
        host_pool::check_memory_limit(op, nbytes)?;
        text.try_reserve(more.len()).map_err(|_| out_of_memory_error(op, nbytes))?;
    }
    text.push_str(more);
    Ok(())
}

/// Checks that `nbytes` of temporary memory can be allocated. The caller then makes many small infallible allocations of this total size.
///
/// # Errors
/// [`Error::OutOfMemory`] if the allocation would exceed the host memory limit or fails.
pub fn check_memory_available(op: &'static str, nbytes: usize) -> Result<()> {
    try_reserve(op, &mut Vec::<u8>::new(), nbytes)
}

fn out_of_memory_error(op: &'static str, requested: usize) -> Error {
    let limit = crate::settings::cpu_memory_limit();
    Error::OutOfMemory { op, device: Device::CPU, requested, used: HostBuffer::bytes_in_use(), limit }
}

/// Returns the elements that `layout` selects from `bytes`, in C order. Nonzero bytes of bool count as true.
pub(crate) fn gather_elements<T: Element>(bytes: &[u8], layout: &crate::layout::Layout) -> Result<Vec<T>> {
    let item = std::mem::size_of::<T>();
    let (lo, hi) = layout.buffer_range();
    if lo < 0 || (hi as usize).saturating_mul(item) > bytes.len() {
        return Err(Error::value("to_vec", "layout reaches outside its buffer"));
    }
    let size = layout.size();
    let mut out: Vec<T> = Vec::new();
    if size == 0 {
        return Ok(out);
    }
    try_reserve("to_vec", &mut out, size)?;
    let base = bytes.as_ptr();
    if layout.is_c_contiguous() {
        // SAFETY: by the check of `layout.buffer_range()` above, the `size` elements from `offset` are inside `bytes`. `out` has capacity
        // for them.
        unsafe {
            let target = out.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(base.add(layout.offset() * item), target, size * item);
            if T::DTYPE == DType::Bool {
                normalize_bools(std::slice::from_raw_parts_mut(target, size));
            }
            out.set_len(size);
        }
        return Ok(out);
    }
    for at in element_offsets(layout) {
        let mut element = [0u8; size_of::<crate::Complex<f64>>()];
        // SAFETY: `at` is within `layout.buffer_range()`, which is inside `bytes` by the check above. `element` has the size of the largest
        // dtype.
        unsafe { std::ptr::copy_nonoverlapping(base.offset(at * item as isize), element.as_mut_ptr(), item) };
        if T::DTYPE == DType::Bool {
            normalize_bools(&mut element[..1]);
        }
        // SAFETY: the first bytes of `element` are a valid `T`: bool is normalised, and every other element type accepts any bytes.
        out.push(unsafe { std::ptr::read_unaligned(element.as_ptr().cast::<T>()) });
    }
    Ok(out)
}

/// Iterates over the element offsets of a layout in C order.
pub fn element_offsets(layout: &crate::layout::Layout) -> impl Iterator<Item = isize> + '_ {
    let (shape, strides) = (layout.shape(), layout.strides());
    let mut index = vec![0usize; shape.len()];
    let mut at = layout.offset() as isize;
    (0..layout.size()).map(move |_| {
        let here = at;
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis] as isize;
            index[axis] = 0;
        }
        here
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_bytes_other_than_0_and_1() {
        for size in [0, 1, 5, 4096, 10_001] {
            let mut bytes: Vec<u8> = (0..size).map(|i| (i % 3 == 1) as u8).collect();
            let buffer = HostBuffer::from_bytes(&bytes).unwrap();
            assert!(buffer.has_valid_bools() && buffer.has_valid_bools());
            for (at, bad) in [(size / 2, 2), (size.max(1) - 1, 255)].into_iter().filter(|(at, _)| *at < size) {
                let kept = std::mem::replace(&mut bytes[at], bad);
                assert!(!HostBuffer::from_bytes(&bytes).unwrap().has_valid_bools(), "{bad} at {at} of {size}");
                bytes[at] = kept;
            }
        }
        let mut buffer = HostBuffer::zeroed(3).unwrap();
        assert!(buffer.has_valid_bools());
        buffer.as_mut_bytes().unwrap()[1] = 7;
        assert!(!buffer.has_valid_bools(), "a write invalidates the cached answer");
    }

    #[test]
    fn nonzero_bytes_are_read_as_true() {
        let bytes = [0, 1, 2, 255, 0, 128];
        let read = |layout| gather_elements::<bool>(&bytes, &layout).unwrap();
        let whole = crate::Layout::contiguous(&[6]).unwrap();
        assert_eq!(read(whole.clone()), [false, true, true, true, false, true]);
        assert_eq!(read(whole.flip(&[0])), [true, false, true, true, true, false]);
    }

    #[test]
    fn block_size_wastes_at_most_an_eighth() {
        for granule in [HOST_ALIGNMENT, 512] {
            for n in (0..5000).chain([100_000, 1 << 20, (1 << 20) + 1, (64 << 20) - 1, 64 << 20, (64 << 20) + 1]) {
                let size = pool_block_size(n, granule);
                assert!(size >= n.max(1) && size.is_multiple_of(granule) && size <= n + (n / 8).max(granule), "{n}: {size}");
                assert_eq!(pool_block_size(size, granule), size);
            }
        }
        assert_eq!(
            (pool_block_size(1 << 20, 64), pool_block_size((1 << 20) + 1, 64)),
            (1 << 20, (1 << 20) + (1 << 17)),
            "eight to a power of two"
        );
        assert_eq!(pool_block_size(usize::MAX, 64), usize::MAX);
    }
}
