//! Kernels in which one team of threads decomposes each matrix. A team is a single thread for the smallest matrices, else a block. Factors
//! are in registers or shared memory. Factors that fit in neither are in the workspace, which is global memory.

use cuprum_core::call::{Form, QrMode, SingularVectors, Triangle};
use cuprum_core::{Call, DType, Linalg, Outcome, Result, decline};

use super::linalg_problem::{LinalgProblem, copy_unless_c_contiguous, failure_for_task};
use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::KernelSource;

static TEAM_KERNEL_SOURCE: KernelSource =
    KernelSource { name: "linalg.cu", text: concat!(include_str!("../../kernels/linalg.cuh"), include_str!("../../kernels/linalg.cu")) };

/// Maximum extent of a matrix that a single thread decomposes.
pub(super) const MAX_EXTENT_FOR_ONE_THREAD: i32 = 4;
/// Maximum number of threads that decompose a matrix together.
pub(super) const MAX_THREADS_PER_MATRIX: i32 = 512;
/// Number of threads per block if each thread decomposes its own matrix.
const THREADS_PER_BLOCK_OF_ONE_THREAD_TEAMS: u32 = 64;

/// Values of the macros OPERATION and OPTION of a kernel, as linalg.cuh defines them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OperationMacros {
    pub code: u32,
    pub option: u32,
}

impl OperationMacros {
    /// Returns the macros of `task`, or `None` if this crate has no kernel for it.
    pub fn macros_for_task(task: Linalg) -> Option<OperationMacros> {
        let upper = |triangle| u32::from(triangle == Triangle::Upper);
        let (code, option) = match task {
            Linalg::Solve => (0, 0),
            Linalg::Inverse => (1, 0),
            Linalg::Determinant { log } => (2, log.into()),
            Linalg::Cholesky { triangle } => (3, upper(triangle)),
            Linalg::Lu => (4, 0),
            Linalg::SolveTriangular { triangle, form, unit_diagonal } => {
                let form = match form {
                    Form::Plain => 0,
                    Form::Transposed => 2,
                    Form::Adjoint => 6,
                };
                (5, upper(triangle) | form | u32::from(unit_diagonal) << 3)
            }
            Linalg::Qr { mode: QrMode::R } => (6, 0),
            Linalg::Qr { mode: QrMode::Reduced } => (6, 1),
            Linalg::Qr { mode: QrMode::Complete } => (6, 3),
            Linalg::Svd { vectors: SingularVectors::Omitted } => (7, 0),
            Linalg::Svd { vectors: SingularVectors::Reduced } => (7, 1),
            Linalg::Svd { vectors: SingularVectors::Full } => (7, 3),
            Linalg::Eigh { triangle, vectors } => (8, u32::from(vectors) | upper(triangle) << 1),
            Linalg::Eig { .. } | Linalg::Schur | Linalg::Function(_) | Linalg::Qr { mode: QrMode::Raw } => return None,
        };
        Some(OperationMacros { code, option })
    }
}

/// Returns the number of threads that decompose a matrix together.
fn threads_per_matrix(problem: &LinalgProblem) -> u32 {
    let extent = problem.m.max(problem.n).max(problem.k);
    let sizes = [(MAX_EXTENT_FOR_ONE_THREAD, 1), (16, 32), (32, 64), (64, 128), (128, 256)];
    sizes.into_iter().find(|(most, _)| extent <= *most).map_or(MAX_THREADS_PER_MATRIX as u32, |(_, team)| team)
}

/// Returns the number of bytes of shared memory or workspace that one team of threads needs. This number is the sum of the allocations of
/// the struct `TeamArena` in linalg.cu for the operation.
fn team_memory_bytes(problem: &LinalgProblem, operation: OperationMacros, team: u32) -> usize {
    let (m, n, k) = (problem.m as usize, problem.n as usize, problem.k as usize);
    let (item, real) = (problem.dtype.itemsize(), problem.dtype.real().itemsize());
    let least = m.min(n);
    let take = |count: usize, size: usize| count.saturating_mul(size).next_multiple_of(16);
    let matrix = |rows: usize, columns: usize| take(rows.saturating_mul(if team == 1 { columns } else { columns | 1 }), item);
    let (vectors, full) = (operation.option & 1 != 0, operation.option & 2 != 0);
    let parts = match problem.task {
        Linalg::Solve | Linalg::Inverse => vec![matrix(n, n), matrix(n, k), take(n, 4)],
        Linalg::Determinant { .. } => vec![matrix(n, n), take(n, 4)],
        Linalg::Cholesky { .. } => vec![matrix(n, n)],
        Linalg::Lu => vec![matrix(m, n), take(least, 4)],
        Linalg::SolveTriangular { .. } => vec![matrix(n, n), matrix(n, k)],
        Linalg::Qr { .. } => vec![matrix(m, n), take(least, item), if vectors { matrix(m, if full { m } else { least }) } else { 0 }],
        Linalg::Svd { .. } => {
            let rows = m.max(n);
            let width = if full { rows } else { least };
            let left = if vectors { matrix(rows, width) + take(width, item) } else { 0 };
            let right = if vectors { matrix(least, least) } else { 0 };
            vec![matrix(least, rows), right, take(least, real), left]
        }
        Linalg::Eigh { .. } | Linalg::Eig { .. } | Linalg::Schur | Linalg::Function(_) => {
            let rotation = (2 * real + item).next_multiple_of(item);
            vec![matrix(n, n), matrix(n, if vectors { n } else { 0 }), take(n.div_ceil(2), rotation), take(n, real)]
        }
    };
    parts.into_iter().fold(0, usize::saturating_add)
}

