//! Reductions along a contiguous axis, with the expression before them taken in: everything at once, or row by row.
//! Which kernel, and in what order elements are combined, follows from the shape alone.

use cuprum_backend_cuda::codegen::{self, Access, Bytes, Combination, KernelKey, ctype, parts};
use cuprum_backend_cuda::driver::COUNTERS;
use cuprum_backend_cuda::raw::{self, Asked, REDUCTION_KERNEL, StringReduction};
use cuprum_core::body::Body;
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::layout::Strides;
use cuprum_core::ops::reduce as ops;
use cuprum_core::plan::reduce::{ReduceClass, ReducePlan};
use cuprum_core::registry::if_order_is_named;
use cuprum_core::testing::calls;
use cuprum_core::{Array, Call, DType, Device, DeviceKind, Layout, Op, Outcome, Program, Reason, Result};

use crate::flat;
use crate::launch::{self, Described, On};
use crate::source::{BLOCK, Definitions, Family, LARGER, Source};

/// Threads of a block, as in `reduce.cu`.
pub const THREADS: usize = 256;
/// Chunks that a reduction is split into at the most.
const MAX_CHUNKS: usize = 8192;
/// Fewer rows than this are split, so that they fill a device.
pub const MAX_SPLIT_ROWS: usize = 256;
const _: () = assert!(MAX_SPLIT_ROWS <= COUNTERS);
/// Rows that lanes take together, as in `reduce.cu`.
pub const ROWS_TOGETHER: usize = 2;
/// Rows up to this length are reduced by 8 lanes.
const LANES_8: usize = 128;
/// Rows up to this length are reduced by a warp.
const LANES_32: usize = 2048;

static REDUCE: Family = Family {
    name: "cub_reduce.cu",
    blocks: false,
    head: &[parts::EXTREMES, parts::FOLD, parts::WARP, BLOCK],
    text: &[include_str!("kernels/reduce.cu")],
};

/// How rows are given to threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Each row in chunks of this many elements, a block each.
    Split {
        /// Chunks of a row.
        chunks: usize,
        /// Elements of a chunk.
        chunk: usize,
    },
    /// A block a row.
    Block,
    /// So many lanes a row: 32 or 8.
    Lanes(usize),
}

/// What elements are combined by.
#[derive(Clone, Copy)]
enum Fold<'a> {
    /// A template of `fold.cuh`, for one of core's operations.
    Known(&'static str),
    /// The body of another crate's operation.
    Body(&'static Body),
    /// A kernel from strings.
    Strings(&'a StringReduction),
}

/// A reduction that the kernels take.
pub struct Reduction<'a> {
    op: Op,
    fold: Fold<'a>,
    /// The expression before it; of a kernel from strings, what that reads.
    pub program: &'a Program,
    plan: &'a ReducePlan,
    acc: DType,
    out: DType,
    access: Access,
    width: usize,
    /// 64-bit indices.
    pub wide: bool,
    /// Which kernel.
    pub shape: Shape,
}

/// How an operation combines values of a dtype.
fn fold(op: Op, value: DType) -> Result<Fold<'static>, Reason> {
    if let Some(body) = op.0.body.filter(|body| body.identity.is_some()) {
        return Ok(Fold::Body(body));
    }
    // Of complex NaNs the first is the smallest and the largest, but elements are not combined in their order here.
    let (name, of_complex) = match op {
        _ if op == ops::SUM => ("Sum", true),
        _ if op == ops::PROD => ("Product", true),
        _ if op == ops::MIN => ("Minimum", false),
        _ if op == ops::MAX => ("Maximum", false),
        _ if op == ops::ARGMIN => ("ArgMin", false),
        _ if op == ops::ARGMAX => ("ArgMax", false),
        _ if op == ops::ANY => ("Any", false),
        _ if op == ops::ALL => ("All", false),
        _ if op == ops::COUNT_NONZERO => ("Count", false),
        _ => return Err(Reason::with(|| format!("{}: not one of its operations", op.name()))),
    };
    if value.is_complex() && !of_complex {
        return Err(Reason::with(|| format!("{} of {value}: complex numbers are only added and multiplied", op.name())));
    }
    Ok(Fold::Known(name))
}

