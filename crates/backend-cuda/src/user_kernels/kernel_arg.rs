//! Kernel arguments: arrays, numbers, structs.

use cuprum_core::error::shape_text;
use cuprum_core::{Complex, DType, Device, Error, NdArray, Result, bf16, f16};
use smallvec::SmallVec;

use super::kernel_signature::{Parameter, ParameterKind};
use super::launch::OP;
use crate::device;

/// An argument of [`RawKernel::launch`](super::RawKernel::launch). The macro [`args!`](crate::args) makes a list of arguments.
///
/// | Rust | CUDA C++ |
/// |---|---|
/// | `&a` | `const T*`, the first element of an array in C order; read-only |
/// | `&mut a` | `T*`, the first element of an array in C order; read and written |
/// | `2i32`, `2.0f32`, `true`, any number of a dtype's type | `int`, `float`, `bool`, ... by value |
/// | `2usize`, `-1isize` | `unsigned long long`, `long long` |
/// | [`Arg::strided`], [`Arg::strided_mut`] | the first element of an array with arbitrary strides |
/// | [`Arg::bytes`] | a struct by value |
/// | [`Arg::null`] | a null pointer |
///
/// Before a kernel writes an array, the array becomes the only owner of its memory ([`NdArray::make_unique`]). Other handles,
/// views and expressions keep the old values.
#[derive(Debug)]
pub struct Arg<'a>(ArgValue<'a>);

#[derive(Debug)]
enum ArgValue<'a> {
    Read(ArrayArg<&'a NdArray>),
    Write(ArrayArg<&'a mut NdArray>),
    Number(DType, Bytes),
    Bytes(Bytes),
    Null,
}

/// An array argument. `strided` tells whether the array may have arbitrary strides.
struct ArrayArg<A> {
    array: A,
    strided: bool,
}

impl<A: std::borrow::Borrow<NdArray>> std::fmt::Debug for ArrayArg<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let a = self.array.borrow();
        write!(f, "{} {} on {}", a.dtype(), shape_text(a.shape()), a.device())
    }
}

impl<'a> Arg<'a> {
    /// Returns an argument for a read-only array with arbitrary strides. The kernel receives the address of element 0. Pass the strides
    /// ([`NdArray::strides`], in elements) as further arguments.
    pub fn strided(array: &'a NdArray) -> Arg<'a> {
        Arg(ArgValue::Read(ArrayArg { array, strided: true }))
    }

    /// Returns an argument like [`Arg::strided`] for an array that the kernel writes. A launch fails if the array's memory has other
    /// owners, because a copy would change the strides.
    pub fn strided_mut(array: &'a mut NdArray) -> Arg<'a> {
        Arg(ArgValue::Write(ArrayArg { array, strided: true }))
    }

    /// Returns an argument that is a struct by value, given as its bytes in C++ layout.
    pub fn bytes(bytes: &[u8]) -> Arg<'static> {
        Arg(ArgValue::Bytes(Bytes::from_slice(bytes)))
    }

    /// Returns an argument that is a null pointer.
    pub fn null() -> Arg<'static> {
        Arg(ArgValue::Null)
    }

    /// Returns the size of the kernel parameter that takes this argument, in bytes.
    fn parameter_size(&self) -> usize {
        match &self.0 {
            ArgValue::Read(_) | ArgValue::Write(_) | ArgValue::Null => size_of::<u64>(),
            ArgValue::Number(_, bytes) | ArgValue::Bytes(bytes) => bytes.len(),
        }
    }

    /// Returns a description of the argument for error messages.
    fn describe_for_error(&self) -> String {
        match &self.0 {
            ArgValue::Read(held) => format!("an array of {held:?}"),
            ArgValue::Write(held) => format!("an array to write, of {held:?}"),
            ArgValue::Number(dtype, _) => dtype.to_string(),
            ArgValue::Bytes(bytes) => format!("{} bytes", bytes.len()),
            ArgValue::Null => "null".into(),
        }
    }

    pub(super) fn as_array(&self) -> Option<&NdArray> {
        match &self.0 {
            ArgValue::Read(held) => Some(held.array),
            ArgValue::Write(held) => Some(held.array),
            _ => None,
        }
    }

