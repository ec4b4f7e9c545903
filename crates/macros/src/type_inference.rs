//! Types of `kernel!` functions: one generic type and Rust's numbers. Inference is by unification; there is no subtyping.

use proc_macro2::Span;
use syn::{Error, Result};

/// The type of a value in a `kernel!` function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// The generic type of the function.
    Generic,
    Primitive(PrimitiveType),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrimitiveType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

/// Each primitive type with its name in Rust and the CUDA prelude, and the name of its `DType`.
const PRIMITIVE_NAMES: [(PrimitiveType, &str, &str); 11] = [
    (PrimitiveType::Bool, "bool", "Bool"),
    (PrimitiveType::I8, "i8", "I8"),
    (PrimitiveType::I16, "i16", "I16"),
    (PrimitiveType::I32, "i32", "I32"),
    (PrimitiveType::I64, "i64", "I64"),
    (PrimitiveType::U8, "u8", "U8"),
    (PrimitiveType::U16, "u16", "U16"),
    (PrimitiveType::U32, "u32", "U32"),
    (PrimitiveType::U64, "u64", "U64"),
    (PrimitiveType::F32, "f32", "F32"),
    (PrimitiveType::F64, "f64", "F64"),
];

impl PrimitiveType {
    pub fn parse(name: &str) -> Option<PrimitiveType> {
        PRIMITIVE_NAMES.iter().find(|(_, n, _)| *n == name).map(|(p, ..)| *p)
    }
    pub fn name(self) -> &'static str {
        PRIMITIVE_NAMES[self as usize].1
    }
    pub fn dtype_name(self) -> &'static str {
        PRIMITIVE_NAMES[self as usize].2
    }
    pub fn is_float(self) -> bool {
        matches!(self, PrimitiveType::F32 | PrimitiveType::F64)
    }
    /// Returns whether the literal `digits` is in the range of the type.
    pub fn can_hold_literal(self, digits: &str) -> bool {
        let int = |low: i128, high: i128| digits.parse::<i128>().is_ok_and(|n| (low..=high).contains(&n));
        match self {
            PrimitiveType::Bool => false,
            PrimitiveType::F32 => digits.parse::<f32>().is_ok_and(f32::is_finite),
            PrimitiveType::F64 => digits.parse::<f64>().is_ok_and(f64::is_finite),
            PrimitiveType::I8 => int(i8::MIN.into(), i8::MAX.into()),
            PrimitiveType::I16 => int(i16::MIN.into(), i16::MAX.into()),
            PrimitiveType::I32 => int(i32::MIN.into(), i32::MAX.into()),
            PrimitiveType::I64 => int(i64::MIN.into(), i64::MAX.into()),
            PrimitiveType::U8 => int(0, u8::MAX.into()),
            PrimitiveType::U16 => int(0, u16::MAX.into()),
            PrimitiveType::U32 => int(0, u32::MAX.into()),
            PrimitiveType::U64 => int(0, u64::MAX.into()),
        }
    }
    pub fn is_int(self) -> bool {
        self != PrimitiveType::Bool && !self.is_float()
    }
}

/// The trait bound of the generic type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenericBound {
    Float,
    Single,
    Double,
    Integer,
    Number,
}

impl GenericBound {
    pub fn parse(name: &str) -> Option<GenericBound> {
        match name {
            "Float" => Some(GenericBound::Float),
            "Single" => Some(GenericBound::Single),
            "Double" => Some(GenericBound::Double),
            "Integer" => Some(GenericBound::Integer),
            "Number" => Some(GenericBound::Number),
            _ => None,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            GenericBound::Float => "Float",
            GenericBound::Single => "Single",
            GenericBound::Double => "Double",
            GenericBound::Integer => "Integer",
            GenericBound::Number => "Number",
        }
    }
    /// Returns whether the bound accepts floats only.
    pub fn is_float(self) -> bool {
        matches!(self, GenericBound::Float | GenericBound::Single | GenericBound::Double)
    }
    /// Returns the types for which a function with this bound is instantiated.
    pub fn instantiated_types(self) -> impl Iterator<Item = PrimitiveType> {
        PRIMITIVE_NAMES.iter().map(|(p, ..)| *p).filter(move |p| match self {
            GenericBound::Float | GenericBound::Single | GenericBound::Double => p.is_float(),
            GenericBound::Integer => p.is_int(),
            GenericBound::Number => p.is_float() || p.is_int(),
        })
    }
}

