//! Conversion of numbers to text, and of text to numbers.

use cuprum_core::fmt::{exact_digits, shortest_digits};
use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, Kind, NdArray, Result, Scalar, numpy};

/// Treatment of trailing zeros (`trim=` of `numpy.format_float_positional`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrimZeros {
    /// Keeps zeros and the decimal point (`k`).
    #[default]
    Keep,
    /// Trims zeros and keeps the decimal point (`.`).
    Point,
    /// Trims zeros, but keeps or adds one zero directly after the decimal point (`0`).
    OneZero,
    /// Trims zeros and a trailing decimal point (`-`).
    All,
}

impl FromArgs for TrimZeros {
    fn from_args(args: &Args, name: &str) -> Result<TrimZeros> {
        match String::from_args(args, name)?.as_str() {
            "k" => Ok(TrimZeros::Keep),
            "." => Ok(TrimZeros::Point),
            "0" => Ok(TrimZeros::OneZero),
            "-" => Ok(TrimZeros::All),
            _ => Err(Error::value(args.op(), "if supplied, trim must be 'k', '.', '0' or '-'")),
        }
    }
}

/// Options of [`format_float_positional`] and [`format_float_scientific`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatStyle {
    /// Maximum number of digits after the decimal point; as many as needed by default.
    pub precision: Option<usize>,
    /// Whether the fewest digits that identify the number are written. If false, exactly `precision` digits are written.
    pub unique: bool,
    /// Whether `precision` and `min_digits` count digits after the decimal point. If false, they count all significant digits. Positional
    /// notation only.
    pub fractional: bool,
    /// Treatment of trailing zeros.
    pub trim: TrimZeros,
    /// Whether a positive number is written with a plus sign.
    pub sign: bool,
    /// Minimum number of characters before the decimal point.
    pub pad_left: usize,
    /// Minimum number of characters after the decimal point. Positional notation only.
    pub pad_right: usize,
    /// Minimum number of digits of the exponent; 2 by default. Scientific notation only.
    pub exp_digits: usize,
    /// Minimum number of digits, if `unique`.
    pub min_digits: usize,
}

impl Default for FloatStyle {
    fn default() -> FloatStyle {
        FloatStyle {
            precision: None,
            unique: true,
            fractional: true,
            trim: TrimZeros::Keep,
            sign: false,
            pad_left: 0,
            pad_right: 0,
            exp_digits: 2,
            min_digits: 0,
        }
    }
}

impl FromArgs for FloatStyle {
    /// Reads the options of `format_float_positional` and `format_float_scientific`. Missing options get their defaults.
    fn from_args(args: &Args, _name: &str) -> Result<FloatStyle> {
        let count = |name: &str| -> Result<Option<usize>> {
            let Some(value) = args.get(name) else { return Ok(None) };
            match usize::try_from(value.to_isize(args.op())?) {
                Ok(count) if count <= MAX_FLOAT_STYLE_DIGITS => Ok(Some(count)),
                Ok(_) => Err(Error::value(args.op(), format!("{name} must be at most {MAX_FLOAT_STYLE_DIGITS}"))),
                Err(_) => Err(Error::value(args.op(), format!("{name} must be >= 0"))),
            }
        };
        Ok(FloatStyle {
            precision: count("precision")?,
            unique: args.bool_or("unique", true)?,
            fractional: args.bool_or("fractional", true)?,
            trim: TrimZeros::from_args(args, "trim")?,
            sign: args.bool_or("sign", false)?,
            pad_left: count("pad_left")?.unwrap_or(0),
            pad_right: count("pad_right")?.unwrap_or(0),
            exp_digits: count("exp_digits")?.unwrap_or(2),
            min_digits: count("min_digits")?.unwrap_or(0),
        })
    }
}

/// Maximum of each number in a [`FloatStyle`]. NumPy's buffer of 16 KiB implies the same limit.
const MAX_FLOAT_STYLE_DIGITS: usize = 1 << 14;
/// Number of digits that suffices for every float64: at most 767 significant digits after at most 324 leading zeros.
const MAX_EXACT_FLOAT64_DIGITS: usize = 1100;

