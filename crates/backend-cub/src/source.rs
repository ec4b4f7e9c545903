//! Sources of kernels, put together from parts, and the kernels compiled from them.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use cuprum_backend_cuda::codegen::{self, Access, KernelKey, PRELUDE};
use cuprum_backend_cuda::driver::Context;
use cuprum_backend_cuda::libraries::CcclHeaders;
use cuprum_backend_cuda::module::Function;
use cuprum_backend_cuda::single_flight::SingleFlight;
use cuprum_backend_cuda::{CudaError, program};
use cuprum_core::{Program, Reason};
use smallvec::SmallVec;

use crate::headers;

/// Compiling options. The unroll limit halves the front end's time and leaves the code as it is (NVRTC's default is 16,
/// nvcc's 10); programmatic dependent launch would need device code linked at run time.
pub const OPTIONS: &[&str] = &["-D_CCCL_META_UNROLL_LIMIT=8", "-DCCCL_DISABLE_PDL"];

/// CUDA C++ of one family for one program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Shown in compile errors.
    pub name: String,
    /// The text.
    pub text: String,
    /// The `extern "C"` kernels in it.
    pub kernels: &'static [&'static str],
}

/// The fixed text of a family of kernels.
pub struct Family {
    /// File name.
    pub name: &'static str,
    /// The macro that makes the shim include what it needs.
    pub macro_name: &'static str,
    /// Text that [`Definitions`] may speak of.
    pub head: &'static str,
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
    /// Adds `using name = type;`.
    pub fn alias(&mut self, name: &str, of: &str) {
        let _ = writeln!(self.declarations, "using {name} = {of};"); // writing to a String cannot fail
    }

    /// Adds `constexpr int name = value;`.
    pub fn constant(&mut self, name: &str, value: usize) {
        let _ = writeln!(self.declarations, "constexpr int {name} = {value};");
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

    fn with_element(&self, element: &str, d: &Definitions, kernels: &'static [&'static str]) -> Source {
        let parts = [
            &format!("#define {}\n{}", self.macro_name, d.macros),
            include_str!("kernels/shim.cuh"),
            PRELUDE,
            self.head,
            element,
            &format!("namespace cuprum {{\n{}}}\n\n", d.declarations),
            &self.text.concat(),
        ];
        Source { name: self.name.into(), text: parts.concat(), kernels }
    }
}

/// The kernels of one source, in its order.
pub type Kernels = Arc<SmallVec<[Arc<Function>; 4]>>;

/// The kernels under a key, compiled from `source` if they are not there yet.
///
/// A source that does not compile with the CCCL found here is a reason to decline, and is not tried again.
pub fn kernels(
    context: &'static Context,
    key: KernelKey,
    source: impl FnOnce() -> Result<Source, &'static str>,
) -> Result<Result<Kernels, Reason>, CudaError> {
    static BUILT: LazyLock<SingleFlight<Result<Kernels, Arc<str>>>> = LazyLock::new(SingleFlight::default);
    let key = key.with(context.info().ordinal as u64);
    let built = BUILT.get_or_make(key.hash(), key.bytes(), || {
        let refused = |text: String| Ok(Err(Arc::<str>::from(text)));
        let source = match source() {
            Ok(source) => source,
            Err(op) => return refused(format!("{op}: no code for it")),
        };
        let headers = headers::shared()?;
        match build(context, headers, &source) {
            Ok(kernels) => Ok(Ok(kernels)),
            Err(CudaError::Compile { log, .. }) => {
                tracing::warn!(source = source.name, %headers, log, "a kernel does not compile; its calls go to the base");
                refused(format!("{} does not compile with {headers}", source.name))
            }
            Err(e) => Err(e),
        }
    })?;
    Ok(built.map_err(|text| Reason::with(|| text.to_string())))
}

fn build(context: &'static Context, headers: &CcclHeaders, source: &Source) -> Result<Kernels, CudaError> {
    let (major, minor, patch) = headers.version;
    let built = program::Program {
        name: &source.name,
        source: &source.text,
        options: OPTIONS,
        include_dirs: &[&headers.include],
        identity: &format!("CCCL {major}.{minor}.{patch}"),
        ..program::Program::default()
    }
    .build(context)?;
    let functions: Result<SmallVec<_>, _> = source.kernels.iter().map(|name| built.function_named(name)).collect();
    Ok(Arc::new(functions?))
}

/// `cast<result>(inputs[0] * inputs[1] + 0.5)`, for the lists of sources that are compiled without a device.
pub(crate) fn fused_example(input: cuprum_core::DType, result: cuprum_core::DType) -> Program {
    use cuprum_core::ops::elementwise::{ADD, MULTIPLY};
    use cuprum_core::{Scalar, StepKind};
    let mut p = Program::default();
    let [a, b] = [0, 1].map(|n| p.push(StepKind::Input(n), input, [0; 3]));
    p.params.push(Scalar::Float(0.5));
    let half = p.push(StepKind::Param(0), input, [0; 3]);
    let product = p.push(StepKind::Apply(MULTIPLY), input, [a, b, 0]);
    let sum = p.push(StepKind::Apply(ADD), input, [product, half, 0]);
    let out = p.push(StepKind::Cast, result, [sum, 0, 0]);
    p.outputs.push(out);
    p
}
