//! The functions of cuSOLVER that the binding calls, with their signatures in `cusolverDn.h`.

use std::ffi::{c_int, c_schar, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::compile::libraries::{self, LibrarySpec, LoadedLibrary, MissingLibrary};
use crate::driver::{Context, sys};
use crate::error::Result;

pub(super) type Handle = *mut c_void;
pub(super) type Params = *mut c_void;
pub(super) type Input = *const c_void;
pub(super) type Memory = *mut c_void;
pub(super) type Sizes = *mut usize;
pub(super) type Info = *mut c_int;

pub(super) type GetrfSize = unsafe extern "C" fn(Handle, Params, i64, i64, c_int, Input, i64, c_int, Sizes, Sizes) -> c_int;
pub(super) type Getrf =
    unsafe extern "C" fn(Handle, Params, i64, i64, c_int, Memory, i64, *mut i64, c_int, Memory, usize, Memory, usize, Info) -> c_int;
pub(super) type PotrfSize = unsafe extern "C" fn(Handle, Params, c_int, i64, c_int, Input, i64, c_int, Sizes, Sizes) -> c_int;
pub(super) type Potrf =
    unsafe extern "C" fn(Handle, Params, c_int, i64, c_int, Memory, i64, c_int, Memory, usize, Memory, usize, Info) -> c_int;
pub(super) type PotrfBatched = unsafe extern "C" fn(Handle, c_int, c_int, Input, c_int, Info, c_int) -> c_int;
pub(super) type GeqrfSize = unsafe extern "C" fn(Handle, Params, i64, i64, c_int, Input, i64, c_int, Input, c_int, Sizes, Sizes) -> c_int;
pub(super) type Geqrf =
    unsafe extern "C" fn(Handle, Params, i64, i64, c_int, Memory, i64, c_int, Memory, c_int, Memory, usize, Memory, usize, Info) -> c_int;
pub(super) type OrgqrSize = unsafe extern "C" fn(Handle, c_int, c_int, c_int, Input, c_int, Input, *mut c_int) -> c_int;
pub(super) type Orgqr = unsafe extern "C" fn(Handle, c_int, c_int, c_int, Memory, c_int, Input, Memory, c_int, Info) -> c_int;
pub(super) type SyevdSize =
    unsafe extern "C" fn(Handle, Params, c_int, c_int, i64, c_int, Input, i64, c_int, Input, c_int, Sizes, Sizes) -> c_int;
pub(super) type Syevd = unsafe extern "C" fn(
    Handle,
    Params,
    c_int,
    c_int,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    c_int,
    Memory,
    usize,
    Memory,
    usize,
    Info,
) -> c_int;
pub(super) type SyevBatchedSize =
    unsafe extern "C" fn(Handle, Params, c_int, c_int, i64, c_int, Input, i64, c_int, Input, c_int, Sizes, Sizes, i64) -> c_int;
pub(super) type SyevBatched = unsafe extern "C" fn(
    Handle,
    Params,
    c_int,
    c_int,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    c_int,
    Memory,
    usize,
    Memory,
    usize,
    Info,
    i64,
) -> c_int;
pub(super) type GesvdSize = unsafe extern "C" fn(
    Handle,
    Params,
    c_schar,
    c_schar,
    i64,
    i64,
    c_int,
    Input,
    i64,
    c_int,
    Input,
    c_int,
    Input,
    i64,
    c_int,
    Input,
    i64,
    c_int,
    Sizes,
    Sizes,
) -> c_int;
pub(super) type Gesvd = unsafe extern "C" fn(
    Handle,
    Params,
    c_schar,
    c_schar,
    i64,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    usize,
    Memory,
    usize,
    Info,
) -> c_int;
pub(super) type GesvdpSize = unsafe extern "C" fn(
    Handle,
    Params,
    c_int,
    c_int,
    i64,
    i64,
    c_int,
    Input,
    i64,
    c_int,
    Input,
    c_int,
    Input,
    i64,
    c_int,
    Input,
    i64,
    c_int,
    Sizes,
    Sizes,
) -> c_int;
pub(super) type Gesvdp = unsafe extern "C" fn(
    Handle,
    Params,
    c_int,
    c_int,
    i64,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    usize,
    Memory,
    usize,
    Info,
    *mut f64,
) -> c_int;
pub(super) type GeevSize = unsafe extern "C" fn(
    Handle,
    Params,
    c_int,
    c_int,
    i64,
    c_int,
    Input,
    i64,
    c_int,
    Input,
    c_int,
    Input,
    i64,
    c_int,
    Input,
    i64,
    c_int,
    Sizes,
    Sizes,
) -> c_int;
pub(super) type Geev = unsafe extern "C" fn(
    Handle,
    Params,
    c_int,
    c_int,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    i64,
    c_int,
    Memory,
    usize,
    Memory,
    usize,
    Info,
) -> c_int;

/// Function pointers of the cuSOLVER library. C enums are passed as integers. Functions that an older version lacks are optional.
pub(super) struct CusolverApi {
    pub create: unsafe extern "C" fn(*mut Handle) -> c_int,
    pub destroy: unsafe extern "C" fn(Handle) -> c_int,
    pub create_params: unsafe extern "C" fn(*mut Params) -> c_int,
    pub destroy_params: unsafe extern "C" fn(Params) -> c_int,
    pub set_stream: unsafe extern "C" fn(Handle, sys::CUstream) -> c_int,
    pub getrf: (GetrfSize, Getrf),
    pub potrf: (PotrfSize, Potrf),
    /// `potrfBatched` for f32, f64, and their complex types.
    pub potrf_batched: [PotrfBatched; 4],
    pub geqrf: (GeqrfSize, Geqrf),
    /// `orgqr` for f32 and f64, and `ungqr` for their complex types.
    pub orgqr: [(OrgqrSize, Orgqr); 4],
    pub syevd: (SyevdSize, Syevd),
    pub gesvd: (GesvdSize, Gesvd),
    pub gesvdp: Option<(GesvdpSize, Gesvdp)>,
    pub syev_batched: Option<(SyevBatchedSize, SyevBatched)>,
    pub geev: Option<(GeevSize, Geev)>,
    pub path: PathBuf,
    _library: ManuallyDrop<LoadedLibrary>,
}

impl CusolverApi {
    fn load_functions(driver_major: u32) -> std::result::Result<CusolverApi, MissingLibrary> {
        let loaded = libraries::load_library(&LibrarySpec::cusolver_spec(driver_major))?;
        /// Loads the routine `name` and the function that computes the size of its workspace. Returns the size function first.
        ///
        /// # Safety
        /// The requirements of [`LoadedLibrary::symbol`].
        unsafe fn load_with_workspace_query<S: Copy, F: Copy>(
            loaded: &LoadedLibrary,
            name: &str,
        ) -> std::result::Result<(S, F), MissingLibrary> {
            // SAFETY: the caller guarantees the types of both functions.
            unsafe { Ok((loaded.symbol(&format!("cusolverDn{name}_bufferSize"))?, loaded.symbol(&format!("cusolverDn{name}"))?)) }
        }
        // SAFETY: the type of each field is the function's signature in cusolverDn.h. The library is never closed.
        unsafe {
            Ok(CusolverApi {
                create: loaded.symbol("cusolverDnCreate")?,
                destroy: loaded.symbol("cusolverDnDestroy")?,
                create_params: loaded.symbol("cusolverDnCreateParams")?,
                destroy_params: loaded.symbol("cusolverDnDestroyParams")?,
                set_stream: loaded.symbol("cusolverDnSetStream")?,
                getrf: load_with_workspace_query(&loaded, "Xgetrf")?,
                potrf: load_with_workspace_query(&loaded, "Xpotrf")?,
                potrf_batched: [
                    loaded.symbol("cusolverDnSpotrfBatched")?,
                    loaded.symbol("cusolverDnDpotrfBatched")?,
                    loaded.symbol("cusolverDnCpotrfBatched")?,
                    loaded.symbol("cusolverDnZpotrfBatched")?,
                ],
                geqrf: load_with_workspace_query(&loaded, "Xgeqrf")?,
                orgqr: [
                    load_with_workspace_query(&loaded, "Sorgqr")?,
                    load_with_workspace_query(&loaded, "Dorgqr")?,
                    load_with_workspace_query(&loaded, "Cungqr")?,
                    load_with_workspace_query(&loaded, "Zungqr")?,
                ],
                syevd: load_with_workspace_query(&loaded, "Xsyevd")?,
                gesvd: load_with_workspace_query(&loaded, "Xgesvd")?,
                gesvdp: load_with_workspace_query(&loaded, "Xgesvdp").ok(),
                // cuSOLVER has `XsyevBatched` and `Xgeev` since CUDA 12.6.2.
                syev_batched: load_with_workspace_query(&loaded, "XsyevBatched").ok(),
                geev: load_with_workspace_query(&loaded, "Xgeev").ok(),
                path: loaded.path.clone(),
                _library: ManuallyDrop::new(loaded),
            })
        }
    }

    /// Returns the functions of cuSOLVER. The first call loads the library.
    pub fn shared_functions(context: &'static Context) -> Result<&'static CusolverApi> {
        static CUSOLVER_API: OnceLock<std::result::Result<CusolverApi, MissingLibrary>> = OnceLock::new();
        let load = || {
            // cuSOLVER links cuBLAS. If cuBLAS is in another folder, the dynamic linker finds it because it is loaded already.
            let _ = context.blas();
            CusolverApi::load_functions(context.driver_version().0)
        };
        CUSOLVER_API.get_or_init(load).as_ref().map_err(|m| m.clone().into())
    }
}
