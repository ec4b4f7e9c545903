//! Curves of time by size. Rows of one function are named `FUNCTION_2^POWER`, such as `add_f32_2^20`.

use std::fmt::Write;

use super::html_page::escape_html;
use super::measurements::WorkloadRow;

/// The measurements of one function at several sizes.
struct SizeSweep<'a> {
    function: &'a str,
    /// Names of the libraries, cuprum first, with logarithms of the number of elements (base 2) and of the time in us (base 10).
    curves: Vec<(&'a str, Vec<(f64, f64)>)>,
}

/// Minimum number of measured sizes for which a curve is drawn.
const MIN_SIZES_PER_CURVE: usize = 3;

/// Returns a chart for each function with several sizes, or an empty string if there is no such function.
pub fn size_sweep_charts(rows: &[WorkloadRow], peers: &[&str]) -> String {
    let charts: String = group_rows_into_sweeps(rows, peers).iter().map(size_sweep_chart).collect();
    if charts.is_empty() { charts } else { format!("<h2>Time by size</h2>\n<div class=\"sweeps\">\n{charts}</div>\n") }
}

/// Returns the function and the power of two of the size that the name of a workload states.
pub fn split_workload_name(workload: &str) -> Option<(&str, u32)> {
    let (function, power) = workload.rsplit_once("_2^")?;
    Some((function, power.parse().ok().filter(|power| *power < 64)?))
}

fn group_rows_into_sweeps<'a>(rows: &'a [WorkloadRow], peers: &[&'a str]) -> Vec<SizeSweep<'a>> {
    let mut sized: Vec<(&str, u32, &WorkloadRow)> =
        rows.iter().filter_map(|r| split_workload_name(r.workload).map(|(f, power)| (f, power, r))).collect();
    sized.sort_by_key(|(function, power, _)| (*function, *power));
    sized
        .chunk_by(|a, b| a.0 == b.0)
        .filter(|points| points.len() >= MIN_SIZES_PER_CURVE)
        .map(|points| {
            let curve = |us: &dyn Fn(&WorkloadRow) -> Option<f64>| -> Vec<(f64, f64)> {
                points.iter().filter_map(|(_, power, row)| Some((f64::from(*power), us(row)?.log10()))).collect()
            };
            let own = ("cuprum", curve(&|row| Some(row.subject.us)));
            let others = peers.iter().enumerate().map(|(n, peer)| (*peer, curve(&|row| row.peers[n].map(|m| m.us))));
            SizeSweep {
                function: points[0].0,
                curves: [own].into_iter().chain(others).filter(|(_, curve)| curve.len() >= MIN_SIZES_PER_CURVE).collect(),
            }
        })
        .collect()
}

/// Returns the chart of one function. Both axes are logarithmic. A label at the right end of each curve names its library.
fn size_sweep_chart(sweep: &SizeSweep) -> String {
    const CHART_WIDTH: f64 = 420.0;
    const CHART_HEIGHT: f64 = 260.0;
    const LEFT_MARGIN: f64 = 48.0;
    const RIGHT_MARGIN: f64 = 80.0;
    const BOTTOM_MARGIN: f64 = 24.0;
    const TOP_MARGIN: f64 = 8.0;
    let points = || sweep.curves.iter().flat_map(|(_, curve)| curve);
    let extent = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let (low, high) = points().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        (low.floor(), high.ceil().max(low.floor() + 1.0))
    };
    let ((first, last), (fastest, slowest)) = (extent(&|p| p.0), extent(&|p| p.1));
    let x = |power: f64| LEFT_MARGIN + (power - first) / (last - first) * (CHART_WIDTH - LEFT_MARGIN - RIGHT_MARGIN);
    let y = |log: f64| TOP_MARGIN + (slowest - log) / (slowest - fastest) * (CHART_HEIGHT - TOP_MARGIN - BOTTOM_MARGIN);
    let function = escape_html(sweep.function);
    let mut svg = format!(
        "<figure><figcaption>{function}</figcaption><svg role=\"img\" viewBox=\"0 0 {CHART_WIDTH} {CHART_HEIGHT}\" width=\"{CHART_WIDTH}\"><title>{function}: \
         time in us by number of elements, both axes logarithmic</title>\n"
    );
    for decade in fastest as i32..=slowest as i32 {
        let at = y(f64::from(decade));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT_MARGIN}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"0\" y=\"{:.1}\">{}</text>",
            CHART_WIDTH - RIGHT_MARGIN,
            at + 4.0,
            duration_label(decade)
        );
    }
    for power in (first as u32..=last as u32).step_by(4) {
        let at = x(f64::from(power));
        let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">2^{power}</text>", CHART_HEIGHT - 4.0);
    }
    // Labels at the ends of curves must not overlap, so each is moved below the one above it.
    let mut ends: Vec<(usize, f64)> = sweep.curves.iter().enumerate().map(|(n, (_, curve))| (n, y(curve[curve.len() - 1].1))).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut lowest = f64::NEG_INFINITY;
    for (n, at) in ends {
        let (library, curve) = &sweep.curves[n];
        let path: Vec<String> = curve.iter().map(|(power, log)| format!("{:.1},{:.1}", x(*power), y(*log))).collect();
        lowest = at.max(lowest + 13.0);
        let _ = writeln!(
            svg,
            "<polyline class=\"curve c{}\" points=\"{}\"/><text class=\"c{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            n.min(5),
            path.join(" "),
            n.min(5),
            CHART_WIDTH - RIGHT_MARGIN + 4.0,
            lowest + 4.0,
            escape_html(library)
        );
    }
    svg + "</svg></figure>\n"
}

