//! Elements and places at which a condition holds, with the expression of the condition taken in: one pass over memory.

use cuprum_backend_cuda::codegen::{Access, KernelKey, check, parts};
use cuprum_core::call;
use cuprum_core::call::Work;
use cuprum_core::{Array, Call, DType, Outcome, Program, Reason, Result, StepKind};

use crate::flat;
use crate::launch::{self, Described, On};
use crate::source::{Definitions, Family, Source};

/// Threads of a block, as in `select.cu`.
pub const THREADS: usize = 384;

static SELECT: Family =
    Family { name: "cub_select.cu", blocks: false, head: &[parts::RELAXED, parts::LOOK_BACK], text: &[include_str!("kernels/select.cu")] };

/// A selection that the kernel takes.
#[derive(Debug)]
pub struct Select<'a> {
    /// The condition.
    pub program: &'a Program,
    access: Access,
    /// Values that are asked for.
    pub values: Option<Values>,
    /// Whether places are asked for.
    pub places: bool,
    /// Number of elements to choose from.
    pub count: usize,
}

/// The values to choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Values {
    /// Bytes of one.
    size: usize,
    /// The input of the condition that holds them too.
    input: Option<usize>,
}

/// What the kernels are asked for, or why they decline. `addresses` are those of the inputs' first elements.
pub fn describe<'a>(call: &'a Call, addresses: &[u64]) -> Result<Select<'a>, Reason> {
    let (Work::Select(call::Select { program, indices: places, .. }), [output, ..]) = (&call.work, call.outputs) else {
        return Err(Reason::new("not a selection"));
    };
    flat::check_program(program)?;
    let (of_program, from) = call.program_inputs();
    let access = Access::flat(of_program);
    let values = from.map(|from| {
        let same =
            |k: &usize| access.repeated >> k & 1 == 0 && of_program[*k].dtype() == from.dtype() && addresses.get(*k) == addresses.last();
        Values { size: from.dtype().itemsize(), input: (0..of_program.len()).find(same) }
    });
    let select = Select { program, access, values, places: *places, count: output.layout.size() };
    if select.tiles() > i32::MAX as usize {
        return Err(Reason::with(|| format!("{} elements are more than 2^31 tiles", select.count)));
    }
    Ok(select)
}

impl Select<'_> {
    /// Elements of a thread: as many as let a tile's values and places lie in 48 KiB of shared memory, and registers suffice.
    fn items(&self) -> usize {
        match self.values.map_or(4, |v| v.size) {
            1 | 2 => 20,
            4 => 16,
            8 => 12,
            _ => 5,
        }
    }

    /// Blocks that a multiprocessor's registers shall suffice for: as many as it has threads for, unless much is read.
    fn blocks(&self) -> usize {
        let read: usize = self.program.steps.iter().filter(|s| matches!(s.kind, StepKind::Input(_))).map(|s| s.dtype.itemsize()).sum();
        match self.values {
            _ if read > 8 => 1,
            Some(Values { input: None, .. }) => 3,
            Some(Values { size: 4, .. }) | None => 5,
            _ => 4,
        }
    }

    /// Elements of a tile, as in `select.cu`.
    pub fn tile(&self) -> usize {
        THREADS * self.items()
    }

    /// Number of tiles.
    pub fn tiles(&self) -> usize {
        self.count.div_ceil(self.tile())
    }
}

