//! Run-time choice of SIMD level: a loop is compiled once per level, and the best one that this processor has is called.
//! No level changes a result: nothing here contracts a multiply and an add.
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

/// The level of this processor.
pub(crate) fn level() -> Level {
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

/// A loop to be compiled at each level. `run` must be `#[inline(always)]`, and so must what it calls in its loop.
pub(crate) trait Loop {
    /// What it returns.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
}

/// Runs a loop at the level of this processor.
#[inline]
pub(crate) fn dispatch<L: Loop>(body: L) -> L::Output {
    match level() {
        // SAFETY: `level` has found every feature that `v4` enables.
        #[cfg(target_arch = "x86_64")]
        Level::V4 => unsafe { v4(body) },
        // SAFETY: as above, for `v3`.
        #[cfg(target_arch = "x86_64")]
        Level::V3 => unsafe { v3(body) },
        Level::Baseline => body.run(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v4<L: Loop>(body: L) -> L::Output {
    body.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v3<L: Loop>(body: L) -> L::Output {
    body.run()
}
