//! Compiles the kernels that are files of this crate with a real NVRTC, wherever one is found; needs no GPU.

use std::time::Instant;

use cuprum_backend_cuda::nvrtc::{Compiler, Request};
use cuprum_backend_cuda::{codegen, contract, copy, fill, gather, random, scan, segment};

#[test]
fn every_static_kernel_compiles() {
    let compiler = match Compiler::locate(13) {
        Ok(compiler) => compiler,
        Err(missing) => return println!("skipped: {missing}"),
    };
    let sources =
        [fill::sources(), copy::sources(), random::sources(), gather::sources(), scan::sources(), segment::sources(), contract::sources()]
            .concat();
    assert!(sources.len() >= 50, "{}", sources.len());
    let options: Vec<&str> = ["--std=c++17"].iter().chain(codegen::OPTIONS).copied().collect();
    for arch in [80, 90, 100] {
        let start = Instant::now();
        for (name, source) in &sources {
            let request = Request { name, source, options: &options, ..Request::default() };
            let made = compiler.compile(&request, arch).unwrap_or_else(|e| panic!("sm_{arch}: {e}"));
            assert!(!made.is_ptx && made.log.is_empty(), "{name}: {}", made.log);
        }
        println!("{} sources for sm_{arch}: {:?}", sources.len(), start.elapsed());
    }
}
