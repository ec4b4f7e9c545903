//! Blocks and statements.

use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::{Error, Pat, Result, Stmt};

use super::expressions::{assigns, operator};
use super::{Reader, name_of};
use crate::tree::{Block, Cost, Expr, ExprKind, Statement};
use crate::types::{Class, Prim, Type};

/// What stands where a statement may.
enum Either {
    Statement(Statement),
    Value(Expr),
}

impl Reader<'_> {
    pub(super) fn block(&mut self, block: &syn::Block) -> Result<Block> {
        let depth = self.scope.len();
        let mut out = Block::default();
        for (n, statement) in block.stmts.iter().enumerate() {
            if out.value.is_some() {
                return Err(Error::new(statement.span(), "a value that nothing is done with; `;` is missing, or something before it"));
            }
            let is_last = n + 1 == block.stmts.len();
            match statement {
                Stmt::Local(local) => {
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
        match expr {
            syn::Expr::Assign(assign) => {
                let variable = self.target(&assign.left)?;
                let value = self.expr(&assign.right)?;
                self.inference.same(self.variables[variable].of, value.of, value.span)?;
                Ok(Either::Statement(Statement::Assign(variable, value)))
            }
            syn::Expr::Binary(binary) if assigns(&binary.op) => {
                let variable = self.target(&binary.left)?;
                let left = Expr { kind: ExprKind::Variable(variable), of: self.variables[variable].of, span: binary.left.span() };
                let right = self.expr(&binary.right)?;
                let value = self.binary(operator(&binary.op)?, left, right, binary.op.span())?;
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
            syn::Expr::Block(block) if is_statement => {
                Err(Error::new(block.span(), "a block gives a value, or belongs to an `if` or `for`"))
            }
            other if is_statement => Err(Error::new(other.span(), "a value that nothing is done with")),
            other => self.expr(other).map(Either::Value),
        }
    }

    /// A block that stands as a statement.
    fn no_value(&mut self, block: &syn::Block) -> Result<Block> {
        let read = self.block(block)?;
        match &read.value {
            Some(value) => {
                Err(Error::new(value.span, "a value that nothing is done with; an `if` gives a value where all its sides end with one"))
            }
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
            return Err(Error::new(
                loop_.expr.span(),
                "loops of kernels go over ranges: `for i in 0..n`, of an array's indices `0..a.len()`",
            ));
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
        self.cost = Cost::Expensive;
        let body = self.no_value(&loop_.body);
        self.loops -= 1;
        self.scope.truncate(depth);
        Ok(Statement::For { variable, from, to, body: body? })
    }

    pub(super) fn condition(&mut self, expr: &syn::Expr) -> Result<Expr> {
        let condition = self.expr(expr)?;
        let bool_ = self.inference.of(Type::Prim(Prim::Bool));
        self.inference.same(bool_, condition.of, condition.span)?;
        Ok(condition)
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
        Some(Stmt::Expr(syn::Expr::Binary(binary), None)) => !assigns(&binary.op),
        Some(Stmt::Expr(_, semicolon)) => semicolon.is_none(),
        _ => false,
    }
}
