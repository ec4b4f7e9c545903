//! Types of `kernel!` functions: one generic type and Rust's numbers. Inference is by unification; there is no subtyping.

use proc_macro2::Span;
use syn::{Error, Result};

/// The type of a value in a `kernel!` function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// The generic type of the function.
    Generic,
    Prim(Prim),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prim {
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
const NAMES: [(Prim, &str, &str); 11] = [
    (Prim::Bool, "bool", "Bool"),
    (Prim::I8, "i8", "I8"),
    (Prim::I16, "i16", "I16"),
    (Prim::I32, "i32", "I32"),
    (Prim::I64, "i64", "I64"),
    (Prim::U8, "u8", "U8"),
    (Prim::U16, "u16", "U16"),
    (Prim::U32, "u32", "U32"),
    (Prim::U64, "u64", "U64"),
    (Prim::F32, "f32", "F32"),
    (Prim::F64, "f64", "F64"),
];

impl Prim {
    pub fn parse(name: &str) -> Option<Prim> {
        NAMES.iter().find(|(_, n, _)| *n == name).map(|(p, ..)| *p)
    }
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
    pub fn dtype(self) -> &'static str {
        NAMES[self as usize].2
    }
    pub fn is_float(self) -> bool {
        matches!(self, Prim::F32 | Prim::F64)
    }
    /// Returns whether the literal `digits` is in the range of the type.
    pub fn holds(self, digits: &str) -> bool {
        let int = |low: i128, high: i128| digits.parse::<i128>().is_ok_and(|n| (low..=high).contains(&n));
        match self {
            Prim::Bool => false,
            Prim::F32 => digits.parse::<f32>().is_ok_and(f32::is_finite),
            Prim::F64 => digits.parse::<f64>().is_ok_and(f64::is_finite),
            Prim::I8 => int(i8::MIN.into(), i8::MAX.into()),
            Prim::I16 => int(i16::MIN.into(), i16::MAX.into()),
            Prim::I32 => int(i32::MIN.into(), i32::MAX.into()),
            Prim::I64 => int(i64::MIN.into(), i64::MAX.into()),
            Prim::U8 => int(0, u8::MAX.into()),
            Prim::U16 => int(0, u16::MAX.into()),
            Prim::U32 => int(0, u32::MAX.into()),
            Prim::U64 => int(0, u64::MAX.into()),
        }
    }
    pub fn is_int(self) -> bool {
        self != Prim::Bool && !self.is_float()
    }
}

/// The trait bound of the generic type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    Float,
    Integer,
    Number,
}

impl Bound {
    pub fn parse(name: &str) -> Option<Bound> {
        match name {
            "Float" => Some(Bound::Float),
            "Integer" => Some(Bound::Integer),
            "Number" => Some(Bound::Number),
            _ => None,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Bound::Float => "Float",
            Bound::Integer => "Integer",
            Bound::Number => "Number",
        }
    }
    /// Returns the types for which the function is instantiated.
    pub fn types(self) -> impl Iterator<Item = Prim> {
        NAMES.iter().map(|(p, ..)| *p).filter(move |p| match self {
            Bound::Float => p.is_float(),
            Bound::Integer => p.is_int(),
            Bound::Number => p.is_float() || p.is_int(),
        })
    }
}

/// The number of a type variable of the inference.
pub type Slot = usize;

/// The knowledge of the inference about the type of a type variable.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Known {
    Same(Slot),
    Type(Type),
    /// An integer literal, which can become any number.
    IntLiteral,
    /// A variable or result computed from integer literals, which can become any integer.
    Integer,
    /// A float literal, which can become any float.
    Float,
    Unconstrained,
}

/// A class of types that an operation requires, such as numbers or floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Number,
    Integer,
    Float,
}

impl Class {
    fn describe(self) -> &'static str {
        match self {
            Class::Number => "a number",
            Class::Integer => "an integer",
            Class::Float => "a float",
        }
    }
}

/// Type inference of one function.
pub struct Inference {
    pub bound: Option<Bound>,
    slots: Vec<Known>,
    required: Vec<(Slot, Class, Span, String)>,
}

impl Inference {
    pub fn new(bound: Option<Bound>) -> Inference {
        Inference { bound, slots: Vec::new(), required: Vec::new() }
    }

    fn slot(&mut self, known: Known) -> Slot {
        self.slots.push(known);
        self.slots.len() - 1
    }
    pub fn of(&mut self, of: Type) -> Slot {
        self.slot(Known::Type(of))
    }
    pub fn int(&mut self) -> Slot {
        self.slot(Known::IntLiteral)
    }
    pub fn float(&mut self) -> Slot {
        self.slot(Known::Float)
    }
    pub fn unknown(&mut self) -> Slot {
        self.slot(Known::Unconstrained)
    }

    fn root(&self, mut slot: Slot) -> Slot {
        while let Known::Same(next) = self.slots[slot] {
            slot = next;
        }
        slot
    }

