//! Singular values of batches of float32 and complex64 matrices, from eigenvectors of `a^H @ a` in double precision.
//!
//! The product of two float32 numbers is exact in double precision, so the rounding errors of the eigenvectors are far below those of
//! single precision, except for singular values below about 1e-4 of the largest. The vectors of these are orthogonalised again
//! (`docs/notes/linear-algebra.md`).

use cuprum_core::call::SingularVectors;
use cuprum_core::{DType, MatmulPrecision, Result};

use super::super::linalg_problem::MAX_COLUMNS_OF_SVD_BATCH;
use super::{CheckedMatrixPart, DeviceMatrixStack, FailureCheckAddresses, LinalgLibraryCall, MemoryOrder};
use crate::codegen::ctype;
use crate::compile::module::Args;
use crate::device::WithCallContext;
use crate::families::contract::cublas::{BlasType, Gemm, Transpose};
use crate::families::kernel_lookup::KernelSource;

static SINGULAR_VECTORS_SOURCE: KernelSource = KernelSource {
    name: "linalg_svd_batch.cu",
    text: concat!(include_str!("../../../kernels/linalg.cuh"), include_str!("../../../kernels/linalg_svd_batch.cu")),
};

/// Number of threads that work on a matrix.
const SVD_BATCH_THREADS_PER_MATRIX: u32 = 256;

fn singular_vectors_macros(dtype: DType) -> [(&'static str, &'static str); 3] {
    const { assert!(SVD_BATCH_THREADS_PER_MATRIX == 256 && MAX_COLUMNS_OF_SVD_BATCH == 512) };
    [("FIELD", ctype(dtype)), ("TEAM", "256"), ("MAX_COLUMNS", "512")]
}

/// Returns names and sources of the kernels, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    [DType::F64, DType::C128].map(|dtype| SINGULAR_VECTORS_SOURCE.named_source(&singular_vectors_macros(dtype))).into()
}

