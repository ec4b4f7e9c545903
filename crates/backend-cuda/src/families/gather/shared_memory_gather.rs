//! Gathers along the last axis, with each row of the source in shared memory.

use cuprum_core::DType;

use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::driver::{Context, DeviceInfo};
use crate::families::copy::item_cpp_type;
use crate::families::indexed_loop::IndexedLoop;
use crate::families::kernel_lookup::KernelSource;

static GATHER_ROWS_SOURCE: KernelSource = KernelSource {
    name: "gather_rows.cu",
    text: concat!(include_str!("../../kernels/resolve_index.cuh"), include_str!("../../kernels/gather_rows.cu")),
};

/// Minimum number of elements of a row of the output: one for each thread of the smallest block.
const MIN_OUTPUT_ROW_LENGTH: usize = 256;
/// Maximum number of threads of a block.
const MAX_THREADS_PER_BLOCK: usize = 1024;
/// Shared memory that the driver reserves for each block, in bytes.
const RESERVED_SHARED_BYTES_PER_BLOCK: usize = 1 << 10;
/// Number of bytes that a read at a random index loads from the second-level cache.
const L2_SECTOR_BYTES: usize = 32;

/// A kernel argument, with the layout of the struct `GatherRows` in gather_rows.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct GatherRows {
    rows: usize,
    extent: usize,
    count: usize,
    row_stride: isize,
    step: isize,
    index_stride: isize,
}

/// A gather whose rows are copied to shared memory.
#[derive(Debug, PartialEq)]
pub(super) struct SharedMemoryGather {
    shape: GatherRows,
    /// Size of an element in bytes.
    item: usize,
    addresses: [u64; 2],
    threads: usize,
    /// Number of blocks that are resident on a multiprocessor.
    blocks_per_multiprocessor: usize,
}

/// Returns names and sources of the kernels, for compile checks without a device.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(1, "i64", "256"), (2, "i32", "512"), (4, "i64", "1024"), (8, "i32", "256"), (16, "i64", "512")];
    let listed = |(item, index, threads)| {
        GATHER_ROWS_SOURCE.named_source(&[("ITEM", item_cpp_type(item)), ("INDEX_ELEMENT", index), ("THREADS", threads)])
    };
    uses.map(listed).into()
}

impl SharedMemoryGather {
    /// Returns the gather from shared memory for the loop `gather`. Returns `None` if a row exceeds the shared memory, if reads at random
    /// indices load fewer bytes than copies of whole rows, or if the device would have too few blocks.
    pub fn from_indexed_loop_if_faster(gather: &IndexedLoop<2>, info: &DeviceInfo) -> Option<SharedMemoryGather> {
        let ([rows, count], [[row_stride, 0], [index_stride, 1]]) = (&gather.dims[..], gather.strides.each_ref().map(|s| &s[..])) else {
            return None;
        };
        let (rows, count, extent) = (*rows, *count, gather.extent);
        let row_bytes = extent.checked_mul(gather.item)?;
        let per_block = row_bytes.next_multiple_of(16).max(1) + RESERVED_SHARED_BYTES_PER_BLOCK;
        let fits = per_block <= info.shared_per_block_optin as usize;
        let gains =
            count >= MIN_OUTPUT_ROW_LENGTH && count.saturating_mul(L2_SECTOR_BYTES) >= row_bytes && rows >= 2 * info.sm_count as usize;
        if !fits || !gains {
            return None;
        }
        let resident = (info.shared_per_sm as usize / per_block).max(1);
        let threads_per_sm = info.threads_per_sm as usize;
        // Fills the multiprocessor with threads, in blocks of at least MIN_OUTPUT_ROW_LENGTH threads.
        let threads = (threads_per_sm / resident).next_power_of_two().clamp(MIN_OUTPUT_ROW_LENGTH, MAX_THREADS_PER_BLOCK);
        let shape = GatherRows { rows, extent, count, row_stride: *row_stride, step: gather.step, index_stride: *index_stride };
        let blocks_per_multiprocessor = resident.min(threads_per_sm / threads).max(1);
        Some(SharedMemoryGather { shape, item: gather.item, addresses: gather.addresses, threads, blocks_per_multiprocessor })
    }

    /// Queues the kernel on this thread's stream. `op` identifies the operation in the report of an index out of bounds.
    ///
    /// # Safety
    /// The addresses and `indices` stay valid until the kernel has run, and the loop stays inside the arrays for indices in bounds.
    pub unsafe fn queue_shared_memory_gather(
        &self,
        context: &'static Context,
        indices: u64,
        index_dtype: DType,
        op: u64,
    ) -> crate::Result<()> {
        let threads = self.threads.to_string();
        let defines = [("ITEM", item_cpp_type(self.item)), ("INDEX_ELEMENT", ctype(index_dtype)), ("THREADS", &threads[..])];
        let function = GATHER_ROWS_SOURCE.get_or_compile_kernel(context, "gather_rows", &defines)?;
        let shared = (self.shape.extent * self.item).next_multiple_of(16).max(16) as u32;
        function.allow_dynamic_shared_memory(shared)?;
        let ([source, target], fault) = (&self.addresses, context.fault_pointer()?);
        let mut args = Args::new();
        args.push(target).push(source).push(&indices).push(&self.shape).push(&fault).push(&op);
        let grid = self.shape.rows.min(context.info().sm_count as usize * self.blocks_per_multiprocessor);
        // SAFETY: the arguments match gather_rows, which checks every index. A block has shared memory for a row. The caller guarantees
        // that the arrays are valid.
        unsafe { function.launch([grid as u32, 1, 1], [self.threads as u32, 1, 1], shared, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(rows: usize, count: usize, extent: usize, item: usize) -> IndexedLoop<2> {
        let strides = [[extent as isize, 0].as_slice().into(), [count as isize, 1].as_slice().into()];
        IndexedLoop { item, dims: [rows, count].as_slice().into(), strides, extent, step: 1, addresses: [0, 0] }
    }

    #[test]
    fn blocks_fill_a_multiprocessor() {
        let info = DeviceInfo {
            ordinal: 0,
            name: String::new(),
            compute_capability: (9, 0),
            sm_count: 132,
            total_memory: 0,
            l2_bytes: 0,
            shared_per_block: 48 << 10,
            shared_per_block_optin: 227 << 10,
            shared_per_sm: 228 << 10,
            threads_per_sm: 2048,
            threads_per_block: 1024,
            single_to_double_ratio: 2,
            memory_pools: true,
            handle: 0,
        };
        let of = |rows, count, extent, item| SharedMemoryGather::from_indexed_loop_if_faster(&gather(rows, count, extent, item), &info);
        let threads = |rows: SharedMemoryGather| (rows.threads, rows.blocks_per_multiprocessor);
        assert_eq!(of(10_000, 1024, 1024, 4).map(threads), Some((256, 8)));
        assert_eq!(of(10_000, 11_584, 11_584, 4).map(threads), Some((512, 4)));
        assert_eq!(of(10_000, 24_000, 24_000, 4).map(threads), Some((1024, 2)));
        assert_eq!(of(10_000, 50_000, 50_000, 4).map(threads), Some((1024, 1)));
        // A row that is too long, few elements of a long row, short rows, and few rows.
        assert_eq!(of(10_000, 60_000, 60_000, 4), None);
        assert_eq!(of(10_000, 300, 30_000, 4), None);
        assert_eq!(of(10_000, 100, 100, 4), None);
        assert_eq!(of(10, 1024, 1024, 4), None);
    }
}
