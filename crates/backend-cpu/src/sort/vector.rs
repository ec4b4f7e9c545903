//! Quicksort of keys in SIMD registers, where there are some for them (`registers`).
//!
//! What fits in a few registers is sorted by a network. More keys are parted around a pivot, a register at a time: the lower ones
//! are packed where they belong, the others into the room beside, so that nothing is moved back. No order of keys takes quadratic
//! time: pivots are medians of up to nine registers, equal keys are parted off at once, and what is parted too often goes to the
//! standard library.
//!
//! After B. Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake" (2017), and M. Blacher,
//! J. Giesen, P. Sanders, J. Wassenberg, "Vectorized and performance-portable quicksort" (2022).
#![allow(unsafe_code)]

use smallvec::SmallVec;

use super::key::Unsigned;
use crate::simd::{Level, level};

/// Longest row that is sorted here: in development builds, where each instruction is a call, others do it faster.
const LONGEST: usize = if cfg!(debug_assertions) { 1 << 10 } else { usize::MAX };
/// Most lanes of a register.
pub(super) const MOST: usize = 16;
/// Keys from which on nine registers are looked at for a pivot, not three.
const MANY: usize = 1024;
/// Registers that are parted without a branch.
const STEPS: usize = 4;

/// Registers of keys. A value of the type shows that the processor has their instructions; all functions must be inlined where
/// these are enabled.
pub(super) trait Simd: Copy {
    /// An element.
    type Key: Unsigned;
    /// A register.
    type Keys: Copy;
    /// Keys of a register.
    const LANES: usize;
    /// Registers that a network sorts: 8 or 16.
    const ROWS: usize;
    /// All lanes the same.
    fn splat(self, key: Self::Key) -> Self::Keys;
    /// The first keys of a slice; missing ones have all bits set.
    fn load(self, from: &[Self::Key]) -> Self::Keys;
    /// As many keys as the slice takes.
    fn store(self, keys: Self::Keys, to: &mut [Self::Key]);
    /// The lesser in each lane.
    fn min(self, a: Self::Keys, b: Self::Keys) -> Self::Keys;
    /// The greater in each lane.
    fn max(self, a: Self::Keys, b: Self::Keys) -> Self::Keys;
    /// Lane `i` from lane `i ^ across`.
    fn cross(self, keys: Self::Keys, across: usize) -> Self::Keys;
    /// The lesser of lanes `i` and `i ^ across` in the first of the two, the greater in the other.
    fn exchange(self, keys: Self::Keys, across: usize) -> Self::Keys;
    /// The keys below a pivot, how many these are, and the others; both from the first lane on and in the order they had.
    fn part(self, keys: Self::Keys, pivot: Self::Keys) -> (Self::Keys, usize, Self::Keys);
    /// A whole register.
    ///
    /// # Safety
    /// There are [`Simd::LANES`] keys.
    unsafe fn load_all(self, from: *const Self::Key) -> Self::Keys;
    /// A whole register.
    ///
    /// # Safety
    /// There is room for [`Simd::LANES`] keys.
    unsafe fn store_all(self, keys: Self::Keys, to: *mut Self::Key);
}

/// Runs a block for each of the first rows, written out: the rows stay in registers.
macro_rules! each {
    ($row:ident in $rows:ident $body:block) => { each! { $row in $rows $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 } };
    ($row:ident in $rows:ident $body:block $($n:literal)*) => {
        $(if $n < $rows {
            // Never beyond the array, also where this is not run.
            let $row = $n % $rows;
            $body
        })*
    };
}

