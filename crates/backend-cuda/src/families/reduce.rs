//! CUDA kernels of the family `Reduce`: reductions over any axes in one launch, with the input expression fused.
//!
//! A team of threads reduces each row. Depending on the row length, the team is part of a warp, a warp, or a block. Several blocks share a
//! long row. Column reductions read up to 32 adjacent columns, or vectors of columns, at a time. If several blocks share a result, the last
//! block to finish combines the partial results in block order.

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::op::{AccumulatorDType, Combine, ReductionDef, TypeRule};
use cuprum_core::plan::reduce::{ReducePattern, ReducePlan};
use cuprum_core::{Array, Call, DType, Device, DeviceKind, Layout, Op, Outcome, Program as Expression, Result, Work, decline, testing};
use smallvec::SmallVec;

use crate::codegen::reduction_code::{self, ReductionCode};
use crate::codegen::{self, AccumulatorCode, InnermostAxisAccess, KernelKey, ctype, test_programs};
use crate::compile::module::{Args, Function};
use crate::device::{self, WithCallContext};
use crate::driver::{Context, SCRATCH_COUNTER_COUNT};
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};
use crate::families::rows;
use crate::user_kernels::{self, ReductionCall, UserCppReduction};

const REDUCE_COMMON_SOURCE: &str = concat!(include_str!("../kernels/warp.cuh"), include_str!("../kernels/reduce.cuh"));
/// Maximum number of kept axes, and maximum number of reduced axes, after adjacent axes are merged.
const MAX_KEPT_OR_REDUCED_AXES: usize = 8;
/// Number of blocks among which long rows are split. These blocks fill any GPU sold today. The number is a constant, so that results do not
/// depend on the device.
const ROW_SPLIT_BLOCKS: usize = 1056;
/// Number of blocks among which sums and products of columns are split. With this number, column reductions reach 95 % of an H100's copy
/// rate, and with more blocks 92 %. Minima and maxima are compute bound, so they use [`ROW_SPLIT_BLOCKS`] (`docs/notes/gpu-reductions.md`).
const COLUMN_SPLIT_BLOCKS: usize = 396;
/// Minimum number of threads of a block that share one column. A column with fewer elements has one thread per element, so that no thread
/// is idle.
const MIN_THREADS_PER_COLUMN: usize = 8;
// Each row or group of columns that several blocks share needs a counter in scratch memory. At least two of the `ROW_SPLIT_BLOCKS` blocks
// share such a row or group, so there are at most `ROW_SPLIT_BLOCKS / 2` of them. If columns are loaded one by one instead of as vectors,
// there may be eight times as many groups.
const _: () = assert!(ROW_SPLIT_BLOCKS / 2 * 8 <= SCRATCH_COUNTER_COUNT);

/// The kernel of a reduction, and the number of its threads that share a row or load adjacent columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReduceThreadLayout {
    /// Kernel `reduce_rows`. The field is the number of threads per row.
    Team(usize),
    /// Kernel `reduce_columns`. The field is the number of threads over adjacent columns.
    Lanes(usize),
}

impl ReduceThreadLayout {
    /// Returns the name of the kernel.
    fn kernel_name(self) -> &'static str {
        match self {
            ReduceThreadLayout::Team(_) => "reduce_rows",
            ReduceThreadLayout::Lanes(_) => "reduce_columns",
        }
    }
}

/// The parameters that determine the source of a reduction kernel, besides program, operation and dtypes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReduceKernelConfig {
    threads: ReduceThreadLayout,
    kept_rank: usize,
    reduced_rank: usize,
    /// Number of elements per vector load. The value 0 means that the reduced elements are not contiguous, so that each element is located
    /// by its strides.
    width: usize,
    /// Whether indices have 64 bits.
    wide: bool,
    access: InnermostAxisAccess,
}

