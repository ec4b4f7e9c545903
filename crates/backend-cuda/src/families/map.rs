//! CUDA kernels of the family `Map`: evaluates an elementwise expression in one pass over memory. The kernel is generated for the structure
//! of the expression.

mod cached_map_kernels;

use cuprum_core::call;
use std::fmt::Write;
use std::sync::Arc;

use cuprum_core::layout::{Dims, Strides};
use cuprum_core::op::Cost;
use cuprum_core::plan::elementwise::{self, LoopPlan};
use cuprum_core::{Call, DType, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, Bytes, InnermostAxisAccess, KernelKey, test_programs};
use crate::compile::module::{Args, Function};
use crate::device::{self, WithCallContext};
use crate::driver::Context;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};

pub(crate) use cached_map_kernels::run_map_with_cache;

/// Maximum size of the kernel parameters, in bytes. CUDA guarantees 4096 bytes, some of which the compiler needs for padding.
pub(crate) const MAX_PARAMETER_BYTES: usize = 4000;
/// Side length of a shared-memory tile, in elements. 32 elements of 4 bytes fill a cache line.
const MAP_TILE_SIDE: usize = 32;
/// Minimum extent of an axis that repeats an input (stride 0) from which on reads of the input are assumed to hit a cache.
const MIN_REPEATS_FOR_CACHE_HITS: usize = 16;
/// Maximum shared memory for the tiles of a block, in bytes. With this limit, several blocks can be resident on a multiprocessor.
const MAX_TILE_BYTES: usize = 40 << 10;

/// Executes `call`, an operation of the kernel family `Map`, on the device.
pub fn run_map(call: &Call) -> Result<Outcome> {
    let Work::Map(call::Map { program, plan }) = call.work else { decline!("not a map") };
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    if !outputs_are_contiguous(plan, call.inputs.len()) {
        decline!("an output that is not contiguous in loop order");
    }
    let inputs = device::pointers_to_read(call.inputs)?;
    let kernel = MapKernel::select_map_kernel(program, plan, &inputs);
    let context = device::context(call.device)?;
    let params = codegen::pack_params(program, &inputs, device::error_word_address(context, program).with_call_context(call)?);
    let (axes, span, items) = kernel.pack_loop_arguments(plan, inputs.len());
    if params.len() + axes.len() + span.len() + 8 * (call.outputs.len() + 1) > MAX_PARAMETER_BYTES {
        decline!("{} axes of {} inputs exceed the size of kernel parameters", plan.dims.len(), inputs.len());
    }
    let outputs = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect::<Result<SmallVec<[_; 2]>>>()?;
    let addresses = outputs.iter().enumerate().map(|(n, output)| device::output_address(call, n, output));
    let to: SmallVec<[u8; 64]> = addresses.flat_map(u64::to_le_bytes).collect();
    let mut args = Args::new();
    args.push_bytes(&params);
    if !axes.is_empty() {
        args.push_bytes(&axes);
    }
    if !span.is_empty() {
        args.push_bytes(&span);
    }
    args.push_bytes(&to).push(&items);
    let grid = match kernel.class {
        MapKernelClass::Tiled(_) => [u32::try_from(items).unwrap_or(u32::MAX).min(1 << 20), 1, 1],
        _ => kernel_lookup::grid_for_items(items.div_ceil(kernel.elements_per_thread() as u64), DEFAULT_THREADS_PER_BLOCK),
    };
    let function = kernel.kernel_function(context).with_call_context(call)?;
    if let (MapKernelClass::Flat(access), false) = (kernel.class, kernel.wide) {
        cached_map_kernels::cache_map_kernel(program, call.device, access, kernel.elements_per_thread(), &function);
    }
    // SAFETY: the arguments match the kernels: map_flat.cuh takes no axes, map_packed.cuh and map_strided.cuh the loop axes, and
    // map_tiled.cuh also the tile axes. The plan's strides keep every access inside the input buffers, and each output has `plan.size`
    // elements.
    unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }.with_call_context(call)?;
    device::outcome_from_buffers(call, outputs)
}

/// Returns whether element i of every output is written in iteration i of the loop `plan`.
fn outputs_are_contiguous(plan: &LoopPlan, inputs: usize) -> bool {
    plan.strides[inputs..].iter().all(|strides| {
        let mut expected = 1;
        strides.iter().zip(&plan.dims).rev().all(|(&stride, &n)| {
            let fits = stride == expected;
            expected *= n as isize;
            fits
        })
    })
}

