//! Loaded machine code, its kernels, and their launches. Contains unsafe code for the driver's C interface.

use std::ffi::{CString, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use crate::compile::single_flight::SingleFlight;
use crate::driver::{self, Context, PerDevice, check_result, sys};
use crate::error::{CudaError, Result};
use sys::CUfunction_attribute as Attribute;

/// The loaded kernels of one device, by key. [`SingleFlight`] loads each kernel once.
pub type KernelCache = SingleFlight<Arc<Function>>;

static KERNEL_CACHES: PerDevice<KernelCache> = PerDevice::new();

impl Context {
    /// Returns the cache of kernels loaded on this device.
    pub fn kernel_cache(&self) -> &'static KernelCache {
        KERNEL_CACHES.get_or_create(self)
    }
}

/// A module loaded on one device. The module is unloaded when its last reference is dropped. [`Function`]s and [`GlobalVariable`]s of the
/// module hold references too.
#[derive(Debug)]
pub struct Module {
    raw: sys::CUmodule,
    context: &'static Context,
}

// SAFETY: the driver allows the use of a module handle from any thread.
unsafe impl Send for Module {}
// SAFETY: the driver allows the use of a module handle from any thread.
unsafe impl Sync for Module {}

impl Module {
    /// Loads `code`, a cubin or PTX, on the device of `context`. The driver compiles PTX.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] if `code` is neither cubin nor PTX, [`CudaError::Driver`] for a cubin of another architecture,
    /// [`CudaError::Compile`] for PTX that the driver rejects.
    pub fn load(context: &'static Context, code: &[u8]) -> Result<Arc<Module>> {
        let mut raw = ptr::null_mut();
        if is_complete_elf(code) {
            context.retry_in_current_context(|| {
                // SAFETY: the context is current. The driver takes the length of `code` from its ELF header, which was checked against the
                // slice, and copies the code.
                check_result("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut raw, code.as_ptr().cast()) })
            })?;
        } else if std::str::from_utf8(code).is_ok_and(|text| text.contains(".version")) {
            raw = context.retry_in_current_context(|| compile_ptx(code.split(|&b| b == 0).next().unwrap_or_default()))?;
        } else {
            return Err(CudaError::Invalid("a module's code is neither a complete cubin nor PTX".into()));
        }
        Ok(Arc::new(Module { raw, context }))
    }

    /// Returns the `__device__` or `__constant__` variable `name` of the module. The argument is the mangled name, unless the variable is
    /// `extern "C"` or in the global namespace.
    pub fn global_variable(self: &Arc<Self>, name: &str) -> Result<GlobalVariable> {
        driver::require_function("cuModuleGetGlobal_v2")?;
        let c_name = CString::new(name).map_err(|_| CudaError::Invalid("a variable's name holds a NUL".into()))?;
        let (mut pointer, mut nbytes) = (0, 0);
        self.context.retry_in_current_context(|| {
            // SAFETY: the module is loaded in the current context. `c_name` is NUL-terminated, and both out-pointers are locals.
            check_result("cuModuleGetGlobal", unsafe { sys::cuModuleGetGlobal_v2(&mut pointer, &mut nbytes, self.raw, c_name.as_ptr()) })
        })?;
        Ok(GlobalVariable { pointer, nbytes, module: self.clone() })
    }

    /// Returns the kernel `name` of the module. `name` is the mangled name, unless the kernel is `extern "C"`.
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Arc<Function>> {
        let c_name = CString::new(name).map_err(|_| CudaError::Invalid("a kernel's name holds a NUL".into()))?;
        let mut raw = ptr::null_mut();
        // `cuModuleGetFunction` may run out of memory, because the driver may load the module's code lazily here.
        self.context.retry_in_current_context(|| {
            // SAFETY: the module is loaded in the current context. `c_name` is NUL-terminated, and the out-pointer is a local.
            check_result("cuModuleGetFunction", unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, c_name.as_ptr()) })
        })?;
        Ok(Arc::new(Function { raw, module: self.clone(), occupancy: Mutex::default(), max_dynamic_shared: OnceLock::new() }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // No kernel of the module may run while the module is unloaded, so this code waits for all streams of the context. Modules are
        // rarely unloaded.
        if self.context.wait_for_all_streams_ignoring_faults() && self.context.set_current().is_ok() {
            // SAFETY: the module is unloaded only in this `drop`, and the wait for all streams ensures that none of its kernels is running.
            unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// Compiles `ptx` with the driver. Requires a current context.
fn compile_ptx(ptx: &[u8]) -> Result<sys::CUmodule> {
    let image = CString::new(ptx).map_err(|_| CudaError::Invalid("PTX holds a NUL".into()))?;
    let mut raw = ptr::null_mut();
    let mut log = vec![0u8; 16 << 10];
    let mut options = [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut::<c_void>(log.len())];
    driver::require_function("cuModuleLoadDataEx")?;
    // SAFETY: `image` ends in NUL. The two option values are the address of the log buffer and its size, which is passed as a pointer. The
    // driver copies its inputs.
    let code = unsafe { sys::cuModuleLoadDataEx(&mut raw, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr()) };
    match check_result("cuModuleLoadDataEx", code) {
        Ok(()) => Ok(raw),
        Err(error) => {
            let text = String::from_utf8_lossy(log.split(|&b| b == 0).next().unwrap_or_default()).trim().to_owned();
            let refused = !text.is_empty();
            Err(if refused { CudaError::Compile { name: "PTX".into(), log: text, source_line: None } } else { error })
        }
    }
}

/// A variable of a module, in device memory. The value keeps the module loaded.
#[derive(Debug, Clone)]
pub struct GlobalVariable {
    pointer: u64,
    nbytes: usize,
    module: Arc<Module>,
}

impl GlobalVariable {
    /// Returns the size of the variable, in bytes.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// Waits for all work queued so far, then returns the bytes of the variable.
    pub fn read_bytes(&self) -> Result<Vec<u8>> {
        let (context, mut bytes) = (self.module.context, vec![0u8; self.nbytes]);
        context.synchronize()?; // because other streams may be writing the variable
        context.set_current()?;
        // SAFETY: the variable and `bytes` both have `nbytes` bytes, and the module is loaded. `bytes` is read only after the wait for the
        // copy.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), self.pointer, self.nbytes, context.stream()) };
        check_result("cuMemcpyDtoHAsync", code)?;
        context.synchronize()?;
        Ok(bytes)
    }

    /// Writes `bytes` to the variable after all work queued so far, and waits for the write.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] if the length of `bytes` differs from the variable's size.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.nbytes {
            return Err(CudaError::Invalid(format!("{} bytes for a variable of {}", bytes.len(), self.nbytes)));
        }
        let context = self.module.context;
        context.synchronize()?; // because other streams may be reading the variable
        context.set_current()?;
        // SAFETY: the variable and `bytes` have the same size, and the module is loaded. `bytes` lives until the wait for the copy ends.
        let code = unsafe { sys::cuMemcpyHtoDAsync_v2(self.pointer, bytes.as_ptr().cast(), self.nbytes, context.stream()) };
        check_result("cuMemcpyHtoDAsync", code)?;
        context.synchronize()
    }
}

/// Resource usage of a compiled kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread in bytes (spills, stack).
    pub local_bytes: u32,
    /// Static shared memory per block in bytes.
    pub shared_bytes: u32,
    /// Maximum threads per block.
    pub max_threads: u32,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Function {
    raw: sys::CUfunction,
    module: Arc<Module>,
    /// Cached occupancies: (threads per block, dynamic shared bytes, blocks per multiprocessor). Few entries are expected, so a list
    /// suffices.
    occupancy: Mutex<SmallVec<[(u32, u32, u32); 2]>>,
    /// Maximum dynamic shared memory per block, in bytes. Empty until the kernel's limit has been raised to this maximum.
    max_dynamic_shared: OnceLock<u32>,
}

// SAFETY: the driver allows a function handle on any thread while its module is loaded, which `module` ensures.
unsafe impl Send for Function {}
// SAFETY: the driver allows a function handle on any thread while its module is loaded, which `module` ensures.
unsafe impl Sync for Function {}

impl Function {
    /// Queues the kernel on this thread's stream of the kernel's device. Allocates no host memory. Does nothing if the grid is empty.
    ///
    /// `args` has one pointer per kernel parameter, in order ([`Args`] makes such a list). The driver copies the values before the function
    /// returns. Errors of the kernel's execution are returned by a later call that waits for the device.
    ///
    /// # Safety
    /// `args` must match the kernel's parameters in number, size and type. Every device address among the arguments must stay valid for the
    /// kernel's accesses until the kernel has run.
    #[inline]
    pub unsafe fn launch(&self, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, args: &mut [*mut c_void]) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let stream = self.stream_for_launch()?;
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // The driver may allocate memory for the stacks of the kernel's threads. If that fails, the pool's free blocks are returned and the
        // launch is tried once more.
        self.module.context.retry_out_of_memory(|| {
            let (args, extra) = (args.as_mut_ptr(), ptr::null_mut());
            // SAFETY: `raw` and `stream` belong to the current context. The caller guarantees that `args` matches the parameters.
            check_result("cuLaunchKernel", unsafe {
                sys::cuLaunchKernel(self.raw, gx, gy, gz, bx, by, bz, shared_bytes, stream, args, extra)
            })
        })
    }

    /// Queues the kernel like [`Function::launch`], as a cooperative grid: all blocks are resident at once and may synchronise with each
    /// other.
    ///
    /// # Safety
    /// The requirements of [`Function::launch`] apply.
    pub unsafe fn launch_cooperative(&self, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, args: &mut [*mut c_void]) -> Result<()> {
        static COOPERATIVE_LAUNCH_SUPPORT: OnceLock<Result<()>> = OnceLock::new();
        COOPERATIVE_LAUNCH_SUPPORT.get_or_init(|| driver::require_function("cuLaunchCooperativeKernel")).clone()?;
        let stream = self.stream_for_launch()?;
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        self.module.context.retry_out_of_memory(|| {
            let args = args.as_mut_ptr();
            // SAFETY: `raw` and `stream` belong to the current context. The caller guarantees that `args` matches the parameters.
            let code = unsafe { sys::cuLaunchCooperativeKernel(self.raw, gx, gy, gz, bx, by, bz, shared_bytes, stream, args) };
            check_result("cuLaunchCooperativeKernel", code)
        })
    }

    /// Returns this thread's stream for a launch. If the stream captures a graph, adds the module to the objects that the graph keeps
    /// alive.
    #[inline]
    fn stream_for_launch(&self) -> Result<sys::CUstream> {
        let context = self.module.context;
        let number = context.current_stream_number();
        if context.is_capture_stream(number) {
            context.keep_object_alive(number, &self.module);
        }
        Ok(context.raw_stream(number))
    }

    /// Returns the size of each kernel parameter in bytes, or `None` if the driver does not report sizes (before CUDA 12.4).
    pub fn parameter_sizes(&self) -> Result<Option<SmallVec<[usize; 16]>>> {
        if driver::require_function("cuFuncGetParamInfo").is_err() {
            return Ok(None);
        }
        self.module.context.set_current()?;
        let mut sizes = SmallVec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: `raw` is a loaded function, and both out-pointers are locals. For an index past the last parameter, the driver
            // returns an error code.
            match unsafe { sys::cuFuncGetParamInfo(self.raw, sizes.len(), &mut offset, &mut size) } {
                sys::CUresult::CUDA_SUCCESS => sizes.push(size),
                sys::CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(Some(sizes)),
                _ => return Ok(None),
            }
        }
    }

