//! Meshes: grids of ranks, each with a device. A mesh is itself a device of kind `mesh`.

use std::fmt;
use std::sync::{Arc, Mutex};

use cuprum_core::layout::Dims;
use cuprum_core::profiler::trace;
use cuprum_core::{Device, DeviceKind, Error, Result, with_device};

use crate::axis_blocks::MAX_BLOCKS_PER_AXIS;
use crate::engines::{Engine, LoopbackEngine, engines_count_as_equal};

/// Name of the device kind of meshes.
pub(crate) const MESH_KIND_NAME: &str = "mesh";
/// Maximum number of meshes in a process.
const MAX_MESHES: usize = 64;
/// Maximum number of ranks of a mesh.
pub(crate) const MAX_MESH_RANKS: usize = 4096;

/// A grid of ranks. Each rank has a device, on which it keeps and computes its part of an array.
///
/// A mesh is a device of kind `mesh` ([`Mesh::device`]): arrays on it are ordinary [`NdArray`](cuprum_core::NdArray)s, and every function
/// takes them. A second mesh of equal shape and devices is the same device. A process has at most 64 meshes, which live as long as the
/// process.
///
/// A mesh may extend over several processes, each with one rank ([`Mesh::from_env`]). Each process then runs the same program.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use cuprum_core::*; pub mod distributed { pub use cuprum_distributed::*; } }
/// use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
/// use cuprum::{arange, with_device};
/// # fn main() -> cuprum::Result<()> {
/// let mesh = Mesh::loopback(4)?;
/// let a = with_device(mesh.device(), || arange(0, 1000, 1))?; // each rank computes its part
/// assert_eq!(a.placements(), Some(vec![Shard(0)]));
/// assert_eq!((&a + 1).sum(())?.item()?, 500500.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Mesh(&'static MeshState);

struct MeshState {
    device: Device,
    shape: Dims,
    /// Devices of the ranks of this process.
    members: Vec<Device>,
    /// First rank of this process. The ranks of a process are consecutive.
    first_rank: usize,
    engine: Arc<dyn Engine>,
}

static MESHES: Mutex<Vec<Mesh>> = Mutex::new(Vec::new());

impl Mesh {
    /// Returns a mesh of `ranks` ranks on the host, for tests and for development without a GPU.
    ///
    /// The ranks share the memory and the threads of this process, so that the mesh is not faster than the host.
    ///
    /// # Errors
    /// Returns an error if `ranks` is 0 or more than 4096, or if the process already has the maximum number of meshes.
    pub fn loopback(ranks: usize) -> Result<Mesh> {
        Mesh::loopback_grid(&[ranks])
    }

    /// Returns a mesh of the given shape, whose ranks are on the host. Ranks are numbered in C order.
    ///
    /// # Errors
    /// Returns the errors of [`Mesh::loopback`], and an error if `shape` has no axes.
    pub fn loopback_grid(shape: &[usize]) -> Result<Mesh> {
        let ranks = check_rank_count(shape)?;
        Mesh::grid_over_devices(shape, &vec![Device::CPU; ranks])
    }

    /// Returns a mesh of one axis over devices of this process. A device may have several ranks.
    ///
    /// # Errors
    /// Returns the errors of [`Mesh::loopback`], and an error if a device is not ready or is itself a mesh.
    pub fn over_devices(devices: &[Device]) -> Result<Mesh> {
        Mesh::grid_over_devices(&[devices.len()], devices)
    }

    /// Returns a mesh of the given shape over devices of this process, in C order.
    ///
    /// # Errors
    /// Returns the errors of [`Mesh::over_devices`], and an error if the number of devices differs from the number of ranks.
    pub fn grid_over_devices(shape: &[usize], devices: &[Device]) -> Result<Mesh> {
        if check_rank_count(shape)? != devices.len() {
            let message =
                format!("a mesh of shape {shape:?} has {} ranks, but {} devices are given", check_rank_count(shape)?, devices.len());
            return Err(Error::value("mesh", message));
        }
        for device in devices {
            if device.kind().name() == MESH_KIND_NAME {
                return Err(Error::value("mesh", format!("a rank cannot be on {device}, which is a mesh")));
            }
            cuprum_core::device::driver(*device)?;
        }
        Mesh::find_or_create_mesh(shape, devices, 0, Arc::new(LoopbackEngine))
    }

    /// Returns this process's mesh with the given shape, devices, first rank and engine. Creates the mesh if none is equal.
    pub(crate) fn find_or_create_mesh(shape: &[usize], members: &[Device], first_rank: usize, engine: Arc<dyn Engine>) -> Result<Mesh> {
        let mut meshes = MESHES.lock().unwrap_or_else(|e| e.into_inner());
        let is_equal = |m: &&Mesh| {
            m.shape() == shape && m.0.members == members && m.0.first_rank == first_rank && engines_count_as_equal(&m.0.engine, &engine)
        };
        if let Some(mesh) = meshes.iter().find(is_equal) {
            return Ok(*mesh);
        }
        if meshes.len() == MAX_MESHES {
            return Err(Error::value("mesh", format!("there are {MAX_MESHES} meshes already")));
        }
        let device = Device::new(DeviceKind::intern(MESH_KIND_NAME)?, meshes.len() as u16);
        let state = MeshState { device, shape: shape.into(), members: members.to_vec(), first_rank, engine };
        let mesh = Mesh(Box::leak(Box::new(state)));
        meshes.push(mesh);
        Ok(mesh)
    }

