//! The parser of tables: one pass over the text counts the rows, the next parses each number into the result. Both passes run on all
//! threads.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use bytemuck::NoUninit;
use cuprum_core::host_buffer::{HostBuffer, check_memory_available, try_reserve};
use cuprum_core::layout::checked_size;
use cuprum_core::{DType, Error, Result, Scalar, settings, with_dtype};
use memchr::{memchr, memchr_iter, memrchr};

use super::TextTable;
use super::number_parser::ParseNumber;
use super::text_options::{ColumnNameSource, ColumnSelector, TextOptions};
use crate::array_bytes::array_from_host_buffer;
use crate::errors::file_format_error;

/// Size in bytes of the blocks of text that threads parse: small enough to distribute the work evenly, and large enough to take longer than
/// starting a thread.
const TEXT_BLOCK_BYTES: usize = 1 << 20;
/// Maximum number of columns, which bounds the memory of the column names and of [`RowParser::result_positions`].
const MAX_COLUMNS: usize = 1 << 24;
/// Upper bound of the memory that a column takes while a table is parsed, without the text of its name, in bytes.
const MAX_MEMORY_BYTES_PER_COLUMN: usize = 96;
/// Fields that mean a missing value under all options, in lower case.
const MISSING_VALUE_TEXTS: [&str; 5] = ["", "na", "n/a", "null", "nan"];

/// Parses a table. Errors name line and column.
pub(super) fn parse_table(text: &[u8], options: &TextOptions) -> Result<TextTable> {
    if text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]) {
        return Err(file_format_error("text in UTF-16; convert it to UTF-8"));
    }
    let text = &*unify_line_ends(text)?;
    let syntax = TableSyntax::from_options(options)?;
    let mut lines = LineIterator { text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text), line: 1 };
    for _ in 0..options.skip_rows {
        if lines.next().is_none() {
            break;
        }
    }
    let mut names = syntax.take_column_names(&mut lines, options)?;
    let columns = match names.len() {
        0 => lines.clone().find(|line| syntax.is_data_row(line)).map_or(Ok(0), |line| syntax.count_fields(line))?,
        n => n,
    };
    check_memory_available("loadtxt", columns.saturating_mul(MAX_MEMORY_BYTES_PER_COLUMN))?;
    let selection = select_columns(options.columns.as_deref(), &names, columns)?;
    let strict = selection.is_none();
    let outputs = selection.unwrap_or_else(|| (0..columns).collect());
    if !names.is_empty() {
        names = outputs.iter().map(|&column| names[column].clone()).collect();
    }

    let mut blocks = split_into_blocks(&lines);
    let counts = map_in_parallel(blocks.iter().map(|b| b.text).collect(), |text| syntax.count_rows_and_lines(text))?;
    let mut line = lines.line;
    for (block, count) in blocks.iter_mut().zip(&counts) {
        (block.line, block.rows) = (line, count.rows);
        line += count.lines;
    }
    let mut rows: usize = counts.iter().map(|c| c.rows).sum();
    rows = rows.saturating_sub(options.skip_footer).min(options.max_rows.unwrap_or(usize::MAX));
    let mut left = rows;
    for block in &mut blocks {
        block.rows = block.rows.min(left);
        left -= block.rows;
    }

    let shape = [rows, outputs.len()];
    let nbytes = checked_size("loadtxt", &shape)?.saturating_mul(options.dtype.itemsize());
    let mut host = HostBuffer::uninit(nbytes)?;
    // A text without rows has no columns, so the indices in `outputs` have no meaning.
    if rows > 0 {
        let by_first_row = options.first_row_sets_columns || !names.is_empty();
        with_dtype!(options.dtype, T => {
            let mut plan = RowParser::<T>::new_for_columns(&syntax, options, &outputs, columns, strict);
            plan.columns_resolved_per_row = if by_first_row { Vec::new() } else { columns_resolved_per_row(options) };
            plan.parse_blocks(&blocks, host.as_mut_bytes()?).map_err(|e| syntax.add_hint_about_names(&lines, options, e))?;
        });
    }
    // As in NumPy, a text without rows has one column unless names or selected columns give another number.
    let is_default = rows == 0 && names.is_empty() && (strict || options.first_row_sets_columns);
    let shape: Vec<usize> = match (rows, if is_default { 1 } else { outputs.len() }, options.ndmin) {
        (rows, columns, 2) => vec![rows, columns],
        (1, 1, 0) => Vec::new(),
        (1, n, _) | (n, 1, _) => vec![n],
        (rows, columns, _) => vec![rows, columns],
    };
    Ok(TextTable { names, values: array_from_host_buffer(options.dtype, &shape, host)? })
}

