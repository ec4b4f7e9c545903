//! Writing of tables as text.

use std::io::Write;
use std::path::Path;

use cuprum_core::{Complex, DType, Error, NdArray, Result, Scalar, bf16, f16, fmt};

use super::text_options::Delimiter;
use crate::array_bytes::for_each_byte_block;
use crate::atomic_file;
use crate::errors::file_format_error;
use crate::file_streams;

/// Maximum width and precision of a number format. The limit bounds the length of the text of a number.
const MAX_WIDTH_OR_PRECISION: usize = 1000;

/// Options of [`savetxt`].
///
/// # Examples
/// ```
/// let format = cuprum_io::TextFormat::default().delimiter(",").format("%.3f").header("x,y");
/// ```
#[derive(Clone, Debug)]
pub struct TextFormat {
    delimiter: Delimiter,
    /// One format for all columns, or a format per column; none for the shortest digits.
    formats: Vec<String>,
    header: String,
    footer: String,
    comments: String,
    newline: String,
}

impl Default for TextFormat {
    /// One blank between numbers, the shortest digits that read back as the same value, no header.
    fn default() -> TextFormat {
        TextFormat {
            delimiter: " ".into(),
            formats: Vec::new(),
            header: String::new(),
            footer: String::new(),
            comments: "# ".into(),
            newline: "\n".into(),
        }
    }
}

impl TextFormat {
    /// Sets the text between numbers.
    pub fn delimiter(mut self, delimiter: impl Into<Delimiter>) -> Self {
        self.delimiter = delimiter.into();
        self
    }

    /// Sets the format of a number in the notation of C: `%.6f`, `%10.3e`, `%g`, `%d`, `%s`. NumPy's default is `%.18e`. Text may surround the
    /// number, with `%%` for a percent sign.
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.formats = vec![format.into()];
        self
    }

    /// Sets a format for each column, in the notation of [`format`](TextFormat::format).
    pub fn formats<S: Into<String>>(mut self, formats: impl IntoIterator<Item = S>) -> Self {
        self.formats = formats.into_iter().map(Into::into).collect();
        self
    }

    /// Sets lines to write before the numbers, each prefixed with [`comments`](TextFormat::comments).
    pub fn header(mut self, text: impl Into<String>) -> Self {
        self.header = text.into();
        self
    }

    /// Sets lines to write after the numbers, each prefixed with [`comments`](TextFormat::comments).
    pub fn footer(mut self, text: impl Into<String>) -> Self {
        self.footer = text.into();
        self
    }

    /// Sets the prefix of header and footer lines. The default is `# `. With `""`, csv readers take a header of one line as the column
    /// names.
    pub fn comments(mut self, text: impl Into<String>) -> Self {
        self.comments = text.into();
        self
    }

    /// Sets the end of a line. The default is `\n`. Unlike in NumPy, it also ends each line of a header of several lines.
    pub fn newline(mut self, text: impl Into<String>) -> Self {
        self.newline = text.into();
        self
    }
}

/// Writes a 1-D or 2-D array as text, a row per line (`numpy.savetxt`). A 1-D array is written as a column.
///
/// The file appears under its name when it is complete.
///
/// # Errors
/// [`Error::Io`] for an array that is neither 1-D nor 2-D, or a file that cannot be written, [`Error::Value`] for an invalid format, or NaN
/// or an infinity in the format `%d`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-savetxt-{}.csv", std::process::id()));
/// let table = cuprum::linspace(0.0, 1.0, 4)?.reshape([2, 2])?;
/// io::savetxt(&path, &table, &io::TextFormat::default().delimiter(",").format("%.3f"))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "0.000,0.333\n0.667,1.000\n");
/// io::savetxt(&path, &table, &io::TextFormat::default().formats(["%.1f", "%.2f"]))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "0.0 0.33\n0.7 1.00\n");
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn savetxt(path: impl AsRef<Path>, array: &NdArray, format: &TextFormat) -> Result<()> {
    check_ndim_and_evaluate(array).map_err(|e| crate::errors::add_path_to_error(path.as_ref(), e))?;
    atomic_file::write_file_atomically(path.as_ref(), |file| write_text(file, array, format))
}

