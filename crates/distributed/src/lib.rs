//! Arrays that are sharded over several devices: one array type, one program, and the same functions as on one device.
//!
//! A [`Mesh`] is a grid of ranks, each with a device. A mesh is itself a device of kind `mesh`, so that an array on a mesh is an ordinary
//! [`NdArray`](cuprum_core::NdArray). A [`Placement`] per mesh axis states how the ranks hold the array. The trait [`ShardedArray`] adds
//! the methods `shard`, `reshard`, `placements` and `local_shards`.
//!
//! `docs/distributed.md` lists the rule of each family of operations, its communication, and the operations that gather their inputs.
//!
//! # Examples
//! ```
//! # use cuprum_backend_cpu as _;
//! # mod cuprum { pub use cuprum_core::*; pub mod distributed { pub use cuprum_distributed::*; } }
//! use cuprum::distributed::{Mesh, Placement::Shard, ShardedArray};
//! use cuprum::{DType, arange, axis, exp};
//! # fn main() -> cuprum::Result<()> {
//! let mesh = Mesh::loopback(4)?;
//! let a = arange(0, 4096, 1)?.astype(DType::F32)?.reshape([64, 64])?.shard(&mesh, [Shard(0)])?;
//! let e = exp(&a / 4096.0)?;
//! let softmax = &e / e.sum(axis(-1).keepdims())?; // no communication
//! assert_eq!(softmax.placements(), Some(vec![Shard(0)]));
//! assert!((softmax.sum(())?.item()?.as_f64() - 64.0).abs() < 1e-4); // one all-gather of the blocks' sums
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod axis_blocks;
mod engines;
mod kernels;
mod launched_mesh;
mod mesh;
mod mesh_driver;
mod piece_assembly;
mod piece_exchange;
mod placement;
mod processes;
mod rank_calls;
mod redistribute;
mod sharded_buffer;
mod sharded_views;
mod sharding_methods;

pub use kernels::MESH;
pub use mesh::Mesh;
pub use placement::{PartialOp, Placement};
pub use sharding_methods::ShardedArray;

/// Registers the device kind of meshes, for programs whose linker drops `inventory` submissions, as it can do with static libraries. A
/// second call has no effect.
///
/// # Errors
/// Returns an error if another accelerator has the same name.
pub fn register() -> cuprum_core::Result<()> {
    cuprum_core::register(&MESH)
}
