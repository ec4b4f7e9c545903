//! Errors of a program that links no backend, as with `default-features = false` of the facade.

use cuprum_core::{DType, Device, NdArray, add, zeros};

#[test]
fn errors_name_the_feature_to_enable() {
    let advice = "no backend for 'cpu' is linked; enable the feature `cpu` of cuprum";
    let a = NdArray::from_slice(&[1.0, 2.0]).unwrap(); // needs no kernel
    for error in [zeros(2, DType::F64).err(), add(&a, 1).unwrap().eval().err(), Device::CPU.synchronize().err()] {
        let text = error.unwrap().to_string();
        assert!(text.contains(advice), "{text}");
    }
    assert!(add(&a, 1).unwrap().eval().unwrap_err().to_string().starts_with("[add] "));
    let text = Device::parse("cuda").unwrap_err().to_string();
    assert!(text.contains("'cuda' is not a device; use auto, ") && text.contains("features of cuprum"), "{text}");
}
