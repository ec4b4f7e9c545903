//! The accelerator `mesh`: rules that divide calls among the ranks, and the gather fallback.
//!
//! A rule chooses the axis of the result that each mesh axis divides, lets each rank fetch its parts of the inputs, and runs one planned
//! call per rank on the rank's device. A call without a rule runs on the gathered inputs, so that every function works.

mod contract;
mod copy;
mod fft;
mod fill;
mod gathered;
mod map;
mod reduce;
mod rows;
mod sample_sort;
mod scan;
mod sort;

use cuprum_core::Capability::{OrderedScatter, ReproducibleScatterSum, RowPrograms, UserDefined};
use cuprum_core::{Accelerator, Availability, DeviceProvider, Family, Kernel, Registration, inventory};

use crate::driver::MeshDriver;
use crate::mesh::{KIND, Mesh};

/// The base accelerator of device kind `mesh`.
pub static MESH: Accelerator = Accelerator {
    name: "mesh",
    device: KIND,
    rank: 100,
    summary: "every operation on sharded arrays: local calls and collectives",
    probe: || Availability::Ready("loopback".into()),
    kernels: &[
        Kernel::new(Family::Map, map::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Reduce, reduce::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Rows, rows::run).capabilities(&[UserDefined, RowPrograms]),
        Kernel::new(Family::Scan, scan::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Contract, contract::run),
        Kernel::new(Family::Copy, copy::run).writes_targets(),
        Kernel::new(Family::Fill, fill::run_fill),
        Kernel::new(Family::Fft, fft::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Sort, sort::run),
        Kernel::new(Family::Random, fill::run_random),
        Kernel::new(Family::Map, gathered::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Reduce, gathered::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Scan, gathered::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Contract, gathered::run),
        Kernel::new(Family::Copy, gathered::run).writes_targets(),
        Kernel::new(Family::Fill, gathered::run),
        Kernel::new(Family::Random, gathered::run),
        Kernel::new(Family::Sort, gathered::run),
        Kernel::new(Family::Select, gathered::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Search, gathered::run),
        Kernel::new(Family::Histogram, gathered::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Gather, gathered::run),
        Kernel::new(Family::Scatter, gathered::run).capabilities(&[OrderedScatter, ReproducibleScatterSum]).writes_targets(),
        Kernel::new(Family::Fft, gathered::run).capabilities(&[UserDefined]),
        Kernel::new(Family::Linalg, gathered::run),
        Kernel::new(Family::Sparse, gathered::run),
        Kernel::new(Family::Custom, gathered::run),
    ],
    // A mesh is not a device of the machine, so `Device::all` omits it, and `auto` never selects it.
    base: Some(DeviceProvider { count: Mesh::count, is_ready: |_| false, open: MeshDriver::open }),
};

inventory::submit! { Registration(&MESH) }
