//! The names that `docs/numpy.md` lists as "in Rust only" exist in Rust.

use std::collections::BTreeSet;

const NAMES: &str = include_str!("../../crates/eval/src/numpy_names.txt");

/// Imports each path, which fails to compile if the facade lacks it, and lists them.
macro_rules! items {
    ($($($part:ident)::+;)*) => {
        mod exist {
            $(#[allow(unused_imports)] use cuprum::$($part)::+ as _;)*
        }
        const ITEMS: &[&str] = &[$(stringify!($($part)::+)),*];
    };
}

items! {
    AxisIter;
    NdArray;
    Op;
    broadcast_shapes;
    indices;
    io::fromfile;
    io::genfromtxt;
    io::load;
    io::loadtxt;
    io::memmap;
    io::save;
    io::save_npz;
    io::save_npz_compressed;
    io::savetxt;
    random::Generator;
    s;
    vectorize;
    with_printoptions;
}

#[test]
fn every_listed_item_is_in_the_facade() {
    let listed: BTreeSet<&str> = NAMES.lines().filter_map(|line| line.split_once(" # in Rust: ")).map(|(_, item)| item).collect();
    let items: Vec<String> = ITEMS.iter().map(|item| item.replace(' ', "")).collect();
    assert_eq!(items.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed);
}
