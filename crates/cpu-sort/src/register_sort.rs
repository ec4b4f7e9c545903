//! Quicksort of keys in SIMD registers, which the module `simd_registers` implements.
//!
//! A sorting network sorts as many keys as a few registers hold. More keys are partitioned around a pivot, one register at a time. The
//! lower keys are packed in place and the others into a scratch buffer, so that no key is moved back.
//!
//! No input takes quadratic time: pivots are medians of up to nine registers, and equal keys are split off at once. Beyond a recursion
//! limit the standard library's sort takes over.
//!
//! After B. Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake" (2017), and M. Blacher,
//! J. Giesen, P. Sanders, J. Wassenberg, "Vectorized and performance-portable quicksort" (2022).
#![allow(unsafe_code)]

use cuprum_cpu_base::simd::{SimdLevel, simd_level};
use smallvec::SmallVec;

use crate::sort_key::UnsignedKey;

/// Maximum length of rows that are sorted in SIMD registers. In development builds, which compile each intrinsic to a call, other sorts are
/// faster for longer rows.
const MAX_LEN_IN_REGISTERS: usize = if cfg!(debug_assertions) { 1 << 10 } else { usize::MAX };
/// Maximum number of lanes in a register.
pub(super) const MAX_LANES: usize = 16;
/// Minimum number of keys for a pivot from nine registers; fewer keys use three.
const MIN_LEN_FOR_NINE_REGISTER_PIVOT: usize = 1024;
/// Number of registers that one iteration of the main loop of [`partition_keys`] handles.
const REGISTERS_PER_PARTITION_STEP: usize = 4;

/// A SIMD register type for keys and its operations. A value of the implementing type exists only if the processor supports the
/// instructions. All methods must be inlined into functions that enable those instructions.
pub(super) trait SimdRegisters: Copy {
    /// Type of one key.
    type Key: UnsignedKey;
    /// Type of a register of keys.
    type Keys: Copy;
    /// Number of keys per register.
    const LANES: usize;
    /// Number of registers that the sorting network sorts: 8 or 16.
    const NETWORK_REGISTERS: usize;
    /// Returns a register with `key` in all lanes.
    fn splat(self, key: Self::Key) -> Self::Keys;
    /// Loads the first keys of `from` into a register. Lanes beyond the slice get a key with all bits set.
    fn load(self, from: &[Self::Key]) -> Self::Keys;
    /// Stores as many keys of the register as `to` holds.
    fn store(self, keys: Self::Keys, to: &mut [Self::Key]);
    /// Returns the lane-wise minimum.
    fn min(self, a: Self::Keys, b: Self::Keys) -> Self::Keys;
    /// Returns the lane-wise maximum.
    fn max(self, a: Self::Keys, b: Self::Keys) -> Self::Keys;
    /// Returns `keys` with the key of lane `i ^ mask` in lane `i`.
    fn shuffle_xor(self, keys: Self::Keys, mask: usize) -> Self::Keys;
    /// Compare-exchanges lanes `i` and `i ^ mask`: the lower lane gets the minimum, the other one the maximum.
    fn compare_exchange(self, keys: Self::Keys, mask: usize) -> Self::Keys;
    /// Partitions a register: returns the keys below the pivot, their number, and the other keys. Both sets are packed in their original
    /// order.
    fn partition_register(self, keys: Self::Keys, pivot: Self::Keys) -> (Self::Keys, usize, Self::Keys);
    /// Loads a whole register from `from`.
    ///
    /// # Safety
    /// `from` points to [`SimdRegisters::LANES`] keys.
    unsafe fn load_register(self, from: *const Self::Key) -> Self::Keys;
    /// Stores a whole register to `to`.
    ///
    /// # Safety
    /// `to` is valid for [`SimdRegisters::LANES`] keys.
    unsafe fn store_register(self, keys: Self::Keys, to: *mut Self::Key);
}

