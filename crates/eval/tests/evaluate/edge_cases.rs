//! Non-finite numbers, numbers at the limits of dtypes, and reductions of few elements. Expected values are results of NumPy 2.4.

use crate::{check, repr_of};

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

#[test]
fn ranges_of_narrow_floats() {
    check(&[
        ("arange(0.3, -3, -0.7, 'f4')", "array([ 0.3      , -0.4      , -1.1000001, -1.8000002, -2.5000002],\n      dtype=float32)"),
        ("arange(0.3, -3, -0.7, 'c8')[:2], arange(-0.0, 2)", "(array([ 0.3+0.j, -0.4+0.j], dtype=complex64), array([-0.,  1.]))"),
        ("arange(1, 2, inf), arange(0, 2e38, 5e37, dtype='f2')", "(array([1.]), array([ 0., inf, inf, inf], dtype=float16))"),
        ("arange(0, float32(0.6), 0.1).size, arange(-1, float32(0.7), 0.01).size, arange(float32(0.6), step=0.1).size", "(6, 171, 6)"),
        ("arange(float16(0.1), 1, float32(0.3))", "array([0.09997559, 0.3999756 , 0.69997561])"),
        ("arange(float32(0.1), 2, 0.7, dtype='i4')", "array([0, 0, 0], dtype=int32)"),
        ("linspace(float32(1), float32(0.33), 3, endpoint=False, dtype='f8')", "array([1.       , 0.7766667, 0.5533334])"),
        ("linspace(float32(1), 0.33, 3, endpoint=False, dtype='f8')[1] == 0.7766667008399963", "array(True)"),
        ("linspace(float16(1), 3, 7, dtype='i4')", "array([1, 1, 1, 2, 2, 2, 3], dtype=int32)"),
    ]);
}

#[test]
fn dtypes_of_0d_arguments_and_casting_rules() {
    check(&[
        ("unwrap(array([0, 1, 2, -1, 0], 'f4'), period=float64(4))", "array([0., 1., 2., 3., 4.])"),
        ("unwrap(array([0, 1, 2, -1, 0], 'f4'), period=int64(4)).dtype", "dtype('float64')"),
        ("unwrap(array([0, 1, 2, -1, 0], 'f4'), period=4)", "array([0., 1., 2., 3., 4.], dtype=float32)"),
        ("unwrap([0, 1, 2, -1, 0], period=array([4]))", "array([0, 1, 2, 3, 4])"),
        ("unwrap(array([0, 1, 2, -1, 0], 'i4'), period=uint8(3))", "array([  0,   1,   2, 257, 258], dtype=int32)"),
        ("matmul([[1, 2]], [[3], [0]], dtype=bool, casting='unsafe')", "array([[ True]])"),
        (
            "matvec([[1, 2]], [3, 0], dtype=bool, casting='unsafe'), vecmat([1, 2], [[3], [0]], dtype=bool, casting='unsafe')",
            "(array([ True]), array([ True]))",
        ),
        ("concatenate((1, array([2], 'f4')), axis=None, casting='no')", "array([1., 2.], dtype=float32)"),
        ("take([1, 2, 3], array([7], 'u8'), mode='wrap'), take([1, 2, 3], [], mode='clip')", "(array([2]), array([], dtype=int64))"),
    ]);
}

#[test]
fn arrays_of_64_axes_are_repeated() {
    check(&[
        ("x = ones((1,) * 63 + (2,)); tile(x, 2).shape[-2:], repeat(x, 3, axis=-1).shape[-2:]", "((1, 4), (1, 6))"),
        ("x = ones((1,) * 63 + (2,)); repeat(x, 3, axis=0).shape[:2], tile(x, (3,) + (1,) * 63).shape[:2]", "((3, 1), (3, 1))"),
        ("tile([[1, 2]], (2, 2)), repeat([[1, 2]], 2, 1)", "(array([[1, 2, 1, 2],\n       [1, 2, 1, 2]]), array([[1, 1, 2, 2]]))"),
        ("tile([1, 2], 0), repeat([[1, 2]], 0, 1).shape", "(array([], dtype=int64), (1, 0))"),
    ]);
}

