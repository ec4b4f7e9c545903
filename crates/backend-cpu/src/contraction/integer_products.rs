//! Matrix products of integers (wrapping) and bool. Blocks of the operands are packed into scratch of constant size. A block of the result
//! stays in registers while products are added to it, along a block of the summed axis k.
#![allow(unsafe_code)]

use cuprum_core::Element;
use cuprum_cpu_base::simd::{SimdLoop, dispatch_simd};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut};

use super::float_products::SharedOutputPointer;
use super::product_batch::{MatrixProductLayout, ProductBatch};

/// Number of rows of a register block of the result.
const REGISTER_BLOCK_ROWS: usize = 2;
/// Maximum length of a block along the summed axis (k).
const MAX_BLOCK_LEN_ALONG_K: usize = 256;
/// Number of columns of a packed block of `b`. A block with [`MAX_BLOCK_LEN_ALONG_K`] rows of 8-byte elements takes half a megabyte, which
/// fits the second-level cache.
const PACKED_BLOCK_COLUMNS: usize = 256;
/// Number of columns of a register block of a narrow result (one with few columns).
const NARROW_REGISTER_BLOCK_COLUMNS: usize = 16;
/// Number of result rows per task. Blocks of `b` are packed once per task.
const ROWS_PER_TASK: usize = 128;
/// Number of result rows per task if tasks of [`ROWS_PER_TASK`] rows would leave threads idle.
const ROWS_PER_SMALL_TASK: usize = 32;
/// Minimum number of multiplications per task.
const MIN_PRODUCTS_PER_TASK: usize = 1 << 16;

/// Element types of exact matrix products: integers and bool.
pub(super) trait IntegerElement: Element {
    /// Type of operands and sums in registers. 8-bit integers are multiplied as 16-bit integers, because no SIMD level multiplies bytes.
    type Wide: Copy + Default + Send;
    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn multiply(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Calls [`multiply_integer_batch`] with a register block as wide as suits this type. At this width, LLVM vectorises the loop over the
    /// columns instead of unrolling it.
    fn multiply_integer_batch(p: &MatrixProductLayout, batch: &ProductBatch, a: &[Self], b: &[Self], c: &mut [Self]);
}
macro_rules! exact {
    ($columns:literal: $($t:ty as $wide:ty)*) => {$( impl IntegerElement for $t {
        type Wide = $wide;
        #[inline(always)]
        fn widen(self) -> $wide { self as $wide }
        #[inline(always)]
        fn narrow(wide: $wide) -> $t { wide as $t }
        #[inline(always)]
        fn add(a: $wide, b: $wide) -> $wide { a.wrapping_add(b) }
        #[inline(always)]
        fn multiply(a: $wide, b: $wide) -> $wide { a.wrapping_mul(b) }
        fn multiply_integer_batch(p: &MatrixProductLayout, batch: &ProductBatch, a: &[$t], b: &[$t], c: &mut [$t]) {
            if p.n <= NARROW_REGISTER_BLOCK_COLUMNS { multiply_integer_batch::<$t, NARROW_REGISTER_BLOCK_COLUMNS>(p, batch, a, b, c) } else { multiply_integer_batch::<$t, $columns>(p, batch, a, b, c) }
        }
    } )*};
}
exact!(128: u8 as u16 u16 as u16);
exact!(64: u32 as u32 u64 as u64);
impl IntegerElement for bool {
    type Wide = u8;
    #[inline(always)]
    fn widen(self) -> u8 {
        self as u8
    }
    #[inline(always)]
    fn narrow(wide: u8) -> bool {
        wide != 0
    }
    #[inline(always)]
    fn add(a: u8, b: u8) -> u8 {
        a | b
    }
    #[inline(always)]
    fn multiply(a: u8, b: u8) -> u8 {
        a & b
    }
    fn multiply_integer_batch(p: &MatrixProductLayout, batch: &ProductBatch, a: &[bool], b: &[bool], c: &mut [bool]) {
        multiply_integer_batch::<bool, 128>(p, batch, a, b, c)
    }
}

/// Computes a register block of the result: [`REGISTER_BLOCK_ROWS`] packed rows of `a` times a packed panel of `b`, both along a block of
/// k.
struct RegisterBlockLoop<'a, T: IntegerElement, const N: usize>(&'a [[T::Wide; REGISTER_BLOCK_ROWS]], &'a [[T::Wide; N]]);

impl<T: IntegerElement, const N: usize> SimdLoop for RegisterBlockLoop<'_, T, N> {
    type Output = [[T::Wide; N]; REGISTER_BLOCK_ROWS];
    #[inline(always)]
    fn run(self) -> [[T::Wide; N]; REGISTER_BLOCK_ROWS] {
        let mut acc = [[T::Wide::default(); N]; REGISTER_BLOCK_ROWS];
        for (a, b) in self.0.iter().zip(self.1) {
            for i in 0..REGISTER_BLOCK_ROWS {
                for j in 0..N {
                    acc[i][j] = T::add(acc[i][j], T::multiply(a[i], b[j]));
                }
            }
        }
        acc
    }
}

