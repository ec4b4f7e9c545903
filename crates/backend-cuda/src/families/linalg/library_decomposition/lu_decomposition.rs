//! LU decompositions, and the solutions of linear systems, inverses and determinants that follow from them.

use cuprum_core::Result;

use super::{DeviceMatrixStack, FailureCheckAddresses, LinalgLibraryCall, MemoryOrder};
use crate::compile::module::Args;
use crate::device::WithCallContext;
use crate::families::contract::cublas::batched::BatchedLuFactors;
use crate::families::contract::cublas::{Transpose, TriangularMatrixSide, TriangularSystem};

/// A factor of an LU decomposition.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LuFactor {
    Lower,
    Upper,
}

impl LinalgLibraryCall<'_> {
    fn batched_lu_factors(&self, addresses: &DeviceMatrixStack, pivots: &DeviceMatrixStack) -> Result<BatchedLuFactors> {
        let (dtype, n, count) = (self.blas_type, self.problem.n, self.batch_size()?);
        Ok(BatchedLuFactors { dtype, n, count, factors: addresses.start_address(), pivots: pivots.start_address() })
    }

    /// Queues LU decompositions of the transposes of the square inputs. Returns the factors and the pivots, as 64-bit integers.
    /// Writes the status of each matrix to `info`.
    fn lu_factor_transposes(&self, info: &DeviceMatrixStack) -> Result<(DeviceMatrixStack, DeviceMatrixStack)> {
        let [_, n, _] = self.matrix_extents();
        let factors = self.copy_input(0, MemoryOrder::Rows)?;
        if self.batched {
            let (addresses, pivots) = (self.list_matrix_addresses(&factors)?, self.allocate_scratch(n, 4)?);
            let (blas, lu) = (self.context.blas().with_call_context(self.call)?, self.batched_lu_factors(&addresses, &pivots)?);
            // SAFETY: `addresses` has the address of each matrix (n, n). `pivots` and `info` have n numbers and one status for each matrix.
            unsafe { blas.lu_batched(&lu, info.start_address()) }.with_call_context(self.call)?;
            return Ok((factors, self.widen_pivots(&pivots, n)?));
        }
        let pivots = self.allocate_scratch(n, 8)?;
        let (mut routines, n) = (self.lock_routines()?, n as i64);
        // SAFETY: the addresses are those of a matrix with the extents passed, its pivots and its status, for each matrix of the batch.
        self.for_each_matrix(|i| unsafe {
            routines.lu(n, n, factors.matrix_address(i), pivots.matrix_address(i), info.matrix_address(i))
        })?;
        Ok((factors, pivots))
    }

    pub(super) fn solve_systems(&self) -> Result<()> {
        let [_, n, k] = self.matrix_extents();
        let info = self.allocate_statuses()?;
        let (factors, pivots) = self.lu_factor_transposes(&info)?;
        let x = self.allocate_elements(n * k)?;
        self.copy_in_order(&self.call.inputs[1], MemoryOrder::Columns, &x)?;
        // The LU factors are those of the transpose, `p @ a^T = l @ u`, so `a = u^T @ l^T @ p`.
        self.solve_with_factor(&factors, LuFactor::Upper, Transpose::Yes, &x, self.problem.k)?;
        self.solve_with_factor(&factors, LuFactor::Lower, Transpose::Yes, &x, self.problem.k)?;
        let positions = self.find_row_positions(&pivots)?;
        let (out, x, positions) = (self.output_matrices(0, n * k).start_address(), x.start_address(), positions.start_address());
        let mut args = Args::new();
        args.push(&out).push(&x).push(&positions).push(&self.problem.count).push(&n).push(&k);
        self.launch_kernel("store_permuted_rows", n * k, self.problem.count, &mut args)?;
        self.report_failures(FailureCheckAddresses { info: info.start_address(), ..FailureCheckAddresses::default() })
    }

    pub(super) fn invert_matrices(&self) -> Result<()> {
        /// Minimum extent at which the two halves of the columns of `inv(l)` are computed by separate solves. The solve for the second half
        /// skips the zeros above the diagonal.
        const MIN_EXTENT_FOR_SPLIT_SOLVE: i32 = 4096;
        let [_, n, _] = self.matrix_extents();
        let info = self.allocate_statuses()?;
        let (factors, pivots) = self.lu_factor_transposes(&info)?;
        let (out, inverse) = (self.output_matrices(0, n * n), self.allocate_elements(n * n)?);
        let (out, start) = (out.start_address(), inverse.start_address());
        let mut args = Args::new();
        args.push(&start).push(&self.problem.count).push(&n);
        self.launch_kernel("fill_identity_matrices", n * n, self.problem.count, &mut args)?;
        // The LU factors are those of the transpose, `p @ a^T = l @ u`, so the inverse of `a^T` is `inv(u) @ inv(l) @ p`.
        if self.problem.n < MIN_EXTENT_FOR_SPLIT_SOLVE || self.batched {
            self.solve_with_factor(&factors, LuFactor::Lower, Transpose::No, &inverse, self.problem.n)?;
        } else {
            let half = self.problem.n / 2;
            let system = |first: i32, columns| {
                let offset = first as u64 * (n as u64 + 1) * self.problem.dtype.itemsize() as u64;
                let system = self.system_with_factor(LuFactor::Lower, Transpose::No, columns);
                (TriangularSystem { m: self.problem.n - first, ..system }, offset)
            };
            for (system, offset) in [system(0, half), system(half, self.problem.n - half)] {
                self.solve_each_matrix(&factors, &inverse, offset, system)?;
            }
        }
        self.solve_with_factor(&factors, LuFactor::Upper, Transpose::No, &inverse, self.problem.n)?;
        let permutation = self.find_row_positions(&pivots)?;
        let positions = permutation.start_address();
        // The inverse of the transpose, in column-major order, has its elements in the same order as the inverse in row-major order.
        let mut args = Args::new();
        args.push(&out).push(&start).push(&positions).push(&self.problem.count).push(&n);
        self.launch_kernel("permute_columns", n * n, self.problem.count, &mut args)?;
        self.report_failures(FailureCheckAddresses { info: info.start_address(), ..FailureCheckAddresses::default() })
    }

    /// Returns a triangular system of one of the LU factors and `columns` right-hand sides, without addresses.
    fn system_with_factor(&self, factor: LuFactor, form: Transpose, columns: i32) -> TriangularSystem {
        let (dtype, n, upper) = (self.blas_type, self.problem.n, factor == LuFactor::Upper);
        TriangularSystem {
            dtype,
            side: TriangularMatrixSide::Left,
            upper,
            form,
            unit_diagonal: !upper,
            m: n,
            n: columns,
            a: 0,
            lda: n,
            b: 0,
            ldb: n,
        }
    }

    /// Queues the solution of `form(factor) @ x = b` for one of the LU factors of each matrix. `x` has the right-hand sides (n, columns) in
    /// column-major order, which the solutions replace.
    fn solve_with_factor(
        &self,
        factors: &DeviceMatrixStack,
        factor: LuFactor,
        form: Transpose,
        x: &DeviceMatrixStack,
        columns: i32,
    ) -> Result<()> {
        let system = self.system_with_factor(factor, form, columns);
        if !self.batched {
            return self.solve_each_matrix(factors, x, 0, system);
        }
        let (a, b, count) = (self.list_matrix_addresses(factors)?, self.list_matrix_addresses(x)?, self.batch_size()?);
        let system = TriangularSystem { a: a.start_address(), b: b.start_address(), ..system };
        let blas = self.context.blas().with_call_context(self.call)?;
        // SAFETY: `a` and `b` have the addresses of the factors (n, n) and the right-hand sides (n, columns).
        unsafe { blas.solve_triangular_batched(&system, count) }.with_call_context(self.call)
    }

    /// Queues the solution of `system` for each matrix. In both stacks, the matrices of the system begin `offset` bytes after the start of
    /// each matrix.
    fn solve_each_matrix(&self, factors: &DeviceMatrixStack, x: &DeviceMatrixStack, offset: u64, system: TriangularSystem) -> Result<()> {
        let blas = self.context.blas().with_call_context(self.call)?;
        self.for_each_matrix(|i| {
            let system = TriangularSystem { a: factors.matrix_address(i) + offset, b: x.matrix_address(i) + offset, ..system };
            // SAFETY: the matrices of the system are within the matrices of `factors` and `x`.
            unsafe { blas.solve_triangular(&system) }
        })
    }

    /// Returns the position of each row after the row interchanges that the `pivots` of each matrix list, as 32-bit integers.
    fn find_row_positions(&self, pivots: &DeviceMatrixStack) -> Result<DeviceMatrixStack> {
        let n = self.problem.n as usize;
        let positions = self.allocate_scratch(n, 4)?;
        let (out, pivots) = (positions.start_address(), pivots.start_address());
        let mut args = Args::new();
        args.push(&out).push(&pivots).push(&self.problem.count).push(&n);
        self.launch_kernel("find_row_positions", n, self.problem.count, &mut args)?;
        Ok(positions)
    }

    /// Returns the `length` pivots of each matrix as 64-bit integers.
    fn widen_pivots(&self, pivots: &DeviceMatrixStack, length: usize) -> Result<DeviceMatrixStack> {
        let wide = self.allocate_scratch(length, 8)?;
        let (out, narrow, total) = (wide.start_address(), pivots.start_address(), length * self.problem.count);
        let mut args = Args::new();
        args.push(&out).push(&narrow).push(&total);
        self.launch_kernel("widen_pivots", total, 1, &mut args)?;
        Ok(wide)
    }

    pub(super) fn compute_determinants(&self, log: bool) -> Result<()> {
        let [_, n, _] = self.matrix_extents();
        let info = self.allocate_statuses()?;
        let (factors, pivots) = self.lu_factor_transposes(&info)?;
        let second = if log { self.output_matrices(1, 1).start_address() } else { 0 };
        let (first, factors, pivots, info, log) = (
            self.output_matrices(0, 1).start_address(),
            factors.start_address(),
            pivots.start_address(),
            info.start_address(),
            i32::from(log),
        );
        let mut args = Args::new();
        args.push(&first).push(&second).push(&factors).push(&pivots).push(&info).push(&self.problem.count).push(&n).push(&log);
        self.launch_kernel("compute_determinants", 1, self.problem.count, &mut args)
    }

    pub(super) fn lu(&self) -> Result<()> {
        let [m, n, _] = self.matrix_extents();
        let least = m.min(n);
        let (factors, info, pivots) =
            (self.copy_input(0, MemoryOrder::Columns)?, self.allocate_statuses()?, self.allocate_scratch(least, 8)?);
        let mut routines = self.lock_routines()?;
        // SAFETY: the addresses are those of a matrix with the extents passed, its pivots and its status, for each matrix of the batch.
        self.for_each_matrix(|i| unsafe {
            routines.lu(m as i64, n as i64, factors.matrix_address(i), pivots.matrix_address(i), info.matrix_address(i))
        })?;
        self.copy_to_row_major(&factors, m, m, n, &self.output_matrices(0, m * n))?;
        let (out, pivots, total) = (self.output_matrices(1, least).start_address(), pivots.start_address(), least * self.problem.count);
        let mut args = Args::new();
        args.push(&out).push(&pivots).push(&total);
        self.launch_kernel("narrow_pivots", total, 1, &mut args)
    }
}