/// Checks that the array has 1 or 2 axes, as text files need, and evaluates it.
pub(crate) fn check_ndim_and_evaluate(array: &NdArray) -> Result<()> {
    if !(1..=2).contains(&array.ndim()) {
        return Err(file_format_error(format!("text holds arrays of 1 or 2 axes, not {}; reshape the array", array.ndim())));
    }
    array.eval().map(drop)
}

/// Writes a 1-D or 2-D array to a stream.
pub(crate) fn write_text(file: &mut dyn Write, array: &NdArray, format: &TextFormat) -> Result<()> {
    let numbers: Vec<NumberFormat> = format.formats.iter().map(|text| NumberFormat::parse_printf_format(text)).collect::<Result<_>>()?;
    let columns = if array.ndim() == 2 { array.shape()[1] } else { 1 };
    if numbers.len() > 1 && numbers.len() != columns {
        return Err(Error::value("savetxt", format!("got {} formats for {columns} columns", numbers.len())));
    }
    let mut text = Vec::new();
    format.push_comment_lines(&format.header, &mut text);
    // Ends a line. Writes the text to the file once it is long, so that its memory stays bounded.
    let mut end_line = |text: &mut Vec<u8>| -> Result<()> {
        const FLUSH_BYTES: usize = 1 << 20;
        text.extend_from_slice(format.newline.as_bytes());
        if text.len() >= FLUSH_BYTES {
            file_streams::write_all(file, text)?;
            text.clear();
        }
        Ok(())
    };
    if columns == 0 {
        (0..array.shape()[0]).try_for_each(|_| end_line(&mut text))?;
    }
    let item = array.dtype().itemsize();
    let mut halves = ShortestDigitsOfHalfFloats::default();
    let mut column = 0;
    for_each_byte_block(array, &mut |block| {
        for element in block.chunks_exact(item) {
            if column > 0 {
                text.extend_from_slice(&format.delimiter.0);
            }
            match numbers.get(column).or(numbers.first()) {
                Some(number) => number.push_formatted_element(array.dtype(), element, &mut text)?,
                None => push_shortest_number(array.dtype(), element, &mut halves, &mut text),
            }
            column += 1;
            if column == columns {
                column = 0;
                end_line(&mut text)?;
            }
        }
        Ok(())
    })?;
    format.push_comment_lines(&format.footer, &mut text);
    file_streams::write_all(file, &text)
}

impl TextFormat {
    /// Appends the lines of the header or the footer.
    fn push_comment_lines(&self, lines: &str, text: &mut Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        for line in lines.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            text.extend_from_slice(self.comments.as_bytes());
            text.extend_from_slice(line.as_bytes());
            text.extend_from_slice(self.newline.as_bytes());
        }
    }
}

/// An element converted to one of the types that have their own formatting.
enum ElementValue {
    Int(i128),
    F32(f32),
    F64(f64),
    Complex(Complex<f64>),
}

/// Decodes one element of `dtype` from its bytes in native order.
#[inline]
fn decode_element(dtype: DType, bytes: &[u8]) -> ElementValue {
    macro_rules! from {
        ($t:ty) => {
            <$t>::from_ne_bytes(bytes.try_into().unwrap_or_default())
        };
    }
    let half = |bytes: &[u8]| [bytes[0], bytes[1]];
    match dtype {
        DType::Bool => ElementValue::Int(bytes[0] as i128),
        DType::I8 => ElementValue::Int(from!(i8).into()),
        DType::I16 => ElementValue::Int(from!(i16).into()),
        DType::I32 => ElementValue::Int(from!(i32).into()),
        DType::I64 => ElementValue::Int(from!(i64).into()),
        DType::U8 => ElementValue::Int(from!(u8).into()),
        DType::U16 => ElementValue::Int(from!(u16).into()),
        DType::U32 => ElementValue::Int(from!(u32).into()),
        DType::U64 => ElementValue::Int(from!(u64).into()),
        DType::F16 => ElementValue::F32(f16::from_ne_bytes(half(bytes)).to_f32()),
        DType::BF16 => ElementValue::F32(bf16::from_ne_bytes(half(bytes)).to_f32()),
        DType::F32 => ElementValue::F32(from!(f32)),
        DType::F64 => ElementValue::F64(from!(f64)),
        DType::C64 => {
            let part = |at: usize| f32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
            ElementValue::Complex(Complex::new(part(0).into(), part(4).into()))
        }
        DType::C128 => {
            let part = |at: usize| f64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
            ElementValue::Complex(Complex::new(part(0), part(8)))
        }
    }
}

