//! The Matrix Market exchange format.
//!
//! Source: Boisvert, Pozo and Remington, "The Matrix Market exchange formats: initial design", NIST Interagency Report 5935, 1996.

use std::io::Write;
use std::path::Path;

use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Complex, DType, Device, Element, Error, NdArray, Result, with_device};

use crate::{CooArray, Sparse};

/// Approximate number of bytes of text per write to the file.
const FLUSH_BYTES: usize = 1 << 16;

/// The type of the values in a Matrix Market file (`field` in its header).
#[derive(Clone, Copy, Debug, PartialEq)]
enum MatrixMarketValueType {
    Real,
    Integer,
    Unsigned,
    Complex,
    Pattern,
}

/// The symmetry of a Matrix Market file. Unless it is `General`, the file lists only the elements of one triangle, which define the others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
    Hermitian,
}

/// Reads a matrix from a Matrix Market file (`scipy.io.mmread`), in COO format on the current device.
///
/// Real and pattern values become float64 (ones for patterns), integers int64, unsigned integers uint64 and complex numbers complex128. If
/// the file is symmetric, the result has the elements of both triangles. An element on the diagonal of a skew-symmetric matrix is an error.
/// Dense matrices (`array` files) are converted to their nonzero elements.
///
/// # Errors
/// [`Error::Io`] for a file that is missing or malformed, with the number of the line. [`Error::OutOfMemory`].
///
/// # Examples
/// See [`write_matrix_market`].
pub fn read_matrix_market(path: impl AsRef<Path>) -> Result<CooArray> {
    let path = path.as_ref();
    let bytes = cuprum_io::read_file(path)?;
    parse_matrix_market(&bytes).map_err(|e| match e {
        Error::Io { message, .. } => Error::io(path, message),
        e => e,
    })
}

/// Reads a matrix from the text of a Matrix Market file. See [`read_matrix_market`].
///
/// # Errors
/// The errors of [`read_matrix_market`].
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{Sparse, parse_matrix_market};
/// let a = parse_matrix_market(b"%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 -1\n")?;
/// assert_eq!(a.to_dense()?, array![[4.0, -1.0], [-1.0, 0.0]]);
/// # Ok::<(), cuprum::Error>(())
/// ```
pub fn parse_matrix_market(text: &[u8]) -> Result<CooArray> {
    let mut lines = LineReader { rest: text, number: 0 };
    let header = lines.next_line().ok_or_else(|| Error::io("", "the file is empty"))?;
    let header = String::from_utf8_lossy(&header[..header.len().min(200)]).to_ascii_lowercase();
    let words: Vec<&str> = header.split_ascii_whitespace().collect();
    let (is_array, field, symmetry) = match words[..] {
        ["%%matrixmarket" | "%matrixmarket", "matrix", format, field, symmetry] => {
            (parse_is_dense_format(format, &lines)?, parse_value_type(field, &lines)?, parse_symmetry(symmetry, &lines)?)
        }
        ["%%matrixmarket" | "%matrixmarket", ..] => {
            return Err(lines.error_at_line("the header names no matrix, or not all of its properties"));
        }
        _ => return Err(lines.error_at_line("not a Matrix Market file: the first line does not begin with %%MatrixMarket")),
    };
    if symmetry == Symmetry::Hermitian
        && !matches!(field, MatrixMarketValueType::Complex | MatrixMarketValueType::Real | MatrixMarketValueType::Integer)
    {
        return Err(lines.error_at_line("a Hermitian matrix has signed values"));
    }
    if is_array && field == MatrixMarketValueType::Pattern
        || symmetry == Symmetry::Skew && matches!(field, MatrixMarketValueType::Pattern | MatrixMarketValueType::Unsigned)
    {
        return Err(lines.error_at_line("these properties exclude each other"));
    }
    let sizes = lines.next_data_line().ok_or_else(|| lines.error_at_line("the line of sizes is missing"))?;
    let mut sizes = WordReader(sizes);
    let mut extent = || sizes.next_word().and_then(parse_unsigned);
    let (Some(rows), Some(columns), count) = (extent(), extent(), extent()) else {
        return Err(lines.error_at_line("the line of sizes must have the numbers of rows and columns"));
    };
    if sizes.next_word().is_some() || count.is_some() == is_array {
        return Err(lines.error_at_line("the line of sizes has a wrong number of items"));
    }
    if [rows, columns].iter().any(|n| i64::try_from(*n).is_err()) {
        return Err(lines.error_at_line("an extent is too large"));
    }
    if symmetry != Symmetry::General && rows != columns {
        return Err(lines.error_at_line("a symmetric matrix is square"));
    }
    let header = MatrixMarketHeader { shape: [rows, columns], field, symmetry, count: count.unwrap_or(0) };
    match field {
        MatrixMarketValueType::Real | MatrixMarketValueType::Pattern => header.read_elements::<f64>(lines, is_array),
        MatrixMarketValueType::Integer => header.read_elements::<i64>(lines, is_array),
        MatrixMarketValueType::Unsigned => header.read_elements::<u64>(lines, is_array),
        MatrixMarketValueType::Complex => header.read_elements::<Complex<f64>>(lines, is_array),
    }
}

