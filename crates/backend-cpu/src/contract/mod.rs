//! Contract: products with a vector as reductions, strided, batched matrix products by the `gemm` crate for floats, by
//! blocked loops for integers and bool.
//!
//! Where the plan's strides make no gemm, operands are packed so that they do, and the product is unpacked.

mod exact;
mod floats;
mod vector;

use cuprum_core::array::Array;
use cuprum_core::call;
use cuprum_core::plan::contract::{ContractPlan, Gemm};
use cuprum_core::{Call, Complex, DType, Error, Layout, Outcome, Result, StoredArray, Work, decline};

use self::exact::exact;
use self::floats::floats;
use crate::copy::copy;
use crate::elementwise::half;
use crate::raw::{Elements, ElementsMut, Output};
use crate::threads;

/// Elements of a 16-bit float array that a task converts.
const CONVERTED: usize = 1 << 14;

/// The Contract kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let (Work::Contract(call::Contract { plan }), [a, b]) = (&call.work, call.inputs) else {
        decline!("not a contraction of two operands")
    };
    let out = &call.outputs[0].layout;
    let mut output = Output::allocate(call, 0)?;
    if half::is_half(call.outputs[0].dtype) {
        let (a, b) = (widened(call, a)?, widened(call, b)?);
        let mut wide = Output::beside(call, DType::F32, out.size())?;
        product(call, plan, &a, &b, wide.elements()?)?;
        let wide = wide.elements()?.typed::<f32>();
        let parts = output.elements()?.chunks(CONVERTED).zip(wide.chunks(CONVERTED));
        threads::for_each(parts, out.size(), || (), |_, (part, values)| half::narrow(values, part));
    } else {
        product(call, plan, a, b, output.elements()?)?;
    }
    call.done([output.finish()])
}

/// A 16-bit float array in float32: its elements alone where they lie in one piece, else its buffer.
fn widened(call: &Call, array: &StoredArray) -> Result<StoredArray> {
    let dense = array.layout().is_c_contiguous();
    let values = if dense { Elements::contiguous(array)? } else { Elements::buffer(array)? };
    let layout = if dense { Layout::contiguous(array.shape())? } else { array.layout().clone() };
    let mut wide = Output::beside(call, DType::F32, values.len())?;
    let parts = wide.elements()?.chunks(CONVERTED).enumerate();
    threads::for_each(parts, values.len(), || (), |_, (n, part)| half::widen(values.slice(n * CONVERTED, part.len()), part.typed()));
    StoredArray::new(DType::F32, layout, wide.finish())
}

/// The contraction into `c`, which has the layout of the call's output; operands and product packed where they must be.
fn product(call: &Call, plan: &ContractPlan, a: &StoredArray, b: &StoredArray, mut c: ElementsMut) -> Result<()> {
    let out = &call.outputs[0].layout;
    if let Some(gemm) = plan.gemm(a.layout(), b.layout(), out) {
        if vector::product(&gemm, a, b, out.offset(), c.reborrow())? {
            return Ok(());
        }
        return multiply(&gemm, a, b, out.offset(), c);
    }
    let pack = |x: &StoredArray, is_b: bool| copied(call, x, &Layout::contiguous_in_order(x.shape(), &plan.packed_order(is_b))?);
    let (a, b) = (pack(a, false)?, pack(b, true)?);
    if let Some(gemm) = plan.gemm(a.layout(), b.layout(), out) {
        return multiply(&gemm, &a, &b, out.offset(), c);
    }
    let packed = Layout::contiguous_in_order(out.shape(), &plan.packed_output_order())?;
    let Some(gemm) = plan.gemm(a.layout(), b.layout(), &packed) else {
        return Err(Error::backend("cpu", "contract", "packed operands do not make a matrix product"));
    };
    let mut values = Output::beside(call, c.dtype(), packed.size())?;
    multiply(&gemm, &a, &b, 0, values.elements()?)?;
    copy(&StoredArray::new(c.dtype(), packed, values.finish())?, out, c)
}

