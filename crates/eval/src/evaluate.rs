//! The expression evaluator: computes literals, names, operators, calls and indices.

use std::borrow::Cow;
use std::collections::HashMap;

use cuprum_core::function::{Function, Parameters};
use cuprum_core::ops::python_value::{Args, SequenceItems, Value};
use cuprum_core::{Complex, DType, Item, NdArray};

use crate::assigned_names::AssignedNames;
use crate::ast::{Comparison, Expr, ExprKind, Index, IndexItem, IndexItemKind, KeywordArg};
use crate::attributes_and_methods;
use crate::builtins;
use crate::error::EvalError;
use crate::indexing::{self, IndexPart, SequenceSelection};
use crate::library_names::{self, LibraryItem};
use crate::operators::{BinaryOp, LogicalOp, UnaryOp};
use crate::scalar_operations;
use crate::span::Span;
use crate::unlocated_error::{Unlocated, UnlocatedError};
use crate::value_operators::{apply_binary_value_operator, call_function_by_path, compare_values, python_truth_value};
use crate::value_text;

/// A function that receives each line that `print` writes.
pub(crate) type LinePrinter = Box<dyn FnMut(&str) + Send>;

/// Evaluates expressions of one source text with a set of variables.
pub(crate) struct Evaluator<'a> {
    pub(crate) source: &'a str,
    pub(crate) variables: &'a mut HashMap<String, Value>,
    pub(crate) assigned: &'a mut AssignedNames,
    pub(crate) print: Option<&'a mut LinePrinter>,
    /// Maximum number of elements of an array, tuple or list; see [`Session::limit_elements`](crate::Session::limit_elements).
    pub(crate) max_elements: usize,
}

type Evaluated<T = Value> = Result<T, EvalError>;

