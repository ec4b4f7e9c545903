//! Runs decompositions that only the CPU computes. Arrays on other devices are copied to the host, and the results back.

use crate::array::{Array, NdArray, Outputs, StoredArray};
use crate::call::{Call, Linalg, OutputSpec, QrMode, Work};
use crate::device::{Device, Stream};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Op, Parameters};

/// Computes a decomposition of one input on the CPU and copies the results to the device of the input.
pub(super) fn decompose_on_host(op: Op, inputs: &[StoredArray], parameters: Option<&Parameters>) -> Result<Outputs> {
    let (Some(&task), [input]) = (parameters.and_then(|p| p.downcast_ref::<Linalg>()), inputs) else {
        return Err(Error::value(op.name(), "takes one array"));
    };
    let device = input.device();
    if device == Device::CPU {
        return Err(Error::value(op.name(), "no accelerator of the CPU takes the call; the backend cuprum-backend-cpu has a kernel"));
    }
    let [batch @ .., m, n] = input.layout().shape() else { return Err(Error::value(op.name(), "takes matrices")) };
    let spec = |dtype, extents: &[usize]| OutputSpec::contiguous(dtype, &[batch, extents].concat());
    let dtype = input.dtype();
    let outputs = match task {
        Linalg::Schur => vec![spec(dtype, &[*n, *n])?, spec(dtype, &[*n, *n])?],
        Linalg::Function(_) => vec![spec(complex_dtype_of(dtype), &[*n, *n])?],
        Linalg::Qr { mode: QrMode::Raw } => vec![spec(dtype, &[*n, *m])?, spec(dtype, &[*m.min(n)])?],
        _ => return Err(Error::value(op.name(), "has no computation on the host")),
    };
    let inputs = [NdArray::from(input.clone()).to_device(Device::CPU)?.stored()?];
    let stream = Stream::current(Device::CPU);
    let results =
        dispatch::run_call(&Call { op, device: Device::CPU, stream, inputs: &inputs, outputs: &outputs, work: Work::Linalg(task) })?;
    results.into_iter().map(|result| NdArray::from(result).to_device(device)?.stored()).collect()
}

/// Returns the complex dtype with the precision of `dtype`: complex64 for float32, complex128 for float64.
pub(super) fn complex_dtype_of(dtype: DType) -> DType {
    if dtype.real() == DType::F32 { DType::C64 } else { DType::C128 }
}
