//! Removal of leading and trailing zeros: `trim_zeros`.

use cuprum_core::{Axes, Error, Item, NdArray, Result, argwhere, numpy};

/// Returns the array without leading (`f`) and trailing (`b`) zeros along axes, by default all (`numpy.trim_zeros`). Returns a view.
///
/// Passes over memory: one, which finds the elements that are not zero. The call waits for the device.
///
/// # Errors
/// Other letters in `trim`, or an axis out of bounds.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # mod cuprum { pub use {cuprum_core::*, cuprum_numpy::*}; }
/// use cuprum::{array, trim_zeros};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(trim_zeros(&array![0, 1, 0, 2, 0], "fb", ())?, array![1, 0, 2]);
/// # Ok(())
/// # }
/// ```
#[numpy("trim_zeros(filt, trim='fb', axis=None)")]
pub fn trim_zeros(filt: &NdArray, trim: &str, #[name("axis")] axes: impl Into<Axes>) -> Result<NdArray> {
    let name = "trim_zeros";
    let (front, back) = match trim.to_lowercase().as_str() {
        "fb" | "bf" => (true, true),
        "f" => (true, false),
        "b" => (false, true),
        _ => return Err(Error::value(name, format!("unexpected character(s) in `trim`: '{trim}'"))),
    };
    let axes = axes.into().resolve(name, filt.ndim())?;
    if axes.is_empty() {
        return Ok(filt.clone());
    }
    let nonzero = argwhere(filt)?;
    let mut items = vec![Item::slice(None, None, 1); filt.ndim()];
    if nonzero.size() == 0 {
        for axis in axes {
            items[axis] = Item::slice(0, 0, 1);
        }
        return filt.index(&items);
    }
    let (first, last) = (nonzero.min(0)?.to_vec::<i64>()?, nonzero.max(0)?.to_vec::<i64>()?);
    for axis in axes {
        items[axis] = Item::slice(front.then_some(first[axis] as isize), back.then_some(last[axis] as isize + 1), 1);
    }
    filt.index(&items)
}
