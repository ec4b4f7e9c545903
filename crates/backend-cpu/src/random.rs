//! Kernel of the family `Random`: the counter-based generator Philox 4x32-10, with the same bits as on every other device.

mod distribution_samplers;
mod reproducible_math;

use cuprum_core::call::{Sampler, UniformScaling};
use cuprum_core::{Array, Call, DType, Distribution, Outcome, Random, Result, StoredArray, Work, bf16, decline, f16};
use cuprum_cpu_base::simd::{FillLoop, Isa, run_fill_loop};
use cuprum_cpu_base::threads;
use cuprum_cpu_base::typed_views::{Elements, ElementsMut, Output};
use cuprum_cpu_math as vmath;
use cuprum_cpu_math::{Logarithm, MathFloat};

use self::distribution_samplers::{DistributionSampler, RejectionAttempts};

/// Number of Philox counter blocks (four 32-bit words each) per task.
const PHILOX_BLOCKS_PER_TASK: usize = 1 << 13;
/// Approximate cost of one Philox counter block, in elementary operations.
const COST_PER_PHILOX_BLOCK: usize = 40;

/// Computes the output of `call`, an array of random numbers.
pub(crate) fn draw_random_numbers(call: &Call) -> Result<Outcome> {
    let Work::Random(random) = &call.work else { decline!("not a draw") };
    let dtype = call.outputs[0].dtype;
    if !random.distribution.supports_dtype(dtype) {
        decline!("{dtype} is not drawn from this distribution");
    }
    let (size, is_row_major) = (call.outputs[0].layout.size(), call.outputs[0].layout.is_c_contiguous());
    let is_parameter = |a: &StoredArray| a.dtype() == DType::F64 && a.layout().is_c_contiguous() && a.layout().size() == size;
    if !is_row_major || !call.inputs.iter().all(is_parameter) {
        decline!("an array that is not in C order");
    }
    let inputs = call.inputs.iter().map(Elements::from_contiguous_array).collect::<Result<Vec<_>>>()?;
    let inputs: Vec<&[f64]> = inputs.into_iter().map(Elements::typed_slice).collect();
    let mut output = Output::allocate(call, 0)?;
    let elements = output.elements_mut()?;
    let per_task = PHILOX_BLOCKS_PER_TASK * random.distribution.elements_per_philox_block(dtype);
    let cost = elements.len().saturating_mul(COST_PER_PHILOX_BLOCK);
    threads::for_each(
        elements.chunks(per_task).enumerate(),
        cost,
        || (),
        |_, (i, run)| {
            let first = random.first_block.wrapping_add((i * PHILOX_BLOCKS_PER_TASK) as u64);
            if let Distribution::Sampled { sampler, parameters } = random.distribution {
                let (start, end) = (i * per_task, i * per_task + run.len());
                let inputs: Vec<&[f64]> = inputs.iter().map(|all| &all[start..end]).collect();
                select_sampler_function(sampler)(random, first, parameters, &inputs, run);
            } else {
                fill_random(random, first, run);
            }
        },
    );
    call.outcome_from_buffers([output.into_buffer()])
}

