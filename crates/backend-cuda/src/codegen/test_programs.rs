//! Example programs that together use every entry of the C++ expression table ([`cpp_expression`](super::cpp_expression)). Compile tests
//! build the kernels of these programs without a device.

use cuprum_core::op::{ArgumentType, MAX_ARITY};
use cuprum_core::ops::take::FUSED_TAKE;
use cuprum_core::{DType, Family, Op, Program, Scalar, StepKind};

/// Returns programs that together apply every elementwise operation to every dtype, and convert every dtype to every dtype.
pub fn example_programs() -> Vec<Program> {
    DType::ALL.into_iter().flat_map(|d| operation_programs(d).into_iter().chain([cast_program(d)])).collect()
}

/// Returns programs that apply every operation of the expression table to arguments of `dtype`, several operations per program.
fn operation_programs(dtype: DType) -> Vec<Program> {
    let ops: Vec<(Op, DType)> =
        Op::all().filter(|op| op.family() == Family::Map).filter_map(|op| Some((op, result_dtype(op, dtype)?))).collect();
    ops.chunks(24)
        .map(|ops| {
            let mut p = Program::default();
            let most = ops.iter().map(|(op, _)| op.arity()).max().unwrap_or(1);
            let a = p.push_step(StepKind::Input(0), dtype, &[]);
            let b = if most > 1 { p.push_step(StepKind::Input(1), dtype, &[]) } else { a };
            let (c, is_true) = if most > 2 {
                p.params.push(Scalar::Int(1));
                (p.push_step(StepKind::Param(0), dtype, &[]), p.push_step(StepKind::Cast, DType::Bool, &[a]))
            } else {
                (a, a)
            };
            for &(op, result) in ops {
                let args = if op.name() == "where" { [is_true, b, c] } else { [a, b, c] };
                let step = p.push_step(StepKind::Apply(op), result, &args[..op.arity()]);
                p.outputs.push(step);
            }
            p
        })
        .collect()
}

/// Returns the result dtype of `op` on arguments of `dtype`. Returns `None` if `op` does not accept `dtype`, or converts arguments of
/// `dtype` to another dtype first.
fn result_dtype(op: Op, dtype: DType) -> Option<DType> {
    let args = [ArgumentType::Array(dtype); MAX_ARITY];
    let signature = op.0.rule?.resolve_dtypes(op.name(), &args[..op.arity()]).ok()?;
    (op.name() == "where" || signature.args[0] == dtype).then_some(signature.result)
}

fn cast_program(dtype: DType) -> Program {
    let mut p = Program::identity(dtype);
    p.outputs.clear();
    for to in DType::ALL {
        let step = p.push_step(StepKind::Cast, to, &[0]);
        p.outputs.push(step);
    }
    p
}

/// Returns the program `a * b + s` with inputs of dtypes `a` and `b`, a scalar `s`, and a result of dtype `to`.
pub fn multiply_add_program(a: DType, b: DType, to: DType) -> Program {
    use cuprum_core::ops::elementwise as core;
    let mut p = Program::default();
    let x = p.push_step(StepKind::Input(0), a, &[]);
    let y = p.push_step(StepKind::Input(1), b, &[]);
    let (x, y) = (p.push_step(StepKind::Cast, to, &[x]), p.push_step(StepKind::Cast, to, &[y]));
    let product = p.push_step(StepKind::Apply(core::MULTIPLY), to, &[x, y]);
    p.params.push(Scalar::Int(1));
    let s = p.push_step(StepKind::Param(0), to, &[]);
    let sum = p.push_step(StepKind::Apply(core::ADD), to, &[product, s]);
    p.outputs.push(sum);
    p
}

/// Returns the program `a * take(x, i)`. The inputs `a` and `x` have the dtype `table`, and the input `i` has the dtype `indices`.
pub fn take_program(table: DType, indices: DType) -> Program {
    use cuprum_core::ops::elementwise::MULTIPLY;
    let mut p = Program::default();
    let a = p.push_step(StepKind::Input(0), table, &[]);
    let first = p.push_step(StepKind::Input(1), table, &[]);
    let index = p.push_step(StepKind::Input(2), indices, &[]);
    let length = p.push_param(Scalar::Int(1), indices);
    let element = p.push_step(StepKind::Apply(FUSED_TAKE), table, &[first, index, length]);
    let product = p.push_step(StepKind::Apply(MULTIPLY), table, &[a, element]);
    p.outputs.push(product);
    p
}
