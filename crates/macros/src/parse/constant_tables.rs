//! Conversion of constant tables, their elements, and polynomials.

use std::rc::Rc;

use syn::spanned::Spanned;
use syn::{Error, Lit, Result, UnOp};

use super::function_parser::FunctionConverter;
use crate::syntax_tree::{Block, ConstantTable, Cost, Expr, ExprKind, NUMBER_METHODS};
use crate::type_inference::{PrimitiveType, Type, TypeClass, TypeVariable};

/// Converts `const NAME: [f64; 3] = [..];` or a table of two dimensions.
pub(super) fn parse_constant_table(item: &syn::ItemConst) -> Result<ConstantTable> {
    let wrong =
        |span| Error::new(span, "a table of kernels is `const NAME: [f64; 3] = [..];` or `const NAME: [[f64; 3]; 2] = [[..], [..]];`");
    let syn::Type::Array(outer) = &*item.ty else { return Err(wrong(item.ty.span())) };
    let (element, is_matrix) = match &*outer.elem {
        syn::Type::Array(inner) => (&*inner.elem, true),
        element => (element, false),
    };
    let ty = match element {
        syn::Type::Path(path) => path.path.get_ident().and_then(|name| PrimitiveType::parse(&name.to_string())),
        _ => None,
    };
    let ty = ty.filter(|ty| *ty != PrimitiveType::Bool).ok_or_else(|| wrong(element.span()))?;
    let mut values = Vec::new();
    let syn::Expr::Array(array) = &*item.expr else { return Err(wrong(item.expr.span())) };
    let (rows, columns) = if is_matrix {
        let mut columns = None;
        for row in &array.elems {
            let syn::Expr::Array(row) = row else { return Err(wrong(row.span())) };
            if columns.is_some_and(|n| n != row.elems.len()) {
                return Err(Error::new(row.span(), "all rows of a table have the same length"));
            }
            columns = Some(row.elems.len());
            for value in &row.elems {
                values.push(table_element_literal(value)?);
            }
        }
        (Some(array.elems.len()), columns.unwrap_or(0))
    } else {
        for value in &array.elems {
            values.push(table_element_literal(value)?);
        }
        (None, values.len())
    };
    if values.is_empty() {
        return Err(Error::new(item.expr.span(), "a table has at least one element"));
    }
    Ok(ConstantTable { name: item.ident.clone(), ty, rows, columns, values })
}

/// Returns the literal of a table's element, without suffix.
fn table_element_literal(expr: &syn::Expr) -> Result<String> {
    let (sign, literal) = match expr {
        syn::Expr::Unary(syn::ExprUnary { op: UnOp::Neg(_), expr, .. }) => ("-", &**expr),
        other => ("", other),
    };
    match literal {
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Int(n), .. }) => Ok(format!("{sign}{}", n.base10_digits())),
        syn::Expr::Lit(syn::ExprLit { lit: Lit::Float(x), .. }) => Ok(format!("{sign}{}", x.base10_digits())),
        other => Err(Error::new(other.span(), "the elements of a table are numbers")),
    }
}

