//! Reduce: every layout, with the prologue expression inlined and one launch.
//!
//! Rows (all, row, general) are shared by teams of 8 threads, a warp, a block, or several blocks, by length; columns are read
//! 32 neighbours at a time. Where few results have many elements each, several blocks share one, and the last of them to
//! arrive puts their parts together in the blocks' order.

use std::sync::Arc;

use cuprum_core::op::Op;
use cuprum_core::ops::reduce::{ALL, ANY, ARGMAX, ARGMIN, COUNT_NONZERO, MAX, MIN, PROD, SUM};
use cuprum_core::plan::reduce::{ReduceClass, ReducePlan};
use cuprum_core::{Array, Call, DType, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, Access, KernelKey, ctype};
use crate::device::{self, CudaBuffer, InCall};
use crate::driver::Context;
use crate::kernel::{self, THREADS};
use crate::module::{Args, Function};

const KERNELS: &str = concat!(include_str!("kernels/warp.cuh"), include_str!("kernels/reduce.cu"));
/// Most axes, kept or reduced, that kernels are generated for.
const MAX_RANK: usize = 8;
/// Bytes of a part that blocks hand to each other: `Slot` in warp.cuh.
const SLOT: usize = 32;
/// Blocks that keep any device of today busy; a constant, so that results are the same on all of them.
const BUSY: usize = 1056;

/// One reduction in C++.
struct Row {
    op: Op,
    /// Type of the accumulator, where it is not the dtype that the call accumulates in.
    acc: Option<&'static str>,
    /// The value that changes nothing; none where elements may be combined twice.
    identity: Option<&'static str>,
    /// An element `x`, number `index`, as an accumulator.
    value: &'static str,
    /// Accumulators `a` and `b` together; a comes first.
    combine: &'static str,
    /// Accumulator `a` as a result.
    finish: &'static str,
}

static ROWS: &[Row] = &[
    Row {
        op: SUM,
        acc: None,
        identity: Some("cast<Acc>(i64(0))"),
        value: "cast<Acc>(x)",
        combine: "op::add(a, b)",
        finish: "cast<Out>(a)",
    },
    Row {
        op: PROD,
        acc: None,
        identity: Some("cast<Acc>(i64(1))"),
        value: "cast<Acc>(x)",
        combine: "op::multiply(a, b)",
        finish: "cast<Out>(a)",
    },
    Row { op: MIN, acc: None, identity: None, value: "x", combine: "op::minimum(a, b)", finish: "a" },
    Row { op: MAX, acc: None, identity: None, value: "x", combine: "op::maximum(a, b)", finish: "a" },
    Row { op: ANY, acc: Some("bool"), identity: Some("false"), value: "x", combine: "a || b", finish: "a" },
    Row { op: ALL, acc: Some("bool"), identity: Some("true"), value: "x", combine: "a && b", finish: "a" },
    Row { op: COUNT_NONZERO, acc: Some("i64"), identity: Some("0"), value: "x ? 1 : 0", combine: "a + b", finish: "a" },
    Row {
        op: ARGMIN,
        acc: Some("Best"),
        identity: None,
        value: "Best{x, index}",
        combine: "better(a, b, op::less(b.value, a.value))",
        finish: "a.index",
    },
    Row {
        op: ARGMAX,
        acc: Some("Best"),
        identity: None,
        value: "Best{x, index}",
        combine: "better(a, b, op::less(a.value, b.value))",
        finish: "a.index",
    },
];

/// The element that an arg-reduction has found: NaN is best, and of equals the first.
const BEST: &str = r#"
struct Best { Result value; i64 index; };
__device__ inline Best better(const Best& a, const Best& b, bool b_wins) {
    const bool nan_a = op::isnan(a.value), nan_b = op::isnan(b.value);
    if (nan_a != nan_b) return nan_a ? a : b;
    if (!nan_a && b_wins) return b;
    const bool same = nan_a || op::equal(a.value, b.value);
    return same && b.index < a.index ? b : a;
}
"#;

