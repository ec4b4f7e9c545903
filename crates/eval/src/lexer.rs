//! The lexer, which splits source text into tokens. The lexer also matches brackets, because line ends inside brackets are not tokens.
//!
//! A lexical error ends the token list with [`Token::LexicalError`] instead of failing at once, so that a syntax error at an earlier
//! position is reported first.

use crate::error::ParseError;
use crate::literals;
use crate::span::{Span, line_end_len};

/// A token of the source text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'s> {
    Int(i128),
    Float(f64),
    Imaginary(f64),
    Str(String),
    Name(&'s str),
    Keyword(&'static str),
    Punct(&'static str),
    /// A line end outside brackets.
    Newline,
    /// The end of the source.
    End,
    /// A lexical error, described by [`LexedSource::lexical_error`].
    LexicalError,
}

/// A token with its source range. `Newline` and `End` have an empty range directly after the previous token. Messages about a missing token
/// point to this position.
#[derive(Debug, Clone)]
pub(crate) struct Lexeme<'s> {
    pub(crate) token: Token<'s>,
    pub(crate) span: Span,
}

/// The tokens of a source text. The last one is `End` or `LexicalError`.
#[derive(Debug)]
pub(crate) struct LexedSource<'s> {
    pub(crate) lexemes: Vec<Lexeme<'s>>,
    pub(crate) lexical_error: Option<ParseError>,
    /// The innermost bracket that is not closed at the end of the source. `None` after a lexical error.
    pub(crate) unclosed: Option<Span>,
}

/// Python's keywords, none of which can be a name. Few of them are supported.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
    "while", "with", "yield",
];

/// Punctuation tokens in order of decreasing length, so that the first match is the longest.
const PUNCTUATION: [&str; 43] = [
    "...", "**=", "//=", "<<=", ">>=", ":=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=", "@=", "&=",
    "|=", "^=", "->", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "=", ".", ",", ":", ";", "(", ")",
];

/// Square brackets and braces. [`PUNCTUATION`] contains the parentheses.
const SQUARE_AND_CURLY_BRACKETS: [&str; 4] = ["[", "]", "{", "}"];

/// Operators of other languages and of Python 2: (spelling, message, help).
const FOREIGN_OPERATORS: [(&str, &str, &str); 9] = [
    ("&&", "`&&` is not an operator", "use `&` for arrays, `and` for single values"),
    ("||", "`||` is not an operator", "use `|` for arrays, `or` for single values"),
    ("<>", "`<>` is not an operator", "use `!=`"),
    ("=<", "`=<` is not an operator", "use `<=`"),
    ("=>", "`=>` is not an operator", "use `>=`"),
    ("===", "`===` is not an operator", "use `==`"),
    ("!==", "`!==` is not an operator", "use `!=`"),
    (".*", "`.*` is not an operator", "`*` already works element by element"),
    ("./", "`./` is not an operator", "`/` already works element by element"),
];

/// Characters that look like an operator, bracket or quote: (character, description, help).
const LOOKALIKE_CHARACTERS: [(char, &str, &str); 24] = [
    ('\u{201c}', "a typographic quote", "use `\"`"),
    ('\u{201d}', "a typographic quote", "use `\"`"),
    ('\u{201e}', "a typographic quote", "use `\"`"),
    ('\u{2018}', "a typographic quote", "use `'`"),
    ('\u{2019}', "a typographic quote", "use `'`"),
    ('\u{2212}', "a typographic minus sign", "use `-`"),
    ('\u{2013}', "an en dash", "use `-`"),
    ('\u{2014}', "an em dash", "use `-`"),
    ('\u{d7}', "a multiplication sign", "use `*`"),
    ('\u{b7}', "a middle dot", "use `*` or `@`"),
    ('\u{22c5}', "a dot operator", "use `*` or `@`"),
    ('\u{f7}', "a division sign", "use `/`"),
    ('\u{2264}', "a less-or-equal sign", "use `<=`"),
    ('\u{2265}', "a greater-or-equal sign", "use `>=`"),
    ('\u{2260}', "a not-equal sign", "use `!=`"),
    ('\u{221a}', "a root sign", "use `sqrt(...)`"),
    ('\u{b2}', "a superscript", "use `**2`"),
    ('\u{b3}', "a superscript", "use `**3`"),
    ('\u{221e}', "an infinity sign", "use `inf`"),
    ('\u{2026}', "a typographic ellipsis", "use `...`"),
    ('\u{a0}', "a non-breaking space", "use a plain space"),
    ('\u{200b}', "an invisible zero-width space", "delete it"),
    ('\u{ff08}', "a full-width parenthesis", "use `(`"),
    ('\u{ff09}', "a full-width parenthesis", "use `)`"),
];