/// Repeats a block of code for each register number `$row` below `$rows` (at most 16). The code is unrolled, so that an array of registers
/// stays in registers.
macro_rules! each {
    ($row:ident in $rows:ident $body:block) => { each! { $row in $rows $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 } };
    ($row:ident in $rows:ident $body:block $($n:literal)*) => {
        $(if $n < $rows {
            // `% $rows` keeps the register number in bounds, also in the branches that are never taken because `$n < $rows` is false.
            let $row = $n % $rows;
            $body
        })*
    };
}

/// Sorts up to `lanes * R` keys by a network and writes them to `keys`. The unsorted keys are in `scratch`, or in `keys` if `scratch` is
/// `None`.
#[inline(always)]
fn sort_registers_in_network<S: SimdRegisters, const R: usize>(simd: S, lanes: usize, keys: &mut [S::Key], scratch: Option<&[S::Key]>) {
    let mut rows = [simd.splat(S::Key::ALL_ONES); R];
    let from = scratch.unwrap_or(keys);
    each! { row in R {
        rows[row] = simd.load(&from[(row * S::LANES).min(from.len())..]);
    }}
    sort_columns(simd, &mut rows);
    merge_columns(simd, &mut rows, lanes);
    each! { row in R {
        let start = (row * S::LANES).min(keys.len());
        simd.store(rows[row], &mut keys[start..]);
    }}
}

macro_rules! exchanges {
    ($simd:ident, $rows:ident, $size:ident: $($a:literal $b:literal),*) => {
        $(if $b < $size {
            let (a, b) = ($rows[$a % $size], $rows[$b % $size]);
            $rows[$a % $size] = $simd.min(a, b);
            $rows[$b % $size] = $simd.max(a, b);
        })*
    };
}

/// Sorts each lane across the registers `rows` by M. W. Green's network of 60 exchanges (Knuth, TAOCP 3, 5.3.4), truncated to the number
/// of registers.
#[inline(always)]
fn sort_columns<S: SimdRegisters, const R: usize>(simd: S, rows: &mut [S::Keys; R]) {
    exchanges! { simd, rows, R:
        0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15,
        0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15,
        0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15,
        0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15,
        5 10, 6 9, 3 12, 13 14, 4 8, 7 11, 1 2,
        1 4, 7 13, 2 8, 11 14,
        2 4, 5 6, 9 10, 11 13, 3 8, 7 12,
        6 8, 10 12, 3 5, 7 9,
        3 4, 5 6, 7 8, 9 10, 11 12,
        6 7, 8 9
    }
}

/// Merges sorted lanes pairwise until the keys of each group of `lanes` lanes are sorted. Within a group, the sorted order goes register by
/// register.
#[inline(always)]
fn merge_columns<S: SimdRegisters, const R: usize>(simd: S, rows: &mut [S::Keys; R], lanes: usize) {
    merge_sequences(simd, rows, 2);
    if lanes >= 4 {
        merge_sequences(simd, rows, 4);
    }
    if lanes >= 8 {
        merge_sequences(simd, rows, 8);
    }
    if lanes >= 16 {
        merge_sequences(simd, rows, 16);
    }
}

/// Merges pairs of neighbouring sorted sequences, each `lanes / 2` lanes wide, into sequences `lanes` lanes wide. This is K. E. Batcher's
/// bitonic merge with the second sequence reversed, which leaves the lanes of some registers in reverse order. The first exchange within a
/// register pairs each lane with its mirror image, so this exchange gives the same result for both lane orders. All lanes end in ascending
/// order.
#[inline(always)]
fn merge_sequences<S: SimdRegisters, const R: usize>(simd: S, rows: &mut [S::Keys; R], lanes: usize) {
    compare_exchange_halves(simd, rows, 16, lanes);
    compare_exchange_halves(simd, rows, 8, lanes);
    compare_exchange_halves(simd, rows, 4, lanes);
    compare_exchange_halves(simd, rows, 2, lanes);
    each! { i in R {
        let mut row = simd.compare_exchange(rows[i], lanes - 1);
        if lanes >= 16 {
            row = simd.compare_exchange(row, 4);
        }
        if lanes >= 8 {
            row = simd.compare_exchange(row, 2);
        }
        if lanes >= 4 {
            row = simd.compare_exchange(row, 1);
        }
        rows[i] = row;
    }}
}

