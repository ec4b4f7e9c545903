//! Driver, compiler and libraries on a real device.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use cuprum_backend_cuda::CudaError;
use cuprum_backend_cuda::cublas::{BlasType, Gemm, Transpose};
use cuprum_backend_cuda::driver::{self, Context, DeviceBuffer, Event, fault};
use cuprum_backend_cuda::module::{Args, Module};
use cuprum_backend_cuda::program::{self, CudaProgram};
use cuprum_backend_cuda::testing;
use cuprum_core::MatmulPrecision;

/// Returns the first device.
fn device() -> Option<(&'static Context, MutexGuard<'static, ()>)> {
    let guard = crate::exclusive();
    match driver::probe_driver() {
        Ok(_) => Some((Context::get(0).expect("a device that the probe saw"), guard)),
        Err(reason) => {
            testing::skip(1, reason);
            None
        }
    }
}

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31).wrapping_add((i >> 8) as u8) ^ seed).collect()
}

fn upload<T: bytemuck::Pod>(context: &'static Context, data: &[T]) -> DeviceBuffer {
    let bytes: &[u8] = bytemuck::cast_slice(data);
    let buffer = context.alloc_on_current_stream(bytes.len()).unwrap();
    context.copy_to_device(&buffer, 0, bytes).unwrap();
    buffer
}

fn download<T: bytemuck::Pod>(context: &'static Context, buffer: &DeviceBuffer) -> Vec<T> {
    let mut data = vec![T::zeroed(); buffer.len() / size_of::<T>()];
    context.copy_to_host(bytemuck::cast_slice_mut(&mut data), buffer, 0).unwrap();
    data
}

#[test]
fn probe_gives_a_device_or_a_reason() {
    match driver::probe_driver() {
        Ok(info) => println!("CUDA {:?}: {:#?}", info.version, info.devices),
        Err(reason) => {
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
            assert!(matches!(Context::get(0), Err(CudaError::Missing(_))));
        }
    }
    assert!(Context::get(10_000).is_err());
}

#[test]
fn copies_round_trip_at_every_size() {
    let Some((context, _guard)) = device() else { return };
    let mib = 1 << 20;
    for bytes in [0, 1, 63, 65536, 65537, 4 * mib, 4 * mib + 1, 15 * mib, 37 * mib + 5, 150 * mib + 3] {
        let data = pattern(bytes, bytes as u8);
        let buffer = upload(context, &data);
        assert!(download::<u8>(context, &buffer) == data, "{bytes} bytes");
    }
    // Many small copies, more than the upload ring holds.
    let buffer = context.alloc_on_current_stream(3000 * 1000).unwrap();
    let data = pattern(3000 * 1000, 7);
    for (i, part) in data.chunks(1000).enumerate() {
        context.copy_to_device(&buffer, i * 1000, part).unwrap();
    }
    assert!(download::<u8>(context, &buffer) == data);
    // Several threads at once.
    std::thread::scope(|scope| {
        for seed in 0..6u8 {
            scope.spawn(move || {
                for round in 0..5 {
                    let data = pattern((seed as usize * 7 + round) * 900_001 + 10, seed);
                    let buffer = upload(context, &data);
                    assert!(download::<u8>(context, &buffer) == data);
                }
            });
        }
    });
    // Bounds and device copies.
    let small = context.alloc_on_current_stream(10).unwrap();
    assert!(matches!(context.copy_to_device(&small, 5, &[0; 6]), Err(CudaError::Invalid(_))));
    assert!(matches!(context.copy_to_host(&mut [0; 11], &small, 0), Err(CudaError::Invalid(_))));
    let copy = context.alloc_on_current_stream(data.len()).unwrap();
    Context::copy(&copy, 0, &buffer, 0, data.len()).unwrap();
    assert!(download::<u8>(context, &copy) == data);
    assert!(Context::copy(&copy, 1, &buffer, 0, data.len()).is_err());
}