impl FloatStyle {
    /// Returns an error for options that contradict each other.
    fn check_option_conflicts(&self, op: &'static str) -> Result<()> {
        let counts = [self.precision.unwrap_or(0), self.pad_left, self.pad_right, self.exp_digits, self.min_digits];
        let message = match self.precision {
            _ if counts.iter().any(|&count| count > MAX_FLOAT_STYLE_DIGITS) => "a number of digits is too large",
            None if !self.unique => "in non-unique mode `precision` must be supplied",
            Some(0) if !self.fractional => "precision must be greater than 0 if fractional=False",
            // As in NumPy, the precision 0 is not compared with `min_digits`.
            Some(precision) if precision > 0 && precision < self.min_digits => "min_digits must be less than or equal to precision",
            _ => return Ok(()),
        };
        Err(Error::value(op, message))
    }

    /// Returns the significant digits of a finite `v`, and the decimal exponent of the first digit. The limits `precision`
    /// and `min_digits` of `self` do not count the first `uncounted(exponent)` digits, such as those before the decimal point.
    fn significant_digits(&self, v: f64, dtype: DType, uncounted: impl Fn(i32) -> i64) -> (String, i32) {
        let (digits, e) = shortest_digits(v, dtype);
        let counted = |count: usize| count as i64 + uncounted(e);
        let most = self.precision.map_or(i64::MAX, counted);
        let length = digits.len() as i64;
        let least = if self.min_digits > 0 { counted(self.min_digits) } else { 0 };
        let is_shortest = self.unique && (least..=most).contains(&length);
        if v == 0.0 || is_shortest {
            return (digits, e);
        }
        // The shortest digits may have a larger exponent than the exact digits. An example is 1e23, whose exact digits begin with 9.99.
        let (exact, e) = exact_digits(v, MAX_EXACT_FLOAT64_DIGITS);
        let is_limit = !self.unique || length > most;
        let wanted = if is_limit { self.precision.unwrap_or(0) } else { self.min_digits } as i64 + uncounted(e);
        // The exact value is rounded to `wanted` digits. If `wanted` is below 1, the result is 0, or 1 at the position to which the value
        // is rounded.
        if wanted < 1 {
            let is_up = wanted == 0 && exact.trim_end_matches('0') > "5";
            return if is_up { ("1".to_owned(), e + 1) } else { ("0".to_owned(), 0) };
        }
        let count = (wanted as usize).min(MAX_EXACT_FLOAT64_DIGITS);
        let (rounded, rounded_e) = exact_digits(v, count - 1);
        // As in NumPy's algorithm, digits that rounding up turned from 9 to 0 are dropped.
        let is_up = exact.get(..count) != Some(&rounded);
        let kept = if is_up { rounded.trim_end_matches('0') } else { &rounded };
        (kept.to_owned(), rounded_e)
    }

    /// Pads the digits after the decimal point with zeros to `wanted` digits, or trims them, as `self.trim` requires. Also returns whether
    /// the decimal point is written.
    fn pad_or_trim_fraction(&self, mut fraction: String, wanted: usize) -> (String, bool) {
        if self.trim == TrimZeros::Keep {
            fraction.extend(std::iter::repeat_n('0', wanted.saturating_sub(fraction.len())));
            return (fraction, true);
        }
        fraction.truncate(fraction.trim_end_matches('0').len());
        if self.trim == TrimZeros::OneZero && fraction.is_empty() {
            fraction.push('0');
        }
        let has_point = self.trim != TrimZeros::All || !fraction.is_empty();
        (fraction, has_point)
    }

    fn sign_text(&self, v: f64) -> &'static str {
        match (v.is_sign_negative(), self.sign) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        }
    }

    /// Returns the text of a NaN or an infinity, and `None` for a finite number.
    fn non_finite_text(&self, v: f64) -> Option<String> {
        if v.is_nan() { Some("nan".to_owned()) } else { v.is_infinite().then(|| format!("{}inf", self.sign_text(v))) }
    }
}