/// Sorts up to `lanes` times `R` keys, which lie in `room` or, without it, in `keys`.
#[inline(always)]
fn network<S: Simd, const R: usize>(simd: S, lanes: usize, keys: &mut [S::Key], room: Option<&[S::Key]>) {
    let mut rows = [simd.splat(S::Key::MAX); R];
    let from = room.unwrap_or(keys);
    each! { row in R {
        rows[row] = simd.load(&from[(row * S::LANES).min(from.len())..]);
    }}
    columns(simd, &mut rows);
    merges(simd, &mut rows, lanes);
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

/// Sorts each lane across the rows: M. W. Green's network of 60 exchanges (Knuth, TAOCP 3, 5.3.4), or as much of it as there are
/// rows.
#[inline(always)]
fn columns<S: Simd, const R: usize>(simd: S, rows: &mut [S::Keys; R]) {
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

/// Merges sorted lanes, two and two of them, until each `lanes` are one sequence, row by row.
#[inline(always)]
fn merges<S: Simd, const R: usize>(simd: S, rows: &mut [S::Keys; R], lanes: usize) {
    merge(simd, rows, 2);
    if lanes >= 4 {
        merge(simd, rows, 4);
    }
    if lanes >= 8 {
        merge(simd, rows, 8);
    }
    if lanes >= 16 {
        merge(simd, rows, 16);
    }
}

/// Merges neighbouring sequences to sequences of `lanes` lanes, row by row: K. E. Batcher's bitonic merge, whose second sequence
/// is read backwards. Registers that end up turned round are put right by the first exchange within them, as it is symmetric.
#[inline(always)]
fn merge<S: Simd, const R: usize>(simd: S, rows: &mut [S::Keys; R], lanes: usize) {
    fold(simd, rows, 16, lanes);
    fold(simd, rows, 8, lanes);
    fold(simd, rows, 4, lanes);
    fold(simd, rows, 2, lanes);
    each! { i in R {
        let mut row = simd.exchange(rows[i], lanes - 1);
        if lanes >= 16 {
            row = simd.exchange(row, 4);
        }
        if lanes >= 8 {
            row = simd.exchange(row, 2);
        }
        if lanes >= 4 {
            row = simd.exchange(row, 1);
        }
        rows[i] = row;
    }}
}

/// Exchanges the first and the second half of each `height` rows.
#[inline(always)]
fn fold<S: Simd, const R: usize>(simd: S, rows: &mut [S::Keys; R], height: usize, lanes: usize) {
    if height > R {
        return;
    }
    for first in 0..R / height {
        for i in 0..height / 2 {
            let (a, b) = (first * height + i, first * height + height - 1 - i);
            let (upper, lower) = (rows[a], simd.cross(rows[b], lanes - 1));
            rows[a] = simd.min(upper, lower);
            rows[b] = simd.max(upper, lower);
        }
    }
}

/// Sorts what a network can: up to [`Simd::ROWS`] registers of keys.
#[inline(always)]
fn short<S: Simd>(simd: S, keys: &mut [S::Key], room: Option<&[S::Key]>) {
    match keys.len().div_ceil(S::LANES) {
        0 | 1 => network::<S, 1>(simd, S::LANES, keys, room),
        2 => network::<S, 2>(simd, S::LANES, keys, room),
        3 | 4 => network::<S, 4>(simd, S::LANES, keys, room),
        5..=8 => network::<S, 8>(simd, S::LANES, keys, room),
        _ => network::<S, 16>(simd, S::LANES, keys, room),
    }
}

/// A key near the median: the median of the medians of three or nine registers' lanes. There are more keys than eight registers hold.
#[inline(always)]
fn pivot<S: Simd>(simd: S, keys: &[S::Key]) -> S::Key {
    let step = keys.len().saturating_sub(S::LANES) / 8;
    let mut medians = median(simd, keys, 0, 4 * step);
    if keys.len() >= MANY {
        let (first, last) = (median(simd, keys, step, step), median(simd, keys, 5 * step, step));
        medians = middle(simd, first, medians, last);
    }
    let mut rows = [medians];
    merges(simd, &mut rows, S::LANES);
    let mut sorted = [S::Key::default(); MOST];
    simd.store(rows[0], &mut sorted);
    sorted[S::LANES / 2]
}

/// The median in each lane of three registers from `start` on.
#[inline(always)]
fn median<S: Simd>(simd: S, keys: &[S::Key], start: usize, step: usize) -> S::Keys {
    middle(simd, simd.load(&keys[start..]), simd.load(&keys[start + step..]), simd.load(&keys[start + 2 * step..]))
}

/// The median in each lane.
#[inline(always)]
fn middle<S: Simd>(simd: S, a: S::Keys, b: S::Keys, c: S::Keys) -> S::Keys {
    simd.max(simd.min(a, b), simd.min(simd.max(a, b), c))
}

/// Packs the keys below a pivot to the front of `keys`, and the others to the front of `room`, which is as long: all those that
/// lie in the one or, where `is_home` is false, in the other. Both keep their order. Returns how many are below.
#[inline(always)]
fn partition<S: Simd>(simd: S, keys: &mut [S::Key], room: &mut [S::Key], is_home: bool, pivot: S::Key) -> usize {
    let len = keys.len().min(room.len());
    let (lower, upper) = (keys.as_mut_ptr(), room.as_mut_ptr());
    let from = if is_home { lower } else { upper }.cast_const();
    let pivot = simd.splat(pivot);
    let (mut done, mut below) = (0, 0);
    while len - done >= STEPS * S::LANES {
        // SAFETY: no more than `done` keys have gone to either side, so whole registers end where those that have been read end,
        // at or before `len`, and are written over none that have not.
        unsafe {
            let mut steps = [pivot; STEPS];
            for (step, keys) in steps.iter_mut().enumerate() {
                *keys = simd.load_all(from.add(done + step * S::LANES));
            }
            for &keys in &steps {
                let (low, count, high) = simd.part(keys, pivot);
                simd.store_all(low, lower.add(below));
                simd.store_all(high, upper.add(done - below));
                (below, done) = (below + count, done + S::LANES);
            }
        }
    }
    while done < len {
        let left = S::LANES.min(len - done);
        // SAFETY: as above, but that no more keys are written than belong there. Missing ones are above every pivot and come last.
        unsafe {
            let (low, count, high) = simd.part(simd.load(std::slice::from_raw_parts(from.add(done), left)), pivot);
            simd.store(low, std::slice::from_raw_parts_mut(lower.add(below), count));
            simd.store(high, std::slice::from_raw_parts_mut(upper.add(done - below), left - count));
            (below, done) = (below + count, done + left);
        }
    }
    below
}

/// Keys that wait to be sorted.
struct Part<'a, K> {
    /// Where they belong.
    keys: &'a mut [K],
    /// As long.
    room: &'a mut [K],
    /// Whether they lie where they belong, not in the room.
    is_home: bool,
    /// None is less.
    least: K,
    /// How often they may still be parted.
    depth: u32,
}

impl<'a, K: Unsigned> Part<'a, K> {
    #[inline(always)]
    fn new(keys: &'a mut [K], room: &'a mut [K]) -> Part<'a, K> {
        let depth = 2 * usize::BITS - 2 * keys.len().leading_zeros();
        Part { keys, room, is_home: true, least: K::default(), depth }
    }

    /// Whether parting has an end in sight, and can tell keys apart.
    #[inline(always)]
    fn can_be_parted(&self) -> bool {
        self.depth > 0 && self.least < K::MAX
    }

    /// Keys below a pivot, if they are not sorted by being parted, and the others.
    #[inline(always)]
    fn split<S: Simd<Key = K>>(self, simd: S) -> (Option<Part<'a, K>>, Part<'a, K>) {
        let Part { keys, room, is_home, least, depth } = self;
        let pivot = pivot(simd, if is_home { keys } else { room });
        // If no key is below the pivot, it is the least that is left: those that equal it are parted off.
        let all_equal = pivot == least;
        let least_above = if all_equal { K::narrow(pivot.wide() + 1) } else { pivot };
        let below = partition(simd, keys, room, is_home, least_above);
        let (keys, upper_keys) = keys.split_at_mut(below);
        let (upper_room, room) = room.split_at_mut(upper_keys.len());
        let depth = depth - 1;
        let lower = Part { keys, room, is_home: true, least, depth };
        (if all_equal { None } else { Some(lower) }, Part { keys: upper_keys, room: upper_room, is_home: false, least: least_above, depth })
    }

    /// Brings the keys to where they belong.
    #[inline(always)]
    fn bring_home(self) -> &'a mut [K] {
        if !self.is_home {
            self.keys.copy_from_slice(self.room);
        }
        self.keys
    }
}

