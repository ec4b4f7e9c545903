//! Sums, differences and products of two or three arrays, at least one of which is transposed relative to the result: `a + b.T`,
//! `(a - b.T) * c`.
//!
//! cuTENSOR serves only expressions that it rounds as NumPy does. A sum of scaled or multiplied operands is declined, because cuTENSOR
//! rounds it once instead of twice. Minimum and maximum are declined, because cuTENSOR's do not propagate NaN. Complex products are
//! declined, because cuTENSOR multiplies each operand by a complex factor, which turns infinities into NaN. If no operand is transposed,
//! the accelerator `cuda` is as fast.

use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::ops::elementwise::{ABS, ADD, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SUBTRACT};
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Call, DType, DeclineReason, Op, Outcome, Program, Result, Scalar, StepKind};
use smallvec::SmallVec;

use crate::handle;
use crate::operation::{CutensorOperation, CutensorOperationKind, OperandDescription, check_positive_strides, common_data_type};
use crate::sys::Operator;

/// Runs an elementwise expression of two or three arrays.
pub fn run_call(call: &Call) -> Result<Outcome> {
    match operation_for_call(call) {
        Ok(TermExpression { operation, terms }) => {
            let arrays: SmallVec<[_; 3]> = terms.iter().map(|t| &call.inputs[t.input]).collect();
            let factors: SmallVec<[f64; 3]> = terms.iter().map(|t| t.factor).collect();
            handle::run_operation(call, operation, &arrays, &factors)
        }
        Err(reason) => Ok(Outcome::Declined(reason)),
    }
}

/// One operand of an expression: `factor * |input|` or `factor * input`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct ScaledOperand {
    input: usize,
    unary: Operator,
    factor: f64,
}

/// An expression that one cuTENSOR call computes: `A op C` or `(A op B) op C`. C has the strides of the output.
#[derive(Debug)]
struct TermExpression {
    operation: CutensorOperation,
    terms: SmallVec<[ScaledOperand; 3]>,
}

fn operation_for_call(call: &Call) -> Result<TermExpression, DeclineReason> {
    let (Work::Map(call::Map { program, plan }), [output]) = (&call.work, call.outputs) else {
        return Err(DeclineReason::new("more than one result"));
    };
    if plan.dims.len() < 2 {
        return Err(DeclineReason::new("no input is transposed relative to the output; the base accelerator is as fast"));
    }
    let expression = ExpressionTree { program, dtype: output.dtype };
    let (operators, mut terms) = expression.parse_program()?;
    let data = common_data_type(call)?;
    if operators.contains(&Operator::Mul) && output.dtype.is_complex() {
        return Err(DeclineReason::new("complex product: scaling the operands would turn infinities into NaN"));
    }
    check_positive_strides(call.inputs)?;
    let has_output_strides = |t: &ScaledOperand| plan.strides[t.input] == plan.strides[call.inputs.len()];
    if let [first, last] = &mut terms[..]
        && !has_output_strides(last)
    {
        std::mem::swap(first, last);
    }
    if !terms.last().is_some_and(has_output_strides) {
        return Err(DeclineReason::new(match terms.len() {
            2 => "neither input has the strides of the output",
            _ => "the last operand does not have the strides of the output",
        }));
    }
    let out = describe_operand(plan, call.inputs.len());
    let inputs: SmallVec<[OperandDescription; 2]> = terms[..terms.len() - 1].iter().map(|t| describe_operand(plan, t.input)).collect();
    if !inputs.iter().any(|input| input.is_transposed_to(&out)) {
        return Err(DeclineReason::new("no input is transposed relative to the output; the base accelerator is as fast"));
    }
    let unary = |n: usize| terms[n].unary;
    let kind = match operators[..] {
        [op] => CutensorOperationKind::Binary { op, unary: [unary(0), unary(1)] },
        [inner, outer] => CutensorOperationKind::Trinary { inner, outer, unary: [unary(0), unary(1), unary(2)] },
        _ => return Err(DeclineReason::new("no operation")),
    };
    let operation = CutensorOperation { kind, data, inputs, output: out };
    Ok(TermExpression { operation: operation.with_real_pairs().check_operands()?, terms })
}

/// Operators and terms of an expression. The inner operator comes first; the terms are in evaluation order.
type OperatorsAndTerms = (SmallVec<[Operator; 2]>, SmallVec<[ScaledOperand; 3]>);

/// A fused program as an expression tree.
struct ExpressionTree<'a> {
    program: &'a Program,
    dtype: DType,
}

