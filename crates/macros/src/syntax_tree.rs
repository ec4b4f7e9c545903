//! The typed syntax tree of a `kernel!` function, from which the Rust and CUDA sources are generated.

use std::rc::Rc;

use proc_macro2::{Ident, Span};

use crate::type_inference::{GenericBound, PrimitiveType, Type, TypeVariable};

/// A function of a `kernel!` block.
pub struct Function {
    pub attrs: Vec<syn::Attribute>,
    pub vis: syn::Visibility,
    pub name: Ident,
    pub bound: Option<GenericBound>,
    pub parameters: Vec<Parameter>,
    pub result: Type,
    pub variables: Vec<Variable>,
    pub body: Block,
    /// Indices of the functions of the same block that this function calls.
    pub calls: Vec<usize>,
    /// Resolved types, indexed by type variable ([`Expr::ty`]).
    pub types: Vec<Type>,
    pub cost: Cost,
    /// The identity element from `#[reduction(identity = ..)]`; `None` for elementwise functions.
    pub identity: Option<ReductionIdentity>,
    /// The constant tables that the body reads.
    pub tables: Vec<Rc<ConstantTable>>,
    /// Whether the function has the attribute `#[helper]`.
    pub is_helper: bool,
    /// Whether the function has the attribute `#[rust_only]`, which hides it from `eval`.
    pub is_rust_only: bool,
}

/// A constant table of a `kernel!` block: `const NAME: [f64; 3] = [..];` or `const NAME: [[f64; 3]; 2] = [[..], [..]];`.
pub struct ConstantTable {
    pub name: Ident,
    pub ty: PrimitiveType,
    /// Number of rows. `None` for a table with one dimension.
    pub rows: Option<usize>,
    /// Length of a row, or of the table if it has one dimension.
    pub columns: usize,
    /// The values in C order, as literals without suffix.
    pub values: Vec<String>,
}

/// The identity element of a reduction: the value that leaves the other operand unchanged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ReductionIdentity {
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
    pub ty: Type,
    pub kind: ParameterKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// One element of the argument per call of the function.
    Each,
    /// The whole array, `&[T]`.
    Whole,
    /// The index of the computed element along the axis with this number.
    Index(usize),
}

impl ParameterKind {
    /// Returns the number of arguments of the generated function for a parameter of this kind. Equal to `ParameterKind::argument_count` of
    /// the crate `cuprum_core`.
    pub fn argument_count(self) -> usize {
        if self == ParameterKind::Whole { 2 } else { 1 }
    }
}

/// A variable or parameter. Its name in generated code contains its index, because names may be shadowed.
pub struct Variable {
    pub name: Ident,
    pub ty: TypeVariable,
    pub mutable: bool,
}

#[derive(Default)]
pub struct Block {
    pub statements: Vec<Statement>,
    /// The expression at the end of the block, which is its value; `None` if the block ends in a statement.
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
    pub ty: TypeVariable,
    pub span: Span,
}

