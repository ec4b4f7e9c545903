//! A binding to cuFFT: plans for batches of strided transforms, cached per device. Contains unsafe code for the C interface of cuFFT.
//!
//! The functions are loaded from the library that [`crate::compile::libraries`] finds. Work areas are ordinary device memory of the caller,
//! so plans own only their tables of sines and cosines.

use std::collections::hash_map::Entry;
use std::ffi::{c_int, c_longlong, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cuprum_core::fault_injection::{FailurePoint, should_fail};
use rustc_hash::FxHashMap;

use crate::compile::libraries::{self, LibrarySpec, LoadedLibrary, MissingLibrary};
use crate::driver::{Context, PerDevice, sys};
use crate::error::{CudaError, Result};

/// Maximum number of plans in the cache of a device. Plans that a captured graph uses do not count.
pub const MAX_CACHED_PLANS: usize = 64;

/// The element types of the input and the output of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum TransformType {
    /// From complex64 to complex64.
    C2C = 0x29,
    /// From float32 to complex64.
    R2C = 0x2a,
    /// From complex64 to float32.
    C2R = 0x2c,
    /// From complex128 to complex128.
    Z2Z = 0x69,
    /// From float64 to complex128.
    D2Z = 0x6a,
    /// From complex128 to float64.
    Z2D = 0x6c,
}

/// The memory layout of the input or the output of a batch of transforms. All fields are in elements of the respective array.
///
/// Element `(x0, x1, x2)` of transform `b` is at `b * distance + ((x0 * embed[1] + x1) * embed[2] + x2) * stride`, where the index of a
/// missing axis is 0 and its `embed` 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchLayout {
    /// Extents of the array in which the transform is embedded. The first extent is not used.
    pub embed: [i64; 3],
    /// Distance between consecutive elements of the last axis.
    pub stride: i64,
    /// Distance between the first elements of consecutive transforms.
    pub distance: i64,
}

/// A batch of transforms of one to three axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CufftPlanShape {
    /// Element types.
    pub kind: TransformType,
    /// Number of axes.
    pub rank: usize,
    /// Lengths of the axes, outermost first. Only the first `rank` lengths are used.
    pub lengths: [i64; 3],
    /// Memory layout of the input.
    pub input: BatchLayout,
    /// Memory layout of the output.
    pub output: BatchLayout,
    /// Number of transforms.
    pub batch: i64,
}

type Handle = c_int;
type Exec = unsafe extern "C" fn(Handle, *mut c_void, *mut c_void) -> c_int;
type ExecDirected = unsafe extern "C" fn(Handle, *mut c_void, *mut c_void, c_int) -> c_int;

/// Function pointers of the cuFFT library. C enums are passed as integers.
struct CufftApi {
    create: unsafe extern "C" fn(*mut Handle) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    set_auto_allocation: unsafe extern "C" fn(Handle, c_int) -> c_int,
    #[allow(clippy::type_complexity, reason = "the signature in cufft.h")]
    make_plan_many_64: unsafe extern "C" fn(
        Handle,
        c_int,
        *mut c_longlong,
        *mut c_longlong,
        c_longlong,
        c_longlong,
        *mut c_longlong,
        c_longlong,
        c_longlong,
        c_int,
        c_longlong,
        *mut usize,
    ) -> c_int,
    set_stream: unsafe extern "C" fn(Handle, sys::CUstream) -> c_int,
    set_work_area: unsafe extern "C" fn(Handle, *mut c_void) -> c_int,
    get_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    c2c: ExecDirected,
    z2z: ExecDirected,
    r2c: Exec,
    d2z: Exec,
    c2r: Exec,
    z2d: Exec,
    path: PathBuf,
    _library: ManuallyDrop<LoadedLibrary>,
}

