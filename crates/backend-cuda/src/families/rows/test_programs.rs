//! Programs of well-known row expressions, as the core crate builds them, for compile checks of their kernels without a device.

use cuprum_core::ops::elementwise::{ADD, DIVIDE, EXP, LOG, MULTIPLY, SQRT, SUBTRACT};
use cuprum_core::ops::reduce::{MAX, MIN, SUM};
use cuprum_core::{Layout, Scalar, StepKind};

use super::*;

fn push_op(p: &mut Expression, op: Op, dtype: DType, args: &[u16]) -> u16 {
    p.push_step(StepKind::Apply(op), dtype, args)
}

/// Appends to the program `p` the steps `d = a - max(a)`, `exp(d)` and `sum(exp(d))` along rows, and returns the indices of these three
/// steps.
fn push_softmax_steps(p: &mut Expression, dtype: DType) -> [u16; 3] {
    let half = matches!(dtype, DType::F16 | DType::BF16);
    let a = p.push_step(StepKind::Input(0), dtype, &[]);
    let max = p.push_step(StepKind::Fold(MAX), dtype, &[a]);
    let distance = push_op(p, SUBTRACT, dtype, &[a, max]);
    let e = push_op(p, EXP, dtype, &[distance]);
    let mut sum = p.push_step(StepKind::Fold(SUM), if half { DType::F32 } else { dtype }, &[e]);
    if half {
        sum = p.push_step(StepKind::Cast, dtype, &[sum]);
    }
    [distance, e, sum]
}

pub fn softmax(dtype: DType) -> Expression {
    let mut p = Expression::default();
    let [_, e, sum] = push_softmax_steps(&mut p, dtype);
    let out = push_op(&mut p, DIVIDE, dtype, &[e, sum]);
    p.outputs.push(out);
    p
}

/// Returns the program `v / sum(v)` with `v = a * take(table, indices)`.
pub fn take_divided_by_sum() -> Expression {
    let mut p = codegen::test_programs::take_program(DType::F32, DType::I32);
    let value = p.outputs[0];
    let sum = p.push_step(StepKind::Fold(SUM), DType::F32, &[value]);
    p.outputs[0] = push_op(&mut p, DIVIDE, DType::F32, &[value, sum]);
    p
}

pub fn log_softmax(dtype: DType) -> Expression {
    let mut p = Expression::default();
    let [distance, _, sum] = push_softmax_steps(&mut p, dtype);
    let log = push_op(&mut p, LOG, dtype, &[sum]);
    let out = push_op(&mut p, SUBTRACT, dtype, &[distance, log]);
    p.outputs.push(out);
    p
}

pub fn logsumexp(dtype: DType) -> Expression {
    let mut p = Expression::default();
    let [_, _, sum] = push_softmax_steps(&mut p, dtype);
    let log = push_op(&mut p, LOG, dtype, &[sum]);
    let out = push_op(&mut p, ADD, dtype, &[log, 1]);
    p.outputs.push(out);
    p
}

/// Returns the program `(a - mean) / sqrt(var + epsilon) * gamma + beta`, which computes in float32 if `dtype` is a 16-bit float.
pub fn layer_norm(dtype: DType) -> Expression {
    let mut p = Expression::default();
    let work = if dtype.itemsize() == 2 { DType::F32 } else { dtype };
    let input = |p: &mut Expression, k| {
        let x = p.push_step(StepKind::Input(k), dtype, &[]);
        if work == dtype { x } else { p.push_step(StepKind::Cast, work, &[x]) }
    };
    let x = input(&mut p, 0);
    let sum = p.push_step(StepKind::Fold(SUM), work, &[x]);
    let count = p.push_param(Scalar::Float(7.0), work);
    let mean = push_op(&mut p, DIVIDE, work, &[sum, count]);
    let distance = push_op(&mut p, SUBTRACT, work, &[x, mean]);
    let squares = p.push_squared_distance_sum(x, 7);
    let variance = p.push_step_unless_present(StepKind::Apply(DIVIDE), work, &[squares, count]);
    let epsilon = p.push_param(Scalar::Float(1e-5), work);
    let variance = push_op(&mut p, ADD, work, &[variance, epsilon]);
    let std = push_op(&mut p, SQRT, work, &[variance]);
    let normal = push_op(&mut p, DIVIDE, work, &[distance, std]);
    let (gamma, beta) = (input(&mut p, 1), input(&mut p, 2));
    let scaled = push_op(&mut p, MULTIPLY, work, &[normal, gamma]);
    let mut out = push_op(&mut p, ADD, work, &[scaled, beta]);
    if work != dtype {
        out = p.push_step(StepKind::Cast, dtype, &[out]);
    }
    p.outputs.push(out);
    p
}

