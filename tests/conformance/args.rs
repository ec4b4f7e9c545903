//! Arguments of the program.

const USAGE: &str = "\
usage: conformance [OPTIONS] [TEXT...]
  TEXT                  only cases whose name (`family: expression`) has one of these in it
  --accelerators ORDER  only under this order, e.g. `cub,cutensor`; empty for the base alone
  --device DEVICE       only on this device (default: every one that is ready)
  --quick               one setting for each device, and a fifth of the cases
  --verbose             every failure under every setting, not the first of each case
  --list                names the cases and settings, and runs nothing";

/// What was asked for.
#[derive(Default)]
pub struct Args {
    pub accelerators: Option<String>,
    pub device: Option<String>,
    pub quick: bool,
    pub verbose: bool,
    pub list: bool,
    texts: Vec<String>,
}

impl Args {
    /// Reads them; what `cargo test` passes to every test program is understood or ignored.
    pub fn read(mut given: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args::default();
        while let Some(arg) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--accelerators" => args.accelerators = Some(value()?),
                "--device" => args.device = Some(value()?),
                "--quick" => args.quick = true,
                "--verbose" => args.verbose = true,
                "--list" => args.list = true,
                "--nocapture" | "--exact" | "--quiet" | "-q" | "--show-output" => {}
                "--test-threads" | "--format" | "--color" => drop(value()?),
                "--help" | "-h" => return Err(USAGE.to_string()),
                option if option.starts_with('-') => return Err(format!("unknown option {option}\n{USAGE}")),
                text => args.texts.push(text.to_string()),
            }
        }
        Ok(args)
    }

    /// Whether a case of this name is wanted.
    pub fn selects(&self, name: &str) -> bool {
        self.texts.is_empty() || self.texts.iter().any(|t| name.contains(t.as_str()))
    }
}
