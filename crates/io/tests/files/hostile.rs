//! Damaged and hostile files: each is a prompt, clear error.

use std::io::Write;
use std::time::{Duration, Instant};

use cuprum_backend_cpu as _;
use cuprum_core::{DType, NdArray, Result};
use cuprum_io as io;

/// Returns the bytes of an npy file with a header of version 1.0.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// A member of a zip archive. The headers declare `declared` bytes, which may differ from the size of `data`.
struct Member<'a> {
    name: &'a str,
    data: &'a [u8],
    declared: u32,
}

/// Returns a zip archive with deflated members.
fn zip(members: &[Member]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for member in members {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(member.data).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(&member.data[..member.data.len().min(member.declared as usize)]);
        let offset = bytes.len() as u32;
        let mut common = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend(member.declared.to_le_bytes());
        common.extend((member.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(member.name.as_bytes());
        bytes.extend(packed);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(member.name.as_bytes());
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([members.len() as u16; 2].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

/// Returns the message of the error that `read` returns. Fails unless the error comes within a second.
fn message<T>(read: impl Fn() -> Result<T>) -> String {
    let start = Instant::now();
    let error = read().err().map(|e| e.to_string());
    // On a busy machine the fastest of several runs counts.
    let slow = (0..3).all(|_| {
        let again = Instant::now();
        let _ = read();
        again.elapsed() > Duration::from_secs(1)
    });
    assert!(start.elapsed() < Duration::from_secs(1) || !slow, "takes {:?}", start.elapsed());
    error.expect("an error")
}

#[test]
fn nested_npy_headers_fail_at_once() {
    for (open, count) in [("[", 24), ("{", 18), ("[", 4000), ("(", 4000)] {
        let header = format!("{{'descr': {}", open.repeat(count));
        let text = message(|| io::load_bytes(&npy(&header, &[])));
        assert!(text.contains("not supported") || text.contains("damaged npy header"), "{text}");
    }
}

#[test]
fn npy_headers_with_wrong_sizes_are_errors() {
    let header = |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    let huge = format!("({})", "9,".repeat(70));
    for (descr, shape, wanted) in [
        ("'<f8'", "(1000000000000,)", "truncated: 16 bytes of data for float64 (1000000000000,), 8000000000000 needed"),
        ("'<f8'", "(4294967296, 4294967296)", "too large"),
        ("'<f8'", "(0, 4294967296, 4294967296, 4294967296)", "too large"),
        ("'<f8'", huge.as_str(), "dimension"),
        ("'<f8'", "(-1,)", "negative extent"),
        ("'<f8'", "(02, 3)", "begins with a zero"),
        ("'bfloat16'", "(1,)", "not supported"),
        ("'<float64'", "(1,)", "not supported"),
        ("'<f8'", "2", "'2' at byte"),
        ("[('x', '<f8'), ('y', '|S3')]", "(1,)", "structured dtype [('x', '<f8'), ('y', '|S3')] is not supported"),
        ("'|O'", "(1,)", "pickles"),
        ("'<U3'", "(1,)", "(text)"),
        ("'<M8[ns]'", "(1,)", "(dates)"),
        ("'|V2'", "(1,)", "bfloat16"),
    ] {
        let text = message(|| io::load_bytes(&npy(&header(descr, shape), &[0; 16])));
        assert!(text.contains(wanted), "{descr} {shape}: {text}");
    }
    // NumPy's one-letter codes and names, and the Unicode strings of Python 2.
    for (descr, dtype) in [("'<d'", DType::F64), ("'b'", DType::I8), ("'<l'", DType::I64), ("'<Q'", DType::U64), ("'float64'", DType::F64)]
    {
        assert_eq!(io::load_bytes(&npy(&header(descr, "(1,)"), &[0; 8])).unwrap().dtype(), dtype, "{descr}");
    }
    assert!(io::load_bytes(&npy("{u'descr': u'<f8', u'fortran_order': False, u'shape': (1,)}", &[0; 8])).is_ok());
    let text = message(|| io::load_bytes(b"\x93NUMPY\x09\x00\x00\x00"));
    assert!(text.contains("version 9.0"), "{text}");
}

#[test]
fn archives_with_wrong_sizes_are_errors() {
    let whole = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }", &[1, 2, 3, 4]);
    let member = |data, declared| Member { name: "a.npy", data, declared };
    assert_eq!(io::load_npz_bytes(&zip(&[member(&whole, whole.len() as u32)])).unwrap()[0].1.to_vec::<u8>().unwrap(), [1, 2, 3, 4]);

    // A member that unpacks to 64 MiB although it declares 16 bytes.
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (67108864,), }";
    let bomb = npy(header, &vec![0; 64 << 20]);
    let before = cuprum_core::Device::CPU.memory_stats().unwrap().peak;
    let text = message(|| io::load_npz_bytes(&zip_once(&bomb, 16)));
    assert!(text.starts_with("npz bytes: a: "), "{text}");
    let text = message(|| io::load_npz_bytes(&zip_once(&bomb, 1 << 10)));
    assert!(text.contains("truncated"), "{text}");
    assert!(cuprum_core::Device::CPU.memory_stats().unwrap().peak - before < 1 << 20);

    // Additional bytes after a complete array: first beyond the declared size, then within it.
    let longer = [&whole[..], &[0; 1 << 20]].concat();
    for declared in [whole.len() as u32, longer.len() as u32] {
        let text = message(|| io::load_npz_bytes(&zip(&[member(&longer, declared)])));
        assert!(text.contains("npz bytes: a: damaged member"), "{text}");
    }
    let twice = zip(&[member(&whole, whole.len() as u32), member(&whole, whole.len() as u32)]);
    assert!(message(|| io::load_npz_bytes(&twice)).contains("two arrays have the name \"a\""));
    let mut shared = zip(&[member(&whole, whole.len() as u32), Member { name: "b.npy", ..member(&whole, whole.len() as u32) }]);
    let directory = shared.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    shared[directory + 42..directory + 46].copy_from_slice(&[0; 4]);
    assert!(message(|| io::load_npz_bytes(&shared)).contains("members overlap"));
    // A wrong checksum and damaged deflate data are invalid contents, without a kind of system error.
    for at in [14, 36] {
        let mut damaged = zip(&[member(&whole, whole.len() as u32)]);
        damaged[at] ^= 0xff;
        let directory = damaged.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        damaged[directory + 16] = damaged[14];
        assert!(matches!(io::load_npz_bytes(&damaged), Err(cuprum_core::Error::Io { kind: None, .. })), "{at}");
    }
    let mut fewer = twice.clone();
    let end = fewer.len() - 12;
    fewer[end..end + 2].copy_from_slice(&1u16.to_le_bytes());
    assert!(message(|| io::load_npz_bytes(&fewer)).contains("2 members"));
}

/// Returns a zip archive of `data` that declares `declared` bytes. `data` is compressed only in the first call.
fn zip_once(data: &[u8], declared: u32) -> Vec<u8> {
    use std::sync::OnceLock;
    static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
    let mut bytes = PACKED.get_or_init(|| zip(&[Member { name: "a.npy", data, declared: 0 }])).clone();
    // The declared size is in the local header, and in the directory behind the member.
    let directory = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    bytes[22..26].copy_from_slice(&declared.to_le_bytes());
    bytes[directory + 24..directory + 28].copy_from_slice(&declared.to_le_bytes());
    bytes
}

#[test]
fn inconsistent_safetensors_headers_are_errors() {
    let one =
        |dtype: &str, shape: &str, offsets: &str| format!(r#"{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#);
    let two = |b: &str| {
        format!(r#"{{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{b}}}}}"#)
    };
    for (header, wanted) in [
        (one("U8", "[4]", "[0,4]").as_str(), ""),
        (&one("U8", "[8]", "[0,8]"), "truncated: 4 bytes of data"),
        (&one("U8", "[4]", "[0,8]"), "a region of 8 bytes for uint8 (4,)"),
        (&one("U8", "[4]", "[0,3]"), "a region of 3 bytes for uint8 (4,)"),
        (&one("F64", "[4]", "[0,4]"), "a region of 4 bytes for float64"),
        (&one("U8", "[4]", "[4,0]"), "before its start"),
        (&one("U8", "[4]", "[-4,0]"), "damaged safetensors header"),
        (&one("U8", "[-4]", "[0,4]"), "damaged safetensors header"),
        (&one("U8", "[4]", "[0]"), "damaged safetensors header"),
        (&one("U8", "[4]", "[0,4,8]"), "damaged safetensors header"),
        (&one("U8", "[4294967296,4294967296]", "[0,4]"), "too large"),
        (&one("U8", "[4]", "[18446744073709551612,4]"), "too large"),
        (&one("U8", &format!("[{}1]", "1,".repeat(100)), "[0,4]"), "dimension"),
        (&one("F8_E4M3", "[4]", "[0,4]"), "a: dtype F8_E4M3 is not supported"),
        (&one("U8", "[2]", "[1,3]"), "1 unused bytes"),
        (&one("U8", "[2]", "[0,2]"), "2 bytes after the last array"),
        (&two("[1,3]"), "overlaps the one of \"a\""),
        (&two("[0,2]"), "overlaps"),
        (&two("[2,4]").replace("\"b\"", "\"a\""), "two arrays have the name \"a\""),
        (&two("[2,4]").replace("[2],\"data", "[2],\"shape\":[2],\"data"), "duplicate field"),
        (&format!("{}1{}", "[".repeat(5000), "]".repeat(5000)), "damaged safetensors header"),
        (&format!("{{\"a\":{}", "{\"a\":".repeat(5000)), "damaged safetensors header"),
        (&format!("{{\"__metadata__\":{}", "[".repeat(5000)), "damaged safetensors header"),
        ("[]", "damaged safetensors header"),
        ("", "damaged safetensors header"),
    ] {
        let bytes = safetensors(header, &[1, 2, 3, 4]);
        if wanted.is_empty() {
            assert_eq!(io::load_safetensors_bytes(&bytes).unwrap()[0].1.to_vec::<u8>().unwrap(), [1, 2, 3, 4]);
            continue;
        }
        let text = message(|| io::load_safetensors_bytes(&bytes));
        assert!(text.contains(wanted), "{}: {text}", &header[..header.len().min(100)]);
    }
    let text = message(|| io::load_safetensors_bytes(&u64::MAX.to_le_bytes()));
    assert!(text.contains("header of 18446744073709551615 bytes"), "{text}");
    let text = message(|| io::load_safetensors_bytes(&50u64.to_le_bytes()));
    assert!(text.contains("truncated safetensors file"), "{text}");
}

/// Tests that every proper prefix of a file is an error that names the fault, in each format that stores the length of its data.
#[test]
fn files_that_end_early_are_errors_at_every_byte() {
    let a = NdArray::from_vec([1.5f64, -2.0, 3.0, 0.25, 5.0, 6.0], [2, 3]).unwrap();
    let b = NdArray::from_slice(&[true, false, true]).unwrap();
    let mut files = Vec::new();
    for format in [io::Format::Npy, io::Format::Npz, io::Format::Safetensors] {
        let mut bytes = Vec::new();
        let arrays = [("a", &a), ("b", &b)];
        io::write_stream(&mut bytes, format, &arrays[..1 + format.has_names() as usize]).unwrap();
        files.push((format, bytes));
    }
    let folder = tempfile::tempdir().unwrap();
    let npz = folder.path().join("deflated.npz");
    io::save_npz_compressed(&npz, &[("a", &a), ("b", &b)]).unwrap();
    files.push((io::Format::Npz, std::fs::read(npz).unwrap()));
    for (format, bytes) in files {
        let path = folder.path().join("cut");
        for len in 0..bytes.len() {
            let cut = &bytes[..len];
            let from_bytes = match format {
                io::Format::Npy => io::load_bytes(cut).map(drop),
                io::Format::Npz => io::load_npz_bytes(cut).map(drop),
                _ => io::load_safetensors_bytes(cut).map(drop),
            };
            std::fs::write(&path, cut).unwrap();
            let from_file = match format {
                io::Format::Npy => io::load(&path).and(io::load_mapped(&path)).map(drop),
                io::Format::Npz => io::load_npz(&path).map(drop),
                _ => io::load_safetensors(&path).map(drop),
            };
            for result in [from_bytes, from_file] {
                let text = result.expect_err(&format!("{format:?} of {len} bytes")).to_string();
                assert!(
                    ["truncated", "ends within", "not an", "damaged"].iter().any(|word| text.contains(word)),
                    "{format:?} {len}: {text}"
                );
            }
        }
    }
}

#[test]
fn tables_that_are_wrong_name_line_and_column() {
    let options = || io::TextOptions::default().delimiter(b',');
    for (text, options, wanted) in [
        ("1,2\n3,x\n", options(), "line 2, column 2: 'x' is not a valid float64"),
        ("# c\n\n1,2\n3\n", options(), "line 4: 1 columns, 2 expected"),
        ("1,2\n3,4,5\n", options(), "line 2: more than 2 columns, 2 expected"),
        ("1,\n", options(), "line 1, column 2: '' is a missing value"),
        ("1,300\n", options().dtype(DType::U8), "line 1, column 2: '300' is out of range for uint8"),
        ("1,2.5\n", options().dtype(DType::I64), "line 1, column 2: '2.5' is not a valid int64"),
        ("1,\"2\n", options(), "line 1, column 2: a quote without end"),
        ("1,\"2\"x\n", options(), "line 1, column 2: text after the closing quote"),
        ("1,2\n", options().usecols([2]), "usecols 2 is out of bounds for a table of 2 columns"),
        ("x\n", options().comments(["x\n"]), "'x\\n' cannot begin a comment, since it contains a line end"),
        ("x,y\n1,2\n", options().columns(["z"]), "no column \"z\"; the table has: x, y"),
        ("\u{feff}1,2\n3,z\n", options(), "line 2, column 2: 'z'"),
        ("x,y\n1,2\n", options(), "line 1, column 1: 'x' is not a valid float64; the first row may be column names"),
    ] {
        let text = message(|| io::load_table_bytes(text.as_bytes(), &options));
        assert!(text.contains(wanted), "{text}");
    }
    assert!(message(|| io::load_table_bytes(b"\xff\xfe1\0", &options())).contains("UTF-16"));
    // The line number is correct although several threads parse the blocks before it.
    let mut long = "1.5,2.5\n".repeat(400_000);
    long.push_str("1.5,oops\n");
    assert!(message(|| io::load_table_bytes(long.as_bytes(), &options())).contains("line 400001, column 2: 'oops'"));
}