/// Returns `text` with a line feed in place of each carriage return that no line feed follows. As in NumPy, such a carriage return ends a
/// line.
fn unify_line_ends(text: &[u8]) -> Result<Cow<'_, [u8]>> {
    let ends_line = |at: &usize| text.get(at + 1) != Some(&b'\n');
    let mut ends = memchr_iter(b'\r', text).filter(ends_line).peekable();
    if ends.peek().is_none() {
        return Ok(text.into());
    }
    let mut unified = Vec::new();
    try_reserve("loadtxt", &mut unified, text.len())?;
    unified.extend_from_slice(text);
    ends.for_each(|at| unified[at] = b'\n');
    Ok(unified.into())
}

/// Returns the index of column `index` in a row of `count` fields, or `None` if it is out of bounds. A negative index counts from the end.
fn column_index(index: isize, count: usize) -> Option<usize> {
    let at = if index < 0 { index.checked_add_unsigned(count)? } else { index };
    usize::try_from(at).ok().filter(|at| *at < count)
}

/// Returns the indices of the selected columns, in the order of the selection. Returns `None` if `columns` is `None`, which selects all.
/// The indices have no meaning if `count` is 0, which means that the text has no rows.
fn select_columns(columns: Option<&[ColumnSelector]>, names: &[String], count: usize) -> Result<Option<Vec<usize>>> {
    let Some(columns) = columns else { return Ok(None) };
    if columns.is_empty() {
        return Err(Error::value("loadtxt", "usecols is empty; name at least one column"));
    }
    let index = |column: &ColumnSelector| match column {
        ColumnSelector::Index(_) if count == 0 => Ok(0),
        ColumnSelector::Index(i) => column_index(*i, count)
            .ok_or_else(|| Error::value("loadtxt", format!("usecols {i} is out of bounds for a table of {count} columns"))),
        ColumnSelector::Name(name) => names.iter().position(|n| n == name).ok_or_else(|| {
            let list = crate::array_names::join_first_names(names.iter().map(String::as_str));
            file_format_error(format!("no column {name:?}; the table has: {list}"))
        }),
    };
    columns.iter().map(index).collect::<Result<_>>().map(Some)
}

/// An iterator over the lines of a text, without line ends. `line` is the number of the next line, counted from 1.
#[derive(Clone)]
struct LineIterator<'a> {
    text: &'a [u8],
    line: usize,
}

impl<'a> Iterator for LineIterator<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.text.is_empty() {
            return None;
        }
        let end = memchr(b'\n', self.text).unwrap_or(self.text.len());
        let line = &self.text[..end];
        self.text = self.text.get(end + 1..).unwrap_or_default();
        self.line += 1;
        Some(line)
    }
}

/// Whole lines that one thread parses.
struct TextBlock<'a> {
    text: &'a [u8],
    /// Number of the block's first line in the whole text, counted from 1.
    line: usize,
    /// Number of table rows to parse in the block.
    rows: usize,
}

/// Splits the lines into blocks of about [`TEXT_BLOCK_BYTES`].
fn split_into_blocks<'a>(lines: &LineIterator<'a>) -> Vec<TextBlock<'a>> {
    let mut blocks = Vec::new();
    let mut rest = lines.text;
    while !rest.is_empty() {
        let nominal = rest.len().min(TEXT_BLOCK_BYTES);
        let end = match memrchr(b'\n', &rest[..nominal]) {
            _ if nominal == rest.len() => nominal,
            Some(at) => at + 1,
            None => memchr(b'\n', &rest[nominal..]).map_or(rest.len(), |at| nominal + at + 1),
        };
        let (text, next) = rest.split_at(end);
        blocks.push(TextBlock { text, line: 0, rows: 0 });
        rest = next;
    }
    blocks
}