pub enum ExprKind {
    Int(String),
    Float(String),
    Bool(bool),
    /// A constant of `std::f64::consts`, infinity, or NaN.
    Constant(&'static FloatConstant),
    Variable(usize),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    Cast(Box<Expr>),
    Method(&'static NumberMethod, Vec<Expr>),
    /// A call of another function of the same `kernel!` block: the index of that function, and the arguments.
    Call(usize, Vec<Expr>),
    /// An element of a whole-array parameter: the index of the parameter, and the index of the element in the array.
    At(usize, Box<Expr>),
    /// The length of the whole-array parameter with this index.
    Len(usize),
    /// An element of a constant table: the index of the table in [`Function::tables`], the row (`None` for a table with one dimension) and
    /// the column.
    TableElement(usize, Option<Box<Expr>>, Box<Expr>),
    /// The value of a polynomial whose coefficients, lowest degree first, are a row of a constant table. The fields are the index of the
    /// table in [`Function::tables`], the row (`None` for a table with one dimension) and the argument of the polynomial.
    TablePolynomial(usize, Option<Box<Expr>>, Box<Expr>),
    If(Box<Expr>, Block, Block),
    Block(Block),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOperator {
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
pub const BINARY_OPERATORS: [(&str, BinaryOperator); 18] = [
    ("+", BinaryOperator::Add),
    ("-", BinaryOperator::Sub),
    ("*", BinaryOperator::Mul),
    ("/", BinaryOperator::Div),
    ("%", BinaryOperator::Rem),
    ("&&", BinaryOperator::And),
    ("||", BinaryOperator::Or),
    ("&", BinaryOperator::BitAnd),
    ("|", BinaryOperator::BitOr),
    ("^", BinaryOperator::BitXor),
    ("<<", BinaryOperator::Shl),
    (">>", BinaryOperator::Shr),
    ("==", BinaryOperator::Eq),
    ("!=", BinaryOperator::Ne),
    ("<", BinaryOperator::Lt),
    ("<=", BinaryOperator::Le),
    (">", BinaryOperator::Gt),
    (">=", BinaryOperator::Ge),
];

/// A floating-point constant of Rust's standard library.
pub struct FloatConstant {
    pub name: &'static str,
    /// Decimal digits of the constant. `None` for infinity and NaN.
    pub digits: Option<&'static str>,
}

pub static FLOAT_CONSTANTS: &[FloatConstant] = &[
    FloatConstant { name: "PI", digits: Some("3.14159265358979323846264338327950288") },
    FloatConstant { name: "TAU", digits: Some("6.28318530717958647692528676655900577") },
    FloatConstant { name: "E", digits: Some("2.71828182845904523536028747135266250") },
    FloatConstant { name: "LN_2", digits: Some("0.693147180559945309417232121458176568") },
    FloatConstant { name: "LN_10", digits: Some("2.30258509299404568401799145468436421") },
    FloatConstant { name: "SQRT_2", digits: Some("1.41421356237309504880168872420969808") },
    FloatConstant { name: "FRAC_1_SQRT_2", digits: Some("0.707106781186547524400844362104849039") },
    FloatConstant { name: "INFINITY", digits: None },
    FloatConstant { name: "NAN", digits: None },
];

/// The argument and result types of a method of Rust's numbers, and how generated code calls the method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MethodKind {
    /// Takes and returns integers or floats of one type.
    Number,
    /// Takes and returns floats.
    Float,
    /// Takes and returns floats. The Rust method is generic over the SIMD instruction set.
    Math,
    /// Like `Math`, but some rare arguments need a slower, exact computation. The method sets a flag for such an argument, and the backend
    /// computes the block of elements again.
    MathWithSlowPath,
    /// Takes a float and returns a bool.
    Test,
}

/// A method of Rust's number types that functions in `kernel!` may call.
pub struct NumberMethod {
    pub name: &'static str,
    /// Number of arguments, including the receiver.
    pub arity: usize,
    pub kind: MethodKind,
    /// Name of the equivalent function in the CUDA prelude.
    pub cuda: &'static str,
    pub cost: Cost,
}

const fn new_number_method(name: &'static str, arity: usize, kind: MethodKind, cuda: &'static str, cost: Cost) -> NumberMethod {
    NumberMethod { name, arity, kind, cuda, cost }
}

pub static NUMBER_METHODS: &[NumberMethod] = &[
    new_number_method("abs", 1, MethodKind::Number, "user_defined::abs", Cost::Cheap),
    new_number_method("min", 2, MethodKind::Number, "user_defined::min", Cost::Cheap),
    new_number_method("max", 2, MethodKind::Number, "user_defined::max", Cost::Cheap),
    new_number_method("sqrt", 1, MethodKind::Float, "op::sqrt", Cost::Medium),
    new_number_method("floor", 1, MethodKind::Float, "op::floor", Cost::Cheap),
    new_number_method("ceil", 1, MethodKind::Float, "op::ceil", Cost::Cheap),
    new_number_method("trunc", 1, MethodKind::Float, "op::trunc", Cost::Cheap),
    new_number_method("round_ties_even", 1, MethodKind::Float, "op::rint", Cost::Cheap),
    new_number_method("copysign", 2, MethodKind::Float, "user_defined::copysign", Cost::Cheap),
    new_number_method("mul_add", 3, MethodKind::Math, "user_defined::mul_add", Cost::Cheap),
    new_number_method("sin", 1, MethodKind::MathWithSlowPath, "op::sin", Cost::Expensive),
    new_number_method("cos", 1, MethodKind::MathWithSlowPath, "op::cos", Cost::Expensive),
    new_number_method("tan", 1, MethodKind::MathWithSlowPath, "op::tan", Cost::Expensive),
    new_number_method("exp", 1, MethodKind::Math, "op::exp", Cost::Expensive),
    new_number_method("exp2", 1, MethodKind::Math, "op::exp2", Cost::Expensive),
    new_number_method("exp_m1", 1, MethodKind::Math, "op::expm1", Cost::Expensive),
    new_number_method("ln", 1, MethodKind::Math, "op::log", Cost::Expensive),
    new_number_method("log2", 1, MethodKind::Math, "op::log2", Cost::Expensive),
    new_number_method("log10", 1, MethodKind::Math, "op::log10", Cost::Expensive),
    new_number_method("ln_1p", 1, MethodKind::Math, "op::log1p", Cost::Expensive),
    new_number_method("cbrt", 1, MethodKind::Math, "op::cbrt", Cost::Expensive),
    new_number_method("asin", 1, MethodKind::Math, "op::asin", Cost::Expensive),
    new_number_method("acos", 1, MethodKind::Math, "op::acos", Cost::Expensive),
    new_number_method("atan", 1, MethodKind::Math, "op::atan", Cost::Expensive),
    new_number_method("sinh", 1, MethodKind::Math, "op::sinh", Cost::Expensive),
    new_number_method("cosh", 1, MethodKind::Math, "op::cosh", Cost::Expensive),
    new_number_method("tanh", 1, MethodKind::Math, "op::tanh", Cost::Expensive),
    new_number_method("asinh", 1, MethodKind::Math, "op::asinh", Cost::Expensive),
    new_number_method("acosh", 1, MethodKind::Math, "op::acosh", Cost::Expensive),
    new_number_method("atanh", 1, MethodKind::Math, "op::atanh", Cost::Expensive),
    new_number_method("atan2", 2, MethodKind::Math, "op::atan2", Cost::Expensive),
    new_number_method("hypot", 2, MethodKind::Math, "op::hypot", Cost::Expensive),
    new_number_method("powf", 2, MethodKind::Math, "op::power", Cost::Expensive),
    new_number_method("is_nan", 1, MethodKind::Test, "op::isnan", Cost::Cheap),
    new_number_method("is_finite", 1, MethodKind::Test, "op::isfinite", Cost::Cheap),
    new_number_method("is_infinite", 1, MethodKind::Test, "op::isinf", Cost::Cheap),
];

impl Function {
    /// Returns the resolved type of the type variable `slot`, which belongs to an expression or variable.
    pub fn resolved_type(&self, slot: TypeVariable) -> Type {
        self.types.get(slot).copied().unwrap_or(Type::Primitive(PrimitiveType::I32))
    }
}

impl Block {
    /// Calls `f` on every expression of the block, parents before children.
    pub fn visit_expressions(&self, f: &mut impl FnMut(&Expr)) {
        for statement in &self.statements {
            match statement {
                Statement::Let(_, e) | Statement::Assign(_, e) | Statement::Return(e) => e.visit_expressions(f),
                Statement::If(condition, then, otherwise) => {
                    condition.visit_expressions(f);
                    then.visit_expressions(f);
                    otherwise.visit_expressions(f);
                }
                Statement::For { from, to, body, .. } => {
                    from.visit_expressions(f);
                    to.visit_expressions(f);
                    body.visit_expressions(f);
                }
                Statement::Break | Statement::Continue => {}
            }
        }
        if let Some(value) = &self.value {
            value.visit_expressions(f);
        }
    }

    /// Returns whether the block calls a method that needs an exact pass for rare arguments ([`MethodKind::MathWithSlowPath`]).
    pub fn contains_slow_path(&self) -> bool {
        let mut found = false;
        self.visit_expressions(&mut |expr| {
            found |= matches!(&expr.kind, ExprKind::Method(method, _) if method.kind == MethodKind::MathWithSlowPath);
        });
        found
    }

    /// Returns whether the block contains a loop at any depth.
    pub fn contains_loop(&self) -> bool {
        let is_loop = |statement: &Statement| match statement {
            Statement::For { .. } => true,
            Statement::If(_, then, otherwise) => then.contains_loop() || otherwise.contains_loop(),
            _ => false,
        };
        let mut found = self.statements.iter().any(is_loop);
        self.visit_expressions(&mut |expr| match &expr.kind {
            ExprKind::If(_, then, otherwise) => found |= then.statements.iter().chain(&otherwise.statements).any(is_loop),
            ExprKind::Block(block) => found |= block.statements.iter().any(is_loop),
            _ => {}
        });
        found
    }
}

impl Expr {
    /// Calls `f` on this expression and all expressions in it.
    pub fn visit_expressions(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Not(e) | ExprKind::Negative(e) | ExprKind::Cast(e) | ExprKind::At(_, e) => e.visit_expressions(f),
            ExprKind::Binary(_, a, b) => {
                a.visit_expressions(f);
                b.visit_expressions(f);
            }
            ExprKind::Method(_, args) | ExprKind::Call(_, args) => args.iter().for_each(|arg| arg.visit_expressions(f)),
            ExprKind::If(condition, then, otherwise) => {
                condition.visit_expressions(f);
                then.visit_expressions(f);
                otherwise.visit_expressions(f);
            }
            ExprKind::Block(block) => block.visit_expressions(f),
            ExprKind::TableElement(_, row, e) | ExprKind::TablePolynomial(_, row, e) => {
                row.iter().for_each(|row| row.visit_expressions(f));
                e.visit_expressions(f);
            }
            _ => {}
        }
    }
}
