//! Additions of scaled integers, as in the module `reproducible_sum`, with fewer random accesses to global memory. Values are sorted by
//! ranges of rows within tiles, then added in shared memory (`docs/notes/scatter-sums.md`).

use std::sync::Arc;

use cuprum_core::{Call, DType, Error, Result};

use super::reproducible_sum::{self, ScatterSumMemory};
use super::scatter_launch::ScatterLaunch;
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer};
use crate::driver::Context;
use crate::families::indexed_loop::IndexedLoop;
use crate::families::kernel_lookup::KernelSource;

static BUCKET_SUM_SOURCE: KernelSource = KernelSource {
    name: "scatter_bucket_sum.cu",
    text: concat!(
        include_str!("../../kernels/atomic_update.cuh"),
        include_str!("../../kernels/resolve_index.cuh"),
        include_str!("../../kernels/scatter_sum.cuh"),
        include_str!("../../kernels/scatter_bucket_sum.cu"),
    ),
};

/// Binary logarithm of the number of rows of a bucket, as in scatter_bucket_sum.cu.
const BUCKET_BITS: u32 = 13;
/// Number of threads of a block that sorts a tile of values, as in scatter_bucket_sum.cu.
const THREADS_PER_TILE: usize = 512;
/// Number of values of a tile, as in scatter_bucket_sum.cu.
const TILE_LENGTH: usize = THREADS_PER_TILE * 16;
/// Number of threads of a block that adds the values of a bucket, as in scatter_bucket_sum.cu.
const THREADS_PER_BUCKET_BLOCK: usize = 1024;
/// Number of partial counts of the values of a bucket, as in scatter_bucket_sum.cu.
const PARTIAL_COUNTS_PER_BUCKET: usize = 16;
/// Shared memory of a block that adds values, in bytes: two words for each row of a bucket.
const SHARED_BYTES_PER_BUCKET: usize = 8 << BUCKET_BITS;
/// Upper bound of the static shared memory of the kernels in scatter_bucket_sum.cu, in bytes.
const MAX_STATIC_SHARED_BYTES: usize = 4 << 10;
/// Minimum number of values. For fewer values, launching three more kernels takes longer than the random accesses that they avoid.
const MIN_VALUES_FOR_BUCKET_SUM: usize = 1 << 23;
/// Maximum number of buckets (ranges of rows). With more buckets, few values of a tile are in the same bucket.
const MAX_BUCKETS: usize = 256;

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(DType::F16, "i64"), (DType::BF16, "i32"), (DType::F32, "i64"), (DType::F64, "i32")];
    uses.map(|(dtype, index)| BUCKET_SUM_SOURCE.named_source(&reproducible_sum::sum_macros(dtype, index, false, "1"))).into()
}

/// Scratch memory and launch parameters of the kernels in scatter_bucket_sum.cu.
pub(super) struct BucketSum {
    rows: Arc<CudaBuffer>,
    values: Arc<CudaBuffer>,
    /// The position in each tile at which the values of each bucket start.
    starts: Arc<CudaBuffer>,
    /// The number of values of each bucket, as [`PARTIAL_COUNTS_PER_BUCKET`] partial counts.
    sizes: Arc<CudaBuffer>,
    dtype: DType,
    count: usize,
    buckets: usize,
}

/// A kernel argument, with the layout of the struct `SortedTiles` in scatter_bucket_sum.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct SortedTiles {
    rows: u64,
    values: u64,
    starts: u64,
    sizes: u64,
    tiles: u32,
    buckets: u32,
}

