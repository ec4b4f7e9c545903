//! A binding to cuBLAS: one handle per device, and the strided, batched matrix product. Contains unsafe code for the C interface of cuBLAS.
//!
//! cuBLAS is **column-major**, and [`Gemm`] keeps that convention. For row-major C = A B, pass B as `a`, A as `b`, n as `m` and
//! m as `n`: cuBLAS then computes C^T = B^T A^T, which is C in row-major order. An operand that is transposed in row-major
//! terms takes `Transpose::Yes` here too.
//!
//! The functions are loaded from the library that [`crate::compile::libraries`] finds. cudarc's loader is not used, because it
//! prefers a `libcublas.so` of any version and panics on a missing symbol.

pub mod batched;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_longlong, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuprum_core::MatmulPrecision;
use cuprum_core::fault_injection::{FailurePoint, should_fail};

use crate::compile::libraries::{self, LibrarySpec, LoadedLibrary, MissingLibrary};
use crate::driver::{Context, DeviceBuffer, PerDevice, sys};
use crate::error::{CudaError, Result};

/// The element type of a matrix product. The variants have cuprum's dtype names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlasType {
    /// IEEE half, accumulated in f32.
    F16,
    /// bfloat16, accumulated in f32.
    Bf16,
    /// f32, in full precision unless [`Gemm::precision`] allows less.
    F32,
    /// f64.
    F64,
    /// Complex numbers with f32 real and imaginary parts.
    C64,
    /// Complex numbers with f64 real and imaginary parts.
    C128,
}

/// The form in which cuBLAS reads an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Transpose {
    /// The operand as stored.
    No = 0,
    /// The transpose of the stored operand.
    Yes = 1,
    /// The conjugate transpose of the stored operand.
    Conjugate = 2,
}

/// `batch` matrix products C = alpha op(A) op(B) + beta C in column-major order: op(A) is m x k, op(B) k x n, C m x n.
///
/// Addresses are device addresses. If `stride_a` or `stride_b` is 0, all products use the same A or B.
#[derive(Debug, Clone, Copy)]
pub struct Gemm {
    /// Type of A, B and C.
    pub dtype: BlasType,
    /// The forms in which A and B are multiplied: op(A) and op(B).
    pub transpose: (Transpose, Transpose),
    /// Number of rows of C.
    pub m: i64,
    /// Number of columns of C.
    pub n: i64,
    /// Length of the contracted axis: columns of op(A), rows of op(B).
    pub k: i64,
    /// The factor alpha of the product: real and imaginary part.
    pub alpha: (f64, f64),
    /// Device address of the matrix A of the first product.
    pub a: u64,
    /// Leading dimension of A as stored, in elements.
    pub lda: i64,
    /// Distance between the matrices A of consecutive products, in elements.
    pub stride_a: i64,
    /// Device address of the matrix B of the first product.
    pub b: u64,
    /// Leading dimension of B as stored, in elements.
    pub ldb: i64,
    /// Distance between the matrices B of consecutive products, in elements.
    pub stride_b: i64,
    /// The factor beta of the previous C: real and imaginary part. If beta is (0, 0), C is not read.
    pub beta: (f64, f64),
    /// Device address of the matrix C of the first product.
    pub c: u64,
    /// Leading dimension of C, in elements.
    pub ldc: i64,
    /// Distance between the matrices C of consecutive products, in elements.
    pub stride_c: i64,
    /// Number of matrix products.
    pub batch: i64,
    /// Minimum precision, if `dtype` is `F32` or `C64`. Products of other types ignore this field.
    pub precision: MatmulPrecision,
}

/// The side of X on which the matrix of a triangular system is: A X = B or X A = B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriangularMatrixSide {
    /// A X = B.
    Left = 0,
    /// X A = B.
    Right = 1,
}

