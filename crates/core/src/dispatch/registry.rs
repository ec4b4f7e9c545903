//! The registry of accelerators, with their availability. For each kernel family and device kind, the registry builds a chain of
//! accelerators: the kernels in the order in which dispatch tries them.
//!
//! The chains are built once per accelerator order. A call reads its chain through a thread-local pointer, without lock, hashing or
//! strings. Backends register with one `inventory::submit!`, or through [`register`] where the linker can drop submissions, as in static
//! libraries.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

pub use super::kernel::{Kernel, OpFilter};
use crate::call::DeclineReason;
use crate::device::{Device, DeviceDriver, DeviceKind, MAX_DEVICE_KINDS, MAX_DEVICES_PER_KIND, RegistryHooks};
use crate::error::{Error, Result};
use crate::op::{Capabilities, Family};
use crate::settings::{self, SettingCheck};

/// Whether an accelerator can be used on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The accelerator is usable. The text is one line of detail, such as a version or a path.
    Ready(String),
    /// Not usable.
    Missing {
        /// The reason why the accelerator is not usable, such as a library that is not installed.
        why: String,
        /// The command or setting that would make the accelerator usable; may be empty.
        help: String,
    },
}

impl fmt::Display for Availability {
    /// Formats the availability on one line: `ready: CUDA 13.0`, or `missing: no driver; install one`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Availability::Ready(detail) => write!(f, "ready: {detail}"),
            Availability::Missing { why, help } if help.is_empty() => write!(f, "missing: {why}"),
            Availability::Missing { why, help } => write!(f, "missing: {why}; {help}"),
        }
    }
}

/// Functions that count, check and open the devices of one kind. The base accelerator of the kind provides them: the accelerator that
/// serves every call that the others decline.
#[derive(Debug)]
pub struct DeviceProvider {
    /// Returns the number of devices of this kind. Called only if the accelerator's probe returned [`Availability::Ready`].
    pub count: fn() -> usize,
    /// Returns whether the device with this ordinal can be used. If it cannot, opening the device returns the reason as an error.
    pub is_ready: fn(usize) -> bool,
    /// Opens a device.
    pub open: fn(Device) -> Result<Box<dyn DeviceDriver>>,
}

/// A named set of kernels for one kind of device.
#[derive(Debug)]
pub struct Accelerator {
    /// Lower-case name of the accelerator, as in `CUPRUM_ACCELERATORS`.
    pub name: &'static str,
    /// Name of the device kind that the accelerator serves.
    pub device: &'static str,
    /// Position in the default order: lower first, ties by name. The base accelerator of a device kind, the fallback for every call, comes
    /// last whatever its rank.
    pub rank: i32,
    /// One-line description for `cuprum info`.
    pub summary: &'static str,
    /// Checks whether the accelerator can be used on this machine. Called once per process; must not panic.
    ///
    /// The probe may use arrays, but the operations on them do not run on the accelerator that is being probed. Threads that the probe
    /// starts and waits for must not use arrays.
    pub probe: fn() -> Availability,
    /// The kernels of the accelerator, in the order in which dispatch tries them.
    pub kernels: &'static [Kernel],
    /// Functions that open the devices of the kind `device`, if this is the base accelerator of that kind. The base accelerator is the
    /// fallback for every call. `None` for all other accelerators.
    pub base: Option<DeviceProvider>,
}

/// A registration for `inventory::submit! { Registration(&MY_ACCELERATOR) }`.
pub struct Registration(pub &'static Accelerator);
inventory::collect!(Registration);

/// A kernel that dispatch tries for a call, and the accelerator that provides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelChainEntry {
    pub accelerator: &'static Accelerator,
    pub kernel: &'static Kernel,
}

/// The chains of accelerators of all families and device kinds, under one accelerator order.
#[derive(Debug, Default)]
pub(crate) struct AcceleratorChains {
    entries: [[Vec<KernelChainEntry>; Family::ALL.len()]; MAX_DEVICE_KINDS],
    /// For each chain of accelerators, the capabilities that at least one of its kernels declares.
    capabilities: [[Capabilities; Family::ALL.len()]; MAX_DEVICE_KINDS],
    /// Whether the accelerator order is `auto`.
    is_auto: bool,
    /// Whether the user set the accelerator order. False for the default order.
    is_named: bool,
}