/// The layout half of a kernel: which of the two, and what its text depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    columns: bool,
    kept_rank: usize,
    reduced_rank: usize,
    team: usize,
    width: usize,
    wide: bool,
    access: Access,
}

fn source(program: &Expression, row: &Row, acc: DType, out: DType, shape: Shape) -> std::result::Result<String, &'static str> {
    let element = codegen::element(program, shape.access)?;
    let Row { identity, value, combine, finish, .. } = row;
    let acc = row.acc.unwrap_or(ctype(acc));
    let Shape { kept_rank, reduced_rank, team, width, wide, .. } = shape;
    let (index, out, best) = (codegen::index_type(wide), ctype(out), if acc == "Best" { BEST } else { "" });
    let definitions = format!(
        r#"
namespace cuprum {{
using Index = {index};
using Out = {out};{best}
struct Reduction {{
    using Acc = {acc};
    static constexpr bool idempotent = {idempotent};
    __device__ static Acc identity() {{ return {identity}; }}
    __device__ static Acc value(Result x, i64 index) {{ return {value}; }}
    __device__ static Acc combine(const Acc& a, const Acc& b) {{ return {combine}; }}
    __device__ static Out finish(const Acc& a) {{ return {finish}; }}
}};
}}  // namespace cuprum
#define KEPT_RANK {kept_rank}
#define REDUCED_RANK {reduced_rank}
#define TEAM {team}
#define WIDTH {width}
"#,
        idempotent = identity.is_none(),
        identity = identity.unwrap_or("Acc()"),
    );
    Ok([codegen::PRELUDE, &element, &definitions, KERNELS].concat())
}

/// Programs of this family for compiling without a device: every operation and dtype, over some shapes.
pub fn sources() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        for (m, row) in ROWS.iter().enumerate().filter(|(m, _)| (n + m) % 3 == 0) {
            let logical = row.acc.is_some_and(|a| a != "Best");
            if logical && dtype != DType::Bool || (row.acc.is_none() && row.identity.is_some() && dtype == DType::Bool) {
                continue;
            }
            let half = matches!(dtype, DType::F16 | DType::BF16) && row.identity.is_some();
            let out = if row.acc == Some("Best") || row.op == COUNT_NONZERO { DType::I64 } else { dtype };
            let width = [0, 1, 16 / dtype.itemsize()][(n + m / 3) % 3];
            let access = Access { repeated: 0, aligned: width > 1 };
            let shape =
                Shape { columns: false, kept_rank: n % 3, reduced_rank: m % 3, team: [8, 32, 256][m % 3], width, wide: n % 2 == 0, access };
            if let Ok(text) = source(&Expression::identity(dtype), row, if half { DType::F32 } else { dtype }, out, shape) {
                list.push((format!("reduce<{}, {dtype}, {shape:?}>", row.op.name()), text));
            }
        }
    }
    list
}

