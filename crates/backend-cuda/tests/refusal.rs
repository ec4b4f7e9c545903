//! Failures of cuBLAS functions, after which this crate's kernels must compute matrix products. The test needs a GPU, and a C compiler that
//! builds a substitute library whose functions fail.

use std::path::Path;
use std::process::Command;

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::testing;
use cuprum_core::{DType, Device, NdArray, matmul, with_device};

/// Environment variable of a child process with the name of the cuBLAS function that fails.
const REFUSES: &str = "CUPRUM_TEST_REFUSES";

/// C source of the functions that the backend loads. All succeed, except the one that `CUPRUM_TEST_REFUSES` names.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int status(const char* call, int refusal) {
    const char* refuses = getenv("CUPRUM_TEST_REFUSES");
    if (refuses == NULL || strcmp(refuses, call) != 0) return 0;
    fprintf(stderr, "refused: %s\n", call);
    return refusal;
}
int cublasCreate_v2(void** handle) { *handle = handle; return status("create", 8); }
int cublasDestroy_v2(void* handle) { return 0; }
int cublasSetStream_v2(void* handle, void* stream) { return 0; }
int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) { return 0; }
int cublasSetMathMode(void* handle, int mode) { return 0; }
int cublasGetVersion_v2(void* handle, int* version) { *version = 130000; return 0; }
int cublasGemmStridedBatchedEx(void* handle) { return status("gemm", 15); }
"#;

fn build(folder: &Path) -> Result<(), String> {
    let source = folder.join("cublas.c");
    std::fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
    let library = folder.join("libcublas.so.13");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).args([&library, &source]).output().map_err(|e| format!("cc: {e}"))?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    std::fs::copy(&library, folder.join("libcublas.so.12")).map_err(|e| e.to_string()).map(drop)
}

#[test]
fn a_refusal_falls_through() {
    if testing::device().is_none() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("cuprum-refusal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let built = build(&folder);
    let outputs = ["create", "gemm"].map(|refuses| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "child_multiplies", "--nocapture"]).env(REFUSES, refuses).env("CUPRUM_CUDA_PATH", &folder);
        built.as_ref().ok().map(|()| (refuses, child.output().unwrap()))
    });
    let _ = std::fs::remove_dir_all(&folder);
    if let Err(reason) = built {
        return println!("skipped: {reason}");
    }
    for (refuses, output) in outputs.into_iter().flatten() {
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{refuses}: {text}{}", String::from_utf8_lossy(&output.stdout));
        // After a refused `cublasCreate`, cuBLAS is not tried again on that device. After a refused product, it is.
        let count = text.matches(&format!("refused: {refuses}")).count();
        assert!(if refuses == "create" { count == 1 } else { count >= 4 }, "{refuses}, {count} refusals: {text}");
    }
}

#[test]
fn child_multiplies() {
    if std::env::var_os(REFUSES).is_none() {
        return;
    }
    let numbers = |n: usize| (0..n).map(|i| (i % 7) as f64 - 3.0).collect::<Vec<_>>();
    for dtype in [DType::F32, DType::F64] {
        let product = |device, columns: usize| {
            let compute = || {
                let a = NdArray::from_vec(numbers(3 * 40 * 50), [3, 40, 50])?.astype(dtype)?;
                let b = NdArray::from_vec(numbers(50 * columns), [50, columns])?.astype(dtype)?;
                matmul(&a, &b)?.astype(DType::F64)?.to_vec::<f64>()
            };
            with_device(device, compute).unwrap()
        };
        for columns in [60, 2] {
            // Integers below 2^24, whose sums are exact in every order.
            assert_eq!(product(Device::parse("cuda").unwrap(), columns), product(Device::CPU, columns), "{dtype}, {columns} columns");
        }
    }
}
