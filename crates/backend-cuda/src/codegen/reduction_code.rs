//! C++ code of reductions, derived from the core crate's descriptions of them. Most reductions combine two values by the C++ expression of
//! an elementwise operation. Reductions that return an index, and variances, have special accumulators.

use cuprum_core::op::{Combine, ReductionDef};
use cuprum_core::ops::elementwise::{ADD, LOGICAL_AND, LOGICAL_OR, MAXIMUM, MINIMUM, MULTIPLY};
use cuprum_core::{DType, Op};

use super::{AccumulatorCode, cpp_expression};

/// Upper bound of the size of the C++ struct `Moments` for every dtype, in bytes.
const MAX_MOMENTS_BYTES: usize = 32;

/// The C++ expressions of reductions that return an index. Each entry has the operation that selects the value, the combination of
/// accumulators `a` and `b`, and the condition under which a later element `x` replaces `a`. Testing the condition is cheaper than
/// combining.
static INDEX_REDUCTION_EXPRESSIONS: [(Op, &str, &str); 2] = [
    (MINIMUM, "select_value(a, b, op::less(b.value, a.value))", "!op::less_equal(a.value, x) && !op::isnan(a.value)"),
    (MAXIMUM, "select_value(a, b, op::less(a.value, b.value))", "!op::less_equal(x, a.value) && !op::isnan(a.value)"),
];

/// Class templates of `fold.cuh`. Each entry has the operation that combines values, the template for reductions that return a value, and
/// the template for index reductions such as argmin (if any).
static FOLD_TEMPLATES: [(Op, &str, Option<&str>); 6] = [
    (ADD, "Sum", None),
    (MULTIPLY, "Product", None),
    (MINIMUM, "Minimum", Some("ArgMin")),
    (MAXIMUM, "Maximum", Some("ArgMax")),
    (LOGICAL_OR, "Any", None),
    (LOGICAL_AND, "All", None),
];

/// A class template of `fold.cuh` for a reduction. The template argument is the C++ type of the accumulator dtype.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoldClass {
    /// Name of the template.
    pub name: &'static str,
    /// Size of an accumulator of this template, in bytes.
    pub accumulator_size: usize,
}

impl FoldClass {
    /// Returns the template of `reduction` for accumulators of dtype `acc`, or `None` if `fold.cuh` has none.
    pub fn of(reduction: &ReductionDef, acc: DType) -> Option<FoldClass> {
        let (_, name, index_name) = FOLD_TEMPLATES.iter().find(|row| reduction.elementwise_combination() == Some(row.0))?;
        Some(match reduction {
            reduction if reduction.returns_index => FoldClass { name: (*index_name)?, accumulator_size: 16 }, // a value and an int64
            reduction if acc == DType::Bool && !reduction.selects => FoldClass { name, accumulator_size: 4 }, // `Any` and `All` have 32-bit accumulators
            _ => FoldClass { name, accumulator_size: acc.itemsize() },
        })
    }
}

/// The C++ expressions of a reduction over axes.
pub(crate) struct ReductionCode {
    pub combination: AccumulatorCode,
    /// Whether combining an element twice has no effect. Kernels then start with an element instead of the identity.
    pub idempotent: bool,
    /// C++ condition under which a later element `x` replaces accumulator `a`. `None` if testing the condition is not cheaper than
    /// combining `a` and `x`.
    pub replaces: Option<&'static str>,
    /// C++ source that declares the accumulator type and its functions, or an empty string if the accumulator is a scalar.
    pub declarations: &'static str,
}

