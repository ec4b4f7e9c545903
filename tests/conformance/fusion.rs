//! Checks that fusion does not change results: random expressions give the same bits with and without fusion, for any length and
//! any sharing of subexpressions.

use cuprum::{NdArray, Operand, Result, maximum, minimum, where_, with_fusion};

use crate::checks::{Check, Subject, same};

/// Number of random expressions for each dtype. It is small because each one compiles a kernel on a GPU.
const EXPRESSIONS: u64 = 6;

pub fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for dtype in ["i8", "u32", "i64", "f16", "bf16", "f32", "f64"] {
        for seed in 0..EXPRESSIONS {
            let name = format!("fusion: made-up expression {seed} over {dtype}");
            checks.push(Check::plain(name, move |subject| {
                let inputs = inputs(subject, dtype)?;
                // Expressions of more than 48 nodes or 12 inputs are split. Every second one is longer.
                let nodes = if seed % 2 == 0 { 20 } else { 120 };
                let run = |fused| {
                    with_fusion(fused, || random_expression(seed, nodes, &inputs)?.to_bytes()).map_err(|e: cuprum::Error| e.to_string())
                };
                same(run(true)?, run(false)?)
            }));
        }
    }
    checks.push(Check::plain("fusion: a chain of 1000 operations", |subject| {
        let mut x = subject.eval("z_f64 * 0")?;
        for _ in 0..1000 {
            x = &x + 1;
        }
        same(x.to_vec::<f64>().map_err(|e| e.to_string())?, vec![1000.0])
    }));
    checks.push(Check::plain("fusion: a loop that reads every value it makes", |subject| {
        let mut x = subject.eval("a_i64 * 0")?;
        for n in 1..=200i64 {
            x = &x + 1;
            same(x.sum(()).and_then(|s| s.item_as()).map_err(|e| e.to_string())?, 18 * n)?;
        }
        Ok(())
    }));
    checks.push(Check::plain("fusion: a part that doubles at every step", |subject| {
        // Doubling forty times would be 2^40 nodes without sharing.
        let mut x = subject.eval("a_i64 * 0 + 1")?;
        for _ in 0..40 {
            x = &x + &x;
        }
        same(x.to_vec::<i64>().map_err(|e| e.to_string())?, vec![1 << 40; 18])
    }));
    checks.push(Check::plain("fusion: parts that stay in the caller's hands", |subject| {
        let a = subject.eval("a_f32")?;
        let values = || {
            let kept = (&a * 3 - 1).sin()?;
            let (left, right) = (&kept + 1, &kept * &kept);
            let both = &left - &right;
            let later = &kept + &left;
            Ok::<_, cuprum::Error>([both.to_bytes()?, later.to_bytes()?, kept.to_bytes()?, right.to_bytes()?, left.to_bytes()?])
        };
        same(with_fusion(true, values).map_err(|e| e.to_string())?, with_fusion(false, values).map_err(|e| e.to_string())?)
    }));
    checks
}

fn inputs(subject: &mut Subject, dtype: &str) -> std::result::Result<Vec<NdArray>, String> {
    let of = ["m_{d}", "n_{d}.T[:1]", "n_{d}.T[:1, ::-1]", "m_{d}[::-1]", "z_{d}", "m_{d}[1]"];
    of.iter().map(|text| subject.eval(&text.replace("{d}", dtype))).collect()
}

/// A random number generator (SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % n as u64) as usize
    }
}

/// Returns a random expression of exact operations. Arguments are drawn from recent values and inputs, so that nodes are shared.
fn random_expression(seed: u64, nodes: usize, inputs: &[NdArray]) -> Result<NdArray> {
    let dtype = inputs[0].dtype();
    let mut dice = Dice(seed);
    let mut values: Vec<NdArray> = inputs.to_vec();
    for _ in 0..nodes {
        let mut pick = || {
            let recent = values.len().min(4);
            let at = if dice.below(3) == 0 { dice.below(inputs.len()) } else { values.len() - 1 - dice.below(recent) };
            values[at].clone()
        };
        let (x, y, z) = (pick(), pick(), pick());
        let scalar = Operand::from(dice.below(7) as i64 + 1);
        let next = match dice.below(11) {
            0 => cuprum::add(&x, &y)?,
            1 => cuprum::subtract(&x, &y)?,
            2 => cuprum::multiply(&x, scalar)?,
            3 => cuprum::add(&x, scalar)?,
            4 => maximum(&x, &y)?,
            5 => minimum(&x, scalar)?,
            6 => where_(x.less(&y)?, &z, &x)?,
            7 => x.negative()?,
            8 => x.abs()?,
            9 => x.astype(cuprum::DType::F32)?.divide(3)?.astype(dtype)?,
            _ => cuprum::remainder(&x, scalar)?,
        };
        values.push(next);
    }
    Ok(values.swap_remove(values.len() - 1))
}
