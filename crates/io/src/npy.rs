//! The `.npy` format (`numpy.lib.format`): a header and the elements of one array.

use std::io::{Read, Write};
use std::path::Path;

use cuprum_core::error::shape_text;
use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::layout::checked_size;
use cuprum_core::{DType, Device, Error, NdArray, Result, with_device};

use crate::array_bytes::{array_from_host_buffer, for_each_byte_block, normalize_bools};
use crate::atomic_file;
use crate::errors::{add_path_to_error, file_format_error};
use crate::file_streams::{self, read_fully};
use crate::mapped_file::MappedFile;

const NPY_MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum size of the header of an npy file in bytes, as in `numpy.load`.
const MAX_HEADER_BYTES: usize = 10_000;
/// Alignment of the elements in the file, in bytes.
const DATA_ALIGNMENT: usize = 64;

/// Reads a `.npy` file onto the current device (`numpy.load`): all versions, either byte order, C or Fortran order.
///
/// An array in Fortran order becomes a transposed view, without a second copy of the elements.
///
/// # Errors
/// [`Error::Io`] for a file that is missing, damaged or truncated, or of an unsupported dtype. [`Error::OutOfMemory`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// use cuprum::NdArray;
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.npy", std::process::id()));
/// io::save(&path, &NdArray::from_slice(&[1.0f32, 2.0])?)?;
/// assert_eq!(io::load(&path)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<NdArray> {
    let path = path.as_ref();
    let (mut file, size) = file_streams::open_for_reading(path)?;
    read_array(&mut file, size).map_err(|e| add_path_to_error(path, e))
}

/// Returns the array of a `.npy` file as a view of the memory-mapped file, without reading the elements (`numpy.load` with
/// `mmap_mode="r"`).
///
/// Big-endian, bool and misaligned elements, and pipes, are read into memory instead. If the current device is a GPU, the elements are
/// copied to it. The array is read-only: an assignment to it copies first. The file must not change while the array lives. If the file is
/// truncated, reading a page after its new end terminates the process with SIGBUS.
///
/// # Errors
/// The errors of [`load`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-map-{}.npy", std::process::id()));
/// io::save(&path, &cuprum::arange(0, 1000, 1)?)?;
/// assert_eq!(io::load_mapped(&path)?.sum(())?.item()?, 499_500);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn load_mapped(path: impl AsRef<Path>) -> Result<NdArray> {
    let path = path.as_ref();
    let mapped = match MappedFile::open(path)? {
        Ok(mapping) => try_view_mapped_array(&mapping, 0, mapping.bytes()),
        Err(mut file) => read_array(&mut file, None).map(Some),
    };
    mapped.map_err(|e| add_path_to_error(path, e))?.map_or_else(|| load(path), Ok)
}

/// Reads an array from the bytes of a `.npy` file.
///
/// # Errors
/// The errors of [`load`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let mut bytes = b"\x93NUMPY\x01\x00\x37\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}".to_vec();
/// bytes.extend([7, 8]);
/// assert_eq!(io::load_bytes(&bytes)?.to_vec::<u8>()?, [7, 8]);
/// # Ok(())
/// # }
/// ```
pub fn load_bytes(bytes: &[u8]) -> Result<NdArray> {
    read_array(&mut &*bytes, Some(bytes.len() as u64)).map_err(|e| add_path_to_error(Path::new("npy bytes"), e))
}

/// Writes a `.npy` file (`numpy.save`). Unlike NumPy, it does not add a suffix to the name.
///
/// As in NumPy, arrays in Fortran order are written in Fortran order, and all others in C order. The file appears under its name when it is
/// complete.
///
/// # Errors
/// [`Error::Io`] for a file that cannot be written, and for bfloat16, which the format does not support (convert to float32). Errors of
/// evaluation.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-save-{}.npy", std::process::id()));
/// let table = cuprum::arange(0, 6, 1)?.reshape([2, 3])?;
/// io::save(&path, &table.t()?)?;
/// assert_eq!(io::load(&path)?.shape(), [3, 2]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn save(path: impl AsRef<Path>, array: &NdArray) -> Result<()> {
    let path = path.as_ref();
    let encoded = PreparedNpy::prepare_for_writing(array).map_err(|e| add_path_to_error(path, e))?;
    atomic_file::write_file_atomically(path, |file| encoded.write(file))
}

