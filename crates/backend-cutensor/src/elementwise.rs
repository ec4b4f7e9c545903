//! One addition, subtraction or product of two arrays of which one lies across the other: `a + b.T`.
//!
//! Only what is exact: minimum and maximum lose NaN, a complex product is scaled, and where all operands are walked along
//! one and the same axis the base is as fast.

use cuprum_core::call::Work;
use cuprum_core::ops::elementwise::{ADD, MAXIMUM, MINIMUM, MULTIPLY, SUBTRACT};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Call, Op, Outcome, Program, Reason, Result, StepKind};

use crate::handle;
use crate::operation::{Kind, Operation, Tensor, common_type, forward_only};
use crate::sys::Operator;

/// Two arrays of the output's dtype.
pub fn run(call: &Call) -> Result<Outcome> {
    match describe(call) {
        Ok(Binary { operation, first, second, factors }) => {
            handle::run(call, operation, &[&call.inputs[first], &call.inputs[second]], factors)
        }
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

/// `out = factors[0] * inputs[first] op factors[1] * inputs[second]`, where `second` lies as the output does.
#[derive(Debug)]
struct Binary {
    operation: Operation,
    first: usize,
    second: usize,
    factors: [f64; 2],
}

fn describe(call: &Call) -> Result<Binary, Reason> {
    let (Work::Map { program, plan }, [output]) = (&call.work, call.outputs) else {
        return Err(Reason::new("more than one result"));
    };
    let (op, left, right) = operands(program)?;
    let operator = operator(op)?;
    let data = common_type(call)?;
    if op == MULTIPLY && output.dtype.is_complex() {
        return Err(Reason::new("complex product: scaling the operands would turn infinities into NaN"));
    }
    forward_only(call.inputs)?;
    let second = [left, right].into_iter().find(|&n| plan.strides[n] == plan.strides[2]);
    let second = second.ok_or(Reason::new("neither input lies as the output does"))?;
    let first = if second == left { right } else { left };
    let (a, out) = (tensor(plan, first), tensor(plan, 2));
    if !a.lies_across(&out) {
        return Err(Reason::new("no input lies across the output: the base is as fast"));
    }
    // Only the subtracted operand has its sign turned, which is exact.
    let sign = |n: usize| if op == SUBTRACT && n == right { -1.0 } else { 1.0 };
    let factors = [sign(first), sign(second)];
    let operation = Operation { kind: Kind::Binary(operator), data, inputs: [a].into_iter().collect(), output: out };
    Ok(Binary { operation: operation.by_real_parts().check()?, first, second, factors })
}

/// The one operation of a program and the two inputs that it takes.
fn operands(program: &Program) -> Result<(Op, usize, usize), Reason> {
    let mut ops = program.ops();
    let (Some(op), None) = (ops.next(), ops.next()) else {
        return Err(Reason::with(|| format!("{} operations in one expression", program.ops().count())));
    };
    let input = |n: u16| match program.steps.get(n as usize).map(|s| s.kind) {
        Some(StepKind::Input(n)) => Ok(n as usize),
        Some(StepKind::Param(_)) => Err(Reason::new("a scalar operand")),
        _ => Err(Reason::new("a cast of an operand")),
    };
    let applied = program.outputs.first().and_then(|&n| program.steps.get(n as usize));
    match applied.map(|s| (s.kind, s.args())) {
        Some((StepKind::Apply(_), &[l, r])) => match (input(l)?, input(r)?) {
            (l, r) if l == r => Err(Reason::new("one array is both operands")),
            (l, r) => Ok((op, l, r)),
        },
        Some((StepKind::Cast, _)) => Err(Reason::new("a cast of the result")),
        _ => Err(Reason::with(|| format!("{}: not an operation of two arrays", op.name()))),
    }
}

fn operator(op: Op) -> Result<Operator, Reason> {
    match op {
        _ if op == ADD || op == SUBTRACT => Ok(Operator::Add),
        _ if op == MULTIPLY => Ok(Operator::Mul),
        _ if op == MINIMUM || op == MAXIMUM => Err(Reason::with(|| format!("{}: cuTENSOR's loses NaN", op.name()))),
        _ => Err(Reason::with(|| format!("{}: cuTENSOR has no such operator", op.name()))),
    }
}

/// Operand `n` of a loop, its axes as modes.
pub fn tensor(plan: &LoopPlan, n: usize) -> Tensor {
    Tensor::new(plan.dims.iter().zip(&plan.strides[n]).enumerate().map(|(axis, (&extent, &stride))| (axis, extent, stride)))
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::elementwise::DIVIDE;
    use cuprum_core::{Array, DType, Scalar, StoredArray};

    use super::*;
    use crate::sys::DataType;
    use crate::testing::{array, binary, contiguous, negated, output, reason, with_call};

    fn describe_map(program: &Program, op: Op, inputs: &[StoredArray]) -> Result<Binary, String> {
        let outputs = [output(inputs[0].dtype(), inputs[0].shape())];
        let layouts: Vec<_> = inputs.iter().map(|a| a.layout()).chain([&outputs[0].layout]).collect();
        let plan = LoopPlan::new(&layouts);
        with_call(op, inputs, &outputs, Work::Map { program, plan: &plan }, |call| reason(|| describe(call)))
    }

    fn across(dtype: DType) -> [StoredArray; 2] {
        [array(dtype, contiguous(&[4, 5])), array(dtype, contiguous(&[5, 4]).transpose())]
    }

    #[test]
    fn a_plus_b_transposed() {
        let b = describe_map(&binary(ADD, DType::F32, [0, 1]), ADD, &across(DType::F32)).unwrap();
        assert_eq!((b.first, b.second, b.factors), (1, 0, [1.0, 1.0]));
        assert_eq!(b.operation.kind, Kind::Binary(Operator::Add));
        assert_eq!(b.operation.inputs[0], Tensor::new([(0, 4, 1), (1, 5, 4)]));
        assert_eq!(b.operation.output, Tensor::new([(0, 4, 5), (1, 5, 1)]));
    }

    #[test]
    fn subtraction_turns_the_right_sign() {
        for (order, factors) in [([0, 1], [-1.0, 1.0]), ([1, 0], [1.0, -1.0])] {
            let b = describe_map(&binary(SUBTRACT, DType::F64, order), SUBTRACT, &across(DType::F64)).unwrap();
            assert_eq!((b.first, b.factors), (1, factors), "{order:?}");
        }
    }

    #[test]
    fn complex_sums_run_by_parts_products_do_not() {
        let b = describe_map(&binary(ADD, DType::C128, [0, 1]), ADD, &across(DType::C128)).unwrap();
        assert_eq!((b.operation.data, b.operation.output.modes.len()), (DataType::F64, 3));
        let product = describe_map(&binary(MULTIPLY, DType::C64, [0, 1]), MULTIPLY, &across(DType::C64));
        assert!(product.unwrap_err().starts_with("complex product"));
    }

    #[test]
    fn declines() {
        let of = |op, dtype, inputs: &[StoredArray]| describe_map(&binary(op, dtype, [0, 1]), op, inputs).unwrap_err();
        assert_eq!(of(MAXIMUM, DType::F32, &across(DType::F32)), "maximum: cuTENSOR's loses NaN");
        assert_eq!(of(DIVIDE, DType::F32, &across(DType::F32)), "divide: cuTENSOR has no such operator");
        assert_eq!(of(ADD, DType::I32, &across(DType::I32)), "int32: cuTENSOR has no integer types");
        let flat = [array(DType::F32, contiguous(&[4, 5])), array(DType::F32, contiguous(&[4, 5]))];
        assert_eq!(of(ADD, DType::F32, &flat), "no input lies across the output: the base is as fast");
        let both = [across(DType::F32)[1].clone(), across(DType::F32)[1].clone()];
        assert_eq!(of(ADD, DType::F32, &both), "neither input lies as the output does");
        let flipped = [across(DType::F32)[0].clone(), array(DType::F32, contiguous(&[5, 4]).transpose().flip(&[0]))];
        assert_eq!(of(ADD, DType::F32, &flipped), "negative stride along axis 0 of input 1");
        let one = &across(DType::F32)[..1];
        assert_eq!(
            describe_map(&negated(DType::F32), cuprum_core::ops::elementwise::NEGATIVE, one).unwrap_err(),
            "negative: not an operation of two arrays"
        );
        assert_eq!(describe_map(&binary(ADD, DType::F32, [0, 0]), ADD, one).unwrap_err(), "one array is both operands");
        let mut scaled = Program::identity(DType::F32);
        scaled.params.push(Scalar::Float(2.0));
        let two = scaled.push(StepKind::Param(0), DType::F32, [0; 3]);
        scaled.outputs[0] = scaled.push(StepKind::Apply(MULTIPLY), DType::F32, [0, two, 0]);
        assert_eq!(describe_map(&scaled, MULTIPLY, one).unwrap_err(), "a scalar operand");
        let mut chain = binary(ADD, DType::F32, [0, 1]);
        chain.outputs[0] = chain.push(StepKind::Apply(ADD), DType::F32, [2, 0, 0]);
        assert_eq!(describe_map(&chain, ADD, &across(DType::F32)).unwrap_err(), "2 operations in one expression");
    }
}
