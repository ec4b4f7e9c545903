//! Table of the operations and dtypes that the accelerator `cub` supports. Each row is the decision of a family's `request_for_call`
//! function on one example call.
//!
//! For each reason to decline, a test on a device checks that the accelerator `cuda` serves the declined call.

use cuprum_backend_cuda::user_kernels::{self, REDUCTION_KERNEL, ReductionCall};
use cuprum_core::call;
use cuprum_core::call::{Binning, Sort, Work};
use cuprum_core::layout::Layout;
use cuprum_core::op::{AccumulatorDType, TypeRule};
use cuprum_core::ops::{histogram as histograms, reduce as reductions, scan as scans, segments, select as selections, sort as sorts};
use cuprum_core::plan::reduce::ReducePlan;
use cuprum_core::plan::scan::ScanPlan;
use cuprum_core::testing::calls::{array, reason, with_call};
use cuprum_core::{Call, DType, DeclineReason, Device, DeviceKind, Family, Op, OutputSpec, Program, Result, StoredArray};
use smallvec::SmallVec;

use crate::kernel_source::USER_MAX_OP;
use crate::{histogram, reduce, scan, segment, select, sort};

/// A row of the coverage table: one kind of call, and whether CUB supports it.
#[derive(Clone, Debug)]
pub struct CoverageRow {
    /// The family.
    pub family: Family,
    /// The operation.
    pub op: Op,
    /// The kind of call that this row is about, such as `last axis`.
    pub case: &'static str,
    /// The dtype of the input.
    pub dtype: DType,
    /// The reason why CUB declines the call, or `None` if CUB supports the call.
    pub declined: Option<String>,
}

