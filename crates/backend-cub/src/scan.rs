//! Inclusive scan of contiguous rows or of columns side by side, with the expression before it taken in: one pass over memory.

use cuprum_backend_cuda::codegen::{self, Access, Bytes, KernelKey, check, ctype, parts};
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::ops::scan as ops;
use cuprum_core::plan::scan::ScanPlan;
use cuprum_core::{Call, DType, Layout, Op, Outcome, Program, Reason, Result};

use crate::flat;
use crate::launch::{self, Described, On};
use crate::source::{BLOCK, Definitions, Family, Source};

/// Threads of a block, as in `scan.cu` and `scan_columns.cu`.
pub const THREADS: usize = 256;
/// Shorter rows leave too many of a block's threads idle.
const SHORT: usize = 512;
/// Lanes of a warp, which are neighbouring columns.
const LANES: usize = 32;
/// Fewer columns side by side make loads of less than 32 bytes.
const NARROW: usize = 8;
/// Columns up to this length need no more than a thread each.
const LOW: usize = 32;

const HEAD: &[&str] = &[parts::EXTREMES, parts::FOLD, parts::WARP, BLOCK, parts::RELAXED, parts::FOLD_BACK];

static ROWS: Family = Family { name: "cub_scan.cu", blocks: false, head: HEAD, text: &[include_str!("kernels/scan.cu")] };
static COLUMNS: Family =
    Family { name: "cub_scan_columns.cu", blocks: false, head: HEAD, text: &[include_str!("kernels/scan_columns.cu")] };

/// How lanes are given to threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Contiguous rows, in tiles of a block each.
    Rows,
    /// Columns side by side, a thread's items below each other; so many of them lie side by side in the output.
    Columns {
        /// Distance of a column's elements in the output.
        pitch: usize,
    },
}

/// A scan that the kernels take.
#[derive(Debug)]
pub struct Scan<'a> {
    op: Op,
    /// The expression before it.
    pub program: &'a Program,
    plan: &'a ScanPlan,
    out: DType,
    access: Access,
    /// Which kernel.
    pub way: Way,
}

fn fold(op: Op, value: DType) -> Result<&'static str, Reason> {
    let (name, of_complex) = match op {
        _ if op == ops::CUMSUM => ("Sum", true),
        _ if op == ops::CUMPROD => ("Product", true),
        _ if op == ops::CUMMAX => ("Maximum", false),
        _ if op == ops::CUMMIN => ("Minimum", false),
        _ => return Err(Reason::with(|| format!("{}: not one of its operations", op.name()))),
    };
    if value.is_complex() && !of_complex {
        return Err(Reason::with(|| format!("{} of {value}: complex numbers are only added and multiplied", op.name())));
    }
    Ok(name)
}

/// What the kernels are asked for, or why they decline.
pub fn describe<'a>(call: &'a Call) -> Result<Scan<'a>, Reason> {
    let (Work::Scan(call::Scan { program, plan }), [output]) = (&call.work, call.outputs) else {
        return Err(Reason::new("not a scan"));
    };
    fold(call.op, output.dtype)?;
    let way = match plan.out_axis_stride {
        1 => Way::Rows,
        pitch => Way::Columns { pitch: pitch.unsigned_abs() },
    };
    match way {
        Way::Rows if plan.axis_strides.iter().any(|s| !matches!(s, 0 | 1)) => {
            return Err(Reason::new("not contiguous along the scanned axis"));
        }
        Way::Rows if plan.lane_count > 1 && plan.len < SHORT => {
            return Err(Reason::with(|| format!("rows of {} elements are too short for a block each", plan.len)));
        }
        Way::Columns { pitch } if pitch < NARROW => return Err(Reason::with(|| format!("no more than {pitch} columns side by side"))),
        Way::Columns { .. } if plan.len <= LOW => return Err(Reason::with(|| format!("columns of {} elements", plan.len))),
        _ => {}
    }
    flat::check_program(program)?;
    let repeated = match way {
        Way::Rows => plan.axis_strides.iter().enumerate().filter(|(_, s)| **s == 0).fold(0, |bits, (k, _)| bits | 1 << k),
        Way::Columns { .. } => 0,
    };
    let scan = Scan { op: call.op, program, plan, out: output.dtype, access: Access { repeated, aligned: false }, way };
    if scan.groups().saturating_mul(scan.tiles()) > i32::MAX as usize {
        return Err(Reason::with(|| format!("{} lanes of {} elements are more than 2^31 tiles", plan.lane_count, plan.len)));
    }
    Ok(scan)
}

