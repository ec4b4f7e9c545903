//! Elements at which a condition holds, and their indices, in a single pass over memory. A fused program computes the condition.

use cuprum_backend_cuda::codegen::{InnermostAxisAccess, KernelKey, device_sources, test_programs};
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::{Array, Call, DType, DeclineReason, Program, Result, StepKind};

use crate::fused_input;
use crate::kernel_source::{GeneratedSource, SourceDefinitions, SourceTemplate};
use crate::launch::KernelRequest;

/// Threads per block, as in `select.cu`.
pub const SELECT_THREADS_PER_BLOCK: usize = 384;

static SELECT_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_select.cu",
    includes_cub: false,
    headers: &[device_sources::RELAXED_ATOMICS_SOURCE, device_sources::COUNT_LOOK_BACK_SOURCE],
    body: &[include_str!("../kernels/select.cu")],
};

/// The parameters of a selection call that determine its kernel.
#[derive(Debug)]
pub struct SelectRequest<'a> {
    /// The fused program, which computes the condition.
    pub program: &'a Program,
    access: InnermostAxisAccess,
    /// The array of values to select from. `None` if the call returns only indices.
    pub values: Option<SourceValues>,
    /// Whether the call returns indices.
    pub indices: bool,
    /// Number of elements from which the kernel selects.
    pub count: usize,
}

/// The array of values from which the kernel selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceValues {
    /// Size of one element of the array, in bytes.
    size: usize,
    /// If the array of values is also an input of the condition: the index of that input. The kernel then reads the array only once.
    condition_input: Option<usize>,
}

/// Converts `call` to a [`SelectRequest`], or returns the reason why CUB declines the call. `addresses` has the device address of the first
/// element of each input.
pub fn select_request_for_call<'a>(call: &'a Call, addresses: &[u64]) -> Result<SelectRequest<'a>, DeclineReason> {
    let (Work::Select(call::Select { program, indices, .. }), [output, ..]) = (&call.work, call.outputs) else {
        return Err(DeclineReason::new("not a selection"));
    };
    fused_input::check_ops_have_cuda_code(program)?;
    let (program_inputs, from) = call.program_inputs();
    let access = InnermostAxisAccess::innermost_access_of_flat_inputs(program_inputs);
    let values = from.map(|from| {
        let same = |k: &usize| {
            access.repeated >> k & 1 == 0 && program_inputs[*k].dtype() == from.dtype() && addresses.get(*k) == addresses.last()
        };
        SourceValues { size: from.dtype().itemsize(), condition_input: (0..program_inputs.len()).find(same) }
    });
    let request = SelectRequest { program, access, values, indices: *indices, count: output.layout.size() };
    if request.tile_count() > i32::MAX as usize {
        return Err(DeclineReason::with_text(|| format!("{} elements are more than 2^31 tiles", request.count)));
    }
    Ok(request)
}

impl SelectRequest<'_> {
    /// Returns the number of elements per thread. Registers and the shared memory (48 KiB) for the values and indices of a tile limit this
    /// number.
    fn items_per_thread(&self) -> usize {
        match self.values.map_or(4, |v| v.size) {
            1 | 2 => 20,
            4 => 16,
            8 => 12,
            _ => 5,
        }
    }

    /// Returns the minimum number of resident blocks per multiprocessor, which limits the registers per thread. Inputs of more than 8 bytes
    /// per element need more registers.
    fn min_resident_blocks(&self) -> usize {
        let read: usize = self.program.steps.iter().filter(|s| matches!(s.kind, StepKind::Input(_))).map(|s| s.dtype.itemsize()).sum();
        match self.values {
            _ if read > 8 => 1,
            Some(SourceValues { condition_input: None, .. }) => 3,
            Some(SourceValues { size: 4, .. }) | None => 5,
            _ => 4,
        }
    }

    /// Returns the number of elements per tile, as in `select.cu`.
    pub fn tile_length(&self) -> usize {
        SELECT_THREADS_PER_BLOCK * self.items_per_thread()
    }

    /// Returns the number of tiles. A block selects from one tile.
    pub fn tile_count(&self) -> usize {
        self.count.div_ceil(self.tile_length())
    }
}

impl KernelRequest for SelectRequest<'_> {
    fn kernel_key(&self) -> KernelKey<'_> {
        let input = self.values.and_then(|v| v.condition_input).map_or(0, |k| k as u64 + 1);
        KernelKey::new("cub select", self.program)
            .with_number(self.access.repeated)
            .with_number(self.values.map_or(0, |v| v.size as u64))
            .with_number(input)
            .with_number(self.indices.into())
    }

    fn cuda_source(&self) -> Result<GeneratedSource, &'static str> {
        let mut d = SourceDefinitions::default();
        let size = self.values.map_or(1, |v| v.size);
        d.define_type("Value", &format!("AccessWord<{size}>::type"));
        d.define_int("ITEMS", self.items_per_thread());
        d.define_int("MIN_BLOCKS", self.min_resident_blocks());
        d.define_int("VALUES", self.values.is_some().into());
        d.define_int("INDICES", self.indices.into());
        d.define_int("SEPARATE_VALUES", self.values.is_some_and(|v| v.condition_input.is_none()).into());
        d.declarations.push_str(&match self.values.and_then(|v| v.condition_input) {
            Some(k) => format!(
                "__device__ inline Value value_of(const Values& v, const Value*, i64) {{\n    Value bits;\n    \
                 memcpy(&bits, &v.v{k}, sizeof(Value));\n    return bits;\n}}\n"
            ),
            None => "__device__ inline Value value_of(const Values&, const Value* from, i64 i) { return from[i]; }\n".to_owned(),
        });
        SELECT_TEMPLATE.source_with_program(self.program, self.access, &d, &["select_elements"])
    }
}

