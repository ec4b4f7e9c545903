//! A CUDA kernel of one's own: the product of a sparse matrix and a vector, after an example for CuPy's `RawKernel`.
//!
//!     cargo run --release --example spmv -- [rows] [elements per row]
//!
//! The original launched 1,000 blocks of 10 threads: one for each of 10,000 rows, but with 22 of a warp's 32 lanes idle; and it gave a
//! kernel of `float` arrays a vector and a result of float64, of which it read and wrote the first half as if it were float32. Here
//! the device says what size of block suits the kernel, there are as many blocks as rows ask for, and arrays of another dtype are refused.

use cuprum::cuda::{RawKernel, args};
use cuprum::{DType, Device, Error, NdArray, Result, random::Generator, segment_sum, with_device};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let rows = args.next().and_then(|a| a.parse().ok()).unwrap_or(10_000);
    let per_row = args.next().and_then(|a| a.parse().ok()).unwrap_or(500);
    match Device::parse("cuda") {
        Ok(device) => with_device(device, || run(rows, per_row.max(1))),
        Err(reason) => {
            println!("nothing to do: a CUDA kernel needs a CUDA device, and there is none.\n{reason}");
            Ok(())
        }
    }
}

fn run(rows: usize, per_row: usize) -> Result<()> {
    // A square matrix with equally many elements in each row, in columns drawn at random.
    let generator = Generator::new(1);
    let row = NdArray::arange(0, rows * per_row + 1, per_row)?.astype(DType::I32)?;
    let col = generator.integers(0, rows as i64, rows * per_row, DType::I32)?;
    let data = generator.random(rows * per_row, DType::F32)?;
    let x = generator.random(rows, DType::F32)?;
    let n = i32::try_from(rows).map_err(|_| Error::value("spmv", "more rows than an int counts"))?;

    let spmv = RawKernel::compile(include_str!("spmv.cu"), "spmv")?;
    let launch = spmv.over(rows)?;
    let mut y = NdArray::zeros(rows, DType::F32)?;
    // SAFETY: `row` has one element more than there are rows, rising to the number of elements of `col` and `data`; all of `col` is
    // below the length of `x`; the kernel writes the first `n` elements of `y`, which has as many.
    unsafe { spmv.launch(launch, args![&row, &col, &data, &x, &mut y, n]) }?;
    println!("{rows} rows in {} blocks of {} threads on {}", launch.grid[0], launch.block[0], spmv.device());

    // The same by operations of the library, in one pass as well: the vector is read where its elements are used.
    let expected = segment_sum(&(&data * x.take(&col, 0)?), &row.astype(DType::I64)?)?;
    let difference = ((&y - &expected).abs()? / &expected).max(())?.item()?.as_f64();
    println!("largest relative difference from segment_sum: {difference:.1e}");
    if difference.is_nan() || difference > per_row as f64 * f64::from(f32::EPSILON) {
        return Err(Error::value("spmv", "the kernel and segment_sum disagree"));
    }

    let wide = x.astype(DType::F64)?;
    // SAFETY: as above, but that the kernel does not run: the dtype of `wide` is not the one that it takes.
    if let Err(refused) = unsafe { spmv.launch(launch, args![&row, &col, &data, &wide, &mut y, n]) } {
        println!("a vector of float64 is refused: {refused}");
    }
    Ok(())
}
