//! Family Search: insertion points of values in a sorted array (`searchsorted`), with one thread per value.

use cuprum_core::call;
use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, InCall};
use crate::families::kernel::{self, DEFAULT_THREADS, KernelSource};

static SEARCH_SOURCE: KernelSource =
    KernelSource { name: "search.cu", text: concat!(include_str!("../kernels/sort_keys.cuh"), include_str!("../kernels/search.cu")) };

/// Returns the macro definitions of the kernel. `after_equal` tells whether insertion points are after equal elements instead of before
/// them.
fn kernel_defines(dtype: DType, after_equal: bool) -> [(&'static str, &'static str); 2] {
    [("ELEMENT", ctype(dtype)), ("AFTER", if after_equal { "1" } else { "0" })]
}

/// Returns names and sources of the kernels, for compile checks without a device: every dtype, with insertion points
/// alternately before and after equal elements.
pub fn sources_for_checks() -> Vec<(String, String)> {
    DType::ALL.iter().enumerate().map(|(n, &dtype)| SEARCH_SOURCE.named_source(&kernel_defines(dtype, n % 2 == 0))).collect()
}

/// Runs a call of family Search.
pub fn run_call(call: &Call) -> Result<Outcome> {
    let (&Work::Search(call::Search { after_equal }), [sorted, values], [spec]) = (&call.work, call.inputs, call.outputs) else {
        decline!("not a search of one array in another");
    };
    if sorted.dtype() != values.dtype() || spec.dtype != DType::I64 {
        decline!("values of another dtype than the sorted array");
    }
    if !sorted.layout().is_c_contiguous() || !values.layout().is_c_contiguous() || !spec.layout.is_c_contiguous() {
        decline!("an array that is not contiguous");
    }
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let (size, count) = (sorted.layout().size(), values.layout().size());
    let addresses = [out.pointer(), device::pointer_to_read(sorted)?, device::pointer_to_read(values)?];
    let queue = || {
        let function = SEARCH_SOURCE.kernel(context, "search_sorted", &kernel_defines(values.dtype(), after_equal))?;
        let mut args = Args::new();
        args.push(&addresses[0]).push(&addresses[1]).push(&size).push(&addresses[2]).push(&count);
        // SAFETY: the arguments match search_sorted. `sorted` has `size` elements, and values and output have `count` each.
        unsafe { function.launch(kernel::grid_for_items(count as u64, DEFAULT_THREADS), [DEFAULT_THREADS, 1, 1], 0, args.pointers()) }
    };
    queue().in_call(call)?;
    device::done(call, [out])
}
