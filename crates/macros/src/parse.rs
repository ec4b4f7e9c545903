//! Conversion of Rust syntax to typed [`Function`](crate::syntax_tree::Function)s. Unsupported syntax is a compile error at its source
//! position.

mod expressions;
mod functions;
mod statements;
mod tables;

pub use functions::convert_functions;
