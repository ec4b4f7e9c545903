//! The arguments `device=` and `order=` of functions that create arrays, read from Python-like arguments ([`Args`]).

use crate::array::NdArray;
use crate::device::{Device, with_device};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::python_value::{Args, Value};

/// Calls `make` with the argument `device` as the current device, and returns its array in the memory order of the argument `order`.
///
/// An argument that is missing has no effect, and neither has the order `'K'` or `'A'`. The orders `'C'` and `'F'` copy the array if it is
/// stored in another order.
///
/// # Errors
/// An unknown device or order, and the errors of `make`.
pub fn create_with_device_and_order(args: &Args, make: impl FnOnce() -> Result<NdArray>) -> Result<Value> {
    let named = |result: Result<NdArray>| result.map_err(|e| e.with_function_name(args.op()));
    let created = match args.get("device") {
        None => named(make())?,
        Some(Value::Str(name)) => {
            let device = Device::parse(name).map_err(|e| e.with_function_name(args.op()))?;
            named(with_device(device, make))?.to_device(device)?
        }
        Some(other) => return Err(Error::value(args.op(), format!("'device' must be the name of a device, not {}", other.type_name()))),
    };
    Ok(Value::Array(match requested_order(args)? {
        MemoryOrder::Kept => created,
        MemoryOrder::C => created.contiguous()?,
        MemoryOrder::Fortran => created.t()?.contiguous()?.t()?,
    }))
}

/// The memory order that the argument `order` requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOrder {
    /// No particular order: the operand or the result keeps the order in which it is stored (`'K'`, `'A'`, or no argument).
    Kept,
    /// The last axis is contiguous (`'C'`).
    C,
    /// The first axis is contiguous (`'F'`).
    Fortran,
}

/// Returns the memory order that the argument `order` in `args` requests.
///
/// # Errors
/// An unknown order.
pub fn requested_order(args: &Args) -> Result<MemoryOrder> {
    match args.get("order") {
        None => Ok(MemoryOrder::Kept),
        Some(Value::Str(order)) if order == "K" || order == "A" => Ok(MemoryOrder::Kept),
        Some(Value::Str(order)) if order == "C" => Ok(MemoryOrder::C),
        Some(Value::Str(order)) if order == "F" => Ok(MemoryOrder::Fortran),
        Some(_) => Err(Error::value(args.op(), "order must be one of 'C', 'F', 'A', or 'K'")),
    }
}

/// Reverses the axes of `a` if the argument `order` requests a traversal in Fortran order. Returns the array, and whether its axes are
/// reversed.
///
/// `'A'` and `'K'` reverse the axes of an array that is stored in Fortran order.
///
/// # Errors
/// An unknown order, or errors of evaluation.
pub(crate) fn reverse_axes_for_order(args: &Args, a: NdArray) -> Result<(NdArray, bool)> {
    let is_reversed = match (requested_order(args)?, args.get("order")) {
        (MemoryOrder::Fortran, _) => true,
        (MemoryOrder::Kept, Some(_)) => {
            let stored = a.stored()?;
            stored.layout().is_f_contiguous() && !stored.layout().is_c_contiguous()
        }
        _ => false,
    };
    if is_reversed { Ok((a.t()?, true)) } else { Ok((a, false)) }
}

/// Calls `NdArray::astype` with the arguments of `numpy.astype`. Arrays are values, so the argument `copy` has no effect.
pub(crate) fn astype_from_args(args: &Args) -> Result<Value> {
    let (x, dtype) = (args.array("x")?, args.dtype("dtype")?.unwrap_or(DType::F64));
    create_with_device_and_order(args, || x.astype(dtype))
}

/// Calls `NdArray::astype` with the arguments of `numpy.ndarray.astype`.
pub(crate) fn astype_method_from_args(args: &Args) -> Result<Value> {
    let (x, dtype) = (args.array("x")?, args.dtype("dtype")?.unwrap_or(DType::F64));
    let rule = match args.value("casting") {
        Some(Value::Str(rule)) => rule.as_str(),
        _ => args.str("casting")?,
    };
    if !x.dtype().can_cast_by_rule(dtype, args.op(), rule)? {
        let message = format!("cannot convert {} to {dtype} by the rule '{rule}'", x.dtype());
        return Err(Error::dtype(args.op(), message, &[x.dtype(), dtype]));
    }
    create_with_device_and_order(args, || x.astype(dtype))
}
