//! CUDA kernels of the family `Rows`: expressions over rows that contain reductions along the rows, such as softmax and normalisation. Each
//! row is read once and kept in registers.
//!
//! A team of threads computes each row. A team is part of a warp, or several warps with at most 1024 threads together. The row length and
//! the number of registers that the program needs per element determine the team size and the elements per thread.

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::layout::Strides;
use cuprum_core::op::Combine;
use cuprum_core::plan::row_loop::{MAX_FUSED_ROW_LENGTH, RowLoopPlan};
use cuprum_core::{Call, DType, DeclineReason, Op, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::row_code::{self as code, RowOperandLayout, RowStages};
use crate::codegen::{self, KernelKey, reduction_code};
use crate::compile::module::{Args, Function};
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup;
use crate::families::map::MAX_PARAMETER_BYTES;

mod test_programs;

/// Number of threads per block of kernels whose teams have at most 32 threads. A team is the group of threads that share a row.
const THREADS_PER_BLOCK_OF_SMALL_TEAMS: usize = 128;
/// Maximum number of 32-bit registers in which a thread holds its elements of a row. The first value is for teams (threads that share a
/// row) of up to 32 threads, the second for larger teams.
const MAX_ROW_REGISTERS_PER_THREAD: [usize; 2] = [32, 24];
/// Maximum number of 32-bit registers in which a thread holds its elements of a row, if a block has 1024 threads. Such a block has 64
/// registers per thread.
const MAX_ROW_REGISTERS_IN_LARGE_BLOCK: usize = 40;
/// Number of threads that fills any GPU sold today. If all rows together need fewer threads, more threads share each row.
const THREADS_TO_FILL_DEVICE: usize = 1 << 17;
/// Possible numbers of vector loads per thread. The list is short, so that rows of similar length share a kernel.
const VECTOR_LOADS_PER_THREAD_CHOICES: [usize; 23] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 44, 46, 48];

/// The parameters that determine the source of a row kernel, besides the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RowKernelConfig {
    /// Number of threads that compute a row.
    team: usize,
    /// Index in [`VECTOR_LOADS_PER_THREAD_CHOICES`] of the number of vector loads per thread.
    packs: usize,
    /// Number of elements per vector load.
    width: usize,
    /// Number of axes that enumerate the rows.
    rank: usize,
    /// Whether indices have 64 bits.
    wide: bool,
    layout: RowOperandLayout,
}

impl RowKernelConfig {
    /// Selects the kernel configuration for inputs at the addresses `inputs`. If a row does not fit in registers, returns the reason why
    /// this kernel family does not execute the call.
    fn select_row_kernel(
        stages: &RowStages,
        program: &Expression,
        plan: &RowLoopPlan,
        inputs: &[u64],
    ) -> std::result::Result<RowKernelConfig, DeclineReason> {
        let itemsize = |k: usize| program.input_dtype(k).map_or(16, DType::itemsize);
        let along = |k: &usize| plan.row_strides[*k] != 0;
        let smallest = (0..inputs.len()).filter(along).map(itemsize).min().unwrap_or(16);
        // The vector width depends on length and dtypes only. The width determines which thread has which element and thus the order of
        // combination, which must not depend on addresses.
        let width = [8, 4, 2].into_iter().find(|w| w * smallest <= 16 && plan.length.is_multiple_of(*w)).unwrap_or(1);
        let units = plan.length / width;
        let words = width * stages.registers_per_element().max(1);
        let packs_of = |team: usize| units.div_ceil(team);
        // Number of vector loads per thread with which each thread has at least 16 bytes of the narrowest input in flight.
        let few = (16 / (smallest * width)).max(1);
        let mut team = units.div_ceil(few).next_power_of_two().min(32);
        while team < 1024 && packs_of(team) * words > MAX_ROW_REGISTERS_PER_THREAD[(team > 32) as usize] {
            team *= 2;
        }
        while team < 256 && packs_of(team) > few && plan.rows * team < THREADS_TO_FILL_DEVICE {
            team *= 2;
        }
        let packs = VECTOR_LOADS_PER_THREAD_CHOICES
            .iter()
            .position(|&p| p >= packs_of(team))
            .filter(|&p| VECTOR_LOADS_PER_THREAD_CHOICES[p] * words <= MAX_ROW_REGISTERS_IN_LARGE_BLOCK || team <= 32);
        let Some(packs) = packs else {
            return Err(DeclineReason::with_text(|| {
                format!("{} elements of {} words do not fit in registers", plan.length, stages.registers_per_element())
            }));
        };
        let is_aligned = |k: usize| {
            let bytes = (width * itemsize(k)).min(16);
            inputs[k].is_multiple_of(bytes as u64)
                && plan.outer_strides[k].iter().all(|s| (s.unsigned_abs() * itemsize(k)).is_multiple_of(bytes))
        };
        let bits = |range: std::ops::Range<usize>| {
            let first = range.start;
            range.filter(|k| !along(k)).fold(0, |bits, k| bits | 1 << (k - first))
        };
        let layout = RowOperandLayout {
            repeated: bits(0..inputs.len()),
            results: bits(inputs.len()..plan.row_strides.len()),
            aligned: (0..inputs.len()).filter(along).all(is_aligned),
        };
        let wide = !codegen::fits_32_bit_index(plan.rows, &plan.outer, plan.outer_strides.iter().map(|s| s.as_slice()));
        Ok(RowKernelConfig { team, packs, width, rank: plan.outer.len(), wide, layout })
    }

