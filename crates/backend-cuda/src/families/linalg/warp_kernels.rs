//! Kernels in which a group of 8, 16 or 32 lanes of a warp decomposes each matrix in registers: inverses, determinants and eigenvalues of
//! Hermitian matrices of at most 32 rows.

use cuprum_core::call::Triangle;
use cuprum_core::{Call, DType, Linalg, Outcome, Result, decline};

use super::linalg_problem::{LinalgProblem, copy_unless_c_contiguous, failure_for_task};
use super::small_matrix_kernels::{MAX_EXTENT_FOR_ONE_THREAD, OperationMacros};
use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, WithCallContext};
use crate::families::kernel_lookup::KernelSource;

static WARP_KERNEL_SOURCE: KernelSource = KernelSource {
    name: "linalg_warp.cu",
    text: concat!(
        include_str!("../../kernels/warp.cuh"),
        include_str!("../../kernels/linalg.cuh"),
        include_str!("../../kernels/linalg_warp.cu")
    ),
};

/// Number of threads per block of the kernels in linalg_warp.cu.
const WARP_KERNEL_THREADS_PER_BLOCK: u32 = 128;
/// Maximum size of a row in registers, in bytes. A lane holds two rows.
const MAX_ROW_REGISTER_BYTES: usize = 256;

/// Returns the number of lanes that share a matrix: the smallest power of two, from 8, that is not less than the extent.
fn lanes_per_matrix(problem: &LinalgProblem) -> u32 {
    problem.n.unsigned_abs().next_power_of_two().max(8)
}

/// Returns whether the kernels compute the task of `problem` for matrices of its extent and dtype.
pub(super) fn supports_problem(problem: &LinalgProblem) -> bool {
    matches!(problem.task, Linalg::Inverse | Linalg::Determinant { .. } | Linalg::Eigh { .. })
        && (MAX_EXTENT_FOR_ONE_THREAD + 1..=32).contains(&problem.n)
        && lanes_per_matrix(problem) as usize * problem.dtype.itemsize() <= MAX_ROW_REGISTER_BYTES
}

/// Calls `use_defines` with the macro definitions of the kernel for `problem`.
fn call_with_defines<R>(problem: &LinalgProblem, operation: OperationMacros, use_defines: impl FnOnce(&[(&'static str, &str)]) -> R) -> R {
    let [lanes, code, option, threads] =
        [lanes_per_matrix(problem), operation.code, operation.option, WARP_KERNEL_THREADS_PER_BLOCK].map(|n| n.to_string());
    use_defines(&[
        ("FIELD", ctype(problem.dtype)),
        ("TEAM", "1"),
        ("GROUP", &lanes),
        ("OPERATION", &code),
        ("OPTION", &option),
        ("THREADS", &threads),
    ])
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every task and every dtype.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let tasks = [
        Linalg::Inverse,
        Linalg::Determinant { log: false },
        Linalg::Determinant { log: true },
        Linalg::Eigh { triangle: Triangle::Lower, vectors: true },
        Linalg::Eigh { triangle: Triangle::Upper, vectors: false },
    ];
    let cases = [(DType::F32, 32), (DType::F64, 16), (DType::C64, 8), (DType::C128, 16)];
    let all = tasks.into_iter().flat_map(|task| cases.map(|(dtype, n)| LinalgProblem { task, dtype, count: 1, m: n, n, k: 1 }));
    all.filter_map(|problem| {
        Some(call_with_defines(&problem, OperationMacros::macros_for_task(problem.task)?, |defines| {
            WARP_KERNEL_SOURCE.named_source(defines)
        }))
    })
    .collect()
}

/// Executes a call with the kernels in linalg_warp.cu, which must support `problem`.
pub(super) fn run_with_warp_kernels(call: &Call, problem: &LinalgProblem) -> Result<Outcome> {
    let Some(operation) = OperationMacros::macros_for_task(problem.task) else { decline!("no kernel for {:?}", problem.task) };
    let context = device::context(call.device)?;
    let input = copy_unless_c_contiguous(call, &call.inputs[0])?;
    let outputs = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<Vec<_>>>()?;
    let addresses = device::pointers_to_read(std::slice::from_ref(&input))?;
    let out = [0, 1].map(|n| outputs.get(n).map_or(0, |buffer| buffer.pointer()));
    let launch = || {
        let function =
            call_with_defines(problem, operation, |defines| WARP_KERNEL_SOURCE.get_or_compile_kernel(context, "decompose", defines))?;
        let (fault, code) = (context.fault_pointer()?, device::linalg_fault_code(failure_for_task(problem.task)));
        let op = device::fault_operation_id(call.op, 0);
        let blocks = (problem.count as u64 * u64::from(lanes_per_matrix(problem))).div_ceil(u64::from(WARP_KERNEL_THREADS_PER_BLOCK));
        let mut args = Args::new();
        args.push(&out[0]).push(&out[1]).push(&addresses[0]).push(&problem.count).push(&problem.n);
        args.push(&fault).push(&code).push(&op);
        // SAFETY: the arguments match `decompose`. The input holds the `count` matrices of `problem` in C order, and the outputs have the
        // shapes that the core crate specifies for the task. The grid has a group of lanes for each matrix. The number of blocks fits
        // 31 bits, because the matrices of a block occupy at least 1,600 bytes.
        unsafe { function.launch([blocks as u32, 1, 1], [WARP_KERNEL_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
    };
    launch().with_call_context(call)?;
    device::outcome_from_buffers(call, outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_registers() {
        let supported = |task, dtype, n| supports_problem(&LinalgProblem { task, dtype, count: 10, m: n, n, k: 1 });
        let eigh = Linalg::Eigh { triangle: Triangle::Lower, vectors: true };
        assert_eq!([4, 5, 32, 33].map(|n| supported(eigh, DType::F64, n)), [false, true, true, false]);
        assert_eq!([16, 17].map(|n| supported(Linalg::Inverse, DType::C128, n)), [true, false]);
        assert!(!supported(Linalg::Lu, DType::F32, 8));
        let lanes = |n| lanes_per_matrix(&LinalgProblem { task: eigh, dtype: DType::F32, count: 1, m: n, n, k: 1 });
        assert_eq!([5, 8, 9, 16, 17, 32].map(lanes), [8, 8, 16, 16, 32, 32]);
    }
}