/// Divides the registers `rows` into groups of `height`. In each group, compare-exchanges the first half with the mirror image of the
/// second half: both the order of its registers and the order within each `lanes` lanes are reversed.
///
/// Does nothing if `height` exceeds the number of registers.
#[inline(always)]
fn compare_exchange_halves<S: SimdRegisters, const R: usize>(simd: S, rows: &mut [S::Keys; R], height: usize, lanes: usize) {
    if height > R {
        return;
    }
    for first in 0..R / height {
        for i in 0..height / 2 {
            let (a, b) = (first * height + i, first * height + height - 1 - i);
            let (upper, lower) = (rows[a], simd.shuffle_xor(rows[b], lanes - 1));
            rows[a] = simd.min(upper, lower);
            rows[b] = simd.max(upper, lower);
        }
    }
}

/// Sorts up to [`SimdRegisters::NETWORK_REGISTERS`] registers of keys by a sorting network into `keys`. The unsorted keys are in `scratch`,
/// or in `keys` if `scratch` is `None`.
#[inline(always)]
fn sort_by_network<S: SimdRegisters>(simd: S, keys: &mut [S::Key], scratch: Option<&[S::Key]>) {
    match keys.len().div_ceil(S::LANES) {
        0 | 1 => sort_registers_in_network::<S, 1>(simd, S::LANES, keys, scratch),
        2 => sort_registers_in_network::<S, 2>(simd, S::LANES, keys, scratch),
        3 | 4 => sort_registers_in_network::<S, 4>(simd, S::LANES, keys, scratch),
        5..=8 => sort_registers_in_network::<S, 8>(simd, S::LANES, keys, scratch),
        _ => sort_registers_in_network::<S, 16>(simd, S::LANES, keys, scratch),
    }
}

/// Returns a key near the median: the median of the medians of three or nine registers. `keys` must be longer than eight registers.
#[inline(always)]
fn choose_pivot<S: SimdRegisters>(simd: S, keys: &[S::Key]) -> S::Key {
    let step = keys.len().saturating_sub(S::LANES) / 8;
    let mut medians = lanewise_median_at(simd, keys, 0, 4 * step);
    if keys.len() >= MIN_LEN_FOR_NINE_REGISTER_PIVOT {
        let (first, last) = (lanewise_median_at(simd, keys, step, step), lanewise_median_at(simd, keys, 5 * step, step));
        medians = median_of_3(simd, first, medians, last);
    }
    let mut rows = [medians];
    merge_columns(simd, &mut rows, S::LANES);
    let mut sorted = [S::Key::default(); MAX_LANES];
    simd.store(rows[0], &mut sorted);
    sorted[S::LANES / 2]
}

/// Returns the lane-wise median of three registers, loaded `step` keys apart from index `start` on.
#[inline(always)]
fn lanewise_median_at<S: SimdRegisters>(simd: S, keys: &[S::Key], start: usize, step: usize) -> S::Keys {
    median_of_3(simd, simd.load(&keys[start..]), simd.load(&keys[start + step..]), simd.load(&keys[start + 2 * step..]))
}

/// Returns the lane-wise median of three registers.
#[inline(always)]
fn median_of_3<S: SimdRegisters>(simd: S, a: S::Keys, b: S::Keys, c: S::Keys) -> S::Keys {
    simd.max(simd.min(a, b), simd.min(simd.max(a, b), c))
}

