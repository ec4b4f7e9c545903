//! Test accelerators. All take `cumprod` of uint16, and fill the result with a number that identifies them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};

use cuprum::core::device::Buffer;
use cuprum::core::host_buffer::HostBuffer;
use cuprum::core::ops::scan::CUMPROD;
use cuprum::core::program::StepKind;
use cuprum::core::{Accelerator, Availability, Call, DTypeSet, Family, Kernel, Outcome, decline, register};
use cuprum::{CallRecord, DType, Device, Error, NdArray, Result, explain, ones, with_accelerators, with_device};

const U16: DTypeSet = DTypeSet::of(&[DType::U16]);

const fn ready() -> Availability {
    Availability::Ready(String::new())
}

const fn kernel(run: fn(&Call) -> Result<Outcome>) -> Kernel {
    Kernel::new(Family::Scan, run).only_ops(&[CUMPROD]).only_dtypes(U16)
}

const BLANK: Accelerator = Accelerator { name: "", device: "cpu", rank: 0, summary: "", probe: || ready(), kernels: &[], base: None };

/// Fills the output with the number of the accelerator.
fn fill_with(call: &Call, number: u64) -> Result<Outcome> {
    let buffer: Arc<dyn Buffer> = Arc::new(HostBuffer::from_slice(&vec![number; call.outputs[0].layout.size()])?);
    call.outcome_from_buffers([buffer])
}

/// First by rank. Declines more than 8 elements.
pub static ALPHA: Accelerator = Accelerator {
    name: "alpha",
    rank: -30,
    summary: "short arrays",
    kernels: &[kernel(|call| {
        let n = call.inputs[0].shape().iter().product::<usize>();
        if n > 8 {
            decline!("{n} elements are more than 8");
        }
        fill_with(call, 11)
    })],
    ..BLANK
};

/// Second by rank, and before gamma by name. Has two kernels; takes 1-D arrays only.
pub static BETA: Accelerator = Accelerator {
    name: "beta",
    rank: -20,
    summary: "vectors",
    kernels: &[
        kernel(|_| decline!("its first kernel takes nothing")),
        kernel(|call| if call.outputs[0].layout.ndim() == 1 { fill_with(call, 12) } else { decline!("more than one axis") }),
    ],
    ..BLANK
};

/// Same rank as beta, and registered earlier. Takes every scan without a fused expression.
pub static GAMMA: Accelerator = Accelerator {
    name: "gamma",
    rank: -20,
    summary: "everything plain",
    kernels: &[kernel(|call| {
        let casts_only = |k: &StepKind| matches!(k, StepKind::Input(_) | StepKind::Cast);
        if call.program().is_some_and(|p| !p.steps.iter().all(|s| casts_only(&s.kind))) {
            decline!("a fused expression");
        }
        fill_with(call, 13)
    })],
    ..BLANK
};

/// First by rank, so tests name it explicitly. Fails on arrays of 13 elements and declines all others.
pub static BROKEN: Accelerator = Accelerator {
    name: "broken",
    rank: -100,
    summary: "fails",
    kernels: &[kernel(|call| {
        if call.outputs[0].layout.size() == 13 {
            return Err(Error::backend("broken", call.op.name(), "thirteen"));
        }
        decline!("only fails")
    })],
    ..BLANK
};

/// Reports that it is ready, but declines every call.
pub static LIAR: Accelerator = Accelerator {
    name: "liar",
    rank: -90,
    summary: "lies about being ready",
    probe: || Availability::Ready("version 9, found everywhere".into()),
    kernels: &[kernel(|_| decline!("its library is not there after all"))],
    ..BLANK
};

/// Number of probes of GHOST.
pub static GHOST_PROBES: AtomicUsize = AtomicUsize::new(0);

/// Unavailable, with a reason. Its kernel must never run.
pub static GHOST: Accelerator = Accelerator {
    name: "ghost",
    rank: -80,
    summary: "is missing",
    probe: || {
        GHOST_PROBES.fetch_add(1, Ordering::SeqCst);
        Availability::Missing { why: "no ghost in this house".into(), help: "hold a seance".into() }
    },
    kernels: &[kernel(|call| fill_with(call, 666))],
    ..BLANK
};

/// Panics in its probe.
pub static JUMPY: Accelerator = Accelerator {
    name: "jumpy",
    rank: -70,
    summary: "panics in its probe",
    probe: || panic!("boo"),
    kernels: &[kernel(|call| fill_with(call, 667))],
    ..BLANK
};

/// Has filters for another dtype and another op, so that it never receives a call.
pub static FILTERED: Accelerator = Accelerator {
    name: "filtered",
    rank: -60,
    summary: "other dtypes, other operations",
    kernels: &[
        kernel(|call| fill_with(call, 668)).only_dtypes(DTypeSet::of(&[DType::F64])),
        kernel(|call| fill_with(call, 669)).only_ops(&[cuprum::core::ops::scan::CUMSUM]),
    ],
    ..BLANK
};

/// Registers the accelerators once, and makes the CPU the default device.
pub fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for accelerator in [&GAMMA, &BETA, &ALPHA, &BROKEN, &LIAR, &GHOST, &JUMPY, &FILTERED] {
            register(accelerator).expect(accelerator.name);
        }
        Device::set_default(Device::CPU).expect("the host is a device");
    });
}

/// Locks the order of the process, for tests that read or set it.
pub fn process_order() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    set_up();
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Returns an array of ones, which the test accelerators take.
pub fn u16_ones(shape: &[usize]) -> NdArray {
    with_device(Device::CPU, || ones(shape, DType::U16).expect("ones"))
}

/// Runs `cumprod` of ones under an order. Returns the number in the result (1 from the base) and the record of the call.
pub fn run_under(order: &str, shape: &[usize]) -> (Result<u64>, Vec<CallRecord>) {
    set_up();
    let array = u16_ones(shape);
    with_accelerators(order, || explain(|| first_element(&array.cumprod(0)?))).expect("a valid order")
}

/// Returns the first element of an array of uint64.
pub fn first_element(array: &NdArray) -> Result<u64> {
    Ok(array.to_vec::<u64>()?[0])
}
