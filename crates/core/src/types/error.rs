//! The error type. Every variant carries the operation and the shapes, dtypes or device involved.

use std::fmt;

use super::device::Device;
use super::dtype::DType;

/// `Result` with cuprum's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a cuprum operation. Messages begin with `[op]`.
///
/// `Debug` writes the same text as `Display`, because `main` and `unwrap` print errors by `Debug`. Errors are cloneable, because a failed
/// deferred array stores its error and returns it to every reader.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Incompatible shapes, or an invalid shape.
    #[error("[{op}] {message}{}", shapes_suffix(.shapes))]
    Shape {
        /// NumPy name of the operation.
        op: &'static str,
        /// Description of the problem.
        message: String,
        /// The shapes involved, in argument order.
        shapes: Vec<Vec<usize>>,
    },
    /// A dtype that the operation does not accept.
    #[error("[{op}] {message} (dtypes: {})", dtype_names(.dtypes))]
    DType {
        /// NumPy name of the operation.
        op: &'static str,
        /// Description of the problem and the remedy.
        message: String,
        /// The dtypes involved, in argument order.
        dtypes: Vec<DType>,
    },
    /// An axis outside `-ndim..ndim`.
    #[error("[{op}] axis {axis} is out of bounds for an array of dimension {ndim}")]
    Axis {
        /// NumPy name of the operation.
        op: &'static str,
        /// The axis as passed.
        axis: isize,
        /// Number of axes of the array.
        ndim: usize,
    },
    /// An index out of bounds.
    #[error("[{op}] index {index} is out of bounds for axis {axis} with size {size}")]
    Index {
        /// NumPy name of the operation.
        op: &'static str,
        /// The index as passed.
        index: i64,
        /// The indexed axis.
        axis: usize,
        /// Extent of the axis.
        size: usize,
    },
    /// An argument with an invalid value.
    #[error("[{op}] {message}")]
    Value {
        /// NumPy name of the operation.
        op: &'static str,
        /// Description of the problem and the remedy.
        message: String,
    },
    /// Inputs on different devices, or a device that is not available.
    #[error("[{op}] {message}")]
    Device {
        /// NumPy name of the operation.
        op: &'static str,
        /// Description of the problem, with all devices involved.
        message: String,
    },
    /// No accelerator of the device accepts the call.
    #[error("[{op}] no accelerator of {device} takes {} {}{}", dtype_names(.dtypes), shapes_text(.shapes), tried_accelerators_text(.tried))]
    Unsupported {
        /// NumPy name of the operation.
        op: &'static str,
        /// Dtypes of the inputs, or of the outputs if there are no inputs.
        dtypes: Vec<DType>,
        /// Shapes of the inputs, or of the outputs if there are no inputs.
        shapes: Vec<Vec<usize>>,
        /// The device of the call.
        device: Device,
        /// Every accelerator that was tried, with its reason to decline. Includes the device's base accelerator (the fallback for every
        /// call) even if it has no kernel of the call's family.
        tried: Vec<(&'static str, String)>,
    },
    /// An allocation failed or exceeded a memory limit.
    #[error("[{op}] out of memory on {device}: {requested} bytes requested, {used} in use{}", memory_limit_text(.limit))]
    OutOfMemory {
        /// NumPy name of the operation, or `allocate`.
        op: &'static str,
        /// The device.
        device: Device,
        /// Requested bytes.
        requested: usize,
        /// Bytes in use by cuprum when the allocation failed.
        used: usize,
        /// The limit on cuprum's memory on the device, in bytes; `None` if there is none.
        limit: Option<usize>,
    },
    /// A matrix without the requested decomposition or solution (NumPy's `LinAlgError`).
    #[error("[{op}] {failure}{}", matrix_index_suffix(*.matrix, *.batch))]
    LinAlg {
        /// NumPy name of the operation.
        op: &'static str,
        /// The reason why the decomposition or solution does not exist.
        failure: LinAlgFailure,
        /// Index of the matrix without a result in the flattened batch. If there are several such matrices, it is the index of any of them.
        matrix: usize,
        /// Number of matrices in the batch.
        batch: usize,
    },
    /// A failure inside an accelerator, such as a driver error or a failed compilation.
    #[error("[{op}] {accelerator} failed: {message}")]
    Backend {
        /// Name of the accelerator.
        accelerator: &'static str,
        /// NumPy name of the operation.
        op: &'static str,
        /// Error message of the driver or library that failed.
        message: String,
    },
    /// The device is unusable for the rest of the process, and every call on it returns this error.
    ///
    /// Arrays on the host and on other devices remain usable.
    #[error("[{op}] {device} is lost: {cause}; restart the process to use it again (other devices and arrays on the host still work)")]
    DeviceLost {
        /// NumPy name of the operation.
        op: &'static str,
        /// The device.
        device: Device,
        /// The driver's message for the first failure of the device.
        cause: String,
    },
    /// A failure of another process of a mesh, or of this process as a rank. The mesh is unusable for the rest of the process.
    #[error("[{op}] rank {rank} {message}")]
    Rank {
        /// Name of the operation.
        op: &'static str,
        /// The rank that failed.
        rank: usize,
        /// Description of the failure. The error text is "rank N" followed by this message.
        message: String,
    },
    /// A setting with an invalid value, from an environment variable or a setter.
    #[error("{variable}: {message}")]
    Setting {
        /// Name of the environment variable or of the setter.
        variable: &'static str,
        /// Description of the problem and the accepted values.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {message}")]
    Io {
        /// Path of the file.
        path: String,
        /// Message of the operating system, or of the parser of the file format.
        message: String,
        /// Kind of the system error; `None` for invalid contents.
        kind: Option<std::io::ErrorKind>,
    },
}

/// The reason why a matrix has no decomposition or solution, in NumPy's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinAlgFailure {
    /// The matrix has no inverse.
    #[error("Singular matrix")]
    Singular,
    /// The matrix has no Cholesky factor.
    #[error("Matrix is not positive definite")]
    NotPositiveDefinite,
    /// The eigenvalue iteration did not converge, or the matrix has infinities or NaN.
    #[error("Eigenvalues did not converge")]
    EigenvaluesDiverge,
    /// The singular value iteration did not converge, or the matrix has infinities or NaN.
    #[error("SVD did not converge")]
    SvdDiverges,
    /// The matrix has infinities or NaN.
    #[error("Array must not contain infs or NaNs")]
    NotFinite,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Returns an [`Error::Value`].
    pub fn value(op: &'static str, message: impl Into<String>) -> Error {
        Error::Value { op, message: message.into() }
    }

    /// Returns an [`Error::Shape`] with the shapes involved.
    pub fn shape(op: &'static str, message: impl Into<String>, shapes: &[&[usize]]) -> Error {
        Error::Shape { op, message: message.into(), shapes: shapes.iter().map(|s| s.to_vec()).collect() }
    }

    /// Returns an [`Error::DType`] with the dtypes involved.
    pub fn dtype(op: &'static str, message: impl Into<String>, dtypes: &[DType]) -> Error {
        Error::DType { op, message: message.into(), dtypes: dtypes.to_vec() }
    }

    /// Replaces the operation that the error names by `function`. Applies only to errors about the arguments, the device or the memory of
    /// the current call, or about a matrix without a result.
    ///
    /// Composed functions call this method, so that messages name the function that the user called. Other errors keep their operation,
    /// since they may come from an earlier call. Examples are an index out of bounds and a failure of an accelerator.
    #[cold]
    pub fn with_function_name(mut self, function: &'static str) -> Error {
        match &mut self {
            Error::Shape { op, .. }
            | Error::DType { op, .. }
            | Error::Axis { op, .. }
            | Error::Value { op, .. }
            | Error::Device { op, .. }
            | Error::LinAlg { op, .. }
            | Error::OutOfMemory { op, .. } => *op = function,
            _ => {}
        }
        self
    }

    /// Returns an [`Error::Backend`].
    pub fn backend(accelerator: &'static str, op: &'static str, message: impl fmt::Display) -> Error {
        Error::Backend { accelerator, op, message: message.to_string() }
    }

    /// Returns an [`Error::Io`] for a file with invalid contents.
    pub fn io(path: impl AsRef<std::path::Path>, message: impl fmt::Display) -> Error {
        Error::Io { path: path.as_ref().display().to_string(), message: message.to_string(), kind: None }
    }

    /// Returns an [`Error::Io`] for a system error.
    pub fn system(path: impl AsRef<std::path::Path>, e: impl Into<std::io::Error>) -> Error {
        let e = e.into();
        Error::Io { path: path.as_ref().display().to_string(), message: e.to_string(), kind: Some(e.kind()) }
    }
}

/// Formats a shape as NumPy does: `()`, `(3,)`, `(2, 3)`.
pub fn shape_text(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn shapes_text(shapes: &[Vec<usize>]) -> String {
    shapes.iter().map(|s| shape_text(s)).collect::<Vec<_>>().join(", ")
}

fn shapes_suffix(shapes: &[Vec<usize>]) -> String {
    if shapes.is_empty() { String::new() } else { format!(": {}", shapes_text(shapes)) }
}

fn dtype_names(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ")
}

fn tried_accelerators_text(tried: &[(&'static str, String)]) -> String {
    tried.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect()
}

fn matrix_index_suffix(matrix: usize, batch: usize) -> String {
    if batch == 1 { String::new() } else { format!(" (matrix {matrix} of a batch of {batch})") }
}

fn memory_limit_text(limit: &Option<usize>) -> String {
    limit.map(|l| format!(", limit {l}")).unwrap_or_default()
}
