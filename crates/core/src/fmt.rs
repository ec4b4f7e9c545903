//! Printing as NumPy does: `str` ([`Display`](std::fmt::Display)), `repr` ([`NdArray::repr`]), and `numpy.printoptions`.
//!
//! The rules are the same as for NumPy's `array2string` with `floatmode='maxprec'`.

mod digits;

use std::cell::RefCell;
use std::fmt;

pub use self::digits::{exact_digits, shortest_digits};
use crate::array::NdArray;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result, shape_text};
use crate::host_buffer::check_memory_available;
use crate::index::Item;
use crate::ops::function::IntoValue;
use crate::ops::python_value::{Args, Value};
use crate::rounding::round_to_dtype;
use crate::scalar::Scalar;
use cuprum_macros::numpy;

/// Print options (`numpy.printoptions`). As in NumPy, `print` and `str` write a 0-d array as a number, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Maximum number of digits after the decimal point.
    pub precision: usize,
    /// Maximum number of elements that are printed in full.
    pub threshold: usize,
    /// Number of elements shown at each end of a summarized axis.
    pub edgeitems: usize,
    /// Maximum number of characters per line.
    pub linewidth: usize,
    /// Whether floats are always printed without exponents.
    pub suppress: bool,
}

impl PrintOptions {
    /// NumPy's defaults.
    const DEFAULT: PrintOptions = PrintOptions { precision: 8, threshold: 1000, edgeitems: 3, linewidth: 75, suppress: false };
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions::DEFAULT
    }
}

thread_local! {
    static CURRENT_PRINT_OPTIONS: RefCell<PrintOptions> = const { RefCell::new(PrintOptions::DEFAULT) };
}

/// Returns the print options of this thread (`numpy.get_printoptions`): NumPy's defaults, unless [`set_printoptions`] has changed them.
#[numpy("get_printoptions()", differs = "a named tuple of five options", call = |_| Ok(get_printoptions().into_value()))]
pub fn get_printoptions() -> PrintOptions {
    CURRENT_PRINT_OPTIONS.with_borrow(PrintOptions::clone)
}

/// Sets the print options of this thread (`numpy.set_printoptions`), which `Display`, `Debug` and [`NdArray::repr`] use.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{PrintOptions, array, set_printoptions};
/// set_printoptions(PrintOptions { precision: 2, ..PrintOptions::default() });
/// assert_eq!(array![1.0, 2.0 / 3.0].to_string(), "[1.   0.67]");
/// ```
#[numpy(
    "set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None)",
    differs = "of one thread",
    call = set_printoptions_from_args
)]
pub fn set_printoptions(options: PrintOptions) {
    CURRENT_PRINT_OPTIONS.set(options);
}

