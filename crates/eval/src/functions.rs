//! Functions of this crate, beside core's table: those of Python's and NumPy's that make or ask after a value rather than
//! compute, and short compositions that pasted code is full of.

use cuprum_core::ops::reduce::Over;
use cuprum_core::ops::value::{Args, Value};
use cuprum_core::{
    DType, Device, Item, NdArray, Operand, Scalar, add, axis, concat, equal, isfinite, isnan, less_equal, logical_and, logical_or,
    multiply, outer, subtract,
};

use crate::fault::{Checked, Fault};
use crate::library::call_named;
use crate::ops::{BinaryOp, CompareOp};
use crate::scalar::rounded;

/// A row of this crate's table.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// Parameters in Python's notation.
    pub(crate) signature: &'static str,
    /// What it does, in one line.
    pub(crate) doc: &'static str,
    pub(crate) call: fn(&Args) -> Checked<Value>,
}

macro_rules! functions {
    ($($name:literal [$($alias:literal),*] ($signature:literal) $call:expr, $doc:literal;)*) => {
        /// Every row.
        pub(crate) static ALL: &[&Function] = &[$(&Function {
            name: $name, aliases: &[$($alias),*], signature: $signature, doc: $doc, call: $call,
        }),*];
    };
}

functions! {
    "array" ["asarray", "asanyarray"] ("a, dtype=None, *, copy=None") |a| {
        let dtype = a.dtype("dtype")?;
        match a.get("a") {
            Some(value) => Ok(value.array_as("array", dtype)?.into()),
            None => Err(Fault::typed("None is not an array")),
        }
    }, "An array of a number, a (nested) list, or another array, in a dtype if one is given.";
    "asnumpy" [] ("a") |a| Ok(a.array("a")?.to_device(Device::CPU)?.into()), "The array in host memory (CuPy's name).";
    "dtype" [] ("dtype") |a| match a.dtype("dtype")? {
        Some(dtype) => Ok(Value::DType(dtype)),
        None => Ok(Value::DType(DType::F64)),
    }, "A dtype by its name: `dtype('f4')` is float32.";
    "len" [] ("a") |a| length(a.get("a")), "Extent of the first axis, or number of items.";
    "shape" [] ("a") |a| Ok(shape(&a.array("a")?)), "Extents, as a tuple.";
    "ndim" [] ("a") |a| Ok(a.array("a")?.ndim().into()), "Number of axes.";
    "size" [] ("a") |a| Ok(a.array("a")?.size().into()), "Number of elements.";
    "isclose" [] ("a, b, rtol=1e-05, atol=1e-08, equal_nan=False") |a| Ok(isclose(a)?.into()),
        "Whether `abs(a - b) <= atol + rtol * abs(b)`, elementwise.";
    "allclose" [] ("a, b, rtol=1e-05, atol=1e-08, equal_nan=False") |a| Ok(isclose(a)?.all(())?.item()?.as_bool().into()),
        "Whether `isclose` holds everywhere.";
    "array_equal" [] ("a1, a2") |a| {
        let (x, y) = (a.array("a1")?, a.array("a2")?);
        Ok((x.shape() == y.shape() && equal(&x, &y)?.all(())?.item()?.as_bool()).into())
    }, "Whether shapes and all elements are equal.";
    "ptp" [] ("a, axis=None, *, keepdims=False") |a| {
        let (x, over) = (a.array("a")?, cuprum_core::ops::reduce::over(a)?);
        Ok(subtract(x.max(over.clone())?, x.min(over)?)?.into())
    }, "Largest less smallest element.";
    "linalg.norm" ["norm"] ("x, ord=None, axis=None, keepdims=False") |a| Ok(norm(a)?.into()),
        "Norm of vectors (any ord) or matrices ('fro', 1, -1, inf, -inf).";
    "linalg.vector_norm" ["vector_norm"] ("x, *, axis=None, keepdims=False, ord=2") |a| {
        let (x, axes) = (inexact(a)?, a.ints("axis")?);
        Ok(vector_norm(&x, a.scalar_or("ord", 2)?.as_f64(), over(a, axes)?)?.into())
    }, "Norm of vectors along axes.";
    "linalg.trace" [] ("x, *, offset=0, dtype=None") |a| {
        let (diagonals, dtype) = (matrix_diagonals(a)?, a.dtype("dtype")?);
        Ok(diagonals.sum(dtype.map_or_else(|| axis(-1), |dtype| axis(-1).dtype(dtype)))?.into())
    }, "Sums of the diagonals of matrices, which are the last two axes.";
    "linalg.outer" [] ("x1, x2") |a| {
        let (x, y) = (a.array("x1")?, a.array("x2")?);
        if x.ndim() != 1 || y.ndim() != 1 {
            return Err(Fault::value(format!("linalg.outer takes 1-D arrays, not of {} and {} dimensions", x.ndim(), y.ndim())));
        }
        Ok(outer(&x, &y)?.into())
    }, "Products of all pairs of elements of two 1-D arrays.";
    "linalg.diagonal" [] ("x, *, offset=0") |a| Ok(matrix_diagonals(a)?.into()), "Diagonals of matrices, which are the last two axes.";
    "matrix_transpose" [] ("x") |a| Ok(matrix_transpose(&a.array("x")?)?.into()), "The last two axes exchanged.";
    "flipud" [] ("m") |a| Ok(a.array("m")?.flip(Some(&[0]))?.into()), "The first axis reversed.";
    "fliplr" [] ("m") |a| Ok(a.array("m")?.flip(Some(&[1]))?.into()), "The second axis reversed.";
    "vstack" [] ("tup") |a| {
        let rows: Result<Vec<NdArray>, _> = a.arrays("tup")?.iter().map(|x| at_least(x, 2)).collect();
        Ok(concat(&rows?, 0)?.into())
    }, "Arrays joined as rows.";
    "hstack" [] ("tup") |a| {
        let parts: Result<Vec<NdArray>, _> = a.arrays("tup")?.iter().map(|x| at_least(x, 1)).collect();
        let parts = parts?;
        let along = if parts.first().is_some_and(|p| p.ndim() == 1) { 0 } else { 1 };
        Ok(concat(&parts, along)?.into())
    }, "Arrays joined along the second axis; 1-D ones along the first.";
    "rand" ["random.rand"] ("*shape, dtype=None, seed=None") |a| drawn("random", a), "Uniform numbers in [0, 1) of shape `rand(2, 3)`.";
    "randn" ["random.randn"] ("*shape, dtype=None, seed=None") |a| drawn("standard_normal", a),
        "Normally distributed numbers of shape `randn(2, 3)`.";
}

