//! Counter-based random numbers: a seed gives the same numbers on every device.

mod array_parameters;
mod distribution_formulas;
mod distribution_parameters;
mod distributions;
mod eval_arguments;
mod multivariate_distributions;
mod permutations;
mod seeds;

use std::sync::{LazyLock, Mutex, PoisonError};

use self::distribution_parameters::{
    NOT_NEGATIVE_INTERVAL, checked_real_parameter, drawn_array_shape, truncate_to_integer, unrestricted_real_parameter,
};
pub use self::distributions::*;
use self::eval_arguments::{
    default_rng_from_args, draw_with_dtype_argument, generator_from_self, generator_to_value, read_size_argument, seed_from_args,
    with_seeded_generator,
};
pub use self::multivariate_distributions::*;
pub use self::permutations::{Population, bytes, choice, permutation, permuted, shuffle};
use crate::arguments::IntoShape;
use crate::array::{NdArray, StoredArray};
use crate::call::{Distribution, OutputSpec, Random, Sampler, UniformScaling, Work};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Operand;
use crate::function::FromArgs;
use crate::host_buffer::try_reserve;
use crate::layout::checked_size;
use crate::op::Op;
use crate::ops::elementwise::{log1p, negative};
use crate::ops::python_value::{Args, Value};
use crate::ops::sequence_items::{MAX_SEQUENCE_VALUES, SequenceItems};
use cuprum_macros::numpy;

super::ops! { Random after take:
    RANDOM "random" 0;
    UNIFORM "uniform" 0;
    NORMAL "normal" 0;
    STANDARD_NORMAL "standard_normal" 0;
    INTEGERS "integers" 0;
    SAMPLES "samples" 3;
}

fn uniform_from_args(args: &Args) -> Result<Value> {
    let [low, high] = [Operand::from_args(args, "low")?, Operand::from_args(args, "high")?];
    draw_with_dtype_argument(args, |g, shape, dtype| g.uniform(low, high, shape, dtype))
}

fn normal_from_args(args: &Args) -> Result<Value> {
    let [mean, std] = [Operand::from_args(args, "loc")?, Operand::from_args(args, "scale")?];
    draw_with_dtype_argument(args, |g, shape, dtype| g.normal(mean, std, shape, dtype))
}

fn integers_from_args(args: &Args) -> Result<Value> {
    let (low, high) = match args.get("high") {
        Some(_) => (args.operand("low")?, args.operand("high")?),
        None => (0.into(), args.operand("low")?),
    };
    let endpoint = args.bool_or("endpoint", false)?;
    let dtype = args.dtype("dtype")?.unwrap_or(DType::I64);
    let shape = read_size_argument(args)?;
    with_seeded_generator(args, |g| match (&low, &high) {
        (Operand::Scalar(low), Operand::Scalar(high)) => {
            let high = truncate_to_integer(*high, "high")?;
            g.integers_with_i128_bounds(
                truncate_to_integer(*low, "low")?,
                if endpoint { high.saturating_add(1) } else { high },
                &shape,
                dtype,
            )
        }
        _ => g.integers_between(&low, &high, endpoint, &shape, dtype),
    })
    .map(Value::Array)
}

/// The process-wide generator, which the functions of this module and `eval` without `seed=` use. [`seed`] replaces its seed.
static SHARED_GENERATOR: LazyLock<Generator> = LazyLock::new(Generator::from_entropy);

/// Restarts the process-wide generator from a seed (`numpy.random.seed`).
///
/// The generator then draws the same numbers in every run of the program. Without a call of this function, its seed is unpredictable.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::random;
/// # fn main() -> cuprum::Result<()> {
/// random::seed(7);
/// let first = random::rand(3)?.to_vec::<f64>()?;
/// random::seed(7);
/// assert_eq!(random::rand(3)?.to_vec::<f64>()?, first);
/// # Ok(())
/// # }
/// ```
#[numpy("random.seed(seed=None)", differs = "Philox numbers, the same on every device", call = seed_from_args)]
pub fn seed(seed: u64) {
    SHARED_GENERATOR.reseed(seed);
}

/// Makes unpredictable seeds the same in all processes that call this function with the same key.
///
/// Generators without a seed are then equal if the processes create them in the same order. Meshes over several processes use this
/// function. Existing generators are not affected.
pub fn set_shared_entropy_key(key: u64) {
    seeds::set_shared_entropy_key(key);
}