#[test]
fn escapes_and_widths_of_text() {
    check(&[
        (r"len('\a\b\f\v\101\0\400\18'), '\101\x41\1011', '\a\b\f\v' == '\x07\x08\x0c\x0b'", "(9, 'AAA1', True)"),
        ("len(binary_repr(3, width=65536)), len(binary_repr(-3, width=65536)), binary_repr(3, 5)", "(65536, 65536, '00011')"),
    ]);
}

#[test]
fn reductions_by_elementwise_operations() {
    check(&[
        ("x = array(3.); subtract.reduce(x, initial=10), subtract.reduce(x, initial=10, where=False)", "(array(7.), array(10.))"),
        ("x = array(3.); subtract.reduce(x, axis=-1), divide.reduce(x, axis=None, initial=6)", "(array(3.), array(2.))"),
        ("subtract.reduce([3., 2], initial=10, where=[True, False])", "array(7.)"),
        ("subtract.reduce([[3., 2], [5, 7]], axis=1, initial=10, where=[True, False], keepdims=True)", "array([[7.],\n       [5.]])"),
        ("subtract.reduce([3., 2], axis=(), initial=10, where=[True, False])", "array([ 7., 10.])"),
        ("subtract.reduce(zeros((0, 3)), initial=10, where=[True, False, True])", "array([10., 10., 10.])"),
        ("subtract.reduce([3, 2], initial=2.5)", "array(-3)"),
        (
            "lcm.reduce([4, 6], initial=-10, where=[True, False]), lcm.reduce([4, 6], initial=-10, where=[False, False])",
            "(array(20), array(-10))",
        ),
        ("gcd.reduce([-4]), gcd.reduce([-4], axis=()), gcd.reduce(array(-4))", "(array(4), array([4]), array(4))"),
        ("gcd.reduce([-4, 6], where=[True, False]), gcd.reduce([-4], where=[False], initial=-8)", "(array(4), array(-8))"),
        ("gcd.reduceat([-4, 6, -8], [0, 1, 2]), gcd.reduceat([-4, 6, -8], [0, 2])", "(array([-4,  6, -8]), array([ 2, -8]))"),
        ("hypot.reduce([-3.]), hypot.accumulate([-3., 4]), lcm.reduce([-4])", "(array(3.), array([-3.,  5.]), array(-4))"),
        (
            "x = array([6, 1], 'u1'); bitwise_and.reduce(x[:0]), bitwise_and.reduce(x, where=[True, False])",
            "(array(255, dtype=uint8), array(6, dtype=uint8))",
        ),
        (
            "bitwise_and.reduce(array([], 'u8')), bitwise_and.reduce(array([], 'i1')), bitwise_and.reduce(array([], bool))",
            "(array(18446744073709551615, dtype=uint64), array(-1, dtype=int8), array(True))",
        ),
        ("trapezoid([4., 5, 6], [[3, -2, 0.], [1, 2, 3.]])", "array([-11.5,  10. ])"),
    ]);
}

