//! The part of cuTENSOR 2's C interface that this crate uses, bound at run time. `unsafe` is allowed here.
//!
//! Signatures and constants are those of the library's `cutensor.h` and `types.h`, versions 2.0 to 2.8. Status codes are plain integers
//! ([`Status`]), because a newer library may return codes that an enum lacks.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

use cuprum_backend_cuda::libraries::{LoadedLibrary, MissingLibrary};

/// `cutensorStatus_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Status(pub c_int);

impl Status {
    pub const SUCCESS: Status = Status(0);
    pub const NOT_INITIALIZED: Status = Status(1);
    pub const ALLOC_FAILED: Status = Status(3);
    pub const INVALID_VALUE: Status = Status(7);
    pub const ARCH_MISMATCH: Status = Status(8);
    pub const MAPPING_ERROR: Status = Status(11);
    pub const EXECUTION_FAILED: Status = Status(13);
    pub const INTERNAL_ERROR: Status = Status(14);
    pub const NOT_SUPPORTED: Status = Status(15);
    pub const LICENSE_ERROR: Status = Status(16);
    pub const CUBLAS_ERROR: Status = Status(17);
    pub const CUDA_ERROR: Status = Status(18);
    pub const INSUFFICIENT_WORKSPACE: Status = Status(19);
    pub const INSUFFICIENT_DRIVER: Status = Status(20);
    pub const IO_ERROR: Status = Status(21);

    /// Returns the name of the status code in `types.h`, without the prefix `CUTENSOR_STATUS_`.
    pub fn status_name(self) -> &'static str {
        match self {
            Status::SUCCESS => "SUCCESS",
            Status::NOT_INITIALIZED => "NOT_INITIALIZED",
            Status::ALLOC_FAILED => "ALLOC_FAILED",
            Status::INVALID_VALUE => "INVALID_VALUE",
            Status::ARCH_MISMATCH => "ARCH_MISMATCH",
            Status::MAPPING_ERROR => "MAPPING_ERROR",
            Status::EXECUTION_FAILED => "EXECUTION_FAILED",
            Status::INTERNAL_ERROR => "INTERNAL_ERROR",
            Status::NOT_SUPPORTED => "NOT_SUPPORTED",
            Status::LICENSE_ERROR => "LICENSE_ERROR",
            Status::CUBLAS_ERROR => "CUBLAS_ERROR",
            Status::CUDA_ERROR => "CUDA_ERROR",
            Status::INSUFFICIENT_WORKSPACE => "INSUFFICIENT_WORKSPACE",
            Status::INSUFFICIENT_DRIVER => "INSUFFICIENT_DRIVER",
            Status::IO_ERROR => "IO_ERROR",
            _ => "unknown status",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.status_name(), self.0)
    }
}

/// `cudaDataType_t`, restricted to types that cuTENSOR computes with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum DataType {
    F32 = 0,
    F64 = 1,
    F16 = 2,
    C64 = 4,
    C128 = 5,
    Bf16 = 14,
}

impl DataType {
    /// Returns the size of one element in bytes.
    pub const fn size_in_bytes(self) -> usize {
        match self {
            DataType::F16 | DataType::Bf16 => 2,
            DataType::F32 => 4,
            DataType::F64 | DataType::C64 => 8,
            DataType::C128 => 16,
        }
    }

    /// Returns the type whose `cudaDataType_t` value is `raw`, or `None` if the enum lacks it.
    pub fn from_raw(raw: c_int) -> Option<DataType> {
        use DataType::*;
        [F32, F64, F16, C64, C128, Bf16].into_iter().find(|d| *d as c_int == raw)
    }
}

/// `cutensorOperator_t`, restricted to operators that this crate uses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum Operator {
    Identity = 1,
    Add = 3,
    Mul = 5,
    Abs = 24,
}

/// `cutensorAlgo_t`, restricted to algorithms that this crate uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Algorithm {
    /// The library's heuristics choose the algorithm.
    Default = -1,
    /// Transposes both operands to matrices and multiplies the matrices. This product is the fastest, but the transposes are copies.
    Ttgt = -2,
    /// Transposes one of the two operands of a contraction, and reads the second operand in place.
    Tgett = -3,
    /// Reads both operands in place.
    Gett = -4,
}

/// A choice among the library's contraction kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlgorithmAndRank {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Rank of the kernel in the library's performance model. The kernel of rank 0 is predicted to be the fastest.
    pub rank: i32,
}

