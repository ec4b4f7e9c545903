//! Reduction kernels from strings. A named unsafe room: the launches of what they become.
#![allow(unsafe_code)]

use cuprum_core::layout::{Dims, Strides, normalize_axes};
use cuprum_core::plan::reduce::{ReduceClass, ReducePlan};
use cuprum_core::{Array, DType, Layout, NdArray, Operand, Result, with_device};
use smallvec::SmallVec;

use super::arg::Arg;
use super::declared::{Built, Declared, Use, computed, stored};
use super::{Launch, RawKernel, RawSource};
use crate::codegen;

/// Operation in errors.
const OP: &str = "ReductionKernel";
/// Threads of a block, as in the kernels' text.
const THREADS: usize = 256;
/// Blocks that fill a device.
const MANY: usize = 1024;
/// Elements of a thread below which rows are not cut.
const FEW: usize = 16;

/// What a [`ReductionKernel`] computes, each part a piece of CUDA C++ (`cupy.ReductionKernel` has them in this order).
#[derive(Clone, Copy, Debug)]
pub struct Reduction<'a> {
    /// Inputs, as for [`ElementwiseKernel`](super::ElementwiseKernel).
    pub inputs: &'a str,
    /// The one output. Its type, `float` for the 16-bit floats, is also that in which is reduced.
    pub output: &'a str,
    /// What an element contributes: an expression of the inputs.
    pub map: &'a str,
    /// What two contributions make together: an expression of `a` and `b`. It must not matter in which order they come.
    pub reduce: &'a str,
    /// How the result follows: a statement that assigns the output from `a`.
    pub post: &'a str,
    /// The result of no elements before `post`: an expression; empty if there is none.
    pub identity: &'a str,
    /// The kernel's name.
    pub name: &'a str,
}

/// A kernel that reduces its inputs, which are broadcast together, over some of their axes; written in CUDA C++ and compiled for the
/// dtypes that it meets. The order of combination follows from shape and strides alone, so results do not depend on timing.
///
/// ```no_run
/// use cuprum_backend_cuda::raw::{Reduction, ReductionKernel};
/// use cuprum_core::NdArray;
/// # fn main() -> cuprum_core::Result<()> {
/// let norm = ReductionKernel::new(Reduction {
///     inputs: "T x",
///     output: "float64 y",
///     map: "x * x",
///     reduce: "a + b",
///     post: "y = sqrt(a)",
///     identity: "0",
///     name: "norm",
/// })?;
/// let x = NdArray::from_vec([3.0, 4.0, 6.0, 8.0], [2, 2])?;
/// // SAFETY: the code touches its own elements only.
/// assert_eq!(unsafe { norm.call(&[(&x).into()], Some(&[-1])) }?.to_vec::<f64>()?, [5.0, 10.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ReductionKernel {
    declared: Declared,
    map: String,
    reduce: String,
    post: String,
    identity: String,
    built: Built<[RawKernel; 2]>,
}

impl ReductionKernel {
    /// The kernel of these parts.
    ///
    /// # Errors
    /// [`Error::Value`](cuprum_core::Error::Value) for declarations that mean nothing, more than one output, or one of a dtype that no
    /// input tells.
    pub fn new(of: Reduction) -> Result<ReductionKernel> {
        let declared = Declared::new(OP, of.inputs, of.output, of.name)?;
        if declared.outputs.len() != 1 {
            return Err(declared.error("a reduction has one output"));
        }
        let [map, reduce, post, identity] = [of.map, of.reduce, of.post, of.identity].map(str::to_owned);
        Ok(ReductionKernel { declared, map, reduce, post, identity, built: Built::default() })
    }

    /// Code before the kernel: functions, constants.
    pub fn preamble(mut self, text: impl Into<String>) -> ReductionKernel {
        self.built = self.built.preamble(text.into());
        self
    }

    /// An option of NVRTC.
    pub fn option(mut self, option: impl Into<String>) -> ReductionKernel {
        self.built = self.built.option(option.into());
        self
    }