/// Returns a number that differs between processes and between calls, for [`set_shared_entropy_key`].
pub fn fresh_entropy() -> u64 {
    seeds::next_entropy_key()
}

/// Calls `draw` with the shape whose extents are the positional arguments, as in `rand(2, 3)`.
fn draw_with_shape_arguments(args: &Args, draw: impl FnOnce(&Generator, &[usize], DType) -> Result<NdArray>) -> Result<Value> {
    let extent = |v: &Value| usize::try_from(v.to_isize(args.op())?).map_err(|_| Error::value(args.op(), "negative dimension"));
    let shape: Vec<usize> = args.rest().iter().map(extent).collect::<Result<_>>()?;
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    let drawn = with_seeded_generator(args, |g| draw(g, &shape, dtype));
    drawn.map(Value::Array).map_err(|e| e.with_function_name(args.op()))
}

/// Returns uniform float64 numbers in [0, 1) from the process-wide generator (`numpy.random.rand`).
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::random::rand;
/// # fn main() -> cuprum::Result<()> {
/// let a = rand((2, 3))?;
/// assert!(a.min(())?.item()? >= 0.0 && a.max(())?.item()? < 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("random.rand(*shape, dtype=None, seed=None)", aliases("rand"), differs = "Philox numbers, the same on every device", call = |args| draw_with_shape_arguments(args, |g, shape, dtype| g.random(shape, dtype)))]
pub fn rand(shape: impl IntoShape) -> Result<NdArray> {
    SHARED_GENERATOR.random(shape, DType::F64)
}

/// Returns normal float64 numbers of mean 0 and standard deviation 1 from the process-wide generator (`numpy.random.randn`).
///
/// # Errors
/// A shape whose size overflows, or too little memory.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::random::randn;
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(randn((2, 3))?.shape(), [2, 3]);
/// # Ok(())
/// # }
/// ```
#[numpy("random.randn(*shape, dtype=None, seed=None)", aliases("randn"), differs = "Philox numbers, the same on every device", call = |args| draw_with_shape_arguments(args, |g, shape, dtype| g.normal(0.0, 1.0, shape, dtype)))]
pub fn randn(shape: impl IntoShape) -> Result<NdArray> {
    SHARED_GENERATOR.normal(0.0, 1.0, shape, DType::F64)
}

/// Returns uniform numbers in [0, 1) from the process-wide generator (`numpy.random.random`). See [`Generator::random`].
///
/// # Errors
/// The errors of [`Generator::random`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::random};
/// # fn main() -> cuprum::Result<()> {
/// let a = random((2, 3), DType::F32)?;
/// assert!(a.min(())?.item()? >= 0.0 && a.max(())?.item()? < 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("random.random(size=None, dtype=None, seed=None)", aliases("random", "random_sample", "random.random_sample"), differs = "Philox numbers, the same on every device", call = |a| draw_with_dtype_argument(a, |g, shape, dtype| g.random(shape, dtype)))]
pub fn random(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.random(shape, dtype)
}

/// Returns uniform numbers in [low, high) from the process-wide generator (`numpy.random.uniform`). See [`Generator::uniform`].
///
/// # Errors
/// The errors of [`Generator::uniform`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::uniform};
/// # fn main() -> cuprum::Result<()> {
/// let a = uniform(-1.0, 1.0, 1000, DType::F64)?;
/// assert!(a.min(())?.item()? >= -1.0 && a.max(())?.item()? < 1.0);
/// # Ok(())
/// # }
/// ```
#[numpy("random.uniform(low=0.0, high=1.0, size=None, dtype=None, seed=None)", aliases("uniform"), differs = "Philox numbers, the same on every device", call = uniform_from_args)]
pub fn uniform(low: impl Into<Operand>, high: impl Into<Operand>, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.uniform(low, high, shape, dtype)
}