/// Partitions keys around a pivot: lower keys go to the front of `keys`, others to the front of `scratch`, which is equally long. The
/// unsorted keys are in `keys` if `in_keys`, otherwise in `scratch`. Lower keys and other keys keep their original order. Returns the
/// number of lower keys.
#[inline(always)]
fn partition_keys<S: SimdRegisters>(simd: S, keys: &mut [S::Key], scratch: &mut [S::Key], in_keys: bool, pivot: S::Key) -> usize {
    let len = keys.len().min(scratch.len());
    let (lower, upper) = (keys.as_mut_ptr(), scratch.as_mut_ptr());
    let from = if in_keys { lower } else { upper }.cast_const();
    let pivot = simd.splat(pivot);
    let (mut done, mut below) = (0, 0);
    while len - done >= REGISTERS_PER_PARTITION_STEP * S::LANES {
        // SAFETY: each side has received at most `done` keys. A whole register written to it therefore ends at or before the end of the
        // registers that have been read, which is at most `len`. No unread key is overwritten.
        unsafe {
            let mut steps = [pivot; REGISTERS_PER_PARTITION_STEP];
            for (step, keys) in steps.iter_mut().enumerate() {
                *keys = simd.load_register(from.add(done + step * S::LANES));
            }
            for &keys in &steps {
                let (low, count, high) = simd.partition_register(keys, pivot);
                simd.store_register(low, lower.add(below));
                simd.store_register(high, upper.add(done - below));
                (below, done) = (below + count, done + S::LANES);
            }
        }
    }
    while done < len {
        let left = S::LANES.min(len - done);
        // SAFETY: the `left` keys from `done` on are inside the source. Each side has received at most `done` keys, so the stores end
        // before index `done + left` of either side. Lanes beyond the `left` keys have all bits set and come last.
        unsafe {
            let (low, count, high) = simd.partition_register(simd.load(std::slice::from_raw_parts(from.add(done), left)), pivot);
            simd.store(low, std::slice::from_raw_parts_mut(lower.add(below), count));
            simd.store(high, std::slice::from_raw_parts_mut(upper.add(done - below), left - count));
            (below, done) = (below + count, done + left);
        }
    }
    below
}

/// A range of keys that is not yet sorted.
struct UnsortedRange<'a, K> {
    /// Destination of the sorted keys.
    keys: &'a mut [K],
    /// Scratch buffer of the same length as `keys`.
    scratch: &'a mut [K],
    /// Whether the unsorted keys are in `keys`. If false, they are in `scratch`.
    in_keys: bool,
    /// Lower bound of the keys in the range.
    least: K,
    /// Number of further partitions before the fallback to the standard library's sort.
    depth: u32,
}

impl<'a, K: UnsignedKey> UnsortedRange<'a, K> {
    #[inline(always)]
    fn from_unsorted_keys(keys: &'a mut [K], scratch: &'a mut [K]) -> UnsortedRange<'a, K> {
        let depth = 2 * usize::BITS - 2 * keys.len().leading_zeros();
        UnsortedRange { keys, scratch, in_keys: true, least: K::default(), depth }
    }

    /// Returns whether the range may be split again: the recursion limit is not reached, and the keys of the range may differ.
    #[inline(always)]
    fn can_split(&self) -> bool {
        self.depth > 0 && self.least < K::ALL_ONES
    }

    /// Partitions the range at a pivot into a lower and an upper part. The lower part is `None` if all keys in it are equal, and so already
    /// sorted.
    #[inline(always)]
    fn partition_at_pivot<S: SimdRegisters<Key = K>>(self, simd: S) -> (Option<UnsortedRange<'a, K>>, UnsortedRange<'a, K>) {
        let UnsortedRange { keys, scratch, in_keys, least, depth } = self;
        let pivot = choose_pivot(simd, if in_keys { keys } else { scratch });
        // If no key is below the pivot, the pivot is the least key of the range. The lower part then gets the keys equal to the pivot.
        let lower_is_equal = pivot == least;
        let least_above = if lower_is_equal { K::from_u64(pivot.to_u64() + 1) } else { pivot };
        let below = partition_keys(simd, keys, scratch, in_keys, least_above);
        let (keys, upper_keys) = keys.split_at_mut(below);
        let (upper_scratch, scratch) = scratch.split_at_mut(upper_keys.len());
        let depth = depth - 1;
        let lower = UnsortedRange { keys, scratch, in_keys: true, least, depth };
        (
            if lower_is_equal { None } else { Some(lower) },
            UnsortedRange { keys: upper_keys, scratch: upper_scratch, in_keys: false, least: least_above, depth },
        )
    }

    /// Moves the keys to `keys` if they are in `scratch`, and returns them.
    #[inline(always)]
    fn into_keys(self) -> &'a mut [K] {
        if !self.in_keys {
            self.keys.copy_from_slice(self.scratch);
        }
        self.keys
    }
}

