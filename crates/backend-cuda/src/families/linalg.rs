//! Family Linalg: matrix decompositions and solutions of linear systems. The kernels in `team_kernels` use one thread or one thread block
//! per matrix, and no CUDA library.

mod team_kernels;

use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::{Array, Call, DType, Layout, Linalg, Outcome, Result, StoredArray, Work, decline};

use crate::device;
use crate::families::copy;

pub use self::team_kernels::sources_for_checks;

/// Runs a call of family Linalg.
pub(crate) fn run_call(call: &Call) -> Result<Outcome> {
    let (&Work::Linalg(task), [a, ..]) = (&call.work, call.inputs) else { decline!("not a decomposition of matrices") };
    let dtype = a.dtype();
    if !matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128) || call.inputs.iter().any(|b| b.dtype() != dtype) {
        decline!("matrices of {dtype}, or of several dtypes");
    }
    if call.outputs.iter().any(|spec| !spec.layout.is_c_contiguous()) {
        decline!("outputs that are not in C order");
    }
    let Some(problem) = Problem::new(call, task) else { decline!("matrices with too many elements") };
    team_kernels::run(call, &problem)
}

/// Task, dtype and extents of a call: `count` matrices `a` (m, n) and, for linear systems, `b` (n, k).
#[derive(Clone, Copy, Debug)]
struct Problem {
    task: Linalg,
    dtype: DType,
    count: usize,
    m: i32,
    n: i32,
    k: i32,
}

impl Problem {
    /// Returns the extents of `call`, or `None` if the number of elements of a matrix exceeds 32 bits.
    fn new(call: &Call, task: Linalg) -> Option<Problem> {
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

/// Returns `array` in C order: itself, or a copy that is queued.
fn contiguous(call: &Call, array: &StoredArray) -> Result<StoredArray> {
    if array.layout().is_c_contiguous() {
        return Ok(array.clone());
    }
    let layout = Layout::contiguous(array.shape())?;
    let buffer = device::allocate(call, layout.size().saturating_mul(array.dtype().itemsize()))?;
    let copied = StoredArray::new(array.dtype(), layout, buffer as Arc<dyn Buffer>)?;
    copy::queue_copy(call, array, &copied)?;
    Ok(copied)
}
