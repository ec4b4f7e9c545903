//! Row programs: reductions over rows that are deferred and fused with the operations around them. A test kernel for rows shows
//! which expressions become one call, and values are compared with those without fusion.

use cuprum::core::call;
use std::cell::Cell;
use std::sync::Arc;

use cuprum::core::device::Buffer;
use cuprum::core::host_buffer::HostBuffer;
use cuprum::core::ops::elementwise as map;
use cuprum::core::ops::reduce::{MAX, MIN, SUM};
use cuprum::core::program::StepKind;
use cuprum::core::{Accelerator, Availability, Call, Capability, DTypeSet, Family, Kernel, Outcome, Registration, Work, decline};
use cuprum::random::Generator;
use cuprum::{AxisOptions, CallRecord, DType, Device, NdArray, Result, axis, exp, explain, log, with_device, with_fusion};

/// A simple accelerator for row programs of float64 with some operations.
static ROWWISE: Accelerator = Accelerator {
    name: "rowwise",
    device: "cpu",
    rank: 50,
    summary: "rows, one after the other",
    probe: || Availability::Ready(String::new()),
    kernels: &[Kernel::new(Family::Rows, run)
        .only_dtypes(DTypeSet::of(&[DType::F64, DType::F32]))
        .with_capabilities(&[Capability::RowPrograms])],
    base: None,
};

cuprum::core::inventory::submit! { Registration(&ROWWISE) }

thread_local! {
    /// Number of reductions in the last program.
    static FOLDS: Cell<usize> = const { Cell::new(0) };
}

type Scalars = fn(f64, f64) -> f64;

fn run(call: &Call) -> Result<Outcome> {
    let Work::Rows(call::RowProgram { program, plan }) = call.work else { decline!("not work on rows") };
    if call.inputs.iter().any(|a| NdArray::from(a.clone()).dtype() == DType::F32) {
        decline!("float32 is not supported by this test");
    }
    FOLDS.set(program.row_reductions().count());
    let inputs = call.inputs.iter().map(|a| NdArray::from(a.clone()).to_vec::<f64>()).collect::<Result<Vec<_>>>()?;
    let mut outputs: Vec<Vec<f64>> = vec![Vec::new(); call.outputs.len()];
    for row in 0..plan.rows {
        let mut values: Vec<Vec<f64>> = Vec::new();
        for step in &program.steps {
            let arg = |n: usize, i: usize| values[step.args[n] as usize][i];
            let all = 0..plan.length;
            let value: Vec<f64> = match step.kind {
                StepKind::Input(k) => inputs[k as usize][row * plan.length..][..plan.length].to_vec(),
                StepKind::Param(k) => vec![program.params[k as usize].as_f64(); plan.length],
                StepKind::Cast => all.map(|i| arg(0, i)).collect(),
                StepKind::Fold(op) => {
                    let fold: Scalars = match op {
                        op if op == SUM => |a, b| a + b,
                        op if op == MAX => f64::max,
                        op if op == MIN => f64::min,
                        op => decline!("{op:?}"),
                    };
                    vec![all.map(|i| arg(0, i)).reduce(fold).unwrap_or(0.0); plan.length]
                }
                StepKind::Apply(op) => {
                    let known: [(_, Scalars); 8] = [
                        (map::SUBTRACT, |a, b| a - b),
                        (map::ADD, |a, b| a + b),
                        (map::MULTIPLY, |a, b| a * b),
                        (map::DIVIDE, |a, b| a / b),
                        (map::EXP, |a, _| a.exp()),
                        (map::LOG, |a, _| a.ln()),
                        (map::SQRT, |a, _| a.sqrt()),
                        (map::SQUARE, |a, _| a * a),
                    ];
                    let Some((_, f)) = known.iter().find(|(known, _)| *known == op) else { decline!("{op:?}") };
                    let last = op.arity() - 1;
                    all.map(|i| f(arg(0, i), arg(last, i))).collect()
                }
            };
            values.push(value);
        }
        for (n, (output, &step)) in outputs.iter_mut().zip(&program.outputs).enumerate() {
            let count = if plan.row_strides[inputs.len() + n] == 0 { 1 } else { plan.length };
            output.extend(&values[step as usize][..count]);
        }
    }
    let buffers = outputs.iter().map(|o| HostBuffer::from_slice(o).map(|b| Arc::new(b) as Arc<dyn Buffer>));
    call.outcome_from_buffers(buffers.collect::<Result<Vec<_>>>()?)
}