/// Computes all products of the batch `batch`, which has passed [`check_matrix_bounds`](super::product_batch::check_matrix_bounds).
pub(super) fn multiply_integers<T: IntegerElement>(
    p: &MatrixProductLayout,
    batch: &ProductBatch,
    a: Elements,
    b: Elements,
    c: ElementsMut,
) {
    T::multiply_integer_batch(p, batch, a.typed_slice(), b.typed_slice(), c.typed_slice());
}

fn multiply_integer_batch<T: IntegerElement, const N: usize>(p: &MatrixProductLayout, batch: &ProductBatch, a: &[T], b: &[T], c: &mut [T]) {
    let c = SharedOutputPointer(c.as_mut_ptr());
    let across = p.n.div_ceil(PACKED_BLOCK_COLUMNS);
    let tasks = |band: usize| batch.len().saturating_mul(p.m.div_ceil(band)).saturating_mul(across);
    let band = if tasks(ROWS_PER_TASK) < 4 * threads::max_threads() { ROWS_PER_SMALL_TASK } else { ROWS_PER_TASK };
    let down = p.m.div_ceil(band);
    let each = p.m.min(band).saturating_mul(p.n.min(PACKED_BLOCK_COLUMNS)).saturating_mul(p.k.max(1));
    let together = (MIN_PRODUCTS_PER_TASK / each.max(1)).max(1);
    let all = tasks(band);
    threads::for_each((0..all).step_by(together), all.saturating_mul(each), PackedBlocks::<T, N>::new, |scratch, first| {
        for task in first..all.min(first + together) {
            let (product, task) = (task / (down * across), task % (down * across));
            let (top, left) = (task / across * band, task % across * PACKED_BLOCK_COLUMNS);
            let part = ProductTask {
                rows: top..p.m.min(top + band),
                columns: left..p.n.min(left + PACKED_BLOCK_COLUMNS),
                start: batch.matrix_offsets(product),
            };
            part.compute_products(p, a, b, c, scratch);
        }
    });
}

/// The rows and columns of one product that a task computes.
struct ProductTask {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    /// Offsets of the product's matrices ([`ProductBatch::matrix_offsets`]).
    start: [isize; 3],
}

/// The operand blocks that a task has packed: at most [`MAX_BLOCK_LEN_ALONG_K`] x [`REGISTER_BLOCK_ROWS`] elements of `a`, and
/// [`MAX_BLOCK_LEN_ALONG_K`] x [`PACKED_BLOCK_COLUMNS`] elements of `b`.
struct PackedBlocks<T: IntegerElement, const N: usize> {
    rows: Vec<[T::Wide; REGISTER_BLOCK_ROWS]>,
    panels: Vec<[T::Wide; N]>,
}

impl<T: IntegerElement, const N: usize> PackedBlocks<T, N> {
    fn new() -> Self {
        PackedBlocks { rows: Vec::new(), panels: Vec::new() }
    }
}

