//! Syntax errors: their position, message, help and rendering.

use cuprum_eval::{EvalError, EvalErrorKind, Span, parse, parse_expression};

/// An expected error: (source, (line, column), message, help).
type Row = (&'static str, (usize, usize), &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("a +", (1, 4), "expected an expression after `+`, found the end of the text", ""),
    ("f(a, b", (1, 2), "`(` was never closed", ""),
    ("x = (1 + 2\ny = 3", (1, 5), "`(` was never closed", ""),
    ("x = 1\ry = 2\r\nz &&\r", (3, 3), "`&&` is not an operator", "use `&` for arrays, `and` for single values"),
    ("x = 'a\rb'", (1, 5), "this string is never closed", "add `'` before the end of the line"),
    ("f(a, b]", (1, 7), "`]` does not close `(`", ""),
    ("a)", (1, 2), "`)` closes nothing", ""),
    ("(a = b)", (1, 4), "`=` assigns, and cannot be used inside an expression", "to compare, write `==`"),
    ("f(a + b = 3)", (1, 9), "`=` assigns, and cannot be used inside an expression", "to compare, write `==`"),
    ("x = a if b = c else d", (1, 12), "`=` assigns, and cannot be used inside an expression", "to compare, write `==`"),
    ("a && b", (1, 3), "`&&` is not an operator", "use `&` for arrays, `and` for single values"),
    ("a <> b", (1, 3), "`<>` is not an operator", "use `!=`"),
    ("x^0.5", (1, 2), "`^` is the exclusive or of integers and cannot take this operand", "a power is written `**`"),
    ("“abc”", (1, 1), "`“` (U+201C) is a typographic quote", "use `\"`"),
    ("'abc", (1, 1), "this string is never closed", "add `'` before the end of the line"),
    ("f'{x}'", (1, 1), "f-strings are not supported", "write a plain string"),
    ("lambda x: x", (1, 1), "`lambda` is not supported", "write the expression itself"),
    ("f(lambda x: x)", (1, 3), "`lambda` is not supported", "write the expression itself"),
    ("[x for x in y]", (1, 4), "comprehensions are not supported", "apply the operation to the whole array"),
    ("(y := 3)", (1, 4), "`:=` is not supported", "assign in a statement of its own: `name = ...`"),
    ("f(*a)", (1, 3), "unpacking with `*` is not supported", "write the arguments out"),
    ("f(**k)", (1, 3), "unpacking with `**` is not supported", "write the arguments out"),
    ("*a, b = x", (1, 1), "unpacking with `*` is not supported", "name each part, or slice the value"),
    ("def f(x):", (1, 1), "`def` is not supported", "a script consists of expressions and assignments"),
    ("for i in x: y", (1, 1), "`for` loops are not supported", "apply the operation to the whole array"),
    ("if a: b", (1, 1), "`if` statements are not supported", "write `x if test else y`, or `where(test, x, y)` for arrays"),
    ("x: int = 3", (1, 2), "annotations and blocks are not supported", "write `name = value`"),
    ("if x", (1, 1), "`if` statements are not supported", "write `x if test else y`, or `where(test, x, y)` for arrays"),
    ("2x", (1, 1), "`2x` is not a number", "write `2 * x` to multiply, or put a space between"),
    ("2(x)", (1, 1), "a number cannot be called", "to multiply, write `*` between"),
    ("a b", (1, 3), "expected an operator or the end of the statement, found `b`", "an operator or a `,` may be missing before it"),
    ("print x", (1, 7), "expected an operator or the end of the statement, found `x`", "write `print(...)`, or only the expression"),
    ("a $ b", (1, 3), "unexpected character `$`", ""),
    ("a − b", (1, 3), "`−` (U+2212) is a typographic minus sign", "use `-`"),
    ("x²", (1, 2), "`²` (U+00B2) is a superscript", "use `**2`"),
    ("007", (1, 1), "an integer cannot start with 0", "write `7`, or `0o7` if octal was meant"),
    ("1__0", (1, 1), "an underscore in a number must be between two digits", ""),
    ("0xfg", (1, 1), "`g` is not a hexadecimal digit", ""),
    ("1e", (1, 1), "the exponent of `1e` has no digits", ""),
    ("0b12", (1, 1), "`2` is not a binary digit", ""),
    ("99999999999999999999999999999999999999999", (1, 1), "this integer is too large", "integers go up to 2**127 - 1; write it as a float, such as `1e40`"),
    ("{1: 2}", (1, 1), "dictionaries and sets are not supported", "use a list `[...]` or a tuple `(...)`"),
    ("a[]", (1, 2), "the index is empty", "write `[...]` or `[:]` for all elements"),
    ("a[1", (1, 2), "`[` was never closed", ""),
    ("f(a=1, b)", (1, 8), "a positional argument cannot follow a keyword argument", ""),
    ("f(a=1, a=2)", (1, 8), "`a` is given twice", ""),
    ("np.sum = 3", (1, 1), "cannot assign to a name of the library, `np.sum`", "names with a prefix belong to the library; assign to a name without one"),
    ("a.T = 3", (1, 1), "cannot assign to an attribute, `a.T`", "attributes of arrays are read-only; assign to a name"),
    ("f(x) = 3", (1, 1), "cannot assign to a call, `f(x)`", "to compare, write `==`"),
    ("1 = x", (1, 1), "cannot assign to a number, `1`", "to compare, write `==`"),
    ("True = 3", (1, 1), "cannot assign to `True`", "to compare, write `==`"),
    ("a + b += 3", (1, 1), "cannot assign to an operation, `a + b`", ""),
    ("a, b += 1", (1, 1), "a tuple cannot be updated with `+=`", "update one name at a time"),
    ("a is None", (1, 3), "`is` is not supported", "compare values with `==`"),
    ("a in b", (1, 3), "`in` is not supported", "write `any(b == a)`"),
    ("a not in b", (1, 3), "`not in` is not supported", "write `all(b != a)`"),
    ("not", (1, 4), "expected an expression after `not`, found the end of the text", ""),
    ("a ==", (1, 5), "expected an expression after `==`, found the end of the text", ""),
    ("a === b", (1, 3), "`===` is not an operator", "use `==`"),
    ("a ** not b", (1, 6), "`not` binds less tightly than the operator before it", "put it in parentheses: `(not ...)`"),
    (">>> a", (1, 1), "`>>>` is the prompt of a Python session", "leave the prompt out"),
    ("import scipy", (1, 8), "`scipy` cannot be imported", "only numpy, cupy, cuprum, jax.numpy, array_api_strict can be imported, and imports are optional"),
    ("from numpy.linalg import norm", (1, 6), "`numpy.linalg` cannot be imported", "write `np.linalg.` before the names"),
    ("import numpy.linalg", (1, 8), "`numpy.linalg` cannot be imported", "write `np.linalg.` before the names"),
    (";", (1, 1), "there is no statement before this `;`", ""),
    ("a;;b", (1, 3), "there is no statement before this `;`", ""),
    ("x = ", (1, 4), "expected an expression after `=`, found the end of the text", ""),
    ("a.", (1, 3), "expected an attribute name, found the end of the text", ""),
    ("a.if", (1, 3), "expected an attribute name, but `if` is a keyword of Python", ""),
    ("f(if=3)", (1, 3), "`if` is a keyword of Python, and cannot be given a value", ""),
    ("a..b", (1, 3), "expected an attribute name, found `.`", ""),
    ("a ! b", (1, 3), "unexpected character `!`", "use `~` for arrays, `not` for single values, `!=` to compare"),
    ("x ? y : z", (1, 3), "unexpected character `?`", "write `x if test else y`, or `where(test, x, y)` for arrays"),
    ("a \\ b", (1, 3), "unexpected `\\`", "a backslash continues a line, and must be its last character"),
    ("\"a\\xg\"", (1, 3), "`\\x` must be followed by the 2 hexadecimal digits of a character", ""),
    ("\"\"\"abc\"\"\"", (1, 1), "triple-quoted strings are not supported", "use one quote on each side"),
    ("(a,\n b] ", (2, 3), "`]` does not close `(`", ""),
    ("yield", (1, 1), "`yield` is not supported", "a script consists of expressions and assignments"),
    ("a[1:2:3:4]", (1, 8), "a slice has at most three parts", "they are `start:stop:step`"),
    ("(a b)", (1, 4), "expected `,` or `)`, found `b`", ""),
    ("x = [1, 2 3]", (1, 11), "expected `,` or `]`, found `3`", ""),
    ("return x", (1, 1), "`return` is not supported", "a script consists of expressions and assignments"),
    ("3.5f", (1, 1), "`3.5f` is not a number", "write `3.5`; its dtype is that of the other operand"),
    ("a++", (1, 4), "expected an expression after `+`, found the end of the text", ""),
    ("f(x=)", (1, 5), "expected an expression after `=`, found `)`", ""),
    ("f(,)", (1, 3), "expected an expression, found `,`", ""),
    ("x if y", (1, 7), "expected `else`, found the end of the text", ""),
    ("a == b\nc = (1,\n  2]", (3, 4), "`]` does not close `(`", ""),
    ("f(a, b\ny = 3", (1, 2), "`(` was never closed", ""),
    ("x = [1, 2\n\ny = x + $", (3, 1), "expected `,` or `]`, found `y`", ""),
    ("a || b", (1, 3), "`||` is not an operator", "use `|` for arrays, `or` for single values"),
    ("a =< b", (1, 3), "`=<` is not an operator", "use `<=`"),
    ("a => b", (1, 3), "`=>` is not an operator", "use `>=`"),
    ("a .* b", (1, 3), "`.*` is not an operator", "`*` already works element by element"),
    ("f(x) = y = 3", (1, 1), "cannot assign to a call, `f(x)`", "to compare, write `==`"),
    ("a = 1 = b", (1, 5), "cannot assign to a number, `1`", "to compare, write `==`"),
    ("async f", (1, 1), "`async` is not supported", "a script consists of expressions and assignments"),
    ("a if b else", (1, 12), "expected an expression after `else`, found the end of the text", ""),
    ("del x", (1, 1), "`del` is not supported", "a script consists of expressions and assignments"),
    ("while x: y", (1, 1), "`while` loops are not supported", "apply the operation to the whole array"),
    ("a[1:2:]x", (1, 8), "expected an operator or the end of the statement, found `x`", "an operator or a `,` may be missing before it"),
    ("a[,]", (1, 3), "expected an index, found `,`", ""),
    ("\"abc\ndef\"", (1, 1), "this string is never closed", "add `\"` before the end of the line"),
    ("rb'x'", (1, 1), "byte strings are not supported", "drop the `b`"),
    ("0x", (1, 1), "`0x` has no digits", ""),
    ("1_", (1, 1), "an underscore in a number must be between two digits", ""),
    ("5L", (1, 1), "`5L` is not a number", "write `5`; its dtype is that of the other operand"),
    ("2i", (1, 1), "`2i` is not a number", "the imaginary unit is `j`: `2j`"),
    ("import numpy.fft as fft", (1, 8), "`numpy.fft` cannot be imported", "write `np.fft.` before the names"),
    ("from numpy import sin as s", (1, 23), "renaming functions is not supported", "write `sin` where it is used"),
    ("from numpy sin", (1, 12), "expected `import`, found `sin`", ""),
    ("x = 'a", (1, 5), "this string is never closed", "add `'` before the end of the line"),
    ("a\\tb", (1, 2), "unexpected `\\`", "a backslash continues a line, and must be its last character"),
    ("日本 $", (1, 4), "unexpected character `$`", ""),
    ("x = {}", (1, 5), "dictionaries and sets are not supported", "use a list `[...]` or a tuple `(...)`"),
    ("1(2)", (1, 1), "a number cannot be called", "to multiply, write `*` between"),
    ("a @= ", (1, 5), "expected an expression after `@=`, found the end of the text", ""),
    ("f(a for a in b)", (1, 5), "comprehensions are not supported", "apply the operation to the whole array"),
    ("((a)", (1, 1), "`(` was never closed", ""),
    ("print \"x\"", (1, 7), "expected an operator or the end of the statement, found a string", "write `print(...)`, or only the expression"),
    ("i in x", (1, 3), "`in` is not supported", "write `any(b == a)`"),
    ("‘x’", (1, 1), "`‘` (U+2018) is a typographic quote", "use `'`"),
    ("1 + import", (1, 5), "`import` inside an expression is not supported", "give it a line of its own"),
];