/// Applies `work` to all items on all threads, and returns the results in order.
fn map_in_parallel<I: Send, R: Send>(items: Vec<I>, work: impl Fn(I) -> R + Sync) -> Result<Vec<R>> {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = settings::num_threads()?.unwrap_or_else(available).min(items.len());
    if threads <= 1 {
        return Ok(items.into_iter().map(work).collect());
    }
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let items = Mutex::new(items.into_iter().enumerate());
    let run = || {
        loop {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, item)) = next else { return };
            let result = work(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the calling thread runs the remaining items.
            if std::thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Numbers of table rows and of text lines in a block of the text. Blank lines and comments are not rows.
struct RowAndLineCount {
    rows: usize,
    lines: usize,
}

/// The syntax of a table: the delimiter, the texts that begin a comment, and additional texts of missing values.
struct TableSyntax<'a> {
    delimiter: Option<u8>,
    comments: &'a [String],
    missing: Vec<String>,
    /// Whether the delimiter or the first byte of a comment may occur in a number.
    splits_numbers: bool,
}

/// A field of a line: its text without quotes, and the index of the byte after the field.
type Field<'t> = (Cow<'t, [u8]>, usize);

impl<'a> TableSyntax<'a> {
    fn from_options(options: &'a TextOptions) -> Result<TableSyntax<'a>> {
        let delimiter = match options.delimiter.as_ref().map(|delimiter| &delimiter.0[..]) {
            None => None,
            Some(&[byte]) if !matches!(byte, b'\n' | b'\r' | b'"' | b'0'..=b'9') => Some(byte),
            Some(bytes) => {
                let message = format!("'{}' cannot separate fields; a delimiter is one byte such as ','", bytes.escape_ascii());
                return Err(Error::value("loadtxt", message));
            }
        };
        if let Some(comment) = options.comments.iter().find(|comment| comment.contains(['\n', '\r'])) {
            return Err(Error::value(
                "loadtxt",
                format!("'{}' cannot begin a comment, since it contains a line end", comment.escape_debug()),
            ));
        }
        let missing = options.missing.iter().map(|m| m.to_lowercase()).collect();
        let mut separators = options.comments.iter().filter_map(|comment| comment.bytes().next()).chain(delimiter);
        let splits_numbers = separators.any(|byte| byte.is_ascii_alphanumeric() || b"+-.()".contains(&byte));
        Ok(TableSyntax { delimiter, comments: &options.comments, missing, splits_numbers })
    }

    /// Returns whether `byte` is white space of ASCII as NumPy defines it, except line feeds, and not the delimiter.
    #[inline]
    fn is_blank_byte(&self, byte: u8) -> bool {
        matches!(byte, b'\t' | 0x0b..=b'\r' | 0x1c..=b' ') && Some(byte) != self.delimiter
    }

    #[inline]
    fn skip_blanks(&self, text: &[u8], mut at: usize) -> usize {
        while text.get(at).is_some_and(|&b| self.is_blank_byte(b)) {
            at += 1;
        }
        at
    }

    #[inline]
    fn is_comment_start(&self, text: &[u8], at: usize) -> bool {
        self.comments.iter().any(|c| text[at..].starts_with(c.as_bytes()))
    }

    /// Returns whether `line` has values: it is neither blank nor a comment.
    fn is_data_row(&self, line: &[u8]) -> bool {
        let at = self.skip_blanks(line, 0);
        at < line.len() && !self.is_comment_start(line, at)
    }

    fn count_rows_and_lines(&self, text: &[u8]) -> RowAndLineCount {
        let mut count = RowAndLineCount { rows: 0, lines: 0 };
        for line in (LineIterator { text, line: 1 }) {
            count.lines += 1;
            count.rows += self.is_data_row(line) as usize;
        }
        count
    }

    /// Takes the line of column names from `lines`, if `options` require such a line or detect one. Returns no names otherwise.
    fn take_column_names(&self, lines: &mut LineIterator, options: &TextOptions) -> Result<Vec<String>> {
        let mut ahead = lines.clone();
        let first = match options.names {
            ColumnNameSource::None => return Ok(Vec::new()),
            ColumnNameSource::FirstLine => ahead.find(|line| self.skip_blanks(line, 0) < line.len()),
            ColumnNameSource::Detect => ahead.find(|line| self.is_data_row(line)),
        };
        let Some(mut line) = first else { return Ok(Vec::new()) };
        if options.names == ColumnNameSource::FirstLine {
            line = &line[self.skip_blanks(line, 0)..];
            if let Some(comment) = self.comments.iter().find(|c| line.starts_with(c.as_bytes())) {
                line = &line[comment.len()..];
            }
        }
        check_memory_available("loadtxt", self.count_fields(line)?.saturating_mul(MAX_MEMORY_BYTES_PER_COLUMN))?;
        let fields = self.read_fields(line).map_err(|e| add_line_number(ahead.line - 1, e))?;
        let is_number = |field: &str| with_dtype!(DType::C128, T => T::parse_entire(field.as_bytes()).is_some());
        let is_value = |field: &str| is_number(field) || options.dtype == DType::Bool && bool::parse_entire(field.as_bytes()).is_some();
        let starts_like_number = |field: &str| field.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit());
        let may_be_name = |field: &String| self.is_missing_value(field) || !is_value(field) && !starts_like_number(field);
        let looks_like_names = fields.iter().all(may_be_name) && !fields.iter().all(|field| self.is_missing_value(field));
        if options.names == ColumnNameSource::Detect && !looks_like_names {
            return Ok(Vec::new());
        }
        *lines = ahead;
        Ok(fields)
    }

