//! The items of tuples and lists: shared between clones, counted against a limit, and free of recursion, however deep they are nested.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ops::value::Value;
use crate::pool::Reservation;

/// Maximum number of values in a tuple or list, those of nested ones included each time that they occur.
pub const MOST_ITEMS: usize = 1 << 24;

/// Maximum nesting of a tuple or list that becomes an array: NumPy's limit on dimensions.
pub(crate) const MOST_NESTING: usize = 64;

/// The items of a tuple or list. Clones share them.
#[derive(Clone)]
pub struct Items(Arc<Inner>);

struct Inner {
    items: Vec<Value>,
    /// Number of values, those of nested sequences included.
    total: usize,
    /// Nesting: 1 without a sequence among the items.
    depth: usize,
    /// The items' part of the host memory that the limit covers.
    _memory: Option<Reservation>,
}

impl Items {
    /// The items of a sequence whose length a user chooses. Their memory counts towards the limit of host memory.
    ///
    /// # Errors
    /// [`Error::Value`] above [`MOST_ITEMS`] values, nested ones included; [`Error::OutOfMemory`].
    pub fn new(op: &'static str, items: Vec<Value>) -> Result<Items> {
        let memory = Reservation::new(op, items.len().saturating_mul(size_of::<Value>()))?;
        let all = Items::with_memory(items, Some(memory));
        match all.0.total {
            0..=MOST_ITEMS => Ok(all),
            n => Err(Error::value(
                op,
                format!("a sequence of {n} values, nested ones included, is too long (at most {MOST_ITEMS}); keep data in an array"),
            )),
        }
    }

    fn with_memory(items: Vec<Value>, memory: Option<Reservation>) -> Items {
        let (mut total, mut depth) = (0usize, 1);
        for item in &items {
            let nested = item.sequence();
            total = total.saturating_add(nested.map_or(1, |n| n.0.total.max(1)));
            depth = depth.max(nested.map_or(1, |n| n.0.depth + 1));
        }
        Items(Arc::new(Inner { items, total, depth, _memory: memory }))
    }

    /// Nesting: 1 if no item is a tuple or list.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// Checks that the nesting is not deeper than an array has dimensions.
    pub(crate) fn check_depth(&self, op: &'static str) -> Result<()> {
        match self.depth() {
            0..=MOST_NESTING => Ok(()),
            n => {
                Err(Error::value(op, format!("a sequence nested {n} deep cannot be an array, which has at most {MOST_NESTING} dimensions")))
            }
        }
    }
}

impl Deref for Items {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.0.items
    }
}

impl<'a> IntoIterator for &'a Items {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A few items, as operations return them.
impl From<Vec<Value>> for Items {
    fn from(items: Vec<Value>) -> Items {
        Items::with_memory(items, None)
    }
}

/// A few items, as operations return them.
impl FromIterator<Value> for Items {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Items {
        Items::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.depth() {
            0..=MOST_NESTING => f.debug_list().entries(self.iter()).finish(),
            depth => write!(f, "[{} items, nested {depth} deep]", self.len()),
        }
    }
}

/// Drops nested sequences one after the other: the drop that the compiler derives recurses.
impl Drop for Inner {
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
    fn nesting_needs_no_stack_to_clone_drop_and_show() {
        let mut value = Value::from(1);
        for _ in 0..if cfg!(miri) { 1000 } else { 300_000 } {
            value = Value::List(Items::new("test", vec![value]).unwrap());
        }
        let copy = value.clone();
        drop(value);
        assert!(format!("{copy:?}").contains("nested"));
        assert!(copy.array("test").unwrap_err().to_string().contains("at most 64 dimensions"));
    }

    #[test]
    fn nested_values_are_counted_each_time() {
        let mut value = Value::List(vec![Value::from(1)].into());
        for n in 1.. {
            match Items::new("test", vec![value.clone(), value.clone()]) {
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
