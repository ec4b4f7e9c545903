//! Compiles the CUDA sources with an installed NVRTC and CCCL. Needs no GPU and no driver.
//!
//! Without NVRTC or CCCL the test prints why it is skipped, or fails if `CUPRUM_REQUIRE_NVRTC` is 1. `CUPRUM_NVRTC_ONLY` restricts it to
//! sources whose name contains the value (`select`). `CUPRUM_NVRTC_ARCH` restricts it to one architecture (`90`).

#[path = "../../backend-cuda/tests/parts/mod.rs"]
mod parts;

use cuprum_backend_cub::cccl_headers::check_cccl_version;
use cuprum_backend_cub::{NVRTC_OPTIONS, sources_for_compile_check};
use cuprum_backend_cuda::nvrtc::{CompileRequest, Compiler, cccl_headers};
use cuprum_backend_cuda::{CudaError, Result};

/// Newest CUDA major version to look for. Usually the driver's version is the limit, but these tests need no driver.
const NEWEST_CUDA_MAJOR: u32 = 13;

#[test]
fn every_listed_source_compiles() {
    let found = || -> Result<_> {
        Ok((
            Compiler::find_preferred_nvrtc(NEWEST_CUDA_MAJOR).map_err(CudaError::from)?,
            check_cccl_version(cccl_headers(NEWEST_CUDA_MAJOR)?)?,
        ))
    };
    let (compiler, headers) = match found() {
        Ok(found) => found,
        Err(missing) if std::env::var("CUPRUM_REQUIRE_NVRTC").is_ok_and(|v| v == "1") => panic!("{missing}"),
        Err(missing) => return println!("skipped: {missing}"),
    };
    println!("{headers}, NVRTC {:?}", compiler.version().unwrap());
    let include = format!("-I{}", headers.include.display());
    // CCCL 2.8 itself uses names that it deprecates.
    let fixed = ["--std=c++17", "-DCCCL_IGNORE_DEPRECATED_API", &include];
    let options: Vec<&str> = fixed.into_iter().chain(NVRTC_OPTIONS.iter().copied()).collect();
    // All sources compile for sm_90, and one in six for each other architecture, because sources hardly depend on the architecture.
    let known = compiler.supported_archs().unwrap();
    let only = std::env::var("CUPRUM_NVRTC_ONLY").unwrap_or_default();
    let arch: Option<u32> = std::env::var("CUPRUM_NVRTC_ARCH").ok().map(|text| text.parse().expect("an architecture such as 90"));
    let mut wanted = Vec::new();
    for (n, (name, source)) in sources_for_compile_check().into_iter().filter(|(name, _)| name.contains(&only)).enumerate() {
        let others = [80, 100].into_iter().enumerate().filter(|(turn, _)| n % 6 == *turn).map(|(_, arch)| arch);
        let archs: Vec<u32> = arch.map_or_else(|| others.chain([90]).filter(|a| known.contains(a)).collect(), |only| vec![only]);
        wanted.extend(archs.into_iter().map(|arch| (arch, name.clone(), source.clone())));
    }
    let mut failures = Vec::new();
    for (arch, name, source) in parts::part("every_listed_source_compiles", wanted) {
        let request = CompileRequest { name: "check.cu", source: &source, options: &options, ..CompileRequest::default() };
        match compiler.compile(&request, arch) {
            // NVRTC 12.9 warns of every architecture before sm_75.
            Ok(made) if made.log.lines().all(|line| line.contains("Architectures prior to")) => {
                assert!(!made.is_ptx && made.code.starts_with(b"\x7fELF"), "{name}")
            }
            Ok(made) => failures.push(format!("{name} for sm_{arch} warns: {}", made.log)),
            Err(e) => failures.push(format!("{name} for sm_{arch}: {e}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
