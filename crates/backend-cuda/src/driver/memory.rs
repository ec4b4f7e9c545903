//! Device memory: a stream-ordered pool that keeps what it has, a limit, buffers, fills and device copies.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Context, DeviceInfo, Event, check, sys};
use crate::error::{CudaError, Result};

/// The variable that limits device memory: bytes (`8000000000`, `8GiB`) or a share (`80%`).
pub const LIMIT_VARIABLE: &str = "CUPRUM_GPU_MEMORY_LIMIT";

/// The no-limit value of [`Memory::limit`].
const UNLIMITED: u64 = u64::MAX;

/// Counts of one device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStats {
    /// Held by live buffers.
    pub used: u64,
    /// The most that `used` has been.
    pub peak: u64,
    /// Held by our pool, unused parts included.
    pub reserved: u64,
    /// The limit set, if any.
    pub limit: Option<u64>,
    /// Free on the device, for every process.
    pub device_free: u64,
    /// The device's memory.
    pub device_total: u64,
}

/// The allocator of one context.
pub(super) struct Memory {
    /// Null where the device has no pools; then `cuMemAlloc` serves.
    pool: sys::CUmemoryPool,
    limit: AtomicU64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl Memory {
    /// The context must be current.
    pub(super) fn new(info: &DeviceInfo) -> Result<Memory> {
        let limit = match std::env::var(LIMIT_VARIABLE) {
            Ok(text) if !text.trim().is_empty() => {
                parse_limit(&text, info.total_memory).map_err(|e| CudaError::Invalid(format!("{LIMIT_VARIABLE}: {e}")))?
            }
            _ => UNLIMITED,
        };
        Ok(Memory {
            pool: if info.memory_pools { create_pool(info)? } else { ptr::null_mut() },
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        })
    }
}

/// A pool of our own: the device's default one is shared with every other library of the process.
fn create_pool(info: &DeviceInfo) -> Result<sys::CUmemoryPool> {
    let props = sys::CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: info.handle },
        win32SecurityAttributes: ptr::null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; 54],
    };
    let mut pool = ptr::null_mut();
    // SAFETY: the struct is fully set and the out-pointer valid; the pool is never destroyed.
    check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut pool, &props) })?;
    // With the default threshold of 0 every wait returns all unused memory to the system.
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: this attribute takes a cuuint64_t.
    check("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keep).cast()) })?;
    Ok(pool)
}

/// Reads a memory limit: bytes with an optional unit (`k`, `M`, `G`, `T`; `KiB`, `MiB`, ... are powers of 1024),
/// or a percentage of `total`.
pub fn parse_limit(text: &str, total: u64) -> std::result::Result<u64, String> {
    let wrong = || format!("`{}` is neither a number of bytes (8000000000, 8GB, 8GiB) nor a share (80%)", text.trim());
    let lower = text.trim().to_ascii_lowercase();
    let split = lower.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(split);
    let number: f64 = number.replace('_', "").parse().map_err(|_| wrong())?;
    let scale = match unit.trim() {
        "" | "b" => 1.0,
        "%" if number <= 100.0 => total as f64 / 100.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1048576.0,
        "gib" => 1073741824.0,
        "tib" => 1099511627776.0,
        _ => return Err(wrong()),
    };
    Ok((number * scale) as u64)
}