/// Calls `f` with other print options on this thread (`numpy.printoptions`).
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{PrintOptions, array, with_printoptions};
/// let options = PrintOptions { precision: 2, ..PrintOptions::default() };
/// let third = array![1.0 / 3.0];
/// assert_eq!(with_printoptions(options, || third.to_string()), "[0.33]");
/// assert_eq!(third.to_string(), "[0.33333333]");
/// ```
pub fn with_printoptions<R>(options: PrintOptions, f: impl FnOnce() -> R) -> R {
    /// A guard that restores the previous print options when it is dropped, also after a panic.
    struct RestorePrintOptionsOnDrop(PrintOptions);
    impl Drop for RestorePrintOptionsOnDrop {
        fn drop(&mut self) {
            CURRENT_PRINT_OPTIONS.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = RestorePrintOptionsOnDrop(CURRENT_PRINT_OPTIONS.replace(options));
    f()
}

fn set_printoptions_from_args(args: &Args) -> Result<Value> {
    set_printoptions(print_options_from_args(args, ["precision", "threshold", "edgeitems", "linewidth", "suppress"])?);
    Ok(Value::None)
}

impl IntoValue for PrintOptions {
    fn into_value(self) -> Value {
        let PrintOptions { precision, threshold, edgeitems, linewidth, suppress } = self;
        let names = &["precision", "threshold", "edgeitems", "linewidth", "suppress"];
        Value::named_tuple(names, [precision.into(), threshold.into(), edgeitems.into(), linewidth.into(), suppress.into()])
    }
}

/// Returns this thread's print options, changed by those arguments of `args` that are given. `names` are the argument names for precision,
/// threshold, edgeitems, linewidth and suppress.
fn print_options_from_args(args: &Args, names: [&str; 5]) -> Result<PrintOptions> {
    let count = |name: &str, current: usize| match args.get(name) {
        Some(Value::Scalar(Scalar::Float(v))) if *v == f64::INFINITY => Ok(usize::MAX),
        Some(value) => usize::try_from(value.int(args.op())?).map_err(|_| Error::value(args.op(), format!("{name} must be >= 0"))),
        None => Ok(current),
    };
    let current = get_printoptions();
    Ok(PrintOptions {
        precision: count(names[0], current.precision)?,
        threshold: count(names[1], current.threshold)?,
        edgeitems: count(names[2], current.edgeitems)?,
        linewidth: count(names[3], current.linewidth)?,
        suppress: args.bool_or(names[4], current.suppress)?,
    })
}

/// Returns this thread's options, changed by the arguments of `array_repr`, `array_str` or `array2string`.
///
/// # Errors
/// An error for an argument of a wrong type.
pub fn options_for_array_text(args: &Args) -> Result<PrintOptions> {
    print_options_from_args(args, ["precision", "threshold", "edgeitems", "max_line_width", "suppress_small"])
}

impl fmt::Display for NdArray {
    /// Formats the elements as NumPy's `str` does, and evaluates a deferred array. A precision is the maximum number of digits after the
    /// point: `{:.3}` is NumPy's `precision=3`. A 0-d array takes width and precision as a [`Scalar`] does: `{:8.3}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = get_printoptions();
        if self.ndim() == 0 && (f.precision().is_some() || f.width().is_some()) {
            // A failed evaluation is not reported here: `elements_text` below formats the error.
            if let Ok(value) = self.item() {
                return format_scalar(value, self.dtype(), f);
            }
        }
        let text = match f.precision() {
            Some(precision) => elements_text(self, &PrintOptions { precision, ..options }, " ", ""),
            None if self.ndim() == 0 => self.item().map(|value| scalar_text(value, self.dtype())),
            None => array2string(self, &options),
        };
        match text {
            Ok(text) => f.write_str(&text),
            Err(e) => write!(f, "<array of {} {}: {e}>", self.dtype(), shape_text(self.shape())),
        }
    }
}

impl fmt::Display for Scalar {
    /// Formats the number as Python does: `True`, `1e+16`, `(1-2j)`. See [`scalar_text`] for narrower dtypes. Width, sign and fill are those
    /// of a Rust number. With a precision, a float has so many digits after the point, and so have the parts of a complex number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        format_scalar(*self, self.default_dtype(), f)
    }
}

/// Formats a number of the given dtype with width, precision and flags of `f`.
fn format_scalar(value: Scalar, dtype: DType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let text = match (value, f.precision()) {
        (Scalar::Float(value), Some(_)) if value.is_finite() => return fmt::Display::fmt(&value, f),
        (Scalar::Complex(value), Some(precision)) => {
            let part = |v: f64| if v.is_finite() { format!("{v:.precision$}") } else { scalar_text(Scalar::Float(v), DType::F64) };
            let (re, im) = (part(value.re), part(value.im));
            format!("({re}{}{im}j)", if im.starts_with('-') { "" } else { "+" })
        }
        (value, _) => scalar_text(value, dtype),
    };
    let is_number = matches!(value, Scalar::Int(_)) || matches!(value, Scalar::Float(v) if v.is_finite());
    if !is_number && (f.sign_aware_zero_pad() || f.sign_plus()) {
        return write!(f, "{text:>width$}", width = f.width().unwrap_or(0));
    }
    let (digits, is_nonnegative) = text.strip_prefix('-').map_or((text.as_str(), true), |digits| (digits, false));
    f.pad_integral(is_nonnegative, "", digits)
}

impl fmt::LowerExp for Scalar {
    /// Formats the number as Rust's `{:e}` does, with a precision as in `{:.2e}`. A bool is formatted as 0 or 1. A complex number is
    /// formatted as `1e0+2e0i`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Bool(value) => fmt::LowerExp::fmt(&u8::from(value), f),
            Scalar::Int(value) => fmt::LowerExp::fmt(&value, f),
            Scalar::Float(value) => fmt::LowerExp::fmt(&value, f),
            Scalar::Complex(value) => fmt::LowerExp::fmt(&value, f),
        }
    }
}