    /// Adds a hint to the error of a table whose first row consists of words, if no option says that the table has column names.
    #[cold]
    fn add_hint_about_names(&self, lines: &LineIterator, options: &TextOptions, e: Error) -> Error {
        let first = lines.clone().find(|line| self.is_data_row(line)).and_then(|line| self.read_fields(line).ok());
        let is_word = |field: &String| field.starts_with(|c: char| c.is_alphabetic()) && !self.is_missing_value(field);
        match e {
            Error::Io { path, message, kind }
                if options.names == ColumnNameSource::None && first.is_some_and(|fields| fields.iter().all(is_word)) =>
            {
                let message =
                    format!("{message}; the first row may be column names: names_in_first_line or detect_names_in_first_line reads them");
                Error::Io { path, message, kind }
            }
            e => e,
        }
    }

    /// Returns the fields of a line as text.
    fn read_fields(&self, line: &[u8]) -> Result<Vec<String>> {
        let mut fields = Vec::new();
        let mut at = self.skip_blanks(line, 0);
        loop {
            let (field, end) = self.read_field(line, at).map_err(|e| add_column_number(fields.len() + 1, e))?;
            fields.push(String::from_utf8_lossy(&field).into_owned());
            if fields.len() > MAX_COLUMNS {
                return Err(file_format_error(format!("more than {MAX_COLUMNS} columns")));
            }
            match self.next_field_start(line, end) {
                Some(next) => at = next,
                None => return Ok(fields),
            }
        }
    }

    fn count_fields(&self, line: &[u8]) -> Result<usize> {
        let mut at = self.skip_blanks(line, 0);
        let mut count = 1;
        while let Some(next) = self.read_field(line, at).ok().and_then(|(_, end)| self.next_field_start(line, end)) {
            (at, count) = (next, count + 1);
            if count > MAX_COLUMNS {
                return Err(file_format_error(format!("more than {MAX_COLUMNS} columns")));
            }
        }
        Ok(count)
    }

    /// Returns the start of the field after the one that ends at `end`, or `None` at the end of the line.
    #[inline]
    fn next_field_start(&self, text: &[u8], end: usize) -> Option<usize> {
        let at = self.skip_blanks(text, end);
        match *text.get(at)? {
            b'\n' => None,
            byte if Some(byte) == self.delimiter => Some(self.skip_blanks(text, at + 1)),
            _ if self.is_comment_start(text, at) => None,
            _ => Some(at),
        }
    }

