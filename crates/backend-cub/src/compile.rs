//! Kernels under their keys: compiled where the caller waits, or on a thread of their own while the base serves.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};

use cuprum_backend_cuda::codegen::{KernelKey, WrittenKey};
use cuprum_backend_cuda::driver::Context;
use cuprum_backend_cuda::libraries::CcclHeaders;
use cuprum_backend_cuda::module::Function;
use cuprum_backend_cuda::program::Program;
use cuprum_backend_cuda::recent::Recent;
use cuprum_backend_cuda::single_flight::SingleFlight;
use cuprum_backend_cuda::{CudaError, Result};
use cuprum_core::Reason;
use cuprum_core::settings::{self, Compile};
use smallvec::SmallVec;

use crate::source::{OPTIONS, Source};
use crate::{at_exit, headers};

/// The kernels of one source, in its order.
pub type Kernels = Arc<SmallVec<[Arc<Function>; 4]>>;

/// Kernels, or why their source does not compile.
type Built = std::result::Result<Kernels, Arc<str>>;

static BUILT: LazyLock<SingleFlight<Built>> = LazyLock::new(SingleFlight::default);

const COMPILING: &str = "its kernel is being compiled; later calls have it";

/// How a key's compilation on a thread stands; one that has succeeded is not here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Background {
    Running,
    /// It ended with an error or a panic, which the next caller shall meet.
    Failed,
}

static BACKGROUND: LazyLock<Mutex<HashMap<Box<[u8]>, Background>>> = LazyLock::new(Mutex::default);

fn background() -> MutexGuard<'static, HashMap<Box<[u8]>, Background>> {
    BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a caller that finds no kernels comes by them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// It makes them: it may not decline, or a thread failed to make them.
    Make,
    /// It may leave them to a thread, and decline.
    Leave,
    /// It declines: a thread is making them.
    Decline,
}

fn next(key: &[u8], may_decline: bool) -> Next {
    if !may_decline {
        return Next::Make;
    }
    match background().get(key) {
        None => Next::Leave,
        Some(Background::Running) => Next::Decline,
        Some(Background::Failed) => Next::Make,
    }
}

/// Threads that compile, or have.
static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn threads() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a thread that the end of the process waits for; whether there is one.
fn begin(compile: impl FnOnce() + Send + 'static) -> bool {
    let Ok(thread) = thread::Builder::new().name("cuprum-compile".into()).spawn(compile) else { return false };
    let mut all = threads();
    let (done, mut running): (Vec<_>, Vec<_>) = all.drain(..).partition(JoinHandle::is_finished);
    running.push(thread);
    *all = running;
    drop(all);
    join(done);
    true
}

fn join(threads: Vec<JoinHandle<()>>) {
    // What a compilation ended with, a panic too, its `Run` has told.
    threads.into_iter().for_each(|thread| drop(thread.join()));
}

/// A compilation on a thread. However it ends, callers look for it no longer.
struct Run {
    key: Box<[u8]>,
    succeeded: bool,
}

impl Run {
    /// Puts it down as running, unless something else is put down for its key.
    fn begin(key: &[u8]) -> Option<Run> {
        let mut all = background();
        if all.contains_key(key) {
            return None;
        }
        all.insert(key.into(), Background::Running);
        Some(Run { key: key.into(), succeeded: false })
    }

    fn succeed(mut self) {
        self.succeeded = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut all = background();
        if self.succeeded {
            all.remove(&self.key);
        } else {
            all.insert(std::mem::take(&mut self.key), Background::Failed);
        }
    }
}

/// The kernels under a key, compiled from `source` if they are not there yet. If that takes longer than what another accelerator needs to
/// give exactly the same results, and the settings allow it, it happens on a thread, and until it is done this is a passing reason to decline.
///
/// A source that does not compile with the CCCL found here is a reason to decline, and is not tried again.
pub fn kernels(
    context: &'static Context,
    key: KernelKey,
    takes_long: bool,
    source: impl FnOnce() -> std::result::Result<Source, &'static str>,
) -> Result<std::result::Result<Kernels, Reason>> {
    thread_local! {
        static RECENT: Recent<Kernels> = const { Recent::new() };
    }
    let key = key.with(context.info().ordinal as u64);
    if let Some(kernels) = Recent::find(&RECENT, &key, Arc::clone) {
        return Ok(Ok(kernels));
    }
    let found = find_or_make(context, &key.written(), takes_long, source)?;
    if let Ok(kernels) = &found {
        Recent::keep(&RECENT, &key, kernels.clone());
    }
    Ok(found)
}

/// [`kernels`] that this thread has not had lately.
fn find_or_make(
    context: &'static Context,
    key: &WrittenKey,
    takes_long: bool,
    source: impl FnOnce() -> std::result::Result<Source, &'static str>,
) -> Result<std::result::Result<Kernels, Reason>> {
    let built = match BUILT.get(key.hash(), key.bytes()) {
        Some(built) => built,
        None => {
            let may_decline = takes_long && settings::compile().is_ok_and(|c| c == Compile::Background);
            let next = next(key.bytes(), may_decline);
            if next == Next::Decline {
                return Ok(Err(Reason::passing(COMPILING)));
            }
            let source = match source() {
                Ok(source) => source,
                Err(op) => return Ok(Err(Reason::with(|| format!("{op}: no code for it")))),
            };
            if next == Next::Leave && is_left_to_thread(context, key, &source)? {
                return Ok(Err(Reason::passing(COMPILING)));
            }
            make(context, key, &source)?
        }
    };
    Ok(built.map_err(|text| Reason::with(|| text.to_string())))
}

