//! Statement parser: assignments, expression statements, and the `import` lines of pasted code.

use crate::ast::{Expr, ExprKind, Script, Stmt, StmtKind, Target, TargetKind};
use crate::error::ParseError;
use crate::expression_parser::{Parsed, Parser};
use crate::lexer::Token;
use crate::operators::BinaryOp;
use crate::span::Span;

/// Modules that `import` accepts, because their functions have the same names in this library.
const IMPORTABLE_MODULES: [&str; 5] = ["numpy", "cupy", "cuprum", "jax.numpy", "array_api_strict"];

/// Parses a script: statements separated by line ends or `;`.
///
/// Indentation has no meaning. Lines such as `import numpy as np` are accepted and produce no statement.
///
/// # Errors
///
/// Returns the first syntax error in source order. The [crate](crate) page describes the grammar.
///
/// # Examples
///
/// ```
/// let script = cuprum_eval::parse("import numpy as np\nn = np.sqrt(np.sum(a**2, axis=-1)); n.max()")?;
/// assert_eq!(script.statements.len(), 2);
/// assert_eq!(script.statements[1].to_string(), "(call (. n max))");
/// # Ok::<(), cuprum_eval::ParseError>(())
/// ```
pub fn parse(source: &str) -> Result<Script, ParseError> {
    let mut parser = Parser::new(source);
    let mut statements = Vec::new();
    loop {
        parser.skip_newlines();
        match parser.peek_token() {
            Token::End => {
                return Ok(Script { source: source.into(), statements });
            }
            Token::Punct(";") => {
                return Err(parser.parse_error(parser.next_token_span(), "there is no statement before this `;`"));
            }
            _ => {}
        }
        statements.extend(parser.parse_statement()?);
        match parser.peek_token() {
            Token::Newline | Token::End => {}
            Token::Punct(";") => {
                parser.consume_token();
            }
            _ => return Err(parser.expected_statement_end_error()),
        }
    }
}

/// Parses one expression, ignoring line ends before and after it.
///
/// # Errors
///
/// Returns the same errors as [`parse`], and an error if the source is not exactly one expression.
///
/// # Examples
///
/// ```
/// let expr = cuprum_eval::parse_expression("-x**2 / 2")?;
/// assert_eq!(expr.to_string(), "(/ (- (** x 2)) 2)");
/// # Ok::<(), cuprum_eval::ParseError>(())
/// ```
pub fn parse_expression(source: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(source);
    parser.skip_newlines();
    let expr = parser.parse_comma_separated_expressions()?;
    parser.skip_newlines();
    match parser.peek_token() {
        Token::End => Ok(expr),
        Token::Punct(";") => Err(parser.parse_error(parser.next_token_span(), "only one expression is expected here")),
        _ => Err(parser.expected_statement_end_error()),
    }
}

impl<'s> Parser<'s> {
    fn skip_newlines(&mut self) {
        while *self.peek_token() == Token::Newline {
            self.consume_token();
        }
    }

    /// Parses one statement. Returns `None` for an `import`.
    fn parse_statement(&mut self) -> Parsed<Option<Stmt>> {
        match *self.peek_token() {
            Token::Keyword("import") => return self.parse_import().map(|()| None),
            Token::Keyword("from") => return self.parse_import_from().map(|()| None),
            _ => {}
        }
        let first = self.parse_comma_separated_expressions()?;
        let start = first.span;
        let kind = match self.peek_token() {
            Token::Punct("=") => self.parse_assignment(first)?,
            Token::Punct(symbol) => match augmented_operator(symbol) {
                Some(op) => self.parse_augmented_assignment(first, op)?,
                None => StmtKind::Expr(first),
            },
            _ => StmtKind::Expr(first),
        };
        Ok(Some(Stmt { kind, span: start.to(self.last_token_span()) }))
    }

    /// Parses comma-separated expressions: a tuple without parentheses if there is a comma, else a single expression.
    fn parse_comma_separated_expressions(&mut self) -> Parsed<Expr> {
        let first = self.parse_unstarred_expression()?;
        if !self.next_is_punctuation(",") {
            return Ok(first);
        }
        let start = first.span;
        let mut items = vec![first];
        while self.eat_punctuation(",").is_some() {
            let ends = match self.peek_token() {
                Token::Newline | Token::End => true,
                Token::Punct(symbol) => matches!(*symbol, ";" | "=") || augmented_operator(symbol).is_some(),
                _ => false,
            };
            if ends {
                break;
            }
            items.push(self.parse_unstarred_expression()?);
        }
        self.new_expression_node(ExprKind::Tuple(items), start.to(self.last_token_span()))
    }

    fn parse_unstarred_expression(&mut self) -> Parsed<Expr> {
        if self.next_is_punctuation("*") {
            return Err(self.unsupported_construct_error(
                self.next_token_span(),
                "unpacking with `*` is",
                "name each part, or slice the value",
            ));
        }
        self.parse_expression()
    }

    /// Parses the rest of `first = b = value`, starting at the first `=`.
    fn parse_assignment(&mut self, first: Expr) -> Parsed<StmtKind> {
        let mut targets = Vec::new();
        let mut value = first;
        while let Some(equals) = self.eat_punctuation("=") {
            targets.push(self.to_assignment_target(value, equals)?);
            value = self.parse_comma_separated_expressions()?;
        }
        Ok(StmtKind::Assign { targets, value })
    }

