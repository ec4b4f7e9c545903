//! Products of a matrix with a vector, split into tiles of equally many elements. They are faster if a few rows are much longer than the
//! others, or if rows are long. The device decides by the lengths of the rows, so that the call does not wait.

use std::sync::Arc;

use cuprum_core::{Array, Call, DType, Result};

use super::{checked_dtypes, dtype_defines};
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::families::kernel::{DEFAULT_THREADS, KernelSource, grid_for_items};

static SPLIT_SOURCE: KernelSource = KernelSource {
    name: "sparse_split.cu",
    text: concat!(include_str!("../../kernels/sparse.cuh"), include_str!("../../kernels/sparse_split.cu")),
};

/// Number of elements of a tile, as in sparse_split.cu.
const TILE: usize = 2048;
/// Minimum number of elements of a product that may be split. Smaller products are bound by launches.
const MIN_ELEMENTS: usize = 1 << 18;
/// Minimum mean length of rows at which every product is split, in elements.
const MIN_LONG_MEAN: usize = 32;
/// A product of shorter rows is split if a row is longer than this multiple of the mean length, rounded up.
const IRREGULAR_FACTOR: usize = 8;

/// Returns names and sources of the kernels, for compile checks without a device.
pub(super) fn compile_check_sources() -> impl Iterator<Item = (String, String)> {
    checked_dtypes().map(|(dtype, index)| SPLIT_SOURCE.named_source(&dtype_defines(dtype, index)))
}

/// Queues the kernels that compute a product if its rows are irregular, and returns the flag on the device that tells whether they are.
/// Returns `None`, without queueing anything, for small products.
///
/// `addresses` are those of the output and of the four inputs; the extents are the numbers of rows, columns and elements.
pub(super) fn queue_split(
    call: &Call,
    [out, indptr, indices, values, x]: &[u64; 5],
    [rows, columns, count]: [usize; 3],
    op: u64,
) -> Result<Option<Arc<CudaBuffer>>> {
    if count < MIN_ELEMENTS || rows == 0 {
        return Ok(None);
    }
    let context = device::context(call.device)?;
    let (dtype, index) = (call.inputs[2].dtype(), call.inputs[1].dtype());
    let tiles = count.div_ceil(TILE);
    let mean = count.div_ceil(rows);
    let max_length: i64 = if mean >= MIN_LONG_MEAN { -1 } else { (IRREGULAR_FACTOR * mean) as i64 };
    let irregular = device::allocate(call, size_of::<u32>())?;
    let tile_rows = device::allocate(call, (tiles + 1).saturating_mul(size_of::<i64>()))?;
    let carries = device::allocate(call, tiles.saturating_mul(accumulator_bytes(dtype)))?;
    let [flag_at, rows_at, carries_at] = [&irregular, &tile_rows, &carries].map(|buffer| buffer.pointer());
    let matrix = [*indptr, *indices, *values, rows as u64, columns as u64, count as u64];
    let queue = || {
        context.fill(irregular.memory(), 0, [0u8; 4], 1)?;
        let fault = context.fault_pointer()?;
        let kernel = |name| SPLIT_SOURCE.kernel(context, name, &dtype_defines(dtype, index));
        let threads = [DEFAULT_THREADS, 1, 1];
        let mut args = Args::new();
        args.push(&rows_at).push(&flag_at).push(&matrix).push(&tiles).push(&max_length).push(&fault).push(&op);
        let grid = grid_for_items(rows.max(32 * (tiles + 1)) as u64, DEFAULT_THREADS);
        // SAFETY: the arguments match find_tile_rows. `indptr` has `rows + 1` elements, and `tile_rows` has `tiles + 1`.
        unsafe { kernel("find_tile_rows")?.launch(grid, threads, 0, args.pointers()) }?;
        let mut args = Args::new();
        args.push(out).push(&carries_at).push(&matrix).push(x).push(&rows_at).push(&flag_at).push(&fault).push(&op);
        // SAFETY: the arguments match split_times_vector. `indices` and `values` have `count` elements, `x` has `columns`, the output has
        // `rows`, and `carries` has `tiles`. The kernel checks every number in `indices` and `indptr`.
        unsafe { kernel("split_times_vector")?.launch(grid_for_items(tiles as u64, 1), threads, 0, args.pointers()) }?;
        let mut args = Args::new();
        args.push(out).push(&carries_at).push(&matrix).push(&rows_at).push(&tiles).push(&flag_at);
        // SAFETY: the arguments match add_carries, for the same arrays.
        unsafe { kernel("add_carries")?.launch(grid_for_items(32 * tiles as u64, DEFAULT_THREADS), threads, 0, args.pointers()) }
    };
    queue().with_call_context(call)?;
    Ok(Some(irregular))
}

/// Returns the size of an accumulator of `dtype` in bytes: at least 4.
pub(super) fn accumulator_bytes(dtype: DType) -> usize {
    dtype.itemsize().max(size_of::<u32>())
}
