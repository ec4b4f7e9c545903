//! A test device with memory and no kernels: errors that list all accelerators, and the policy on computing on the host.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use cuprum::core::device::{Buffer, DeviceDriver, DeviceEvent, DeviceInfo};
use cuprum::core::expr::elementwise;
use cuprum::core::graph::DeviceGraph;
use cuprum::core::host_buffer::HostBuffer;
use cuprum::core::ops::elementwise::CLIP;
use cuprum::core::registry::DeviceProvider;
use cuprum::core::{Accelerator, Availability, DTypeSet, DeclineReason, Family, Kernel, Layout, Outcome, StoredArray, decline, register};
use cuprum::settings::{self, CompileMode};
use cuprum::{
    DType, Device, DeviceKind, Error, NdArray, Result, Stream, count_nonzero, explain, flip, ones, with_accelerators, with_device,
};

use crate::environment::in_child;
use crate::test_accelerators::{process_order, set_up};

/// Memory of the device.
struct ToyBuffer(HostBuffer, Device);

impl Buffer for ToyBuffer {
    fn device(&self) -> Device {
        self.1
    }
    fn nbytes(&self) -> usize {
        self.0.nbytes()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The toy device is synchronous, so an event is complete when it is recorded.
struct ToyEvent(Instant);

impl DeviceEvent for ToyEvent {
    fn millis_since(&self, earlier: &dyn DeviceEvent) -> Result<f64> {
        let earlier = earlier.as_any().downcast_ref::<ToyEvent>().ok_or_else(|| Error::value("event", "not a toy's"))?;
        let since = |a: Instant, b: Instant| a.saturating_duration_since(b).as_secs_f64() * 1e3;
        Ok(since(self.0, earlier.0) - since(earlier.0, self.0))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct ToyDriver(Device);

impl DeviceDriver for ToyDriver {
    fn allocate(&self, nbytes: usize, _: Stream) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(ToyBuffer(HostBuffer::zeroed(nbytes)?, self.0)))
    }
    fn upload(&self, bytes: &[u8], _: Stream) -> Result<Arc<dyn Buffer>> {
        Ok(Arc::new(ToyBuffer(HostBuffer::from_bytes(bytes)?, self.0)))
    }
    fn download(&self, buffer: &dyn Buffer, start: usize, out: &mut [u8]) -> Result<()> {
        let toy = buffer.as_any().downcast_ref::<ToyBuffer>().ok_or_else(|| Error::value("download", "not a toy's"))?;
        let bytes = toy.0.as_bytes().get(start..start + out.len()).ok_or_else(|| Error::value("download", "outside"))?;
        out.copy_from_slice(bytes);
        Ok(())
    }
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
    fn record_event(&self, _: Stream) -> Result<Box<dyn DeviceEvent>> {
        Ok(Box::new(ToyEvent(Instant::now())))
    }
    fn info(&self) -> DeviceInfo {
        DeviceInfo { name: "toy".into(), ..DeviceInfo::default() }
    }
    fn begin_capture(&self) -> Result<Stream> {
        Ok(Stream { device: self.0, id: Stream::FIRST_CAPTURE_STREAM_ID })
    }
    fn end_capture(&self, _: Stream) -> Result<Box<dyn DeviceGraph>> {
        Ok(Box::new(ToyGraph(AtomicUsize::new(0))))
    }
    fn abandon_capture(&self, _: Stream) {
        ABANDONED.fetch_add(1, Ordering::SeqCst);
    }
}

/// Number of abandoned captures.
pub static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// A graph whose second launch fails.
struct ToyGraph(AtomicUsize);

impl DeviceGraph for ToyGraph {
    fn launch_graph(&self, _: Stream) -> Result<()> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 1 { Err(Error::value("graph", "worn out")) } else { Ok(()) }
    }
    fn keeps_buffer_alive(&self, _: &dyn Buffer) -> bool {
        false
    }
    fn node_count(&self) -> usize {
        3
    }
}

/// The base accelerator of two toy devices. It has no kernels.
static TOY: Accelerator = Accelerator {
    name: "toy",
    device: "toy",
    rank: 0,
    summary: "memory and nothing else",
    probe: || Availability::Ready("wooden".into()),
    kernels: &[],
    base: Some(DeviceProvider { count: || 2, is_ready: |_| true, open: |device| Ok(Box::new(ToyDriver(device))) }),
};

/// A registered device that is not available.
static SHELVED: Accelerator = Accelerator {
    name: "shelved",
    device: "shelved",
    probe: || Availability::Missing { why: "out of reach".into(), help: "fetch a ladder".into() },
    base: Some(DeviceProvider { count: || 0, is_ready: |_| true, open: |device| Ok(Box::new(ToyDriver(device))) }),
    ..TOY
};

/// An accelerator whose device is opened before it is registered. Its second device is not ready.
static TARDY: Accelerator = Accelerator {
    name: "tardy",
    device: "tardy",
    base: Some(DeviceProvider {
        count: || 2,
        is_ready: |n| n == 0,
        open: |device| match device.ordinal() {
            0 => Ok(Box::new(ToyDriver(device))),
            _ => Err(Error::Device { op: "device", message: format!("{device} is too old") }),
        },
    }),
    ..TOY
};

/// An accelerator of the toy device that declines every call, for two reasons.
static SPRING: Accelerator = Accelerator {
    name: "spring",
    device: "toy",
    rank: 0,
    summary: "declines",
    probe: || Availability::Ready(String::new()),
    kernels: &[
        Kernel::new(Family::Map, |_| decline!("never reached")).only_dtypes(DTypeSet::of(&[DType::I8])),
        Kernel::new(Family::Map, |call| decline!("not wound up for {}", call.op.name())),
    ],
    base: None,
};

/// Duration of a call of the accelerator `kiln`.
pub const BAKING: Duration = Duration::from_millis(10);

/// An accelerator of the toy device that compiles before it runs, and returns zeros.
static KILN: Accelerator = Accelerator {
    name: "kiln",
    summary: "compiles",
    kernels: &[Kernel::new(Family::Scan, |call| match settings::compile_mode()? {
        CompileMode::Background => Ok(Outcome::Declined(DeclineReason::new_retryable("not baked yet"))),
        CompileMode::Wait => {
            std::thread::sleep(BAKING);
            call.outcome_from_buffers([call.allocate_output(0)?])
        }
    })],
    base: None,
    ..SPRING
};

pub fn toy() -> Device {
    static ONCE: Once = Once::new();
    set_up();
    ONCE.call_once(|| {
        register(&TOY).unwrap();
        register(&SPRING).unwrap();
        register(&KILN).unwrap();
    });
    Device::new(DeviceKind::intern("toy").unwrap(), 0)
}

pub fn on_toy(values: &[f64]) -> NdArray {
    let device = toy();
    with_device(device, || NdArray::from_slice(values)).unwrap()
}

#[test]
fn arrays_are_copied_to_and_from_a_device() {
    let a = on_toy(&[1.0, 4.0, 9.0]);
    assert_eq!(a.device().to_string(), "toy:0");
    assert_eq!(a.to_vec::<f64>().unwrap(), [1.0, 4.0, 9.0]);
    let second = Device::parse("toy:1").unwrap();
    let there = a.index(cuprum::s![1..]).unwrap().to_device(second).unwrap();
    assert_eq!((there.device(), there.to_vec::<f64>().unwrap()), (second, vec![4.0, 9.0]));
    assert_eq!(there.to_device(Device::CPU).unwrap().sqrt().unwrap().to_vec::<f64>().unwrap(), [2.0, 3.0]);
    assert!(Device::all().contains(&second));
    assert!(Device::parse("toy:2").unwrap_err().to_string().contains("this machine has 2 toy device(s)"));
    assert!(Device::parse("marble").unwrap_err().to_string().contains("is not a device"));
}

/// A kernel of a device may write any nonzero byte as true.
#[test]
fn nonzero_bytes_are_true_on_the_host() {
    let memory = Arc::new(ToyBuffer(HostBuffer::from_bytes(&[0, 1, 2, 255]).unwrap(), toy()));
    let there = NdArray::from(StoredArray::new(DType::Bool, Layout::contiguous(&[4]).unwrap(), memory).unwrap());
    let want = [false, true, true, true];
    assert_eq!(there.to_vec::<bool>().unwrap(), want);
    assert_eq!(flip(&there, None).unwrap().to_vec::<bool>().unwrap(), [true, true, true, false]);
    assert_eq!((there.to_bytes().unwrap(), there.index(cuprum::s![2]).unwrap().item_as().unwrap()), (vec![0, 1, 1, 1], true));
    let here = there.to_device(Device::CPU).unwrap();
    assert_eq!(
        (here.to_vec::<bool>().unwrap(), here.logical_not().unwrap().to_vec::<bool>().unwrap()),
        (want.into(), want.map(|b| !b).into())
    );
    assert_eq!(count_nonzero(&here, ()).unwrap().item().unwrap(), 3i64);
}

#[test]
fn views_need_no_kernel() {
    let a = on_toy(&[1.0, 2.0, 3.0, 4.0]).reshape([2, 2]).unwrap();
    assert_eq!(flip(&a.t().unwrap(), 0).unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0, 1.0, 3.0]);
}

