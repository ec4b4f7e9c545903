//! Reduction kernels that a user defines by strings. A launch goes through dispatch, as a call of the operation [`REDUCTION_KERNEL`].
//! Accelerators find the user's code in the [`UserCppReduction`] of the call.
#![allow(unsafe_code)] // unsafe functions: their callers guarantee properties of the user's code

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::array::StoredArray;
use cuprum_core::layout::{Dims, normalize_axes};
use cuprum_core::op::{Cost, OpDef};
use cuprum_core::plan::reduce::ReducePlan;
use cuprum_core::{
    Call, DType, Family, Layout, NdArray, Op, Operand, OutputSpec, Program, Result, StepKind, Stream, Work, broadcast_to, dispatch,
    with_device, zeros,
};
use smallvec::SmallVec;

use super::cuda_context_of;
use super::kernel_declaration::{DeclaredParameter, KernelDeclaration, SourceWriter, computation_ctype, computation_dtype, storage_ctype};
use super::raw_module::{RawSource, option_may_read_files};
use crate::codegen::{self, AccumulatorCode, InnermostAxisAccess, KernelKey};

/// Name of the public type that error messages show.
const OP: &str = "ReductionKernel";

static REDUCTION_KERNEL_DEF: OpDef = OpDef {
    name: OP,
    family: Family::Custom,
    arity: 0,
    index: u16::MAX,
    rule: None,
    cost: Cost::Cheap,
    composite: None,
    body: None,
    reduction: None,
};
/// The operation of all [`ReductionKernel`]s. The [`Work::Custom`] of a call contains a [`UserCppReduction`]. The inputs of the call are
/// the inputs of the reduction's program.
pub const REDUCTION_KERNEL: Op = Op(&REDUCTION_KERNEL_DEF);

/// The definition of a [`ReductionKernel`], in CUDA C++. The fields have the order of `cupy.ReductionKernel`.
#[derive(Clone, Copy, Debug)]
pub struct ReductionDefinition<'a> {
    /// Declarations of the inputs, as for [`ElementwiseKernel`](super::ElementwiseKernel).
    pub inputs: &'a str,
    /// Declaration of the only output. The accumulator has the dtype of the output, or float32 if the output is a 16-bit float.
    pub output: &'a str,
    /// The value to reduce, as a C++ expression of the inputs.
    pub map: &'a str,
    /// The combination of two values `a` and `b`, as a C++ expression. The combination must be commutative and associative.
    pub reduce: &'a str,
    /// A C++ statement that computes the output from the reduced value `a`.
    pub post: &'a str,
    /// The value of an empty reduction, as a C++ expression. `post` is applied to this value. If the string is empty, empty reductions are
    /// errors.
    pub identity: &'a str,
    /// Name of the kernel.
    pub name: &'a str,
}

/// A CUDA C++ kernel that reduces its broadcast inputs over axes (`cupy.ReductionKernel`). The kernel is compiled for each combination of
/// dtypes. The order of combination depends on shape and strides alone, so equal inputs give equal results in every run.
///
/// ```no_run
/// use cuprum_backend_cuda::user_kernels::{ReductionDefinition, ReductionKernel};
/// use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let norm = ReductionKernel::new(ReductionDefinition {
///     inputs: "T x",
///     output: "float64 y",
///     map: "x * x",
///     reduce: "a + b",
///     post: "y = sqrt(a)",
///     identity: "0",
///     name: "norm",
/// })?;
/// let x = NdArray::from_vec([3.0, 4.0, 6.0, 8.0], [2, 2])?;
/// // SAFETY: the code accesses its own elements only.
/// assert_eq!(unsafe { norm.call(&[(&x).into()], Some(&[-1])) }?.to_vec::<f64>()?, [5.0, 10.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ReductionKernel(Arc<OwnedReductionDefinition>);

#[derive(Clone, Debug)]
struct OwnedReductionDefinition {
    declared: KernelDeclaration,
    map: String,
    reduce: String,
    post: String,
    identity: String,
    preamble: String,
    options: Vec<String>,
}

