//! The fuzz target of safetensors files: any bytes, a header as text, or a file with faults that the bytes choose.

use cuprum::{DType, io};

use super::bytes::Bytes;
use super::files::{Arrays, check_readers, check_round_trip, with_file};
use super::tensor::Tensor;

/// The dtypes of the format that cuprum has.
const DTYPES: [(DType, &str); 14] = [
    (DType::Bool, "BOOL"),
    (DType::I8, "I8"),
    (DType::I16, "I16"),
    (DType::I32, "I32"),
    (DType::I64, "I64"),
    (DType::U8, "U8"),
    (DType::U16, "U16"),
    (DType::U32, "U32"),
    (DType::U64, "U64"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::F32, "F32"),
    (DType::F64, "F64"),
    (DType::C64, "C64"),
];

/// Reads a safetensors file from memory and by mapping it, with equal results. Arrays that are read are written and read again.
///
/// Input that begins with `{` is a header, whose length is computed, and data after a zero byte. A first byte of zero describes a file.
pub fn safetensors(data: &[u8]) {
    match data {
        [b'{', ..] if data.get(8) != Some(&b'{') => {
            let len = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
            let elements = data.get(len + 1..).unwrap_or_default();
            check_file(&[&(len as u64).to_le_bytes(), &data[..len], elements].concat());
        }
        [0, description @ ..] => {
            let (file, expected) = described_file(&mut Bytes::new(description));
            match (expected, check_file(&file)) {
                (Some(wanted), Some(found)) => {
                    assert_eq!(found.len(), wanted.len());
                    for ((name, array), (wanted, tensor)) in found.iter().zip(&wanted) {
                        assert_eq!(name, wanted);
                        tensor.check(array);
                    }
                }
                (Some(_), None) => panic!("a valid file is refused: {}", file.escape_ascii()),
                (None, Some(_)) => panic!("a damaged file is read: {}", file.escape_ascii()),
                (None, None) => {}
            }
        }
        _ => drop(check_file(data)),
    }
}

/// Reads a file in all ways, and returns its arrays.
fn check_file(data: &[u8]) -> Arrays {
    let read: Arrays = io::load_safetensors_bytes(data).ok();
    with_file("safetensors", data, |path| check_readers(&read, &io::load_safetensors(path).ok()));
    for (name, array) in read.iter().flatten() {
        check_round_trip(io::Format::Safetensors, name, array);
    }
    read
}

/// Returns a file, with the arrays that it has to be read as, or `None` for an error.
fn described_file(bytes: &mut Bytes) -> (Vec<u8>, Option<Vec<(String, Tensor)>>) {
    const NAMES: [(&str, &str); 5] = [("a", "a"), ("b.weight", "b.weight"), ("\u{e9}", "\\u00e9"), ("\"", "\\\""), ("", "")];
    let mut tensors = Vec::new();
    let mut entries = Vec::new();
    let mut data = Vec::new();
    let mut is_valid = true;
    for at in 0..bytes.below(5) {
        let tensor = Tensor::described(bytes, &DTYPES.map(|(dtype, _)| dtype));
        let (name, text) = NAMES[bytes.rarely(at, &[0])];
        is_valid &= !tensors.iter().any(|(other, _)| other == name);
        let code = DTYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype).unwrap().1;
        let code = bytes.rarely(code, &["F8_E4M3", "f32", ""]);
        is_valid &= DTYPES.iter().any(|(_, known)| *known == code);
        // A gap or an overlap between regions, or a region of another size.
        let (start, end) = (data.len() as i64, (data.len() + tensor.elements.len()) as i64);
        let (mut from, mut to) = (start + bytes.rarely(0, &[1, -1]), end + bytes.rarely(0, &[1, -1, i64::MAX / 2]));
        if tensor.elements.is_empty() {
            (from, to) = (start, end); // An empty region may begin anywhere between two others.
        }
        is_valid &= (from, to) == (start, end);
        let mut shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
        if let fault @ ("-1" | "18446744073709551616" | "1.0") = bytes.rarely("", &["-1", "18446744073709551616", "1.0"]) {
            shape.push(fault.into());
            is_valid = false;
        }
        let blank = bytes.choose(&["", " ", "\n"]);
        let mut fields = [
            format!("\"dtype\":{blank}\"{code}\""),
            format!("\"shape\":{blank}[{}]", shape.join(",")),
            format!("\"data_offsets\":{blank}[{from},{to}]"),
        ];
        fields.swap(0, bytes.below(3));
        entries.push(format!("{blank}\"{text}\":{{{}}}", fields.join(",")));
        data.extend(tensor.encoded(false, false));
        tensors.push((name.to_string(), tensor));
    }
    if bytes.below(4) == 1 {
        entries.insert(bytes.below(entries.len() + 1), "\"__metadata__\":{\"a\":\"1\"}".into());
    }
    let pad = " ".repeat(bytes.below(9));
    let text = format!("{{{}}}{pad}", entries.join(","));
    let len = text.len() as i64 + bytes.rarely(0, &[1, -1 - pad.len() as i64, 1 << 40]);
    is_valid &= len == text.len() as i64;
    match bytes.rarely(0, &[1, -1]) {
        1 if is_valid => {
            data.push(0);
            is_valid = false;
        }
        -1 => is_valid &= data.pop().is_none(),
        _ => {}
    }
    let file = [&(len as u64).to_le_bytes(), text.as_bytes(), &data].concat();
    (file, is_valid.then_some(tensors))
}
