//! The functions that the fuzz targets run. `tests/hostile_input.rs` of the workspace runs them over the corpora and mutations of them.
//!
//! A function never panics on any input, takes less than a second, and stays within [`MEMORY_LIMIT`]. The functions compare results with
//! slow references, with other readers of the same file, or with the input after a round trip.
#![allow(clippy::unwrap_used)]

mod bytes;
mod csv;
mod dlpack;
mod eval;
mod files;
mod layout;
mod npy;
mod npz;
mod parse;
mod safetensors;
mod tensor;

pub use csv::csv;
pub use dlpack::dlpack;
pub use eval::eval;
pub use layout::layout;
pub use npy::npy;
pub use npz::npz;
pub use parse::parse;
pub use safetensors::safetensors;

/// Limit on host memory while targets run, in bytes.
pub const MEMORY_LIMIT: usize = 32 << 20;

/// A fuzz target: its name, which is also the name of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All fuzz targets.
pub const TARGETS: [Target; 8] = [
    ("npy", npy),
    ("npz", npz),
    ("safetensors", safetensors),
    ("csv", csv),
    ("dlpack", dlpack),
    ("parse", parse),
    ("eval", eval),
    ("layout", layout),
];

/// Sets the limit on host memory.
pub fn limit_memory() {
    cuprum::Device::CPU.set_memory_limit(Some(MEMORY_LIMIT)).unwrap();
}
