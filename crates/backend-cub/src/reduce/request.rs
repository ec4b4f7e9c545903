//! Reductions along a contiguous axis with a fused program: of all elements, or of each row.
//!
//! The shape and the number of elements per load decide which kernel runs and in what order the kernel combines elements. The number of
//! elements per load depends on the dtypes and on the alignment of the inputs.

use cuprum_backend_cuda::codegen::{self, AccumulatorCode, FoldClass, InnermostAxisAccess, KernelKey, ctype, device_sources};
use cuprum_backend_cuda::driver::SCRATCH_COUNTER_COUNT;
use cuprum_backend_cuda::user_kernels::{self, REDUCTION_KERNEL, ReductionCall, UserCppReduction};
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::layout::Strides;
use cuprum_core::op::{Combine, ReductionDef};
use cuprum_core::ops::reduce as ops;
use cuprum_core::plan::reduce::{ReducePattern, ReducePlan};
use cuprum_core::testing::calls;
use cuprum_core::{Array, Call, DType, DeclineReason, Device, DeviceKind, Layout, Op, Program, Result};

use crate::fused_input;
use crate::kernel_parameter_lists::AxesParam;
use crate::kernel_source::{BLOCK_FOLD_AND_SCAN_SOURCE, GeneratedSource, SourceDefinitions, SourceTemplate, USER_MAX_OP};
use crate::launch::KernelRequest;

/// Threads per block, as in `reduce.cu`.
pub const REDUCE_THREADS_PER_BLOCK: usize = 256;
/// Maximum number of chunks of a reduction, counted over all rows.
const MAX_REDUCTION_CHUNKS: usize = 8192;
/// Minimum number of rows at which no row is split into chunks, because so many rows fill the device without a split.
const MIN_UNSPLIT_REDUCE_ROWS: usize = 256;
const _: () = assert!(MIN_UNSPLIT_REDUCE_ROWS <= SCRATCH_COUNTER_COUNT);
/// Number of rows that a group of lanes reduces at the same time, as in `reduce.cu`.
const REDUCED_ROWS_PER_LANE_GROUP: usize = 2;
/// Maximum length of rows that 8 lanes of a warp reduce.
const MAX_REDUCE_ROW_LENGTH_FOR_8_LANES: usize = 128;
/// Maximum length of rows that a warp reduces.
const MAX_REDUCE_ROW_LENGTH_FOR_32_LANES: usize = 2048;

static REDUCE_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_reduce.cu",
    includes_cub: false,
    headers: &[
        device_sources::TYPE_LIMITS_SOURCE,
        device_sources::FOLD_SOURCE,
        device_sources::WARP_SHUFFLE_SOURCE,
        BLOCK_FOLD_AND_SCAN_SOURCE,
    ],
    body: &[include_str!("../kernels/reduce.cu")],
};

/// How the threads of a kernel share the rows of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceRowSplit {
    /// One block reduces each chunk of a row.
    Chunks {
        /// Chunks per row.
        chunks: usize,
        /// Elements per chunk.
        chunk: usize,
    },
    /// One block reduces each row.
    Block,
    /// This number of lanes of a warp, 8 or 32, reduces each row.
    Lanes(usize),
}

/// The operation that combines the elements of a reduction.
#[derive(Clone, Copy)]
enum ReduceFold<'a> {
    /// A template of `fold.cuh`.
    Template(FoldClass),
    /// A combination that a [`ReductionDef`] describes, for which `fold.cuh` has no template.
    Described(&'a ReductionDef),
    /// CUDA code that the user supplies as strings.
    Strings(&'a UserCppReduction),
}

/// The parameters of a reduction call that determine its kernel.
pub struct ReduceRequest<'a> {
    op: Op,
    fold: ReduceFold<'a>,
    /// The fused program. If the user supplies the reduction as code strings, the program only reads the inputs.
    pub program: &'a Program,
    plan: &'a ReducePlan,
    accumulator: DType,
    output: DType,
    access: InnermostAxisAccess,
    /// Number of elements that a thread loads at once.
    width: usize,
    /// Whether the kernel uses 64-bit indices.
    wide_indices: bool,
    /// How threads share the rows. Each variant of [`ReduceRowSplit`] has its own kernel.
    pub split: ReduceRowSplit,
}

