//! A binding to NCCL: communicators, and groups of sends and receives. Contains unsafe code for the C interface of NCCL.
//!
//! Communicators are non-blocking: calls return at once, and the host polls their state. The host can therefore stop waiting for a rank
//! that never answers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cuprum_core::device::collectives::KeepWaiting;
use cuprum_core::{Error, Result};

use crate::compile::libraries::{self, LibrarySpec, LoadedLibrary, MissingLibrary};
use crate::device::to_core_error;
use crate::driver::{Context, DeviceBuffer, sys};

/// Size of the identifier of an NCCL group (`ncclUniqueId`), in bytes.
const GROUP_ID_BYTES: usize = 128;
/// Oldest NCCL version that this crate uses: 2.18.
const OLDEST_NCCL_VERSION: c_int = 21800;
/// Duration for which a waiting thread yields the processor between polls. After this time, the thread sleeps between polls.
const YIELD_TIME: Duration = Duration::from_millis(1);
const POLL_INTERVAL: Duration = Duration::from_micros(100);

/// Result codes (`ncclResult_t`).
const NCCL_SUCCESS: c_int = 0;
const NCCL_IN_PROGRESS: c_int = 7;
/// The data type of bytes (`ncclUint8`).
const NCCL_UINT8: c_int = 1;
/// Value of a configuration field that is not set (`NCCL_CONFIG_UNDEF_INT`).
const UNSET_CONFIG_FIELD: c_int = c_int::MIN;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct NcclUniqueId([u8; GROUP_ID_BYTES]);

/// `ncclConfig_t` of NCCL 2.18. Later versions read as many bytes as `size` says.
#[repr(C)]
struct NcclConfig {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
    /// Padding in NCCL 2.18. Later versions have a field here, which may be [`UNSET_CONFIG_FIELD`].
    padding: c_int,
}

type Comm = *mut c_void;

/// Function pointers of the NCCL library. C enums are passed as integers.
struct NcclApi {
    get_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    get_unique_id: unsafe extern "C" fn(*mut NcclUniqueId) -> c_int,
    comm_init_rank_config: unsafe extern "C" fn(*mut Comm, c_int, NcclUniqueId, c_int, *mut NcclConfig) -> c_int,
    comm_finalize: unsafe extern "C" fn(Comm) -> c_int,
    comm_destroy: unsafe extern "C" fn(Comm) -> c_int,
    comm_abort: unsafe extern "C" fn(Comm) -> c_int,
    comm_get_async_error: unsafe extern "C" fn(Comm, *mut c_int) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, sys::CUstream) -> c_int,
    recv: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, sys::CUstream) -> c_int,
    get_error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    get_last_error: unsafe extern "C" fn(Comm) -> *const c_char,
    _library: ManuallyDrop<LoadedLibrary>,
}

impl NcclApi {
    fn load_functions() -> std::result::Result<NcclApi, MissingLibrary> {
        let loaded = libraries::load_library(&LibrarySpec::nccl_spec())?;
        // SAFETY: the type of each field is the function's signature in nccl.h. The library is never closed.
        unsafe {
            Ok(NcclApi {
                get_version: loaded.symbol("ncclGetVersion")?,
                get_unique_id: loaded.symbol("ncclGetUniqueId")?,
                comm_init_rank_config: loaded.symbol("ncclCommInitRankConfig")?,
                comm_finalize: loaded.symbol("ncclCommFinalize")?,
                comm_destroy: loaded.symbol("ncclCommDestroy")?,
                comm_abort: loaded.symbol("ncclCommAbort")?,
                comm_get_async_error: loaded.symbol("ncclCommGetAsyncError")?,
                group_start: loaded.symbol("ncclGroupStart")?,
                group_end: loaded.symbol("ncclGroupEnd")?,
                send: loaded.symbol("ncclSend")?,
                recv: loaded.symbol("ncclRecv")?,
                get_error_string: loaded.symbol("ncclGetErrorString")?,
                get_last_error: loaded.symbol("ncclGetLastError")?,
                _library: ManuallyDrop::new(loaded),
            })
        }
    }

