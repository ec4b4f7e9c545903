//! Reduce: every layout, with the prologue expression inlined and one launch.
//!
//! Rows (all, row, general) are shared by teams of 8 threads, a warp, a block, or several blocks, by length; columns are read
//! 32 neighbours at a time. Where few results have many elements each, several blocks share one, and the last of them to
//! arrive puts their parts together in the blocks' order.

use std::sync::Arc;

use cuprum_core::plan::reduce::{ReduceClass, ReducePlan};
use cuprum_core::{Array, Call, DType, Device, DeviceKind, Layout, Outcome, Program as Expression, Result, Work, decline, testing};
use smallvec::SmallVec;

use crate::codegen::reductions::{BEST, MOMENTS, REDUCTIONS, ReductionCode};
use crate::codegen::{self, Access, Combination, KernelKey, check, ctype};
use crate::compile::module::{Args, Function};
use crate::device::{self, InCall};
use crate::driver::{COUNTERS, Context};
use crate::families::kernel::{self, THREADS};
use crate::families::rows;
use crate::user_kernels::{self, Asked, REDUCTION_KERNEL, StringReduction};

const COMMON: &str = concat!(include_str!("../kernels/warp.cuh"), include_str!("../kernels/reduce.cuh"));
/// Most axes, kept or reduced, that kernels are generated for.
const MAX_RANK: usize = 8;
/// Blocks that keep any device of today busy where they share rows; a constant, so that results are the same on all of them.
const BUSY: usize = 1056;
/// The same where they share columns of what is added or multiplied: longer walks down are worth more than more blocks (of an H100's copy rate
/// 95 % with three blocks a multiprocessor, 92 % with eight; but minima and maxima, which take longer over an element, 81 % and 91 %).
const BUSY_COLUMNS: usize = 396;
/// Each of the groups that share blocks has a counter: no more than half as many as blocks, or eight times that where columns are loaded one by one.
const _: () = assert!(BUSY / 2 * 8 <= COUNTERS);

/// Which kernel, and how many threads stand side by side in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Threads {
    /// `reduce_rows`, by so many threads a row.
    Team(usize),
    /// `reduce_columns`, by so many threads over neighbouring columns.
    Lanes(usize),
}

impl Threads {
    /// The kernel's name.
    fn kernel(self) -> &'static str {
        match self {
            Threads::Team(_) => "reduce_rows",
            Threads::Lanes(_) => "reduce_columns",
        }
    }
}

/// The layout half of a kernel: all else that its text depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    threads: Threads,
    kept_rank: usize,
    reduced_rank: usize,
    width: usize,
    wide: bool,
    access: Access,
}

/// The text of a reduction of an expression.
fn source(
    program: &Expression,
    row: &ReductionCode<'_>,
    (acc, acc_size): (DType, usize),
    out: DType,
    shape: Shape,
) -> std::result::Result<String, &'static str> {
    let element = codegen::element_and(program, shape.access, row.op.0.body)?;
    Ok([codegen::PRELUDE, &element, &kernel_text(row, (acc, acc_size), out, shape)].concat())
}

/// The kernel of a shape, after the element's code.
fn kernel_text(row: &ReductionCode<'_>, (acc, acc_size): (DType, usize), out: DType, shape: Shape) -> String {
    let ReductionCode { identity, value, combine, replaces, finish, .. } = row;
    let acc = row.acc.unwrap_or(ctype(acc));
    let Shape { kept_rank, reduced_rank, width, wide, .. } = shape;
    let (threads, count, kernel) = match shape.threads {
        Threads::Team(n) => ("TEAM", n, include_str!("../kernels/reduce_rows.cu")),
        Threads::Lanes(n) => ("LANES", n, include_str!("../kernels/reduce_columns.cu")),
    };
    let take = match replaces {
        Some(condition) => format!("if ({condition}) a = value(x, index);"),
        None => "a = combine(a, value(x, index));".into(),
    };
    let (index, out) = (codegen::index_type(wide), ctype(out));
    let declarations = match acc {
        "Best" => BEST,
        "Moments" => MOMENTS,
        _ => "",
    };
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
    __device__ static void take(Acc& a, Result x, Index index) {{ {take} }}
    __device__ static Out finish(const Acc& a) {{ return {finish}; }}
}};
}}  // namespace cuprum
static_assert(sizeof(cuprum::Reduction::Acc) <= {acc_size}, "room for a part");
#define KEPT_RANK {kept_rank}
#define REDUCED_RANK {reduced_rank}
#define {threads} {count}
#define WIDTH {width}
"#,
        idempotent = identity.is_none(),
        identity = identity.unwrap_or("Acc()"),
    );
    [&definitions, COMMON, kernel].concat()
}

