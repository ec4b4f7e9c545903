//! Common parts of the kernels that a user defines by strings: parsed parameters, the dtypes that follow from the arguments, and the
//! generated source.

use std::fmt::Write;
use std::hash::Hasher;

use cuprum_core::layout::{Dims, broadcast_shapes};
use cuprum_core::{DType, Device, Error, NdArray, Operand, Result, StoredArray, broadcast_to};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::RawSource;
use super::kernel_arg::{self, Arg};
use crate::codegen::{self, ctype};
use crate::compile::single_flight::SingleFlight;

/// The name and the parsed parameters of a kernel that a user declares by strings such as `float32 x, raw T y`.
#[derive(Clone, Debug)]
pub(super) struct KernelDeclaration {
    /// Name of the public type that the user's code constructs, for error messages.
    op: &'static str,
    pub name: String,
    pub inputs: Vec<DeclaredParameter>,
    pub outputs: Vec<DeclaredParameter>,
}

/// A declared parameter, such as `raw T y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeclaredParameter {
    pub name: String,
    declared_type: DeclaredType,
    /// Whether the user's code receives a pointer to the whole array instead of one element.
    pub raw: bool,
}

/// The type in the declaration of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeclaredType {
    /// A dtype, such as `float32`.
    Fixed(DType),
    /// A letter that stands for any dtype. Parameters with the same letter have the same dtype.
    Any(char),
}

/// The inputs of a launch. An array argument is broadcast to the common shape. The array of a raw parameter is the whole array in C order.
/// A scalar argument is `None`.
pub(super) type InputViews = SmallVec<[Option<NdArray>; 8]>;

impl DeclaredParameter {
    /// Returns the letter that stands for any dtype (`T` in `T x`), or `None` if the parameter has a fixed dtype.
    pub fn generic_type_letter(&self) -> Option<char> {
        if let DeclaredType::Any(letter) = self.declared_type { Some(letter) } else { None }
    }
}

impl KernelDeclaration {
    /// Parses the declarations of inputs and outputs. Returns an error if a declaration or the name of the kernel is invalid.
    pub fn new(op: &'static str, inputs: &str, outputs: &str, name: &str) -> Result<KernelDeclaration> {
        let (inputs, outputs) = (parse_parameters(op, inputs)?, parse_parameters(op, outputs)?);
        if outputs.is_empty() || outputs.iter().any(|o| o.raw) {
            return Err(Error::value(op, "outputs are one or more, and not raw: use RawKernel for scattered results"));
        }
        if let Some(lost) = outputs
            .iter()
            .find(|o| matches!(o.declared_type, DeclaredType::Any(_)) && inputs.iter().all(|i| i.declared_type != o.declared_type))
        {
            return Err(Error::value(op, format!("no input determines the dtype of output `{}`", lost.name)));
        }
        check_identifier(op, name)?;
        Ok(KernelDeclaration { op, name: name.to_owned(), inputs, outputs })
    }

    /// Returns the name of the kernel in its module: the user's name with a prefix, which avoids clashes with CUDA functions.
    pub fn kernel_symbol(&self) -> String {
        format!("cuprum_{}", self.name)
    }

    /// Returns an [`Error::Value`] that names the kernel.
    pub fn value_error(&self, message: impl std::fmt::Display) -> Error {
        Error::value(self.op, format!("{}: {message}", self.name))
    }

