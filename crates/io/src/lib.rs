//! Arrays in files: NumPy's `.npy` and `.npz`, safetensors, text tables, raw bytes, and images.
//!
//! [`read`] and [`write()`] choose the format by contents and extension; each format has functions with its own options.
//!
//! | format | read | without reading all | write |
//! |---|---|---|---|
//! | npy | [`load`] | [`load_mapped`] | [`save`] |
//! | npz | [`load_npz`] | [`Npz`] | [`save_npz`], [`save_npz_compressed`] |
//! | safetensors | [`load_safetensors`] | [`Safetensors`] | [`save_safetensors`] |
//! | csv, tsv, text | [`loadtxt`], [`genfromtxt`], [`load_table`] | | [`savetxt`] |
//! | raw bytes | [`fromfile`] | [`memmap`] | [`tofile`] |
//! | PNG, PPM | | | [`save_image`] |
//!
//! Readers check sizes against the limit on host memory before they allocate, and hold the elements in memory only once. Writers stream
//! their array in blocks, and a file appears under its name when it is complete.
#![deny(unsafe_code)]

mod array_bytes;
mod array_names;
mod atomic_file;
mod csv;
mod errors;
mod file_streams;
mod formats;
mod image;
mod mapped_file;
mod npy;
mod npz;
mod raw_binary_files;
mod safetensors;

#[doc(hidden)]
pub use array_names::{escape_control_characters, join_first_names};
pub use atomic_file::{remove_partial_files, write_file};
pub use csv::{Delimiter, TextFormat, TextOptions, TextTable, genfromtxt, load_table, load_table_bytes, loadtxt, savetxt};
pub use file_streams::{bytes_transferred, read_file};
pub use formats::{Format, read, read_named, read_stream, read_stream_as, write, write_named, write_stream};
pub use image::{ImageOptions, save_image};
pub use npy::{load, load_bytes, load_mapped, save};
pub use npz::{Npz, load_npz, load_npz_bytes, save_npz, save_npz_compressed, save_npz_with_texts};
pub use raw_binary_files::{fromfile, memmap, tofile};
pub use safetensors::{Safetensors, load_safetensors, load_safetensors_bytes, save_safetensors, save_safetensors_with};