/// Runs a reduction. Arg-reductions decline in the default order, because the base's are faster
/// (`docs/notes/accelerator-order.md`).
pub fn run(call: &Call) -> Result<Outcome> {
    let arg = call.op == ops::ARGMIN || call.op == ops::ARGMAX;
    launch::run(call, |addresses| {
        if arg {
            if_order_is_named("the base finds places faster; an order that names cub is followed")?;
        }
        describe(call, addresses)
    })
}

/// What the kernels are asked for, or why they decline. `addresses` are those of the inputs' first elements.
pub fn describe<'a>(call: &'a Call, addresses: &[u64]) -> Result<Reduction<'a>, Reason> {
    let [output] = call.outputs else { return Err(Reason::new("not a reduction of one output")) };
    let (fold, program, plan, acc) = match (&call.work, StringReduction::of(call)) {
        (&Work::Reduce(call::Reduce { program, plan, acc }), _) => (fold(call.op, program.output_dtype(0))?, program, plan, acc),
        (_, Some(strings)) => (Fold::Strings(strings), strings.program(), strings.plan(), strings.accumulator()),
        _ => return Err(Reason::new("not a reduction along axes")),
    };
    match plan.class {
        ReduceClass::All | ReduceClass::Row => {}
        ReduceClass::Column => return Err(Reason::new("the reduced axis is not the last: column")),
        ReduceClass::General => return Err(Reason::new("not contiguous along the reduced axis")),
    }
    match plan.reduced_size {
        0 => return Err(Reason::new("no elements: the base has the result of none")),
        1 => return Err(Reason::new("one element per result")),
        _ => {}
    }
    if let Fold::Strings(strings) = fold
        && strings.includes()
    {
        return Err(Reason::new("its code includes files, which the base looks for"));
    }
    flat::check_program(program)?;
    let repeated = (0..call.inputs.len()).filter(|&k| plan.reduced_strides[k].last() == Some(&0)).fold(0, |bits, k| bits | 1 << k);
    let (width, aligned) = pack_width(call, plan, repeated, addresses);
    Ok(Reduction {
        op: call.op,
        fold,
        program,
        plan,
        acc,
        out: output.dtype,
        access: Access { repeated, aligned },
        width,
        wide: !codegen::reduction_fits_narrow(plan),
        shape: shape(plan.kept_size, plan.reduced_size, step(call.inputs.len(), width)),
    })
}

/// Elements that a thread loads together: 16 bytes of the widest input, if every row of every input begins at a multiple
/// of that; else one.
fn pack_width(call: &Call, plan: &ReducePlan, repeated: u64, addresses: &[u64]) -> (usize, bool) {
    let walked = || (0..call.inputs.len()).filter(|k| repeated >> k & 1 == 0);
    let size = |k: usize| call.inputs[k].dtype().itemsize();
    let width = 16 / walked().map(size).max().unwrap_or(16);
    let aligned = walked().all(|k| {
        let bytes = width * size(k);
        let rows = plan.kept_strides[k].iter().all(|s| s.unsigned_abs() % width == 0);
        rows && addresses.get(k).is_some_and(|a| a % bytes as u64 == 0)
    });
    if aligned && width > 1 { (width, true) } else { (1, false) }
}

/// Elements that a block takes at once, as in `reduce.cu`.
fn step(inputs: usize, width: usize) -> usize {
    THREADS * width * if inputs > 2 { 2 } else { 4 }
}

