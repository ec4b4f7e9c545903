//! Segment sums: some lanes of a warp each, a block for the long ones. The values' expression is inlined.

use cuprum_core::{Array, Call, DType, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, Access, KernelKey, check, ctype};
use crate::device::{self, InCall};
use crate::driver::Context;
use crate::kernel::{self, THREADS};
use crate::module::Args;

/// The kernel, as it is named in its source.
const NAME: &str = "segment_sum";

/// The accumulator of a sum that this kernel does; of integers unsigned, which wraps alike.
fn accumulator(value: DType, acc: DType) -> Option<&'static str> {
    match (value, acc) {
        (DType::I64 | DType::U64, a) if a == value => Some("u64"),
        (DType::F16 | DType::BF16, DType::F32) => Some("f32"),
        (DType::F32 | DType::F64 | DType::C64 | DType::C128, a) if a == value => Some(ctype(value)),
        _ => None,
    }
}

/// Threads that share a segment: about 4 values each.
fn team(values: usize, segments: usize) -> u32 {
    1 << (values / segments.max(1) / 4).clamp(1, 32).ilog2()
}

/// Blocks that a multiprocessor's registers shall suffice for: of programs that need few, as many as hide the latency of reading offsets, then
/// indices, then elements.
fn blocks(program: &Expression) -> u32 {
    let is_small = program.steps.len() <= 8 && program.steps.iter().all(|s| s.dtype.itemsize() <= 4);
    if is_small { 6 } else { 1 }
}

fn source(program: &Expression, access: Access, accumulator: &str, team: u32) -> std::result::Result<String, &'static str> {
    let element = codegen::element(program, access)?;
    let defines = format!("using A = cuprum::{accumulator};\n#define TEAM {team}\n#define BLOCKS {}\n", blocks(program));
    Ok([codegen::PRELUDE, &element, &defines, include_str!("kernels/segment.cu")].concat())
}

/// Every accumulator of this family, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    let pairs = DType::ALL.iter().flat_map(|&value| DType::ALL.iter().map(move |&acc| (value, acc)));
    let listed = pairs.zip([1, 4, 32].into_iter().cycle()).filter_map(|((value, acc), team)| {
        let text = source(&Expression::identity(value), Access::default(), accumulator(value, acc)?, team).ok()?;
        Some((format!("segment_sum<{value}, {acc}, {team}>"), text))
    });
    let taking = [(DType::F32, DType::I32, "f32", 8), (DType::F64, DType::I64, "f64", 1), (DType::C64, DType::I32, "c64", 32)];
    let taking = taking.into_iter().filter_map(|(table, indices, accumulator, team)| {
        let text = source(&check::taking(table, indices), Access { repeated: 0b10, aligned: false }, accumulator, team).ok()?;
        Some((format!("segment_sum<{table} of take by {indices}, {team}>"), text))
    });
    listed.chain(taking).collect()
}

/// The kernel of the operation `segment_sum`.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (&Work::SegmentSum { program, acc }, [spec]) = (&call.work, call.outputs) else { decline!("not a segment sum of one output") };
    let (values, Some(offsets)) = call.program_inputs() else { decline!("no offsets") };
    let dtype = program.output_dtype(0);
    let Some(accumulator) = accumulator(dtype, acc).filter(|_| spec.dtype == dtype) else {
        decline!("sums of {dtype} in {acc}");
    };
    if offsets.dtype() != DType::I64 || !offsets.layout().is_c_contiguous() {
        decline!("offsets that are not contiguous int64");
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_row(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let Some(length) = values.first().map(|a| a.layout().size()) else { decline!("no values") };
    let context = device::context(call.device)?;
    let inputs: Result<SmallVec<[u64; 4]>> = values.iter().map(device::pointer).collect();
    let out = device::allocate_output(call, 0)?;
    let sum = SegmentSum { context, program, access: Access::flat(values), accumulator, length, segments: spec.layout.size() };
    sum.queue(&inputs?, device::pointer(offsets)?, out.pointer(), device::fault_word(call.op, 0)).in_call(call)?;
    device::done(call, [out])
}

/// The sums of one call on their way to the stream.
struct SegmentSum<'a> {
    context: &'static Context,
    program: &'a Expression,
    access: Access,
    accumulator: &'static str,
    length: usize,
    segments: usize,
}

impl SegmentSum<'_> {
    fn queue(&self, inputs: &[u64], offsets: u64, out: u64, op: u64) -> crate::Result<()> {
        let team = team(self.length, self.segments);
        let key = KernelKey::new(NAME, self.program).with(self.access.repeated).with(u64::from(team)).with_name(self.accumulator);
        let make = || Ok((NAME.to_owned(), source(self.program, self.access, self.accumulator, team)?));
        let function = kernel::generated(self.context, &key, make)?;
        let fault = self.context.fault_pointer()?;
        let params = codegen::pack_params(self.program, inputs, || self.context.fault_pointer())?;
        let mut args = Args::new();
        args.push_bytes(&params).push(&out).push(&self.length).push(&offsets).push(&self.segments).push(&fault).push(&op);
        let grid = kernel::grid(u64::from(team) * self.segments as u64, THREADS);
        // SAFETY: the arguments are those of segment_sum in segment.cu; values have `length` elements (or one, repeated), there are
        // `segments` results and one offset more, and the kernel checks each offset against `length`.
        unsafe { function.launch(grid, [THREADS, 1, 1], 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sum_of_core_has_an_accumulator() {
        for d in DType::ALL.map(DType::sum_dtype) {
            let acc = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
            assert!(accumulator(d, acc).is_some(), "{d}");
        }
        assert_eq!(accumulator(DType::I32, DType::I32), None);
        assert_eq!(accumulator(DType::F64, DType::F32), None);
    }

    #[test]
    fn teams_follow_the_mean_length() {
        let lengths = [0, 3, 8, 12, 16, 31, 32, 64, 100, 128, 10_000];
        assert_eq!(lengths.map(|n| team(1000 * n, 1000)), [1, 1, 2, 2, 4, 4, 8, 16, 16, 32, 32]);
    }
}
