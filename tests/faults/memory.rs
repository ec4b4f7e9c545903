//! Host memory: each allocation of expressions of every family fails in turn.

use std::collections::BTreeMap;

use cuprum::core::fault_injection::FailurePoint;
use cuprum::core::testing::{Tolerance, compare};
use cuprum::expressions::Session;
use cuprum::{Error, NdArray, Result, Value};

use crate::{exclusive, fail_each};

/// Programs by family, with the variables of [`session`]. Each has arrays that are large enough for several tasks, and for temporary
/// memory.
pub const PROGRAMS: &[(&str, &str)] = &[
    ("map", "x * 2 + y"),
    ("map", "modf(x)"),
    ("map", "where(x > 0.5, x, m.reshape(-1))"),
    ("map", "m + m.T"),
    ("map of half", "x.astype('float16') * 3"),
    ("complex", "exp(z) * conj(z)"),
    ("fill", "arange(50000) + linspace(0, 1, 50000)"),
    ("copy", "copy(m.T)"),
    ("copy", "concatenate([x, y]); stack([x, y], axis=1)"),
    ("copy", "pad(m, 3, mode='reflect')"),
    ("reduce", "sum(x * y) + max(x)"),
    ("reduce", "m.mean(0), m.var(1), argmax(m, axis=0)"),
    ("reduce", "sum(m.astype('complex64'), axis=1)"),
    ("rows", "exp(m - m.max(1, keepdims=True)) / sum(exp(m - m.max(1, keepdims=True)), axis=1, keepdims=True)"),
    ("scan", "cumsum(x); cumprod(m, axis=0); cummax(m, axis=1)"),
    ("contract", "m @ m.T"),
    ("contract", "einsum('ij,kj,k->ik', m, m, m[:, 0])"),
    ("contract", "k.reshape(200, 200) @ k.reshape(200, 200)"),
    ("contract", "tensordot(m, m, axes=([1], [1]))"),
    ("sort", "sort(x); argsort(k); sort(m, axis=0)"),
    ("sort", "topk(x, 100)"),
    ("sort", "partition(x, 1000); argpartition(x, 1000)"),
    ("sort", "unique(k, return_index=True, return_inverse=True, return_counts=True)"),
    ("sort", "median(m, axis=1), percentile(x, 30)"),
    ("select", "x[x > 0.5]; nonzero(k % 3 == 0); compress(x > 0.1, x)"),
    ("search", "searchsorted(sort(x), y); digitize(x, array([0.25, 0.5, 0.75]))"),
    ("histogram", "histogram(x, bins=50); bincount(k); histogram(x, bins=10, weights=y)"),
    ("gather", "x[k]; take(m, array([3, 1, 4]), axis=1); take_along_axis(m, argsort(m, axis=1), 1)"),
    ("scatter", "s = zeros(50000); s[k] = x; s[k[:100]] += 1; s"),
    ("segments", "segment_sum(x, arange(0, 40001, 40)); segment_sort(x, arange(0, 40001, 400))"),
    ("random", "random.default_rng(3).normal(size=40000); random.default_rng(3).permutation(1000)"),
    ("fft", "fft.rfft(x); fft.fft2(m); fft.ifft(z)"),
    ("linalg", "q = m[:60, :60] + 60 * eye(60); linalg.inv(q); linalg.solve(q, m[:60, 0]); linalg.cholesky(q @ q.T)"),
    ("linalg", "linalg.svd(m[:40, :30]); linalg.eigh(m[:30, :30] + m[:30, :30].T); linalg.qr(m[:50, :20])"),
    ("linalg", "linalg.eigvals(m[:20, :20]); linalg.lstsq(m[:50, :20], m[:50, 0])"),
    ("composed", "interp(x, array([0.0, 0.5, 1.0]), array([1.0, 0.0, 2.0])); convolve(x, y[:64])"),
    ("composed", "gradient(m); diff(x, n=2); cov(m[:20]); trapezoid(x)"),
    ("composed", "intersect1d(k, k[:100]); isin(k, k[:50]); roll(m, 3, axis=1); repeat(x, 3)"),
    ("views", "swapaxes(m, 0, 1)[::2, 3:].reshape(-1)[5:]"),
    ("assignment", "c = copy(m); c[:, 3] = 7; c[c > 0.5] = 0; c"),
    ("lists", "x[:2000].tolist(); array([[1.0, 2.0]] * 2000)"),
    ("text", "array2string(x, threshold=100000)"),
];

fn session() -> Session {
    let mut session = Session::new();
    let prepare = "x = random.default_rng(1).random(40000, dtype='float32')\ny = random.default_rng(2).random(40000)\n\
                   k = random.default_rng(5).integers(0, 40000, size=40000)\nm = y.reshape(200, 200) + 0.0\nz = x[:4096] + 1j * y[:4096]";
    session.run(prepare).unwrap();
    // Computes the variables, which would otherwise be part of the first program that uses them.
    for name in ["x", "y", "k", "m", "z"] {
        let array = array(session.get(name).unwrap()).unwrap().eval().unwrap();
        session.set(name, array.clone());
    }
    session
}

fn array(value: &Value) -> Option<&NdArray> {
    if let Value::Array(array) = value { Some(array) } else { None }
}

/// Computes every array in `value`, in the order of the items.
fn compute(value: &Value, into: &mut Vec<NdArray>) -> Result<()> {
    match value {
        Value::Array(array) => {
            array.eval()?;
            into.push(array.clone());
        }
        Value::Tuple(items) | Value::List(items) => items.iter().try_for_each(|item| compute(item, into))?,
        _ => {}
    }
    Ok(())
}

/// Runs each statement of `program` and computes its value.
pub fn run(program: &str) -> Result<Vec<NdArray>> {
    thread_local! {
        static BASE: Session = session();
    }
    let names = ["x", "y", "k", "m", "z"];
    let mut session = Session::new();
    BASE.with(|base| names.iter().for_each(|name| session.set(*name, base.get(name).unwrap().clone())));
    let mut arrays = Vec::new();
    for statement in program.split(';') {
        if let Some(value) = session.run(statement.trim()).map_err(Error::from)? {
            compute(&value, &mut arrays)?;
        }
    }
    Ok(arrays)
}

#[test]
fn each_allocation_of_each_family_may_fail() {
    let _exclusive = exclusive();
    let mut counts = BTreeMap::new();
    for &(family, program) in PROGRAMS {
        let expected = run(program).unwrap_or_else(|e| panic!("{program}: {e}"));
        let check = |result: &Result<Vec<NdArray>>, context: &str| {
            let Ok(arrays) = result else { return };
            assert_eq!(arrays.len(), expected.len(), "{context}");
            for (got, want) in arrays.iter().zip(&expected) {
                compare(got, want, Tolerance::EXACT).unwrap_or_else(|e| panic!("{context}: {e}"));
            }
        };
        // A kernel may work without a temporary buffer.
        let is_expected = |error: &Error| matches!(error, Error::OutOfMemory { .. });
        let operations = fail_each(program, FailurePoint::HostMemory, true, || run(program), is_expected, check);
        *counts.entry(family).or_insert(0) += operations;
    }
    println!("failed allocations by family: {counts:?}");
    for (family, count) in counts {
        assert!(count > 0 || ["views", "text"].contains(&family), "{family}: no allocation failed, so the test proves nothing");
    }
}
