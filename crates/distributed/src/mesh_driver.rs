//! The driver of meshes: copies between the host and all ranks, and waiting for the ranks' devices.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::device::{Buffer, DeviceDriver, DeviceEvent, DeviceInfo, driver};
use cuprum_core::{DType, Device, Error, Layout, MemoryStats, Result, StoredArray, Stream, full};

use crate::mesh::Mesh;
use crate::placement::ArrayDistribution;
use crate::redistribute::{all_gather, gather_on_leaders};
use crate::sharded_buffer::{ShardedBuffer, sharded_array_from_parts};

/// The device driver of one mesh. A mesh has only stream 0; work runs on the current streams of the ranks' devices.
pub(crate) struct MeshDriver(Mesh);

impl MeshDriver {
    /// Returns the driver of a mesh.
    pub fn open_mesh_driver(device: Device) -> Result<Box<dyn DeviceDriver>> {
        Ok(Box::new(MeshDriver(Mesh::of_device(device)?)))
    }

    /// Returns a buffer of `nbytes` bytes that every rank holds. Ranks on the same device share one allocation.
    fn make_replicated_buffer(&self, nbytes: usize, make: impl Fn(Device) -> Result<Arc<dyn Buffer>>) -> Result<Arc<dyn Buffer>> {
        let mesh = self.0;
        mesh.engine().check_for_failure()?;
        let layout = Layout::contiguous(&[nbytes])?;
        let mut parts: Vec<StoredArray> = Vec::new();
        for (local, member) in mesh.local_devices().iter().enumerate() {
            let part = match parts.get(mesh.device_leader_of(local)) {
                Some(part) => part.clone(),
                None => StoredArray::new(DType::U8, layout.clone(), make(*member)?)?,
            };
            parts.push(part);
        }
        Ok(sharded_array_from_parts(mesh, DType::U8, layout, ArrayDistribution::new_replicated(mesh, &[nbytes]), parts)?.buffer().clone())
    }
}

/// Returns the devices of the ranks of this process, each device once.
fn distinct_devices(mesh: Mesh) -> impl Iterator<Item = Device> {
    let members = mesh.local_devices();
    members.iter().enumerate().filter(|(n, member)| !members[..*n].contains(member)).map(|(_, member)| *member)
}

/// Waits for the devices of all ranks and discards their asynchronous faults. Called before an error is returned to the user. Ranks that
/// run the same operation may all find the same fault, and the error of one rank reports it. A fault that is not discarded would be
/// reported again by a later operation.
pub(crate) fn discard_device_faults(mesh: Mesh) {
    for driver in distinct_devices(mesh).filter_map(|member| driver(member).ok()) {
        let _ = driver.synchronize();
    }
}

impl DeviceDriver for MeshDriver {
    fn allocate(&self, nbytes: usize, _stream: Stream) -> Result<Arc<dyn Buffer>> {
        self.make_replicated_buffer(nbytes, |member| driver(member)?.allocate(nbytes, Stream::current(member)))
    }

    fn upload(&self, bytes: &[u8], _stream: Stream) -> Result<Arc<dyn Buffer>> {
        self.make_replicated_buffer(bytes.len(), |member| driver(member)?.upload(bytes, Stream::current(member)))
    }

    fn download(&self, buffer: &dyn Buffer, byte_offset: usize, out: &mut [u8]) -> Result<()> {
        let buffer: &ShardedBuffer =
            buffer.as_any().downcast_ref().ok_or_else(|| Error::value("download", "the buffer is not on a mesh"))?;
        if byte_offset.checked_add(out.len()).is_none_or(|end| end > buffer.nbytes()) {
            return Err(Error::value("download", "range outside the buffer"));
        }
        let whole = gather_on_leaders(buffer)?;
        let whole = whole.iter().flatten().next().ok_or_else(|| Error::value("download", "no rank holds the whole array"))?;
        let downloaded = driver(whole.buffer().device())?.download(whole.buffer().as_ref(), byte_offset, out);
        downloaded.inspect_err(|_| discard_device_faults(self.0))?;
        // A failure of the mesh aborts queued exchanges. The downloaded values may then be undefined.
        self.0.engine().check_for_failure()
    }