/// The contents of the header of a `.npy` file.
#[derive(Debug)]
pub(crate) struct NpyHeader {
    pub dtype: DType,
    pub big_endian: bool,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
    /// Size of the header in the file, in bytes.
    pub len: usize,
}

impl NpyHeader {
    /// Returns the size of all elements in bytes.
    ///
    /// # Errors
    /// [`Error::Io`] for a shape with too many axes or elements.
    pub fn nbytes(&self) -> Result<usize> {
        let size = checked_size("load", &self.shape).map_err(file_format_error)?;
        Ok(size.saturating_mul(self.dtype.itemsize()))
    }

    /// Returns the error for a file that has `found` bytes of elements, but needs `want`.
    pub fn truncated_file_error(&self, found: u64, want: usize) -> Error {
        file_format_error(format!("truncated: {found} bytes of data for {} {}, {want} needed", self.dtype, shape_text(&self.shape)))
    }
}

/// Reads the header of a `.npy` file.
pub(crate) fn read_header(source: &mut dyn Read) -> Result<NpyHeader> {
    let (text, len) = read_header_text(source)?;
    Ok(NpyHeader { len, ..parse_header(&text)? })
}

/// Reads the dictionary in the header of a `.npy` file. Returns its text, and the size of the header in bytes.
fn read_header_text(source: &mut dyn Read) -> Result<(Vec<u8>, usize)> {
    let ends_within = || file_format_error("damaged npy header: the file ends within it");
    let mut start = [0; 12];
    let found = read_fully(source, &mut start[..8])?;
    let magic = &start[..found.min(NPY_MAGIC.len())];
    if magic.is_empty() || !NPY_MAGIC.starts_with(magic) {
        return Err(file_format_error("not an npy file (its first bytes are not \\x93NUMPY)"));
    }
    if found < 8 {
        return Err(ends_within());
    }
    let len_bytes = match (start[6], start[7]) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        (major, minor) => {
            return Err(file_format_error(format!("npy format version {major}.{minor} is not supported; 1.0, 2.0 and 3.0 are")));
        }
    };
    if read_fully(source, &mut start[8..8 + len_bytes])? < len_bytes {
        return Err(ends_within());
    }
    let len = start[8..8 + len_bytes].iter().rev().fold(0, |len, &b| len << 8 | b as usize);
    if len > MAX_HEADER_BYTES {
        return Err(file_format_error(format!("damaged npy header: its length is {len} bytes, the maximum is {MAX_HEADER_BYTES}")));
    }
    let mut text = vec![0; len];
    if read_fully(source, &mut text)? < len {
        return Err(ends_within());
    }
    Ok((text, 8 + len_bytes + len))
}

/// Parses the dictionary of the header: a Python literal with the keys `descr`, `fortran_order` and `shape`.
fn parse_header(text: &[u8]) -> Result<NpyHeader> {
    let ((dtype, big_endian), fortran_order, shape) = parse_dictionary(text, NpyHeaderParser::parse_descr)?;
    Ok(NpyHeader { dtype, big_endian, fortran_order, shape, len: 0 })
}

