//! Contract: products with a vector as reductions, strided, batched matrix products by the `gemm` crate for floats, by
//! blocked loops for integers and bool.
//!
//! Where the plan's strides make no gemm, operands are packed so that they do, and the product is unpacked.

mod exact;
mod floats;
mod vector;

use std::sync::Arc;

use cuprum_core::array::Array;
use cuprum_core::buffer::HostBuffer;
use cuprum_core::plan::contract::{ContractPlan, Gemm};
use cuprum_core::{Call, Complex, DType, Error, Layout, Outcome, Result, StoredArray, Work, bf16, decline, f16, with_dtype};

use self::exact::exact;
use self::floats::floats;
use crate::copy::copy;
use crate::raw::{Elements, ElementsMut, Output};

/// The Contract kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Contract { plan }, [a, b]) = (&call.work, call.inputs) else { decline!("not a contraction of two operands") };
    let out = &call.outputs[0].layout;
    let mut output = Output::allocate(call, 0)?;
    if matches!(call.outputs[0].dtype, DType::F16 | DType::BF16) {
        let (a, b) = (widened(a)?, widened(b)?);
        let mut wide = vec![0f32; out.size()];
        product(plan, &a, &b, out, ElementsMut::of(&mut wide))?;
        match output.elements()?.dtype() {
            DType::F16 => output.elements()?.typed::<f16>().iter_mut().zip(&wide).for_each(|(o, w)| *o = f16::from_f32(*w)),
            _ => output.elements()?.typed::<bf16>().iter_mut().zip(&wide).for_each(|(o, w)| *o = bf16::from_f32(*w)),
        }
    } else {
        product(plan, a, b, out, output.elements()?)?;
    }
    call.done([output.finish()])
}

/// A 16-bit float array in float32, under the same layout.
fn widened(array: &StoredArray) -> Result<StoredArray> {
    let elements = Elements::buffer(array)?;
    let wide: Vec<f32> = match array.dtype() {
        DType::F16 => elements.typed::<f16>().iter().map(|v| v.to_f32()).collect(),
        _ => elements.typed::<bf16>().iter().map(|v| v.to_f32()).collect(),
    };
    StoredArray::new(DType::F32, array.layout().clone(), Arc::new(HostBuffer::from_slice(&wide)?))
}

/// The contraction into `c`, which has the layout `out`; operands and product packed where they must be.
fn product(plan: &ContractPlan, a: &StoredArray, b: &StoredArray, out: &Layout, mut c: ElementsMut) -> Result<()> {
    if let Some(gemm) = plan.gemm(a.layout(), b.layout(), out) {
        if vector::product(&gemm, a, b, out.offset(), c.reborrow())? {
            return Ok(());
        }
        return multiply(&gemm, a, b, out.offset(), c);
    }
    let pack = |x: &StoredArray, is_b: bool| -> Result<StoredArray> {
        let layout = Layout::contiguous_in_order(x.shape(), &plan.packed_order(is_b))?;
        copied(x, &layout)
    };
    let (a, b) = (pack(a, false)?, pack(b, true)?);
    if let Some(gemm) = plan.gemm(a.layout(), b.layout(), out) {
        return multiply(&gemm, &a, &b, out.offset(), c);
    }
    let packed = Layout::contiguous_in_order(out.shape(), &plan.packed_output_order())?;
    let Some(gemm) = plan.gemm(a.layout(), b.layout(), &packed) else {
        return Err(Error::backend("cpu", "contract", "packed operands do not make a matrix product"));
    };
    with_dtype!(c.dtype(), T => {
        let mut values = vec![T::default(); packed.size()];
        multiply(&gemm, &a, &b, 0, ElementsMut::of(&mut values))?;
        let product = StoredArray::new(c.dtype(), packed, Arc::new(HostBuffer::from_slice(&values)?))?;
        copy(&product, out, c)
    })
}

