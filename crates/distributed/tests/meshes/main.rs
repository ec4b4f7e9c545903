//! Sharded arrays on meshes of one process.

mod placements;
mod same_numbers;
mod transforms;