    /// Returns the dtypes of the inputs, then of the outputs. A generic letter, such as `T` in `T x`, stands for the dtype of the array
    /// arguments that are declared with this letter. If there are no such arrays, the letter stands for the default dtype of the first such
    /// scalar argument.
    pub fn resolve_dtypes(&self, args: &[Operand]) -> Result<SmallVec<[DType; 8]>> {
        if args.len() != self.inputs.len() {
            return Err(Error::value(self.op, format!("{} takes {} inputs, {} given", self.name, self.inputs.len(), args.len())));
        }
        let mut letters: SmallVec<[(char, DType); 4]> = SmallVec::new();
        let known = |letters: &[(char, DType)], of: DeclaredType| match of {
            DeclaredType::Fixed(dtype) => Some(dtype),
            DeclaredType::Any(letter) => letters.iter().find(|(l, _)| *l == letter).map(|(_, d)| *d),
        };
        let arrays = || self.inputs.iter().zip(args).filter_map(|(p, arg)| Some((p, operand_as_array(arg)?.dtype())));
        let numbers = self.inputs.iter().zip(args).filter_map(|(p, arg)| match arg {
            Operand::Scalar(s) => Some((p, s.default_dtype())),
            Operand::Array(_) => None,
        });
        for (p, dtype) in arrays().chain(numbers) {
            if let (DeclaredType::Any(letter), None) = (p.declared_type, known(&letters, p.declared_type)) {
                letters.push((letter, dtype));
            }
        }
        for (p, given) in arrays() {
            if let Some(wanted) = known(&letters, p.declared_type).filter(|d| *d != given) {
                let message = format!("{}: `{}` is {wanted} here; use astype", self.name, p.name);
                return Err(Error::dtype(self.op, message, &[given]));
            }
        }
        for (p, arg) in self.inputs.iter().zip(args) {
            let Operand::Scalar(s) = arg else { continue };
            if p.raw {
                return Err(self.value_error(format!("`{}` is raw: an array, not a number", p.name)));
            }
            if let Some(dtype) = known(&letters, p.declared_type) {
                s.check_fits_dtype(self.op, dtype)?;
                if s.weak_promote(dtype) != dtype {
                    return Err(Error::dtype(
                        self.op,
                        format!("{}: `{}` is {dtype} here, which cannot hold {s:?}", self.name, p.name),
                        &[],
                    ));
                }
            }
        }
        let all = self.inputs.iter().chain(&self.outputs);
        all.map(|p| {
            known(&letters, p.declared_type).ok_or_else(|| self.value_error(format!("no argument determines the dtype of `{}`", p.name)))
        })
        .collect()
    }

    /// Returns the common device of the array arguments, or the current device if there are none.
    pub fn common_device(&self, args: &[Operand]) -> Result<Device> {
        let mut devices = args.iter().filter_map(operand_as_array).map(NdArray::device);
        let Some(first) = devices.next() else { return Device::current() };
        match devices.find(|d| *d != first) {
            Some(other) => Err(Error::Device { op: self.op, message: format!("{}: inputs are on {first} and {other}", self.name) }),
            None => Ok(first),
        }
    }

    /// Returns the array arguments that are broadcast: all array arguments except those of raw parameters.
    pub fn arrays_to_broadcast<'a>(&'a self, args: &'a [Operand]) -> impl Iterator<Item = &'a NdArray> {
        self.inputs.iter().zip(args).filter(|(p, _)| !p.raw).filter_map(|(_, arg)| operand_as_array(arg))
    }

    /// Returns the shape to which the array arguments are broadcast, or `None` if all arrays are raw.
    pub fn common_shape(&self, args: &[Operand]) -> Result<Option<Dims>> {
        let shapes: SmallVec<[&[usize]; 8]> = self.arrays_to_broadcast(args).map(NdArray::shape).collect();
        if shapes.is_empty() { Ok(None) } else { broadcast_shapes(self.op, &shapes).map(Some) }
    }

    /// Returns the inputs of a launch: arrays are broadcast to `shape`, raw arrays are made contiguous, and scalars are `None`.
    pub fn input_views(&self, args: &[Operand], shape: &[usize]) -> Result<InputViews> {
        let views = self.inputs.iter().zip(args).map(|(p, arg)| match arg {
            Operand::Array(a) if p.raw => a.contiguous().map(Some),
            Operand::Array(a) => broadcast_to(a, shape).map(Some),
            Operand::Scalar(_) => Ok(None),
        });
        views.collect()
    }

    /// Returns the arrays of which the kernel reads one element per iteration: all `views` except raw arrays.
    pub fn elementwise_arrays(&self, views: &InputViews) -> Result<SmallVec<[StoredArray; 8]>> {
        self.inputs.iter().zip(views).filter(|(p, _)| !p.raw).filter_map(|(_, view)| view.as_ref()).map(NdArray::stored).collect()
    }

    /// Returns the kernel arguments for the inputs: a pointer for each array, a number for each scalar. `args` must have passed
    /// [`KernelDeclaration::resolve_dtypes`], and `views` are the result of [`KernelDeclaration::input_views`].
    pub fn kernel_arguments<'a>(&self, args: &[Operand], views: &'a InputViews, dtypes: &[DType]) -> SmallVec<[Arg<'a>; 8]> {
        let one = |((arg, view), &dtype): ((&Operand, &'a Option<NdArray>), &DType)| match (arg, view) {
            (Operand::Scalar(s), _) => Some(kernel_arg::scalar_argument(dtype, &s.to_bytes(dtype)[..dtype.itemsize()])),
            (_, view) => view.as_ref().map(Arg::strided),
        };
        args.iter().zip(views).zip(dtypes).filter_map(one).collect()
    }
}

