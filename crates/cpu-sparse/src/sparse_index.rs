//! Index types of sparse matrices.

use cuprum_core::Element;
use cuprum_cpu_sort::key_sort::SortKey;

/// A signed integer type of row and column indices.
pub(crate) trait SparseIndex: Element + Ord {
    /// The unsigned type of the same size.
    type Unsigned: SortKey;
    /// Returns the same bits as an unsigned integer.
    fn to_unsigned(self) -> Self::Unsigned;
    /// Returns the same bits as a signed integer.
    fn from_unsigned(bits: Self::Unsigned) -> Self;
    /// Converts to an unsigned integer. A negative index becomes a number that is out of bounds for every array.
    fn to_usize(self) -> usize;
    /// Returns the largest of `indices`, compared as unsigned integers. A negative index is therefore larger than any other index.
    fn largest_index(indices: &[Self]) -> usize;
    /// Converts from an unsigned integer. Returns `None` if the type cannot represent `n`.
    fn from_usize(n: usize) -> Option<Self>;
    /// Converts to `i64`, for error messages.
    fn to_i64(self) -> i64;
}

macro_rules! indices {
    ($($t:ty, $unsigned:ty;)*) => {$(
        impl SparseIndex for $t {
            type Unsigned = $unsigned;
            #[inline(always)]
            fn to_unsigned(self) -> $unsigned {
                self as $unsigned
            }
            #[inline(always)]
            fn from_unsigned(bits: $unsigned) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                self as isize as usize
            }
            #[inline(always)]
            fn largest_index(indices: &[$t]) -> usize {
                indices.iter().fold(0, |largest: $unsigned, &i| largest.max(i as $unsigned)) as usize
            }
            #[inline(always)]
            fn from_usize(n: usize) -> Option<$t> {
                <$t>::try_from(n).ok()
            }
            fn to_i64(self) -> i64 {
                i64::from(self)
            }
        }
    )*};
}
indices! { i32, u32; i64, u64; }