#[test]
fn variances_of_complex_numbers() {
    check(&[
        (
            "z = array([1+1j, 2-3j]); var(z), var(z, dtype=float), var(z, dtype='f4')",
            "(array(4.25), array(5.25), array(5.25, dtype=float32))",
        ),
        ("z = array([1+1j, 2-3j]); var(z, dtype='f2'), std(z, dtype=float)", "(array(5.25, dtype=float16), array(2.29128785))"),
        ("z = array([1+1j, 2-3j]); var(z, dtype=float, where=[True, True]), nanvar(z, dtype=float)", "(array(5.25), array(5.25))"),
        (
            "z = array([1+2j, 3]); var(z, dtype='c8'), std(z, dtype='c8')",
            "(array(2.+0.j, dtype=complex64), array(1.4142135+0.j, dtype=complex64))",
        ),
        ("var([1, 3], dtype=complex), std([1, 3], dtype=complex), std([1+2j, 3])", "(array(1.+0.j), array(1.+0.j), array(1.41421356))"),
        (
            "z = array([1+2j, 3, nan]); nanvar(z, dtype='c8'), nanstd(z, dtype='c8')",
            "(array(2.+0.j, dtype=complex64), array(1.4142135+0.j, dtype=complex64))",
        ),
        ("var([1+2j, 3], dtype=complex, where=[True, False])", "array(0.+0.j)"),
        (
            "var(zeros(0), dtype=complex), std(zeros((2, 0)), axis=1, dtype='c8'), nanvar(zeros(0), dtype=complex)",
            "(array(nan+nanj), array([nan+nanj, nan+nanj], dtype=complex64), array(nan+0.j))",
        ),
        ("var([1.], ddof=1, dtype=complex), var([1., 2], dtype=complex, where=[False, False])", "(array(nan+nanj), array(nan+nanj))"),
    ]);
}