fn fill_random(random: &Random, block: u64, run: ElementsMut) {
    macro_rules! integers {
        ($t:ty, $low:expr, $span:expr) => {{
            let convert = move |offset: u64| $low.wrapping_add(offset) as $t;
            if Distribution::span_needs_128_bits($span) {
                run_fill_loop(
                    WideRangeIntegersLoop { key: random.key, stream: random.stream, first: block, span: $span, convert },
                    run.typed_slice::<$t>(),
                )
            } else {
                fill_from_philox_blocks(random, block, run.typed_slice::<$t>(), move |w: [u32; 4]| {
                    [convert(scale_to_span(w[0], w[1], $span)), convert(scale_to_span(w[2], w[3], $span))]
                })
            }
        }};
    }
    macro_rules! floats {
        ($of32:expr) => {
            match random.distribution {
                Distribution::Uniform(s) => {
                    let mask = Distribution::uniform_word_mask(run.dtype());
                    let (low, span, factor, limit) = (s.low as f32, s.span as f32, s.factor as f32, s.limit as f32);
                    fill_from_philox_blocks(random, block, run.typed_slice(), move |w: [u32; 4]| {
                        let scale = |word| $of32((factor * (low + uniform_f32_from_bits(word & mask) * span)).min(limit));
                        [scale(w[0]), scale(w[1]), scale(w[2]), scale(w[3])]
                    })
                }
                Distribution::Normal { mean, std } => {
                    let (mean, std) = (mean as f32, std as f32);
                    fill_from_philox_blocks(random, block, run.typed_slice(), NormalFromRandomWords { mean, std, finish: $of32 })
                }
                Distribution::Integers { .. } | Distribution::Sampled { .. } => {}
            }
        };
    }
    match (random.distribution, run.dtype()) {
        (Distribution::Integers { low, span }, dtype) => {
            let low = low as u64; // wraps: only the bits that fit the output matter
            match dtype {
                DType::I8 => integers!(i8, low, span),
                DType::I16 => integers!(i16, low, span),
                DType::I32 => integers!(i32, low, span),
                DType::I64 => integers!(i64, low, span),
                DType::U8 => integers!(u8, low, span),
                DType::U16 => integers!(u16, low, span),
                DType::U32 => integers!(u32, low, span),
                _ => integers!(u64, low, span),
            }
        }
        (Distribution::Uniform(UniformScaling { low, span, factor, limit }), DType::F64) => {
            fill_from_philox_blocks(random, block, run.typed_slice::<f64>(), move |w: [u32; 4]| {
                let scale = |uniform: f64| (factor * (low + uniform * span)).min(limit);
                [scale(uniform_f64_from_words(w[0], w[1])), scale(uniform_f64_from_words(w[2], w[3]))]
            });
        }
        (Distribution::Normal { mean, std }, DType::F64) => {
            fill_from_philox_blocks(random, block, run.typed_slice::<f64>(), NormalFromRandomWords { mean, std, finish: |x: f64| x });
        }
        (_, DType::F16) => floats!(f16::from_f32),
        (_, DType::BF16) => floats!(bf16::from_f32),
        _ => floats!(|x: f32| x),
    }
}

/// A function that fills elements with numbers of one distribution; see [`fill_from_sampler`].
type FillSamples = fn(&Random, u64, [f64; 3], &[&[f64]], ElementsMut);

/// Returns the function that draws the numbers of `sampler`.
fn select_sampler_function(sampler: Sampler) -> FillSamples {
    match sampler {
        Sampler::StandardGamma => fill_from_sampler::<distribution_samplers::Gamma>,
        Sampler::Poisson => fill_from_sampler::<distribution_samplers::Poisson>,
        Sampler::Binomial => fill_from_sampler::<distribution_samplers::Binomial>,
        Sampler::Hypergeometric => fill_from_sampler::<distribution_samplers::Hypergeometric>,
        Sampler::Geometric => fill_from_sampler::<distribution_samplers::Geometric>,
        Sampler::LogSeries => fill_from_sampler::<distribution_samplers::LogSeries>,
        Sampler::Zipf => fill_from_sampler::<distribution_samplers::Zipf>,
        Sampler::TangentOfHalfVonMisesAngle => fill_from_sampler::<distribution_samplers::TangentOfHalfVonMisesAngle>,
    }
}

/// Fills `run` with numbers of the distribution `S`. `first` is the index of the Philox counter block of the first element. `inputs` are
/// the parameters of each element, or empty if all elements have the same parameters.
fn fill_from_sampler<S: DistributionSampler>(random: &Random, first: u64, parameters: [f64; 3], inputs: &[&[f64]], run: ElementsMut) {
    macro_rules! fill_with {
        ($convert:expr) => {
            run_fill_loop(
                SamplerLoop::<S, _> { random, first, parameters, inputs, convert: $convert, sampler: std::marker::PhantomData },
                run.typed_slice(),
            )
        };
    }
    match run.dtype() {
        DType::F64 => fill_with!(|x: f64| x),
        DType::F32 => fill_with!(|x: f64| x as f32),
        _ => fill_with!(|x: f64| x as i64),
    }
}

struct SamplerLoop<'a, S, F> {
    random: &'a Random,
    first: u64,
    parameters: [f64; 3],
    inputs: &'a [&'a [f64]],
    convert: F,
    sampler: std::marker::PhantomData<S>,
}

