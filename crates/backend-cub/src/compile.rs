//! Compilation of kernels, with a process-wide cache. The calling thread compiles the kernels, or a background thread compiles them while
//! the accelerator `cuda` runs the calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};

use cuprum_backend_cuda::codegen::{KernelKey, SerializedKey};
use cuprum_backend_cuda::driver::Context;
use cuprum_backend_cuda::launch_cache::LaunchCache;
use cuprum_backend_cuda::libraries::CcclHeaders;
use cuprum_backend_cuda::module::Function;
use cuprum_backend_cuda::program::CudaProgram;
use cuprum_backend_cuda::single_flight::SingleFlight;
use cuprum_backend_cuda::{CudaError, Result};
use cuprum_core::DeclineReason;
use cuprum_core::settings::{self, CompileMode};
use smallvec::SmallVec;

use crate::kernel_source::{GeneratedSource, NVRTC_OPTIONS};
use crate::{at_exit, cccl_headers};

/// The compiled kernels of one source.
#[derive(Clone)]
pub struct CompiledKernels {
    names: &'static [&'static str],
    functions: Arc<SmallVec<[Arc<Function>; 4]>>,
}

impl CompiledKernels {
    /// Returns the kernel `name`.
    pub fn find_kernel(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.get(self.names.iter().position(|n| *n == name)?)
    }
}

/// The compiled kernels, or the reason why their source does not compile with the installed CCCL.
type CompileResult = std::result::Result<CompiledKernels, Arc<str>>;

static KERNEL_CACHE: LazyLock<SingleFlight<CompileResult>> = LazyLock::new(SingleFlight::default);

/// Temporary reason to decline a call whose kernels are being compiled.
const COMPILING_REASON: &str = "its kernel is being compiled in the background";

/// State of a background compilation. [`BACKGROUND_COMPILATIONS`] has no entry for a kernel key whose compilation succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BackgroundCompilationState {
    Running,
    /// The compilation ended with an error or a panic. The next caller compiles again on its own thread, and returns the error if there is
    /// one.
    Failed,
}

static BACKGROUND_COMPILATIONS: LazyLock<Mutex<HashMap<Box<[u8]>, BackgroundCompilationState>>> = LazyLock::new(Mutex::default);

fn lock_background_compilations() -> MutexGuard<'static, HashMap<Box<[u8]>, BackgroundCompilationState>> {
    BACKGROUND_COMPILATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Action for a call whose kernels are not in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CacheMissAction {
    /// The calling thread compiles the kernels, because the call must not be declined. Also used after a failed background compilation, so
    /// that the caller receives the error of the new compilation.
    CompileNow,
    /// The accelerator starts a background compilation of the kernels and declines the call.
    StartBackground,
    /// A background compilation of the kernels is running, so the accelerator declines the call.
    Decline,
}

/// Returns the action for a call whose kernels, with the cache key `key`, are not compiled yet. If `may_decline`, the accelerator may
/// decline the call while the kernels are compiled in the background. Otherwise the calling thread compiles the kernels.
fn choose_cache_miss_action(key: &[u8], may_decline: bool) -> CacheMissAction {
    if !may_decline {
        return CacheMissAction::CompileNow;
    }
    match lock_background_compilations().get(key) {
        None => CacheMissAction::StartBackground,
        Some(BackgroundCompilationState::Running) => CacheMissAction::Decline,
        Some(BackgroundCompilationState::Failed) => CacheMissAction::CompileNow,
    }
}

/// Background threads that have not been joined.
static BACKGROUND_THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn lock_background_threads() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    BACKGROUND_THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a background thread, and joins threads that have ended. The new thread is joined before the process ends. Returns whether the new
/// thread could be started.
fn try_spawn_compile_thread(compile: impl FnOnce() + Send + 'static) -> bool {
    let Ok(thread) = thread::Builder::new().name("cuprum-compile".into()).spawn(compile) else { return false };
    let mut threads = lock_background_threads();
    let (done, mut running): (Vec<_>, Vec<_>) = threads.drain(..).partition(JoinHandle::is_finished);
    running.push(thread);
    *threads = running;
    drop(threads);
    join_compile_threads(done);
    true
}

