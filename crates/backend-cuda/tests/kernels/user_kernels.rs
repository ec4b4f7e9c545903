//! User-written kernels on a real device. Tests that lack a device or NVRTC are skipped or fail, as `testing` documents.

use std::process::Command;

use cuprum_backend_cuda::args;
use cuprum_backend_cuda::testing;
use cuprum_backend_cuda::user_kernels::{
    Arg, ElementwiseKernel, Launch, RawKernel, RawModule, RawSource, ReductionDefinition, ReductionKernel,
};
use cuprum_core::{DType, Device, Error, NdArray, arange, ones, with_device, zeros};

use crate::on_device;

const AXPY: &str = r#"extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"#;

fn message(result: cuprum_core::Result<impl Sized>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn a_syntax_error_shows_its_line() {
    if testing::compiler().is_none() {
        return;
    }
    let bad = RawSource::new("__global__ void k(float* x) {\n    x[0] = nothing;\n}\n").with_name("mine.cu");
    let text = message(bad.machine_code(90));
    assert!(text.starts_with("[RawModule] cuda failed: compiling mine.cu failed at: 2 |     x[0] = nothing;"), "{text}");
    assert!(text.contains("\"nothing\" is undefined"), "{text}");
    let text = message(RawSource::new("void k();").with_option("--no-such-option").machine_code(90));
    assert!(text.contains("--no-such-option"), "{text}");
    let text = message(RawSource::new("").with_name_expression("none<int>").machine_code(90));
    assert!(text.contains("none"), "{text}");
}

#[test]
fn the_example_compiles() {
    if testing::compiler().is_some() {
        let spmv = RawSource::new(include_str!("../../../../examples/spmv.cu")).with_name("spmv.cu");
        assert!(spmv.machine_code(90).unwrap().starts_with(b"\x7fELF"));
    }
}

#[test]
fn options_headers_templates_and_element_types_compile() {
    if testing::compiler().is_none() {
        return;
    }
    let source = r#"
        #include <cuprum.cuh>
        #include "scale.h"
        namespace my { __constant__ int table[4]; }
        template <class T> __global__ void scale(T* x) { x[threadIdx.x] *= SCALE * N + my::table[0]; }
        extern "C" __global__ void halves(const cuprum::f16* x, cuprum::f16* y) { y[0] = cuprum::op::add(x[0], x[1]); }
    "#;
    let good = RawSource::new(source).with_header("scale.h", "#define SCALE 3").with_define("N", 2);
    let good = good.with_name_expression("scale<float>").with_name_expression("&my::table");
    assert!(good.machine_code(90).unwrap().starts_with(b"\x7fELF"));
    let missing = RawSource::new(source).with_define("N", 2);
    assert!(message(missing.machine_code(90)).contains("scale.h"));

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scale.h"), "#define SCALE 1").unwrap();
    let with_folder = missing.with_include_dir(folder.path());
    assert!(with_folder.machine_code(90).is_ok());
    std::fs::write(folder.path().join("scale.h"), "#error changed").unwrap();
    assert!(message(with_folder.machine_code(90)).contains("changed"), "files of folders are read each time");
}

#[test]
fn included_files_are_read_at_each_compilation() {
    if testing::compiler().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir(path("deep")).unwrap();
    std::fs::write(path("deep/first.h"), "#include \"second.h\"\n#include <cuprum.cuh>").unwrap();
    std::fs::write(path("deep/second.h"), "").unwrap();
    let neighbours = RawSource::new("#include <deep/first.h>\n__device__ cuprum::f16 x;").with_include_dir(folder.path());
    neighbours.machine_code(90).unwrap();

    let scale = path("scale.h");
    let kernel = "extern \"C\" __global__ void k(int* x) { x[0] = SCALE; }";
    let beside = RawSource::new(format!("#include \"scale.h\"\n{kernel}")).with_name(path("mine.cu"));
    let reading = [
        beside.clone().with_include_dir(folder.path()),
        beside.clone().with_option(format!("-I{}", folder.path().display())),
        beside.clone().with_option("--include-path").with_option(path("")),
        RawSource::new(kernel).with_option(format!("-include={scale}")),
        RawSource::new(kernel).with_option(format!("--pre-include={scale}")),
        RawSource::new(format!("#include \"{scale}\"\n{kernel}")),
        RawSource::new(format!("#include \"own.h\"\n{kernel}")).with_header("own.h", format!("# include <{scale}>")),
    ];
    std::fs::write(&scale, "#define SCALE 1").unwrap();
    for source in &reading {
        source.machine_code(90).unwrap_or_else(|e| panic!("{source:?}: {e}"));
    }
    assert!(message(beside.machine_code(90)).contains("\"scale.h\""), "the folder of the source is not looked into");
    assert!(message(beside.with_option("--no-source-include").machine_code(90)).contains("\"scale.h\""), "nor if it is said twice");
    std::fs::write(&scale, "#error changed").unwrap();
    for source in &reading {
        assert!(message(source.machine_code(90)).contains("changed"), "{source:?}");
    }
}

#[test]
fn headers_in_memory_have_element_types_too() {
    if testing::compiler().is_some() {
        let source = RawSource::new("#include \"half.h\"").with_header("half.h", "#include <cuprum.cuh>\n__device__ cuprum::f16 x;");
        source.machine_code(90).unwrap();
    }
}

/// Compiles in a child process that has the environment variable set, because a process reads the variable only once.
#[test]
fn sources_are_dumped_with_their_key_and_log() {
    if testing::compiler().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "user_kernels::a_syntax_error_shows_its_line"])
        .env("CUPRUM_DUMP_SOURCE", folder.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().path()).collect();
    let find = |end: &str| {
        let named = |p: &&std::path::PathBuf| {
            p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("mine-") && n.to_string_lossy().ends_with(end))
        };
        std::fs::read_to_string(files.iter().find(named).unwrap_or_else(|| panic!("{files:?}"))).unwrap()
    };
    assert!(find(".cu").contains("x[0] = nothing;"));
    let log = find(".log");
    assert!(log.contains("architecture: sm_90") && log.contains("failed: compiling mine.cu failed at: 2 |"), "{log}");
}

