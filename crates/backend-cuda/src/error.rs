//! Errors of the CUDA driver, the compiler NVRTC, and CUDA libraries.
//!
//! A [`CudaError`] names no operation or shape. [`crate::device`] adds them when it converts the error to core's.

use crate::driver::sys::CUresult;

/// The result type of this crate's functions that do not know the operation that calls them.
pub type Result<T> = std::result::Result<T, CudaError>;

/// An error of the CUDA driver, the compiler NVRTC, or a CUDA library.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A driver call failed. The error may come from earlier asynchronous work, which any later call reports.
    #[error("{call} failed: {name} ({code})")]
    Driver {
        /// Name of the driver function.
        call: &'static str,
        /// The driver's result code, a `CUresult`.
        code: u32,
        /// The name of the result code, e.g. `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
    },
    /// NVRTC rejected a program.
    #[error("compiling {name} failed{}\n{log}", source_line.as_deref().map(|l| format!(" at: {l}")).unwrap_or_default())]
    Compile {
        /// Name of the program.
        name: String,
        /// The compiler's log.
        log: String,
        /// The first line with an error as `number | text`, if that line is in the program itself and not in a header.
        source_line: Option<String>,
    },
    /// The device has no memory left, or the memory limit is reached, even after the pool returned its free blocks.
    #[error("out of GPU memory: {requested} bytes requested, {used} in use by arrays, limit {limit}")]
    OutOfMemory {
        /// Size of the failed allocation, in bytes.
        requested: u64,
        /// Sum of the sizes of this process's live buffers on the device, in bytes.
        used: u64,
        /// The configured memory limit, or the size of the device's memory, in bytes.
        limit: u64,
    },
    /// A library, header or device feature is missing. The string contains its name, the reason and a remedy.
    #[error("{0}")]
    Missing(String),
    /// A kernel found an invalid value, such as an index out of bounds, and reported it in the error word of its launch.
    #[error("a kernel reported fault {code} for operation {op}: value {value}, length {length}")]
    DeviceFault {
        /// The kind of fault: `1` is an index out of bounds. See [`crate::driver::fault`].
        code: u64,
        /// The number of the operation that the launch passed to its kernel.
        op: u64,
        /// The invalid value, such as the index.
        value: i64,
        /// The length that the value must be below.
        length: u64,
    },
    /// A cuBLAS call failed.
    #[error("{call} failed: {name} ({code})")]
    Cublas {
        /// Name of the cuBLAS function.
        call: &'static str,
        /// The status code, a `cublasStatus_t`.
        code: u32,
        /// The name of the status code.
        name: String,
    },
    /// A cuFFT call failed.
    #[error("{call} failed: {name} ({code})")]
    Cufft {
        /// Name of the cuFFT function.
        call: &'static str,
        /// The result code, a `cufftResult`.
        code: u32,
        /// The name of the result code.
        name: String,
    },
    /// An NVRTC call failed, other than the compilation of a program.
    #[error("{call} failed: {name} ({code})")]
    Nvrtc {
        /// Name of the NVRTC function.
        call: &'static str,
        /// The result code, an `nvrtcResult`.
        code: u32,
        /// The name of the result code.
        name: String,
    },
    /// An unrecoverable error of the driver made the device's context unusable for the rest of the process.
    #[error("cuda:{device} is lost for this process: {cause}")]
    DeviceLost {
        /// Device index.
        device: usize,
        /// The first call that failed with the unrecoverable error, and the operations queued before it.
        cause: String,
    },
    /// An argument is out of range. The failed function had no effect.
    #[error("{0}")]
    Invalid(String),
}

impl CudaError {
    /// Returns whether this error makes the CUDA context unusable in this process, so that every later driver call returns it too.
    pub fn is_sticky(&self) -> bool {
        match self {
            CudaError::Driver { code, .. } => CUresult(*code).is_sticky(),
            CudaError::DeviceLost { .. } => true,
            _ => false,
        }
    }

    /// Returns whether more free device memory may prevent this error.
    pub fn is_out_of_memory(&self) -> bool {
        const CUFFT_ALLOC_FAILED: u32 = 2;
        const ALLOC_FAILED: u32 = 3;
        const NOT_INITIALIZED: u32 = 1;
        match self {
            CudaError::Driver { code, .. } => CUresult(*code) == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CudaError::OutOfMemory { .. } => true,
            // `cublasCreate` reports "not initialised" if it has no memory for its own state.
            CudaError::Cublas { call, code, .. } => *code == ALLOC_FAILED || (*call == "cublasCreate" && *code == NOT_INITIALIZED),
            CudaError::Cufft { code, .. } => *code == CUFFT_ALLOC_FAILED,
            _ => false,
        }
    }
}
