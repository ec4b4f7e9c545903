//! From Rust's syntax to [`Function`]s, types checked on the way. What a kernel cannot hold is an error where it stands.

use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{BinOp, Error, FnArg, GenericParam, Item, ItemFn, Lit, Pat, Result, ReturnType, Stmt, TypeParamBound, UnOp};

use crate::tree::{
    Binary, Block, CONSTANTS, Cost, Expr, ExprKind, Form, Function, Identity, Kind, METHODS, Parameter, Statement, Variable,
};
use crate::types::{Bound, Class, Inference, Prim, Slot, Type};

/// Arguments that the function in generated code may have (core's `MAX_ARITY`).
const MAX_ARITY: usize = 8;

/// Reads the functions of a block. Errors of several functions are told together.
pub fn functions(file: syn::File) -> Result<Vec<Function>> {
    let mut functions: Vec<Function> = Vec::new();
    let mut error: Option<Error> = None;
    for item in file.items {
        let read = match item {
            Item::Fn(function) => Reader::function(function, &functions),
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

struct Reader<'f> {
    inference: Inference,
    generic: Option<Ident>,
    variables: Vec<Variable>,
    parameters: Vec<Parameter>,
    /// Names in scope, innermost last.
    scope: Vec<(String, usize)>,
    earlier: &'f [Function],
    calls: Vec<usize>,
    cost: Cost,
    operations: usize,
    result: Slot,
    /// Literals, for a look at their ranges when all types are known.
    literals: Vec<(Slot, String, Span)>,
    /// Loops around.
    loops: usize,
    /// Variables that were there where the expression began in whose blocks we are: those may not be assigned to.
    fixed: usize,
}

impl Reader<'_> {
    fn function(mut item: ItemFn, earlier: &[Function]) -> Result<Function> {
        let identity = identity(&mut item.attrs)?;
        let sig = &item.sig;
        for (wrong, what) in [
            (sig.constness.map(|t| t.span()), "const"),
            (sig.asyncness.map(|t| t.span()), "async"),
            (sig.unsafety.map(|t| t.span()), "unsafe"),
            (sig.abi.as_ref().map(|t| t.span()), "extern"),
        ] {
            if let Some(span) = wrong {
                return Err(Error::new(span, format!("a kernel is not {what}")));
            }
        }
        if sig.ident == "index" {
            return Err(Error::new(sig.ident.span(), "`index` is the element's own index"));
        }
        if let Some(attr) = item.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")) {
            return Err(Error::new(attr.span(), "put the function in a block of its own, and this around it"));
        }
        if let Some(other) = earlier.iter().find(|f| f.name == sig.ident) {
            return Err(Error::new(sig.ident.span(), format!("`{}` is defined twice", other.name)));
        }
        let (generic, bound) = generics(&sig.generics)?;
        let mut reader = Reader {
            inference: Inference::new(bound),
            generic,
            variables: Vec::new(),
            parameters: Vec::new(),
            scope: Vec::new(),
            earlier,
            calls: Vec::new(),
            cost: Cost::Cheap,
            operations: 0,
            result: 0,
            literals: Vec::new(),
            loops: 0,
            fixed: 0,
        };
        for input in &sig.inputs {
            reader.parameter(input)?;
        }
        let result = match &sig.output {
            ReturnType::Type(_, of) => reader.of(of)?,
            ReturnType::Default => return Err(Error::new(sig.ident.span(), "a kernel returns a number or a bool: `-> T`")),
        };
        reader.result = reader.inference.of(result);
        let body = reader.block(&item.block)?;
        let ends_in_return = matches!(body.statements.last(), Some(Statement::Return(_)));
        match &body.value {
            Some(value) => reader.inference.same(reader.result, value.of, value.span)?,
            None if ends_in_return => {}
            None => return Err(Error::new(item.block.brace_token.span.close(), "the function ends without a value")),
        }
        reader.inference.check()?;
        reader.ranges()?;
        let arity: usize = reader.parameters.iter().map(|p| if p.kind == Kind::Whole { 2 } else { 1 }).sum();
        if arity > MAX_ARITY {
            let message = format!("{arity} arguments, at most {MAX_ARITY} (an array that is seen whole counts twice, index(..) once)");
            return Err(Error::new(sig.ident.span(), message));
        }
        if arity == 0 {
            return Err(Error::new(sig.ident.span(), "a kernel has parameters; a constant is written where it is used"));
        }
        if identity.is_some() {
            let takes_two = matches!(&reader.parameters[..], [a, b] if a.kind == Kind::Each && b.kind == Kind::Each);
            if !takes_two || reader.parameters.iter().any(|p| p.of != result) {
                return Err(Error::new(sig.ident.span(), "a reduction makes one of two of a type: `fn name<T: Number>(a: T, b: T) -> T`"));
            }
        }
        if reader.operations > 16 {
            reader.cost = reader.cost.max(Cost::Medium);
        }
        let slots = reader.inference.slots();
        Ok(Function {
            types: (0..slots).map(|slot| reader.inference.resolve(slot)).collect(),
            attrs: item.attrs,
            vis: item.vis,
            name: item.sig.ident,
            bound,
            parameters: reader.parameters,
            result,
            variables: reader.variables,
            body,
            calls: reader.calls,
            cost: reader.cost,
            identity,
        })
    }

    /// Whether each literal is a number of every type that it may have.
    fn ranges(&self) -> Result<()> {
        for (slot, digits, span) in &self.literals {
            let types: Vec<Prim> = match (self.inference.resolve(*slot), self.inference.bound) {
                (Type::Prim(prim), _) => vec![prim],
                (Type::Generic, bound) => bound.into_iter().flat_map(Bound::types).collect(),
            };
            if let Some(prim) = types.iter().find(|prim| !prim.holds(digits)) {
                let generic = if types.len() > 1 { ", which the generic type may be; `as` makes it one" } else { "" };
                return Err(Error::new(*span, format!("{digits} is no `{}`{generic}", prim.name())));
            }
        }
        Ok(())
    }

    fn parameter(&mut self, input: &FnArg) -> Result<()> {
        let FnArg::Typed(typed) = input else { return Err(Error::new(input.span(), "a kernel has no self")) };
        no_attributes(&typed.attrs)?;
        let (name, mutable) = name_of(&typed.pat)?;
        if mutable {
            return Err(Error::new(typed.pat.span(), "parameters are not mutable: `let mut` a copy"));
        }
        let (of, kind) = match &*typed.ty {
            syn::Type::Reference(reference) => match &*reference.elem {
                syn::Type::Slice(slice) if reference.mutability.is_none() => (self.of(&slice.elem)?, Kind::Whole),
                other => return Err(Error::new(other.span(), "an array that is seen whole is `&[T]`; its elements cannot be changed")),
            },
            other => (self.of(other)?, Kind::Each),
        };
        let slot = self.inference.of(of);
        let variable = self.declare(name.clone(), slot, false);
        self.parameters.push(Parameter { name, variable, of, kind });
        Ok(())
    }

    /// A type as it is written.
    fn of(&self, written: &syn::Type) -> Result<Type> {
        let unknown = || Error::new(written.span(), "types of kernels are the generic one, bool, i8 to i64, u8 to u64, f32 and f64");
        let path = match written {
            syn::Type::Path(path) => path,
            // What stands in for a type in a macro of the user's.
            syn::Type::Group(group) => return self.of(&group.elem),
            syn::Type::Paren(paren) => return self.of(&paren.elem),
            _ => return Err(unknown()),
        };
        let name = path.path.get_ident().ok_or_else(unknown)?;
        if self.generic.as_ref() == Some(name) {
            return Ok(Type::Generic);
        }
        Prim::parse(&name.to_string()).map(Type::Prim).ok_or_else(unknown)
    }

    fn declare(&mut self, name: Ident, of: Slot, mutable: bool) -> usize {
        let number = self.variables.len();
        self.scope.push((name.to_string(), number));
        self.variables.push(Variable { name, of, mutable });
        number
    }

    fn find(&self, name: &Ident) -> Result<usize> {
        let text = name.to_string();
        let found = self.scope.iter().rev().find(|(n, _)| *n == text);
        found.map(|(_, v)| *v).ok_or_else(|| Error::new(name.span(), format!("`{text}` is not a variable of this kernel")))
    }

    fn whole(&self, variable: usize) -> Option<usize> {
        self.parameters.iter().position(|p| p.variable == variable && p.kind == Kind::Whole)
    }

    fn block(&mut self, block: &syn::Block) -> Result<Block> {
        let depth = self.scope.len();
        let mut out = Block::default();
        for (n, statement) in block.stmts.iter().enumerate() {
            if out.value.is_some() {
                return Err(Error::new(statement.span(), "a value that nothing is done with; `;` is missing, or something before it"));
            }
            let is_last = n + 1 == block.stmts.len();
            match statement {
                Stmt::Local(local) => {
                    no_attributes(&local.attrs)?;
                    let (pattern, written) = match &local.pat {
                        Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                        pattern => (pattern, None),
                    };
                    let (name, mutable) = name_of(pattern)?;
                    let init = local.init.as_ref().filter(|i| i.diverge.is_none());
                    let init = init.ok_or_else(|| Error::new(local.span(), "a variable has a value from the beginning: `let x = ..;`"))?;
                    let value = self.expr(&init.expr)?;
                    if let Some(written) = written {
                        let of = self.of(written)?;
                        let of = self.inference.of(of);
                        self.inference.same(of, value.of, value.span)?;
                    }
                    self.inference.settle(value.of);
                    let variable = self.declare(name, value.of, mutable);
                    out.statements.push(Statement::Let(variable, value));
                }
                Stmt::Expr(expr, semicolon) => match self.statement(expr, semicolon.is_some() || !is_last)? {
                    Either::Statement(statement) => out.statements.push(statement),
                    Either::Value(value) => out.value = Some(Box::new(value)),
                },
                other => {
                    return Err(Error::new(other.span(), "statements of kernels are let, assignments, if, for, break, continue, return"));
                }
            }
        }
        self.scope.truncate(depth);
        Ok(out)
    }

    /// An expression where a statement stands.
    fn statement(&mut self, expr: &syn::Expr, is_statement: bool) -> Result<Either> {
        let attributes = match expr {
            syn::Expr::Assign(e) => &e.attrs[..],
            syn::Expr::Binary(e) => &e.attrs[..],
            syn::Expr::If(e) => &e.attrs[..],
            syn::Expr::ForLoop(e) => &e.attrs[..],
            syn::Expr::Return(e) => &e.attrs[..],
            syn::Expr::Break(e) => &e.attrs[..],
            syn::Expr::Continue(e) => &e.attrs[..],
            _ => &[],
        };
        no_attributes(attributes)?;
        match expr {
            syn::Expr::Assign(assign) => {
                let variable = self.target(&assign.left)?;
                let value = self.expr(&assign.right)?;
                self.inference.same(self.variables[variable].of, value.of, value.span)?;
                Ok(Either::Statement(Statement::Assign(variable, value)))
            }
            syn::Expr::Binary(binary) if compound(&binary.op).is_some() => {
                let variable = self.target(&binary.left)?;
                let left = Expr { kind: ExprKind::Variable(variable), of: self.variables[variable].of, span: binary.left.span() };
                let right = self.expr(&binary.right)?;
                let Some(op) = compound(&binary.op) else { return Err(Error::new(binary.op.span(), "not an operator of kernels")) };
                let value = self.binary(op, left, right, binary.op.span())?;
                Ok(Either::Statement(Statement::Assign(variable, value)))
            }
            syn::Expr::If(branches) if is_statement || !gives_value(branches) => {
                let condition = self.condition(&branches.cond)?;
                let then = self.no_value(&branches.then_branch)?;
                let otherwise = match &branches.else_branch {
                    None => Block::default(),
                    Some((_, other)) => match &**other {
                        syn::Expr::Block(block) => self.no_value(&block.block)?,
                        nested => match self.statement(nested, true)? {
                            Either::Statement(statement) => Block { statements: vec![statement], value: None },
                            Either::Value(value) => return Err(Error::new(value.span, "a value that nothing is done with")),
                        },
                    },
                };
                Ok(Either::Statement(Statement::If(condition, then, otherwise)))
            }
            syn::Expr::ForLoop(loop_) => self.for_loop(loop_).map(Either::Statement),
            syn::Expr::Break(_) | syn::Expr::Continue(_) if self.loops == 0 => {
                Err(Error::new(expr.span(), "not inside a loop, or inside an expression: make it a statement"))
            }
            syn::Expr::Break(b) if b.label.is_none() && b.expr.is_none() => Ok(Either::Statement(Statement::Break)),
            syn::Expr::Continue(c) if c.label.is_none() => Ok(Either::Statement(Statement::Continue)),
            syn::Expr::Return(ret) => {
                if self.fixed > 0 {
                    return Err(Error::new(ret.span(), "return inside an expression; make it a statement"));
                }
                let value = ret.expr.as_ref().ok_or_else(|| Error::new(ret.span(), "return what?"))?;
                let value = self.expr(value)?;
                self.inference.same(self.result, value.of, value.span)?;
                Ok(Either::Statement(Statement::Return(value)))
            }
            syn::Expr::While(_) | syn::Expr::Loop(_) => {
                Err(Error::new(expr.span(), "loops of kernels are bounded: `for i in 0..n { .. if done { break; } .. }`"))
            }
            other if is_statement => Err(Error::new(other.span(), "a value that nothing is done with")),
            other => self.expr(other).map(Either::Value),
        }
    }

    /// A block that stands as a statement.
    fn no_value(&mut self, block: &syn::Block) -> Result<Block> {
        let read = self.block(block)?;
        match &read.value {
            Some(value) => Err(Error::new(value.span, "a value that nothing is done with")),
            None => Ok(read),
        }
    }

    fn target(&mut self, left: &syn::Expr) -> Result<usize> {
        if let syn::Expr::Group(group) = left {
            return self.target(&group.expr);
        }
        let syn::Expr::Path(path) = left else { return Err(Error::new(left.span(), "only variables can be assigned to")) };
        let name = path.path.get_ident().ok_or_else(|| Error::new(left.span(), "only variables can be assigned to"))?;
        let variable = self.find(name)?;
        if !self.variables[variable].mutable {
            return Err(Error::new(left.span(), format!("`{name}` is not mutable: declare it with `let mut`")));
        }
        if variable < self.fixed {
            return Err(Error::new(left.span(), format!("`{name}` is assigned to inside an expression; make the `if` a statement")));
        }
        Ok(variable)
    }

    fn for_loop(&mut self, loop_: &syn::ExprForLoop) -> Result<Statement> {
        if let Some(label) = &loop_.label {
            return Err(Error::new(label.span(), "loops of kernels have no labels"));
        }
        let syn::Expr::Range(range) = &*loop_.expr else {
            return Err(Error::new(loop_.expr.span(), "loops of kernels go over ranges: `for i in 0..n`"));
        };
        let (Some(from), Some(to), syn::RangeLimits::HalfOpen(_)) = (&range.start, &range.end, &range.limits) else {
            return Err(Error::new(range.span(), "ranges of kernels have a beginning and an end that is not in them: `0..n`"));
        };
        let (from, to) = (self.expr(from)?, self.expr(to)?);
        self.inference.same(to.of, from.of, from.span)?;
        self.inference.ask(to.of, Class::Integer, to.span, "a range");
        let depth = self.scope.len();
        let (name, mutable) = match &*loop_.pat {
            Pat::Wild(wild) => (Ident::new("_unused", wild.span()), false),
            pattern => name_of(pattern)?,
        };
        if mutable {
            return Err(Error::new(loop_.pat.span(), "the variable of a loop is not mutable"));
        }
        let variable = self.declare(name, to.of, false);
        self.loops += 1;
        self.cost = Cost::Dear;
        let body = self.no_value(&loop_.body);
        self.loops -= 1;
        self.scope.truncate(depth);
        Ok(Statement::For { variable, from, to, body: body? })
    }

    fn condition(&mut self, expr: &syn::Expr) -> Result<Expr> {
        let condition = self.expr(expr)?;
        let bool_ = self.inference.of(Type::Prim(Prim::Bool));
        self.inference.same(bool_, condition.of, condition.span)?;
        Ok(condition)
    }

    fn expr(&mut self, expr: &syn::Expr) -> Result<Expr> {
        let span = expr.span();
        let made = |kind, of| Ok(Expr { kind, of, span });
        match expr {
            syn::Expr::Paren(inner) => self.expr(&inner.expr),
            syn::Expr::Group(inner) => self.expr(&inner.expr),
            syn::Expr::Lit(lit) => self.literal(&lit.lit),
            syn::Expr::Path(path) => {
                let Some(last) = path.path.segments.last().filter(|s| s.arguments.is_none()) else {
                    return Err(Error::new(span, "not a value of kernels"));
                };
                let constant = CONSTANTS.iter().find(|c| last.ident == c.name);
                let qualified: Vec<String> = path.path.segments.iter().rev().skip(1).map(|s| s.ident.to_string()).collect();
                let of_float = |name: Option<&String>| matches!(name.map(String::as_str), Some("f32" | "f64"));
                let constant = constant.filter(|c| match (&qualified[..], c.digits) {
                    ([], _) => c.name != "E",
                    ([consts, of, ..], Some(_)) => consts == "consts" && of_float(Some(of)),
                    ([.., of], None) => qualified.len() == 1 && of_float(Some(of)),
                    _ => false,
                });
                if path.path.segments.len() > 1 {
                    let constant = constant.ok_or_else(|| {
                        Error::new(
                            span,
                            "constants of kernels are those of std::f64::consts, and f64::INFINITY and f64::NAN; others are arguments",
                        )
                    })?;
                    let of = self.inference.float();
                    return made(ExprKind::Constant(constant), of);
                }
                match (self.find(&last.ident), constant) {
                    (Ok(variable), _) if self.whole(variable).is_some() => {
                        Err(Error::new(span, format!("`{0}` is an array: `{0}[i]`, `{0}.len()`", last.ident)))
                    }
                    (Ok(variable), _) => made(ExprKind::Variable(variable), self.variables[variable].of),
                    (Err(_), Some(constant)) => {
                        let of = self.inference.float();
                        made(ExprKind::Constant(constant), of)
                    }
                    (Err(e), None) => Err(e),
                }
            }
            syn::Expr::Unary(unary) => {
                let mut inner = self.expr(&unary.expr)?;
                // `-5` is one literal, so that the smallest integers can be written.
                if let (UnOp::Neg(_), ExprKind::Int(digits), syn::Expr::Lit(_)) = (&unary.op, &mut inner.kind, &*unary.expr) {
                    digits.insert(0, '-');
                    if let Some(last) = self.literals.last_mut() {
                        last.1 = digits.clone();
                    }
                    return Ok(Expr { span, ..inner });
                }
                self.operations += 1;
                match unary.op {
                    UnOp::Neg(_) => {
                        self.inference.ask(inner.of, Class::Number, span, "`-`");
                        let of = inner.of;
                        made(ExprKind::Negative(Box::new(inner)), of)
                    }
                    UnOp::Not(_) => {
                        let of = inner.of;
                        if self.inference.is_bool(of) {
                            return made(ExprKind::Not(Box::new(inner)), of);
                        }
                        self.inference.ask(of, Class::Integer, span, "`!`");
                        made(ExprKind::Not(Box::new(inner)), of)
                    }
                    _ => Err(Error::new(span, "references are not values of kernels")),
                }
            }
            syn::Expr::Binary(binary) => {
                let op = operator(&binary.op).ok_or_else(|| Error::new(binary.op.span(), "not an operator of kernels"))?;
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
                    return Err(Error::new(span, "an if that gives a value has an else"));
                };
                let condition = self.condition(&branches.cond)?;
                let (then, otherwise, of) = self.inside(|reader| reader.branches(&branches.then_branch, otherwise, span))?;
                self.operations += 1;
                made(ExprKind::If(Box::new(condition), then, otherwise), of)
            }
            syn::Expr::Block(block) if block.label.is_none() => {
                let read = self.inside(|reader| reader.block(&block.block))?;
                let of = read.value.as_ref().map(|v| v.of).ok_or_else(|| Error::new(span, "a block without a value"))?;
                made(ExprKind::Block(read), of)
            }
            syn::Expr::MethodCall(call) => self.method(call),
            syn::Expr::Call(call) => self.call(call),
            syn::Expr::Index(index) => {
                let (whole, of) = self.array(&index.expr)?;
                let at = self.expr(&index.index)?;
                self.inference.ask(at.of, Class::Integer, at.span, "an index");
                self.operations += 1;
                made(ExprKind::At(whole, Box::new(at)), of)
            }
            other => Err(Error::new(
                other.span(),
                "kernels are written in let, if, for, arithmetic, comparisons, `as` and the methods of numbers",
            )),
        }
    }

    /// Reads blocks of an expression: what stands outside is not changed there, nor a loop left.
    fn inside<R>(&mut self, read: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let before = (self.fixed, self.loops);
        (self.fixed, self.loops) = (self.variables.len(), 0);
        let result = read(self);
        (self.fixed, self.loops) = before;
        result
    }

    /// Both sides of an `if` that gives a value.
    fn branches(&mut self, then: &syn::Block, otherwise: &syn::Expr, span: Span) -> Result<(Block, Block, Slot)> {
        let then = self.block(then)?;
        let otherwise = match otherwise {
            syn::Expr::Block(block) => self.block(&block.block)?,
            nested => Block { statements: Vec::new(), value: Some(Box::new(self.expr(nested)?)) },
        };
        let (Some(a), Some(b)) = (&then.value, &otherwise.value) else {
            return Err(Error::new(span, "both sides of an if that gives a value end with one"));
        };
        self.inference.same(a.of, b.of, b.span)?;
        let of = a.of;
        Ok((then, otherwise, of))
    }

    /// A parameter that is seen whole, and its elements' type.
    fn array(&mut self, expr: &syn::Expr) -> Result<(usize, Slot)> {
        let wrong = || Error::new(expr.span(), "only parameters of type `&[T]` can be indexed");
        let syn::Expr::Path(path) = expr else { return Err(wrong()) };
        let variable = self.find(path.path.get_ident().ok_or_else(wrong)?)?;
        let whole = self.whole(variable).ok_or_else(wrong)?;
        Ok((whole, self.variables[variable].of))
    }

    fn binary(&mut self, op: Binary, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        self.operations += 1;
        let bool_ = self.inference.of(Type::Prim(Prim::Bool));
        let of = match op {
            Binary::And | Binary::Or => {
                self.inference.same(bool_, left.of, left.span)?;
                self.inference.same(bool_, right.of, right.span)?;
                bool_
            }
            Binary::Shl | Binary::Shr => {
                self.inference.ask(left.of, Class::Integer, span, "a shift");
                self.inference.same(left.of, right.of, right.span)?;
                left.of
            }
            _ => {
                self.inference.same(left.of, right.of, right.span)?;
                match op {
                    Binary::BitAnd | Binary::BitOr | Binary::BitXor if self.inference.is_bool(left.of) => bool_,
                    Binary::BitAnd | Binary::BitOr | Binary::BitXor => {
                        self.inference.ask(left.of, Class::Integer, span, "a bit operation");
                        left.of
                    }
                    Binary::Eq | Binary::Ne if self.inference.is_bool(left.of) => bool_,
                    Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => {
                        self.inference.ask(left.of, Class::Number, span, "a comparison");
                        bool_
                    }
                    _ => {
                        if matches!(op, Binary::Div | Binary::Rem) {
                            self.cost = self.cost.max(Cost::Medium);
                        }
                        self.inference.ask(left.of, Class::Number, span, "arithmetic");
                        self.inference.settle(left.of);
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
                int.base10_parse::<u64>().map_err(|_| Error::new(span, "a literal that no integer type holds"))?;
                (ExprKind::Int(int.base10_digits().into()), int.suffix())
            }
            // `2.` has a digit after the point once a suffix follows.
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
            return Err(Error::new(call.method.span(), format!("no method of kernels; those are {} and powi", known.join(", "))));
        };
        if call.args.len() + 1 != method.arity {
            let message = format!("`{name}` takes {} arguments, {} given", method.arity - 1, call.args.len());
            return Err(Error::new(call.method.span(), message));
        }
        let mut args = vec![self.expr(&call.receiver)?];
        for arg in &call.args {
            let arg = self.expr(arg)?;
            self.inference.same(args[0].of, arg.of, arg.span)?;
            args.push(arg);
        }
        let class = if method.form == Form::Number { Class::Number } else { Class::Float };
        self.inference.ask(args[0].of, class, call.method.span(), format!("`{name}`"));
        self.cost = self.cost.max(method.cost);
        self.operations += 1;
        let of = if method.form == Form::Test { self.inference.of(Type::Prim(Prim::Bool)) } else { args[0].of };
        Ok(Expr { kind: ExprKind::Method(method, args), of, span })
    }

    /// `x.powi(3)`: products, the same on every device.
    fn powi(&mut self, call: &syn::ExprMethodCall) -> Result<Expr> {
        let exponent = match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. })) if call.args.len() == 1 => n.base10_parse::<u32>().ok(),
            _ => None,
        };
        let exponent = exponent.filter(|n| (1..=64).contains(n));
        let exponent =
            exponent.ok_or_else(|| Error::new(call.span(), "`powi` takes an exponent from 1 to 64 as a literal; else `powf`"))?;
        let syn::Expr::Path(_) = &*call.receiver else {
            return Err(Error::new(call.receiver.span(), "`powi` of a variable: give the value a name first"));
        };
        let base = |reader: &mut Self| reader.expr(&call.receiver);
        // A product of two halves, each of two halves; equal ones are computed once.
        let mut power = base(self)?;
        self.inference.ask(power.of, Class::Number, call.method.span(), "`powi`");
        if exponent > 1 {
            power = self.product(exponent, &base, call.span())?;
        }
        Ok(power)
    }

    fn product(&mut self, n: u32, base: &impl Fn(&mut Self) -> Result<Expr>, span: Span) -> Result<Expr> {
        if n == 1 {
            return base(self);
        }
        let (left, right) = (self.product(n - n / 2, base, span)?, self.product(n / 2, base, span)?);
        self.binary(Binary::Mul, left, right, span)
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
            let message = format!("`{name}` is no function of this block, or stands below; functions of numbers are methods: `x.exp()`");
            return Err(Error::new(name.span(), message));
        };
        let earlier = self.earlier;
        let function = &earlier[at];
        if function.parameters.iter().any(|p| p.kind != Kind::Each) {
            return Err(Error::new(span, "a function that sees arrays whole, or indices, is not called by others"));
        }
        if function.parameters.len() != call.args.len() {
            let message = format!("`{name}` takes {} arguments, {} given", function.parameters.len(), call.args.len());
            return Err(Error::new(span, message));
        }
        // The generic type of the other function is one type of this one.
        let generic = self.inference.unknown();
        let mut args = Vec::new();
        for (p, arg) in function.parameters.iter().zip(&call.args) {
            let arg = self.expr(arg)?;
            let of = if p.of == Type::Generic { generic } else { self.inference.of(p.of) };
            self.inference.same(of, arg.of, arg.span)?;
            args.push(arg);
        }
        if let Some(bound) = function.bound {
            let class = match bound {
                Bound::Float => Class::Float,
                Bound::Integer => Class::Integer,
                Bound::Number => Class::Number,
            };
            self.inference.ask(generic, class, span, format!("`{name}`"));
        }
        self.cost = self.cost.max(function.cost);
        self.operations += 1;
        self.calls.push(at);
        let of = if function.result == Type::Generic { generic } else { self.inference.of(function.result) };
        Ok(Expr { kind: ExprKind::Call(at, args), of, span })
    }

    /// `index(1)`: a parameter of its own, once for each axis.
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