    /// Returns the number of threads per block. If more than 32 threads share a row, they form a whole block, because they synchronise by
    /// block barriers.
    fn threads_per_block(self) -> usize {
        if self.team > 32 { self.team } else { THREADS_PER_BLOCK_OF_SMALL_TEAMS }
    }

    /// Returns the intended number of resident threads per multiprocessor, which limits the registers of a thread. More resident threads
    /// have more loads in flight.
    fn target_resident_threads(self, stages: &RowStages) -> usize {
        let words = VECTOR_LOADS_PER_THREAD_CHOICES[self.packs] * self.width * stages.registers_per_element();
        if stages.is_short_and_cheap() && words <= 24 { 1536 } else { 1024 }
    }

    fn kernel_key(self, program: &Expression) -> KernelKey<'_> {
        let RowKernelConfig { team, packs, width, rank, wide, layout } = self;
        let numbers = [team, packs, width, rank, wide as usize, layout.aligned as usize].map(|n| n as u64);
        numbers.into_iter().chain([layout.repeated, layout.results]).fold(KernelKey::new("rows", program), KernelKey::with_number)
    }

    /// Returns the kernel's source, or the name of an operation that has no C++ expression.
    fn cuda_source(self, program: &Expression, stages: &RowStages) -> std::result::Result<String, &'static str> {
        let row = code::row_function_source(stages, self.layout)?;
        let constants = format!(
            "\nnamespace cuprum {{\n\nusing Index = {};\nconstexpr int RANK = {}, OPERANDS = {}, TEAM = {}, BLOCK = {}, WIDTH = {}, PACKS = {}, FULL = {}, FOLDS = {}, RESIDENT = {};\n\n}}  // namespace cuprum\n",
            codegen::index_type(self.wide),
            self.rank,
            (0..).take_while(|&k| program.input_dtype(k).is_some()).count() + program.outputs.len(),
            self.team,
            self.threads_per_block(),
            self.width,
            VECTOR_LOADS_PER_THREAD_CHOICES[self.packs],
            self.packs.checked_sub(1).map_or(0, |fewer| VECTOR_LOADS_PER_THREAD_CHOICES[fewer]),
            program.row_reductions().count().max(1),
            self.target_resident_threads(stages) / self.threads_per_block(),
        );
        let kernel = include_str!("../kernels/rows.cu").replace("KERNEL", &kernel_name(program));
        Ok([
            codegen::CUDA_PRELUDE,
            codegen::device_sources::WARP_SHUFFLE_SOURCE,
            codegen::device_sources::TYPE_LIMITS_SOURCE,
            &constants,
            include_str!("../kernels/rows.cuh"),
            &row,
            &kernel,
        ]
        .concat())
    }

    fn kernel_function(self, context: &'static Context, program: &Expression, stages: &RowStages) -> crate::Result<Arc<Function>> {
        kernel_lookup::get_or_generate_kernel(context, self.kernel_key(program), || {
            Ok((kernel_name(program), self.cuda_source(program, stages)?))
        })
    }
}

/// Returns the name of the kernel for `program`.
fn kernel_name(program: &Expression) -> String {
    codegen::kernel_name("rows", program)
}