fn parse_is_dense_format(name: &str, lines: &LineReader) -> Result<bool> {
    match name {
        "coordinate" => Ok(false),
        "array" => Ok(true),
        _ => Err(lines.error_at_line("the format must be coordinate or array")),
    }
}

fn parse_value_type(name: &str, lines: &LineReader) -> Result<MatrixMarketValueType> {
    match name {
        "real" | "double" => Ok(MatrixMarketValueType::Real),
        "integer" => Ok(MatrixMarketValueType::Integer),
        "unsigned-integer" => Ok(MatrixMarketValueType::Unsigned),
        "complex" => Ok(MatrixMarketValueType::Complex),
        "pattern" => Ok(MatrixMarketValueType::Pattern),
        _ => Err(lines.error_at_line("the values must be real, double, integer, unsigned-integer, complex or pattern")),
    }
}

fn parse_symmetry(name: &str, lines: &LineReader) -> Result<Symmetry> {
    match name {
        "general" => Ok(Symmetry::General),
        "symmetric" => Ok(Symmetry::Symmetric),
        "skew-symmetric" => Ok(Symmetry::Skew),
        "hermitian" => Ok(Symmetry::Hermitian),
        _ => Err(lines.error_at_line("the symmetry must be general, symmetric, skew-symmetric or hermitian")),
    }
}

/// A reader of the lines of a text, with the current line number for error messages.
struct LineReader<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> LineReader<'a> {
    fn next_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self.rest.iter().position(|&b| b == b'\n').unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        Some(line)
    }

    /// Returns the next line that is neither blank nor a comment, or `None` at the end.
    fn next_data_line(&mut self) -> Option<&'a [u8]> {
        loop {
            let line = self.next_line()?.trim_ascii();
            if !line.is_empty() && line[0] != b'%' {
                return Some(line);
            }
        }
    }

    fn error_at_line(&self, message: impl std::fmt::Display) -> Error {
        Error::io("", format!("line {}: {message}", self.number))
    }
}

/// A reader of the words of a line. The slice is the part of the line that has not been read.
struct WordReader<'a>(&'a [u8]);

impl<'a> WordReader<'a> {
    fn next_word(&mut self) -> Option<&'a [u8]> {
        let line = self.0.trim_ascii_start();
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        self.0 = &line[end..];
        (end > 0).then_some(&line[..end])
    }
}

fn parse_unsigned(word: &[u8]) -> Option<usize> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A type of the values in a Matrix Market file.
trait MatrixMarketValue: Element {
    /// Parses the next value of a line. Returns `None` if there is no valid value.
    fn parse_value(words: &mut WordReader) -> Option<Self>;
    /// The value of all elements of a Matrix Market file of type `pattern`, which stores positions only.
    const PATTERN_VALUE: Self;
    /// Returns the value at the transposed position, which follows from the symmetry.
    fn value_at_transpose(self, symmetry: Symmetry) -> Self;
}

