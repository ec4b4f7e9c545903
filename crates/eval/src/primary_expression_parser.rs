//! Parser of primaries: literals, names, brackets, and the calls, indices and attributes that follow them.

use crate::ast::{Expr, ExprKind, Index, IndexItem, IndexItemKind, KeywordArg};
use crate::expression_parser::{Parsed, Parser};
use crate::lexer::Token;
use crate::span::Span;

/// Namespaces of the library. After a prefix such as `np`, only these names continue a dotted name: `np.linalg.norm`.
const LIBRARY_NAMESPACES: [&str; 3] = ["linalg", "fft", "random"];

impl<'s> Parser<'s> {
    /// Parses an atom with its attributes, indices and calls: `a.T[0](x)`.
    pub(crate) fn parse_primary(&mut self) -> Parsed<Expr> {
        let mut expr = self.parse_atom()?;
        loop {
            expr = match self.peek_token() {
                Token::Punct("(") => self.parse_call(expr)?,
                Token::Punct("[") => self.parse_indexed_expression(expr)?,
                Token::Punct(".") => self.parse_attribute(expr)?,
                _ => return Ok(expr),
            }
        }
    }

    /// Parses a name that is not a keyword. `expected` describes the name in the error message.
    pub(crate) fn parse_name(&mut self, expected: &str) -> Parsed<(&'s str, Span)> {
        match *self.peek_token() {
            Token::Name(name) => Ok((name, self.consume_token())),
            Token::Keyword(word) => {
                let message = format!("expected {expected}, but `{word}` is a keyword of Python");
                Err(self.parse_error(self.next_token_span(), message))
            }
            _ => Err(self.unexpected_token_error(expected, None)),
        }
    }

    fn parse_atom(&mut self) -> Parsed<Expr> {
        let here = self.next_token_span();
        let kind = match self.peek_token() {
            Token::Int(value) => ExprKind::Int(*value),
            Token::Float(value) => ExprKind::Float(*value),
            Token::Imaginary(value) => ExprKind::Imaginary(*value),
            Token::Str(_) => return self.parse_adjacent_strings(),
            Token::Keyword("True") => ExprKind::Bool(true),
            Token::Keyword("False") => ExprKind::Bool(false),
            Token::Keyword("None") => ExprKind::None,
            Token::Punct("...") => ExprKind::Ellipsis,
            Token::Name(name) => return self.parse_name_or_path(name),
            Token::Punct("(") => return self.parse_parentheses(),
            Token::Punct("[") => return self.parse_list(),
            _ => return Err(self.expected_operand_error()),
        };
        self.consume_token();
        self.new_expression_node(kind, here)
    }

    /// Parses a string and concatenates adjacent string literals.
    #[inline(never)]
    fn parse_adjacent_strings(&mut self) -> Parsed<Expr> {
        let start = self.next_token_span();
        let mut value = String::new();
        while let Token::Str(text) = self.peek_token() {
            value.push_str(text);
            self.consume_token();
        }
        self.new_expression_node(ExprKind::Str(value), start.to(self.last_token_span()))
    }

    /// Parses the variable `name`, or a dotted name of the library that begins with it.
    #[inline(never)]
    fn parse_name_or_path(&mut self, name: &'s str) -> Parsed<Expr> {
        let start = self.consume_token();
        let Some(mut path) = self.peek_name_after_dot(name, &self.modules) else {
            return self.new_expression_node(ExprKind::Name(name.into()), start);
        };
        self.skip_dot_and_name();
        while let Some(longer) = self.peek_name_after_dot(path.rsplit('.').next().unwrap_or(""), &LIBRARY_NAMESPACES) {
            path = format!("{path}.{longer}");
            self.skip_dot_and_name();
        }
        self.new_expression_node(ExprKind::Global { module: name.into(), path }, start.to(self.last_token_span()))
    }

    /// Returns the name after the next dot, if `prefix` (the name before the dot) is one of `namespaces`.
    fn peek_name_after_dot(&self, prefix: &str, namespaces: &[&str]) -> Option<String> {
        match (self.peek_token(), self.peek_token_at(1)) {
            (Token::Punct("."), Token::Name(name)) if namespaces.contains(&prefix) => Some((*name).into()),
            _ => None,
        }
    }