/// Whether a thread compiles the kernels now. It need not if their code is cached, and cannot if there is none to be had.
fn is_left_to_thread(context: &'static Context, key: &WrittenKey, source: &Source) -> Result<bool> {
    let headers = headers::shared()?;
    if with_program(headers, source, |program| program.is_cached(context))? {
        return Ok(false);
    }
    // NVRTC is loaded before waiting for its threads is put down for the end of the process: so that comes before its unloading.
    context.compiler()?.version()?;
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        OWNER.store(std::process::id(), Ordering::Relaxed);
        at_exit::register(wait);
    });
    at_exit::register_on_thread(wait);
    let Some(run) = Run::begin(key.bytes()) else {
        return Ok(next(key.bytes(), true) == Next::Decline); // another caller was faster
    };
    let (key, source) = (key.clone(), source.clone());
    let compile = move || match make(context, &key, &source) {
        Ok(_) => run.succeed(),
        Err(error) => tracing::warn!(source = source.name, %error, "a kernel could not be made in the background"),
    };
    // A thread that cannot begin drops its run, which fails thereby.
    Ok(begin(compile))
}

/// Has what threads compile finished before the main thread ends the process, if this is the main thread.
pub fn finish_before_main_ends() {
    if at_exit::is_main_thread() {
        at_exit::register_on_thread(wait);
    }
}

/// Waits until no thread compiles, however long that takes: the compiler cannot be unloaded under a thread that is in it, or that puts away
/// what the compiler and the driver keep for each thread, which is done when a thread ends. So threads are joined: that their work is done is
/// not enough. Each takes seconds, and what it makes is there for the next process.
///
/// It has to come before the ends of the compiler and the driver, which put some of them down as late as in the middle of a compilation:
/// the end of a thread's own values does, of the main thread's and of those that began a compilation; `atexit` only mostly.
extern "C" fn wait() {
    if std::process::id() != OWNER.load(Ordering::Relaxed) {
        return; // a copy of the process (`fork`) has none of its threads
    }
    loop {
        let all = std::mem::take(&mut *threads());
        if all.is_empty() {
            return;
        }
        join(all);
    }
}

/// The process whose threads compile.
static OWNER: AtomicU32 = AtomicU32::new(0);

fn make(context: &'static Context, key: &WrittenKey, source: &Source) -> Result<Built> {
    BUILT.get_or_make(key.hash(), key.bytes(), || {
        let headers = headers::shared()?;
        let built = with_program(headers, source, |program| {
            let built = program.build(context)?;
            let functions: Result<SmallVec<_>> = source.kernels.iter().map(|name| built.function_named(name)).collect();
            Ok(Arc::new(functions?))
        });
        match built {
            Ok(kernels) => Ok(Ok(kernels)),
            Err(CudaError::Compile { log, .. }) => {
                tracing::warn!(source = source.name, %headers, log, "a kernel does not compile; its calls go to the base");
                Ok(Err(format!("{} does not compile with {headers}", source.name).into()))
            }
            Err(e) => Err(e),
        }
    })
}

fn with_program<R>(headers: &CcclHeaders, source: &Source, f: impl FnOnce(Program) -> Result<R>) -> Result<R> {
    let (major, minor, patch) = headers.version;
    let options: Vec<&str> = OPTIONS.iter().copied().chain(source.options.iter().map(String::as_str)).collect();
    let own: Vec<(&str, &str)> = source.headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    f(Program {
        name: &source.name,
        source: &source.text,
        options: &options,
        headers: &own,
        include_dirs: &[&headers.include],
        identity: &format!("CCCL {major}.{minor}.{patch}"),
        ..Program::default()
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
    fn a_run_that_ends_is_waited_for_no_longer() {
        let key = b"a run of this test";
        assert_eq!((next(key, false), next(key, true)), (Next::Make, Next::Leave));
        let run = Run::begin(key).unwrap();
        assert!(Run::begin(key).is_none(), "one at a time");
        assert_eq!((next(key, false), next(key, true)), (Next::Make, Next::Decline));
        run.succeed();
        assert_eq!(next(key, true), Next::Leave);
    }

    #[test]
    fn a_thread_that_panics_leaves_the_kernels_to_the_next_caller() {
        let key = b"a run that panics";
        let run = Run::begin(key).unwrap();
        let thread = std::thread::spawn(move || {
            let _run = run;
            std::panic::resume_unwind(Box::new("a bug")); // without the hook's message
        });
        assert!(thread.join().is_err());
        assert_eq!(next(key, true), Next::Make);
    }

    /// Told when the thread that holds it ends: later than its work.
    struct AtEnd(&'static AtomicBool);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(20));
            self.0.store(true, Ordering::SeqCst);
        }
    }

    thread_local! {
        static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
    }

    #[test]
    fn the_end_of_the_process_waits_for_threads_that_compile() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let (go, gone) = mpsc::channel();
        let work = move || {
            AT_END.with(|at_end| *at_end.borrow_mut() = Some(AtEnd(&ENDED)));
            gone.recv().unwrap();
        };
        assert!(begin(work));
        wait(); // another process's: returns
        OWNER.store(std::process::id(), Ordering::Relaxed);
        go.send(()).unwrap();
        wait();
        assert!(ENDED.load(Ordering::SeqCst), "with what is put away when a thread ends");
        assert!(threads().is_empty());
    }
}
