//! Functions of numbers that several operations use. Each macro expands to one `kernel!` block: its functions, then the given ones.

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
