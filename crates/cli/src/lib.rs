//! The `cuprum` command, as a library: `src/main.rs` reads the command line and calls in here; the benches share
//! [`works`].
#![deny(unsafe_code)]

pub mod bench;
pub mod bindings;
pub mod eval;
pub mod failure;
pub mod info;
pub mod ops;
pub mod output;
pub mod place;
pub mod sigpipe;
pub mod tour;
pub mod tune;
pub mod works;
