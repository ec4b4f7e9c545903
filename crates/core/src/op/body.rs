//! Operations with a body of their own: what `cuprum::kernel!` makes of a function. Each backend runs the body in its own way
//! (the CPU calls machine code, CUDA compiles text), so that such an operation fuses with others as a built-in one does.

use std::any::Any;

use smallvec::SmallVec;

use crate::array::{Array, NdArray};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::expr::{Operand, Operands, build};
use crate::function::FromArgs;
use crate::layout::{Layout, broadcast_shapes};
use crate::op::{ArgType, MAX_ARITY, Op, Signature, result_type};
use crate::ops::reduce::Over;
use crate::ops::value::{Args, Value};
use crate::scalar::Scalar;

/// A body, and how it is called.
pub struct Body {
    /// What the function in the source takes, in order.
    pub parameters: &'static [Parameter],
    /// dtypes that the generic type stands for.
    pub bound: Bound,
    /// dtype of the result.
    pub result: Type,
    /// C++ functions, each with its name, those that are called first; the last one is the body. Templates over the generic type `T`, in
    /// the terms of the CUDA backend's prelude.
    pub source: &'static [(&'static str, &'static str)],
    /// Whether it loops: elements may take unlike times.
    pub loops: bool,
    /// Of a reduction: what combining with changes nothing.
    pub identity: Option<Identity>,
    /// What the CPU backend calls; its type is that backend's matter.
    pub native: &'static (dyn Any + Send + Sync),
}

/// A parameter of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// For messages, and in calls by name.
    pub name: &'static str,
    /// dtype of its elements.
    pub of: Type,
    /// What of an argument it sees.
    pub kind: ParameterKind,
}

/// What a body sees of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// The element at hand, after broadcasting.
    Each,
    /// All elements in C order, whatever the shape: two arguments in the source, the elements and how many there are (int64).
    Whole,
    /// The element's own index along an axis (int64): no argument of the call.
    Index(usize),
}

impl ParameterKind {
    /// How many arguments of the function in the source belong to such a parameter.
    pub const fn arguments(self) -> usize {
        match self {
            ParameterKind::Each | ParameterKind::Index(_) => 1,
            ParameterKind::Whole => 2,
        }
    }
}

/// dtype of a parameter or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// The generic type: what all such arguments promote to.
    Generic,
    /// This one.
    Fixed(DType),
}

/// dtypes that a generic type stands for. 16-bit floats are computed in float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Floats; bool and integers become the float that NumPy gives them.
    Float,
    /// Integers.
    Integer,
    /// Integers and floats.
    Number,
}

/// What a reduction begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Identity {
    /// A number.
    Value(Scalar),
    /// The smallest number of the dtype; of floats, minus infinity.
    Lowest,
    /// The largest number of the dtype; of floats, infinity.
    Highest,
}

impl Identity {
    /// As a number of a dtype.
    pub fn of(self, dtype: DType) -> Scalar {
        let bits = 8 * dtype.itemsize() as u32;
        match (self, dtype.kind()) {
            (Identity::Value(value), _) => value,
            (Identity::Lowest, Kind::Signed) => Scalar::Int(-(1i128 << (bits - 1))),
            (Identity::Lowest, Kind::Unsigned | Kind::Bool) => Scalar::Int(0),
            (Identity::Highest, Kind::Signed) => Scalar::Int((1i128 << (bits - 1)) - 1),
            (Identity::Highest, Kind::Unsigned) => Scalar::Int((1i128 << bits) - 1),
            (Identity::Highest, Kind::Bool) => Scalar::Int(1),
            (Identity::Lowest, _) => Scalar::Float(f64::NEG_INFINITY),
            (Identity::Highest, _) => Scalar::Float(f64::INFINITY),
        }
    }
}

impl Bound {
    /// The dtype that the body is compiled for and that of the result as the caller sees it, where arguments promote to `dtype`.
    fn admit(self, op: &'static str, dtype: DType) -> Result<(DType, DType)> {
        let refuse = |what: &str| Err(Error::dtype(op, format!("takes {what}"), &[dtype]));
        let own = match (self, dtype.kind()) {
            (Bound::Float, Kind::Complex) => return refuse("real numbers"),
            (Bound::Float, _) => dtype.to_inexact(),
            (Bound::Integer, Kind::Signed | Kind::Unsigned) => dtype,
            (Bound::Integer, _) => return refuse("integers"),
            (Bound::Number, Kind::Signed | Kind::Unsigned | Kind::Float) => dtype,
            (Bound::Number, _) => return refuse("integers and floats"),
        };
        Ok((if matches!(own, DType::F16 | DType::BF16) { DType::F32 } else { own }, own))
    }
}

