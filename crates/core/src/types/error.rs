//! The one error type. Every variant carries what a user needs to act: the op, shapes, dtypes, device.

use std::fmt;

use crate::device::Device;
use crate::dtype::DType;

/// `Result` with cuprum's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong. Messages begin with `[op]`.
///
/// Cloneable, because a failed deferred array keeps its error and hands it to every reader.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Shapes that do not fit together, or a shape that is not possible.
    #[error("[{op}] {message}{}", shapes_suffix(.shapes))]
    Shape {
        /// NumPy name of the operation.
        op: &'static str,
        /// What does not fit.
        message: String,
        /// The shapes involved, in argument order.
        shapes: Vec<Vec<usize>>,
    },
    /// A dtype that the operation does not take.
    #[error("[{op}] {message} (dtypes: {})", names(.dtypes))]
    DType {
        /// NumPy name of the operation.
        op: &'static str,
        /// What is wrong, and what to do.
        message: String,
        /// The dtypes involved, in argument order.
        dtypes: Vec<DType>,
    },
    /// An axis outside `-ndim..ndim`, or one named twice.
    #[error("[{op}] axis {axis} is out of bounds for an array of dimension {ndim}")]
    Axis {
        /// NumPy name of the operation.
        op: &'static str,
        /// The axis as given.
        axis: isize,
        /// The array's number of dimensions.
        ndim: usize,
    },
    /// An index outside its axis.
    #[error("[{op}] index {index} is out of bounds for axis {axis} with size {size}")]
    Index {
        /// NumPy name of the operation.
        op: &'static str,
        /// The index as given.
        index: i64,
        /// The axis it addresses.
        axis: usize,
        /// That axis' extent.
        size: usize,
    },
    /// An argument whose value is not allowed.
    #[error("[{op}] {message}")]
    Value {
        /// NumPy name of the operation.
        op: &'static str,
        /// What is wrong, and what to do.
        message: String,
    },
    /// Inputs on different devices, or a device that is not there.
    #[error("[{op}] {message}")]
    Device {
        /// NumPy name of the operation.
        op: &'static str,
        /// What is wrong; names every device involved.
        message: String,
    },
    /// No accelerator of the device takes this call.
    #[error("[{op}] no accelerator of {device} takes {} {}{}", names(.dtypes), shapes_text(.shapes), tried_text(.tried))]
    Unsupported {
        /// NumPy name of the operation.
        op: &'static str,
        /// Input dtypes.
        dtypes: Vec<DType>,
        /// Input shapes.
        shapes: Vec<Vec<usize>>,
        /// The device asked.
        device: Device,
        /// Each accelerator asked, with its reason to decline; the device's own too if it has no kernel of the family.
        tried: Vec<(&'static str, String)>,
    },
    /// Memory ran out, or a limit was reached.
    #[error("[{op}] out of memory on {device}: {requested} bytes requested, {used} in use{}", limit_text(.limit))]
    OutOfMemory {
        /// NumPy name of the operation, or `allocate`.
        op: &'static str,
        /// The device.
        device: Device,
        /// Bytes asked for.
        requested: usize,
        /// Bytes in use by cuprum at that time.
        used: usize,
        /// The limit in force, if any.
        limit: Option<usize>,
    },
    /// An accelerator failed while it ran (a driver error, a failed compile): never "not supported".
    #[error("[{op}] {accelerator} failed: {message}")]
    Backend {
        /// Name of the accelerator.
        accelerator: &'static str,
        /// NumPy name of the operation.
        op: &'static str,
        /// The failure, with the library's own words.
        message: String,
    },
    /// The device cannot be used any more in this process, and every call on it fails with this error. Arrays on the host and on other
    /// devices remain usable. The process has to be restarted to use the device again.
    #[error("[{op}] {device} is lost: {cause}; restart the process to use it again (other devices and arrays on the host still work)")]
    DeviceLost {
        /// NumPy name of the operation.
        op: &'static str,
        /// The device.
        device: Device,
        /// The first failure of the device, in the driver's words.
        cause: String,
    },
    /// A setting (variable or setter) with a value that means nothing.
    #[error("{variable}: {message}")]
    Setting {
        /// The environment variable's name.
        variable: &'static str,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {message}")]
    Io {
        /// The file.
        path: String,
        /// The system's or the format's complaint.
        message: String,
        /// The system's kind of error; `None` if the format is at fault.
        kind: Option<std::io::ErrorKind>,
    },
}

impl Error {
    /// An [`Error::Value`].
    pub fn value(op: &'static str, message: impl Into<String>) -> Error {
        Error::Value { op, message: message.into() }
    }

    /// An [`Error::Shape`] with the shapes involved.
    pub fn shape(op: &'static str, message: impl Into<String>, shapes: &[&[usize]]) -> Error {
        Error::Shape { op, message: message.into(), shapes: shapes.iter().map(|s| s.to_vec()).collect() }
    }

    /// An [`Error::DType`] with the dtypes involved.
    pub fn dtype(op: &'static str, message: impl Into<String>, dtypes: &[DType]) -> Error {
        Error::DType { op, message: message.into(), dtypes: dtypes.to_vec() }
    }

    /// An [`Error::Backend`].
    pub fn backend(accelerator: &'static str, op: &'static str, message: impl fmt::Display) -> Error {
        Error::Backend { accelerator, op, message: message.to_string() }
    }

    /// An [`Error::Io`] for a file whose contents are at fault.
    pub fn io(path: impl AsRef<std::path::Path>, message: impl fmt::Display) -> Error {
        Error::Io { path: path.as_ref().display().to_string(), message: message.to_string(), kind: None }
    }

    /// An [`Error::Io`] for a path, with the system's error.
    pub fn system(path: impl AsRef<std::path::Path>, e: impl Into<std::io::Error>) -> Error {
        let e = e.into();
        Error::Io { path: path.as_ref().display().to_string(), message: e.to_string(), kind: Some(e.kind()) }
    }
}

/// A shape as NumPy prints it: `()`, `(3,)`, `(2, 3)`.
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

fn names(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ")
}

fn tried_text(tried: &[(&'static str, String)]) -> String {
    tried.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect()
}

fn limit_text(limit: &Option<usize>) -> String {
    limit.map(|l| format!(", limit {l}")).unwrap_or_default()
}
