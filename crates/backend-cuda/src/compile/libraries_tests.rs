//! Tests of the library search, on temporary folder trees.

use super::*;
use std::collections::HashMap;
use std::fs;

fn env_of(pairs: &[(&str, &Path)]) -> impl Fn(&str) -> Option<OsString> + use<> {
    let map: HashMap<String, OsString> = pairs.iter().map(|(k, v)| (k.to_string(), v.as_os_str().to_owned())).collect();
    move |name| map.get(name).cloned()
}

fn touch(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

/// Returns the specification of a library that no machine has, so that the system folders do not affect the tests.
fn made_up() -> LibrarySpec {
    let file_names = vec!["libcuprumtest.so.13".into(), "libcuprumtest.so.12".into()];
    LibrarySpec { file_names, ..LibrarySpec::nvrtc_spec_for_platform(Platform::LinuxX86, 13) }
}

#[test]
fn override_wins_then_home_then_python() {
    let dir = tempfile::tempdir().unwrap();
    let venv = dir.path().join("venv");
    let in_venv = venv.join("lib/python3.12/site-packages/nvidia/cu13/lib/libcuprumtest.so.13");
    touch(&in_venv);
    let env = env_of(&[("VIRTUAL_ENV", &venv)]);
    assert_eq!(locate_library_with_env(&made_up(), &env).unwrap(), in_venv);

    let home = dir.path().join("toolkit");
    let in_home = home.join("lib64/libcuprumtest.so.13");
    touch(&in_home);
    let env = env_of(&[("VIRTUAL_ENV", &venv), ("CUDA_HOME", &home)]);
    assert_eq!(locate_library_with_env(&made_up(), &env).unwrap(), in_home);

    let own = dir.path().join("own");
    let in_own = own.join("libcuprumtest.so.12");
    touch(&in_own);
    let env = env_of(&[("VIRTUAL_ENV", &venv), ("CUDA_HOME", &home), ("CUPRUM_CUDA_PATH", &own)]);
    assert_eq!(locate_library_with_env(&made_up(), &env).unwrap(), in_own, "an override wins even with an older version");
}

#[test]
fn newest_version_wins_over_place() {
    let dir = tempfile::tempdir().unwrap();
    touch(&dir.path().join("old/lib64/libcuprumtest.so.12"));
    let new = dir.path().join("site/nvidia/cuda_nvrtc/lib/libcuprumtest.so.13");
    touch(&new);
    let (old, site) = (dir.path().join("old"), dir.path().join("site"));
    let env = env_of(&[("CUDA_HOME", &old), ("PYTHONPATH", &site)]);
    assert_eq!(locate_library_with_env(&made_up(), &env).unwrap(), new);
}

#[test]
fn missing_says_what_would_help() {
    let missing = locate_library_with_env(&made_up(), &|_| None).unwrap_err().to_string();
    assert!(missing.contains("libcuprumtest.so.13 or libcuprumtest.so.12"), "{missing}");
    assert!(missing.contains("pip install"), "{missing}");
    assert!(!missing.contains('\n'));
}

#[test]
fn a_file_that_is_no_library_is_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("libcuprumtest.so.13");
    fs::write(&file, "not an ELF file").unwrap();
    let error = load_file_with_companions(&file, &made_up()).unwrap_err();
    assert!(error.reason.contains("cannot be loaded"), "{error}");
}

#[test]
fn nvrtc_never_outruns_the_driver() {
    assert_eq!(LibrarySpec::nvrtc_spec_for_platform(Platform::LinuxX86, 12).file_names, ["libnvrtc.so.12"]);
    assert_eq!(
        LibrarySpec::nvrtc_spec_for_platform(Platform::LinuxArm, 14).file_names,
        ["libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12"]
    );
}

#[test]
fn companions_follow_the_major_version() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["libnvrtc.so.13", "libnvrtc-builtins.so.12.9", "libnvrtc-builtins.so.13.0", "libnvrtc-builtins.alt.so.13.0"] {
        touch(&dir.path().join(name));
    }
    let found = companion_files(&dir.path().join("libnvrtc.so.13"), &LibrarySpec::nvrtc_spec_for_platform(Platform::LinuxX86, 13));
    assert_eq!(found, [dir.path().join("libnvrtc-builtins.so.13.0")]);
}

