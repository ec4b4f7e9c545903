//! The fuzz target of npy files: any bytes, or a valid file with faults that the bytes choose.

use cuprum::{DType, io};

use super::bytes::Bytes;
use super::files::{check_round_trip, with_file};
use super::tensor::{Tensor, check_same};

/// The dtypes of the format, without their byte order.
const DTYPES: [(DType, &str); 14] = [
    (DType::Bool, "b1"),
    (DType::I8, "i1"),
    (DType::I16, "i2"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::U8, "u1"),
    (DType::U16, "u2"),
    (DType::U32, "u4"),
    (DType::U64, "u8"),
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
    (DType::C64, "c8"),
    (DType::C128, "c16"),
];

/// Reads an npy file from memory, from a file and by mapping the file, with equal results. An array that is read is written and read
/// again. Input that begins like no npy file describes one.
pub fn npy(data: &[u8]) {
    if data.first() == Some(&0x93) {
        check_file(data);
        return;
    }
    let file = NpyFile::described(&mut Bytes::new(data));
    let read = check_file(&file.bytes);
    match (file.expected, read) {
        (Some(expected), Some(array)) => expected.check(&array),
        (Some(_), None) => panic!("a valid file is refused: {}", file.bytes.escape_ascii()),
        (None, Some(array)) => panic!("an array of {} {:?} from {}", array.dtype(), array.shape(), file.bytes.escape_ascii()),
        (None, None) => {}
    }
}

/// Reads a file in all ways, and returns its array.
fn check_file(data: &[u8]) -> Option<cuprum::NdArray> {
    let read = io::load_bytes(data).ok();
    with_file("npy", data, |path| {
        for other in [io::load(path), io::load_mapped(path)] {
            match (&read, other) {
                (Some(array), Ok(other)) => check_same(array, &other),
                (None, Err(_)) => {}
                (_, other) => panic!("readers disagree: {:?}", other.map(|array| array.shape().to_vec())),
            }
        }
    });
    if let Some(array) = &read {
        check_round_trip(io::Format::Npy, "", array);
    }
    read
}

/// A file with the array that it has to be read as, or `None` for an error.
pub struct NpyFile {
    pub bytes: Vec<u8>,
    pub expected: Option<Tensor>,
    /// Whether bytes follow the array, which NumPy and cuprum ignore at the end of a file.
    pub has_rest: bool,
}

impl NpyFile {
    /// Returns the file that `bytes` describe. Most are valid.
    pub fn described(bytes: &mut Bytes) -> NpyFile {
        let tensor = Tensor::described(bytes, &DTYPES.map(|(dtype, _)| dtype));
        let code = DTYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype).unwrap().1;
        let order = bytes.choose(&["<", ">", "!", "=", "|", ""]);
        let big_endian = [">", "!"].contains(&order) || cfg!(target_endian = "big") && ["=", ""].contains(&order);
        let fortran = bytes.below(2) == 1;
        let quote = bytes.choose(&["'", "\""]);
        let blank = bytes.choose(&["", " ", "\t", "  "]);
        let suffix = bytes.choose(&["", "L"]);
        let extents: Vec<String> = tensor.shape.iter().map(|n| format!("{n}{suffix}")).collect();
        let comma = if extents.len() == 1 || extents.len() > 1 && bytes.below(2) == 1 { "," } else { "" };
        let entry = |key: &str, value: &str| format!("{quote}{key}{quote}{blank}:{blank}{value}");
        let mut entries = vec![
            entry("descr", &format!("{quote}{order}{code}{quote}")),
            entry("fortran_order", if fortran { "True" } else { "False" }),
            entry("shape", &format!("({}{comma})", extents.join(&format!(",{blank}")))),
        ];
        let at = bytes.below(3);
        entries.swap(0, at);
        let fault = bytes.rarely(0, &[1, 2, 3]);
        match fault {
            0 => {}
            1 => drop(entries.pop()),
            2 => entries.push(entries[0].clone()),
            _ => entries.push(entry("other", "1")),
        }
        let mut is_valid = fault == 0;
        let end = bytes.choose(&["", ",", ", "]);
        let tail = bytes.rarely("\n", &["", "   \n", "x", "\0"]);
        let text = format!("{{{}{end}}}{tail}", entries.join(&format!(",{blank}")));
        is_valid &= !["x", "\0"].contains(&tail);
        let version = bytes.choose(&[1, 2, 3]);
        let (major, minor) = (bytes.rarely(version, &[0, 4, 255]), bytes.rarely(0, &[1]));
        is_valid &= major == version && minor == 0;
        let len = text.len() as i64 + bytes.rarely(0, &[-1 - tail.len() as i64 - end.len() as i64, 1, 20_000]);
        is_valid &= len == text.len() as i64;
        let mut file = [&b"\x93NUMPY"[..], &[major, minor]].concat();
        match version {
            1 => file.extend((len as u16).to_le_bytes()),
            _ => file.extend((len as u32).to_le_bytes()),
        }
        file.extend(text.as_bytes());
        file.extend(tensor.encoded(big_endian, fortran));
        let change = bytes.rarely(0, &[1, -1, -8]);
        let has_rest = change == 1 && is_valid;
        match change {
            0 => {}
            1 if has_rest => file.push(7),
            1 => {}
            less => {
                is_valid &= tensor.elements.is_empty();
                let start = file.len() - tensor.elements.len();
                file.truncate(file.len().saturating_add_signed(less).max(start));
            }
        }
        NpyFile { bytes: file, expected: is_valid.then_some(tensor), has_rest }
    }
}
