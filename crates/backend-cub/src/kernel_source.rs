//! Assembles the CUDA source of kernels from fixed files, generated definitions and the fused program.

use std::fmt::Write;

use cuprum_backend_cuda::codegen::{self, AccumulatorCode, CUDA_PRELUDE, InnermostAxisAccess};
use cuprum_core::body::{BodyDType, GenericBound, OperationBody};
use cuprum_core::op::{Cost, OpDef, ReductionDef, ReductionIdentity};
use cuprum_core::{Op, Program};

/// NVRTC options for every source.
///
/// CCCL unrolls its metaprograms up to a limit, which is 16 for NVRTC and 10 for nvcc by default. A limit of 8 halves the time of the
/// compiler's front end without changing the generated code. Programmatic dependent launch is disabled because it would need device code
/// that is linked at run time.
pub const NVRTC_OPTIONS: &[&str] = &["-D_CCCL_META_UNROLL_LIMIT=8", "-DCCCL_DISABLE_PDL"];

/// C++ source of block-wide reductions and scans. Requires [`codegen::device_sources::WARP_SHUFFLE_SOURCE`].
pub const BLOCK_FOLD_AND_SCAN_SOURCE: &str = include_str!("kernels/block.cuh");

/// CUDA C++ source of one or more kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratedSource {
    /// File name that compile errors show.
    pub name: String,
    /// The complete source code.
    pub code: String,
    /// Names of the `extern "C"` kernels in the source.
    pub kernels: &'static [&'static str],
    /// Additional headers that the source includes, as (name, code).
    pub headers: Vec<(String, String)>,
    /// NVRTC options in addition to [`NVRTC_OPTIONS`].
    pub options: Vec<String>,
}

/// The fixed part of a kernel source: headers and the files with the kernels.
pub struct SourceTemplate {
    /// File name that compile errors show.
    pub name: &'static str,
    /// Whether the source includes CUB's block algorithms.
    pub includes_cub: bool,
    /// Headers that come before the generated definitions.
    pub headers: &'static [&'static str],
    /// Files with the kernels, which follow the generated definitions.
    pub body: &'static [&'static str],
}

/// Generated macros and declarations, which configure the kernels of a [`SourceTemplate`].
#[derive(Default)]
pub struct SourceDefinitions {
    /// Preprocessor lines at the start of the source.
    pub macros: String,
    /// Declarations in namespace `cuprum`, between the fused program and the template's body.
    pub declarations: String,
}

impl SourceDefinitions {
    /// Adds `constexpr type name = value;`.
    pub fn define_constant(&mut self, cuda_type: &str, name: &str, value: &str) {
        let _ = writeln!(self.declarations, "constexpr {cuda_type} {name} = {value};"); // writing to a String cannot fail
    }

    /// Adds `using name = type;`.
    pub fn define_type(&mut self, name: &str, cuda_type: &str) {
        let _ = writeln!(self.declarations, "using {name} = {cuda_type};"); // writing to a String cannot fail
    }

    /// Adds the definition of `CustomFold`, the function object (fold) of a reduction for which `fold.cuh` has no template. `fold.cuh`
    /// lists the members of a fold.
    pub fn define_fold(&mut self, combination: &AccumulatorCode) {
        let AccumulatorCode { acc, identity, value, combine, finish, .. } = combination;
        let _ = write!(
            self.declarations,
            "struct CustomFold {{
    using Acc = {acc};
    __device__ static Acc identity() {{ return {identity}; }}
    __device__ static Acc from_element(const Result& x, i64) {{ return {value}; }}
    __device__ Acc operator()(const Acc& a, const Acc& b) const {{ return {combine}; }}
    template <class Out> __device__ static Out to_result(const Acc& a) {{ return {finish}; }}
}};
"
        ); // writing to a String cannot fail
    }

    /// Adds `constexpr int name = value;`.
    pub fn define_int(&mut self, name: &str, value: usize) {
        self.define_constant("int", name, &value.to_string());
    }
}

impl SourceTemplate {
    /// Returns the source of kernels that evaluate a fused program.
    ///
    /// # Errors
    /// Returns the name of an operation of the program that has no CUDA implementation.
    pub fn source_with_program(
        &self,
        program: &Program,
        access: InnermostAxisAccess,
        d: &SourceDefinitions,
        kernels: &'static [&'static str],
    ) -> Result<GeneratedSource, &'static str> {
        Ok(self.source_with_element_code(&codegen::element_source(program, access)?, d, kernels))
    }

    /// Returns the source of kernels that do not evaluate a fused program.
    pub fn source_without_program(&self, d: &SourceDefinitions, kernels: &'static [&'static str]) -> GeneratedSource {
        self.source_with_element_code("", d, kernels)
    }

    /// Returns the source of kernels whose elements are computed by the C++ code `element_code`.
    pub fn source_with_element_code(&self, element_code: &str, d: &SourceDefinitions, kernels: &'static [&'static str]) -> GeneratedSource {
        let parts = [
            if self.includes_cub { "#define CUPRUM_CUB_BLOCK\n" } else { "" },
            &d.macros,
            include_str!("kernels/cccl.cuh"),
            CUDA_PRELUDE,
            &self.headers.concat(),
            element_code,
            &format!("namespace cuprum {{\n{}}}\n\n", d.declarations),
            &self.body.concat(),
        ];
        GeneratedSource { name: self.name.into(), code: parts.concat(), kernels, headers: Vec::new(), options: Vec::new() }
    }
}

/// Returns the program `cast<result>(inputs[0] * inputs[1] + 0.5)`, an example for compile checks and tests.
pub(crate) fn fused_example_program(input: cuprum_core::DType, result: cuprum_core::DType) -> Program {
    use cuprum_core::ops::elementwise::{ADD, MULTIPLY};
    use cuprum_core::{Scalar, StepKind};
    let mut p = Program::default();
    let [a, b] = [0, 1].map(|n| p.push_step(StepKind::Input(n), input, &[]));
    p.params.push(Scalar::Float(0.5));
    let half = p.push_step(StepKind::Param(0), input, &[]);
    let product = p.push_step(StepKind::Apply(MULTIPLY), input, &[a, b]);
    let sum = p.push_step(StepKind::Apply(ADD), input, &[product, half]);
    let out = p.push_step(StepKind::Cast, result, &[sum]);
    p.outputs.push(out);
    p
}

/// A user-defined maximum, an example for compile checks and the coverage table.
pub(crate) const USER_MAX_OP: Op = Op(&USER_MAX_DEF);
static USER_MAX_DEF: OpDef = OpDef {
    name: "kernel! reduction",
    family: cuprum_core::Family::Reduce,
    arity: 1,
    index: u16::MAX,
    rule: None,
    cost: Cost::Cheap,
    composite: None,
    body: Some(&OperationBody {
        parameters: &[],
        bound: GenericBound::Number,
        result: BodyDType::Generic,
        source: &[("larger", "template <class T> __device__ inline T larger(T a, T b) { return user_defined::max(a, b); }")],
        loops: false,
        native: &(),
    }),
    reduction: Some(&ReductionDef::user_defined_reduction(ReductionIdentity::Lowest)),
};