impl fmt::Debug for NdArray {
    /// Formats elements, dtype, shape and device, and evaluates a deferred array. If that fails, the error replaces the elements.
    ///
    /// Large arrays are summarized. A precision is the maximum number of digits after the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = get_printoptions();
        let options = PrintOptions { precision: f.precision().unwrap_or(options.precision), ..options };
        let elements = elements_text(self, &options, ", ", "NdArray(").unwrap_or_else(|e| format!("<{e}>"));
        write!(f, "NdArray({elements}, dtype={}, shape={}, device={})", self.dtype(), shape_text(self.shape()), self.device())
    }
}

/// # Text
///
/// `Display` gives the elements as NumPy prints them; [`array2string`] takes options.
impl NdArray {
    /// Returns NumPy's `repr`, such as `array([1., 2.], dtype=float32)`. Waits for the device.
    ///
    /// # Errors
    /// Errors of the evaluation; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::NdArray;
    /// # fn main() -> cuprum::Result<()> {
    /// let a = NdArray::from_slice(&[1.0f32, 2.5])?;
    /// assert_eq!(a.repr()?, "array([1. , 2.5], dtype=float32)");
    /// assert_eq!(a.to_string(), "[1.  2.5]");
    /// # Ok(())
    /// # }
    /// ```
    pub fn repr(&self) -> Result<String> {
        self.repr_with(&get_printoptions())
    }

    /// Returns the text of [`NdArray::repr`] with the given options.
    ///
    /// # Errors
    /// Errors of the evaluation; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn repr_with(&self, options: &PrintOptions) -> Result<String> {
        // The closing parenthesis of `array(...)` takes one column, so the lines of elements are one column shorter.
        let linewidth = options.linewidth.saturating_sub(1);
        let body = elements_text(self, &PrintOptions { linewidth, ..options.clone() }, ", ", "array(")?;
        let mut extras = Vec::new();
        if self.size() == 0 && self.shape() != [0] || self.size() > options.threshold {
            extras.push(format!("shape={}", shape_text(self.shape())));
        }
        let implied = matches!(self.dtype(), DType::Bool | DType::I64 | DType::F64 | DType::C128) && self.size() > 0;
        if !implied {
            extras.push(format!("dtype={}", self.dtype()));
        }
        let mut out = format!("array({body}");
        if !extras.is_empty() {
            let extra = extras.join(", ");
            let last = out.rsplit('\n').next().map_or(0, str::len);
            out += if last + extra.len() + 3 > options.linewidth { ",\n      " } else { ", " };
            out += &extra;
        }
        Ok(out + ")")
    }
}

/// Returns the elements in brackets, with continuation lines indented to the end of `prefix`.
fn elements_text(array: &NdArray, options: &PrintOptions, separator: &str, prefix: &str) -> Result<String> {
    if array.size() == 0 {
        Ok("[]".to_string())
    } else {
        Ok(ArrayPrinter::new_for_array(array, options, separator, prefix)?.format_array())
    }
}

fn array2string_from_args(args: &Args) -> Result<Value> {
    let mut options = options_for_array_text(args)?;
    let text = |name: &str| match args.value(name) {
        Some(Value::Str(text)) => Ok(text.as_str()),
        _ => args.str(name),
    };
    let (separator, prefix, suffix) = (text("separator")?, text("prefix")?, text("suffix")?);
    options.linewidth = options.linewidth.saturating_sub(suffix.chars().count());
    // `prefix` is not printed here. Continuation lines are indented by its width.
    elements_text(&args.array("a")?, &options, separator, prefix).map(Value::Str)
}

/// Returns the elements as NumPy's `str` does, with the given options (`numpy.array2string`). The options apply to 0-d arrays too.
///
/// Only the printed elements of a large array are copied to the host.
///
/// # Errors
/// Errors of the evaluation; [`Error::OutOfMemory`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{PrintOptions, array, array2string};
/// # fn main() -> cuprum::Result<()> {
/// let options = PrintOptions { precision: 3, ..PrintOptions::default() };
/// assert_eq!(array2string(&array![0.0, 2.0 / 3.0], &options)?, "[0.    0.667]");
/// # Ok(())
/// # }
/// ```
#[numpy(
    "array2string(a, max_line_width=None, precision=None, suppress_small=None, separator=' ', prefix='', *, threshold=None, edgeitems=None, suffix='')",
    call = array2string_from_args
)]
pub fn array2string(array: &NdArray, options: &PrintOptions) -> Result<String> {
    elements_text(array, options, " ", "")
}

