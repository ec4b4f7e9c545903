//! Exchange of arrays with other libraries by [DLPack](https://dmlc.github.io/dlpack/latest/) 1.x, without copies, on the host and on
//! CUDA devices.
//!
//! [`export`] and [`export_owned`] return the versioned structure, [`export_legacy`] the one of DLPack 0.x. [`import`] takes either.
//! The structures and their owning handles are those of the crate [`dlpark`].
//!
//! ```
//! # use cuprum_backend_cpu as _;
//! # extern crate cuprum_core as cuprum;
//! use cuprum::{DType, NdArray};
//! use cuprum_dlpack::{export, import};
//! # fn main() -> cuprum::Result<()> {
//! let a = NdArray::from_vec([1.0f32, 2.0, 3.0, 4.0], (2, 2))?.t()?;
//! let tensor = export(&a)?.into_raw(); // for a C function, which calls its deleter
//! // SAFETY: `tensor` was just exported, and nothing writes to its elements.
//! let b = unsafe { import(tensor) }?;
//! assert_eq!((b.dtype(), b.shape()), (DType::F32, &[2, 2][..]));
//! assert_eq!(b.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Contract
//!
//! Arrays are immutable values that share memory, so both directions keep memory constant while an array uses it:
//!
//! - [`export`] copies nothing and sets the flag `READ_ONLY`. [`export_owned`] permits writes, so it copies the elements if anything else
//!   uses their memory. [`export_legacy`] also permits writes, since the older structure has no flags that could forbid them.
//! - An imported array is never written in place, whether or not it is read-only, and its producer must not write to it either. Only a
//!   writable host tensor with the flag `IS_COPIED` may be written in place, since it belongs to the consumer.
//! - An imported tensor's deleter is called once: after the array's last use, or before an error is returned. On a CUDA device, the last
//!   use ends when the device's work ends. A later call of a function of cuprum detects this and calls the deleter.
//! - On CUDA devices, the consumer's stream waits for the work that computes an exported array. Work that uses an imported array waits for
//!   the producer's stream ([`StreamNumber`]).
//!
//! Bool, integers, floats, bfloat16 and complex numbers are exchanged, in native byte order, with any strides. Other types, including
//! sub-byte and vector types, are errors, and so are other devices. The error names the type or the device.
#![deny(unsafe_code)]

mod dtype;
#[allow(unsafe_code)] // builds the C structures of exported tensors
mod export;
#[allow(unsafe_code)] // reads the C structures of imported tensors
mod import;
#[allow(unsafe_code)] // converts numbers to handles of CUDA streams
mod stream_number;

pub use dlpark;
pub use dlpark::ffi;
pub use export::{Exporter, LegacyTensor, ManagedTensor, device_of, export, export_legacy, export_owned};
pub use import::{import, import_on};
pub use stream_number::{StreamNumber, consumer_stream};
