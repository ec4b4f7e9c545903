//! A binding to cuSOLVER: one handle per device and stream, and the dense factorizations. Contains unsafe code for the C interface of
//! cuSOLVER.
//!
//! cuSOLVER is **column-major**. All matrices here are contiguous, so the number of rows is the leading dimension. Addresses are device
//! addresses. Each routine writes one 32-bit integer to the address `info`: 0, or the position of the failure as LAPACK defines it.
//!
//! Source: the library's header `cusolverDn.h`. The routines are those of the 64-bit interface, except `orgqr` and `potrfBatched`.

mod cusolver_functions;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_schar, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuprum_core::fault_injection::{FailurePoint, should_fail};

use crate::compile::libraries::{self, LibrarySpec};
use crate::driver::{Context, DeviceBuffer, PerDevice};
use crate::error::{CudaError, Result};
use crate::families::contract::cublas::BlasType;
use cusolver_functions::{CusolverApi, Handle, Memory, Params};

/// The singular vectors that [`CusolverRoutines::svd`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvdJob {
    /// None.
    Values,
    /// As many left and right vectors as there are singular values.
    Reduced,
    /// All left and right vectors: two square matrices.
    Full,
}

/// Returns the path of cuSOLVER without loading it, or the reason why it is missing.
pub fn locate_cusolver(driver_major: u32) -> std::result::Result<PathBuf, String> {
    libraries::locate_library(&LibrarySpec::cusolver_spec(driver_major)).map_err(|m| m.to_string())
}

/// Loads cuSOLVER, unless it is loaded.
///
/// # Errors
/// [`CudaError::Missing`] if cuSOLVER cannot be loaded, with the reason.
pub fn load_cusolver(context: &'static Context) -> Result<()> {
    CusolverApi::shared_functions(context).map(|_| ())
}

/// Returns whether cuSOLVER is present and can decompose a batch of Hermitian matrices in one call. The first call loads the library.
pub(super) fn supports_hermitian_batches(context: &'static Context) -> bool {
    CusolverApi::shared_functions(context).is_ok_and(|api| api.syev_batched.is_some())
}

/// Returns `Ok` if the loaded version of cuSOLVER computes eigenvalues of general matrices, else the reason why not.
pub(super) fn check_supports_general_eigen(context: &'static Context) -> Result<()> {
    let api = CusolverApi::shared_functions(context)?;
    match api.geev {
        Some(_) => Ok(()),
        None => Err(CudaError::Missing(format!("cuSOLVER: {} has no cusolverDnXgeev, which CUDA 12.8 has", api.path.display()))),
    }
}

/// A cuSOLVER handle and a parameter object, for one stream. Only work on this stream uses the device memory that the handle allocates.
#[derive(Clone, Copy)]
struct SolverHandle {
    handle: Handle,
    params: Params,
}

// SAFETY: cuSOLVER allows a handle to move between threads, and the mutex around the handle serialises its use.
unsafe impl Send for SolverHandle {}

