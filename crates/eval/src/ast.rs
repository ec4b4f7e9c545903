//! The syntax tree, with a [`Span`] on every node.
//!
//! Names are not resolved: the evaluator decides whether `sum` is a function or a variable.

use std::fmt;

use crate::operators::{BinaryOp, CompareOp, LogicalOp, UnaryOp};
use crate::span::{Position, Span};

/// A parsed script and its source text. Positions in evaluation errors refer to the source.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The source text, to which every [`Span`] of the tree refers.
    pub source: String,
    /// The statements in order. `import` lines produce none.
    pub statements: Vec<Stmt>,
}

impl Script {
    /// Returns the line and column of the start of `span`.
    pub fn position(&self, span: Span) -> Position {
        Position::of(&self.source, span.start)
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// The kind of statement.
    pub kind: StmtKind,
    /// Source range of the statement, without the `;` or line end.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    /// An expression statement. The value of a script's last statement is the value of the script.
    Expr(Expr),
    /// `a = b = value`: the value is evaluated once, then assigned to each target from left to right.
    Assign {
        /// The assignment targets from left to right, at least one.
        targets: Vec<Target>,
        /// The expression on the right-hand side of the assignment.
        value: Expr,
    },
    /// `target += value`; the target is a name or an index, never a tuple.
    AugAssign {
        /// The target to update.
        target: Target,
        /// The binary operator of the augmented assignment, such as `+` for `+=`.
        op: BinaryOp,
        /// Source range of the operator of the augmented assignment.
        op_span: Span,
        /// The expression on the right-hand side of the assignment.
        value: Expr,
    },
}

/// The left-hand side of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The kind of target.
    pub kind: TargetKind,
    /// Source range of the target.
    pub span: Span,
}

/// The kind of an assignment target.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetKind {
    /// A variable: `x`.
    Name(String),
    /// An element or slice of an array: `base[index]`.
    Index {
        /// The array whose elements are assigned, usually a name.
        base: Expr,
        /// The index in square brackets.
        index: Index,
    },
    /// A tuple to unpack: `a, b`, `(a, b)` or `[a, b]`. The value is split along its first axis into exactly this many parts.
    Tuple(Vec<Target>),
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// Source range of the expression, including its parentheses.
    pub span: Span,
    parenthesized: bool,
    height: u32,
}

/// The kind of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// An integer literal: `12`, `0xff`. It is never negative, because a sign is a separate [`Unary`](Self::Unary).
    Int(i128),
    /// A float literal: `1.5`, `1e-3`. Infinite on overflow, as in Python.
    Float(f64),
    /// An imaginary literal, such as `2j`: the imaginary part of a complex number whose real part is 0.
    Imaginary(f64),
    /// A string literal, such as `'float32'`, with adjacent literals joined.
    Str(String),
    /// `True` or `False`.
    Bool(bool),
    /// The literal `None`.
    None,
    /// The literal `...`.
    Ellipsis,
    /// A name without a prefix. It is looked up among the variables, then the functions and constants.
    Name(String),
    /// `np.sum`, `np.linalg.norm`, `np.pi`: a name that is looked up in the library, not among the variables.
    Global {
        /// The prefix (`np`). If a variable with this name exists, `path` is an attribute of the variable (`xp.T`, where `xp` is an
        /// array).
        module: String,
        /// The name after `module`, with its namespace: `sum`, `linalg.norm`.
        path: String,
    },
    /// A tuple: `(a, b)`, `a, b`, `(a,)` or `()`.
    Tuple(Vec<Expr>),
    /// A list: `[a, b]`.
    List(Vec<Expr>),
    /// A unary operator with its operand: `-x`, `+x`, `~x`, `not x`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// A binary operator with its operands: `a + b`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Source range of the operator.
        op_span: Span,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// A comparison, `a < b`, or a chain: `a < b <= c` means `a < b and b <= c` with `b` evaluated once.
    Compare {
        /// The leftmost operand of the comparison.
        first: Box<Expr>,
        /// The comparison operators, each with its right operand; at least one.
        rest: Vec<Comparison>,
    },
    /// `a and b and c` or `a or b`, with at least two operands. Later operands are evaluated only when needed.
    Logical {
        /// The operator.
        op: LogicalOp,
        /// The operands of `and` or `or`, from left to right.
        values: Vec<Expr>,
    },
    /// The conditional expression `then if test else otherwise`. Only one of `then` and `otherwise` is evaluated.
    Conditional {
        /// The condition.
        test: Box<Expr>,
        /// The value of the conditional expression if `test` is true.
        then: Box<Expr>,
        /// The value of the conditional expression if `test` is false.
        otherwise: Box<Expr>,
    },
    /// A call: `f(x, axis=0)`. For a method, `callee` is an [`Attribute`](Self::Attribute).
    Call {
        /// The function or method.
        callee: Box<Expr>,
        /// Positional arguments of the call.
        args: Vec<Expr>,
        /// Keyword arguments of the call. Each name occurs at most once.
        keywords: Vec<KeywordArg>,
    },
    /// An attribute: `a.T`, `a.sum`, and `linalg.norm` written without a prefix.
    Attribute {
        /// The expression before the dot, such as `a` in `a.T`.
        base: Box<Expr>,
        /// The name after the dot, such as `T` in `a.T`.
        name: String,
        /// Source range of the name after the dot.
        name_span: Span,
    },
    /// An index: `a[...]`.
    Index {
        /// The indexed expression, such as `a` in `a[0]`.
        base: Box<Expr>,
        /// The index in square brackets.
        index: Index,
    },
}