impl BucketSum {
    /// Allocates memory for the sum of `count` values of the loop `values`. Returns `None` if `scatter_add` is faster, if the kernels do
    /// not support the loop, or if memory runs out.
    pub(super) fn try_allocate_bucket_sum(
        call: &Call,
        context: &Context,
        values: &IndexedLoop<3>,
        dtype: DType,
        count: usize,
    ) -> Result<Option<BucketSum>> {
        let (info, extent) = (context.info(), values.extent);
        let buckets = extent.div_ceil(1 << BUCKET_BITS);
        let tile_bytes = TILE_LENGTH * (dtype.itemsize() + 2);
        let fits = !dtype.is_complex()
            && values.dims.len() == 1
            && values.step == 1
            && (MIN_VALUES_FOR_BUCKET_SUM..1 << 31).contains(&count)
            && buckets <= MAX_BUCKETS
            && SHARED_BYTES_PER_BUCKET.max(tile_bytes) + MAX_STATIC_SHARED_BYTES <= info.shared_per_block_optin as usize;
        if !fits {
            return Ok(None);
        }
        let tiles = count.div_ceil(TILE_LENGTH);
        let allocate_all = || -> Result<BucketSum> {
            Ok(BucketSum {
                rows: device::allocate(call, tiles * TILE_LENGTH * 2)?,
                values: device::allocate(call, tiles * TILE_LENGTH * dtype.itemsize())?,
                starts: device::allocate(call, (buckets + 1) * tiles * 2)?,
                sizes: device::allocate(call, buckets * PARTIAL_COUNTS_PER_BUCKET * 4)?,
                dtype,
                count,
                buckets,
            })
        };
        match allocate_all() {
            Ok(memory) => Ok(Some(memory)),
            Err(Error::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Queues the kernels. They add the values to the sums of `memory` if all values have common units, unless `scatter_add` is faster for
    /// the indices. The caller must queue `scatter_add` afterwards, which adds the values that the kernels leave out.
    pub(super) fn queue_bucket_sum(
        &self,
        target: &ScatterLaunch,
        values: &IndexedLoop<3>,
        index: &'static str,
        memory: &ScatterSumMemory,
    ) -> crate::Result<()> {
        let context = target.context;
        let defines = reproducible_sum::sum_macros(self.dtype, index, false, "1");
        let (tiles, &ScatterSumMemory { range, sums, rests, bits }) = (self.count.div_ceil(TILE_LENGTH), memory);
        context.fill(self.sizes.memory(), 0, [0u8; 4], self.buckets * PARTIAL_COUNTS_PER_BUCKET)?;
        let sorted = SortedTiles {
            rows: self.rows.pointer(),
            values: self.values.pointer(),
            starts: self.starts.pointer(),
            sizes: self.sizes.pointer(),
            tiles: tiles as u32,
            buckets: self.buckets as u32,
        };
        let choose = BUCKET_SUM_SOURCE.get_or_compile_kernel(context, "scatter_choose_buckets", &defines)?;
        let mut args = Args::new();
        args.push(&range).push(&target.indices).push(&self.count);
        // SAFETY: the arguments match the kernel scatter_choose_buckets, which reads only the first `count` indices.
        unsafe { choose.launch([1, 1, 1], [1024, 1, 1], 0, args.pointers())? };

        let sort = BUCKET_SUM_SOURCE.get_or_compile_kernel(context, "scatter_sort_tiles", &defines)?;
        let tile_bytes = (TILE_LENGTH * (self.dtype.itemsize() + 2)) as u32;
        sort.allow_dynamic_shared_memory(tile_bytes)?;
        let (fault, value_step) = (context.fault_pointer()?, values.strides[0][0]);
        let mut args = Args::new();
        args.push(&sorted).push(&values.addresses[0]).push(&target.indices).push(&self.count).push(&values.extent).push(&value_step);
        args.push(&range).push(&bits).push(&fault).push(&target.op);
        // SAFETY: the arguments match scatter_sort_tiles, with a block and scratch memory for each tile. The kernel checks every index.
        unsafe { sort.launch([tiles as u32, 1, 1], [THREADS_PER_TILE as u32, 1, 1], tile_bytes, args.pointers())? };

        // Two blocks of the largest size are resident on a multiprocessor. The additional eighth keeps most buckets that are slightly
        // larger than the mean from needing one more block.
        let wanted = (2 * context.info().sm_count as usize).max(self.buckets);
        let block_size = (self.count + self.count / 8).div_ceil(wanted) as u32;
        let lanes = (TILE_LENGTH / self.buckets / 4).next_power_of_two().clamp(8, 32) as u32;
        let add = BUCKET_SUM_SOURCE.get_or_compile_kernel(context, "scatter_add_buckets", &defines)?;
        add.allow_dynamic_shared_memory(SHARED_BYTES_PER_BUCKET as u32)?;
        let mut args = Args::new();
        args.push(&sums).push(&rests).push(&sorted).push(&block_size).push(&lanes).push(&range).push(&bits);
        // SAFETY: the arguments match scatter_add_buckets. The grid has enough blocks for all buckets: one for every `block_size` values,
        // and one more for each bucket. `sums` and `rests` have a word for each row.
        unsafe {
            add.launch(
                [(wanted + self.buckets) as u32, 1, 1],
                [THREADS_PER_BUCKET_BLOCK as u32, 1, 1],
                SHARED_BYTES_PER_BUCKET as u32,
                args.pointers(),
            )
        }
    }
}
