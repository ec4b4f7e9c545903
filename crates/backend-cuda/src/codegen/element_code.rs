//! Generates the C++ code that computes one element of a fused expression (program): loads of the inputs, and one statement per step.

use std::fmt::Write;

use cuprum_core::body::OperationBody;
use cuprum_core::ops::take::{FUSED_TAKE, TAKE};
use cuprum_core::{Program, Step, StepKind, StoredArray};

use super::{ctype, expression_table, may_fault};
use crate::device::fault_operation_id;

/// How a kernel reads its inputs along the innermost axis. This access pattern is part of the key of the kernel cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InnermostAxisAccess {
    /// Bit k is set if input k has stride 0 along the innermost axis. All other inputs have stride 1.
    pub repeated: u64,
    /// Whether every input with stride 1 is aligned for vector loads (up to 16 bytes).
    pub aligned: bool,
}

impl InnermostAxisAccess {
    /// Returns the access pattern of 1-D `inputs` with stride 1 or 0. The pattern assumes no alignment.
    pub fn innermost_access_of_flat_inputs(inputs: &[StoredArray]) -> InnermostAxisAccess {
        let is_repeated = |a: &StoredArray| a.layout().strides().first() == Some(&0);
        let repeated = inputs.iter().enumerate().filter(|(_, a)| is_repeated(a)).fold(0, |bits, (k, _)| bits | 1 << k);
        InnermostAxisAccess { repeated, aligned: false }
    }
}

/// Returns the C++ of `program`: the structs `Params`, `Values` and `Results`, and the functions listed in [`codegen`](crate::codegen),
/// except `stage` and `load_staged`.
///
/// # Errors
/// Returns the name of an operation that has no C++ expression, such as an operation of another crate without C++ code.
pub fn element_source(program: &Program, access: InnermostAxisAccess) -> Result<String, &'static str> {
    element_source_with_user_functions(program, access, None)
}

/// Returns the C++ of `program` as [`element_source`] does, plus the functions of `body`, the code of a user-defined operation.
///
/// # Errors
/// Returns the name of an operation that has no C++ expression.
pub fn element_source_with_user_functions(
    program: &Program,
    access: InnermostAxisAccess,
    body: Option<&'static OperationBody>,
) -> Result<String, &'static str> {
    let mut out = String::from("\nnamespace cuprum {\n\n");
    let inputs = cpp_input_types(program);
    let results: Vec<&str> = (0..program.outputs.len()).map(|n| ctype(program.output_dtype(n))).collect();
    write_parameter_structs(&mut out, program, &inputs, &results);
    write_user_functions(&mut out, program.ops().filter_map(|op| op.0.body).chain(body));
    write_load_functions(&mut out, program, &inputs, access);
    write_compute_functions(&mut out, program)?;
    out.push_str(ELEMENT_FUNCTION_SOURCE);
    Ok(out)
}

/// Returns the C++ code that computes one element as the C++ expression `value`, of C++ type `result`. `program` only declares the inputs
/// and scalars. `value` may use the inputs' values `v.v0`, ..., their addresses `p.in0`, ..., and the scalar `p.sN` of step `N`.
pub fn element_source_with_result(program: &Program, access: InnermostAxisAccess, result: &str, value: &str) -> String {
    let mut out = String::from("\nnamespace cuprum {\n\n");
    let inputs = cpp_input_types(program);
    write_parameter_structs(&mut out, program, &inputs, &[result]);
    write_load_functions(&mut out, program, &inputs, access);
    out.push_str(EMPTY_BAD_INDEX_SOURCE);
    let _ = writeln!(out, "\n__device__ inline Results evaluate(const Params& p, const Values& v, BadIndex&) {{ return {{{value}}}; }}");
    out.push_str(COMPUTE_FUNCTION_SOURCE);
    out.push_str(ELEMENT_FUNCTION_SOURCE);
    out
}

const ELEMENT_FUNCTION_SOURCE: &str = r#"
template <class Index> __device__ inline Result element(const Params& p, const Offsets<Index, INPUTS>& offsets, Index i) {
    return compute(p, load_along(p, offsets, i)).r0;
}
template <class Index> __device__ inline Result element(const Params& p, Index i) {
    return element(p, Offsets<Index, INPUTS>{}, i);
}

}  // namespace cuprum
"#;