/// Returns the names and code of representative kernel sources, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    use DType::*;
    let of = |program: Program, values: Option<SourceValues>, indices: bool| {
        let request = SelectRequest { program: &program, access: InnermostAxisAccess::default(), values, indices, count: 0 };
        let named = |s: GeneratedSource| (format!("{} {values:?}, indices {indices}: {program}", s.name), s.code);
        request.cuda_source().map(named).ok()
    };
    let values = |size| Some(SourceValues { size, condition_input: None });
    let list = [
        of(Program::identity(Bool), None, true),
        of(Program::identity(Bool), values(1), false),
        of(Program::identity(Bool), values(4), true),
        of(Program::identity(Bool), values(16), true),
        of(crate::kernel_source::fused_example_program(F32, Bool), Some(SourceValues { size: 4, condition_input: Some(1) }), false),
        of(crate::kernel_source::fused_example_program(C64, Bool), Some(SourceValues { size: 8, condition_input: Some(0) }), true),
        of(crate::kernel_source::fused_example_program(F16, Bool), values(2), false),
        of(test_programs::take_program(Bool, I32), values(4), false),
    ];
    list.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::{Layout, StoredArray};

    use super::*;
    use crate::kernel_source::fused_example_program;
    use crate::testing::{array, contiguous, output, program_without_code, reason, with_call};

    /// Describes a selection. With `values`, the last input holds the values.
    fn with_request<R>(
        program: &Program,
        inputs: &[StoredArray],
        values: bool,
        addresses: &[u64],
        check: impl FnOnce(SelectRequest) -> R,
    ) -> Result<R, String> {
        let count = inputs[0].layout().size();
        let value = inputs.last().map_or(DType::I64, |a| a.dtype());
        let outputs = [output(if values { value } else { DType::I64 }, &[count])];
        let work = Work::Select(call::Select { program, values, indices: !values });
        with_call(cuprum_core::ops::select::EXTRACT, inputs, &outputs, work, |call| {
            reason(|| select_request_for_call(call, addresses)).map(check)
        })
    }

    #[test]
    fn values_that_the_condition_reads_are_read_once() {
        let inputs = [DType::F32, DType::F32, DType::F32].map(|d| array(d, contiguous(&[1000])));
        let program = fused_example_program(DType::F32, DType::Bool);
        let input = |addresses: &[u64]| with_request(&program, &inputs, true, addresses, |s| s.values.unwrap().condition_input).unwrap();
        assert_eq!(input(&[0x1000, 0x2000, 0x2000]), Some(1));
        assert_eq!(input(&[0x1000, 0x2000, 0x3000]), None);
    }

    #[test]
    fn keys_depend_on_structure_not_size() {
        let program = Program::identity(DType::Bool);
        let key = |dtype, n: usize| {
            let inputs = [array(DType::Bool, contiguous(&[n])), array(dtype, contiguous(&[n]))];
            with_request(&program, &inputs, true, &[0, 64], |s| (s.kernel_key().serialize(), s.tile_length())).unwrap()
        };
        assert_eq!(key(DType::F32, 10), key(DType::I32, 1 << 33));
        assert_ne!(key(DType::F32, 10), key(DType::F64, 10));
        assert_eq!((key(DType::U8, 1).1, key(DType::C128, 1).1), (384 * 20, 384 * 5));
    }

    #[test]
    fn tiles_fit_shared_memory() {
        for size in [1, 2, 4, 8, 16] {
            let program = Program::identity(DType::Bool);
            let values = Some(SourceValues { size, condition_input: None });
            let request = SelectRequest { program: &program, access: InnermostAxisAccess::default(), values, indices: true, count: 0 };
            assert!(request.tile_length() * (size + 2) + 128 <= 48 << 10, "{size}");
        }
    }

    #[test]
    fn repeated_inputs_and_decline_reasons() {
        let scalar = array(DType::F32, Layout::strided(&[10], &[0], 0).unwrap());
        let repeated = with_request(&Program::identity(DType::F32), &[scalar], false, &[0], |s| s.access.repeated).unwrap();
        assert_eq!(repeated, 1);
        let inputs = [array(DType::F32, contiguous(&[10]))];
        assert_eq!(
            with_request(&program_without_code(DType::F32), &inputs, false, &[0], |_| ()).unwrap_err(),
            "cumsum has no CUDA implementation"
        );
    }
}
