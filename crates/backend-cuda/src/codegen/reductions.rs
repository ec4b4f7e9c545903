//! The reductions of core in C++: accumulator, identity, combination and result of each.

use cuprum_core::ops::reduce::{ALL, ANY, ARGMAX, ARGMIN, COUNT_NONZERO, MAX, MIN, PROD, SUM, VAR};
use cuprum_core::{DType, Op};

use super::Combination;

/// The reductions that [`REDUCTIONS`] holds.
pub(crate) const OPS: &[Op] = &[SUM, PROD, MIN, MAX, ANY, ALL, COUNT_NONZERO, ARGMIN, ARGMAX, VAR];
/// Size of the C++ struct `Moments`, in bytes: an upper bound for every dtype.
const MOMENTS_SIZE: usize = 32;

/// The C++ expressions of one reduction.
pub(crate) struct ReductionCode<'a> {
    pub op: Op,
    /// Type of the accumulator, where it differs from the call's accumulator dtype.
    pub acc: Option<&'a str>,
    /// The neutral element of `combine`. `None` if an element may be combined twice.
    pub identity: Option<&'a str>,
    /// Accumulator of an element `x` at `index`.
    pub value: &'static str,
    /// Combination of accumulators `a` and `b`, in this order.
    pub combine: &'a str,
    /// Condition for a later element `x` to replace accumulator `a`, where this is cheaper than combining them.
    pub replaces: Option<&'static str>,
    /// Result of accumulator `a`.
    pub finish: &'static str,
}

pub(crate) static REDUCTIONS: &[ReductionCode<'static>] = &[
    ReductionCode {
        op: SUM,
        acc: None,
        identity: Some("cast<Acc>(i64(0))"),
        value: "cast<Acc>(x)",
        combine: "op::add(a, b)",
        replaces: None,
        finish: "cast<Out>(a)",
    },
    ReductionCode {
        op: PROD,
        acc: None,
        identity: Some("cast<Acc>(i64(1))"),
        value: "cast<Acc>(x)",
        combine: "op::multiply(a, b)",
        replaces: None,
        finish: "cast<Out>(a)",
    },
    ReductionCode { op: MIN, acc: None, identity: None, value: "x", combine: "op::minimum(a, b)", replaces: None, finish: "a" },
    ReductionCode { op: MAX, acc: None, identity: None, value: "x", combine: "op::maximum(a, b)", replaces: None, finish: "a" },
    ReductionCode { op: ANY, acc: Some("bool"), identity: Some("false"), value: "x", combine: "a || b", replaces: None, finish: "a" },
    ReductionCode { op: ALL, acc: Some("bool"), identity: Some("true"), value: "x", combine: "a && b", replaces: None, finish: "a" },
    ReductionCode {
        op: COUNT_NONZERO,
        acc: Some("i64"),
        identity: Some("0"),
        value: "x ? 1 : 0",
        combine: "a + b",
        replaces: None,
        finish: "a",
    },
    ReductionCode {
        op: ARGMIN,
        acc: Some("Best"),
        identity: None,
        value: "Best{x, index}",
        combine: "better(a, b, op::less(b.value, a.value))",
        replaces: Some("!op::less_equal(a.value, x) && !op::isnan(a.value)"),
        finish: "a.index",
    },
    ReductionCode {
        op: ARGMAX,
        acc: Some("Best"),
        identity: None,
        value: "Best{x, index}",
        combine: "better(a, b, op::less(a.value, b.value))",
        replaces: Some("!op::less_equal(x, a.value) && !op::isnan(a.value)"),
        finish: "a.index",
    },
    ReductionCode {
        op: VAR,
        acc: Some("Moments"),
        identity: Some("Moments{Result(), 0.0, 0}"),
        value: "Moments{x, 1.0, 0}",
        combine: "merged(a, b)",
        replaces: None,
        finish: "squares_of(a)",
    },
];

/// Accumulator of arg-reductions: NaN wins, then the first of equal elements.
pub(crate) const BEST: &str = r#"
struct Best { Result value; Index index; };
__device__ inline Best better(const Best& a, const Best& b, bool b_wins) {
    const bool nan_a = op::isnan(a.value), nan_b = op::isnan(b.value);
    if (nan_a != nan_b) return nan_a ? a : b;
    if (!nan_a && b_wins) return b;
    const bool same = nan_a || op::equal(a.value, b.value);
    return same && b.index < a.index ? b : a;
}
"#;

/// Accumulator of variances: count, mean, and the sum of squared distances from the mean. Merged by the formula of Chan,
/// Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances", 1979).
pub(crate) const MOMENTS: &str = r#"
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
// The square times a number, which overflows only if the result does.
template <class T> __device__ inline Real squared(T x, Real times) {
    if constexpr (is_complex<T>) return add_rn(mul_rn(mul_rn(x.re, times), x.re), mul_rn(mul_rn(x.im, times), x.im));
    else return mul_rn(mul_rn(x, times), x);
}
__device__ inline Moments merged(const Moments& a, const Moments& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const f64 count = a.count + b.count, share = b.count / count;
    const Result distance = op::subtract(b.mean, a.mean);
    const Real between = squared(distance, static_cast<Real>(a.count * share));
    return {op::add(a.mean, scaled(distance, static_cast<Real>(share))), count, add_rn(add_rn(a.squares, b.squares), between)};
}
// NumPy's mean overflows where the sum does, and no value is near it then.
__device__ inline Real squares_of(const Moments& a) {
    const Result sum = scaled(a.mean, static_cast<Real>(a.count));
    return op::isnan(op::subtract(sum, sum)) ? add_rn(a.squares, static_cast<Real>(op::infinity())) : a.squares;
}
#define LEAVES
template <int N> __device__ inline Moments leaf(const Result (&x)[N]) {
    Result sum = x[0];
    #pragma unroll
    for (int k = 1; k < N; k++) sum = op::add(sum, x[k]);
    Result mean = scaled(sum, Real(1) / N);
    // Only the sum may be infinite. Two such means would have no distance.
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

impl<'a> ReductionCode<'a> {
    /// Returns the expressions of a reduction outside the table.
    pub fn of(op: Op, combination: &'a Combination) -> ReductionCode<'a> {
        let Combination { acc, identity, value, combine, finish, .. } = combination;
        ReductionCode { op, acc: Some(acc), identity: Some(identity), value, combine, replaces: None, finish }
    }

    /// Returns the size of the accumulator, in bytes.
    pub fn acc_size(&self, acc: DType) -> usize {
        match self.acc {
            Some("Best") => 2 * acc.itemsize().max(8),
            Some("bool") => 1,
            Some("i64") => 8,
            Some(_) => MOMENTS_SIZE,
            None => acc.itemsize(),
        }
    }
}

/// Returns identity, value and combination of an operation whose accumulator is a number.
pub(crate) fn combination(op: Op) -> Option<(Option<&'static str>, &'static str, &'static str)> {
    let row = REDUCTIONS.iter().find(|row| row.op == op && !matches!(row.acc, Some("Best" | "Moments")))?;
    Some((row.identity, row.value, row.combine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_one_row() {
        assert_eq!(REDUCTIONS.len(), OPS.len());
        for op in OPS {
            assert_eq!(REDUCTIONS.iter().filter(|r| r.op == *op).count(), 1, "{}", op.name());
        }
    }
}
