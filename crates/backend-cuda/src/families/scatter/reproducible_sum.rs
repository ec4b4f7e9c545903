//! Additions of floats and complex numbers to rows that indices select. The values are added as scaled integers, so the result has the same
//! bits in any order of additions (`docs/notes/scatter-sums.md`).

use cuprum_core::call::RowAssignment;
use cuprum_core::layout::Layout;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, Call, DType, Result, StoredArray};

use super::bucket_sum::BucketSum;
use super::scatter_launch::{ScatterLaunch, plan_scatter};
use crate::codegen::{ctype, fits_32_bit_index, index_type, pack_axes};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};

static SCATTER_SUM_SOURCE: KernelSource = KernelSource {
    name: "scatter_sum.cu",
    text: concat!(
        include_str!("../../kernels/atomic_update.cuh"),
        include_str!("../../kernels/resolve_index.cuh"),
        include_str!("../../kernels/scatter_sum.cuh"),
        include_str!("../../kernels/scatter_sum.cu"),
    ),
};

/// Number of bytes of an `ExponentRange` of scatter_sum.cuh, rounded up to the alignment of a copy.
const EXPONENT_RANGE_BYTES: usize = 32;
/// Number of values whose exponents are sampled: `1 << SAMPLE_BITS` of scatter_sum.cuh.
const SAMPLED_VALUE_COUNT: u32 = 1 << 14;
/// Number of items per thread of the kernels that read all values or all elements. These kernels may return early, and starting more
/// threads would then take longer than their work. With sorted indices, fewer threads also wait less for each other.
const SCATTER_SUM_ITEMS_PER_THREAD: usize = 16;

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let inexact = DType::ALL.into_iter().filter(|dtype| dtype.is_inexact()).enumerate();
    let uses = inexact.map(|(n, dtype)| (dtype, [("i64", false, "1"), ("i32", true, "2"), ("i32", false, "0")][n % 3]));
    uses.map(|(dtype, (index, wide, rank))| SCATTER_SUM_SOURCE.named_source(&sum_macros(dtype, index, wide, rank))).collect()
}

pub(super) fn sum_macros<'a>(dtype: DType, index_element: &'a str, wide: bool, rank: &'a str) -> [(&'static str, &'a str); 4] {
    [("ELEMENT", ctype(dtype)), ("INDEX_ELEMENT", index_element), ("INDEX", index_type(wide)), ("RANK", rank)]
}

/// Device addresses of the memory that the kernels of a sum share, and `bits`, the number of bits of the integer for the largest value.
pub(super) struct ScatterSumMemory {
    pub range: u64,
    pub sums: u64,
    pub rests: u64,
    pub bits: u64,
}

/// Returns the number of bits of the integer to which the largest value is scaled. The sum of `count` such integers fits in 63 bits. The
/// number is at most 50, so that float64 additions can round scaled values to integers.
fn scaled_value_bits(count: usize) -> u64 {
    (62 - u64::from(usize::BITS - count.leading_zeros())).min(50)
}

