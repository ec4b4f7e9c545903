//! A user-defined CUDA kernel: the product of a sparse matrix and a vector, after an example for CuPy's `RawKernel`.
//!
//!     cargo run --release --example spmv -- [rows] [elements per row]
//!
//! There are two differences from the original. The block size comes from the occupancy calculator instead of 10 threads, which left 22 of
//! 32 lanes idle. Arrays of a wrong dtype are errors; the original passed float64 arrays to a kernel of `float` pointers.

use cuprum::cuda::{RawKernel, args};
use cuprum::{DType, Device, Error, Result, arange, random::Generator, segment_sum, with_device, zeros};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rows = args.next().and_then(|a| a.parse().ok()).unwrap_or(10_000);
    let per_row = args.next().and_then(|a| a.parse().ok()).unwrap_or(500);
    match Device::parse("cuda") {
        Ok(device) => with_device(device, || run(rows, per_row.max(1))),
        Err(reason) => {
            println!("skipped: this example needs a CUDA device.\n{reason}");
            Ok(())
        }
    }
}

fn run(rows: usize, per_row: usize) -> Result<()> {
    // A square matrix with the same number of random columns in each row.
    let generator = Generator::new(1);
    let row = arange(0, rows * per_row + 1, per_row)?.astype(DType::I32)?;
    let col = generator.integers(0, rows as i64, rows * per_row, DType::I32)?;
    let data = generator.random(rows * per_row, DType::F32)?;
    let x = generator.random(rows, DType::F32)?;
    let n = i32::try_from(rows).map_err(|_| Error::value("spmv", "the number of rows exceeds int32"))?;

    let spmv = RawKernel::compile(include_str!("spmv.cu"), "spmv")?;
    let launch = spmv.launch_for_items(rows)?;
    let mut y = zeros(rows, DType::F32)?;
    // SAFETY: `row` has `rows + 1` offsets, rising to the length of `col` and `data`. The elements of `col` are below the length of `x`.
    // The kernel writes the first `n` elements of `y`, which has `n` elements.
    unsafe { spmv.launch(launch, args![&row, &col, &data, &x, &mut y, n]) }?;
    println!("{rows} rows in {} blocks of {} threads on {}", launch.grid[0], launch.block[0], spmv.device());

    // The same product by library operations, also in one pass: `take` is fused into the sum.
    let expected = segment_sum(&(&data * x.take(&col, 0)?), &row.astype(DType::I64)?)?;
    let difference = ((&y - &expected).abs()? / &expected).max(())?.item()?.as_f64();
    println!("largest relative difference from segment_sum: {difference:.1e}");
    if difference.is_nan() || difference > per_row as f64 * f64::from(f32::EPSILON) {
        return Err(Error::value("spmv", "the kernel and segment_sum disagree"));
    }

    let wide = x.astype(DType::F64)?;
    // SAFETY: the arguments are those of the first launch, except for `wide`. Its dtype is wrong, so that the kernel does not run.
    if let Err(refused) = unsafe { spmv.launch(launch, args![&row, &col, &data, &wide, &mut y, n]) } {
        println!("float64 vector refused: {refused}");
    }
    Ok(())
}
