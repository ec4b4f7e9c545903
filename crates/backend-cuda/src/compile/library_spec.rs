//! File names and folders of each CUDA library.

use crate::compile::platform::Platform;

/// File names and folders of a CUDA library, for the search at run time.
#[derive(Debug, Clone)]
pub struct LibrarySpec {
    /// Display name, such as `cuBLAS`.
    pub name: &'static str,
    /// Operating system and processor of the files.
    pub platform: Platform,
    /// File names, the preferred one first, such as `libcublas.so.13`, `libcublas.so.12`.
    pub file_names: Vec<String>,
    /// Names of environment variables that override the search. Each variable has a list of folders that are searched first.
    pub overrides: &'static [&'static str],
    /// Folders of the library inside a Python `site-packages` folder on Linux, such as `nvidia/cublas/lib`. On Windows, `bin` replaces
    /// `lib`. The folders `nvidia/cu13` and `nvidia/cu12` are always searched too.
    pub wheels: &'static [&'static str],
    /// Prefixes of the names of companion files, such as `libnvrtc-builtins.so.`. The companions in the folder of the library are loaded
    /// before the library, which opens or links them by bare name without a run path. For each prefix, the highest version is loaded.
    pub companions: Vec<String>,
    /// The command that installs the library.
    pub help: &'static str,
}

/// Returns the CUDA major versions up to `driver_major`, newest first.
fn cuda_major_versions(driver_major: u32) -> impl Iterator<Item = u32> {
    (12..=driver_major.max(12)).rev()
}

impl LibrarySpec {
    /// Returns the file names and folders of NVRTC up to CUDA major version `driver_major`, newest first. The driver rejects machine code
    /// of a newer CUDA major version.
    pub fn nvrtc_spec(driver_major: u32) -> Self {
        LibrarySpec::nvrtc_spec_for_platform(Platform::CURRENT, driver_major)
    }

    /// Returns the file names and folders of NVRTC on `platform`. See [`LibrarySpec::nvrtc_spec`].
    pub fn nvrtc_spec_for_platform(platform: Platform, driver_major: u32) -> Self {
        LibrarySpec {
            name: "NVRTC",
            platform,
            file_names: cuda_major_versions(driver_major).map(|m| platform.nvrtc_file_name(m)).collect(),
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/cuda_nvrtc/lib"],
            // The wheel of NVRTC 13.0 has no run path, so NVRTC finds its builtins library only if the process has loaded that library
            // already.
            companions: vec![platform.companion_file_prefix("nvrtc-builtins")],
            help: "pip install nvidia-cuda-nvrtc, or set CUPRUM_CUDA_PATH to a CUDA toolkit",
        }
    }

    /// Returns the file names and folders of cuBLAS up to CUDA major version `driver_major`, newest first.
    pub fn cublas_spec(driver_major: u32) -> Self {
        LibrarySpec::cublas_spec_for_platform(Platform::CURRENT, driver_major)
    }

    /// Returns the file names and folders of cuBLAS on `platform`. See [`LibrarySpec::cublas_spec`].
    pub fn cublas_spec_for_platform(platform: Platform, driver_major: u32) -> Self {
        LibrarySpec {
            name: "cuBLAS",
            platform,
            file_names: cuda_major_versions(driver_major).map(|m| platform.versioned_file_name("cublas", m)).collect(),
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/cublas/lib"],
            companions: vec![platform.companion_file_prefix("cublasLt")],
            help: "pip install nvidia-cublas, or set CUPRUM_CUDA_PATH to a CUDA toolkit",
        }
    }

    /// Returns the file names and folders of cuBLASLt up to CUDA major version `driver_major`, newest first. Load cuBLASLt before cuTENSOR,
    /// which links it by a bare file name.
    pub fn cublas_lt_spec(driver_major: u32) -> Self {
        let names = cuda_major_versions(driver_major).map(|m| Platform::CURRENT.versioned_file_name("cublasLt", m)).collect();
        LibrarySpec { name: "cuBLASLt", file_names: names, companions: Vec::new(), ..LibrarySpec::cublas_spec(driver_major) }
    }

