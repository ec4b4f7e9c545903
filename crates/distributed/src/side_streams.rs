//! Side streams of devices, for work that overlaps with work queued earlier on the current streams.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cuprum_core::{Device, Result, Stream};

use crate::mesh::Mesh;

/// Runs `f` with a side stream of each GPU of the mesh as the device's current stream. Work that `f` queues waits for the arrays that it
/// reads, but not for other work on the current streams.
///
/// Runs `f` on the current streams if the mesh has several processes or one device, or during a graph capture. A communication library
/// may order its exchanges by stream, and one device has no transfer to wait for.
pub(crate) fn run_on_side_streams<R>(mesh: Mesh, mut f: impl FnMut() -> Result<R>) -> Result<R> {
    let devices = mesh.local_devices();
    let is_one_device = devices.iter().all(|device| *device == devices[0]);
    let is_capturing = || devices.iter().any(|device| Stream::current(*device).is_capturing());
    if devices.len() < mesh.size() || is_one_device || is_capturing() {
        return f();
    }
    let streams = devices.iter().filter(|device| **device != Device::CPU).map(|device| side_stream_of(*device));
    with_current_streams(&streams.collect::<Result<Vec<_>>>()?, &mut f)
}

fn with_current_streams<R>(streams: &[Stream], f: &mut dyn FnMut() -> R) -> R {
    match streams {
        [] => f(),
        [first, rest @ ..] => first.scope(|| with_current_streams(rest, f)),
    }
}

/// Returns the side stream of a device. The first call for a device creates it.
fn side_stream_of(device: Device) -> Result<Stream> {
    static SIDE_STREAMS: Mutex<Option<HashMap<Device, Stream>>> = Mutex::new(None);
    let mut streams = SIDE_STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let streams = streams.get_or_insert_default();
    if let Some(stream) = streams.get(&device) {
        return Ok(*stream);
    }
    let stream = Stream::new(device)?;
    streams.insert(device, stream);
    Ok(stream)
}
