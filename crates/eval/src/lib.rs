//! NumPy expressions as text: Python's expression syntax over named arrays, enough that an expression can be pasted.
//!
//! [`eval`] works out one expression, [`Session`] runs scripts and keeps their variables, [`functions`] lists what can be
//! called. This crate knows text and core's op table; it knows no backend.
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
//! # What is in the language
//!
//! - **Literals**: `12`, `1_000`, `0xff`, `0o17`, `0b11` (up to 2**127 - 1), `1.5`, `.5`, `1e-3`, `2j`,
//!   `'float32'`, `True`, `False`, `None`, tuples, nested lists.
//! - **Operators**, with Python's precedence and grouping: `**`, unary `- + ~`, `* / // % @`, `+ -`,
//!   `<< >>`, `&`, `^`, `|`, comparisons and their chains, `not`, `and`, `or`, `x if test else y`.
//! - **Names**: `sum(a)`, `np.sum(a)`, `np.linalg.norm(a)`. The prefixes `np`, `numpy`, `cp`, `cupy`,
//!   `xp` and `cuprum`, and those made by `import numpy as ...`, mean this library.
//! - **Calls** with positional and keyword arguments, methods, attributes.
//! - **Indices**: integers, slices with steps, `None`, `...`, arrays, and tuples of them.
//! - **Statements**, separated by line ends or `;`: expressions, `a = b = value`, `a, b = value`,
//!   `a[i] = value`, `a += value` and its eleven kin. `import` lines are read and left out.
//! - `#` comments, line ends inside brackets, `\` at the end of a line.
//!
//! Everything else that Python has (`lambda`, comprehensions, f-strings, `:=`, `*args`, `def`, loops)
//! gives an error that names it:
//!
//! ```
//! let error = cuprum_eval::parse("sqrt(x^0.5)").unwrap_err();
//! assert_eq!(error.render(), "\
//! error: `^` is the exclusive or of whole numbers and cannot take this operand
//!  --> line 1, column 7
//!   |
//! 1 | sqrt(x^0.5)
//!   |       ^
//!   = help: a power is written `**`");
//! ```
//!
//! # What it means
//!
//! - A name is a variable, else a function, constant or dtype of the library, under NumPy's name. `linalg.norm` and
//!   `random.uniform` go by their modules; a prefix such as `np.` always means the library.
//! - Literals are weak: `x * 2.5` keeps the dtype of a float32 `x`. Between two numbers, operators are Python's: whole
//!   numbers are exact up to 2**127, `/` gives a float, dividing by zero is an error.
//! - Operators on arrays are the functions of core's table, so `a + b` and `add(a, b)` cannot differ. Elementwise ones are
//!   deferred and fused.
//! - `and`, `or`, `not`, chained comparisons and `x if test else y` need one truth value: with an array of several
//!   elements they are an error that says what to write.
//! - Indices by integers, slices, `None` and `...` are views; one array of integers or one mask may stand among them.
//!   Several index arrays are not in this version.
//! - Arrays are values: `a[0] = 1` is an error. `a += b` gives the name a new array of the old dtype and shape, with
//!   NumPy's rule for what may be stored in it; what is 0-d counts as a number.
//! - `int`, `float`, `bool`, `complex`, `len`, `abs`, `round`, `pow`, `min` and `max` are Python's when all their
//!   arguments are single numbers; `print` goes where [`Session::on_print`] says.
//!
//! Every error points at its place:
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
//! [`parse`] and [`parse_expression`] know no arrays. What can be relied on:
//!
//! - The tree says what was written, and resolves nothing: a [`Name`](ast::ExprKind::Name) is a variable
//!   if there is one of that name, else a function or constant of the library.
//! - A [`Global`](ast::ExprKind::Global) is a name of the library, with its namespace in the path:
//!   `np.linalg.norm` is `linalg.norm`. Without a prefix the same comes as attributes of a name;
//!   [`dotted_name`](ast::Expr::dotted_name) puts it together once the name is known to be no variable.
//! - An operator is the NumPy function that [`function`](ops::BinaryOp::function) names, and nothing else.
//!   Chains, `and`, `or`, `not` and the conditional need the truth value of their operands: for an array
//!   of more than one element that is an error.
//! - In an index, the literals `None`, `np.newaxis` and `...` are items of their own kind, and a lone tuple
//!   is flattened. A name may still turn out to hold `None`, a tuple or a slice.
//! - Arithmetic on literals is not folded: `Int` operands are weak Python scalars, exact in `i128`.
//! - Trees are at most [`MAX_HEIGHT`] high, so recursion over them is safe on an ordinary stack.
//! - [`Script`](ast::Script) keeps its source: errors of evaluation are made with
//!   [`EvalError::new`] from it and the [`Span`] of the node at fault.
//! - [`free_names`](ast::Script::free_names) and [`assigned_names`](ast::Script::assigned_names) tell what
//!   a program needs and makes before anything runs.

#![forbid(unsafe_code)]

pub mod ast;
mod builtins;
mod diagnose;
mod error;
mod evaluate;
mod fault;
mod index;
mod lexer;
mod library;
mod literal;
mod members;
mod names;
pub mod ops;
mod parser;
mod primary;
mod scalar;
mod session;
mod sexpr;
mod show;
mod span;
mod statement;

pub use cuprum_core::function::Function;
pub use error::{Diagnostic, EvalError, EvalErrorKind, ParseError};
pub use library::functions;
pub use names::NameUse;
pub use parser::{MAX_HEIGHT, MAX_NESTING};
pub use session::{Session, eval};
pub use show::{display, repr};
pub use span::{Position, Span};
pub use statement::{parse, parse_expression};