    /// Returns the number of threads per block with the best occupancy for blocks with `shared_bytes` of dynamic shared memory. Returns 0
    /// if `shared_bytes` exceeds the kernel's limit, which is 48 KiB until [`Function::allow_dynamic_shared_memory`] raises it.
    pub fn best_block_size(&self, shared_bytes: u32) -> Result<u32> {
        driver::require_function("cuOccupancyMaxPotentialBlockSize")?;
        self.module.context.set_current()?;
        let (mut blocks, mut threads): (c_int, c_int) = (0, 0);
        // SAFETY: `raw` is a loaded function, and both out-pointers are locals. No callback is passed, because the shared memory
        // does not depend on the block size.
        let code = unsafe { sys::cuOccupancyMaxPotentialBlockSize(&mut blocks, &mut threads, self.raw, None, shared_bytes as usize, 0) };
        check_result("cuOccupancyMaxPotentialBlockSize", code)?;
        Ok(threads.unsigned_abs())
    }

    /// Returns how many blocks of `threads` threads and `shared_bytes` of dynamic shared memory are resident on a multiprocessor.
    /// The result is cached unless it is 0, which [`Function::allow_dynamic_shared_memory`] may change later.
    pub fn blocks_per_sm(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        let mut known = self.occupancy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, _, blocks)) = known.iter().find(|(t, s, _)| (*t, *s) == (threads, shared_bytes)) {
            return Ok(blocks);
        }
        self.module.context.set_current()?;
        let mut blocks: c_int = 0;
        let threads_arg = c_int::try_from(threads).map_err(|_| CudaError::Invalid(format!("a block of {threads} threads")))?;
        // SAFETY: `raw` is a loaded function, and the out-pointer is a local.
        let code = unsafe { sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.raw, threads_arg, shared_bytes as usize) };
        check_result("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        if blocks > 0 {
            known.push((threads, shared_bytes, blocks.unsigned_abs()));
        }
        Ok(blocks.unsigned_abs())
    }

    /// Allows launches with `bytes` of dynamic shared memory. By default, static and dynamic shared memory together have 48 KiB per block.
    ///
    /// The first call raises the kernel's limit to the device's maximum, so that concurrent calls do not lower each other's limit.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] if static and dynamic shared memory together exceed the device's maximum.
    pub fn allow_dynamic_shared_memory(&self, bytes: u32) -> Result<()> {
        let max = match self.max_dynamic_shared.get() {
            Some(max) => *max,
            None => {
                let info = self.module.context.info();
                let max = info.shared_per_block_optin.max(info.shared_per_block).saturating_sub(self.attributes()?.shared_bytes);
                let value = c_int::try_from(max).map_err(|_| CudaError::Invalid(format!("{max} bytes of shared memory")))?;
                let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                // SAFETY: `raw` is a loaded function. The driver returns an error code for a value that is too large.
                check_result("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.raw, attribute, value) })?;
                *self.max_dynamic_shared.get_or_init(|| max)
            }
        };
        if bytes > max {
            return Err(CudaError::Invalid(format!("{bytes} bytes of dynamic shared memory; the kernel's maximum is {max}")));
        }
        Ok(())
    }

    /// Returns the resource usage of the compiled kernel.
    pub fn attributes(&self) -> Result<FunctionAttributes> {
        self.module.context.set_current()?;
        let get = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: `raw` is a loaded function, and the out-pointer is a local.
            check_result("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.raw) })?;
            Ok::<u32, CudaError>(value.unsigned_abs())
        };
        Ok(FunctionAttributes {
            registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// Returns the context of the device on which the kernel is loaded.
    pub fn context(&self) -> &'static Context {
        self.module.context
    }

    /// Returns the driver's handle of the kernel.
    pub fn raw(&self) -> sys::CUfunction {
        self.raw
    }
}

/// The argument list of a kernel launch, on the stack for up to 24 arguments. The list borrows the values.
///
/// ```
/// # use cuprum_backend_cuda::module::Args;
/// let (n, scale) = (10u64, 2.0f32);
/// let mut args = Args::new();
/// args.push(&n).push(&scale);
/// assert_eq!(args.pointers().len(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Args<'a> {
    pointers: SmallVec<[*mut c_void; 24]>,
    values: std::marker::PhantomData<&'a ()>,
}

impl<'a> Args<'a> {
    /// Returns an empty list.
    pub fn new() -> Self {
        Args::default()
    }

    /// Adds `value` as the next kernel parameter: an integer, a float, a device address as `u64`, or a `repr(C)` struct.
    #[inline]
    pub fn push<T: Copy>(&mut self, value: &'a T) -> &mut Self {
        self.pointers.push(ptr::from_ref(value).cast_mut().cast());
        self
    }

    /// Adds a struct, given by its bytes, as the next kernel parameter. `bytes` must be at least as long as the struct.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &'a [u8]) -> &mut Self {
        self.pointers.push(bytes.as_ptr().cast_mut().cast());
        self
    }

    /// Returns the pointers to the arguments, as [`Function::launch`] takes them.
    #[inline]
    pub fn pointers(&mut self) -> &mut [*mut c_void] {
        &mut self.pointers
    }
}