#[test]
fn fill_device_memory() {
    let Some((context, _guard)) = device() else { return };
    let buffer = context.alloc_on_current_stream(64).unwrap();
    context.fill(&buffer, 0, [0xAA], 64).unwrap();
    context.fill(&buffer, 8, 0x1234u16.to_ne_bytes(), 4).unwrap();
    context.fill(&buffer, 32, 1.5f32.to_ne_bytes(), 8).unwrap();
    let got: Vec<u8> = download(context, &buffer);
    assert_eq!(got[7], 0xAA);
    assert_eq!(bytemuck::cast_slice::<u8, u16>(&got[8..16]), [0x1234; 4]);
    assert_eq!(bytemuck::cast_slice::<u8, f32>(&got[32..64]), [1.5; 8]);
    assert!(context.fill(&buffer, 1, [0; 4], 1).is_err());
    assert!(context.fill(&buffer, 61, [0], 4).is_err());
    assert!(context.fill(&buffer, 0, [0; 3], 1).is_err());
}

#[test]
fn memory_is_counted_limited_and_returned() {
    let Some((context, _guard)) = device() else { return };
    let before = context.memory_stats().unwrap();
    let buffer = context.alloc_on_current_stream(100 << 20).unwrap();
    let during = context.memory_stats().unwrap();
    assert_eq!(during.used, before.used + (100 << 20));
    assert!(during.reserved >= during.used.min(100 << 20) && during.peak >= during.used);
    let huge = context.alloc_on_current_stream(1 << 50);
    assert!(matches!(huge, Err(CudaError::OutOfMemory { requested, .. }) if requested == 1 << 50), "{huge:?}");
    context.set_memory_limit(Some(during.used + 1000));
    let refused = context.alloc_on_current_stream(1001);
    assert!(matches!(refused, Err(CudaError::OutOfMemory { limit, .. }) if limit as usize == during.used + 1000), "{refused:?}");
    drop(context.alloc_on_current_stream(1000).unwrap());
    context.set_memory_limit(None);
    drop(buffer);
    assert_eq!(context.memory_stats().unwrap().used, before.used);
    context.trim().unwrap();
    assert!(context.memory_stats().unwrap().reserved <= during.reserved);
    // Nearly all memory, twice: the second request reuses the memory of the first.
    let most = context.free_device_bytes().unwrap() / 10 * 8;
    drop(context.alloc_on_current_stream(most).unwrap());
    drop(context.alloc_on_current_stream(most / 2).unwrap());
    let third = context.alloc_on_current_stream(most + most / 20).unwrap();
    drop(third);
    context.trim().unwrap();
}

#[test]
fn blocks_are_reused_in_stream_order() {
    let Some((context, _guard)) = device() else { return };
    context.trim().unwrap();
    let before = context.memory_stats().unwrap();
    let (kept, copy) = (pattern(70_001, 3), context.alloc_on_current_stream(70_001).unwrap());
    let first = upload(context, &kept);
    let (address, bytes) = (first.pointer(), first.len());
    Context::copy(&copy, 0, &first, 0, bytes).unwrap();
    drop(first);
    assert!(context.memory_stats().unwrap().cached >= bytes);
    for n in 0..100u8 {
        let again = context.alloc_on_current_stream(bytes - usize::from(n)).unwrap();
        assert_eq!(again.pointer(), address, "the block that was freed last");
        context.fill(&again, 0, [n], again.len()).unwrap();
    }
    assert_eq!(download::<u8>(context, &copy), kept, "the copy read the block before it was written again");
    let after = context.memory_stats().unwrap();
    assert_eq!((after.hits - before.hits, after.misses - before.misses), (100, 2));

    // Each thread reads what it wrote while others free blocks.
    std::thread::scope(|scope| {
        for seed in 0..4u8 {
            scope.spawn(move || {
                for n in 0..50usize {
                    let data = pattern(1000 + 13 * n, seed);
                    let one = upload(context, &data);
                    let two = context.alloc_on_current_stream(data.len()).unwrap();
                    Context::copy(&two, 0, &one, 0, data.len()).unwrap();
                    drop(one);
                    let noise = context.alloc_on_current_stream(data.len()).unwrap();
                    context.fill(&noise, 0, [0xEE], noise.len()).unwrap();
                    assert_eq!(download::<u8>(context, &two), data);
                }
            });
        }
    });
    drop(copy);
    assert_eq!(context.memory_stats().unwrap().used, before.used);
}

