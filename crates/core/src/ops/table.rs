//! The table of built-in operations.

use super::{contract, creation, elementwise, histogram, indexing, manipulation, random, reduce, scan, search, segments, select, sort};
use crate::op::{Op, OpDef};

/// Definitions of all built-in ops, by family.
pub static TABLE: [&[&OpDef]; 13] = [
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
];

impl Op {
    /// Returns all built-in operations.
    pub fn all() -> impl Iterator<Item = Op> {
        TABLE.iter().flat_map(|t| t.iter()).map(|d| Op(d))
    }
    /// Returns the built-in operation of this name.
    pub fn by_name(name: &str) -> Option<Op> {
        Op::all().find(|op| op.name() == name)
    }
}