    /// Returns why the argument does not match a parameter of kind `kind`, or `None` if it matches.
    fn mismatch_reason(&self, kind: ParameterKind) -> Option<String> {
        match (kind, &self.0) {
            (ParameterKind::Pointer { .. }, ArgValue::Number(..)) => Some("which is an array's address".into()),
            (ParameterKind::Pointer { writes: true, .. }, ArgValue::Read(_)) => {
                Some("which the kernel may write: pass `&mut`, or declare it `const`".into())
            }
            (ParameterKind::Pointer { element: Some(element), .. }, ArgValue::Read(_) | ArgValue::Write(_)) => {
                let dtype = self.as_array()?.dtype();
                (dtype != element).then(|| format!("which is an array of {element}: use `astype`, or another kernel"))
            }
            (ParameterKind::Value(_), ArgValue::Read(_) | ArgValue::Write(_) | ArgValue::Null) => Some("which is a value".into()),
            (ParameterKind::Value(Some(declared)), ArgValue::Number(dtype, _)) => {
                (declared != *dtype).then(|| format!("which is a value of {declared}"))
            }
            _ => None,
        }
    }

    /// Returns the bytes of this argument for the launch. The argument must have passed [`evaluate_and_check_args`].
    fn parameter_bytes(&mut self) -> Result<Bytes> {
        Ok(match &mut self.0 {
            ArgValue::Read(held) => address_to_bytes(device::pointer_to_read(&held.array.stored()?)?),
            ArgValue::Write(held) => {
                if !held.strided {
                    held.array.make_unique()?;
                }
                address_to_bytes(device::pointer_to_write(&held.array.stored()?)?)
            }
            ArgValue::Number(_, bytes) | ArgValue::Bytes(bytes) => bytes.clone(),
            ArgValue::Null => address_to_bytes(0),
        })
    }
}

/// The bytes of one kernel argument, which the driver copies at the launch.
pub(super) type Bytes = SmallVec<[u8; 16]>;

fn address_to_bytes(pointer: u64) -> Bytes {
    Bytes::from_slice(&pointer.to_ne_bytes())
}

/// The known facts about a kernel's parameters: the types in its declaration, and the sizes that the driver reports.
#[derive(Debug)]
pub(super) struct ParameterInfo<'a> {
    /// The parameters in the kernel's declaration. `None` if the kernel has no declaration.
    pub declared: Option<&'a [Parameter]>,
    /// Sizes of the parameters in bytes. `None` if the driver does not report sizes.
    pub sizes: Option<&'a [usize]>,
}

/// Evaluates deferred arrays among `args`, and checks the arguments against the parameters of the kernel named `kernel`.
pub(super) fn evaluate_and_check_args(kernel: &str, device: Device, args: &mut [Arg], parameters: &ParameterInfo) -> Result<()> {
    let counts = [parameters.declared.map(<[_]>::len), parameters.sizes.map(<[_]>::len)];
    if let Some(count) = counts.into_iter().flatten().find(|&count| count != args.len()) {
        let list = parameters.declared.map(|all| all.iter().map(|p| p.text.as_str()).collect::<Vec<_>>().join(", "));
        let list = list.map_or(String::new(), |list| format!(" ({list})"));
        return Err(Error::value(OP, format!("{kernel} takes {count} arguments{list}, {} given", args.len())));
    }
    for (n, arg) in args.iter_mut().enumerate() {
        let declared = parameters.declared.and_then(|all| all.get(n));
        let place = || {
            let name = declared.map_or(String::new(), |p| format!(" (`{}`)", p.text));
            format!("{kernel}: argument {n}{name}")
        };
        if let Some(why) = declared.and_then(|p| arg.mismatch_reason(p.kind)) {
            let message = format!("{}, {why}, was given {}", place(), arg.describe_for_error());
            return Err(match arg.as_array() {
                Some(array) => Error::dtype(OP, message, &[array.dtype()]),
                None => Error::value(OP, message),
            });
        }
        if let Some(&size) = parameters.sizes.and_then(|all| all.get(n)).filter(|&&size| size != arg.parameter_size()) {
            return Err(Error::value(
                OP,
                format!("{} has {size} bytes, was given {} ({} bytes)", place(), arg.describe_for_error(), arg.parameter_size()),
            ));
        }
        arg.evaluate_and_check_array(place, device)?;
    }
    Ok(())
}

/// Returns the bytes of each of `args` for the launch. The arguments must have passed [`evaluate_and_check_args`]. Makes each array that
/// the kernel writes the only owner of its memory.
pub(super) fn args_to_bytes(args: &mut [Arg]) -> Result<SmallVec<[Bytes; 8]>> {
    args.iter_mut().map(Arg::parameter_bytes).collect()
}

/// Records after a launch that the arrays which the kernel writes depend on all array arguments. A fault that affects one of the arguments
/// then also affects the written arrays.
pub(super) fn record_dependencies(args: &[Arg]) -> Result<()> {
    let (mut written, mut used) = (SmallVec::<[_; 4]>::new(), SmallVec::<[_; 4]>::new());
    for arg in args {
        if let Some(array) = arg.as_array() {
            let stored = array.stored()?;
            if matches!(arg.0, ArgValue::Write(_)) {
                written.push(stored.clone());
            }
            used.push(stored);
        }
    }
    device::record_dependencies(&written, &used);
    Ok(())
}

