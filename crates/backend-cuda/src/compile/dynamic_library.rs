//! Opens shared libraries by path.

use std::path::{Path, PathBuf};

use crate::compile::platform::Platform;

/// Loads the library file at `path`.
#[cfg(not(windows))]
pub fn open_library(path: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: `dlopen` runs the library's initialisers. `path` has the name of an NVIDIA library, and its folder is part of the system or
    // chosen by the user.
    unsafe { libloading::Library::new(path.as_os_str()) }
}

/// Loads the library file at the absolute path `path`. Dependencies of the library are searched in the library's folder and in the folders
/// of the application and the system. Dependencies are never loaded from the working directory.
#[cfg(windows)]
pub fn open_library(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::windows::{LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, Library};
    let folders = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
    // SAFETY: `LoadLibraryExW` runs the library's initialisers. `path` has the name of an NVIDIA library, and its folder is part of the
    // system or chosen by the user.
    unsafe { Library::load_with_flags(path.as_os_str(), folders) }.map(Into::into)
}

/// Loads the driver's library from the paths outside the dynamic linker's folders at which some systems install it. Returns `None` if the
/// library is at none of them.
pub fn open_driver_by_path() -> Option<libloading::Library> {
    let system_root = std::env::var_os("SystemRoot").map(PathBuf::from).filter(|folder| folder.is_absolute());
    Platform::CURRENT.driver_file_paths(system_root).iter().filter(|file| file.is_file()).find_map(|file| open_library(file).ok())
}
