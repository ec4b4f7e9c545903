//! The code of user-defined operations (their body), which `cuprum::kernel!` generates from Rust functions.
//!
//! The CPU backend calls the machine code of such a function, and the CUDA backend compiles its C++ source. Thus user-defined operations
//! fuse with others like built-in ones.

use std::any::Any;

use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::op::{ArgumentType, result_type};
pub use crate::ops::user_defined_operations::{DeclaredOperation, apply, call_elementwise, call_reduction, reduce};

/// The code of a user-defined operation: its signature, its C++ source, and its machine code.
pub struct OperationBody {
    /// Parameters of the user-defined function, in order.
    pub parameters: &'static [Parameter],
    /// The dtypes that the generic type `T` accepts.
    pub bound: GenericBound,
    /// dtype of the result.
    pub result: BodyDType,
    /// C++ functions with their names, callees first. The last one computes the operation.
    ///
    /// The functions are templates over the generic type `T` and use the CUDA backend's prelude.
    pub source: &'static [(&'static str, &'static str)],
    /// Whether the function has loops, so that elements may differ in cost.
    pub loops: bool,
    /// Machine code of the function, in a type that the CPU backend defines.
    pub native: &'static (dyn Any + Send + Sync),
}

/// A parameter of a user-defined operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the parameter in error messages, and as a keyword argument in expressions of `eval`.
    pub name: &'static str,
    /// dtype of the elements.
    pub of: BodyDType,
    /// The form in which the user-defined function receives the argument: one element, a whole array, or a loop index.
    pub kind: ParameterKind,
}

/// The form in which a user-defined function receives an argument: one element, a whole array, or a loop index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// The function receives the element at the loop index, after broadcasting.
    Each,
    /// All elements in C order. The C++ function has two arguments for the array: a pointer to the elements, and their number (int64).
    Whole,
    /// The loop index along an axis (int64), which is not an argument of the call.
    Index(usize),
}

impl ParameterKind {
    /// Returns the number of arguments that the C++ function of the operation has for a parameter of this kind.
    pub const fn argument_count(self) -> usize {
        match self {
            ParameterKind::Each | ParameterKind::Index(_) => 1,
            ParameterKind::Whole => 2,
        }
    }
}

/// The dtype of a parameter or of the result of a user-defined operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyDType {
    /// The generic type `T`: the promoted dtype of all arguments that are declared with type `T`.
    Generic,
    /// A fixed dtype.
    Fixed(DType),
}

/// The dtypes that a generic type accepts. 16-bit floats are computed in float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenericBound {
    /// Accepts floats. bool and integers are converted to floats as in NumPy.
    Float,
    /// Computes in float32 if all arguments cast safely to float32, otherwise in float64.
    Single,
    /// Computes in float32 if all arguments are float32 arrays, otherwise in float64.
    Double,
    /// Accepts only integers.
    Integer,
    /// Accepts integers and floats.
    Number,
}

impl GenericBound {
    /// Returns the dtype in which the function computes, and the dtype of a generic result, for arguments of these types.
    pub(crate) fn resolve_dtypes(self, op: &'static str, types: &[ArgumentType]) -> Result<(DType, DType)> {
        let dtype = if types.is_empty() { DType::F64 } else { result_type(types) };
        let is_float32 = match self {
            GenericBound::Single => all_cast_safely_to_float32(types),
            _ => !types.is_empty() && types.iter().all(|of| matches!(of, ArgumentType::Array(DType::F32))),
        };
        let refuse = |what: &str| Err(Error::dtype(op, format!("takes {what}"), &[dtype]));
        let own = match (self, dtype.kind()) {
            (GenericBound::Float | GenericBound::Single | GenericBound::Double, Kind::Complex) => return refuse("real numbers"),
            (GenericBound::Float, _) => dtype.to_inexact(),
            (GenericBound::Single | GenericBound::Double, _) if is_float32 => DType::F32,
            (GenericBound::Single | GenericBound::Double, _) => DType::F64,
            (GenericBound::Integer, Kind::Signed | Kind::Unsigned) => dtype,
            (GenericBound::Integer, _) => return refuse("integers"),
            (GenericBound::Number, Kind::Signed | Kind::Unsigned | Kind::Float) => dtype,
            (GenericBound::Number, _) => return refuse("integers and floats"),
        };
        Ok((if matches!(own, DType::F16 | DType::BF16) { DType::F32 } else { own }, own))
    }
}

/// Returns whether each argument casts safely to float32. For example, int16 and uint16 do, although int32, to which both promote, does
/// not.
fn all_cast_safely_to_float32(types: &[ArgumentType]) -> bool {
    let arrays = || types.iter().filter_map(|of| if let ArgumentType::Array(dtype) = of { Some(*dtype) } else { None });
    let casts = |dtype: DType| dtype.can_cast_safe(DType::F32);
    types.iter().all(|of| match of {
        ArgumentType::Array(dtype) => casts(*dtype),
        ArgumentType::Weak(_) if arrays().next().is_none() => casts(result_type(types)),
        ArgumentType::Weak(s) => arrays().any(|dtype| casts(s.weak_promote(dtype))),
    })
}

impl OperationBody {
    /// Returns the parameters that are arguments of a call, all except loop indices ([`ParameterKind::Index`]).
    pub(crate) fn argument_parameters(&self) -> impl Iterator<Item = &'static Parameter> + use<> {
        self.parameters.iter().filter(|p| !matches!(p.kind, ParameterKind::Index(_)))
    }

    /// Returns the number of arguments of a C++ function with `parameters`.
    pub const fn total_argument_count(parameters: &[Parameter]) -> u8 {
        let (mut n, mut arity) = (0, 0);
        while n < parameters.len() {
            arity += parameters[n].kind.argument_count() as u8;
            n += 1;
        }
        arity
    }

    /// Returns the parameters, each with the index of its first argument in the C++ function of [`OperationBody::source`].
    pub fn parameters_with_argument_index(&self) -> impl Iterator<Item = (usize, &'static Parameter)> + use<> {
        self.parameters.iter().scan(0, |next, p| {
            let at = *next;
            *next += p.kind.argument_count();
            Some((at, p))
        })
    }

    /// Returns whether argument `n` of the C++ function of [`OperationBody::source`] is the pointer to the elements of a whole array.
    pub fn is_whole_array(&self, n: usize) -> bool {
        self.parameters_with_argument_index().any(|(at, p)| at == n && p.kind == ParameterKind::Whole)
    }

    /// Returns the dtype of the generic type `T` in a call, or float32 if the function is not generic.
    ///
    /// `dtype(n)` returns the dtype of argument `n` of the C++ function. `result` is the dtype of the result.
    pub fn generic_dtype(&self, dtype: impl Fn(usize) -> DType, result: DType) -> DType {
        match self.parameters_with_argument_index().find(|(_, p)| p.of == BodyDType::Generic) {
            Some((at, _)) => dtype(at),
            None if self.result == BodyDType::Generic => result,
            None => DType::F32,
        }
    }
}
