//! Errors of the CUDA driver, the compiler NVRTC, and CUDA libraries.
//!
//! A [`CudaError`] names no operation or shape. [`crate::device`] adds both when it converts the error to the core crate's error type.

use crate::driver::sys::CUresult;

/// The result type of this crate's functions. The error type [`CudaError`] does not name the operation that failed.
pub type Result<T> = std::result::Result<T, CudaError>;

/// An error of the CUDA driver, the compiler NVRTC, or a CUDA library.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A driver call failed. The cause may be asynchronous work queued earlier, because the driver returns errors of such work from later
    /// calls.
    #[error("{call} failed: {name} ({code})")]
    Driver {
        /// Name of the driver function.
        call: &'static str,
        /// The result code that the driver returned, a `CUresult`.
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
        /// The first source line with an error, as `number | text`, if the log names a line of the program or of an in-memory header.
        source_line: Option<String>,
    },
    /// The device has no memory left, or the memory limit is reached, even after the memory pool returned its free blocks to the driver.
    #[error("out of GPU memory: {requested} bytes requested, {used} in use by arrays, limit {limit}")]
    OutOfMemory {
        /// Size of the failed allocation, in bytes.
        requested: u64,
        /// Sum of the sizes of this process's live buffers on the device, in bytes.
        used: u64,
        /// The configured memory limit, or the size of the device's memory, in bytes.
        limit: u64,
    },
    /// A library, header or device feature is missing. The string contains the name of the missing item, the reason and a remedy.
    #[error("{0}")]
    Missing(String),
    /// A kernel found an invalid value, such as an index out of bounds, and reported it in the error word of its launch.
    #[error("a kernel reported fault {code} for operation {op}: value {value}, length {length}")]
    DeviceFault {
        /// The kind of fault: `1` is an index out of bounds. See [`crate::driver::fault`] and
        /// [`crate::device::SEGMENT_OFFSET_OUT_OF_BOUNDS`].
        code: u64,
        /// The operation and axis of the fault, as a number ([`crate::device::fault_operation_id`]) that the launch passed to its kernel.
        op: u64,
        /// The invalid value, such as the index.
        value: i64,
        /// The bound that the value must be below, such as the length of the indexed axis.
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
    /// A cuSOLVER call failed.
    #[error("{call} failed: {name} ({code})")]
    Cusolver {
        /// Name of the cuSOLVER function.
        call: &'static str,
        /// The status code, a `cusolverStatus_t`.
        code: u32,
        /// The name of the status code.
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
        /// The first call that failed with the unrecoverable error, and the operations that its thread queued before.
        cause: String,
    },
    /// A call that is not allowed, such as one with an argument out of range, or a wait during a capture.
    #[error("{0}")]
    Invalid(String),
}

impl CudaError {
    /// Returns whether this error makes the CUDA context unusable in this process, so that every later driver call fails with this error.
    pub fn is_sticky(&self) -> bool {
        match self {
            CudaError::Driver { code, .. } => CUresult(*code).is_sticky(),
            CudaError::DeviceLost { .. } => true,
            _ => false,
        }
    }

    /// Returns whether the cause of this error may be too little free device memory.
    pub fn is_out_of_memory(&self) -> bool {
        const CUFFT_ALLOC_FAILED: u32 = 2;
        const CUBLAS_ALLOC_FAILED: u32 = 3;
        const CUBLAS_NOT_INITIALIZED: u32 = 1;
        const CUSOLVER_ALLOC_FAILED: u32 = 2;
        const CUSOLVER_NOT_INITIALIZED: u32 = 1;
        match self {
            CudaError::Driver { code, .. } => CUresult(*code) == CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CudaError::OutOfMemory { .. } => true,
            // `cublasCreate` reports "not initialised" if it has no memory for its own state.
            CudaError::Cublas { call, code, .. } => {
                *code == CUBLAS_ALLOC_FAILED || (*call == "cublasCreate" && *code == CUBLAS_NOT_INITIALIZED)
            }
            CudaError::Cufft { code, .. } => *code == CUFFT_ALLOC_FAILED,
            CudaError::Cusolver { call, code, .. } => {
                *code == CUSOLVER_ALLOC_FAILED || (*call == "cusolverDnCreate" && *code == CUSOLVER_NOT_INITIALIZED)
            }
            _ => false,
        }
    }
}