#[test]
fn numbers_at_the_limits_of_dtypes() {
    check(&[
        (
            "x = zeros(1, 'f2'); nextafter(x, 2**64), nextafter(x, -2**63 - 1)",
            "(array([6.e-08], dtype=float16), array([-6.e-08], dtype=float16))",
        ),
        ("fabs(True), fabs(-2)", "(array(1., dtype=float16), array(2.))"),
        ("i0(2**64), interp([-1., 0], [0, 1.], [1., 2], left=2**64)", "(array(inf), array([1.84467441e+19, 1.00000000e+00]))"),
        ("isin([2**63 - 1, -1, 5], array([2**63, 2**64 - 1, 5], 'u8'))", "array([False, False,  True])"),
        ("isin(array([2**63, 2**64 - 1, 5], 'u8'), [2**63 - 1, -1, 5])", "array([False, False,  True])"),
        (
            "isin(array([2**63, 5], 'u8'), [2**63 - 1, 5], invert=True), isin([-1, 5], array([2**64 - 1], 'u8'), invert=True)",
            "(array([ True, False]), array([ True,  True]))",
        ),
        (
            "logspace(1, array([1, 2], 'f4'), 2), logspace(1, array([1, 2], 'f4'), 2, base=array(2.)).dtype",
            "(array([[ 10.,  10.],\n       [ 10., 100.]], dtype=float32), dtype('float64'))",
        ),
        (
            "concat((2, array([1], 'i4')), axis=None), concat((2., array([1], 'i4')), axis=None)",
            "(array([2, 1], dtype=int32), array([2., 1.]))",
        ),
        ("union1d(2, array([1], 'i1')), union1d([2], array([1], 'i1'))", "(array([1, 2], dtype=int8), array([1, 2]))"),
        ("np.r_[0.1:0.7:7j][-1] == 0.7, np.c_[0.1:0.7:7j][-1] == 0.7, np.r_[0:5:1j]", "(array(True), array([ True]), array([0.]))"),
        ("linspace([0, 1], [2, 3], 3, axis=-1)", "array([[0., 1., 2.],\n       [1., 2., 3.]])"),
        (
            "linspace([-1.5, 1], 2, 3, dtype=int), linspace(f[:2], 4, 1)",
            "(array([[-2,  1],\n       [ 0,  1],\n       [ 2,  2]]), array([[1., 4.]], dtype=float32))",
        ),
        ("linspace([0, 1], [1, 1], 2, False, True)", "(array([[0. , 1. ],\n       [0.5, 1. ]]), array([0.5, 0. ]))"),
        ("array([[1]], ndmax=2), array(zeros((1, 1)), ndmax=1)", "(array([[1]]), array([[0.]]))"),
        ("add.accumulate([1, 0, 1], axis=None), add.reduceat([1, 0, 1], [0], axis=None)", "(array([1, 1, 2]), array([2]))"),
        ("random.default_rng(1).integers(3, array([3, 5, 7]), size=(0, 3)).shape", "(0, 3)"),
        ("linalg.solve(eye(2), zeros((2, 0))).shape, linalg.solve(ones((2, 2)), zeros((0, 2, 1))).shape", "((2, 0), (0, 2, 1))"),
        ("linalg.eigh(eye(2)).eigenvalues, linalg.eig(eye(2)).eigenvectors.shape", "(array([1., 1.]), (2, 2))"),
        (
            "linalg.slogdet(eye(2)), iinfo('int8')",
            "((sign=array(1.), logabsdet=array(0.)), (bits=8, min=-128, max=127, dtype=dtype('int8')))",
        ),
        (
            "r = arange(6).reshape(2, 3); r[(0, 1),].shape, r[((0, 1),)].shape, r[(0, 1)], r[(),].shape",
            "((2, 3), (2, 3), array(1), (0, 3))",
        ),
        ("ldexp(2**70, 1), hypot(2**70, 0)", "(array(2.36118324e+21), array(1.18059162e+21))"),
        ("r = arange(6).reshape(2, 3); r[(0, 1),] = 9; r[(True, False),]", "array([[9, 9, 9]])"),
        ("linalg.qr(eye(1)).R, linalg.svd(eye(1)).S, linalg.slogdet(eye(1)).logabsdet", "(array([[1.]]), array([1.]), array(0.))"),
        (
            "sum(f, where=None), cov(a, rowvar=None).shape, arange(2, step=None), argsort(i, axis=None)",
            "(array(0., dtype=float32), (4, 4), array([0, 1]), array([2, 1, 0]))",
        ),
        (
            "less([1], array([2], 'u8'), casting='no'), add(1, 2, casting='no'), hypot(3, 4, casting='no')",
            "(array([ True]), array(3), array(5.))",
        ),
        ("array([0, 1]).choose([[1, 2], [3, 4]])", "array([1, 4])"),
        ("x = zeros(2, bool); put(x, 0, 1j); x", "array([ True, False])"),
        ("x = zeros(2, int); put(x, [0, 1], [1.5, 2]); x", "array([1, 2])"),
        ("x = zeros((2, 2), int); fill_diagonal(x, [1.5, 2]); x", "array([[1, 0],\n       [0, 2]])"),
        ("linalg.vector_norm([3., 4], ord=None), linalg.vector_norm([3., 4], ord=1)", "(array(5.), array(7.))"),
        ("x = zeros((2, 3)); asarray(x, copy=False).shape, array(x.T, order='F', ndmin=3, copy=False).shape", "((2, 3), (1, 3, 2))"),
        ("e = zeros(0, int); ravel_multi_index((e, e), (3, 0), 'clip')", "array([], dtype=int64)"),
        ("polyder([1, 2], 10**7), polyint([1, 2], 2)", "(array([], dtype=int64), array([0.16666667, 1.        , 0.        , 0.        ]))"),
    ]);
}

#[test]
fn digits_of_numbers_without_precision() {
    check(&[
        (
            "format_float_positional(38.875, precision=0, min_digits=10), format_float_positional(38., precision=0, min_digits=3)",
            "('39.0000000000', '38.000')",
        ),
        (
            "format_float_positional(.1, precision=0, min_digits=3), format_float_positional(.7, precision=0, min_digits=3)",
            "('0.000', '1.000')",
        ),
        ("format_float_positional(.1, precision=0), format_float_positional(0., precision=0, min_digits=3)", "('0.', '0.000')"),
        (
            "format_float_scientific(38.875, precision=0, min_digits=10), format_float_scientific(3e5, precision=0, min_digits=2)",
            "('4.0000000000e+01', '3.00e+05')",
        ),
    ]);
}

