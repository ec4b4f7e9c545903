//! Parameter lists in Python's notation, parsed at their first use.

use std::fmt;
use std::sync::OnceLock;

use crate::ops::python_value::{Value, split_at_commas};

/// Parameters in Python's notation, such as `a, axis=None, *, keepdims=False`. They are parsed once, at the first call.
///
/// Parameters before `/` are positional only, those after `*` are keyword only. A final `*name` collects the remaining positional
/// arguments.
pub struct Parameters {
    /// The parameters in Python's notation.
    pub text: &'static str,
    parsed: OnceLock<ParsedParameters>,
}

/// A parameter that takes one argument, as all parameters except `*name` do.
pub(crate) struct SingleValueParameter {
    pub name: &'static str,
    pub is_required: bool,
    /// The default value; `None` if the parameter has no default, or one that is not a literal.
    pub default: Option<Value>,
}

/// The parsed form of [`Parameters`].
pub(crate) struct ParsedParameters {
    pub list: Vec<SingleValueParameter>,
    /// Number of positional-only parameters, which are the first ones in `list`.
    pub positional_only: usize,
    /// Maximum number of positional arguments, not counting those that `*name` collects.
    pub positional_max: usize,
    /// Whether a final `*name` collects the remaining positional arguments.
    pub takes_rest: bool,
}

impl Parameters {
    /// Stores the list `text` without parsing it.
    pub const fn new(text: &'static str) -> Parameters {
        Parameters { text, parsed: OnceLock::new() }
    }

    /// Returns the parsed parameters.
    #[inline]
    pub(crate) fn parsed_parameters(&self) -> &ParsedParameters {
        self.parsed.get_or_init(|| ParsedParameters::of(self.text))
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl ParsedParameters {
    fn of(text: &'static str) -> ParsedParameters {
        let mut list = Vec::new();
        let (mut positional_only, mut positional_max, mut takes_rest) = (0, None, false);
        for p in split_at_commas(text) {
            if p == "/" {
                positional_only = list.len();
            } else if p.starts_with('*') {
                takes_rest |= p != "*";
                positional_max = Some(list.len());
            } else {
                let (name, default) = p.split_once('=').map_or((p, None), |(name, text)| (name.trim(), Some(text.trim())));
                list.push(SingleValueParameter {
                    name,
                    is_required: default.is_none(),
                    default: default.and_then(Value::parse_parameter_default),
                });
            }
        }
        let positional_max = positional_max.unwrap_or(list.len());
        ParsedParameters { list, positional_only, positional_max, takes_rest }
    }
}
