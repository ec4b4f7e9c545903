//! Reductions of segments with a fused program. Tiles have equal numbers of items, where an item is a value or the end of a segment.
//! The load per block therefore does not depend on segment lengths.

use cuprum_backend_cuda::codegen::{FoldClass, InnermostAxisAccess, KernelKey, ctype, device_sources, test_programs};
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::op::ReductionDef;
use cuprum_core::ops::reduce::{SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM};
use cuprum_core::{Array, Call, DType, DeclineReason, Op, Program, Result};

use crate::fused_input;
use crate::kernel_source::{BLOCK_FOLD_AND_SCAN_SOURCE, GeneratedSource, SourceDefinitions, SourceTemplate};
use crate::launch::KernelRequest;

/// Threads per block, as in `segment.cu`.
pub const SEGMENT_THREADS_PER_BLOCK: usize = 256;
/// Minimum number of tiles of a call. Smaller calls are declined, because the three launches take longer than the one launch of the
/// accelerator `cuda`.
const MIN_SEGMENT_TILES_PER_CALL: usize = 16;

static SEGMENT_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_segment.cu",
    includes_cub: false,
    headers: &[
        device_sources::TYPE_LIMITS_SOURCE,
        device_sources::FOLD_SOURCE,
        device_sources::WARP_SHUFFLE_SOURCE,
        BLOCK_FOLD_AND_SCAN_SOURCE,
    ],
    body: &[include_str!("../kernels/segment.cu")],
};

/// The parameters of a segment reduction call that determine its kernels.
#[derive(Debug)]
pub struct SegmentRequest<'a> {
    /// The fused program that computes the values of the segments.
    pub program: &'a Program,
    fold: FoldClass,
    accumulator: DType,
    output: DType,
    access: InnermostAxisAccess,
    /// Number of values.
    pub length: usize,
    /// Number of segments.
    pub segments: usize,
}

/// Returns the class template of `fold.cuh` that combines accumulators of dtype `acc` as `reduction` does, or the reason why the kernels do
/// not support the reduction.
fn fold_class_of_reduction(op: Op, reduction: &ReductionDef, acc: DType) -> Result<FoldClass, DeclineReason> {
    if reduction.depends_on_order(acc) {
        // NumPy's minimum of several complex NaNs is the first of them. The call is declined, because these kernels combine elements out of
        // order and might return another NaN.
        return Err(DeclineReason::with_text(|| format!("{} of {acc}: complex numbers are only added and multiplied", op.name())));
    }
    FoldClass::of(reduction, acc).ok_or_else(|| DeclineReason::with_text(|| format!("{} is not supported", op.name())))
}

/// Converts `call` to a [`SegmentRequest`], or returns the reason why CUB declines the call.
pub fn segment_request_for_call<'a>(call: &'a Call) -> Result<SegmentRequest<'a>, DeclineReason> {
    let (&Work::Segments(call::SegmentReduction { program, reduction, acc }), [output]) = (&call.work, call.outputs) else {
        return Err(DeclineReason::new("not a reduction of segments"));
    };
    let fold = fold_class_of_reduction(call.op, reduction, acc)?;
    let (values, Some(offsets)) = call.program_inputs() else { return Err(DeclineReason::new("the call has no offsets")) };
    if offsets.dtype() != DType::I64 || !offsets.layout().is_c_contiguous() {
        return Err(DeclineReason::new("the offsets are not contiguous int64"));
    }
    let Some(first) = values.first() else { return Err(DeclineReason::new("the values are not an array")) };
    fused_input::check_ops_have_cuda_code(program)?;
    let (length, segments) = (first.layout().size(), output.layout.size());
    let request = SegmentRequest {
        program,
        fold,
        accumulator: acc,
        output: output.dtype,
        access: InnermostAxisAccess::innermost_access_of_flat_inputs(values),
        length,
        segments,
    };
    match request.tile_count() {
        few if few < MIN_SEGMENT_TILES_PER_CALL => {
            Err(DeclineReason::with_text(|| format!("{length} values in {segments} segments are too few for three kernels")))
        }
        many if many > i32::MAX as usize => {
            Err(DeclineReason::with_text(|| format!("{length} values in {segments} segments are more than 2^31 tiles")))
        }
        _ => Ok(request),
    }
}

impl SegmentRequest<'_> {
    /// Returns the size of an accumulator in bytes.
    pub fn accumulator_size(&self) -> usize {
        self.accumulator.itemsize()
    }

    /// Returns the number of items (values and segment ends) per thread. An odd number avoids bank conflicts in shared memory.
    fn items_per_thread(&self) -> usize {
        match self.accumulator_size() {
            ..=4 => 15,
            8 => 11,
            _ => 7,
        }
    }

    /// Returns the number of tiles of the merged sequence of values and segment ends.
    pub fn tile_count(&self) -> usize {
        self.length.saturating_add(self.segments).div_ceil(SEGMENT_THREADS_PER_BLOCK * self.items_per_thread())
    }
}

impl KernelRequest for SegmentRequest<'_> {
    fn kernel_key(&self) -> KernelKey<'_> {
        KernelKey::new("cub segment", self.program)
            .with_name(self.fold.name)
            .with_dtype(self.accumulator)
            .with_dtype(self.output)
            .with_number(self.access.repeated)
    }

    fn cuda_source(&self) -> Result<GeneratedSource, &'static str> {
        let mut d = SourceDefinitions::default();
        let accumulator = ctype(self.accumulator);
        d.define_type("Fold", &format!("{}<{accumulator}>", self.fold.name));
        d.define_type("Out", ctype(self.output));
        d.define_int("ITEMS", self.items_per_thread());
        SEGMENT_TEMPLATE.source_with_program(
            self.program,
            self.access,
            &d,
            &["find_tile_segments", "reduce_segment_tiles", "combine_segment_partials"],
        )
    }
}