/// Sorts `keys`. If the network cannot hold all keys, `scratch` must be equally long.
#[inline(always)]
fn sort<S: SimdRegisters>(simd: S, keys: &mut [S::Key], scratch: &mut [S::Key]) {
    sort_range(simd, UnsortedRange::from_unsorted_keys(keys, scratch))
}

/// Sorts the range `part` into its destination.
#[inline(always)]
fn sort_range<S: SimdRegisters>(simd: S, part: UnsortedRange<S::Key>) {
    let network = S::NETWORK_REGISTERS * S::LANES;
    let mut waiting: SmallVec<[UnsortedRange<S::Key>; 24]> = SmallVec::new();
    let mut next = Some(part);
    while let Some(part) = next {
        next = if part.keys.len() <= network {
            sort_by_network(simd, part.keys, if part.in_keys { None } else { Some(part.scratch) });
            waiting.pop()
        } else if part.can_split() {
            let (lower, upper) = part.partition_at_pivot(simd);
            match lower {
                None => Some(upper),
                Some(lower) => {
                    waiting.push(upper);
                    Some(lower)
                }
            }
        } else {
            part.into_keys().sort_unstable();
            waiting.pop()
        };
    }
}

/// Sorts each row of `len` keys; implements [`SortRowsLoop`].
#[inline(always)]
fn sort_rows<S: SimdRegisters>(simd: S, keys: &mut [S::Key], len: usize, scratch: &mut [S::Key]) {
    if let (true, Some(scratch)) = ((1..S::LANES).contains(&len), scratch.get_mut(..keys.len())) {
        // Rows are sorted from a copy, because loading a row next to one just stored would stall on store forwarding.
        scratch.copy_from_slice(keys);
        for (row, scratch) in keys.chunks_exact_mut(len).zip(scratch.chunks_exact(len)) {
            match len {
                1..=2 => sort_registers_in_network::<S, 1>(simd, 2, row, Some(scratch)),
                3..=4 => sort_registers_in_network::<S, 1>(simd, 4, row, Some(scratch)),
                5..=8 => sort_registers_in_network::<S, 1>(simd, 8, row, Some(scratch)),
                _ => sort_registers_in_network::<S, 1>(simd, S::LANES, row, Some(scratch)),
            }
        }
        return;
    }
    let needed = if len <= S::NETWORK_REGISTERS * S::LANES { 0 } else { len };
    for row in keys.chunks_exact_mut(len.max(1)) {
        match scratch.get_mut(..needed) {
            Some(scratch) => sort(simd, row, scratch),
            None => row.sort_unstable(),
        }
    }
}

