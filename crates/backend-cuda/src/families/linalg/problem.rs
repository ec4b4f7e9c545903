//! The task, dtype and extents of a linear algebra call, which all implementations read.

use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::error::LinAlgFailure;
use cuprum_core::{Array, Call, DType, Layout, Linalg, Result, StoredArray};

use crate::device;
use crate::families::copy;

/// Returns the failure that a kernel reports for a matrix without a result.
pub(super) fn reported_failure(task: Linalg) -> LinAlgFailure {
    match task {
        Linalg::Cholesky { .. } => LinAlgFailure::NotPositiveDefinite,
        Linalg::Svd { .. } => LinAlgFailure::SvdDiverges,
        Linalg::Eigh { .. } => LinAlgFailure::EigenvaluesDiverge,
        Linalg::Eig { .. } => LinAlgFailure::NotFinite,
        _ => LinAlgFailure::Singular,
    }
}

/// The task, dtype and extents of a call. The call has `count` matrices `a` (m, n) and, for linear systems, `count` right-hand sides `b`
/// (n, k).
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub task: Linalg,
    pub dtype: DType,
    pub count: usize,
    pub m: i32,
    pub n: i32,
    pub k: i32,
}

impl Problem {
    /// Returns the problem of `call`, or `None` if `max(m, n)^2` or `n * k` exceeds `i32::MAX`.
    pub fn new(call: &Call, task: Linalg) -> Option<Problem> {
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
        let fits = most.checked_mul(most).is_some() && n.checked_mul(k).is_some();
        fits.then(|| Problem { task, dtype: a.dtype(), count: batch.iter().product(), m, n, k })
    }
}

/// Returns `array` itself if it is in C order. Otherwise queues a copy in C order and returns it.
pub(super) fn contiguous(call: &Call, array: &StoredArray) -> Result<StoredArray> {
    if array.layout().is_c_contiguous() {
        return Ok(array.clone());
    }
    let layout = Layout::contiguous(array.shape())?;
    let buffer = device::allocate(call, layout.size().saturating_mul(array.dtype().itemsize()))?;
    let copied = StoredArray::new(array.dtype(), layout, buffer as Arc<dyn Buffer>)?;
    copy::queue_copy(call, array, &copied)?;
    Ok(copied)
}