#[test]
fn versions_order_as_numbers() {
    let mut names = ["cuda-9.2", "cuda-13.0", "cuda-12.10", "cuda-12.9"];
    names.sort_by_key(|n| version_sort_key(n));
    assert_eq!(names, ["cuda-9.2", "cuda-12.9", "cuda-12.10", "cuda-13.0"]);
}

/// Creates the include folder `include` with CCCL headers of version `version`, such as `3_006_002` for 3.6.2.
fn cccl_of(include: &Path, version: u32) {
    touch(&include.join("cub/block/block_reduce.cuh"));
    touch(&include.join("cuda/std/cstdint"));
    touch(&include.join("cuda/std/__cccl/version.h"));
    fs::write(include.join("cuda/std/__cccl/version.h"), format!("// x\n#define CCCL_VERSION {version}\n")).unwrap();
}

#[test]
fn cccl_is_found_and_its_version_read() {
    let dir = tempfile::tempdir().unwrap();
    let site = dir.path().join("site");
    let include = site.join("cuda/cccl/headers/include");
    cccl_of(&include, 3_006_002);
    let found = find_cccl_with_env(&env_of(&[("CUPRUM_CCCL_PATH", &site)])).unwrap();
    assert_eq!((&found.include, found.version, found.is_override), (&include, (3, 6, 2), true));
    assert!(found.to_string().ends_with(" (from CUPRUM_CCCL_PATH)"), "{found}");

    fs::remove_file(include.join("cuda/std/__cccl/version.h")).unwrap();
    fs::write(include.join("cub/version.cuh"), "#define CUB_VERSION 200802 // x\n").unwrap();
    assert_eq!(cccl_version(&include), Some((2, 8, 2)));
    fs::remove_file(include.join("cub/block/block_reduce.cuh")).unwrap();
    assert_eq!(cccl_version(&include), None);
}

#[test]
fn the_newest_cccl_wins_over_the_order_of_folders() {
    let dir = tempfile::tempdir().unwrap();
    let [toolkit, home, site] = ["toolkit", "home", "site"].map(|name| dir.path().join(name));
    cccl_of(&toolkit.join("include"), 2_005_000);
    cccl_of(&home.join("include/cccl"), 2_008_002);
    // This version is newer than any that this machine may have.
    cccl_of(&site.join("nvidia/cu13/include/cccl"), 999_000_001);
    let env = env_of(&[("CUPRUM_CUDA_PATH", &toolkit), ("CUDA_HOME", &home), ("PYTHONPATH", &site)]);
    let found = find_cccl_with_env(&env).unwrap();
    assert_eq!(found.version, (999, 0, 1));
    let text = found.to_string();
    // The list also has the headers in the folders of this machine.
    assert!(text.contains("site/nvidia/cu13/include/cccl (the newest; also found: "), "{text}");
    assert!(text.contains("CCCL 2.8.2 in ") && text.contains("CCCL 2.5.0 in "), "{text}");

    // The override wins even with an older version.
    let env = env_of(&[("CUPRUM_CCCL_PATH", &home), ("PYTHONPATH", &site)]);
    assert_eq!(find_cccl_with_env(&env).unwrap().version, (2, 8, 2));
}

#[cfg(unix)]
#[test]
fn two_names_of_one_cccl_count_once() {
    let dir = tempfile::tempdir().unwrap();
    let [toolkit, link] = ["cuda-13.0", "cuda"].map(|name| dir.path().join(name));
    cccl_of(&toolkit.join("include/cccl"), 999_000_001);
    std::os::unix::fs::symlink(&toolkit, &link).unwrap();
    let found = find_cccl_with_env(&env_of(&[("CUDA_HOME", &toolkit), ("CUDA_PATH", &link)])).unwrap();
    assert!(found.include.starts_with(&toolkit) && !found.choice.contains(link.to_str().unwrap()), "{found}");
}

