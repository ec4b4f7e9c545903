//! Python's numbers, tuples, lists, strings and truth values. Expected values are CPython's results.

use crate::check;

#[test]
fn numbers() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("-2**2", "-4"),
        ("7 // 2, -7 // 2, -7 % 3", "(3, -4, 2)"),
        ("1 / 4", "0.25"),
        ("2**-1", "0.5"),
        ("sum([1, 2], 10), sum(()), sum([[1], [2]], []), sum([array([1, 2]), array([3, 4])])", "(13, 0, [1, 2], array([4, 6]))"),
        ("sum(ones((2, 3))), np.sum([array([1, 2]), array([3, 4])]), sum([[1, 2], [3, 4]])", "(array(6.), array(10), array(10))"),
        (
            "9007199254740993 / 3, 10**30 / 10**29, (2**126 + 1) / (2**60 + 1), 1 / (2**126 - 1 + 2**126), 2**100 / -7",
            "(3002399751580331.0, 10.0, 7.378697629483821e+19, 5.877471754111438e-39, -1.8109294288974705e+29)",
        ),
        (
            "(-2**126 - 2**126) / 3, (2**54 + 1) / 1, (2**54 + 3) / 1, (2**64 + 2**11 + 1) / 1, 0 / -2**60",
            "(-5.671372782015641e+37, 1.8014398509481984e+16, 1.8014398509481988e+16, 1.8446744073709556e+19, -0.0)",
        ),
        ("2**100", "1267650600228229401496703205376"),
        ("10**15 * 10**15", "1000000000000000000000000000000"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1e16, 1e-5, 1.0", "(1e+16, 1e-05, 1.0)"),
        ("2j * 2j", "(-4+0j)"),
        ("(-1) ** 2", "1"),
        ("True + True", "2"),
        ("True & False, 6 ^ 3, 1 << 4, ~5", "(False, 5, 16, -6)"),
        ("5.5 // 2, -5.5 % 2", "(2.0, 0.5)"),
        ("abs(-3), abs(3+4j), abs(-2.5)", "(3, 5.0, 2.5)"),
        ("int(2.9), int(-2.9), float(3), bool(0), complex(1, 2)", "(2, -2, 3.0, False, (1+2j))"),
        ("int(' 12 '), float('-inf'), float('1e3'), float('nan')", "(12, -inf, 1000.0, nan)"),
        ("complex(inf, -inf), complex(1, 2j), complex(1j, 1)", "((inf-infj), (-1+0j), 2j)"),
        ("complex(-1, -0.0), complex(-0.0, 1), complex(-0.0, 1j)", "((-1-0j), (-0+1j), (-1+0j))"),
        ("round(2.5), round(3.5), round(7), round(-0.5), round(2.5, None)", "(2, 4, 7, 0, 2)"),
        ("round(16.055, 2), round(2.675, 2), round(1.005, 2), round(0.125, 2), round(0.375, 2)", "(16.05, 2.67, 1.0, 0.12, 0.38)"),
        ("round(16.055, ndigits=2), round(2.5, 0), round(-0.4, 0), round(2.5, True)", "(16.05, 2.0, -0.0, 2.5)"),
        (
            "round(15.0, -1), round(25.0, -1), round(5.0, -1), round(5.1, -1), round(-5.1, -1), round(49.9, -2)",
            "(20.0, 20.0, 0.0, 10.0, -10.0, 0.0)",
        ),
        ("round(1e23, -22), round(1e23, -23), round(1e23, -24), round(1e22, -22)", "(1e+23, 1e+23, 0.0, 1e+22)"),
        ("round(5e-324, 323), round(1.5, 10**30), round(1.5, -10**30), round(1e308, -308)", "(0.0, 1.5, 0.0, 1e+308)"),
        ("round(inf, 2), round(-inf, -2), round(nan, 2)", "(inf, -inf, nan)"),
        ("round(15, -1), round(25, -1), round(-25, -1), round(51, -2), round(7, 3)", "(20, 20, -20, 100, 7)"),
        (
            "round(True), round(True, 1), round(True, -1), round(5 * 10**37, -38), round(14 * 10**37, -38), round(1, -39)",
            "(1, 1, 0, 0, 100000000000000000000000000000000000000, 0)",
        ),
        ("min(3, 1, 2), max(3, 1.5)", "(1, 3)"),
        ("min(a.max(), 0), max(-1, a.min()), max(f[0], f[1] - 4)", "(0, array(0.), array(1., dtype=float32))"),
        (
            "min(1.0, f[0]), min(f[0], 1.0), max(nan, f[0]), max(f[0], nan)",
            "(1.0, array(1., dtype=float32), nan, array(1., dtype=float32))",
        ),
        ("zeros(round(f[0])).shape, round(a.mean()), round(f[1] / 3, 2)", "((1,), 6, array(1.33, dtype=float32))"),
        ("complex(f[0], array(2)), complex(a[0, 1], 1j)", "((1+2j), 0j)"),
        ("~np.True_, np.True_ + np.True_, np.True_.dtype", "(array(False), array(True), dtype('bool'))"),
        ("sum(f, keepdims=np.True_), sum(f, where=np.False_)", "(array([14.], dtype=float32), array(0., dtype=float32))"),
        ("pow(2, 10)", "1024"),
        ("(1+2j).real, (1+2j).imag, (1+2j).conjugate()", "(1.0, 2.0, (1-2j))"),
        ("pi, e, inf, -inf, nan", "(3.141592653589793, 2.718281828459045, inf, -inf, nan)"),
        ("np.pi == pi, np.euler_gamma", "(True, 0.5772156649015329)"),
    ]);
}