    fn skip_dot_and_name(&mut self) {
        self.consume_token();
        self.consume_token();
    }

    /// Parses `(a)`, `(a, b)`, `(a,)` or `()`.
    #[inline(never)]
    fn parse_parentheses(&mut self) -> Parsed<Expr> {
        let open = self.consume_token();
        let mut items = Vec::new();
        let comma = self.parse_comma_separated_items(")", open, &mut items)?;
        let span = open.to(self.last_token_span());
        if items.len() == 1
            && !comma
            && let Some(only) = items.pop()
        {
            return Ok(only.with_parentheses(span));
        }
        let tuple = self.new_expression_node(ExprKind::Tuple(items), span)?;
        Ok(tuple.with_parentheses(span))
    }

    #[inline(never)]
    fn parse_list(&mut self) -> Parsed<Expr> {
        let open = self.consume_token();
        let mut items = Vec::new();
        self.parse_comma_separated_items("]", open, &mut items)?;
        self.new_expression_node(ExprKind::List(items), open.to(self.last_token_span()))
    }

    /// Parses comma-separated expressions and the closing bracket `close`. Returns whether there was a comma.
    fn parse_comma_separated_items(&mut self, close: &str, open: Span, items: &mut Vec<Expr>) -> Parsed<bool> {
        let mut comma = false;
        while self.eat_punctuation(close).is_none() {
            if self.next_is_punctuation("*") {
                return Err(self.unsupported_star_error("write the items out"));
            }
            items.push(self.parse_expression()?);
            if self.eat_punctuation(",").is_some() {
                comma = true;
            } else if !self.next_is_punctuation(close) {
                return Err(self.expected_comma_error(close, open));
            }
        }
        Ok(comma)
    }

    #[inline(never)]
    fn parse_call(&mut self, callee: Expr) -> Parsed<Expr> {
        let open = self.next_token_span();
        if let ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Imaginary(_) = callee.kind {
            return Err(self.number_not_callable_error(callee.span.to(open)));
        }
        self.consume_token();
        let start = callee.span;
        let callee = Box::new(callee);
        let mut args = Vec::new();
        let mut keywords = Vec::new();
        while self.eat_punctuation(")").is_none() {
            self.parse_argument(&mut args, &mut keywords)?;
            if self.eat_punctuation(",").is_none() && !self.next_is_punctuation(")") {
                return Err(self.expected_comma_error(")", open));
            }
        }
        let span = start.to(self.last_token_span());
        self.new_expression_node(ExprKind::Call { callee, args, keywords }, span)
    }

    /// Parses one argument of a call: `value` or `name=value`.
    fn parse_argument(&mut self, args: &mut Vec<Expr>, keywords: &mut Vec<KeywordArg>) -> Parsed<()> {
        if self.next_is_punctuation("*") || self.next_is_punctuation("**") {
            return Err(self.unsupported_star_error("write the arguments out"));
        }
        if let Token::Punct("=") = self.peek_token_at(1)
            && let Token::Name(_) | Token::Keyword(_) = self.peek_token()
        {
            let (name, name_span) = self.parse_keyword_name(keywords)?;
            let value = self.parse_expression()?;
            keywords.push(KeywordArg { name, name_span, value });
            return Ok(());
        }
        let arg = self.parse_expression()?;
        match keywords.last() {
            // In `f(axis=0, a + b=1)`, the error is about the `=`, not about a positional argument after a keyword argument.
            Some(last) if !self.next_is_punctuation("=") => Err(self.positional_after_keyword_error(arg.span, last.name_span)),
            _ => {
                args.push(arg);
                Ok(())
            }
        }
    }

    /// Parses the `name=` of a keyword argument.
    ///
    /// # Errors
    ///
    /// Returns an error if `earlier` contains the same name.
    #[inline(never)]
    fn parse_keyword_name(&mut self, earlier: &[KeywordArg]) -> Parsed<(String, Span)> {
        let span = self.consume_token();
        let name = span.text(self.source);
        if let Some(Token::Keyword(_)) = self.last_token() {
            let message = format!("`{name}` is a keyword of Python, and cannot be given a value");
            return Err(self.parse_error(span, message));
        }
        self.consume_token();
        match earlier.iter().find(|keyword| keyword.name == name) {
            Some(first) => Err(self.parse_error(span, format!("`{name}` is given twice")).with_related(
                self.source,
                first.name_span,
                "first given here",
            )),
            None => Ok((name.into(), span)),
        }
    }

