//! Sparse arrays as values of `eval`: attributes, operators and indices.

use std::any::Any;
use std::sync::Arc;

use cuprum_core::expr::elementwise;
use cuprum_core::function::IntoValue;
use cuprum_core::op::Op;
use cuprum_core::ops::elementwise::{ABS, ADD, DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT};
use cuprum_core::ops::python_value::{IndexPart, Object};
use cuprum_core::{Array, Error, IndexItem, Item, NdArray, Operand, Result, Value};

use crate::{
    CooArray, CscArray, CsrArray, DiaArray, SparseArray, elementwise as sparse, format_conversion, products_and_triangular_solve, slicing,
};

impl Object for SparseArray {
    fn type_name(&self) -> &'static str {
        match self {
            SparseArray::Csr(_) => "csr_array",
            SparseArray::Csc(_) => "csc_array",
            SparseArray::Coo(_) => "coo_array",
            SparseArray::Bsr(_) => "bsr_array",
            SparseArray::Dia(_) => "dia_array",
        }
    }

    fn repr(&self) -> String {
        let kind = match self {
            SparseArray::Csr(_) => "Compressed Sparse Row",
            SparseArray::Csc(_) => "Compressed Sparse Column",
            SparseArray::Coo(_) => "COOrdinate",
            SparseArray::Bsr(_) => "Block Sparse Row",
            SparseArray::Dia(_) => "DIAgonal",
        };
        let [rows, columns] = self.extents();
        let count = self.size();
        format!("<{kind} sparse array of dtype '{}'\n\twith {count} stored elements and shape ({rows}, {columns})>", self.dtype())
    }

    fn namespace(&self) -> &'static str {
        "sparray"
    }

    fn as_array(&self) -> Option<&dyn Array> {
        Some(self)
    }

    fn attribute(&self, name: &str) -> Option<Result<Value>> {
        let value = |a: &NdArray| Some(Ok(a.clone().into()));
        match (name, self) {
            ("T", a) => Some(format_conversion::transpose(a).map(IntoValue::into_value)),
            ("nnz", a) => Some(Ok(a.size().into())),
            ("format", a) => Some(Ok(Value::Str(a.format().name().into()))),
            ("data", a) => value(a.data()),
            ("indices", SparseArray::Csr(a)) => value(a.indices()),
            ("indices", SparseArray::Csc(a)) => value(a.indices()),
            ("indices", SparseArray::Bsr(a)) => value(a.indices()),
            ("indptr", SparseArray::Csr(a)) => value(a.indptr()),
            ("indptr", SparseArray::Csc(a)) => value(a.indptr()),
            ("indptr", SparseArray::Bsr(a)) => value(a.indptr()),
            ("row", SparseArray::Coo(a)) => value(a.row()),
            ("col", SparseArray::Coo(a)) => value(a.column()),
            ("offsets", SparseArray::Dia(a)) => value(a.offsets()),
            _ => None,
        }
    }

    fn unary_operator(&self, function: &str) -> Option<Result<Value>> {
        match function {
            "negative" => Some(sparse::apply_unary(NEGATIVE, self).map(IntoValue::into_value)),
            "abs" => Some(sparse::apply_unary(ABS, self).map(IntoValue::into_value)),
            "positive" => Some(Ok(self.clone().into_value())),
            _ => None,
        }
    }

    fn binary_operator(&self, function: &str, other: &Value, is_reflected: bool) -> Option<Result<Value>> {
        if let Some(other) = sparse_from_value(other) {
            let (a, b) = if is_reflected { (other, self) } else { (self, other) };
            return Some(apply_operator_to_sparse_pair(function, a, b));
        }
        match other {
            Value::Array(_) | Value::Scalar(_) | Value::List(_) => Some(apply_with_dense(function, self, other, is_reflected)),
            _ => None,
        }
    }

    fn index(&self, parts: &[IndexPart]) -> Option<Result<Value>> {
        let item = |part: &IndexPart| match part {
            IndexPart::Basic(item) => IndexItem::Basic(*item),
            IndexPart::Array(indices) => IndexItem::Array(indices.clone()),
        };
        Some(match parts {
            [IndexPart::Basic(Item::At(row)), IndexPart::Basic(Item::At(column))] => {
                slicing::element_as_array(self, *row, *column).map(Value::Array)
            }
            [IndexPart::Array(rows), IndexPart::Array(columns)] => slicing::values_at(self, rows, columns).and_then(|values| {
                // As in SciPy, index arrays with two axes give a sparse array.
                let is_csc = matches!(self, SparseArray::Csc(_));
                match values.ndim() {
                    2 if is_csc => Ok(SparseArray::from(CscArray::from_dense(&values)?).into_value()),
                    2 => Ok(SparseArray::from(CsrArray::from_dense(&values)?).into_value()),
                    _ => Ok(Value::Array(values)),
                }
            }),
            parts => slicing::select_rows_and_columns(self, &parts.iter().map(item).collect::<Vec<_>>()).map(IntoValue::into_value),
        })
    }
}

