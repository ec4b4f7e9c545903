//! Operations defined by another crate, with a composite that every device can run.

use cuprum::core::Family;
use cuprum::core::expr::{elementwise, run_as_composite};
use cuprum::core::op::{Cost, OpDef, TypeRule};
use cuprum::{Device, Error, NdArray, Op, Operand, Result, broadcast_to, explain, with_device};

static DOUBLED: OpDef = OpDef {
    name: "doubled",
    family: Family::Map,
    arity: 1,
    index: u16::MAX,
    rule: Some(TypeRule::Promote),
    cost: Cost::Cheap,
    composite: Some(|x, _| run_as_composite(x, |x| x[0].multiply(2))),
    body: None,
    reduction: None,
};

static SCALED_SUM: OpDef = OpDef {
    name: "scaled_sum",
    arity: 3,
    composite: Some(|x, _| run_as_composite(x, |x| cuprum::add(&x[0], x[1].multiply(&x[2])?))),
    ..DOUBLED
};

static UNKNOWN: OpDef = OpDef { name: "unknown", composite: None, ..DOUBLED };

fn apply(row: &'static OpDef, x: &NdArray) -> Result<NdArray> {
    elementwise(Op(row), &[x.into()])
}

fn values() -> NdArray {
    with_device(Device::CPU, || NdArray::from_slice(&[1.0f32, 2.0, 3.0])).unwrap()
}

#[test]
fn the_composite_runs() {
    let (doubled, records) = explain(|| apply(&DOUBLED, &values()).unwrap().to_vec::<f32>().unwrap());
    assert_eq!(doubled, [2.0, 4.0, 6.0]);
    let told: Vec<_> = records.iter().map(|r| (r.op, r.served_by)).collect();
    assert_eq!(told, [("doubled", None), ("multiply", Some("cpu"))]);
}

#[test]
fn the_composite_runs_within_an_expression() {
    let fused = (apply(&DOUBLED, &(&values() + 1)).unwrap() * 10).sum(()).unwrap();
    assert_eq!(fused.item().unwrap(), 180.0);
    let root = apply(&DOUBLED, &values()).unwrap().sqrt().unwrap();
    assert_eq!(root.to_vec::<f32>().unwrap()[1], 2.0);
}

#[test]
fn the_composite_receives_every_argument() {
    // The arguments are the same array twice, or the array and a row that broadcasts, with a scalar.
    let (a, row) = (broadcast_to(&values(), [2, 3]).unwrap(), values().index(cuprum::s![..1]).unwrap());
    let sum = |y: &NdArray, by: Operand| elementwise(Op(&SCALED_SUM), &[(&a).into(), y.into(), by]).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(sum(&a, 10.into()), [11.0, 22.0, 33.0, 11.0, 22.0, 33.0]);
    assert_eq!(sum(&row, 0.5.into()), [1.5, 2.5, 3.5, 1.5, 2.5, 3.5]);
    assert_eq!(sum(&row, (&row).into()), [2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
}

#[test]
fn an_operation_without_composite_and_kernel_is_unsupported() {
    let error = apply(&UNKNOWN, &values()).unwrap().to_vec::<f32>().unwrap_err();
    assert!(matches!(&error, Error::Unsupported { op: "unknown", .. }), "{error}");
}

/// Splits an array at the index that is the parameter.
static SPLIT: OpDef = OpDef {
    name: "split",
    family: Family::Custom,
    rule: None,
    composite: Some(|x, parameters| {
        let at = parameters.and_then(|p| p.downcast_ref::<isize>()).ok_or_else(|| Error::value("split", "no index"))?;
        let a = NdArray::from(x[0].clone());
        Ok([a.index(cuprum::s![..*at])?.stored()?, a.index(cuprum::s![*at..])?.stored()?].into_iter().collect())
    }),
    ..DOUBLED
};

#[test]
fn a_composite_takes_parameters_and_returns_several_results() {
    let input = values().stored().unwrap();
    let outputs = [1, 2].map(|n| cuprum::core::OutputSpec::contiguous(cuprum::DType::F32, &[n]).unwrap());
    let split = |at: isize| {
        cuprum::core::dispatch::run_call(&cuprum::core::Call {
            op: Op(&SPLIT),
            device: Device::CPU,
            stream: cuprum::Stream::current(Device::CPU),
            inputs: std::slice::from_ref(&input),
            outputs: &outputs,
            work: cuprum::core::Work::Custom(cuprum::core::call::Custom(&at)),
        })
    };
    let parts: Vec<Vec<f32>> = split(1).unwrap().into_iter().map(|part| NdArray::from(part).to_vec().unwrap()).collect();
    assert_eq!(parts, [vec![1.0], vec![2.0, 3.0]]);
}