impl AcceleratorChains {
    pub(crate) fn chain_of_family(&self, family: Family, kind: DeviceKind) -> &[KernelChainEntry] {
        &self.entries[kind.index()][family as usize]
    }

    /// Returns the capabilities that at least one kernel of `family` on devices of `kind` declares.
    pub(crate) fn capabilities(&self, family: Family, kind: DeviceKind) -> Capabilities {
        self.capabilities[kind.index()][family as usize]
    }

    /// Returns whether the accelerator order is `auto`: measurements decide which accelerator is tried first.
    pub(crate) fn has_auto_order(&self) -> bool {
        self.is_auto
    }
}

/// Status of an accelerator for `cuprum info`.
#[derive(Clone, Debug)]
pub struct AcceleratorStatus {
    /// The accelerator.
    pub accelerator: &'static Accelerator,
    /// Result of the accelerator's probe.
    pub availability: Availability,
    /// Position in the current accelerator order; `None` if the accelerator is not in it.
    pub position: Option<usize>,
}

/// Registered accelerators, the order that the user set, and the chains of accelerators built from them.
///
/// Changes are rare and take a lock. Calls read the chains without a lock, because built chains are leaked and never change.
#[derive(Default)]
struct RegistryState {
    /// Accelerators registered through [`register`].
    added: Vec<&'static Accelerator>,
    chains: HashMap<Option<Vec<String>>, &'static AcceleratorChains>,
    /// The accelerator order given to [`set_accelerators`]; `None` before the first call of that function. `Some(None)` selects the default
    /// order.
    process_order: Option<Option<Vec<String>>>,
}

static REGISTRY: Mutex<Option<RegistryState>> = Mutex::new(None);
/// A counter that increases with each change to the registry. Each thread stores the count with its cached chains, and looks the chains up
/// again if the count has changed.
static REGISTRY_GENERATION: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static CACHED_CHAINS: Cell<(u64, Option<&'static AcceleratorChains>)> = const { Cell::new((0, None)) };
    static SCOPED_CHAINS: Cell<Option<&'static AcceleratorChains>> = const { Cell::new(None) };
    /// The accelerators whose probes this thread runs. A probe that uses arrays can run the probes of other accelerators.
    static RUNNING_PROBES: RefCell<Vec<&'static Accelerator>> = const { RefCell::new(Vec::new()) };
}

fn with_registry_state<R>(f: impl FnOnce(&mut RegistryState) -> R) -> R {
    let mut guard = REGISTRY.lock().unwrap_or_else(|e| e.into_inner());
    f(guard.get_or_insert_with(RegistryState::default))
}

/// Registers an accelerator by a call, for tests and for programs whose linker drops `inventory` submissions, as it can do with static
/// libraries. Registering the same `static` again has no effect.
///
/// # Errors
/// [`Error::Setting`] for an invalid name, a name that is taken, or a second base accelerator of a device kind: the accelerator that opens
/// the devices and serves every call that the others decline.
pub fn register(accelerator: &'static Accelerator) -> Result<()> {
    let known = all_accelerators();
    if known.iter().any(|a| std::ptr::eq(*a, accelerator)) {
        return Ok(());
    }
    check_registration(&known, accelerator)?;
    with_registry_state(|s| {
        s.added.push(accelerator);
        s.chains.clear();
        REGISTRY_GENERATION.fetch_add(1, Ordering::Release);
    });
    Ok(())
}

fn check_registration(known: &[&'static Accelerator], new: &'static Accelerator) -> Result<()> {
    let bad = |message: String| Err(Error::Setting { variable: "accelerator registration", message });
    if new.name.is_empty() || new.name.contains([',', ' ']) || new.name != new.name.to_ascii_lowercase() || new.name == "auto" {
        return bad(format!("'{}' is not a name: lower case, no comma or space, not 'auto'", new.name));
    }
    if let Some(other) = known.iter().find(|a| a.name == new.name) {
        return bad(format!("two accelerators are named '{}': \"{}\" and \"{}\"", new.name, other.summary, new.summary));
    }
    if new.base.is_some() && known.iter().any(|a| a.base.is_some() && a.device == new.device) {
        return bad(format!("device '{}' has a base accelerator already", new.device));
    }
    Ok(())
}

/// Returns all registered accelerators, sorted by rank and name. The base accelerators of the device kinds, which are the fallback for
/// every call, are last. If several have the same name, the first is kept, and `settings::check` returns an error.
pub fn all_accelerators() -> Vec<&'static Accelerator> {
    let mut list: Vec<&'static Accelerator> = inventory::iter::<Registration>.into_iter().map(|r| r.0).collect();
    list.extend(with_registry_state(|s| s.added.clone()));
    list.sort_by_key(|a| (a.base.is_some(), a.rank, a.name, a.summary));
    let mut unique: Vec<&'static Accelerator> = Vec::new();
    for a in list {
        if unique.iter().all(|u| u.name != a.name) {
            unique.push(a);
        }
    }
    unique
}

