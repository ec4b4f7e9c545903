//! Random programs: each gives a value, or an error whose span is within the source, and none panics.

use cuprum_eval::functions;

/// A linear congruential generator (Knuth's MMIX constants), so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

#[rustfmt::skip]
const ATOMS: &[&str] = &[
    "a", "i", "f", "b", "z", "a", "f", "0", "1", "2", "-1", "3", "2.5", "-0.0", "nan", "inf", "1j", "10**30", "True", "None", "'float32'", "'ij,jk->ik'",
    "'x'", "()", "[]", "[1, 2]", "(1, 0)", "[[1.5, 2], [3, 4]]", "float32", "int", "complex", "a.shape", "a[0, 0]", "f[:0]", "i[::-1]", "np", "sum", "e",
];
const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", "and", "or", "< 2 <"];
const ATTRIBUTES: &[&str] = &[".T", ".mT", ".real", ".shape", ".strides", ".dtype", ".name", ".sum()", ".item()", ".flatten()", ".copy()"];
const METHODS: &[&str] = &[".sum", ".reshape", ".transpose", ".astype", ".take", ".clip", ".mean", ".squeeze", ".item", ".dot", ".var"];
const KEYWORDS: &[&str] = &["axis=0", "axis=-2", "axis=(0, 1)", "keepdims=True", "dtype=float32", "ddof=9", "axis=None", "seed=1"];

fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.pick(ATOMS).into();
    }
    let inner = |random: &mut Random| expression(random, depth - 1);
    match random.below(9) {
        0 | 1 => format!("({} {} {})", inner(random), random.pick(OPERATORS), inner(random)),
        2 | 3 => {
            let all = functions();
            let name = all[random.below(all.len())].name;
            format!("{name}({})", arguments(random, depth))
        }
        4 => format!("({}){}({})", inner(random), random.pick(METHODS), arguments(random, depth)),
        5 => format!("({}){}", inner(random), random.pick(ATTRIBUTES)),
        6 => {
            let parts: Vec<String> = (0..1 + random.below(3)).map(|_| part(random, depth)).collect();
            format!("({})[{}]", inner(random), parts.join(", "))
        }
        7 => format!("({}{})", random.pick(&["-", "+", "~", "not "]), inner(random)),
        _ => format!("({} if {} else {})", inner(random), inner(random), inner(random)),
    }
}

fn arguments(random: &mut Random, depth: usize) -> String {
    let mut all: Vec<String> = (0..random.below(4)).map(|_| expression(random, depth - 1)).collect();
    if random.below(3) == 0 {
        all.push(random.pick(KEYWORDS).into());
    }
    all.join(", ")
}

fn part(random: &mut Random, depth: usize) -> String {
    match random.below(5) {
        0 => "...".into(),
        1 => "None".into(),
        2 => format!("{}:{}:{}", random.pick(ATOMS), random.pick(&["", "2", "-1"]), random.pick(&["", "-1", "2"])),
        _ => expression(random, depth - 1),
    }
}

#[test]
fn random_programs_do_not_panic() {
    let mut random = Random(20260101);
    let (mut values, mut errors) = (0, 0);
    for _ in 0..20_000 {
        let depth = random.below(4);
        let source = match random.below(9) {
            0 => format!("x = {}; x {}= {}", expression(&mut random, depth), random.pick(&OPERATORS[..8]), expression(&mut random, depth)),
            2 => {
                let index = part(&mut random, depth.max(1));
                format!("a[{index}] {}= {}", random.pick(&["", "", "+", "*", "//"]), expression(&mut random, depth))
            }
            1 => format!("x, y = {}", expression(&mut random, depth)),
            _ => expression(&mut random, depth),
        };
        let outcome = std::panic::catch_unwind(|| match crate::value(&source) {
            Ok(value) => cuprum_eval::repr(&value).is_ok(),
            Err(error) => {
                let span = error.span();
                assert!(source.get(span.start..span.end).is_some(), "span outside the source");
                assert!(!error.message().is_empty() && !error.render().is_empty());
                false
            }
        });
        match outcome {
            Ok(true) => values += 1,
            Ok(false) => errors += 1,
            Err(_) => panic!("{source}"),
        }
    }
    assert!(values > 2000 && errors > 2000, "{values} values, {errors} errors: the generator covers too little");
}