/// Everything that a compiled specialisation of a kernel depends on, besides the definition of the kernel.
#[derive(Clone, Debug)]
pub(super) struct KernelSpecialization {
    pub device: Device,
    /// Dtypes of the inputs, followed by those of the outputs.
    pub dtypes: SmallVec<[DType; 8]>,
    /// For each input, whether the argument is a scalar instead of an array.
    pub is_scalar: SmallVec<[bool; 8]>,
    /// Number of axes over which the kernel loops.
    pub rank: usize,
    /// Whether indices and offsets need 64 bits.
    pub wide: bool,
}

impl KernelSpecialization {
    /// Returns a key that distinguishes this specialisation from others of the same kernel.
    fn cache_key(&self) -> SmallVec<[u8; 64]> {
        let KernelSpecialization { device, dtypes, is_scalar, rank, wide } = self;
        let mut key = SmallVec::new();
        key.extend([device.ordinal(), *rank].iter().flat_map(|n| n.to_le_bytes()));
        key.extend(dtypes.iter().map(|&d| d as u8).chain(is_scalar.iter().map(|&is| u8::from(is))));
        key.push(u8::from(*wide));
        key.extend_from_slice(device.kind().name().as_bytes());
        key
    }
}

/// The compiled specialisations of one kernel, and their common preamble and options. Each specialisation is compiled once. Threads wait
/// for the compilation only if they need the same specialisation.
#[derive(Debug)]
pub(super) struct SpecializationCache<K> {
    kernels: SingleFlight<K>,
    preamble: String,
    options: Vec<String>,
}

impl<K> Default for SpecializationCache<K> {
    fn default() -> Self {
        SpecializationCache { kernels: SingleFlight::default(), preamble: String::new(), options: Vec::new() }
    }
}

impl<K: Clone> SpecializationCache<K> {
    /// Sets user code that precedes the kernel. Drops compiled specialisations.
    pub fn with_preamble(self, preamble: String) -> SpecializationCache<K> {
        SpecializationCache { preamble, kernels: SingleFlight::default(), ..self }
    }

    /// Adds an NVRTC option. Drops compiled specialisations.
    pub fn with_option(mut self, option: String) -> SpecializationCache<K> {
        self.options.push(option);
        SpecializationCache { kernels: SingleFlight::default(), ..self }
    }

    /// Returns the compiled kernel of the specialisation `used`. The first call compiles the kernel with `make`.
    pub fn get_or_compile(&self, used: &KernelSpecialization, make: impl FnOnce(&KernelSpecialization) -> Result<K>) -> Result<K> {
        let key = used.cache_key();
        let mut hasher = FxHasher::default();
        hasher.write(&key);
        self.kernels.get_or_make(hasher.finish(), &key, || make(used))
    }

    /// Returns a writer for the CUDA source of the specialisation `used`. After the caller has written the kernel,
    /// [`Self::finish_source`] returns the complete source.
    pub fn source_writer<'a>(&self, declared: &'a KernelDeclaration, used: &'a KernelSpecialization) -> SourceWriter<'a> {
        SourceWriter::new(declared, &used.dtypes, &self.preamble)
    }

    /// Returns the complete CUDA source of the specialisation whose code was written to `text`.
    pub fn finish_source(&self, text: SourceWriter) -> RawSource {
        let name = &text.declared.name;
        let source = RawSource::new([codegen::CUDA_PRELUDE, &text.out].concat()).with_name(format!("{name}.cu"));
        source.with_headers(text.headers).with_options(&self.options)
    }
}

/// A writer of the CUDA source of one specialisation of a user-defined kernel, without the prelude. User code is in headers, so that
/// compiler messages show the line numbers of the user's code.
pub(super) struct SourceWriter<'a> {
    declared: &'a KernelDeclaration,
    /// Dtypes of the inputs, followed by those of the outputs.
    dtypes: &'a [DType],
    pub out: String,
    /// Names and sources of the headers that contain user code.
    pub headers: Vec<(String, String)>,
}