/// Returns the CUDA source of the reduction `op` of the expression `program`.
fn cuda_source(
    program: &Expression,
    op: Op,
    code: ReductionCode,
    out: DType,
    shape: ReduceKernelConfig,
) -> std::result::Result<String, &'static str> {
    let element = codegen::element_source_with_user_functions(program, shape.access, op.0.body)?;
    Ok([codegen::CUDA_PRELUDE, &element, &reduction_kernel_source(code, out, shape)].concat())
}

/// Returns the part of the CUDA source that follows the generated code of an element: definitions and the kernel.
fn reduction_kernel_source(code: ReductionCode, out: DType, shape: ReduceKernelConfig) -> String {
    let ReductionCode { combination, idempotent, replaces, declarations } = code;
    let AccumulatorCode { acc, size: acc_size, identity, value, combine, finish } = combination;
    let ReduceKernelConfig { kept_rank, reduced_rank, width, wide, .. } = shape;
    let (threads, count, kernel) = match shape.threads {
        ReduceThreadLayout::Team(n) => ("TEAM", n, include_str!("../kernels/reduce_rows.cu")),
        ReduceThreadLayout::Lanes(n) => ("LANES", n, include_str!("../kernels/reduce_columns.cu")),
    };
    let take = match replaces {
        Some(condition) => format!("if ({condition}) a = value(x, index);"),
        None => "a = combine(a, value(x, index));".into(),
    };
    let (index, out) = (codegen::index_type(wide), ctype(out));
    let definitions = format!(
        r#"
namespace cuprum {{
using Index = {index};
using Out = {out};{declarations}
struct Reduction {{
    using Acc = {acc};
    static constexpr bool idempotent = {idempotent};
    __device__ static Acc identity() {{ return {identity}; }}
    __device__ static Acc value(Result x, Index index) {{ return {value}; }}
    __device__ static Acc combine(const Acc& a, const Acc& b) {{ return {combine}; }}
    __device__ static void accumulate(Acc& a, Result x, Index index) {{ {take} }}
    __device__ static Out finish(const Acc& a) {{ return {finish}; }}
}};
}}  // namespace cuprum
static_assert(sizeof(cuprum::Reduction::Acc) <= {acc_size}, "a partial result fits");
#define KEPT_RANK {kept_rank}
#define REDUCED_RANK {reduced_rank}
#define {threads} {count}
#define WIDTH {width}
"#,
    );
    [&definitions, REDUCE_COMMON_SOURCE, kernel].concat()
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every operation and dtype, in several
/// shapes.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        for (m, (op, reduction)) in reduction_code::axis_reductions().enumerate().filter(|(m, _)| (n + m) % 3 == 0) {
            let is_moments = reduction.combine == Combine::Moments;
            let is_logical = reduction.elementwise_combination().and_then(|by| by.0.rule) == Some(TypeRule::Logical);
            let takes_bool = is_logical || matches!(reduction.accumulator, AccumulatorDType::Fixed(_));
            if is_moments && (!dtype.is_inexact() || dtype.itemsize() == 2)
                || takes_bool && dtype != DType::Bool
                || !takes_bool && !reduction.selects && dtype == DType::Bool
            {
                continue;
            }
            let acc = reduction.accumulator.of(dtype);
            let out = match reduction.accumulator {
                _ if reduction.returns_index => DType::I64,
                _ if is_moments => dtype.real(),
                AccumulatorDType::Fixed(fixed) => fixed,
                _ => dtype,
            };
            let width = [0, 1, 16 / dtype.itemsize()][(n + m / 3) % 3];
            let access = InnermostAxisAccess { repeated: 0, aligned: width > 1 };
            let threads = [
                ReduceThreadLayout::Team(8),
                ReduceThreadLayout::Lanes(32),
                ReduceThreadLayout::Team(256),
                ReduceThreadLayout::Lanes([2, 256][n % 2]),
            ][(n + m) / 3 % 4];
            let most = max_columns_per_thread(reduction_code::accumulator_size(reduction, acc));
            let width = if let ReduceThreadLayout::Lanes(_) = threads { width.clamp(1, most) } else { width };
            let shape = ReduceKernelConfig { threads, kept_rank: n % 3, reduced_rank: m % 3, width, wide: n % 2 == 0, access };
            list.extend(named_reduction_source(op, reduction, &Expression::identity(dtype), &dtype.to_string(), (acc, out), shape));
        }
    }
    let taking = test_programs::take_program(DType::F32, DType::I32);
    for ((op, reduction), (threads, width)) in
        reduction_code::axis_reductions().zip([(ReduceThreadLayout::Team(8), 4), (ReduceThreadLayout::Lanes(32), 1)])
    {
        let shape = ReduceKernelConfig {
            threads,
            kept_rank: 1,
            reduced_rank: 1,
            width,
            wide: false,
            access: InnermostAxisAccess { repeated: 0b10, aligned: true },
        };
        list.extend(named_reduction_source(op, reduction, &taking, "take", (DType::F32, DType::F32), shape));
    }
    let ways = [([300, 5000], &[1][..], 256), ([300, 5000], &[0], 256), ([1, 100_001], &[0, 1], 8), ([300, 40], &[-1], 256)];
    let strings = DType::ALL.into_iter().enumerate().map(|(n, dtype)| (dtype, ways[n % ways.len()]));
    list.extend(strings.filter_map(|(dtype, (shape, axes, address))| user_reduction_check_source(dtype, shape, axes, address)));
    list
}

