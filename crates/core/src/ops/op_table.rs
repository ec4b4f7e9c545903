//! The table of built-in operations.

use super::{
    contract, creation, elementwise, fft, histogram, indexing, linalg, manipulation, random, reduce, scan, scatter, search, segments,
    select, sort, sparse,
};
use crate::op::{Op, OpDef};

/// Definitions of all built-in ops, by family.
pub static OP_TABLE: [&[&OpDef]; 17] = [
    elementwise::DEFINITIONS,
    reduce::DEFINITIONS,
    scan::DEFINITIONS,
    contract::DEFINITIONS,
    creation::DEFINITIONS,
    manipulation::DEFINITIONS,
    indexing::DEFINITIONS,
    random::DEFINITIONS,
    sort::DEFINITIONS,
    segments::DEFINITIONS,
    select::DEFINITIONS,
    search::DEFINITIONS,
    histogram::DEFINITIONS,
    scatter::DEFINITIONS,
    linalg::DEFINITIONS,
    fft::DEFINITIONS,
    sparse::DEFINITIONS,
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
