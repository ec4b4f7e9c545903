//! The bodies of the fuzz targets. `tests/hostile_input.rs` of the workspace runs them over the corpora and mutations of them.
//!
//! A body never panics on any input, takes less than a second, and stays within [`MEMORY_LIMIT`].
#![allow(clippy::unwrap_used)]

mod dlpack;

use cuprum::core::Layout;
use cuprum::expressions::Session;
use cuprum::{DType, Item, NdArray, io};
pub use dlpack::dlpack;

/// Limit on host memory while targets run, in bytes.
pub const MEMORY_LIMIT: usize = 32 << 20;

/// Maximum number of elements of an array in an expression. It bounds the time of a call.
const MAX_SIZE: usize = 1 << 16;

/// A fuzz target: its name, which is that of its corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets.
pub const TARGETS: [Target; 7] =
    [("npy", npy), ("npz", npz), ("safetensors", safetensors), ("csv", csv), ("dlpack", dlpack), ("eval", eval), ("layout", layout)];

/// Sets the limit on host memory.
pub fn limit_memory() {
    cuprum::Device::CPU.set_memory_limit(Some(MEMORY_LIMIT)).unwrap();
}

/// Reads an npy file. An array that is read is written and read again.
pub fn npy(data: &[u8]) {
    if let Ok(array) = io::load_bytes(data) {
        check_round_trip(io::Format::Npy, "", &array);
    }
}

/// Reads an npz file.
pub fn npz(data: &[u8]) {
    for (name, array) in io::load_npz_bytes(data).into_iter().flatten() {
        check_round_trip(io::Format::Npz, &name, &array);
    }
}

/// Reads a safetensors file.
pub fn safetensors(data: &[u8]) {
    for (name, array) in io::load_safetensors_bytes(data).into_iter().flatten() {
        check_round_trip(io::Format::Safetensors, &name, &array);
    }
}

fn check_round_trip(format: io::Format, name: &str, array: &NdArray) {
    let mut bytes = Vec::new();
    io::write_stream(&mut bytes, format, &[(name, array)]).unwrap();
    let back = &io::read_stream(&mut bytes.as_slice()).unwrap()[0].1;
    assert_eq!((back.dtype(), back.shape()), (array.dtype(), array.shape()));
    assert_eq!(back.to_bytes().unwrap(), array.to_bytes().unwrap());
}

/// Reads a table whose first two bytes choose the options.
pub fn csv(data: &[u8]) {
    let [first, second, text @ ..] = data else { return };
    let mut options = io::TextOptions::default().dtype(DType::ALL[*first as usize % DType::ALL.len()]);
    if let Some(delimiter) = [b',', b'\t', b';', b' '].get(*second as usize % 5) {
        options = options.delimiter(*delimiter);
    }
    if first & 0x80 != 0 {
        options = options.detect_names();
    }
    if first & 0x40 != 0 {
        options = options.fill(1);
    }
    if second & 0x80 != 0 {
        options = options.usecols([-1, 0]).skip_footer(1);
    }
    if second & 0x40 != 0 {
        options = options.skip_rows(1).max_rows(3).ndmin(2);
    }
    if let Ok(table) = io::load_table_bytes(text, &options)
        && (1..=2).contains(&table.values.ndim())
        && table.values.size() > 0
    {
        // Written numbers read back as the same values.
        let mut bytes = Vec::new();
        io::write_stream(&mut bytes, io::Format::Tsv, &[("", &table.values)]).unwrap();
        let options = io::TextOptions::default().delimiter(b'\t').dtype(table.values.dtype());
        let back = io::load_table_bytes(&bytes, &options).unwrap().values;
        assert_eq!(io_text(&back), io_text(&table.values));
    }
}

/// Returns an array as text, in which NaNs are equal.
fn io_text(array: &NdArray) -> Vec<u8> {
    let mut bytes = Vec::new();
    io::write_stream(&mut bytes, io::Format::Csv, &[("", &array.ravel().unwrap())]).unwrap();
    bytes
}

