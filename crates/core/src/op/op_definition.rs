//! Definitions of operations: families, dtype rules, costs and descriptions of reductions. The built-in ones are in `ops/`.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::array::{Outputs, StoredArray};
use crate::body::OperationBody;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::op::Capability;
use crate::scalar::Scalar;
use num_complex::Complex;

/// A kind of kernel (kernel family). Each operation belongs to one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    /// Elementwise loops.
    Map,
    /// Reductions over axes and of segments.
    Reduce,
    /// Expressions that contain reductions along rows.
    Rows,
    /// Running reductions along an axis.
    Scan,
    /// Contractions of two arrays: sums of products over axes, such as matrix products.
    Contract,
    /// Sorts of rows and of segments.
    Sort,
    /// Elements at which a condition is true.
    Select,
    /// Binary search in sorted arrays.
    Search,
    /// Counts of values in bins.
    Histogram,
    /// Elements selected by index.
    Gather,
    /// Writes to elements selected by index.
    Scatter,
    /// Arrays computed without inputs.
    Fill,
    /// Copies of arrays, and joins of several arrays into one.
    Copy,
    /// Random numbers.
    Random,
    /// Fourier transforms.
    Fft,
    /// Matrix decompositions and solvers.
    Linalg,
    /// Products and triangular solutions of sparse matrices.
    Sparse,
    /// Operations defined by other crates whose requests no other family describes.
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

/// The rule that determines argument and result dtypes of an elementwise operation (NumPy's `ufunc.types`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeRule {
    /// Converts the arguments to their promoted dtype, which is also the dtype of the result. Bool stays bool (`add` is "or", `multiply`
    /// "and").
    Promote,
    /// Promotes the arguments as [`TypeRule::Promote`] does, but rejects bool (`subtract`, `negative`, `positive`, `sign`).
    PromoteNoBool,
    /// Promotes the arguments and converts bool to int8. Rejects complex numbers (`floor_divide`, `remainder`).
    PromoteReal,
    /// Promotes the arguments as [`TypeRule::Promote`] does, but converts bool to int8 (`power`, `square`, `conj`).
    PromoteNumber,
    /// Promotes the arguments as [`TypeRule::Promote`] does. Complex numbers compare by real part, then imaginary part (`maximum`,
    /// `minimum`).
    Ordered,
    /// Converts bool and integers to the smallest sufficient float, as in NumPy. Complex numbers are allowed (`sin`, `exp`, `rint`).
    Inexact,
    /// Converts bool and integers to the smallest sufficient float, and rejects complex numbers (`cbrt`, `hypot`, `atan2`).
    Float,
    /// Converts bool and integers to floats and rejects complex numbers. The result is int32 (the exponent of `frexp`).
    Exponent,
    /// Promotes the arguments as [`TypeRule::Promote`] does, but converts bool and integers to float64 (`divide`).
    Divide,
    /// Rejects complex numbers; bool and integers are returned unchanged (`floor`, `ceil`, `trunc`).
    Round,
    /// Returns integers unchanged, converts bool to float16, and rounds real and imaginary parts of complex numbers separately (`round`).
    RoundComplex,
    /// Converts the arguments to their promoted dtype; the result is bool (`less`).
    Compare,
    /// Converts every argument to bool; the result is bool (`logical_and`).
    Logical,
    /// Promotes the arguments as [`TypeRule::Promote`] does, but accepts only bool and integers (`bitwise_and`).
    Bitwise,
    /// Promotes the arguments and converts bool to int8. Accepts only bool and integers (`left_shift`).
    Shift,
    /// Promotes the arguments as [`TypeRule::Promote`] does, but accepts only integers (`gcd`).
    Integer,
    /// Accepts any dtype; the result has the dtype of the real part (`abs`, `real`, `imag`).
    RealPart,
    /// Accepts any dtype, which is also the dtype of the result (`astype`, whose argument is converted before the operation).
    Same,
    /// Accepts any dtype; the result is bool (`isnan`).
    Test,
    /// Converts the first argument to bool, and the others to their promoted dtype (`where`).
    Where,
}

