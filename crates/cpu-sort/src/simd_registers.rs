//! AVX2 and AVX-512 registers of sort keys, which implement the trait `SimdRegisters` of the module `register_sort`.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::hint::black_box;

use cuprum_cpu_base::simd::{self, SimdLevel};

use crate::register_sort::{MAX_LANES, RegisterKey, RegisterLoop, SimdRegisters};

/// Returns whether the compare-exchange of lanes `lane` and `lane ^ mask` leaves the greater key in `lane`.
const fn keeps_greater_key(lane: usize, mask: usize) -> bool {
    lane & 1 << mask.ilog2() != 0
}

/// Returns a bit mask of the lanes for which [`keeps_greater_key`] holds with this `mask`.
const fn greater_key_lanes(mask: usize) -> u16 {
    let (mut lanes, mut lane) = (0, 0);
    while lane < MAX_LANES {
        lanes |= (keeps_greater_key(lane, mask) as u16) << lane;
        lane += 1;
    }
    lanes
}

macro_rules! avx512 {
    ($(#[$doc:meta])* $name:ident: $key:ty as $int:ty, $lanes:literal lanes, $mask_type:ty, mirrors $mirrors:expr;
     $set:ident, $load:ident, $store:ident, $min:ident, $max:ident, $mask_max:ident, $less:ident, $compress:ident;
     |$v:ident, $self:ident| $($xor:pat => $cross:expr,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name {
            /// Permutation indices that reverse groups of 8 and of 16 lanes.
            mirrors: [__m512i; 2],
            /// Masks of the lanes that keep the greater key in a compare-exchange: `greater_key_lanes(1)`, `greater_key_lanes(2)`,
            /// `greater_key_lanes(4)` and `greater_key_lanes(8)`.
            upper: [$mask_type; 4],
        }

        impl $name {
            /// # Safety
            /// The processor has AVX-512 (`simd::SimdLevel::V4`).
            #[inline(always)]
            unsafe fn assume_supported() -> $name {
                // `black_box` hides the constants. Without `black_box`, the compiler replaces a shuffle and a blend with two longer
                // shuffles.
                // SAFETY: the caller guarantees that the processor has AVX-512, the only requirement of these intrinsics.
                black_box(unsafe { $name { mirrors: $mirrors, upper: const { [greater_key_lanes(1) as $mask_type, greater_key_lanes(2) as $mask_type, greater_key_lanes(4) as $mask_type, greater_key_lanes(8) as $mask_type] } } })
            }

            /// Returns a mask of the first `count` lanes.
            #[inline(always)]
            fn mask_of_first_lanes(count: usize) -> $mask_type {
                ((1u32 << count.min($lanes)) - 1) as $mask_type
            }
        }

        impl SimdRegisters for $name {
            type Key = $key;
            type Keys = __m512i;
            const LANES: usize = $lanes;
            const NETWORK_REGISTERS: usize = 16;
            #[inline(always)]
            fn splat(self, key: $key) -> __m512i {
                // SAFETY: a value of this type exists only where the processor has AVX-512.
                unsafe { $set(key as $int) }
            }
            #[inline(always)]
            fn load(self, from: &[$key]) -> __m512i {
                // SAFETY: `self` exists only if the processor has AVX-512; the mask limits the load to the `from.len()` keys of the slice.
                unsafe { $load($set(-1), Self::mask_of_first_lanes(from.len()), from.as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(self, keys: __m512i, to: &mut [$key]) {
                // SAFETY: `self` exists only if the processor has AVX-512; the mask limits the store to the `to.len()` keys of the slice.
                unsafe { $store(to.as_mut_ptr().cast(), Self::mask_of_first_lanes(to.len()), keys) }
            }
            #[inline(always)]
            fn min(self, a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: `self` exists only if the processor has AVX-512.
                unsafe { $min(a, b) }
            }
            #[inline(always)]
            fn max(self, a: __m512i, b: __m512i) -> __m512i {
                // SAFETY: `self` exists only if the processor has AVX-512.
                unsafe { $max(a, b) }
            }
            #[inline(always)]
            fn shuffle_xor($self, $v: __m512i, mask: usize) -> __m512i {
                // SAFETY: `self` exists only if the processor has AVX-512.
                unsafe { match mask { $($xor => $cross,)* } }
            }
            #[inline(always)]
            fn compare_exchange(self, keys: __m512i, mask: usize) -> __m512i {
                let other = self.shuffle_xor(keys, mask);
                // SAFETY: `self` exists only if the processor has AVX-512.
                unsafe { $mask_max($min(keys, other), self.upper[mask.ilog2() as usize], keys, other) }
            }
            // Compresses the keys in a register and stores the whole register. A compressing store to memory takes about a hundred
            // micro-operations on Zen 4.
            #[inline(always)]
            fn partition_register(self, keys: __m512i, pivot: __m512i) -> (__m512i, usize, __m512i) {
                // SAFETY: `self` exists only if the processor has AVX-512.
                unsafe {
                    let below = $less(keys, pivot);
                    ($compress(below, keys), below.count_ones() as usize, $compress(!below, keys))
                }
            }
            #[inline(always)]
            unsafe fn load_register(self, from: *const $key) -> __m512i {
                // SAFETY: `self` exists only if the processor has AVX-512; the caller guarantees that `from` has `LANES` keys.
                unsafe { _mm512_loadu_si512(from.cast()) }
            }
            #[inline(always)]
            unsafe fn store_register(self, keys: __m512i, to: *mut $key) {
                // SAFETY: `self` exists only if the processor has AVX-512; the caller guarantees that `to` is valid for `LANES` keys.
                unsafe { _mm512_storeu_si512(to.cast(), keys) }
            }
        }
    };
}
avx512! {
    /// Sixteen 32-bit keys in an AVX-512 register.
    U32x16: u32 as i32, 16 lanes, __mmask16, mirrors [
        _mm512_set_epi32(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7),
        _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    ];
    _mm512_set1_epi32, _mm512_mask_loadu_epi32, _mm512_mask_storeu_epi32, _mm512_min_epu32, _mm512_max_epu32, _mm512_mask_max_epu32,
    _mm512_cmplt_epu32_mask, _mm512_maskz_compress_epi32;
    |v, self|
    1 => _mm512_shuffle_epi32::<0b10_11_00_01>(v),
    2 => _mm512_shuffle_epi32::<0b01_00_11_10>(v),
    3 => _mm512_shuffle_epi32::<0b00_01_10_11>(v),
    4 => _mm512_shuffle_i32x4::<0b10_11_00_01>(v, v),
    7 => _mm512_permutexvar_epi32(self.mirrors[0], v),
    _ => _mm512_permutexvar_epi32(self.mirrors[1], v),
}
avx512! {
    /// Eight 64-bit keys in an AVX-512 register.
    U64x8: u64 as i64, 8 lanes, __mmask8, mirrors [_mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7); 2];
    _mm512_set1_epi64, _mm512_mask_loadu_epi64, _mm512_mask_storeu_epi64, _mm512_min_epu64, _mm512_max_epu64, _mm512_mask_max_epu64,
    _mm512_cmplt_epu64_mask, _mm512_maskz_compress_epi64;
    |v, self|
    1 => _mm512_shuffle_epi32::<0b01_00_11_10>(v),
    2 => _mm512_permutex_epi64::<0b01_00_11_10>(v),
    3 => _mm512_permutex_epi64::<0b00_01_10_11>(v),
    _ => _mm512_permutexvar_epi64(self.mirrors[0], v),
}

/// For each bit mask of eight 32-bit lanes, the indices of its set lanes, one byte per index, then zeros.
static SET_LANES_OF_MASK: [u64; 256] = {
    let mut packed = [0; 256];
    let mut set = 0;
    while set < packed.len() {
        let (mut lane, mut index) = (0, 0);
        while lane < 8 {
            if set >> lane & 1 == 1 {
                packed[set] |= lane << (8 * index);
                index += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    packed
};

/// Moves the 32-bit lanes of `keys` whose bit is set in `set` to the front, in their order.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn pack_lanes(keys: __m256i, set: u8) -> __m256i {
    // SAFETY: the caller guarantees that the processor has AVX2.
    unsafe { _mm256_permutevar8x32_epi32(keys, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(SET_LANES_OF_MASK[set as usize] as i64))) }
}

macro_rules! avx2 {
    ($(#[$doc:meta])* $name:ident: $key:ty as $int:ty, $lanes:literal lanes, order $order:expr, numbers $numbers:expr;
     $set:ident, $greater:ident, $load:ident, $store:ident; |$a:ident, $b:ident| $min:expr, $max:expr; |$v:ident| $($xor:pat => $cross:expr,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name {
            /// Mask whose bits are inverted in keys, so that the signed comparisons of AVX2 give the unsigned order.
            order: __m256i,
            /// Vector masks of the lanes that keep the greater key in a compare-exchange: the lanes of `greater_key_lanes(1)`,
            /// `greater_key_lanes(2)` and `greater_key_lanes(4)`.
            upper: [__m256i; 3],
        }

        impl $name {
            /// # Safety
            /// The processor has AVX2 (`simd::SimdLevel::V3`).
            #[inline(always)]
            unsafe fn assume_supported() -> $name {
                // SAFETY: the caller guarantees that the processor has AVX2, the only requirement of these intrinsics.
                black_box(unsafe {
                    let bit = |mask| $greater(_mm256_and_si256($numbers, $set(mask)), _mm256_setzero_si256());
                    $name { order: $set($order as $int), upper: [bit(1), bit(2), bit(4)] }
                })
            }

            /// Returns a lane mask of the first `count` lanes.
            #[inline(always)]
            fn mask_of_first_lanes(self, count: usize) -> __m256i {
                // SAFETY: a value of this type exists only where the processor has AVX2.
                unsafe { $greater($set(count.min($lanes) as $int), $numbers) }
            }
        }

        impl SimdRegisters for $name {
            type Key = $key;
            type Keys = __m256i;
            const LANES: usize = $lanes;
            const NETWORK_REGISTERS: usize = 8;
            #[inline(always)]
            fn splat(self, key: $key) -> __m256i {
                // SAFETY: a value of this type exists only where the processor has AVX2.
                unsafe { $set((key ^ $order) as $int) }
            }
            // Loads the whole register without a mask, because masked loads are slow on some processors.
            #[inline(always)]
            fn load(self, from: &[$key]) -> __m256i {
                // SAFETY: `self` exists only if the processor has AVX2; the mask limits the load to the `from.len()` keys of the slice.
                unsafe {
                    if from.len() >= $lanes {
                        return self.load_register(from.as_ptr());
                    }
                    let first = self.mask_of_first_lanes(from.len());
                    let missing = _mm256_xor_si256(first, $set(-1));
                    _mm256_xor_si256(_mm256_or_si256($load(from.as_ptr().cast(), first), missing), self.order)
                }
            }
            #[inline(always)]
            fn store(self, keys: __m256i, to: &mut [$key]) {
                // SAFETY: `self` exists only if the processor has AVX2; the mask limits the store to the `to.len()` keys of the slice.
                unsafe {
                    if to.len() >= $lanes {
                        return self.store_register(keys, to.as_mut_ptr());
                    }
                    $store(to.as_mut_ptr().cast(), self.mask_of_first_lanes(to.len()), _mm256_xor_si256(keys, self.order))
                }
            }
            #[inline(always)]
            fn min(self, $a: __m256i, $b: __m256i) -> __m256i {
                // SAFETY: `self` exists only if the processor has AVX2.
                unsafe { $min }
            }
            #[inline(always)]
            fn max(self, $a: __m256i, $b: __m256i) -> __m256i {
                // SAFETY: `self` exists only if the processor has AVX2.
                unsafe { $max }
            }
            #[inline(always)]
            fn shuffle_xor(self, $v: __m256i, mask: usize) -> __m256i {
                // SAFETY: `self` exists only if the processor has AVX2.
                unsafe { match mask { $($xor => $cross,)* } }
            }
            #[inline(always)]
            fn compare_exchange(self, keys: __m256i, mask: usize) -> __m256i {
                let other = self.shuffle_xor(keys, mask);
                let (least, greatest) = (self.min(keys, other), self.max(keys, other));
                // SAFETY: `self` exists only if the processor has AVX2.
                unsafe { _mm256_blendv_epi8(least, greatest, self.upper[mask.ilog2() as usize]) }
            }
            #[inline(always)]
            fn partition_register(self, keys: __m256i, pivot: __m256i) -> (__m256i, usize, __m256i) {
                // SAFETY: `self` exists only if the processor has AVX2.
                unsafe {
                    let below = _mm256_movemask_ps(_mm256_castsi256_ps($greater(pivot, keys))) as u8;
                    (pack_lanes(keys, below), below.count_ones() as usize * $lanes / 8, pack_lanes(keys, !below))
                }
            }
            #[inline(always)]
            unsafe fn load_register(self, from: *const $key) -> __m256i {
                // SAFETY: `self` exists only if the processor has AVX2; the caller guarantees that `from` has `LANES` keys.
                unsafe { _mm256_xor_si256(_mm256_loadu_si256(from.cast()), self.order) }
            }
            #[inline(always)]
            unsafe fn store_register(self, keys: __m256i, to: *mut $key) {
                // SAFETY: `self` exists only if the processor has AVX2; the caller guarantees that `to` is valid for `LANES` keys.
                unsafe { _mm256_storeu_si256(to.cast(), _mm256_xor_si256(keys, self.order)) }
            }
        }
    };
}
avx2! {
    /// Eight 32-bit keys in an AVX2 register.
    U32x8: u32 as i32, 8 lanes, order 1u32 << 31, numbers _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    _mm256_set1_epi32, _mm256_cmpgt_epi32, _mm256_maskload_epi32, _mm256_maskstore_epi32;
    |a, b| _mm256_min_epi32(a, b), _mm256_max_epi32(a, b);
    |v|
    1 => _mm256_shuffle_epi32::<0b10_11_00_01>(v),
    2 => _mm256_shuffle_epi32::<0b01_00_11_10>(v),
    3 => _mm256_shuffle_epi32::<0b00_01_10_11>(v),
    _ => _mm256_permutevar8x32_epi32(v, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
}
avx2! {
    /// Four 64-bit keys in an AVX2 register.
    U64x4: u64 as i64, 4 lanes, order 1u64 << 63, numbers _mm256_set_epi64x(3, 2, 1, 0);
    _mm256_set1_epi64x, _mm256_cmpgt_epi64, _mm256_maskload_epi64, _mm256_maskstore_epi64;
    |a, b| _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b)), _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
    |v|
    1 => _mm256_shuffle_epi32::<0b01_00_11_10>(v),
    2 => _mm256_permute4x64_epi64::<0b01_00_11_10>(v),
    _ => _mm256_permute4x64_epi64::<0b00_01_10_11>(v),
}

macro_rules! keys {
    ($($key:ty: $avx512:ident, $avx2:ident;)*) => {$(
        impl RegisterKey for $key {
            fn try_run_at_level<W: RegisterLoop<$key>>(level: SimdLevel, work: W) -> Option<W::Output> {
                #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                fn v4<W: RegisterLoop<$key>>(work: W) -> W::Output {
                    // SAFETY: `try_run_at_level` calls `v4` only if `processor_simd_level` has detected AVX-512.
                    work.run_with_registers(unsafe { $avx512::assume_supported() })
                }
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                fn v3<W: RegisterLoop<$key>>(work: W) -> W::Output {
                    // SAFETY: `try_run_at_level` calls `v3` only if `processor_simd_level` has detected AVX2.
                    work.run_with_registers(unsafe { $avx2::assume_supported() })
                }
                match level.min(simd::processor_simd_level()) {
                    SimdLevel::Baseline => None,
                    // SAFETY: `processor_simd_level` has detected every CPU feature that the target function `v3` enables.
                    SimdLevel::V3 => Some(unsafe { v3(work) }),
                    // SAFETY: `processor_simd_level` has detected every CPU feature that the target function `v4` enables.
                    SimdLevel::V4 => Some(unsafe { v4(work) }),
                }
            }
        }
    )*};
}
keys! {
    u32: U32x16, U32x8;
    u64: U64x8, U64x4;
}
