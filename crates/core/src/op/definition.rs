//! What an operation is: one row of a table. The rows themselves stand in `ops/`, a file per family.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::array::NdArray;
use crate::body::Body;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// The few shapes that kernels come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Family {
    Map,
    Reduce,
    Rows,
    Scan,
    Contract,
    Sort,
    Select,
    Search,
    Histogram,
    Gather,
    Scatter,
    Fill,
    Copy,
    Random,
    Fft,
    Linalg,
    Sparse,
    Custom,
}

impl Family {
    /// All families, in declaration order.
    pub const ALL: [Family; 18] = {
        use Family::*;
        [
            Map, Reduce, Rows, Scan, Contract, Sort, Select, Search, Histogram, Gather, Scatter, Fill, Copy, Random, Fft, Linalg, Sparse,
            Custom,
        ]
    };
}

/// How an elementwise operation's argument and result dtypes follow from its inputs' (NumPy's `ufunc.types`, as a rule).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeRule {
    /// Promote; result is the promoted dtype. Bool stays bool (`add` is then "or", `multiply` "and").
    Promote,
    /// As [`TypeRule::Promote`], but bool is refused (`subtract`, `negative`, `positive`, `sign`).
    PromoteNoBool,
    /// As [`TypeRule::PromoteNoBool`] over real dtypes; bool becomes int8 (`floor_divide`, `remainder`).
    PromoteReal,
    /// Promote, bool becomes int8 (`power`, `square`, `conj`).
    PromoteNumber,
    /// Promote over ordered dtypes, complex included lexicographically (`maximum`, `minimum`).
    Ordered,
    /// Ints become the smallest float that NumPy gives them; complex allowed (`sin`, `exp`, `rint`).
    Inexact,
    /// As [`TypeRule::Inexact`] without complex (`cbrt`, `hypot`, `atan2`).
    Float,
    /// Ints become float64 (`divide`).
    Divide,
    /// Real only; bool and ints are returned unchanged (`floor`, `ceil`, `trunc`).
    Round,
    /// As [`TypeRule::Round`], and complex is rounded by part (`round`).
    RoundComplex,
    /// Promote; result is bool (`less`).
    Compare,
    /// Every argument is taken as a truth value; result is bool (`logical_and`).
    Logical,
    /// Bool and ints (`bitwise_and`).
    Bitwise,
    /// Ints; bool becomes int8 (`left_shift`).
    Shift,
    /// Any dtype; result is the dtype of the real part (`abs`, `real`, `imag`).
    RealPart,
    /// Any dtype unchanged (`astype`).
    Same,
    /// Inexact dtypes and ints; result is bool (`isnan`).
    Test,
    /// First argument a truth value, the others promoted (`where`).
    Where,
}

/// An argument as a type rule sees it: an array's dtype, or a weak scalar.
#[derive(Clone, Copy, Debug)]
pub enum ArgType {
    /// An array of this dtype.
    Array(DType),
    /// A Python-like scalar.
    Weak(Scalar),
}

/// Most arguments that an elementwise operation has.
pub const MAX_ARITY: usize = 8;

/// dtypes that an op computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// dtype each argument is converted to; only the first `arity` count.
    pub args: [DType; MAX_ARITY],
    /// dtype of the result.
    pub result: DType,
}

/// NumPy's result dtype of arrays and weak scalars together (`numpy.result_type`).
pub fn result_type(args: &[ArgType]) -> DType {
    let arrays = DType::promote_all(args.iter().filter_map(|a| if let ArgType::Array(d) = a { Some(*d) } else { None }));
    let mut weak = args.iter().filter_map(|a| if let ArgType::Weak(s) = a { Some(*s) } else { None });
    match arrays {
        Some(d) => weak.fold(d, |d, s| s.weak_promote(d)),
        None => {
            let first = weak.next().map_or(DType::F64, Scalar::default_dtype);
            weak.fold(first, |d, s| d.promote(s.default_dtype()))
        }
    }
}

/// The floating dtype of integer arrays is that of each taken alone: `hypot` of int8 and uint8 is float16, though the two
/// promote to int16.
fn inexact(args: &[ArgType], promoted: DType) -> DType {
    let alone = |a: &ArgType| if let ArgType::Array(d) = a { (!d.is_inexact()).then_some(d.to_inexact()) } else { None };
    match args.iter().map(alone).collect::<Option<smallvec::SmallVec<[DType; 3]>>>() {
        Some(each) => each.into_iter().reduce(DType::promote).unwrap_or(promoted),
        None => promoted.to_inexact(),
    }
}

impl TypeRule {
    /// Argument and result dtypes for these inputs, or an [`Error::DType`] that says what the op takes.
    pub fn resolve(self, op: &'static str, args: &[ArgType]) -> Result<Signature> {
        let promoted = match self {
            TypeRule::Where => result_type(args.get(1..).unwrap_or_default()),
            _ => result_type(args),
        };
        self.signature(op, promoted, || inexact(args, promoted))
    }

    /// As [`TypeRule::resolve`] for arrays of one dtype and scalars that take it on. Not for [`TypeRule::Where`], whose condition is of another.
    #[inline(always)]
    pub(crate) fn resolve_shared(self, op: &'static str, shared: DType) -> Result<Signature> {
        self.signature(op, shared, || shared.to_inexact())
    }

