//! Conversion of Rust functions and their signatures to typed [`Function`]s.

use std::rc::Rc;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{AttrStyle, Error, FnArg, GenericParam, Item, ItemFn, Lit, Pat, Result, ReturnType, TypeParamBound, UnOp};

use super::constant_tables::parse_constant_table;
use crate::syntax_tree::{ConstantTable, Cost, Function, Parameter, ParameterKind, ReductionIdentity, Statement, Variable};
use crate::type_inference::{GenericBound, PrimitiveType, Type, TypeInference, TypeVariable};

/// Maximum number of arguments of the generated function, equal to `MAX_ARITY` of the crate `cuprum_core`.
const MAX_ARITY: usize = 8;

/// Reads the functions and constant tables of a `kernel!` block. Reports the errors of all functions together.
pub fn convert_functions(file: syn::File) -> Result<Vec<Function>> {
    let mut functions: Vec<Function> = Vec::new();
    let mut tables: Vec<Rc<ConstantTable>> = Vec::new();
    let mut error = file.attrs.first().map(misplaced_attribute_error);
    for item in file.items {
        let read = match item {
            Item::Fn(function) => FunctionConverter::convert_function(function, &functions, &tables),
            Item::Const(constant) => match parse_constant_table(&constant) {
                Ok(table) => {
                    tables.push(Rc::new(table));
                    continue;
                }
                Err(e) => Err(e),
            },
            other => Err(Error::new(other.span(), "a kernel is a function: `fn name<T: Float>(x: T) -> T { .. }`")),
        };
        match read {
            Ok(function) => functions.push(function),
            Err(e) => match &mut error {
                Some(all) => all.combine(e),
                None => error = Some(e),
            },
        }
    }
    error.map_or(Ok(functions), Err)
}

/// Converts one function of a `kernel!` block: its signature, then its body.
pub(super) struct FunctionConverter<'f> {
    pub(super) inference: TypeInference,
    pub(super) generic: Option<Ident>,
    pub(super) variables: Vec<Variable>,
    pub(super) parameters: Vec<Parameter>,
    /// Names in scope with the indices of their variables, innermost scope last.
    pub(super) scope: Vec<(String, usize)>,
    pub(super) earlier: &'f [Function],
    pub(super) calls: Vec<usize>,
    /// Tables of the block.
    pub(super) tables: &'f [Rc<ConstantTable>],
    /// Tables that the function reads.
    pub(super) used_tables: Vec<Rc<ConstantTable>>,
    pub(super) cost: Cost,
    pub(super) operations: usize,
    pub(super) result: TypeVariable,
    /// The type variable, digits and span of each literal. [`FunctionConverter::check_literal_ranges`] checks that each literal is in the
    /// range of its type.
    pub(super) literals: Vec<(TypeVariable, String, Span)>,
    /// Number of loops around the current statement.
    pub(super) loops: usize,
    /// Number of variables declared outside the current expression. Blocks inside an expression cannot assign to these variables.
    pub(super) outer_variables: usize,
}

