//! Transposing copies: blocks of whole cache lines on both sides, turned within registers where the processor can.
#![allow(unsafe_code)]

use crate::raw::prefetch;

/// Elements of one side of a block: for 4-byte elements a cache line.
pub(crate) const SIDE: usize = 16;
/// Rows of the target that are written together: neighbouring lines of a row of the source are read soon after each other,
/// as the hardware fetches them in pairs.
const GROUP: usize = 4 * SIDE;
/// How many blocks ahead lines of the source are asked for: their addresses lie too far apart for the hardware to guess.
const AHEAD: usize = 2;

/// A matrix in memory whose rows are contiguous, `stride` elements apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// Place of the first element.
    pub start: usize,
    /// From one row to the next; may be negative.
    pub stride: isize,
}

/// Writes `target[i, j] = source[j, i]` for `height` rows and `width` columns of the target. `false`, and nothing written, if
/// rows of either lie outside its slice.
#[must_use]
pub(crate) fn transpose<T: Copy>(source: &[T], from: Rows, target: &mut [T], to: Rows, height: usize, width: usize) -> bool {
    if height == 0 || width == 0 {
        return true;
    }
    if !is_inside(source.len(), from, width, height) || !is_inside(target.len(), to, height, width) {
        return false;
    }
    let s = source.as_ptr().wrapping_add(from.start);
    let t = target.as_mut_ptr().wrapping_add(to.start);
    // SAFETY: `is_inside` has shown that all rows of both lie inside their slices.
    unsafe {
        match std::mem::size_of::<T>() {
            #[cfg(target_arch = "x86_64")]
            4 if avx2() => blocks(s, from.stride, t, to.stride, height, width, |s, ss, t, ts| x86::turn_32(s.cast(), ss, t.cast(), ts)),
            #[cfg(target_arch = "x86_64")]
            8 if avx2() => blocks(s, from.stride, t, to.stride, height, width, |s, ss, t, ts| x86::turn_64(s.cast(), ss, t.cast(), ts)),
            _ => blocks(s, from.stride, t, to.stride, height, width, |s, ss, t, ts| turn(s, ss, t, ts, SIDE, SIDE)),
        }
    }
    true
}

/// Whether `rows` rows of `columns` elements lie inside a slice of `len`.
fn is_inside(len: usize, m: Rows, rows: usize, columns: usize) -> bool {
    let span = (rows as isize - 1).checked_mul(m.stride);
    let inside = |at: Option<isize>| at.is_some_and(|at| at >= 0 && (at as usize).checked_add(columns).is_some_and(|end| end <= len));
    let first = isize::try_from(m.start).ok();
    inside(first) && inside(first.zip(span).and_then(|(a, b)| a.checked_add(b)))
}

#[cfg(target_arch = "x86_64")]
fn avx2() -> bool {
    crate::simd::level() >= crate::simd::Level::V3
}

/// Walks the target in groups of rows, each group by columns, in blocks.
///
/// # Safety
/// All rows of source and target are valid; `block` turns a whole block.
unsafe fn blocks<T: Copy>(
    s: *const T,
    ss: isize,
    t: *mut T,
    ts: isize,
    height: usize,
    width: usize,
    block: impl Fn(*const T, isize, *mut T, isize),
) {
    let groups = (0..height).step_by(GROUP);
    let lefts = |group: usize| (0..width).step_by(SIDE).map(move |left| (group, left));
    for (group, left) in groups.flat_map(lefts) {
        let columns = SIDE.min(width - left);
        for top in (group..height.min(group + GROUP)).step_by(SIDE) {
            let rows = SIDE.min(height - top);
            // SAFETY: row `left` of the source and row `top` of the target are rows of theirs.
            let (from, to) = unsafe { (s.offset(left as isize * ss).add(top), t.offset(top as isize * ts).add(left)) };
            if rows == SIDE && columns == SIDE {
                if left + (AHEAD + 1) * SIDE <= width {
                    (0..SIDE).for_each(|row| prefetch(from.wrapping_offset((AHEAD * SIDE + row) as isize * ss)));
                }
                block(from, ss, to, ts);
            } else {
                // SAFETY: `rows` and `columns` stay inside.
                unsafe { turn(from, ss, to, ts, rows, columns) };
            }
        }
    }
}