/// Returns whether `code` is a little-endian 64-bit ELF file that is not truncated, according to the sizes in its header.
fn is_complete_elf(code: &[u8]) -> bool {
    let number = |at: usize, len: usize| -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(code.get(at..at + len)?);
        Some(u64::from_le_bytes(bytes))
    };
    let end = |offset_at, size_at, count_at| -> Option<u64> {
        number(size_at, 2)?.checked_mul(number(count_at, 2)?)?.checked_add(number(offset_at, 8)?)
    };
    let len = code.len() as u64;
    // The offsets are those of e_phoff, e_phentsize and e_phnum, then e_shoff, e_shentsize and e_shnum in Elf64_Ehdr.
    code.starts_with(b"\x7fELF\x02\x01") && [end(32, 54, 56), end(40, 58, 60)].iter().all(|e| e.is_some_and(|e| e <= len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_elf_files_pass() {
        let mut elf = vec![0u8; 64 + 2 * 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[40] = 64; // sections at 64
        elf[58] = 64; // of 64 bytes
        elf[60] = 2;
        assert!(is_complete_elf(&elf));
        for cut in 0..elf.len() {
            assert!(!is_complete_elf(&elf[..cut]), "{cut}");
        }
        elf[47] = 0xff;
        assert!(!is_complete_elf(&elf));
    }
}
