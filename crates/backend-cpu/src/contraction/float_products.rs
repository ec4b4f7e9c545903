//! Matrix products of floats by the `gemm` crate.
#![allow(unsafe_code)]

use cuprum_core::Element;
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};

use super::product_batch::{MatrixProductLayout, ProductBatch};

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
pub(super) fn multiply_floats<T: Element>(
    p: &MatrixProductLayout,
    batch: &ProductBatch,
    a: Elements,
    b: Elements,
    c: ElementsMut,
    zero: T,
    one: T,
) {
    let (a, b, c) = (a.typed_slice::<T>(), b.typed_slice::<T>(), c.typed_slice::<T>());
    // The gemm crate does not add 0.0 to sums of one or two products. NumPy does, so that a sum of -0.0 becomes 0.0. Accumulation onto a
    // zeroed result has the same effect.
    let accumulate = p.k <= 2;
    if accumulate {
        c.fill(zero);
    }
    let c = SharedOutputPointer(c.as_mut_ptr());
    let flops = p.m.saturating_mul(p.n).saturating_mul(p.k);
    let run = |start: [isize; 3], parallelism: gemm::Parallelism| {
        let (pa, pb, pc) = (a.as_ptr().wrapping_offset(start[0]), b.as_ptr().wrapping_offset(start[1]), c.at(start[2]));
        // SAFETY: `check_matrix_bounds` has shown that all elements of `a`, `b` and `c` are inside their buffers; only this product writes
        // its part of `c`.
        unsafe {
            gemm::gemm(
                p.m,
                p.n,
                p.k,
                pc,
                p.c[1],
                p.c[0],
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
    };
    let count = batch.len();
    if count > 1 && flops < 1 << 22 {
        // Several small products run in parallel, each on one thread.
        let per_task = ((1 << 18) / flops.max(1)).max(1);
        threads::for_each(
            (0..count).step_by(per_task),
            flops.saturating_mul(count),
            || (),
            |_, first| (first..count.min(first + per_task)).for_each(|n| run(batch.matrix_offsets(n), gemm::Parallelism::None)),
        );
    } else {
        for n in 0..count {
            threads::run_in_pool(flops, |n_threads| {
                run(batch.matrix_offsets(n), if n_threads > 1 { gemm::Parallelism::Rayon(n_threads) } else { gemm::Parallelism::None })
            });
        }
    }
}
