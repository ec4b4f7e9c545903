//! Random and extreme source text: the parser does not panic or overflow the stack, and errors have spans within the source.

use cuprum_eval::ast::{Expr, Script, StmtKind};
use cuprum_eval::{MAX_HEIGHT, MAX_NESTING, ParseError, parse, parse_expression};

/// Stack size in bytes for parsing, printing and dropping: half of Rust's default for threads, and the default of `main` on Windows.
const STACK: usize = 1024 * 1024;

fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(test).unwrap().join().unwrap();
}

fn check(source: &str) -> Result<Script, ParseError> {
    let result = parse(source);
    match &result {
        Ok(script) => {
            for stmt in &script.statements {
                assert!(source.get(stmt.span.start..stmt.span.end).is_some(), "{source:?}");
                if let StmtKind::Expr(value) | StmtKind::Assign { value, .. } = &stmt.kind {
                    check_spans(value, source);
                }
            }
            script.free_names();
            script.assigned_names();
            let _ = script.to_string();
        }
        Err(error) => {
            let span = error.span();
            assert!(source.get(span.start..span.end).is_some(), "{span:?} in {source:?}");
            assert!(!error.message().is_empty());
            for line in error.render().lines() {
                assert!(line.chars().count() < 300 && !line.chars().any(char::is_control), "{source:?}: {line:?}");
            }
        }
    }
    result
}

/// Checks that the span of every node is within the source and within its parent's span.
fn check_spans(expr: &Expr, source: &str) {
    assert!(source.get(expr.span.start..expr.span.end).is_some_and(|text| !text.is_empty()), "{expr} in {source:?}");
    expr.kind.for_each_child(&mut |child| {
        assert!(expr.span.start <= child.span.start && child.span.end <= expr.span.end, "{child} in {source:?}");
        check_spans(child, source);
    });
}

#[test]
fn nesting_is_limited() {
    on_small_stack(|| {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("a[", "]"),
            ("f(", ")"),
            ("f(x=", ")"),
            ("-", ""),
            ("~", ""),
            ("not ", ""),
            ("2**", ""),
            ("a if b else ", ""),
            ("a if (", ") else b"),
            ("(a,", ")"),
            ("a[:", "]"),
            // One bracket with an operator of every precedence level.
            ("a or b and not c < d | e ^ f & g << h + i * -j ** (", ")"),
        ] {
            for depth in [1, 5, MAX_NESTING, 10_000] {
                let source = open.repeat(depth) + "x" + &close.repeat(depth);
                let result = check(&source);
                match depth {
                    1 | 5 => assert!(result.is_ok(), "{source}"),
                    10_000 => assert!(result.unwrap_err().message().contains("nested more than 100"), "{open}"),
                    _ => {}
                }
                let _ = check(&open.repeat(depth));
            }
        }
    });
}

#[test]
fn nesting_below_the_limit_is_accepted() {
    let source = "(".repeat(MAX_NESTING - 1) + "x" + &")".repeat(MAX_NESTING - 1);
    assert_eq!(parse_expression(&source).unwrap().to_string(), "x");
}

#[test]
fn tree_height_is_limited() {
    on_small_stack(|| {
        for step in [" + a", "*a", ".T", "[0]", "()", " - (a)"] {
            let most = parse_expression(&("a".to_owned() + &step.repeat(MAX_HEIGHT - 1))).unwrap();
            assert_eq!(most.height(), MAX_HEIGHT);
            let _ = most.to_string();
            let error = check(&("a".to_owned() + &step.repeat(10_000))).unwrap_err();
            assert!(error.message().contains("250 operations deep"), "{error}");
        }
        for step in [" and a", " < a", ", a", "; a", "\na", " or a"] {
            assert!(check(&("a".to_owned() + &step.repeat(20_000))).is_ok(), "{step:?}");
        }
        // The heights of nested operator chains add up.
        let mut source = "a".to_owned();
        for _ in 0..50 {
            source = format!("({source}{})", " + a".repeat(100));
        }
        assert!(check(&source).is_err());
    });
}

