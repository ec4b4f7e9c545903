//! Conversions to and from arrays of other crates, each behind a feature of the same name.
//!
//! `docs/interop.md` lists for each conversion whether it copies.

#[cfg(feature = "approx")]
mod approx;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;