/// Returns the sparse array in `value`, or `None` if it is another kind of value.
pub(crate) fn sparse_from_value(value: &Value) -> Option<&SparseArray> {
    let Value::Object(object) = value else { return None };
    (&**object as &dyn Any).downcast_ref()
}

fn elementwise_op_by_name(function: &str) -> Result<Op> {
    let found = Op::by_name(function).filter(|op| op.arity() == 2 && op.0.rule.is_some());
    found.ok_or_else(|| Error::value("sparray", format!("the operator of `{function}` is not defined for sparse arrays")))
}

/// Applies the binary operator `function`, such as `matmul`, to two sparse arrays.
fn apply_operator_to_sparse_pair(function: &str, a: &SparseArray, b: &SparseArray) -> Result<Value> {
    match function {
        "matmul" => products_and_triangular_solve::matmul_two_sparse(a, b).map(IntoValue::into_value),
        // Where neither array has an element, the quotient is 0 / 0 = NaN. Hence the result is dense.
        "divide" => {
            elementwise(DIVIDE, &[format_conversion::to_dense(a)?.into(), format_conversion::to_dense(b)?.into()]).map(Value::Array)
        }
        function => sparse::apply_binary_with_sparse(elementwise_op_by_name(function)?, a, b).map(IntoValue::into_value),
    }
}

/// Applies the binary operator `function` to a sparse array and a second operand, a dense array or a number. `is_reflected` states that the
/// sparse array is the right operand.
fn apply_with_dense(function: &str, a: &SparseArray, other: &Value, is_reflected: bool) -> Result<Value> {
    let promoted;
    let (a, operand) = match other.operand("sparray")? {
        // A 0-d array takes part in type promotion, unlike a number.
        Operand::Array(b) if b.ndim() == 0 => {
            promoted = format_conversion::astype(a, a.dtype().promote(b.dtype()))?;
            (&promoted, Operand::Scalar(b.item()?))
        }
        operand => (a, operand),
    };
    match (function, operand) {
        ("matmul", Operand::Array(b)) if is_reflected => products_and_triangular_solve::matmul_dense_by_sparse(a, &b).map(Value::Array),
        ("matmul", Operand::Array(b)) => products_and_triangular_solve::matmul_dense(a, &b).map(Value::Array),
        ("matmul", Operand::Scalar(_)) => Err(Error::value("matmul", "the operands must have axes; use `*` for numbers")),
        ("multiply", Operand::Array(b)) => sparse::multiply_or_divide_by_dense(MULTIPLY, a, &b).map(IntoValue::into_value),
        ("divide", Operand::Array(b)) if !is_reflected => sparse::multiply_or_divide_by_dense(DIVIDE, a, &b).map(IntoValue::into_value),
        ("power", Operand::Scalar(s)) if !is_reflected => sparse::power_of_stored_elements(a, s).map(IntoValue::into_value),
        ("add" | "subtract", Operand::Scalar(s)) if !s.as_bool() => {
            let zero = NdArray::scalar_as(s, s.weak_promote(a.dtype()))?;
            let op = if function == "add" { ADD } else { SUBTRACT };
            let dtype = elementwise(op, &[zero.clone().into(), zero.into()])?.dtype();
            let a = format_conversion::astype(a, dtype)?;
            if is_reflected && op == SUBTRACT { sparse::apply_unary(NEGATIVE, &a) } else { Ok(a) }.map(IntoValue::into_value)
        }
        (function, Operand::Scalar(s)) => {
            let a = if function == "multiply" { a.clone() } else { sparse::sum_repeated_elements(a)? };
            sparse::apply_binary_with_scalar(elementwise_op_by_name(function)?, &a, s, is_reflected).map(IntoValue::into_value)
        }
        (function, Operand::Array(b)) if is_reflected => {
            elementwise(elementwise_op_by_name(function)?, &[b.into(), format_conversion::to_dense(a)?.into()]).map(Value::Array)
        }
        (function, Operand::Array(b)) => sparse::apply_binary_with_dense(elementwise_op_by_name(function)?, a, &b).map(Value::Array),
    }
}

impl IntoValue for SparseArray {
    fn into_value(self) -> Value {
        Value::Object(Arc::new(self))
    }
}

macro_rules! into_value {
    ($($Format:ty),*) => {$(
        impl IntoValue for $Format {
            fn into_value(self) -> Value {
                SparseArray::from(self).into_value()
            }
        }
    )*};
}
into_value!(CsrArray, CscArray, CooArray, crate::BsrArray, DiaArray);
