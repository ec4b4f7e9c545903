//! Elementwise kernels that a user defines by strings. Allows unsafe code for the launches.
#![allow(unsafe_code)]

use cuprum_core::plan::elementwise::LoopPlan;
use cuprum_core::{DType, Layout, NdArray, Operand, Result, empty, with_device};
use smallvec::SmallVec;

use super::kernel_arg::Arg;
use super::kernel_declaration::{
    DeclaredParameter, KernelDeclaration, KernelSpecialization, SpecializationCache, computation_ctype, storage_ctype,
};
use super::{RawKernel, RawSource};
use crate::codegen;

/// A CUDA C++ kernel that computes each element of its outputs from the corresponding elements of its inputs (`cupy.ElementwiseKernel`).
/// Inputs are broadcast. The kernel is compiled for each combination of dtypes.
///
/// Parameters are declared as in CuPy, `float32 x, T y, raw T z`. An upper-case letter is a generic dtype. All parameters with the same
/// letter have the same dtype. Inputs are arrays or numbers. A `raw` input is not broadcast: the code receives a pointer to a whole array
/// in C order. `i` is the C-order index of the element, and `n` the number of elements. Elements of float16 and bfloat16 have the type
/// `float` in the code.
///
/// Array operators and functions fuse automatically. This type is for code that these operators and functions cannot express.
///
/// ```no_run
/// use cuprum_backend_cuda::user_kernels::ElementwiseKernel;
/// use cuprum_core::{NdArray, arange};
/// # fn main() -> cuprum_core::Result<()> {
/// let squared_difference = ElementwiseKernel::new("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")?;
/// let x = arange(0, 10, 1)?.reshape([2, 5])?;
/// // SAFETY: the code accesses its own elements only.
/// let z = unsafe { squared_difference.call(&[(&x).into(), 3.into()]) }?.remove(0);
/// assert_eq!(z.to_vec::<i64>()?, [9, 4, 1, 0, 1, 4, 9, 16, 25, 36]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ElementwiseKernel {
    declared: KernelDeclaration,
    code: String,
    built: SpecializationCache<RawKernel>,
}

impl ElementwiseKernel {
    /// Makes a kernel from the declarations of its inputs and outputs, and from code that assigns every output.
    ///
    /// # Errors
    /// [`Error::Value`](cuprum_core::Error::Value) for invalid declarations or names, and for outputs whose dtype no input
    /// determines.
    pub fn new(inputs: &str, outputs: &str, code: &str, name: &str) -> Result<ElementwiseKernel> {
        let declared = KernelDeclaration::new("ElementwiseKernel", inputs, outputs, name)?;
        Ok(ElementwiseKernel { declared, code: code.into(), built: SpecializationCache::default() })
    }

    /// Sets code that precedes the kernel, such as functions and constants.
    pub fn with_preamble(mut self, text: impl Into<String>) -> ElementwiseKernel {
        self.built = self.built.with_preamble(text.into());
        self
    }

    /// Adds an NVRTC option.
    pub fn with_option(mut self, option: impl Into<String>) -> ElementwiseKernel {
        self.built = self.built.with_option(option.into());
        self
    }

    /// Runs the kernel on `args`, and returns one new array of the inputs' common shape per output. Does not wait for the device.
    ///
    /// # Errors
    /// Returns an error for the wrong number or dtypes of inputs, inputs on different devices or not on a CUDA device, and shapes that do
    /// not broadcast. [`Error::Backend`](cuprum_core::Error::Backend) with the compiler's log and line if the code does not compile.
    ///
    /// # Safety
    /// The code reads raw arrays only within bounds, writes only its outputs and local variables, and assigns every output.
    pub unsafe fn call(&self, args: &[Operand]) -> Result<Vec<NdArray>> {
        let shape = self.declared.common_shape(args)?;
        let no_shape = || self.declared.value_error("all arrays are raw, so the number of elements is unknown; use call_sized");
        // SAFETY: the caller meets the safety requirements of this function, which include those of `run_on_shape`.
        unsafe { self.run_on_shape(args, &shape.ok_or_else(no_shape)?) }
    }

    /// Runs the kernel like [`ElementwiseKernel::call`], for `n` elements (`size=` in CuPy). All arrays must be raw.
    ///
    /// # Errors
    /// The errors of [`ElementwiseKernel::call`], and [`Error::Value`](cuprum_core::Error::Value) for an array that is not raw.
    ///
    /// # Safety
    /// The same as for [`ElementwiseKernel::call`].
    pub unsafe fn call_sized(&self, args: &[Operand], n: usize) -> Result<Vec<NdArray>> {
        if self.declared.arrays_to_broadcast(args).next().is_some() {
            return Err(self.declared.value_error("an array that is not raw determines the size; use call"));
        }
        // SAFETY: the caller meets the safety requirements of this function, which include those of `run_on_shape`.
        unsafe { self.run_on_shape(args, &[n]) }
    }

