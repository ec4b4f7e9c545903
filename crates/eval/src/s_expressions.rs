//! `Display` of syntax trees as s-expressions, which show how operators are grouped.

use std::fmt::{Formatter, Result};

use crate::ast::{Expr, ExprKind, Index, IndexItemKind, Stmt, StmtKind, Target, TargetKind};

pub(crate) fn write_stmt(stmt: &Stmt, f: &mut Formatter<'_>) -> Result {
    match &stmt.kind {
        StmtKind::Expr(value) => write_expr(value, f),
        StmtKind::Assign { targets, value } => {
            f.write_str("(=")?;
            for each in targets {
                f.write_str(" ")?;
                write_target(each, f)?;
            }
            write!(f, " {value})")
        }
        StmtKind::AugAssign { target, op, value, .. } => write!(f, "({}= {target} {value})", op.symbol()),
    }
}

pub(crate) fn write_target(target: &Target, f: &mut Formatter<'_>) -> Result {
    match &target.kind {
        TargetKind::Name(name) => f.write_str(name),
        TargetKind::Index { base, index } => self::write_index(base, index, f),
        TargetKind::Tuple(items) => {
            f.write_str("(tuple")?;
            for item in items {
                write!(f, " {item}")?;
            }
            f.write_str(")")
        }
    }
}

pub(crate) fn write_expr(expr: &Expr, f: &mut Formatter<'_>) -> Result {
    match &expr.kind {
        ExprKind::Int(value) => write!(f, "{value}"),
        ExprKind::Float(value) => write!(f, "{value:?}"),
        ExprKind::Imaginary(value) => write!(f, "{value:?}j"),
        ExprKind::Str(value) => write!(f, "{value:?}"),
        ExprKind::Bool(true) => f.write_str("True"),
        ExprKind::Bool(false) => f.write_str("False"),
        ExprKind::None => f.write_str("None"),
        ExprKind::Ellipsis => f.write_str("..."),
        ExprKind::Name(name) => f.write_str(name),
        ExprKind::Global { module, path } => write!(f, "{module}:{path}"),
        ExprKind::Tuple(items) => write_list("tuple", items, f),
        ExprKind::List(items) => write_list("list", items, f),
        ExprKind::Unary { op, operand } => write!(f, "({} {operand})", op.symbol()),
        ExprKind::Binary { op, left, right, .. } => write!(f, "({} {left} {right})", op.symbol()),
        ExprKind::Logical { op, values } => write_list(op.symbol(), values, f),
        ExprKind::Compare { first, rest } => {
            write!(f, "(compare {first}")?;
            for step in rest {
                write!(f, " {} {}", step.op.symbol(), step.right)?;
            }
            f.write_str(")")
        }
        ExprKind::Conditional { test, then, otherwise } => write!(f, "(if {test} {then} {otherwise})"),
        ExprKind::Call { callee, args, keywords } => {
            write!(f, "(call {callee}")?;
            for arg in args {
                write!(f, " {arg}")?;
            }
            for keyword in keywords {
                write!(f, " :{} {}", keyword.name, keyword.value)?;
            }
            f.write_str(")")
        }
        ExprKind::Attribute { base, name, .. } => write!(f, "(. {base} {name})"),
        ExprKind::Index { base, index } => self::write_index(base, index, f),
    }
}

fn write_list(head: &str, items: &[Expr], f: &mut Formatter<'_>) -> Result {
    write!(f, "({head}")?;
    for item in items {
        write!(f, " {item}")?;
    }
    f.write_str(")")
}

fn write_index(base: &Expr, index: &Index, f: &mut Formatter<'_>) -> Result {
    write!(f, "(index {base}")?;
    for item in &index.items {
        match &item.kind {
            IndexItemKind::Expr(value) => write!(f, " {value}")?,
            IndexItemKind::NewAxis => f.write_str(" newaxis")?,
            IndexItemKind::Ellipsis => f.write_str(" ...")?,
            IndexItemKind::Slice { start, stop, step } => {
                f.write_str(" (slice")?;
                for part in [start, stop, step] {
                    match part {
                        Some(value) => write!(f, " {value}")?,
                        None => f.write_str(" _")?,
                    }
                }
                f.write_str(")")?;
            }
        }
    }
    f.write_str(")")
}
