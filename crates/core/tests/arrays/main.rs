//! Arrays and their functions on the CPU. Tests that change settings of the process or register accelerators are programs of their own.

mod functions;
mod host_data;
mod rows;
mod scatter;
mod several_results;
mod streams;
mod traits;
mod unique;

// The macro `#[numpy]` names the facade.
extern crate cuprum_core as cuprum;

use cuprum_core::{Device, Result, with_device};

/// Runs `f` with the CPU as the current device.
fn on_cpu(f: impl FnOnce() -> Result<()>) {
    with_device(Device::CPU, f).unwrap();
}
