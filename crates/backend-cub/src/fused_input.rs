//! Checks of fused programs, and vector loads of their 1-D inputs. Such an input has stride 1, or stride 0 if one element is repeated.

use cuprum_backend_cuda::codegen::{self, InnermostAxisAccess};
use cuprum_core::{Array, DeclineReason, Program, StoredArray};

/// Returns a reason to decline if `program` contains an operation that has no CUDA implementation.
pub fn check_ops_have_cuda_code(program: &Program) -> Result<(), DeclineReason> {
    match program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        Some(op) => Err(DeclineReason::with_text(|| format!("{} has no CUDA implementation", op.name()))),
        None => Ok(()),
    }
}

/// Returns how a kernel reads `inputs`, which start at `addresses`, and how many elements a thread loads at once.
///
/// This number of elements is 16 bytes divided by the largest element size of the inputs with stride 1, if all these inputs are aligned for
/// such loads. Otherwise a thread loads one element at a time.
pub fn input_access_and_vector_width(inputs: &[StoredArray], addresses: &[u64]) -> (InnermostAxisAccess, usize) {
    let repeated = InnermostAxisAccess::innermost_access_of_flat_inputs(inputs).repeated;
    let streamed = || inputs.iter().zip(addresses).enumerate().filter(|(k, _)| repeated >> k & 1 == 0).map(|(_, pair)| pair);
    let width = 16 / streamed().map(|(a, _)| a.dtype().itemsize()).max().unwrap_or(16);
    let aligned = width > 1 && streamed().all(|(a, address)| address % (width * a.dtype().itemsize()).min(16) as u64 == 0);
    (InnermostAxisAccess { repeated, aligned }, if aligned { width } else { 1 })
}
