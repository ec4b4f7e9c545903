//! The table of built-in operations.

use super::{
    contract, creation, elementwise, fft, histogram, linalg, manipulation, random, reduce, scan, scatter, search, segments, select, sort,
    sparse, take,
};
use crate::op::{Op, OpDef};

/// Definitions of all built-in ops, by family.
pub static OP_TABLE: [&[&OpDef]; 17] = [
    elementwise::OP_DEFINITIONS,
    reduce::OP_DEFINITIONS,
    scan::OP_DEFINITIONS,
    contract::OP_DEFINITIONS,
    creation::OP_DEFINITIONS,
    manipulation::OP_DEFINITIONS,
    take::OP_DEFINITIONS,
    random::OP_DEFINITIONS,
    sort::OP_DEFINITIONS,
    segments::OP_DEFINITIONS,
    select::OP_DEFINITIONS,
    search::OP_DEFINITIONS,
    histogram::OP_DEFINITIONS,
    scatter::OP_DEFINITIONS,
    linalg::OP_DEFINITIONS,
    fft::OP_DEFINITIONS,
    sparse::OP_DEFINITIONS,
];

impl Op {
    /// Returns all built-in operations.
    pub fn all() -> impl Iterator<Item = Op> {
        OP_TABLE.iter().flat_map(|t| t.iter()).map(|d| Op(d))
    }
    /// Returns the built-in operation of this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Op> {
        Op::all().find(|op| op.name() == name)
    }
}
