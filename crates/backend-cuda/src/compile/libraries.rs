//! Finds and loads the CUDA libraries at run time, and the CCCL headers.
//!
//! Nothing is linked at build time, and a missing library is an ordinary value with a reason ([`MissingLibrary`]). Locating a
//! library only reads folders. Loading (`dlopen`) is a separate step, so that a warm kernel cache needs no compiler.
//!
//! Search order: override variable, `CUDA_HOME`/`CUDA_PATH`, the dynamic linker's folders, installed toolkits (`/usr/local/cuda*`, or
//! `NVIDIA GPU Computing Toolkit` on Windows), `$CONDA_PREFIX`, Python packages (`$VIRTUAL_ENV`, `$CONDA_PREFIX`, `PYTHONPATH`, user site).
//! Folders relative to the working directory are refused. [`Platform`] has the names and folders of each system.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::compile::dynamic_library;
use crate::compile::ld_cache;
pub use crate::compile::library_spec::LibrarySpec;
pub use crate::compile::platform::Platform;
use crate::error::CudaError;

/// Oldest CCCL version (major, minor) that NVRTC compiles without the toolkit's headers. CCCL 2.5 still includes these headers.
pub const OLDEST_CCCL_VERSION: (u32, u32) = (2, 7);

/// A function that reads one environment variable. Tests pass a substitute.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

pub(crate) fn read_process_env(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|v| !v.to_string_lossy().trim().is_empty())
}

/// A missing library or header, with the reason and a remedy, in one line.
#[derive(Debug, Clone)]
pub struct MissingLibrary {
    /// Name of the missing library or header.
    pub name: String,
    /// Why the library or header cannot be used.
    pub reason: String,
    /// The command or setting that makes the library or header available.
    pub help: String,
}

impl fmt::Display for MissingLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; try: {}", self.name, self.reason, self.help)
    }
}

impl std::error::Error for MissingLibrary {}

impl From<MissingLibrary> for CudaError {
    fn from(m: MissingLibrary) -> Self {
        CudaError::Missing(m.to_string())
    }
}

/// A loaded library. The library is never closed, because CUDA libraries keep threads and thread-local destructors that outlive `dlclose`.
/// Store the value in a `static`.
#[derive(Debug)]
pub struct LoadedLibrary {
    /// Path of the file. If only the dynamic linker found the library, this is the bare file name.
    pub path: PathBuf,
    library: libloading::Library,
    _companions: Vec<libloading::Library>,
    /// [`LibrarySpec::name`], for error messages.
    name: &'static str,
    /// [`LibrarySpec::help`], for error messages.
    help: &'static str,
}

impl LoadedLibrary {
    /// Returns the address of a symbol that the library exports.
    ///
    /// # Errors
    /// [`MissingLibrary`] if the library does not export the symbol.
    ///
    /// # Safety
    /// `P` is the type of the symbol's address by the library's header: a function pointer, or a pointer to a variable. The caller does not
    /// use the address after this value is dropped.
    pub unsafe fn symbol<P: Copy>(&self, symbol: &str) -> Result<P, MissingLibrary> {
        // SAFETY: the caller guarantees that `P` is the type of the address.
        match unsafe { self.library.get::<P>(symbol) } {
            Ok(address) => Ok(*address),
            Err(_) => Err(MissingLibrary {
                name: self.name.into(),
                reason: format!("{} has no {symbol}", self.path.display()),
                help: self.help.into(),
            }),
        }
    }
}

/// Returns the path of the library `spec` without loading it.
pub fn locate_library(spec: &LibrarySpec) -> Result<PathBuf, MissingLibrary> {
    locate_library_with_env(spec, &read_process_env)
}

/// Returns the path of the library `spec` as [`locate_library`] does, with environment variables read by `env`.
pub fn locate_library_with_env(spec: &LibrarySpec, env: Env<'_>) -> Result<PathBuf, MissingLibrary> {
    locate_library_files_with_env(spec, env).map(|mut found| found.swap_remove(0))
}