fn shape(rows: usize, columns: usize, step: usize) -> Shape {
    if rows < MAX_SPLIT_ROWS && (rows == 1 || columns > 2 * step) {
        let steps = columns.div_ceil(step);
        let per_chunk = steps.saturating_mul(rows).div_ceil(MAX_CHUNKS).max(1);
        return Shape::Split { chunks: steps.div_ceil(per_chunk), chunk: per_chunk * step };
    }
    match columns {
        n if n <= LANES_8 => Shape::Lanes(8),
        n if n <= LANES_32 => Shape::Lanes(32),
        _ => Shape::Block,
    }
}

impl Reduction<'_> {
    /// Number of results.
    pub fn rows(&self) -> usize {
        self.plan.kept_size
    }

    /// Elements per result.
    pub fn columns(&self) -> usize {
        self.plan.reduced_size
    }

    /// Bytes of one accumulator.
    pub fn acc_size(&self) -> usize {
        match self.op {
            _ if let Fold::Strings(strings) = self.fold => strings.combination().size,
            op if op == ops::ANY || op == ops::ALL => 4,
            op if op == ops::COUNT_NONZERO => 8,
            op if op == ops::ARGMIN || op == ops::ARGMAX => 16, // a value of up to 8 bytes and a 64-bit place
            _ => self.acc.itemsize(),
        }
    }

    /// The name of its fold; of a reduction that is not core's, a type that this defines.
    fn define_fold(&self, d: &mut Definitions) -> Result<String, &'static str> {
        let combination = match self.fold {
            Fold::Known(name) => return Ok(format!("{name}<{}>", ctype(self.acc))),
            Fold::Body(body) => Combination::of_body(body, self.acc).ok_or(self.op.name())?,
            Fold::Strings(strings) => strings.combination(),
        };
        d.own_fold(&combination);
        Ok("Own".into())
    }

    /// The element's code.
    fn element(&self) -> Result<String, &'static str> {
        match self.fold {
            Fold::Known(_) => codegen::element(self.program, self.access),
            Fold::Body(body) => codegen::element_and(self.program, self.access, Some(body)),
            Fold::Strings(strings) => Ok(strings.element(self.access)),
        }
    }

    /// The rows' axes as the kernels take them.
    pub fn axes(&self) -> Bytes {
        codegen::pack_axes(&self.plan.kept, self.plan.kept_strides.iter().map(|s| s.as_slice()), self.wide)
    }

    /// Place of its kernel in [`Source::kernels`].
    pub fn kernel(&self) -> usize {
        match self.shape {
            Shape::Split { .. } => 0,
            Shape::Block => 1,
            Shape::Lanes(32) => 2,
            Shape::Lanes(_) => 3,
        }
    }
}