/// Returns the name and source of a reduction of `program`, or `None` if the reduction has no C++ expression. `what` describes `program` in
/// the name.
fn named_reduction_source(
    op: Op,
    reduction: &ReductionDef,
    program: &Expression,
    what: &str,
    (acc, out): (DType, DType),
    shape: ReduceKernelConfig,
) -> Option<(String, String)> {
    let text = cuda_source(program, op, ReductionCode::of(op, reduction, acc)?, out, shape).ok()?;
    Some((format!("reduce<{}, {what}, {shape:?}>", op.name()), text))
}

/// Executes `call`, an operation of the kernel family `Reduce`, on the device.
pub fn run_reduction(call: &Call) -> Result<Outcome> {
    let (Work::Reduce(reduce), [spec]) = (&call.work, call.outputs) else { decline!("not a reduction of one output") };
    let call::Reduce { program, reduction, plan, acc, .. } = *reduce;
    if !reduction_code::has_reduction_code(call.op, reduction) {
        decline!("no CUDA reduction for {}", call.op.name());
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    if let Some(done) = rows::try_run_variance(call, reduce) {
        return done;
    }
    let column_blocks = if reduction.selects { ROW_SPLIT_BLOCKS } else { COLUMN_SPLIT_BLOCKS };
    launch_reduction(call, program, plan, (reduction_code::accumulator_size(reduction, acc), column_blocks), |context, shape| {
        let key = kernel_key(program, shape).with_dtype(acc).with_dtype(spec.dtype).with_op(call.op);
        let make = || {
            let code = ReductionCode::of(call.op, reduction, acc).ok_or(call.op.name())?;
            Ok((shape.threads.kernel_name().to_owned(), cuda_source(program, call.op, code, spec.dtype, shape)?))
        };
        kernel_lookup::get_or_generate_kernel(context, key, make).with_call_context(call)
    })
}

/// Runs `call`, a user-defined reduction whose C++ expressions are strings.
pub fn run_user_reduction(call: &Call) -> Result<Outcome> {
    let Some(reduction) = UserCppReduction::of(call) else { decline!("not a reduction from strings") };
    launch_reduction(call, reduction.program(), reduction.plan(), (reduction.combination().size, COLUMN_SPLIT_BLOCKS), |context, shape| {
        let key = reduction.extend_kernel_key(kernel_key(reduction.program(), shape)).serialize();
        context.kernel_cache().get_or_make(key.hash(), key.bytes(), || {
            reduction
                .raw_source(user_reduction_source(reduction, shape))
                .compile_on(call.device)?
                .find_function(shape.threads.kernel_name())
        })
    })
}

/// Returns the source of the user-defined `reduction` for the kernel configuration `shape`.
pub(crate) fn user_reduction_source(reduction: &UserCppReduction, shape: ReduceKernelConfig) -> String {
    let kernel = reduction_kernel_source(reduction.combination().into(), reduction.output_dtype(), shape);
    [codegen::CUDA_PRELUDE, &reduction.element_source(shape.access), &kernel].concat()
}

/// Returns a kernel key for `program` and the kernel configuration `shape`. The caller adds the operation and its dtypes, on which the
/// source also depends.
fn kernel_key(program: &Expression, shape: ReduceKernelConfig) -> KernelKey<'_> {
    let ReduceKernelConfig { threads, kept_rank, reduced_rank, width, wide, access } = shape;
    let (ReduceThreadLayout::Team(count) | ReduceThreadLayout::Lanes(count)) = threads;
    // Packs the numbers into `packed` with eight bits each, except the thread count, which takes the remaining bits.
    let numbers = [wide as usize, access.aligned as usize, kept_rank, reduced_rank, width, count];
    let packed = numbers.iter().rev().fold(0, |bits, &n| bits << 8 | n as u64);
    KernelKey::new(threads.kernel_name(), program).with_number(packed).with_number(access.repeated)
}

