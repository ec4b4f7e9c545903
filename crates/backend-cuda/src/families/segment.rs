//! Reductions of segments of a 1-D array, with the input expression fused. A team of up to 32 threads reduces each segment of up to 4096
//! elements. A block reduces each longer segment.

use cuprum_core::call;
use cuprum_core::ops::reduce::{SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM};
use cuprum_core::{Array, Call, DType, Op, Outcome, Program as Expression, Result, Work, decline};

use crate::codegen::{self, FoldClass, InnermostAxisAccess, KernelKey, ctype, device_sources, test_programs};
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};

/// Name of the kernel function in the C++ source.
const SEGMENT_KERNEL_NAME: &str = "fold_segments";

/// Returns the number of threads that share a segment, a power of 2. In a segment of mean length, each thread reduces about 4 values.
fn threads_per_segment(values: usize, segments: usize) -> u32 {
    1 << (values / segments.max(1) / 4).clamp(1, 32).ilog2()
}

/// Returns the minimum number of resident blocks per multiprocessor, for `__launch_bounds__`. More blocks hide the latency of loads but
/// leave fewer registers per thread, so only small programs request more than one.
fn min_resident_blocks(program: &Expression) -> u32 {
    let is_small = program.steps.len() <= 8 && program.steps.iter().all(|s| s.dtype.itemsize() <= 4);
    if is_small { 6 } else { 1 }
}

/// The parameters that determine the source of a segment kernel.
#[derive(Clone, Copy)]
struct SegmentKernelConfig<'a> {
    program: &'a Expression,
    access: InnermostAxisAccess,
    fold: FoldClass,
    acc: DType,
    team: u32,
}

impl<'a> SegmentKernelConfig<'a> {
    fn kernel_key(self) -> KernelKey<'a> {
        let key = KernelKey::new(SEGMENT_KERNEL_NAME, self.program).with_number(self.access.repeated).with_number(u64::from(self.team));
        key.with_dtype(self.acc).with_name(self.fold.name)
    }

    fn cuda_source(self) -> std::result::Result<String, &'static str> {
        let element = codegen::element_source(self.program, self.access)?;
        let (fold, acc) = (self.fold.name, ctype(self.acc));
        let definitions = format!(
            "namespace cuprum {{\nusing Fold = {fold}<{acc}>;\n}}  // namespace cuprum\n#define TEAM {}\n#define BLOCKS {}\n",
            self.team,
            min_resident_blocks(self.program),
        );
        let parts = [
            codegen::CUDA_PRELUDE,
            device_sources::WARP_SHUFFLE_SOURCE,
            device_sources::TYPE_LIMITS_SOURCE,
            device_sources::FOLD_SOURCE,
            &element,
            &definitions,
        ];
        Ok([&parts.concat(), include_str!("../kernels/segment.cu")].concat())
    }
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every reduction and dtype.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let of = |name: String, op: Op, (program, access, acc, team): (&Expression, InnermostAxisAccess, DType, u32)| {
        let fold = FoldClass::of(op.reduction()?, acc)?;
        let text = SegmentKernelConfig { program, access, fold, acc, team }.cuda_source().ok()?;
        Some((format!("{name}, {}, {team}>", op.name()), text))
    };
    let every = [SEGMENT_SUM, SEGMENT_PROD, SEGMENT_MIN, SEGMENT_MAX].into_iter().flat_map(|op| DType::ALL.map(|d| (op, d)));
    let plain =
        every.filter(|(op, d)| d.sum_dtype() == *d || op.reduction().is_some_and(|r| r.selects)).zip([1, 4, 32].into_iter().cycle());
    let plain = plain.filter_map(|((op, value), team)| {
        let acc = op.reduction()?.accumulator.of(value);
        of(format!("fold_segments<{value}"), op, (&Expression::identity(value), InnermostAxisAccess::default(), acc, team))
    });
    let taking =
        [(DType::F32, DType::I32, SEGMENT_SUM, 8), (DType::F64, DType::I64, SEGMENT_MAX, 1), (DType::C64, DType::I32, SEGMENT_SUM, 32)];
    let taking = taking.into_iter().filter_map(|(table, indices, op, team)| {
        let (program, access) = (test_programs::take_program(table, indices), InnermostAxisAccess { repeated: 0b10, aligned: false });
        of(format!("fold_segments<{table} of take by {indices}"), op, (&program, access, table, team))
    });
    plain.chain(taking).collect()
}

