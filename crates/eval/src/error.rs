//! Error types with a source position and advice.
//!
//! An error copies the source lines that it refers to, so that it can be rendered without the source. `Display` writes one line;
//! [`Diagnostic::render`] adds the source line with a caret.

use std::error::Error as StdError;
use std::fmt;

use crate::span::{Position, Span, floor_char_boundary, line_starts};

/// An error message with its source position, optional advice and an optional second position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    message: String,
    help: Option<String>,
    span: Span,
    position: Position,
    snippet: SourceSnippet,
    related: Option<(Position, SourceSnippet, String)>,
}

impl Diagnostic {
    /// Creates a message about the range `span` of `source`.
    pub fn new(source: &str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            message: message.into(),
            help: None,
            span,
            position: Position::of(source, span.start),
            snippet: SourceSnippet::truncate_line(source, span),
            related: None,
        }
    }

    /// Adds advice on what to write instead.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a second position with a label, such as the opening bracket that was not closed.
    #[must_use]
    pub fn with_related(mut self, source: &str, span: Span, label: impl Into<String>) -> Diagnostic {
        self.set_related_position(source, span, label.into());
        self
    }

    fn set_related_position(&mut self, source: &str, span: Span, label: String) {
        let at = Position::of(source, span.start);
        self.related = Some((at, SourceSnippet::truncate_line(source, span), label));
    }

    /// Returns the message without its position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the advice on what to write instead, if there is any.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns the source range of the error. The range is empty where a token is missing.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the line and column of the start of [`span`](Self::span).
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the message, the source line and an underline, as several lines without a trailing newline.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = cuprum_eval::parse("x = (1 + 2\ny = x").unwrap_err();
    /// assert_eq!(error.render(), "\
    /// error: `(` was never closed
    ///  --> line 1, column 5
    ///   |
    /// 1 | x = (1 + 2
    ///   |     ^");
    /// ```
    pub fn render(&self) -> String {
        let last_line = self.related.as_ref().map_or(0, |(at, ..)| at.line).max(self.position.line);
        let gutter = last_line.to_string().len();
        let mut out = format!("error: {}\n", self.message);
        out += &format!("{:gutter$}--> line {}, column {}\n", "", self.position.line, self.position.column);
        out += &format!("{:gutter$} |\n", "");
        out += &format!("{:gutter$} | {}\n", self.position.line, self.snippet.text);
        out += &format!("{:gutter$} | {}", "", self.snippet.underline_text('^'));
        if let Some((at, snippet, label)) = &self.related {
            // If both positions are in the same source line, that line is shown once, with both underlined.
            if (at.line, &snippet.text) != (self.position.line, &self.snippet.text) {
                out += &format!("\n{:gutter$} |\n{:gutter$} | {}", "", at.line, snippet.text);
            }
            out += &format!("\n{:gutter$} | {} {label}", "", snippet.underline_text('-'));
        }
        if let Some(help) = &self.help {
            out += &format!("\n{:gutter$} = help: {help}", "");
        }
        out
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.position.line, self.position.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// A syntax error, or a construct of Python that is not supported.
///
/// # Examples
///
/// ```
/// let error = cuprum_eval::parse("a && b").unwrap_err();
/// assert_eq!(error.position().column, 3);
/// assert_eq!(error.message(), "`&&` is not an operator");
/// ```
// The diagnostic is boxed, so that `Result<_, ParseError>` and the stack frames of the recursive parser stay small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError(Box<Diagnostic>);

impl ParseError {
    // Not inlined, because error construction would dominate the stack frames of the recursive parser.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(source: &str, span: Span, message: impl Into<String>) -> ParseError {
        ParseError(Box::new(Diagnostic::new(source, span, message)))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> ParseError {
        self.0.help = Some(help.into());
        self
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn with_related(mut self, source: &str, span: Span, label: impl Into<String>) -> ParseError {
        self.0.set_related_position(source, span, label.into());
        self
    }
}

impl std::ops::Deref for ParseError {
    type Target = Diagnostic;

    fn deref(&self) -> &Diagnostic {
        &self.0
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for ParseError {}

/// The kind of an error, named after Python's exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EvalErrorKind {
    /// A syntax error.
    Syntax,
    /// A name is neither a variable nor a function.
    Name,
    /// An operand or argument has the wrong type, or a keyword argument is unknown.
    Type,
    /// A value is out of range, shapes do not match, or a truth value is ambiguous.
    Value,
    /// An index is out of range or has the wrong type.
    Index,
    /// An error of the array library, which [`source`](StdError::source) returns.
    Array,
}

/// An error of parsing or evaluation, with its source position.
///
/// # Examples
///
/// ```
/// use cuprum_eval::{EvalError, EvalErrorKind, Span};
/// let error = EvalError::new(EvalErrorKind::Name, "sin(y)", Span::new(4, 5), "no variable or function `y`");
/// assert_eq!(error.to_string(), "line 1, column 5: no variable or function `y`");
/// ```
#[derive(Debug)]
pub struct EvalError {
    kind: EvalErrorKind,
    diagnostic: Box<Diagnostic>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl EvalError {
    /// Creates an error about the range `span` of `source`.
    pub fn new(kind: EvalErrorKind, source: &str, span: Span, message: impl Into<String>) -> EvalError {
        EvalError { kind, diagnostic: Box::new(Diagnostic::new(source, span, message)), cause: None }
    }

    /// Creates an error from an error of the array library. `span` is the part of the expression that caused it.
    pub fn from_array_error(source: &str, span: Span, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> EvalError {
        let cause = cause.into();
        let mut error = EvalError::new(EvalErrorKind::Array, source, span, cause.to_string());
        error.cause = Some(cause);
        error
    }

    /// Adds advice on what to write instead.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> EvalError {
        self.diagnostic.help = Some(help.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> EvalErrorKind {
        self.kind
    }
}

impl std::ops::Deref for EvalError {
    type Target = Diagnostic;

    fn deref(&self) -> &Diagnostic {
        &self.diagnostic
    }
}

impl From<ParseError> for EvalError {
    fn from(error: ParseError) -> EvalError {
        EvalError { kind: EvalErrorKind::Syntax, diagnostic: error.0, cause: None }
    }
}

/// An error that the array library caused becomes the library's own error again, unchanged. Any other error becomes `Error::Value` with the
/// source position in its message.
impl From<EvalError> for cuprum_core::Error {
    fn from(error: EvalError) -> cuprum_core::Error {
        let text = error.to_string();
        let cause = error.cause.and_then(|cause| cause.downcast::<cuprum_core::Error>().ok());
        cause.map_or_else(|| cuprum_core::Error::value("eval", text), |cause| *cause)
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic.fmt(f)
    }
}

impl StdError for EvalError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}

/// Maximum width of a source line in a message, in terminal columns.
const SNIPPET_WIDTH: usize = 100;

/// One source line as displayed in a message, truncated to [`SNIPPET_WIDTH`], and the columns to underline.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SourceSnippet {
    text: String,
    indent: usize,
    width: usize,
}

impl SourceSnippet {
    fn truncate_line(source: &str, span: Span) -> SourceSnippet {
        let start = floor_char_boundary(source, span.start);
        let line_start = line_starts(source).take_while(|at| *at <= start).last().unwrap_or(0);
        let line_end = source[start..].find(['\n', '\r']).map_or(source.len(), |at| start + at);
        let line = source[line_start..line_end].trim_end_matches('\r');
        let mark = start - line_start..span.end.clamp(start, line_end) - line_start;

        let (indent, width) = (count_terminal_columns(line, 0..mark.start), count_terminal_columns(line, mark).max(1));
        if count_terminal_columns(line, 0..line.len()) <= SNIPPET_WIDTH {
            return SourceSnippet { text: line.chars().map(DisplayChar::of).map(|shown| shown.terminal_text()).collect(), indent, width };
        }
        let from = indent.saturating_sub(SNIPPET_WIDTH / 3);
        let mut snippet = SourceSnippet { text: String::new(), indent: 0, width };
        let (mut column, mut shown_width) = (0, 0);
        if from > 0 {
            snippet.text.push('…');
            shown_width = 1;
        }
        let mut cut_right = false;
        for shown in line.chars().map(DisplayChar::of) {
            if column == indent {
                snippet.indent = shown_width;
            }
            if column >= from {
                if shown_width + shown.width > SNIPPET_WIDTH {
                    cut_right = true;
                    break;
                }
                snippet.text += &shown.terminal_text();
                shown_width += shown.width;
            }
            column += shown.width;
        }
        if column == indent && !cut_right {
            snippet.indent = shown_width;
        }
        if cut_right {
            snippet.text.push('…');
        }
        snippet.width = width.min((SNIPPET_WIDTH + 1).saturating_sub(snippet.indent)).max(1);
        snippet
    }

    fn underline_text(&self, mark: char) -> String {
        let marks: String = std::iter::repeat_n(mark, self.width).collect();
        format!("{:1$}{marks}", "", self.indent)
    }
}

/// Returns the number of terminal columns of the characters of `line` that start within the byte range `bytes`.
fn count_terminal_columns(line: &str, bytes: std::ops::Range<usize>) -> usize {
    line.char_indices().filter(|(at, _)| bytes.contains(at)).map(|(_, c)| DisplayChar::of(c).width).sum()
}

/// A character as displayed in a message. Control characters are replaced, so that a source line cannot contain escape sequences.
struct DisplayChar {
    symbol: char,
    width: usize,
}

impl DisplayChar {
    fn of(c: char) -> DisplayChar {
        let width = match c {
            '\t' => 4,
            // Combining marks and zero-width characters take no column.
            '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' => 0,
            // Wide characters take two columns; these ranges approximate the wide blocks of East Asian Width (UAX 11).
            '\u{1100}'..='\u{115f}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{fe30}'..='\u{fe6f}'
            | '\u{ff01}'..='\u{ff60}'
            | '\u{ffe0}'..='\u{ffe6}'
            | '\u{1f300}'..='\u{1faff}'
            | '\u{20000}'..='\u{3fffd}' => 2,
            _ => 1,
        };
        let bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let symbol = if c != '\t' && (c.is_control() || bidi) { '\u{fffd}' } else { c };
        DisplayChar { symbol, width }
    }

    fn terminal_text(&self) -> String {
        if self.symbol == '\t' { " ".repeat(self.width) } else { self.symbol.to_string() }
    }
}