/// One step of a comparison chain: an operator and its right operand.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The operator.
    pub op: CompareOp,
    /// Source range of the comparison operator.
    pub op_span: Span,
    /// Right operand.
    pub right: Expr,
}

/// A keyword argument.
#[derive(Debug, Clone, PartialEq)]
pub struct KeywordArg {
    /// The name of the parameter, such as `axis` in `axis=0`.
    pub name: String,
    /// Source range of the name of the parameter.
    pub name_span: Span,
    /// The value of the argument, such as `0` in `axis=0`.
    pub value: Expr,
}

/// The contents of square brackets. As in Python, `a[(i, j)]` is the same as `a[i, j]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The items of the index, separated by commas; none for `a[()]`.
    pub items: Vec<IndexItem>,
    /// Whether the index is a tuple: `a[i,]`, `a[i, j]`, `a[()]`. Arrays treat both forms alike; lists do not accept tuples.
    pub tuple: bool,
    /// Source range of the index, including the brackets.
    pub span: Span,
}

/// One item of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexItem {
    /// The kind of item.
    pub kind: IndexItemKind,
    /// Source range of the item.
    pub span: Span,
}

/// The kind of an index item.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexItemKind {
    /// An expression whose value is an integer, a boolean or integer array or list, a slice, a tuple or `None`.
    Expr(Expr),
    /// A slice `start:stop:step`. Each of the three is optional.
    Slice {
        /// First index of the slice, or `None` if omitted.
        start: Option<Box<Expr>>,
        /// One past the last index of the slice, or `None` if omitted.
        stop: Option<Box<Expr>>,
        /// Distance between consecutive indices of the slice, or `None` if omitted.
        step: Option<Box<Expr>>,
    },
    /// `None` or `np.newaxis`, which inserts an axis of length 1.
    NewAxis,
    /// `...`: full slices of all axes that no other item indexes.
    Ellipsis,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Expr {
        let mut below = 0;
        kind.for_each_child(&mut |child| below = below.max(child.height));
        Expr { kind, span, parenthesized: false, height: below + 1 }
    }

    /// Marks the expression as parenthesized. `span` is its source range including the parentheses.
    pub(crate) fn with_parentheses(mut self, span: Span) -> Expr {
        self.span = span;
        self.parenthesized = true;
        self
    }

    /// Returns whether the expression is in parentheses. This distinguishes `a > (0 & b) < c` from `a > 0 & b < c`. The latter is usually a
    /// mistake.
    pub fn is_parenthesized(&self) -> bool {
        self.parenthesized
    }

    /// Returns the height of the tree: the number of nodes on the longest path to a leaf.
    ///
    /// The parser limits the height to [`MAX_HEIGHT`](crate::MAX_HEIGHT), so that functions over the tree may recurse.
    pub fn height(&self) -> usize {
        self.height as usize
    }

    /// Returns the dotted name if the expression consists of names and dots only. Both `np.linalg.norm` and `linalg.norm`
    /// give `linalg.norm`.
    pub fn dotted_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Name(name) => Some(name.clone()),
            ExprKind::Global { path, .. } => Some(path.clone()),
            ExprKind::Attribute { base, name, .. } => base.dotted_name().map(|base| format!("{base}.{name}")),
            _ => None,
        }
    }

    /// Returns a short description of the expression for error messages, such as `a call` or `a number`.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Imaginary(_) => "a number",
            ExprKind::Str(_) => "a string",
            ExprKind::Bool(true) => "`True`",
            ExprKind::Bool(false) => "`False`",
            ExprKind::None => "`None`",
            ExprKind::Ellipsis => "`...`",
            ExprKind::Name(_) => "a name",
            ExprKind::Global { .. } => "a name of the library",
            ExprKind::Tuple(_) => "a tuple",
            ExprKind::List(_) => "a list",
            ExprKind::Unary { .. } | ExprKind::Binary { .. } | ExprKind::Logical { .. } => "an operation",
            ExprKind::Compare { .. } => "a comparison",
            ExprKind::Conditional { .. } => "a conditional expression",
            ExprKind::Call { .. } => "a call",
            ExprKind::Attribute { .. } => "an attribute",
            ExprKind::Index { .. } => "an indexed value",
        }
    }
}