/// Runs `call`, a reduction of segments.
pub(crate) fn run_segment_reduction(call: &Call) -> Result<Outcome> {
    let (&Work::Segments(call::SegmentReduction { program, reduction, acc }), [spec]) = (&call.work, call.outputs) else {
        decline!("not a reduction of segments with one output")
    };
    let (values, Some(offsets)) = call.program_inputs() else { decline!("no offsets") };
    let Some(fold) = FoldClass::of(reduction, acc) else { decline!("no CUDA reduction for {}", call.op.name()) };
    let dtype = program.output_dtype(0);
    if spec.dtype != dtype || acc != reduction.accumulator.of(dtype) {
        decline!("values of {dtype} reduced to {} in {acc}", spec.dtype);
    }
    if offsets.dtype() != DType::I64 || !offsets.layout().is_c_contiguous() {
        decline!("offsets that are not contiguous int64");
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let Some(length) = values.first().map(|a| a.layout().size()) else { decline!("no values") };
    let context = device::context(call.device)?;
    let inputs = device::pointers_to_read(values)?;
    let out = device::allocate_output(call, 0)?;
    let segments = spec.layout.size();
    let spec = SegmentKernelConfig {
        program,
        access: InnermostAxisAccess::innermost_access_of_flat_inputs(values),
        fold,
        acc,
        team: threads_per_segment(length, segments),
    };
    let reduction = SegmentLaunch { context, spec, length, segments };
    reduction
        .queue_segment_reduction(&inputs, device::pointer_to_read(offsets)?, out.pointer(), device::fault_operation_id(call.op, 0))
        .with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

/// The arguments of one launch of a segment kernel.
struct SegmentLaunch<'a> {
    context: &'static Context,
    spec: SegmentKernelConfig<'a>,
    length: usize,
    segments: usize,
}

impl SegmentLaunch<'_> {
    fn queue_segment_reduction(&self, inputs: &[u64], offsets: u64, out: u64, op: u64) -> crate::Result<()> {
        let SegmentKernelConfig { program, team, .. } = self.spec;
        let function = kernel_lookup::get_or_generate_kernel(self.context, self.spec.kernel_key(), || {
            Ok((SEGMENT_KERNEL_NAME.to_owned(), self.spec.cuda_source()?))
        })?;
        let fault = self.context.fault_pointer()?;
        let params = codegen::pack_params(program, inputs, device::error_word_address(self.context, program)?);
        let mut args = Args::new();
        args.push_bytes(&params).push(&out).push(&self.length).push(&offsets).push(&self.segments).push(&fault).push(&op);
        let grid = kernel_lookup::grid_for_items(u64::from(team) * self.segments as u64, DEFAULT_THREADS_PER_BLOCK);
        // SAFETY: the arguments match fold_segments in segment.cu. Each input has `length` elements (or one, repeated). `out` has
        // `segments` elements and `offsets` one more. The kernel checks each offset against `length`.
        unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reduction_of_segments_has_sources() {
        assert!(sources_for_compile_check().len() > 40);
    }

    #[test]
    fn teams_follow_the_mean_length() {
        let lengths = [0, 3, 8, 12, 16, 31, 32, 64, 100, 128, 10_000];
        assert_eq!(lengths.map(|n| threads_per_segment(1000 * n, 1000)), [1, 1, 2, 2, 4, 4, 8, 16, 16, 32, 32]);
    }
}