/// Returns the combining operation of `reduction` for values of dtype `value`, or the reason why the kernels do not support it.
fn choose_reduce_fold<'a>(op: Op, reduction: &'a ReductionDef, value: DType, accumulator: DType) -> Result<ReduceFold<'a>, DeclineReason> {
    if reduction.depends_on_order(value) {
        // NumPy's minimum of several complex NaNs is the first of them. The call is declined, because these kernels combine elements out of
        // order and might return another NaN.
        return Err(DeclineReason::with_text(|| format!("{} of {value}: complex numbers are only added and multiplied", op.name())));
    }
    match FoldClass::of(reduction, accumulator) {
        Some(template) => Ok(ReduceFold::Template(template)),
        // Dispatch declines variances before this code runs, because the kernel does not declare the capability for variances. Both reasons
        // have the same text.
        None if reduction.combine == Combine::Moments => Err(DeclineReason::new("does not declare variances")),
        None if !reduction.returns_index => Ok(ReduceFold::Described(reduction)),
        None => Err(DeclineReason::with_text(|| format!("{} is not supported", op.name()))),
    }
}

/// Converts `call` to a [`ReduceRequest`], or returns the reason why CUB declines the call. `addresses` has the device address of the first
/// element of each input.
pub fn reduce_request_for_call<'a>(call: &'a Call, addresses: &[u64]) -> Result<ReduceRequest<'a>, DeclineReason> {
    let [output] = call.outputs else { return Err(DeclineReason::new("not a reduction of one output")) };
    let (fold, program, plan, accumulator) = match (&call.work, UserCppReduction::of(call)) {
        (&Work::Reduce(call::Reduce { program, reduction, plan, acc, .. }), _) => {
            (choose_reduce_fold(call.op, reduction, program.output_dtype(0), acc)?, program, plan, acc)
        }
        (_, Some(strings)) => (ReduceFold::Strings(strings), strings.program(), strings.plan(), strings.accumulator_dtype()),
        _ => return Err(DeclineReason::new("not a reduction along axes")),
    };
    match plan.pattern {
        ReducePattern::All | ReducePattern::Row => {}
        ReducePattern::Column => return Err(DeclineReason::new("the reduced axis is not the last one")),
        ReducePattern::General => return Err(DeclineReason::new("not contiguous along the reduced axis")),
    }
    match plan.reduced_size {
        0 => return Err(DeclineReason::new("no elements to reduce")),
        1 => return Err(DeclineReason::new("one element per result")),
        _ => {}
    }
    if let ReduceFold::Strings(strings) = fold
        && strings.has_includes()
    {
        return Err(DeclineReason::new("its code includes files, which only the base accelerator finds"));
    }
    fused_input::check_ops_have_cuda_code(program)?;
    let repeated = (0..call.inputs.len()).filter(|&k| plan.reduced_strides[k].last() == Some(&0)).fold(0, |bits, k| bits | 1 << k);
    let (width, aligned) = vector_width_and_alignment(call, plan, repeated, addresses);
    Ok(ReduceRequest {
        op: call.op,
        fold,
        program,
        plan,
        accumulator,
        output: output.dtype,
        access: InnermostAxisAccess { repeated, aligned },
        width,
        wide_indices: !codegen::reduction_fits_32_bit_index(plan),
        split: choose_row_split(plan.kept_size, plan.reduced_size, elements_per_block_step(call.inputs.len(), width)),
    })
}

/// Returns how many elements a thread loads at once, and whether these loads are aligned.
///
/// Bit k of `repeated` is set if input k repeats one element along each row. The other inputs determine the number: 16 bytes divided by
/// their largest element size, if all their rows are aligned for such loads. Otherwise the number is 1.
fn vector_width_and_alignment(call: &Call, plan: &ReducePlan, repeated: u64, addresses: &[u64]) -> (usize, bool) {
    let streamed = || (0..call.inputs.len()).filter(|k| repeated >> k & 1 == 0);
    let size = |k: usize| call.inputs[k].dtype().itemsize();
    let width = 16 / streamed().map(size).max().unwrap_or(16);
    let aligned = streamed().all(|k| {
        let bytes = width * size(k);
        let rows = plan.kept_strides[k].iter().all(|s| s.unsigned_abs() % width == 0);
        rows && addresses.get(k).is_some_and(|a| a % bytes as u64 == 0)
    });
    if aligned && width > 1 { (width, true) } else { (1, false) }
}