    /// `floating` gives the floating dtype of the arguments.
    #[inline(always)]
    fn signature(self, op: &'static str, promoted: DType, floating: impl FnOnce() -> DType) -> Result<Signature> {
        let refuse = |what: &str| Err(Error::dtype(op, format!("not defined for {what}"), &[promoted]));
        let same = |d: DType| Ok(Signature { args: [d; MAX_ARITY], result: d });
        let to_bool = |d: DType| Ok(Signature { args: [d; MAX_ARITY], result: DType::Bool });
        let no_bool = |d: DType| if d == DType::Bool { DType::I8 } else { d };
        match (self, promoted.kind()) {
            (TypeRule::Promote | TypeRule::Ordered | TypeRule::Same, _) => same(promoted),
            (TypeRule::PromoteNoBool, Kind::Bool) => refuse("bool; use bitwise_xor, logical_xor or logical_not"),
            (TypeRule::PromoteNoBool, _) => same(promoted),
            (TypeRule::PromoteReal | TypeRule::Round | TypeRule::Float, Kind::Complex) => refuse("complex"),
            (TypeRule::PromoteReal | TypeRule::PromoteNumber, _) => same(no_bool(promoted)),
            (TypeRule::Inexact | TypeRule::Float, _) => same(floating()),
            (TypeRule::Divide, Kind::Bool | Kind::Signed | Kind::Unsigned) => same(DType::F64),
            (TypeRule::Divide | TypeRule::Round, _) => same(promoted),
            (TypeRule::RoundComplex, Kind::Bool) => same(DType::F16),
            (TypeRule::RoundComplex, Kind::Signed | Kind::Unsigned) => same(promoted),
            (TypeRule::RoundComplex, _) => same(promoted),
            (TypeRule::Compare | TypeRule::Test, _) => to_bool(promoted),
            (TypeRule::Logical, _) => same(DType::Bool),
            (TypeRule::Bitwise | TypeRule::Shift, Kind::Float | Kind::Complex) => refuse("floating point; it takes bool and integers"),
            (TypeRule::Bitwise, _) => same(promoted),
            (TypeRule::Shift, _) => same(no_bool(promoted)),
            (TypeRule::RealPart, _) => Ok(Signature { args: [promoted; MAX_ARITY], result: promoted.real() }),
            (TypeRule::Where, _) => {
                let mut args = [promoted; MAX_ARITY];
                args[0] = DType::Bool;
                Ok(Signature { args, result: promoted })
            }
        }
    }
}

/// Rough cost of computing one element, for deciding between recomputing and storing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cost {
    /// An instruction or two.
    Cheap,
    /// A division, a square root, an integer power.
    Medium,
    /// A transcendental function.
    Dear,
}

/// A composed body: an operation written over others, so that it works on every device.
pub type Composite = fn(&[NdArray]) -> Result<NdArray>;

/// One operation: a row of core's table.
pub struct OpDef {
    /// NumPy 2's name.
    pub name: &'static str,
    /// The shape of kernel it needs.
    pub family: Family,
    /// Number of array arguments; 0 when it varies.
    pub arity: u8,
    /// Place in the table of built-in rows; `u16::MAX` for operations of other crates.
    pub index: u16,
    /// dtype rule, for elementwise operations.
    pub rule: Option<TypeRule>,
    /// Cost of one element, for elementwise operations.
    pub cost: Cost,
    /// Body over other operations, tried when every accelerator declines.
    pub composite: Option<Composite>,
    /// Body of an elementwise operation of another crate, as `cuprum::kernel!` makes it.
    pub body: Option<&'static Body>,
}

/// An operation, as passed around: a reference to its row. Compared by identity.
#[derive(Clone, Copy)]
pub struct Op(pub &'static OpDef);

impl Op {
    /// NumPy's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }
    /// Place among the built-in rows.
    pub fn index(self) -> usize {
        self.0.index as usize
    }
    /// Whether it is a row of another crate.
    pub fn is_foreign(self) -> bool {
        self.0.index == u16::MAX
    }
    /// The kernel shape it needs.
    pub fn family(self) -> Family {
        self.0.family
    }
    /// Number of array arguments.
    pub fn arity(self) -> usize {
        self.0.arity as usize
    }
    /// Every built-in operation, all families.
    pub fn all() -> impl Iterator<Item = Op> {
        crate::ops::TABLE.iter().flat_map(|t| t.iter()).map(|d| Op(d))
    }
    /// The built-in operation of this name.
    pub fn by_name(name: &str) -> Option<Op> {
        Op::all().find(|op| op.name() == name)
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Op {}
impl Hash for Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0 as *const OpDef as usize).hash(state);
    }
}
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results are NumPy 2.4's.
    #[test]
    fn floats_of_integers() {
        let float = |args: &[ArgType]| TypeRule::Float.resolve("hypot", args).map(|s| s.result).ok();
        let array = ArgType::Array;
        assert_eq!(float(&[array(DType::I8), array(DType::U8)]), Some(DType::F16));
        assert_eq!(float(&[array(DType::I16), array(DType::U16)]), Some(DType::F32));
        assert_eq!(float(&[array(DType::I8), array(DType::I32)]), Some(DType::F64));
        assert_eq!(float(&[array(DType::I16), array(DType::F16)]), Some(DType::F32));
        assert_eq!(float(&[array(DType::I8), ArgType::Weak(Scalar::Int(2))]), Some(DType::F16));
        assert_eq!(float(&[array(DType::I8), ArgType::Weak(Scalar::Float(2.5))]), Some(DType::F64));
    }
}