impl Described for Reduction<'_> {
    fn key(&self) -> KernelKey<'_> {
        let layout = (self.width << 16 | self.plan.kept.len() << 8 | usize::from(self.wide)) as u64;
        let key = KernelKey::new("cub reduce", self.program)
            .with_op(self.op)
            .with_dtype(self.acc)
            .with_dtype(self.out)
            .with(layout)
            .with(self.access.repeated);
        match self.fold {
            Fold::Known(_) | Fold::Body(_) => key,
            Fold::Strings(strings) => strings.add_to(key),
        }
    }

    fn source(&self) -> Result<Source, &'static str> {
        let rank = self.plan.kept.len();
        let all_rows: &'static [&'static str] = &["reduce_split", "reduce_rows_block", "reduce_rows_warp", "reduce_rows_8"];
        let mut d = Definitions::default();
        d.alias("Index", codegen::index_type(self.wide));
        let fold = self.define_fold(&mut d)?;
        d.alias("Fold", &fold);
        d.alias("Out", ctype(self.out));
        d.constant("WIDTH", self.width);
        d.constant("RANK", rank);
        let kernels = if rank == 0 { &all_rows[..1] } else { all_rows };
        if rank > 0 {
            d.macros.push_str("#define CUPRUM_ROWS\n");
        }
        let source = REDUCE.with_element(&self.element()?, &d, kernels);
        Ok(match self.fold {
            Fold::Strings(strings) => Source { headers: strings.headers(), options: strings.options().to_vec(), ..source },
            _ => source,
        })
    }

    fn launch(&self, on: &On) -> Result<Outcome> {
        launch::reduce(on, self)
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    use DType::*;
    let of = |op: Op, program: Program, acc: DType, out: DType, kept: &[usize], wide: bool| {
        let inputs = program.steps.iter().filter(|s| matches!(s.kind, cuprum_core::StepKind::Input(_))).count();
        let size = program.input_dtype(0).map_or(16, DType::itemsize);
        let strides = |s: &[isize]| (0..inputs).map(|_| Strides::from_slice(s)).collect();
        let plan = ReducePlan {
            class: ReduceClass::Row,
            kept: kept.into(),
            reduced: [4096].into_iter().collect(),
            kept_strides: strides(&vec![4096; kept.len()]),
            reduced_strides: strides(&[1]),
            kept_size: kept.iter().product(),
            reduced_size: 4096,
        };
        let access = Access { repeated: 0, aligned: size < 16 };
        let (width, shape) = (16 / size, Shape::Block);
        let fold = fold(op, acc).ok()?;
        let reduction = Reduction { op, fold, program: &program, plan: &plan, acc, out, access, width, wide, shape };
        reduction.source().map(|s| (format!("{} {}<{acc}, {out}>, {} axes", s.name, op.name(), kept.len()), s.text)).ok()
    };
    let all = |op, value, acc, out| of(op, Program::identity(value), acc, out, &[], false);
    let rows = |op, value, acc, out| of(op, Program::identity(value), acc, out, &[300, 7], true);
    let mut list = vec![
        all(ops::SUM, F32, F32, F32),
        all(ops::SUM, I64, I64, I64),
        all(ops::SUM, C128, C128, C128),
        all(ops::PROD, C64, C64, C64),
        all(ops::ANY, Bool, Bool, Bool),
        all(ops::ARGMAX, F32, F32, I64),
        all(ops::ARGMIN, U8, U8, I64),
        rows(ops::SUM, F16, F32, F16),
        rows(ops::SUM, C64, C64, C64),
        rows(ops::PROD, F64, F64, F64),
        rows(ops::ALL, Bool, Bool, Bool),
        rows(ops::COUNT_NONZERO, Bool, Bool, I64),
        rows(ops::ARGMAX, BF16, BF16, I64),
        of(ops::SUM, crate::source::fused_example(F32, F64), F64, F64, &[], false),
        of(ops::MAX, crate::source::fused_example(F64, F64), F64, F64, &[300], false),
        of(ops::MAX, Program::identity(U8), U8, U8, &[], true),
        of(ops::ARGMIN, Program::identity(I16), I16, I64, &[], true),
        of(ops::SUM, codegen::check::taking(F32, I32), F32, F32, &[300], false),
        all(LARGER, F32, F32, F32),
        rows(LARGER, I8, I8, I8),
    ];
    let own = [F32, BF16, C64, Bool, I64, C128].into_iter().enumerate();
    list.extend(own.map(|(n, dtype)| from_strings(dtype, if n % 2 == 0 { &[1] } else { &[0, 1] })));
    let ordered = DType::ALL.into_iter().filter(|d| !d.is_complex());
    list.extend(ordered.enumerate().map(|(n, d)| if n % 2 == 0 { all(ops::MIN, d, d, d) } else { rows(ops::MAX, d, d, d) }));
    list.into_iter().flatten().collect()
}