/// A system op(A) X = B or X op(A) = B in column-major order, whose solution X replaces B. A is square and triangular. B and X are m x n.
///
/// In row-major order, the same memory holds the transposes: B is n x m, and the equation of [`TriangularMatrixSide::Right`] is op(A^T)^T X
/// = B.
#[derive(Debug, Clone, Copy)]
pub struct TriangularSystem {
    /// Type of A and B: a 32- or 64-bit float or complex number.
    pub dtype: BlasType,
    /// The side of A.
    pub side: TriangularMatrixSide,
    /// Whether the upper triangle of A is read. If false, the lower triangle is read.
    pub upper: bool,
    /// The operation op: whether A is transposed, and whether it is conjugated.
    pub form: Transpose,
    /// Whether the diagonal elements of A are assumed to be 1 and not read.
    pub unit_diagonal: bool,
    /// Number of rows of B.
    pub m: i32,
    /// Number of columns of B.
    pub n: i32,
    /// Device address of A. For a batch, that of an array with the device addresses of the matrices A.
    pub a: u64,
    /// Leading dimension of A, in elements.
    pub lda: i32,
    /// Device address of B. For a batch, that of an array with the device addresses of the matrices B.
    pub b: u64,
    /// Leading dimension of B, in elements.
    pub ldb: i32,
}

/// A factor (alpha or beta) as bytes of the type in which cuBLAS computes.
#[repr(C, align(16))]
struct BlasScalar([u8; 16]);

impl BlasScalar {
    fn from_complex(dtype: BlasType, (re, im): (f64, f64)) -> BlasScalar {
        let mut bytes = [0; 16];
        match dtype {
            BlasType::F64 | BlasType::C128 => {
                bytes[..8].copy_from_slice(&re.to_ne_bytes());
                bytes[8..].copy_from_slice(&im.to_ne_bytes());
            }
            _ => {
                bytes[..4].copy_from_slice(&(re as f32).to_ne_bytes());
                bytes[4..8].copy_from_slice(&(im as f32).to_ne_bytes());
            }
        }
        BlasScalar(bytes)
    }
}

impl BlasType {
    /// Returns the `cudaDataType_t` of elements of this type.
    fn cuda_data_type(self) -> c_int {
        match self {
            BlasType::F16 => 2,
            BlasType::Bf16 => 14,
            BlasType::F32 => 0,
            BlasType::F64 => 1,
            BlasType::C64 => 4,
            BlasType::C128 => 5,
        }
    }

    /// Returns the `cublasComputeType_t` for this element type and `precision`.
    fn cublas_compute_type(self, precision: MatmulPrecision) -> c_int {
        const CUBLAS_COMPUTE_32F: c_int = 68;
        const CUBLAS_COMPUTE_32F_FAST_16BF: c_int = 75;
        const CUBLAS_COMPUTE_32F_FAST_TF32: c_int = 77;
        const CUBLAS_COMPUTE_64F: c_int = 70;
        match (self, precision) {
            (BlasType::F64 | BlasType::C128, _) => CUBLAS_COMPUTE_64F,
            (BlasType::F32 | BlasType::C64, MatmulPrecision::TensorFloat32) => CUBLAS_COMPUTE_32F_FAST_TF32,
            (BlasType::F32 | BlasType::C64, MatmulPrecision::BFloat16) => CUBLAS_COMPUTE_32F_FAST_16BF,
            _ => CUBLAS_COMPUTE_32F,
        }
    }
}

type Handle = *mut c_void;
type Operand<I> = (*const c_void, c_int, I, c_longlong);
type Trsm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    *mut c_void,
    c_int,
) -> c_int;
type Gemm32 = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    c_longlong,
    c_int,
    c_int,
    c_int,
) -> c_int;
type Gemm64 = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    i64,
    i64,
    i64,
    *const c_void,
    *const c_void,
    c_int,
    i64,
    c_longlong,
    *const c_void,
    c_int,
    i64,
    c_longlong,
    *const c_void,
    *mut c_void,
    c_int,
    i64,
    c_longlong,
    i64,
    c_int,
    c_int,
) -> c_int;