impl FunctionConverter<'_> {
    fn convert_function(mut item: ItemFn, earlier: &[Function], tables: &[Rc<ConstantTable>]) -> Result<Function> {
        let identity = take_reduction_attribute(&mut item.attrs)?;
        let is_helper = take_helper_attribute(&mut item)?;
        let is_rust_only = take_attribute_without_arguments(&mut item.attrs, "rust_only")?.is_some();
        let sig = &item.sig;
        for (wrong, what) in [
            (sig.constness.map(|t| t.span()), "const"),
            (sig.asyncness.map(|t| t.span()), "async"),
            (sig.unsafety.map(|t| t.span()), "unsafe"),
            (sig.abi.as_ref().map(|t| t.span()), "extern"),
            (sig.variadic.as_ref().map(|t| t.span()), "variadic"),
        ] {
            if let Some(span) = wrong {
                return Err(Error::new(span, format!("a kernel is not {what}")));
            }
        }
        if sig.ident == "index" {
            return Err(Error::new(sig.ident.span(), "`index` is reserved for the index of the element"));
        }
        if let Some(attr) = item.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")) {
            return Err(Error::new(
                attr.span(),
                "`cfg` is not supported here: put the function into a separate `kernel!` block with this attribute",
            ));
        }
        if let Some(inner) = item.attrs.iter().find(|a| matches!(a.style, AttrStyle::Inner(_))) {
            return Err(misplaced_attribute_error(inner));
        }
        if let Some(span) = find_first_attribute(sig.to_token_stream()).or_else(|| find_first_attribute(item.block.to_token_stream())) {
            return Err(misplaced_attribute_error(&span));
        }
        if let Some(other) = earlier.iter().find(|f| f.name == sig.ident) {
            return Err(Error::new(sig.ident.span(), format!("`{}` is defined twice", other.name)));
        }
        let (generic, bound) = convert_generic_type(&sig.generics)?;
        let mut converter = FunctionConverter {
            inference: TypeInference::new(bound),
            generic,
            variables: Vec::new(),
            parameters: Vec::new(),
            scope: Vec::new(),
            earlier,
            calls: Vec::new(),
            tables,
            used_tables: Vec::new(),
            cost: Cost::Cheap,
            operations: 0,
            result: 0,
            literals: Vec::new(),
            loops: 0,
            outer_variables: 0,
        };
        for input in &sig.inputs {
            converter.convert_parameter(input)?;
        }
        let result = match &sig.output {
            ReturnType::Type(_, ty) => converter.convert_type(ty)?,
            ReturnType::Default => return Err(Error::new(sig.ident.span(), "a kernel returns a number or a bool: `-> T`")),
        };
        converter.result = converter.inference.new_known_type_variable(result);
        let body = converter.parse_block(&item.block)?;
        let ends_in_return = matches!(body.statements.last(), Some(Statement::Return(_)));
        match &body.value {
            Some(value) => converter.inference.unify(converter.result, value.ty, value.span)?,
            None if ends_in_return => {}
            None => {
                return Err(Error::new(
                    item.block.brace_token.span.close(),
                    "the function ends without a value: an expression without `;`, or a `return`",
                ));
            }
        }
        converter.inference.check_requirements()?;
        converter.check_literal_ranges()?;
        let arity: usize = converter.parameters.iter().map(|p| p.kind.argument_count()).sum();
        if arity > MAX_ARITY {
            let message = format!("{arity} arguments, at most {MAX_ARITY} (a `&[T]` parameter counts twice, index(..) once)");
            return Err(Error::new(sig.ident.span(), message));
        }
        if arity == 0 {
            return Err(Error::new(sig.ident.span(), "a kernel has at least one parameter"));
        }
        if let Some(generic) = converter.generic.as_ref().filter(|_| converter.parameters.iter().all(|p| p.ty != Type::Generic)) {
            return Err(Error::new(generic.span(), format!("no parameter has the type `{generic}`, so it cannot be inferred")));
        }
        if identity.is_some() {
            let takes_two = matches!(&converter.parameters[..], [a, b] if a.kind == ParameterKind::Each && b.kind == ParameterKind::Each);
            if !takes_two || converter.parameters.iter().any(|p| p.ty != result) {
                return Err(Error::new(
                    sig.ident.span(),
                    "a reduction combines two values of one type: `fn name<T: Number>(a: T, b: T) -> T`",
                ));
            }
        }
        if converter.operations > 16 {
            converter.cost = converter.cost.max(Cost::Medium);
        }
        let slots = converter.inference.type_variable_count();
        Ok(Function {
            types: (0..slots).map(|slot| converter.inference.resolve_type(slot)).collect(),
            attrs: item.attrs,
            vis: item.vis,
            name: item.sig.ident,
            bound,
            parameters: converter.parameters,
            result,
            variables: converter.variables,
            body,
            calls: converter.calls,
            cost: converter.cost,
            identity,
            tables: converter.used_tables,
            is_helper,
            is_rust_only,
        })
    }

    /// Returns an error unless each literal is in the range of every type that it can have.
    fn check_literal_ranges(&self) -> Result<()> {
        for (slot, digits, span) in &self.literals {
            let types: Vec<PrimitiveType> = match (self.inference.resolve_type(*slot), self.inference.bound) {
                (Type::Primitive(prim), _) => vec![prim],
                (Type::Generic, bound) => bound.into_iter().flat_map(GenericBound::instantiated_types).collect(),
            };
            if let Some(prim) = types.iter().find(|prim| !prim.can_hold_literal(digits)) {
                let generic = if types.len() > 1 { ", which is one of the generic types; convert it with `as`" } else { "" };
                return Err(Error::new(*span, format!("{digits} is out of range for `{}`{generic}", prim.name())));
            }
        }
        Ok(())
    }

    fn convert_parameter(&mut self, input: &FnArg) -> Result<()> {
        let FnArg::Typed(typed) = input else { return Err(Error::new(input.span(), "a kernel has no self")) };
        let (name, mutable) = name_bound_by_pattern(&typed.pat)?;
        if mutable {
            return Err(Error::new(typed.pat.span(), "parameters are not mutable: `let mut` a copy"));
        }
        let (ty, kind) = match strip_type_groups(&typed.ty) {
            syn::Type::Reference(reference) => match strip_type_groups(&reference.elem) {
                syn::Type::Slice(slice) if reference.mutability.is_none() => (self.convert_type(&slice.elem)?, ParameterKind::Whole),
                syn::Type::Slice(slice) => return Err(Error::new(slice.span(), "an array's elements cannot be changed: `&[T]`")),
                other => {
                    return Err(Error::new(other.span(), "an element is taken by value, `x: T`, and a whole array as `&[T]`"));
                }
            },
            other => (self.convert_type(other)?, ParameterKind::Each),
        };
        let slot = self.inference.new_known_type_variable(ty);
        let variable = self.declare_variable(name.clone(), slot, false);
        self.parameters.push(Parameter { name, variable, ty, kind });
        Ok(())
    }

    /// Converts the written type of a parameter, variable or result.
    pub(super) fn convert_type(&self, written: &syn::Type) -> Result<Type> {
        let unknown = || {
            Error::new(
                written.span(),
                "types of kernels are the generic one, bool, i8 to i64, u8 to u64, f32, f64, and `&[T]` for whole arrays; indices are i64",
            )
        };
        let syn::Type::Path(path) = strip_type_groups(written) else { return Err(unknown()) };
        let name = path.path.get_ident().ok_or_else(unknown)?;
        if self.generic.as_ref() == Some(name) {
            return Ok(Type::Generic);
        }
        PrimitiveType::parse(&name.to_string()).map(Type::Primitive).ok_or_else(unknown)
    }

    pub(super) fn declare_variable(&mut self, name: Ident, ty: TypeVariable, mutable: bool) -> usize {
        let number = self.variables.len();
        self.scope.push((name.to_string(), number));
        self.variables.push(Variable { name, ty, mutable });
        number
    }

    pub(super) fn find_variable(&self, name: &Ident) -> Result<usize> {
        let text = name.to_string();
        let found = self.scope.iter().rev().find(|(n, _)| *n == text);
        found.map(|(_, v)| *v).ok_or_else(|| Error::new(name.span(), format!("`{text}` is not a variable of this kernel")))
    }

    /// Returns the index of the whole-array parameter that `variable` names, if it is one.
    pub(super) fn array_parameter_index(&self, variable: usize) -> Option<usize> {
        self.parameters.iter().position(|p| p.variable == variable && p.kind == ParameterKind::Whole)
    }
}