/// Returns the result of the accelerator's probe, which runs once per process. While this thread runs the probe, the result is
/// [`Availability::Missing`].
pub fn availability(accelerator: &'static Accelerator) -> Availability {
    /// Lock that a thread holds while it runs probes. With one lock for all probes, two threads whose probes need each other cannot
    /// deadlock.
    static PROBE_LOCK: Mutex<()> = Mutex::new(());
    static PROBE_RESULTS: Mutex<Vec<(usize, &'static OnceLock<Availability>)>> = Mutex::new(Vec::new());
    let key = std::ptr::from_ref(accelerator) as usize;
    let cell: &'static OnceLock<Availability> = {
        let mut seen = PROBE_RESULTS.lock().unwrap_or_else(|e| e.into_inner());
        match seen.iter().find(|(k, _)| *k == key) {
            Some((_, cell)) => cell,
            None => {
                let cell: &'static OnceLock<Availability> = Box::leak(Box::default());
                seen.push((key, cell));
                cell
            }
        }
    };
    if let Some(known) = cell.get() {
        return known.clone();
    }
    let missing = |why: &str| Availability::Missing { why: why.into(), help: String::new() };
    // `try_with`, because destructors may call this function while the thread ends, after the thread-local is destroyed.
    let probes =
        RUNNING_PROBES.try_with(|running| (!running.borrow().is_empty(), running.borrow().iter().any(|a| std::ptr::eq(*a, accelerator))));
    let (is_nested, is_running) = probes.unwrap_or_default();
    if is_running {
        return missing("its probe is running");
    }
    let _lock = (!is_nested).then(|| PROBE_LOCK.lock().unwrap_or_else(|e| e.into_inner()));
    cell.get_or_init(|| {
        let _ = RUNNING_PROBES.try_with(|running| running.borrow_mut().push(accelerator));
        let result = std::panic::catch_unwind(accelerator.probe).unwrap_or_else(|_| missing("its probe panicked"));
        let _ = RUNNING_PROBES.try_with(|running| running.borrow_mut().pop());
        CACHED_CHAINS.set((0, None)); // chains that this thread has built during the probe lack the accelerator
        result
    })
    .clone()
}

/// Returns whether this thread runs the probe of an accelerator.
fn is_probing() -> bool {
    RUNNING_PROBES.try_with(|running| !running.borrow().is_empty()).unwrap_or(false)
}

fn is_ready(accelerator: &'static Accelerator) -> bool {
    matches!(availability(accelerator), Availability::Ready(_))
}

/// Returns the current accelerator order, or `None` for the default order: all ready accelerators, sorted by rank.
///
/// # Errors
/// [`Error::Setting`] if `CUPRUM_ACCELERATORS` names an unknown accelerator.
pub fn accelerator_order() -> Result<Option<Vec<String>>> {
    match with_registry_state(|s| s.process_order.clone()) {
        Some(order) => Ok(order),
        None => settings::read_variable(settings::ACCELERATORS_VARIABLE)?
            .map(|text| parse_accelerator_order(settings::ACCELERATORS_VARIABLE, &text))
            .transpose(),
    }
}

/// Returns whether the accelerator order `names` is `auto`, under which measurements choose the accelerator (see
/// [`tuning`](crate::tuning)).
fn is_auto_order(names: &[String]) -> bool {
    matches!(names, [name] if name == "auto")
}

