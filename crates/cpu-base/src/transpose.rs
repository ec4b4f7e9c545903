//! Transposing copies in square blocks of whole cache lines. With AVX2 a block is transposed in registers.
#![allow(unsafe_code)]

use crate::cache_hints::{CACHE_LINE_BYTES, NonTemporalStores, prefetch_cache_line};

/// Side of a square block, in elements. A row of 4-byte elements is one cache line.
pub const TRANSPOSE_BLOCK_SIDE: usize = 16;
/// Number of target rows per group of blocks. A group reads neighbouring cache lines of a source row soon after each other, because the
/// hardware fetches cache lines in pairs.
const TARGET_ROWS_PER_GROUP: usize = 4 * TRANSPOSE_BLOCK_SIDE;
/// Number of rows of the staging buffer of large copies. With [`STAGING_LINES_PER_ROW`] cache lines per row, and padding that keeps rows
/// out of the same cache sets, the buffer takes 24 KiB for elements of 4 bytes.
const STAGING_ROWS: usize = 8 * TRANSPOSE_BLOCK_SIDE;
/// Number of cache lines per row of the staging buffer. A row always has at least [`TRANSPOSE_BLOCK_SIDE`] elements, even if these cache
/// lines hold fewer.
const STAGING_LINES_PER_ROW: usize = 2;
/// Prefetch distance, in blocks of [`TRANSPOSE_BLOCK_SIDE`] source rows. The loop prefetches in software, because the hardware prefetcher
/// does not recognise a stride as long as a matrix row.
const PREFETCH_DISTANCE_IN_BLOCKS: usize = 2;

/// A matrix in memory. The elements of each row are contiguous.
#[derive(Clone, Copy)]
pub struct ContiguousRowLayout {
    /// Index of the matrix's first element in its slice.
    pub start: usize,
    /// Distance between the starts of consecutive rows, in elements; may be negative.
    pub stride: isize,
}

/// Writes `target[i, j] = source[j, i]` for `height` rows and `width` columns of the target. Returns `false` without writing if rows of
/// `source` or `target` are outside their slice.
#[must_use]
pub fn try_transpose<T: Copy>(
    source: &[T],
    from: ContiguousRowLayout,
    target: &mut [T],
    to: ContiguousRowLayout,
    height: usize,
    width: usize,
) -> bool {
    if height == 0 || width == 0 {
        return true;
    }
    if !are_rows_inside_slice(source.len(), from, width, height) || !are_rows_inside_slice(target.len(), to, height, width) {
        return false;
    }
    let s = source.as_ptr().wrapping_add(from.start);
    let t = target.as_mut_ptr().wrapping_add(to.start);
    let area = TransposeArea { height, width, group: TARGET_ROWS_PER_GROUP, columns_left: width };
    // SAFETY: `are_rows_inside_slice` has checked that all rows of source and target are inside their slices, which do not overlap.
    unsafe { transpose_area(s, from.stride, t, to.stride, area) };
    true
}

/// Like [`try_transpose`], for a target larger than the caches. Blocks are transposed into a staging buffer in the first-level cache, and
/// copied from there with non-temporal stores. Direct writes to rows that are a power of two apart would compete for the same cache sets.
/// Small matrices and targets whose rows do not start at cache lines are copied by [`try_transpose`].
#[must_use]
pub fn try_transpose_non_temporal<T: Copy>(
    source: &[T],
    from: ContiguousRowLayout,
    target: &mut [T],
    to: ContiguousRowLayout,
    height: usize,
    width: usize,
) -> bool {
    let start = target.as_mut_ptr().wrapping_add(to.start);
    let whole_lines =
        start.addr().is_multiple_of(CACHE_LINE_BYTES) && (to.stride.unsigned_abs() * size_of::<T>()).is_multiple_of(CACHE_LINE_BYTES);
    if !whole_lines || height < STAGING_ROWS || width < TRANSPOSE_BLOCK_SIDE {
        return try_transpose(source, from, target, to, height, width);
    }
    if !are_rows_inside_slice(source.len(), from, width, height) || !are_rows_inside_slice(target.len(), to, height, width) {
        return false;
    }
    let across = (STAGING_LINES_PER_ROW * CACHE_LINE_BYTES / size_of::<T>()).max(TRANSPOSE_BLOCK_SIDE);
    let pitch = across + TRANSPOSE_BLOCK_SIDE;
    let mut stage = vec![source[from.start]; STAGING_ROWS * pitch];
    let stores = NonTemporalStores::default();
    let lefts = |group: usize| (0..width).step_by(across).map(move |left| (group, left));
    for (group, left) in (0..height).step_by(STAGING_ROWS).flat_map(lefts) {
        let (rows, columns) = (STAGING_ROWS.min(height - group), across.min(width - left));
        let area = TransposeArea { height: rows, width: columns, group: STAGING_ROWS, columns_left: width - left };
        // SAFETY: `are_rows_inside_slice` has checked that all rows of source and target are inside their slices. The staging buffer holds
        // the `rows` rows of `pitch` elements that are transposed into it.
        unsafe {
            let corner = source.as_ptr().offset((from.start + group) as isize + left as isize * from.stride);
            transpose_area(corner, from.stride, stage.as_mut_ptr(), pitch as isize, area);
            for row in 0..rows {
                let to = start.offset((group + row) as isize * to.stride).add(left);
                stores.copy_bytes(stage.as_ptr().add(row * pitch).cast(), to.cast(), columns * size_of::<T>());
            }
        }
    }
    true
}

