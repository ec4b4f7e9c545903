//! Chooses between this crate's kernels and the libraries cuSOLVER and cuBLAS, by task, extent and batch size
//! (`docs/notes/linear-algebra.md`).

use std::cell::Cell;

use cuprum_core::Linalg;

use super::linalg_problem::LinalgProblem;
use super::warp_kernels;

/// The implementation of a decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecompositionPath {
    /// Kernels of this crate: one thread or one thread block per matrix.
    Team,
    /// Kernels of this crate: a warp, or a part of it, per matrix.
    Warp,
    /// cuSOLVER or cuBLAS. Each matrix takes a call of its own, except for eigenvalues of Hermitian matrices.
    Library,
    /// cuSOLVER or cuBLAS, with one call for all matrices if the library has a batch routine for the task, else like
    /// [`DecompositionPath::Library`]. Chosen for square matrices, and for singular values.
    LibraryBatch,
}

/// The maximum batch size at which [`DecompositionPath::Library`] is the fastest path, as a function of the extent: `(extent / base) ^
/// power`, or 0 below `base`.
///
/// The library decomposes one matrix after the other. The kernels of this crate decompose many matrices at the same time, one on each
/// multiprocessor.
#[derive(Clone, Copy, Debug)]
struct CrossoverBatchSize {
    base: f64,
    power: i32,
}

impl CrossoverBatchSize {
    fn crossover_for_task(task: Linalg) -> CrossoverBatchSize {
        // A power so large that cuSOLVER is used for every number of matrices above the extent `base`. cuSOLVER decomposes batches of
        // Hermitian matrices in one call, and this crate has no kernel for general eigenvalues.
        const UNLIMITED_BATCH_POWER: i32 = 1_000_000;
        let (base, power) = match task {
            Linalg::Solve => (110.0, 2),
            Linalg::Inverse => (64.0, 2),
            Linalg::Determinant { .. } | Linalg::Lu => (100.0, 2),
            Linalg::Cholesky { .. } => (70.0, 2),
            Linalg::SolveTriangular { .. } => (64.0, 2),
            Linalg::Qr { .. } => (128.0, 2),
            Linalg::Svd { .. } => (110.0, 3),
            Linalg::Eigh { .. } => (23.9, UNLIMITED_BATCH_POWER),
            Linalg::Eig { .. } | Linalg::Schur | Linalg::Function(_) => (0.5, UNLIMITED_BATCH_POWER),
        };
        CrossoverBatchSize { base, power }
    }

    fn max_batch_size(self, extent: f64) -> f64 {
        if extent < self.base { 0.0 } else { (extent / self.base).powi(self.power) }
    }
}

/// Maximum extent at which the kernels of this crate are at least as fast as the library's batch routines for all numbers of matrices.
const MAX_EXTENT_FOR_SMALL_MATRIX_KERNELS: i32 = 64;
/// Maximum extent at which the kernels of this crate are at least as fast as the library's batch routines for inverses and singular values.
/// For these two tasks, the kernels execute more operations than for other decompositions.
const MAX_EXTENT_FOR_KERNELS_WITH_MANY_OPERATIONS: i32 = 32;
/// Maximum extent at which the library's batch routines are used. For larger matrices they are slow, because they use only a few thread
/// blocks per matrix.
const MAX_EXTENT_FOR_BATCH_ROUTINES: i32 = 1024;
/// Maximum number of matrices for which one library call per matrix is faster than a batch routine, as a function of the extent.
const MAX_MATRICES_FOR_SINGLE_CALLS: CrossoverBatchSize = CrossoverBatchSize { base: 150.0, power: 2 };

/// Returns whether a batch routine of the library is the fastest implementation for `problem`.
fn prefers_batch_routine(problem: &LinalgProblem) -> bool {
    if let Linalg::Svd { .. } = problem.task {
        return problem.supports_svd_batch() && problem.m.min(problem.n) > MAX_EXTENT_FOR_KERNELS_WITH_MANY_OPERATIONS;
    }
    let has_routine = matches!(problem.task, Linalg::Solve | Linalg::Inverse | Linalg::Determinant { .. } | Linalg::Cholesky { .. });
    let least = match problem.task {
        Linalg::Inverse => MAX_EXTENT_FOR_KERNELS_WITH_MANY_OPERATIONS + 1,
        _ => MAX_EXTENT_FOR_SMALL_MATRIX_KERNELS + 1,
    };
    let extents = least..=MAX_EXTENT_FOR_BATCH_ROUTINES;
    has_routine
        && extents.contains(&problem.n)
        && problem.count > 1
        && problem.count as f64 > MAX_MATRICES_FOR_SINGLE_CALLS.max_batch_size(problem.n.into())
}

thread_local! {
    static FORCED_DECOMPOSITION_PATH: Cell<Option<DecompositionPath>> = const { Cell::new(None) };
}

