//! Copies between pageable host memory and the device through reusable pinned blocks.
//!
//! Only pinned memory transfers at full speed and asynchronously. Large copies are split into chunks. Several threads move
//! chunks, each with two blocks, since one core's memcpy is slower than the bus. Small uploads use a ring buffer and rarely
//! wait.
//!
//! An upload returns when the source has been read, so the caller may reuse it. A download returns with the data.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::event::Event;
use super::memory::DeviceBuffer;
use super::per_device::PerDevice;
use super::primary::check;
use super::stream_table::MAX_STREAMS;
use super::{Context, sys};
use crate::error::{CudaError, Result};

/// Maximum size of copies through small blocks, in bytes.
const SMALL: usize = 64 << 10;
/// Size of one half of the upload ring, in bytes.
const RING_HALF: usize = 256 << 10;
/// Chunk size of a large copy, in bytes. With 8 workers, 1 and 2 MiB reach 46 of the 55 GB/s of pinned memory.
const CHUNK: usize = 1 << 20;
/// Number of threads of a large copy, including the caller. More do not help.
const WORKERS: usize = 8;
/// Minimum number of chunks for a parallel copy.
const PARALLEL_FROM: usize = 4;

static STAGING: PerDevice<Staging> = PerDevice::new();

/// The pinned blocks of one context.
struct Staging {
    chunks: Mutex<Vec<Pinned>>,
    small: Mutex<Vec<Pinned>>,
    /// Upload rings by stream.
    rings: [Mutex<Option<Ring>>; MAX_STREAMS],
}

impl Default for Staging {
    fn default() -> Self {
        Staging { chunks: Mutex::default(), small: Mutex::default(), rings: std::array::from_fn(|_| Mutex::default()) }
    }
}

/// A pinned block. Never freed: it returns to its list.
struct Pinned {
    memory: *mut u8,
    /// Recorded after the last transfer through the block.
    done: Event,
    in_flight: bool,
}

// SAFETY: the holder of the value owns the block; any thread may access pinned memory.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(context: &'static Context, bytes: usize) -> Result<Pinned> {
        let done = Event::new(context)?;
        let mut memory: *mut c_void = ptr::null_mut();
        // SAFETY: the context is current (made so by `Event::new`) and the out-pointer valid.
        let code = unsafe { sys::cuMemHostAlloc(&mut memory, bytes, sys::CU_MEMHOSTALLOC_PORTABLE) };
        check("cuMemHostAlloc", code)?;
        Ok(Pinned { memory: memory.cast(), done, in_flight: false })
    }

    /// Waits for the last transfer through this block.
    fn wait(&mut self) -> Result<()> {
        if self.in_flight {
            self.done.synchronize()?;
            self.in_flight = false;
        }
        Ok(())
    }

    fn mark(&mut self, stream: u32) -> Result<()> {
        self.in_flight = true;
        self.done.record_on(stream)
    }
}

/// A ring of two halves: small uploads fill one while the transfers of the other end.
struct Ring {
    halves: [Pinned; 2],
    current: usize,
    used: usize,
}

/// A destination shared by the workers of one copy, which write disjoint chunks.
struct Target(*mut u8);

// SAFETY: workers write disjoint ranges while the caller's exclusive borrow lasts.
unsafe impl Sync for Target {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// Copies host bytes to a buffer. Returns when `src` has been read, which may be before the transfer ends.
    pub fn copy_to_device(&'static self, dst: &DeviceBuffer, offset: usize, src: &[u8]) -> Result<()> {
        let to = dst.range(offset, src.len())?;
        self.owns(dst)?;
        self.bind()?;
        if src.is_empty() {
            return Ok(());
        }
        self.not_capturing("a copy from the host to an array that is there")?;
        let stream = dst.writes()?;
        if src.len() <= SMALL {
            self.upload_small(stream, to, src)?;
        } else {
            let next = AtomicUsize::new(0);
            self.in_parallel(src.len().div_ceil(CHUNK), || self.upload_chunks(stream, to, src, &next))?;
        }
        DeviceBuffer::written([dst]);
        Ok(())
    }

