//! Search order, on made-up folder trees.

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

/// A library name that no machine has, so that system folders cannot answer.
fn made_up() -> LibrarySpec {
    LibrarySpec { sonames: vec!["libcuprumtest.so.13".into(), "libcuprumtest.so.12".into()], ..LibrarySpec::nvrtc(13) }
}

#[test]
fn override_wins_then_home_then_python() {
    let dir = tempfile::tempdir().unwrap();
    let venv = dir.path().join("venv");
    let in_venv = venv.join("lib/python3.12/site-packages/nvidia/cu13/lib/libcuprumtest.so.13");
    touch(&in_venv);
    let env = env_of(&[("VIRTUAL_ENV", &venv)]);
    assert_eq!(locate_in(&made_up(), &env).unwrap(), in_venv);

    let home = dir.path().join("toolkit");
    let in_home = home.join("lib64/libcuprumtest.so.13");
    touch(&in_home);
    let env = env_of(&[("VIRTUAL_ENV", &venv), ("CUDA_HOME", &home)]);
    assert_eq!(locate_in(&made_up(), &env).unwrap(), in_home);

    let own = dir.path().join("own");
    let in_own = own.join("libcuprumtest.so.12");
    touch(&in_own);
    let env = env_of(&[("VIRTUAL_ENV", &venv), ("CUDA_HOME", &home), ("CUPRUM_CUDA_PATH", &own)]);
    assert_eq!(locate_in(&made_up(), &env).unwrap(), in_own, "an override wins even with an older version");
}

#[test]
fn newest_version_wins_over_place() {
    let dir = tempfile::tempdir().unwrap();
    touch(&dir.path().join("old/lib64/libcuprumtest.so.12"));
    let new = dir.path().join("site/nvidia/cuda_nvrtc/lib/libcuprumtest.so.13");
    touch(&new);
    let (old, site) = (dir.path().join("old"), dir.path().join("site"));
    let env = env_of(&[("CUDA_HOME", &old), ("PYTHONPATH", &site)]);
    assert_eq!(locate_in(&made_up(), &env).unwrap(), new);
}

#[test]
fn missing_says_what_would_help() {
    let missing = locate_in(&made_up(), &|_| None).unwrap_err().to_string();
    assert!(missing.contains("libcuprumtest.so.13 or libcuprumtest.so.12"), "{missing}");
    assert!(missing.contains("pip install"), "{missing}");
    assert!(!missing.contains('\n'));
}

#[test]
fn a_file_that_is_no_library_is_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("libcuprumtest.so.13");
    fs::write(&file, "not an ELF file").unwrap();
    let error = load_from(&file, &made_up()).unwrap_err();
    assert!(error.reason.contains("cannot be loaded"), "{error}");
}

#[test]
fn nvrtc_never_outruns_the_driver() {
    assert_eq!(LibrarySpec::nvrtc(12).sonames, ["libnvrtc.so.12"]);
    assert_eq!(LibrarySpec::nvrtc(14).sonames, ["libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12"]);
}

#[test]
fn companions_follow_the_major_version() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["libnvrtc.so.13", "libnvrtc-builtins.so.12.9", "libnvrtc-builtins.so.13.0", "libnvrtc-builtins.alt.so.13.0"] {
        touch(&dir.path().join(name));
    }
    let found = companion_files(&dir.path().join("libnvrtc.so.13"), &LibrarySpec::nvrtc(13));
    assert_eq!(found, [dir.path().join("libnvrtc-builtins.so.13.0")]);
}

#[test]
fn versions_order_as_numbers() {
    let mut names = ["cuda-9.2", "cuda-13.0", "cuda-12.10", "cuda-12.9"];
    names.sort_by_key(|n| version_key(n));
    assert_eq!(names, ["cuda-9.2", "cuda-12.9", "cuda-12.10", "cuda-13.0"]);
}

#[test]
fn cccl_is_found_and_its_version_read() {
    let dir = tempfile::tempdir().unwrap();
    let include = dir.path().join("site/cuda/cccl/headers/include");
    touch(&include.join("cub/block/block_reduce.cuh"));
    touch(&include.join("cuda/std/cstdint"));
    touch(&include.join("cuda/std/__cccl/version.h"));
    fs::write(include.join("cuda/std/__cccl/version.h"), "// x\n#define CCCL_VERSION 3006002\n").unwrap();
    let site = dir.path().join("site");
    let found = find_cccl_in(&env_of(&[("CUPRUM_CCCL_PATH", &site)])).unwrap();
    assert_eq!(found, CcclHeaders { include: include.clone(), version: (3, 6, 2) });

    fs::remove_file(include.join("cuda/std/__cccl/version.h")).unwrap();
    fs::write(include.join("cub/version.cuh"), "#define CUB_VERSION 200802 // x\n").unwrap();
    assert_eq!(cccl_version(&include), Some((2, 8, 2)));
    fs::remove_file(include.join("cub/block/block_reduce.cuh")).unwrap();
    assert_eq!(cccl_version(&include), None);
}