/// A type variable of the inference, as its index.
pub type TypeVariable = usize;

/// The current constraint on a type variable, which inference narrows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum TypeConstraint {
    /// The type of another type variable, with which this one was unified.
    Same(TypeVariable),
    /// A known type.
    Type(Type),
    /// The type of an integer literal, which can become any numeric type.
    IntLiteral,
    /// The type of a variable or arithmetic result that comes from integer literals. It can become any integer type.
    Integer,
    /// The type of a float literal, which can become any float type.
    Float,
    Unconstrained,
}

/// A class of types that an operation requires, such as numbers or floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeClass {
    Number,
    Integer,
    Float,
}

impl TypeClass {
    fn description(self) -> &'static str {
        match self {
            TypeClass::Number => "a number",
            TypeClass::Integer => "an integer",
            TypeClass::Float => "a float",
        }
    }
}

/// Type inference of one function.
pub struct TypeInference {
    pub bound: Option<GenericBound>,
    slots: Vec<TypeConstraint>,
    required: Vec<(TypeVariable, TypeClass, Span, String)>,
}

impl TypeInference {
    pub fn new(bound: Option<GenericBound>) -> TypeInference {
        TypeInference { bound, slots: Vec::new(), required: Vec::new() }
    }

    fn new_type_variable(&mut self, known: TypeConstraint) -> TypeVariable {
        self.slots.push(known);
        self.slots.len() - 1
    }
    /// Returns a new type variable of the known type `ty`.
    pub fn new_known_type_variable(&mut self, ty: Type) -> TypeVariable {
        self.new_type_variable(TypeConstraint::Type(ty))
    }
    pub fn new_int_literal_variable(&mut self) -> TypeVariable {
        self.new_type_variable(TypeConstraint::IntLiteral)
    }
    pub fn new_float_literal_variable(&mut self) -> TypeVariable {
        self.new_type_variable(TypeConstraint::Float)
    }
    pub fn new_unconstrained_variable(&mut self) -> TypeVariable {
        self.new_type_variable(TypeConstraint::Unconstrained)
    }

    fn root_type_variable(&self, mut slot: TypeVariable) -> TypeVariable {
        while let TypeConstraint::Same(next) = self.slots[slot] {
            slot = next;
        }
        slot
    }

    /// Returns whether the type `ty` belongs to `class`.
    fn is_in_class(&self, ty: Type, class: TypeClass) -> bool {
        match (ty, class) {
            (Type::Generic, TypeClass::Number) => true,
            (Type::Generic, TypeClass::Integer) => self.bound == Some(GenericBound::Integer),
            (Type::Generic, TypeClass::Float) => self.bound.is_some_and(GenericBound::is_float),
            (Type::Primitive(p), TypeClass::Number) => p != PrimitiveType::Bool,
            (Type::Primitive(p), TypeClass::Integer) => p.is_int(),
            (Type::Primitive(p), TypeClass::Float) => p.is_float(),
        }
    }

    /// Returns whether the type `ty` can hold integers without conversion to floats.
    fn accepts_integers(&self, ty: Type) -> bool {
        match ty {
            Type::Generic => !self.bound.is_some_and(GenericBound::is_float),
            Type::Primitive(p) => p.is_int(),
        }
    }

    /// Restricts the type variable `slot` to integer types, if it is the type of an integer literal. Called for literals bound to a
    /// variable or used in arithmetic.
    pub fn restrict_to_integers(&mut self, slot: TypeVariable) {
        let root = self.root_type_variable(slot);
        if self.slots[root] == TypeConstraint::IntLiteral {
            self.slots[root] = TypeConstraint::Integer;
        }
    }

