//! CUDA kernels of the family `Select`: compaction of the elements, or of their indices, for which a condition is true. One pass over
//! memory also evaluates the expression of the condition.

use cuprum_core::call;
use std::sync::Arc;

use cuprum_core::{Array, Call, DType, Error, Outcome, Program as Expression, Result, Work, decline};
use smallvec::SmallVec;

use crate::codegen::{self, InnermostAxisAccess, KernelKey, device_sources, test_programs};
use crate::compile::module::Args;
use crate::device::{self, CudaBuffer, WithCallContext};
use crate::driver::Context;
use crate::families::copy::item_cpp_type;
use crate::families::kernel_lookup::{self, DEFAULT_THREADS_PER_BLOCK};

const SELECT_SOURCE: &str = include_str!("../kernels/select.cu");

/// The parameters that determine the source of a compaction kernel, besides the condition.
#[derive(Clone, Copy, Debug)]
struct SelectKernelConfig {
    access: InnermostAxisAccess,
    /// Size of a selected element in bytes, or `None` if the elements are not an output.
    values: Option<usize>,
    /// Whether indices are an output.
    indices: bool,
    /// Number of elements per thread.
    items: usize,
}

impl SelectKernelConfig {
    /// Returns a kernel configuration whose tiles have about 16 KiB of the widest input. If values are an output, tiles may be smaller,
    /// because selected values stay in registers until their output positions are known. `indices` tells whether indices are an output.
    fn config_for_itemsizes(
        itemsizes: impl IntoIterator<Item = usize>,
        access: InnermostAxisAccess,
        values: Option<usize>,
        indices: bool,
    ) -> SelectKernelConfig {
        let widest = itemsizes.into_iter().chain(values).max().unwrap_or(1);
        SelectKernelConfig { access, values, indices, items: (64 / widest).clamp(8, if values.is_some() { 16 } else { 32 }) }
    }
}

fn cuda_source(condition: &Expression, shape: SelectKernelConfig) -> std::result::Result<String, &'static str> {
    let SelectKernelConfig { access, values, indices, items } = shape;
    let element = codegen::element_source(condition, access)?;
    let (item, has_values, has_indices) = (item_cpp_type(values.unwrap_or(1)), values.is_some() as u8, indices as u8);
    let defines = format!("#define ITEM {item}\n#define ITEMS {items}\n#define VALUES {has_values}\n#define INDICES {has_indices}\n");
    Ok([
        codegen::CUDA_PRELUDE,
        &element,
        &defines,
        device_sources::RELAXED_ATOMICS_SOURCE,
        device_sources::COUNT_LOOK_BACK_SOURCE,
        SELECT_SOURCE,
    ]
    .concat())
}

/// Returns names and sources of the kernels, for compile checks without a device. The list covers every element size, with elements,
/// indices or both as outputs.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let uses = [
        (DType::Bool, Some(1), false),
        (DType::Bool, None, true),
        (DType::F16, Some(2), false),
        (DType::F32, Some(4), true),
        (DType::F64, Some(8), false),
        (DType::C128, Some(16), true),
    ];
    let listed = uses.into_iter().filter_map(|(dtype, values, indices)| {
        let shape = SelectKernelConfig::config_for_itemsizes([dtype.itemsize()], InnermostAxisAccess::default(), values, indices);
        let text = cuda_source(&nonzero_program(dtype), shape).ok()?;
        Some((format!("select<{dtype}, {values:?}, {indices}>"), text))
    });
    let taking = cuda_source(
        &test_programs::take_program(DType::Bool, DType::I64),
        SelectKernelConfig::config_for_itemsizes([1, 1, 8], InnermostAxisAccess::default(), None, true),
    );
    listed.chain(taking.ok().map(|text| ("select<of take>".to_owned(), text))).collect()
}

/// Returns the condition `x != 0` for an input `x` of `dtype`. As in the core crate, its expression is a conversion to bool.
fn nonzero_program(dtype: DType) -> Expression {
    let mut p = Expression::identity(dtype);
    if dtype != DType::Bool {
        p.outputs[0] = p.push_step(cuprum_core::StepKind::Cast, DType::Bool, &[0]);
    }
    p
}

