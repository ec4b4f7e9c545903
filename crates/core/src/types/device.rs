//! Identities of devices.

use std::fmt;
use std::sync::RwLock;

/// A kind of device, identified by a name such as `"cpu"` or `"cuda"`. Backends add their own kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceKind(u8);

/// Maximum number of device kinds in a process.
pub(crate) const MAX_DEVICE_KINDS: usize = 8;

static DEVICE_KIND_NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

impl DeviceKind {
    /// The host.
    pub const CPU: DeviceKind = DeviceKind(0);

    /// Returns the kind with the lower-case `name`, and adds the kind if it is new. Returns `None` if there are [`MAX_DEVICE_KINDS`] other
    /// kinds.
    pub(crate) fn find_or_add_kind(name: &'static str) -> Option<DeviceKind> {
        let mut kinds = DEVICE_KIND_NAMES.write().unwrap_or_else(|e| e.into_inner());
        if kinds.is_empty() {
            kinds.push("cpu");
        }
        let known = kinds.iter().position(|k| *k == name);
        if known.is_none() && kinds.len() < MAX_DEVICE_KINDS {
            kinds.push(name);
            return Some(DeviceKind(kinds.len() as u8 - 1));
        }
        known.map(|i| DeviceKind(i as u8))
    }

    /// Returns the name of the kind, such as `cuda`.
    pub fn name(self) -> &'static str {
        DEVICE_KIND_NAMES.read().unwrap_or_else(|e| e.into_inner()).get(self.index()).copied().unwrap_or("cpu")
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A device: a kind and an ordinal. Displays as `cpu` or `cuda:0`.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// use cuprum_core::Device;
/// assert_eq!(Device::CPU.to_string(), "cpu");
/// assert_eq!(Device::parse("cpu")?, Device::CPU);
/// # Ok::<(), cuprum_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    kind: DeviceKind,
    ordinal: u16,
}

impl Device {
    /// The host.
    pub const CPU: Device = Device { kind: DeviceKind::CPU, ordinal: 0 };

    /// Returns the device of `kind` with the given ordinal. The existence of the device is checked when it is first used.
    pub const fn new(kind: DeviceKind, ordinal: u16) -> Device {
        Device { kind, ordinal }
    }

    /// Returns the kind of the device.
    pub fn kind(self) -> DeviceKind {
        self.kind
    }

    /// Returns the ordinal of the device within its kind: `1` for `cuda:1`.
    pub fn ordinal(self) -> usize {
        self.ordinal as usize
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == DeviceKind::CPU { f.write_str("cpu") } else { write!(f, "{}:{}", self.kind.name(), self.ordinal) }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
