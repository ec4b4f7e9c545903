//! The suite of user-defined operations of the example `kernels`, on any device. `peers/kernels.py` measures other libraries.

use cuprum::{DType, NdArray, Result, linspace};

use super::{Suite, Workload, uniform};

#[allow(missing_docs)]
#[path = "../../examples/kernels/operations.rs"]
mod operations;
use operations::{black_scholes, heat_step, mandelbrot, nearest_centre, softmax};

const M: usize = 1 << 20;

fn f32s(values: impl Fn(usize) -> Result<NdArray>, n: usize) -> Result<Vec<NdArray>> {
    (0..n).map(|k| values(k)?.astype(DType::F32)).collect()
}

/// The suite of user-defined operations.
pub static SUITE: Suite = Suite {
    name: "kernels",
    device: "auto",
    workloads: &[
        Workload {
            name: "mandelbrot_f32_3M_200",
            inputs: || {
                let axes = |k| if k == 0 { linspace(-2.0, 0.5, 2000) } else { linspace(-1.2, 1.2, 1500)?.reshape([1500, 1]) };
                f32s(axes, 2)
            },
            run: |x| mandelbrot(&x[0], &x[1], 200),
            bytes: 0,
            flops: 0,
        },
        Workload {
            name: "heat_step_f32_4k",
            inputs: || uniform([&[4096, 4096]], DType::F32),
            run: |x| heat_step(&x[0], 0.2),
            bytes: 8 << 24,
            flops: 0,
        },
        Workload {
            name: "black_scholes_f32_8M",
            inputs: || {
                let x = uniform([&[8 * M], &[8 * M]], DType::F32)?;
                Ok(vec![(&x[0] * 100 + 50).eval()?.clone(), (&x[1] + 0.1).eval()?.clone()])
            },
            run: |x| black_scholes(&x[0], 100.0, &x[1], 0.05, 0.2),
            bytes: 12 * 8 * M,
            flops: 0,
        },
        Workload {
            name: "nearest_centre_f32_4M_16",
            inputs: || uniform([&[4 * M], &[4 * M], &[16, 2]], DType::F32),
            run: |x| nearest_centre(&x[0], &x[1], &x[2]),
            bytes: 12 * 4 * M,
            flops: 0,
        },
        Workload {
            name: "softmax_own_f32_4k",
            inputs: || uniform([&[4096, 4096]], DType::F32),
            run: |x| softmax(&x[0]),
            bytes: 8 << 24,
            flops: 0,
        },
    ],
};