/// Function pointers of the cuBLAS library. C enums are passed as integers.
struct CublasApi {
    create: unsafe extern "C" fn(*mut Handle) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    set_stream: unsafe extern "C" fn(Handle, sys::CUstream) -> c_int,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> c_int,
    set_math_mode: unsafe extern "C" fn(Handle, c_int) -> c_int,
    get_version: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    gemm: Gemm32,
    /// The matrix product with 64-bit extents. `None` for cuBLAS before CUDA 12.
    gemm_64: Option<Gemm64>,
    /// `trsm`, the solution of triangular systems, for f32, f64, and their complex types.
    trsm: [Trsm; 4],
    batched: batched::CublasBatchedApi,
    path: PathBuf,
    _library: ManuallyDrop<LoadedLibrary>,
}

impl CublasApi {
    fn load_functions(driver_major: u32) -> std::result::Result<CublasApi, MissingLibrary> {
        let loaded = libraries::load_library(&LibrarySpec::cublas_spec(driver_major))?;
        // SAFETY: the type of each field is the function's signature in cublas_api.h. The library is never closed.
        unsafe {
            Ok(CublasApi {
                create: loaded.symbol("cublasCreate_v2")?,
                destroy: loaded.symbol("cublasDestroy_v2")?,
                set_stream: loaded.symbol("cublasSetStream_v2")?,
                set_workspace: loaded.symbol("cublasSetWorkspace_v2")?,
                set_math_mode: loaded.symbol("cublasSetMathMode")?,
                get_version: loaded.symbol("cublasGetVersion_v2")?,
                gemm: loaded.symbol("cublasGemmStridedBatchedEx")?,
                // `cublasGemmStridedBatchedEx_64` is absent before CUDA 12.
                gemm_64: loaded.symbol("cublasGemmStridedBatchedEx_64").ok(),
                trsm: [
                    loaded.symbol("cublasStrsm_v2")?,
                    loaded.symbol("cublasDtrsm_v2")?,
                    loaded.symbol("cublasCtrsm_v2")?,
                    loaded.symbol("cublasZtrsm_v2")?,
                ],
                batched: batched::CublasBatchedApi::load_functions(&loaded)?,
                path: loaded.path.clone(),
                _library: ManuallyDrop::new(loaded),
            })
        }
    }

    /// Returns the functions of cuBLAS. The first call loads the library.
    fn shared_functions(driver_major: u32) -> Result<&'static CublasApi> {
        static CUBLAS_API: OnceLock<std::result::Result<CublasApi, MissingLibrary>> = OnceLock::new();
        CUBLAS_API.get_or_init(|| CublasApi::load_functions(driver_major)).as_ref().map_err(|m| m.clone().into())
    }
}

/// Returns the path of cuBLAS without loading it, or the reason why it is missing.
pub fn locate_cublas(driver_major: u32) -> std::result::Result<PathBuf, String> {
    libraries::locate_library(&LibrarySpec::cublas_spec(driver_major)).map_err(|m| m.to_string())
}

/// A cuBLAS handle of one device, with the library's functions.
pub struct DeviceCublas {
    api: &'static CublasApi,
    context: &'static Context,
    /// The handle, which one thread at a time can use. Calls only queue work, so the lock is held briefly.
    handle: Mutex<BlasHandle>,
    version: u32,
}

/// A cuBLAS handle, and the stream and workspaces for which it is configured.
struct BlasHandle {
    handle: Handle,
    /// Number of the stream to which the cuBLAS handle is set, or `None` if the stream must be set again.
    stream: Option<u32>,
    /// Workspaces by stream number. Each stream has its own, because work on different streams may run concurrently.
    workspaces: Vec<Option<DeviceBuffer>>,
}

// SAFETY: cuBLAS allows a handle to move between threads, and the mutex around the handle serialises its use.
unsafe impl Send for BlasHandle {}

impl std::fmt::Debug for DeviceCublas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceCublas({} at {})", self.version, self.api.path.display())
    }
}