#[test]
fn errors_have_position_message_and_help() {
    let mut wrong = String::new();
    for (source, place, message, help) in TABLE {
        let found = match parse(source) {
            Ok(script) => format!("no error: {script}"),
            Err(error) => {
                let at = error.position();
                let found_help = error.help().unwrap_or("");
                if ((at.line, at.column), error.message(), found_help) == (*place, *message, *help) {
                    continue;
                }
                error.render()
            }
        };
        wrong += &format!("{source}\n  expected {place:?} {message} ({help})\n  found {found}\n");
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn parse_expression_accepts_one_expression_only() {
    for (source, message) in [
        ("", "expected an expression, found the end of the text"),
        (" # nothing\n", "expected an expression, found the end of the text"),
        ("a; b", "only one expression is expected here"),
        ("a\nb", "expected an operator or the end of the statement, found `b`"),
        ("x = 1", "`=` assigns, and cannot be used inside an expression"),
        ("import numpy", "`import` inside an expression is not supported"),
    ] {
        assert_eq!(parse_expression(source).unwrap_err().message(), message, "{source:?}");
    }
}

#[test]
fn render_underlines_the_error() {
    let drawn = |source: &str| parse(source).unwrap_err().render();
    assert_eq!(
        drawn("a = 1\nb = f(a, 2]\n"),
        "error: `]` does not close `(`\n --> line 2, column 11\n  |\n\
         2 | b = f(a, 2]\n  |           ^\n  |      - `(` opened here"
    );
    assert_eq!(
        drawn("x = 1\n\n\n\n\n\n\n\n\nf(\n a,\n b]"),
        "error: `]` does not close `(`\n  --> line 12, column 3\n   |\n\
         12 |  b]\n   |   ^\n   |\n10 | f(\n   |  - `(` opened here"
    );
    // Tabs take four columns, wide characters two, and control characters are replaced.
    assert_eq!(
        drawn("\t日本 + \u{1b}"),
        "error: unexpected character (U+001B)\n --> line 1, column 7\n  |\n1 |     日本 + \u{fffd}\n  |            ^"
    );
}

#[test]
fn display_is_one_line() {
    let error = parse("a &&\nb").unwrap_err();
    let line = "line 1, column 3: `&&` is not an operator (use `&` for arrays, `and` for single values)";
    assert_eq!(error.to_string(), line);
    let error = EvalError::from(error);
    assert_eq!((error.kind(), error.to_string().as_str()), (EvalErrorKind::Syntax, line));
}

#[test]
fn errors_of_the_array_library_keep_their_cause() {
    let source = "a +\\\n b.sum(7)";
    let cause = std::io::Error::other("axis 7 is out of bounds");
    let error = EvalError::from_array_error(source, Span::new(12, 13), cause).with_help("b has 2 axes");
    assert_eq!(error.to_string(), "line 2, column 8: axis 7 is out of bounds (b has 2 axes)");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "axis 7 is out of bounds");
}
