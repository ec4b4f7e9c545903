//! The 15 element types, NumPy 2 promotion, and the macro [`with_dtype!`](crate::with_dtype) that maps a dtype to its Rust type.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

/// Element type of an array. Names and promotion follow NumPy 2, `bfloat16` follows `ml_dtypes`.
///
/// ```
/// use cuprum_core::DType;
/// assert_eq!(DType::F32.name(), "float32");
/// assert_eq!(DType::parse("complex128").unwrap(), DType::C128);
/// assert_eq!(DType::I64.promote(DType::F32), DType::F64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

/// The kind of a [`DType`], in promotion order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Bool,
    Unsigned,
    Signed,
    Float,
    Complex,
}

use DType::*;

impl DType {
    /// All dtypes, in declaration order; `ALL[d as usize] == d`.
    pub const ALL: [DType; 15] = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128];

    /// Returns the size of one element in bytes.
    pub const fn itemsize(self) -> usize {
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 | BF16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// Returns the alignment of one element in bytes.
    pub const fn alignment(self) -> usize {
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 | BF16 => align_of::<u16>(),
            I32 | U32 | F32 | C64 => align_of::<u32>(),
            I64 | U64 | F64 | C128 => align_of::<u64>(),
        }
    }

    /// Returns the NumPy name (`"float32"`, `"bool"`).
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I8 => "int8",
            I16 => "int16",
            I32 => "int32",
            I64 => "int64",
            U8 => "uint8",
            U16 => "uint16",
            U32 => "uint32",
            U64 => "uint64",
            F16 => "float16",
            BF16 => "bfloat16",
            F32 => "float32",
            F64 => "float64",
            C64 => "complex64",
            C128 => "complex128",
        }
    }

    /// Returns the kind: boolean, unsigned, signed, float or complex.
    pub const fn kind(self) -> Kind {
        match self {
            Bool => Kind::Bool,
            U8 | U16 | U32 | U64 => Kind::Unsigned,
            I8 | I16 | I32 | I64 => Kind::Signed,
            F16 | BF16 | F32 | F64 => Kind::Float,
            C64 | C128 => Kind::Complex,
        }
    }

    /// Returns whether the dtype is a signed or unsigned integer; false for bool.
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Returns whether the dtype is a real floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Returns whether the dtype is complex.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Returns whether the dtype is a real or complex floating-point type.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Returns the dtype of the real part (`complex64 -> float32`). A real dtype returns itself.
    pub const fn real(self) -> DType {
        match self {
            C64 => F32,
            C128 => F64,
            d => d,
        }
    }

    /// Returns the floating-point dtype of NumPy's unary float functions: `int8 -> float16`, `int16 -> float32`, `int32 -> float64`.
    ///
    /// Floating-point and complex dtypes return themselves.
    pub const fn to_inexact(self) -> DType {
        match self {
            Bool | I8 | U8 => F16,
            I16 | U16 => F32,
            I32 | U32 | I64 | U64 => F64,
            d => d,
        }
    }

    /// Returns the default result dtype of sums and products (`int32 -> int64`, `bool -> int64`).
    pub const fn sum_dtype(self) -> DType {
        match self.kind() {
            Kind::Bool | Kind::Signed => I64,
            Kind::Unsigned => U64,
            _ => self,
        }
    }

    /// Returns the common dtype of two dtypes (`numpy.promote_types`).
    pub const fn promote(self, other: DType) -> DType {
        PROMOTION_TABLE[self as usize][other as usize]
    }

    /// Returns the common dtype of several dtypes (`numpy.result_type`), or `None` without dtypes.
    ///
    /// If there are floating-point dtypes, each integer dtype promotes separately with the common floating-point dtype. Repeated
    /// [`DType::promote`] can differ, because it is not associative: int16 with uint16 gives int32, which does not fit float32.
    ///
    /// ```
    /// use cuprum_core::DType;
    /// assert_eq!(DType::promote_all([DType::I16, DType::U16, DType::F32]), Some(DType::F32));
    /// ```
    pub fn promote_all<I: IntoIterator<Item = DType, IntoIter: Clone>>(dtypes: I) -> Option<DType> {
        let dtypes = dtypes.into_iter();
        match dtypes.clone().filter(|d| d.is_inexact()).reduce(DType::promote) {
            Some(inexact) => Some(dtypes.filter(|d| !d.is_inexact()).fold(inexact, DType::promote)),
            None => dtypes.reduce(DType::promote),
        }
    }

    /// Returns whether a cast of `self` to `to` keeps the kind or goes to a higher kind (`numpy.can_cast` with `casting="same_kind"`).
    pub fn can_cast_same_kind(self, to: DType) -> bool {
        let rank = |d: DType| match d.kind() {
            Kind::Bool => 0,
            Kind::Unsigned => 1,
            Kind::Signed => 2,
            Kind::Float => 3,
            Kind::Complex => 4,
        };
        rank(self) <= rank(to)
    }

    /// Returns whether NumPy's casting rule `rule` allows a cast of `self` to `to`.
    ///
    /// # Errors
    /// [`Error::Value`](crate::error::Error::Value) for an unknown rule.
    pub(crate) fn can_cast_by_rule(self, to: DType, op: &'static str, rule: &str) -> crate::error::Result<bool> {
        match rule {
            "no" | "equiv" => Ok(self == to),
            "safe" => Ok(self.can_cast_safe(to)),
            "same_kind" => Ok(self.can_cast_same_kind(to)),
            "unsafe" => Ok(true),
            _ => Err(crate::error::Error::value(op, "casting must be one of 'no', 'equiv', 'safe', 'same_kind', or 'unsafe'")),
        }
    }

    /// Returns whether a cast of `self` to `to` keeps all values (`numpy.can_cast` with `casting="safe"`). As in NumPy, casts of int64 and
    /// uint64 to float64 and complex128 count as safe, although they round large values.
    ///
    /// ```
    /// use cuprum_core::DType;
    /// assert!(DType::I16.can_cast_safe(DType::F32) && !DType::I32.can_cast_safe(DType::F32));
    /// ```
    pub const fn can_cast_safe(self, to: DType) -> bool {
        self.promote(to) as u8 == to as u8
    }

    /// Returns the range of an integer dtype as `(min, max)`, or `None` for other dtypes (`numpy.iinfo`).
    pub const fn int_range(self) -> Option<(i128, i128)> {
        Some(match self {
            I8 => (i8::MIN as i128, i8::MAX as i128),
            I16 => (i16::MIN as i128, i16::MAX as i128),
            I32 => (i32::MIN as i128, i32::MAX as i128),
            I64 => (i64::MIN as i128, i64::MAX as i128),
            U8 => (0, u8::MAX as i128),
            U16 => (0, u16::MAX as i128),
            U32 => (0, u32::MAX as i128),
            U64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bool => "Bool",
            I8 => "I8",
            I16 => "I16",
            I32 => "I32",
            I64 => "I64",
            U8 => "U8",
            U16 => "U16",
            U32 => "U32",
            U64 => "U64",
            F16 => "F16",
            BF16 => "BF16",
            F32 => "F32",
            F64 => "F64",
            C64 => "C64",
            C128 => "C128",
        })
    }
}

