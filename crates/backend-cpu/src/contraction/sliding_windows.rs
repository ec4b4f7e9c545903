//! Products of all windows of a signal with a vector, as in a convolution: a matrix whose rows overlap, each shifted by one element.
//!
//! A block of results stays in registers while the vector is read, so no window is copied.

use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::threads;

use crate::reduce::Arithmetic;
use crate::reducers::pairwise_tree::PairwiseTree;

/// Number of bytes of results that are computed together.
const RESULT_BLOCK_BYTES: usize = 256;
/// Number of results per task.
const RESULTS_PER_TASK: usize = 1 << 13;
/// Number of products that are added sequentially before the pairwise summation begins.
const PRODUCTS_PER_LEAF: usize = 128;

/// Writes to `out[n]` the sum of the products of `vector` with the elements of `signal` from `n` on.
pub(super) fn multiply_sliding_windows<T: Arithmetic>(signal: &[T], vector: &[T], out: &mut [T]) {
    let cost = out.len().saturating_mul(vector.len());
    threads::for_each(
        out.chunks_mut(RESULTS_PER_TASK).enumerate(),
        cost,
        || (),
        |_, (task, out)| dispatch_simd(SlidingWindowsLoop { signal: &signal[task * RESULTS_PER_TASK..], vector, out }),
    );
}

struct SlidingWindowsLoop<'a, T> {
    signal: &'a [T],
    vector: &'a [T],
    out: &'a mut [T],
}

impl<T: Arithmetic> SimdLoop for SlidingWindowsLoop<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        match size_of::<T>() {
            4 => self.compute_in_blocks::<{ RESULT_BLOCK_BYTES / 4 }>(),
            _ => self.compute_in_blocks::<{ RESULT_BLOCK_BYTES / 8 }>(),
        }
    }
}

impl<T: Arithmetic> SlidingWindowsLoop<'_, T> {
    #[inline(always)]
    fn compute_in_blocks<const N: usize>(self) {
        let SlidingWindowsLoop { signal, vector, out } = self;
        let (blocks, rest) = out.as_chunks_mut::<N>();
        for (n, block) in blocks.iter_mut().enumerate() {
            *block = dot_first_windows::<T, N>(&signal[n * N..], vector);
        }
        let first = blocks.len() * N;
        for (n, out) in rest.iter_mut().enumerate() {
            [*out] = dot_first_windows::<T, 1>(&signal[first + n..], vector);
        }
    }
}

/// Returns the results of the first `N` windows of `signal`. The order of additions depends on the length of `vector` alone.
#[inline(always)]
fn dot_first_windows<T: Arithmetic, const N: usize>(signal: &[T], vector: &[T]) -> [T; N] {
    if vector.len() <= PRODUCTS_PER_LEAF {
        return add_arrays(sum_leaf_products(&signal[..vector.len() + N - 1], vector), [T::ZERO; N]);
    }
    let mut tree = PairwiseTree::new();
    for (leaf, factors) in vector.chunks(PRODUCTS_PER_LEAF).enumerate() {
        let signal = &signal[leaf * PRODUCTS_PER_LEAF..][..factors.len() + N - 1];
        tree.push_leaf(sum_leaf_products(signal, factors), add_arrays);
    }
    // Adding 0.0 turns a sum of -0.0 into 0.0, as in NumPy.
    add_arrays(tree.take_result(add_arrays).unwrap_or([T::ZERO; N]), [T::ZERO; N])
}

#[inline(always)]
fn sum_leaf_products<T: Arithmetic, const N: usize>(signal: &[T], factors: &[T]) -> [T; N] {
    let mut sums = [T::SUM_IDENTITY; N];
    for (window, &factor) in signal.windows(N).zip(factors) {
        if let Some(window) = window.first_chunk::<N>() {
            for i in 0..N {
                sums[i] = sums[i].plus(window[i].times(factor));
            }
        }
    }
    sums
}

#[inline(always)]
fn add_arrays<T: Arithmetic, const N: usize>(mut a: [T; N], b: [T; N]) -> [T; N] {
    for i in 0..N {
        a[i] = a[i].plus(b[i]);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_equal_those_of_a_plain_loop() {
        let signal: Vec<f64> = (0..20_000).map(|i| ((i * 7919) % 1009) as f64 - 500.0).collect();
        for taps in [1, 2, 3, 31, 128, 129, 1000] {
            let vector: Vec<f64> = (0..taps).map(|i| ((i * 31) % 17) as f64 - 8.0).collect();
            for count in [1, 5, 64, 100, RESULTS_PER_TASK + 33, signal.len() + 1 - taps] {
                let mut out = vec![0.0; count.min(signal.len() + 1 - taps)];
                multiply_sliding_windows(&signal, &vector, &mut out);
                let expected = |n: usize| -> f64 { vector.iter().zip(&signal[n..]).map(|(a, b)| a * b).sum() };
                assert!(out.iter().enumerate().all(|(n, &x)| x == expected(n)), "{taps} products, {count} results");
            }
        }
    }
}