    /// Returns the functions of NCCL, or a one-line reason why they are missing. The first call loads the library.
    fn shared_functions() -> std::result::Result<&'static NcclApi, String> {
        static NCCL_API: OnceLock<std::result::Result<NcclApi, MissingLibrary>> = OnceLock::new();
        NCCL_API.get_or_init(NcclApi::load_functions).as_ref().map_err(|missing| missing.to_string())
    }

    /// Returns an error for the result `code` of the NCCL function `call`. The message includes NCCL's last error of the communicator
    /// `comm`.
    fn nccl_error(&self, call: &str, code: c_int, comm: Comm) -> Error {
        let text = |text: *const c_char| {
            if text.is_null() {
                return String::new();
            }
            // SAFETY: NCCL returns null or a NUL-terminated string that lives at least until the next call on this thread.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().replace('\n', " ")
        };
        // SAFETY: the function takes any code.
        let name = text(unsafe { (self.get_error_string)(code) });
        // SAFETY: the function takes null or a communicator, and `comm` is one of them.
        let detail = text(unsafe { (self.get_last_error)(comm) });
        let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
        Error::backend("nccl", "mesh", format!("{call} failed: {name} ({code}){detail}"))
    }

    fn check_status(&self, call: &str, code: c_int, comm: Comm) -> Result<()> {
        if matches!(code, NCCL_SUCCESS | NCCL_IN_PROGRESS) { Ok(()) } else { Err(self.nccl_error(call, code, comm)) }
    }
}

/// Loads NCCL and returns its version, or a one-line reason why NCCL cannot be used.
pub(super) fn load_library_version() -> std::result::Result<String, String> {
    let api = NcclApi::shared_functions()?;
    let mut version = 0;
    // SAFETY: the out-pointer is a local.
    let code = unsafe { (api.get_version)(&mut version) };
    let text = format!("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    match code {
        NCCL_SUCCESS if version >= OLDEST_NCCL_VERSION => Ok(text),
        NCCL_SUCCESS => Err(format!("NCCL {text} is too old; 2.18 is needed: pip install -U nvidia-nccl-cu13 (or -cu12)")),
        _ => Err(format!("NCCL returns no version ({code})")),
    }
}

/// Returns a new identifier, with which ranks join a group.
pub(super) fn new_group_id() -> Result<Vec<u8>> {
    let api = NcclApi::shared_functions().map_err(|reason| Error::backend("nccl", "mesh", reason))?;
    let mut id = NcclUniqueId([0; GROUP_ID_BYTES]);
    // SAFETY: the out-pointer is a local.
    api.check_status("ncclGetUniqueId", unsafe { (api.get_unique_id)(&mut id) }, ptr::null_mut())?;
    Ok(id.0.to_vec())
}

/// A range of device memory that is sent to a rank or received from it.
#[derive(Clone, Copy)]
pub(super) struct PeerTransferRange<'a> {
    pub rank: usize,
    pub memory: &'a DeviceBuffer,
    /// Offset of the range in `memory`, in bytes.
    pub offset: usize,
    /// Size of the range in bytes, at least 1.
    pub nbytes: usize,
}

/// An NCCL communicator. Callers hold a lock around the `CommunicatorHandle`, because NCCL allows one call at a time on a communicator.
pub(super) struct CommunicatorHandle {
    api: &'static NcclApi,
    context: &'static Context,
    comm: Comm,
    size: usize,
}

// SAFETY: NCCL allows calls on a communicator from any thread, one at a time. `NcclCommunicator` has a mutex around the
// `CommunicatorHandle`.
unsafe impl Send for CommunicatorHandle {}