impl Arg<'_> {
    /// Evaluates the argument if it is a deferred array. `place` describes the argument for error messages. Returns an error if the array
    /// is not on `device`, if it has a layout that the kernel cannot use, or if it is a strided array that the kernel writes and its memory
    /// has other owners.
    fn evaluate_and_check_array(&mut self, place: impl Fn() -> String, device: Device) -> Result<()> {
        let Some(array) = self.as_array() else { return Ok(()) };
        if array.device() != device {
            let message = format!("{} is on {}, the kernel on {device}; use `to_device`", place(), array.device());
            return Err(Error::Device { op: OP, message });
        }
        array.eval()?;
        match &mut self.0 {
            ArgValue::Read(held) if !held.strided && !held.array.is_contiguous()? => {
                let message = format!("{} has strides {:?}; use `contiguous`, or `Arg::strided`", place(), held.array.strides()?);
                Err(Error::shape(OP, message, &[held.array.shape()]))
            }
            ArgValue::Write(held) => {
                if held.strided && !held.array.is_unique() {
                    let why = "is written in place, but another array, view or expression shares its memory; copy it first";
                    return Err(Error::value(OP, format!("{} {why}", place())));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl<'a> From<&'a NdArray> for Arg<'a> {
    fn from(array: &'a NdArray) -> Arg<'a> {
        Arg(ArgValue::Read(ArrayArg { array, strided: false }))
    }
}

impl<'a> From<&'a mut NdArray> for Arg<'a> {
    fn from(array: &'a mut NdArray) -> Arg<'a> {
        Arg(ArgValue::Write(ArrayArg { array, strided: false }))
    }
}

/// Returns a scalar argument of `dtype` whose value has the bytes `bytes`.
pub(super) fn scalar_argument(dtype: DType, bytes: &[u8]) -> Arg<'static> {
    Arg(ArgValue::Number(dtype, Bytes::from_slice(bytes)))
}

macro_rules! numbers {
    ($($t:ty, $dtype:ident;)*) => {$(
        impl From<$t> for Arg<'_> {
            fn from(value: $t) -> Self {
                scalar_argument(DType::$dtype, &value.to_ne_bytes())
            }
        }
    )*};
}
numbers! {
    i8, I8; i16, I16; i32, I32; i64, I64; isize, I64;
    u8, U8; u16, U16; u32, U32; u64, U64; usize, U64;
    f16, F16; bf16, BF16; f32, F32; f64, F64;
}

impl From<bool> for Arg<'_> {
    fn from(value: bool) -> Self {
        scalar_argument(DType::Bool, &[value.into()])
    }
}
impl From<Complex<f32>> for Arg<'_> {
    fn from(value: Complex<f32>) -> Self {
        scalar_argument(DType::C64, &[value.re.to_ne_bytes(), value.im.to_ne_bytes()].concat())
    }
}
impl From<Complex<f64>> for Arg<'_> {
    fn from(value: Complex<f64>) -> Self {
        scalar_argument(DType::C128, &[value.re.to_ne_bytes(), value.im.to_ne_bytes()].concat())
    }
}

