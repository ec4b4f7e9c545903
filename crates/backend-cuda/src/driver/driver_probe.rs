//! Detection of the CUDA driver and its devices.

use std::ffi::c_int;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use super::primary_context::check_result;
use super::sys::{self, CUdevice_attribute as Attribute, CUresult};
use crate::compile::libraries;
use crate::error::{CudaError, Result};

/// Minimum CUDA version of the driver, as 1000 * major + 10 * minor. NVRTC 12, the oldest supported compiler, requires this version.
const OLDEST_DRIVER_VERSION: i32 = 12000;

/// The CUDA driver of this machine and its devices.
#[derive(Debug, Clone)]
pub struct DriverInfo {
    /// The latest CUDA version that the driver supports: major, minor.
    pub version: (u32, u32),
    /// The devices, in the driver's order (`CUDA_VISIBLE_DEVICES` applies). There is at least one.
    pub devices: Vec<DeviceInfo>,
}

/// Properties of a device, known before its context exists.
#[derive(Debug, Clone)]
pub struct DeviceInfo {
    /// Device index, as in `cuda:N`.
    pub ordinal: usize,
    /// Name of the device, such as `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Compute capability: major, minor.
    pub compute_capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub sm_count: u32,
    /// Device memory, in bytes.
    pub total_memory: u64,
    /// Size of the L2 cache, in bytes.
    pub l2_bytes: u32,
    /// Maximum shared memory per block by default, in bytes.
    pub shared_per_block: u32,
    /// Maximum shared memory per block after [`crate::compile::module::Function::allow_dynamic_shared_memory`], in bytes.
    pub shared_per_block_optin: u32,
    /// Shared memory per multiprocessor, in bytes.
    pub shared_per_sm: u32,
    /// Maximum resident threads per multiprocessor.
    pub threads_per_sm: u32,
    /// Maximum threads per block.
    pub threads_per_block: u32,
    /// Ratio of the throughput of single precision to that of double precision: 2 for data-centre GPUs, up to 64 for other GPUs.
    pub single_to_double_ratio: u32,
    /// Whether the device supports stream-ordered allocation (`cuMemAllocAsync`).
    pub memory_pools: bool,
    pub(crate) handle: sys::CUdevice,
}

impl DeviceInfo {
    /// Returns the compute capability as one number, such as `90` for 9.0, as NVRTC takes it.
    pub fn arch(&self) -> u32 {
        self.compute_capability.0 * 10 + self.compute_capability.1
    }

    /// Returns the identifier of the physical device, which no other device of any machine has.
    pub fn uuid(&self) -> Result<[u8; 16]> {
        let mut uuid = [0; 16];
        // SAFETY: the handle comes from the probe. The driver writes 16 bytes to the out-pointer, which is a local.
        check_result("cuDeviceGetUuid", unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, self.handle) })?;
        Ok(uuid)
    }
}

/// Returns the driver's version and devices, or the reason why CUDA cannot be used. The detection runs once per process.
pub fn probe_driver() -> std::result::Result<&'static DriverInfo, String> {
    static PROBED_DRIVER: OnceLock<std::result::Result<DriverInfo, String>> = OnceLock::new();
    let run = || catch_unwind(detect_driver).unwrap_or_else(|_| Err("the CUDA driver could not be probed".into()));
    PROBED_DRIVER.get_or_init(run).as_ref().map_err(String::clone)
}

fn detect_driver() -> std::result::Result<DriverInfo, String> {
    if let Some(refusal) = libraries::why_bare_name_is_unsafe(&["libcuda.so", "libcuda64", "libnvcuda"], &libraries::read_process_env) {
        return Err(refusal);
    }
    if sys::driver_library().is_none() {
        let name = libraries::Platform::CURRENT.driver_file_name();
        return Err(format!("no NVIDIA driver: {name} was not found; install the driver of the GPU"));
    }
    let lacking: Vec<_> = sys::REQUIRED.iter().copied().filter(|name| !has_symbol(name)).collect();
    if !lacking.is_empty() {
        return Err(format!("the NVIDIA driver is too old: it lacks {}; update it to 525 or later", lacking.join(", ")));
    }
    // SAFETY: the driver library exports `cuInit`, which may be called at any time and more than once.
    let init = unsafe { sys::cuInit(0) };
    check_result("cuInit", init).map_err(|e| match init {
        CUresult::CUDA_ERROR_NO_DEVICE => "the NVIDIA driver sees no GPU (CUDA_ERROR_NO_DEVICE); check CUDA_VISIBLE_DEVICES".into(),
        CUresult::CUDA_ERROR_STUB_LIBRARY => "the libcuda found is the toolkit's stub; remove it from LD_LIBRARY_PATH".into(),
        _ => e.to_string(),
    })?;
    let message = |e: CudaError| e.to_string();
    let mut version = 0;
    // SAFETY: the out-pointer `version` is a local.
    check_result("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) }).map_err(message)?;
    let shown = (version.unsigned_abs() / 1000, version.unsigned_abs() % 1000 / 10);
    if version < OLDEST_DRIVER_VERSION {
        return Err(format!("the NVIDIA driver supports CUDA {}.{}; 12.0 is needed: update it to 525 or later", shown.0, shown.1));
    }
    let mut count = 0;
    // SAFETY: the out-pointer `count` is a local.
    check_result("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) }).map_err(message)?;
    if count < 1 {
        return Err("the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES".into());
    }
    let devices = (0..count).map(device_info).collect::<Result<Vec<_>>>().map_err(message)?;
    Ok(DriverInfo { version: shown, devices })
}

/// Returns an error if the driver lacks the function `name`. Must precede calls of driver functions that the oldest supported driver may
/// lack.
pub fn require_function(name: &'static str) -> Result<()> {
    probe_driver().map_err(CudaError::Missing)?;
    if has_symbol(name) { Ok(()) } else { Err(CudaError::Missing(format!("the NVIDIA driver lacks {name}; update it"))) }
}

fn has_symbol(name: &str) -> bool {
    // SAFETY: the symbol is looked up and never called through this type.
    sys::driver_library().is_some_and(|library| unsafe { library.get::<unsafe extern "C" fn()>(name) }.is_ok())
}

fn device_info(ordinal: c_int) -> Result<DeviceInfo> {
    let mut handle = 0;
    // SAFETY: the driver is initialised, and the out-pointer `handle` is a local.
    check_result("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut handle, ordinal) })?;
    let mut name = [0u8; 256];
    // SAFETY: `name` has `name.len()` bytes, and the driver ends the string with NUL.
    check_result("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, handle) })?;
    let name = String::from_utf8_lossy(name.split(|&b| b == 0).next().unwrap_or_default()).into_owned();
    let mut total_memory = 0usize;
    // SAFETY: the out-pointer `total_memory` is a local.
    check_result("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut total_memory, handle) })?;
    let get = |attribute| {
        let mut value: c_int = 0;
        // SAFETY: the out-pointer `value` is a local. The driver returns an error code for an unknown attribute.
        check_result("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, handle) })?;
        Ok::<u32, CudaError>(value.unsigned_abs())
    };
    Ok(DeviceInfo {
        ordinal: ordinal.unsigned_abs() as usize,
        name,
        compute_capability: (
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        sm_count: get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        total_memory: total_memory as u64,
        l2_bytes: get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        shared_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        shared_per_block_optin: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        shared_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        threads_per_sm: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        single_to_double_ratio: get(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)?,
        memory_pools: get(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0,
        handle,
    })
}
