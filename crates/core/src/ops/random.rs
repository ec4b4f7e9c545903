//! Counter-based random numbers: a seed gives the same numbers on every device.

use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::arguments::IntoShape;
use crate::array::NdArray;
use crate::call::{Distribution, OutputSpec, Random, UniformScaling, Work};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::checked_size;
use crate::op::Op;
use crate::ops::value::{Args, Value};
use cuprum_macros::numpy;

super::ops! { Random after indexing:
    RANDOM "random" 0;
    UNIFORM "uniform" 0;
    NORMAL "normal" 0;
    STANDARD_NORMAL "standard_normal" 0;
    INTEGERS "integers" 0;
}

/// Returns the argument `size` of a function that `eval` calls by its name, or the empty shape (0-d) if it is missing.
fn read_size(args: &Args) -> Result<Vec<usize>> {
    if args.get("size").is_some() { args.shape("size") } else { Ok(vec![]) }
}

/// Returns the argument `seed` of a function that `eval` calls by its name, if it is present.
fn read_seed(args: &Args) -> Result<Option<u64>> {
    let Some(value) = args.get("seed") else { return Ok(None) };
    let seed = value.int(args.op())?;
    u64::try_from(seed).map(Some).map_err(|_| Error::value(args.op(), format!("seed {seed} is not in 0 to 2**64 - 1")))
}

/// Calls `draw` with a new generator for the argument `seed`, or with the generator of the process if `seed` is missing.
fn with_generator<T>(args: &Args, draw: impl FnOnce(&Generator) -> Result<T>) -> Result<T> {
    match read_seed(args)? {
        Some(seed) => draw(&Generator::new(seed)),
        None => draw(&SHARED_GENERATOR),
    }
}

fn seed_from_args(args: &Args) -> Result<Value> {
    match read_seed(args)? {
        Some(n) => seed(n),
        None => SHARED_GENERATOR.restart(entropy()),
    }
    Ok(Value::None)
}

fn uniform_from_args(args: &Args) -> Result<Value> {
    let (low, high) = (args.scalar_or("low", 0.0)?.as_f64(), args.scalar_or("high", 1.0)?.as_f64());
    draw_from_args(args, |g, shape, dtype| g.uniform(low, high, shape, dtype))
}

fn normal_from_args(args: &Args) -> Result<Value> {
    let (mean, std) = (args.scalar_or("loc", 0.0)?.as_f64(), args.scalar_or("scale", 1.0)?.as_f64());
    draw_from_args(args, |g, shape, dtype| g.normal(mean, std, shape, dtype))
}

fn integers_from_args(args: &Args) -> Result<Value> {
    let whole = |name: &str| args.scalar(name)?.as_int().ok_or_else(|| Error::value("integers", format!("'{name}' must be an integer")));
    let (low, high) = if args.get("high").is_some() { (whole("low")?, whole("high")?) } else { (0, whole("low")?) };
    let high = if args.bool_or("endpoint", false)? { high.saturating_add(1) } else { high };
    let dtype = args.dtype("dtype")?.unwrap_or(DType::I64);
    let shape = read_size(args)?;
    with_generator(args, |g| g.integers_with_i128_bounds(low, high, &shape, dtype)).map(Value::Array)
}

/// Calls `draw` with a generator, the shape and the dtype that the arguments `seed`, `size` and `dtype` select.
fn draw_from_args(args: &Args, draw: impl FnOnce(&Generator, &[usize], DType) -> Result<NdArray>) -> Result<Value> {
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    let shape = read_size(args)?;
    let drawn = with_generator(args, |g| draw(g, &shape, dtype));
    drawn.map(Value::Array).map_err(|e| e.with_function_name(args.op()))
}

/// The generator of the process. The functions of this module use it, and `eval` without `seed=`. [`seed`] restarts it.
static SHARED_GENERATOR: LazyLock<Generator> = LazyLock::new(Generator::from_entropy);

/// Returns a seed that differs between processes and between calls.
fn entropy() -> u64 {
    RandomState::new().hash_one("seed")
}

/// Restarts the generator of the process from a seed (`numpy.random.seed`). It then draws the same numbers in every run of the program.
/// Without a call of this function its seed is unpredictable.
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
    SHARED_GENERATOR.restart(seed);
}

/// Calls `draw` with the shape that the positional arguments give, as `rand` takes it.
fn draw_with_extents(args: &Args, draw: impl FnOnce(&Generator, &[usize], DType) -> Result<NdArray>) -> Result<Value> {
    let extent = |v: &Value| usize::try_from(v.index(args.op())?).map_err(|_| Error::value(args.op(), "negative dimension"));
    let shape: Vec<usize> = args.rest().iter().map(extent).collect::<Result<_>>()?;
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F64);
    let drawn = with_generator(args, |g| draw(g, &shape, dtype));
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
#[numpy("random.rand(*shape, dtype=None, seed=None)", aliases("rand"), differs = "Philox numbers, the same on every device", call = |args| draw_with_extents(args, |g, shape, dtype| g.random(shape, dtype)))]
pub fn rand(shape: impl IntoShape) -> Result<NdArray> {
    SHARED_GENERATOR.random(shape, DType::F64)
}

