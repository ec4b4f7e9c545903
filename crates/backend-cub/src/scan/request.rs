//! Inclusive scans of contiguous rows or of adjacent columns, with a fused program, in a single pass over memory.

use cuprum_backend_cuda::codegen::{self, FoldClass, InnermostAxisAccess, KernelKey, ctype, device_sources, test_programs};
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::op::ReductionDef;
use cuprum_core::ops::scan as ops;
use cuprum_core::plan::scan::ScanPlan;
use cuprum_core::{Call, DType, DeclineReason, Layout, Op, Program, Result};

use crate::fused_input;
use crate::kernel_parameter_lists::{AxesParam, OffsetsParam};
use crate::kernel_source::{BLOCK_FOLD_AND_SCAN_SOURCE, GeneratedSource, SourceDefinitions, SourceTemplate};
use crate::launch::KernelRequest;

/// Threads per block, as in `scan_rows.cu` and `scan_columns.cu`.
pub const SCAN_THREADS_PER_BLOCK: usize = 256;
/// Minimum length of rows, if there are several. Shorter rows leave too many threads of a block idle, so such calls are declined.
const MIN_SCAN_ROW_LENGTH: usize = 512;
/// Number of adjacent columns that a warp scans, one per lane.
const COLUMNS_PER_WARP: usize = 32;
/// Minimum number of adjacent columns. With fewer columns, a load of a warp would cover less than a 32-byte sector, so such calls are
/// declined.
const MIN_ADJACENT_SCAN_COLUMNS: usize = 8;
/// Maximum length of columns that the accelerator `cuda` scans with one thread per column. The accelerator `cub` declines calls with such
/// columns.
const MAX_SCAN_COLUMN_LENGTH_FOR_ONE_THREAD: usize = 32;

const SCAN_HEADERS: &[&str] = &[
    device_sources::TYPE_LIMITS_SOURCE,
    device_sources::FOLD_SOURCE,
    device_sources::WARP_SHUFFLE_SOURCE,
    BLOCK_FOLD_AND_SCAN_SOURCE,
    device_sources::RELAXED_ATOMICS_SOURCE,
    device_sources::FOLD_LOOK_BACK_SOURCE,
];

static SCAN_ROWS_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_scan_rows.cu",
    includes_cub: false,
    headers: SCAN_HEADERS,
    body: &[include_str!("../kernels/scan_rows.cu")],
};
static SCAN_COLUMNS_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_scan_columns.cu",
    includes_cub: false,
    headers: SCAN_HEADERS,
    body: &[include_str!("../kernels/scan_columns.cu")],
};

/// The scanned axis, which decides how threads share the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanAxis {
    /// Contiguous rows. A block scans one tile of a row.
    Rows,
    /// Adjacent columns. A block scans one tile of 32 columns. Each thread scans several successive elements of one column.
    Columns {
        /// Stride of the output along a scanned column, in elements.
        out_stride: usize,
    },
}

/// The parameters of a scan call that determine its kernel.
#[derive(Debug)]
pub struct ScanRequest<'a> {
    op: Op,
    fold: FoldClass,
    /// The fused program.
    pub program: &'a Program,
    plan: &'a ScanPlan,
    output: DType,
    access: InnermostAxisAccess,
    /// The scanned axis, which selects the kernel.
    pub axis: ScanAxis,
}

/// Returns the class template of `fold.cuh` that combines values of dtype `value` as `reduction` does, or the reason why the kernels do not
/// support the reduction.
fn fold_class_of_reduction(op: Op, reduction: &ReductionDef, value: DType) -> Result<FoldClass, DeclineReason> {
    if reduction.depends_on_order(value) {
        // NumPy's minimum of several complex NaNs is the first of them. The call is declined, because these kernels combine elements out of
        // order and might return another NaN.
        return Err(DeclineReason::with_text(|| format!("{} of {value}: complex numbers are only added and multiplied", op.name())));
    }
    FoldClass::of(reduction, value).ok_or_else(|| DeclineReason::with_text(|| format!("{} is not supported", op.name())))
}