/// Returns the number of elements that a block loads at once from each of `inputs` inputs, as in `reduce.cu`. A thread loads `width`
/// elements in one access.
fn elements_per_block_step(inputs: usize, width: usize) -> usize {
    REDUCE_THREADS_PER_BLOCK * width * if inputs > 2 { 2 } else { 4 }
}

/// Returns the number of rows that a block reduces at the same time if `lanes` threads share a row.
pub fn rows_per_block(lanes: usize) -> u64 {
    (REDUCE_THREADS_PER_BLOCK / lanes * REDUCED_ROWS_PER_LANE_GROUP) as u64
}

fn choose_row_split(rows: usize, columns: usize, elements_per_block_step: usize) -> ReduceRowSplit {
    if rows < MIN_UNSPLIT_REDUCE_ROWS && (rows == 1 || columns > 2 * elements_per_block_step) {
        let steps = columns.div_ceil(elements_per_block_step);
        let per_chunk = steps.saturating_mul(rows).div_ceil(MAX_REDUCTION_CHUNKS).max(1);
        return ReduceRowSplit::Chunks { chunks: steps.div_ceil(per_chunk), chunk: per_chunk * elements_per_block_step };
    }
    match columns {
        n if n <= MAX_REDUCE_ROW_LENGTH_FOR_8_LANES => ReduceRowSplit::Lanes(8),
        n if n <= MAX_REDUCE_ROW_LENGTH_FOR_32_LANES => ReduceRowSplit::Lanes(32),
        _ => ReduceRowSplit::Block,
    }
}

impl ReduceRequest<'_> {
    /// Returns the number of rows, which is the number of results.
    pub fn row_count(&self) -> usize {
        self.plan.kept_size
    }

    /// Returns the number of elements per row.
    pub fn column_count(&self) -> usize {
        self.plan.reduced_size
    }

    /// Returns the size of an accumulator in bytes.
    pub fn accumulator_size(&self) -> usize {
        match self.fold {
            ReduceFold::Template(template) => template.accumulator_size,
            ReduceFold::Described(_) => self.accumulator.itemsize(),
            ReduceFold::Strings(strings) => strings.combination().size,
        }
    }

    /// Returns the C++ type of the function object (fold) that combines elements. Adds the definition of the type to `d` unless `fold.cuh`
    /// has a template for it.
    fn define_fold(&self, d: &mut SourceDefinitions) -> Result<String, &'static str> {
        let combination = match self.fold {
            ReduceFold::Template(template) => return Ok(format!("{}<{}>", template.name, ctype(self.accumulator))),
            ReduceFold::Described(reduction) => AccumulatorCode::of(self.op, reduction, self.accumulator).ok_or(self.op.name())?,
            ReduceFold::Strings(strings) => strings.combination(),
        };
        d.define_fold(&combination);
        Ok("CustomFold".into())
    }

    /// Returns the CUDA code that computes one element.
    fn element_code(&self) -> Result<String, &'static str> {
        match self.fold {
            ReduceFold::Template(_) | ReduceFold::Described(_) => {
                codegen::element_source_with_user_functions(self.program, self.access, self.op.0.body)
            }
            ReduceFold::Strings(strings) => Ok(strings.element_source(self.access)),
        }
    }

    /// Returns the extents and input strides of the axes that are not reduced, as a kernel parameter.
    pub fn kept_axes_param(&self) -> AxesParam {
        AxesParam(codegen::pack_axes(&self.plan.kept, self.plan.kept_strides.iter().map(|s| s.as_slice()), self.wide_indices))
    }
}