impl AlgorithmAndRank {
    /// The variant that lets the library's heuristics choose the kernel.
    pub const DEFAULT: AlgorithmAndRank = AlgorithmAndRank::with_rank(Algorithm::Default, 0);

    /// The contraction kernels among which measurements choose. Each is the fastest for some contractions
    /// (`docs/notes/cutensor-algorithms.md`).
    pub const CONTRACTION_KERNEL_CANDIDATES: [AlgorithmAndRank; 7] = [
        AlgorithmAndRank::with_rank(Algorithm::Gett, 0),
        AlgorithmAndRank::with_rank(Algorithm::Gett, 1),
        AlgorithmAndRank::with_rank(Algorithm::Gett, 4),
        AlgorithmAndRank::with_rank(Algorithm::Tgett, 0),
        AlgorithmAndRank::with_rank(Algorithm::Ttgt, 0),
        AlgorithmAndRank::with_rank(Algorithm::Ttgt, 1),
        AlgorithmAndRank::with_rank(Algorithm::Ttgt, 4),
    ];

    const fn with_rank(algorithm: Algorithm, rank: i32) -> AlgorithmAndRank {
        AlgorithmAndRank { algorithm, rank }
    }

    /// Returns the variant of [`AlgorithmAndRank::CONTRACTION_KERNEL_CANDIDATES`] with this name, such as `gett` or `ttgt2`, or `None` if
    /// there is none.
    pub fn from_name(name: &str) -> Option<AlgorithmAndRank> {
        AlgorithmAndRank::CONTRACTION_KERNEL_CANDIDATES.into_iter().find(|v| v.to_string() == name)
    }
}

/// Writes the name of the variant, such as `gett` or `ttgt2`.
impl fmt::Display for AlgorithmAndRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.algorithm {
            Algorithm::Default => "default",
            Algorithm::Ttgt => "ttgt",
            Algorithm::Tgett => "tgett",
            Algorithm::Gett => "gett",
        })?;
        if self.rank > 0 { write!(f, "{}", self.rank + 1) } else { Ok(()) }
    }
}

/// `CUTENSOR_JIT_MODE_NONE`. Compilation at run time would take seconds and prevent graph capture.
pub const JIT_MODE_NONE: c_int = 0;
/// `CUTENSOR_PLAN_PREFERENCE_KERNEL_RANK`, an int32.
pub const PREFERENCE_KERNEL_RANK: c_int = 4;
/// `CUTENSOR_WORKSPACE_DEFAULT`.
pub const WORKSPACE_DEFAULT: c_int = 2;
/// `CUTENSOR_OPERATION_DESCRIPTOR_SCALAR_TYPE`.
pub const OPERATION_SCALAR_TYPE: c_int = 1;
/// `CUTENSOR_PLAN_REQUIRED_WORKSPACE`.
pub const PLAN_REQUIRED_WORKSPACE: c_int = 0;

pub type Handle = *mut c_void;
pub type TensorDescriptor = *mut c_void;
pub type OperationDescriptor = *mut c_void;
pub type PlanPreference = *mut c_void;
pub type Plan = *mut c_void;
/// `cutensorComputeDescriptor_t`. The library exports variables of this pointer type.
pub type ComputeDescriptor = *mut c_void;
pub type Stream = *mut c_void;