/// The type of an argument: an array's dtype, or a weak scalar.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentType {
    /// An array of this dtype.
    Array(DType),
    /// A scalar that adopts the dtype of the arrays, as a Python number does in NumPy.
    Weak(Scalar),
}

/// Maximum number of arguments of an elementwise operation.
pub const MAX_ARITY: usize = 8;

/// The dtypes of an operation's arguments and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DTypeSignature {
    /// dtype to which each argument is converted; only the first `arity` are used.
    pub args: [DType; MAX_ARITY],
    /// dtype of the result.
    pub result: DType,
}

/// Returns the promoted dtype of arrays and weak scalars (`numpy.result_type`).
pub fn result_type(args: &[ArgumentType]) -> DType {
    let arrays = DType::promote_all(args.iter().filter_map(|a| if let ArgumentType::Array(d) = a { Some(*d) } else { None }));
    let mut weak = args.iter().filter_map(|a| if let ArgumentType::Weak(s) = a { Some(*s) } else { None });
    match arrays {
        Some(d) => weak.fold(d, |d, s| s.weak_promote(d)),
        None => {
            let first = weak.next().map_or(DType::F64, Scalar::default_dtype);
            weak.fold(first, |d, s| d.promote(s.default_dtype()))
        }
    }
}

/// Returns the floating dtype in which a function computes `args`, which promote to `promoted`.
///
/// If all arguments are arrays of integers or bool, each dtype is converted to a float dtype first, and the float dtypes are promoted. Thus
/// `hypot` of int8 and uint8 is float16, although the two promote to int16.
fn floating_computation_dtype(args: &[ArgumentType], promoted: DType) -> DType {
    let alone = |a: &ArgumentType| if let ArgumentType::Array(d) = a { (!d.is_inexact()).then_some(d.to_inexact()) } else { None };
    match args.iter().map(alone).collect::<Option<smallvec::SmallVec<[DType; 3]>>>() {
        Some(each) => each.into_iter().reduce(DType::promote).unwrap_or(promoted),
        None => promoted.to_inexact(),
    }
}

impl TypeRule {
    /// Returns the dtypes to which this rule converts the arguments, and the result dtype.
    ///
    /// # Errors
    /// [`Error::DType`] for dtypes that the op does not take.
    pub fn resolve_dtypes(self, op: &'static str, args: &[ArgumentType]) -> Result<DTypeSignature> {
        let promoted = match self {
            TypeRule::Where => result_type(args.get(1..).unwrap_or_default()),
            _ => result_type(args),
        };
        self.resolve_for_promoted_dtype(op, promoted, || floating_computation_dtype(args, promoted))
    }

    /// Returns the result of [`TypeRule::resolve_dtypes`] for arrays of the dtype `shared` and scalars that adopt this dtype. Not valid for
    /// [`TypeRule::Where`], whose condition is bool.
    #[inline(always)]
    pub(crate) fn resolve_for_shared_dtype(self, op: &'static str, shared: DType) -> Result<DTypeSignature> {
        self.resolve_for_promoted_dtype(op, shared, || shared.to_inexact())
    }