macro_rules! real_values {
    ($($t:ty, $one:expr, $parse:expr, $negate:expr;)*) => {$(
        impl MatrixMarketValue for $t {
            const PATTERN_VALUE: $t = $one;
            fn parse_value(words: &mut WordReader) -> Option<$t> {
                $parse(words.next_word()?)
            }
            fn value_at_transpose(self, symmetry: Symmetry) -> $t {
                if symmetry == Symmetry::Skew { $negate(self) } else { self }
            }
        }
    )*};
}
real_values! {
    f64, 1.0, |word| fast_float2::parse(word).ok(), |v: f64| -v;
    i64, 1, |word| std::str::from_utf8(word).ok()?.parse().ok(), i64::wrapping_neg;
    u64, 1, |word| std::str::from_utf8(word).ok()?.parse().ok(), u64::wrapping_neg;
}

impl MatrixMarketValue for Complex<f64> {
    const PATTERN_VALUE: Complex<f64> = Complex::new(1.0, 0.0);
    fn parse_value(words: &mut WordReader) -> Option<Complex<f64>> {
        Some(Complex::new(f64::parse_value(words)?, f64::parse_value(words)?))
    }
    fn value_at_transpose(self, symmetry: Symmetry) -> Complex<f64> {
        match symmetry {
            Symmetry::Skew => -self,
            Symmetry::Hermitian => self.conj(),
            _ => self,
        }
    }
}

/// The header of a Matrix Market file.
struct MatrixMarketHeader {
    shape: [usize; 2],
    field: MatrixMarketValueType,
    symmetry: Symmetry,
    count: usize,
}

/// The elements of a Matrix Market file that have been read so far.
struct ElementList<T> {
    rows: Vec<i64>,
    columns: Vec<i64>,
    values: Vec<T>,
}

impl<T: MatrixMarketValue> ElementList<T> {
    /// Reserves memory for `count` elements.
    fn with_capacity(count: usize) -> Result<ElementList<T>> {
        let mut elements = ElementList { rows: Vec::new(), columns: Vec::new(), values: Vec::new() };
        try_reserve("mmread", &mut elements.rows, count)?;
        try_reserve("mmread", &mut elements.columns, count)?;
        try_reserve("mmread", &mut elements.values, count)?;
        Ok(elements)
    }

    fn push_element(&mut self, row: usize, column: usize, value: T) -> Result<()> {
        try_reserve("mmread", &mut self.rows, 1)?;
        try_reserve("mmread", &mut self.columns, 1)?;
        try_reserve("mmread", &mut self.values, 1)?;
        self.rows.push(row as i64);
        self.columns.push(column as i64);
        self.values.push(value);
        Ok(())
    }

    /// Appends an element and, if the file is symmetric, the element at the transposed position.
    fn push_element_and_mirror(&mut self, row: usize, column: usize, value: T, symmetry: Symmetry) -> Result<()> {
        self.push_element(row, column, value)?;
        if symmetry != Symmetry::General && row != column {
            self.push_element(column, row, value.value_at_transpose(symmetry))?;
        }
        Ok(())
    }
}

impl MatrixMarketHeader {
    fn read_elements<T: MatrixMarketValue>(&self, lines: LineReader, is_array: bool) -> Result<CooArray> {
        let elements = if is_array { self.read_dense_lines::<T>(lines)? } else { self.read_coordinate_lines::<T>(lines)? };
        let index = crate::index_and_value_arrays::index_dtype_for_extents(&self.shape);
        let indices = |numbers: Vec<i64>| NdArray::from_vec(numbers, elements.values.len())?.astype(index);
        let (rows, columns) = (indices(elements.rows)?, indices(elements.columns)?);
        CooArray::from_parts_unchecked(NdArray::from_slice(&elements.values)?, rows, columns, self.shape)
    }

