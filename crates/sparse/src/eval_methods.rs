//! Methods of sparse arrays that scripts of `eval` can call.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::ops::python_value::Object;
use cuprum_core::{Args, Axes, DType, Error, NdArray, Result, Scalar, Value};

use crate::eval_arguments::{read_block_argument, read_self_argument};
use crate::{Format, SparseArray, elementwise, format_conversion, reductions};

macro_rules! methods {
    ($($name:ident |$a:ident, $args:ident| $result:expr;)*) => {$(
        pub(crate) fn $name($args: &Args) -> Result<Value> {
            let call = || -> Result<Value> {
                let $a = read_self_argument($args)?;
                Ok(IntoValue::into_value($result))
            };
            call().map_err(|e| e.with_function_name($args.op()))
        }
    )*};
}

fn read_other_argument(args: &Args) -> Result<&Value> {
    args.get("other").ok_or_else(|| Error::value(args.op(), "argument 'other' is missing"))
}

/// Applies the binary operator `function`, such as `matmul`, to `a` and the argument `other`.
fn call_binary_operator(function: &str, a: &SparseArray, args: &Args) -> Result<Value> {
    let result = Object::binary_operator(a, function, read_other_argument(args)?, false);
    result.unwrap_or_else(|| Err(Error::value(args.op(), "'other' must be an array or a number")))
}

/// Returns the axes of a reduction, from the argument `axis`.
fn read_axes_argument(args: &Args) -> Result<Axes> {
    Axes::from_args(args, "axis")
}

/// Returns whether the argument `axes` of `transpose` reverses the axes. As in SciPy, only COO arrays allow the order (0, 1).
fn reverses_axes(a: &SparseArray, args: &Args) -> Result<bool> {
    match args.ints("axes")?.as_deref() {
        None | Some([1 | -1, 0 | -2]) => Ok(true),
        Some([0 | -2, 1 | -1]) if a.format() == Format::Coo => Ok(false),
        _ => Err(Error::value(args.op(), "axes must be None or (1, 0)")),
    }
}

/// Converts a result to the dtype that the argument `dtype` names, if this argument was passed.
fn convert_to_requested_dtype(args: &Args, a: NdArray) -> Result<NdArray> {
    args.dtype("dtype")?.map_or(Ok(a.clone()), |dtype| a.astype(dtype))
}

methods! {
    to_csr |a, _args| format_conversion::to_csr(&a)?;
    to_csc |a, _args| format_conversion::to_csc(&a)?;
    to_coo |a, _args| format_conversion::to_coo(&a)?;
    to_dia |a, _args| format_conversion::to_dia(&a)?;
    to_bsr |a, args| format_conversion::to_bsr(&a, read_block_argument(args)?)?;
    to_format |a, args| format_conversion::to_format(&a, Format::parse(args.str("format")?)?)?;
    to_dense |a, _args| format_conversion::to_dense(&a)?;
    transpose |a, args| if reverses_axes(&a, args)? { format_conversion::transpose(&a)? } else { a };
    astype |a, args| format_conversion::astype(&a, DType::from_args(args, "dtype")?)?;
    dot |a, args| call_binary_operator("matmul", &a, args)?;
    multiply |a, args| call_binary_operator("multiply", &a, args)?;
    maximum |a, args| call_binary_operator("maximum", &a, args)?;
    minimum |a, args| call_binary_operator("minimum", &a, args)?;
    power |a, args| {
        let a = elementwise::sum_repeated_elements(&a)?;
        let a = args.dtype("dtype")?.map_or(Ok(a.clone()), |dtype| format_conversion::astype(&a, dtype))?;
        elementwise::power_of_stored_elements(&a, Scalar::from_args(args, "n")?)?
    };
    conj |a, _args| elementwise::conjugate(&a)?;
    sum |a, args| convert_to_requested_dtype(args, reductions::sum(&a, read_axes_argument(args)?)?)?;
    mean |a, args| convert_to_requested_dtype(args, reductions::mean(&a, read_axes_argument(args)?)?)?;
    max |a, args| reductions::minimum_or_maximum(&a, read_axes_argument(args)?, true)?;
    min |a, args| reductions::minimum_or_maximum(&a, read_axes_argument(args)?, false)?;
    count_nonzero |a, args| reductions::nonzero_count(&a, read_axes_argument(args)?)?;
    diagonal |a, args| reductions::diagonal(&a, args.int_or("k", 0)? as i64)?;
}
