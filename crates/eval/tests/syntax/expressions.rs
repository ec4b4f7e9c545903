//! Syntax trees of expressions, compared as s-expressions.

use cuprum_eval::{Span, ast, parse_expression};

/// Compares the tree of each source with its s-expression and reports all differences.
fn check(table: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (source, expected) in table {
        let found = match parse_expression(source) {
            Ok(expr) => expr.to_string(),
            Err(error) => error.render(),
        };
        if found != *expected {
            wrong += &format!("{source}\n  expected {expected}\n  found    {found}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn literals() {
    check(&[
        ("0", "0"),
        ("00_0", "0"),
        ("1_000", "1000"),
        ("0x_fF", "255"),
        ("0XFF", "255"),
        ("0o17", "15"),
        ("0b1_01", "5"),
        ("18446744073709551615", "18446744073709551615"),
        ("170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
        ("1.5", "1.5"),
        ("1_0.2_5", "10.25"),
        ("5.", "5.0"),
        (".5", "0.5"),
        ("1e-3", "0.001"),
        ("1E+3", "1000.0"),
        ("1.e3", "1000.0"),
        (".5e1_0", "5000000000.0"),
        ("1e999", "inf"),
        ("2j", "2.0j"),
        ("1.5e1J", "15.0j"),
        ("007j", "7.0j"),
        ("True", "True"),
        ("False", "False"),
        ("None", "None"),
        ("...", "..."),
        ("'float32'", "\"float32\""),
        (r#""it's""#, "\"it's\""),
        (r"'a\tb\\\'\x41\u00e9\q'", r#""a\tb\\'Aé\\q""#),
        (r"r'a\tb'", r#""a\\tb""#),
        ("'ij,' 'jk' \"->ik\"", "\"ij,jk->ik\""),
        ("''", "\"\""),
    ]);
}

#[test]
fn tuples_and_lists() {
    check(&[
        ("()", "(tuple)"),
        ("(1)", "1"),
        ("(1,)", "(tuple 1)"),
        ("(1, 2)", "(tuple 1 2)"),
        ("1, 2", "(tuple 1 2)"),
        ("1,", "(tuple 1)"),
        ("((), ((1,),))", "(tuple (tuple) (tuple (tuple 1)))"),
        ("[]", "(list)"),
        ("[[1, 2], [3., 4j],]", "(list (list 1 2) (list 3.0 4.0j))"),
        ("[1,\n 2, # two\n 3\n]", "(list 1 2 3)"),
    ]);
}

#[test]
fn power_and_signs() {
    check(&[
        ("-2**2", "(- (** 2 2))"),
        ("2**-1", "(** 2 (- 1))"),
        ("2**-1**2", "(** 2 (- (** 1 2)))"),
        ("a**b**c", "(** a (** b c))"),
        ("(a**b)**c", "(** (** a b) c)"),
        ("-a*b", "(* (- a) b)"),
        ("a*-b", "(* a (- b))"),
        ("--a", "(- (- a))"),
        ("+~-a", "(+ (~ (- a)))"),
        ("~a**2", "(~ (** a 2))"),
        ("-a.T", "(- (. a T))"),
        ("-a[0]**2", "(- (** (index a 0) 2))"),
        ("a++b", "(+ a (+ b))"),
    ]);
}

#[test]
fn precedence_of_adjacent_levels() {
    check(&[
        ("a or b and c", "(or a (and b c))"),
        ("a and b or c", "(or (and a b) c)"),
        ("a and not b", "(and a (not b))"),
        ("not a and b", "(and (not a) b)"),
        ("not a == b", "(not (compare a == b))"),
        ("not not a", "(not (not a))"),
        ("a < b | c", "(compare a < (| b c))"),
        ("a | b ^ c", "(| a (^ b c))"),
        ("a ^ b & c", "(^ a (& b c))"),
        ("a & b << c", "(& a (<< b c))"),
        ("a << b + c", "(<< a (+ b c))"),
        ("a + b * c", "(+ a (* b c))"),
        ("a * b + c", "(+ (* a b) c)"),
        ("a * -b ** c", "(* a (- (** b c)))"),
        ("a @ b.T", "(@ a (. b T))"),
    ]);
}

#[test]
fn left_associative_operators() {
    check(&[
        ("a - b + c", "(+ (- a b) c)"),
        ("a - (b + c)", "(- a (+ b c))"),
        ("a / b * c // d % e @ f", "(@ (% (// (* (/ a b) c) d) e) f)"),
        ("a << b >> c", "(>> (<< a b) c)"),
        ("a & b & c", "(& (& a b) c)"),
        ("a ^ b ^ c", "(^ (^ a b) c)"),
        ("a | b | c", "(| (| a b) c)"),
        ("a and b and c", "(and a b c)"),
        ("a or (b or c)", "(or a (or b c))"),
    ]);
}

#[test]
fn comparisons() {
    check(&[
        ("a < b", "(compare a < b)"),
        ("a <= b >= c", "(compare a <= b >= c)"),
        ("a < b == c != d > e", "(compare a < b == c != d > e)"),
        ("(a < b) < c", "(compare (compare a < b) < c)"),
        ("a < (b < c)", "(compare a < (compare b < c))"),
        ("a > 0 & b < 1", "(compare a > (& 0 b) < 1)"),
        ("(a > 0) & (b < 1)", "(& (compare a > 0) (compare b < 1))"),
    ]);
}

#[test]
fn conditionals() {
    check(&[
        ("x if c else y", "(if c x y)"),
        ("x if c else y if d else z", "(if c x (if d y z))"),
        ("(x if c else y) if d else z", "(if d (if c x y) z)"),
        ("a + 1 if b or c else -d", "(if (or b c) (+ a 1) (- d))"),
        ("f(x if c else y)", "(call f (if c x y))"),
    ]);
}

#[test]
fn names_calls_and_attributes() {
    check(&[
        ("αβ_1", "αβ_1"),
        ("sum(a)", "(call sum a)"),
        ("f()", "(call f)"),
        ("f(a, b,)", "(call f a b)"),
        ("sum(a, axis=-1)", "(call sum a :axis (- 1))"),
        ("f(axis=(0, 1), keepdims=True)", "(call f :axis (tuple 0 1) :keepdims True)"),
        ("f(a == b)", "(call f (compare a == b))"),
        ("f(\n  a,\n  b  # second\n)", "(call f a b)"),
        ("a.sum(0).T", "(. (call (. a sum) 0) T)"),
        ("a.shape[0]", "(index (. a shape) 0)"),
        ("f(x)(y)[z]", "(index (call (call f x) y) z)"),
        ("'a'.upper()", "(call (. \"a\" upper))"),
        ("1 .real", "(. 1 real)"),
        ("(1).real", "(. 1 real)"),
        ("exp(-x**2 / 2)", "(call exp (/ (- (** x 2)) 2))"),
    ]);
}

#[test]
fn prefixes() {
    check(&[
        ("np.sum(a)", "(call np:sum a)"),
        ("numpy.pi", "numpy:pi"),
        ("cp.float32", "cp:float32"),
        ("cupy.e + xp.e", "(+ cupy:e xp:e)"),
        ("np.linalg.norm(a)", "(call np:linalg.norm a)"),
        ("np.random.random((2, 3))", "(call np:random.random (tuple 2 3))"),
        ("np.fft.fft(a).real", "(. (call np:fft.fft a) real)"),
        ("np.random", "np:random"),
        ("np.pi.real", "(. np:pi real)"),
        ("np", "np"),
        ("xp + 1", "(+ xp 1)"),
        ("linalg.norm(a)", "(call (. linalg norm) a)"),
        ("a.np.b", "(. (. a np) b)"),
    ]);
}

#[test]
fn indices() {
    check(&[
        ("a[0]", "(index a 0)"),
        ("a[-1]", "(index a (- 1))"),
        ("a[i, j]", "(index a i j)"),
        ("a[(i, j)]", "(index a i j)"),
        ("a[(i, j), k]", "(index a (tuple i j) k)"),
        ("a[i,]", "(index a i)"),
        ("a[()]", "(index a)"),
        ("a[:]", "(index a (slice _ _ _))"),
        ("a[::]", "(index a (slice _ _ _))"),
        ("a[1:]", "(index a (slice 1 _ _))"),
        ("a[:n-1]", "(index a (slice _ (- n 1) _))"),
        ("a[::-1]", "(index a (slice _ _ (- 1)))"),
        ("a[1:2:3, :]", "(index a (slice 1 2 3) (slice _ _ _))"),
        ("a[..., None]", "(index a ... newaxis)"),
        ("a[np.newaxis, :, xp.newaxis]", "(index a newaxis (slice _ _ _) newaxis)"),
        ("a[(None, ...)]", "(index a newaxis ...)"),
        ("a[b > 0]", "(index a (compare b > 0))"),
        ("a[[0, 2], idx]", "(index a (list 0 2) idx)"),
        ("a[0][1:]", "(index (index a 0) (slice 1 _ _))"),
        ("a[x if c else y:]", "(index a (slice (if c x y) _ _))"),
        ("[1, 2][0]", "(index (list 1 2) 0)"),
        ("a[\n 1,\n 2]", "(index a 1 2)"),
    ]);
}

#[test]
fn indices_record_whether_they_are_tuples() {
    for (source, tuple) in [("a[i]", false), ("a[i,]", true), ("a[i, j]", true), ("a[()]", true), ("a[(i,)]", true)] {
        let expr = parse_expression(source).unwrap();
        let ast::ExprKind::Index { index, .. } = &expr.kind else { panic!("{source} is an index") };
        assert_eq!(index.tuple, tuple, "{source}");
    }
}

#[test]
fn spans_cover_the_source_of_each_node() {
    let source = " f( (a + b) * -c , axis = 1 ) [ 0 ]";
    let expr = parse_expression(source).unwrap();
    assert_eq!(expr.span.text(source), "f( (a + b) * -c , axis = 1 ) [ 0 ]");
    let ast::ExprKind::Index { base, index } = expr.kind else { panic!("an index") };
    assert_eq!(index.span.text(source), "[ 0 ]");
    assert_eq!(index.items[0].span.text(source), "0");
    let ast::ExprKind::Call { args, keywords, .. } = base.kind else { panic!("a call") };
    assert_eq!(keywords[0].name_span.text(source), "axis");
    assert_eq!(args[0].span.text(source), "(a + b) * -c");
    let ast::ExprKind::Binary { op_span, left, right, .. } = &args[0].kind else { panic!("a product") };
    assert_eq!(op_span.text(source), "*");
    assert_eq!((left.span.text(source), left.is_parenthesized()), ("(a + b)", true));
    assert_eq!((right.span.text(source), right.is_parenthesized()), ("-c", false));
}

#[test]
fn dotted_names() {
    for (source, name) in
        [("sum", Some("sum")), ("np.linalg.norm", Some("linalg.norm")), ("linalg.norm", Some("linalg.norm")), ("a[0].T", None)]
    {
        assert_eq!(parse_expression(source).unwrap().dotted_name().as_deref(), name, "{source}");
    }
}

#[test]
fn line_ends_around_an_expression_are_ignored() {
    let expr = parse_expression("\n# a comment\n  a + \\\r\n b  # another\n\n").unwrap();
    assert_eq!(expr.to_string(), "(+ a b)");
    assert_eq!(expr.span, Span::new(15, 24));
}
