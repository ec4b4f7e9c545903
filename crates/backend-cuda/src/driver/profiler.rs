//! Control of NVIDIA's profilers: NVTX ranges, if an NVTX library is found, and `cuProfilerStart`.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::primary_context::check_result;
use super::{Context, sys};
use crate::compile::libraries::{self, LibrarySpec, LoadedLibrary};
use crate::error::Result;

/// The functions of an NVTX library (`nvToolsExt.h`), which stays loaded.
struct NvtxFunctions {
    _library: LoadedLibrary,
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

fn load_nvtx() -> Option<&'static NvtxFunctions> {
    static NVTX: OnceLock<Option<NvtxFunctions>> = OnceLock::new();
    let load = || {
        let loaded = libraries::load_library(&LibrarySpec::nvtx_spec()).ok()?;
        // SAFETY: the types are the functions' signatures in nvToolsExt.h, and the library stays loaded.
        let (push, pop) = unsafe { (loaded.symbol("nvtxRangePushA").ok()?, loaded.symbol("nvtxRangePop").ok()?) };
        Some(NvtxFunctions { _library: loaded, push, pop })
    };
    NVTX.get_or_init(load).as_ref()
}

/// An NVTX range of this thread in a profiler's timeline. The range ends on drop.
pub struct NvtxRange {
    nvtx: &'static NvtxFunctions,
    /// Makes the type neither Send nor Sync, because a range must end on the thread that began it.
    _thread: PhantomData<*const ()>,
}

impl NvtxRange {
    /// Begins a range called `name`. Returns `None` if there is no NVTX library.
    pub fn begin_range(name: &str) -> Option<NvtxRange> {
        let (nvtx, name) = (load_nvtx()?, CString::new(name.replace('\0', " ")).ok()?);
        // SAFETY: `name` is a NUL-terminated string, which NVTX copies.
        unsafe { (nvtx.push)(name.as_ptr()) };
        Some(NvtxRange { nvtx, _thread: PhantomData })
    }
}

impl Drop for NvtxRange {
    fn drop(&mut self) {
        // SAFETY: `nvtxRangePop` takes no arguments.
        unsafe { (self.nvtx.pop)() };
    }
}

/// Starts (`on`) or stops recording in a profiler that observes this process, such as Nsight Systems.
pub fn set_recording(context: &Context, on: bool) -> Result<()> {
    context.set_current()?;
    // SAFETY: `context` is current on this thread, and the functions take no arguments.
    let (name, code) = unsafe {
        match on {
            true => ("cuProfilerStart", sys::cuProfilerStart()),
            false => ("cuProfilerStop", sys::cuProfilerStop()),
        }
    };
    check_result(name, code)
}
