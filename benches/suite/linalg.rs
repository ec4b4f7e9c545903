//! The suites of linear algebra: `linalg` for GPUs, with its transforms, and `linalg_cpu`. The script `peers/linalg.py` measures the same
//! workloads with other libraries.

use cuprum::fft::{Norm, fft, fft2, fftn, rfft};
use cuprum::linalg::{QrMode, Triangle, cholesky, det, eig, eigh, inv, lstsq, qr, solve, svd};
use cuprum::random::Generator;
use cuprum::{DType, NdArray, Result, eye};

use super::{Suite, Workload, complexes, f32s, limit, workloads};

/// Returns arrays of normal numbers, one per shape.
fn normals<const K: usize>(shapes: [&[usize]; K], dtype: DType) -> Result<Vec<NdArray>> {
    let one = |(seed, shape): (usize, &&[usize])| Generator::new(seed as u64).normal(0.0, 1.0, *shape, dtype);
    shapes.iter().enumerate().map(one).collect()
}

/// Returns the shape of a batch of matrices, or of a single matrix if `batch` is 1.
fn shape(batch: usize, rows: usize, columns: usize) -> Vec<usize> {
    let all = [batch, rows, columns];
    all[usize::from(batch == 1)..].to_vec()
}

/// Returns square matrices of normal numbers.
fn general(batch: usize, n: usize, dtype: DType) -> Result<Vec<NdArray>> {
    normals([&shape(batch, n, n)], dtype)
}

/// Returns square matrices and 16 right-hand sides for each.
fn system(batch: usize, n: usize, dtype: DType) -> Result<Vec<NdArray>> {
    normals([&shape(batch, n, n), &shape(batch, n, 16)], dtype)
}

/// Returns symmetric, positive definite matrices.
fn positive(batch: usize, n: usize, dtype: DType) -> Result<Vec<NdArray>> {
    let a = general(batch, n, dtype)?.remove(0);
    Ok(vec![(a.matmul(&a.swapaxes(-1, -2)?)? / n as f64 + eye(n, n, 0, dtype)?).eval()?.clone()])
}

