//! Construction of syntax errors: the expected token, and the supported spelling of unsupported constructs.

use crate::error::ParseError;
use crate::expression_parser::{MAX_HEIGHT, MAX_NESTING, Parser};
use crate::lexer::Token;
use crate::span::Span;

impl Parser<'_> {
    /// Returns the error for an unsupported construct of Python. `what` is the subject of the message with its verb: `` `lambda` is ``.
    #[cold]
    #[inline(never)]
    pub(crate) fn unsupported_construct_error(&self, span: Span, what: &str, help: &str) -> ParseError {
        self.parse_error(span, format!("{what} not supported")).with_help(help)
    }

    /// Returns the error for an unexpected next token. `expected` describes the right token, and `open` is the innermost open bracket.
    #[cold]
    #[inline(never)]
    pub(crate) fn unexpected_token_error(&self, expected: &str, open: Option<Span>) -> ParseError {
        let here = self.next_token_span();
        if let (Token::LexicalError, Some(error)) = (self.peek_token(), &self.lexed.lexical_error) {
            return error.clone();
        }
        // An unclosed bracket may cause a later unexpected token, so the bracket is reported instead.
        let unclosed = self.lexed.unclosed;
        if let Some(bracket) = unclosed.filter(|bracket| bracket.start < here.start || *self.peek_token() == Token::End) {
            return self.parse_error(bracket, format!("`{}` was never closed", bracket.text(self.source)));
        }
        if let Some(error) = self.unsupported_next_token_error() {
            return error;
        }
        let error = match self.peek_token() {
            Token::Punct("=") => {
                self.parse_error(here, "`=` assigns, and cannot be used inside an expression").with_help("to compare, write `==`")
            }
            _ => self.parse_error(here, format!("expected {expected}, found {}", self.describe_next_token())),
        };
        self.add_open_bracket_position(error, open)
    }

    /// Adds the position of the opening bracket `open` to `error`, if there is one.
    fn add_open_bracket_position(&self, error: ParseError, open: Option<Span>) -> ParseError {
        match open {
            Some(open) => error.with_related(self.source, open, format!("`{}` opened here", open.text(self.source))),
            None => error,
        }
    }

    /// Returns the error if the next token would continue an expression in Python but is not supported here.
    fn unsupported_next_token_error(&self) -> Option<ParseError> {
        let (what, help) = match *self.peek_token() {
            Token::Punct(":=") => ("`:=` is", "assign in a statement of its own: `name = ...`"),
            Token::Keyword("for" | "async") => ("comprehensions are", "apply the operation to the whole array"),
            Token::Keyword("is") => ("`is` is", "compare values with `==`"),
            Token::Keyword("in") => ("`in` is", "write `any(b == a)`"),
            Token::Keyword("not") if matches!(self.peek_token_at(1), Token::Keyword("in")) => {
                let span = self.next_token_span().to(self.peek_token_span_at(1));
                return Some(self.unsupported_construct_error(span, "`not in` is", "write `all(b != a)`"));
            }
            _ => return None,
        };
        Some(self.unsupported_construct_error(self.next_token_span(), what, help))
    }

    /// Returns the description of the next token for an error message.
    pub(crate) fn describe_next_token(&self) -> String {
        match self.peek_token() {
            Token::Newline => "the end of the line".into(),
            Token::End => "the end of the text".into(),
            Token::Str(_) => "a string".into(),
            _ => {
                let text = self.next_token_span().text(self.source);
                let short: String = text.chars().take(24).collect();
                let dots = if short.len() < text.len() { "…" } else { "" };
                format!("`{short}{dots}`")
            }
        }
    }

    /// Returns the error for an unexpected token after a complete statement.
    #[cold]
    #[inline(never)]
    pub(crate) fn expected_statement_end_error(&self) -> ParseError {
        const EXPECTED_STATEMENT_END: &str = "an operator or the end of the statement";
        let here = self.next_token_span();
        match self.peek_token() {
            Token::Punct(":") => self.unsupported_construct_error(here, "annotations and blocks are", "write `name = value`"),
            Token::Name(_) | Token::Int(_) | Token::Float(_) | Token::Imaginary(_) | Token::Str(_) => {
                let help = match self.last_token_span().text(self.source) {
                    "print" => "write `print(...)`, or only the expression",
                    _ => "an operator or a `,` may be missing before it",
                };
                self.parse_error(here, format!("expected {EXPECTED_STATEMENT_END}, found {}", self.describe_next_token())).with_help(help)
            }
            _ => self.unexpected_token_error(EXPECTED_STATEMENT_END, None),
        }
    }

    /// Returns the error for a token that cannot start an expression where an operand is expected.
    #[cold]
    #[inline(never)]
    pub(crate) fn expected_operand_error(&self) -> ParseError {
        const SUPPORTED_STATEMENTS: &str = "a script consists of expressions and assignments";
        let starts_statement = matches!(self.last_token(), None | Some(Token::Newline | Token::Punct(";")));
        let (what, help) = match *self.peek_token() {
            Token::Keyword("lambda") => ("`lambda` is".into(), "write the expression itself"),
            Token::Keyword("if") if starts_statement => {
                ("`if` statements are".into(), "write `x if test else y`, or `where(test, x, y)` for arrays")
            }
            Token::Keyword(word @ ("for" | "while")) if starts_statement => {
                (format!("`{word}` loops are"), "apply the operation to the whole array")
            }
            Token::Keyword(
                word @ ("def" | "class" | "with" | "try" | "return" | "del" | "global" | "nonlocal" | "assert" | "raise" | "pass" | "break"
                | "continue" | "elif" | "except" | "finally" | "yield" | "await" | "async"),
            ) => (format!("`{word}` is"), SUPPORTED_STATEMENTS),
            Token::Keyword("import" | "from") => ("`import` inside an expression is".into(), "give it a line of its own"),
            Token::Punct("{") => ("dictionaries and sets are".into(), "use a list `[...]` or a tuple `(...)`"),
            Token::Punct(">>") if matches!(self.peek_token_at(1), Token::Punct(">")) => {
                let prompt = self.next_token_span().to(self.peek_token_span_at(1));
                let error = self.parse_error(prompt, "`>>>` is the prompt of a Python session");
                return error.with_help("leave the prompt out");
            }
            _ => return self.unexpected_token_error(&self.describe_missing_operand(), None),
        };
        self.unsupported_construct_error(self.next_token_span(), &what, help)
    }

    /// Returns the description of the missing operand: "an expression", with the operator before it.
    fn describe_missing_operand(&self) -> String {
        match self.last_token() {
            Some(Token::Punct(symbol)) if !matches!(*symbol, "(" | "[" | ";") => {
                format!("an expression after `{symbol}`")
            }
            Some(Token::Keyword(word)) => format!("an expression after `{word}`"),
            _ => "an expression".into(),
        }
    }

    #[cold]
    #[inline(never)]
    /// Returns the error for an expression whose tree is higher than `MAX_HEIGHT`.
    pub(crate) fn tree_too_high_error(&self, span: Span) -> ParseError {
        self.parse_error(span, format!("this expression is more than {MAX_HEIGHT} operations deep"))
            .with_help("assign a part of it to a name first")
    }

    #[cold]
    #[inline(never)]
    /// Returns the error for brackets nested deeper than `MAX_NESTING`.
    pub(crate) fn nesting_too_deep_error(&self) -> ParseError {
        self.parse_error(self.next_token_span(), format!("this expression is nested more than {MAX_NESTING} levels deep"))
            .with_help("assign a part of it to a name first")
    }

    #[cold]
    #[inline(never)]
    /// Returns the error for a `not` after an operator that binds tighter, such as `a + not b`.
    pub(crate) fn unparenthesized_not_error(&self) -> ParseError {
        self.parse_error(self.next_token_span(), "`not` binds less tightly than the operator before it")
            .with_help("put it in parentheses: `(not ...)`")
    }

    #[cold]
    #[inline(never)]
    /// Returns the error for `^` with a float operand, which is a mistake for `**`.
    pub(crate) fn xor_instead_of_power_error(&self, op_span: Span) -> ParseError {
        self.parse_error(op_span, "`^` is the exclusive or of integers and cannot take this operand").with_help("a power is written `**`")
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn unsupported_star_error(&self, help: &str) -> ParseError {
        let what = format!("unpacking with {} is", self.describe_next_token());
        self.unsupported_construct_error(self.next_token_span(), &what, help)
    }

    /// Returns the error for a list item or argument that is followed by neither `,` nor the closing bracket `close`.
    #[cold]
    #[inline(never)]
    pub(crate) fn expected_comma_error(&self, close: &str, open: Span) -> ParseError {
        self.unexpected_token_error(&format!("`,` or `{close}`"), Some(open))
    }

    #[cold]
    #[inline(never)]
    /// Returns the error for an index item that is followed by neither `,` nor `]`. `after_slice` states that the item is a slice. `open`
    /// is the opening bracket.
    pub(crate) fn expected_index_end_error(&self, after_slice: bool, open: Span) -> ParseError {
        if after_slice && self.next_is_punctuation(":") {
            let error = self.parse_error(self.next_token_span(), "a slice has at most three parts");
            return error.with_help("they are `start:stop:step`");
        }
        self.unexpected_token_error("`,`, `:` or `]`", Some(open))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn empty_index_error(&self, span: Span) -> ParseError {
        self.parse_error(span, "the index is empty").with_help("write `[...]` or `[:]` for all elements")
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn number_not_callable_error(&self, span: Span) -> ParseError {
        self.parse_error(span, "a number cannot be called").with_help("to multiply, write `*` between")
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn positional_after_keyword_error(&self, arg: Span, keyword: Span) -> ParseError {
        self.parse_error(arg, "a positional argument cannot follow a keyword argument").with_related(
            self.source,
            keyword,
            "keyword argument",
        )
    }
}
