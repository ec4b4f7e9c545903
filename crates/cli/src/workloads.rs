//! Named workloads for `cuprum tour` and the benchmarks, each with inputs and a tolerance. The reference result of a workload is its result
//! with float64 inputs on the CPU.

use cuprum::core::testing::spacing;
use cuprum::random::Generator;
use cuprum::{DType, Device, NdArray, Result, arange, dot, matmul, segment_sum, with_device};

/// The unit of a result's error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorUnit {
    /// Units in the last place of the reference element, in the result's dtype.
    Ulp,
    /// The largest difference divided by the largest reference element.
    Relative,
}

/// A named computation that `cuprum tour` and the benchmarks run and time.
pub struct Workload {
    /// Name in tables and JSON lines. The scripts that time other libraries use the same names.
    pub name: &'static str,
    /// The computation in NumPy's notation.
    pub what: &'static str,
    /// Creates the inputs on the CPU, so that every device uses the same numbers.
    pub inputs: fn(WorkloadSize) -> Result<Vec<NdArray>>,
    /// Computes the result from the inputs.
    pub run: fn(&[NdArray]) -> Result<NdArray>,
    /// Unit of the result's error.
    pub unit: ErrorUnit,
    /// Maximum error relative to the reference, in `unit`.
    pub tolerance: f64,
    /// Number of floating-point operations of one run; 0 if arithmetic throughput is not the bottleneck.
    pub flops: f64,
}

/// Size of a workload's large arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkloadSize {
    /// The size that the workload's name states.
    Full,
    /// At most a million elements.
    Quick,
}

impl WorkloadSize {
    fn limit_quick_length(self, full: usize) -> usize {
        if self == WorkloadSize::Full { full } else { full.min(1_000_000) }
    }
}

fn uniform_random(seed: u64, shape: &[usize], dtype: DType) -> Result<NdArray> {
    Generator::new(seed).random(shape, dtype)
}

fn floats_to_float64(inputs: &[NdArray]) -> Result<Vec<NdArray>> {
    inputs.iter().map(|a| if a.dtype().is_float() { a.astype(DType::F64) } else { Ok(a.clone()) }).collect()
}

fn compute_sin(x: &[NdArray]) -> Result<NdArray> {
    x[0].sin()
}

fn sin_inputs(size: WorkloadSize, full: usize, dtype: DType) -> Result<Vec<NdArray>> {
    Ok(vec![uniform_random(1, &[size.limit_quick_length(full)], dtype)?])
}

/// Returns the inputs of the workloads `matmul` and `dot`, which compute the same product.
fn matrix_inputs(dtype: DType) -> Result<Vec<NdArray>> {
    Ok(vec![uniform_random(2, &[1000, 1000], dtype)?, uniform_random(3, &[1000, 1000], dtype)?])
}

fn multiply_by_matmul(x: &[NdArray]) -> Result<NdArray> {
    matmul(&x[0], &x[1])
}

fn multiply_by_dot(x: &[NdArray]) -> Result<NdArray> {
    dot(&x[0], &x[1])
}

fn row_norms(x: &[NdArray]) -> Result<NdArray> {
    x[0].power(2)?.sum(-1)?.sqrt()
}

/// Returns four arrays: the values, column indices and row offsets of a CSR matrix with 5 % nonzero elements, and a vector to multiply.
fn csr_inputs(rows: usize) -> Result<Vec<NdArray>> {
    let per_row = rows / 20;
    let columns = Generator::new(5).integers(0, rows as i64, rows * per_row, DType::I64)?;
    let offsets = arange(0, rows * per_row + 1, per_row)?;
    Ok(vec![uniform_random(4, &[rows * per_row], DType::F32)?, columns, offsets, uniform_random(6, &[rows], DType::F32)?])
}

fn csr_product(x: &[NdArray]) -> Result<NdArray> {
    segment_sum(&(&x[0] * x[3].take(&x[1], 0)?), &x[2])
}