    /// Copies a buffer's bytes to the host. Waits for them and all work queued before, and reports its errors, including
    /// faults of kernels.
    pub fn copy_to_host(&'static self, dst: &mut [u8], src: &DeviceBuffer, offset: usize) -> Result<()> {
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and the copy writes initialised bytes only.
        let dst = unsafe { &mut *(ptr::from_mut(dst) as *mut [MaybeUninit<u8>]) };
        self.copy_to_host_uninit(dst, src, offset)
    }

    /// [`Context::copy_to_host`] into uninitialised memory. On `Ok`, all of it is initialised.
    pub fn copy_to_host_uninit(&'static self, dst: &mut [MaybeUninit<u8>], src: &DeviceBuffer, offset: usize) -> Result<()> {
        let from = src.range(offset, dst.len())?;
        self.owns(src)?;
        self.not_capturing("reading an array's values, or the size of a result that is found by computing,")?;
        self.bind()?;
        let stream = src.reads()?;
        match dst.len() {
            0 => self.wait_for(stream)?,
            1..=SMALL => self.download_small(stream, dst, from)?,
            bytes => {
                let (next, target) = (AtomicUsize::new(0), Target(dst.as_mut_ptr().cast()));
                self.in_parallel(bytes.div_ceil(CHUNK), || self.download_chunks(stream, &target, from, bytes, &next))?;
            }
        }
        self.report_faults(|number| number == stream)?;
        src.check_faults()
    }

    fn upload_small(&'static self, stream: u32, to: u64, src: &[u8]) -> Result<()> {
        let Some(ring) = STAGING.get(self).rings.get(stream as usize) else {
            return Err(CudaError::Invalid(format!("there is no stream {stream}")));
        };
        let mut guard = lock(ring);
        if guard.is_none() {
            let halves = [Pinned::new(self, RING_HALF)?, Pinned::new(self, RING_HALF)?];
            *guard = Some(Ring { halves, current: 0, used: 0 });
        }
        let Some(ring) = guard.as_mut() else { return Ok(()) };
        if ring.used + src.len() > RING_HALF {
            ring.halves[ring.current].mark(stream)?;
            ring.current ^= 1;
            ring.used = 0;
            ring.halves[ring.current].wait()?;
        }
        // SAFETY: `used + len <= RING_HALF`. No transfer in flight reads this part: the half was waited for when it became
        // current, and `used` only grows since.
        unsafe {
            let block = ring.halves[ring.current].memory.add(ring.used);
            ptr::copy_nonoverlapping(src.as_ptr(), block, src.len());
            check("cuMemcpyHtoDAsync", sys::cuMemcpyHtoDAsync_v2(to, block.cast(), src.len(), self.raw_stream(stream)))?;
        }
        ring.used = (ring.used + src.len()).next_multiple_of(64);
        Ok(())
    }

    fn download_small(&'static self, stream: u32, dst: &mut [MaybeUninit<u8>], from: u64) -> Result<()> {
        let popped = lock(&STAGING.get(self).small).pop();
        let block = match popped {
            Some(block) => block,
            None => Pinned::new(self, SMALL)?,
        };
        // SAFETY: this call owns the block, which has SMALL bytes; the source range was checked. After a failed wait the
        // block is not reused, since the transfer may still write to it.
        unsafe {
            let code = sys::cuMemcpyDtoHAsync_v2(block.memory.cast(), from, dst.len(), self.raw_stream(stream));
            check("cuMemcpyDtoHAsync", code)?;
            self.wait_for(stream)?;
            ptr::copy_nonoverlapping(block.memory, dst.as_mut_ptr().cast(), dst.len());
        }
        lock(&STAGING.get(self).small).push(block);
        Ok(())
    }

