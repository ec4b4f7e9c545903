//! Sources of kernels, put together from parts.

use std::fmt::Write;

use cuprum_backend_cuda::codegen::{self, Access, Combination, PRELUDE};
use cuprum_core::body::{Body, Bound, Identity, Type};
use cuprum_core::op::{Cost, OpDef};
use cuprum_core::{Op, Program};

/// Compiling options. The unroll limit halves the front end's time and leaves the code as it is (NVRTC's default is 16,
/// nvcc's 10); programmatic dependent launch would need device code linked at run time.
pub const OPTIONS: &[&str] = &["-D_CCCL_META_UNROLL_LIMIT=8", "-DCCCL_DISABLE_PDL"];

/// Reductions and scans within a block. After [`codegen::parts::WARP`].
pub const BLOCK: &str = include_str!("kernels/block.cuh");

/// CUDA C++ of one family for one program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Shown in compile errors.
    pub name: String,
    /// The text.
    pub text: String,
    /// The `extern "C"` kernels in it.
    pub kernels: &'static [&'static str],
    /// Headers that the text includes beside CCCL's: name and text.
    pub headers: Vec<(String, String)>,
    /// Options beside [`OPTIONS`].
    pub options: Vec<String>,
}

/// The fixed text of a family of kernels.
pub struct Family {
    /// File name.
    pub name: &'static str,
    /// Whether it takes algorithms of blocks from CUB.
    pub blocks: bool,
    /// Text that [`Definitions`] may speak of.
    pub head: &'static [&'static str],
    /// The kernels' text, in parts.
    pub text: &'static [&'static str],
}

/// Macros and types that a use of a family's text defines.
#[derive(Default)]
pub struct Definitions {
    /// Preprocessor lines, for the head.
    pub macros: String,
    /// Declarations in namespace `cuprum`, after the family's head and the program's element.
    pub declarations: String,
}

impl Definitions {
    /// Adds `constexpr type name = value;`.
    pub fn value(&mut self, of: &str, name: &str, value: &str) {
        let _ = writeln!(self.declarations, "constexpr {of} {name} = {value};"); // writing to a String cannot fail
    }

    /// Adds `using name = type;`.
    pub fn alias(&mut self, name: &str, of: &str) {
        let _ = writeln!(self.declarations, "using {name} = {of};"); // writing to a String cannot fail
    }

    /// Adds the fold `Own` (see `fold.cuh`) of a reduction that is not core's.
    pub fn own_fold(&mut self, of: &Combination) {
        let Combination { acc, identity, value, combine, finish, .. } = of;
        let _ = write!(
            self.declarations,
            "struct Own {{
    using Acc = {acc};
    __device__ static Acc identity() {{ return {identity}; }}
    __device__ static Acc enter(const Result& x, i64) {{ return {value}; }}
    __device__ Acc operator()(const Acc& a, const Acc& b) const {{ return {combine}; }}
    template <class Out> __device__ static Out leave(const Acc& a) {{ return {finish}; }}
}};
"
        ); // writing to a String cannot fail
    }

    /// Adds `constexpr int name = value;`.
    pub fn constant(&mut self, name: &str, value: usize) {
        self.value("int", name, &value.to_string());
    }
}

impl Family {
    /// The source for a program; an error names the operation that has no code.
    pub fn source(
        &self,
        program: &Program,
        access: Access,
        d: &Definitions,
        kernels: &'static [&'static str],
    ) -> Result<Source, &'static str> {
        Ok(self.with_element(&codegen::element(program, access)?, d, kernels))
    }

    /// The source of kernels that evaluate no program.
    pub fn plain_source(&self, d: &Definitions, kernels: &'static [&'static str]) -> Source {
        self.with_element("", d, kernels)
    }

    /// The source of kernels for an element's code.
    pub fn with_element(&self, element: &str, d: &Definitions, kernels: &'static [&'static str]) -> Source {
        let parts = [
            if self.blocks { "#define CUPRUM_BLOCKS\n" } else { "" },
            &d.macros,
            include_str!("kernels/shim.cuh"),
            PRELUDE,
            &self.head.concat(),
            element,
            &format!("namespace cuprum {{\n{}}}\n\n", d.declarations),
            &self.text.concat(),
        ];
        Source { name: self.name.into(), text: parts.concat(), kernels, headers: Vec::new(), options: Vec::new() }
    }
}

/// `cast<result>(inputs[0] * inputs[1] + 0.5)`, for the lists of sources that are compiled without a device.
pub(crate) fn fused_example(input: cuprum_core::DType, result: cuprum_core::DType) -> Program {
    use cuprum_core::ops::elementwise::{ADD, MULTIPLY};
    use cuprum_core::{Scalar, StepKind};
    let mut p = Program::default();
    let [a, b] = [0, 1].map(|n| p.push(StepKind::Input(n), input, &[]));
    p.params.push(Scalar::Float(0.5));
    let half = p.push(StepKind::Param(0), input, &[]);
    let product = p.push(StepKind::Apply(MULTIPLY), input, &[a, b]);
    let sum = p.push(StepKind::Apply(ADD), input, &[product, half]);
    let out = p.push(StepKind::Cast, result, &[sum]);
    p.outputs.push(out);
    p
}

/// The larger of two: a reduction as another crate has it, for the lists of sources and of what is taken.
pub(crate) const LARGER: Op = Op(&LARGER_ROW);
static LARGER_ROW: OpDef = OpDef {
    name: "kernel! reduction",
    family: cuprum_core::Family::Reduce,
    arity: 1,
    index: u16::MAX,
    rule: None,
    cost: Cost::Cheap,
    composite: None,
    body: Some(&Body {
        parameters: &[],
        bound: Bound::Number,
        result: Type::Generic,
        source: &[("larger", "template <class T> __device__ inline T larger(T a, T b) { return own::max(a, b); }")],
        loops: false,
        identity: Some(Identity::Lowest),
        native: &(),
    }),
};
