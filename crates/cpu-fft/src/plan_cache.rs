//! A bounded cache of the plans of rustfft and realfft.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Element, Result};
use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};

/// Maximum number of cached plans for each number type (`f32`, `f64`).
const MAX_CACHED_PLANS: usize = 32;
/// Maximum total length, in points, of the cached plans for a number type. The most recent plan is cached even if it is longer.
const MAX_POINTS_OF_CACHED_PLANS: usize = 1 << 22;
/// Typical memory of a plan in complex numbers per point.
const PLAN_COMPLEX_NUMBERS_PER_POINT: usize = 3;

/// A type of real numbers that transforms support: `f32` or `f64`.
pub(crate) trait TransformFloat: FftNum + Element + Pod {
    /// Returns the cached plans for this type.
    fn plan_cache() -> &'static Mutex<PlanCache<Self>>;
}

macro_rules! real {
    ($($t:ty)*) => {$(
        impl TransformFloat for $t {
            fn plan_cache() -> &'static Mutex<PlanCache<$t>> {
                static PLANS: Mutex<PlanCache<$t>> = Mutex::new(PlanCache(Vec::new()));
                &PLANS
            }
        }
    )*};
}
real! { f32 f64 }

/// The direction of a transform, and whether its input or output is real.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransformKind {
    Forward,
    Inverse,
    FromReal,
    ToReal,
}

/// A plan for transforms of one length.
#[derive(Clone)]
pub(crate) enum FftPlan<T> {
    Complex(Arc<dyn Fft<T>>),
    FromReal(Arc<dyn RealToComplex<T>>),
    ToReal(Arc<dyn ComplexToReal<T>>),
}

/// Cached plans by kind and length, the least recently used first.
pub(crate) struct PlanCache<T>(Vec<(TransformKind, usize, FftPlan<T>)>);

impl<T: TransformFloat> PlanCache<T> {
    /// Returns the cached plan and marks it as recently used.
    fn find_cached_plan(&mut self, kind: TransformKind, n: usize) -> Option<FftPlan<T>> {
        let at = self.0.iter().rposition(|(k, length, _)| (*k, *length) == (kind, n))?;
        self.0[at..].rotate_left(1);
        self.0.last().map(|(_, _, plan)| plan.clone())
    }

    /// Adds a plan. Removes the least recently used plans beyond [`MAX_CACHED_PLANS`] and [`MAX_POINTS_OF_CACHED_PLANS`].
    fn insert_plan(&mut self, kind: TransformKind, n: usize, plan: FftPlan<T>) {
        self.0.push((kind, n, plan));
        let mut points = 0usize;
        let kept = self.0.iter().rev().take(MAX_CACHED_PLANS).take_while(|(_, n, _)| {
            points = points.saturating_add(*n);
            points <= MAX_POINTS_OF_CACHED_PLANS || points == *n
        });
        let removed = self.0.len() - kept.count();
        self.0.drain(..removed);
    }
}

/// Returns the plan for `n` points. Another thread may plan the same length at the same time; one of the plans is cached.
///
/// # Errors
/// Returns an error if memory of the typical size of a plan cannot be allocated.
pub(crate) fn get_or_create_plan<T: TransformFloat>(kind: TransformKind, n: usize) -> Result<FftPlan<T>> {
    let plans = || T::plan_cache().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = plans().find_cached_plan(kind, n) {
        return Ok(plan);
    }
    // rustfft and realfft abort if an allocation fails. Memory of the typical size of a plan is therefore allocated and freed first, so
    // that a lack of memory is returned as an error.
    try_reserve("fft", &mut Vec::<Complex<T>>::new(), n.saturating_mul(PLAN_COMPLEX_NUMBERS_PER_POINT))?;
    let plan = match kind {
        TransformKind::Forward => FftPlan::Complex(FftPlanner::new().plan_fft_forward(n)),
        TransformKind::Inverse => FftPlan::Complex(FftPlanner::new().plan_fft_inverse(n)),
        TransformKind::FromReal => FftPlan::FromReal(RealFftPlanner::new().plan_fft_forward(n)),
        TransformKind::ToReal => FftPlan::ToReal(RealFftPlanner::new().plan_fft_inverse(n)),
    };
    let mut plans = plans();
    if plans.find_cached_plan(kind, n).is_none() {
        plans.insert_plan(kind, n, plan.clone());
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded() {
        let mut plans = PlanCache::<f32>(Vec::new());
        let small = get_or_create_plan::<f32>(TransformKind::Forward, 4).unwrap();
        for n in 0..100 {
            plans.insert_plan(TransformKind::Forward, n, small.clone());
        }
        assert_eq!(plans.0.len(), MAX_CACHED_PLANS);
        assert!(
            plans.find_cached_plan(TransformKind::Forward, 67).is_none() && plans.find_cached_plan(TransformKind::Inverse, 99).is_none()
        );
        assert!(plans.find_cached_plan(TransformKind::Forward, 68).is_some(), "the oldest of those that are kept");
        plans.insert_plan(TransformKind::Forward, 100, small.clone());
        assert!(
            plans.find_cached_plan(TransformKind::Forward, 69).is_none() && plans.find_cached_plan(TransformKind::Forward, 68).is_some(),
            "used after 69"
        );
        plans.insert_plan(TransformKind::Forward, 2 * MAX_POINTS_OF_CACHED_PLANS, small.clone());
        assert_eq!(plans.0.len(), 1, "the last plan is kept whatever its length");
        plans.insert_plan(TransformKind::Forward, 8, small);
        assert_eq!(plans.0.len(), 1);
    }

    #[test]
    fn a_plan_without_memory_is_an_error() {
        assert!(get_or_create_plan::<f64>(TransformKind::Forward, usize::MAX / 64).is_err());
    }
}
