//! Generates the C++ function that computes one row of a program with reductions along rows, in stages.
//!
//! Each stage loops over the elements that a thread holds, and ends with the reductions of the values computed in the loop. Local arrays
//! keep values for later stages; the compiler maps them to registers.

use std::fmt::Write;

use cuprum_core::op::Cost;
use cuprum_core::ops::take::FUSED_TAKE;
use cuprum_core::{Op, Program, StepKind};
use smallvec::SmallVec;

use super::element_code::{cpp_input_types, step_expression, write_bad_index_functions, write_parameter_structs, write_user_functions};
use super::{AccumulatorCode, ctype, may_fault};

/// Layout of the operands along a row. This layout is part of the key of the kernel cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowOperandLayout {
    /// Bit k is set if input k has one element per row.
    pub repeated: u64,
    /// Bit n is set if output n has one element per row.
    pub results: u64,
    /// Whether every input that has several elements per row is aligned for vector loads (up to 16 bytes).
    pub aligned: bool,
}

/// The assignment of a program's steps to stages. A stage is a loop over a thread's elements, followed by reductions along the row.
pub struct RowStages<'a> {
    program: &'a Program,
    /// For each step of the program, whether its value varies along a row.
    varies: SmallVec<[bool; 32]>,
    /// For each step of the program, the index of the stage that computes it. The result of a reduction belongs to the stage after
    /// the stage of its argument.
    stage_of: SmallVec<[usize; 32]>,
    /// For each step of the program, the index of the last stage that uses its value.
    last_use: SmallVec<[usize; 32]>,
    /// Number of stages.
    count: usize,
}