impl ReductionKernel {
    /// Makes a kernel from its definition.
    ///
    /// # Errors
    /// [`Error::Value`](cuprum_core::Error::Value) for invalid declarations, more than one output, or an output whose dtype
    /// no input determines.
    pub fn new(definition: ReductionDefinition) -> Result<ReductionKernel> {
        let declared = KernelDeclaration::new(OP, definition.inputs, definition.output, definition.name)?;
        if declared.outputs.len() != 1 {
            return Err(declared.value_error("a reduction has one output"));
        }
        let expressions = [definition.map, definition.reduce, definition.post, definition.identity];
        let [map, reduce, post, identity] = expressions.map(str::to_owned);
        Ok(ReductionKernel(Arc::new(OwnedReductionDefinition {
            declared,
            map,
            reduce,
            post,
            identity,
            preamble: String::new(),
            options: Vec::new(),
        })))
    }

    /// Sets code that precedes the kernel, such as functions and constants.
    pub fn with_preamble(mut self, text: impl Into<String>) -> ReductionKernel {
        Arc::make_mut(&mut self.0).preamble = text.into();
        self
    }

    /// Adds an NVRTC option.
    pub fn with_option(mut self, option: impl Into<String>) -> ReductionKernel {
        Arc::make_mut(&mut self.0).options.push(option.into());
        self
    }

    /// Reduces `args` over `axes`, or over all axes if `axes` is `None`. Does not wait for the device.
    ///
    /// # Errors
    /// Returns an error for the wrong number or dtypes of inputs, inputs on different devices or not on a CUDA device, and shapes that do
    /// not broadcast. Also returns an error for invalid axes and for empty reductions without an identity.
    /// [`Error::Backend`](cuprum_core::Error::Backend) with the compiler's log and line if the code does not compile.
    ///
    /// # Safety
    /// The code reads raw arrays only within bounds, writes only its output and local variables, and assigns the output.
    pub unsafe fn call(&self, args: &[Operand], axes: Option<&[isize]>) -> Result<NdArray> {
        let ReductionCall { inputs, output, reduction } = self.build_reduction_call(args, axes)?;
        let device = self.0.declared.common_device(args)?;
        cuda_context_of(device)?;
        let (stream, work) = (Stream::current(device), Work::Custom(call::Custom(&reduction)));
        let done = dispatch::run_call(&Call { op: REDUCTION_KERNEL, device, stream, inputs: &inputs, outputs: &[output], work })?;
        done.into_iter().next().map(NdArray::from).ok_or_else(|| self.0.declared.value_error("no result"))
    }

    /// Returns the call that reduces the arguments `args` over `axes`, or over all axes if `axes` is `None`.
    fn build_reduction_call(&self, args: &[Operand], axes: Option<&[isize]>) -> Result<ReductionCall> {
        let declared = &self.0.declared;
        let dtypes = declared.resolve_dtypes(args)?;
        let shape = declared.common_shape(args)?.ok_or_else(|| declared.value_error("all arrays are raw, so the shape is unknown"))?;
        let axes: Dims = axes.map_or_else(|| Ok((0..shape.len()).collect()), |axes| normalize_axes(OP, axes, shape.len()))?;
        let (program, inputs) = self.build_input_program(args, &dtypes, &shape)?;
        let plan = ReducePlan::new(&shape, &inputs.iter().map(|a| a.layout()).collect::<Vec<_>>(), &axes, false);
        if plan.reduced_size == 0 && plan.kept_size > 0 && self.0.identity.is_empty() {
            return Err(declared.value_error("the reduction is empty and has no identity"));
        }
        let kept: Dims = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
        let output = OutputSpec::contiguous(dtypes.last().copied().unwrap_or(DType::F64), &kept)?;
        Ok(ReductionCall { inputs, output, reduction: UserCppReduction { parts: self.0.clone(), dtypes, program, plan } })
    }