impl FunctionConverter<'_> {
    /// Returns whether `expr` is the name of a table, or a row of one.
    pub(super) fn is_table_or_row(&self, expr: &syn::Expr) -> bool {
        match expr {
            syn::Expr::Index(index) => self.is_table_or_row(&index.expr),
            syn::Expr::Path(path) => {
                path.path.get_ident().is_some_and(|name| self.find_variable(name).is_err() && self.tables.iter().any(|t| t.name == *name))
            }
            _ => false,
        }
    }

    /// Returns the index in `used_tables` of the table that `expr` names, and the table.
    fn register_used_table(&mut self, expr: &syn::Expr) -> Result<(usize, Rc<ConstantTable>)> {
        let name = match expr {
            syn::Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let table = name.and_then(|name| self.tables.iter().find(|t| t.name == *name));
        let table = table.ok_or_else(|| Error::new(expr.span(), "not a table of this block"))?.clone();
        if let Some(at) = self.used_tables.iter().position(|t| t.name == table.name) {
            return Ok((at, table));
        }
        self.used_tables.push(table.clone());
        Ok((self.used_tables.len() - 1, table))
    }

    fn convert_table_index(&mut self, index: &syn::Expr) -> Result<Box<Expr>> {
        let at = self.convert_expression(index)?;
        self.inference.require_type_class(at.ty, TypeClass::Integer, at.span, "an index");
        self.operations += 1;
        Ok(Box::new(at))
    }

    /// Converts `TABLE[i]` or `TABLE[i][j]`.
    pub(super) fn convert_table_element(&mut self, index: &syn::ExprIndex) -> Result<Expr> {
        let span = index.span();
        let (name, row) = match &*index.expr {
            syn::Expr::Index(row) => (&*row.expr, Some(&*row.index)),
            name => (name, None),
        };
        let (at, table) = self.register_used_table(name)?;
        if table.rows.is_some() != row.is_some() {
            return Err(Error::new(span, "an element of a table has one index for each dimension"));
        }
        let row = row.map(|row| self.convert_table_index(row)).transpose()?;
        let column = self.convert_table_index(&index.index)?;
        let ty = self.inference.new_known_type_variable(Type::Primitive(table.ty));
        Ok(Expr { kind: ExprKind::TableElement(at, row, column), ty, span })
    }

    /// Converts `x.polynomial(c)`, where `c` is a list, a table of one dimension, or a row of a table.
    pub(super) fn convert_polynomial(&mut self, call: &syn::ExprMethodCall) -> Result<Expr> {
        let (span, args) = (call.span(), call.args.len());
        let wrong = || Error::new(span, "`polynomial` takes the coefficients, lowest first: a list, a table, or a row of a table");
        let coefficients = call.args.first().filter(|_| args == 1).ok_or_else(wrong)?;
        let x = self.convert_expression(&call.receiver)?;
        self.inference.require_type_class(x.ty, TypeClass::Float, call.method.span(), "`polynomial`");
        self.operations += 1;
        let coefficients = match coefficients {
            syn::Expr::Reference(reference) => &*reference.expr,
            other => other,
        };
        let (table, row) = match coefficients {
            syn::Expr::Array(list) => return self.convert_polynomial_to_horner(x, list),
            syn::Expr::Index(index) if self.is_table_or_row(&index.expr) => {
                let (table, known) = self.register_used_table(&index.expr)?;
                known.rows.ok_or_else(wrong)?;
                (table, Some(self.convert_table_index(&index.index)?))
            }
            name if self.is_table_or_row(name) => (self.register_used_table(name)?.0, None),
            _ => return Err(wrong()),
        };
        let known = &self.used_tables[table];
        if known.rows.is_some() != row.is_some() {
            return Err(wrong());
        }
        self.operations += known.columns;
        let ty = self.inference.new_known_type_variable(Type::Primitive(known.ty));
        self.inference.unify(ty, x.ty, x.span)?;
        Ok(Expr { kind: ExprKind::TablePolynomial(table, row, Box::new(x)), ty, span })
    }

    /// Converts a polynomial with a list of coefficients to Horner's scheme.
    fn convert_polynomial_to_horner(&mut self, x: Expr, list: &syn::ExprArray) -> Result<Expr> {
        let span = list.span();
        let mul_add = NUMBER_METHODS.iter().find(|m| m.name == "mul_add").ok_or_else(|| Error::new(span, "no method `mul_add`"))?;
        let (ty, mut names): (TypeVariable, Block) = (x.ty, Block::default());
        let x = self.store_in_variable(x, &mut names);
        let mut sum: Option<Expr> = None;
        for coefficient in list.elems.iter().rev() {
            let coefficient = self.convert_expression(coefficient)?;
            self.inference.unify(ty, coefficient.ty, coefficient.span)?;
            sum = Some(match sum {
                None => coefficient,
                Some(sum) => {
                    let x = Expr { kind: ExprKind::Variable(x), ty, span };
                    Expr { kind: ExprKind::Method(mul_add, vec![sum, x, coefficient]), ty, span }
                }
            });
            self.operations += 1;
        }
        self.cost = self.cost.max(Cost::Cheap);
        let sum = sum.ok_or_else(|| Error::new(span, "a polynomial has at least one coefficient"))?;
        if names.statements.is_empty() {
            return Ok(sum);
        }
        names.value = Some(Box::new(sum));
        Ok(Expr { kind: ExprKind::Block(names), ty, span })
    }
}
