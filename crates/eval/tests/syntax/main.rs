//! The parser, from outside: what text becomes which tree, and what is said about text that is not in the language.

mod errors;
mod expressions;
mod hostile;
mod statements;
