//! The typed syntax tree of a `kernel!` function, from which the Rust and CUDA sources are generated.

use proc_macro2::{Ident, Span};

use crate::types::{Bound, Prim, Slot, Type};

/// A function of a `kernel!` block.
pub struct Function {
    pub attrs: Vec<syn::Attribute>,
    pub vis: syn::Visibility,
    pub name: Ident,
    pub bound: Option<Bound>,
    pub parameters: Vec<Parameter>,
    pub result: Type,
    pub variables: Vec<Variable>,
    pub body: Block,
    /// Indices of the functions of the same block that this function calls.
    pub calls: Vec<usize>,
    /// Resolved types, indexed by the type variable [`Expr::of`].
    pub types: Vec<Type>,
    pub cost: Cost,
    /// Identity given by `#[reduction(identity = ..)]`. `None` for elementwise functions.
    pub identity: Option<Identity>,
}

/// The identity element of a reduction: the value that leaves the other operand unchanged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Identity {
    Int(i128),
    Float(f64),
    Bool(bool),
    /// The least value of the type: `MIN` or `-INFINITY`.
    Lowest,
    /// The greatest value of the type: `MAX` or `INFINITY`.
    Highest,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cost {
    Cheap,
    Medium,
    Expensive,
}

pub struct Parameter {
    pub name: Ident,
    pub variable: usize,
    pub of: Type,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One element per call.
    Each,
    /// The whole array, `&[T]`.
    Whole,
    /// The index of the element along this axis.
    Index(usize),
}

impl Kind {
    /// Returns the number of arguments that the parameter takes in the generated function, equal to core's `ParameterKind::arguments`.
    pub fn arguments(self) -> usize {
        if self == Kind::Whole { 2 } else { 1 }
    }
}

/// A variable or parameter. Generated code names it by its index.
pub struct Variable {
    pub name: Ident,
    pub of: Slot,
    pub mutable: bool,
}

#[derive(Default)]
pub struct Block {
    pub statements: Vec<Statement>,
    /// The value of the block, `None` if it ends in a statement.
    pub value: Option<Box<Expr>>,
}

pub enum Statement {
    Let(usize, Expr),
    Assign(usize, Expr),
    If(Expr, Block, Block),
    For { variable: usize, from: Expr, to: Expr, body: Block },
    Break,
    Continue,
    Return(Expr),
}

pub struct Expr {
    pub kind: ExprKind,
    pub of: Slot,
    pub span: Span,
}