impl ProductTask {
    fn compute_products<T: IntegerElement, const N: usize>(
        &self,
        p: &MatrixProductLayout,
        a: &[T],
        b: &[T],
        c: SharedOutputPointer<T>,
        scratch: &mut PackedBlocks<T, N>,
    ) {
        let at =
            |operand: usize, steps: [isize; 2], i: usize, j: usize| self.start[operand] + i as isize * steps[0] + j as isize * steps[1];
        // The loop runs once even if `k` is 0, so that the empty sums are written.
        for first in (0..p.k.max(1)).step_by(MAX_BLOCK_LEN_ALONG_K) {
            let depth = MAX_BLOCK_LEN_ALONG_K.min(p.k - first.min(p.k));
            scratch.panels.clear();
            for left in self.columns.clone().step_by(N) {
                let width = N.min(self.columns.end - left);
                for l in first..first + depth {
                    let mut line = [T::Wide::default(); N];
                    let from = at(1, p.b, l, left);
                    match p.b[1] {
                        1 => line.iter_mut().zip(&b[from as usize..from as usize + width]).for_each(|(to, v)| *to = v.widen()),
                        step => (0..width).for_each(|j| line[j] = b[(from + j as isize * step) as usize].widen()),
                    }
                    scratch.panels.push(line);
                }
            }
            for top in self.rows.clone().step_by(REGISTER_BLOCK_ROWS) {
                let height = REGISTER_BLOCK_ROWS.min(self.rows.end - top);
                scratch.rows.clear();
                scratch.rows.resize(depth, [T::Wide::default(); REGISTER_BLOCK_ROWS]);
                for i in 0..height {
                    let from = at(0, p.a, top + i, first);
                    for (l, row) in scratch.rows.iter_mut().enumerate() {
                        row[i] = a[(from + l as isize * p.a[1]) as usize].widen();
                    }
                }
                for (n, left) in self.columns.clone().step_by(N).enumerate() {
                    let block = dispatch_simd(RegisterBlockLoop::<T, N>(&scratch.rows, &scratch.panels[n * depth..(n + 1) * depth]));
                    for (i, row) in block.iter().enumerate().take(height) {
                        for (j, &sum) in row.iter().enumerate().take(self.columns.end - left) {
                            let place = c.at(at(2, p.c, top + i, left + j));
                            // SAFETY: `check_matrix_bounds` has shown that the element is inside the output `c`, and no other task writes
                            // it. `typed_slice` has ensured that its bytes are a valid T.
                            unsafe { *place = T::narrow(if first == 0 { sum } else { T::add((*place).widen(), sum) }) };
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_cpu_base::threads::with_threads;

    fn wrapping(p: &MatrixProductLayout, a: &[u8], b: &[u8]) -> Vec<u8> {
        let dot = |i: usize, j: usize| (0..p.k).fold(0u8, |sum, l| sum.wrapping_add(a[i * p.k + l].wrapping_mul(b[l * p.n + j])));
        (0..p.m).flat_map(|i| (0..p.n).map(move |j| (i, j))).map(|(i, j)| dot(i, j)).collect()
    }

    #[test]
    fn blocks_of_every_size_agree_with_the_definition() {
        let sizes: &[(usize, usize, usize)] = if cfg!(miri) {
            &[(5, 3, 7)]
        } else {
            &[(1, 1, 1), (5, 3, 7), (4, 33, 256), (131, 259, 3), (9, 300, 515), (3, 16, 300), (2, 17, 9), (3, 2, 0)]
        };
        for &(m, n, k) in sizes {
            let p = MatrixProductLayout { m, n, k, a: [k as isize, 1], b: [n as isize, 1], c: [n as isize, 1] };
            let values = |count: usize, step: usize| -> Vec<u8> { (0..count).map(|i| (i * step % 251) as u8).collect() };
            let (a, b) = (values(m * k, 7), values(k * n, 11));
            for threads in [1, 3] {
                let mut c = vec![1u8; m * n];
                let run = || multiply_integers::<u8>(&p, &ProductBatch::one(), Elements::of(&a), Elements::of(&b), ElementsMut::of(&mut c));
                with_threads(threads, run).unwrap();
                assert_eq!(c, wrapping(&p, &a, &b), "{m} {n} {k}");
            }
        }
    }
}