impl ExpressionTree<'_> {
    /// Returns a reason to decline an expression of 16-bit floats. cuTENSOR computes in float32 and does not round after each operation.
    fn check_not_16_bit_floats(&self) -> Result<(), DeclineReason> {
        match self.dtype {
            DType::F16 | DType::BF16 => Err(DeclineReason::new("16-bit floats are rounded after each operation")),
            _ => Ok(()),
        }
    }

    /// Converts `scalar` to a factor of the operands' dtype, or returns a reason to decline the call.
    ///
    /// A factor of 0 is declined. cuTENSOR does not read an operand with that factor, but NaN times 0 must be NaN.
    fn scalar_to_factor(&self, scalar: Scalar) -> Result<f64, DeclineReason> {
        self.check_not_16_bit_floats()?;
        let value = match self.dtype {
            DType::F32 => scalar.as_f64() as f32 as f64,
            DType::F64 => scalar.as_f64(),
            _ => return Err(DeclineReason::with_text(|| format!("a scaled operand of {}", self.dtype))),
        };
        match value.is_finite() && value != 0.0 {
            true => Ok(value),
            false => Err(DeclineReason::with_text(|| format!("an operand is scaled by {value}"))),
        }
    }

    fn step_kind_and_args(&self, n: u16) -> Option<(StepKind, &[u16])> {
        self.program.steps.get(n as usize).map(|s| (s.kind, s.args()))
    }

    /// Splits the program into operators and terms.
    fn parse_program(&self) -> Result<OperatorsAndTerms, DeclineReason> {
        let Some((kind, args)) = self.program.outputs.first().and_then(|&n| self.step_kind_and_args(n)) else {
            return Err(DeclineReason::new("no result"));
        };
        let (op, left, right) = match (kind, args) {
            (StepKind::Apply(op), &[left, right]) => (op, left, right),
            (StepKind::Cast, _) => return Err(DeclineReason::new("a cast of the result")),
            (StepKind::Apply(op), _) => return Err(DeclineReason::with_text(|| format!("{}: not an operation of two arrays", op.name()))),
            _ => return Err(DeclineReason::new("not an operation of two arrays")),
        };
        let operator = cutensor_operator(op)?;
        let is_pair = |n: u16| matches!(self.step_kind_and_args(n), Some((StepKind::Apply(op), &[l, r])) if !self.is_multiplication_by_scalar(op, l, r));
        let (mut operators, mut terms): OperatorsAndTerms = Default::default();
        match (is_pair(left), is_pair(right)) {
            (false, false) => terms.extend([self.parse_term(left)?, self.parse_term(right)?]),
            (true, true) => return Err(DeclineReason::new("four operands")),
            (true, false) => {
                self.parse_binary_step(left, operator, &mut operators, &mut terms)?;
                terms.push(self.parse_term(right)?);
            }
            (false, true) if op == SUBTRACT => return Err(DeclineReason::new("the subtracted operand is a sum or product")),
            (false, true) => {
                self.parse_binary_step(right, operator, &mut operators, &mut terms)?;
                terms.push(self.parse_term(left)?);
            }
        }
        operators.push(operator);
        if op == SUBTRACT
            && let Some(last) = terms.last_mut()
        {
            last.factor = -last.factor;
        }
        check_sum_is_unscaled(operator, &terms)?;
        let inputs = |n: usize| terms[..n].iter().map(|t| t.input);
        if terms.iter().enumerate().any(|(n, t)| inputs(n).any(|other| other == t.input)) {
            return Err(DeclineReason::new("an array occurs more than once"));
        }
        Ok((operators, terms))
    }

    /// Parses step `n` of the program, an operation on two terms. Appends its operator to `operators` and both terms to `terms`. `outer` is
    /// the operator that combines the result with a third term.
    fn parse_binary_step(
        &self,
        n: u16,
        outer: Operator,
        operators: &mut SmallVec<[Operator; 2]>,
        terms: &mut SmallVec<[ScaledOperand; 3]>,
    ) -> Result<(), DeclineReason> {
        let Some((StepKind::Apply(op), &[left, right])) = self.step_kind_and_args(n) else { return Err(DeclineReason::new("not a pair")) };
        self.check_not_16_bit_floats()?;
        let inner = cutensor_operator(op)?;
        if (inner, outer) == (Operator::Mul, Operator::Add) {
            return Err(DeclineReason::new("a product in a sum would be rounded once instead of twice"));
        }
        let (first, mut second) = (self.parse_term(left)?, self.parse_term(right)?);
        if op == SUBTRACT {
            second.factor = -second.factor;
        }
        check_sum_is_unscaled(inner, &[first, second])?;
        operators.push(inner);
        terms.extend([first, second]);
        Ok(())
    }

    /// Returns whether `op` is a multiplication by a scalar. `left` and `right` are the program steps of its operands.
    fn is_multiplication_by_scalar(&self, op: Op, left: u16, right: u16) -> bool {
        let is_param = |n: u16| matches!(self.step_kind_and_args(n), Some((StepKind::Param(_), _)));
        op == MULTIPLY && (is_param(left) || is_param(right))
    }

    /// Parses step `n` of the program as one array with its sign, absolute value or factor.
    fn parse_term(&self, n: u16) -> Result<ScaledOperand, DeclineReason> {
        match self.step_kind_and_args(n) {
            Some((StepKind::Input(input), _)) => Ok(ScaledOperand { input: input as usize, unary: Operator::Identity, factor: 1.0 }),
            Some((StepKind::Apply(op), &[x])) if op == NEGATIVE => self.parse_term(x).map(|t| ScaledOperand { factor: -t.factor, ..t }),
            Some((StepKind::Apply(op), &[x])) if op == ABS => match self.parse_term(x)? {
                t if t.factor.abs() == 1.0 => Ok(ScaledOperand { unary: Operator::Abs, factor: 1.0, ..t }),
                _ => Err(DeclineReason::new("the absolute value of a product")),
            },
            Some((StepKind::Apply(op), &[left, right])) if self.is_multiplication_by_scalar(op, left, right) => {
                let (scalar, x) =
                    if matches!(self.step_kind_and_args(left), Some((StepKind::Param(_), _))) { (left, right) } else { (right, left) };
                let Some((StepKind::Param(p), _)) = self.step_kind_and_args(scalar) else {
                    return Err(DeclineReason::new("a scalar operand"));
                };
                let value = self.program.params.get(p as usize).ok_or(DeclineReason::new("a scalar operand"))?;
                match (self.scalar_to_factor(*value)?, self.parse_term(x)?) {
                    (value, t) if t.factor.abs() == 1.0 => Ok(ScaledOperand { factor: t.factor * value, ..t }),
                    _ => Err(DeclineReason::new("an operand is scaled twice")),
                }
            }
            Some((StepKind::Apply(op), _)) => Err(DeclineReason::with_text(|| format!("{} of an operand", op.name()))),
            Some((StepKind::Param(_), _)) => Err(DeclineReason::new("a scalar operand")),
            _ => Err(DeclineReason::new("a cast of an operand")),
        }
    }
}