    /// Parses the rest of `first += value`, starting at the operator.
    fn parse_augmented_assignment(&mut self, first: Expr, op: BinaryOp) -> Parsed<StmtKind> {
        let op_span = self.consume_token();
        if matches!(first.kind, ExprKind::Tuple(_) | ExprKind::List(_)) {
            let message = format!("{} cannot be updated with `{}=`", first.describe(), op.symbol());
            return Err(self.parse_error(first.span, message).with_help("update one name at a time"));
        }
        let target = self.to_assignment_target(first, op_span)?;
        let value = self.parse_comma_separated_expressions()?;
        Ok(StmtKind::AugAssign { target, op, op_span, value })
    }

    /// Converts `expr`, which is left of the `=` at `equals`, to an assignment target.
    fn to_assignment_target(&self, expr: Expr, equals: Span) -> Parsed<Target> {
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::Name(name) => TargetKind::Name(name),
            ExprKind::Index { base, index } => TargetKind::Index { base: *base, index },
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                let targets: Parsed<Vec<Target>> = items.into_iter().map(|item| self.to_assignment_target(item, equals)).collect();
                TargetKind::Tuple(targets?)
            }
            _ => {
                let text = expr.span.text(self.source);
                let short = if text.len() <= 24 && !text.contains(['\n', '\r']) { format!(" `{text}`") } else { String::new() };
                let what = expr.describe();
                let what = if what.starts_with('`') { what.into() } else { format!("{what},{short}") };
                let error = self.parse_error(span, format!("cannot assign to {}", what.trim_end_matches(',')));
                return Err(match expr.kind {
                    ExprKind::Attribute { .. } => error.with_help("attributes of arrays are read-only; assign to a name"),
                    ExprKind::Global { .. } => error.with_help("names with a prefix belong to the library; assign to a name without one"),
                    _ if equals.text(self.source) == "=" => error.with_help("to compare, write `==`"),
                    _ => error,
                });
            }
        };
        Ok(Target { kind, span })
    }

    /// Parses an import line such as `import numpy as np, cupy`.
    fn parse_import(&mut self) -> Parsed<()> {
        self.consume_token();
        loop {
            let (path, span) = self.parse_module_path()?;
            if !IMPORTABLE_MODULES.contains(&path.as_str()) {
                return Err(self.not_importable_error(&path, span));
            }
            let (alias, _) = if self.eat_keyword("as").is_some() {
                self.parse_name("a name")?
            } else if path.contains('.') {
                // In Python, `import jax.numpy` binds only the name `jax`, so calls would need the prefix `jax.numpy`.
                return Err(self
                    .parse_error(span, format!("`{path}` needs a short name"))
                    .with_help(format!("write `import {path} as np`")));
            } else {
                let name = span.text(self.source);
                (name, span)
            };
            if !self.modules.contains(&alias) {
                self.modules.push(alias);
            }
            if self.eat_punctuation(",").is_none() {
                return Ok(());
            }
        }
    }

    /// Parses `from numpy import sin, cos`. The names are not stored, because every function is available without an import. Renaming with
    /// `as` is an error.
    fn parse_import_from(&mut self) -> Parsed<()> {
        self.consume_token();
        let (path, span) = self.parse_module_path()?;
        if !IMPORTABLE_MODULES.contains(&path.as_str()) {
            return Err(self.not_importable_error(&path, span));
        }
        if self.eat_keyword("import").is_none() {
            return Err(self.unexpected_token_error("`import`", None));
        }
        if self.eat_punctuation("*").is_some() {
            return Ok(());
        }
        let open = self.eat_punctuation("(");
        loop {
            let (name, _) = self.parse_name("a name")?;
            if self.next_is_keyword("as") {
                let help = format!("write `{name}` where it is used");
                return Err(self.unsupported_construct_error(self.next_token_span(), "renaming functions is", &help));
            }
            if self.eat_punctuation(",").is_none() || open.is_some() && self.next_is_punctuation(")") {
                break;
            }
        }
        match open {
            Some(_) if self.eat_punctuation(")").is_none() => Err(self.unexpected_token_error("`,` or `)`", open)),
            _ => Ok(()),
        }
    }

    fn parse_module_path(&mut self) -> Parsed<(String, Span)> {
        let (first, mut span) = self.parse_name("the name of a module")?;
        let mut path = first.to_owned();
        while self.eat_punctuation(".").is_some() {
            let (name, name_span) = self.parse_name("the name of a module")?;
            path = format!("{path}.{name}");
            span = span.to(name_span);
        }
        Ok((path, span))
    }

    fn not_importable_error(&self, path: &str, span: Span) -> ParseError {
        let help = match path.strip_prefix("numpy.").or_else(|| path.strip_prefix("cupy.")) {
            Some(namespace) => format!("write `np.{namespace}.` before the names"),
            None => format!("only {} can be imported, and imports are optional", IMPORTABLE_MODULES.join(", ")),
        };
        self.parse_error(span, format!("`{path}` cannot be imported")).with_help(help)
    }
}

/// Returns the operator of an augmented assignment, such as `+` for `+=`, or `None` for other symbols.
fn augmented_operator(symbol: &str) -> Option<BinaryOp> {
    symbol.strip_suffix('=').and_then(BinaryOp::from_symbol)
}
