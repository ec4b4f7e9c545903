//! Products of two matrices in compressed row format. The rows of the result are classified by their number of scalar multiplications. Each
//! class has kernels that count the nonzero columns of each row, and kernels that compute the elements. The host waits for the device
//! twice: for the classes that occur, and for the number of elements of the result.

use std::sync::Arc;

use cuprum_core::device::Buffer;
use cuprum_core::{Array, Call, DType, Error, Layout, Outcome, Result, StoredArray, decline};
use smallvec::SmallVec;

use super::{check_product_inputs, compile_check_dtypes, dtype_defines};
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{DEFAULT_THREADS_PER_BLOCK, KernelSource, grid_for_items};

static PRODUCT_SOURCE: KernelSource = KernelSource {
    name: "sparse_product.cu",
    text: concat!(include_str!("../../kernels/sparse.cuh"), include_str!("../../kernels/sparse_product.cu")),
};

/// Number of 64-bit fields of the struct `ProductCounters` in sparse_product.cu. The constants `*_INDEX` are indices of fields.
const PRODUCT_COUNTER_WORDS: usize = 8;
const TOTAL_COUNTER_INDEX: usize = 0;
const LARGE_ROWS_COUNTER_INDEX: usize = 1;
const ROW_CLASS_FLAGS_INDEX: usize = 4;
/// Size class of result rows with 1 to 128 products of elements, as in sparse_product.cu.
const SMALL_ROW_CLASS: usize = 1;
/// Size class of result rows with 129 to 512 products of elements, as in sparse_product.cu.
const MEDIUM_ROW_CLASS: usize = 2;
/// Number of hash table entries for a row of class [`SMALL_ROW_CLASS`], as in sparse_product.cu.
const SMALL_TABLE_ENTRIES: usize = 256;
/// Number of hash table entries for a row of class [`MEDIUM_ROW_CLASS`], as in sparse_product.cu.
const MEDIUM_TABLE_ENTRIES: usize = 1024;
/// Maximum size of [`LargeRowMemory`] in device memory, in bytes, unless a single block needs more.
const MAX_LARGE_ROW_MEMORY_BYTES: usize = 256 << 20;

/// Returns names and sources of the kernels, for compile checks without a device.
pub(super) fn sources_for_compile_check() -> impl Iterator<Item = (String, String)> {
    compile_check_dtypes().map(|(dtype, index)| PRODUCT_SOURCE.named_source(&dtype_defines(dtype, index)))
}

/// Returns a kernel argument with the layout of the struct `CsrMatrix` in sparse.cuh: three addresses, then the numbers of rows, columns
/// and elements.
fn csr_matrix_argument([indptr, indices, values]: [&StoredArray; 3], columns: usize) -> Result<[u64; 6]> {
    let addresses = [device::pointer_to_read(indptr)?, device::pointer_to_read(indices)?, device::pointer_to_read(values)?];
    let rows = indptr.layout().size().saturating_sub(1);
    Ok([addresses[0], addresses[1], addresses[2], rows as u64, columns as u64, indices.layout().size() as u64])
}