/// Queues the addition of `values` to the rows of `target` that its `count` indices select. `region` is the layout of all rows.
pub(super) fn queue_reproducible_sum(
    call: &Call,
    target: &ScatterLaunch,
    values: &StoredArray,
    region: &Layout,
    count: usize,
) -> Result<()> {
    let dtype = values.dtype();
    let (real, elements) = (dtype.real(), region.size());
    let parts = elements.saturating_mul(dtype.itemsize() / real.itemsize());
    let words = parts.saturating_mul(2);
    // The memory holds an `ExponentRange` of all values, then an exponent for each real or imaginary part of each element of the target.
    let exponent_memory = device::allocate(call, parts.saturating_mul(4).saturating_add(EXPONENT_RANGE_BYTES))?;
    let sum_memory = device::allocate(call, words.saturating_mul(8))?;
    let context = target.context;
    context.fill(exponent_memory.memory(), 0, [0u8; 4], parts + EXPONENT_RANGE_BYTES / 4).with_call_context(call)?;
    context.fill(sum_memory.memory(), 0, [0u8; 4], 2 * words).with_call_context(call)?;
    let (range, sums, bits) = (exponent_memory.pointer(), sum_memory.pointer(), scaled_value_bits(count));
    let (exponents, rests) = (range + EXPONENT_RANGE_BYTES as u64, sums + 8 * parts as u64);
    let memory = ScatterSumMemory { range, sums, rests, bits };

    // The loop over all elements of the target's rows, for the kernels that find negative zeros and that store the sums.
    let contiguous = Layout::contiguous(region.shape())?;
    let LoopPlan { dims, strides, .. } = LoopPlan::new(&[region, &contiguous]);
    let strides = [&strides[0][..], &strides[1][..]];
    let wide = !fits_32_bit_index(elements, &dims, strides);
    let (rank, row_axes) = (dims.len().to_string(), pack_axes(&dims, strides, wide));
    let defines_of_rows = sum_macros(dtype, ctype(target.index_dtype), wide, &rank);
    let out = target.scatter.addresses[1];

    // The loops over the values, for the kernels that add to the sums and that find the exponents.
    let from = target.scatter.addresses[0];
    let plan = |to: u64| plan_scatter(values, &contiguous, RowAssignment::Indexed, count, [from, to], false);
    let (sums_loop, exponents_loop) = (plan(sums)?, plan(exponents)?);
    let (value_count, value_axes) = (sums_loop.item_count(), sums_loop.pack_axes_argument());
    let rank = sums_loop.dims.len().to_string();
    let defines_of_values = sum_macros(dtype, ctype(target.index_dtype), sums_loop.needs_wide_index(), &rank);
    let buckets = BucketSum::try_allocate_bucket_sum(call, context, &sums_loop, dtype, count)?;

    let threads = [DEFAULT_THREADS_PER_BLOCK, 1, 1];
    let queue_passes = || {
        let sample = SCATTER_SUM_SOURCE.get_or_compile_kernel(context, "scatter_sample_exponents", &defines_of_values)?;
        let mut args = Args::new();
        args.push(&range).push(&from).push(&value_count).push_bytes(&value_axes);
        // SAFETY: the arguments match scatter_sample_exponents. If the kernel's number of values has 32 bits, the driver reads the low half
        // of `value_count`. The loop stays inside the values.
        unsafe { sample.launch([SAMPLED_VALUE_COUNT / DEFAULT_THREADS_PER_BLOCK, 1, 1], threads, 0, args.pointers())? };
        let find_zeros = SCATTER_SUM_SOURCE.get_or_compile_kernel(context, "scatter_find_negative_zeros", &defines_of_rows)?;
        let zeros_grid = kernel_lookup::grid_for_items(elements.div_ceil(SCATTER_SUM_ITEMS_PER_THREAD) as u64, DEFAULT_THREADS_PER_BLOCK);
        let mut args = Args::new();
        args.push(&range).push(&out).push(&elements).push_bytes(&row_axes);
        // SAFETY: the arguments match scatter_find_negative_zeros. If the kernel's number of elements has 32 bits, the driver reads the low
        // half of `elements`. The loop stays inside the rows of the target.
        unsafe { find_zeros.launch(zeros_grid, threads, 0, args.pointers())? };

        if let Some(buckets) = &buckets {
            buckets.queue_bucket_sum(target, &sums_loop, ctype(target.index_dtype), &memory)?;
        }
        let add = SCATTER_SUM_SOURCE.get_or_compile_kernel(context, "scatter_add", &defines_of_values)?;
        let queue_add = |adds_common_units: bool| {
            let extra = [rests, exponents, range, bits, adds_common_units.into()];
            // SAFETY: scatter_add has the parameters that `queue_kernel` lists. `extra` holds the addresses `rests`, `exponents` and
            // `range`, the number of bits, and the choice of units. The kernel checks every index. `sums` and `rests` have a word for each
            // real or imaginary part.
            unsafe { sums_loop.queue_kernel(context, &add, SCATTER_SUM_ITEMS_PER_THREAD, target.indices, &extra, target.op) }
        };
        queue_add(true)?;
        let find_exponents = SCATTER_SUM_SOURCE.get_or_compile_kernel(context, "scatter_exponents", &defines_of_values)?;
        let extra = [range, bits, sums, words as u64];
        // SAFETY: scatter_exponents has the parameters that `queue_kernel` lists. `extra` holds the address `range`, the number of bits,
        // the address of the sums, and the number of words of the sums and rests, which are adjacent. `exponents` has a number for each
        // real or imaginary part of the target's elements. The kernel checks every index.
        unsafe { exponents_loop.queue_kernel(context, &find_exponents, SCATTER_SUM_ITEMS_PER_THREAD, target.indices, &extra, target.op)? };
        queue_add(false)?;

        let store = SCATTER_SUM_SOURCE.get_or_compile_kernel(context, "scatter_store_sums", &defines_of_rows)?;
        let mut args = Args::new();
        args.push(&out).push(&exponents).push(&sums).push(&rests).push(&elements).push(&range).push(&bits).push_bytes(&row_axes);
        // SAFETY: the arguments match scatter_store_sums, which visits the same elements as scatter_find_negative_zeros.
        unsafe { store.launch(kernel_lookup::grid_for_items(elements as u64, DEFAULT_THREADS_PER_BLOCK), threads, 0, args.pointers()) }
    };
    queue_passes().with_call_context(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_all_values_fit() {
        for count in [1, 2, 3, 1 << 25, (1 << 25) + 1, 1 << 40] {
            let bits = scaled_value_bits(count);
            assert!((count as u128) << bits <= 1 << 62, "{count} values of {bits} bits");
            assert!(bits == 50 || (count as u128) << (bits + 2) > 1 << 62, "{count} values may have more than {bits} bits");
        }
    }
}
