//! Counts of values in bins, with the expression of the values taken in.

use cuprum_backend_cuda::codegen::{Access, KernelKey, check, parts};
use cuprum_core::call;
use cuprum_core::call::{Binning, Work};
use cuprum_core::{Array, Call, DType, Outcome, Program, Reason, Result};

use crate::flat;
use crate::launch::{self, Described, On};
use crate::source::{Definitions, Family, Source};

/// Threads of a block, as in `histogram.cu`.
pub const THREADS: u32 = 512;
/// Shared memory that every device gives a block without asking, less the word that even edges take of it.
const SHARED: usize = (48 << 10) - 16;
/// Few bins are counted in copies, up to this many counters and one copy for each lane of a warp.
const COUNTERS: usize = 2048;

static HISTOGRAM: Family =
    Family { name: "cub_histogram.cu", blocks: false, head: &[parts::BINS], text: &[include_str!("kernels/histogram.cu")] };

/// A histogram that the kernel takes.
#[derive(Debug)]
pub struct Histogram<'a> {
    /// The values.
    pub program: &'a Program,
    /// What they are binned by.
    binning: Binning,
    access: Access,
    width: usize,
    /// Number of values.
    pub count: usize,
    /// Number of bins.
    pub bins: usize,
    memory: Memory,
}

/// Where a block counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Memory {
    /// In shared memory, behind so many bytes of edges, in 2^`copies` copies.
    Shared { edges: usize, copies: u32 },
    /// In the output.
    Device,
}

/// What the kernels are asked for, or why they decline. `addresses` are those of the inputs' first elements.
pub fn describe<'a>(call: &'a Call, addresses: &[u64]) -> Result<Histogram<'a>, Reason> {
    let (Work::Histogram(call::Histogram { program, binning }), [output]) = (&call.work, call.outputs) else {
        return Err(Reason::new("not a histogram"));
    };
    if *binning == (Binning::Number { weighted: true }) {
        return Err(Reason::new("weights: sums of a fixed order are not made by atomic addition, but by a sort and sums of segments"));
    }
    let (of_program, _edges) = call.program_inputs();
    flat::check_program(program)?;
    let Some(first) = of_program.first() else {
        return Err(Reason::new("values that are no array"));
    };
    let bins = output.layout.size();
    if bins >= 1 << 30 {
        return Err(Reason::with(|| format!("{bins} bins")));
    }
    let (access, width) = flat::packs(of_program, addresses);
    let value = program.output_dtype(0);
    let memory = memory(*binning, bins, value);
    Ok(Histogram { program, binning: *binning, access, width, count: first.layout().size(), bins, memory })
}

fn memory(binning: Binning, bins: usize, value: DType) -> Memory {
    let edges = if binning == (Binning::Edges { even: false }) { ((bins + 1) * value.itemsize()).next_multiple_of(16) } else { 0 };
    if edges + bins * size_of::<u32>() > SHARED {
        return Memory::Device;
    }
    let copies = (0..=5).rev().find(|c| bins << c <= COUNTERS && edges + (bins << c) * size_of::<u32>() <= SHARED);
    Memory::Shared { edges, copies: copies.unwrap_or(0) }
}

impl Histogram<'_> {
    /// Bytes of shared memory before the counters, with them, and the logarithm of the number of their copies.
    pub fn shared(&self) -> (u32, u32, u32) {
        match self.memory {
            Memory::Shared { edges, copies } => (edges as u32, (edges + (self.bins << copies) * size_of::<u32>()) as u32, copies),
            Memory::Device => (0, 0, 0),
        }
    }

    /// Values that a block takes at once, as in `histogram.cu`.
    pub fn chunk(&self) -> usize {
        let inputs = self.program.steps.iter().filter(|s| matches!(s.kind, cuprum_core::StepKind::Input(_))).count();
        THREADS as usize * self.width * if inputs > 2 { 1 } else { 2 }
    }
}

