//! `docs/numpy.md`: its lists of functions follow from the declarations, and its NumPy expressions run.
//!
//!     CUPRUM_UPDATE=1 cargo test -p cuprum-eval --test numpy_page    # writes the lists

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cuprum_backend_cpu as _;
use cuprum_eval::{Function, Session};

/// The public functions of NumPy, written by `scripts/numpy_names.py`.
const NUMPY: &str = include_str!("../src/numpy_names.txt");
const BEGIN: &str = "<!-- lists of functions: begin -->\n";
const END: &str = "<!-- lists of functions: end -->\n";

fn page_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/numpy.md")
}

/// A function of NumPy: path, parameters if they are known, and why it is not planned.
struct Listed {
    path: &'static str,
    parameters: Option<&'static str>,
    unplanned: Option<&'static str>,
}

fn listed(line: &'static str) -> Listed {
    let (line, unplanned) = line.rsplit_once(" # ").map_or((line, None), |(line, why)| (line, Some(why)));
    match line.split_once('(') {
        Some((path, parameters)) => Listed { path, parameters: parameters.strip_suffix(')'), unplanned },
        None => Listed { path: line, parameters: None, unplanned },
    }
}

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

/// Returns the differences of parameters, as phrases. Parameters in `nowhere` are not mentioned.
fn differences(numpy: &str, declared: &str, nowhere: &BTreeSet<&str>) -> Vec<String> {
    let (theirs, ours) = (parameters(numpy), parameters(declared));
    let position = |list: &[Parameter], name: &str| list.iter().position(|p| p.name == name);
    let mut phrases = Vec::new();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for (at, p) in theirs.iter().enumerate().filter(|(_, p)| !nowhere.contains(p.name)) {
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
        let is_rename = theirs
            .get(at)
            .is_some_and(|q| q.default.is_some() == p.default.is_some() && position(&ours, q.name).is_none() && !nowhere.contains(q.name));
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

/// Returns the lists of the page.
fn lists() -> String {
    let numpy: Vec<Listed> = NUMPY.lines().map(listed).collect();
    let present: Vec<(&Listed, &Function)> = numpy.iter().filter_map(|l| Some((l, Function::find(l.path)?))).collect();
    let ours: BTreeSet<&str> = present.iter().flat_map(|(_, f)| parameters(f.parameters.text)).map(|p| p.name).collect();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for p in present.iter().filter_map(|(l, _)| l.parameters).flat_map(parameters) {
        *uses.entry(p.name).or_default() += 1;
    }
    // A parameter that many functions of NumPy take and no function here is stated once.
    let nowhere: BTreeSet<&str> = uses.iter().filter(|(name, n)| **n >= 3 && !ours.contains(*name)).map(|(name, _)| *name).collect();

    let mut same = Vec::new();
    let mut differing: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (l, function) in &present {
        let is_ufunc = l.parameters.is_some_and(|p| p.contains("casting=") && p.contains("signature="));
        let mut unmentioned = nowhere.clone();
        unmentioned.extend(is_ufunc.then_some("dtype"));
        let mut phrases = l.parameters.map_or_else(Vec::new, |numpy| differences(numpy, function.parameters.text, &unmentioned));
        phrases.extend((!function.differs.is_empty()).then(|| function.differs.to_owned()));
        if phrases.is_empty() {
            same.push(l.path);
        } else {
            differing.entry(phrases.join("; ")).or_default().push(l.path);
        }
    }
    let absent: Vec<&Listed> = numpy.iter().filter(|l| Function::find(l.path).is_none()).collect();
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

    let mut out = format!(
        "Of {} public functions of NumPy 2.4, {} are the same, {} differ as stated, {} are absent.\n\
         No function takes {}, and no ufunc takes `dtype`; the lists do not repeat that.\n\n",
        numpy.len(),
        same.len(),
        differing.values().map(Vec::len).sum::<usize>(),
        absent.len(),
        code_list(&nowhere.iter().copied().collect::<Vec<_>>()),
    );
    out += &format!("**The same:** {}.\n\n", code_list(&same));
    let rows: String = differing.iter().map(|(how, names)| format!("| {} | {how} |\n", code_list(names))).collect();
    out += &format!("| NumPy | differs |\n|---|---|\n{rows}\n");
    out += &format!("**Only here:** {}.\n\n", code_list(&extra));
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
        // Renamed, since the other test reads the page at the same time.
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
