//! Calls that cub declines.

use cuprum_backend_cub::coverage_table;
use cuprum_core::{CallRecord, Complex, NdArray, Result, bincount, cummax, explain, s, segment_sort, segment_sum, with_accelerators};

use crate::{numbers, on_device, served};

/// A reason to decline, and a call for which cub gives it.
type Decline<'a> = (&'a str, Box<dyn Fn() -> Result<NdArray> + 'a>);

#[test]
fn the_base_accelerator_serves_declined_calls() {
    on_device(|| {
        let x = numbers(6400);
        let a = NdArray::from_vec(&x, [80, 80])?;
        let line = NdArray::from_slice(&x)?;
        let z = NdArray::from_slice(&x.chunks(2).map(|p| Complex::new(p[0], p[1].round())).collect::<Vec<_>>())?;
        let small = NdArray::from_slice(&x.iter().map(|x| (x.abs() * 9.0) as i32).collect::<Vec<_>>())?;
        let offsets = NdArray::from_slice(&[0i64, 5, 5, 3000, 6400])?;
        let cases: Vec<Decline> = vec![
            ("the reduced axis is not the last one", Box::new(|| a.sum(0))),
            ("not contiguous along the reduced axis", Box::new(|| a.index(s![.., ..;2])?.max(1))),
            ("one element per result", Box::new(|| a.reshape([6400, 1])?.sum(1))),
            ("min of complex128: complex numbers are only added and multiplied", Box::new(|| z.min(()))),
            ("argmax of complex128: complex numbers are only added and multiplied", Box::new(|| z.argmax(()))),
            ("does not declare variances", Box::new(|| a.var(1))),
            ("6400 values in 4 segments are too few for three kernels", Box::new(|| segment_sum(&line, &offsets))),
            ("segments: only the base accelerator sorts them", Box::new(|| segment_sort(&line, &offsets))),
            ("not contiguous along the scanned axis", Box::new(|| line.index(s![..;-1])?.cumsum(0))),
            ("rows of 80 elements are too short for a block each", Box::new(|| a.cumprod(1))),
            ("only 2 adjacent columns", Box::new(|| a.reshape([3200, 2])?.cumsum(0))),
            ("columns of 20 elements are too short", Box::new(|| a.reshape([20, 320])?.cumsum(0))),
            ("cummax of complex128: complex numbers are only added and multiplied", Box::new(|| cummax(&z, 0))),
            ("weights: atomic additions would add them in a different order each time", Box::new(|| bincount(&small, Some(&line), 0))),
        ];
        for (why, run) in &cases {
            let (array, records) = explain(|| run().and_then(|a| a.eval().cloned()));
            let array = array?;
            let says = |record: &CallRecord| {
                record.served_by != Some("cub") && record.declined.iter().any(|(accelerator, w)| *accelerator == "cub" && w.contains(why))
            };
            let said: Vec<String> = records.iter().map(|r| r.to_string()).collect();
            assert!(records.iter().any(says), "{why}: {}", said.join("\n"));
            let alone = with_accelerators("", || run()?.to_bytes())??;
            assert!(array.to_bytes()? == alone, "{why}: the result differs from that of the base accelerator");
        }
        // Arg-reductions decline unless the accelerator order names cub.
        let (indices, records) = with_accelerators(None::<&str>, || explain(|| a.argmax(1)?.to_vec::<i64>()))?;
        assert!(
            records.iter().any(|r| r.served_by == Some("cuda") && r.declined.iter().any(|(_, w)| w.contains("an order that names cub")))
        );
        assert_eq!(indices?, served::<i64>(|| a.argmax(1))?);
        // Every reason in the coverage table has a case above.
        for listed in coverage_table()? {
            let Some(why) = &listed.declined else { continue };
            let tail = |text: &str| text.rsplit(": ").next().unwrap_or_default().to_owned();
            let common = |case: &str| why.contains(case) || tail(why) == tail(case);
            assert!(cases.iter().any(|(case, _)| common(case)), "{} of {}: {why}", listed.op.name(), listed.dtype);
        }
        Ok(())
    });
}
