//! Device memory: this crate's [`Pool`] over the driver's, a memory limit, buffers, fills and device copies.
//!
//! Free blocks are kept, up to a quarter of the device's memory. They go back to the device when the driver has no memory for a request
//! of this process ([`Context::with_room`]), when the memory limit would be passed, when less memory is free for other users of the
//! device than is kept ([`must_yield`]), and when the program asks for it ([`Context::trim`]).

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cuprum_core::MemoryStats;
use cuprum_core::settings::{env, parse_limit, parse_switch};
use smallvec::SmallVec;

use super::capture::{Capture, FIRST_CAPTURE};
use super::fault::{FaultCell, Taint};
use super::mark::Mark;
use super::order::{Uses, numbers};
use super::pool::{Block, Pool, Taken};
use super::{Context, DeviceInfo, Event, check, sys};
use crate::error::{CudaError, Result};

/// Variable for the memory limit: bytes (`8000000000`, `8GiB`) or a percentage (`80%`).
pub const LIMIT_VARIABLE: &str = "CUPRUM_GPU_MEMORY_LIMIT";

/// Variable for the pool. With `0`, no block is kept and sizes are not rounded, so that a memory checker sees each buffer.
pub const POOL_VARIABLE: &str = "CUPRUM_GPU_MEMORY_POOL";

/// Value of [`Pool::limit`] for no limit.
const UNLIMITED: u64 = u64::MAX;

/// Kept memory below this is not worth a return to the device, in bytes.
const SMALL_KEPT: usize = 64 << 20;
/// Requests from this size on look whether kept memory has to be returned, in bytes.
const LOOK_FROM: usize = 1 << 20;
/// Minimum time between two looks, in milliseconds: a look costs two calls of the driver.
const LOOK_MILLIS: u64 = 100;

/// Whether kept memory goes back to the device: another process, or another library of this one, can have no more than `free`.
///
/// No more is kept than is free for others. So a user that allocates until the device is full gets what was kept as well, half of the
/// rest at a time.
fn must_yield(kept: usize, free: usize) -> bool {
    kept >= SMALL_KEPT && kept > free
}

/// When to look next, in milliseconds since the context was made.
#[derive(Default)]
struct Looks(AtomicU64);

impl Looks {
    /// Whether a look is due. Of several threads, one is told so.
    fn is_due(&self, now: u64) -> bool {
        let next = self.0.load(Ordering::Relaxed);
        now >= next && self.0.compare_exchange(next, now + LOOK_MILLIS, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Runs `attempt`, and once more behind `make_room` if it fails for lack of memory.
#[inline]
fn again_with_room<T>(mut attempt: impl FnMut() -> Result<T>, make_room: impl FnOnce() -> Result<()>) -> Result<T> {
    match attempt() {
        Err(error) if error.is_out_of_memory() => {
            make_room()?;
            attempt()
        }
        done => done,
    }
}

/// Converts a limit to the form of [`Pool::limit`].
fn most(limit: Option<usize>) -> u64 {
    limit.map_or(UNLIMITED, |bytes| bytes as u64)
}

/// The allocator of one context.
pub(super) struct Memory {
    /// The driver's pool. Null if the device has none; then `cuMemAlloc` is used.
    driver: sys::CUmemoryPool,
    /// Free blocks and statistics.
    pool: Mutex<Pool<Arc<Mark>>>,
    /// Devices that have access to this memory, or cannot have it ([`Context::allow_peer_access`]).
    peers: Mutex<SmallVec<[usize; 8]>>,
    made: Instant,
    looks: Looks,
}

impl Memory {
    /// Requires a current context.
    pub(super) fn new(info: &DeviceInfo) -> Result<Memory> {
        let invalid = |e: cuprum_core::Error| CudaError::Invalid(e.to_string());
        let limit = env(LIMIT_VARIABLE).map_or(Ok(None), |text| parse_limit(LIMIT_VARIABLE, &text, info.total_memory as usize));
        let driver = if info.memory_pools { create_pool(info)? } else { ptr::null_mut() };
        let pooled = env(POOL_VARIABLE).map_or(Ok(true), |text| parse_switch(POOL_VARIABLE, &text));
        let keep = if pooled.map_err(invalid)? { info.total_memory / 4 } else { 0 };
        Ok(Memory {
            driver,
            pool: Mutex::new(Pool::new(most(limit.map_err(invalid)?), keep)),
            peers: Mutex::default(),
            made: Instant::now(),
            looks: Looks::default(),
        })
    }

    fn pool(&self) -> MutexGuard<'_, Pool<Arc<Mark>>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a separate driver pool, because other libraries of the process share the default pool.
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
    // With the default threshold of 0, every synchronisation returns all unused memory to the system.
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: this attribute takes a cuuint64_t.
    check("cuMemPoolSetAttribute", unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut keep).cast()) })?;
    Ok(pool)
}

