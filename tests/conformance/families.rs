//! The cases with NumPy's results, written by scripts/goldens.py: one pair of files for each family.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cuprum::core::testing::{Tolerance, compare_scaled};
use cuprum::{DType, Device, NdArray, with_device};

use crate::checks::{Check, Outcome, Subject, load};

macro_rules! families {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("goldens/", $name, ".cases")), include_bytes!(concat!("goldens/", $name, ".npz")))),*]
    };
}

/// Name, cases, results.
const FAMILIES: &[(&str, &str, &[u8])] = families![
    "map" "fill" "copy" "reduce" "scan" "contract" "gather" "scatter" "sort" "select" "search" "histogram" "fft" "random" "composed"
    "assignment" "creation" "indexing" "linalg" "manipulation" "mathematics" "padding" "polynomials" "sets" "statistics" "ufuncs" "data_types" "edges"
    "differences" "keywords" "polynomial_roots" "products" "special" "sparse"
];

/// NumPy's result of an expression.
enum Answer {
    /// An exception of this kind.
    Raises(String),
    /// A value.
    Value { want: NdArray, tolerance: Tolerance, scales: Vec<f64> },
}

/// Returns every case of every family.
pub fn checks() -> Result<Vec<Check>, String> {
    let mut checks = Vec::new();
    for (family, cases, results) in FAMILIES {
        push_checks(family, cases, results, &mut checks)?;
    }
    Ok(checks)
}

/// Returns the cases of a folder: each file `NAME.cases` with its results, `NAME.npz`.
pub fn checks_in(folder: &Path) -> Result<Vec<Check>, String> {
    let unreadable = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|e| unreadable(folder, e))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "cases"));
    paths.sort();
    let mut checks = Vec::new();
    for path in paths {
        let results = path.with_extension("npz");
        let cases = std::fs::read_to_string(&path).map_err(|e| unreadable(&path, e))?;
        let bytes = std::fs::read(&results).map_err(|e| unreadable(&results, e))?;
        push_checks(&path.file_stem().unwrap_or_default().to_string_lossy(), &cases, &bytes, &mut checks)?;
    }
    Ok(checks)
}

/// Appends the cases of one family.
fn push_checks(family: &str, cases: &str, results: &[u8], checks: &mut Vec<Check>) -> Result<(), String> {
    let mut results = with_device(Device::CPU, || Results::new(results)).map_err(|e| format!("goldens of {family}: {e}"))?;
    for line in cases.lines() {
        let (expression, answer) =
            with_device(Device::CPU, || results.answer(line)).map_err(|e| format!("goldens of {family}, '{line}': {e}"))?;
        let expression = expression.to_string();
        checks.push(Check::new(format!("{family}: {expression}"), move |subject| ask(subject, &expression, &answer)));
    }
    Ok(())
}

/// Returns the expressions for which NumPy has a value.
pub fn answered() -> impl Iterator<Item = &'static str> {
    let lines = FAMILIES.iter().flat_map(|(_, cases, _)| cases.lines());
    lines.filter_map(|line| line.split_once('\t')).filter(|(_, rule)| !rule.starts_with("raises ")).map(|(expression, _)| expression)
}

fn ask(subject: &mut Subject, expression: &str, answer: &Answer) -> Outcome {
    // The result is read here, because asynchronous errors appear only then.
    match answer {
        Answer::Raises(exception) => match subject.read(expression) {
            Ok(type_name) => Err(format!("gives a value of type {type_name}; NumPy raises {exception}")),
            Err(failure) => failure.check(exception).map(|()| None),
        },
        Answer::Value { want, tolerance, scales } => {
            let got = subject.eval(expression)?;
            let bytes = got.to_bytes().map_err(|e| e.to_string())?;
            if got.device() != subject.device {
                return Err(format!("the result is on {}", got.device()));
            }
            compare_scaled(&got, want, *tolerance, scales).map_err(|d| d.to_string())?;
            Ok(Some(bytes))
        }
    }
}

/// The results of a family, read in order: one array for each dtype.
struct Results {
    bytes: HashMap<String, Vec<u8>>,
    used: HashMap<String, usize>,
}

impl Results {
    fn new(npz: &[u8]) -> cuprum::Result<Results> {
        let members = load(npz)?;
        let bytes = members.into_iter().map(|(name, a)| Ok((name, a.to_bytes()?))).collect::<cuprum::Result<_>>()?;
        Ok(Results { bytes, used: HashMap::new() })
    }

    fn take(&mut self, member: &str, count: usize) -> Result<&[u8], String> {
        let used = self.used.entry(member.to_string()).or_default();
        let bytes = self.bytes.get(member).and_then(|b| b.get(*used..*used + count));
        *used += count;
        bytes.ok_or_else(|| format!("there are too few results of {member}; run scripts/goldens.py"))
    }

    /// Parses a line of the cases: expression, tolerance rule, dtype and shape of the result.
    fn answer<'a>(&mut self, line: &'a str) -> Result<(&'a str, Answer), String> {
        let columns: Vec<&str> = line.split('\t').collect();
        let (expression, rule, dtype, shape) = match columns[..] {
            [expression, rule] => match rule.strip_prefix("raises ") {
                Some(kind) => return Ok((expression, Answer::Raises(kind.to_string()))),
                None => return Err("no result".into()),
            },
            [expression, rule, dtype, shape] => (expression, rule, dtype, shape),
            _ => return Err("not a case".into()),
        };
        let dtype = DType::parse(dtype).map_err(|e| e.to_string())?;
        let extents = shape.split(',').filter(|n| *n != "-").map(|n| n.parse().map_err(|_| format!("no shape in '{shape}'")));
        let shape: Vec<usize> = extents.collect::<Result<_, String>>()?;
        let size: usize = shape.iter().product();
        let bytes = self.take(dtype.name(), size * dtype.itemsize())?;
        let want = NdArray::from_bytes(dtype, &shape, bytes).map_err(|e| e.to_string())?;
        let (tolerance, scaled) = tolerance(rule)?;
        let scales = if scaled { self.take("scales", size * size_of::<f64>())? } else { &[] };
        let scales = scales.chunks_exact(8).filter_map(|b| b.try_into().ok()).map(f64::from_le_bytes).collect();
        Ok((expression, Answer::Value { want, tolerance, scales }))
    }
}

/// Parses a tolerance rule such as `ulp 2` or `sum 4 anyzero`, and returns whether the case has scales.
fn tolerance(rule: &str) -> Result<(Tolerance, bool), String> {
    let words: Vec<&str> = rule.split(' ').collect();
    let [kind, amount, flags @ ..] = &words[..] else { return Err(format!("no tolerance in '{rule}'")) };
    let amount: f64 = amount.parse().map_err(|_| format!("no number in '{rule}'"))?;
    let tolerance = if *kind == "sum" { Tolerance::sum(amount) } else { Tolerance::ulp(amount) };
    Ok((Tolerance { any_zero: tolerance.any_zero || flags.contains(&"anyzero"), ..tolerance }, *kind == "sum"))
}