    fn read_coordinate_lines<T: MatrixMarketValue>(&self, mut lines: LineReader) -> Result<ElementList<T>> {
        // A valid line has at least 4 bytes in a pattern file, and 6 bytes in other files, line end included. The last line may lack its
        // end. The size of the file therefore limits its number of elements.
        let shortest = if self.field == MatrixMarketValueType::Pattern { 4 } else { 6 };
        if self.count > (lines.rest.len() + 1) / shortest {
            return Err(lines.error_at_line(format!("{} elements are declared, and the file is too short for them", self.count)));
        }
        let mut elements = ElementList::with_capacity(self.count)?;
        for _ in 0..self.count {
            let line = lines.next_data_line();
            let line = line.ok_or_else(|| lines.error_at_line(format!("the file ends before all {} elements", self.count)))?;
            let mut words = WordReader(line);
            let index = |word: Option<&[u8]>, extent: usize| word.and_then(parse_unsigned).filter(|n| (1..=extent).contains(n));
            let (row, column) = (index(words.next_word(), self.shape[0]), index(words.next_word(), self.shape[1]));
            let (Some(row), Some(column)) = (row, column) else {
                return Err(
                    lines.error_at_line(format!("indices from 1 to {} and from 1 to {} are expected", self.shape[0], self.shape[1]))
                );
            };
            let value = if self.field == MatrixMarketValueType::Pattern { Some(T::PATTERN_VALUE) } else { T::parse_value(&mut words) };
            let Some(value) = value else { return Err(lines.error_at_line("the value is not a number of the declared kind")) };
            if words.next_word().is_some() {
                return Err(lines.error_at_line("the line has more items than expected"));
            }
            if self.symmetry == Symmetry::Skew && row == column {
                return Err(lines.error_at_line("a skew-symmetric matrix has no elements on the diagonal"));
            }
            elements.push_element_and_mirror(row - 1, column - 1, value, self.symmetry)?;
        }
        match lines.next_data_line() {
            Some(_) => Err(lines.error_at_line(format!("the file has more elements than the declared {}", self.count))),
            None => Ok(elements),
        }
    }

    /// Reads a dense matrix, which is stored by columns. Symmetric files store the elements from the diagonal down, skew-symmetric files
    /// only those below the diagonal.
    fn read_dense_lines<T: MatrixMarketValue>(&self, mut lines: LineReader) -> Result<ElementList<T>> {
        let [rows, columns] = self.shape;
        let first_row = |column: usize| match self.symmetry {
            Symmetry::General => 0,
            Symmetry::Skew => column + 1,
            _ => column,
        };
        let size = rows.checked_mul(columns).map(|size| if self.symmetry == Symmetry::General { size } else { size / 2 });
        // A line has at least a digit and a line end. The size of the file therefore limits its number of elements.
        if size.is_none_or(|size| size.saturating_sub(rows) > lines.rest.len().div_ceil(2)) {
            return Err(lines.error_at_line("the file is too short for its declared sizes"));
        }
        let mut elements = ElementList::with_capacity(0)?;
        // A matrix without rows has no lines of elements. The file size then does not limit `columns`, so the loop is skipped.
        for column in 0..if rows == 0 { 0 } else { columns } {
            for row in first_row(column)..rows {
                let line = lines.next_data_line().ok_or_else(|| lines.error_at_line("the file ends before all elements"))?;
                let mut words = WordReader(line);
                let (Some(value), None) = (T::parse_value(&mut words), words.next_word()) else {
                    return Err(lines.error_at_line("the line is not one number of the declared kind"));
                };
                if value != T::default() {
                    elements.push_element_and_mirror(row, column, value, self.symmetry)?;
                }
            }
        }
        match lines.next_data_line() {
            Some(_) => Err(lines.error_at_line("the file has more elements than its sizes allow")),
            None => Ok(elements),
        }
    }
}