    /// Returns the dtypes to which this rule converts arguments that promote to `promoted`, and the result dtype. `floating` returns the
    /// floating dtype in which a function such as `sin` computes the arguments.
    #[inline(always)]
    fn resolve_for_promoted_dtype(self, op: &'static str, promoted: DType, floating: impl FnOnce() -> DType) -> Result<DTypeSignature> {
        let refuse = |what: &str| Err(Error::dtype(op, format!("not defined for {what}"), &[promoted]));
        let same = |d: DType| Ok(DTypeSignature { args: [d; MAX_ARITY], result: d });
        let to_bool = |d: DType| Ok(DTypeSignature { args: [d; MAX_ARITY], result: DType::Bool });
        let no_bool = |d: DType| if d == DType::Bool { DType::I8 } else { d };
        match (self, promoted.kind()) {
            (TypeRule::Promote | TypeRule::Ordered | TypeRule::Same, _) => same(promoted),
            (TypeRule::PromoteNoBool, Kind::Bool) => refuse("bool; use bitwise_xor, logical_xor or logical_not"),
            (TypeRule::PromoteNoBool, _) => same(promoted),
            (TypeRule::PromoteReal | TypeRule::Round | TypeRule::Float | TypeRule::Exponent, Kind::Complex) => refuse("complex"),
            (TypeRule::PromoteReal | TypeRule::PromoteNumber, _) => same(no_bool(promoted)),
            (TypeRule::Inexact | TypeRule::Float, _) => same(floating()),
            (TypeRule::Exponent, _) => Ok(DTypeSignature { args: [floating(); MAX_ARITY], result: DType::I32 }),
            (TypeRule::Divide, Kind::Bool | Kind::Signed | Kind::Unsigned) => same(DType::F64),
            (TypeRule::Divide | TypeRule::Round, _) => same(promoted),
            (TypeRule::RoundComplex, Kind::Bool) => same(DType::F16),
            (TypeRule::RoundComplex, _) => same(promoted),
            (TypeRule::Compare | TypeRule::Test, _) => to_bool(promoted),
            (TypeRule::Logical, _) => same(DType::Bool),
            (TypeRule::Bitwise | TypeRule::Shift, Kind::Float | Kind::Complex) => refuse("floating point; it takes bool and integers"),
            (TypeRule::Integer, Kind::Bool | Kind::Float | Kind::Complex) => refuse(&format!("{promoted}; it takes integers")),
            (TypeRule::Bitwise | TypeRule::Integer, _) => same(promoted),
            (TypeRule::Shift, _) => same(no_bool(promoted)),
            (TypeRule::RealPart, _) => Ok(DTypeSignature { args: [promoted; MAX_ARITY], result: promoted.real() }),
            (TypeRule::Where, _) => {
                let mut args = [promoted; MAX_ARITY];
                args[0] = DType::Bool;
                Ok(DTypeSignature { args, result: promoted })
            }
        }
    }
}

/// Rough cost of computing one element, used to choose between recomputing and storing a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cost {
    /// The cost of one or two instructions.
    Cheap,
    /// The cost of a division, a square root, or an integer power.
    Medium,
    /// The cost of a transcendental function.
    Expensive,
}

/// A composition of other operations that computes an operation on every device.
///
/// The function takes the array arguments and the parameters, and returns the results. [`run_as_composite`](crate::expr::run_as_composite)
/// adapts a function that takes [`NdArray`](crate::NdArray)s.
pub type Composite = fn(&[StoredArray], Option<&Parameters>) -> Result<Outputs>;

/// The parameters of a composition of other operations
/// ([`KernelRequest::composite_parameters`](crate::call::KernelRequest::composite_parameters)). Scalars of an expression are not among the
/// parameters: the composition receives them as 0-d arrays.
pub type Parameters = dyn Any + Send + Sync;

/// Definition of an operation.
pub struct OpDef {
    /// NumPy 2's name.
    pub name: &'static str,
    /// The kernel family. Dispatch tries only kernels of this family.
    pub family: Family,
    /// Number of array arguments; 0 if it varies.
    pub arity: u8,
    /// Index among the built-in operations. `u16::MAX` for operations that other crates define.
    pub index: u16,
    /// The rule that determines argument and result dtypes. `None` unless the operation is elementwise.
    pub rule: Option<TypeRule>,
    /// Rough cost of computing one element. Only elementwise operations use it.
    pub cost: Cost,
    /// A composition of other operations that computes this operation. The composition runs if every accelerator declines.
    pub composite: Option<Composite>,
    /// The code of an operation that `cuprum::kernel!` declares.
    pub body: Option<&'static OperationBody>,
    /// The combination of elements. `None` unless the operation is a scan or a reduction over axes or of segments.
    pub reduction: Option<&'static ReductionDef>,
}

