//! Errors of the driver, the compiler and the libraries.
//!
//! They do not refer to operations or shapes, which [`crate::device`] adds when it converts a [`CudaError`] to core's error.

use crate::driver::sys::CUresult;

/// Shorthand for results of this crate's foundations.
pub type Result<T> = std::result::Result<T, CudaError>;

/// An error of the driver, the compiler or a library.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A driver call failed. Errors of earlier asynchronous work are returned by any later call.
    #[error("{call} failed: {name} ({code})")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The numeric `CUresult`.
        code: u32,
        /// The name of that code, e.g. `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
    },
    /// NVRTC rejected a program.
    #[error("compiling {name} failed{}\n{log}", source_line.as_deref().map(|l| format!(" at: {l}")).unwrap_or_default())]
    Compile {
        /// The program's name.
        name: String,
        /// NVRTC's log.
        log: String,
        /// The first line with an error, as `number | text`, if it is in the program itself.
        source_line: Option<String>,
    },
    /// The device, or the limit for it, has no memory left, even after unused pool memory was returned.
    #[error("out of GPU memory: {requested} bytes requested, {used} in use by arrays, limit {limit}")]
    OutOfMemory {
        /// Requested bytes.
        requested: u64,
        /// Bytes of live buffers of this process on this device.
        used: u64,
        /// The limit: the configured one, else the device's memory.
        limit: u64,
    },
    /// A library, header or device feature is missing. The text has the name, the reason and a remedy.
    #[error("{0}")]
    Missing(String),
    /// A kernel found a bad value (an index out of bounds) and reported it in the launch's error word.
    #[error("a kernel reported fault {code} for operation {op}: value {value}, length {length}")]
    DeviceFault {
        /// The kind of fault; `1` is an index out of bounds. See [`crate::driver::fault`].
        code: u64,
        /// The operation id that the launch passed.
        op: u64,
        /// The invalid value, such as the index.
        value: i64,
        /// The length that bounds the value.
        length: u64,
    },
    /// A cuBLAS call failed.
    #[error("{call} failed: {name} ({code})")]
    Cublas {
        /// The cuBLAS function.
        call: &'static str,
        /// The numeric `cublasStatus_t`.
        code: u32,
        /// The name of that code.
        name: String,
    },
    /// An NVRTC call other than compiling failed.
    #[error("{call} failed: {name} ({code})")]
    Nvrtc {
        /// The NVRTC function.
        call: &'static str,
        /// The numeric `nvrtcResult`.
        code: u32,
        /// The name of that code.
        name: String,
    },
    /// The device's context is unusable for the rest of the process: a sticky error of the driver ended it.
    #[error("cuda:{device} is lost for this process: {cause}")]
    DeviceLost {
        /// Index of the device.
        device: usize,
        /// The first call that failed with the sticky error, and the work queued before it.
        cause: String,
    },
    /// An argument is out of range. Nothing was done.
    #[error("{0}")]
    Invalid(String),
}

impl CudaError {
    /// True for errors after which the CUDA context is unusable in this process. The driver returns them from every later
    /// call.
    pub fn is_sticky(&self) -> bool {
        match self {
            CudaError::Driver { code, .. } => CUresult(*code).is_sticky(),
            CudaError::DeviceLost { .. } => true,
            _ => false,
        }
    }

    /// True for failures that more free device memory may prevent.
    pub fn is_out_of_memory(&self) -> bool {
        const ALLOC_FAILED: u32 = 3;
        const NOT_INITIALIZED: u32 = 1;
        match self {
            CudaError::Driver { code, .. } => CUresult(*code) == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CudaError::OutOfMemory { .. } => true,
            // A library without memory for its own state reports that it is not initialised.
            CudaError::Cublas { call, code, .. } => *code == ALLOC_FAILED || (*call == "cublasCreate" && *code == NOT_INITIALIZED),
            _ => false,
        }
    }
}
