//! Matrix products of numbers that wrap, and of bool: blocks of the result are held in registers while k goes by.
#![allow(unsafe_code)]

use cuprum_core::Element;

use super::Product;
use super::floats::Shared;
use crate::raw::{Elements, ElementsMut};
use crate::simd::{Loop, dispatch};
use crate::threads;

/// Rows of a block of the result.
const ROWS: usize = 4;
/// Columns of a block of the result: a few registers of each dtype.
const COLUMNS: usize = 32;
/// Rows that one task takes.
const BAND: usize = 8 * ROWS;

/// Numbers that wrap, and bool.
pub(super) trait Exact: Element {
    fn multiply_add(acc: Self, a: Self, b: Self) -> Self;
}
macro_rules! exact {
    ($($t:ty)*) => {$( impl Exact for $t {
        #[inline(always)]
        fn multiply_add(acc: $t, a: $t, b: $t) -> $t { acc.wrapping_add(a.wrapping_mul(b)) }
    } )*};
}
exact!(i8 i16 i32 i64 u8 u16 u32 u64);
impl Exact for bool {
    #[inline(always)]
    fn multiply_add(acc: bool, a: bool, b: bool) -> bool {
        acc | (a & b)
    }
}

/// One block: rows of a (k by k, [`ROWS`] side by side) times a panel of b ([`COLUMNS`] side by side).
struct Block<'a, T>(&'a [[T; ROWS]], &'a [[T; COLUMNS]]);

impl<T: Exact> Loop for Block<'_, T> {
    type Output = [[T; COLUMNS]; ROWS];
    #[inline(always)]
    fn run(self) -> [[T; COLUMNS]; ROWS] {
        let mut acc = [[T::default(); COLUMNS]; ROWS];
        for (a, b) in self.0.iter().zip(self.1) {
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    acc[i][j] = T::multiply_add(acc[i][j], a[i], b[j]);
                }
            }
        }
        acc
    }
}

/// Every product of the batch; all of them have been [`check`](super::check)ed.
pub(super) fn exact<T: Exact>(p: &Product, starts: &[[isize; 3]], a: Elements, b: Elements, c: ElementsMut) {
    let (a, b, c) = (a.typed::<T>(), b.typed::<T>(), Shared(c.typed::<T>().as_mut_ptr()));
    let cost = p.m.saturating_mul(p.n).saturating_mul(p.k);
    for start in starts {
        let at = |operand: usize, steps: [isize; 2], i: usize, j: usize| {
            (start[operand] + i as isize * steps[0] + j as isize * steps[1]) as usize
        };
        let panel = |n: usize| -> Vec<[T; COLUMNS]> {
            let row = |l: usize| std::array::from_fn(|j| if n + j < p.n { b[at(1, p.b, l, n + j)] } else { T::default() });
            (0..p.k).map(row).collect()
        };
        let panels = threads::map((0..p.n.div_ceil(COLUMNS)).map(|n| n * COLUMNS), p.k.saturating_mul(p.n), || (), |_, n| panel(n));
        threads::for_each((0..p.m.div_ceil(BAND)).map(|band| band * BAND), cost, Vec::new, |rows: &mut Vec<[T; ROWS]>, band| {
            for top in (band..p.m.min(band + BAND)).step_by(ROWS) {
                rows.clear();
                let value = |i: usize, l: usize| if top + i < p.m { a[at(0, p.a, top + i, l)] } else { T::default() };
                rows.extend((0..p.k).map(|l| std::array::from_fn(|i| value(i, l))));
                for (n, panel) in panels.iter().enumerate() {
                    let block = dispatch(Block(rows, panel));
                    for (i, row) in block.iter().enumerate().take(p.m - top) {
                        for (j, &v) in row.iter().enumerate().take(p.n - n * COLUMNS) {
                            let place = c.at(at(2, p.c, top + i, n * COLUMNS + j) as isize);
                            // SAFETY: `check` has shown that the element lies inside the output; this task alone has the row.
                            unsafe { *place = v };
                        }
                    }
                }
            }
        });
    }
}