/// An elementwise function with several results (`divmod`): one operation for each result. All operations have the same arguments.
///
/// [`elementwise_multi_result`](crate::expr::elementwise_multi_result) applies the function. If its results are deferred, one Map call
/// computes all of them.
#[derive(Debug)]
pub struct MultiResultOp {
    /// NumPy 2's name.
    pub name: &'static str,
    /// The operation of each result, with the dtype rule that the operation follows in this function.
    pub results: &'static [(Op, TypeRule)],
}

/// An operation: a reference to its definition, compared by identity.
#[derive(Clone, Copy)]
pub struct Op(pub &'static OpDef);

impl Op {
    /// Returns NumPy's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }
    /// Returns the index of the operation among the built-in operations.
    pub fn index(self) -> usize {
        self.0.index as usize
    }
    /// Returns whether another crate defines the operation.
    pub fn is_defined_in_another_crate(self) -> bool {
        self.0.index == u16::MAX
    }
    /// Returns the family.
    pub fn family(self) -> Family {
        self.0.family
    }
    /// Returns the number of array arguments, or 0 if it varies.
    pub fn arity(self) -> usize {
        self.0.arity as usize
    }
    /// Returns whether this is `astype`, the only built-in operation with [`TypeRule::Same`].
    #[inline]
    pub(crate) fn is_dtype_conversion(self) -> bool {
        self.0.rule == Some(TypeRule::Same) && !self.is_defined_in_another_crate()
    }
    /// Returns the description of how elements combine, if the operation is a reduction over axes or of segments, or a scan.
    pub fn reduction(self) -> Option<&'static ReductionDef> {
        self.0.reduction
    }
    /// Returns the capability that a kernel needs for a call of this operation. Programs that contain the operation have other rules. If
    /// the result is `None`, the kernel's [`OpFilter`](crate::OpFilter) decides.
    pub fn required_capability(self) -> Option<Capability> {
        match self.0 {
            def if def.body.is_some() => Some(Capability::UserDefined),
            def if def.reduction.is_some_and(|r| r.combine == Combine::Moments) => Some(Capability::Variance),
            _ => None,
        }
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

/// Description of a reduction: how values combine, and in which dtype.
///
/// `sum`, `segment_sum` and `cumsum` share one description, and so do other operations that combine elements in the same way. A backend
/// implements each value of [`combine`](ReductionDef::combine). The other fields are parameters of the implementation.
///
/// ```
/// use cuprum_core::DType;
/// use cuprum_core::op::Combine;
/// use cuprum_core::ops::{elementwise::ADD, reduce::SUM};
///
/// let sum = SUM.reduction().unwrap();
/// assert_eq!(sum.combine, Combine::Elementwise(ADD));
/// assert_eq!((sum.accumulator.of(DType::F16), sum.identity.of(DType::F16)), (DType::F32, 0.into()));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReductionDef {
    /// The function that combines two accumulators. It is associative up to rounding.
    pub combine: Combine,
    /// The identity element: combining it with any value gives that value.
    pub identity: ReductionIdentity,
    /// Whether a reduction of no elements gives the identity. Otherwise such a reduction is an error.
    pub allows_empty: bool,
    /// The dtype of accumulators.
    pub accumulator: AccumulatorDType,
    /// Whether the combination returns one of its two arguments, as `maximum` does. Combining an element twice then changes nothing.
    pub selects: bool,
    /// Whether the result is the index of the selected element. Plans then keep the reduced axes in their original order.
    pub returns_index: bool,
    /// Whether row programs may contain the reduction.
    ///
    /// A row program is the program of a [`Work::Rows`](crate::Work::Rows) call: an elementwise expression that contains reductions along
    /// the last axes, such as softmax. A kernel computes it in one pass over the rows.
    pub in_rows: bool,
}

/// The function that combines two accumulators of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// An elementwise operation of two arguments, as in NumPy's `ufunc.reduce`: `add` for a sum.
    Elementwise(Op),
    /// The code of a user-defined operation ([`OperationBody`]): a commutative function of two elements.
    Body,
    /// Combines count, mean, and sum of squared distances from the mean. The result of the reduction is the sum of squared distances, in
    /// the real dtype.
    Moments,
}

