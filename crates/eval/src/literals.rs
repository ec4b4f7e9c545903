//! Number and string literals in Python's syntax, and the errors for other spellings.

use crate::lexer::{Token, leading_identifier};

/// The error of an invalid literal. `at` and `len` are relative to the start of the literal.
#[derive(Debug)]
pub(crate) struct LiteralError {
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl LiteralError {
    fn new(len: usize, message: impl Into<String>) -> LiteralError {
        LiteralError { at: 0, len, message: message.into(), help: None }
    }

    fn with_help(mut self, help: impl Into<String>) -> LiteralError {
        self.help = Some(help.into());
        self
    }
}

/// Parses the number at the start of `text`, which starts with a digit, or a point and a digit. Returns its token and its length in
/// bytes.
pub(crate) fn parse_number(text: &str) -> Result<(Token<'static>, usize), LiteralError> {
    let bytes = text.as_bytes();
    if let [b'0', letter @ (b'x' | b'X' | b'o' | b'O' | b'b' | b'B'), ..] = bytes {
        let (radix, name) = match letter {
            b'x' | b'X' => (16, "hexadecimal"),
            b'o' | b'O' => (8, "octal"),
            _ => (2, "binary"),
        };
        return parse_radix_literal(text, radix, name);
    }

    let whole = end_of_digits(bytes, 0);
    let mut end = whole;
    let mut is_float = false;
    if bytes.get(end) == Some(&b'.') {
        is_float = true;
        end = end_of_digits(bytes, end + 1);
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end_of_digits(bytes, end + 1 + sign);
        if exponent > end + 1 + sign {
            is_float = true;
            end = exponent;
        } else if leading_identifier(&text[end..]).len() == 1 {
            let len = end + 1 + sign;
            return Err(LiteralError::new(len, format!("the exponent of `{}` has no digits", &text[..len])));
        }
    }
    let literal = &text[..end];
    check_underscores(literal.split(['.', 'e', 'E', '+', '-']), end)?;
    let plain = literal.replace('_', "");

    let imaginary = matches!(bytes.get(end), Some(b'j' | b'J'));
    let len = end + usize::from(imaginary);
    let suffix = leading_identifier(&text[len..]);
    if !suffix.is_empty() {
        return Err(number_suffix_error(&text[..len], suffix));
    }
    if is_float || imaginary {
        // Python's float syntax without underscores is valid in Rust, so Rust parses it. Both languages give infinity on overflow.
        let value = plain.parse().map_err(|_| LiteralError::new(len, format!("`{literal}` is not a number")))?;
        return Ok((if imaginary { Token::Imaginary(value) } else { Token::Float(value) }, len));
    }
    if plain.len() > 1 && plain.starts_with('0') && plain.bytes().any(|digit| digit != b'0') {
        let value = plain.trim_start_matches('0');
        return Err(LiteralError::new(len, "an integer cannot start with 0")
            .with_help(format!("write `{value}`, or `0o{value}` if octal was meant")));
    }
    match plain.parse() {
        Ok(value) => Ok((Token::Int(value), len)),
        Err(_) => Err(int_too_large_error(len)),
    }
}

/// Parses an integer literal with a base prefix, such as `0x1f`, `0o17` or `0b11`. Returns its token and its length in bytes.
/// `name` is the name of the base in error messages.
fn parse_radix_literal(text: &str, radix: u32, name: &str) -> Result<(Token<'static>, usize), LiteralError> {
    let end = text[2..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(text.len(), |at| at + 2);
    let body = &text[2..end];
    if let Some(at) = body.find(|c: char| c != '_' && !c.is_digit(radix)) {
        let bad = &body[at..=at];
        return Err(LiteralError::new(end, format!("`{bad}` is not a {name} digit")));
    }
    // The underscore after the base prefix is removed, as `0x_ff` is valid in Python.
    check_underscores([body.strip_prefix('_').unwrap_or(body)], end)?;
    let plain = body.replace('_', "");
    if plain.is_empty() {
        return Err(LiteralError::new(end, format!("`{}` has no digits", &text[..end])));
    }
    match i128::from_str_radix(&plain, radix) {
        Ok(value) => Ok((Token::Int(value), end)),
        Err(_) => Err(int_too_large_error(end)),
    }
}

/// Returns the end of the digits and underscores that start at offset `start` of `bytes`.
fn end_of_digits(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or(&[]);
    start + rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count()
}

/// Returns an error unless each underscore is between two digits. `parts` are the runs of digits and underscores of a
/// literal, and `len` is its length in bytes.
fn check_underscores<'a>(parts: impl IntoIterator<Item = &'a str>, len: usize) -> Result<(), LiteralError> {
    for part in parts {
        if part.starts_with('_') || part.ends_with('_') || part.contains("__") {
            return Err(LiteralError::new(len, "an underscore in a number must be between two digits"));
        }
    }
    Ok(())
}

fn int_too_large_error(len: usize) -> LiteralError {
    LiteralError::new(len, "this integer is too large").with_help("integers go up to 2**127 - 1; write it as a float, such as `1e40`")
}

/// Returns the error for a number followed by letters, such as `2x`, `3L` or `1.5f`.
fn number_suffix_error(number: &str, suffix: &str) -> LiteralError {
    let error = LiteralError::new(number.len() + suffix.len(), format!("`{number}{suffix}` is not a number"));
    match suffix {
        "f" | "F" | "l" | "L" | "u" | "U" | "f32" | "f64" => {
            error.with_help(format!("write `{number}`; its dtype is that of the other operand"))
        }
        "i" | "I" => error.with_help(format!("the imaginary unit is `j`: `{number}j`")),
        _ => error.with_help(format!("write `{number} * {suffix}` to multiply, or put a space between")),
    }
}

/// Parses the string literal at the start of `text`, which starts with a quote. Returns its value and its length in bytes. `raw`
/// keeps backslashes, as the prefix `r` does.
pub(crate) fn parse_string(text: &str, raw: bool) -> Result<(String, usize), LiteralError> {
    let mut chars = text.char_indices().peekable();
    let Some((_, quote)) = chars.next() else {
        return Err(LiteralError::new(0, "expected a string"));
    };
    if text[1..].starts_with([quote]) && text[2..].starts_with([quote]) {
        return Err(LiteralError::new(3, "triple-quoted strings are not supported").with_help("use one quote on each side"));
    }
    let mut value = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => return Ok((value, at + 1)),
            '\n' | '\r' => break,
            '\\' if raw => {
                value.push(c);
                // A raw string keeps the backslash, and a quote after it does not end the string.
                if let Some((_, next)) = chars.next_if(|(_, next)| !matches!(*next, '\n' | '\r')) {
                    value.push(next);
                }
            }
            '\\' => match chars.next() {
                None => break,
                Some((_, '\n')) => {}
                Some((_, '\r')) => drop(chars.next_if(|(_, next)| *next == '\n')),
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, 'r')) => value.push('\r'),
                Some((_, 'a')) => value.push('\x07'),
                Some((_, 'b')) => value.push('\x08'),
                Some((_, 'f')) => value.push('\x0c'),
                Some((_, 'v')) => value.push('\x0b'),
                Some((_, first @ '0'..='7')) => {
                    let more = std::iter::from_fn(|| chars.next_if(|(_, c)| ('0'..='7').contains(c))).take(2);
                    let code = more.fold(first as u32 - '0' as u32, |code, (_, c)| 8 * code + (c as u32 - '0' as u32));
                    value.extend(char::from_u32(code));
                }
                Some((_, same @ ('\\' | '\'' | '"'))) => value.push(same),
                Some((_, kind @ ('x' | 'u' | 'U'))) => {
                    let count = if kind == 'x' {
                        2
                    } else if kind == 'u' {
                        4
                    } else {
                        8
                    };
                    let hex: String =
                        std::iter::from_fn(|| chars.next_if(|(_, c)| c.is_ascii_hexdigit())).take(count).map(|(_, c)| c).collect();
                    let code = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                    match code {
                        Some(c) if hex.len() == count => value.push(c),
                        _ => {
                            let len = 2 + hex.len();
                            let message = format!("`\\{kind}` must be followed by the {count} hexadecimal digits of a character");
                            return Err(LiteralError { at, len, message, help: None });
                        }
                    }
                }
                // Unknown escapes remain in the string with their backslash, as in Python.
                Some((_, other)) => value.extend(['\\', other]),
            },
            _ => value.push(c),
        }
    }
    Err(LiteralError::new(1, "this string is never closed").with_help(format!("add `{quote}` before the end of the line")))
}