fn rows() -> AxisOptions {
    axis(-1).keepdims()
}

fn numbers(shape: &[usize], dtype: DType) -> NdArray {
    with_device(Device::CPU, || Generator::new(1).normal(1.0, 2.0, shape, dtype)).unwrap()
}

fn softmax(x: &NdArray) -> Result<NdArray> {
    let e = exp(x - x.max(rows())?)?;
    let sum = e.sum(rows())?;
    Ok(e / sum)
}

/// Returns the evaluated array and the records of its calls.
fn recorded(f: impl FnOnce() -> Result<NdArray>) -> (NdArray, Vec<CallRecord>) {
    let (value, records) = explain(|| f().and_then(|a| a.eval().cloned()));
    (value.unwrap(), records)
}

fn families(records: &[CallRecord]) -> Vec<Family> {
    records.iter().map(|r| r.family).collect()
}

fn assert_same(a: &NdArray, b: &NdArray) {
    let [a, b] = [a, b].map(|x| x.astype(DType::F64).unwrap().to_vec::<f64>().unwrap());
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-6 * b.abs().max(1.0)), "{a:?}\n{b:?}");
}

#[test]
fn reductions_broadcast_back_are_one_call() {
    type Way<'a> = &'a dyn Fn() -> Result<NdArray>;
    let x = numbers(&[3, 4, 50], DType::F64);
    let gamma = numbers(&[50], DType::F64);
    let ways: [(&str, usize, Way); 6] = [
        ("softmax", 2, &|| softmax(&x)),
        ("normal", 2, &|| Ok((&x - x.mean(rows())?) / x.std(rows())?)),
        ("layer norm", 2, &|| Ok(&gamma * ((&x - x.mean(rows())?) / (x.var(rows().correction(1.0))? + 1e-5).sqrt()?) + 1)),
        ("min-max", 2, &|| Ok((&x - x.min(rows())?) / (x.max(rows())? - x.min(rows())?))),
        ("range", 2, &|| Ok(x.max(rows())? - x.min(rows())?)),
        ("logsumexp", 2, &|| Ok(log(exp(&x - x.max(rows())?)?.sum(rows())?)? + x.max(rows())?)),
    ];
    let (_, records) = recorded(|| softmax(&x));
    assert_eq!(records[0].bytes, 2 * x.nbytes(), "exponentials without another handle are not stored");
    for (name, folds, f) in ways {
        let (value, records) = recorded(f);
        assert_eq!(families(&records), [Family::Rows], "{name}: {records:#?}");
        assert_eq!((records[0].served_by, FOLDS.get()), (Some("rowwise"), folds), "{name}: each sum is computed once");
        let (plain, records) = recorded(|| with_fusion(false, f));
        assert!(!families(&records).contains(&Family::Rows), "{name}");
        assert_eq!(value.shape(), plain.shape(), "{name}");
        assert_same(&value, &plain);
    }
}

#[test]
fn shared_row_reductions_are_outputs_of_the_same_call() {
    let x = numbers(&[7, 20], DType::F64);
    let (mean, max) = (x.mean(rows()).unwrap(), x.max(rows()).unwrap());
    assert!(mean.is_deferred() && max.is_deferred());
    let (value, records) = recorded(|| Ok((&x - &mean) / &max));
    assert_eq!(families(&records), [Family::Rows]);
    assert!(!mean.is_deferred() && !max.is_deferred());
    with_fusion(false, || {
        assert_same(&mean, &x.mean(rows()).unwrap());
        assert_same(&max, &x.max(rows()).unwrap());
        assert_same(&value, &((&x - &mean) / &max));
    });
}

