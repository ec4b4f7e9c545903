//! Loaded machine code, its kernels, and launching them. A named unsafe room.

use std::ffi::{CString, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use crate::compile::program::Program;
use crate::compile::single_flight::SingleFlight;
use crate::driver::{self, Context, check, sys};
use crate::error::{CudaError, Result};
use sys::CUfunction_attribute as Attribute;

/// The kernels of one device by structural key. See [`SingleFlight`].
pub type KernelCache = SingleFlight<Arc<Function>>;

/// A module loaded on one device; unloaded when its last function is gone.
#[derive(Debug)]
pub struct Module {
    raw: sys::CUmodule,
    context: &'static Context,
}

// SAFETY: a module is a handle that any thread may use.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a cubin, or PTX (which the driver then compiles).
    ///
    /// # Errors
    /// [`CudaError::Invalid`] for bytes that are neither, [`CudaError::Driver`] for code of another architecture,
    /// [`CudaError::Compile`] for PTX that the driver refuses.
    pub fn load(context: &'static Context, code: &[u8]) -> Result<Arc<Module>> {
        let mut raw = ptr::null_mut();
        if is_whole_elf(code) {
            context.with_room(|| {
                // SAFETY: the context is current; the driver takes the length from the ELF header, which was checked against the
                // slice, and copies what it needs.
                check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut raw, code.as_ptr().cast()) })
            })?;
        } else if std::str::from_utf8(code).is_ok_and(|text| text.contains(".version")) {
            raw = context.with_room(|| load_ptx(code.split(|&b| b == 0).next().unwrap_or_default()))?;
        } else {
            return Err(CudaError::Invalid("a module's code is neither a whole cubin nor PTX".into()));
        }
        Ok(Arc::new(Module { raw, context }))
    }

    /// A `__device__` or `__constant__` variable by its name in the module (mangled unless `extern "C"` or global).
    pub fn global(self: &Arc<Self>, name: &str) -> Result<Global> {
        driver::require("cuModuleGetGlobal_v2")?;
        let c_name = CString::new(name).map_err(|_| CudaError::Invalid("a variable's name holds a NUL".into()))?;
        let (mut pointer, mut nbytes) = (0, 0);
        self.context.with_room(|| {
            // SAFETY: the module is loaded in the current context; the name is NUL-terminated, the out-pointers valid.
            check("cuModuleGetGlobal", unsafe { sys::cuModuleGetGlobal_v2(&mut pointer, &mut nbytes, self.raw, c_name.as_ptr()) })
        })?;
        Ok(Global { pointer, nbytes, module: self.clone() })
    }

    /// A kernel by its name in the module (mangled unless `extern "C"`).
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Arc<Function>> {
        let c_name = CString::new(name).map_err(|_| CudaError::Invalid("a kernel's name holds a NUL".into()))?;
        let mut raw = ptr::null_mut();
        // The driver may load the code of a module only now.
        self.context.with_room(|| {
            // SAFETY: the module is loaded in the current context; the name is NUL-terminated.
            check("cuModuleGetFunction", unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, c_name.as_ptr()) })
        })?;
        Ok(Arc::new(Function { raw, module: self.clone(), occupancy: Mutex::default() }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Kernels of it may still be queued: unloading waits for them by the driver's own rule only on the same
        // context, so wait here. Modules go rarely, if ever.
        if self.context.synchronize_quietly() && self.context.bind().is_ok() {
            // SAFETY: loaded by us, unloaded only here, nothing of it is running.
            unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// Has the driver compile PTX. The context must be current.
fn load_ptx(ptx: &[u8]) -> Result<sys::CUmodule> {
    let image = CString::new(ptx).map_err(|_| CudaError::Invalid("PTX holds a NUL".into()))?;
    let mut raw = ptr::null_mut();
    let mut log = vec![0u8; 16 << 10];
    let mut options = [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut::<c_void>(log.len())];
    driver::require("cuModuleLoadDataEx")?;
    // SAFETY: the text ends in NUL; there are two options, of which one takes a buffer and the other its size as the pointer's
    // value; the driver copies what it needs of all of it.
    let code = unsafe { sys::cuModuleLoadDataEx(&mut raw, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr()) };
    match check("cuModuleLoadDataEx", code) {
        Ok(()) => Ok(raw),
        Err(error) => {
            let text = String::from_utf8_lossy(log.split(|&b| b == 0).next().unwrap_or_default()).trim().to_owned();
            let refused = !text.is_empty();
            Err(if refused { CudaError::Compile { name: "PTX".into(), log: text, source_line: None } } else { error })
        }
    }
}

/// A variable of a module in device memory; the module stays loaded as long as it lives.
#[derive(Debug, Clone)]
pub struct Global {
    pointer: u64,
    nbytes: usize,
    module: Arc<Module>,
}

impl Global {
    /// Its size in bytes.
    pub fn nbytes(&self) -> usize {
        self.nbytes
    }

    /// All of its bytes, after the work queued so far; waits for the device.
    pub fn read(&self) -> Result<Vec<u8>> {
        let (context, mut bytes) = (self.module.context, vec![0u8; self.nbytes]);
        context.synchronize()?; // other streams may be writing it
        context.bind()?;
        // SAFETY: the variable has so many bytes and its module is loaded; `bytes` has as many, and is not looked at before the wait.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), self.pointer, self.nbytes, context.stream()) };
        check("cuMemcpyDtoHAsync", code)?;
        context.synchronize()?;
        Ok(bytes)
    }

    /// Sets all of its bytes, after the work queued so far; waits for the device.
    ///
    /// # Errors
    /// [`CudaError::Invalid`] for another number of bytes than it has.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() != self.nbytes {
            return Err(CudaError::Invalid(format!("{} bytes for a variable of {}", bytes.len(), self.nbytes)));
        }
        let context = self.module.context;
        context.synchronize()?; // other streams may be reading it
        context.bind()?;
        // SAFETY: the variable has as many bytes as are given and its module is loaded; they live until the wait has ended.
        let code = unsafe { sys::cuMemcpyHtoDAsync_v2(self.pointer, bytes.as_ptr().cast(), self.nbytes, context.stream()) };
        check("cuMemcpyHtoDAsync", code)?;
        context.synchronize()
    }
}

/// What the compiler gave a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread in bytes (spills, stack).
    pub local_bytes: u32,
    /// Static shared memory per block in bytes.
    pub shared_bytes: u32,
    /// Threads that a block may have.
    pub max_threads: u32,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Function {
    raw: sys::CUfunction,
    module: Arc<Module>,
    /// (threads per block, dynamic shared bytes) -> blocks per SM. Few, so a list.
    occupancy: Mutex<SmallVec<[(u32, u32, u32); 2]>>,
}

// SAFETY: a function is a handle that any thread may use while its module is loaded, which `module` ensures.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// Queues the kernel on its context's stream. Allocates nothing; a grid without blocks does nothing.
    ///
    /// `args` points to one value per kernel parameter, in order ([`Args`] makes such a list); the values are copied
    /// before this returns. Errors that the kernel makes come out of a later wait.
    ///
    /// # Safety
    /// `args` must match the kernel's parameters in number, size and type, and every device address among them must
    /// be valid for what the kernel does with it until it has run.
    #[inline]
    pub unsafe fn launch(&self, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, args: &mut [*mut c_void]) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let stream = self.ready()?;
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // A launch may need memory for the stacks of its threads.
        self.module.context.with_room(|| {
            let (args, extra) = (args.as_mut_ptr(), ptr::null_mut());
            // SAFETY: function, context and stream belong together; the caller vouches for the arguments.
            check("cuLaunchKernel", unsafe { sys::cuLaunchKernel(self.raw, gx, gy, gz, bx, by, bz, shared_bytes, stream, args, extra) })
        })
    }

    /// [`Function::launch`] of a grid whose blocks all run at once and may wait for one another (`cooperative_groups`' grid).
    ///
    /// # Safety
    /// As for [`Function::launch`].
    pub unsafe fn launch_cooperative(&self, grid: [u32; 3], block: [u32; 3], shared_bytes: u32, args: &mut [*mut c_void]) -> Result<()> {
        static KNOWN: OnceLock<Result<()>> = OnceLock::new();
        KNOWN.get_or_init(|| driver::require("cuLaunchCooperativeKernel")).clone()?;
        let stream = self.ready()?;
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        self.module.context.with_room(|| {
            let args = args.as_mut_ptr();
            // SAFETY: function, context and stream belong together; the caller vouches for the arguments.
            let code = unsafe { sys::cuLaunchCooperativeKernel(self.raw, gx, gy, gz, bx, by, bz, shared_bytes, stream, args) };
            check("cuLaunchCooperativeKernel", code)
        })
    }

    /// This thread's stream, to launch it on. A graph that is being captured there keeps the module.
    #[inline]
    fn ready(&self) -> Result<sys::CUstream> {
        let context = self.module.context;
        let number = context.stream_number();
        if context.is_capture(number) {
            context.keep_other(number, &self.module);
        }
        Ok(context.raw_stream(number))
    }

    /// The sizes of its parameters in bytes, where the driver tells them (from CUDA 12.4 on).
    pub fn parameter_sizes(&self) -> Result<Option<SmallVec<[usize; 16]>>> {
        if driver::require("cuFuncGetParamInfo").is_err() {
            return Ok(None);
        }
        self.module.context.bind()?;
        let mut sizes = SmallVec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is alive and both out-pointers valid; a number past the last one is an error code.
            match unsafe { sys::cuFuncGetParamInfo(self.raw, sizes.len(), &mut offset, &mut size) } {
                sys::CUresult::CUDA_SUCCESS => sizes.push(size),
                sys::CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(Some(sizes)),
                _ => return Ok(None),
            }
        }
    }

    /// The number of threads for which a block with this dynamic shared memory lets the most threads of a multiprocessor run; 0 if more
    /// than 48 KiB were not allowed before ([`Function::allow_dynamic_shared`]).
    pub fn best_block(&self, shared_bytes: u32) -> Result<u32> {
        driver::require("cuOccupancyMaxPotentialBlockSize")?;
        self.module.context.bind()?;
        let (mut blocks, mut threads): (c_int, c_int) = (0, 0);
        // SAFETY: the function is alive and both out-pointers valid; without a callback the shared memory is the same for every size.
        let code = unsafe { sys::cuOccupancyMaxPotentialBlockSize(&mut blocks, &mut threads, self.raw, None, shared_bytes as usize, 0) };
        check("cuOccupancyMaxPotentialBlockSize", code)?;
        Ok(threads.unsigned_abs())
    }

    /// How many blocks of this shape fit on one SM at once; asked from the driver once per shape. None fits that needs more shared memory
    /// than is allowed so far, so that this answer is not kept.
    pub fn blocks_per_sm(&self, threads: u32, shared_bytes: u32) -> Result<u32> {
        let mut known = self.occupancy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, _, blocks)) = known.iter().find(|(t, s, _)| (*t, *s) == (threads, shared_bytes)) {
            return Ok(blocks);
        }
        self.module.context.bind()?;
        let mut blocks: c_int = 0;
        let threads_arg = c_int::try_from(threads).map_err(|_| CudaError::Invalid(format!("a block of {threads} threads")))?;
        // SAFETY: the function is alive and the out-pointer valid.
        let code = unsafe { sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.raw, threads_arg, shared_bytes as usize) };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        if blocks > 0 {
            known.push((threads, shared_bytes, blocks.unsigned_abs()));
        }
        Ok(blocks.unsigned_abs())
    }

    /// Lets launches use this much dynamic shared memory, beyond the 48 KiB that need no permission.
    pub fn allow_dynamic_shared(&self, bytes: u32) -> Result<()> {
        self.module.context.bind()?;
        let value = c_int::try_from(bytes).map_err(|_| CudaError::Invalid(format!("{bytes} bytes of shared memory")))?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is alive; a value too large is an error code.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.raw, attribute, value) })
    }

    /// What the compiler gave it.
    pub fn attributes(&self) -> Result<FunctionAttributes> {
        self.module.context.bind()?;
        let get = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: the function is alive and the out-pointer valid.
            check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.raw) })?;
            Ok::<u32, CudaError>(value.unsigned_abs())
        };
        Ok(FunctionAttributes {
            registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    /// The device that it is loaded on.
    pub fn context(&self) -> &'static Context {
        self.module.context
    }

    /// The raw handle.
    pub fn raw(&self) -> sys::CUfunction {
        self.raw
    }
}

