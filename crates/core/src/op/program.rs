//! A fused elementwise expression, flattened: what every backend's Map, Reduce, Rows and Scan kernels compute per element.
//! Single assignment, in order of use; values that differ between calls (inputs, scalars) are numbered, not embedded.

use std::fmt;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::op::{MAX_ARITY, Op};
use crate::ops::indexing::TAKE_EACH;
use crate::ops::reduce::SUM;
use crate::scalar::Scalar;

/// What one step does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepKind {
    /// Element of input number n, already of the step's dtype.
    Input(u16),
    /// Scalar parameter number n, converted to the step's dtype.
    Param(u16),
    /// Conversion of the first argument to the step's dtype (`astype`).
    Cast,
    /// An elementwise operation on the arguments.
    Apply(Op),
    /// The argument's values over a whole row, reduced in the step's dtype: one number, which all elements of the row share.
    /// In programs of [`Work::Rows`](crate::Work::Rows) only.
    Fold(Op),
}

impl StepKind {
    /// A tag and a number that tell kinds apart in the keys of kernel caches, but for operations of other crates: those share
    /// a number ([`Op::is_foreign`]).
    pub fn code(self) -> (u8, u16) {
        match self {
            StepKind::Input(n) => (0, n),
            StepKind::Param(n) => (1, n),
            StepKind::Cast => (2, 0),
            StepKind::Apply(op) => (3, op.index() as u16),
            StepKind::Fold(op) => (4, op.index() as u16),
        }
    }
}

/// One step; its value has `dtype`, its arguments are earlier steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// dtype of the value.
    pub dtype: DType,
    /// Steps it reads; how many count follows from `kind`.
    pub args: [u16; MAX_ARITY],
}

impl Step {
    /// The steps it reads.
    pub fn args(&self) -> &[u16] {
        match self.kind {
            StepKind::Input(_) | StepKind::Param(_) => &[],
            StepKind::Cast | StepKind::Fold(_) => &self.args[..1],
            StepKind::Apply(op) => &self.args[..op.arity().min(MAX_ARITY)],
        }
    }
}

/// A flattened expression with one or more results.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// In order: a step reads only earlier ones.
    pub steps: SmallVec<[Step; 20]>,
    /// Steps whose values are results.
    pub outputs: SmallVec<[u16; 2]>,
    /// Values of the scalar parameters; not part of the structure.
    pub params: SmallVec<[Scalar; 6]>,
}

impl Program {
    /// The program that returns its one input.
    pub fn identity(dtype: DType) -> Program {
        let mut p = Program::default();
        p.steps.push(Step { kind: StepKind::Input(0), dtype, args: [0; MAX_ARITY] });
        p.outputs.push(0);
        p
    }

    /// Appends a step over the given ones and returns its number.
    #[inline(always)]
    pub fn push(&mut self, kind: StepKind, dtype: DType, args: &[u16]) -> u16 {
        let at = self.push_leaf(kind, dtype);
        let places = &mut self.steps[at as usize].args;
        match *args {
            [a] => places[0] = a,
            [a, b] => (places[0], places[1]) = (a, b),
            _ => {
                for (place, &arg) in places.iter_mut().zip(args) {
                    *place = arg;
                }
            }
        }
        at
    }

    /// Fills a step in where it stays: a structure that is written in pieces and read whole at once makes the processor wait.
    #[inline(always)]
    fn push_leaf(&mut self, kind: StepKind, dtype: DType) -> u16 {
        let at = self.steps.len();
        self.steps.push(const { Step { kind: StepKind::Input(0), dtype: DType::Bool, args: [0; MAX_ARITY] } });
        let step = &mut self.steps[at];
        (step.kind, step.dtype) = (kind, dtype);
        at as u16
    }

    /// Appends a scalar parameter, converted to `dtype`, and returns its step.
    pub fn push_param(&mut self, value: Scalar, dtype: DType) -> u16 {
        self.params.push(value);
        self.push_leaf(StepKind::Param(self.params.len() as u16 - 1), dtype)
    }

    /// As [`Program::push`], but an equal step that is there already serves again. Scalars among the arguments are equal if their bits in
    /// the step's dtype are; those that were pushed for this step alone go again.
    pub fn push_once(&mut self, kind: StepKind, dtype: DType, args: &[u16]) -> u16 {
        let value = |step: u16| match self.steps[step as usize].kind {
            StepKind::Param(n) => {
                let dtype = self.steps[step as usize].dtype;
                Some((self.params[n as usize].to_bytes(dtype), dtype))
            }
            _ => None,
        };
        let same_arg = |(&a, &b): (&u16, &u16)| a == b || value(a).is_some_and(|scalar| value(b) == Some(scalar));
        let same = |s: &Step| s.kind == kind && s.dtype == dtype && s.args().iter().zip(args).all(same_arg);
        let Some(found) = self.steps.iter().position(same) else { return self.push(kind, dtype, args) };
        while let Some(&Step { kind: StepKind::Param(n), .. }) = self.steps.last()
            && found + 1 < self.steps.len()
            && args.contains(&(self.steps.len() as u16 - 1))
        {
            self.params.truncate(n as usize);
            self.steps.pop();
        }
        found as u16
    }

