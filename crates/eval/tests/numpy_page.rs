//! `docs/numpy.md`: its lists of functions follow from the declarations, and its NumPy expressions run.
//!
//!     CUPRUM_UPDATE=1 cargo test -p cuprum-eval --test numpy_page    # writes the lists

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cuprum_backend_cpu as _;
use cuprum_eval::{EvalErrorKind, Function, Session};

/// The public names of NumPy, written by `scripts/numpy_names.py`.
const NUMPY: &str = include_str!("../src/numpy_names.txt");
const BEGIN: &str = "<!-- lists of functions: begin -->\n";
const END: &str = "<!-- lists of functions: end -->\n";

fn page_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/numpy.md")
}

/// A public name of NumPy: its kind, its path, its parameters if NumPy documents them, and the reason if cuprum excludes it.
struct Listed {
    kind: &'static str,
    path: &'static str,
    parameters: Option<&'static str>,
    unplanned: Option<&'static str>,
}

fn listed(line: &'static str) -> Listed {
    let (line, unplanned) = line.rsplit_once(" # ").map_or((line, None), |(line, why)| (line, Some(why)));
    let (kind, line) = line.split_once(' ').expect("a line begins with a kind");
    match line.split_once('(') {
        Some((path, parameters)) => Listed { kind, path, parameters: parameters.strip_suffix(')'), unplanned },
        None => Listed { kind, path: line, parameters: None, unplanned },
    }
}

impl Listed {
    /// Returns the Rust item that takes the place of this name, if `eval` lacks the name.
    fn in_rust(&self) -> Option<&'static str> {
        self.unplanned?.strip_prefix("in Rust: ")
    }

    /// Returns the row of the summary table in which this name is counted.
    fn group(&self) -> &'static str {
        match (self.path.split_once('.').map(|(namespace, _)| namespace), self.kind) {
            (None, "function" | "ufunc") => "functions and ufuncs",
            (None, _) => "types, classes and constants",
            (Some("linalg" | "fft"), _) => "`linalg` and `fft`",
            (Some(_), _) => "`random` and `polynomial`",
        }
    }
}

/// Returns whether `path` is a type, a constant or another name that is not a declared function.
fn is_value(path: &str) -> bool {
    match Session::new().run(&format!("np.{path}")) {
        Ok(_) => true,
        Err(error) => error.kind() != EvalErrorKind::Name,
    }
}

/// The number of names that are the same, differ, are in Rust only, and are absent.
#[derive(Clone, Copy, Default)]
struct Counts([usize; 4]);

/// A parameter of a signature in Python's notation.
#[derive(Debug)]
struct Parameter<'a> {
    name: &'a str,
    default: Option<&'a str>,
}

/// Splits a signature at its top-level commas. `*args` and the markers `/` and `*` are left out.
fn parameters(signature: &str) -> Vec<Parameter<'_>> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (at, c) in signature.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&signature[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&signature[start..]);
    let named = parts.into_iter().map(str::trim).filter(|p| !p.is_empty() && *p != "/" && !p.starts_with('*'));
    named
        .map(|p| match p.split_once('=') {
            Some((name, default)) => Parameter { name, default: Some(default) },
            None => Parameter { name: p, default: None },
        })
        .collect()
}

/// Returns the differences between NumPy's parameters and the declared ones, as phrases. Parameters in `unsupported`, which no function
/// here takes, are not mentioned.
fn differences(numpy: &str, declared: &str, unsupported: &BTreeSet<&str>) -> Vec<String> {
    let (theirs, ours) = (parameters(numpy), parameters(declared));
    let position = |list: &[Parameter], name: &str| list.iter().position(|p| p.name == name);
    let mut phrases = Vec::new();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for (at, p) in theirs.iter().enumerate().filter(|(_, p)| !unsupported.contains(p.name)) {
        match position(&ours, p.name) {
            Some(found) => {
                if let (Some(a), Some(b)) = (p.default, ours[found].default)
                    && a != b
                    && a != "?"
                    && a.parse::<f64>().ok().zip(b.parse::<f64>().ok()).is_none_or(|(a, b)| a != b)
                    && !(a == "float" && b == "None")
                {
                    phrases.push(format!("`{}={b}` by default", p.name));
                }
            }
            None => match ours.get(at).filter(|q| q.default.is_some() == p.default.is_some() && position(&theirs, q.name).is_none()) {
                Some(renamed) => phrases.push(format!("`{}` is named `{}`", p.name, renamed.name)),
                None => without.push(format!("`{}`", p.name)),
            },
        }
    }
    for (at, p) in ours.iter().enumerate().filter(|(_, p)| position(&theirs, p.name).is_none()) {
        let is_rename = theirs.get(at).is_some_and(|q| {
            q.default.is_some() == p.default.is_some() && position(&ours, q.name).is_none() && !unsupported.contains(q.name)
        });
        if !is_rename {
            with.push(format!("`{}`", p.name));
        }
    }
    phrases.extend((!without.is_empty()).then(|| format!("without {}", without.join(", "))));
    phrases.extend((!with.is_empty()).then(|| format!("also {}", with.join(", "))));
    phrases
}

