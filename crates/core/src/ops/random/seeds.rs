//! Seeds: integers of any size and lists of them, and the keys of child generators.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::host_buffer::try_reserve;
use crate::ops::python_value::Value;

/// Applies the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), a
/// bijection of 64-bit numbers.
fn splitmix64_finalizer(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a 64-bit key that depends on each word of a seed. A seed of one word is its own key.
pub(super) fn seed_key_from_words(words: &[u64]) -> u64 {
    match words {
        [] => 0,
        [word] => *word,
        [first, rest @ ..] => rest.iter().fold(splitmix64_finalizer(*first ^ words.len() as u64), |key, word| {
            splitmix64_finalizer(key.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ splitmix64_finalizer(word.wrapping_add(0x6a09_e667_f3bc_c909)))
        }),
    }
}

/// Returns the key of child number `child` of a generator.
pub(super) fn derive_child_key(key: u64, stream: u32, child: u64) -> u64 {
    seed_key_from_words(&[key, u64::from(stream), child, 0x0073_7061_776e])
}

/// The key that [`set_shared_entropy_key`] has set, and the number of keys that [`next_entropy_key`] has derived from it. `None` if no
/// key was set.
static SHARED_KEY_AND_DRAW_COUNT: Mutex<Option<(u64, u64)>> = Mutex::new(None);

/// Makes [`next_entropy_key`] return a sequence of keys that depends only on `key`.
pub(super) fn set_shared_entropy_key(key: u64) {
    *SHARED_KEY_AND_DRAW_COUNT.lock().unwrap_or_else(|e| e.into_inner()) = Some((key, 0));
}

/// Returns a key that differs between calls, and between processes that do not share their keys ([`set_shared_entropy_key`]).
pub(super) fn next_entropy_key() -> u64 {
    match &mut *SHARED_KEY_AND_DRAW_COUNT.lock().unwrap_or_else(|e| e.into_inner()) {
        Some((key, drawn)) => {
            *drawn += 1;
            seed_key_from_words(&[*key, *drawn])
        }
        None => RandomState::new().hash_one("seed"),
    }
}

/// Appends the 64-bit words of a seed, the low word first. A seed is a non-negative integer, an array of such integers, or a (nested)
/// sequence of both.
fn append_seed_words(op: &'static str, value: &Value, words: &mut Vec<u64>) -> Result<()> {
    let mut push = |number: i128| {
        let number = u128::try_from(number).map_err(|_| Error::value(op, "expected non-negative integer"))?;
        try_reserve(op, words, 2)?;
        words.push(number as u64);
        if number >> 64 != 0 {
            words.push((number >> 64) as u64);
        }
        Ok(())
    };
    match value {
        Value::Array(a) if a.ndim() > 0 => {
            if a.size() > 0 && !a.dtype().is_int() {
                return Err(Error::dtype(op, "seeds must be integers", &[a.dtype()]));
            }
            if a.dtype() == crate::DType::U64 {
                a.ravel()?.to_vec::<u64>()?.into_iter().map(i128::from).try_for_each(push)
            } else {
                a.ravel()?.astype(crate::DType::I64)?.to_vec::<i64>()?.into_iter().map(i128::from).try_for_each(push)
            }
        }
        Value::Tuple(items) | Value::List(items) => items.iter().try_for_each(|item| append_seed_words(op, item, words)),
        number => push(number.int(op)?),
    }
}

/// Returns the key for a seed: an integer, an array of integers, or a (nested) sequence of both. As in NumPy, a seed without numbers is
/// equivalent to 0.
pub(super) fn key_from_seed_value(op: &'static str, value: &Value) -> Result<u64> {
    let mut words = Vec::new();
    append_seed_words(op, value, &mut words)?;
    Ok(seed_key_from_words(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_every_word() {
        assert_eq!(seed_key_from_words(&[7]), 7);
        let keys = [&[7u64, 0][..], &[0, 7], &[7, 0, 0], &[7, 1], &[8, 0]].map(seed_key_from_words);
        for (i, a) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|b| a != b) && *a != 7, "{keys:?}");
        }
        assert_ne!(derive_child_key(1, 0, 0), derive_child_key(1, 0, 1));
        assert_ne!(derive_child_key(1, 0, 0), derive_child_key(1, 1, 0));
        assert_ne!(next_entropy_key(), next_entropy_key());
    }

    #[test]
    fn seeds_are_integers_that_are_not_negative() {
        let key = |value: Value| key_from_seed_value("seed", &value);
        assert_eq!(key(7.into()).unwrap(), key(Value::List(vec![7.into()].into())).unwrap());
        assert_eq!(key((1i128 << 64).into()).unwrap(), key(Value::List(vec![0.into(), 1.into()].into())).unwrap());
        assert_ne!(key((1i128 << 64).into()).unwrap(), 0);
        let list = |items: Vec<Value>| Value::List(items.into());
        assert_eq!(key(list(vec![])).unwrap(), key(0.into()).unwrap());
        assert_eq!(key(list(vec![1.into(), list(vec![2.into()])])).unwrap(), key(list(vec![1.into(), 2.into()])).unwrap());
        for wrong in [Value::from(-1), 1.5.into(), Value::Str("a".into()), list(vec![(-1).into()])] {
            assert!(key(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
