//! The suites of sparse products: `sparse` for GPUs and `sparse_cpu`. The script `peers/sparse.py` measures the same workloads with SciPy,
//! CuPy and PyTorch.
//!
//! Regular matrices have the same number of elements in each row, at random columns. Power-law matrices have rows whose lengths follow a
//! power law with the same mean. Banded matrices have adjacent columns around the diagonal.

use cuprum::core::ops::sparse::{CsrParts, multiply_by_dense, multiply_by_sparse};
use cuprum::random::Generator;
use cuprum::{DType, NdArray, Result, arange, array, concat, minimum};

use super::{Suite, Workload, limit, workloads};

/// How the elements of a matrix are distributed.
#[derive(Clone, Copy)]
enum Kind {
    Regular,
    PowerLaw,
    Banded,
}

/// Returns `indptr`, `indices`, values and a dense factor of a square matrix with `per` elements in a row on average. `width` is the number
/// of columns of the dense factor; 0 means a vector.
fn matrix(kind: Kind, rows: usize, per: usize, dtype: DType, width: usize) -> Result<Vec<NdArray>> {
    let random = Generator::new(7);
    let count = rows * per;
    let (lengths, columns) = match kind {
        Kind::Regular => (None, random.integers(0, rows as i64, count, DType::I32)?),
        Kind::Banded => {
            let row = arange(0, rows as i64, 1)?.reshape((-1, 1))?;
            let band = (row + (arange(0, per as i64, 1)? - per as i64 / 2)).clip(0, rows as i64 - 1)?;
            (None, band.ravel()?.astype(DType::I32)?)
        }
        Kind::PowerLaw => {
            // The density x^(-2) has the inverse distribution 1 / u, cut at a thousandth of the rows.
            let weight = minimum(random.random(rows, DType::F64)?.add(1e-9)?.reciprocal()?, rows as f64 / 1000.0)?;
            let lengths = weight.multiply(count as f64 / weight.sum(())?.item()?.as_f64())?.astype(DType::I64)?;
            let total = lengths.sum(())?.item()?.as_f64() as usize;
            (Some(lengths), random.integers(0, rows as i64, total, DType::I32)?)
        }
    };
    let indptr = match lengths {
        Some(lengths) => concat([&array![0i64].to_device(lengths.device())?, &lengths.cumsum(0)?], 0)?,
        None => arange(0, count as i64 + 1, per as i64)?,
    };
    let values = random.random(columns.size(), dtype)?;
    let dense = if width == 0 { random.random(rows, dtype)? } else { random.random([rows, width], dtype)? };
    [indptr.astype(DType::I32)?, columns, values, dense].into_iter().map(|a| a.contiguous()?.eval().cloned()).collect()
}

fn parts(x: &[NdArray]) -> CsrParts<'_> {
    CsrParts { indptr: &x[0], indices: &x[1], values: &x[2], columns: x[0].size() - 1 }
}

fn times_dense(x: &[NdArray]) -> Result<NdArray> {
    multiply_by_dense(parts(x), &x[3])
}

fn squared(x: &[NdArray]) -> Result<NdArray> {
    Ok(multiply_by_sparse(parts(x), parts(x))?.2)
}

const M: usize = 1 << 20;

