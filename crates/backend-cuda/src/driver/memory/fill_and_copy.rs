//! Fills of device memory, and copies between buffers of the same device or of two devices.

use std::ptr;
use std::sync::PoisonError;

use super::buffer::DeviceBuffer;
use crate::driver::event::Event;
use crate::driver::primary_context::check_result;
use crate::driver::{Context, sys};
use crate::error::{CudaError, Result};

impl Context {
    /// Fills `count * N` bytes of `dst` from byte `offset` with a `pattern` of N = 1, 2 or 4 bytes, in stream order.
    /// `offset` must be a multiple of N.
    pub fn fill<const N: usize>(&'static self, dst: &DeviceBuffer, offset: usize, pattern: [u8; N], count: usize) -> Result<()> {
        let bytes = count.checked_mul(N).ok_or_else(|| CudaError::Invalid("the fill is too large".into()))?;
        let to = dst.checked_address(offset, bytes)?;
        self.check_buffer_context(dst)?;
        if N == 0 || to % N as u64 != 0 {
            return Err(CudaError::Invalid(format!("offset {offset} is not a multiple of the pattern's {N} bytes")));
        }
        if bytes == 0 {
            return Ok(());
        }
        self.make_current()?;
        let stream = self.raw_stream(dst.prepare_write()?);
        // SAFETY: the range was checked against `dst`, the address is aligned to N, and the stream is of this context.
        let code = unsafe {
            match *pattern.as_slice() {
                [a] => sys::cuMemsetD8Async(to, a, count, stream),
                [a, b] => sys::cuMemsetD16Async(to, u16::from_ne_bytes([a, b]), count, stream),
                [a, b, c, d] => sys::cuMemsetD32Async(to, u32::from_ne_bytes([a, b, c, d]), count, stream),
                _ => return Err(CudaError::Invalid(format!("a fill pattern has 1, 2 or 4 bytes, not {N}"))),
            }
        };
        check_result("cuMemsetAsync", code)
    }

    /// Copies `bytes` bytes from `src` to `dst` in stream order. The ranges must not overlap. A copy between two devices goes peer to peer,
    /// or through the host if the devices have no peer-to-peer path. The streams of both buffers wait for each other as needed.
    pub fn copy(dst: &DeviceBuffer, dst_offset: usize, src: &DeviceBuffer, src_offset: usize, bytes: usize) -> Result<()> {
        let (to, from) = (dst.checked_address(dst_offset, bytes)?, src.checked_address(src_offset, bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        let (target, source) = (dst.context(), src.context());
        source.make_current()?; // first, so that the error of a lost source device names that device
        src.prepare_read()?;
        let stream = target.raw_stream(dst.prepare_write()?);
        target.make_current()?;
        if ptr::eq(target, source) {
            // SAFETY: both ranges were checked against their buffers, and the stream waits for earlier users of both.
            let code = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
            check_result("cuMemcpyDtoDAsync", code)?;
            dst.record_copy_from(src, bytes == dst.len());
            return Ok(());
        }
        source.allow_peer_access(target)?;
        target.allow_peer_access(source)?;
        target.make_current()?;
        let written = Event::new(source)?;
        written.record()?;
        written.make_current_stream_wait(target)?;
        // SAFETY: both ranges were checked against their buffers, and the stream waits for work that writes the source.
        let code = unsafe { sys::cuMemcpyPeerAsync(to, target.raw(), from, source.raw(), bytes, stream) };
        check_result("cuMemcpyPeerAsync", code)?;
        dst.record_copy_from(src, bytes == dst.len());
        DeviceBuffer::record_queued_writes([dst]); // so that readers do not wait for later copies on the stream
        // The source's stream waits for the copy, because later work on that stream may reuse the memory of `src` once `src` is freed.
        let ordered = Event::new(target).and_then(|copied| copied.record().and_then(|()| copied.make_current_stream_wait(source)));
        ordered.or_else(|_| target.wait_for_all_streams())
    }

    /// Gives the device `peer` access to this device's memory, for peer-to-peer copies. Does nothing if the hardware has no peer-to-peer
    /// path.
    fn allow_peer_access(&self, peer: &Context) -> Result<()> {
        let mut peers = self.memory.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.contains(&peer.info().ordinal) {
            return Ok(());
        }
        let mut can = 0;
        // SAFETY: both device handles come from the probe, and the out-pointer `can` is a local.
        check_result("cuDeviceCanAccessPeer", unsafe { sys::cuDeviceCanAccessPeer(&mut can, peer.info().handle, self.info().handle) })?;
        if can != 0 {
            let opened = match self.memory.driver_pool.is_null() {
                false => {
                    let access = sys::CUmemAccessDesc {
                        location: sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: peer.info().handle },
                        flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                    };
                    // SAFETY: the driver pool lives as long as the process, and `access` is fully initialised.
                    check_result("cuMemPoolSetAccess", unsafe { sys::cuMemPoolSetAccess(self.memory.driver_pool, &access, 1) })
                }
                true => {
                    peer.set_current()?;
                    // SAFETY: neither context is ever released, and the context of `peer` is current.
                    check_result("cuCtxEnablePeerAccess", unsafe { sys::cuCtxEnablePeerAccess(self.raw(), 0) })
                }
            };
            if let Err(refused) = opened {
                tracing::debug!(%refused, "no peer-to-peer path");
            }
        }
        peers.push(peer.info().ordinal);
        Ok(())
    }

    pub(in crate::driver) fn check_buffer_context(&self, buffer: &DeviceBuffer) -> Result<()> {
        if ptr::eq(self, buffer.context()) {
            return Ok(());
        }
        let (theirs, ours) = (buffer.context().info().ordinal, self.info().ordinal);
        Err(CudaError::Invalid(format!("the buffer lives on cuda:{theirs}, not on cuda:{ours}")))
    }
}