impl CufftApi {
    fn load_functions(driver_major: u32) -> std::result::Result<CufftApi, MissingLibrary> {
        let loaded = libraries::load_library(&LibrarySpec::cufft_spec(driver_major))?;
        // SAFETY: the type of each field is the function's signature in cufft.h. The library is never closed.
        unsafe {
            Ok(CufftApi {
                create: loaded.symbol("cufftCreate")?,
                destroy: loaded.symbol("cufftDestroy")?,
                set_auto_allocation: loaded.symbol("cufftSetAutoAllocation")?,
                make_plan_many_64: loaded.symbol("cufftMakePlanMany64")?,
                set_stream: loaded.symbol("cufftSetStream")?,
                set_work_area: loaded.symbol("cufftSetWorkArea")?,
                get_version: loaded.symbol("cufftGetVersion")?,
                c2c: loaded.symbol("cufftExecC2C")?,
                z2z: loaded.symbol("cufftExecZ2Z")?,
                r2c: loaded.symbol("cufftExecR2C")?,
                d2z: loaded.symbol("cufftExecD2Z")?,
                c2r: loaded.symbol("cufftExecC2R")?,
                z2d: loaded.symbol("cufftExecZ2D")?,
                path: loaded.path.clone(),
                _library: ManuallyDrop::new(loaded),
            })
        }
    }

    /// Returns the functions of cuFFT. The first call loads the library.
    fn shared_functions(driver_major: u32) -> Result<&'static CufftApi> {
        static CUFFT_API: OnceLock<std::result::Result<CufftApi, MissingLibrary>> = OnceLock::new();
        CUFFT_API.get_or_init(|| CufftApi::load_functions(driver_major)).as_ref().map_err(|m| m.clone().into())
    }
}

/// Returns the path of cuFFT without loading it, or the reason why it is missing.
pub fn locate_cufft(driver_major: u32) -> std::result::Result<PathBuf, String> {
    libraries::locate_library(&LibrarySpec::cufft_spec(driver_major)).map_err(|m| m.to_string())
}

/// Loads cuFFT, unless it is loaded.
///
/// # Errors
/// [`CudaError::Missing`] if cuFFT cannot be loaded, with the reason.
pub fn load_cufft(context: &Context) -> Result<()> {
    CufftApi::shared_functions(context.driver_version().0).map(|_| ())
}

/// A cuFFT plan for one [`CufftPlanShape`]. A mutex serialises calls of several threads. Work that is queued with the plan on different
/// streams may run concurrently.
pub struct CufftPlan {
    api: &'static CufftApi,
    context: &'static Context,
    kind: TransformType,
    /// The handle, and the number of the stream to which it is set, or `None` if the stream must be set again.
    handle: Mutex<(Handle, Option<u32>)>,
    work_bytes: usize,
    /// Whether a captured graph contains work of this plan, so that the plan must not be destroyed.
    is_in_graph: AtomicBool,
    /// Value of the counter of plan lookups at the last use of the plan.
    last_used: AtomicU64,
}

/// The cached plans of a device.
#[derive(Default)]
struct CufftPlanCache(Mutex<FxHashMap<CufftPlanShape, Arc<CufftPlan>>>);

static PLAN_CACHES: PerDevice<CufftPlanCache> = PerDevice::new();

impl Context {
    /// Returns the plan for `shape` from the cache, or a new one. The first call loads cuFFT.
    pub fn get_or_make_fft_plan(&'static self, shape: &CufftPlanShape) -> Result<Arc<CufftPlan>> {
        static PLAN_LOOKUP_COUNT: AtomicU64 = AtomicU64::new(0);
        let now = PLAN_LOOKUP_COUNT.fetch_add(1, Ordering::Relaxed);
        let cache = &PLAN_CACHES.get_or_create(self).0;
        let lock = || cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = lock().get(shape) {
            plan.last_used.store(now, Ordering::Relaxed);
            return Ok(plan.clone());
        }
        let made = Arc::new(CufftPlan::create_plan(self, shape, now)?);
        let mut plans = lock();
        let plan = match plans.entry(*shape) {
            Entry::Occupied(other) => other.get().clone(),
            Entry::Vacant(place) => place.insert(made).clone(),
        };
        let oldest = key_to_evict(
            MAX_CACHED_PLANS,
            plans.iter().filter(|(_, p)| !p.is_in_graph.load(Ordering::Relaxed)).map(|(s, p)| (*s, p.last_use_time())),
        );
        let removed = oldest.and_then(|oldest| plans.remove(&oldest));
        drop(plans);
        drop(removed); // dropped after the lock is released, because it waits for the device
        Ok(plan)
    }