#[test]
fn when_all_decline_the_error_lists_every_accelerator_with_its_reason() {
    let a = on_toy(&[1.0, 4.0, 9.0]);
    let (error, records) = explain(|| a.sqrt().unwrap().to_vec::<f64>().unwrap_err());
    let text = error.to_string();
    assert!(text.starts_with("[sqrt] no accelerator of toy:0 takes float64 (3,)"), "{text}");
    assert!(text.contains("spring: does not take the dtype float64") && text.contains("spring: not wound up for sqrt"), "{text}");
    assert_eq!((records.len(), records[0].served_by), (1, None));
    let Error::Unsupported { op, dtypes, shapes, device, tried } = error else { panic!("{text}") };
    assert_eq!((op, &dtypes[..], &shapes[..], device), ("sqrt", &[DType::F64][..], &[vec![3]][..], toy()));
    assert_eq!(tried.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["spring", "spring", "toy"]);
    // The reasons are the same outside `explain`.
    assert_eq!(a.sqrt().unwrap().to_vec::<f64>().unwrap_err().to_string(), text);
}

#[test]
fn a_call_waits_for_compilation_if_no_other_accelerator_takes_it() {
    let _turn = process_order();
    let (a, usual) = (on_toy(&[1.0, 4.0, 9.0]), settings::compile_mode().unwrap());
    let (sums, records) = explain(|| a.cumsum(0).unwrap());
    assert_eq!(sums.to_vec::<f64>().unwrap(), [0.0; 3]);
    assert_eq!((records.len(), records[0].served_by, &records[0].declined[..]), (1, Some("kiln"), &[][..]));
    assert_eq!(settings::compile_mode().unwrap(), usual, "for that call only");
}

