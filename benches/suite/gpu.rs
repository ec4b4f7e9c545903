//! The GPU suite. The script `peers/gpu.py` measures the same workloads with CuPy and PyTorch. Arrays of 2^27 elements exceed every
//! cache.

use cuprum::fft::{Norm, fft, fft2, fftn, rfft};
use cuprum::random::Generator;
use cuprum::{
    Complex, DType, NdArray, Result, arange_as, concat, diff, einsum, histogram, intersect1d, isin, matmul, median, nanmean, repeat,
    segment_max, segment_sort, segment_sum, take_along_axis, tensordot, tile, topk, unique, zeros,
};

use super::expressions::{chain10, layer_norm, norm_rows, softmax_rows};
use super::{Suite, Workload, complexes, f32s, f64s, functions, limit, reductions, uniform, workloads};

const N: usize = 1 << 27;
/// Side of a square matrix with about [`N`] elements.
const SIDE: usize = 11584;
const SQUARE: usize = SIDE * SIDE;

fn square() -> Result<Vec<NdArray>> {
    f32s([&[SIDE, SIDE]])
}

/// Returns a CSR matrix with `per` random columns in each of `rows` rows, and a vector.
fn csr(rows: usize, per: usize) -> Result<Vec<NdArray>> {
    let values = Generator::new(0).random(rows * per, DType::F32)?;
    let columns = Generator::new(1).integers(0, rows as i64, rows * per, DType::I32)?;
    let offsets = arange_as(0, (rows * per) as i64 + 1, per as i64, DType::I64)?;
    Ok(vec![values, columns, offsets, Generator::new(2).random(rows, DType::F32)?])
}

/// Returns the values and offsets of about a million segments: 16 long ones hold half of all values, the others 64 values each.
fn skewed() -> Result<Vec<NdArray>> {
    const SEGMENTS: i64 = 1 << 20;
    const EVERY: i64 = SEGMENTS / 16;
    let number = arange_as(0, SEGMENTS + 1, 1, DType::I64)?;
    let offsets = (&number * 64 + (number + (EVERY - 1)).floor_divide(EVERY)? * ((1 << 22) - 64)).eval()?.clone();
    Ok(vec![f32s([&[N - 1024]])?.remove(0), offsets])
}

/// Returns the values and offsets of a million segments of 0 to 127 values.
fn short_segments() -> Result<Vec<NdArray>> {
    const SEGMENTS: i64 = 1 << 20;
    let lengths = (arange_as(0, SEGMENTS, 1, DType::I64)? * 7919).remainder(128)?;
    let offsets = concat(&[zeros([1], DType::I64)?, lengths.cumsum(0)?], 0)?;
    Ok(vec![f32s([&[SEGMENTS as usize / 2 * 127]])?.remove(0), offsets])
}

/// Returns complex numbers with repeated real parts, so that sorting compares imaginary parts.
fn complex(count: usize) -> Result<Vec<NdArray>> {
    let real = Generator::new(0).integers(0, 1 << 20, count, DType::I64)?.astype(DType::C128)?;
    Ok(vec![(real + Generator::new(1).random(count, DType::F64)? * Complex::new(0.0, 1.0)).eval()?.clone()])
}

