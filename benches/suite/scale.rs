//! Ten functions at sizes from 2^8 to 2^30: shows fixed costs and the effect of caches. A workload is named after its function, its dtype
//! and its number of elements, such as `add_f32_2^20`, so that `cuprum bench --report` draws a curve for each function.

use cuprum::random::Generator;
use cuprum::{DType, matmul};

use super::expressions::chain10;
use super::{Suite, Workload, f32s};

/// Builds the workloads for each given power of two as number of elements. Matrices are square, so the powers are even.
macro_rules! sizes {
    ($($power:literal)*) => {
        &[$(
            workload!("add", $power, f32s([&[1 << $power], &[1 << $power]]), |x| Ok(&x[0] + &x[1]), 12 << $power, 0),
            workload!("exp", $power, f32s([&[1 << $power]]), |x| x[0].exp(), 8 << $power, 0),
            workload!("chain10", $power, f32s([&[1 << $power]]), |x| chain10(&x[0]), 8 << $power, 0),
            workload!("sum", $power, f32s([&[1 << $power]]), |x| x[0].sum(()), 4 << $power, 0),
            workload!("cumsum", $power, f32s([&[1 << $power]]), |x| x[0].cumsum(0), 8 << $power, 0),
            workload!("sort", $power, f32s([&[1 << $power]]), |x| x[0].sort(-1), 0, 0),
            workload!("mask", $power, f32s([&[1 << $power]]), |x| x[0].extract(&x[0].greater(0.5)?), 0, 0),
            workload!("take", $power, table_and_indices(1 << $power), |x| x[0].take(&x[1], 0), 0, 0),
            workload!(
                "transpose",
                $power,
                f32s([&[1 << ($power / 2), 1 << ($power / 2)]]),
                |x| x[0].t()?.contiguous(),
                8 << $power,
                0
            ),
            workload!(
                "matmul",
                $power,
                f32s([&[1 << ($power / 2), 1 << ($power / 2)], &[1 << ($power / 2), 1 << ($power / 2)]]),
                |x| matmul(&x[0], &x[1]),
                0,
                2 << ($power / 2 * 3)
            ),
        )*]
    };
}

macro_rules! workload {
    ($function:literal, $power:literal, $inputs:expr, $run:expr, $bytes:expr, $flops:expr) => {
        Workload { name: concat!($function, "_f32_2^", $power), inputs: || $inputs, run: $run, bytes: $bytes, flops: $flops }
    };
}

fn table_and_indices(count: i64) -> cuprum::Result<Vec<cuprum::NdArray>> {
    let table = f32s([&[count as usize]])?.remove(0);
    Ok(vec![table, Generator::new(1).integers(0, count, count as usize, DType::I64)?])
}

/// The suite of array sizes. `--only` selects functions and sizes: the largest need 16 GiB.
pub static SUITE: Suite = Suite { name: "scale", device: "cpu", workloads: sizes![8 10 12 14 16 18 20 22 24 26 28 30] };
