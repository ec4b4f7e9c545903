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
    /// (`f4`, `i8`, `u1`, `c16`), and Rust names (`f32`, `c64`). `i8` is the NumPy short name of int64.
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
            "i1" | "byte" => I8,
            "i2" | "short" | "i16" => I16,
            "i4" | "intc" | "i32" => I32,
            "i8" | "int" | "int_" | "intp" | "i64" => I64,
            "u1" | "ubyte" => U8,
            "u2" | "ushort" | "u16" => U16,
            "u4" | "uintc" | "u32" => U32,
            "u8" | "uint" | "uintp" | "u64" => U64,
            "f2" | "half" => F16,
            "f4" | "single" => F32,
            "f8" | "float" | "double" => F64,
            "c8" | "csingle" | "c64" => C64,
            "c16" | "complex" | "cdouble" | "c128" => C128,
            _ => {
                return Err(Error::value(
                    "DType::parse",
                    format!("unknown dtype '{text}'; known: {}", Self::ALL.map(|d| d.name()).join(", ")),
                ));
            }
        })
    }
}