#[test]
fn the_host_has_no_cuda_kernels() {
    let compiled = with_device(Device::CPU, || RawSource::new(AXPY).compile());
    assert!(matches!(&compiled, Err(Error::Device { message, .. }) if message.contains("not on cpu")), "{compiled:?}");
    assert!(RawModule::load_on(Device::CPU, b"\x7fELF").is_err());
}

#[test]
fn one_list_of_arguments_is_launched_twice() {
    on_device(|_| {
        let axpy = RawKernel::compile(AXPY, "axpy").unwrap();
        let (x, mut y) = (ones(10, DType::F32).unwrap(), zeros(10, DType::F32).unwrap());
        let mut list = args![2.0f32, &x, &mut y, 10];
        for _ in 0..2 {
            // SAFETY: both arrays have 10 elements.
            unsafe { axpy.launch(Launch::new(1, 32), &mut list[..]) }.unwrap();
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), [4.0; 10]);
    });
}

#[test]
fn a_kernel_reads_and_writes_arrays() {
    on_device(|device| {
        let axpy = RawKernel::compile(AXPY, "axpy").unwrap();
        assert_eq!((axpy.name(), axpy.device()), ("axpy", device));
        let x = arange(0, 1000, 1).unwrap().astype(DType::F32).unwrap() + 1.0; // deferred
        let mut y = ones(1000, DType::F32).unwrap();
        let before = y.clone();
        let launch = axpy.launch_for_items(1000).unwrap();
        // SAFETY: the kernel stays below 1000, the length of both.
        unsafe { axpy.launch(launch, args![2.0f32, &x, &mut y, 1000]) }.unwrap();
        let expected: Vec<f32> = (0..1000).map(|i| 1.0 + 2.0 * (i + 1) as f32).collect();
        assert_eq!(y.to_vec::<f32>().unwrap(), expected);
        assert_eq!(before.to_vec::<f32>().unwrap(), [1.0; 1000], "another handle keeps its value");

        // Arrays of other layouts, and views.
        let mut table = zeros([4, 500], DType::F32).unwrap();
        let row = table.index(cuprum_core::s![1]).unwrap();
        // SAFETY: the kernel stays below 500, the length of both arrays.
        unsafe { axpy.launch(Launch::for_items(500, 128), args![1.0f32, &before.index(cuprum_core::s![500..]).unwrap(), &mut table, 500]) }
            .unwrap();
        assert_eq!((table.sum(()).unwrap().item().unwrap().as_f64(), row.sum(()).unwrap().item().unwrap().as_f64()), (500.0, 0.0));
        let columns = table.t().unwrap();
        // SAFETY: the launch fails before it is queued.
        let refused = message(unsafe { axpy.launch(launch, args![1.0f32, &columns, &mut y, 1000]) });
        assert!(refused.contains("`const float* x`) has strides [1, 500]"), "{refused}");
    });
}