/// A copy of an array under another layout of the same shape.
fn copied(x: &StoredArray, layout: &Layout) -> Result<StoredArray> {
    with_dtype!(x.dtype(), T => {
        let mut values = vec![T::default(); layout.size()];
        copy(x, layout, ElementsMut::of(&mut values))?;
        StoredArray::new(x.dtype(), layout.clone(), Arc::new(HostBuffer::from_slice(&values)?))
    })
}

/// Runs every product of the batch.
fn multiply(g: &Gemm, a: &StoredArray, b: &StoredArray, c_offset: usize, c: ElementsMut) -> Result<()> {
    let (x, y) = (Elements::buffer(a)?, Elements::buffer(b)?);
    let place = |array: &StoredArray| array.layout().offset() as isize;
    let count: usize = g.batch.iter().product();
    let starts: Vec<[isize; 3]> = (0..count)
        .map(|n| {
            let mut at = [place(a), place(b), c_offset as isize];
            let mut rest = n;
            for axis in (0..g.batch.len()).rev() {
                let i = (rest % g.batch[axis]) as isize;
                rest /= g.batch[axis];
                (0..3).for_each(|k| at[k] += i * g.batch_strides[k][axis]);
            }
            at
        })
        .collect();
    let one = Product { m: g.m, n: g.n, k: g.k, a: g.a, b: g.b, c: g.c };
    check(&one, &starts, [x.len(), y.len(), c.len()])?;
    match c.dtype() {
        DType::F32 => floats::<f32>(&one, &starts, x, y, c, 0.0, 1.0),
        DType::F64 => floats::<f64>(&one, &starts, x, y, c, 0.0, 1.0),
        DType::C64 => floats::<Complex<f32>>(&one, &starts, x, y, c, Complex::ZERO, Complex::ONE),
        DType::C128 => floats::<Complex<f64>>(&one, &starts, x, y, c, Complex::ZERO, Complex::ONE),
        DType::Bool => exact::<bool>(&one, &starts, x, y, c),
        DType::I8 => exact::<i8>(&one, &starts, x, y, c),
        DType::I16 => exact::<i16>(&one, &starts, x, y, c),
        DType::I32 => exact::<i32>(&one, &starts, x, y, c),
        DType::I64 => exact::<i64>(&one, &starts, x, y, c),
        DType::U8 => exact::<u8>(&one, &starts, x, y, c),
        DType::U16 => exact::<u16>(&one, &starts, x, y, c),
        DType::U32 => exact::<u32>(&one, &starts, x, y, c),
        DType::U64 => exact::<u64>(&one, &starts, x, y, c),
        // `run` has widened them.
        half @ (DType::F16 | DType::BF16) => return Err(Error::backend("cpu", "contract", format!("{half} reached a matrix product"))),
    }
    Ok(())
}

/// One matrix product: extents, and the row and column steps of each matrix.
struct Product {
    m: usize,
    n: usize,
    k: usize,
    a: [isize; 2],
    b: [isize; 2],
    c: [isize; 2],
}

/// Every element of every product lies inside its buffer; what the unsafe code below rests on.
fn check(p: &Product, starts: &[[isize; 3]], lens: [usize; 3]) -> Result<()> {
    let spans = [(p.a, [p.m, p.k]), (p.b, [p.k, p.n]), (p.c, [p.m, p.n])];
    for (operand, (steps, extents)) in spans.into_iter().enumerate() {
        let reach = [0, 1].map(|i| steps[i].saturating_mul(extents[i] as isize - 1));
        let (low, high): (isize, isize) = (reach.iter().map(|r| r.min(&0)).sum(), reach.iter().map(|r| r.max(&0)).sum());
        if starts.iter().any(|s| s[operand] + low < 0 || s[operand] + high >= lens[operand] as isize) {
            return Err(Error::backend("cpu", "contract", "a matrix reaches outside its buffer"));
        }
    }
    Ok(())
}