impl Context {
    /// Returns cuBLAS for this device. The first call loads and initialises cuBLAS, which takes some 50 ms.
    pub fn blas(&'static self) -> Result<&'static DeviceCublas> {
        static BLAS_HANDLES: PerDevice<OnceLock<DeviceCublas>> = PerDevice::new();
        let blas = BLAS_HANDLES.get_or_create(self);
        if let Some(made) = blas.get() {
            return Ok(made);
        }
        // Caches only the error that cuBLAS does not support the device. Other errors may be temporary, such as a lack of device memory.
        static DEVICES_WITHOUT_CUBLAS_SUPPORT: Mutex<BTreeMap<usize, CudaError>> = Mutex::new(BTreeMap::new());
        let mut refusals = DEVICES_WITHOUT_CUBLAS_SUPPORT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = blas.get() {
            return Ok(made);
        }
        if let Some(refusal) = refusals.get(&self.info().ordinal) {
            return Err(refusal.clone());
        }
        match DeviceCublas::new(self) {
            Ok(made) => Ok(blas.get_or_init(|| made)),
            Err(e) => {
                if is_unsupported_error(&e) {
                    refusals.insert(self.info().ordinal, e.clone());
                }
                Err(e)
            }
        }
    }
}

impl DeviceCublas {
    fn new(context: &'static Context) -> Result<DeviceCublas> {
        let api = CublasApi::shared_functions(context.driver_version().0)?;
        let mut handle = ptr::null_mut();
        context.retry_in_current_context(|| {
            // SAFETY: the context is current, and the out-pointer `handle` is a local.
            check_library_status(context, "cublasCreate", unsafe { (api.create)(&mut handle) })
        })?;
        // The math mode is DEFAULT_MATH with DISALLOW_REDUCED_PRECISION_REDUCTION (16), so that f16 and bf16 sums stay in f32 even if k is
        // split. SAFETY: `handle` was just created, and the flag is documented.
        let made = check_status("cublasSetMathMode", unsafe { (api.set_math_mode)(handle, 16) });
        let mut version = 0;
        let made = made.and_then(|()| {
            // SAFETY: `handle` was just created, and the out-pointer `version` is a local.
            check_status("cublasGetVersion", unsafe { (api.get_version)(handle, &mut version) })
        });
        if let Err(error) = made {
            // SAFETY: `handle` was just created, and no work uses it.
            unsafe { (api.destroy)(handle) };
            return Err(error);
        }
        let handle = Mutex::new(BlasHandle { handle, stream: None, workspaces: Vec::new() });
        Ok(DeviceCublas { api, context, handle, version: version.unsigned_abs() })
    }

    /// Locks the handle and sets it to this thread's stream. Returns the locked handle and, if that stream captures a graph, a workspace
    /// for the graph. Hold both until the work is queued.
    fn lock_handle(&self) -> Result<(MutexGuard<'_, BlasHandle>, Option<DeviceBuffer>)> {
        let mut on = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.context.current_stream_number();
        if on.stream == Some(number) {
            return Ok((on, None));
        }
        on.stream = None;
        self.context.set_current()?;
        // SAFETY: the handle exists and is locked, and the stream is of its context.
        check_library_status(self.context, "cublasSetStream", unsafe { (self.api.set_stream)(on.handle, self.context.stream()) })?;
        // If several streams use cuBLAS, results are equal from run to run only if the program sets a workspace for each stream. The
        // workspace is set after the stream, because setting a stream resets the workspace.
        let (at, bytes) = (number as usize, self.workspace_bytes());
        if self.context.is_capture_stream(number) {
            let workspace = self.context.alloc_on_current_stream(bytes)?;
            self.set_workspace(&on, &workspace)?;
            return Ok((on, Some(workspace)));
        }
        if on.workspaces.len() <= at {
            on.workspaces.resize_with(at + 1, || None);
        }
        if on.workspaces[at].is_none() {
            on.workspaces[at] = self.context.alloc_on_current_stream(bytes).ok();
        }
        if let Some(buffer) = &on.workspaces[at] {
            self.set_workspace(&on, buffer)?;
        }
        on.stream = Some(number);
        Ok((on, None))
    }

