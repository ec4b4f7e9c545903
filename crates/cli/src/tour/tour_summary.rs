//! The three sentences at the end of `cuprum tour`: fast results, missing parts, and the next step. They are computed from the results
//! alone.

use super::{TourMeasurement, format_time};
use crate::tour::text_wrapping::count_with_noun;

/// An accelerator that is not available, with the reason and the advice that `cuprum info` shows.
pub struct MissingAccelerator {
    /// Name of the accelerator.
    pub name: String,
    /// Reason.
    pub why: String,
    /// Advice; empty if there is none.
    pub help: String,
}

/// Facts about the machine and the run that the results do not contain.
pub struct TourContext {
    /// Accelerators that are not available.
    pub missing: Vec<MissingAccelerator>,
    /// Whether the run used small arrays because of `--quick`.
    pub quick: bool,
    /// Whether the run used small arrays because the machine has little memory.
    pub little_memory: bool,
}

/// Minimum speed-up at which an accelerator order counts as faster than the device's own accelerator.
const MIN_NOTABLE_SPEEDUP: f64 = 1.1;

/// Returns the sentences "Fast here", "Missing here" and "Try next".
pub fn summary_sentences(results: &[TourMeasurement], context: &TourContext) -> [String; 3] {
    [fast_here_sentence(results), missing_here_sentence(results, context), next_step_sentence(results, context)]
}

/// Returns the valid results of the CPU if `on_cpu`, else of the other devices.
fn valid_results(results: &[TourMeasurement], on_cpu: bool) -> impl Iterator<Item = &TourMeasurement> {
    results.iter().filter(move |r| r.agrees && r.device_us.is_finite() && r.device_us > 0.0 && (r.device == "cpu") == on_cpu)
}

/// Returns the fastest result of each workload on the CPU if `on_cpu`, else on the other devices.
fn fastest_results(results: &[TourMeasurement], on_cpu: bool) -> Vec<&TourMeasurement> {
    let mut best: Vec<&TourMeasurement> = Vec::new();
    for result in valid_results(results, on_cpu) {
        match best.iter_mut().find(|b| b.work == result.work) {
            Some(b) if result.device_us < b.device_us => *b = result,
            Some(_) => {}
            None => best.push(result),
        }
    }
    best
}

/// Returns each workload's fastest results on another device and on the CPU, with the CPU's time divided by the device's time.
fn speedups_over_cpu(results: &[TourMeasurement]) -> Vec<(&TourMeasurement, f64)> {
    let on_cpu = fastest_results(results, true);
    let gain = |r: &TourMeasurement| on_cpu.iter().find(|c| c.work == r.work).map(|c| c.device_us / r.device_us);
    fastest_results(results, false).into_iter().filter_map(|r| gain(r).map(|g| (r, g))).collect()
}

