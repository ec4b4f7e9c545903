//! Launches of the kernels in `kernels/sort_*.cu`.

use std::sync::Arc;

use cuprum_backend_cuda::device::{self, CudaBuffer};
use cuprum_backend_cuda::module::Args;
use cuprum_core::plan::sort::SortPlan;
use cuprum_core::{Outcome, Result};

use super::request::{DIGIT_VALUE_COUNT, DigitBitRange, RADIX_SELECT_BINS, SortMethod, SortRequest};
use crate::kernel_parameter_lists::{DevicePointer, KernelParameter, KernelParameters, kernel_parameters, parameter_by_value};
use crate::launch::LaunchContext;

/// Queues the kernels of a sort.
pub fn launch_sort_kernels(context: &LaunchContext, request: &SortRequest) -> Result<Outcome> {
    let call = context.call;
    let outputs: Vec<Arc<CudaBuffer>> = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<_>>()?;
    if !request.plan.is_empty() {
        let values = outputs.first().filter(|_| request.options.values);
        let indices = outputs.last().filter(|_| request.options.indices);
        let from = DevicePointer(context.inputs.first().copied().unwrap_or(0));
        match request.method {
            SortMethod::BlockPerRow => sort_rows(context, request, from, values, indices)?,
            SortMethod::TopK => select_and_sort_top_k(context, request, from, values, indices)?,
            SortMethod::Partition => partition_rows(context, request, from, values, indices)?,
            SortMethod::RadixPasses => sort_by_radix_passes(context, request, from, values, indices)?,
        }
    }
    device::outcome_from_buffers(call, outputs)
}

/// The buffer of an output, or `None` if the call does not request this output.
type Output<'a> = Option<&'a Arc<CudaBuffer>>;

fn output_pointer(buffer: Output) -> DevicePointer {
    DevicePointer(buffer.map_or(0, |b| b.pointer()))
}

/// Returns the chunk length and the number of chunks per row, for a kernel with a block per chunk.
fn chunk_length_and_count<P: KernelParameters>(context: &LaunchContext, request: &SortRequest) -> Result<(usize, u32)> {
    let SortPlan { rows, columns, .. } = request.plan;
    let blocks = context.resident_block_count::<P>(request.threads as u32, 0)? as usize;
    let count = blocks.div_ceil(rows).min(columns.div_ceil(request.threads * 16)).max(1);
    Ok((columns.div_ceil(count), count as u32))
}

kernel_parameters! {
    /// Parameters of `sort_rows`. `values` or `indices` may be null.
    struct SortRowsParams for "sort_rows" {
        from: DevicePointer,
        values: DevicePointer,
        indices: DevicePointer,
        rows: i64,
        columns: u32,
        limit: u32,
    }
}

/// Sorts short rows, one per block.
fn sort_rows(context: &LaunchContext, request: &SortRequest, from: DevicePointer, values: Output, indices: Output) -> Result<()> {
    let SortPlan { rows, columns, kept } = request.plan;
    let (values, indices, threads) = (output_pointer(values), output_pointer(indices), request.threads as u32);
    let params = SortRowsParams { from, values, indices, rows: rows as i64, columns: columns as u32, limit: kept as u32 };
    let grid = context.grid_size::<SortRowsParams>(threads, 0, rows as u64, 16)?;
    // SAFETY: the input has `rows` rows of `columns` elements, and each output `limit` elements per row. A block holds `columns` elements.
    unsafe { context.launch_kernel(grid, threads, 0, &params) }
}

kernel_parameters! {
    /// Parameters of `select_digit`.
    struct SelectDigitParams for "select_digit" {
        from: DevicePointer,
        rows: DevicePointer,
        counts: DevicePointer,
        columns: i64,
        limit: u64,
        chunk: i64,
        chunks: u32,
        of_indices: u32,
        begin_bit: u32,
        end_bit: u32,
    }
}

/// Size of `SelectState` in `sort_top.cu`, in bytes.
const SELECT_STATE_BYTES: usize = 40;