impl Described for Histogram<'_> {
    fn key(&self) -> KernelKey<'_> {
        KernelKey::new("cub histogram", self.program)
            .with(self.access.repeated << 1 | u64::from(self.access.aligned))
            .with(self.width as u64)
            .with_name(parts::binning_rule(self.binning))
            .with(u64::from(self.memory != Memory::Device))
    }

    fn source(&self) -> Result<Source, &'static str> {
        let mut d = Definitions::default();
        d.constant("WIDTH", self.width);
        d.value("Rule", "RULE", &format!("Rule::{}", parts::binning_rule(self.binning)));
        d.constant("SHARED", (self.memory != Memory::Device).into());
        HISTOGRAM.source(self.program, self.access, &d, &["histogram"])
    }

    fn launch(&self, on: &On) -> Result<Outcome> {
        launch::histogram(on, self)
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    use DType::*;
    let of = |program: Program, binning: Binning, bins: usize, width: usize| {
        let access = Access { repeated: 0, aligned: width > 1 };
        let memory = memory(binning, bins, program.output_dtype(0));
        let histogram = Histogram { program: &program, binning, access, width, count: 0, bins, memory };
        histogram.source().map(|s| (format!("{} {binning:?}, {bins} bins, packs of {width}: {program}", s.name), s.text)).ok()
    };
    let (even, edges, number) = (Binning::Edges { even: true }, Binning::Edges { even: false }, Binning::Number { weighted: false });
    let list = [
        of(Program::identity(F32), even, 256, 4),
        of(Program::identity(F64), even, 1 << 20, 2),
        of(crate::source::fused_example(U8, F32), even, 256, 16),
        of(Program::identity(F32), edges, 100, 1),
        of(Program::identity(F64), edges, 1 << 20, 2),
        of(Program::identity(I64), number, 1000, 2),
        of(crate::source::fused_example(I16, I64), number, 1 << 20, 8),
        of(check::taking(I64, I32), number, 1000, 1),
    ];
    list.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::histogram::{BINCOUNT, HISTOGRAM};
    use cuprum_core::{Layout, StoredArray};

    use super::*;
    use crate::testing::{array, contiguous, output, program_without_code, reason, with_call};

    fn of<R>(
        program: &Program,
        inputs: &[StoredArray],
        binning: Binning,
        bins: usize,
        check: impl FnOnce(Histogram) -> R,
    ) -> Result<R, String> {
        let outputs = [output(DType::I64, &[bins])];
        let op = if matches!(binning, Binning::Edges { .. }) { HISTOGRAM } else { BINCOUNT };
        let addresses = vec![0x1000; inputs.len()];
        let work = Work::Histogram(call::Histogram { program, binning });
        with_call(op, inputs, &outputs, work, |call| reason(|| describe(call, &addresses)).map(check))
    }

    #[test]
    fn few_bins_are_counted_in_copies() {
        let even = Binning::Edges { even: true };
        assert_eq!(memory(even, 10, DType::F32), Memory::Shared { edges: 0, copies: 5 });
        assert_eq!(memory(even, 256, DType::F32), Memory::Shared { edges: 0, copies: 3 });
        assert_eq!(memory(even, 12_284, DType::F32), Memory::Shared { edges: 0, copies: 0 });
        assert_eq!(memory(even, 12_285, DType::F32), Memory::Device);
        assert_eq!(memory(Binning::Edges { even: false }, 256, DType::F64), Memory::Shared { edges: 2064, copies: 3 });
        assert_eq!(memory(Binning::Edges { even: false }, 6_144, DType::F32), Memory::Device, "edges and counters");
    }

    #[test]
    fn packs_and_counts_come_from_the_values() {
        let inputs = |n: usize| [array(DType::F32, contiguous(&[n])), array(DType::F32, contiguous(&[11]))];
        let program = Program::identity(DType::F32);
        let even = Binning::Edges { even: true };
        let seen = of(&program, &inputs(1 << 33), even, 10, |h| (h.count, h.width, h.chunk())).unwrap();
        assert_eq!(seen, (1 << 33, 4, 512 * 8));
        let one = [array(DType::F32, Layout::strided(&[10], &[0], 0).unwrap()), array(DType::F32, contiguous(&[3]))];
        assert_eq!(of(&program, &one, even, 2, |h| (h.access.repeated, h.width, h.count)).unwrap(), (1, 1, 10));
    }

    #[test]
    fn declines() {
        let values = || array(DType::I64, contiguous(&[10]));
        let program = Program::identity(DType::I64);
        let why = |program: &Program, inputs: &[StoredArray], binning, bins| of(program, inputs, binning, bins, |_| ()).unwrap_err();
        let weights = [values(), array(DType::F64, contiguous(&[10]))];
        let weighted = Binning::Number { weighted: true };
        assert_eq!(
            why(&program, &weights, weighted, 4),
            "weights: sums of a fixed order are not made by atomic addition, but by a sort and sums of segments"
        );
        assert_eq!(why(&program, &[values()], Binning::Number { weighted: false }, 1 << 30), "1073741824 bins");
        assert_eq!(why(&program, &[values()], Binning::Edges { even: true }, 4), "values that are no array");
        assert_eq!(why(&program_without_code(DType::I64), &[values()], Binning::Number { weighted: false }, 4), "cumsum: no code for it");
    }
}