/// Writes a sparse array to a Matrix Market file (`scipy.io.mmwrite`), in coordinate format without symmetry.
///
/// Floats are written with the fewest digits from which they can be read back exactly, bools as the integers 0 and 1. The file appears
/// under its name only when it is complete. Each line of `comment` becomes a comment line of the file.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be written, and errors of the device.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, Sparse, read_matrix_market, write_matrix_market};
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.mtx", std::process::id()));
/// let a = CsrArray::from_dense(&array![[0.1, 0.0], [0.0, 1e300]])?;
/// write_matrix_market(&path, &a, "two elements")?;
/// assert_eq!(read_matrix_market(&path)?.to_dense()?, a.to_dense()?);
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), cuprum::Error>(())
/// ```
pub fn write_matrix_market(path: impl AsRef<Path>, a: &impl Sparse, comment: &str) -> Result<()> {
    let a = a.to_coo()?;
    let host = |a: &NdArray| a.to_device(Device::CPU);
    let (rows, columns) = (host(&a.row().astype(DType::I64)?)?.to_vec::<i64>()?, host(&a.column().astype(DType::I64)?)?.to_vec::<i64>()?);
    let data = host(a.data())?;
    let dtype = data.dtype();
    let (field, values) = with_device(Device::CPU, || -> Result<_> {
        Ok(match dtype {
            d if d.is_complex() => ("complex", ValuesToWrite::Complex(data.astype(DType::C128)?.to_vec()?, d == DType::C64)),
            DType::F32 => ("real", ValuesToWrite::Single(data.to_vec()?)),
            DType::F64 => ("real", ValuesToWrite::Double(data.to_vec()?)),
            DType::U64 => ("unsigned-integer", ValuesToWrite::Unsigned(data.to_vec()?)),
            d if d.is_int() || d == DType::Bool => ("integer", ValuesToWrite::Integer(data.astype(DType::I64)?.to_vec()?)),
            d => return Err(Error::dtype("mmwrite", "Matrix Market files have no values of this dtype", &[d])),
        })
    })?;
    let shape = cuprum_core::Array::shape(&a);
    cuprum_io::write_file(path, |file| {
        let mut text = format!("%%MatrixMarket matrix coordinate {field} general\n");
        for line in comment.lines() {
            text.push_str("% ");
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&format!("{} {} {}\n", shape[0], shape[1], rows.len()));
        for (at, (row, column)) in rows.iter().zip(&columns).enumerate() {
            let mut number = itoa::Buffer::new();
            text.push_str(number.format(row + 1));
            text.push(' ');
            text.push_str(number.format(column + 1));
            text.push(' ');
            values.push_value_text(at, &mut text);
            text.push('\n');
            if text.len() >= FLUSH_BYTES {
                write_text(file, &text)?;
                text.clear();
            }
        }
        write_text(file, &text)
    })
}

fn write_text(file: &mut dyn Write, text: &str) -> Result<()> {
    file.write_all(text.as_bytes()).map_err(|e| Error::system("", e))
}

/// The elements to write to a Matrix Market file, in types that have their own text format.
enum ValuesToWrite {
    Single(Vec<f32>),
    Double(Vec<f64>),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
    /// Complex numbers. The flag states whether their parts are float32.
    Complex(Vec<Complex<f64>>, bool),
}

impl ValuesToWrite {
    fn push_value_text(&self, at: usize, text: &mut String) {
        match self {
            ValuesToWrite::Single(values) => text.push_str(zmij::Buffer::new().format(values[at])),
            ValuesToWrite::Double(values) => text.push_str(zmij::Buffer::new().format(values[at])),
            ValuesToWrite::Integer(values) => text.push_str(itoa::Buffer::new().format(values[at])),
            ValuesToWrite::Unsigned(values) => text.push_str(itoa::Buffer::new().format(values[at])),
            ValuesToWrite::Complex(values, is_single) => {
                let value = values[at];
                for (part, separator) in [(value.re, ' '), (value.im, '\0')] {
                    let mut number = zmij::Buffer::new();
                    text.push_str(if *is_single { number.format(part as f32) } else { number.format(part) });
                    if separator != '\0' {
                        text.push(separator);
                    }
                }
            }
        }
    }
}