impl<'a> RowStages<'a> {
    /// Assigns each step of `program` to a stage. A step whose value varies along the row belongs to the first stage that uses the value.
    /// All other steps, and steps that are outputs, belong to the first stage in which their arguments are available. Bit k of `repeated`
    /// is set if input k has one element per row.
    pub fn assign_steps(program: &'a Program, repeated: u64) -> RowStages<'a> {
        let steps = &program.steps;
        let (mut varies, mut stage_of) = (SmallVec::<[bool; 32]>::new(), SmallVec::<[usize; 32]>::new());
        for step in steps {
            varies.push(match step.kind {
                StepKind::Input(k) => repeated >> k & 1 == 0,
                StepKind::Param(_) | StepKind::Fold(_) => false,
                StepKind::Cast | StepKind::Apply(_) => step.args().iter().any(|&a| varies[a as usize]),
            });
            let ready = step.args().iter().map(|&a| stage_of[a as usize]).max().unwrap_or(0);
            stage_of.push(ready + matches!(step.kind, StepKind::Fold(_)) as usize);
        }
        let count = stage_of.iter().max().map_or(1, |last| last + 1);
        let mut last_use = stage_of.clone();
        // Visits the steps of the program from last to first, and moves each step to the stage that first uses its value, so that few
        // values stay in registers between stages.
        let mut first_use: SmallVec<[usize; 32]> = SmallVec::from_elem(usize::MAX, steps.len());
        for (n, step) in steps.iter().enumerate().rev() {
            let is_fold = matches!(step.kind, StepKind::Fold(_));
            if varies[n] && !program.outputs.contains(&(n as u16)) && first_use[n] != usize::MAX {
                stage_of[n] = first_use[n];
            }
            last_use[n] = last_use[n].max(stage_of[n]);
            for &arg in step.args() {
                let (arg, used) = (arg as usize, stage_of[n] - is_fold as usize);
                first_use[arg] = first_use[arg].min(used);
                last_use[arg] = last_use[arg].max(used);
            }
        }
        RowStages { program, varies, stage_of, last_use, count }
    }

    /// Returns whether the value of step number `step` of the program varies along a row.
    pub fn varies_along_row(&self, step: u16) -> bool {
        self.varies[step as usize]
    }

    /// Returns how many 32-bit registers a thread needs for each element of the row: the maximum over all stages. The first stage needs
    /// registers for its loaded inputs, each later stage for the values kept from earlier stages.
    pub fn registers_per_element(&self) -> usize {
        let words = |n: usize| self.program.steps[n].dtype.itemsize().div_ceil(4);
        let all = 0..self.program.steps.len();
        let carried = |stage: usize| {
            all.clone()
                .filter(|&n| self.is_used_in_later_stage(n) && self.stage_of[n] < stage && self.last_use[n] >= stage)
                .map(words)
                .sum()
        };
        let loaded = all.clone().filter(|&n| self.is_loaded_input(n) && self.stage_of[n] == 0).map(words).sum();
        (1..self.count).map(carried).chain([loaded]).max().unwrap_or(0)
    }

    /// Returns whether the program is short and all its operations on values that vary along the row are cheap. The temporaries of such a
    /// program need few registers.
    pub fn is_short_and_cheap(&self) -> bool {
        let steps = &self.program.steps;
        let is_cheap = |op: Op| op.0.cost == Cost::Cheap && op.0.body.is_none() && op != FUSED_TAKE;
        steps.len() <= 16
            && steps.iter().zip(&self.varies).all(|(s, varies)| !varies || !matches!(s.kind, StepKind::Apply(op) if !is_cheap(op)))
    }

    fn is_loaded_input(&self, n: usize) -> bool {
        self.varies[n] && matches!(self.program.steps[n].kind, StepKind::Input(_))
    }

    /// Returns whether the value of step `n` of the program varies along the row and is used in a stage after the stage that computes it.
    fn is_used_in_later_stage(&self, n: usize) -> bool {
        self.varies[n] && self.last_use[n] > self.stage_of[n]
    }

    fn is_used_in_stage(&self, n: usize, stage: usize) -> bool {
        let by_step = |(m, s): (usize, &cuprum_core::Step)| {
            let is_fold = matches!(s.kind, StepKind::Fold(_));
            s.args().contains(&(n as u16))
                && if is_fold { self.stage_of[m] - 1 == stage } else { self.varies[m] && self.stage_of[m] == stage }
        };
        self.program.steps.iter().enumerate().any(by_step)
    }
}

/// Returns the C++ function `compute_row(p, out, offsets, rank, length, is_mine, scratch)` and the structs that it uses. In a kernel's
/// source, this code comes after rows.cuh, which lists its prerequisites, and before rows.cu.
///
/// # Errors
/// Returns the name of an operation that has no C++ expression.
pub fn row_function_source(stages: &RowStages, layout: RowOperandLayout) -> Result<String, &'static str> {
    let program = stages.program;
    let mut out = String::from("\nnamespace cuprum {\n\n");
    let inputs = cpp_input_types(program);
    let results: Vec<&str> = (0..program.outputs.len()).map(|n| ctype(program.output_dtype(n))).collect();
    // Writing to a String cannot fail, so the results of `write!` are dropped.
    write_parameter_structs(&mut out, program, &inputs, &results);
    write_user_functions(&mut out, program.ops().filter_map(|op| op.0.body));
    write_bad_index_functions(&mut out, program);
    out.push_str("struct Outputs {\n");
    for (n, t) in results.iter().enumerate() {
        let _ = writeln!(out, "    {t}* out{n};");
    }
    out.push_str("};\n");
    for (n, step) in program.steps.iter().enumerate() {
        let StepKind::Fold(op) = step.kind else { continue };
        let reduction = op.reduction().and_then(|reduction| AccumulatorCode::of(op, reduction, step.dtype));
        let AccumulatorCode { acc, identity, value, combine, .. } = reduction.ok_or(op.name())?;
        let x = ctype(program.steps[step.args[0] as usize].dtype);
        let _ = writeln!(
            out,
            "struct Fold{n} {{  // {}\n    using Acc = {acc};\n    __device__ static Acc identity() {{ return {identity}; }}\n    __device__ static Acc value({x} x) {{ return {value}; }}\n    __device__ static Acc combine(const Acc& a, const Acc& b) {{ return {combine}; }}\n}};",
            op.name()
        );
    }
    // The comment in the generated source omits scalar values, because kernels with different scalars share one source.
    let _ = writeln!(out, "\n// {}", Program { params: Default::default(), ..program.clone() });
    out.push_str(
        "__device__ inline void compute_row(const Params& p, const Outputs& out, const OperandOffsets& at, const int rank, const int length,\n                                   const bool is_mine, TeamScratch& scratch) {\n",
    );
    if may_fault(program) {
        out.push_str("    BadIndex bad_index = {};\n");
    }
    for (n, step) in program.steps.iter().enumerate() {
        match step.kind {
            StepKind::Input(k) if !stages.varies[n] => {
                let _ = writeln!(out, "    [[maybe_unused]] const {} t{n} = p.in{k}[at.at[{k}]];", ctype(step.dtype));
            }
            _ if stages.is_used_in_later_stage(n) || stages.is_loaded_input(n) && stages.stage_of[n] == 0 => {
                let _ = writeln!(out, "    {} a{n}[ELEMENTS];", ctype(step.dtype));
            }
            _ => {}
        }
    }
    write_first_stage_loads(&mut out, stages, layout);
    let mut folds = 0;
    for stage in 0..stages.count {
        write_stage(&mut out, stages, layout, stage, &mut folds)?;
    }
    if may_fault(program) {
        out.push_str("    report(p, bad_index);\n");
    }
    out.push_str("}\n\n}  // namespace cuprum\n");
    Ok(out)
}

/// Writes the loads of all inputs of the first stage before any computation, so that the loads are in flight together.
fn write_first_stage_loads(out: &mut String, stages: &RowStages, layout: RowOperandLayout) {
    for (n, step) in stages.program.steps.iter().enumerate() {
        if let (StepKind::Input(k), true) = (step.kind, stages.is_loaded_input(n) && stages.stage_of[n] == 0) {
            let _ = writeln!(out, "    load_row<{}>(p.in{k} + at.at[{k}], rank, length, a{n});", layout.aligned);
        }
    }
}

