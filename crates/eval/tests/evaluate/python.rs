//! What needs no array: Python's numbers, tuples, lists, strings, truth. Values are CPython's.

use crate::check;

#[test]
fn numbers() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("-2**2", "-4"),
        ("7 // 2, -7 // 2, -7 % 3", "(3, -4, 2)"),
        ("1 / 4", "0.25"),
        ("2**-1", "0.5"),
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
        ("round(2.5), round(3.5), round(7)", "(2, 4, 7)"),
        ("min(3, 1, 2), max(3, 1.5)", "(1, 3)"),
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
fn prints_where_it_is_told() {
    let (send, receive) = std::sync::mpsc::channel();
    let mut session = crate::session();
    session.on_print(move |line| send.send(line.to_string()).unwrap());
    assert!(matches!(session.run("print('n =', len(a), float32); print(a.shape)"), Ok(Some(cuprum_core::ops::value::Value::None))));
    drop(session);
    assert_eq!(receive.iter().collect::<Vec<_>>(), ["n = 3 float32", "(3, 4)"]);
}
