//! The system's allocator: each large allocation outside of the pool of host memory fails in turn. Code that allocates a length that a
//! user chooses with `Vec::with_capacity` or `collect` would end the process.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuprum::Error;
use cuprum::core::testing::{Tolerance, compare};

use crate::memory::{PROGRAMS, run};

/// Size in bytes from which an allocation counts as one whose length a user chooses. Bounded tables and buffers are smaller.
const LARGE: usize = 96 << 10;
/// The variable by which a test starts its own executable again: the index of a program, a colon, and the index of the allocation that
/// fails.
const FAILING: &str = "CUPRUM_TEST_FAILING_ALLOCATION";

/// The system's allocator, whose large allocations fail on request.
struct FailingAllocator;

#[global_allocator]
static ALLOCATOR: FailingAllocator = FailingAllocator;

/// Number of large allocations until one fails; at `usize::MAX` and half of it, none does.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn fails(size: usize) -> bool {
    size >= LARGE && LEFT.load(Ordering::Relaxed) != usize::MAX && LEFT.fetch_sub(1, Ordering::Relaxed) == 0
}

// SAFETY: every call goes to the system's allocator, or returns null, which reports a failure.
unsafe impl GlobalAlloc for FailingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller meets the requirements of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller meets the requirements of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller meets the requirements of `GlobalAlloc::realloc`.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller meets the requirements of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// The entry of the processes that the test below starts. Without a task it does nothing.
#[test]
fn process_with_a_failing_allocation() {
    let Ok(task) = std::env::var(FAILING) else { return };
    let (program, n) = task.split_once(':').unwrap();
    let (_, program) = PROGRAMS[program.parse::<usize>().unwrap()];
    // Also fills caches and starts threads.
    let expected = run(program).unwrap();
    LEFT.store(n.parse().unwrap(), Ordering::Relaxed);
    let result = run(program);
    let reached = LEFT.swap(usize::MAX, Ordering::Relaxed) > usize::MAX / 2;
    let again = run(program).unwrap();
    if let Err(error) = &result {
        assert!(reached && matches!(error, Error::OutOfMemory { .. }), "{program}: {error}");
    }
    for got in result.iter().chain([&again]) {
        assert_eq!(got.len(), expected.len());
        got.iter().zip(&expected).for_each(|(got, want)| compare(got, want, Tolerance::EXACT).unwrap());
    }
    println!("reached: {reached}");
}

/// Programs that may end the process if an allocation fails, with the reason (docs/limits.md). Workspaces have a fixed maximum size.
const MAY_ABORT: &[(&str, &str)] = &[
    ("m @ m.T", "packing buffers of gemm"),
    ("einsum('ij,kj,k->ik', m, m, m[:, 0])", "packing buffers of gemm"),
    ("tensordot(m, m, axes=([1], [1]))", "packing buffers of gemm"),
    ("k.reshape(200, 200) @ k.reshape(200, 200)", "packed blocks of integers"),
    ("linalg.svd(m[:40, :30]); linalg.eigh(m[:30, :30] + m[:30, :30].T); linalg.qr(m[:50, :20])", "tiles of elementwise programs"),
    ("intersect1d(k, k[:100]); isin(k, k[:50]); roll(m, 3, axis=1); repeat(x, 3)", "counters of a counting sort"),
    ("array2string(x, threshold=100000)", "text"),
];
/// Maximum size in bytes of a workspace of fixed size.
const MAX_WORKSPACE: usize = 1 << 20;

#[test]
fn each_large_allocation_may_fail() {
    let mut failed = 0;
    let mut problems = Vec::new();
    for (index, (_, program)) in PROGRAMS.iter().enumerate() {
        for n in 0.. {
            assert!(n < 200, "{program}: more than 200 large allocations");
            let mut process = Command::new(std::env::current_exe().unwrap());
            process.args(["--exact", "allocator::process_with_a_failing_allocation", "--nocapture"]);
            // One thread, so that the allocations have the same order in every process.
            let output = process.env(FAILING, format!("{index}:{n}")).env("CUPRUM_NUM_THREADS", "1").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                let refused = text.split_once("memory allocation of ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
                match MAY_ABORT.iter().find(|(listed, _)| listed == program) {
                    Some((_, "text")) if refused.is_some() => continue,
                    Some(_) if refused.is_some_and(|size: usize| size <= MAX_WORKSPACE) => continue,
                    _ => {}
                }
                let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("running") && !line.is_empty()).take(4).collect();
                problems.push(format!("{program}, allocation {n}: {}: {}", output.status, lines.join(" / ")));
                continue;
            }
            if text.contains("reached: false") {
                break;
            }
            failed += 1;
        }
    }
    assert!(failed >= 50, "{failed} allocations failed, so the test proves little");
    assert!(problems.is_empty(), "{} of {} failures:\n{}", problems.len(), failed + problems.len(), problems.join("\n"));
}