impl Described for Select<'_> {
    fn key(&self) -> KernelKey<'_> {
        let input = self.values.and_then(|v| v.input).map_or(0, |k| k as u64 + 1);
        KernelKey::new("cub select", self.program)
            .with(self.access.repeated)
            .with(self.values.map_or(0, |v| v.size as u64))
            .with(input)
            .with(self.places.into())
    }

    fn source(&self) -> Result<Source, &'static str> {
        let mut d = Definitions::default();
        let size = self.values.map_or(1, |v| v.size);
        d.alias("Value", &format!("Word<{size}>::type"));
        d.constant("ITEMS", self.items());
        d.constant("BLOCKS", self.blocks());
        d.constant("VALUES", self.values.is_some().into());
        d.constant("PLACES", self.places.into());
        d.constant("SEPARATE", self.values.is_some_and(|v| v.input.is_none()).into());
        d.declarations.push_str(&match self.values.and_then(|v| v.input) {
            Some(k) => format!(
                "__device__ inline Value value_of(const Values& v, const Value*, i64) {{\n    Value bits;\n    \
                 memcpy(&bits, &v.v{k}, sizeof(Value));\n    return bits;\n}}\n"
            ),
            None => "__device__ inline Value value_of(const Values&, const Value* from, i64 i) { return from[i]; }\n".to_owned(),
        });
        SELECT.source(self.program, self.access, &d, &["select_flat"])
    }

    fn launch(&self, on: &On) -> Result<Outcome> {
        launch::select(on, self)
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    use DType::*;
    let of = |program: Program, values: Option<Values>, places: bool| {
        let select = Select { program: &program, access: Access::default(), values, places, count: 0 };
        let name = |s: Source| (format!("{} {values:?} {places} of {program}", s.name), s.text);
        select.source().map(name).ok()
    };
    let values = |size| Some(Values { size, input: None });
    let list = [
        of(Program::identity(Bool), None, true),
        of(Program::identity(Bool), values(1), false),
        of(Program::identity(Bool), values(4), true),
        of(Program::identity(Bool), values(16), true),
        of(crate::source::fused_example(F32, Bool), Some(Values { size: 4, input: Some(1) }), false),
        of(crate::source::fused_example(C64, Bool), Some(Values { size: 8, input: Some(0) }), true),
        of(crate::source::fused_example(F16, Bool), values(2), false),
        of(check::taking(Bool, I32), values(4), false),
    ];
    list.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::{Layout, StoredArray};

    use super::*;
    use crate::source::fused_example;
    use crate::testing::{array, contiguous, output, program_without_code, reason, with_call};

    /// Describes a selection among `count` elements; the last input holds the values, if they are asked for.
    fn of<R>(
        program: &Program,
        inputs: &[StoredArray],
        values: bool,
        addresses: &[u64],
        check: impl FnOnce(Select) -> R,
    ) -> Result<R, String> {
        let count = inputs[0].layout().size();
        let value = inputs.last().map_or(DType::I64, |a| a.dtype());
        let outputs = [output(if values { value } else { DType::I64 }, &[count])];
        let work = Work::Select(call::Select { program, values, indices: !values });
        with_call(cuprum_core::ops::select::EXTRACT, inputs, &outputs, work, |call| reason(|| describe(call, addresses)).map(check))
    }

    #[test]
    fn values_that_the_condition_reads_are_read_once() {
        let inputs = [DType::F32, DType::F32, DType::F32].map(|d| array(d, contiguous(&[1000])));
        let program = fused_example(DType::F32, DType::Bool);
        let input = |addresses: &[u64]| of(&program, &inputs, true, addresses, |s| s.values.unwrap().input).unwrap();
        assert_eq!(input(&[0x1000, 0x2000, 0x2000]), Some(1));
        assert_eq!(input(&[0x1000, 0x2000, 0x3000]), None);
    }

    #[test]
    fn keys_see_structure_not_size() {
        let program = Program::identity(DType::Bool);
        let key = |dtype, n: usize| {
            let inputs = [array(DType::Bool, contiguous(&[n])), array(dtype, contiguous(&[n]))];
            of(&program, &inputs, true, &[0, 64], |s| (s.key().written(), s.tile())).unwrap()
        };
        assert_eq!(key(DType::F32, 10), key(DType::I32, 1 << 33));
        assert_ne!(key(DType::F32, 10), key(DType::F64, 10));
        assert_eq!((key(DType::U8, 1).1, key(DType::C128, 1).1), (384 * 20, 384 * 5));
    }

    #[test]
    fn tiles_fit_shared_memory() {
        for size in [1, 2, 4, 8, 16] {
            let program = Program::identity(DType::Bool);
            let values = Some(Values { size, input: None });
            let select = Select { program: &program, access: Access::default(), values, places: true, count: 0 };
            assert!(select.tile() * (size + 2) + 128 <= 48 << 10, "{size}");
        }
    }

    #[test]
    fn declines() {
        let scalar = array(DType::F32, Layout::strided(&[10], &[0], 0).unwrap());
        let repeated = of(&Program::identity(DType::F32), &[scalar], false, &[0], |s| s.access.repeated).unwrap();
        assert_eq!(repeated, 1);
        let inputs = [array(DType::F32, contiguous(&[10]))];
        assert_eq!(of(&program_without_code(DType::F32), &inputs, false, &[0], |_| ()).unwrap_err(), "cumsum: no code for it");
    }
}
