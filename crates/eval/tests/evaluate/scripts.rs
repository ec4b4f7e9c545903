//! Statements: assignments, augmented assignments, and pasted scripts.

use cuprum_core::NdArray;
use cuprum_core::ops::python_value::Value;
use cuprum_eval::Session;

use crate::{check, repr_of, session};

#[test]
fn assignments() {
    check(&[
        ("x = y = 3; x + y", "6"),
        ("x = 1; x += 2; x *= 5; x", "15"),
        ("t = (1,); t += (2,); t", "(1, 2)"),
        ("x = zeros(3); y = x; add(f, 1, out=x); x, y", "(array([ 2.,  5., 10.]), array([0., 0., 0.]))"),
        ("x = zeros(3); add(f, 1, x) + x", "array([ 4., 10., 20.])"),
        (
            "x = zeros((2, 3), dtype='float32'); np.multiply(f, 2, out=x); x",
            "array([[ 2.,  8., 18.],\n       [ 2.,  8., 18.]], dtype=float32)",
        ),
        ("xp = zeros(3); xp.fill(7); xp", "array([7., 7., 7.])"),
        ("np = array([3, 1, 2]); np.put(0, 7); np", "array([7, 1, 2])"),
        ("x = i; y = x.sort(); x, y == None, i", "(array([-1,  0,  2]), True, array([ 2,  0, -1]))"),
        ("x = a; x.sort(axis=0, descending=True); x[0]", "array([ 8.,  9., 10., 11.])"),
        ("x = i; x.partition(0); x[0], np.partition(i, 0)[0]", "(array(-1), array(-1))"),
        ("x = i; x.partition([0, 1, 2]); x", "array([-1,  0,  2])"),
        ("x = array([nan, 1.]); y = np.nan_to_num(x, copy=False); x, y", "(array([0., 1.]), array([0., 1.]))"),
        ("x = array([nan, 1.]); np.nan_to_num(x); y = x; np.nan_to_num(x, False, 7); x, y", "(array([7., 1.]), array([nan,  1.]))"),
        (
            "x = array([1, 256], 'u2'); y = x.byteswap(); x.byteswap(inplace=True); x, y",
            "(array([256,   1], dtype=uint16), array([256,   1], dtype=uint16))",
        ),
        ("x = f; x.clip(2, None, x); y = z; y.conj(y); x, y", "(array([2., 4., 9.], dtype=float32), array([3.-4.j, 0.+1.j]))"),
        ("x = None; add(f, 1, out=x); x == None", "True"),
        ("x = zeros((2, 3)); add(f, 1, out=x[1]); np.add.at(x[0], [0, 0], 3); x", "array([[ 6.,  0.,  0.],\n       [ 2.,  5., 10.]])"),
        ("x = array([[3, 1], [2, 0]]); x[0].sort(); x[1, ::-1].sort(); x[:, :1].fill(9); x", "array([[9, 3],\n       [9, 0]])"),
        (
            "x = zeros((2, 2)); y = zeros(4); divmod(f[1:], 3, out=(x[1], y[2:])); x, y[2:]",
            "(array([[0., 0.],\n       [1., 3.]]), array([1., 0.]))",
        ),
        ("x = zeros(3); x[...].fill(2); x", "array([2., 2., 2.])"),
        ("np.add(f, 1, out=np.empty(3))", "array([ 2.,  5., 10.])"),
        ("np.add(f, 1, out=np.empty_like(f))", "array([ 2.,  5., 10.], dtype=float32)"),
        ("np.add(f, 1, out=np.empty(f.shape).reshape(-1))", "array([ 2.,  5., 10.])"),
        ("x = zeros(4); sum(a, 0, out=x); x", "array([12., 15., 18., 21.])"),
        ("x = zeros(4); a.max(axis=0, out=x); x", "array([ 8.,  9., 10., 11.])"),
        ("x = f; np.sqrt(x, out=x); x", "array([1., 2., 3.], dtype=float32)"),
        ("q = zeros(3); r = zeros(3); divmod(f, 2, out=(q, r)); q, r", "(array([0., 2., 4.]), array([1., 0., 1.]))"),
        ("divmod(7, -2), divmod(7.5, 2)", "((-4, -1), (3.0, 1.5))"),
        ("frexp(f)[1]", "array([1, 3, 4], dtype=int32)"),
        ("x = f; x += 1; x", "array([ 2.,  5., 10.], dtype=float32)"),
        ("x = f; x *= 2.5; x.dtype", "dtype('float32')"),
        ("x = f; x += array([1.0, 2.0, 3.0]); x", "array([ 2.,  6., 12.], dtype=float32)"),
        ("x = f; y = x; x **= 2; y", "array([1., 4., 9.], dtype=float32)"),
        ("s = i.sum(); s += 0.5; s", "array(1.5)"),
        ("q, (r, s) = 1, (2, 3); q, r, s", "(1, 2, 3)"),
    ]);
}

