//! Control of NVIDIA's profilers: NVTX ranges, if an NVTX library is found, and `cuProfilerStart`.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::primary::check;
use super::{Context, sys};
use crate::compile::libraries::{self, LibrarySpec, Loaded};
use crate::error::Result;

/// NVTX's functions (`nvToolsExt.h`) and the library that exports them.
struct Nvtx {
    _library: Loaded,
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

fn nvtx() -> Option<&'static Nvtx> {
    static NVTX: OnceLock<Option<Nvtx>> = OnceLock::new();
    let load = || {
        let loaded = libraries::load(&LibrarySpec::nvtx()).ok()?;
        // SAFETY: the signature is that of nvToolsExt.h; the library stays loaded.
        let push = *unsafe { loaded.library.get("nvtxRangePushA") }.ok()?;
        // SAFETY: the signature is that of nvToolsExt.h; the library stays loaded.
        let pop = *unsafe { loaded.library.get("nvtxRangePop") }.ok()?;
        Some(Nvtx { _library: loaded, push, pop })
    };
    NVTX.get_or_init(load).as_ref()
}

/// An NVTX range of this thread, which ends on drop.
pub struct Range {
    nvtx: &'static Nvtx,
    /// A range must end on the thread that began it.
    _thread: PhantomData<*const ()>,
}

impl Range {
    /// Begins a range. Returns `None` without NVTX.
    pub fn begin(name: &str) -> Option<Range> {
        let (nvtx, name) = (nvtx()?, CString::new(name.replace('\0', " ")).ok()?);
        // SAFETY: a NUL-terminated string, which NVTX copies.
        unsafe { (nvtx.push)(name.as_ptr()) };
        Some(Range { nvtx, _thread: PhantomData })
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: takes no arguments.
        unsafe { (self.nvtx.pop)() };
    }
}

/// Starts or stops recording in a profiler that observes this process.
pub fn set_recording(context: &Context, on: bool) -> Result<()> {
    context.bind()?;
    // SAFETY: a context is current.
    let (name, code) = unsafe {
        match on {
            true => ("cuProfilerStart", sys::cuProfilerStart()),
            false => ("cuProfilerStop", sys::cuProfilerStop()),
        }
    };
    check(name, code)
}
