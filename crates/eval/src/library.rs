//! The names of the library: core's op table, this crate's own [`functions`](crate::functions), dtypes and constants.

use std::collections::HashMap;
use std::sync::LazyLock;

use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{DType, Family, Op};

use crate::fault::{Checked, Fault};
use crate::functions::{self, Function};

/// What a name of the library stands for.
#[derive(Clone, Copy)]
pub(crate) enum Member {
    /// A row of core's table that can be called by name.
    Op(Op),
    /// A function of this crate.
    Function(&'static Function),
    /// A dtype: a value, and a conversion when called.
    DType(DType),
    /// A number.
    Constant(f64),
    /// `newaxis`.
    NewAxis,
}

const CONSTANTS: [(&str, f64); 5] = [
    ("pi", std::f64::consts::PI),
    ("e", std::f64::consts::E),
    ("inf", f64::INFINITY),
    ("nan", f64::NAN),
    // The Euler-Mascheroni constant, OEIS A001620.
    ("euler_gamma", 0.577_215_664_901_532_9),
];

/// NumPy's and Python's names for the dtypes, beside the dtypes' own names.
const DTYPE_NAMES: [&str; 19] = [
    "bool_", "byte", "ubyte", "short", "ushort", "intc", "uintc", "int", "int_", "intp", "uint", "uintp", "half", "single", "double",
    "float", "csingle", "cdouble", "complex",
];

/// Functions that NumPy has in `linalg` too, with the same meaning.
const LINALG: [&str; 4] = ["matmul", "tensordot", "matrix_transpose", "norm"];

/// NumPy functions that this version lacks: said so, rather than likened to another name. The table is asked first, so a
/// name that has come since does no harm here.
const NOT_YET: &str = "angle append apply_along_axis array_split array_str average bitwise_count broadcast_arrays broadcast_shapes \
    cholesky choose cond convolve copysign corrcoef correlate cov cross cumulative_prod cumulative_sum default_rng delete det diag \
    diagflat diff divmod ediff1d eig eigh eigvals eigvalsh erf exponential fabs fft fft2 fftfreq fftn fftshift finfo float_power fmax \
    fmin fmod frexp frombuffer fromfile fromfunction fromiter gamma gcd geomspace gradient hanning heaviside i0 ifft iinfo indices \
    insert interp intersect1d inv irfft iscomplex isin isreal ix_ kron lcm ldexp lexsort load loadtxt logaddexp logaddexp2 logspace \
    lstsq lu matrix_power matrix_rank median meshgrid mgrid modf multi_dot nan_to_num nancumprod nancumsum nanmax nanmean nanmedian \
    nanmin nanprod nanstd nansum nanvar nextafter packbits pad percentile permutation piecewise pinv place poly polyfit polyval \
    promote_types put put_along_axis putmask qr quantile ravel_multi_index repeat resize result_type rfft roll rollaxis rot90 save \
    savez select shuffle signbit sinc slogdet solve spacing split sqrtm svd take_along_axis tile trapezoid trapz tri tril triu \
    trim_zeros union1d unpackbits unravel_index unwrap vander vectorize vsplit weibull";

static MEMBERS: LazyLock<HashMap<&'static str, Member>> = LazyLock::new(|| {
    let mut members = HashMap::new();
    for name in DType::ALL.iter().map(|d| d.name()).chain(DTYPE_NAMES) {
        if let Ok(dtype) = DType::parse(name) {
            members.insert(name, Member::DType(dtype));
        }
    }
    // The first of one name is meant, a built-in one before all others, as in `Op::by_name`.
    let others: Vec<Op> = Op::named().collect();
    for op in others.into_iter().rev().chain(Op::all()).filter(|op| op.0.call.is_some()) {
        for name in [op.name()].iter().chain(op.0.aliases) {
            members.insert(name, Member::Op(op));
        }
    }
    for (name, value) in CONSTANTS {
        members.insert(name, Member::Constant(value));
    }
    members.insert("newaxis", Member::NewAxis);
    for function in functions::ALL {
        for name in [function.name].iter().chain(function.aliases) {
            members.insert(name, Member::Function(function));
        }
    }
    members
});