fn write_stage(
    out: &mut String,
    stages: &RowStages,
    layout: RowOperandLayout,
    stage: usize,
    folds: &mut usize,
) -> Result<(), &'static str> {
    let program = stages.program;
    let steps = || program.steps.iter().enumerate();
    let _ = writeln!(out, "    // stage {stage}");
    for (n, step) in steps().filter(|&(n, _)| !stages.varies[n] && stages.stage_of[n] == stage) {
        if let Some(value) = step_expression(program, n)? {
            let _ = writeln!(out, "    [[maybe_unused]] const {} t{n} = {value};", ctype(step.dtype));
        }
    }
    let ends: SmallVec<[usize; 4]> =
        steps().filter(|&(n, s)| matches!(s.kind, StepKind::Fold(_)) && stages.stage_of[n] == stage + 1).map(|(n, _)| n).collect();
    for n in &ends {
        let _ = writeln!(out, "    AccumulatorChains<Fold{n}> c{n};");
    }
    let is_row = |o: usize| layout.results >> o & 1 == 1;
    let stored = |n: usize| program.outputs.iter().enumerate().filter(move |&(o, &step)| step as usize == n && !is_row(o)).map(|(o, _)| o);
    // `in_stage(n)` returns whether step n of the program belongs to this stage. Steps whose value is constant along the row belong to a
    // stage too, but are computed before the loop of the stage.
    let in_stage = |n: usize| stages.stage_of[n] == stage;
    let stores: SmallVec<[(usize, usize); 2]> =
        steps().filter(|&(n, _)| in_stage(n)).flat_map(|(n, _)| stored(n).map(move |o| (n, o))).collect();
    let computes = steps().any(|(n, s)| stages.varies[n] && in_stage(n) && !matches!(s.kind, StepKind::Input(_)));
    if computes || !ends.is_empty() || !stores.is_empty() {
        out.push_str("    #pragma unroll\n    for (int n = 0; n < PACKS; n++) {\n        const int i = (n * TEAM + rank) * WIDTH;\n");
        out.push_str("        if (n >= FULL && i >= length) break;\n");
        for (n, step) in steps().filter(|&(n, _)| stages.is_loaded_input(n) && stage > 0 && in_stage(n)) {
            if let StepKind::Input(k) = step.kind {
                let t = ctype(step.dtype);
                let _ =
                    writeln!(out, "        const Pack<{t}, WIDTH> x{n} = load_read_only<{}>(p.in{k} + at.at[{k}] + i);", layout.aligned);
            }
        }
        for &(n, o) in &stores {
            let _ = writeln!(out, "        Pack<{}, WIDTH> y{o};", ctype(program.steps[n].dtype));
        }
        out.push_str("        #pragma unroll\n        for (int k = 0; k < WIDTH; k++) {\n            const int e = n * WIDTH + k;\n");
        for (n, step) in steps().filter(|&(n, _)| stages.varies[n]) {
            let t = ctype(step.dtype);
            let line = match step_expression(program, n)? {
                Some(value) if in_stage(n) => value,
                None if in_stage(n) && stage > 0 => format!("x{n}.at[k]"),
                _ if stages.stage_of[n] <= stage && stages.last_use[n] >= stage => format!("a{n}[e]"),
                _ => continue,
            };
            if !in_stage(n) && !stages.is_used_in_stage(n, stage) {
                continue;
            }
            let _ = writeln!(out, "            [[maybe_unused]] const {t} t{n} = {line};");
            if in_stage(n) && stages.is_used_in_later_stage(n) && !(stages.is_loaded_input(n) && stage == 0) {
                let _ = writeln!(out, "            a{n}[e] = t{n};");
            }
        }
        for &n in &ends {
            let _ = writeln!(out, "            c{n}.accumulate(e, t{});", program.steps[n].args[0]);
        }
        for &(n, o) in &stores {
            let _ = writeln!(out, "            y{o}.at[k] = t{n};");
        }
        out.push_str("        }\n");
        for &(_, o) in &stores {
            let _ = writeln!(out, "        if (TEAM > 32 || is_mine) store_aligned(out.out{o} + at.at[INPUTS + {o}] + i, y{o});");
        }
        out.push_str("    }\n");
    }
    for (o, &n) in program.outputs.iter().enumerate().filter(|&(o, &n)| is_row(o) && stages.stage_of[n as usize] == stage) {
        let _ = writeln!(out, "    if (rank == 0 && is_mine) out.out{o}[at.at[INPUTS + {o}]] = t{n};");
    }
    for n in &ends {
        let _ = writeln!(
            out,
            "    const {} t{n} = combine_in_team<Fold{n}>(c{n}.combine_chains(), scratch.at[{folds}]);",
            ctype(program.steps[*n].dtype)
        );
        *folds += 1;
    }
    Ok(())
}
