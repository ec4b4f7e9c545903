//! A faster store for rows of one item of at most 4 bytes. A value and its position share a 64-bit word, so one atomic maximum per value
//! finds the last value of each row.

use super::scatter_launch::ScatterLaunch;
use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::driver::DeviceBuffer;
use crate::families::copy::item_cpp_type;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK, KernelSource};

static PACKED_STORE_SOURCE: KernelSource = KernelSource {
    name: "scatter_packed.cu",
    text: concat!(
        include_str!("../../kernels/atomic_update.cuh"),
        include_str!("../../kernels/resolve_index.cuh"),
        include_str!("../../kernels/scatter_packed.cu")
    ),
};

/// Maximum number of target rows per value. With more rows, clearing and reading one word per row takes longer than the general method,
/// which finds positions first and then stores values.
const MAX_TARGET_ROWS_PER_VALUE: usize = 4;

/// Returns names and sources of the kernels, for compile checks without a device.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(1, "i64"), (2, "i32"), (4, "i64")];
    uses.map(|(item, index)| PACKED_STORE_SOURCE.named_source(&[("ITEM", item_cpp_type(item)), ("INDEX_ELEMENT", index)])).into()
}

impl ScatterLaunch {
    /// Returns whether [`ScatterLaunch::queue_packed_store`] can store `count` values and is faster than the other kernels.
    pub(super) fn fits_packed_store(&self, count: usize) -> bool {
        self.scatter.item <= 4
            && self.scatter.dims.len() == 1
            && u32::try_from(count).is_ok_and(|count| count < u32::MAX)
            && self.scatter.extent.div_ceil(MAX_TARGET_ROWS_PER_VALUE) <= count
    }

    /// Queues the kernels that store the last value of each row. `words` is scratch memory with 8 bytes for each row of the target.
    pub(super) fn queue_packed_store(&self, words: &DeviceBuffer, count: usize) -> crate::Result<()> {
        let (context, rows) = (self.context, self.scatter.extent);
        context.fill(words, 0, [0u8; 4], 2 * rows)?;
        let defines = [("ITEM", item_cpp_type(self.scatter.item)), ("INDEX_ELEMENT", ctype(self.index_dtype))];
        let ([source, target], words, fault) = (&self.scatter.addresses, words.pointer(), context.fault_pointer()?);
        let grid = |items: usize| kernel_lookup::grid_for_items(items as u64, DEFAULT_THREADS_PER_BLOCK);
        let pack = PACKED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_write_largest_words", &defines)?;
        let value_step = self.scatter.strides[0][0];
        let mut args = Args::new();
        args.push(&words).push(source).push(&self.indices).push(&count).push(&rows).push(&value_step).push(&fault).push(&self.op);
        // SAFETY: the arguments match scatter_write_largest_words. `words` has a 64-bit word for each row, and the kernel checks every
        // index.
        unsafe { pack.launch(grid(count), [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers())? };
        let unpack = PACKED_STORE_SOURCE.get_or_compile_kernel(context, "scatter_unpack_words", &defines)?;
        let mut args = Args::new();
        args.push(target).push(&words).push(&rows).push(&self.scatter.step);
        // SAFETY: the arguments match scatter_unpack_words. The target has an item for each row.
        unsafe { unpack.launch(grid(rows), [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    }
}
