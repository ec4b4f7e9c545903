//! Evaluation errors: their kind, column, message and help.

use cuprum_eval::EvalErrorKind::{self, Array, Index, Name, Type, Value};

/// An expected error: (source, kind, column, part of the message, part of the help).
type Row = (&'static str, EvalErrorKind, usize, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("smu(a)", Name, 1, "no variable or function `smu`", "did you mean `sum`?"),
    ("np.cumsmu(a)", Name, 1, "no variable or function `cumsmu`", "`cumsum`"),
    ("histogramdd(zeros((0, 2**40)))", Array, 1, "", ""),
    ("histogramdd(ones((2, 3)), 2**30)", Array, 1, "[histogramdd]", ""),
    ("histogramdd(ones((2, 2)), 2**29)", Array, 1, "[histogramdd]", ""),
    ("fmod.reduce(array(2, 'u8'), axis=-2)", Array, 1, "axis -2 is out of bounds", ""),
    ("subtract.reduce(array(2), axis=(0,))", Array, 1, "axis 0 is out of bounds", ""),
    ("subtract.reduce(array(3.), initial=10, where=[True, False])", Array, 1, "`where` does not broadcast", ""),
    ("subtract.reduce([3., 2], where=[True, False])", Array, 1, "`where` needs `initial`", ""),
    ("subtract.reduce([3, 2], initial=nan)", Array, 1, "cannot convert NaN", ""),
    ("subtract.reduce([3., 2], initial=2j)", Array, 1, "cannot convert a complex number", ""),
    ("minimum.outer(2**64, [1.5])", Array, 1, "out of bounds for uint64", ""),
    ("add.outer(-2**63 - 1, 1)", Array, 1, "out of bounds for int64", ""),
    ("ascontiguousarray(300, 'u1')", Array, 1, "[ascontiguousarray] integer 300 is out of bounds", ""),
    ("require([300], 'u1')", Array, 1, "[require] integer 300 is out of bounds", ""),
    ("x = array(7); copyto(x, -1, where=[True, False])", Array, 15, "[copyto] the mask", ""),
    ("x = zeros(2, int); put(x, 0, nan)", Array, 20, "[put] cannot convert NaN", ""),
    ("x = zeros(2, int); put(x, [0], [1j])", Array, 20, "[put] cannot convert a complex number", ""),
    ("fill_diagonal(a, 1j)", Array, 1, "[fill_diagonal] cannot convert a complex number", ""),
    ("ravel_multi_index(([0, 1], [1, 0]), (3, 0), 'clip')", Array, 1, "zero entries", ""),
    ("asarray([1, 2], copy=False)", Array, 1, "[asarray] Unable to avoid copy", ""),
    ("asarray(a, 'f2', copy=False)", Array, 1, "[asarray] Unable to avoid copy", ""),
    ("array(a, order='F', copy=False)", Array, 1, "[array] Unable to avoid copy", ""),
    ("zeros(2, order='K')", Array, 1, "[zeros] only 'C' or 'F' order is permitted", ""),
    ("full(2, 1, order='A'), eye(2, order='K')", Array, 1, "[full] only 'C' or 'F'", ""),
    ("polyint([1, 2], 10**7)", Array, 1, "must be at most 4096", ""),
    ("format_float_scientific(38.875, precision=2, min_digits=10)", Array, 1, "min_digits must be less than or equal", ""),
    ("subtract.reduce(zeros((0, 0)))", Array, 1, "no identity", ""),
    ("nan_to_num([1.], nan=1j)", Array, 1, "[nan_to_num] the replacements must be real", ""),
    ("nan_to_num([1j], posinf=[1j])", Array, 1, "[nan_to_num] the replacements must be real", ""),
    ("nanquantile([1., 2], .5, weights=[0, 0], method='inverted_cdf')", Array, 1, "Weights included NaN, inf or were all zero", ""),
    ("nanpercentile([nan, 2], 30, weights=[1, 0], method='inverted_cdf')", Array, 1, "Weights included NaN", ""),
    ("nanquantile([[1, 2], [3, 4]], .5, axis=0, weights=[[0, 0], [1, 0]], method='inverted_cdf')", Array, 1, "Weights included NaN", ""),
    ("x = ones((2, 2)); matmul(x, ones((2, 1)), out=x)", Array, 19, "'out' has another shape", ""),
    ("x = ones((2, 2)); matvec(ones((1, 2)), ones(2), out=x)", Array, 19, "'out' has another shape", ""),
    ("x = ones((2, 3)); round([1., 2, 3], out=x)", Array, 19, "'out' has another shape", ""),
    ("interp([5], [0, 1, 3], [-7, -1, 1], right=1j)", Array, 1, "[interp] left and right must be real", ""),
    ("cov([1, 2, 3], aweights=[1, 1j, 2])", Array, 1, "[cov] cannot convert a complex number", ""),
    ("insert([1, 2], 0, 1j)", Array, 1, "[insert] cannot convert a complex number", ""),
    ("insert([1, 2], 0, nan)", Array, 1, "[insert] cannot convert NaN", ""),
    ("insert(array([1, 2], 'u1'), 0, [300, -1])", Array, 1, "[insert] integer 300 is out of bounds", ""),
    ("pad([1, 2], 1, constant_values=nan)", Array, 1, "[pad] cannot convert NaN", ""),
    ("x = zeros(3); place(x, x == 0, [1j])", Array, 15, "[place] cannot convert a complex number", ""),
    ("x = zeros(3, int); putmask(x, x == 0, [nan])", Array, 20, "[putmask] cannot convert NaN", ""),
    ("x = zeros(3, 'u1'); put_along_axis(x, array([0]), [300], 0)", Array, 21, "[put_along_axis] integer 300", ""),
    ("unravel_index(0, (2**32, 2**31))", Array, 1, "too many elements for int64", ""),
    ("repeat(arange(3), [2**63 - 1, 2**63 - 1, 5])", Array, 1, "[repeat] the result is too large", ""),
    ("extract([1, 0, 1], [1, 2])", Array, 1, "[extract] index 2 is out of bounds", ""),
    ("linalg.pinv([[4, 1j], [-1j, 3]], rcond=[.1])", Array, 1, "[pinv] `rtol` cannot be broadcast", ""),
    ("average(2.5, axis=0, weights=2)", Array, 1, "axis 0 is out of bounds", ""),
    ("logical_and.reduce(a, dtype='i2')", Array, 1, "no loop that computes int16", ""),
    ("divide.accumulate([1, 2], dtype=int)", Array, 1, "no loop that computes int64", ""),
    ("linalg.norm(a, 1, axis=(0, 0), keepdims=True)", Array, 1, "given twice", ""),
    ("linalg.norm(a, axis=())", Array, 1, "over one or two axes, not 0", ""),
    ("linalg.norm(ones((1, 1, 1)), axis=(0, 1, 2))", Array, 1, "over one or two axes, not 3", ""),
    ("linalg.lstsq(array([[1.]], 'f2'), [1.])", Array, 1, "[lstsq] array type float16 is unsupported", ""),
    ("searchsorted([3, 1, 2], 2, sorter=[1, 2])", Array, 1, "[searchsorted] sorter.size must equal a.size", ""),
    ("searchsorted([3, 1, 2], 2, sorter=[1, 2, 5])", Array, 1, "[searchsorted] index 5 is out of bounds", ""),
    ("fromiter([300], 'int8')", Array, 1, "[fromiter]", ""),
    ("r_[array([1], 'uint8'), -1]", Array, 3, "[r_]", ""),
    ("add(array([1], 'int8'), array([1]), casting='no')", Array, 1, "by the rule 'no'", ""),
    ("add(array([1], 'int8'), 5.0, casting='equiv')", Array, 1, "by the rule 'equiv'", ""),
    ("add(array([1], 'int8'), 5, casting='equiv')", Array, 1, "from int64 to int8 by the rule 'equiv'", ""),
    ("add(array([1], 'int8'), 5, dtype='int8', casting='equiv')", Array, 1, "from int64 to int8 by the rule 'equiv'", ""),
    ("add([1], True, casting='no')", Array, 1, "from bool to int64 by the rule 'no'", ""),
    ("add([1], [1], out=f, casting='safe')", Array, 1, "by the rule 'safe'", ""),
    ("std(a, ddof=1, correction=2)", Array, 1, "ddof and correction can't be provided simultaneously", ""),
    ("sort(f, kind='stable', stable=True)", Array, 1, "`kind` and keyword parameters", ""),
    ("var([True], dtype=bool)", Array, 1, "[var]", ""),
    ("nanstd([1.5], dtype=int)", Array, 1, "dtype must be inexact", ""),
    ("where(3)", Array, 1, "0-d array", ""),
    ("where(b, 1)", Array, 1, "either both or neither", ""),
    ("partition(f, [0, 3])", Array, 1, "[partition] index 3 is out of bounds", ""),
    ("partition(f, 1.5)", Array, 1, "Partition index must be integer", ""),
    ("array_split(i, 2**60)", Array, 1, "[array_split]", ""),
    ("unstack(zeros((2**58, 0)))", Array, 1, "[unstack]", ""),
    ("(1, 2)[True]", Index, 7, "one integer or slice", ""),
    ("a + x1", Name, 5, "no variable or function `x1`", ""),
    ("shuffle(a)", Name, 1, "`shuffle` is not in this version", ""),
    ("random.get_state()", Name, 1, "`random.get_state` is not in this version", ""),
    ("random.zipf(1.0, 3)", Array, 1, "a <= 1 or a contains NaNs", ""),
    ("random.integers(array([0, 0]), 2**64 + 5)", Array, 1, "high is out of bounds for int64", ""),
    ("random.integers(2**64 + 3, array([10, 10]))", Array, 1, "low is out of bounds for int64", ""),
    ("random.integers(array([0]), array([-2**63]))", Array, 1, "low >= high", ""),
    ("random(3, seed=-1)", Array, 1, "expected non-negative integer", ""),
    ("random(3, seed=1.5)", Array, 1, "expected an integer, not float", ""),
    ("default_rng(1).normal(seed=2)", Type, 1, "`normal` has no keyword argument 'seed'", ""),
    ("default_rng(1).seed(2)", Type, 1, "no attribute `seed`", ""),
    ("default_rng(1).norml(2)", Type, 1, "no attribute `norml`", ""),
    ("random.spawn(3, 2)", Array, 1, "must be a generator", ""),
    ("np.linalg.nrm(a)", Name, 1, "no variable or function `linalg.nrm`", "`linalg.norm`"),
    ("linalg.nrm(a)", Name, 1, "no variable or function `linalg.nrm`", "`linalg.norm`"),
    ("foo.T", Name, 1, "no variable or function `foo`", ""),
    ("sum", Type, 1, "`sum` is a function", "call it: `sum(...)`"),
    ("a.sum", Type, 3, "`sum` is a method", "call it: `.sum()`"),
    ("a.shape()", Type, 1, "`shape` is an attribute", "without parentheses"),
    ("a.sqrt()", Type, 1, "no attribute or method `sqrt`", "`sqrt(a)`"),
    ("a.shpae", Type, 3, "no attribute or method `shpae`", "`shape`"),
    ("(1).foo", Type, 5, "'int' has no attribute `foo`", ""),
    ("a(1)", Type, 1, "'array' cannot be called", "to multiply"),
    ("sum = 3; sum(a)", Type, 10, "'int' cannot be called", "the function is `np.sum`"),
    ("pi(2)", Type, 1, "a constant cannot be called", ""),
    ("print(a)", Name, 1, "`print` has no output here", ""),
    ("a.sum(axis=2)", Array, 1, "axis 2 is out of bounds for an array of dimension 2", ""),
    ("1 + sum(a, axis=-3)", Array, 5, "axis -3 is out of bounds", ""),
    ("a + f", Array, 3, "(3, 4)", ""),
    ("a @ f", Array, 3, "[matmul] the summed axes differ: axis 1 of the first array has 4 elements, axis 0 of the second", ""),
    ("a.sum(wherever=f)", Array, 1, "unexpected keyword argument 'wherever'", ""),
    ("sum()", Array, 1, "argument 'a' is missing", ""),
    ("sin(a, a, a)", Array, 1, "takes at most 2 positional", ""),
    ("a.reshape(5, -1)", Array, 1, "cannot reshape array of shape (3, 4) and size 12 into (5, -1): 12 is not a multiple of 5", ""),
    ("a.reshape(7)", Array, 1, "cannot reshape array of shape (3, 4) and size 12 into (7,) of size 7", ""),
    ("argmax(a[:, :0], 1)", Array, 1, "attempt to get argmax of an empty sequence, axis 1 has no elements: (3, 0)", ""),
    ("max(a[:0])", Array, 1, "zero-size array to a reduction which has no identity, axis 0 has no elements: (0, 4)", ""),
    ("sqrt('x')", Array, 1, "expected an array or a number, not str", ""),
    ("astype(a, 'float8')", Array, 1, "unknown dtype 'float8'", ""),
    ("np.int8(300)", Array, 1, "integer 300 is out of bounds for int8 (-128 to 127)", ""),
    ("array([1, [2]])", Array, 1, "same lengths", ""),
    ("f ** 'x'", Array, 3, "not str", ""),
    ("1 / 0", Value, 3, "division by zero", ""),
    ("2**127", Value, 2, "too large", "make one side a float"),
    ("1 @ 2", Type, 3, "unsupported operand types for @", ""),
    ("[1] + 1", Type, 5, "'list' and 'int'", "array([...])"),
    ("'a' * 2", Type, 5, "'str' and 'int'", ""),
    ("(1,) * 10**9", Value, 6, "too long", ""),
    ("1j < 2j", Type, 4, "no order", ""),
    ("-'x'", Type, 1, "bad operand type for unary -", ""),
    ("~1.5", Type, 1, "bad operand type for ~", ""),
    ("a == None", Type, 3, "cannot be compared", ""),
    ("a and b", Value, 1, "truth value of an array with more than one element is ambiguous", "`&`"),
    ("not a", Value, 5, "ambiguous", "`.any()`"),
    ("0 < a < 3", Value, 1, "ambiguous", "`(a < b) & (b < c)`"),
    ("f > 1 & i < 3", Value, 1, "ambiguous", "`&` and `|` bind tighter"),
    ("1 if a else 2", Value, 6, "ambiguous", ""),
    ("a[5]", Array, 2, "index 5 is out of bounds for axis 0 with size 3", ""),
    ("a[0, 0, 0]", Array, 2, "[index]", ""),
    ("a[::0]", Array, 2, "step cannot be zero", ""),
    ("a[1.5]", Index, 3, "a 'float' cannot be an index", "integer"),
    ("a[f]", Index, 3, "an array of float32 cannot be an index", ""),
    ("a['x']", Index, 3, "'str' cannot be an index", ""),
    ("a[:, b]", Index, 2, "the extent of axis 1 is 4, but that of the mask is 3", ""),
    ("f[a > 1]", Array, 2, "too many indices", ""),
    ("a[:1.5]", Index, 4, "start, stop and step of a slice", ""),
    ("a[i, i, i]", Array, 2, "too many indices", ""),
    ("(1, 2)[2]", Index, 7, "index 2 is out of range", ""),
    ("(1, 2)[0, 1]", Index, 7, "one integer or slice", ""),
    ("3[0]", Type, 2, "'int' cannot be indexed", ""),
    ("f(...)", Type, 3, "only in an index", ""),
    ("a[3] = 1", Array, 1, "index 3 is out of bounds for axis 0 with size 3", ""),
    ("a[0, 0, 0] = 1", Array, 1, "too many indices", ""),
    ("a[:, b] = 1", Index, 1, "the extent of axis 1 is 4, but that of the mask is 3", ""),
    ("a[0] = [1, 2]", Array, 1, "the value cannot be broadcast to the target (value, target): (2,), (4,)", ""),
    ("a[0, 0] = [1]", Array, 1, "the target is one element, but the value has axes (value, target): (1,), ()", ""),
    ("a[a > 3] = a", Array, 1, "the value for a mask of all axes has at most one axis", ""),
    ("a[0] = None", Type, 1, "'None' cannot be assigned to elements of an array of float64", ""),
    ("a[0] = 1j", Array, 1, "cannot convert a complex number to float64", ""),
    ("i[0] = nan", Array, 1, "[assign] cannot convert NaN to int64", ""),
    ("i[0] = -1e19", Array, 1, "-10000000000000000000 is out of bounds for int64", ""),
    ("i[0] = [2**64]", Array, 1, "", ""),
    ("a[1.5] = 1", Index, 3, "a 'float' cannot be an index", "integer"),
    ("w[0] = 1", Name, 1, "no variable or function `w`", ""),
    ("(1, 2)[0] = 1", Type, 1, "only elements of a variable can be assigned", "name the array first"),
    ("a.T[0] = 1", Type, 1, "only elements of a variable can be assigned", "name the array first"),
    ("t = (1, 2); t[0] = 1", Type, 13, "elements of 'tuple' cannot be assigned", "array(x)"),
    ("a[b][0] = 1", Type, 2, "selects a copy", "`x[mask] = value`"),
    ("i[:2] += 0.5", Type, 7, "cannot store float64 in an array of int64", "astype"),
    ("i[i > 9] += 0.5", Type, 10, "cannot store float64 in an array of int64", "astype"),
    ("a[0] += a", Array, 6, "+= would change the shape", ""),
    ("x, y = a", Value, 1, "cannot unpack an axis of 3 into 2 names", ""),
    ("x, y = 1", Type, 1, "'int' cannot be unpacked", ""),
    ("x, y = (1, 2, 3)", Value, 1, "cannot unpack 3 values into 2 names", ""),
    ("w += 1", Name, 1, "no variable or function `w`", ""),
    ("i += 0.5", Type, 3, "cannot store float64 in an array of int64", "`x = x + ...`"),
    ("f += 1j", Type, 3, "cannot store complex64 in an array of float32", ""),
    ("f += a[:, :3]", Array, 3, "would change the shape", "`x = x + ...`"),
    ("add(f, 0.5, out=i)", Array, 1, "[add] cannot store float32 in an array of int64", ""),
    ("sum(a, 0, out=f)", Array, 1, "'out' has another shape than the result", ""),
    ("concat([f, f], out=zeros((2, 6), float32))", Array, 1, "'out' has another shape than the result", ""),
    ("add(a, 1, out=f)", Array, 1, "[add] the result cannot be broadcast to 'out'", ""),
    ("add(f, 1, out=a[0, 1:])", Type, 15, "the updated array must be a name", "x = ..."),
    ("add(f, 1, out=3)", Array, 1, "'out' must be an array, not int", ""),
    ("cumsum(f, out=i)", Array, 1, "[cumsum] cannot store float32 in an array of int64", ""),
    ("int(a)", Type, 1, "only a single number", "`.astype(int)`"),
    ("int(1j)", Type, 1, "complex", ""),
    ("int(nan)", Value, 1, "cannot be made an int", ""),
    ("float('x')", Value, 1, "float() cannot parse 'x'", ""),
    ("int('1.5')", Value, 1, "int() cannot parse '1.5'", ""),
    ("len(3)", Type, 1, "'int' has no length", ""),
    ("a.to_device('tpu')", Array, 1, "'tpu' is not a device", ""),
    ("zeros((10**12, 10**12))", Array, 1, "", ""),
    ("zeros((0, 2**62))", Array, 1, "array is too large", ""),
    ("zeros((0, 2**58)).view('uint8')", Array, 1, "[view] array is too large", ""),
    ("concat([zeros((2**58, 0))] * 64)", Array, 1, "array is too large", ""),
    ("linalg.lu(zeros((2**58, 0)))", Array, 1, "", ""),
    ("histogramdd(zeros((0, 2**58)))", Array, 1, "maximum supported dimension", ""),
    ("zeros(-1)", Array, 1, "negative dimension", ""),
];

