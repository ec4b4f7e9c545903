//! Binary operations: bits packed into bytes, and numbers in other bases.

use cuprum_core::function::FromArgs;
use cuprum_core::layout::normalize_axis;
use cuprum_core::ops::python_value::Args;
use cuprum_core::{DType, Error, NdArray, Result, axis as along, bitwise_and, left_shift, not_equal, numpy, right_shift, with_device};

use crate::operand_and_slice_helpers::{new_filled_array, slice_axis};
use cuprum_core::concat;

/// The order of the bits within a byte (`bitorder=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOrder {
    /// The first of eight elements is the most significant bit.
    Big,
    /// The first of eight elements is the least significant bit.
    Little,
}

impl FromArgs for BitOrder {
    fn from_args(args: &Args, name: &str) -> Result<BitOrder> {
        match String::from_args(args, name)?.as_str() {
            "big" => Ok(BitOrder::Big),
            "little" => Ok(BitOrder::Little),
            _ => Err(Error::value(args.op(), "'bitorder' must be 'little' or 'big'")),
        }
    }
}

impl BitOrder {
    /// Returns a uint8 array of eight shifts on the device of `a`. Shift `i` moves bit `i` of a byte, counted in this bit order, to the
    /// lowest bit.
    fn bit_shifts(self, a: &NdArray) -> Result<NdArray> {
        let shifts: [u8; 8] = match self {
            BitOrder::Big => [7, 6, 5, 4, 3, 2, 1, 0],
            BitOrder::Little => [0, 1, 2, 3, 4, 5, 6, 7],
        };
        with_device(a.device(), || NdArray::from_slice(&shifts))
    }
}

/// Returns the array with `axis` moved to the end, and `axis` as a number that is not negative. Without an axis, returns the flattened
/// array and 0.
fn move_axis_last(name: &'static str, a: &NdArray, axis: Option<isize>) -> Result<(NdArray, isize)> {
    match axis {
        None => Ok((a.ravel()?, 0)),
        // As in NumPy, a 0-d array counts as an array with one axis of extent 1.
        Some(axis) if a.ndim() == 0 => move_axis_last(name, &a.ravel()?, Some(axis)),
        Some(axis) => {
            let axis = normalize_axis(name, axis, a.ndim())? as isize;
            Ok((a.moveaxis(axis, -1)?, axis))
        }
    }
}

/// Packs elements as bits into uint8, along an axis or, without an axis, from the flattened array (`numpy.packbits`). Elements other
/// than 0 give a set bit. The unused bits of the last byte are 0.
///
/// Passes over memory: two.
///
/// # Errors
/// Elements that are not bool or integers, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{BitOrder, NdArray, packbits};
/// # fn main() -> cuprum::Result<()> {
/// let bits = NdArray::from_slice(&[true, false, true, true])?;
/// assert_eq!(packbits(&bits, None, BitOrder::Big)?.to_vec::<u8>()?, [0b1011_0000]);
/// # Ok(())
/// # }
/// ```
#[numpy("packbits(a, /, axis=None, bitorder='big')")]
pub fn packbits(a: &NdArray, #[read(Option<isize>)] axis: impl Into<Option<isize>>, bitorder: BitOrder) -> Result<NdArray> {
    let name = "packbits";
    if a.dtype().is_inexact() {
        return Err(Error::dtype(name, "expected an input array of integer or boolean data type", &[a.dtype()]));
    }
    let (rows, axis) = move_axis_last(name, a, axis.into())?;
    let last = rows.ndim() - 1;
    let mut shape: Vec<isize> = rows.shape().iter().map(|&n| n as isize).collect();
    let count = rows.shape()[last];
    let bytes = count.div_ceil(8);
    let mut missing = rows.shape().to_vec();
    missing[last] = 8 * bytes - count;
    let bits = not_equal(&rows, 0)?.astype(DType::U8)?;
    let bits = if missing[last] > 0 { concat([&bits, &new_filled_array(a, &missing, 0, DType::U8)?], last as isize)? } else { bits };
    shape[last] = bytes as isize;
    shape.push(8);
    let weighted = left_shift(bits.reshape(&shape[..])?, bitorder.bit_shifts(a)?)?;
    weighted.sum(along(-1).dtype(DType::U8))?.moveaxis(-1, axis)?.contiguous()
}