impl CommunicatorHandle {
    /// Joins a group of `size` ranks as rank `rank`, with the device of `context`. Waits for the other ranks unless `keep_waiting` returns
    /// an error.
    pub fn join_group(
        context: &'static Context,
        id: &[u8],
        size: usize,
        rank: usize,
        keep_waiting: KeepWaiting,
    ) -> Result<CommunicatorHandle> {
        let api = NcclApi::shared_functions().map_err(|reason| Error::backend("nccl", "mesh", reason))?;
        let invalid = || Error::value("mesh", "the identifier or the size of the group is not one of NCCL");
        let id = NcclUniqueId(id.try_into().map_err(|_| invalid())?);
        let (ranks, own) = (c_int::try_from(size).map_err(|_| invalid())?, c_int::try_from(rank).map_err(|_| invalid())?);
        let mut config = NcclConfig {
            size: size_of::<NcclConfig>(),
            magic: 0xcafe_beef,
            version: OLDEST_NCCL_VERSION.unsigned_abs(),
            blocking: 0,
            cga_cluster_size: UNSET_CONFIG_FIELD,
            min_ctas: UNSET_CONFIG_FIELD,
            max_ctas: UNSET_CONFIG_FIELD,
            net_name: ptr::null(),
            split_share: UNSET_CONFIG_FIELD,
            padding: UNSET_CONFIG_FIELD,
        };
        make_context_current(context)?;
        let mut comm = ptr::null_mut();
        // SAFETY: the context is current and the out-pointers are locals. The configuration has the layout that its size and version state.
        let code = unsafe { (api.comm_init_rank_config)(&mut comm, ranks, id, own, &mut config) };
        api.check_status("ncclCommInitRankConfig", code, ptr::null_mut())?;
        if comm.is_null() {
            return Err(Error::backend("nccl", "mesh", "ncclCommInitRankConfig returned no communicator"));
        }
        let handle = CommunicatorHandle { api, context, comm, size };
        let ready = handle.wait_for_last_call("ncclCommInitRankConfig", keep_waiting);
        make_context_current(context)?;
        match ready {
            Ok(()) => Ok(handle),
            Err(error) => {
                handle.abort();
                Err(error)
            }
        }
    }

    /// Returns the state of the last call on this communicator: [`NCCL_SUCCESS`], [`NCCL_IN_PROGRESS`] or an error.
    fn last_call_state(&self) -> Result<c_int> {
        let mut state = NCCL_SUCCESS;
        // SAFETY: the communicator exists, and the out-pointer is a local.
        let code = unsafe { (self.api.comm_get_async_error)(self.comm, &mut state) };
        self.api.check_status("ncclCommGetAsyncError", code, self.comm).map(|()| state)
    }

    /// Polls until the last call on this communicator has completed. Error messages name `call`, its NCCL function.
    fn wait_for_last_call(&self, call: &str, keep_waiting: KeepWaiting) -> Result<()> {
        let started = Instant::now();
        loop {
            match self.last_call_state()? {
                NCCL_SUCCESS => return Ok(()),
                NCCL_IN_PROGRESS => keep_waiting()?,
                code => return Err(self.api.nccl_error(call, code, self.comm)),
            }
            if started.elapsed() < YIELD_TIME { std::thread::yield_now() } else { std::thread::sleep(POLL_INTERVAL) }
        }
    }

    /// Queues sends and receives as one group on this thread's current stream. The caller has already ordered this stream after earlier
    /// uses of the memory.
    ///
    /// # Errors
    /// Returns an error for a range outside its memory, and errors of NCCL and of `keep_waiting`. The caller must then abort the
    /// communicator.
    pub fn queue_sends_and_receives(
        &self,
        sends: &[PeerTransferRange],
        receives: &[PeerTransferRange],
        keep_waiting: KeepWaiting,
    ) -> Result<()> {
        if self.context.is_capturing() {
            return Err(Error::value("graph", "an exchange between processes cannot be captured"));
        }
        let checked = |range: &PeerTransferRange| {
            if range.rank >= self.size || range.nbytes == 0 || !ptr::eq(range.memory.context(), self.context) {
                return Err(Error::value("mesh", "a piece is empty, on another device, or of a rank out of range"));
            }
            let address = range.memory.checked_address(range.offset, range.nbytes);
            let address = address.map_err(|e| to_core_error("nccl", "mesh", self.context.device(), e))?;
            Ok((address as usize, range.nbytes, range.rank as c_int))
        };
        let sends = sends.iter().map(checked).collect::<Result<Vec<_>>>()?;
        let receives = receives.iter().map(checked).collect::<Result<Vec<_>>>()?;
        make_context_current(self.context)?;
        let stream = self.context.stream();
        // SAFETY: the function takes no arguments. `ncclGroupEnd` ends the group on every path.
        self.api.check_status("ncclGroupStart", unsafe { (self.api.group_start)() }, self.comm)?;
        let mut queued = Ok(());
        for (address, nbytes, rank) in sends {
            // SAFETY: the communicator and the stream exist. The range was checked against its buffer, which is freed in stream order.
            let code = unsafe { (self.api.send)(address as *const c_void, nbytes, NCCL_UINT8, rank, self.comm, stream) };
            queued = queued.and(self.api.check_status("ncclSend", code, self.comm));
        }
        for (address, nbytes, rank) in receives {
            // SAFETY: the communicator and the stream exist. The range was checked against its buffer, which is freed in stream order.
            let code = unsafe { (self.api.recv)(address as *mut c_void, nbytes, NCCL_UINT8, rank, self.comm, stream) };
            queued = queued.and(self.api.check_status("ncclRecv", code, self.comm));
        }
        // SAFETY: `ncclGroupStart` started the group on this thread.
        let ended = self.api.check_status("ncclGroupEnd", unsafe { (self.api.group_end)() }, self.comm);
        queued.and(ended)?;
        let ready = self.wait_for_last_call("ncclGroupEnd", keep_waiting);
        make_context_current(self.context)?;
        ready
    }

