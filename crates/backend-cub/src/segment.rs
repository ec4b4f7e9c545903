//! Reductions of segments, with the expression before them taken in: work is shared out by values and segments together, so that it does not
//! matter how long each is.

use cuprum_backend_cuda::codegen::{Access, KernelKey, check, ctype, parts};
use cuprum_backend_cuda::segment::Folds;
use cuprum_core::call::Work;
use cuprum_core::ops::reduce::{MAX, MIN, PROD, SUM};
use cuprum_core::{Array, Call, DType, Op, Outcome, Program, Reason, Result};

use crate::flat;
use crate::launch::{self, Described, On};
use crate::source::{BLOCK, Definitions, Family, Source};

/// Threads of a block, as in `segment.cu`.
pub const THREADS: usize = 256;
/// With fewer tiles than this, the way to three kernels takes longer than the base's one.
const FEW_TILES: usize = 16;

static SEGMENTS: Family = Family {
    name: "cub_segment.cu",
    blocks: false,
    head: &[parts::EXTREMES, parts::FOLD, parts::WARP, BLOCK],
    text: &[include_str!("kernels/segment.cu")],
};

/// A reduction of segments that the kernels take.
#[derive(Debug)]
pub struct Segments<'a> {
    /// The values.
    pub program: &'a Program,
    folds: Folds,
    acc: DType,
    out: DType,
    access: Access,
    /// Number of values.
    pub length: usize,
    /// Number of segments.
    pub count: usize,
}

/// What the kernels are asked for, or why they decline.
pub fn describe<'a>(call: &'a Call) -> Result<Segments<'a>, Reason> {
    let (&Work::Segments { program, reduction, acc }, [output]) = (&call.work, call.outputs) else {
        return Err(Reason::new("not a reduction of segments"));
    };
    let folds =
        Folds::of(reduction).ok_or_else(|| Reason::with(|| format!("{} of segments: not one of its operations", reduction.name())))?;
    if acc.is_complex() && !folds.is_sum_or_product() {
        // Of complex NaNs the first is the smallest and the largest, but elements are not combined in their order here.
        return Err(Reason::with(|| format!("{} of {acc}: complex numbers are only added and multiplied", reduction.name())));
    }
    let (values, Some(offsets)) = call.program_inputs() else { return Err(Reason::new("no offsets")) };
    if offsets.dtype() != DType::I64 || !offsets.layout().is_c_contiguous() {
        return Err(Reason::new("offsets that are not contiguous int64"));
    }
    let Some(first) = values.first() else { return Err(Reason::new("values that are no array")) };
    flat::check_program(program)?;
    let (length, count) = (first.layout().size(), output.layout.size());
    let segments = Segments { program, folds, acc, out: output.dtype, access: Access::flat(values), length, count };
    match segments.tiles() {
        few if few < FEW_TILES => Err(Reason::with(|| format!("{length} values in {count} segments are too few for three kernels"))),
        many if many > i32::MAX as usize => Err(Reason::with(|| format!("{length} values in {count} segments are more than 2^31 tiles"))),
        _ => Ok(segments),
    }
}

impl Segments<'_> {
    /// Bytes of an accumulator.
    pub fn acc_size(&self) -> usize {
        self.acc.itemsize()
    }

    /// Values and ends of segments that a thread takes: an odd number, so that threads meet at few banks of shared memory.
    fn items(&self) -> usize {
        match self.acc_size() {
            ..=4 => 15,
            8 => 11,
            _ => 7,
        }
    }

    /// Pieces of the values and the segments' ends together.
    pub fn tiles(&self) -> usize {
        self.length.saturating_add(self.count).div_ceil(THREADS * self.items())
    }
}