/// Parses the dictionary of the header. `parse_descr` parses the description of the dtype.
fn parse_dictionary<'a, D>(text: &'a [u8], parse_descr: impl Fn(&mut NpyHeaderParser<'a>) -> Result<D>) -> Result<(D, bool, Vec<usize>)> {
    let mut parser = NpyHeaderParser { text, at: 0 };
    let (mut descr, mut order, mut shape) = (None, None, None);
    parser.expect_byte(b'{')?;
    while !parser.eat_byte(b'}') {
        let key = parser.parse_string()?;
        parser.expect_byte(b':')?;
        let repeated = match key {
            "descr" => descr.replace(parse_descr(&mut parser)?).is_some(),
            "fortran_order" => order.replace(parser.parse_boolean()?).is_some(),
            "shape" => shape.replace(parser.parse_shape()?).is_some(),
            other => return Err(damaged_header_error(format!("unknown key {other:?}"))),
        };
        if repeated {
            return Err(damaged_header_error(format!("the key {key:?} occurs twice")));
        }
        if !parser.eat_byte(b',') {
            parser.expect_byte(b'}')?;
            break;
        }
    }
    if parser.peek_nonblank().is_some() {
        return Err(damaged_header_error("text after the closing brace"));
    }
    let (Some(descr), Some(fortran_order), Some(shape)) = (descr, order, shape) else {
        return Err(damaged_header_error("one of the keys 'descr', 'fortran_order' and 'shape' is missing"));
    };
    Ok((descr, fortran_order, shape))
}

/// Maximum length of a text in a `.npy` file, in characters.
const MAX_TEXT_LENGTH: usize = 1 << 16;

/// Reads the `.npy` file in `source`, which holds one byte string (dtype `S`) or text (dtype `U`) without axes.
pub(crate) fn read_text_scalar(source: &mut dyn Read) -> Result<String> {
    let (text, _) = read_header_text(source)?;
    let (descr, _, shape) = parse_dictionary(&text, |parser| parser.parse_string())?;
    let code = descr.trim_start_matches(['|', '<', '>', '=']);
    let (is_wide, length) = match code.as_bytes() {
        [b'S' | b'a', ..] => (false, &code[1..]),
        [b'U', ..] => (true, &code[1..]),
        _ => return Err(file_format_error(format!("dtype {descr:?} is no text"))),
    };
    let length = length.parse::<usize>().ok().filter(|n| *n <= MAX_TEXT_LENGTH);
    let (Some(length), true) = (length, shape.is_empty()) else {
        return Err(file_format_error(format!(
            "one text of at most {MAX_TEXT_LENGTH} characters is expected, not {descr:?} {}",
            shape_text(&shape)
        )));
    };
    let mut bytes = vec![0; if is_wide { 4 * length } else { length }];
    if read_fully(source, &mut bytes)? < bytes.len() {
        return Err(file_format_error("truncated: the file ends within the text"));
    }
    let big_endian = descr.starts_with('>');
    let character = |b: &[u8; 4]| char::from_u32(if big_endian { u32::from_be_bytes(*b) } else { u32::from_le_bytes(*b) });
    let decoded = if is_wide { bytes.as_chunks::<4>().0.iter().map(character).collect() } else { String::from_utf8(bytes).ok() };
    let decoded = decoded.ok_or_else(|| file_format_error("the text is not Unicode"))?;
    // NumPy pads a string with zero bytes, which are not part of the string.
    Ok(decoded.trim_end_matches('\0').to_owned())
}

fn damaged_header_error(message: impl std::fmt::Display) -> Error {
    file_format_error(format!("damaged npy header: {message}"))
}

