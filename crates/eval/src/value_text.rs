//! Formatting of values as Python's `repr` and `str` do.

use cuprum_core::Result;
use cuprum_core::fmt::scalar_text;
use cuprum_core::host_buffer::try_push_str;
use cuprum_core::ops::python_value::Value;

/// Returns Python's `repr` of a value: arrays as `array([1., 2.])`, strings in quotes. Named tuples have the names of their items, but no
/// name of their type. Waits for the device.
///
/// # Errors
///
/// Returns the error of a deferred array, or out of memory.
///
/// # Examples
///
/// ```
/// use cuprum_core::{DType, ops::python_value::Value};
/// let value = Value::Tuple(vec![2.into(), 0.5.into(), Value::Str("ij".into()), Value::None].into());
/// assert_eq!(cuprum_eval::repr(&value)?, "(2, 0.5, 'ij', None)");
/// assert_eq!(cuprum_eval::repr(&Value::DType(DType::F32))?, "dtype('float32')");
/// # Ok::<(), cuprum_core::Error>(())
/// ```
pub fn repr(value: &Value) -> Result<String> {
    let mut out = String::new();
    // A stack of the enclosing sequences, each with its remaining items, the names of these items and the closing bracket. Recursion could
    // overflow the stack on deeply nested lists.
    let mut open: Vec<(std::slice::Iter<Value>, std::slice::Iter<&'static str>, &'static str)> = Vec::new();
    let mut next = Some(value);
    loop {
        match next {
            Some(Value::Tuple(items)) => {
                push_value_text(&mut out, "(")?;
                let names = items.field_names();
                open.push((items.iter(), names.iter(), if items.len() == 1 && names.is_empty() { ",)" } else { ")" }));
            }
            Some(Value::List(items)) => {
                push_value_text(&mut out, "[")?;
                open.push((items.iter(), [].iter(), "]"));
            }
            Some(value) => push_value_text(&mut out, &repr_non_sequence(value)?)?,
            None => {
                let Some((_, _, close)) = open.pop() else { break };
                push_value_text(&mut out, close)?;
            }
        }
        let Some((items, names, _)) = open.last_mut() else { break };
        next = items.next();
        if next.is_some() {
            if !out.ends_with(['(', '[']) {
                push_value_text(&mut out, ", ")?;
            }
            if let Some(name) = names.next() {
                push_value_text(&mut out, name)?;
                push_value_text(&mut out, "=")?;
            }
        }
    }
    Ok(out)
}

fn push_value_text(out: &mut String, text: &str) -> Result<()> {
    try_push_str("repr", out, text)
}

/// Returns the [`repr`] of a value that is neither a tuple nor a list.
fn repr_non_sequence(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Array(a) => a.repr()?,
        Value::Scalar(s) => scalar_text(*s, s.default_dtype()),
        Value::Str(s) => quote_python_string(s),
        Value::DType(d) => format!("dtype('{d}')"),
        Value::Object(object) => object.repr(),
        Value::None | Value::Tuple(_) | Value::List(_) => "None".into(),
    })
}

/// Returns Python's `str` of a value, the text that `print` writes: arrays as `[1. 2.]`, strings without quotes. Waits for
/// the device.
///
/// # Errors
///
/// Returns the error of a deferred array, or out of memory.
pub fn display(value: &Value) -> Result<String> {
    match value {
        Value::Array(a) if a.ndim() == 0 => Ok(scalar_text(a.item()?, a.dtype())),
        Value::Array(a) => cuprum_core::fmt::array2string(a, &cuprum_core::get_printoptions()),
        Value::Str(s) => Ok(s.clone()),
        Value::DType(d) => Ok(d.to_string()),
        other => repr(other),
    }
}

/// Returns the string `s` with Python's quotes and escapes.
fn quote_python_string(s: &str) -> String {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in s.chars() {
        match c {
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\x{:02x}", c as u32),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
