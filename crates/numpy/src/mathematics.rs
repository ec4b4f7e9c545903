//! Mathematical functions: differences, running sums, integrals, interpolation and convolution.

mod convolve;
mod cumulative;
mod diff;
mod gradient;
mod interp;
mod nan_to_num;
mod trapezoid;
mod unwrap;

pub use convolve::*;
pub use cumulative::*;
pub use diff::*;
pub use gradient::*;
pub use interp::*;
pub use nan_to_num::*;
pub use trapezoid::*;
pub use unwrap::*;
