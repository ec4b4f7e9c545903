//! Sorting of a few unsigned keys on the calling thread.

use cuprum_core::Result;
use cuprum_core::host_buffer::try_reserve;
use cuprum_cpu_base::simd::simd_level;

use crate::register_sort::{RegisterKey, SortRowsLoop};
use crate::sort_key::UnsignedKey;

/// Unsigned integer types that [`sort_keys`] sorts: u32 and u64.
#[allow(private_bounds)]
pub trait SortKey: UnsignedKey + RegisterKey {}
impl SortKey for u32 {}
impl SortKey for u64 {}

/// Sorts `keys` in ascending order, in SIMD registers where possible. `scratch` is memory that successive calls reuse. `op` is the name in
/// an out-of-memory error.
pub fn sort_keys<K: SortKey>(op: &'static str, keys: &mut [K], scratch: &mut Vec<K>) -> Result<()> {
    let len = keys.len();
    if scratch.len() < len {
        try_reserve(op, scratch, len - scratch.len())?;
        scratch.resize(len, K::default());
    }
    if K::try_run_at_level(simd_level(), SortRowsLoop { keys: &mut *keys, len, scratch }).is_none() {
        keys.sort_unstable();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_keys_of_any_number() {
        let mut scratch = Vec::new();
        for len in [0usize, 1, 2, 7, 100, 1000] {
            let mut keys: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_769)).collect();
            let mut wide: Vec<u64> = keys.iter().map(|&key| u64::from(key) << 20).collect();
            let mut want = keys.clone();
            want.sort_unstable();
            sort_keys("test", &mut keys, &mut scratch).unwrap();
            assert_eq!(keys, want);
            sort_keys("test", &mut wide, &mut Vec::new()).unwrap();
            assert!(wide.iter().zip(&want).all(|(&a, &b)| a == u64::from(b) << 20));
        }
    }
}
