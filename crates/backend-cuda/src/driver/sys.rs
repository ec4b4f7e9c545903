//! The functions of the CUDA driver, bound at run time. Their result codes are plain numbers ([`CUresult`]).
//!
//! cudarc declares the types and structures. The functions of cudarc return a Rust enum. That is undefined behaviour if a newer driver
//! returns a code that the enum lacks, so this module declares the functions itself.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};
use std::fmt;
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys as declared;
use cuprum_core::fault_injection::{self, FailurePoint};
pub use declared::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUevent_flags,
    CUfunction, CUfunction_attribute, CUgraph, CUgraphExec, CUgraphNode, CUjit_option, CUmemAccess_flags, CUmemAccessDesc,
    CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool,
    CUmodule, CUoccupancyB2DSize, CUpointer_attribute, CUstream, CUstream_flags, CUstreamCaptureMode,
};
use libloading::Library;

use crate::compile::dynamic_library;

/// A result code of the driver: `CUresult` of `cuda.h`. Any number is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct CUresult(pub u32);

impl CUresult {
    /// Result code of a successful call.
    pub const CUDA_SUCCESS: CUresult = CUresult(0);
    /// Result code for an argument that is out of range.
    pub const CUDA_ERROR_INVALID_VALUE: CUresult = CUresult(1);
    /// Result code for too little free memory on the device.
    pub const CUDA_ERROR_OUT_OF_MEMORY: CUresult = CUresult(2);
    /// Result code of the stub library in the CUDA toolkit, which is not a driver.
    pub const CUDA_ERROR_STUB_LIBRARY: CUresult = CUresult(34);
    /// Result code if there is no GPU.
    pub const CUDA_ERROR_NO_DEVICE: CUresult = CUresult(100);
    /// Result code for a missing symbol. A function of this module returns this code if the driver does not export the function.
    pub const CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: CUresult = CUresult(302);
    /// Result code for a named object, such as a kernel, that was not found.
    pub const CUDA_ERROR_NOT_FOUND: CUresult = CUresult(500);
    /// Result code while work is still queued or running.
    pub const CUDA_ERROR_NOT_READY: CUresult = CUresult(600);

    /// Returns whether this error makes the device's context unusable, so that every later call in this process fails.
    ///
    /// The codes are those for which `cuda.h` says that the process must be terminated, plus uncorrectable ECC (214) and NVLink
    /// (220) errors, a destroyed context (709) and a device assertion (710).
    pub fn is_sticky(self) -> bool {
        matches!(self.0, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810 | 911)
    }
}

impl fmt::Display for CUresult {
    /// Writes the driver's name of the code, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = ptr::null();
        // SAFETY: the out-pointer `name` is a local. The driver returns an error for a code that it does not know.
        let known = unsafe { cuGetErrorName(*self, &mut name) };
        if known != CUresult::CUDA_SUCCESS || name.is_null() {
            return f.write_str("unknown error");
        }
        // SAFETY: the driver set `name` to a static NUL-terminated string.
        f.write_str(&unsafe { CStr::from_ptr(name) }.to_string_lossy())
    }
}

/// Returns the driver's library, or `None` if this machine lacks it. The library is never closed.
///
/// On Windows, only the system's folder is searched, because a search by name includes the working directory. On other systems, the dynamic
/// linker searches by name. If the linker finds no library, the folders of WSL and Jetson are searched.
pub fn driver_library() -> Option<&'static Library> {
    static DRIVER_LIBRARY: OnceLock<Option<&'static Library>> = OnceLock::new();
    let by_path = || dynamic_library::open_driver_by_path().map(|library| &*Box::leak(Box::new(library)));
    // SAFETY: opening the library runs the initialisers of the system's driver. `culib` panics only if the library is absent.
    let by_name = || unsafe { (!cfg!(windows) && declared::is_culib_present()).then(|| declared::culib()) };
    *DRIVER_LIBRARY.get_or_init(|| by_name().or_else(by_path))
}

/// Returns the driver function `name`, or `None` if the driver does not export it.
///
/// # Safety
/// `F` must be a function pointer type with the signature of the function `name`.
unsafe fn find_function<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller guarantees that `F` is the function's signature, and the library is never closed.
    unsafe { driver_library()?.get::<F>(name) }.ok().map(|symbol| *symbol)
}

