//! Typed parameter lists of CUDA kernels.
//!
//! [`kernel_parameters!`] declares the parameter list of one kernel as a struct. The fields of the struct have the names, order and types
//! of the parameters in the `.cu` source. A test in the module `parameter_tests` compares the two.

use cuprum_backend_cuda::codegen::Bytes;
use cuprum_backend_cuda::module::Args;

/// A value that a kernel takes as one parameter.
pub trait KernelParameter {
    /// Appends the value to the argument list of a launch.
    fn push_to_args<'a>(&'a self, args: &mut Args<'a>);

    /// Returns whether the C++ parameter type `declared` is the type of this value.
    #[cfg(test)]
    fn matches(declared: &str) -> bool;
}

/// The name of a kernel parameter, and a function that returns whether a C++ type is the type of the parameter.
#[cfg(test)]
pub type ParameterCheck = (&'static str, fn(&str) -> bool);

/// The complete parameter list of one kernel.
pub trait KernelParameters {
    /// Name of the `extern "C"` kernel.
    const KERNEL_NAME: &'static str;

    /// Returns pointers to the parameters, in order.
    fn argument_pointers(&self) -> Args<'_>;

    /// Returns the name of each parameter, with a function that checks its C++ type.
    #[cfg(test)]
    fn declaration() -> Vec<ParameterCheck>;
}

/// A device address, as a C++ pointer. The address may be null (0) if the kernel does not use the parameter.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct DevicePointer(pub u64);

/// A number of the C++ type `Index`, an alias of `i32` or `i64` in each kernel source.
///
/// The value is stored in 64 bits. A kernel with 32-bit indices reads the low half, which comes first on a little-endian host.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct IndexParam(pub u64);

/// The C++ struct `Params`: input addresses, the address of the error word if the program may fault, and scalars of the fused program.
#[derive(Debug)]
pub struct ProgramParams(pub Bytes);

/// The C++ struct `Axes`: extents of the outer axes, and the strides of each input along them.
#[derive(Debug)]
pub struct AxesParam(pub Bytes);

/// The C++ struct `Offsets`: one offset or stride for each input, in elements.
#[derive(Debug)]
pub struct OffsetsParam(pub Bytes);

/// Implements [`KernelParameter`] for types that are passed by value.
macro_rules! parameter_by_value {
    ($($type:ty: $matches:expr;)*) => { $(
        impl KernelParameter for $type {
            #[inline]
            fn push_to_args<'a>(&'a self, args: &mut Args<'a>) {
                args.push(self);
            }

            #[cfg(test)]
            fn matches(declared: &str) -> bool {
                $matches(declared)
            }
        }
    )* };
}
pub(crate) use parameter_by_value;

parameter_by_value! {
    u32: |declared| declared == "u32";
    u64: |declared| declared == "u64";
    i64: |declared| declared == "i64";
    IndexParam: |declared| declared == "Index";
    DevicePointer: |declared: &str| declared.ends_with('*');
}

/// Implements [`KernelParameter`] for structs that hold the bytes of a C++ struct.
macro_rules! packed_parameter {
    ($($type:ty: $matches:expr;)*) => { $(
        impl KernelParameter for $type {
            #[inline]
            fn push_to_args<'a>(&'a self, args: &mut Args<'a>) {
                args.push_bytes(&self.0);
            }

            #[cfg(test)]
            fn matches(declared: &str) -> bool {
                $matches(declared)
            }
        }
    )* };
}

packed_parameter! {
    ProgramParams: |declared| declared == "Params";
    AxesParam: |declared: &str| declared == "RowAxes" || declared.starts_with("Axes<");
    OffsetsParam: |declared: &str| declared.starts_with("Offsets<");
}

/// Declares the parameter list of a kernel: `struct ScanRows for "scan_rows" { params: ProgramParams, .. }`.
macro_rules! kernel_parameters {
    ($(#[$attribute:meta])* struct $name:ident for $kernel:literal { $($field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl $crate::kernel_parameter_lists::KernelParameters for $name {
            const KERNEL_NAME: &'static str = $kernel;

            #[inline]
            fn argument_pointers(&self) -> cuprum_backend_cuda::module::Args<'_> {
                let mut args = cuprum_backend_cuda::module::Args::new();
                $($crate::kernel_parameter_lists::KernelParameter::push_to_args(&self.$field, &mut args);)*
                args
            }

            #[cfg(test)]
            fn declaration() -> Vec<$crate::kernel_parameter_lists::ParameterCheck> {
                vec![$((stringify!($field), <$type as $crate::kernel_parameter_lists::KernelParameter>::matches),)*]
            }
        }
    };
}
pub(crate) use kernel_parameters;