    #[inline(never)]
    fn parse_indexed_expression(&mut self, base: Expr) -> Parsed<Expr> {
        let base = Box::new(base);
        let index = self.parse_index_brackets()?;
        let span = base.span.to(index.span);
        self.new_expression_node(ExprKind::Index { base, index }, span)
    }

    #[inline(never)]
    fn parse_attribute(&mut self, base: Expr) -> Parsed<Expr> {
        self.consume_token();
        let (name, name_span) = self.parse_name("an attribute name")?;
        let span = base.span.to(name_span);
        self.new_expression_node(ExprKind::Attribute { base: Box::new(base), name: name.into(), name_span }, span)
    }

    /// Parses the `[...]` of an indexed value.
    fn parse_index_brackets(&mut self) -> Parsed<Index> {
        let open = self.consume_token();
        if let Some(close) = self.eat_punctuation("]") {
            return Err(self.empty_index_error(open.to(close)));
        }
        let mut items = Vec::new();
        let mut tuple = false;
        while self.eat_punctuation("]").is_none() {
            if self.next_is_punctuation("*") {
                return Err(self.unsupported_star_error("write the items out"));
            }
            self.parse_index_item(open, &mut items)?;
            if self.eat_punctuation(",").is_some() {
                tuple = true;
            } else if !self.next_is_punctuation("]") {
                let last = items.last().map(|item| &item.kind);
                let after_slice = matches!(last, Some(IndexItemKind::Slice { .. }));
                return Err(self.expected_index_end_error(after_slice, open));
            }
        }
        let span = open.to(self.last_token_span());
        Ok(flatten_tuple_index(Index { items, tuple, span }))
    }

    fn parse_index_item(&mut self, open: Span, items: &mut Vec<IndexItem>) -> Parsed<()> {
        let from = self.next_token_span();
        let start = self.parse_slice_part()?;
        if self.eat_punctuation(":").is_none() {
            let Some(expr) = start else {
                return Err(self.unexpected_token_error("an index", Some(open)));
            };
            items.push(index_item_from_expression(*expr));
            return Ok(());
        }
        let stop = self.parse_slice_part()?;
        let step = if self.eat_punctuation(":").is_some() { self.parse_slice_part()? } else { None };
        let span = from.to(self.last_token_span());
        items.push(IndexItem { kind: IndexItemKind::Slice { start, stop, step }, span });
        Ok(())
    }

    /// Parses the start, stop or step of a slice. Returns `None` if it is absent.
    fn parse_slice_part(&mut self) -> Parsed<Option<Box<Expr>>> {
        match self.peek_token() {
            Token::Punct(":" | "," | "]") => Ok(None),
            _ => Ok(Some(Box::new(self.parse_expression()?))),
        }
    }
}

/// Replaces a single tuple by its items: `a[(i, j)]` is `a[i, j]`.
fn flatten_tuple_index(mut index: Index) -> Index {
    if let ([item], false) = (index.items.as_mut_slice(), index.tuple)
        && let IndexItemKind::Expr(only) = &mut item.kind
        && let ExprKind::Tuple(parts) = &mut only.kind
    {
        index.items = std::mem::take(parts).into_iter().map(index_item_from_expression).collect();
        index.tuple = true;
    }
    index
}

/// Converts the expression of an index item. `None`, `np.newaxis` and `...` have their own item kinds.
fn index_item_from_expression(expr: Expr) -> IndexItem {
    let span = expr.span;
    let kind = match &expr.kind {
        ExprKind::None => IndexItemKind::NewAxis,
        ExprKind::Global { path, .. } if path == "newaxis" => IndexItemKind::NewAxis,
        ExprKind::Ellipsis => IndexItemKind::Ellipsis,
        _ => IndexItemKind::Expr(expr),
    };
    IndexItem { kind, span }
}
