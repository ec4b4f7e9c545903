//! Implementation of the `cuprum` command. `src/main.rs` parses the command line. The benches share [`workloads`].
#![deny(unsafe_code)]

pub mod bench;
pub mod device_options;
pub mod eval;
pub mod failure;
pub mod info;
pub mod operation_coverage;
pub mod partial_file_cleanup;
pub mod progress_bar;
pub mod report;
pub mod sigpipe;
pub mod terminal_output;
pub mod tour;
pub mod tune;
pub mod variable_bindings;
pub mod workloads;