/// Returns whether `word` is one of Python's keywords, which cannot be names of variables.
///
/// # Examples
///
/// ```
/// assert!(cuprum_eval::is_keyword("lambda") && !cuprum_eval::is_keyword("print"));
/// ```
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Splits `source` into tokens.
pub(crate) fn lex_source(source: &str) -> LexedSource<'_> {
    // A byte order mark, which some editors write at the start of a file, is skipped.
    let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Lexer { source, at, lexemes: Vec::new(), open: Vec::new() };
    let lexical_error = loop {
        match lexer.lex_token() {
            Ok(true) => {}
            Ok(false) => break None,
            Err(lexical_error) => break Some(lexical_error),
        }
    };
    let end = match lexical_error {
        Some(_) => Lexeme { token: Token::LexicalError, span: Span::point(lexer.at) },
        None => Lexeme { token: Token::End, span: lexer.span_after_last_token() },
    };
    lexer.lexemes.push(end);
    let unclosed = if lexical_error.is_none() { lexer.open.last().copied() } else { None };
    LexedSource { lexemes: lexer.lexemes, lexical_error, unclosed }
}

/// Returns the identifier at the start of `text`, or an empty string. Unlike in Python, its digits are ASCII only.
pub(crate) fn leading_identifier(text: &str) -> &str {
    let starts = |c: char| c.is_alphabetic() || c == '_';
    if !text.starts_with(starts) {
        return "";
    }
    let end = text.find(|c: char| !(starts(c) || c.is_ascii_digit())).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    lexemes: Vec<Lexeme<'s>>,
    /// Source ranges of the brackets that are open at the current position.
    open: Vec<Span>,
}

