//! Counts of values per bin, with a fused program that computes the values.

use cuprum_backend_cuda::codegen::{InnermostAxisAccess, KernelKey, device_sources, test_programs};
use cuprum_core::call;
use cuprum_core::call::{Binning, Work};
use cuprum_core::{Call, DType, DeclineReason, Program, Result};

use crate::fused_input;
use crate::kernel_source::{GeneratedSource, SourceDefinitions, SourceTemplate};
use crate::launch::KernelRequest;

/// Threads per block, as in `histogram.cu`.
pub const HISTOGRAM_THREADS_PER_BLOCK: u32 = 512;
/// Maximum shared memory for edges and counters, in bytes: the 48 KiB that every device allows, less the kernel's static 16 bytes.
const MAX_HISTOGRAM_SHARED_BYTES: usize = (48 << 10) - 16;
/// Maximum number of counters in shared memory, over all bins, if each bin has several counters.
const MAX_REPLICATED_COUNTERS: usize = 2048;

static HISTOGRAM_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_histogram.cu",
    includes_cub: false,
    headers: &[device_sources::HISTOGRAM_BINS_SOURCE],
    body: &[include_str!("../kernels/histogram.cu")],
};

/// The parameters of a histogram call that determine its kernel.
#[derive(Debug)]
pub struct HistogramRequest<'a> {
    /// The fused program that computes the values to count.
    pub program: &'a Program,
    binning: Binning,
    access: InnermostAxisAccess,
    /// Number of elements that a thread loads at once.
    width: usize,
    /// Number of values.
    pub count: usize,
    /// Number of bins.
    pub bins: usize,
    counters: CounterMemory,
}

/// The memory that holds the counters of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CounterMemory {
    /// Counters are in shared memory, `2^log2_copies` of them per bin, after the bin edges.
    Shared { edge_bytes: usize, log2_copies: u32 },
    /// Counters are in global memory: blocks count directly in the output.
    Global,
}

/// Layout of the dynamic shared memory of a block. All sizes are 0 if the block counts in global memory.
pub struct HistogramSharedMemoryLayout {
    /// Size of the bin edges in bytes. The counters follow the edges.
    pub edge_bytes: u32,
    /// Size of the bin edges and the counters together, in bytes.
    pub total_bytes: u32,
    /// Base-2 logarithm of the number of counters per bin.
    pub log2_copies: u32,
}

/// Converts `call` to a [`HistogramRequest`], or returns the reason why CUB declines the call. `addresses` has the device address of the
/// first element of each input.
pub fn histogram_request_for_call<'a>(call: &'a Call, addresses: &[u64]) -> Result<HistogramRequest<'a>, DeclineReason> {
    let (Work::Histogram(call::Histogram { program, binning }), [output]) = (&call.work, call.outputs) else {
        return Err(DeclineReason::new("not a histogram"));
    };
    if *binning == (Binning::Number { weighted: true }) {
        return Err(DeclineReason::new("weights: atomic additions would add them in a different order each time"));
    }
    let (program_inputs, _edges) = call.program_inputs();
    fused_input::check_ops_have_cuda_code(program)?;
    let Some(first) = program_inputs.first() else {
        return Err(DeclineReason::new("the values are not an array"));
    };
    let bins = output.layout.size();
    if bins >= 1 << 30 {
        return Err(DeclineReason::with_text(|| format!("{bins} bins are too many")));
    }
    let (access, width) = fused_input::input_access_and_vector_width(program_inputs, addresses);
    let value = program.output_dtype(0);
    let counters = choose_counter_memory(*binning, bins, value);
    Ok(HistogramRequest { program, binning: *binning, access, width, count: first.layout().size(), bins, counters })
}

fn choose_counter_memory(binning: Binning, bins: usize, value: DType) -> CounterMemory {
    let edge_bytes = if binning == (Binning::Edges { even: false }) { ((bins + 1) * value.itemsize()).next_multiple_of(16) } else { 0 };
    if edge_bytes + bins * size_of::<u32>() > MAX_HISTOGRAM_SHARED_BYTES {
        return CounterMemory::Global;
    }
    // The maximum number of counters per bin that fit in shared memory, at most one for each lane of a warp.
    let copies = (0..=5)
        .rev()
        .find(|c| bins << c <= MAX_REPLICATED_COUNTERS && edge_bytes + (bins << c) * size_of::<u32>() <= MAX_HISTOGRAM_SHARED_BYTES);
    CounterMemory::Shared { edge_bytes, log2_copies: copies.unwrap_or(0) }
}

impl HistogramRequest<'_> {
    /// Returns how the dynamic shared memory of a block is divided between bin edges and counters.
    pub fn shared_memory_layout(&self) -> HistogramSharedMemoryLayout {
        match self.counters {
            CounterMemory::Shared { edge_bytes, log2_copies } => {
                let total_bytes = (edge_bytes + (self.bins << log2_copies) * size_of::<u32>()) as u32;
                HistogramSharedMemoryLayout { edge_bytes: edge_bytes as u32, total_bytes, log2_copies }
            }
            CounterMemory::Global => HistogramSharedMemoryLayout { edge_bytes: 0, total_bytes: 0, log2_copies: 0 },
        }
    }

    /// Returns the number of values that a block loads at once, as in `histogram.cu`.
    pub fn values_per_block_step(&self) -> usize {
        let inputs = self.program.steps.iter().filter(|s| matches!(s.kind, cuprum_core::StepKind::Input(_))).count();
        HISTOGRAM_THREADS_PER_BLOCK as usize * self.width * if inputs > 2 { 1 } else { 2 }
    }
}