/// The resolved target of a call expression.
enum ResolvedCallee<'e> {
    LibraryItem(LibraryItem),
    Method(Value, &'e str),
    Value(Value),
    /// A method of a ufunc, such as `reduce` in `add.reduce`, with the path of the ufunc (`add`).
    UfuncMethod(&'static Function, String),
    Print,
}

impl Evaluator<'_> {
    /// Adds the source position `span` to the error of `result`.
    pub(crate) fn add_position_to_error<T>(&self, span: Span, result: Unlocated<T>) -> Evaluated<T> {
        result.map_err(|error| error.at(self.source, span))
    }

    pub(crate) fn error_at_span<T>(&self, span: Span, error: UnlocatedError) -> Evaluated<T> {
        Err(error.at(self.source, span))
    }

    /// Evaluates `expr`. Returns an error if the size of the value exceeds the limit of the session.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Evaluated {
        let value = self.evaluate_without_size_check(expr)?;
        let size = match &value {
            Value::Array(array) => array.size(),
            // Nested sequences that share their items take little memory, but comparing or printing them visits every position.
            Value::Tuple(items) | Value::List(items) => items.total_value_count(),
            _ => 0,
        };
        if size > self.max_elements { self.value_too_large_error(expr.span, &value) } else { Ok(value) }
    }

    /// Returns the error for a value with more elements than the session permits (`limit_elements`).
    #[cold]
    #[inline(never)]
    fn value_too_large_error(&self, span: Span, value: &Value) -> Evaluated {
        let subject = match value {
            Value::Array(array) => format!("an array of shape {}", cuprum_core::error::shape_text(array.shape())),
            Value::Tuple(items) | Value::List(items) => format!("a {} of {} nested values", value.type_name(), items.total_value_count()),
            _ => value.type_name().into(),
        };
        let message = format!("{subject} has more than {} elements, the limit of the session", self.max_elements);
        self.error_at_span(span, UnlocatedError::value_error(message))
    }

    /// Evaluates `expr` for [`Evaluator::evaluate`], which then checks the size of the value.
    // Inlined, because a separate stack frame would halve the maximum depth of a tree that can be evaluated without stack overflow.
    #[inline(always)]
    fn evaluate_without_size_check(&mut self, expr: &Expr) -> Evaluated {
        match &expr.kind {
            ExprKind::Int(v) => Ok((*v).into()),
            ExprKind::Float(v) => Ok((*v).into()),
            ExprKind::Imaginary(v) => Ok(Complex::new(0.0, *v).into()),
            ExprKind::Str(s) => Ok(Value::Str(s.clone())),
            ExprKind::Bool(b) => Ok((*b).into()),
            ExprKind::None => Ok(Value::None),
            ExprKind::Ellipsis => {
                self.error_at_span(expr.span, UnlocatedError::type_error("`...` has a meaning only in an index, such as `a[..., 0]`"))
            }
            ExprKind::Name(name) => match self.variables.get(name) {
                Some(value) => Ok(value.clone()),
                None => self.library_value(expr.span, name),
            },
            ExprKind::Global { module, path } => match self.variables.get(module) {
                Some(value) => self
                    .evaluate_attribute_chain(expr.span, value.clone(), path)
                    .map_err(|error| add_help_for_shadowed_library(error, module, path)),
                None => self.library_value(expr.span, path),
            },
            ExprKind::Tuple(items) => self.evaluate_sequence_items(expr.span, "tuple", items).map(Value::Tuple),
            ExprKind::List(items) => self.evaluate_sequence_items(expr.span, "list", items).map(Value::List),
            ExprKind::Unary { op, operand } => self.evaluate_unary(expr.span, *op, operand),
            ExprKind::Binary { op, op_span, left, right } => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                self.add_position_to_error(*op_span, apply_binary_value_operator(*op, left, right))
            }
            ExprKind::Compare { first, rest } => self.evaluate_comparison_chain(first, rest),
            ExprKind::Logical { op, values } => self.evaluate_logical(*op, values),
            ExprKind::Conditional { test, then, otherwise } => {
                let chosen = if self.evaluate_truth_value(test)? { then } else { otherwise };
                self.evaluate(chosen)
            }
            ExprKind::Call { callee, args, keywords } => self.evaluate_call(expr.span, callee, args, keywords),
            ExprKind::Attribute { base, name, name_span } => match self.find_unprefixed_library_name(expr) {
                Some(path) => self.library_value(expr.span, &path),
                None => {
                    let object = self.evaluate(base)?;
                    self.add_position_to_error(*name_span, attributes_and_methods::get_attribute(&object, name))
                }
            },
            ExprKind::Index { base, index } => match self.resolve_subscript_function(base) {
                Some(function) => self.evaluate_subscript_function(function, index),
                None => {
                    let object = self.evaluate(base)?;
                    self.evaluate_index(object, index)
                }
            },
        }
    }

    fn evaluate_expressions(&mut self, exprs: &[Expr]) -> Evaluated<Vec<Value>> {
        exprs.iter().map(|e| self.evaluate(e)).collect()
    }

    /// Evaluates the positional arguments of a call. A function as an argument, as in `apply_along_axis(np.sum, 1, a)`, is passed as a
    /// string: its path.
    fn evaluate_arguments(&mut self, target: &ResolvedCallee, args: &[Expr]) -> Evaluated<Vec<Value>> {
        let argument = |arg| match self.path_of_function_argument(target, arg) {
            Some(path) => Ok(path),
            None => self.evaluate(arg),
        };
        args.iter().map(argument).collect()
    }

    /// Returns the path of the function that `arg` names, if `target` takes functions as arguments, as `apply_along_axis` does. Returns
    /// `None` otherwise.
    fn path_of_function_argument(&self, target: &ResolvedCallee, arg: &Expr) -> Option<Value> {
        let ResolvedCallee::LibraryItem(LibraryItem::Function(function)) = target else { return None };
        if !function.takes_functions() {
            return None;
        }
        let path = self
            .declared_function_path(arg)
            .or_else(|| self.find_unprefixed_library_name(arg).filter(|path| Function::find(path).is_some()));
        path.map(Value::Str)
    }

    fn evaluate_sequence_items(&mut self, span: Span, kind: &'static str, exprs: &[Expr]) -> Evaluated<SequenceItems> {
        let values = self.evaluate_expressions(exprs)?;
        self.add_position_to_error(span, SequenceItems::new(kind, values).map_err(UnlocatedError::from))
    }

    /// Returns the path of a library name written without a prefix, such as `linalg.norm`. `None` if `expr` is not such a name.
    fn find_unprefixed_library_name(&self, expr: &Expr) -> Option<String> {
        let path = expr.dotted_name()?;
        let head = path.split('.').next()?;
        let of_library = || library_names::lookup_library_item(&path).is_some() || library_names::is_library_namespace(head);
        (!self.variables.contains_key(head) && of_library()).then_some(path)
    }

    /// Returns the value of a library name that is not called, such as `pi` or `float32`.
    fn library_value(&self, span: Span, path: &str) -> Evaluated {
        match library_names::lookup_library_item(path) {
            Some(LibraryItem::Constant(v)) => Ok(v.into()),
            Some(LibraryItem::NewAxis) => Ok(Value::None),
            Some(LibraryItem::LittleEndian) => Ok(cfg!(target_endian = "little").into()),
            Some(LibraryItem::NumpyBool(b)) => {
                self.add_position_to_error(span, NdArray::scalar_as(b, DType::Bool).map(Value::Array).map_err(UnlocatedError::from))
            }
            Some(LibraryItem::TypeClass(name)) => Ok(Value::Str(name.into())),
            Some(LibraryItem::SubscriptFunction(_)) => self.error_at_span(
                span,
                UnlocatedError::type_error(format!("`{path}` takes its arguments in brackets"))
                    .with_help(format!("write `{path}[0:3, 0:2]`")),
            ),
            Some(LibraryItem::DType(d)) => Ok(Value::DType(d)),
            Some(LibraryItem::Function(_) | LibraryItem::Builtin(..)) => self.error_at_span(
                span,
                UnlocatedError::type_error(format!("`{path}` is a function")).with_help(format!("call it: `{path}(...)`")),
            ),
            None => self.error_at_span(span, self.unknown_name_error(path)),
        }
    }

    fn unknown_name_error(&self, path: &str) -> UnlocatedError {
        library_names::unknown_name_error(path, self.variables.keys().map(String::as_str))
    }

    fn evaluate_attribute_chain(&self, span: Span, value: Value, path: &str) -> Evaluated {
        path.split('.')
            .try_fold(value, |object, name| self.add_position_to_error(span, attributes_and_methods::get_attribute(&object, name)))
    }

    fn evaluate_unary(&mut self, span: Span, op: UnaryOp, operand: &Expr) -> Evaluated {
        if op == UnaryOp::Not {
            return Ok((!self.evaluate_truth_value(operand)?).into());
        }
        let value = self.evaluate(operand)?;
        let of_object = if let Value::Object(object) = &value { object.unary_operator(op.function()) } else { None };
        let result = match (&value, of_object) {
            (_, Some(result)) => result.map_err(UnlocatedError::from),
            (Value::Scalar(s), None) => scalar_operations::apply_unary_scalar_operator(op, *s).map(Value::from),
            (Value::Array(_), None) => call_function_by_path(op.function(), vec![value]),
            (other, None) => {
                Err(UnlocatedError::type_error(format!("bad operand type for unary {}: '{}'", op.symbol(), other.type_name())))
            }
        };
        self.add_position_to_error(span, result)
    }

    /// Evaluates a comparison chain: `a < b <= c` is `a < b and b <= c`.
    fn evaluate_comparison_chain(&mut self, first: &Expr, rest: &[Comparison]) -> Evaluated {
        let mut left_expr = first;
        let mut left = self.evaluate(first)?;
        for (i, Comparison { op, op_span, right: right_expr }) in rest.iter().enumerate() {
            let right = self.evaluate(right_expr)?;
            let result = self.add_position_to_error(*op_span, compare_values(*op, &left, &right))?;
            if i + 1 == rest.len() {
                return Ok(result);
            }
            let span = left_expr.span.to(right_expr.span);
            let holds = self.add_position_to_error(
                span,
                python_truth_value(&result).map_err(|error| error.with_help(comparison_chain_help(first, rest))),
            )?;
            if !holds {
                return Ok(result);
            }
            (left, left_expr) = (right, right_expr);
        }
        Ok(left)
    }

    fn evaluate_logical(&mut self, op: LogicalOp, values: &[Expr]) -> Evaluated {
        let (last, before) = match values.split_last() {
            Some(parts) => parts,
            None => return Ok(Value::None),
        };
        for expr in before {
            let value = self.evaluate(expr)?;
            let symbol = if op == LogicalOp::And { "&" } else { "|" };
            let help = || format!("on arrays, use `{symbol}` with each side in parentheses, or `{}`", op.function());
            let holds = self.add_position_to_error(expr.span, python_truth_value(&value).map_err(|error| error.with_help(help())))?;
            if holds == (op == LogicalOp::Or) {
                return Ok(value);
            }
        }
        self.evaluate(last)
    }

    fn evaluate_truth_value(&mut self, expr: &Expr) -> Evaluated<bool> {
        let value = self.evaluate(expr)?;
        self.add_position_to_error(expr.span, python_truth_value(&value))
    }

    fn evaluate_call(&mut self, span: Span, callee: &Expr, args: &[Expr], keywords: &[KeywordArg]) -> Evaluated {
        let target = self.evaluate_callee(callee)?;
        let positional = self.evaluate_arguments(&target, args)?;
        let mut keyword = Vec::with_capacity(keywords.len());
        for k in keywords {
            let value = match self.path_of_function_argument(&target, &k.value) {
                Some(path) => path,
                None => self.evaluate(&k.value)?,
            };
            keyword.push((k.name.clone(), value));
        }
        if let (ExprKind::Name(name), ResolvedCallee::LibraryItem(_)) = (&callee.kind, &target)
            && let Some(value) = self.add_position_to_error(span, builtins::try_call_python_builtin(name, &positional, &keyword))?
        {
            return Ok(value);
        }
        let out = find_out_argument(&target, args, keywords);
        let updated = argument_updated_in_place(&target, callee, args, keywords);
        let overwritten = argument_overwritten_by_flag(&target, callee, args, keywords, &positional, &keyword);
        let result = match target {
            ResolvedCallee::LibraryItem(LibraryItem::Function(function)) => {
                function.call(positional, keyword).map_err(UnlocatedError::from)
            }
            ResolvedCallee::LibraryItem(LibraryItem::Builtin(name, _)) if !keyword.is_empty() => {
                Err(UnlocatedError::type_error(format!("{name}() takes no keyword arguments")))
            }
            ResolvedCallee::LibraryItem(LibraryItem::Builtin(_, call)) => call(&positional),
            ResolvedCallee::LibraryItem(LibraryItem::DType(d)) | ResolvedCallee::Value(Value::DType(d)) => {
                call_dtype_as_function(d, positional, keyword)
            }
            ResolvedCallee::LibraryItem(
                LibraryItem::Constant(_)
                | LibraryItem::NewAxis
                | LibraryItem::LittleEndian
                | LibraryItem::NumpyBool(_)
                | LibraryItem::TypeClass(_)
                | LibraryItem::SubscriptFunction(_),
            ) => Err(UnlocatedError::type_error("a constant cannot be called")),
            ResolvedCallee::UfuncMethod(function, ufunc) => {
                keyword.push(("ufunc".into(), Value::Str(ufunc)));
                function.call(positional, keyword).map_err(UnlocatedError::from)
            }
            ResolvedCallee::Method(object, name) => attributes_and_methods::call_method(object, name, positional, keyword),
            ResolvedCallee::Value(value) => return self.error_at_span(callee.span, not_callable_error(callee, &value)),
            ResolvedCallee::Print => self.print_values(&positional, &keyword),
        };
        let value = self.add_position_to_error(span, result).map_err(|error| match &callee.kind {
            // The methods of an array have the same names as the library's functions.
            ExprKind::Global { module, path } if self.variables.get(module).is_some_and(|value| !matches!(value, Value::Array(_))) => {
                add_help_for_shadowed_library(error, module, path)
            }
            _ => error,
        })?;
        if let Some(out) = out {
            self.assign_to_out_variables(out, &value)?;
        }
        if let Some(argument) = overwritten {
            self.assign_to_out_variables(&argument, &value)?;
        }
        match updated {
            Some(argument) => self.assign_to_out_variables(&argument, &value).map(|()| Value::None),
            None => Ok(value),
        }
    }

    /// Stores `value`, the result of a call, in the variable or the slice of a variable that the expression `out` names. `out` is the
    /// argument `out` of the call, or the argument that the function updates in place. A tuple names several targets. Returns an error for
    /// other expressions that may alias a variable.
    fn assign_to_out_variables(&mut self, out: &Expr, value: &Value) -> Evaluated<()> {
        match (&out.kind, value) {
            (ExprKind::Tuple(outs), Value::Tuple(values)) => {
                outs.iter().zip(values).try_for_each(|(out, value)| self.assign_to_out_variables(out, value))
            }
            (ExprKind::Tuple(outs), value) if outs.len() == 1 => self.assign_to_out_variables(&outs[0], value),
            // If the variable given as `out` is `None`, there is no array to update.
            (ExprKind::Name(name), _) if matches!(self.variables.get(name), Some(Value::None)) => Ok(()),
            (ExprKind::Name(name), value) if !matches!(self.variables.get(name), Some(Value::Tuple(_))) => {
                self.assigned.record(name);
                self.variables.insert(name.clone(), value.clone());
                Ok(())
            }
            (ExprKind::Index { base, index }, value) => match self.try_assign_to_view(base, index, value)? {
                true => Ok(()),
                false => self.updated_array_must_be_name_error(out),
            },
            (ExprKind::Name(_) | ExprKind::Attribute { .. }, _) => self.updated_array_must_be_name_error(out),
            _ if self.may_alias_variable(out) => self.updated_array_must_be_name_error(out),
            _ => Ok(()), // a new array without a name
        }
    }

    fn updated_array_must_be_name_error(&self, out: &Expr) -> Evaluated<()> {
        let error = UnlocatedError::type_error("the updated array must be a variable or a slice of one");
        self.error_at_span(out.span, error.with_help("update a variable, or write the result back: `x[index] = ...`"))
    }

    /// Returns whether the value of `expr` can be an array of a variable, or a view of one.
    fn may_alias_variable(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) | ExprKind::Global { module: name, .. } => {
                matches!(self.variables.get(name), Some(Value::Array(_) | Value::Tuple(_) | Value::List(_)))
            }
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Logical { values: items, .. } => {
                items.iter().any(|item| self.may_alias_variable(item))
            }
            ExprKind::Conditional { then, otherwise, .. } => self.may_alias_variable(then) || self.may_alias_variable(otherwise),
            ExprKind::Attribute { base, .. } | ExprKind::Index { base, .. } => self.may_alias_variable(base),
            ExprKind::Call { callee, .. } if Self::returns_new_array(callee) => false,
            ExprKind::Call { callee, args, keywords } => {
                let mut arguments = args.iter().chain(keywords.iter().map(|k| &k.value));
                self.may_alias_variable(callee) || arguments.any(|argument| self.may_alias_variable(argument))
            }
            _ => false, // literals, and operators, whose results are new arrays
        }
    }

    /// Returns whether `callee` is a function or method that creates an array, such as `np.empty_like`.
    fn returns_new_array(callee: &Expr) -> bool {
        let path = match &callee.kind {
            ExprKind::Name(path) | ExprKind::Global { path, .. } | ExprKind::Attribute { name: path, .. } => path,
            _ => return false,
        };
        let name = path.rsplit('.').next().unwrap_or(path);
        matches!(name, "empty" | "zeros" | "ones" | "full" | "empty_like" | "zeros_like" | "ones_like" | "full_like")
            || matches!(name, "array" | "copy" | "astype" | "arange" | "linspace" | "eye" | "identity")
    }

    fn print_values(&mut self, values: &[Value], keyword: &[(String, Value)]) -> Unlocated<Value> {
        let Some(print) = &mut self.print else {
            return Err(UnlocatedError::name_error("`print` has no output here").with_help("end with the expression whose value is wanted"));
        };
        let mut separator = " ";
        for (name, value) in keyword {
            match (&name[..], value) {
                ("sep", Value::Str(text)) => separator = text,
                ("sep" | "end", Value::None) | ("flush", _) => {}
                ("end", Value::Str(text)) if text == "\n" => {}
                ("sep", _) => return Err(UnlocatedError::type_error("sep must be a string")),
                _ => return Err(UnlocatedError::type_error(format!("print does not support `{name}=`; it takes `sep=`"))),
            }
        }
        let texts: Vec<String> = values.iter().map(value_text::display).collect::<Result<_, _>>()?;
        print(&texts.join(separator));
        Ok(Value::None)
    }

    fn evaluate_callee<'e>(&mut self, callee: &'e Expr) -> Evaluated<ResolvedCallee<'e>> {
        match &callee.kind {
            ExprKind::Name(name) if self.variables.contains_key(name) => self.evaluate(callee).map(ResolvedCallee::Value),
            ExprKind::Name(name) if name == "print" => Ok(ResolvedCallee::Print),
            ExprKind::Name(name) => self.resolve_library_callee(callee.span, name),
            ExprKind::Global { module, path } => match self.variables.get(module) {
                None => self.resolve_library_callee(callee.span, path),
                // A variable has the name of the library prefix, such as `xp`, so `xp.sum()` is a method call on the variable.
                Some(value) => match path.rsplit_once('.') {
                    Some((before, name)) => {
                        Ok(ResolvedCallee::Method(self.evaluate_attribute_chain(callee.span, value.clone(), before)?, name))
                    }
                    None => Ok(ResolvedCallee::Method(value.clone(), path)),
                },
            },
            ExprKind::Attribute { base, name, .. } => {
                match (self.find_unprefixed_library_name(callee), self.declared_function_path(base)) {
                    (Some(path), _) => self.resolve_library_callee(callee.span, &path),
                    (None, Some(ufunc)) => match Function::find(&format!("ufunc.{name}")) {
                        Some(method) => Ok(ResolvedCallee::UfuncMethod(method, ufunc)),
                        None => {
                            let error = UnlocatedError::type_error(format!("functions have no method `{name}`"));
                            let methods = ["reduce", "accumulate", "reduceat", "outer", "at"];
                            let near = library_names::nearest_name(name, methods.into_iter());
                            self.error_at_span(
                                callee.span,
                                error.with_help(match near {
                                    Some(near) => format!("did you mean `{near}`?"),
                                    None => format!("the methods are {}", methods.join(", ")),
                                }),
                            )
                        }
                    },
                    (None, None) => Ok(ResolvedCallee::Method(self.evaluate(base)?, name)),
                }
            }
            _ => self.evaluate(callee).map(ResolvedCallee::Value),
        }
    }

    /// Returns the path if `expr` names a declared function, such as `add` in `add.reduce(x)`, and `None` otherwise.
    fn declared_function_path(&self, expr: &Expr) -> Option<String> {
        let path = match &expr.kind {
            ExprKind::Name(name) if !self.variables.contains_key(name) => name,
            ExprKind::Global { module, path } if !self.variables.contains_key(module) => path,
            _ => return None,
        };
        Function::find(path).map(|_| path.clone())
    }

    fn resolve_library_callee<'e>(&self, span: Span, path: &str) -> Evaluated<ResolvedCallee<'e>> {
        match library_names::lookup_library_item(path) {
            Some(member) => Ok(ResolvedCallee::LibraryItem(member)),
            None => self.error_at_span(span, self.unknown_name_error(path)),
        }
    }

    /// Evaluates the items between the brackets of an index.
    pub(crate) fn evaluate_index_parts(&mut self, index: &Index) -> Evaluated<Vec<IndexPart>> {
        let mut parts = Vec::with_capacity(index.items.len());
        for item in &index.items {
            match &item.kind {
                IndexItemKind::Expr(expr) => match self.evaluate(expr)? {
                    // If `pair` is a variable with a tuple value, `a[pair]` means `a[pair[0], pair[1]]`. In `a[pair,]`, it is an index
                    // array.
                    Value::Tuple(values) if index.items.len() == 1 && !index.tuple => {
                        for value in &values {
                            parts.push(self.add_position_to_error(item.span, indexing::value_to_index_part(value))?);
                        }
                    }
                    value => parts.push(self.add_position_to_error(item.span, indexing::value_to_index_part(&value))?),
                },
                _ => parts.push(IndexPart::Basic(self.evaluate_slice(item)?)),
            }
        }
        Ok(parts)
    }

    fn evaluate_index(&mut self, object: Value, index: &Index) -> Evaluated {
        let parts = self.evaluate_index_parts(index)?;
        let result = match &object {
            Value::Array(a) => indexing::index_array(a, &parts).map(Value::Array),
            Value::Tuple(items) | Value::List(items) => indexing::index_sequence(items, &parts).map(|selected| match (selected, &object) {
                (SequenceSelection::One(value), _) => value,
                (SequenceSelection::Many(values), Value::Tuple(_)) => Value::Tuple(values.into()),
                (SequenceSelection::Many(values), _) => Value::List(values.into()),
            }),
            Value::Object(indexed) => match indexed.index(&parts) {
                Some(result) => result.map_err(indexing::convert_index_error),
                None => Err(UnlocatedError::type_error(format!("'{}' cannot be indexed", object.type_name()))),
            },
            other => Err(UnlocatedError::type_error(format!("'{}' cannot be indexed", other.type_name()))),
        };
        self.add_position_to_error(index.span, result)
    }

    fn evaluate_slice(&mut self, item: &IndexItem) -> Evaluated<Item> {
        let IndexItemKind::Slice { start, stop, step } = &item.kind else {
            return Ok(if matches!(item.kind, IndexItemKind::NewAxis) { Item::NewAxis } else { Item::Ellipsis });
        };
        let mut bound = |part: &Option<Box<Expr>>| match part {
            None => Ok(None),
            Some(expr) => {
                let value = self.evaluate(expr)?;
                self.add_position_to_error(expr.span, indexing::value_to_slice_bound(&value))
            }
        };
        Ok(Item::Slice { start: bound(start)?, stop: bound(stop)?, step: bound(step)?.unwrap_or(1) })
    }
}

