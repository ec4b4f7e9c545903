//! Conversion of Rust syntax to typed [`Function`](crate::syntax_tree::Function)s. Unsupported syntax is a compile error at its source
//! position.

mod constant_tables;
mod expression_parser;
mod function_parser;
mod statement_parser;

pub use function_parser::convert_functions;