/// Returns `value` as Python prints a NumPy scalar of `dtype` (`str(numpy.float32(0.1))`).
pub fn scalar_text(value: Scalar, dtype: DType) -> String {
    let float = |v: f64, dtype: DType| {
        if v.is_nan() {
            return "nan".to_string();
        }
        if v.is_infinite() {
            return if v < 0.0 { "-inf" } else { "inf" }.to_string();
        }
        let size = v.abs();
        let limit = match dtype {
            DType::F16 => 1e3,
            DType::F32 => 1e6,
            _ => 1e16,
        };
        if size != 0.0 && !(1e-4..limit).contains(&size) {
            return format_scientific(v, dtype, usize::MAX, 0).replace(".e", "e");
        }
        let text = format_positional(v, dtype, usize::MAX);
        if text.ends_with('.') { text + "0" } else { text }
    };
    match value {
        Scalar::Bool(b) => if b { "True" } else { "False" }.to_string(),
        Scalar::Int(v) => v.to_string(),
        Scalar::Float(v) => float(v, dtype),
        Scalar::Complex(c) => {
            let part = |v: f64| float(v, dtype.real()).trim_end_matches(".0").to_string();
            if c.re == 0.0 && c.re.is_sign_positive() {
                return format!("{}j", part(c.im));
            }
            let sign = if c.im.is_sign_negative() && !c.im.is_nan() { "" } else { "+" };
            format!("({}{sign}{}j)", part(c.re), part(c.im))
        }
    }
}

/// Maximum number of elements that are formatted without a check of available memory.
const MAX_ELEMENTS_WITHOUT_MEMORY_CHECK: usize = 1 << 12;
/// Estimated bytes that formatting needs per element.
const FORMATTING_BYTES_PER_ELEMENT: usize = 256;

/// Elements formatted to a common width, and the shape to print them in.
struct ArrayPrinter<'a> {
    words: Vec<String>,
    shape: Vec<usize>,
    /// Whether each axis is summarized; its extent in `shape` is then twice `edgeitems`.
    summarized: Vec<bool>,
    options: &'a PrintOptions,
    separator: &'a str,
    prefix: usize,
}

impl<'a> ArrayPrinter<'a> {
    fn new_for_array(array: &NdArray, options: &'a PrintOptions, separator: &'a str, prefix: &str) -> Result<ArrayPrinter<'a>> {
        let edge = options.edgeitems.clamp(1, isize::MAX as usize / 2);
        let summary = array.size() > options.threshold;
        let summarized: Vec<bool> = array.shape().iter().map(|&n| summary && n > 2 * edge).collect();
        let mut shown = array.clone();
        // Each iteration shortens one axis and copies the remaining elements. Shortening the longest axis first copies the fewest elements.
        let mut axes: Vec<usize> = (0..array.ndim()).filter(|&a| summarized[a]).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(array.shape()[axis]));
        for axis in axes {
            let part = |item: Item| {
                let mut items = vec![Item::slice(None, None, 1); axis];
                items.push(item);
                shown.index(&items)
            };
            let ends = [part(Item::slice(None, edge as isize, 1))?, part(Item::slice(-(edge as isize), None, 1))?];
            shown = crate::ops::manipulation::concat(&ends, axis)?;
        }
        // Formatting makes many small infallible allocations, so their total is checked first.
        if shown.size() > MAX_ELEMENTS_WITHOUT_MEMORY_CHECK {
            check_memory_available("array2string", shown.size().saturating_mul(FORMATTING_BYTES_PER_ELEMENT))?;
        }
        let (dtype, item) = (array.dtype(), array.dtype().itemsize());
        let values: Vec<Scalar> = shown.to_bytes()?.chunks_exact(item).map(|b| Scalar::from_bytes(dtype, b)).collect();
        Ok(ArrayPrinter {
            words: format_elements(&values, dtype, options),
            shape: shown.shape().to_vec(),
            summarized,
            options,
            separator,
            prefix: prefix.chars().count(),
        })
    }

    fn format_array(&self) -> String {
        if self.shape.is_empty() {
            // NumPy does not pad a 0-d bool to the width of `False`, so the leading space of `True` is removed.
            return self.words.first().map(|w| w.trim_start().to_string()).unwrap_or_default();
        }
        self.format_axis(0, 0, self.prefix + 1, self.options.linewidth)
    }

    /// Formats `axis`, whose first element is number `start` of the formatted elements. Indents continuation lines to column `indent`.
    fn format_axis(&self, axis: usize, start: usize, indent: usize, width: usize) -> String {
        let n = self.shape[axis];
        let stride: usize = self.shape[axis + 1..].iter().product();
        let gap = self.summarized[axis].then_some(n / 2);
        let hanging = " ".repeat(indent);
        let mut out = String::new();
        if axis + 1 == self.shape.len() {
            let limit = width.saturating_sub(self.separator.trim_end().chars().count().max(1));
            let mut line = hanging.clone();
            let mut extend = |line: &mut String, word: &str| {
                if line.chars().count() + word.chars().count() > limit && line.len() > hanging.len() {
                    out.push_str(line.trim_end());
                    out.push('\n');
                    line.clone_from(&hanging);
                }
                line.push_str(word);
            };
            for i in 0..n {
                if gap == Some(i) {
                    extend(&mut line, "...");
                    line.push_str(self.separator);
                }
                extend(&mut line, &self.words[start + i]);
                if i + 1 < n {
                    line.push_str(self.separator);
                }
            }
            out.push_str(&line);
        } else {
            let between = format!("{}{}", self.separator.trim_end(), "\n".repeat(self.shape.len() - axis - 1));
            for i in 0..n {
                if gap == Some(i) {
                    out += &format!("{hanging}...{between}");
                }
                out += &hanging;
                out += &self.format_axis(axis + 1, start + i * stride, indent + 1, width.saturating_sub(1));
                if i + 1 < n {
                    out += &between;
                }
            }
        }
        format!("[{}]", &out[indent..])
    }
}

