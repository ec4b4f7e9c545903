//! Calls of user-defined operations.

use smallvec::SmallVec;

use crate::array::NdArray;
use crate::body::{BodyDType, Parameter, ParameterKind};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{Operand, Operands, elementwise_with_dtypes};
use crate::function::FromArgs;
use crate::layout::{Layout, broadcast_shapes};
use crate::op::{ArgumentType, DTypeSignature, MAX_ARITY, Op};
use crate::ops::creation::arange_as;
use crate::ops::python_value::{Args, Value};
use crate::ops::reduce::{AxisOption, AxisOptions};
use crate::scalar::Scalar;

/// Applies a user-defined operation to arrays and numbers, one for each parameter that is not an index.
///
/// The result is deferred, like that of other elementwise operations. Whole-array arguments are evaluated first.
///
/// # Errors
/// A wrong number of arguments, shapes that do not broadcast, dtypes that the operation does not take, arrays on different devices, an
/// empty whole-array argument, or an index along an axis that does not exist.
pub fn apply(op: Op, operands: &[Operand]) -> Result<NdArray> {
    let name = op.name();
    let body = op.0.body.ok_or_else(|| Error::value(name, "the operation has no body"))?;
    let given = body.argument_parameters().count();
    if operands.len() != given {
        return Err(Error::value(name, format!("takes {given} arguments, {} given", operands.len())));
    }
    let of_generic = body.argument_parameters().zip(operands).filter(|(p, _)| p.of == BodyDType::Generic);
    let types: SmallVec<[ArgumentType; 8]> = of_generic.map(|(_, operand)| operand.argument_type()).collect();
    let (generic, visible) = body.bound.resolve_dtypes(name, &types)?;
    let dtype = |of: BodyDType| if let BodyDType::Fixed(dtype) = of { dtype } else { generic };

    let each = body.argument_parameters().zip(operands).filter(|(p, _)| p.kind == ParameterKind::Each);
    let shapes: SmallVec<[&[usize]; 8]> =
        each.filter_map(|(_, o)| if let Operand::Array(a) = o { Some(a.shape()) } else { None }).collect();
    let shape = broadcast_shapes(name, &shapes)?;
    let device = operands.iter().find_map(|o| if let Operand::Array(a) = o { Some(a.device()) } else { None });

    let (mut args, mut signature) = (Operands::new(), DTypeSignature { args: [DType::I64; MAX_ARITY], result: dtype(body.result) });
    let mut operands = operands.iter();
    for p in body.parameters {
        let slot = signature.args.get_mut(args.len()).ok_or_else(|| Error::value(name, "too many parameters"))?;
        *slot = dtype(p.of);
        match p.kind {
            ParameterKind::Index(axis) => args.push(Operand::Array(axis_index_array(name, axis, &shape, device)?)),
            ParameterKind::Each => args.extend(operands.next().map(|o| check_user_defined_argument(name, p, o)).transpose()?),
            ParameterKind::Whole => {
                let Some(Operand::Array(a)) = operands.next() else {
                    return Err(Error::value(name, format!("`{}` must be an array, not a number", p.name)));
                };
                if a.size() == 0 {
                    return Err(Error::value(name, format!("`{}` must not be empty", p.name)));
                }
                check_user_defined_argument(name, p, &Operand::Array(a.clone()))?;
                let stored = a.astype(dtype(p.of))?.contiguous()?.stored()?;
                let first = Layout::strided(&[], &[], stored.layout().offset())?;
                args.push(Operand::Array(stored.with_layout(first)?.into()));
                args.push(Operand::Scalar(Scalar::Int(a.size() as i128)));
            }
        }
    }
    let array = elementwise_with_dtypes(op, &mut args, signature)?;
    if body.result == BodyDType::Generic && visible != generic { array.astype(visible) } else { Ok(array) }
}

