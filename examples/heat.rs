//! Heat diffusion on a plate: an explicit five-point step, written with slices as in NumPy. Each step is one fused pass over the
//! interior.
//!
//!     cargo run --release --example heat -- [side] [steps] [out.png]
//!
//! With a file name, the temperatures are drawn. The program checks the maximum principle: no temperature is outside the range of the
//! initial ones, the edges stay, and the plate is symmetric about its middle row.

use cuprum::io::{ImageOptions, save_image};
use cuprum::{DType, NdArray, Result, concat, explain, flip, full, s, zeros};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let side: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(256).max(3);
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
    println!("{}", plate.index(s![side / 2, ..;(side / 8).max(1)])?);
    check(&plate)?;
    if let Some(picture) = args.next() {
        save_image(&picture, &plate, &ImageOptions::default().range(0, 100))?;
        println!("{picture}: written");
    }
    Ok(())
}

fn step(t: &NdArray) -> Result<NdArray> {
    let centre = t.index(s![1..-1, 1..-1])?;
    let around = t.index(s![..-2, 1..-1])? + t.index(s![2.., 1..-1])? + t.index(s![1..-1, ..-2])? + t.index(s![1..-1, 2..])?;
    let inside = &centre + (around - &centre * 4) * 0.2;
    let middle = concat(&[t.index(s![1..-1, ..1])?, inside, t.index(s![1..-1, -1..])?], 1)?;
    concat(&[t.index(s![..1])?, middle, t.index(s![-1..])?], 0)
}

/// Checks properties of the exact solution.
fn check(plate: &NdArray) -> Result<()> {
    let (least, most) = (plate.min(())?.item()?.as_f64(), plate.max(())?.item()?.as_f64());
    assert!(least >= -1e-3 && most <= 100.0 + 1e-3, "temperatures between {least} and {most}");
    let left = plate.index(s![.., 0])?;
    assert_eq!((left.min(())?.item()?.as_f64(), left.max(())?.item()?.as_f64()), (100.0, 100.0), "the hot edge");
    let asymmetry = (plate - flip(plate, 0)?).abs()?.max(())?.item()?.as_f64();
    assert!(asymmetry < 1e-3, "the plate differs from its mirror image by {asymmetry}");
    Ok(())
}
