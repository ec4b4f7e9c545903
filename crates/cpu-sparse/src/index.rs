//! Index types of sparse matrices.

use cuprum_core::Element;

/// A signed integer type of row and column numbers.
pub(crate) trait Index: Element + Ord {
    /// Converts to an unsigned number. Negative numbers become numbers that are out of bounds for every array.
    fn to_usize(self) -> usize;
    /// Returns the largest of `indices` as an unsigned number of the same width, which is larger for negative numbers than for others.
    fn largest(indices: &[Self]) -> usize;
    /// Converts from an unsigned number. Returns `None` if the type cannot hold it.
    fn from_usize(n: usize) -> Option<Self>;
    /// Returns the number for messages.
    fn to_i64(self) -> i64;
}

macro_rules! indices {
    ($($t:ty, $unsigned:ty;)*) => {$(
        impl Index for $t {
            #[inline(always)]
            fn to_usize(self) -> usize {
                self as isize as usize
            }
            #[inline(always)]
            fn largest(indices: &[$t]) -> usize {
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
