//! How programs over 1-D inputs of stride 1, or 0 where one element serves all, are read.

use cuprum_backend_cuda::codegen::{self, Access};
use cuprum_core::{Array, Program, Reason, StoredArray};

/// Refuses a program with an operation that has no code.
pub fn check_program(program: &Program) -> Result<(), Reason> {
    match program.ops().find(|op| !codegen::has_row(*op)) {
        Some(op) => Err(Reason::with(|| format!("{}: no code for it", op.name()))),
        None => Ok(()),
    }
}

/// How the inputs at these addresses are read, and how many elements at once: 16 bytes of the widest one if all lie at
/// multiples of that, else one.
pub fn packs(inputs: &[StoredArray], addresses: &[u64]) -> (Access, usize) {
    let repeated = Access::flat(inputs).repeated;
    let walked = || inputs.iter().zip(addresses).enumerate().filter(|(k, _)| repeated >> k & 1 == 0).map(|(_, pair)| pair);
    let width = 16 / walked().map(|(a, _)| a.dtype().itemsize()).max().unwrap_or(16);
    let aligned = width > 1 && walked().all(|(a, address)| address % (width * a.dtype().itemsize()).min(16) as u64 == 0);
    (Access { repeated, aligned }, if aligned { width } else { 1 })
}
