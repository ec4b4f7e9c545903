//! Finds and loads `libcutensor.so.2`, once per process. cuTENSOR links cuBLASLt without a path, so cuBLASLt is loaded first.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cuprum_backend_cuda::driver;
use cuprum_backend_cuda::libraries::{self, LibrarySpec, LoadedLibrary, MissingLibrary};

use crate::sys::{self, ComputeDescriptors, CutensorFunctions};

/// The loaded cuTENSOR library. The library is never closed, because it owns threads and exit handlers.
#[derive(Debug)]
pub struct CutensorLibrary {
    /// The functions of cuTENSOR's C interface.
    pub functions: CutensorFunctions,
    /// The precisions of arithmetic that the library supports.
    pub computes: ComputeDescriptors,
    /// Version: major, minor, patch.
    pub version: (usize, usize, usize),
    /// CUDA version for which the library was built: major, minor.
    pub built_for: (usize, usize),
    /// Path of the library file.
    pub path: PathBuf,
    _cutensor: LoadedLibrary,
    _cublas_lt: Option<LoadedLibrary>,
}

/// Returns the library, loaded at the first call. The CUDA driver must work, because its version limits the CUDA major version of the
/// library.
pub fn get_or_load() -> Result<&'static CutensorLibrary, MissingLibrary> {
    static LOADED_LIBRARY: OnceLock<Result<CutensorLibrary, MissingLibrary>> = OnceLock::new();
    let load = || match driver::probe_driver() {
        Ok(driver) => load(driver.version.0),
        Err(reason) => {
            let (reason, help) = reason.split_once("; ").unwrap_or((&reason, ""));
            Err(MissingLibrary { name: "cuTENSOR".into(), reason: reason.into(), help: help.into() })
        }
    };
    LOADED_LIBRARY.get_or_init(load).as_ref().map_err(MissingLibrary::clone)
}

/// Loads the library for a driver that supports CUDA up to major version `driver_major`.
///
/// # Errors
/// Returns an error if cuTENSOR or cuBLASLt is missing or has an unsupported version.
pub fn load(driver_major: u32) -> Result<CutensorLibrary, MissingLibrary> {
    let spec = LibrarySpec::cutensor_spec();
    let help = format!("pip install cutensor-cu{driver_major}, or set CUPRUM_CUTENSOR_PATH to the folder of libcutensor.so.2");
    let missing = |reason: String| MissingLibrary { name: spec.name.into(), reason, help: help.clone() };
    let (cublas_lt, cutensor) = load_cublas_lt_and_cutensor(&spec, driver_major).map_err(|e| MissingLibrary {
        // If the dynamic linker has failed to load cuBLASLt rather than cuTENSOR, the advice is about cuBLASLt.
        help: if e.reason.contains("libcublasLt") { LibrarySpec::cublas_lt_spec(driver_major).help.into() } else { help.clone() },
        ..e
    })?;
    let path = cutensor.path.clone();
    let functions = CutensorFunctions::from_library(&cutensor).map_err(|e| MissingLibrary { help: help.clone(), ..e })?;
    let (version, built_for) = (sys::library_version(&functions), sys::cuda_version_of_build(&functions));
    check_library_versions(&path, version, built_for, driver_major).map_err(missing)?;
    let computes = ComputeDescriptors::from_library(&cutensor);
    Ok(CutensorLibrary { functions, computes, version, built_for, path, _cutensor: cutensor, _cublas_lt: cublas_lt })
}

/// Loads cuBLASLt and cuTENSOR.
///
/// Both libraries must have the same CUDA major version, but cuTENSOR's file name does not contain this version. Major versions are
/// therefore tried in turn, the newest first.
fn load_cublas_lt_and_cutensor(spec: &LibrarySpec, driver_major: u32) -> Result<(Option<LoadedLibrary>, LoadedLibrary), MissingLibrary> {
    libraries::locate_library(spec)?;
    let mut first_failure = None;
    for major in (12..=driver_major.max(12)).rev() {
        let mut wanted = LibrarySpec::cublas_lt_spec(major);
        wanted.file_names.truncate(1);
        let cublas_lt = libraries::load_library(&wanted).ok();
        match libraries::load_library(spec) {
            Ok(cutensor) => return Ok((cublas_lt, cutensor)),
            Err(e) => first_failure.get_or_insert(e),
        };
    }
    Err(first_failure.unwrap_or_else(|| MissingLibrary { name: spec.name.into(), reason: "not loaded".into(), help: spec.help.into() }))
}

fn check_library_versions(path: &Path, version: (usize, usize, usize), built_for: (usize, usize), driver_major: u32) -> Result<(), String> {
    let path = path.display();
    if version.0 != 2 {
        return Err(format!("{path} is cuTENSOR {}.{}.{}; 2.x is needed", version.0, version.1, version.2));
    }
    if built_for.0 > driver_major as usize {
        return Err(format!("{path} is built for CUDA {}, but the driver supports only CUDA {driver_major}", built_for.0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_and_driver_versions_must_match() {
        let check = |version, built_for, driver| check_library_versions(Path::new("/x/libcutensor.so.2"), version, built_for, driver);
        assert_eq!(check((2, 3, 1), (13, 0), 13), Ok(()));
        assert_eq!(check((2, 3, 1), (12, 6), 13), Ok(()));
        assert_eq!(
            check((2, 3, 1), (13, 0), 12).unwrap_err(),
            "/x/libcutensor.so.2 is built for CUDA 13, but the driver supports only CUDA 12"
        );
        assert!(check((1, 7, 0), (11, 0), 13).unwrap_err().contains("cuTENSOR 1.7.0"));
    }
}
