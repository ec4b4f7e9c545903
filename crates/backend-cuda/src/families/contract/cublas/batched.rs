//! LU decompositions of batches of square matrices by cuBLAS. The addresses of the matrices are in an array in device memory.

use std::ffi::{c_int, c_void};

use super::{Blas, BlasType, Handle, Transpose, as_c_pointer, check_library_status};
use crate::compile::libraries::{LoadedLibrary, MissingLibrary};
use crate::error::{CudaError, Result};

type GetrfBatched = unsafe extern "C" fn(Handle, c_int, *const c_void, c_int, *mut c_void, *mut c_void, c_int) -> c_int;
type GetrsBatched = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    *const c_void,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    *mut c_int,
    c_int,
) -> c_int;

/// Function pointers of cuBLAS's batched LU routines. Each array has a function for f32, f64, and their complex types.
pub(super) struct BatchedLuApi {
    getrf: [GetrfBatched; 4],
    getrs: [GetrsBatched; 4],
}

impl BatchedLuApi {
    pub(super) fn load_functions(loaded: &LoadedLibrary) -> std::result::Result<BatchedLuApi, MissingLibrary> {
        // SAFETY: the type of each field is the function's signature in cublas_api.h.
        unsafe {
            Ok(BatchedLuApi {
                getrf: [
                    loaded.symbol("cublasSgetrfBatched")?,
                    loaded.symbol("cublasDgetrfBatched")?,
                    loaded.symbol("cublasCgetrfBatched")?,
                    loaded.symbol("cublasZgetrfBatched")?,
                ],
                getrs: [
                    loaded.symbol("cublasSgetrsBatched")?,
                    loaded.symbol("cublasDgetrsBatched")?,
                    loaded.symbol("cublasCgetrsBatched")?,
                    loaded.symbol("cublasZgetrsBatched")?,
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

impl Blas {
    /// Queues LU decompositions with partial pivoting, in place of the matrices of `lu`. Writes one 32-bit integer for each matrix to
    /// `info`: 0, or the position (from 1) of a zero on the diagonal of the factor U.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] for a dtype of 16 bits. [`CudaError::Cublas`] for all other failures.
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
        let code = unsafe { (self.api.batched_lu.getrf[at])(on.handle, n, factors, n, pivots, info, count) };
        check_library_status(self.context, "cublas<t>getrfBatched", code)
    }

    /// Queues the solution of `op(a) @ x = b` for each matrix `a`, from the factors of [`Blas::lu_batched`]. The solution (n, k) replaces
    /// the right-hand side. The parameter `b` is the device address of an array with the device addresses of the right-hand sides.
    ///
    /// # Errors
    /// As for [`Blas::lu_batched`].
    ///
    /// # Safety
    /// As for [`Blas::lu_batched`].
    pub unsafe fn lu_solve_batched(&self, lu: &BatchedLuFactors, form: Transpose, k: i32, b: u64) -> Result<()> {
        let &BatchedLuFactors { n, count, .. } = lu;
        let (at, factors, pivots) = (blas_type_index(lu.dtype)?, as_c_pointer(lu.factors), as_c_pointer(lu.pivots));
        // If an argument is invalid, cuBLAS writes its negated position to `invalid`, a number in host memory.
        let mut invalid = 0;
        let (on, _workspace) = self.lock_handle()?;
        // SAFETY: this thread holds the locked handle, and the caller guarantees that the addresses are valid. The out-pointer `invalid` is
        // a local.
        let code = unsafe {
            (self.api.batched_lu.getrs[at])(on.handle, form as c_int, n, k, factors, n, pivots, as_c_pointer(b), n, &mut invalid, count)
        };
        check_library_status(self.context, "cublas<t>getrsBatched", code)?;
        if invalid == 0 { Ok(()) } else { Err(CudaError::Invalid(format!("cublas<t>getrsBatched: argument {} is invalid", -invalid))) }
    }
}

fn blas_type_index(dtype: BlasType) -> Result<usize> {
    match dtype {
        BlasType::F32 => Ok(0),
        BlasType::F64 => Ok(1),
        BlasType::C64 => Ok(2),
        BlasType::C128 => Ok(3),
        other => Err(CudaError::Invalid(format!("cuBLAS decomposes no matrices of {other:?}"))),
    }
}