fn no_attributes(attrs: &[syn::Attribute]) -> Result<()> {
    attrs.first().map_or(Ok(()), |attr| Err(Error::new(attr.span(), "attributes stand before functions only")))
}

enum Either {
    Statement(Statement),
    Value(Expr),
}

/// Takes `#[reduction(identity = 0)]` out of a function's attributes.
fn identity(attrs: &mut Vec<syn::Attribute>) -> Result<Option<Identity>> {
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
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. }) => Some(Identity::Int(sign * n.base10_parse::<i128>()?)),
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Float(x), .. }) => {
            Some(Identity::Float(sign as f64 * x.base10_parse::<f64>()?)).filter(|i| matches!(i, Identity::Float(x) if x.is_finite()))
        }
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Bool(b), .. }) if !negative => Some(Identity::Bool(b.value)),
        syn::Expr::Path(path) => match (path.path.segments.last().map(|s| s.ident.to_string()).as_deref(), negative) {
            (Some("MIN"), false) | (Some("INFINITY"), true) => Some(Identity::Lowest),
            (Some("MAX" | "INFINITY"), false) => Some(Identity::Highest),
            _ => None,
        },
        _ => None,
    };
    read.map(Some).ok_or_else(|| wrong(pair.value.span()))
}

fn generics(generics: &syn::Generics) -> Result<(Option<Ident>, Option<Bound>)> {
    if let Some(clause) = &generics.where_clause {
        return Err(Error::new(clause.span(), "bounds stand where the type does: `<T: Float>`"));
    }
    let mut params = generics.params.iter();
    let Some(param) = params.next() else { return Ok((None, None)) };
    let wrong = || Error::new(param.span(), "a kernel has one generic type, `T: Float`, `T: Integer` or `T: Number`");
    if let Some(second) = params.next() {
        return Err(Error::new(second.span(), "a kernel has one generic type; other parameters have types of their own, such as f64"));
    }
    let GenericParam::Type(of) = param else { return Err(wrong()) };
    match of.bounds.first() {
        Some(TypeParamBound::Trait(bound)) if of.bounds.len() == 1 => {
            let name = bound.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
            let bound = Bound::parse(&name).ok_or_else(wrong)?;
            Ok((Some(of.ident.clone()), Some(bound)))
        }
        _ => Err(wrong()),
    }
}