/// Converts `call` to a [`ScanRequest`], or returns the reason why CUB declines the call.
pub fn scan_request_for_call<'a>(call: &'a Call) -> Result<ScanRequest<'a>, DeclineReason> {
    let (Work::Scan(call::Scan { program, reduction, plan, .. }), [output]) = (&call.work, call.outputs) else {
        return Err(DeclineReason::new("not a scan"));
    };
    let fold = fold_class_of_reduction(call.op, reduction, output.dtype)?;
    let axis = match plan.out_axis_stride {
        1 => ScanAxis::Rows,
        stride => ScanAxis::Columns { out_stride: stride.unsigned_abs() },
    };
    match axis {
        ScanAxis::Rows if plan.axis_strides.iter().any(|s| !matches!(s, 0 | 1)) => {
            return Err(DeclineReason::new("not contiguous along the scanned axis"));
        }
        ScanAxis::Rows if plan.line_count > 1 && plan.len < MIN_SCAN_ROW_LENGTH => {
            return Err(DeclineReason::with_text(|| format!("rows of {} elements are too short for a block each", plan.len)));
        }
        ScanAxis::Columns { out_stride } if out_stride < MIN_ADJACENT_SCAN_COLUMNS => {
            return Err(DeclineReason::with_text(|| format!("only {out_stride} adjacent columns")));
        }
        ScanAxis::Columns { .. } if plan.len <= MAX_SCAN_COLUMN_LENGTH_FOR_ONE_THREAD => {
            return Err(DeclineReason::with_text(|| format!("columns of {} elements are too short", plan.len)));
        }
        _ => {}
    }
    fused_input::check_ops_have_cuda_code(program)?;
    let repeated = match axis {
        ScanAxis::Rows => plan.axis_strides.iter().enumerate().filter(|(_, s)| **s == 0).fold(0, |bits, (k, _)| bits | 1 << k),
        ScanAxis::Columns { .. } => 0,
    };
    let request = ScanRequest {
        op: call.op,
        fold,
        program,
        plan,
        output: output.dtype,
        access: InnermostAxisAccess { repeated, aligned: false },
        axis,
    };
    if request.scan_line_group_count().saturating_mul(request.tiles_per_group()) > i32::MAX as usize {
        return Err(DeclineReason::with_text(|| format!("{} lines of {} elements are more than 2^31 tiles", plan.line_count, plan.len)));
    }
    Ok(request)
}

impl ScanRequest<'_> {
    /// Returns the number of scanned rows or columns.
    pub fn scan_line_count(&self) -> usize {
        self.plan.line_count
    }

    /// Returns the number of elements of a row or column.
    pub fn scan_line_length(&self) -> usize {
        self.plan.len
    }

    /// Returns the number of rows or columns that a block scans at the same time.
    fn scan_lines_per_block(&self) -> usize {
        if self.axis == ScanAxis::Rows { 1 } else { COLUMNS_PER_WARP }
    }

    /// Returns the number of groups. A group is the rows or columns that one block scans at the same time.
    pub fn scan_line_group_count(&self) -> usize {
        self.plan.line_count.div_ceil(self.scan_lines_per_block())
    }

    /// Returns the number of tiles along the scanned axis per group of rows or columns (see [`Self::scan_line_group_count`]). A thread
    /// block scans one tile.
    pub fn tiles_per_group(&self) -> usize {
        self.plan.len.div_ceil(self.tile_length())
    }

    /// Returns the accumulator dtype: float32 for the 16-bit floats, else the output's dtype.
    fn accumulator_dtype(&self) -> DType {
        match self.output {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// Returns the number of elements per thread. For a single row, this is the maximum: 128 bytes of accumulators. For several rows, or
    /// for columns, the number is the smallest power of 2 with which one tile covers a whole row or column, up to this maximum.
    fn items_per_thread(&self) -> usize {
        let most = 128 / self.accumulator_dtype().itemsize().max(4);
        match (self.axis, self.plan.line_count) {
            (ScanAxis::Rows, 1) => most,
            _ => self.plan.len.div_ceil(SCAN_THREADS_PER_BLOCK / self.scan_lines_per_block()).next_power_of_two().min(most),
        }
    }

    /// Returns the number of elements of a row or column in one tile.
    pub fn tile_length(&self) -> usize {
        SCAN_THREADS_PER_BLOCK / self.scan_lines_per_block() * self.items_per_thread()
    }

    /// Returns the size of the look-back states of all tiles, in 64-bit words.
    pub fn look_back_word_count(&self) -> usize {
        let per_group = if self.axis == ScanAxis::Rows {
            device_sources::look_back_state_count(self.tiles_per_group())
        } else {
            self.tiles_per_group() * COLUMNS_PER_WARP
        };
        self.words_per_look_back_state() * self.scan_line_group_count() * per_group
    }

    /// Returns the size of one look-back state in 64-bit words, as in `fold_look_back.cuh`.
    fn words_per_look_back_state(&self) -> usize {
        self.accumulator_dtype().itemsize().div_ceil(4)
    }

    /// Returns the extents and input strides of the axes that are not scanned, as a kernel parameter.
    pub fn unscanned_axes_param(&self) -> AxesParam {
        AxesParam(codegen::pack_axes(&self.plan.lines, self.plan.line_strides.iter().map(|s| s.as_slice()), true))
    }

    /// Returns the stride of each input along a column, as a kernel parameter.
    pub fn column_strides_param(&self) -> OffsetsParam {
        OffsetsParam(codegen::pack_offsets(&self.plan.axis_strides, true))
    }
}

impl KernelRequest for ScanRequest<'_> {
    fn kernel_key(&self) -> KernelKey<'_> {
        KernelKey::new("cub scan", self.program)
            .with_number(self.op.index() as u64)
            .with_dtype(self.output)
            .with_number(self.access.repeated)
            .with_number(self.items_per_thread() as u64)
            .with_number(self.plan.lines.len() as u64)
            .with_number(self.scan_lines_per_block() as u64)
    }

    fn cuda_source(&self) -> Result<GeneratedSource, &'static str> {
        let mut d = SourceDefinitions::default();
        d.define_type("Fold", &format!("{}<{}>", self.fold.name, ctype(self.accumulator_dtype())));
        d.define_type("Out", ctype(self.output));
        d.define_int("ITEMS", self.items_per_thread());
        d.define_int("RANK", self.plan.lines.len());
        match self.axis {
            ScanAxis::Rows => SCAN_ROWS_TEMPLATE.source_with_program(self.program, self.access, &d, &["scan_rows"]),
            ScanAxis::Columns { .. } => SCAN_COLUMNS_TEMPLATE.source_with_program(self.program, self.access, &d, &["scan_columns"]),
        }
    }
}