/// The parameters that determine the source of a decomposition kernel.
struct TeamKernelVariant {
    operation: OperationMacros,
    dtype: DType,
    team: u32,
    in_shared: bool,
    /// If a team is one thread: m, n, k, and the size of a team's memory in bytes, as decimal numbers. Otherwise empty strings.
    extents: [String; 4],
}

impl TeamKernelVariant {
    fn new(problem: &LinalgProblem, operation: OperationMacros, team: u32, in_shared: bool) -> TeamKernelVariant {
        let sizes = [problem.m as usize, problem.n as usize, problem.k as usize, team_memory_bytes(problem, operation, team)];
        let extents = if team == 1 { sizes.map(|n| n.to_string()) } else { [const { String::new() }; 4] };
        TeamKernelVariant { operation, dtype: problem.dtype, team, in_shared, extents }
    }

    /// Calls `use_defines` with the macro definitions of this variant.
    fn call_with_defines<R>(&self, use_defines: impl FnOnce(&[(&'static str, &str)]) -> R) -> R {
        let numbers = [self.operation.code, self.operation.option, self.team, self.in_shared.into()].map(|n| n.to_string());
        let [code, option, team, shared] = &numbers;
        let [rows, columns, right, arena] = &self.extents;
        let common = [("FIELD", ctype(self.dtype)), ("OPERATION", code), ("OPTION", option), ("TEAM", team), ("SHARED", shared)];
        match self.team {
            1 => use_defines(&[&common[..], &[("ROWS", rows), ("COLUMNS", columns), ("RIGHT", right), ("ARENA", arena)]].concat()),
            _ => use_defines(&common),
        }
    }
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every operation, every dtype
/// and every number of threads that compute one matrix.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let tasks = [
        Linalg::Solve,
        Linalg::Inverse,
        Linalg::Determinant { log: false },
        Linalg::Determinant { log: true },
        Linalg::Cholesky { triangle: Triangle::Lower },
        Linalg::Cholesky { triangle: Triangle::Upper },
        Linalg::Lu,
        Linalg::SolveTriangular { triangle: Triangle::Lower, form: Form::Plain, unit_diagonal: true },
        Linalg::SolveTriangular { triangle: Triangle::Upper, form: Form::Adjoint, unit_diagonal: false },
        Linalg::Qr { mode: QrMode::R },
        Linalg::Qr { mode: QrMode::Complete },
        Linalg::Svd { vectors: SingularVectors::Omitted },
        Linalg::Svd { vectors: SingularVectors::Reduced },
        Linalg::Svd { vectors: SingularVectors::Full },
        Linalg::Eigh { triangle: Triangle::Lower, vectors: true },
        Linalg::Eigh { triangle: Triangle::Upper, vectors: false },
    ];
    let dtypes = [DType::F32, DType::F64, DType::C64, DType::C128];
    let teams = [(1, false), (32, true), (256, true), (256, false)];
    let all =
        tasks.into_iter().enumerate().flat_map(|(n, task)| dtypes.into_iter().enumerate().map(move |(d, dtype)| (n + d, task, dtype)));
    let listed = all.flat_map(|(turn, task, dtype)| {
        let operation = OperationMacros::macros_for_task(task);
        // Each combination of operation and dtype is compiled for one thread per matrix, and for one of the three larger team
        // configurations. Successive combinations use these three in turn.
        [teams[0], teams[1 + turn % 3]].into_iter().filter_map(move |(team, in_shared)| {
            let problem = LinalgProblem { task, dtype, count: 1, m: 3, n: 3, k: 2 };
            Some(
                TeamKernelVariant::new(&problem, operation?, team, in_shared)
                    .call_with_defines(|defines| TEAM_KERNEL_SOURCE.named_source(defines)),
            )
        })
    });
    listed.collect()
}

/// Executes a call with the kernels in linalg.cu, one team of threads per matrix.
pub(super) fn run_with_team_kernels(call: &Call, problem: &LinalgProblem) -> Result<Outcome> {
    let Some(operation) = OperationMacros::macros_for_task(problem.task) else {
        decline!("only cuSOLVER has eigenvalues of general matrices")
    };
    let context = device::context(call.device)?;
    let inputs = call.inputs.iter().map(|a| copy_unless_c_contiguous(call, a)).collect::<Result<Vec<_>>>()?;
    let outputs = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<Vec<_>>>()?;
    let addresses = device::pointers_to_read(&inputs)?;
    let out = |n: usize| outputs.get(n).map_or(0, |buffer| buffer.pointer());
    let memory = [out(0), out(1), out(2), addresses[0], addresses.get(1).copied().unwrap_or(0)];
    let launch = TeamKernelLaunch::new(context, problem, operation);
    let workspace = device::allocate(call, launch.workspace)?;
    launch.queue_kernel(problem, memory, workspace.pointer(), device::fault_operation_id(call.op, 0)).with_call_context(call)?;
    device::outcome_from_buffers(call, outputs)
}

/// The kernel variant, memory sizes and grid size of a call.
struct TeamKernelLaunch {
    context: &'static Context,
    variant: TeamKernelVariant,
    arena: usize,
    workspace: usize,
    blocks: u32,
}

impl TeamKernelLaunch {
    fn new(context: &'static Context, problem: &LinalgProblem, operation: OperationMacros) -> TeamKernelLaunch {
        let team = threads_per_matrix(problem);
        let arena = team_memory_bytes(problem, operation, team);
        let in_shared = team > 1 && arena + (1 << 10) <= context.info().shared_per_block_optin as usize;
        // If teams use a workspace, the grid has only as many blocks as can run at once. This limits the size of the workspace.
        let teams = if team == 1 { problem.count.div_ceil(THREADS_PER_BLOCK_OF_ONE_THREAD_TEAMS as usize) } else { problem.count };
        let most = if team == 1 || in_shared { i32::MAX.unsigned_abs() } else { 4 * context.info().sm_count };
        let blocks = u32::try_from(teams).unwrap_or(u32::MAX).min(most);
        let workspace = if team == 1 || in_shared { 0 } else { arena.saturating_mul(blocks as usize) };
        TeamKernelLaunch { context, variant: TeamKernelVariant::new(problem, operation, team, in_shared), arena, workspace, blocks }
    }

    fn queue_kernel(&self, problem: &LinalgProblem, memory: [u64; 5], workspace: u64, op: u64) -> crate::Result<()> {
        let function =
            self.variant.call_with_defines(|defines| TEAM_KERNEL_SOURCE.get_or_compile_kernel(self.context, "decompose", defines))?;
        let shared = if self.variant.in_shared { self.arena as u32 } else { 0 };
        if shared > 0 {
            function.allow_dynamic_shared_memory(shared)?;
        }
        let (fault, code) = (self.context.fault_pointer()?, device::linalg_fault_code(failure_for_task(problem.task)));
        let mut args = Args::new();
        memory.iter().for_each(|address| {
            args.push(address);
        });
        args.push(&workspace).push(&problem.count).push(&problem.m).push(&problem.n).push(&problem.k);
        args.push(&self.arena).push(&fault).push(&code).push(&op);
        let threads = if self.variant.team == 1 { THREADS_PER_BLOCK_OF_ONE_THREAD_TEAMS } else { self.variant.team };
        // SAFETY: the arguments match `decompose`. The inputs hold the `count` matrices of `problem` in C order, and the outputs have the
        // shapes that the core crate specifies for the task. A block has `arena` bytes of shared memory or workspace, except that a team of
        // one thread declares a local array instead.
        unsafe { function.launch([self.blocks, 1, 1], [threads, 1, 1], shared, args.pointers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_grow_with_matrices() {
        let problem = |n: i32, k: i32| LinalgProblem { task: Linalg::Solve, dtype: DType::C128, count: 1, m: n, n, k };
        assert_eq!([1, 4, 5, 32, 64, 65, 129].map(|n| threads_per_matrix(&problem(n, 1))), [1, 1, 32, 64, 128, 256, 512]);
        assert_eq!(threads_per_matrix(&problem(2, 100)), 256);
        let operation = OperationMacros::macros_for_task(Linalg::Solve).unwrap();
        // A matrix of odd pitch, two right-hand sides, pivots.
        assert_eq!(team_memory_bytes(&problem(4, 2), operation, 32), 16 * (4 * 5 + 4 * 3) + 16);
        assert_eq!(team_memory_bytes(&problem(4, 2), operation, 1), 16 * (4 * 4 + 4 * 2) + 16);
        assert_eq!(OperationMacros::macros_for_task(Linalg::Eig { vectors: true }), None);
    }
}