    fn is(&self, of: Type, class: Class) -> bool {
        match (of, class) {
            (Type::Generic, Class::Number) => true,
            (Type::Generic, Class::Integer) => self.bound == Some(Bound::Integer),
            (Type::Generic, Class::Float) => self.bound == Some(Bound::Float),
            (Type::Prim(p), Class::Number) => p != Prim::Bool,
            (Type::Prim(p), Class::Integer) => p.is_int(),
            (Type::Prim(p), Class::Float) => p.is_float(),
        }
    }

    /// Returns whether the type `of` can hold integers without conversion to floats.
    fn accepts_integers(&self, of: Type) -> bool {
        match of {
            Type::Generic => self.bound != Some(Bound::Float),
            Type::Prim(p) => p.is_int(),
        }
    }

    /// Restricts `slot`, the type of an integer literal, to integer types. Applies to literals bound to a variable or used in
    /// arithmetic.
    pub fn fix_integer(&mut self, slot: Slot) {
        let root = self.root(slot);
        if self.slots[root] == Known::IntLiteral {
            self.slots[root] = Known::Integer;
        }
    }

    /// Unifies the type variables `expected` and `found`.
    ///
    /// # Errors
    ///
    /// Returns a type mismatch at `span` if their types differ.
    pub fn unify(&mut self, expected: Slot, found: Slot, span: Span) -> Result<()> {
        let (a, b) = (self.root(expected), self.root(found));
        if a == b {
            return Ok(());
        }
        let known = match (self.slots[a], self.slots[b]) {
            (Known::Unconstrained, other) | (other, Known::Unconstrained) => other,
            (Known::Type(x), Known::Type(y)) if x == y => Known::Type(x),
            (Known::Type(t), Known::IntLiteral) | (Known::IntLiteral, Known::Type(t)) if self.is(t, Class::Number) => Known::Type(t),
            (Known::Type(t), Known::Float) | (Known::Float, Known::Type(t)) if self.is(t, Class::Float) => Known::Type(t),
            (Known::Type(t), Known::Integer) | (Known::Integer, Known::Type(t)) if self.accepts_integers(t) => Known::Type(t),
            (Known::Integer, Known::IntLiteral | Known::Integer) | (Known::IntLiteral, Known::Integer) => Known::Integer,
            (Known::IntLiteral, Known::IntLiteral) => Known::IntLiteral,
            (Known::IntLiteral | Known::Float, Known::IntLiteral | Known::Float) => Known::Float,
            (x, y) => {
                let message = format!("mismatched types: expected {}, found {}{}", self.describe(x), self.describe(y), hint(x, y));
                return Err(Error::new(span, message));
            }
        };
        self.slots[a] = known;
        self.slots[b] = Known::Same(a);
        Ok(())
    }

    fn describe(&self, known: Known) -> String {
        match known {
            Known::Type(Type::Generic) => format!("the generic type (any {})", self.bound.map_or("number", Bound::name)),
            Known::Type(Type::Prim(p)) => format!("`{}`", p.name()),
            Known::IntLiteral | Known::Integer => "an integer".into(),
            Known::Float => "a float".into(),
            Known::Same(_) | Known::Unconstrained => "a value".into(),
        }
    }

    /// Returns whether the type variable `slot` is known to be bool.
    pub fn is_bool(&self, slot: Slot) -> bool {
        self.slots[self.root(slot)] == Known::Type(Type::Prim(Prim::Bool))
    }

    /// Returns the number of type variables.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Records that the type `slot` must be of `class`; `what` names it in the error. [`Inference::check`] verifies the requirement.
    pub fn require(&mut self, slot: Slot, class: Class, span: Span, what: impl Into<String>) {
        self.required.push((slot, class, span, what.into()));
    }

    /// Verifies all recorded requirements, once all types are known.
    ///
    /// # Errors
    ///
    /// Returns the first requirement that is not satisfied.
    pub fn check(&self) -> Result<()> {
        for (slot, class, span, what) in &self.required {
            let of = self.resolve(*slot);
            if !self.is(of, *class) {
                let found = self.describe(Known::Type(of));
                return Err(Error::new(*span, format!("{what} takes {}, found {found}", class.describe())));
            }
        }
        Ok(())
    }

    /// Returns the inferred type of `slot`. As in Rust, unconstrained literals are i32 and f64.
    pub fn resolve(&self, slot: Slot) -> Type {
        match self.slots[self.root(slot)] {
            Known::Type(of) => of,
            Known::Float => Type::Prim(Prim::F64),
            _ => Type::Prim(Prim::I32),
        }
    }
}

fn hint(a: Known, b: Known) -> &'static str {
    match (a, b) {
        (Known::Type(Type::Prim(Prim::Bool)), _) | (_, Known::Type(Type::Prim(Prim::Bool))) => "",
        (Known::Type(_), Known::Type(_)) => "; convert one with `as`",
        (Known::Type(_), Known::Integer) | (Known::Integer, Known::Type(_)) => "; a float literal has a point (`1.0`), and `as` converts",
        _ => "",
    }
}