impl Body {
    /// Arguments of a call: parameters without those for indices.
    fn given(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.parameters.iter().filter(|p| !matches!(p.kind, ParameterKind::Index(_)))
    }

    /// Arguments that the function in the source takes.
    pub const fn arity(parameters: &[Parameter]) -> u8 {
        let (mut n, mut arity) = (0, 0);
        while n < parameters.len() {
            arity += parameters[n].kind.arguments() as u8;
            n += 1;
        }
        arity
    }

    /// Parameters, each with the place of its first argument in a call of the function.
    pub fn places(&self) -> impl Iterator<Item = (usize, &'static Parameter)> + use<> {
        self.parameters.iter().scan(0, |next, p| {
            let at = *next;
            *next += p.kind.arguments();
            Some((at, p))
        })
    }

    /// Whether the function's `n`th argument is all elements of an array.
    pub fn is_whole(&self, n: usize) -> bool {
        self.places().any(|(at, p)| at == n && p.kind == ParameterKind::Whole)
    }

    /// The generic type in a call of the function, by the dtypes of its arguments; any, if no parameter has it.
    pub fn generic(&self, dtype: impl Fn(usize) -> DType, result: DType) -> DType {
        match self.places().find(|(_, p)| p.of == Type::Generic) {
            Some((at, _)) => dtype(at),
            None if self.result == Type::Generic => result,
            None => DType::F32,
        }
    }
}

/// Applies an operation with a body to arrays and numbers, one for each parameter that is not an index. Deferred, as other elementwise
/// operations are; arrays that the body sees whole are evaluated first.
///
/// Errors: another number of arguments, shapes that do not broadcast, dtypes that the body does not take, arrays on different devices, an empty
/// array that the body sees whole, an index along an axis that is not there.
pub fn apply(op: Op, operands: &[Operand]) -> Result<NdArray> {
    let name = op.name();
    let body = op.0.body.ok_or_else(|| Error::value(name, "the operation has no body"))?;
    let given = body.given().count();
    if operands.len() != given {
        return Err(Error::value(name, format!("takes {given} arguments, {} given", operands.len())));
    }
    let of_generic = body.given().zip(operands).filter(|(p, _)| p.of == Type::Generic);
    let types: SmallVec<[ArgType; 8]> = of_generic.map(|(_, operand)| operand.arg_type()).collect();
    let (generic, seen) = body.bound.admit(name, if types.is_empty() { DType::F64 } else { result_type(&types) })?;
    let dtype = |of: Type| if let Type::Fixed(dtype) = of { dtype } else { generic };

    let each = body.given().zip(operands).filter(|(p, _)| p.kind == ParameterKind::Each);
    let shapes: SmallVec<[&[usize]; 8]> =
        each.filter_map(|(_, o)| if let Operand::Array(a) = o { Some(a.shape()) } else { None }).collect();
    let shape = broadcast_shapes(name, &shapes)?;
    let device = operands.iter().find_map(|o| if let Operand::Array(a) = o { Some(a.device()) } else { None });

    let (mut args, mut signature) = (Operands::new(), Signature { args: [DType::I64; MAX_ARITY], result: dtype(body.result) });
    let mut operands = operands.iter();
    for p in body.parameters {
        let slot = signature.args.get_mut(args.len()).ok_or_else(|| Error::value(name, "too many parameters"))?;
        *slot = dtype(p.of);
        match p.kind {
            ParameterKind::Index(axis) => args.push(Operand::Array(index(name, axis, &shape, device)?)),
            ParameterKind::Each => args.extend(operands.next().map(|o| checked(name, p, o)).transpose()?),
            ParameterKind::Whole => {
                let Some(Operand::Array(a)) = operands.next() else {
                    return Err(Error::value(name, format!("`{}` is a whole array, not a number", p.name)));
                };
                if a.size() == 0 {
                    return Err(Error::value(name, format!("`{}` is empty", p.name)));
                }
                checked(name, p, &Operand::Array(a.clone()))?;
                let stored = a.astype(dtype(p.of))?.contiguous()?.stored()?;
                let first = Layout::strided(&[], &[], stored.layout().offset())?;
                args.push(Operand::Array(stored.with_layout(first)?.into()));
                args.push(Operand::Scalar(Scalar::Int(a.size() as i128)));
            }
        }
    }
    let array = build(op, &mut args, signature)?;
    if body.result == Type::Generic && seen != generic { array.astype(seen) } else { Ok(array) }
}