/// Runs the reduction `call` with the kernel that the closure `function` returns for a [`ReduceKernelConfig`]. `acc_size` is the size of an
/// accumulator in bytes. `column_blocks` is the number of blocks among which columns are split.
fn launch_reduction(
    call: &Call,
    program: &Expression,
    plan: &ReducePlan,
    (acc_size, column_blocks): (usize, usize),
    function: impl FnOnce(&'static Context, ReduceKernelConfig) -> Result<Arc<Function>>,
) -> Result<Outcome> {
    if plan.kept.len() > MAX_KEPT_OR_REDUCED_AXES || plan.reduced.len() > MAX_KEPT_OR_REDUCED_AXES {
        decline!("{} kept and {} reduced axes after merging, more than {MAX_KEPT_OR_REDUCED_AXES}", plan.kept.len(), plan.reduced.len());
    }
    let context = device::context(call.device)?;
    let inputs = device::pointers_to_read(call.inputs)?;
    let mut itemsizes = SmallVec::<[usize; 4]>::new();
    call.inputs.iter().for_each(|array| itemsizes.push(array.dtype().itemsize()));
    let (shape, blocks) = select_reduce_kernel(plan, &inputs, &itemsizes, (max_columns_per_thread(acc_size), column_blocks));
    let function = function(context, shape)?;
    let out = device::allocate_output(call, 0)?;
    let reduction = ReduceLaunch { context, program, plan, shape, blocks, slot: acc_size.next_multiple_of(4) };
    reduction.queue_reduction(&function, &inputs, out.pointer()).with_call_context(call)?;
    device::outcome_from_buffers(call, [out])
}

/// Returns the maximum number of adjacent columns per thread with which a block's accumulators fit in shared memory.
fn max_columns_per_thread(acc_size: usize) -> usize {
    (128 / acc_size).min(8)
}

/// Numbers of thread blocks and partial results of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ReduceBlockSplit {
    /// Number of rows, or of groups of adjacent columns, that are reduced independently.
    groups: usize,
    /// Number of blocks that share one row or group of columns.
    splits: usize,
    /// Number of partial results in scratch memory.
    slots: usize,
}

/// Returns the kernel configuration for the user-defined reduction `asked`, assuming that all its inputs start at `address`.
pub(crate) fn user_reduction_config(asked: &ReductionCall, address: u64) -> ReduceKernelConfig {
    let itemsizes: Vec<usize> = asked.inputs.iter().map(|a| a.dtype().itemsize()).collect();
    let (addresses, most) = (vec![address; itemsizes.len()], max_columns_per_thread(asked.reduction.combination().size));
    select_reduce_kernel(asked.reduction.plan(), &addresses, &itemsizes, (most, COLUMN_SPLIT_BLOCKS)).0
}