/// Returns the result code with which a test makes the driver function `name` fail, if any. Functions that free, wait or query are never
/// made to fail, because their failure means that the device is lost.
#[inline(always)]
fn injected_failure(name: &str) -> Option<CUresult> {
    if !fault_injection::FAULT_INJECTION_ENABLED {
        return None;
    }
    let (point, code) = match name {
        "cuMemAllocFromPoolAsync" | "cuMemAlloc_v2" | "cuMemHostAlloc" => (FailurePoint::DeviceMemory, CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        "cuModuleLoadData" | "cuModuleLoadDataEx" => (FailurePoint::ModuleLoad, CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        "cuModuleGetFunction" | "cuModuleGetGlobal_v2" => (FailurePoint::ModuleLoad, CUresult::CUDA_ERROR_NOT_FOUND),
        "cuLaunchKernel" | "cuLaunchCooperativeKernel" | "cuGraphLaunch" => (FailurePoint::Launch, CUresult::CUDA_ERROR_INVALID_VALUE),
        _ if name.starts_with("cuMemcpy") || name.starts_with("cuMemset") => (FailurePoint::DeviceCopy, CUresult::CUDA_ERROR_INVALID_VALUE),
        "cuStreamCreate"
        | "cuStreamWaitEvent"
        | "cuEventCreate"
        | "cuEventRecord"
        | "cuFuncSetAttribute"
        | "cuFuncGetAttribute"
        | "cuGraphInstantiateWithFlags" => (FailurePoint::Driver, CUresult::CUDA_ERROR_INVALID_VALUE),
        _ => return None,
    };
    fault_injection::should_fail(point).then_some(code)
}

/// Declares driver functions, each bound by its name at its first call, and a constant with the list of their names.
macro_rules! functions {
    ($(#[$doc:meta])* $list:ident: $($name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {
        $(#[$doc])*
        pub const $list: &[&str] = &[$(stringify!($name)),*];
        $(
            #[doc = concat!("`", stringify!($name), "` of the driver API.")]
            ///
            /// # Safety
            /// The caller must meet the requirements of the driver API's documentation for the arguments and the current context.
            #[inline]
            pub unsafe fn $name($($arg: $type),*) -> CUresult {
                if let Some(failure) = injected_failure(stringify!($name)) {
                    return failure;
                }
                type Function = unsafe extern "C" fn($($type),*) -> CUresult;
                static FUNCTION: OnceLock<Option<Function>> = OnceLock::new();
                // SAFETY: `Function` is the signature in cuda.h, whose result is an enum of the size of `u32`.
                match FUNCTION.get_or_init(|| unsafe { find_function(stringify!($name)) }) {
                    // SAFETY: the caller meets the requirements of the driver function.
                    Some(function) => unsafe { function($($arg),*) },
                    None => CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                }
            }
        )*
    };
}

functions! {
    /// Names of the functions that every usable driver exports. The probe checks that the driver exports all of them.
    REQUIRED:
    cuInit(flags: c_uint);
    cuDriverGetVersion(driver_version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice);
    cuDeviceCanAccessPeer(can_access_peer: *mut c_int, dev: CUdevice, peer_dev: CUdevice);
    cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice);
    cuCtxEnablePeerAccess(peer_context: CUcontext, flags: c_uint);
    cuCtxSetCurrent(ctx: CUcontext);
    cuStreamCreate(ph_stream: *mut CUstream, flags: c_uint);
    cuStreamSynchronize(h_stream: CUstream);
    cuStreamQuery(h_stream: CUstream);
    cuStreamWaitEvent(h_stream: CUstream, h_event: CUevent, flags: c_uint);
    cuEventCreate(ph_event: *mut CUevent, flags: c_uint);
    cuEventRecord(h_event: CUevent, h_stream: CUstream);
    cuEventQuery(h_event: CUevent);
    cuEventSynchronize(h_event: CUevent);
    cuEventDestroy_v2(h_event: CUevent);
    cuEventElapsedTime(p_milliseconds: *mut f32, h_start: CUevent, h_end: CUevent);
    cuMemPoolCreate(pool: *mut CUmemoryPool, pool_props: *const CUmemPoolProps);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolGetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolTrimTo(pool: CUmemoryPool, min_bytes_to_keep: usize);
    cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
    cuMemAllocFromPoolAsync(dptr: *mut CUdeviceptr, bytesize: usize, pool: CUmemoryPool, h_stream: CUstream);
    cuMemFreeAsync(dptr: CUdeviceptr, h_stream: CUstream);
    cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize);
    cuMemFree_v2(dptr: CUdeviceptr);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: c_uint);
    cuMemHostGetDevicePointer_v2(pdptr: *mut CUdeviceptr, p: *mut c_void, flags: c_uint);
    cuMemcpyHtoDAsync_v2(dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize, h_stream: CUstream);
    cuMemcpyDtoHAsync_v2(dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream);
    cuMemcpyDtoDAsync_v2(dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream);
    cuMemcpyPeerAsync(
        dst_device: CUdeviceptr,
        dst_context: CUcontext,
        src_device: CUdeviceptr,
        src_context: CUcontext,
        byte_count: usize,
        h_stream: CUstream,
    );
    cuMemsetD8Async(dst_device: CUdeviceptr, uc: c_uchar, n: usize, h_stream: CUstream);
    cuMemsetD16Async(dst_device: CUdeviceptr, us: c_ushort, n: usize, h_stream: CUstream);
    cuMemsetD32Async(dst_device: CUdeviceptr, ui: c_uint, n: usize, h_stream: CUstream);
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleUnload(hmod: CUmodule);
    cuModuleGetFunction(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char);
    cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction);
    cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_smem_size: usize);
    cuLaunchKernel(
        f: CUfunction,
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        h_stream: CUstream,
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
}