/// Formats `values` as texts of a common width.
fn format_elements(values: &[Scalar], dtype: DType, options: &PrintOptions) -> Vec<String> {
    match dtype.kind() {
        Kind::Float => {
            let floats: Vec<f64> = values.iter().map(|s| s.as_f64()).collect();
            let format = FloatFormat::fit_to_values(&floats, dtype, options, false);
            floats.iter().map(|&v| format.format_number(v)).collect()
        }
        Kind::Complex => {
            let re: Vec<f64> = values.iter().map(|s| s.as_complex().re).collect();
            let im: Vec<f64> = values.iter().map(|s| s.as_complex().im).collect();
            let (fr, fi) = (
                FloatFormat::fit_to_values(&re, dtype.real(), options, false),
                FloatFormat::fit_to_values(&im, dtype.real(), options, true),
            );
            let join = |(&r, &i): (&f64, &f64)| {
                let imag = fi.format_number(i);
                let end = imag.trim_end().len();
                format!("{}{}j{}", fr.format_number(r), &imag[..end], &imag[end..])
            };
            re.iter().zip(&im).map(join).collect()
        }
        _ => {
            let texts: Vec<String> = values.iter().map(|s| scalar_text(*s, dtype)).collect();
            let width = texts.iter().map(String::len).max().unwrap_or(0).max(if dtype == DType::Bool { 5 } else { 0 });
            texts.into_iter().map(|t| format!("{t:>width$}")).collect()
        }
    }
}

/// A common format for several floats (NumPy's `FloatingFormat`).
struct FloatFormat {
    dtype: DType,
    has_exponent: bool,
    precision: usize,
    left: usize,
    right: usize,
    exponent_digits: usize,
    plus: bool,
}