/// Sorts keys, with room for as many where they are more than a network sorts.
#[inline(always)]
fn sort<S: Simd>(simd: S, keys: &mut [S::Key], room: &mut [S::Key]) {
    sort_part(simd, Part::new(keys, room))
}

/// Sorts keys, and brings them to where they belong.
#[inline(always)]
fn sort_part<S: Simd>(simd: S, part: Part<S::Key>) {
    let network = S::ROWS * S::LANES;
    let mut waiting: SmallVec<[Part<S::Key>; 24]> = SmallVec::new();
    let mut next = Some(part);
    while let Some(part) = next {
        next = if part.keys.len() <= network {
            short(simd, part.keys, if part.is_home { None } else { Some(part.room) });
            waiting.pop()
        } else if part.can_be_parted() {
            let (lower, upper) = part.split(simd);
            match lower {
                None => Some(upper),
                Some(lower) => {
                    waiting.push(upper);
                    Some(lower)
                }
            }
        } else {
            part.bring_home().sort_unstable();
            waiting.pop()
        };
    }
}

/// As [`SortRows`].
#[inline(always)]
fn sort_rows<S: Simd>(simd: S, keys: &mut [S::Key], len: usize, room: &mut [S::Key]) {
    if let (true, Some(room)) = ((1..S::LANES).contains(&len), room.get_mut(..keys.len())) {
        // A row that is loaded next to one that has just been stored waits for that store.
        room.copy_from_slice(keys);
        for (row, room) in keys.chunks_exact_mut(len).zip(room.chunks_exact(len)) {
            match len {
                1..=2 => network::<S, 1>(simd, 2, row, Some(room)),
                3..=4 => network::<S, 1>(simd, 4, row, Some(room)),
                5..=8 => network::<S, 1>(simd, 8, row, Some(room)),
                _ => network::<S, 1>(simd, S::LANES, row, Some(room)),
            }
        }
        return;
    }
    let needed = if len <= S::ROWS * S::LANES { 0 } else { len };
    for row in keys.chunks_exact_mut(len.max(1)) {
        match room.get_mut(..needed) {
            Some(room) => sort(simd, row, room),
            None => row.sort_unstable(),
        }
    }
}