    fn synchronize(&self) -> Result<()> {
        let synchronized = distinct_devices(self.0).try_for_each(|member| driver(member)?.synchronize());
        synchronized.inspect_err(|_| discard_device_faults(self.0))?;
        self.0.engine().check_for_failure()
    }

    fn is_true_in_all_processes(&self, flag: bool) -> Result<bool> {
        let mesh = self.0;
        if mesh.local_devices().len() == mesh.size() {
            return Ok(flag);
        }
        let part = |local: usize| mesh.with_rank_device(local, || full(1, i64::from(flag), DType::I64)?.stored());
        let parts = (0..mesh.local_devices().len()).map(part).collect::<Result<Vec<_>>>()?;
        let flags = all_gather(mesh, DType::I64, 1, parts)?.to_vec::<i64>()?;
        Ok(flags.iter().all(|flag| *flag != 0))
    }

    fn record_event(&self, _stream: Stream) -> Result<Box<dyn DeviceEvent>> {
        let record = |member: Device| driver(member)?.record_event(Stream::current(member));
        Ok(Box::new(MeshEvent(distinct_devices(self.0).map(record).collect::<Result<_>>()?)))
    }

    fn info(&self) -> DeviceInfo {
        let mesh = self.0;
        let info: Vec<DeviceInfo> = distinct_devices(mesh).filter_map(|member| driver(member).ok().map(|driver| driver.info())).collect();
        DeviceInfo {
            name: format!("mesh of shape {:?} over {}", mesh.shape(), mesh.engine_name()),
            units: info.iter().map(|i| i.units).sum(),
            memory_total: info.iter().map(|i| i.memory_total).sum(),
            memory_used: info.iter().map(|i| i.memory_used).sum(),
            details: vec![
                ("ranks", mesh.size().to_string()),
                ("local ranks", format!("{:?}", mesh.local_ranks())),
                ("mesh", format!("{mesh:?}")),
            ],
        }
    }

    fn memory_stats(&self) -> Result<MemoryStats> {
        let mut total = MemoryStats::default();
        for member in distinct_devices(self.0) {
            let stats = driver(member)?.memory_stats()?;
            total = MemoryStats {
                used: total.used + stats.used,
                peak: total.peak + stats.peak,
                reserved: total.reserved + stats.reserved,
                cached: total.cached + stats.cached,
                limit: None,
                hits: total.hits + stats.hits,
                misses: total.misses + stats.misses,
            };
        }
        Ok(total)
    }

    fn reset_peak_memory(&self) -> Result<()> {
        distinct_devices(self.0).try_for_each(|member| driver(member)?.reset_peak_memory())
    }

    fn free_cached_memory(&self) -> Result<()> {
        distinct_devices(self.0).try_for_each(|member| driver(member)?.free_cached_memory())
    }
}

/// An event on every device of the ranks of this process.
struct MeshEvent(Vec<Box<dyn DeviceEvent>>);

impl DeviceEvent for MeshEvent {
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64> {
        let earlier: &MeshEvent = earlier.as_any().downcast_ref().ok_or_else(|| Error::value("event", "events of different devices"))?;
        let mut longest = 0.0f64;
        for (later, earlier) in self.0.iter().zip(&earlier.0) {
            longest = longest.max(later.millis_since(earlier.as_ref())?);
        }
        Ok(longest)
    }
    fn synchronize(&self) -> Result<()> {
        self.0.iter().try_for_each(|event| event.synchronize())
    }
    fn is_reached(&self) -> Result<bool> {
        let mut reached = true;
        for event in &self.0 {
            reached &= event.is_reached()?;
        }
        Ok(reached)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