/// The part of a matrix that is transposed at once, in rows and columns of the target.
struct TransposeArea {
    height: usize,
    width: usize,
    /// Number of target rows per group. A group is transposed completely before the next group begins.
    group: usize,
    /// Number of columns from this area's first column to the last column of the whole copy. Prefetches stop at that column.
    columns_left: usize,
}

/// Transposes `area` from `s` to `t` with the best block kernel of this processor. `ss` and `ts` are the row strides in elements.
///
/// # Safety
/// The `area.width` rows at `s` and the `area.height` rows at `t` are valid, and do not overlap.
unsafe fn transpose_area<T: Copy>(s: *const T, ss: isize, t: *mut T, ts: isize, area: TransposeArea) {
    // SAFETY: the caller guarantees that all rows of `area` are valid on both sides; AVX2 kernels run only where `has_avx2` holds.
    unsafe {
        match size_of::<T>() {
            #[cfg(target_arch = "x86_64")]
            4 if has_avx2() => {
                transpose_blocks(s, ss, t, ts, area, |s, ss, t, ts| x86::transpose_block_of_32_bits(s.cast(), ss, t.cast(), ts))
            }
            #[cfg(target_arch = "x86_64")]
            8 if has_avx2() => {
                transpose_blocks(s, ss, t, ts, area, |s, ss, t, ts| x86::transpose_block_of_64_bits(s.cast(), ss, t.cast(), ts))
            }
            _ => transpose_blocks(s, ss, t, ts, area, |s, ss, t, ts| {
                transpose_block(s, ss, t, ts, TRANSPOSE_BLOCK_SIDE, TRANSPOSE_BLOCK_SIDE)
            }),
        }
    }
}

/// Returns whether `rows` rows of `columns` elements, laid out as `m`, are inside a slice of length `len`.
fn are_rows_inside_slice(len: usize, m: ContiguousRowLayout, rows: usize, columns: usize) -> bool {
    let span = isize::try_from(rows).ok().and_then(|rows| (rows - 1).checked_mul(m.stride));
    let inside = |at: Option<isize>| at.is_some_and(|at| at >= 0 && (at as usize).checked_add(columns).is_some_and(|end| end <= len));
    let first = isize::try_from(m.start).ok();
    inside(first) && inside(first.zip(span).and_then(|(a, b)| a.checked_add(b)))
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    crate::simd::simd_level() >= crate::simd::SimdLevel::V3
}

/// Calls `block` for each whole block of `area`, in groups of target rows and by columns within a group. Partial blocks are transposed
/// element by element. `ss` and `ts` are the row strides of source and target, in elements.
///
/// # Safety
/// The `area.width` rows at `s` and the `area.height` rows at `t` are valid; `block` accesses one whole block from its pointers on.
unsafe fn transpose_blocks<T: Copy>(
    s: *const T,
    ss: isize,
    t: *mut T,
    ts: isize,
    area: TransposeArea,
    block: impl Fn(*const T, isize, *mut T, isize),
) {
    let TransposeArea { height, width, group: together, columns_left } = area;
    let groups = (0..height).step_by(together);
    let lefts = |group: usize| (0..width).step_by(TRANSPOSE_BLOCK_SIDE).map(move |left| (group, left));
    for (group, left) in groups.flat_map(lefts) {
        let columns = TRANSPOSE_BLOCK_SIDE.min(width - left);
        for top in (group..height.min(group + together)).step_by(TRANSPOSE_BLOCK_SIDE) {
            let rows = TRANSPOSE_BLOCK_SIDE.min(height - top);
            // SAFETY: `left < width` is a source row and a target column; `top < height` is a target row and a source column.
            let (from, to) = unsafe { (s.offset(left as isize * ss).add(top), t.offset(top as isize * ts).add(left)) };
            if rows == TRANSPOSE_BLOCK_SIDE && columns == TRANSPOSE_BLOCK_SIDE {
                if left + (PREFETCH_DISTANCE_IN_BLOCKS + 1) * TRANSPOSE_BLOCK_SIDE <= columns_left {
                    (0..TRANSPOSE_BLOCK_SIDE).for_each(|row| {
                        prefetch_cache_line(from.wrapping_offset((PREFETCH_DISTANCE_IN_BLOCKS * TRANSPOSE_BLOCK_SIDE + row) as isize * ss))
                    });
                }
                block(from, ss, to, ts);
            } else {
                // SAFETY: `rows` and `columns` are clipped to `area`, whose elements the caller guarantees to be valid.
                unsafe { transpose_block(from, ss, to, ts, rows, columns) };
            }
        }
    }
}