impl Context {
    /// Allocates `bytes` of uninitialised device memory (aligned to at least 256), in stream order.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`] past the limit, or when the device is full after unused memory was returned and the
    /// allocation tried once more.
    pub fn alloc(&'static self, bytes: usize) -> Result<DeviceBuffer> {
        if bytes == 0 {
            return Ok(DeviceBuffer { pointer: 0, bytes: 0, context: self });
        }
        self.bind()?;
        let size = bytes as u64;
        let memory = &self.memory;
        let used = memory.used.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if used > memory.limit.load(Ordering::Relaxed) {
            memory.used.fetch_sub(size, Ordering::Relaxed);
            return Err(self.out_of_memory(size));
        }
        let mut allocated = self.alloc_raw(bytes);
        if matches!(allocated, Err(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) {
            // Frees still queued become room only when the stream has passed them.
            allocated = match self.trim() {
                Ok(()) => self.alloc_raw(bytes),
                Err(_) => allocated,
            };
        }
        match allocated {
            Ok(pointer) => {
                memory.peak.fetch_max(used, Ordering::Relaxed);
                Ok(DeviceBuffer { pointer, bytes, context: self })
            }
            Err(code) => {
                memory.used.fetch_sub(size, Ordering::Relaxed);
                Err(match code {
                    sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => self.out_of_memory(size),
                    code => super::failed("cuMemAllocFromPoolAsync", code),
                })
            }
        }
    }

    fn alloc_raw(&self, bytes: usize) -> std::result::Result<u64, sys::CUresult> {
        let mut pointer = 0;
        let pool = self.memory.pool;
        // SAFETY: the context is current, the out-pointer valid, pool and stream belong to the context.
        let code = unsafe {
            if pool.is_null() {
                sys::cuMemAlloc_v2(&mut pointer, bytes)
            } else {
                sys::cuMemAllocFromPoolAsync(&mut pointer, bytes, pool, self.stream())
            }
        };
        if code == sys::CUresult::CUDA_SUCCESS { Ok(pointer) } else { Err(code) }
    }

    #[cold]
    fn out_of_memory(&self, requested: u64) -> CudaError {
        let limit = self.memory.limit.load(Ordering::Relaxed).min(self.info().total_memory);
        CudaError::OutOfMemory { requested, used: self.memory.used.load(Ordering::Relaxed), limit }
    }

    /// Waits, then returns all unused pool memory to the device (`free_all`).
    pub fn trim(&self) -> Result<()> {
        self.wait()?;
        if self.memory.pool.is_null() {
            return Ok(());
        }
        // SAFETY: our pool; memory in use is not touched.
        check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.memory.pool, 0) })
    }

    /// Sets or removes the memory limit, in bytes. Buffers alive stay even if they exceed it.
    pub fn set_memory_limit(&self, limit: Option<u64>) {
        self.memory.limit.store(limit.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// The counts at this moment.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.bind()?;
        let (mut free, mut total, mut reserved) = (0usize, 0usize, 0u64);
        // SAFETY: the context is current and both out-pointers valid.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        let used = self.memory.used.load(Ordering::Relaxed);
        if self.memory.pool.is_null() {
            reserved = used;
        } else {
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
            let out = (&raw mut reserved).cast();
            // SAFETY: this attribute gives a cuuint64_t.
            check("cuMemPoolGetAttribute", unsafe { sys::cuMemPoolGetAttribute(self.memory.pool, attribute, out) })?;
        }
        let limit = self.memory.limit.load(Ordering::Relaxed);
        Ok(MemoryStats {
            used,
            peak: self.memory.peak.load(Ordering::Relaxed),
            reserved,
            limit: (limit != UNLIMITED).then_some(limit),
            device_free: free as u64,
            device_total: total as u64,
        })
    }

    /// Fills bytes `offset..offset + count * N` with a pattern of N = 1, 2 or 4 bytes, in stream order.
    /// `offset` must be a multiple of N.
    pub fn fill<const N: usize>(&self, dst: &DeviceBuffer, offset: usize, pattern: [u8; N], count: usize) -> Result<()> {
        let bytes = count.checked_mul(N).ok_or_else(|| CudaError::Invalid("the fill is too large".into()))?;
        let to = dst.range(offset, bytes)?;
        self.owns(dst)?;
        if N == 0 || to % N as u64 != 0 {
            return Err(CudaError::Invalid(format!("offset {offset} is not a multiple of the pattern's {N} bytes")));
        }
        if bytes == 0 {
            return Ok(());
        }
        self.bind()?;
        let stream = self.stream();
        // SAFETY: the range was checked against the buffer, the address is aligned to N, the stream is ours.
        let code = unsafe {
            match *pattern.as_slice() {
                [a] => sys::cuMemsetD8Async(to, a, count, stream),
                [a, b] => sys::cuMemsetD16Async(to, u16::from_ne_bytes([a, b]), count, stream),
                [a, b, c, d] => sys::cuMemsetD32Async(to, u32::from_ne_bytes([a, b, c, d]), count, stream),
                _ => return Err(CudaError::Invalid(format!("a fill pattern has 1, 2 or 4 bytes, not {N}"))),
            }
        };
        check("cuMemsetAsync", code)
    }

    /// Copies between buffers in stream order. The ranges must not overlap. Buffers of two devices are copied peer to
    /// peer (through the host where the machine has no such path), each stream waiting for the other as needed.
    pub fn copy(dst: &DeviceBuffer, dst_offset: usize, src: &DeviceBuffer, src_offset: usize, bytes: usize) -> Result<()> {
        let (to, from) = (dst.range(dst_offset, bytes)?, src.range(src_offset, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let (target, source) = (dst.context, src.context);
        target.bind()?;
        if ptr::eq(target, source) {
            // SAFETY: both ranges were checked; the stream is the buffers' own.
            let code = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, target.stream()) };
            return check("cuMemcpyDtoDAsync", code);
        }
        let written = Event::new(source)?;
        written.record()?;
        written.make_wait(target)?;
        // SAFETY: both ranges were checked; the copy waits for the source's writers.
        let code = unsafe { sys::cuMemcpyPeerAsync(to, target.raw(), from, source.raw(), bytes, target.stream()) };
        check("cuMemcpyPeerAsync", code)?;
        // The source may be freed (in its stream's order) only after the copy.
        let copied = Event::new(target)?;
        copied.record()?;
        copied.make_wait(source)
    }

    pub(super) fn owns(&self, buffer: &DeviceBuffer) -> Result<()> {
        if ptr::eq(self, buffer.context) {
            return Ok(());
        }
        let (theirs, ours) = (buffer.context.info().ordinal, self.info().ordinal);
        Err(CudaError::Invalid(format!("the buffer lives on cuda:{theirs}, not on cuda:{ours}")))
    }
}

