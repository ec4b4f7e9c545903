//! A layer of a model in a safetensors file, `relu(x @ weight.T + bias)`, from memory-mapped weights.
//!
//!     cargo run --release --example dense_layer -- [model.safetensors] [layer] [batch]
//!
//! The arrays `LAYER.weight` (outputs, inputs) and `LAYER.bias` (outputs,) are multiplied with random inputs. Without arguments it writes
//! a small model, and checks the result.

use std::path::{Path, PathBuf};

use cuprum::io::{Safetensors, save_safetensors};
use cuprum::random::Generator;
use cuprum::{DType, Device, Error, NdArray, Result, matmul, maximum};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next().map(PathBuf::from) else { return check() };
    let layer = arguments.next().unwrap_or("layer".into());
    let batch = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(32);
    let model = Safetensors::open(&path)?;
    let inputs = model.read(&format!("{layer}.weight"))?.shape().last().copied().unwrap_or(1);
    let x = Generator::new(1).normal(0.0, 1.0, [batch, inputs], DType::F32)?;
    println!("{}", dense_layer(&model, &layer, &x)?);
    Ok(())
}

/// Returns `relu(x @ weight.T + bias)` for a layer of the model.
fn dense_layer(model: &Safetensors, layer: &str, x: &NdArray) -> Result<NdArray> {
    // On the host, the arrays are views of the mapped file. On a GPU, each array takes one transfer from the mapped file.
    let (weight, bias) = (model.read(&format!("{layer}.weight"))?, model.read(&format!("{layer}.bias"))?);
    println!("{layer}: {} inputs, {} outputs, {} on {}", weight.shape()[1], weight.shape()[0], weight.dtype(), weight.device());
    maximum(matmul(x, &weight.t()?)? + &bias, 0)
}

/// Writes a model, and compares a layer of it with the definition.
fn check() -> Result<()> {
    let path = std::env::temp_dir().join(format!("cuprum-model-{}.safetensors", std::process::id()));
    let outcome = write_model(&path).and_then(|()| compare(&path));
    std::fs::remove_file(&path).map_err(|e| Error::system(&path, e))?;
    outcome
}

const INPUTS: usize = 784;
const OUTPUTS: usize = 256;

fn write_model(path: &Path) -> Result<()> {
    let random = Generator::new(2);
    let weight = random.normal(0.0, 1.0, [OUTPUTS, INPUTS], DType::F32)? * (2.0 / INPUTS as f64).sqrt();
    let bias = random.uniform(-0.1, 0.1, OUTPUTS, DType::F32)?;
    save_safetensors(path, &[("hidden.weight", &weight), ("hidden.bias", &bias)])
}

fn compare(path: &Path) -> Result<()> {
    let model = Safetensors::open(path)?;
    let used = Device::CPU.memory_stats()?.used;
    let (weight, bias) = (model.read("hidden.weight")?, model.read("hidden.bias")?);
    assert_eq!(Device::CPU.memory_stats()?.used, used, "weights take no memory on the host");

    let x = Generator::new(3).normal(0.0, 1.0, [16, INPUTS], DType::F32)?;
    let y = dense_layer(&model, "hidden", &x)?.to_vec::<f32>()?;
    let (weight, bias, x) = (weight.to_vec::<f32>()?, bias.to_vec::<f32>()?, x.to_vec::<f32>()?);
    let mut largest = 0.0f64;
    for (row, outputs) in x.chunks(INPUTS).zip(y.chunks(OUTPUTS)) {
        for ((weights, bias), y) in weight.chunks(INPUTS).zip(&bias).zip(outputs) {
            let sum: f64 = row.iter().zip(weights).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
            largest = largest.max(((sum + f64::from(*bias)).max(0.0) - f64::from(*y)).abs());
        }
    }
    // The rounding error of a float32 sum of 784 products of size 0.05, with a margin for the order of summation.
    assert!(largest < 1e-4, "the results differ by {largest}");
    println!("{} results, within {largest:.1e} of the definition", y.len());
    Ok(())
}