    /// Returns a program with one step per input parameter, and the inputs of the program. The inputs are the arrays that are not raw,
    /// broadcast to the common shape, then the first element of each raw array.
    fn build_input_program(&self, args: &[Operand], dtypes: &[DType], shape: &[usize]) -> Result<(Program, Vec<StoredArray>)> {
        let (mut program, mut inputs, mut raw) = (Program::default(), Vec::new(), Vec::new());
        let array_count = self.0.declared.arrays_to_broadcast(args).count();
        for ((parameter, arg), &dtype) in self.0.declared.inputs.iter().zip(args).zip(dtypes) {
            let kind = match arg {
                Operand::Scalar(s) => {
                    program.params.push(*s);
                    StepKind::Param((program.params.len() - 1) as u16)
                }
                Operand::Array(a) if parameter.raw => {
                    raw.push(broadcast_to(&first_element_view(a)?, shape)?.stored()?);
                    StepKind::Input((array_count + raw.len() - 1) as u16)
                }
                Operand::Array(a) => {
                    inputs.push(broadcast_to(a, shape)?.stored()?);
                    StepKind::Input((inputs.len() - 1) as u16)
                }
            };
            program.push_step(kind, dtype, &[]);
        }
        inputs.append(&mut raw);
        Ok((program, inputs))
    }
}

/// Returns the first element of `array` as a 0-d array, whose memory contains the other elements of `array` after it, in C order.
fn first_element_view(array: &NdArray) -> Result<NdArray> {
    if array.size() == 0 {
        return with_device(array.device(), || zeros((), array.dtype())); // the code may not read any element
    }
    let stored = array.contiguous()?.stored()?;
    let first = Layout::strided(&[], &[], stored.layout().offset())?;
    stored.with_layout(first).map(NdArray::from)
}

/// One call of a [`ReductionKernel`]: its inputs, its output and the reduction to run.
#[allow(missing_debug_implementations)] // arrays have none
pub struct ReductionCall {
    /// The inputs of the call.
    pub inputs: Vec<StoredArray>,
    /// The output of the call.
    pub output: OutputSpec,
    /// The contents of the call's [`Work::Custom`]: the plan and the user's code.
    pub reduction: UserCppReduction,
}

/// Returns a call of an example kernel that has parameters of each kind. Accelerators use the call in tests, and to compile their kernels
/// without a device. The device of `array` need not exist.
///
/// # Errors
/// Returns an error if the array does not have one of the `axes`.
pub fn example_reduction_call(array: &NdArray, axes: &[isize]) -> Result<ReductionCall> {
    let sum = ReductionDefinition {
        inputs: "T x, T factor, raw T from",
        output: "T y",
        map: "cuprum::op::add(cuprum::op::multiply(x, factor), T(from[0]))",
        reduce: "cuprum::op::add(a, b)",
        post: "y = a",
        identity: "",
        name: "sum",
    };
    ReductionKernel::new(sum)?.build_reduction_call(&[array.into(), true.into(), array.into()], Some(axes))
}

/// A user-defined reduction as accelerators receive it: the plan, the program that reads the inputs, and the user's code as C++ functions.
///
/// The source of a kernel consists of the prelude ([`codegen::CUDA_PRELUDE`]), [`UserCppReduction::element_source`], and the accelerator's
/// code that reduces `Result`s by [`UserCppReduction::combination`]. The source must be compiled with
/// [`headers`](UserCppReduction::headers) and [`options`](UserCppReduction::options).
#[derive(Debug)]
pub struct UserCppReduction {
    parts: Arc<OwnedReductionDefinition>,
    /// Dtypes of the inputs, followed by the dtype of the output.
    dtypes: SmallVec<[DType; 8]>,
    program: Program,
    plan: ReducePlan,
}