#[test]
fn masks_casts_and_0d_arrays() {
    check(&[
        (
            "mean(ones(300), where=ones(300, dtype=bool), dtype='u1'), var(arange(200) % 2, where=arange(200) < 190, dtype='i1')",
            "(array(0, dtype=uint8), array(0, dtype=int8))",
        ),
        (
            "ldexp(array([1], 'f4'), 1, dtype='f8'), logical_and(arange(3.), arange(3.), casting='no')",
            "(array([2.]), array([False,  True,  True]))",
        ),
        (
            "choose([0, 1], [array([1, 2], 'i1'), 3]), choose([0, 1], [array([1, 2], 'f4'), 1.5])",
            "(array([1, 3], dtype=int8), array([1. , 1.5], dtype=float32))",
        ),
        (
            "packbits(array(8, 'u1'), axis=0), unpackbits(array(8, 'u1'), axis=-1)",
            "(array([128], dtype=uint8), array([0, 0, 0, 0, 1, 0, 0, 0], dtype=uint8))",
        ),
    ]);
}

#[test]
fn weights_replacements_and_given_values() {
    check(&[
        ("nan_to_num([1, complex(nan, nan)], nan=[5, 6])", "array([1.+0.j, 6.+6.j])"),
        (
            "nan_to_num([[complex(nan, inf)], [complex(3, -inf)]], nan=[[5], [6]], posinf=[[7], [8]], neginf=9)",
            "array([[5.+7.j],\n       [3.+9.j]])",
        ),
        (
            "histogram([1, 2, 3], 2, weights=array([1, 200, 100], 'u1'))[0], histogram([1, 2, 3], [1, 2, 3], weights=[2**53, 2**53 + 1, 1])[0]",
            "(array([ 1, 44], dtype=uint8), array([9007199254740992, 9007199254740994]))",
        ),
        (
            "histogram([1, 2, 3], 2, weights=[inf, 2, 3j])[0], histogram([1, 2, 3], 2, weights=array([1, 2, 3], 'f4'))[0]",
            "(array([inf+0.j,  2.+3.j]), array([1., 5.], dtype=float32))",
        ),
        ("nanquantile([[1., nan], [3, nan]], .5, axis=0, weights=[[2, 0], [1, 0]], method='inverted_cdf')", "array([ 1., nan])"),
        ("median([1, complex(nan, 1), 2+1j]), median([2, complex(1, nan)])", "(array(nan+1.j), array(1.+nanj))"),
        ("pad([2**53 + 1, 2**53], 1, 'maximum') - 2**53, pad([2, 5], 1, 'mean')", "(array([1, 1, 0, 1]), array([4, 2, 5, 4]))"),
        ("r_[2**53:2**53 + 1], mgrid[2**53 + 1:2**53 + 4] - 2**53", "(array([9007199254740992]), array([1, 2, 3]))"),
        ("ogrid[0:1:.5, 2**53:2**53 + 1][1].shape, mgrid[3:0:-2]", "((1, 1), array([3, 1]))"),
        (
            "r = arange(1, 2, .1); all(r_[1:2:.1] == r), all(mgrid[1:2:.1] == r), all(ogrid[1:2:.1] == r)",
            "(array(True), array(True), array(True))",
        ),
        ("all(mgrid[1:2:.1,] == arange(10) * .1 + 1), all(mgrid[1:2:.1,] == arange(1, 2, .1))", "(array(True), array(False))"),
    ]);
}

