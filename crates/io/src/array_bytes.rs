//! Arrays from host bytes, and the bytes of arrays in blocks of bounded size.

use std::sync::Arc;

use cuprum_core::device::driver;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Array, DType, Device, Item, Layout, NdArray, Result, StoredArray};

/// Size in bytes of the blocks in which a host array that is not contiguous is copied to contiguous memory. A block fits into the
/// second-level cache.
const HOST_BLOCK_BYTES: usize = 256 << 10;
/// Size in bytes of the blocks in which an array on another device is copied to the host.
const DEVICE_BLOCK_BYTES: usize = 8 << 20;
/// Maximum size in bytes of the pieces of a contiguous host array that [`for_each_byte_block`] passes to `f`. The limit makes progress
/// visible.
const MAX_HOST_PIECE_BYTES: usize = 16 << 20;

/// Returns an array over `host`, which holds the elements in C order. The array is copied to the current device unless that device is the
/// host.
pub(crate) fn array_from_host_buffer(dtype: DType, shape: &[usize], host: HostBuffer) -> Result<NdArray> {
    NdArray::from(StoredArray::new(dtype, Layout::contiguous(shape)?, Arc::new(host))?).to_device(Device::current()?)
}

/// Calls `f` with the bytes of the elements in C order, block by block. Waits for the device.
///
/// The memory in use rises by at most one block. The bytes of bool elements are 0 or 1.
pub(crate) fn for_each_byte_block(array: &NdArray, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let stored = array.stored()?;
    let (layout, item) = (stored.layout(), array.dtype().itemsize());
    if layout.is_c_contiguous() {
        let (start, nbytes) = (layout.offset() * item, array.nbytes());
        return match stored.buffer().as_any().downcast_ref::<HostBuffer>() {
            Some(host) => host.as_bytes().get(start..start + nbytes).unwrap_or_default().chunks(MAX_HOST_PIECE_BYTES).try_for_each(f),
            None => for_each_downloaded_block(&stored, start, nbytes, f),
        };
    }
    let block = if array.device() == Device::CPU { HOST_BLOCK_BYTES } else { DEVICE_BLOCK_BYTES };
    let Some(&rows) = array.shape().first().filter(|_| array.nbytes() > block) else {
        return for_each_byte_block(&array.contiguous()?, f);
    };
    let row = array.nbytes() / rows;
    if row > block {
        return (0..rows).try_for_each(|i| for_each_byte_block(&array.index(&[Item::from(i)])?, f));
    }
    let step = block / row;
    (0..rows).step_by(step).try_for_each(|i| {
        let part = array.index(&[Item::from(i..rows.min(i + step))])?;
        for_each_byte_block(&part.contiguous()?, f)
    })
}

/// Copies `nbytes` of the buffer of `stored`, from byte `start`, to the host in blocks, and calls `f` with each block.
fn for_each_downloaded_block(stored: &StoredArray, start: usize, nbytes: usize, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let driver = driver(stored.device())?;
    let mut host = HostBuffer::uninit(nbytes.min(DEVICE_BLOCK_BYTES))?;
    for done in (0..nbytes).step_by(DEVICE_BLOCK_BYTES) {
        let block = &mut host.as_mut_bytes()?[..DEVICE_BLOCK_BYTES.min(nbytes - done)];
        driver.download(stored.buffer().as_ref(), start + done, block)?;
        if stored.dtype() == DType::Bool {
            normalize_bools(block);
        }
        f(block)?;
    }
    Ok(())
}

/// Replaces every nonzero byte by 1.
pub(crate) fn normalize_bools(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
}
