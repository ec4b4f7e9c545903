//! The current device, on which new arrays are created, and functions of [`Device`].

use std::cell::Cell;
use std::str::FromStr;
use std::sync::Mutex;

use super::device_drivers::{RegistryHooks, SynchronizeHook, driver};
use super::device_memory::MemoryStats;
use super::driver::DeviceInfo;
use crate::error::{Error, Result};
use crate::settings::{self, SettingCheck};
use crate::types::device::{Device, DeviceKind};

const DEVICE_VARIABLE: &str = "CUPRUM_DEVICE";

impl Device {
    /// Parses `cpu`, `cuda`, `cuda:1`, or `auto` (the first ready GPU, else `cpu`). Empty text means `auto`.
    ///
    /// # Errors
    /// [`Error::Value`] for text that names no device, [`Error::Device`] with the reason if the device is not ready.
    pub fn parse(text: &str) -> Result<Device> {
        parse_device(text)
    }

    /// Returns every ready device of this machine, the host first.
    pub fn all() -> Vec<Device> {
        inventory::iter::<RegistryHooks>().flat_map(|hooks| (hooks.ready)()).collect()
    }

    /// Returns the device on which this thread creates new arrays.
    ///
    /// The first of these that is set: the innermost [`with_device`], [`Device::set_default`], `CUPRUM_DEVICE`. The default is the first
    /// ready GPU, or the host if there is none.
    ///
    /// # Errors
    /// [`Error::Setting`] if `CUPRUM_DEVICE` names no device, or one that is not ready.
    pub fn current() -> Result<Device> {
        if let Some(d) = SCOPED_DEVICE.with(Cell::get) {
            return Ok(d);
        }
        default_device()
    }

    /// Sets the default device of the process.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is not ready.
    pub fn set_default(device: Device) -> Result<()> {
        driver(device)?;
        set_default_device(device);
        Ok(())
    }

    /// Waits for all work on all streams of the device.
    ///
    /// Also reports asynchronous errors, such as an index out of bounds, of calls by this thread or by threads that have ended.
    /// Every reader of an array that depends on such a call gets the error too.
    pub fn synchronize(self) -> Result<()> {
        driver(self)?.synchronize()?;
        inventory::iter::<SynchronizeHook>().for_each(|hook| (hook.0)());
        Ok(())
    }

    /// Returns the properties of the device.
    pub fn info(self) -> Result<DeviceInfo> {
        Ok(driver(self)?.info())
    }

    /// Returns the memory in use by arrays and the memory cached for reuse.
    ///
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, Device, NdArray, with_device, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// let before = Device::CPU.memory_stats()?.used;
    /// let a = with_device(Device::CPU, || zeros([1000, 1000], DType::F64))?;
    /// assert_eq!(Device::CPU.memory_stats()?.used, before + a.nbytes());
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_stats(self) -> Result<MemoryStats> {
        driver(self)?.memory_stats()
    }

    /// Sets the peak in [`Device::memory_stats`] to the memory in use now, to measure the peak of the calls that follow.
    ///
    /// # Errors
    /// [`Error::Device`] if the device cannot be used.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, Device, with_device, zeros};
    /// # fn main() -> cuprum::Result<()> {
    /// with_device(Device::CPU, || {
    ///     drop(zeros([1000, 1000], DType::F64)?);
    ///     Device::CPU.reset_peak_memory()?;
    ///     let before = Device::CPU.memory_stats()?.used;
    ///     drop(zeros([100, 1000], DType::F64)?);
    ///     assert_eq!(Device::CPU.memory_stats()?.peak - before, 800_000);
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn reset_peak_memory(self) -> Result<()> {
        driver(self)?.reset_peak_memory()
    }

    /// Sets or removes (`None`) the memory limit of the device for the process, in bytes.
    ///
    /// The initial limit is `CUPRUM_CPU_MEMORY_LIMIT` or `CUPRUM_GPU_MEMORY_LIMIT`. Live arrays stay; a request beyond the limit
    /// returns [`Error::OutOfMemory`].
    ///
    /// On the host the limit covers arrays, cached blocks, scratch memory whose size depends on the arguments, lists of
    /// [`Value`](crate::ops::python_value::Value), and files while they are read. Vectors and strings returned to the caller are checked
    /// against the limit only when they are allocated. Scratch memory of constant size, some megabytes per thread, is not counted.
    ///
    /// # Errors
    /// [`Error::Value`] if the device has no settable limit.
    pub fn set_memory_limit(self, limit: Option<usize>) -> Result<()> {
        driver(self)?.set_memory_limit(limit)
    }

