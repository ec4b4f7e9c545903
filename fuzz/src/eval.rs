//! The fuzz target of the evaluator: scripts as text, or scripts of calls that the bytes choose.

use std::collections::HashSet;
use std::sync::LazyLock;

use cuprum::core::function::Function;
use cuprum::expressions::{self, Session};
use cuprum::{DType, NdArray, Value};

use super::bytes::Bytes;

/// Maximum number of elements of an array in a script. It bounds the time of a call.
const MAX_ELEMENTS: usize = 1 << 12;
/// Maximum depth of an expression in a described script.
const MAX_DEPTH: usize = 4;

/// Evaluates a script, then evaluates it again with every variable computed after its statement. Both runs fail, or have a value of the
/// same type and shape.
///
/// A first byte of zero begins the description of a script; other input is its text.
pub fn eval(data: &[u8]) {
    let described;
    let text = match data {
        [0, description @ ..] => {
            described = script(&mut Bytes::new(description));
            &described
        }
        _ => match std::str::from_utf8(data) {
            Ok(text) => text,
            Err(_) => return,
        },
    };
    let Ok(script) = expressions::parse(text) else { return };
    let deferred = outcome(new_session().run_script(&script));
    let mut session = new_session();
    let mut last = Ok(None);
    for statement in &script.statements {
        let single = expressions::ast::Script { source: script.source.clone(), statements: vec![statement.clone()] };
        last = session.run_script(&single);
        if last.is_err() {
            break;
        }
        for name in session.assigned() {
            session.get(name).into_iter().for_each(compute);
        }
    }
    let eager = outcome(last);
    // Memory that is in use differs, and random numbers advance a state.
    let is_out_of_memory = [&eager, &deferred].contains(&&Err(Failure::OutOfMemory));
    if eager != deferred && !is_out_of_memory && !uses_random_numbers(text) {
        panic!("deferred: {deferred:?}\neager: {eager:?}\n{text}");
    }
}

/// Returns a session with variables of several dtypes and layouts.
fn new_session() -> Session {
    let mut session = Session::new();
    session.on_print(|_| {});
    session.limit_elements(MAX_ELEMENTS);
    let matrix = NdArray::from_vec([3.0f32, 4.0, 6.0, 8.0, -1.0, 0.5], [2, 3]).unwrap();
    session.set("n", NdArray::from_slice(&[1i64, 2, 3]).unwrap());
    session.set("b", matrix.greater(3.5).unwrap());
    session.set("u", NdArray::from_slice(&[250u8, 0, 3]).unwrap());
    session.set("z", NdArray::from_vec([1.0f64, -2.0, 0.5, 4.0], [2, 2]).unwrap().astype(DType::C128).unwrap());
    session.set("h", matrix.astype(DType::F16).unwrap());
    session.set("s", NdArray::from_vec([f64::NAN, 2.5], [2]).unwrap().index(cuprum::s![1]).unwrap());
    session.set("e", cuprum::zeros([0, 3], DType::F64).unwrap());
    session.set("w", matrix.t().unwrap().index(cuprum::s![..;-1]).unwrap().broadcast_to([4, 3, 2]).unwrap());
    session.set("a", matrix);
    session
}

/// Evaluates a deferred array, or the first arrays of a tuple or list.
fn compute(value: &Value) {
    match value {
        Value::Array(array) => drop(array.eval()),
        Value::Tuple(items) | Value::List(items) => {
            let arrays = items.iter().take(8).filter_map(|item| if let Value::Array(array) = item { Some(array) } else { None });
            arrays.for_each(|array| drop(array.eval()));
        }
        _ => {}
    }
}

/// The type of a value and the shape of an array, or the kind of an error.
type Outcome = Result<String, Failure>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Failure {
    OutOfMemory,
    Other,
}

impl Failure {
    fn of(message: &str) -> Failure {
        if message.contains("memory") { Failure::OutOfMemory } else { Failure::Other }
    }
}

/// Returns the outcome of a run. Formats the value and the error.
fn outcome(result: Result<Option<Value>, expressions::EvalError>) -> Outcome {
    let value = match result {
        Ok(Some(value)) => value,
        Ok(None) => return Ok(String::new()),
        Err(error) => {
            assert!(!error.render().is_empty());
            return Err(Failure::of(&error.to_string()));
        }
    };
    let text = expressions::display(&value).and_then(|_| expressions::repr(&value));
    match (text, &value) {
        (Err(error), _) => Err(Failure::of(&error.to_string())),
        (Ok(_), Value::Array(array)) => Ok(format!("{} {:?}", array.dtype(), array.shape())),
        (Ok(_), value) => Ok(value.type_name().into()),
    }
}

/// Returns whether a script names a function of random numbers.
fn uses_random_numbers(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.into_iter().any(|word| word == "random" || FUNCTIONS.random.contains(word))
}

/// The functions of the library, found once.
struct Functions {
    all: Vec<&'static Function>,
    random: HashSet<&'static str>,
}

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let all = expressions::functions();
    let random = all.iter().filter(|f| f.namespace == "random").map(|f| f.name).collect();
    Functions { all, random }
});