/// Programs of this family for compiling without a device: every operation and dtype, over some shapes.
pub fn sources() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        for (m, row) in REDUCTIONS.iter().enumerate().filter(|(m, _)| (n + m) % 3 == 0) {
            let logical = row.acc.is_some_and(|a| a == "bool" || a == "i64");
            if row.acc == Some("Moments") && (!dtype.is_inexact() || dtype.itemsize() == 2) {
                continue;
            }
            if logical && dtype != DType::Bool || (row.acc.is_none() && row.identity.is_some() && dtype == DType::Bool) {
                continue;
            }
            let half = matches!(dtype, DType::F16 | DType::BF16) && row.identity.is_some();
            let out = match row.acc {
                Some("Best" | "i64") => DType::I64,
                Some("Moments") => dtype.real(),
                _ => dtype,
            };
            let width = [0, 1, 16 / dtype.itemsize()][(n + m / 3) % 3];
            let access = Access { repeated: 0, aligned: width > 1 };
            let threads = [Threads::Team(8), Threads::Lanes(32), Threads::Team(256), Threads::Lanes(2)][(n + m) / 3 % 4];
            let width = if let Threads::Lanes(_) = threads { width.clamp(1, most_columns(row.acc_size(dtype))) } else { width };
            let shape = Shape { threads, kept_rank: n % 3, reduced_rank: m % 3, width, wide: n % 2 == 0, access };
            let acc = if half { DType::F32 } else { dtype };
            let accumulator = (acc, row.acc_size(acc));
            if let Ok(text) = source(&Expression::identity(dtype), row, accumulator, out, shape) {
                list.push((format!("reduce<{}, {dtype}, {shape:?}>", row.op.name()), text));
            }
        }
    }
    let taking = check::taking(DType::F32, DType::I32);
    for (row, threads, width) in [(&REDUCTIONS[0], Threads::Team(8), 4), (&REDUCTIONS[1], Threads::Lanes(32), 1)] {
        let shape = Shape { threads, kept_rank: 1, reduced_rank: 1, width, wide: false, access: Access { repeated: 0b10, aligned: true } };
        if let Ok(text) = source(&taking, row, (DType::F32, 4), DType::F32, shape) {
            list.push((format!("reduce<{} of take, {shape:?}>", row.op.name()), text));
        }
    }
    let ways = [([300, 5000], &[1][..], 256), ([300, 5000], &[0], 256), ([1, 100_001], &[0, 1], 8), ([300, 40], &[-1], 256)];
    let strings = DType::ALL.into_iter().enumerate().map(|(n, dtype)| (dtype, ways[n % ways.len()]));
    list.extend(strings.filter_map(|(dtype, (shape, axes, address))| from_strings(dtype, shape, axes, address)));
    list
}

