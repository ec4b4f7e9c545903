//! Statements, separators, imports, and the names that a script reads and writes.

use cuprum_eval::parse;

fn check(table: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (source, expected) in table {
        let found = match parse(source) {
            Ok(script) => script.to_string(),
            Err(error) => error.render(),
        };
        if found != *expected {
            wrong += &format!("{source}\n  expected {expected}\n  found    {found}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn assignments() {
    check(&[
        ("x = 1", "(= x 1)"),
        ("x = y = f(z)", "(= x y (call f z))"),
        ("x = 1, 2", "(= x (tuple 1 2))"),
        ("a, b = f(x)", "(= (tuple a b) (call f x))"),
        ("(a, (b, c)) = x", "(= (tuple a (tuple b c)) x)"),
        ("[a, b] = x", "(= (tuple a b) x)"),
        ("a, = x", "(= (tuple a) x)"),
        ("(a) = x", "(= a x)"),
        ("() = x", "(= (tuple) x)"),
        ("a[...] = 0", "(= (index a ...) 0)"),
        ("a[1:, b > 0] = c", "(= (index a (slice 1 _ _) (compare b > 0)) c)"),
        ("a, b[0] = b[0], a", "(= (tuple a (index b 0)) (tuple (index b 0) a))"),
        ("x = a == b", "(= x (compare a == b))"),
        ("x=-1", "(= x (- 1))"),
    ]);
}

#[test]
fn augmented_assignments() {
    for op in ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"] {
        let script = parse(&format!("x {op}= y + 1; a[0]{op}=1")).unwrap();
        assert_eq!(script.to_string(), format!("({op}= x (+ y 1))\n({op}= (index a 0) 1)"));
    }
}

#[test]
fn separators() {
    check(&[
        ("", ""),
        ("\n\n", ""),
        ("# only a comment", ""),
        ("a; b", "a\nb"),
        ("a;\nb;", "a\nb"),
        ("a\n\n  # c\n\tb\r\nc", "a\nb\nc"),
        ("a\rb\r\n\rc\r", "a\nb\nc"),
        ("# c\ra # c\r\nb", "a\nb"),
        ("x = (1 +\r 2)\ry = 1 + \\\r 2; 'a\\\rb\\\r\nc'", "(= x (+ 1 2))\n(= y (+ 1 2))\n\"abc\""),
        ("x = (1 +\n 2)\ny = [x,\n\n x]", "(= x (+ 1 2))\n(= y (list x x))"),
        ("x = 1 + \\\n  2", "(= x (+ 1 2))"),
        ("'a # b; c'", "\"a # b; c\""),
        ("\u{feff}a", "a"),
    ]);
}

#[test]
fn imports() {
    check(&[
        ("import numpy as np\nnp.sin(x)", "(call np:sin x)"),
        ("import numpy", ""),
        ("import numpy as N, cupy; N.e + N", "(+ N:e N)"),
        ("import jax.numpy as jnp\njnp.linalg.norm(x)", "(call jnp:linalg.norm x)"),
        ("from numpy import sin, cos; sin(x)", "(call sin x)"),
        ("from numpy import (\n sin,\n cos,\n)\nsin(x)", "(call sin x)"),
        ("from cupy import *\ncos(x)", "(call cos x)"),
    ]);
}

#[test]
fn free_names_are_read_before_they_are_assigned() {
    let table: &[(&str, &[(&str, bool)])] = &[
        ("a + b * a", &[("a", false), ("b", false)]),
        ("x = a; x + y", &[("a", false), ("y", false)]),
        ("x = x + 1", &[("x", false)]),
        ("x += 1", &[("x", false)]),
        ("x[i] = 1", &[("x", false), ("i", false)]),
        ("p, q = f(x); p + q", &[("f", true), ("x", false)]),
        ("np.sin(x) + xp.e", &[("x", false)]),
        ("a.sum(axis=k)[i:j]", &[("a", false), ("k", false), ("i", false), ("j", false)]),
        ("x if c else [y, (z,)]", &[("c", false), ("x", false), ("y", false), ("z", false)]),
    ];
    for (source, expected) in table {
        let names = parse(source).unwrap().free_names();
        let names: Vec<_> = names.iter().map(|used| (used.name.as_str(), used.called)).collect();
        assert_eq!(names, *expected, "{source}");
    }
}

#[test]
fn assigned_names_are_unique_and_in_order() {
    let script = parse("a = b = 1; (c, [d, e[0]]) = a; a += 1; f[0][1] = 2; g").unwrap();
    assert_eq!(script.assigned_names(), ["a", "b", "c", "d", "e", "f"]);
}

#[test]
fn statements_have_spans() {
    let source = "a = 1;  b = (2 +\n 3)\n";
    let script = parse(source).unwrap();
    let texts: Vec<_> = script.statements.iter().map(|stmt| stmt.span.text(source)).collect();
    assert_eq!(texts, ["a = 1", "b = (2 +\n 3)"]);
    assert_eq!(script.position(script.statements[1].span).column, 9);
}