pub enum ExprKind {
    Int(String),
    Float(String),
    Bool(bool),
    /// A constant of `std::f64::consts`, an infinity or NaN.
    Constant(&'static Constant),
    Variable(usize),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Cast(Box<Expr>),
    Method(&'static Method, Vec<Expr>),
    /// A call of the function with this index in the same block.
    Call(usize, Vec<Expr>),
    /// An element of the whole-array parameter with this index.
    At(usize, Box<Expr>),
    /// The length of the whole-array parameter with this index.
    Len(usize),
    If(Box<Expr>, Block, Block),
    Block(Block),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// The operators and their spelling in Rust.
pub const OPERATORS: [(&str, Binary); 18] = [
    ("+", Binary::Add),
    ("-", Binary::Sub),
    ("*", Binary::Mul),
    ("/", Binary::Div),
    ("%", Binary::Rem),
    ("&&", Binary::And),
    ("||", Binary::Or),
    ("&", Binary::BitAnd),
    ("|", Binary::BitOr),
    ("^", Binary::BitXor),
    ("<<", Binary::Shl),
    (">>", Binary::Shr),
    ("==", Binary::Eq),
    ("!=", Binary::Ne),
    ("<", Binary::Lt),
    ("<=", Binary::Le),
    (">", Binary::Gt),
    (">=", Binary::Ge),
];

/// A floating-point constant of Rust's standard library.
pub struct Constant {
    pub name: &'static str,
    /// Decimal digits of the constant. `None` for infinity and NaN.
    pub digits: Option<&'static str>,
}

pub static CONSTANTS: &[Constant] = &[
    Constant { name: "PI", digits: Some("3.14159265358979323846264338327950288") },
    Constant { name: "TAU", digits: Some("6.28318530717958647692528676655900577") },
    Constant { name: "E", digits: Some("2.71828182845904523536028747135266250") },
    Constant { name: "LN_2", digits: Some("0.693147180559945309417232121458176568") },
    Constant { name: "LN_10", digits: Some("2.30258509299404568401799145468436421") },
    Constant { name: "SQRT_2", digits: Some("1.41421356237309504880168872420969808") },
    Constant { name: "FRAC_1_SQRT_2", digits: Some("0.707106781186547524400844362104849039") },
    Constant { name: "INFINITY", digits: None },
    Constant { name: "NAN", digits: None },
];

/// The argument and result types of a method of Rust's numbers, and how generated code calls the method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// From number to number of the same type.
    Number,
    /// From float to float.
    Float,
    /// From float to float, generic over the SIMD instruction set.
    Math,
    /// Like `Math`, with a scalar slow path for rare arguments.
    MathWithSlowPath,
    /// From float to bool.
    Test,
}

/// A method of Rust's number types that kernel bodies may call.
pub struct Method {
    pub name: &'static str,
    /// Number of arguments, including the receiver.
    pub arity: usize,
    pub form: Form,
    /// Name of the equivalent function in the CUDA prelude.
    pub cuda: &'static str,
    pub cost: Cost,
}

const fn method(name: &'static str, arity: usize, form: Form, cuda: &'static str, cost: Cost) -> Method {
    Method { name, arity, form, cuda, cost }
}

pub static METHODS: &[Method] = &[
    method("abs", 1, Form::Number, "user_defined::abs", Cost::Cheap),
    method("min", 2, Form::Number, "user_defined::min", Cost::Cheap),
    method("max", 2, Form::Number, "user_defined::max", Cost::Cheap),
    method("sqrt", 1, Form::Float, "op::sqrt", Cost::Medium),
    method("floor", 1, Form::Float, "op::floor", Cost::Cheap),
    method("ceil", 1, Form::Float, "op::ceil", Cost::Cheap),
    method("trunc", 1, Form::Float, "op::trunc", Cost::Cheap),
    method("round_ties_even", 1, Form::Float, "op::rint", Cost::Cheap),
    method("copysign", 2, Form::Float, "user_defined::copysign", Cost::Cheap),
    method("mul_add", 3, Form::Math, "user_defined::mul_add", Cost::Cheap),
    method("sin", 1, Form::MathWithSlowPath, "op::sin", Cost::Expensive),
    method("cos", 1, Form::MathWithSlowPath, "op::cos", Cost::Expensive),
    method("tan", 1, Form::MathWithSlowPath, "op::tan", Cost::Expensive),
    method("exp", 1, Form::Math, "op::exp", Cost::Expensive),
    method("exp2", 1, Form::Math, "op::exp2", Cost::Expensive),
    method("exp_m1", 1, Form::Math, "op::expm1", Cost::Expensive),
    method("ln", 1, Form::Math, "op::log", Cost::Expensive),
    method("log2", 1, Form::Math, "op::log2", Cost::Expensive),
    method("log10", 1, Form::Math, "op::log10", Cost::Expensive),
    method("ln_1p", 1, Form::Math, "op::log1p", Cost::Expensive),
    method("cbrt", 1, Form::Math, "op::cbrt", Cost::Expensive),
    method("asin", 1, Form::Math, "op::asin", Cost::Expensive),
    method("acos", 1, Form::Math, "op::acos", Cost::Expensive),
    method("atan", 1, Form::Math, "op::atan", Cost::Expensive),
    method("sinh", 1, Form::Math, "op::sinh", Cost::Expensive),
    method("cosh", 1, Form::Math, "op::cosh", Cost::Expensive),
    method("tanh", 1, Form::Math, "op::tanh", Cost::Expensive),
    method("asinh", 1, Form::Math, "op::asinh", Cost::Expensive),
    method("acosh", 1, Form::Math, "op::acosh", Cost::Expensive),
    method("atanh", 1, Form::Math, "op::atanh", Cost::Expensive),
    method("atan2", 2, Form::Math, "op::atan2", Cost::Expensive),
    method("hypot", 2, Form::Math, "op::hypot", Cost::Expensive),
    method("powf", 2, Form::Math, "op::power", Cost::Expensive),
    method("is_nan", 1, Form::Test, "op::isnan", Cost::Cheap),
    method("is_finite", 1, Form::Test, "op::isfinite", Cost::Cheap),
    method("is_infinite", 1, Form::Test, "op::isinf", Cost::Cheap),
];

impl Function {
    /// Returns the resolved type of the type variable `slot`, which belongs to an expression or variable.
    pub fn of(&self, slot: Slot) -> Type {
        self.types.get(slot).copied().unwrap_or(Type::Prim(Prim::I32))
    }
}

impl Block {
    /// Calls `f` on every expression of the block, parents before children.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        for statement in &self.statements {
            match statement {
                Statement::Let(_, e) | Statement::Assign(_, e) | Statement::Return(e) => e.visit(f),
                Statement::If(condition, then, otherwise) => {
                    condition.visit(f);
                    then.visit(f);
                    otherwise.visit(f);
                }
                Statement::For { from, to, body, .. } => {
                    from.visit(f);
                    to.visit(f);
                    body.visit(f);
                }
                Statement::Break | Statement::Continue => {}
            }
        }
        if let Some(value) = &self.value {
            value.visit(f);
        }
    }

    /// Returns whether the block contains a loop at any depth.
    pub fn has_loop(&self) -> bool {
        let is_loop = |statement: &Statement| match statement {
            Statement::For { .. } => true,
            Statement::If(_, then, otherwise) => then.has_loop() || otherwise.has_loop(),
            _ => false,
        };
        let mut found = self.statements.iter().any(is_loop);
        self.visit(&mut |expr| match &expr.kind {
            ExprKind::If(_, then, otherwise) => found |= then.statements.iter().chain(&otherwise.statements).any(is_loop),
            ExprKind::Block(block) => found |= block.statements.iter().any(is_loop),
            _ => {}
        });
        found
    }
}

impl Expr {
    /// Calls `f` on this expression and all expressions in it.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Not(e) | ExprKind::Negative(e) | ExprKind::Cast(e) | ExprKind::At(_, e) => e.visit(f),
            ExprKind::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            ExprKind::Method(_, args) | ExprKind::Call(_, args) => args.iter().for_each(|arg| arg.visit(f)),
            ExprKind::If(condition, then, otherwise) => {
                condition.visit(f);
                then.visit(f);
                otherwise.visit(f);
            }
            ExprKind::Block(block) => block.visit(f),
            _ => {}
        }
    }
}