/// Returns C++ that reads some inputs through tiles in shared memory: input k if bit k of `crossed` is set. In a kernel's source, this code
/// comes after [`element_source`]. The struct `StagedTiles` has a tile of `SIDE` x `SIDE` elements for each of these inputs.
/// `stage(staged, p, offsets, row, column)` stores the elements at `offsets` in the tiles. `load_staged(...)` reads the tiles, and reads
/// all other inputs from memory.
pub fn shared_memory_staging_source(program: &Program, crossed: u64) -> String {
    let inputs = cpp_input_types(program);
    let is_crossed = |n: usize| crossed >> n & 1 == 1;
    let lines = |line: &dyn Fn(usize) -> Option<String>| (0..inputs.len()).filter_map(line).collect::<Vec<_>>().join("\n    ");
    // The tiles are raw bytes, because shared memory cannot hold complex numbers, whose type has a constructor.
    let tiles = lines(&|n| is_crossed(n).then(|| format!("alignas(16) unsigned char s{n}[SIDE * (SIDE + 1) * sizeof({})];", inputs[n])));
    let tile_element = |n: usize| format!("reinterpret_cast<{0}*>(staged.s{n})[row * (SIDE + 1) + column]", inputs[n]);
    let stores = lines(&|n| is_crossed(n).then(|| format!("{} = p.in{n}[offsets.at[{n}]];", tile_element(n))));
    let loads = lines(&|n| {
        Some(if is_crossed(n) { format!("v.v{n} = {};", tile_element(n)) } else { format!("v.v{n} = p.in{n}[offsets.at[{n}]];") })
    });
    format!(
        "
struct StagedTiles {{
    {tiles}
}};
template <class Index>
__device__ inline void stage(StagedTiles& staged, const Params& p, const Offsets<Index, INPUTS>& offsets, int row, int column) {{
    {stores}
}}
template <class Index>
__device__ inline Values load_staged(StagedTiles& staged, const Params& p, const Offsets<Index, INPUTS>& offsets, int row, int column) {{
    Values v;
    {loads}
    return v;
}}
"
    )
}

/// Returns the C++ types of the inputs of `program`, in order.
pub(super) fn cpp_input_types(program: &Program) -> Vec<&'static str> {
    let count = program.steps.iter().filter_map(|s| if let StepKind::Input(n) = s.kind { Some(n as usize + 1) } else { None }).max();
    (0..count.unwrap_or(0)).map(|n| program.input_dtype(n).map_or("u8", ctype)).collect()
}

// Writing to a `String` cannot fail, so this file drops the results of `write!`.

pub(super) fn write_parameter_structs(out: &mut String, program: &Program, inputs: &[&str], results: &[&str]) {
    let _ = writeln!(out, "constexpr int INPUTS = {};", inputs.len());
    out.push_str("struct Params {\n");
    for (n, t) in inputs.iter().enumerate() {
        let _ = writeln!(out, "    const {t}* in{n};");
    }
    if may_fault(program) {
        out.push_str("    Fault* fault;\n");
    }
    let scalars = program.steps.iter().enumerate().filter(|(_, s)| matches!(s.kind, StepKind::Param(_)));
    for (n, step) in scalars.clone() {
        let _ = writeln!(out, "    alignas(16) {} s{n};", ctype(step.dtype));
    }
    if inputs.is_empty() && scalars.count() == 0 {
        out.push_str("    u64 unused;\n");
    }
    out.push_str("};\nstruct Values {\n");
    for (n, t) in inputs.iter().enumerate() {
        let _ = writeln!(out, "    {t} v{n};");
    }
    out.push_str("};\nstruct Results {\n");
    for (n, t) in results.iter().enumerate() {
        let _ = writeln!(out, "    {t} r{n};");
    }
    let _ = writeln!(out, "}};\nusing Result = {};\n", results.first().unwrap_or(&"u8"));
}