/// Parses an accelerator order. `variable` names the environment variable or the setter, for errors.
fn parse_accelerator_order(variable: &'static str, text: &str) -> Result<Vec<String>> {
    let mut names = settings::parse_names(text);
    let known = all_accelerators();
    if is_auto_order(&names) {
        return Ok(names);
    }
    if let Some(unknown) = names.iter().find(|n| known.iter().all(|a| a.name != n.as_str())) {
        let list = known.iter().filter(|a| a.base.is_none()).map(|a| a.name).collect::<Vec<_>>().join(", ");
        let list = if list.is_empty() { "none" } else { &list };
        let message = match unknown.as_str() {
            "auto" => format!("'auto' cannot be combined with names: it measures all accelerators ({list})"),
            _ => format!(
                "unknown accelerator '{unknown}'; known: {list}, or auto. A program contains an accelerator of another crate only if its \
                 source names the crate, as in `use {} as _;`",
                unknown.replace('-', "_")
            ),
        };
        return Err(Error::Setting { variable, message });
    }
    let mut seen = Vec::new();
    names.retain(|n| !seen.contains(n) && (seen.push(n.clone()), true).1);
    Ok(names)
}

/// An accelerator order: `"cub,cutensor"`, `["cub", "cutensor"]`, `"auto"`, or `None` for the default.
pub trait IntoAcceleratorOrder {
    /// Returns the comma-separated names of the accelerators, or `None` for the default order.
    fn into_accelerator_order(self) -> Option<String>;
}
impl IntoAcceleratorOrder for &str {
    fn into_accelerator_order(self) -> Option<String> {
        Some(self.to_string())
    }
}
impl<const N: usize> IntoAcceleratorOrder for [&str; N] {
    fn into_accelerator_order(self) -> Option<String> {
        Some(self.join(","))
    }
}
impl IntoAcceleratorOrder for &[String] {
    fn into_accelerator_order(self) -> Option<String> {
        Some(self.join(","))
    }
}
impl IntoAcceleratorOrder for Option<&str> {
    fn into_accelerator_order(self) -> Option<String> {
        self.map(str::to_string)
    }
}

/// Sets the accelerator order for the process, as `CUPRUM_ACCELERATORS` does. `None` selects the default order, even if the variable is
/// set.
///
/// # Errors
/// [`Error::Setting`] for an unknown accelerator.
pub fn set_accelerators(order: impl IntoAcceleratorOrder) -> Result<()> {
    let order = order.into_accelerator_order().map(|t| parse_accelerator_order("set_accelerators", &t)).transpose()?;
    with_registry_state(|s| s.process_order = Some(order));
    REGISTRY_GENERATION.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Runs `f` under the given `order` of accelerators on this thread. An empty order leaves only the base accelerator of each device, which
/// serves every operation.
///
/// Deferred arrays that `f` builds but does not evaluate are computed later, in the order that is then in effect: call
/// [`NdArray::eval`](crate::NdArray::eval) inside `f`, for example to [compare](crate::testing::compare) two accelerators.
///
/// # Errors
/// [`Error::Setting`] for an unknown accelerator; `f` does not run then.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cuprum_core::testing::{Tolerance, compare};
/// use cuprum_core::{NdArray, with_accelerators};
/// let x = NdArray::from_slice(&[1.0, 2.0, 3.0])?;
/// let got = x.sqrt()?;
/// let want = with_accelerators("", || x.sqrt()?.eval().cloned())??;
/// compare(&got, &want, Tolerance::ulp(1.0))?;
/// # Ok(())
/// # }
/// ```
pub fn with_accelerators<R>(order: impl IntoAcceleratorOrder, f: impl FnOnce() -> R) -> Result<R> {
    struct RestoreChainsOnDrop(Option<&'static AcceleratorChains>);
    impl Drop for RestoreChainsOnDrop {
        fn drop(&mut self) {
            SCOPED_CHAINS.with(|s| s.set(self.0));
        }
    }
    let order = order.into_accelerator_order().map(|t| parse_accelerator_order("with_accelerators", &t)).transpose()?;
    let chains = chains_for_order(order)?;
    let _restore = RestoreChainsOnDrop(SCOPED_CHAINS.with(|s| s.replace(Some(chains))));
    Ok(f())
}

/// Returns the chains of accelerators for this thread: the chains of the innermost [`with_accelerators`], else the chains of the process.
#[inline]
pub(crate) fn current_chains() -> Result<&'static AcceleratorChains> {
    if let Some(scoped) = SCOPED_CHAINS.with(Cell::get) {
        return Ok(scoped);
    }
    let generation = REGISTRY_GENERATION.load(Ordering::Acquire);
    match CACHED_CHAINS.with(Cell::get) {
        (seen, Some(chains)) if seen == generation => Ok(chains),
        _ => load_process_chains(generation),
    }
}

/// Returns the process's chains of accelerators, and caches them for this thread. `generation` is the registry generation that the caller
/// has read.
#[cold]
fn load_process_chains(generation: u64) -> Result<&'static AcceleratorChains> {
    let chains = chains_for_order(accelerator_order()?)?;
    CACHED_CHAINS.with(|c| c.set((generation, Some(chains))));
    Ok(chains)
}