/// Returns the bits of uint8 elements, along an axis or, without an axis, of the flattened array (`numpy.unpackbits`). The result is uint8.
///
/// `count` limits the bits along the axis. A negative `count` drops that many bits at the end. A `count` above the number of bits appends
/// zeros.
///
/// Passes over memory: one.
///
/// # Errors
/// Elements that are not uint8, an axis out of bounds, or a negative count that leaves out more bits than there are.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{BitOrder, NdArray, unpackbits};
/// # fn main() -> cuprum::Result<()> {
/// let bytes = NdArray::from_slice(&[0b1011_0000u8])?;
/// assert_eq!(unpackbits(&bytes, None, Some(4), BitOrder::Big)?.to_vec::<u8>()?, [1, 0, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[numpy("unpackbits(a, /, axis=None, count=None, bitorder='big')")]
pub fn unpackbits(
    a: &NdArray,
    #[read(Option<isize>)] axis: impl Into<Option<isize>>,
    #[read(Option<isize>)] count: impl Into<Option<isize>>,
    bitorder: BitOrder,
) -> Result<NdArray> {
    let name = "unpackbits";
    if a.dtype() != DType::U8 {
        return Err(Error::dtype(name, "expected an input array of unsigned byte data type", &[a.dtype()]));
    }
    let (rows, axis) = move_axis_last(name, a, axis.into())?;
    let last = rows.ndim() - 1;
    let mut shape: Vec<isize> = rows.shape().iter().map(|&n| n as isize).collect();
    let bits = bitwise_and(right_shift(rows.expand_dims(-1)?, bitorder.bit_shifts(a)?)?, 1)?;
    shape[last] *= 8;
    let all = bits.reshape(&shape[..])?;
    let total = shape[last];
    let cut = match count.into() {
        None => all,
        Some(count) if count < -total => return Err(Error::value(name, format!("count {count} leaves out more than all {total} bits"))),
        Some(count) if count < 0 => slice_axis(&all, last, 0, total + count, 1)?,
        Some(count) if count <= total => slice_axis(&all, last, 0, count, 1)?,
        Some(count) => {
            let mut missing = all.shape().to_vec();
            missing[last] = (count - total) as usize;
            concat([&all, &new_filled_array(a, &missing, 0, DType::U8)?], last as isize)?
        }
    };
    cut.moveaxis(-1, axis)?.contiguous()
}

/// Returns an int in a base from 2 to 36 (`numpy.base_repr`), with `padding` zeros on the left.
///
/// # Errors
/// A base outside 2 to 36, or more than 65,536 zeros of padding.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// assert_eq!(cuprum::base_repr(-255, 16, 1)?, "-0FF");
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("base_repr(number, base=2, padding=0)")]
pub fn base_repr(number: impl Into<i128>, base: i64, padding: usize) -> Result<String> {
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let number = number.into();
    let radix = match base {
        2..=36 => base as u128,
        37.. => return Err(Error::value("base_repr", "bases greater than 36 are not handled")),
        _ => return Err(Error::value("base_repr", "bases less than 2 are not handled")),
    };
    if padding > MAX_WIDTH_OR_PADDING {
        return Err(Error::value("base_repr", format!("{padding} zeros are too many (at most {MAX_WIDTH_OR_PADDING})")));
    }
    let mut text = Vec::new();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        text.push(digits[(rest % radix) as usize]);
        rest /= radix;
    }
    text.extend(std::iter::repeat_n(b'0', padding));
    if number == 0 && padding == 0 {
        text.push(b'0');
    }
    if number < 0 {
        text.push(b'-');
    }
    Ok(text.iter().rev().map(|&byte| byte as char).collect())
}

/// Maximum `padding` of [`base_repr`] and maximum `width` of [`binary_repr`].
const MAX_WIDTH_OR_PADDING: usize = 1 << 16;

/// Returns the binary digits of an int (`numpy.binary_repr`). With a width, negative numbers are in two's complement.
///
/// # Errors
/// A width that is too small for the number, or above 65,536.
///
/// # Examples
/// ```
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// assert_eq!(cuprum::binary_repr(-3, Some(5))?, "11101");
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("binary_repr(num, width=None)")]
pub fn binary_repr(num: impl Into<i128>, width: Option<usize>) -> Result<String> {
    let (name, num) = ("binary_repr", num.into());
    if width.is_some_and(|width| width > MAX_WIDTH_OR_PADDING) {
        return Err(Error::value(name, format!("a width above {MAX_WIDTH_OR_PADDING} is too large")));
    }
    let too_small = |needed: u32| Error::value(name, format!("insufficient bit width for {num}: {needed} bits are needed"));
    if num >= 0 {
        // As in NumPy's `binary_repr`, the number 0 fits every width.
        let needed = 128 - num.leading_zeros();
        return match width {
            Some(width) if width < needed as usize => Err(too_small(needed)),
            // The width is not a format parameter, because the formatter of Rust takes widths up to 65,535 only.
            width => {
                let digits = format!("{num:b}");
                Ok(format!("{}{digits}", "0".repeat(width.unwrap_or(0).saturating_sub(digits.len()))))
            }
        };
    }
    let needed = 129 - num.leading_ones();
    match width {
        None => Ok(format!("-{:b}", num.unsigned_abs())),
        Some(width) if width < needed as usize => Err(too_small(needed)),
        Some(width) if width <= 128 => Ok(format!("{:b}", num as u128 & (u128::MAX >> (128 - width)))),
        Some(width) => Ok(format!("{}{:b}", "1".repeat(width - 128), num as u128)),
    }
}
