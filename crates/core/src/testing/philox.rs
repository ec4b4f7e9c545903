//! A scalar reference for random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and the
//! conversions of [`Generator`](crate::random::Generator). Backends compute blocks in parallel and do not use this reference.

/// Returns the block with index `counter` of the stream with this key: four 32-bit words.
fn philox(counter: u64, key: u64) -> [u32; 4] {
    let (mut c, mut k) = ([counter as u32, (counter >> 32) as u32, 0, 0], [key as u32, (key >> 32) as u32]);
    for _ in 0..10 {
        let (a, b) = (0xD251_1F53 * u64::from(c[0]), 0xCD9E_8D57 * u64::from(c[2]));
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// The stream of a new [`Generator`](crate::random::Generator) with this seed. Numbers are indexed from 0.
#[derive(Clone, Copy, Debug)]
pub struct PhiloxStream(pub u64);

impl PhiloxStream {
    /// Returns the 32-bit word with index `n`.
    pub fn word(self, n: usize) -> u32 {
        philox(n as u64 / 4, self.0)[n % 4]
    }

    /// Returns the 64-bit number with index `n`: two words, the low one first.
    pub fn pair(self, n: usize) -> u64 {
        u64::from(self.word(2 * n)) | u64::from(self.word(2 * n + 1)) << 32
    }

    /// Returns uniform float32 number `n`.
    pub fn unit_f32(self, n: usize) -> f32 {
        (self.word(n) >> 8) as f32 * 2f32.powi(-24)
    }

    /// Returns uniform number `n` of a dtype with `digits` binary digits, at most 24.
    pub fn unit_with_digits(self, n: usize, digits: u32) -> f32 {
        (self.word(n) >> (32 - digits)) as f32 * 2f32.powi(-(digits as i32))
    }

    /// Returns uniform float64 number `n`.
    pub fn unit_f64(self, n: usize) -> f64 {
        (self.pair(n) >> 11) as f64 * 2f64.powi(-53)
    }

    /// Returns the uniform integer in `0..span` with index `n`.
    pub fn below(self, n: usize, span: u64) -> u64 {
        let (high, span) = (u128::from(self.pair(n)), u128::from(span));
        if span <= 1 << 32 {
            return ((high * span) >> 64) as u64;
        }
        let words = philox(n as u64 / 2 + (1 << 63), self.0);
        let low = u128::from(words[n % 2 * 2]) | u128::from(words[n % 2 * 2 + 1]) << 32;
        ((high * span + ((low * span) >> 64)) >> 64) as u64
    }

    /// Returns the standard normal float64 number with index `n`, by the Box-Muller transform of two uniform numbers.
    pub fn normal(self, n: usize) -> f64 {
        let (radius, angle) = ((-2.0 * (1.0 - self.unit_f64(n & !1)).ln()).sqrt(), std::f64::consts::TAU * self.unit_f64(n | 1));
        radius * if n.is_multiple_of(2) { angle.cos() } else { angle.sin() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First known answer of Random123, the authors' library.
    #[test]
    fn matches_known_answer() {
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(PhiloxStream(0).pair(1), 0x9b00_dbd8_bc57_ac4c);
    }
}
