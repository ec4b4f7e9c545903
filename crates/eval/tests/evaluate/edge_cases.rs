//! Non-finite numbers, numbers at the limits of dtypes, and reductions of few elements. Expected values are results of NumPy 2.4.

use crate::check;

#[test]
fn convolutions_with_non_finite_numbers() {
    check(&[
        ("convolve([1, 2., 3, 4], [1, 2, nan])", "array([ 1.,  4., nan, nan, nan, nan])"),
        ("convolve([1, 2., 3], [inf, 1]), convolve([inf, 1], [1, 2., 3])", "(array([inf, inf, inf,  3.]), array([inf, inf, inf,  3.]))"),
        ("convolve([1, 2., 3, 0], [inf, 1], 'same')", "array([inf, inf, inf, nan])"),
        ("convolve([1, 2., 3, 0], [1, inf, 2], 'same')", "array([inf, inf, inf, nan])"),
        ("correlate([1, 2., 3, 0], [1, inf, 2], 'full')", "array([ 2., inf, inf, inf, nan,  0.])"),
        ("correlate([1, inf, 2], [1, 2., 3, 0], 'full')", "array([ 0., nan, inf, inf, inf,  2.])"),
        ("convolve(array([1, 2, 3], 'f2'), array([nan, 1], 'f2'))", "array([nan, nan, nan,  3.], dtype=float16)"),
        ("convolve([1, 2, 3+1j], [nan, 1])", "array([nan+nanj, nan+nanj, nan+nanj,  3. +1.j])"),
        ("convolve([1, 2, 3], [4, 5, 6], 'same'), convolve([2.], [nan])", "(array([13, 28, 27]), array([nan]))"),
        ("polymul([1, nan], [1, 2, 3.]), poly([1, inf, 2.])", "(array([ 1., nan, nan, nan]), array([  1., -inf,  inf, -inf]))"),
    ]);
}