/// The listed source of a reduction from strings over a matrix's axes.
fn from_strings(dtype: DType, axes: &[isize]) -> Option<(String, String)> {
    let device = Device::new(DeviceKind::intern("cuda").ok()?, 0);
    let matrix = calls::array(device, dtype, Layout::contiguous(&[300, 4096]).ok()?).ok()?;
    let Asked { inputs, output, reduction } = raw::call_for_check(&matrix.into(), axes).ok()?;
    calls::with_call(REDUCTION_KERNEL, &inputs, &[output], Work::Custom(call::Custom(&reduction)), |call| {
        let source = describe(call, &vec![256; inputs.len()]).ok()?.source().ok()?;
        Some((format!("{} from strings <{dtype}>, axes {axes:?}", source.name), reduction.inlined(source.text)))
    })
}

#[cfg(test)]
mod tests {
    use cuprum_core::StoredArray;

    use super::*;
    use crate::source::fused_example;
    use crate::testing::{array, contiguous, output, reason, with_call};

    /// Describes the reduction of inputs of one shape; addresses are those of aligned memory.
    fn of<R>(op: Op, program: Program, inputs: &[StoredArray], axes: &[usize], check: impl FnOnce(Reduction) -> R) -> Result<R, String> {
        let shape = inputs[0].shape().to_vec();
        let layouts: Vec<&Layout> = inputs.iter().map(|a| a.layout()).collect();
        let ordered = op == ops::ARGMIN || op == ops::ARGMAX;
        let plan = ReducePlan::new(&shape, &layouts, axes, ordered);
        let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
        let value = program.output_dtype(0);
        let outputs = [output(if ordered { DType::I64 } else { value }, &kept)];
        let addresses: Vec<u64> = inputs.iter().map(|a| 0x1000 + (a.layout().offset() * a.dtype().itemsize()) as u64).collect();
        let work = Work::Reduce(call::Reduce { program: &program, plan: &plan, acc: value });
        with_call(op, inputs, &outputs, work, |call| reason(|| describe(call, &addresses)).map(check))
    }

    fn plain<R>(op: Op, dtype: DType, layout: Layout, axes: &[usize], check: impl FnOnce(Reduction) -> R) -> Result<R, String> {
        of(op, Program::identity(dtype), &[array(dtype, layout)], axes, check)
    }

    #[test]
    fn everything_is_split_by_length_alone() {
        let shape = |n: usize| shape(1, n, step(1, 4));
        assert_eq!(shape(1), Shape::Split { chunks: 1, chunk: 4096 });
        assert_eq!(shape(4097), Shape::Split { chunks: 2, chunk: 4096 });
        assert_eq!(shape(1 << 25), Shape::Split { chunks: 8192, chunk: 4096 });
        assert_eq!(shape((1 << 27) + 1), Shape::Split { chunks: 6554, chunk: 5 * 4096 });
        let Shape::Split { chunks, chunk } = shape(1 << 34) else { panic!() };
        assert!(chunks <= MAX_CHUNKS && chunks * chunk >= 1 << 34);
    }

    #[test]
    fn rows_get_lanes_warps_blocks_or_chunks() {
        let shape = |rows, columns| shape(rows, columns, 4096);
        assert_eq!(shape(1_000_000, 32), Shape::Lanes(8));
        assert_eq!(shape(100, 2000), Shape::Lanes(32));
        assert_eq!(shape(10_000, 10_000), Shape::Block);
        assert_eq!(shape(4, 1 << 20), Shape::Split { chunks: 256, chunk: 4096 });
        assert_eq!(shape(4, 5000), Shape::Block);
    }

    #[test]
    fn packs_are_as_wide_as_alignment_allows() {
        let width = |dtype, layout: Layout| plain(ops::SUM, dtype, layout, &[1], |r| (r.width, r.access.aligned)).unwrap();
        assert_eq!(width(DType::F32, contiguous(&[10, 100])), (4, true));
        assert_eq!(width(DType::U8, contiguous(&[10, 160])), (16, true));
        assert_eq!(width(DType::C128, contiguous(&[10, 100])), (1, false));
        assert_eq!(width(DType::F32, contiguous(&[10, 99])), (1, false), "rows begin anywhere");
        assert_eq!(width(DType::F32, Layout::strided(&[10, 96], &[100, 1], 1).unwrap()), (1, false), "offset");
        let row = array(DType::F64, contiguous(&[10, 1]).broadcast_to(&[10, 100]).unwrap());
        let inputs = [array(DType::F32, contiguous(&[10, 100])), row];
        let mixed = of(ops::SUM, fused_example(DType::F32, DType::F32), &inputs, &[1], |r| (r.width, r.access)).unwrap();
        assert_eq!(mixed, (4, Access { repeated: 0b10, aligned: true }));
    }