    /// Returns cached memory to the system, like `free_all_blocks` of CuPy's pools.
    ///
    /// The cached memory of a GPU is also released automatically, in three cases. In the first two, an allocation of this process finds no
    /// free memory on the GPU or would exceed the memory limit. In the third, the GPU has less free memory than this process caches.
    /// Allocations and [`Device::synchronize`] check the third case every 100 ms, so an idle process keeps its cache.
    pub fn free_all(self) -> Result<()> {
        driver(self)?.free_cached_memory()
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Parses the name of a device, as [`Device::parse`] does.
    fn from_str(text: &str) -> Result<Device> {
        Device::parse(text)
    }
}

thread_local! {
    static SCOPED_DEVICE: Cell<Option<Device>> = const { Cell::new(None) };
}

/// Runs `f` with `device` as the device of new arrays on this thread.
pub fn with_device<R>(device: Device, f: impl FnOnce() -> R) -> R {
    struct RestoreDeviceOnDrop(Option<Device>);
    impl Drop for RestoreDeviceOnDrop {
        fn drop(&mut self) {
            SCOPED_DEVICE.with(|s| s.set(self.0));
        }
    }
    let _restore = RestoreDeviceOnDrop(SCOPED_DEVICE.with(|s| s.replace(Some(device))));
    f()
}

const NAME_OF_DEVICE_PARSE: &str = "Device::parse";

fn parse_device(text: &str) -> Result<Device> {
    let t = text.trim().to_ascii_lowercase();
    if t == "auto" || t.is_empty() {
        return Ok(Device::all().into_iter().find(|d| d.kind() != DeviceKind::CPU).unwrap_or(Device::CPU));
    }
    let (name, number) = t.split_once(':').unwrap_or((&t, "0"));
    let kinds: Vec<&'static str> = inventory::iter::<RegistryHooks>().flat_map(|hooks| (hooks.kinds)()).collect();
    let kind = kinds.iter().find(|k| **k == name).copied().or((name == "cpu").then_some("cpu")).ok_or_else(|| {
        let known: String = kinds.iter().map(|kind| format!(", {kind}")).collect();
        let message = format!(
            "'{text}' is not a device; use auto{known}, or one with a number such as cuda:0 (features of cuprum link more backends)"
        );
        Error::value(NAME_OF_DEVICE_PARSE, message)
    })?;
    let ordinal: u16 =
        number.parse().map_err(|_| Error::value(NAME_OF_DEVICE_PARSE, format!("'{number}' in '{text}' is not a device number")))?;
    let device = Device::new(DeviceKind::intern(kind)?, ordinal);
    driver(device).map_err(|e| e.with_function_name(NAME_OF_DEVICE_PARSE))?;
    Ok(device)
}

/// Returns the device that `CUPRUM_DEVICE` names. If the variable is not set, returns the first ready GPU, else the host.
fn device_from_environment() -> Result<Device> {
    let Some(text) = settings::env(DEVICE_VARIABLE) else { return parse_device("auto") };
    parse_device(&text).map_err(|e| match e {
        Error::Value { message, .. } | Error::Device { message, .. } => Error::Setting { variable: DEVICE_VARIABLE, message },
        e => e,
    })
}

/// The default device of the process, once it is known.
static DEFAULT_DEVICE: Mutex<Option<Device>> = Mutex::new(None);

fn default_device() -> Result<Device> {
    let known = *DEFAULT_DEVICE.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(device) = known {
        return Ok(device);
    }
    let device = device_from_environment()?;
    // Another thread may have set the default device since the check above. That device is kept.
    Ok(*DEFAULT_DEVICE.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(device))
}

/// Returns an error if `CUPRUM_DEVICE` is set and names no ready device.
fn check_device_variable() -> Result<()> {
    settings::env(DEVICE_VARIABLE).map_or(Ok(()), |_| device_from_environment().map(|_| ()))
}

fn set_default_device(device: Device) {
    *DEFAULT_DEVICE.lock().unwrap_or_else(|e| e.into_inner()) = Some(device);
}

inventory::submit! {
    SettingCheck { variable: DEVICE_VARIABLE, needs_devices: true, run: check_device_variable }
}
