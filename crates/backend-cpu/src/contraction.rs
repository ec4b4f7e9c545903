//! Kernel of the family `Contract`: tensor contractions as strided, batched matrix products. Floats use the `gemm` crate, integers and bool
//! use blocked loops, and products with a vector are computed as reductions.
//!
//! Operands whose strides do not form a matrix product are first packed into contiguous copies. If the strides of the output do not form a
//! matrix product, the result is computed in a temporary and then copied to the output.

mod float_products;
mod integer_products;
mod matrix_vector;
mod product_batch;
mod sliding_windows;

use cuprum_core::array::Array;
use cuprum_core::call;
use cuprum_core::plan::contract::{ContractPlan, Gemm};
use cuprum_core::{Call, Complex, DType, Error, Layout, Outcome, Result, StoredArray, Work, decline};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, Output};
use cuprum_cpu_elementwise::half;

use self::float_products::multiply_floats;
use self::integer_products::multiply_integers;
use self::product_batch::{MatrixProductLayout, ProductBatch, check_matrix_bounds};
use crate::copy::copy_to_region;

/// Maximum ratio of the size of an operand's buffer range to its number of elements, for a conversion of the whole range to float32.
/// Operands with a larger range are first copied to C order.
const MAX_BUFFER_RANGE_PER_ELEMENT: usize = 4;
/// Number of elements that one task converts when a 16-bit float array is converted to float32.
const CONVERTED_ELEMENTS_PER_TASK: usize = 1 << 14;

/// Computes the output of `call`, a tensor contraction.
pub(crate) fn compute_contraction(call: &Call) -> Result<Outcome> {
    let (Work::Contract(call::Contract { plan }), [a, b]) = (&call.work, call.inputs) else {
        decline!("not a contraction of two operands")
    };
    let out = &call.outputs[0].layout;
    let mut output = Output::allocate(call, 0)?;
    if half::is_half(call.outputs[0].dtype) {
        let (a, b) = (convert_half_to_float32(call, a)?, convert_half_to_float32(call, b)?);
        let mut wide = Output::allocate_scratch(call, DType::F32, out.size())?;
        contract_into(call, plan, &a, &b, wide.elements_mut()?)?;
        let wide = wide.elements_mut()?.typed_slice::<f32>();
        let parts = output.elements_mut()?.chunks(CONVERTED_ELEMENTS_PER_TASK).zip(wide.chunks(CONVERTED_ELEMENTS_PER_TASK));
        threads::for_each(parts, out.size(), || (), |_, (part, values)| half::round_float32_to_half(values, part));
    } else {
        contract_into(call, plan, a, b, output.elements_mut()?)?;
    }
    call.outcome_from_buffers([output.into_buffer()])
}

/// Returns the 16-bit float `array` converted to float32. Keeps the strides, and converts the whole range of the buffer that the layout
/// covers. If that range is much larger than the array, converts a copy in C order instead.
fn convert_half_to_float32(call: &Call, array: &StoredArray) -> Result<StoredArray> {
    let range = |array: &StoredArray| {
        let (low, high) = array.layout().buffer_range();
        (low as usize, (high - low) as usize)
    };
    let packed;
    let mut source = array;
    if range(array).1 > array.size().saturating_mul(MAX_BUFFER_RANGE_PER_ELEMENT) {
        packed = copy_to_layout(call, array, &Layout::contiguous(array.shape())?)?;
        source = &packed;
    }
    let (start, len) = range(source);
    let values = Elements::from_whole_buffer(source)?.slice(start, len);
    let layout = source.layout().with_offset(source.layout().offset() - start);
    let mut wide = Output::allocate_scratch(call, DType::F32, values.len())?;
    let parts = wide.elements_mut()?.chunks(CONVERTED_ELEMENTS_PER_TASK).enumerate();
    threads::for_each(
        parts,
        values.len(),
        || (),
        |_, (n, part)| half::widen_half_to_float32(values.slice(n * CONVERTED_ELEMENTS_PER_TASK, part.len()), part.typed_slice()),
    );
    StoredArray::new(DType::F32, layout, wide.into_buffer())
}

/// Contracts `a` and `b` into `c`, whose layout is the output layout of `call`. Operands whose strides do not form a matrix product are
/// first copied to a contiguous layout. If the strides of the result do not form one, the result is computed in a temporary and copied to
/// `c`.
fn contract_into(call: &Call, plan: &ContractPlan, a: &StoredArray, b: &StoredArray, mut c: ElementsMut) -> Result<()> {
    let out = &call.outputs[0].layout;
    if let Some(gemm) = plan.as_gemm(a.layout(), b.layout(), out) {
        if matrix_vector::try_multiply_matrix_vector(&gemm, a, b, out.offset(), c.reborrow())? {
            return Ok(());
        }
        return multiply_matrix_batch(&gemm, a, b, out.offset(), c);
    }
    let pack = |x: &StoredArray, is_b: bool| {
        copy_to_layout(call, x, &Layout::contiguous_in_order(x.shape(), &plan.packed_operand_axis_order(is_b))?)
    };
    let (a, b) = (pack(a, false)?, pack(b, true)?);
    if let Some(gemm) = plan.as_gemm(a.layout(), b.layout(), out) {
        return multiply_matrix_batch(&gemm, &a, &b, out.offset(), c);
    }
    let packed = Layout::contiguous_in_order(out.shape(), &plan.packed_output_axis_order())?;
    let Some(gemm) = plan.as_gemm(a.layout(), b.layout(), &packed) else {
        return Err(Error::backend("cpu", "contract", "packed operands do not make a matrix product"));
    };
    let mut values = Output::allocate_scratch(call, c.dtype(), packed.size())?;
    multiply_matrix_batch(&gemm, &a, &b, 0, values.elements_mut()?)?;
    copy_to_region(&StoredArray::new(c.dtype(), packed, values.into_buffer())?, out, c)
}

