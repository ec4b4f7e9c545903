//! Dtypes: sizes, kinds, related dtypes, promotion and sets. These tests need no backend.

mod promotion;

use cuprum_core::DType::{self, *};
use cuprum_core::{DTypeSet, Kind, with_dtype};

/// The properties of every dtype: bytes, name, kind, `real`, `to_inexact`, `sum_dtype`.
const PROPERTIES: [(DType, usize, &str, Kind, DType, DType, DType); 15] = [
    (Bool, 1, "bool", Kind::Bool, Bool, F16, I64),
    (I8, 1, "int8", Kind::Signed, I8, F16, I64),
    (I16, 2, "int16", Kind::Signed, I16, F32, I64),
    (I32, 4, "int32", Kind::Signed, I32, F64, I64),
    (I64, 8, "int64", Kind::Signed, I64, F64, I64),
    (U8, 1, "uint8", Kind::Unsigned, U8, F16, U64),
    (U16, 2, "uint16", Kind::Unsigned, U16, F32, U64),
    (U32, 4, "uint32", Kind::Unsigned, U32, F64, U64),
    (U64, 8, "uint64", Kind::Unsigned, U64, F64, U64),
    (F16, 2, "float16", Kind::Float, F16, F16, F16),
    (BF16, 2, "bfloat16", Kind::Float, BF16, BF16, BF16),
    (F32, 4, "float32", Kind::Float, F32, F32, F32),
    (F64, 8, "float64", Kind::Float, F64, F64, F64),
    (C64, 8, "complex64", Kind::Complex, F32, C64, C64),
    (C128, 16, "complex128", Kind::Complex, F64, C128, C128),
];

#[test]
fn every_dtype_has_its_properties() {
    assert_eq!(PROPERTIES.map(|row| row.0), DType::ALL);
    for (dtype, itemsize, name, kind, real, inexact, sum) in PROPERTIES {
        assert_eq!(dtype.itemsize(), itemsize, "{dtype}");
        assert_eq!(with_dtype!(dtype, T => (size_of::<T>(), align_of::<T>())), (itemsize, dtype.alignment()), "{dtype}");
        assert_eq!((dtype.name(), dtype.to_string().as_str()), (name, name));
        assert_eq!(DType::parse(name).unwrap(), dtype);
        assert_eq!(dtype.kind(), kind, "{dtype}");
        assert_eq!(dtype.is_int(), matches!(kind, Kind::Signed | Kind::Unsigned), "{dtype}");
        assert_eq!(dtype.is_float(), kind == Kind::Float, "{dtype}");
        assert_eq!(dtype.is_complex(), kind == Kind::Complex, "{dtype}");
        assert_eq!(dtype.is_inexact(), matches!(kind, Kind::Float | Kind::Complex), "{dtype}");
        assert_eq!((dtype.real(), dtype.to_inexact(), dtype.sum_dtype()), (real, inexact, sum), "{dtype}");
    }
}

#[test]
fn integers_have_ranges() {
    let ranges = [
        (I8, (-128, 127)),
        (I16, (-32768, 32767)),
        (I32, (-2147483648, 2147483647)),
        (I64, (-9223372036854775808, 9223372036854775807)),
        (U8, (0, 255)),
        (U16, (0, 65535)),
        (U32, (0, 4294967295)),
        (U64, (0, 18446744073709551615)),
    ];
    for (dtype, range) in ranges {
        assert_eq!(dtype.int_range(), Some(range), "{dtype}");
    }
    for dtype in [Bool, F16, BF16, F32, F64, C64, C128] {
        assert_eq!(dtype.int_range(), None, "{dtype}");
    }
}

#[test]
fn sets_contain_their_members() {
    let few = DTypeSet::of(&[C64, Bool, F32]);
    assert_eq!(few.iter().collect::<Vec<_>>(), [Bool, F32, C64]);
    for dtype in DType::ALL {
        assert_eq!(few.contains(dtype), [Bool, F32, C64].contains(&dtype), "{dtype}");
        assert!(DTypeSet::ALL.contains(dtype) && !DTypeSet::NONE.contains(dtype), "{dtype}");
    }
    assert_eq!(DTypeSet::ALL.iter().collect::<Vec<_>>(), DType::ALL);
    assert_eq!(DTypeSet::NONE.iter().count(), 0);
}

/// Expected results are those of `numpy.can_cast(from, to, "safe")` of NumPy 2.4.
#[test]
fn safe_casts_keep_values() {
    for (from, to, safe) in [
        (I16, F32, true),
        (I32, F32, false),
        (I64, F64, true),
        (U8, I16, true),
        (U8, I8, false),
        (F64, C64, false),
        (F32, C64, true),
        (Bool, U8, true),
        (U8, Bool, false),
    ] {
        assert_eq!(from.can_cast_safe(to), safe, "{from} to {to}");
    }
}