impl Context {
    /// Allocates `bytes` of uninitialised device memory (aligned to at least 256), in the order of this thread's stream.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`] beyond the limit, or if the device is full after unused memory was returned.
    pub fn alloc(&'static self, bytes: usize) -> Result<DeviceBuffer> {
        self.alloc_for(self.stream_number(), bytes)
    }

    /// [`Context::alloc`] for a stream.
    pub(super) fn alloc_for(&'static self, home: u32, bytes: usize) -> Result<DeviceBuffer> {
        let of = |block, graphs| DeviceBuffer { block, bytes, context: self, home, uses: Uses::new(home), graphs, taint: Taint::default() };
        let made = |block| of(block, None);
        if bytes == 0 {
            return Ok(made(Block { pointer: 0, size: 0 }));
        }
        if home >= FIRST_CAPTURE {
            let (memory, capture) = self.alloc_captured(home, bytes)?;
            return Ok(of(memory.block, Some((memory, capture))));
        }
        if bytes >= LOOK_FROM {
            self.yield_kept_memory()?;
        }
        let taken = self.memory.pool().take(home, bytes as u64);
        match taken {
            Taken::Kept(block) => Ok(made(block)),
            Taken::Missing(size) => self.alloc_from_driver(home, bytes as u64, size).map(made),
            Taken::Refused => Err(self.out_of_memory(bytes as u64)),
        }
    }

    /// Allocates a new block of `size` bytes for a request of `bytes`, which the pool has counted.
    #[cold]
    fn alloc_from_driver(&'static self, home: u32, bytes: u64, size: u64) -> Result<Block> {
        let ask = || {
            self.bind()?;
            let beyond_limit = {
                let pool = self.memory.pool();
                pool.held > pool.limit && pool.kept > 0
            };
            if beyond_limit {
                self.trim()?; // kept blocks count towards the limit
            }
            self.with_room(|| self.alloc_raw(home, size))
        };
        ask().map(|pointer| Block { pointer, size }).map_err(|error| {
            self.memory.pool().failed(bytes, size);
            if error.is_out_of_memory() { self.out_of_memory(bytes) } else { error }
        })
    }

    /// Runs `attempt`. If the device has no memory for it, returns kept memory to the device and runs it once more.
    ///
    /// The context is current when `attempt` runs. It must have no effect when it fails.
    #[inline]
    pub(crate) fn with_room<T>(&self, attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let mut attempt = attempt;
        again_with_room(
            || {
                self.bind()?;
                attempt()
            },
            || self.trim(),
        )
    }

