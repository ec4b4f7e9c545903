//! Conversion of Rust syntax to typed [`Function`](crate::syntax_tree::Function)s. Unsupported syntax is a compile error at its source
//! position.

mod constant_tables;
mod expressions;
mod functions;
mod statements;

pub use functions::convert_functions;
