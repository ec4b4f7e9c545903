//! Conversion of Rust blocks and statements to typed trees.

use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::{Error, Pat, Result, Stmt};

use super::expression_parser::{binary_operator, is_assignment_operator};
use super::function_parser::{FunctionConverter, name_bound_by_pattern};
use crate::syntax_tree::{Block, Cost, Expr, ExprKind, Statement};
use crate::type_inference::{PrimitiveType, Type, TypeClass};

/// A statement, or the value at the end of a block.
enum StatementOrValue {
    Statement(Statement),
    Value(Expr),
}

impl FunctionConverter<'_> {
    pub(super) fn parse_block(&mut self, block: &syn::Block) -> Result<Block> {
        let depth = self.scope.len();
        let mut out = Block::default();
        for (n, statement) in block.stmts.iter().enumerate() {
            if out.value.is_some() {
                return Err(Error::new(statement.span(), "this value is not used; a `;` or an operator may be missing"));
            }
            let is_last = n + 1 == block.stmts.len();
            match statement {
                Stmt::Local(local) => {
                    let (pattern, written) = match &local.pat {
                        Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                        pattern => (pattern, None),
                    };
                    let (name, mutable) = name_bound_by_pattern(pattern)?;
                    let init = local.init.as_ref().filter(|i| i.diverge.is_none());
                    let init = init.ok_or_else(|| Error::new(local.span(), "a variable needs an initial value: `let x = ..;`"))?;
                    let value = self.convert_expression(&init.expr)?;
                    if let Some(written) = written {
                        let ty = self.convert_type(written)?;
                        let ty = self.inference.new_known_type_variable(ty);
                        self.inference.unify(ty, value.ty, value.span)?;
                    }
                    self.inference.restrict_to_integers(value.ty);
                    let variable = self.declare_variable(name, value.ty, mutable);
                    out.statements.push(Statement::Let(variable, value));
                }
                Stmt::Expr(expr, semicolon) => match self.convert_statement(expr, semicolon.is_some() || !is_last)? {
                    StatementOrValue::Statement(statement) => out.statements.push(statement),
                    StatementOrValue::Value(value) => out.value = Some(Box::new(value)),
                },
                other => {
                    return Err(Error::new(other.span(), "statements of kernels are let, assignments, if, for, break, continue, return"));
                }
            }
        }
        self.scope.truncate(depth);
        Ok(out)
    }

    /// Converts an expression in statement position. `is_statement` is false if the expression may be the value of the block.
    fn convert_statement(&mut self, expr: &syn::Expr, is_statement: bool) -> Result<StatementOrValue> {
        match expr {
            syn::Expr::Assign(assign) => {
                let variable = self.find_assignment_target(&assign.left)?;
                let value = self.convert_expression(&assign.right)?;
                self.inference.unify(self.variables[variable].ty, value.ty, value.span)?;
                Ok(StatementOrValue::Statement(Statement::Assign(variable, value)))
            }
            syn::Expr::Binary(binary) if is_assignment_operator(&binary.op) => {
                let variable = self.find_assignment_target(&binary.left)?;
                let left = Expr { kind: ExprKind::Variable(variable), ty: self.variables[variable].ty, span: binary.left.span() };
                let right = self.convert_expression(&binary.right)?;
                let value = self.convert_binary(binary_operator(&binary.op)?, left, right, binary.op.span())?;
                Ok(StatementOrValue::Statement(Statement::Assign(variable, value)))
            }
            syn::Expr::If(branches) if is_statement || !if_has_value(branches) => {
                let condition = self.convert_condition(&branches.cond)?;
                let then = self.convert_valueless_block(&branches.then_branch)?;
                let otherwise = match &branches.else_branch {
                    None => Block::default(),
                    Some((_, other)) => match &**other {
                        syn::Expr::Block(block) => self.convert_valueless_block(&block.block)?,
                        nested => match self.convert_statement(nested, true)? {
                            StatementOrValue::Statement(statement) => Block { statements: vec![statement], value: None },
                            StatementOrValue::Value(value) => return Err(Error::new(value.span, "this value is not used")),
                        },
                    },
                };
                Ok(StatementOrValue::Statement(Statement::If(condition, then, otherwise)))
            }
            syn::Expr::ForLoop(loop_) => self.convert_for_loop(loop_).map(StatementOrValue::Statement),
            syn::Expr::Break(_) | syn::Expr::Continue(_) if self.loops == 0 => {
                Err(Error::new(expr.span(), "not inside a loop, or inside an expression: make it a statement"))
            }
            syn::Expr::Break(b) if b.label.is_none() && b.expr.is_none() => Ok(StatementOrValue::Statement(Statement::Break)),
            syn::Expr::Continue(c) if c.label.is_none() => Ok(StatementOrValue::Statement(Statement::Continue)),
            syn::Expr::Return(ret) => {
                if self.outer_variables > 0 {
                    return Err(Error::new(ret.span(), "return inside an expression; make it a statement"));
                }
                let value = ret.expr.as_ref().ok_or_else(|| Error::new(ret.span(), "`return` needs a value"))?;
                let value = self.convert_expression(value)?;
                self.inference.unify(self.result, value.ty, value.span)?;
                Ok(StatementOrValue::Statement(Statement::Return(value)))
            }
            syn::Expr::While(_) | syn::Expr::Loop(_) => {
                Err(Error::new(expr.span(), "loops of kernels are bounded: `for i in 0..n { .. if done { break; } .. }`"))
            }
            syn::Expr::Block(block) if is_statement => {
                Err(Error::new(block.span(), "a block without a value is allowed only after `if`, `else` and `for`"))
            }
            other if is_statement => Err(Error::new(other.span(), "this value is not used")),
            other => self.convert_expression(other).map(StatementOrValue::Value),
        }
    }

    /// Converts a block in statement position, which has no value.
    fn convert_valueless_block(&mut self, block: &syn::Block) -> Result<Block> {
        let read = self.parse_block(block)?;
        match &read.value {
            Some(value) => Err(Error::new(value.span, "this value is not used; an `if` has a value only if all its branches end with one")),
            None => Ok(read),
        }
    }

    fn find_assignment_target(&mut self, left: &syn::Expr) -> Result<usize> {
        if let syn::Expr::Group(group) = left {
            return self.find_assignment_target(&group.expr);
        }
        let syn::Expr::Path(path) = left else { return Err(Error::new(left.span(), "only variables can be assigned to")) };
        let name = path.path.get_ident().ok_or_else(|| Error::new(left.span(), "only variables can be assigned to"))?;
        let variable = self.find_variable(name)?;
        if !self.variables[variable].mutable {
            return Err(Error::new(left.span(), format!("`{name}` is not mutable: declare it with `let mut`")));
        }
        if variable < self.outer_variables {
            return Err(Error::new(left.span(), format!("`{name}` is assigned to inside an expression; make the `if` a statement")));
        }
        Ok(variable)
    }

    fn convert_for_loop(&mut self, loop_: &syn::ExprForLoop) -> Result<Statement> {
        if let Some(label) = &loop_.label {
            return Err(Error::new(label.span(), "loops of kernels have no labels"));
        }
        let syn::Expr::Range(range) = &*loop_.expr else {
            return Err(Error::new(
                loop_.expr.span(),
                "loops of kernels iterate over ranges: `for i in 0..n`, or `0..a.len()` for the indices of an array",
            ));
        };
        let (Some(from), Some(to), syn::RangeLimits::HalfOpen(_)) = (&range.start, &range.end, &range.limits) else {
            return Err(Error::new(range.span(), "ranges of kernels have a start and an exclusive end: `0..n`"));
        };
        let (from, to) = (self.convert_expression(from)?, self.convert_expression(to)?);
        self.inference.unify(to.ty, from.ty, from.span)?;
        self.inference.require_type_class(to.ty, TypeClass::Integer, to.span, "a range");
        let depth = self.scope.len();
        let (name, mutable) = match &*loop_.pat {
            Pat::Wild(wild) => (Ident::new("_unused", wild.span()), false),
            pattern => name_bound_by_pattern(pattern)?,
        };
        if mutable {
            return Err(Error::new(loop_.pat.span(), "the variable of a loop is not mutable"));
        }
        let variable = self.declare_variable(name, to.ty, false);
        self.loops += 1;
        self.cost = Cost::Expensive;
        let body = self.convert_valueless_block(&loop_.body);
        self.loops -= 1;
        self.scope.truncate(depth);
        Ok(Statement::For { variable, from, to, body: body? })
    }

    pub(super) fn convert_condition(&mut self, expr: &syn::Expr) -> Result<Expr> {
        let condition = self.convert_expression(expr)?;
        let bool_ = self.inference.new_known_type_variable(Type::Primitive(PrimitiveType::Bool));
        self.inference.unify(bool_, condition.ty, condition.span)?;
        Ok(condition)
    }
}

/// Returns whether an `if` has a value: whether its first block ends in an expression with a value.
fn if_has_value(branches: &syn::ExprIf) -> bool {
    match branches.then_branch.stmts.last() {
        Some(Stmt::Expr(syn::Expr::If(inner), None)) => if_has_value(inner),
        Some(Stmt::Expr(
            syn::Expr::ForLoop(_) | syn::Expr::Assign(_) | syn::Expr::Break(_) | syn::Expr::Continue(_) | syn::Expr::Return(_),
            _,
        )) => false,
        Some(Stmt::Expr(syn::Expr::Binary(binary), None)) => !is_assignment_operator(&binary.op),
        Some(Stmt::Expr(_, semicolon)) => semicolon.is_none(),
        _ => false,
    }
}
