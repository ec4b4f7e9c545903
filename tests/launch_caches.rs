//! Launch caches: repeated calls among similar ones. Backends cache the launches of each thread, and must not confuse calls that
//! differ in one property. Runs on every device under several orders of accelerators, and compares with the CPU.

use cuprum::{
    DType, Device, Graph, NdArray, Result, Stream, axis, broadcast_to, count_nonzero, explain, s, ufunc, with_accelerators, with_device,
    with_fusion,
};

/// Returns small integers, whose sums are exact in every order.
fn numbers(shape: &[usize], dtype: DType, seed: usize) -> Result<NdArray> {
    let size: usize = shape.iter().product();
    let values = (0..size).map(|i| ((i * 7 + i / 11 + seed) % 13) as f64 - 6.0).collect::<Vec<f64>>();
    NdArray::from_vec(values, shape)?.astype(dtype)?.eval().cloned()
}

type Run = Box<dyn Fn() -> Result<NdArray>>;

/// Returns named reductions and maps of arrays with many layouts.
fn calls() -> Result<Vec<(String, Run)>> {
    let mut list = Vec::new();
    let mut add = |name: String, call: Run| list.push((name, call));
    for dtype in [DType::F32, DType::F64, DType::I32] {
        let line = numbers(&[70_000], dtype, 1)?;
        let (square, other) = (numbers(&[64, 96], dtype, 2)?, numbers(&[64, 96], dtype, 3)?);
        let row = numbers(&[96], dtype, 4)?;
        let views: Vec<(&str, NdArray)> = vec![
            ("contiguous", line.clone()),
            ("short", line.index(s![..1000])?),
            ("shorter", line.index(s![..100])?),
            ("unaligned", line.index(s![1..1001])?),
            ("every other", line.index(s![..2000;2])?),
            ("backwards", line.index(s![..1000;-1])?),
            ("square", square.clone()),
            ("transposed", square.t()?),
            ("part", square.index(s![.., 1..66])?),
            ("repeated", broadcast_to(&row, [64, 96])?),
        ];
        for (name, view) in views {
            let name = |op: &str| format!("{op} of {dtype}, {name}");
            let mut reduce = |op: &str, f: fn(&NdArray) -> Result<NdArray>| {
                let view = view.clone();
                add(name(op), Box::new(move || f(&view)));
            };
            reduce("sum", |a| a.sum(()));
            reduce("max", |a| a.max(()));
            reduce("count", |a| count_nonzero(a, ()));
            reduce("argmax", |a| a.argmax(()));
            reduce("sum in float64", |a| a.sum(axis(()).dtype(DType::F64)));
            reduce("sum of squares", |a| (a * a).sum(()));
            reduce("sum of doubled", |a| (a * 2).sum(()));
            reduce("sum of threefold", |a| (a * 3).sum(()));
            reduce("threefold", |a| Ok(a * 3));
            reduce("variance", |a| a.var(axis(()).dtype(DType::F64)));
            if view.ndim() == 2 {
                reduce("sums of rows", |a| a.sum(1));
                reduce("sums of columns", |a| a.sum(0));
                reduce("column of sums", |a| a.sum(axis(1).keepdims()));
                reduce("largest of rows", |a| a.max(1));
                reduce("running sums", |a| a.cumsum(1));
            }
        }
        add(
            format!("products of {dtype}"),
            Box::new({
                let (square, other) = (square.clone(), other.clone());
                move || (&square * &other).sum(1)
            }),
        );
        add(format!("products of {dtype} with a row"), Box::new(move || (&square * &row).sum(1)));
        add(format!("sum and transposed of {dtype}"), Box::new(move || Ok(&other + &other.index(s![..;-1, ..])?)));
        // Indices on the host, because a capture cannot read values of its device.
        let starts = with_device(Device::CPU, || NdArray::from_slice(&[0, 40, 41, 900]))?;
        add(format!("add.reduceat of {dtype}"), Box::new(move || ufunc::reduceat(&line, &starts, 0, None, ufunc::ADD)));
    }
    Ok(list)
}

fn values(call: &dyn Fn() -> Result<NdArray>) -> Result<Vec<f64>> {
    call()?.astype(DType::F64)?.to_vec()
}

fn check(name: &str, got: Result<Vec<f64>>, want: &[f64], how: &str) {
    let got = got.unwrap_or_else(|e| panic!("{name}, {how}: {e}"));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
    assert!(got.len() == want.len() && got.iter().zip(want).all(near), "{name}, {how}: {got:?}, not {want:?}");
}

#[test]
fn repeated_calls_among_similar_ones_have_the_right_values() -> Result<()> {
    let wanted: Vec<Vec<f64>> = with_device(Device::CPU, || calls()?.iter().map(|(_, call)| values(call)).collect::<Result<_>>())?;
    for device in Device::all() {
        let on_device = || -> Result<()> {
            let calls = calls()?;
            let go_round = |how: &str, step: usize| {
                for n in (0..calls.len()).map(|n| n * step % calls.len()) {
                    check(&calls[n].0, values(&calls[n].1), &wanted[n], &format!("{device}, {how}"));
                }
            };
            for order in ["", "cub", "cutensor,cub"] {
                with_accelerators(order, || {
                    // All calls run twice in one sequence, then in another sequence.
                    go_round(&format!("order '{order}'"), 1);
                    go_round(&format!("order '{order}', again"), 1);
                    go_round(&format!("order '{order}', in fives"), 5);
                })?;
            }
            go_round("default order", 1);
            with_fusion(false, || go_round("without fusion", 1));
            let (_, records) = explain(|| go_round("explained", 1));
            assert!(records.iter().all(|record| record.served_by.is_some()));
            Stream::new(device)?.scope(|| go_round("on a stream", 1));
            if device != Device::CPU {
                for (n, (name, call)) in calls.iter().enumerate() {
                    let (graph, array) = Graph::capture(|| call()?.eval().cloned())?;
                    graph.launch()?;
                    check(name, array.astype(DType::F64)?.to_vec(), &wanted[n], "captured");
                    check(name, values(call), &wanted[n], "after its capture");
                }
            }
            Ok(())
        };
        with_device(device, on_device)?;
    }
    Ok(())
}