/// Executes `call`, an operation of the kernel family `Select`, on the device.
pub fn run_selection(call: &Call) -> Result<Outcome> {
    let &Work::Select(call::Select { program, values, indices }) = &call.work else { decline!("not a selection") };
    let (conditions, from) = call.program_inputs();
    let (Some(size), true) =
        (call.outputs.first().map(|o| o.layout.size()), call.outputs.len() == usize::from(values) + usize::from(indices))
    else {
        decline!("outputs other than values, indices or both");
    };
    if values != from.is_some_and(|a| a.dtype() == call.outputs[0].dtype) {
        decline!("values of another dtype than the output");
    }
    if let Some(op) = program.ops().find(|op| !codegen::has_cpp_expression(*op)) {
        decline!("no CUDA expression for {}", op.name());
    }
    if size == 0 {
        let buffers: Result<SmallVec<[_; 2]>> = call.outputs.iter().map(|_| device::allocate(call, 0)).collect();
        return device::outcome_with_length(call, 0, buffers?);
    }
    let itemsizes = conditions.iter().map(|a| a.dtype().itemsize());
    let shape = SelectKernelConfig::config_for_itemsizes(
        itemsizes,
        InnermostAxisAccess::innermost_access_of_flat_inputs(conditions),
        from.map(|a| a.dtype().itemsize()),
        indices,
    );
    let inputs = device::pointers_to_read(conditions)?;
    let from = from.map(device::pointer_to_read).transpose()?.unwrap_or(0);
    let select = SelectLaunch { context: device::context(call.device)?, condition: program, shape, inputs, from, size };

    let room: Result<Buffers> = (0..call.outputs.len()).map(|n| device::allocate_output(call, n)).collect();
    match room {
        Ok(buffers) => {
            let length = select.count_or_write_selected(call, &buffers)?;
            device::outcome_with_length(call, length, buffers)
        }
        // There is too little memory for outputs of full length, so the kernel runs twice. The first run counts the selected elements. The
        // second run writes them to outputs of that length.
        Err(Error::OutOfMemory { .. }) => {
            let length = select.count_or_write_selected(call, &[])?;
            let exact = call.outputs.iter().map(|o| device::allocate(call, length.saturating_mul(o.dtype.itemsize())));
            let buffers = exact.collect::<Result<Buffers>>()?;
            select.count_or_write_selected(call, &buffers)?;
            device::outcome_with_length(call, length, buffers)
        }
        Err(e) => Err(e),
    }
}

type Buffers = SmallVec<[Arc<CudaBuffer>; 2]>;

/// The arguments of one launch of a compaction kernel.
struct SelectLaunch<'a> {
    context: &'static Context,
    condition: &'a Expression,
    shape: SelectKernelConfig,
    inputs: SmallVec<[u64; 8]>,
    from: u64,
    size: usize,
}

impl SelectLaunch<'_> {
    /// Writes the selected elements to `buffers`, one per output, and returns their number. If `buffers` is empty, only counts the
    /// elements.
    fn count_or_write_selected(&self, call: &Call, buffers: &[Arc<CudaBuffer>]) -> Result<usize> {
        let SelectKernelConfig { access, values, indices, items } = self.shape;
        let tiles = self.size.div_ceil(DEFAULT_THREADS_PER_BLOCK as usize * items);
        // The scratch memory holds the number of selected elements, the ticket counter from which blocks take tile numbers, and the
        // look-back states of the tiles.
        let words = 2 + device_sources::look_back_state_count(tiles);
        let scratch = device::allocate(call, words * 8)?;
        let queue = || {
            self.context.fill(scratch.memory(), 0, [0u8; 4], 2 * words)?;
            let key = KernelKey::new("select", self.condition).with_number(access.repeated).with_number(values.unwrap_or(0) as u64);
            let key = key.with_number(indices as u64).with_number(items as u64);
            let make = || Ok(("select_flat".to_owned(), cuda_source(self.condition, self.shape)?));
            let function = kernel_lookup::get_or_generate_kernel(self.context, key, make)?;
            let params = codegen::pack_params(self.condition, &self.inputs, device::error_word_address(self.context, self.condition)?);
            let mut addresses = buffers.iter().map(|b| b.pointer());
            let mut next = |asked: bool| if asked { addresses.next().unwrap_or(0) } else { 0 };
            let (to_values, to_indices) = (next(values.is_some()), next(indices));
            let (length, ticket, states) = (scratch.pointer(), scratch.pointer() + 8, scratch.pointer() + 16);
            let mut args = Args::new();
            args.push_bytes(&params).push(&self.from).push(&to_values).push(&to_indices).push(&self.size).push(&tiles);
            args.push(&length).push(&ticket).push(&states);
            let grid = [u32::try_from(tiles).unwrap_or(u32::MAX), 1, 1];
            // SAFETY: the arguments match select_flat in select.cu. Each input has `size` elements (or one, repeated). Each output address
            // is null, or has memory for `size` elements or for the number that a first run has counted.
            unsafe { function.launch(grid, [DEFAULT_THREADS_PER_BLOCK, 1, 1], 0, args.pointers()) }
        };
        queue().with_call_context(call)?;
        device::read_output_length(call, &scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_follow_the_widest_input() {
        let items = |sizes: &[usize], values| {
            SelectKernelConfig::config_for_itemsizes(sizes.iter().copied(), InnermostAxisAccess::default(), values, false).items
        };
        assert_eq!(
            [items(&[1], None), items(&[1], Some(1)), items(&[4], None), items(&[1], Some(8)), items(&[16], Some(1))],
            [32, 16, 16, 8, 8]
        );
    }

    #[test]
    fn sources_are_complete() {
        let list = sources_for_compile_check();
        assert_eq!(list.len(), 7);
        assert!(list.iter().all(|(_, text)| text.contains("select_flat") && text.contains("struct Params")));
    }
}
