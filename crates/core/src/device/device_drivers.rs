//! Drivers of devices, opened on first use.

use std::sync::{Mutex, OnceLock};

use super::driver::DeviceDriver;
use crate::error::{Error, Result};
use crate::settings;
use crate::types::device::{Device, DeviceKind, MAX_DEVICE_KINDS};

/// Functions that open and list devices. The registry of accelerators submits them through `inventory`, because the module `device` does
/// not depend on the registry.
pub(crate) struct RegistryHooks {
    /// Opens a device.
    pub open: fn(Device) -> Result<Box<dyn DeviceDriver>>,
    /// Returns the names of the device kinds that have a backend.
    pub kinds: fn() -> Vec<&'static str>,
    /// Returns every ready device, the host first.
    pub ready: fn() -> Vec<Device>,
}
inventory::collect!(RegistryHooks);

/// A function that runs after each [`Device::synchronize`].
pub(crate) struct SynchronizeHook(pub fn());
inventory::collect!(SynchronizeHook);

/// Maximum number of devices of a kind.
pub(crate) const MAX_DEVICES_PER_KIND: usize = 64;

/// Returns the driver of `device`. Opens the device on first use; lock-free afterwards.
pub fn driver(device: Device) -> Result<&'static dyn DeviceDriver> {
    struct DriverSlot {
        opened: OnceLock<Box<dyn DeviceDriver>>,
        opening: Mutex<()>,
    }
    static DRIVER_SLOTS: [[DriverSlot; MAX_DEVICES_PER_KIND]; MAX_DEVICE_KINDS] =
        [const { [const { DriverSlot { opened: OnceLock::new(), opening: Mutex::new(()) } }; MAX_DEVICES_PER_KIND] }; MAX_DEVICE_KINDS];
    let slot = DRIVER_SLOTS.get(device.kind().index()).and_then(|k| k.get(device.ordinal()));
    let slot = slot.ok_or_else(|| Error::Device { op: "device", message: format!("there is no device {device}") })?;
    if let Some(driver) = slot.opened.get() {
        return Ok(driver.as_ref());
    }
    // A failure to open the device is not cached: a later attempt may find a newly registered backend, or a device that is no longer busy.
    let _opening = slot.opening.lock().unwrap_or_else(|e| e.into_inner());
    match slot.opened.get() {
        Some(driver) => Ok(driver.as_ref()),
        None => open_driver(device).map(|driver| slot.opened.get_or_init(|| driver).as_ref()),
    }
}

fn open_driver(device: Device) -> Result<Box<dyn DeviceDriver>> {
    settings::check_once_without_devices()?;
    let hooks = inventory::iter::<RegistryHooks>().next();
    let hooks = hooks.ok_or_else(|| Error::Device { op: "device", message: format!("there is no device {device}") })?;
    (hooks.open)(device)
}

impl DeviceKind {
    /// Returns the device kind with the lower-case `name`, and adds the kind if it is new.
    ///
    /// # Errors
    /// [`Error::Device`] if eight kinds exist already.
    pub fn intern(name: &'static str) -> Result<DeviceKind> {
        DeviceKind::find_or_add_kind(name).ok_or_else(|| {
            let message = format!("cannot add device kind '{name}': there are {MAX_DEVICE_KINDS} already");
            Error::Device { op: "register", message }
        })
    }
}