/// Parses and evaluates a script, and shows its values.
pub fn eval(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut session = Session::new();
    session.on_print(|_| {});
    session.limit_size(MAX_SIZE);
    session.set("a", NdArray::from_vec([3.0f32, 4.0, 6.0, 8.0, -1.0, 0.5], [2, 3]).unwrap());
    session.set("n", NdArray::from_slice(&[1i64, 2, 3]).unwrap());
    match session.run(text) {
        Ok(Some(value)) => drop(cuprum::expressions::display(&value)),
        Ok(None) => {}
        Err(e) => drop(e.render()),
    }
}

/// Applies a chain of views to a layout. Every view stays inside the buffer, and has the elements that its definition names.
pub fn layout(data: &[u8]) {
    let mut bytes = data.iter().copied();
    let mut next = || bytes.next();
    let ndim = next().unwrap_or(0) as usize % 5;
    let shape: Vec<usize> = (0..ndim).map(|_| next().unwrap_or(1) as usize % 5).collect();
    let Ok(mut layout) = Layout::contiguous(&shape) else { return };
    let size = layout.size();
    // Huge and small numbers, both signs.
    let number = |byte: u8| match byte {
        0..=200 => byte as isize % 9 - 4,
        201..=220 => isize::MAX - (byte as isize - 201),
        221..=240 => isize::MIN + (byte as isize - 221),
        _ => 1 << (byte % 60),
    };
    while let Some(op) = next() {
        let mut argument = || number(next().unwrap_or(0));
        let view = match op % 8 {
            0 => Ok(layout.transpose()),
            1 => {
                let bound = |n: isize, used: bool| used.then_some(n);
                let (start, stop, step) = (argument(), argument(), argument());
                let range = Item::Range { start: bound(start, op & 8 != 0), stop: bound(stop, op & 16 != 0), step };
                let items = [range, Item::Ellipsis, Item::NewAxis, Item::At(argument())];
                let view = layout.index(&items[..op as usize / 32 % 5]);
                if let Ok(view) = &view
                    && op / 32 % 5 == 1
                {
                    check_range(&layout, view, bound(start, op & 8 != 0), bound(stop, op & 16 != 0), step);
                }
                view
            }
            2 => layout.permute(&[argument(), argument()]),
            3 => {
                let shape: Vec<usize> = (0..op / 8 % 4).map(|_| argument().unsigned_abs()).collect();
                layout.broadcast_to(&shape)
            }
            4 => layout.expand_dims(&[argument()]),
            5 => layout.squeeze(Some(&[argument()])),
            6 => layout.diagonal(argument(), argument(), argument()),
            _ => {
                let shape: Vec<usize> = (0..op / 8 % 4).map(|_| argument().unsigned_abs()).collect();
                let fits = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) == Some(layout.size());
                layout.reshape(&shape).filter(|_| fits).ok_or_else(|| cuprum::Error::value("reshape", "copies"))
            }
        };
        let Ok(view) = view else { continue };
        let (lo, hi) = view.extent();
        assert!(view.size() == 0 || 0 <= lo && lo <= hi && hi as usize <= size, "{view:?} leaves a buffer of {size}");
        layout = view;
    }
}

/// Checks a slice of the first axis against Python's definition, element by element.
fn check_range(layout: &Layout, view: &Layout, start: Option<isize>, stop: Option<isize>, step: isize) {
    let n = layout.shape()[0] as i128;
    let normal = |v: isize| if v < 0 { v as i128 + n } else { v as i128 };
    let step = step as i128;
    let (first, last) = if step > 0 {
        (start.map_or(0, normal).clamp(0, n), stop.map_or(n, normal).clamp(0, n))
    } else {
        (start.map_or(n - 1, normal).clamp(-1, n - 1), stop.map_or(-1, normal).clamp(-1, n - 1))
    };
    let wanted: Vec<i128> = (0..n).map(|i| first + i * step).take_while(|&i| if step > 0 { i < last } else { i > last }).collect();
    assert_eq!(view.shape()[0], wanted.len());
    if view.size() > 0 {
        for (i, &at) in wanted.iter().enumerate() {
            let got = view.offset() as i128 + i as i128 * view.strides()[0] as i128;
            assert_eq!(got, layout.offset() as i128 + at * layout.strides()[0] as i128);
        }
    }
}
