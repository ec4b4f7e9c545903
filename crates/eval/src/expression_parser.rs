//! The expression parser: recursive descent by precedence level, as in Python's reference grammar.
//!
//! `statement_parser` parses statements, `primary_expression_parser` parses primaries (atoms, calls, indices, attributes), and
//! `syntax_errors` builds the errors for unexpected tokens.

use crate::ast::{Comparison, Expr, ExprKind};
use crate::error::ParseError;
use crate::lexer::{LexedSource, Token, lex_source};
use crate::operators::{BinaryOp, CompareOp, LogicalOp, UnaryOp, precedence};
use crate::span::Span;

/// Maximum nesting depth of brackets, signs, `**` and `else`.
///
/// Deeper nesting is an error, so that no input can overflow the stack. One nesting level takes 7.5 KiB of stack without optimisation,
/// so 100 levels fit into 1 MiB, the main thread's stack on Windows.
pub const MAX_NESTING: usize = 100;

/// Maximum [`height`](Expr::height) of an expression tree. It also bounds the length of expressions without brackets, such as `a +
/// a + ... + a`.
pub const MAX_HEIGHT: usize = 250;

/// Prefixes that refer to the library, such as `np`. `import ... as` adds further ones.
pub(crate) const MODULE_PREFIXES: [&str; 6] = ["np", "numpy", "cp", "cupy", "xp", "cuprum"];

pub(crate) type Parsed<T> = Result<T, ParseError>;

pub(crate) struct Parser<'s> {
    pub(crate) source: &'s str,
    pub(crate) lexed: LexedSource<'s>,
    at: usize,
    depth: usize,
    pub(crate) modules: Vec<&'s str>,
}

impl<'s> Parser<'s> {
    pub(crate) fn new(source: &'s str) -> Parser<'s> {
        Parser { source, lexed: lex_source(source), at: 0, depth: 0, modules: MODULE_PREFIXES.to_vec() }
    }

    pub(crate) fn peek_token_at(&self, ahead: usize) -> &Token<'s> {
        self.lexed.lexemes.get(self.at + ahead).map_or(&Token::End, |lexeme| &lexeme.token)
    }