/// Returns the span of the first attribute within a function body; `None` if there is none. `#` occurs in no other syntax.
fn find_first_attribute(tokens: TokenStream) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Punct(punct) if punct.as_char() == '#' => Some(punct.span()),
        TokenTree::Group(group) => find_first_attribute(group.stream()),
        _ => None,
    })
}

fn misplaced_attribute_error(attribute: &impl Spanned) -> Error {
    Error::new(attribute.span(), "attributes and doc comments are allowed before functions only")
}

/// Returns the type without parentheses and without the invisible groups that a user's macro adds.
fn strip_type_groups(ty: &syn::Type) -> &syn::Type {
    match ty {
        syn::Type::Group(group) => strip_type_groups(&group.elem),
        syn::Type::Paren(paren) => strip_type_groups(&paren.elem),
        other => other,
    }
}

/// Removes `#[helper]` from the attributes of a private function. Returns whether the attribute was present.
fn take_helper_attribute(item: &mut ItemFn) -> Result<bool> {
    let Some(span) = take_attribute_without_arguments(&mut item.attrs, "helper")? else { return Ok(false) };
    match item.vis {
        syn::Visibility::Inherited => Ok(true),
        _ => Err(Error::new(span, "a function with `#[helper]` is private, because it is not an operation")),
    }
}

