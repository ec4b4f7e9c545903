//! Files: opening, reading, writing and renaming fail in turn, for each format.

use std::io::ErrorKind;
use std::path::Path;

use cuprum::core::fault_injection::FailurePoint;
use cuprum::io::{self, ImageOptions, TextFormat, TextOptions};
use cuprum::{DType, Error, NdArray, Result};

use crate::{exclusive, fail_each};

/// A function that reads the arrays of a file.
type Reader = fn(&Path) -> Result<Vec<NdArray>>;

/// A format: the file's name, the function that writes two arrays or one, and the functions that read.
struct Format {
    file: &'static str,
    write: fn(&Path, &NdArray, &NdArray) -> Result<()>,
    read: &'static [Reader],
}

fn values(named: Vec<(String, NdArray)>) -> Vec<NdArray> {
    named.into_iter().map(|(_, array)| array).collect()
}

const FORMATS: &[Format] = &[
    Format {
        file: "a.npy",
        write: |path, a, _| io::save(path, a),
        read: &[|path| Ok(vec![io::load(path)?]), |path| Ok(vec![io::load_mapped(path)?]), |path| Ok(vec![io::read(path)?])],
    },
    Format {
        file: "a.npz",
        write: |path, a, b| io::save_npz(path, &[("a", a), ("b", b)]),
        read: &[|path| io::load_npz(path).map(values), |path| Ok(vec![io::Npz::open(path)?.map("b")?])],
    },
    Format {
        file: "compressed.npz",
        write: |path, a, b| io::save_npz_compressed(path, &[("a", a), ("b", b)]),
        read: &[|path| io::load_npz(path).map(values)],
    },
    Format {
        file: "a.safetensors",
        write: |path, a, b| io::save_safetensors(path, &[("a", a), ("b", b)]),
        read: &[|path| io::load_safetensors(path).map(values), |path| Ok(vec![io::Safetensors::open(path)?.read("b")?])],
    },
    Format {
        file: "a.csv",
        write: |path, a, _| io::savetxt(path, a, &TextFormat::default()),
        read: &[|path| Ok(vec![io::loadtxt(path, &TextOptions::default())?])],
    },
    Format { file: "a.bin", write: |path, a, _| io::tofile(path, a), read: &[|path| Ok(vec![io::fromfile(path, DType::F32, None, 0)?])] },
    Format { file: "a.png", write: |path, a, _| io::save_image(path, &a.astype(DType::U8)?, &ImageOptions::default()), read: &[] },
];

/// Returns the names and contents of the files in `folder`.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn arrays(seed: i64) -> (NdArray, NdArray) {
    let a = cuprum::arange(seed, seed + 30_000, 1).unwrap().astype(DType::F32).unwrap().reshape((150, 200)).unwrap();
    let b = cuprum::linspace(0.0, seed as f64, 1000).unwrap();
    (a.eval().unwrap().clone(), b.eval().unwrap().clone())
}

fn is_io_or_memory(point: FailurePoint, error: &Error) -> bool {
    match error {
        Error::Io { path, kind, message } => {
            let wanted = match point {
                FailurePoint::FileOpen | FailurePoint::Rename => ErrorKind::PermissionDenied,
                FailurePoint::FileWrite => ErrorKind::StorageFull,
                _ => ErrorKind::Other,
            };
            !path.is_empty() && !message.is_empty() && *kind == Some(wanted)
        }
        Error::OutOfMemory { .. } => point == FailurePoint::HostMemory,
        _ => false,
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let _exclusive = exclusive();
    for format in FORMATS {
        for point in [FailurePoint::FileOpen, FailurePoint::FileWrite, FailurePoint::Rename, FailurePoint::HostMemory] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format.file);
            let (old, new) = (arrays(5), arrays(70));
            (format.write)(&path, &new.0, &new.1).unwrap();
            let written = contents(folder.path());
            (format.write)(&path, &old.0, &old.1).unwrap();
            let before = contents(folder.path());
            assert!(before.len() == 1 && before != written, "{}", format.file);
            let program = || (format.write)(&path, &new.0, &new.1);
            let check = |result: &Result<()>, context: &str| match result {
                Ok(()) => {
                    assert!(contents(folder.path()) == written, "{context}: other contents");
                    (format.write)(&path, &old.0, &old.1).unwrap();
                }
                Err(_) => assert!(contents(folder.path()) == before, "{context}: the old file changed, or files are left"),
            };
            let count = fail_each(format.file, point, point == FailurePoint::HostMemory, program, |e| is_io_or_memory(point, e), check);
            assert!(count > 0 || point == FailurePoint::HostMemory, "{}: no operation of kind {point:?}", format.file);
        }
    }
}

#[test]
fn a_failed_read_is_an_error_and_the_file_stays_readable() {
    let _exclusive = exclusive();
    for format in FORMATS {
        for (k, read) in format.read.iter().enumerate() {
            for point in [FailurePoint::FileOpen, FailurePoint::FileRead, FailurePoint::HostMemory] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join(format.file);
                let (a, b) = arrays(9);
                (format.write)(&path, &a, &b).unwrap();
                let wanted = read(&path).unwrap();
                let program = || read(&path)?.into_iter().map(|array| array.eval().cloned()).collect::<Result<Vec<_>>>();
                let check = |result: &Result<Vec<NdArray>>, context: &str| {
                    let Ok(got) = result else { return };
                    assert_eq!(got.len(), wanted.len(), "{context}");
                    for (got, wanted) in got.iter().zip(&wanted) {
                        assert!(cuprum::array_equal(got, wanted, false).unwrap(), "{context}");
                    }
                };
                // Mapping falls back to reading, and reading to smaller buffers.
                let may_succeed = matches!(point, FailurePoint::HostMemory | FailurePoint::FileRead);
                let name = format!("{} by reader {k}", format.file);
                let count = fail_each(&name, point, may_succeed, program, |e| is_io_or_memory(point, e), check);
                assert!(count > 0 || point != FailurePoint::FileOpen, "{name}: no file is opened");
            }
        }
    }
}

#[test]
fn a_device_without_space_is_an_error() {
    let path = Path::new("/dev/full");
    if !path.exists() {
        return println!("skipped: no /dev/full");
    }
    let (a, b) = arrays(1);
    // The name of an image decides its format.
    for format in FORMATS.iter().filter(|format| !format.read.is_empty()) {
        let error = (format.write)(path, &a, &b).unwrap_err();
        assert!(matches!(error, Error::Io { kind: Some(ErrorKind::StorageFull), .. }), "{}: {error}", format.file);
    }
}
