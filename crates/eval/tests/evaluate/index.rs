//! Indexing of `a = arange(12.).reshape(3, 4)` and `i = [2, 0, -1]`. Expected values are results of NumPy 2.4.

use crate::{check, repr_of};

#[test]
fn views() {
    check(&[
        ("a[1]", "array([4., 5., 6., 7.])"),
        ("a[-1, 0]", "array(8.)"),
        ("a[:, 1]", "array([1., 5., 9.])"),
        ("a[::-1, ::2].shape, a[1:].shape, a[5:].shape, a[:99, -3:-1].shape", "((3, 2), (2, 4), (0, 4), (3, 2))"),
        ("a[..., 0].shape, a[None].shape, a[:, np.newaxis, ..., None].shape", "((3,), (1, 3, 4), (3, 1, 4, 1))"),
        ("a[0][1:3]", "array([1., 2.])"),
        ("a[()] .shape", "(3, 4)"),
        ("n = 2; a[n - 1:n, :-1]", "array([[4., 5., 6.]])"),
        ("pair = (1, 2); a[pair]", "array(6.)"),
        ("k = i[0]; a[k, k - 1]", "array(9.)"),
        ("a[:i[0]].shape", "(2, 4)"),
        ("a.strides, a.T.strides, a[::2].strides, f.strides", "((32, 8), (8, 32), (64, 8), (4,))"),
        ("a[None:None:None].shape, a[10**30:].shape", "((3, 4), (0, 4))"),
    ]);
}

#[test]
fn integer_array_indices() {
    check(&[
        ("f[i]", "array([9., 1., 9.], dtype=float32)"),
        ("f[[0, 0]]", "array([1., 1.], dtype=float32)"),
        ("f[[]].shape", "(0,)"),
        ("a[i].shape, a[i, 0], a[:, [3, 0]]", "((3, 4), array([8., 0., 8.]), array([[ 3.,  0.],\n       [ 7.,  4.],\n       [11.,  8.]]))"),
        ("a[..., [0]].shape, a[None, i].shape, a[:, i, None].shape", "((3, 1), (1, 3, 4), (3, 3, 1))"),
        ("a[array([[0, 1], [2, 0]])].shape", "(2, 2, 4)"),
        (
            "k = (1, 0); a[:, k][0], a[(1, 0), (2, 3)], a[((1, 0), (2, 1)), 0]",
            "(array([1., 0.]), array([6., 3.]), array([[4., 0.],\n       [8., 4.]]))",
        ),
        ("a[(), :].shape, a[(True, False, True), :].shape", "((0, 4), (2, 4))"),
        ("y = zeros((3, 2)); y[(1, 0), :] = 9; y[:, 0]", "array([9., 9., 0.])"),
    ]);
    // A truth value selects along a new axis of extent 1.
    check(&[
        ("x = array(5); x[x > 3], x[x < 3].shape, f[True].shape, f[False].shape", "(array([5]), (0,), (1, 3), (0, 3))"),
        ("x = array(5); x[x > 3] = 0; x", "array(0)"),
        ("x = array(5); x[False] = 0; x", "array(5)"),
        ("y = i.copy(); y[True] = 7; y", "array([7, 7, 7])"),
        ("a[[0, 2], True].shape, a[True, :, 1].shape", "((2, 4), (1, 3))"),
    ]);
    // NumPy's rule for an int and an index array separated by a slice: the array's axes come first.
    check(&[
        ("c = a[None]; c[0, :, [1, 2]].shape, c[0, [1, 2]].shape, c[:, 0, [1, 2]].shape", "((2, 3), (2, 4), (1, 2))"),
        ("c = a[None]; c[0, ..., [1, 2]].shape, c[[0], :, 1].shape", "((2, 3), (1, 3))"),
    ]);
}

#[test]
fn unpacking_assignments() {
    assert_eq!(repr_of("x, y, w = a; y"), "array([4., 5., 6., 7.])");
    assert_eq!(repr_of("(m, n), k = a.shape, 2; m * n * k"), "24");
}