/// Returns whether the user set the accelerator order. Returns false for the default order by rank.
pub fn is_accelerator_order_set() -> bool {
    current_chains().is_ok_and(|c| c.is_named)
}

/// Returns `Ok` if the user set the accelerator order. Otherwise returns the error with `otherwise` as the reason to decline.
///
/// A kernel calls this function to decline calls that a later kernel of the default order runs faster. If the user set an order, the kernel
/// takes these calls, because the user's choice has precedence. Under the order `auto`, measurements decide.
pub fn decline_unless_order_is_set(otherwise: &'static str) -> std::result::Result<(), DeclineReason> {
    if is_accelerator_order_set() { Ok(()) } else { Err(DeclineReason::new(otherwise)) }
}

/// Returns the accelerator chains for `order`, or for the default order if `order` is `None`: for each kernel family and device kind, the
/// kernels that dispatch tries one after the other.
///
/// The chains of an order are built once and kept for the life of the process. Chains built during the probe of an accelerator are not
/// cached.
fn chains_for_order(order: Option<Vec<String>>) -> Result<&'static AcceleratorChains> {
    loop {
        if let Some(chains) = with_registry_state(|s| s.chains.get(&order).copied()) {
            return Ok(chains);
        }
        let generation = REGISTRY_GENERATION.load(Ordering::Acquire);
        let chains: &'static AcceleratorChains = Box::leak(Box::new(build_chains(order.as_deref())?));
        if is_probing() {
            return Ok(chains); // not cached, because the chains lack the accelerators whose probes are running
        }
        // Chains are not cached if the registry has changed since `generation` was read, because they may lack a newly registered
        // accelerator.
        with_registry_state(|s| {
            if REGISTRY_GENERATION.load(Ordering::Acquire) == generation {
                s.chains.insert(order.clone(), chains);
            }
        });
    }
}

/// Returns the ready accelerators of `order` (all for `None` and `auto`), followed by the base accelerators of the ready devices, which are
/// the fallback for every call.
fn active_accelerators(order: Option<&[String]>) -> Vec<&'static Accelerator> {
    let known = all_accelerators();
    let (bases, others): (Vec<_>, Vec<_>) = known.iter().copied().partition(|a| a.base.is_some());
    let chosen: Vec<_> = match order {
        None => others,
        Some(names) if is_auto_order(names) => others,
        Some(names) => names.iter().filter_map(|n| others.iter().copied().find(|a| a.name == n)).collect(),
    };
    chosen.into_iter().chain(bases).filter(|a| is_ready(a)).collect()
}

fn build_chains(order: Option<&[String]>) -> Result<AcceleratorChains> {
    let mut chains =
        AcceleratorChains { is_auto: order.is_some_and(is_auto_order), is_named: order.is_some(), ..AcceleratorChains::default() };
    for accelerator in active_accelerators(order) {
        let kind = DeviceKind::intern(accelerator.device)?;
        for kernel in accelerator.kernels {
            let (kind, family) = (kind.index(), kernel.family as usize);
            chains.entries[kind][family].push(KernelChainEntry { accelerator, kernel });
            chains.capabilities[kind][family] = chains.capabilities[kind][family].union(kernel.capabilities);
        }
    }
    Ok(chains)
}

/// Returns every accelerator with its availability and its position in the current order, for `cuprum info`.
pub fn accelerator_status() -> Result<Vec<AcceleratorStatus>> {
    let order = accelerator_order()?;
    let active_accelerators = active_accelerators(order.as_deref());
    let position = |a: &'static Accelerator| active_accelerators.iter().position(|m| std::ptr::eq(*m, a));
    Ok(all_accelerators()
        .into_iter()
        .map(|a| AcceleratorStatus { accelerator: a, availability: availability(a), position: position(a) })
        .collect())
}