impl UserCppReduction {
    /// Returns the reduction of a [`REDUCTION_KERNEL`] call, or `None` for other calls.
    pub fn of<'a>(call: &Call<'a>) -> Option<&'a UserCppReduction> {
        let Work::Custom(call::Custom(work)) = call.work else { return None };
        work.downcast_ref()
    }

    /// Returns the program that reads the inputs of the call: it has one step per input parameter. The program has no outputs, because the
    /// user's code computes the value to reduce ([`UserCppReduction::element_source`]).
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the plan of the reduction: the kept axes and the reduced axes, merged where strides allow it.
    pub fn plan(&self) -> &ReducePlan {
        &self.plan
    }

    /// Returns the dtype of the output.
    pub fn output_dtype(&self) -> DType {
        self.dtypes.last().copied().unwrap_or(DType::F64)
    }

    /// Returns the dtype of the accumulator: the dtype of the output, or float32 if the output is a 16-bit float.
    pub fn accumulator_dtype(&self) -> DType {
        computation_dtype(self.output_dtype())
    }

    /// Returns the C++ expressions by which elements are combined.
    pub fn combination(&self) -> AccumulatorCode {
        AccumulatorCode {
            acc: "::cuprum_partial",
            size: 2 * self.accumulator_dtype().itemsize(),
            identity: "::cuprum_empty_partial()".into(),
            value: "::cuprum_partial{x, true}",
            combine: "::cuprum_combine(a, b)".into(),
            finish: "cast<Out>(::cuprum_result(a))",
        }
    }

    /// Returns `key` extended by everything that determines [`UserCppReduction::element_source`], except the program and the access
    /// pattern.
    pub fn extend_kernel_key<'a>(&self, key: KernelKey<'a>) -> KernelKey<'a> {
        let OwnedReductionDefinition { declared, map, reduce, post, identity, preamble, options } = &*self.parts;
        let key = [&declared.name, map, reduce, post, identity, preamble].into_iter().fold(key, |key, text| key.with_name(text));
        let key = options.iter().fold(key.with_number(options.len() as u64), |key, option| key.with_name(option));
        let all = declared.inputs.iter().chain(&declared.outputs).zip(&self.dtypes);
        all.fold(key, |key, (p, &dtype)| {
            key.with_name(&p.name).with_number(p.generic_type_letter().map_or(0, u64::from)).with_number(p.raw.into()).with_dtype(dtype)
        })
    }

    /// Returns the user's code as C++ functions, followed by the code that computes one element by calls of these functions (see
    /// [`codegen`]).
    pub fn element_source(&self, access: InnermostAxisAccess) -> String {
        let value = |(n, (p, &dtype)): (usize, (&DeclaredParameter, &DType))| match self.program.steps.get(n).map(|step| step.kind) {
            Some(StepKind::Input(k)) if p.raw => format!("p.in{k}"),
            Some(StepKind::Input(k)) => format!("cast<{}>(v.v{k})", computation_ctype(dtype)),
            _ => format!("cast<{}>(p.s{n})", computation_ctype(dtype)),
        };
        let values: Vec<String> = self.parts.declared.inputs.iter().zip(&self.dtypes).enumerate().map(value).collect();
        let map = format!("::cuprum_map({})", values.join(", "));
        [&*self.source_writer().out, &codegen::element_source_with_result(&self.program, access, "::cuprum_total", &map)].concat()
    }

    /// Returns the names and sources of the in-memory headers that contain the user's code.
    pub fn headers(&self) -> Vec<(String, String)> {
        self.source_writer().headers
    }

    /// Returns the NVRTC options that the user added.
    pub fn options(&self) -> &[String] {
        &self.parts.options
    }

    /// Returns whether the user's code has `#include` directives, or the user's options name files or folders.
    pub fn has_includes(&self) -> bool {
        let OwnedReductionDefinition { map, reduce, post, identity, preamble, options, .. } = &*self.parts;
        let directive = |text: &String| text.split('#').skip(1).any(|directive| directive.trim_start().starts_with("include"));
        [map, reduce, post, identity, preamble].into_iter().any(directive) || options.iter().any(|option| option_may_read_files(option))
    }

    /// Returns `text` with each `#include` of a header from [`UserCppReduction::headers`] replaced by the contents of the header.
    pub fn inline_headers(&self, text: String) -> String {
        self.headers().into_iter().fold(text, |text, (name, code)| text.replace(&format!("#include \"{name}\""), &code))
    }

    /// Returns the source `text` of a kernel as a [`RawSource`], with the user's headers and options.
    pub(crate) fn raw_source(&self, text: String) -> RawSource {
        RawSource::new(text).with_name(format!("{}.cu", self.parts.declared.name)).with_headers(self.headers()).with_options(self.options())
    }

    /// Returns a writer with the user's code: `cuprum_map` and the functions that kernels/user_reduction.cuh requires.
    fn source_writer(&self) -> SourceWriter<'_> {
        let OwnedReductionDefinition { declared, map, reduce, post, identity, preamble, .. } = &*self.parts;
        let mut text = SourceWriter::new(declared, &self.dtypes, preamble);
        let (total, name) = (computation_ctype(self.output_dtype()), declared.outputs.first().map_or("", |output| &output.name));
        let parameter = |(p, dtype): (&DeclaredParameter, DType)| match p.raw {
            true => format!("const {}* {}", storage_ctype(dtype), p.name),
            false => format!("const {} {}", computation_ctype(dtype), p.name),
        };
        let parameters: Vec<String> = text.inputs_with_dtypes().map(parameter).collect();
        let begin = "return static_cast<cuprum_total>(";
        text.push_line(format_args!("using cuprum_total = {total};"));
        text.push_line(format_args!("__device__ inline cuprum_total cuprum_map({}) {{ {begin}", parameters.join(", ")));
        text.include_user_code("map", map);
        text.push_line(format_args!(
            "); }}\n__device__ inline cuprum_total cuprum_reduce(const cuprum_total a, const cuprum_total b) {{ {begin}"
        ));
        text.include_user_code("reduce", reduce);
        text.push_line(format_args!("); }}\n__device__ inline cuprum_total cuprum_identity(const cuprum_total none) {{ {begin}"));
        text.include_user_code("identity", if identity.is_empty() { "none" } else { identity });
        text.push_line(format_args!(
            "); }}\n__device__ inline cuprum_total cuprum_post(const cuprum_total a) {{\n    cuprum_total {name};"
        ));
        text.include_user_code("post", post);
        text.push_line(format_args!("    ;\n    return {name};\n}}"));
        text.push_line(include_str!("../kernels/user_reduction.cuh"));
        text
    }
}