impl LinalgLibraryCall<'_> {
    /// Computes the singular value decompositions of the inputs, in double precision of type `blas_type` with elements of `itemsize`
    /// bytes. As in [`LinalgLibraryCall::svd`], a matrix with no more rows than columns is transposed first.
    pub(super) fn svd_batch(&self, vectors: SingularVectors, blas_type: BlasType, itemsize: usize) -> Result<()> {
        let [m, n, _] = self.matrix_extents();
        let (rows, columns, transposed) = (m.max(n), m.min(n), m <= n);
        let has_vectors = vectors != SingularVectors::Omitted;
        let square = columns * columns;
        let s = self.output_matrices(usize::from(has_vectors), columns);
        let single = self.copy_input(0, if transposed { MemoryOrder::Rows } else { MemoryOrder::Columns })?;
        let largest = self.scale_to_safe_range(&single, rows, columns, CheckedMatrixPart::All)?;
        let wide = |elements: usize| self.allocate_scratch(elements, itemsize);
        let (a, v, rotated) = (wide(rows * columns)?, wide(square)?, wide(rows * columns)?);
        let (eigenvalues, info) = (self.allocate_scratch(columns, 8)?, self.allocate_statuses()?);
        self.convert_precision("widen_to_double", &single, &a)?;
        let adjoint = if self.problem.dtype.is_complex() { Transpose::Conjugate } else { Transpose::Yes };
        self.multiply_matrices(blas_type, (adjoint, Transpose::No), [columns, columns, rows], [&a, &a, &v])?;
        {
            let (v, w, info) = (v.start_address(), eigenvalues.start_address(), info.start_address());
            let mut routines = self.lock_routines_for_type(blas_type)?;
            // SAFETY: `v`, `w` and `info` are the addresses of `count` matrices (columns, columns), as many eigenvalues for each, and a
            // status for each, without gaps.
            unsafe { routines.hermitian_eigen_batch(true, false, columns as i64, v, w, info, self.problem.count as i64) }
                .with_call_context(self.call)?;
        }
        self.multiply_matrices(blas_type, (Transpose::No, Transpose::No), [rows, columns, columns], [&a, &v, &rotated])?;
        // The column-major `v` has the elements of the row-major transpose of `v` in the same order. The conjugate of that transpose is
        // `vh`. If the input was transposed, its left and right vectors are interchanged.
        let vectors = match (has_vectors, transposed) {
            (false, _) => None,
            (true, true) => Some((self.output_matrices(2, rows * columns), self.allocate_elements(square)?)),
            (true, false) => Some((self.allocate_elements(rows * columns)?, self.output_matrices(2, square))),
        };
        self.launch_singular_vectors(&rotated, &a, &v, vectors.as_ref(), &s, [rows, columns])?;
        self.restore_scale(&largest, &s, columns)?;
        self.report_failures(FailureCheckAddresses { largest: largest.start_address(), info: info.start_address(), diagonal: None })?;
        match vectors {
            None => Ok(()),
            Some((_, vh)) if transposed => self.copy_to_row_major(&vh, columns, columns, columns, &self.output_matrices(0, square)),
            Some((u, _)) => self.copy_to_row_major(&u, rows, rows, columns, &self.output_matrices(0, rows * columns)),
        }
    }

    /// Queues the products `c = op(a) @ op(b)` (m, n), over an axis of k elements. The matrices of each stack are column-major, without
    /// gaps.
    fn multiply_matrices(
        &self,
        dtype: BlasType,
        transpose: (Transpose, Transpose),
        [m, n, k]: [usize; 3],
        [a, b, c]: [&DeviceMatrixStack; 3],
    ) -> Result<()> {
        let itemsize = c.step as usize / (m * n);
        let distance = |stack: &DeviceMatrixStack| (stack.step as usize / itemsize) as i64;
        let gemm = Gemm {
            dtype,
            transpose,
            m: m as i64,
            n: n as i64,
            k: k as i64,
            alpha: (1.0, 0.0),
            a: a.start_address(),
            lda: if transpose.0 == Transpose::No { m } else { k } as i64,
            stride_a: distance(a),
            b: b.start_address(),
            ldb: if transpose.1 == Transpose::No { k } else { n } as i64,
            stride_b: distance(b),
            beta: (0.0, 0.0),
            c: c.start_address(),
            ldc: m as i64,
            stride_c: distance(c),
            batch: self.problem.count as i64,
            precision: MatmulPrecision::default(),
        };
        let blas = self.context.blas().with_call_context(self.call)?;
        // SAFETY: the stacks hold `count` column-major matrices of these extents.
        unsafe { blas.gemm_strided_batched_ex(&gemm) }.with_call_context(self.call)
    }

    /// Queues the kernel `singular_vectors`. It normalises the columns of `rotated` = a @ v to the left singular vectors, sorts them
    /// together with `v`, and stores the results in single precision. `vectors` receives the left singular vectors and the adjoint of `v`.
    /// `work` is scratch memory of the size of `rotated`.
    fn launch_singular_vectors(
        &self,
        rotated: &DeviceMatrixStack,
        work: &DeviceMatrixStack,
        v: &DeviceMatrixStack,
        vectors: Option<&(DeviceMatrixStack, DeviceMatrixStack)>,
        s: &DeviceMatrixStack,
        [rows, columns]: [usize; 2],
    ) -> Result<()> {
        let dtype = if self.problem.dtype.is_complex() { DType::C128 } else { DType::F64 };
        let (u, vh) = vectors.map_or((0, 0), |(u, vh)| (u.start_address(), vh.start_address()));
        let [rotated, work, v, s] = [rotated, work, v, s].map(DeviceMatrixStack::start_address);
        let (rows, columns) = (rows as i32, columns as i32);
        let launch = || {
            let function =
                SINGULAR_VECTORS_SOURCE.get_or_compile_kernel(self.context, "singular_vectors", &singular_vectors_macros(dtype))?;
            let mut args = Args::new();
            args.push(&u).push(&s).push(&vh).push(&rotated).push(&work).push(&v).push(&self.problem.count).push(&rows).push(&columns);
            let blocks = u32::try_from(self.problem.count).unwrap_or(u32::MAX).min(i32::MAX as u32);
            // SAFETY: the arguments match the kernel `singular_vectors`. Each address has memory for all matrices of the problem.
            unsafe { function.launch([blocks, 1, 1], [SVD_BATCH_THREADS_PER_MATRIX, 1, 1], 0, args.pointers()) }
        };
        launch().with_call_context(self.call)
    }
}
