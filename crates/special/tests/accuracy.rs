//! The errors of all functions against values of high precision, on every device, stay below the bounds in `docs/special.md`.
//!
//!     CUPRUM_UPDATE=1 cargo test -p cuprum-special --test accuracy    # writes the measured errors of the page

#[path = "../../backend-cuda/tests/parts/mod.rs"]
mod parts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cuprum_core::function::Function;
use cuprum_core::{DType, Device, NdArray, Value, with_device};
use cuprum_special as _;

const BEGIN: &str = "<!-- accuracy: begin -->\n";
const END: &str = "<!-- accuracy: end -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The points of one function, from `tests/reference`.
struct Reference {
    /// Arguments, one list for each parameter.
    args: Vec<Vec<f64>>,
    values: Vec<f64>,
    /// The exact values minus `values`, in units in the last place.
    rests: Vec<f64>,
    /// Sizes that count for errors near zeros.
    scales: Vec<f64>,
    /// The largest error of SciPy, and the number of points at which it exceeds 1e6.
    scipy: (String, usize),
}

fn references() -> BTreeMap<String, Reference> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), read(&std::fs::read_to_string(path).unwrap()))).collect()
}

fn read(text: &str) -> Reference {
    let number = |bits: &str| f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
    let (first, lines) = text.split_once('\n').unwrap();
    let scipy: Vec<&str> = first.rsplit_once(": ").unwrap().1.split(' ').collect();
    let mut reference = Reference {
        args: Vec::new(),
        values: Vec::new(),
        rests: Vec::new(),
        scales: Vec::new(),
        scipy: (scipy[0].to_owned(), scipy[1].parse().unwrap()),
    };
    for line in lines.lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let args: Vec<f64> = parts[0].split(' ').map(number).collect();
        reference.args.resize(args.len(), Vec::new());
        reference.args.iter_mut().zip(args).for_each(|(list, arg)| list.push(arg));
        reference.values.push(number(parts[1]));
        reference.rests.push(parts[2].parse().unwrap());
        reference.scales.push(parts.get(3).map_or(0.0, |bits| number(bits)));
    }
    reference
}

/// Returns the unit in the last place of a finite number.
fn unit(x: f64, dtype: DType) -> f64 {
    if dtype == DType::F32 {
        let exponent = ((x.abs() as f32).min(f32::MAX).to_bits() >> 23).max(1);
        return f64::from(if exponent > 23 { f32::from_bits((exponent - 23) << 23) } else { f32::from_bits(1 << (exponent - 1)) });
    }
    let exponent = (x.abs().to_bits() >> 52).max(1);
    if exponent > 52 { f64::from_bits((exponent - 52) << 52) } else { f64::from_bits(1 << (exponent - 1)) }
}

/// Returns the error of `got` in units in the last place, for a point: rounded value, rest, scale.
fn error(got: f64, (near, rest, scale): (f64, f64, f64), dtype: DType) -> f64 {
    if near.is_nan() || got.is_nan() {
        return if near.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let limit = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
    if near.is_infinite() || near.abs() > limit {
        // Above the largest number, the result is infinite or, by rounding, the largest number.
        let is_rounded = near.is_finite() && got.abs() == limit && near.abs() < limit * (1.0 + f64::from(f32::EPSILON));
        return if (got.is_infinite() || is_rounded) && got.signum() == near.signum() { 0.0 } else { f64::INFINITY };
    }
    let unit_of = unit(near, dtype).max(unit(scale, dtype));
    let rest = rest * unit(near, DType::F64) / unit_of;
    if got.is_infinite() {
        // An infinite result counts as one unit above the largest number.
        return if got.signum() == near.signum() { (limit - near.abs()) / unit_of + 1.0 } else { f64::INFINITY };
    }
    ((got - near) / unit_of - rest).abs()
}

/// Calls a function by its name, as `eval` does.
fn call(name: &str, args: &[NdArray]) -> NdArray {
    let (path, result) = name.split_once('-').unwrap_or((name, "0"));
    let function = Function::find(&format!("special.{path}")).unwrap_or_else(|| panic!("special.{path} is not declared"));
    let args = args.iter().map(|a| Value::Array(a.clone())).collect();
    match function.call(args, Vec::new()).unwrap_or_else(|e| panic!("{name}: {e}")) {
        Value::Array(a) => a,
        Value::Tuple(results) => match results.get(result.parse::<usize>().unwrap()) {
            Some(Value::Array(a)) => a.clone(),
            _ => panic!("{name} returns no array {result}"),
        },
        other => panic!("{name} returns {}", other.type_name()),
    }
}

/// Returns the largest error of a function in `dtype` on the current device, with the arguments and the result at which it occurs.
fn largest_error(name: &str, reference: &Reference, dtype: DType) -> (f64, String) {
    let is_single = |x: f64| x.is_nan() || f64::from(x as f32) == x;
    let chosen: Vec<usize> =
        (0..reference.values.len()).filter(|&n| dtype == DType::F64 || reference.args.iter().all(|list| is_single(list[n]))).collect();
    let arrays: Vec<NdArray> = reference
        .args
        .iter()
        .map(|list| {
            let values: Vec<f64> = chosen.iter().map(|&n| list[n]).collect();
            NdArray::from_slice(&values).unwrap().astype(dtype).unwrap()
        })
        .collect();
    let result = call(name, &arrays);
    // `polygamma` is always in float64.
    let precision = if name == "polygamma" { DType::F64 } else { dtype };
    assert_eq!(result.dtype(), precision, "{name}");
    let results = result.astype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let mut worst = (0.0, String::new());
    for (&n, got) in chosen.iter().zip(results) {
        let off = error(got, (reference.values[n], reference.rests[n], reference.scales[n]), precision);
        if off > worst.0 {
            let args: Vec<f64> = reference.args.iter().map(|list| list[n]).collect();
            worst = (off, format!("{name}{args:?} is {got:e}, expected {:e}", reference.values[n]));
        }
    }
    assert!(chosen.len() >= 20, "{name} has {} points of {dtype}", chosen.len());
    worst
}

/// A row of the page: bound and measured error of float64 and float32.
struct Row {
    name: String,
    bounds: [f64; 2],
    remark: String,
}

fn rows(table: &str) -> Vec<Row> {
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let bound = |cell: &str| cell.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
            Row { name: cells[0].trim_matches('`').to_owned(), bounds: [bound(cells[1]), bound(cells[3])], remark: cells[6].to_owned() }
        })
        .collect()
}

