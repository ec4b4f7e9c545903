//! Run-time choice of SIMD level: a loop is compiled once per level, and the best one that this processor has is called.
//! Development builds have no level above AVX2: their loops are not vectorised, and a third of the build is saved.
//!
//! Arithmetic is the same at every level, as the compiler contracts no multiply and add; only functions that ask for
//! [`Isa::FMA`] (`vmath`) may differ in the last place.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Instruction sets that loops are compiled for, named after the x86-64 levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    /// What every target of this build has.
    Baseline,
    /// AVX2, FMA, F16C (x86-64-v3).
    #[cfg(target_arch = "x86_64")]
    V3,
    /// AVX-512 F, BW, CD, DQ, VL (x86-64-v4).
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// The level of this processor, as far as this build's loops have it.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(all(target_arch = "x86_64", debug_assertions))]
    return found().min(Level::V3);
    #[cfg(not(all(target_arch = "x86_64", debug_assertions)))]
    found()
}

/// The level of this processor.
#[inline]
pub(crate) fn found() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(detect)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt");
    let v4 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (v3, v4) {
        (true, true) => Level::V4,
        (true, false) => Level::V3,
        _ => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Baseline
}

/// The level's name for `cuprum info`.
pub(crate) fn level_name() -> &'static str {
    match level() {
        #[cfg(target_arch = "x86_64")]
        Level::V4 => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        Level::V3 => "AVX2",
        Level::Baseline if cfg!(target_arch = "x86_64") => "SSE2",
        Level::Baseline if cfg!(target_arch = "aarch64") => "NEON",
        Level::Baseline => "baseline",
    }
}

/// What a loop may know about the level that it is compiled for.
pub trait Isa: Copy {
    /// Whether `mul_add` is one instruction; where it is not, it is a slow call that stops vectorisation.
    const FMA: bool;
    /// Bytes of the values that a loop may keep in registers, beside as many that it reads.
    const KEPT: usize;
    /// Whether a function is to compute all arguments, by a branch where a loop does better to leave some out.
    const EXACT: bool = false;
}

/// What every target of this build has.
#[derive(Clone, Copy)]
pub struct Base;

impl Isa for Base {
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
    const KEPT: usize = 128;
}

/// Sixteen registers of 32 bytes, and fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Fused;

#[cfg(target_arch = "x86_64")]
impl Isa for Fused {
    const FMA: bool = true;
    const KEPT: usize = 256;
}

/// Thirty-two registers of 64 bytes, and fused multiply-add.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[derive(Clone, Copy)]
pub(crate) struct Wide;

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
impl Isa for Wide {
    const FMA: bool = true;
    const KEPT: usize = 512;
}

/// A loop to be compiled at each level. `run` must be `#[inline(always)]`, and so must what it calls in its loop.
pub(crate) trait Loop {
    /// What it returns.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
}

/// A loop that does nothing but fill a slice. As the slice is an argument, the compiler knows that no input and no table
/// overlaps it: no checks of that before the loop, and tables may be gathered from.
pub(crate) trait Fill {
    /// An element of the result.
    type Item;
    /// The loop.
    fn run<I: Isa>(self, out: &mut [Self::Item]);
}

/// Runs a loop at the level of this processor.
#[inline]
pub(crate) fn dispatch<L: Loop>(body: L) -> L::Output {
    match level() {
        Level::Baseline => body.run(),
        // SAFETY: `level` has found every feature that `v4` enables.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Level::V4 => unsafe { v4(body) },
        // SAFETY: as above, for `v3`.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { v3(body) },
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v4<L: Loop>(body: L) -> L::Output {
    body.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v3<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// Fills a slice at the level of this processor.
#[inline]
pub(crate) fn fill<F: Fill>(body: F, out: &mut [F::Item]) {
    fill_at(level(), body, out)
}

/// Fills a slice at a level that this processor has; at its own, if it has not.
#[inline]
pub(crate) fn fill_at<F: Fill>(wanted: Level, body: F, out: &mut [F::Item]) {
    match wanted.min(level()) {
        Level::Baseline => fill_base(body, out),
        // SAFETY: `level` has found every feature that `fill_v4` enables, and this is not above it.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Level::V4 => unsafe { fill_v4(body, out) },
        // SAFETY: as above, for `fill_v3`.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { fill_v3(body, out) },
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn fill_v4<F: Fill>(body: F, out: &mut [F::Item]) {
    body.run::<Wide>(out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn fill_v3<F: Fill>(body: F, out: &mut [F::Item]) {
    body.run::<Fused>(out)
}

#[inline(never)]
fn fill_base<F: Fill>(body: F, out: &mut [F::Item]) {
    body.run::<Base>(out)
}