    /// Returns an error if an earlier call failed asynchronously.
    pub fn check_async_error(&self) -> Result<()> {
        match self.last_call_state()? {
            NCCL_SUCCESS | NCCL_IN_PROGRESS => Ok(()),
            code => Err(self.api.nccl_error("an exchange", code, self.comm)),
        }
    }

    /// Aborts all queued sends and receives, and frees the communicator.
    pub fn abort(self) {
        // An error of `make_context_current` is ignored, because the communicator must be freed even if the device is lost.
        let _ = make_context_current(self.context);
        // SAFETY: the communicator exists, and `self` is its only owner.
        let code = unsafe { (self.api.comm_abort)(self.comm) };
        if code != NCCL_SUCCESS {
            tracing::debug!("ncclCommAbort returned {code}");
        }
        let _ = make_context_current(self.context);
    }

    /// Waits at most `limit` for queued sends and receives, then frees the communicator.
    pub fn close(self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut keep_waiting = || if Instant::now() < end { Ok(()) } else { Err(Error::value("mesh", "exchanges do not end")) };
        let bound = make_context_current(self.context);
        // SAFETY: the communicator exists.
        let finalized =
            bound.and_then(|()| self.api.check_status("ncclCommFinalize", unsafe { (self.api.comm_finalize)(self.comm) }, self.comm));
        if finalized.and_then(|()| self.wait_for_last_call("ncclCommFinalize", &mut keep_waiting)).is_err() {
            return self.abort();
        }
        // SAFETY: the communicator exists and is finalized, and `self` is its only owner.
        let code = unsafe { (self.api.comm_destroy)(self.comm) };
        if code != NCCL_SUCCESS {
            tracing::debug!("ncclCommDestroy returned {code}");
        }
    }
}

/// Makes `context` current on this thread again, because NCCL's runtime may have changed the thread's context.
fn make_context_current(context: &Context) -> Result<()> {
    context.set_current().map_err(|e| to_core_error("nccl", "mesh", context.device(), e))
}

unsafe extern "C" {
    fn atexit(f: extern "C" fn()) -> c_int;
}

/// Registers `f` with the C library's `atexit`. `f` runs before the exit handlers of libraries that are loaded already.
pub(super) fn register_at_exit(f: extern "C" fn()) {
    // SAFETY: the function is `atexit` of ISO C. Its argument has the required signature and lives as long as the process.
    if unsafe { atexit(f) } != 0 {
        tracing::debug!("atexit failed: the end of the process may interrupt exchanges of other processes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_the_layout_of_version_2_18() {
        assert_eq!(
            (size_of::<NcclConfig>(), std::mem::offset_of!(NcclConfig, net_name), std::mem::offset_of!(NcclConfig, split_share)),
            (48, 32, 40)
        );
        assert_eq!(size_of::<NcclUniqueId>(), GROUP_ID_BYTES);
    }

    #[test]
    fn identifiers_of_another_size_are_refused_without_the_library() {
        match load_library_version() {
            Ok(_) => assert_ne!(new_group_id().unwrap(), new_group_id().unwrap()),
            Err(reason) => assert_eq!(new_group_id().unwrap_err().to_string(), format!("[mesh] nccl failed: {reason}")),
        }
    }
}
