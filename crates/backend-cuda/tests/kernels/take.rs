//! `take` within fused expressions on a real device: the kernels of each family read the table in their one pass. Results are compared with
//! those of unfused calls.

use cuprum_backend_cuda as _;
use cuprum_core::{
    CallRecord, DType, Device, Element, Error, Family, Graph, NdArray, Result, axis, cummax, explain, flatnonzero, full, histogram, s,
    segment_sum, where_, with_fusion, zeros,
};

use crate::try_on_device;

fn array<T: Element>(n: usize, f: impl Fn(usize) -> T) -> Result<NdArray> {
    NdArray::from_slice(&(0..n).map(f).collect::<Vec<T>>())
}

/// Small integers, whose sums are exact in float32.
fn table(n: usize) -> Result<NdArray> {
    array(n, |i| (i * 7919 % 21) as f32 - 10.0)
}

/// Stored indices into a table of `size` elements, every third negative.
fn indices(n: usize, size: usize, dtype: DType) -> Result<NdArray> {
    let at = array(n, |i| (i * 7 % size) as i64 - if i % 3 == 0 { size as i64 } else { 0 })?.astype(dtype)?;
    Ok(at.eval()?.clone())
}

/// Runs `f` fused and compares its bytes with the unfused result. Checks that exactly one call of `family` read a table.
fn in_one_pass(what: &str, family: Family, f: impl Fn() -> Result<NdArray>) -> Result<()> {
    let (got, records) = explain(|| f()?.to_bytes());
    let want = with_fusion(false, || f()?.to_bytes())?;
    assert!(got? == want, "{what}: {records:?}");
    assert!(records.iter().all(|r| r.family != Family::Gather), "{what}: {records:?}");
    let takes = |r: &&CallRecord| r.family == family && r.expression.as_ref().is_some_and(|e| e.contains("take("));
    assert_eq!(records.iter().filter(takes).count(), 1, "{what}: {records:?}");
    Ok(())
}

#[test]
fn every_family_fuses_take() {
    try_on_device(|_| {
        let x = table(1000)?;
        for n in [1usize, 3, 31, 1024, 100_003] {
            let (at, w) = (indices(n, 1000, DType::I32)?, array(n, |i| (i % 13) as f32 - 6.0)?);
            let product = || Ok::<_, Error>(&w * &x.take(&at, 0)?);
            in_one_pass("map", Family::Map, product)?;
            in_one_pass("sum", Family::Reduce, || product()?.sum(()))?;
            in_one_pass("argmax", Family::Reduce, || product()?.argmax(()))?;
            in_one_pass("cumsum", Family::Scan, || product()?.cumsum(0))?;
            in_one_pass("cummax", Family::Scan, || cummax(&product()?, 0))?;
            in_one_pass("places", Family::Select, || flatnonzero(&product()?.greater(0)?))?;
            in_one_pass("histogram", Family::Histogram, || Ok(histogram(&product()?, (16, -50.0, 50.0), None, false)?.0))?;
            let offsets = array(n / 32 + 2, |i| (i * 32).min(n) as i64)?;
            in_one_pass("segments", Family::Reduce, || segment_sum(&product()?, &offsets))?;
            let long = array(2, |i| (i * n) as i64)?;
            in_one_pass("one segment", Family::Reduce, || segment_sum(&product()?, &long))?;
        }
        Ok(())
    });
}

#[test]
fn layouts_of_every_class() {
    try_on_device(|_| {
        let (x, at) = (table(1000)?, indices(90 * 70, 1000, DType::I64)?.reshape([90, 70])?);
        let (same, crossed) = (table(90 * 70)?.reshape([90, 70])?, table(90 * 70)?.reshape([70, 90])?.t()?);
        in_one_pass("flat", Family::Map, || Ok(&same + &x.take(&at, 0)?))?;
        in_one_pass("tiled", Family::Map, || Ok(&crossed + &x.take(&at, 0)?))?;
        in_one_pass("indices across", Family::Map, || Ok(&x.take(&at.t()?, 0)? + &table(70 * 90)?.reshape([70, 90])?))?;
        in_one_pass("strided", Family::Map, || Ok(&x.take(&at.index(s![.., 1..41])?, 0)? * &crossed.index(s![.., ..40])?))?;
        in_one_pass("a view of the table", Family::Map, || Ok(&x.index(s![3..997])?.take(&(&at % 900), 0)? * &same))?;
        in_one_pass("computed indices alone", Family::Map, || x.take(&(&at % 900), 0))?;
        in_one_pass("rows", Family::Rows, || {
            let taken = x.take(&at, 0)?;
            let smallest = taken.min(axis(-1).keepdims())?;
            Ok(taken - smallest)
        })?;
        for axis in [0, 1] {
            in_one_pass("sum of an axis", Family::Reduce, || (&x.take(&at, 0)? * 2).sum(axis))?;
            in_one_pass("cumsum of an axis", Family::Scan, || (&x.take(&at, 0)? * 2).cumsum(axis))?;
        }
        in_one_pass("a table of indices", Family::Map, || {
            let order = array(1000, |i| (999 - i) as i64)?;
            Ok(&x.take(&order.take(&at, 0)?, 0)? + 1)
        })?;
        Ok(())
    });
}

