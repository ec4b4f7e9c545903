//! Arguments of functions that `eval` calls by name: seeds, sizes and generators.

use std::any::Any;
use std::sync::Arc;

use super::seeds::key_from_seed_value;
use super::{Generator, SHARED_GENERATOR};
use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::python_value::{Args, Object, Value};

impl Object for Generator {
    fn type_name(&self) -> &'static str {
        "Generator"
    }
    fn repr(&self) -> String {
        "Generator(Philox)".into()
    }
    fn namespace(&self) -> &'static str {
        "random"
    }
}

/// Returns a generator as a value of `eval`.
pub(super) fn generator_to_value(generator: Generator) -> Value {
    Value::Object(Arc::new(generator))
}

/// Returns `value` as a generator, or `None` if it is another value.
fn as_generator(value: &Value) -> Option<&Generator> {
    let Value::Object(object) = value else { return None };
    (&**object as &dyn Any).downcast_ref()
}

/// Returns the argument `size`, or the empty shape (0-d) if it is missing.
pub(super) fn read_size_argument(args: &Args) -> Result<Vec<usize>> {
    if args.get("size").is_some() { args.shape("size") } else { Ok(vec![]) }
}

/// Calls `draw` with the generator that the argument `seed` selects. If `seed` is a generator, that generator is used. Any other `seed`
/// gives a new generator with this seed. Without `seed`, the process-wide generator is used.
pub(super) fn with_seeded_generator<T>(args: &Args, draw: impl FnOnce(&Generator) -> Result<T>) -> Result<T> {
    let drawn = match args.get("seed") {
        None => draw(&SHARED_GENERATOR),
        Some(seed) => match as_generator(seed) {
            Some(generator) => draw(generator),
            None => draw(&Generator::new(key_from_seed_value(args.op(), seed)?)),
        },
    };
    drawn.map_err(|error| error.with_function_name(args.op()))
}

/// Calls `draw` with the generator and the shape that the arguments `seed` and `size` select.
pub(super) fn draw_with_size_argument(args: &Args, draw: impl FnOnce(&Generator, &[usize]) -> Result<NdArray>) -> Result<Value> {
    let size = read_size_argument(args)?;
    with_seeded_generator(args, |generator| draw(generator, &size)).map(Value::Array)
}

/// Calls `draw` with the generator, the shape and the dtype that the arguments `seed`, `size` and `dtype` select.
pub(super) fn draw_with_dtype_argument(args: &Args, draw: impl FnOnce(&Generator, &[usize], DType) -> Result<NdArray>) -> Result<Value> {
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    draw_with_size_argument(args, |generator, size| draw(generator, size, dtype))
}

/// Returns the argument `self` as a generator, for functions that do not use the process-wide generator by default.
pub(super) fn generator_from_self(args: &Args) -> Result<&Generator> {
    let generator = args.get("self").and_then(as_generator);
    generator.ok_or_else(|| Error::value(args.op(), "the first argument must be a generator"))
}

pub(super) fn default_rng_from_args(args: &Args) -> Result<Value> {
    Ok(match args.get("seed") {
        None => generator_to_value(Generator::from_entropy()),
        Some(seed) if as_generator(seed).is_some() => seed.clone(),
        Some(seed) => generator_to_value(Generator::new(key_from_seed_value(args.op(), seed)?)),
    })
}

pub(super) fn seed_from_args(args: &Args) -> Result<Value> {
    match args.get("seed") {
        None => SHARED_GENERATOR.reseed(super::seeds::next_entropy_key()),
        // As in NumPy, only `default_rng` takes empty and nested sequences as seeds.
        Some(seed) if seed.items().is_some_and(|items| items.is_empty() || items.iter().any(|item| item.items().is_some())) => {
            return Err(Error::value(args.op(), "the seed must be a flat sequence of integers that is not empty"));
        }
        Some(seed) => super::seed(key_from_seed_value(args.op(), seed)?),
    }
    Ok(Value::None)
}