impl<'s> Lexer<'s> {
    fn remaining_source(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn span_after_last_token(&self) -> Span {
        Span::point(self.lexemes.last().map_or(0, |last| last.span.end))
    }

    fn lexical_error(&self, len: usize, message: impl Into<String>) -> ParseError {
        ParseError::new(self.source, Span::new(self.at, self.at + len), message)
    }

    fn push_token(&mut self, token: Token<'s>, len: usize) {
        let span = Span::new(self.at, self.at + len);
        self.at += len;
        self.lexemes.push(Lexeme { token, span });
    }

    /// Reads one token, or skips white space, a comment or a line continuation. Returns false at the end of the source.
    fn lex_token(&mut self) -> Result<bool, ParseError> {
        let rest = self.remaining_source();
        let Some(first) = rest.chars().next() else {
            return Ok(false);
        };
        match first {
            ' ' | '\t' | '\u{c}' => self.at += 1,
            '#' => self.at += rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '\n' | '\r' => {
                if self.open.is_empty() {
                    let span = self.span_after_last_token();
                    self.lexemes.push(Lexeme { token: Token::Newline, span });
                }
                self.at += line_end_len(rest);
            }
            '\\' => {
                let newline = line_end_len(&rest[1..]);
                if newline == 0 {
                    let help = "a backslash continues a line, and must be its last character";
                    return Err(self.lexical_error(1, "unexpected `\\`").with_help(help));
                }
                self.at += 1 + newline;
            }
            '"' | '\'' => self.lex_string(0)?,
            '0'..='9' => self.lex_number()?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.lex_number()?,
            _ if first.is_alphabetic() || first == '_' => self.lex_word()?,
            _ => self.lex_punctuation(first)?,
        }
        Ok(true)
    }

    fn lex_number(&mut self) -> Result<(), ParseError> {
        let (token, len) = literals::parse_number(self.remaining_source()).map_err(|bad| {
            let error = self.lexical_error(bad.len, bad.message);
            if let Some(help) = bad.help { error.with_help(help) } else { error }
        })?;
        self.push_token(token, len);
        Ok(())
    }

    fn lex_word(&mut self) -> Result<(), ParseError> {
        let word = leading_identifier(self.remaining_source());
        if self.remaining_source()[word.len()..].starts_with(['"', '\'']) && word.len() <= 2 {
            return self.lex_string(word.len());
        }
        let token = match KEYWORDS.iter().find(|keyword| **keyword == word) {
            Some(keyword) => Token::Keyword(keyword),
            None => Token::Name(word),
        };
        self.push_token(token, word.len());
        Ok(())
    }

    fn lex_string(&mut self, prefix_len: usize) -> Result<(), ParseError> {
        let prefix = &self.remaining_source()[..prefix_len];
        let raw = match prefix.to_ascii_lowercase().as_str() {
            "" | "u" => false,
            "r" => true,
            "f" | "fr" | "rf" | "t" => {
                return Err(self.lexical_error(prefix_len, "f-strings are not supported").with_help("write a plain string"));
            }
            "b" | "br" | "rb" => {
                return Err(self.lexical_error(prefix_len, "byte strings are not supported").with_help("drop the `b`"));
            }
            _ => {
                return Err(self.lexical_error(prefix_len, format!("`{prefix}` is not a string prefix")));
            }
        };
        let (text, len) = literals::parse_string(&self.remaining_source()[prefix_len..], raw).map_err(|bad| {
            let start = self.at + prefix_len + bad.at;
            let error = ParseError::new(self.source, Span::new(start, start + bad.len), bad.message);
            if let Some(help) = bad.help { error.with_help(help) } else { error }
        })?;
        self.push_token(Token::Str(text), prefix_len + len);
        Ok(())
    }

    fn lex_punctuation(&mut self, first: char) -> Result<(), ParseError> {
        let rest = self.remaining_source();
        // The longest match is taken, because `===` contains Python's `==`.
        let foreign = FOREIGN_OPERATORS.iter().filter(|row| rest.starts_with(row.0)).max_by_key(|row| row.0.len());
        if let Some((symbol, message, help)) = foreign {
            return Err(self.lexical_error(symbol.len(), *message).with_help(*help));
        }
        let known = PUNCTUATION.iter().chain(&SQUARE_AND_CURLY_BRACKETS).find(|symbol| rest.starts_with(**symbol));
        let Some(symbol) = known.copied() else {
            return Err(self.unexpected_character_error(first));
        };
        let span = Span::new(self.at, self.at + symbol.len());
        match symbol {
            "(" | "[" | "{" => self.open.push(span),
            ")" | "]" | "}" => {
                let Some(open) = self.open.pop() else {
                    return Err(self.lexical_error(1, format!("`{symbol}` closes nothing")));
                };
                let opened = open.text(self.source);
                if !matches!((opened, symbol), ("(", ")") | ("[", "]") | ("{", "}")) {
                    let error = self.lexical_error(1, format!("`{symbol}` does not close `{opened}`"));
                    return Err(error.with_related(self.source, open, format!("`{opened}` opened here")));
                }
            }
            _ => {}
        }
        self.push_token(Token::Punct(symbol), symbol.len());
        Ok(())
    }

    fn unexpected_character_error(&self, c: char) -> ParseError {
        if let Some((_, what, help)) = LOOKALIKE_CHARACTERS.iter().find(|row| row.0 == c) {
            return self.lexical_error(c.len_utf8(), format!("`{c}` (U+{:04X}) is {what}", c as u32)).with_help(*help);
        }
        let shown = if c.is_control() || c.is_whitespace() { String::new() } else { format!("`{c}` ") };
        let error = match c {
            '\0'..='\x7f' if !c.is_control() => self.lexical_error(1, format!("unexpected character `{c}`")),
            _ => self.lexical_error(c.len_utf8(), format!("unexpected character {shown}(U+{:04X})", c as u32)),
        };
        match c {
            '!' => error.with_help("use `~` for arrays, `not` for single values, `!=` to compare"),
            '?' => error.with_help("write `x if test else y`, or `where(test, x, y)` for arrays"),
            _ => error,
        }
    }
}