/// Returns the name and source of a user-defined reduction over `axes` of a matrix with the extents `shape`, which starts at `address`.
fn user_reduction_check_source(dtype: DType, shape: [usize; 2], axes: &[isize], address: u64) -> Option<(String, String)> {
    let device = Device::new(DeviceKind::intern("cuda").ok()?, 0);
    let matrix = testing::calls::array(device, dtype, Layout::contiguous(&shape).ok()?).ok()?;
    let asked = user_kernels::example_reduction_call(&matrix.into(), axes).ok()?;
    let shape = user_reduction_config(&asked, address);
    Some((format!("reduce<strings, {dtype}, {shape:?}>"), asked.reduction.inline_headers(user_reduction_source(&asked.reduction, shape))))
}

/// Selects the kernel for `plan` and its number of blocks. The number of elements per load also depends on the alignment of the addresses
/// `inputs`. `columns` holds the maximum number of columns per thread and the number of blocks among which columns are split.
fn select_reduce_kernel(
    plan: &ReducePlan,
    inputs: &[u64],
    itemsizes: &[usize],
    columns: (usize, usize),
) -> (ReduceKernelConfig, ReduceBlockSplit) {
    let (max_columns_per_thread, column_blocks) = columns;
    let itemsize = itemsizes.iter().copied().max().unwrap_or(1);
    let pack = (16 / itemsize).clamp(1, 8);
    let is_column = plan.pattern == ReducePattern::Column;
    // Vector loads run along the last axis in `along`. The strides of all other axes must keep the loads aligned.
    let (along, other) = if is_column { (&plan.kept_strides, &plan.reduced_strides) } else { (&plan.reduced_strides, &plan.kept_strides) };
    let repeated = |k: usize| along[k].last().is_none_or(|s| *s == 0);
    let is_aligned = |width: usize| {
        (0..inputs.len()).filter(|&k| !repeated(k)).all(|k| {
            let bytes = (width * itemsizes[k]).min(16);
            let outer = along[k].iter().rev().skip(1).chain(&other[k]);
            inputs[k].is_multiple_of(bytes as u64) && outer.copied().all(|s| (s.unsigned_abs() * itemsizes[k]).is_multiple_of(bytes))
        })
    };
    let (threads, width, aligned, blocks) = if is_column {
        let inner = plan.kept.last().copied().unwrap_or(1);
        let widest = (0..).map(|n| 1 << n).take_while(|w| *w <= pack.min(max_columns_per_thread) && inner % w == 0).last().unwrap_or(1);
        // The number of threads over adjacent columns depends on the shape alone, so that the order of combination does not depend on
        // addresses.
        let most = DEFAULT_THREADS_PER_BLOCK as usize / plan.reduced_size.clamp(1, MIN_THREADS_PER_COLUMN).next_power_of_two();
        let lanes = plan.kept_size.div_ceil(widest).next_power_of_two().min(most);
        let shared = plan.kept_size.div_ceil(lanes * widest).max(1);
        let splits = (column_blocks / shared).min(plan.reduced_size / (8 * DEFAULT_THREADS_PER_BLOCK as usize / lanes)).clamp(1, 256);
        let width = if widest > 1 && is_aligned(widest) { widest } else { 1 };
        let groups = plan.kept_size.div_ceil(lanes * width);
        (ReduceThreadLayout::Lanes(lanes), width, width > 1, ReduceBlockSplit { groups, splits, slots: groups * splits * lanes * width })
    } else {
        let flat = plan.reduced.len() <= 1 && plan.reduced_strides.iter().all(|s| matches!(s.last(), None | Some(0 | 1)));
        let width = if flat && plan.reduced_size >= pack { pack } else { flat as usize };
        let packs = plan.reduced_size.div_ceil(width.max(1));
        // The team size also depends on the number of rows, because with one warp per row, few rows leave most of the device idle.
        let team = match packs {
            0..=8 => packs.next_power_of_two(),
            9..=32 => 8,
            33..=64 => 32,
            65..=512 if plan.kept_size >= 2 * ROW_SPLIT_BLOCKS => 32,
            _ => DEFAULT_THREADS_PER_BLOCK as usize,
        };
        // Several blocks share a row only if the row is long enough to occupy whole blocks.
        let splits = if team < DEFAULT_THREADS_PER_BLOCK as usize {
            1
        } else {
            (ROW_SPLIT_BLOCKS / plan.kept_size.max(1)).min(plan.reduced_size / 8192).clamp(1, 1024)
        };
        let blocks = ReduceBlockSplit { groups: plan.kept_size, splits, slots: plan.kept_size * splits };
        (ReduceThreadLayout::Team(team), width, width > 1 && is_aligned(width), blocks)
    };
    let repeated = (0..inputs.len()).filter(|&k| repeated(k)).fold(0, |bits, k| bits | 1 << k);
    let shape = ReduceKernelConfig {
        threads,
        kept_rank: plan.kept.len(),
        reduced_rank: plan.reduced.len(),
        width,
        wide: !codegen::reduction_fits_32_bit_index(plan),
        access: if width > 0 { InnermostAxisAccess { repeated, aligned } } else { InnermostAxisAccess::default() },
    };
    (shape, blocks)
}