#[test]
fn the_error_says_that_a_device_has_no_kernels_of_the_family() {
    let a = on_toy(&[1.0, 4.0, 9.0]);
    let alone = with_accelerators("", || a.sqrt().unwrap().to_vec::<f64>().unwrap_err().to_string()).unwrap();
    assert_eq!(alone, "[sqrt] no accelerator of toy:0 takes float64 (3,)\n  toy: has no Map kernels");
    let sum = a.sum(()).err().map(|e| e.to_string()).unwrap();
    assert_eq!(sum, "[sum] no accelerator of toy:0 takes float64 (3,)\n  toy: has no Reduce kernels");
}

#[test]
fn a_missing_device_is_an_error_with_the_reason() {
    toy();
    let ones = |device| with_device(device, || ones([2], DType::F64)).err().map(|e| e.to_string()).unwrap();
    let ghost = Device::new(DeviceKind::intern("ghost").unwrap(), 0);
    assert!(ones(ghost).contains("no backend for 'ghost' is linked; enable the feature `ghost` of cuprum"), "{}", ones(ghost));
    let third = Device::new(DeviceKind::intern("toy").unwrap(), 2);
    assert!(ones(third).contains("there is no toy:2: this machine has 2 toy device(s)"), "{}", ones(third));
    register(&SHELVED).unwrap();
    let shelved = Device::new(DeviceKind::intern("shelved").unwrap(), 0);
    assert!(ones(shelved).contains("shelved:0 is not ready: out of reach; fetch a ladder"), "{}", ones(shelved));
    let tardy = Device::new(DeviceKind::intern("tardy").unwrap(), 0);
    assert!(ones(tardy).contains("no backend for 'tardy'"), "{}", ones(tardy));
    register(&TARDY).unwrap();
    assert_eq!(tardy.info().unwrap().name, "toy", "it is looked for again");
    let second = Device::new(tardy.kind(), 1);
    assert!(Device::all().contains(&tardy) && !Device::all().contains(&second), "{:?}", Device::all());
    assert!(Device::parse("tardy:1").unwrap_err().to_string().contains("tardy:1 is too old"));
}

