//! Random: Philox 4x32-10, block by block; the bits are those of every other device.

use cuprum_core::{Call, DType, Distribution, Outcome, Random, Result, Work, bf16, decline, f16};

use crate::raw::{ElementsMut, Output};
use crate::simd::{Loop, dispatch};
use crate::threads;

/// Blocks of four words per task.
const CHUNK: usize = 1 << 13;
/// Cheap operations that a block of words costs, about.
const COST: usize = 40;

/// The Random kernel.
pub(crate) fn run(call: &Call) -> Result<Outcome> {
    let Work::Random(random) = &call.work else { decline!("not a draw") };
    let dtype = call.outputs[0].dtype;
    let takes = if matches!(random.distribution, Distribution::Integers { .. }) { dtype.is_int() } else { dtype.is_float() };
    if !takes {
        decline!("{dtype} is not drawn from this distribution");
    }
    let mut output = Output::allocate(call, 0)?;
    let elements = output.elements()?;
    let per_task = CHUNK * random.distribution.per_block(dtype);
    let cost = elements.len().saturating_mul(COST);
    threads::for_each(
        elements.chunks(per_task).into_iter().enumerate(),
        cost,
        || (),
        |_, (i, run)| {
            draw(random, random.first_block.wrapping_add((i * CHUNK) as u64), run);
        },
    );
    call.done([output.finish()])
}

fn draw(random: &Random, block: u64, run: ElementsMut) {
    macro_rules! integers {
        ($t:ty, $low:expr, $span:expr) => {
            blocks(random.key, block, run.typed::<$t>(), |w| {
                let one = |bits| $low.wrapping_add(scaled(bits, $span)) as $t;
                [one(pair(w, 0)), one(pair(w, 2))]
            })
        };
    }
    macro_rules! floats {
        ($of32:expr) => {
            match random.distribution {
                Distribution::Uniform { low, high } => {
                    let (low, span) = (low as f32, high as f32 - low as f32);
                    let is_unit = low == 0.0 && span == 1.0;
                    blocks(random.key, block, run.typed(), |w| {
                        let one = |word| {
                            let u = unit_f32(word);
                            $of32(if is_unit { u } else { low + u * span })
                        };
                        [one(w[0]), one(w[1]), one(w[2]), one(w[3])]
                    })
                }
                Distribution::Normal { mean, std } => {
                    let (mean, std) = (mean as f32, std as f32);
                    blocks(random.key, block, run.typed(), |w| {
                        let u = w.map(unit_f32);
                        let ([a, b], [c, d]) = (box_muller_f32(u[0], u[1]), box_muller_f32(u[2], u[3]));
                        [a, b, c, d].map(|z| $of32(mean + std * z))
                    })
                }
                Distribution::Integers { .. } => {}
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
        (Distribution::Uniform { low, high }, DType::F64) => {
            let is_unit = low == 0.0 && high == 1.0;
            let span = high - low;
            blocks(random.key, block, run.typed::<f64>(), |w| {
                let one = |u: f64| if is_unit { u } else { low + u * span };
                [one(unit_f64(pair(w, 0))), one(unit_f64(pair(w, 2)))]
            });
        }
        (Distribution::Normal { mean, std }, DType::F64) => {
            blocks(random.key, block, run.typed::<f64>(), |w| {
                let [u1, u2] = [0, 2].map(|n| unit_f64(pair(w, n)));
                let (radius, angle) = ((-2.0 * (1.0 - u1).ln()).sqrt(), std::f64::consts::TAU * u2);
                [angle.cos(), angle.sin()].map(|x| mean + std * (radius * x))
            });
        }
        (_, DType::F16) => floats!(f16::from_f32),
        (_, DType::BF16) => floats!(bf16::from_f32),
        _ => floats!(|x: f32| x),
    }
}

/// Blocks computed side by side: a register of words.
const LANES: usize = 16;

/// Fills `out` with N elements a block, from block `first` on.
fn blocks<T: Copy, const N: usize>(key: u64, first: u64, out: &mut [T], make: impl Fn([u32; 4]) -> [T; N]) {
    dispatch(Fill { key, first, out, make });
}

struct Fill<'a, T, F: Fn([u32; 4]) -> [T; N], const N: usize> {
    key: u64,
    first: u64,
    out: &'a mut [T],
    make: F,
}

impl<T: Copy, F: Fn([u32; 4]) -> [T; N], const N: usize> Loop for Fill<'_, T, F, N> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (i, part) in self.out.chunks_mut(N * LANES).enumerate() {
            let [a, b, c, d] = Side { key: self.key, first: self.first.wrapping_add((i * LANES) as u64) }.run();
            let (whole, rest) = part.as_chunks_mut::<N>();
            for (lane, place) in whole.iter_mut().enumerate() {
                *place = (self.make)([a[lane], b[lane], c[lane], d[lane]]);
            }
            if let Some(lane) = Some(whole.len()).filter(|_| !rest.is_empty()) {
                rest.copy_from_slice(&(self.make)([a[lane], b[lane], c[lane], d[lane]])[..rest.len()]);
            }
        }
    }
}