    fn set_workspace(&self, on: &BlasHandle, buffer: &DeviceBuffer) -> Result<()> {
        let pointer = ptr::with_exposed_provenance_mut(buffer.pointer() as usize);
        self.context.set_current()?; // because allocating the buffer may have freed memory of another device
        // SAFETY: `buffer` lives as long as the handle is set to it, and one stream uses it in order.
        let code = unsafe { (self.api.set_workspace)(on.handle, pointer, buffer.len()) };
        check_library_status(self.context, "cublasSetWorkspace", code)
    }

    /// Returns the workspace size in bytes that NVIDIA recommends: 32 MiB for Hopper and later, 4 MiB before.
    fn workspace_bytes(&self) -> usize {
        if self.context.info().compute_capability.0 >= 9 { 32 << 20 } else { 4 << 20 }
    }

    /// Returns the version of cuBLAS as a number, such as `130002` for 13.0.2.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the path of the cuBLAS library file.
    pub fn path(&self) -> &Path {
        &self.api.path
    }

    /// Queues the matrix products `gemm` on this thread's stream. If m, n or batch is 0, does nothing. If k is 0, C becomes beta C.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] for negative sizes, or sizes above `i32::MAX` if this cuBLAS has no 64-bit interface. [`CudaError::Cublas`]
    /// if cuBLAS fails.
    ///
    /// # Safety
    /// Until the work has ended, the addresses in `gemm` must be valid on the device of this handle, for all elements that the sizes,
    /// strides and number of products in `gemm` cover.
    pub unsafe fn gemm_strided_batched_ex(&self, gemm: &Gemm) -> Result<()> {
        let sizes = [gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc, gemm.batch];
        if sizes.iter().any(|&s| s < 0) {
            return Err(CudaError::Invalid(format!("a matrix product with a negative size: {gemm:?}")));
        }
        if gemm.m == 0 || gemm.n == 0 || gemm.batch == 0 {
            return Ok(());
        }
        let (alpha, beta) = (BlasScalar::from_complex(gemm.dtype, gemm.alpha), BlasScalar::from_complex(gemm.dtype, gemm.beta));
        let (alpha, beta) = (ptr::from_ref(&alpha).cast::<c_void>(), ptr::from_ref(&beta).cast::<c_void>());
        let (ta, tb) = (gemm.transpose.0 as c_int, gemm.transpose.1 as c_int);
        let (dtype, compute) = (gemm.dtype.cuda_data_type(), gemm.dtype.cublas_compute_type(gemm.precision));
        let a: Operand<i64> = (as_c_pointer(gemm.a), dtype, gemm.lda, gemm.stride_a);
        let b: Operand<i64> = (as_c_pointer(gemm.b), dtype, gemm.ldb, gemm.stride_b);
        let c = as_c_pointer(gemm.c).cast_mut();
        const CUBLAS_GEMM_DEFAULT: c_int = -1;
        let (on, _workspace) = self.lock_handle()?;
        let small = sizes.map(i32::try_from);
        if let [Ok(m), Ok(n), Ok(k), Ok(lda), Ok(ldb), Ok(ldc), Ok(batch)] = small {
            // The call is retried if the device is out of memory. cuBLAS may load kernels and allocate memory in the first call for a dtype
            // or a shape.
            return self.context.retry_in_current_context(|| {
                // SAFETY: this thread holds the locked handle. The factors live through the call (host pointer mode is the default). The
                // caller guarantees that the device addresses are valid.
                let code = unsafe {
                    (self.api.gemm)(
                        on.handle,
                        ta,
                        tb,
                        m,
                        n,
                        k,
                        alpha,
                        a.0,
                        a.1,
                        lda,
                        a.3,
                        b.0,
                        b.1,
                        ldb,
                        b.3,
                        beta,
                        c,
                        dtype,
                        ldc,
                        gemm.stride_c,
                        batch,
                        compute,
                        CUBLAS_GEMM_DEFAULT,
                    )
                };
                check_library_status(self.context, "cublasGemmStridedBatchedEx", code)
            });
        }
        let Some(gemm_64) = self.api.gemm_64 else {
            let text = format!("matrix sizes past 2^31 need cuBLAS 12 or later; {} is older", self.api.path.display());
            return Err(CudaError::Invalid(text));
        };
        self.context.retry_in_current_context(|| {
            // SAFETY: the caller guarantees that extents and addresses are valid. This thread holds the locked handle.
            let code = unsafe {
                gemm_64(
                    on.handle,
                    ta,
                    tb,
                    gemm.m,
                    gemm.n,
                    gemm.k,
                    alpha,
                    a.0,
                    a.1,
                    a.2,
                    a.3,
                    b.0,
                    b.1,
                    b.2,
                    b.3,
                    beta,
                    c,
                    dtype,
                    gemm.ldc,
                    gemm.stride_c,
                    gemm.batch,
                    compute,
                    CUBLAS_GEMM_DEFAULT,
                )
            };
            check_library_status(self.context, "cublasGemmStridedBatchedEx_64", code)
        })
    }

