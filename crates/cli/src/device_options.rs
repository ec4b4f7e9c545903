//! The options `--device`, `--mesh` and `--accelerators`, which several commands share.

use std::str::FromStr;

use cuprum::core::settings;
use cuprum::distributed::Mesh;
use cuprum::{Device, set_accelerators};

use crate::failure::Failure;

/// The value of `--mesh`.
#[derive(Clone, Copy, Debug)]
enum MeshChoice {
    /// A mesh with this number of ranks, all on one device.
    Ranks(usize),
    /// One rank for each process that a launcher has started.
    Processes,
}

impl FromStr for MeshChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<MeshChoice, String> {
        match text {
            "env" => Ok(MeshChoice::Processes),
            _ => text.parse().map(MeshChoice::Ranks).map_err(|_| "use a number of ranks, or env".into()),
        }
    }
}

/// The options `--device`, `--mesh` and `--accelerators` as given on the command line.
#[derive(clap::Args, Debug)]
pub struct DeviceOptions {
    /// auto, cpu, cuda or cuda:N [default: CUPRUM_DEVICE, else auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Divide new arrays among this number of ranks on the device; env: among the processes of a launcher such as torchrun
    #[arg(long, value_name = "RANKS")]
    mesh: Option<MeshChoice>,
    /// Accelerators in order, such as cub,cutensor; '' for the device's own accelerator only; auto to choose by measurement
    #[arg(long, value_name = "LIST")]
    accelerators: Option<String>,
}

impl DeviceOptions {
    /// Checks the settings of the environment, and applies these options to the process.
    ///
    /// # Errors
    ///
    /// Returns a failure for an invalid setting, an unknown accelerator, or a device that does not exist.
    pub fn apply_to_process(&self) -> Result<(), Failure> {
        settings::check()?;
        if let Some(order) = &self.accelerators {
            set_accelerators(order.as_str()).map_err(|e| to_option_failure("--accelerators", e))?;
        }
        if let Some(device) = &self.device {
            Device::parse(device).and_then(Device::set_default).map_err(|e| to_option_failure("--device", e))?;
        }
        if let Some(choice) = self.mesh {
            let mesh = match choice {
                // `Mesh::loopback` checks the number of ranks first, because the list of devices has as many elements.
                MeshChoice::Ranks(ranks) => Mesh::loopback(ranks).and_then(|_| Mesh::over_devices(&vec![Device::current()?; ranks])),
                MeshChoice::Processes => Mesh::from_env(),
            };
            mesh.and_then(|mesh| Device::set_default(mesh.device())).map_err(|e| to_option_failure("--mesh", e))?;
        }
        Ok(())
    }
}

/// Converts `e` to a failure. For an invalid setting, device or value, the message begins with the option `name` instead of the name of a
/// function. If an environment variable is the setting, its name follows.
pub fn to_option_failure(name: &str, e: cuprum::Error) -> Failure {
    match e {
        cuprum::Error::Setting { variable, message } if variable.starts_with(char::is_uppercase) => {
            Failure::bad_input(format!("{name}: {variable}: {message}"))
        }
        cuprum::Error::Setting { message, .. } | cuprum::Error::Device { message, .. } | cuprum::Error::Value { message, .. } => {
            Failure::bad_input(format!("{name}: {message}"))
        }
        e => e.into(),
    }
}
