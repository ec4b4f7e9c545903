//! CUDA kernels of the family `Scatter`: kernels that store values in rows that indices select, or combine values with the elements of
//! these rows. Each thread writes one element, or one item of several contiguous elements.
//!
//! If several values are stored in one row, the last one remains. A first kernel finds the position of the last index that selects each
//! row. Integers are combined by atomic operations, because the order does not matter for them. Sums of floats are computed with integers
//! (module `reproducible_sum`), or by atomic operations if the call requests sums in any order. For other combinations of floats, the core
//! crate groups the values by row, and one thread combines the values of a group in order. If a row is a single element, the core crate
//! instead reduces the values of each row beforehand, so that the indices of the call are distinct.

mod bucket_sum;
mod packed_store;
mod partitioned_store;
mod reproducible_sum;
mod scatter_launch;

use cuprum_core::call;
use cuprum_core::call::RowAssignment;
use cuprum_core::ops::elementwise::ADD;
use cuprum_core::{Array, Call, Capability, DType, Outcome, Result, Work, decline};

use crate::device::{self, WithCallContext};
use scatter_launch::{CombineMacros, ScatterLaunch, plan_scatter};

/// Returns names and sources of the kernels, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    [
        scatter_launch::sources_for_compile_check(),
        packed_store::sources_for_compile_check(),
        partitioned_store::sources_for_compile_check(),
        reproducible_sum::sources_for_compile_check(),
        bucket_sum::sources_for_compile_check(),
    ]
    .concat()
}

/// Executes `call`, an operation of the kernel family `Scatter`, on the device.
pub(crate) fn run_scatter(call: &Call) -> Result<Outcome> {
    let (&Work::Scatter(call::Scatter { region, combine, rows, needs }), [indices, values, groups @ ..], [spec]) =
        (&call.work, call.inputs, call.outputs)
    else {
        decline!("not a scatter of values by indices");
    };
    if !matches!(indices.dtype(), DType::I32 | DType::I64) || !indices.layout().is_c_contiguous() || values.dtype() != spec.dtype {
        decline!("indices that are not contiguous int32 or int64, or values of another dtype");
    }
    if spec.target_buffer().is_none() {
        decline!("no target");
    }
    let combination = match combine {
        Some(op) => match CombineMacros::macros_for_operation(op, spec.dtype, rows) {
            Some(combination) => Some(combination),
            None => decline!("no CUDA expression for {}", op.name()),
        },
        None => None,
    };
    // `Distinct` rows are written once, and `Grouped` values are combined in order. Only for `Indexed` rows does the order of combination
    // depend on the order of threads.
    let depends_on_order = combination.is_some() && rows == RowAssignment::Indexed && spec.dtype.is_inexact();
    if depends_on_order && combine != Some(ADD) {
        decline!("a combination of floats, whose result depends on the order");
    }
    let is_reproducible_sum = depends_on_order && needs != Some(Capability::UnorderedScatterSum);
    let context = device::context(call.device)?;
    let out = device::allocate_output(call, 0)?;
    let target = out.pointer() + (region.offset() * spec.dtype.itemsize()) as u64;
    let addresses = [device::pointer_to_read(values)?, target];
    let indices_at = device::pointer_to_read(indices)?;
    let count = indices.layout().size();
    let scatter = plan_scatter(values, region, rows, count, addresses, combine.is_none())?;
    let launch =
        ScatterLaunch { context, scatter, indices: indices_at, index_dtype: indices.dtype(), op: device::fault_operation_id(call.op, 0) };
    let has_several_values = values.layout().strides()[0] != 0 && count > 1;
    match (combination, rows, groups) {
        _ if is_reproducible_sum => reproducible_sum::queue_reproducible_sum(call, &launch, values, region, count)?,
        (None, RowAssignment::Indexed, _) if has_several_values && launch.fits_partitioned_store(count) => {
            launch.queue_partitioned_store(call, count)?;
        }
        (None, RowAssignment::Indexed, _) if has_several_values && launch.fits_packed_store(count) => {
            let words = device::allocate(call, region.shape()[0].saturating_mul(8))?;
            launch.queue_packed_store(words.memory(), count).with_call_context(call)?;
        }
        (None, RowAssignment::Indexed, _) if has_several_values => {
            let owners = device::allocate(call, region.shape()[0].saturating_mul(8))?;
            launch.queue_last_index_search(&owners, count).with_call_context(call)?;
            launch.queue_store(owners.pointer()).with_call_context(call)?;
        }
        (None, RowAssignment::Indexed | RowAssignment::Distinct, _) => launch.queue_store(0).with_call_context(call)?,
        (Some(combination), RowAssignment::Indexed | RowAssignment::Distinct, _) => {
            launch.queue_combine(&combination, None).with_call_context(call)?
        }
        (Some(combination), RowAssignment::Grouped, [order, starts]) => {
            let value_step = values.layout().strides()[0];
            let groups = [device::pointer_to_read(order)?, device::pointer_to_read(starts)?, value_step as u64];
            launch.queue_combine(&combination, Some(groups)).with_call_context(call)?;
        }
        _ => decline!("groups without an order"),
    }
    device::outcome_from_buffers(call, [out])
}