    /// Reduces over these axes, or over all. Does not wait for the device.
    ///
    /// # Errors
    /// Inputs of another number or dtype than declared, on different devices or none of CUDA, or of shapes that do not broadcast; axes
    /// that are none; nothing to reduce and no identity; [`Error::Backend`](cuprum_core::Error::Backend) with the log and the line for
    /// code that does not compile.
    ///
    /// # Safety
    /// The code reads raw arrays only inside them, writes nothing but its output and variables of its own, and assigns the output.
    pub unsafe fn call(&self, args: &[Operand], axes: Option<&[isize]>) -> Result<NdArray> {
        let dtypes = self.declared.dtypes(args)?;
        let device = self.declared.device(args)?;
        let shape = self.declared.shape(args)?.ok_or_else(|| self.declared.error("no array but raw ones tells what is reduced"))?;
        let axes: Dims = axes.map_or_else(|| Ok((0..shape.len()).collect()), |axes| normalize_axes(OP, axes, shape.len()))?;
        let views = self.declared.views(args, &shape)?;
        let looped = self.declared.looped(&views)?;
        let layouts: SmallVec<[&Layout; 8]> = looped.iter().map(|a| a.layout()).collect();
        let plan = ReducePlan::new(&shape, &layouts, &axes, false);
        if plan.reduced_size == 0 && plan.kept_size > 0 && self.identity.is_empty() {
            return Err(self.declared.error("nothing to reduce, and no identity"));
        }
        let wide = is_wide(&plan);
        let numbers = views.iter().map(Option::is_none).collect();
        let used = Use { device, dtypes: dtypes.clone(), numbers, ranks: [plan.kept.len(), plan.reduced.len()], wide };
        let make = |used: &Use| {
            let module = self.source(used).compile_on(device)?;
            Ok([module.kernel(&self.declared.symbol())?, module.kernel(&self.finish())?])
        };
        let [kernel, finish] = self.built.get_or(&used, make)?;

        let (of_inputs, out) = dtypes.split_at(self.declared.inputs.len());
        let out = out.first().copied().unwrap_or(DType::F64);
        let kept: Dims = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
        let split = Split::new(plan.class == ReduceClass::Column, plan.kept_size, plan.reduced_size);
        let bytes = if split.chunks > 1 { plan.kept_size * split.chunks * part_size(out) } else { 0 };
        let empty = || Ok((NdArray::empty(&kept[..], out)?, NdArray::empty(bytes, DType::U8)?));
        let (mut output, mut parts) = with_device(device, empty)?;
        if plan.kept_size == 0 {
            return Ok(output);
        }
        let pack = |dims: &[usize], strides: &[Strides]| codegen::pack_axes(dims, strides.iter().map(|s| s.as_slice()), wide);
        let (kept_axes, reduced_axes) = (pack(&plan.kept, &plan.kept_strides), pack(&plan.reduced, &plan.reduced_strides));
        let blocks = plan.kept_size.div_ceil(split.rows()).saturating_mul(split.chunks);
        let mut list = self.declared.arguments(args, &views, of_inputs);
        list.push(if split.chunks > 1 { Arg::from(&mut parts) } else { Arg::null() });
        list.push(Arg::from(&mut output));
        list.extend([Arg::bytes(&kept_axes), Arg::bytes(&reduced_axes), plan.kept_size.into(), plan.reduced_size.into()]);
        list.extend([split.chunk.into(), split.chunks.into(), Arg::from(split.lanes as u32), Arg::from(split.across)]);
        // SAFETY: the parameters of the text that `source` writes: `plan` keeps inputs inside their arrays, the output has an element for
        // each row, `parts` one for each row and chunk if there are several, and axes are of the ranks compiled for; what the
        // user's code does is the caller's word.
        unsafe { kernel.launch(Launch::new(u32::try_from(blocks).unwrap_or(u32::MAX), THREADS as u32), &mut list[..]) }?;
        drop(list);
        if split.chunks > 1 {
            let rows = u32::try_from(plan.kept_size).unwrap_or(u32::MAX);
            let mut list = [Arg::from(&parts), Arg::from(&mut output), split.chunks.into()];
            // SAFETY: as above; a block for each row.
            unsafe { finish.launch(Launch::new(rows, THREADS as u32), &mut list) }?;
        }
        Ok(output)
    }

    /// The name of the kernel that combines chunks.
    fn finish(&self) -> String {
        format!("{}_finish", self.declared.symbol())
    }

