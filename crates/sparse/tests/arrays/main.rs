//! Sparse arrays: construction, files, and results compared with dense arrays and with SciPy.

mod composites;
mod hostile_files;
mod properties;
mod scipy;
mod structure;
