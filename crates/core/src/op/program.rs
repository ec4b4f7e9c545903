//! Fused elementwise expressions, flattened to programs. Kernels of the families `Map`, `Reduce`, `Rows` and `Scan` evaluate a program for
//! each element.
//!
//! A program is in single-assignment form. Steps refer to inputs and scalar parameters by number. Thus programs that differ only in the
//! values of their parameters share a compiled kernel.

use std::fmt;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::op::{Capability, Family, MAX_ARITY, Op};
use crate::scalar::Scalar;

/// The kind of a [`Step`] of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepKind {
    /// The current element of input n of the program. The input has the step's dtype.
    Input(u16),
    /// The scalar parameter n of the program, converted to the step's dtype.
    Param(u16),
    /// A conversion of the first argument to the step's dtype (`astype`).
    Cast,
    /// An elementwise operation on the arguments of the step.
    Apply(Op),
    /// A reduction of the argument along the whole row, in the step's dtype, with one result per row.
    ///
    /// Only programs of [`Work::Rows`](crate::Work::Rows) contain such steps.
    Fold(Op),
}

impl StepKind {
    /// Returns a tag and a number that identify this kind of step in keys of kernel caches.
    ///
    /// Operations of other crates share one number ([`Op::is_defined_in_another_crate`]), so a cache key of such an operation needs
    /// more than this pair.
    pub fn cache_key_tag(self) -> (u8, u16) {
        match self {
            StepKind::Input(n) => (0, n),
            StepKind::Param(n) => (1, n),
            StepKind::Cast => (2, 0),
            StepKind::Apply(op) => (3, op.index() as u16),
            StepKind::Fold(op) => (4, op.index() as u16),
        }
    }
}

impl StepKind {
    /// Returns the capability that a kernel needs for a step of this kind; `None` if it needs none.
    pub fn required_capability(self) -> Option<Capability> {
        match self {
            StepKind::Fold(_) => Some(Capability::RowPrograms),
            // `FUSED_TAKE` is the only operation of the kernel family `Gather` that programs contain.
            StepKind::Apply(op) if op.family() == Family::Gather => Some(Capability::FusedTake),
            StepKind::Apply(op) => op.required_capability(),
            StepKind::Input(_) | StepKind::Param(_) | StepKind::Cast => None,
        }
    }
}

/// One step of a program. Its arguments are earlier steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// The computation that the step performs.
    pub kind: StepKind,
    /// dtype of the value that the step computes.
    pub dtype: DType,
    /// Indices of the argument steps; `kind` determines how many are used.
    pub args: [u16; MAX_ARITY],
}

impl Step {
    /// Returns the indices of the steps whose values are the arguments of this step.
    pub fn args(&self) -> &[u16] {
        match self.kind {
            StepKind::Input(_) | StepKind::Param(_) => &[],
            StepKind::Cast | StepKind::Fold(_) => &self.args[..1],
            StepKind::Apply(op) => &self.args[..op.arity().min(MAX_ARITY)],
        }
    }
}

/// An elementwise expression in the form of a list of steps, with one or more results.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The steps of the program, in order of computation.
    pub steps: SmallVec<[Step; 20]>,
    /// Indices of the steps whose values are the results of the program.
    pub outputs: SmallVec<[u16; 2]>,
    /// Values of the scalar parameters. Kernels receive them at launch, so programs with other values share a compiled kernel.
    pub params: SmallVec<[Scalar; 6]>,
}

impl Program {
    /// Returns the program with one input, whose result is that input.
    pub fn identity(dtype: DType) -> Program {
        let mut p = Program::default();
        p.steps.push(Step { kind: StepKind::Input(0), dtype, args: [0; MAX_ARITY] });
        p.outputs.push(0);
        p
    }

    /// Appends a step and returns its index.
    #[inline(always)]
    pub fn push_step(&mut self, kind: StepKind, dtype: DType, args: &[u16]) -> u16 {
        let at = self.push_step_without_arguments(kind, dtype);
        let slots = &mut self.steps.as_mut_slice()[at as usize].args;
        match *args {
            [a] => slots[0] = a,
            [a, b] => (slots[0], slots[1]) = (a, b),
            _ => {
                for (slot, &arg) in slots.iter_mut().zip(args) {
                    *slot = arg;
                }
            }
        }
        at
    }

    /// Appends a step without arguments. The fields of the step are written in place, because copying a step right after partial writes
    /// would cause a store-forwarding stall.
    #[inline(always)]
    fn push_step_without_arguments(&mut self, kind: StepKind, dtype: DType) -> u16 {
        let at = self.steps.len();
        self.steps.push(const { Step { kind: StepKind::Input(0), dtype: DType::Bool, args: [0; MAX_ARITY] } });
        let step = &mut self.steps.as_mut_slice()[at];
        (step.kind, step.dtype) = (kind, dtype);
        at as u16
    }

    /// Appends a scalar parameter of `dtype` and returns the index of its step.
    pub fn push_param(&mut self, value: Scalar, dtype: DType) -> u16 {
        self.params.push(value);
        self.push_step_without_arguments(StepKind::Param(self.params.len() as u16 - 1), dtype)
    }