    /// Returns whether a field may end at `at`. After optional blanks, the delimiter, a comment or the end of the line must follow. If
    /// blanks separate fields, a blank suffices.
    #[inline]
    fn can_field_end_at(&self, text: &[u8], at: usize) -> bool {
        let Some(&byte) = text.get(at) else { return true };
        if byte == b'\n' || Some(byte) == self.delimiter {
            return true;
        }
        let next = self.skip_blanks(text, at);
        match text.get(next) {
            None | Some(b'\n') => true,
            Some(&byte) if Some(byte) == self.delimiter => true,
            Some(_) => self.delimiter.is_none() && next > at || self.is_comment_start(text, next),
        }
    }

    /// Returns the field that begins at `at`. The caller has skipped leading blanks.
    fn read_field<'t>(&self, text: &'t [u8], at: usize) -> Result<Field<'t>> {
        if text.get(at) == Some(&b'"') {
            return self.read_quoted_field(text, at + 1);
        }
        let is_end = |i: usize, byte: u8| {
            byte == b'\n'
                || Some(byte) == self.delimiter
                || self.delimiter.is_none() && self.is_blank_byte(byte)
                || self.is_comment_start(text, i)
        };
        let end = (at..text.len()).find(|&i| is_end(i, text[i])).unwrap_or(text.len());
        let len = text[at..end].iter().rposition(|&b| !self.is_blank_byte(b)).map_or(0, |last| last + 1);
        Ok((Cow::Borrowed(&text[at..at + len]), end))
    }

    /// Returns the quoted field whose text begins at `start`, directly after the opening quote. Two consecutive quotes in the field mean
    /// one quote.
    fn read_quoted_field<'t>(&self, text: &'t [u8], start: usize) -> Result<Field<'t>> {
        let mut field = Cow::Borrowed(&text[start..start]);
        let mut at = start;
        loop {
            let end = text[at..].iter().position(|&b| b == b'"' || b == b'\n').map(|n| at + n);
            match end.map(|end| (end, text[end], text.get(end + 1))) {
                Some((end, b'"', Some(b'"'))) => {
                    field.to_mut().extend_from_slice(&text[at..=end]);
                    at = end + 2;
                }
                Some((end, b'"', _)) => {
                    match &mut field {
                        Cow::Borrowed(borrowed) => *borrowed = &text[start..end],
                        Cow::Owned(owned) => owned.extend_from_slice(&text[at..end]),
                    }
                    if !self.can_field_end_at(text, end + 1) {
                        return Err(file_format_error("text after the closing quote"));
                    }
                    return Ok((field, end + 1));
                }
                _ => return Err(file_format_error("a quote without end on its line")),
            }
        }
    }

    fn is_missing_value(&self, field: &str) -> bool {
        let lower = field.trim_matches(|c| u8::try_from(c).is_ok_and(|byte| self.is_blank_byte(byte))).to_lowercase();
        MISSING_VALUE_TEXTS.contains(&lower.as_str()) || self.missing.contains(&lower)
    }
}

fn add_line_number(line: usize, e: Error) -> Error {
    add_error_location(format!("line {line}"), e)
}

fn add_column_number(column: usize, e: Error) -> Error {
    add_error_location(format!("column {column}"), e)
}

/// Puts `place`, such as the number of a line, before the message of an [`Error::Io`].
fn add_error_location(place: String, e: Error) -> Error {
    match e {
        Error::Io { path, message, kind } => {
            let separator = if message.starts_with("column ") { ", " } else { ": " };
            Error::Io { path, message: format!("{place}{separator}{message}"), kind }
        }
        e => e,
    }
}

/// A parser that converts the selected fields of each row to elements of one type.
struct RowParser<'a, T> {
    syntax: &'a TableSyntax<'a>,
    /// `result_positions[c]` holds the positions in a result row that receive field `c` of a text row. If `strict`, every field has an
    /// entry, else only the fields up to the last selected column.
    result_positions: Vec<Vec<usize>>,
    /// The selected columns if one of them is negative, which counts from the end of each row; otherwise empty. `result_positions` is
    /// then correct only for rows of `columns` fields.
    columns_resolved_per_row: Vec<isize>,
    /// Number of fields in the first row.
    columns: usize,
    /// Number of elements in a row of the array that the parser fills.
    width: usize,
    /// Whether every row must have the same number of fields.
    strict: bool,
    fill_value: Option<T>,
}