/// The handles of a device by stream number. A handle is never closed, unless a later step of its creation fails.
#[derive(Default)]
struct HandlesByStream(Mutex<BTreeMap<u32, &'static Mutex<SolverHandle>>>);

static SOLVER_HANDLES: PerDevice<HandlesByStream> = PerDevice::new();

impl HandlesByStream {
    fn get_or_create_handle(&self, context: &'static Context, api: &CusolverApi) -> Result<&'static Mutex<SolverHandle>> {
        let number = context.current_stream_number();
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&number) {
            return Ok(handle);
        }
        let (mut handle, mut params) = (ptr::null_mut(), ptr::null_mut());
        context.retry_in_current_context(|| {
            // SAFETY: the context is current, and the out-pointer is a local.
            check_library_status(context, "cusolverDnCreate", unsafe { (api.create)(&mut handle) })
        })?;
        // SAFETY: the out-pointer is a local.
        let made = check_status("cusolverDnCreateParams", unsafe { (api.create_params)(&mut params) });
        let made = made.and_then(|()| {
            // SAFETY: the handle was just created, and the stream is of the current context.
            check_status("cusolverDnSetStream", unsafe { (api.set_stream)(handle, context.stream()) })
        });
        if let Err(error) = made {
            // SAFETY: the handle was just created, and so were the parameters unless they are null. No work uses them.
            unsafe {
                if !params.is_null() {
                    (api.destroy_params)(params);
                }
                (api.destroy)(handle);
            }
            return Err(error);
        }
        let made: &'static Mutex<SolverHandle> = Box::leak(Box::new(Mutex::new(SolverHandle { handle, params })));
        handles.insert(number, made);
        Ok(made)
    }
}

/// The device and host workspaces of the last queued routine, which later routines reuse if they are large enough. Device memory is freed
/// in stream order, so it may be dropped once the routine is queued. Host memory must live until the routine has ended
/// ([`CusolverRoutines::keep_host_workspace`]).
#[derive(Default)]
struct SolverWorkspace {
    device: Option<DeviceBuffer>,
    host: Option<Arc<HostWorkspace>>,
}

/// Host memory to which only cuSOLVER writes.
struct HostWorkspace {
    /// The allocation of the workspace: an empty vector with capacity.
    memory: Vec<u64>,
    address: usize,
}

impl HostWorkspace {
    fn allocate_host_workspace(bytes: usize) -> Result<Arc<HostWorkspace>> {
        let mut memory: Vec<u64> = Vec::new();
        let refused = |_| CudaError::Invalid(format!("the host has no memory for {bytes} bytes of cuSOLVER's workspace"));
        memory.try_reserve_exact(bytes.div_ceil(size_of::<u64>())).map_err(refused)?;
        let address = memory.as_mut_ptr().expose_provenance();
        Ok(Arc::new(HostWorkspace { memory, address }))
    }

    fn capacity_bytes(&self) -> usize {
        self.memory.capacity() * size_of::<u64>()
    }

    fn host_pointer(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.address)
    }
}

/// The routines of cuSOLVER on this thread's stream, for matrices of one type. Other threads that create `CusolverRoutines` for the same
/// stream wait until this value is dropped.
///
/// Only 32- and 64-bit floats and their complex types are supported. [`CusolverRoutines::new`] fails for other dtypes.
pub struct CusolverRoutines {
    api: &'static CusolverApi,
    context: &'static Context,
    handle: MutexGuard<'static, SolverHandle>,
    dtype: BlasType,
    workspace: SolverWorkspace,
}

impl std::fmt::Debug for CusolverRoutines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CusolverRoutines({:?} at {})", self.dtype, self.api.path.display())
    }
}

/// The `cudaDataType_t` of f32 and f64.
const REAL_DATA_TYPES: [c_int; 2] = [0, 1];
/// The `cudaDataType_t` of complex numbers with f32 and f64 parts.
const COMPLEX_DATA_TYPES: [c_int; 2] = [4, 5];

fn eigenvector_mode(vectors: bool) -> c_int {
    vectors.into()
}

/// Returns the `cublasFillMode_t` of the upper triangle if `upper`, else of the lower triangle.
fn fill_mode(upper: bool) -> c_int {
    upper.into()
}

fn to_device_pointer(address: u64) -> *mut c_void {
    // A device address becomes a pointer only for the C interface. The host never dereferences it.
    ptr::with_exposed_provenance_mut(address as usize)
}

fn info_pointer(address: u64) -> *mut c_int {
    to_device_pointer(address).cast()
}

