//! The items of Python-like tuples and lists. Clones share the items. The memory of sequences that users create counts towards the limit on
//! host memory. Cloning, dropping and printing recurse at most [`MAX_SEQUENCE_NESTING`] levels, so deep nesting cannot overflow the stack.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::host_pool::MemoryReservation;
use crate::ops::python_value::Value;

/// Maximum number of values in a tuple or list, those of nested sequences included. An empty nested sequence counts as one value. A
/// sequence that occurs at several positions counts at each of them.
pub const MAX_SEQUENCE_VALUES: usize = 1 << 24;

/// Maximum nesting depth of a tuple or list that becomes an array: NumPy's limit on dimensions.
pub(crate) const MAX_SEQUENCE_NESTING: usize = 64;

/// The items of a tuple or list. Clones share the items.
#[derive(Clone)]
pub struct SequenceItems(Arc<SharedSequenceItems>);

struct SharedSequenceItems {
    items: Vec<Value>,
    /// Number of values, including those of nested sequences; see [`MAX_SEQUENCE_VALUES`].
    total: usize,
    /// Nesting depth: 1 if no item is a sequence.
    depth: usize,
    /// Names of the items of a named tuple; empty for other sequences.
    names: &'static [&'static str],
    /// Reservation of host memory for the items.
    _memory: Option<MemoryReservation>,
}

impl SequenceItems {
    /// Creates the items of a sequence whose length a user chooses. Their memory counts towards the limit on host memory.
    ///
    /// # Errors
    /// [`Error::Value`] above [`MAX_SEQUENCE_VALUES`] values, including nested ones, and [`Error::OutOfMemory`] above the memory limit.
    pub fn new(op: &'static str, items: Vec<Value>) -> Result<SequenceItems> {
        let memory = MemoryReservation::reserve_host_memory(op, items.len().saturating_mul(size_of::<Value>()))?;
        let all = SequenceItems::with_memory_reservation(items, Some(memory));
        match all.0.total {
            0..=MAX_SEQUENCE_VALUES => Ok(all),
            n => Err(Error::value(
                op,
                format!(
                    "a sequence of {n} values, nested ones included, is too long (at most {MAX_SEQUENCE_VALUES}); keep data in an array"
                ),
            )),
        }
    }

    fn with_memory_reservation(items: Vec<Value>, memory: Option<MemoryReservation>) -> SequenceItems {
        let (mut total, mut depth) = (0usize, 1);
        for item in &items {
            let nested = item.as_sequence();
            total = total.saturating_add(nested.map_or(1, |n| n.0.total.max(1)));
            depth = depth.max(nested.map_or(1, |n| n.0.depth + 1));
        }
        SequenceItems(Arc::new(SharedSequenceItems { items, total, depth, names: &[], _memory: memory }))
    }

    /// Creates the items of a named tuple, a short sequence that an operation returns.
    pub(crate) fn named_tuple(names: &'static [&'static str], items: Vec<Value>) -> SequenceItems {
        let mut all = SequenceItems::from(items);
        if let Some(inner) = Arc::get_mut(&mut all.0) {
            inner.names = names;
        }
        all
    }

    /// Returns the item of this name, if the sequence is a named tuple that has it.
    pub fn named_field(&self, name: &str) -> Option<&Value> {
        let at = self.0.names.iter().position(|n| *n == name)?;
        self.get(at)
    }

    /// Returns the names of the items of a named tuple; empty for other sequences.
    pub fn field_names(&self) -> &'static [&'static str] {
        self.0.names
    }

    /// Returns the number of values, those of nested sequences included. A sequence that occurs at several positions counts at each.
    pub fn total_value_count(&self) -> usize {
        self.0.total
    }

    /// Returns the nesting depth: 1 if no item is a tuple or list.
    pub fn nesting_depth(&self) -> usize {
        self.0.depth
    }

    /// Returns an error if the sequence has more nesting levels than an array can have dimensions.
    pub(crate) fn check_nesting_depth(&self, op: &'static str) -> Result<()> {
        match self.nesting_depth() {
            0..=MAX_SEQUENCE_NESTING => Ok(()),
            n => Err(Error::value(
                op,
                format!("a sequence nested {n} deep cannot be an array, which has at most {MAX_SEQUENCE_NESTING} dimensions"),
            )),
        }
    }
}

impl Deref for SequenceItems {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.0.items
    }
}

impl<'a> IntoIterator for &'a SequenceItems {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Creates a short sequence that an operation returns. Its memory is not counted towards the limit on host memory.
impl From<Vec<Value>> for SequenceItems {
    fn from(items: Vec<Value>) -> SequenceItems {
        SequenceItems::with_memory_reservation(items, None)
    }
}

/// Creates a short sequence that an operation returns. Its memory is not counted towards the limit on host memory.
impl FromIterator<Value> for SequenceItems {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> SequenceItems {
        SequenceItems::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl fmt::Debug for SequenceItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nesting_depth() {
            0..=MAX_SEQUENCE_NESTING => f.debug_list().entries(self.iter()).finish(),
            depth => write!(f, "[{} items, nested {depth} deep]", self.len()),
        }
    }
}

/// Drops nested sequences in a loop, since the derived drop would recurse.
impl Drop for SharedSequenceItems {
    fn drop(&mut self) {
        if self.depth == 1 {
            return;
        }
        let mut pending = std::mem::take(&mut self.items);
        while let Some(value) = pending.pop() {
            if let Value::Tuple(items) | Value::List(items) = value
                && let Some(mut inner) = Arc::into_inner(items.0)
            {
                pending.append(&mut inner.items);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_drop_and_debug_of_deep_nesting_do_not_recurse() {
        let mut value = Value::from(1);
        for _ in 0..if cfg!(miri) { 1000 } else { 300_000 } {
            value = Value::List(SequenceItems::new("test", vec![value]).unwrap());
        }
        let copy = value.clone();
        drop(value);
        assert!(format!("{copy:?}").contains("nested"));
        assert!(copy.array("test").unwrap_err().to_string().contains("at most 64 dimensions"));
    }

    #[test]
    fn shared_nested_values_count_each_time() {
        let mut value = Value::List(vec![Value::from(1)].into());
        for n in 1.. {
            match SequenceItems::new("test", vec![value.clone(), value.clone()]) {
                Ok(items) => value = Value::List(items),
                Err(e) => {
                    assert_eq!(n, 25);
                    assert!(e.to_string().contains("33554432 values"), "{e}");
                    break;
                }
            }
        }
    }
}
