//! Forms of arguments and results that Rust programs use. Most tests fail by not compiling.

mod arguments;