/// The arguments of one launch of a reduction kernel.
struct ReduceLaunch<'a> {
    context: &'static Context,
    program: &'a Expression,
    plan: &'a ReducePlan,
    shape: ReduceKernelConfig,
    blocks: ReduceBlockSplit,
    /// Size of a partial result in scratch memory, in bytes (`Slot` in warp.cuh).
    slot: usize,
}

impl ReduceLaunch<'_> {
    fn queue_reduction(&self, function: &Function, inputs: &[u64], out: u64) -> crate::Result<()> {
        let (plan, shape, ReduceBlockSplit { groups, splits, slots }) = (self.plan, self.shape, self.blocks);
        let params = codegen::pack_params(self.program, inputs, device::error_word_address(self.context, self.program)?);
        let kept = codegen::pack_axes(&plan.kept, plan.kept_strides.iter().map(|s| &s[..]), shape.wide);
        let reduced = codegen::pack_axes(&plan.reduced, plan.reduced_strides.iter().map(|s| &s[..]), shape.wide);
        let scratch = if splits > 1 { Some(self.context.scratch(slots * self.slot)?) } else { None };
        let (parts, tickets) = scratch.as_ref().map_or((0, 0), |s| (s.partials, s.counters));
        let (results, length, split_count) = (plan.kept_size as u64, plan.reduced_size as u64, splits as u32);
        let mut args = Args::new();
        args.push_bytes(&params).push_bytes(&kept).push_bytes(&reduced);
        args.push(&out).push(&parts).push(&tickets).push(&results).push(&length).push(&split_count);
        // The grid may have any size, because blocks that share a row do not wait for each other. A team of up to 8 threads reduces two
        // rows at once (`ROWS_PER_TEAM` in reduce_rows.cu).
        let blocks = match shape.threads {
            ReduceThreadLayout::Team(n) => (groups * splits).div_ceil(DEFAULT_THREADS_PER_BLOCK as usize / n * if n <= 8 { 2 } else { 1 }),
            ReduceThreadLayout::Lanes(_) => groups * splits,
        };
        let grid = [u32::try_from(blocks).unwrap_or(u32::MAX).min(1 << 20), 1, 1];
        // SAFETY: the arguments match reduce_rows.cu and reduce_columns.cu. The plan keeps every element inside its input, and `out` has
        // one element per result. If `splits` > 1, scratch memory has a slot for each partial result, and a counter for each row or group
        // of columns (at most SCRATCH_COUNTER_COUNT).
        unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(shape_of: &[usize], axes: &[usize], address: u64) -> (ReduceKernelConfig, ReduceBlockSplit) {
        let layout = Layout::contiguous(shape_of).unwrap();
        let plan = ReducePlan::new(shape_of, &[&layout], axes, false);
        select_reduce_kernel(&plan, &[address], &[4], (8, COLUMN_SPLIT_BLOCKS))
    }

    #[test]
    fn kernels_follow_the_plan() {
        let (all, blocks) = pick(&[1 << 24], &[0], 256);
        assert!(
            (all.width, all.threads, blocks.groups) == (4, ReduceThreadLayout::Team(256), 1) && all.access.aligned && blocks.splits == 1024
        );
        assert!(!pick(&[1 << 24], &[0], 4).0.access.aligned);
        let (rows, blocks) = pick(&[4096, 32], &[1], 256);
        assert_eq!((rows.threads, rows.width, blocks.splits), (ReduceThreadLayout::Team(8), 4, 1));
        assert_eq!(pick(&[4096, 3], &[1], 256).0.threads, ReduceThreadLayout::Team(4), "no vectorised loads");
        assert_eq!(pick(&[100_000, 1000], &[1], 256).0.threads, ReduceThreadLayout::Team(32));
        assert_eq!(pick(&[256, 1000], &[1], 256).0.threads, ReduceThreadLayout::Team(256), "few rows");
        assert!(!pick(&[100, 1001], &[1], 256).0.access.aligned, "rows of 1001 do not all begin at a multiple of 16 bytes");
        assert_eq!(pick(&[10, 11, 12], &[0, 2], 256).0.width, 0);
    }

    #[test]
    fn columns_follow_the_plan() {
        let (wide, blocks) = pick(&[1000, 1000], &[0], 256);
        assert_eq!((wide.threads, wide.width, wide.access.aligned), (ReduceThreadLayout::Lanes(32), 4, true));
        assert_eq!(blocks, ReduceBlockSplit { groups: 8, splits: 15, slots: 8 * 15 * 128 });
        let (unaligned, blocks) = pick(&[1000, 1000], &[0], 4);
        assert_eq!((unaligned.width, blocks.groups, blocks.splits), (1, 32, 15), "the same split, without vectorised loads");
        assert_eq!(pick(&[1000, 1001], &[0], 256).0.width, 1);
        assert_eq!(pick(&[2, 1000], &[0], 256).0.threads, ReduceThreadLayout::Lanes(128), "two rows");
        assert_eq!(pick(&[1_000_000, 4], &[0], 256).0.threads, ReduceThreadLayout::Lanes(1), "the other threads take further rows");
    }

    #[test]
    fn keys_differ_exactly_where_shapes_do() {
        let extents: [&[usize]; 9] =
            [&[7], &[100], &[1 << 24], &[4096, 32], &[4096, 3], &[100, 1001], &[10, 11, 12], &[1 << 31], &[2, 1 << 31]];
        let axes: [&[usize]; 4] = [&[0], &[1], &[0, 2], &[0, 1]];
        let asked = extents.iter().flat_map(|&shape| axes.iter().map(move |&axes| (shape, axes)));
        let asked = asked.filter(|(shape, axes)| axes.iter().all(|&axis| axis < shape.len()));
        let shapes: Vec<ReduceKernelConfig> =
            asked.flat_map(|(shape, axes)| [256, 4].map(|address| pick(shape, axes, address).0)).collect();
        let program = Expression::identity(DType::F32);
        for (a, b) in shapes.iter().flat_map(|a| shapes.iter().map(move |b| (*a, *b))) {
            assert_eq!(kernel_key(&program, a).serialize() == kernel_key(&program, b).serialize(), a == b, "{a:?}, {b:?}");
        }
        assert!(shapes.iter().any(|shape| shape.wide) && shapes.iter().any(|shape| shape.threads == ReduceThreadLayout::Lanes(32)));
    }

    #[test]
    fn sources_are_listed() {
        assert!(sources_for_compile_check().len() > 20);
    }
}