/// A cache that maps the bits of a 16-bit float to the float32 with the same shortest digits.
#[derive(Default)]
struct ShortestDigitsOfHalfFloats(Vec<Option<f32>>);

impl ShortestDigitsOfHalfFloats {
    /// Returns the float32 whose shortest digits are those of `v`, a value of the 16-bit dtype `dtype` with the bytes `bytes`.
    fn f32_with_digits_of_half(&mut self, v: f32, dtype: DType, bytes: &[u8]) -> f32 {
        if !v.is_finite() {
            return v;
        }
        self.0.resize(1 << 16, None);
        *self.0[usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]))].get_or_insert_with(|| {
            let (digits, exponent) = fmt::shortest_digits(v.abs().into(), dtype);
            format!("{}.{}e{exponent}", &digits[..1], &digits[1..]).parse().map_or(v, |widened: f32| widened.copysign(v))
        })
    }
}

/// Appends the shortest digits that read back as the same element.
#[inline]
fn push_shortest_number(dtype: DType, bytes: &[u8], halves: &mut ShortestDigitsOfHalfFloats, text: &mut Vec<u8>) {
    match decode_element(dtype, bytes) {
        ElementValue::F32(v) if dtype != DType::F32 => {
            let v = halves.f32_with_digits_of_half(v, dtype, bytes);
            push_float_digits(zmij::Buffer::new().format(v), v.is_finite(), text);
        }
        ElementValue::Int(v) => text.extend_from_slice(itoa::Buffer::new().format(v).as_bytes()),
        ElementValue::F32(v) => push_float_digits(zmij::Buffer::new().format(v), v.is_finite(), text),
        ElementValue::F64(v) => push_float_digits(zmij::Buffer::new().format(v), v.is_finite(), text),
        ElementValue::Complex(v) => {
            // The parts of a complex64 are written with the shortest digits of a float32.
            let part = |v: f64, text: &mut Vec<u8>| match dtype {
                DType::C64 => push_float_digits(zmij::Buffer::new().format(v as f32), v.is_finite(), text),
                _ => push_float_digits(zmij::Buffer::new().format(v), v.is_finite(), text),
            };
            text.push(b'(');
            part(v.re, text);
            if v.im.is_nan() || v.im.is_sign_positive() {
                text.push(b'+');
            }
            part(v.im, text);
            text.extend_from_slice(b"j)");
        }
    }
}

/// Appends the digits of a float. If `is_finite` is false, `digits` is a name such as `NaN`, which is written in lower case, as in NumPy.
#[inline]
fn push_float_digits(digits: &str, is_finite: bool, text: &mut Vec<u8>) {
    if is_finite {
        text.extend_from_slice(digits.as_bytes());
    } else {
        text.extend(digits.bytes().map(|b| b.to_ascii_lowercase()));
    }
}

/// Returns the text before the first `%` that begins a number, and the text after it. `%%` stands for a percent sign.
fn split_at_single_percent(text: &str) -> (String, Option<&str>) {
    let (mut before, mut rest) = (String::new(), text);
    while let Some((plain, after)) = rest.split_once('%') {
        before.push_str(plain);
        let Some(following) = after.strip_prefix('%') else { return (before, Some(after)) };
        before.push('%');
        rest = following;
    }
    (before + rest, None)
}

/// A format of numbers in the notation of C's `printf`.
#[derive(Debug)]
struct NumberFormat {
    before: String,
    after: String,
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    /// The flag `#`: the decimal point is always written, and `%g` keeps trailing zeros.
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    kind: u8,
}