/// Returns the script that `bytes` describe: assignments and expressions of calls with arguments of any type.
fn script(bytes: &mut Bytes) -> String {
    let mut lines = Vec::new();
    for _ in 0..4 {
        let value = expression(bytes, MAX_DEPTH);
        lines.push(match bytes.below(8) {
            0 => format!("x = {value}"),
            1 => format!("x, y = {value}"),
            2 => format!("{}[{}] = {value}", name(bytes), index(bytes, 2)),
            3 => format!("{} {}= {value}", name(bytes), operator(bytes)),
            4 => format!("{}[{}] {}= {value}", name(bytes), index(bytes, 2), operator(bytes)),
            _ => value,
        });
        if bytes.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

fn name(bytes: &mut Bytes) -> &'static str {
    bytes.choose(&["a", "n", "b", "u", "z", "h", "s", "e", "w", "x", "y"])
}

fn operator(bytes: &mut Bytes) -> &'static str {
    bytes.choose(&["+", "-", "*", "/", "//", "%", "**", "@", "<<", ">>", "&", "|", "^"])
}

fn literal(bytes: &mut Bytes) -> &'static str {
    const LITERALS: &str = "0|1|-1|2|3|7|64|100|4096|2**31|2**62|-2**63|2**64|0.5|-2.5|1e300|1e-300|nan|inf|2j|True|False|None|...|()|[]\
        |(0, 1)|(1, 0)|(-1,)|(2, 3)|(0,)|[1, 2, 3]|[[1, 2], [3, 4]]|[0.5, 1.5, 2.5]|[True, False]|['a']|'float32'|'int8'|'complex64'|'bool'|'C'\
        |'ij,jk'|'ij->ji'|'clip'|'full'|'constant'|int64|float16";
    let all = || LITERALS.split('|');
    all().nth(bytes.below(all().count())).unwrap_or("0")
}

fn index(bytes: &mut Bytes, depth: usize) -> String {
    let item = |bytes: &mut Bytes| match bytes.below(8) {
        0 => "...".into(),
        1 => "None".into(),
        2 => format!("{}:{}:{}", bytes.number(), bytes.number(), bytes.number()),
        3 => format!("::{}", bytes.number()),
        4 => format!("{}:", bytes.number()),
        5 => bytes.number().to_string(),
        6 => "n > 1".into(),
        _ => expression(bytes, depth.saturating_sub(1)),
    };
    (0..1 + bytes.below(3)).map(|_| item(bytes)).collect::<Vec<String>>().join(", ")
}

fn expression(bytes: &mut Bytes, depth: usize) -> String {
    if depth == 0 || bytes.is_empty() {
        return if bytes.below(2) == 0 { name(bytes).into() } else { literal(bytes).into() };
    }
    let depth = depth - 1;
    match bytes.below(16) {
        0 => literal(bytes).into(),
        1 | 2 => name(bytes).into(),
        3 => format!("({} {} {})", expression(bytes, depth), operator(bytes), expression(bytes, depth)),
        4 => format!("({} {} {})", expression(bytes, depth), bytes.choose(&["<", "==", ">=", "!=", "and", "or"]), expression(bytes, depth)),
        5 => format!("{}{}", bytes.choose(&["-", "~", "+", "not "]), name(bytes)),
        6 => format!("{}[{}]", expression(bytes, depth), index(bytes, depth)),
        7 => format!("({}, {})", expression(bytes, depth), expression(bytes, depth)),
        8 => format!("[{}, {}]", expression(bytes, depth), expression(bytes, depth)),
        9 => {
            const ATTRIBUTES: [&str; 8] = ["T", "shape", "size", "ndim", "dtype", "real", "imag", "nbytes"];
            format!("{}.{}", name(bytes), bytes.choose(&ATTRIBUTES))
        }
        _ => call(bytes, depth),
    }
}

/// Returns a call of any function, with its required parameters and some of the optional ones.
fn call(bytes: &mut Bytes, depth: usize) -> String {
    let at = usize::from(bytes.next()) << 8 | usize::from(bytes.next());
    let function = FUNCTIONS.all[at % FUNCTIONS.all.len()];
    let mut arguments = Vec::new();
    let mut keyword_only = false;
    let parameters = split_parameters(function.parameters.text);
    for parameter in parameters {
        match parameter.split_once('=') {
            _ if parameter == "/" => {}
            _ if parameter.starts_with('*') => keyword_only = true,
            None if keyword_only => arguments.push(format!("{parameter}={}", expression(bytes, depth))),
            None => arguments.push(expression(bytes, depth)),
            Some((name, default)) => {
                keyword_only = true;
                match bytes.below(8) {
                    0 => arguments.push(format!("{name}={}", expression(bytes, depth))),
                    1 => arguments.push(format!("{name}={}", literal(bytes))),
                    2 => arguments.push(format!("{name}={default}")),
                    _ => {}
                }
            }
        }
    }
    format!("{}({})", function.path(), arguments.join(", "))
}

/// Splits parameters at commas outside brackets.
fn split_parameters(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b',' if depth == 0 => {
                out.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out.retain(|parameter| !parameter.is_empty());
    out
}