#[test]
fn every_version_of_a_library_is_a_candidate() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new, other] = ["old", "new", "other"].map(|name| dir.path().join(name));
    let files =
        [old.join("lib64/libcuprumtest.so.12"), new.join("lib64/libcuprumtest.so.13"), other.join("nvidia/cu12/lib/libcuprumtest.so.12")];
    files.iter().for_each(|file| touch(file));
    let env = env_of(&[("CUDA_HOME", &old), ("CUDA_PATH", &new), ("PYTHONPATH", &other)]);
    assert_eq!(locate_library_files_with_env(&made_up(), &env).unwrap(), [files[1].clone(), files[0].clone()]);
    let env = env_of(&[("CUPRUM_CUDA_PATH", &old), ("CUDA_PATH", &new)]);
    assert_eq!(locate_library_files_with_env(&made_up(), &env).unwrap(), [files[0].clone(), files[1].clone()], "an override comes first");
}

#[test]
fn nvtx_3_is_found_in_its_wheel() {
    let dir = tempfile::tempdir().unwrap();
    let [new, old] = ["nvidia/cu13/lib/libnvtx3interop.so.1", "nvidia/nvtx/lib/libnvToolsExt.so.1"].map(|file| dir.path().join(file));
    touch(&old);
    let env = env_of(&[("CUPRUM_CUDA_PATH", dir.path())]);
    assert_eq!(locate_library_with_env(&LibrarySpec::nvtx_spec(), &env).unwrap(), old);
    touch(&new);
    assert_eq!(locate_library_with_env(&LibrarySpec::nvtx_spec(), &env).unwrap(), new);
}

#[test]
fn folders_relative_to_the_working_directory_are_refused() {
    let refused = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(&str, &Path)> = pairs.iter().map(|&(name, value)| (name, Path::new(value))).collect();
        locate_library_with_env(&made_up(), &env_of(&pairs)).unwrap_err().to_string()
    };
    // A relative folder in an override variable is an error before any folder is searched.
    for value in ["cuda", "./cuda", "/opt/cuda:", ":/opt/cuda", "/opt/cuda:lib"] {
        let text = refused(&[("CUPRUM_CUDA_PATH", value)]);
        assert!(text.contains("CUPRUM_CUDA_PATH") && text.contains("working directory") && text.contains("give absolute paths"), "{text}");
    }
    let cccl = find_cccl_with_env(&env_of(&[("CUPRUM_CCCL_PATH", Path::new("include"))])).unwrap_err().to_string();
    assert!(cccl.contains("'include' in CUPRUM_CCCL_PATH (relative to the working directory) is refused"), "{cccl}");
    // In other variables, relative folders are skipped, and the error message lists them.
    let text = refused(&[("LD_LIBRARY_PATH", "/opt/lib:"), ("CUDA_HOME", "toolkit"), ("PYTHONPATH", "src:/opt/python")]);
    for element in ["an empty element of LD_LIBRARY_PATH", "'toolkit' in CUDA_HOME", "'src' in PYTHONPATH"] {
        assert!(text.contains(element), "{text}");
    }
}

#[test]
fn relative_folders_are_not_searched() {
    // The path is relative to the crate's folder, in which tests run.
    let here = Path::new("target-of-the-test-of-relative-folders");
    let below = here.join("lib64");
    let remove = || fs::remove_dir_all(here);
    let _ = remove();
    touch(&below.join("libcuprumtest.so.13"));
    let found: Vec<bool> = ["LD_LIBRARY_PATH", "CUDA_HOME", "PYTHONPATH", "CUPRUM_CUDA_PATH"]
        .into_iter()
        .map(|variable| {
            locate_library_with_env(&made_up(), &env_of(&[(variable, if variable == "LD_LIBRARY_PATH" { &below } else { here })])).is_ok()
        })
        .collect();
    let linker = |path: &Path| why_bare_name_is_unsafe(&["libcuprumtest.so"], &env_of(&[("LD_LIBRARY_PATH", path)]));
    let (refused, other) = (linker(&below), linker(here));
    remove().unwrap();
    assert_eq!(found, [false; 4]);
    assert!(refused.is_some_and(|text| text.contains("relative to the working directory) holds a file that begins with libcuprumtest.so")));
    assert_eq!(other, None, "an element without such a file does no harm");
}

