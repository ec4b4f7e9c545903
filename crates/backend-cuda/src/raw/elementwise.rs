//! Elementwise kernels from strings. A named unsafe room: the launch of what they become.
#![allow(unsafe_code)]

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use cuprum_core::layout::broadcast_shapes;
use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{Array, DType, Device, Error, Layout, NdArray, Operand, Result, with_device};
use smallvec::SmallVec;

use super::arg::{self, Arg};
use super::{RawKernel, RawSource};
use crate::codegen::{self, ctype};

/// Operation in errors.
const OP: &str = "ElementwiseKernel";

/// A kernel that computes each element of its outputs from those of its inputs, which are broadcast together; written in CUDA C++
/// and compiled for the dtypes that it meets (`cupy.ElementwiseKernel`).
///
/// Parameters are declared as in CuPy, `float32 x, T y, raw T z`: a dtype's name, or an upper-case letter for any dtype, the same
/// wherever it stands. Inputs are arrays or numbers. `raw` ones are not broadcast: the code sees a pointer to a whole array in C order.
/// It sees `i`, the number of the element in C order, and `n`, how many there are. float16 and bfloat16 are computed in `float`.
///
/// Operators and functions of arrays fuse into one kernel by themselves; this is for what they cannot say.
///
/// ```no_run
/// use cuprum_backend_cuda::raw::ElementwiseKernel;
/// use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let squared_difference = ElementwiseKernel::new("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")?;
/// let x = NdArray::arange(0, 10, 1)?.reshape([2, 5])?;
/// // SAFETY: the code touches its own elements only.
/// let z = unsafe { squared_difference.call(&[(&x).into(), 3.into()]) }?.remove(0);
/// assert_eq!(z.to_vec::<i64>()?, [9, 4, 1, 0, 1, 4, 9, 16, 25, 36]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ElementwiseKernel {
    inputs: Vec<Declared>,
    outputs: Vec<Declared>,
    code: String,
    name: String,
    preamble: String,
    options: Vec<String>,
    built: Mutex<Vec<(Use, RawKernel)>>,
}

/// A declared parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declared {
    name: String,
    of: Type,
    raw: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Fixed(DType),
    /// Any dtype, the same for every parameter with this letter.
    Any(char),
}

/// What a kernel's text depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    device: Device,
    /// Of inputs, then outputs.
    dtypes: SmallVec<[DType; 8]>,
    /// Which inputs are numbers.
    numbers: SmallVec<[bool; 8]>,
    /// Axes of the loop, and whether its offsets need 64 bits.
    rank: usize,
    wide: bool,
}

impl ElementwiseKernel {
    /// A kernel of these inputs and outputs, whose code assigns the latter.
    ///
    /// # Errors
    /// [`Error::Value`] for declarations that mean nothing, names that are none, and outputs of a dtype that no input tells.
    pub fn new(inputs: &str, outputs: &str, code: &str, name: &str) -> Result<ElementwiseKernel> {
        let (inputs, outputs) = (parse(inputs)?, parse(outputs)?);
        if outputs.is_empty() || outputs.iter().any(|o| o.raw) {
            return Err(Error::value(OP, "outputs are one or more, and not raw: use RawKernel for scattered results"));
        }
        if let Some(lost) = outputs.iter().find(|o| matches!(o.of, Type::Any(_)) && inputs.iter().all(|i| i.of != o.of)) {
            return Err(Error::value(OP, format!("no input tells the dtype of output `{}`", lost.name)));
        }
        check_name(name)?;
        let (code, name) = (code.to_owned(), name.to_owned());
        Ok(ElementwiseKernel { inputs, outputs, code, name, preamble: String::new(), options: Vec::new(), built: Mutex::default() })
    }

    /// Code before the kernel: functions, constants.
    pub fn preamble(mut self, text: impl Into<String>) -> ElementwiseKernel {
        self.preamble = text.into();
        self
    }

    /// An option of NVRTC.
    pub fn option(mut self, option: impl Into<String>) -> ElementwiseKernel {
        self.options.push(option.into());
        self
    }