/// Launches a kernel without parameters, which keeps one warp busy for so many microseconds, and does nothing else: what no call can
/// undercut.
pub fn bare_launch(context: &'static Context, micros: u32) -> Result<impl Fn() -> Result<()>> {
    let source = include_str!("../kernels/spin.cu");
    let options = [&*format!("-DMICROS={micros}")];
    let bare = Program { name: "spin.cu", source, options: &options, ..Program::default() }.build(context)?.function_named("bare")?;
    // SAFETY: the kernel has no parameters.
    Ok(move || unsafe { bare.launch([1; 3], [32, 1, 1], 0, &mut []) })
}

/// The argument list of a launch, on the stack up to 24 arguments. Borrows the values.
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
    /// An empty list.
    pub fn new() -> Self {
        Args::default()
    }

    /// Adds a parameter: an integer, a float, a device address as `u64`, or a `repr(C)` struct passed by value.
    #[inline]
    pub fn push<T: Copy>(&mut self, value: &'a T) -> &mut Self {
        self.pointers.push(ptr::from_ref(value).cast_mut().cast());
        self
    }

    /// Adds a parameter that is a struct, given as its bytes: at least as many as the struct has.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &'a [u8]) -> &mut Self {
        self.pointers.push(bytes.as_ptr().cast_mut().cast());
        self
    }

    /// For [`Function::launch`].
    #[inline]
    pub fn pointers(&mut self) -> &mut [*mut c_void] {
        &mut self.pointers
    }
}

/// Whether an ELF file (little-endian, 64 bits) holds all that its header speaks of.
fn is_whole_elf(code: &[u8]) -> bool {
    let number = |at: usize, len: usize| -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(code.get(at..at + len)?);
        Some(u64::from_le_bytes(bytes))
    };
    let end = |offset_at, size_at, count_at| -> Option<u64> {
        number(size_at, 2)?.checked_mul(number(count_at, 2)?)?.checked_add(number(offset_at, 8)?)
    };
    let len = code.len() as u64;
    // e_phoff, e_phentsize, e_phnum and e_shoff, e_shentsize, e_shnum of Elf64_Ehdr.
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
        assert!(is_whole_elf(&elf));
        for cut in 0..elf.len() {
            assert!(!is_whole_elf(&elf[..cut]), "{cut}");
        }
        elf[47] = 0xff;
        assert!(!is_whole_elf(&elf));
    }
}
