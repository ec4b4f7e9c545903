//! Options that several commands share: where to run.

use cuprum::core::settings;
use cuprum::{Device, set_accelerators};

use crate::failure::Failure;

/// Which device, and which accelerators in which order.
#[derive(clap::Args, Debug)]
pub struct Place {
    /// auto, cpu, cuda or cuda:N [default: CUPRUM_DEVICE, else auto]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Accelerators to ask, in order, such as cub,cutensor; '' for the device's own kernels only; auto to measure
    #[arg(long, value_name = "LIST")]
    accelerators: Option<String>,
}

impl Place {
    /// Checks the environment's settings, and makes these the process' own.
    pub fn apply(&self) -> Result<(), Failure> {
        settings::check()?;
        if let Some(order) = &self.accelerators {
            set_accelerators(order.as_str()).map_err(|e| option("--accelerators", e))?;
        }
        if let Some(device) = &self.device {
            Device::parse(device).and_then(Device::set_default).map_err(|e| option("--device", e))?;
        }
        Ok(())
    }
}

/// The message under the option's name instead of the variable's.
fn option(name: &str, e: cuprum::Error) -> Failure {
    match e {
        cuprum::Error::Setting { message, .. } | cuprum::Error::Device { message, .. } => Failure::input(format!("{name}: {message}")),
        e => e.into(),
    }
}