fn name_of(pattern: &Pat) -> Result<(Ident, bool)> {
    match pattern {
        Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Ok((ident.ident.clone(), ident.mutability.is_some())),
        other => Err(Error::new(other.span(), "patterns of kernels are names")),
    }
}

/// Whether an `if` is an expression: its first block ends in one.
fn gives_value(branches: &syn::ExprIf) -> bool {
    match branches.then_branch.stmts.last() {
        Some(Stmt::Expr(syn::Expr::If(inner), None)) => gives_value(inner),
        Some(Stmt::Expr(
            syn::Expr::ForLoop(_) | syn::Expr::Assign(_) | syn::Expr::Break(_) | syn::Expr::Continue(_) | syn::Expr::Return(_),
            _,
        )) => false,
        Some(Stmt::Expr(syn::Expr::Binary(binary), None)) => compound(&binary.op).is_none(),
        Some(Stmt::Expr(_, semicolon)) => semicolon.is_none(),
        _ => false,
    }
}

fn operator(op: &BinOp) -> Option<Binary> {
    Some(match op {
        BinOp::Add(_) => Binary::Add,
        BinOp::Sub(_) => Binary::Sub,
        BinOp::Mul(_) => Binary::Mul,
        BinOp::Div(_) => Binary::Div,
        BinOp::Rem(_) => Binary::Rem,
        BinOp::And(_) => Binary::And,
        BinOp::Or(_) => Binary::Or,
        BinOp::BitAnd(_) => Binary::BitAnd,
        BinOp::BitOr(_) => Binary::BitOr,
        BinOp::BitXor(_) => Binary::BitXor,
        BinOp::Shl(_) => Binary::Shl,
        BinOp::Shr(_) => Binary::Shr,
        BinOp::Eq(_) => Binary::Eq,
        BinOp::Ne(_) => Binary::Ne,
        BinOp::Lt(_) => Binary::Lt,
        BinOp::Le(_) => Binary::Le,
        BinOp::Gt(_) => Binary::Gt,
        BinOp::Ge(_) => Binary::Ge,
        _ => return None,
    })
}

fn compound(op: &BinOp) -> Option<Binary> {
    Some(match op {
        BinOp::AddAssign(_) => Binary::Add,
        BinOp::SubAssign(_) => Binary::Sub,
        BinOp::MulAssign(_) => Binary::Mul,
        BinOp::DivAssign(_) => Binary::Div,
        BinOp::RemAssign(_) => Binary::Rem,
        BinOp::BitAndAssign(_) => Binary::BitAnd,
        BinOp::BitOrAssign(_) => Binary::BitOr,
        BinOp::BitXorAssign(_) => Binary::BitXor,
        BinOp::ShlAssign(_) => Binary::Shl,
        BinOp::ShrAssign(_) => Binary::Shr,
        _ => return None,
    })
}