/// Returns the paths of the installed files of the library `spec`, at least one. All files in override folders come first, then one file
/// per version, newest first.
pub fn locate_library_files(spec: &LibrarySpec) -> Result<Vec<PathBuf>, MissingLibrary> {
    locate_library_files_with_env(spec, &read_process_env)
}

/// Returns the paths of the installed files of the library `spec` as [`locate_library_files`] does, with environment variables read by
/// `env`.
pub fn locate_library_files_with_env(spec: &LibrarySpec, env: Env<'_>) -> Result<Vec<PathBuf>, MissingLibrary> {
    let missing = |reason: String| MissingLibrary { name: spec.name.into(), reason, help: spec.help.into() };
    let overrides = override_folders(spec, env).map_err(missing)?;
    let mut found: Vec<PathBuf> = existing_library_files(&overrides, &spec.file_names).collect();
    let (folders, refused) = default_search_folders(spec, env);
    // The newest version comes first whatever its folder, so that an old toolkit does not hide a new wheel.
    for name in &spec.file_names {
        let one = std::slice::from_ref(name);
        let before_linker = existing_library_files(&folders.toolkit_home, one).next();
        let by_linker = || path_found_by_dynamic_linker(spec.platform, name, env);
        found.extend(before_linker.or_else(by_linker).or_else(|| existing_library_files(&folders.rest, one).next()));
    }
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    if found.is_empty() {
        let count = overrides.len() + folders.toolkit_home.len() + folders.rest.len();
        let not_searched = refused.iter().map(|r| format!("; {r} was not searched")).collect::<String>();
        let names = spec.file_names.join(" or ");
        return Err(missing(format!("{names} not found (dynamic linker and {count} folders searched{not_searched})")));
    }
    Ok(found)
}

/// Loads the library `spec`. Loads its companion files ([`LibrarySpec::companions`]) first.
///
/// If the search finds no file, passes the bare file names to the dynamic linker, which may have further search paths. On Windows, bare
/// file names are not used, because the dynamic linker searches the working directory.
pub fn load_library(spec: &LibrarySpec) -> Result<LoadedLibrary, MissingLibrary> {
    let path = match locate_library(spec) {
        Ok(path) => path,
        Err(missing) => {
            for name in spec.file_names.iter().filter(|_| spec.platform.allows_bare_library_names()) {
                if let Some(reason) = why_bare_name_is_unsafe(&[name], &read_process_env) {
                    return Err(MissingLibrary { reason, ..missing });
                }
                if let Ok(library) = dynamic_library::open_library(Path::new(name)) {
                    return Ok(LoadedLibrary { path: name.into(), library, _companions: Vec::new(), name: spec.name, help: spec.help });
                }
            }
            return Err(missing);
        }
    };
    load_file_with_companions(&path, spec)
}

/// Returns why a library must not be loaded by bare name, or `None` if loading is safe. Loading is unsafe if `LD_LIBRARY_PATH` contains a
/// relative folder with a file whose name begins with one of `prefixes`.
pub fn why_bare_name_is_unsafe(prefixes: &[&str], env: Env<'_>) -> Option<String> {
    let (_, refused) = path_variable_folders(env, "LD_LIBRARY_PATH");
    let holds = |r: &&RefusedFolder| prefixes.iter().any(|prefix| !entries_by_version(&Path::new(".").join(&r.element), prefix).is_empty());
    let (found, prefix) = (refused.iter().find(holds)?, prefixes.first()?);
    Some(format!("{found} holds a file that begins with {prefix}; remove that element"))
}