/// The kernel of family Reduce.
pub fn run(call: &Call) -> Result<Outcome> {
    let (Work::Reduce { program, plan, acc }, [spec]) = (&call.work, call.outputs) else { decline!("not a reduction of one output") };
    let Some(row) = ROWS.iter().find(|row| row.op == call.op) else { decline!("no row for {}", call.op.name()) };
    if plan.kept.len() > MAX_RANK || plan.reduced.len() > MAX_RANK {
        decline!("{} kept and {} reduced axes after collapsing, more than {MAX_RANK}", plan.kept.len(), plan.reduced.len());
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_row(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    let context = device::context(call.device)?;
    let inputs: Result<SmallVec<[u64; 4]>> = call.inputs.iter().map(device::pointer).collect();
    let inputs = inputs?;
    let itemsize = call.inputs.iter().map(|a| a.dtype().itemsize()).max().unwrap_or(1);
    let shape = shape(plan, &inputs, call.inputs.iter().map(|a| a.dtype().itemsize()).collect(), itemsize);
    let (groups, splits) = splits(plan, shape);
    let out = device::allocate_output(call, 0)?;
    let parts = if splits > 1 {
        let slots = groups * splits * if shape.columns { 32 } else { 1 };
        Some((device::allocate(call, slots * SLOT)?, device::allocate(call, groups * 4)?))
    } else {
        None
    };
    let reduction = Reduction { context, program, plan, row, acc: *acc, out_dtype: spec.dtype, shape };
    reduction.queue(&inputs, out.pointer(), parts.as_ref().map(|(p, t)| (&**p, &**t)), groups, splits).in_call(call)?;
    device::done(call, [out])
}

/// Picks the kernel from the plan, and the width of its loads from the addresses.
fn shape(plan: &ReducePlan, inputs: &[u64], itemsizes: SmallVec<[usize; 4]>, itemsize: usize) -> Shape {
    let columns = plan.class == ReduceClass::Column;
    let flat = !columns && plan.reduced.len() <= 1 && plan.reduced_strides.iter().all(|s| matches!(s.last(), None | Some(0 | 1)));
    let repeated = |k: usize| plan.reduced_strides[k].last().is_none_or(|s| *s == 0);
    let width = if flat && plan.reduced_size >= 64 { (16 / itemsize).clamp(1, 8) } else { flat as usize };
    // Every row must begin at a multiple of the pack.
    let aligned = width > 1
        && (0..inputs.len()).filter(|&k| !repeated(k)).all(|k| {
            let pack = (width * itemsizes[k]).min(16);
            inputs[k].is_multiple_of(pack as u64)
                && plan.kept_strides[k].iter().all(|s| (s.unsigned_abs() * itemsizes[k]).is_multiple_of(pack))
        });
    let access = Access { repeated: (0..inputs.len()).filter(|&k| repeated(k)).fold(0, |bits, k| bits | 1 << k), aligned };
    let axes = plan.kept.iter().chain(&plan.reduced).copied().collect::<SmallVec<[usize; 12]>>();
    let strides: SmallVec<[SmallVec<[isize; 12]>; 4]> =
        plan.kept_strides.iter().zip(&plan.reduced_strides).map(|(k, r)| k.iter().chain(r).copied().collect()).collect();
    let size = plan.kept_size.saturating_mul(plan.reduced_size);
    Shape {
        columns,
        kept_rank: plan.kept.len(),
        reduced_rank: plan.reduced.len(),
        team: if columns || plan.reduced_size > 1024 {
            256
        } else if plan.reduced_size > 64 {
            32
        } else {
            8
        },
        width,
        wide: !codegen::fits_narrow(size, &axes, strides.iter().map(|s| &s[..])),
        access: if width > 0 { access } else { Access::default() },
    }
}

/// Results that share blocks (rows, or groups of 32 columns), and the blocks that share each. By shape alone.
fn splits(plan: &ReducePlan, shape: Shape) -> (usize, usize) {
    if shape.columns {
        let groups = plan.kept_size.div_ceil(32);
        (groups, (BUSY / groups).min(plan.reduced_size / 64).clamp(1, 1024))
    } else if shape.team == 256 {
        (plan.kept_size, (BUSY / plan.kept_size).min(plan.reduced_size / 8192).clamp(1, 1024))
    } else {
        (plan.kept_size, 1)
    }
}

/// One reduction on its way to the stream.
struct Reduction<'a> {
    context: &'static Context,
    program: &'a Expression,
    plan: &'a ReducePlan,
    row: &'static Row,
    acc: DType,
    out_dtype: DType,
    shape: Shape,
}

impl Reduction<'_> {
    fn function(&self) -> crate::Result<Arc<Function>> {
        let s = self.shape;
        let name = if s.columns { "reduce_columns" } else { "reduce_rows" };
        let numbers = [s.kept_rank, s.reduced_rank, s.team, s.width, s.wide as usize, s.access.aligned as usize, self.row.op.index()];
        let key = numbers.iter().fold(KernelKey::new(name, self.program), |key, &n| key.with(n as u64));
        let key = key.with(s.access.repeated).with_dtype(self.acc).with_dtype(self.out_dtype);
        kernel::generated(self.context, &key, || Ok((name.to_owned(), source(self.program, self.row, self.acc, self.out_dtype, s)?)))
    }

    fn queue(
        &self,
        inputs: &[u64],
        out: u64,
        parts: Option<(&CudaBuffer, &CudaBuffer)>,
        groups: usize,
        splits: usize,
    ) -> crate::Result<()> {
        let (plan, shape) = (self.plan, self.shape);
        let params = codegen::pack_params(self.program, inputs);
        let kept = codegen::pack_axes(&plan.kept, plan.kept_strides.iter().map(|s| &s[..]), shape.wide);
        let reduced = codegen::pack_axes(&plan.reduced, plan.reduced_strides.iter().map(|s| &s[..]), shape.wide);
        let (slots, tickets) = match parts {
            Some((slots, tickets)) => {
                self.context.fill(tickets.memory(), 0, [0u8; 4], groups)?;
                (slots.pointer(), tickets.pointer())
            }
            None => (0, 0),
        };
        let (results, length, split_count) = (plan.kept_size as u64, plan.reduced_size as u64, splits as u32);
        let mut args = Args::new();
        args.push_bytes(&params).push_bytes(&kept).push_bytes(&reduced);
        args.push(&out).push(&slots).push(&tickets).push(&results).push(&length).push(&split_count);
        let grid = if shape.columns || shape.team == 256 {
            // Blocks that share a result must all be there: none of them waits, so any number will do.
            [u32::try_from(groups * splits).unwrap_or(u32::MAX).min(1 << 20), 1, 1]
        } else {
            kernel::grid(self.context, results * shape.team as u64, THREADS)
        };
        let function = self.function()?;
        // SAFETY: the arguments are those of both kernels in reduce.cu; the plan keeps every element inside its input, `out`
        // has one element a result, and with splits there are a slot for each part and a ticket for each group.
        unsafe { function.launch(grid, [THREADS, 1, 1], 0, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_core::Layout;

    fn pick(shape_of: &[usize], axes: &[usize], address: u64) -> (Shape, (usize, usize)) {
        let layout = Layout::contiguous(shape_of).unwrap();
        let plan = ReducePlan::new(shape_of, &[&layout], axes, false);
        let s = shape(&plan, &[address], SmallVec::from_slice(&[4]), 4);
        (s, splits(&plan, s))
    }

    #[test]
    fn kernels_follow_the_plan() {
        let (all, (groups, parts)) = pick(&[1 << 24], &[0], 256);
        assert!((all.width, all.team, groups) == (4, 256, 1) && all.access.aligned && parts == 1024);
        assert!(!pick(&[1 << 24], &[0], 4).0.access.aligned);
        let (rows, split) = pick(&[4096, 32], &[1], 256);
        assert_eq!((rows.team, rows.width, split.1), (8, 1, 1));
        assert!(!pick(&[100, 1001], &[1], 256).0.access.aligned, "rows of 1001 do not all begin at a multiple of 16 bytes");
        let (columns, split) = pick(&[1000, 1000], &[0], 256);
        assert!(columns.columns && split == (32, 15));
        assert_eq!(pick(&[10, 11, 12], &[0, 2], 256).0.width, 0);
    }

    #[test]
    fn each_operation_has_one_row() {
        for op in [SUM, PROD, MIN, MAX, ANY, ALL, COUNT_NONZERO, ARGMIN, ARGMAX] {
            assert_eq!(ROWS.iter().filter(|r| r.op == op).count(), 1, "{}", op.name());
        }
        assert!(sources().len() > 20);
    }
}