/// The kernel of a map, which depends on the layouts of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MapKernelClass {
    /// The loop has one axis, along which each input has stride 1 or 0 (map_flat.cuh).
    Flat(InnermostAxisAccess),
    /// Some inputs are transposed, and read through shared-memory tiles (map_tiled.cuh).
    Tiled(MapTiling),
    /// The loop has `rank` axes. Along the last axis, each input has stride 1 or 0 (map_packed.cuh). `is_multiple` is true if the extent
    /// of that axis is a multiple of the elements per thread.
    Packed { access: InnermostAxisAccess, rank: usize, is_multiple: bool },
    /// The loop has `rank` axes, along which inputs have any strides (map_strided.cuh).
    Strided { rank: usize },
}

/// A map in which some inputs are contiguous along another axis than the outputs. The kernel transposes these inputs through tiles in
/// shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MapTiling {
    /// Bit k is set if input k is read through a shared-memory tile.
    crossed: u64,
    /// The axis along which the tiled inputs are contiguous. The outputs are contiguous along the last axis.
    across: usize,
    /// Number of axes of the loop.
    rank: usize,
}

impl MapTiling {
    /// Returns the tiling of `plan` if some inputs are contiguous along an axis other than the last one. This must be the same axis for all
    /// these inputs. Returns `None` if that axis or the last one is too short, or if the tiles do not fit in shared memory.
    fn of(plan: &LoopPlan, inputs: usize, itemsizes: impl Fn(usize) -> usize) -> Option<MapTiling> {
        let (last, rank) = (plan.dims.len().checked_sub(1)?, plan.dims.len());
        let (mut crossed, mut across, mut bytes) = (0, None, 0);
        for k in 0..inputs.min(64) {
            let Some(axis) = elementwise::find_transposed_axis(&plan.strides[k]) else { continue };
            if *across.get_or_insert(axis) != axis {
                return None;
            }
            crossed |= 1 << k;
            bytes += itemsizes(k) * MAP_TILE_SIDE * (MAP_TILE_SIDE + 1);
        }
        let across = across?;
        let long = |axis: usize| plan.dims[axis] >= MAP_TILE_SIDE / 2;
        (long(last) && long(across) && bytes <= MAX_TILE_BYTES).then_some(MapTiling { crossed, across, rank })
    }
}

/// The parameters that determine the source of an elementwise kernel.
struct MapKernel<'a> {
    program: &'a Expression,
    class: MapKernelClass,
    /// Whether indices have 64 bits.
    wide: bool,
}