impl Described for Segments<'_> {
    fn key(&self) -> KernelKey<'_> {
        KernelKey::new("cub segment", self.program)
            .with_name(self.folds.fold)
            .with_dtype(self.acc)
            .with_dtype(self.out)
            .with(self.access.repeated)
    }

    fn source(&self) -> Result<Source, &'static str> {
        let mut d = Definitions::default();
        let acc = ctype(self.acc);
        d.alias("Fold", &format!("{}<{acc}>", self.folds.fold));
        d.alias("Out", ctype(self.out));
        d.constant("ITEMS", self.items());
        SEGMENTS.source(self.program, self.access, &d, &["segment_cut", "segment_tile", "segment_join"])
    }

    fn launch(&self, on: &On) -> Result<Outcome> {
        launch::segments(on, self)
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    use DType::*;
    let of = |reduction: Op, program: Program, acc: DType| {
        let (out, folds) = (program.output_dtype(0), Folds::of(reduction)?);
        let segments = Segments { program: &program, folds, acc, out, access: Access::default(), length: 0, count: 0 };
        segments.source().map(|s| (format!("{} {} {out} in {acc} of {program}", s.name, reduction.name()), s.text)).ok()
    };
    let plain = [(I64, I64), (U64, U64), (F16, F32), (BF16, F32), (F32, F32), (F64, F64), (C64, C64), (C128, C128)];
    let fused = [
        of(SUM, crate::source::fused_example(F32, F32), F32),
        of(SUM, crate::source::fused_example(I16, I64), I64),
        of(SUM, check::taking(F32, I32), F32),
        of(MAX, crate::source::fused_example(I16, I16), I16),
        of(PROD, Program::identity(F16), F32),
        of(PROD, Program::identity(C64), C64),
    ];
    let sums = plain.into_iter().map(|(value, acc)| of(SUM, Program::identity(value), acc));
    let extremes = DType::ALL.into_iter().filter(|d| !d.is_complex()).zip([MIN, MAX].into_iter().cycle());
    sums.chain(fused).chain(extremes.map(|(d, op)| of(op, Program::identity(d), d))).flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::reduce::SEGMENT_SUM;
    use cuprum_core::{Layout, StoredArray};

    use super::*;
    use crate::source::fused_example;
    use crate::testing::{array, contiguous, output, program_without_code, reason, with_call};

    fn of<R>(program: &Program, values: &[StoredArray], acc: DType, count: usize, check: impl FnOnce(Segments) -> R) -> Result<R, String> {
        let offsets = array(DType::I64, contiguous(&[count + 1]));
        let inputs: Vec<StoredArray> = values.iter().cloned().chain([offsets]).collect();
        let outputs = [output(program.output_dtype(0), &[count])];
        let work = Work::Segments { program, reduction: SUM, acc };
        with_call(SEGMENT_SUM, &inputs, &outputs, work, |call| reason(|| describe(call)).map(check))
    }

    fn plain<R>(value: DType, acc: DType, length: usize, count: usize, check: impl FnOnce(Segments) -> R) -> Result<R, String> {
        of(&Program::identity(value), &[array(value, contiguous(&[length]))], acc, count, check)
    }

    #[test]
    fn tiles_are_of_values_and_ends() {
        let tiles = |value, acc, length, count| plain(value, acc, length, count, |s| s.tiles()).unwrap();
        assert_eq!(tiles(DType::F32, DType::F32, 1 << 20, 1), 274);
        assert_eq!(tiles(DType::F32, DType::F32, 1, 1 << 20), 274);
        assert_eq!(tiles(DType::F16, DType::F32, 1 << 20, 0), 274);
        assert_eq!(tiles(DType::C128, DType::C128, 7 * 256 * 15, 1), 16);
    }

    #[test]
    fn tiles_fit_shared_memory() {
        for dtype in DType::ALL {
            let bytes = plain(dtype, dtype, 1 << 20, 1, |s| THREADS * s.items() * s.acc_size().max(4)).unwrap();
            assert!(bytes + 17 * (16 + 16) <= 48 << 10, "{dtype}");
        }
    }

    #[test]
    fn keys_see_structure_not_size() {
        let key = |value, acc, length| plain(value, acc, length, 9, |s| s.key().written()).unwrap();
        assert_eq!(key(DType::F32, DType::F32, 1 << 20), key(DType::F32, DType::F32, 1 << 33));
        assert_ne!(key(DType::F32, DType::F32, 1 << 20), key(DType::F64, DType::F64, 1 << 20));
        let one = array(DType::F32, Layout::strided(&[1 << 20], &[0], 0).unwrap());
        let values = [array(DType::F32, contiguous(&[1 << 20])), one];
        assert_eq!(of(&fused_example(DType::F32, DType::F32), &values, DType::F32, 9, |s| s.access.repeated).unwrap(), 0b10);
    }

    #[test]
    fn declines() {
        let why = |length, count| plain(DType::F32, DType::F32, length, count, |_| ()).unwrap_err();
        assert_eq!(why(50_000, 7600), "50000 values in 7600 segments are too few for three kernels");
        assert_eq!(why(1 << 43, 7), "8796093022208 values in 7 segments are more than 2^31 tiles");
        let values = [array(DType::F32, contiguous(&[1 << 20]))];
        let none = of(&program_without_code(DType::F32), &values, DType::F32, 9, |_| ()).unwrap_err();
        assert_eq!(none, "cumsum: no code for it");
    }
}