/// The dtype of accumulators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccumulatorDType {
    /// Accumulates in the dtype of the elements.
    Element,
    /// Accumulates 16-bit floats in float32, and other elements in their own dtype.
    Wide,
    /// Accumulates elements of any dtype in the given dtype.
    Fixed(DType),
}

impl AccumulatorDType {
    /// Returns the dtype of accumulators for elements of dtype `value`.
    pub const fn of(self, value: DType) -> DType {
        match (self, value) {
            (AccumulatorDType::Wide, DType::F16 | DType::BF16) => DType::F32,
            (AccumulatorDType::Wide | AccumulatorDType::Element, _) => value,
            (AccumulatorDType::Fixed(dtype), _) => dtype,
        }
    }
}

/// The identity element of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReductionIdentity {
    /// A given number.
    Value(Scalar),
    /// The smallest value of the dtype; minus infinity for floats.
    Lowest,
    /// The largest value of the dtype; infinity for floats.
    Highest,
    /// NaN for floats and complex numbers, else the smallest value.
    NanOrLowest,
    /// NaN for floats and complex numbers, else the largest value.
    NanOrHighest,
}

impl ReductionIdentity {
    /// Returns the identity as a number of `dtype`.
    pub fn of(self, dtype: DType) -> Scalar {
        let bits = 8 * dtype.itemsize() as u32;
        match (self, dtype.kind()) {
            (ReductionIdentity::Value(value), _) => value,
            (ReductionIdentity::NanOrLowest | ReductionIdentity::NanOrHighest, Kind::Float) => Scalar::Float(f64::NAN),
            (ReductionIdentity::NanOrLowest | ReductionIdentity::NanOrHighest, Kind::Complex) => {
                Scalar::Complex(Complex::new(f64::NAN, f64::NAN))
            }
            (ReductionIdentity::NanOrLowest, _) => ReductionIdentity::Lowest.of(dtype),
            (ReductionIdentity::NanOrHighest, _) => ReductionIdentity::Highest.of(dtype),
            (ReductionIdentity::Lowest, Kind::Signed) => Scalar::Int(-(1i128 << (bits - 1))),
            (ReductionIdentity::Lowest, Kind::Unsigned | Kind::Bool) => Scalar::Int(0),
            (ReductionIdentity::Highest, Kind::Signed) => Scalar::Int((1i128 << (bits - 1)) - 1),
            (ReductionIdentity::Highest, Kind::Unsigned) => Scalar::Int((1i128 << bits) - 1),
            (ReductionIdentity::Highest, Kind::Bool) => Scalar::Int(1),
            (ReductionIdentity::Lowest, Kind::Float) => Scalar::Float(f64::NEG_INFINITY),
            (ReductionIdentity::Highest, Kind::Float) => Scalar::Float(f64::INFINITY),
            // Complex numbers compare by real part, then imaginary part. So the extremes have both parts infinite.
            (ReductionIdentity::Lowest, Kind::Complex) => Scalar::Complex(Complex::new(f64::NEG_INFINITY, f64::NEG_INFINITY)),
            (ReductionIdentity::Highest, Kind::Complex) => Scalar::Complex(Complex::new(f64::INFINITY, f64::INFINITY)),
        }
    }
}

impl ReductionDef {
    /// Describes a reduction by the elementwise operation `combine`. A reduction of no elements gives the identity.
    pub const fn elementwise_reduction(combine: Op, identity: Scalar) -> ReductionDef {
        ReductionDef {
            combine: Combine::Elementwise(combine),
            identity: ReductionIdentity::Value(identity),
            allows_empty: true,
            accumulator: AccumulatorDType::Element,
            selects: false,
            returns_index: false,
            in_rows: true,
        }
    }

