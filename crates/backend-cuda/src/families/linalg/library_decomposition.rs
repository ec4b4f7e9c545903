//! Decompositions by cuSOLVER, and triangular systems by cuBLAS, one matrix of the batch after the other or, for
//! some tasks, all matrices at once.
//!
//! The libraries are column-major, so they read a matrix in C order as its transpose. Where the transposed problem has the same result, the
//! input is copied as it is. Otherwise the copy interchanges rows and columns.

mod lu_decomposition;
mod svd_batch;

use std::sync::Arc;

use cuprum_core::call::{Form, QrMode, SingularVectors, Triangle};
use cuprum_core::device::Buffer;
use cuprum_core::error::LinAlgFailure;
use cuprum_core::layout::{Dims, Layout};
use cuprum_core::{Array, Call, DType, Linalg, Outcome, Result, StoredArray, decline};

use super::cusolver::{self, CusolverRoutines, SvdJob};
use super::linalg_problem::{LinalgProblem, copy_unless_c_contiguous, failure_for_task};
use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::error::CudaError;
use crate::families::contract::cublas::{BlasType, Transpose, TriangularMatrixSide, TriangularSystem};
use crate::families::copy;
use crate::families::kernel_lookup::{DEFAULT_THREADS_PER_BLOCK, KernelSource};

static LIBRARY_HELPER_SOURCE: KernelSource = KernelSource {
    name: "linalg_library.cu",
    text: concat!(include_str!("../../kernels/linalg.cuh"), include_str!("../../kernels/linalg_library.cu")),
};

/// Largest ratio of single- to double-precision throughput at which singular values of float32 and complex64 matrices are computed in
/// double precision. On such devices double precision is not slower, and cuSOLVER treats fewer matrices as singular
/// (`docs/notes/linear-algebra.md`).
const MAX_THROUGHPUT_RATIO_FOR_DOUBLE_PRECISION: u32 = 2;
/// Maximum extent of Hermitian matrices that cuSOLVER decomposes as a batch, in one call.
const MAX_EXTENT_OF_HERMITIAN_BATCH: i32 = 512;
/// Maximum number of blocks that share a matrix.
const MAX_BLOCKS_PER_MATRIX: u64 = 1024;
/// Maximum number of blocks in the y dimension of a grid.
const MAX_GRID_Y: usize = 65535;

/// Returns names and sources of the kernels, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let library = [DType::F32, DType::F64, DType::C64, DType::C128].map(|dtype| LIBRARY_HELPER_SOURCE.named_source(&dtype_defines(dtype)));
    [library.into(), svd_batch::sources_for_compile_check()].concat()
}

fn dtype_defines(dtype: DType) -> [(&'static str, &'static str); 2] {
    [("FIELD", ctype(dtype)), ("TEAM", "1")]
}

/// The order of a matrix's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MemoryOrder {
    Rows,
    Columns,
}

/// The part of a matrix whose elements are checked for NaN and infinities.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CheckedMatrixPart {
    All = 0,
    Lower = 1,
    Upper = 2,
}

/// The condition on the diagonal of a factor under which a matrix has no result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DiagonalCheck {
    Zero = 1,
    NotPositive = 2,
}

/// Device addresses of the data in which [`LinalgLibraryCall::report_failures`] finds matrices without a result. An address is 0 if a call
/// has no such data.
#[derive(Clone, Copy, Debug, Default)]
struct FailureCheckAddresses {
    largest: u64,
    info: u64,
    diagonal: Option<(u64, DiagonalCheck)>,
}

/// Executes a call with cuSOLVER or cuBLAS, which must be loaded. If `batched`, uses the library's batch routines where they exist.
pub(super) fn run_with_library(call: &Call, context: &'static Context, problem: &LinalgProblem, batched: bool) -> Result<Outcome> {
    let Some(blas_type) = blas_type(problem.dtype) else { decline!("cuSOLVER has no matrices of {}", problem.dtype) };
    let outputs = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<Vec<_>>>()?;
    let run = LinalgLibraryCall { call, context, problem, blas_type, batched, outputs };
    match problem.task {
        Linalg::Solve => run.solve_systems()?,
        Linalg::Inverse => run.invert_matrices()?,
        Linalg::Determinant { log } => run.compute_determinants(log)?,
        Linalg::Cholesky { triangle } if batched => run.cholesky_batch(triangle)?,
        Linalg::Cholesky { triangle } => run.cholesky(triangle)?,
        Linalg::Lu => run.lu()?,
        Linalg::SolveTriangular { triangle, form, unit_diagonal } => run.solve_triangular(triangle, form, unit_diagonal)?,
        Linalg::Qr { mode } => run.qr(mode)?,
        Linalg::Svd { vectors } => run.svd(vectors)?,
        Linalg::Eigh { triangle, vectors } => run.hermitian_eigen(triangle, vectors)?,
        Linalg::Eig { vectors } => run.general_eigen(vectors)?,
        Linalg::Schur | Linalg::Function(_) => decline!("cuSOLVER has no Schur decomposition"),
    }
    device::outcome_from_buffers(call, run.outputs)
}

