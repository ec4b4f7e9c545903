//! Construction of deferred elementwise operations.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock};

use smallvec::SmallVec;

use super::expression_node::{ArrayState, DeferredOperation, Expression, ExpressionWeight, NdArray, Operand, Operands, Siblings};
use super::fusion_setting::fusion_enabled;
use super::operation_appending;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, broadcast_shapes};
use crate::op::{ArgumentType, Cost, DTypeSignature, MultiResultOp, Op, TypeRule};
use crate::scalar::Scalar;

/// Maximum number of nodes in an expression. An operation that would exceed this number first evaluates its largest deferred arguments.
const MAX_EXPRESSION_NODES: u32 = 48;
/// Maximum number of inputs of an expression, enforced like [`MAX_EXPRESSION_NODES`].
const MAX_EXPRESSION_INPUTS: u32 = 12;

/// Builds the result array of an elementwise operation, and evaluates it at once unless deferral is enabled.
///
/// # Errors
/// [`Error::Shape`] for shapes that do not broadcast; [`Error::Value`] for a wrong number of arguments, or a scalar out of the range of
/// its dtype.
/// [`Error::DType`] for dtypes that the operation does not take. [`Error::Device`] for arrays on different devices.
pub fn elementwise(op: Op, args: &[Operand]) -> Result<NdArray> {
    elementwise_consuming_args(op, &mut args.iter().cloned().collect::<Operands>())
}

/// Like [`elementwise`], but moves the arguments out of the slice.
pub(crate) fn elementwise_consuming_args(op: Op, args: &mut [Operand]) -> Result<NdArray> {
    let name = op.name();
    let rule = op.0.rule.ok_or_else(|| Error::value(name, "not an elementwise operation"))?;
    if args.len() != op.arity() {
        return Err(Error::value(name, format!("takes {} arguments, {} given", op.arity(), args.len())));
    }
    let signature = match find_shared_dtype(args) {
        Some(shared) if rule != TypeRule::Where => rule.resolve_for_shared_dtype(name, shared)?,
        _ => {
            check_weak_ints(name, rule, args)?;
            rule.resolve_dtypes(name, &args.iter().map(Operand::argument_type).collect::<SmallVec<[ArgumentType; 3]>>())?
        }
    };
    elementwise_with_dtypes(op, args, signature)
}

/// Returns an error for an integer outside the range of int64 and uint64 if only weak integers determine the dtype of the result.
///
/// NumPy converts such an integer to an object, which most functions reject. Some functions accept it: float functions of two operands
/// compute in float64, and comparisons, truth values and quotients of Python integers exist for any size.
pub(crate) fn check_weak_ints(name: &'static str, rule: TypeRule, args: &[Operand]) -> Result<()> {
    let promoted = args.get(usize::from(rule == TypeRule::Where)..).unwrap_or_default();
    let are_ints = promoted.iter().all(|arg| matches!(arg, Operand::Scalar(Scalar::Int(_) | Scalar::Bool(_))));
    let takes_any_int =
        matches!(rule, TypeRule::Compare | TypeRule::Logical | TypeRule::Divide) || rule == TypeRule::Float && args.len() > 1;
    if are_ints && !takes_any_int {
        for arg in promoted {
            if let Operand::Scalar(s) = arg {
                s.check_fits_dtype(name, s.default_dtype())?;
            }
        }
    }
    Ok(())
}

/// Returns the dtype that all arrays of `args` share, if every scalar of `args` can adopt that dtype.
fn find_shared_dtype(args: &[Operand]) -> Option<DType> {
    let dtype = array_operands(args).next()?.dtype();
    let has_it = |arg: &Operand| match arg {
        Operand::Array(a) => a.dtype() == dtype,
        Operand::Scalar(s) => s.weak_promote(dtype) == dtype,
    };
    args.iter().all(has_it).then_some(dtype)
}