impl<'a> MapKernel<'a> {
    fn select_map_kernel(program: &'a Expression, plan: &LoopPlan, inputs: &[u64]) -> MapKernel<'a> {
        let strides = &plan.strides[..inputs.len()];
        let wide = !codegen::fits_32_bit_index(plan.size, &plan.dims, strides.iter().map(|s| s.as_slice()));
        if !plan.is_flat() || inputs.len() > 64 {
            let (rank, itemsize) = (plan.dims.len(), |k| program.input_dtype(k).map_or(16, DType::itemsize));
            let tiled = || MapTiling::of(plan, inputs.len(), itemsize).map(MapKernelClass::Tiled);
            let packed = || {
                packed_input_access(program, plan, inputs).map(|(access, is_multiple)| MapKernelClass::Packed { access, rank, is_multiple })
            };
            return MapKernel { program, class: tiled().or_else(packed).unwrap_or(MapKernelClass::Strided { rank }), wide };
        }
        let repeated = strides.iter().enumerate().filter(|(_, s)| s.first() == Some(&0)).fold(0, |bits, (k, _)| bits | 1 << k);
        let width = elements_per_thread(program, repeated);
        let is_aligned = |(k, address): (usize, &u64)| {
            let bytes = program.input_dtype(k).map_or(1, DType::itemsize) * width;
            repeated >> k & 1 == 1 || address.is_multiple_of(bytes.min(16) as u64)
        };
        let aligned = inputs.iter().enumerate().all(is_aligned);
        MapKernel { program, class: MapKernelClass::Flat(InnermostAxisAccess { repeated, aligned }), wide }
    }

    /// Returns the number of elements per thread and iteration.
    fn elements_per_thread(&self) -> usize {
        match self.class {
            MapKernelClass::Flat(access) | MapKernelClass::Packed { access, .. } => elements_per_thread(self.program, access.repeated),
            // If a user-defined operation has loops, elements may differ in cost, so each thread computes only one element at a time.
            MapKernelClass::Strided { .. } if has_looping_user_operation(self.program) => 1,
            MapKernelClass::Tiled(_) | MapKernelClass::Strided { .. } => 4,
        }
    }

    /// Returns three kernel arguments: the loop axes as bytes, the tile axes as bytes, and the number of elements or tiles. Axes are empty
    /// if the kernel has no such parameter.
    fn pack_loop_arguments(&self, plan: &LoopPlan, inputs: usize) -> (Bytes, Bytes, u64) {
        let all = plan.strides[..inputs].iter().map(|s| s.as_slice());
        match self.class {
            MapKernelClass::Flat(_) => (Bytes::new(), Bytes::new(), plan.size as u64),
            MapKernelClass::Packed { .. } | MapKernelClass::Strided { .. } => {
                (codegen::pack_axes(&plan.dims, all, self.wide), Bytes::new(), plan.size as u64)
            }
            MapKernelClass::Tiled(MapTiling { across, rank, .. }) => {
                let along = rank - 1;
                let outer: Dims = (0..along).filter(|&a| a != across).collect();
                let dims: Dims = outer.iter().map(|&a| plan.dims[a]).collect();
                let strides: SmallVec<[Strides; 8]> =
                    plan.strides[..=inputs].iter().map(|s| outer.iter().map(|&a| s[a]).collect()).collect();
                let axes = codegen::pack_axes(&dims, strides.iter().map(|s| s.as_slice()), self.wide);
                let mut span: SmallVec<[isize; 20]> = [along, across].iter().map(|&a| plan.dims[a] as isize).collect();
                for axis in [along, across] {
                    span.extend(all.clone().map(|s| s[axis]));
                }
                span.push(plan.strides[inputs][across]);
                let tiles =
                    dims.iter().product::<usize>() * plan.dims[along].div_ceil(MAP_TILE_SIDE) * plan.dims[across].div_ceil(MAP_TILE_SIDE);
                (axes, codegen::pack_offsets(&span, self.wide), tiles as u64)
            }
        }
    }

    fn kernel_name(&self) -> String {
        let class = match self.class {
            MapKernelClass::Flat(_) => "map_flat",
            MapKernelClass::Tiled(_) => "map_tiled",
            MapKernelClass::Packed { .. } => "map_packed",
            MapKernelClass::Strided { .. } => "map_strided",
        };
        codegen::kernel_name(class, self.program)
    }

    fn kernel_key(&self) -> KernelKey<'a> {
        match self.class {
            MapKernelClass::Flat(InnermostAxisAccess { repeated, aligned }) => {
                KernelKey::new("map_flat", self.program).with_number(self.wide.into()).with_number(repeated).with_number(aligned.into())
            }
            MapKernelClass::Tiled(MapTiling { crossed, rank, .. }) => {
                KernelKey::new("map_tiled", self.program).with_number(self.wide.into()).with_number(crossed).with_number(rank as u64)
            }
            MapKernelClass::Packed { access: InnermostAxisAccess { repeated, aligned }, rank, is_multiple } => {
                let key = KernelKey::new("map_packed", self.program)
                    .with_number(self.wide.into())
                    .with_number(repeated)
                    .with_number(aligned.into());
                key.with_number(rank as u64).with_number(is_multiple.into())
            }
            MapKernelClass::Strided { rank } => {
                KernelKey::new("map_strided", self.program).with_number(self.wide.into()).with_number(rank as u64)
            }
        }
    }

    /// Returns the kernel's source, or the name of an operation that has no C++ expression.
    fn cuda_source(&self) -> std::result::Result<String, &'static str> {
        let (access, rank, kernel) = match self.class {
            MapKernelClass::Flat(access) => (access, String::new(), include_str!("../kernels/map_flat.cuh")),
            MapKernelClass::Tiled(MapTiling { rank, .. }) => (
                InnermostAxisAccess::default(),
                format!(", RANK = {}, SIDE = {MAP_TILE_SIDE}", rank - 2),
                include_str!("../kernels/map_tiled.cuh"),
            ),
            MapKernelClass::Packed { access, rank, is_multiple } => {
                let constants = format!(", RANK = {rank};\nconstexpr bool IS_MULTIPLE = {is_multiple}");
                (access, constants, include_str!("../kernels/map_packed.cuh"))
            }
            MapKernelClass::Strided { rank } => {
                (InnermostAxisAccess::default(), format!(", RANK = {rank}"), include_str!("../kernels/map_strided.cuh"))
            }
        };
        let staging = if let MapKernelClass::Tiled(t) = self.class {
            codegen::shared_memory_staging_source(self.program, t.crossed)
        } else {
            String::new()
        };
        let constants = format!(
            "\nnamespace cuprum {{\n\nusing Index = {};\nconstexpr int WIDTH = {}{rank};\n{staging}{}\n}}  // namespace cuprum\n\n",
            codegen::index_type(self.wide),
            self.elements_per_thread(),
            output_stores_source(self.program),
        );
        let element = codegen::element_source(self.program, access)?;
        Ok([codegen::CUDA_PRELUDE, &element, &constants, &kernel.replace("KERNEL", &self.kernel_name())].concat())
    }

    fn kernel_function(&self, context: &'static Context) -> crate::Result<Arc<Function>> {
        kernel_lookup::get_or_generate_kernel(context, self.kernel_key(), || Ok((self.kernel_name(), self.cuda_source()?)))
    }
}