    /// New arrays of the inputs' common shape, one for each output. Does not wait for the device.
    ///
    /// # Errors
    /// Inputs of another number or dtype than declared, on different devices or none of CUDA, or of shapes that do not broadcast;
    /// [`Error::Backend`] with the log and the line for code that does not compile.
    ///
    /// # Safety
    /// The code reads raw arrays only inside them, writes nothing but its outputs and variables of its own, and assigns every output.
    pub unsafe fn call(&self, args: &[Operand]) -> Result<Vec<NdArray>> {
        let arrays = self.inputs.iter().zip(args).filter(|(p, _)| !p.raw).filter_map(|(_, arg)| array(arg));
        let shapes: SmallVec<[&[usize]; 8]> = arrays.map(NdArray::shape).collect();
        if shapes.is_empty() {
            return Err(Error::value(
                OP,
                format!("{}: no array but raw ones tells how many elements there are; use call_sized", self.name),
            ));
        }
        let shape = broadcast_shapes(OP, &shapes)?;
        // SAFETY: the caller's word.
        unsafe { self.run(args, &shape) }
    }

    /// [`ElementwiseKernel::call`] for `n` elements, where all arrays are raw (`size=` in CuPy).
    ///
    /// # Errors
    /// As there; and [`Error::Value`] for an array that is not raw.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn call_sized(&self, args: &[Operand], n: usize) -> Result<Vec<NdArray>> {
        if let Some((p, _)) = self.inputs.iter().zip(args).find(|(p, arg)| !p.raw && array(arg).is_some()) {
            return Err(Error::value(OP, format!("{}: `{}` is an array that is not raw, which tells the size", self.name, p.name)));
        }
        // SAFETY: the caller's word.
        unsafe { self.run(args, &[n]) }
    }

    /// # Safety
    /// As for [`ElementwiseKernel::call`].
    unsafe fn run(&self, args: &[Operand], shape: &[usize]) -> Result<Vec<NdArray>> {
        let dtypes = self.dtypes(args)?;
        let device = self.device(args)?;
        let (of_inputs, of_outputs) = dtypes.split_at(self.inputs.len());
        // Each input as its parameter sees it: a view of the whole shape, a whole array, a number.
        let views = self.inputs.iter().zip(args).map(|(p, arg)| match arg {
            Operand::Array(a) if p.raw => a.contiguous().map(Some),
            Operand::Array(a) => a.broadcast_to(shape).map(Some),
            Operand::Scalar(_) => Ok(None),
        });
        let views: SmallVec<[Option<NdArray>; 8]> = views.collect::<Result<_>>()?;
        let looped = self.inputs.iter().zip(&views).filter(|(p, _)| !p.raw).filter_map(|(_, view)| view.as_ref());
        let stored = looped.map(NdArray::stored).collect::<Result<SmallVec<[_; 8]>>>()?;
        let whole = Layout::contiguous(shape)?;
        let layouts: SmallVec<[&Layout; 8]> = stored.iter().map(|a| a.layout()).chain([&whole]).collect();
        let plan = LoopPlan::new(&layouts);
        let strides = || plan.strides.iter().take(stored.len()).map(|s| s.as_slice());
        let wide = !codegen::fits_narrow(plan.size, &plan.dims, strides());
        drop(layouts);

        let numbers = views.iter().map(Option::is_none).collect();
        let kernel = self.kernel(Use { device, dtypes: dtypes.clone(), numbers, rank: plan.dims.len(), wide })?;
        let empty = || of_outputs.iter().map(|&dtype| NdArray::empty(shape, dtype)).collect::<Result<Vec<_>>>();
        let mut outputs = with_device(device, empty)?;
        let axes = codegen::pack_axes(&plan.dims, strides(), wide);
        let mut list: SmallVec<[Arg; 8]> = SmallVec::new();
        for ((arg, view), &dtype) in args.iter().zip(&views).zip(of_inputs) {
            match (arg, view) {
                (Operand::Scalar(s), _) => {
                    list.push(arg::number(dtype, &s.to_bytes(dtype)[..dtype.itemsize()]));
                }
                (_, Some(view)) => list.push(Arg::strided(view)),
                (_, None) => {}
            }
        }
        list.extend(outputs.iter_mut().map(Arg::from));
        list.push(Arg::bytes(&axes));
        list.push(plan.size.into());
        if plan.size > 0 {
            let launch = kernel.over(plan.size)?;
            // SAFETY: the parameters of the text that `source` writes: `plan` keeps inputs inside their arrays, outputs have `plan.size`
            // elements, and `axes` are of its rank; what the user's code does is the caller's word.
            unsafe { kernel.launch(launch, &mut list[..]) }?;
        }
        drop(list);
        Ok(outputs)
    }

    /// The dtypes of inputs, then outputs; those of letters follow from arrays first, then from numbers.
    fn dtypes(&self, args: &[Operand]) -> Result<SmallVec<[DType; 8]>> {
        if args.len() != self.inputs.len() {
            return Err(Error::value(OP, format!("{} takes {} inputs, {} given", self.name, self.inputs.len(), args.len())));
        }
        let mut letters: SmallVec<[(char, DType); 4]> = SmallVec::new();
        let known = |letters: &[(char, DType)], of: Type| match of {
            Type::Fixed(dtype) => Some(dtype),
            Type::Any(letter) => letters.iter().find(|(l, _)| *l == letter).map(|(_, d)| *d),
        };
        let arrays = || self.inputs.iter().zip(args).filter_map(|(p, arg)| Some((p, array(arg)?.dtype())));
        let numbers = self.inputs.iter().zip(args).filter_map(|(p, arg)| match arg {
            Operand::Scalar(s) => Some((p, s.default_dtype())),
            Operand::Array(_) => None,
        });
        for (p, dtype) in arrays().chain(numbers) {
            if let (Type::Any(letter), None) = (p.of, known(&letters, p.of)) {
                letters.push((letter, dtype));
            }
        }
        for (p, given) in arrays() {
            if let Some(wanted) = known(&letters, p.of).filter(|d| *d != given) {
                let message = format!("{}: `{}` is {wanted} here; use astype", self.name, p.name);
                return Err(Error::dtype(OP, message, &[given]));
            }
        }
        for (p, arg) in self.inputs.iter().zip(args) {
            let Operand::Scalar(s) = arg else { continue };
            if p.raw {
                return Err(Error::value(OP, format!("{}: `{}` is raw: an array, not a number", self.name, p.name)));
            }
            if let Some(dtype) = known(&letters, p.of) {
                s.checked_for(OP, dtype)?;
                if s.weak_promote(dtype) != dtype {
                    return Err(Error::dtype(OP, format!("{}: `{}` is no {dtype} as the number {s:?}", self.name, p.name), &[]));
                }
            }
        }
        let all = self.inputs.iter().chain(&self.outputs).map(|p| {
            known(&letters, p.of).ok_or_else(|| Error::value(OP, format!("{}: nothing tells the dtype of `{}`", self.name, p.name)))
        });
        all.collect()
    }

    /// The one device of the arrays; without any, the current one.
    fn device(&self, args: &[Operand]) -> Result<Device> {
        let mut devices = args.iter().filter_map(array).map(NdArray::device);
        let Some(first) = devices.next() else { return Device::current() };
        match devices.find(|d| *d != first) {
            Some(other) => Err(Error::Device { op: OP, message: format!("{}: inputs are on {first} and {other}", self.name) }),
            None => Ok(first),
        }
    }

    fn kernel(&self, used: Use) -> Result<RawKernel> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kernel)) = built.iter().find(|(other, _)| *other == used) {
            return Ok(kernel.clone());
        }
        let kernel = self.source(&used).compile_on(used.device)?.kernel(&self.name)?;
        built.push((used, kernel.clone()));
        Ok(kernel)
    }

    /// The whole text of a use. The user's code is a header, so that the compiler's messages have its line numbers.
    fn source(&self, used: &Use) -> RawSource {
        let (of_inputs, of_outputs) = used.dtypes.split_at(self.inputs.len());
        let inputs = || self.inputs.iter().zip(of_inputs).zip(&used.numbers).map(|((p, &d), &number)| (p, d, number));
        let outputs = || self.outputs.iter().zip(of_outputs).map(|(p, &d)| (p, d));
        let looped = || inputs().filter(|(p, _, number)| !p.raw && !number);
        let index = codegen::index_type(used.wide);

        let mut text = String::from(codegen::PRELUDE);
        let mut letters: SmallVec<[char; 4]> = SmallVec::new();
        for (p, dtype) in inputs().map(|(p, d, _)| (p, d)).chain(outputs()) {
            if let Type::Any(letter) = p.of
                && !letters.contains(&letter)
            {
                letters.push(letter);
                let _ = writeln!(text, "using {letter} = {};", computed(dtype)); // writing to a String cannot fail
            }
        }
        let _ = writeln!(text, "#include \"{}\"", self.file("preamble"));
        let parameters = inputs().map(|(p, dtype, number)| match (p.raw, number) {
            (true, _) => format!("const {}* {}", stored(dtype), p.name),
            (_, true) => format!("const {} in_{}", stored(dtype), p.name),
            _ => format!("const {}* in_{}", stored(dtype), p.name),
        });
        let parameters = parameters.chain(outputs().map(|(p, dtype)| format!("{}* out_{}", stored(dtype), p.name)));
        let axes = format!("const __grid_constant__ cuprum::Axes<cuprum::{index}, {}, {}> cuprum_axes", used.rank, looped().count());
        let parameters: Vec<String> = parameters.chain([axes, "const unsigned long long cuprum_size".into()]).collect();
        let _ = writeln!(text, "extern \"C\" __global__ void {}({}) {{", self.name, parameters.join(", "));
        text.push_str(
            "    const long long n = static_cast<long long>(cuprum_size), cuprum_step = static_cast<long long>(gridDim.x) * blockDim.x;\n",
        );
        text.push_str("    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += cuprum_step) {\n");
        let _ = writeln!(text, "        [[maybe_unused]] const auto cuprum_at = cuprum_axes.offsets(static_cast<cuprum::{index}>(i));");
        for (k, (p, dtype, _)) in looped().enumerate() {
            let Declared { name, .. } = p;
            let _ = writeln!(text, "        const {0} {name} = cuprum::cast<{0}>(in_{name}[cuprum_at.at[{k}]]);", computed(dtype));
        }
        for (Declared { name, .. }, dtype, _) in inputs().filter(|(_, _, number)| *number) {
            let _ = writeln!(text, "        const {0} {name} = cuprum::cast<{0}>(in_{name});", computed(dtype));
        }
        for (Declared { name, .. }, dtype) in outputs() {
            let _ = writeln!(text, "        {} {name};", computed(dtype));
        }
        let _ = writeln!(text, "        {{\n#include \"{}\"\n        ;\n        }}", self.file("code"));
        for (Declared { name, .. }, dtype) in outputs() {
            let _ = writeln!(text, "        out_{name}[i] = cuprum::cast<{}>({name});", stored(dtype));
        }
        text.push_str("    }\n}\n");

        let source = RawSource::new(text).name(format!("{}.cu", self.name));
        let source = source.header(self.file("preamble"), self.preamble.as_str()).header(self.file("code"), self.code.as_str());
        self.options.iter().fold(source, |source, option| source.option(option.as_str()))
    }

    /// What the compiler calls a part of the user's text.
    fn file(&self, part: &str) -> String {
        format!("{}.{part}", self.name)
    }
}

