//! Conversion of Rust expressions to typed trees.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{BinOp, Error, Lit, Result, UnOp};

use super::function_parser::FunctionConverter;
use crate::syntax_tree::Cost;
use crate::syntax_tree::{
    BINARY_OPERATORS, BinaryOperator, Block, Expr, ExprKind, FLOAT_CONSTANTS, MethodKind, NUMBER_METHODS, Parameter, ParameterKind,
    Statement, Variable,
};
use crate::type_inference::{GenericBound, PrimitiveType, Type, TypeClass, TypeVariable};

impl FunctionConverter<'_> {
    pub(super) fn convert_expression(&mut self, expr: &syn::Expr) -> Result<Expr> {
        let span = expr.span();
        let made = |kind, ty| Ok(Expr { kind, ty, span });
        match expr {
            syn::Expr::Paren(inner) => self.convert_expression(&inner.expr),
            syn::Expr::Group(inner) => self.convert_expression(&inner.expr),
            syn::Expr::Lit(lit) => self.convert_literal(&lit.lit),
            syn::Expr::Path(path) => self.convert_path(&path.path),
            syn::Expr::Unary(unary) => {
                let mut inner = self.convert_expression(&unary.expr)?;
                // `-5` becomes one literal, so that the smallest integers are in range. `-0` stays a negation, since it is -0.0 as a
                // float.
                if let (UnOp::Neg(_), ExprKind::Int(digits), syn::Expr::Lit(_)) = (&unary.op, &mut inner.kind, &*unary.expr)
                    && digits != "0"
                {
                    digits.insert(0, '-');
                    if let Some(last) = self.literals.last_mut() {
                        last.1 = digits.clone();
                    }
                    return Ok(Expr { span, ..inner });
                }
                self.operations += 1;
                match unary.op {
                    UnOp::Neg(_) => {
                        self.inference.require_type_class(inner.ty, TypeClass::Number, span, "`-`");
                        let ty = inner.ty;
                        made(ExprKind::Negative(Box::new(inner)), ty)
                    }
                    UnOp::Not(_) => {
                        let ty = inner.ty;
                        if self.inference.is_bool(ty) {
                            return made(ExprKind::Not(Box::new(inner)), ty);
                        }
                        self.inference.require_type_class(ty, TypeClass::Integer, span, "`!`");
                        made(ExprKind::Not(Box::new(inner)), ty)
                    }
                    _ => Err(Error::new(span, "references are not values of kernels")),
                }
            }
            syn::Expr::Binary(binary) => {
                let op = binary_operator(&binary.op)?;
                if is_assignment_operator(&binary.op) {
                    return Err(Error::new(binary.op.span(), "an assignment is a statement"));
                }
                let (left, right) = (self.convert_expression(&binary.left)?, self.convert_expression(&binary.right)?);
                self.convert_binary(op, left, right, span)
            }
            syn::Expr::Cast(cast) => {
                let inner = self.convert_expression(&cast.expr)?;
                let ty = self.convert_type(&cast.ty)?;
                self.operations += 1;
                let ty = self.inference.new_known_type_variable(ty);
                made(ExprKind::Cast(Box::new(inner)), ty)
            }
            syn::Expr::If(branches) => {
                let Some((_, otherwise)) = &branches.else_branch else {
                    return Err(Error::new(span, "an `if` with a value needs an `else`"));
                };
                let condition = self.convert_condition(&branches.cond)?;
                let (then, otherwise, ty) =
                    self.with_expression_scope(|converter| converter.convert_if_branches(&branches.then_branch, otherwise, span))?;
                self.operations += 1;
                made(ExprKind::If(Box::new(condition), then, otherwise), ty)
            }
            syn::Expr::Block(block) if block.label.is_none() => {
                let read = self.with_expression_scope(|converter| converter.parse_block(&block.block))?;
                let ty = read.value.as_ref().map(|v| v.ty).ok_or_else(|| Error::new(span, "a block without a value"))?;
                made(ExprKind::Block(read), ty)
            }
            syn::Expr::MethodCall(call) => self.convert_method_call(call),
            syn::Expr::Call(call) => self.convert_call(call),
            syn::Expr::Index(index) if self.is_table_or_row(&index.expr) => self.convert_table_element(index),
            syn::Expr::Index(index) => {
                let (whole, ty) = self.resolve_array_parameter(&index.expr)?;
                let at = self.convert_expression(&index.index)?;
                self.inference.require_type_class(at.ty, TypeClass::Integer, at.span, "an index");
                self.operations += 1;
                made(ExprKind::At(whole, Box::new(at)), ty)
            }
            other => {
                Err(Error::new(other.span(), "kernels support let, if, for, arithmetic, comparisons, `as` and the methods of numbers"))
            }
        }
    }

    /// Converts a path expression, which is a variable or a constant.
    fn convert_path(&mut self, path: &syn::Path) -> Result<Expr> {
        let span = path.span();
        if path.segments.iter().any(|s| !s.arguments.is_none()) {
            return Err(Error::new(span, "not a value of kernels"));
        }
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let constant = |name: &str| FLOAT_CONSTANTS.iter().find(|c| c.name == name);
        let constant = match names[..] {
            // The constant `E` needs its full path, because users often choose the name `E` for something else.
            ["E"] => None,
            [name] => constant(name),
            ["f32" | "f64", name] => constant(name).filter(|c| c.digits.is_none()),
            [.., "f32" | "f64", "consts", name] => constant(name).filter(|c| c.digits.is_some()),
            _ => None,
        };
        match (path.get_ident().map(|name| self.find_variable(name)), constant) {
            (Some(Ok(variable)), _) if self.array_parameter_index(variable).is_some() => {
                Err(Error::new(span, format!("`{0}` is an array: `{0}[i]`, `{0}.len()`", names[0])))
            }
            (Some(Ok(variable)), _) => Ok(Expr { kind: ExprKind::Variable(variable), ty: self.variables[variable].ty, span }),
            (_, Some(constant)) => Ok(Expr { kind: ExprKind::Constant(constant), ty: self.inference.new_float_literal_variable(), span }),
            (Some(Err(unknown)), None) => Err(unknown),
            (None, None) => Err(Error::new(
                span,
                "constants of kernels are those of std::f64::consts, f64::INFINITY and f64::NAN; pass others as arguments",
            )),
        }
    }

    /// Calls `read`, which converts blocks inside an expression. In these blocks, assigning to variables from outside the expression and
    /// leaving a loop around the expression are errors.
    fn with_expression_scope<R>(&mut self, read: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let before = (self.outer_variables, self.loops);
        (self.outer_variables, self.loops) = (self.variables.len(), 0);
        let result = read(self);
        (self.outer_variables, self.loops) = before;
        result
    }

    /// Converts both branches of an `if` that has a value. Returns the branches and the type variable of the value.
    fn convert_if_branches(&mut self, then: &syn::Block, otherwise: &syn::Expr, span: Span) -> Result<(Block, Block, TypeVariable)> {
        let then = self.parse_block(then)?;
        let otherwise = match otherwise {
            syn::Expr::Block(block) => self.parse_block(&block.block)?,
            nested => Block { statements: Vec::new(), value: Some(Box::new(self.convert_expression(nested)?)) },
        };
        let (Some(a), Some(b)) = (&then.value, &otherwise.value) else {
            return Err(Error::new(span, "both branches of an `if` with a value end with one"));
        };
        self.inference.unify(a.ty, b.ty, b.span)?;
        let ty = a.ty;
        Ok((then, otherwise, ty))
    }

    /// Returns the index of the whole-array parameter that `expr` names, and its element type.
    fn resolve_array_parameter(&mut self, expr: &syn::Expr) -> Result<(usize, TypeVariable)> {
        let wrong = || Error::new(expr.span(), "only parameters of type `&[T]` have elements and a length");
        let syn::Expr::Path(path) = expr else { return Err(wrong()) };
        let variable = self.find_variable(path.path.get_ident().ok_or_else(wrong)?)?;
        let whole = self.array_parameter_index(variable).ok_or_else(wrong)?;
        Ok((whole, self.variables[variable].ty))
    }

    pub(super) fn convert_binary(&mut self, op: BinaryOperator, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        self.operations += 1;
        let bool_ = self.inference.new_known_type_variable(Type::Primitive(PrimitiveType::Bool));
        let ty = match op {
            BinaryOperator::And | BinaryOperator::Or => {
                self.inference.unify(bool_, left.ty, left.span)?;
                self.inference.unify(bool_, right.ty, right.span)?;
                bool_
            }
            BinaryOperator::Shl | BinaryOperator::Shr => {
                self.inference.require_type_class(left.ty, TypeClass::Integer, span, "a shift");
                self.inference.unify(left.ty, right.ty, right.span)?;
                left.ty
            }
            _ => {
                self.inference.unify(left.ty, right.ty, right.span)?;
                match op {
                    BinaryOperator::BitAnd | BinaryOperator::BitOr | BinaryOperator::BitXor if self.inference.is_bool(left.ty) => bool_,
                    BinaryOperator::BitAnd | BinaryOperator::BitOr | BinaryOperator::BitXor => {
                        self.inference.require_type_class(left.ty, TypeClass::Integer, span, "a bit operation");
                        left.ty
                    }
                    BinaryOperator::Eq | BinaryOperator::Ne if self.inference.is_bool(left.ty) => bool_,
                    BinaryOperator::Eq
                    | BinaryOperator::Ne
                    | BinaryOperator::Lt
                    | BinaryOperator::Le
                    | BinaryOperator::Gt
                    | BinaryOperator::Ge => {
                        self.inference.require_type_class(left.ty, TypeClass::Number, span, "a comparison");
                        bool_
                    }
                    _ => {
                        if matches!(op, BinaryOperator::Div | BinaryOperator::Rem) {
                            self.cost = self.cost.max(Cost::Medium);
                        }
                        self.inference.require_type_class(left.ty, TypeClass::Number, span, "arithmetic");
                        self.inference.restrict_to_integers(left.ty);
                        left.ty
                    }
                }
            }
        };
        Ok(Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span })
    }

    fn convert_literal(&mut self, lit: &Lit) -> Result<Expr> {
        let span = lit.span();
        let (kind, suffix) = match lit {
            Lit::Bool(b) => {
                let ty = self.inference.new_known_type_variable(Type::Primitive(PrimitiveType::Bool));
                return Ok(Expr { kind: ExprKind::Bool(b.value), ty, span });
            }
            Lit::Int(int) if PrimitiveType::parse(int.suffix()).is_some_and(PrimitiveType::is_float) => {
                (ExprKind::Float(format!("{}.0", int.base10_digits())), int.suffix())
            }
            Lit::Int(int) => {
                int.base10_parse::<u64>().map_err(|_| Error::new(span, "this literal is out of range for every integer type"))?;
                (ExprKind::Int(int.base10_digits().into()), int.suffix())
            }
            // A literal such as `2.` gets a digit after the point, because a suffix may be appended.
            Lit::Float(float) => (
                ExprKind::Float(format!("{}{}", float.base10_digits(), if float.base10_digits().ends_with('.') { "0" } else { "" })),
                float.suffix(),
            ),
            other => return Err(Error::new(other.span(), "literals of kernels are numbers and bools")),
        };
        let ty = match (suffix, &kind) {
            ("", ExprKind::Int(_)) => self.inference.new_int_literal_variable(),
            ("", _) => self.inference.new_float_literal_variable(),
            (suffix, _) => match PrimitiveType::parse(suffix) {
                Some(prim) => self.inference.new_known_type_variable(Type::Primitive(prim)),
                None => return Err(Error::new(span, format!("no type of kernels is called `{suffix}`"))),
            },
        };
        if let ExprKind::Int(digits) | ExprKind::Float(digits) = &kind {
            self.literals.push((ty, digits.clone(), span));
        }
        Ok(Expr { kind, ty, span })
    }

    fn convert_method_call(&mut self, call: &syn::ExprMethodCall) -> Result<Expr> {
        let (span, name) = (call.span(), call.method.to_string());
        if name == "len" && call.args.is_empty() {
            let (whole, _) = self.resolve_array_parameter(&call.receiver)?;
            let ty = self.inference.new_known_type_variable(Type::Primitive(PrimitiveType::I64));
            return Ok(Expr { kind: ExprKind::Len(whole), ty, span });
        }
        if name == "powi" {
            return self.convert_powi(call);
        }
        if name == "polynomial" {
            return self.convert_polynomial(call);
        }
        let Some(method) = NUMBER_METHODS.iter().find(|m| m.name == name) else {
            let known: Vec<&str> = NUMBER_METHODS.iter().map(|m| m.name).collect();
            return Err(Error::new(
                call.method.span(),
                format!("no method of kernels; the methods are {}, powi and polynomial", known.join(", ")),
            ));
        };
        if call.args.len() + 1 != method.arity {
            let message = format!("`{name}` takes {} arguments after the receiver, {} given", method.arity - 1, call.args.len());
            return Err(Error::new(call.method.span(), message));
        }
        let mut args = vec![self.convert_expression(&call.receiver)?];
        for arg in &call.args {
            let arg = self.convert_expression(arg)?;
            self.inference.unify(args[0].ty, arg.ty, arg.span)?;
            args.push(arg);
        }
        let class = if method.kind == MethodKind::Number { TypeClass::Number } else { TypeClass::Float };
        self.inference.require_type_class(args[0].ty, class, call.method.span(), format!("`{name}`"));
        self.cost = self.cost.max(method.cost);
        self.operations += 1;
        let ty = if method.kind == MethodKind::Test {
            self.inference.new_known_type_variable(Type::Primitive(PrimitiveType::Bool))
        } else {
            args[0].ty
        };
        Ok(Expr { kind: ExprKind::Method(method, args), ty, span })
    }

    /// Converts `x.powi(5)` to repeated squaring. The squares are multiplied from the lowest bit of the exponent up, in the order of
    /// Rust's `powi`.
    fn convert_powi(&mut self, call: &syn::ExprMethodCall) -> Result<Expr> {
        let exponent = match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. })) if call.args.len() == 1 => n.base10_parse::<u32>().ok(),
            _ => None,
        };
        let Some(mut rest) = exponent.filter(|n| *n > 0) else {
            return Err(Error::new(call.span(), "`powi` takes a literal exponent of 1 or more; use `powf` for others"));
        };
        let span = call.span();
        let mut square = self.convert_expression(&call.receiver)?;
        self.inference.require_type_class(square.ty, TypeClass::Number, call.method.span(), "`powi`");
        let (ty, mut names, mut power) = (square.ty, Block::default(), None);
        // The highest square is used only once, so it needs no variable.
        while rest > 1 {
            let name = self.store_in_variable(square, &mut names);
            let again = || Expr { kind: ExprKind::Variable(name), ty, span };
            if rest & 1 == 1 {
                power = Some(self.multiply_by_factor(power, again())?);
            }
            square = self.convert_binary(BinaryOperator::Mul, again(), again(), span)?;
            rest >>= 1;
        }
        let power = self.multiply_by_factor(power, square)?;
        if names.statements.is_empty() {
            return Ok(power);
        }
        names.value = Some(Box::new(power));
        Ok(Expr { kind: ExprKind::Block(names), ty, span })
    }

    fn multiply_by_factor(&mut self, product: Option<Expr>, factor: Expr) -> Result<Expr> {
        let span = factor.span;
        match product {
            None => Ok(factor),
            Some(product) => self.convert_binary(BinaryOperator::Mul, product, factor, span),
        }
    }

    /// Stores `value` in a new variable of the generated `block`, unless it is a variable already. Returns the index of the variable.
    pub(super) fn store_in_variable(&mut self, value: Expr, block: &mut Block) -> usize {
        if let ExprKind::Variable(variable) = value.kind {
            return variable;
        }
        let variable = self.variables.len();
        self.variables.push(Variable { name: Ident::new("square", value.span), ty: value.ty, mutable: false });
        block.statements.push(Statement::Let(variable, value));
        variable
    }

    fn convert_call(&mut self, call: &syn::ExprCall) -> Result<Expr> {
        let span = call.span();
        let name = match &*call.func {
            syn::Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let name = name.ok_or_else(|| Error::new(span, "kernels call methods, and functions of the same block"))?;
        if name == "index" {
            return self.convert_index_call(call);
        }
        let Some(at) = self.earlier.iter().position(|f| f.name == *name) else {
            let message = format!("`{name}` is not a function defined above in this block; functions of numbers are methods: `x.exp()`");
            return Err(Error::new(name.span(), message));
        };
        let earlier = self.earlier;
        let function = &earlier[at];
        if function.parameters.iter().any(|p| p.kind != ParameterKind::Each) {
            return Err(Error::new(span, "a function with `&[T]` or `index` parameters cannot be called by other functions"));
        }
        if function.parameters.len() != call.args.len() {
            let message = format!("`{name}` takes {} arguments, {} given", function.parameters.len(), call.args.len());
            return Err(Error::new(span, message));
        }
        // A generic callee is instantiated for one type. In the calling function, the type variable `generic` represents this type.
        let generic = self.inference.new_unconstrained_variable();
        let mut args = Vec::new();
        for (p, arg) in function.parameters.iter().zip(&call.args) {
            let arg = self.convert_expression(arg)?;
            let ty = if p.ty == Type::Generic { generic } else { self.inference.new_known_type_variable(p.ty) };
            self.inference.unify(ty, arg.ty, arg.span)?;
            args.push(arg);
        }
        if let Some(bound) = function.bound {
            let class = match bound {
                GenericBound::Float | GenericBound::Single | GenericBound::Double => TypeClass::Float,
                GenericBound::Integer => TypeClass::Integer,
                GenericBound::Number => TypeClass::Number,
            };
            self.inference.require_type_class(generic, class, span, format!("`{name}`"));
        }
        self.cost = self.cost.max(function.cost);
        self.operations += 1;
        self.calls.push(at);
        let ty = if function.result == Type::Generic { generic } else { self.inference.new_known_type_variable(function.result) };
        Ok(Expr { kind: ExprKind::Call(at, args), ty, span })
    }

    /// Converts a call such as `index(1)` to a variable: a hidden parameter of the function, the index along axis 1. Calls for the same
    /// axis share one parameter.
    fn convert_index_call(&mut self, call: &syn::ExprCall) -> Result<Expr> {
        let axis = match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. })) if call.args.len() == 1 => n.base10_parse::<usize>().ok(),
            _ => None,
        };
        let axis = axis.ok_or_else(|| Error::new(call.span(), "`index` takes an axis as a literal: `index(0)`"))?;
        let known = self.parameters.iter().find(|p| p.kind == ParameterKind::Index(axis)).map(|p| p.variable);
        let variable = known.unwrap_or_else(|| {
            let (name, ty) = (
                Ident::new(&format!("index_{axis}"), call.span()),
                self.inference.new_known_type_variable(Type::Primitive(PrimitiveType::I64)),
            );
            let variable = self.variables.len();
            self.variables.push(Variable { name: name.clone(), ty, mutable: false });
            self.parameters.push(Parameter { name, variable, ty: Type::Primitive(PrimitiveType::I64), kind: ParameterKind::Index(axis) });
            variable
        });
        Ok(Expr { kind: ExprKind::Variable(variable), ty: self.variables[variable].ty, span: call.span() })
    }
}

/// Converts a Rust operator. For an assignment such as `+=`, returns the operator before `=`.
pub(super) fn binary_operator(op: &BinOp) -> Result<BinaryOperator> {
    let text = op.to_token_stream().to_string();
    let plain = if is_assignment_operator(op) { text.trim_end_matches('=') } else { &text };
    let known = BINARY_OPERATORS.iter().find(|(sign, _)| *sign == plain);
    known.map(|(_, op)| *op).ok_or_else(|| Error::new(op.span(), "not an operator of kernels"))
}

/// Returns whether the operator `op` assigns, as `+=` does.
pub(super) fn is_assignment_operator(op: &BinOp) -> bool {
    let text = op.to_token_stream().to_string();
    text.ends_with('=') && !BINARY_OPERATORS.iter().any(|(sign, _)| *sign == text)
}