/// Loads the library file at `path`, after its companion files ([`LibrarySpec::companions`]) in the same folder.
pub fn load_file_with_companions(path: &Path, spec: &LibrarySpec) -> Result<LoadedLibrary, MissingLibrary> {
    let companions = companion_files(path, spec);
    // A companion that does not load is skipped, because the dynamic linker may find another copy of the companion.
    let companions = companions.iter().filter_map(|p| dynamic_library::open_library(p).ok()).collect();
    match dynamic_library::open_library(path) {
        Ok(library) => Ok(LoadedLibrary { path: path.into(), library, _companions: companions, name: spec.name, help: spec.help }),
        Err(e) => Err(MissingLibrary {
            name: spec.name.into(),
            reason: format!("{} was found but cannot be loaded: {e}", path.display()),
            help: spec.help.into(),
        }),
    }
}

/// Returns the companion files that [`load_file_with_companions`] loads before `path`. For each entry of `spec.companions`, the result has
/// the file of the highest version that has the library's major version.
pub fn companion_files(path: &Path, spec: &LibrarySpec) -> Vec<PathBuf> {
    // Follows symbolic links, because `/usr/lib/libnvrtc.so.13` may point into a toolkit folder, which has the companions.
    let real = path.canonicalize().unwrap_or_else(|_| path.into());
    let Some(major) = spec.platform.major_version_in_file_name(&file_name(path)) else { return Vec::new() };
    let folders = [path.parent(), real.parent()];
    let mut found = Vec::new();
    for prefix in &spec.companions {
        let wanted = format!("{prefix}{major}");
        let mut best: Option<PathBuf> = None;
        for folder in folders.iter().flatten() {
            let mut files = entries_by_version(folder, &wanted).into_iter();
            best = files.rfind(|file| file_name(file).strip_prefix(&wanted).is_some_and(|rest| spec.platform.is_companion_suffix(rest)));
            if best.is_some() {
                break;
            }
        }
        found.extend(best);
    }
    found
}

struct SearchFolders {
    toolkit_home: Vec<PathBuf>,
    rest: Vec<PathBuf>,
}

fn override_folders(spec: &LibrarySpec, env: Env<'_>) -> Result<Vec<PathBuf>, String> {
    let mut folders = Vec::new();
    for name in spec.overrides {
        for root in override_variable_folders(env, name)? {
            folders.extend(spec.platform.toolkit_folders(&root));
            folders.extend(spec.platform.wheel_folders(&root, spec.wheels));
            folders.push(root);
        }
    }
    Ok(folders)
}

/// Returns the folders in the override variable `name`. A relative folder is an error, because skipping it silently would hide the user's
/// mistake.
fn override_variable_folders(env: Env<'_>, name: &'static str) -> Result<Vec<PathBuf>, String> {
    let (folders, refused) = path_variable_folders(env, name);
    refused.first().map_or(Ok(folders), |r| Err(format!("{r} is refused: give absolute paths")))
}

/// Returns the folders that are searched without an override, and the relative folders in environment variables, which are refused.
fn default_search_folders(spec: &LibrarySpec, env: Env<'_>) -> (SearchFolders, Vec<RefusedFolder>) {
    let platform = spec.platform;
    let mut refused = path_variable_folders(env, platform.linker_path_variable()).1;
    let homes = absolute_folders_from_env(env, &["CUDA_HOME", "CUDA_PATH"], &mut refused);
    let toolkit_home = homes.iter().flat_map(|h| platform.toolkit_folders(h)).collect();
    let mut rest: Vec<PathBuf> = installed_toolkits(platform, env).iter().flat_map(|t| platform.toolkit_folders(t)).collect();
    for conda in absolute_folders_from_env(env, &["CONDA_PREFIX"], &mut refused) {
        rest.extend(platform.conda_folders(&conda));
    }
    rest.extend(site_packages_folders(platform, env, &mut refused).iter().flat_map(|site| platform.wheel_folders(site, spec.wheels)));
    (SearchFolders { toolkit_home, rest }, refused)
}

/// Returns the installed toolkits, newest first. On Linux, `/usr/local/cuda`, which the administrator chose, comes first.
fn installed_toolkits(platform: Platform, env: Env<'_>) -> Vec<PathBuf> {
    let Some((folder, prefix)) = platform.toolkits_folder_and_prefix(absolute_folder_from_env(env, "ProgramFiles")) else {
        return Vec::new();
    };
    let mut all = entries_by_version(&folder, prefix);
    if !platform.is_windows() {
        all.push("/usr/local/cuda".into());
    }
    all.reverse();
    all
}

