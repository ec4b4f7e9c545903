//! Arrays of more than 2^31 elements.

use cuprum_core::{
    DType, Device, NdArray, Result, arange, axis, bincount, count_nonzero, flatnonzero, full, histogram, s, with_accelerators,
};

use crate::{on_device, served_array};

/// Returns whether the device has at least `count` GiB of memory. Prints a message if not.
fn has_gigabytes(count: usize) -> bool {
    let total = Device::current().and_then(|d| d.info()).map_or(0, |i| i.memory_total) >> 30;
    if total < count {
        println!("skipped: {count} GiB of memory are needed, and there are {total}");
    }
    total >= count
}

#[test]
fn more_than_two_to_the_31_elements() {
    on_device(|| {
        check_repeated_bytes(1 << 18)?;
        check_columns_of_ones(1 << 10)?;
        check_short_rows(1 << 20)?;
        if has_gigabytes(70) {
            check_repeated_bytes(1 << 31)?;
            check_columns_of_ones(1 << 26)?;
            check_short_rows(1 << 32)?;
        }
        Ok(())
    });
}

/// Checks each family on the repeated bytes 0 to 255, followed by 0, 1 and 2: `most + 3` elements.
fn check_repeated_bytes(most: i64) -> Result<()> {
    let (periods, n) = (most / 256, most + 3);
    let numbers = arange(0, n, 1)?;
    assert_eq!(served_array(|| numbers.greater(n - 3)?.argmax(()))?.to_vec::<i64>()?, [n - 2]);
    assert_eq!(served_array(|| numbers.max(()))?.to_vec::<i64>()?, [n - 1]);
    let bytes = numbers.astype(DType::U8)?.eval()?.clone();
    let shorts = numbers.astype(DType::I16)?.eval()?.clone();
    drop(numbers);
    let at = |a: &NdArray, i: i64| -> Result<Vec<u8>> { a.index(s![i as isize..i as isize + 1])?.to_bytes() };

    assert_eq!(served_array(|| bytes.sum(()))?.to_vec::<u64>()?, [periods as u64 * 32_640 + 3]);
    let odd = bytes.index(s![1..])?; // unaligned
    assert_eq!(served_array(|| odd.sum(()))?.to_vec::<u64>()?, [periods as u64 * 32_640 + 3]);
    let two = bytes.index(s![..-3])?.reshape([2, most as usize / 2])?;
    assert_eq!(served_array(|| two.sum(1))?.to_vec::<u64>()?, [periods as u64 / 2 * 32_640; 2]);
    assert_eq!(served_array(|| count_nonzero(&bytes.equal(2)?, ()))?.to_vec::<i64>()?, [periods + 1]);

    let running = served_array(|| bytes.cumsum(axis(0).dtype(DType::U8)))?;
    for i in [0, 255, (most) - 1, most, n - 1] {
        let want = (i / 256 * 32_640 + (i % 256) * (i % 256 + 1) / 2) as u8;
        assert_eq!(at(&running, i)?, [want], "{i}");
    }
    let alone = with_accelerators("", || Ok::<_, cuprum_core::Error>(bytes.cumsum(axis(0).dtype(DType::U8))?.eval()?.clone()))??;
    assert_eq!(count_nonzero(&running.not_equal(&alone)?, ())?.to_vec::<i64>()?, [0]);
    drop((running, alone));

    let mut counts = vec![periods; 256];
    counts[..3].iter_mut().for_each(|c| *c += 1);
    assert_eq!(served_array(|| bincount(&bytes, None, 256))?.to_vec::<i64>()?, counts);
    assert_eq!(served_array(|| Ok(histogram(&bytes, (256, 0.0, 256.0), None, false)?.0))?.to_vec::<i64>()?, counts);

    let indices = served_array(|| flatnonzero(&bytes.equal(2)?))?;
    assert_eq!(
        (indices.size() as i64, at(&indices, 0)?, at(&indices, periods)?),
        (periods + 1, 2i64.to_le_bytes().into(), (n - 1).to_le_bytes().into())
    );
    drop(indices);
    let chosen = served_array(|| bytes.extract(&bytes.less(3)?))?;
    assert_eq!((chosen.size() as i64, at(&chosen, 3 * periods + 1)?), (3 * periods + 3, vec![1]));
    drop(chosen);

    let sorted = served_array(|| bytes.sort(0))?;
    for (i, want) in [(periods, 0), (periods + 1, 1), (3 * periods + 2, 2), (3 * periods + 3, 3), (n - 1, 255)] {
        assert_eq!(at(&sorted, i)?, [want], "{i}");
    }
    drop(sorted);
    let order = served_array(|| bytes.argsort(0))?;
    for (i, want) in [(0, 0), (periods, most), (periods + 1, 1), (n - 1, (most) - 1)] {
        assert_eq!(at(&order, i)?, i64::to_le_bytes(want), "{i}");
    }
    drop((order, bytes));
    // int16 sorts take two passes. Each value occurs most / 65536 times, apart from the last three elements.
    let sorted = served_array(|| shorts.sort(0))?;
    for (i, want) in
        [(0, i16::MIN), (n / 2 - 2, -1), (most / 2, 0), (most / 2 + most / 65_536, 0), (most / 2 + most / 65_536 + 1, 1), (n - 1, i16::MAX)]
    {
        assert_eq!(at(&sorted, i)?, want.to_le_bytes(), "{i}");
    }
    Ok(())
}

/// Checks running sums along 33 columns of `most + 1` rows.
fn check_columns_of_ones(most: i64) -> Result<()> {
    let rows = most + 1;
    let ones = full([rows as usize, 33], 1, DType::U8)?;
    let running = served_array(|| ones.cumsum(axis(0).dtype(DType::U8)))?;
    let numbers = arange(1, rows + 1, 1)?.astype(DType::U8)?.reshape([rows as usize, 1])?;
    assert_eq!(count_nonzero(&running.not_equal(&numbers)?, ())?.to_vec::<i64>()?, [0]);
    Ok(())
}

/// Checks maxima of `rows` rows of two elements.
fn check_short_rows(rows: usize) -> Result<()> {
    let ones = full([rows, 2], 1, DType::U8)?;
    let maxima = served_array(|| ones.max(1))?;
    assert_eq!(served_array(|| count_nonzero(&maxima, ()))?.to_vec::<i64>()?, [rows as i64]);
    Ok(())
}