#[test]
fn wrong_arguments_and_launches_do_nothing() {
    on_device(|_| {
        let axpy = RawKernel::compile(AXPY, "axpy").unwrap();
        let x = ones(10, DType::F64).unwrap();
        let mut y = zeros(10, DType::F32).unwrap();
        // SAFETY: every launch fails before it is queued.
        let mut refusal = |launch, arg: Arg| message(unsafe { axpy.launch(launch, [2.0f32.into(), arg, (&mut y).into(), 10.into()]) });
        let one = Launch::new(1, 32);
        assert!(refusal(one, (&x).into()).contains("array of float32"), "float64 is not read as float32");
        assert!(refusal(one, 3.into()).contains("an array's address"));
        let on_host = with_device(Device::CPU, || NdArray::from_slice(&[1.0f32; 10])).unwrap();
        assert!(refusal(one, (&on_host).into()).contains("is on cpu, the kernel on cuda:0"));
        let x = x.astype(DType::F32).unwrap();
        assert!(refusal(Launch::new(1, 1025), (&x).into()).contains("1025"));
        assert!(refusal(one.with_shared_bytes(1 << 20), (&x).into()).contains("1048576 bytes"));
        assert!(refusal(Launch::new(1 << 30, 1024).cooperative(), (&x).into()).contains("cooperative"));
        // SAFETY: the launch fails before it is queued.
        let refused = message(unsafe { axpy.launch(one, args![2.0f32, &x]) });
        assert!(refused.contains("axpy takes 4 arguments"), "{refused}");
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.0; 10]);
        // SAFETY: a grid without blocks runs nothing.
        unsafe { axpy.launch(Launch::for_items(0, 256), args![2.0f32, &x, &mut y, 10]) }.unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [0.0; 10]);
        assert!(message(RawKernel::compile(AXPY, "apxy")).contains("the module has no kernel `apxy`"));
    });
}

/// Writes one element past the end of an array, which is an error only under `compute-sanitizer` with `CUPRUM_GPU_MEMORY_POOL=0`. Then
/// writes far outside every array, after which the process has lost the device. The test therefore runs in a process of its own.
#[test]
#[ignore = "loses the device; `writes_out_of_bounds_are_errors` runs it in a process of its own"]
fn writes_out_of_bounds() {
    on_device(|device| {
        let poke = RawKernel::compile("extern \"C\" __global__ void poke(float* x, long long at) { x[at] = 1; }", "poke").unwrap();
        let mut x = zeros(10, DType::F32).unwrap();
        for at in [10i64, 1 << 50] {
            // SAFETY: the write is out of bounds on purpose. The process ends with this test.
            unsafe { poke.launch(Launch::new(1, 1), args![&mut x, at]) }.unwrap();
            if at == 10 {
                assert_eq!(x.to_vec::<f32>().unwrap(), [0.0; 10]);
            }
        }
        let text = message(x.to_vec::<f32>());
        assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && text.contains("is lost"), "{text}");
        assert!(text.contains("poke"), "{text}");
        let later = message(ones(3, DType::F32).and_then(|a| a.to_vec::<f32>()));
        assert!(later.contains(&format!("{device} is lost")), "{later}");
        println!("lost as it should be");
    });
}