/// Returns the names and code of representative kernel sources, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    use DType::*;
    let along_axis = |axis: usize, op: Op, dtype: DType, program: Program, shape: &[usize]| {
        let layout = Layout::contiguous(shape).ok()?;
        let inputs = program.steps.iter().filter(|s| matches!(s.kind, cuprum_core::StepKind::Input(_))).count();
        let plan = ScanPlan::new(shape, &vec![&layout; inputs], axis);
        let axis = if plan.out_axis_stride == 1 { ScanAxis::Rows } else { ScanAxis::Columns { out_stride: 1 } };
        let fold = fold_class_of_reduction(op, op.reduction()?, dtype).ok()?;
        let request = ScanRequest { op, fold, program: &program, plan: &plan, output: dtype, access: InnermostAxisAccess::default(), axis };
        request.cuda_source().map(|s| (format!("{} {}<{dtype}> of {program}, {shape:?}", s.name, op.name()), s.code)).ok()
    };
    let along_last = |op: Op, dtype: DType, program: Program, shape: &[usize]| along_axis(shape.len() - 1, op, dtype, program, shape);
    let plain = [
        (ops::CUMSUM, I64, vec![9]),
        (ops::CUMSUM, I8, vec![9]),
        (ops::CUMSUM, F16, vec![9]),
        (ops::CUMSUM, F32, vec![9]),
        (ops::CUMSUM, C128, vec![7, 900]),
        (ops::CUMPROD, C64, vec![9]),
        (ops::CUMSUM, F32, vec![7, 1000]),
        (ops::CUMMAX, F64, vec![9]),
        (ops::CUMMAX, BF16, vec![7, 5000]),
        (ops::CUMMIN, Bool, vec![9]),
        (ops::CUMMIN, U64, vec![9]),
    ];
    let fused = [
        along_last(ops::CUMPROD, F64, crate::kernel_source::fused_example_program(F64, F64), &[9]),
        along_last(ops::CUMSUM, F32, crate::kernel_source::fused_example_program(F64, F32), &[7, 600]),
        along_last(ops::CUMSUM, F64, test_programs::take_program(F64, I64), &[9]),
    ];
    let columns = [
        along_axis(0, ops::CUMSUM, F32, Program::identity(F32), &[900, 70]),
        along_axis(1, ops::CUMSUM, F16, Program::identity(F16), &[3, 100, 70]),
        along_axis(0, ops::CUMPROD, C128, Program::identity(C128), &[900, 70]),
        along_axis(0, ops::CUMMAX, Bool, Program::identity(Bool), &[900, 70]),
        along_axis(0, ops::CUMMIN, I64, Program::identity(I64), &[40, 70]),
        along_axis(1, ops::CUMSUM, F64, crate::kernel_source::fused_example_program(F32, F64), &[3, 900, 70]),
    ];
    let plain = plain.into_iter().map(|(op, d, shape)| along_last(op, d, Program::identity(d), &shape));
    plain.chain(fused).chain(columns).flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::{Array, StoredArray};

    use super::*;
    use crate::testing::{array, contiguous, output, reason, with_call};

    fn with_request<R>(input: StoredArray, axis: usize, op: Op, check: impl FnOnce(ScanRequest) -> R) -> Result<R, String> {
        let (program, inputs) = (Program::identity(input.dtype()), [input]);
        let plan = ScanPlan::new(inputs[0].shape(), &[inputs[0].layout()], axis);
        let outputs = [output(inputs[0].dtype(), inputs[0].shape())];
        let work = Work::Scan(call::Scan { program: &program, reduction: op.reduction().unwrap(), axis, plan: &plan });
        with_call(op, &inputs, &outputs, work, |call| reason(|| scan_request_for_call(call)).map(check))
    }

    #[test]
    fn tile_sizes() {
        let shape = |dtype| {
            with_request(array(dtype, contiguous(&[1000])), 0, ops::CUMSUM, |s| {
                (s.tile_length(), s.words_per_look_back_state(), s.scan_line_length())
            })
            .unwrap()
        };
        assert_eq!(shape(DType::F32), (8192, 1, 1000));
        assert_eq!(shape(DType::F16), (8192, 1, 1000));
        assert_eq!(shape(DType::I8), (8192, 1, 1000));
        assert_eq!(shape(DType::I64), (4096, 2, 1000));
        assert_eq!(shape(DType::C128), (2048, 4, 1000));
    }

    #[test]
    fn keys_depend_on_op_and_dtype() {
        let key = |dtype, op| with_request(array(dtype, contiguous(&[10])), 0, op, |s| s.kernel_key().serialize()).unwrap();
        assert_eq!(key(DType::F32, ops::CUMSUM), key(DType::F32, ops::CUMSUM));
        assert_ne!(key(DType::F32, ops::CUMSUM), key(DType::F32, ops::CUMPROD));
        assert_ne!(key(DType::F32, ops::CUMSUM), key(DType::F64, ops::CUMSUM));
    }

    #[test]
    fn tiles_of_rows() {
        let tiling = |shape: &[usize], axis| {
            with_request(array(DType::F32, contiguous(shape)), axis, ops::CUMMAX, |s| {
                (s.scan_line_group_count(), s.tiles_per_group(), s.tile_length(), s.look_back_word_count())
            })
            .unwrap()
        };
        assert_eq!(tiling(&[8193], 0), (1, 2, 8192, 3));
        assert_eq!(tiling(&[300, 513], 1), (300, 1, 1024, 600));
        assert_eq!(tiling(&[2, 3, 100_000], 2), (6, 13, 8192, 6 * 14));
        assert_eq!(tiling(&[1 << 20], 0), (1, 128, 8192, 128 + 4));
    }

    #[test]
    fn tiles_of_columns() {
        let tiling = |dtype, shape: &[usize], axis| {
            with_request(array(dtype, contiguous(shape)), axis, ops::CUMSUM, |s| {
                (s.axis, s.scan_line_group_count(), s.tiles_per_group(), s.tile_length(), s.look_back_word_count())
            })
            .unwrap()
        };
        let columns = |out_stride| ScanAxis::Columns { out_stride };
        assert_eq!(tiling(DType::F32, &[4000, 33], 0), (columns(33), 2, 16, 256, 2 * 16 * 32));
        assert_eq!(tiling(DType::F64, &[3, 100, 20], 1), (columns(20), 2, 1, 128, 2 * 2 * 32));
        assert_eq!(tiling(DType::C128, &[500, 32], 0), (columns(32), 1, 8, 64, 4 * 8 * 32));
    }

    #[test]
    fn decline_reasons() {
        let why = |input, axis| with_request(input, axis, ops::CUMSUM, |_| ()).unwrap_err();
        assert_eq!(why(array(DType::F32, contiguous(&[4000, 5])), 0), "only 5 adjacent columns");
        assert_eq!(why(array(DType::F32, contiguous(&[32, 500])), 0), "columns of 32 elements are too short");
        assert_eq!(why(array(DType::F32, contiguous(&[4, 5])), 1), "rows of 5 elements are too short for a block each");
        assert_eq!(
            why(array(DType::F32, contiguous(&[1 << 30, 1 << 20])), 1),
            "1073741824 lines of 1048576 elements are more than 2^31 tiles"
        );
        let every_other = Layout::strided(&[5], &[2], 0).unwrap();
        assert_eq!(why(array(DType::F32, every_other), 0), "not contiguous along the scanned axis");
        assert_eq!(why(array(DType::F32, contiguous(&[5]).flip(&[0])), 0), "not contiguous along the scanned axis");
        let complex = with_request(array(DType::C64, contiguous(&[5])), 0, ops::CUMMAX, |_| ()).unwrap_err();
        assert_eq!(complex, "cummax of complex64: complex numbers are only added and multiplied");
    }
}
