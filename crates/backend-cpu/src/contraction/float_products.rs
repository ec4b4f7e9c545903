//! Matrix products of floats by the `gemm` crate.
#![allow(unsafe_code)]

use std::ops::{Add, Mul};

use bytemuck::Pod;
use cuprum_core::{Element, Result};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, HostVec};

use super::product_batch::{MatrixProductLayout, ProductBatch};

/// Number of products that one task adds for each result, if the summed axis is divided among tasks.
const PRODUCTS_PER_TASK: usize = 4096;
/// Minimum ratio of the summed axis to the longer axis of the result, for a division of the summed axis among tasks. Threads that
/// divide the result instead would each read both operands.
const MIN_RATIO_TO_DIVIDE_SUMS: usize = 64;

/// Maximum number of results, for a division of the summed axis among tasks. Each task stores a sum for every result.
const MAX_RESULTS_TO_DIVIDE_SUMS: usize = 1 << 14;

/// A pointer to the output, shared by tasks that write disjoint elements.
#[derive(Clone, Copy)]
pub(super) struct SharedOutputPointer<T>(pub *mut T);
// SAFETY: each task of a matrix product writes only its own elements through the pointer, and no task reads elements of another task.
unsafe impl<T> Send for SharedOutputPointer<T> {}
// SAFETY: each task of a matrix product writes only its own elements through the pointer, and no task reads elements of another task.
unsafe impl<T> Sync for SharedOutputPointer<T> {}
impl<T> SharedOutputPointer<T> {
    /// Returns a pointer to the element with index `offset`.
    pub fn at(self, offset: isize) -> *mut T {
        self.0.wrapping_offset(offset)
    }
}

/// Computes all products of the batch `batch`, which has passed [`check_matrix_bounds`](super::product_batch::check_matrix_bounds).
/// `zero` and `one` are the numbers 0 and 1 of the type.
pub(super) fn multiply_floats<T: Element + Pod + Add<Output = T> + Mul<Output = T>>(
    p: &MatrixProductLayout,
    batch: &ProductBatch,
    a: Elements,
    b: Elements,
    c: ElementsMut,
    zero: T,
    one: T,
) -> Result<()> {
    let (a, b, c) = (a.typed_slice::<T>(), b.typed_slice::<T>(), c.typed_slice::<T>());
    // The gemm crate does not add 0.0 to sums of one or two products. NumPy does, so that a sum of -0.0 becomes 0.0. Accumulation onto a
    // zeroed result has the same effect.
    let accumulate = p.k <= 2;
    if accumulate {
        c.fill(zero);
    }
    // The gemm crate multiplies sums by `one`, and infinity times 1 + 0j has NaN as its imaginary part. Products with a vector are summed
    // again if a part is NaN. NumPy's BLAS multiplies sums by 1 + 0j too, but not in products of two vectors.
    let sums_nan_again = T::DTYPE.is_complex() && (p.m == 1 || p.n == 1);
    let flops = p.m.saturating_mul(p.n).saturating_mul(p.k);
    let run = |k: usize, start: [isize; 2], pc: *mut T, [down, across]: [isize; 2], parallelism: gemm::Parallelism| {
        let (pa, pb) = (a.as_ptr().wrapping_offset(start[0]), b.as_ptr().wrapping_offset(start[1]));
        // SAFETY: `check_matrix_bounds` has shown that all elements of `a` and `b` are inside their buffers. The same holds for results in
        // `c`; other results are in a block of `m * n` elements. Only this product writes its results.
        unsafe {
            gemm::gemm(
                p.m,
                p.n,
                k,
                pc,
                across,
                down,
                accumulate,
                pa,
                p.a[1],
                p.a[0],
                pb,
                p.b[1],
                p.b[0],
                if accumulate { one } else { zero },
                one,
                false,
                false,
                false,
                parallelism,
            );
        }
        if sums_nan_again {
            for (i, j) in (0..p.m as isize).flat_map(|i| (0..p.n as isize).map(move |j| (i, j))) {
                let result = pc.wrapping_offset(i * down + j * across);
                let (line, column) = (pa.wrapping_offset(i * p.a[0]), pb.wrapping_offset(j * p.b[1]));
                // SAFETY: as for `gemm` above.
                unsafe {
                    if is_nan(*result) {
                        let products = (0..k as isize).map(|n| *line.wrapping_offset(n * p.a[1]) * *column.wrapping_offset(n * p.b[0]));
                        *result = products.fold(zero, |sum, product| sum + product);
                    }
                }
            }
        }
    };
    let count = batch.len();
    let has_few_results = p.m.saturating_mul(p.n) <= MAX_RESULTS_TO_DIVIDE_SUMS;
    if count == 1 && has_few_results && p.k / MIN_RATIO_TO_DIVIDE_SUMS >= p.m.max(p.n).max(PRODUCTS_PER_TASK / MIN_RATIO_TO_DIVIDE_SUMS * 2)
    {
        let mut partial_sums = HostVec::<T>::allocate(p.k.div_ceil(PRODUCTS_PER_TASK).saturating_mul(p.m * p.n))?;
        let start = batch.matrix_offsets(0);
        let tasks = partial_sums.chunks_mut(p.m * p.n).enumerate();
        threads::for_each(
            tasks,
            flops,
            || (),
            |(), (task, sums)| {
                let first = task * PRODUCTS_PER_TASK;
                let offsets = [start[0] + first as isize * p.a[1], start[1] + first as isize * p.b[0]];
                let k = PRODUCTS_PER_TASK.min(p.k - first);
                run(k, offsets, sums.as_mut_ptr(), [p.n as isize, 1], gemm::Parallelism::None);
            },
        );
        for row in 0..p.m {
            for column in 0..p.n {
                let sums = partial_sums.iter().skip(row * p.n + column).step_by(p.m * p.n);
                c[(start[2] + row as isize * p.c[0] + column as isize * p.c[1]) as usize] = sums.fold(zero, |sum, &v| sum + v);
            }
        }
        return Ok(());
    }
    let c = SharedOutputPointer(c.as_mut_ptr());
    let run = |n: usize, parallelism: gemm::Parallelism| {
        let [of_a, of_b, of_c] = batch.matrix_offsets(n);
        run(p.k, [of_a, of_b], c.at(of_c), p.c, parallelism);
    };
    if count > 1 && flops < 1 << 22 {
        // Several small products run in parallel, each on one thread.
        let per_task = ((1 << 18) / flops.max(1)).max(1);
        threads::for_each(
            (0..count).step_by(per_task),
            flops.saturating_mul(count),
            || (),
            |_, first| (first..count.min(first + per_task)).for_each(|n| run(n, gemm::Parallelism::None)),
        );
    } else {
        for n in 0..count {
            threads::run_in_pool(flops, |n_threads| {
                run(n, if n_threads > 1 { gemm::Parallelism::Rayon(n_threads) } else { gemm::Parallelism::None })
            });
        }
    }
    Ok(())
}

/// Returns whether `value` or a part of it is NaN.
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn is_nan<T: PartialEq>(value: T) -> bool {
    value != value
}
