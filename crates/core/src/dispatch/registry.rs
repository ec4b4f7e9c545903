//! Accelerators: how a backend makes itself known, which of them are ready, and the chain of kernels for each family and device.
//!
//! A chain is computed once per order and then read through a thread-local pointer: no lock, no hash, no text on the way
//! of a call. Backends register with one `inventory::submit!` or, in static libraries, through [`register`].

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::call::{Call, Outcome, Reason};
use crate::device::{Device, DeviceDriver, DeviceKind, MAX_KINDS};
use crate::dtype::DTypeSet;
use crate::error::{Error, Result};
use crate::op::{Family, Op};
use crate::settings;

/// Whether an accelerator can be used on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Yes; one line of detail (version, where it was found).
    Ready(String),
    /// No.
    Missing {
        /// What is not there.
        why: String,
        /// The command or setting that would help; may be empty.
        help: String,
    },
}

/// Which operations a kernel takes; of a fused expression, all of its operations must be among them.
#[derive(Clone, Copy, Debug)]
pub enum OpFilter {
    /// Every operation of the family.
    All,
    /// These.
    Only(&'static [Op]),
    /// These, and operations of other crates that have a body.
    OnlyAndBodies(&'static [Op]),
}

impl OpFilter {
    /// Whether it lets an operation through.
    pub fn takes(self, op: Op) -> bool {
        match self {
            OpFilter::All => true,
            OpFilter::Only(ops) => ops.contains(&op),
            OpFilter::OnlyAndBodies(ops) => op.0.body.is_some() || ops.contains(&op),
        }
    }
    /// Whether it lets an operation through by its name.
    pub(crate) fn names(self, op: Op) -> bool {
        matches!(self, OpFilter::Only(ops) | OpFilter::OnlyAndBodies(ops) if ops.contains(&op))
    }
}

/// One kernel: a cheap static filter and the function behind it.
///
/// ```
/// # use cuprum_core::{Call, DType, DTypeSet, Family, Kernel, Outcome, Result, decline, ops::reduce::SUM};
/// fn sum(call: &Call) -> Result<Outcome> {
///     decline!("not today")
/// }
/// const KERNELS: &[Kernel] = &[Kernel::new(Family::Reduce, sum).ops(&[SUM]).dtypes(DTypeSet::of(&[DType::F64]))];
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The family it belongs to.
    pub family: Family,
    /// Operations it takes.
    pub ops: OpFilter,
    /// Input dtypes it takes; output dtypes too, where there is no input.
    pub dtypes: DTypeSet,
    /// Does the work, or declines before any side effect.
    pub run: fn(&Call) -> Result<Outcome>,
}

impl Kernel {
    /// A kernel for every operation and dtype of a family.
    pub const fn new(family: Family, run: fn(&Call) -> Result<Outcome>) -> Kernel {
        Kernel { family, ops: OpFilter::All, dtypes: DTypeSet::ALL, run }
    }
    /// For these operations only.
    pub const fn ops(self, ops: &'static [Op]) -> Kernel {
        Kernel { ops: OpFilter::Only(ops), ..self }
    }
    /// For these operations, and those of other crates that have a body.
    pub const fn ops_and_bodies(self, ops: &'static [Op]) -> Kernel {
        Kernel { ops: OpFilter::OnlyAndBodies(ops), ..self }
    }
    /// For these dtypes only.
    pub const fn dtypes(self, dtypes: DTypeSet) -> Kernel {
        Kernel { dtypes, ..self }
    }
}

/// How a base accelerator provides its device.
#[derive(Debug)]
pub struct Provider {
    /// Number of devices; asked after the probe said that the accelerator is ready.
    pub count: fn() -> usize,
    /// Whether the device of this number can be used. If not, `open` says why.
    pub is_ready: fn(usize) -> bool,
    /// Opens one.
    pub open: fn(Device) -> Result<Box<dyn DeviceDriver>>,
}

/// A named set of kernels for one kind of device.
#[derive(Debug)]
pub struct Accelerator {
    /// Lower-case name, as in `CUPRUM_ACCELERATORS`.
    pub name: &'static str,
    /// Name of the device kind it serves.
    pub device: &'static str,
    /// Order when no other is asked for: lower first; ties by name. The base comes last whatever its rank.
    pub rank: i32,
    /// One line for `cuprum info`.
    pub summary: &'static str,
    /// Looks, once, whether it can be used here. Never panics.
    pub probe: fn() -> Availability,
    /// Its kernels; within an accelerator they are asked in this order.
    pub kernels: &'static [Kernel],
    /// Set for the base accelerator of a device kind, which is the device itself.
    pub base: Option<Provider>,
}

/// What `inventory` collects: `inventory::submit! { Registration(&MY_ACCELERATOR) }`.
pub struct Registration(pub &'static Accelerator);
inventory::collect!(Registration);

/// A link of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub accelerator: &'static Accelerator,
    pub kernel: &'static Kernel,
}

/// The ordered kernels for every family and device kind, under one order of accelerators.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    links: [[Vec<Link>; Family::ALL.len()]; MAX_KINDS],
    /// The order is `auto`.
    measures: bool,
    /// Somebody asked for this order.
    named: bool,
}

