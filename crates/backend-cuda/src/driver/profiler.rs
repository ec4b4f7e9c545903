//! Marks and switches for NVIDIA's profilers: NVTX ranges, where its library is there, and `cuProfilerStart`.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::{Context, check, sys};
use crate::compile::libraries::{self, LibrarySpec, Loaded};
use crate::error::{CudaError, Result};

/// NVTX's functions (`nvToolsExt.h`) and the library that they are in.
struct Nvtx {
    _library: Loaded,
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

fn nvtx() -> Option<&'static Nvtx> {
    static NVTX: OnceLock<Option<Nvtx>> = OnceLock::new();
    let load = || {
        let spec = LibrarySpec {
            name: "NVTX",
            sonames: vec!["libnvToolsExt.so.1".into()],
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/nvtx/lib"],
            companions: Vec::new(),
            help: "pip install nvidia-nvtx-cu12",
        };
        let loaded = libraries::load(&spec).ok()?;
        // SAFETY: the signature is that of nvToolsExt.h; the library stays loaded.
        let push = *unsafe { loaded.library.get("nvtxRangePushA") }.ok()?;
        // SAFETY: as above.
        let pop = *unsafe { loaded.library.get("nvtxRangePop") }.ok()?;
        Some(Nvtx { _library: loaded, push, pop })
    };
    NVTX.get_or_init(load).as_ref()
}

/// An NVTX range of this thread, up to its drop.
pub struct Range {
    nvtx: &'static Nvtx,
    /// It must be ended by the thread that began it.
    _thread: PhantomData<*const ()>,
}

impl Range {
    /// Begins a range, if NVTX is there.
    pub fn begin(name: &str) -> Option<Range> {
        let (nvtx, name) = (nvtx()?, CString::new(name.replace('\0', " ")).ok()?);
        // SAFETY: a NUL-terminated text, which is copied.
        unsafe { (nvtx.push)(name.as_ptr()) };
        Some(Range { nvtx, _thread: PhantomData })
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: takes and touches nothing of ours.
        unsafe { (self.nvtx.pop)() };
    }
}

/// Tells a profiler that watches this process to record, or to stop.
pub fn set_recording(context: &Context, on: bool) -> Result<()> {
    type Switch = unsafe extern "C" fn() -> sys::CUresult;
    context.bind()?;
    let name = if on { "cuProfilerStart" } else { "cuProfilerStop" };
    // SAFETY: the signature is the driver API's; libcuda was loaded by the probe and is never closed.
    let symbol = unsafe { sys::culib().get::<Switch>(name) }.map_err(|e| CudaError::Missing(format!("{name}: {e}")))?;
    // SAFETY: a context is current.
    check(name, unsafe { symbol() })
}
