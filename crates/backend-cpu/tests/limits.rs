//! The limit of host memory covers arrays, the temporary memory of kernels, and formatted text. A single test, because the limit and the
//! peak belong to the process.
#![allow(clippy::unwrap_used)]

mod memory_limit;

use cuprum_backend_cpu::with_threads;
use cuprum_core::{DType, NdArray, PrintOptions, array2string, bincount, expand_dims, matmul};
use memory_limit::{MIB, ones, runs_out, succeeds};

#[test]
fn the_limit_covers_all_memory() {
    // This first evaluation allocates the threads' stacks and spare blocks, so that they do not count later.
    with_threads(2, || (&ones(&[1 << 20], DType::F32) + 1).eval().cloned()).unwrap().unwrap();

    let product = succeeds("integer matmul", MIB, || {
        let product = matmul(&ones(&[2, 12_000], DType::I8), &ones(&[12_000, 3_000], DType::I8))?;
        product.to_vec::<i8>()
    });
    assert!(product.iter().all(|&v| v == 12_000i32 as i8));
    let products = succeeds("a batch of integer matmuls", 9 * MIB, || {
        matmul(&ones(&[1_000_000, 1, 1], DType::I64), &ones(&[1_000_000, 1, 1], DType::I64))?.eval().cloned()
    });
    assert_eq!(products.sum(()).unwrap().item().unwrap(), 1_000_000i64);

    let rows = ones(&[4_000_000, 2], DType::I8).copy().unwrap();
    let index = NdArray::from_slice(&[1i64]).unwrap();
    let taken = succeeds("take of many rows", 5 * MIB, || rows.take(&index, 1)?.eval().cloned());
    assert_eq!(taken.shape(), [4_000_000, 1]);
    let scattered = ones(&[2000, 2000], DType::I8).copy().and_then(|a| expand_dims(&a.t()?, 0)).unwrap();
    runs_out("take of scattered elements", 5 * MIB, || scattered.take(&NdArray::from_slice(&[0i64])?, 0)?.eval().cloned());

    runs_out("nonzero", 8 * MIB, || ones(&[200_000, 200_000], DType::I8).nonzero());
    runs_out("a sum of broadcast values", 8 * MIB, || ones(&[1 << 50], DType::F64).sum(())?.item());
    runs_out("counters of bins", 20 * MIB, || bincount(&ones(&[1 << 24], DType::I64), None, 1 << 20)?.eval().cloned());
    runs_out("elements for the caller", 8 * MIB, || ones(&[1 << 30], DType::F64).to_vec::<f64>());
    runs_out("bytes for the caller", 8 * MIB, || ones(&[1 << 30], DType::F64).to_bytes());
    let all = PrintOptions { threshold: usize::MAX, ..PrintOptions::default() };
    runs_out("the text of all elements", 8 * MIB, || array2string(&ones(&[1 << 20], DType::F64), &all));
}