/// The kernel of family Reduce.
pub fn run(call: &Call) -> Result<Outcome> {
    let (Work::Reduce { program, plan, acc }, [spec]) = (&call.work, call.outputs) else { decline!("not a reduction of one output") };
    let (own, of_own);
    let (row, acc_size) = match (REDUCTIONS.iter().find(|row| row.op == call.op), call.op.0.body) {
        (Some(row), _) => (row, row.acc_size(*acc)),
        (None, Some(body)) => {
            let Some(combination) = Combination::of_body(body, *acc) else { decline!("{} is no reduction", call.op.name()) };
            own = combination;
            of_own = ReductionCode::of(call.op, &own);
            (&of_own, own.size)
        }
        (None, None) => decline!("no row for {}", call.op.name()),
    };
    if let Some(op) = program.ops().find(|op| !codegen::has_row(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    if let Some(done) = rows::variance(call, program, plan) {
        return done;
    }
    let busy = if row.identity.is_some() { BUSY_COLUMNS } else { BUSY };
    launch(call, program, plan, (acc_size, busy), |context, shape| {
        let key = key(program, shape).with_dtype(*acc).with_dtype(spec.dtype).with_op(call.op);
        let make = || Ok((shape.threads.kernel().to_owned(), source(program, row, (*acc, acc_size), spec.dtype, shape)?));
        kernel::generated(context, key, make).in_call(call)
    })
}

/// The kernel of reductions from strings.
pub fn run_strings(call: &Call) -> Result<Outcome> {
    let Some(reduction) = StringReduction::of(call) else { decline!("not a reduction from strings") };
    launch(call, reduction.program(), reduction.plan(), (reduction.combination().size, BUSY_COLUMNS), |context, shape| {
        let key = reduction.add_to(key(reduction.program(), shape)).written();
        context.kernels().get_or_make(key.hash(), key.bytes(), || {
            reduction.source(strings_source(reduction, shape)).compile_on(call.device)?.function(shape.threads.kernel())
        })
    })
}

/// The text of a reduction from strings.
pub(crate) fn strings_source(reduction: &StringReduction, shape: Shape) -> String {
    let combination = reduction.combination();
    let kernel = kernel_text(
        &ReductionCode::of(REDUCTION_KERNEL, &combination),
        (reduction.accumulator(), combination.size),
        reduction.output(),
        shape,
    );
    [codegen::PRELUDE, &reduction.element(shape.access), &kernel].concat()
}

/// What a kernel's text depends on beside its operation.
fn key(program: &Expression, shape: Shape) -> KernelKey<'_> {
    let Shape { threads, kept_rank, reduced_rank, width, wide, access } = shape;
    let (Threads::Team(count) | Threads::Lanes(count)) = threads;
    // None takes more than eight bits, but the threads.
    let numbers = [wide as usize, access.aligned as usize, kept_rank, reduced_rank, width, count];
    let packed = numbers.iter().rev().fold(0, |bits, &n| bits << 8 | n as u64);
    KernelKey::new(threads.kernel(), program).with(packed).with(access.repeated)
}

/// Reduces by the kernel that `function` has for a shape.
fn launch(
    call: &Call,
    program: &Expression,
    plan: &ReducePlan,
    (acc_size, busy_columns): (usize, usize),
    function: impl FnOnce(&'static Context, Shape) -> Result<Arc<Function>>,
) -> Result<Outcome> {
    if plan.kept.len() > MAX_RANK || plan.reduced.len() > MAX_RANK {
        decline!("{} kept and {} reduced axes after collapsing, more than {MAX_RANK}", plan.kept.len(), plan.reduced.len());
    }
    let context = device::context(call.device)?;
    let inputs = device::pointers(call.inputs)?;
    let mut itemsizes = SmallVec::<[usize; 4]>::new();
    call.inputs.iter().for_each(|array| itemsizes.push(array.dtype().itemsize()));
    let (shape, blocks) = shape(plan, &inputs, &itemsizes, (most_columns(acc_size), busy_columns));
    let function = function(context, shape)?;
    let out = device::allocate_output(call, 0)?;
    let reduction = Reduction { context, program, plan, shape, blocks, slot: acc_size.next_multiple_of(4) };
    reduction.queue(&function, &inputs, out.pointer()).in_call(call)?;
    device::done(call, [out])
}

/// Neighbouring columns that a thread can take, so that a block's accumulators (128 bytes a thread) fit its shared memory.
fn most_columns(acc_size: usize) -> usize {
    (128 / acc_size).min(8)
}

/// How the work is parted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Blocks {
    /// Results that share blocks: rows, or groups of neighbouring columns.
    groups: usize,
    /// Blocks that share each.
    splits: usize,
    /// Parts that they hand to the last of them.
    slots: usize,
}

/// The shape in which a reduction from strings is compiled whose inputs begin at `address`.
pub(crate) fn strings_shape(asked: &Asked, address: u64) -> Shape {
    let itemsizes: Vec<usize> = asked.inputs.iter().map(|a| a.dtype().itemsize()).collect();
    let (addresses, most) = (vec![address; itemsizes.len()], most_columns(asked.reduction.combination().size));
    shape(asked.reduction.plan(), &addresses, &itemsizes, (most, BUSY_COLUMNS)).0
}

/// The listed source of a reduction from strings over a matrix's axes.
fn from_strings(dtype: DType, shape: [usize; 2], axes: &[isize], address: u64) -> Option<(String, String)> {
    let device = Device::new(DeviceKind::intern("cuda").ok()?, 0);
    let matrix = testing::calls::array(device, dtype, Layout::contiguous(&shape).ok()?).ok()?;
    let asked = user_kernels::call_for_check(&matrix.into(), axes).ok()?;
    let shape = strings_shape(&asked, address);
    Some((format!("reduce<strings, {dtype}, {shape:?}>"), asked.reduction.inlined(strings_source(&asked.reduction, shape))))
}

/// Picks the kernel and the parts from the plan, and how it loads from the addresses too.
/// `columns`: the most that a thread takes, and the blocks among which they are shared.
fn shape(plan: &ReducePlan, inputs: &[u64], itemsizes: &[usize], columns: (usize, usize)) -> (Shape, Blocks) {
    let (most_columns, busy_columns) = columns;
    let itemsize = itemsizes.iter().copied().max().unwrap_or(1);
    let pack = (16 / itemsize).clamp(1, 8);
    let is_column = plan.class == ReduceClass::Column;
    // The axis along which elements are loaded together, and all others, on which packs must stay aligned.
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
        let widest = (0..).map(|n| 1 << n).take_while(|w| *w <= pack.min(most_columns) && inner % w == 0).last().unwrap_or(1);
        // What follows from the shape alone decides the order of combination; addresses only decide how elements are loaded.
        let lanes = plan.kept_size.div_ceil(widest).next_power_of_two().min(32);
        let shared = plan.kept_size.div_ceil(lanes * widest).max(1);
        let splits = (busy_columns / shared).min(plan.reduced_size / (8 * THREADS as usize / lanes)).clamp(1, 256);
        let width = if widest > 1 && is_aligned(widest) { widest } else { 1 };
        let groups = plan.kept_size.div_ceil(lanes * width);
        (Threads::Lanes(lanes), width, width > 1, Blocks { groups, splits, slots: groups * splits * lanes * width })
    } else {
        let flat = plan.reduced.len() <= 1 && plan.reduced_strides.iter().all(|s| matches!(s.last(), None | Some(0 | 1)));
        let width = if flat && plan.reduced_size >= pack { pack } else { flat as usize };
        let packs = plan.reduced_size.div_ceil(width.max(1));
        // A warp a row would leave the device half empty where rows are few.
        let team = match packs {
            0..=8 => packs.next_power_of_two(),
            9..=32 => 8,
            33..=64 => 32,
            65..=512 if plan.kept_size >= 2 * BUSY => 32,
            _ => THREADS as usize,
        };
        // Only rows of a whole block are shared by several.
        let splits = if team < THREADS as usize { 1 } else { (BUSY / plan.kept_size.max(1)).min(plan.reduced_size / 8192).clamp(1, 1024) };
        let blocks = Blocks { groups: plan.kept_size, splits, slots: plan.kept_size * splits };
        (Threads::Team(team), width, width > 1 && is_aligned(width), blocks)
    };
    let repeated = (0..inputs.len()).filter(|&k| repeated(k)).fold(0, |bits, k| bits | 1 << k);
    let shape = Shape {
        threads,
        kept_rank: plan.kept.len(),
        reduced_rank: plan.reduced.len(),
        width,
        wide: !codegen::reduction_fits_narrow(plan),
        access: if width > 0 { Access { repeated, aligned } } else { Access::default() },
    };
    (shape, blocks)
}

