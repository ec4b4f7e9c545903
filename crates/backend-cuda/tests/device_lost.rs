//! A device that is lost, because a kernel makes an illegal access. This is the only test of its process, which cannot use the device
//! afterwards.

use std::time::{Duration, Instant};

use cuprum_backend_cpu as _;
use cuprum_backend_cuda::args;
use cuprum_backend_cuda::testing;
use cuprum_backend_cuda::user_kernels::{Launch, RawKernel};
use cuprum_core::{DType, Device, Error, NdArray, Result, Stream, arange, matmul, ones, with_device};

#[test]
fn every_call_on_a_lost_device_fails_with_its_cause() {
    let Some(device) = testing::device() else { return };
    with_device(device, || lose(device)).unwrap();
}

fn lose(device: Device) -> Result<()> {
    let host = with_device(Device::CPU, || arange(0, 1000, 1))?.astype(DType::F32)?;
    let a = NdArray::from_vec(vec![1.0f32; 256 * 256], [256, 256])?;
    let index = NdArray::from_slice(&[1i64, 2, 3])?;
    let kept = matmul(&a, &a)?.eval()?.clone(); // cuBLAS is ready
    let other = Stream::new(device)?;
    device.synchronize()?;
    let source = r#"extern "C" __global__ void poke(unsigned long long p) { *reinterpret_cast<volatile int*>(p) = 1; }"#;
    let poke = RawKernel::compile(source, "poke")?;
    // SAFETY: the kernel writes to an invalid address. The driver ends the context before any memory changes.
    unsafe { poke.launch(Launch::new(1, 1), args![0xdead_0000_0000u64]) }?;

    // cuBLAS is the first to see the error, and reports a status of its own.
    let start = Instant::now();
    let first = loop {
        match matmul(&a, &a).and_then(|p| p.eval().map(|_| ())) {
            Ok(()) if start.elapsed() < Duration::from_secs(20) => {}
            other => break other,
        }
    };
    let Err(Error::DeviceLost { device: lost, cause, .. }) = &first else { panic!("{first:?}") };
    assert_eq!(*lost, device);
    assert!(cause.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)") && cause.contains("this thread had queued"), "{cause}");

    let calls: [(&str, &dyn Fn() -> Result<()>); 12] = [
        ("read", &|| kept.to_vec::<f32>().map(|_| ())),
        ("upload", &|| host.to_device(device).map(|_| ())),
        ("download", &|| kept.to_device(Device::CPU).map(|_| ())),
        ("map", &|| (&a + 1.0f32).eval().map(|_| ())),
        ("sum", &|| a.sum(())?.eval().map(|_| ())),
        ("take", &|| a.take(&index, 0)?.eval().map(|_| ())),
        ("matmul", &|| matmul(&a, &a)?.eval().map(|_| ())),
        ("sort", &|| a.sort(-1)?.eval().map(|_| ())),
        ("on another stream", &|| other.scope(|| (&a * 2.0f32).eval().map(|_| ()))),
        ("synchronize", &|| device.synchronize()),
        ("free_all", &|| device.free_all()),
        ("pin_memory", &|| host.pin_memory(device).map(|_| ())),
    ];
    for (name, call) in calls {
        let start = Instant::now();
        let result = call();
        let took = start.elapsed();
        match &result {
            Err(Error::DeviceLost { device: lost, cause: same, .. }) => assert_eq!((*lost, same), (device, cause), "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        assert!(took < Duration::from_millis(100), "{name} took {took:?}");
    }
    // The same holds on a thread that has not used the device before.
    let elsewhere = std::thread::spawn(move || device.synchronize()).join().unwrap();
    assert!(matches!(elsewhere, Err(Error::DeviceLost { .. })), "{elsewhere:?}");

    // Arrays on the host and on another GPU remain usable.
    with_device(Device::CPU, || {
        assert_eq!(host.sum(())?.item()?.as_f64(), 499_500.0);
        assert_eq!(ones(10, DType::F32)?.sum(())?.item()?.as_f64(), 10.0);
        Ok(())
    })?;
    match Device::parse("cuda:1") {
        Ok(second) => {
            let crossed = kept.to_device(second);
            assert!(matches!(&crossed, Err(Error::DeviceLost { device: lost, .. }) if *lost == device), "{crossed:?}");
            with_device(second, || {
                assert_eq!(host.to_device(second)?.sum(())?.item()?.as_f64(), 499_500.0);
                let b = ones([64, 64], DType::F32)?;
                assert_eq!(matmul(&b, &b)?.sum(())?.item()?.as_f64(), 64.0 * 64.0 * 64.0);
                second.synchronize()
            })?;
        }
        Err(reason) => println!("one device only: {reason}"),
    }
    drop((a, kept, index));
    Ok(())
}