#[test]
fn writes_out_of_bounds_are_errors() {
    on_device(|_| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["user_kernels::writes_out_of_bounds", "--exact", "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("lost as it should be"), "{text}{}", String::from_utf8_lossy(&child.stderr));
    });
}

#[test]
fn templates_structs_and_strides() {
    on_device(|_| {
        let source = r#"
            struct Affine { double scale; int shift; };
            template <class T> __global__ void apply(const T* x, T* y, Affine f, long long step, int n) {
                for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = static_cast<T>(x[i * step] * f.scale + f.shift);
            }
        "#;
        let module = RawSource::new(source).with_name_expression("apply<float>").with_name_expression("apply<int>").compile().unwrap();
        let mut affine = 2.0f64.to_ne_bytes().to_vec();
        affine.extend(5i32.to_ne_bytes());
        affine.extend([0; 4]); // as C++ pads it
        let table = arange(0, 20, 1).unwrap().reshape([5, 4]).unwrap();
        for (name, dtype) in [("apply<float>", DType::F32), ("apply<int>", DType::I32)] {
            let column = table.astype(dtype).unwrap().index(cuprum_core::s![.., 1]).unwrap();
            let mut y = zeros(5, dtype).unwrap();
            let kernel = module.kernel(name).unwrap();
            let step = column.strides().unwrap()[0];
            // SAFETY: `y` has 5 elements, `x` as many, `step` apart; the bytes are those of an Affine.
            unsafe { kernel.launch(Launch::new(1, 32), args![Arg::strided(&column), &mut y, Arg::bytes(&affine), step, 5]) }.unwrap();
            assert_eq!(y.astype(DType::F64).unwrap().to_vec::<f64>().unwrap(), [7.0, 15.0, 23.0, 31.0, 39.0], "{name}");
        }
        assert!(message(module.kernel("apply<double>")).contains("expressions: apply<float>, apply<int>"));
    });
}

#[test]
fn variables_of_a_module() {
    on_device(|_| {
        let source = r#"
            __constant__ float weights[3];
            namespace my { __device__ int calls = 0; }
            extern "C" __global__ void blend(const float* x, float* out) {
                out[0] = weights[0] * x[0] + weights[1] * x[1] + weights[2] * x[2];
                my::calls += 1;
            }
        "#;
        let module = RawSource::new(source).with_name_expression("&my::calls").compile().unwrap();
        let weights = module.global("weights").unwrap();
        assert_eq!(weights.nbytes(), 12);
        weights.set_array(&NdArray::from_slice(&[1.0f32, 10.0, 100.0]).unwrap()).unwrap();
        assert!(message(weights.set_bytes(&[0; 11])).contains("11 bytes for a variable of 12"));
        let (x, mut out) = (NdArray::from_slice(&[1.0f32, 2.0, 3.0]).unwrap(), zeros(1, DType::F32).unwrap());
        let blend = module.kernel("blend").unwrap();
        for _ in 0..2 {
            // SAFETY: the kernel reads three elements and writes one, on one thread.
            unsafe { blend.launch(Launch::new(1, 1), args![&x, &mut out]) }.unwrap();
        }
        assert_eq!(out.to_vec::<f32>().unwrap(), [321.0]);
        assert_eq!(module.global("&my::calls").unwrap().to_array(DType::I32, ()).unwrap().to_vec::<i32>().unwrap(), [2]);
        assert_eq!(weights.to_array(DType::F32, 3).unwrap().to_vec::<f32>().unwrap(), [1.0, 10.0, 100.0]);
        assert!(message(module.global("nothing")).contains("no variable `nothing`"));
    });
}