    #[test]
    fn keys_see_structure_not_size() {
        let key = |op, dtype, shape: &[usize], axes: &[usize]| plain(op, dtype, contiguous(shape), axes, |r| r.key().written()).unwrap();
        let base = key(ops::SUM, DType::F32, &[8, 64], &[1]);
        assert_eq!(base, key(ops::SUM, DType::F32, &[9000, 6400], &[1]));
        assert_ne!(base, key(ops::MAX, DType::F32, &[8, 64], &[1]));
        assert_ne!(base, key(ops::SUM, DType::F64, &[8, 64], &[1]));
        assert_ne!(base, key(ops::SUM, DType::F32, &[8, 64], &[0, 1]));
        assert_ne!(base, key(ops::SUM, DType::F32, &[8, 63], &[1]));
    }

    #[test]
    fn indices_are_narrow_until_they_cannot_be() {
        let wide = |n| plain(ops::SUM, DType::U8, contiguous(&[n]), &[0], |r| r.wide).unwrap();
        assert!(!wide(1 << 19) && wide(1 << 31));
    }

    #[test]
    fn declines() {
        let why = |op, dtype, layout, axes: &[usize]| plain(op, dtype, layout, axes, |_| ()).unwrap_err();
        let l = || contiguous(&[4, 5, 6]);
        assert_eq!(why(ops::SUM, DType::F32, l(), &[0]), "the reduced axis is not the last: column");
        assert_eq!(why(ops::SUM, DType::F32, l(), &[0, 2]), "not contiguous along the reduced axis");
        assert_eq!(why(ops::SUM, DType::F32, l().flip(&[2]), &[2]), "not contiguous along the reduced axis");
        assert_eq!(why(ops::SUM, DType::F32, contiguous(&[4, 1]), &[1]), "one element per result");
        assert_eq!(why(ops::MAX, DType::C64, l(), &[2]), "max of complex64: complex numbers are only added and multiplied");
        assert_eq!(why(ops::VAR, DType::F32, l(), &[2]), "var: not one of its operations");
        assert!(plain(ops::ARGMAX, DType::I64, l(), &[1, 2], |r| r.acc_size() == 16).unwrap());
    }

    #[test]
    fn reductions_that_are_not_cores() {
        let size = |op| plain(op, DType::F32, contiguous(&[40, 64]), &[1], |r| (r.acc_size(), r.key().written())).unwrap();
        assert_eq!(size(LARGER).0, 4);
        assert_ne!(size(LARGER).1, size(ops::MAX).1);
        let strings = |dtype, shape: &[usize], axes: &[isize]| {
            let Asked { inputs, output, reduction } = raw::call_for_check(&array(dtype, contiguous(shape)).into(), axes).unwrap();
            with_call(REDUCTION_KERNEL, &inputs, &[output], Work::Custom(call::Custom(&reduction)), |call| {
                reason(|| describe(call, &[256, 256])).map(|r| (r.width, r.acc_size(), r.shape))
            })
        };
        assert_eq!(strings(DType::F16, &[40, 64], &[-1]).unwrap(), (8, 8, Shape::Lanes(8)));
        assert_eq!(strings(DType::I64, &[40, 64], &[0, 1]).unwrap(), (2, 16, Shape::Split { chunks: 2, chunk: 2048 }));
        assert_eq!(strings(DType::F32, &[40, 64], &[0]).unwrap_err(), "the reduced axis is not the last: column");
    }
}
