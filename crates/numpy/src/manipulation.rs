//! Array manipulation routines.

mod append_insert_delete;
mod atleast_nd;
mod block;
mod broadcast;
mod flip_and_roll;
mod split;
mod stack;
mod tile_repeat_resize;
mod transpose;
mod trim_zeros;

pub use append_insert_delete::*;
pub use atleast_nd::*;
pub use block::*;
pub use broadcast::*;
pub use flip_and_roll::*;
pub use split::*;
pub use stack::*;
pub use tile_repeat_resize::*;
pub use transpose::*;
pub use trim_zeros::*;