/// As [`Select`].
#[inline(always)]
fn select<S: Simd>(simd: S, keys: &mut [S::Key], mut nth: usize, room: &mut [S::Key]) {
    let network = S::ROWS * S::LANES;
    let Some(room) = room.get_mut(..keys.len()) else { return keys.sort_unstable() };
    let mut part = Part::new(keys, room);
    while part.keys.len() > network && part.can_be_parted() {
        let len = part.keys.len();
        let (lower, upper) = part.split(simd);
        let below = len - upper.keys.len();
        if nth >= below {
            nth -= below;
            part = upper;
            continue;
        }
        upper.bring_home();
        match lower {
            Some(lower) => part = lower,
            None => return,
        }
    }
    let keys = part.bring_home();
    if keys.len() <= network { sort(simd, keys, &mut []) } else { keys.sort_unstable() }
}

/// Work on keys, to be compiled for registers of each kind. `run` must be `#[inline(always)]`.
pub(super) trait Work<K> {
    /// What it returns.
    type Output;
    /// The work.
    fn run<S: Simd<Key = K>>(self, simd: S) -> Self::Output;
}

/// What may be sorted in registers.
pub(super) trait Keys: Sized {
    /// Runs work at a level of this processor; nothing, if the level has no registers for these keys.
    fn at<W: Work<Self>>(level: Level, work: W) -> Option<W::Output> {
        let _ = (level, work);
        None
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Keys for u32 {}
#[cfg(not(target_arch = "x86_64"))]
impl Keys for u64 {}

/// How many keys a network sorts.
struct Capacity;

impl<K> Work<K> for Capacity {
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd<Key = K>>(self, _: S) -> usize {
        S::ROWS * S::LANES
    }
}

/// Keys that are sorted without room beside them, where rows of up to `len` are sorted in registers.
pub(super) fn capacity<K: Keys>(len: usize) -> Option<usize> {
    if len > LONGEST { None } else { K::at(level(), Capacity) }
}

/// Sorts each row of `len` keys, with room for one; with room for all, where rows are shorter than a register, in less time.
pub(super) struct SortRows<'a, K> {
    pub keys: &'a mut [K],
    pub len: usize,
    pub room: &'a mut [K],
}

impl<K> Work<K> for SortRows<'_, K> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd<Key = K>>(self, simd: S) {
        sort_rows(simd, self.keys, self.len, self.room)
    }
}