#[test]
fn a_conversion_that_every_kernel_declines_is_an_error() {
    let a = on_toy(&[1.0, 4.0, 9.0]);
    let text = a.astype(DType::I32).and_then(|i| i.to_vec::<i32>()).unwrap_err().to_string();
    assert!(text.starts_with("[astype] no accelerator of toy:0 takes float64 (3,)"), "{text}");
    assert!(text.contains("spring: not wound up for astype"), "{text}");
    // A composite ends with an error too if the conversion of its arguments is declined.
    let clipped = elementwise(CLIP, &[(&a).into(), 2.into(), 5.into()]).and_then(|c| c.astype(DType::I32)?.to_vec::<i32>());
    assert!(matches!(clipped, Err(Error::Unsupported { op: "astype", .. })), "{clipped:?}");
    let rounded = with_accelerators("", || a.round(1).and_then(|r| r.to_bytes())).unwrap();
    assert!(matches!(rounded, Err(Error::Unsupported { .. })), "{rounded:?}");
}

#[test]
fn arrays_of_different_devices_are_an_error() {
    let (a, b) = (on_toy(&[1.0]), with_device(Device::CPU, || NdArray::from_slice(&[1.0])).unwrap());
    let text = cuprum::add(&a, &b).err().map(|e| e.to_string()).unwrap();
    assert_eq!(text, "[add] arrays are on toy:0 and cpu; use to_device");
}

#[test]
fn host_fallback_can_be_allowed() {
    let output = in_child("devices::child_computes_on_the_host", &[("CUPRUM_HOST_FALLBACK", "allow")]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn host_fallback_can_warn() {
    let output = in_child("devices::child_computes_on_the_host", &[("CUPRUM_HOST_FALLBACK", "WARN"), ("WANT_WARNING", "1")]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
#[ignore = "run by the tests above, in a process of its own"]
fn child_computes_on_the_host() {
    let warnings = crate::environment::count_warnings();
    let a = on_toy(&[1.0, 4.0, 9.0, 16.0]).reshape([2, 2]).unwrap();
    let results = (|| {
        let root = (&a.t()? * 4).sqrt()?;
        let sum = a.sum(1)?;
        let product = cuprum::matmul(&a, &a)?;
        let view = &a.index(cuprum::s![1.., ..;-1])? + 1; // with an offset and a negative stride
        Ok::<_, Error>([root, sum, product, view])
    })()
    .unwrap();
    assert!(results.iter().all(|r| r.device() == toy()));
    let values = results.map(|r| r.to_vec::<f64>().unwrap());
    assert_eq!(values, [vec![2.0, 6.0, 4.0, 8.0], vec![5.0, 25.0], vec![37.0, 68.0, 153.0, 292.0], vec![17.0, 10.0]]);
    // A call that updates an existing array, and a call of the CPU, stay errors.
    let error = a.clone().assign(cuprum::s![0], 5).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let error = crate::auto::run_unknown_operation().unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let wanted = std::env::var_os("WANT_WARNING").is_some();
    assert_eq!(warnings.load(std::sync::atomic::Ordering::SeqCst) > 0, wanted);
}