/// Removes the attribute `name`, which has no arguments. Returns the span of the attribute, or `None` if it is absent.
fn take_attribute_without_arguments(attrs: &mut Vec<syn::Attribute>, name: &str) -> Result<Option<Span>> {
    let Some(at) = attrs.iter().position(|a| a.path().is_ident(name)) else { return Ok(None) };
    let attr = attrs.remove(at);
    attr.meta.require_path_only()?;
    Ok(Some(attr.span()))
}

/// Removes `#[reduction(identity = 0)]` from the attributes and returns the identity; `None` without this attribute.
fn take_reduction_attribute(attrs: &mut Vec<syn::Attribute>) -> Result<Option<ReductionIdentity>> {
    let Some(at) = attrs.iter().position(|a| a.path().is_ident("reduction")) else { return Ok(None) };
    let attr = attrs.remove(at);
    let wrong = |span| Error::new(span, "`#[reduction(identity = 0)]`: a number, MIN, MAX, INFINITY or -INFINITY");
    let pair: syn::MetaNameValue = attr.parse_args().map_err(|_| wrong(attr.span()))?;
    if !pair.path.is_ident("identity") {
        return Err(wrong(pair.path.span()));
    }
    let (negative, value) = match &pair.value {
        syn::Expr::Unary(syn::ExprUnary { op: UnOp::Neg(_), expr, .. }) => (true, &**expr),
        value => (false, value),
    };
    let sign = if negative { -1i128 } else { 1 };
    let read = match value {
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. }) => Some(ReductionIdentity::Int(sign * n.base10_parse::<i128>()?)),
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Float(x), .. }) => Some(ReductionIdentity::Float(sign as f64 * x.base10_parse::<f64>()?))
            .filter(|i| matches!(i, ReductionIdentity::Float(x) if x.is_finite())),
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Bool(b), .. }) if !negative => Some(ReductionIdentity::Bool(b.value)),
        syn::Expr::Path(path) => match (path.path.segments.last().map(|s| s.ident.to_string()).as_deref(), negative) {
            (Some("MIN"), false) | (Some("INFINITY"), true) => Some(ReductionIdentity::Lowest),
            (Some("MAX" | "INFINITY"), false) => Some(ReductionIdentity::Highest),
            _ => None,
        },
        _ => None,
    };
    read.map(Some).ok_or_else(|| wrong(pair.value.span()))
}

fn convert_generic_type(generics: &syn::Generics) -> Result<(Option<Ident>, Option<GenericBound>)> {
    if let Some(clause) = &generics.where_clause {
        return Err(Error::new(clause.span(), "write the bound at the type: `<T: Float>`"));
    }
    let mut params = generics.params.iter();
    let Some(param) = params.next() else { return Ok((None, None)) };
    let wrong =
        || Error::new(param.span(), "a kernel has one generic type, `T: Float`, `T: Single`, `T: Double`, `T: Integer` or `T: Number`");
    if let Some(second) = params.next() {
        return Err(Error::new(second.span(), "a kernel has one generic type; other parameters have concrete types, such as f64"));
    }
    let GenericParam::Type(ty) = param else { return Err(wrong()) };
    match ty.bounds.first() {
        Some(TypeParamBound::Trait(bound)) if ty.bounds.len() == 1 => {
            let name = bound.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
            let bound = GenericBound::parse(&name).ok_or_else(wrong)?;
            Ok((Some(ty.ident.clone()), Some(bound)))
        }
        _ => Err(wrong()),
    }
}

/// Returns the name that `pattern` binds, and whether the binding is mutable.
pub(super) fn name_bound_by_pattern(pattern: &Pat) -> Result<(Ident, bool)> {
    match pattern {
        Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Ok((ident.ident.clone(), ident.mutability.is_some())),
        other => Err(Error::new(other.span(), "patterns of kernels are names")),
    }
}