    pub(crate) fn peek_token(&self) -> &Token<'s> {
        self.peek_token_at(0)
    }

    /// Returns the source range of the token `ahead` positions after the next one.
    pub(crate) fn peek_token_span_at(&self, ahead: usize) -> Span {
        self.lexed.lexemes.get(self.at + ahead).map_or(Span::point(self.source.len()), |lexeme| lexeme.span)
    }

    /// Returns the source range of the next token.
    pub(crate) fn next_token_span(&self) -> Span {
        self.peek_token_span_at(0)
    }

    /// Returns the last consumed token, or `None` at the start of the source.
    pub(crate) fn last_token(&self) -> Option<&Token<'s>> {
        self.at.checked_sub(1).and_then(|at| self.lexed.lexemes.get(at)).map(|lexeme| &lexeme.token)
    }

    /// Returns the source range of the last consumed token, or the start of the source.
    pub(crate) fn last_token_span(&self) -> Span {
        let lexeme = self.at.checked_sub(1).and_then(|at| self.lexed.lexemes.get(at));
        lexeme.map_or(Span::point(0), |lexeme| lexeme.span)
    }

    pub(crate) fn consume_token(&mut self) -> Span {
        let span = self.next_token_span();
        // The final token (`End` or `LexicalError`) is never consumed, so that there always is a next token.
        if self.at + 1 < self.lexed.lexemes.len() {
            self.at += 1;
        }
        span
    }

    pub(crate) fn next_is_punctuation(&self, symbol: &str) -> bool {
        matches!(self.peek_token(), Token::Punct(found) if *found == symbol)
    }

    pub(crate) fn next_is_keyword(&self, word: &str) -> bool {
        matches!(self.peek_token(), Token::Keyword(found) if *found == word)
    }

    pub(crate) fn eat_punctuation(&mut self, symbol: &str) -> Option<Span> {
        if self.next_is_punctuation(symbol) { Some(self.consume_token()) } else { None }
    }

    pub(crate) fn eat_keyword(&mut self, word: &str) -> Option<Span> {
        if self.next_is_keyword(word) { Some(self.consume_token()) } else { None }
    }

    pub(crate) fn parse_error(&self, span: Span, message: impl Into<String>) -> ParseError {
        ParseError::new(self.source, span, message)
    }

    /// Creates a node of the syntax tree.
    ///
    /// # Errors
    ///
    /// Returns an error if the tree is higher than [`MAX_HEIGHT`].
    pub(crate) fn new_expression_node(&self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let expr = Expr::new(kind, span);
        if expr.height() > MAX_HEIGHT { Err(self.tree_too_high_error(span)) } else { Ok(expr) }
    }

    /// Enters a nesting level. Each successful call is paired with [`leave_nesting`](Self::leave_nesting).
    pub(crate) fn enter_nesting(&mut self) -> Parsed<()> {
        if self.depth >= MAX_NESTING {
            return Err(self.nesting_too_deep_error());
        }
        self.depth += 1;
        Ok(())
    }

    fn leave_nesting(&mut self) {
        self.depth -= 1;
    }

    /// Parses `then if test else otherwise`, or an expression of higher precedence.
    pub(crate) fn parse_expression(&mut self) -> Parsed<Expr> {
        let first = self.parse_operators_from_level(precedence::OR_PRECEDENCE)?;
        if self.next_is_keyword("if") { self.parse_conditional(first) } else { Ok(first) }
    }

    #[inline(never)]
    fn parse_conditional(&mut self, then: Expr) -> Parsed<Expr> {
        self.enter_nesting()?;
        self.consume_token();
        let test = self.parse_operators_from_level(precedence::OR_PRECEDENCE)?;
        if self.eat_keyword("else").is_none() {
            return Err(self.unexpected_token_error("`else`", None));
        }
        let otherwise = self.parse_expression()?;
        self.leave_nesting();
        let span = then.span.to(otherwise.span);
        let (test, then, otherwise) = (Box::new(test), Box::new(then), Box::new(otherwise));
        self.new_expression_node(ExprKind::Conditional { test, then, otherwise }, span)
    }

    /// Parses an operand and the operators of precedence level `min` or higher that follow it, with their operands.
    fn parse_operators_from_level(&mut self, min: u8) -> Parsed<Expr> {
        self.enter_nesting()?;
        let mut left = match self.peek_prefix_operator() {
            None => self.parse_primary()?,
            Some(op) => self.parse_prefix_operation(op, min)?,
        };
        while let Some(next) = self.peek_infix_operator(min) {
            left = self.parse_infix_operation(left, next)?;
        }
        self.leave_nesting();
        Ok(left)
    }

    fn peek_prefix_operator(&self) -> Option<UnaryOp> {
        match *self.peek_token() {
            Token::Punct(symbol) | Token::Keyword(symbol) => UnaryOp::from_symbol(symbol),
            _ => None,
        }
    }

    /// Parses the sign, `~` or `not` that is the next token, with its operand. Returns an error if the operator binds looser than
    /// precedence level `min`.
    #[inline(never)]
    fn parse_prefix_operation(&mut self, op: UnaryOp, min: u8) -> Parsed<Expr> {
        let operand_level = if op == UnaryOp::Not { precedence::NOT_PRECEDENCE } else { precedence::UNARY_PRECEDENCE };
        if min > operand_level {
            // Only `not` reaches this line, because signs bind tighter than every operator that they may follow.
            return Err(self.unparenthesized_not_error());
        }
        let start = self.consume_token();
        let operand = Box::new(self.parse_operators_from_level(operand_level)?);
        let span = start.to(operand.span);
        self.new_expression_node(ExprKind::Unary { op, operand }, span)
    }

    /// Returns the next token as an infix operator if its precedence level is `min` or higher.
    fn peek_infix_operator(&self, min: u8) -> Option<InfixOperator> {
        let (op, level) = match *self.peek_token() {
            Token::Keyword(word) => {
                let op = LogicalOp::from_symbol(word)?;
                (InfixOperator::Logical(op), if op == LogicalOp::And { precedence::AND_PRECEDENCE } else { precedence::OR_PRECEDENCE })
            }
            Token::Punct(symbol) => match (BinaryOp::from_symbol(symbol), CompareOp::from_symbol(symbol)) {
                (Some(op), _) => (InfixOperator::Binary(op), op.precedence_level()),
                (None, Some(op)) => (InfixOperator::Compare(op), precedence::COMPARE_PRECEDENCE),
                (None, None) => return None,
            },
            _ => return None,
        };
        (level >= min).then_some(op)
    }

    /// Parses the infix operator `op` and its right operand.
    fn parse_infix_operation(&mut self, left: Expr, op: InfixOperator) -> Parsed<Expr> {
        match op {
            InfixOperator::Binary(op) => self.parse_binary_operation(left, op),
            InfixOperator::Compare(op) => self.parse_comparison_chain(left, op),
            InfixOperator::Logical(op) => self.parse_logical_operation(left, op),
        }
    }

    #[inline(never)]
    fn parse_binary_operation(&mut self, left: Expr, op: BinaryOp) -> Parsed<Expr> {
        let op_span = self.consume_token();
        // `**` is right-associative, and its right operand may have a sign: `2 ** -x ** 2`.
        let right_level = if op == BinaryOp::Pow { precedence::UNARY_PRECEDENCE } else { op.precedence_level() + 1 };
        let right = self.parse_operators_from_level(right_level)?;
        // `x^0.5` is a mistake for `**`: exclusive or is not defined for floats.
        if op == BinaryOp::BitXor && (is_float_or_imaginary(&left) || is_float_or_imaginary(&right)) {
            return Err(self.xor_instead_of_power_error(op_span));
        }
        let span = left.span.to(right.span);
        let (left, right) = (Box::new(left), Box::new(right));
        self.new_expression_node(ExprKind::Binary { op, op_span, left, right }, span)
    }

    #[inline(never)]
    fn parse_comparison_chain(&mut self, left: Expr, op: CompareOp) -> Parsed<Expr> {
        let first = Box::new(left);
        let mut rest = Vec::new();
        let mut next = Some(InfixOperator::Compare(op));
        while let Some(InfixOperator::Compare(op)) = next {
            let op_span = self.consume_token();
            let right = self.parse_operators_from_level(precedence::COMPARE_PRECEDENCE + 1)?;
            rest.push(Comparison { op, op_span, right });
            next = self.peek_infix_operator(precedence::COMPARE_PRECEDENCE);
        }
        let span = first.span.to(self.last_token_span());
        self.new_expression_node(ExprKind::Compare { first, rest }, span)
    }

    #[inline(never)]
    fn parse_logical_operation(&mut self, left: Expr, op: LogicalOp) -> Parsed<Expr> {
        let start = left.span;
        let operand_level = if op == LogicalOp::And { precedence::NOT_PRECEDENCE } else { precedence::AND_PRECEDENCE };
        let mut values = vec![left];
        while self.eat_keyword(op.symbol()).is_some() {
            values.push(self.parse_operators_from_level(operand_level)?);
        }
        let span = start.to(self.last_token_span());
        self.new_expression_node(ExprKind::Logical { op, values }, span)
    }
}

fn is_float_or_imaginary(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Float(_) | ExprKind::Imaginary(_))
}

/// An operator between two operands.
enum InfixOperator {
    Binary(BinaryOp),
    Compare(CompareOp),
    Logical(LogicalOp),
}
