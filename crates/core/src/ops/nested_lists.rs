//! Conversion of [`Value`]s to arrays: of numbers, nested lists of numbers, and lists of arrays.

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_buffer::HostBuffer;
use crate::ops::manipulation::stack;
use crate::ops::python_value::{SequenceItems, Value};
use crate::scalar::Scalar;

impl Value {
    /// Converts the value to an array (`numpy.asarray`). Scalars become 0-d, nested lists are stacked.
    ///
    /// # Errors
    /// A value that is neither an array nor a number nor a list of numbers, lists of unequal lengths, or too deep nesting.
    pub fn array(&self, op: &'static str) -> Result<NdArray> {
        self.array_as(op, None)
    }

    /// Converts the value to an array of a given dtype (`numpy.asarray(a, dtype)`).
    ///
    /// # Errors
    /// The errors of [`Value::array`], or a number that the dtype cannot hold.
    pub fn array_as(&self, op: &'static str, dtype: Option<DType>) -> Result<NdArray> {
        match self {
            Value::Array(a) => dtype.map_or(Ok(a.clone()), |d| a.astype(d)),
            Value::Scalar(s) => {
                let dtype = dtype.unwrap_or(s.default_dtype());
                NdArray::scalar_as(s.to_checked_element(op, dtype)?, dtype)
            }
            Value::Tuple(items) | Value::List(items) => array_from_nested(op, items, dtype),
            other => Err(Error::value(op, format!("expected an array, not {}", other.type_name()))),
        }
    }
}

/// A visitor of the numbers in nested lists. It calls `leaf` for each number in order, and records the shape. Each axis is one level of
/// recursion.
struct NestedNumberVisitor<'a> {
    op: &'static str,
    shape: Vec<usize>,
    count: usize,
    leaf: &'a mut dyn FnMut(Scalar, DType) -> Result<()>,
}

impl NestedNumberVisitor<'_> {
    fn visit_nested_numbers(&mut self, items: &[Value], depth: usize) -> Result<()> {
        let op = self.op;
        let ragged = || Error::value(op, "nested lists must all have the same lengths");
        if self.shape.len() <= depth {
            if self.count > 0 {
                return Err(ragged());
            }
            self.shape.push(items.len());
        } else if self.shape[depth] != items.len() {
            return Err(ragged());
        }
        for item in items {
            let (number, dtype) = match item {
                Value::Tuple(inner) | Value::List(inner) => {
                    self.visit_nested_numbers(inner, depth + 1)?;
                    continue;
                }
                _ if self.shape.len() > depth + 1 => return Err(ragged()),
                Value::Scalar(s) => (*s, s.default_dtype()),
                Value::Array(a) if a.ndim() == 0 => (a.item()?, a.dtype()),
                other => return Err(Error::value(op, format!("expected numbers in a list, not {}", other.type_name()))),
            };
            self.count += 1;
            (self.leaf)(number, dtype)?;
        }
        Ok(())
    }
}

/// Converts nested lists of numbers, or of arrays of equal shape, to an array.
fn array_from_nested(op: &'static str, items: &SequenceItems, dtype: Option<DType>) -> Result<NdArray> {
    items.check_nesting_depth(op)?;
    if items.iter().any(|i| matches!(i, Value::Array(a) if a.ndim() > 0)) {
        let arrays: Result<Vec<NdArray>> = items.iter().map(|i| i.array_as(op, dtype)).collect();
        return stack(&arrays?, 0).map_err(|e| e.with_function_name(op));
    }
    let mut natural: Option<DType> = None;
    let given = dtype;
    let mut promote = |number: Scalar, dtype| {
        // NumPy gives a list with an int outside the range of 64 bits the dtype object, even if the list also has floats. Such an int is an
        // error here.
        if given.is_none() {
            number.check_fits_dtype(op, dtype)?;
        }
        natural = Some(natural.map_or(dtype, |d| d.promote(dtype)));
        Ok(())
    };
    let mut leaves = NestedNumberVisitor { op, shape: Vec::new(), count: 0, leaf: &mut promote };
    leaves.visit_nested_numbers(items, 0)?;
    let (shape, count) = (leaves.shape, leaves.count);
    let dtype = dtype.or(natural).unwrap_or(DType::F64);
    let item = dtype.itemsize();
    let mut host = HostBuffer::uninit(count * item)?;
    let mut slots = host.as_mut_bytes()?.chunks_exact_mut(item);
    let mut store = |number: Scalar, _| {
        if let Some(slot) = slots.next() {
            slot.copy_from_slice(&number.to_checked_element(op, dtype)?.to_bytes(dtype)[..item]);
        }
        Ok(())
    };
    NestedNumberVisitor { op, shape: Vec::new(), count: 0, leaf: &mut store }.visit_nested_numbers(items, 0)?;
    NdArray::from_c_order_buffer(dtype, &shape, host)
}