impl KernelRequest for ReduceRequest<'_> {
    fn kernel_key(&self) -> KernelKey<'_> {
        let layout = (self.width << 16 | self.plan.kept.len() << 8 | usize::from(self.wide_indices)) as u64;
        let key = KernelKey::new("cub reduce", self.program)
            .with_op(self.op)
            .with_dtype(self.accumulator)
            .with_dtype(self.output)
            .with_number(layout)
            .with_number(self.access.repeated);
        match self.fold {
            ReduceFold::Template(_) | ReduceFold::Described(_) => key,
            ReduceFold::Strings(strings) => strings.extend_kernel_key(key),
        }
    }

    fn cuda_source(&self) -> Result<GeneratedSource, &'static str> {
        let rank = self.plan.kept.len();
        let all_kernels: &'static [&'static str] = &["reduce_chunks", "reduce_rows_block", "reduce_rows_warp", "reduce_rows_8"];
        let mut d = SourceDefinitions::default();
        d.define_type("Index", codegen::index_type(self.wide_indices));
        let fold = self.define_fold(&mut d)?;
        d.define_type("Fold", &fold);
        d.define_type("Out", ctype(self.output));
        d.define_int("WIDTH", self.width);
        d.define_int("RANK", rank);
        let kernels = if rank == 0 { &all_kernels[..1] } else { all_kernels };
        if rank > 0 {
            d.macros.push_str("#define CUPRUM_ROWS\n");
        }
        let source = REDUCE_TEMPLATE.source_with_element_code(&self.element_code()?, &d, kernels);
        Ok(match self.fold {
            ReduceFold::Strings(strings) => GeneratedSource { headers: strings.headers(), options: strings.options().to_vec(), ..source },
            _ => source,
        })
    }
}

/// Returns the names and code of representative kernel sources, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    use DType::*;
    let of = |op: Op, program: Program, accumulator: DType, output: DType, kept: &[usize], wide_indices: bool| {
        let inputs = program.steps.iter().filter(|s| matches!(s.kind, cuprum_core::StepKind::Input(_))).count();
        let size = program.input_dtype(0).map_or(16, DType::itemsize);
        let strides = |s: &[isize]| (0..inputs).map(|_| Strides::from_slice(s)).collect();
        let plan = ReducePlan {
            pattern: ReducePattern::Row,
            kept: kept.into(),
            reduced: [4096].into_iter().collect(),
            kept_strides: strides(&vec![4096; kept.len()]),
            reduced_strides: strides(&[1]),
            kept_size: kept.iter().product(),
            reduced_size: 4096,
        };
        let access = InnermostAxisAccess { repeated: 0, aligned: size < 16 };
        let (width, split) = (16 / size, ReduceRowSplit::Block);
        let fold = choose_reduce_fold(op, op.reduction()?, accumulator, accumulator).ok()?;
        let request = ReduceRequest { op, fold, program: &program, plan: &plan, accumulator, output, access, width, wide_indices, split };
        request.cuda_source().map(|s| (format!("{} {}<{accumulator}, {output}>, {} axes", s.name, op.name(), kept.len()), s.code)).ok()
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
        rows(ops::COUNT_NONZERO, Bool, I64, I64),
        rows(ops::ARGMAX, BF16, BF16, I64),
        of(ops::SUM, crate::kernel_source::fused_example_program(F32, F64), F64, F64, &[], false),
        of(ops::MAX, crate::kernel_source::fused_example_program(F64, F64), F64, F64, &[300], false),
        of(ops::MAX, Program::identity(U8), U8, U8, &[], true),
        of(ops::ARGMIN, Program::identity(I16), I16, I64, &[], true),
        of(ops::SUM, codegen::test_programs::take_program(F32, I32), F32, F32, &[300], false),
        all(ops::NANMAX, F32, F32, F32),
        rows(ops::NANMIN, F16, F16, F16),
        rows(ops::NANMAX, I32, I32, I32),
        all(USER_MAX_OP, F32, F32, F32),
        rows(USER_MAX_OP, I8, I8, I8),
    ];
    let dtypes = [F32, BF16, C64, Bool, I64, C128].into_iter().enumerate();
    list.extend(dtypes.map(|(n, dtype)| user_reduction_check_source(dtype, if n % 2 == 0 { &[1] } else { &[0, 1] })));
    let ordered = DType::ALL.into_iter().filter(|d| !d.is_complex());
    list.extend(ordered.enumerate().map(|(n, d)| if n % 2 == 0 { all(ops::MIN, d, d, d) } else { rows(ops::MAX, d, d, d) }));
    list.into_iter().flatten().collect()
}