/// Returns whether singular values of a batch of single-precision matrices can be computed in double precision on this device. May load
/// cuSOLVER.
pub(super) fn has_svd_batches(context: &'static Context) -> bool {
    has_fast_double_precision(context) && cusolver::supports_hermitian_batches(context)
}

/// Returns whether singular values of single-precision matrices are computed in double precision on this device.
fn has_fast_double_precision(context: &Context) -> bool {
    context.info().single_to_double_ratio <= MAX_THROUGHPUT_RATIO_FOR_DOUBLE_PRECISION
}

fn blas_type(dtype: DType) -> Option<BlasType> {
    match dtype {
        DType::F32 => Some(BlasType::F32),
        DType::F64 => Some(BlasType::F64),
        DType::C64 => Some(BlasType::C64),
        DType::C128 => Some(BlasType::C128),
        _ => None,
    }
}

/// A call that cuSOLVER or cuBLAS computes.
struct LinalgLibraryCall<'a> {
    call: &'a Call<'a>,
    context: &'static Context,
    problem: &'a LinalgProblem,
    blas_type: BlasType,
    /// Whether cuBLAS and cuSOLVER decompose all matrices in one call, by their batch routines.
    batched: bool,
    outputs: Vec<Arc<CudaBuffer>>,
}

/// Matrices of equal extents at equal distances in device memory.
#[derive(Clone)]
struct DeviceMatrixStack {
    buffer: Arc<CudaBuffer>,
    /// Distance between consecutive matrices, in bytes.
    step: u64,
}

impl DeviceMatrixStack {
    fn matrix_address(&self, index: usize) -> u64 {
        self.buffer.pointer() + index as u64 * self.step
    }
    fn start_address(&self) -> u64 {
        self.buffer.pointer()
    }
}