/// Returns whether a user-defined operation of `program` has loops.
fn has_looping_user_operation(program: &Expression) -> bool {
    program.ops().any(|op| op.0.body.is_some_and(|body| body.loops))
}

/// Returns how the kernel [`MapKernelClass::Packed`] reads the inputs along the last axis of the loop, and whether the extent of that axis
/// is a multiple of the elements per thread. Returns `None` if the kernel does not support the loop or is slower than another one.
///
/// Each input has stride 0 or 1 along that axis. If rows are not aligned for vector loads, each input must be repeated along another axis:
/// its elements are then read from a cache, one by one.
fn packed_input_access(program: &Expression, plan: &LoopPlan, inputs: &[u64]) -> Option<(InnermostAxisAccess, bool)> {
    if inputs.len() > 64 || has_looping_user_operation(program) {
        return None;
    }
    let mut repeated = 0;
    for (k, strides) in plan.strides[..inputs.len()].iter().enumerate() {
        match strides.last()? {
            0 => repeated |= 1 << k,
            1 => {}
            _ => return None,
        }
    }
    let width = elements_per_thread(program, repeated);
    let is_aligned = |(k, address): (usize, &u64)| {
        let itemsize = program.input_dtype(k).map_or(16, DType::itemsize);
        let bytes = (itemsize * width).min(16);
        let outer = plan.strides[k].iter().rev().skip(1);
        repeated >> k & 1 == 1
            || address.is_multiple_of(bytes as u64) && outer.map(|s| s.unsigned_abs() * itemsize).all(|s| s.is_multiple_of(bytes))
    };
    let is_multiple = plan.dims.last()?.is_multiple_of(width);
    let aligned = is_multiple && inputs.iter().enumerate().all(is_aligned);
    let is_broadcast =
        |strides: &Strides| strides.iter().zip(&plan.dims).any(|(&stride, &extent)| stride == 0 && extent >= MIN_REPEATS_FOR_CACHE_HITS);
    let fits = width > 1 && (aligned || *plan.dims.last()? >= width && plan.strides[..inputs.len()].iter().all(is_broadcast));
    fits.then_some((InnermostAxisAccess { repeated, aligned }, is_multiple))
}

/// Returns the number of elements per thread: as many elements of the widest dtype as fit in 16 bytes. Programs with expensive operations
/// have fewer elements per thread, which limits the code size. The dtypes of inputs in the bit set `repeated` are ignored.
fn elements_per_thread(program: &Expression, repeated: u64) -> usize {
    let inputs = (0..64).map_while(|k| program.input_dtype(k).map(|d| (k, d))).filter(|(k, _)| repeated >> k & 1 == 0).map(|(_, d)| d);
    let outputs = (0..program.outputs.len()).map(|n| program.output_dtype(n));
    let widest = inputs.chain(outputs).map(DType::itemsize).max().unwrap_or(16);
    let most = match program.ops().filter(|op| op.0.cost == Cost::Expensive).count() {
        0 => 16,
        1 => 8,
        _ => 4,
    };
    (16 / widest).min(most)
}