impl CusolverRoutines {
    /// Returns the routines for matrices of `dtype`. The first call loads cuSOLVER.
    pub fn new(context: &'static Context, dtype: BlasType) -> Result<CusolverRoutines> {
        if matches!(dtype, BlasType::F16 | BlasType::Bf16) {
            return Err(CudaError::Invalid(format!("cuSOLVER has no matrices of {dtype:?}")));
        }
        context.check_not_capturing("a routine of cuSOLVER")?;
        let api = CusolverApi::shared_functions(context)?;
        context.set_current()?;
        let handle =
            SOLVER_HANDLES.get_or_create(context).get_or_create_handle(context, api)?.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(CusolverRoutines { api, context, handle, dtype, workspace: SolverWorkspace::default() })
    }

    /// Returns the index of the matrices' precision in [`REAL_DATA_TYPES`] and [`COMPLEX_DATA_TYPES`]: 0 for single, 1 for double.
    fn precision_index(&self) -> usize {
        usize::from(matches!(self.dtype, BlasType::F64 | BlasType::C128))
    }

    /// Returns the index of the routine for the type of the matrices, in an array of routines for f32, f64, and their complex types.
    fn routine_index(&self) -> usize {
        match self.dtype {
            BlasType::F64 => 1,
            BlasType::C64 => 2,
            BlasType::C128 => 3,
            _ => 0,
        }
    }

    /// Returns the `cudaDataType_t` of the matrices.
    fn cuda_data_type(&self) -> c_int {
        let types = if matches!(self.dtype, BlasType::C64 | BlasType::C128) { COMPLEX_DATA_TYPES } else { REAL_DATA_TYPES };
        types[self.precision_index()]
    }

    /// Returns the `cudaDataType_t` of the real type that has the precision of the matrices.
    fn cuda_real_data_type(&self) -> c_int {
        REAL_DATA_TYPES[self.precision_index()]
    }

    /// Runs `routine`, the cuSOLVER function `name`, with device and host workspaces of the sizes that `size` writes.
    ///
    /// The routine is not retried if the device is out of memory, because it may have overwritten its input.
    fn run_with_workspaces(
        &mut self,
        name: &'static str,
        size: impl FnOnce(&mut usize, &mut usize) -> c_int,
        routine: impl FnOnce(Memory, usize, Memory, usize) -> c_int,
    ) -> Result<()> {
        let (mut device, mut host) = (0, 0);
        check_library_status(self.context, name, size(&mut device, &mut host))?;
        if self.workspace.device.as_ref().is_none_or(|kept| kept.len() < device) {
            self.workspace.device = Some(self.context.alloc_on_current_stream(device.max(1))?);
        }
        if self.workspace.host.as_ref().is_none_or(|kept| kept.capacity_bytes() < host) {
            self.keep_host_workspace()?;
            self.workspace.host = Some(HostWorkspace::allocate_host_workspace(host.max(1))?);
        }
        self.context.set_current()?; // because allocating the buffer may have freed memory of another device
        let device_pointer = self.workspace.device.as_ref().map_or(0, DeviceBuffer::pointer);
        let host_pointer = self.workspace.host.as_ref().map_or(ptr::null_mut(), |kept| kept.host_pointer());
        check_library_status(self.context, name, routine(to_device_pointer(device_pointer), device, host_pointer, host))
    }

    /// Keeps the host workspace alive until the queued routines have ended.
    fn keep_host_workspace(&mut self) -> Result<()> {
        self.workspace.host.take().map_or(Ok(()), |kept| self.context.keep_alive_until_stream_done(kept))
    }