impl LinalgLibraryCall<'_> {
    fn lock_routines(&self) -> Result<CusolverRoutines> {
        self.lock_routines_for_type(self.blas_type)
    }

    fn lock_routines_for_type(&self, blas_type: BlasType) -> Result<CusolverRoutines> {
        CusolverRoutines::new(self.context, blas_type).with_call_context(self.call)
    }

    /// Allocates scratch memory for `elements` elements of `itemsize` bytes for each matrix.
    fn allocate_scratch(&self, elements: usize, itemsize: usize) -> Result<DeviceMatrixStack> {
        let step = elements.saturating_mul(itemsize);
        Ok(DeviceMatrixStack { buffer: device::allocate(self.call, step.saturating_mul(self.problem.count))?, step: step as u64 })
    }

    fn allocate_elements(&self, elements: usize) -> Result<DeviceMatrixStack> {
        self.allocate_scratch(elements, self.problem.dtype.itemsize())
    }

    /// Allocates a 32-bit status for each matrix, and one more, to which routines write statuses that are not needed.
    fn allocate_statuses(&self) -> Result<DeviceMatrixStack> {
        let bytes = self.problem.count.saturating_add(1).saturating_mul(4);
        Ok(DeviceMatrixStack { buffer: device::allocate(self.call, bytes)?, step: 4 })
    }

    /// Returns the memory of output `n`, which has `elements` elements for each matrix.
    fn output_matrices(&self, n: usize, elements: usize) -> DeviceMatrixStack {
        DeviceMatrixStack { buffer: self.outputs[n].clone(), step: (elements * self.call.outputs[n].dtype.itemsize()) as u64 }
    }

    /// Returns a view of the matrices of `stack` as one 3-D array. `extents` and `strides` describe the two axes of a matrix.
    fn view_as_array(&self, stack: &DeviceMatrixStack, extents: [usize; 2], strides: [isize; 2]) -> Result<StoredArray> {
        let shape = [self.problem.count, extents[0], extents[1]];
        let step = (stack.step / self.problem.dtype.itemsize() as u64) as isize;
        let layout = Layout::strided(&shape, &[step, strides[0], strides[1]], 0)?;
        StoredArray::new(self.problem.dtype, layout, stack.buffer.clone() as Arc<dyn Buffer>)
    }

    /// Queues a copy of the matrices in `array` to `to`. In `to`, the elements of each matrix are in `order`, and there are no gaps between
    /// matrices.
    fn copy_in_order(&self, array: &StoredArray, order: MemoryOrder, to: &DeviceMatrixStack) -> Result<()> {
        let view = match order {
            MemoryOrder::Rows => array.clone(),
            MemoryOrder::Columns => array.with_layout(swap_last_two_axes(array.layout())?)?,
        };
        let target = StoredArray::new(view.dtype(), Layout::contiguous(view.shape())?, to.buffer.clone() as Arc<dyn Buffer>)?;
        copy::queue_copy(self.call, &view, &target)
    }

    /// Returns a copy of input `n` in which the elements of each matrix are in `order`.
    fn copy_input(&self, n: usize, order: MemoryOrder) -> Result<DeviceMatrixStack> {
        let array = &self.call.inputs[n];
        let elements = array.shape().iter().rev().take(2).product();
        let to = self.allocate_elements(elements)?;
        self.copy_in_order(array, order, &to)?;
        Ok(to)
    }

    /// Queues a copy of the first `rows` rows of each matrix in `from` to `to`. The matrices in `from` are column-major and have `height`
    /// rows. Those in `to` are row-major.
    fn copy_to_row_major(
        &self,
        from: &DeviceMatrixStack,
        height: usize,
        rows: usize,
        columns: usize,
        to: &DeviceMatrixStack,
    ) -> Result<()> {
        self.copy_in_order(&self.view_as_array(from, [rows, columns], [1, height as isize])?, MemoryOrder::Rows, to)
    }

    /// Calls `one` with the index of each matrix of the batch.
    fn for_each_matrix(&self, mut one: impl FnMut(usize) -> crate::Result<()>) -> Result<()> {
        (0..self.problem.count).try_for_each(&mut one).with_call_context(self.call)
    }

    /// Launches the kernel `name` for `size` elements of each of `count` matrices.
    fn launch_kernel(&self, name: &str, size: usize, count: usize, args: &mut Args) -> Result<()> {
        let blocks = (size as u64).div_ceil(u64::from(DEFAULT_THREADS_PER_BLOCK)).clamp(1, MAX_BLOCKS_PER_MATRIX);
        let mut launch = || {
            let function = LIBRARY_HELPER_SOURCE.get_or_compile_kernel(self.context, name, &dtype_defines(self.problem.dtype))?;
            let grid = [blocks as u32, count.clamp(1, MAX_GRID_Y) as u32, 1];
            // SAFETY: each caller passes the parameters of the kernel `name`, with addresses of memory for all matrices of the problem.
            unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
        };
        launch().with_call_context(self.call)
    }

    /// Scales matrices (rows, columns) with very large or very small elements, so that the routines neither overflow nor underflow.
    /// Matrices with NaN or infinities become identity matrices. Returns the largest magnitude in the `part` of each original matrix, which
    /// determines the scale.
    fn scale_to_safe_range(
        &self,
        matrices: &DeviceMatrixStack,
        rows: usize,
        columns: usize,
        part: CheckedMatrixPart,
    ) -> Result<DeviceMatrixStack> {
        let largest = self.allocate_scratch(1, 8)?;
        self.context.fill(largest.buffer.memory(), 0, [0u8; 4], 2 * self.problem.count).with_call_context(self.call)?;
        let (start, maxima, part) = (matrices.start_address(), largest.start_address(), part as i32);
        let mut args = Args::new();
        args.push(&maxima).push(&start).push(&self.problem.count).push(&rows).push(&columns).push(&part);
        self.launch_kernel("find_largest_magnitudes", rows * columns, self.problem.count, &mut args)?;
        let mut args = Args::new();
        args.push(&maxima).push(&start).push(&self.problem.count).push(&rows).push(&columns);
        self.launch_kernel("scale_to_library_range", rows * columns, self.problem.count, &mut args)?;
        Ok(largest)
    }

    /// Undoes the scaling of [`LinalgLibraryCall::scale_to_safe_range`] in the `length` real numbers that `values` has for each matrix.
    /// `largest` is the result of [`LinalgLibraryCall::scale_to_safe_range`].
    fn restore_scale(&self, largest: &DeviceMatrixStack, values: &DeviceMatrixStack, length: usize) -> Result<()> {
        let (maxima, values) = (largest.start_address(), values.start_address());
        let mut args = Args::new();
        args.push(&maxima).push(&values).push(&self.problem.count).push(&length);
        self.launch_kernel("restore_scale", length, self.problem.count, &mut args)
    }

    /// Queues a kernel that reports an error for the first matrix without a result.
    fn report_failures(&self, evidence: FailureCheckAddresses) -> Result<()> {
        let failure = failure_for_task(self.problem.task);
        let later = if matches!(self.problem.task, Linalg::Eig { .. }) { LinAlgFailure::EigenvaluesDiverge } else { failure };
        let (input_code, code) = (device::linalg_fault_code(failure), device::linalg_fault_code(later));
        let fault = self.context.fault_pointer().with_call_context(self.call)?;
        let op = device::fault_operation_id(self.call.op, 0);
        let (diagonal, checks) = evidence.diagonal.map_or((0, 0), |(address, check)| (address, check as i32));
        let n = self.problem.n as usize;
        let mut args = Args::new();
        args.push(&evidence.largest).push(&evidence.info).push(&diagonal).push(&self.problem.count).push(&n).push(&checks);
        args.push(&fault).push(&input_code).push(&code).push(&op);
        self.launch_kernel("report_failures", 1, 1, &mut args)
    }

    fn clear_triangle(&self, matrices: &DeviceMatrixStack, rows: usize, columns: usize, above: bool) -> Result<()> {
        let (start, above) = (matrices.start_address(), i32::from(above));
        let mut args = Args::new();
        args.push(&start).push(&self.problem.count).push(&rows).push(&columns).push(&above);
        self.launch_kernel("clear_triangle", rows * columns, self.problem.count, &mut args)
    }

    /// Queues a copy of the lower triangles of the square column-major matrices in `factors` to `to`. The matrices in `to` are row-major,
    /// with zeros above the diagonal.
    fn store_lower_triangle(&self, factors: &DeviceMatrixStack, to: &DeviceMatrixStack) -> Result<()> {
        /// Number of rows and columns of a tile, as in the kernel `store_lower_triangle`.
        const TILE_SIDE: usize = 32;
        let (to, factors, n) = (to.start_address(), factors.start_address(), self.problem.n as usize);
        let tiles = n.div_ceil(TILE_SIDE);
        let mut args = Args::new();
        args.push(&to).push(&factors).push(&self.problem.count).push(&n);
        // One block for each tile of the output.
        self.launch_kernel("store_lower_triangle", tiles * tiles * DEFAULT_THREADS_PER_BLOCK as usize, self.problem.count, &mut args)
    }

    /// Clears the imaginary parts on the diagonal of the square `matrices`.
    fn make_diagonal_real(&self, matrices: &DeviceMatrixStack) -> Result<()> {
        if !self.problem.dtype.is_complex() {
            return Ok(());
        }
        let (start, n) = (matrices.start_address(), self.problem.n as usize);
        let mut args = Args::new();
        args.push(&start).push(&self.problem.count).push(&n);
        self.launch_kernel("make_diagonal_real", n, self.problem.count, &mut args)
    }

    fn conjugate_matrices(&self, matrices: &DeviceMatrixStack, elements: usize) -> Result<()> {
        if !self.problem.dtype.is_complex() {
            return Ok(());
        }
        let (start, total) = (matrices.start_address(), elements * self.problem.count);
        let mut args = Args::new();
        args.push(&start).push(&total);
        self.launch_kernel("conjugate_elements", total, 1, &mut args)
    }

    /// Returns the extents m, n and k as `usize`.
    fn matrix_extents(&self) -> [usize; 3] {
        [self.problem.m, self.problem.n, self.problem.k].map(|n| n as usize)
    }

    /// Returns a device array with the address of each matrix.
    fn list_matrix_addresses(&self, matrices: &DeviceMatrixStack) -> Result<DeviceMatrixStack> {
        let array = self.allocate_scratch(1, 8)?;
        let (out, start, step) = (array.start_address(), matrices.start_address(), matrices.step);
        let mut args = Args::new();
        args.push(&out).push(&start).push(&step).push(&self.problem.count);
        self.launch_kernel("list_matrix_addresses", self.problem.count, 1, &mut args)?;
        Ok(array)
    }

    /// Returns the number of matrices as `i32`, the type that the batch routines require.
    fn batch_size(&self) -> Result<i32> {
        let invalid = |_| CudaError::Invalid(format!("cuBLAS takes no batch of {} matrices", self.problem.count));
        i32::try_from(self.problem.count).map_err(invalid).with_call_context(self.call)
    }

    /// Computes the Cholesky factors of all matrices with one call of the batch routine.
    fn cholesky_batch(&self, triangle: Triangle) -> Result<()> {
        let [_, n, _] = self.matrix_extents();
        let (out, info) = (self.output_matrices(0, n * n), self.allocate_statuses()?);
        self.copy_in_order(&self.call.inputs[0], MemoryOrder::Rows, &out)?;
        self.make_diagonal_real(&out)?;
        let (addresses, count) = (self.list_matrix_addresses(&out)?, self.batch_size()?);
        // The lower triangle of a row-major matrix is the upper triangle of a column-major one.
        let lower = triangle == Triangle::Lower;
        // SAFETY: `addresses` holds the device address of each matrix (n, n), and `info` has a status for each.
        unsafe { self.lock_routines()?.cholesky_batch(lower, self.problem.n, addresses.start_address(), info.start_address(), count) }
            .with_call_context(self.call)?;
        let diagonal = Some((out.start_address(), DiagonalCheck::NotPositive));
        self.report_failures(FailureCheckAddresses { info: info.start_address(), diagonal, ..FailureCheckAddresses::default() })?;
        self.clear_triangle(&out, n, n, lower)
    }

    fn cholesky(&self, triangle: Triangle) -> Result<()> {
        let [_, n, _] = self.matrix_extents();
        let (out, info) = (self.output_matrices(0, n * n), self.allocate_statuses()?);
        // cuSOLVER is twice as fast for the lower triangle in column-major order, which is the upper triangle in row-major order.
        let factors = match triangle {
            Triangle::Lower => self.copy_input(0, MemoryOrder::Columns)?,
            Triangle::Upper => out.clone(),
        };
        if triangle == Triangle::Upper {
            self.copy_in_order(&self.call.inputs[0], MemoryOrder::Rows, &factors)?;
        }
        self.make_diagonal_real(&factors)?;
        let mut routines = self.lock_routines()?;
        // SAFETY: `factors` holds `count` matrices (n, n), and `info` a status for each.
        self.for_each_matrix(|i| unsafe { routines.cholesky(n as i64, factors.matrix_address(i), info.matrix_address(i)) })?;
        let diagonal = Some((factors.start_address(), DiagonalCheck::NotPositive));
        self.report_failures(FailureCheckAddresses { info: info.start_address(), diagonal, ..FailureCheckAddresses::default() })?;
        match triangle {
            Triangle::Lower => self.store_lower_triangle(&factors, &out),
            Triangle::Upper => self.clear_triangle(&out, n, n, false),
        }
    }

    fn solve_triangular(&self, triangle: Triangle, form: Form, unit_diagonal: bool) -> Result<()> {
        let (call, [_, n, k]) = (self.call, self.matrix_extents());
        let a = copy_unless_c_contiguous(call, &call.inputs[0])?;
        let factors = device::pointer_to_read(&a)?;
        let out = self.output_matrices(0, n * k);
        self.copy_in_order(&call.inputs[1], MemoryOrder::Rows, &out)?;
        // cuBLAS reads row-major matrices as their transposes, so it solves the equation `x^T @ op(a)^T = b^T`.
        let form = match form {
            Form::Plain => Transpose::No,
            Form::Transposed => Transpose::Yes,
            Form::Adjoint => Transpose::Conjugate,
        };
        let (dtype, upper) = (self.blas_type, triangle == Triangle::Lower);
        let step = (n * n * self.problem.dtype.itemsize()) as u64;
        let blas = self.context.blas().with_call_context(call)?;
        self.for_each_matrix(|i| {
            let (a, b) = (factors + i as u64 * step, out.matrix_address(i));
            let LinalgProblem { n, k, .. } = *self.problem;
            let system =
                TriangularSystem { dtype, side: TriangularMatrixSide::Right, upper, form, unit_diagonal, m: k, n, a, lda: n, b, ldb: k };
            // SAFETY: `a` is the address of a matrix (n, n), and `b` that of a matrix (n, k), both in C order.
            unsafe { blas.solve_triangular(&system) }
        })?;
        if unit_diagonal {
            return Ok(());
        }
        self.report_failures(FailureCheckAddresses { diagonal: Some((factors, DiagonalCheck::Zero)), ..FailureCheckAddresses::default() })
    }

    fn qr(&self, qr_mode: QrMode) -> Result<()> {
        let [m, n, _] = self.matrix_extents();
        let least = m.min(n);
        let (factors, info, taus) = (self.copy_input(0, MemoryOrder::Columns)?, self.allocate_statuses()?, self.allocate_elements(least)?);
        let mut routines = self.lock_routines()?;
        // SAFETY: the arguments are the addresses of a matrix (m, n), of min(m, n) scalar factors, and of a status, for each matrix of the
        // batch.
        self.for_each_matrix(|i| unsafe {
            routines.qr(m as i64, n as i64, factors.matrix_address(i), taus.matrix_address(i), info.matrix_address(i))
        })?;
        let height = if qr_mode == QrMode::Complete { m } else { least };
        let r = self.output_matrices(usize::from(qr_mode != QrMode::R), height * n);
        self.copy_to_row_major(&factors, m, height, n, &r)?;
        self.clear_triangle(&r, height, n, false)?;
        if qr_mode == QrMode::R {
            return Ok(());
        }
        let q = if height <= n {
            factors
        } else {
            let wide = self.allocate_elements(m * height)?;
            let target = self.view_as_array(&wide, [n, m], [m as isize, 1])?;
            copy::queue_copy(self.call, &self.view_as_array(&factors, [n, m], [m as isize, 1])?, &target)?;
            wide
        };
        let (rows, columns, reflectors) = (m as i64, height as i64, least as i64);
        // SAFETY: the matrices in `q` have m rows and at least `height` columns. `taus` has a scalar factor for each reflector.
        self.for_each_matrix(|i| unsafe {
            routines.form_q(rows, columns, reflectors, q.matrix_address(i), taus.matrix_address(i), info.matrix_address(i))
        })?;
        self.copy_to_row_major(&q, m, m, height, &self.output_matrices(0, m * height))
    }

    /// Computes the singular value decompositions of the inputs. An input with no more rows than columns is transposed first. The
    /// decomposed matrix `u @ diag(s) @ vh` thus has at least as many rows as columns.
    fn svd(&self, vectors: SingularVectors) -> Result<()> {
        if self.batched
            && self.problem.supports_svd_batch()
            && cusolver::supports_hermitian_batches(self.context)
            && let Some((blas_type, itemsize)) = self.double_precision_type_for_svd()
        {
            return self.svd_batch(vectors, blas_type, itemsize);
        }
        let [m, n, _] = self.matrix_extents();
        let (rows, columns) = (m.max(n), m.min(n));
        let transposed = m <= n;
        let order = if transposed { MemoryOrder::Rows } else { MemoryOrder::Columns };
        let (job, width) = match vectors {
            SingularVectors::Omitted => (SvdJob::Values, columns),
            SingularVectors::Reduced => (SvdJob::Reduced, columns),
            SingularVectors::Full => (SvdJob::Full, rows),
        };
        let has_vectors = job != SvdJob::Values;
        let square = columns * columns;
        let (s, info) = (self.output_matrices(usize::from(has_vectors), columns), self.allocate_statuses()?);
        // The output `vh` needs no copy, because the routine's column-major `v`, or `u` if the input is transposed, has the same order of
        // elements.
        let (u, vh) = match (has_vectors, transposed) {
            (false, _) => (self.allocate_elements(rows * width)?, self.allocate_elements(square)?), // svd_polar writes to them
            (true, true) => (self.output_matrices(2, rows * width), self.allocate_elements(square)?),
            (true, false) => (self.allocate_elements(rows * width)?, self.output_matrices(2, square)),
        };
        let work = self.copy_input(0, order)?;
        let largest = self.scale_to_safe_range(&work, rows, columns, CheckedMatrixPart::All)?;
        let (height, length) = (rows as i64, columns as i64);
        let inexact = match self.double_precision_type_for_svd() {
            None => self.svd_polar(self.blas_type, job, [&work, &s, &u, &vh, &info])?,
            Some((blas_type, itemsize)) => {
                let [wide, wide_u, wide_vh] =
                    [rows * columns, rows * width, square].map(|elements| self.allocate_scratch(elements, itemsize));
                let (wide, wide_s, wide_u, wide_vh) = (wide?, self.allocate_scratch(columns, 8)?, wide_u?, wide_vh?);
                self.convert_precision("widen_to_double", &work, &wide)?;
                let inexact = self.svd_polar(blas_type, job, [&wide, &wide_s, &wide_u, &wide_vh, &info])?;
                self.convert_precision("narrow_to_float", &wide_s, &s)?;
                if has_vectors {
                    self.convert_precision("narrow_to_float", &wide_u, &u)?;
                    self.convert_precision("narrow_to_float", &wide_vh, &vh)?;
                }
                inexact
            }
        };
        if has_vectors {
            // The routine's column-major `v` has the elements of the row-major transpose of `v` in the same order. The conjugate of that
            // transpose is `vh`.
            self.conjugate_matrices(&vh, square)?;
        }
        if !inexact.is_empty() {
            self.copy_in_order(&self.call.inputs[0], order, &work)?;
            self.scale_to_safe_range(&work, rows, columns, CheckedMatrixPart::All)?;
            let adjoint = self.allocate_elements(square)?;
            let mut routines = self.lock_routines()?;
            for i in inexact {
                let [work, s, u, vt, info] = [&work, &s, &u, &adjoint, &info].map(|stack| stack.matrix_address(i));
                // SAFETY: the addresses are those of matrices with the extents that `job` requires for an input (rows, columns).
                unsafe { routines.svd(job, height, length, work, s, u, vt, info) }.with_call_context(self.call)?;
                if has_vectors {
                    let one = |stack: &DeviceMatrixStack, strides: [isize; 2]| -> Result<StoredArray> {
                        let offset = i * square;
                        let layout = Layout::strided(&[columns, columns], &strides, offset)?;
                        StoredArray::new(self.problem.dtype, layout, stack.buffer.clone() as Arc<dyn Buffer>)
                    };
                    let side = columns as isize;
                    copy::queue_copy(self.call, &one(&adjoint, [1, side])?, &one(&vh, [side, 1])?)?;
                }
            }
        }
        self.restore_scale(&largest, &s, columns)?;
        self.report_failures(FailureCheckAddresses { largest: largest.start_address(), info: info.start_address(), diagonal: None })?;
        match (has_vectors, transposed) {
            (false, _) => Ok(()),
            // The input is the transpose of `u @ diag(s) @ vh`, so its left singular vectors are the transpose of `vh`.
            (true, true) => self.copy_to_row_major(&vh, columns, columns, columns, &self.output_matrices(0, square)),
            (true, false) => self.copy_to_row_major(&u, rows, rows, width, &self.output_matrices(0, rows * width)),
        }
    }

    /// Computes singular value decompositions by polar decompositions in the precision of `blas_type`. `stacks` has the matrices (which are
    /// overwritten), `s`, `u`, `v`, and the status of each matrix. Returns the indices of the matrices whose results are inaccurate.
    fn svd_polar(&self, blas_type: BlasType, job: SvdJob, stacks: [&DeviceMatrixStack; 5]) -> Result<Vec<usize>> {
        let [m, n, _] = self.matrix_extents();
        let (rows, columns) = (m.max(n) as i64, m.min(n) as i64);
        let (mut inexact, mut routines) = (Vec::new(), self.lock_routines_for_type(blas_type)?);
        self.for_each_matrix(|i| {
            let [a, s, u, v, info] = stacks.map(|stack| stack.matrix_address(i));
            // SAFETY: the addresses are those of matrices of type `blas_type`, with the extents that `job` requires for an input (rows,
            // columns).
            if !unsafe { routines.svd_polar(job, rows, columns, a, s, u, v, info) }? {
                inexact.push(i);
            }
            Ok(())
        })?;
        Ok(inexact)
    }

    /// Returns the double-precision type (with its size in bytes) in which to compute singular values of float32 or complex64 matrices.
    /// Returns `None` if they are computed in the dtype of the matrices.
    fn double_precision_type_for_svd(&self) -> Option<(BlasType, usize)> {
        let is_fast = has_fast_double_precision(self.context);
        match self.problem.dtype {
            DType::F32 if is_fast => Some((BlasType::F64, 8)),
            DType::C64 if is_fast => Some((BlasType::C128, 16)),
            _ => None,
        }
    }

    /// Queues a conversion of all numbers in `from` between single and double precision. `name` is the kernel: `widen_to_double` or
    /// `narrow_to_float`.
    fn convert_precision(&self, name: &str, from: &DeviceMatrixStack, to: &DeviceMatrixStack) -> Result<()> {
        let (out, start, total) = (to.start_address(), from.start_address(), from.step.min(to.step) as usize / 4 * self.problem.count);
        let mut args = Args::new();
        args.push(&out).push(&start).push(&total);
        self.launch_kernel(name, total, 1, &mut args)
    }

    fn hermitian_eigen(&self, triangle: Triangle, vectors: bool) -> Result<()> {
        let (call, count, [_, n, _]) = (self.call, self.problem.count, self.matrix_extents());
        let upper = triangle == Triangle::Upper;
        let (work, w, info) = (self.copy_input(0, MemoryOrder::Columns)?, self.output_matrices(0, n), self.allocate_statuses()?);
        self.make_diagonal_real(&work)?;
        let largest = self.scale_to_safe_range(&work, n, n, if upper { CheckedMatrixPart::Upper } else { CheckedMatrixPart::Lower })?;
        let mut routines = self.lock_routines()?;
        let extent = n as i64;
        if count > 1 && self.problem.n <= MAX_EXTENT_OF_HERMITIAN_BATCH && cusolver::supports_hermitian_batches(self.context) {
            let (a, w, info) = (work.start_address(), w.start_address(), info.start_address());
            // SAFETY: `a`, `w` and `info` are the addresses of `count` matrices (n, n), n eigenvalues for each, and a status for each,
            // without gaps.
            unsafe { routines.hermitian_eigen_batch(vectors, upper, extent, a, w, info, count as i64) }.with_call_context(call)?;
        } else {
            // SAFETY: the addresses are those of a matrix (n, n), its eigenvalues (and eigenvectors, if requested) and a status, for each
            // matrix of the batch.
            self.for_each_matrix(|i| unsafe {
                routines.hermitian_eigen(vectors, upper, extent, work.matrix_address(i), w.matrix_address(i), info.matrix_address(i))
            })?;
        }
        self.restore_scale(&largest, &w, n)?;
        self.report_failures(FailureCheckAddresses { largest: largest.start_address(), info: info.start_address(), diagonal: None })?;
        if vectors { self.copy_to_row_major(&work, n, n, n, &self.output_matrices(1, n * n)) } else { Ok(()) }
    }

    fn general_eigen(&self, vectors: bool) -> Result<()> {
        let [_, n, _] = self.matrix_extents();
        let (work, w, info) = (self.copy_input(0, MemoryOrder::Columns)?, self.output_matrices(0, n), self.allocate_statuses()?);
        let largest = self.scale_to_safe_range(&work, n, n, CheckedMatrixPart::All)?;
        let right = self.allocate_elements(if vectors { n * n } else { 1 })?;
        let mut routines = self.lock_routines()?;
        // SAFETY: the addresses are those of a matrix (n, n), its eigenvalues (and eigenvectors, if requested) and a status, for each
        // matrix of the batch.
        self.for_each_matrix(|i| unsafe {
            routines.eigen(vectors, n as i64, work.matrix_address(i), w.matrix_address(i), right.matrix_address(i), info.matrix_address(i))
        })?;
        // For real matrices, the kernel `unpack_eigenvectors` later reads the signs of the eigenvalues' imaginary parts. Restoring the
        // scale does not change these signs.
        self.restore_scale(&largest, &w, 2 * n)?;
        self.report_failures(FailureCheckAddresses { largest: largest.start_address(), info: info.start_address(), diagonal: None })?;
        if !vectors {
            return Ok(());
        }
        let out = self.output_matrices(1, n * n);
        if self.problem.dtype.is_complex() {
            return self.copy_to_row_major(&right, n, n, n, &out);
        }
        let (out, packed, values) = (out.start_address(), right.start_address(), w.start_address());
        let mut args = Args::new();
        args.push(&out).push(&packed).push(&values).push(&self.problem.count).push(&n);
        self.launch_kernel("unpack_eigenvectors", n * n, self.problem.count, &mut args)
    }
}

fn swap_last_two_axes(layout: &Layout) -> Result<Layout> {
    let mut axes: Dims = (0..layout.ndim()).collect();
    if let [.., row, column] = &mut axes[..] {
        std::mem::swap(row, column);
    }
    let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
    layout.permute(&axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_axes_are_interchanged() {
        let layout = Layout::contiguous(&[5, 2, 3]).unwrap();
        let interchanged = swap_last_two_axes(&layout).unwrap();
        assert_eq!((interchanged.shape(), interchanged.strides()), (&[5, 3, 2][..], &[6, 1, 3][..]));
    }

    #[test]
    fn all_four_dtypes_have_routines() {
        assert!([DType::F32, DType::F64, DType::C64, DType::C128].into_iter().all(|dtype| blas_type(dtype).is_some()));
        assert_eq!(blas_type(DType::F16), None);
    }
}