fn largest_by_value<'a, T>(items: impl IntoIterator<Item = &'a (T, f64)>) -> Option<&'a (T, f64)>
where
    T: 'a,
{
    items.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

fn fast_here_sentence(results: &[TourMeasurement]) -> String {
    let gains = speedups_over_cpu(results);
    if let Some((best, gain)) = largest_by_value(&gains).filter(|(_, gain)| *gain > 1.0) {
        let faster = gains.iter().filter(|(_, g)| *g > 1.0).count();
        return format!(
            "Fast here: {} computes {} in {}, {gain:.1} times as fast as the CPU, and is faster in {faster} of {}.",
            best.device,
            best.work,
            format_time(best.device_us),
            count_with_noun(gains.len(), "workload")
        );
    }
    let rate = |amount: fn(&TourMeasurement) -> f64| {
        let rates: Vec<(&TourMeasurement, f64)> = valid_results(results, true).map(|r| (r, amount(r) / r.device_us / 1e3)).collect();
        largest_by_value(&rates).filter(|(_, rate)| *rate > 0.0).map(|&(r, rate)| (r.work, rate))
    };
    // Memory-bound operations are rated in bytes per second, matrix products in floating-point operations.
    let bytes = rate(|r| if r.flops > 0.0 { 0.0 } else { r.bytes }).map(|(work, rate)| format!("moves {rate:.1} GB/s in {work}"));
    let flops = rate(|r| r.flops).map(|(work, rate)| format!("computes {rate:.1} GFLOP/s in {work}"));
    match (bytes, flops) {
        (Some(b), Some(f)) => format!("Fast here: the CPU {b} and {f}."),
        (Some(one), None) | (None, Some(one)) => format!("Fast here: the CPU {one}."),
        (None, None) => "Fast here: no workload has a correct result.".into(),
    }
}

fn missing_here_sentence(results: &[TourMeasurement], context: &TourContext) -> String {
    let wrong = results.iter().filter(|r| !r.agrees).count();
    if wrong > 0 {
        return format!("Missing here: correct results; {wrong} of {} are wrong or failed.", count_with_noun(results.len(), "result"));
    }
    if !context.missing.is_empty() {
        let names: Vec<&str> = context.missing.iter().map(|m| m.name.as_str()).collect();
        let reason = &context.missing[0];
        return format!("Missing here: {}; {} reports: {}.", names.join(", "), reason.name, reason.why.trim_end_matches('.'));
    }
    let gains = speedups_over_cpu(results);
    let slower: Vec<&str> = gains.iter().filter(|(_, g)| *g < 1.0).map(|(r, _)| r.work).collect();
    match slower.as_slice() {
        [] => "Missing here: nothing; every accelerator is ready.".into(),
        names => format!("Missing here: speed of the other devices in {}, where the CPU is faster.", names.join(", ")),
    }
}

fn next_step_sentence(results: &[TourMeasurement], context: &TourContext) -> String {
    if let Some(wrong) = results.iter().find(|r| !r.agrees) {
        return format!("Try next: report {} on {} with the output of `cuprum info`.", wrong.work, wrong.device);
    }
    if let Some(accelerator) = context.missing.iter().find(|m| !m.help.is_empty()) {
        return format!("Try next: for {}, {}.", accelerator.name, accelerator.help.trim_end_matches('.'));
    }
    let base_time = |r: &TourMeasurement| results.iter().find(|b| b.work == r.work && b.device == r.device && b.accelerators.is_empty());
    let gains: Vec<(&TourMeasurement, f64)> = valid_results(results, false)
        .filter(|r| !r.accelerators.is_empty())
        .filter_map(|r| base_time(r).map(|b| (r, b.device_us / r.device_us)))
        .collect();
    match largest_by_value(&gains).filter(|(_, gain)| *gain >= MIN_NOTABLE_SPEEDUP) {
        Some((r, gain)) => format!(
            "Try next: `cuprum tune` and CUPRUM_ACCELERATORS=auto; {} is {gain:.1} times as fast as the base in {}.",
            r.accelerators, r.work
        ),
        None if context.quick => "Try next: `cuprum tour` without --quick, which measures large arrays.".into(),
        None if context.little_memory => "Try next: a machine with 12 GiB of memory, on which the tour measures large arrays.".into(),
        None => "Try next: `cuprum bench 'EXPRESSION'` with an expression of your own.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(work: &'static str, device: &str, accelerators: &str, us: f64) -> TourMeasurement {
        TourMeasurement {
            work,
            device: device.into(),
            accelerators: accelerators.into(),
            served_by: "cpu".into(),
            host_us: us,
            device_us: us,
            bytes: 8e6,
            flops: 0.0,
            error: Some(0.0),
            unit: "ulp",
            agrees: true,
            message: None,
        }
    }

    fn context() -> TourContext {
        TourContext { missing: vec![], quick: false, little_memory: false }
    }

    #[test]
    fn cpu_alone_reports_rates_and_the_missing_accelerators() {
        let product = TourMeasurement { flops: 2e9, ..result("matmul", "cpu", "", 20_000.0) };
        let results = [result("add", "cpu", "", 400.0), product];
        let missing = vec![
            MissingAccelerator { name: "cuda".into(), why: "no driver".into(), help: "install the NVIDIA driver".into() },
            MissingAccelerator { name: "cub".into(), why: "no cuda".into(), help: String::new() },
        ];
        let [fast, missing, next] = summary_sentences(&results, &TourContext { missing, ..context() });
        assert_eq!(fast, "Fast here: the CPU moves 20.0 GB/s in add and computes 100.0 GFLOP/s in matmul.");
        assert_eq!(missing, "Missing here: cuda, cub; cuda reports: no driver.");
        assert_eq!(next, "Try next: for cuda, install the NVIDIA driver.");
    }

    #[test]
    fn a_gpu_is_compared_with_the_cpu_and_orders_with_the_base() {
        let results = [
            result("add", "cpu", "", 1000.0),
            result("add", "cuda:0", "", 100.0),
            result("small", "cpu", "", 1.0),
            result("small", "cuda:0", "", 5.0),
            result("add", "cuda:0", "cub", 50.0),
        ];
        let [fast, missing, next] = summary_sentences(&results, &context());
        assert_eq!(fast, "Fast here: cuda:0 computes add in 50.0 us, 20.0 times as fast as the CPU, and is faster in 1 of 2 workloads.");
        assert_eq!(missing, "Missing here: speed of the other devices in small, where the CPU is faster.");
        assert!(next.ends_with("cub is 2.0 times as fast as the base in add."), "{next}");
    }

    #[test]
    fn wrong_results_come_first_and_odd_times_are_ignored() {
        let wrong = TourMeasurement { agrees: false, error: None, ..result("add", "cpu", "", 0.0) };
        let [fast, missing, next] = summary_sentences(&[wrong, result("nan", "cpu", "", f64::NAN)], &context());
        assert_eq!(fast, "Fast here: no workload has a correct result.");
        assert_eq!(missing, "Missing here: correct results; 1 of 2 results are wrong or failed.");
        assert_eq!(next, "Try next: report add on cpu with the output of `cuprum info`.");
        assert!(summary_sentences(&[], &context()).iter().all(|s| s.ends_with('.')));
    }
}