impl FloatFormat {
    fn fit_to_values(values: &[f64], dtype: DType, options: &PrintOptions, plus: bool) -> FloatFormat {
        let finite: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let sizes = finite.iter().map(|v| v.abs()).filter(|v| *v != 0.0);
        let (max, min) = (sizes.clone().fold(0.0, f64::max), sizes.fold(f64::INFINITY, f64::min));
        // NumPy rounds the limits of positional notation to `dtype`, which changes them for narrow floats.
        let limit = match dtype {
            DType::F16 => 1e3,
            DType::F32 => 1e6,
            _ => 1e8,
        };
        let has_exponent = max > 0.0
            && (max >= limit || (!options.suppress && (min < round_to_dtype(1e-4, dtype) || round_to_dtype(max / min, dtype) > 1000.0)));
        let mut f = FloatFormat { dtype, has_exponent, precision: options.precision, left: 0, right: 0, exponent_digits: 0, plus };
        let signed = |v: f64, text: String| if plus && !v.is_sign_negative() { format!("+{text}") } else { text };
        if has_exponent {
            let texts: Vec<String> = finite.iter().map(|&v| signed(v, format_scientific(v, dtype, options.precision, 0))).collect();
            let parts = texts.iter().filter_map(|t| t.split_once('e')).filter_map(|(m, e)| m.split_once('.').map(|(i, frac)| (i, frac, e)));
            for (int, fraction, e) in parts {
                f.left = f.left.max(int.len());
                f.right = f.right.max(fraction.len());
                f.exponent_digits = f.exponent_digits.max(e.len() - 1);
            }
            f.precision = f.right;
            f.right += f.exponent_digits + 2;
        } else {
            for &v in &finite {
                let text = signed(v, format_positional(v, dtype, options.precision));
                if let Some((int, fraction)) = text.split_once('.') {
                    f.left = f.left.max(int.len());
                    f.right = f.right.max(fraction.len());
                }
            }
        }
        if finite.len() < values.len() {
            let signs = (plus || values.contains(&f64::NEG_INFINITY)) as usize;
            f.left = f.left.max(3usize.saturating_sub(f.right + 1)).max((3 + signs).saturating_sub(f.right + 1));
        }
        f
    }

    fn format_number(&self, v: f64) -> String {
        let plus = self.plus && (v.is_nan() || !v.is_sign_negative());
        let width = self.left + self.right + 1;
        if !v.is_finite() {
            let text = if v.is_nan() {
                "nan"
            } else if v < 0.0 {
                "-inf"
            } else {
                "inf"
            };
            let text = if plus { format!("+{text}") } else { text.to_string() };
            return format!("{text:>width$}");
        }
        let text = if self.has_exponent {
            // All mantissas have the same length, so a shorter text is extended with exact digits.
            let (digits, e) = exact_digits(v, self.precision);
            format_mantissa_and_exponent(v, &digits, e, self.exponent_digits)
        } else {
            format_positional(v, self.dtype, self.precision)
        };
        let text = if plus { format!("+{text}") } else { text };
        if self.has_exponent {
            return format!("{text:>width$}");
        }
        let (int, fraction) = text.split_once('.').unwrap_or((&text, ""));
        format!("{int:>left$}.{fraction:<right$}", left = self.left, right = self.right)
    }
}

/// Formats `v` without exponent, with the shortest digits and at most `precision` after the point. Keeps the point, drops trailing zeros.
fn format_positional(v: f64, dtype: DType, precision: usize) -> String {
    let (digits, e) = shortest_digits(v, dtype);
    let fraction_digits = (digits.len() as i32 - 1 - e).max(0) as usize;
    let sign = if v.is_sign_negative() { "-" } else { "" };
    let text = if fraction_digits > precision {
        format!("{:.*}", precision, v.abs())
    } else if e < 0 {
        format!("0.{}{digits}", "0".repeat((-e - 1) as usize))
    } else {
        let whole = e as usize + 1;
        if digits.len() <= whole {
            format!("{digits}{}.", "0".repeat(whole - digits.len()))
        } else {
            format!("{}.{}", &digits[..whole], &digits[whole..])
        }
    };
    let text = if text.contains('.') { text.trim_end_matches('0').to_string() } else { text + "." };
    format!("{sign}{text}")
}

/// Formats `v` with an exponent of at least two digits and the shortest mantissa, at most `precision` digits after the point.
fn format_scientific(v: f64, dtype: DType, precision: usize, exponent_digits: usize) -> String {
    let (mut digits, mut e) = shortest_digits(v, dtype);
    if digits.len() - 1 > precision {
        (digits, e) = exact_digits(v, precision);
    }
    let kept = digits[1..].trim_end_matches('0').len();
    format_mantissa_and_exponent(v, &digits[..=kept], e, exponent_digits)
}

