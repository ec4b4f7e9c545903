//! Element types: cuprum's dtypes and DLPack's type codes.

use cuprum_core::{DType, Error, Result};
use dlpark::ffi::{DLDataType, DLDataTypeCode};

/// Pairs of dtype and DLPack type. DLPack's types are in native byte order, and bool is one byte.
const DLPACK_TYPES: [(DType, DLDataType); 15] = [
    (DType::Bool, DLDataType::BOOL),
    (DType::I8, DLDataType::I8),
    (DType::I16, DLDataType::I16),
    (DType::I32, DLDataType::I32),
    (DType::I64, DLDataType::I64),
    (DType::U8, DLDataType::U8),
    (DType::U16, DLDataType::U16),
    (DType::U32, DLDataType::U32),
    (DType::U64, DLDataType::U64),
    (DType::F16, DLDataType::F16),
    (DType::BF16, DLDataType::BF16),
    (DType::F32, DLDataType::F32),
    (DType::F64, DLDataType::F64),
    (DType::C64, DLDataType::C64),
    (DType::C128, DLDataType::C128),
];

/// DLPack's names of its type codes, indexed by the code.
const TYPE_CODE_NAMES: [&str; 18] = [
    "int",
    "uint",
    "float",
    "opaque handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
];

/// Returns the DLPack type of `dtype`.
pub(crate) fn to_dlpack(op: &'static str, dtype: DType) -> Result<DLDataType> {
    let found = DLPACK_TYPES.iter().find(|(ours, _)| *ours == dtype);
    found.map(|(_, theirs)| *theirs).ok_or_else(|| Error::dtype(op, "DLPack has no such type", &[dtype]))
}

/// Returns the dtype of a DLPack type.
pub(crate) fn from_dlpack(op: &'static str, theirs: DLDataType) -> Result<DType> {
    let found = DLPACK_TYPES.iter().find(|(_, known)| known.matches(theirs));
    found
        .map(|(dtype, _)| *dtype)
        .ok_or_else(|| Error::value(op, format!("the type {} has no dtype; convert the tensor first", dlpack_type_name(theirs))))
}

fn dlpack_type_name(DLDataType { code: DLDataTypeCode(code), bits, lanes }: DLDataType) -> String {
    match TYPE_CODE_NAMES.get(code as usize) {
        Some(name) => format!("{name} of {bits} bits and {lanes} lane(s)"),
        None => format!("with the unknown code {code}, {bits} bits and {lanes} lane(s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_type_of_its_size() {
        for dtype in DType::ALL {
            let theirs = to_dlpack("test", dtype).unwrap();
            assert_eq!((theirs.bits as usize, theirs.lanes), (dtype.itemsize() * 8, 1), "{dtype}");
            assert_eq!(from_dlpack("test", theirs).unwrap(), dtype);
        }
    }

    #[test]
    fn other_types_are_refused_by_name() {
        let message = |code, bits, lanes| from_dlpack("test", DLDataType::new(DLDataTypeCode(code), bits, lanes)).unwrap_err().to_string();
        assert_eq!(message(2, 32, 4), "[test] the type float of 32 bits and 4 lane(s) has no dtype; convert the tensor first");
        assert!(message(10, 8, 1).contains("float8_e4m3fn of 8 bits"));
        assert!(message(6, 1, 1).contains("bool of 1 bits"));
        assert!(message(2, 80, 1).contains("float of 80 bits"));
        assert!(message(0, 32, 0).contains("0 lane(s)"));
        assert!(message(200, 8, 1).contains("the unknown code 200"));
    }
}
