//! Run-time choice of SIMD level. Each loop is compiled once per level, and the copy for the highest level that the processor supports is
//! called. Development builds use at most AVX2, which saves a third of the build time. Loops in development builds are not vectorised.
//!
//! Arithmetic gives equal results at every level, because the compiler never fuses a multiplication and an addition into one instruction.
//! Only functions that test [`Isa::HAS_FMA`] (`cuprum-cpu-math`) may differ between levels, in the last place.
#![allow(unsafe_code)]

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use cuprum_core::settings::{self, SimdLimit};

/// Instruction sets that loops are compiled for, named after the x86-64 microarchitecture levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SimdLevel {
    /// The minimum instruction set of the compilation target.
    Baseline,
    /// AVX2, FMA, F16C (x86-64-v3).
    #[cfg(target_arch = "x86_64")]
    V3,
    /// AVX-512 F, BW, CD, DQ, VL (x86-64-v4).
    #[cfg(target_arch = "x86_64")]
    V4,
}

/// Returns the highest SIMD level that the processor supports, `CUPRUM_SIMD` allows, and this build is compiled for.
#[inline]
pub fn simd_level() -> SimdLevel {
    #[cfg(all(target_arch = "x86_64", debug_assertions))]
    return processor_simd_level().min(SimdLevel::V3);
    #[cfg(not(all(target_arch = "x86_64", debug_assertions)))]
    processor_simd_level()
}

/// Returns the highest SIMD level that the processor supports and `CUPRUM_SIMD` allows.
#[inline]
pub fn processor_simd_level() -> SimdLevel {
    /// The SIMD level, cached for the process.
    static PROCESSOR_SIMD_LEVEL: OnceLock<SimdLevel> = OnceLock::new();
    *PROCESSOR_SIMD_LEVEL.get_or_init(|| detect_processor_simd_level().min(highest_allowed_simd_level()))
}