    fn upload_chunks(&'static self, stream: u32, to: u64, src: &[u8], next: &AtomicUsize) -> Result<()> {
        self.with_two_blocks(|blocks| {
            for turn in 0.. {
                let start = next.fetch_add(1, Ordering::Relaxed) * CHUNK;
                let Some(rest) = src.get(start..).filter(|r| !r.is_empty()) else { break };
                let part = &rest[..rest.len().min(CHUNK)];
                let block = &mut blocks[turn % 2];
                block.wait()?;
                // SAFETY: this worker owns the block, which has CHUNK bytes and no transfer in flight. The destination range
                // is inside the checked one.
                let code = unsafe {
                    ptr::copy_nonoverlapping(part.as_ptr(), block.memory, part.len());
                    sys::cuMemcpyHtoDAsync_v2(to + start as u64, block.memory.cast(), part.len(), self.raw_stream(stream))
                };
                check("cuMemcpyHtoDAsync", code)?;
                block.mark(stream)?;
            }
            Ok(())
        })
    }

    fn download_chunks(&'static self, stream: u32, dst: &Target, from: u64, bytes: usize, next: &AtomicUsize) -> Result<()> {
        self.with_two_blocks(|blocks| {
            let mut waiting: Option<usize> = None;
            for turn in 0.. {
                let start = next.fetch_add(1, Ordering::Relaxed) * CHUNK;
                let more = start < bytes;
                if more {
                    let block = &mut blocks[turn % 2];
                    block.wait()?;
                    // SAFETY: this worker owns the block, which has CHUNK bytes and no transfer in flight. The source range
                    // was checked.
                    let code = unsafe {
                        let len = CHUNK.min(bytes - start);
                        sys::cuMemcpyDtoHAsync_v2(block.memory.cast(), from + start as u64, len, self.raw_stream(stream))
                    };
                    check("cuMemcpyDtoHAsync", code)?;
                    block.mark(stream)?;
                }
                if let Some(start) = waiting.take() {
                    let block = &mut blocks[(turn + 1) % 2];
                    block.wait()?;
                    // SAFETY: only this worker took the chunk at `start`, which is inside `bytes`; the transfer into the
                    // block has ended.
                    unsafe { ptr::copy_nonoverlapping(block.memory, dst.0.add(start), CHUNK.min(bytes - start)) };
                }
                if !more {
                    break;
                }
                waiting = Some(start);
            }
            Ok(())
        })
    }

    fn with_two_blocks(&'static self, work: impl FnOnce(&mut [Pinned; 2]) -> Result<()>) -> Result<()> {
        let take = || {
            let popped = lock(&STAGING.get(self).chunks).pop();
            popped.map_or_else(|| Pinned::new(self, CHUNK), Ok)
        };
        self.bind()?; // this may be a worker thread
        let mut blocks = [take()?, take()?];
        let result = work(&mut blocks);
        // Blocks in transfer are returned too: the next user waits for them.
        lock(&STAGING.get(self).chunks).extend(blocks);
        result
    }

    /// Runs `work` on the calling thread, and on worker threads if there are enough chunks.
    fn in_parallel(&self, chunks: usize, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let helpers = if chunks < PARALLEL_FROM { 0 } else { WORKERS.min(cores).min(chunks / 2).saturating_sub(1) };
        if helpers == 0 {
            return work();
        }
        std::thread::scope(|scope| {
            // If a thread cannot be spawned, fewer workers run.
            let spawn = |_| std::thread::Builder::new().name("cuprum-copy".into()).spawn_scoped(scope, &work).ok();
            let threads: Vec<_> = (0..helpers).filter_map(spawn).collect();
            let mut result = work();
            for thread in threads {
                let ended = thread.join().unwrap_or_else(|_| Err(CudaError::Invalid("a copy thread panicked".into())));
                result = result.and(ended);
            }
            result
        })
    }
}