/// Puts key `nth` where it belongs, those before it in front and those behind it after it, with room for all.
pub(super) struct Select<'a, K> {
    pub keys: &'a mut [K],
    pub nth: usize,
    pub room: &'a mut [K],
}

impl<K> Work<K> for Select<'_, K> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd<Key = K>>(self, simd: S) {
        select(simd, self.keys, self.nth, self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::found;

    /// Registers of four keys without instructions of their own, which every processor has and miri understands.
    #[derive(Clone, Copy)]
    struct Plain;

    impl Simd for Plain {
        type Key = u32;
        type Keys = [u32; 4];
        const LANES: usize = 4;
        const ROWS: usize = 16;
        fn splat(self, key: u32) -> [u32; 4] {
            [key; 4]
        }
        fn load(self, from: &[u32]) -> [u32; 4] {
            std::array::from_fn(|lane| from.get(lane).copied().unwrap_or(u32::MAX))
        }
        fn store(self, keys: [u32; 4], to: &mut [u32]) {
            to.iter_mut().zip(keys).for_each(|(to, key)| *to = key);
        }
        fn min(self, a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
            std::array::from_fn(|lane| a[lane].min(b[lane]))
        }
        fn max(self, a: [u32; 4], b: [u32; 4]) -> [u32; 4] {
            std::array::from_fn(|lane| a[lane].max(b[lane]))
        }
        fn cross(self, keys: [u32; 4], across: usize) -> [u32; 4] {
            std::array::from_fn(|lane| keys[lane ^ across])
        }
        fn exchange(self, keys: [u32; 4], across: usize) -> [u32; 4] {
            let other = self.cross(keys, across);
            let highest = 1 << across.ilog2();
            std::array::from_fn(|lane| if lane & highest == 0 { keys[lane].min(other[lane]) } else { keys[lane].max(other[lane]) })
        }
        fn part(self, keys: [u32; 4], pivot: [u32; 4]) -> ([u32; 4], usize, [u32; 4]) {
            let (low, high): (Vec<u32>, Vec<u32>) = keys.iter().partition(|&&key| key < pivot[0]);
            (self.load(&low), low.len(), self.load(&high))
        }
        unsafe fn load_all(self, from: *const u32) -> [u32; 4] {
            // SAFETY: as the caller says.
            unsafe { from.cast::<[u32; 4]>().read() }
        }
        unsafe fn store_all(self, keys: [u32; 4], to: *mut u32) {
            // SAFETY: as the caller says.
            unsafe { to.cast::<[u32; 4]>().write(keys) }
        }
    }

    /// Each level that this processor has registers at, by all means of sorting.
    fn levels() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        let all = vec![Level::V3, Level::V4];
        #[cfg(not(target_arch = "x86_64"))]
        let all = Vec::new();
        all.into_iter().filter(|&level| level <= found()).collect()
    }

    /// Random bits, the same in every run.
    fn bits(i: usize) -> u64 {
        let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Random, rising, falling, equal, of few values, extremes, a roof, a saw, both ends of the range, rows of one another.
    const ORDERS: [fn(usize, usize) -> u64; 10] = [
        |i, _| bits(i),
        |i, _| i as u64,
        |i, len| (len - i) as u64,
        |_, _| 7,
        |i, _| bits(i) % 3,
        |i, _| if bits(i) >> 63 == 0 { u64::MAX } else { 0 },
        |i, len| i.min(len - i) as u64,
        |i, _| (i % 37) as u64,
        |i, _| (bits(i) % 50).wrapping_sub(25),
        |_, _| u64::MAX,
    ];

    /// Sorts and selects at every level.
    fn check<K: Keys + Unsigned + std::fmt::Debug>(len: usize, what: &str, keys: &[K]) {
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        for level in levels() {
            let (mut row, mut room) = (keys.to_vec(), vec![K::default(); len]);
            K::at(level, SortRows { keys: &mut row, len, room: &mut room }).unwrap();
            assert!(row == sorted, "{what}, {len} keys, {level:?}");
            let mut row = keys.to_vec();
            K::at(level, SortRows { keys: &mut row, len, room: &mut [] }).unwrap();
            assert!(row == sorted, "{what}, {len} keys, {level:?}, no room");
            for nth in [0, len / 3, len.saturating_sub(1)].into_iter().filter(|&nth| nth < len) {
                let mut row = keys.to_vec();
                K::at(level, Select { keys: &mut row, nth, room: &mut room }).unwrap();
                assert!(row[nth] == sorted[nth], "{what}, key {nth} of {len}, {level:?}");
                assert!(
                    row[..nth].iter().all(|k| *k <= row[nth]) && row[nth..].iter().all(|k| *k >= row[nth]),
                    "{what}, around {nth} of {len}"
                );
                row.sort_unstable();
                assert!(row == sorted, "{what}, other keys, {nth} of {len}, {level:?}");
            }
        }
    }

    #[test]
    fn every_length_and_order() {
        if levels().is_empty() {
            return;
        }
        for len in (0..300).chain([511, 512, 513, 1000, 1023, 1024, 1025, 4099, 20_000]) {
            for (n, order) in ORDERS.iter().enumerate() {
                let keys: Vec<u64> = (0..len).map(|i| order(i, len)).collect();
                check(len, &format!("order {n}"), &keys);
                check(len, &format!("order {n}"), &keys.iter().map(|&k| k as u32).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn rows_one_after_the_other() {
        for len in 1..70 {
            let keys: Vec<u32> = (0..len * 11).map(|i| bits(i) as u32).collect();
            let mut sorted = keys.clone();
            sorted.chunks_mut(len).for_each(|row| row.sort_unstable());
            for level in levels() {
                for room in [0, len, keys.len()] {
                    let mut rows = keys.clone();
                    u32::at(level, SortRows { keys: &mut rows, len, room: &mut vec![0; room] }).unwrap();
                    assert!(rows == sorted, "rows of {len}, room for {room}, {level:?}");
                }
            }
        }
    }

    #[test]
    fn a_network_sorts_zeros_and_ones() {
        for pattern in (0..1 << 16).step_by(if cfg!(miri) { 4096 } else { 4 }) {
            let mut rows: [[u32; 4]; 16] = std::array::from_fn(|row| std::array::from_fn(|lane| (pattern + lane) as u32 >> row & 1));
            columns(Plain, &mut rows);
            assert!((0..4).all(|lane| rows.is_sorted_by_key(|row| row[lane])), "{pattern}");
        }
    }

    #[test]
    fn plain_registers() {
        for len in [0, 1, 3, 4, 5, 17, 64, 65, 100, 257] {
            for order in &ORDERS[if cfg!(miri) { 4 } else { 0 }..] {
                let keys: Vec<u32> = (0..len).map(|i| order(i, len) as u32).collect();
                let (mut row, mut sorted) = (keys.clone(), keys);
                sort(Plain, &mut row, &mut vec![0; len]);
                sorted.sort_unstable();
                assert_eq!(row, sorted);
            }
        }
    }

    /// The keys that the first pivots are chosen from are the least: parting takes off little, and ends all the same.
    #[test]
    fn bad_pivots() {
        let len = if cfg!(miri) { 400 } else { 5000 };
        let mut keys: Vec<u32> = (0..len).map(|i| 1000 + bits(i) as u32 % 1_000_000).collect();
        for _ in 0..len / 100 {
            for lanes in [8, 16] {
                let step = (len - lanes) / 8;
                (0..9).for_each(|i| keys[i * step..][..lanes].iter_mut().for_each(|k| *k %= 100));
            }
            check(len, "bad pivots", &keys);
            keys.rotate_left(77);
        }
        let (mut row, mut room) = (keys.clone(), vec![0; len]);
        let part = Part { depth: 3, ..Part::new(&mut row, &mut room) };
        sort_part(Plain, part);
        keys.sort_unstable();
        assert!(row == keys);
    }
}
