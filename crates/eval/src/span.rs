//! Positions in the source text: byte ranges, and the line and column that messages show.

/// A half-open range of byte offsets into the source text, always on character boundaries.
///
/// ```
/// use cuprum_eval::Span;
/// let whole = Span::new(0, 1).to(Span::new(4, 5));
/// assert_eq!(whole, Span::new(0, 5));
/// assert_eq!(whole.text("a + b"), "a + b");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset one past the last byte; equal to `start` for an empty range.
    pub end: usize,
}

impl Span {
    /// Returns the span from `start` up to, but not including, `end`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the empty span at `offset`, between two characters.
    pub const fn point(offset: usize) -> Span {
        Span::new(offset, offset)
    }

    /// Returns the smallest span that covers `self` and `other`.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// Returns the text of `source` that the span covers, or an empty string if the span is not within `source`.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or("")
    }
}

/// A line and column, both counted from 1; columns count characters, as editors do.
///
/// ```
/// use cuprum_eval::Position;
/// assert_eq!(Position::of("x = 1\ny = 2", 10), Position { line: 2, column: 5 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// Returns the line and column of the byte `offset` in `source`. Offsets past the end of `source` give the position of its end.
    pub fn of(source: &str, offset: usize) -> Position {
        let offset = floor_char_boundary(source, offset);
        let (line, line_start) = line_starts(source).take_while(|at| *at <= offset).fold((1, 0), |(line, _), at| (line + 1, at));
        Position { line, column: source.get(line_start..offset).unwrap_or("").chars().count() + 1 }
    }
}

/// Returns the length of the line end at the start of `text`: `\n`, `\r\n` or `\r`, as in Python. Returns 0 if there is none.
pub(crate) fn line_end_len(text: &str) -> usize {
    match text.as_bytes() {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => 0,
    }
}

/// Returns the offsets of all lines of `source` but the first.
pub(crate) fn line_starts(source: &str) -> impl Iterator<Item = usize> {
    let bytes = source.as_bytes();
    let ends_line = |at: usize| bytes[at] == b'\n' || bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
    (0..bytes.len()).filter(move |at| ends_line(*at)).map(|at| at + 1)
}

/// Returns the largest character boundary of `source` at or before `offset`. `str::floor_char_boundary` needs a newer Rust than the
/// MSRV.
pub(crate) fn floor_char_boundary(source: &str, offset: usize) -> usize {
    let mut at = offset.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}
