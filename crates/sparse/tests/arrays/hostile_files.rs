//! Malformed Matrix Market and npz files are errors, before any allocation of their declared sizes.

use cuprum_backend_cpu as _;
use cuprum_core::{DType, NdArray, array, zeros};
use cuprum_sparse::{load_npz, parse_matrix_market};

#[track_caller]
fn assert_refused(text: &str, part: &str) {
    let Err(error) = parse_matrix_market(text.as_bytes()) else { panic!("accepted: {text:?}") };
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn malformed_matrix_market_files() {
    let file = |rest: &str| format!("%%MatrixMarket matrix coordinate real general\n{rest}");
    assert_refused("", "empty");
    assert_refused("1 1 1\n", "not a Matrix Market file");
    assert_refused("%%MatrixMarket vector coordinate real general\n", "names no matrix");
    assert_refused("%%MatrixMarket matrix dense real general\n", "the format must be");
    assert_refused("%%MatrixMarket matrix coordinate text general\n", "the values must be");
    assert_refused("%%MatrixMarket matrix coordinate real odd\n", "the symmetry must be");
    assert_refused("%%MatrixMarket matrix array pattern general\n1 1\n", "exclude each other");
    assert_refused(&file(""), "the line of sizes is missing");
    assert_refused(&file("2 2\n"), "wrong number of items");
    assert_refused(&file("2 2 1 1\n"), "wrong number of items");
    assert_refused(&file("-2 2 1\n1 1 1\n"), "numbers of rows and columns");
    assert_refused(&file("2 2 1\n3 1 1\n"), "line 3: indices from 1 to 2");
    assert_refused(&file("2 2 1\n0 1 1\n"), "indices from 1 to 2");
    assert_refused(&file("2 2 1\n1 1 x\n"), "not a number");
    assert_refused(&file("2 2 1\n1 1 1 1\n"), "more items");
    assert_refused(&file("2 2 2\n1 1 1\n\n%\n%      \n"), "ends before all 2 elements");
    assert_refused(&file("2 2 1\n1 1 1\n2 2 1\n"), "more elements than the declared 1");
    assert_refused(&file("99999999999999999999 2 1\n1 1 1\n"), "numbers of rows and columns");
    assert_refused(&file("18446744073709551615 2 1\n1 1 1\n"), "too large");
    // Sizes that no file of this length can have are refused before memory is allocated for them.
    assert_refused(&file("4 4 4611686018427387904\n1 1 1\n"), "too short");
    assert_refused(&file("4000000000 4000000000 1000000000000\n1 1 1\n"), "too short");
    assert_refused("%%MatrixMarket matrix array real general\n4000000000 4000000000\n1\n", "too short");
    assert_refused("%%MatrixMarket matrix array real general\n4294967296 4294967296\n1\n", "too short");
    assert_refused("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "no elements on the diagonal");
    assert_refused("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", "square");
    assert_refused("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 99999999999999999999\n", "not a number");
}

#[test]
fn unusual_but_valid_matrix_market_files() {
    let read = |text: &str| cuprum_sparse::Sparse::to_dense(&parse_matrix_market(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(read("%%matrixmarket MATRIX Coordinate Real General\n% c\n\n 1  2\t1 \r\n 1 2 1e2"), array![[0.0, 100.0]]);
    assert_eq!(read("%%MatrixMarket matrix array real general\n2 2\n1\n2\n0\n4\n"), array![[1.0, 0.0], [2.0, 4.0]]);
    assert_eq!(read("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n4\n"), array![[1.0, 2.0], [2.0, 4.0]]);
    assert_eq!(read("%%MatrixMarket matrix array real skew-symmetric\n2 2\n2\n"), array![[0.0, -2.0], [2.0, 0.0]]);
    assert_eq!(read("%%MatrixMarket matrix coordinate pattern general\n1 2 2\n1 1\n1 1\n"), array![[2.0, 0.0]]);
    assert_eq!(read("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 -7\n"), array![[-7i64]]);
    assert_eq!(read("%%MatrixMarket matrix array integer hermitian\n2 2\n1\n2\n4\n"), array![[1i64, 2], [2, 4]]);
    assert_eq!(read("%%MatrixMarket matrix coordinate real general\n0 3 0\n").shape(), [0, 3]);
    // The time to read does not depend on a number of columns without rows.
    assert_eq!(read("%%MatrixMarket matrix array real general\n0 100000000000000000\n").shape(), [0, 100_000_000_000_000_000]);
}

#[test]
fn random_changes_of_a_file_never_panic() {
    let text = include_bytes!("../goldens/hermitian.mtx");
    let mut state = 1u64;
    for _ in 0..4000 {
        let mut bytes = text.to_vec();
        for _ in 0..3 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (state >> 33) as usize % bytes.len().max(1);
            match state >> 30 & 7 {
                0..4 if !bytes.is_empty() => bytes[at] = b"0123456789 -.%\n\0"[(state >> 50) as usize % 16],
                4 | 5 if !bytes.is_empty() => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        let _ = parse_matrix_market(&bytes);
    }
}

#[test]
fn malformed_npz_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let assert_refused = |arrays: &[(&str, &NdArray)], texts: &[(&str, &str)], part: &str| {
        cuprum_io::save_npz_with_texts(&path, arrays, texts, false).unwrap();
        let Err(error) = load_npz(&path) else { panic!("accepted; expected '{part}'") };
        assert!(error.to_string().contains(part), "{error}");
    };
    let (data, indices, indptr, shape) = (array![1.0], array![0], array![0, 1], array![1i64, 1]);
    let csr = [("format", "csr")];
    let assert_parts_refused = |indices: &NdArray, indptr: &NdArray, shape: &NdArray, part: &str| {
        assert_refused(&[("data", &data), ("indices", indices), ("indptr", indptr), ("shape", shape)], &csr, part);
    };
    assert_refused(&[("data", &data)], &[], "no array is named 'format'");
    assert_refused(&[("data", &data)], &csr, "no array \"shape\"");
    assert_refused(&[("data", &data), ("shape", &shape)], &[("format", "lil")], "format 'lil' is unknown");
    assert_parts_refused(&indices, &indptr, &array![1.0, 1.0], "must be two integers");
    assert_parts_refused(&indices, &indptr, &array![1i64, 1, 1], "must be two integers");
    assert_parts_refused(&indices, &indptr, &array![-1i64, 1], "negative extent");
    assert_parts_refused(&array![5], &indptr, &shape, "index 5 is out of bounds");
    assert_parts_refused(&indices, &array![0, 9], &shape, "must end with the number of elements");
    assert_parts_refused(&indices, &indptr, &array![i64::MAX, 1], "indptr has 2 elements");
    assert_refused(&[("data", &data), ("shape", &shape)], &csr, "no array \"indices\"");
    let square = zeros([2, 2], DType::F64).unwrap();
    assert_refused(&[("data", &square), ("offsets", &array![0, 0]), ("shape", &shape)], &[("format", "dia")], "repeated");
    assert_refused(&[("data", &data), ("coords", &array![0]), ("shape", &shape)], &[("format", "coo")], "'coords' must be (2, n)");
    std::fs::write(&path, b"PK\x05\x06 not an archive").unwrap();
    assert!(load_npz(&path).is_err());
    let valid = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/csr.npz")).unwrap();
    for at in (0..valid.len()).step_by(7) {
        let mut bytes = valid.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&path, &bytes).unwrap();
        let _ = load_npz(&path);
    }
}
