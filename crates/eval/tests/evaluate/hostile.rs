//! Made-up programs: whatever is written, the answer is a value or an error that points into the text, never a panic.

use cuprum_eval::functions;

/// A generator of small numbers (Knuth's MMIX constants), so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
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

fn expression(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return dice.pick(ATOMS).into();
    }
    let inner = |dice: &mut Dice| expression(dice, depth - 1);
    match dice.roll(9) {
        0 | 1 => format!("({} {} {})", inner(dice), dice.pick(OPERATORS), inner(dice)),
        2 | 3 => {
            let all = functions();
            let name = all[dice.roll(all.len())].name;
            format!("{name}({})", arguments(dice, depth))
        }
        4 => format!("({}){}({})", inner(dice), dice.pick(METHODS), arguments(dice, depth)),
        5 => format!("({}){}", inner(dice), dice.pick(ATTRIBUTES)),
        6 => {
            let parts: Vec<String> = (0..1 + dice.roll(3)).map(|_| part(dice, depth)).collect();
            format!("({})[{}]", inner(dice), parts.join(", "))
        }
        7 => format!("({}{})", dice.pick(&["-", "+", "~", "not "]), inner(dice)),
        _ => format!("({} if {} else {})", inner(dice), inner(dice), inner(dice)),
    }
}

fn arguments(dice: &mut Dice, depth: usize) -> String {
    let mut all: Vec<String> = (0..dice.roll(4)).map(|_| expression(dice, depth - 1)).collect();
    if dice.roll(3) == 0 {
        all.push(dice.pick(KEYWORDS).into());
    }
    all.join(", ")
}

fn part(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(5) {
        0 => "...".into(),
        1 => "None".into(),
        2 => format!("{}:{}:{}", dice.pick(ATOMS), dice.pick(&["", "2", "-1"]), dice.pick(&["", "-1", "2"])),
        _ => expression(dice, depth - 1),
    }
}

#[test]
fn no_program_panics() {
    let mut dice = Dice(20260101);
    let (mut values, mut errors) = (0, 0);
    for _ in 0..20_000 {
        let depth = dice.roll(4);
        let source = match dice.roll(8) {
            0 => format!("x = {}; x {}= {}", expression(&mut dice, depth), dice.pick(&OPERATORS[..8]), expression(&mut dice, depth)),
            1 => format!("x, y = {}", expression(&mut dice, depth)),
            _ => expression(&mut dice, depth),
        };
        let outcome = std::panic::catch_unwind(|| match crate::value(&source) {
            Ok(value) => cuprum_eval::repr(&value).is_ok(),
            Err(error) => {
                let span = error.span();
                assert!(source.get(span.start..span.end).is_some(), "points outside");
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
    assert!(values > 2000 && errors > 2000, "{values} values, {errors} errors: the generator tests little");
}