    /// Allocates memory from the driver. The context must be current.
    fn alloc_raw(&self, home: u32, bytes: u64) -> Result<u64> {
        let bytes = usize::try_from(bytes).map_err(|_| self.out_of_memory(bytes))?;
        let mut pointer = 0;
        let pool = self.memory.driver;
        // SAFETY: the context is current, the out-pointer valid, pool and stream belong to the context.
        let code = unsafe {
            if pool.is_null() {
                sys::cuMemAlloc_v2(&mut pointer, bytes)
            } else {
                sys::cuMemAllocFromPoolAsync(&mut pointer, bytes, pool, self.raw_stream(home))
            }
        };
        check("cuMemAllocFromPoolAsync", code).map(|()| pointer)
    }

    /// Frees blocks, each in the order of its stream.
    ///
    /// # Safety
    /// They came from [`Context::alloc_raw`], are freed only here, and no other stream uses them any more.
    unsafe fn free_raw(&self, blocks: impl IntoIterator<Item = (u32, u64)>) {
        if self.bind().is_err() {
            return;
        }
        for (stream, pointer) in blocks {
            // SAFETY: guaranteed by the caller. A failure (the context is broken, the process is ending) leaves nothing to be
            // done. `cuMemFree` waits for the work that is queued.
            unsafe {
                if self.memory.driver.is_null() {
                    sys::cuMemFree_v2(pointer);
                } else {
                    sys::cuMemFreeAsync(pointer, self.raw_stream(stream));
                }
            }
        }
    }

    #[cold]
    fn out_of_memory(&self, requested: u64) -> CudaError {
        let pool = self.memory.pool();
        CudaError::OutOfMemory { requested, used: pool.used, limit: pool.limit.min(self.info().total_memory) }
    }

