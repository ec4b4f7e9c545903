//! Dispatch of calls from operations, fused inputs, and the macro that declares operations.

use smallvec::SmallVec;

use crate::array::{NdArray, StoredArray};
use crate::call::{Call, OutputSpec, Work};
use crate::device::{Device, Stream};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::op::{Family, Op};
use crate::program::Program;

/// Returns the common device of two arrays, or an error if their devices differ.
pub(crate) fn common_device(op: Op, a: &NdArray, b: &NdArray) -> Result<Device> {
    let (device, other) = (a.device(), b.device());
    if device == other {
        return Ok(device);
    }
    Err(Error::Device { op: op.name(), message: format!("arrays are on {device} and {other}; use to_device") })
}

/// Dispatches a call on the current stream of a device, and returns its outputs in order.
pub(crate) fn dispatch_call<const N: usize>(
    op: Op,
    device: Device,
    inputs: &[StoredArray],
    outputs: &[OutputSpec],
    work: Work,
) -> Result<[NdArray; N]> {
    let done = dispatch::run_call(&Call { op, device, stream: Stream::current(device), inputs, outputs, work })?;
    let mut arrays = SmallVec::<[NdArray; N]>::new(); // `collect` would move the large arrays more often
    done.into_iter().for_each(|array| arrays.push(array.into()));
    arrays.into_inner().map_err(|a| Error::value(op.name(), format!("the kernel returned {} outputs, not {N}", a.len())))
}

/// Dispatches a call with one output. See [`dispatch_call`].
pub(crate) fn dispatch_single_output(op: Op, device: Device, inputs: &[StoredArray], output: OutputSpec, work: Work) -> Result<NdArray> {
    let [array] = dispatch_call(op, device, inputs, &[output], work)?;
    Ok(array)
}

/// Returns a program that computes the elements of `a` in C order, and the inputs of the program, for a call of `family`.
///
/// The program has one result, of `dtype`. Its inputs are 1-D arrays of stride 1, or 0 for a repeated element.
pub(crate) fn fuse_flattened_input(family: Family, a: &NdArray, dtype: DType) -> Result<(Program, SmallVec<[StoredArray; 4]>)> {
    let prologue = |program: &Program, inputs: &[StoredArray]| {
        let inputs = inputs.iter().map(try_view_as_flat_array).collect::<Option<Result<SmallVec<_>>>>();
        inputs.map(|inputs| Ok((program.clone(), inputs?))).transpose()
    };
    match a.with_fused_input(family, dtype, prologue)? {
        Some(flat) => Ok(flat),
        None => {
            let stored = a.astype(dtype)?.ravel()?.contiguous()?.stored()?;
            Ok((Program::identity(dtype), SmallVec::from_elem(stored, 1)))
        }
    }
}

/// Returns a 1-D view of the elements in C order with stride 1 or 0, if the layout allows such a view.
fn try_view_as_flat_array(a: &StoredArray) -> Option<Result<StoredArray>> {
    let size = a.layout().size();
    let layout = match a.layout().reshape(&[size])? {
        layout if size <= 1 => Layout::strided(&[size], &[1], layout.offset()).ok()?,
        layout => layout,
    };
    matches!(layout.strides(), [0 | 1]).then(|| a.with_layout(layout))
}

/// Declares the ops of a family other than elementwise: a constant and a static for each, and `OP_DEFINITIONS`.
///
/// A table row consists of constant, name and arity. It may end with `by` and the description of a reduction. It may also end with `else`
/// and a composition of other operations, which runs if every kernel declines. `after` names the module whose last op index precedes the
/// first one of this module.
macro_rules! ops {
    ($family:ident after $($before:ident)::+: $($CONST:ident $name:literal $arity:literal $(by $reduction:expr)? $(, else $composite:expr)?;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code, reason = "no module follows the last one")]
        enum OpIndex { $($CONST,)* End }
        const FIRST_OP_INDEX: u16 = crate::ops::$($before::)+NEXT_OP_INDEX;
        /// The op index after that of the module's last op. It is the index of the first op of the next module.
        #[allow(dead_code, reason = "no module follows the last one")]
        pub(crate) const NEXT_OP_INDEX: u16 = FIRST_OP_INDEX + OpIndex::End as u16;
        mod op_definitions {
            use super::*;
            $(pub(super) static $CONST: crate::op::OpDef = crate::op::OpDef {
                name: $name,
                family: crate::op::Family::$family,
                arity: $arity,
                index: FIRST_OP_INDEX + OpIndex::$CONST as u16,
                rule: None,
                cost: crate::op::Cost::Cheap,
                composite: [$(Some($composite as crate::op::Composite),)? None][0],
                body: None,
                reduction: [$(Some($reduction),)? None][0],
            };)*
        }
        $(#[doc = concat!("The operation `", $name, "`.")] pub const $CONST: crate::op::Op = crate::op::Op(&op_definitions::$CONST);)*
        /// Definitions of the ops that this module declares, in index order.
        pub static OP_DEFINITIONS: &[&crate::op::OpDef] = &[$(&op_definitions::$CONST),*];
    };
}
pub(crate) use ops;