impl ExprKind {
    /// Calls `visit` on each direct subexpression, in Python's order of evaluation.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Imaginary(_) | ExprKind::Str(_) => {}
            ExprKind::Bool(_) | ExprKind::None | ExprKind::Ellipsis => {}
            ExprKind::Name(_) | ExprKind::Global { .. } => {}
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Logical { values: items, .. } => {
                items.iter().for_each(visit);
            }
            ExprKind::Unary { operand, .. } => visit(operand),
            ExprKind::Binary { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::Compare { first, rest } => {
                visit(first);
                rest.iter().for_each(|step| visit(&step.right));
            }
            ExprKind::Conditional { test, then, otherwise } => {
                visit(test);
                visit(then);
                visit(otherwise);
            }
            ExprKind::Call { callee, args, keywords } => {
                visit(callee);
                args.iter().for_each(&mut *visit);
                keywords.iter().for_each(|keyword| visit(&keyword.value));
            }
            ExprKind::Attribute { base, .. } => visit(base),
            ExprKind::Index { base, index } => {
                visit(base);
                index.for_each_child(visit);
            }
        }
    }
}

impl Index {
    /// Calls `visit` on each direct subexpression of the index from left to right.
    pub fn for_each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        for item in &self.items {
            match &item.kind {
                IndexItemKind::Expr(expr) => visit(expr),
                IndexItemKind::Slice { start, stop, step } => {
                    [start, stop, step].into_iter().flatten().for_each(|part| visit(part));
                }
                IndexItemKind::NewAxis | IndexItemKind::Ellipsis => {}
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::s_expressions::write_target(self, f)
    }
}

/// Writes the tree as an s-expression: `(+ a (* 2 b))`.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::s_expressions::write_expr(self, f)
    }
}

/// Writes the statement as an s-expression: `(= x (+ a 1))`.
impl fmt::Display for Stmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::s_expressions::write_stmt(self, f)
    }
}

/// Writes one s-expression per statement and line.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, stmt) in self.statements.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            stmt.fmt(f)?;
        }
        Ok(())
    }
}
