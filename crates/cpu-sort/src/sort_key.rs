//! Sort keys: unsigned integers in the order that [`cuprum_core::Sort`] defines, for sorts and searches.

use cuprum_core::{Complex, Element, bf16, f16};

/// An unsigned integer type of up to 64 bits.
pub trait UnsignedKey: Copy + Ord + Default + Send + Sync + 'static {
    /// All bits set.
    const ALL_ONES: Self;
    /// Widens to 64 bits.
    fn to_u64(self) -> u64;
    /// Converts from 64 bits, keeping only the lowest bits that the type holds.
    fn from_u64(wide: u64) -> Self;
}
macro_rules! unsigned {
    ($($t:ty)*) => {$(
        impl UnsignedKey for $t {
            const ALL_ONES: $t = <$t>::MAX;
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn from_u64(wide: u64) -> $t { wide as $t }
        }
    )*};
}
unsigned! { u8 u16 u32 u64 }

/// Element types with the order that NumPy sorts by.
pub trait Ordered: Element {
    /// The sort key type: an unsigned integer as wide as the element.
    type Key: Copy + Ord + Default + Send + Sync + 'static;
    /// Returns the sort key. Elements that NumPy treats as equal have equal keys.
    fn sort_key(self) -> Self::Key;
}

/// Real elements, which can be recovered from their keys.
pub trait RealElement: Ordered<Key: UnsignedKey> {
    /// Returns a key that also distinguishes equal elements with different bits, such as 0.0 and -0.0.
    fn bitwise_key(self) -> Self::Key;
    /// Returns the element whose [`RealElement::bitwise_key`] is `key`. For an [`Ordered::sort_key`], returns an element equal to the
    /// original.
    fn from_sort_key(key: Self::Key) -> Self;
}

macro_rules! real {
    ($($t:ty as $key:ty: $v:ident => $in:expr, $out:expr;)*) => {$(
        impl Ordered for $t {
            type Key = $key;
            #[inline(always)]
            fn sort_key(self) -> $key { let $v = self; $in }
        }
        impl RealElement for $t {
            #[inline(always)]
            fn bitwise_key(self) -> $key { self.sort_key() }
            #[inline(always)]
            fn from_sort_key($v: $key) -> $t { $out }
        }
    )*};
    (unsigned $($t:ty)*) => { real! { $($t as $t: v => v, v;)* } };
}
real! { unsigned u8 u16 u32 u64 }
real! { bool as u8: v => v as u8, v != 0; }

// The keys of signed integers have the sign bit inverted, so that their unsigned order is the order of the integers.
macro_rules! signed {
    ($($t:ty as $key:ty),*) => {$(
        impl Ordered for $t {
            type Key = $key;
            #[inline(always)]
            fn sort_key(self) -> $key { self as $key ^ 1 << (<$key>::BITS - 1) }
        }
    )*};
}
signed! { i8 as u8, i16 as u16, i32 as u32, i64 as u64 }

macro_rules! float {
    ($($t:ty as $key:ty: $infinity:literal;)*) => {$(
        impl Ordered for $t {
            type Key = $key;
            #[inline(always)]
            fn sort_key(self) -> $key {
                let zero = if self.to_bits() << 1 == 0 { 0 } else { self.to_bits() };
                if zero << 1 > $infinity << 1 { <$key>::MAX } else { <$t>::from_bits(zero).bitwise_key() }
            }
        }
        impl RealElement for $t {
            // Inverting all bits of negative numbers, and only the sign bit of other numbers, gives unsigned integers in the order of the
            // numbers. The subtraction wraps negative NaNs from the start to the end of that order.
            #[inline(always)]
            fn bitwise_key(self) -> $key {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                let bits = self.to_bits();
                let turned = if bits & SIGN == 0 { bits | SIGN } else { !bits };
                turned.wrapping_sub(SIGN - 1 - $infinity)
            }
            #[inline(always)]
            fn from_sort_key(key: $key) -> $t {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                let turned = key.wrapping_add(SIGN - 1 - $infinity);
                <$t>::from_bits(if turned & SIGN == 0 { !turned } else { turned ^ SIGN })
            }
        }
    )*};
}
float! {
    f16 as u16: 0x7c00;
    bf16 as u16: 0x7f80;
    f32 as u32: 0x7f80_0000;
    f64 as u64: 0x7ff0_0000_0000_0000;
}

impl Ordered for Complex<f32> {
    type Key = u64;
    #[inline(always)]
    fn sort_key(self) -> u64 {
        let [major, minor] = complex_key_halves(self.re.sort_key() as u64, self.im.sort_key() as u64, u32::MAX as u64);
        major << 32 | minor
    }
}
impl Ordered for Complex<f64> {
    type Key = u128;
    #[inline(always)]
    fn sort_key(self) -> u128 {
        let [major, minor] = complex_key_halves(self.re.sort_key(), self.im.sort_key(), u64::MAX);
        (major as u128) << 64 | minor as u128
    }
}

/// Returns the high and low half of a complex number's key, from the keys `re` and `im` of its parts. Numbers with a NaN part follow all
/// numbers without one: first those whose imaginary part is NaN, then those whose real part is NaN, each ordered by the other part, then
/// those with two NaN parts. `nan` is the key of a NaN; no number's key is within 2 of `nan`.
#[inline(always)]
fn complex_key_halves(re: u64, im: u64, nan: u64) -> [u64; 2] {
    match (re == nan, im == nan) {
        (false, false) => [re, im],
        (false, true) => [nan - 2, re],
        (true, false) => [nan - 1, im],
        (true, true) => [nan, 0],
    }
}