/// Returns the folders from which Python imports packages, according to the environment. Adds relative folders to `refused`.
fn site_packages_folders(platform: Platform, env: Env<'_>, refused: &mut Vec<RefusedFolder>) -> Vec<PathBuf> {
    let mut sites = Vec::new();
    for root in absolute_folders_from_env(env, &["VIRTUAL_ENV", "CONDA_PREFIX"], refused) {
        match platform.is_windows() {
            true => sites.push(root.join("Lib").join("site-packages")),
            false => sites.extend(python_package_folders(&root.join("lib"), "site-packages")),
        }
    }
    let (folders, relative) = path_variable_folders(env, "PYTHONPATH");
    sites.extend(folders);
    refused.extend(relative);
    if platform.is_windows() {
        for roaming in absolute_folders_from_env(env, &["APPDATA"], refused) {
            let versions = entries_by_version(&roaming.join("Python"), "Python3").into_iter().rev();
            sites.extend(versions.map(|version| version.join("site-packages")).filter(|folder| folder.is_dir()));
        }
        return sites;
    }
    for home in absolute_folders_from_env(env, &["HOME"], refused) {
        sites.extend(python_package_folders(&home.join(".local/lib"), "site-packages"));
    }
    sites.extend(python_package_folders(Path::new("/usr/local/lib"), "dist-packages"));
    sites
}

fn python_package_folders(lib: &Path, packages: &str) -> Vec<PathBuf> {
    entries_by_version(lib, "python3").into_iter().rev().map(|p| p.join(packages)).filter(|p| p.is_dir()).collect()
}

/// A relative folder in an environment variable. The folder is not searched, because other users who can write to the working directory
/// could place a library there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusedFolder {
    variable: &'static str,
    element: PathBuf,
}

impl fmt::Display for RefusedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element.as_os_str().is_empty() {
            true => write!(f, "an empty element of {} (the working directory)", self.variable),
            false => write!(f, "'{}' in {} (relative to the working directory)", self.element.display(), self.variable),
        }
    }
}

/// Returns the absolute folders in the path variable `variable`, and its relative ones, which are refused.
fn path_variable_folders(env: Env<'_>, variable: &'static str) -> (Vec<PathBuf>, Vec<RefusedFolder>) {
    let Some(value) = env(variable).filter(|v| !v.is_empty()) else { return (Vec::new(), Vec::new()) };
    let (absolute, relative): (Vec<PathBuf>, Vec<PathBuf>) = std::env::split_paths(&value).partition(|p| p.is_absolute());
    (absolute, relative.into_iter().map(|element| RefusedFolder { variable, element }).collect())
}

/// Returns the folder in the environment variable `variable`, or `None` if it is relative or not set.
fn absolute_folder_from_env(env: Env<'_>, variable: &'static str) -> Option<PathBuf> {
    absolute_folders_from_env(env, &[variable], &mut Vec::new()).pop()
}

/// Returns the absolute folders in the environment variables `variables`. Each variable contains at most one folder. Adds relative folders
/// to `refused`.
fn absolute_folders_from_env(env: Env<'_>, variables: &[&'static str], refused: &mut Vec<RefusedFolder>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for variable in variables {
        match env(variable).filter(|v| !v.is_empty()).map(PathBuf::from) {
            Some(root) if root.is_absolute() => folders.push(root),
            Some(element) => refused.push(RefusedFolder { variable, element }),
            None => {}
        }
    }
    folders
}

fn existing_library_files(folders: &[PathBuf], names: &[String]) -> impl Iterator<Item = PathBuf> {
    folders.iter().flat_map(|f| names.iter().map(move |n| f.join(n))).filter(|p| p.is_file())
}