/// A shape as a value.
pub(crate) fn shape(a: &NdArray) -> Value {
    Value::Tuple(a.shape().iter().map(|&n| n.into()).collect())
}

fn length(value: Option<&Value>) -> Checked<Value> {
    match value {
        Some(Value::Array(a)) => match a.shape().first() {
            Some(n) => Ok((*n).into()),
            None => Err(Fault::typed("an array of 0 dimensions has no length")),
        },
        Some(Value::Tuple(items) | Value::List(items)) => Ok(items.len().into()),
        Some(Value::Str(s)) => Ok(s.chars().count().into()),
        other => Err(Fault::typed(format!("'{}' has no length", other.map_or("None", Value::type_name)))),
    }
}

/// `keepdims=` and axes that were read before.
fn over(args: &Args, axes: Option<Vec<isize>>) -> Checked<Over> {
    let over = axes.map_or_else(Over::default, |axes| axis(&axes[..]));
    Ok(if args.bool_or("keepdims", false)? { over.keepdims() } else { over })
}

/// `numpy.isclose`: infinities are close to themselves alone, NaN to nothing unless `equal_nan`. A number is weak.
fn isclose(args: &Args) -> Checked<NdArray> {
    let (a, b) = (args.operand("a")?, args.operand("b")?);
    // In floating point, as NumPy does it: differences of unsigned integers would wrap.
    let b = match b {
        Operand::Array(b) if !b.dtype().is_inexact() => b.astype(DType::F64)?.into(),
        Operand::Scalar(s @ (Scalar::Bool(_) | Scalar::Int(_))) => s.as_f64().into(),
        b => b,
    };
    let (rtol, atol) = (args.scalar_or("rtol", 1e-5)?.as_f64(), args.scalar_or("atol", 1e-8)?.as_f64());
    let tolerance: Operand = match &b {
        Operand::Array(b) => add(multiply(b.abs()?, rtol)?, atol)?.into(),
        Operand::Scalar(b) => (b.as_complex().norm() * rtol + atol).into(),
    };
    let near = less_equal(subtract(&a, &b)?.abs()?, tolerance)?;
    let same = equal(&a, &b)?;
    let close = logical_or(logical_and(near, isfinite(&b)?)?, &same)?;
    if args.bool_or("equal_nan", false)? {
        return Ok(logical_or(close, logical_and(isnan(a)?, isnan(b)?)?)?);
    }
    Ok(close)
}

/// `x` in floating point.
fn inexact(args: &Args) -> Checked<NdArray> {
    let x = args.array("x")?;
    Ok(if x.dtype().is_inexact() { x } else { x.astype(DType::F64)? })
}

