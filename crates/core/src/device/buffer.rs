//! Host memory: blocks from the pool (`pool`), aligned for any SIMD width, and copies in and out of them. Running out is an
//! error, not an abort.
#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::device::{Buffer, Device, DeviceDriver, DeviceEvent, DeviceInfo, MemoryStats, driver};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::pool;
use crate::stream::Stream;

/// Alignment of every host buffer: a cache line, and the widest SIMD register.
pub const ALIGNMENT: usize = 64;

/// The size that an allocator which keeps blocks gives one for `nbytes`: an eighth of a power of two at a time, in multiples of
/// `granule` (a power of two), so that requests of about one size share blocks and at most an eighth, or one granule, is not used.
#[inline]
pub fn block_size(nbytes: usize, granule: usize) -> usize {
    let step = nbytes.checked_next_power_of_two().map_or(granule, |power| (power / 16).max(granule));
    nbytes.max(1).checked_next_multiple_of(step).unwrap_or(usize::MAX)
}

/// A block of host memory of fixed size.
///
/// Its contents may be written through [`HostBuffer::as_mut_ptr`] by the kernel that has just allocated it; once an
/// array over it is handed out, it is only read.
pub struct HostBuffer {
    ptr: NonNull<u8>,
    nbytes: usize,
    /// Whose memory it is, if not the pool's.
    owner: Option<Box<dyn Any + Send + Sync>>,
    /// Whether every byte is known to be 0 or 1; see [`HostBuffer::holds_bools`].
    holds_bools: AtomicBool,
}

// SAFETY: the block is plain memory owned by this value; shared access only reads (see the type's contract).
unsafe impl Send for HostBuffer {}
// SAFETY: as above.
unsafe impl Sync for HostBuffer {}

impl HostBuffer {
    /// Memory with some bytes or other, of which the caller writes every element before anyone reads.
    pub fn uninit(nbytes: usize) -> Result<HostBuffer> {
        Ok(HostBuffer { ptr: pool::allocate(nbytes, false)?, nbytes, owner: None, holds_bools: AtomicBool::new(false) })
    }

    /// Memory filled with zeros; large blocks fresh from the system are not touched.
    pub fn zeroed(nbytes: usize) -> Result<HostBuffer> {
        Ok(HostBuffer { ptr: pool::allocate(nbytes, true)?, nbytes, owner: None, holds_bools: AtomicBool::new(true) })
    }

    /// Memory that a backend has allocated, and what frees it when it is dropped.
    ///
    /// # Safety
    /// `nbytes` initialised bytes from `ptr` on, aligned to [`ALIGNMENT`], that nobody else writes as long as `owner` lives.
    pub unsafe fn from_owner(ptr: NonNull<u8>, nbytes: usize, owner: Box<dyn Any + Send + Sync>) -> HostBuffer {
        HostBuffer { ptr, nbytes, owner: Some(owner), holds_bools: AtomicBool::new(false) }
    }

    /// What [`HostBuffer::from_owner`] was given.
    pub fn owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.owner.as_deref()
    }

    /// Writes all of it, before it is shared. An error if it has another size.
    pub(crate) fn fill_from(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.nbytes {
            return Err(Error::value("allocate", format!("{} bytes for a buffer of {}", bytes.len(), self.nbytes)));
        }
        self.as_mut_bytes().copy_from_slice(bytes);
        Ok(())
    }

    /// A copy of the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<HostBuffer> {
        let mut buffer = Self::uninit(bytes.len())?;
        buffer.fill_from(bytes)?;
        Ok(buffer)
    }

    /// A copy of typed values.
    pub fn from_slice<T: Element>(values: &[T]) -> Result<HostBuffer> {
        // SAFETY: elements are plain data without padding, readable as bytes.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), std::mem::size_of_val(values)) };
        Self::from_bytes(bytes)
    }

    /// Whether every byte is 0 or 1, so that the buffer may be read as `bool`. Reads the bytes once; later calls know the answer.
    ///
    /// A [`StoredArray`](crate::StoredArray) of bool over host memory needs this, and kernels check it before they make a slice of `bool`.
    #[inline]
    pub fn holds_bools(&self) -> bool {
        self.holds_bools.load(Ordering::Relaxed) || self.find_bools()
    }

    #[cold]
    fn find_bools(&self) -> bool {
        // Chunks without an early exit, which the compiler vectorises.
        let holds = self.as_bytes().chunks(4096).all(|chunk| chunk.iter().fold(0, |bits, byte| bits | byte) <= 1);
        if holds {
            self.holds_bools.store(true, Ordering::Relaxed);
        }
        holds
    }

    /// Declares that every byte is 0 or 1, for a kernel that has written a bool output.
    ///
    /// # Safety
    /// Every byte is 0 or 1, and stays so while the buffer is shared.
    pub unsafe fn assume_bools(&self) {
        debug_assert!(self.find_bools(), "a bool buffer with other bytes than 0 and 1");
        self.holds_bools.store(true, Ordering::Relaxed);
    }

    /// Start of the block, for reading.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// Start of the block, for the kernel that allocated it to write to (see the type's contract).
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// The whole block as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the block is `nbytes` long, initialised by the pool and, by contract, no longer written to when an array over it
        // is handed out.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.nbytes) }
    }

    /// The whole block, for writing.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        *self.holds_bools.get_mut() = false;
        // SAFETY: as in `as_bytes`; whoever holds the one value of it is the only one who knows the block.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.nbytes) }
    }

    /// A copy of `nbytes` of a device's buffer of `dtype`, from an offset on; waits for the device. Bytes of bool other than 0 become 1.
    pub(crate) fn downloaded(dtype: DType, buffer: &dyn Buffer, byte_offset: usize, nbytes: usize) -> Result<HostBuffer> {
        let mut host = Self::uninit(nbytes)?;
        driver(buffer.device())?.download(buffer, byte_offset, host.as_mut_bytes())?;
        if dtype == DType::Bool {
            make_bools(host.as_mut_bytes());
            *host.holds_bools.get_mut() = true;
        }
        Ok(host)
    }

    /// Bytes held by all host buffers of the process, but for memory of backends.
    pub fn bytes_in_use() -> usize {
        pool::used()
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if self.owner.is_some() {
            return;
        }
        // SAFETY: from `pool::allocate` with this size; nobody uses it after its owner.
        unsafe { pool::free(self.ptr, self.nbytes) };
    }
}