impl Chains {
    pub(crate) fn get(&self, family: Family, kind: DeviceKind) -> &[Link] {
        &self.links[kind.index()][family as usize]
    }

    /// Whether whom to ask first is found by measurement.
    pub(crate) fn measures(&self) -> bool {
        self.measures
    }
}

/// One accelerator as `cuprum info` shows it.
#[derive(Clone, Debug)]
pub struct Status {
    /// The accelerator.
    pub accelerator: &'static Accelerator,
    /// What its probe said.
    pub availability: Availability,
    /// Its place in the order in force, or `None` if it is left out.
    pub place: Option<usize>,
}

/// What is registered: changed rarely, under a lock; hot paths read leaked snapshots.
#[derive(Default)]
struct State {
    added: Vec<&'static Accelerator>,
    chains: HashMap<Option<Vec<String>>, &'static Chains>,
    process_order: Option<Option<Vec<String>>>,
    default_device: Option<Device>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Grows with every change, so that thread-local chains are looked up again.
static GENERATION: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static CHAINS: Cell<(u64, Option<&'static Chains>)> = const { Cell::new((0, None)) };
    static SCOPED: Cell<Option<&'static Chains>> = const { Cell::new(None) };
}

fn with_state<R>(f: impl FnOnce(&mut State) -> R) -> R {
    let mut guard = STATE.lock().unwrap_or_else(|e| e.into_inner());
    f(guard.get_or_insert_with(State::default))
}

/// Makes an accelerator known, for static libraries and tests; twice the same is fine, another of the same name is an error.
pub fn register(accelerator: &'static Accelerator) -> Result<()> {
    let known = all();
    if known.iter().any(|a| std::ptr::eq(*a, accelerator)) {
        return Ok(());
    }
    check_new(&known, accelerator)?;
    with_state(|s| {
        s.added.push(accelerator);
        s.chains.clear();
        GENERATION.fetch_add(1, Ordering::Release);
    });
    Ok(())
}

fn check_new(known: &[&'static Accelerator], new: &'static Accelerator) -> Result<()> {
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

/// Every registered accelerator, by rank and name. Of two with one name the first (by rank) stays; `settings::check` reports it.
pub fn all() -> Vec<&'static Accelerator> {
    let mut list: Vec<&'static Accelerator> = inventory::iter::<Registration>.into_iter().map(|r| r.0).collect();
    list.extend(with_state(|s| s.added.clone()));
    list.sort_by_key(|a| (a.base.is_some(), a.rank, a.name, a.summary));
    let mut unique: Vec<&'static Accelerator> = Vec::new();
    for a in list {
        if unique.iter().all(|u| u.name != a.name) {
            unique.push(a);
        }
    }
    unique
}

/// What an accelerator's probe said; asked once per process.
pub fn availability(accelerator: &'static Accelerator) -> Availability {
    static SEEN: Mutex<Vec<(usize, &'static OnceLock<Availability>)>> = Mutex::new(Vec::new());
    let key = std::ptr::from_ref(accelerator) as usize;
    let cell: &'static OnceLock<Availability> = {
        let mut seen = SEEN.lock().unwrap_or_else(|e| e.into_inner());
        match seen.iter().find(|(k, _)| *k == key) {
            Some((_, cell)) => cell,
            None => {
                let cell: &'static OnceLock<Availability> = Box::leak(Box::default());
                seen.push((key, cell));
                cell
            }
        }
    };
    cell.get_or_init(|| {
        std::panic::catch_unwind(accelerator.probe)
            .unwrap_or_else(|_| Availability::Missing { why: "its probe panicked".into(), help: String::new() })
    })
    .clone()
}

fn is_ready(accelerator: &'static Accelerator) -> bool {
    matches!(availability(accelerator), Availability::Ready(_))
}

/// The order in force: names as given, or `None` for "every ready one, by rank".
pub fn order() -> Result<Option<Vec<String>>> {
    match with_state(|s| s.process_order.clone()) {
        Some(order) => Ok(order),
        None => settings::read(settings::ACCELERATORS)?.map(|text| parse_order(&text)).transpose(),
    }
}

/// The order that measures; see [`tuning`](crate::tuning).
fn is_auto(names: &[String]) -> bool {
    matches!(names, [name] if name == "auto")
}

fn parse_order(text: &str) -> Result<Vec<String>> {
    let mut names = settings::parse_names(text);
    let known = all();
    let variable = settings::ACCELERATORS;
    if is_auto(&names) {
        return Ok(names);
    }
    if let Some(unknown) = names.iter().find(|n| known.iter().all(|a| a.name != n.as_str())) {
        let list = known.iter().filter(|a| a.base.is_none()).map(|a| a.name).collect::<Vec<_>>().join(", ");
        let list = if list.is_empty() { "none" } else { &list };
        let message = match unknown.as_str() {
            "auto" => format!("'auto' stands alone: it measures all of them ({list})"),
            _ => format!("unknown accelerator '{unknown}'; known: {list}, or auto"),
        };
        return Err(Error::Setting { variable, message });
    }
    let mut seen = Vec::new();
    names.retain(|n| !seen.contains(n) && (seen.push(n.clone()), true).1);
    Ok(names)
}

/// The order as a setter takes it: `"cub,cutensor"`, `["cub", "cutensor"]`, `"auto"`, or `None` for the default.
pub trait IntoOrder {
    /// The text form, or `None` for the default order.
    fn into_order(self) -> Option<String>;
}
impl IntoOrder for &str {
    fn into_order(self) -> Option<String> {
        Some(self.to_string())
    }
}
impl<const N: usize> IntoOrder for [&str; N] {
    fn into_order(self) -> Option<String> {
        Some(self.join(","))
    }
}
impl IntoOrder for &[String] {
    fn into_order(self) -> Option<String> {
        Some(self.join(","))
    }
}
impl IntoOrder for Option<&str> {
    fn into_order(self) -> Option<String> {
        self.map(str::to_string)
    }
}

/// Sets the order for the process, as `CUPRUM_ACCELERATORS` would; `None` returns to the default order.
pub fn set_accelerators(order: impl IntoOrder) -> Result<()> {
    let order = order.into_order().map(|t| parse_order(&t)).transpose()?;
    with_state(|s| s.process_order = Some(order));
    GENERATION.fetch_add(1, Ordering::Release);
    Ok(())
}

/// Runs `f` under another order of accelerators on this thread. Empty: the base only.
pub fn with_accelerators<R>(order: impl IntoOrder, f: impl FnOnce() -> R) -> Result<R> {
    struct Restore(Option<&'static Chains>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCOPED.with(|s| s.set(self.0));
        }
    }
    let order = order.into_order().map(|t| parse_order(&t)).transpose()?;
    let chains = chains_for(order)?;
    let _restore = Restore(SCOPED.with(|s| s.replace(Some(chains))));
    Ok(f())
}

/// The chains of this thread: a scoped order's, else the process'.
pub(crate) fn chains() -> Result<&'static Chains> {
    if let Some(scoped) = SCOPED.with(Cell::get) {
        return Ok(scoped);
    }
    let generation = GENERATION.load(Ordering::Acquire);
    if let (seen, Some(chains)) = CHAINS.with(Cell::get)
        && seen == generation
    {
        return Ok(chains);
    }
    let chains = chains_for(order()?)?;
    CHAINS.with(|c| c.set((generation, Some(chains))));
    Ok(chains)
}