/// Returns normally distributed numbers from the process-wide generator (`numpy.random.normal`). See [`Generator::normal`].
///
/// # Errors
/// The errors of [`Generator::normal`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::normal};
/// # fn main() -> cuprum::Result<()> {
/// let a = normal(5.0, 0.1, 1000, DType::F64)?;
/// assert!((a.mean(())?.item_as::<f64>()? - 5.0).abs() < 0.1);
/// # Ok(())
/// # }
/// ```
#[numpy("random.normal(loc=0.0, scale=1.0, size=None, dtype=None, seed=None)", aliases("normal"), differs = "Philox numbers, the same on every device", call = normal_from_args)]
pub fn normal(mean: impl Into<Operand>, std: impl Into<Operand>, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.normal(mean, std, shape, dtype)
}

/// Returns normal numbers of mean 0 and standard deviation 1 from the process-wide generator (`numpy.random.standard_normal`).
///
/// # Errors
/// The errors of [`Generator::normal`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::standard_normal};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(standard_normal((2, 3), DType::F32)?.dtype(), DType::F32);
/// # Ok(())
/// # }
/// ```
#[numpy("random.standard_normal(size=None, dtype=None, seed=None)", aliases("standard_normal"), differs = "Philox numbers, the same on every device", call = |a| draw_with_dtype_argument(a, |g, shape, dtype| g.normal(0.0, 1.0, shape, dtype)))]
pub fn standard_normal(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.normal(0.0, 1.0, shape, dtype)
}

/// Returns uniform integers in [low, high) from the process-wide generator (`numpy.random.integers`). See [`Generator::integers`].
///
/// # Errors
/// The errors of [`Generator::integers`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::integers};
/// # fn main() -> cuprum::Result<()> {
/// let dice = integers(1, 7, 1000, DType::I64)?;
/// assert!(dice.min(())?.item()? == 1 && dice.max(())?.item()? == 6);
/// # Ok(())
/// # }
/// ```
#[numpy("random.integers(low, high=None, size=None, dtype=None, endpoint=False, seed=None)", aliases("integers", "randint", "random.randint"), differs = "Philox numbers, the same on every device", call = integers_from_args)]
pub fn integers(low: i64, high: i64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.integers(low, high, shape, dtype)
}

/// Returns a generator with a seed, or with an unpredictable seed for `None` (`numpy.random.default_rng`).
///
/// In `eval`, a seed is a non-negative integer of any size, a (nested) list of them, or a generator, which is returned. The result is a
/// value whose methods are the functions of `random`: `rng = default_rng(7); rng.normal(size=3)`. It also has `spawn` and `jumped`.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::default_rng};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(default_rng(7).random(4, DType::F64)?, default_rng(7).random(4, DType::F64)?);
/// assert_ne!(default_rng(None).random(4, DType::F64)?, default_rng(None).random(4, DType::F64)?);
/// # Ok(())
/// # }
/// ```
#[numpy("random.default_rng(seed=None)", aliases("default_rng"), differs = "Philox numbers, the same on every device", call = default_rng_from_args)]
pub fn default_rng(seed: impl Into<Option<u64>>) -> Generator {
    seed.into().map_or_else(Generator::from_entropy, Generator::new)
}

/// Returns generators with independent numbers (`numpy.random.Generator.spawn`). See [`Generator::spawn`].
///
/// # Errors
/// The errors of [`Generator::spawn`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::random::{default_rng, spawn};
/// # fn main() -> cuprum::Result<()> {
/// assert_eq!(spawn(&default_rng(7), 3)?.len(), 3);
/// # Ok(())
/// # }
/// ```
#[numpy("random.spawn(self, n_children)", differs = "the generator is the first argument", call = |args| {
    let count = args.int_or("n_children", 0)?;
    let count = usize::try_from(count).ok().filter(|n| *n <= MAX_SEQUENCE_VALUES);
    let count = count.ok_or_else(|| Error::value(args.op(), format!("n_children must be from 0 to {MAX_SEQUENCE_VALUES}")))?;
    let children = generator_from_self(args)?.spawn(count)?;
    Ok(Value::List(SequenceItems::new(args.op(), children.into_iter().map(generator_to_value).collect())?))
})]
pub fn spawn(generator: &Generator, count: usize) -> Result<Vec<Generator>> {
    generator.spawn(count)
}

