//! Evaluates NumPy expressions given as text: Python's expression syntax over named arrays, so that NumPy code can be pasted.
//!
//! [`eval`] evaluates one expression. [`Session`] runs scripts and keeps their variables. [`functions`] lists the functions that an
//! expression can call. This crate depends on `cuprum-core` and `cuprum-numpy`, but on no backend.
//!
//! ```
//! # use cuprum_backend_cpu as _;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = cuprum_core::NdArray::from_slice(&[0.0f32, 3.0, 4.0])?;
//! let y = cuprum_eval::eval("np.sqrt(np.sum(x**2)) + x[::-1]", [("x", &x)])?;
//! assert_eq!(y.to_vec::<f32>()?, [9.0, 8.0, 5.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Syntax
//!
//! - **Literals**: `12`, `1_000`, `0xff`, `0o17`, `0b11` (up to 2**127 - 1), `1.5`, `.5`, `1e-3`, `2j`,
//!   `'float32'`, `True`, `False`, `None`, tuples, nested lists.
//! - **Operators**, with Python's precedence and grouping: `**`, unary `- + ~`, `* / // % @`, `+ -`,
//!   `<< >>`, `&`, `^`, `|`, comparisons and their chains, `not`, `and`, `or`, `x if test else y`.
//! - **Names**: `sum(a)`, `np.sum(a)`, `np.linalg.norm(a)`. The prefixes `np`, `numpy`, `cp`, `cupy`,
//!   `xp` and `cuprum` refer to this library, as do prefixes made by `import numpy as ...`.
//! - **Calls** with positional and keyword arguments, methods, attributes.
//! - **Indices**: integers, slices with steps, `None`, `...`, arrays, and tuples of them.
//! - **Statements**, separated by line ends or `;`: expressions, `a = b = value`, `a, b = value`,
//!   `a[i] = value`, `a += value`, `a[i] += value` and the other augmented assignments. `import` lines are parsed and ignored.
//! - `#` comments, line ends inside brackets, `\` at the end of a line.
//!
//! The rest of Python (`lambda`, comprehensions, f-strings, `:=`, `*args`, `def`, loops) gives an error that names the
//! construct:
//!
//! ```
//! let error = cuprum_eval::parse("sqrt(x^0.5)").unwrap_err();
//! assert_eq!(error.render(), "\
//! error: `^` is the exclusive or of integers and cannot take this operand
//!  --> line 1, column 7
//!   |
//! 1 | sqrt(x^0.5)
//!   |       ^
//!   = help: a power is written `**`");
//! ```
//!
//! # Semantics
//!
//! - A name is a variable, or else a function, constant or dtype of the library under NumPy's name. `linalg.norm` and
//!   `random.uniform` need their namespace; a prefix such as `np.` always refers to the library.
//! - Literals are weak: `x * 2.5` keeps the dtype of a float32 `x`. Between two numbers, operators are Python's: integers
//!   are exact up to 2**127, `/` gives a float, dividing by zero is an error.
//! - Operators on arrays call the declared functions, so `a + b` and `add(a, b)` cannot differ. Elementwise operators are
//!   deferred and fused.
//! - `and`, `or`, `not`, chained comparisons and `x if test else y` need one truth value. An array of several elements is
//!   an error, whose help names the array operator.
//! - Indexing by integers, slices, `None` and `...` returns views. An index may also contain integer arrays and masks,
//!   by NumPy's rules for advanced indexing.
//! - Arrays are values: a statement changes one variable. After `b = a; a[0] = 1`, `b` has its old elements.
//!   Memory that nothing else uses is written in place.
//! - `a[index] = value` converts the value to the dtype of `a` and broadcasts it. All kinds of indices are allowed, also masks and index
//!   arrays.
//! - Functions that update an argument, and `out=`, take a variable or a slice of one: `add.at(a[0], i, 1)`, `sqrt(b, out=a[1:])`.
//! - `a += b`, `a[index] += b` and `add(a, b, out=a)` keep the dtype and shape of `a`. The result must be castable to that dtype by NumPy's
//!   `same_kind` rule. A 0-d array behaves as a number in augmented assignments, so its dtype and shape may change.
//! - `int`, `float`, `bool`, `complex`, `len`, `abs`, `round`, `pow`, `min` and `max` are Python's when all their
//!   arguments are single numbers. `sum(values)` and `sum(values, start)` of a list or tuple, without keywords, are Python's; `sum` of an
//!   array or of nested lists and `np.sum` are NumPy's. `print` calls the function set by [`Session::on_print`].
//!
//! Every error has a source position:
//!
//! ```
//! let error = cuprum_eval::eval("x = 3\nsqrt(x) + cumsmu(x)", []).unwrap_err();
//! assert_eq!(error.render(), "\
//! error: no variable or function `cumsmu`
//!  --> line 2, column 11
//!   |
//! 2 | sqrt(x) + cumsmu(x)
//!   |           ^^^^^^
//!   = help: did you mean `cumsum`?");
//! ```
//!
//! # The syntax tree, for other evaluators
//!
//! [`parse`] and [`parse_expression`] need no arrays. Their guarantees:
//!
//! - Names are not resolved: a [`Name`](ast::ExprKind::Name) is a variable if one of that name exists, else a function or
//!   constant of the library.
//! - A [`Global`](ast::ExprKind::Global) is a name of the library, with its namespace in the path: `np.linalg.norm` is `linalg.norm`.
//!   Without a prefix, `linalg.norm` parses as an attribute of the name `linalg`. An evaluator that finds no variable of that name gets the
//!   path from [`dotted_name`](ast::Expr::dotted_name).
//! - An operator means the NumPy function that [`function`](operators::BinaryOp::function) names.
//!   Comparison chains, `and`, `or`, `not` and the conditional need the truth value of their operands, which is an error
//!   for an array of more than one element.
//! - In an index, the literals `None`, `np.newaxis` and `...` have their own item kinds, and a single tuple is flattened.
//!   The value of a name may still be `None`, a tuple or a slice.
//! - Arithmetic on literals is not folded: `Int` operands are weak Python scalars, exact in `i128`.
//! - Trees are at most [`MAX_HEIGHT`] high, so recursion over them is safe on a stack of the default size.
//! - [`Script`](ast::Script) keeps its source. An evaluator builds its errors by [`EvalError::new`] from the source and the
//!   [`Span`] of the failing node.
//! - [`free_names`](ast::Script::free_names) and [`assigned_names`](ast::Script::assigned_names) list the inputs and outputs
//!   of a program before it runs.

#![forbid(unsafe_code)]

mod assigned_names;
mod assignment;
pub mod ast;
mod attributes_and_methods;
mod builtins;
mod error;
mod evaluate;
mod expression_parser;
mod indexing;
mod lexer;
mod library_names;
mod literals;
mod name_analysis;
pub mod operators;
mod primary_expression_parser;
mod s_expressions;
mod scalar_operations;
mod session;
mod span;
mod statement_parser;
mod subscript_functions;
mod syntax_errors;
mod unlocated_error;
mod value_operators;
mod value_text;

pub use cuprum_core::function::Function;
pub use error::{Diagnostic, EvalError, EvalErrorKind, ParseError};
pub use expression_parser::{MAX_HEIGHT, MAX_NESTING};
pub use lexer::is_keyword;
pub use library_names::functions;
pub use name_analysis::NameUse;
pub use session::{Session, eval};
pub use span::{Position, Span};
pub use statement_parser::{parse, parse_expression};
pub use value_text::{display, repr};