/// Checks that `CUPRUM_ACCELERATORS` is valid, and that all registered accelerators have valid, distinct names.
fn check_accelerator_settings() -> Result<()> {
    accelerator_order()?;
    let mut seen: Vec<&'static Accelerator> = Vec::new();
    for r in inventory::iter::<Registration> {
        check_registration(&seen, r.0)?;
        seen.push(r.0);
    }
    Ok(())
}

inventory::submit! {
    SettingCheck { variable: settings::ACCELERATORS_VARIABLE, needs_devices: true, run: check_accelerator_settings }
}

// ---- devices ----

inventory::submit! {
    RegistryHooks { open: open_device, kinds: kinds_with_base_accelerator, ready: ready_devices }
}

/// Returns the names of the device kinds for which a base accelerator is registered: an accelerator that opens the devices and serves
/// every call.
fn kinds_with_base_accelerator() -> Vec<&'static str> {
    all_accelerators().iter().filter(|a| a.base.is_some()).map(|a| a.device).collect()
}

/// Returns the base accelerator of a device kind, which serves every operation, even if the accelerator's probe failed. Returns `None` if
/// no base accelerator is registered for the kind.
pub(crate) fn base_accelerator_of_kind(kind_name: &str) -> Option<&'static Accelerator> {
    all_accelerators().into_iter().find(|a| a.base.is_some() && a.device == kind_name)
}

fn open_device(device: Device) -> Result<Box<dyn DeviceDriver>> {
    let missing = |message: String| Error::Device { op: "device", message };
    let name = device.kind().name();
    let base = base_accelerator_of_kind(name).ok_or_else(|| {
        missing(format!(
            "no backend for '{name}' is linked; enable the feature `{name}` of cuprum, or name the backend's crate with `use ... as _;`"
        ))
    })?;
    if let Availability::Missing { why, help } = availability(base) {
        return Err(missing(format!("{device} is not ready: {why}{}{help}", if help.is_empty() { "" } else { "; " })));
    }
    let provider = base.base.as_ref().ok_or_else(|| missing(format!("{device} has no provider")))?;
    let count = (provider.count)();
    if device.ordinal() >= count {
        let wanted = device.ordinal();
        // A program creates its meshes. The other kinds of devices belong to the machine.
        return Err(missing(match name {
            "mesh" => format!("there is no mesh:{wanted}: this process has {count} mesh(es); `Mesh` or the option --mesh creates one"),
            _ => format!("there is no {name}:{wanted}: this machine has {count} {name} device(s)"),
        }));
    }
    (provider.open)(device)
}

/// Returns every ready device of every device kind, the host first.
fn ready_devices() -> Vec<Device> {
    let mut devices = Vec::new();
    for a in all_accelerators() {
        let (Some(provider), true) = (&a.base, is_ready(a)) else { continue };
        let Ok(kind) = DeviceKind::intern(a.device) else { continue };
        let ready = (0..(provider.count)().min(MAX_DEVICES_PER_KIND)).filter(|n| (provider.is_ready)(*n));
        devices.extend(ready.map(|n| Device::new(kind, n as u16)));
    }
    devices.sort_by_key(|d| (d.kind(), d.ordinal()));
    devices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn availability_is_one_line() {
        let missing = |help: &str| Availability::Missing { why: "no driver".into(), help: help.into() }.to_string();
        assert_eq!(missing("install one"), "missing: no driver; install one");
        assert_eq!(missing(""), "missing: no driver");
        assert_eq!(Availability::Ready("CUDA 13.0".into()).to_string(), "ready: CUDA 13.0");
    }

    #[test]
    fn every_form_of_an_order_has_the_same_names() {
        let names = ["cub".to_string(), "cutensor".to_string()];
        let forms = [
            "cub,cutensor".into_accelerator_order(),
            ["cub", "cutensor"].into_accelerator_order(),
            names.as_slice().into_accelerator_order(),
            Some("cub,cutensor").into_accelerator_order(),
        ];
        assert!(forms.iter().all(|form| form.as_deref() == Some("cub,cutensor")), "{forms:?}");
        let none: [&str; 0] = [];
        assert_eq!((none.into_accelerator_order(), None.into_accelerator_order()), (Some(String::new()), None));
    }
}