/// All workloads, in the order of `cuprum tour`.
pub static WORKLOADS: &[Workload] = &[
    Workload {
        name: "sin_f32_1M",
        what: "np.sin(x) of 10^6 float32",
        inputs: |s| sin_inputs(s, 1_000_000, DType::F32),
        run: compute_sin,
        unit: ErrorUnit::Ulp,
        tolerance: 2.0,
        flops: 0.0,
    },
    Workload {
        name: "sin_f64_1M",
        what: "np.sin(x) of 10^6 float64",
        inputs: |s| sin_inputs(s, 1_000_000, DType::F64),
        run: compute_sin,
        unit: ErrorUnit::Ulp,
        tolerance: 3.0,
        flops: 0.0,
    },
    Workload {
        name: "sin_f32_100M",
        what: "np.sin(x) of 10^8 float32",
        inputs: |s| sin_inputs(s, 100_000_000, DType::F32),
        run: compute_sin,
        unit: ErrorUnit::Ulp,
        tolerance: 2.0,
        flops: 0.0,
    },
    Workload {
        name: "sin_f64_100M",
        what: "np.sin(x) of 10^8 float64",
        inputs: |s| sin_inputs(s, 100_000_000, DType::F64),
        run: compute_sin,
        unit: ErrorUnit::Ulp,
        tolerance: 3.0,
        flops: 0.0,
    },
    Workload {
        name: "matmul_f64_1000",
        what: "np.matmul(a, b), 1000 x 1000 float64",
        inputs: |_| matrix_inputs(DType::F64),
        run: multiply_by_matmul,
        unit: ErrorUnit::Relative,
        tolerance: 1e-14,
        flops: 2e9,
    },
    Workload {
        name: "matmul_f32_1000",
        what: "np.matmul(a, b), 1000 x 1000 float32",
        inputs: |_| matrix_inputs(DType::F32),
        run: multiply_by_matmul,
        unit: ErrorUnit::Relative,
        tolerance: 3e-6,
        flops: 2e9,
    },
    Workload {
        name: "dot_f64_1000",
        what: "np.dot(a, b), 1000 x 1000 float64",
        inputs: |_| matrix_inputs(DType::F64),
        run: multiply_by_dot,
        unit: ErrorUnit::Relative,
        tolerance: 1e-14,
        flops: 2e9,
    },
    Workload {
        name: "dot_f32_1000",
        what: "np.dot(a, b), 1000 x 1000 float32",
        inputs: |_| matrix_inputs(DType::F32),
        run: multiply_by_dot,
        unit: ErrorUnit::Relative,
        tolerance: 3e-6,
        flops: 2e9,
    },
    Workload {
        name: "add_i64_5",
        what: "np.array([1, 2, 3, 4, 5]) + np.array([1, 2, 3, 4, 5])",
        inputs: |_| Ok(vec![NdArray::from_slice(&[1i64, 2, 3, 4, 5])?; 2]),
        run: |x| Ok(&x[0] + &x[1]),
        unit: ErrorUnit::Ulp,
        tolerance: 0.0,
        flops: 0.0,
    },
    Workload {
        name: "add_f64_10M",
        what: "a + b of 10^7 float64",
        inputs: |s| {
            Ok(vec![
                uniform_random(7, &[s.limit_quick_length(10_000_000)], DType::F64)?,
                uniform_random(8, &[s.limit_quick_length(10_000_000)], DType::F64)?,
            ])
        },
        run: |x| Ok(&x[0] + &x[1]),
        unit: ErrorUnit::Ulp,
        tolerance: 0.0,
        flops: 0.0,
    },
    Workload {
        name: "sqrt_i64_5",
        what: "np.sqrt(np.array([1, 4, 9, 16, 25]))",
        inputs: |_| Ok(vec![NdArray::from_slice(&[1i64, 4, 9, 16, 25])?]),
        run: |x| x[0].sqrt(),
        unit: ErrorUnit::Ulp,
        tolerance: 0.0,
        flops: 0.0,
    },
    Workload {
        name: "sqrt_i64_10M",
        what: "np.sqrt(x) of 10^7 int64",
        inputs: |s| Ok(vec![Generator::new(9).integers(0, 1_000_000, s.limit_quick_length(10_000_000), DType::I64)?]),
        run: |x| x[0].sqrt(),
        unit: ErrorUnit::Ulp,
        tolerance: 0.0,
        flops: 0.0,
    },
    Workload {
        name: "norm_rows_f64_256x1024",
        what: "np.sqrt(np.sum(a**2, axis=-1)) of (256, 1024) float64",
        inputs: |_| Ok(vec![uniform_random(10, &[256, 1024], DType::F64)?]),
        run: row_norms,
        unit: ErrorUnit::Relative,
        tolerance: 1e-14,
        flops: 0.0,
    },
    Workload {
        name: "sum_f32_256cube",
        what: "a.sum() of (256, 256, 256) float32",
        inputs: |_| Ok(vec![uniform_random(11, &[256, 256, 256], DType::F32)?]),
        run: |x| x[0].sum(()),
        unit: ErrorUnit::Relative,
        tolerance: 1e-6,
        flops: 0.0,
    },
    Workload {
        name: "spmv_f32_10000",
        what: "CSR matrix-vector product, 10000 x 10000, 5 % set, float32",
        inputs: |s| csr_inputs(if s == WorkloadSize::Full { 10_000 } else { 2_000 }),
        run: csr_product,
        unit: ErrorUnit::Relative,
        tolerance: 1e-6,
        flops: 0.0,
    },
];

