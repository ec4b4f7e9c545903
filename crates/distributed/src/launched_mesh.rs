//! Meshes over the processes that a launcher has started.

use std::sync::{Arc, Mutex};

use cuprum_core::device::collectives::{CollectiveLibrary, CommunicatorArguments};
use cuprum_core::settings::mesh as settings;
use cuprum_core::{Device, Error, Result, random};

use crate::engines::{Engine, LibraryEngine, TcpEngine};
use crate::mesh::{MESH_KIND_NAME, Mesh, check_rank_count};
use crate::processes::engine_choice::{EngineChoice, make_library_offer};
use crate::processes::launcher_environment::{LaunchedProcess, find_launched_process};
use crate::processes::mesh_connections::MeshConnections;
use crate::processes::rank_connections::connect_to_other_ranks;
use crate::processes::rendezvous::{JoiningProcess, run_rendezvous};

/// The rank of this process among the launcher's processes. All meshes over these processes share the connections of this rank.
#[derive(Clone)]
struct LaunchedRank {
    rank: usize,
    size: usize,
    device: Device,
    engine: Arc<dyn Engine>,
}

/// The result of the rendezvous, set by the first mesh over several processes. An error is stored as well, because the other processes do
/// not repeat the rendezvous.
static LAUNCHED_RANK: Mutex<Option<Result<LaunchedRank>>> = Mutex::new(None);

impl Mesh {
    /// Returns the mesh of one axis over all processes of the launcher: `torchrun`, `mpirun` of Open MPI, or `srun` of Slurm.
    ///
    /// The first call waits until all processes call this function. Each process has one rank. The device of this rank is the GPU whose
    /// index is the rank of the process among the processes on its machine. If the default device is the host, the rank is on the host.
    /// Without a launcher, the mesh has one rank on the current device.
    ///
    /// All processes have to run the same operations on the mesh in the same order. `docs/distributed.md` lists variables and failures.
    ///
    /// # Errors
    /// [`Error::Setting`] for a missing or invalid variable. [`Error::Value`] for more than 192 processes, which need
    /// [`Mesh::from_env_grid`]. [`Error::Rank`] for a process that does not join in time, joins twice, or has
    /// a different number of processes, secret, or version of cuprum.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # mod cuprum { pub use cuprum_core::*; pub mod distributed { pub use cuprum_distributed::*; } }
    /// use cuprum::distributed::Mesh;
    /// use cuprum::{arange, with_device};
    /// # fn main() -> cuprum::Result<()> {
    /// let mesh = Mesh::from_env()?;
    /// let sum = with_device(mesh.device(), || arange(0, 1000, 1)?.sum(()))?; // each process has the sum
    /// assert_eq!(sum.item()?, 499500.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_env() -> Result<Mesh> {
        match launched_rank(|size| check_rank_count(&[size]).map(drop))? {
            Some(member) => Mesh::find_or_create_mesh(&[member.size], &[member.device], member.rank, member.engine),
            None => Mesh::over_devices(&[Device::current()?]),
        }
    }

    /// Returns a mesh of the given shape over all processes of the launcher. Ranks are numbered in C order. See [`Mesh::from_env`].
    ///
    /// # Errors
    /// Returns the errors of [`Mesh::from_env`], and an error if the number of processes differs from the number of ranks.
    pub fn from_env_grid(shape: &[usize]) -> Result<Mesh> {
        let ranks = check_rank_count(shape)?;
        let differs = |size| Error::value("mesh", format!("a mesh of shape {shape:?} has {ranks} ranks, but there are {size} processes"));
        match launched_rank(|size| if ranks == size { Ok(()) } else { Err(differs(size)) })? {
            Some(member) => Mesh::find_or_create_mesh(shape, &[member.device], member.rank, member.engine),
            None => Mesh::grid_over_devices(shape, &[Device::current()?]),
        }
    }
}

/// Returns the rank of this process, or `None` if no launcher has started several processes. The first call runs the rendezvous, after
/// `check` has accepted the number of processes.
fn launched_rank(check: impl FnOnce(usize) -> Result<()>) -> Result<Option<LaunchedRank>> {
    let variable = |name: &str| std::env::var(name).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty());
    let launch = find_launched_process(&variable, settings::address()?)?;
    check(launch.as_ref().map_or(1, |launch| launch.size))?;
    let Some(launch) = launch else { return Ok(None) };
    let mut member = LAUNCHED_RANK.lock().unwrap_or_else(|e| e.into_inner());
    member.get_or_insert_with(|| join_mesh(launch)).clone().map(Some)
}

/// Runs the rendezvous, connects to the other processes and opens the communication engine.
fn join_mesh(launch: LaunchedProcess) -> Result<LaunchedRank> {
    let LaunchedProcess { rank, size, local_rank, address } = launch;
    let device = device_of_local_rank(local_rank)?;
    let timeout = settings::timeout()?;
    let candidate = JoiningProcess {
        rank,
        size,
        address,
        secret: settings::secret(),
        timeout,
        version: env!("CARGO_PKG_VERSION").into(),
        offer: make_library_offer(device, settings::engine()?),
        entropy: random::fresh_entropy(),
    };
    let meeting = run_rendezvous(&candidate)?;
    let connections = MeshConnections::start_threads(rank, size, timeout, connect_to_other_ranks(&candidate, &meeting)?)?;
    random::set_shared_entropy_key(meeting.entropy);
    let engine: Arc<dyn Engine> = match &meeting.engine {
        EngineChoice::Tcp { reason } => Arc::new(TcpEngine::new(connections, reason.clone())),
        EngineChoice::Library { name, id } => {
            let library = CollectiveLibrary::library_for_device_kind(device.kind().name()).filter(|library| library.name == name);
            let library = library.ok_or_else(|| Error::Device { op: "mesh", message: format!("{device} has no library {name}") })?;
            let started = std::time::Instant::now();
            let mut patience = connections.keep_waiting_for((rank + 1) % size);
            let joined = (library.join)(CommunicatorArguments { id, size, rank, device }, &mut || patience(started.elapsed()));
            let communicator = joined.map_err(|error| {
                let error = connections.fail_mesh(error);
                connections.close_connections();
                error
            })?;
            Arc::new(LibraryEngine::new(library.name, connections.clone(), communicator)?)
        }
    };
    Ok(LaunchedRank { rank, size, device, engine })
}

/// Returns the device of the process whose rank on its machine is `local_rank`.
fn device_of_local_rank(local_rank: usize) -> Result<Device> {
    let current = Device::current()?;
    if current.kind().name() == MESH_KIND_NAME {
        return Err(Error::value("mesh", format!("a rank cannot be on {current}, which is a mesh")));
    }
    if current == Device::CPU {
        return Ok(current);
    }
    let devices: Vec<Device> = Device::all().into_iter().filter(|device| device.kind() == current.kind()).collect();
    match devices[..] {
        // If the launcher makes only one device visible to each process, that device has the index 0, whatever the local rank is.
        [device] => Ok(device),
        _ => devices.get(local_rank).copied().ok_or_else(|| {
            let message =
                format!("local rank {local_rank} has no device: this machine has {} of kind {}", devices.len(), current.kind().name());
            Error::Device { op: "mesh", message }
        }),
    }
}