#[test]
fn kept_blocks_are_returned_before_a_request_fails() {
    let Some((context, _guard)) = device() else { return };
    context.trim().unwrap();
    let before = context.memory_stats().unwrap();
    context.set_memory_limit(Some(before.used + (64 << 20)));
    drop(context.alloc_on_current_stream(40 << 20).unwrap());
    drop(context.alloc_on_current_stream(50 << 20).unwrap());
    let limited = context.memory_stats().unwrap();
    context.set_memory_limit(None);
    assert!(limited.cached >= 50 << 20 && limited.misses == before.misses + 2);
    context.trim().unwrap();
    // Memory that other tests hold may keep some blocks.
    assert!(context.memory_stats().unwrap().cached <= before.cached);

    // A fifth of the memory is kept, then nine tenths are requested.
    let free = context.free_device_bytes().unwrap();
    drop(context.alloc_on_current_stream(free / 5).unwrap());
    drop(context.alloc_on_current_stream(free / 10 * 9).unwrap());
    context.trim().unwrap();
}

const KERNELS: &str = r#"
extern "C" __global__ void saxpy(float* y, const float* x, float a, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void take(CuprumFault* fault, float* y, const float* x, const long long* index, long long length) {
    long long i = index[threadIdx.x];
    if (i < 0 || i >= length) { cuprum_fault(fault, 1, 77, i, length); return; }
    y[threadIdx.x] = x[i];
}
extern "C" __global__ void nothing() {}
template <class T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
"#;

#[test]
fn kernels_compile_once_launch_and_fault() {
    let Some((context, _guard)) = device() else { return };
    let source = format!("{}{KERNELS}// {}", fault::FAULT_DEVICE_SOURCE, std::process::id());
    let program = CudaProgram { name: "gpu.cu", source: &source, name_expressions: &["twice<int>"], ..CudaProgram::default() };
    let before = program::compile_stats();
    let built = program.compile_and_load(context).unwrap();
    let after = program::compile_stats();
    assert_eq!(after.compiles, before.compiles + 1);
    println!("compile: {} us", after.compile_micros - before.compile_micros);
    let start = Instant::now();
    let again = program.compile_and_load(context).unwrap();
    println!("from the disk cache: {:?}", start.elapsed());
    assert_eq!(program::compile_stats(), program::CompileStats { hits: after.hits + 1, ..after });

    let n = 1_000_003u64;
    let (x, y): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, 1.0)).unzip();
    let (dx, dy) = (upload(context, &x), upload(context, &y));
    let key = b"saxpy";
    let saxpy = context.kernel_cache().get_or_make(5, key, || again.extern_c_function("saxpy")).unwrap();
    assert!(Arc::ptr_eq(&saxpy, &context.kernel_cache().get(5, key).unwrap()));
    let (py, px, a) = (dy.pointer(), dx.pointer(), 2.0f32);
    let mut args = Args::new();
    args.push(&py).push(&px).push(&a).push(&n);
    // SAFETY: the arguments match `saxpy`, the buffers have n floats.
    unsafe { saxpy.launch([n.div_ceil(256) as u32, 1, 1], [256, 1, 1], 0, args.pointers()) }.unwrap();
    let got: Vec<f32> = download(context, &dy);
    assert!(got.iter().enumerate().all(|(i, v)| *v == 1.0 + 2.0 * i as f32));
    let attributes = saxpy.attributes().unwrap();
    assert!(attributes.registers > 0 && attributes.local_bytes == 0, "{attributes:?}");
    let blocks = saxpy.blocks_per_sm(256, 0).unwrap();
    assert_eq!(blocks, context.info().threads_per_sm / 256);
    assert_eq!(saxpy.blocks_per_sm(256, 0).unwrap(), blocks);
    saxpy.allow_dynamic_shared_memory(context.info().shared_per_block_optin).unwrap();
    assert!(saxpy.allow_dynamic_shared_memory(1 << 30).is_err());
    saxpy.allow_dynamic_shared_memory(1).unwrap();
    assert_eq!(saxpy.blocks_per_sm(256, context.info().shared_per_block_optin).unwrap(), 1, "a smaller request keeps the limit");

    let ints = upload(context, &[1i32, 2, 3]);
    let mut args = Args::new();
    let pointer = ints.pointer();
    args.push(&pointer);
    // SAFETY: three threads for three ints.
    unsafe { built.function_of_name_expression(0).unwrap().launch([1, 1, 1], [3, 1, 1], 0, args.pointers()) }.unwrap();
    assert_eq!(download::<i32>(context, &ints), [2, 4, 6]);

    // A bad index is reported once, by the next wait, and the other elements are written.
    let take = built.extern_c_function("take").unwrap();
    let index = upload(context, &[0i64, -5, 2, 99]);
    context.fill(&dy, 0, [0], dy.len()).unwrap();
    let (fault, pi, length) = (context.fault_pointer().unwrap(), index.pointer(), 10i64);
    let mut args = Args::new();
    args.push(&fault).push(&py).push(&px).push(&pi).push(&length);
    // SAFETY: the arguments match `take`; four threads, four indices.
    unsafe { take.launch([1, 1, 1], [4, 1, 1], 0, args.pointers()) }.unwrap();
    match context.synchronize() {
        Err(CudaError::DeviceFault { code: fault::INDEX_OUT_OF_BOUNDS, op: 77, value, length: 10 }) => {
            assert!(value == -5 || value == 99)
        }
        other => panic!("{other:?}"),
    }
    context.synchronize().unwrap();
    assert_eq!(download::<f32>(context, &dy)[..4], [0.0, 0.0, 2.0, 0.0]);

    assert!(matches!(Module::load(context, b"rubbish"), Err(CudaError::Invalid(_))));
    assert!(matches!(built.extern_c_function("absent"), Err(CudaError::Driver { .. })));
    let bad = CudaProgram { name: "bad.cu", source: "int f() { return oops; }", ..CudaProgram::default() };
    assert!(matches!(bad.compile_and_load(context), Err(CudaError::Compile { source_line: Some(_), .. })));

    // Prints the costs.
    let nothing = built.extern_c_function("nothing").unwrap();
    let (from, to) = (Event::with_timing(context).unwrap(), Event::with_timing(context).unwrap());
    for what in ["launch", "alloc + free", "launch"] {
        context.synchronize().unwrap();
        from.record().unwrap();
        let start = Instant::now();
        for _ in 0..1000 {
            match what {
                // SAFETY: a kernel without parameters.
                "launch" => unsafe { nothing.launch([1, 1, 1], [32, 1, 1], 0, &mut []) }.unwrap(),
                _ => drop(context.alloc_on_current_stream(4096).unwrap()),
            }
        }
        let host = start.elapsed().as_nanos() as f64 / 1e6;
        to.record().unwrap();
        to.synchronize().unwrap();
        println!("{what}: host {host:.2} us each, device {:.2} us each", to.elapsed_ms(&from).unwrap());
    }
    let data = pattern(256 << 20, 3);
    let buffer = upload(context, &data);
    let mut back = vec![0u8; data.len()];
    for _ in 0..3 {
        let start = Instant::now();
        context.copy_to_device(&buffer, 0, &data).unwrap();
        context.synchronize().unwrap();
        let up = start.elapsed().as_secs_f64();
        let start = Instant::now();
        context.copy_to_host(&mut back, &buffer, 0).unwrap();
        let down = start.elapsed().as_secs_f64();
        println!("256 MiB: up {:.1} GB/s, down {:.1} GB/s", 0.268435456 / up, 0.268435456 / down);
    }
}

