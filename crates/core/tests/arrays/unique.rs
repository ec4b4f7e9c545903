//! Unique ownership of an array's memory: `is_unique`, and `make_unique`, which copies shared memory.

use cuprum_backend_cpu as _;
use cuprum_core::{NdArray, arange, broadcast_to, s};

/// Returns 0, 1, ... as a stored array of this shape.
fn iota(rows: usize, columns: usize) -> NdArray {
    arange(0, rows * columns, 1).unwrap().reshape([rows, columns]).unwrap().copy().unwrap()
}

fn values(a: &NdArray) -> Vec<i64> {
    a.to_vec::<i64>().unwrap()
}

/// Returns the address of the buffer.
fn buffer_address(a: &NdArray) -> *const () {
    std::sync::Arc::as_ptr(a.stored().unwrap().buffer()).cast()
}

#[test]
fn the_last_handle_of_a_view_is_unique() {
    let whole = iota(4, 3);
    let mut row = whole.index(s![2]).unwrap();
    assert!(!row.is_unique(), "`whole` shares the buffer");
    let before = buffer_address(&row);
    drop(whole);
    assert!(row.is_unique());
    row.make_unique().unwrap();
    assert_eq!((buffer_address(&row), values(&row)), (before, vec![6, 7, 8]), "not copied, despite its offset");
}

#[test]
fn a_shared_view_with_an_offset_is_copied() {
    let mut whole = iota(4, 3);
    let mut row = whole.index(s![2]).unwrap();
    assert!(!whole.is_unique());
    row.make_unique().unwrap();
    assert!(row.is_unique() && whole.is_unique());
    assert_ne!(buffer_address(&row), buffer_address(&whole));
    assert_eq!((values(&row), values(&whole)), (vec![6, 7, 8], (0..12).collect()));
    assert_eq!(row.stored().unwrap().layout().offset(), 0);
}

#[test]
fn clones_share_a_handle_and_expressions_hold_their_arguments() {
    let mut a = iota(2, 2);
    assert!(a.is_unique());
    let b = a.clone();
    assert!(!a.is_unique());
    drop(b);
    assert!(a.is_unique());

    let sum = &a + 1;
    assert!(!a.is_unique(), "the deferred sum refers to it");
    let before = buffer_address(&a);
    a.make_unique().unwrap();
    assert_ne!(buffer_address(&a), before);
    assert_eq!(values(&sum), [1, 2, 3, 4]);

    let sum = &a + 1;
    sum.eval().unwrap();
    assert!(a.is_unique(), "an evaluated sum refers to no arguments");
}

#[test]
fn deferred_arrays_run_and_are_unique() {
    let a = iota(2, 2);
    let mut sum = &a * 3;
    assert!(!sum.is_unique(), "deferred arrays are not in memory");
    sum.make_unique().unwrap();
    assert!(sum.is_unique());
    assert_eq!(values(&sum), [0, 3, 6, 9]);

    let (mut one, other) = (&a * 2, &a * 2);
    let same = one.clone();
    one.make_unique().unwrap();
    assert!(one.is_unique());
    assert_eq!([values(&one), values(&same), values(&other)], [[0, 2, 4, 6]; 3]);
    assert_ne!(buffer_address(&one), buffer_address(&same));
}

#[test]
fn transposed_arrays_are_copied_to_c_order() {
    let whole = iota(2, 3);
    let mut t = whole.t().unwrap();
    drop(whole);
    assert!(t.is_unique(), "unique, but not in C order");
    let before = buffer_address(&t);
    t.make_unique().unwrap();
    assert_ne!(buffer_address(&t), before);
    assert!(t.is_unique() && t.is_contiguous().unwrap());
    assert_eq!((t.shape(), values(&t)), (&[3, 2][..], vec![0, 3, 1, 4, 2, 5]));

    let mut repeated = broadcast_to(&iota(1, 3), [2, 3]).unwrap();
    repeated.make_unique().unwrap();
    assert!(repeated.is_unique() && repeated.is_contiguous().unwrap());
    assert_eq!(values(&repeated), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn empty_arrays_can_be_unique() {
    let mut empty = iota(0, 3);
    empty.make_unique().unwrap();
    assert!(empty.is_unique());
    let mut other = empty.t().unwrap();
    assert!(!other.is_unique() && !empty.is_unique());
    other.make_unique().unwrap();
    assert!(other.is_unique() && empty.is_unique());
    assert_eq!((other.shape(), values(&other)), (&[3, 0][..], vec![]));
}
