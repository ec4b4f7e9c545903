//! CUDA kernels of the family `Histogram`, with the input expression fused. Counters are in shared memory if they fit. There may be several
//! copies of the counters, so that fewer atomics conflict. Otherwise the counters are in global memory.

use cuprum_core::call;
use cuprum_core::call::Binning;
use cuprum_core::{Array, Call, DType, Outcome, Program as Expression, Result, Work, decline};

use crate::codegen::{self, InnermostAxisAccess, KernelKey, device_sources, test_programs};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup;

const HISTOGRAM_SOURCE: &str = include_str!("../kernels/histogram.cu");
/// Threads per block, as in `histogram.cu`.
const HISTOGRAM_THREADS_PER_BLOCK: u32 = 512;
/// Number of elements of a tile that each thread counts. A tile is the range of elements that a block counts at a time.
const HISTOGRAM_ITEMS_PER_THREAD: usize = 8;
/// Static shared memory that `Bins` in histogram_bins.cuh uses for bins of equal width, in bytes.
const EVEN_BINS_SHARED_BYTES: usize = 16;
/// Maximum shared memory of a block that has several copies of the histogram's counters, in bytes. A single copy may use all shared memory
/// that a block can have.
const MAX_COUNTER_COPIES_BYTES: usize = 32 << 10;

/// The kind of memory in which a thread block counts the elements of each bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CounterMemory {
    /// Shared memory of `bytes` bytes, for `copies` copies of the histogram's counters, and for the bin edges if the kernel copies them.
    Shared { copies: usize, bytes: usize },
    /// Blocks count in global memory, directly in the output.
    Global,
}

impl CounterMemory {
    /// Selects the memory for the counters of `bins` bins. `edge` is the size in bytes of a bin edge, or 0 if the kernel does not copy the
    /// edges to shared memory. `most` is the maximum shared memory of a block, in bytes.
    fn select_counter_memory(bins: usize, edge: usize, most: usize) -> CounterMemory {
        let bytes = |copies: usize| {
            let counts = bins.saturating_mul(4 * copies).saturating_add(15) & !15;
            counts.saturating_add(bins.saturating_add(1).saturating_mul(edge))
        };
        let copies = [32, 16, 8, 4, 2].into_iter().find(|&c| bytes(c) <= MAX_COUNTER_COPIES_BYTES).unwrap_or(1);
        if bytes(copies) <= most { CounterMemory::Shared { copies, bytes: bytes(copies) } } else { CounterMemory::Global }
    }
}

fn cuda_source(
    program: &Expression,
    access: InnermostAxisAccess,
    binning: Binning,
    shared: bool,
) -> std::result::Result<String, &'static str> {
    let element = codegen::element_source(program, access)?;
    let rule = device_sources::bin_rule_enumerator(binning);
    let defines = format!("#define RULE {rule}\n#define SHARED {}\n#define ITEMS {HISTOGRAM_ITEMS_PER_THREAD}\n", shared as u8);
    Ok([codegen::CUDA_PRELUDE, &element, device_sources::HISTOGRAM_BINS_SOURCE, &defines, HISTOGRAM_SOURCE].concat())
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every binning rule, in shared and in
/// global memory.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let (number, even, edges) = (Binning::Number { weighted: false }, Binning::Edges { even: true }, Binning::Edges { even: false });
    let uses = [(number, DType::I64), (even, DType::F32), (even, DType::F64), (edges, DType::F32), (edges, DType::F64)];
    let all = uses.into_iter().flat_map(|(binning, dtype)| [true, false].map(|shared| (binning, dtype, shared)));
    let listed = all.filter_map(|(binning, dtype, shared)| {
        let text = cuda_source(&Expression::identity(dtype), InnermostAxisAccess::default(), binning, shared).ok()?;
        Some((format!("histogram<{dtype}, {binning:?}, {shared}>"), text))
    });
    let taking = cuda_source(&test_programs::take_program(DType::I64, DType::I32), InnermostAxisAccess::default(), number, true);
    listed.chain(taking.ok().map(|text| ("histogram<of take>".to_owned(), text))).collect()
}