pub fn min_max_scaling(dtype: DType) -> Expression {
    let mut p = Expression::identity(dtype);
    let [min, max] = [MIN, MAX].map(|op| p.push_step(StepKind::Fold(op), dtype, &[0]));
    let (above, range) = (push_op(&mut p, SUBTRACT, dtype, &[0, min]), push_op(&mut p, SUBTRACT, dtype, &[max, min]));
    p.outputs[0] = push_op(&mut p, DIVIDE, dtype, &[above, range]);
    p
}

pub fn variance(dtype: DType) -> Expression {
    let work = if dtype.itemsize() == 2 { DType::F32 } else { dtype };
    let mut p = Expression::identity(dtype);
    let x = if work == dtype { 0 } else { p.push_step(StepKind::Cast, work, &[0]) };
    p.outputs[0] = p.push_squared_distance_sum(x, 7);
    p
}

/// Returns a program with the minimum and the product of each row.
pub fn min_and_product(dtype: DType) -> Expression {
    let mut p = Expression::identity(dtype);
    let value = if dtype == DType::Bool { DType::I64 } else { dtype };
    let x = if value == dtype { 0 } else { p.push_step(StepKind::Cast, value, &[0]) };
    let product = p.push_step(
        StepKind::Fold(cuprum_core::ops::reduce::PROD),
        if value.itemsize() == 2 && value.is_inexact() { DType::F32 } else { value },
        &[x],
    );
    p.outputs[0] = p.push_step(StepKind::Fold(MIN), dtype, &[0]);
    p.outputs.push(product);
    p
}

/// Returns the name and source of the kernel of `program` for rows of `length` elements. `what` describes the program. `n` selects the
/// layout of the first input. Each other input is one row, which all rows share. The last `results` outputs have one element per row.
pub fn named_source(what: &str, program: &Expression, length: usize, results: usize, n: usize) -> Option<(String, String)> {
    let inputs = program.steps.iter().filter(|s| matches!(s.kind, StepKind::Input(_))).count();
    let shape = [300, length];
    let x = match n % 3 {
        0 => Layout::contiguous(&shape).ok()?,
        1 => Layout::contiguous(&[length]).ok()?.broadcast_to(&shape).ok()?,
        _ => Layout::strided(&shape, &[1 << 31, 1], 0).ok()?,
    };
    let weight = Layout::contiguous(&[length]).ok()?.broadcast_to(&shape).ok()?;
    let result = Layout::contiguous(&[300, 1]).ok()?.broadcast_to(&shape).ok()?;
    let out = Layout::contiguous(&shape).ok()?;
    let of_output = |o: usize| if o + results >= program.outputs.len() { &result } else { &out };
    let operands: Vec<&Layout> =
        (0..inputs).map(|k| if k == 0 { &x } else { &weight }).chain((0..program.outputs.len()).map(of_output)).collect();
    let plan = RowLoopPlan::new(&shape, 1, &operands)?;
    let stages = RowStages::assign_steps(program, 0);
    let shape = RowKernelConfig::select_row_kernel(&stages, program, &plan, &vec![256 + 4 * (n as u64 % 2); inputs]).ok()?;
    let text = shape.cuda_source(program, &stages).unwrap_or_else(|op| format!("#error \"no row for {op}\"\n"));
    Some((format!("rows<{what}, {}, {length}, {shape:?}>", program.steps[0].dtype), text))
}
