//! Layout work shared by all backends: which axes merge, which way memory is best walked, what shape a reduction has.
//! Pure arithmetic on shapes and strides; no memory, no devices.

pub mod contract;
pub mod elementwise;
pub mod reduce;
pub mod rows;
pub mod scan;
pub mod sort;
