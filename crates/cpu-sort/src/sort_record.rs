//! Sort records: unsigned integers that hold a key and, if requested, an index.

use bytemuck::{Pod, Zeroable};

use crate::register_sort::RegisterKey;

/// A sort record. Records compare by key, then by index, so that any sort of them is stable.
pub(super) trait SortRecord: Pod + Ord + Default + Send + Sync + RegisterKey {
    /// Number of records per cache line.
    const RECORDS_PER_LINE: usize = 64 / size_of::<Self>();
    /// Maximum row length for which the module `sorting_network` sorts rows of this record type. 0 if it never does.
    const MAX_NETWORK_LEN: usize = 0;
    /// Returns the distance from `base` to this record as integers, shifted right by `shift`. For a [`KeyIndexPair`], this is the distance
    /// of the keys. The key of `base` must not be greater than this record's key.
    fn shifted_distance(self, base: Self, shift: u32) -> usize;
    /// Returns the bit length of the distance from the key of `base` to this record's key. `index_bits` is the number of low bits that hold
    /// the index.
    fn key_distance_bits(self, base: Self, index_bits: u32) -> u32;
    /// Returns the record with its lowest `index_bits` bits, which hold the index, set to 0.
    fn clear_index_bits(self, index_bits: u32) -> Self;
    /// Returns a record with the least key and a record with the greatest key.
    fn min_and_max_record(records: &[Self]) -> (Self, Self);
}

macro_rules! record {
    ($($t:ty, $network:literal;)*) => {$(
        impl SortRecord for $t {
            const MAX_NETWORK_LEN: usize = $network;
            #[inline(always)]
            fn shifted_distance(self, base: $t, shift: u32) -> usize {
                (self.wrapping_sub(base) >> shift) as usize
            }
            fn key_distance_bits(self, base: $t, index_bits: u32) -> u32 {
                <$t>::BITS - (self.wrapping_sub(base) >> index_bits).leading_zeros()
            }
            fn clear_index_bits(self, index_bits: u32) -> $t {
                self >> index_bits << index_bits
            }
            #[inline(always)]
            fn min_and_max_record(records: &[$t]) -> ($t, $t) {
                records.iter().fold((<$t>::MAX, 0), |(least, greatest), &r| (least.min(r), greatest.max(r)))
            }
        }
    )*};
}
record! { u32, 256; u64, 16; }

/// A record with the key and the index in separate integers, for keys and indices that do not fit in 64 bits together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C, align(16))]
pub(super) struct KeyIndexPair {
    /// The sort key.
    pub key: u64,
    /// The index of the element in its row.
    pub index: u64,
}

impl RegisterKey for KeyIndexPair {}

impl SortRecord for KeyIndexPair {
    #[inline(always)]
    fn shifted_distance(self, base: KeyIndexPair, shift: u32) -> usize {
        self.key.shifted_distance(base.key, shift)
    }
    fn key_distance_bits(self, base: KeyIndexPair, _index_bits: u32) -> u32 {
        self.key.key_distance_bits(base.key, 0)
    }
    fn clear_index_bits(self, _index_bits: u32) -> KeyIndexPair {
        KeyIndexPair { key: self.key, index: 0 }
    }
    #[inline(always)]
    fn min_and_max_record(records: &[KeyIndexPair]) -> (KeyIndexPair, KeyIndexPair) {
        let (least, greatest) = records.iter().fold((u64::MAX, 0), |(least, greatest), r| (r.key.min(least), r.key.max(greatest)));
        (KeyIndexPair { key: least, index: 0 }, KeyIndexPair { key: greatest, index: 0 })
    }
}
