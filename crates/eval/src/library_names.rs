//! Names that an expression can use: declared functions, Python's built-ins, dtypes and constants.

use std::collections::HashMap;
use std::sync::LazyLock;

use cuprum_core::DType;
use cuprum_core::function::Function;

use crate::builtins::{BUILTINS, Builtin};
use crate::unlocated_error::UnlocatedError;

use cuprum_numpy::TypeClass;

/// A function whose arguments are written as an index, such as `mgrid[0:3]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriptFunction {
    /// `mgrid`: the coordinates of a whole grid.
    Dense,
    /// `ogrid`: the coordinates along each axis of a grid.
    Sparse,
    /// `r_`: joins its parts along the first axis.
    Rows,
    /// `c_`: joins its parts as columns.
    Columns,
}

const SUBSCRIPT_FUNCTIONS: [(&str, SubscriptFunction); 4] = [
    ("mgrid", SubscriptFunction::Dense),
    ("ogrid", SubscriptFunction::Sparse),
    ("r_", SubscriptFunction::Rows),
    ("c_", SubscriptFunction::Columns),
];

/// An item of the library, to which a name in a script refers.
#[derive(Clone, Copy)]
pub(crate) enum LibraryItem {
    /// A function declared by `#[numpy(..)]`.
    Function(&'static Function),
    /// A built-in function of Python, with its name.
    Builtin(&'static str, Builtin),
    /// A dtype. It is a value, and converts its argument when called: `float32(x)`.
    DType(DType),
    /// A constant, such as `pi`.
    Constant(f64),
    /// The constant `newaxis`.
    NewAxis,
    /// `little_endian`, a Python bool.
    LittleEndian,
    /// `True_` or `False_`, a 0-d array.
    NumpyBool(bool),
    /// An abstract type, such as `floating`, with its name.
    TypeClass(&'static str),
    /// A function whose arguments are written as an index, such as `mgrid[0:3]`.
    SubscriptFunction(SubscriptFunction),
}

const NUMERIC_CONSTANTS: [(&str, f64); 5] = [
    ("pi", std::f64::consts::PI),
    ("e", std::f64::consts::E),
    ("inf", f64::INFINITY),
    ("nan", f64::NAN),
    // The Euler-Mascheroni constant, OEIS A001620.
    ("euler_gamma", 0.577_215_664_901_532_9),
];

/// NumPy's and Python's aliases of dtypes.
const DTYPE_ALIASES: [&str; 23] = [
    "bool_",
    "byte",
    "ubyte",
    "short",
    "ushort",
    "intc",
    "uintc",
    "int",
    "int_",
    "intp",
    "uint",
    "uintp",
    "half",
    "single",
    "double",
    "float",
    "csingle",
    "cdouble",
    "complex",
    "long",
    "ulong",
    "longlong",
    "ulonglong",
];

/// The public names of NumPy, one per line: kind, path, parameters and, after `#`, the reason if cuprum does not plan to have the name.
/// `scripts/numpy_names.py` writes the file.
const NUMPY_NAMES: &str = include_str!("numpy_names.txt");

/// Library items other than declared functions, such as dtypes and constants, by name.
static LIBRARY_ITEMS: LazyLock<HashMap<&'static str, LibraryItem>> = LazyLock::new(|| {
    let mut members = HashMap::new();
    for name in DType::ALL.iter().map(|d| d.name()).chain(DTYPE_ALIASES) {
        if let Ok(dtype) = DType::parse(name) {
            members.insert(name, LibraryItem::DType(dtype));
        }
    }
    members.extend(NUMERIC_CONSTANTS.map(|(name, value)| (name, LibraryItem::Constant(value))));
    members.extend(BUILTINS.map(|(name, call)| (name, LibraryItem::Builtin(name, call))));
    members.insert("newaxis", LibraryItem::NewAxis);
    members.insert("little_endian", LibraryItem::LittleEndian);
    members.extend([("True_", true), ("False_", false)].map(|(name, value)| (name, LibraryItem::NumpyBool(value))));
    members.extend(TypeClass::abstract_type_names().map(|name| (name, LibraryItem::TypeClass(name))));
    members.extend(SUBSCRIPT_FUNCTIONS.map(|(name, function)| (name, LibraryItem::SubscriptFunction(function))));
    members
});

/// Returns the library item with the path `path`, such as `sum`, `linalg.norm` or `pi`. Returns `None` for an unknown path.
pub(crate) fn lookup_library_item(path: &str) -> Option<LibraryItem> {
    Function::find(path).map(LibraryItem::Function).or_else(|| LIBRARY_ITEMS.get(path).copied())
}

/// Returns whether library functions are declared in the namespace `name`, such as `linalg` or `special`.
pub(crate) fn is_library_namespace(name: &str) -> bool {
    !name.is_empty() && Function::all().any(|function| function.namespace == name)
}

/// Modules of NumPy and functions of Python that are not in this version. Only names that are not found are looked up here.
const UNSUPPORTED_MODULES: [&str; 11] =
    ["char", "core", "ctypeslib", "emath", "exceptions", "f2py", "lib", "ma", "rec", "strings", "testing"];
const UNSUPPORTED_PYTHON_FUNCTIONS: [&str; 19] = [
    "dict",
    "enumerate",
    "filter",
    "input",
    "isinstance",
    "iter",
    "list",
    "map",
    "open",
    "range",
    "repr",
    "reversed",
    "set",
    "slice",
    "sorted",
    "str",
    "tuple",
    "type",
    "zip",
];

/// Returns the error for the unknown name `path`, with a suggestion if `path` is close to a known name.
pub(crate) fn unknown_name_error<'a>(path: &str, variables: impl Iterator<Item = &'a str>) -> UnlocatedError {
    // NumPy's names match without their namespace too, because pasted code often imports functions such as `shuffle` from `numpy.random`.
    let mut listed = NUMPY_NAMES.lines().map(|line| line.split(['(', ' ']).nth(1).unwrap_or(line));
    let module = path.split('.').next().unwrap_or(path);
    let is_absent = UNSUPPORTED_MODULES.contains(&module) || UNSUPPORTED_PYTHON_FUNCTIONS.contains(&path) || module == "polynomial";
    if is_absent || listed.any(|n| n == path || n.rsplit('.').next() == Some(path)) {
        return UnlocatedError::name_error(format!("`{path}` is not in this version"));
    }
    let error = UnlocatedError::name_error(format!("no variable or function `{path}`"));
    let library = LIBRARY_ITEMS.keys().copied().chain(Function::paths()).map(|name| -> &'a str { name });
    let known = variables.chain(library);
    match nearest_name(path, known) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Returns the name in `known` within one or two typing errors of `name`, if there is one.
pub(crate) fn nearest_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let limit = match length {
        0..=2 => return None,
        3..=5 => 1,
        _ => 2,
    };
    let name = name.to_lowercase();
    let of_similar_length = known.filter(|k| k.chars().count().abs_diff(length) <= limit);
    of_similar_length.map(|k| (strsim::osa_distance(&name, &k.to_lowercase()), k)).filter(|(d, _)| *d <= limit).min().map(|(_, k)| k)
}

/// Returns every function that an expression can call, sorted by path.
///
/// # Examples
///
/// ```
/// let functions = cuprum_eval::functions();
/// let cumsum = functions.iter().find(|f| f.name == "cumsum").unwrap();
/// assert_eq!(cumsum.parameters.text, "a, axis=None, dtype=None, out=None");
/// ```
pub fn functions() -> Vec<&'static Function> {
    let mut all: Vec<&'static Function> = Function::all().collect();
    all.sort_by_key(|f| f.path());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_one_or_two_errors_are_found() {
        let nearest = |name| nearest_name(name, ["cumsum", "sqrt", "sin"].into_iter());
        assert_eq!(nearest("cumsmu"), Some("cumsum"));
        assert_eq!(nearest("sqr"), Some("sqrt"));
        assert_eq!(nearest("Sin"), Some("sin"));
        assert_eq!(nearest("si"), None);
        assert_eq!(nearest("cumulated"), None);
    }

    #[test]
    fn names_are_found_with_and_without_namespace() {
        for path in ["linalg.norm", "linalg.trace", "random.uniform", "uniform", "random.standard_normal", "trace"] {
            assert!(matches!(lookup_library_item(path), Some(LibraryItem::Function(_))), "{path}");
        }
        assert!(lookup_library_item("random.sin").is_none() && lookup_library_item("linalg.sin").is_none());
        assert!(matches!(lookup_library_item("float32"), Some(LibraryItem::DType(DType::F32))));
        for name in DTYPE_ALIASES {
            assert!(matches!(lookup_library_item(name), Some(LibraryItem::DType(_))), "{name}");
        }
    }
}
