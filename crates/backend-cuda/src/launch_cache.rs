//! A per-thread cache of compiled kernels and launch data. A lookup takes no lock and allocates nothing. After a miss, callers search the
//! process-wide cache of the device.

use std::cell::RefCell;
use std::thread::LocalKey;

use cuprum_core::Program;

use crate::codegen::{KernelKey, KeyWithoutProgram};

/// Number of slots of a table. If two keys map to one slot, the later key replaces the earlier one.
const LAUNCH_CACHE_SLOTS: usize = 128;

/// A per-thread table of values by [`KernelKey`], such as compiled kernels.
///
/// ```
/// use cuprum_backend_cuda::codegen::KernelKey;
/// use cuprum_backend_cuda::launch_cache::LaunchCache;
/// use cuprum_core::{DType, Program};
/// thread_local! {
///     static WIDTHS: LaunchCache<usize> = const { LaunchCache::new() };
/// }
/// let (floats, doubles) = (Program::identity(DType::F32), Program::identity(DType::F64));
/// LaunchCache::insert(&WIDTHS, &KernelKey::new("sum", &floats).with_number(1), 4);
/// assert_eq!(LaunchCache::find(&WIDTHS, &KernelKey::new("sum", &floats).with_number(1), |width| *width), Some(4));
/// assert_eq!(LaunchCache::find(&WIDTHS, &KernelKey::new("sum", &floats).with_number(2), |width| *width), None);
/// assert_eq!(LaunchCache::find(&WIDTHS, &KernelKey::new("sum", &doubles).with_number(1), |width| *width), None);
/// ```
#[derive(Debug)]
pub struct LaunchCache<T>(RefCell<Vec<Option<Box<CachedValue<T>>>>>);

/// A cached value, with the parts of its [`KernelKey`].
#[derive(Debug)]
struct CachedValue<T> {
    flags: KeyWithoutProgram,
    program: Option<Program>,
    value: T,
}

impl<T> CachedValue<T> {
    fn matches_key(&self, key: &KernelKey) -> bool {
        let same_program = match (&self.program, key.program) {
            (Some(program), Some(other)) => program.has_same_structure(other),
            (program, other) => program.is_none() && other.is_none(),
        };
        same_program && self.flags == key.flags
    }
}

impl<T> LaunchCache<T> {
    /// Returns an empty table.
    pub const fn new() -> LaunchCache<T> {
        LaunchCache(RefCell::new(Vec::new()))
    }

    /// Calls `f` with the value for `key`, and returns the result of `f`. Returns `None` if the table has no such value, if the table is
    /// mutably borrowed, or if the thread is ending.
    pub fn find<R>(table: &'static LocalKey<LaunchCache<T>>, key: &KernelKey, f: impl FnOnce(&T) -> R) -> Option<R> {
        let find = |LaunchCache(slots): &LaunchCache<T>| {
            let slots = slots.try_borrow().ok()?;
            let entry = slots.get(slot_index(key))?.as_deref().filter(|entry| entry.matches_key(key))?;
            Some(f(&entry.value))
        };
        table.try_with(find).ok().flatten()
    }

    /// Inserts `value` under `key`. Replaces the value in the slot of `key`, even if it belongs to another key.
    #[cold]
    pub fn insert(table: &'static LocalKey<LaunchCache<T>>, key: &KernelKey, value: T) {
        let entry = CachedValue { flags: key.flags.clone(), program: key.program.cloned(), value };
        // If the launch cache is borrowed already, or if the thread is ending, the value is not stored.
        let _ = table.try_with(|LaunchCache(slots)| {
            if let Ok(mut slots) = slots.try_borrow_mut() {
                slots.resize_with(LAUNCH_CACHE_SLOTS, || None);
                slots[slot_index(key)] = Some(Box::new(entry));
            }
        });
    }
}

impl<T> Default for LaunchCache<T> {
    fn default() -> Self {
        LaunchCache::new()
    }
}

/// Returns the index of the slot for `key`.
fn slot_index(key: &KernelKey) -> usize {
    key.fingerprint() as usize % LAUNCH_CACHE_SLOTS
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::elementwise::{ADD, MULTIPLY};
    use cuprum_core::{DType, Op, Scalar, StepKind};

    use super::*;

    thread_local! {
        static TABLE: LaunchCache<u32> = const { LaunchCache::new() };
    }

    fn get(key: &KernelKey) -> Option<u32> {
        LaunchCache::find(&TABLE, key, |value| *value)
    }

    fn with_number(op: Op, number: f64) -> Program {
        let mut program = Program::identity(DType::F32);
        let number = program.push_param(Scalar::Float(number), DType::F32);
        program.outputs[0] = program.push_step(StepKind::Apply(op), DType::F32, &[0, number]);
        program
    }

    #[test]
    fn keys_differ_in_each_part() {
        let (identity, sum, product) = (Program::identity(DType::F32), with_number(ADD, 2.0), with_number(MULTIPLY, 2.0));
        let (mut twice, doubles) = (sum.clone(), Program::identity(DType::F64));
        twice.outputs.push(0);
        let programs = [&identity, &sum, &product, &twice].map(|program| KernelKey::new("a", program));
        let others = [
            KernelKey::without_program("a"),
            KernelKey::without_program("b"),
            KernelKey::new("b", &identity),
            KernelKey::new("a", &identity).with_number(0),
            KernelKey::new("a", &identity).with_number(1),
            KernelKey::new("a", &identity).with_number(0).with_number(1),
            KernelKey::new("a", &identity).with_op(ADD),
            KernelKey::new("a", &identity).with_op(MULTIPLY),
            KernelKey::new("a", &identity).with_name("x"),
            KernelKey::new("a", &identity).with_name("y"),
            KernelKey::new("a", &doubles).with_number(1),
        ];
        let keys: Vec<KernelKey> = programs.into_iter().chain(others).collect();
        for (n, key) in (0..).zip(&keys) {
            LaunchCache::insert(&TABLE, key, n);
            assert_eq!(get(key), Some(n));
            let found = keys.iter().filter(|other| get(other) == Some(n)).count();
            assert_eq!(found, 1, "{key:?}");
            let same = keys.iter().filter(|other| other.serialize() == key.serialize()).count();
            assert_eq!(same, 1, "{key:?}");
        }
    }

    #[test]
    fn keys_do_not_include_scalars() {
        LaunchCache::insert(&TABLE, &KernelKey::new("map", &with_number(ADD, 1.0)), 7);
        assert_eq!(get(&KernelKey::new("map", &with_number(ADD, 3.0))), Some(7));
        assert_eq!(
            std::thread::spawn(|| get(&KernelKey::new("map", &with_number(ADD, 1.0)))).join().unwrap(),
            None,
            "tables are per thread"
        );
    }

    #[test]
    fn a_borrowed_table_is_not_changed() {
        let program = with_number(ADD, 1.0);
        let key = KernelKey::new("map", &program);
        LaunchCache::insert(&TABLE, &key, 7);
        let inside = LaunchCache::find(&TABLE, &key, |_| {
            LaunchCache::insert(&TABLE, &key, 8);
            get(&key)
        });
        assert_eq!((inside, get(&key)), (Some(Some(7)), Some(7)), "it can be read, but not changed");
    }
}