/// The result of a radix selection, and the chunks into which its rows were split.
struct RadixSelection {
    /// Device memory that starts with a `SelectState` per row. The buffer must live until all kernels that use it are queued.
    workspace: Arc<CudaBuffer>,
    /// Address of additional memory in the workspace, for kernels that run after the selection.
    extra: DevicePointer,
    chunk: i64,
    chunks: u32,
}

/// Finds, by radix selection, the last of the elements that each row selects in sort order.
///
/// The workspace of the result has `extra_words(chunks per row)` additional 64-bit words per row. In a pass, the blocks of a row return at
/// once if earlier passes have found the row's element.
fn find_last_selected_elements(
    context: &LaunchContext,
    request: &SortRequest,
    from: DevicePointer,
    extra_words: impl Fn(usize) -> usize,
) -> Result<RadixSelection> {
    let SortPlan { rows, columns, .. } = request.plan;
    let (chunk, chunks) = chunk_length_and_count::<SelectDigitParams>(context, request)?;
    let chunk = chunk as i64;
    let zeroed_bytes = rows * (SELECT_STATE_BYTES + RADIX_SELECT_BINS * size_of::<u64>());
    let workspace = device::allocate(context.call, zeroed_bytes + rows * extra_words(chunks as usize) * size_of::<u64>())?;
    context.queue_zero_fill(&workspace, 0, zeroed_bytes / 4)?;
    let at = |offset: usize| DevicePointer(workspace.pointer() + offset as u64);
    let [states, counts, extra] = [0, rows * SELECT_STATE_BYTES, zeroed_bytes].map(at);
    let (columns, limit) = (columns as i64, request.selected_per_row() as u64);
    for DigitBitRange { of_indices, begin_bit, end_bit } in request.selection_digit_ranges() {
        let of_indices = u32::from(of_indices);
        let params = SelectDigitParams { from, rows: states, counts, columns, limit, chunk, chunks, of_indices, begin_bit, end_bit };
        // SAFETY: the state and the counters of each row are zeroed, and the grid has a block for each chunk.
        unsafe { context.launch_kernel(rows as u32 * chunks, request.threads as u32, 0, &params) }?;
    }
    Ok(RadixSelection { workspace, extra, chunk, chunks })
}

kernel_parameters! {
    /// Parameters of `gather_top_elements`.
    struct GatherTopElementsParams for "gather_top_elements" {
        from: DevicePointer,
        rows: DevicePointer,
        chosen: DevicePointer,
        columns: i64,
        limit: u64,
        chunk: i64,
        chunks: u32,
    }
}

kernel_parameters! {
    /// Parameters of `rank_top_elements`. `values` or `indices` may be null.
    struct RankTopElementsParams for "rank_top_elements" {
        from: DevicePointer,
        chosen: DevicePointer,
        values: DevicePointer,
        indices: DevicePointer,
        columns: i64,
        limit: u32,
    }
}

/// Selects and sorts the first elements of each row.
fn select_and_sort_top_k(
    context: &LaunchContext,
    request: &SortRequest,
    from: DevicePointer,
    values: Output,
    indices: Output,
) -> Result<()> {
    let SortPlan { rows, columns, kept } = request.plan;
    let RadixSelection { workspace, extra: chosen, chunk, chunks } = find_last_selected_elements(context, request, from, |_| kept)?;
    let (states, columns, threads) = (DevicePointer(workspace.pointer()), columns as i64, request.threads as u32);
    let params = GatherTopElementsParams { from, rows: states, chosen, columns, limit: kept as u64, chunk, chunks };
    // SAFETY: `chosen` has `limit` words per row, and the grid has a block for each chunk.
    unsafe { context.launch_kernel(rows as u32 * chunks, threads, 0, &params) }?;
    let params = RankTopElementsParams {
        from,
        chosen,
        values: output_pointer(values),
        indices: output_pointer(indices),
        columns,
        limit: kept as u32,
    };
    // SAFETY: each output has `limit` elements per row. `limit` is at most `MAX_SELECTED_PER_ROW`, for which the kernel has shared memory.
    unsafe { context.launch_kernel(rows as u32, threads, 0, &params) }
}

