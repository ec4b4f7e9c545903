//! Conversion of the arguments that `eval` passes to functions. The arguments have the names of SciPy's parameters.

use cuprum_core::function::{FromArgs, IntoValue};
use cuprum_core::{Args, Error, Result, Value};

use crate::eval_value::sparse_from_value;
use crate::{CooArray, Format, SparseArray, format_conversion};

impl FromArgs for SparseArray {
    /// Reads a sparse array. A dense array is converted to COO format.
    fn from_args(args: &Args, name: &str) -> Result<SparseArray> {
        match args.get(name) {
            None => Err(Error::value(args.op(), format!("argument '{name}' is missing"))),
            Some(value) => match sparse_from_value(value) {
                Some(a) => Ok(a.clone()),
                None => {
                    let dense = CooArray::from_dense(&value.array(args.op())?);
                    Ok(dense.map_err(|e| e.with_function_name(args.op()))?.into())
                }
            },
        }
    }
}

/// Returns the argument `self`, the array whose method is called.
pub(crate) fn read_self_argument(args: &Args) -> Result<SparseArray> {
    let own = args.get("self").and_then(sparse_from_value).cloned();
    own.ok_or_else(|| Error::value(args.op(), "the first argument must be a sparse array"))
}

/// Returns the shape argument, if it was passed.
pub(crate) fn read_shape_argument(args: &Args) -> Result<Option<[usize; 2]>> {
    match args.get("shape") {
        None => Ok(None),
        Some(_) => require_two_extents(args.op(), &args.shape("shape")?).map(Some),
    }
}

/// Returns the argument `blocksize`, the shape of a block in BSR format, if it was passed.
pub(crate) fn read_block_argument(args: &Args) -> Result<Option<[usize; 2]>> {
    if args.get("blocksize").is_none() {
        return Ok(None);
    }
    let block = <[usize; 2]>::try_from(args.shape("blocksize")?);
    block.map(Some).map_err(|_| Error::value(args.op(), "blocksize must have two extents"))
}

pub(crate) fn require_two_extents(op: &'static str, extents: &[usize]) -> Result<[usize; 2]> {
    <[usize; 2]>::try_from(extents).map_err(|_| Error::value(op, "the shape of a sparse array has two extents"))
}

/// Converts a result to the format that the argument `format` names, if this argument was passed.
pub(crate) fn convert_to_requested_format(args: &Args, a: SparseArray) -> Result<Value> {
    match args.get("format") {
        None => Ok(a.into_value()),
        Some(_) => Ok(format_conversion::to_format(&a, Format::parse(args.str("format")?)?)?.into_value()),
    }
}

/// Calls a function for `eval`. An error names the function that the script called, not the inner function that returned the error.
pub(crate) fn call_with_named_errors(args: &Args, call: impl FnOnce(&Args) -> Result<Value>) -> Result<Value> {
    call(args).map_err(|e| e.with_function_name(args.op()))
}