impl ReductionCode {
    /// Returns the C++ expressions of the reduction operation `op`, which `reduction` describes. Returns `None` if the combination has no
    /// C++ expression.
    pub fn of(op: Op, reduction: &ReductionDef, acc: DType) -> Option<ReductionCode> {
        let size = accumulator_size(reduction, acc);
        if reduction.combine == Combine::Moments {
            let (identity, combine) = ("Moments{Result(), 0.0, 0}".into(), "merge_moments(a, b)".into());
            let combination =
                AccumulatorCode { acc: "Moments", size, identity, value: "Moments{x, 1.0, 0}", combine, finish: "sum_of_squares(a)" };
            return Some(ReductionCode { combination, idempotent: false, replaces: None, declarations: MOMENTS_SOURCE });
        }
        if reduction.returns_index {
            let (_, combine, replaces) =
                INDEX_REDUCTION_EXPRESSIONS.iter().find(|row| reduction.elementwise_combination() == Some(row.0))?;
            let (identity, combine) = ("Acc()".into(), (*combine).into());
            let combination =
                AccumulatorCode { acc: "ValueAndIndex", size, identity, value: "ValueAndIndex{x, index}", combine, finish: "a.index" };
            return Some(ReductionCode { combination, idempotent: true, replaces: Some(replaces), declarations: VALUE_AND_INDEX_SOURCE });
        }
        let combination = AccumulatorCode::of(op, reduction, acc)?;
        Some(ReductionCode { idempotent: reduction.selects, ..ReductionCode::from(combination) })
    }
}

impl From<AccumulatorCode> for ReductionCode {
    fn from(combination: AccumulatorCode) -> ReductionCode {
        ReductionCode { combination, idempotent: false, replaces: None, declarations: "" }
    }
}

/// Returns whether [`ReductionCode::of`] returns code, without generating the code.
pub(crate) fn has_reduction_code(op: Op, reduction: &ReductionDef) -> bool {
    match reduction.combine {
        Combine::Elementwise(by) if reduction.returns_index => INDEX_REDUCTION_EXPRESSIONS.iter().any(|row| row.0 == by),
        Combine::Elementwise(by) => cpp_expression(by).is_some(),
        Combine::Body => op.0.body.is_some_and(|body| !body.source.is_empty()),
        Combine::Moments => true,
    }
}

/// Returns the size of an accumulator, in bytes.
pub(crate) fn accumulator_size(reduction: &ReductionDef, acc: DType) -> usize {
    match reduction.combine {
        Combine::Moments => MAX_MOMENTS_BYTES,
        _ if reduction.returns_index => 2 * acc.itemsize().max(8),
        _ => acc.itemsize(),
    }
}

/// C++ accumulator of argmin and argmax. NaN takes precedence over numbers, and the first of equal elements over later ones.
const VALUE_AND_INDEX_SOURCE: &str = r#"
struct ValueAndIndex { Result value; Index index; };
__device__ inline ValueAndIndex select_value(const ValueAndIndex& a, const ValueAndIndex& b, bool b_wins) {
    const bool nan_a = op::isnan(a.value), nan_b = op::isnan(b.value);
    if (nan_a != nan_b) return nan_a ? a : b;
    if (!nan_a && b_wins) return b;
    const bool same = nan_a || op::equal(a.value, b.value);
    return same && b.index < a.index ? b : a;
}
"#;