/// Returns a generator with the same seed whose counter is `jumps` times 2^96 ahead (`numpy.random.Philox.jumped`). See
/// [`Generator::jumped`].
///
/// # Errors
/// The errors of [`Generator::jumped`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::random::{default_rng, jumped};
/// assert!(jumped(&default_rng(7), u32::MAX).is_ok());
/// ```
#[numpy("random.jumped(self, jumps=1)", differs = "the generator is the first argument", call = |args| {
    let jumps = args.int_or("jumps", 1)?;
    let jumps = u32::try_from(jumps).map_err(|_| Error::value(args.op(), "jumps must be from 0 to 2**32 - 1"))?;
    generator_from_self(args)?.jumped(jumps).map(generator_to_value)
})]
pub fn jumped(generator: &Generator, jumps: u32) -> Result<Generator> {
    generator.jumped(jumps)
}

/// Returns exponentially distributed numbers of mean 1 (`numpy.random.standard_exponential`). See [`Generator::standard_exponential`].
///
/// # Errors
/// The errors of [`Generator::standard_exponential`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::standard_exponential};
/// # fn main() -> cuprum::Result<()> {
/// assert!(standard_exponential(1000, DType::F32)?.min(())?.item()? >= 0.0);
/// # Ok(())
/// # }
/// ```
#[numpy("random.standard_exponential(size=None, dtype=None, seed=None)", differs = "Philox numbers, the same on every device", call = |a| draw_with_dtype_argument(a, |g, shape, dtype| g.standard_exponential(shape, dtype)))]
pub fn standard_exponential(shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.standard_exponential(shape, dtype)
}

/// Returns numbers of the gamma distribution of scale 1 (`numpy.random.standard_gamma`). See [`Generator::standard_gamma`].
///
/// # Errors
/// The errors of [`Generator::standard_gamma`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::standard_gamma};
/// # fn main() -> cuprum::Result<()> {
/// assert!(standard_gamma(2.5, 1000, DType::F32)?.min(())?.item()? >= 0.0);
/// # Ok(())
/// # }
/// ```
#[numpy("random.standard_gamma(shape, size=None, dtype=None, seed=None)", differs = "Philox numbers, the same on every device", call = |args| {
    draw_with_dtype_argument(args, |g, size, dtype| g.standard_gamma(Operand::from_args(args, "shape")?, size, dtype))
})]
pub fn standard_gamma(shape: impl Into<Operand>, size: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.standard_gamma(shape, size, dtype)
}

/// A random number generator (`numpy.random.Generator`).
///
/// The algorithm is the counter-based Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). The numbers
/// depend only on the seed and the order of calls, not on the device or the number of threads. They differ from NumPy's.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, random::Generator};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b) = (Generator::new(7), Generator::new(7));
/// assert_eq!(a.random([4], DType::F64)?.to_vec::<f64>()?, b.random([4], DType::F64)?.to_vec::<f64>()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Generator {
    state: Mutex<GeneratorState>,
}

#[derive(Debug)]
struct GeneratorState {
    key: u64,
    /// Last word of the Philox counter. Each jump increases the word by 1.
    stream: u32,
    /// Counter of the next unused Philox block.
    next_block: u64,
    /// Number of generators that [`Generator::spawn`] has returned.
    children: u64,
}

impl GeneratorState {
    fn from_philox_key(key: u64, stream: u32) -> GeneratorState {
        GeneratorState { key, stream, next_block: 0, children: 0 }
    }
}

impl Generator {
    /// Creates a generator from a seed (`numpy.random.default_rng(seed)`).
    pub fn new(seed: u64) -> Generator {
        Generator { state: Mutex::new(GeneratorState::from_philox_key(seed, 0)) }
    }

