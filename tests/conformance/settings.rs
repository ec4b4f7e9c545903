//! Settings under which the cases run: devices x orders of accelerators x fusion x threads.

use std::fmt;

use cuprum::core::{Availability, registry};
use cuprum::distributed::Mesh;
use cuprum::{Device, DeviceKind, with_accelerators, with_device, with_fusion};

use crate::args::{Args, MeshChoice};

/// A combination of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub device: Device,
    /// On a mesh, the axis along which the inputs are sharded.
    pub sharded_axis: Option<usize>,
    /// The order of accelerators. `None` uses `CUPRUM_ACCELERATORS`.
    pub order: Option<String>,
    pub fusion: bool,
    /// Number of threads of the CPU backend. `None` uses its default.
    pub threads: Option<usize>,
}

impl Setting {
    /// Runs `f` under this setting. An invalid setting is an error.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> cuprum::Result<R> {
        let inner = || with_device(self.device, || with_fusion(self.fusion, f));
        let with_order = || match &self.order {
            None => Ok(inner()),
            Some(order) => with_accelerators(order.as_str(), inner),
        };
        match self.threads {
            None => with_order(),
            Some(n) => cuprum::backend_cpu::with_threads(n, with_order)?,
        }
    }

    /// Returns whether the settings differ at most in the number of threads, so that results must be bitwise identical.
    pub fn same_but_threads(&self, other: &Setting) -> bool {
        Setting { threads: None, ..self.clone() } == Setting { threads: None, ..other.clone() }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sharded_axis.zip(Mesh::of_device(self.device).ok()) {
            Some((axis, mesh)) => write!(f, "{} ranks, axis {axis}", mesh.size())?,
            None => write!(f, "{}", self.device)?,
        }
        match self.order.as_deref() {
            None => f.write_str(", accelerators as set")?,
            Some("") => f.write_str(", base alone")?,
            Some(order) => write!(f, ", {order}")?,
        }
        f.write_str(if self.fusion { ", fused" } else { ", not fused" })?;
        match self.threads {
            None => Ok(()),
            Some(1) => f.write_str(", 1 thread"),
            Some(n) => write!(f, ", {n} threads"),
        }
    }
}

/// Returns every setting that the machine and the arguments allow. A missing device or accelerator that the command line names is an
/// error. Without `--device`, so are fewer CUDA devices than `CUPRUM_REQUIRE_GPU`.
pub fn all(args: &Args) -> Result<Vec<Setting>, String> {
    let devices = match &args.device {
        _ if args.mesh.is_some() => Vec::new(),
        Some(name) => vec![Device::parse(name).map_err(|e| e.to_string())?],
        None => {
            require_gpus(std::env::var("CUPRUM_REQUIRE_GPU").ok().as_deref())?;
            Device::all()
        }
    };
    args.accelerators.iter().flat_map(|order| order.split(',')).try_for_each(require_accelerator)?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut settings = Vec::new();
    for device in devices {
        // More threads than cores, so that even a small machine interleaves them.
        let threads = if device == Device::CPU { vec![Some(1), Some(cores.max(3))] } else { vec![None] };
        for order in orders(device, args) {
            for fusion in [true, false] {
                for &threads in &threads {
                    settings.push(Setting { device, sharded_axis: None, order: order.clone(), fusion, threads });
                }
            }
        }
    }
    if args.quick {
        // The last fused setting of each device has all accelerators and all threads.
        let mut seen = Vec::new();
        settings.reverse();
        settings.retain(|s| s.fusion && !seen.contains(&s.device) && (seen.push(s.device), true).1);
        settings.reverse();
    }
    if args.runs_meshes() {
        settings.extend(meshes(args)?);
    }
    Ok(settings)
}

/// Numbers of ranks of the meshes on the host.
const RANKS: [usize; 5] = [1, 2, 3, 4, 8];
/// Number of axes along which inputs are sharded. Inputs with fewer axes use the remainder.
const AXES: usize = 3;

