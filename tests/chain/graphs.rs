//! Graph capture on the test device: state after a capture ends, fails or panics.

use std::sync::atomic::Ordering;

use cuprum::core::device::Stream;
use cuprum::{Error, Graph, NdArray, Result, explain};

use crate::devices::{ABANDONED, on_toy, toy};

#[test]
fn a_capture_uses_a_separate_stream_and_is_launched_once() {
    let is_capturing = || Stream::current(toy()).is_capturing();
    let work = || {
        assert!(is_capturing());
        Ok(())
    };
    let (captured, records) = explain(|| Graph::capture_on(toy(), work));
    let (graph, ()) = captured.unwrap();
    assert!(!is_capturing());
    assert_eq!((graph.device(), graph.nodes(), records.len()), (toy(), 3, 1));
    assert_eq!(records[0].to_string(), "graph [Custom] on toy:0: toy\n    computes 3 nodes");
    let (worn_out, records) = explain(|| graph.launch());
    assert_eq!(worn_out.unwrap_err().to_string(), "[graph] worn out");
    assert_eq!(records[0].served_by, None);
    graph.launch().unwrap();
}

#[test]
fn an_array_that_the_graph_does_not_read_cannot_be_updated() {
    let (graph, ()) = Graph::capture_on(toy(), || Ok(())).unwrap();
    let text = graph.update(&on_toy(&[1.0]), &on_toy(&[2.0])).unwrap_err().to_string();
    assert!(text.contains("does not read the array to update"), "{text}");
}

#[test]
fn a_failed_capture_is_abandoned() {
    let device = toy();
    let given_up = |work: &dyn Fn() -> Result<()>| {
        let before = ABANDONED.load(Ordering::SeqCst);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Graph::capture_on(device, work)));
        assert_eq!(ABANDONED.load(Ordering::SeqCst), before + 1);
        assert!(!Stream::current(device).is_capturing());
        ended.ok().map(|captured| captured.unwrap_err().to_string())
    };
    let own = given_up(&|| Err(Error::value("closure", "its own")));
    assert_eq!(own.as_deref(), Some("[closure] its own"));
    let nested = given_up(&|| Graph::capture_on(device, || Ok(())).map(drop));
    assert!(nested.is_some_and(|text| text.contains("cannot be captured within another")));
    let (graph, ()) = Graph::capture_on(device, || Ok(())).unwrap();
    let launched = given_up(&|| graph.launch());
    assert!(launched.is_some_and(|text| text.contains("cannot be launched or updated while another is captured")));
    // The capture evaluates the array that its closure returns, which fails.
    let before = ABANDONED.load(Ordering::SeqCst);
    let deferred = Graph::capture_on(device, || -> Result<NdArray> { on_toy(&[4.0]).sqrt() });
    assert!(matches!(deferred, Err(Error::Unsupported { .. })), "{deferred:?}");
    assert_eq!(ABANDONED.load(Ordering::SeqCst), before + 1);
    assert_eq!(given_up(&|| std::panic::resume_unwind(Box::new("out of the closure"))), None);
}