/// Returns the coverage table: whether the accelerator `cub` supports each operation with each dtype, under an accelerator order that names
/// `cub`. Needs no device.
///
/// # Errors
/// Returns an error if the table of device kinds is full.
pub fn coverage_table() -> Result<Vec<CoverageRow>> {
    let device = Device::new(DeviceKind::intern("cuda")?, 0);
    let mut list = Vec::new();
    for dtype in DType::ALL {
        let input = |shape: &[usize]| array(device, dtype, Layout::contiguous(shape)?);
        for op in [
            reductions::SUM,
            reductions::PROD,
            reductions::MIN,
            reductions::MAX,
            reductions::NANMIN,
            reductions::NANMAX,
            reductions::ARGMIN,
            reductions::ARGMAX,
            reductions::ANY,
            reductions::ALL,
            reductions::COUNT_NONZERO,
            reductions::VAR,
            USER_MAX_OP,
        ] {
            if op == USER_MAX_OP && (dtype == DType::Bool || dtype.is_complex()) {
                continue; // the user-defined maximum accepts only integers and floats
            }
            let Some(reduction) = op.reduction() else { continue };
            let is_logical = reduction.elementwise_combination().and_then(|by| by.0.rule) == Some(TypeRule::Logical);
            let value = if is_logical || matches!(reduction.accumulator, AccumulatorDType::Fixed(_)) { DType::Bool } else { dtype };
            let acc = if let AccumulatorDType::Fixed(fixed) = reduction.accumulator { fixed } else { value };
            let out = if reduction.returns_index { DType::I64 } else { acc };
            for (case, axes) in [("everything", &[0, 1][..]), ("last axis", &[1]), ("first axis", &[0])] {
                let a = input(&[1000, 1000])?;
                let program = conversion_program(dtype, value);
                let plan = ReducePlan::new(a.shape(), &[a.layout()], axes, reduction.returns_index);
                let kept: SmallVec<[usize; 2]> = (0..2).filter(|axis| !axes.contains(axis)).map(|axis| a.shape()[axis]).collect();
                let work = Work::Reduce(call::Reduce { program: &program, reduction, axes, plan: &plan, acc });
                list.push(coverage_row_for_call(op, case, dtype, &[a], &[output_spec(out, &kept)?], work));
            }
        }
        for (case, axes) in [("everything", &[0, 1][..]), ("last axis", &[1]), ("first axis", &[0])] {
            let ReductionCall { inputs, output, reduction } = user_kernels::example_reduction_call(&input(&[1000, 1000])?.into(), axes)?;
            list.push(coverage_row_for_call(REDUCTION_KERNEL, case, dtype, &inputs, &[output], Work::Custom(call::Custom(&reduction))));
        }
        for op in [scans::CUMSUM, scans::CUMPROD, scans::CUMMAX, scans::CUMMIN] {
            let Some(reduction) = op.reduction() else { continue };
            let shapes = [("one row", 0, &[1 << 20][..]), ("last axis", 1, &[1000, 1000]), ("first axis", 0, &[1000, 1000])];
            let small = [("rows of 80", 1, &[80, 80][..]), ("2 columns", 0, &[3200, 2]), ("20 rows", 0, &[20, 320])];
            for (case, axis, shape) in shapes.into_iter().chain(small) {
                let a = input(shape)?;
                let program = Program::identity(dtype);
                let plan = ScanPlan::new(a.shape(), &[a.layout()], axis);
                let work = Work::Scan(call::Scan { program: &program, reduction, axis, plan: &plan });
                list.push(coverage_row_for_call(op, case, dtype, &[a], &[output_spec(dtype, shape)?], work));
            }
        }
        for (op, value) in [
            (reductions::SEGMENT_SUM, dtype.sum_dtype()),
            (reductions::SEGMENT_PROD, dtype.sum_dtype()),
            (reductions::SEGMENT_MIN, dtype),
            (reductions::SEGMENT_MAX, dtype),
        ] {
            let Some(reduction) = op.reduction() else { continue };
            let values = conversion_program(dtype, value);
            for (case, length, segments) in [("segments", 1 << 20, 1000), ("few values", 6400, 4)] {
                let inputs = [input(&[length])?, array(device, DType::I64, Layout::contiguous(&[segments + 1])?)?];
                let work = Work::Segments(call::SegmentReduction { program: &values, reduction, acc: reduction.accumulator.of(value) });
                list.push(coverage_row_for_call(op, case, dtype, &inputs, &[output_spec(value, &[segments])?], work));
            }
        }
        for (op, values, indices, limit) in
            [(sorts::SORT, true, false, 1000), (sorts::ARGSORT, false, true, 1000), (sorts::TOPK, true, true, 10)]
        {
            let returned = [(values, dtype), (indices, DType::I64)].into_iter().filter(|(returned, _)| *returned);
            let outputs = returned.map(|(_, d)| output_spec(d, &[1000, limit])).collect::<Result<SmallVec<[OutputSpec; 2]>>>()?;
            let work = Work::Sort(Sort { descending: false, values, indices, nth: None });
            list.push(coverage_row_for_call(op, "last axis", dtype, &[input(&[1000, 1000])?], &outputs, work));
        }
        for (op, indices) in [(segments::SEGMENT_SORT, false), (segments::SEGMENT_ARGSORT, true)] {
            let inputs = [input(&[1000])?, array(device, DType::I64, Layout::contiguous(&[101])?)?];
            let output = output_spec(if indices { DType::I64 } else { dtype }, &[1000])?;
            list.push(coverage_row_for_call(
                op,
                "segments",
                dtype,
                &inputs,
                &[output],
                Work::SegmentSort(call::SegmentSort { indices, longest: 20 }),
            ));
        }
        let condition = Program::identity(DType::Bool);
        let mask = array(device, DType::Bool, Layout::contiguous(&[1000])?)?;
        let work = Work::Select(call::Select { program: &condition, values: true, indices: false });
        list.push(coverage_row_for_call(
            selections::EXTRACT,
            "values",
            dtype,
            &[mask, input(&[1000])?],
            &[output_spec(dtype, &[1000])?],
            work,
        ));
        let truth = conversion_program(dtype, DType::Bool);
        let work = Work::Select(call::Select { program: &truth, values: false, indices: true });
        list.push(coverage_row_for_call(
            selections::FLATNONZERO,
            "indices",
            dtype,
            &[input(&[1000])?],
            &[output_spec(DType::I64, &[1000])?],
            work,
        ));
        if !dtype.is_complex() {
            let program = conversion_program(dtype, DType::F64);
            let inputs = [input(&[1000])?, array(device, DType::F64, Layout::contiguous(&[11])?)?];
            for (case, even) in [("even edges", true), ("edges", false)] {
                let work = Work::Histogram(call::Histogram { program: &program, binning: Binning::Edges { even } });
                list.push(coverage_row_for_call(histograms::HISTOGRAM, case, dtype, &inputs, &[output_spec(DType::I64, &[10])?], work));
            }
        }
        if !dtype.is_inexact() {
            let program = conversion_program(dtype, DType::I64);
            let inputs = [input(&[1000])?, array(device, DType::F64, Layout::contiguous(&[1000])?)?];
            for (case, weighted) in [("counts", false), ("weights", true)] {
                let out = output_spec(if weighted { DType::F64 } else { DType::I64 }, &[10])?;
                let inputs = if weighted { &inputs[..] } else { &inputs[..1] };
                let work = Work::Histogram(call::Histogram { program: &program, binning: Binning::Number { weighted } });
                list.push(coverage_row_for_call(histograms::BINCOUNT, case, dtype, inputs, &[out], work));
            }
        }
    }
    Ok(list)
}

