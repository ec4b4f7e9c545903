//! File names and folders of CUDA libraries on each operating system and processor.
//!
//! Sources: NVIDIA's installation guides for Linux, Windows, WSL and Jetson, and the contents of the Python wheels. Every function takes
//! the platform as a value, so that tests on one system cover all systems.

use std::path::{Path, PathBuf};

/// An operating system and processor for which NVIDIA publishes CUDA libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux on x86-64, WSL included.
    LinuxX86,
    /// Linux on aarch64: servers (SBSA) and Jetson.
    LinuxArm,
    /// Windows on x86-64.
    WindowsX86,
    /// Windows on aarch64.
    WindowsArm,
}

impl Platform {
    /// The platform of this process. Systems without CUDA, such as macOS, count as Linux, where the search finds nothing.
    pub const CURRENT: Platform = match (cfg!(windows), cfg!(target_arch = "aarch64")) {
        (false, false) => Platform::LinuxX86,
        (false, true) => Platform::LinuxArm,
        (true, false) => Platform::WindowsX86,
        (true, true) => Platform::WindowsArm,
    };

    /// Returns whether the platform is Windows.
    pub fn is_windows(self) -> bool {
        matches!(self, Platform::WindowsX86 | Platform::WindowsArm)
    }

    /// Returns the file name of a library by its version: `libcublas.so.13` or `cublas64_13.dll`.
    pub(crate) fn versioned_file_name(self, name: &str, version: u32) -> String {
        if self.is_windows() { format!("{name}64_{version}.dll") } else { format!("lib{name}.so.{version}") }
    }

    /// Returns the file name of NVRTC of the CUDA major version `major`. The DLL of every 13.x is `nvrtc64_130_0.dll`.
    pub(crate) fn nvrtc_file_name(self, major: u32) -> String {
        if self.is_windows() { format!("nvrtc64_{major}0_0.dll") } else { format!("libnvrtc.so.{major}") }
    }

    /// Returns the beginning of the file name of a companion library, up to its version: `libcublasLt.so.` or `cublasLt64_`.
    pub(crate) fn companion_file_prefix(self, name: &str) -> String {
        if self.is_windows() { format!("{name}64_") } else { format!("lib{name}.so.") }
    }

    /// Returns whether `rest` completes the name of a companion file after its prefix and major version: `.0` or nothing on Linux, `0.dll`
    /// or `.dll` on Windows.
    pub(crate) fn is_companion_suffix(self, rest: &str) -> bool {
        if self.is_windows() {
            return rest.trim_start_matches(|c: char| c.is_ascii_digit()) == ".dll";
        }
        rest.is_empty() || rest.starts_with('.')
    }

    /// Returns the major version in the name of a library file, or `None` if the name has none: 13 for `libnvrtc.so.13.0`,
    /// `nvrtc64_130_0.dll` and `cublas64_13.dll`.
    pub(crate) fn major_version_in_file_name(self, file_name: &str) -> Option<u32> {
        if !self.is_windows() {
            return file_name.rsplit_once(".so.")?.1.split('.').next()?.parse().ok();
        }
        let (_, version) = file_name.strip_suffix(".dll")?.split_once("64_")?;
        match version.split_once('_') {
            // In the file name of NVRTC, a zero follows the digits of the major version.
            Some((release, _)) => Some(release.parse::<u32>().ok()? / 10),
            None => version.parse().ok(),
        }
    }

