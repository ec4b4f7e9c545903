//! A per-thread cache of compiled kernels and launch data. A lookup takes no lock and allocates nothing. A miss falls through
//! to the process-wide cache.

use std::cell::RefCell;
use std::thread::LocalKey;

use cuprum_core::Program;

use crate::codegen::{Flags, KernelKey};

/// Slots per table. A collision replaces the earlier entry.
const PLACES: usize = 128;

/// A thread's table of kernels, or of what else follows from a [`KernelKey`].
///
/// ```
/// use cuprum_backend_cuda::codegen::KernelKey;
/// use cuprum_backend_cuda::launch_cache::Recent;
/// use cuprum_core::{DType, Program};
/// thread_local! {
///     static WIDTHS: Recent<usize> = const { Recent::new() };
/// }
/// let (floats, doubles) = (Program::identity(DType::F32), Program::identity(DType::F64));
/// Recent::keep(&WIDTHS, &KernelKey::new("sum", &floats).with(1), 4);
/// assert_eq!(Recent::find(&WIDTHS, &KernelKey::new("sum", &floats).with(1), |width| *width), Some(4));
/// assert_eq!(Recent::find(&WIDTHS, &KernelKey::new("sum", &floats).with(2), |width| *width), None);
/// assert_eq!(Recent::find(&WIDTHS, &KernelKey::new("sum", &doubles).with(1), |width| *width), None);
/// ```
#[derive(Debug)]
pub struct Recent<T>(RefCell<Vec<Option<Box<Known<T>>>>>);

#[derive(Debug)]
struct Known<T> {
    flags: Flags,
    program: Option<Program>,
    value: T,
}

impl<T> Known<T> {
    fn is_for(&self, key: &KernelKey) -> bool {
        let has_program = match (&self.program, key.program) {
            (Some(ours), Some(asked)) => ours.same_structure(asked),
            (ours, asked) => ours.is_none() && asked.is_none(),
        };
        has_program && self.flags == key.flags
    }
}

impl<T> Recent<T> {
    /// An empty table.
    pub const fn new() -> Recent<T> {
        Recent(RefCell::new(Vec::new()))
    }

    /// Calls `f` with the entry for `key`. Returns `None` if there is none, if the table is borrowed by a caller, or if the
    /// thread is ending.
    pub fn find<R>(table: &'static LocalKey<Recent<T>>, key: &KernelKey, f: impl FnOnce(&T) -> R) -> Option<R> {
        let find = |Recent(places): &Recent<T>| {
            let places = places.try_borrow().ok()?;
            let known = places.get(place(key))?.as_deref().filter(|known| known.is_for(key))?;
            Some(f(&known.value))
        };
        table.try_with(find).ok().flatten()
    }

    /// Inserts an entry.
    #[cold]
    pub fn keep(table: &'static LocalKey<Recent<T>>, key: &KernelKey, value: T) {
        let known = Known { flags: key.flags.clone(), program: key.program.cloned(), value };
        // A table that is borrowed by a caller, or whose thread is ending, stays as it is.
        let _ = table.try_with(|Recent(places)| {
            if let Ok(mut places) = places.try_borrow_mut() {
                places.resize_with(PLACES, || None);
                places[place(key)] = Some(Box::new(known));
            }
        });
    }
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent::new()
    }
}

fn place(key: &KernelKey) -> usize {
    key.fingerprint() as usize % PLACES
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::elementwise::{ADD, MULTIPLY};
    use cuprum_core::{DType, Op, Scalar, StepKind};

    use super::*;

    thread_local! {
        static TABLE: Recent<u32> = const { Recent::new() };
    }

    fn get(key: &KernelKey) -> Option<u32> {
        Recent::find(&TABLE, key, |value| *value)
    }

    fn with_number(op: Op, number: f64) -> Program {
        let mut program = Program::identity(DType::F32);
        let number = program.push_param(Scalar::Float(number), DType::F32);
        program.outputs[0] = program.push(StepKind::Apply(op), DType::F32, &[0, number]);
        program
    }

    #[test]
    fn whatever_a_kernel_depends_on_tells_keys_apart() {
        let (identity, sum, product) = (Program::identity(DType::F32), with_number(ADD, 2.0), with_number(MULTIPLY, 2.0));
        let (mut twice, doubles) = (sum.clone(), Program::identity(DType::F64));
        twice.outputs.push(0);
        let programs = [&identity, &sum, &product, &twice].map(|program| KernelKey::new("a", program));
        let others = [
            KernelKey::of_class("a"),
            KernelKey::of_class("b"),
            KernelKey::new("b", &identity),
            KernelKey::new("a", &identity).with(0),
            KernelKey::new("a", &identity).with(1),
            KernelKey::new("a", &identity).with(0).with(1),
            KernelKey::new("a", &identity).with_op(ADD),
            KernelKey::new("a", &identity).with_op(MULTIPLY),
            KernelKey::new("a", &identity).with_name("x"),
            KernelKey::new("a", &identity).with_name("y"),
            KernelKey::new("a", &doubles).with(1),
        ];
        let keys: Vec<KernelKey> = programs.into_iter().chain(others).collect();
        for (n, key) in (0..).zip(&keys) {
            Recent::keep(&TABLE, key, n);
            assert_eq!(get(key), Some(n));
            let found = keys.iter().filter(|other| get(other) == Some(n)).count();
            assert_eq!(found, 1, "{key:?}");
            let same = keys.iter().filter(|other| other.written() == key.written()).count();
            assert_eq!(same, 1, "{key:?}");
        }
    }

    #[test]
    fn numbers_of_a_program_are_no_part_of_it() {
        Recent::keep(&TABLE, &KernelKey::new("map", &with_number(ADD, 1.0)), 7);
        assert_eq!(get(&KernelKey::new("map", &with_number(ADD, 3.0))), Some(7));
        assert_eq!(std::thread::spawn(|| get(&KernelKey::new("map", &with_number(ADD, 1.0)))).join().unwrap(), None, "of its thread alone");
    }

    #[test]
    fn a_table_in_use_answers_nothing() {
        let program = with_number(ADD, 1.0);
        let key = KernelKey::new("map", &program);
        Recent::keep(&TABLE, &key, 7);
        let inside = Recent::find(&TABLE, &key, |_| {
            Recent::keep(&TABLE, &key, 8);
            get(&key)
        });
        assert_eq!((inside, get(&key)), (Some(Some(7)), Some(7)), "it may be read, not changed");
    }
}