/// Returns a label for 10^`decade` microseconds.
fn duration_label(decade: i32) -> String {
    let (unit, scale) = match decade {
        ..0 => ("ns", 3),
        0..3 => ("us", 0),
        3..6 => ("ms", -3),
        _ => ("s", -6),
    };
    let digits = decade + scale;
    if (0..9).contains(&digits) { format!("{} {unit}", 10i64.pow(digits as u32)) } else { format!("1e{digits} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::super::measurements::Measurements;
    use super::*;

    fn line(peer: &str, workload: &str, us: f64) -> String {
        format!("{{\"peer\": \"{peer}\", \"workload\": \"{workload}\", \"us\": {us}}}\n")
    }

    fn charts_of(lines: &[String]) -> String {
        let mut measurements = Measurements::default();
        measurements.read_json_lines("file.log", &lines.concat());
        size_sweep_charts(&measurements.workload_rows(), &measurements.peer_names())
    }

    #[test]
    fn names_state_function_and_size() {
        assert_eq!(split_workload_name("add_f32_2^20"), Some(("add_f32", 20)));
        for other in ["add_f32_128M", "add_2^x", "add_2^", "add_2^64", "2^3"] {
            assert_eq!(split_workload_name(other), None, "{other}");
        }
    }

    #[test]
    fn each_function_has_a_curve_per_library_in_order_of_size() {
        let mut lines = Vec::new();
        for power in [12, 8, 10] {
            lines.push(line("cuprum", &format!("add_2^{power}"), f64::from(power)));
            lines.push(line("numpy", &format!("add_2^{power}"), 10.0 * f64::from(power)));
        }
        lines.extend([8, 10].map(|power| line("jax", &format!("add_2^{power}"), 5.0)));
        lines.extend([8, 10].map(|power| line("cuprum", &format!("few_2^{power}"), 5.0)));
        lines.push(line("cuprum", "add_128M", 5.0));
        let html = charts_of(&lines);
        assert_eq!(html.matches("<figure>").count(), 1, "{html}");
        assert_eq!(html.matches("<polyline").count(), 2, "jax has two sizes: {html}");
        assert!(html.contains(">cuprum</text>") && html.contains(">numpy</text>") && html.contains(">2^8</text>"), "{html}");
        let curve = html.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let xs: Vec<f64> = curve.split(' ').map(|point| point.split(',').next().unwrap().parse().unwrap()).collect();
        assert!(xs.windows(2).all(|pair| pair[0] < pair[1]), "{xs:?}");
    }

    #[test]
    fn extreme_and_hostile_rows_give_finite_coordinates() {
        let lines: Vec<String> = [(8, 1e-6), (9, 1e15), (63, 1.0)].map(|(p, us)| line("cuprum", &format!("<b>_2^{p}"), us)).into();
        let html = charts_of(&lines);
        assert!(html.contains("&lt;b&gt;") && !html.contains("<b>") && !html.contains("NaN") && !html.contains("inf"), "{html}");
        assert_eq!(charts_of(&[]), "");
    }

    #[test]
    fn labels_of_times_have_units() {
        assert_eq!([-1, 0, 2, 3, 6, 9].map(duration_label), ["100 ns", "1 us", "100 us", "1 ms", "1 s", "1000 s"]);
    }
}