#[test]
fn a_reduction_alone_is_a_reduction() {
    let x = numbers(&[7, 20], DType::F64);
    for f in [|x: &NdArray| x.sum(rows()), |x: &NdArray| Ok(x.sum(rows())? * 2), |x: &NdArray| x.max(rows())?.sum(())] {
        let (value, records) = recorded(|| f(&x));
        assert!(families(&records).contains(&Family::Reduce) && !families(&records).contains(&Family::Rows), "{records:#?}");
        assert_same(&value, &with_fusion(false, || f(&x)).unwrap());
    }
    // A reduction with a nested row reduction is a row program.
    let (value, records) = recorded(|| exp(&x - x.max(rows())?)?.sum(rows()));
    assert_eq!(families(&records), [Family::Rows]);
    assert_same(&value, &with_fusion(false, || exp(&x - x.max(rows())?)?.sum(rows())).unwrap());
}

#[test]
fn reductions_that_are_not_deferred() {
    let at_once = |shape: &[usize], over: AxisOptions| !numbers(shape, DType::F64).sum(over).unwrap().is_deferred();
    assert!(at_once(&[5, 6], axis(-1)), "without keepdims it cannot be broadcast back");
    assert!(at_once(&[5, 6], axis(0).keepdims()), "columns");
    assert!(at_once(&[5, 6, 7], axis([0, 2]).keepdims()), "axes that are not the last ones");
    assert!(at_once(&[5, 1], rows()) && at_once(&[2, 32769], rows()), "rows that are too short or too long");
    assert!(with_fusion(false, || at_once(&[5, 6], rows())));
    assert!(!at_once(&[5, 6], rows()) && !at_once(&[5, 6, 7], axis([2, 1]).keepdims()));
    assert!(!numbers(&[5, 6], DType::F64).argmax(rows()).unwrap().is_deferred());
}

#[test]
fn if_every_kernel_declines_each_reduction_runs_alone() {
    // The CPU's kernel declines strided rows too.
    let x = numbers(&[30, 6], DType::F32).t().unwrap();
    let (value, records) = recorded(|| softmax(&x));
    assert_eq!(families(&records)[0], Family::Rows);
    assert!(records[0].served_by.is_none() && records[0].declined[0].1.contains("not supported by this test"), "{records:#?}");
    assert!(records.iter().all(|r| (r.family == Family::Rows) == r.served_by.is_none()), "{records:#?}");
    assert!(families(&records).contains(&Family::Reduce));
    assert_same(&value, &with_fusion(false, || softmax(&x)).unwrap());
    let (alone, _) = recorded(|| exp(&x - x.max(rows())?)?.sum(rows()));
    assert_same(&alone, &with_fusion(false, || exp(&x - x.max(rows())?)?.sum(rows())).unwrap());
}

#[test]
fn reductions_of_other_shapes_run_first() {
    let (x, y) = (numbers(&[4, 6, 10], DType::F64), numbers(&[6, 10], DType::F64));
    let check = |f: &dyn Fn() -> Result<NdArray>| {
        let (value, records) = recorded(f);
        assert_same(&value, &with_fusion(false, f).unwrap());
        families(&records)
    };
    check(&|| Ok(&x - y.sum(rows())?));
    check(&|| Ok((&x - y.sum(rows())?) / x.sum(rows())?));
    check(&|| Ok(&x * softmax(&y)?));
    check(&|| Ok((&x - x.sum(axis([1, 2]).keepdims())?) / x.sum(rows())?));
    check(&|| Ok((&y + numbers(&[6, 3], DType::F64).sum(rows())?) / y.max(rows())?));
    check(&|| softmax(&x)?.sum(-1));
    check(&|| softmax(&x)?.cumsum(-1));
    check(&|| softmax(&x)?.t());
    assert!(check(&|| softmax(&softmax(&y)?)).iter().all(|f| *f != Family::Reduce), "too many operations for one pass, not for two");
}

#[test]
fn expressions_do_not_grow_without_limit() {
    let x = numbers(&[5, 8], DType::F64);
    let centre = || {
        let mut y = x.clone();
        for k in 0..40 {
            y = (&y - y.mean(rows())?) * 1.5 + k;
        }
        Ok(y)
    };
    let (value, records) = recorded(centre);
    assert!(records.len() < 200, "{}", records.len());
    assert_same(&(value / 1e7), &(with_fusion(false, centre).unwrap() / 1e7));
}