/// Returns the path that the dynamic linker would load for `name`, or `None` if it would find no file. On Linux, searches
/// `LD_LIBRARY_PATH`, the linker's cache and the standard folders. On Windows, searches the system's folder and then `PATH`.
fn path_found_by_dynamic_linker(platform: Platform, name: &str, env: Env<'_>) -> Option<PathBuf> {
    let names = [name.to_owned()];
    let standard = platform.linker_folders(absolute_folder_from_env(env, "SystemRoot"));
    let listed = path_variable_folders(env, platform.linker_path_variable()).0;
    let first = |folders: &[PathBuf]| existing_library_files(folders, &names).next();
    if platform.is_windows() {
        return first(&standard).or_else(|| first(&listed));
    }
    first(&listed).or_else(|| ld_cache::find_library_in_cache(name)).or_else(|| first(&standard))
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the entries of `folder` whose names begin with `prefix`, lowest version first.
fn entries_by_version(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let named = entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(prefix));
    let mut all: Vec<_> = named.map(|e| e.path()).collect();
    all.sort_by_key(|p| version_sort_key(&file_name(p)));
    all
}

/// Returns a sort key that compares the numbers in `name` by value, so that `x.12` follows `x.9`.
fn version_sort_key(name: &str) -> Vec<(u64, String)> {
    let mut key = Vec::new();
    for part in name.split(['.', '-']) {
        let digits: String = part.chars().rev().take_while(char::is_ascii_digit).collect();
        let number = digits.chars().rev().collect::<String>().parse().unwrap_or(0);
        key.push((number, part.to_owned()));
    }
    key
}

/// The CUDA C++ Core Libraries' headers (CUB, libcu++).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CcclHeaders {
    /// The folder to pass to the compiler as `-I`.
    pub include: PathBuf,
    /// Major, minor, patch.
    pub version: (u32, u32, u32),
    /// Why this folder was chosen, for `cuprum info`. May be empty.
    pub choice: String,
    /// Whether `CUPRUM_CCCL_PATH` names the folder.
    pub is_override: bool,
}

impl CcclHeaders {
    /// Returns whether the headers' version is [`OLDEST_CCCL_VERSION`] or newer.
    pub fn has_supported_version(&self) -> bool {
        (self.version.0, self.version.1) >= OLDEST_CCCL_VERSION
    }
}

impl fmt::Display for CcclHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.version;
        write!(f, "CCCL {major}.{minor}.{patch} in {}", self.include.display())?;
        if self.choice.is_empty() { Ok(()) } else { write!(f, " ({})", self.choice) }
    }
}

/// Returns the CCCL headers in the folder `CUPRUM_CCCL_PATH` if it contains them. Otherwise returns the newest ones in toolkits and Python
/// packages.
///
/// [`crate::compile::nvrtc::cccl_headers`] also considers the copy of the headers that NVRTC 13.3 and later contain.
pub fn find_cccl() -> Result<CcclHeaders, MissingLibrary> {
    find_cccl_with_env(&read_process_env)
}