impl<S: DistributionSampler, T, F: Fn(f64) -> T> FillLoop for SamplerLoop<'_, S, F> {
    type Item = T;
    const HAS_AVX512_VERSION: bool = false;

    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        let mut parameters = self.parameters;
        let mut sampler = S::from_parameters(parameters);
        for (part, numbers) in out.chunks_mut(PHILOX_BLOCKS_AT_ONCE).enumerate() {
            let first = self.first.wrapping_add((part * PHILOX_BLOCKS_AT_ONCE) as u64);
            let words = philox_consecutive_blocks(self.random.key, first, self.random.stream);
            for (lane, number) in numbers.iter_mut().enumerate() {
                if !self.inputs.is_empty() {
                    let mut given = [0.0; 3];
                    given.iter_mut().zip(self.inputs).for_each(|(value, all)| *value = all[part * PHILOX_BLOCKS_AT_ONCE + lane]);
                    if given != parameters {
                        (parameters, sampler) = (given, S::from_parameters(given));
                    }
                }
                let mut attempts = RejectionAttempts {
                    key: self.random.key,
                    block: first.wrapping_add(lane as u64),
                    stream: self.random.stream,
                    next: 0,
                    first: words.map(|word| word[lane]),
                };
                *number = (self.convert)(sampler.draw(&mut attempts));
            }
        }
    }
}

/// Number of Philox counter blocks that are computed at once. A round is a chain of dependent instructions, so several registers of blocks
/// are in flight: four of AVX-512, eight of 128 bits.
const PHILOX_BLOCKS_AT_ONCE: usize = if cfg!(target_arch = "x86_64") { 32 } else { 16 };

/// One number per Philox counter block, for [`PHILOX_BLOCKS_AT_ONCE`] blocks.
type Lanes<T> = [T; PHILOX_BLOCKS_AT_ONCE];

/// Converts each Philox counter block of four random words to `N` elements.
trait ConvertRandomWords<const N: usize> {
    /// Element type.
    type Item: Copy;
    /// Converts counter blocks to elements. `words[k][i]` is word `k` of block `i`. Loops over a constant number of blocks are unrolled,
    /// and the words stay in registers.
    fn convert_random_words<I: Isa>(&self, words: &[Lanes<u32>; 4], out: &mut Lanes<[Self::Item; N]>);
}

/// Implementation for closures: the closure converts one counter block. Closures capture by value, because the compiler assumes that
/// captured references may point into the output, and then does not vectorise the loop.
impl<T: Copy, F: Fn([u32; 4]) -> [T; N], const N: usize> ConvertRandomWords<N> for F {
    type Item = T;
    #[inline(always)]
    fn convert_random_words<I: Isa>(&self, [a, b, c, d]: &[Lanes<u32>; 4], out: &mut Lanes<[T; N]>) {
        for lane in 0..PHILOX_BLOCKS_AT_ONCE {
            out[lane] = self([a[lane], b[lane], c[lane], d[lane]]);
        }
    }
}

/// A conversion of random words to normally distributed elements.
struct NormalFromRandomWords<T, F> {
    mean: T,
    std: T,
    finish: F,
}

impl<T: Copy, F: Fn(f64) -> T> ConvertRandomWords<2> for NormalFromRandomWords<f64, F> {
    type Item = T;
    #[inline(always)]
    fn convert_random_words<I: Isa>(&self, [a, b, c, d]: &[Lanes<u32>; 4], out: &mut Lanes<[T; 2]>) {
        let (mut u, mut v) = ([0.0; PHILOX_BLOCKS_AT_ONCE], [0.0; PHILOX_BLOCKS_AT_ONCE]);
        for lane in 0..PHILOX_BLOCKS_AT_ONCE {
            (u[lane], v[lane]) = (uniform_f64_from_words(a[lane], b[lane]), uniform_f64_from_words(c[lane], d[lane]));
        }
        let [x, y] = box_muller::<I, f64>(&u, &v);
        for lane in 0..PHILOX_BLOCKS_AT_ONCE {
            out[lane] = [self.scale_standard_normal(x[lane]), self.scale_standard_normal(y[lane])];
        }
    }
}

impl<T: Copy, F: Fn(f32) -> T> ConvertRandomWords<4> for NormalFromRandomWords<f32, F> {
    type Item = T;
    #[inline(always)]
    fn convert_random_words<I: Isa>(&self, words: &[Lanes<u32>; 4], out: &mut Lanes<[T; 4]>) {
        let mut u = [[0.0; PHILOX_BLOCKS_AT_ONCE]; 4];
        for n in 0..4 {
            for lane in 0..PHILOX_BLOCKS_AT_ONCE {
                u[n][lane] = uniform_f32_from_bits(words[n][lane]);
            }
        }
        let ([x, y], [z, w]) = (box_muller::<I, f32>(&u[0], &u[1]), box_muller::<I, f32>(&u[2], &u[3]));
        for lane in 0..PHILOX_BLOCKS_AT_ONCE {
            out[lane] = [
                self.scale_standard_normal(x[lane]),
                self.scale_standard_normal(y[lane]),
                self.scale_standard_normal(z[lane]),
                self.scale_standard_normal(w[lane]),
            ];
        }
    }
}