#[test]
fn cooperative_launches_and_large_shared_memory() {
    on_device(|_| {
        let source = r#"
            __device__ unsigned arrived;
            // The grid barrier of cooperative_groups exists only in cooperative launches.
            __device__ bool has_grid() {
                unsigned long long workspace;
                asm("mov.b64 %0, {%%envreg2, %%envreg1};" : "=l"(workspace));
                return workspace != 0;
            }
            extern "C" __global__ void meet(int* out) {
                if (threadIdx.x == 0 && has_grid()) {
                    atomicAdd(&arrived, 1u);
                    while (atomicAdd(&arrived, 0u) < gridDim.x) {}
                    atomicAdd(out, 1);
                }
            }
            extern "C" __global__ void reversed(const int* x, int* out) {
                extern __shared__ int cells[];
                for (int i = threadIdx.x; i < 20000; i += blockDim.x) cells[i] = x[i];
                __syncthreads();
                for (int i = threadIdx.x; i < 20000; i += blockDim.x) out[i] = cells[19999 - i];
            }
        "#;
        let module = RawSource::new(source).compile().unwrap();
        let meet = module.kernel("meet").unwrap();
        let mut out = zeros(1, DType::I32).unwrap();
        let launch = Launch::new(8, 64).cooperative();
        assert!(meet.blocks_per_multiprocessor(launch).unwrap() > 0);
        // SAFETY: blocks add to the one element by atomic operations.
        unsafe { meet.launch(Launch { cooperative: false, ..launch }, args![&mut out]) }.unwrap();
        assert_eq!(out.to_vec::<i32>().unwrap(), [0], "blocks of other launches have nothing to wait at");
        // SAFETY: as above.
        unsafe { meet.launch(launch, args![&mut out]) }.unwrap();
        assert_eq!(out.to_vec::<i32>().unwrap(), [8]);

        let reversed = module.kernel("reversed").unwrap();
        assert!(reversed.attributes().registers > 0 && reversed.attributes().max_threads >= 32);
        let x = arange(0, 20000, 1).unwrap().astype(DType::I32).unwrap();
        // The cooperative launch comes first, so that the check of resident blocks is the first to raise the shared memory limit.
        let launch = Launch::new(1, 256).with_shared_bytes(80_000);
        for launch in [launch.cooperative(), launch] {
            let mut out = zeros(20000, DType::I32).unwrap();
            // SAFETY: both arrays have the 20000 elements that the kernel accesses, and blocks have 80000 bytes of shared memory for them.
            unsafe { reversed.launch(launch, args![&x, &mut out]) }.unwrap();
            assert_eq!(out.to_vec::<i32>().unwrap(), (0..20000).rev().collect::<Vec<i32>>());
        }
        assert!(message(reversed.best_block(u32::MAX)).contains("shared memory"));
        let fresh = RawSource::new(source).compile().unwrap();
        assert!(fresh.kernel("reversed").unwrap().best_block(80_000).unwrap() >= 32);
        let fresh = RawSource::new(source).compile().unwrap().kernel("reversed").unwrap();
        assert!(fresh.blocks_per_multiprocessor(launch).unwrap() > 0);
    });
}

#[test]
fn machine_code_and_ptx_are_loaded() {
    on_device(|device| {
        let info = device.info().unwrap();
        let capability = info.details.iter().find(|(name, _)| *name == "compute capability").unwrap().1.replace('.', "");
        let code = RawSource::new(AXPY).machine_code(capability.parse().unwrap()).unwrap();
        let axpy = RawModule::load(&code).unwrap().kernel("axpy").unwrap().with_signature("float a, const float* x, float* y, int n");
        let (x, mut y) = (ones(5, DType::F32).unwrap(), zeros(5, DType::F32).unwrap());
        let launch = axpy.launch_for_items(5).unwrap();
        // SAFETY: both arrays have 5 elements.
        unsafe { axpy.launch(launch, args![3.0f32, &x, &mut y, 5]) }.unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [3.0; 5]);
        // SAFETY: the launch fails before it is queued.
        assert!(message(unsafe { axpy.launch(launch, args![3.0, &x, &mut y, 5]) }).contains("value of float32"));

        let ptx =
            |body: &str| format!(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry seven(.param .u64 out) {{\n{body}}}\n");
        let good = ".reg .b64 %rd<3>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd2, %rd1;\nmov.u32 %r1, 7;\n\
                    st.global.u32 [%rd2], %r1;\nret;\n";
        let seven = RawModule::load(ptx(good).as_bytes()).unwrap().kernel("seven").unwrap();
        let mut out = zeros(1, DType::I32).unwrap();
        // SAFETY: the kernel writes one element.
        unsafe { seven.launch(Launch::new(1, 1), args![&mut out]) }.unwrap();
        assert_eq!(out.to_vec::<i32>().unwrap(), [7]);
        if seven.parameter_sizes().is_some() {
            // SAFETY: the launch fails before it is queued.
            assert!(message(unsafe { seven.launch(Launch::new(1, 1), args![7]) }).contains("argument 0 has 8 bytes, was given int32"));
        }
        assert!(message(RawModule::load(b"neither")).contains("neither a complete cubin nor PTX"));
        let bad = message(RawModule::load(ptx("nonsense;\n").as_bytes()));
        assert!(bad.contains("line 5"), "{bad}");
    });
}

