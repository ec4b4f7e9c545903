//! The HTML of the report. Text from input files is escaped.

use std::fmt::Write;

use serde_json::Value;

use super::measurements::{Measurements, WorkloadRow, geometric_mean, operation_of_workload};
use super::size_sweeps;

/// CSS of the page, for light and dark mode and for print. A word marks losses, so that they do not depend on colour alone.
const PAGE_CSS: &str = "\
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--line:#bbb;--win:#0b6e4f;--loss:#a63d00}\
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#161616;--line:#555;--win:#5cc8a0;--loss:#ff9d5c}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:80rem;margin:auto;padding:1rem}\
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{border:1px solid var(--line);padding:.2rem .5rem;text-align:right}\
th:first-child,td:first-child{text-align:left}pre{white-space:pre-wrap;overflow-wrap:anywhere}\
.loss{color:var(--loss);font-weight:bold}svg text{fill:var(--ink);font:12px sans-serif}svg .win{fill:var(--win)}svg .loss{fill:var(--loss)}\
svg line{stroke:var(--line)}.sweeps{display:flex;flex-wrap:wrap}figure{margin:.5rem}.curve{fill:none;stroke-width:2}\
.c0{stroke:#0b6e4f;stroke-width:3}.c1{stroke:#a63d00}.c2{stroke:#3b5bbf}.c3{stroke:#8a3fa0}.c4{stroke:#7a6a00}.c5{stroke:#777}\
svg text[class^=c]{stroke:none}@media print{body{max-width:none;background:#fff;color:#000}table{display:table;font-size:9px}}";

/// The rules that make the measurements comparable, as shown on the page.
const MEASUREMENT_RULES: [&str; 5] = [
    "All libraries compute the same workload with the same dtypes and shapes.",
    "Each peer uses its best public idiom; the scripts of the peers show the code.",
    "Times are medians after warm-up calls: device time on a GPU, time of the call and its evaluation on a CPU.",
    "Of several runs of a workload by one library, the run with the shortest median counts, for every library.",
    "A ratio is the time of the fastest peer divided by the time of cuprum: above 1, cuprum is faster.",
];

/// Returns `text` escaped for HTML. Control characters become U+FFFD.
pub(super) fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' => escaped.push('\n'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns the page.
pub fn render_html_page(measurements: &Measurements, limits: &[(usize, f64)], machine: &Value, note: Option<&str>) -> String {
    let rows = measurements.workload_rows();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>cuprum: measurements</title><style>{PAGE_CSS}</style></head><body>\n<h1>cuprum: measurements</h1>\n"
    );
    if let Some(note) = note {
        page += &format!("<p>{}</p>\n", escape_html(note));
    }
    page += &machine_table(machine);
    page += &format!("<h2>Rules</h2>\n<ul>{}</ul>\n", MEASUREMENT_RULES.iter().map(|rule| format!("<li>{rule}</li>")).collect::<String>());
    page += &speed_ratio_summary(&rows);
    page += &speed_ratio_bar_chart(&rows);
    page += &size_sweeps::size_sweep_charts(&rows, &measurements.peer_names());
    page += &workload_table(&rows, &measurements.peer_names(), limits);
    if !measurements.unused.is_empty() {
        let items: String = measurements.unused.iter().map(|u| format!("<li>{}</li>", escape_html(u))).collect();
        page += &format!("<h2>Lines without a time</h2>\n<ul>{items}</ul>\n");
    }
    let lines = escape_html(measurements.json_lines());
    page + &format!("<h2>Lines</h2>\n<details><summary>All JSON lines</summary><pre>{lines}</pre></details>\n</body></html>\n")
}

/// Returns a table with the properties of the machine, or an empty string if they are unknown.
fn machine_table(machine: &Value) -> String {
    let word = |v: &Value| v.as_str().map(str::to_string).unwrap_or_else(|| if v.is_null() { String::new() } else { v.to_string() });
    let mut facts = vec![("cuprum".to_string(), word(&machine["version"])), ("threads".to_string(), word(&machine["threads"]))];
    for device in machine["devices"].as_array().into_iter().flatten() {
        let details = device["details"].as_object().into_iter().flatten().map(|(name, value)| format!(", {name} {}", word(value)));
        facts.push((word(&device["device"]), format!("{}{}", word(&device["name"]), details.collect::<String>())));
    }
    let rows: String = facts
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape_html(name), escape_html(value)))
        .collect();
    if rows.is_empty() { String::new() } else { format!("<h2>Machine</h2>\n<table>{rows}</table>\n") }
}