impl Buffer for HostBuffer {
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

/// Makes every byte 0 or 1: other bytes than 0 count as true.
fn make_bools(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
}

/// Reserves capacity for `additional` more values, within the limit of host memory.
///
/// Use it for every vector whose length a caller of the library chooses.
///
/// # Errors
/// [`Error::OutOfMemory`] if the limit or the system refuses, where [`Vec::reserve`] would abort.
pub fn try_reserve<T>(op: &'static str, values: &mut Vec<T>, additional: usize) -> Result<()> {
    if values.capacity() - values.len() >= additional {
        return Ok(());
    }
    let nbytes = values.len().saturating_add(additional).saturating_mul(size_of::<T>());
    pool::check(op, nbytes)?;
    let reserved = if values.is_empty() { values.try_reserve_exact(additional) } else { values.try_reserve(additional) };
    reserved.map_err(|_| out_of_memory(op, nbytes))
}

/// As [`Iterator::collect`] into a vector, with [`try_reserve`].
///
/// # Errors
/// [`Error::OutOfMemory`].
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

/// Appends to a text, with [`try_reserve`].
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn try_push_str(op: &'static str, text: &mut String, more: &str) -> Result<()> {
    if text.capacity() - text.len() < more.len() {
        let nbytes = text.len().saturating_add(more.len());
        pool::check(op, nbytes)?;
        text.try_reserve(more.len()).map_err(|_| out_of_memory(op, nbytes))?;
    }
    text.push_str(more);
    Ok(())
}

/// Checks that `nbytes` of temporary memory can be had in one piece, before many small allocations that cannot fail take as much.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn try_ensure(op: &'static str, nbytes: usize) -> Result<()> {
    try_reserve(op, &mut Vec::<u8>::new(), nbytes)
}

fn out_of_memory(op: &'static str, requested: usize) -> Error {
    let limit = crate::settings::cpu_memory_limit();
    Error::OutOfMemory { op, device: Device::CPU, requested, used: HostBuffer::bytes_in_use(), limit }
}

/// Copies the elements of a strided host region, in C order, into a typed vector. Bytes of bool other than 0 count as true.
pub(crate) fn gather_elements<T: Element>(bytes: &[u8], layout: &crate::layout::Layout) -> Result<Vec<T>> {
    let item = std::mem::size_of::<T>();
    let (lo, hi) = layout.extent();
    if lo < 0 || (hi as usize).saturating_mul(item) > bytes.len() {
        return Err(Error::value("to_vec", "layout reaches outside its buffer"));
    }
    let size = layout.size();
    let mut out: Vec<T> = Vec::new();
    try_reserve("to_vec", &mut out, size)?;
    let base = bytes.as_ptr();
    if layout.is_c_contiguous() {
        // SAFETY: `extent` shows that `size` elements from `offset` lie inside `bytes`; `out` has room for them; unaligned copies by bytes.
        unsafe {
            let target = out.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(base.add(layout.offset() * item), target, size * item);
            if T::DTYPE == DType::Bool {
                make_bools(std::slice::from_raw_parts_mut(target, size));
            }
            out.set_len(size);
        }
        return Ok(out);
    }
    for at in offsets(layout) {
        let mut element = [0u8; size_of::<crate::Complex<f64>>()];
        // SAFETY: every offset lies within `extent`, checked above, and no element is longer than `element`.
        unsafe { std::ptr::copy_nonoverlapping(base.offset(at * item as isize), element.as_mut_ptr(), item) };
        if T::DTYPE == DType::Bool {
            make_bools(&mut element[..1]);
        }
        // SAFETY: the first bytes are a value of T: any bytes are one of another type than bool.
        out.push(unsafe { std::ptr::read_unaligned(element.as_ptr().cast::<T>()) });
    }
    Ok(out)
}