/// Moves the key with sorted index `nth` to that index; implements [`SelectNthLoop`].
#[inline(always)]
fn select_nth<S: SimdRegisters>(simd: S, keys: &mut [S::Key], mut nth: usize, scratch: &mut [S::Key]) {
    let network = S::NETWORK_REGISTERS * S::LANES;
    let Some(scratch) = scratch.get_mut(..keys.len()) else { return keys.sort_unstable() };
    let mut part = UnsortedRange::from_unsorted_keys(keys, scratch);
    while part.keys.len() > network && part.can_split() {
        let len = part.keys.len();
        let (lower, upper) = part.partition_at_pivot(simd);
        let below = len - upper.keys.len();
        if nth >= below {
            nth -= below;
            part = upper;
            continue;
        }
        upper.into_keys();
        match lower {
            Some(lower) => part = lower,
            None => return,
        }
    }
    let keys = part.into_keys();
    if keys.len() <= network { sort(simd, keys, &mut []) } else { keys.sort_unstable() }
}

/// A computation on keys that is compiled for each type of SIMD registers. `run_with_registers` must be `#[inline(always)]`.
pub(super) trait RegisterLoop<K> {
    /// Type that `run_with_registers` returns.
    type Output;
    /// Runs the computation with the registers `simd`.
    fn run_with_registers<S: SimdRegisters<Key = K>>(self, simd: S) -> Self::Output;
}

/// A type of sort keys or records. Some types fit SIMD registers, at least at some levels.
pub(super) trait RegisterKey: Sized {
    /// Runs `work` at the lower of two SIMD levels: `level` and the processor's level. Returns `None` if the level has no registers for
    /// keys of type `Self`.
    fn try_run_at_level<W: RegisterLoop<Self>>(level: SimdLevel, work: W) -> Option<W::Output> {
        let _ = (level, work);
        None
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl RegisterKey for u32 {}
#[cfg(not(target_arch = "x86_64"))]
impl RegisterKey for u64 {}

/// The [`RegisterLoop`] of [`max_len_without_scratch`]: returns the number of keys that the sorting network holds.
struct MaxLenWithoutScratchLoop;

impl<K> RegisterLoop<K> for MaxLenWithoutScratchLoop {
    type Output = usize;
    #[inline(always)]
    fn run_with_registers<S: SimdRegisters<Key = K>>(self, _: S) -> usize {
        S::NETWORK_REGISTERS * S::LANES
    }
}

/// Returns the maximum length of a row that is sorted without scratch, or `None` if rows of `len` keys are not sorted in SIMD registers.
pub(super) fn max_len_without_scratch<K: RegisterKey>(len: usize) -> Option<usize> {
    if len > MAX_LEN_IN_REGISTERS { None } else { K::try_run_at_level(simd_level(), MaxLenWithoutScratchLoop) }
}

/// A [`RegisterLoop`] that sorts each row of `len` keys. Rows longer than [`max_len_without_scratch`] need a `scratch` of at least `len`
/// keys; otherwise the standard library sorts them. Rows shorter than a register are sorted faster if `scratch` is as long as `keys`.
pub(super) struct SortRowsLoop<'a, K> {
    pub keys: &'a mut [K],
    pub len: usize,
    pub scratch: &'a mut [K],
}

impl<K> RegisterLoop<K> for SortRowsLoop<'_, K> {
    type Output = ();
    #[inline(always)]
    fn run_with_registers<S: SimdRegisters<Key = K>>(self, simd: S) {
        sort_rows(simd, self.keys, self.len, self.scratch)
    }
}

/// A [`RegisterLoop`] that moves the key with sorted index `nth` to that index. No greater key is before it and no lesser key after it. If
/// `scratch` is shorter than `keys`, all keys are sorted.
pub(super) struct SelectNthLoop<'a, K> {
    pub keys: &'a mut [K],
    pub nth: usize,
    pub scratch: &'a mut [K],
}

impl<K> RegisterLoop<K> for SelectNthLoop<'_, K> {
    type Output = ();
    #[inline(always)]
    fn run_with_registers<S: SimdRegisters<Key = K>>(self, simd: S) {
        select_nth(simd, self.keys, self.nth, self.scratch)
    }
}

#[cfg(test)]
mod tests;
