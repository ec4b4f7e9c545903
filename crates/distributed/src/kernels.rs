//! The accelerator `mesh`: kernels that divide operations among the ranks, and a fallback that gathers the inputs.
//!
//! A kernel chooses the axis of the result that each mesh axis divides, and lets each rank fetch its parts of the inputs. Each rank then
//! runs one operation on its device. An operation without such a kernel runs on the gathered inputs, so that every function works.

mod contract_kernel;
mod copy_kernel;
mod fft_kernel;
mod fill_kernel;
mod gather_fallback;
mod map_kernel;
mod merge_sort;
mod reduce_kernel;
mod row_kernel;
mod scan_kernel;
mod sort_kernel;

use cuprum_core::Capability::{OrderedScatter, ReproducibleScatterSum, RowPrograms, UserDefined};
use cuprum_core::device::collectives::CollectiveLibrary;
use cuprum_core::{
    Accelerator, Availability, Call, DeviceProvider, Error, Family, Kernel, Outcome, Registration, Result, StepKind, decline, inventory,
    registry,
};

use crate::mesh::{MESH_KIND_NAME, Mesh};
use crate::mesh_driver::{MeshDriver, discard_device_faults};
use crate::rank_calls::{has_sharded_input, mesh_of_call};

/// Expands to a kernel that runs the function `$rule`, or returns the mesh's failure if the mesh has failed ([`run_unless_mesh_failed`]).
macro_rules! guarded {
    ($rule:path) => {
        |call: &Call| run_unless_mesh_failed(call, $rule)
    };
}

/// Expands to a kernel like `guarded!`. In addition, the kernel declines a call in which a user-defined operation reads all elements of a
/// divided array.
macro_rules! divided {
    ($rule:path) => {
        |call: &Call| {
            if reads_divided_array_argument(call) {
                decline!("a user-defined operation reads a divided array as a whole");
            }
            run_unless_mesh_failed(call, $rule)
        }
    };
}

/// Calls `rule`, the kernel of an operation on a mesh, unless the mesh has failed. An error that may occur in this process only, such as
/// out of memory, marks the mesh as failed, because the other processes would wait for this process.
fn run_unless_mesh_failed(call: &Call, rule: fn(&Call) -> Result<Outcome>) -> Result<Outcome> {
    let engine = mesh_of_call(call)?.engine();
    engine.check_for_failure()?;
    let result = rule(call);
    if let Err(error @ (Error::OutOfMemory { .. } | Error::Backend { .. } | Error::DeviceLost { .. } | Error::Io { .. })) = &result {
        engine.fail_mesh(error);
    }
    if let Err(Error::Index { .. } | Error::LinAlg { .. } | Error::Value { .. }) = &result {
        discard_device_faults(mesh_of_call(call)?);
    }
    result
}

/// Returns whether a user-defined operation of the call has an argument of type `&[T]` whose array is divided among ranks or has a pending
/// reduction. The operation may read any element of this array.
fn reads_divided_array_argument(call: &Call) -> bool {
    let Some(program) = call.program() else { return false };
    let is_divided = |n: u16| call.inputs.get(usize::from(n)).is_some_and(|input| has_sharded_input(std::slice::from_ref(input)));
    program.steps.iter().any(|step| match step.kind {
        StepKind::Apply(op) => op.0.body.is_some_and(|body| {
            step.args().iter().enumerate().any(|(n, &arg)| {
                body.is_whole_array(n) && matches!(program.steps[usize::from(arg)].kind, StepKind::Input(input) if is_divided(input))
            })
        }),
        _ => false,
    })
}

/// Returns the names of the communication engines. A communication library whose devices are ready is listed with its path, or with the
/// reason why the library is missing.
fn engine_availability() -> Availability {
    let is_ready = |library: &&CollectiveLibrary| {
        let base = registry::all_accelerators().into_iter().find(|a| a.base.is_some() && a.device == library.device);
        base.is_some_and(|base| matches!(registry::availability(base), Availability::Ready(_)))
    };
    let describe = |library: &&CollectiveLibrary| match (library.locate)() {
        Ok(path) => format!(", {} ({path})", library.name),
        Err(reason) => format!("; {} is missing: {reason}", library.name),
    };
    let libraries: String =
        CollectiveLibrary::all_collective_libraries().iter().copied().filter(is_ready).map(|library| describe(&library)).collect();
    Availability::Ready(format!("engines loopback, tcp{libraries}"))
}

/// The accelerator that opens devices of the kind `mesh` and serves every call on them.
pub static MESH: Accelerator = Accelerator {
    name: "mesh",
    device: MESH_KIND_NAME,
    rank: 100,
    summary: "every operation on sharded arrays: local calls and collectives",
    probe: engine_availability,
    kernels: &[
        Kernel::new(Family::Map, divided!(map_kernel::run_map)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Reduce, divided!(reduce_kernel::run_reduction)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Rows, divided!(row_kernel::run_row_program)).with_capabilities(&[UserDefined, RowPrograms]),
        Kernel::new(Family::Scan, divided!(scan_kernel::run_scan)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Contract, guarded!(contract_kernel::run_contraction)),
        Kernel::new(Family::Copy, guarded!(copy_kernel::run_copy)).writes_targets(),
        Kernel::new(Family::Fill, guarded!(fill_kernel::run_fill)),
        Kernel::new(Family::Fft, divided!(fft_kernel::run_fft)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Sort, guarded!(sort_kernel::run_sort)),
        Kernel::new(Family::Random, guarded!(fill_kernel::run_random)),
        Kernel::new(Family::Map, guarded!(gather_fallback::run_on_gathered_inputs)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Reduce, guarded!(gather_fallback::run_on_gathered_inputs)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Scan, guarded!(gather_fallback::run_on_gathered_inputs)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Contract, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Copy, guarded!(gather_fallback::run_on_gathered_inputs)).writes_targets(),
        Kernel::new(Family::Fill, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Random, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Sort, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Select, guarded!(gather_fallback::run_on_gathered_inputs)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Search, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Histogram, guarded!(gather_fallback::run_on_gathered_inputs)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Gather, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Scatter, guarded!(gather_fallback::run_on_gathered_inputs))
            .with_capabilities(&[OrderedScatter, ReproducibleScatterSum])
            .writes_targets(),
        Kernel::new(Family::Fft, guarded!(gather_fallback::run_on_gathered_inputs)).with_capabilities(&[UserDefined]),
        Kernel::new(Family::Linalg, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Sparse, guarded!(gather_fallback::run_on_gathered_inputs)),
        Kernel::new(Family::Custom, guarded!(gather_fallback::run_on_gathered_inputs)),
    ],
    // A mesh is not a device of the machine, so `Device::all` omits it, and `auto` never selects it.
    base: Some(DeviceProvider { count: Mesh::mesh_count, is_ready: |_| false, open: MeshDriver::open_mesh_driver }),
};

inventory::submit! { Registration(&MESH) }