fn join_compile_threads(threads: Vec<JoinHandle<()>>) {
    // Errors are ignored here, because `RunningCompilationRecord` records the errors and panics of compilations.
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// An entry of [`BACKGROUND_COMPILATIONS`] for a running compilation. Dropping the record stores success or failure, also after a panic.
struct RunningCompilationRecord {
    key: Box<[u8]>,
    succeeded: bool,
}

impl RunningCompilationRecord {
    /// Adds an entry for the running compilation of `key`. Returns `None` if [`BACKGROUND_COMPILATIONS`] already has an entry for `key`.
    fn try_begin_compilation(key: &[u8]) -> Option<RunningCompilationRecord> {
        let mut states = lock_background_compilations();
        if states.contains_key(key) {
            return None;
        }
        states.insert(key.into(), BackgroundCompilationState::Running);
        Some(RunningCompilationRecord { key: key.into(), succeeded: false })
    }

    fn record_compile_success(mut self) {
        self.succeeded = true;
    }
}

impl Drop for RunningCompilationRecord {
    fn drop(&mut self) {
        let mut states = lock_background_compilations();
        if self.succeeded {
            states.remove(&self.key);
        } else {
            states.insert(std::mem::take(&mut self.key), BackgroundCompilationState::Failed);
        }
    }
}

/// Returns the kernels for a key. Compiles them from `source` if they are not in the cache.
///
/// If `takes_long` is set and the settings allow it, a background thread compiles. Until the compilation has ended, calls are declined with
/// a temporary reason. If a source does not compile with the installed CCCL, its calls are declined with a permanent reason, and the source
/// is not compiled again.
///
/// # Errors
/// Returns an error if the compiler or the headers are missing, or if the CUDA driver fails.
pub fn get_or_compile_kernels(
    context: &'static Context,
    key: KernelKey,
    takes_long: bool,
    source: impl FnOnce() -> std::result::Result<GeneratedSource, &'static str>,
) -> Result<std::result::Result<CompiledKernels, DeclineReason>> {
    thread_local! {
        static THREAD_KERNEL_CACHE: LaunchCache<CompiledKernels> = const { LaunchCache::new() };
    }
    let key = key.with_number(context.info().ordinal as u64);
    if let Some(kernels) = LaunchCache::find(&THREAD_KERNEL_CACHE, &key, CompiledKernels::clone) {
        return Ok(Ok(kernels));
    }
    let found = find_in_shared_cache_or_compile(context, &key.serialize(), takes_long, source)?;
    if let Ok(kernels) = &found {
        LaunchCache::insert(&THREAD_KERNEL_CACHE, &key, kernels.clone());
    }
    Ok(found)
}

/// Returns the kernels for a key that the thread-local cache does not contain. See [`get_or_compile_kernels`].
fn find_in_shared_cache_or_compile(
    context: &'static Context,
    key: &SerializedKey,
    takes_long: bool,
    source: impl FnOnce() -> std::result::Result<GeneratedSource, &'static str>,
) -> Result<std::result::Result<CompiledKernels, DeclineReason>> {
    let result = match KERNEL_CACHE.get(key.hash(), key.bytes()) {
        Some(result) => result,
        None => {
            let may_decline = takes_long && settings::compile_mode().is_ok_and(|c| c == CompileMode::Background);
            let action = choose_cache_miss_action(key.bytes(), may_decline);
            if action == CacheMissAction::Decline {
                return Ok(Err(DeclineReason::new_retryable(COMPILING_REASON)));
            }
            let source = match source() {
                Ok(source) => source,
                Err(op) => return Ok(Err(DeclineReason::with_text(|| format!("{op} has no CUDA implementation")))),
            };
            if action == CacheMissAction::StartBackground && try_start_background_compilation(context, key, &source)? {
                return Ok(Err(DeclineReason::new_retryable(COMPILING_REASON)));
            }
            compile_and_cache(context, key, &source)?
        }
    };
    Ok(result.map_err(|text| DeclineReason::with_text(|| text.to_string())))
}

/// Compiles the kernels on a background thread. Returns whether a background compilation of these kernels is running.
///
/// Returns false in three cases: the machine code is in the disk cache, no thread can be started, or an earlier background compilation of
/// these kernels has ended.
fn try_start_background_compilation(context: &'static Context, key: &SerializedKey, source: &GeneratedSource) -> Result<bool> {
    let headers = cccl_headers::cccl_headers()?;
    if with_cuda_program(headers, source, |program| program.is_in_disk_cache(context))? {
        return Ok(false);
    }
    // Exit handlers run in reverse order. Loading NVRTC first makes `join_background_threads` run before NVRTC's own handlers.
    context.compiler()?.version()?;
    static EXIT_HANDLER_REGISTERED: Once = Once::new();
    EXIT_HANDLER_REGISTERED.call_once(|| {
        BACKGROUND_THREADS_PROCESS_ID.store(std::process::id(), Ordering::Relaxed);
        at_exit::register_at_process_exit(join_background_threads);
    });
    at_exit::register_at_thread_exit(join_background_threads);
    let Some(job) = RunningCompilationRecord::try_begin_compilation(key.bytes()) else {
        return Ok(choose_cache_miss_action(key.bytes(), true) == CacheMissAction::Decline); // another caller compiles `key`
    };
    let (key, source) = (key.clone(), source.clone());
    let compile = move || match compile_and_cache(context, &key, &source) {
        Ok(_) => job.record_compile_success(),
        Err(error) => tracing::warn!(source = source.name, %error, "background compilation failed"),
    };
    // If no thread can be started, the closure is dropped. Dropping its `job` records the compilation as failed.
    Ok(try_spawn_compile_thread(compile))
}

/// Makes the main thread wait for background compilations when it ends. Does nothing on other threads.
pub fn register_join_at_main_exit() {
    if at_exit::is_main_thread() {
        at_exit::register_at_thread_exit(join_background_threads);
    }
}

/// Joins all background threads.
///
/// NVRTC and the driver must not be unloaded while a thread compiles. A thread also releases thread-local data of these libraries when it
/// ends, so joining is necessary. Joining may take seconds, but the compiled kernels are then in the disk cache for the next process.
///
/// This function must run before the exit handlers of NVRTC and the driver, some of which are registered during a compilation. Thread-local
/// destructors of the main thread, and of threads that start a compilation, run early enough. `atexit` handlers usually do.
extern "C" fn join_background_threads() {
    if std::process::id() != BACKGROUND_THREADS_PROCESS_ID.load(Ordering::Relaxed) {
        return; // a forked process does not have the threads of its parent
    }
    loop {
        let threads = std::mem::take(&mut *lock_background_threads());
        if threads.is_empty() {
            return;
        }
        join_compile_threads(threads);
    }
}

/// Id of the process that owns the background threads, or 0 before the first background compilation.
static BACKGROUND_THREADS_PROCESS_ID: AtomicU32 = AtomicU32::new(0);

fn compile_and_cache(context: &'static Context, key: &SerializedKey, source: &GeneratedSource) -> Result<CompileResult> {
    KERNEL_CACHE.get_or_make(key.hash(), key.bytes(), || {
        let headers = cccl_headers::cccl_headers()?;
        let built = with_cuda_program(headers, source, |program| {
            let built = program.compile_and_load(context)?;
            let functions: Result<SmallVec<_>> = source.kernels.iter().map(|name| built.extern_c_function(name)).collect();
            Ok(CompiledKernels { names: source.kernels, functions: Arc::new(functions?) })
        });
        match built {
            Ok(kernels) => Ok(Ok(kernels)),
            Err(CudaError::Compile { log, .. }) => {
                tracing::warn!(source = source.name, %headers, log, "a kernel does not compile; the base accelerator runs its calls");
                Ok(Err(format!("{} does not compile with {headers}", source.name).into()))
            }
            Err(e) => Err(e),
        }
    })
}

fn with_cuda_program<R>(headers: &CcclHeaders, source: &GeneratedSource, f: impl FnOnce(CudaProgram) -> Result<R>) -> Result<R> {
    let (major, minor, patch) = headers.version;
    let options: Vec<&str> = NVRTC_OPTIONS.iter().copied().chain(source.options.iter().map(String::as_str)).collect();
    let extra_headers: Vec<(&str, &str)> = source.headers.iter().map(|(name, code)| (name.as_str(), code.as_str())).collect();
    f(CudaProgram {
        name: &source.name,
        source: &source.code,
        options: &options,
        headers: &extra_headers,
        include_dirs: &[&headers.include],
        identity: &format!("CCCL {major}.{minor}.{patch}"),
        ..CudaProgram::default()
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_job_ends_when_it_succeeds() {
        let key = b"a job that succeeds";
        assert_eq!(
            (choose_cache_miss_action(key, false), choose_cache_miss_action(key, true)),
            (CacheMissAction::CompileNow, CacheMissAction::StartBackground)
        );
        let job = RunningCompilationRecord::try_begin_compilation(key).unwrap();
        assert!(RunningCompilationRecord::try_begin_compilation(key).is_none(), "one at a time");
        assert_eq!(
            (choose_cache_miss_action(key, false), choose_cache_miss_action(key, true)),
            (CacheMissAction::CompileNow, CacheMissAction::Decline)
        );
        job.record_compile_success();
        assert_eq!(choose_cache_miss_action(key, true), CacheMissAction::StartBackground);
    }

    #[test]
    fn the_next_caller_compiles_after_a_panic() {
        let key = b"a job that panics";
        let job = RunningCompilationRecord::try_begin_compilation(key).unwrap();
        let thread = std::thread::spawn(move || {
            let _job = job;
            std::panic::resume_unwind(Box::new("a bug")); // skips the panic hook's message
        });
        assert!(thread.join().is_err());
        assert_eq!(choose_cache_miss_action(key, true), CacheMissAction::CompileNow);
    }

    /// Sets a flag when its thread has released its thread-local values, which is later than the end of its closure.
    struct SetOnDrop(&'static AtomicBool);

    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(20));
            self.0.store(true, Ordering::SeqCst);
        }
    }

    thread_local! {
        static ON_THREAD_EXIT: RefCell<Option<SetOnDrop>> = const { RefCell::new(None) };
    }

    #[test]
    fn join_all_waits_for_thread_local_destructors() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let (start, started) = mpsc::channel();
        let work = move || {
            ON_THREAD_EXIT.with(|slot| *slot.borrow_mut() = Some(SetOnDrop(&ENDED)));
            started.recv().unwrap();
        };
        assert!(try_spawn_compile_thread(work));
        join_background_threads(); // returns at once in a process that does not own the threads
        BACKGROUND_THREADS_PROCESS_ID.store(std::process::id(), Ordering::Relaxed);
        start.send(()).unwrap();
        join_background_threads();
        assert!(ENDED.load(Ordering::SeqCst));
        assert!(lock_background_threads().is_empty());
    }
}