fn norm(args: &Args) -> Checked<NdArray> {
    let x = inexact(args)?;
    let axes = args.ints("axis")?;
    let order = match args.get("ord") {
        None => None,
        Some(Value::Str(s)) if s == "fro" => Some(Order::Frobenius),
        Some(Value::Scalar(s)) => Some(Order::Number(s.as_f64())),
        Some(_) => return Err(Fault::value("`ord` is a number, inf, -inf or 'fro'")),
    };
    let matrix = match &axes {
        None => x.ndim() == 2,
        Some(axes) => axes.len() == 2,
    };
    match (order, axes) {
        // NumPy: without `ord` and `axis`, the 2-norm of all elements.
        (None, axes) => vector_norm(&x, 2.0, over(args, axes)?),
        (Some(Order::Frobenius), axes) if matrix => vector_norm(&x, 2.0, over(args, axes)?),
        (Some(Order::Number(p)), axes) if matrix => matrix_norm(args, &x, p, &axes.unwrap_or_else(|| vec![0, 1])),
        (Some(Order::Number(p)), axes) if axes.as_ref().is_some_and(|a| a.len() == 1) || x.ndim() == 1 => {
            vector_norm(&x, p, over(args, axes)?)
        }
        _ => Err(Fault::value("this `ord` needs a vector, or `axis` to say where vectors or matrices lie")),
    }
}

enum Order {
    Number(f64),
    Frobenius,
}

/// `sum(abs(x)**p)**(1/p)` and its limits.
fn vector_norm(x: &NdArray, p: f64, over: Over) -> Checked<NdArray> {
    if p == 2.0 {
        // Parts are squared one by one, as in NumPy: a size would overflow later, and that of an infinite part beside NaN is infinite.
        let squares = if x.dtype().is_complex() { add(x.real()?.square()?, x.imag()?.square()?)? } else { x.square()? };
        return Ok(squares.sum(over)?.sqrt()?);
    }
    let x = &x.abs()?;
    Ok(if p == 1.0 {
        x.sum(over)?
    } else if p == f64::INFINITY {
        largest(x, over)?
    } else if p == f64::NEG_INFINITY {
        x.min(over)?
    } else if p == 0.0 {
        x.count_nonzero(over)?.astype(x.dtype())?
    } else {
        x.power(p)?.sum(over)?.power(1.0 / p)?
    })
}

/// Largest element of `x`, which is not negative; 0 if there is none.
fn largest(x: &NdArray, over: Over) -> Checked<NdArray> {
    Ok(if x.size() == 0 { x.sum(over)? } else { x.max(over)? })
}

/// Largest or smallest sum of columns (`p` = 1, -1) or rows (inf, -inf) of `abs(x)`.
fn matrix_norm(args: &Args, x: &NdArray, p: f64, axes: &[isize]) -> Checked<NdArray> {
    let summed = match p.abs() {
        1.0 => axes[0],
        f64::INFINITY => axes[1],
        _ => return Err(Fault::value(format!("the matrix norm of order {p} needs singular values, which are not in this version"))),
    };
    let other = if summed == axes[0] { axes[1] } else { axes[0] };
    let sums = x.abs()?.sum(axis(summed).keepdims())?;
    let ends = if p > 0.0 { largest(&sums, axis(other).keepdims())? } else { sums.min(axis(other).keepdims())? };
    Ok(if args.bool_or("keepdims", false)? { ends } else { ends.squeeze(Some(axes))? })
}

/// Diagonals of the last two axes, unlike those of `numpy.diagonal`.
fn matrix_diagonals(args: &Args) -> Checked<NdArray> {
    Ok(args.array("x")?.diagonal(args.int_or("offset", 0)?, -2, -1)?)
}

/// `numpy.ndarray.mT`.
pub(crate) fn matrix_transpose(x: &NdArray) -> Checked<NdArray> {
    if x.ndim() < 2 {
        return Err(Fault::value(format!("the matrix transpose of an array of {} dimensions is not defined", x.ndim())));
    }
    Ok(x.swapaxes(-2, -1)?)
}

/// With axes of extent 1 put in front, up to `ndim` of them.
fn at_least(x: &NdArray, ndim: usize) -> cuprum_core::Result<NdArray> {
    x.index(&vec![Item::NewAxis; ndim.saturating_sub(x.ndim())])
}

/// `rand(2, 3)`: the extents are arguments of their own.
fn drawn(op: &str, args: &Args) -> Checked<Value> {
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    let seed = args.get("seed").cloned().unwrap_or(Value::None);
    call_named(op, vec![Value::Tuple(args.rest().to_vec()), Value::DType(dtype), seed])
}

/// A 0-d or one-element array as a number; numbers as they are.
pub(crate) fn single(value: &Value) -> Checked<Option<Scalar>> {
    match value {
        Value::Scalar(s) => Ok(Some(*s)),
        Value::Array(a) if a.size() == 1 => Ok(Some(a.item()?)),
        _ => Ok(None),
    }
}