#[test]
fn integer_arrays_as_axes_and_positions() {
    check(&[
        (
            "x = ones((2, 3, 4)); x.transpose(argsort([2, 0, 1])).shape, permute_dims(x, array([2, 0, 1], 'u8')).shape",
            "((3, 4, 2), (4, 2, 3))",
        ),
        ("x = ones((2, 3, 4)); moveaxis(x, array([0, 1]), array([2, 1])).shape, size(x, array([0, 1]))", "((4, 3, 2), 6)"),
        ("roll([[1, 2], [3, 4]], 1, array([0, 1])), roll([1, 2], 1, array(0))", "(array([[4, 3],\n       [2, 1]]), array([2, 1]))"),
        (
            "fft.fftn(eye(2), axes=array([0, 1])), fft.fftshift(eye(2), axes=array([1]))",
            "(array([[2.+0.j, 0.+0.j],\n       [0.+0.j, 2.+0.j]]), array([[0., 1.],\n       [1., 0.]]))",
        ),
        (
            "apply_over_axes('sum', ones((2, 3, 4)), array([0, 1])), median(eye(2), axis=array([0, 1]))",
            "(array([[[6., 6., 6., 6.]]]), array(0.5))",
        ),
        (
            "x = arange(9).reshape(3, 3); tensordot(x, x, axes=array([[0], [0]])), tensordot(x, x, array(2))",
            "(array([[45, 54, 63],\n       [54, 66, 78],\n       [63, 78, 93]]), array(204))",
        ),
        (
            "x = arange(9).reshape(3, 3); y = array([0, 1]); tensordot(x, x, (y, y)), tensordot(x, x, y)[0]",
            "(array(204), array([15, 42, 69]))",
        ),
        (
            "array_split(arange(4), array([2**64 - 1], 'u8')), split(arange(4), [-2**70, 2**70])",
            "([array([0, 1, 2, 3]), array([], dtype=int64)], [array([], dtype=int64), array([0, 1, 2, 3]), array([], dtype=int64)])",
        ),
        (
            "array_split(arange(4), array([-2**63, 2**63 - 1]))[1], zeros(array([2, 1], 'u8'))",
            "(array([0, 1, 2, 3]), array([[0.],\n       [0.]]))",
        ),
    ]);
}

#[test]
fn the_first_of_several_complex_nan_is_distinct() {
    let z = "z = array([complex(nan, 1), complex(2, nan), 1, complex(nan, nan), complex(2, nan)]); ";
    for (source, want) in [
        ("unique(z), unique(z, axis=0)", "(array([ 1.+0.j, nan+1.j]), array([ 1.+0.j, nan+1.j]))"),
        ("unique(z[::-1])", "array([1. +0.j, 2.+nanj])"),
        ("union1d(z, 5), setdiff1d(z, 1)", "(array([ 1.+0.j,  5.+0.j, nan+1.j]), array([nan+1.j]))"),
        ("setxor1d(z, [1, 5]), intersect1d(z, z)", "(array([ 5.+0.j, nan+1.j]), array([1.+0.j]))"),
        // With indices, NumPy sorts the elements.
        ("unique(z, return_index=True)", "(array([1. +0.j, 2.+nanj]), array([2, 1]))"),
        ("unique(z[:0]), unique(z[2:3]), unique(z[3:4])", "(array([], dtype=complex128), array([1.+0.j]), array([nan+nanj]))"),
    ] {
        assert_eq!(repr_of(&format!("{z}{source}")), want, "{source}");
    }
}

#[test]
fn slices_with_nan_are_distinct() {
    check(&[
        (
            "unique([[nan, 1], [0, 1], [nan, 1], [0, 1]], axis=0, return_counts=True)",
            "(array([[ 0.,  1.],\n       [nan,  1.],\n       [nan,  1.]]), array([2, 1, 1]))",
        ),
        (
            "unique([nan, 1, nan], axis=0, return_inverse=True), unique([[nan], [1], [nan]], axis=0).shape",
            "((array([ 1., nan]), array([1, 0, 1])), (3, 1))",
        ),
    ]);
}