    /// Returns the number of cached plans of this device.
    pub fn cached_fft_plan_count(&'static self) -> usize {
        PLAN_CACHES.get_or_create(self).0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Returns the key of the least recently used entry if there are more than `most` entries, else `None`. An entry consists of a key and the
/// time of its last use.
fn key_to_evict<K>(most: usize, entries: impl Iterator<Item = (K, u64)> + Clone) -> Option<K> {
    if entries.clone().count() > most { entries.min_by_key(|(_, age)| *age).map(|(key, _)| key) } else { None }
}

impl CufftPlan {
    fn create_plan(context: &'static Context, shape: &CufftPlanShape, now: u64) -> Result<CufftPlan> {
        let api = CufftApi::shared_functions(context.driver_version().0)?;
        let (mut handle, mut work_bytes) = (0, 0);
        context.retry_in_current_context(|| {
            // SAFETY: the context is current, and the out-pointer `handle` is a local.
            check_library_status(context, "cufftCreate", unsafe { (api.create)(&mut handle) })?;
            let planned = CufftPlan::make_plan_in_handle(context, api, handle, shape, &mut work_bytes);
            if planned.is_err() {
                // SAFETY: the handle was just created, and no work uses it.
                unsafe { (api.destroy)(handle) };
            }
            planned
        })?;
        let handle = Mutex::new((handle, None));
        let (is_in_graph, last_used) = (AtomicBool::new(false), AtomicU64::new(now));
        Ok(CufftPlan { api, context, kind: shape.kind, handle, work_bytes, is_in_graph, last_used })
    }

    /// Makes the plan for `shape` in the new cuFFT handle `handle`. Writes the size of the work area to `work_bytes`.
    fn make_plan_in_handle(
        context: &Context,
        api: &CufftApi,
        handle: Handle,
        shape: &CufftPlanShape,
        work_bytes: &mut usize,
    ) -> Result<()> {
        let CufftPlanShape { kind, rank, mut lengths, mut input, mut output, batch } = *shape;
        if !(1..=3).contains(&rank) || batch < 1 || lengths[..rank].iter().any(|n| *n < 1) {
            return Err(CudaError::Invalid(format!("not a batch of transforms: {shape:?}")));
        }
        // SAFETY: `handle` was just created.
        check_library_status(context, "cufftSetAutoAllocation", unsafe { (api.set_auto_allocation)(handle, 0) })?;
        // SAFETY: the arrays have at least `rank` elements, and all pointers are to locals of the caller or this function.
        let code = unsafe {
            (api.make_plan_many_64)(
                handle,
                rank as c_int,
                lengths.as_mut_ptr(),
                input.embed.as_mut_ptr(),
                input.stride,
                input.distance,
                output.embed.as_mut_ptr(),
                output.stride,
                output.distance,
                kind as c_int,
                batch,
                work_bytes,
            )
        };
        check_library_status(context, "cufftMakePlanMany64", code)
    }

    fn last_use_time(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Returns the size of the work area that [`CufftPlan::execute`] needs, in bytes.
    pub fn work_bytes(&self) -> usize {
        self.work_bytes
    }

    /// Returns the path of the cuFFT library file.
    pub fn library_path(&self) -> &Path {
        &self.api.path
    }

    /// Queues the transforms on this thread's stream, from the address `input` to the address `output`, which may be equal. `work` is the
    /// address of the work area. `inverse` has no effect for transforms from or to real numbers.
    ///
    /// # Safety
    /// The addresses `input` and `output` are valid on this plan's device for the plan's shape, until the work has ended. So is `work`, for
    /// [`CufftPlan::work_bytes`] bytes. Transforms to real numbers may overwrite their input.
    pub unsafe fn execute(&self, input: u64, output: u64, work: u64, inverse: bool) -> Result<()> {
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let (handle, stream) = &mut *handle;
        let number = self.context.current_stream_number();
        if self.context.is_capture_stream(number) {
            self.is_in_graph.store(true, Ordering::Relaxed);
        }
        let pointer = |address: u64| ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        let (from, to, direction) = (pointer(input), pointer(output), if inverse { 1 } else { -1 });
        self.context.retry_in_current_context(|| {
            if *stream != Some(number) {
                *stream = None;
                // SAFETY: the handle exists and is locked, and the stream is of its context.
                check_library_status(self.context, "cufftSetStream", unsafe { (self.api.set_stream)(*handle, self.context.stream()) })?;
                *stream = if self.context.is_capture_stream(number) { None } else { Some(number) };
            }
            // SAFETY: the handle is locked, and the caller guarantees that the work area is large enough.
            check_library_status(self.context, "cufftSetWorkArea", unsafe { (self.api.set_work_area)(*handle, pointer(work)) })?;
            // SAFETY: the handle is locked, and the caller guarantees that the addresses are valid for the plan's shape.
            let (call, code) = unsafe {
                match self.kind {
                    TransformType::C2C => ("cufftExecC2C", (self.api.c2c)(*handle, from, to, direction)),
                    TransformType::Z2Z => ("cufftExecZ2Z", (self.api.z2z)(*handle, from, to, direction)),
                    TransformType::R2C => ("cufftExecR2C", (self.api.r2c)(*handle, from, to)),
                    TransformType::D2Z => ("cufftExecD2Z", (self.api.d2z)(*handle, from, to)),
                    TransformType::C2R => ("cufftExecC2R", (self.api.c2r)(*handle, from, to)),
                    TransformType::Z2D => ("cufftExecZ2D", (self.api.z2d)(*handle, from, to)),
                }
            };
            check_library_status(self.context, call, code)
        })
    }

    /// Returns the version of cuFFT as a number, such as `12000`.
    pub fn version(&self) -> Result<u32> {
        let mut version = 0;
        // SAFETY: the out-pointer is a local.
        check_status("cufftGetVersion", unsafe { (self.api.get_version)(&mut version) })?;
        Ok(version.unsigned_abs())
    }
}

impl Drop for CufftPlan {
    /// Waits for queued work, which reads the plan's tables, and destroys the plan. If the wait is impossible, as during a capture, or if a
    /// captured graph uses the plan, the plan is leaked.
    fn drop(&mut self) {
        let is_needed = self.is_in_graph.load(Ordering::Relaxed) || self.context.is_capturing();
        // This wait does not report faults of kernels. The next call that reports errors reports them.
        if is_needed || !self.context.wait_for_all_streams_ignoring_faults() || self.context.set_current().is_err() {
            return;
        }
        let (handle, _) = *self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: no work uses the plan any more, and this `CufftPlan` is the only owner of the handle.
        unsafe { (self.api.destroy)(handle) };
    }
}

impl std::fmt::Debug for CufftPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CufftPlan({:?}, {} bytes, at {})", self.kind, self.work_bytes, self.api.path.display())
    }
}

fn check_library_status(context: &Context, call: &'static str, code: c_int) -> Result<()> {
    check_status(call, code).or_else(|failure| context.check_usable().and(Err(failure)))
}

fn check_status(call: &'static str, code: c_int) -> Result<()> {
    let code = if code == 0 && should_fail(FailurePoint::Library) { 5 } else { code };
    let name = match code {
        0 => return Ok(()),
        1 => "CUFFT_INVALID_PLAN",
        2 => "CUFFT_ALLOC_FAILED",
        3 => "CUFFT_INVALID_TYPE",
        4 => "CUFFT_INVALID_VALUE",
        5 => "CUFFT_INTERNAL_ERROR",
        6 => "CUFFT_EXEC_FAILED",
        7 => "CUFFT_SETUP_FAILED",
        8 => "CUFFT_INVALID_SIZE",
        9 => "CUFFT_UNALIGNED_DATA",
        11 => "CUFFT_INVALID_DEVICE",
        13 => "CUFFT_NO_WORKSPACE",
        14 => "CUFFT_NOT_IMPLEMENTED",
        16 => "CUFFT_NOT_SUPPORTED",
        _ => "unknown status",
    };
    Err(CudaError::Cufft { call, code: code.unsigned_abs(), name: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_names_and_full_devices_are_retried() {
        assert!(check_status("cufftCreate", 0).is_ok());
        let full = check_status("cufftMakePlanMany64", 2).unwrap_err();
        assert!(full.is_out_of_memory() && full.to_string().contains("CUFFT_ALLOC_FAILED"), "{full}");
        assert!(!check_status("cufftMakePlanMany64", 8).unwrap_err().is_out_of_memory());
    }

    #[test]
    fn the_least_recently_used_plan_is_removed() {
        let entries = [("a", 7), ("b", 3), ("c", 5)];
        assert_eq!(key_to_evict(3, entries.into_iter()), None);
        assert_eq!(key_to_evict(2, entries.into_iter()), Some("b"));
    }
}