impl<'a> SourceWriter<'a> {
    /// Creates a writer whose source begins with a type alias for each generic dtype (`using T = float;`) and the user's preamble.
    pub fn new(declared: &'a KernelDeclaration, dtypes: &'a [DType], preamble: &str) -> SourceWriter<'a> {
        let mut text = SourceWriter { declared, dtypes, out: String::new(), headers: Vec::new() };
        let mut letters: SmallVec<[char; 4]> = SmallVec::new();
        for (p, &dtype) in declared.inputs.iter().chain(&declared.outputs).zip(dtypes) {
            if let Some(letter) = p.generic_type_letter()
                && !letters.contains(&letter)
            {
                letters.push(letter);
                text.push_line(format_args!("using {letter} = {};", computation_ctype(dtype)));
            }
        }
        text.include_user_code("preamble", preamble);
        text
    }

    /// Adds a line to the source.
    pub fn push_line(&mut self, line: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{line}"); // writing to a String cannot fail
    }

    /// Adds the user code `code` as a header and includes it. Compiler messages show `part` in the header's name.
    pub fn include_user_code(&mut self, part: &str, code: &str) {
        let name = format!("{}.{part}", self.declared.name);
        self.push_line(format_args!("#include \"{name}\""));
        self.headers.push((name, code.to_owned()));
    }

    pub fn inputs_with_dtypes(&self) -> impl Iterator<Item = (&'a DeclaredParameter, DType)> + use<'a> {
        self.declared.inputs.iter().zip(self.dtypes.iter().copied())
    }

    pub fn outputs_with_dtypes(&self) -> impl Iterator<Item = (&'a DeclaredParameter, DType)> + use<'a> {
        self.declared.outputs.iter().zip(self.dtypes.iter().skip(self.declared.inputs.len()).copied())
    }
}

fn operand_as_array(arg: &Operand) -> Option<&NdArray> {
    match arg {
        Operand::Array(a) => Some(a),
        Operand::Scalar(_) => None,
    }
}

/// Returns the C++ type in which elements of `dtype` are stored.
pub(super) fn storage_ctype(dtype: DType) -> String {
    if dtype == DType::Bool { ctype(dtype).into() } else { format!("cuprum::{}", ctype(dtype)) }
}

/// Returns the C++ type in which elements of `dtype` are computed.
pub(super) fn computation_ctype(dtype: DType) -> String {
    storage_ctype(computation_dtype(dtype))
}

/// Returns the dtype in which elements of `dtype` are computed: float32 for 16-bit floats, else `dtype`.
pub(super) fn computation_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

fn check_identifier(op: &'static str, name: &str) -> Result<()> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.starts_with(|c: char| !c.is_ascii_digit());
    if is_name { Ok(()) } else { Err(Error::value(op, format!("`{name}` is not a name"))) }
}

/// Parses declarations such as `float32 x, raw T y`.
fn parse_parameters(op: &'static str, declarations: &str) -> Result<Vec<DeclaredParameter>> {
    let one = |text: &str| -> Result<DeclaredParameter> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (raw, of, name) = match words[..] {
            [of, name] => (false, of, name),
            ["raw", of, name] => (true, of, name),
            _ => return Err(Error::value(op, format!("`{}` is not `dtype name` or `raw dtype name`", text.trim()))),
        };
        check_identifier(op, name)?;
        if name == "i" || name == "n" || name.starts_with("cuprum_") {
            return Err(Error::value(op, format!("the name `{name}` is reserved: i is the element's index, n the number of elements")));
        }
        let mut letters = of.chars();
        let of = match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_uppercase() => DeclaredType::Any(letter),
            _ => DeclaredType::Fixed(DType::parse(of)?),
        };
        Ok(DeclaredParameter { name: name.into(), declared_type: of, raw })
    };
    declarations.split(',').filter(|d| !d.trim().is_empty()).map(one).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use cuprum_core::testing::calls;
    use cuprum_core::{DeviceKind, Layout};

    use super::*;
    use crate::testing::compiler;

    pub fn cuda() -> Device {
        Device::new(DeviceKind::intern("cuda").unwrap(), 0)
    }

    pub fn array(dtype: DType) -> Operand {
        Operand::Array(calls::array(cuda(), dtype, Layout::contiguous(&[3]).unwrap()).unwrap().into())
    }

    pub fn why<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    /// Returns the specialisation that a call with `args` uses.
    pub fn used(declared: &KernelDeclaration, args: &[Operand], rank: usize, wide: bool) -> KernelSpecialization {
        let is_scalar = args.iter().map(|a| super::operand_as_array(a).is_none()).collect();
        KernelSpecialization { device: cuda(), dtypes: declared.resolve_dtypes(args).unwrap(), is_scalar, rank, wide }
    }

    #[test]
    fn axes_have_the_size_of_the_struct() {
        let Some(compiler) = compiler() else { return };
        let mut text = String::from(codegen::CUDA_PRELUDE);
        for (rank, operands, wide) in (0..4).flat_map(|r| (1..4).flat_map(move |n| [(r, n, false), (r, n, true)])) {
            let strides = vec![vec![1isize; rank]; operands];
            let packed = codegen::pack_axes(&vec![2; rank], strides.iter().map(|s| &s[..]), wide);
            let axes = format!("cuprum::Axes<cuprum::{}, {rank}, {operands}>", codegen::index_type(wide));
            let _ = writeln!(text, "static_assert(sizeof({axes}) == {}, \"{axes}\");", packed.len());
        }
        RawSource::new(text).compile_code(&compiler, 90).unwrap();
    }

    #[test]
    fn each_specialization_is_compiled_once() {
        let declared = KernelDeclaration::new("Op", "T x, T y", "T z", "f").unwrap();
        let (x, other) = (array(DType::F32), array(DType::F64));
        let base = used(&declared, &[x.clone(), x.clone()], 1, false);
        let uses = [
            base.clone(),
            KernelSpecialization { rank: 2, ..base.clone() },
            KernelSpecialization { wide: true, ..base.clone() },
            KernelSpecialization { device: Device::new(cuda().kind(), 1), ..base.clone() },
            used(&declared, &[x, 1.into()], 1, false),
            used(&declared, &[other.clone(), other], 1, false),
        ];
        let built = SpecializationCache::default();
        for round in 0..2 {
            for (n, one) in uses.iter().enumerate() {
                let make = |_: &KernelSpecialization| if round == 0 { Ok(n) } else { Err(Error::value("Op", "compiled twice")) };
                assert_eq!(built.get_or_compile(one, make).unwrap(), n);
            }
        }
    }

    #[test]
    fn specializations_do_not_wait_for_each_other() {
        let declared = KernelDeclaration::new("Op", "T x", "T y", "f").unwrap();
        let [slow, quick] = [1, 2].map(|rank| used(&declared, &[array(DType::F32)], rank, false));
        let built = SpecializationCache::default();
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let compile_slowly = |_: &KernelSpecialization| {
                scope.spawn(|| done.send(built.get_or_compile(&quick, |_| Ok(2)).unwrap()).unwrap());
                Ok(wait.recv_timeout(std::time::Duration::from_secs(20)).unwrap_or(0))
            };
            assert_eq!(built.get_or_compile(&slow, compile_slowly).unwrap(), 2);
        });
    }

    #[test]
    fn declarations_are_read() {
        let all = parse_parameters("Op", "float32 x, T y,\n raw int64 table").unwrap();
        let names: Vec<_> = all.iter().map(|p| (p.name.as_str(), p.declared_type, p.raw)).collect();
        let expected = [
            ("x", DeclaredType::Fixed(DType::F32), false),
            ("y", DeclaredType::Any('T'), false),
            ("table", DeclaredType::Fixed(DType::I64), true),
        ];
        assert_eq!(names, expected);
        let refused = |inputs, outputs, name| why(KernelDeclaration::new("Op", inputs, outputs, name));
        assert!(refused("float32", "T y", "f").contains("`float32` is not `dtype name`"));
        assert!(refused("raw T x z", "T y", "f").contains("is not `dtype name` or `raw dtype name`"));
        assert!(refused("string x", "T y", "f").contains("string"));
        assert!(refused("T x", "U y", "f").contains("no input determines the dtype of output `y`"));
        assert!(refused("T x", "raw T y", "f").contains("not raw"));
        assert!(refused("T x", "", "f").contains("one or more"));
        assert!(refused("T i", "T y", "f").contains("`i` is reserved"));
        assert!(refused("T x", "T y", "a b").contains("`a b` is not a name"));
        assert!(refused("T x", "T 2y", "f").contains("`2y` is not a name"));
    }

    #[test]
    fn dtypes_follow_from_arrays_then_numbers() {
        let declared = KernelDeclaration::new("Op", "T x, T y, float64 z", "T a, bool b", "f").unwrap();
        let dtypes = |args: &[Operand]| declared.resolve_dtypes(args).map(|d| d.to_vec());
        let half = array(DType::F16);
        assert_eq!(dtypes(&[2.into(), half.clone(), 1.into()]).unwrap(), [DType::F16, DType::F16, DType::F64, DType::F16, DType::Bool]);
        assert_eq!(dtypes(&[2.into(), 3.into(), 1.into()]).unwrap()[3], DType::I64);
        assert!(why(dtypes(&[half.clone(), array(DType::F32), 1.into()])).contains("`y` is float16 here; use astype (dtypes: float32)"));
        assert!(why(dtypes(&[half.clone(), half.clone(), half.clone()])).contains("`z` is float64 here"));
        assert!(why(dtypes(&[array(DType::I32), 2.5.into(), 1.into()])).contains("`y` is int32 here"));
        assert!(why(dtypes(&[half.clone(), half])).contains("f takes 3 inputs, 2 given"));
        let raw = KernelDeclaration::new("Op", "raw T x", "T y", "g").unwrap();
        assert!(why(raw.resolve_dtypes(&[1.into()])).contains("`x` is raw"));
    }
}
