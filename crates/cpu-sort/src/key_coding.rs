//! Conversion between elements, sort keys (unsigned integers of the same order) and records (a key, and possibly an index).

use crate::sort_key::{RealElement, UnsignedKey};

/// Mask of the index bits in a 64-bit record, whose other 32 bits are the key.
pub(super) const INDEX_MASK: u64 = u32::MAX as u64;

/// The order of sort keys: whether they are signed, and the requested direction.
#[derive(Clone, Copy)]
pub(super) struct KeyOrder {
    /// The sign bit of signed integers, or 0 for other keys.
    sign: u64,
    /// Whether the greatest element comes first.
    pub descending: bool,
}

impl KeyOrder {
    pub fn new(sign: u64, descending: bool) -> KeyOrder {
        KeyOrder { sign, descending }
    }

    /// Returns `key` with its sign bit inverted if necessary, so that unsigned comparison gives the ascending order.
    #[inline(always)]
    pub fn to_ascending_key<K: UnsignedKey>(self, key: K) -> K {
        K::from_u64(key.to_u64() ^ self.sign)
    }
}

/// Maps keys to their distance from the key that comes first in the requested direction, and back to elements.
#[derive(Clone, Copy)]
pub(super) struct KeyCoder {
    /// Bits of a key to invert, so that unsigned comparison gives the requested order.
    flip: u64,
    /// The key that comes first in the requested order, after inversion of the `flip` bits. Distances are measured from this key.
    least: u64,
}

impl KeyCoder {
    pub fn new(order: KeyOrder, least: u64) -> KeyCoder {
        KeyCoder { flip: order.sign ^ if order.descending { u64::MAX } else { 0 }, least }
    }

    #[inline(always)]
    pub fn encode<K: UnsignedKey>(self, key: K) -> u64 {
        (key.to_u64() ^ (self.flip & K::ALL_ONES.to_u64())).wrapping_sub(self.least)
    }

    #[inline(always)]
    pub fn decode<T: RealElement>(self, key: u64) -> T {
        T::from_sort_key(UnsignedKey::from_u64(key.wrapping_add(self.least) ^ self.flip))
    }
}

/// Returns the element `row[index]`, whose key decodes to `value`. Only zeros and NaN are read from `row`, because their keys do not
/// preserve all bits.
#[inline(always)]
pub(super) fn restore_zero_or_nan_bits<T: RealElement>(value: T, row: &[T], index: u64) -> T {
    #[allow(clippy::eq_op)] // only NaN differs from itself
    if value == T::default() || value != value { row[index as usize] } else { value }
}

/// Decodes a sorted record to an element of its row and to the element's index in the row.
pub(super) trait DecodeRecord<T, R>: Copy + Sync {
    fn decode_element(&self, record: R, row: &[T]) -> T;
    fn decode_index(&self, record: R) -> u64;
}

/// A [`DecodeRecord`] made of two closures.
#[derive(Clone, Copy)]
pub(super) struct ClosureDecoder<V, P> {
    pub value: V,
    pub index: P,
}

impl<T, R, V, P> DecodeRecord<T, R> for ClosureDecoder<V, P>
where
    V: Fn(R, &[T]) -> T + Copy + Sync,
    P: Fn(R) -> u64 + Copy + Sync,
{
    #[inline(always)]
    fn decode_element(&self, record: R, row: &[T]) -> T {
        (self.value)(record, row)
    }
    #[inline(always)]
    fn decode_index(&self, record: R) -> u64 {
        (self.index)(record)
    }
}