    /// The whole text of a use.
    fn source(&self, used: &Use) -> RawSource {
        let mut text = self.built.text(&self.declared, used);
        let Some((output, dtype)) = text.outputs().next() else { return RawSource::default() };
        let (out, index) = (stored(dtype), text.index());
        text.line(format_args!("using cuprum_total = {};", computed(dtype)));
        text.line(
            "__device__ inline cuprum_total cuprum_reduce(const cuprum_total a, const cuprum_total b) { return static_cast<cuprum_total>(",
        );
        text.code("reduce", &self.reduce);
        text.line("); }\n__device__ inline cuprum_total cuprum_identity(const cuprum_total none) { return static_cast<cuprum_total>(");
        text.code("identity", if self.identity.is_empty() { "none" } else { &self.identity });
        text.line(format_args!(
            "); }}\n__device__ inline {} cuprum_post(const cuprum_total a) {{\n    {0} {};",
            computed(dtype),
            output.name
        ));
        text.code("post", &self.post);
        text.line(format_args!("    ;\n    return {};\n}}", output.name));
        text.line(include_str!("../kernels/reduction.cuh"));

        let mut parameters = text.input_parameters();
        parameters.push(format!("cuprum_part* cuprum_parts, {out}* out_{}", output.name));
        parameters
            .extend([(used.ranks[0], "kept"), (used.ranks[1], "reduced")].map(|(rank, name)| format!("{} cuprum_{name}", text.axes(rank))));
        parameters.push("unsigned long long cuprum_rows, unsigned long long cuprum_columns, unsigned long long cuprum_chunk".into());
        parameters.push("unsigned long long cuprum_chunks, unsigned cuprum_lanes, bool cuprum_across".into());
        text.line(format_args!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) {}({}) {{",
            self.declared.symbol(),
            parameters.join(", ")
        ));
        text.line(
            "    const cuprum_place cuprum_here(cuprum_rows, cuprum_columns, cuprum_chunk, cuprum_chunks, cuprum_lanes, cuprum_across);",
        );
        text.line("    cuprum_part cuprum_mine{cuprum_total(), false};");
        text.line("    if (cuprum_here.row < cuprum_rows) {");
        text.line(format_args!("        const auto cuprum_row = cuprum_kept.offsets(static_cast<cuprum::{index}>(cuprum_here.row));"));
        text.line("        for (unsigned long long cuprum_j = cuprum_here.begin; cuprum_j < cuprum_here.end; cuprum_j += cuprum_lanes) {");
        text.line(format_args!(
            "        const auto cuprum_at = cuprum_row + cuprum_reduced.offsets(static_cast<cuprum::{index}>(cuprum_j));"
        ));
        text.load();
        text.line("        cuprum_mine.add(cuprum_part{static_cast<cuprum_total>(");
        text.code("map", &self.map);
        text.line("        ), true});\n        }\n    }");
        text.line("    cuprum_together(cuprum_mine, cuprum_here.lane, cuprum_lanes, cuprum_here.step);");
        text.line("    if (cuprum_here.lane != 0 || cuprum_here.row >= cuprum_rows) return;");
        text.line("    if (cuprum_chunks > 1) cuprum_parts[cuprum_here.row * cuprum_chunks + cuprum_here.chunk] = cuprum_mine;");
        text.line(format_args!("    else out_{}[cuprum_here.row] = cuprum::cast<{out}>(cuprum_result(cuprum_mine));\n}}", output.name));

        text.line(format_args!("extern \"C\" __global__ void __launch_bounds__({THREADS})"));
        text.line(format_args!("{}(const cuprum_part* cuprum_parts, {out}* out, unsigned long long cuprum_chunks) {{", self.finish()));
        text.line("    cuprum_part cuprum_mine{cuprum_total(), false};");
        text.line("    const cuprum_part* cuprum_own = cuprum_parts + blockIdx.x * cuprum_chunks;");
        text.line("    for (unsigned long long k = threadIdx.x; k < cuprum_chunks; k += blockDim.x) cuprum_mine.add(cuprum_own[k]);");
        text.line("    cuprum_together(cuprum_mine, threadIdx.x, blockDim.x, 1);");
        text.line(format_args!("    if (threadIdx.x == 0) out[blockIdx.x] = cuprum::cast<{out}>(cuprum_result(cuprum_mine));\n}}"));
        text.source()
    }
}

/// Bytes of a `cuprum_part`: a value, and whether it is one.
fn part_size(out: DType) -> usize {
    2 * if matches!(out, DType::F16 | DType::BF16) { 4 } else { out.itemsize() }
}

fn is_wide(plan: &ReducePlan) -> bool {
    let dims: Dims = plan.kept.iter().chain(&plan.reduced).copied().collect();
    let strides = plan.kept_strides.iter().zip(&plan.reduced_strides).map(|(k, r)| k.iter().chain(r).copied().collect::<Strides>());
    let strides: SmallVec<[Strides; 4]> = strides.collect();
    !codegen::fits_narrow(plan.kept_size.saturating_mul(plan.reduced_size), &dims, strides.iter().map(|s| s.as_slice()))
}

/// How rows are given to threads. By shape alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    /// Threads of a row: a power of two.
    lanes: usize,
    /// Neighbouring threads have neighbouring rows, not neighbouring elements of one.
    across: bool,
    /// Elements of a row that one block takes.
    chunk: usize,
    /// How many such pieces a row has.
    chunks: usize,
}