/// Executes `call`, an operation of the kernel family `Histogram`, on the device.
pub fn run_histogram(call: &Call) -> Result<Outcome> {
    let (&Work::Histogram(call::Histogram { program, binning }), [spec]) = (&call.work, call.outputs) else {
        decline!("not a histogram of one output")
    };
    if binning == (Binning::Number { weighted: true }) {
        decline!("sums of weights: atomics add in no fixed order");
    }
    let (values, edges) = call.program_inputs();
    let dtype = program.output_dtype(0);
    let is_right = match (binning, edges) {
        (Binning::Edges { .. }, Some(edges)) => edges.dtype() == dtype && matches!(dtype, DType::F32 | DType::F64),
        (Binning::Edges { .. }, None) => false,
        _ => dtype == DType::I64,
    };
    let bins = spec.layout.size();
    if spec.dtype != DType::I64 || !is_right {
        decline!("values of {dtype} for these bins");
    }
    if edges.is_some_and(|e| e.layout().size() != bins + 1 || !e.layout().is_c_contiguous()) {
        decline!("edges that do not fit the output");
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let Some(count) = values.first().map(|a| a.layout().size()) else { decline!("no values") };
    let context = device::context(call.device)?;
    let inputs = device::pointers_to_read(values)?;
    let edges = edges.map(device::pointer_to_read).transpose()?.unwrap_or(0);
    let out = device::allocate_output(call, 0)?;
    let histogram =
        HistogramLaunch { context, program, access: InnermostAxisAccess::innermost_access_of_flat_inputs(values), binning, bins, count };
    context.fill(out.memory(), 0, [0u8; 4], 2 * bins).with_call_context(call)?;
    histogram.queue_histogram(&inputs, edges, out.pointer()).with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

/// The arguments of one launch of a histogram kernel.
struct HistogramLaunch<'a> {
    context: &'static Context,
    program: &'a Expression,
    access: InnermostAxisAccess,
    binning: Binning,
    bins: usize,
    count: usize,
}

impl HistogramLaunch<'_> {
    fn queue_histogram(&self, inputs: &[u64], edges: u64, out: u64) -> crate::Result<()> {
        let edge = if self.binning == (Binning::Edges { even: false }) { self.program.output_dtype(0).itemsize() } else { 0 };
        let info = self.context.info();
        let counts = CounterMemory::select_counter_memory(
            self.bins,
            edge,
            (info.shared_per_block_optin as usize).saturating_sub(EVEN_BINS_SHARED_BYTES),
        );
        let is_shared = counts != CounterMemory::Global;
        let name = if is_shared { "histogram_shared" } else { "histogram_global" };
        let key = KernelKey::new(name, self.program)
            .with_number(self.access.repeated)
            .with_name(device_sources::bin_rule_enumerator(self.binning));
        let make = || Ok((name.to_owned(), cuda_source(self.program, self.access, self.binning, is_shared)?));
        let function = kernel_lookup::get_or_generate_kernel(self.context, key, make)?;
        let params = codegen::pack_params(self.program, inputs, device::error_word_address(self.context, self.program)?);
        let mut args = Args::new();
        args.push_bytes(&params).push(&edges).push(&out).push(&self.bins).push(&self.count);
        let CounterMemory::Shared { copies, bytes } = counts else {
            // SAFETY: the arguments match histogram_global in histogram.cu. Each input has `count` elements (or one, repeated), `out`
            // has `bins`, and edges, if the rule has any, one more.
            return unsafe {
                function.launch(
                    kernel_lookup::grid_for_items(self.count as u64, HISTOGRAM_THREADS_PER_BLOCK),
                    [HISTOGRAM_THREADS_PER_BLOCK, 1, 1],
                    0,
                    args.pointers(),
                )
            };
        };
        let (copies, bytes) = (copies as i32, bytes as u32);
        args.push(&copies);
        function.allow_dynamic_shared_memory(bytes)?;
        let resident = function.blocks_per_sm(HISTOGRAM_THREADS_PER_BLOCK, bytes)?.max(1) * info.sm_count;
        let tiles = self.count.div_ceil(HISTOGRAM_THREADS_PER_BLOCK as usize * HISTOGRAM_ITEMS_PER_THREAD);
        let blocks = u32::try_from(tiles).unwrap_or(u32::MAX).min(resident.max(min_blocks_without_overflow(self.count)));
        // SAFETY: the arguments match histogram_shared in histogram.cu. The dynamic shared memory holds the copies and the edges.
        unsafe { function.launch([blocks, 1, 1], [HISTOGRAM_THREADS_PER_BLOCK, 1, 1], bytes, args.pointers()) }
    }
}

/// Returns the minimum number of blocks with which no 32-bit counter of a block overflows, even if all `count` values are in one bin.
pub fn min_blocks_without_overflow(count: usize) -> u32 {
    u32::try_from(count.div_ceil(1 << 31)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_counts_follows_their_size() {
        let of = |bins, edge| CounterMemory::select_counter_memory(bins, edge, 227 << 10);
        assert_eq!(of(10, 4), CounterMemory::Shared { copies: 32, bytes: 10 * 128 + 44 });
        assert_eq!(of(1024, 8), CounterMemory::Shared { copies: 4, bytes: 1024 * 16 + 1025 * 8 });
        assert_eq!(of(50_000, 0), CounterMemory::Shared { copies: 1, bytes: 200_000 });
        assert_eq!(of(50_000, 4), CounterMemory::Global);
        assert_eq!(of(usize::MAX / 2, 8), CounterMemory::Global);
    }

    #[test]
    fn counters_of_a_block_cannot_overflow() {
        for count in [0, 1, 1 << 31, (1 << 31) + 1, 600_000_000_000] {
            assert!(count / (min_blocks_without_overflow(count) as usize).max(1) <= 1 << 31);
        }
    }

    #[test]
    fn sources_are_complete() {
        let list = sources_for_compile_check();
        assert_eq!(list.len(), 11);
        assert!(list.iter().all(|(_, text)| text.contains("histogram_") && text.contains("struct Params")));
    }
}