/// Joins the sign of `v`, the mantissa `digits` and the decimal exponent `e` to a text such as `-1.5e+08`.
fn format_mantissa_and_exponent(v: f64, digits: &str, e: i32, exponent_digits: usize) -> String {
    let sign = if v.is_sign_negative() { "-" } else { "" };
    let width = exponent_digits.max(2);
    format!("{sign}{}.{}e{}{:0width$}", &digits[..1], &digits[1..], if e < 0 { '-' } else { '+' }, e.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn text(values: &[f64], dtype: DType) -> String {
        let scalars: Vec<Scalar> = values.iter().map(|&v| Scalar::Float(v)).collect();
        let options = PrintOptions::default();
        let p = ArrayPrinter {
            words: format_elements(&scalars, dtype, &options),
            shape: vec![values.len()],
            summarized: vec![false],
            options: &options,
            separator: " ",
            prefix: 0,
        };
        p.format_array()
    }

    #[test]
    fn floats_print_as_in_numpy() {
        assert_eq!(text(&[1.0, 2.5, -3.0], DType::F64), "[ 1.   2.5 -3. ]");
        assert_eq!(text(&[1e-5, 1.0], DType::F64), "[1.e-05 1.e+00]");
        assert_eq!(text(&[0.1, 1.0 / 3.0], DType::F64), "[0.1        0.33333333]");
        assert_eq!(text(&[f64::NAN, 1.0, f64::NEG_INFINITY], DType::F64), "[ nan   1. -inf]");
        assert_eq!(text(&[0.1f32 as f64], DType::F32), "[0.1]");
        assert_eq!(text(&[1e10, 1.5], DType::F64), "[1.0e+10 1.5e+00]");
        assert_eq!(text(&[0.0], DType::F64), "[0.]");
        assert_eq!(text(&[f16::from_f64(0.1).to_f64()], DType::F16), "[0.1]");
        assert_eq!(text(&[1e100, -1e-100], DType::F64), "[ 1.e+100 -1.e-100]");
        // Numbers that are padded to a common number of digits show the exact value of a float32, not its shortest digits.
        let narrow = |v: f64| (v as f32).into();
        assert_eq!(text(&[narrow(1e-5), narrow(1.2345678e10)], DType::F32), "[9.9999997e-06 1.2345678e+10]");
        assert_eq!(text(&[narrow(1e-4), 1.0], DType::F32), "[1.e-04 1.e+00]");
        assert_eq!(text(&[narrow(1e-4)], DType::F32), "[0.0001]");
        assert_eq!(text(&[1000.0], DType::F16), "[1.e+03]");
        assert_eq!(text(&[999999.0, 1000.0], DType::F32), "[999999.   1000.]");
        assert_eq!(text(&[1e6], DType::F32), "[1.e+06]");
    }

    #[test]
    fn lines_of_any_width_print_as_in_numpy() {
        let text = |shape: &[usize], linewidth: usize| {
            let options = PrintOptions { linewidth, ..PrintOptions::default() };
            let words = (0..shape.iter().product::<usize>()).map(|n| n.to_string()).collect();
            let summarized = vec![false; shape.len()];
            ArrayPrinter { words, shape: shape.to_vec(), summarized, options: &options, separator: " ", prefix: 0 }.format_array()
        };
        for width in [0, 1, 2] {
            assert_eq!(text(&[5], width), "[0\n 1\n 2\n 3\n 4]");
            assert_eq!(text(&[2, 3], width), "[[0\n  1\n  2]\n [3\n  4\n  5]]");
        }
        assert_eq!(text(&[5], 5), "[0 1\n 2 3\n 4]");
        assert_eq!(text(&[2, 3], 5), "[[0\n  1\n  2]\n [3\n  4\n  5]]");
        assert_eq!(text(&[2, 3], usize::MAX), "[[0 1 2]\n [3 4 5]]");
    }

    #[test]
    fn scalars_print_as_in_python() {
        assert_eq!(scalar_text(Scalar::Float(1.0), DType::F64), "1.0");
        assert_eq!(scalar_text(Scalar::Float(1e16), DType::F64), "1e+16");
        assert_eq!(format!("{:>5} {} {}", Scalar::Bool(true), Scalar::Int(-3), Scalar::Float(2.0)), " True -3 2.0");
        assert_eq!(scalar_text(Scalar::Float(1.5e-7), DType::F64), "1.5e-07");
        assert_eq!(scalar_text(Scalar::Float(16777216.0), DType::F32), "1.6777216e+07");
        assert_eq!(scalar_text(Scalar::Float(99999.0), DType::F32), "99999.0");
        assert_eq!(scalar_text(Scalar::Float(1000.0), DType::F16), "1e+03");
        assert_eq!(scalar_text(Scalar::Complex(num_complex::Complex::new(1.0, -2.0)), DType::C128), "(1-2j)");
    }
}
