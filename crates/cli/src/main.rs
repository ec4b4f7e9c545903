//! The `cuprum` command: parses the command line and converts failures to a message and an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cuprum::expressions::Session;
use cuprum::profiler::{BenchmarkLimits, trace};
use cuprum::{Device, warm_up};
use cuprum_cli::device_options::{self, DeviceOptions};
use cuprum_cli::failure::Failure;
use cuprum_cli::{bench, eval, info, report, sigpipe, terminal_output, tour, tune, variable_bindings};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

const HELP_EXAMPLES: &str = "\
Examples:
  cuprum info                                            lists devices, accelerators and settings
  cuprum tour                                            runs workloads on every device, checks and times them
  cuprum eval 'sqrt(sum(a**2, axis=-1))' a=a.npy -o norms.npy
  cuprum bench 'sqrt(sum(a**2, axis=-1))' a='random((256, 1024))'
  cuprum warm-up                                         compiles common kernels into the cache

Exit codes: 0 success; 1 a run failed, its output could not be written, or a result disagreed;
2 bad input, such as a path that cannot be opened.";

/// N-dimensional arrays with NumPy's semantics, on the best accelerator of the machine.
#[derive(Parser, Debug)]
#[command(name = "cuprum", version, after_help = HELP_EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Info(info::InfoArguments),
    Tour(TourArguments),
    Eval(eval::EvalArguments),
    Bench(BenchArguments),
    Tune(tune::TuneArguments),
    WarmUp(WarmUpArguments),
}

/// Compile the kernels of common calls into the cache folder, so that later programs start without compiling them.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  CUPRUM_CACHE_DIR=/image/cache cuprum warm-up --device cuda")]
struct WarmUpArguments {
    /// auto, cpu, cuda or cuda:N [default: CUPRUM_DEVICE, else auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

/// Run a set of workloads on each device under each accelerator order, check the results, and show the times.
#[derive(clap::Args, Debug)]
struct TourArguments {
    /// Use small arrays and few repeats
    #[arg(long)]
    quick: bool,
    /// Print JSON lines instead of a table
    #[arg(long)]
    json: bool,
}

/// Time an expression on host and device, with warm-up and repeats, or make a page from measurements
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  cuprum bench 'sqrt(sum(a**2, axis=-1))' a='random((256, 1024))' --device cuda --accelerators cub\n  cuprum bench --report page --from ours.log numpy.log --limit GB_s=45"
)]
struct BenchArguments {
    /// The expression, in NumPy's notation
    #[arg(value_name = "EXPR", required_unless_present = "report")]
    expression: Option<String>,
    /// Variables: name=file.npy, name=file.npz:member, file.npz, name=EXPRESSION
    #[arg(value_name = "NAME=VALUE")]
    bindings: Vec<String>,
    #[command(flatten)]
    target: DeviceOptions,
    #[command(flatten)]
    report: report::ReportArguments,
    /// Maximum number of timed calls
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Number of untimed calls before the first timed one
    #[arg(long, default_value_t = 10)]
    warmup: u32,
    /// Seconds after which no further warm-up call starts, and then no further timed call
    #[arg(long, default_value_t = 10.0, value_parser = parse_seconds)]
    max_seconds: f64,
    /// Print one JSON line instead of text
    #[arg(long)]
    json: bool,
}

/// Parses a number of seconds above 0.
fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("not a number of seconds above 0".to_string()),
    }
}

fn main() -> ExitCode {
    sigpipe::restore_default_action();
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        // clap's errors include help and version (exit code 0), and invalid command lines (exit code 2).
        Err(e) => {
            return match e.print() {
                Err(failed) if !e.use_stderr() => Failure::from(failed).print_and_get_exit_code(),
                _ => ExitCode::from(e.exit_code() as u8),
            };
        }
    };
    let code = match start_logging().and_then(|()| run(&command_line.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print_and_get_exit_code(),
    };
    trace::flush();
    code
}

fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Info(arguments) => info::run_info(arguments),
        Command::Eval(arguments) => eval::run_eval(arguments),
        Command::Tune(arguments) => tune::run_tune(arguments),
        Command::WarmUp(WarmUpArguments { device }) => {
            cuprum::core::settings::check()?;
            let device = match device {
                Some(name) => Device::parse(name).map_err(|e| device_options::to_option_failure("--device", e))?,
                None => Device::current()?,
            };
            let done = warm_up(device)?;
            let seconds = done.time.as_secs_f64();
            let text = format!("{device}: {} common calls, {} programs compiled in {seconds:.1} s", done.calls, done.compiled);
            Ok(terminal_output::print_line(text)?)
        }
        Command::Tour(TourArguments { quick, json }) => {
            cuprum::core::settings::check()?;
            if tour::run_tour(&tour::TourOptions { quick: *quick, json: *json })? { Ok(()) } else { Err(Failure::wrong_result()) }
        }
        Command::Bench(arguments) => {
            if let Some(folder) = arguments.report.report_folder() {
                return report::write_report(&arguments.report, folder);
            }
            arguments.target.apply_to_process()?;
            let mut session = Session::new();
            variable_bindings::bind_variables(&arguments.bindings, &mut session)?;
            let effort = BenchmarkLimits {
                warmup: arguments.warmup as usize,
                repeat: arguments.repeat as usize,
                max_seconds: arguments.max_seconds,
            };
            bench::run_bench(
                &bench::BenchOptions { expression: arguments.expression.as_deref().unwrap_or_default(), effort, json: arguments.json },
                &mut session,
            )
        }
    }
}

/// Sends `tracing` events to standard error, filtered by `CUPRUM_LOG`.
fn start_logging() -> Result<(), Failure> {
    let filter = cuprum::core::settings::env("CUPRUM_LOG").unwrap_or_else(|| "warn".into());
    let targets: Targets = filter.parse().map_err(|e| Failure::bad_input(format!("CUPRUM_LOG: '{filter}': {e}")))?;
    let with_colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(with_colours).log_internal_errors(false);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    Ok(())
}
