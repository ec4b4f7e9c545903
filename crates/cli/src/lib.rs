//! Implementation of the `cuprum` command. `src/main.rs` parses the command line. The benches share [`workloads`].
#![deny(unsafe_code)]

pub mod bench;
pub mod bindings;
pub mod device_options;
pub mod eval;
pub mod failure;
pub mod info;
pub mod interrupt;
pub mod ops;
pub mod output;
pub mod progress;
pub mod report;
pub mod sigpipe;
pub mod tour;
pub mod tune;
pub mod workloads;
