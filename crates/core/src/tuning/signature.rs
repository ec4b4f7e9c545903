//! Which calls are alike: family, operation, dtypes, fused expression, and the class of layout and size. Sizes are classed by
//! powers of two, strides by whether they are 0, 1 or something else.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::array::Array;
use crate::call::{Call, Work};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::Op;
use crate::precision::matmul_precision;
use crate::program::{Program, StepKind};

/// The signature of a call as a number, the same in every process of one version of cuprum.
pub(super) fn key(call: &Call) -> Result<u64> {
    let mut h = FxHasher::default();
    (call.family() as u8).hash(&mut h);
    op(call.op, &mut h);
    call.device.ordinal().hash(&mut h);
    for a in call.inputs {
        (a.dtype() as u8).hash(&mut h);
    }
    for o in call.outputs {
        (o.dtype as u8).hash(&mut h);
    }
    if let Some(p) = call.program() {
        program(p, &mut h);
    }
    match &call.work {
        Work::Map { plan, .. } => axes(&plan.dims, &plan.strides, &mut h),
        Work::Reduce { plan, .. } => {
            axes(&plan.kept, &plan.kept_strides, &mut h);
            axes(&plan.reduced, &plan.reduced_strides, &mut h);
        }
        Work::Rows { plan, .. } => {
            axes(&plan.outer, &plan.outer_strides, &mut h);
            axes(&[plan.length], &[&plan.row_strides[..]], &mut h);
        }
        Work::Scan { plan, .. } => {
            axes(&[plan.len], &[&plan.axis_strides[..]], &mut h);
            axes(&plan.lanes, &plan.lane_strides, &mut h);
        }
        Work::Contract { plan } => {
            let dtype = call.inputs.first().map_or(DType::F64, Array::dtype);
            matmul_precision()?.of(dtype).hash(&mut h);
            for modes in [&plan.a, &plan.b, &plan.out] {
                modes.hash(&mut h);
            }
            layouts(call, &mut h);
        }
        Work::Histogram { binning, .. } => {
            binning.hash(&mut h);
            layouts(call, &mut h);
        }
        _ => layouts(call, &mut h),
    }
    Ok(h.finish())
}

/// The number of a choice within an accelerator.
pub(super) fn within(key: u64, choice: &str) -> u64 {
    let mut h = FxHasher::default();
    (key, choice).hash(&mut h);
    h.finish()
}

/// Operations of other crates have no number of their own.
fn op(op: Op, h: &mut FxHasher) {
    if op.is_foreign() { op.name().hash(h) } else { op.index().hash(h) }
}

fn program(p: &Program, h: &mut FxHasher) {
    for step in &p.steps {
        step.kind.code().hash(h);
        if let StepKind::Apply(applied) = step.kind {
            op(applied, h);
        }
        (step.dtype as u8, step.args()).hash(h);
    }
    p.outputs.hash(h);
}

fn size_class(extent: usize) -> u32 {
    usize::BITS - extent.leading_zeros()
}

fn stride_class(stride: isize) -> u8 {
    match stride {
        0 | 1 => stride as u8,
        _ => 2,
    }
}

fn axes(dims: &[usize], strides: &[impl AsRef<[isize]>], h: &mut FxHasher) {
    dims.len().hash(h);
    dims.iter().for_each(|&n| size_class(n).hash(h));
    strides.iter().flat_map(|s| s.as_ref()).for_each(|&s| stride_class(s).hash(h));
}

fn layouts(call: &Call, h: &mut FxHasher) {
    let mut layout = |l: &Layout| axes(l.shape(), &[l.strides()], h);
    call.inputs.iter().for_each(|a| layout(a.layout()));
    call.outputs.iter().for_each(|o| layout(&o.layout));
}