/// Whether accelerators are asked here in an order that somebody named, and not in that of their ranks.
pub fn order_is_named() -> bool {
    chains().is_ok_and(|c| c.named)
}

/// For kernels that are known to be slower than those after them: a reason to decline unless somebody named the order, which is then
/// followed (and `auto` measures for itself).
pub fn if_order_is_named(otherwise: &'static str) -> std::result::Result<(), Reason> {
    if order_is_named() { Ok(()) } else { Err(Reason::new(otherwise)) }
}

/// Chains under an order, built once and kept for the life of the process.
fn chains_for(order: Option<Vec<String>>) -> Result<&'static Chains> {
    loop {
        if let Some(chains) = with_state(|s| s.chains.get(&order).copied()) {
            return Ok(chains);
        }
        let generation = GENERATION.load(Ordering::Acquire);
        let chains: &'static Chains = Box::leak(Box::new(build(order.as_deref())?));
        // An accelerator that registered meanwhile may be missing from them.
        with_state(|s| {
            if GENERATION.load(Ordering::Acquire) == generation {
                s.chains.insert(order.clone(), chains);
            }
        });
    }
}

/// Accelerators taking part under an order: the named (or all) ready ones, then the bases.
fn members(order: Option<&[String]>) -> Vec<&'static Accelerator> {
    let known = all();
    let (bases, others): (Vec<_>, Vec<_>) = known.iter().copied().partition(|a| a.base.is_some());
    let chosen: Vec<_> = match order {
        None => others,
        Some(names) if is_auto(names) => others,
        Some(names) => names.iter().filter_map(|n| others.iter().copied().find(|a| a.name == n)).collect(),
    };
    chosen.into_iter().chain(bases).filter(|a| is_ready(a)).collect()
}

