//! Inclusive scan of one contiguous lane, with the expression before it taken in: one pass over memory.

use cuprum_backend_cuda::codegen::{self, Access, KernelKey, ctype};
use cuprum_core::call::Work;
use cuprum_core::ops::scan as ops;
use cuprum_core::{Call, DType, Op, Outcome, Program, Reason, Result};

use crate::launch;
use crate::source::{Definitions, Family, Source};

/// Threads of a block, as in `scan.cu`.
pub const THREADS: usize = 256;

static SCAN: Family = Family {
    name: "cub_scan.cu",
    macro_name: "CUPRUM_SCAN",
    head: concat!(include_str!("kernels/fold.cuh"), include_str!("kernels/relaxed.cuh")),
    text: &[include_str!("kernels/scan.cu")],
};

/// Scans of one lane.
pub fn run(call: &Call) -> Result<Outcome> {
    match describe(call) {
        Ok(scan) => launch::scan(call, &scan, &launch::addresses(call)?),
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

/// A scan that the kernel takes.
#[derive(Debug)]
pub struct Scan<'a> {
    op: Op,
    /// The expression before it.
    pub program: &'a Program,
    out: DType,
    access: Access,
    /// Number of elements.
    pub count: usize,
}

fn fold(op: Op) -> Result<&'static str, Reason> {
    match op {
        _ if op == ops::CUMSUM => Ok("Sum"),
        _ if op == ops::CUMPROD => Ok("Product"),
        _ => Err(Reason::with(|| format!("{}: not one of its operations", op.name()))),
    }
}

fn describe<'a>(call: &'a Call) -> Result<Scan<'a>, Reason> {
    let (Work::Scan { program, plan }, [output]) = (&call.work, call.outputs) else {
        return Err(Reason::new("not a scan"));
    };
    fold(call.op)?;
    if plan.lane_count != 1 {
        return Err(Reason::with(|| format!("several lanes: {}", plan.lane_count)));
    }
    if !plan.is_flat() {
        return Err(Reason::new("not contiguous along the scanned axis"));
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_row(*op)) {
        return Err(Reason::with(|| format!("{}: no code for it", op.name())));
    }
    let repeated = plan.axis_strides.iter().enumerate().filter(|(_, s)| **s == 0).fold(0, |bits, (k, _)| bits | 1 << k);
    Ok(Scan { op: call.op, program, out: output.dtype, access: Access { repeated, aligned: false }, count: plan.len })
}

impl Scan<'_> {
    /// The 16-bit floats are scanned in float32.
    fn acc(&self) -> DType {
        match self.out {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// Elements of a tile, as in `scan.cu`.
    pub fn tile(&self) -> usize {
        THREADS * (128 / self.acc().itemsize().max(4))
    }

    /// 64-bit words of a tile's state, as in `scan.cu`.
    pub fn words(&self) -> usize {
        self.acc().itemsize().div_ceil(4)
    }

    /// What its kernel is found by.
    pub fn key(&self) -> KernelKey {
        KernelKey::new("cub scan", self.program).with(self.op.index() as u64).with_dtype(self.out).with(self.access.repeated)
    }

    /// The text of its kernel.
    pub fn source(&self) -> Result<Source, &'static str> {
        let mut d = Definitions::default();
        d.alias("Fold", &format!("{}<{}>", fold(self.op).map_err(|_| self.op.name())?, ctype(self.acc())));
        d.alias("Out", ctype(self.out));
        SCAN.source(self.program, self.access, &d, &["scan_flat"])
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    use DType::*;
    let of = |op: Op, dtype: DType, program: Program| {
        let scan = Scan { op, program: &program, out: dtype, access: Access::default(), count: 0 };
        scan.source().map(|s| (format!("{} {}<{dtype}> of {program}", s.name, op.name()), s.text)).ok()
    };
    let plain = [(ops::CUMSUM, I64), (ops::CUMSUM, I8), (ops::CUMSUM, F16), (ops::CUMSUM, F32), (ops::CUMSUM, C128), (ops::CUMPROD, C64)];
    let fused =
        [of(ops::CUMPROD, F64, crate::source::fused_example(F64, F64)), of(ops::CUMSUM, F32, crate::source::fused_example(F64, F32))];
    plain.into_iter().map(|(op, d)| of(op, d, Program::identity(d))).chain(fused).flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::plan::scan::ScanPlan;
    use cuprum_core::{Array, StoredArray};

    use super::*;
    use crate::testing::{array, contiguous, output, reason, with_call};

    fn of<R>(input: StoredArray, axis: usize, op: Op, check: impl FnOnce(Scan) -> R) -> Result<R, String> {
        let (program, inputs) = (Program::identity(input.dtype()), [input]);
        let plan = ScanPlan::new(inputs[0].shape(), &[inputs[0].layout()], axis);
        let outputs = [output(inputs[0].dtype(), inputs[0].shape())];
        let work = Work::Scan { program: &program, plan: &plan };
        with_call(op, &inputs, &outputs, work, |call| reason(|| describe(call)).map(check))
    }

    #[test]
    fn tiles_are_32_kib() {
        let shape = |dtype| of(array(dtype, contiguous(&[1000])), 0, ops::CUMSUM, |s| (s.tile(), s.words(), s.count)).unwrap();
        assert_eq!(shape(DType::F32), (8192, 1, 1000));
        assert_eq!(shape(DType::F16), (8192, 1, 1000));
        assert_eq!(shape(DType::I8), (8192, 1, 1000));
        assert_eq!(shape(DType::I64), (4096, 2, 1000));
        assert_eq!(shape(DType::C128), (2048, 4, 1000));
    }

    #[test]
    fn keys_follow_op_and_dtype() {
        let key = |dtype, op| of(array(dtype, contiguous(&[10])), 0, op, |s| s.key().bytes().to_vec()).unwrap();
        assert_eq!(key(DType::F32, ops::CUMSUM), key(DType::F32, ops::CUMSUM));
        assert_ne!(key(DType::F32, ops::CUMSUM), key(DType::F32, ops::CUMPROD));
        assert_ne!(key(DType::F32, ops::CUMSUM), key(DType::F64, ops::CUMSUM));
    }

    #[test]
    fn declines() {
        let why = |input, axis| of(input, axis, ops::CUMSUM, |_| ()).unwrap_err();
        assert_eq!(why(array(DType::F32, contiguous(&[4, 5])), 1), "several lanes: 4");
        let every_other = cuprum_core::Layout::strided(&[5], &[2], 0).unwrap();
        assert_eq!(why(array(DType::F32, every_other), 0), "not contiguous along the scanned axis");
        assert_eq!(why(array(DType::F32, contiguous(&[5]).flip(&[0])), 0), "not contiguous along the scanned axis");
    }
}