/// Returns the number in `x`, and the dtype that determines how many digits identify the number.
fn real_number_and_dtype(op: &'static str, x: &NdArray) -> Result<(f64, DType)> {
    if x.size() != 1 || x.dtype().kind() == Kind::Complex {
        return Err(Error::value(op, "takes one real number"));
    }
    let dtype = if x.dtype().kind() == Kind::Float { x.dtype() } else { DType::F64 };
    Ok((x.astype(dtype)?.item()?.as_f64(), dtype))
}

/// Returns a number in decimal notation without exponent (`numpy.format_float_positional`).
///
/// `x` has one element. Its dtype determines how many digits identify it. Integers are formatted as float64.
///
/// # Errors
/// More than one element, complex numbers, or options that contradict each other.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{FloatStyle, array, format_float_positional};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(format_float_positional(&array![0.1f32], &FloatStyle::default())?, "0.1");
/// let style = FloatStyle { precision: Some(3), unique: false, ..FloatStyle::default() };
/// assert_eq!(format_float_positional(&array![2.5], &style)?, "2.500");
/// # Ok(())
/// # }
/// ```
#[numpy(
    "format_float_positional(x, precision=None, unique=True, fractional=True, trim='k', sign=False, pad_left=None, pad_right=None, min_digits=None)"
)]
pub fn format_float_positional(x: &NdArray, #[name("precision")] style: &FloatStyle) -> Result<String> {
    let op = "format_float_positional";
    style.check_option_conflicts(op)?;
    let (v, dtype) = real_number_and_dtype(op, x)?;
    if let Some(text) = style.non_finite_text(v) {
        return Ok(text);
    }
    let (digits, e) = style.significant_digits(v, dtype, |e| if style.fractional { i64::from(e) + 1 } else { 0 });
    let zeros = |n: i32| "0".repeat(n.max(0) as usize);
    let whole_count = (e + 1).max(0) as usize;
    let (whole, fraction) = match digits.split_at_checked(whole_count) {
        Some(("", _)) => ("0".to_owned(), zeros(-e - 1) + &digits),
        Some((whole, fraction)) => (whole.to_owned(), fraction.to_owned()),
        None => (digits.clone() + &zeros(e + 1 - digits.len() as i32), String::new()),
    };
    let wanted = if style.unique { style.min_digits } else { style.precision.unwrap_or(0) };
    let wanted = if style.fractional { wanted } else { wanted.saturating_sub(whole.len()) };
    // A number that was rounded to zero keeps the zeros up to the position of the rounding.
    let is_cut = style.fractional && digits == "0" && v != 0.0;
    let wanted = if is_cut { style.precision.unwrap_or(0).max(wanted) } else { wanted };
    let (fraction, has_point) = style.pad_or_trim_fraction(fraction, wanted);
    let before = format!("{}{whole}", style.sign_text(v));
    let after = if has_point { format!(".{fraction}") } else { String::new() };
    let (left, right) = (style.pad_left, if style.pad_right > 0 { style.pad_right + 1 } else { 0 });
    Ok(format!("{before:>left$}{after:<right$}"))
}

/// Returns a number in decimal notation with an exponent (`numpy.format_float_scientific`).
///
/// `x` has one element. Its dtype determines how many digits identify it. Integers are formatted as float64.
///
/// # Errors
/// More than one element, complex numbers, or options that contradict each other.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{FloatStyle, array, format_float_scientific};
/// # fn main() -> cuprum::Result<()> {
/// let style = FloatStyle { precision: Some(2), ..FloatStyle::default() };
/// assert_eq!(format_float_scientific(&array![12345.0], &style)?, "1.23e+04");
/// # Ok(())
/// # }
/// ```
#[numpy(
    "format_float_scientific(x, precision=None, unique=True, trim='k', sign=False, pad_left=None, exp_digits=None, min_digits=None)",
    call = format_float_scientific_from_args
)]
pub fn format_float_scientific(x: &NdArray, style: &FloatStyle) -> Result<String> {
    let op = "format_float_scientific";
    FloatStyle { fractional: true, ..style.clone() }.check_option_conflicts(op)?;
    let (v, dtype) = real_number_and_dtype(op, x)?;
    if let Some(text) = style.non_finite_text(v) {
        return Ok(text);
    }
    let (digits, e) = style.significant_digits(v, dtype, |_| 1);
    let (first, rest) = digits.split_at_checked(1).unwrap_or(("0", ""));
    let wanted = if style.unique { style.min_digits } else { style.precision.unwrap_or(0) };
    let (fraction, has_point) = style.pad_or_trim_fraction(rest.to_owned(), wanted);
    let before = format!("{}{first}", style.sign_text(v));
    let (left, exponent) = (style.pad_left, style.exp_digits);
    let point = if has_point { "." } else { "" };
    let sign = if e < 0 { '-' } else { '+' };
    Ok(format!("{before:>left$}{point}{fraction}e{sign}{:0exponent$}", e.unsigned_abs()))
}

