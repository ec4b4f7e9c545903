//! Deferred evaluation of elementwise operations.
//!
//! Operations build an expression. The expression runs as one call of the kernel family `Map` when its value is needed, or becomes the
//! fused input of a reduction or scan. Reductions over the last axes with `keepdims` may be deferred too (`expr/deferred_reductions.rs`).
//! Deferral does not change values, except for the last bits of sums along rows: a fused kernel may add the elements of a row in another
//! order.

mod deferred_reductions;
mod elementwise_builder;
mod evaluate;
mod expression_node;
mod fusion_setting;
mod host_data;
mod item_conversion;
mod nd_array;
mod operation_appending;
mod program_builder;
mod row_loop;

pub(crate) use elementwise_builder::{
    broadcast_shape_of_operands, check_operands, check_weak_ints, elementwise_consuming_args, elementwise_with_dtypes,
};
pub use elementwise_builder::{elementwise, elementwise_multi_result};
pub use evaluate::run_as_composite;
pub(crate) use expression_node::{DeferredReduction, Operands, RowReductionImplementation};
pub use expression_node::{NdArray, Operand};
pub use fusion_setting::{fusion_enabled, with_fusion};
pub use host_data::IntoElements;
