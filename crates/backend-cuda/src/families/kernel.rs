//! Kernels: compiled at first use, then found by key. Their source is a file of this crate behind the types asked for, or
//! generated for an expression.

use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::codegen::KernelKey;
use crate::compile::module::Function;
use crate::compile::program::Program;
use crate::driver::Context;
use crate::error::{CudaError, Result};
use crate::launch_cache::Recent;

/// Threads of a block, where a kernel has no reason to want another number.
pub(crate) const THREADS: u32 = 256;

/// Element types, axes and the device error word: all that these kernels need of the prelude.
const TYPES: &str = concat!(include_str!("../codegen/prelude/types.cuh"), include_str!("../codegen/prelude/layout.cuh"));

/// An embedded source, compiled behind the element types and the definitions of one use.
#[derive(Debug)]
pub(crate) struct Source {
    /// Shown in compile errors; the key of its kernels.
    pub name: &'static str,
    /// The text.
    pub text: &'static str,
}

/// Macros that a use defines: name and text.
pub(crate) type Defines<'a> = &'a [(&'static str, &'a str)];

impl Source {
    /// The text that is compiled.
    pub fn with(&self, defines: Defines) -> String {
        let defines: String = defines.iter().map(|(name, text)| format!("#define {name} {text}\n")).collect();
        [TYPES, &defines, self.text].concat()
    }

    /// Name and text, for compiling without a device.
    pub fn listed(&self, defines: Defines) -> (String, String) {
        let values: Vec<_> = defines.iter().map(|(_, text)| *text).collect();
        (format!("{}<{}>", self.name, values.join(", ")), self.with(defines))
    }

    /// The `extern "C"` kernel of this name under these definitions.
    pub fn kernel(&self, context: &'static Context, name: &str, defines: Defines) -> Result<Arc<Function>> {
        let mut key = SmallVec::<[u8; 96]>::new();
        let texts = defines.iter().flat_map(|(name, text)| [*name, *text]);
        for text in [self.name, name].into_iter().chain(texts) {
            key.extend_from_slice(text.as_bytes());
            key.push(0);
        }
        let mut hasher = FxHasher::default();
        hasher.write(&key);
        context.kernels().get_or_make(hasher.finish(), &key, || {
            let source = self.with(defines);
            Program { name: self.name, source: &source, ..Program::default() }.build(context)?.function_named(name)
        })
    }
}

/// A kernel that is generated for an expression: `make` gives its name and the whole text, or the operation that has none.
pub(crate) fn generated(
    context: &'static Context,
    key: KernelKey,
    make: impl FnOnce() -> std::result::Result<(String, String), &'static str>,
) -> Result<Arc<Function>> {
    thread_local! {
        static RECENT: Recent<Arc<Function>> = const { Recent::new() };
    }
    let key = key.with(context.info().ordinal as u64);
    if let Some(function) = Recent::find(&RECENT, &key, Arc::clone) {
        return Ok(function);
    }
    let written = key.written();
    let function = context.kernels().get_or_make(written.hash(), written.bytes(), || {
        let (name, source) = make().map_err(|op| CudaError::Invalid(format!("no CUDA expression for {op}")))?;
        Program { name: &name, source: &source, ..Program::default() }.build(context)?.function_named(&name)
    })?;
    Recent::keep(&RECENT, &key, function.clone());
    Ok(function)
}

/// Returns the grid of a grid-stride kernel over `items`: one thread per item, up to the largest grid. Smaller grids are
/// slower (`docs/notes/gpu-elementwise.md`).
pub(crate) fn grid(items: u64, threads: u32) -> [u32; 3] {
    [u32::try_from(items.div_ceil(u64::from(threads))).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs()), 1, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_come_between() {
        let source = Source { name: "a.cu", text: "T f();\n" };
        let defines: Defines = &[("T", "float"), ("N", "3")];
        let whole = source.with(defines);
        assert!(whole.starts_with(TYPES) && whole.ends_with("\n#define T float\n#define N 3\nT f();\n"));
        assert_eq!(source.listed(defines).0, "a.cu<float, 3>");
    }

    #[test]
    fn grids_cover() {
        assert_eq!(grid(0, 256), [0, 1, 1]);
        assert_eq!(grid(1, 256), [1, 1, 1]);
        assert_eq!(grid(257, 256), [2, 1, 1]);
        assert_eq!(grid(1 << 40, 256), [i32::MAX as u32, 1, 1]);
    }
}