/// Returns the devices of the ranks of a mesh: the host, or the devices of `--device` in turn.
fn rank_devices(args: &Args, ranks: usize) -> Result<Vec<Device>, String> {
    let devices = match args.device.as_deref() {
        None => vec![Device::CPU],
        Some(name) => {
            let device = Device::parse(name).map_err(|e| e.to_string())?;
            let of_kind = || Device::all().into_iter().filter(|other| other.kind() == device.kind()).collect();
            if name.contains(':') { vec![device] } else { of_kind() }
        }
    };
    Ok(devices.into_iter().cycle().take(ranks).collect())
}

/// Returns the settings of meshes: each number of ranks with each axis, or those of `--mesh`.
fn meshes(args: &Args) -> Result<Vec<Setting>, String> {
    let choices = match args.mesh {
        Some((choice, _)) => vec![choice],
        None => RANKS.map(MeshChoice::Ranks).to_vec(),
    };
    let mut settings: Vec<Setting> = Vec::new();
    for choice in choices {
        let mesh = match choice {
            MeshChoice::Ranks(ranks) => Mesh::over_devices(&rank_devices(args, ranks)?),
            MeshChoice::Processes => Mesh::from_env(),
        };
        let device = mesh.map_err(|e| e.to_string())?.device();
        for axis in (0..AXES).filter(|axis| args.mesh.and_then(|(_, axis)| axis).is_none_or(|wanted| wanted == *axis)) {
            let order = Some(args.accelerators.clone().unwrap_or_default());
            let setting = Setting { device, sharded_axis: Some(axis), order, fusion: true, threads: None };
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
    }
    Ok(settings)
}

/// Returns an error if there are fewer CUDA devices than required.
fn require_gpus(required: Option<&str>) -> Result<(), String> {
    let Some(required) = required.filter(|text| !text.is_empty()) else { return Ok(()) };
    let count: usize = required.parse().map_err(|_| format!("CUPRUM_REQUIRE_GPU='{required}' is not a number of devices"))?;
    match (1..=count).find_map(|n| Device::parse(&format!("cuda:{}", n - 1)).err()) {
        Some(reason) => Err(format!("CUPRUM_REQUIRE_GPU={required}, but {reason}")),
        None => Ok(()),
    }
}

/// Returns an error if an accelerator of `--accelerators` is unknown or missing on this machine. Dispatch would leave it out.
fn require_accelerator(name: &str) -> Result<(), String> {
    let name = name.trim();
    if name.is_empty() || name == "auto" {
        return Ok(());
    }
    let Some(accelerator) = registry::all_accelerators().into_iter().find(|a| a.name == name) else {
        return Err(format!("--accelerators: there is no accelerator `{name}`"));
    };
    match registry::availability(accelerator) {
        Availability::Ready(_) => Ok(()),
        Availability::Missing { why, help } => Err(format!("--accelerators: `{name}` is missing: {why}; {help}")),
    }
}

/// Returns the orders of the ready accelerators of a device: none, `auto`, each alone, and all permutations. With more than three
/// accelerators it uses only the order by rank and its reverse.
fn orders(device: Device, args: &Args) -> Vec<Option<String>> {
    if let Some(order) = &args.accelerators {
        return vec![Some(order.clone())];
    }
    if std::env::var_os("CUPRUM_ACCELERATORS").is_some() {
        return vec![None];
    }
    let ready: Vec<&str> = registry::all_accelerators()
        .into_iter()
        .filter(|a| a.base.is_none() && DeviceKind::intern(a.device).is_ok_and(|kind| kind == device.kind()))
        .filter(|a| matches!(registry::availability(a), Availability::Ready(_)))
        .map(|a| a.name)
        .collect();
    let mut orders = vec![String::new()];
    orders.extend((!ready.is_empty()).then(|| "auto".to_string()));
    orders.extend(ready.iter().map(ToString::to_string));
    match ready.len() {
        0 | 1 => {}
        2 | 3 => orders.extend(permutations(&ready)),
        _ => orders.extend([ready.join(","), ready.iter().rev().copied().collect::<Vec<_>>().join(",")]),
    }
    orders.into_iter().map(Some).collect()
}

fn permutations(names: &[&str]) -> Vec<String> {
    if names.len() == 1 {
        return vec![names[0].to_string()];
    }
    let mut all = Vec::new();
    for (i, first) in names.iter().enumerate() {
        let rest: Vec<&str> = names.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, n)| *n).collect();
        all.extend(permutations(&rest).into_iter().map(|tail| format!("{first},{tail}")));
    }
    all
}