impl<'a, T: ParseNumber + NoUninit> RowParser<'a, T> {
    fn new_for_columns(
        syntax: &'a TableSyntax<'a>,
        options: &TextOptions,
        outputs: &[usize],
        columns: usize,
        strict: bool,
    ) -> RowParser<'a, T> {
        let mut result_positions = result_positions_of_columns(outputs);
        if strict {
            result_positions.resize_with(columns, Vec::new);
        }
        let fill_value = options.fill_value.and_then(fill_value_as_element::<T>);
        RowParser { syntax, result_positions, columns_resolved_per_row: Vec::new(), columns, width: outputs.len(), strict, fill_value }
    }

    /// Parses all blocks into `out`. Returns the first error of the text.
    fn parse_blocks(&self, blocks: &[TextBlock], out: &mut [u8]) -> Result<()> {
        let mut parts = Vec::with_capacity(blocks.len());
        let mut rest = out;
        for block in blocks {
            let (part, next) = rest.split_at_mut(block.rows * self.width * size_of::<T>());
            parts.push((block, part));
            rest = next;
        }
        map_in_parallel(parts, |(block, part)| self.parse_block(block, part))?.into_iter().collect()
    }

    fn parse_block(&self, block: &TextBlock, out: &mut [u8]) -> Result<()> {
        let (text, mut at, mut line) = (block.text, 0, block.line);
        let row_bytes = self.width * size_of::<T>();
        for row in out.chunks_exact_mut(row_bytes.max(1)).take(block.rows) {
            loop {
                let first = self.syntax.skip_blanks(text, at);
                if first < text.len() && text[first] != b'\n' && !self.syntax.is_comment_start(text, first) {
                    at = first;
                    break;
                }
                at = next_line_start(text, first);
                line += 1;
                // The pass that counted the rows found as many rows as this pass expects. If the passes disagreed, the rest of `out` would
                // stay uninitialised, so this case is an error.
                if at >= text.len() {
                    return Err(add_line_number(line, file_format_error("a row is missing")));
                }
            }
            let positions = self.result_positions_of_row(&text[at..]).map_err(|e| add_line_number(line, e))?;
            let positions = positions.as_deref().unwrap_or(&self.result_positions);
            at = self.parse_row(text, at, positions, row).map_err(|e| add_line_number(line, e))?;
            line += 1;
        }
        Ok(())
    }

    /// Returns the positions in the result for the fields of the row at the start of `text`. Returns `None` if they are
    /// [`RowParser::result_positions`].
    fn result_positions_of_row(&self, text: &[u8]) -> Result<Option<Vec<Vec<usize>>>> {
        if self.columns_resolved_per_row.is_empty() {
            return Ok(None);
        }
        let count = self.syntax.count_fields(text)?;
        if count == self.columns {
            return Ok(None);
        }
        check_memory_available("loadtxt", count.saturating_mul(MAX_MEMORY_BYTES_PER_COLUMN))?;
        let column = |&index: &isize| {
            let out_of_bounds = || file_format_error(format!("usecols {index} is out of bounds for a row of {count} columns"));
            column_index(index, count).ok_or_else(out_of_bounds)
        };
        let outputs = self.columns_resolved_per_row.iter().map(column).collect::<Result<Vec<_>>>()?;
        Ok(Some(result_positions_of_columns(&outputs)))
    }

    /// Parses the row that begins at `at` into `out`. Returns the start of the next line.
    #[inline]
    fn parse_row(&self, text: &[u8], mut at: usize, positions_of_columns: &[Vec<usize>], out: &mut [u8]) -> Result<usize> {
        let syntax = self.syntax;
        let item = size_of::<T>();
        for (column, positions) in positions_of_columns.iter().enumerate() {
            if positions.is_empty() {
                at = syntax.read_field(text, at).map_err(|e| add_column_number(column + 1, e))?.1;
            } else {
                let number = if syntax.splits_numbers { None } else { T::parse_leading_number(&text[at..]) };
                let value = match number {
                    Some((value, len)) if syntax.can_field_end_at(text, at + len) => {
                        at += len;
                        value
                    }
                    _ => {
                        let (field, end) = syntax.read_field(text, at).map_err(|e| add_column_number(column + 1, e))?;
                        at = end;
                        self.parse_unusual_field(&field).map_err(|e| add_column_number(column + 1, e))?
                    }
                };
                for &target in positions {
                    out[target * item..(target + 1) * item].copy_from_slice(bytemuck::bytes_of(&value));
                }
            }
            let is_last = column + 1 == positions_of_columns.len();
            match syntax.next_field_start(text, at) {
                Some(next) if !is_last => at = next,
                None if is_last => {}
                Some(_) if !self.strict => {}
                next => {
                    let more = if next.is_some() { "more than " } else { "" };
                    return Err(file_format_error(format!("{more}{} columns, {} expected", column + 1, positions_of_columns.len())));
                }
            }
        }
        Ok(next_line_start(text, at))
    }

    /// Parses a field that the fast path does not accept: a quoted, missing or invalid field, or any field if `TableSyntax::splits_numbers`
    /// is true.
    #[cold]
    fn parse_unusual_field(&self, field: &[u8]) -> Result<T> {
        if let Some(value) = T::parse_entire(field.trim_ascii()) {
            return Ok(value);
        }
        let text = String::from_utf8_lossy(field);
        let shown: String = text.chars().take(60).collect();
        if !self.syntax.is_missing_value(&text) {
            let digits = field.trim_ascii().trim_ascii_start();
            let digits = digits.strip_prefix(b"-").or(digits.strip_prefix(b"+")).unwrap_or(digits);
            let is_integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let why = if is_integer && T::DTYPE.is_int() { "is out of range for" } else { "is not a valid" };
            return Err(file_format_error(format!("'{}' {why} {}", shown.escape_debug(), T::DTYPE)));
        }
        self.fill_value.ok_or_else(|| {
            file_format_error(format!("'{shown}' is a missing value; `fill_value` sets a number for it (genfromtxt has a default)"))
        })
    }
}

