//! Contract: strided, batched matrix products by the `gemm` crate for floats, by blocked loops for integers and bool.
//!
//! Where the plan's strides make no gemm, operands are packed so that they do, and the product is unpacked.
#![allow(unsafe_code)]

use std::sync::Arc;

use cuprum_core::array::Array;
use cuprum_core::buffer::HostBuffer;
use cuprum_core::plan::contract::{ContractPlan, Gemm};
use cuprum_core::{Call, Complex, DType, Element, Layout, Outcome, Result, StoredArray, Work, bf16, decline, f16, with_dtype};

use crate::copy::copy;
use crate::raw::{Elements, ElementsMut, Output};
use crate::threads;

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
fn product(plan: &ContractPlan, a: &StoredArray, b: &StoredArray, out: &Layout, c: ElementsMut) -> Result<()> {
    if let Some(gemm) = plan.gemm(a.layout(), b.layout(), out) {
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
        return Err(cuprum_core::Error::backend("cpu", "contract", "packed operands do not make a matrix product"));
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
        DType::F16 | DType::BF16 => {}
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
            return Err(cuprum_core::Error::backend("cpu", "contract", "a matrix reaches outside its buffer"));
        }
    }
    Ok(())
}

/// A pointer that tasks share; each writes its own product.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: the tasks' products do not overlap.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn at(self, offset: isize) -> *mut T {
        self.0.wrapping_offset(offset)
    }
}

fn floats<T: Element>(p: &Product, starts: &[[isize; 3]], a: Elements, b: Elements, c: ElementsMut, zero: T, one: T) {
    let (a, b, c) = (a.typed::<T>(), b.typed::<T>(), Shared(c.typed::<T>().as_mut_ptr()));
    let flops = p.m.saturating_mul(p.n).saturating_mul(p.k);
    let run = |start: &[isize; 3], parallelism: gemm::Parallelism| {
        let (pa, pb, pc) = (a.as_ptr().wrapping_offset(start[0]), b.as_ptr().wrapping_offset(start[1]), c.at(start[2]));
        // SAFETY: `check` has shown that all elements lie inside their buffers; c is fresh memory that only this product writes.
        unsafe {
            gemm::gemm(
                p.m,
                p.n,
                p.k,
                pc,
                p.c[1],
                p.c[0],
                false,
                pa,
                p.a[1],
                p.a[0],
                pb,
                p.b[1],
                p.b[0],
                zero,
                one,
                false,
                false,
                false,
                parallelism,
            );
        }
    };
    if starts.len() > 1 && flops < 1 << 22 {
        // Small products: one thread each, several at a time.
        let per_task = ((1 << 18) / flops.max(1)).max(1);
        threads::for_each(
            starts.chunks(per_task),
            flops.saturating_mul(starts.len()),
            || (),
            |_, part| {
                part.iter().for_each(|s| run(s, gemm::Parallelism::None));
            },
        );
    } else {
        for start in starts {
            threads::inside(flops, |n| run(start, if n > 1 { gemm::Parallelism::Rayon(n) } else { gemm::Parallelism::None }));
        }
    }
}

/// Numbers that wrap, and bool.
trait Exact: Element {
    fn multiply_add(acc: Self, a: Self, b: Self) -> Self;
}
macro_rules! exact {
    ($($t:ty)*) => {$( impl Exact for $t {
        #[inline(always)]
        fn multiply_add(acc: $t, a: $t, b: $t) -> $t { acc.wrapping_add(a.wrapping_mul(b)) }
    } )*};
}
exact!(i8 i16 i32 i64 u8 u16 u32 u64);
impl Exact for bool {
    #[inline(always)]
    fn multiply_add(acc: bool, a: bool, b: bool) -> bool {
        acc | (a & b)
    }
}

/// Rows of c, each the sum of rows of b (made contiguous) scaled by elements of a: the inner loop vectorises.
fn exact<T: Exact>(p: &Product, starts: &[[isize; 3]], a: Elements, b: Elements, c: ElementsMut) {
    let (a, b, c) = (a.typed::<T>(), b.typed::<T>(), Shared(c.typed::<T>().as_mut_ptr()));
    let cost = p.m.saturating_mul(p.n).saturating_mul(p.k);
    for start in starts {
        let at = |base: isize, steps: [isize; 2], i: usize, j: usize| (base + i as isize * steps[0] + j as isize * steps[1]) as usize;
        let packed: Vec<T> = (0..p.k).flat_map(|l| (0..p.n).map(move |j| (l, j))).map(|(l, j)| b[at(start[1], p.b, l, j)]).collect();
        threads::for_each(
            0..p.m,
            cost,
            || vec![T::default(); p.n],
            |row, i| {
                row.fill(T::default());
                for (l, b_row) in packed.chunks_exact(p.n).enumerate() {
                    let x = a[at(start[0], p.a, i, l)];
                    row.iter_mut().zip(b_row).for_each(|(acc, &y)| *acc = T::multiply_add(*acc, x, y));
                }
                for (j, &v) in row.iter().enumerate() {
                    // SAFETY: `check` has shown that the element lies inside the output; this task alone has row i.
                    unsafe { *c.at(start[2] + i as isize * p.c[0] + j as isize * p.c[1]) = v };
                }
            },
        );
    }
}