fn build(order: Option<&[String]>) -> Result<Chains> {
    let mut chains = Chains { measures: order.is_some_and(is_auto), named: order.is_some(), ..Chains::default() };
    for accelerator in members(order) {
        let kind = DeviceKind::intern(accelerator.device)?;
        for kernel in accelerator.kernels {
            chains.links[kind.index()][kernel.family as usize].push(Link { accelerator, kernel });
        }
    }
    Ok(chains)
}

/// Every accelerator with its availability and its place in the order in force, for `cuprum info`.
pub fn status() -> Result<Vec<Status>> {
    let order = order()?;
    let members = members(order.as_deref());
    let place = |a: &'static Accelerator| members.iter().position(|m| std::ptr::eq(*m, a));
    Ok(all().into_iter().map(|a| Status { accelerator: a, availability: availability(a), place: place(a) }).collect())
}

/// Reports bad names in `CUPRUM_ACCELERATORS` and `CUPRUM_DEVICE`, and accelerators that share a name.
pub(crate) fn check_settings() -> Result<()> {
    order()?;
    if let Some(text) = settings::env("CUPRUM_DEVICE") {
        parse_device(&text)?;
    }
    let mut seen: Vec<&'static Accelerator> = Vec::new();
    for r in inventory::iter::<Registration> {
        check_new(&seen, r.0)?;
        seen.push(r.0);
    }
    Ok(())
}

// ---- devices ----

/// The base accelerator of a kind of device, ready or not.
pub(crate) fn base_of(kind_name: &str) -> Option<&'static Accelerator> {
    all().into_iter().find(|a| a.base.is_some() && a.device == kind_name)
}

const MAX_ORDINALS: usize = 64;