/// Executes `call`, an operation of the kernel family `Rows`, on the device.
pub fn run_row_program(call: &Call) -> Result<Outcome> {
    let Work::Rows(call::RowProgram { program, plan }) = call.work else { decline!("not work on rows") };
    launch_row_kernel(call, program, plan)
}

/// Runs `call` with a row kernel if its work `reduce` is a variance along rows for which row kernels are faster than the family `Reduce`.
/// Otherwise returns `None`.
pub(crate) fn try_run_variance(call: &Call, reduce: &call::Reduce) -> Option<Result<Outcome>> {
    let call::Reduce { program, reduction, plan, .. } = *reduce;
    let is_row = plan.reduced.len() == 1 && plan.reduced_strides.iter().all(|s| matches!(s.as_slice(), [0 | 1]));
    // For few long rows, the kernels of the family `Reduce` are faster, because they use several blocks per row.
    let is_gain = plan.kept_size >= 132 || plan.reduced_size <= 4096;
    if reduction.combine != Combine::Moments || !is_row || !is_gain || plan.reduced_size > MAX_FUSED_ROW_LENGTH {
        return None;
    }
    let mut steps = program.clone();
    let squares = steps.push_squared_distance_sum(program.outputs[0], plan.reduced_size);
    steps.outputs[0] = squares;
    let mut step = 1;
    let mut results = Strides::from_elem(0, plan.kept.len());
    for (stride, &n) in results.iter_mut().zip(&plan.kept).rev() {
        (*stride, step) = (step, step * n as isize);
    }
    let rows = RowLoopPlan {
        length: plan.reduced_size,
        rows: plan.kept_size,
        outer: plan.kept.clone(),
        outer_strides: plan.kept_strides.iter().cloned().chain([results]).collect(),
        row_strides: plan.reduced_strides.iter().map(|s| s[0]).chain([0]).collect(),
    };
    match launch_row_kernel(call, &steps, &rows) {
        Ok(Outcome::Declined(_)) => None,
        done => Some(done),
    }
}

fn launch_row_kernel(call: &Call, program: &Expression, plan: &RowLoopPlan) -> Result<Outcome> {
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    if let Some(op) =
        program.row_reductions().find(|op| op.reduction().is_none_or(|reduction| !reduction_code::has_reduction_code(*op, reduction)))
    {
        decline!("no CUDA reduction for {}", op.name());
    }
    if let Some(stride) = plan.row_strides.iter().find(|s| !matches!(s, 0 | 1)) {
        decline!("rows with a stride of {stride} elements");
    }
    if call.inputs.len() > 64 || plan.length > MAX_FUSED_ROW_LENGTH {
        decline!("{} inputs, rows of {}: more than 64 or {MAX_FUSED_ROW_LENGTH}", call.inputs.len(), plan.length);
    }
    let inputs = device::pointers_to_read(call.inputs)?;
    let repeated = (0..inputs.len()).filter(|&k| plan.row_strides[k] == 0).fold(0, |bits, k| bits | 1 << k);
    let stages = RowStages::assign_steps(program, repeated);
    if (0..call.outputs.len()).any(|n| plan.row_strides[inputs.len() + n] == 0 && stages.varies_along_row(program.outputs[n])) {
        decline!("an output with one element per row, of a value that varies along the row");
    }
    let shape = match RowKernelConfig::select_row_kernel(&stages, program, plan, &inputs) {
        Ok(shape) => shape,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let context = device::context(call.device)?;
    let params = codegen::pack_params(program, &inputs, device::error_word_address(context, program).with_call_context(call)?);
    let axes = codegen::pack_axes(&plan.outer, plan.outer_strides.iter().map(|s| s.as_slice()), shape.wide);
    if params.len() + axes.len() + 8 * (call.outputs.len() + 2) > MAX_PARAMETER_BYTES {
        decline!("{} axes of {} inputs exceed the size of kernel parameters", plan.outer.len(), inputs.len());
    }
    let function = shape.kernel_function(context, program, &stages).with_call_context(call)?;
    let outputs = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<SmallVec<[_; 2]>>>()?;
    let to: SmallVec<[u8; 64]> = outputs.iter().flat_map(|o| o.pointer().to_le_bytes()).collect();
    let (rows, length, block) = (plan.rows as u64, plan.length as u64, shape.threads_per_block() as u32);
    let mut args = Args::new();
    args.push_bytes(&params).push_bytes(&axes).push_bytes(&to).push(&rows).push(&length);
    let grid = kernel_lookup::grid_for_items(rows * shape.team as u64, block);
    // SAFETY: the arguments match rows.cu. The plan's strides keep every access to each row's `length` elements inside the buffers. Vector
    // loads do not pass the end of a row, because `length` is a multiple of their width.
    unsafe { function.launch(grid, [block, 1, 1], 0, args.pointers()) }.with_call_context(call)?;
    device::outcome_from_buffers(call, outputs)
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers typical expressions in several dtypes
/// over rows of many lengths.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let floats = [DType::F32, DType::F16, DType::F64, DType::BF16];
    let lengths = [11585, 11584, 1000, 32, 31, 2, 4097, 127, 5000];
    type Maker = fn(DType) -> Expression;
    let makers: [(&str, Maker, usize); 6] = [
        ("softmax", test_programs::softmax, 0),
        ("log_softmax", test_programs::log_softmax, 0),
        ("layer_norm", test_programs::layer_norm, 0),
        ("min_max", test_programs::min_max_scaling, 0),
        ("logsumexp", test_programs::logsumexp, 1),
        ("variance", test_programs::variance, 1),
    ];
    let mut list = Vec::new();
    for (m, (what, make, results)) in makers.into_iter().enumerate() {
        for (d, dtype) in floats.into_iter().enumerate() {
            let length = if m + d == 0 { 11585 } else { lengths[(4 * m + d) % lengths.len()] };
            list.extend(test_programs::named_source(what, &make(dtype), length, results, m + d));
        }
    }
    list.extend(test_programs::named_source("variance", &test_programs::variance(DType::F32), 11584, 1, 0));
    list.extend(test_programs::named_source("layer_norm", &test_programs::layer_norm(DType::F32), 11584, 0, 0));
    list.extend(test_programs::named_source("variance", &test_programs::variance(DType::C64), 11585, 1, 0));
    list.extend(test_programs::named_source("variance", &test_programs::variance(DType::C128), 3000, 1, 1));
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        list.extend(test_programs::named_source("ends", &test_programs::min_and_product(dtype), lengths[n % lengths.len()], 2, n));
    }
    list.extend(test_programs::named_source("share of take", &test_programs::take_divided_by_sum(), 4097, 0, 0));
    list
}