    /// Queues the solution of `system` on this thread's stream.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] for a dtype of 16 bits. [`CudaError::Cublas`] for all other failures.
    ///
    /// # Safety
    /// The addresses in `system` must be valid on this handle's device for its extents until the work has ended.
    pub unsafe fn solve_triangular(&self, system: &TriangularSystem) -> Result<()> {
        let at = blas_type_index(system.dtype)?;
        let &TriangularSystem { side, m, n, lda, ldb, .. } = system;
        let one = BlasScalar::from_complex(system.dtype, (1.0, 0.0));
        let (one, a, b) = (ptr::from_ref(&one).cast::<c_void>(), as_c_pointer(system.a), as_c_pointer(system.b).cast_mut());
        let (fill, form, unit) = (c_int::from(system.upper), system.form as c_int, c_int::from(system.unit_diagonal));
        let (on, _workspace) = self.lock_handle()?;
        // The call is not retried if the device is out of memory, because it may have overwritten its input.
        // SAFETY: this thread holds the locked handle. The factor lives through the call. The caller guarantees that the addresses are
        // valid.
        let code = unsafe { (self.api.trsm[at])(on.handle, side as c_int, fill, form, unit, m, n, one, a, lda, b, ldb) };
        check_library_status(self.context, "cublas<t>trsm", code)
    }
}

/// Returns the index of the function for `dtype` in an array with functions for f32, f64, and their complex types.
fn blas_type_index(dtype: BlasType) -> Result<usize> {
    match dtype {
        BlasType::F32 => Ok(0),
        BlasType::F64 => Ok(1),
        BlasType::C64 => Ok(2),
        BlasType::C128 => Ok(3),
        other => Err(CudaError::Invalid(format!("cuBLAS has no decompositions or triangular systems of {other:?}"))),
    }
}

fn as_c_pointer(pointer: u64) -> *const c_void {
    // A device address becomes a pointer only for the C interface. The host never dereferences it.
    ptr::with_exposed_provenance(pointer as usize)
}

/// Converts the status `code` of the cuBLAS function `call` to a result. If the code is an error, also checks whether the device is lost,
/// which cuBLAS's codes do not tell. A lost device is reported as [`CudaError::DeviceLost`].
fn check_library_status(context: &Context, call: &'static str, code: c_int) -> Result<()> {
    check_status(call, code).or_else(|failure| context.check_usable().and(Err(failure)))
}

fn check_status(call: &'static str, code: c_int) -> Result<()> {
    let code = if code == 0 && should_fail(FailurePoint::Library) { 14 } else { code };
    let name = match code {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        16 => "CUBLAS_STATUS_LICENSE_ERROR",
        _ => "unknown status",
    };
    Err(CudaError::Cublas { call, code: code.unsigned_abs(), name: name.into() })
}

/// Converts the result of a cuBLAS call. Returns `None` if cuBLAS does not support the product (`CUBLAS_STATUS_NOT_SUPPORTED`) or the
/// device (`CUBLAS_STATUS_ARCH_MISMATCH`). The failed cuBLAS call has then queued nothing, and the kernels of this crate can compute the
/// product.
pub(crate) fn none_if_refused<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(e) if is_unsupported_error(&e) => {
            tracing::debug!(%e, "cuBLAS declines");
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

fn is_unsupported_error(error: &CudaError) -> bool {
    const CUBLAS_STATUS_ARCH_MISMATCH: u32 = 8;
    const CUBLAS_STATUS_NOT_SUPPORTED: u32 = 15;
    matches!(error, CudaError::Cublas { code: CUBLAS_STATUS_ARCH_MISMATCH | CUBLAS_STATUS_NOT_SUPPORTED, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_declines_and_failures_are_errors() {
        use cudarc::cublas::sys::cublasStatus_t as Status;
        let of = |status: Status| none_if_refused(check_status("cublasGemmStridedBatchedEx", status as c_int));
        assert_eq!(of(Status::CUBLAS_STATUS_SUCCESS).unwrap(), Some(()));
        assert_eq!(of(Status::CUBLAS_STATUS_NOT_SUPPORTED).unwrap(), None);
        assert_eq!(of(Status::CUBLAS_STATUS_ARCH_MISMATCH).unwrap(), None);
        for failure in [Status::CUBLAS_STATUS_ALLOC_FAILED, Status::CUBLAS_STATUS_EXECUTION_FAILED, Status::CUBLAS_STATUS_INVALID_VALUE] {
            assert!(matches!(of(failure), Err(CudaError::Cublas { .. })), "{failure:?}");
        }
        let full = check_status("cublasGemmStridedBatchedEx", Status::CUBLAS_STATUS_ALLOC_FAILED as c_int).unwrap_err();
        assert!(full.is_out_of_memory(), "retried after free blocks were returned");
        let other = none_if_refused::<()>(Err(CudaError::Driver { call: "cuLaunchKernel", code: 8, name: "NAME".into() }));
        assert!(matches!(other, Err(CudaError::Driver { .. })));
    }

    #[test]
    fn scalars_take_the_compute_types_form() {
        assert_eq!(BlasScalar::from_complex(BlasType::F16, (1.0, 0.0)).0[..4], 1.0f32.to_ne_bytes());
        assert_eq!(BlasScalar::from_complex(BlasType::C128, (1.0, 2.0)).0[8..], 2.0f64.to_ne_bytes());
    }

    #[test]
    fn constants_are_those_of_the_headers() {
        use c::{cublasComputeType_t as Compute, cublasOperation_t as Op, cudaDataType_t as Data};
        use cudarc::cublas::sys as c;
        let types = [
            (BlasType::F16, Data::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F),
            (BlasType::Bf16, Data::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F),
            (BlasType::F32, Data::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F),
            (BlasType::F64, Data::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F),
            (BlasType::C64, Data::CUDA_C_32F, Compute::CUBLAS_COMPUTE_32F),
            (BlasType::C128, Data::CUDA_C_64F, Compute::CUBLAS_COMPUTE_64F),
        ];
        for (ours, data, compute) in types {
            assert_eq!(ours.cuda_data_type(), data as c_int);
            assert_eq!(ours.cublas_compute_type(MatmulPrecision::Float32), compute as c_int);
        }
        let f32s = |precision| BlasType::F32.cublas_compute_type(precision);
        assert_eq!(f32s(MatmulPrecision::TensorFloat32), Compute::CUBLAS_COMPUTE_32F_FAST_TF32 as c_int);
        assert_eq!(f32s(MatmulPrecision::BFloat16), Compute::CUBLAS_COMPUTE_32F_FAST_16BF as c_int);
        assert_eq!(Transpose::Conjugate as c_int, Op::CUBLAS_OP_C as c_int);
        assert_eq!(16, c::cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION as c_int);
    }
}