#[test]
fn elementwise_kernels_broadcast() {
    on_device(|device| {
        let blend =
            ElementwiseKernel::new("T x, T y, float64 t", "T z, int64 place", "z = x + static_cast<T>(t) * (y - x);\nplace = i", "blend");
        let blend = blend.unwrap();
        let x = arange(0, 12, 1).unwrap().reshape([3, 4]).unwrap();
        for dtype in [DType::F32, DType::F16, DType::I64] {
            let x = x.astype(dtype).unwrap();
            let column = arange(100, 103, 1).unwrap().astype(dtype).unwrap().reshape([3, 1]).unwrap();
            // SAFETY: the code touches its own elements only.
            let [z, place] = unsafe { blend.call(&[(&x).into(), (&column).into(), 2.into()]) }.unwrap().try_into().unwrap();
            let expected = &x + (&column - &x) * 2;
            assert_eq!((z.dtype(), z.shape(), z.device()), (dtype, &[3, 4][..], device));
            assert_eq!(z.to_bytes().unwrap(), expected.to_bytes().unwrap(), "{dtype}");
            assert_eq!(place.to_vec::<i64>().unwrap(), (0..12).collect::<Vec<i64>>());
            // Transposed, and with a number for an array.
            // SAFETY: as above.
            let z = unsafe { blend.call(&[(&x.t().unwrap()).into(), 7.into(), 1.into()]) }.unwrap().remove(0);
            assert_eq!(z.astype(DType::F64).unwrap().to_vec::<f64>().unwrap(), [7.0; 12], "{dtype}");
            assert_eq!(z.shape(), [4, 3]);
        }
        // SAFETY: the kernel does not run, because the shapes do not broadcast.
        unsafe {
            let five = zeros(5, DType::I64).unwrap();
            let refused = message(blend.call(&[(&x).into(), (&five).into(), 1.into()]));
            assert!(refused.contains("could not be broadcast together with shapes (3, 4) and (5,)"), "{refused}");
            let none = zeros([0, 4], DType::I64).unwrap();
            assert_eq!(blend.call(&[(&none).into(), 1.into(), 1.into()]).unwrap()[1].shape(), [0, 4]);
        }

        let mirrored = ElementwiseKernel::new("raw T x", "T y", "y = x[n - 1 - i]", "mirrored").unwrap();
        let odd = arange(0, 10, 1).unwrap().index(cuprum_core::s![1..;2]).unwrap();
        // SAFETY: the array has 5 elements, the number that `call_sized` gets.
        let y = unsafe { mirrored.call_sized(&[(&odd).into()], 5) }.unwrap().remove(0);
        assert_eq!(y.to_vec::<i64>().unwrap(), [9, 7, 5, 3, 1]);
    });
}

