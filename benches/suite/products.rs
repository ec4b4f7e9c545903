//! Products followed by elementwise operations, as in the layers of neural networks. The peers are `peers/gpu.py --suite products`.

use cuprum::{DType, MatmulPrecision, NdArray, Result, matmul, maximum, special, with_matmul_precision};

use super::{Suite, Workload, limit, uniform, workloads};

/// The suite of products followed by elementwise operations.
pub static SUITE: Suite = Suite {
    name: "products",
    device: "cuda",
    workloads: workloads! {
        "bias_relu_f32_4096": layer(4096, DType::F32) => |x| bias_relu(x), flops flops(4096);
        "bias_relu_tf32_4096": layer(4096, DType::F32) => |x| with_matmul_precision(MatmulPrecision::TensorFloat32, || bias_relu(x)), flops flops(4096);
        "bias_relu_f16_4096": layer(4096, DType::F16) => |x| bias_relu(x), flops flops(4096);
        "gelu_f32_4096": layer(4096, DType::F32) => |x| gelu(x), flops flops(4096);
        "gelu_f16_4096": layer(4096, DType::F16) => |x| gelu(x), flops flops(4096);
        "residual_f32_4096": square_and_rest(4096, DType::F32) => |x| residual(x), flops flops(4096);
        "residual_f16_8192": square_and_rest(8192, DType::F16) => |x| residual(x), flops flops(8192);
        "scores_f32_4096": layer(4096, DType::F32) => |x| scores(x), flops flops(4096);
        "scores_f16_8192": layer(8192, DType::F16) => |x| scores(x), flops flops(8192);
    },
};

/// Returns the number of operations of the product of two square matrices.
const fn flops(side: usize) -> usize {
    2 * side * side * side
}

/// Returns two square matrices and a row.
fn layer(side: usize, dtype: DType) -> Result<Vec<NdArray>> {
    uniform([&[side, side], &[side, side], &[side]], dtype)
}

/// Returns three square matrices.
fn square_and_rest(side: usize, dtype: DType) -> Result<Vec<NdArray>> {
    uniform([&[side, side]; 3], dtype)
}

/// Computes a product, adds a row, and replaces negative numbers by zero.
fn bias_relu(x: &[NdArray]) -> Result<NdArray> {
    maximum(matmul(&x[0], &x[1])? + &x[2] - 1024.0, 0.0)
}

/// Computes a product, adds a row, and applies the Gaussian error linear unit, `h * (1 + erf(h / sqrt(2))) / 2`, in the dtype of the
/// inputs.
fn gelu(x: &[NdArray]) -> Result<NdArray> {
    let h = matmul(&x[0], &x[1])? / 1024.0 + &x[2];
    let erf = special::erf(&h * 0.5f64.sqrt())?.astype(x[0].dtype())?;
    Ok(h * 0.5 * (erf + 1.0))
}

/// Computes a product and adds a matrix.
fn residual(x: &[NdArray]) -> Result<NdArray> {
    Ok(matmul(&x[0], &x[1])? + &x[2])
}

/// Computes attention scores: the softmax of the rows of a product.
fn scores(x: &[NdArray]) -> Result<NdArray> {
    let scores = matmul(&x[0], &x[1].t()?)? / 64.0;
    let e = (&scores - scores.max(cuprum::axis(-1).keepdims())?).exp()?;
    Ok(&e / e.sum(cuprum::axis(-1).keepdims())?)
}