fn array(arg: &Operand) -> Option<&NdArray> {
    match arg {
        Operand::Array(a) => Some(a),
        Operand::Scalar(_) => None,
    }
}

/// The type of an element in memory.
fn stored(dtype: DType) -> String {
    format!("cuprum::{}", ctype(dtype))
}

/// The type that it is computed in.
fn computed(dtype: DType) -> String {
    stored(if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype })
}

fn check_name(name: &str) -> Result<()> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && name.starts_with(|c: char| !c.is_ascii_digit());
    if is_name { Ok(()) } else { Err(Error::value(OP, format!("`{name}` is not a name"))) }
}

/// Reads `float32 x, raw T y`.
fn parse(declarations: &str) -> Result<Vec<Declared>> {
    let one = |text: &str| -> Result<Declared> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (raw, of, name) = match words[..] {
            [of, name] => (false, of, name),
            ["raw", of, name] => (true, of, name),
            _ => return Err(Error::value(OP, format!("`{}` is not `dtype name` or `raw dtype name`", text.trim()))),
        };
        check_name(name)?;
        if name == "i" || name == "n" || name.starts_with("cuprum_") {
            return Err(Error::value(OP, format!("the name `{name}` is taken: i is the element's number, n how many there are")));
        }
        let mut letters = of.chars();
        let of = match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_uppercase() => Type::Any(letter),
            _ => Type::Fixed(DType::parse(of)?),
        };
        Ok(Declared { name: name.into(), of, raw })
    };
    declarations.split(',').filter(|d| !d.trim().is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::DeviceKind;
    use cuprum_core::testing::calls;

    use super::*;
    use crate::nvrtc::Compiler;

    fn cuda() -> Device {
        Device::new(DeviceKind::intern("cuda").unwrap(), 0)
    }

    fn array(dtype: DType) -> Operand {
        Operand::Array(calls::array(cuda(), dtype, Layout::contiguous(&[3]).unwrap()).unwrap().into())
    }

    fn why<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn declarations_are_read() {
        let all = parse("float32 x, T y,\n raw int64 table").unwrap();
        let names: Vec<_> = all.iter().map(|p| (p.name.as_str(), p.of, p.raw)).collect();
        let expected = [("x", Type::Fixed(DType::F32), false), ("y", Type::Any('T'), false), ("table", Type::Fixed(DType::I64), true)];
        assert_eq!(names, expected);
        let refused = |inputs, outputs, name| why(ElementwiseKernel::new(inputs, outputs, "y = 1", name));
        assert!(refused("float32", "T y", "f").contains("`float32` is not `dtype name`"));
        assert!(refused("raw T x z", "T y", "f").contains("is not `dtype name` or `raw dtype name`"));
        assert!(refused("string x", "T y", "f").contains("string"));
        assert!(refused("T x", "U y", "f").contains("no input tells the dtype of output `y`"));
        assert!(refused("T x", "raw T y", "f").contains("not raw"));
        assert!(refused("T x", "", "f").contains("one or more"));
        assert!(refused("T i", "T y", "f").contains("`i` is taken"));
        assert!(refused("T x", "T y", "a b").contains("`a b` is not a name"));
        assert!(refused("T x", "T 2y", "f").contains("`2y` is not a name"));
    }

    #[test]
    fn dtypes_follow_from_arrays_then_numbers() {
        let kernel = ElementwiseKernel::new("T x, T y, float64 z", "T a, bool b", "", "f").unwrap();
        let dtypes = |args: &[Operand]| kernel.dtypes(args).map(|d| d.to_vec());
        let half = array(DType::F16);
        assert_eq!(dtypes(&[2.into(), half.clone(), 1.into()]).unwrap(), [DType::F16, DType::F16, DType::F64, DType::F16, DType::Bool]);
        assert_eq!(dtypes(&[2.into(), 3.into(), 1.into()]).unwrap()[3], DType::I64);
        assert!(why(dtypes(&[half.clone(), array(DType::F32), 1.into()])).contains("`y` is float16 here; use astype (dtypes: float32)"));
        assert!(why(dtypes(&[half.clone(), half.clone(), half.clone()])).contains("`z` is float64 here"));
        assert!(why(dtypes(&[array(DType::I32), 2.5.into(), 1.into()])).contains("`y` is no int32"));
        assert!(why(dtypes(&[half.clone(), half.clone()])).contains("f takes 3 inputs, 2 given"));
        let raw = ElementwiseKernel::new("raw T x", "T y", "", "g").unwrap();
        assert!(why(raw.dtypes(&[1.into()])).contains("`x` is raw"));
        // SAFETY: both are refused.
        unsafe {
            assert!(why(raw.call(std::slice::from_ref(&half))).contains("use call_sized"));
            assert!(why(kernel.call_sized(&[half.clone(), half, 1.into()], 3)).contains("`x` is an array that is not raw"));
        }
    }

    #[test]
    fn every_kind_of_use_compiles() {
        let compiler = match Compiler::locate(13) {
            Ok(compiler) => compiler,
            Err(missing) => {
                assert!(std::env::var("CUPRUM_REQUIRE_NVRTC").as_deref() != Ok("1"), "no NVRTC: {missing}");
                return println!("skipped: {missing}");
            }
        };
        let made = |kernel: &ElementwiseKernel, args: &[Operand], rank, wide| {
            let numbers = args.iter().map(|a| super::array(a).is_none()).collect();
            let used = Use { device: cuda(), dtypes: kernel.dtypes(args).unwrap(), numbers, rank, wide };
            kernel.source(&used).made(&compiler, 90)
        };
        let code = "z = x + half(t) * (y - x) + T(table[i % 2]);\nplace = i + n";
        let blend = ElementwiseKernel::new("T x, T y, float32 t, raw T table", "T z, int64 place", code, "blend").unwrap();
        let blend = blend.preamble("__device__ float half(float t) { return t / 2; }").option("--use_fast_math");
        for (dtype, rank, wide) in [(DType::F32, 0, false), (DType::F64, 1, true), (DType::F16, 3, false), (DType::I32, 2, true)] {
            let args = [array(dtype), 2.into(), 0.5.into(), array(dtype)];
            let compiled = made(&blend, &args, rank, wide).unwrap_or_else(|e| panic!("{dtype}: {e}"));
            assert_eq!(compiled.log, "", "{dtype}");
        }
        let places = ElementwiseKernel::new("", "int64 y", "y = i", "places").unwrap();
        assert_eq!(made(&places, &[], 1, false).unwrap().log, "");
        let bad = ElementwiseKernel::new("T x", "T y", "float a = x;\ny = b;", "bad").unwrap();
        let error = made(&bad, &[array(DType::F32)], 1, false).unwrap_err().to_string();
        assert!(error.starts_with("compiling bad.cu failed at: 2 | y = b;"), "{error}");
    }
}
