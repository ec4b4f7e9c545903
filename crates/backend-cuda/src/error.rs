//! The errors of the CUDA foundations: what the driver, the compiler and the libraries can say.
//!
//! They know nothing of operations or shapes; the device driver built on top adds those when it turns a
//! [`CudaError`] into the core's error.

use crate::driver::sys::CUresult;

/// Shorthand for results of this crate's foundations.
pub type Result<T> = std::result::Result<T, CudaError>;

/// What can go wrong between us and the GPU.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// A driver call failed. Errors of earlier asynchronous work are returned by whichever call comes next.
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
        /// The first line that the log complains about, as `number | text`, when it lies in the program itself.
        source_line: Option<String>,
    },
    /// The device (or the limit set for it) has no room, even after unused pool memory was returned.
    #[error("out of GPU memory: {requested} bytes asked for, {used} in use by arrays, limit {limit}")]
    OutOfMemory {
        /// Bytes asked for.
        requested: u64,
        /// Bytes held by live buffers of this process on this device.
        used: u64,
        /// The limit in force: the configured one, else the device's memory.
        limit: u64,
    },
    /// A library, header or device feature is not there; the text says what, why, and what would help.
    #[error("{0}")]
    Missing(String),
    /// A kernel found a bad value (an index out of bounds) and reported it in the launch's error word.
    #[error("a kernel reported fault {code} for operation {op}: value {value}, length {length}")]
    DeviceFault {
        /// What kind of fault; `1` is an index out of bounds. See [`crate::driver::fault`].
        code: u64,
        /// The operation id that the launch passed in.
        op: u64,
        /// The offending value, e.g. the index.
        value: i64,
        /// The length that it had to respect.
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
        /// The device's number.
        device: usize,
        /// The first call that failed with the sticky error, and the work queued before it.
        cause: String,
    },
    /// An argument is out of range; nothing was done.
    #[error("{0}")]
    Invalid(String),
}

impl CudaError {
    /// True for errors after which the CUDA context cannot be used any more in this process
    /// (the driver returns them from every later call).
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