#[test]
fn long_lines_are_truncated_around_the_error() {
    for (before, after) in [(0, 5000), (5000, 0), (5000, 5000), (90, 20), (20, 90)] {
        let source = format!("{}$ b{}", "abc,".repeat(before / 4), " + c".repeat(after / 4));
        let error = check(&source).unwrap_err();
        let rendered = error.render();
        let lines: Vec<&str> = rendered.lines().collect();
        let column = lines[4].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[3].chars().nth(column), Some('$'), "{rendered}");
        assert!(lines[3].chars().count() < 120, "{rendered}");
    }
}

const SEEDS: [&str; 14] = [
    "sqrt(sum(a**2, axis=-1)); b = np.linalg.norm(x[1:-1:2, None, ...])",
    "x, y = f(a)[::2], -b.T @ c # comment\nx += 1_000; y[0] //= 0xff",
    "where((a > 0) & (b <= 1.5e-3), 'float32', [[1, 2.], [3j, .5]])",
    "import numpy as np\nfrom numpy import (sin, cos)\nnp.exp(-x**2 / 2)",
    "not a and b or c if d < e != f else g(h=True, i=None)",
    "a[(1, 2)] = \\\n (3,\n 4)\n\"s\\x41\" r'\\n'",
    "lambda x: [y for y in x if (z := y) is not None]",
    "f'{x}' b'x' \"\"\"doc\"\"\" 1__0 0b2 1e 2x a && b <> c ! ? $",
    "“π” × 2² − 3 ≤ α\u{a0}\u{200b}\u{feff}…",
    "def f(*a, **k):\n    return {a: 1}\nfor x in y: pass",
    "0o17 << 2 >> 1 ^ 3 | ~4 % 5",
    "\u{1b}[31m\t日本語 = 'x\u{0}\u{202e}'",
    ">>> a == b === c\n... d",
    "",
];

const PIECES: [&str; 46] = [
    "(", ")", "[", "]", "{", "}", "'", "\"", "\\", "\n", "\r\n", ";", ",", ":", ".", "..", "...", "=", "==", "+=", "**", "*", "-", "not ",
    " in ", " if ", " else ", " and ", "np.", "1", "1.", "1e", "0x", "_", "j", "a", "é", "日", "𝛑", "\0", " ", "#", "import ", "from ",
    "lambda ", "<",
];

/// A random number generator (xorshift64*) with a fixed seed, so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

fn mutate(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(6) {
        let (from, len) = (random.below(chars.len() + 1), random.below(8));
        let to = (from + len).min(chars.len());
        match random.below(6) {
            0 => drop(chars.drain(from..to)),
            1 => {
                let copy: Vec<char> = chars[from..to].to_vec();
                let at = random.below(chars.len() + 1);
                chars.splice(at..at, copy);
            }
            2 => chars[from..to].reverse(),
            3 => chars.truncate(from),
            4 => {
                let seed = SEEDS[random.below(SEEDS.len())];
                let tail = seed.chars().skip(random.below(40)).take(len * 2);
                chars.splice(from..from, tail.collect::<Vec<_>>());
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                chars.splice(from..to.min(from + 1), piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn mutated_text_never_panics() {
    on_small_stack(|| {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut parsed = 0;
        for round in 0..40_000 {
            let source = mutate(SEEDS[round % SEEDS.len()], &mut random);
            parsed += usize::from(check(&source).is_ok());
            let _ = parse_expression(&source);
        }
        // Enough mutated sources must be valid, so that the parser is tested too.
        assert!(parsed > 1000, "{parsed}");
    });
}

#[test]
fn random_pieces_never_panic() {
    let mut random = Random(1);
    for _ in 0..40_000 {
        let count = random.below(12);
        let source: String = (0..count).map(|_| PIECES[random.below(PIECES.len())]).collect();
        let _ = check(&source);
    }
}

#[test]
fn spans_outside_the_source_are_rendered() {
    use cuprum_eval::{EvalError, EvalErrorKind, Span};
    let source = "é = 日\r\n本";
    for start in 0..source.len() + 3 {
        for end in 0..source.len() + 3 {
            let error = EvalError::new(EvalErrorKind::Value, source, Span { start, end }, "wrong");
            assert!(error.render().contains('^'));
        }
    }
}