/// Returns the number of threads per block of the kernel that computes rows with one hash table per warp. As in sparse_product.cu, the
/// tables of a block fit in 48 KiB. A table has `entries` entries, each with a column number and a sum of `accumulator_bytes` bytes.
fn hash_table_block_threads(entries: usize, accumulator_bytes: usize) -> u32 {
    let fits = |warps: &u32| *warps as usize * entries * (size_of::<i32>() + accumulator_bytes) <= 48 << 10;
    32 * [8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// Runs the product of two matrices, of which the second has `columns` columns.
pub(super) fn run_sparse_product(call: &Call, columns: usize) -> Result<Outcome> {
    let [a_indptr, a_indices, a_values, b_indptr, b_indices, b_values] = call.inputs else { decline!("not a product of two matrices") };
    for matrix in [&call.inputs[..3], &call.inputs[3..]] {
        if let Err(reason) = check_product_inputs(matrix, a_values.dtype(), b_values.dtype()) {
            return Ok(Outcome::Declined(reason));
        }
    }
    let (rows, inner) = (a_indptr.layout().size().saturating_sub(1), b_indptr.layout().size().saturating_sub(1));
    if i32::try_from(rows.max(columns)).is_err() {
        decline!("more than 2^31 rows or columns");
    }
    if a_indices.dtype() != b_indices.dtype() {
        decline!("indices of two dtypes");
    }
    let context = device::context(call.device)?;
    let product = SparseProduct {
        call,
        context,
        a: csr_matrix_argument([a_indptr, a_indices, a_values], inner)?,
        b: csr_matrix_argument([b_indptr, b_indices, b_values], columns)?,
        rows,
        columns,
        dtype: a_values.dtype(),
        index: a_indices.dtype(),
    };
    product.compute_product()
}

/// A product of two matrices in compressed row format.
struct SparseProduct<'a> {
    call: &'a Call<'a>,
    context: &'static Context,
    a: [u64; 6],
    b: [u64; 6],
    rows: usize,
    columns: usize,
    dtype: DType,
    index: DType,
}

/// Device memory for the computation of large rows, which have too many products for a hash table in shared memory. Each block that
/// computes such rows has a bit and a sum for each column of the result.
struct LargeRowMemory {
    blocks: u32,
    /// One bit for each block and column of the result, initially 0.
    bits: Arc<CudaBuffer>,
    /// One sum for each block and column of the result, uninitialised.
    sums: Arc<CudaBuffer>,
}

impl SparseProduct<'_> {
    fn allocate_items(&self, count: usize, item: usize) -> Result<Arc<CudaBuffer>> {
        device::allocate(self.call, count.saturating_mul(item))
    }

    /// Launches the kernel `name` in blocks of `threads` threads. `args` match the kernel's parameters.
    fn launch_kernel(&self, name: &str, grid: [u32; 3], threads: u32, args: &mut Args) -> Result<()> {
        let mut queue = || {
            let function = PRODUCT_SOURCE.get_or_compile_kernel(self.context, name, &dtype_defines(self.dtype, self.index))?;
            // SAFETY: each caller passes the parameters of its kernel. All arrays have the extents that the kernel expects, and the kernels
            // check every number in `indptr` and `indices` of the inputs.
            unsafe { function.launch(grid, [threads, 1, 1], 0, args.pointers()) }
        };
        queue().with_call_context(self.call)
    }

    fn read_counters(&self, counters: &CudaBuffer) -> Result<[u64; PRODUCT_COUNTER_WORDS]> {
        let mut bytes = [0; 8 * PRODUCT_COUNTER_WORDS];
        self.context.copy_to_host(&mut bytes, counters.memory(), 0).with_call_context(self.call)?;
        let mut numbers = [0; PRODUCT_COUNTER_WORDS];
        for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        Ok(numbers)
    }

    fn compute_product(&self) -> Result<Outcome> {
        let SparseProduct { call, context, a, b, rows, .. } = self;
        let (classes, counts) = (self.allocate_items(*rows, 1)?, self.allocate_items(*rows, size_of::<i32>())?);
        let (large, counters) = (self.allocate_items(*rows, size_of::<i32>())?, self.allocate_items(PRODUCT_COUNTER_WORDS, 8)?);
        let [classes_at, counts_at, large_at, counters_at] = [&classes, &counts, &large, &counters].map(|buffer| buffer.pointer());
        context.fill(counters.memory(), 0, [0u8; 4], 2 * PRODUCT_COUNTER_WORDS).with_call_context(call)?;
        let fault = context.fault_pointer().with_call_context(call)?;
        let op = device::fault_operation_id(call.op, 1);
        let by_warp = grid_for_items(32 * (*rows).max(1) as u64, DEFAULT_THREADS_PER_BLOCK);

        let mut args = Args::new();
        args.push(&classes_at).push(&counts_at).push(&large_at).push(&counters_at).push(a).push(b).push(&fault).push(&op);
        self.launch_kernel("classify_rows", by_warp, DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        let found = self.read_counters(&counters)?;
        let has_class = |class: usize| found[ROW_CLASS_FLAGS_INDEX + class] != 0;

        // `read_counters` has waited for the device and ended the validity of the error word, so the next kernels get another one.
        let fault = context.fault_pointer().with_call_context(call)?;
        let by_table = [("small", SMALL_ROW_CLASS, SMALL_TABLE_ENTRIES), ("medium", MEDIUM_ROW_CLASS, MEDIUM_TABLE_ENTRIES)]
            .into_iter()
            .filter(|(_, class, _)| has_class(*class));
        for (name, ..) in by_table.clone() {
            let mut args = Args::new();
            args.push(&counts_at).push(&classes_at).push(a).push(b).push(&fault).push(&op);
            self.launch_kernel(&format!("count_{name}_rows"), by_warp, DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        }
        let large_rows = self.allocate_large_row_memory_if_needed(found[LARGE_ROWS_COUNTER_INDEX])?;
        if let Some(memory) = &large_rows {
            let bits = memory.bits.pointer();
            let mut args = Args::new();
            args.push(&counts_at).push(&large_at).push(&counters_at).push(&bits).push(a).push(b).push(&fault).push(&op);
            self.launch_kernel("count_large_rows", [memory.blocks, 1, 1], DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        }

        let indptr = self.allocate_items(*rows + 1, self.index.itemsize())?;
        let total = self.write_indptr(&indptr, counts_at, &counters)?;
        if self.index == DType::I32 && i32::try_from(total).is_err() {
            return Err(Error::value(call.op.name(), format!("{total} elements need int64 indices")));
        }
        let (indices, values) = (self.allocate_items(total, self.index.itemsize())?, self.allocate_items(total, self.dtype.itemsize())?);
        let [indptr_at, indices_at, values_at] = [&indptr, &indices, &values].map(|buffer| buffer.pointer());
        for (name, _, entries) in by_table {
            let mut args = Args::new();
            args.push(&indices_at).push(&values_at).push(&indptr_at).push(&classes_at).push(a).push(b);
            let threads = hash_table_block_threads(entries, self.accumulator_bytes());
            let grid = grid_for_items(32 * (*rows).max(1) as u64, threads);
            self.launch_kernel(&format!("multiply_{name}_rows"), grid, threads, &mut args)?;
        }
        if let Some(memory) = &large_rows {
            let (bits, sums) = (memory.bits.pointer(), memory.sums.pointer());
            let mut args = Args::new();
            args.push(&indices_at).push(&values_at).push(&indptr_at).push(&large_at).push(&counters_at).push(&bits).push(&sums);
            args.push(a).push(b);
            self.launch_kernel("multiply_large_rows", [memory.blocks, 1, 1], DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        }
        self.outcome_from_outputs([(*rows + 1, indptr), (total, indices), (total, values)])
    }

    /// Returns the size of an accumulator in bytes: at least 4.
    fn accumulator_bytes(&self) -> usize {
        self.dtype.itemsize().max(size_of::<u32>())
    }

    /// Allocates the memory for computing `count` large rows, for which a hash table in shared memory is too small. Returns `None` if
    /// `count` is 0.
    fn allocate_large_row_memory_if_needed(&self, count: u64) -> Result<Option<LargeRowMemory>> {
        if count == 0 {
            return Ok(None);
        }
        let words = self.columns.div_ceil(32);
        let per_block = words * 4 + self.columns.saturating_mul(self.accumulator_bytes());
        let most = 4 * self.context.info().sm_count as usize;
        let blocks = usize::try_from(count).unwrap_or(most).min(most).min(MAX_LARGE_ROW_MEMORY_BYTES / per_block).max(1);
        let bits = self.allocate_items(blocks * words, 4)?;
        self.context.fill(bits.memory(), 0, [0u8; 4], blocks * words).with_call_context(self.call)?;
        let sums = self.allocate_items(blocks.saturating_mul(self.columns), self.accumulator_bytes())?;
        Ok(Some(LargeRowMemory { blocks: blocks as u32, bits, sums }))
    }

    /// Writes `indptr` of the result: the running sums of `counts`, the numbers of elements of the rows. Returns the number of all
    /// elements.
    fn write_indptr(&self, indptr: &CudaBuffer, counts: u64, counters: &CudaBuffer) -> Result<usize> {
        let blocks = self.rows.div_ceil(DEFAULT_THREADS_PER_BLOCK as usize).max(1);
        let block_sums = self.allocate_items(blocks, 8)?;
        let (sums_at, indptr_at, counters_at) = (block_sums.pointer(), indptr.pointer(), counters.pointer());
        let grid = [blocks as u32, 1, 1];
        let mut args = Args::new();
        args.push(&sums_at).push(&counts).push(&self.rows);
        self.launch_kernel("sum_counts", grid, DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        let mut args = Args::new();
        args.push(&sums_at).push(&blocks).push(&counters_at);
        self.launch_kernel("scan_block_sums", [1, 1, 1], DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        let mut args = Args::new();
        args.push(&indptr_at).push(&sums_at).push(&counts).push(&self.rows);
        self.launch_kernel("write_indptr", grid, DEFAULT_THREADS_PER_BLOCK, &mut args)?;
        let total = self.read_counters(counters)?[TOTAL_COUNTER_INDEX];
        usize::try_from(total).map_err(|_| Error::value(self.call.op.name(), format!("a kernel counted {total} elements")))
    }

    /// Returns [`Outcome::Done`] with `outputs`. Each output is given by its length in elements and its memory.
    fn outcome_from_outputs(&self, outputs: [(usize, Arc<CudaBuffer>); 3]) -> Result<Outcome> {
        let buffers = outputs.each_ref().map(|(_, buffer)| buffer.clone());
        device::record_output_writes(self.call, &buffers);
        let arrays = outputs
            .into_iter()
            .zip(self.call.outputs)
            .map(|((length, buffer), spec)| StoredArray::new(spec.dtype, Layout::contiguous(&[length])?, buffer as Arc<dyn Buffer>));
        Ok(Outcome::Done(arrays.collect::<Result<SmallVec<_>>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_in_shared_memory() {
        assert_eq!([4, 8, 16].map(|bytes| hash_table_block_threads(SMALL_TABLE_ENTRIES, bytes)), [256; 3]);
        assert_eq!([4, 8, 16].map(|bytes| hash_table_block_threads(MEDIUM_TABLE_ENTRIES, bytes)), [128, 128, 64]);
    }
}