/// Returns two significant digits of an error, rounded up.
fn shown(x: f64) -> String {
    let step = if x >= 10.0 { 1.0 } else { 0.1 };
    format!("{}", ((x / step).ceil() * step * 10.0).round() / 10.0)
}

/// Checks the functions that `select` returns, of those that have rows in the page.
fn check(device: Device, update: bool, select: impl Fn(Vec<Row>) -> Vec<Row>) {
    let path = root().join("docs/special.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (table, tail) = rest.split_once(END).unwrap();
    let (references, rows) = (references(), rows(table));
    let listed: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    assert_eq!(listed, references.keys().map(|name| &**name).collect::<Vec<_>>(), "docs/special.md has a row for each reference, by name");
    let mut out =
        "| function | bound, float64 | measured | bound, float32 | measured | SciPy | remark |\n|---|---|---|---|---|---|---|\n".to_owned();
    let mut failures = Vec::new();
    for row in &select(rows) {
        let reference = &references[&row.name];
        let errors = [DType::F64, DType::F32].map(|dtype| with_device(device, || largest_error(&row.name, reference, dtype)));
        for ((off, at), bound) in errors.iter().zip(row.bounds) {
            if *off > bound {
                failures.push(format!("{off:.2} > {bound}: {at}"));
            }
        }
        let [double, single] = errors.map(|(off, _)| shown(off));
        let (scipy, far) = &reference.scipy;
        let far = if *far > 0 { format!(", {far} points wrong") } else { String::new() };
        out +=
            &format!("| `{}` | {} | {double} | {} | {single} | {scipy}{far} | {} |\n", row.name, row.bounds[0], row.bounds[1], row.remark);
    }
    assert!(failures.is_empty(), "errors in units in the last place on {device}:\n{}", failures.join("\n"));
    if update {
        std::fs::write(&path, format!("{head}{BEGIN}{out}{END}{tail}")).unwrap();
    }
}

#[test]
fn errors_on_the_cpu_are_below_the_bounds() {
    check(Device::CPU, std::env::var_os("CUPRUM_UPDATE").is_some(), |rows| rows);
}

#[test]
fn errors_on_a_gpu_are_below_the_bounds() {
    let Some(device) = cuprum_backend_cuda::testing::device() else { return };
    // Each function and dtype has a kernel, and a process compiles one kernel at a time.
    check(device, false, |rows| parts::part("errors_on_a_gpu_are_below_the_bounds", rows));
}

#[test]
fn every_function_has_a_reference() {
    // These are compositions of other operations, or complex, and have cases in the conformance tests.
    let composed = ["cbrt", "lambertw", "log_softmax", "logsumexp", "sinc", "softmax"];
    let names: Vec<String> = references().into_keys().map(|name| name.split('-').next().unwrap().to_owned()).collect();
    let declared = Function::all().filter(|f| f.namespace == "special").map(|f| f.name);
    let missing: Vec<&str> = declared.filter(|name| !composed.contains(name) && !names.iter().any(|n| n == name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn units_in_the_last_place() {
    assert_eq!(unit(1.0, DType::F64), f64::EPSILON);
    assert_eq!(unit(1.9, DType::F64), f64::EPSILON);
    assert_eq!(unit(0.0, DType::F64), 5e-324);
    assert_eq!(unit(2f64.powi(-1022), DType::F64), 5e-324);
    assert_eq!(unit(2f64.powi(-980), DType::F64), 2f64.powi(-1000) * 2f64.powi(-32));
    assert_eq!(unit(1.5, DType::F32), f64::from(f32::EPSILON));
    assert_eq!(unit(0.0, DType::F32), f64::from(f32::from_bits(1)));
    assert_eq!(error(1.0 + f64::EPSILON, (1.0, 0.25, 0.0), DType::F64), 0.75);
    assert_eq!(error(1.0, (f64::INFINITY, 0.0, 0.0), DType::F64), f64::INFINITY);
    assert_eq!(error(f64::NAN, (1.0, 0.0, 0.0), DType::F64), f64::INFINITY);
}