/// Returns the selected column indices if one of them is negative, and an empty list otherwise. A negative index counts from the end of
/// each row, so it must be resolved for every row.
fn columns_resolved_per_row(options: &TextOptions) -> Vec<isize> {
    let index = |column: &ColumnSelector| match column {
        ColumnSelector::Index(index) => Some(*index),
        ColumnSelector::Name(_) => None,
    };
    let indices: Vec<isize> = options.columns.iter().flatten().filter_map(index).collect();
    if indices.iter().any(|index| *index < 0) { indices } else { Vec::new() }
}

/// Returns, for each field of a text row, the positions of the field in a row of the result. `outputs` lists the fields in the order of
/// the result.
fn result_positions_of_columns(outputs: &[usize]) -> Vec<Vec<usize>> {
    let mut targets = vec![Vec::new(); outputs.iter().max().map_or(0, |last| last + 1)];
    for (position, &column) in outputs.iter().enumerate() {
        targets[column].push(position);
    }
    targets
}

/// Returns the start of the line after the line that contains position `at`.
fn next_line_start(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memchr(b'\n', rest).map_or(text.len(), |n| at + n + 1)
}

/// Returns the fill value of missing elements as an element of type `T`, or `None` if the type cannot represent it.
///
/// An integer below the minimum of a signed type becomes the minimum. Any other integer that is out of range becomes the maximum, so that
/// -1 marks missing elements of unsigned types, too.
fn fill_value_as_element<T: ParseNumber>(fill: Scalar) -> Option<T> {
    let text = match fill {
        Scalar::Bool(b) => (b as u8).to_string(),
        Scalar::Int(v) if T::DTYPE.int_range().is_some_and(|(lo, hi)| v < lo || v > hi) => {
            let (lo, hi) = T::DTYPE.int_range()?;
            if v < lo && lo < 0 { lo } else { hi }.to_string()
        }
        Scalar::Int(v) => v.to_string(),
        Scalar::Float(v) => v.to_string(),
        // Rust formats NaN without the sign that `{:+}` requests.
        Scalar::Complex(c) => format!("{}{}{:+}j", c.re, if c.im.is_nan() { "+" } else { "" }, c.im),
    };
    T::parse_entire(text.as_bytes())
}