    /// Unifies the type variables `expected` and `found`.
    ///
    /// # Errors
    ///
    /// Returns a type mismatch at `span` if their types differ.
    pub fn unify(&mut self, expected: TypeVariable, found: TypeVariable, span: Span) -> Result<()> {
        let (a, b) = (self.root_type_variable(expected), self.root_type_variable(found));
        if a == b {
            return Ok(());
        }
        let known = match (self.slots[a], self.slots[b]) {
            (TypeConstraint::Unconstrained, other) | (other, TypeConstraint::Unconstrained) => other,
            (TypeConstraint::Type(x), TypeConstraint::Type(y)) if x == y => TypeConstraint::Type(x),
            (TypeConstraint::Type(t), TypeConstraint::IntLiteral) | (TypeConstraint::IntLiteral, TypeConstraint::Type(t))
                if self.is_in_class(t, TypeClass::Number) =>
            {
                TypeConstraint::Type(t)
            }
            (TypeConstraint::Type(t), TypeConstraint::Float) | (TypeConstraint::Float, TypeConstraint::Type(t))
                if self.is_in_class(t, TypeClass::Float) =>
            {
                TypeConstraint::Type(t)
            }
            (TypeConstraint::Type(t), TypeConstraint::Integer) | (TypeConstraint::Integer, TypeConstraint::Type(t))
                if self.accepts_integers(t) =>
            {
                TypeConstraint::Type(t)
            }
            (TypeConstraint::Integer, TypeConstraint::IntLiteral | TypeConstraint::Integer)
            | (TypeConstraint::IntLiteral, TypeConstraint::Integer) => TypeConstraint::Integer,
            (TypeConstraint::IntLiteral, TypeConstraint::IntLiteral) => TypeConstraint::IntLiteral,
            (TypeConstraint::IntLiteral | TypeConstraint::Float, TypeConstraint::IntLiteral | TypeConstraint::Float) => {
                TypeConstraint::Float
            }
            (x, y) => {
                let message =
                    format!("mismatched types: expected {}, found {}{}", self.describe_type(x), self.describe_type(y), mismatch_hint(x, y));
                return Err(Error::new(span, message));
            }
        };
        self.slots[a] = known;
        self.slots[b] = TypeConstraint::Same(a);
        Ok(())
    }

    fn describe_type(&self, known: TypeConstraint) -> String {
        match known {
            TypeConstraint::Type(Type::Generic) => format!("the generic type (any {})", self.bound.map_or("number", GenericBound::name)),
            TypeConstraint::Type(Type::Primitive(p)) => format!("`{}`", p.name()),
            TypeConstraint::IntLiteral | TypeConstraint::Integer => "an integer".into(),
            TypeConstraint::Float => "a float".into(),
            TypeConstraint::Same(_) | TypeConstraint::Unconstrained => "a value".into(),
        }
    }

    /// Returns whether the type variable `slot` is known to be bool.
    pub fn is_bool(&self, slot: TypeVariable) -> bool {
        self.slots[self.root_type_variable(slot)] == TypeConstraint::Type(Type::Primitive(PrimitiveType::Bool))
    }

    /// Returns the number of type variables.
    pub fn type_variable_count(&self) -> usize {
        self.slots.len()
    }

    /// Records that the type variable `slot` must resolve to a type of `class`. `what` names the operation in the error message.
    /// [`TypeInference::check_requirements`] verifies the requirement.
    pub fn require_type_class(&mut self, slot: TypeVariable, class: TypeClass, span: Span, what: impl Into<String>) {
        self.required.push((slot, class, span, what.into()));
    }

    /// Verifies all recorded requirements, once all types are known.
    ///
    /// # Errors
    ///
    /// Returns the first requirement that is not satisfied.
    pub fn check_requirements(&self) -> Result<()> {
        for (slot, class, span, what) in &self.required {
            let ty = self.resolve_type(*slot);
            if !self.is_in_class(ty, *class) {
                let found = self.describe_type(TypeConstraint::Type(ty));
                return Err(Error::new(*span, format!("{what} takes {}, found {found}", class.description())));
            }
        }
        Ok(())
    }

    /// Returns the inferred type of `slot`. As in Rust, unconstrained literals are i32 and f64.
    pub fn resolve_type(&self, slot: TypeVariable) -> Type {
        match self.slots[self.root_type_variable(slot)] {
            TypeConstraint::Type(ty) => ty,
            TypeConstraint::Float => Type::Primitive(PrimitiveType::F64),
            _ => Type::Primitive(PrimitiveType::I32),
        }
    }
}

fn mismatch_hint(a: TypeConstraint, b: TypeConstraint) -> &'static str {
    match (a, b) {
        (TypeConstraint::Type(Type::Primitive(PrimitiveType::Bool)), _)
        | (_, TypeConstraint::Type(Type::Primitive(PrimitiveType::Bool))) => "",
        (TypeConstraint::Type(_), TypeConstraint::Type(_)) => "; convert one with `as`",
        (TypeConstraint::Type(_), TypeConstraint::Integer) | (TypeConstraint::Integer, TypeConstraint::Type(_)) => {
            "; a float literal has a point (`1.0`), and `as` converts"
        }
        _ => "",
    }
}
