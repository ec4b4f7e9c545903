//! `mgrid`, `ogrid`, `r_` and `c_`: functions whose arguments Python writes as an index, such as `mgrid[0:3, 0:2]`.

use cuprum_core::Scalar;
use cuprum_core::function::IntoValue;
use cuprum_core::ops::python_value::Value;
use cuprum_numpy::{GridPart, GridRange, c_, mgrid, ogrid, r_};

use crate::ast::{Expr, ExprKind, Index, IndexItem, IndexItemKind};
use crate::error::EvalError;
use crate::evaluate::Evaluator;
use crate::library_names::{LibraryItem, SubscriptFunction, lookup_library_item};
use crate::span::Span;
use crate::unlocated_error::{Unlocated, UnlocatedError};

impl Evaluator<'_> {
    /// Returns the function with arguments in brackets, such as `mgrid`, that `base` names in `base[...]`. Returns `None` for any other
    /// expression.
    pub(crate) fn resolve_subscript_function(&self, base: &Expr) -> Option<SubscriptFunction> {
        let name = match &base.kind {
            ExprKind::Name(name) if !self.variables.contains_key(name) => name,
            ExprKind::Global { module, path } if !self.variables.contains_key(module) => path,
            _ => return None,
        };
        match lookup_library_item(name)? {
            LibraryItem::SubscriptFunction(function) => Some(function),
            _ => None,
        }
    }

    /// Returns the value of `function[index]`.
    #[inline(never)]
    pub(crate) fn evaluate_subscript_function(&mut self, function: SubscriptFunction, index: &Index) -> Result<Value, EvalError> {
        let mut parts = Vec::with_capacity(index.items.len());
        for item in &index.items {
            parts.push(self.evaluate_subscript_part(item)?);
        }
        let result = call_subscript_function(function, &parts, index.tuple);
        self.add_position_to_error(index.span, result)
    }

    fn evaluate_subscript_part(&mut self, item: &IndexItem) -> Result<GridPart, EvalError> {
        match &item.kind {
            IndexItemKind::Slice { start, stop, step } => {
                let start = self.evaluate_subscript_bound(start.as_deref(), Some(0), item.span)?;
                let stop = self.evaluate_subscript_bound(stop.as_deref(), None, item.span)?;
                let step = self.evaluate_subscript_bound(step.as_deref(), Some(1), item.span)?;
                Ok(GridRange::new(start, stop, step).into())
            }
            IndexItemKind::Expr(expr) => {
                let value = self.evaluate(expr)?;
                if matches!(value, Value::Str(_)) {
                    let error = UnlocatedError::type_error("directives in strings are not in this version");
                    return self.error_at_span(expr.span, error.with_help("use `concatenate`, `stack` or `column_stack`"));
                }
                let operand = value.operand("r_").map_err(UnlocatedError::from);
                self.add_position_to_error(expr.span, operand).map(GridPart::Operand)
            }
            _ => self.error_at_span(item.span, UnlocatedError::type_error("a grid takes slices, arrays and numbers")),
        }
    }

    /// Evaluates the start, stop or step of a slice. If the part is absent, returns `default`, or an error if there is no default.
    fn evaluate_subscript_bound(&mut self, part: Option<&Expr>, default: Option<i64>, item: Span) -> Result<Scalar, EvalError> {
        match (part, default) {
            (Some(expr), _) => match self.evaluate(expr)? {
                Value::Scalar(number) => Ok(number),
                Value::Array(a) if a.size() == 1 => self.add_position_to_error(expr.span, a.item().map_err(UnlocatedError::from)),
                other => {
                    let message = format!("a bound of a range is a number, not '{}'", other.type_name());
                    self.error_at_span(expr.span, UnlocatedError::type_error(message))
                }
            },
            (None, Some(default)) => Ok(default.into()),
            (None, None) => self.error_at_span(item, UnlocatedError::type_error("a range needs a stop, such as `0:3`")),
        }
    }
}

/// Calls `function`. `is_tuple` is whether the index has a comma: `mgrid[0:3]` is 1-D, while `mgrid[0:3,]` has shape (1, 3).
fn call_subscript_function(function: SubscriptFunction, parts: &[GridPart], is_tuple: bool) -> Unlocated<Value> {
    let ranges = || -> Unlocated<Vec<GridRange>> {
        let range = |part: &GridPart| match part {
            GridPart::Range(range) => Ok(*range),
            GridPart::Operand(_) => Err(UnlocatedError::type_error("a grid takes ranges, such as `0:3`")),
        };
        parts.iter().map(range).collect()
    };
    Ok(match function {
        SubscriptFunction::Rows => r_(parts)?.into(),
        SubscriptFunction::Columns => c_(parts)?.into(),
        SubscriptFunction::Dense | SubscriptFunction::Sparse if !is_tuple => match ranges()?.pop() {
            Some(range) => range.values()?.into(),
            None => Value::None,
        },
        SubscriptFunction::Dense => mgrid(&ranges()?)?.into(),
        SubscriptFunction::Sparse => ogrid(&ranges()?)?.into_value(),
    })
}