/// Returns the argument expression for the parameter `out` of the function or method `callee`, if the call has one.
fn find_out_argument<'e>(callee: &ResolvedCallee, args: &'e [Expr], keywords: &'e [KeywordArg]) -> Option<&'e Expr> {
    let (function, receiver) = match callee {
        ResolvedCallee::LibraryItem(LibraryItem::Function(function)) | ResolvedCallee::UfuncMethod(function, _) => (Some(*function), 0),
        ResolvedCallee::Method(_, name) => (attributes_and_methods::find_method_function(name), 1),
        _ => (None, 0),
    };
    let keyword = keywords.iter().find(|k| k.name == "out").map(|k| &k.value);
    let positional = || args.get(function?.out_argument_position()?.checked_sub(receiver)?);
    keyword.or_else(positional)
}

/// Returns the argument expression that a function or method updates in place, such as `a` in `put(a, i, v)`. Returns `None` if the
/// function updates no argument.
fn argument_updated_in_place<'e>(
    target: &ResolvedCallee,
    callee: &'e Expr,
    args: &'e [Expr],
    keywords: &'e [KeywordArg],
) -> Option<Cow<'e, Expr>> {
    let argument = |name: Option<&str>| args.first().or_else(|| keywords.iter().find(|k| Some(&k.name[..]) == name).map(|k| &k.value));
    match target {
        ResolvedCallee::LibraryItem(LibraryItem::Function(function)) | ResolvedCallee::UfuncMethod(function, _)
            if function.updates_argument =>
        {
            argument(function.parameters.text.split(',').next().map(str::trim)).map(Cow::Borrowed)
        }
        ResolvedCallee::Method(Value::Object(object), name)
            if attributes_and_methods::find_object_method(&**object, name).is_some_and(|function| function.updates_argument) =>
        {
            argument(Some("x")).map(Cow::Borrowed)
        }
        ResolvedCallee::Method(_, name)
            if attributes_and_methods::find_method_function(name).is_some_and(|function| function.updates_argument) =>
        {
            method_receiver(callee)
        }
        _ => None,
    }
}

