//! What is sorted: unsigned integers made of a key, and of the place in the row where that is asked for.

use bytemuck::{Pod, Zeroable};

use super::vector::Keys;

/// A record. Records compare first by their keys, then by their places, so that a total order is a stable one.
pub(super) trait Record: Pod + Ord + Default + Send + Sync + Keys {
    /// Records of a cache line.
    const LINE: usize = 64 / size_of::<Self>();
    /// Longest row that is sorted side by side with others (`network`).
    const NETWORK: usize = 0;
    /// The key's distance from that of `base`, which is not greater, without its lowest `shift` bits.
    fn digit(self, base: Self, shift: u32) -> usize;
    /// Bits of the key's distance from that of `base`.
    fn bits_from(self, base: Self, low: u32) -> u32;
    /// The record without its place.
    fn at_place_0(self, low: u32) -> Self;
    /// Records with the least and the greatest key.
    fn extremes(records: &[Self]) -> (Self, Self);
}

macro_rules! record {
    ($($t:ty, $network:literal;)*) => {$(
        impl Record for $t {
            const NETWORK: usize = $network;
            #[inline(always)]
            fn digit(self, base: $t, shift: u32) -> usize {
                (self.wrapping_sub(base) >> shift) as usize
            }
            fn bits_from(self, base: $t, low: u32) -> u32 {
                <$t>::BITS - (self.wrapping_sub(base) >> low).leading_zeros()
            }
            fn at_place_0(self, low: u32) -> $t {
                self >> low << low
            }
            #[inline(always)]
            fn extremes(records: &[$t]) -> ($t, $t) {
                records.iter().fold((<$t>::MAX, 0), |(least, greatest), &r| (least.min(r), greatest.max(r)))
            }
        }
    )*};
}
record! { u32, 256; u64, 16; }

/// A key of 64 bits and its place, where they do not fit in one integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C, align(16))]
pub(super) struct Pair {
    /// The key.
    pub key: u64,
    /// Its place in the row.
    pub place: u64,
}

impl Keys for Pair {}

impl Record for Pair {
    #[inline(always)]
    fn digit(self, base: Pair, shift: u32) -> usize {
        self.key.digit(base.key, shift)
    }
    fn bits_from(self, base: Pair, _low: u32) -> u32 {
        self.key.bits_from(base.key, 0)
    }
    fn at_place_0(self, _low: u32) -> Pair {
        Pair { key: self.key, place: 0 }
    }
    #[inline(always)]
    fn extremes(records: &[Pair]) -> (Pair, Pair) {
        let (least, greatest) = records.iter().fold((u64::MAX, 0), |(least, greatest), r| (r.key.min(least), r.key.max(greatest)));
        (Pair { key: least, place: 0 }, Pair { key: greatest, place: 0 })
    }
}
