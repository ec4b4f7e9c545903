//! Parsing of dtype names.

use std::str::FromStr;

use super::dtype::DType::{self, *};
use super::error::{Error, Result};

impl FromStr for DType {
    type Err = Error;

    /// Parses the name of a dtype, as [`DType::parse`] does.
    fn from_str(text: &str) -> Result<DType> {
        DType::parse(text)
    }
}

impl DType {
    /// Parses `text` as the name of a dtype.
    ///
    /// Accepts NumPy names, Python types (`int`, `float`, `complex`, `bool`), short names with an optional byte-order sign
    /// (`f4`, `i8`, `u1`, `c16`), NumPy's one-letter codes (`d`), and Rust names (`f32`, `c64`). `i8` is the NumPy short name of int64.
    ///
    /// # Errors
    /// [`Error::Value`] for an unknown name.
    pub fn parse(text: &str) -> Result<DType> {
        let t = text.trim();
        if let Some(d) =
            Self::ALL.iter().find(|d| d.name() == t || format!("{d:?}").eq_ignore_ascii_case(t) && !t.starts_with(['c', 'i', 'u']))
        {
            return Ok(*d);
        }
        Ok(match t.trim_start_matches(['<', '=', '|']) {
            "?" | "b1" | "bool_" => Bool,
            "i1" | "b" | "byte" => I8,
            "i2" | "h" | "short" | "i16" => I16,
            "i4" | "i" | "intc" | "i32" => I32,
            "i8" | "l" | "q" | "int" | "int_" | "intp" | "long" | "longlong" | "i64" => I64,
            "u1" | "B" | "ubyte" => U8,
            "u2" | "H" | "ushort" | "u16" => U16,
            "u4" | "I" | "uintc" | "u32" => U32,
            "u8" | "L" | "Q" | "uint" | "uintp" | "ulong" | "ulonglong" | "u64" => U64,
            "f2" | "e" | "half" => F16,
            "f4" | "f" | "single" => F32,
            "f8" | "d" | "float" | "double" => F64,
            "c8" | "F" | "csingle" | "c64" => C64,
            "c16" | "D" | "complex" | "cdouble" | "c128" => C128,
            _ => {
                return Err(Error::value(
                    "DType::parse",
                    format!("unknown dtype '{text}'; known: {}", Self::ALL.map(|d| d.name()).join(", ")),
                ));
            }
        })
    }
}