/// Reduces an array by a user-defined operation, whose code combines two elements. A deferred array is fused.
///
/// # Errors
/// A dtype that the operation does not take, an option other than `keepdims`, an identity that the dtype cannot hold, or axes out of
/// bounds.
pub fn reduce(op: Op, values: &Operand, over: &AxisOptions) -> Result<NdArray> {
    let name = op.name();
    let values = &match values {
        Operand::Array(a) => a.clone(),
        Operand::Scalar(s) => NdArray::scalar(s.check_fits_dtype(name, s.default_dtype())?)?,
    };
    let (Some(body), Some(reduction)) = (op.0.body, op.reduction()) else {
        return Err(Error::value(name, "the operation is not a reduction"));
    };
    let (dtype, visible) = match body.result {
        BodyDType::Generic => body.bound.resolve_dtypes(name, &[ArgumentType::Array(values.dtype())])?,
        BodyDType::Fixed(dtype) if values.dtype().can_cast_safe(dtype) => (dtype, dtype),
        BodyDType::Fixed(dtype) => return Err(Error::dtype(name, format!("takes {dtype}; use astype"), &[values.dtype()])),
    };
    let over = &over.clone().check_accepted_options(name, &[AxisOption::KeepDims])?;
    let identity = reduction.identity.of(dtype);
    identity.check_fits_dtype(name, dtype)?;
    if identity.weak_promote(dtype) != dtype {
        return Err(Error::dtype(name, format!("the identity {identity} is not a value of this dtype"), &[dtype]));
    }
    crate::ops::reduce::reduce(op, values, over, dtype, dtype)?.astype(visible)
}

/// Returns `operand` if it is valid for the parameter `p`. If `p` has a fixed dtype, an array must cast to the dtype safely, and a number
/// must be one that the dtype can hold.
fn check_user_defined_argument(op: &'static str, p: &Parameter, operand: &Operand) -> Result<Operand> {
    if let BodyDType::Fixed(wanted) = p.of {
        match operand {
            Operand::Array(a) if !a.dtype().can_cast_safe(wanted) => {
                return Err(Error::dtype(op, format!("`{}` must be {wanted}; use astype", p.name), &[a.dtype()]));
            }
            Operand::Scalar(s) if s.weak_promote(wanted) != wanted => {
                return Err(Error::dtype(op, format!("`{}` must be {wanted}, which cannot hold {s}", p.name), &[s.default_dtype()]));
            }
            _ => {}
        }
    }
    Ok(operand.clone())
}

/// Returns the indices 0, 1, 2, ... along `axis`, as an array that broadcasts to `shape`. `None` for `device` is the current device.
fn axis_index_array(op: &'static str, axis: usize, shape: &[usize], device: Option<crate::Device>) -> Result<NdArray> {
    let Some(&extent) = shape.get(axis) else {
        return Err(Error::value(op, format!("index({axis}) is out of bounds for {} axes", shape.len())));
    };
    let make = || arange_as(0, extent, 1, DType::I64);
    let along = match device {
        Some(device) => crate::device::with_device(device, make)?,
        None => make()?,
    };
    let mut dims = vec![1isize; shape.len() - axis];
    dims[0] = extent as isize;
    along.reshape(dims)
}

/// Calls an elementwise user-defined operation with Python-like arguments. The arguments have the names of the operation's parameters.
///
/// # Errors
/// The errors of [`apply`], and missing arguments.
pub fn call_elementwise(op: Op, args: &Args) -> Result<Value> {
    let body = op.0.body.ok_or_else(|| Error::value(op.name(), "the operation has no body"))?;
    let operands: SmallVec<[Operand; 8]> = body.argument_parameters().map(|p| args.operand(p.name)).collect::<Result<_>>()?;
    apply(op, &operands).map(Value::Array)
}

/// Calls a user-defined reduction with Python-like arguments: `a, axis=None, *, keepdims=False`.
///
/// # Errors
/// The errors of [`reduce`], and missing arguments.
pub fn call_reduction(op: Op, args: &Args) -> Result<Value> {
    reduce(op, &args.operand("a")?, &AxisOptions::from_args(args, "axis")?).map(Value::Array)
}

/// An operation declared by `cuprum::kernel!`, registered so that tests can compile the code of every operation.
pub struct DeclaredOperation(pub Op);
inventory::collect!(DeclaredOperation);
