//! Keywords that many functions have, constants, types, and functions as arguments. Expected values are results of NumPy 2.4.

use cuprum_core::ops::python_value::Value;

use crate::{check, session, value};

#[test]
fn device_is_the_device_of_the_result() {
    check(&[
        ("zeros(2, device='cpu').device, arange(3, device='cpu').device", "('cpu', 'cpu')"),
        ("ones((1, 2), 'float32', device=a.device).shape", "(1, 2)"),
        (
            "full(2, 7, device='cpu'), eye(1, device='cpu'), linspace(0, 1, 2, device='cpu')",
            "(array([7, 7]), array([[1.]]), array([0., 1.]))",
        ),
        ("asarray(i, device='cpu'), astype(i, 'int8', device='cpu')", "(array([ 2,  0, -1]), array([ 2,  0, -1], dtype=int8))"),
        ("zeros_like(i, device='cpu'), fft.fftfreq(2, device='cpu')", "(array([0, 0, 0]), array([ 0. , -0.5]))"),
        ("from_dlpack(i, device='cpu', copy=True)", "array([ 2,  0, -1])"),
    ]);
    for source in ["zeros(2, device='nowhere')", "zeros(2, device=3)", "zeros(2, order='X')"] {
        assert!(value(source).is_err(), "{source}");
    }
}

#[test]
fn order_is_the_order_in_memory() {
    check(&[
        ("zeros((2, 3), order='F').strides, zeros((2, 3)).strides", "((8, 16), (24, 8))"),
        ("array([[1, 2], [3, 4]], order='F').strides, a.copy(order='F').strides", "((8, 16), (8, 24))"),
        ("a.astype('float32', order='F').strides", "(4, 12)"),
    ]);
}

#[test]
fn print_options_apply_until_they_are_changed() {
    let mut session = session();
    let source = "set_printoptions(precision=2, threshold=5); array_str(array([1, 2 / 3])), array_str(arange(7))";
    let found = session.run(source).unwrap().unwrap_or(Value::None);
    assert_eq!(cuprum_eval::repr(&found).unwrap(), "('[1.   0.67]', '[0 1 2 ... 4 5 6]')");
    assert_eq!(cuprum_eval::display(&session.run("array([2 / 3])").unwrap().unwrap_or(Value::None)).unwrap(), "[0.67]");
    let found = session.run("get_printoptions().precision, repr_width").err().map(|e| e.message().to_owned());
    assert!(found.is_some_and(|message| message.contains("repr_width")));
    session.run("set_printoptions(precision=8, threshold=1000)").unwrap();
    assert_eq!(cuprum_core::get_printoptions(), cuprum_core::PrintOptions::default());
}

#[test]
fn constants_and_types_have_names() {
    check(&[
        ("np.True_, False_, np.little_endian", "(array(True), array(False), True)"),
        ("np.longlong, np.ulong, np.dtype('d'), np.dtype('B')", "(dtype('int64'), dtype('uint64'), dtype('float64'), dtype('uint8'))"),
        ("np.issubdtype(i.dtype, np.integer), issubdtype(np.float32, np.floating)", "(True, True)"),
        ("np.issubdtype(i.dtype, np.inexact)", "False"),
    ]);
}

#[test]
fn functions_are_arguments() {
    check(&[
        ("np.apply_along_axis(np.sum, 1, a)", "array([ 6., 22., 38.])"),
        ("apply_along_axis(np.linalg.norm, 0, np.ones((4, 2)))", "array([2., 2.])"),
        ("apply_along_axis(func1d=np.cumsum, axis=0, arr=i)", "array([2, 2, 1])"),
        ("apply_over_axes(sum, a, [0, 1])", "array([[66.]])"),
        ("np.fromfunction(np.add, (2, 2), dtype=int)", "array([[0, 1],\n       [1, 2]])"),
        ("mask_indices(2, np.triu, 1)", "(array([0]), array([1]))"),
    ]);
    // A function name is an error where no function is expected.
    let error = value("zeros(sum)").unwrap_err();
    assert!(error.message().contains("`sum` is a function"), "{error}");
    assert!(value("apply_along_axis(3, 0, a)").is_err());
}

#[test]
fn grids_are_written_as_indices() {
    check(&[
        ("np.mgrid[0:2, 0:3].shape, np.mgrid[0:3], mgrid[0:3,].shape", "((2, 2, 3), array([0, 1, 2]), (1, 3))"),
        ("mgrid[3:0].shape, ogrid[3:0, 0:2][0].shape, mgrid[3:2.5, 0:2].shape", "((0,), (0, 1), (2, 0, 2))"),
        ("mgrid[0:1:3j], ogrid[0:2, 0:2][0].shape", "(array([0. , 0.5, 1. ]), (2, 1))"),
        ("np.r_[1:3, 0, i], np.c_[i, i].shape", "(array([ 1,  2,  0,  2,  0, -1]), (3, 2))"),
        ("n = 2; mgrid[0:n]", "array([0, 1])"),
    ]);
    let help = value("mgrid").unwrap_err();
    assert!(help.message().contains("brackets"), "{help}");
    for source in ["mgrid[0]", "mgrid[:]", "r_['r', 1]", "mgrid[None]", "r_[...]", "mgrid(3)", "mgrid[0:'a']", "mgrid[0:1:0]"] {
        assert!(value(source).is_err(), "{source}");
    }
    // A variable named `mgrid` hides the function.
    let mut session = session();
    let found = session.run("mgrid = i; mgrid[0]").unwrap().unwrap_or(Value::None);
    assert_eq!(cuprum_eval::repr(&found).unwrap(), "array(2)");
}
