//! The number of heap allocations of a call whose kernel is compiled. The call allocates the result's handle and buffer, a handle for each
//! live deferred operation, and one block for each chain of operations. Plans, keys, programs and launches allocate nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cuprum_backend_cuda::testing;
use cuprum_core::{NdArray, Result, with_device};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards every request to the system's allocator; the count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's layout is valid.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: allocated above with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of one call, after warm-up calls.
fn allocations(call: impl Fn() -> Result<NdArray>) -> Result<usize> {
    for _ in 0..3 {
        call()?.eval()?;
    }
    let before = COUNT.get();
    call()?.eval()?;
    Ok(COUNT.get() - before)
}

#[test]
fn a_call_allocates_its_arrays_only() {
    let Some(device) = testing::device() else { return };
    let counts = with_device(device, || -> Result<Vec<(&str, usize, usize)>> {
        let values: Vec<f32> = (0..1024).map(|n| n as f32).collect();
        let (a, b) = (NdArray::from_slice(&values)?, NdArray::from_slice(&values)?);
        let rows = a.reshape([32, 32])?;
        Ok(vec![
            ("add", allocations(|| Ok(&a + &b))?, 3),
            ("add of a number", allocations(|| Ok(&a + 1))?, 3),
            ("ten operations", allocations(|| Ok((((((&a + 1) * 2 - 3) * &a + &a) * 0.5 - &a) * &a + 1) * 2))?, 4),
            ("sum", allocations(|| a.sum(()))?, 3),
            ("norm of rows", allocations(|| rows.square()?.sum(-1)?.sqrt())?, 7),
        ])
    })
    .unwrap();
    for (name, got, most) in counts {
        assert!(got <= most, "{name}: {got} allocations, {most} expected");
    }
}