/// Returns the specification of a made-up library that has the folders of NVRTC on `platform`.
fn made_up_on(platform: Platform, file_name: &str) -> LibrarySpec {
    LibrarySpec { file_names: vec![file_name.into()], ..LibrarySpec::nvrtc_spec_for_platform(platform, 13) }
}

#[test]
fn windows_names_are_those_of_the_toolkits_dlls() {
    let on = Platform::WindowsX86;
    assert_eq!(LibrarySpec::nvrtc_spec_for_platform(on, 13).file_names, ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]);
    assert_eq!(LibrarySpec::cublas_spec_for_platform(on, 13).file_names, ["cublas64_13.dll", "cublas64_12.dll"]);
    assert_eq!(LibrarySpec::cufft_spec_for_platform(on, 13).file_names, ["cufft64_12.dll", "cufft64_11.dll"]);
    assert_eq!(LibrarySpec::cusolver_spec_for_platform(on, 13).file_names, ["cusolver64_12.dll", "cusolver64_11.dll"]);
    assert_eq!(LibrarySpec::cutensor_spec_for_platform(on).file_names, ["cutensor.dll"]);
    let majors = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "cublas64_13.dll", "cutensor.dll", "nvrtc64_x_0.dll", "libnvrtc.so.13"];
    assert_eq!(majors.map(|name| on.major_version_in_file_name(name)), [Some(13), Some(12), Some(13), None, None, None]);
}

#[test]
fn linux_names_have_the_major_version_at_the_end() {
    let on = Platform::LinuxArm;
    assert_eq!(LibrarySpec::cublas_spec_for_platform(on, 13).file_names, ["libcublas.so.13", "libcublas.so.12"]);
    assert_eq!(LibrarySpec::cufft_spec_for_platform(on, 12).file_names, ["libcufft.so.11"]);
    assert_eq!(LibrarySpec::cutensor_spec_for_platform(on).file_names, ["libcutensor.so.2"]);
    let majors = ["libnvrtc.so.13", "libnvrtc.so.12.9.86", "libnvrtc.so", "nvrtc64_130_0.dll"];
    assert_eq!(majors.map(|name| on.major_version_in_file_name(name)), [Some(13), Some(12), None, None]);
}

/// Each folder in which a library is searched under an environment variable: the platform, the variable, and the folder below its value.
const SEARCHED: &[(Platform, &str, &str)] = &[
    (Platform::LinuxX86, "CUDA_PATH", "targets/x86_64-linux/lib"),
    (Platform::LinuxX86, "CONDA_PREFIX", "targets/x86_64-linux/lib"),
    (Platform::LinuxX86, "LD_LIBRARY_PATH", "."),
    (Platform::LinuxArm, "CUDA_HOME", "targets/sbsa-linux/lib"),
    // Jetson, CUDA 12.
    (Platform::LinuxArm, "CUDA_HOME", "targets/aarch64-linux/lib"),
    (Platform::LinuxArm, "CONDA_PREFIX", "lib"),
    (Platform::WindowsX86, "CUDA_PATH", "bin"),
    (Platform::WindowsX86, "CUDA_PATH", "bin/x64"),
    (Platform::WindowsX86, "CUPRUM_CUDA_PATH", "bin/x64"),
    (Platform::WindowsX86, "ProgramFiles", "NVIDIA GPU Computing Toolkit/CUDA/v13.0/bin/x64"),
    (Platform::WindowsX86, "ProgramFiles", "NVIDIA GPU Computing Toolkit/CUDA/v12.8/bin"),
    (Platform::WindowsX86, "PATH", "."),
    (Platform::WindowsX86, "SystemRoot", "System32"),
    (Platform::WindowsX86, "CONDA_PREFIX", "Library/bin"),
    (Platform::WindowsX86, "VIRTUAL_ENV", "Lib/site-packages/nvidia/cu13/bin/x86_64"),
    (Platform::WindowsX86, "VIRTUAL_ENV", "Lib/site-packages/nvidia/cuda_nvrtc/bin"),
    (Platform::WindowsX86, "PYTHONPATH", "nvidia/cuda_nvrtc/bin"),
    (Platform::WindowsX86, "APPDATA", "Python/Python312/site-packages/nvidia/cuda_nvrtc/bin"),
    (Platform::WindowsArm, "CUDA_PATH", "bin/arm64"),
    (Platform::WindowsArm, "PYTHONPATH", "nvidia/cu13/bin/arm64"),
];