/// Returns the geometric means of the speed ratios: of all rows, and of each operation.
fn speed_ratio_summary(rows: &[WorkloadRow]) -> String {
    let ratios = |wanted: Option<&str>| -> Vec<f64> {
        rows.iter().filter(|r| wanted.is_none_or(|w| operation_of_workload(r.workload) == w)).filter_map(|r| r.ratio).collect()
    };
    let all = ratios(None);
    let Some(mean) = geometric_mean(&all) else {
        return "<h2>Summary</h2>\n<p>No workload has a peer.</p>\n".into();
    };
    let losses = all.iter().filter(|r| **r < 1.0).count();
    let mut operations: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|r| r.ratio.is_some()) {
        if !operations.contains(&operation_of_workload(row.workload)) {
            operations.push(operation_of_workload(row.workload));
        }
    }
    let mut means: Vec<(f64, &str, usize)> =
        operations.iter().filter_map(|o| geometric_mean(&ratios(Some(o))).map(|mean| (mean, *o, ratios(Some(o)).len()))).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let table: String = means
        .iter()
        .map(|(mean, name, count)| format!("<tr><td>{}</td><td>{count}</td><td>{mean:.2}</td></tr>\n", escape_html(name)))
        .collect();
    format!(
        "<h2>Summary</h2>\n<p>Geometric mean {mean:.2}x the fastest peer over {} workloads; {losses} below 1.</p>\n\
         <table><tr><th>operation</th><th>workloads</th><th>geometric mean</th></tr>\n{table}</table>\n",
        all.len()
    )
}

/// Returns a bar chart of the speed ratios on a logarithmic axis. The bars of workloads in which another
/// library is faster extend to the left of 1x, all other bars to the right.
fn speed_ratio_bar_chart(rows: &[WorkloadRow]) -> String {
    // The chart leaves out workloads whose names state a size. `size_sweeps::size_sweep_charts` shows their times as curves.
    let single = rows.iter().filter(|r| size_sweeps::split_workload_name(r.workload).is_none());
    let bars: Vec<(&str, f64)> = single.filter_map(|r| Some((r.workload, r.ratio?))).collect();
    if bars.is_empty() {
        return String::new();
    }
    const LABEL_WIDTH: f64 = 260.0;
    const CHART_WIDTH: f64 = 900.0;
    let extent = |sign: f64| bars.iter().map(|(_, r)| sign * r.log10()).fold(0.05, f64::max);
    let (left, right) = (extent(-1.0), extent(1.0));
    let x = |log: f64| LABEL_WIDTH + (log + left) / (left + right) * (CHART_WIDTH - LABEL_WIDTH - 60.0);
    let height = bars.len() * 18 + 10;
    let mut svg = format!(
        "<h2>Ratios</h2>\n<svg role=\"img\" viewBox=\"0 0 {CHART_WIDTH} {height}\" width=\"100%\"><title>Time of the fastest peer divided by \
         cuprum's time, logarithmic axis, losses first</title>\n"
    );
    for (number, (workload, ratio)) in bars.iter().enumerate() {
        let (from, to, y) = (x(ratio.log10().min(0.0)), x(ratio.log10().max(0.0)), number * 18 + 5);
        let class = if *ratio < 1.0 { "loss" } else { "win" };
        let label: String = workload.chars().take(36).collect();
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{}\">{}</text><rect class=\"{class}\" x=\"{from:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"13\"/>\
             <text x=\"{:.1}\" y=\"{}\">{ratio:.2}x</text>",
            y + 11,
            escape_html(&label),
            (to - from).max(1.0),
            to + 4.0,
            y + 11
        );
    }
    let one = x(0.0);
    svg + &format!("<line x1=\"{one:.1}\" x2=\"{one:.1}\" y1=\"0\" y2=\"{height}\"/></svg>\n")
}

