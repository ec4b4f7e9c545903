//! Using the facade crate registers every enabled backend, in debug and release builds.

use cuprum::core::registry;

#[test]
fn the_facade_registers_every_backend_once() {
    let names: Vec<_> = registry::all_accelerators().iter().map(|a| (a.name, a.device, a.base.is_some())).collect();
    let mut expected = vec![];
    if cfg!(feature = "cub") {
        expected.push(("cub", "cuda", false));
    }
    if cfg!(feature = "cutensor") {
        expected.push(("cutensor", "cuda", false));
    }
    if cfg!(feature = "cpu") {
        expected.push(("cpu", "cpu", true));
    }
    if cfg!(feature = "cuda") {
        expected.push(("cuda", "cuda", true));
    }
    if cfg!(feature = "distributed") {
        expected.push(("mesh", "mesh", true));
    }
    let mut sorted = names.clone();
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    assert!(registry::all_accelerators().iter().all(|a| !a.kernels.is_empty()));
}

#[test]
fn registering_twice_has_no_effect() -> cuprum::Result<()> {
    let before = registry::all_accelerators().len();
    cuprum::register_all()?;
    assert_eq!(registry::all_accelerators().len(), before);
    Ok(())
}

#[test]
fn arrays_and_errors_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<cuprum::NdArray>();
    check::<cuprum::Error>();
}
