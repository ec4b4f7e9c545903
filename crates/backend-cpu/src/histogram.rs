//! Histogram: how many values fall in each bin, or the sums of their weights.

use cuprum_core::array::Array;
use cuprum_core::{Binning, Call, DType, Element, Outcome, Result, Work, decline};

use crate::raw::{Elements, Output};
use crate::tile::{Compiled, Evaluator, Nest};

/// The Histogram kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let Work::Histogram { program, binning } = &call.work else { decline!("not a histogram") };
    let named = !matches!(binning, Binning::Number { weighted: false });
    let (values, last) = match (named, call.inputs.split_last()) {
        (true, Some((last, values))) => (values, Some(Elements::buffer(last)?.slice(last.layout().offset(), last.layout().size()))),
        _ => (call.inputs, None),
    };
    let size = values.first().map_or(1, |v| v.layout().size());
    let nest = Nest::new(&[size], values, |k| values[k].layout().strides().into())?;
    let compiled = match Compiled::new(program, nest, false) {
        Ok(compiled) => compiled,
        Err(reason) => return Ok(Outcome::Declined(reason)),
    };
    let mut output = Output::zeroed(call, 0)?;
    let out = output.elements()?;
    match (binning, last) {
        (Binning::Number { weighted: true }, Some(weights)) => {
            let (out, weights) = (out.typed::<f64>(), weights.typed::<f64>());
            each::<i64>(&compiled, size, |i, n| {
                if let Some(sum) = out.get_mut(n as usize) {
                    *sum += weights[i];
                }
            });
        }
        (Binning::Edges { .. }, Some(edges)) if edges.dtype() == DType::F32 => between(&compiled, size, edges.typed::<f32>(), out.typed()),
        (Binning::Edges { .. }, Some(edges)) if edges.dtype() == DType::F64 => between(&compiled, size, edges.typed::<f64>(), out.typed()),
        (Binning::Number { weighted: false }, None) => {
            let out = out.typed::<i64>();
            each::<i64>(&compiled, size, |_, n| {
                if let Some(count) = out.get_mut(n as usize) {
                    *count += 1;
                }
            });
        }
        _ => decline!("bins of another dtype"),
    }
    call.done([output.finish()])
}

/// Calls `body` with the number of each point and its value.
fn each<T: Element>(compiled: &Compiled, size: usize, mut body: impl FnMut(usize, T)) {
    let mut evaluator = Evaluator::new(compiled);
    for start in (0..size).step_by(compiled.tile()) {
        let values = evaluator.read(start, compiled.tile().min(size - start)).typed::<T>();
        values.iter().enumerate().for_each(|(i, &v)| body(start + i, v));
    }
}

fn between<T: Element + PartialOrd>(compiled: &Compiled, size: usize, edges: &[T], counts: &mut [i64]) {
    let Some((&last, left)) = edges.split_last() else { return };
    each::<T>(compiled, size, |_, v| {
        let after = left.partition_point(|edge| *edge <= v);
        if after > 0 && v <= last {
            counts[after - 1] += 1;
        }
    });
}