impl Scan<'_> {
    /// Number of rows, or of columns.
    pub fn lanes(&self) -> usize {
        self.plan.lane_count
    }

    /// Their length.
    pub fn length(&self) -> usize {
        self.plan.len
    }

    /// Lanes that a block takes at once.
    fn together(&self) -> usize {
        if self.way == Way::Rows { 1 } else { LANES }
    }

    /// Groups of lanes, each with tiles of its own.
    pub fn groups(&self) -> usize {
        self.plan.lane_count.div_ceil(self.together())
    }

    /// Tiles of a group.
    pub fn tiles(&self) -> usize {
        self.plan.len.div_ceil(self.tile())
    }

    /// The 16-bit floats are scanned in float32.
    fn acc(&self) -> DType {
        match self.out {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// Elements of a thread: 128 bytes, or 32; where a tile needs less than that, as few as do.
    fn items(&self) -> usize {
        let most = 128 / self.acc().itemsize().max(4);
        match (self.way, self.plan.lane_count) {
            (Way::Rows, 1) => most,
            _ => self.plan.len.div_ceil(THREADS / self.together()).next_power_of_two().min(most),
        }
    }

    /// Elements of a lane in a tile.
    pub fn tile(&self) -> usize {
        THREADS / self.together() * self.items()
    }

    /// 64-bit words of all tiles' states.
    pub fn states(&self) -> usize {
        let of_group = if self.way == Way::Rows { parts::states_of_row(self.tiles()) } else { self.tiles() * LANES };
        self.words() * self.groups() * of_group
    }

    /// 64-bit words of the state of a tile's lane, as in `fold_back.cuh`.
    fn words(&self) -> usize {
        self.acc().itemsize().div_ceil(4)
    }

    /// The kernels' parameter of the lanes: extents and strides.
    pub fn axes(&self) -> Bytes {
        codegen::pack_axes(&self.plan.lanes, self.plan.lane_strides.iter().map(|s| s.as_slice()), true)
    }

    /// How far apart the inputs' elements along a column are.
    pub fn step(&self) -> Bytes {
        codegen::pack_offsets(&self.plan.axis_strides, true)
    }
}

impl Described for Scan<'_> {
    fn key(&self) -> KernelKey<'_> {
        KernelKey::new("cub scan", self.program)
            .with(self.op.index() as u64)
            .with_dtype(self.out)
            .with(self.access.repeated)
            .with(self.items() as u64)
            .with(self.plan.lanes.len() as u64)
            .with(self.together() as u64)
    }

    fn source(&self) -> Result<Source, &'static str> {
        let mut d = Definitions::default();
        d.alias("Fold", &format!("{}<{}>", fold(self.op, self.out).map_err(|_| self.op.name())?, ctype(self.acc())));
        d.alias("Out", ctype(self.out));
        d.constant("ITEMS", self.items());
        d.constant("RANK", self.plan.lanes.len());
        match self.way {
            Way::Rows => ROWS.source(self.program, self.access, &d, &["scan_rows"]),
            Way::Columns { .. } => COLUMNS.source(self.program, self.access, &d, &["scan_columns"]),
        }
    }

    fn launch(&self, on: &On) -> Result<Outcome> {
        launch::scan(on, self)
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    use DType::*;
    let along = |axis: usize, op: Op, dtype: DType, program: Program, shape: &[usize]| {
        let layout = Layout::contiguous(shape).ok()?;
        let inputs = program.steps.iter().filter(|s| matches!(s.kind, cuprum_core::StepKind::Input(_))).count();
        let plan = ScanPlan::new(shape, &vec![&layout; inputs], axis);
        let way = if plan.out_axis_stride == 1 { Way::Rows } else { Way::Columns { pitch: 1 } };
        let scan = Scan { op, program: &program, plan: &plan, out: dtype, access: Access::default(), way };
        scan.source().map(|s| (format!("{} {}<{dtype}> of {program}, {shape:?}", s.name, op.name()), s.text)).ok()
    };
    let of = |op: Op, dtype: DType, program: Program, shape: &[usize]| along(shape.len() - 1, op, dtype, program, shape);
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
        of(ops::CUMPROD, F64, crate::source::fused_example(F64, F64), &[9]),
        of(ops::CUMSUM, F32, crate::source::fused_example(F64, F32), &[7, 600]),
        of(ops::CUMSUM, F64, check::taking(F64, I64), &[9]),
    ];
    let columns = [
        along(0, ops::CUMSUM, F32, Program::identity(F32), &[900, 70]),
        along(1, ops::CUMSUM, F16, Program::identity(F16), &[3, 100, 70]),
        along(0, ops::CUMPROD, C128, Program::identity(C128), &[900, 70]),
        along(0, ops::CUMMAX, Bool, Program::identity(Bool), &[900, 70]),
        along(0, ops::CUMMIN, I64, Program::identity(I64), &[40, 70]),
        along(1, ops::CUMSUM, F64, crate::source::fused_example(F32, F64), &[3, 900, 70]),
    ];
    let plain = plain.into_iter().map(|(op, d, shape)| of(op, d, Program::identity(d), &shape));
    plain.chain(fused).chain(columns).flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::{Array, StoredArray};

    use super::*;
    use crate::testing::{array, contiguous, output, reason, with_call};

    fn of<R>(input: StoredArray, axis: usize, op: Op, check: impl FnOnce(Scan) -> R) -> Result<R, String> {
        let (program, inputs) = (Program::identity(input.dtype()), [input]);
        let plan = ScanPlan::new(inputs[0].shape(), &[inputs[0].layout()], axis);
        let outputs = [output(inputs[0].dtype(), inputs[0].shape())];
        let work = Work::Scan(call::Scan { program: &program, plan: &plan });
        with_call(op, &inputs, &outputs, work, |call| reason(|| describe(call)).map(check))
    }

    #[test]
    fn tiles_are_32_kib() {
        let shape = |dtype| of(array(dtype, contiguous(&[1000])), 0, ops::CUMSUM, |s| (s.tile(), s.words(), s.length())).unwrap();
        assert_eq!(shape(DType::F32), (8192, 1, 1000));
        assert_eq!(shape(DType::F16), (8192, 1, 1000));
        assert_eq!(shape(DType::I8), (8192, 1, 1000));
        assert_eq!(shape(DType::I64), (4096, 2, 1000));
        assert_eq!(shape(DType::C128), (2048, 4, 1000));
    }

    #[test]
    fn keys_follow_op_and_dtype() {
        let key = |dtype, op| of(array(dtype, contiguous(&[10])), 0, op, |s| s.key().written()).unwrap();
        assert_eq!(key(DType::F32, ops::CUMSUM), key(DType::F32, ops::CUMSUM));
        assert_ne!(key(DType::F32, ops::CUMSUM), key(DType::F32, ops::CUMPROD));
        assert_ne!(key(DType::F32, ops::CUMSUM), key(DType::F64, ops::CUMSUM));
    }

    #[test]
    fn rows_are_cut_into_tiles() {
        let cut = |shape: &[usize], axis| {
            of(array(DType::F32, contiguous(shape)), axis, ops::CUMMAX, |s| (s.groups(), s.tiles(), s.tile(), s.states())).unwrap()
        };
        assert_eq!(cut(&[8193], 0), (1, 2, 8192, 3));
        assert_eq!(cut(&[300, 513], 1), (300, 1, 1024, 600));
        assert_eq!(cut(&[2, 3, 100_000], 2), (6, 13, 8192, 6 * 14));
        assert_eq!(cut(&[1 << 20], 0), (1, 128, 8192, 128 + 4));
    }

    #[test]
    fn columns_are_taken_by_warps() {
        let cut = |dtype, shape: &[usize], axis| {
            of(array(dtype, contiguous(shape)), axis, ops::CUMSUM, |s| (s.way, s.groups(), s.tiles(), s.tile(), s.states())).unwrap()
        };
        let columns = |pitch| Way::Columns { pitch };
        assert_eq!(cut(DType::F32, &[4000, 33], 0), (columns(33), 2, 16, 256, 2 * 16 * 32));
        assert_eq!(cut(DType::F64, &[3, 100, 20], 1), (columns(20), 2, 1, 128, 2 * 2 * 32));
        assert_eq!(cut(DType::C128, &[500, 32], 0), (columns(32), 1, 8, 64, 4 * 8 * 32));
    }

    #[test]
    fn declines() {
        let why = |input, axis| of(input, axis, ops::CUMSUM, |_| ()).unwrap_err();
        assert_eq!(why(array(DType::F32, contiguous(&[4000, 5])), 0), "no more than 5 columns side by side");
        assert_eq!(why(array(DType::F32, contiguous(&[32, 500])), 0), "columns of 32 elements");
        assert_eq!(why(array(DType::F32, contiguous(&[4, 5])), 1), "rows of 5 elements are too short for a block each");
        assert_eq!(
            why(array(DType::F32, contiguous(&[1 << 30, 1 << 20])), 1),
            "1073741824 lanes of 1048576 elements are more than 2^31 tiles"
        );
        let every_other = Layout::strided(&[5], &[2], 0).unwrap();
        assert_eq!(why(array(DType::F32, every_other), 0), "not contiguous along the scanned axis");
        assert_eq!(why(array(DType::F32, contiguous(&[5]).flip(&[0])), 0), "not contiguous along the scanned axis");
        let complex = of(array(DType::C64, contiguous(&[5])), 0, ops::CUMMAX, |_| ()).unwrap_err();
        assert_eq!(complex, "cummax of complex64: complex numbers are only added and multiplied");
    }
}