/// The suite of GPU workloads.
pub static SUITE: Suite = Suite {
    name: "sparse",
    device: "cuda",
    workloads: workloads! {
        "spmv_regular_f32_16Kx8": matrix(Kind::Regular, M >> 6, 8, DType::F32, 0) => |x| times_dense(x);
        "spmv_regular_f32_1Mx16": matrix(Kind::Regular, M, 16, DType::F32, 0) => |x| times_dense(x), bytes M * (8 * 16 + 12);
        "spmv_regular_f32_4Mx32": matrix(Kind::Regular, 4 * M, 32, DType::F32, 0) => |x| times_dense(x), bytes 4 * M * (8 * 32 + 12);
        "spmv_regular_f64_1Mx16": matrix(Kind::Regular, M, 16, DType::F64, 0) => |x| times_dense(x), bytes M * (12 * 16 + 20);
        "spmv_power_f32_1Mx16": matrix(Kind::PowerLaw, M, 16, DType::F32, 0) => |x| times_dense(x), bytes M * (8 * 16 + 12);
        "spmv_power_f32_4Mx24": matrix(Kind::PowerLaw, 4 * M, 24, DType::F32, 0) => |x| times_dense(x), bytes 4 * M * (8 * 24 + 12);
        "spmv_banded_f32_4Mx24": matrix(Kind::Banded, 4 * M, 24, DType::F32, 0) => |x| times_dense(x), bytes 4 * M * (8 * 24 + 12);
        "spmm_regular_f32_1Mx16_32": matrix(Kind::Regular, M, 16, DType::F32, 32) => |x| times_dense(x), flops 2 * M * 16 * 32;
        "spmm_regular_f32_256Kx32_128": matrix(Kind::Regular, M / 4, 32, DType::F32, 128) => |x| times_dense(x), flops M * 16 * 128;
        "spmm_power_f32_256Kx32_64": matrix(Kind::PowerLaw, M / 4, 32, DType::F32, 64) => |x| times_dense(x), flops M * 16 * 64;
        "spmm_banded_f32_1Mx16_32": matrix(Kind::Banded, M, 16, DType::F32, 32) => |x| times_dense(x), flops 2 * M * 16 * 32;
        "spgemm_regular_f32_64Kx16": matrix(Kind::Regular, M / 16, 16, DType::F32, 0) => |x| squared(x);
        "spgemm_power_f32_64Kx16": matrix(Kind::PowerLaw, M / 16, 16, DType::F32, 0) => |x| squared(x);
        "spgemm_banded_f32_256Kx16": matrix(Kind::Banded, M / 4, 16, DType::F32, 0) => |x| squared(x);
    },
};

/// The suite of CPU workloads.
pub static CPU_SUITE: Suite = Suite {
    name: "sparse_cpu",
    device: "cpu",
    workloads: workloads! {
        "spmv_regular_f64_16Kx8": matrix(Kind::Regular, M >> 6, 8, DType::F64, 0) => |x| times_dense(x);
        "spmv_regular_f64_1Mx10": matrix(Kind::Regular, M, 10, DType::F64, 0) => |x| times_dense(x), bytes M * (12 * 10 + 20);
        "spmv_regular_f32_1Mx10": matrix(Kind::Regular, M, 10, DType::F32, 0) => |x| times_dense(x), bytes M * (8 * 10 + 12);
        "spmv_power_f64_1Mx10": matrix(Kind::PowerLaw, M, 10, DType::F64, 0) => |x| times_dense(x), bytes M * (12 * 10 + 20);
        "spmv_banded_f64_1Mx10": matrix(Kind::Banded, M, 10, DType::F64, 0) => |x| times_dense(x), bytes M * (12 * 10 + 20);
        "spmm_regular_f64_256Kx10_32": matrix(Kind::Regular, M / 4, 10, DType::F64, 32) => |x| times_dense(x), flops M * 5 * 32;
        "spmm_power_f32_256Kx10_32": matrix(Kind::PowerLaw, M / 4, 10, DType::F32, 32) => |x| times_dense(x), flops M * 5 * 32;
        "spmm_banded_f64_256Kx10_32": matrix(Kind::Banded, M / 4, 10, DType::F64, 32) => |x| times_dense(x), flops M * 5 * 32;
        "spgemm_regular_f64_64Kx10": matrix(Kind::Regular, M / 16, 10, DType::F64, 0) => |x| squared(x);
        "spgemm_banded_f64_256Kx10": matrix(Kind::Banded, M / 4, 10, DType::F64, 0) => |x| squared(x);
    },
};