/// Returns the names and code of representative kernel sources, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    use DType::*;
    let of = |op: Op, program: Program, accumulator: DType| {
        let (output, fold) = (program.output_dtype(0), fold_class_of_reduction(op, op.reduction()?, accumulator).ok()?);
        let request =
            SegmentRequest { program: &program, fold, accumulator, output, access: InnermostAxisAccess::default(), length: 0, segments: 0 };
        request.cuda_source().map(|s| (format!("{} {} {output} in {accumulator} of {program}", s.name, op.name()), s.code)).ok()
    };
    let plain = [(I64, I64), (U64, U64), (F16, F32), (BF16, F32), (F32, F32), (F64, F64), (C64, C64), (C128, C128)];
    let fused = [
        of(SEGMENT_SUM, crate::kernel_source::fused_example_program(F32, F32), F32),
        of(SEGMENT_SUM, crate::kernel_source::fused_example_program(I16, I64), I64),
        of(SEGMENT_SUM, test_programs::take_program(F32, I32), F32),
        of(SEGMENT_MAX, crate::kernel_source::fused_example_program(I16, I16), I16),
        of(SEGMENT_PROD, Program::identity(F16), F32),
        of(SEGMENT_PROD, Program::identity(C64), C64),
    ];
    let sums = plain.into_iter().map(|(value, acc)| of(SEGMENT_SUM, Program::identity(value), acc));
    let extremes = DType::ALL.into_iter().filter(|d| !d.is_complex()).zip([SEGMENT_MIN, SEGMENT_MAX].into_iter().cycle());
    sums.chain(fused).chain(extremes.map(|(d, op)| of(op, Program::identity(d), d))).flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::{Layout, StoredArray};

    use super::*;
    use crate::kernel_source::fused_example_program;
    use crate::testing::{array, contiguous, output, program_without_code, reason, with_call};

    fn with_request<R>(
        program: &Program,
        values: &[StoredArray],
        acc: DType,
        count: usize,
        check: impl FnOnce(SegmentRequest) -> R,
    ) -> Result<R, String> {
        let offsets = array(DType::I64, contiguous(&[count + 1]));
        let inputs: Vec<StoredArray> = values.iter().cloned().chain([offsets]).collect();
        let outputs = [output(program.output_dtype(0), &[count])];
        let work = Work::Segments(call::SegmentReduction { program, reduction: SEGMENT_SUM.reduction().unwrap(), acc });
        with_call(SEGMENT_SUM, &inputs, &outputs, work, |call| reason(|| segment_request_for_call(call)).map(check))
    }

    fn plain<R>(value: DType, acc: DType, length: usize, count: usize, check: impl FnOnce(SegmentRequest) -> R) -> Result<R, String> {
        with_request(&Program::identity(value), &[array(value, contiguous(&[length]))], acc, count, check)
    }

    #[test]
    fn tiles_count_values_and_segment_ends() {
        let tiles = |value, acc, length, count| plain(value, acc, length, count, |s| s.tile_count()).unwrap();
        assert_eq!(tiles(DType::F32, DType::F32, 1 << 20, 1), 274);
        assert_eq!(tiles(DType::F32, DType::F32, 1, 1 << 20), 274);
        assert_eq!(tiles(DType::F16, DType::F32, 1 << 20, 0), 274);
        assert_eq!(tiles(DType::C128, DType::C128, 7 * 256 * 15, 1), 16);
    }

    #[test]
    fn tiles_fit_shared_memory() {
        for dtype in DType::ALL {
            let bytes = plain(dtype, dtype, 1 << 20, 1, |s| SEGMENT_THREADS_PER_BLOCK * s.items_per_thread() * s.accumulator_size().max(4))
                .unwrap();
            assert!(bytes + 17 * (16 + 16) <= 48 << 10, "{dtype}");
        }
    }

    #[test]
    fn keys_depend_on_structure_not_size() {
        let key = |value, acc, length| plain(value, acc, length, 9, |s| s.kernel_key().serialize()).unwrap();
        assert_eq!(key(DType::F32, DType::F32, 1 << 20), key(DType::F32, DType::F32, 1 << 33));
        assert_ne!(key(DType::F32, DType::F32, 1 << 20), key(DType::F64, DType::F64, 1 << 20));
        let one = array(DType::F32, Layout::strided(&[1 << 20], &[0], 0).unwrap());
        let values = [array(DType::F32, contiguous(&[1 << 20])), one];
        assert_eq!(
            with_request(&fused_example_program(DType::F32, DType::F32), &values, DType::F32, 9, |s| s.access.repeated).unwrap(),
            0b10
        );
    }

    #[test]
    fn decline_reasons() {
        let why = |length, count| plain(DType::F32, DType::F32, length, count, |_| ()).unwrap_err();
        assert_eq!(why(50_000, 7600), "50000 values in 7600 segments are too few for three kernels");
        assert_eq!(why(1 << 43, 7), "8796093022208 values in 7 segments are more than 2^31 tiles");
        let values = [array(DType::F32, contiguous(&[1 << 20]))];
        let none = with_request(&program_without_code(DType::F32), &values, DType::F32, 9, |_| ()).unwrap_err();
        assert_eq!(none, "cumsum has no CUDA implementation");
    }
}
