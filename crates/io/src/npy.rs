//! The `.npy` format (NEP 1, `numpy.lib.format`): one array, a header and its bytes.

use std::io::{Cursor, Read};

use npyz::{Endianness, NpyHeader, Order, TypeChar};

use cuprum_core::buffer::HostBuffer;
use cuprum_core::layout::checked_size;
use cuprum_core::{DType, NdArray, Result};

use super::format_error;
use super::transfer::{new_array, normalize_bools};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum size of the header of an npy file in bytes, as in `numpy.load`.
const MAX_HEADER: usize = 10_000;
/// Maximum nesting of brackets in the header of an npy file. The limit bounds the recursion of the header's parser.
const MAX_NESTING: usize = 32;

/// Reads the header of a `.npy` file. Returns the header and its length in bytes.
fn read_header(source: &mut dyn Read) -> Result<(NpyHeader, usize)> {
    let mut bytes = Vec::new();
    let mut read = |len: usize, bytes: &mut Vec<u8>| {
        let wanted = bytes.len() + len;
        source.take(len as u64).read_to_end(bytes).map_err(format_error)?;
        if bytes.len() < wanted && bytes.starts_with(MAGIC) {
            Err(format_error("damaged npy header: the file ends within it"))
        } else {
            Ok(())
        }
    };
    read(MAGIC.len() + 2, &mut bytes)?;
    if !bytes.starts_with(MAGIC) {
        return Err(format_error("not an npy file (its first bytes are not \\x93NUMPY)"));
    }
    let len_bytes = if bytes[MAGIC.len()] < 2 { 2 } else { 4 };
    read(len_bytes, &mut bytes)?;
    let start = bytes.len();
    let len = bytes[start - len_bytes..].iter().rev().fold(0, |len, &b| len << 8 | b as usize);
    if len > MAX_HEADER {
        return Err(format_error(format!("damaged npy header: its length is {len} bytes, the maximum is {MAX_HEADER}")));
    }
    read(len, &mut bytes)?;
    let mut depth = 0;
    for byte in &bytes[start..] {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth > MAX_NESTING as isize {
            return Err(format_error(format!("damaged npy header: brackets are nested deeper than {MAX_NESTING}")));
        }
    }
    let header = NpyHeader::from_reader(&mut Cursor::new(&bytes)).map_err(|e| format_error(format!("damaged npy header: {e}")))?;
    Ok((header, bytes.len()))
}

/// Reads the `.npy` file in `source` as a new array.
///
/// The length is checked against the limit on host memory, and against `size`, the bytes of `source`, if that is known.
pub(crate) fn read_array(source: &mut dyn Read, size: Option<u64>) -> Result<NdArray> {
    let (header, header_len) = read_header(source)?;
    let npyz::DType::Plain(kind) = header.dtype() else {
        return Err(format_error(format!("structured dtype {} is not supported", header.dtype().descr())));
    };
    let dtype = match (kind.type_char(), kind.size_field()) {
        (TypeChar::Bool, 1) => DType::Bool,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Uint, 2) => DType::U16,
        (TypeChar::Uint, 4) => DType::U32,
        (TypeChar::Uint, 8) => DType::U64,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Complex, 8) => DType::C64,
        (TypeChar::Complex, 16) => DType::C128,
        _ => return Err(format_error(format!("dtype {} is not supported", header.dtype().descr()))),
    };
    let extents: Option<Vec<usize>> = header.shape().iter().map(|&n| usize::try_from(n).ok()).collect();
    let shape = extents.ok_or_else(|| format_error("an extent is too large for this machine"))?;
    let want = checked_size("load", &shape)?.saturating_mul(dtype.itemsize());
    let truncated = |found: u64| {
        format_error(format!("truncated: {found} bytes of data for {dtype} {}, {want} needed", cuprum_core::error::shape_text(&shape)))
    };
    if let Some(found) = size.map(|size| size.saturating_sub(header_len as u64)).filter(|&found| found < want as u64) {
        return Err(truncated(found));
    }
    let mut host = HostBuffer::uninit(want)?;
    let data = host.as_mut_bytes()?;
    let mut filled = 0;
    while filled < want {
        match source.read(&mut data[filled..]) {
            Ok(0) => return Err(truncated(filled as u64)),
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(format_error(e)),
        }
    }
    if dtype == DType::Bool {
        normalize_bools(data);
    }
    if kind.endianness() == Endianness::Big {
        let part = if dtype.is_complex() { dtype.itemsize() / 2 } else { dtype.itemsize() };
        data.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
    match header.order() {
        Order::C => new_array(dtype, &shape, host),
        Order::Fortran => new_array(dtype, &shape.iter().rev().copied().collect::<Vec<_>>(), host)?.t(),
    }
}

/// Returns the `.npy` header for `array`: version 1.0, C order, little-endian.
pub(crate) fn encode_header(array: &NdArray) -> Result<Vec<u8>> {
    let code = match array.dtype() {
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
        DType::BF16 => return Err(format_error("the npy format does not support bfloat16; use astype(float32)")),
    };
    let shape = cuprum_core::error::shape_text(array.shape());
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut out = Vec::with_capacity(10 + header.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    Ok(out)
}
