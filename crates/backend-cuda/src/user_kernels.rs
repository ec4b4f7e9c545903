//! User-written CUDA kernels: source or machine code ([`RawSource`], [`RawModule`]), kernels and their launches ([`RawKernel`], [`Launch`],
//! [`Arg`]), variables of a module ([`RawGlobal`]), and kernels that are defined by strings ([`ElementwiseKernel`], [`ReductionKernel`]).
//! The types correspond to the CuPy classes of the same names, where CuPy has them.
//!
//! ```no_run
//! use cuprum_backend_cuda::args;
//! use cuprum_backend_cuda::user_kernels::RawSource;
//! use cuprum_core::{DType, NdArray, zeros};
//! # fn main() -> cuprum_core::Result<()> {
//! let module = RawSource::new("template <class T> __global__ void fill(T* x, T value, int n) { if (threadIdx.x < n) x[threadIdx.x] =
//! value; }")
//!     .with_name("fill.cu")
//!     .with_name_expression("fill<float>")
//!     .with_name_expression("fill<int>")
//!     .compile()?;
//! let fill = module.kernel("fill<int>")?;
//! let mut x = zeros(10, DType::I32)?;
//! // SAFETY: the kernel writes below `n`, which is the array's length.
//! unsafe { fill.launch(fill.launch_for_items(10)?, args![&mut x, 7, 10]) }?;
//! assert_eq!(x.to_vec::<i32>()?, [7; 10]);
//! # Ok(())
//! # }
//! ```

mod elementwise_kernel;
mod kernel_arg;
mod kernel_declaration;
mod kernel_signature;
mod launch;
mod raw_kernel;
mod raw_module;
mod reduction_kernel;

use cuprum_core::{Device, Error, Result};

pub use self::elementwise_kernel::ElementwiseKernel;
pub use self::kernel_arg::Arg;
pub use self::launch::{IntoExtents, Launch};
pub use self::raw_kernel::RawKernel;
pub use self::raw_module::{RawGlobal, RawModule, RawSource};
pub use self::reduction_kernel::{
    REDUCTION_KERNEL, ReductionCall, ReductionDefinition, ReductionKernel, UserCppReduction, example_reduction_call,
};
pub use crate::compile::module::FunctionAttributes;
use crate::device;
use crate::driver;

/// Name of the public type that error messages show.
const OP: &str = "RawModule";

fn cuda_context_of(device: Device) -> Result<&'static driver::Context> {
    if device.kind().name() != device::DEVICE_KIND_NAME {
        let message = format!("CUDA kernels run on CUDA devices, not on {device}; see `Device::parse(\"cuda\")` and `with_device`");
        return Err(Error::Device { op: OP, message });
    }
    device::context(device)
}
