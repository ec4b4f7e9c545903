//! `cuprum info --ops`: the dtypes that the accelerator `cub` accepts for each operation, and why it declines others.

use cuprum::backend_cub::{self, CoverageRow};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal_output::empty_table;

/// Returns the accepted dtypes of each operation and kind of call, and the other dtypes grouped by reason.
///
/// # Errors
///
/// Returns an error if the coverage cannot be determined.
pub fn coverage_report() -> Result<Value, Failure> {
    let mut all = backend_cub::coverage_table()?;
    // The sort is stable, so that dtypes keep their order within an operation.
    all.sort_by_key(|c| (c.op.index(), c.op.name(), c.case));
    let rows = all.chunk_by(|a, b| (a.op, a.case) == (b.op, b.case)).map(operation_coverage_as_json);
    Ok(json!({"accelerator": backend_cub::CUB.name, "operations": rows.collect::<Vec<_>>()}))
}

fn operation_coverage_as_json(coverage: &[CoverageRow]) -> Value {
    let dtypes =
        |why: Option<&str>| -> Vec<&str> { coverage.iter().filter(|c| c.declined.as_deref() == why).map(|c| c.dtype.name()).collect() };
    let mut reasons: Vec<&str> = Vec::new();
    for why in coverage.iter().filter_map(|c| c.declined.as_deref()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let declined: Vec<Value> = reasons.into_iter().map(|why| json!({"why": why, "dtypes": dtypes(Some(why))})).collect();
    let first = coverage.first();
    json!({"family": first.map(|c| format!("{:?}", c.family)), "operation": first.map(|c| c.op.name()),
        "case": first.map(|c| c.case), "taken": dtypes(None), "declined": declined})
}

/// Returns the JSON `report` as a table.
pub fn format_report(report: &Value) -> String {
    let word = |v: &Value| v.as_str().unwrap_or_default().to_string();
    let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
    let names = |v: &Value| list(v).iter().map(word).collect::<Vec<_>>();
    let accelerator = word(&report["accelerator"]);
    let mut rows = empty_table(&["family", "operation", "", &accelerator, "declines"]);
    for row in list(&report["operations"]) {
        let (taken, declined) = (names(&row["taken"]), list(&row["declined"]));
        let all = declined.is_empty();
        let why = |d: &Value| {
            if taken.is_empty() && declined.len() == 1 {
                word(&d["why"])
            } else {
                format!("{}: {}", names(&d["dtypes"]).join(" "), word(&d["why"]))
            }
        };
        let reasons: Vec<String> = declined.iter().map(why).collect();
        let takes = if all {
            "every dtype".to_string()
        } else if taken.is_empty() {
            "none".into()
        } else {
            taken.join(" ")
        };
        rows.add_row([word(&row["family"]), word(&row["operation"]), word(&row["case"]), takes, reasons.join("\n")]);
    }
    format!("{rows}\n")
}
