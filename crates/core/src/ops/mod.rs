//! Operations, a file per family: the table's rows, result shapes and dtypes, public functions and methods, composites.
//! No kernel is here: a function checks, plans and dispatches.

pub mod contract;
pub mod creation;
pub mod einsum;
pub mod elementwise;
pub mod indexing;
pub mod manipulation;
pub mod operators;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod value;

use crate::op::OpDef;

/// Every built-in row.
pub static TABLE: [&[&OpDef]; 8] =
    [elementwise::ROWS, reduce::ROWS, scan::ROWS, contract::ROWS, creation::ROWS, manipulation::ROWS, indexing::ROWS, random::ROWS];

/// Declares the rows of a family that is not elementwise: a constant and a static for each, and `ROWS`.
macro_rules! rows {
    ($family:ident from $base:literal: $($CONST:ident $name:literal [$($alias:literal),*] $arity:literal ($signature:literal) $call:expr, $doc:literal;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($CONST),* }
        mod defs {
            use super::*;
            $(pub(super) static $CONST: crate::op::OpDef = crate::op::OpDef {
                name: $name,
                aliases: &[$($alias),*],
                family: crate::op::Family::$family,
                arity: $arity,
                index: $base + Place::$CONST as u16,
                rule: None,
                cost: crate::op::Cost::Cheap,
                composite: None,
                call: $call,
                signature: $signature,
                doc: $doc,
            };)*
        }
        $(#[doc = $doc] pub const $CONST: crate::op::Op = crate::op::Op(&defs::$CONST);)*
        /// The rows of this family.
        pub static ROWS: &[&crate::op::OpDef] = &[$(&defs::$CONST),*];
    };
}
pub(crate) use rows;
