//! Functions of float32 arrays from 2^10 to 2^28 elements: shows fixed costs and the effect of caches.

use super::{Suite, Workload, f32s};

/// Builds the workloads for each given power of two as array size.
macro_rules! sizes {
    ($($power:literal)*) => {
        &[$(
            Workload {
                name: concat!("add_f32_2^", $power),
                inputs: || f32s([&[1 << $power], &[1 << $power]]),
                run: |x| Ok(&x[0] + &x[1]),
                bytes: 12 << $power,
                flops: 0,
            },
            Workload {
                name: concat!("exp_f32_2^", $power),
                inputs: || f32s([&[1 << $power]]),
                run: |x| x[0].exp(),
                bytes: 8 << $power,
                flops: 0,
            },
            Workload {
                name: concat!("sum_f32_2^", $power),
                inputs: || f32s([&[1 << $power]]),
                run: |x| x[0].sum(()),
                bytes: 4 << $power,
                flops: 0,
            },
            Workload {
                name: concat!("sort_f32_2^", $power),
                inputs: || f32s([&[1 << $power]]),
                run: |x| x[0].sort(-1),
                bytes: 0,
                flops: 0,
            },
        )*]
    };
}

/// The suite of array sizes.
pub static SUITE: Suite = Suite { name: "scale", device: "cpu", workloads: sizes![10 12 14 16 18 20 22 24 26 28], missing: &[] };