/// Row-major C = A B by the rule in the documentation of `cublas`.
fn row_major(dtype: BlasType, [a, b, c]: [&DeviceBuffer; 3], [m, n, k, batch]: [i64; 4]) -> Gemm {
    Gemm {
        dtype,
        transpose: (Transpose::No, Transpose::No),
        m: n,
        n: m,
        k,
        alpha: (1.0, 0.0),
        a: b.pointer(),
        lda: n,
        stride_a: k * n,
        b: a.pointer(),
        ldb: k,
        stride_b: m * k,
        beta: (0.0, 0.0),
        c: c.pointer(),
        ldc: n,
        stride_c: m * n,
        batch,
        precision: MatmulPrecision::Float32,
    }
}

#[test]
fn multiply_matrices_by_cublas() {
    let Some((context, _guard)) = device() else { return };
    let start = Instant::now();
    let blas = match context.blas() {
        Ok(blas) => blas,
        Err(CudaError::Missing(reason)) => return testing::skip(1, reason),
        Err(e) => panic!("{e}"),
    };
    println!("{blas:?}, ready in {:?}", start.elapsed());
    let (m, n, k, batch) = (5usize, 7, 33, 3);
    let a: Vec<f64> = (0..batch * m * k).map(|i| (i % 11) as f64 - 4.5).collect();
    let b: Vec<f64> = (0..batch * k * n).map(|i| (i % 13) as f64 * 0.25 - 1.0).collect();
    let mut want = vec![0.0f64; batch * m * n];
    for (i, w) in want.iter_mut().enumerate() {
        let (l, r, c) = (i / (m * n), i / n % m, i % n);
        *w = (0..k).map(|j| a[(l * m + r) * k + j] * b[(l * k + j) * n + c]).sum();
    }
    macro_rules! check {
        ($dtype:expr, $t:ty, $to:expr, $from:expr, $tolerance:expr) => {{
            let (da, db): (Vec<$t>, Vec<$t>) = (a.iter().map(|&v| $to(v)).collect(), b.iter().map(|&v| $to(v)).collect());
            let (da, db) = (upload(context, &da), upload(context, &db));
            let dc = context.alloc_on_current_stream(batch * m * n * size_of::<$t>()).unwrap();
            // NaN everywhere: beta 0 must not read it.
            context.fill(&dc, 0, [0xff], dc.len()).unwrap();
            let gemm = row_major($dtype, [&da, &db, &dc], [m, n, k, batch].map(|s| s as i64));
            // SAFETY: the buffers hold batch contiguous matrices each.
            unsafe { blas.gemm_strided_batched_ex(&gemm) }.unwrap();
            for (got, want) in download::<$t>(context, &dc).iter().zip(&want) {
                let got: f64 = $from(*got);
                assert!((got - want).abs() <= $tolerance * want.abs().max(1.0), "{:?}: {got} {want}", $dtype);
            }
        }};
    }
    use num_complex::Complex;
    check!(BlasType::F64, f64, |v| v, |v: f64| v, 1e-14);
    check!(BlasType::F32, f32, |v: f64| v as f32, f64::from, 1e-6);
    check!(BlasType::F16, half::f16, half::f16::from_f64, half::f16::to_f64, 1e-3);
    check!(BlasType::Bf16, half::bf16, half::bf16::from_f64, half::bf16::to_f64, 8e-3);
    check!(BlasType::C64, Complex<f32>, |v: f64| Complex::new(v as f32, 0.0), |v: Complex<f32>| v.re.into(), 1e-6);
    check!(BlasType::C128, Complex<f64>, |v: f64| Complex::new(v, 0.0), |v: Complex<f64>| v.re, 1e-14);

    // Full precision: the square of 1 + 2^-12 keeps bits that lower precisions drop.
    let ones = upload(context, &vec![1.0f32 + 1.0 / 4096.0; 256 * 256]);
    let out = context.alloc_on_current_stream(256 * 256 * 4).unwrap();
    let gemm = row_major(BlasType::F32, [&ones, &ones, &out], [256, 256, 256, 1]);
    let exact = 256.0 * (1.0 + 1.0 / 4096.0f64).powi(2);
    use MatmulPrecision::*;
    for (precision, close) in [(Float32, true), (TensorFloat32, false), (BFloat16, false)] {
        // SAFETY: three square matrices of 256.
        unsafe { blas.gemm_strided_batched_ex(&Gemm { precision, ..gemm }) }.unwrap();
        let error = (f64::from(download::<f32>(context, &out)[0]) - exact).abs() / exact;
        assert_eq!(error < 1e-6, close, "{precision:?}: {error}");
    }
    // SAFETY: nothing is read or written.
    unsafe {
        blas.gemm_strided_batched_ex(&Gemm { m: 0, ..gemm }).unwrap();
        assert!(matches!(blas.gemm_strided_batched_ex(&Gemm { m: -1, ..gemm }), Err(CudaError::Invalid(_))));
        assert!(matches!(blas.gemm_strided_batched_ex(&Gemm { lda: 1, ..gemm }), Err(CudaError::Cublas { .. })));
    }
    // A leading dimension beyond i32 needs cuBLAS's 64-bit interface. A batch stride beyond i32 does not if the batch is 1, because the
    // stride is then never used.
    let column = context.alloc_on_current_stream(4).unwrap();
    let long = Gemm { m: 1, n: 1, k: 1, lda: 1 << 33, ldb: 1 << 33, ldc: 1 << 33, c: column.pointer(), ..gemm };
    // SAFETY: one element of each is touched.
    unsafe { blas.gemm_strided_batched_ex(&long) }.unwrap();
    let got = download::<f32>(context, &column)[0];
    assert!((got - (1.0f32 + 1.0 / 4096.0).powi(2)).abs() < 1e-6, "{got}");
}