    /// Returns the environment variable with the folders in which the dynamic linker searches.
    pub(crate) fn linker_path_variable(self) -> &'static str {
        if self.is_windows() { "PATH" } else { "LD_LIBRARY_PATH" }
    }

    /// Returns whether a bare file name may be passed to the dynamic linker: false on Windows, where the linker would search the working
    /// directory.
    pub(crate) fn allows_bare_library_names(self) -> bool {
        !self.is_windows()
    }

    /// Returns the possible names of the subfolder of a toolkit's folder `targets` that contains `lib`. Toolkits for Jetson before CUDA 13
    /// use another name than toolkits for servers.
    pub(crate) fn toolkit_target_folder_names(self) -> &'static [&'static str] {
        match self {
            Platform::LinuxX86 => &["x86_64-linux"],
            Platform::LinuxArm => &["sbsa-linux", "aarch64-linux"],
            Platform::WindowsX86 | Platform::WindowsArm => &[],
        }
    }

    /// Returns the folders of libraries in the toolkit at `root`.
    pub(crate) fn toolkit_folders(self, root: &Path) -> Vec<PathBuf> {
        match self {
            Platform::WindowsX86 => vec![root.join("bin").join("x64"), root.join("bin")],
            Platform::WindowsArm => vec![root.join("bin").join("arm64"), root.join("bin")],
            Platform::LinuxX86 | Platform::LinuxArm => {
                let targets = self.toolkit_target_folder_names().iter().map(|target| root.join("targets").join(target).join("lib"));
                [root.join("lib64"), root.join("lib")].into_iter().chain(targets).collect()
            }
        }
    }

    /// Returns the folders of libraries in the conda environment at `root`.
    pub(crate) fn conda_folders(self, root: &Path) -> Vec<PathBuf> {
        match self {
            Platform::WindowsX86 | Platform::WindowsArm => self.toolkit_folders(&root.join("Library")),
            Platform::LinuxX86 | Platform::LinuxArm => self.toolkit_folders(root).split_off(1),
        }
    }

    /// Returns the folders of libraries in the folder `site` of Python packages. `wheels` are the library's own folders on Linux, which end
    /// in `lib`; the wheels for Windows have `bin` instead.
    pub(crate) fn wheel_folders(self, site: &Path, wheels: &[&str]) -> Vec<PathBuf> {
        let common: &[&str] = match self {
            Platform::LinuxX86 | Platform::LinuxArm => &["nvidia/cu13/lib", "nvidia/cu12/lib"],
            Platform::WindowsX86 => &["nvidia/cu13/bin/x86_64", "nvidia/cu13/bin", "nvidia/cu12/bin"],
            Platform::WindowsArm => &["nvidia/cu13/bin/arm64", "nvidia/cu13/bin", "nvidia/cu12/bin"],
        };
        let own = wheels.iter().map(|wheel| match wheel.strip_suffix("lib") {
            Some(folder) if self.is_windows() => site.join(format!("{folder}bin")),
            _ => site.join(wheel),
        });
        common.iter().map(|folder| site.join(folder)).chain(own).collect()
    }

    /// Returns the folder with one subfolder per installed toolkit, and the prefix of the subfolders' names. `program_files` is the value
    /// of Windows's variable `ProgramFiles`.
    pub(crate) fn toolkits_folder_and_prefix(self, program_files: Option<PathBuf>) -> Option<(PathBuf, &'static str)> {
        if self.is_windows() {
            return Some((program_files?.join("NVIDIA GPU Computing Toolkit").join("CUDA"), "v"));
        }
        Some(("/usr/local".into(), "cuda-"))
    }

    /// Returns the folders that the dynamic linker searches by default. `system_root` is the value of Windows's variable `SystemRoot`.
    pub(crate) fn linker_folders(self, system_root: Option<PathBuf>) -> Vec<PathBuf> {
        let folders: &[&str] = match self {
            Platform::LinuxX86 => &["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib"],
            Platform::LinuxArm => &["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/lib/aarch64-linux-gnu", "/usr/lib/wsl/lib"],
            Platform::WindowsX86 | Platform::WindowsArm => return system_root.into_iter().map(|root| root.join("System32")).collect(),
        };
        folders.iter().map(PathBuf::from).collect()
    }

    /// Returns the files of the driver that exist outside the dynamic linker's folders on some systems. WSL has `/usr/lib/wsl/lib`. Jetson
    /// has a folder `nvidia` (JetPack 6) or `tegra` (older). Windows installs the driver in the system folder alone.
    pub(crate) fn driver_file_paths(self, system_root: Option<PathBuf>) -> Vec<PathBuf> {
        let files: &[&str] = match self {
            Platform::LinuxX86 => &["/usr/lib/wsl/lib/libcuda.so.1"],
            Platform::LinuxArm => &[
                "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1",
                "/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1",
                "/usr/lib/wsl/lib/libcuda.so.1",
            ],
            Platform::WindowsX86 | Platform::WindowsArm => {
                return system_root.into_iter().map(|root| root.join("System32").join("nvcuda.dll")).collect();
            }
        };
        files.iter().map(PathBuf::from).collect()
    }

    /// Returns the file name of the driver's library.
    pub(crate) fn driver_file_name(self) -> &'static str {
        if self.is_windows() { "nvcuda.dll" } else { "libcuda" }
    }
}
