//! Scalar helper functions shared by several operations. Each macro expands to a `kernel!` block with the macro's helper functions,
//! followed by the functions that are passed to the macro.

#[macro_use]
mod bessel;
#[macro_use]
mod logarithm;
#[macro_use]
mod error_function;
#[macro_use]
mod gamma;
#[macro_use]
mod incomplete_gamma;
#[macro_use]
mod zeta;
#[macro_use]
mod beta;