#[cfg(test)]
mod tests {
    use cuprum_core::testing::calls;

    use super::super::kernel_declaration::tests::{array, cuda, why};
    use super::*;
    use crate::compile::nvrtc::{CompiledCode, Compiler};
    use crate::families::reduce;
    use crate::testing::compiler;

    const NORM: ReductionDefinition = ReductionDefinition {
        inputs: "T x",
        output: "float64 y",
        map: "x * x",
        reduce: "a + b",
        post: "y = sqrt(a)",
        identity: "0",
        name: "norm",
    };

    #[test]
    fn wrong_calls_are_refused() {
        assert!(why(ReductionKernel::new(ReductionDefinition { output: "T y, T z", ..NORM })).contains("one output"));
        let norm = ReductionKernel::new(NORM).unwrap();
        // SAFETY: both calls fail before a launch.
        unsafe {
            assert!(why(norm.call(&[1.into()], None)).contains("all arrays are raw"));
            assert!(why(norm.call(&[array(DType::F32)], Some(&[1]))).contains("axis 1 is out of bounds"));
        }
    }

    /// Compiles the kernel for a reduction of `args`, as if all arrays started at `address`.
    fn compile_for_check(
        compiler: &Compiler,
        kernel: &ReductionKernel,
        args: &[Operand],
        axes: &[isize],
        address: u64,
    ) -> crate::Result<CompiledCode> {
        let asked = kernel.build_reduction_call(args, Some(axes)).unwrap();
        let shape = reduce::user_reduction_config(&asked, address);
        asked.reduction.raw_source(reduce::user_reduction_source(&asked.reduction, shape)).compile_code(compiler, 90)
    }

    fn of_shape(dtype: DType, shape: &[usize]) -> Operand {
        Operand::Array(calls::array(cuda(), dtype, Layout::contiguous(shape).unwrap()).unwrap().into())
    }