impl NumberFormat {
    /// Parses the format `text`.
    fn parse_printf_format(text: &str) -> Result<NumberFormat> {
        let invalid = |why: &str| Error::value("savetxt", format!("the format {text:?} {why}; examples are %.6f, %10.3e, %g, %d and %s"));
        let (before, rest) = split_at_single_percent(text);
        let rest = rest.ok_or_else(|| invalid("has no number"))?;
        let flags = rest.bytes().take_while(|b| b"-+ 0#".contains(b)).count();
        let (flags, rest) = rest.split_at(flags);
        let number = |text: &str| -> Result<usize> {
            if text.is_empty() {
                Ok(0)
            } else {
                text.parse().ok().filter(|n| *n <= MAX_WIDTH_OR_PRECISION).ok_or_else(|| invalid("is too wide"))
            }
        };
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (width, rest) = rest.split_at(digits(rest));
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = rest.split_at(digits(rest));
                (Some(number(precision)?), rest)
            }
            None => (None, rest),
        };
        let kind = rest.bytes().next().filter(|b| b"dieEfFgGs".contains(b)).ok_or_else(|| invalid("is not supported"))?;
        let (after, None) = split_at_single_percent(&rest[1..]) else { return Err(invalid("has several numbers")) };
        Ok(NumberFormat {
            before,
            after,
            left: flags.contains('-'),
            plus: flags.contains('+'),
            space: flags.contains(' '),
            zero: flags.contains('0'),
            alternate: flags.contains('#'),
            width: number(width)?,
            precision,
            kind,
        })
    }

    /// Appends an element.
    fn push_formatted_element(&self, dtype: DType, bytes: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match decode_element(dtype, bytes) {
            ElementValue::Int(v) if self.kind == b's' => {
                let value = if dtype == DType::Bool { Scalar::Bool(v != 0) } else { Scalar::Int(v) };
                self.push_with_surrounding_text(text, |text| self.push_padded_text(&fmt::scalar_text(value, dtype), text))
            }
            ElementValue::Int(v) if self.is_integer_format() => {
                self.push_with_surrounding_text(text, |text| self.push_integer(v < 0, v.unsigned_abs().to_string(), text))
            }
            ElementValue::Int(v) => self.push_real_or_complex_part(v as f64, dtype, text),
            ElementValue::F32(v) => self.push_real_or_complex_part(v.into(), dtype, text),
            ElementValue::F64(v) => self.push_real_or_complex_part(v, dtype, text),
            ElementValue::Complex(v) => {
                text.extend_from_slice(b" (");
                self.push_real_or_complex_part(v.re, dtype.real(), text)?;
                let sign = text.len();
                text.push(b'+');
                self.push_real_or_complex_part(v.im, dtype.real(), text)?;
                // NumPy replaces `+-` by `-`.
                if text.get(sign + 1) == Some(&b'-') {
                    text.remove(sign);
                }
                text.extend_from_slice(b"j)");
                Ok(())
            }
        }
    }

    /// Appends a real element of `dtype` or one part of a complex element, with the text around the number.
    fn push_real_or_complex_part(&self, v: f64, dtype: DType, text: &mut Vec<u8>) -> Result<()> {
        self.push_with_surrounding_text(text, |text| match self.kind {
            b's' => self.push_padded_text(&fmt::scalar_text(Scalar::Float(v), dtype), text),
            _ => self.push_formatted_real(v, text),
        })
    }

    /// Appends the text before the number, the number itself by `push`, and the text after it.
    fn push_with_surrounding_text(&self, text: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        text.extend_from_slice(self.before.as_bytes());
        push(text)?;
        text.extend_from_slice(self.after.as_bytes());
        Ok(())
    }

    /// Appends a text in the format `%s`. As in Python, the precision is its maximum length.
    fn push_padded_text(&self, number: &str, text: &mut Vec<u8>) -> Result<()> {
        let number = &number[..self.precision.map_or(number.len(), |n| n.min(number.len()))];
        let padded = if self.left { format!("{number:<0$}", self.width) } else { format!("{number:>0$}", self.width) };
        text.extend_from_slice(padded.as_bytes());
        Ok(())
    }

    fn is_integer_format(&self) -> bool {
        matches!(self.kind, b'd' | b'i')
    }

    /// Appends an integer. As in Python, the precision is the minimum number of digits.
    fn push_integer(&self, negative: bool, digits: String, text: &mut Vec<u8>) -> Result<()> {
        let precision = self.precision.unwrap_or(0);
        self.push_padded_digits(negative, format!("{digits:0>precision$}"), text);
        Ok(())
    }

    fn push_formatted_real(&self, v: f64, text: &mut Vec<u8>) -> Result<()> {
        if !v.is_finite() {
            let word = if v.is_nan() { "nan" } else { "inf" };
            if self.is_integer_format() {
                return Err(Error::value("savetxt", format!("the format %{} is of integers, the array has {word}", char::from(self.kind))));
            }
            let word = if self.kind.is_ascii_uppercase() { word.to_uppercase() } else { word.to_string() };
            self.push_padded_digits(v == f64::NEG_INFINITY, word, text);
            return Ok(());
        }
        if self.is_integer_format() {
            return self.push_integer(v <= -1.0, format!("{:.0}", v.abs().trunc()), text);
        }
        let (a, precision) = (v.abs(), self.precision.unwrap_or(6));
        let digits = match self.kind.to_ascii_lowercase() {
            b'f' => format!("{a:.precision$}"),
            b'e' => format_exponential(a, precision),
            _ => format_general(a, precision.max(1), self.alternate),
        };
        let digits = if self.alternate { add_decimal_point(digits) } else { digits };
        let digits = if self.kind.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
        self.push_padded_digits(v.is_sign_negative(), digits, text);
        Ok(())
    }

    /// Appends sign and digits, padded to the width. As in Python, zeros also pad NaN and infinities.
    fn push_padded_digits(&self, negative: bool, digits: String, text: &mut Vec<u8>) {
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let padding = self.width.saturating_sub(sign.len() + digits.len());
        let blanks = |n: usize, text: &mut Vec<u8>| text.extend(std::iter::repeat_n(b' ', n));
        let zeros = self.zero && !self.left;
        if !self.left && !zeros {
            blanks(padding, text);
        }
        text.extend_from_slice(sign.as_bytes());
        if zeros {
            text.extend(std::iter::repeat_n(b'0', padding));
        }
        text.extend_from_slice(digits.as_bytes());
        if self.left {
            blanks(padding, text);
        }
    }
}