/// Returns CCCL's headers as [`find_cccl`] does, with environment variables read by `env`.
pub fn find_cccl_with_env(env: Env<'_>) -> Result<CcclHeaders, MissingLibrary> {
    let missing = |reason: String| MissingLibrary {
        name: "CCCL headers".into(),
        reason,
        help: "pip install nvidia-cuda-cccl, or set CUPRUM_CCCL_PATH to its include folder".into(),
    };
    let mut overrides = Vec::new();
    for root in override_variable_folders(env, "CUPRUM_CCCL_PATH").map_err(missing)? {
        overrides.extend(cccl_include_folders(&root));
        overrides.extend([root.join("include/cccl"), root.join("include"), root]);
    }
    let with_version = |f: &PathBuf| {
        let headers = |version| CcclHeaders { include: f.clone(), version, choice: String::new(), is_override: false };
        cccl_version(f).map(headers)
    };
    if let Some(found) = overrides.iter().find_map(with_version) {
        return Ok(CcclHeaders { choice: "from CUPRUM_CCCL_PATH".into(), is_override: true, ..found });
    }
    let mut toolkits = override_variable_folders(env, "CUPRUM_CUDA_PATH").map_err(missing)?;
    let mut folders: Vec<PathBuf> = toolkits.iter().flat_map(|root| cccl_include_folders(root)).collect();
    let mut refused = Vec::new();
    toolkits.extend(absolute_folders_from_env(env, &["CUDA_HOME", "CUDA_PATH"], &mut refused));
    let platform = Platform::CURRENT;
    toolkits.extend(installed_toolkits(platform, env));
    toolkits.extend(absolute_folders_from_env(env, &["CONDA_PREFIX"], &mut refused));
    for root in &toolkits {
        folders.push(root.join("include/cccl"));
        folders.extend(platform.toolkit_target_folder_names().iter().map(|target| root.join("targets").join(target).join("include/cccl")));
        // conda on Windows has the toolkit's folders below `Library`.
        folders.extend([root.join("include"), root.join("Library/include/cccl"), root.join("Library/include")]);
    }
    folders.extend(site_packages_folders(platform, env, &mut refused).iter().flat_map(|site| cccl_include_folders(site)));
    newest_cccl(folders.iter().filter_map(with_version)).ok_or_else(|| {
        let not_searched = refused.iter().map(|r| format!("; {r} was not searched")).collect::<String>();
        missing(format!("cub/block/block_reduce.cuh not found in {} folders{not_searched}", overrides.len() + folders.len()))
    })
}

/// Returns the newest of the headers in `found`, or `None` if `found` is empty. Among headers of equal version, the first wins.
fn newest_cccl(found: impl IntoIterator<Item = CcclHeaders>) -> Option<CcclHeaders> {
    let mut all: Vec<CcclHeaders> = found.into_iter().collect();
    // A folder may be found twice, because of symbolic links between toolkits: `/usr/local/cuda` is often a link to `/usr/local/cuda-13.0`.
    let mut seen = HashSet::new();
    all.retain(|headers| seen.insert(headers.include.canonicalize().unwrap_or_else(|_| headers.include.clone())));
    all.sort_by_key(|headers| std::cmp::Reverse(headers.version));
    let others = all.split_off(all.len().min(1));
    let newest = all.pop()?;
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let choice = if others.is_empty() { String::new() } else { format!("the newest; also found: {}", others.join(", ")) };
    Some(CcclHeaders { choice, ..newest })
}

fn cccl_include_folders(site: &Path) -> [PathBuf; 4] {
    let folders = ["nvidia/cu13/include/cccl", "cuda/cccl/headers/include", "nvidia/cuda_cccl/include", "nvidia/cu12/include"];
    folders.map(|f| site.join(f))
}

/// Returns the version of CCCL in the folder `include`, or `None` if CUB or libcu++ is missing there.
pub fn cccl_version(include: &Path) -> Option<(u32, u32, u32)> {
    let whole = include.join("cub/block/block_reduce.cuh").is_file() && include.join("cuda/std/cstdint").is_file();
    if !whole {
        return None;
    }
    // CCCL 2.2 and later state their version in these headers. Older releases state only the version of CUB, which is the same version in
    // another number format.
    let cccl = read_define(&include.join("cuda/std/__cccl/version.h"), "CCCL_VERSION");
    if let Some(v) = cccl.or_else(|| read_define(&include.join("cuda/version"), "CCCL_VERSION")) {
        return Some((v / 1_000_000, v / 1000 % 1000, v % 1000));
    }
    let v = read_define(&include.join("cub/version.cuh"), "CUB_VERSION")?;
    Some((v / 100_000, v / 100 % 1000, v % 100))
}

fn read_define(header: &Path, name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(header).ok()?;
    let start = format!("#define {name} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&start))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
#[path = "libraries_tests.rs"]
mod tests;