/// One reduction on its way to the stream.
struct Reduction<'a> {
    context: &'static Context,
    program: &'a Expression,
    plan: &'a ReducePlan,
    shape: Shape,
    blocks: Blocks,
    /// Bytes of a part: `Slot` in warp.cuh.
    slot: usize,
}

impl Reduction<'_> {
    fn queue(&self, function: &Function, inputs: &[u64], out: u64) -> crate::Result<()> {
        let (plan, shape, Blocks { groups, splits, slots }) = (self.plan, self.shape, self.blocks);
        let params = codegen::pack_params(self.program, inputs, device::fault_address(self.context, self.program)?);
        let kept = codegen::pack_axes(&plan.kept, plan.kept_strides.iter().map(|s| &s[..]), shape.wide);
        let reduced = codegen::pack_axes(&plan.reduced, plan.reduced_strides.iter().map(|s| &s[..]), shape.wide);
        let scratch = if splits > 1 { Some(self.context.scratch(slots * self.slot)?) } else { None };
        let (parts, tickets) = scratch.as_ref().map_or((0, 0), |s| (s.room, s.counters));
        let (results, length, split_count) = (plan.kept_size as u64, plan.reduced_size as u64, splits as u32);
        let mut args = Args::new();
        args.push_bytes(&params).push_bytes(&kept).push_bytes(&reduced);
        args.push(&out).push(&parts).push(&tickets).push(&results).push(&length).push(&split_count);
        // Blocks that share a result do not wait for each other, so any number will do. Small teams take two rows together.
        let blocks = match shape.threads {
            Threads::Team(n) => (groups * splits).div_ceil(THREADS as usize / n * if n <= 8 { 2 } else { 1 }),
            Threads::Lanes(_) => groups * splits,
        };
        let grid = [u32::try_from(blocks).unwrap_or(u32::MAX).min(1 << 20), 1, 1];
        // SAFETY: the arguments are those of both kernels, reduce_rows.cu's and reduce_columns.cu's; the plan keeps every
        // element inside its input, `out` has one element a result, and with splits there are a slot for each part and a
        // ticket for each of at most COUNTERS groups.
        unsafe { function.launch(grid, [THREADS, 1, 1], 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(shape_of: &[usize], axes: &[usize], address: u64) -> (Shape, Blocks) {
        let layout = Layout::contiguous(shape_of).unwrap();
        let plan = ReducePlan::new(shape_of, &[&layout], axes, false);
        shape(&plan, &[address], &[4], (8, BUSY_COLUMNS))
    }

    #[test]
    fn kernels_follow_the_plan() {
        let (all, blocks) = pick(&[1 << 24], &[0], 256);
        assert!((all.width, all.threads, blocks.groups) == (4, Threads::Team(256), 1) && all.access.aligned && blocks.splits == 1024);
        assert!(!pick(&[1 << 24], &[0], 4).0.access.aligned);
        let (rows, blocks) = pick(&[4096, 32], &[1], 256);
        assert_eq!((rows.threads, rows.width, blocks.splits), (Threads::Team(8), 4, 1));
        assert_eq!(pick(&[4096, 3], &[1], 256).0.threads, Threads::Team(4), "one by one");
        assert_eq!(pick(&[100_000, 1000], &[1], 256).0.threads, Threads::Team(32));
        assert_eq!(pick(&[256, 1000], &[1], 256).0.threads, Threads::Team(256), "few rows");
        assert!(!pick(&[100, 1001], &[1], 256).0.access.aligned, "rows of 1001 do not all begin at a multiple of 16 bytes");
        assert_eq!(pick(&[10, 11, 12], &[0, 2], 256).0.width, 0);
    }

    #[test]
    fn columns_follow_the_plan() {
        let (wide, blocks) = pick(&[1000, 1000], &[0], 256);
        assert_eq!((wide.threads, wide.width, wide.access.aligned), (Threads::Lanes(32), 4, true));
        assert_eq!(blocks, Blocks { groups: 8, splits: 15, slots: 8 * 15 * 128 });
        let (unaligned, blocks) = pick(&[1000, 1000], &[0], 4);
        assert_eq!((unaligned.width, blocks.groups, blocks.splits), (1, 32, 15), "the same parts, loaded one by one");
        assert_eq!(pick(&[1000, 1001], &[0], 256).0.width, 1);
        assert_eq!(pick(&[1_000_000, 4], &[0], 256).0.threads, Threads::Lanes(1), "all others stand below");
    }

    #[test]
    fn keys_are_alike_where_shapes_are() {
        let extents: [&[usize]; 9] =
            [&[7], &[100], &[1 << 24], &[4096, 32], &[4096, 3], &[100, 1001], &[10, 11, 12], &[1 << 31], &[2, 1 << 31]];
        let axes: [&[usize]; 4] = [&[0], &[1], &[0, 2], &[0, 1]];
        let asked = extents.iter().flat_map(|&shape| axes.iter().map(move |&axes| (shape, axes)));
        let asked = asked.filter(|(shape, axes)| axes.iter().all(|&axis| axis < shape.len()));
        let shapes: Vec<Shape> = asked.flat_map(|(shape, axes)| [256, 4].map(|address| pick(shape, axes, address).0)).collect();
        let program = Expression::identity(DType::F32);
        for (a, b) in shapes.iter().flat_map(|a| shapes.iter().map(move |b| (*a, *b))) {
            assert_eq!(key(&program, a).written() == key(&program, b).written(), a == b, "{a:?}, {b:?}");
        }
        assert!(shapes.iter().any(|shape| shape.wide) && shapes.iter().any(|shape| shape.threads == Threads::Lanes(32)));
    }

    #[test]
    fn sources_are_listed() {
        assert!(sources().len() > 20);
    }
}