/// Looks up a name with its namespace: `sum`, `linalg.norm`, `random.uniform`.
pub(crate) fn lookup(path: &str) -> Option<Member> {
    if let Some(member) = MEMBERS.get(path) {
        return Some(*member);
    }
    let (namespace, name) = path.split_once('.')?;
    let member = *MEMBERS.get(name)?;
    let belongs = match (namespace, member) {
        ("linalg", _) => LINALG.contains(&name),
        ("random", Member::Op(op)) => op.family() == Family::Random,
        _ => false,
    };
    belongs.then_some(member)
}

/// Calls a row of core's table.
pub(crate) fn call_op(op: Op, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Checked<Value> {
    let call = op.0.call.ok_or_else(|| Fault::name(format!("`{}` cannot be called by name", op.name())))?;
    Ok(call(Args::bind(op.name(), op.0.signature, positional, keyword)?)?)
}

/// Calls the function that an operator is.
pub(crate) fn call_named(name: &str, positional: Vec<Value>) -> Checked<Value> {
    match lookup(name) {
        Some(Member::Op(op)) => call_op(op, positional, Vec::new()),
        _ => Err(Fault::name(format!("`{name}` is not in the table of operations"))),
    }
}

/// What to say of a name that nothing has.
pub(crate) fn unknown<'a>(path: &str, variables: impl Iterator<Item = &'a str>) -> Fault {
    let name = path.rsplit('.').next().unwrap_or(path);
    let numpy_has_it = NOT_YET.split_whitespace().any(|n| n == name);
    if numpy_has_it {
        return Fault::name(format!("`{path}` is not in this version"));
    }
    let fault = Fault::name(format!("no variable or function `{path}`"));
    let known = variables.chain(MEMBERS.keys().copied());
    match nearest(name, known) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault,
    }
}

/// The known name that a slip of the finger or two turns `name` into, if there is one.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = match name.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        _ => 2,
    };
    known.map(|k| (distance(name, k), k)).filter(|(d, _)| *d <= limit).min().map(|(_, k)| k)
}

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substituted = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substituted.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// One function as a listing shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionInfo {
    /// NumPy's name, with its namespace.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Parameters in Python's notation.
    pub signature: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
}

/// Every function that an expression can call, by name.
///
/// ```
/// let functions = cuprum_eval::functions();
/// let cumsum = functions.iter().find(|f| f.name == "cumsum").unwrap();
/// assert_eq!(cumsum.signature, "a, axis=None, dtype=None");
/// ```
pub fn functions() -> Vec<FunctionInfo> {
    let ops = Op::all().chain(Op::named()).filter(|op| op.0.call.is_some()).map(|Op(d)| FunctionInfo {
        name: d.name,
        aliases: d.aliases,
        signature: d.signature,
        doc: d.doc,
    });
    let own = functions::ALL.iter().map(|f| FunctionInfo { name: f.name, aliases: f.aliases, signature: f.signature, doc: f.doc });
    let mut all: Vec<FunctionInfo> = ops.chain(own).collect();
    all.sort_by_key(|f| f.name);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("cumsum", "cumsmu"), 1);
        assert_eq!(distance("sqr", "sqrt"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("Sin", "sin"), 0);
    }

    #[test]
    fn names_are_found_with_and_without_namespace() {
        assert!(matches!(lookup("linalg.norm"), Some(Member::Function(_))));
        assert!(matches!(lookup("linalg.matmul"), Some(Member::Op(_))));
        assert!(matches!((lookup("linalg.trace"), lookup("trace")), (Some(Member::Function(_)), Some(Member::Op(_)))));
        assert!(matches!(lookup("random.uniform"), Some(Member::Op(_))));
        assert!(matches!(lookup("random.standard_normal"), Some(Member::Op(_))));
        assert!(lookup("random.sin").is_none() && lookup("linalg.sin").is_none());
        assert!(matches!(lookup("float32"), Some(Member::DType(DType::F32))));
        for name in DTYPE_NAMES {
            assert!(matches!(lookup(name), Some(Member::DType(_))), "{name}");
        }
    }
}
