//! Unsigned integers in the order that elements sort in.

use cuprum_core::{Complex, Element, bf16, f16};

/// An element with a place in NumPy's order; see [`cuprum_core::Sort`].
pub(crate) trait Ordered: Element {
    /// Unsigned integer as wide as the element.
    type Key: Copy + Ord + Default + Send + Sync + 'static;
    /// Less where the element comes earlier, equal where neither does.
    fn key(self) -> Self::Key;
}

macro_rules! ordered {
    ($($t:ty as $key:ty: $v:ident => $e:expr;)*) => {$(
        impl Ordered for $t {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key { let $v = self; $e }
        }
    )*};
    (unsigned $($t:ty)*) => { ordered! { $($t as $t: v => v;)* } };
    (signed $($t:ty as $key:ty),*) => { ordered! { $($t as $key: v => v as $key ^ (<$key>::MAX / 2 + 1);)* } };
}

/// The place of a float by its bits: negative ones with every bit turned, others behind them, NaN last; -0.0 is 0.0.
macro_rules! float_key {
    ($name:ident, $bits:ty) => {
        #[inline(always)]
        fn $name(bits: $bits, infinity: $bits) -> $bits {
            const SIGN: $bits = <$bits>::MAX / 2 + 1;
            let place = if bits > SIGN { !bits } else { bits | SIGN };
            if bits & !SIGN > infinity { <$bits>::MAX } else { place }
        }
    };
}
float_key!(key16, u16);
float_key!(key32, u32);
float_key!(key64, u64);

/// Most and least significant half of a complex number's key, from the keys of its parts: NaN parts, whose key is `nan`, put it
/// behind all numbers without, by what is left of it. No number's key comes near `nan`.
#[inline(always)]
fn by_parts(re: u64, im: u64, nan: u64) -> [u64; 2] {
    match (re == nan, im == nan) {
        (false, false) => [re, im],
        (false, true) => [nan - 2, re],
        (true, false) => [nan - 1, im],
        (true, true) => [nan, 0],
    }
}

ordered! { unsigned u8 u16 u32 u64 }
ordered! { signed i8 as u8, i16 as u16, i32 as u32, i64 as u64 }
ordered! {
    bool as u8: v => v as u8;
    f16 as u16: v => key16(v.to_bits(), 0x7c00);
    bf16 as u16: v => key16(v.to_bits(), 0x7f80);
    f32 as u32: v => key32(v.to_bits(), 0x7f80_0000);
    f64 as u64: v => key64(v.to_bits(), 0x7ff0_0000_0000_0000);
    Complex<f32> as u64: v => {
        let [major, minor] = by_parts(v.re.key() as u64, v.im.key() as u64, u32::MAX as u64);
        major << 32 | minor
    };
    Complex<f64> as u128: v => {
        let [major, minor] = by_parts(v.re.key(), v.im.key(), u64::MAX);
        (major as u128) << 64 | minor as u128
    };
}