    /// Queues the LU decomposition of `a` (m, n) with partial pivoting, in place. Writes min(m, n) pivots: row numbers as 64-bit integers,
    /// counted from 1.
    ///
    /// # Safety
    /// The addresses are valid on the device for these extents until the work has ended. The same holds for all routines.
    pub unsafe fn lu(&mut self, m: i64, n: i64, a: u64, pivots: u64, info: u64) -> Result<()> {
        let (api, SolverHandle { handle, params }, t) = (self.api, *self.handle, self.cuda_data_type());
        self.run_with_workspaces(
            "cusolverDnXgetrf",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe { (api.getrf.0)(handle, params, m, n, t, to_device_pointer(a), m, t, device, host) },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                (api.getrf.1)(
                    handle,
                    params,
                    m,
                    n,
                    t,
                    to_device_pointer(a),
                    m,
                    to_device_pointer(pivots).cast(),
                    t,
                    d,
                    d_size,
                    h,
                    h_size,
                    info_pointer(info),
                )
            },
        )
    }

    /// Queues the Cholesky decomposition of `a` (n, n) in place of its lower triangle.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    pub unsafe fn cholesky(&mut self, n: i64, a: u64, info: u64) -> Result<()> {
        let (api, SolverHandle { handle, params }, t, fill) = (self.api, *self.handle, self.cuda_data_type(), fill_mode(false));
        self.run_with_workspaces(
            "cusolverDnXpotrf",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe { (api.potrf.0)(handle, params, fill, n, t, to_device_pointer(a), n, t, device, host) },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                (api.potrf.1)(handle, params, fill, n, t, to_device_pointer(a), n, t, d, d_size, h, h_size, info_pointer(info))
            },
        )
    }

    /// Queues the Cholesky decompositions of `count` matrices (n, n) in place of their upper or lower triangles. `matrices` is the address
    /// of an array with the address of each matrix. Writes one integer for each matrix to `info`.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`], for the addresses in the array too.
    pub unsafe fn cholesky_batch(&mut self, upper: bool, n: i32, matrices: u64, info: u64, count: i32) -> Result<()> {
        let (routine, handle) = (self.api.potrf_batched[self.routine_index()], self.handle.handle);
        // SAFETY: the handle is locked, and the caller guarantees that the addresses are valid.
        let code = unsafe { routine(handle, fill_mode(upper), n, to_device_pointer(matrices), n, info_pointer(info), count) };
        check_library_status(self.context, "cusolverDn<t>potrfBatched", code)
    }

    /// Queues the QR decomposition of `a` (m, n). `r` and the Householder vectors replace `a`. Writes the min(m, n) scalar factors of the
    /// Householder reflectors to `taus`.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    pub unsafe fn qr(&mut self, m: i64, n: i64, a: u64, taus: u64, info: u64) -> Result<()> {
        let (api, SolverHandle { handle, params }, t) = (self.api, *self.handle, self.cuda_data_type());
        self.run_with_workspaces(
            "cusolverDnXgeqrf",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe {
                (api.geqrf.0)(handle, params, m, n, t, to_device_pointer(a), m, t, to_device_pointer(taus), t, device, host)
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                (api.geqrf.1)(
                    handle,
                    params,
                    m,
                    n,
                    t,
                    to_device_pointer(a),
                    m,
                    t,
                    to_device_pointer(taus),
                    t,
                    d,
                    d_size,
                    h,
                    h_size,
                    info_pointer(info),
                )
            },
        )
    }

    /// Queues the computation of the first `columns` columns of `q` (m, columns). These columns replace `a`, whose first `reflectors`
    /// columns are the Householder vectors of [`CusolverRoutines::qr`].
    ///
    /// # Errors
    /// [`CudaError::Invalid`] for extents above `i32::MAX`.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    pub unsafe fn form_q(&mut self, m: i64, columns: i64, reflectors: i64, a: u64, taus: u64, info: u64) -> Result<()> {
        let (api, SolverHandle { handle, .. }) = (self.api, *self.handle);
        let at = self.routine_index();
        let item = [4, 8, 8, 16][at];
        let narrow = |n: i64| c_int::try_from(n).map_err(|_| CudaError::Invalid(format!("cuSOLVER's orgqr takes no extent of {n}")));
        let (m, columns, reflectors) = (narrow(m)?, narrow(columns)?, narrow(reflectors)?);
        self.run_with_workspaces(
            "cusolverDn<t>orgqr",
            |device, _| {
                let mut elements = 0;
                // SAFETY: the handle is locked, and the out-pointers are locals.
                let code = unsafe {
                    (api.orgqr[at].0)(handle, m, columns, reflectors, to_device_pointer(a), m, to_device_pointer(taus), &mut elements)
                };
                *device = item * usize::try_from(elements).unwrap_or(0);
                code
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, _, _| unsafe {
                let elements = (d_size / item) as c_int;
                (api.orgqr[at].1)(
                    handle,
                    m,
                    columns,
                    reflectors,
                    to_device_pointer(a),
                    m,
                    to_device_pointer(taus),
                    d,
                    elements,
                    info_pointer(info),
                )
            },
        )
    }

    /// Queues the eigendecomposition of the Hermitian matrix `a` (n, n), of which one triangle is read. Writes the n real eigenvalues to
    /// `w`, in ascending order. If `vectors`, the eigenvectors replace `a`, else the content of `a` is destroyed.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    pub unsafe fn hermitian_eigen(&mut self, vectors: bool, upper: bool, n: i64, a: u64, w: u64, info: u64) -> Result<()> {
        let (api, SolverHandle { handle, params }, t, real) = (self.api, *self.handle, self.cuda_data_type(), self.cuda_real_data_type());
        let (job, fill) = (eigenvector_mode(vectors), fill_mode(upper));
        self.run_with_workspaces(
            "cusolverDnXsyevd",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe {
                (api.syevd.0)(handle, params, job, fill, n, t, to_device_pointer(a), n, real, to_device_pointer(w), t, device, host)
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                (api.syevd.1)(
                    handle,
                    params,
                    job,
                    fill,
                    n,
                    t,
                    to_device_pointer(a),
                    n,
                    real,
                    to_device_pointer(w),
                    t,
                    d,
                    d_size,
                    h,
                    h_size,
                    info_pointer(info),
                )
            },
        )
    }

    /// Queues [`CusolverRoutines::hermitian_eigen`] for `count` contiguous matrices. Writes one integer for each matrix to `info`.
    ///
    /// # Errors
    /// [`CudaError::Missing`] if the loaded cuSOLVER has no such routine.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`], for all matrices.
    #[allow(clippy::too_many_arguments, reason = "the arguments of the routine")]
    pub unsafe fn hermitian_eigen_batch(
        &mut self,
        vectors: bool,
        upper: bool,
        n: i64,
        a: u64,
        w: u64,
        info: u64,
        count: i64,
    ) -> Result<()> {
        let (SolverHandle { handle, params }, t, real) = (*self.handle, self.cuda_data_type(), self.cuda_real_data_type());
        let (job, fill) = (eigenvector_mode(vectors), fill_mode(upper));
        let routines = self.api.syev_batched.ok_or_else(|| self.missing_routine_error("cusolverDnXsyevBatched"))?;
        self.run_with_workspaces(
            "cusolverDnXsyevBatched",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe {
                routines.0(handle, params, job, fill, n, t, to_device_pointer(a), n, real, to_device_pointer(w), t, device, host, count)
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                let info = info_pointer(info);
                routines.1(
                    handle,
                    params,
                    job,
                    fill,
                    n,
                    t,
                    to_device_pointer(a),
                    n,
                    real,
                    to_device_pointer(w),
                    t,
                    d,
                    d_size,
                    h,
                    h_size,
                    info,
                    count,
                )
            },
        )
    }

    /// Queues the singular value decomposition of `a` (m, n) by QR iterations, for m >= n. Writes the singular values to `s`, and the
    /// vectors to `u` (m rows) and `vt` (n columns), as `job` requests. Overwrites `a`.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    #[allow(clippy::too_many_arguments, reason = "the arguments of the routine")]
    pub unsafe fn svd(&mut self, job: SvdJob, m: i64, n: i64, a: u64, s: u64, u: u64, vt: u64, info: u64) -> Result<()> {
        let (api, SolverHandle { handle, params }, t, real) = (self.api, *self.handle, self.cuda_data_type(), self.cuda_real_data_type());
        let letter = match job {
            SvdJob::Values => b'N',
            SvdJob::Reduced => b'S',
            SvdJob::Full => b'A',
        } as c_schar;
        let (a, s, u, vt) = (to_device_pointer(a), to_device_pointer(s), to_device_pointer(u), to_device_pointer(vt));
        self.run_with_workspaces(
            "cusolverDnXgesvd",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe {
                (api.gesvd.0)(handle, params, letter, letter, m, n, t, a, m, real, s, t, u, m, t, vt, n, t, device, host)
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                let info = info_pointer(info);
                (api.gesvd.1)(handle, params, letter, letter, m, n, t, a, m, real, s, t, u, m, t, vt, n, t, d, d_size, h, h_size, info)
            },
        )
    }

    /// Computes the singular value decomposition of `a` (m, n) by a polar decomposition, for any extents. Writes the singular values to
    /// `s`. The columns of `u` (m rows) and `v` (n rows) are the left and right singular vectors. Overwrites `a`, and waits for the stream.
    ///
    /// `u` and `v` are overwritten for [`SvdJob::Values`] too, with as many elements as for [`SvdJob::Reduced`].
    ///
    /// Returns `false` if the results are not usable. Either cuSOLVER has no such routine, or it has perturbed a singular matrix, which
    /// makes the results inaccurate.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    #[allow(clippy::too_many_arguments, reason = "the arguments of the routine")]
    pub unsafe fn svd_polar(&mut self, job: SvdJob, m: i64, n: i64, a: u64, s: u64, u: u64, v: u64, info: u64) -> Result<bool> {
        let (SolverHandle { handle, params }, t, real) = (*self.handle, self.cuda_data_type(), self.cuda_real_data_type());
        let Some(routines) = self.api.gesvdp else { return Ok(false) };
        let (vectors, reduced) = (eigenvector_mode(job != SvdJob::Values), c_int::from(job != SvdJob::Full));
        let (a, s, u, v) = (to_device_pointer(a), to_device_pointer(s), to_device_pointer(u), to_device_pointer(v));
        let mut perturbation = f64::NAN;
        self.run_with_workspaces(
            "cusolverDnXgesvdp",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe {
                routines.0(handle, params, vectors, reduced, m, n, t, a, m, real, s, t, u, m, t, v, n, t, device, host)
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            // cuSOLVER writes `perturbation` before `wait_for_stream` returns.
            |d, d_size, h, h_size| unsafe {
                let (info, error) = (info_pointer(info), &raw mut perturbation);
                routines.1(handle, params, vectors, reduced, m, n, t, a, m, real, s, t, u, m, t, v, n, t, d, d_size, h, h_size, info, error)
            },
        )?;
        self.context.wait_for_stream(self.context.current_stream_number())?;
        // SAFETY: the pointer is to a local. The compiler does not move the volatile read before the wait for the stream.
        Ok(unsafe { ptr::read_volatile(&raw const perturbation) } == 0.0)
    }

    /// Queues the computation of the n complex eigenvalues `w` of `a` (n, n). If `vectors`, also computes the right eigenvectors `v` (n,
    /// n), which have the type of `a`. Eigenvectors of a real matrix are packed into real columns as in LAPACK's `geev`. Overwrites `a`.
    ///
    /// # Errors
    /// [`CudaError::Missing`] if the loaded cuSOLVER has no such routine.
    ///
    /// # Safety
    /// The requirements of [`CusolverRoutines::lu`].
    pub unsafe fn eigen(&mut self, vectors: bool, n: i64, a: u64, w: u64, v: u64, info: u64) -> Result<()> {
        let (SolverHandle { handle, params }, t, complex) =
            (*self.handle, self.cuda_data_type(), COMPLEX_DATA_TYPES[self.precision_index()]);
        let routines = self.api.geev.ok_or_else(|| self.missing_routine_error("cusolverDnXgeev"))?;
        let (left, right) = (eigenvector_mode(false), eigenvector_mode(vectors));
        let (a, w, v) = (to_device_pointer(a), to_device_pointer(w), to_device_pointer(v));
        self.run_with_workspaces(
            "cusolverDnXgeev",
            // SAFETY: the handle is locked, and the out-pointers are locals.
            |device, host| unsafe {
                routines.0(handle, params, left, right, n, t, a, n, complex, w, t, ptr::null(), n, t, v, n, t, device, host)
            },
            // SAFETY: the caller guarantees that the addresses are valid. The workspaces have the sizes that cuSOLVER requested.
            |d, d_size, h, h_size| unsafe {
                let (none, info) = (ptr::null_mut(), info_pointer(info));
                routines.1(handle, params, left, right, n, t, a, n, complex, w, t, none, n, t, v, n, t, d, d_size, h, h_size, info)
            },
        )
    }

    fn missing_routine_error(&self, name: &str) -> CudaError {
        CudaError::Missing(format!("cuSOLVER: {} has no {name}", self.api.path.display()))
    }
}