/// Returns a reason to decline if `operator` is a sum and one of `terms` is scaled by a factor.
fn check_sum_is_unscaled(operator: Operator, terms: &[ScaledOperand]) -> Result<(), DeclineReason> {
    match operator == Operator::Add && terms.iter().any(|t| t.factor.abs() != 1.0) {
        true => Err(DeclineReason::new("a scaled operand of a sum would be rounded once instead of twice")),
        false => Ok(()),
    }
}

/// Returns the cuTENSOR operator of an operation.
fn cutensor_operator(op: Op) -> Result<Operator, DeclineReason> {
    match op {
        _ if op == ADD || op == SUBTRACT => Ok(Operator::Add),
        _ if op == MULTIPLY => Ok(Operator::Mul),
        _ if op == MINIMUM || op == MAXIMUM => {
            Err(DeclineReason::with_text(|| format!("{}: cuTENSOR's does not propagate NaN", op.name())))
        }
        _ => Err(DeclineReason::with_text(|| format!("{}: cuTENSOR has no such operator", op.name()))),
    }
}

/// Returns the description of operand `n` of the loop `plan`, with the loop's axes as modes.
pub fn describe_operand(plan: &LoopPlan, n: usize) -> OperandDescription {
    OperandDescription::from_axes(
        plan.dims.iter().zip(&plan.strides[n]).enumerate().map(|(axis, (&extent, &stride))| (axis, extent, stride)),
    )
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::elementwise::DIVIDE;
    use cuprum_core::{Array, StoredArray};

    use super::*;
    use crate::sys::DataType;
    use crate::testing::{array, binary, contiguous, negated, output, reason, with_call};

    fn describe_map(program: &Program, inputs: &[StoredArray]) -> Result<TermExpression, String> {
        let outputs = [output(inputs[0].dtype(), inputs[0].shape())];
        let layouts: Vec<_> = inputs.iter().map(|a| a.layout()).chain([&outputs[0].layout]).collect();
        let plan = LoopPlan::new(&layouts);
        let op = program.ops().last().unwrap();
        with_call(op, inputs, &outputs, Work::Map(call::Map { program, plan: &plan }), |call| reason(|| operation_for_call(call)))
    }

    /// Returns three arrays, of which the second is transposed.
    fn one_transposed(dtype: DType) -> [StoredArray; 3] {
        let plain = || array(dtype, contiguous(&[4, 5]));
        [plain(), array(dtype, contiguous(&[5, 4]).transpose()), plain()]
    }

    fn pair(dtype: DType) -> [StoredArray; 2] {
        let [a, b, _] = one_transposed(dtype);
        [a, b]
    }

    /// Builds `outer(inner(x0, x1), x2)`, or `outer(x2, inner(x0, x1))`.
    fn nested(inner: Op, outer: Op, dtype: DType, pair_on_the_right: bool) -> Program {
        let mut program = Program::default();
        for n in 0..3 {
            program.push_step(StepKind::Input(n), dtype, &[]);
        }
        let pair = program.push_step(StepKind::Apply(inner), dtype, &[0, 1]);
        let args = if pair_on_the_right { [2, pair] } else { [pair, 2] };
        let result = program.push_step(StepKind::Apply(outer), dtype, &args);
        program.outputs.push(result);
        program
    }

    /// Builds `op(unary(x0), x1)`, or `op(x0 * factor, x1)` without a unary operation.
    fn with_unary(op: Op, unary: Option<Op>, factor: f64, dtype: DType) -> Program {
        let mut program = Program::default();
        for n in 0..2 {
            program.push_step(StepKind::Input(n), dtype, &[]);
        }
        let first = match unary {
            Some(unary) => program.push_step(StepKind::Apply(unary), dtype, &[0]),
            None => {
                let scalar = program.push_param(Scalar::Float(factor), dtype);
                program.push_step(StepKind::Apply(MULTIPLY), dtype, &[0, scalar])
            }
        };
        let result = program.push_step(StepKind::Apply(op), dtype, &[first, 1]);
        program.outputs.push(result);
        program
    }

    fn factors(expression: &TermExpression) -> Vec<(usize, f64)> {
        expression.terms.iter().map(|t| (t.input, t.factor)).collect()
    }

    #[test]
    fn a_plus_b_transposed() {
        let b = describe_map(&binary(ADD, DType::F32, [0, 1]), &pair(DType::F32)).unwrap();
        assert_eq!(factors(&b), [(1, 1.0), (0, 1.0)]);
        assert_eq!(b.operation.kind, CutensorOperationKind::Binary { op: Operator::Add, unary: [Operator::Identity; 2] });
        assert_eq!(b.operation.inputs[0], OperandDescription::from_axes([(0, 4, 1), (1, 5, 4)]));
        assert_eq!(b.operation.output, OperandDescription::from_axes([(0, 4, 5), (1, 5, 1)]));
    }

    #[test]
    fn subtraction_negates_the_right_term() {
        for (order, signs) in [([0, 1], [(1, -1.0), (0, 1.0)]), ([1, 0], [(1, 1.0), (0, -1.0)])] {
            let b = describe_map(&binary(SUBTRACT, DType::F64, order), &pair(DType::F64)).unwrap();
            assert_eq!(factors(&b), signs, "{order:?}");
        }
    }

    #[test]
    fn three_operands() {
        let of = |inner, outer, right| describe_map(&nested(inner, outer, DType::F32, right), &one_transposed(DType::F32));
        let t = of(SUBTRACT, MULTIPLY, true).unwrap();
        assert_eq!(factors(&t), [(0, 1.0), (1, -1.0), (2, 1.0)]);
        let unary = [Operator::Identity; 3];
        assert_eq!(t.operation.kind, CutensorOperationKind::Trinary { inner: Operator::Add, outer: Operator::Mul, unary });
        assert_eq!(t.operation.inputs.len(), 2);
        assert_eq!(factors(&of(ADD, SUBTRACT, false).unwrap()), [(0, 1.0), (1, 1.0), (2, -1.0)]);
        assert_eq!(of(ADD, SUBTRACT, true).unwrap_err(), "the subtracted operand is a sum or product");
        assert_eq!(of(MULTIPLY, ADD, false).unwrap_err(), "a product in a sum would be rounded once instead of twice");
        let half = describe_map(&nested(ADD, ADD, DType::F16, false), &one_transposed(DType::F16));
        assert_eq!(half.unwrap_err(), "16-bit floats are rounded after each operation");
        let [a, b, c] = one_transposed(DType::F32);
        let last = describe_map(&nested(ADD, ADD, DType::F32, false), &[a, c, b]);
        assert_eq!(last.unwrap_err(), "the last operand does not have the strides of the output");
    }

    #[test]
    fn signs_absolute_values_and_factors_of_terms() {
        let of = |program| describe_map(&program, &pair(DType::F64));
        let negative = of(with_unary(ADD, Some(NEGATIVE), 1.0, DType::F64)).unwrap();
        assert_eq!(factors(&negative), [(1, 1.0), (0, -1.0)]);
        let absolute = of(with_unary(ADD, Some(ABS), 1.0, DType::F64)).unwrap();
        assert_eq!(
            absolute.operation.kind,
            CutensorOperationKind::Binary { op: Operator::Add, unary: [Operator::Identity, Operator::Abs] }
        );
        assert_eq!(factors(&of(with_unary(MULTIPLY, None, 2.5, DType::F64)).unwrap()), [(1, 1.0), (0, 2.5)]);
        let scaled = of(with_unary(ADD, None, 2.5, DType::F64));
        assert_eq!(scaled.unwrap_err(), "a scaled operand of a sum would be rounded once instead of twice");
        let refused = |factor, dtype| describe_map(&with_unary(MULTIPLY, None, factor, dtype), &pair(dtype)).unwrap_err();
        assert_eq!(refused(0.0, DType::F64), "an operand is scaled by 0", "0 * NaN would be 0");
        assert_eq!(refused(1e-60, DType::F32), "an operand is scaled by 0");
        assert_eq!(refused(f64::INFINITY, DType::F64), "an operand is scaled by inf");
        assert_eq!(refused(1.0, DType::C128), "a scaled operand of complex128");
        let complex = describe_map(&with_unary(ADD, None, 1.0, DType::C64), &pair(DType::C64));
        assert_eq!(complex.unwrap_err(), "a scaled operand of complex64", "(1 + 5i) * x is not x");
        let half = describe_map(&with_unary(MULTIPLY, None, 2.5, DType::F16), &pair(DType::F16));
        assert_eq!(half.unwrap_err(), "16-bit floats are rounded after each operation");
    }

    #[test]
    fn complex_sums_use_real_pairs_and_products_decline() {
        let b = describe_map(&binary(ADD, DType::C128, [0, 1]), &pair(DType::C128)).unwrap();
        assert_eq!((b.operation.data, b.operation.output.modes.len()), (DataType::F64, 3));
        let product = describe_map(&binary(MULTIPLY, DType::C64, [0, 1]), &pair(DType::C64));
        assert!(product.unwrap_err().starts_with("complex product"));
    }

    #[test]
    fn decline_reasons() {
        let of = |op, dtype, inputs: &[StoredArray]| describe_map(&binary(op, dtype, [0, 1]), inputs).unwrap_err();
        assert_eq!(of(MAXIMUM, DType::F32, &pair(DType::F32)), "maximum: cuTENSOR's does not propagate NaN");
        assert_eq!(of(DIVIDE, DType::F32, &pair(DType::F32)), "divide: cuTENSOR has no such operator");
        assert_eq!(of(ADD, DType::I32, &pair(DType::I32)), "int32: cuTENSOR has no integer types");
        let flat = [array(DType::F32, contiguous(&[4, 5])), array(DType::F32, contiguous(&[4, 5]))];
        assert_eq!(of(ADD, DType::F32, &flat), "no input is transposed relative to the output; the base accelerator is as fast");
        let both = [pair(DType::F32)[1].clone(), pair(DType::F32)[1].clone()];
        assert_eq!(of(ADD, DType::F32, &both), "neither input has the strides of the output");
        let flipped = [pair(DType::F32)[0].clone(), array(DType::F32, contiguous(&[5, 4]).transpose().flip(&[0]))];
        assert_eq!(of(ADD, DType::F32, &flipped), "negative stride along axis 0 of input 1");
        let one = &pair(DType::F32)[1..];
        assert_eq!(describe_map(&negated(DType::F32), one).unwrap_err(), "negative: not an operation of two arrays");
        assert_eq!(describe_map(&binary(ADD, DType::F32, [0, 0]), one).unwrap_err(), "an array occurs more than once");
        let mut scaled = Program::identity(DType::F32);
        let two = scaled.push_param(Scalar::Float(2.0), DType::F32);
        scaled.outputs[0] = scaled.push_step(StepKind::Apply(ADD), DType::F32, &[0, two]);
        assert_eq!(describe_map(&scaled, one).unwrap_err(), "a scalar operand");
        let mut chain = binary(DIVIDE, DType::F32, [0, 1]);
        chain.outputs[0] = chain.push_step(StepKind::Apply(ADD), DType::F32, &[2, 0]);
        assert_eq!(describe_map(&chain, &pair(DType::F32)).unwrap_err(), "divide: cuTENSOR has no such operator");
    }
}
