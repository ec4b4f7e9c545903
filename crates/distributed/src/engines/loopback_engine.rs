//! Communication engine `loopback`: all ranks belong to this process, and pieces are copied between their devices.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cuprum_core::profiler::trace;
use cuprum_core::{DType, Device, NdArray, Result, Stream};

use super::{Engine, PieceEndpoint, Transfer};

/// Name of the engine.
pub(super) const LOOPBACK_ENGINE_NAME: &str = "loopback";

/// Maximum size of a transfer, in bytes. At this size, a copy between two GPUs over NVLink takes longer than the calls that start the copy.
const MAX_TRANSFER_BYTES: usize = 128 << 20;

/// The communication engine that copies between the devices of one process.
pub(crate) struct LoopbackEngine;

impl Engine for LoopbackEngine {
    fn name(&self) -> &'static str {
        LOOPBACK_ENGINE_NAME
    }

    fn max_transfer_bytes(&self) -> usize {
        MAX_TRANSFER_BYTES
    }

    fn perform_transfers(&self, members: &[Device], _dtype: DType, transfers: &[Transfer], pieces: &mut dyn PieceEndpoint) -> Result<()> {
        // All copies are queued before the first received piece is processed. Otherwise a device could not send its next piece before it
        // has received the current one.
        let mut copies = Vec::new();
        for (n, transfer) in transfers.iter().enumerate() {
            copies.push((n, trace::with_rank(transfer.from, || copy_to_device(&pieces.piece_to_send(n)?, members[transfer.to]))?));
        }
        pieces.on_all_sent()?;
        copies.into_iter().try_for_each(|(n, copy)| pieces.on_received(n, copy))
    }
}

/// The streams for copies from one device to another: one on the sender, one on the receiver.
type CopyStreams = (Stream, Stream);

/// Copies `array` to the device `receiver`. An array that is already on this device is returned unchanged.
///
/// Each pair of sender and receiver has its own streams. On the devices' current streams, a copy would wait for earlier copies from
/// `receiver` to the sender.
fn copy_to_device(array: &NdArray, receiver: Device) -> Result<NdArray> {
    let sender = array.device();
    if sender == receiver {
        return Ok(array.clone());
    }
    // The copy of a strided view to a contiguous array runs on the current stream, so that no transfer of an earlier piece delays this
    // copy.
    let array = array.contiguous()?;
    // A CUDA graph cannot capture a copy between devices. While a stream is being captured, the copy is queued on that stream, so that it
    // fails with this reason.
    if Stream::current(sender).is_capturing() || Stream::current(receiver).is_capturing() {
        return array.to_device(receiver);
    }
    let (sending, receiving) = copy_streams_for(sender, receiver)?;
    sending.scope(|| receiving.scope(|| array.to_device(receiver)?.eval().cloned()))
}

/// Returns the streams for copies from `sender` to `receiver`. The first call for a pair creates them.
fn copy_streams_for(sender: Device, receiver: Device) -> Result<CopyStreams> {
    static COPY_STREAMS: Mutex<Option<HashMap<(Device, Device), CopyStreams>>> = Mutex::new(None);
    let mut streams = COPY_STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let streams = streams.get_or_insert_default();
    if let Some(pair) = streams.get(&(sender, receiver)) {
        return Ok(*pair);
    }
    let pair = (Stream::new(sender)?, Stream::new(receiver)?);
    streams.insert((sender, receiver), pair);
    Ok(pair)
}
