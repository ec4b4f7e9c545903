//! The `.npy` format (NEP 1, `numpy.lib.format`): one array, a header and its bytes.

use std::io::Cursor;

use npyz::{Endianness, NpyHeader, Order, TypeChar};

use super::bad;
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::checked_size;

/// Reads an array; every length is checked against the bytes that are there.
pub(super) fn decode(bytes: &[u8]) -> Result<NdArray> {
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(bad("not an npy file (its first bytes are not \\x93NUMPY)"));
    }
    let mut cursor = Cursor::new(bytes);
    let header = NpyHeader::from_reader(&mut cursor).map_err(|e| bad(format!("damaged npy header: {e}")))?;
    let npyz::DType::Plain(kind) = header.dtype() else {
        return Err(bad(format!("structured dtype {} is not supported", header.dtype().descr())));
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
        _ => return Err(bad(format!("dtype {} is not supported", header.dtype().descr()))),
    };
    let extents: Option<Vec<usize>> = header.shape().iter().map(|&n| usize::try_from(n).ok()).collect();
    let shape = extents.ok_or_else(|| bad("an extent does not fit this machine"))?;
    let want = checked_size("load", &shape)?.saturating_mul(dtype.itemsize());
    let data = bytes.get(cursor.position() as usize..).unwrap_or_default();
    if data.len() < want {
        return Err(bad(format!(
            "truncated: {} bytes of data for {dtype} {}, {want} needed",
            data.len(),
            crate::error::shape_text(&shape)
        )));
    }
    let data = &data[..want];
    let swapped;
    let data = if kind.endianness() == Endianness::Big {
        let part = if dtype.is_complex() { dtype.itemsize() / 2 } else { dtype.itemsize() };
        swapped = data.chunks_exact(part).flat_map(|c| c.iter().rev().copied()).collect::<Vec<u8>>();
        &swapped
    } else {
        data
    };
    match header.order() {
        Order::C => NdArray::from_bytes(dtype, shape, data),
        Order::Fortran => NdArray::from_bytes(dtype, shape.iter().rev().copied().collect::<Vec<_>>(), data)?.t(),
    }
}

/// Writes an array, version 1.0, C order, little-endian.
pub(super) fn encode(array: &NdArray) -> Result<Vec<u8>> {
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
        DType::BF16 => return Err(bad("the npy format has no bfloat16; use astype(float32)")),
    };
    let shape = crate::error::shape_text(array.shape());
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let data = array.to_bytes()?;
    let mut out = Vec::with_capacity(10 + header.len() + data.len());
    out.extend_from_slice(b"\x93NUMPY\x01\x00");
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(&data);
    Ok(out)
}
