//! Arrays assembled from nested lists of blocks: `block`.

use cuprum_core::function::FromArgs;
use cuprum_core::layout;
use cuprum_core::ops::python_value::{Args, Value};
use cuprum_core::{DType, Error, NdArray, Result, assemble_from_parts, numpy};

use crate::operand_and_slice_helpers::with_at_least_ndim;

/// An array, or a list of blocks to join, which may be nested (the argument `arrays` of `numpy.block`).
#[derive(Clone, Debug)]
pub enum Block {
    /// An array, which is not divided further.
    Array(NdArray),
    /// Blocks side by side. The innermost lists are joined along the last axis.
    List(Vec<Block>),
}

impl From<NdArray> for Block {
    fn from(array: NdArray) -> Block {
        Block::Array(array)
    }
}
impl From<&NdArray> for Block {
    fn from(array: &NdArray) -> Block {
        Block::Array(array.clone())
    }
}
impl<B: Into<Block>> From<Vec<B>> for Block {
    fn from(blocks: Vec<B>) -> Block {
        Block::List(blocks.into_iter().map(Into::into).collect())
    }
}
impl<B: Into<Block>, const N: usize> From<[B; N]> for Block {
    fn from(blocks: [B; N]) -> Block {
        Block::List(blocks.into_iter().map(Into::into).collect())
    }
}

/// Maximum nesting of blocks: the maximum number of axes.
const MAX_BLOCK_DEPTH: usize = layout::MAX_NDIM;

fn read_nested_blocks(op: &'static str, value: &Value, depth: usize) -> Result<Block> {
    match value {
        Value::List(_) if depth == MAX_BLOCK_DEPTH => Err(Error::value(op, format!("lists are nested more than {depth} deep"))),
        Value::List(items) => items.iter().map(|item| read_nested_blocks(op, item, depth + 1)).collect::<Result<_>>().map(Block::List),
        Value::Tuple(_) => Err(Error::value(op, "arrays is a tuple. Only lists can be used to arrange blocks")),
        value => value.array(op).map(Block::Array),
    }
}

impl FromArgs for Block {
    fn from_args(args: &Args, name: &str) -> Result<Block> {
        match args.value(name) {
            Some(value) => read_nested_blocks(args.op(), value, 0),
            None => Err(Error::value(args.op(), format!("argument '{name}' is missing"))),
        }
    }
}

impl Block {
    /// Returns the nesting depth of the lists, and the largest number of axes of an array. Lists of different depths are an error.
    fn depth_and_ndim(&self) -> Result<(usize, usize)> {
        let Block::List(blocks) = self else { return Ok((0, self.ndim())) };
        let mut found: Option<(usize, usize)> = None;
        for block in blocks {
            let (depth, ndim) = block.depth_and_ndim()?;
            match &mut found {
                None => found = Some((depth, ndim)),
                Some((first, largest)) if *first == depth => *largest = ndim.max(*largest),
                Some((first, _)) => {
                    let message =
                        format!("List depths are mismatched. First element was at depth {first}, but there is one at depth {depth}");
                    return Err(Error::value("block", message));
                }
            }
        }
        match found {
            Some((depth, _)) if depth >= MAX_BLOCK_DEPTH => Err(Error::value("block", "the lists are nested too deep")),
            Some((depth, ndim)) => Ok((depth + 1, ndim)),
            None => Err(Error::value("block", "List cannot be empty")),
        }
    }

    fn ndim(&self) -> usize {
        if let Block::Array(array) = self { array.ndim() } else { 0 }
    }

    /// Returns the promoted dtype of all arrays in the block. As in NumPy, the dtypes of an inner list are promoted first. The order
    /// matters, because promotion is not associative.
    fn dtype(&self) -> DType {
        match self {
            Block::Array(array) => array.dtype(),
            Block::List(blocks) => {
                let dtypes: Vec<DType> = blocks.iter().map(Block::dtype).collect();
                DType::promote_all(dtypes).unwrap_or(DType::F64)
            }
        }
    }

    /// Appends the arrays of this block with their positions to `parts`, and returns the shape of the block. `start` is the position of the
    /// block. `axis` is the axis along which the blocks of this list are joined.
    fn collect_arrays_with_positions(&self, axis: usize, start: &[usize], parts: &mut Vec<(NdArray, Vec<usize>)>) -> Result<Vec<usize>> {
        let blocks = match self {
            Block::Array(array) => {
                let array = with_at_least_ndim(array, start.len())?;
                let shape = array.shape().to_vec();
                parts.push((array, start.to_vec()));
                return Ok(shape);
            }
            Block::List(blocks) => blocks,
        };
        let (mut position, mut whole) = (start.to_vec(), None::<Vec<usize>>);
        for block in blocks {
            let shape = block.collect_arrays_with_positions(axis + 1, &position, parts)?;
            position[axis] += shape[axis];
            match &mut whole {
                None => whole = Some(shape),
                Some(whole) => {
                    let fits = (0..shape.len()).all(|n| n == axis || shape[n] == whole[n]);
                    if !fits {
                        let message = format!("Mismatched array shapes in block along axis {axis}.");
                        return Err(Error::shape("block", message, &[whole, &shape]));
                    }
                    whole[axis] += shape[axis];
                }
            }
        }
        whole.ok_or_else(|| Error::value("block", "List cannot be empty"))
    }
}

/// Returns an array that consists of nested blocks (`numpy.block`).
///
/// The innermost lists are joined along the last axis, the next ones along the axis before it. Arrays get leading axes of extent 1 until
/// all have the same number of axes.
///
/// Passes over memory: one.
///
/// # Errors
/// Empty lists, lists of different depths, extents that differ, or arrays on different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{DType, block, identity, ones, zeros};
/// # fn main() -> cuprum::Result<()> {
/// let rows = [[identity(2, DType::F64)?, zeros([2, 3], DType::F64)?], [ones([3, 2], DType::F64)?, identity(3, DType::F64)?]];
/// assert_eq!(block(rows)?.shape(), [5, 5]);
/// # Ok(())
/// # }
/// ```
#[numpy("block(arrays)")]
pub fn block(arrays: impl Into<Block>) -> Result<NdArray> {
    let arrays = arrays.into();
    let (depth, ndim) = arrays.depth_and_ndim()?;
    let ndim = depth.max(ndim);
    let mut parts = Vec::new();
    let shape = arrays.collect_arrays_with_positions(ndim - depth, &vec![0; ndim], &mut parts)?;
    let dtype = arrays.dtype();
    for (part, _) in &mut parts {
        *part = part.astype(dtype)?;
    }
    assemble_from_parts(&shape, &parts)
}
