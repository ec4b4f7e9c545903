//! The fuzz target of npz files: any bytes, or a zip archive with checksums and with faults that the bytes choose.

use cuprum::io;

use super::bytes::Bytes;
use super::files::{Arrays, check_readers, check_round_trip, with_file};
use super::npy::NpyFile;
use super::tensor::Tensor;

const STORE: u16 = 0;
const DEFLATE: u16 = 8;

/// Reads an npz file from memory, member by member, and by mapping it, with equal results. Arrays that are read are written and read
/// again. Input that begins like no zip archive describes one.
pub fn npz(data: &[u8]) {
    if data.starts_with(b"PK") {
        check_file(data);
        return;
    }
    let (file, expected) = described_archive(&mut Bytes::new(data));
    match (expected, check_file(&file)) {
        (Expected::Arrays(wanted), Some(found)) => {
            let names = |(name, _): &(String, _)| name.clone();
            assert_eq!(found.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), wanted.iter().map(names).collect::<Vec<_>>());
            found.iter().zip(&wanted).for_each(|((_, array), (_, tensor))| tensor.check(array));
        }
        (Expected::Error, Some(found)) => panic!("{} arrays from a damaged archive: {}", found.len(), file.escape_ascii()),
        (Expected::Arrays(_), None) => panic!("a valid archive is refused: {}", file.escape_ascii()),
        (Expected::Error, None) | (Expected::Either, _) => {}
    }
}

/// Reads a file in all ways, and returns its arrays.
fn check_file(data: &[u8]) -> Arrays {
    let read: Arrays = io::load_npz_bytes(data).ok();
    with_file("npz", data, |path| {
        let file = io::Npz::open(path);
        let names: Vec<String> = file.iter().flat_map(io::Npz::names).map(String::from).collect();
        let all = |read: &dyn Fn(&io::Npz, &str) -> cuprum::Result<cuprum::NdArray>| {
            let file = file.as_ref().ok()?;
            names.iter().map(|name| Some((name.clone(), read(file, name).ok()?))).collect()
        };
        check_readers(&read, &all(&io::Npz::read));
        // The checksum of a mapped member is not verified, so that it may be read where `read` fails.
        let mapped = all(&io::Npz::map);
        if read.is_some() {
            check_readers(&read, &mapped);
        }
    });
    for (name, array) in read.iter().flatten() {
        check_round_trip(io::Format::Npz, name, array);
    }
    read
}

/// The result of reading an archive.
enum Expected {
    Arrays(Vec<(String, Tensor)>),
    Error,
    /// Arrays or an error.
    Either,
}

/// Appends the little-endian bytes of integers.
macro_rules! append {
    ($out:expr, $($value:expr),*) => {{ $($out.extend($value.to_le_bytes());)* }};
}

/// Returns a zip archive of up to three members.
fn described_archive(bytes: &mut Bytes) -> (Vec<u8>, Expected) {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    let mut arrays: Vec<(String, Tensor)> = Vec::new();
    let (mut is_damaged, mut is_unsure) = (false, false);
    let members = bytes.below(4) as u16;
    for _ in 0..members {
        let stem = bytes.choose(&["a", "b", "c", "", "a/b", "\u{e9}", "../x"]);
        let is_array = bytes.rarely(true, &[false]);
        let name = if is_array { format!("{stem}.npy") } else { format!("{stem}.txt") };
        let contents = NpyFile::described(bytes);
        let repeated = arrays.iter().any(|(other, _)| other == stem);
        let method = {
            let usual = bytes.choose(&[STORE, DEFLATE]);
            bytes.rarely(usual, &[1, 9, 12, u16::MAX])
        };
        let mut data = match method {
            DEFLATE => deflated(&contents.bytes, bytes.below(200) + 1),
            _ => contents.bytes.clone(),
        };
        let flags = bytes.rarely(0u16, &[1, 8, 0x800, 0x2000]);
        let crc = crc32(&contents.bytes) ^ bytes.rarely(0, &[1, u32::MAX]);
        let size = (contents.bytes.len() as u32).wrapping_add_signed(bytes.rarely(0, &[1, -1, 1 << 20]));
        let stored_size = (data.len() as u32).wrapping_add_signed(bytes.rarely(0, &[1, -1, 1 << 20]));
        if bytes.rarely(false, &[true]) {
            // Any bytes as the compressed data.
            let len = usize::from(bytes.next());
            let random = bytes.take(len);
            let len = random.len().min(data.len());
            data[..len].copy_from_slice(&random[..len]);
            is_unsure = true;
        }
        is_unsure |= flags > 1 || stored_size != data.len() as u32;
        let is_faulty = ![STORE, DEFLATE].contains(&method)
            || flags == 1
            || crc != crc32(&contents.bytes)
            || size != contents.bytes.len() as u32
            || contents.expected.is_none()
            || contents.has_rest;
        is_damaged |= is_array && (is_faulty || repeated);
        let offset = file.len() as u32 + bytes.rarely(0, &[1, 1 << 30]);
        is_unsure |= offset != file.len() as u32;
        append!(file, 0x0403_4b50u32, 20u16, flags, method, 0u32, crc, stored_size, size, name.len() as u16, 0u16);
        file.extend(name.as_bytes());
        file.extend(data);
        append!(directory, 0x0201_4b50u32, 20u16, 20u16, flags, method, 0u32, crc, stored_size, size, name.len() as u16);
        append!(directory, 0u16, 0u16, 0u16, 0u16, 0u32, offset);
        directory.extend(name.as_bytes());
        if is_array && let Some(tensor) = contents.expected {
            arrays.push((stem.to_string(), tensor));
        }
    }
    let start = file.len() as u32 + bytes.rarely(0, &[1, u32::MAX / 2]);
    let size = directory.len() as u32 + bytes.rarely(0, &[1, u32::MAX / 2]);
    is_unsure |= start != file.len() as u32 || size != directory.len() as u32;
    let count = members.wrapping_add_signed(bytes.rarely(0, &[1, -1]));
    is_damaged |= count != members;
    file.extend(directory);
    append!(file, 0x0605_4b50u32, 0u16, 0u16, count, count, size, start);
    let len = bytes.below(20);
    let comment = bytes.take(len);
    is_unsure |= comment.contains(&b'P');
    append!(file, comment.len() as u16);
    file.extend(comment);
    let expected = match (is_unsure, is_damaged) {
        (true, _) => Expected::Either,
        (false, true) => Expected::Error,
        (false, false) => Expected::Arrays(arrays),
    };
    (file, expected)
}

/// Returns a deflate stream of stored blocks, each of at most `block` bytes.
fn deflated(data: &[u8], block: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut blocks = data.chunks(block).peekable();
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        append!(out, block.len() as u16, !(block.len() as u16));
        out.extend(block);
    }
    out
}

/// Returns the CRC-32 of zip archives.
fn crc32(data: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !data.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}
