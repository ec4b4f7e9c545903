//! Modules of CUDA code on a device, and the variables of a module.

use std::sync::Arc;

use cuprum_core::{DType, Device, Error, IntoShape, NdArray, Result, with_device};

use super::raw_kernel::RawKernel;
use super::{OP, cuda_context_of, signature};
use crate::CudaError;
use crate::compile::module::{Function, GlobalVariable, Module};
use crate::device;
use crate::driver;

/// A module of CUDA code loaded on a device (`cupy.RawModule`). Cheap to clone. The module is unloaded when the last handle of the module,
/// its kernels and its variables is dropped.
#[derive(Clone, Debug)]
pub struct RawModule {
    pub(super) module: Arc<Module>,
    pub(super) device: Device,
    /// C++ names of the kernels, and their mangled names.
    pub(super) lowered: Arc<[(String, String)]>,
    /// The CUDA C++ source. Empty for a module that was loaded from machine code.
    pub(super) source: Arc<str>,
}

impl RawModule {
    /// Loads a cubin or PTX on the current device. The driver compiles PTX.
    ///
    /// # Errors
    /// [`Error::Backend`] for code of another architecture or an invalid format. For PTX, the message has the log of the driver.
    pub fn load(code: &[u8]) -> Result<RawModule> {
        RawModule::load_on(Device::current()?, code)
    }

    /// Loads a cubin or PTX like [`RawModule::load`], on `device`.
    pub fn load_on(device: Device, code: &[u8]) -> Result<RawModule> {
        let module = Module::load(cuda_context_of(device)?, code).map_err(|e| device::to_core_error("cuda", OP, device, e))?;
        Ok(RawModule { module, device, lowered: Arc::new([]), source: "".into() })
    }

    /// Returns the device that the module is loaded on.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the kernel `name`. For a kernel that is not `extern "C"`, `name` is a string that was passed to
    /// [`RawSource::with_name_expression`].
    ///
    /// # Errors
    /// [`Error::Value`] if the module has no such kernel.
    pub fn kernel(&self, name: &str) -> Result<RawKernel> {
        let function = self.find_function(name)?;
        let declared = signature::find_kernel_parameters(&self.source, name);
        RawKernel::new(function, name, self.device, declared).map_err(|e| device::to_core_error("cuda", OP, self.device, e))
    }

    pub(crate) fn find_function(&self, name: &str) -> Result<Arc<Function>> {
        self.module.function(self.mangled_name(name)).map_err(|e| self.symbol_lookup_error("kernel", name, e))
    }

    /// Returns the `__device__` or `__constant__` variable `name`. For a variable outside the global namespace, `name` is a string that was
    /// passed to [`RawSource::with_name_expression`].
    ///
    /// # Errors
    /// [`Error::Value`] if the module has no such variable.
    pub fn global(&self, name: &str) -> Result<RawGlobal> {
        let global = self.module.global_variable(self.mangled_name(name)).map_err(|e| self.symbol_lookup_error("variable", name, e))?;
        Ok(RawGlobal { global, device: self.device })
    }

    fn mangled_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.lowered.iter().find(|(expression, _)| expression == name).map_or(name, |(_, lowered)| lowered)
    }

    /// Converts `error`, which a lookup of the symbol `name` returned. `what` is the word for the symbol in the message: `kernel` or
    /// `variable`. For a missing symbol, the message lists the module's name expressions.
    fn symbol_lookup_error(&self, what: &str, name: &str, error: CudaError) -> Error {
        const DRIVER_NOT_FOUND_CODE: u32 = driver::sys::CUresult::CUDA_ERROR_NOT_FOUND.0;
        if !matches!(error, CudaError::Driver { code: DRIVER_NOT_FOUND_CODE, .. }) {
            return device::to_core_error("cuda", OP, self.device, error);
        }
        let known: Vec<&str> = self.lowered.iter().map(|(expression, _)| expression.as_str()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        let help = "declare it `extern \"C\"`, or name it by `RawSource::with_name_expression`";
        Error::value(OP, format!("the module has no {what} `{name}`; {help} (expressions: {known})"))
    }
}

/// A `__device__` or `__constant__` variable of a module.
#[derive(Clone, Debug)]
pub struct RawGlobal {
    global: GlobalVariable,
    device: Device,
}

impl RawGlobal {
    /// Returns the size of the variable, in bytes.
    pub fn nbytes(&self) -> usize {
        self.global.nbytes()
    }

    /// Waits for all work queued so far, then returns the bytes of the variable.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.global.read_bytes().map_err(|e| self.global_error(e))
    }

    /// Waits for all work queued so far, then overwrites the variable with `bytes`.
    ///
    /// # Errors
    /// [`Error::Backend`] if the number of bytes differs from [`RawGlobal::nbytes`].
    pub fn set_bytes(&self, bytes: &[u8]) -> Result<()> {
        self.global.write_bytes(bytes).map_err(|e| self.global_error(e))
    }

    /// Copies the variable to a new array on the same device. Waits for all work queued so far.
    pub fn to_array(&self, dtype: DType, shape: impl IntoShape) -> Result<NdArray> {
        let bytes = self.to_bytes()?;
        with_device(self.device, || NdArray::from_bytes(dtype, shape, &bytes))
    }

    /// Overwrites the variable with the elements of `array` in C order. Waits for all work queued so far.
    pub fn set_array(&self, array: &NdArray) -> Result<()> {
        self.set_bytes(&array.to_bytes()?)
    }

    fn global_error(&self, error: CudaError) -> Error {
        device::to_core_error("cuda", OP, self.device, error)
    }
}
