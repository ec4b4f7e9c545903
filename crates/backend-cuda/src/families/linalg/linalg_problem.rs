//! The task, dtype and extents of a linear algebra call, which all implementations read.

use std::sync::Arc;

use cuprum_core::call::SingularVectors;
use cuprum_core::device::Buffer;
use cuprum_core::error::LinAlgFailure;
use cuprum_core::{Array, Call, DType, Layout, Linalg, Result, StoredArray};

use crate::device;
use crate::families::copy;
use crate::families::linalg::small_matrix_kernels::MAX_THREADS_PER_MATRIX;

/// Returns the failure that a kernel reports for a matrix without a result.
pub(super) fn failure_for_task(task: Linalg) -> LinAlgFailure {
    match task {
        Linalg::Cholesky { .. } => LinAlgFailure::NotPositiveDefinite,
        Linalg::Svd { .. } => LinAlgFailure::SvdDiverges,
        Linalg::Eigh { .. } => LinAlgFailure::EigenvaluesDiverge,
        Linalg::Eig { .. } => LinAlgFailure::NotFinite,
        _ => LinAlgFailure::Singular,
    }
}

/// Maximum smaller extent, min(m, n), of a matrix that [`LinalgProblem::supports_svd_batch`] accepts.
pub(super) const MAX_COLUMNS_OF_SVD_BATCH: i32 = 512;
/// Maximum larger extent, max(m, n), of a matrix that [`LinalgProblem::supports_svd_batch`] accepts. The extent is bounded because one
/// thread block orthogonalises the vectors of small singular values.
const MAX_ROWS_OF_SVD_BATCH: i32 = 2048;

/// The task, dtype and extents of a call. The call has `count` matrices `a` (m, n) and, for linear systems, `count` right-hand sides `b`
/// (n, k).
#[derive(Clone, Copy, Debug)]
pub(super) struct LinalgProblem {
    pub task: Linalg,
    pub dtype: DType,
    pub count: usize,
    pub m: i32,
    pub n: i32,
    pub k: i32,
}

impl LinalgProblem {
    /// Maximum number of elements of a matrix. Kernels loop over the elements with an i32 index, which grows by the number of threads of a
    /// team (at most [`MAX_THREADS_PER_MATRIX`]) and must not overflow.
    const MAX_ELEMENTS: i32 = i32::MAX - MAX_THREADS_PER_MATRIX;

    /// Returns the problem of `call`, or `None` if `max(m, n)^2` or `n * k` exceeds [`LinalgProblem::MAX_ELEMENTS`].
    pub fn new(call: &Call, task: Linalg) -> Option<LinalgProblem> {
        let a = call.inputs.first()?;
        let [batch @ .., m, n] = a.shape() else { return None };
        let k = match (task, call.inputs.get(1)) {
            (_, Some(b)) => *b.shape().last()?,
            (Linalg::Inverse, None) => *n,
            _ => 1,
        };
        let extent = |n: usize| i32::try_from(n).ok();
        let (m, n, k) = (extent(*m)?, extent(*n)?, extent(k)?);
        let most = m.max(n);
        let fits = |rows: i32, columns: i32| rows.checked_mul(columns).is_some_and(|size| size <= LinalgProblem::MAX_ELEMENTS);
        let fits = fits(most, most) && fits(n, k);
        fits.then(|| LinalgProblem { task, dtype: a.dtype(), count: batch.iter().product(), m, n, k })
    }

    /// Returns whether singular values of a batch may be computed from eigenvectors in double precision: the matrices have float32 or
    /// complex64 elements, extents of at most [`MAX_COLUMNS_OF_SVD_BATCH`] and [`MAX_ROWS_OF_SVD_BATCH`], and as many left singular vectors
    /// as the smaller extent.
    pub fn supports_svd_batch(&self) -> bool {
        let Linalg::Svd { vectors } = self.task else { return false };
        matches!(self.dtype, DType::F32 | DType::C64)
            && (1..=MAX_COLUMNS_OF_SVD_BATCH).contains(&self.m.min(self.n))
            && self.m.max(self.n) <= MAX_ROWS_OF_SVD_BATCH
            && (vectors != SingularVectors::Full || self.m == self.n)
    }
}

/// Returns `array` itself if it is in C order. Otherwise queues a copy in C order and returns it.
pub(super) fn copy_unless_c_contiguous(call: &Call, array: &StoredArray) -> Result<StoredArray> {
    if array.layout().is_c_contiguous() {
        return Ok(array.clone());
    }
    let layout = Layout::contiguous(array.shape())?;
    let buffer = device::allocate(call, layout.size().saturating_mul(array.dtype().itemsize()))?;
    let copied = StoredArray::new(array.dtype(), layout, buffer as Arc<dyn Buffer>)?;
    copy::queue_copy(call, array, &copied)?;
    Ok(copied)
}

#[cfg(test)]
mod tests {
    use cuprum_core::host_buffer::HostBuffer;
    use cuprum_core::ops::linalg::SOLVE;
    use cuprum_core::{Device, Stream, Work};

    use super::*;

    #[test]
    fn batches_of_singular_values_have_few_columns_and_no_extra_vectors() {
        let supports =
            |dtype, m, n, vectors| LinalgProblem { task: Linalg::Svd { vectors }, dtype, count: 3, m, n, k: 1 }.supports_svd_batch();
        assert!(supports(DType::F32, 512, 512, SingularVectors::Full));
        assert!(supports(DType::C64, 2000, 200, SingularVectors::Reduced));
        assert!(!supports(DType::C64, 2000, 200, SingularVectors::Full));
        assert!(!supports(DType::C64, 2049, 200, SingularVectors::Reduced));
        assert!(!supports(DType::F32, 513, 513, SingularVectors::Omitted));
        assert!(!supports(DType::F64, 100, 100, SingularVectors::Omitted));
    }

    #[test]
    fn loops_over_a_matrix_do_not_overflow() {
        let is_taken = |k: i32| {
            let array = |shape: [usize; 2]| {
                let buffer = Arc::new(HostBuffer::zeroed(4).unwrap());
                StoredArray::new(DType::F32, Layout::strided(&shape, &[0, 0], 0).unwrap(), buffer).unwrap()
            };
            let inputs = [array([1, 1]), array([1, k as usize])];
            let (device, work) = (Device::CPU, Work::Linalg(Linalg::Solve));
            let call = Call { op: SOLVE, device, stream: Stream::current(device), inputs: &inputs, outputs: &[], work };
            LinalgProblem::new(&call, Linalg::Solve).is_some()
        };
        assert_eq!([100, i32::MAX - 512, i32::MAX - 511, i32::MAX].map(is_taken), [true, true, false, false]);
    }
}