    /// Waits, then returns all unused memory to the device (`free_all`).
    pub fn trim(&self) -> Result<()> {
        let waited = if self.has_several_streams() { self.wait() } else { Ok(()) };
        let blocks = {
            let mut pool = self.memory.pool();
            pool.settle();
            pool.empty()
        };
        // SAFETY: the pool's blocks came from `alloc_raw` and belong to no buffer any more; it has forgotten them.
        unsafe { self.free_raw(blocks) };
        waited.and_then(|()| self.wait())?;
        self.lent.settle();
        self.bind()?; // a source was pinned memory of another device, maybe
        if self.memory.driver.is_null() {
            return Ok(());
        }
        // SAFETY: our pool; memory in use is not touched.
        check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.memory.driver, 0) })
    }

    /// Returns kept memory to the device where other users of it have less left than is kept ([`must_yield`]). Looks at most every
    /// [`LOOK_MILLIS`].
    pub(super) fn yield_kept_memory(&self) -> Result<()> {
        if !self.memory.looks.is_due(self.memory.made.elapsed().as_millis() as u64) {
            return Ok(());
        }
        let kept = self.memory_stats()?.cached;
        if kept >= SMALL_KEPT && must_yield(kept, self.free_memory()?) {
            tracing::debug!(kept, "kept memory is returned: other users of the device have less left");
            self.trim()?;
        }
        Ok(())
    }

    /// Sets or removes the memory limit, in bytes. Buffers alive stay even if they exceed it.
    pub fn set_memory_limit(&self, limit: Option<usize>) {
        self.memory.pool().limit = most(limit);
    }

    /// Bytes that are free on the device, for every process.
    pub fn free_memory(&self) -> Result<usize> {
        self.bind()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: the context is current and both out-pointers valid.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free)
    }

    /// The counts at this moment. What the driver's pool keeps is `reserved` and `cached`, too.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        let mut reserved = 0u64;
        if !self.memory.driver.is_null() {
            self.bind()?;
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
            let out = (&raw mut reserved).cast();
            // SAFETY: this attribute gives a cuuint64_t.
            check("cuMemPoolGetAttribute", unsafe { sys::cuMemPoolGetAttribute(self.memory.driver, attribute, out) })?;
        }
        let pool = self.memory.pool();
        let reserved = reserved.max(pool.held);
        Ok(MemoryStats {
            used: pool.used as usize,
            peak: pool.peak as usize,
            reserved: reserved as usize,
            cached: (reserved - (pool.held - pool.kept)) as usize,
            limit: (pool.limit != UNLIMITED).then_some(pool.limit as usize),
            hits: pool.hits,
            misses: pool.misses,
        })
    }

    /// Fills bytes `offset..offset + count * N` with a pattern of N = 1, 2 or 4 bytes, in stream order.
    /// `offset` must be a multiple of N.
    pub fn fill<const N: usize>(&'static self, dst: &DeviceBuffer, offset: usize, pattern: [u8; N], count: usize) -> Result<()> {
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
        let stream = self.raw_stream(dst.writes()?);
        // SAFETY: the range was checked against the buffer, the address is aligned to N, the stream is of this context.
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

    /// Copies between buffers in stream order. The ranges must not overlap. Between devices, the copy is peer to peer, or
    /// through the host if there is no such path; the streams wait for each other as needed.
    pub fn copy(dst: &DeviceBuffer, dst_offset: usize, src: &DeviceBuffer, src_offset: usize, bytes: usize) -> Result<()> {
        let (to, from) = (dst.range(dst_offset, bytes)?, src.range(src_offset, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let (target, source) = (dst.context, src.context);
        source.bind()?; // the error of a lost device names that device
        src.reads()?;
        let stream = target.raw_stream(dst.writes()?);
        target.bind()?;
        if ptr::eq(target, source) {
            // SAFETY: both ranges were checked; the stream waits for their earlier users.
            let code = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
            check("cuMemcpyDtoDAsync", code)?;
            dst.copied_from(src, bytes == dst.bytes);
            return Ok(());
        }
        source.allow_peer_access(target)?;
        target.allow_peer_access(source)?;
        target.bind()?;
        let written = Event::new(source)?;
        written.record()?;
        written.make_wait(target)?;
        // SAFETY: both ranges were checked; the copy waits for the source's writers.
        let code = unsafe { sys::cuMemcpyPeerAsync(to, target.raw(), from, source.raw(), bytes, stream) };
        check("cuMemcpyPeerAsync", code)?;
        dst.copied_from(src, bytes == dst.bytes);
        // The source may be freed, and its memory reused, only after the copy (in its stream's order).
        let ordered = Event::new(target).and_then(|copied| copied.record().and_then(|()| copied.make_wait(source)));
        ordered.or_else(|_| target.wait())
    }

    /// Gives another device access to this device's memory, for peer-to-peer copies. Without such a path, copies go through
    /// the host.
    fn allow_peer_access(&self, peer: &Context) -> Result<()> {
        let mut peers = self.memory.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.contains(&peer.info().ordinal) {
            return Ok(());
        }
        let mut can = 0;
        // SAFETY: both handles come from the probe, the out-pointer is valid.
        check("cuDeviceCanAccessPeer", unsafe { sys::cuDeviceCanAccessPeer(&mut can, peer.info().handle, self.info().handle) })?;
        if can != 0 {
            let opened = match self.memory.driver.is_null() {
                false => {
                    let access = sys::CUmemAccessDesc {
                        location: sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: peer.info().handle },
                        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                    };
                    // SAFETY: the pool lives as long as the process; the description is fully set.
                    check("cuMemPoolSetAccess", unsafe { sys::cuMemPoolSetAccess(self.memory.driver, &access, 1) })
                }
                true => {
                    peer.bind()?;
                    // SAFETY: both contexts are never released.
                    check("cuCtxEnablePeerAccess", unsafe { sys::cuCtxEnablePeerAccess(self.raw(), 0) })
                }
            };
            if let Err(refused) = opened {
                tracing::debug!(%refused, "no peer-to-peer path");
            }
        }
        peers.push(peer.info().ordinal);
        Ok(())
    }

    pub(super) fn owns(&self, buffer: &DeviceBuffer) -> Result<()> {
        if ptr::eq(self, buffer.context) {
            return Ok(());
        }
        let (theirs, ours) = (buffer.context.info().ordinal, self.info().ordinal);
        Err(CudaError::Invalid(format!("the buffer lives on cuda:{theirs}, not on cuda:{ours}")))
    }
}

/// Orders a stream before its use of a block: [`Uses::read`] or [`Uses::write`].
type Wait = fn(&Uses<Arc<Mark>>, u32, &&'static Context) -> Result<()>;

/// Device memory of one context. May be dropped on any thread once the work that uses it is queued, on any stream.
#[derive(Debug)]
pub struct DeviceBuffer {
    block: Block,
    bytes: usize,
    context: &'static Context,
    /// The stream that owns the block.
    home: u32,
    uses: Uses<Arc<Mark>>,
    /// The graph's block and its capture, if the memory belongs to a graph.
    graphs: Option<(Arc<DeviceBuffer>, Arc<Capture>)>,
    /// The launches that the values depend on.
    pub(super) taint: Taint,
}

impl DeviceBuffer {
    /// Returns the device address, or 0 for an empty buffer.
    #[inline]
    pub fn pointer(&self) -> u64 {
        self.block.pointer
    }

    /// Returns the size in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True for 0 bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Announces a read by work that is queued next on this thread's stream, which waits for the last write on another
    /// stream. Returns the stream's number.
    #[inline]
    pub fn reads(&self) -> Result<u32> {
        let stream = self.context.stream_number();
        self.reads_on(stream).map(|()| stream)
    }

    #[inline]
    pub(super) fn reads_on(&self, stream: u32) -> Result<()> {
        self.ordered(stream, Uses::read)
    }

    /// Announces a write by work that is queued next on this thread's stream, which waits for all other users. No other
    /// thread may queue work on the buffer meanwhile. Not needed before the first use of a new buffer on its own stream.
    pub fn writes(&self) -> Result<u32> {
        let stream = self.context.stream_number();
        self.writes_on(stream).map(|()| stream)
    }

    pub(super) fn writes_on(&self, stream: u32) -> Result<()> {
        self.ordered(stream, Uses::write)
    }

    #[inline]
    fn ordered(&self, stream: u32, wait: Wait) -> Result<()> {
        match &self.graphs {
            None if stream < FIRST_CAPTURE && self.bytes > 0 => wait(&self.uses, stream, &self.context),
            _ => self.ordered_by_graph(stream, wait),
        }
    }

    /// Captured work is ordered within its capture only. Memory of a graph is ordered by the state of its block.
    #[cold]
    fn ordered_by_graph(&self, stream: u32, wait: Wait) -> Result<()> {
        match &self.graphs {
            Some((_, capture)) if capture.is_on(stream) => Ok(()),
            Some((memory, capture)) => capture.check().and_then(|()| memory.ordered(stream, wait)),
            None => Ok(()), // empty, or outside memory, which the launch of the graph orders
        }
    }

    /// The error word of the graph that computes the buffer's values, if a graph does.
    pub(super) fn graph_fault(&self) -> Option<&Arc<FaultCell>> {
        self.graphs.as_ref().map(|(_, capture)| &capture.fault)
    }

    /// Whether the graph that is being captured on a stream must keep the buffer alive: unless it owns the memory.
    pub(crate) fn is_kept_by(&self, stream: u32) -> bool {
        stream >= FIRST_CAPTURE && !self.graphs.as_ref().is_some_and(|(_, capture)| capture.is_on(stream))
    }

    /// Records a point after the last write.
    pub(super) fn written_at(&self, mark: &Arc<Mark>) {
        self.graphs.as_ref().map_or(self, |(memory, _)| memory).uses.written_at(mark.clone());
    }

    /// Records that the work which writes these buffers is queued on this thread's stream. A reader on another stream then
    /// waits for this work only.
    #[inline]
    pub fn written<'a>(buffers: impl IntoIterator<Item = &'a DeviceBuffer>) {
        let mut mark = None;
        for buffer in buffers.into_iter().filter(|b| b.context.has_several_streams() && b.bytes > 0) {
            if mark.is_none() {
                let stream = buffer.context.stream_number();
                if stream >= FIRST_CAPTURE {
                    return;
                }
                mark = buffer.context.mark(stream).ok();
            }
            if let Some(mark) = &mark {
                buffer.written_at(mark);
            }
        }
    }

    /// Returns the device of the buffer.
    #[inline]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// Returns the address of `offset`, if `bytes` bytes from there are in bounds.
    pub fn range(&self, offset: usize, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.block.pointer + offset as u64),
            _ => Err(CudaError::Invalid(format!("{bytes} bytes at {offset} are outside a buffer of {} bytes", self.bytes))),
        }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        if let Some((memory, capture)) = self.graphs.take() {
            return capture.put(memory);
        }
        let Self { block, home, context, .. } = *self;
        let bytes = self.bytes as u64;
        let others = self.uses.others(home);
        if others != 0 && context.memory.pool().keeps() {
            // Marking fails only in a broken context, whose memory is never used again.
            if let Ok(fences) = numbers(others).map(|stream| context.mark(stream)).collect() {
                context.memory.pool().put_behind(home, block, bytes, fences);
            }
            return;
        }
        if others != 0 && context.wait_behind(home, others).is_err() {
            return;
        }
        let full = {
            let mut pool = context.memory.pool();
            if pool.put(home, block, bytes) { None } else { Some(pool.empty()) }
        };
        if let Some(blocks) = full {
            // SAFETY: the pool has released these blocks and no buffer owns them. The block's stream waits for all other
            // streams that used it.
            unsafe { context.free_raw(blocks.into_iter().chain([(home, block.pointer)])) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::driver::sys::CUresult;

    fn failure(code: u32) -> CudaError {
        CudaError::Driver { call: "cuModuleLoadData", code, name: String::new() }
    }

    #[test]
    fn an_attempt_without_memory_is_made_once_more() {
        let run = |failures: u32, code: u32| {
            let (attempts, trims) = (Cell::new(0), Cell::new(0));
            let attempt = || {
                attempts.set(attempts.get() + 1);
                if attempts.get() <= failures { Err(failure(code)) } else { Ok(attempts.get()) }
            };
            let done = again_with_room(attempt, || {
                trims.set(trims.get() + 1);
                Ok(())
            });
            (done.ok(), attempts.get(), trims.get())
        };
        let full = CUresult::CUDA_ERROR_OUT_OF_MEMORY.0;
        assert_eq!(run(0, full), (Some(1), 1, 0));
        assert_eq!(run(1, full), (Some(2), 2, 1));
        assert_eq!(run(9, full), (None, 2, 1), "a single retry");
        assert_eq!(run(9, 1), (None, 1, 0), "other errors are not retried");
        let unable = again_with_room(|| Err::<(), _>(failure(full)), || Err(failure(700)));
        assert!(matches!(unable, Err(CudaError::Driver { code: 700, .. })));
    }

    #[test]
    fn kept_memory_is_no_more_than_others_have_left() {
        let gib = 1 << 30;
        assert!(must_yield(8 * gib, 4 * gib) && must_yield(8 * gib, 0));
        assert!(!must_yield(8 * gib, 8 * gib) && !must_yield(SMALL_KEPT - 1, 0));
    }

    #[test]
    fn looks_are_rare_and_by_one_thread() {
        let looks = Looks::default();
        assert!(looks.is_due(0) && !looks.is_due(0) && !looks.is_due(LOOK_MILLIS - 1));
        assert!(looks.is_due(LOOK_MILLIS) && !looks.is_due(LOOK_MILLIS + 1));
        assert!(looks.is_due(100 * LOOK_MILLIS));
    }
}