/// Transposes one block of `rows` by `columns` target elements from `s` to `t`, element by element. `ss` and `ts` are the row strides in
/// elements.
///
/// # Safety
/// The `columns` source rows of `rows` elements at `s`, and the `rows` target rows of `columns` elements at `t`, are valid.
unsafe fn transpose_block<T: Copy>(s: *const T, ss: isize, t: *mut T, ts: isize, rows: usize, columns: usize) {
    for i in 0..rows {
        for j in 0..columns {
            // SAFETY: the element `i` of source row `j` and the element `j` of target row `i` are inside the block that the caller
            // guarantees.
            unsafe { *t.offset(i as isize * ts).add(j) = *s.offset(j as isize * ss).add(i) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use crate::transpose::TRANSPOSE_BLOCK_SIDE;

    /// Transposes a block of 16 x 16 elements of 4 bytes as four blocks of 8 x 8 in AVX2 registers. `ss` and `ts` are the row strides in
    /// elements.
    pub(super) fn transpose_block_of_32_bits(s: *const f32, ss: isize, t: *mut f32, ts: isize) {
        for i in (0..TRANSPOSE_BLOCK_SIDE).step_by(8) {
            for j in (0..TRANSPOSE_BLOCK_SIDE).step_by(8) {
                // SAFETY: `transpose_blocks` passes pointers to whole 16 x 16 blocks, and `transpose_area` has checked for AVX2; `i` and
                // `j` are 0 or 8.
                unsafe { transpose_8x8(s.offset(j as isize * ss).add(i), ss, t.offset(i as isize * ts).add(j), ts) };
            }
        }
    }

    /// Transposes a block of 16 x 16 elements of 8 bytes as sixteen blocks of 4 x 4 in AVX2 registers. `ss` and `ts` are the row strides in
    /// elements.
    pub(super) fn transpose_block_of_64_bits(s: *const f64, ss: isize, t: *mut f64, ts: isize) {
        for i in (0..TRANSPOSE_BLOCK_SIDE).step_by(4) {
            for j in (0..TRANSPOSE_BLOCK_SIDE).step_by(4) {
                // SAFETY: `transpose_blocks` passes pointers to whole 16 x 16 blocks, and `transpose_area` has checked for AVX2; `i` and
                // `j` are multiples of 4 below 16.
                unsafe { transpose_4x4(s.offset(j as isize * ss).add(i), ss, t.offset(i as isize * ts).add(j), ts) };
            }
        }
    }

    /// Transposes 8 x 8 elements of 4 bytes from `s` to `t`. `ss` and `ts` are the row strides in elements. Moves bits only, whatever the
    /// element type.
    ///
    /// # Safety
    /// `s` is valid for reads, and `t` for writes, of 8 rows of 8 elements.
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_8x8(s: *const f32, ss: isize, t: *mut f32, ts: isize) {
        // SAFETY: the caller guarantees eight rows of eight elements at `s`.
        let r: [__m256; 8] = std::array::from_fn(|k| unsafe { _mm256_loadu_ps(s.offset(k as isize * ss)) });
        let pairs = |a: usize| (_mm256_unpacklo_ps(r[a], r[a + 1]), _mm256_unpackhi_ps(r[a], r[a + 1]));
        let ((a0, a1), (a2, a3), (a4, a5), (a6, a7)) = (pairs(0), pairs(2), pairs(4), pairs(6));
        let low = |a, b| _mm256_shuffle_ps::<0x44>(a, b);
        let high = |a, b| _mm256_shuffle_ps::<0xEE>(a, b);
        let top = [low(a0, a2), high(a0, a2), low(a1, a3), high(a1, a3)];
        let bottom = [low(a4, a6), high(a4, a6), low(a5, a7), high(a5, a7)];
        for k in 0..4 {
            // SAFETY: the caller guarantees eight rows of eight elements at `t`.
            unsafe {
                _mm256_storeu_ps(t.offset(k as isize * ts), _mm256_permute2f128_ps::<0x20>(top[k], bottom[k]));
                _mm256_storeu_ps(t.offset((k + 4) as isize * ts), _mm256_permute2f128_ps::<0x31>(top[k], bottom[k]));
            }
        }
    }

    /// Transposes 4 x 4 elements of 8 bytes from `s` to `t`. `ss` and `ts` are the row strides in elements. Moves bits only, whatever the
    /// element type.
    ///
    /// # Safety
    /// `s` is valid for reads, and `t` for writes, of 4 rows of 4 elements.
    #[target_feature(enable = "avx2")]
    unsafe fn transpose_4x4(s: *const f64, ss: isize, t: *mut f64, ts: isize) {
        // SAFETY: the caller guarantees four rows of four elements at `s`.
        let r: [__m256d; 4] = std::array::from_fn(|k| unsafe { _mm256_loadu_pd(s.offset(k as isize * ss)) });
        let a = [_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1])];
        let b = [_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3])];
        for k in 0..2 {
            // SAFETY: the caller guarantees four rows of four elements at `t`.
            unsafe {
                _mm256_storeu_pd(t.offset(k as isize * ts), _mm256_permute2f128_pd::<0x20>(a[k], b[k]));
                _mm256_storeu_pd(t.offset((k + 2) as isize * ts), _mm256_permute2f128_pd::<0x31>(a[k], b[k]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + Default + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        for (height, width) in [(1, 1), (16, 16), (33, 50), (64, 17), (5, 100)] {
            let (pitch, wide) = (height + 3, width + 5);
            let source: Vec<T> = (0..width * pitch).map(&value).collect();
            for backwards in [false, true] {
                let from = if backwards {
                    ContiguousRowLayout { start: (width - 1) * pitch, stride: -(pitch as isize) }
                } else {
                    ContiguousRowLayout { start: 0, stride: pitch as isize }
                };
                let mut target = vec![T::default(); height * wide];
                assert!(try_transpose(&source, from, &mut target, ContiguousRowLayout { start: 0, stride: wide as isize }, height, width));
                for i in 0..height {
                    for j in 0..wide {
                        let row = if backwards { width.wrapping_sub(j + 1) } else { j };
                        let want = if j < width { source[row * pitch + i] } else { T::default() };
                        assert_eq!(target[i * wide + j], want, "{height} x {width}: {i}, {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn transposes_every_element_type() {
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as f32);
        check(|i| i as u32);
        check(|i| i as f64);
        check(|i| i as i128);
    }

    #[test]
    fn streamed_equals_direct() {
        let sizes: &[(usize, usize)] = &[(128, 16), (64, 64), (300, 100), (129, 1000), (256, 33)];
        for &(height, width) in if cfg!(miri) { &sizes[..1] } else { sizes } {
            for stride in [width.next_multiple_of(32), width + 1] {
                let source: Vec<f32> = (0..height * width).map(|i| i as f32).collect();
                let mut lines = vec![[0f32; 16]; (height * stride).div_ceil(16) + 1]; // 64-byte elements align the buffer to cache lines
                let target = lines.as_flattened_mut();
                let aligned = target.as_ptr().align_offset(CACHE_LINE_BYTES);
                for start in [aligned, aligned + 1] {
                    target.fill(0.0);
                    let (from, to) =
                        (ContiguousRowLayout { start: 0, stride: height as isize }, ContiguousRowLayout { start, stride: stride as isize });
                    let fits = start + (height - 1) * stride + width <= target.len();
                    assert_eq!(try_transpose_non_temporal(&source, from, target, to, height, width), fits);
                    let right = |i: usize, j: usize| target[start + i * stride + j] == source[j * height + i];
                    assert!(!fits || (0..height).all(|i| (0..width).all(|j| right(i, j))), "{height} x {width}, {stride}, {start}");
                }
            }
        }
    }

    #[test]
    fn rejects_rows_outside() {
        let (source, mut target) = ([1f32; 100], [0f32; 100]);
        let mut transpose_at = |start, stride| {
            try_transpose(&source, ContiguousRowLayout { start, stride }, &mut target, ContiguousRowLayout { start: 0, stride: 10 }, 10, 10)
        };
        assert!(!transpose_at(1, 10) && !transpose_at(0, -10) && !transpose_at(usize::MAX, 10) && !transpose_at(0, isize::MAX));
        assert!(target.iter().all(|&v| v == 0.0));
    }
}