/// Returns normal float64 numbers of mean 0 and deviation 1 from the process-wide generator (`numpy.random.randn`).
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
#[numpy("random.randn(*shape, dtype=None, seed=None)", aliases("randn"), differs = "Philox numbers, the same on every device", call = |args| draw_with_extents(args, |g, shape, dtype| g.normal(0.0, 1.0, shape, dtype)))]
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
#[numpy("random.random(size=None, dtype=None, seed=None)", aliases("random", "random_sample", "random.random_sample"), differs = "Philox numbers, the same on every device", call = |a| draw_from_args(a, |g, shape, dtype| g.random(shape, dtype)))]
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
pub fn uniform(low: f64, high: f64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
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
pub fn normal(mean: f64, std: f64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
    SHARED_GENERATOR.normal(mean, std, shape, dtype)
}

/// Returns normal numbers of mean 0 and deviation 1 from the process-wide generator (`numpy.random.standard_normal`).
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
#[numpy("random.standard_normal(size=None, dtype=None, seed=None)", aliases("standard_normal"), differs = "Philox numbers, the same on every device", call = |a| draw_from_args(a, |g, shape, dtype| g.normal(0.0, 1.0, shape, dtype)))]
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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    key: u64,
    /// Number of the first block of random words that no call has drawn.
    next_block: u64,
}

impl Generator {
    /// Creates a generator from a seed (`numpy.random.default_rng(seed)`).
    pub fn new(seed: u64) -> Generator {
        Generator { state: Mutex::new(State { key: seed, next_block: 0 }) }
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
        Generator::new(entropy())
    }

    /// Replaces the state by that of a new generator with this seed.
    fn restart(&self, seed: u64) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State { key: seed, next_block: 0 };
    }

    /// Returns the key, and the number of the first of `blocks` blocks of random words, which no other call draws.
    fn take_blocks(&self, blocks: u64) -> (u64, u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let first = state.next_block;
        state.next_block = first.wrapping_add(blocks);
        (state.key, first)
    }

    /// Draws an array on the current device and advances the generator's block counter.
    fn draw(&self, op: Op, shape: &[usize], dtype: DType, distribution: Distribution) -> Result<NdArray> {
        let blocks = checked_size(op.name(), shape)?.div_ceil(distribution.elements_per_block(dtype)) as u64;
        let device = Device::current()?;
        let output = OutputSpec::contiguous(dtype, shape)?;
        let (key, first_block) = self.take_blocks(blocks);
        let work = Work::Random(Random { key, first_block, distribution });
        super::dispatch_single_output(op, device, &[], output, work)
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
    ///
    /// # Errors
    /// A range that is not finite, an end that `dtype` cannot hold, and the errors of [`Generator::random`].
    pub fn uniform(&self, low: f64, high: f64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        if !(high - low).is_finite() {
            return Err(Error::value(UNIFORM.name(), format!("range from {low} to {high} is not finite")));
        }
        self.draw_uniform(UNIFORM, low, high, &shape.into_shape(), dtype)
    }

    fn draw_uniform(&self, op: Op, low: f64, high: f64, shape: &[usize], dtype: DType) -> Result<NdArray> {
        Self::check_float_dtype(op, dtype)?;
        let out_of_bounds = || Error::value(op.name(), format!("range from {low} to {high} is out of bounds for {dtype}"));
        let scaling = UniformScaling::new(low, high, dtype).ok_or_else(out_of_bounds)?;
        self.draw(op, shape, dtype, Distribution::Uniform(scaling))
    }

    /// Returns normally distributed numbers, computed by the Box-Muller transform (`numpy.random.Generator.normal`).
    ///
    /// # Errors
    /// A negative or NaN deviation, and the errors of [`Generator::random`].
    pub fn normal(&self, mean: f64, std: f64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        Self::check_float_dtype(NORMAL, dtype)?;
        if std.is_nan() || std < 0.0 {
            return Err(Error::value(NORMAL.name(), format!("scale {std} is negative")));
        }
        self.draw(NORMAL, &shape.into_shape(), dtype, Distribution::Normal { mean, std })
    }

    /// Returns uniform integers in [low, high) (`numpy.random.Generator.integers`).
    ///
    /// # Errors
    /// An empty range, a dtype that is not an integer or cannot hold the range, or too little memory.
    pub fn integers(&self, low: i64, high: i64, shape: impl IntoShape, dtype: DType) -> Result<NdArray> {
        self.integers_with_i128_bounds(low as i128, high as i128, &shape.into_shape(), dtype)
    }

    /// Draws integers as [`Generator::integers`] does. The bounds are i128, because the upper bound of uint64 fits neither i64 nor
    /// u64.
    fn integers_with_i128_bounds(&self, low: i128, high: i128, shape: &[usize], dtype: DType) -> Result<NdArray> {
        let op = INTEGERS.name();
        let (min, max) = dtype.int_range().ok_or_else(|| Error::dtype(op, "an integer dtype is needed", &[dtype]))?;
        if low >= high {
            return Err(Error::value(op, format!("low {low} >= high {high}")));
        }
        if low < min || high - 1 > max {
            return Err(Error::value(op, format!("range {low}..{high} is out of bounds for {dtype}")));
        }
        let span = u64::try_from(high - low).unwrap_or(0); // 0 encodes 2^64
        self.draw(INTEGERS, shape, dtype, Distribution::Integers { low, span })
    }
}
