//! Parsing of numbers in text.

use cuprum_core::rounding::{to_bf16, to_f16};
use cuprum_core::{Complex, Element, bf16, f16};

/// An element type that can be read from text.
pub(super) trait ParseNumber: Element {
    /// Returns the number at the start of `text` and its length in bytes. Returns `None` if there is no number, or if it does not fit the
    /// type.
    fn parse_leading_number(text: &[u8]) -> Option<(Self, usize)>;

    /// Parses all of `text` as a number. Returns `None` if other bytes follow the number.
    fn parse_entire(text: &[u8]) -> Option<Self> {
        Self::parse_leading_number(text).filter(|(_, len)| *len == text.len()).map(|(value, _)| value)
    }
}

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl ParseNumber for $t {
            #[inline]
            fn parse_leading_number(text: &[u8]) -> Option<(Self, usize)> {
                fast_float2::parse_partial(text).ok()
            }
        }
    )*};
}
floats!(f32, f64);

macro_rules! small_floats {
    ($($t:ty: $convert:path),*) => {$(
        impl ParseNumber for $t {
            fn parse_leading_number(text: &[u8]) -> Option<(Self, usize)> {
                f64::parse_leading_number(text).map(|(value, len)| ($convert(value), len))
            }
        }
    )*};
}
small_floats!(f16: to_f16, bf16: to_bf16);

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl ParseNumber for $t {
            #[inline]
            fn parse_leading_number(text: &[u8]) -> Option<(Self, usize)> {
                let (negative, sign) = match text.first() {
                    Some(b'-') => (true, 1),
                    Some(b'+') => (false, 1),
                    _ => (false, 0),
                };
                let mut value: i128 = 0;
                let mut small: u64 = 0;
                let digits = text[sign..].iter().take_while(|b| b.is_ascii_digit());
                let mut len = 0;
                for digit in digits {
                    // The first 18 digits fit `u64`, whose arithmetic is faster. Further digits are added in `i128`.
                    if len < 18 {
                        small = small * 10 + u64::from(digit - b'0');
                    } else {
                        if len == 18 {
                            value = i128::from(small);
                        }
                        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
                    }
                    len += 1;
                }
                if len == 0 {
                    return None;
                }
                if len <= 18 {
                    value = i128::from(small);
                }
                let value = if negative { -value } else { value };
                Some((<$t>::try_from(value).ok()?, sign + len))
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64);

impl ParseNumber for bool {
    fn parse_leading_number(text: &[u8]) -> Option<(bool, usize)> {
        for (word, value) in [("true", true), ("false", false)] {
            if text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word.as_bytes())) {
                return Some((value, word.len()));
            }
        }
        i64::parse_leading_number(text).map(|(value, len)| (value != 0, len))
    }
}

macro_rules! complex_numbers {
    ($($t:ty),*) => {$(
        impl ParseNumber for Complex<$t> {
            fn parse_leading_number(text: &[u8]) -> Option<(Self, usize)> {
                if let Some(inner) = text.strip_prefix(b"(") {
                    let (value, len) = Self::parse_leading_number(inner).filter(|_| !inner.starts_with(b"("))?;
                    return (inner.get(len) == Some(&b')')).then_some((value, len + 2));
                }
                let is_unit = |at: usize| matches!(text.get(at), Some(b'j' | b'J'));
                let (re, len) = <$t>::parse_leading_number(text)?;
                if is_unit(len) {
                    return Some((Complex::new(0.0, re), len + 1));
                }
                // As in NumPy, the imaginary part may have another sign after the `+`, as in `1+-2j`.
                let start = if let [b'+', b'+' | b'-', ..] = text[len..] { len + 1 } else { len };
                if let Some(b'+' | b'-') = text.get(start)
                    && let Some((im, more)) = <$t>::parse_leading_number(&text[start..])
                    && is_unit(start + more)
                {
                    return Some((Complex::new(re, im), start + more + 1));
                }
                Some((Complex::new(re, 0.0), len))
            }
        }
    )*};
}
complex_numbers!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_up_to_their_range() {
        assert_eq!(i8::parse_entire(b"-128"), Some(-128));
        assert_eq!(i8::parse_entire(b"128"), None);
        assert_eq!(u64::parse_entire(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(u64::parse_entire(b"18446744073709551616"), None);
        assert_eq!(u8::parse_entire(b"-1"), None);
        assert_eq!(i64::parse_entire(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(i64::parse_entire("9".repeat(60).as_bytes()), None);
        assert_eq!(i64::parse_entire(b"1.0"), None);
        assert_eq!(i64::parse_entire(b"-"), None);
        assert_eq!(f64::parse_entire(b"1e-7"), Some(1e-7));
        assert!(f64::parse_entire(b"NaN").unwrap().is_nan());
        assert_eq!(f32::parse_entire(b"-inf"), Some(f32::NEG_INFINITY));
        assert_eq!(f64::parse_entire(b"1x"), None);
        assert_eq!(bool::parse_entire(b"True"), Some(true));
        assert_eq!(
            [&b"2"[..], b"-1", b"10", b"00", b"1.0", b"yes"].map(bool::parse_entire),
            [Some(true), Some(true), Some(true), Some(false), None, None]
        );
        assert_eq!(Complex::<f64>::parse_entire(b"1-2j"), Some(Complex::new(1.0, -2.0)));
        assert_eq!(Complex::<f64>::parse_entire(b"(1e3+2.5j)"), Some(Complex::new(1e3, 2.5)));
        assert_eq!(Complex::<f64>::parse_entire(b"1+-2j"), Some(Complex::new(1.0, -2.0)));
        assert_eq!(Complex::<f64>::parse_entire(b"(3++4j)"), Some(Complex::new(3.0, 4.0)));
        assert_eq!(Complex::<f64>::parse_entire(b"1-+2j"), None);
        assert_eq!(Complex::<f32>::parse_entire(b"3j"), Some(Complex::new(0.0, 3.0)));
        assert_eq!(Complex::<f32>::parse_entire(b"((1))"), None);
        assert_eq!(f16::parse_entire(b"0.5"), Some(f16::from_f32(0.5)));
    }
}
