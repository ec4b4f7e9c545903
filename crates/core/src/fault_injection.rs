//! Failures on request, for tests.
//!
//! Code that may fail for reasons outside the program calls [`should_fail`] or [`inject_io_failure`] at a [`FailurePoint`] first. Without
//! the feature `fault-injection`, no operation fails on request. With the feature, [`with_failure`] makes one operation of a kind fail, so
//! that a test can fail each operation of a program in turn.
//!
//! ```
//! # extern crate cuprum_core as cuprum;
//! # #[cfg(feature = "fault-injection")] {
//! use cuprum::NdArray;
//! use cuprum::fault_injection::{FailurePoint, with_failure};
//! let (array, failed) = with_failure(FailurePoint::HostMemory, 0, || NdArray::from_slice(&[1.0, 2.0]));
//! assert!(failed && array.is_err());
//! # }
//! ```

#[cfg(feature = "fault-injection")]
mod failure_control;

#[cfg(feature = "fault-injection")]
pub use failure_control::{CountingScope, count_operations, with_failure, with_failure_in_scope, with_failures, with_process_abort};

/// A kind of operation that a test can make fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum FailurePoint {
    /// An allocation of host memory, or the check of the memory limit before another allocator allocates host memory.
    HostMemory = 1,
    /// Opening or creating a file.
    FileOpen,
    /// Reading from a file.
    FileRead,
    /// Writing to a file.
    FileWrite,
    /// Renaming a complete file to its final name.
    Rename,
    /// Starting threads.
    Thread,
    /// Compiling a kernel.
    Compile,
    /// An allocation of device memory or pinned memory.
    DeviceMemory,
    /// Loading a module, or finding a kernel in it.
    ModuleLoad,
    /// A launch of a kernel or graph.
    Launch,
    /// A copy or fill by the driver.
    DeviceCopy,
    /// Any other driver call whose failure leaves the driver usable, such as creating an event.
    Driver,
    /// A call of a function of a library such as cuBLAS.
    Library,
}

impl FailurePoint {
    /// All kinds of operations.
    pub const ALL: [FailurePoint; 13] = [
        FailurePoint::HostMemory,
        FailurePoint::FileOpen,
        FailurePoint::FileRead,
        FailurePoint::FileWrite,
        FailurePoint::Rename,
        FailurePoint::Thread,
        FailurePoint::Compile,
        FailurePoint::DeviceMemory,
        FailurePoint::ModuleLoad,
        FailurePoint::Launch,
        FailurePoint::DeviceCopy,
        FailurePoint::Driver,
        FailurePoint::Library,
    ];
}

/// Whether operations can fail on request: the feature `fault-injection`.
pub const FAULT_INJECTION_ENABLED: bool = cfg!(feature = "fault-injection");

/// Returns whether the operation of kind `point` that begins now must fail. Always `false` without the feature `fault-injection`.
#[inline(always)]
pub fn should_fail(point: FailurePoint) -> bool {
    #[cfg(feature = "fault-injection")]
    return failure_control::should_fail(point);
    #[cfg(not(feature = "fault-injection"))]
    {
        let _ = point;
        false
    }
}

/// Returns an error of the operating system if the operation of kind `point` that begins now must fail.
///
/// # Errors
/// If [`should_fail`] returns `true`: "no space left on device" for writes, "permission denied" for opening and renaming, else another
/// error.
#[inline(always)]
pub fn inject_io_failure(point: FailurePoint) -> std::io::Result<()> {
    use std::io::ErrorKind;
    if !should_fail(point) {
        return Ok(());
    }
    Err(match point {
        FailurePoint::FileWrite => ErrorKind::StorageFull,
        FailurePoint::FileOpen | FailurePoint::Rename => ErrorKind::PermissionDenied,
        _ => ErrorKind::Other,
    }
    .into())
}