/// Returns `a` in C's notation `%.{precision}e`. The exponent has a sign and at least two digits.
fn format_exponential(a: f64, precision: usize) -> String {
    let text = format!("{a:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Returns `a` in C's notation `%.{precision}g`. Trailing zeros are kept if `keep_zeros`.
fn format_general(a: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = format_exponential(a, precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let trimmed = |text: &str| {
        let is_trimmed = text.contains('.') && !keep_zeros;
        if is_trimmed { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
    };
    if exponent < -4 || exponent >= precision as i32 {
        format!("{}{}", trimmed(digits), &scientific[digits.len()..])
    } else {
        trimmed(&format!("{a:.*}", (precision as i32 - 1 - exponent).max(0) as usize))
    }
}

/// Returns `digits` with a decimal point after the integer part, if there is none.
fn add_decimal_point(digits: String) -> String {
    match digits.find('e').unwrap_or(digits.len()) {
        _ if digits.contains('.') => digits,
        end => format!("{}.{}", &digits[..end], &digits[end..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_floats_have_their_shortest_digits() {
        let text = |v: f32, dtype: DType| {
            let bytes = if dtype == DType::F16 { f16::from_f32(v).to_ne_bytes() } else { bf16::from_f32(v).to_ne_bytes() };
            let mut text = Vec::new();
            push_shortest_number(dtype, &bytes, &mut ShortestDigitsOfHalfFloats::default(), &mut text);
            String::from_utf8(text).unwrap()
        };
        let values = [0.1, -0.3, 0.0, -0.0, 2048.0, 65504.0, 6e-8, f32::NEG_INFINITY];
        assert_eq!(values.map(|v| text(v, DType::F16)), ["0.1", "-0.3", "0.0", "-0.0", "2048.0", "65500.0", "6e-8", "-inf"]);
        assert_eq!([0.1, 3e38, 9.2e-41].map(|v| text(v, DType::BF16)), ["0.1", "3e+38", "9e-41"]);
    }

    #[test]
    fn formats_match_those_of_python() {
        for (format, value, want) in [
            ("%.18e", 1.5, "1.500000000000000000e+00"),
            ("%10.3f|", -2.0, "    -2.000|"),
            ("%-8.2e|", 12345.0, "1.23e+04|"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%g", 1e6, "1e+06"),
            ("%g", 123456.0, "123456"),
            ("%g", 100000.5, "100000"),
            ("%.3g", 0.0, "0"),
            ("%+d", 7.9, "+7"),
            ("%06.1f", -1.25, "-001.2"),
            ("%%%.1f%%", 12.5, "%12.5%"),
            ("%%a%%%d %%", 7.0, "%a%7 %"),
            ("%s", 1e-5, "1e-05"),
            ("%5s|", 1.5, "  1.5|"),
            ("%-6.3s|", -0.25, "-0.   |"),
            ("%G", 1e-10, "1E-10"),
            ("%f", f64::INFINITY, "inf"),
            ("% .1f", f64::NAN, " nan"),
            ("%08.3f", f64::NAN, "00000nan"),
            ("%+08.3f", f64::INFINITY, "+0000inf"),
            ("%08G", f64::NEG_INFINITY, "-0000INF"),
            ("%-08.3f|", f64::NAN, "nan     |"),
            ("%d", -0.5, "0"),
            ("%d", -1.5, "-1"),
            ("%.3d", 7.0, "007"),
            ("%05.3d", -7.0, "-0007"),
            ("%-6.3i|", 7.0, "007   |"),
            ("%#.3g", 1.0, "1.00"),
            ("%#.3g", 100.0, "100."),
            ("%#.1g", 30.0, "3.e+01"),
            ("%#.3G", 1e10, "1.00E+10"),
            ("%#.0f", 1.0, "1."),
            ("%#.0e", 1.0, "1.e+00"),
            ("%#.2f", f64::INFINITY, "inf"),
            ("%#d", 3.0, "3"),
        ] {
            let mut text = Vec::new();
            NumberFormat::parse_printf_format(format)
                .unwrap()
                .push_formatted_element(DType::F64, &f64::to_ne_bytes(value), &mut text)
                .unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), want, "{format} of {value}");
        }
        for (format, re, im, want) in [
            ("%5.1f", 1.0, 2.0, " (  1.0+  2.0j)"),
            ("%5.1f", -1.0, -2.0, " ( -1.0+ -2.0j)"),
            ("%.1f", -1.0, -2.0, " (-1.0-2.0j)"),
            ("%+.2f", 1.0, 2.0, " (+1.00++2.00j)"),
            ("%-6.1fx", 1.0, -0.0, " (1.0   x-0.0  xj)"),
            ("%d", 1.5, -2.5, " (1-2j)"),
        ] {
            let (mut text, bytes) = (Vec::new(), [re, im].map(f64::to_ne_bytes).concat());
            NumberFormat::parse_printf_format(format).unwrap().push_formatted_element(DType::C128, &bytes, &mut text).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), want, "{format} of {re} and {im}");
        }
        for value in [f64::NAN, f64::INFINITY] {
            let format = NumberFormat::parse_printf_format("%d").unwrap();
            assert!(format.push_formatted_element(DType::F64, &f64::to_ne_bytes(value), &mut Vec::new()).is_err(), "%d of {value}");
        }
        for bad in ["", "%", "%%", "%q", "%d,%d", "%5000f", "5.1f"] {
            assert!(NumberFormat::parse_printf_format(bad).is_err(), "{bad}");
        }
    }
}