/// A parser of the Python literal in the header of a `.npy` file. Every method takes time linear in the text it consumes, and none
/// recurses.
struct NpyHeaderParser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> NpyHeaderParser<'a> {
    /// Skips blanks and returns the next byte without consuming it, or `None` at the end.
    fn peek_nonblank(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Consumes `byte` if it is next after blanks. Returns whether it was.
    fn eat_byte(&mut self, byte: u8) -> bool {
        let found = self.peek_nonblank() == Some(byte);
        self.at += found as usize;
        found
    }

    fn expect_byte(&mut self, byte: u8) -> Result<()> {
        if self.eat_byte(byte) { Ok(()) } else { Err(self.unexpected_token_error(&format!("'{}'", byte as char))) }
    }

    fn unexpected_token_error(&mut self, wanted: &str) -> Error {
        let found = match self.peek_nonblank() {
            Some(byte) => format!("'{}' at byte {}", byte.escape_ascii(), self.at),
            None => "the end".to_string(),
        };
        damaged_header_error(format!("{found} where {wanted} belongs"))
    }

    /// Consumes a string in single or double quotes without escapes. Python 2 wrote Unicode strings with the prefix `u`.
    fn parse_string(&mut self) -> Result<&'a str> {
        if self.peek_nonblank() == Some(b'u') && matches!(self.text.get(self.at + 1), Some(b'\'' | b'"')) {
            self.at += 1;
        }
        let Some(quote @ (b'\'' | b'"')) = self.peek_nonblank() else { return Err(self.unexpected_token_error("a string")) };
        let start = self.at + 1;
        let len = self.text[start..].iter().position(|&b| b == quote).ok_or_else(|| damaged_header_error("a string without end"))?;
        self.at = start + len + 1;
        std::str::from_utf8(&self.text[start..start + len]).map_err(|_| damaged_header_error("a string that is not UTF-8"))
    }

    fn parse_boolean(&mut self) -> Result<bool> {
        self.peek_nonblank();
        for (word, value) in [("True", true), ("False", false)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected_token_error("True or False"))
    }

    /// Consumes the dtype's description. Returns the dtype, and whether the elements are big-endian.
    fn parse_descr(&mut self) -> Result<(DType, bool)> {
        if let Some(b'[' | b'(') = self.peek_nonblank() {
            let text = String::from_utf8_lossy(&self.text[self.at..]);
            let end = text.find("'fortran_order'").or(text.find("'shape'")).unwrap_or(text.len());
            let fields: String = text[..end].trim_end_matches([' ', ',', '\n']).chars().take(200).collect();
            return Err(file_format_error(format!("structured dtype {fields} is not supported; save each field as an array of its own")));
        }
        let descr = self.parse_string()?;
        parse_descr(descr)
    }

    /// Consumes a tuple of extents. Python 2 wrote long integers with the suffix `L`.
    fn parse_shape(&mut self) -> Result<Vec<usize>> {
        self.expect_byte(b'(')?;
        let mut shape = Vec::new();
        while !self.eat_byte(b')') {
            if self.eat_byte(b'-') {
                return Err(damaged_header_error("a negative extent"));
            }
            self.peek_nonblank();
            let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let number = std::str::from_utf8(&self.text[self.at..self.at + digits]).unwrap_or_default();
            if digits == 0 {
                return Err(self.unexpected_token_error("an extent"));
            }
            // Python's decimal integers other than 0 have no leading zero.
            if number.starts_with('0') && number.bytes().any(|digit| digit != b'0') {
                return Err(damaged_header_error(format!("the extent {number} begins with a zero")));
            }
            shape.push(number.parse().map_err(|_| damaged_header_error(format!("the extent {number} is too large for this machine")))?);
            self.at += digits;
            if self.text.get(self.at) == Some(&b'L') {
                self.at += 1;
            }
            if !self.eat_byte(b',') {
                if shape.len() == 1 {
                    return Err(self.unexpected_token_error("',' after the only extent"));
                }
                self.expect_byte(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}

/// Returns the dtype that `descr` such as `<f8` names, and whether it is big-endian.
fn parse_descr(descr: &str) -> Result<(DType, bool)> {
    let (big_endian, code) = match descr.as_bytes() {
        [b'>' | b'!', ..] => (true, &descr[1..]),
        [b'<' | b'|', ..] => (false, &descr[1..]),
        [b'=', ..] => (cfg!(target_endian = "big"), &descr[1..]),
        _ => (cfg!(target_endian = "big"), descr),
    };
    let dtype = match code {
        "b1" | "?" => DType::Bool,
        "i1" | "b" => DType::I8,
        "i2" | "h" => DType::I16,
        "i4" | "i" => DType::I32,
        "i8" | "q" => DType::I64,
        "u1" | "B" => DType::U8,
        "u2" | "H" => DType::U16,
        "u4" | "I" => DType::U32,
        "u8" | "Q" => DType::U64,
        // `l` and `L` are C's long: 64 bits in NumPy on Linux and macOS, 32 bits on Windows. This function reads 64 bits everywhere.
        "l" | "p" => DType::I64,
        "L" | "P" => DType::U64,
        "f2" | "e" => DType::F16,
        "f4" | "f" => DType::F32,
        "f8" | "d" => DType::F64,
        "c8" | "F" => DType::C64,
        "c16" | "D" => DType::C128,
        name if DType::ALL.iter().any(|dtype| dtype.name() == name && *dtype != DType::BF16) && name == descr => DType::parse(name)?,
        _ => {
            let kind = match code.as_bytes().first() {
                Some(b'O') => " (Python objects, which NumPy pickles)",
                Some(b'U') => " (text)",
                Some(b'S' | b'a') => " (byte strings)",
                Some(b'M') => " (dates)",
                Some(b'm') => " (time spans)",
                Some(b'V') => " (raw bytes; ml_dtypes stores bfloat16 so)",
                Some(b'f' | b'c') => " (a float of this size)",
                _ => "",
            };
            return Err(file_format_error(format!("dtype {descr:?}{kind} is not supported")));
        }
    };
    Ok((dtype, big_endian))
}

/// Reads the `.npy` file in `source` as a new array on the current device.
///
/// The size of the elements is checked against the limit on host memory. If `size`, the number of bytes in `source`, is known, it is
/// checked too.
pub(crate) fn read_array(source: &mut dyn Read, size: Option<u64>) -> Result<NdArray> {
    let header = read_header(source)?;
    let want = header.nbytes()?;
    if let Some(found) = size.map(|size| size.saturating_sub(header.len as u64)).filter(|&found| found < want as u64) {
        return Err(header.truncated_file_error(found, want));
    }
    let mut host = HostBuffer::uninit(want)?;
    let data = host.as_mut_bytes()?;
    let found = read_fully(source, data)?;
    if found < want {
        return Err(header.truncated_file_error(found as u64, want));
    }
    if header.dtype == DType::Bool {
        normalize_bools(data);
    }
    if header.big_endian {
        swap_byte_order(header.dtype, data);
    }
    if header.fortran_order {
        let reversed: Vec<usize> = header.shape.iter().rev().copied().collect();
        array_from_host_buffer(header.dtype, &reversed, host)?.t()
    } else {
        array_from_host_buffer(header.dtype, &header.shape, host)
    }
}

/// Returns the array of a `.npy` file as a view of `mapping`, without reading the elements. The file begins at byte `start` of `mapping`
/// and consists of the bytes `data`.
///
/// Returns `None` if the elements are misaligned, big-endian or bool.
pub(crate) fn try_view_mapped_array(mapping: &MappedFile, start: usize, mut data: &[u8]) -> Result<Option<NdArray>> {
    let available = data.len() as u64;
    let header = read_header(&mut data)?;
    let want = header.nbytes()?;
    let found = available.saturating_sub(header.len as u64);
    if found < want as u64 {
        return Err(header.truncated_file_error(found, want));
    }
    if header.big_endian {
        return Ok(None);
    }
    let start = start + header.len;
    if header.fortran_order {
        let reversed: Vec<usize> = header.shape.iter().rev().copied().collect();
        mapping.view_as_array(header.dtype, &reversed, start)?.map(|a| a.t()).transpose()
    } else {
        mapping.view_as_array(header.dtype, &header.shape, start)
    }
}

/// Reverses the bytes of every real number, and of each part of a complex number.
fn swap_byte_order(dtype: DType, data: &mut [u8]) {
    match dtype.real().itemsize() {
        2 => data.as_chunks_mut::<2>().0.iter_mut().for_each(|b| b.reverse()),
        4 => data.as_chunks_mut::<4>().0.iter_mut().for_each(|b| b.reverse()),
        8 => data.as_chunks_mut::<8>().0.iter_mut().for_each(|b| b.reverse()),
        _ => {}
    }
}

/// An evaluated array and its `.npy` header, ready to be written.
pub(crate) struct PreparedNpy {
    header: Vec<u8>,
    /// The array whose elements are written in C order: the array itself, or its transpose if the file is in Fortran order.
    elements: NdArray,
}

impl PreparedNpy {
    /// Evaluates `array` and encodes its header.
    ///
    /// # Errors
    /// [`Error::Io`] for bfloat16; errors of evaluation.
    pub fn prepare_for_writing(array: &NdArray) -> Result<PreparedNpy> {
        let descr = npy_descr(array.dtype())?;
        let stored = array.stored()?;
        let fortran_order = stored.layout().is_f_contiguous() && !stored.layout().is_c_contiguous();
        let elements = if fortran_order { array.t()? } else { array.clone() };
        Ok(PreparedNpy { header: encode_header(descr, fortran_order, array.shape()), elements })
    }

    /// Encodes an ASCII text as a byte string without axes. As in NumPy, an empty text is one zero byte.
    pub fn from_ascii_text(text: &str) -> Result<PreparedNpy> {
        let bytes: &[u8] = if text.is_empty() { &[0] } else { text.as_bytes() };
        let elements = with_device(Device::CPU, || NdArray::from_slice(bytes))?;
        Ok(PreparedNpy { header: encode_header(&format!("|S{}", bytes.len()), false, &[]), elements })
    }

    /// Writes the header and the elements.
    pub fn write(&self, file: &mut dyn Write) -> Result<()> {
        file_streams::write_all(file, &self.header)?;
        for_each_byte_block(&self.elements, &mut |block| file_streams::write_all(file, block))
    }
}

/// Returns the description of `dtype` in a `.npy` header.
fn npy_descr(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
        DType::BF16 => return Err(file_format_error("the npy format does not support bfloat16; use astype(float32) or safetensors")),
    })
}

/// Returns a header of version 1.0 with the given dictionary values. The length of the header is a multiple of [`DATA_ALIGNMENT`].
fn encode_header(descr: &str, fortran_order: bool, shape: &[usize]) -> Vec<u8> {
    let order = if fortran_order { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {}, }}", shape_text(shape));
    let padding = (DATA_ALIGNMENT - (10 + text.len() + 1) % DATA_ALIGNMENT) % DATA_ALIGNMENT;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut out = Vec::with_capacity(10 + text.len());
    out.extend_from_slice(NPY_MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<NpyHeader, String> {
        parse_header(text.as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn headers_of_every_spelling_are_parsed() {
        let header = parse("{'descr': '>c16', 'fortran_order': True, 'shape': (3L, 4), }   \n").unwrap();
        assert_eq!((header.dtype, header.big_endian, header.fortran_order), (DType::C128, true, true));
        assert_eq!(header.shape, [3, 4]);
        let header = parse("{\"shape\":(),\"fortran_order\":False,\"descr\":\"|b1\"}").unwrap();
        assert_eq!((header.dtype, header.shape.len()), (DType::Bool, 0));
    }

    #[test]
    fn damaged_headers_are_errors_that_name_the_fault() {
        for (text, fault) in [
            ("", "the end where '{' belongs"),
            ("{'descr': '<f4'}", "missing"),
            ("{'descr': '<f4', 'descr': '<f4'}", "occurs twice"),
            ("{'descr': '<f4', 'other': 1}", "unknown key"),
            ("{'descr': '<f4', 'fortran_order': None, 'shape': (1,)}", "True or False"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (-1,)}", "negative extent"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (3)}", "after the only extent"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999999999999,)}", "too large"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)} x", "after the closing brace"),
            ("{'descr': '<f4", "string without end"),
            (
                "{'descr': [('x', '<f4'), ('y', '<i4')], 'fortran_order': False, 'shape': (2,), }",
                "structured dtype [('x', '<f4'), ('y', '<i4')] is",
            ),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "Python objects"),
            ("{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", "\"<f16\""),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(fault), "{text}: {message}");
        }
    }

    #[test]
    fn nested_brackets_fail_at_once() {
        for (open, count) in [("[", 24), ("{", 18), ("(", 9000), ("[", 9000)] {
            let text = format!("{{'descr': {}", open.repeat(count));
            let start = std::time::Instant::now();
            parse(&text).unwrap_err();
            assert!(start.elapsed().as_millis() < 100, "{open} x {count}");
        }
    }
}