fn code_list(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the generated part of the page: the summary table and the lists of functions.
fn lists() -> String {
    let numpy: Vec<Listed> = NUMPY.lines().map(listed).collect();
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut count = |l: &Listed, column: usize| counts.entry(l.group()).or_default().0[column] += 1;
    let present: Vec<(&Listed, &Function)> = numpy.iter().filter_map(|l| Some((l, Function::find(l.path)?))).collect();
    let ours: BTreeSet<&str> = present.iter().flat_map(|(_, f)| parameters(f.parameters.text)).map(|p| p.name).collect();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for p in present.iter().filter_map(|(l, _)| l.parameters).flat_map(parameters) {
        *uses.entry(p.name).or_default() += 1;
    }
    // Parameters that at least three NumPy functions take, but no function here. The page states them once.
    let unsupported: BTreeSet<&str> = uses.iter().filter(|(name, n)| **n >= 3 && !ours.contains(*name)).map(|(name, _)| *name).collect();

    let mut same = Vec::new();
    let mut differing: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (l, function) in &present {
        let mut phrases = l.parameters.map_or_else(Vec::new, |numpy| differences(numpy, function.parameters.text, &unsupported));
        phrases.extend((!function.differs.is_empty()).then(|| function.differs.to_owned()));
        count(l, usize::from(!phrases.is_empty()));
        if phrases.is_empty() {
            same.push(l.path);
        } else {
            differing.entry(phrases.join("; ")).or_default().push(l.path);
        }
    }
    let (values, rest): (Vec<&Listed>, Vec<&Listed>) =
        numpy.iter().filter(|l| Function::find(l.path).is_none()).partition(|l| is_value(l.path));
    let (rust, absent): (Vec<&Listed>, Vec<&Listed>) = rest.into_iter().partition(|l| l.in_rust().is_some());
    for (list, column) in [(&values, 0), (&rust, 2), (&absent, 3)] {
        list.iter().for_each(|l| count(l, column));
    }
    let values: Vec<&str> = values.iter().map(|l| l.path).collect();
    let planned: Vec<&str> = absent.iter().filter(|l| l.unplanned.is_none()).map(|l| l.path).collect();
    let mut unplanned: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for l in &absent {
        if let Some(why) = l.unplanned {
            unplanned.entry(why).or_default().push(l.path);
        }
    }
    let known: BTreeSet<&str> = numpy.iter().map(|l| l.path).collect();
    let all = cuprum_eval::functions();
    let extra: Vec<String> = all
        .iter()
        .map(|f| f.path())
        .filter(|p| !known.contains(p.as_str()) && !p.starts_with("ndarray.") && !p.starts_with("ufunc."))
        .collect();
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();

    let mut out =
        "| names of NumPy 2.4 | all | the same | differ as stated | in Rust only | absent |\n|---|---|---|---|---|---|\n".to_owned();
    let total = counts.values().fold(Counts::default(), |sum, row| Counts(std::array::from_fn(|i| sum.0[i] + row.0[i])));
    for (name, Counts(row)) in counts.into_iter().chain([("all", total)]) {
        let cells: Vec<String> = row.iter().map(usize::to_string).collect();
        out += &format!("| {name} | {} | {} |\n", row.iter().sum::<usize>(), cells.join(" | "));
    }
    out +=
        &format!("\nNo function takes {}; the lists do not repeat that.\n\n", code_list(&unsupported.iter().copied().collect::<Vec<_>>()),);
    let declared: Vec<_> = Function::all().filter(|function| function.rust.starts_with("cuprum")).collect();
    let compositions = declared.iter().filter(|function| function.rust.starts_with("cuprum_numpy")).count();
    out += &format!(
        "Of {} declared functions and methods, {compositions} are compositions of the others (crate `cuprum-numpy`). For most that take several \
         passes over memory, the documentation counts them. The others are one operation, or a view.\n\n",
        declared.len()
    );
    out += &format!("**The same:** {}.\n\n", code_list(&same));
    let rows: String = differing.iter().map(|(how, names)| format!("| {} | {how} |\n", code_list(names))).collect();
    out += &format!("| NumPy | differs |\n|---|---|\n{rows}\n");
    out += &format!("**Types and constants, the same:** {}.\n\n", code_list(&values));
    out += &format!("**Only here:** {}.\n\n", code_list(&extra));
    let rust: Vec<String> = rust.iter().map(|l| format!("`{}` (`{}`)", l.path, l.in_rust().unwrap_or_default())).collect();
    out += &format!("**In Rust only:** {}.\n\n", rust.join(", "));
    for (why, names) in unplanned {
        out += &format!("**Absent, {why}:** {}.\n\n", code_list(&names));
    }
    out + &format!("**Not yet:** {}.\n", code_list(&planned))
}

#[test]
fn lists_follow_from_the_declarations() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (head, rest) = page.split_once(BEGIN).expect("the page has a line that begins the lists");
    let (_, tail) = rest.split_once(END).expect("the page has a line that ends the lists");
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", lists());
    if std::env::var_os("CUPRUM_UPDATE").is_some() {
        // The draft is renamed to the page, so that the other test never reads a partly written page.
        let draft = page_path().with_extension("md.new");
        std::fs::write(&draft, &wanted).unwrap();
        std::fs::rename(draft, page_path()).unwrap();
    } else {
        assert!(page == wanted, "docs/numpy.md is out of date: CUPRUM_UPDATE=1 cargo test -p cuprum-eval --test numpy_page");
    }
}

/// Returns the code spans of a Markdown table cell.
fn spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn numpy_expressions_of_the_page_run() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (_, rest) = page.split_once("```python\n").expect("the page has a set-up block");
    let (set_up, rest) = rest.split_once("```").expect("the block ends");
    let table = rest.split_once("\n## ").map_or(rest, |(table, _)| table);
    let (mut count, mut failed) = (0, Vec::new());
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split(" | ").next().unwrap();
        for source in spans(cell) {
            let mut session = Session::new();
            session.on_print(|_| {});
            session.run(set_up).unwrap();
            count += 1;
            if let Err(error) = session.run(source) {
                failed.push(format!("{source}: {error}"));
            }
        }
    }
    assert!(count > 50, "{count} expressions");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