impl<R: MathFloat, T, F: Fn(R) -> T> NormalFromRandomWords<R, F> {
    /// Converts a standard normal number to an element with the requested mean and standard deviation.
    #[inline(always)]
    fn scale_standard_normal(&self, x: R) -> T {
        (self.finish)(self.mean + self.std * x)
    }
}

/// Returns two standard normal numbers for each pair of uniform numbers in [0, 1) (Box and Muller, 1958).
#[inline(always)]
fn box_muller<I: Isa, T: Logarithm>(u: &Lanes<T>, v: &Lanes<T>) -> [Lanes<T>; 2] {
    let mut numbers = [*u, *v];
    for lane in 0..PHILOX_BLOCKS_AT_ONCE {
        let radius = (T::of(-2.0) * vmath::log::<I, T>(T::of(1.0) - u[lane])).sqrt();
        let angle = T::of(std::f64::consts::TAU) * v[lane];
        numbers[0][lane] = radius * vmath::cos::<I, T>(angle);
        numbers[1][lane] = radius * vmath::sin::<I, T>(angle);
    }
    numbers
}

/// Fills `out` with elements converted from consecutive Philox counter blocks, starting with block number `first`.
fn fill_from_philox_blocks<M: ConvertRandomWords<N>, const N: usize>(
    random: &Random,
    first: u64,
    out: &mut [M::Item],
    convert_random_words: M,
) {
    run_fill_loop(PhiloxBlocksLoop { key: random.key, stream: random.stream, first, convert_random_words }, out)
}

struct PhiloxBlocksLoop<M, const N: usize> {
    key: u64,
    stream: u32,
    first: u64,
    convert_random_words: M,
}

impl<M: ConvertRandomWords<N>, const N: usize> FillLoop for PhiloxBlocksLoop<M, N> {
    type Item = M::Item;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [M::Item]) {
        let Some(&any) = out.first() else { return };
        // A last incomplete part is converted in a buffer by the same call, because a second call would compile to another copy of the
        // code.
        let mut buffer = [[any; N]; PHILOX_BLOCKS_AT_ONCE];
        for (i, part) in out.chunks_mut(N * PHILOX_BLOCKS_AT_ONCE).enumerate() {
            let words = philox_consecutive_blocks(self.key, self.first.wrapping_add((i * PHILOX_BLOCKS_AT_ONCE) as u64), self.stream);
            let whole: Option<&mut Lanes<[M::Item; N]>> = part.as_chunks_mut::<N>().0.try_into().ok();
            let is_partial = whole.is_none();
            self.convert_random_words.convert_random_words::<I>(&words, whole.unwrap_or(&mut buffer));
            if is_partial {
                part.copy_from_slice(&buffer.as_flattened()[..part.len()]);
            }
        }
    }
}

/// Fills elements with integers from a range of more than 2^32; see [`Distribution::Integers`].
struct WideRangeIntegersLoop<F> {
    key: u64,
    stream: u32,
    first: u64,
    span: u64,
    convert: F,
}

impl<T, F: Fn(u64) -> T> FillLoop for WideRangeIntegersLoop<F> {
    type Item = T;
    #[inline(always)]
    fn run<I: Isa>(self, out: &mut [T]) {
        for (i, part) in out.chunks_mut(2 * PHILOX_BLOCKS_AT_ONCE).enumerate() {
            let first = self.first.wrapping_add((i * PHILOX_BLOCKS_AT_ONCE) as u64);
            let high = philox_consecutive_blocks(self.key, first, self.stream);
            let low = philox_consecutive_blocks(self.key, first.wrapping_add(Distribution::LOW_HALF_BLOCK_OFFSET), self.stream);
            for (lane, numbers) in part.chunks_mut(2).enumerate() {
                for (n, number) in numbers.iter_mut().enumerate() {
                    let join = |words: &[Lanes<u32>; 4]| join_u32_words(words[2 * n][lane], words[2 * n + 1][lane]);
                    *number = (self.convert)(scale_to_wide_span(join(&high), join(&low), self.span));
                }
            }
        }
    }
}

/// Returns the random words of one counter block by Philox 4x32-10.
#[inline(always)]
fn philox(key: u64, counter: [u32; 4]) -> [u32; 4] {
    let (mut c, mut key) = (counter.map(u64::from), [key as u32, (key >> 32) as u32]);
    for _ in 0..10 {
        (c, key) = (philox_round(key, c), next_round_key(key));
    }
    c.map(|word| word as u32)
}