    /// Returns the mesh that is `device`.
    ///
    /// # Errors
    /// Returns an error if `device` is not a mesh.
    pub fn of_device(device: Device) -> Result<Mesh> {
        let meshes = MESHES.lock().unwrap_or_else(|e| e.into_inner());
        let found = if device.kind().name() == MESH_KIND_NAME { meshes.get(device.ordinal()).copied() } else { None };
        found.ok_or_else(|| Error::Device { op: "mesh", message: format!("{device} is not a mesh of this process") })
    }

    /// Returns the number of meshes of this process.
    pub(crate) fn mesh_count() -> usize {
        MESHES.lock().unwrap_or_else(|e| e.into_inner()).len()
    }

    /// Returns the mesh as a device, for [`with_device`](cuprum_core::with_device) and
    /// [`NdArray::to_device`](cuprum_core::NdArray::to_device).
    pub fn device(self) -> Device {
        self.0.device
    }

    /// Returns the extents of the grid.
    pub fn shape(&self) -> &'static [usize] {
        &self.0.shape
    }

    /// Returns the number of ranks.
    pub fn size(self) -> usize {
        self.0.shape.iter().product()
    }

    /// Returns the ranks of this process, in order.
    pub fn local_ranks(self) -> std::ops::Range<usize> {
        self.0.first_rank..self.0.first_rank + self.0.members.len()
    }

    /// Calls `f`, the work of rank number `local` of this process, with the rank's device as the current device.
    pub(crate) fn with_rank_device<R>(self, local: usize, f: impl FnOnce() -> R) -> R {
        trace::with_rank(self.0.first_rank + local, || with_device(self.0.members[local], f))
    }

    /// Returns the devices of the ranks of this process.
    pub fn local_devices(&self) -> &'static [Device] {
        &self.0.members
    }

    /// Returns the name of the communication engine that moves data between the ranks. In one process, it is `loopback`. Between processes,
    /// it is the name of the devices' communication library, such as `nccl`, or `tcp`. The `Debug` form of the mesh says why the engine is
    /// `tcp`.
    pub fn engine_name(self) -> &'static str {
        self.0.engine.name()
    }

    pub(crate) fn engine(&self) -> &'static dyn Engine {
        self.0.engine.as_ref()
    }

    /// Returns the position of `rank` along a mesh axis.
    pub(crate) fn rank_coordinate(self, rank: usize, mesh_axis: usize) -> usize {
        let inner: usize = self.0.shape[mesh_axis + 1..].iter().product();
        rank / inner % self.0.shape[mesh_axis]
    }

    /// Returns whether `rank` computes the result of an operation whose inputs every rank holds. Other ranks on the same device share the
    /// result.
    ///
    /// The first rank on each device of a process computes. A rank of another process always computes, because it is the only rank of its
    /// process.
    pub(crate) fn is_device_leader(self, rank: usize) -> bool {
        match rank.checked_sub(self.0.first_rank).and_then(|local| self.0.members.get(local).map(|device| (local, device))) {
            Some((local, device)) => self.0.members.iter().position(|member| member == device) == Some(local),
            None => true,
        }
    }

    /// Returns the index, among the ranks of this process, of the rank that computes replicated results on the device of rank number
    /// `local` ([`Mesh::is_device_leader`]).
    pub(crate) fn device_leader_of(self, local: usize) -> usize {
        self.0.members.iter().position(|member| *member == self.0.members[local]).unwrap_or(local)
    }
}

/// Returns the number of ranks of a mesh.
///
/// # Errors
/// Returns an error if the mesh has no axis, no rank or too many ranks.
pub(crate) fn check_rank_count(shape: &[usize]) -> Result<usize> {
    let count = shape.iter().try_fold(1usize, |count, n| count.checked_mul(*n)).unwrap_or(usize::MAX);
    // An exchange of one value per rank divides an array into one block per rank of a mesh axis, so the maximum number of blocks applies.
    if let Some(n) = shape.iter().find(|n| **n > MAX_BLOCKS_PER_AXIS) {
        let message =
            format!("a mesh axis of {n} ranks; the maximum is {MAX_BLOCKS_PER_AXIS}, and a grid of several axes may have more ranks");
        return Err(Error::value("mesh", message));
    }
    if shape.is_empty() || count == 0 || count > MAX_MESH_RANKS {
        return Err(Error::value("mesh", format!("a mesh of shape {shape:?} needs an axis and between 1 and {MAX_MESH_RANKS} ranks")));
    }
    Ok(count)
}

impl PartialEq for Mesh {
    fn eq(&self, other: &Mesh) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Mesh {}

impl fmt::Debug for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?} ranks, {}: {:?}", self.0.device, self.0.shape, self.0.engine.name(), self.0.members)?;
        self.0.engine.no_library_reason().map_or(Ok(()), |reason| write!(f, "; {reason}"))?;
        f.write_str(")")
    }
}
