//! Properties that the targets of several file formats share.

use std::path::Path;

use cuprum::{NdArray, io};

use super::tensor::check_same;

/// Calls `read` with the path of a file that contains `data`. The file is removed afterwards.
pub fn with_file(target: &str, data: &[u8], read: impl FnOnce(&Path)) {
    /// Removes the file, also while a panic unwinds.
    struct Removed(std::path::PathBuf);
    impl Drop for Removed {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).ok();
        }
    }
    let path = std::env::temp_dir().join(format!("cuprum-fuzz-{}.{target}", std::process::id()));
    let file = Removed(path);
    std::fs::write(&file.0, data).unwrap();
    read(&file.0);
}

/// Panics unless `array` is the same after it is written in `format` and read.
pub fn check_round_trip(format: io::Format, name: &str, array: &NdArray) {
    let mut bytes = Vec::new();
    io::write_stream(&mut bytes, format, &[(name, array)]).unwrap();
    let back = &io::read_stream(&mut bytes.as_slice()).unwrap()[0];
    assert_eq!(back.0, name);
    check_same(&back.1, array);
}

/// The arrays of a file with their names, or `None` if it is refused.
pub type Arrays = Option<Vec<(String, NdArray)>>;

/// Panics unless the readers return the same arrays, or both refuse the file.
pub fn check_readers(left: &Arrays, right: &Arrays) {
    let names = |arrays: &Arrays| arrays.as_ref().map(|all| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    assert_eq!(names(left), names(right), "readers disagree");
    for ((_, left), (_, right)) in left.iter().flatten().zip(right.iter().flatten()) {
        check_same(left, right);
    }
}
