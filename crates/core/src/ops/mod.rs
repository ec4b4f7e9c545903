//! Operations, a file per family: the table's rows, result shapes and dtypes, public functions and methods, composites.
//! No kernel is here: a function checks, plans and dispatches.

pub mod contract;
pub mod creation;
pub mod einsum;
pub mod elementwise;
pub mod function;
pub mod histogram;
pub mod indexing;
mod items;
pub mod manipulation;
pub mod operators;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod segments;
pub mod select;
pub mod sort;
pub mod value;

use smallvec::SmallVec;

use crate::array::{Array, NdArray, StoredArray};
use crate::call::{Call, OutputSpec, Work};
use crate::device::{Device, Stream};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::{Op, OpDef};
use crate::program::Program;

/// Every built-in row.
pub static TABLE: [&[&OpDef]; 13] = [
    elementwise::ROWS,
    reduce::ROWS,
    scan::ROWS,
    contract::ROWS,
    creation::ROWS,
    manipulation::ROWS,
    indexing::ROWS,
    random::ROWS,
    sort::ROWS,
    segments::ROWS,
    select::ROWS,
    search::ROWS,
    histogram::ROWS,
];

/// The device that all arrays of a call lie on.
fn one_device(op: Op, a: &NdArray, b: &NdArray) -> Result<Device> {
    let (device, other) = (a.device(), b.device());
    if device == other {
        return Ok(device);
    }
    Err(Error::Device { op: op.name(), message: format!("arrays are on {device} and {other}; use to_device") })
}

/// Dispatches a call on the current stream of a device, and returns its outputs as arrays, in order.
fn run<const N: usize>(op: Op, device: Device, inputs: &[StoredArray], outputs: &[OutputSpec], work: Work) -> Result<[NdArray; N]> {
    let done = dispatch::run(&Call { op, device, stream: Stream::current(device), inputs, outputs, work })?;
    let mut arrays = SmallVec::<[NdArray; N]>::new(); // pushed one by one: a large value passes through fewer hands than in `collect`
    done.into_iter().for_each(|array| arrays.push(array.into()));
    arrays.into_inner().map_err(|a| Error::value(op.name(), format!("the kernel returned {} outputs, not {N}", a.len())))
}

/// [`run`] for a call with one output.
fn run_one(op: Op, device: Device, inputs: &[StoredArray], output: OutputSpec, work: Work) -> Result<NdArray> {
    let [array] = run(op, device, inputs, &[output], work)?;
    Ok(array)
}

/// `a` as the prologue of a loop over its elements in C order: a program with one result of `dtype`, and its inputs as 1-D
/// arrays of stride 1, or 0 where one element serves all.
fn flat_prologue(a: &NdArray, dtype: DType) -> Result<(Program, SmallVec<[StoredArray; 4]>)> {
    let prologue = |program: &Program, inputs: &[StoredArray]| {
        let inputs = inputs.iter().map(flat).collect::<Option<Result<SmallVec<_>>>>();
        inputs.map(|inputs| Ok((program.clone(), inputs?))).transpose()
    };
    match a.with_prologue(dtype, prologue)? {
        Some(flat) => Ok(flat),
        None => {
            let stored = a.astype(dtype)?.ravel()?.contiguous()?.stored()?;
            Ok((Program::identity(dtype), SmallVec::from_elem(stored, 1)))
        }
    }
}

/// The elements in C order as one axis of stride 1 or 0, where memory allows that.
fn flat(a: &StoredArray) -> Option<Result<StoredArray>> {
    let size = a.layout().size();
    let layout = match a.layout().reshape(&[size])? {
        layout if size <= 1 => Layout::strided(&[size], &[1], layout.offset()).ok()?,
        layout => layout,
    };
    matches!(layout.strides(), [0 | 1]).then(|| a.with_layout(layout))
}

/// Declares the operations of a family that is not elementwise: a constant and a static for each, and `ROWS`. A row may end with
/// `else` and the composite that serves where no kernel does. Indices follow those of the module that `after` names.
macro_rules! rows {
    ($family:ident after $before:ident: $($CONST:ident $name:literal $arity:literal $(else $composite:expr)?;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($CONST,)* End }
        /// The index after the last row.
        pub(crate) const END: u16 = crate::ops::$before::END + Place::End as u16;
        mod defs {
            use super::*;
            $(pub(super) static $CONST: crate::op::OpDef = crate::op::OpDef {
                name: $name,
                family: crate::op::Family::$family,
                arity: $arity,
                index: crate::ops::$before::END + Place::$CONST as u16,
                rule: None,
                cost: crate::op::Cost::Cheap,
                composite: [$(Some($composite as crate::op::Composite),)? None][0],
                body: None,
            };)*
        }
        $(#[doc = concat!("The operation `", $name, "`.")] pub const $CONST: crate::op::Op = crate::op::Op(&defs::$CONST);)*
        /// The rows of this family.
        pub static ROWS: &[&crate::op::OpDef] = &[$(&defs::$CONST),*];
    };
}
pub(crate) use rows;