    /// Creates a generator with an unpredictable seed (`numpy.random.default_rng()`).
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, random::Generator};
    /// # fn main() -> cuprum::Result<()> {
    /// let (a, b) = (Generator::from_entropy(), Generator::from_entropy());
    /// assert_ne!(a.random([4], DType::F64)?.to_vec::<f64>()?, b.random([4], DType::F64)?.to_vec::<f64>()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_entropy() -> Generator {
        Generator::new(seeds::next_entropy_key())
    }

    /// Replaces the state by that of a new generator with this seed.
    fn reseed(&self, seed: u64) {
        *self.lock_generator_state() = GeneratorState::from_philox_key(seed, 0);
    }

    /// Returns `count` generators whose numbers are independent of this generator's and of each other's
    /// (`numpy.random.Generator.spawn`).
    ///
    /// The seeds of the new generators follow from this generator's seed and jumps, and from the number of generators that it has returned
    /// before. The call does not change the numbers that this generator draws.
    ///
    /// # Errors
    /// Too little memory.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let children = default_rng(7).spawn(2)?;
    /// assert_ne!(children[0].random(4, DType::F64)?, children[1].random(4, DType::F64)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn(&self, count: usize) -> Result<Vec<Generator>> {
        let mut children = Vec::new();
        try_reserve("spawn", &mut children, count)?;
        let (key, stream, first) = {
            let mut state = self.lock_generator_state();
            let first = state.children;
            state.children = first.wrapping_add(count as u64);
            (state.key, state.stream, first)
        };
        children.extend((0..count as u64).map(|n| Generator::new(seeds::derive_child_key(key, stream, first.wrapping_add(n)))));
        Ok(children)
    }

    /// Returns a generator with the same seed whose counter is `jumps` times 2^96 ahead (`numpy.random.Philox.jumped`). The streams do not
    /// overlap.
    ///
    /// # Errors
    /// More than 2^32 - 1 jumps in total since the seed.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let rng = default_rng(7);
    /// let far = rng.jumped(1)?;
    /// assert_ne!(rng.random(4, DType::F64)?, far.random(4, DType::F64)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn jumped(&self, jumps: u32) -> Result<Generator> {
        let state = self.lock_generator_state();
        let stream = state.stream.checked_add(jumps).ok_or_else(|| Error::value("jumped", "too many jumps"))?;
        let jumped = GeneratorState { key: state.key, stream, next_block: state.next_block, children: 0 };
        Ok(Generator { state: Mutex::new(jumped) })
    }

    fn lock_generator_state(&self) -> std::sync::MutexGuard<'_, GeneratorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws an array on the current device and advances the generator's block counter.
    fn draw_random_array(&self, op: Op, shape: &[usize], dtype: DType, distribution: Distribution) -> Result<NdArray> {
        self.draw_with_parameter_arrays(op, Device::current()?, &[], shape, dtype, distribution)
    }

    /// Like [`Generator::draw_random_array`], but on `device`, and with the arrays `inputs` as the parameters of the distribution.
    fn draw_with_parameter_arrays(
        &self,
        op: Op,
        device: Device,
        inputs: &[StoredArray],
        shape: &[usize],
        dtype: DType,
        distribution: Distribution,
    ) -> Result<NdArray> {
        let blocks = checked_size(op.name(), shape)?.div_ceil(distribution.elements_per_philox_block(dtype)) as u64;
        let output = OutputSpec::contiguous(dtype, shape)?;
        let work = Work::Random(self.reserve_philox_blocks(blocks, distribution));
        super::dispatch_single_output(op, device, inputs, output, work)
    }

    /// Reserves the next `blocks` Philox blocks by advancing the generator's counter. Returns the request of a call that draws numbers from
    /// these blocks.
    fn reserve_philox_blocks(&self, blocks: u64, distribution: Distribution) -> Random {
        let mut state = self.lock_generator_state();
        let first_block = state.next_block;
        state.next_block = first_block.wrapping_add(blocks);
        Random { key: state.key, first_block, stream: state.stream, distribution }
    }

    /// Draws the two halves, high half first, of 128-bit numbers as uint64 arrays. The low half is drawn only if `needs_low_half`.
    fn draw_u128_halves(&self, shape: &[usize], needs_low_half: bool) -> Result<(NdArray, Option<NdArray>)> {
        let distribution = Distribution::Integers { low: 0, span: 0 };
        let blocks = checked_size(INTEGERS.name(), shape)?.div_ceil(distribution.elements_per_philox_block(DType::U64)) as u64;
        let random = self.reserve_philox_blocks(blocks, distribution);
        let draw = |first_block| {
            let (device, output) = (Device::current()?, OutputSpec::contiguous(DType::U64, shape)?);
            super::dispatch_single_output(INTEGERS, device, &[], output, Work::Random(Random { first_block, ..random }))
        };
        let low_block = random.first_block.wrapping_add(Distribution::LOW_HALF_BLOCK_OFFSET);
        Ok((draw(random.first_block)?, if needs_low_half { Some(draw(low_block)?) } else { None }))
    }

    /// Returns exponentially distributed numbers of mean 1 (`numpy.random.Generator.standard_exponential`).
    ///
    /// Numbers in float16 and bfloat16 are drawn in float32 and rounded.
    ///
    /// # Errors
    /// The errors of [`Generator::random`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let x = default_rng(7).standard_exponential(100_000, DType::F64)?;
    /// assert!((x.mean(())?.item_as::<f64>()? - 1.0).abs() < 0.02);
    /// # Ok(())
    /// # }
    /// ```
    pub fn standard_exponential(&self, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        // The few digits of a 16-bit uniform number would limit the largest result and bias the mean, so float32 numbers are drawn.
        let drawn = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
        let draw = || negative(log1p(negative(self.random(shape, drawn)?)?)?)?.astype(dtype);
        draw().map_err(|error| error.with_function_name("standard_exponential"))
    }

    /// Returns numbers of the gamma distribution of scale 1 (`numpy.random.Generator.standard_gamma`). See [`Generator::gamma`].
    ///
    /// # Errors
    /// A negative shape, a dtype that is neither float32 nor float64, and the errors of [`Generator::gamma`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// let x = default_rng(7).standard_gamma(3.0, 100_000, DType::F64)?;
    /// assert!((x.mean(())?.item_as::<f64>()? - 3.0).abs() < 0.05);
    /// # Ok(())
    /// # }
    /// ```
    pub fn standard_gamma(&self, shape: impl Into<Operand>, size: impl IntoShape, dtype: DType) -> Result<NdArray> {
        const OP: &str = "standard_gamma";
        let draw = || {
            if !matches!(dtype, DType::F32 | DType::F64) {
                return Err(Error::dtype(OP, "float32 or float64 is needed", &[dtype]));
            }
            let shape = checked_real_parameter(shape.into(), "shape", &NOT_NEGATIVE_INTERVAL)?;
            let size = drawn_array_shape(std::slice::from_ref(&shape), &size.into_shape())?;
            self.draw_from_sampler(Sampler::StandardGamma, &[shape], &size, dtype)
        };
        draw().map_err(|error| error.with_function_name(OP))
    }

    /// Returns an error unless the dtype is floating.
    fn check_float_dtype(op: Op, dtype: DType) -> Result<()> {
        if dtype.is_float() { Ok(()) } else { Err(Error::dtype(op.name(), "a real floating dtype is needed", &[dtype])) }
    }

    /// Returns uniform numbers in [0, 1) on the current device (`numpy.random.Generator.random`).
    ///
    /// A number has as many random bits as its dtype has digits: 53 for float64, 24 for float32, 11 for float16, 8 for bfloat16.
    ///
    /// # Errors
    /// A dtype that is not floating, a shape whose size overflows, or too little memory.
    pub fn random(&self, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        self.draw_uniform(RANDOM, 0.0, 1.0, &shape.into_shape(), dtype)
    }

    /// Returns uniform numbers in [low, high), computed as `low + u * (high - low)` (`numpy.random.Generator.uniform`).
    ///
    /// Unlike NumPy's, the numbers are below `high` also after rounding. If `low > high`, they are in `(high, low]` before rounding.
    /// `low` and `high` are numbers or arrays, which broadcast to `shape`; the shape `()` stands for the shape that they broadcast to.
    ///
    /// # Errors
    /// A complex end, a range that is not finite, an end that `dtype` cannot hold, and the errors of [`Generator::random`].
    pub fn uniform(&self, low: impl Into<Operand>, high: impl Into<Operand>, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        let (low, high, shape) = (low.into(), high.into(), shape.into_shape());
        let draw = || {
            let (low, high) = (unrestricted_real_parameter(low, "low")?, unrestricted_real_parameter(high, "high")?);
            let (Operand::Scalar(low), Operand::Scalar(high)) = (&low, &high) else {
                return self.draw_uniform_between(low, high, &shape, dtype);
            };
            let (low, high) = (low.as_f64(), high.as_f64());
            if !(high - low).is_finite() {
                return Err(Error::value(UNIFORM.name(), format!("range from {low} to {high} is not finite")));
            }
            self.draw_uniform(UNIFORM, low, high, &shape, dtype)
        };
        draw().map_err(|error| error.with_function_name(UNIFORM.name()))
    }

    fn draw_uniform(&self, op: Op, low: f64, high: f64, shape: &[usize], dtype: DType) -> Result<NdArray> {
        Self::check_float_dtype(op, dtype)?;
        let out_of_bounds = || Error::value(op.name(), format!("range from {low} to {high} is out of bounds for {dtype}"));
        let scaling = UniformScaling::new_for_range(low, high, dtype).ok_or_else(out_of_bounds)?;
        self.draw_random_array(op, shape, dtype, Distribution::Uniform(scaling))
    }

    /// Returns normally distributed numbers, computed by the Box-Muller transform (`numpy.random.Generator.normal`).
    ///
    /// `mean` and `std` are numbers or arrays, which broadcast to `shape`; the shape `()` stands for the shape that they broadcast to.
    ///
    /// # Errors
    /// A complex parameter, a negative or NaN deviation, and the errors of [`Generator::random`].
    pub fn normal(&self, mean: impl Into<Operand>, std: impl Into<Operand>, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        Self::check_float_dtype(NORMAL, dtype)?;
        let (mean, std, shape) = (mean.into(), std.into(), shape.into_shape());
        let draw = || {
            let (mean, std) = (unrestricted_real_parameter(mean, "loc")?, unrestricted_real_parameter(std, "scale")?);
            let (Operand::Scalar(mean), Operand::Scalar(std)) = (&mean, &std) else {
                return self.draw_normal_around(mean, std, &shape, dtype);
            };
            let (mean, std) = (mean.as_f64(), std.as_f64());
            if std.is_nan() || std.is_sign_negative() {
                return Err(Error::value(NORMAL.name(), format!("scale {std} is negative")));
            }
            self.draw_random_array(NORMAL, &shape, dtype, Distribution::Normal { mean, std })
        };
        draw().map_err(|error| error.with_function_name(NORMAL.name()))
    }

    /// Returns numbers of the normal distribution with mean 0 and standard deviation 1 (`numpy.random.Generator.standard_normal`).
    ///
    /// # Errors
    /// The errors of [`Generator::normal`].
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # extern crate cuprum_core as cuprum;
    /// use cuprum::{DType, random::default_rng};
    /// # fn main() -> cuprum::Result<()> {
    /// assert_eq!(default_rng(7).standard_normal((2, 3), DType::F32)?.shape(), [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn standard_normal(&self, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        self.normal(0.0, 1.0, shape, dtype)
    }

    /// Returns uniform integers in [low, high) (`numpy.random.Generator.integers`).
    ///
    /// # Errors
    /// An empty range, a dtype that is neither an integer nor bool or that cannot hold the range, or too little memory.
    pub fn integers(&self, low: i64, high: i64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        self.integers_with_i128_bounds(low as i128, high as i128, &shape.into_shape(), dtype)
    }

    /// Draws integers as [`Generator::integers`] does. The bounds are i128, because the upper bound of uint64 fits neither i64 nor
    /// u64.
    fn integers_with_i128_bounds(&self, low: i128, high: i128, shape: &[usize], dtype: DType) -> Result<NdArray> {
        let op = INTEGERS.name();
        let (min, max) = integer_dtype_range(dtype)?;
        // As in NumPy, the bounds `low` and `high` are not checked if the result is empty.
        let (low, high) = if shape.contains(&0) { (0, 1) } else { (low, high) };
        if low >= high {
            return Err(Error::value(op, format!("low {low} >= high {high}")));
        }
        if low < min || high - 1 > max {
            return Err(Error::value(op, format!("range {low}..{high} is out of bounds for {dtype}")));
        }
        let span = u64::try_from(high - low).unwrap_or(0); // 0 encodes 2^64
        if dtype == DType::Bool {
            return self.draw_random_array(INTEGERS, shape, DType::U8, Distribution::Integers { low, span })?.astype(dtype);
        }
        self.draw_random_array(INTEGERS, shape, dtype, Distribution::Integers { low, span })
    }
}

/// Returns the least and the greatest number that an integer dtype or bool holds.
fn integer_dtype_range(dtype: DType) -> Result<(i128, i128)> {
    let range = if dtype == DType::Bool { Some((0, 1)) } else { dtype.int_range() };
    range.ok_or_else(|| Error::dtype(INTEGERS.name(), "an integer dtype or bool is needed", &[dtype]))
}
