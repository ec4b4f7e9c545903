//! Treatment of indices out of bounds (`mode=`).

use cuprum_core::function::FromArgs;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{Error, Result};

/// Treatment of indices out of bounds (`mode=` of `numpy.ravel_multi_index`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// An index out of bounds is an error.
    #[default]
    Raise,
    /// Indices count modulo the extent.
    Wrap,
    /// Indices are clamped to the range from 0 to the last index.
    Clip,
}

impl Bounds {
    pub(crate) fn parse(op: &'static str, value: &Value) -> Result<Bounds> {
        match value {
            Value::Str(text) if text == "raise" => Ok(Bounds::Raise),
            Value::Str(text) if text == "wrap" => Ok(Bounds::Wrap),
            Value::Str(text) if text == "clip" => Ok(Bounds::Clip),
            _ => Err(Error::value(op, "clipmode must be one of 'clip', 'raise', or 'wrap'")),
        }
    }
}

impl FromArgs for Bounds {
    fn from_args(args: &Args, name: &str) -> Result<Bounds> {
        Bounds::parse(args.op(), args.value(name).unwrap_or(&Value::None))
    }
}