/// Like [`elementwise_consuming_args`], but with the dtypes of `signature` instead of the dtypes that the operation's dtype rule gives.
/// `astype` and comparisons of mixed integers choose their own dtypes.
pub(crate) fn elementwise_with_dtypes(op: Op, args: &mut [Operand], signature: DTypeSignature) -> Result<NdArray> {
    check_operands(op.name(), args, &signature)?;
    let weight = limit_expression_weight(op, args)?;
    let operation = DeferredOperation { op, signature };
    let out = match operation_appending::append_operation(operation, args, weight) {
        Some(array) => array,
        None => {
            let device = array_operands(args).next().map_or_else(Device::current, |a| Ok(a.device()))?;
            let shape = broadcast_shape_of_operands(op.name(), args)?;
            NdArray(Arc::new(ArrayState {
                dtype: signature.result,
                device,
                shape,
                op: Some(op),
                first: Some(operation),
                weight,
                value: OnceLock::new(),
                expr: Mutex::new(Some(Expression::Elementwise {
                    args: args.iter_mut().map(Operand::take_operand).collect(),
                    then: Vec::new(),
                    siblings: None,
                })),
                inlined: AtomicU32::new(0),
            }))
        }
    };
    if !fusion_enabled() {
        out.stored_value()?;
    }
    Ok(out)
}

/// Builds the result arrays of a function with several results, and evaluates them at once unless deferral is enabled.
///
/// # Errors
/// The errors of [`elementwise`]. [`Error::Value`] if the function does not have `N` results.
pub fn elementwise_multi_result<const N: usize>(function: &MultiResultOp, args: &[Operand]) -> Result<[NdArray; N]> {
    let siblings = Arc::new(Siblings::new());
    let types: SmallVec<[ArgumentType; 3]> = args.iter().map(Operand::argument_type).collect();
    let mut arrays = SmallVec::<[NdArray; N]>::new();
    for &(op, rule) in function.results {
        if args.len() != op.arity() {
            return Err(Error::value(function.name, format!("takes {} arguments, {} given", op.arity(), args.len())));
        }
        check_weak_ints(function.name, rule, args)?;
        let signature = rule.resolve_dtypes(function.name, &types)?;
        check_operands(function.name, args, &signature)?;
        broadcast_shape_of_operands(function.name, args)?;
        let mut array = elementwise_with_dtypes(op, &mut args.iter().cloned().collect::<Operands>(), signature)?;
        // Siblings are results of one function, such as `divmod`, that one pass computes together. A result that was evaluated already or
        // appended to the node of an argument gets no siblings.
        if let Some(inner) = Arc::get_mut(&mut array.0)
            && let Ok(Some(Expression::Elementwise { siblings: of_node, .. })) = inner.expr.get_mut()
        {
            *of_node = Some(siblings.clone());
        }
        arrays.push(array);
    }
    let _ = siblings.set(arrays.iter().map(|array| Arc::downgrade(&array.0)).collect()); // the only `set` on `siblings`
    arrays.into_inner().map_err(|_| Error::value(function.name, format!("has {} results, not {N}", function.results.len())))
}

/// Returns the arrays among the arguments.
fn array_operands(args: &[Operand]) -> impl Iterator<Item = &NdArray> {
    args.iter().filter_map(|arg| if let Operand::Array(a) = arg { Some(a) } else { None })
}

/// Checks that all arrays are on one device, and that each integer scalar fits the dtype that `signature` gives its argument.
#[inline]
pub(crate) fn check_operands(name: &'static str, args: &[Operand], signature: &DTypeSignature) -> Result<()> {
    let mut device = None;
    for (arg, dtype) in args.iter().zip(signature.args) {
        match arg {
            Operand::Array(a) => {
                if let Some(d) = device.filter(|d| *d != a.device()) {
                    return Err(Error::Device { op: name, message: format!("arrays are on {d} and {}; use to_device", a.device()) });
                }
                device = Some(a.device());
            }
            Operand::Scalar(s) => {
                s.check_fits_dtype(name, dtype)?;
            }
        }
    }
    Ok(())
}

/// Returns the shape that the arguments broadcast to.
#[inline]
pub(crate) fn broadcast_shape_of_operands(name: &'static str, args: &[Operand]) -> Result<Dims> {
    let mut shapes = array_operands(args).map(NdArray::shape);
    match shapes.next() {
        Some(first) if shapes.all(|shape| shape == first) => Ok(Dims::from_slice(first)),
        _ => broadcast_operand_shapes(name, args),
    }
}