    #[test]
    fn every_specialization_compiles() {
        let Some(compiler) = compiler() else { return };
        let weighted = ReductionDefinition {
            inputs: "T x, T w, float32 t, raw T table",
            output: "T y",
            map: "x * w * t + T(table[0])",
            post: "y = a",
            ..NORM
        };
        // The preamble may define names that the generated code uses too.
        let weighted = ReductionKernel::new(weighted).unwrap().with_preamble("struct Params {}; struct Shared {}; using Index = int;");
        let cases = [
            (DType::F32, &[4096][..], &[0][..], 256),
            (DType::F64, &[300, 50], &[1], 8),
            (DType::BF16, &[300, 512], &[0], 256),
            (DType::U8, &[30, 40, 50], &[0, 2], 256),
            (DType::Bool, &[1 << 31], &[0], 256),
        ];
        for (dtype, shape, axes, address) in cases {
            let args = [of_shape(dtype, shape), true.into(), 0.5.into(), array(dtype)];
            let compiled = compile_for_check(&compiler, &weighted, &args, axes, address).unwrap_or_else(|e| panic!("{dtype}: {e}"));
            assert_eq!(compiled.log, "", "{dtype}");
        }
        let sum = ReductionDefinition {
            output: "T y",
            map: "x",
            reduce: "cuprum::op::add(a, b)",
            post: "y = a",
            identity: "cuprum::c128(0, 0)",
            ..NORM
        };
        let sum = ReductionKernel::new(sum).unwrap();
        assert_eq!(compile_for_check(&compiler, &sum, &[of_shape(DType::C128, &[30, 40])], &[0], 256).unwrap().log, "");
        let most = ReductionKernel::new(ReductionDefinition { reduce: "max(a, b)", identity: "", ..NORM }).unwrap();
        assert_eq!(compile_for_check(&compiler, &most, &[array(DType::F32)], &[0], 256).unwrap().log, "");
        let bad = ReductionKernel::new(ReductionDefinition { post: "y =\n sqrt(b)", ..NORM }).unwrap();
        let error = compile_for_check(&compiler, &bad, &[array(DType::F32)], &[0], 256).unwrap_err().to_string();
        assert!(error.starts_with("compiling norm.cu failed at: 2 |  sqrt(b)"), "{error}");
    }

    #[test]
    fn keys_hold_all_that_code_depends_on() {
        let of = |kernel: &ReductionKernel, args: &[Operand]| {
            let asked = kernel.build_reduction_call(args, None).unwrap().reduction;
            asked.extend_kernel_key(KernelKey::new("", asked.program())).serialize()
        };
        let (x, y) = (array(DType::F32), array(DType::F32));
        let two = ReductionDefinition { inputs: "T x, T y", map: "x - y", ..NORM };
        let kernel = |parts: ReductionDefinition| ReductionKernel::new(parts).unwrap();
        let keys = [
            of(&kernel(two), &[x.clone(), y.clone()]),
            of(&kernel(two), &[x.clone(), 1.into()]),
            of(&kernel(two), &[1.into(), y.clone()]),
            of(&kernel(two), &[array(DType::F64), array(DType::F64)]),
            of(&kernel(ReductionDefinition { inputs: "T x, raw T y", ..two }), &[x.clone(), y.clone()]),
            of(&kernel(ReductionDefinition { inputs: "U x, U y", ..two }), &[x.clone(), y.clone()]),
            of(&kernel(ReductionDefinition { inputs: "T y, T x", ..two }), &[x.clone(), y.clone()]),
            of(&kernel(ReductionDefinition { output: "float32 y", ..two }), &[x.clone(), y.clone()]),
            of(&kernel(ReductionDefinition { map: "x + y", ..two }), &[x.clone(), y.clone()]),
            of(&kernel(ReductionDefinition { reduce: "max(a, b)", ..two }), &[x.clone(), y.clone()]),
            of(&kernel(two).with_preamble("#define N 1"), &[x.clone(), y.clone()]),
            of(&kernel(two).with_option("-DN=1"), &[x.clone(), y.clone()]),
        ];
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[1], of(&kernel(two), &[x, 2.into()]), "the key does not include numbers");
    }

    #[test]
    fn code_that_includes_is_known() {
        let includes = |kernel: ReductionKernel| kernel.build_reduction_call(&[array(DType::F32)], None).unwrap().reduction.has_includes();
        let norm = || ReductionKernel::new(NORM).unwrap();
        assert!(!includes(norm()) && !includes(norm().with_preamble("#define include 1")));
        assert!(includes(norm().with_preamble("# include <cuprum.cuh>")) && includes(norm().with_option("-include=a.h")));
    }
}