/// Element offsets of a layout in C order.
pub fn offsets(layout: &crate::layout::Layout) -> impl Iterator<Item = isize> + '_ {
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

/// Memory of the host. The CPU backend registers it with its base accelerator.
pub struct HostDriver {
    info: fn() -> DeviceInfo,
}

impl HostDriver {
    /// A driver whose [`DeviceInfo`] comes from the backend, which knows the SIMD level and the thread pool.
    pub fn new(info: fn() -> DeviceInfo) -> HostDriver {
        HostDriver { info }
    }
}

struct HostEvent(Instant);

impl DeviceEvent for HostEvent {
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64> {
        let other = earlier.as_any().downcast_ref::<HostEvent>().ok_or_else(|| Error::value("event", "events of different devices"))?;
        Ok(self.0.saturating_duration_since(other.0).as_secs_f64() * 1e3)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl DeviceDriver for HostDriver {
    fn allocate(&self, nbytes: usize, _stream: Stream) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(HostBuffer::uninit(nbytes)?))
    }
    fn upload(&self, bytes: &[u8], _stream: Stream) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(HostBuffer::from_bytes(bytes)?))
    }
    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()> {
        let host = buffer.as_any().downcast_ref::<HostBuffer>().ok_or_else(|| Error::value("download", "not a host buffer"))?;
        let bytes = byte_offset.checked_add(out.len()).and_then(|end| host.as_bytes().get(byte_offset..end));
        out.copy_from_slice(bytes.ok_or_else(|| Error::value("download", "range outside the buffer"))?);
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    fn record_event(&self, _stream: Stream) -> Result<Box<dyn DeviceEvent>> {
        Ok(Box::new(HostEvent(Instant::now())))
    }
    fn info(&self) -> DeviceInfo {
        DeviceInfo { memory_used: HostBuffer::bytes_in_use(), ..(self.info)() }
    }
    fn memory_stats(&self) -> Result<MemoryStats> {
        Ok(pool::stats())
    }
    fn set_memory_limit(&self, limit: Option<usize>) -> Result<()> {
        pool::set_limit(limit);
        Ok(())
    }
    fn free_all(&self) -> Result<()> {
        pool::free_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_bool_are_found() {
        for size in [0, 1, 5, 4096, 10_001] {
            let mut bytes: Vec<u8> = (0..size).map(|i| (i % 3 == 1) as u8).collect();
            let buffer = HostBuffer::from_bytes(&bytes).unwrap();
            assert!(buffer.holds_bools() && buffer.holds_bools());
            for (at, bad) in [(size / 2, 2), (size.max(1) - 1, 255)].into_iter().filter(|(at, _)| *at < size) {
                let kept = std::mem::replace(&mut bytes[at], bad);
                assert!(!HostBuffer::from_bytes(&bytes).unwrap().holds_bools(), "{bad} at {at} of {size}");
                bytes[at] = kept;
            }
        }
        let mut buffer = HostBuffer::zeroed(3).unwrap();
        assert!(buffer.holds_bools());
        buffer.as_mut_bytes()[1] = 7;
        assert!(!buffer.holds_bools(), "what was known before a write");
    }

    #[test]
    fn other_bytes_than_0_are_read_as_true() {
        let bytes = [0, 1, 2, 255, 0, 128];
        let read = |layout| gather_elements::<bool>(&bytes, &layout).unwrap();
        let whole = crate::Layout::contiguous(&[6]).unwrap();
        assert_eq!(read(whole.clone()), [false, true, true, true, false, true]);
        assert_eq!(read(whole.flip(&[0])), [true, false, true, true, true, false]);
    }

    #[test]
    fn blocks_are_little_larger_than_asked_for() {
        for granule in [ALIGNMENT, 512] {
            for n in (0..5000).chain([100_000, 1 << 20, (1 << 20) + 1, (64 << 20) - 1, 64 << 20, (64 << 20) + 1]) {
                let size = block_size(n, granule);
                assert!(size >= n.max(1) && size.is_multiple_of(granule) && size <= n + (n / 8).max(granule), "{n}: {size}");
                assert_eq!(block_size(size, granule), size);
            }
        }
        assert_eq!((block_size(1 << 20, 64), block_size((1 << 20) + 1, 64)), (1 << 20, (1 << 20) + (1 << 17)), "eight to a power of two");
        assert_eq!(block_size(usize::MAX, 64), usize::MAX);
    }
}