/// Device memory of one context, freed in stream order when dropped, from any thread.
#[derive(Debug)]
pub struct DeviceBuffer {
    pointer: u64,
    bytes: usize,
    context: &'static Context,
}

impl DeviceBuffer {
    /// The device address; 0 for an empty buffer.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// The size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True for 0 bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The device that it lives on.
    #[inline]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// The address of `offset`, if `bytes` from there lie inside.
    pub fn range(&self, offset: usize, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.pointer + offset as u64),
            _ => Err(CudaError::Invalid(format!("{bytes} bytes at {offset} are outside a buffer of {} bytes", self.bytes))),
        }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.context.memory.used.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        if self.context.bind().is_err() {
            return;
        }
        // SAFETY: allocated by `alloc` and freed only here; work queued before runs before the free. A failure (the
        // context is broken, the process is ending) leaves nothing to be done.
        unsafe {
            if self.context.memory.pool.is_null() {
                sys::cuMemFree_v2(self.pointer);
            } else {
                sys::cuMemFreeAsync(self.pointer, self.context.stream());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_limit;

    #[test]
    fn limits() {
        let parse = |text| parse_limit(text, 1000);
        assert_eq!(parse("80%"), Ok(800));
        assert_eq!(parse(" 12.5 % "), Ok(125));
        assert_eq!(parse("123"), Ok(123));
        assert_eq!(parse("1_000"), Ok(1000));
        assert_eq!(parse("2KiB"), Ok(2048));
        assert_eq!(parse("1.5GB"), Ok(1_500_000_000));
        for bad in ["", "abc", "-1", "101%", "5 apples", "1e9x", "..", "%"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
