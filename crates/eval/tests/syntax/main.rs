//! Tests of the parser: syntax trees and syntax errors.

mod errors;
mod expressions;
mod random_text;
mod statements;