/// An array under another layout of the same shape: itself, if that is how it lies, else a copy.
fn copied(call: &Call, x: &StoredArray, layout: &Layout) -> Result<StoredArray> {
    if x.layout().strides() == layout.strides() {
        return Ok(x.clone());
    }
    let mut values = Output::beside(call, x.dtype(), layout.size())?;
    copy(x, layout, values.elements()?)?;
    StoredArray::new(x.dtype(), layout.clone(), values.finish())
}

/// Runs every product of the batch.
fn multiply(g: &Gemm, a: &StoredArray, b: &StoredArray, c_offset: usize, c: ElementsMut) -> Result<()> {
    let (x, y) = (Elements::buffer(a)?, Elements::buffer(b)?);
    let first = [a.layout().offset() as isize, b.layout().offset() as isize, c_offset as isize];
    let batch = Batch { first, extents: &g.batch, strides: [&g.batch_strides[0], &g.batch_strides[1], &g.batch_strides[2]] };
    let one = Product { m: g.m, n: g.n, k: g.k, a: g.a, b: g.b, c: g.c };
    check(&one, &batch, [x.len(), y.len(), c.len()])?;
    match c.dtype() {
        DType::F32 => floats::<f32>(&one, &batch, x, y, c, 0.0, 1.0),
        DType::F64 => floats::<f64>(&one, &batch, x, y, c, 0.0, 1.0),
        DType::C64 => floats::<Complex<f32>>(&one, &batch, x, y, c, Complex::ZERO, Complex::ONE),
        DType::C128 => floats::<Complex<f64>>(&one, &batch, x, y, c, Complex::ZERO, Complex::ONE),
        DType::Bool => exact::<bool>(&one, &batch, x, y, c),
        DType::I8 => exact::<i8>(&one, &batch, x, y, c),
        DType::I16 => exact::<i16>(&one, &batch, x, y, c),
        DType::I32 => exact::<i32>(&one, &batch, x, y, c),
        DType::I64 => exact::<i64>(&one, &batch, x, y, c),
        DType::U8 => exact::<u8>(&one, &batch, x, y, c),
        DType::U16 => exact::<u16>(&one, &batch, x, y, c),
        DType::U32 => exact::<u32>(&one, &batch, x, y, c),
        DType::U64 => exact::<u64>(&one, &batch, x, y, c),
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

/// The products of a batch: where the matrices of each begin, computed from its number.
struct Batch<'a> {
    first: [isize; 3],
    extents: &'a [usize],
    strides: [&'a [isize]; 3],
}

impl Batch<'_> {
    /// Number of products.
    fn len(&self) -> usize {
        self.extents.iter().fold(1, |len, &n| len.saturating_mul(n))
    }

    /// First elements of both operands and of the result of product `n`.
    fn start(&self, n: usize) -> [isize; 3] {
        let (mut at, mut rest) = (self.first, n);
        for (axis, &extent) in self.extents.iter().enumerate().rev() {
            let i = (rest % extent) as isize;
            rest /= extent;
            (0..3).for_each(|k| at[k] += i * self.strides[k][axis]);
        }
        at
    }
}

#[cfg(test)]
impl Batch<'static> {
    /// One product of matrices that begin with their buffers.
    fn one() -> Batch<'static> {
        Batch { first: [0; 3], extents: &[], strides: [&[]; 3] }
    }
}

/// Every element of every product lies inside its buffer; what the unsafe code below rests on.
fn check(p: &Product, batch: &Batch, lens: [usize; 3]) -> Result<()> {
    let spans = [(p.a, [p.m, p.k]), (p.b, [p.k, p.n]), (p.c, [p.m, p.n])];
    for (operand, (steps, extents)) in spans.into_iter().enumerate() {
        let of_matrix = steps.into_iter().zip(extents);
        let of_batch = batch.strides[operand].iter().copied().zip(batch.extents.iter().copied());
        let (mut low, mut high) = (batch.first[operand], batch.first[operand]);
        for (step, extent) in of_matrix.chain(of_batch) {
            let reach = step.saturating_mul(extent as isize - 1);
            (low, high) = (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)));
        }
        if batch.len() > 0 && (low < 0 || high >= lens[operand] as isize) {
            return Err(Error::backend("cpu", "contract", "a matrix reaches outside its buffer"));
        }
    }
    Ok(())
}