/// Declares a table of functions, which are bound by their C names.
macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $symbol:literal: fn($($arg:ty),* $(,)?) -> $ret:ty;)*) => {
        /// The functions of cuTENSOR. The library is never closed, so the function pointers stay valid.
        #[derive(Clone, Copy, Debug)]
        pub struct CutensorFunctions {
            $($(#[$doc])* pub $field: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        impl CutensorFunctions {
            /// Binds all functions.
            ///
            /// # Errors
            /// Returns an error if the library lacks a function.
            pub fn from_library(library: &LoadedLibrary) -> Result<CutensorFunctions, MissingLibrary> {
                Ok(CutensorFunctions {
                    // SAFETY: each field's type is the function's signature in cutensor.h. The library is never closed.
                    $($field: unsafe { library.symbol($symbol) }?,)*
                })
            }
        }
    };
}

functions! {
    get_version = "cutensorGetVersion": fn() -> usize;
    get_cudart_version = "cutensorGetCudartVersion": fn() -> usize;
    get_error_string = "cutensorGetErrorString": fn(Status) -> *const c_char;
    create = "cutensorCreate": fn(*mut Handle) -> Status;
    /// Arguments: handle, out, number of modes, extents, strides in elements, type, alignment of the base pointer in bytes.
    create_tensor_descriptor = "cutensorCreateTensorDescriptor":
        fn(Handle, *mut TensorDescriptor, u32, *const i64, *const i64, DataType, u32) -> Status;
    destroy_tensor_descriptor = "cutensorDestroyTensorDescriptor": fn(TensorDescriptor) -> Status;
    /// Arguments: handle, out, then (descriptor, modes, unary operator) of A, B and C, (descriptor, modes) of D, precision.
    create_contraction = "cutensorCreateContraction":
        fn(Handle, *mut OperationDescriptor, TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32, Operator,
           TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32, ComputeDescriptor) -> Status;
    /// Arguments: handle, out, then (descriptor, modes, unary operator) of A and C, (descriptor, modes) of D, reduction, precision.
    create_reduction = "cutensorCreateReduction":
        fn(Handle, *mut OperationDescriptor, TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32, Operator,
           TensorDescriptor, *const i32, Operator, ComputeDescriptor) -> Status;
    /// Arguments: handle, out, then (descriptor, modes, unary operator) of A and C, (descriptor, modes) of D, the operator between A and C,
    /// precision.
    create_elementwise_binary = "cutensorCreateElementwiseBinary":
        fn(Handle, *mut OperationDescriptor, TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32, Operator,
           TensorDescriptor, *const i32, Operator, ComputeDescriptor) -> Status;
    /// Arguments: handle, out, then (descriptor, modes, unary operator) of A, B and C, (descriptor, modes) of D, inner and outer operator,
    /// precision.
    create_elementwise_trinary = "cutensorCreateElementwiseTrinary":
        fn(Handle, *mut OperationDescriptor, TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32, Operator,
           TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32, Operator, Operator, ComputeDescriptor) -> Status;
    /// Arguments: handle, out, (descriptor, modes, unary operator) of A, (descriptor, modes) of B, precision.
    create_permutation = "cutensorCreatePermutation":
        fn(Handle, *mut OperationDescriptor, TensorDescriptor, *const i32, Operator, TensorDescriptor, *const i32,
           ComputeDescriptor) -> Status;
    destroy_operation_descriptor = "cutensorDestroyOperationDescriptor": fn(OperationDescriptor) -> Status;
    operation_get_attribute = "cutensorOperationDescriptorGetAttribute":
        fn(Handle, OperationDescriptor, c_int, *mut c_void, usize) -> Status;
    /// Arguments: handle, out, algorithm, JIT mode.
    create_plan_preference = "cutensorCreatePlanPreference": fn(Handle, *mut PlanPreference, Algorithm, c_int) -> Status;
    destroy_plan_preference = "cutensorDestroyPlanPreference": fn(PlanPreference) -> Status;
    plan_preference_set_attribute = "cutensorPlanPreferenceSetAttribute":
        fn(Handle, PlanPreference, c_int, *const c_void, usize) -> Status;
    estimate_workspace_size = "cutensorEstimateWorkspaceSize":
        fn(Handle, OperationDescriptor, PlanPreference, c_int, *mut u64) -> Status;
    /// Arguments: handle, out, operation, preference, maximum workspace in bytes.
    create_plan = "cutensorCreatePlan": fn(Handle, *mut Plan, OperationDescriptor, PlanPreference, u64) -> Status;
    destroy_plan = "cutensorDestroyPlan": fn(Plan) -> Status;
    plan_get_attribute = "cutensorPlanGetAttribute": fn(Handle, Plan, c_int, *mut c_void, usize) -> Status;
    /// Arguments: handle, plan, alpha, A, B, beta, C, D, workspace and its size, stream.
    contract = "cutensorContract":
        fn(Handle, Plan, *const c_void, u64, u64, *const c_void, u64, u64, u64, u64, Stream) -> Status;
    /// Arguments: handle, plan, alpha, A, beta, C, D, workspace and its size, stream.
    reduce = "cutensorReduce": fn(Handle, Plan, *const c_void, u64, *const c_void, u64, u64, u64, u64, Stream) -> Status;
    /// Arguments: handle, plan, alpha, A, gamma, C, D, stream.
    elementwise_binary_execute = "cutensorElementwiseBinaryExecute":
        fn(Handle, Plan, *const c_void, u64, *const c_void, u64, u64, Stream) -> Status;
    /// Arguments: handle, plan, alpha, A, beta, B, gamma, C, D, stream.
    elementwise_trinary_execute = "cutensorElementwiseTrinaryExecute":
        fn(Handle, Plan, *const c_void, u64, *const c_void, u64, *const c_void, u64, u64, Stream) -> Status;
    /// Arguments: handle, plan, alpha, A, B, stream.
    permute = "cutensorPermute": fn(Handle, Plan, *const c_void, u64, u64, Stream) -> Status;
}

/// Descriptors of the arithmetic precisions that the library exports. A descriptor is `None` if the library does not export it.
#[derive(Clone, Copy, Debug)]
pub struct ComputeDescriptors {
    /// `CUTENSOR_COMPUTE_DESC_32F`: full float32 without tensor cores.
    pub f32: Option<ComputeDescriptor>,
    /// `CUTENSOR_COMPUTE_DESC_64F`.
    pub f64: Option<ComputeDescriptor>,
    /// `CUTENSOR_COMPUTE_DESC_TF32`.
    pub tf32: Option<ComputeDescriptor>,
    /// `CUTENSOR_COMPUTE_DESC_16BF`.
    pub bf16: Option<ComputeDescriptor>,
}

// SAFETY: the descriptors are addresses of constants in the library.
unsafe impl Send for ComputeDescriptors {}
// SAFETY: the descriptors are addresses of constants in the library, which no thread changes.
unsafe impl Sync for ComputeDescriptors {}

impl ComputeDescriptors {
    /// Reads the descriptors that the library exports.
    pub fn from_library(library: &LoadedLibrary) -> ComputeDescriptors {
        let read = |name: &str| {
            // SAFETY: the symbol is a variable of type `ComputeDescriptor`.
            let variable = unsafe { library.symbol::<*const ComputeDescriptor>(name) }.ok()?;
            // SAFETY: the library initialises the variable and is never closed.
            Some(unsafe { *variable }).filter(|d| !d.is_null())
        };
        ComputeDescriptors {
            f32: read("CUTENSOR_COMPUTE_DESC_32F"),
            f64: read("CUTENSOR_COMPUTE_DESC_64F"),
            tf32: read("CUTENSOR_COMPUTE_DESC_TF32"),
            bf16: read("CUTENSOR_COMPUTE_DESC_16BF"),
        }
    }
}

/// Returns the description that the library gives for a status.
pub fn describe_status(functions: &CutensorFunctions, status: Status) -> String {
    // SAFETY: the function takes any status and returns a static string or null.
    let text = unsafe { (functions.get_error_string)(status) };
    if text.is_null() {
        return status.to_string();
    }
    // SAFETY: the string is static and NUL-terminated.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Returns the version of the library: major, minor, patch.
pub fn library_version(functions: &CutensorFunctions) -> (usize, usize, usize) {
    // SAFETY: the function has no arguments and no side effects.
    let v = unsafe { (functions.get_version)() };
    (v / 10_000, v / 100 % 100, v % 100)
}

/// Returns the CUDA version that the library was built for: major, minor.
pub fn cuda_version_of_build(functions: &CutensorFunctions) -> (usize, usize) {
    // SAFETY: the function has no arguments and no side effects.
    let v = unsafe { (functions.get_cudart_version)() };
    (v / 1000, v % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_data_types_and_variants_have_names() {
        assert_eq!(Status::INSUFFICIENT_WORKSPACE.to_string(), "INSUFFICIENT_WORKSPACE (19)");
        assert_eq!(Status(99).to_string(), "unknown status (99)");
        assert_eq!(DataType::from_raw(14), Some(DataType::Bf16));
        assert_eq!(DataType::from_raw(3), None);
        assert_eq!(
            (AlgorithmAndRank::from_name("ttgt2"), AlgorithmAndRank::from_name("x")),
            (Some(AlgorithmAndRank::with_rank(Algorithm::Ttgt, 1)), None)
        );
        assert!(AlgorithmAndRank::CONTRACTION_KERNEL_CANDIDATES.iter().all(|v| AlgorithmAndRank::from_name(&v.to_string()) == Some(*v)));
    }
}