/// The suite of GPU workloads.
pub static SUITE: Suite = Suite {
    name: "gpu",
    device: "cuda",
    workloads: workloads! {
        "add_small_f32_1k": f32s([&[1024], &[1024]]) => |x| Ok(&x[0] + &x[1]);
        "sum_small_f32_1k": f32s([&[1024]]) => |x| x[0].sum(());
        "chain10_small_f32_1k": f32s([&[1024]]) => |x| chain10(&x[0]);
        "copy_f32_128M": f32s([&[N]]) => |x| x[0].copy(), bytes 8 * N;
        "add_f32_128M": f32s([&[N], &[N]]) => |x| Ok(&x[0] + &x[1]), bytes 12 * N;
        "add_scalar_f32_128M": f32s([&[N]]) => |x| Ok(&x[0] + 1), bytes 8 * N;
        "sin_f32_128M": f32s([&[N]]) => |x| x[0].sin(), bytes 8 * N;
        "sin_f64_64M": f64s([&[N / 2]]) => |x| x[0].sin(), bytes 8 * N;
        "exp_f16_128M": uniform([&[N]], DType::F16) => |x| x[0].exp(), bytes 4 * N;
        "sqrt_f64_64M": f64s([&[N / 2]]) => |x| x[0].sqrt(), bytes 8 * N;
        "chain10_f32_128M": f32s([&[N]]) => |x| chain10(&x[0]), bytes 8 * N;
        "bcast_add_col_row_f32_11k": f32s([&[11585, 1], &[1, 11585]]) => |x| Ok(&x[0] + &x[1]), bytes 4 * 11585 * 11585;
        "add_transposed_f32_11k": f32s([&[SIDE, SIDE], &[SIDE, SIDE]]) => |x| Ok(&x[0] + x[1].t()?), bytes 12 * SQUARE;
        "transpose_copy_f32_11k": square() => |x| x[0].t()?.contiguous(), bytes 8 * SQUARE;
        "sum_256cube_f32": f32s([&[256, 256, 256]]) => |x| x[0].sum(()), bytes 4 * (1 << 24);
        "sum_f32_128M": f32s([&[N]]) => |x| x[0].sum(()), bytes 4 * N;
        "sum_axis0_f32_11k": square() => |x| x[0].sum(0), bytes 4 * SQUARE;
        "sum_axis1_f32_11k": square() => |x| x[0].sum(1), bytes 4 * SQUARE;
        "sum_mid_512cube_f32": f32s([&[512, 512, 512]]) => |x| x[0].sum(1), bytes 4 * N;
        "sum_axis1_thin_4Mx32_f32": f32s([&[1 << 22, 32]]) => |x| x[0].sum(1), bytes 4 * N;
        "max_axis0_f32_11k": square() => |x| x[0].max(0), bytes 4 * SQUARE;
        "argmax_f32_128M": f32s([&[N]]) => |x| x[0].argmax(()), bytes 4 * N;
        "argmax_axis1_f32_11k": square() => |x| x[0].argmax(1), bytes 4 * SQUARE;
        "var_axis1_f32_11k": square() => |x| x[0].var(1), bytes 4 * SQUARE;
        "norm_rows_f64_256x1024": f64s([&[256, 1024]]) => |x| norm_rows(&x[0]);
        "norm_rows_f32_11k": square() => |x| norm_rows(&x[0]), bytes 4 * SQUARE;
        "softmax_rows_f32_11k": square() => |x| softmax_rows(&x[0]), bytes 8 * SQUARE;
        "layer_norm_f32_11k": f32s([&[SIDE, SIDE], &[SIDE], &[SIDE]]) => |x| layer_norm(&x[0], &x[1], &x[2]), bytes 8 * SQUARE;
        "cumsum_f32_128M": f32s([&[N]]) => |x| x[0].cumsum(0), bytes 8 * N;
        "cumsum_axis1_f32_11k": square() => |x| x[0].cumsum(1), bytes 8 * SQUARE;
        "cumsum_axis0_f32_11k": square() => |x| x[0].cumsum(0), bytes 8 * SQUARE;
        "histogram_f32_128M_256": f32s([&[N]]) => |x| Ok(histogram(&x[0], (256, 0.0, 1.0), None, false)?.0), bytes 4 * N;
        "sort_f32_64M": f32s([&[N / 2]]) => |x| x[0].sort(-1);
        "argsort_f32_64M": f32s([&[N / 2]]) => |x| x[0].argsort(-1);
        "unique_i64_16M": Ok(vec![Generator::new(0).integers(0, 1 << 20, N / 8, DType::I64)?]) => |x| unique(&x[0]);
        "sort_c128_4M": complex(1 << 22) => |x| x[0].sort(-1);
        "topk_f32_64M_100": f32s([&[N / 2]]) => |x| Ok(topk(&x[0], 100, -1, true)?.0);
        "mask_f32_128M": f32s([&[N]]) => |x| x[0].extract(&x[0].greater(0.5)?);
        "take_random_f32_64M": Ok(vec![f32s([&[N]])?.remove(0), Generator::new(1).integers(0, N as i64, N / 2, DType::I64)?])
            => |x| x[0].take(&x[1], 0);
        "concat_f32_2x64M": f32s([&[N / 2], &[N / 2]]) => |x| concat(&*x, 0), bytes 8 * N;
        "matmul_f32_4096": f32s([&[4096, 4096], &[4096, 4096]]) => |x| matmul(&x[0], &x[1]), flops 2 * 4096usize.pow(3);
        "matmul_f64_1000": f64s([&[1000, 1000], &[1000, 1000]]) => |x| matmul(&x[0], &x[1]), flops 2 * 1000usize.pow(3);
        "matmul_f64_4096": f64s([&[4096, 4096], &[4096, 4096]]) => |x| matmul(&x[0], &x[1]), flops 2 * 4096usize.pow(3);
        "matmul_f16_8192": uniform([&[8192, 8192], &[8192, 8192]], DType::F16) => |x| matmul(&x[0], &x[1]), flops 2 * 8192usize.pow(3);
        "matmul_batched_f32_512x256": f32s([&[512, 256, 256], &[512, 256, 256]]) => |x| matmul(&x[0], &x[1]), flops 1024 * 256usize.pow(3);
        "tensordot_f32_96": f32s([&[96, 96, 96, 96], &[96, 96, 96, 96]])
            => |x| tensordot(&x[0], &x[1], ([2isize, 3], [1isize, 0])), flops 2 * 96usize.pow(6);
        "einsum_abcd_cdef_f32_64": f32s([&[64, 64, 64, 64], &[64, 64, 64, 64]])
            => |x| einsum("acbd,defc->abef", [&x[0], &x[1]]), flops 2 * 64usize.pow(6);
        "spmv_csr_f32_4Mx32": csr(1 << 22, 32) => |x| segment_sum(&(&x[0] * x[3].take(&x[1], 0)?), &x[2]), bytes (8 * 32 + 12) << 22;
        "segment_sum_skewed_f32_128M": skewed() => |x| segment_sum(&x[0], &x[1]), bytes 4 * N;
        "segment_max_skewed_f32_128M": skewed() => |x| segment_max(&x[0], &x[1]), bytes 4 * N;
        "partition_f32_64M": f32s([&[N / 2]]) => |x| x[0].partition((N / 4) as isize, -1), bytes 8 * N / 2;
        "segment_sort_short_f32_64M": short_segments() => |x| segment_sort(&x[0], &x[1]), bytes 8 * N / 2;
        "segment_sort_skewed_f32_128M": skewed() => |x| segment_sort(&x[0], &x[1]), bytes 8 * N;
        "own_norm_f32_128M": f32s([&[N]]) => |x| reductions::norm(&x[0], None), bytes 4 * N;
        "own_norm_axis0_f32_11k": square() => |x| reductions::norm(&x[0], Some(0)), bytes 4 * SQUARE;
        "own_norm_axis1_f32_11k": square() => |x| reductions::norm(&x[0], Some(1)), bytes 4 * SQUARE;
        "fft_c64_batch_4096x16384": f32s([&[4096, 16384]]) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft_c64_4096x16384": complexes(&[4096, 16384], DType::C64) => |x| fft(&x[0], None, -1, Norm::Backward), bytes 16 << 26;
        "fft_axis0_c64_4096x16384": complexes(&[4096, 16384], DType::C64) => |x| fft(&x[0], None, 0, Norm::Backward), bytes 16 << 26;
        "fft_c64_2p26": complexes(&[1 << 26], DType::C64) => |x| fft(&x[0], None, -1, Norm::Backward), bytes 16 << 26;
        "fft_c64_1000x99991": complexes(&[1000, 99_991], DType::C64) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft2_c64_8192": complexes(&[8192, 8192], DType::C64) => |x| fft2(&x[0], None, (-2, -1), Norm::Backward), bytes 16 << 26;
        "fftn_c64_512": complexes(&[512, 512, 512], DType::C64) => |x| fftn(&x[0], None, (), Norm::Backward), bytes 16 * N;
        "rfft_f32_4096x16384": f32s([&[4096, 16384]]) => |x| rfft(&x[0], None, -1, Norm::Backward), bytes 8 << 26;
        "fft_window_f32_4096x16384": f32s([&[4096, 16384], &[16384]]) => |x| rfft(&(&x[0] * &x[1]), None, -1, Norm::Backward);
        "argmax_axis0_f32_11k": square() => |x| x[0].argmax(0), bytes 4 * SQUARE;
        "assign_slice_f32_11k": functions::matrix_and_inner(SIDE) => |x| functions::assign_inner(x), bytes 8 * (SIDE - 2) * (SIDE - 2);
        "assign_strided_f32_128M": f32s([&[N], &[N / 2]]) => |x| functions::assign_every_other(x), bytes 6 * N;
        "assign_mask_f32_128M": functions::array_and_mask(N) => |x| functions::assign_masked(x), bytes 9 * N;
        "assign_mask_values_f32_128M": functions::array_mask_and_values(N) => |x| functions::assign_masked_values(x), bytes 11 * N;
        "scatter_add_f32_32M_into_1M": functions::scattered(1 << 20, N / 4, &[]) => |x| functions::scatter_add(x);
        "scatter_add_unordered_f32_32M_into_1M": functions::scattered(1 << 20, N / 4, &[]) => |x| functions::scatter_add_unordered(x);
        "scatter_add_unordered_rows_f32_1Mx128":
            functions::scattered(1 << 17, 1 << 20, &[128]) => |x| functions::scatter_add_unordered(x);
        "scatter_add_rows_f32_1Mx128": functions::scattered(1 << 17, 1 << 20, &[128]) => |x| functions::scatter_add(x);
        "put_f32_32M_into_128M": functions::scattered(N, N / 4, &[]) => |x| functions::put_values(x);
        "pad_f32_11k": square() => |x| functions::pad_zeros(x), bytes 8 * SQUARE;
        "pad_reflect_f32_11k": square() => |x| functions::pad_reflected(x), bytes 8 * SQUARE;
        "roll_f32_11k": square() => |x| functions::roll_both(x), bytes 8 * SQUARE;
        "repeat_f32_32M_4": f32s([&[N / 4]]) => |x| repeat(&x[0], 4, None), bytes 5 * N;
        "tile_f32_5k_2x2": f32s([&[SIDE / 2, SIDE / 2]]) => |x| tile(&x[0], [2, 2]), bytes 5 * SQUARE;
        "median_f32_64M": f32s([&[N / 2]]) => |x| median(&x[0], ());
        "median_axis1_f32_11k": square() => |x| median(&x[0], 1);
        "percentile_f32_64M": functions::numbers_and_percentages(N / 2) => |x| functions::percentiles(x);
        "nanmean_f32_128M": functions::with_nans(&[N]) => |x| functions::mean_of_numbers(x), bytes 4 * N;
        "nanmean_axis1_f32_11k": functions::with_nans(&[SIDE, SIDE]) => |x| nanmean(&x[0], 1), bytes 4 * SQUARE;
        "diff_f32_128M": f32s([&[N]]) => |x| diff(&x[0], 1, -1, None, None), bytes 8 * N;
        "convolve_f32_64M_64": f32s([&[N / 2], &[64]]) => |x| functions::convolve_full(x), flops 64 * N;
        "interp_f64_64M_1000": functions::points(N / 2) => |x| functions::interpolate(x), bytes 8 * N;
        "isin_i64_32M_10k": Ok(vec![functions::integers(0, 1 << 20, &[N / 4])?, functions::integers(1, 1 << 20, &[10_000])?])
            => |x| isin(&x[0], &x[1], false);
        "take_along_axis_f32_11k": Ok(vec![square()?.remove(0), functions::integers(1, SIDE, &[SIDE, SIDE])?])
            => |x| take_along_axis(&x[0], &x[1], 1), bytes 16 * SQUARE;
        "select_f32_128M": f32s([&[N]]) => |x| functions::select_of_three(x), bytes 8 * N;
        "cov_f64_64x1M": f64s([&[64, N / 128]]) => |x| functions::covariance(x), flops 2 * 64 * 64 * (N / 128);
        "intersect1d_i64_2x8M": Ok(vec![functions::integers(0, 1 << 23, &[N / 16])?, functions::integers(1, 1 << 23, &[N / 16])?])
            => |x| intersect1d(&x[0], &x[1], false);
        "normal_f32_128M": Ok(vec![]) => |_x| Generator::new(0).normal(0.0, 1.0, N, DType::F32), bytes 4 * N;
    },
};