/// Returns the random words of [`PHILOX_BLOCKS_AT_ONCE`] consecutive counter blocks, by Philox 4x32-10. The four words
/// of a counter are the low and high halves of the block number, the attempt number 0, and `stream`. Block numbers start at `first`.
#[inline(always)]
fn philox_consecutive_blocks(key: u64, first: u64, stream: u32) -> [Lanes<u32>; 4] {
    // Each word is the low half of a u64: one SIMD instruction multiplies the low halves of all u64 lanes. The high halves are ignored.
    let (mut a, mut b, mut c, mut d) =
        ([0; PHILOX_BLOCKS_AT_ONCE], [0; PHILOX_BLOCKS_AT_ONCE], [0; PHILOX_BLOCKS_AT_ONCE], [u64::from(stream); PHILOX_BLOCKS_AT_ONCE]);
    for lane in 0..PHILOX_BLOCKS_AT_ONCE {
        a[lane] = first.wrapping_add(lane as u64);
        b[lane] = a[lane] >> 32;
    }
    let mut key = [key as u32, (key >> 32) as u32];
    for _ in 0..10 {
        for lane in 0..PHILOX_BLOCKS_AT_ONCE {
            [a[lane], b[lane], c[lane], d[lane]] = philox_round(key, [a[lane], b[lane], c[lane], d[lane]]);
        }
        key = next_round_key(key);
    }
    let mut words = [[0; PHILOX_BLOCKS_AT_ONCE]; 4];
    for lane in 0..PHILOX_BLOCKS_AT_ONCE {
        (words[0][lane], words[1][lane]) = (a[lane] as u32, b[lane] as u32);
        (words[2][lane], words[3][lane]) = (c[lane] as u32, d[lane] as u32);
    }
    words
}