#[test]
fn errors_have_kind_column_message_and_help() {
    let mut wrong = Vec::new();
    for (source, kind, column, message, help) in TABLE {
        match crate::value(source) {
            Ok(value) => wrong.push(format!("{source}: no error, but {}", cuprum_eval::repr(&value).unwrap_or_default())),
            Err(error) => {
                let fits = error.kind() == *kind
                    && error.position().column == *column
                    && error.message().contains(message)
                    && error.help().unwrap_or("").contains(help)
                    && (help.is_empty() || error.help().is_some());
                if !fits {
                    wrong.push(format!("{source}: {:?} at {}\n{}", error.kind(), error.position().column, error.render()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn errors_have_line_numbers_and_causes() {
    let error = crate::value("x = 1\ny = a.sum(\n  axis=7)\n").unwrap_err();
    assert_eq!((error.position().line, error.position().column), (2, 5));
    assert!(std::error::Error::source(&error).is_some(), "the array library's own error is kept");
}

/// Evaluates the highest trees that the parser accepts on a small stack.
#[test]
fn deep_trees_do_not_overflow_the_stack() {
    let n = cuprum_eval::MAX_HEIGHT - 2;
    let sources = [
        format!("{}1", "1 + ".repeat(n)),
        format!("{}f{}", "(".repeat(90), ")".repeat(90)),
        format!("{}f{}", "abs(".repeat(90), ")".repeat(90)),
    ];
    let run = move || {
        for source in sources {
            crate::value(&source).unwrap();
        }
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap();
}
