//! Loads an installed cuTENSOR library. Needs no GPU. Without the library, `CUPRUM_REQUIRE_GPU` decides whether the test fails.

use cuprum_backend_cuda::{driver, testing};
use cuprum_backend_cutensor::library;
use cuprum_backend_cutensor::sys::{self, Status};

/// Newest CUDA major version to look for. Usually the driver's version is the limit, but this test needs no driver.
const NEWEST_CUDA_MAJOR: u32 = 13;

#[test]
fn the_library_loads_and_has_a_version() {
    let library = match library::load(NEWEST_CUDA_MAJOR) {
        Ok(library) => library,
        Err(missing) => return testing::skip(1, missing),
    };
    println!("cuTENSOR {:?} for CUDA {:?} at {}", library.version, library.built_for, library.path.display());
    assert_eq!(library.version.0, 2);
    assert!((11..=NEWEST_CUDA_MAJOR as usize).contains(&library.built_for.0));
    assert!(library.computes.f32.is_some() && library.computes.f64.is_some());
    assert!(!sys::describe_status(&library.functions, Status::NOT_SUPPORTED).is_empty());
    if driver::probe_driver().is_err() {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the out-pointer is valid. Without a device the function returns an error.
        let status = unsafe { (library.functions.create)(&mut raw) };
        assert_eq!(status, Status::CUDA_ERROR, "{}", sys::describe_status(&library.functions, status));
    }
}