/// Returns `x` in the memory layout `layout`, whose shape is the shape of `x`. Copies the elements unless `x` already has these strides.
fn copy_to_layout(call: &Call, x: &StoredArray, layout: &Layout) -> Result<StoredArray> {
    if x.layout().strides() == layout.strides() {
        return Ok(x.clone());
    }
    let mut values = Output::allocate_scratch(call, x.dtype(), layout.size())?;
    copy_to_region(x, layout, values.elements_mut()?)?;
    StoredArray::new(x.dtype(), layout.clone(), values.into_buffer())
}

/// Computes the batch `g` of matrix products of `a` and `b` into `c`, from element `c_offset` on.
fn multiply_matrix_batch(g: &Gemm, a: &StoredArray, b: &StoredArray, c_offset: usize, c: ElementsMut) -> Result<()> {
    let (x, y) = (Elements::from_whole_buffer(a)?, Elements::from_whole_buffer(b)?);
    let first = [a.layout().offset() as isize, b.layout().offset() as isize, c_offset as isize];
    let batch = ProductBatch { first, extents: &g.batch, strides: [&g.batch_strides[0], &g.batch_strides[1], &g.batch_strides[2]] };
    let one = MatrixProductLayout { m: g.m, n: g.n, k: g.k, a: g.a, b: g.b, c: g.c };
    check_matrix_bounds(&one, &batch, [x.len(), y.len(), c.len()])?;
    match c.dtype() {
        DType::F32 => return multiply_floats::<f32>(&one, &batch, x, y, c, 0.0, 1.0),
        DType::F64 => return multiply_floats::<f64>(&one, &batch, x, y, c, 0.0, 1.0),
        DType::C64 => return multiply_floats::<Complex<f32>>(&one, &batch, x, y, c, Complex::ZERO, Complex::ONE),
        DType::C128 => return multiply_floats::<Complex<f64>>(&one, &batch, x, y, c, Complex::ZERO, Complex::ONE),
        DType::Bool => multiply_integers::<bool>(&one, &batch, x, y, c),
        // Wrapping products of signed and unsigned integers have the same bits, so signed integers use the unsigned code.
        DType::I8 | DType::U8 => multiply_integers::<u8>(&one, &batch, x, y, c),
        DType::I16 | DType::U16 => multiply_integers::<u16>(&one, &batch, x, y, c),
        DType::I32 | DType::U32 => multiply_integers::<u32>(&one, &batch, x, y, c),
        DType::I64 | DType::U64 => multiply_integers::<u64>(&one, &batch, x, y, c),
        // The function `compute_contraction` converts 16-bit floats to float32 beforehand, so this arm is unreachable.
        half @ (DType::F16 | DType::BF16) => return Err(Error::backend("cpu", "contract", format!("{half} reached a matrix product"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuprum_core::host_buffer::HostBuffer;
    use cuprum_core::ops::contract::DOT;
    use cuprum_core::{Device, Stream, f16};

    use super::*;

    #[test]
    fn only_the_range_of_a_strided_half_operand_is_converted() -> Result<()> {
        let buffer = Arc::new(HostBuffer::from_slice(&(0..1000u16).map(|n| f16::from_f32(n.into())).collect::<Vec<_>>())?);
        let plan = ContractPlan::new(&[0], &[0], &[], &[4]);
        let (device, work) = (Device::CPU, Work::Contract(call::Contract { plan: &plan }));
        let call = Call { op: DOT, device, stream: Stream::current(device), inputs: &[], outputs: &[], work };
        for (stride, offset, converted) in [(2, 10, 7), (-2, 500, 7), (0, 3, 1), (200, 1, 4), (1, 996, 4)] {
            let array = StoredArray::new(DType::F16, Layout::strided(&[4], &[stride], offset)?, buffer.clone())?;
            let wide = convert_half_to_float32(&call, &array)?;
            let elements = Elements::from_whole_buffer(&wide)?.typed_slice::<f32>();
            let at = |i: isize| elements[(wide.layout().offset() as isize + i * wide.layout().strides()[0]) as usize];
            assert_eq!(elements.len(), converted);
            assert_eq!([0, 1, 2, 3].map(at), [0, 1, 2, 3].map(|i| (offset as isize + i * stride) as f32));
        }
        Ok(())
    }
}
