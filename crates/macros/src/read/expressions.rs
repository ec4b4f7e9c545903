//! Conversion of Rust expressions to typed trees.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{BinOp, Error, Lit, Result, UnOp};

use super::FunctionReader;
use crate::tree::Cost;
use crate::tree::{Binary, Block, CONSTANTS, Expr, ExprKind, Form, Kind, METHODS, OPERATORS, Parameter, Statement, Variable};
use crate::types::{Bound, Class, Prim, Slot, Type};

impl FunctionReader<'_> {
    pub(super) fn expr(&mut self, expr: &syn::Expr) -> Result<Expr> {
        let span = expr.span();
        let made = |kind, of| Ok(Expr { kind, of, span });
        match expr {
            syn::Expr::Paren(inner) => self.expr(&inner.expr),
            syn::Expr::Group(inner) => self.expr(&inner.expr),
            syn::Expr::Lit(lit) => self.literal(&lit.lit),
            syn::Expr::Path(path) => self.path(&path.path),
            syn::Expr::Unary(unary) => {
                let mut inner = self.expr(&unary.expr)?;
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
                        self.inference.require(inner.of, Class::Number, span, "`-`");
                        let of = inner.of;
                        made(ExprKind::Negative(Box::new(inner)), of)
                    }
                    UnOp::Not(_) => {
                        let of = inner.of;
                        if self.inference.is_bool(of) {
                            return made(ExprKind::Not(Box::new(inner)), of);
                        }
                        self.inference.require(of, Class::Integer, span, "`!`");
                        made(ExprKind::Not(Box::new(inner)), of)
                    }
                    _ => Err(Error::new(span, "references are not values of kernels")),
                }
            }
            syn::Expr::Binary(binary) => {
                let op = operator(&binary.op)?;
                if assigns(&binary.op) {
                    return Err(Error::new(binary.op.span(), "an assignment is a statement"));
                }
                let (left, right) = (self.expr(&binary.left)?, self.expr(&binary.right)?);
                self.binary(op, left, right, span)
            }
            syn::Expr::Cast(cast) => {
                let inner = self.expr(&cast.expr)?;
                let of = self.of(&cast.ty)?;
                self.operations += 1;
                let of = self.inference.of(of);
                made(ExprKind::Cast(Box::new(inner)), of)
            }
            syn::Expr::If(branches) => {
                let Some((_, otherwise)) = &branches.else_branch else {
                    return Err(Error::new(span, "an `if` with a value needs an `else`"));
                };
                let condition = self.condition(&branches.cond)?;
                let (then, otherwise, of) = self.expression_scope(|reader| reader.branches(&branches.then_branch, otherwise, span))?;
                self.operations += 1;
                made(ExprKind::If(Box::new(condition), then, otherwise), of)
            }
            syn::Expr::Block(block) if block.label.is_none() => {
                let read = self.expression_scope(|reader| reader.block(&block.block))?;
                let of = read.value.as_ref().map(|v| v.of).ok_or_else(|| Error::new(span, "a block without a value"))?;
                made(ExprKind::Block(read), of)
            }
            syn::Expr::MethodCall(call) => self.method(call),
            syn::Expr::Call(call) => self.call(call),
            syn::Expr::Index(index) => {
                let (whole, of) = self.array(&index.expr)?;
                let at = self.expr(&index.index)?;
                self.inference.require(at.of, Class::Integer, at.span, "an index");
                self.operations += 1;
                made(ExprKind::At(whole, Box::new(at)), of)
            }
            other => {
                Err(Error::new(other.span(), "kernels support let, if, for, arithmetic, comparisons, `as` and the methods of numbers"))
            }
        }
    }

    /// Converts a path expression, which is a variable or a constant.
    fn path(&mut self, path: &syn::Path) -> Result<Expr> {
        let span = path.span();
        if path.segments.iter().any(|s| !s.arguments.is_none()) {
            return Err(Error::new(span, "not a value of kernels"));
        }
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let constant = |name: &str| CONSTANTS.iter().find(|c| c.name == name);
        let constant = match names[..] {
            // The constant `E` needs its full path, because the name alone is common.
            ["E"] => None,
            [name] => constant(name),
            ["f32" | "f64", name] => constant(name).filter(|c| c.digits.is_none()),
            [.., "f32" | "f64", "consts", name] => constant(name).filter(|c| c.digits.is_some()),
            _ => None,
        };
        match (path.get_ident().map(|name| self.find(name)), constant) {
            (Some(Ok(variable)), _) if self.whole(variable).is_some() => {
                Err(Error::new(span, format!("`{0}` is an array: `{0}[i]`, `{0}.len()`", names[0])))
            }
            (Some(Ok(variable)), _) => Ok(Expr { kind: ExprKind::Variable(variable), of: self.variables[variable].of, span }),
            (_, Some(constant)) => Ok(Expr { kind: ExprKind::Constant(constant), of: self.inference.float(), span }),
            (Some(Err(unknown)), None) => Err(unknown),
            (None, None) => Err(Error::new(
                span,
                "constants of kernels are those of std::f64::consts, f64::INFINITY and f64::NAN; pass others as arguments",
            )),
        }
    }

    /// Runs `read` for blocks inside an expression, which cannot assign to outer variables or leave an outer loop.
    fn expression_scope<R>(&mut self, read: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let before = (self.outer_variables, self.loops);
        (self.outer_variables, self.loops) = (self.variables.len(), 0);
        let result = read(self);
        (self.outer_variables, self.loops) = before;
        result
    }

    /// Converts both branches of an `if` that has a value.
    fn branches(&mut self, then: &syn::Block, otherwise: &syn::Expr, span: Span) -> Result<(Block, Block, Slot)> {
        let then = self.block(then)?;
        let otherwise = match otherwise {
            syn::Expr::Block(block) => self.block(&block.block)?,
            nested => Block { statements: Vec::new(), value: Some(Box::new(self.expr(nested)?)) },
        };
        let (Some(a), Some(b)) = (&then.value, &otherwise.value) else {
            return Err(Error::new(span, "both branches of an `if` with a value end with one"));
        };
        self.inference.unify(a.of, b.of, b.span)?;
        let of = a.of;
        Ok((then, otherwise, of))
    }

    /// Returns the index of the whole-array parameter that `expr` names, and its element type.
    fn array(&mut self, expr: &syn::Expr) -> Result<(usize, Slot)> {
        let wrong = || Error::new(expr.span(), "only parameters of type `&[T]` have elements and a length");
        let syn::Expr::Path(path) = expr else { return Err(wrong()) };
        let variable = self.find(path.path.get_ident().ok_or_else(wrong)?)?;
        let whole = self.whole(variable).ok_or_else(wrong)?;
        Ok((whole, self.variables[variable].of))
    }

    pub(super) fn binary(&mut self, op: Binary, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        self.operations += 1;
        let bool_ = self.inference.of(Type::Prim(Prim::Bool));
        let of = match op {
            Binary::And | Binary::Or => {
                self.inference.unify(bool_, left.of, left.span)?;
                self.inference.unify(bool_, right.of, right.span)?;
                bool_
            }
            Binary::Shl | Binary::Shr => {
                self.inference.require(left.of, Class::Integer, span, "a shift");
                self.inference.unify(left.of, right.of, right.span)?;
                left.of
            }
            _ => {
                self.inference.unify(left.of, right.of, right.span)?;
                match op {
                    Binary::BitAnd | Binary::BitOr | Binary::BitXor if self.inference.is_bool(left.of) => bool_,
                    Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                        self.inference.require(left.of, Class::Integer, span, "a bit operation");
                        left.of
                    }
                    Binary::Eq | Binary::Ne if self.inference.is_bool(left.of) => bool_,
                    Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => {
                        self.inference.require(left.of, Class::Number, span, "a comparison");
                        bool_
                    }
                    _ => {
                        if matches!(op, Binary::Div | Binary::Rem) {
                            self.cost = self.cost.max(Cost::Medium);
                        }
                        self.inference.require(left.of, Class::Number, span, "arithmetic");
                        self.inference.fix_integer(left.of);
                        left.of
                    }
                }
            }
        };
        Ok(Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), of, span })
    }

    fn literal(&mut self, lit: &Lit) -> Result<Expr> {
        let span = lit.span();
        let (kind, suffix) = match lit {
            Lit::Bool(b) => {
                let of = self.inference.of(Type::Prim(Prim::Bool));
                return Ok(Expr { kind: ExprKind::Bool(b.value), of, span });
            }
            Lit::Int(int) if Prim::parse(int.suffix()).is_some_and(Prim::is_float) => {
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
        let of = match (suffix, &kind) {
            ("", ExprKind::Int(_)) => self.inference.int(),
            ("", _) => self.inference.float(),
            (suffix, _) => match Prim::parse(suffix) {
                Some(prim) => self.inference.of(Type::Prim(prim)),
                None => return Err(Error::new(span, format!("no type of kernels is called `{suffix}`"))),
            },
        };
        if let ExprKind::Int(digits) | ExprKind::Float(digits) = &kind {
            self.literals.push((of, digits.clone(), span));
        }
        Ok(Expr { kind, of, span })
    }

    fn method(&mut self, call: &syn::ExprMethodCall) -> Result<Expr> {
        let (span, name) = (call.span(), call.method.to_string());
        if name == "len" && call.args.is_empty() {
            let (whole, _) = self.array(&call.receiver)?;
            let of = self.inference.of(Type::Prim(Prim::I64));
            return Ok(Expr { kind: ExprKind::Len(whole), of, span });
        }
        if name == "powi" {
            return self.powi(call);
        }
        let Some(method) = METHODS.iter().find(|m| m.name == name) else {
            let known: Vec<&str> = METHODS.iter().map(|m| m.name).collect();
            return Err(Error::new(call.method.span(), format!("no method of kernels; the methods are {} and powi", known.join(", "))));
        };
        if call.args.len() + 1 != method.arity {
            let message = format!("`{name}` takes {} arguments after the receiver, {} given", method.arity - 1, call.args.len());
            return Err(Error::new(call.method.span(), message));
        }
        let mut args = vec![self.expr(&call.receiver)?];
        for arg in &call.args {
            let arg = self.expr(arg)?;
            self.inference.unify(args[0].of, arg.of, arg.span)?;
            args.push(arg);
        }
        let class = if method.form == Form::Number { Class::Number } else { Class::Float };
        self.inference.require(args[0].of, class, call.method.span(), format!("`{name}`"));
        self.cost = self.cost.max(method.cost);
        self.operations += 1;
        let of = if method.form == Form::Test { self.inference.of(Type::Prim(Prim::Bool)) } else { args[0].of };
        Ok(Expr { kind: ExprKind::Method(method, args), of, span })
    }

    /// Converts `x.powi(5)` to repeated squaring. The squares are multiplied from the lowest bit of the exponent up, in the order of
    /// Rust's `powi`.
    fn powi(&mut self, call: &syn::ExprMethodCall) -> Result<Expr> {
        let exponent = match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. })) if call.args.len() == 1 => n.base10_parse::<u32>().ok(),
            _ => None,
        };
        let Some(mut rest) = exponent.filter(|n| *n > 0) else {
            return Err(Error::new(call.span(), "`powi` takes a literal exponent of 1 or more; use `powf` for others"));
        };
        let span = call.span();
        let mut square = self.expr(&call.receiver)?;
        self.inference.require(square.of, Class::Number, call.method.span(), "`powi`");
        let (of, mut names, mut power) = (square.of, Block::default(), None);
        // The highest square is used only once, so it needs no variable.
        while rest > 1 {
            let name = self.store(square, &mut names);
            let again = || Expr { kind: ExprKind::Variable(name), of, span };
            if rest & 1 == 1 {
                power = Some(self.times(power, again())?);
            }
            square = self.binary(Binary::Mul, again(), again(), span)?;
            rest >>= 1;
        }
        let power = self.times(power, square)?;
        if names.statements.is_empty() {
            return Ok(power);
        }
        names.value = Some(Box::new(power));
        Ok(Expr { kind: ExprKind::Block(names), of, span })
    }

    fn times(&mut self, product: Option<Expr>, factor: Expr) -> Result<Expr> {
        let span = factor.span;
        match product {
            None => Ok(factor),
            Some(product) => self.binary(Binary::Mul, product, factor, span),
        }
    }

    /// Stores `value` in a new variable of the generated `block` and returns the variable's number.
    fn store(&mut self, value: Expr, block: &mut Block) -> usize {
        if let ExprKind::Variable(variable) = value.kind {
            return variable;
        }
        let variable = self.variables.len();
        self.variables.push(Variable { name: Ident::new("square", value.span), of: value.of, mutable: false });
        block.statements.push(Statement::Let(variable, value));
        variable
    }

    fn call(&mut self, call: &syn::ExprCall) -> Result<Expr> {
        let span = call.span();
        let name = match &*call.func {
            syn::Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let name = name.ok_or_else(|| Error::new(span, "kernels call methods, and functions of the same block"))?;
        if name == "index" {
            return self.index(call);
        }
        let Some(at) = self.earlier.iter().position(|f| f.name == *name) else {
            let message = format!("`{name}` is not a function defined above in this block; functions of numbers are methods: `x.exp()`");
            return Err(Error::new(name.span(), message));
        };
        let earlier = self.earlier;
        let function = &earlier[at];
        if function.parameters.iter().any(|p| p.kind != Kind::Each) {
            return Err(Error::new(span, "a function with `&[T]` or `index` parameters cannot be called by other functions"));
        }
        if function.parameters.len() != call.args.len() {
            let message = format!("`{name}` takes {} arguments, {} given", function.parameters.len(), call.args.len());
            return Err(Error::new(span, message));
        }
        // A generic callee is instantiated for one type, which is a type variable of this function.
        let generic = self.inference.unknown();
        let mut args = Vec::new();
        for (p, arg) in function.parameters.iter().zip(&call.args) {
            let arg = self.expr(arg)?;
            let of = if p.of == Type::Generic { generic } else { self.inference.of(p.of) };
            self.inference.unify(of, arg.of, arg.span)?;
            args.push(arg);
        }
        if let Some(bound) = function.bound {
            let class = match bound {
                Bound::Float => Class::Float,
                Bound::Integer => Class::Integer,
                Bound::Number => Class::Number,
            };
            self.inference.require(generic, class, span, format!("`{name}`"));
        }
        self.cost = self.cost.max(function.cost);
        self.operations += 1;
        self.calls.push(at);
        let of = if function.result == Type::Generic { generic } else { self.inference.of(function.result) };
        Ok(Expr { kind: ExprKind::Call(at, args), of, span })
    }

    /// Converts `index(1)` to an additional parameter of the function; there is one for each axis.
    fn index(&mut self, call: &syn::ExprCall) -> Result<Expr> {
        let axis = match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. })) if call.args.len() == 1 => n.base10_parse::<usize>().ok(),
            _ => None,
        };
        let axis = axis.ok_or_else(|| Error::new(call.span(), "`index` takes an axis as a literal: `index(0)`"))?;
        let known = self.parameters.iter().find(|p| p.kind == Kind::Index(axis)).map(|p| p.variable);
        let variable = known.unwrap_or_else(|| {
            let (name, of) = (Ident::new(&format!("index_{axis}"), call.span()), self.inference.of(Type::Prim(Prim::I64)));
            let variable = self.variables.len();
            self.variables.push(Variable { name: name.clone(), of, mutable: false });
            self.parameters.push(Parameter { name, variable, of: Type::Prim(Prim::I64), kind: Kind::Index(axis) });
            variable
        });
        Ok(Expr { kind: ExprKind::Variable(variable), of: self.variables[variable].of, span: call.span() })
    }
}

/// Converts a Rust operator. For an assignment such as `+=`, returns the operator before `=`.
pub(super) fn operator(op: &BinOp) -> Result<Binary> {
    let text = op.to_token_stream().to_string();
    let plain = if assigns(op) { text.trim_end_matches('=') } else { &text };
    let known = OPERATORS.iter().find(|(sign, _)| *sign == plain);
    known.map(|(_, op)| *op).ok_or_else(|| Error::new(op.span(), "not an operator of kernels"))
}

/// Returns whether the operator `op` assigns, as `+=` does.
pub(super) fn assigns(op: &BinOp) -> bool {
    let text = op.to_token_stream().to_string();
    text.ends_with('=') && !OPERATORS.iter().any(|(sign, _)| *sign == text)
}