    /// Appends what `var` sums: the squared distances of step `x`'s values from their mean over a row of `count`, in the real dtype, and
    /// their sum. Two passes over values that are at hand lose no digits where the mean is large.
    pub fn push_squared_distances(&mut self, x: u16, count: usize) -> u16 {
        use crate::ops::elementwise::{ADD, DIVIDE, IMAG, REAL, SQUARE, SUBTRACT};
        let dtype = self.steps[x as usize].dtype;
        let real = dtype.real();
        let sum = self.push_once(StepKind::Fold(SUM), dtype, &[x]);
        let count = self.push_param(Scalar::Float(count as f64), dtype);
        let mean = self.push_once(StepKind::Apply(DIVIDE), dtype, &[sum, count]);
        let distance = self.push_once(StepKind::Apply(SUBTRACT), dtype, &[x, mean]);
        let squares = if dtype.is_complex() {
            let [re, im] = [REAL, IMAG].map(|part| self.push_once(StepKind::Apply(part), real, &[distance]));
            let [re, im] = [re, im].map(|part| self.push_once(StepKind::Apply(SQUARE), real, &[part]));
            self.push_once(StepKind::Apply(ADD), real, &[re, im])
        } else {
            self.push_once(StepKind::Apply(SQUARE), real, &[distance])
        };
        self.push_once(StepKind::Fold(SUM), real, &[squares])
    }

    /// Whether it only hands through input 0.
    pub fn is_identity(&self) -> bool {
        self.steps.len() == 1 && self.outputs.len() == 1 && matches!(self.steps[0].kind, StepKind::Input(0))
    }

    /// dtype of result number `n`.
    pub fn output_dtype(&self, n: usize) -> DType {
        self.steps[self.outputs[n] as usize].dtype
    }

    /// dtype of input number `n`.
    pub fn input_dtype(&self, n: usize) -> Option<DType> {
        self.steps.iter().find(|s| s.kind == StepKind::Input(n as u16)).map(|s| s.dtype)
    }

    /// The operations applied, in order.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        self.steps.iter().filter_map(|s| if let StepKind::Apply(op) = s.kind { Some(op) } else { None })
    }

    /// The reductions along rows, in order.
    pub fn folds(&self) -> impl Iterator<Item = Op> + '_ {
        self.steps.iter().filter_map(|s| if let StepKind::Fold(op) = s.kind { Some(op) } else { None })
    }

    /// A number that programs of the same structure share, and few others: for finding what was kept for one.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = self.outputs.first().copied().map_or(0, u64::from);
        for Step { kind, dtype, args } in &self.steps {
            let (tag, number) = kind.code();
            let word =
                u64::from(tag) | (*dtype as u64) << 8 | u64::from(number) << 16 | u64::from(args[0]) << 32 ^ u64::from(args[1]) << 48;
            hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        hash >> 48
    }

    /// Same structure (steps and outputs).
    pub fn same_structure(&self, other: &Program) -> bool {
        self.steps == other.steps && self.outputs == other.outputs
    }
}

/// The expression in NumPy-like notation (`sqrt(add(a0, 1))`), for `explain` and logs.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &out) in self.outputs.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            self.write_step(f, out, 0)?;
        }
        Ok(())
    }
}

impl Program {
    fn write_step(&self, f: &mut fmt::Formatter<'_>, at: u16, depth: usize) -> fmt::Result {
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
                self.write_step(f, step.args[0], depth + 1)?;
                f.write_str(")")
            }
            StepKind::Apply(op) | StepKind::Fold(op) => {
                write!(f, "{}(", op.name())?;
                let shown = if op == TAKE_EACH { 2 } else { usize::MAX }; // the length says nothing
                for (i, &a) in step.args().iter().enumerate().take(shown) {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    self.write_step(f, a, depth + 1)?;
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
    fn equal_steps_serve_again() {
        let mut p = Program::identity(DType::F64);
        let mut times = |by: f64| {
            let by = p.push_param(Scalar::Float(by), DType::F64);
            (p.push_once(StepKind::Apply(MULTIPLY), DType::F64, &[0, by]), p.params.len())
        };
        assert_eq!([times(0.0), times(2.0), times(0.0), times(-0.0)], [(2, 1), (4, 2), (2, 2), (6, 3)], "zeros of either sign are two");
    }
}