/// The opened driver of a device, without a lock once it is open.
pub(crate) fn driver(device: Device) -> Result<&'static dyn DeviceDriver> {
    struct Slot {
        opened: OnceLock<Box<dyn DeviceDriver>>,
        opening: Mutex<()>,
    }
    static SLOTS: [[Slot; MAX_ORDINALS]; MAX_KINDS] =
        [const { [const { Slot { opened: OnceLock::new(), opening: Mutex::new(()) } }; MAX_ORDINALS] }; MAX_KINDS];
    let slot = SLOTS.get(device.kind().index()).and_then(|k| k.get(device.ordinal()));
    let slot = slot.ok_or_else(|| Error::Device { op: "device", message: format!("there is no device {device}") })?;
    if let Some(driver) = slot.opened.get() {
        return Ok(driver.as_ref());
    }
    // A failure is not kept: a backend may register, or a busy device be free, before the next try.
    let _opening = slot.opening.lock().unwrap_or_else(|e| e.into_inner());
    match slot.opened.get() {
        Some(driver) => Ok(driver.as_ref()),
        None => open(device).map(|driver| slot.opened.get_or_init(|| driver).as_ref()),
    }
}

fn open(device: Device) -> Result<Box<dyn DeviceDriver>> {
    let missing = |message: String| Error::Device { op: "device", message };
    let name = device.kind().name();
    let base = base_of(name).ok_or_else(|| {
        missing(format!("no backend for '{name}' is linked in; name its crate with `use ... as _;` or call its `register()`"))
    })?;
    if let Availability::Missing { why, help } = availability(base) {
        return Err(missing(format!("{device} is not ready: {why}{}{help}", if help.is_empty() { "" } else { "; " })));
    }
    let provider = base.base.as_ref().ok_or_else(|| missing(format!("{device} has no provider")))?;
    let count = (provider.count)();
    if device.ordinal() >= count {
        let wanted = device.ordinal();
        return Err(missing(format!("there is no {name}:{wanted}: this machine has {count} {name} device(s)")));
    }
    (provider.open)(device)
}

/// Every device of every ready base, the host first.
pub(crate) fn ready_devices() -> Vec<Device> {
    let mut devices = Vec::new();
    for a in all() {
        let (Some(provider), true) = (&a.base, is_ready(a)) else { continue };
        let Ok(kind) = DeviceKind::intern(a.device) else { continue };
        let ready = (0..(provider.count)().min(MAX_ORDINALS)).filter(|n| (provider.is_ready)(*n));
        devices.extend(ready.map(|n| Device::new(kind, n as u16)));
    }
    devices.sort_by_key(|d| (d.kind(), d.ordinal()));
    devices
}

pub(crate) fn parse_device(text: &str) -> Result<Device> {
    let variable = "CUPRUM_DEVICE";
    let t = text.trim().to_ascii_lowercase();
    if t == "auto" || t.is_empty() {
        return Ok(ready_devices().into_iter().find(|d| d.kind() != DeviceKind::CPU).unwrap_or(Device::CPU));
    }
    let (name, number) = t.split_once(':').unwrap_or((&t, "0"));
    let kinds: Vec<&'static str> = all().iter().filter(|a| a.base.is_some()).map(|a| a.device).collect();
    let kind = kinds.iter().find(|k| **k == name).copied().or((name == "cpu").then_some("cpu")).ok_or_else(|| Error::Setting {
        variable,
        message: format!("'{text}' is not a device; use auto, {}, or one with a number such as cuda:0", kinds.join(", ")),
    })?;
    let ordinal: u16 =
        number.parse().map_err(|_| Error::Setting { variable, message: format!("'{number}' in '{text}' is not a device number") })?;
    let device = Device::new(DeviceKind::intern(kind)?, ordinal);
    driver(device)?;
    Ok(device)
}

pub(crate) fn default_device() -> Result<Device> {
    if let Some(device) = with_state(|s| s.default_device) {
        return Ok(device);
    }
    let device = parse_device(&settings::env("CUPRUM_DEVICE").unwrap_or_default())?;
    with_state(|s| s.default_device = Some(device));
    Ok(device)
}

pub(crate) fn set_default_device(device: Device) {
    with_state(|s| s.default_device = Some(device));
}