/// Returns the shape that arguments of different shapes broadcast to.
fn broadcast_operand_shapes(name: &'static str, args: &[Operand]) -> Result<Dims> {
    let mut shapes: SmallVec<[&[usize]; 3]> = SmallVec::new();
    for a in array_operands(args) {
        shapes.push(a.shape());
    }
    broadcast_shapes(name, &shapes)
}

/// Returns the size and cost of the expression of `op` on `args`. If the size exceeds the limits, evaluates the largest deferred arguments
/// first.
///
/// The size is the sum of the sizes of the arguments, in which a shared node counts several times. If this sum exceeds the limits, the
/// distinct nodes are counted instead.
fn limit_expression_weight(op: Op, args: &[Operand]) -> Result<ExpressionWeight> {
    loop {
        let cost = match op.0.cost {
            Cost::Cheap => 1,
            Cost::Medium => 4,
            Cost::Expensive => 16,
        };
        let mut sum = ExpressionWeight { nodes: 1, inputs: 0, cost, folds: 0 };
        let mut heaviest: Option<(u32, &NdArray)> = None;
        for arg in args {
            let Operand::Array(a) = arg else { continue };
            if !a.is_deferred() {
                sum.inputs += 1;
                continue;
            }
            let ExpressionWeight { nodes, inputs, cost, folds } = a.0.weight;
            let (nodes_in_all, inputs_in_all) = (sum.nodes + nodes, sum.inputs + inputs);
            // A shared node contributes its cost once per use. Only the numbers of nodes and inputs are limited, so the cost need not be
            // exact.
            let (cost, folds) = (sum.cost.saturating_add(cost), sum.folds.saturating_add(folds));
            sum = ExpressionWeight { nodes: nodes_in_all, inputs: inputs_in_all, cost, folds };
            if heaviest.is_none_or(|(n, _)| nodes + 4 * inputs > n) {
                heaviest = Some((nodes + 4 * inputs, a));
            }
        }
        let exceeds_limits = |nodes, inputs| nodes > MAX_EXPRESSION_NODES || inputs > MAX_EXPRESSION_INPUTS;
        let Some((_, heaviest)) = heaviest.filter(|_| exceeds_limits(sum.nodes, sum.inputs)) else { return Ok(sum) };
        let mut distinct = DistinctNodeCounter::default();
        args.iter().for_each(|arg| distinct.count_nodes_of_operand(arg));
        let (nodes, inputs) = (1 + distinct.operations, distinct.inputs.len() as u32);
        if !exceeds_limits(nodes, inputs) {
            return Ok(ExpressionWeight { nodes, inputs, ..sum });
        }
        heaviest.stored_value()?;
    }
}

/// The nodes of an expression, each counted once. Counting stops when [`MAX_EXPRESSION_NODES`] or [`MAX_EXPRESSION_INPUTS`] is exceeded.
#[derive(Default)]
struct DistinctNodeCounter {
    deferred: SmallVec<[*const ArrayState; 48]>,
    inputs: SmallVec<[*const ArrayState; 12]>,
    /// Number of operations in the deferred nodes, including appended operations.
    operations: u32,
}

impl DistinctNodeCounter {
    fn count_nodes_of_operand(&mut self, operand: &Operand) {
        let Operand::Array(array) = operand else { return };
        let state = Arc::as_ptr(&array.0);
        if self.operations > MAX_EXPRESSION_NODES || self.inputs.len() as u32 > MAX_EXPRESSION_INPUTS {
            return;
        }
        let expression = array.lock_expression();
        match expression.as_ref() {
            _ if self.deferred.contains(&state) || self.inputs.contains(&state) => {}
            Some(Expression::Elementwise { args, then, .. }) => {
                self.deferred.push(state);
                self.operations += 1 + then.len() as u32;
                args.iter().chain(then.iter().flat_map(|appended| &appended.others)).for_each(|arg| self.count_nodes_of_operand(arg));
            }
            Some(Expression::Fold(fold)) => {
                self.deferred.push(state);
                self.operations += fold.implementation.nodes;
                self.count_nodes_of_operand(&Operand::Array(fold.argument.clone()));
            }
            None => self.inputs.push(state),
        }
    }
}
