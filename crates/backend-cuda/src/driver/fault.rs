//! Faults of kernels: invalid values, such as an index out of bounds. A kernel that finds an invalid value reports it and continues.
//!
//! Each launch that may fault has its own error word: 32 bytes of pinned host memory ([`crate::driver::Context::fault_pointer`]). A kernel
//! writes its first fault there, and then continues without an access out of bounds (it skips the element). The host reads the error word
//! after a wait that covers the launch. A check thus costs one load and no copy.
//!
//! # Contract
//! - A fault is reported to the thread that queued the launch, at its next wait or read that covers the launch. One report covers all
//!   faults that were found until then, and contains the first of them.
//! - A fault is reported to every reader of an array that depends on the faulting launch, on any thread and at every read.
//!   Each buffer lists the launches that its values depend on. Operations, copies and graphs copy this list to their outputs.
//! - A fault is never reported to another thread for data that does not depend on it.
//! - Waiting for the whole device also reports faults of threads that have ended, so that no fault is lost.
//! - The launches of a graph share one error word, since the kernels hold its address. A new launch of the graph clears the fault of the
//!   previous launch. If that fault was not reported yet, it is reported to the thread of the new launch.

mod buffer_error_words;
mod error_word;
mod launch_ledger;
mod operation_faults;
#[cfg(test)]
mod tests;

pub(in crate::driver) use buffer_error_words::BufferErrorWords;
pub(in crate::driver) use error_word::LaunchErrorWord;
pub use operation_faults::run_with_own_error_word;

/// Fault code for an index out of bounds.
pub const INDEX_OUT_OF_BOUNDS: u64 = 1;

/// CUDA C++ source of the type `CuprumFault` and the function `cuprum_fault`, by which kernels report faults. A kernel takes the address
/// from [`crate::driver::Context::fault_pointer`] as a `CuprumFault*` parameter. The kernel calls
/// `cuprum_fault(word, code, op, value, length)`: `word` is that address, `code` the kind of fault, and `op` identifies the operation.
/// `value` is the invalid value, `length` the bound that it must be below.
pub const FAULT_DEVICE_SOURCE: &str = r#"
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