impl KernelRequest for HistogramRequest<'_> {
    fn kernel_key(&self) -> KernelKey<'_> {
        KernelKey::new("cub histogram", self.program)
            .with_number(self.access.repeated << 1 | u64::from(self.access.aligned))
            .with_number(self.width as u64)
            .with_name(device_sources::bin_rule_enumerator(self.binning))
            .with_number(u64::from(self.counters != CounterMemory::Global))
    }

    fn cuda_source(&self) -> Result<GeneratedSource, &'static str> {
        let mut d = SourceDefinitions::default();
        d.define_int("WIDTH", self.width);
        d.define_constant("BinRule", "RULE", &format!("BinRule::{}", device_sources::bin_rule_enumerator(self.binning)));
        d.define_int("SHARED", (self.counters != CounterMemory::Global).into());
        HISTOGRAM_TEMPLATE.source_with_program(self.program, self.access, &d, &["histogram"])
    }
}

/// Returns the names and code of representative kernel sources, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    use DType::*;
    let of = |program: Program, binning: Binning, bins: usize, width: usize| {
        let access = InnermostAxisAccess { repeated: 0, aligned: width > 1 };
        let counters = choose_counter_memory(binning, bins, program.output_dtype(0));
        let request = HistogramRequest { program: &program, binning, access, width, count: 0, bins, counters };
        request.cuda_source().map(|s| (format!("{} {binning:?}, {bins} bins, vectors of {width}: {program}", s.name), s.code)).ok()
    };
    let (even, edges, number) = (Binning::Edges { even: true }, Binning::Edges { even: false }, Binning::Number { weighted: false });
    let list = [
        of(Program::identity(F32), even, 256, 4),
        of(Program::identity(F64), even, 1 << 20, 2),
        of(crate::kernel_source::fused_example_program(U8, F32), even, 256, 16),
        of(Program::identity(F32), edges, 100, 1),
        of(Program::identity(F64), edges, 1 << 20, 2),
        of(Program::identity(I64), number, 1000, 2),
        of(crate::kernel_source::fused_example_program(I16, I64), number, 1 << 20, 8),
        of(test_programs::take_program(I64, I32), number, 1000, 1),
    ];
    list.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::histogram::{BINCOUNT, HISTOGRAM};
    use cuprum_core::{Layout, StoredArray};

    use super::*;
    use crate::testing::{array, contiguous, output, program_without_code, reason, with_call};

    fn with_request<R>(
        program: &Program,
        inputs: &[StoredArray],
        binning: Binning,
        bins: usize,
        check: impl FnOnce(HistogramRequest) -> R,
    ) -> Result<R, String> {
        let outputs = [output(DType::I64, &[bins])];
        let op = if matches!(binning, Binning::Edges { .. }) { HISTOGRAM } else { BINCOUNT };
        let addresses = vec![0x1000; inputs.len()];
        let work = Work::Histogram(call::Histogram { program, binning });
        with_call(op, inputs, &outputs, work, |call| reason(|| histogram_request_for_call(call, &addresses)).map(check))
    }

    #[test]
    fn few_bins_have_several_counters() {
        let even = Binning::Edges { even: true };
        assert_eq!(choose_counter_memory(even, 10, DType::F32), CounterMemory::Shared { edge_bytes: 0, log2_copies: 5 });
        assert_eq!(choose_counter_memory(even, 256, DType::F32), CounterMemory::Shared { edge_bytes: 0, log2_copies: 3 });
        assert_eq!(choose_counter_memory(even, 12_284, DType::F32), CounterMemory::Shared { edge_bytes: 0, log2_copies: 0 });
        assert_eq!(choose_counter_memory(even, 12_285, DType::F32), CounterMemory::Global);
        assert_eq!(
            choose_counter_memory(Binning::Edges { even: false }, 256, DType::F64),
            CounterMemory::Shared { edge_bytes: 2064, log2_copies: 3 }
        );
        assert_eq!(choose_counter_memory(Binning::Edges { even: false }, 6_144, DType::F32), CounterMemory::Global, "edges and counters");
    }

    #[test]
    fn vector_width_and_count_follow_from_the_values() {
        let inputs = |n: usize| [array(DType::F32, contiguous(&[n])), array(DType::F32, contiguous(&[11]))];
        let program = Program::identity(DType::F32);
        let even = Binning::Edges { even: true };
        let seen = with_request(&program, &inputs(1 << 33), even, 10, |h| (h.count, h.width, h.values_per_block_step())).unwrap();
        assert_eq!(seen, (1 << 33, 4, 512 * 8));
        let one = [array(DType::F32, Layout::strided(&[10], &[0], 0).unwrap()), array(DType::F32, contiguous(&[3]))];
        assert_eq!(with_request(&program, &one, even, 2, |h| (h.access.repeated, h.width, h.count)).unwrap(), (1, 1, 10));
    }

    #[test]
    fn decline_reasons() {
        let values = || array(DType::I64, contiguous(&[10]));
        let program = Program::identity(DType::I64);
        let why =
            |program: &Program, inputs: &[StoredArray], binning, bins| with_request(program, inputs, binning, bins, |_| ()).unwrap_err();
        let weights = [values(), array(DType::F64, contiguous(&[10]))];
        let weighted = Binning::Number { weighted: true };
        assert_eq!(why(&program, &weights, weighted, 4), "weights: atomic additions would add them in a different order each time");
        assert_eq!(why(&program, &[values()], Binning::Number { weighted: false }, 1 << 30), "1073741824 bins are too many");
        assert_eq!(why(&program, &[values()], Binning::Edges { even: true }, 4), "the values are not an array");
        assert_eq!(
            why(&program_without_code(DType::I64), &[values()], Binning::Number { weighted: false }, 4),
            "cumsum has no CUDA implementation"
        );
    }
}
