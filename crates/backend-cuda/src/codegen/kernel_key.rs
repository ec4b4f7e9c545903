//! Keys of the kernel caches.

use std::hash::Hasher;

use cuprum_core::{DType, Op, Program, StepKind};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

/// The key of a compiled kernel: its class (such as `map`), its flags, and the structure of its program. Sizes and scalar values are not
/// part of the key.
///
/// A key borrows the program, so that a lookup in the per-thread [`LaunchCache`](crate::launch_cache::LaunchCache) allocates
/// nothing. Process-wide caches store keys [as bytes](KernelKey::serialize).
#[derive(Clone, Debug)]
pub struct KernelKey<'a> {
    pub(crate) program: Option<&'a Program>,
    pub(crate) flags: KeyWithoutProgram,
}

/// The parts of a [`KernelKey`] other than the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KeyWithoutProgram {
    class: &'static str,
    numbers: SmallVec<[u64; 8]>,
    /// The names that the key contains, each terminated by NUL.
    names: SmallVec<[u8; 16]>,
}

impl<'a> KernelKey<'a> {
    /// Returns the key of a kernel of class `class`, such as `map`, that evaluates `program`.
    #[inline]
    pub fn new(class: &'static str, program: &'a Program) -> KernelKey<'a> {
        KernelKey { program: Some(program), ..KernelKey::without_program(class) }
    }

    /// Returns the key of a kernel of class `class`, such as `cub sort`, that evaluates no program.
    #[inline]
    pub fn without_program(class: &'static str) -> KernelKey<'a> {
        KernelKey { program: None, flags: KeyWithoutProgram { class, numbers: SmallVec::new(), names: SmallVec::new() } }
    }

    /// Adds `value` to the key: a flag, a rank or a bit set.
    #[inline]
    pub fn with_number(mut self, value: u64) -> KernelKey<'a> {
        self.flags.numbers.push(value);
        self
    }

    /// Adds `name` to the key.
    #[inline]
    pub fn with_name(mut self, name: &str) -> KernelKey<'a> {
        self.flags.names.extend_from_slice(name.as_bytes());
        self.flags.names.push(0);
        self
    }

    /// Adds `dtype` to the key.
    #[inline]
    pub fn with_dtype(self, dtype: DType) -> KernelKey<'a> {
        self.with_number(dtype as u64)
    }

    /// Adds `op` to the key, as the address of its `OpDef`. The operation's index would not suffice, because operations of other crates
    /// share one index.
    #[inline]
    pub fn with_op(self, op: Op) -> KernelKey<'a> {
        self.with_number(std::ptr::from_ref(op.0) as u64)
    }

    /// Returns a 16-bit hash of the program and of the numbers in the key. The key's class and names are not hashed.
    #[inline]
    pub(crate) fn fingerprint(&self) -> u64 {
        let mix = |hash: u64, &number: &u64| (hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.flags.numbers.iter().fold(self.program.map_or(0, Program::structure_hash), mix) >> 48
    }

    /// Returns the key as bytes, for caches that outlive the program.
    #[cold]
    pub fn serialize(&self) -> SerializedKey {
        let KeyWithoutProgram { class, numbers, names } = &self.flags;
        let mut bytes = SmallVec::<[u8; 256]>::from_slice(class.as_bytes());
        bytes.push(0);
        if let Some(program) = self.program {
            for step in &program.steps {
                let (tag, number) = step.kind.cache_key_tag();
                let ([n0, n1], args) = (number.to_le_bytes(), step.args());
                bytes.extend_from_slice(&[tag, step.dtype as u8, n0, n1, args.len() as u8]);
                args.iter().for_each(|arg| bytes.extend_from_slice(&arg.to_le_bytes()));
                if let StepKind::Apply(op) = step.kind
                    && op.is_defined_in_another_crate()
                {
                    bytes.extend_from_slice(&(std::ptr::from_ref(op.0) as usize).to_le_bytes()); // operations of other crates share one index
                }
            }
            bytes.push(0xff);
            program.outputs.iter().for_each(|out| bytes.extend_from_slice(&out.to_le_bytes()));
        }
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(names);
        SerializedKey { bytes }
    }
}

/// A [`KernelKey`] as bytes, for [`SingleFlight`](crate::compile::single_flight::SingleFlight).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SerializedKey {
    bytes: SmallVec<[u8; 256]>,
}

impl SerializedKey {
    /// Returns the hash of the key's bytes.
    pub fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write(&self.bytes);
        hasher.finish()
    }

    /// Returns the key's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuprum_core::Scalar;
    use cuprum_core::ops::elementwise;

    #[test]
    fn keys_follow_structure_only() {
        let program = |op, n: f64| {
            let mut p = Program::identity(DType::F32);
            p.params.push(Scalar::Float(n));
            let s = p.push_step(StepKind::Param(0), DType::F32, &[]);
            let out = p.push_step(StepKind::Apply(op), DType::F32, &[0, s]);
            p.outputs[0] = out;
            p
        };
        let key = |op, n, flag| KernelKey::new("map", &program(op, n)).with_number(flag).serialize();
        let base = key(elementwise::ADD, 1.0, 0);
        assert_eq!(base.bytes(), key(elementwise::ADD, 2.0, 0).bytes());
        assert_eq!(base.hash(), key(elementwise::ADD, 2.0, 0).hash());
        assert_ne!(base.bytes(), key(elementwise::SUBTRACT, 1.0, 0).bytes());
        assert_ne!(base.bytes(), key(elementwise::ADD, 1.0, 1).bytes());
    }
}