/// Returns the name and code of a user-defined reduction over `axes` of a matrix of `dtype`, or `None` if it cannot be generated.
fn user_reduction_check_source(dtype: DType, axes: &[isize]) -> Option<(String, String)> {
    let device = Device::new(DeviceKind::intern("cuda").ok()?, 0);
    let matrix = calls::array(device, dtype, Layout::contiguous(&[300, 4096]).ok()?).ok()?;
    let ReductionCall { inputs, output, reduction } = user_kernels::example_reduction_call(&matrix.into(), axes).ok()?;
    calls::with_call(REDUCTION_KERNEL, &inputs, &[output], Work::Custom(call::Custom(&reduction)), |call| {
        let source = reduce_request_for_call(call, &vec![256; inputs.len()]).ok()?.cuda_source().ok()?;
        Some((format!("{} of user code <{dtype}>, axes {axes:?}", source.name), reduction.inline_headers(source.code)))
    })
}

#[cfg(test)]
mod tests {
    use cuprum_core::StoredArray;

    use super::*;
    use crate::kernel_source::fused_example_program;
    use crate::testing::{array, contiguous, output, reason, with_call};

    /// Describes the reduction of inputs of equal shapes in aligned memory.
    fn with_request<R>(
        op: Op,
        program: Program,
        inputs: &[StoredArray],
        axes: &[usize],
        check: impl FnOnce(ReduceRequest) -> R,
    ) -> Result<R, String> {
        let shape = inputs[0].shape().to_vec();
        let layouts: Vec<&Layout> = inputs.iter().map(|a| a.layout()).collect();
        let reduction = op.reduction().unwrap();
        let ordered = reduction.returns_index;
        let plan = ReducePlan::new(&shape, &layouts, axes, ordered);
        let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
        let value = program.output_dtype(0);
        let outputs = [output(if ordered { DType::I64 } else { value }, &kept)];
        let addresses: Vec<u64> = inputs.iter().map(|a| 0x1000 + (a.layout().offset() * a.dtype().itemsize()) as u64).collect();
        let work = Work::Reduce(call::Reduce { program: &program, reduction, axes, plan: &plan, acc: value });
        with_call(op, inputs, &outputs, work, |call| reason(|| reduce_request_for_call(call, &addresses)).map(check))
    }

    fn plain<R>(op: Op, dtype: DType, layout: Layout, axes: &[usize], check: impl FnOnce(ReduceRequest) -> R) -> Result<R, String> {
        with_request(op, Program::identity(dtype), &[array(dtype, layout)], axes, check)
    }

    #[test]
    fn chunks_depend_on_length_alone() {
        let split = |n: usize| choose_row_split(1, n, elements_per_block_step(1, 4));
        assert_eq!(split(1), ReduceRowSplit::Chunks { chunks: 1, chunk: 4096 });
        assert_eq!(split(4097), ReduceRowSplit::Chunks { chunks: 2, chunk: 4096 });
        assert_eq!(split(1 << 25), ReduceRowSplit::Chunks { chunks: 8192, chunk: 4096 });
        assert_eq!(split((1 << 27) + 1), ReduceRowSplit::Chunks { chunks: 6554, chunk: 5 * 4096 });
        let ReduceRowSplit::Chunks { chunks, chunk } = split(1 << 34) else { panic!() };
        assert!(chunks <= MAX_REDUCTION_CHUNKS && chunks * chunk >= 1 << 34);
    }

    #[test]
    fn threads_per_row_follow_from_the_shape() {
        let split = |rows, columns| choose_row_split(rows, columns, 4096);
        assert_eq!(split(1_000_000, 32), ReduceRowSplit::Lanes(8));
        assert_eq!(split(100, 2000), ReduceRowSplit::Lanes(32));
        assert_eq!(split(10_000, 10_000), ReduceRowSplit::Block);
        assert_eq!(split(4, 1 << 20), ReduceRowSplit::Chunks { chunks: 256, chunk: 4096 });
        assert_eq!(split(4, 5000), ReduceRowSplit::Block);
    }