/// Returns the C++ source of the struct `Outputs`, which has the output addresses, and of the functions that store results at them.
fn output_stores_source(program: &Expression) -> String {
    let lines = |line: &dyn Fn(&mut String, usize, &str)| {
        let mut out = String::new();
        for n in 0..program.outputs.len() {
            line(&mut out, n, codegen::ctype(program.output_dtype(n)));
            out.push('\n');
        }
        out
    };
    // Writing to a `String` cannot fail, so the result of `write!` is dropped.
    let fields = lines(&|out, n, t| _ = write!(out, "    {t}* out{n};"));
    let single = lines(&|out, n, _| _ = write!(out, "    out.out{n}[i] = results.r{n};"));
    let packs = lines(&|out, n, t| _ = write!(out, "    Pack<{t}, WIDTH> pack{n};"));
    let gather = lines(&|out, n, _| _ = write!(out, "        pack{n}.at[k] = results[k].r{n};"));
    let whole = lines(&|out, n, _| _ = write!(out, "    store_aligned(out.out{n} + i, pack{n});"));
    format!(
        "\
struct Outputs {{
{fields}}};
__device__ inline void store(const Outputs& out, Index i, const Results& results) {{
{single}}}
// Outputs are aligned to 16 bytes.
__device__ inline void store_pack(const Outputs& out, Index i, const Results (&results)[WIDTH]) {{
{packs}    #pragma unroll
    for (int k = 0; k < WIDTH; k++) {{
{gather}    }}
{whole}}}
"
    )
}

