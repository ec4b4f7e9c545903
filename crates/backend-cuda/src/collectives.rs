//! NCCL as a [`CollectiveLibrary`] of the core crate: communication between GPUs of several processes.

#[allow(unsafe_code)] // NCCL's C interface
mod nccl;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuprum_core::device::Buffer;
use cuprum_core::device::collectives::{CollectiveLibrary, Communicator, CommunicatorArguments, KeepWaiting, ReceivedPiece, SentPiece};
use cuprum_core::{DType, Device, Error, Layout, Result, StoredArray};

use crate::compile::libraries::{self, LibrarySpec};
use crate::device::{CudaBuffer, context, memory_to_read};
use crate::driver::DeviceBuffer;
use nccl::{CommunicatorHandle, PeerTransferRange};

/// NCCL for devices of kind `cuda`.
pub(crate) const NCCL: CollectiveLibrary = CollectiveLibrary {
    name: "nccl",
    device: "cuda",
    locate: || {
        libraries::locate_library(&LibrarySpec::nccl_spec()).map(|path| path.display().to_string()).map_err(|missing| missing.to_string())
    },
    load: nccl::load_library_version,
    device_id: |device| {
        let uuid = context(device)?.info().uuid();
        uuid.map(|uuid| uuid.to_vec()).map_err(|e| Error::backend("nccl", "mesh", e))
    },
    new_group_id: nccl::new_group_id,
    join: join_communicator,
};

/// Maximum time for which the end of the process waits for the queued sends and receives of a communicator.
const COMMUNICATOR_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The communicators of this process, which [`close_all_communicators`] closes.
static COMMUNICATORS: Mutex<Vec<Arc<Mutex<Option<CommunicatorHandle>>>>> = Mutex::new(Vec::new());

/// A communicator of NCCL for one device.
struct NcclCommunicator {
    device: Device,
    /// The NCCL communicator. `None` after [`Communicator::abort`] and at the end of the process.
    handle: Arc<Mutex<Option<CommunicatorHandle>>>,
}

fn join_communicator(place: CommunicatorArguments, keep_waiting: KeepWaiting) -> Result<Box<dyn Communicator>> {
    let context = context(place.device)?;
    let handle = CommunicatorHandle::join_group(context, place.id, place.size, place.rank, keep_waiting)?;
    let handle = Arc::new(Mutex::new(Some(handle)));
    let mut all = COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner);
    if all.is_empty() {
        nccl::register_at_exit(close_all_communicators);
    }
    all.push(handle.clone());
    Ok(Box::new(NcclCommunicator { device: place.device, handle }))
}

/// Closes all communicators at the end of the process, so that queued sends reach their receivers. The communicator that was created last
/// is closed first.
extern "C" fn close_all_communicators() {
    let mut all = std::mem::take(&mut *COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner));
    while let Some(handle) = all.pop() {
        if let Some(handle) = handle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            handle.close(COMMUNICATOR_CLOSE_TIMEOUT);
        }
    }
}

fn communicator_ended_error() -> Error {
    Error::backend("nccl", "mesh", "the communicator has ended")
}

impl Communicator for NcclCommunicator {
    fn send_and_receive(&self, sends: &[SentPiece], receives: &[ReceivedPiece], keep_waiting: KeepWaiting) -> Result<Vec<Arc<dyn Buffer>>> {
        let mut slot = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = slot.as_ref().ok_or_else(communicator_ended_error)?;
        let bytes = |send: &SentPiece| {
            let layout = Layout::contiguous(&[send.nbytes])?.with_offset(send.byte_offset);
            StoredArray::new(DType::U8, layout, send.buffer.clone())
        };
        // `arrays` must live until the sends are queued. The memory is then freed in stream order, after the sends.
        let arrays = sends.iter().map(bytes).collect::<Result<Vec<StoredArray>>>()?;
        let mut sent = Vec::new();
        for (send, array) in sends.iter().zip(&arrays) {
            sent.push(PeerTransferRange {
                rank: send.to,
                memory: memory_to_read(array)?.memory(),
                offset: send.byte_offset,
                nbytes: send.nbytes,
            });
        }
        let allocate = |receive: &ReceivedPiece| CudaBuffer::allocate("mesh", self.device, receive.nbytes);
        let buffers = receives.iter().map(allocate).collect::<Result<Vec<Arc<CudaBuffer>>>>()?;
        let mut received = Vec::new();
        for (receive, buffer) in receives.iter().zip(&buffers) {
            received.push(PeerTransferRange { rank: receive.from, memory: buffer.memory(), offset: 0, nbytes: receive.nbytes });
        }
        if let Err(error) = handle.queue_sends_and_receives(&sent, &received, keep_waiting) {
            if let Some(handle) = slot.take() {
                handle.abort();
            }
            return Err(error);
        }
        DeviceBuffer::record_queued_writes(buffers.iter().map(|buffer| buffer.memory()));
        Ok(buffers.into_iter().map(|buffer| buffer as Arc<dyn Buffer>).collect())
    }

    fn check_async_error(&self) -> Result<()> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(Ok(()), CommunicatorHandle::check_async_error)
    }

    fn abort(&self) {
        if let Some(handle) = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take() {
            handle.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_has_a_reason() {
        match (NCCL.load)() {
            Ok(version) => assert!(version.starts_with("2."), "{version}"),
            Err(reason) => assert!(reason.contains("NCCL") && !reason.contains('\n'), "{reason}"),
        }
        let empty = tempfile::tempdir().unwrap();
        let env = |name: &str| (name == "HOME").then(|| empty.path().into());
        if let Err(missing) = libraries::locate_library_with_env(&LibrarySpec::nccl_spec(), &env) {
            assert!(missing.to_string().contains("libnccl.so.2 not found"), "{missing}");
            assert!(missing.to_string().contains("pip install nvidia-nccl-cu13"), "{missing}");
        }
        assert!(CollectiveLibrary::library_for_device_kind("cuda").is_some_and(|library| library.name == "nccl"));
        assert!(CollectiveLibrary::library_for_device_kind("cpu").is_none());
    }

    #[test]
    fn the_wheel_is_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("nvidia/nccl/lib");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libnccl.so.2"), "no library").unwrap();
        let env = |name: &str| (name == "CUPRUM_CUDA_PATH").then(|| root.path().into());
        let found = libraries::locate_library_with_env(&LibrarySpec::nccl_spec(), &env);
        if cfg!(target_os = "linux") {
            assert_eq!(found.unwrap(), folder.join("libnccl.so.2"));
        }
    }
}