#[test]
fn dtypes_of_results_and_shapes_from_arrays() {
    check(&[
        (
            "geomspace(float32(1), 4, 3), geomspace(complex64(1), 4, 3).dtype, geomspace(float32(1), 4, 3, dtype='f4').dtype",
            "(array([1., 2., 4.]), dtype('complex128'), dtype('float32'))",
        ),
        (
            "linspace(float32(.1), .7, 7, retstep=True)[1], linspace(float16(0), 1, 3, retstep=True)[1]",
            "(array(0.09999999, dtype=float32), array(0.5, dtype=float16))",
        ),
        ("ldexp(1, array([1, 2])), ldexp(1., array([1])), ldexp(1, 1)", "(array([2., 4.], dtype=float16), array([2.]), array(2.))"),
        ("linalg.pinv(zeros((0, 2), int)).dtype, linalg.pinv([[2.]], rcond=array(.1))", "(dtype('int64'), array([[0.5]]))"),
        (
            "zeros(array([2, 1])), tile([1, 2], array([1, 2], 'u1')), roll(arange(4), array([0, -1, 2]))",
            "(array([[0.],\n       [0.]]), array([[1, 2, 1, 2]]), array([3, 0, 1, 2]))",
        ),
        (
            "extract([1, 0, 0, 0], [1, 2]), mean(2.5, axis=0, where=array(True)), std(2.5, axis=-1, where=array(True))",
            "(array([1]), array(2.5), array(0.))",
        ),
        (
            "unravel_index(2**62 - 1, (2**31, 2**31)), ravel_multi_index((1, 1), (2**31, 2**31))",
            "((array(2147483647), array(2147483647)), array(2147483649))",
        ),
        (
            "e = zeros(0, int); ravel_multi_index((e, -1), (2, 3)), ravel_multi_index((e, 1), (2, 0))",
            "(array([], dtype=int64), array([], dtype=int64))",
        ),
        ("interp([1.5, .5, 2, nan], [0, 1, 2], array([0, inf, 1]) + 1j)", "array([inf+1.j, inf+1.j,  1.+1.j, nan+0.j])"),
        ("ones((2, 3, 4))[zeros((0, 3)) > 1].shape, ones((2, 3, 4))[array([], dtype=bool)].shape", "((0, 4), (0, 3, 4))"),
        ("x = arange(3); x[array([], dtype=bool)] = 5; x", "array([0, 1, 2])"),
        ("roll([1, 2, 3], 2**100), roll([1, 2, 3], -2**100)", "(array([3, 1, 2]), array([2, 3, 1]))"),
        ("roll([1, 2, 3], array([2**64 - 1], 'u8')), roll(zeros(0), 2**70)", "(array([1, 2, 3]), array([], dtype=float64))"),
        ("base_repr(-2**70, 32), binary_repr(0, width=0)", "('-100000000000000', '0')"),
        ("binary_repr(2**64) == base_repr(2**64), binary_repr(-2**65, 66) == base_repr(2**65)", "(True, True)"),
        ("array2string(array([1, 2]), separator='→', prefix='éé', max_line_width=6)", "'[1→\\n   2]'"),
        ("std([1, 5], dtype=int)", "array(2)"),
        ("apply_over_axes(np.sum, ones((2, 3)), (0, 0))", "array([[2., 2., 2.]])"),
        ("float_power([1+0j], [1+0j], casting='no'), matmul([1], [2], casting='no')", "(array([1.+0.j]), array(2))"),
        ("ldexp(1, i, casting='no').dtype, bitwise_count(5, dtype='u1', casting='no')", "(dtype('float16'), array(2, dtype=uint8))"),
        (
            "nextafter(1, 2, casting='no') > 1, positive(2, dtype='i2'), add(1, 2, dtype='u2', casting='no')",
            "(array(True), array(2, dtype=int16), array(3, dtype=uint16))",
        ),
        (
            "equal(array([1], 'u8'), [1], dtype=bool, casting='no'), less(f, 2, dtype=bool, casting='no')",
            "(array([ True]), array([ True, False, False]))",
        ),
        ("x = ones((2, 3)); clip([1., 2, 3], 0, 2, out=x)", "array([[1., 2., 2.],\n       [1., 2., 2.]])"),
        ("x = ones((2, 1, 2)); matmul(ones((1, 2)), ones((2, 2)), out=x)", "array([[[2., 2.]],\n\n       [[2., 2.]]])"),
    ]);
}
