//! Decimal digits of floats, as NumPy prints them.

use crate::dtype::DType;
use crate::rounding::round_to_dtype;

/// Returns the fewest mantissa digits of `v` that parse to the same number of `dtype`, and the decimal exponent.
pub fn shortest_digits(v: f64, dtype: DType) -> (String, i32) {
    let text = match dtype {
        DType::F32 => format!("{:e}", v as f32),
        DType::F16 | DType::BF16 => return shortest_16_bit_float_digits(v.abs(), dtype),
        _ => format!("{v:e}"),
    };
    let (digits, e) = split_exponent_notation(&text);
    (round_tie_to_even(v.abs(), dtype, &digits).unwrap_or(digits), e)
}

/// Splits a number in Rust's exponent notation into mantissa digits and exponent.
fn split_exponent_notation(text: &str) -> (String, i32) {
    let (mantissa, e) = text.split_once('e').unwrap_or((text, "0"));
    (mantissa.trim_start_matches('-').replace('.', ""), e.parse().unwrap_or(0))
}

/// Returns the number that `digits` and the exponent `e` denote, rounded to `dtype`.
fn parse_digits(digits: &str, e: i32, dtype: DType) -> f64 {
    let text = format!("{}.{}e{e}", &digits[..1], &digits[1..]);
    match dtype {
        DType::F32 => text.parse::<f32>().map_or(f64::NAN, f64::from),
        _ => round_to_dtype(text.parse().unwrap_or(f64::NAN), dtype),
    }
}

/// Returns the shortest decimal digits that parse to the 16-bit float `v >= 0`, and the decimal exponent. For each number of digits, tries
/// the decimal number nearest to `v`, then the next decimal above.
///
/// The second attempt is needed at powers of two, where the floats below are closer together than those above. There, the nearest decimal
/// number may parse to a neighbour of `v`.
fn shortest_16_bit_float_digits(v: f64, dtype: DType) -> (String, i32) {
    for precision in 0..8 {
        let (digits, e) = exact_digits(v, precision);
        if parse_digits(&digits, e, dtype) == v {
            return (digits, e);
        }
        let above = (digits.parse::<u64>().unwrap_or(0) + 1).to_string();
        if above.len() == digits.len() && parse_digits(&above, e, dtype) == v {
            return (above, e);
        }
    }
    split_exponent_notation(&format!("{v:e}"))
}

/// Returns the digits of the decimal number below `digits` if `v` is exactly halfway between both numbers, the last digit of `digits` is
/// odd, and the number below also stands for `v` in `dtype`. Rust rounds such a tie up, and NumPy to the even digit.
fn round_tie_to_even(v: f64, dtype: DType, digits: &str) -> Option<String> {
    let last = digits.bytes().last()?;
    if digits.len() < 2 || (last - b'0').is_multiple_of(2) {
        return None;
    }
    let below = format!("{}{}", &digits[..digits.len() - 1], char::from(last - 1));
    // 60 further digits decide whether `v` is exactly halfway between two numbers of at most 17 digits: the exact decimal expansion of a
    // number near such a tie has fewer digits.
    let (exact, e) = exact_digits(v, digits.len() + 60);
    let rest = exact.strip_prefix(&below)?.strip_prefix('5')?;
    (rest.bytes().all(|digit| digit == b'0') && parse_digits(&below, e, dtype) == v).then_some(below)
}

/// Returns the decimal digits of `v`, rounded to `precision` digits after the first, and the decimal exponent.
pub fn exact_digits(v: f64, precision: usize) -> (String, i32) {
    let text = format!("{:.*e}", precision, v.abs());
    let (mantissa, e) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), e.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_digits_are_those_of_numpy() {
        let digits = |v, dtype| shortest_digits(v, dtype).0;
        // Ties between two decimal numbers of the same length.
        assert_eq!((digits(27204.8125, DType::F32), digits(740218126208310.2, DType::F64)), ("27204812".into(), "7402181262083102".into()));
        // The shortest decimal number is not always the nearest of its length.
        assert_eq!((digits(0.015625, DType::F16), digits(0.0078125, DType::F16)), ("1563".into(), "7812".into()));
        assert_eq!((digits(65504.0, DType::F16), digits(0.0, DType::F16)), ("655".into(), "0".into()));
    }
}