    /// Runs the kernel on `args`, and returns outputs of shape `shape`. Arrays that are not raw are broadcast to this shape.
    ///
    /// # Safety
    /// The same as for [`ElementwiseKernel::call`].
    unsafe fn run_on_shape(&self, args: &[Operand], shape: &[usize]) -> Result<Vec<NdArray>> {
        let dtypes = self.declared.resolve_dtypes(args)?;
        let device = self.declared.common_device(args)?;
        let views = self.declared.input_views(args, shape)?;
        let looped = self.declared.elementwise_arrays(&views)?;
        let whole = Layout::contiguous(shape)?;
        let layouts: SmallVec<[&Layout; 8]> = looped.iter().map(|a| a.layout()).chain([&whole]).collect();
        let plan = LoopPlan::new(&layouts);
        let strides = || plan.strides.iter().take(looped.len()).map(|s| s.as_slice());
        let wide = !codegen::fits_32_bit_index(plan.size, &plan.dims, strides());

        let is_scalar = views.iter().map(Option::is_none).collect();
        let used = KernelSpecialization { device, dtypes: dtypes.clone(), is_scalar, rank: plan.dims.len(), wide };
        let make =
            |used: &KernelSpecialization| self.specialization_source(used).compile_on(device)?.kernel(&self.declared.kernel_symbol());
        let kernel = self.built.get_or_compile(&used, make)?;

        let (of_inputs, of_outputs) = dtypes.split_at(self.declared.inputs.len());
        let empty = || of_outputs.iter().map(|&dtype| empty(shape, dtype)).collect::<Result<Vec<_>>>();
        let mut outputs = with_device(device, empty)?;
        let axes = codegen::pack_axes(&plan.dims, strides(), wide);
        let mut list = self.declared.kernel_arguments(args, &views, of_inputs);
        list.extend(outputs.iter_mut().map(Arg::from));
        list.push(Arg::bytes(&axes));
        list.push(plan.size.into());
        if plan.size > 0 {
            let launch = kernel.launch_for_items(plan.size)?;
            // SAFETY: the arguments match the kernel that `specialization_source` writes. `plan` keeps inputs inside their arrays, outputs
            // have `plan.size` elements, and `axes` has the rank of `plan`. The caller guarantees that the user's code stays within raw
            // arrays.
            unsafe { kernel.launch(launch, &mut list[..]) }?;
        }
        drop(list);
        Ok(outputs)
    }

    /// Returns the CUDA source of the specialisation `used`.
    fn specialization_source(&self, used: &KernelSpecialization) -> RawSource {
        let mut text = self.built.source_writer(&self.declared, used);
        let index = codegen::index_type(used.wide);
        let inputs: Vec<_> = text.inputs_with_dtypes().zip(&used.is_scalar).map(|((p, dtype), &number)| (p, dtype, number)).collect();
        let parameter = |&(p, dtype, number): &(&DeclaredParameter, DType, bool)| match (p.raw, number) {
            (true, _) => format!("const {}* {}", storage_ctype(dtype), p.name),
            (_, true) => format!("const {} in_{}", storage_ctype(dtype), p.name),
            _ => format!("const {}* in_{}", storage_ctype(dtype), p.name),
        };
        let mut parameters: Vec<String> = inputs.iter().map(parameter).collect();
        parameters.extend(text.outputs_with_dtypes().map(|(p, dtype)| format!("{}* out_{}", storage_ctype(dtype), p.name)));
        let looped = inputs.iter().filter(|(p, _, number)| !p.raw && !number).count();
        parameters.push(format!("const __grid_constant__ cuprum::Axes<cuprum::{index}, {}, {looped}> cuprum_axes", used.rank));
        parameters.push("const unsigned long long cuprum_size".into());
        text.push_line(format_args!("extern \"C\" __global__ void {}({}) {{", self.declared.kernel_symbol(), parameters.join(", ")));
        text.push_line(
            "    const long long n = static_cast<long long>(cuprum_size), cuprum_step = static_cast<long long>(gridDim.x) * blockDim.x;",
        );
        text.push_line("    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += cuprum_step) {");
        text.push_line(format_args!(
            "        [[maybe_unused]] const auto cuprum_at = cuprum_axes.offsets(static_cast<cuprum::{index}>(i));"
        ));
        let mut walked = 0;
        for &(DeclaredParameter { name, .. }, dtype, number) in inputs.iter().filter(|(p, ..)| !p.raw) {
            let from = if number { String::new() } else { format!("[cuprum_at.at[{walked}]]") };
            walked += usize::from(!number);
            text.push_line(format_args!(
                "        [[maybe_unused]] const {0} {name} = cuprum::cast<{0}>(in_{name}{from});",
                computation_ctype(dtype)
            ));
        }
        for (p, dtype) in text.outputs_with_dtypes() {
            text.push_line(format_args!("        {} {};", computation_ctype(dtype), p.name));
        }
        text.push_line("        {");
        text.include_user_code("code", &self.code);
        text.push_line("        ;\n        }");
        for (p, dtype) in text.outputs_with_dtypes() {
            text.push_line(format_args!("        out_{0}[i] = cuprum::cast<{1}>({0});", p.name, storage_ctype(dtype)));
        }
        text.push_line("    }\n}");
        self.built.finish_source(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel_declaration::tests::{array, used, why};
    use super::*;
    use crate::testing::compiler;

    #[test]
    fn sizes_come_from_arrays_or_from_the_caller() {
        let (looped, raw) =
            (ElementwiseKernel::new("T x", "T y", "", "f").unwrap(), ElementwiseKernel::new("raw T x", "T y", "", "g").unwrap());
        let x = array(DType::F32);
        // SAFETY: both calls fail before a launch.
        unsafe {
            assert!(why(raw.call(std::slice::from_ref(&x))).contains("use call_sized"));
            assert!(why(looped.call_sized(&[x], 3)).contains("an array that is not raw determines the size"));
        }
    }

    #[test]
    fn every_specialization_compiles() {
        let Some(compiler) = compiler() else { return };
        let made = |kernel: &ElementwiseKernel, args: &[Operand], rank, wide| {
            kernel.specialization_source(&used(&kernel.declared, args, rank, wide)).compile_code(&compiler, 90)
        };
        let code = "z = x + half(t) * (y - x) + T(table[i % 2]);\nplace = i + n";
        let blend = ElementwiseKernel::new("T x, T y, float32 t, raw T table", "T z, int64 place", code, "blend").unwrap();
        let blend = blend.with_preamble("__device__ float half(float t) { return t / 2; }").with_option("--use_fast_math");
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