fn format_float_scientific_from_args(args: &Args) -> Result<Value> {
    format_float_scientific(&args.array("x")?, &FloatStyle::from_args(args, "precision")?).map(Value::Str)
}

fn fromstring_from_args(args: &Args) -> Result<Value> {
    let count = usize::try_from(args.int_or("count", -1)?).ok();
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    fromstring(args.str("string")?, dtype, count, args.str("sep")?).map(Value::Array)
}

/// Returns the numbers in a text as a 1-D array (`numpy.fromstring`). `separator` is the text between two numbers.
///
/// Blanks around a separator and around numbers are skipped; a separator of blanks alone matches any number of them. `count` is the number
/// of elements; all numbers by default. [`NdArray::from_bytes`] reads binary data.
///
/// # Errors
/// An empty separator, text that is not a number of the dtype, complex dtypes, or fewer numbers than `count`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, array, fromstring};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(fromstring("1, 2.5", DType::F64, None, ",")?, array![1.0, 2.5]);
/// assert_eq!(fromstring("3  4 5", DType::I64, Some(2), " ")?, array![3i64, 4]);
/// # Ok(())
/// # }
/// ```
#[numpy("fromstring(string, dtype=None, count=-1, *, sep)", differs = "text only", call = fromstring_from_args)]
pub fn fromstring(string: &str, dtype: DType, count: Option<usize>, separator: &str) -> Result<NdArray> {
    let op = "fromstring";
    if separator.is_empty() {
        return Err(Error::value(op, "binary data has no separator; NdArray::from_bytes reads it"));
    }
    let separator = separator.trim();
    // A separator may follow the last number of the text.
    let text = string.trim();
    let text = if separator.is_empty() { text } else { text.strip_suffix(separator).unwrap_or(text) };
    let words = || -> Box<dyn Iterator<Item = &str>> {
        match separator {
            _ if text.is_empty() => Box::new(std::iter::empty()),
            "" => Box::new(text.split_whitespace()),
            separator => Box::new(text.split(separator).map(str::trim)),
        }
    };
    let found = words().count();
    let count = count.unwrap_or(found);
    if count > found {
        return Err(Error::value(op, format!("the text has {found} numbers, not {count}")));
    }
    let unreadable = |word: &str| Error::value(op, format!("'{word}' is not a number of {dtype}"));
    let number = |word: &str| match dtype.kind() {
        Kind::Signed | Kind::Unsigned => {
            let value = word.parse::<i128>().map(Scalar::from).map_err(|_| unreadable(word))?;
            value.check_fits_dtype(op, dtype)
        }
        Kind::Float | Kind::Bool => word.parse::<f64>().map(Scalar::from).map_err(|_| unreadable(word)),
        Kind::Complex => Err(Error::dtype(op, "complex numbers cannot be read", &[dtype])),
    };
    let mut bytes = Vec::new();
    cuprum_core::host_buffer::try_reserve(op, &mut bytes, count.saturating_mul(dtype.itemsize()))?;
    for word in words().take(count) {
        let value = number(word)?;
        let value = if dtype == DType::Bool { Scalar::Bool(value.as_bool()) } else { value };
        bytes.extend_from_slice(&value.to_bytes(dtype)[..dtype.itemsize()]);
    }
    NdArray::from_bytes(dtype, count, &bytes)
}