kernel_parameters! {
    /// Parameters of `count_partition_elements`.
    struct CountPartitionElementsParams for "count_partition_elements" {
        from: DevicePointer,
        rows: DevicePointer,
        counts: DevicePointer,
        columns: i64,
        chunk: i64,
        chunks: u32,
    }
}

kernel_parameters! {
    /// Parameters of `write_partitions`. `values` or `indices` may be null.
    struct WritePartitionsParams for "write_partitions" {
        from: DevicePointer,
        rows: DevicePointer,
        counts: DevicePointer,
        values: DevicePointer,
        indices: DevicePointer,
        columns: i64,
        chunk: i64,
        chunks: u32,
    }
}

/// Partitions each row around the selected element: the elements that sort before it, those equal to it, and those that sort after it.
fn partition_rows(context: &LaunchContext, request: &SortRequest, from: DevicePointer, values: Output, indices: Output) -> Result<()> {
    let SortPlan { rows, columns, .. } = request.plan;
    let RadixSelection { workspace, extra: counts, chunk, chunks } = find_last_selected_elements(context, request, from, |chunks| chunks)?;
    let (states, columns) = (DevicePointer(workspace.pointer()), columns as i64);
    let (grid, threads) = (rows as u32 * chunks, request.threads as u32);
    let params = CountPartitionElementsParams { from, rows: states, counts, columns, chunk, chunks };
    // SAFETY: `counts` has a 64-bit word per chunk, and the grid has a block for each chunk.
    unsafe { context.launch_kernel(grid, threads, 0, &params) }?;
    let (values, indices) = (output_pointer(values), output_pointer(indices));
    let params = WritePartitionsParams { from, rows: states, counts, values, indices, columns, chunk, chunks };
    // SAFETY: each output has as many elements as the input, or is null. The grid has a block for each chunk.
    unsafe { context.launch_kernel(grid, threads, 0, &params) }
}

kernel_parameters! {
    /// Parameters of `sort_count_digits`.
    struct CountDigitsParams for "sort_count_digits" {
        from: DevicePointer,
        counts: DevicePointer,
        columns: i64,
        chunk: i64,
        chunks: u32,
        word: u32,
    }
}

kernel_parameters! {
    /// Parameters of `sort_digit_offsets`.
    struct DigitOffsetsParams for "sort_digit_offsets" {
        counts: DevicePointer,
        masks: DevicePointer,
        columns: i64,
    }
}

kernel_parameters! {
    /// Parameters of `sort_pass`. `values`, `indices` and `word_order` may be null if they are not needed. `states` is not used if there is
    /// one tile per row.
    struct SortPassParams for "sort_pass" {
        from: DevicePointer,
        buffers: RadixPassBuffers,
        values: DevicePointer,
        indices: DevicePointer,
        digit_offsets: DevicePointer,
        masks: DevicePointer,
        states: DevicePointer,
        ticket: DevicePointer,
        columns: i64,
        limit: i64,
        tiles: u32,
        pass: u32,
        tag: u32,
        word_order: DevicePointer,
        word: u32,
    }
}

/// The C++ struct `RadixPassBuffers`: keys and indices between passes, in two buffers that passes use alternately.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RadixPassBuffers {
    keys: [DevicePointer; 2],
    indices: [DevicePointer; 2],
    index_strides: [i64; 2],
}

parameter_by_value! {
    RadixPassBuffers: |declared| declared == "RadixPassBuffers";
}