#[test]
fn assignments_to_elements() {
    check(&[
        ("f[0] = 5; f", "array([5., 4., 9.], dtype=float32)"),
        ("f[1:] = [7, 8.5]; f", "array([1. , 7. , 8.5], dtype=float32)"),
        ("f[b] = 0; f", "array([0., 4., 0.], dtype=float32)"),
        ("i[[0, 0]] = [5, 6]; i", "array([ 6,  0, -1])"),
        ("a[1:, ::2] += 100; a[1:]", "array([[104.,   5., 106.,   7.],\n       [108.,   9., 110.,  11.]])"),
        ("a[a > 9] *= 0; a[2]", "array([8., 9., 0., 0.])"),
        ("i[1] = 2.9; i", "array([ 2,  2, -1])"),
        ("i[0] += 0.5; i", "array([ 2,  0, -1])"),
        ("a[0][1] = 9; a[0]", "array([0., 9., 2., 3.])"),
        ("a[0][1:][0] += 8; a[0]", "array([0., 9., 2., 3.])"),
        ("x = y = zeros(2); x[0] = 1; x, y", "(array([1., 0.]), array([0., 0.]))"),
        ("x = f[1:]; f[1] = 0; x", "array([4., 9.], dtype=float32)"),
        ("f[0], x = 2, 3; f[0], x", "(array(2., dtype=float32), 3)"),
        ("f[0] = f[1] = 3; f", "array([3., 3., 9.], dtype=float32)"),
        ("k = (1, 2); a[k] = -1; a[1]", "array([ 4.,  5., -1.,  7.])"),
    ]);
    // The index of an augmented assignment is evaluated once.
    let mut session = session();
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let printed = lines.clone();
    session.on_print(move |line| printed.lock().unwrap().push(line.to_owned()));
    session.run("f[1:][print('once') or 0] += 1").unwrap();
    assert_eq!(*lines.lock().unwrap(), ["once"]);
    assert_eq!(session.assigned(), ["f"]);
}

#[test]
fn elements_are_assigned_in_place() {
    let mut session = session();
    session.run("x = zeros(1000)").unwrap();
    let address = |session: &Session| {
        let Some(Value::Array(x)) = session.get("x") else { panic!("no array") };
        x.as_slice::<f64>().unwrap().as_ptr()
    };
    let before = address(&session);
    session.run("x[3] = 1; x[::7] += 2").unwrap();
    assert_eq!(address(&session), before);
}

#[test]
fn assigned_names_come_in_order() {
    let mut session = session();
    session.run("y = 1; x = 2; y += 1; x, w = 3, 4").unwrap();
    assert_eq!(session.assigned(), ["y", "x", "w"]);
    session.run("f[0] = 1; a[1:] += 1; f[1] = 0").unwrap();
    assert_eq!(session.assigned(), ["y", "x", "w", "f", "a"]);
    session.run("v = x").unwrap();
    assert_eq!(session.assigned(), ["y", "x", "w", "f", "a", "v"]);
    assert!(session.run("a + 1; v = 2").unwrap().is_none());
}

#[test]
fn updates_in_place_count_as_assignments() {
    let rows: [(&str, &[&str], Option<&str>); 14] = [
        ("np.put(i, 0, 9)", &["i"], Some("i")),
        ("np.place(f, f > 1, [0])", &["f"], Some("f")),
        ("np.copyto(f, 1)", &["f"], Some("f")),
        ("np.add.at(f, [0], 1)", &["f"], Some("f")),
        ("i.sort(); a.fill(0)", &["i", "a"], Some("a")),
        ("x = a[:3, :3]; np.fill_diagonal(x, 1)", &["x"], Some("x")),
        ("random.default_rng(0).shuffle(i)", &["i"], Some("i")),
        ("np.sqrt(f, out=f)", &["f"], Some("f")),
        ("np.add(a[0], 1, out=a[1])", &["a"], Some("a")),
        ("a[0].sort()", &["a"], Some("a")),
        ("x = zeros(3); y = zeros(3); np.divmod(f, 2, out=(x, y))", &["x", "y"], Some("y")),
        ("y = np.nan_to_num(f, copy=False)", &["f", "y"], Some("y")),
        ("i.sort(); i", &["i"], None),
        ("np.sort(i); f + 1; np.add(f, 1, out=np.empty(3))", &[], None),
    ];
    for (source, assigned, last) in rows {
        let mut session = session();
        session.run(source).unwrap();
        assert_eq!(
            (session.assigned().iter().map(String::as_str).collect::<Vec<_>>(), session.last_assigned()),
            (assigned.to_vec(), last),
            "{source}"
        );
    }
}

#[test]
fn an_error_keeps_earlier_assignments() {
    let mut session = session();
    assert!(session.run("x = 5; y = nope").is_err());
    assert_eq!(session.assigned(), ["x"]);
    assert!(session.get("x").is_some() && session.get("y").is_none());
}

#[test]
fn pasted_code() {
    let source = "import numpy as np\nimport cupy as cp\n\
        # creation and addition\n\
        x_gpu = cp.array([1, 2, 3, 4, 5])\ny_gpu = cp.array([6, 7, 8, 9, 10])\nz_gpu = x_gpu + y_gpu\n\
        z_cpu = cp.asnumpy(z_gpu)\n\
        arr = cp.array([1, 4, 9, 16, 25]); sqrt_arr = cp.sqrt(arr)\n\
        (z_cpu, sqrt_arr.get())";
    assert_eq!(repr_of(source), "(array([ 7,  9, 11, 13, 15]), array([1., 2., 3., 4., 5.]))");
}

#[test]
fn eval_returns_the_last_value_as_an_array() {
    let x = NdArray::from_slice(&[0.0f64, 1.0]).unwrap();
    let y = cuprum_eval::eval("exp(-x**2 / 2)", [("x", &x)]).unwrap();
    assert_eq!(y.to_vec::<f64>().unwrap(), [1.0, (-0.5f64).exp()]);
    assert_eq!(cuprum_eval::eval("[1, 2], [3, 4]", []).unwrap().shape(), [2, 2]);
    assert!(cuprum_eval::eval("x = 3", []).is_err());
    assert!(cuprum_eval::eval("", []).is_err());
    assert!(cuprum_eval::eval("'text'", []).is_err());
}