fn write_load_functions(out: &mut String, program: &Program, inputs: &[&str], access: InnermostAxisAccess) {
    let repeated = |n: usize| access.repeated >> n & 1 == 1;
    let write_per_input = |out: &mut String, line: &dyn Fn(usize) -> String| {
        for n in 0..inputs.len() {
            let _ = writeln!(out, "    {}", line(n));
        }
    };
    out.push_str("template <class Index> __device__ inline Values load(const Params& p, const Offsets<Index, INPUTS>& offsets) {\n");
    out.push_str("    Values v;\n");
    write_per_input(out, &|n| format!("v.v{n} = p.in{n}[offsets.at[{n}]];"));
    out.push_str("    return v;\n}\n");

    for (name, load) in [("load_along", ""), ("load_once", "load_streaming")] {
        out.push_str("template <class Index>\n");
        let _ = writeln!(out, "__device__ inline Values {name}(const Params& p, const Offsets<Index, INPUTS>& offsets, Index i) {{");
        out.push_str("    Values v;\n");
        write_per_input(out, &|n| match (repeated(n), load) {
            (true, _) => format!("v.v{n} = p.in{n}[offsets.at[{n}]];"),
            (false, "") => format!("v.v{n} = p.in{n}[offsets.at[{n}] + i];"),
            (false, _) => format!("v.v{n} = {load}(p.in{n} + offsets.at[{n}] + i);"),
        });
        out.push_str("    return v;\n}\n");
    }

    // The prefetch code skips two kinds of inputs. Inputs that are read at computed indices have no known next address, and inputs with
    // stride 0 stay in a cache.
    let mut fetch = |head: &str, line: &dyn Fn(usize) -> String| {
        let _ = writeln!(out, "{head}");
        for n in (0..inputs.len()).filter(|&n| !repeated(n) && !is_read_at_computed_indices(program, n)) {
            let _ = writeln!(out, "    {}", line(n));
        }
        out.push_str("}\n");
    };
    fetch("template <class Index> __device__ inline void prefetch(const Params& p, const Offsets<Index, INPUTS>& offsets) {", &|n| {
        format!("prefetch_line(p.in{n} + offsets.at[{n}]);")
    });
    fetch(
        "template <int Threads, class Index>\n\
         __device__ inline void prefetch_along(const Params& p, const Offsets<Index, INPUTS>& offsets, Index begin, Index end) {",
        &|n| format!("prefetch_lines<Threads>(p.in{n} + offsets.at[{n}], begin, end);"),
    );

    out.push_str("template <int Width, class Index>\n");
    out.push_str(
        "__device__ inline void load_pack(const Params& p, const Offsets<Index, INPUTS>& offsets, Index i, Values (&values)[Width]) {\n",
    );
    write_per_input(out, &|n| {
        let t = inputs[n];
        match (repeated(n), access.aligned) {
            (true, _) => format!("const {t} x{n} = p.in{n}[offsets.at[{n}]];"),
            (false, true) => format!("const Pack<{t}, Width> x{n} = load_aligned<Width>(p.in{n} + offsets.at[{n}] + i);"),
            (false, false) => format!("const {t}* x{n} = p.in{n} + offsets.at[{n}] + i;"),
        }
    });
    out.push_str("    #pragma unroll\n    for (int k = 0; k < Width; k++) {\n");
    write_per_input(out, &|n| {
        let at = match (repeated(n), access.aligned) {
            (true, _) => "",
            (false, true) => ".at[k]",
            (false, false) => "[k]",
        };
        format!("    values[k].v{n} = x{n}{at};")
    });
    out.push_str("    }\n}\n");
}

/// Returns whether a step of `program` reads `input` at computed indices: a `take`, or a user-defined operation that receives the address
/// of `input`.
fn is_read_at_computed_indices(program: &Program, input: usize) -> bool {
    let is_input = |step: u16| program.steps[step as usize].kind == StepKind::Input(input as u16);
    program.steps.iter().any(|step| match step.kind {
        StepKind::Apply(op) if op == FUSED_TAKE => step.args().first().is_some_and(|&table| is_input(table)),
        StepKind::Apply(op) => {
            op.0.body.is_some_and(|body| step.args().iter().enumerate().any(|(n, &arg)| body.is_whole_array(n) && is_input(arg)))
        }
        _ => false,
    })
}

/// Writes the C++ functions of user-defined operations. A function that occurs several times is written once.
pub(super) fn write_user_functions(out: &mut String, bodies: impl Iterator<Item = &'static OperationBody>) {
    let mut written: Vec<&str> = Vec::new();
    for body in bodies {
        if written.is_empty() {
            out.push_str("}  // namespace cuprum\n");
            out.push_str(include_str!("prelude/user_defined.cuh"));
            out.push_str("\nnamespace cuprum {\n\n");
        }
        for &(name, text) in body.source {
            if !written.contains(&name) {
                written.push(name);
                out.push_str(text);
                out.push('\n');
            }
        }
    }
}

/// Returns the C++ expression that applies the user-defined function in `body` to the arguments of `step`. Returns `None` if `body` has no
/// such function.
fn user_function_call(program: &Program, step: &Step, body: &OperationBody) -> Option<String> {
    let dtype = |n: usize| step.args().get(n).map_or(step.dtype, |&a| program.steps[a as usize].dtype);
    let argument = |(n, &a): (usize, &u16)| match program.steps[a as usize].kind {
        StepKind::Input(k) if body.is_whole_array(n) => format!("p.in{k}"),
        _ => format!("t{a}"),
    };
    let arguments: Vec<String> = step.args().iter().enumerate().map(argument).collect();
    let (name, _) = body.source.last()?;
    Some(format!("{name}<{}>({})", ctype(body.generic_dtype(dtype, step.dtype)), arguments.join(", ")))
}

