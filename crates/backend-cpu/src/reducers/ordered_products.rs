//! Products in element order, as in NumPy. In pairwise order, one partial product may overflow and another one underflow. The pairwise
//! result is then zero, infinite or NaN, and may differ from the product in element order.

use super::Reducer;
use super::arithmetic::Arithmetic;
use super::leaf_reduction::{LANES, fold_values_in_lanes};

/// Continues `product`, the product of the earlier elements, with `values` in order. `tree_result` is the product of all elements, merged
/// in pairwise order. Returns `true` if `product` is final, whatever elements follow.
pub(crate) fn multiply_in_order_until_final<T: Arithmetic>(product: &mut Option<T>, values: &[T], tree_result: T) -> bool {
    let is_complex = const { T::DTYPE.is_complex() };
    for chunk in values.chunks(2 * LANES) {
        let next = match *product {
            None => chunk[1..].iter().fold(chunk[0], |p, v| p.times(*v)),
            Some(p) if !p.is_zero_or_non_finite_float() => chunk.iter().fold(p, |p, v| p.times(*v)),
            Some(p) if p.has_nan() => {
                *product = Some(p.times(p)); // both parts of a complex number are NaN
                return true;
            }
            // The product so far, `p`, is zero or infinite, and so is `tree_result`, the product of all elements. If `tree_result` is zero,
            // no element is infinite or NaN. If it is infinite, no element is zero or NaN. The elements not yet multiplied can therefore
            // change only the sign of `p`, and `tree_result` has the right sign. Complex infinities may still become NaN.
            Some(p) if p.times(p) == tree_result.times(tree_result) && (!is_complex || p == T::ZERO) => {
                *product = Some(tree_result);
                return true;
            }
            Some(p) if is_complex => chunk.iter().fold(p, |p, v| p.times(*v)),
            // Here `p` is zero or infinite, so the order of the remaining factors does not matter. Each lane multiplies its elements by
            // `p.times(p)`, which is 0 or +inf. The multiplication by `p` at the end gives the sign.
            Some(p) => p.times(fold_values_in_lanes(chunk, None, |v| p.times(p).times(v), T::times)),
        };
        *product = Some(next);
    }
    false
}

/// Reduces those rows of `values` a second time, in the order of their elements, whose results depend on the order
/// ([`Reducer::depends_on_order`]). Rows have `row` elements.
pub(crate) fn recompute_rows_in_order<R: Reducer>(values: &[R::In], row: usize, results: &mut [R::Out]) {
    if row <= LANES || !results.iter().any(|result| R::depends_on_order(*result)) {
        return; // up to `LANES` elements are merged in order
    }
    for (values, result) in values.chunks(row).zip(results).filter(|(_, result)| R::depends_on_order(**result)) {
        let mut acc = None;
        R::merge_in_order_until_final(&mut acc, values, *result);
        *result = acc.map_or(*result, R::finish);
    }
}