    #[test]
    fn vector_width_follows_from_alignment() {
        let width = |dtype, layout: Layout| plain(ops::SUM, dtype, layout, &[1], |r| (r.width, r.access.aligned)).unwrap();
        assert_eq!(width(DType::F32, contiguous(&[10, 100])), (4, true));
        assert_eq!(width(DType::U8, contiguous(&[10, 160])), (16, true));
        assert_eq!(width(DType::C128, contiguous(&[10, 100])), (1, false));
        assert_eq!(width(DType::F32, contiguous(&[10, 99])), (1, false), "rows are not aligned");
        assert_eq!(width(DType::F32, Layout::strided(&[10, 96], &[100, 1], 1).unwrap()), (1, false), "offset");
        let row = array(DType::F64, contiguous(&[10, 1]).broadcast_to(&[10, 100]).unwrap());
        let inputs = [array(DType::F32, contiguous(&[10, 100])), row];
        let mixed = with_request(ops::SUM, fused_example_program(DType::F32, DType::F32), &inputs, &[1], |r| (r.width, r.access)).unwrap();
        assert_eq!(mixed, (4, InnermostAxisAccess { repeated: 0b10, aligned: true }));
    }

    #[test]
    fn keys_depend_on_structure_not_size() {
        let key =
            |op, dtype, shape: &[usize], axes: &[usize]| plain(op, dtype, contiguous(shape), axes, |r| r.kernel_key().serialize()).unwrap();
        let base = key(ops::SUM, DType::F32, &[8, 64], &[1]);
        assert_eq!(base, key(ops::SUM, DType::F32, &[9000, 6400], &[1]));
        assert_ne!(base, key(ops::MAX, DType::F32, &[8, 64], &[1]));
        assert_ne!(base, key(ops::SUM, DType::F64, &[8, 64], &[1]));
        assert_ne!(base, key(ops::SUM, DType::F32, &[8, 64], &[0, 1]));
        assert_ne!(base, key(ops::SUM, DType::F32, &[8, 63], &[1]));
    }

    #[test]
    fn large_arrays_use_64_bit_indices() {
        let wide_indices = |n| plain(ops::SUM, DType::U8, contiguous(&[n]), &[0], |r| r.wide_indices).unwrap();
        assert!(!wide_indices(1 << 19) && wide_indices(1 << 31));
    }

    #[test]
    fn decline_reasons() {
        let why = |op, dtype, layout, axes: &[usize]| plain(op, dtype, layout, axes, |_| ()).unwrap_err();
        let l = || contiguous(&[4, 5, 6]);
        assert_eq!(why(ops::SUM, DType::F32, l(), &[0]), "the reduced axis is not the last one");
        assert_eq!(why(ops::SUM, DType::F32, l(), &[0, 2]), "not contiguous along the reduced axis");
        assert_eq!(why(ops::SUM, DType::F32, l().flip(&[2]), &[2]), "not contiguous along the reduced axis");
        assert_eq!(why(ops::SUM, DType::F32, contiguous(&[4, 1]), &[1]), "one element per result");
        assert_eq!(why(ops::MAX, DType::C64, l(), &[2]), "max of complex64: complex numbers are only added and multiplied");
        assert_eq!(why(ops::VAR, DType::F32, l(), &[2]), "does not declare variances");
        assert!(plain(ops::ARGMAX, DType::I64, l(), &[1, 2], |r| r.accumulator_size() == 16).unwrap());
    }

    #[test]
    fn reductions_of_other_crates_and_user_code() {
        let size = |op| plain(op, DType::F32, contiguous(&[40, 64]), &[1], |r| (r.accumulator_size(), r.kernel_key().serialize())).unwrap();
        assert_eq!(size(USER_MAX_OP).0, 4);
        assert_ne!(size(USER_MAX_OP).1, size(ops::MAX).1);
        let strings = |dtype, shape: &[usize], axes: &[isize]| {
            let ReductionCall { inputs, output, reduction } =
                user_kernels::example_reduction_call(&array(dtype, contiguous(shape)).into(), axes).unwrap();
            with_call(REDUCTION_KERNEL, &inputs, &[output], Work::Custom(call::Custom(&reduction)), |call| {
                reason(|| reduce_request_for_call(call, &[256, 256])).map(|r| (r.width, r.accumulator_size(), r.split))
            })
        };
        assert_eq!(strings(DType::F16, &[40, 64], &[-1]).unwrap(), (8, 8, ReduceRowSplit::Lanes(8)));
        assert_eq!(strings(DType::I64, &[40, 64], &[0, 1]).unwrap(), (2, 16, ReduceRowSplit::Chunks { chunks: 2, chunk: 2048 }));
        assert_eq!(strings(DType::F32, &[40, 64], &[0]).unwrap_err(), "the reduced axis is not the last one");
    }
}
