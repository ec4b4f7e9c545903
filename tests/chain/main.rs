//! Tests of dispatch with test accelerators: their order, the records of calls, and errors when all decline.

mod auto;
mod capabilities;
mod devices;
mod environment;
mod fused_take;
mod graphs;
mod kernel_macro;
mod op_table;
mod order;
mod profiler;
mod records;
mod registration;
mod test_accelerators;
mod third_party_op;
