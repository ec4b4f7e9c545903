//! Streams, events and graphs on the CPU, which runs work immediately: every stream is the default stream, and graphs are unsupported.

use std::time::Duration;

use cuprum_backend_cpu as _;
use cuprum_core::{DType, Device, Event, Graph, Result, Stream, arange, ones, with_device, with_stream};

#[test]
fn all_streams_of_the_cpu_are_one() -> Result<()> {
    with_device(Device::CPU, || {
        let (one, two) = (Stream::new(Device::CPU)?, Stream::new(Device::CPU)?);
        let a = one.scope(|| arange(0, 5, 1)?.eval().cloned())?;
        let b = with_stream(two, || (&a * 2).eval().cloned())?;
        one.synchronize()?;
        two.synchronize()?;
        assert_eq!(b.to_vec::<i64>()?, [0, 2, 4, 6, 8]);
        assert_eq!((one, Stream::current(Device::CPU)), (two, Stream::default_of(Device::CPU)));
        Ok(())
    })
}

#[test]
fn events_use_the_host_clock() -> Result<()> {
    let before = Event::record(Device::CPU)?;
    std::thread::sleep(Duration::from_millis(5));
    let after = Stream::new(Device::CPU)?.record()?;
    assert!(before.is_reached()? && after.is_reached()?);
    after.synchronize()?;
    Stream::current(Device::CPU).wait(&after)?;
    let took = after.elapsed(&before)?;
    assert!(took >= Duration::from_millis(5) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(before.elapsed(&after)?, Duration::ZERO);
    Ok(())
}

#[test]
fn graph_capture_on_the_cpu_is_an_error() -> Result<()> {
    let refused = Graph::capture_on(Device::CPU, || ones(3, DType::F32)).unwrap_err().to_string();
    assert_eq!(refused, "[graph] the device runs work synchronously and cannot capture it into a graph");
    let a = with_device(Device::CPU, || ones(3, DType::F32))?;
    assert_eq!(a.to_vec::<f32>()?, [1.0; 3]);
    Ok(())
}