/// The promoted dtype of every pair of dtypes, computed at compile time. A test compares this table with NumPy's.
static PROMOTION_TABLE: [[DType; 15]; 15] = {
    let mut table = [[Bool; 15]; 15];
    let mut i = 0;
    while i < 15 {
        let mut j = 0;
        while j < 15 {
            table[i][j] = compute_promotion(DType::ALL[i], DType::ALL[j]);
            j += 1;
        }
        i += 1;
    }
    table
};

/// Returns the signed integer dtype of `bytes` bytes, at least 2.
const fn signed_int_of_size(bytes: usize) -> DType {
    match bytes {
        2 => I16,
        4 => I32,
        _ => I64,
    }
}

const fn compute_promotion(a: DType, b: DType) -> DType {
    // Orders the two dtypes, so that the kind of `a` is not higher than that of `b` and, within a kind, `a` has the lower discriminant.
    let (a, b) = if a.kind() as u8 > b.kind() as u8 || (a.kind() as u8 == b.kind() as u8 && a as u8 > b as u8) { (b, a) } else { (a, b) };
    match (a.kind(), b.kind()) {
        (Kind::Unsigned, Kind::Signed) => {
            if a.itemsize() < b.itemsize() {
                b
            } else if a.itemsize() < 8 {
                signed_int_of_size(a.itemsize() * 2)
            } else {
                F64
            }
        }
        (Kind::Unsigned | Kind::Signed, Kind::Float) => promote_int_with_float(a, b),
        (Kind::Unsigned | Kind::Signed, Kind::Complex) => complex_with_parts(promote_int_with_float(a, b.real())),
        (Kind::Float, Kind::Float) => promote_floats(a, b),
        (Kind::Float, Kind::Complex) => complex_with_parts(promote_floats(a, b.real())),
        // Here `a` is bool, or both dtypes have the same kind and `b` is at least as large. Promotion thus gives `b`.
        _ => b,
    }
}

const fn promote_floats(a: DType, b: DType) -> DType {
    match (a, b) {
        (F16, F16) => F16,
        (BF16, BF16) => BF16,
        (F64, _) | (_, F64) => F64,
        _ => F32,
    }
}