#[test]
fn each_platform_has_its_folders() {
    for &(platform, variable, folder) in SEARCHED {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(folder).join("cuprumtest.13");
        touch(&file);
        let found = locate_library_with_env(&made_up_on(platform, "cuprumtest.13"), &env_of(&[(variable, dir.path())]));
        assert_eq!(found.ok().as_ref(), Some(&file), "{platform:?} {variable} {folder}");
    }
}

#[test]
fn folders_of_another_platform_are_not_searched() {
    let strange = [
        (Platform::LinuxX86, "CUDA_PATH", "bin/x64"),
        (Platform::LinuxX86, "PATH", "."),
        (Platform::LinuxX86, "CUDA_PATH", "targets/sbsa-linux/lib"),
        (Platform::WindowsX86, "CUDA_PATH", "lib64"),
        (Platform::WindowsX86, "CUDA_PATH", "bin/arm64"),
        (Platform::WindowsX86, "LD_LIBRARY_PATH", "."),
    ];
    for (platform, variable, folder) in strange {
        let dir = tempfile::tempdir().unwrap();
        touch(&dir.path().join(folder).join("cuprumtest.13"));
        let found = locate_library_with_env(&made_up_on(platform, "cuprumtest.13"), &env_of(&[(variable, dir.path())]));
        assert!(found.is_err(), "{platform:?} {variable} {folder}: {found:?}");
    }
}

#[test]
fn the_newest_toolkit_of_windows_wins() {
    let dir = tempfile::tempdir().unwrap();
    let toolkits = ["v12.10", "v12.9", "v13.0"].map(|v| dir.path().join("NVIDIA GPU Computing Toolkit/CUDA").join(v).join("bin/t.dll"));
    toolkits.iter().for_each(|file| touch(file));
    let spec = made_up_on(Platform::WindowsX86, "t.dll");
    assert_eq!(locate_library_with_env(&spec, &env_of(&[("ProgramFiles", dir.path())])).unwrap(), toolkits[2]);
    fs::remove_file(&toolkits[2]).unwrap();
    assert_eq!(locate_library_with_env(&spec, &env_of(&[("ProgramFiles", dir.path())])).unwrap(), toolkits[0]);
}

#[test]
fn companions_on_windows_follow_the_major_version() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["nvrtc-builtins64_129.dll", "nvrtc-builtins64_130.dll", "nvrtc-builtins64_131.dll", "nvrtc-builtins64_132.alt.dll"];
    names.iter().for_each(|name| touch(&dir.path().join(name)));
    touch(&dir.path().join("cublasLt64_12.dll"));
    let spec = LibrarySpec::nvrtc_spec_for_platform(Platform::WindowsX86, 13);
    assert_eq!(companion_files(&dir.path().join("nvrtc64_130_0.dll"), &spec), [dir.path().join("nvrtc-builtins64_131.dll")]);
    assert_eq!(companion_files(&dir.path().join("nvrtc64_120_0.dll"), &spec), [dir.path().join("nvrtc-builtins64_129.dll")]);
    let spec = LibrarySpec::cublas_spec_for_platform(Platform::WindowsX86, 13);
    assert_eq!(companion_files(&dir.path().join("cublas64_12.dll"), &spec), [dir.path().join("cublasLt64_12.dll")]);
    assert!(companion_files(&dir.path().join("cublas64_13.dll"), &spec).is_empty());
}

#[test]
fn the_driver_is_known_outside_the_linkers_folders() {
    let files = |platform: Platform| platform.driver_file_paths(Some("/windows".into()));
    assert_eq!(files(Platform::LinuxX86), [Path::new("/usr/lib/wsl/lib/libcuda.so.1")]);
    assert!(files(Platform::LinuxArm).contains(&"/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1".into()), "JetPack 6");
    assert!(files(Platform::LinuxArm).contains(&"/usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1".into()), "JetPack 5");
    assert_eq!(files(Platform::WindowsX86), [Path::new("/windows/System32/nvcuda.dll")]);
    assert!(Platform::WindowsX86.driver_file_paths(None).is_empty());
}
