#![allow(unsafe_code)]

use cuprum_cpu_base::simd::processor_simd_level;

use super::*;

/// Registers of four keys in portable code, so that every processor and miri can run the tests.
#[derive(Clone, Copy)]
struct Plain;

impl SimdRegisters for Plain {
    type Key = u32;
    type Keys = [u32; 4];
    const LANES: usize = 4;
    const NETWORK_REGISTERS: usize = 16;
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
    fn shuffle_xor(self, keys: [u32; 4], mask: usize) -> [u32; 4] {
        std::array::from_fn(|lane| keys[lane ^ mask])
    }
    fn compare_exchange(self, keys: [u32; 4], mask: usize) -> [u32; 4] {
        let other = self.shuffle_xor(keys, mask);
        let highest = 1 << mask.ilog2();
        std::array::from_fn(|lane| if lane & highest == 0 { keys[lane].min(other[lane]) } else { keys[lane].max(other[lane]) })
    }
    fn partition_register(self, keys: [u32; 4], pivot: [u32; 4]) -> ([u32; 4], usize, [u32; 4]) {
        let (low, high): (Vec<u32>, Vec<u32>) = keys.iter().partition(|&&key| key < pivot[0]);
        (self.load(&low), low.len(), self.load(&high))
    }
    unsafe fn load_register(self, from: *const u32) -> [u32; 4] {
        // SAFETY: the caller guarantees that `from` points to four keys.
        unsafe { from.cast::<[u32; 4]>().read() }
    }
    unsafe fn store_register(self, keys: [u32; 4], to: *mut u32) {
        // SAFETY: the caller guarantees that `to` is valid for four keys.
        unsafe { to.cast::<[u32; 4]>().write(keys) }
    }
}

/// Returns the SIMD levels with registers that this processor supports.
fn levels() -> Vec<SimdLevel> {
    #[cfg(target_arch = "x86_64")]
    let all = vec![SimdLevel::V3, SimdLevel::V4];
    #[cfg(not(target_arch = "x86_64"))]
    let all = Vec::new();
    all.into_iter().filter(|&level| level <= processor_simd_level()).collect()
}

/// Returns reproducible random bits for index `i`.
fn bits(i: usize) -> u64 {
    let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Key patterns: random, ascending, descending, equal, few distinct, extremes, up and down, sawtooth, both ends of the range, all bits set.
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

/// Sorts `keys` and selects keys at every level, and compares with the standard library.
fn check<K: RegisterKey + UnsignedKey + std::fmt::Debug>(len: usize, what: &str, keys: &[K]) {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    for level in levels() {
        let (mut row, mut scratch) = (keys.to_vec(), vec![K::default(); len]);
        K::try_run_at_level(level, SortRowsLoop { keys: &mut row, len, scratch: &mut scratch }).unwrap();
        assert!(row == sorted, "{what}, {len} keys, {level:?}");
        let mut row = keys.to_vec();
        K::try_run_at_level(level, SortRowsLoop { keys: &mut row, len, scratch: &mut [] }).unwrap();
        assert!(row == sorted, "{what}, {len} keys, {level:?}, no scratch");
        for nth in [0, len / 3, len.saturating_sub(1)].into_iter().filter(|&nth| nth < len) {
            let mut row = keys.to_vec();
            K::try_run_at_level(level, SelectNthLoop { keys: &mut row, nth, scratch: &mut scratch }).unwrap();
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
fn consecutive_rows() {
    for len in 1..70 {
        let keys: Vec<u32> = (0..len * 11).map(|i| bits(i) as u32).collect();
        let mut sorted = keys.clone();
        sorted.chunks_mut(len).for_each(|row| row.sort_unstable());
        for level in levels() {
            for scratch in [0, len, keys.len()] {
                let mut rows = keys.clone();
                u32::try_run_at_level(level, SortRowsLoop { keys: &mut rows, len, scratch: &mut vec![0; scratch] }).unwrap();
                assert!(rows == sorted, "rows of {len}, scratch for {scratch}, {level:?}");
            }
        }
    }
}

#[test]
fn network_sorts_zeros_and_ones() {
    for pattern in (0..1 << 16).step_by(if cfg!(miri) { 4096 } else { 4 }) {
        let mut rows: [[u32; 4]; 16] = std::array::from_fn(|row| std::array::from_fn(|lane| (pattern + lane) as u32 >> row & 1));
        sort_columns(Plain, &mut rows);
        assert!((0..4).all(|lane| rows.is_sorted_by_key(|row| row[lane])), "{pattern}");
    }
}

#[test]
fn portable_registers() {
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

/// Makes the sampled keys the least ones, so that partitions shrink slowly and the recursion limit applies.
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
    let (mut row, mut scratch) = (keys.clone(), vec![0; len]);
    let part = UnsortedRange { depth: 3, ..UnsortedRange::from_unsorted_keys(&mut row, &mut scratch) };
    sort_range(Plain, part);
    keys.sort_unstable();
    assert!(row == keys);
}