const fn promote_int_with_float(int: DType, float: DType) -> DType {
    match (int.itemsize(), float) {
        (1, f) => f,
        (2, F16 | BF16) => F32,
        (2, f) => f,
        _ => F64,
    }
}

const fn complex_with_parts(float: DType) -> DType {
    match float {
        F64 => C128,
        _ => C64,
    }
}

/// A set of dtypes, such as the input dtypes that a kernel declares to accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeSet(u32);

impl DTypeSet {
    /// Every dtype.
    pub const ALL: DTypeSet = DTypeSet((1 << 15) - 1);
    /// No dtype.
    pub const NONE: DTypeSet = DTypeSet(0);

    /// Returns the set of `dtypes`.
    pub const fn of(dtypes: &[DType]) -> DTypeSet {
        let mut bits = 0;
        let mut i = 0;
        while i < dtypes.len() {
            bits |= 1 << dtypes[i] as u32;
            i += 1;
        }
        DTypeSet(bits)
    }

    /// Returns whether the set contains `dtype`.
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype as u32) != 0
    }

    /// Iterates over the dtypes of the set in declaration order.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |d| self.contains(*d))
    }
}

/// A Rust type of array elements. Sealed: the 15 dtypes are the complete list.
pub trait Element: Copy + Default + PartialEq + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
    /// The dtype of this type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty => $d:ident),* $(,)?) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t { const DTYPE: DType = DType::$d; }
    )*};
}
elements! {
    bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, Complex<f32> => C64, Complex<f64> => C128,
}

/// Evaluates `body` with `T` as the Rust type of `dtype`.
///
/// ```
/// use cuprum_core::{DType, with_dtype};
/// let bytes = with_dtype!(DType::C64, T => std::mem::size_of::<T>());
/// assert_eq!(bytes, 8);
/// ```
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::DType as __D;
        match $dtype {
            __D::Bool => $crate::with_dtype!(@ bool, $T => $body),
            __D::I8 => $crate::with_dtype!(@ i8, $T => $body),
            __D::I16 => $crate::with_dtype!(@ i16, $T => $body),
            __D::I32 => $crate::with_dtype!(@ i32, $T => $body),
            __D::I64 => $crate::with_dtype!(@ i64, $T => $body),
            __D::U8 => $crate::with_dtype!(@ u8, $T => $body),
            __D::U16 => $crate::with_dtype!(@ u16, $T => $body),
            __D::U32 => $crate::with_dtype!(@ u32, $T => $body),
            __D::U64 => $crate::with_dtype!(@ u64, $T => $body),
            __D::F16 => $crate::with_dtype!(@ $crate::f16, $T => $body),
            __D::BF16 => $crate::with_dtype!(@ $crate::bf16, $T => $body),
            __D::F32 => $crate::with_dtype!(@ f32, $T => $body),
            __D::F64 => $crate::with_dtype!(@ f64, $T => $body),
            __D::C64 => $crate::with_dtype!(@ $crate::Complex<f32>, $T => $body),
            __D::C128 => $crate::with_dtype!(@ $crate::Complex<f64>, $T => $body),
        }
    }};
    (@ $t:ty, $T:ident => $body:expr) => {{
        type $T = $t;
        $body
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_every_name() {
        for d in DType::ALL {
            assert_eq!(DType::parse(d.name()).unwrap(), d);
            assert_eq!(DType::ALL[d as usize], d);
        }
        assert_eq!(DType::parse("c64").unwrap(), C64);
        assert_eq!(DType::parse("<f4").unwrap(), F32);
        assert_eq!(DType::parse("i8").unwrap(), I64);
        assert!(DType::parse("float8").is_err());
    }

    /// Expected results are those of `numpy.can_cast` of NumPy 2.4.
    #[test]
    fn rules_of_casts() {
        let rules = ["no", "equiv", "safe", "same_kind", "unsafe"];
        let rows = [
            (F32, F32, [true, true, true, true, true]),
            (F32, F64, [false, false, true, true, true]),
            (F64, F32, [false, false, false, true, true]),
            (I8, U8, [false, false, false, false, true]),
            (U8, I8, [false, false, false, true, true]),
            (F64, I64, [false, false, false, false, true]),
        ];
        for (from, to, allowed) in rows {
            let found = rules.map(|rule| from.can_cast_by_rule(to, "astype", rule).unwrap());
            assert_eq!(found, allowed, "{from} to {to}");
        }
        assert!(F32.can_cast_by_rule(F32, "astype", "sure").is_err());
    }

    #[test]
    fn promotion_is_symmetric_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
            }
        }
        assert_eq!(I64.promote(U64), F64);
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(I32.promote(C64), C128);
    }
}