/// [`LANES`] blocks from `first` on.
struct Side {
    key: u64,
    first: u64,
}

impl Loop for Side {
    type Output = [[u32; LANES]; 4];
    #[inline(always)]
    fn run(self) -> [[u32; LANES]; 4] {
        let (mut low, mut high, mut c, mut d) = ([0; LANES], [0; LANES], [0; LANES], [0; LANES]);
        for lane in 0..LANES {
            let block = self.first.wrapping_add(lane as u64);
            (low[lane], high[lane]) = (block as u32, (block >> 32) as u32);
        }
        let mut key = [self.key as u32, (self.key >> 32) as u32];
        for _ in 0..10 {
            for lane in 0..LANES {
                [low[lane], high[lane], c[lane], d[lane]] = round(key, [low[lane], high[lane], c[lane], d[lane]]);
            }
            key = next_key(key);
        }
        [low, high, c, d]
    }
}

/// Words n and n + 1 as one number, the first one low.
#[inline(always)]
fn pair(w: [u32; 4], n: usize) -> u64 {
    w[n] as u64 | (w[n + 1] as u64) << 32
}

#[inline(always)]
fn scaled(bits: u64, span: u64) -> u64 {
    if span == 0 { bits } else { ((bits as u128 * span as u128) >> 64) as u64 }
}

#[inline(always)]
fn unit_f64(bits: u64) -> f64 {
    (bits >> 11) as f64 * 2f64.powi(-53)
}

#[inline(always)]
fn unit_f32(word: u32) -> f32 {
    (word >> 8) as f32 * 2f32.powi(-24)
}

fn box_muller_f32(u1: f32, u2: f32) -> [f32; 2] {
    let (radius, angle) = ((-2.0 * (1.0 - u1).ln()).sqrt(), std::f32::consts::TAU * u2);
    [radius * angle.cos(), radius * angle.sin()]
}

/// A round of Philox 4x32 (Salmon et al., SC 2011).
#[inline(always)]
fn round(key: [u32; 2], c: [u32; 4]) -> [u32; 4] {
    let (p0, p1) = (0xD251_1F53 * c[0] as u64, 0xCD9E_8D57 * c[2] as u64);
    [(p1 >> 32) as u32 ^ c[1] ^ key[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ key[1], p0 as u32]
}

/// The key of the next round.
#[inline(always)]
fn next_key(key: [u32; 2]) -> [u32; 2] {
    [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn philox_full(mut key: [u32; 2], mut c: [u32; 4]) -> [u32; 4] {
        for _ in 0..10 {
            (c, key) = (round(key, c), next_key(key));
        }
        c
    }

    #[test]
    fn lanes_are_consecutive_blocks() {
        let (key, first) = (0x299f_31d0_a409_3822, u64::MAX - 5);
        let words = dispatch(Side { key, first });
        for lane in 0..LANES {
            let block = first.wrapping_add(lane as u64);
            let one = philox_full([key as u32, (key >> 32) as u32], [block as u32, (block >> 32) as u32, 0, 0]);
            assert_eq!(words.map(|w| w[lane]), one);
        }
    }

    /// The known answers of Random123's distribution.
    #[test]
    fn known_answers() {
        assert_eq!(philox_full([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox_full([u32::MAX; 2], [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(philox_full([0xa409_3822, 0x299f_31d0], pi), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn spans() {
        assert_eq!(scaled(u64::MAX, 10), 9);
        assert_eq!(scaled(u64::MAX, 0), u64::MAX);
        assert!(unit_f64(u64::MAX) < 1.0 && unit_f32(u32::MAX) < 1.0);
    }
}