    /// Returns the file names and folders of cuFFT up to CUDA major version `driver_major`, newest first. CUDA 13 has cuFFT 12, CUDA 12 has
    /// cuFFT 11.
    pub fn cufft_spec(driver_major: u32) -> Self {
        LibrarySpec::cufft_spec_for_platform(Platform::CURRENT, driver_major)
    }

    /// Returns the file names and folders of cuFFT on `platform`. See [`LibrarySpec::cufft_spec`].
    pub fn cufft_spec_for_platform(platform: Platform, driver_major: u32) -> Self {
        LibrarySpec {
            name: "cuFFT",
            platform,
            file_names: cuda_major_versions(driver_major).map(|m| platform.versioned_file_name("cufft", m - 1)).collect(),
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/cufft/lib"],
            companions: Vec::new(),
            help: "pip install nvidia-cufft, or set CUPRUM_CUDA_PATH to a CUDA toolkit",
        }
    }

    /// Returns the file names and folders of cuSOLVER up to CUDA version `driver_major`, newest first. CUDA 13 has cuSOLVER 12, CUDA 12 has
    /// cuSOLVER 11.
    pub fn cusolver_spec(driver_major: u32) -> Self {
        LibrarySpec::cusolver_spec_for_platform(Platform::CURRENT, driver_major)
    }

    /// Returns the file names and folders of cuSOLVER on `platform`. See [`LibrarySpec::cusolver_spec`].
    pub fn cusolver_spec_for_platform(platform: Platform, driver_major: u32) -> Self {
        LibrarySpec {
            name: "cuSOLVER",
            platform,
            file_names: cuda_major_versions(driver_major).map(|m| platform.versioned_file_name("cusolver", m - 1)).collect(),
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/cusolver/lib"],
            companions: Vec::new(),
            help: "pip install nvidia-cusolver, or set CUPRUM_CUDA_PATH to a CUDA toolkit",
        }
    }

    /// Returns the file names and folders of NVTX. NVTX 3 is header-only, so its functions come from NVIDIA's interop library. Like the
    /// headers, this library reads `NVTX_INJECTION64_PATH`. `libnvToolsExt` is NVTX 2, which CUDA 12.9 and later do not contain.
    pub fn nvtx_spec() -> Self {
        let platform = Platform::CURRENT;
        let names = if platform.is_windows() {
            vec!["nvtx3interop.dll".into(), "nvToolsExt64_1.dll".into()]
        } else {
            vec!["libnvtx3interop.so.1".into(), "libnvToolsExt.so.1".into()]
        };
        LibrarySpec {
            name: "NVTX",
            platform,
            file_names: names,
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/nvtx/lib"],
            companions: Vec::new(),
            help: "pip install nvidia-nvtx",
        }
    }

    /// Returns the file names and folders of NCCL 2, which exists for Linux alone.
    pub fn nccl_spec() -> Self {
        LibrarySpec {
            name: "NCCL",
            platform: Platform::CURRENT,
            file_names: vec!["libnccl.so.2".into()],
            overrides: &["CUPRUM_CUDA_PATH"],
            wheels: &["nvidia/nccl/lib"],
            companions: Vec::new(),
            help: "pip install nvidia-nccl-cu13 (or -cu12), or set CUPRUM_CUDA_PATH to its folder",
        }
    }

    /// Returns the file names and folders of cuTENSOR 2.
    pub fn cutensor_spec() -> Self {
        LibrarySpec::cutensor_spec_for_platform(Platform::CURRENT)
    }

    /// Returns the file names and folders of cuTENSOR 2 on `platform`. The DLL has no version in its name.
    pub fn cutensor_spec_for_platform(platform: Platform) -> Self {
        let name = if platform.is_windows() { "cutensor.dll" } else { "libcutensor.so.2" };
        LibrarySpec {
            name: "cuTENSOR",
            platform,
            file_names: vec![name.into()],
            overrides: &["CUPRUM_CUTENSOR_PATH", "CUPRUM_CUDA_PATH"],
            wheels: &["cutensor/lib"],
            companions: Vec::new(),
            help: "pip install cutensor-cu13 (or -cu12), or set CUPRUM_CUTENSOR_PATH to its folder",
        }
    }
}