/// Returns the expression of the array whose method `callee` is, such as `x` for `x.fill`.
fn method_receiver(callee: &Expr) -> Option<Cow<'_, Expr>> {
    match &callee.kind {
        ExprKind::Attribute { base, .. } => Some(Cow::Borrowed(base)),
        // The library prefix is the name of a variable, as in `xp.fill(0)` or `xp.T.fill(0)` with an array `xp`.
        ExprKind::Global { module, path } => Some(Cow::Owned(match path.rsplit_once('.') {
            Some((base, _)) => Expr::new(ExprKind::Global { module: module.clone(), path: base.into() }, callee.span),
            None => Expr::new(ExprKind::Name(module.clone()), callee.span),
        })),
        _ => None,
    }
}

/// Returns the argument expression that the result overwrites because of a flag, as in `nan_to_num(x, copy=False)` and
/// `x.byteswap(inplace=True)`. The call also returns the result. Returns `None` without such a flag, or if the argument is not an array.
fn argument_overwritten_by_flag<'e>(
    target: &ResolvedCallee,
    callee: &'e Expr,
    args: &'e [Expr],
    keywords: &'e [KeywordArg],
    positional: &[Value],
    keyword: &[(String, Value)],
) -> Option<Cow<'e, Expr>> {
    let argument = |at: usize, name: &str| positional.get(at).or_else(|| Some(&keyword.iter().find(|(key, _)| key == name)?.1));
    let is_true = |value: &Value| python_truth_value(value).unwrap_or(false);
    match target {
        ResolvedCallee::LibraryItem(LibraryItem::Function(function)) if function.name == "nan_to_num" => {
            let is_array = matches!(argument(0, "x"), Some(Value::Array(_)));
            let expr = args.first().or_else(|| Some(&keywords.iter().find(|k| k.name == "x")?.value));
            expr.filter(|_| is_array && argument(1, "copy").is_some_and(|copy| !is_true(copy))).map(Cow::Borrowed)
        }
        ResolvedCallee::Method(Value::Array(_), "byteswap") if argument(0, "inplace").is_some_and(is_true) => method_receiver(callee),
        _ => None,
    }
}

