//! Counts of elements beyond the integers of float32.

use cuprum_backend_cpu as _;
use cuprum_core::{DType, Result, ones, s};
use cuprum_numpy::nanmean;

#[test]
fn means_of_many_numbers_count_exactly() -> Result<()> {
    let mut a = ones((1 << 24) + 6, DType::F32)?;
    a.assign(s![3], f64::NAN)?;
    let mean = nanmean(&a, ())?;
    assert_eq!((mean.dtype(), mean.item_as::<f64>()?), (DType::F32, 1.0));
    Ok(())
}
