//! Additions of floats and complex numbers to rows that indices select. The values are added as scaled integers, so the result has the same
//! bits in any order of additions (`docs/notes/scatter-sums.md`).

use cuprum_core::call::ScatterRows;
use cuprum_core::layout::Layout;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, Call, DType, Result, StoredArray};

use super::launch::{ScatterLaunch, plan_scatter};
use crate::codegen::{ctype, fits_narrow_index, index_type, pack_axes};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel::{self, DEFAULT_THREADS, KernelSource};

static SOURCE: KernelSource = KernelSource {
    name: "scatter_sum.cu",
    text: concat!(include_str!("../../kernels/resolve_index.cuh"), include_str!("../../kernels/scatter_sum.cu")),
};

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype.
pub(super) fn compile_check_sources() -> Vec<(String, String)> {
    let inexact = DType::ALL.into_iter().filter(|dtype| dtype.is_inexact()).enumerate();
    let uses = inexact.map(|(n, dtype)| (dtype, [("i64", false, "1"), ("i32", true, "2"), ("i32", false, "0")][n % 3]));
    uses.map(|(dtype, (index, wide, rank))| SOURCE.named_source(&defines(dtype, index, wide, rank))).collect()
}

fn defines<'a>(dtype: DType, index_element: &'a str, wide: bool, rank: &'a str) -> [(&'static str, &'a str); 4] {
    [("ELEMENT", ctype(dtype)), ("INDEX_ELEMENT", index_element), ("INDEX", index_type(wide)), ("RANK", rank)]
}

/// Returns the number of bits to which the largest value is scaled before its conversion to an integer. With this number, the sum of
/// `count` values fits in 63 bits.
fn scaled_value_bits(count: usize) -> u64 {
    62 - u64::from(usize::BITS - count.leading_zeros())
}

/// Queues the addition of `values` to the rows of `target` that its `count` indices select. `region` is the layout of all rows.
pub(super) fn queue_sum(call: &Call, target: &ScatterLaunch, values: &StoredArray, region: &Layout, count: usize) -> Result<()> {
    let dtype = values.dtype();
    let (real, elements) = (dtype.real(), region.size());
    let parts = elements.saturating_mul(dtype.itemsize() / real.itemsize());
    let words = parts.saturating_mul(if real == DType::F64 { 2 } else { 1 });
    let exponents = device::allocate(call, parts.saturating_mul(4))?;
    let sums = device::allocate(call, words.saturating_mul(8))?;
    let context = target.context;
    context.fill(exponents.memory(), 0, [0u8; 4], parts).with_call_context(call)?;
    context.fill(sums.memory(), 0, [0u8; 4], 2 * words).with_call_context(call)?;

    let contiguous = Layout::contiguous(region.shape())?;
    let addresses = [target.scatter.addresses[0], exponents.pointer()];
    let mut adding = plan_scatter(values, &contiguous, ScatterRows::Indexed, count, addresses, false)?;
    let rank = adding.dims.len().to_string();
    let defines_of_values = defines(dtype, ctype(target.index_dtype), adding.needs_wide_index(), &rank);
    let bits = scaled_value_bits(count);
    let mut queue_passes = || {
        let find = SOURCE.kernel(context, "scatter_exponents", &defines_of_values)?;
        // SAFETY: scatter_exponents has the parameters that `queue_kernel` lists. `exponents` has a number for each real or imaginary part
        // of the elements of all rows, and the kernel checks every index.
        unsafe { adding.queue_kernel(context, &find, target.indices, &[], target.op)? };
        let add = SOURCE.kernel(context, "scatter_add", &defines_of_values)?;
        adding.addresses[1] = sums.pointer();
        // SAFETY: scatter_add has the parameters that `queue_kernel` lists, with the exponents and the number of bits as `extra`. The
        // kernel checks every index. `sums` has a word for each real or imaginary part, or two words if the part is a float64.
        unsafe { adding.queue_kernel(context, &add, target.indices, &[exponents.pointer(), bits], target.op) }
    };
    queue_passes().with_call_context(call)?;

    let LoopPlan { dims, strides, .. } = LoopPlan::new(&[region, &contiguous]);
    let strides = [&strides[0][..], &strides[1][..]];
    let wide = !fits_narrow_index(elements, &dims, strides);
    let (rank, axes) = (dims.len().to_string(), pack_axes(&dims, strides, wide));
    let defines_of_rows = defines(dtype, ctype(target.index_dtype), wide, &rank);
    let queue_store = || {
        let store = SOURCE.kernel(context, "scatter_store_sums", &defines_of_rows)?;
        let (exponents, sums) = (exponents.pointer(), sums.pointer());
        let mut args = Args::new();
        args.push(&target.scatter.addresses[1]).push(&exponents).push(&sums).push(&elements).push(&bits).push_bytes(&axes);
        // SAFETY: the arguments match scatter_store_sums. A 32-bit number of elements is the lower half of `elements`. The axes stay inside
        // the region of the target.
        unsafe { store.launch(kernel::grid_for_items(elements as u64, DEFAULT_THREADS), [DEFAULT_THREADS, 1, 1], 0, args.pointers()) }
    };
    queue_store().with_call_context(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_all_values_fit() {
        for count in [1, 2, 3, 1 << 25, (1 << 25) + 1, 1 << 40] {
            let bits = scaled_value_bits(count);
            assert!((count as u128) << bits <= 1 << 62, "{count} values of {bits} bits");
            assert!((count as u128) << (bits + 2) > 1 << 62, "{count} values may have more than {bits} bits");
        }
    }
}