/// Returns the highest SIMD level that `CUPRUM_SIMD` allows. An invalid value allows all levels; the creation of the first array reports it
/// as an error.
#[cfg(target_arch = "x86_64")]
fn highest_allowed_simd_level() -> SimdLevel {
    match settings::simd_limit() {
        Ok(Some(SimdLimit::Baseline)) => SimdLevel::Baseline,
        Ok(Some(SimdLimit::Avx2)) => SimdLevel::V3,
        Ok(Some(SimdLimit::Avx512) | None) | Err(_) => SimdLevel::V4,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn highest_allowed_simd_level() -> SimdLevel {
    SimdLevel::Baseline
}

#[cfg(target_arch = "x86_64")]
fn detect_processor_simd_level() -> SimdLevel {
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
        (true, true) => SimdLevel::V4,
        (true, false) => SimdLevel::V3,
        _ => SimdLevel::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect_processor_simd_level() -> SimdLevel {
    SimdLevel::Baseline
}

/// Returns the name of the SIMD level in use, as `cuprum info` prints it.
pub fn simd_level_name() -> &'static str {
    match simd_level() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::V4 => "AVX-512",
        #[cfg(target_arch = "x86_64")]
        SimdLevel::V3 => "AVX2",
        SimdLevel::Baseline if cfg!(target_arch = "x86_64") => "SSE2",
        SimdLevel::Baseline if cfg!(target_arch = "aarch64") => "NEON",
        SimdLevel::Baseline => "baseline",
    }
}

/// Properties, known at compile time, of the [`SimdLevel`] that a loop is compiled for.
pub trait Isa: Copy {
    /// Whether `mul_add` is one instruction. If false, `mul_add` is a library call, which prevents vectorisation.
    const HAS_FMA: bool;
    /// Total size in bytes of the accumulators that a loop may keep in registers: half of the registers. Operands need the other half.
    const ACCUMULATOR_REGISTER_BYTES: usize;
    /// Whether the loop is the second, exact pass of mathematical functions. If false, the loop is vectorised and may give wrong results
    /// for rare arguments, such as very large numbers. A second pass then recomputes these results exactly.
    const IS_EXACT_PASS: bool = false;
}

/// Marker of [`SimdLevel::Baseline`]: the minimum instruction set of the compilation target.
#[derive(Clone, Copy)]
pub struct BaselineIsa;

impl Isa for BaselineIsa {
    const HAS_FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
    const ACCUMULATOR_REGISTER_BYTES: usize = 128;
}

/// Marker of [`SimdLevel::V3`]: AVX2 with sixteen registers of 32 bytes, and fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct V3Isa;

#[cfg(target_arch = "x86_64")]
impl Isa for V3Isa {
    const HAS_FMA: bool = true;
    const ACCUMULATOR_REGISTER_BYTES: usize = 256;
}

/// Marker of [`SimdLevel::V4`]: AVX-512 with thirty-two registers of 64 bytes, and fused multiply-add.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[derive(Clone, Copy)]
pub struct V4Isa;

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
impl Isa for V4Isa {
    const HAS_FMA: bool = true;
    const ACCUMULATOR_REGISTER_BYTES: usize = 512;
}

/// A loop that [`dispatch_simd`] compiles at each SIMD level. `run`, `run_without_avx2` and every function that they call must be
/// `#[inline(always)]`.
pub trait SimdLoop {
    /// Type that `run` returns.
    type Output;
    /// Whether the loop is also compiled for AVX-512. If false, processors with AVX-512 run the version for AVX2, which suffices for rarely
    /// used loops.
    const HAS_AVX512_VERSION: bool = true;
    /// Runs the loop and returns its result.
    fn run(self) -> Self::Output;
    /// Runs the loop on x86-64 processors without AVX2, which are rare. The result equals the result of `run`; implementations may use
    /// shorter, slower code.
    #[inline(always)]
    fn run_without_avx2(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run()
    }
}

/// A loop that only fills a slice. The slice is a parameter of `run`, so the compiler knows that no input or table overlaps the slice. The
/// compiler then emits no overlap checks and may use gather instructions on tables.
pub trait FillLoop {
    /// Element type of the slice that the loop fills.
    type Item;
    /// Whether the loop is also compiled for AVX-512 (see [`SimdLoop::HAS_AVX512_VERSION`]).
    const HAS_AVX512_VERSION: bool = true;
    /// Whether the loop has no vector instructions at any SIMD level, so that one compiled version suffices.
    const IS_SCALAR_ONLY: bool = false;
    /// Computes every element of `out`.
    fn run<I: Isa>(self, out: &mut [Self::Item]);
}

/// Runs `body` at the highest available SIMD level, which [`simd_level`] returns.
#[inline]
pub fn dispatch_simd<L: SimdLoop>(body: L) -> L::Output {
    match simd_level() {
        SimdLevel::Baseline => run_at_baseline(body),
        // SAFETY: `simd_level` has detected every CPU feature that the target functions `v4` and `v3` enable.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        SimdLevel::V4 => unsafe { if const { L::HAS_AVX512_VERSION } { v4(body) } else { v3(body) } },
        // SAFETY: `simd_level` has detected every CPU feature that the target function `v3` enables.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { v3(body) },
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v4<L: SimdLoop>(body: L) -> L::Output {
    body.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v3<L: SimdLoop>(body: L) -> L::Output {
    body.run()
}

/// Runs `body` at the baseline SIMD level. The function is not inlined, so that its callers share one copy of the loop.
#[inline(never)]
fn run_at_baseline<L: SimdLoop>(body: L) -> L::Output {
    if cfg!(target_arch = "x86_64") { body.run_without_avx2() } else { body.run() }
}

/// Fills `out` by `body` at the highest available SIMD level, which [`simd_level`] returns.
#[inline]
pub fn run_fill_loop<F: FillLoop>(body: F, out: &mut [F::Item]) {
    run_fill_loop_at_level(simd_level(), body, out)
}

/// Fills `out` by `body` at the SIMD level `wanted`, or at [`simd_level`] if `wanted` is higher.
#[inline]
pub fn run_fill_loop_at_level<F: FillLoop>(wanted: SimdLevel, body: F, out: &mut [F::Item]) {
    if const { F::IS_SCALAR_ONLY } {
        return run_fill_loop_baseline(body, out);
    }
    match wanted.min(simd_level()) {
        SimdLevel::Baseline => run_fill_loop_baseline(body, out),
        // SAFETY: the level is at most `simd_level()`, which has detected every CPU feature that `run_fill_loop_v4` enables.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        SimdLevel::V4 => unsafe { if const { F::HAS_AVX512_VERSION } { run_fill_loop_v4(body, out) } else { run_fill_loop_v3(body, out) } },
        // SAFETY: the level is at most `simd_level()`, which has detected every CPU feature that `run_fill_loop_v3` enables.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { run_fill_loop_v3(body, out) },
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_fill_loop_v4<F: FillLoop>(body: F, out: &mut [F::Item]) {
    body.run::<V4Isa>(out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_fill_loop_v3<F: FillLoop>(body: F, out: &mut [F::Item]) {
    body.run::<V3Isa>(out)
}

#[inline(never)]
fn run_fill_loop_baseline<F: FillLoop>(body: F, out: &mut [F::Item]) {
    body.run::<BaselineIsa>(out)
}