    /// Describes a reduction by the elementwise operation `combine`, which returns one of its arguments. Reducing no elements is an error.
    pub const fn selecting_reduction(combine: Op, identity: ReductionIdentity) -> ReductionDef {
        ReductionDef { identity, allows_empty: false, selects: true, ..ReductionDef::elementwise_reduction(combine, Scalar::Int(0)) }
    }

    /// Describes a reduction that combines elements by the code of a user-defined operation.
    pub const fn user_defined_reduction(identity: ReductionIdentity) -> ReductionDef {
        ReductionDef {
            combine: Combine::Body,
            identity,
            allows_empty: true,
            accumulator: AccumulatorDType::Element,
            selects: false,
            returns_index: false,
            in_rows: false,
        }
    }

    /// The reduction to the sum of squared distances from the mean.
    pub const SQUARED_DISTANCES_REDUCTION: ReductionDef = ReductionDef {
        combine: Combine::Moments,
        allows_empty: false,
        in_rows: true,
        ..ReductionDef::user_defined_reduction(ReductionIdentity::Value(Scalar::Int(0)))
    };

    /// Makes the reduction accumulate 16-bit floats in float32.
    pub const fn accumulating_16_bit_in_float32(self) -> ReductionDef {
        ReductionDef { accumulator: AccumulatorDType::Wide, ..self }
    }

    /// Sets `dtype` as the accumulator dtype for all elements, and excludes the reduction from [row programs](ReductionDef::in_rows).
    pub const fn with_accumulator_dtype(self, dtype: DType) -> ReductionDef {
        ReductionDef { accumulator: AccumulatorDType::Fixed(dtype), in_rows: false, ..self }
    }

    /// Makes the reduction return the index of the selected element, and excludes it from [row programs](ReductionDef::in_rows).
    pub const fn returning_index(self) -> ReductionDef {
        ReductionDef { returns_index: true, in_rows: false, ..self }
    }

    /// Excludes the reduction from [row programs](ReductionDef::in_rows).
    pub const fn excluded_from_row_programs(self) -> ReductionDef {
        ReductionDef { in_rows: false, ..self }
    }

    /// Returns the elementwise operation that combines accumulators, if there is one.
    pub const fn elementwise_combination(&self) -> Option<Op> {
        if let Combine::Elementwise(op) = self.combine { Some(op) } else { None }
    }

    /// Returns whether the result of reducing elements of dtype `value` depends on their order, apart from rounding. Among several complex
    /// NaNs, a reduction such as `max` returns the first.
    pub const fn depends_on_order(&self, value: DType) -> bool {
        self.selects && value.is_complex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected results are from NumPy 2.4.
    #[test]
    fn floats_of_integers() {
        let float = |args: &[ArgumentType]| TypeRule::Float.resolve_dtypes("hypot", args).map(|s| s.result).ok();
        let array = ArgumentType::Array;
        assert_eq!(float(&[array(DType::I8), array(DType::U8)]), Some(DType::F16));
        assert_eq!(float(&[array(DType::I16), array(DType::U16)]), Some(DType::F32));
        assert_eq!(float(&[array(DType::I8), array(DType::I32)]), Some(DType::F64));
        assert_eq!(float(&[array(DType::I16), array(DType::F16)]), Some(DType::F32));
        assert_eq!(float(&[array(DType::I8), ArgumentType::Weak(Scalar::Int(2))]), Some(DType::F16));
        assert_eq!(float(&[array(DType::I8), ArgumentType::Weak(Scalar::Float(2.5))]), Some(DType::F64));
    }

    #[test]
    fn identities_are_neutral_in_every_dtype() {
        assert_eq!(ReductionIdentity::Lowest.of(DType::I8), Scalar::Int(-128));
        assert_eq!(ReductionIdentity::Highest.of(DType::U64), Scalar::Int(u64::MAX.into()));
        assert_eq!(ReductionIdentity::Highest.of(DType::BF16), Scalar::Float(f64::INFINITY));
        assert_eq!(ReductionIdentity::Lowest.of(DType::C64), Scalar::Complex(Complex::new(f64::NEG_INFINITY, f64::NEG_INFINITY)));
    }
}
