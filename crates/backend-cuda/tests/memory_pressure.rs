//! A device without free memory while the pool keeps free blocks. The pool must return its blocks when modules, launches, libraries, graphs
//! or other users of the device need memory.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cuprum_backend_cuda::driver::{self, Context, sys};
use cuprum_backend_cuda::module::Function;
use cuprum_backend_cuda::program::CudaProgram;
use cuprum_backend_cuda::testing;

/// Runs `test` on the first device, one test at a time.
fn on_device(test: impl FnOnce(&'static Context)) {
    static ONE: Mutex<()> = Mutex::new(());
    let _guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match driver::probe_driver() {
        Ok(_) => test(Context::get(0).expect("a device that the probe saw")),
        Err(reason) => testing::skip(1, reason),
    }
}

const MIB: usize = 1 << 20;

/// Simulates another user of the device: memory allocated from the driver without the pool.
struct Other<'a>(&'a Context, Vec<u64>);

impl<'a> Other<'a> {
    fn new(context: &'a Context) -> Other<'a> {
        Other(context, Vec::new())
    }

    fn take(&mut self, bytes: usize) -> bool {
        self.0.make_current().unwrap();
        let mut pointer = 0;
        // SAFETY: the context is current and the out-pointer valid.
        let got = unsafe { sys::cuMemAlloc_v2(&mut pointer, bytes) } == sys::CUresult::CUDA_SUCCESS;
        if got {
            self.1.push(pointer);
        }
        got
    }

    /// Allocates until less than 2 MiB are free.
    fn take_all(&mut self) {
        let mut step = 16 << 30;
        while step >= 2 * MIB {
            if !self.take(step) {
                step /= 2;
            }
        }
    }
}

impl Drop for Other<'_> {
    fn drop(&mut self) {
        self.0.make_current().unwrap();
        // SAFETY: from `cuMemAlloc`, freed once.
        self.1.drain(..).for_each(|pointer| _ = unsafe { sys::cuMemFree_v2(pointer) });
    }
}

/// Allocates and frees about `bytes` in blocks of 256 MiB, which the pool then keeps.
fn keep(context: &'static Context, bytes: usize) -> usize {
    context.trim().unwrap();
    let blocks: Vec<_> = (0..bytes / (256 * MIB)).map(|_| context.alloc_on_current_stream(256 * MIB).unwrap()).collect();
    drop(blocks);
    context.synchronize().unwrap();
    context.memory_stats().unwrap().cached
}

/// Returns a kernel with 64 KiB of stack per thread, for whose launch the driver allocates gigabytes.
fn large_stack(context: &'static Context) -> std::sync::Arc<Function> {
    let source = r#"extern "C" __global__ void stack(int* out, int n) {
        int values[16384];
        for (int i = 0; i < n; i++) values[(i * 7 + threadIdx.x) & 16383] = i;
        if (n > 0) out[0] = values[n & 16383];
    }"#;
    let program = CudaProgram { name: "stack.cu", source, ..CudaProgram::default() };
    program.compile_and_load(context).unwrap().extern_c_function("stack").unwrap()
}

fn launch(function: &Function) -> Result<(), cuprum_backend_cuda::CudaError> {
    let (out, n) = (0u64, 0i32);
    let mut args = cuprum_backend_cuda::module::Args::new();
    args.push(&out).push(&n);
    // SAFETY: the arguments match the kernel's parameters; with n = 0 it writes nothing.
    unsafe { function.launch([1, 1, 1], [32, 1, 1], 0, args.pointers()) }
}

/// Returns a number of bytes slightly below the maximum of free blocks that the pool keeps, a quarter of the device's memory.
fn share(context: &Context) -> usize {
    context.info().total_memory as usize / 5
}

#[test]
fn a_module_with_large_variables_is_loaded_on_a_full_device() {
    on_device(|context| {
        let source = r#"__device__ char table[1 << 30]; extern "C" __global__ void touch(int i) { table[i] = 1; }"#;
        let program = CudaProgram { name: "table.cu", source, ..CudaProgram::default() };
        drop(program.compile_and_load(context).unwrap()); // fills the disk cache, so that the second build only loads
        assert!(keep(context, share(context)) > 2 << 30);
        let mut other = Other::new(context);
        other.take_all();
        let built = program.compile_and_load(context).unwrap();
        assert_eq!(built.extern_c_function("touch").unwrap().attributes().unwrap().shared_bytes, 0);
        assert!(context.memory_stats().unwrap().cached < 1 << 30, "kept memory was returned for it");
    });
}

#[test]
fn a_kernel_with_large_stacks_is_launched_on_a_full_device() {
    on_device(|context| {
        let function = large_stack(context);
        let kept = keep(context, share(context));
        let needed = context.info().sm_count as usize * context.info().threads_per_sm as usize * (64 << 10);
        if kept < needed + needed / 4 {
            println!("skipped: the pool keeps {kept} bytes, the launch needs {needed}");
            return;
        }
        let mut other = Other::new(context);
        other.take_all();
        launch(&function).unwrap();
        context.synchronize().unwrap();
    });
}

#[test]
fn cublas_is_created_on_a_full_device() {
    on_device(|context| {
        assert!(keep(context, share(context)) > 1 << 30);
        let mut other = Other::new(context);
        other.take_all();
        println!("cuBLAS {}", context.blas().unwrap().version());
    });
}

#[test]
fn a_graph_is_made_and_launched_on_a_full_device() {
    on_device(|context| {
        let built = CudaProgram { name: "nop.cu", source: r#"extern "C" __global__ void nop() {}"#, ..CudaProgram::default() }
            .compile_and_load(context)
            .unwrap();
        let nop = built.extern_c_function("nop").unwrap();
        assert!(keep(context, share(context)) > 1 << 30);
        let mut other = Other::new(context);
        other.take_all();
        let number = context.begin_capture().unwrap();
        let stream = cuprum_core::Stream { device: context.device(), id: number };
        // SAFETY: a kernel without parameters.
        stream.scope(|| (0..20_000).for_each(|_| unsafe { nop.launch([1; 3], [32, 1, 1], 0, &mut []) }.unwrap()));
        let graph = context.end_capture(number).unwrap();
        assert_eq!(graph.node_count(), 20_000);
    });
}

#[test]
fn kept_memory_goes_to_other_users_that_need_it() {
    on_device(|context| {
        let kept = keep(context, share(context));
        let mut other = Other::new(context);
        // Free memory becomes slightly less than the kept memory.
        let free = context.free_device_bytes().unwrap();
        assert!(other.take(free - kept / 2), "{free} bytes are free, {kept} kept");
        assert!(!other.take(kept), "what the pool keeps is not there for others");
        std::thread::sleep(Duration::from_millis(150)); // the pool checks free memory at most every 100 ms
        drop(context.alloc_on_current_stream(4 * MIB).unwrap());
        assert!(context.memory_stats().unwrap().cached < kept / 8, "returned at the next request");
        assert!(other.take(kept), "others have it");
    });
}

#[test]
fn memory_is_kept_where_others_have_enough() {
    on_device(|context| {
        let kept = keep(context, 1 << 30);
        std::thread::sleep(Duration::from_millis(150));
        drop(context.alloc_on_current_stream(4 * MIB).unwrap());
        context.synchronize().unwrap();
        assert!(context.memory_stats().unwrap().cached >= kept);
    });
}