/// Returns the advice for a comparison chain of arrays. For example, `a > 0 & b < 3` parses as the chain `a > (0 & b) < 3`.
fn comparison_chain_help(first: &Expr, rest: &[Comparison]) -> &'static str {
    let bitwise = |e: &Expr| {
        let op = if let ExprKind::Binary { op, .. } = &e.kind { Some(*op) } else { None };
        matches!(op, Some(BinaryOp::BitAnd | BinaryOp::BitOr)) && !e.is_parenthesized()
    };
    if bitwise(first) || rest.iter().any(|c| bitwise(&c.right)) {
        "`&` and `|` bind tighter than comparisons: write `(a > 0) & (b < 3)`"
    } else {
        "a chain is for single values; on arrays write `(a < b) & (b < c)`"
    }
}

/// Calls a dtype as a function: `np.float32(x)` converts an array, a number or a nested list.
fn call_dtype_as_function(dtype: DType, positional: Vec<Value>, keyword: Vec<(String, Value)>) -> Unlocated<Value> {
    static DTYPE_CALL_PARAMETERS: Parameters = Parameters::new("x=0");
    let args = Args::bind(dtype.name(), &DTYPE_CALL_PARAMETERS, positional, keyword)?;
    Ok(args.get("x").unwrap_or(&Value::from(0)).array_as(dtype.name(), Some(dtype))?.into())
}

/// Adds advice to an error about `module.path` if a variable has the name of the library prefix `module`.
#[cold]
#[inline(never)]
fn add_help_for_shadowed_library(error: EvalError, module: &str, path: &str) -> EvalError {
    match error.help() {
        None if library_names::lookup_library_item(path).is_some() => {
            error.with_help(format!("`{module}` is a variable here; the library's `{path}` needs no prefix"))
        }
        _ => error,
    }
}

fn not_callable_error(callee: &Expr, value: &Value) -> UnlocatedError {
    let error = UnlocatedError::type_error(format!("'{}' cannot be called", value.type_name()));
    match &callee.kind {
        ExprKind::Name(name) if library_names::lookup_library_item(name).is_some() => {
            error.with_help(format!("`{name}` is a variable here; the function is `np.{name}`"))
        }
        _ => error.with_help("to multiply, write `*` between; to index, use `[...]`"),
    }
}