/// Returns the HTML table of all rows.
fn workload_table(rows: &[WorkloadRow], peers: &[&str], limits: &[(usize, f64)]) -> String {
    let mut head =
        String::from("<th>workload</th><th>x best</th><th>median us</th><th>minimum us</th><th>rate</th><th>of limit</th><th>by</th>");
    head.extend(peers.iter().map(|peer| format!("<th>{} us</th>", escape_html(peer))));
    let time = |us: f64| format!("{us:.2}");
    let mut body = String::new();
    for row in rows {
        let subject = row.subject;
        let ratio = row.ratio.map_or(String::new(), |r| match r < 1.0 {
            true => format!("<span class=\"loss\">{r:.2} slower</span>"),
            false => format!("{r:.2}"),
        });
        let cells = [
            escape_html(row.workload),
            ratio,
            time(subject.us),
            subject.min_us.map_or(String::new(), time),
            subject.format_rate().unwrap_or_default(),
            subject.fraction_of_limit(limits).map_or(String::new(), |s| format!("{:.0} %", 100.0 * s)),
            escape_html(&subject.served_by),
        ];
        let peers = row.peers.iter().map(|p| p.map_or(String::new(), |m| time(m.us)));
        let cells: String = cells.into_iter().chain(peers).map(|cell| format!("<td>{cell}</td>")).collect();
        let _ = writeln!(body, "<tr>{cells}</tr>");
    }
    format!("<h2>Workloads</h2>\n<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> String {
        let mut measurements = Measurements::default();
        measurements.read_json_lines("file.log", text);
        render_html_page(&measurements, &[(0, 50.0)], &Value::Null, Some("note"))
    }

    const LINES: &str = r#"
{"peer": "cuprum", "workload": "add_f32", "us": 10.0, "min_us": 9.0, "GB_s": 40.0, "served_by": "cpu"}
{"peer": "cuprum", "workload": "sum_f32", "us": 5.0}
{"peer": "cuprum", "workload": "sum_f32", "us": 4.0}
{"peer": "cuprum", "workload": "lone", "us": 4.0}
{"peer": "numpy", "workload": "add_f32", "us": 20.0}
{"peer": "numpy", "workload": "sum_f32", "us": 2.0}
{"peer": "jax", "workload": "add_f32", "us": NaN}
{"peer": "jax", "workload": "sum_f32", "error": "no <memory>"}
{"peer": "numpy", "workload": "absent", "us": 1.0}
other output
"#;

    #[test]
    fn rows_are_sorted_with_losses_first() {
        let page = page(LINES);
        let rows: Vec<&str> = page.lines().filter(|l| l.starts_with("<tr><td>") && l.matches("<td>").count() > 3).collect();
        assert_eq!(
            rows,
            [
                "<tr><td>sum_f32</td><td><span class=\"loss\">0.50 slower</span></td><td>4.00</td><td></td><td></td><td></td><td></td><td>2.00</td></tr>",
                "<tr><td>add_f32</td><td>2.00</td><td>10.00</td><td>9.00</td><td>40.0 GB/s</td><td>80 %</td><td>cpu</td><td>20.00</td></tr>",
                "<tr><td>lone</td><td></td><td>4.00</td><td></td><td></td><td></td><td></td><td></td></tr>",
            ]
        );
        assert!(page.contains("Geometric mean 1.00x the fastest peer over 2 workloads; 1 below 1."), "{page}");
        assert!(page.contains("file.log, line 8: not valid JSON") && page.contains("sum_f32: jax: no &lt;memory&gt;"), "{page}");
        let headings: Vec<&str> = page.lines().filter_map(|l| l.split("<h2>").nth(1)?.split("</h2>").next()).collect();
        assert_eq!(headings, ["Rules", "Summary", "Ratios", "Workloads", "Lines without a time", "Lines"]);
    }

    #[test]
    fn hostile_names_are_escaped_and_nothing_is_loaded() {
        let name = r#"<script>alert('x')</script>\" onload=\"y\u0007"#;
        let lines: String = ["cuprum", name].map(|p| format!("{{\"peer\": \"{p}\", \"workload\": \"{name}\", \"us\": 1e-3}}\n")).concat();
        let page = page(&lines);
        assert!(!page.contains("<script") && !page.contains("\" onload") && !page.contains('\u{7}'), "{page}");
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("src=") && !page.contains("href="), "{page}");
    }

    #[test]
    fn extreme_times_are_not_used() {
        let line = |peer: &str, us: &str| format!("{{\"peer\": \"{peer}\", \"workload\": \"a\", \"us\": {us}, \"GB_s\": 1e300}}\n");
        let page =
            page(&(line("cuprum", "1.0") + &line("numpy", "1e300") + &line("jax", "1e-300") + &line("torch", "0") + &line("cupy", "-2")));
        assert!(page.contains("No workload has a peer.") && page.matches("a time between").count() == 4, "{page}");
        assert!(!page.contains(">NaN") && !page.contains("inf %") && !page.contains("<svg"), "{page}");
    }

    #[test]
    fn a_page_without_peers_or_rows_is_complete() {
        for text in ["", "{\"peer\": \"cuprum\", \"workload\": \"a\", \"us\": 1.0}\n", "{}\n{\"peer\": 3}\n{\"us\": -1}\n{"] {
            let page = page(text);
            assert!(page.contains("No workload has a peer.") && page.ends_with("</body></html>\n"), "{page}");
            assert!(!page.contains(">NaN") && !page.contains(">inf") && !page.contains("\"NaN\""), "{page}");
        }
    }
}
