//! Compiles all sources with NVRTC, if it is found. Needs no GPU and no driver. Prints the reason for a skip;
//! `CUPRUM_REQUIRE_NVRTC=1` makes it a failure. `CUPRUM_NVRTC_ONLY` selects sources by name (`sort`), `CUPRUM_NVRTC_ARCH` a
//! single architecture.

mod parts;

use std::time::Instant;

use cuprum_backend_cuda::nvrtc::{CompileRequest, cccl_headers};
use cuprum_backend_cuda::testing;
use cuprum_backend_cuda::{
    CudaError,
    families::{
        contract, copy, fft, fill, gather, histogram, linalg, map, random, reduce, rows, scan, scatter, search, segment, select, sort,
        sparse,
    },
    libraries,
};

/// Any NVRTC version is accepted, since no driver limits it.
const NEWEST: u32 = 13;

/// Every kernel source of this crate, or a sample that covers all generated code.
fn sources_for_compile_check() -> Vec<(String, String)> {
    let static_ones = [
        fill::sources_for_compile_check(),
        copy::sources_for_compile_check(),
        random::sources_for_compile_check(),
        gather::sources_for_compile_check(),
        scatter::sources_for_compile_check(),
        segment::sources_for_compile_check(),
        contract::sources_for_compile_check(),
        fft::sources_for_compile_check(),
        search::sources_for_compile_check(),
        sparse::sources_for_compile_check(),
        linalg::sources_for_compile_check(),
        sort::sources_for_compile_check(),
    ];
    let generated = [
        map::sources_for_compile_check(),
        reduce::sources_for_compile_check(),
        rows::sources_for_compile_check(),
        scan::sources_for_compile_check(),
        select::sources_for_compile_check(),
        histogram::sources_for_compile_check(),
    ];
    static_ones.into_iter().chain(generated).flatten().collect()
}

#[test]
fn every_source_compiles_without_a_warning() {
    let Some(compiler) = testing::compiler() else { return };
    let sources = sources_for_compile_check();
    assert!(sources.len() >= 200, "{}", sources.len());
    let only = std::env::var("CUPRUM_NVRTC_ONLY").unwrap_or_default();
    let options: Vec<&str> = vec!["--std=c++17"];
    // All sources compile for sm_90, and one in twelve for each other architecture, because sources hardly depend on the architecture.
    let for_each = |(n, source)| {
        [80, 100]
            .into_iter()
            .enumerate()
            .filter(move |(turn, _)| n % 12 == *turn)
            .map(|(_, arch)| arch)
            .chain([90])
            .map(move |arch| (arch, source))
    };
    let arch: Option<u32> = std::env::var("CUPRUM_NVRTC_ARCH").ok().map(|text| text.parse().expect("an architecture such as 90"));
    let named = sources.iter().filter(|(name, _)| name.contains(&only));
    let wanted: Vec<_> = match arch {
        Some(arch) => named.map(|source| (arch, source)).collect(),
        None => named.enumerate().flat_map(for_each).collect(),
    };
    let start = Instant::now();
    let mine = parts::part("every_source_compiles_without_a_warning", wanted);
    for (arch, (name, source)) in &mine {
        let made = compiler.compile(&CompileRequest { name, source, options: &options, ..CompileRequest::default() }, *arch);
        let made = made.unwrap_or_else(|e| panic!("sm_{arch}: {e}"));
        // NVRTC 12.9 warns of every architecture before sm_75.
        let log: Vec<&str> = made.log.lines().filter(|line| !line.contains("Architectures prior to")).collect();
        assert!(is_elf(&made.code) && !made.is_ptx && log.is_empty(), "{name}: {}", made.log);
    }
    println!("{} compilations: {:?}", mine.len(), start.elapsed());
}

#[test]
fn simple_maps_stay_in_registers() {
    let Some(compiler) = testing::compiler() else { return };
    let options: Vec<&str> = vec!["--std=c++17", "--ptxas-options=-v"];
    let simple: Vec<_> = map::sources_for_compile_check().into_iter().filter(|(name, _)| name.contains("_multiply_add<")).collect();
    assert!(simple.len() >= 9, "{}", simple.len());
    for (name, source) in &simple {
        let made = compiler.compile(&CompileRequest { name, source, options: &options, ..CompileRequest::default() }, 90).unwrap();
        assert!(made.log.contains("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"), "{name}: {}", made.log);
        let registers = made.log.split_once("Used ").and_then(|(_, rest)| rest.split_once(" registers")?.0.parse::<u32>().ok());
        // An SM has 65536 registers: 32 for each of 2048 threads. With 64, half of the threads are resident.
        assert!(registers.is_some_and(|r| r <= 64), "{name}: {}", made.log);
    }
}

#[test]
fn rows_stay_in_registers() {
    let Some(compiler) = testing::compiler() else { return };
    let options: Vec<&str> = vec!["--std=c++17", "--ptxas-options=-v"];
    let float32 = ["softmax, float32", "layer_norm, float32", "min_max, float32", "logsumexp, float32", "variance, float32"];
    let usual: Vec<_> =
        rows::sources_for_compile_check().into_iter().filter(|(name, _)| float32.iter().any(|f| name.contains(f))).collect();
    assert!(usual.len() >= float32.len(), "{}", usual.len());
    for (name, source) in &usual {
        let made = compiler.compile(&CompileRequest { name, source, options: &options, ..CompileRequest::default() }, 90).unwrap();
        assert!(made.log.contains("0 bytes spill stores, 0 bytes spill loads"), "{name}: {}", made.log);
    }
}

fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

#[test]
fn a_kernel_becomes_a_cubin_for_each_architecture() {
    let Some(compiler) = testing::compiler() else { return };
    assert!(!compiler.is_loaded());
    assert!(compiler.version_identifier().contains("nvrtc"), "{}", compiler.version_identifier());
    assert!(!compiler.is_loaded(), "the version identifier must not load the library");
    let source = r#"
        #include "own.h"
        template <class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
        extern "C" __global__ void plain(float* x) { x[threadIdx.x] = OWN; }
    "#;
    let request = CompileRequest {
        name: "scale.cu",
        source,
        options: &["--std=c++17"],
        headers: &[("own.h", "#define OWN 3.0f\n")],
        name_expressions: &["scale<float>", "scale<double>"],
    };
    for arch in [80, 90, 100] {
        let made = compiler.compile(&request, arch).unwrap();
        assert!(is_elf(&made.code) && !made.is_ptx, "sm_{arch}");
        assert!(made.lowered_names[0].contains("scale") && made.lowered_names[0] != made.lowered_names[1]);
    }
    // For an unknown device, NVRTC produces PTX.
    let made = compiler.compile(&request, 9999).unwrap();
    assert!(made.is_ptx && made.code.windows(8).any(|w| w == b".version"));
    assert!(matches!(compiler.compile(&request, 10), Err(CudaError::Missing(_))));
    println!("NVRTC {:?} at {}", compiler.version().unwrap(), compiler.path().display());
}

#[test]
fn an_error_shows_the_line() {
    let Some(compiler) = testing::compiler() else { return };
    let source = "__global__ void k(float* x) {\n  x[0] = nothing;\n}\n";
    let request = CompileRequest { name: "bad.cu", source, ..CompileRequest::default() };
    match compiler.compile(&request, 90) {
        Err(CudaError::Compile { name, log, source_line }) => {
            assert_eq!(name, "bad.cu");
            assert!(log.contains("nothing"), "{log}");
            assert_eq!(source_line.as_deref(), Some("2 |   x[0] = nothing;"));
        }
        other => panic!("{other:?}"),
    }
    let bad_option = CompileRequest { options: &["--no-such-option"], source: "", ..request };
    assert!(matches!(compiler.compile(&bad_option, 90), Err(CudaError::Compile { .. })));
    let nul = CompileRequest { source: "\0", ..request };
    assert!(matches!(compiler.compile(&nul, 90), Err(CudaError::Invalid(_))));
}

#[test]
fn cub_compiles() {
    let Some(compiler) = testing::compiler() else { return };
    let headers = match libraries::find_cccl().map_err(CudaError::from).or_else(|_| cccl_headers(NEWEST)) {
        Ok(headers) => headers,
        Err(missing) => return println!("skipped: {missing}"),
    };
    println!("{headers}");
    let source = r#"
        #include <cub/block/block_reduce.cuh>
        extern "C" __global__ void total(const float* x, float* y) {
            using Reduce = cub::BlockReduce<float, 128>;
            __shared__ typename Reduce::TempStorage storage;
            float sum = Reduce(storage).Sum(x[threadIdx.x]);
            if (threadIdx.x == 0) *y = sum;
        }
    "#;
    let include = format!("-I{}", headers.include.display());
    let options = ["--std=c++17", "-D_CCCL_META_UNROLL_LIMIT=8", &include];
    let request = CompileRequest { name: "total.cu", source, options: &options, ..CompileRequest::default() };
    assert!(is_elf(&compiler.compile(&request, 90).unwrap().code));
}

#[test]
fn bundled_headers_serve_where_nvrtc_has_them() {
    let Some(compiler) = testing::compiler() else { return };
    let folder = std::env::temp_dir().join(format!("cuprum-headers-{}", std::process::id()));
    match compiler.unpack_bundled_cccl(&folder) {
        Ok(headers) => {
            println!("{headers}");
            assert!(headers.version.0 >= 3);
            compiler.unpack_bundled_cccl(&folder).expect("a second time skips");
        }
        Err(missing) => {
            assert!(compiler.version().unwrap() < (13, 3), "{missing}");
            println!("skipped: {missing}");
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn nvtx_ranges_begin_and_end() {
    let path = match libraries::locate_library(&libraries::LibrarySpec::nvtx_spec()) {
        Ok(path) => path,
        Err(missing) => return println!("skipped: {missing}"),
    };
    let outer =
        cuprum_backend_cuda::driver::profiler::NvtxRange::begin_range("outer").unwrap_or_else(|| panic!("{} is not used", path.display()));
    drop(cuprum_backend_cuda::driver::profiler::NvtxRange::begin_range("in\0ner"));
    drop(outer);
    println!("NVTX at {}", path.display());
}