/// Python's own functions under their bare names. `None`: it is NumPy's function of this name that is meant.
pub(crate) fn python(name: &str, args: &[Value], keywords: &[(String, Value)]) -> Checked<Option<Value>> {
    if name == "round" {
        return python_round(args, keywords);
    }
    if !keywords.is_empty() {
        return Ok(None);
    }
    match (name, args) {
        ("int" | "float", [Value::Str(text)]) => return parsed(name, text).map(|s| Some(s.into())),
        ("pow", [base @ Value::Array(_), exponent]) => {
            return crate::evaluate::binary(BinaryOp::Pow, base.clone(), exponent.clone()).map(Some);
        }
        _ => {}
    }
    let convert = |as_array: &str| match args {
        [value] => single(value)?.ok_or_else(|| match value {
            Value::Array(_) | Value::List(_) => {
                Fault::typed(format!("only a single number can be made {as_array}")).help(format!("use `.astype({name})` on arrays"))
            }
            other => Fault::typed(format!("'{}' cannot be made {as_array}", other.type_name())),
        }),
        _ => Err(Fault::typed(format!("{name}() takes one argument, {} given", args.len()))),
    };
    let numbers: Option<Vec<Scalar>> = args.iter().map(|v| if let Value::Scalar(s) = v { Some(*s) } else { None }).collect();
    let value: Scalar = match (name, numbers.as_deref()) {
        ("bool", _) => match args {
            [value] => crate::evaluate::truth(value)?.into(),
            _ => convert("a bool")?,
        },
        ("int", _) => match convert("an int")? {
            Scalar::Complex(_) => return Err(Fault::typed("a complex number cannot be made an int")),
            Scalar::Float(v) => {
                Scalar::Float(v.trunc()).as_int().ok_or_else(|| Fault::value(format!("{v:e} cannot be made an int")))?.into()
            }
            s => s.as_int().unwrap_or(0).into(),
        },
        ("float", _) => match convert("a float")? {
            Scalar::Complex(_) => return Err(Fault::typed("a complex number cannot be made a float")),
            s => s.as_f64().into(),
        },
        // By parts: in `re + im * 1j` an infinity would make NaN, and adding the zero of a real number would lose the sign of -0.0.
        ("complex", Some([re, im])) => {
            let cross = |part: Scalar| if let Scalar::Complex(c) = part { Some(c.im) } else { None };
            let real = cross(*im).map_or(re.as_f64(), |i| re.as_f64() - i);
            let imaginary = cross(*re).map_or(im.as_f64(), |i| i + im.as_f64());
            cuprum_core::Complex::new(real, imaginary).into()
        }
        ("complex", _) => convert("a complex number")?.as_complex().into(),
        ("abs", Some([Scalar::Complex(c)])) => c.norm().into(),
        ("abs", Some([Scalar::Float(v)])) => v.abs().into(),
        ("abs", Some([s])) => s.as_int().and_then(i128::checked_abs).ok_or_else(|| Fault::value("the result is too large"))?.into(),
        ("pow", Some([a, b])) => crate::scalar::binary(BinaryOp::Pow, *a, *b)?,
        ("min", Some([first, rest @ ..])) if !rest.is_empty() => extreme(CompareOp::Lt, *first, rest)?,
        ("max", Some([first, rest @ ..])) if !rest.is_empty() => extreme(CompareOp::Gt, *first, rest)?,
        _ => return Ok(None),
    };
    Ok(Some(value.into()))
}

/// Python's `round(number, ndigits=None)`, if its argument is a real number.
fn python_round(args: &[Value], keywords: &[(String, Value)]) -> Checked<Option<Value>> {
    let number = match (args, keywords) {
        ([Value::Scalar(number @ (Scalar::Bool(_) | Scalar::Int(_) | Scalar::Float(_))), ..], _) => *number,
        _ => return Ok(None),
    };
    let digits = match (&args[1..], keywords) {
        ([], []) => &Value::None,
        ([digits], []) => digits,
        ([], [(name, digits)]) if name == "ndigits" => digits,
        _ => return Ok(None),
    };
    let digits = match digits {
        Value::None => None,
        digits => Some(digits.int("round")?),
    };
    rounded(number, digits).map(|s| Some(s.into()))
}

/// `int('12')`, `float('-inf')`.
fn parsed(name: &str, text: &str) -> Checked<Scalar> {
    let plain = text.trim();
    let number = match name {
        "int" => plain.parse::<i128>().ok().map(Scalar::from),
        _ => plain.parse::<f64>().ok().map(Scalar::from),
    };
    number.ok_or_else(|| Fault::value(format!("'{text}' is no number that {name}() can read")))
}

/// The first of the numbers that no later one is beyond.
fn extreme(beyond: CompareOp, first: Scalar, rest: &[Scalar]) -> Checked<Scalar> {
    rest.iter().try_fold(first, |best, &s| Ok(if crate::scalar::compare(beyond, s, best)? { s } else { best }))
}
