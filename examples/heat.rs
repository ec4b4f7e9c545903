//! Heat diffusion on a plate: an explicit five-point step, written with slices as in NumPy. Each step is one fused pass over the
//! interior.
//!
//!     cargo run --release --example heat -- [side] [steps]

use cuprum::{DType, NdArray, Result, concat, explain, full, s, zeros};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let side: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(256);
    let steps: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(100);

    // A plate at 0 degrees with its left edge held at 100 degrees.
    let hot = full([side, 1], 100, DType::F32)?;
    let mut plate = concat(&[hot, zeros([side, side - 1], DType::F32)?], 1)?;
    let (result, calls) = explain(|| -> Result<()> {
        for _ in 0..steps {
            plate = step(&plate)?;
        }
        plate.eval()?;
        Ok(())
    });
    result?;
    println!("after {steps} steps on {}, {} calls:", plate.device(), calls.len());
    println!("{}", plate.index(s![(side / 2) as isize, ..;(side / 8) as isize])?);
    Ok(())
}

fn step(t: &NdArray) -> Result<NdArray> {
    let centre = t.index(s![1..-1, 1..-1])?;
    let around = t.index(s![..-2, 1..-1])? + t.index(s![2.., 1..-1])? + t.index(s![1..-1, ..-2])? + t.index(s![1..-1, 2..])?;
    let inside = &centre + (around - &centre * 4) * 0.2;
    let middle = concat(&[t.index(s![1..-1, ..1])?, inside, t.index(s![1..-1, -1..])?], 1)?;
    concat(&[t.index(s![..1])?, middle, t.index(s![-1..])?], 0)
}