/// Writes the C++ functions `evaluate`, which records an index out of bounds in `bad_index`, and `compute`, which reports such an index.
fn write_compute_functions(out: &mut String, program: &Program) -> Result<(), &'static str> {
    write_bad_index_functions(out, program);
    // The comment in the generated source omits scalar values, because kernels with different scalars share one source.
    let _ = writeln!(out, "\n// {}", Program { params: Default::default(), ..program.clone() });
    let bad_index = if may_fault(program) { "bad_index" } else { "" };
    let _ = writeln!(out, "__device__ inline Results evaluate(const Params& p, const Values& v, BadIndex& {bad_index}) {{");
    let has_whole = may_fault(program) || program.ops().any(|op| op.0.body.is_some());
    for (n, step) in program.steps.iter().enumerate() {
        let t = ctype(step.dtype);
        let value = match step.kind {
            StepKind::Input(k) => format!("v.v{k}"),
            StepKind::Fold(op) => return Err(op.name()),
            _ => step_expression(program, n)?.unwrap_or_default(),
        };
        // If a `take` or a user-defined operation receives the address of an input, the C++ variable of that input's element is unused.
        let unused = if has_whole && matches!(step.kind, StepKind::Input(_)) { "[[maybe_unused]] " } else { "" };
        let _ = writeln!(out, "    {unused}const {t} t{n} = {value};");
    }
    out.push_str("    Results results;\n");
    for (n, step) in program.outputs.iter().enumerate() {
        let _ = writeln!(out, "    results.r{n} = t{step};");
    }
    out.push_str("    return results;\n}\n");
    out.push_str(COMPUTE_FUNCTION_SOURCE);
    Ok(())
}

/// Returns the C++ expression of step `n` over the variables `tN`, or `None` if step `n` is an input or a reduction along rows.
pub(super) fn step_expression(program: &Program, n: usize) -> Result<Option<String>, &'static str> {
    let step = &program.steps[n];
    Ok(Some(match step.kind {
        StepKind::Input(_) | StepKind::Fold(_) => return Ok(None),
        StepKind::Param(_) => format!("p.s{n}"),
        StepKind::Cast => format!("cast<{}>(t{})", ctype(step.dtype), step.args[0]),
        StepKind::Apply(op) if op == FUSED_TAKE => step_expression_of_take(program, n).ok_or(op.name())?,
        StepKind::Apply(op) => match op.0.body {
            Some(body) => user_function_call(program, step, body).ok_or(op.name())?,
            None => expression_table::cpp_expression(op).ok_or(op.name())?.substitute_step_variables(step.args()),
        },
    }))
}

/// Returns the C++ expression of step `n` if it is a `take`: one element of an input, at a computed index.
fn step_expression_of_take(program: &Program, n: usize) -> Option<String> {
    let &[table, index, length] = program.steps[n].args() else { return None };
    let StepKind::Input(k) = program.steps[table as usize].kind else { return None };
    Some(format!("take_element<{n}>(p.in{k}, t{index}, t{length}, bad_index)"))
}

/// Writes the struct `BadIndex`, which records an index out of bounds, and the function `report`, which writes the recorded index to the
/// error word.
pub(super) fn write_bad_index_functions(out: &mut String, program: &Program) {
    if !may_fault(program) {
        out.push_str(EMPTY_BAD_INDEX_SOURCE);
        return;
    }
    out.push_str("}  // namespace cuprum\n");
    out.push_str(include_str!("prelude/take.cuh"));
    out.push_str("\nnamespace cuprum {\n\n__device__ inline void report(const Params& p, const BadIndex& bad_index) {\n");
    out.push_str("    if (bad_index.step == 0) return;\n    u64 length = 0;\n");
    for (n, step) in program.steps.iter().enumerate().filter(|(_, s)| s.kind == StepKind::Apply(FUSED_TAKE)) {
        let _ = writeln!(out, "    if (bad_index.step == {n}) length = p.s{};", step.args[2]);
    }
    let _ = writeln!(out, "    report_fault(p.fault, 1, {}, bad_index.index, length);\n}}", fault_operation_id(TAKE, 0));
}

const EMPTY_BAD_INDEX_SOURCE: &str = "struct BadIndex {};\n__device__ inline void report(const Params&, const BadIndex&) {}\n";

const COMPUTE_FUNCTION_SOURCE: &str = r#"
__device__ inline Results compute(const Params& p, const Values& v) {
    BadIndex bad_index = {};
    const Results results = evaluate(p, v, bad_index);
    report(p, bad_index);
    return results;
}
"#;
