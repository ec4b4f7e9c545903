//! Arithmetic on Python's numbers. An operator between two numbers has Python's result, not NumPy's: integers are exact, `/` gives a
//! float, and dividing by zero is an error.

use std::cmp::Ordering;

use cuprum_core::{Complex, Scalar};

use crate::operators::{BinaryOp, CompareOp, UnaryOp};
use crate::unlocated_error::{Unlocated, UnlocatedError};

/// Returns the name of Python's type of the number `s`.
pub(crate) fn python_type_name(s: Scalar) -> &'static str {
    match s {
        Scalar::Bool(_) => "bool",
        Scalar::Int(_) => "int",
        Scalar::Float(_) => "float",
        Scalar::Complex(_) => "complex",
    }
}

/// Two numbers promoted to their common type. Bools become ints.
enum PromotedPair {
    Ints(i128, i128),
    Floats(f64, f64),
    Complexes(Complex<f64>, Complex<f64>),
}

fn promote_to_common_type(a: Scalar, b: Scalar) -> PromotedPair {
    match (a, b) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => PromotedPair::Complexes(a.as_complex(), b.as_complex()),
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => PromotedPair::Floats(a.as_f64(), b.as_f64()),
        _ => PromotedPair::Ints(a.as_int().unwrap_or(0), b.as_int().unwrap_or(0)),
    }
}

/// Computes `a op b` for two numbers.
pub(crate) fn apply_binary_scalar_operator(op: BinaryOp, a: Scalar, b: Scalar) -> Unlocated<Scalar> {
    let unsupported = || {
        let error = UnlocatedError::type_error(format!(
            "unsupported operand types for {}: '{}' and '{}'",
            op.symbol(),
            python_type_name(a),
            python_type_name(b)
        ));
        Err(if op == BinaryOp::MatMul { error.with_help("`@` is the matrix product of arrays; numbers multiply with `*`") } else { error })
    };
    match promote_to_common_type(a, b) {
        PromotedPair::Ints(x, y) => match (op, a, b) {
            (BinaryOp::BitAnd, Scalar::Bool(x), Scalar::Bool(y)) => Ok(Scalar::Bool(x & y)),
            (BinaryOp::BitOr, Scalar::Bool(x), Scalar::Bool(y)) => Ok(Scalar::Bool(x | y)),
            (BinaryOp::BitXor, Scalar::Bool(x), Scalar::Bool(y)) => Ok(Scalar::Bool(x ^ y)),
            (BinaryOp::MatMul, ..) => unsupported(),
            _ => apply_int_operator(op, x, y),
        },
        PromotedPair::Floats(x, y) => match try_apply_float_operator(op, x, y) {
            Some(result) => result,
            None => unsupported(),
        },
        PromotedPair::Complexes(x, y) => match op {
            BinaryOp::Add => Ok(Scalar::Complex(x + y)),
            BinaryOp::Sub => Ok(Scalar::Complex(x - y)),
            BinaryOp::Mul => Ok(Scalar::Complex(x * y)),
            BinaryOp::Div if y == Complex::ZERO => Err(division_by_zero_error()),
            BinaryOp::Div => Ok(Scalar::Complex(divide_complex(x, y))),
            BinaryOp::Pow => complex_power(x, b),
            _ => unsupported(),
        },
    }
}

fn division_by_zero_error() -> UnlocatedError {
    UnlocatedError::value_error("division by zero")
}

/// Returns `x / y` rounded once, to the nearest float, as in Python. `y` is not zero.
fn divide_ints_to_float(x: i128, y: i128) -> f64 {
    let is_exact = |v: i128| v.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
    if is_exact(x) && is_exact(y) {
        return x as f64 / y as f64;
    }
    let (dividend, divisor) = (x.unsigned_abs(), y.unsigned_abs());
    let (mut quotient, mut rest, mut exponent) = (dividend / divisor, dividend % divisor, 0);
    // `rest < divisor <= 2^127`, so `rest * 2` does not overflow.
    while rest != 0 && quotient < 1 << 64 {
        rest *= 2;
        quotient = quotient * 2 + u128::from(rest >= divisor);
        rest %= divisor;
        exponent -= 1;
    }
    // The quotient has more bits than a float. Its last bit is set if the rest is not zero (a sticky bit), so that the conversion to a
    // float rounds correctly.
    let quotient = quotient | u128::from(rest != 0);
    let magnitude = quotient as f64 * 2f64.powi(exponent);
    if (x < 0) == (y < 0) { magnitude } else { -magnitude }
}