/// Sorts all rows by radix passes.
///
/// Passes write alternately to two buffers. Where possible, the second buffer is the memory of the outputs. The last pass of a row reads
/// the first buffer.
fn sort_by_radix_passes(
    context: &LaunchContext,
    request: &SortRequest,
    from: DevicePointer,
    values: Output,
    indices: Output,
) -> Result<()> {
    let call = context.call;
    let SortPlan { rows, columns, kept } = request.plan;
    let (passes, index_size, tiles) = (request.key_size(), request.index_size(), request.tiles_per_row());
    let (elements, keeps_all) = (rows * columns, kept == columns);
    // The workspace holds a 32-bit tile counter per pass, a mask for all rows, a mask for each row, the digit counts, and the look-back
    // states.
    let words = (passes + 1 + rows).next_multiple_of(2);
    let count_bytes = rows * passes * DIGIT_VALUE_COUNT * index_size;
    let state_bytes = if tiles > 1 { rows * tiles * DIGIT_VALUE_COUNT * index_size } else { 0 };
    let [masks_at, counts_at, states_at, end] = [passes * 4, words * 4, words * 4 + count_bytes, words * 4 + count_bytes + state_bytes];
    let workspace = device::allocate(call, end)?;
    context.queue_zero_fill(&workspace, 0, end / 4)?;
    let at = |offset: usize| DevicePointer(workspace.pointer() + offset as u64);
    let (masks, digit_offsets, states) = (at(masks_at), at(counts_at), at(states_at));

    let temporary = |needed: bool, bytes: usize| if needed { device::allocate(call, bytes * elements).map(Some) } else { Ok(None) };
    let pairs = request.sorts_key_index_pairs();
    // A complex128 element has two keys of half its size. If such keys were stored in the output for values, the keys of one row would
    // overwrite the result of another row.
    let keys_fit_values = keeps_all && values.is_some() && request.keys_per_element() == 1;
    let keys = [temporary(passes > 1, passes)?, temporary(passes > 2 && !keys_fit_values, passes)?];
    let index_buffers =
        [temporary(pairs && passes > 1, index_size)?, temporary(pairs && passes > 2 && !(keeps_all && indices.is_some()), index_size)?];
    // The second index buffer may be the memory of the int64 output. Its rows of narrower indices then start where the output's rows start,
    // so that no row overwrites the result of another row.
    let output_stride = if index_buffers[1].is_some() { columns } else { columns * size_of::<i64>() / index_size };
    let buffers = RadixPassBuffers {
        keys: [output_pointer(keys[0].as_ref()), output_pointer(keys[1].as_ref().or(values))],
        indices: [output_pointer(index_buffers[0].as_ref()), output_pointer(index_buffers[1].as_ref().or(indices))],
        index_strides: [columns as i64, output_stride as i64],
    };
    let word_order_buffer = temporary(request.keys_per_element() > 1, index_size)?;
    let word_order = output_pointer(word_order_buffer.as_ref());

    let threads = request.threads as u32;
    let (chunk, chunks) = chunk_length_and_count::<CountDigitsParams>(context, request)?;
    let (row_count, columns, limit) = (rows as u32, columns as i64, kept as i64);
    let (values, indices, tiles) = (output_pointer(values), output_pointer(indices), tiles as u32);
    for word in 0..request.keys_per_element() as u32 {
        if word > 0 {
            context.queue_zero_fill(&workspace, 0, end / 4)?;
        }
        let params = CountDigitsParams { from, counts: digit_offsets, columns, chunk: chunk as i64, chunks, word };
        // SAFETY: there is a zeroed counter for each row, pass and digit, and a block for each chunk.
        unsafe { context.launch_kernel(row_count * chunks, threads, 0, &params) }?;
        let params = DigitOffsetsParams { counts: digit_offsets, masks, columns };
        // SAFETY: there is a zeroed mask for each row and one more. The grid has a block for each row and pass.
        unsafe { context.launch_kernel((rows * passes) as u32, DIGIT_VALUE_COUNT as u32, 0, &params) }?;

        for pass in 0..passes {
            let tag_number = pass % request.passes_until_tags_repeat();
            if pass > 0 && tag_number == 0 {
                context.queue_zero_fill(&workspace, states_at, state_bytes / 4)?;
            }
            let params = SortPassParams {
                from,
                buffers,
                values,
                indices,
                digit_offsets,
                masks,
                states,
                ticket: at(pass * 4),
                columns,
                limit,
                tiles,
                pass: pass as u32,
                tag: 1 + 2 * tag_number as u32,
                word_order,
                word,
            };
            // SAFETY: each buffer that this pass reads or writes has an element per input element; other buffers may be null. The look-back
            // states are zeroed or have tags of other passes, the tile counter is zeroed, and the grid has a block for each tile.
            unsafe { context.launch_kernel(row_count * tiles, threads, 0, &params) }?;
        }
    }
    Ok(())
}