#[test]
fn kernels_from_strings_follow_a_new_preamble_and_options() {
    on_device(|_| {
        let one = ones(1, DType::F64).unwrap();
        let parts = ReductionDefinition {
            inputs: "T x",
            output: "T y",
            map: "x * SCALE",
            reduce: "a + b",
            post: "y = a",
            identity: "0",
            name: "scaled",
        };
        let mut kernel = ElementwiseKernel::new("T x", "T y", "y = x * SCALE", "scaled").unwrap();
        let mut sum = ReductionKernel::new(parts).unwrap();
        let by_option = "#ifdef MORE\nconstexpr int SCALE = 4;\n#else\nconstexpr int SCALE = 3;\n#endif";
        for (preamble, option, expected) in
            [(Some("constexpr int SCALE = 2;"), None, 2.0), (Some(by_option), None, 3.0), (None, Some("-DMORE"), 4.0)]
        {
            if let Some(text) = preamble {
                (kernel, sum) = (kernel.with_preamble(text), sum.with_preamble(text));
            }
            if let Some(option) = option {
                (kernel, sum) = (kernel.with_option(option), sum.with_option(option));
            }
            // SAFETY: the code touches its own elements only.
            let [y, total] = unsafe { [kernel.call(&[(&one).into()]).unwrap().remove(0), sum.call(&[(&one).into()], None).unwrap()] };
            assert_eq!([y.to_vec::<f64>().unwrap(), total.to_vec::<f64>().unwrap()], [[expected], [expected]]);
        }
    });
}

#[test]
fn reduction_kernels_reduce_over_axes() {
    on_device(|_| {
        let norm = ReductionDefinition {
            inputs: "T x",
            output: "float64 y",
            map: "x * x",
            reduce: "a + b",
            post: "y = sqrt(a)",
            identity: "0",
            name: "norm",
        };
        let kernel = ReductionKernel::new(norm).unwrap();
        // SAFETY: the code of every kernel here touches its own elements only.
        let call = |x: &NdArray, axes: Option<&[isize]>| unsafe { kernel.call(&[x.into()], axes) }.unwrap();
        let close = |got: NdArray, expected: NdArray| {
            assert_eq!(got.shape(), expected.shape());
            for (a, b) in got.to_vec::<f64>().unwrap().into_iter().zip(expected.astype(DType::F64).unwrap().to_vec::<f64>().unwrap()) {
                assert!((a - b).abs() <= 1e-12 * b.abs(), "{a} {b}");
            }
        };
        for shape in [[1, 7], [40, 3], [3, 1000], [300, 5]] {
            let x = arange(0, shape[0] * shape[1], 1).unwrap().astype(DType::F64).unwrap().reshape(shape).unwrap();
            for x in [x.clone(), x.t().unwrap(), x.index(cuprum_core::s![.., ..;2]).unwrap()] {
                close(call(&x, None), (&x * &x).sum(()).unwrap().sqrt().unwrap());
                close(call(&x, Some(&[0])), (&x * &x).sum(0).unwrap().sqrt().unwrap());
                close(call(&x, Some(&[-1])), (&x * &x).sum(-1).unwrap().sqrt().unwrap());
            }
        }
        let long = arange(0, 20_000, 1).unwrap().astype(DType::F64).unwrap();
        close(call(&long, None), (&long * &long).sum(()).unwrap().sqrt().unwrap());
        assert_eq!(call(&long, None).to_bytes().unwrap(), call(&long, None).to_bytes().unwrap());
        assert_eq!(call(&zeros([0, 2], DType::F32).unwrap(), Some(&[0])).to_vec::<f64>().unwrap(), [0.0, 0.0]);
        assert_eq!(call(&zeros([2, 0], DType::F32).unwrap(), Some(&[0])).shape(), [0]);

        // Broadcast inputs, 16-bit floats, a number, no identity.
        let most = ReductionDefinition {
            inputs: "T x, T y, float32 t",
            output: "T z",
            map: "x * y * t",
            reduce: "a > b ? a : b",
            post: "z = a",
            identity: "",
            ..norm
        };
        let most = ReductionKernel::new(most).unwrap();
        let x = arange(-3, 3, 1).unwrap().astype(DType::F16).unwrap();
        let y = arange(1, 3, 1).unwrap().astype(DType::F16).unwrap().reshape([2, 1]).unwrap();
        // SAFETY: as above.
        let z = unsafe { most.call(&[(&x).into(), (&y).into(), 0.5.into()], Some(&[1])) }.unwrap();
        assert_eq!(z.astype(DType::F64).unwrap().to_vec::<f64>().unwrap(), [1.0, 2.0]);
        let none = zeros([0, 2], DType::F16).unwrap();
        // SAFETY: refused.
        assert!(message(unsafe { most.call(&[(&none).into(), 1.into(), 1.into()], Some(&[0])) }).contains("no identity"));
    });
}
