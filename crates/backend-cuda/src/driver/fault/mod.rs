//! Faults of kernels: bad values, such as an index out of bounds, that a kernel reports while it goes on.
//!
//! Each launch that may fault has an error word of its own: 32 bytes of pinned host memory ([`crate::driver::Context::fault_pointer`]). A kernel writes
//! its first fault there, and must then carry on without touching memory out of bounds (skip the element). The host reads the word
//! after a wait that covers the launch, so a check costs one load and no copy.
//!
//! # Contract
//! - A fault is reported to the thread that queued the launch, at its next wait or read that covers the launch. One report covers all
//!   faults that were found by then; it carries the first.
//! - A fault is reported to every reader of an array that depends on the faulting launch, on whatever thread and however often it is
//!   read. Each buffer lists the launches that its values depend on; operations, copies and graphs pass the list on.
//! - A fault is never reported to another thread for data that does not depend on it.
//! - Waiting for the whole device also reports faults of threads that have ended, so that none is lost.
//! - The launches of a graph share one word, since its kernels hold the address. A launch makes the arrays of the graph sound again;
//!   a fault of the previous launch that was not reported yet is then reported to the launching thread.

mod cell;
mod ledger;
mod operation;
mod taint;
#[cfg(test)]
mod tests;

pub(in crate::driver) use cell::FaultCell;
pub(in crate::driver) use taint::Taint;

/// An index out of bounds.
pub const INDEX_OUT_OF_BOUNDS: u64 = 1;

/// CUDA source of the device's side; prepend it to kernels that can fault. They take a `CuprumFault*` parameter,
/// filled with [`crate::driver::Context::fault_pointer`], and call `cuprum_fault(word, code, op, value, length)`.
pub const DEVICE_SOURCE: &str = r#"
struct CuprumFault { unsigned long long code, op; long long value; unsigned long long length; };
__device__ __noinline__ void cuprum_fault(CuprumFault* word, unsigned long long code, unsigned long long op,
                                          long long value, unsigned long long length) {
    if (atomicCAS(&word->code, 0ull, ~0ull) == 0ull) {
        volatile CuprumFault* out = word;
        out->op = op;
        out->value = value;
        out->length = length;
        __threadfence_system();
        out->code = code;
    }
}
"#;