/// Calls `f`. During the call, this thread uses `path` for all decompositions, except eigenvalues of general matrices, and matrices that
/// [`DecompositionPath::Warp`] does not support. For tests and measurements.
pub fn with_decomposition_path<R>(path: DecompositionPath, f: impl FnOnce() -> R) -> R {
    struct RestoreForcedPath(Option<DecompositionPath>);
    impl Drop for RestoreForcedPath {
        fn drop(&mut self) {
            FORCED_DECOMPOSITION_PATH.set(self.0);
        }
    }
    let _restore = RestoreForcedPath(FORCED_DECOMPOSITION_PATH.replace(Some(path)));
    f()
}

/// Returns the extent of a square matrix whose decomposition takes as many operations as the decomposition of one matrix of `problem`.
fn equivalent_square_extent(problem: &LinalgProblem) -> f64 {
    let [m, n, k] = [problem.m, problem.n, problem.k].map(f64::from);
    let least = m.min(n);
    (least * least * m.max(n).max(k)).cbrt()
}

/// Returns the implementation for `problem`. `has_svd_batches` returns whether the library computes singular values of batches. This
/// closure may load the library, so it is called only if its result decides.
pub(super) fn choose_decomposition_path(problem: &LinalgProblem, has_svd_batches: impl FnOnce() -> bool) -> DecompositionPath {
    match FORCED_DECOMPOSITION_PATH.get() {
        Some(DecompositionPath::Warp) if !warp_kernels::supports_problem(problem) => DecompositionPath::Team,
        Some(forced) if !matches!(problem.task, Linalg::Eig { .. }) => forced,
        _ if warp_kernels::supports_problem(problem) => DecompositionPath::Warp,
        _ if prefers_batch_routine(problem) && (!matches!(problem.task, Linalg::Svd { .. }) || has_svd_batches()) => {
            DecompositionPath::LibraryBatch
        }
        _ if problem.count as f64
            <= CrossoverBatchSize::crossover_for_task(problem.task).max_batch_size(equivalent_square_extent(problem)) =>
        {
            DecompositionPath::Library
        }
        _ => DecompositionPath::Team,
    }
}

#[cfg(test)]
mod tests {
    use cuprum_core::DType;
    use cuprum_core::call::{QrMode, SingularVectors, Triangle};

    use super::*;

    fn choose_decomposition_path(problem: &LinalgProblem) -> DecompositionPath {
        super::choose_decomposition_path(problem, || true)
    }

    fn problem(task: Linalg, count: usize, n: i32) -> LinalgProblem {
        LinalgProblem { task, dtype: DType::F32, count, m: n, n, k: 1 }
    }

    #[test]
    fn large_matrices_and_general_eigenvalues_are_the_librarys() {
        assert_eq!(choose_decomposition_path(&problem(Linalg::Solve, 1, 4)), DecompositionPath::Team);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Solve, 1, 4096)), DecompositionPath::Library);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Solve, 4096, 32)), DecompositionPath::Team);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Inverse, 4096, 32)), DecompositionPath::Warp);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Determinant { log: false }, 64, 64)), DecompositionPath::Team);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Inverse, 64, 128)), DecompositionPath::LibraryBatch);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Inverse, 64, 256)), DecompositionPath::LibraryBatch);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Lu, 64, 256)), DecompositionPath::Team);
        assert_eq!(choose_decomposition_path(&problem(Linalg::Inverse, 2, 256)), DecompositionPath::Library);
        let svd = problem(Linalg::Svd { vectors: SingularVectors::Reduced }, 64, 256);
        assert_eq!(choose_decomposition_path(&svd), DecompositionPath::LibraryBatch);
        assert_eq!(super::choose_decomposition_path(&svd, || false), DecompositionPath::Team);
        let eigh = Linalg::Eigh { triangle: Triangle::Lower, vectors: true };
        assert_eq!(choose_decomposition_path(&problem(eigh, 100_000, 3)), DecompositionPath::Team);
        assert_eq!(choose_decomposition_path(&problem(eigh, 512, 64)), DecompositionPath::Library);
        assert_eq!(
            choose_decomposition_path(&LinalgProblem { m: 10_000, n: 10, ..problem(Linalg::Qr { mode: QrMode::R }, 1, 10) }),
            DecompositionPath::Team
        );
        assert_eq!(
            choose_decomposition_path(&LinalgProblem { m: 1_000_000, n: 20, ..problem(Linalg::Qr { mode: QrMode::R }, 1, 20) }),
            DecompositionPath::Library
        );
        assert_eq!(choose_decomposition_path(&problem(Linalg::Eig { vectors: true }, 1, 1)), DecompositionPath::Library);
    }

    #[test]
    fn a_path_is_forced_within_a_scope() {
        let one = problem(Linalg::Lu, 1, 4);
        with_decomposition_path(DecompositionPath::Library, || {
            assert_eq!(choose_decomposition_path(&one), DecompositionPath::Library);
            with_decomposition_path(DecompositionPath::Team, || {
                assert_eq!(choose_decomposition_path(&problem(Linalg::Eig { vectors: false }, 1, 9)), DecompositionPath::Library)
            });
            assert_eq!(choose_decomposition_path(&one), DecompositionPath::Library);
        });
        assert_eq!(choose_decomposition_path(&one), DecompositionPath::Team);
    }
}