#[test]
fn tables_and_indices_of_every_dtype() {
    try_on_device(|_| {
        let numbers = array(100, |i| (i * 37 % 100) as f64 - 50.0)?;
        for d in DType::ALL {
            let x = numbers.astype(d)?.eval()?.clone();
            for of in [DType::I32, DType::I64] {
                let at = indices(5001, 100, of)?;
                let to = if d == DType::C128 { DType::C64 } else { DType::C128 };
                in_one_pass(d.name(), Family::Map, || x.take(&at, 0)?.astype(to))?;
                in_one_pass(d.name(), Family::Map, || {
                    let element = x.take(&at, 0)?;
                    where_(element.equal(1)?, &element, 0)
                })?;
            }
        }
        for d in DType::ALL.into_iter().filter(|d| d.is_int()) {
            let at = array(1203, |i| (i % 100) as i64)?.astype(d)?.eval()?.clone();
            in_one_pass(d.name(), Family::Map, || Ok(&numbers.take(&at, 0)? + 1))?;
        }
        Ok(())
    });
}

#[test]
fn a_lone_or_shared_take_is_a_separate_call() {
    try_on_device(|_| {
        let (x, at) = (table(1000)?, indices(4000, 1000, DType::I64)?);
        let (alone, records) = explain(|| x.take(&at, 0)?.to_bytes());
        assert_eq!(records.iter().map(|r| (r.op, r.family)).collect::<Vec<_>>(), [("take", Family::Gather)]);
        // Broadcast over rows, it would be read 50 times.
        let rows = table(50 * 4000)?.reshape([50, 4000])?;
        let (_, records) = explain(|| (&rows * &x.take(&at, 0)?).sum(()).and_then(|s| s.item()));
        assert_eq!(records.iter().map(|r| r.family).collect::<Vec<_>>(), [Family::Gather, Family::Reduce]);
        // A second use stores it.
        let taken = x.take(&at, 0)?;
        let (_, records) = explain(|| Ok::<_, Error>((taken.sum(())?, taken.max(())?, taken.min(())?)));
        assert_eq!(records.iter().map(|r| r.family).collect::<Vec<_>>(), [Family::Reduce, Family::Gather, Family::Reduce, Family::Reduce]);
        // With an expression of its shape, it is a second result.
        let taken = x.take(&at, 0)?;
        let (_, records) = explain(|| (&taken * 2).eval().map(drop));
        assert!(!taken.is_deferred() && records.len() == 1, "{records:?}");
        assert_eq!(taken.to_bytes()?, alone?);
        Ok(())
    });
}

#[test]
fn indices_out_of_bounds_are_reported_once() {
    try_on_device(|device: Device| {
        let x = table(1000)?;
        for n in [1usize, 5, 100_000] {
            for (of, index) in
                [(DType::I32, 1000i64), (DType::I32, -1001), (DType::I64, 1 << 40), (DType::I64, -(1 << 40)), (DType::U8, 255)]
            {
                let x = if of == DType::U8 { x.index(s![..255])? } else { x.clone() };
                let size = x.size();
                let at = array(n, |i| if i == n / 2 { index } else { (i % 255) as i64 })?.astype(of)?.eval()?.clone();
                let product = || Ok::<_, Error>(&x.take(&at, 0)? * 2);
                let offsets = array(3, |i| [0, n as i64 / 3, n as i64][i])?;
                let families: [(&str, &dyn Fn() -> Result<NdArray>); 7] = [
                    ("map", &product),
                    ("sum", &|| product()?.sum(())),
                    ("cumsum", &|| product()?.cumsum(0)),
                    ("segments", &|| segment_sum(&product()?, &offsets)),
                    ("histogram", &|| Ok(histogram(&product()?, (16, -50.0, 50.0), None, false)?.0)),
                    ("places", &|| flatnonzero(&product()?.greater(0)?)),
                    ("alone", &|| x.take(&at, 0)),
                ];
                for (what, f) in families {
                    match f().and_then(|a| a.to_bytes()) {
                        Err(Error::Index { op: "take", index: told, axis: 0, size: of }) if told == index && of == size => {}
                        other => panic!("{what} of {n} by {index}: {other:?}"),
                    }
                    device.synchronize()?;
                }
            }
        }
        // With two tables, the error names the right one.
        let (small, at) = (table(10)?, array(100, |i| i as i64 % 20)?);
        let sum = &x.take(&at, 0)? + &small.take(&at, 0)?;
        assert!(matches!(sum.to_bytes(), Err(Error::Index { op: "take", index: 10..=19, size: 10, .. })));
        // An index into an empty table fails at once.
        let none = zeros(0, DType::F32)?;
        assert!(matches!(none.take(&at, 0), Err(Error::Shape { .. })) && x.take(&x, 0).is_err());
        let empty = at.index(s![..0])?;
        assert_eq!((&none.take(&empty, 0)? + 1).size() + segment_sum(&x.take(&empty, 0)?, &array(1, |_| 0i64)?)?.size(), 0);
        Ok(())
    });
}

#[test]
fn a_graph_reads_the_table_again() {
    try_on_device(|_| {
        let (x, w, at) = (table(1000)?, table(6400)?, indices(6400, 1000, DType::I32)?);
        let offsets = array(201, |i| i as i64 * 32)?;
        let step = |x: &NdArray| segment_sum(&(&w * &x.take(&at, 0)?), &offsets);
        let want = step(&x)?.to_bytes()?;
        let (graph, y) = Graph::capture(|| step(&x))?;
        assert!(y.to_bytes()? == want);
        let other = (&x * 3 + 1).eval()?.clone();
        graph.update(&x, &other)?;
        graph.launch()?;
        assert!(y.to_bytes()? == step(&other)?.to_bytes()? && y.to_bytes()? != want);
        // Indices that become invalid between launches are reported by the launch that reads them.
        graph.update(&at, &full(at.shape(), 1000, DType::I32)?)?;
        graph.launch()?;
        assert!(matches!(y.to_bytes(), Err(Error::Index { op: "take", index: 1000, axis: 0, size: 1000 })));
        Ok(())
    });
}
