use cuprum_core::{Complex, DType, NdArray, arange_as, array, bf16, f16, flip, testing::Tolerance, testing::compare, zeros};

use crate::on_host;

/// Returns one array of each dtype, and arrays of unusual shapes and layouts.
fn arrays() -> Vec<NdArray> {
    let mut arrays: Vec<NdArray> = DType::ALL.iter().map(|&dtype| arange_as(0, 6, 1, DType::I64).unwrap().astype(dtype).unwrap()).collect();
    arrays.push(flip(&array![[1, 2, 3], [4, 5, 6]].t().unwrap(), None).unwrap());
    arrays.extend([zeros((), DType::F32).unwrap(), zeros([3, 0, 2], DType::I8).unwrap(), zeros([1; 64], DType::Bool).unwrap()]);
    arrays.push(array![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.5]);
    arrays.push(array![Complex::new(f32::NAN, 1.5), Complex::new(0.1, f32::NEG_INFINITY)]);
    arrays.push(array![f16::from_f32(0.1), f16::MAX, f16::INFINITY]);
    arrays.push(array![bf16::from_f32(0.1), bf16::MAX]);
    arrays.push(array![0.1f32, f32::MIN_POSITIVE, f32::MAX]);
    arrays.push(array![[i64::MIN, i64::MAX], [0, -1]]);
    arrays.push(array![u64::MAX, 1]);
    arrays
}

#[test]
fn arrays_survive_both_kinds_of_formats() {
    on_host(|| {
        for a in arrays() {
            let text = serde_json::to_string(&a).unwrap();
            let back: NdArray = serde_json::from_str(&text).unwrap();
            compare(&back, &a, Tolerance::EXACT).unwrap_or_else(|e| panic!("{text}: {e}"));
            // A `serde_json::Value` orders the fields by name.
            let back: NdArray = serde_json::from_value(serde_json::to_value(&a).unwrap()).unwrap();
            compare(&back, &a, Tolerance::EXACT).unwrap_or_else(|e| panic!("{text}: {e}"));
            let bytes = postcard::to_allocvec(&a).unwrap();
            assert!(bytes.len() <= a.nbytes() + 90, "{} bytes for {} of {}", bytes.len(), a.nbytes(), a.dtype());
            let back: NdArray = postcard::from_bytes(&bytes).unwrap();
            compare(&back, &a, Tolerance::EXACT).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
        Ok(())
    });
}

#[test]
fn numbers_are_readable() {
    on_host(|| {
        let text = serde_json::to_string(&array![[0.1f32, f32::NAN]]).unwrap();
        assert_eq!(text, r#"{"dtype":"float32","shape":[1,2],"values":[0.1,"nan"]}"#);
        assert_eq!(
            serde_json::to_string(&array![Complex::new(1.0, -2.5)]).unwrap(),
            r#"{"dtype":"complex128","shape":[1],"values":[[1.0,-2.5]]}"#
        );
        assert_eq!(serde_json::to_string(&DType::BF16).unwrap(), r#""bfloat16""#);
        Ok(())
    });
}

#[test]
fn wrong_text_is_an_error() {
    on_host(|| {
        let error = |text: &str| serde_json::from_str::<NdArray>(text).map(|a| format!("{a:?}")).unwrap_err().to_string();
        for (text, want) in [
            (r#"{}"#, "missing field `values`"),
            (r#"{"dtype":"float8","shape":[1],"values":[1]}"#, "unknown dtype 'float8'"),
            (r#"{"dtype":"int8","shape":[2],"values":[1]}"#, "invalid length 1, expected 2 values of int8"),
            (r#"{"dtype":"int8","shape":[2],"values":[1,2,3]}"#, "invalid length 3, expected 2 values of int8"),
            (r#"{"dtype":"int8","shape":[],"values":[]}"#, "invalid length 0, expected 1 values"),
            (r#"{"dtype":"int8","shape":[1],"values":[200]}"#, "integer `200`, expected a int8"),
            (r#"{"dtype":"uint8","shape":[1],"values":[-1]}"#, "integer `-1`"),
            (r#"{"dtype":"int8","shape":[1],"values":[1.5]}"#, "floating point `1.5`, expected a int8"),
            (r#"{"dtype":"int8","shape":[1],"values":["nan"]}"#, "string \"nan\""),
            (r#"{"dtype":"float32","shape":[1],"values":["x"]}"#, "string \"x\""),
            (r#"{"dtype":"float32","shape":[1],"values":[true]}"#, "boolean `true`"),
            (r#"{"dtype":"bool","shape":[1],"values":[1]}"#, "expected true or false"),
            (r#"{"dtype":"float32","shape":[1],"values":[[1,2]]}"#, "sequence"),
            (r#"{"dtype":"complex64","shape":[1],"values":[[1]]}"#, "invalid length 1, expected the two parts"),
            (r#"{"dtype":"complex64","shape":[1],"values":[[1,[2]]]}"#, "sequence"),
            (r#"{"dtype":"complex64","shape":[1],"values":[1]}"#, "expected the two parts"),
            (r#"{"dtype":"int8","shape":[1],"values":[null]}"#, "null"),
            (r#"{"dtype":"int8","shape":[-1],"values":[]}"#, "-1"),
            (r#"{"dtype":"int8","shape":[18446744073709551615,18446744073709551615],"values":[]}"#, "array is too large"),
            (r#"{"dtype":"int8","shape":[4611686018427387904,0,4611686018427387904],"values":[]}"#, "array is too large"),
            (r#"{"dtype":"float64","shape":[500000000000000000],"values":[1,2]}"#, "invalid length 2"),
            (r#"{"values":[1],"dtype":"int8","shape":[1]}"#, "must follow"),
            (r#"{"dtype":"int8","dtype":"int8","shape":[1],"values":[1]}"#, "duplicate field `dtype`"),
            (r#"{"dtype":"int8","shape":[1],"values":[1],"values":[1]}"#, "duplicate field `values`"),
            (r#"{"dtype":"int8","shape":[1],"order":"F"}"#, "unknown field `order`"),
            (r#"["int8",[1]]"#, "invalid length 2"),
            (r#"[1]"#, "invalid type"),
        ] {
            let got = error(text);
            assert!(got.contains(want), "{text}: {got}");
        }
        let deep = format!(r#"{{"dtype":"int8","shape":[{}],"values":[1]}}"#, ["1"; 65].join(","));
        assert!(error(&deep).contains("a list of at most 64 extents"));
        Ok(())
    });
}

#[test]
fn damaged_bytes_are_errors() {
    on_host(|| {
        let whole = postcard::to_allocvec(&array![[1.5f32, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
        for end in 0..whole.len() {
            assert!(postcard::from_bytes::<NdArray>(&whole[..end]).is_err(), "{end} bytes");
        }
        // A changed byte gives an error, or an array with as many bytes as its dtype and shape need.
        for (at, value) in (0..whole.len()).flat_map(|at| [0u8, 1, 0x7f, 0x80, 0xff].map(|v| (at, v))) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            if let Ok(a) = postcard::from_bytes::<NdArray>(&bytes) {
                assert_eq!(a.to_bytes().unwrap().len(), a.nbytes());
            }
        }
        Ok(())
    });
}