fn output_spec(dtype: DType, shape: &[usize]) -> Result<OutputSpec> {
    OutputSpec::contiguous(dtype, shape)
}

/// Returns a program that converts its input from dtype `from` to dtype `to`.
fn conversion_program(from: DType, to: DType) -> Program {
    let mut program = Program::identity(from);
    if from != to {
        let out = program.push_step(cuprum_core::StepKind::Cast, to, &[0]);
        program.outputs[0] = out;
    }
    program
}

fn coverage_row_for_call(
    op: Op,
    case: &'static str,
    dtype: DType,
    inputs: &[StoredArray],
    outputs: &[OutputSpec],
    work: Work,
) -> CoverageRow {
    with_call(op, inputs, outputs, work, |call| {
        let declined = reason(|| check_cub_supports_call(call)).err();
        CoverageRow { family: call.family(), op, case, dtype, declined }
    })
}

/// Returns the reason for which the `request_for_call` function of the call's family declines `call`, if it does. Assumes that the inputs
/// of the call are aligned to 256 bytes.
fn check_cub_supports_call(call: &Call) -> std::result::Result<(), DeclineReason> {
    let addresses = vec![256; call.inputs.len()];
    match call.family() {
        Family::Reduce if matches!(call.work, Work::Segments(call::SegmentReduction { .. })) => {
            segment::request::segment_request_for_call(call).map(|_| ())
        }
        Family::Reduce | Family::Custom => reduce::request::reduce_request_for_call(call, &addresses).map(|_| ()),
        Family::Scan => scan::request::scan_request_for_call(call).map(|_| ()),
        Family::Sort => sort::request::sort_request_for_call(call).map(|_| ()),
        Family::Select => select::request::select_request_for_call(call, &addresses).map(|_| ()),
        Family::Histogram => histogram::request::histogram_request_for_call(call, &addresses).map(|_| ()),
        _ => Err(DeclineReason::new("the family is not supported")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_contains_known_cases() {
        let table = coverage_table().unwrap();
        let find = |op: Op, case: &str, dtype: DType| {
            let found = table.iter().filter(|c| c.op == op && c.case == case && c.dtype == dtype).collect::<Vec<_>>();
            assert_eq!(found.len(), 1, "{} {case} {dtype}", op.name());
            found[0].declined.clone()
        };
        assert_eq!(find(reductions::SUM, "everything", DType::BF16), None);
        assert!(find(reductions::SUM, "first axis", DType::F32).unwrap().contains("not the last"));
        assert_eq!(find(USER_MAX_OP, "last axis", DType::I32), None);
        assert_eq!(find(REDUCTION_KERNEL, "everything", DType::C128), None);
        assert!(find(REDUCTION_KERNEL, "first axis", DType::Bool).unwrap().contains("not the last"));
        assert_eq!(find(reductions::SEGMENT_SUM, "segments", DType::F16), None);
        assert_eq!(find(reductions::SEGMENT_MIN, "segments", DType::Bool), None);
        assert!(find(reductions::SEGMENT_MAX, "segments", DType::C64).unwrap().contains("only added and multiplied"));
        assert!(find(reductions::SEGMENT_SUM, "few values", DType::I8).unwrap().contains("too few for three kernels"));
        assert_eq!(find(scans::CUMSUM, "first axis", DType::F16), None);
        assert!(find(scans::CUMMAX, "last axis", DType::C64).unwrap().contains("only added and multiplied"));
        assert_eq!(find(sorts::ARGSORT, "last axis", DType::C64), None);
        assert_eq!(find(sorts::SORT, "last axis", DType::C128), None);
        assert!(find(segments::SEGMENT_SORT, "segments", DType::F32).unwrap().contains("only the base accelerator"));
        assert_eq!(find(selections::EXTRACT, "values", DType::C128), None);
        assert_eq!(find(histograms::HISTOGRAM, "even edges", DType::U8), None);
        assert!(find(histograms::BINCOUNT, "weights", DType::I32).unwrap().contains("weights"));
    }
}
