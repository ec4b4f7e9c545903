//! Additions in common units with fewer random accesses to global memory: values are sorted by ranges of rows within tiles, then added in
//! shared memory (`docs/notes/scatter-sums.md`).

use std::sync::Arc;

use cuprum_core::{Call, DType, Error, Result};

use super::launch::ScatterLaunch;
use super::sum::{self, SumMemory};
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer};
use crate::driver::Context;
use crate::families::indexed_loop::IndexedLoop;
use crate::families::kernel::KernelSource;

static SOURCE: KernelSource = KernelSource {
    name: "scatter_bucket_sum.cu",
    text: concat!(
        include_str!("../../kernels/atomic_update.cuh"),
        include_str!("../../kernels/resolve_index.cuh"),
        include_str!("../../kernels/scatter_sum.cuh"),
        include_str!("../../kernels/scatter_bucket_sum.cu"),
    ),
};

/// Binary logarithm of the number of rows of a bucket. This constant and the next four equal those of scatter_bucket_sum.cu.
const BUCKET_BITS: u32 = 13;
const TILE_THREADS: usize = 512;
const TILE: usize = TILE_THREADS * 16;
const BUCKET_THREADS: usize = 1024;
const SIZE_COPIES: usize = 16;
/// Shared memory of a block that adds values, in bytes: two words for each row of a bucket.
const BUCKET_BYTES: usize = 8 << BUCKET_BITS;
/// Upper bound of the static shared memory of the kernels, in bytes.
const STATIC_BYTES: usize = 4 << 10;
/// Minimum number of values. For fewer values, starting three more kernels takes longer than the random accesses.
const MIN_COUNT: usize = 1 << 23;
/// Maximum number of buckets. With more buckets, few values of a tile are in the same bucket.
const MAX_BUCKETS: usize = 256;

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every dtype.
pub(super) fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [(DType::F16, "i64"), (DType::BF16, "i32"), (DType::F32, "i64"), (DType::F64, "i32")];
    uses.map(|(dtype, index)| SOURCE.named_source(&sum::defines(dtype, index, false, "1"))).into()
}

/// Scratch memory and launch parameters of the kernels.
pub(super) struct BucketSum {
    rows: Arc<CudaBuffer>,
    values: Arc<CudaBuffer>,
    /// The positions in tiles at which buckets start.
    starts: Arc<CudaBuffer>,
    /// The number of values of each bucket, in several parts.
    sizes: Arc<CudaBuffer>,
    dtype: DType,
    count: usize,
    buckets: usize,
}

/// The struct `SortedTiles` of scatter_bucket_sum.cu.
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
    /// Allocates memory for the sum of `count` values of the loop `values`. Returns `None` if `scatter_add` is faster, if the kernels do not
    /// support the loop, or if memory runs out.
    pub(super) fn allocate(
        call: &Call,
        context: &Context,
        values: &IndexedLoop<3>,
        dtype: DType,
        count: usize,
    ) -> Result<Option<BucketSum>> {
        let (info, extent) = (context.info(), values.extent);
        let buckets = extent.div_ceil(1 << BUCKET_BITS);
        let tile_bytes = TILE * (dtype.itemsize() + 2);
        let fits = !dtype.is_complex()
            && values.dims.len() == 1
            && values.step == 1
            && (MIN_COUNT..1 << 31).contains(&count)
            && buckets <= MAX_BUCKETS
            && BUCKET_BYTES.max(tile_bytes) + STATIC_BYTES <= info.shared_per_block_optin as usize;
        if !fits {
            return Ok(None);
        }
        let tiles = count.div_ceil(TILE);
        let allocate_all = || -> Result<BucketSum> {
            Ok(BucketSum {
                rows: device::allocate(call, tiles * TILE * 2)?,
                values: device::allocate(call, tiles * TILE * dtype.itemsize())?,
                starts: device::allocate(call, (buckets + 1) * tiles * 2)?,
                sizes: device::allocate(call, buckets * SIZE_COPIES * 4)?,
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

    /// Queues the kernels, which add to the sums of `memory` if the values have common units. `scatter_add` must follow: it adds the values
    /// if their indices are such that it is faster.
    pub(super) fn queue(
        &self,
        target: &ScatterLaunch,
        values: &IndexedLoop<3>,
        index: &'static str,
        memory: &SumMemory,
    ) -> crate::Result<()> {
        let context = target.context;
        let defines = sum::defines(self.dtype, index, false, "1");
        let (tiles, &SumMemory { range, sums, rests, bits }) = (self.count.div_ceil(TILE), memory);
        context.fill(self.sizes.memory(), 0, [0u8; 4], self.buckets * SIZE_COPIES)?;
        let sorted = SortedTiles {
            rows: self.rows.pointer(),
            values: self.values.pointer(),
            starts: self.starts.pointer(),
            sizes: self.sizes.pointer(),
            tiles: tiles as u32,
            buckets: self.buckets as u32,
        };
        let choose = SOURCE.get_or_compile_kernel(context, "scatter_choose_buckets", &defines)?;
        let mut args = Args::new();
        args.push(&range).push(&target.indices).push(&self.count);
        // SAFETY: the arguments match scatter_choose_buckets, which reads pairs of indices below `count`.
        unsafe { choose.launch([1, 1, 1], [1024, 1, 1], 0, args.pointers())? };

        let sort = SOURCE.get_or_compile_kernel(context, "scatter_sort_tiles", &defines)?;
        let tile_bytes = (TILE * (self.dtype.itemsize() + 2)) as u32;
        sort.allow_dynamic_shared_memory(tile_bytes)?;
        let (fault, value_step) = (context.fault_pointer()?, values.strides[0][0]);
        let mut args = Args::new();
        args.push(&sorted).push(&values.addresses[0]).push(&target.indices).push(&self.count).push(&values.extent).push(&value_step);
        args.push(&range).push(&bits).push(&fault).push(&target.op);
        // SAFETY: the arguments match scatter_sort_tiles, with a block and scratch memory for each tile. The kernel checks every index.
        unsafe { sort.launch([tiles as u32, 1, 1], [TILE_THREADS as u32, 1, 1], tile_bytes, args.pointers())? };

        // Two blocks of the largest size are resident on a multiprocessor. The additional eighth keeps most buckets that are slightly larger
        // than the mean from needing one more block.
        let wanted = (2 * context.info().sm_count as usize).max(self.buckets);
        let block_size = (self.count + self.count / 8).div_ceil(wanted) as u32;
        let lanes = (TILE / self.buckets / 4).next_power_of_two().clamp(8, 32) as u32;
        let add = SOURCE.get_or_compile_kernel(context, "scatter_add_buckets", &defines)?;
        add.allow_dynamic_shared_memory(BUCKET_BYTES as u32)?;
        let mut args = Args::new();
        args.push(&sums).push(&rests).push(&sorted).push(&block_size).push(&lanes).push(&range).push(&bits);
        // SAFETY: the arguments match scatter_add_buckets. There are at least as many blocks as the buckets need: one for every `block_size`
        // values, and one more for each bucket. `sums` and `rests` have a word for each row.
        unsafe { add.launch([(wanted + self.buckets) as u32, 1, 1], [BUCKET_THREADS as u32, 1, 1], BUCKET_BYTES as u32, args.pointers()) }
    }
}