/// Reduces an array by an operation whose body combines two elements. What is deferred is computed in the same pass.
///
/// Errors: a dtype that the body does not take, one that is asked for (`dtype=`), an identity that is no number of the dtype, axes that are
/// not there.
pub fn reduce(op: Op, values: &Operand, over: &Over) -> Result<NdArray> {
    let name = op.name();
    let values = &match values {
        Operand::Array(a) => a.clone(),
        Operand::Scalar(s) => NdArray::scalar_as(*s, s.default_dtype())?,
    };
    let body = op.0.body.filter(|b| b.identity.is_some()).ok_or_else(|| Error::value(name, "the operation is no reduction"))?;
    let (dtype, seen) = match body.result {
        Type::Generic => body.bound.admit(name, values.dtype())?,
        Type::Fixed(dtype) if values.dtype().can_cast_safe(dtype) => (dtype, dtype),
        Type::Fixed(dtype) => return Err(Error::dtype(name, format!("takes {dtype}; use astype"), &[values.dtype()])),
    };
    if over.has_dtype() {
        return Err(Error::value(name, "has the dtype of its values; use astype"));
    }
    if over.is_descending() {
        return Err(Error::value(name, "has no order to turn"));
    }
    if let Some(identity) = body.identity.map(|identity| identity.of(dtype)) {
        identity.checked_for(name, dtype)?;
        if identity.weak_promote(dtype) != dtype {
            return Err(Error::dtype(name, format!("begins with {identity}, which is none"), &[dtype]));
        }
    }
    crate::ops::reduce::reduce(op, values, over, dtype, dtype)?.astype(seen)
}

/// An argument for a parameter of a fixed dtype must be of one that casts safely; a number must be a value of it.
fn checked(op: &'static str, p: &Parameter, operand: &Operand) -> Result<Operand> {
    if let Type::Fixed(wanted) = p.of {
        match operand {
            Operand::Array(a) if !a.dtype().can_cast_safe(wanted) => {
                return Err(Error::dtype(op, format!("`{}` is {wanted} here; use astype", p.name), &[a.dtype()]));
            }
            Operand::Scalar(s) if s.weak_promote(wanted) != wanted => {
                return Err(Error::dtype(op, format!("`{}` is {wanted} here, and {s} is none", p.name), &[s.default_dtype()]));
            }
            _ => {}
        }
    }
    Ok(operand.clone())
}

/// The elements' own indices along an axis, as an array that broadcasts to the shape.
fn index(op: &'static str, axis: usize, shape: &[usize], device: Option<crate::Device>) -> Result<NdArray> {
    let Some(&extent) = shape.get(axis) else {
        return Err(Error::value(op, format!("index({axis}) of elements that have {} axes", shape.len())));
    };
    let make = || NdArray::arange_as(0, extent, 1, DType::I64);
    let along = match device {
        Some(device) => crate::device::with_device(device, make)?,
        None => make()?,
    };
    let mut dims = vec![1isize; shape.len() - axis];
    dims[0] = extent as isize;
    along.reshape(dims)
}

/// What `call` of an operation with a body does: arguments by the names of its parameters.
pub fn call(op: Op, args: &Args) -> Result<Value> {
    let body = op.0.body.ok_or_else(|| Error::value(op.name(), "the operation has no body"))?;
    let operands: SmallVec<[Operand; 8]> = body.given().map(|p| args.operand(p.name)).collect::<Result<_>>()?;
    apply(op, &operands).map(Value::Array)
}

/// As [`call`], of a reduction: `a, axis=None, *, keepdims=False`.
pub fn call_reduction(op: Op, args: &Args) -> Result<Value> {
    reduce(op, &args.operand("a")?, &Over::from_args(args, "axis")?).map(Value::Array)
}

/// An operation that `cuprum::kernel!` declares, for tests that compile every body.
pub struct Declared(pub Op);
inventory::collect!(Declared);