#[test]
fn comparisons_and_truth() {
    check(&[
        ("1 < 2 < 3, 1 < 2 > 3", "(True, False)"),
        ("1 == 1.0, 1 != 1j, 2**53 + 1 == 2.0**53", "(True, True, False)"),
        ("nan == nan, nan != nan", "(False, True)"),
        ("not 0, not 'x', not ()", "(True, False, True)"),
        ("1 and 0, 0 or 5, None or 'x'", "(0, 5, 'x')"),
        ("0 and 1 / 0, 1 or 1 / 0", "(0, 1)"),
        ("3 if 2 > 1 else 1 / 0", "3"),
        ("(1, 2) == (1, 2.0), (1,) == [1], 'a' != 'b'", "(True, False, True)"),
        ("float32 == 'float32', 'f4' == np.float32, float32 == float64", "(True, True, False)"),
        ("None == None, None == 0", "(True, False)"),
    ]);
}

#[test]
fn sequences_and_strings() {
    check(&[
        ("(1, 2) + (3,)", "(1, 2, 3)"),
        ("[1, 2] + [3]", "[1, 2, 3]"),
        ("(1,) * 3, 2 * [0, 1], (1,) * -1", "((1, 1, 1), [0, 1, 0, 1], ())"),
        ("(1, 2, 3)[1], (1, 2, 3)[-1], [1, 2, 3][::-1], (1, 2, 3)[1:]", "(2, 3, [3, 2, 1], (2, 3))"),
        ("len((1, 2)), len('abc'), len([])", "(2, 3, 0)"),
        ("'it\\'s', 'a\\n'", "(\"it's\", 'a\\n')"),
        ("float32, np.dtype('i8'), dtype('c16').name, np.int8", "(dtype('float32'), dtype('int64'), 'complex128', dtype('int8'))"),
        ("float32.itemsize, np.dtype('u2').kind", "(4, 'u')"),
        ("a.dtype == float64 and a.shape == (3, 4)", "True"),
    ]);
}

#[test]
fn print_calls_the_function_of_the_session() {
    let (send, receive) = std::sync::mpsc::channel();
    let mut session = crate::session();
    session.on_print(move |line| send.send(line.to_string()).unwrap());
    assert!(matches!(session.run("print('n =', len(a), float32); print(a.shape)"), Ok(Some(cuprum_core::ops::python_value::Value::None))));
    drop(session);
    assert_eq!(receive.iter().collect::<Vec<_>>(), ["n = 3 float32", "(3, 4)"]);
}