/// The suite of GPU workloads.
pub static SUITE: Suite = Suite {
    name: "linalg",
    device: "cuda",
    workloads: workloads! {
        "solve_f32_batch100000x3": system(100000, 3, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_batch100000x3": general(100000, 3, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_batch100000x3": positive(100000, 3, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_batch100000x3": general(100000, 3, DType::F32) => |x| det(&x[0]);
        "qr_f32_batch100000x3": general(100000, 3, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_batch100000x3": positive(100000, 3, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_batch100000x3": general(100000, 3, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_batch20000x8": system(20000, 8, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_batch20000x8": general(20000, 8, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_batch20000x8": positive(20000, 8, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_batch20000x8": general(20000, 8, DType::F32) => |x| det(&x[0]);
        "qr_f32_batch20000x8": general(20000, 8, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_batch20000x8": positive(20000, 8, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_batch20000x8": general(20000, 8, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_batch4096x32": system(4096, 32, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_batch4096x32": general(4096, 32, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_batch4096x32": positive(4096, 32, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_batch4096x32": general(4096, 32, DType::F32) => |x| det(&x[0]);
        "qr_f32_batch4096x32": general(4096, 32, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_batch4096x32": positive(4096, 32, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_batch4096x32": general(4096, 32, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_batch512x64": system(512, 64, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_batch512x64": general(512, 64, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_batch512x64": positive(512, 64, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_batch512x64": general(512, 64, DType::F32) => |x| det(&x[0]);
        "qr_f32_batch512x64": general(512, 64, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_batch512x64": positive(512, 64, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_batch512x64": general(512, 64, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_batch64x256": system(64, 256, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_batch64x256": general(64, 256, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_batch64x256": positive(64, 256, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_batch64x256": general(64, 256, DType::F32) => |x| det(&x[0]);
        "qr_f32_batch64x256": general(64, 256, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_batch64x256": positive(64, 256, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_batch64x256": general(64, 256, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_1024": system(1, 1024, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_1024": general(1, 1024, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_1024": positive(1, 1024, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_1024": general(1, 1024, DType::F32) => |x| det(&x[0]);
        "qr_f32_1024": general(1, 1024, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_1024": positive(1, 1024, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_1024": general(1, 1024, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_2048": system(1, 2048, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_2048": general(1, 2048, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_2048": positive(1, 2048, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_2048": general(1, 2048, DType::F32) => |x| det(&x[0]);
        "qr_f32_2048": general(1, 2048, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_2048": positive(1, 2048, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_2048": general(1, 2048, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f32_4096": system(1, 4096, DType::F32) => |x| solve(&x[0], &x[1]);
        "inv_f32_4096": general(1, 4096, DType::F32) => |x| inv(&x[0]);
        "cholesky_f32_4096": positive(1, 4096, DType::F32) => |x| cholesky(&x[0], false);
        "det_f32_4096": general(1, 4096, DType::F32) => |x| det(&x[0]);
        "qr_f32_4096": general(1, 4096, DType::F32) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f32_4096": positive(1, 4096, DType::F32) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f32_512": general(1, 512, DType::F32) => |x| Ok(svd(&x[0], false)?.0);
        "eig_f32_512": general(1, 512, DType::F32) => |x| Ok(eig(&x[0])?.1);
        "solve_f64_1024": system(1, 1024, DType::F64) => |x| solve(&x[0], &x[1]);
        "inv_f64_1024": general(1, 1024, DType::F64) => |x| inv(&x[0]);
        "cholesky_f64_1024": positive(1, 1024, DType::F64) => |x| cholesky(&x[0], false);
        "det_f64_1024": general(1, 1024, DType::F64) => |x| det(&x[0]);
        "qr_f64_1024": general(1, 1024, DType::F64) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f64_1024": positive(1, 1024, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f64_1024": general(1, 1024, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f64_2048": system(1, 2048, DType::F64) => |x| solve(&x[0], &x[1]);
        "inv_f64_2048": general(1, 2048, DType::F64) => |x| inv(&x[0]);
        "cholesky_f64_2048": positive(1, 2048, DType::F64) => |x| cholesky(&x[0], false);
        "det_f64_2048": general(1, 2048, DType::F64) => |x| det(&x[0]);
        "qr_f64_2048": general(1, 2048, DType::F64) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f64_2048": positive(1, 2048, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f64_2048": general(1, 2048, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f64_4096": system(1, 4096, DType::F64) => |x| solve(&x[0], &x[1]);
        "inv_f64_4096": general(1, 4096, DType::F64) => |x| inv(&x[0]);
        "cholesky_f64_4096": positive(1, 4096, DType::F64) => |x| cholesky(&x[0], false);
        "det_f64_4096": general(1, 4096, DType::F64) => |x| det(&x[0]);
        "qr_f64_4096": general(1, 4096, DType::F64) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "eigh_f64_4096": positive(1, 4096, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f64_512": general(1, 512, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
        "eig_f64_512": general(1, 512, DType::F64) => |x| Ok(eig(&x[0])?.1);
        "fft_c64_4096x16384": complexes(&[4096, 16384], DType::C64) => |x| fft(&x[0], None, -1, Norm::Backward), bytes 16 << 26;
        "fft_c64_2p26": complexes(&[1 << 26], DType::C64) => |x| fft(&x[0], None, -1, Norm::Backward), bytes 16 << 26;
        "fft2_c64_8192": complexes(&[8192, 8192], DType::C64) => |x| fft2(&x[0], None, (-2, -1), Norm::Backward), bytes 16 << 26;
        "fftn_c64_512": complexes(&[512, 512, 512], DType::C64) => |x| fftn(&x[0], None, (), Norm::Backward), bytes 16 << 27;
        "rfft_f32_4096x16384": f32s([&[4096, 16384]]) => |x| rfft(&x[0], None, -1, Norm::Backward), bytes 8 << 26;
        "fft_c64_1000x99991": complexes(&[1000, 99_991], DType::C64) => |x| fft(&x[0], None, -1, Norm::Backward);
        "fft_axis0_c64_4096x16384": complexes(&[4096, 16384], DType::C64) => |x| fft(&x[0], None, 0, Norm::Backward), bytes 16 << 26;
    },
};

/// The suite of CPU workloads.
pub static CPU_SUITE: Suite = Suite {
    name: "linalg_cpu",
    device: "cpu",
    workloads: workloads! {
        "solve_f64_1000": system(1, 1000, DType::F64) => |x| solve(&x[0], &x[1]);
        "inv_f64_1000": general(1, 1000, DType::F64) => |x| inv(&x[0]);
        "det_f64_1000": general(1, 1000, DType::F64) => |x| det(&x[0]);
        "cholesky_f64_2000": positive(1, 2000, DType::F64) => |x| cholesky(&x[0], false);
        "qr_f64_1000": general(1, 1000, DType::F64) => |x| Ok(qr(&x[0], QrMode::Reduced)?.0);
        "svd_f64_500": general(1, 500, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
        "eigh_f64_500": positive(1, 500, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "eigh_f64_1000": positive(1, 1000, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "eig_f64_300": general(1, 300, DType::F64) => |x| Ok(eig(&x[0])?.1);
        "lstsq_f64_2000x200": normals([&[2000, 200], &[2000, 8]], DType::F64) => |x| Ok(lstsq(&x[0], &x[1], None)?.solution);
        "solve_f64_batch10000x4": system(10000, 4, DType::F64) => |x| solve(&x[0], &x[1]);
        "eigh_f64_batch10000x4": positive(10000, 4, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f64_batch10000x4": general(10000, 4, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f64_batch1000x32": system(1000, 32, DType::F64) => |x| solve(&x[0], &x[1]);
        "eigh_f64_batch1000x32": positive(1000, 32, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f64_batch1000x32": general(1000, 32, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
        "solve_f64_batch100x128": system(100, 128, DType::F64) => |x| solve(&x[0], &x[1]);
        "eigh_f64_batch100x128": positive(100, 128, DType::F64) => |x| Ok(eigh(&x[0], Triangle::Lower)?.1);
        "svd_f64_batch100x128": general(100, 128, DType::F64) => |x| Ok(svd(&x[0], false)?.0);
    },
};
