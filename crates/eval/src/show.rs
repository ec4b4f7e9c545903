//! Values as Python prints them.

use cuprum_core::Result;
use cuprum_core::fmt::scalar_text;
use cuprum_core::ops::value::Value;

/// Python's `repr`: arrays as `array([1., 2.])`, strings in quotes. Waits for the device.
///
/// ```
/// use cuprum_core::{DType, ops::value::Value};
/// let value = Value::Tuple(vec![2.into(), 0.5.into(), Value::Str("ij".into()), Value::None]);
/// assert_eq!(cuprum_eval::repr(&value)?, "(2, 0.5, 'ij', None)");
/// assert_eq!(cuprum_eval::repr(&Value::DType(DType::F32))?, "dtype('float32')");
/// # Ok::<(), cuprum_core::Error>(())
/// ```
pub fn repr(value: &Value) -> Result<String> {
    let joined = |items: &[Value]| Ok::<_, cuprum_core::Error>(items.iter().map(repr).collect::<Result<Vec<_>>>()?.join(", "));
    Ok(match value {
        Value::Array(a) => a.repr()?,
        Value::Scalar(s) => scalar_text(*s, s.default_dtype()),
        Value::None => "None".into(),
        Value::Str(s) => quoted(s),
        Value::DType(d) => format!("dtype('{d}')"),
        Value::Tuple(items) if items.len() == 1 => format!("({},)", joined(items)?),
        Value::Tuple(items) => format!("({})", joined(items)?),
        Value::List(items) => format!("[{}]", joined(items)?),
    })
}

/// Python's `str`, which `print` shows: arrays as `[1. 2.]`, strings as they are. Waits for the device.
pub fn display(value: &Value) -> Result<String> {
    match value {
        Value::Array(a) => cuprum_core::fmt::array2string(a, &Default::default()),
        Value::Str(s) => Ok(s.clone()),
        Value::DType(d) => Ok(d.to_string()),
        other => repr(other),
    }
}

/// A string in Python's quotes.
fn quoted(s: &str) -> String {
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