#[cfg(test)]
mod tests {
    use cuprum_core::Layout;

    use super::*;

    fn shape_of(program: &Expression, rows: usize, length: usize, address: u64) -> Option<RowKernelConfig> {
        let layout = Layout::contiguous(&[rows, length]).unwrap();
        let plan = RowLoopPlan::new(&[rows, length], 1, &[&layout, &layout]).unwrap();
        RowKernelConfig::select_row_kernel(&RowStages::assign_steps(program, 0), program, &plan, &[address]).ok()
    }

    #[test]
    fn teams_follow_the_length() {
        let program = test_programs::softmax(DType::F32);
        let team =
            |rows, length| shape_of(&program, rows, length, 256).map(|s| (s.team, VECTOR_LOADS_PER_THREAD_CHOICES[s.packs] * s.width));
        assert_eq!(team(100_000, 32), Some((8, 4)));
        assert_eq!(team(100_000, 31), Some((8, 4)));
        assert_eq!(team(100_000, 1000), Some((32, 32)));
        assert_eq!(team(256, 1000), Some((256, 4)), "few rows");
        assert_eq!(team(11585, 11585), Some((512, 24)));
        assert_eq!(team(11584, 11584), Some((512, 24)));
        assert_eq!(team(1000, 32768), Some((1024, 32)));
        assert_eq!(shape_of(&test_programs::softmax(DType::F64), 1000, 32768, 256), None, "64 words of registers");
    }

    #[test]
    fn addresses_decide_only_the_load_width() {
        let program = test_programs::layer_norm(DType::F32);
        let [even, odd] = [256, 260].map(|address| shape_of(&test_programs::softmax(DType::F32), 300, 1004, address).unwrap());
        assert!(even.layout.aligned && !odd.layout.aligned);
        assert_eq!(
            RowKernelConfig { layout: RowOperandLayout::default(), ..even },
            RowKernelConfig { layout: RowOperandLayout::default(), ..odd }
        );
        // The factor of the final product takes no register before the product, because it is loaded only then.
        assert_eq!(RowStages::assign_steps(&program, 0).registers_per_element(), 1);
        assert_eq!(RowStages::assign_steps(&test_programs::variance(DType::C64), 0).registers_per_element(), 2);
    }
}