impl Drop for CusolverRoutines {
    fn drop(&mut self) {
        // cuSOLVER routines that still run on the device may use the host workspace.
        if let Some(kept) = self.workspace.host.clone()
            && self.keep_host_workspace().is_err()
        {
            // The host workspace is leaked, because neither an event nor a wait can tell when the device has stopped using it.
            std::mem::forget(kept);
        }
    }
}

fn check_library_status(context: &Context, call: &'static str, code: c_int) -> Result<()> {
    check_status(call, code).or_else(|failure| context.check_usable().and(Err(failure)))
}

fn check_status(call: &'static str, code: c_int) -> Result<()> {
    let code = if code == 0 && should_fail(FailurePoint::Library) { 7 } else { code };
    let name = match code {
        0 => return Ok(()),
        1 => "CUSOLVER_STATUS_NOT_INITIALIZED",
        2 => "CUSOLVER_STATUS_ALLOC_FAILED",
        3 => "CUSOLVER_STATUS_INVALID_VALUE",
        4 => "CUSOLVER_STATUS_ARCH_MISMATCH",
        5 => "CUSOLVER_STATUS_MAPPING_ERROR",
        6 => "CUSOLVER_STATUS_EXECUTION_FAILED",
        7 => "CUSOLVER_STATUS_INTERNAL_ERROR",
        8 => "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
        9 => "CUSOLVER_STATUS_NOT_SUPPORTED",
        31 => "CUSOLVER_STATUS_INVALID_WORKSPACE",
        _ => "unknown status",
    };
    Err(CudaError::Cusolver { call, code: code.unsigned_abs(), name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_names_and_full_devices_are_retried() {
        assert!(check_status("cusolverDnXgetrf", 0).is_ok());
        let full = check_status("cusolverDnXgetrf", 2).unwrap_err();
        assert!(full.is_out_of_memory() && full.to_string().contains("CUSOLVER_STATUS_ALLOC_FAILED"), "{full}");
        assert!(!check_status("cusolverDnXgetrf", 3).unwrap_err().is_out_of_memory());
        assert!(check_status("cusolverDnCreate", 1).unwrap_err().is_out_of_memory());
    }

    #[test]
    fn host_workspaces_have_the_requested_size() {
        let workspace = HostWorkspace::allocate_host_workspace(13).unwrap();
        assert!(workspace.capacity_bytes() >= 13 && !workspace.host_pointer().is_null());
        assert!(matches!(HostWorkspace::allocate_host_workspace(usize::MAX), Err(CudaError::Invalid(_))));
    }
}
