//! LU decompositions and triangular systems of batches of matrices by cuBLAS. The addresses of the matrices are in an array in device
//! memory.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::{BlasScalar, BlasType, DeviceCublas, Handle, TriangularSystem, as_c_pointer, blas_type_index, check_library_status};
use crate::compile::libraries::{LoadedLibrary, MissingLibrary};
use crate::error::Result;

type GetrfBatched = unsafe extern "C" fn(Handle, c_int, *const c_void, c_int, *mut c_void, *mut c_void, c_int) -> c_int;
type TrsmBatched = unsafe extern "C" fn(
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
    *const c_void,
    c_int,
    c_int,
) -> c_int;

/// Function pointers of cuBLAS's batch routines. Each array has a function for f32, f64, and their complex types.
pub(super) struct CublasBatchedApi {
    getrf: [GetrfBatched; 4],
    trsm: [TrsmBatched; 4],
}

impl CublasBatchedApi {
    pub(super) fn load_functions(loaded: &LoadedLibrary) -> std::result::Result<CublasBatchedApi, MissingLibrary> {
        // SAFETY: the type of each field is the function's signature in cublas_api.h.
        unsafe {
            Ok(CublasBatchedApi {
                getrf: [
                    loaded.symbol("cublasSgetrfBatched")?,
                    loaded.symbol("cublasDgetrfBatched")?,
                    loaded.symbol("cublasCgetrfBatched")?,
                    loaded.symbol("cublasZgetrfBatched")?,
                ],
                trsm: [
                    loaded.symbol("cublasStrsmBatched")?,
                    loaded.symbol("cublasDtrsmBatched")?,
                    loaded.symbol("cublasCtrsmBatched")?,
                    loaded.symbol("cublasZtrsmBatched")?,
                ],
            })
        }
    }
}

/// LU factors of `count` column-major matrices (n, n).
#[derive(Debug, Clone, Copy)]
pub struct BatchedLuFactors {
    /// Type of the matrices: a 32- or 64-bit float or complex number.
    pub dtype: BlasType,
    /// Extent of the matrices.
    pub n: i32,
    /// Number of matrices.
    pub count: i32,
    /// Device address of an array with the device addresses of the `count` matrices.
    pub factors: u64,
    /// Device address of the pivots: n row numbers for each matrix, as 32-bit integers counted from 1.
    pub pivots: u64,
}

impl DeviceCublas {
    /// Queues LU decompositions with partial pivoting, in place of the matrices of `lu`. Writes one 32-bit integer for each matrix to
    /// `info`: 0, or the position (from 1) of a zero on the diagonal of the factor U.
    ///
    /// # Errors
    /// [`Invalid`](crate::CudaError::Invalid) for a dtype of 16 bits. [`Cublas`](crate::CudaError::Cublas) for all other failures.
    ///
    /// # Safety
    /// All addresses, including those in device arrays, must be valid on this handle's device for the extents in `lu`, until the work has
    /// ended.
    pub unsafe fn lu_batched(&self, lu: &BatchedLuFactors, info: u64) -> Result<()> {
        let &BatchedLuFactors { n, count, .. } = lu;
        let (at, factors) = (blas_type_index(lu.dtype)?, as_c_pointer(lu.factors));
        let (pivots, info) = (as_c_pointer(lu.pivots).cast_mut(), as_c_pointer(info).cast_mut());
        let (on, _workspace) = self.lock_handle()?;
        // The call is not retried if the device is out of memory, because it may have overwritten its input.
        // SAFETY: this thread holds the locked handle. The caller guarantees that the addresses are valid.
        let code = unsafe { (self.api.batched.getrf[at])(on.handle, n, factors, n, pivots, info, count) };
        check_library_status(self.context, "cublas<t>getrfBatched", code)
    }

    /// Queues the solutions of `count` systems like `system`, whose matrices are listed in device arrays.
    ///
    /// # Errors
    /// As for [`DeviceCublas::lu_batched`].
    ///
    /// # Safety
    /// As for [`DeviceCublas::lu_batched`].
    pub unsafe fn solve_triangular_batched(&self, system: &TriangularSystem, count: i32) -> Result<()> {
        let &TriangularSystem { side, m, n, lda, ldb, .. } = system;
        let at = blas_type_index(system.dtype)?;
        let one = BlasScalar::from_complex(system.dtype, (1.0, 0.0));
        let (one, a, b) = (ptr::from_ref(&one).cast::<c_void>(), as_c_pointer(system.a), as_c_pointer(system.b));
        let (fill, form, unit) = (c_int::from(system.upper), system.form as c_int, c_int::from(system.unit_diagonal));
        let (on, _workspace) = self.lock_handle()?;
        // SAFETY: this thread holds the locked handle. The factor lives through the call. The caller guarantees that the addresses are
        // valid.
        let code = unsafe { (self.api.batched.trsm[at])(on.handle, side as c_int, fill, form, unit, m, n, one, a, lda, b, ldb, count) };
        check_library_status(self.context, "cublas<t>trsmBatched", code)
    }
}
