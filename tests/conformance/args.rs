//! Command line of the program.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::checks::Check;
use crate::shards::Shard;

const USAGE: &str = "\
usage: conformance [OPTIONS] [TEXT...]
  TEXT                  only cases whose name (`family: expression`) has one of these in it
  --accelerators ORDER  only under this order, e.g. `cub,cutensor`; empty for the base alone; each must be ready
  --cases DIR           the cases in this folder, written by scripts/differential.py, instead of the embedded ones
  --device DEVICE       only on this device, which must be ready (default: every one that is ready)
  --mesh RANKS[,AXIS]   every case on a mesh of so many ranks, with inputs sharded along AXIS (default: each); the ranks are on the host,
                        or with --device on that device, or on all devices of a kind in turn (`--mesh 2 --device cuda`)
                        `env` instead of RANKS: on a mesh over the processes of a launcher, such as torchrun
  --every N             only every N-th case
  --jobs N              in N processes, each with every N-th case
  --quick               one setting for each device, and a fifth of the cases
  --verbose             every failure under every setting, not the first of each case
  --list                names the cases and settings, and runs nothing";

/// The mesh of `--mesh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshChoice {
    /// So many ranks, on the host or on the devices of `--device`.
    Ranks(usize),
    /// A rank per process of a launcher.
    Processes,
}

/// The parsed command line.
#[derive(Default)]
pub struct Args {
    pub accelerators: Option<String>,
    /// Folder of other cases.
    pub cases: Option<PathBuf>,
    pub device: Option<String>,
    /// The mesh, and the axis along which inputs are sharded. `None` runs a sample of the cases on meshes of several sizes.
    pub mesh: Option<(MeshChoice, Option<usize>)>,
    /// Every so many-th case runs. `None` runs all.
    pub every: Option<NonZeroUsize>,
    /// Number of processes that share the cases. `None` runs all cases in this process.
    pub jobs: Option<NonZeroUsize>,
    /// The shard of this process, if `shards::run` started it.
    pub shard: Option<Shard>,
    pub quick: bool,
    pub verbose: bool,
    pub list: bool,
    /// The values of `--mesh` and `--every`.
    mesh_text: Option<String>,
    every_text: Option<String>,
    texts: Vec<String>,
}

/// Parses `RANKS` or `RANKS,AXIS`, with `env` as a form of RANKS.
fn parse_mesh(text: &str) -> Result<(MeshChoice, Option<usize>), String> {
    let number = |part: &str| part.parse::<usize>().map_err(|_| format!("--mesh {text}: '{part}' is not a number"));
    let choice = |part: &str| if part == "env" { Ok(MeshChoice::Processes) } else { number(part).map(MeshChoice::Ranks) };
    match text.split_once(',') {
        Some((ranks, axis)) => Ok((choice(ranks)?, Some(number(axis)?))),
        None => Ok((choice(text)?, None)),
    }
}

impl Args {
    /// Parses the arguments. The arguments that `cargo test` passes to every test program are accepted or ignored.
    pub fn read(mut given: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args::default();
        while let Some(arg) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--accelerators" => args.accelerators = Some(value()?),
                "--cases" => args.cases = Some(value()?.into()),
                "--device" => args.device = Some(value()?),
                "--mesh" => {
                    let text = value()?;
                    args.mesh = Some(parse_mesh(&text)?);
                    args.mesh_text = Some(text);
                }
                "--jobs" | "-j" => {
                    let count = value()?;
                    args.jobs = Some(count.parse().map_err(|_| format!("--jobs {count}: not a number above 0"))?);
                }
                "--every" => {
                    let count = value()?;
                    args.every = Some(count.parse().map_err(|_| format!("--every {count}: not a number above 0"))?);
                    args.every_text = Some(count);
                }
                "--quick" => args.quick = true,
                "--verbose" => args.verbose = true,
                "--list" => args.list = true,
                "--nocapture" | "--exact" | "--quiet" | "-q" | "--show-output" => {}
                "--test-threads" | "--format" | "--color" => drop(value()?),
                "--help" | "-h" => return Err(USAGE.to_string()),
                // `USAGE` omits this option, because only `shards::run` passes it.
                option if option.starts_with("--shard=") => args.shard = Some(option["--shard=".len()..].parse()?),
                option if option.starts_with('-') => return Err(format!("unknown option {option}\n{USAGE}")),
                text => args.texts.push(text.to_string()),
            }
        }
        Ok(args)
    }

    /// Returns the arguments for a process that runs a shard of the same cases under the same settings.
    pub fn forwarded(&self) -> Vec<&str> {
        let mut args = Vec::new();
        let cases = self.cases.as_ref().and_then(|dir| dir.to_str());
        for (option, value) in [("--accelerators", self.accelerators.as_deref()), ("--cases", cases), ("--device", self.device.as_deref())]
        {
            args.extend(value.iter().flat_map(|v| [option, v]));
        }
        args.extend(self.mesh_text.iter().flat_map(|text| ["--mesh", text.as_str()]));
        args.extend(self.every_text.iter().flat_map(|text| ["--every", text.as_str()]));
        args.extend(self.quick.then_some("--quick"));
        args.extend(self.texts.iter().map(String::as_str));
        args
    }

    /// Returns an error if the filters select none of `checks`, because a mistyped filter would otherwise pass.
    ///
    /// Under `cargo test TEXT`, cargo passes the text to the programs of all tests, most of which have no such name. There the program says
    /// so and passes, unless it has options of its own.
    pub fn check_filter(&self, checks: &[Check]) -> Result<(), String> {
        if checks.iter().any(|check| self.selects(&check.name)) {
            return Ok(());
        }
        let message = format!("no case has '{}' in its name; --list prints the names", self.texts.join("' or '"));
        let has_options =
            self.accelerators.is_some() || self.mesh.is_some() || self.cases.is_some() || self.device.is_some() || self.jobs.is_some();
        if std::env::var_os("CARGO").is_none() || has_options || self.quick || self.verbose || self.list || self.shard.is_some() {
            return Err(message);
        }
        println!("{message}");
        Ok(())
    }

    /// Returns whether cases run on meshes: with `--mesh`, and by default, but not under options that name other settings.
    pub fn runs_meshes(&self) -> bool {
        self.mesh.is_some() || self.device.is_none() && self.accelerators.is_none() && self.cases.is_none()
    }

    /// Returns whether a sample of the cases runs on meshes over several processes, which this program starts.
    pub fn runs_processes(&self) -> bool {
        self.mesh.is_none() && self.runs_meshes() && self.shard.is_none() && self.every.is_none() && !self.list && self.texts.is_empty()
    }

    /// Returns whether the filters select a case of this name.
    pub fn selects(&self, name: &str) -> bool {
        self.texts.is_empty() || self.texts.iter().any(|t| name.contains(t.as_str()))
    }
}
