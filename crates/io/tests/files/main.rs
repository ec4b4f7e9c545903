//! Files of every format, valid and damaged.

#![allow(clippy::unwrap_used)]

mod formats;
mod hostile;
