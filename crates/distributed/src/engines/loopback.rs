//! Engine `loopback`: all ranks belong to this process, and devices copy to each other.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cuprum_core::{DType, Device, NdArray, Result, Stream};

use super::{Engine, Piece, Transfer};

/// Name of the engine.
pub(super) const NAME: &str = "loopback";

/// Copies between the devices of one process.
pub(crate) struct Loopback;

impl Engine for Loopback {
    fn name(&self) -> &'static str {
        NAME
    }

    fn exchange(&self, members: &[Device], _dtype: DType, transfers: &[Transfer], piece: Piece) -> Result<Vec<(usize, NdArray)>> {
        let copy = |(n, transfer): (usize, &Transfer)| {
            let (piece, receiver) = (piece(n)?, members[transfer.to]);
            Ok((n, copy_to_device(&piece, receiver)?))
        };
        transfers.iter().enumerate().map(copy).collect()
    }
}

/// The streams for copies from one device to another: one on the sender, one on the receiver.
type CopyStreams = (Stream, Stream);

/// Copies an array to another device.
///
/// Each pair of sender and receiver has streams of its own. On the devices' current streams, a copy would wait for earlier copies in the
/// other direction.
fn copy_to_device(array: &NdArray, receiver: Device) -> Result<NdArray> {
    let sender = array.device();
    if sender == receiver {
        return Ok(array.clone());
    }
    // A graph cannot capture the copy. On the current streams, it is an error.
    if Stream::current(sender).is_capturing() || Stream::current(receiver).is_capturing() {
        return array.to_device(receiver);
    }
    let (sending, receiving) = streams_for(sender, receiver)?;
    sending.scope(|| receiving.scope(|| array.to_device(receiver)?.eval().cloned()))
}

/// Returns the streams for copies from `sender` to `receiver`. The first call for a pair creates them.
fn streams_for(sender: Device, receiver: Device) -> Result<CopyStreams> {
    static STREAMS: Mutex<Option<HashMap<(Device, Device), CopyStreams>>> = Mutex::new(None);
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let streams = streams.get_or_insert_default();
    if let Some(pair) = streams.get(&(sender, receiver)) {
        return Ok(*pair);
    }
    let pair = (Stream::new(sender)?, Stream::new(receiver)?);
    streams.insert((sender, receiver), pair);
    Ok(pair)
}