/// Returns the 64-bit number whose low half is `low` and whose high half is `high`.
#[inline(always)]
fn join_u32_words(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Returns the upper 64 bits of the product of `span`, at most 2^32, and the 64-bit number with the halves `low` and `high`. If `span` is 0,
/// which means 2^64, returns the number.
#[inline(always)]
fn scale_to_span(low: u32, high: u32, span: u64) -> u64 {
    let (low_product, high_product) = (low as u64 * span, high as u64 * span);
    if span == 0 { join_u32_words(low, high) } else { (high_product + (low_product >> 32)) >> 32 }
}

/// Returns the upper 64 bits of the product of `span` and the 128-bit number with the halves `high` and `low`.
#[inline(always)]
fn scale_to_wide_span(high: u64, low: u64, span: u64) -> u64 {
    let span = span as u128;
    ((high as u128 * span + ((low as u128 * span) >> 64)) >> 64) as u64
}

/// Returns `((low | high << 32) >> 11) * 2^-53`. Each word is inserted into the significand of a constant, and the constants are then
/// subtracted exactly: without AVX-512, vectors of 64-bit integers have no instruction for the conversion.
#[inline(always)]
fn uniform_f64_from_words(low: u32, high: u32) -> f64 {
    // The last bit of the significand of `HIGH_BASE` is 2^-32, and that of `LOW_BASE` is 2^-53.
    const HIGH_BASE: f64 = (1 << 20) as f64;
    const LOW_BASE: f64 = 0.5;
    let high = f64::from_bits(HIGH_BASE.to_bits() | high as u64);
    let low = f64::from_bits(LOW_BASE.to_bits() | (low >> 11) as u64);
    high - (HIGH_BASE + LOW_BASE) + low
}

#[inline(always)]
fn uniform_f32_from_bits(word: u32) -> f32 {
    (word >> 8) as f32 * 2f32.powi(-24)
}

/// Returns the counter block after one round of Philox 4x32 (Salmon et al., SC 2011). Each word is the low half of a u64. The high halves
/// of the arguments are ignored, and the high halves of the results are arbitrary.
#[inline(always)]
fn philox_round(key: [u32; 2], [a, b, c, d]: [u64; 4]) -> [u64; 4] {
    const LOW_HALF_MASK: u64 = u32::MAX as u64;
    let (p, q) = (0xD251_1F53 * (a & LOW_HALF_MASK), 0xCD9E_8D57 * (c & LOW_HALF_MASK));
    [(q >> 32) ^ b ^ key[0] as u64, q, (p >> 32) ^ d ^ key[1] as u64, p]
}

/// Returns the Philox key of the next round.
#[inline(always)]
fn next_round_key(key: [u32; 2]) -> [u32; 2] {
    [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn philox_full([low, high]: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
        philox(join_u32_words(low, high), counter)
    }

    #[test]
    fn lanes_are_consecutive_blocks() {
        let (key, first) = (0x299f_31d0_a409_3822, u64::MAX - 5);
        let words = philox_consecutive_blocks(key, first, 7);
        for lane in 0..PHILOX_BLOCKS_AT_ONCE {
            let block = first.wrapping_add(lane as u64);
            let one = philox_full([key as u32, (key >> 32) as u32], [block as u32, (block >> 32) as u32, 0, 7]);
            assert_eq!(words.map(|w| w[lane]), one);
        }
    }

    /// Compares with the known answers of Random123.
    #[test]
    fn known_answers() {
        assert_eq!(philox_full([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox_full([u32::MAX; 2], [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox_full([0xa409_3822, 0x299f_31d0], pi), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    /// Compares with the standard library's functions: whole registers, single blocks and partial blocks.
    #[test]
    fn normal_numbers_are_box_and_mullers() {
        fn check<T: MathFloat, const N: usize>(len: usize, got: Vec<T>, uniform: impl Fn([u32; 4]) -> [f64; N], ulp: f64) {
            for (i, x) in got.iter().map(|x| x.to_f64()).enumerate() {
                let (block, n) = (FIRST + (i / N) as u64, i % N);
                let u = uniform(philox_full([KEY as u32, (KEY >> 32) as u32], [block as u32, (block >> 32) as u32, 0, 0]));
                let (radius, angle) = ((-2.0 * (1.0 - u[n & !1]).ln()).sqrt(), std::f64::consts::TAU * u[n | 1]);
                let want = 0.5 + 2.0 * radius * if n % 2 == 0 { angle.cos() } else { angle.sin() };
                // The tolerance covers the rounding of the angle, the product and the sum.
                assert!((x - want).abs() <= ulp * (1.0 + 16.0 * radius), "{i} of {len}: {x} is not {want}");
            }
        }
        const KEY: u64 = 0x299f_31d0_a409_3822;
        const FIRST: u64 = u32::MAX as u64 - 7;
        for len in [1, 2, 3, 31, 32, 33, 64, 67, 1001] {
            let random = Random { key: KEY, first_block: FIRST, stream: 0, distribution: Distribution::Normal { mean: 0.5, std: 2.0 } };
            let mut wide = vec![0.0; len];
            fill_from_philox_blocks(&random, FIRST, &mut wide, NormalFromRandomWords { mean: 0.5, std: 2.0, finish: |x: f64| x });
            check(len, wide, |w| [uniform_f64_from_words(w[0], w[1]), uniform_f64_from_words(w[2], w[3])], f64::EPSILON);
            let mut narrow = vec![0.0; len];
            fill_from_philox_blocks(&random, FIRST, &mut narrow, NormalFromRandomWords { mean: 0.5, std: 2.0, finish: |x: f32| x });
            check(len, narrow, |w| w.map(|word| uniform_f32_from_bits(word) as f64), f32::EPSILON as f64);
        }
    }

    #[test]
    fn words_are_scaled_exactly() {
        let words = [0, 1, 0x7fff_ffff, 0x8000_0000, 0x1234_5678, u32::MAX];
        for (low, high) in words.iter().flat_map(|low| words.map(|high| (*low, high))) {
            let bits = join_u32_words(low, high);
            assert_eq!(scale_to_span(low, high, 0), bits);
            for span in [1, 10, u32::MAX as u64, 1 << 32] {
                assert_eq!(scale_to_span(low, high, span), ((bits as u128 * span as u128) >> 64) as u64);
            }
            assert_eq!(uniform_f64_from_words(low, high).to_bits(), ((bits >> 11) as f64 * 2f64.powi(-53)).to_bits());
        }
        assert_eq!(scale_to_wide_span(u64::MAX, u64::MAX, u64::MAX), u64::MAX - 1);
        // The product with the high half ends 2^62 below a multiple of 2^64, so the low half decides.
        assert_eq!([0, u64::MAX].map(|low| scale_to_wide_span(u64::MAX / 3, low, 3 << 62)), [(1 << 62) - 1, 1 << 62]);
        assert!(uniform_f64_from_words(u32::MAX, u32::MAX) < 1.0 && uniform_f32_from_bits(u32::MAX) < 1.0);
    }
}