/// Makes arguments of [`RawKernel::launch`](crate::user_kernels::RawKernel::launch): arrays by `&` (read) or `&mut`
/// (written), numbers by value. See [`Arg`].
#[macro_export]
macro_rules! args {
    () => {{
        let none: [$crate::user_kernels::Arg<'static>; 0] = [];
        none
    }};
    ($($arg:expr),+ $(,)?) => { [$($crate::user_kernels::Arg::from($arg)),+] };
}

#[cfg(test)]
mod tests {
    use cuprum_core::testing::calls;
    use cuprum_core::{DeviceKind, Layout};

    use super::super::kernel_signature;
    use super::*;

    fn cuda() -> Device {
        Device::new(DeviceKind::intern("cuda").unwrap(), 0)
    }

    fn array(dtype: DType, layout: Layout) -> NdArray {
        calls::array(cuda(), dtype, layout).unwrap().into()
    }

    fn vector(dtype: DType, n: usize) -> NdArray {
        array(dtype, Layout::contiguous(&[n]).unwrap())
    }

    /// Returns the error for arguments of a kernel with this declaration and these parameter sizes.
    fn check_error<const N: usize>(declared: &str, sizes: Option<&[usize]>, mut args: [Arg; N]) -> String {
        let declared = kernel_signature::parse_parameters(declared).filter(|all| !all.is_empty());
        match evaluate_and_check_args("k", cuda(), &mut args, &ParameterInfo { declared: declared.as_deref(), sizes }) {
            Ok(()) => "accepted".into(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn counts_kinds_and_dtypes_are_checked() {
        let (x, mut y) = (vector(DType::F64, 4), vector(DType::F32, 4));
        let k = "const float* x, float* y, int n";
        assert_eq!(check_error(k, None, args![&x, 4]), "[RawKernel] k takes 3 arguments (const float* x, float* y, int n), 2 given");
        let why = check_error(k, None, args![&x, &mut y, 4]);
        assert_eq!(
            why,
            "[RawKernel] k: argument 0 (`const float* x`), which is an array of float32: use `astype`, or another kernel, was given an \
             array of float64 (4,) on cuda:0 (dtypes: float64)"
        );
        let x = vector(DType::F32, 4);
        assert!(check_error(k, None, args![&x, &x, 4]).contains("argument 1 (`float* y`), which the kernel may write: pass `&mut`"));
        assert!(check_error(k, None, args![&x, &mut y, 4i64]).contains("argument 2 (`int n`), which is a value of int32, was given int64"));
        assert!(check_error(k, None, args![&x, &mut y, &x]).contains("argument 2 (`int n`), which is a value, was given an array"));
        assert!(check_error(k, None, args![1.0f32, &mut y, 4]).contains("argument 0 (`const float* x`), which is an array's address"));
        assert!(
            check_error(k, None, args![&x, Arg::null(), Arg::null()]).contains("argument 2 (`int n`), which is a value, was given null")
        );
        assert_eq!(check_error(k, None, args![&x, Arg::null(), 4]), "accepted", "null pointers are allowed");
        assert!(check_error("const T* x, Params p", None, args![&x, Arg::bytes(&[1; 24])]).contains("accepted"));
    }

    #[test]
    fn sizes_are_checked_without_a_declaration() {
        let x = vector(DType::F64, 4);
        assert_eq!(check_error("", Some(&[8, 4]), args![&x]), "[RawKernel] k takes 2 arguments, 1 given");
        assert!(check_error("", Some(&[8, 4]), args![&x, 4i64]).contains("argument 1 has 4 bytes, was given int64 (8 bytes)"));
        assert!(check_error("", Some(&[8, 24]), args![&x, Arg::bytes(&[0; 20])]).contains("argument 1 has 24 bytes, was given 20 bytes"));
        assert_eq!(check_error("", Some(&[]), args![]), "accepted");
    }

    #[test]
    fn arrays_must_be_contiguous_and_on_the_kernel_device() {
        let x = vector(DType::F32, 4);
        let other: NdArray = calls::array(Device::new(cuda().kind(), 1), DType::F32, Layout::contiguous(&[4]).unwrap()).unwrap().into();
        assert!(check_error("", None, args![&other]).contains("argument 0 is on cuda:1, the kernel on cuda:0; use `to_device`"));
        let strided = array(DType::F32, Layout::strided(&[4], &[2], 0).unwrap());
        assert!(check_error("", None, args![&strided]).contains("argument 0 has strides [2]; use `contiguous`, or `Arg::strided`: (4,)"));
        assert_eq!(check_error("", None, args![Arg::strided(&strided)]), "accepted");
        let mut shared = x.clone();
        assert!(check_error("", None, args![Arg::strided_mut(&mut shared)]).contains("shares its memory; copy it first"));
    }

    #[test]
    fn a_list_can_be_launched_again() {
        let mut list = args![7i32, Arg::bytes(&[1, 2, 3]), Arg::null()];
        let first = args_to_bytes(&mut list).unwrap();
        assert_eq!(first.iter().map(|b| b.len()).collect::<Vec<_>>(), [4, 3, 8]);
        assert_eq!(args_to_bytes(&mut list).unwrap(), first);
        assert_eq!(list.each_ref().map(Arg::parameter_size), [4, 3, 8]);
    }

    #[test]
    fn numbers_are_their_bytes() {
        let bytes = |arg: Arg| match arg.0 {
            ArgValue::Number(dtype, bytes) => (dtype, bytes.to_vec()),
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes(Arg::from(-2)), (DType::I32, (-2i32).to_ne_bytes().to_vec()));
        assert_eq!(bytes(Arg::from(3usize)), (DType::U64, 3u64.to_ne_bytes().to_vec()));
        assert_eq!(bytes(Arg::from(true)), (DType::Bool, vec![1]));
        assert_eq!(bytes(Arg::from(f16::ONE)).1.len(), 2);
        let c = Complex::new(1.0f32, 2.0);
        assert_eq!(bytes(Arg::from(c)), (DType::C64, [1.0f32.to_ne_bytes(), 2.0f32.to_ne_bytes()].concat()));
    }
}