    /// Returns the index of an existing equal step. If there is none, appends the step as [`Program::push_step`] does.
    ///
    /// Scalar arguments are equal if they have equal bits in their dtype. If an equal step exists, parameters at the end of the program
    /// that were appended as arguments of this step are removed.
    pub fn push_step_unless_present(&mut self, kind: StepKind, dtype: DType, args: &[u16]) -> u16 {
        let value = |step: u16| match self.steps[step as usize].kind {
            StepKind::Param(n) => {
                let dtype = self.steps[step as usize].dtype;
                Some((self.params[n as usize].to_bytes(dtype), dtype))
            }
            _ => None,
        };
        let same_arg = |(&a, &b): (&u16, &u16)| a == b || value(a).is_some_and(|scalar| value(b) == Some(scalar));
        let same = |s: &Step| s.kind == kind && s.dtype == dtype && s.args().iter().zip(args).all(same_arg);
        let Some(found) = self.steps.iter().position(same) else { return self.push_step(kind, dtype, args) };
        while let Some(&Step { kind: StepKind::Param(n), .. }) = self.steps.last()
            && found + 1 < self.steps.len()
            && args.contains(&(self.steps.len() as u16 - 1))
        {
            self.params.truncate(n as usize);
            self.steps.pop();
        }
        found as u16
    }

    /// Returns the operation of a program that applies one elementwise operation to its inputs, in order and without conversion. Returns
    /// `None` for other programs.
    ///
    /// For kernels that take single operations, but no fused expressions.
    pub fn single_op(&self) -> Option<Op> {
        let (last, inputs) = self.steps.split_last()?;
        let StepKind::Apply(op) = last.kind else { return None };
        let are_inputs = inputs.iter().enumerate().all(|(n, step)| step.kind == StepKind::Input(n as u16));
        let in_order = last.args().iter().enumerate().all(|(n, &arg)| usize::from(arg) == n);
        let is_single = are_inputs && in_order && inputs.len() == op.arity() && self.outputs.as_slice() == [inputs.len() as u16];
        is_single.then_some(op)
    }

    /// Returns whether the program has one result, which is its input 0 unchanged.
    pub fn is_identity(&self) -> bool {
        self.steps.len() == 1 && self.outputs.len() == 1 && matches!(self.steps[0].kind, StepKind::Input(0))
    }

    /// Returns the dtype of result `n`.
    ///
    /// # Panics
    /// If `n` is not the index of a result.
    pub fn output_dtype(&self, n: usize) -> DType {
        self.steps[self.outputs[n] as usize].dtype
    }

    /// Returns the dtype of input `n`, if the program reads it.
    pub fn input_dtype(&self, n: usize) -> Option<DType> {
        self.steps.iter().find(|s| s.kind == StepKind::Input(n as u16)).map(|s| s.dtype)
    }

    /// Returns the elementwise operations that the steps apply, in order.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        self.steps.iter().filter_map(|s| if let StepKind::Apply(op) = s.kind { Some(op) } else { None })
    }

    /// Returns the reductions along rows that the steps compute, in order.
    pub fn row_reductions(&self) -> impl Iterator<Item = Op> + '_ {
        self.steps.iter().filter_map(|s| if let StepKind::Fold(op) = s.kind { Some(op) } else { None })
    }

    /// Returns a hash of the program's structure, for cache lookups: of the first output, and of the kind, dtype and first two arguments of
    /// each step. Different programs may have equal hashes.
    pub fn structure_hash(&self) -> u64 {
        let mut hash = self.outputs.first().copied().map_or(0, u64::from);
        for Step { kind, dtype, args } in &self.steps {
            let (tag, number) = kind.cache_key_tag();
            let word =
                u64::from(tag) | (*dtype as u64) << 8 | u64::from(number) << 16 | u64::from(args[0]) << 32 ^ u64::from(args[1]) << 48;
            hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        hash >> 48
    }

    /// Returns whether `self` and `other` have the same steps and outputs.
    pub fn has_same_structure(&self, other: &Program) -> bool {
        self.steps == other.steps && self.outputs == other.outputs
    }
}

/// Writes the expression in NumPy-like notation (`sqrt(add(a0, 1))`), for `explain` and logs.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &out) in self.outputs.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            self.format_step(f, out, 0)?;
        }
        Ok(())
    }
}

impl Program {
    fn format_step(&self, f: &mut fmt::Formatter<'_>, at: u16, depth: usize) -> fmt::Result {
        let step = &self.steps[at as usize];
        if depth > 12 {
            return f.write_str("...");
        }
        match step.kind {
            StepKind::Input(n) => write!(f, "a{n}"),
            StepKind::Param(n) => match self.params.get(n as usize) {
                Some(Scalar::Bool(b)) => write!(f, "{b}"),
                Some(Scalar::Int(v)) => write!(f, "{v}"),
                Some(Scalar::Float(v)) => write!(f, "{v}"),
                Some(Scalar::Complex(c)) => write!(f, "{c}"),
                None => write!(f, "s{n}"),
            },
            StepKind::Cast => {
                write!(f, "{}(", step.dtype)?;
                self.format_step(f, step.args[0], depth + 1)?;
                f.write_str(")")
            }
            StepKind::Apply(op) | StepKind::Fold(op) => {
                write!(f, "{}(", op.name())?;
                // The text omits the third argument of a fused `take`, the length of the array.
                let shown = if op.family() == Family::Gather { 2 } else { usize::MAX };
                for (i, &a) in step.args().iter().enumerate().take(shown) {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    self.format_step(f, a, depth + 1)?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::MULTIPLY;

    #[test]
    fn push_unless_present_reuses_equal_steps() {
        let mut p = Program::identity(DType::F64);
        let mut times = |by: f64| {
            let by = p.push_param(Scalar::Float(by), DType::F64);
            (p.push_step_unless_present(StepKind::Apply(MULTIPLY), DType::F64, &[0, by]), p.params.len())
        };
        assert_eq!(
            [times(0.0), times(2.0), times(0.0), times(-0.0)],
            [(2, 1), (4, 2), (2, 2), (6, 3)],
            "0.0 and -0.0 are different scalars"
        );
    }
}