impl Split {
    fn new(across: bool, rows: usize, columns: usize) -> Split {
        let most = if across { THREADS / 32 } else { THREADS };
        let lanes = if across { (MANY * THREADS / rows.max(1)).next_power_of_two() } else { columns.max(1).next_power_of_two() };
        let lanes = lanes.clamp(1, most);
        let blocks = rows.div_ceil(THREADS / lanes).max(1);
        let chunks = (MANY / blocks).min(columns / (lanes * FEW)).max(1);
        let chunk = columns.div_ceil(chunks).next_multiple_of(lanes).max(lanes);
        Split { lanes, across, chunk, chunks: columns.div_ceil(chunk).max(1) }
    }

    /// Rows of a block.
    fn rows(&self) -> usize {
        THREADS / self.lanes
    }
}

#[cfg(test)]
mod tests {
    use super::super::declared::tests::{array, compiler, used, why};
    use super::*;

    const NORM: Reduction =
        Reduction { inputs: "T x", output: "float64 y", map: "x * x", reduce: "a + b", post: "y = sqrt(a)", identity: "0", name: "norm" };

    #[test]
    fn rows_are_split_by_shape() {
        let all = |rows, columns| {
            let s = Split::new(false, rows, columns);
            (s.lanes, s.chunk, s.chunks)
        };
        assert_eq!(all(1, 0), (1, 1, 1));
        assert_eq!(all(1, 5), (8, 8, 1));
        assert_eq!(all(1_000_000, 3), (4, 4, 1));
        assert_eq!(all(1, 4096), (256, 4096, 1));
        assert_eq!(all(1, 8192), (256, 4096, 2));
        assert_eq!(all(1, 1 << 30), (256, 1 << 20, 1024));
        assert_eq!(all(2000, 1 << 20), (256, 1 << 20, 1));
        assert_eq!(Split::new(true, 1 << 20, 1000), Split { lanes: 1, across: true, chunk: 1000, chunks: 1 });
        assert_eq!(Split::new(true, 32, 10_000).lanes, 8);
        for (across, rows, columns) in [(false, 3, 100_001), (true, 7, 99_999), (true, 1, 1), (false, 1, 257)] {
            let s = Split::new(across, rows, columns);
            assert!(s.chunk * s.chunks >= columns && s.chunk * (s.chunks - 1) < columns, "{s:?}");
            assert!(s.lanes.is_power_of_two() && THREADS.is_multiple_of(s.lanes));
        }
    }

    #[test]
    fn wrong_calls_are_refused() {
        assert!(why(ReductionKernel::new(Reduction { output: "T y, T z", ..NORM })).contains("one output"));
        let norm = ReductionKernel::new(NORM).unwrap();
        // SAFETY: both are refused.
        unsafe {
            assert!(why(norm.call(&[1.into()], None)).contains("no array but raw ones"));
            assert!(why(norm.call(&[array(DType::F32)], Some(&[1]))).contains("axis 1 is out of bounds"));
        }
    }

    #[test]
    fn every_kind_of_use_compiles() {
        let Some(compiler) = compiler() else { return };
        let made = |kernel: &ReductionKernel, args: &[Operand], ranks, wide| {
            kernel.source(&used(&kernel.declared, args, ranks, wide)).compile_code(&compiler, 90)
        };
        let weighted =
            Reduction { inputs: "T x, T w, float32 t, raw T table", output: "T y", map: "x * w * t + T(table[0])", post: "y = a", ..NORM };
        let weighted = ReductionKernel::new(weighted).unwrap();
        for (dtype, ranks, wide) in
            [(DType::F32, [0, 1], false), (DType::F64, [1, 1], true), (DType::BF16, [2, 1], false), (DType::U8, [1, 0], true)]
        {
            let args = [array(dtype), 2.into(), 0.5.into(), array(dtype)];
            let compiled = made(&weighted, &args, ranks, wide).unwrap_or_else(|e| panic!("{dtype}: {e}"));
            assert_eq!(compiled.log, "", "{dtype}");
        }
        let sum =
            Reduction { output: "T y", map: "x", reduce: "cuprum::op::add(a, b)", post: "y = a", identity: "cuprum::c128(0, 0)", ..NORM };
        assert_eq!(made(&ReductionKernel::new(sum).unwrap(), &[array(DType::C128)], [1, 1], false).unwrap().log, "");
        let most = ReductionKernel::new(Reduction { reduce: "max(a, b)", identity: "", ..NORM }).unwrap();
        assert_eq!(made(&most, &[array(DType::F32)], [1, 1], false).unwrap().log, "");
        let bad = ReductionKernel::new(Reduction { post: "y =\n sqrt(b)", ..NORM }).unwrap();
        let error = made(&bad, &[array(DType::F32)], [0, 1], false).unwrap_err().to_string();
        assert!(error.starts_with("compiling norm.cu failed at: 2 |  sqrt(b)"), "{error}");
    }
}