impl Workload {
    /// Returns the inputs, evaluated on the CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the inputs cannot be created, such as out of memory.
    pub fn host_inputs(&self, size: WorkloadSize) -> Result<Vec<NdArray>> {
        with_device(Device::CPU, || {
            let inputs = (self.inputs)(size)?;
            inputs.iter().try_for_each(|a| a.eval().map(|_| ()))?;
            Ok(inputs)
        })
    }

    /// Returns the reference result, computed from float64 inputs by the CPU's own accelerator.
    ///
    /// # Errors
    ///
    /// Returns the error of the computation.
    pub fn host_reference(&self, inputs: &[NdArray]) -> Result<NdArray> {
        cuprum::with_accelerators("", || with_device(Device::CPU, || (self.run)(&floats_to_float64(inputs)?)?.eval().cloned()))?
    }

    /// Returns the largest error of the elements of a result, in the workload's unit. The error is infinite if the shapes differ. It is
    /// infinite or NaN, and therefore above every tolerance, if an element of `result` or `reference` is NaN.
    ///
    /// # Errors
    ///
    /// Returns the error of reading the arrays.
    pub fn max_error(&self, result: &NdArray, reference: &NdArray) -> Result<f64> {
        if result.shape() != reference.shape() {
            return Ok(f64::INFINITY);
        }
        let dtype = result.dtype();
        let got = result.to_device(Device::CPU)?.astype(DType::F64)?.to_vec::<f64>()?;
        let want = reference.astype(DType::F64)?.to_vec::<f64>()?;
        let pairs = got.iter().zip(&want);
        let worst = |differences: &mut dyn Iterator<Item = f64>| {
            differences.fold(0.0, |m: f64, d| if d.is_nan() { f64::INFINITY } else { m.max(d) })
        };
        Ok(match self.unit {
            _ if !dtype.is_float() => worst(&mut pairs.map(|(g, w)| (g - w).abs())),
            ErrorUnit::Ulp => worst(&mut pairs.map(|(g, w)| if g == w { 0.0 } else { (g - w).abs() / spacing(*w, dtype) })),
            ErrorUnit::Relative => {
                let scale = worst(&mut want.iter().map(|w| w.abs())).max(f64::MIN_POSITIVE);
                worst(&mut pairs.map(|(g, w)| (g - w).abs())) / scale
            }
        })
    }
}