functions! {
    /// Names of functions that older drivers lack, or that only some callers need.
    OPTIONAL:
    cuGetErrorName(error: CUresult, p_str: *mut *const c_char);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], dev: CUdevice);
    cuCtxSynchronize();
    cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr);
    cuMemFreeHost(p: *mut c_void);
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        num_options: c_uint,
        options: *mut CUjit_option,
        option_values: *mut *mut c_void,
    );
    cuModuleGetGlobal_v2(dptr: *mut CUdeviceptr, bytes: *mut usize, hmod: CUmodule, name: *const c_char);
    cuFuncGetParamInfo(func: CUfunction, param_index: usize, param_offset: *mut usize, param_size: *mut usize);
    cuOccupancyMaxPotentialBlockSize(
        min_grid_size: *mut c_int,
        block_size: *mut c_int,
        func: CUfunction,
        block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
        dynamic_smem_size: usize,
        block_size_limit: c_int,
    );
    cuLaunchCooperativeKernel(
        f: CUfunction,
        grid_dim_x: c_uint,
        grid_dim_y: c_uint,
        grid_dim_z: c_uint,
        block_dim_x: c_uint,
        block_dim_y: c_uint,
        block_dim_z: c_uint,
        shared_mem_bytes: c_uint,
        h_stream: CUstream,
        kernel_params: *mut *mut c_void,
    );
    cuStreamBeginCapture_v2(h_stream: CUstream, mode: CUstreamCaptureMode);
    cuStreamEndCapture(h_stream: CUstream, ph_graph: *mut CUgraph);
    cuGraphGetNodes(h_graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize);
    cuGraphInstantiateWithFlags(ph_graph_exec: *mut CUgraphExec, h_graph: CUgraph, flags: c_ulonglong);
    cuGraphLaunch(h_graph_exec: CUgraphExec, h_stream: CUstream);
    cuGraphDestroy(h_graph: CUgraph);
    cuGraphExecDestroy(h_graph_exec: CUgraphExec);
    cuProfilerStart();
    cuProfilerStop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_header() {
        use declared::CUresult as C;
        let ours = [
            (CUresult::CUDA_SUCCESS, C::CUDA_SUCCESS),
            (CUresult::CUDA_ERROR_INVALID_VALUE, C::CUDA_ERROR_INVALID_VALUE),
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY, C::CUDA_ERROR_OUT_OF_MEMORY),
            (CUresult::CUDA_ERROR_STUB_LIBRARY, C::CUDA_ERROR_STUB_LIBRARY),
            (CUresult::CUDA_ERROR_NO_DEVICE, C::CUDA_ERROR_NO_DEVICE),
            (CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, C::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND),
            (CUresult::CUDA_ERROR_NOT_FOUND, C::CUDA_ERROR_NOT_FOUND),
            (CUresult::CUDA_ERROR_NOT_READY, C::CUDA_ERROR_NOT_READY),
        ];
        for (ours, header) in ours {
            assert_eq!(ours.0, header as u32);
        }
    }

    #[test]
    fn names_of_injected_failures_are_those_of_functions() {
        let all = || REQUIRED.iter().chain(OPTIONAL);
        // Without the feature no function fails. With it, none fails before a test asks for it.
        assert!(all().all(|name| injected_failure(name).is_none()));
        #[cfg(feature = "fault-injection")]
        for point in
            [FailurePoint::DeviceMemory, FailurePoint::ModuleLoad, FailurePoint::Launch, FailurePoint::DeviceCopy, FailurePoint::Driver]
        {
            let (_, counted) = fault_injection::count_operations(fault_injection::CountingScope::Thread, point, || {
                all().filter(|name| injected_failure(name).is_some()).count()
            });
            assert!(counted >= 3, "{point:?}: {counted} functions");
            let (failed, _) = fault_injection::with_failure_in_scope(fault_injection::CountingScope::Thread, point, 0, || {
                all().filter(|name| injected_failure(name).is_some()).count()
            });
            assert_eq!(failed, 1, "{point:?}");
        }
    }

    #[test]
    fn sticky_codes_are_those_that_end_the_process() {
        use declared::CUresult::*;
        let sticky = [
            CUDA_ERROR_ECC_UNCORRECTABLE,
            CUDA_ERROR_NVLINK_UNCORRECTABLE,
            CUDA_ERROR_CONTAINED,
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_LAUNCH_TIMEOUT,
            CUDA_ERROR_CONTEXT_IS_DESTROYED,
            CUDA_ERROR_ASSERT,
            CUDA_ERROR_HARDWARE_STACK_ERROR,
            CUDA_ERROR_ILLEGAL_INSTRUCTION,
            CUDA_ERROR_MISALIGNED_ADDRESS,
            CUDA_ERROR_INVALID_ADDRESS_SPACE,
            CUDA_ERROR_INVALID_PC,
            CUDA_ERROR_LAUNCH_FAILED,
            CUDA_ERROR_TENSOR_MEMORY_LEAK,
            CUDA_ERROR_MPS_CLIENT_TERMINATED,
            CUDA_ERROR_EXTERNAL_DEVICE,
        ]
        .map(|code| code as u32);
        for code in 0..2000 {
            assert_eq!(CUresult(code).is_sticky(), sticky.contains(&code), "{code}");
        }
    }

    /// A result code that the declarations lack, as a newer driver may return it, is kept as a number.
    #[test]
    fn unknown_codes_are_kept() {
        extern "C" fn newer(_device: c_int) -> u32 {
            987_654
        }
        // SAFETY: the signatures differ in a transparent wrapper of the result only.
        let function = unsafe { std::mem::transmute::<extern "C" fn(c_int) -> u32, unsafe extern "C" fn(c_int) -> CUresult>(newer) };
        // SAFETY: the function touches nothing.
        let code = unsafe { function(0) };
        let error = super::super::check_result("cuSomething", code).unwrap_err();
        assert_eq!(error.to_string(), "cuSomething failed: unknown error (987654)");
        assert!(!error.is_sticky());
    }

    #[test]
    fn functions_that_the_driver_lacks_are_an_error() {
        functions! {
            /// A name that no driver has.
            ABSENT: cuprumNoSuchFunction(n: c_int);
        }
        assert_eq!(ABSENT, ["cuprumNoSuchFunction"]);
        // SAFETY: no such function is called.
        assert_eq!(unsafe { cuprumNoSuchFunction(1) }, CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
    }
}
