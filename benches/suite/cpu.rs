//! The CPU suite. The scripts in `peers/cpu.py` measure the same workloads with NumPy, numexpr, PyTorch and JAX.

use cuprum::fft::{Norm, fft, fft2, fftn, rfft};
use cuprum::random::Generator;
use cuprum::{
    DType, NdArray, Result, concat, diff, einsum, histogram, intersect1d, isin, matmul, median, nanmean, repeat, special, take_along_axis,
    tile, unique, where_,
};

use super::expressions::{chain10, layer_norm, norm_rows, softmax_rows};
use super::{Suite, Workload, complexes, f32s, f64s, functions, limit, workloads};

const N: usize = 1 << 24;

fn i32s() -> Result<NdArray> {
    Generator::new(0).integers(0, 99, N, DType::I32)
}

/// The suite of CPU workloads.
pub static SUITE: Suite = Suite {
    name: "cpu",
    device: "cpu",
    workloads: workloads! {
        "add_small_f32_1k": f32s([&[1024], &[1024]]) => |x| Ok(&x[0] + &x[1]);
        "chain10_small_f32_1k": f32s([&[1024]]) => |x| chain10(&x[0]);
        "add_f32_16M": f32s([&[N], &[N]]) => |x| Ok(&x[0] + &x[1]), bytes 12 * N;
        "add_i32_16M": Ok(vec![i32s()?, i32s()?]) => |x| Ok(&x[0] + &x[1]), bytes 12 * N;
        "sin_f64_1M": f64s([&[1_000_000]]) => |x| x[0].sin();
        "sin_f32_16M": f32s([&[N]]) => |x| x[0].sin(), bytes 8 * N;
        "exp_f32_16M": f32s([&[N]]) => |x| x[0].exp(), bytes 8 * N;
        "log_f64_8M": f64s([&[N / 2]]) => |x| (&x[0] + 1).log(), bytes 8 * N;
        "tanh_f32_16M": f32s([&[N]]) => |x| x[0].tanh(), bytes 8 * N;
        "erf_f64_8M": f64s([&[N / 2]]) => |x| special::erf(&x[0]), bytes 8 * N;
        "gammaln_f64_1M": f64s([&[1_000_000]]) => |x| special::gammaln(&x[0]);
        "j0_f64_1M": f64s([&[1_000_000]]) => |x| special::j0(&x[0]);
        "pow_f64_8M": f64s([&[N / 2], &[N / 2]]) => |x| x[0].power(&x[1]), bytes 12 * N;
        "sqrt_f32_16M": f32s([&[N]]) => |x| x[0].sqrt(), bytes 8 * N;
        "chain10_f32_16M": f32s([&[N]]) => |x| chain10(&x[0]), bytes 8 * N;
        "gauss_f64_8M": f64s([&[N / 2]]) => |x| Ok((-(&x[0] * &x[0]) / 2).exp()? / 2.5066282746), bytes 8 * N;
        "where_f32_16M": f32s([&[N], &[N]]) => |x| where_(x[0].greater(&x[1])?, &x[0], &x[1] * 2), bytes 12 * N;
        "bcast_add_f32_4k": f32s([&[4096, 1], &[1, 4096]]) => |x| Ok(&x[0] + &x[1]), bytes 4 * N;
        "add_transposed_f32_4k": f32s([&[4096, 4096], &[4096, 4096]]) => |x| Ok(&x[0] + x[1].t()?), bytes 12 * N;
        "transpose_copy_f32_4k": f32s([&[4096, 4096]]) => |x| x[0].t()?.contiguous(), bytes 8 * N;
        "sum_256cube_f32": f32s([&[256, 256, 256]]) => |x| x[0].sum(()), bytes 4 * N;
        "sum_axis0_f32_4k": f32s([&[4096, 4096]]) => |x| x[0].sum(0), bytes 4 * N;
        "sum_axis1_f32_4k": f32s([&[4096, 4096]]) => |x| x[0].sum(1), bytes 4 * N;
        "max_f32_16M": f32s([&[N]]) => |x| x[0].max(()), bytes 4 * N;
        "argmax_f32_16M": f32s([&[N]]) => |x| x[0].argmax(()), bytes 4 * N;
        "var_axis1_f32_4k": f32s([&[4096, 4096]]) => |x| x[0].var(1), bytes 4 * N;
        "norm_rows_f64_256x1024": f64s([&[256, 1024]]) => |x| norm_rows(&x[0]);
        "norm_rows_f32_4k": f32s([&[4096, 4096]]) => |x| norm_rows(&x[0]), bytes 4 * N;
        "softmax_rows_f32_4k": f32s([&[4096, 4096]]) => |x| softmax_rows(&x[0]), bytes 8 * N;
        "layer_norm_f32_4k": f32s([&[4096, 4096], &[4096], &[4096]]) => |x| layer_norm(&x[0], &x[1], &x[2]), bytes 8 * N;
        "cumsum_f32_16M": f32s([&[N]]) => |x| x[0].cumsum(0), bytes 8 * N;
        "cumsum_axis0_f32_4k": f32s([&[4096, 4096]]) => |x| x[0].cumsum(0), bytes 8 * N;
        "histogram_f32_16M_256": f32s([&[N]]) => |x| Ok(histogram(&x[0], (256, 0.0, 1.0), None, false)?.0), bytes 4 * N;
        "sort_f32_16M": f32s([&[N]]) => |x| x[0].sort(-1);
        "argsort_f32_4M": f32s([&[N / 4]]) => |x| x[0].argsort(-1);
        "unique_i64_4M": Ok(vec![Generator::new(0).integers(0, 1 << 20, N / 4, DType::I64)?]) => |x| unique(&x[0]);
        "take_random_f32_8M": Ok(vec![f32s([&[N]])?.remove(0), Generator::new(1).integers(0, N as i64, N / 2, DType::I64)?])
            => |x| x[0].take(&x[1], 0);
        "mask_f32_16M": f32s([&[N]]) => |x| x[0].extract(&x[0].greater(0.5)?);
        "concat_f32_2x8M": f32s([&[N / 2], &[N / 2]]) => |x| concat(&*x, 0), bytes 8 * N;
        "matmul_f64_1000": f64s([&[1000, 1000], &[1000, 1000]]) => |x| matmul(&x[0], &x[1]), flops 2 * 1000usize.pow(3);
        "matmul_f32_2048": f32s([&[2048, 2048], &[2048, 2048]]) => |x| matmul(&x[0], &x[1]), flops 2 * 2048usize.pow(3);
        "matmul_batched_f32_64x128": f32s([&[64, 128, 128], &[64, 128, 128]]) => |x| matmul(&x[0], &x[1]), flops 2 * 64 * 128usize.pow(3);
        "matvec_f32_8k": f32s([&[8192, 8192], &[8192]]) => |x| matmul(&x[0], &x[1]), bytes 4 * 8192 * 8192;
        "einsum_bij_bjk_f32": f32s([&[32, 32, 32, 32], &[32, 32, 32, 32]]) => |x| einsum("abcd,dcef->abef", [&x[0], &x[1]]), flops 2 * 32usize.pow(6);
        "fft_f64_1M": f64s([&[1 << 20]]) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft_c128_1M": complexes(&[1 << 20], DType::C128) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft_f64_1e6": f64s([&[1_000_000]]) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft_f64_prime_999983": f64s([&[999_983]]) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft2_c128_1k": f64s([&[1024, 1024]]) => |x| fft2(&x[0], None, (-2, -1), Norm::Backward);
        "rfft_f32_batch_4k": f32s([&[4096, 4096]]) => |x| rfft(&x[0], None, -1, Norm::Backward);
        "fft_axis0_c64_4k": complexes(&[4096, 4096], DType::C64) => |x| fft(&x[0], None, 0, Norm::Backward);
        "fftn_c128_128cube": complexes(&[128, 128, 128], DType::C128) => |x| fftn(&x[0], None, (), Norm::Backward);
        "argmax_axis0_f32_4k": f32s([&[4096, 4096]]) => |x| x[0].argmax(0), bytes 4 * N;
        "assign_slice_f32_4k": functions::matrix_and_inner(4096) => |x| functions::assign_inner(x), bytes 8 * 4094 * 4094;
        "assign_strided_f32_16M": f32s([&[N], &[N / 2]]) => |x| functions::assign_every_other(x), bytes 6 * N;
        "assign_mask_f32_16M": functions::array_and_mask(N) => |x| functions::assign_masked(x), bytes 9 * N;
        "assign_mask_values_f32_16M": functions::array_mask_and_values(N) => |x| functions::assign_masked_values(x), bytes 11 * N;
        "scatter_add_f32_4M_into_1M": functions::scattered(1 << 20, N / 4, &[]) => |x| functions::scatter_add(x);
        "scatter_add_rows_f32_64kx128": functions::scattered(1 << 14, 1 << 16, &[128]) => |x| functions::scatter_add(x);
        "put_f32_4M_into_16M": functions::scattered(N, N / 4, &[]) => |x| functions::put_values(x);
        "pad_f32_4k": f32s([&[4096, 4096]]) => |x| functions::pad_zeros(x), bytes 8 * N;
        "pad_reflect_f32_4k": f32s([&[4096, 4096]]) => |x| functions::pad_reflected(x), bytes 8 * N;
        "roll_f32_4k": f32s([&[4096, 4096]]) => |x| functions::roll_both(x), bytes 8 * N;
        "repeat_f32_4M_4": f32s([&[N / 4]]) => |x| repeat(&x[0], 4, None), bytes 5 * N;
        "tile_f32_2k_2x2": f32s([&[2048, 2048]]) => |x| tile(&x[0], [2, 2]), bytes 5 * N;
        "median_f32_16M": f32s([&[N]]) => |x| median(&x[0], ());
        "median_axis1_f32_4k": f32s([&[4096, 4096]]) => |x| median(&x[0], 1);
        "percentile_f32_16M": functions::numbers_and_percentages(N) => |x| functions::percentiles(x);
        "nanmean_f32_16M": functions::with_nans(&[N]) => |x| functions::mean_of_numbers(x), bytes 4 * N;
        "nanmean_axis1_f32_4k": functions::with_nans(&[4096, 4096]) => |x| nanmean(&x[0], 1), bytes 4 * N;
        "diff_f32_16M": f32s([&[N]]) => |x| diff(&x[0], 1, -1, None, None), bytes 8 * N;
        "convolve_f32_4M_64": f32s([&[N / 4], &[64]]) => |x| functions::convolve_full(x), flops 32 * N;
        "interp_f64_4M_1000": functions::points(N / 4) => |x| functions::interpolate(x);
        "isin_i64_4M_10k": Ok(vec![functions::integers(0, 1 << 20, &[N / 4])?, functions::integers(1, 1 << 20, &[10_000])?])
            => |x| isin(&x[0], &x[1], false);
        "take_along_axis_f32_4k": Ok(vec![f32s([&[4096, 4096]])?.remove(0), functions::integers(1, 4096, &[4096, 4096])?])
            => |x| take_along_axis(&x[0], &x[1], 1), bytes 16 * N;
        "select_f32_16M": f32s([&[N]]) => |x| functions::select_of_three(x), bytes 8 * N;
        "cov_f64_64x128k": f64s([&[64, N / 128]]) => |x| functions::covariance(x), flops 2 * 64 * 64 * (N / 128);
        "intersect1d_i64_2x1M": Ok(vec![functions::integers(0, 1 << 20, &[N / 16])?, functions::integers(1, 1 << 20, &[N / 16])?])
            => |x| intersect1d(&x[0], &x[1], false);
        "random_f64_8M": Ok(vec![]) => |_x| Generator::new(0).random(N / 2, DType::F64);
        "normal_f64_8M": Ok(vec![]) => |_x| Generator::new(0).normal(0.0, 1.0, N / 2, DType::F64);
    },
};