/// C++ accumulator of variances: count, mean, and the sum of squared distances from the mean. Two accumulators are merged by the formula of
/// Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979).
const MOMENTS_SOURCE: &str = r#"
using Real = real_of<Result>;
struct Moments { Result mean; f64 count; Real squares; };
template <class T> __device__ inline T scaled(T x, Real by) {
    if constexpr (is_complex<T>) return T(mul_rn(x.re, by), mul_rn(x.im, by));
    else return mul_rn(x, by);
}
template <class T> __device__ inline Real squared(T x) {
    if constexpr (is_complex<T>) return add_rn(mul_rn(x.re, x.re), mul_rn(x.im, x.im));
    else return mul_rn(x, x);
}
// Returns x^2 * times, which overflows only if the product does.
template <class T> __device__ inline Real squared(T x, Real times) {
    if constexpr (is_complex<T>) return add_rn(mul_rn(mul_rn(x.re, times), x.re), mul_rn(mul_rn(x.im, times), x.im));
    else return mul_rn(mul_rn(x, times), x);
}
__device__ inline Moments merge_moments(const Moments& a, const Moments& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const f64 count = a.count + b.count, share = b.count / count;
    const Result distance = op::subtract(b.mean, a.mean);
    const Real between = squared(distance, static_cast<Real>(a.count * share));
    return {op::add(a.mean, scaled(distance, static_cast<Real>(share))), count, add_rn(add_rn(a.squares, b.squares), between)};
}
// NumPy computes the mean from the sum, so the mean overflows if the sum does. The squared distances are then infinite or NaN, as in NumPy.
__device__ inline Real sum_of_squares(const Moments& a) {
    const Result sum = scaled(a.mean, static_cast<Real>(a.count));
    return op::isnan(op::subtract(sum, sum)) ? add_rn(a.squares, static_cast<Real>(op::infinity())) : a.squares;
}
#define HAS_ACC_OF_SEVERAL
template <int N> __device__ inline Moments acc_of_several(const Result (&x)[N]) {
    Result sum = x[0];
    #pragma unroll
    for (int k = 1; k < N; k++) sum = op::add(sum, x[k]);
    Result mean = scaled(sum, Real(1) / N);
    // If the sum overflows, the mean is computed from scaled elements and may be finite. `sum_of_squares` still returns infinity or NaN, as
    // NumPy does.
    if (op::isnan(op::subtract(sum, sum))) {
        mean = scaled(x[0], Real(1) / N);
        #pragma unroll
        for (int k = 1; k < N; k++) mean = op::add(mean, scaled(x[k], Real(1) / N));
    }
    Real squares = squared(op::subtract(x[0], mean));
    #pragma unroll
    for (int k = 1; k < N; k++) squares = add_rn(squares, squared(op::subtract(x[k], mean)));
    return {mean, static_cast<f64>(N), squares};
}
"#;

/// Returns all reductions over axes that the core crate defines, with their descriptions.
pub(crate) fn axis_reductions() -> impl Iterator<Item = (Op, &'static ReductionDef)> {
    let over_axes = Op::all().filter(|op| op.family() == cuprum_core::Family::Reduce && op.arity() == 1);
    over_axes.filter_map(|op| Some((op, op.reduction()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_core::ops::reduce::{ALL, ARGMAX, COUNT_NONZERO, MIN, SUM};

    #[test]
    fn every_reduction_of_core_has_code() {
        assert!(axis_reductions().count() >= 10);
        for (op, reduction) in axis_reductions() {
            assert!(has_reduction_code(op, reduction), "{op:?}");
            assert!(ReductionCode::of(op, reduction, DType::F32).is_some(), "{op:?}");
        }
    }

    #[test]
    fn row_programs_start_from_the_identity_of_the_reduction() {
        let identity = |op: Op, acc| AccumulatorCode::of(op, op.reduction().unwrap(), acc).unwrap().identity;
        for (op, reduction) in axis_reductions().filter(|(_, r)| r.in_rows && r.combine != Combine::Moments) {
            let expected =
                AccumulatorCode { identity: identity(op, DType::F64), ..AccumulatorCode::of(op, reduction, DType::F64).unwrap() };
            assert!(expected.identity.starts_with("cast<f64>("), "{op:?}");
        }
        assert_eq!(identity(MIN, DType::I8), "cast<i8>(i64(127))");
        assert_eq!(identity(ALL, DType::Bool), "cast<bool>(true)");
        assert_ne!(identity(SUM, DType::F32), identity(MIN, DType::F32));
    }

    #[test]
    fn templates_follow_the_description() {
        let template = |op: Op, acc| FoldClass::of(op.reduction().unwrap(), acc).map(|t| (t.name, t.accumulator_size));
        assert_eq!(template(COUNT_NONZERO, DType::I64), Some(("Sum", 8)));
        assert_eq!(template(ALL, DType::Bool), Some(("All", 4)));
        assert_eq!(template(MIN, DType::Bool), Some(("Minimum", 1)));
        assert_eq!(template(ARGMAX, DType::F32), Some(("ArgMax", 16)));
    }
}