/// One block, element by element.
///
/// # Safety
/// The block is valid on both sides.
unsafe fn turn<T: Copy>(s: *const T, ss: isize, t: *mut T, ts: isize, rows: usize, columns: usize) {
    for i in 0..rows {
        for j in 0..columns {
            // SAFETY: row j, element i of the source; row i, element j of the target.
            unsafe { *t.offset(i as isize * ts).add(j) = *s.offset(j as isize * ss).add(i) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::SIDE;

    /// A block of 4-byte elements, in quarters of 8 x 8.
    pub(super) fn turn_32(s: *const f32, ss: isize, t: *mut f32, ts: isize) {
        for i in (0..SIDE).step_by(8) {
            for j in (0..SIDE).step_by(8) {
                // SAFETY: the caller's blocks are whole and the processor has AVX2.
                unsafe { eight(s.offset(j as isize * ss).add(i), ss, t.offset(i as isize * ts).add(j), ts) };
            }
        }
    }

    /// A block of 8-byte elements, in parts of 4 x 4.
    pub(super) fn turn_64(s: *const f64, ss: isize, t: *mut f64, ts: isize) {
        for i in (0..SIDE).step_by(4) {
            for j in (0..SIDE).step_by(4) {
                // SAFETY: as above.
                unsafe { four(s.offset(j as isize * ss).add(i), ss, t.offset(i as isize * ts).add(j), ts) };
            }
        }
    }

    /// # Safety
    /// 8 rows of 8 elements are valid on both sides. Moves bits only, whatever their type.
    #[target_feature(enable = "avx2")]
    unsafe fn eight(s: *const f32, ss: isize, t: *mut f32, ts: isize) {
        // SAFETY: eight rows of eight elements.
        let r: [__m256; 8] = std::array::from_fn(|k| unsafe { _mm256_loadu_ps(s.offset(k as isize * ss)) });
        let pairs = |a: usize| (_mm256_unpacklo_ps(r[a], r[a + 1]), _mm256_unpackhi_ps(r[a], r[a + 1]));
        let ((a0, a1), (a2, a3), (a4, a5), (a6, a7)) = (pairs(0), pairs(2), pairs(4), pairs(6));
        let low = |a, b| _mm256_shuffle_ps::<0x44>(a, b);
        let high = |a, b| _mm256_shuffle_ps::<0xEE>(a, b);
        let top = [low(a0, a2), high(a0, a2), low(a1, a3), high(a1, a3)];
        let bottom = [low(a4, a6), high(a4, a6), low(a5, a7), high(a5, a7)];
        for k in 0..4 {
            // SAFETY: as above.
            unsafe {
                _mm256_storeu_ps(t.offset(k as isize * ts), _mm256_permute2f128_ps::<0x20>(top[k], bottom[k]));
                _mm256_storeu_ps(t.offset((k + 4) as isize * ts), _mm256_permute2f128_ps::<0x31>(top[k], bottom[k]));
            }
        }
    }

    /// # Safety
    /// 4 rows of 4 elements are valid on both sides. Moves bits only, whatever their type.
    #[target_feature(enable = "avx2")]
    unsafe fn four(s: *const f64, ss: isize, t: *mut f64, ts: isize) {
        // SAFETY: four rows of four elements.
        let r: [__m256d; 4] = std::array::from_fn(|k| unsafe { _mm256_loadu_pd(s.offset(k as isize * ss)) });
        let a = [_mm256_unpacklo_pd(r[0], r[1]), _mm256_unpackhi_pd(r[0], r[1])];
        let b = [_mm256_unpacklo_pd(r[2], r[3]), _mm256_unpackhi_pd(r[2], r[3])];
        for k in 0..2 {
            // SAFETY: as above.
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

    fn turned<T: Copy + Default + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        for (height, width) in [(1, 1), (16, 16), (33, 50), (64, 17), (5, 100)] {
            let (pitch, wide) = (height + 3, width + 5);
            let source: Vec<T> = (0..width * pitch).map(&value).collect();
            for backwards in [false, true] {
                let from = if backwards {
                    Rows { start: (width - 1) * pitch, stride: -(pitch as isize) }
                } else {
                    Rows { start: 0, stride: pitch as isize }
                };
                let mut target = vec![T::default(); height * wide];
                assert!(transpose(&source, from, &mut target, Rows { start: 0, stride: wide as isize }, height, width));
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
    fn every_element_goes_to_its_place() {
        turned(|i| i as u8);
        turned(|i| i as u16);
        turned(|i| i as f32);
        turned(|i| i as u32);
        turned(|i| i as f64);
        turned(|i| i as i128);
    }

    #[test]
    fn outside_is_refused() {
        let (source, mut target) = ([1f32; 100], [0f32; 100]);
        let mut turn = |start, stride| transpose(&source, Rows { start, stride }, &mut target, Rows { start: 0, stride: 10 }, 10, 10);
        assert!(!turn(1, 10) && !turn(0, -10) && !turn(usize::MAX, 10) && !turn(0, isize::MAX));
        assert!(target.iter().all(|&v| v == 0.0));
    }
}
