//! Sorting network for many short rows: each SIMD lane sorts a different row with the same comparisons.

use cuprum_cpu_base::simd::SimdLoop;

use crate::sort_record::SortRecord;

/// Number of rows that one network sorts together, one per lane.
pub(super) const ROWS_PER_NETWORK: usize = 16;

/// Sorts each column by Batcher's odd-even merge sort (K. E. Batcher, "Sorting networks and their applications", AFIPS 1968). Handles
/// any length, as in Knuth, TAOCP 3, 5.2.2, algorithm M.
pub(super) struct SortColumnsLoop<'a, R>(pub &'a mut [[R; ROWS_PER_NETWORK]]);

impl<R: SortRecord> SimdLoop for SortColumnsLoop<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let rows = self.0;
        let len = rows.len();
        let mut merged = 1;
        while merged < len {
            let mut apart = merged;
            while apart > 0 {
                for start in (apart % merged..len - apart).step_by(2 * apart) {
                    for low in start..(start + apart).min(len - apart) {
                        if low / (2 * merged) == (low + apart) / (2 * merged) {
                            let (above, below) = rows.split_at_mut(low + apart);
                            compare_exchange(&mut above[low], &mut below[0]);
                        }
                    }
                }
                apart /= 2;
            }
            merged *= 2;
        }
    }
}

/// Compare-exchange in each lane: the lesser record goes to `a`, the greater one to `b`.
#[inline(always)]
fn compare_exchange<R: SortRecord>(a: &mut [R; ROWS_PER_NETWORK], b: &mut [R; ROWS_PER_NETWORK]) {
    let (first, second) = (*a, *b);
    for lane in 0..ROWS_PER_NETWORK {
        a[lane] = first[lane].min(second[lane]);
        b[lane] = first[lane].max(second[lane]);
    }
}