/// The variants of [`MapKernelClass::Packed`] in compile checks. Each entry has the bit set of repeated inputs, the number of axes, whether
/// inputs are aligned, and whether the last extent is a multiple of the elements per thread.
const PACKED_KERNEL_CHECK_VARIANTS: [(u64, usize, bool, bool); 5] =
    [(0, 2, true, true), (1, 2, true, true), (2, 3, false, false), (0, 5, true, true), (0, 2, false, true)];

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every operation and dtype, many results
/// per kernel, unaligned and repeated inputs, several ranks, and both index widths.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let flat = |repeated, aligned| MapKernelClass::Flat(InnermostAxisAccess { repeated, aligned });
    let programs = test_programs::example_programs();
    let all = programs.iter().enumerate().map(|(n, program)| MapKernel { program, class: flat(0, true), wide: n % 2 == 1 });
    let mixed = [
        test_programs::multiply_add_program(DType::F32, DType::F32, DType::F32),
        test_programs::multiply_add_program(DType::I8, DType::F16, DType::F64),
        test_programs::multiply_add_program(DType::U8, DType::C64, DType::C128),
    ];
    let tiled = |(crossed, rank)| MapKernelClass::Tiled(MapTiling { crossed, across: 0, rank });
    let classes = [flat(0, false), flat(1, true), flat(2, false)].into_iter().chain((1..=6).map(|rank| MapKernelClass::Strided { rank }));
    let packed = |(repeated, rank, aligned, is_multiple)| MapKernelClass::Packed {
        access: InnermostAxisAccess { repeated, aligned },
        rank,
        is_multiple,
    };
    let classes = classes.chain([(1, 2), (2, 3), (3, 4)].map(tiled)).chain(PACKED_KERNEL_CHECK_VARIANTS.map(packed));
    let others = classes.enumerate().map(|(n, class)| MapKernel { program: &mixed[n % 3], class, wide: n % 2 == 1 });
    let taking = [(DType::F32, DType::I32), (DType::C128, DType::I64), (DType::F16, DType::I64), (DType::Bool, DType::I32)];
    let taking = taking.map(|(table, indices)| test_programs::take_program(table, indices));
    let ways = [
        flat(0b10, true),
        MapKernelClass::Tiled(MapTiling { crossed: 0b101, across: 0, rank: 2 }),
        MapKernelClass::Strided { rank: 3 },
        flat(0b10, false),
    ];
    let takes = taking.iter().zip(ways).enumerate().map(|(n, (program, class))| MapKernel { program, class, wide: n % 2 == 1 });
    all.chain(others)
        .chain(takes)
        .map(|kernel| {
            let dtype = kernel.program.input_dtype(0).map_or("", DType::name);
            let name = format!("{}<{dtype}, {}>", kernel.kernel_name(), codegen::index_type(kernel.wide));
            (name, kernel.cuda_source().unwrap_or_else(|op| format!("#error \"no row for {op}\"\n")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_core::{Layout, Scalar, StepKind};

    fn kernel_of<'a>(program: &'a Expression, inputs: &[&Layout], out: &Layout, addresses: &[u64]) -> MapKernel<'a> {
        let operands: Vec<&Layout> = inputs.iter().copied().chain([out]).collect();
        let plan = LoopPlan::new(&operands);
        assert!(outputs_are_contiguous(&plan, inputs.len()));
        MapKernel::select_map_kernel(program, &plan, addresses)
    }

    #[test]
    fn classes_follow_layout_and_alignment() {
        let c = Layout::contiguous(&[100, 40]).unwrap();
        let scalar = Layout::contiguous(&[]).unwrap().broadcast_to(&[100, 40]).unwrap();
        let row = Layout::contiguous(&[40]).unwrap().broadcast_to(&[100, 40]).unwrap();
        let program = test_programs::multiply_add_program(DType::F32, DType::I8, DType::F32);
        let class = |inputs: [&Layout; 2], addresses| kernel_of(&program, &inputs, &c, addresses).class;
        assert_eq!(class([&c, &c], &[256, 512]), MapKernelClass::Flat(InnermostAxisAccess { repeated: 0, aligned: true }));
        assert_eq!(
            class([&c, &c], &[256, 516]),
            MapKernelClass::Flat(InnermostAxisAccess { repeated: 0, aligned: true }),
            "4 int8 are 4 bytes"
        );
        assert_eq!(class([&c, &c], &[260, 512]), MapKernelClass::Flat(InnermostAxisAccess { repeated: 0, aligned: false }));
        assert_eq!(class([&c, &c], &[256, 514]), MapKernelClass::Flat(InnermostAxisAccess { repeated: 0, aligned: false }));
        assert_eq!(class([&c, &scalar], &[256, 513]), MapKernelClass::Flat(InnermostAxisAccess { repeated: 2, aligned: true }));
        assert_eq!(
            class([&c, &row], &[256, 512]),
            MapKernelClass::Packed { access: InnermostAxisAccess { repeated: 0, aligned: true }, rank: 2, is_multiple: true }
        );
        assert_eq!(class([&c, &row], &[256, 513]), MapKernelClass::Strided { rank: 2 }, "the row is not aligned");
        let column = Layout::contiguous(&[100, 1]).unwrap().broadcast_to(&[100, 40]).unwrap();
        assert_eq!(
            class([&column, &row], &[257, 512]),
            MapKernelClass::Packed { access: InnermostAxisAccess { repeated: 1, aligned: true }, rank: 2, is_multiple: true }
        );
        let unaligned = MapKernelClass::Packed { access: InnermostAxisAccess { repeated: 1, aligned: false }, rank: 2, is_multiple: true };
        assert_eq!(class([&column, &row], &[257, 513]), unaligned, "both inputs are broadcast");
        let short = Layout::contiguous(&[100, 42]).unwrap();
        let of_short = Layout::contiguous(&[42]).unwrap().broadcast_to(&[100, 42]).unwrap();
        let kernel = kernel_of(&program, &[&short, &of_short], &short, &[256, 512]);
        assert_eq!(kernel.class, MapKernelClass::Strided { rank: 2 }, "42 elements are no multiple of 4");
        let column = Layout::contiguous(&[100, 1]).unwrap().broadcast_to(&[100, 42]).unwrap();
        let kernel = kernel_of(&program, &[&column, &of_short], &short, &[256, 512]);
        let crossing = MapKernelClass::Packed { access: InnermostAxisAccess { repeated: 1, aligned: false }, rank: 2, is_multiple: false };
        assert_eq!(kernel.class, crossing, "both inputs are broadcast");
    }

    #[test]
    fn width_follows_the_widest_dtype() {
        let mut p = Expression::identity(DType::I8);
        assert_eq!(elements_per_thread(&p, 0), 16);
        p.outputs[0] = p.push_step(StepKind::Cast, DType::F64, &[0]);
        assert_eq!(elements_per_thread(&p, 0), 2);
        assert_eq!(elements_per_thread(&Expression::identity(DType::C128), 0), 1);
        assert_eq!(
            elements_per_thread(&test_programs::multiply_add_program(DType::F64, DType::I8, DType::F32), 1),
            4,
            "a repeated input is loaded once"
        );
    }

    #[test]
    fn scalars_stay_out_of_the_text() {
        let source = |value| {
            let mut p = test_programs::multiply_add_program(DType::F32, DType::F32, DType::F32);
            p.params[0] = Scalar::Float(value);
            MapKernel { program: &p, class: MapKernelClass::Strided { rank: 2 }, wide: false }.cuda_source().unwrap()
        };
        assert_eq!(source(1.0), source(123.456));
    }

    /// Checks that adding a grid stride to a 32-bit index does not overflow.
    #[test]
    fn narrow_steps_do_not_overflow() {
        let most = codegen::MAX_32_BIT_INDEX as u64;
        let step = most + u64::from(DEFAULT_THREADS_PER_BLOCK) * 16;
        assert!(most + step < i32::MAX as u64);
    }
}
