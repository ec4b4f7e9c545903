//! Run-time choice of SIMD level: a loop is compiled once per level, and the highest one that the processor supports is called.
//! Development builds stop at AVX2, which saves a third of their build time; their loops are not vectorised anyway.
//!
//! Arithmetic is the same at every level, as the compiler contracts no multiply and add. Only functions that test
//! [`Isa::FMA`] (`cuprum-cpu-math`) may differ in the last place.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Instruction sets that loops are compiled for, named after the x86-64 levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The minimum of the compilation target.
    Baseline,
    /// AVX2, FMA, F16C (x86-64-v3).
    #[cfg(target_arch = "x86_64")]
    V3,
    /// AVX-512 F, BW, CD, DQ, VL (x86-64-v4).
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// Returns the highest level that the processor supports and this build is compiled for.
#[inline]
pub fn level() -> Level {
    #[cfg(all(target_arch = "x86_64", debug_assertions))]
    return found().min(Level::V3);
    #[cfg(not(all(target_arch = "x86_64", debug_assertions)))]
    found()
}

/// Returns the highest level that the processor supports.
#[inline]
pub fn found() -> Level {
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

/// Returns the level's name for `cuprum info`.
pub fn level_name() -> &'static str {
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

/// Compile-time properties of the level that a loop is compiled for.
pub trait Isa: Copy {
    /// Whether `mul_add` is one instruction. Elsewhere it is a library call, which prevents vectorisation.
    const FMA: bool;
    /// Bytes of values that a loop may keep in registers, with as many left for its operands.
    const REGISTER_BYTES: usize;
    /// Whether functions compute all arguments, including those that the vectorised path leaves to a second pass.
    const EXACT: bool = false;
}

/// The minimum of the compilation target.
#[derive(Clone, Copy)]
pub struct Base;

impl Isa for Base {
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
    const REGISTER_BYTES: usize = 128;
}

/// AVX2: sixteen registers of 32 bytes, fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Fused;

#[cfg(target_arch = "x86_64")]
impl Isa for Fused {
    const FMA: bool = true;
    const REGISTER_BYTES: usize = 256;
}

/// AVX-512: thirty-two registers of 64 bytes, fused multiply-add.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[derive(Clone, Copy)]
pub struct Wide;

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
impl Isa for Wide {
    const FMA: bool = true;
    const REGISTER_BYTES: usize = 512;
}

/// A loop compiled at each level. `run` and everything that its loop calls must be `#[inline(always)]`.
pub trait Loop {
    /// Return type.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// A loop that only fills a slice. The slice is an argument, so the compiler knows that no input or table overlaps it:
/// it emits no overlap checks and may use gather instructions on tables.
pub trait Fill {
    /// Element type of the result.
    type Item;
    /// Computes every element of `out`.
    fn run<I: Isa>(self, out: &mut [Self::Item]);
}

/// Runs a loop at this processor's level.
#[inline]
pub fn dispatch<L: Loop>(body: L) -> L::Output {
    match level() {
        Level::Baseline => body.run(),
        // SAFETY: `level` has detected every feature that `v4` enables.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Level::V4 => unsafe { v4(body) },
        // SAFETY: `level` has detected every feature that `v3` enables.
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

/// Fills a slice at this processor's level.
#[inline]
pub fn fill<F: Fill>(body: F, out: &mut [F::Item]) {
    fill_at(level(), body, out)
}

/// Fills a slice at the level `wanted`, or at this processor's level if that is lower.
#[inline]
pub fn fill_at<F: Fill>(wanted: Level, body: F, out: &mut [F::Item]) {
    match wanted.min(level()) {
        Level::Baseline => fill_base(body, out),
        // SAFETY: `level` has detected every feature that `fill_v4` enables, and the minimum is at most `level`.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Level::V4 => unsafe { fill_v4(body, out) },
        // SAFETY: `level` has detected every feature that `fill_v3` enables, and the minimum is at most `level`.
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