fn apply_int_operator(op: BinaryOp, x: i128, y: i128) -> Unlocated<Scalar> {
    let exact = |v: Option<i128>| {
        v.map(Scalar::Int).ok_or_else(|| {
            UnlocatedError::value_error(format!("the result of {} is too large", op.symbol()))
                .with_help("integers go up to 2**127 - 1; make one side a float, such as `2.0`")
        })
    };
    match op {
        BinaryOp::Add => exact(x.checked_add(y)),
        BinaryOp::Sub => exact(x.checked_sub(y)),
        BinaryOp::Mul => exact(x.checked_mul(y)),
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem if y == 0 => Err(division_by_zero_error()),
        BinaryOp::Div => Ok(Scalar::Float(divide_ints_to_float(x, y))),
        BinaryOp::FloorDiv => exact(x.checked_div(y).map(|q| q - i128::from(x % y != 0 && (x < 0) != (y < 0)))),
        // The remainder has the sign of the divisor. A divisor of -1 is handled first because `i128::MIN % -1` overflows.
        BinaryOp::Rem if y == -1 => Ok(Scalar::Int(0)),
        BinaryOp::Rem => {
            let r = x % y;
            Ok(Scalar::Int(if r != 0 && (r < 0) != (y < 0) { r + y } else { r }))
        }
        BinaryOp::Pow if y < 0 && x == 0 => Err(UnlocatedError::value_error("0 cannot be raised to a negative power")),
        BinaryOp::Pow if y < 0 => Ok(Scalar::Float((x as f64).powf(y as f64))),
        BinaryOp::Pow => exact(match x {
            0 | 1 if y > 0 => Some(x),
            -1 => Some(if y % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
        }),
        BinaryOp::BitAnd => Ok(Scalar::Int(x & y)),
        BinaryOp::BitOr => Ok(Scalar::Int(x | y)),
        BinaryOp::BitXor => Ok(Scalar::Int(x ^ y)),
        BinaryOp::Shl | BinaryOp::Shr if y < 0 => Err(UnlocatedError::value_error("negative shift count")),
        BinaryOp::Shl => exact(match u32::try_from(y) {
            _ if x == 0 => Some(0),
            Ok(n @ 0..=126) => x.checked_mul(1 << n),
            Ok(127) if x == -1 => Some(i128::MIN),
            _ => None,
        }),
        BinaryOp::Shr => Ok(Scalar::Int(x >> y.min(127))),
        BinaryOp::MatMul => Err(UnlocatedError::type_error("unsupported operand types for @: 'int' and 'int'")),
    }
}

/// Computes `x op y` for floats. Returns `None` if the operator is not defined for floats.
fn try_apply_float_operator(op: BinaryOp, x: f64, y: f64) -> Option<Unlocated<Scalar>> {
    let float = |v: f64| Some(Ok(Scalar::Float(v)));
    match op {
        BinaryOp::Add => float(x + y),
        BinaryOp::Sub => float(x - y),
        BinaryOp::Mul => float(x * y),
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem if y == 0.0 => Some(Err(division_by_zero_error())),
        BinaryOp::Div => float(x / y),
        BinaryOp::FloorDiv => float(floor_divmod(x, y).0),
        BinaryOp::Rem => float(floor_divmod(x, y).1),
        BinaryOp::Pow if x == 0.0 && y < 0.0 => Some(Err(UnlocatedError::value_error("0.0 cannot be raised to a negative power"))),
        BinaryOp::Pow if x < 0.0 && x.is_finite() && y.is_finite() && y.fract() != 0.0 => {
            Some(Ok(Scalar::Complex(Complex::new(x, 0.0).powf(y))))
        }
        BinaryOp::Pow => {
            let power = x.powf(y);
            if power.is_infinite() && x.is_finite() && y.is_finite() {
                return Some(Err(UnlocatedError::value_error("the result of ** is too large for a float")));
            }
            float(power)
        }
        _ => None,
    }
}

/// Python's `divmod` of floats: returns an integral quotient, and a remainder with the sign of the divisor.
fn floor_divmod(x: f64, y: f64) -> (f64, f64) {
    let mut rest = x % y;
    let mut quotient = (x - rest) / y;
    if rest == 0.0 {
        rest = 0f64.copysign(y);
    } else if (y < 0.0) != (rest < 0.0) {
        rest += y;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0f64.copysign(x / y), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}

/// Returns `x / y` by Smith's method ("Algorithm 116: Complex division", CACM 1962), as in Python. The method avoids overflow of
/// intermediate results.
fn divide_complex(x: Complex<f64>, y: Complex<f64>) -> Complex<f64> {
    if y.re.abs() >= y.im.abs() {
        let ratio = y.im / y.re;
        let scale = y.re + y.im * ratio;
        Complex::new((x.re + x.im * ratio) / scale, (x.im - x.re * ratio) / scale)
    } else {
        let ratio = y.re / y.im;
        let scale = y.re * ratio + y.im;
        Complex::new((x.re * ratio + x.im) / scale, (x.im * ratio - x.re) / scale)
    }
}

fn complex_power(x: Complex<f64>, exponent: Scalar) -> Unlocated<Scalar> {
    let y = exponent.as_complex();
    if x == Complex::ZERO {
        return if y == Complex::ZERO {
            Ok(Scalar::Complex(Complex::ONE))
        } else if y.im != 0.0 || y.re < 0.0 {
            Err(UnlocatedError::value_error("0.0 to a negative or complex power"))
        } else {
            Ok(Scalar::Complex(Complex::ZERO))
        };
    }
    // As in Python, small integral exponents use repeated multiplication, so that `1j**2` is exactly -1.
    Ok(Scalar::Complex(match exponent.as_int() {
        Some(n @ -100..=100) => x.powi(n as i32),
        _ => x.powc(y),
    }))
}

/// Python's `round` of a real number: correctly rounded in decimal, ties to even. Returns an int if `digits` is `None`.
pub(crate) fn round_number(number: Scalar, digits: Option<i128>) -> Unlocated<Scalar> {
    let too_large = || UnlocatedError::value_error("the result of round is too large");
    match (number, digits) {
        (Scalar::Complex(_), _) => Err(UnlocatedError::type_error("a complex number cannot be rounded")),
        (Scalar::Float(v), None) => {
            let whole = Scalar::Float(v.round_ties_even()).as_int();
            Ok(Scalar::Int(whole.ok_or_else(|| UnlocatedError::value_error(format!("{v:e} cannot be made an int")))?))
        }
        (Scalar::Float(v), Some(digits)) => {
            let rounded = round_float(v, digits);
            if rounded.is_infinite() && v.is_finite() { Err(too_large()) } else { Ok(Scalar::Float(rounded)) }
        }
        (number, digits) => {
            let v = number.as_int().unwrap_or(0);
            let digits = digits.unwrap_or(0);
            if digits >= 0 {
                return Ok(Scalar::Int(v));
            }
            // If `10**n` overflows `i128`, the magnitude of every int is less than half the rounding unit `10**n`, so every int rounds to
            // 0.
            let Some(unit) = u32::try_from(digits.unsigned_abs()).ok().and_then(|n| 10i128.checked_pow(n)) else {
                return Ok(Scalar::Int(0));
            };
            let (quotient, rest) = (v.div_euclid(unit), v.rem_euclid(unit));
            let up = rest > unit - rest || rest == unit - rest && quotient % 2 != 0;
            (quotient + i128::from(up)).checked_mul(unit).map(Scalar::Int).ok_or_else(too_large)
        }
    }
}

/// Rounds `v` to `digits` decimals and returns the closest float, or infinity if the rounded value overflows.
fn round_float(v: f64, digits: i128) -> f64 {
    // 1074 decimals represent every float exactly, so rounding to more changes nothing.
    if !v.is_finite() || v == 0.0 || digits >= 1074 {
        return v;
    }
    let decimal = |text: String| text.parse().unwrap_or(v);
    if digits >= 0 {
        return decimal(format!("{v:.*}", digits as usize));
    }
    // 767 significant digits represent every float exactly, so the formatted text is exact.
    let exact = format!("{:.766e}", v.abs());
    let Some((mantissa, exponent)) = exact.split_once('e') else { return v };
    match digits.saturating_add(exponent.parse().unwrap_or(0)) {
        kept @ 0.. => decimal(format!("{v:.*e}", kept as usize)),
        // The rounding unit is the next power of ten above `v`. A tie rounds to zero, which is even.
        -1 if mantissa.trim_end_matches(['0', '.']) > "5" => decimal(format!("{}1e{}", if v < 0.0 { "-" } else { "" }, -digits)),
        _ => 0f64.copysign(v),
    }
}

/// Computes `op a` for a number.
pub(crate) fn apply_unary_scalar_operator(op: UnaryOp, a: Scalar) -> Unlocated<Scalar> {
    let whole = a.as_int().filter(|_| matches!(a, Scalar::Int(_) | Scalar::Bool(_)));
    match (op, whole, a) {
        (UnaryOp::Not, ..) => Ok(Scalar::Bool(!a.as_bool())),
        (UnaryOp::Pos, Some(v), _) => Ok(Scalar::Int(v)),
        (UnaryOp::Pos, None, _) => Ok(a),
        (UnaryOp::Neg, Some(v), _) => {
            v.checked_neg().map(Scalar::Int).ok_or_else(|| UnlocatedError::value_error("the result of - is too large"))
        }
        (UnaryOp::Neg, None, Scalar::Complex(c)) => Ok(Scalar::Complex(-c)),
        (UnaryOp::Neg, None, _) => Ok(Scalar::Float(-a.as_f64())),
        (UnaryOp::Invert, Some(v), _) => Ok(Scalar::Int(!v)),
        (UnaryOp::Invert, None, _) => Err(UnlocatedError::type_error(format!("bad operand type for ~: '{}'", python_type_name(a)))),
    }
}

/// Returns whether `a op b` holds for two numbers. Ints are compared with floats exactly.
pub(crate) fn compare_scalars(op: CompareOp, a: Scalar, b: Scalar) -> Unlocated<bool> {
    let is_complex = matches!((a, b), (Scalar::Complex(_), _) | (_, Scalar::Complex(_)));
    if is_complex && !matches!(op, CompareOp::Eq | CompareOp::Ne) {
        return Err(UnlocatedError::type_error(format!("complex numbers have no order: {} is not defined for them", op.symbol())));
    }
    Ok(ordering_satisfies(op, a.partial_cmp(&b)))
}

/// Returns whether `ordering`, the order of two operands, satisfies the comparison `op`. `None` means that an operand is NaN.
fn ordering_satisfies(op: CompareOp, ordering: Option<Ordering>) -> bool {
    match op {
        CompareOp::Lt => ordering.is_some_and(Ordering::is_lt),
        CompareOp::Le => ordering.is_some_and(Ordering::is_le),
        CompareOp::Gt => ordering.is_some_and(Ordering::is_gt),
        CompareOp::Ge => ordering.is_some_and(Ordering::is_ge),
        CompareOp::Eq => ordering.is_some_and(Ordering::is_eq),
        CompareOp::Ne => !ordering.is_some_and(Ordering::is_eq),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(v: i128) -> Scalar {
        Scalar::Int(v)
    }

    /// Asserts that two scalars have the same kind and value.
    fn assert_same(got: Scalar, want: Scalar, what: &str) {
        assert_eq!((got.default_dtype(), got), (want.default_dtype(), want), "{what}");
    }

    /// Expected values are CPython's results.
    #[test]
    fn integer_arithmetic_matches_python() {
        let rows = [
            (BinaryOp::FloorDiv, -7, 2, int(-4)),
            (BinaryOp::FloorDiv, 7, -2, int(-4)),
            (BinaryOp::Rem, -7, 3, int(2)),
            (BinaryOp::Rem, 7, -3, int(-2)),
            (BinaryOp::Div, 7, 2, Scalar::Float(3.5)),
            (BinaryOp::Pow, 2, 100, int(1 << 100)),
            (BinaryOp::Pow, 2, -1, Scalar::Float(0.5)),
            (BinaryOp::Pow, 0, 0, int(1)),
            (BinaryOp::Pow, -1, 1_000_000_000_001, int(-1)),
            (BinaryOp::Shl, -1, 127, int(i128::MIN)),
            (BinaryOp::Shr, -5, 1000, int(-1)),
            (BinaryOp::BitXor, 6, 3, int(5)),
        ];
        for (op, a, b, want) in rows {
            assert_same(apply_binary_scalar_operator(op, int(a), int(b)).unwrap(), want, &format!("{a} {} {b}", op.symbol()));
        }
        assert!(apply_binary_scalar_operator(BinaryOp::Mul, int(i128::MAX), int(2)).is_err());
        assert!(apply_binary_scalar_operator(BinaryOp::FloorDiv, int(i128::MIN), int(-1)).is_err());
        assert_eq!(apply_binary_scalar_operator(BinaryOp::Rem, int(i128::MIN), int(-1)).unwrap(), int(0));
        assert!(apply_binary_scalar_operator(BinaryOp::Shl, int(1), int(127)).is_err());
        assert!(apply_binary_scalar_operator(BinaryOp::Rem, int(1), int(0)).is_err());
    }

    /// Expected values are CPython's results.
    #[test]
    fn float_and_complex_arithmetic_matches_python() {
        let float = Scalar::Float;
        let rows = [
            (BinaryOp::FloorDiv, -7.5, 2.0, float(-4.0)),
            (BinaryOp::Rem, -7.5, 2.0, float(0.5)),
            (BinaryOp::Rem, 5.5, -2.0, float(-0.5)),
            (BinaryOp::Rem, 1.0, f64::INFINITY, float(1.0)),
            (BinaryOp::FloorDiv, -1.0, f64::INFINITY, float(-1.0)),
            (BinaryOp::Pow, 2.0, 0.5, float(2f64.sqrt())),
        ];
        for (op, a, b, want) in rows {
            assert_same(apply_binary_scalar_operator(op, float(a), float(b)).unwrap(), want, &format!("{a} {} {b}", op.symbol()));
        }
        let Scalar::Complex(root) = apply_binary_scalar_operator(BinaryOp::Pow, float(-1.0), float(0.5)).unwrap() else { panic!() };
        assert!((root - Complex::I).norm() < 1e-15);
        assert_eq!(
            apply_binary_scalar_operator(BinaryOp::Pow, Scalar::Complex(Complex::I), int(2)).unwrap(),
            Scalar::Complex(Complex::new(-1.0, 0.0))
        );
        let over = |y: Scalar| apply_binary_scalar_operator(BinaryOp::Div, Scalar::Complex(Complex::I), y).unwrap();
        assert_eq!(over(float(f64::INFINITY)), Scalar::Complex(Complex::ZERO));
        assert_eq!(over(Scalar::Complex(Complex::new(0.0, 1e300))), Scalar::Complex(Complex::new(1e-300, 0.0)));
        assert!(apply_binary_scalar_operator(BinaryOp::BitAnd, float(1.0), int(1)).is_err());
        assert!(apply_binary_scalar_operator(BinaryOp::Pow, float(10.0), int(400)).is_err());
    }

    #[test]
    fn comparisons_of_ints_and_floats_are_exact() {
        let big = (1i128 << 53) + 1;
        assert!(!compare_scalars(CompareOp::Eq, int(big), Scalar::Float(big as f64)).unwrap());
        assert!(compare_scalars(CompareOp::Gt, int(big), Scalar::Float(big as f64)).unwrap());
        assert!(compare_scalars(CompareOp::Lt, Scalar::Float(2.5), int(3)).unwrap());
        assert!(compare_scalars(CompareOp::Gt, int(-2), Scalar::Float(-2.5)).unwrap());
        assert!(compare_scalars(CompareOp::Lt, int(i128::MAX), Scalar::Float(1e300)).unwrap());
        assert!(compare_scalars(CompareOp::Ne, Scalar::Float(f64::NAN), Scalar::Float(f64::NAN)).unwrap());
        assert!(compare_scalars(CompareOp::Lt, Scalar::Complex(Complex::I), int(1)).is_err());
    }
}
